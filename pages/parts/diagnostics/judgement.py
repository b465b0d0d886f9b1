"""The comparison with real rows: started once, in a job; drawn as families of charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.errors import EspalierError
from core.evaluation.fidelity import TOLERANCE
from core.tables.reading import TextTable, read_table
from core.tables.table import Table
from pages.parts import charts
from pages.parts.data.samples import FOLDER, OTHER
from pages.parts.release import payment
from pages.parts.session.session import ReleaseBundle, Session
from pages.parts.text import name, plain

Facts = Mapping[str, Any]
MOST = 15


def start(state: Session, released: ReleaseBundle, other: tuple[str, Table] | None = None) -> None:
    """Judge ``released`` on its own table (or the rows kept back), or on another real table."""
    release, project = released.release, released.release.project
    title = "The rows kept back" if released.holdout else "Its own table"
    tested = released.holdout
    if other is not None:
        title, tested = other

    record = payment.diagnosed(state, released, [released.real, tested] if tested else [released.real])

    def work(report: Any) -> dict[str, Any]:
        from core.compare.fence_cost import cost_or_reason
        from core.evaluation import evaluate

        record()  # before anything is computed: who has looked cannot undo it
        synthetic = Table(project.schema, release.codes, release.rows)
        part = 1.0 if other else 0.5
        found = evaluate(
            project,
            released.real,
            synthetic,
            model=release.model,
            holdout=tested,
            report=lambda f, m: report(part * f, m),
        ).to_json()
        if other is None:
            found |= cost_or_reason(
                project,
                released.real,
                synthetic,
                release.edges,
                holdout=tested,
                report=lambda f, m: report(0.5 + 0.5 * f, m),
            )
        return found

    def done(facts: dict[str, Any]) -> None:
        if state.released is released:
            state.findings[title] = facts

    state.start("diagnostics", work, done, lambda _: None)


def another_table(state: Session, released: ReleaseBundle) -> None:
    """Test on a second real table: another hospital, another year."""
    sample = released.release.project.name == "readmission" and state.sample == "readmission"
    with st.expander(
        "Test on another real table (another place, another year)", expanded=sample and bool(state.findings)
    ):
        st.markdown(
            "A model that learned mere correlations fails where they break. Test both models on real rows from "
            "elsewhere."
        )
        if sample:
            st.markdown(
                "The sample has a second hospital, where the four codes mean something else. See what that "
                "does to a model "
                "trained on the real rows of the first."
            )
            st.button(
                "Test on the other hospital of the sample",
                on_click=_other_hospital,
                args=(state, released),
                key="other-hospital",
                disabled=state.job is not None or "The other hospital" in state.findings,
            )
        file = st.file_uploader(
            "Another table with the same columns", type=["csv", "gz", "parquet", "xlsx"], key=f"other-{released.number}"
        )
        if file is not None:
            try:
                table = Table.encode(read_table(file.getvalue(), file.name), released.release.project.schema)
            except EspalierError as error:
                st.error(plain(error))
                return
            st.button(
                "Test on this table",
                on_click=start,
                args=(state, released, (file.name, table)),
                disabled=state.job is not None,
            )


def _other_hospital(state: Session, released: ReleaseBundle) -> None:
    text: TextTable = read_table(FOLDER / OTHER, OTHER)
    try:
        start(state, released, ("The other hospital", Table.encode(text, released.release.project.schema)))
    except EspalierError as error:
        state.trouble["diagnostics"] = str(error)


def task(facts: Facts, where: str) -> None:
    """Train on synthetic, test on real."""
    st.subheader(f"Can one learn to predict {name(facts['target'] or 'the target')} from it?", anchor=False)
    both = [[facts[f"{m}_{t}"] for m in ("auc", "accuracy")] for t in ("synthetic", "real")]
    if not any(v is not None for values in both for v in values):
        st.info(plain(facts.get("auc_synthetic_reason") or "There is nothing to predict."))
        return
    charts.show(
        charts.bars(
            ["AUC", "accuracy"],
            {"trained on synthetic": both[0], "trained on real": both[1]},
            "share (0 to 1)",
            (charts.SYNTHETIC, charts.REAL),
            1.12,
        ),
        f"task-{facts['target']}",
        "AUC and accuracy of models trained on synthetic and on real rows",
    )
    st.markdown(
        "**How to read it.** Two models of the same kind, one trained on synthetic rows and one on real rows, "
        "are tested on the same "
        "real rows. The closer the bars, the better. AUC 0.5 is a coin toss, 1 is perfect. Accuracy is the "
        "share of right guesses"
        + (
            f"; always guessing the commonest value gives {facts['accuracy_baseline']:.3f}."
            if facts["accuracy_baseline"]
            else "."
        )
    )
    if facts["auc_synthetic"] and facts["auc_real"] and facts["auc_synthetic"] > facts["auc_real"] + 0.03:
        st.success(
            "Here the model trained on synthetic rows does better than the one trained on real rows. That is what a "
            "frame is for, where it keeps out associations that do not hold among the tested rows."
        )
    reasons(facts, "auc_synthetic", "auc_real")
    st.caption(f"Tested on {plain(where.lower())}: {facts['tested_rows']:,} rows. {plain(facts['note'])}")


def columns(facts: Facts) -> None:
    """One-way fidelity."""
    worst = sorted(facts["columns"], key=lambda c: -c["tv"])[:MOST]
    st.subheader(f"Column by column: {facts['one_way_tv']:.3f} on average", anchor=False)
    charts.show(
        charts.lying(
            [c["column"] for c in worst],
            {"": [c["tv"] for c in worst]},
            "total variation (share of rows)",
            (charts.SYNTHETIC,),
        ),
        "one-way",
        "Total variation of single columns, the worst first",
    )
    st.markdown(
        "**How to read it.** Total variation is the share of rows that would have to change their value for "
        "the two distributions to "
        f"agree: 0 is equal, 1 has nothing in common. {_of(worst, facts['columns'], 'columns')}"
    )


def pairs(facts: Facts) -> None:
    """Two-way fidelity."""
    if facts["two_way_tv"] is None:
        st.info(plain(facts.get("two_way_tv_reason", "")))
        return
    worst = sorted(facts["pairs"], key=lambda p: -p["tv"])[:MOST]
    st.subheader(f"Pair by pair: {facts['two_way_tv']:.3f} on average", anchor=False)
    charts.show(
        charts.lying(
            [" × ".join(p["columns"]) for p in worst],
            {
                "synthetic": [p["tv"] for p in worst],
                "if the pair were independent": [p["tv_independent"] for p in worst],
            },
            "total variation (share of rows)",
            (charts.SYNTHETIC, charts.REAL),
        ),
        "two-way",
        "Total variation of pairs of columns, the worst first",
    )
    st.markdown(
        "**How to read it.** As for columns, over the combinations of two. The grey bar is what the same "
        "columns without any link would "
        "score: a green bar as long as the grey one means that the link was lost. "
        f"{_of(worst, facts['pairs'], 'pairs')} "
        f"KL(real ‖ synthetic) over all pairs is {facts['kl']:.3f} nats on average."
    )
    worse = facts["worse_than_independence"]
    if worse:
        st.markdown(
            f"**Worse than no link at all: {len(worse)} pair{'s' if len(worse) > 1 else ''}.** Do not study "
            f"{'these' if len(worse) > 1 else 'it'} in the synthetic table. {_BEYOND}"
        )
        st.dataframe(
            [
                {"pair": " × ".join(p["columns"]), "synthetic": p["tv"], "independent": p["tv_independent"]}
                for p in worse[:100]
            ],
            hide_index=True,
            column_config={k: st.column_config.NumberColumn(format="%.3f") for k in ("synthetic", "independent")},
        )
    else:
        st.caption(f"No pair came out clearly worse than if its two columns had been independent. {_BEYOND}")


_BEYOND = (
    "Counted is a pair whose green bar is longer than its grey one by more than drawing the synthetic rows by lot can "
    f"explain and {TOLERANCE:g} besides; a smaller difference says nothing."
)


def _of(shown: Sequence[Any], every: Sequence[Any], what: str) -> str:
    return f"The {len(shown)} worst of {len(every)} {what} are shown." if len(shown) < len(every) else ""


def reasons(facts: Facts, *figures: str) -> None:
    """Why figures are not shown, each reason once."""
    for why in dict.fromkeys(facts[f"{f}_reason"] for f in figures if f"{f}_reason" in facts):
        st.caption(f"Not shown: {plain(why)}.")
