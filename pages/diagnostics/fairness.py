"""Fairness of a release, judged on real rows: dependence, gaps between groups, and the cost of the fence."""

from __future__ import annotations

from typing import Any

import streamlit as st

from espalier.core.analysis.answer_text import text_with_label
from espalier.core.compare.price import price
from espalier.core.evaluation.verdict import small_group
from espalier.core.project.schema import Schema
from espalier.pages.common import charts
from espalier.pages.common.text import method, name, plain
from espalier.pages.diagnostics.judgement import Facts, reasons

MOST_GROUPS = 12
MOST_LINES = 6
FEW = 20
"""Minimum number of rows for a point on the calibration chart."""


def show(facts: Facts | None, reason: str, tested: str, schema: Schema) -> None:
    """Show the outcome's dependence on protected columns, and a model's gaps on the real rows that ``tested`` names."""
    if facts is None:
        st.info(f"There are no fairness figures: {plain(reason)}. Set the roles on the Structure page.")
        return
    _dependence(facts)
    st.subheader(f"Does a model treat the groups alike on {plain(tested.lower())}?", anchor=False)
    _gaps(facts)
    _groups(facts, schema)
    _no_promise(facts)


def _dependence(facts: Facts) -> None:
    st.subheader(
        "Does the outcome depend on protected columns beyond the admissible ones?",
        anchor=False,
        help="Measured as conditional mutual information (CMI), in nats.",
    )
    charts.show(
        charts.bars(
            ["real", "synthetic", "model"],
            {"": [facts["cmi_real"], facts["cmi_synthetic"], facts["cmi_model"]]},
            "CMI of outcome and protected columns (nats)",
            ((charts.REAL, charts.SYNTHETIC, charts.MODEL),),
            figures=".4f",
            marks=("upper limit by chance (95 %)", [facts["cmi_real_floor"], facts["cmi_synthetic_floor"], None]),
        ),
        "cmi",
        "CMI of the outcome and protected columns in the real table, the synthetic table and the model",
    )
    given = ", ".join(name(c) for c in facts["admissible"]) or "nothing"
    st.markdown(
        f"**How to read it.** The bars show how much {', '.join(map(name, facts['outcome']))} reveals about "
        f"{', '.join(map(name, facts['protected']))} once {given} is known. 0 means nothing. Chance alone raises "
        "a table's bar slightly; without any link, the bar stays below the red line in 95 of 100 tables. *Model* "
        "is the model that drew the synthetic rows; its figure is exact."
    )
    st.dataframe(
        [
            {
                "table": which,
                "estimate": facts[f"cmi_{which}"],
                "chance alone, on average": facts[f"cmi_{which}_chance"],
                "estimate minus chance": facts[f"cmi_{which}_debiased"],
                "upper limit by chance": facts[f"cmi_{which}_floor"],
                "conclusion": "More than chance would explain (95 % level)"
                if facts[f"cmi_{which}"] > facts[f"cmi_{which}_floor"]
                else "No more than chance would explain",
            }
            for which in ("real", "synthetic")
        ],
        hide_index=True,
        column_config={
            k: st.column_config.NumberColumn(format="%.5f")
            for k in ("estimate", "chance alone, on average", "estimate minus chance", "upper limit by chance")
        },
    )
    reasons(facts, "cmi_model")


def _gaps(facts: Facts) -> None:
    keys = {"equalized odds": "equalized_odds_difference", "selection rate": "demographic_parity_difference"}
    series, whiskers = {}, {}
    for label, suffix in (("trained on synthetic", ""), ("trained on real", "_real")):
        series[label] = [facts.get(f"{k}{suffix}") for k in keys.values()]
        whiskers[label] = [facts.get(f"{k}{suffix}_interval") for k in keys.values()]
    charts.show(
        charts.bars(
            list(keys),
            series,
            "gap between groups (share)",
            (charts.SYNTHETIC, charts.REAL),
            whiskers=whiskers,
        ),
        "odds",
        "Gaps between groups, for models trained on synthetic and on real rows, with intervals",
    )
    accuracy = [facts["accuracy_synthetic"], facts["accuracy_real"]]
    beside = (
        f" Accuracy: {accuracy[0]:.3f} trained on synthetic, {accuracy[1]:.3f} trained on real."
        if None not in accuracy
        else ""
    )
    st.markdown(
        "**How to read it.** Each bar is the gap between the group that fares best and the group that fares "
        "worst. *Equalized odds* compares true and false positive rates; *selection rate* compares how often the "
        "model says yes. Whiskers are 95 % intervals. Small groups exaggerate the largest gap." + beside
    )
    reasons(facts, "equalized_odds_difference")


def _groups(facts: Facts, schema: Schema) -> None:
    groups = facts["groups"]
    if not groups or all(g["selection_rate_synthetic"] is None for g in groups):
        return
    shown = sorted(groups, key=lambda g: -g["rows"])[:MOST_GROUPS]
    labels = [", ".join(text_with_label(schema[c], str(v)) for c, v in g["group"].items()) for g in shown]
    some = f" The {len(shown)} largest of {len(groups)} groups are shown." if len(groups) > len(shown) else ""
    st.markdown(
        f"**Group by group:** how often is {name(facts['target'])} = {name(str(facts['positive']))} predicted?{some}"
    )
    charts.show(
        charts.bars(
            labels,
            {
                "model trained on synthetic": [g["selection_rate_synthetic"] for g in shown],
                "model trained on real": [g["selection_rate_real"] for g in shown],
                "true share among tested rows": [g["outcome_rate_real"] for g in shown],
            },
            "share of the group's rows",
            (charts.SYNTHETIC, charts.REAL, charts.MODEL),
            1.12,
        ),
        "groups",
        "Selection rates by protected group",
    )
    st.markdown("**How well the model ranks within each group** (AUC; whiskers: 95 % bootstrap intervals)")
    charts.show(
        charts.bars(
            labels,
            {
                "model trained on synthetic": [g["auc_synthetic"] for g in shown],
                "model trained on real": [g["auc_real"] for g in shown],
            },
            "AUC within the group (0 to 1)",
            (charts.SYNTHETIC, charts.REAL),
            1.05,
            whiskers={
                "model trained on synthetic": [g.get("auc_synthetic_interval") for g in shown],
                "model trained on real": [g.get("auc_real_interval") for g in shown],
            },
        ),
        "group-auc",
        "AUC by protected group, with intervals",
    )
    lines, left_out = _calibration(labels, shown)
    if lines or left_out:
        st.markdown(
            "**Are its probabilities right in each group?** (the model trained on synthetic rows) On the dotted "
            "line, the probabilities are right. Above the line, the model underestimates a group; below it, it "
            f"overestimates the group. {left_out}"
        )
    if lines:
        charts.show(
            charts.calibration(
                lines,
                charts.POOLS,
                "predicted probability",
                "observed share",
            ),
            "calibration",
            "Calibration of the model trained on synthetic rows, by protected group",
        )
    figures = {"accuracy": "accuracy", "auc": "AUC", "calibration_error": "calibration error"}
    st.dataframe(
        [
            {"group": label, "rows": g["rows"], "model trained on": f"{rows} rows"}
            | {what: g[f"{key}_{rows}"] for key, what in figures.items()}
            for label, g in zip(labels, shown, strict=True)
            for rows in ("synthetic", "real")
        ],
        hide_index=True,
        column_config={what: st.column_config.NumberColumn(format="%.3f") for what in figures.values()},
    )
    for group in shown:
        reasons(group, "auc_synthetic")


def _calibration(labels: list[str], groups: list[Any]) -> tuple[dict[str, list[Any]], str]:
    """Return a line for each of the largest groups, with the points that have enough rows, and a sentence about the
    points left out.
    """
    drawn = list(zip(labels, groups, strict=True))[:MOST_LINES]
    lines = {label: [b for b in g["calibration_synthetic"] if b["rows"] >= FEW] for label, g in drawn}
    gone = sum(len(g["calibration_synthetic"]) for _, g in drawn) - sum(map(len, lines.values()))
    if not gone:
        return {label: bins for label, bins in lines.items() if bins}, ""
    without = [label for label, bins in lines.items() if not bins]
    text = f"Left out: {gone} point{'s' * (gone > 1)} with fewer than {FEW} rows each"
    text += f"; this leaves no line for {', '.join(map(plain, without))}." if without else "."
    return {label: bins for label, bins in lines.items() if bins}, text


def _no_promise(facts: Facts) -> None:
    protected, outcome = (", ".join(map(name, facts[k])) for k in ("protected", "outcome"))
    gate = ", ".join(map(name, facts["admissible"]))
    st.markdown(
        "**What a separation does not promise**\n"
        + (f"- A model trained on this table may still treat groups differently **through {gate}**.\n" if gate else "")
        + "- Equalized odds and the selection rate **may not improve**, and may get worse: they judge a model on real "
        f"rows, in which {outcome} may still depend on {protected}.\n"
        "- A model that also uses **other columns or other tables** can circumvent it.\n"
        "- It says nothing about whether the admissible columns **deserve** to be admissible, or were measured fairly."
    )


def cost(found: dict[str, Any]) -> None:
    """Compare the release with releases without the fence, at the same budget."""
    facts = found.get("fence_cost")
    fair, learned = found.get("fairness") or {}, found["tstr"]
    said = price(
        (fair.get("demographic_parity_difference_real"), fair.get("demographic_parity_difference")),
        (learned["accuracy_real"], learned["accuracy_synthetic"]),
        "the real rows",
        "With a model trained on this table",
    )
    if said and facts:
        st.markdown(f"**{plain(said)}**{small_group(fair)}")
    if not facts:
        if why := found.get("fence_cost_reason"):
            st.info(f"There is nothing to compare: {plain(why)}.")
        else:
            st.info("The cost of the fence is computed only on the original table.")
        return
    st.subheader("Cost of the fence, at the same budget", anchor=False)
    units = {
        "q": "association kept (rows)",
        "two_way_tv": "error of pairs (share of rows)",
        "kl": "error of pairs (KL divergence, nats)",
        "auc": "AUC of a model trained on it",
        "cmi": "CMI: dependence on protected columns (nats)",
    }
    better = {"q": "more", "two_way_tv": "less", "kl": "less", "auc": "more", "cmi": "less"}

    def figure(key: str, value: float | None) -> str:
        return "" if value is None else f"{value:,.0f}" if key == "q" else f"{value:.4f}"

    ranges = facts["without_range"]
    st.dataframe(
        [
            {
                "": label,
                "this release": figure(k, facts["with"][k]),
                "without the fence": figure(k, facts["without"][k]),
                "lowest to highest": " to ".join(figure(k, v) for v in ranges[k]) if k in ranges else "",
                "better": better[k],
            }
            for k, label in units.items()
        ],
        hide_index=True,
    )
    st.markdown(
        f"**How to read it.** The same plan without its fence ({method(facts['method_without'])}"
        + (f", width {facts['width']}" if facts["width"] > 1 else "")
        + f") was released {facts['repeats']} times at the same ε, and discarded. *Association kept* is the number "
        "of rows by which the measured pairs differ from independent columns; no tree of pairs could keep more "
        f"than {facts['q_best']:,.0f}. The last line shows what a fence is for: 0 means that all dependence runs "
        "through the admissible columns."
    )
