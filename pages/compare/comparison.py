"""Parts of the Compare page: the choice of plans, the test table, and the figures."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import streamlit as st

from espalier.core.compare.plans import FIGURES, Outcome, best, compare
from espalier.core.compare.price import price
from espalier.core.errors import EspalierError
from espalier.core.methods import DEFAULT, METHODS, keeps_causes_only, method_of, offered
from espalier.core.project.file import Project
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table
from espalier.pages.common import charts, shell
from espalier.pages.common.text import plain
from espalier.pages.data.samples import FOLDER, OTHER
from espalier.pages.glossary.terms import term
from espalier.pages.release import payment
from espalier.pages.session.session import Session

MOST = 8
NO_FENCE = ", no fence"
AWAY = "the other hospital"
BESIDE = 5
"""Up to this number of plans, small multiples are shown two to a row."""
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
HEADS = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "r2": "R²",
    "gap": "gap",
    "cmi": "CMI",
    "one_way_tv": "error, columns",
    "two_way_tv": "error, pairs",
}
"""Short column headings, so that the table needs no horizontal scrolling; each has a tooltip."""
PARETO = {"gap": "AUC against the gap between groups", "two_way_tv": "AUC against the error of pairs"}


def rehearsal() -> None:
    """Warn that this page spends no budget and is only for public tables."""
    st.warning(
        "**Confidential, and not a release.** Each plan runs and is judged on the rows of the open table. Use an "
        "example or a public table: nothing is recorded in a ledger or kept for sharing.",
        icon=":material/science:",
    )


def allowed(state: Session) -> bool:
    """Return whether a usable table is open. If not, show the next step."""
    if state.relation is not None:
        st.info(
            "Comparing plans makes many releases from a table in memory, but this table is read in place. Open a "
            "file with fewer rows on the Data page."
        )
        shell.link_to("Data", "Go to Data")
        return False
    if state.text is None:
        st.info("No table is open. Open an example on Home, or a public table on the Data page.")
        shell.link_to("Home", "Open an example")
        return False
    if state.sample:
        return True
    return st.checkbox(
        "This table is public, or comes from a release: no one in it needs protection",
        key=f"compare-public-{state.opened}",
    )


def plans(state: Session, project: Project) -> dict[str, Project]:
    """Return the plans to compare: the open plan, and variants of its method, ε and fence."""
    plan = project.plan
    left, right = st.columns(2)
    methods = left.multiselect(
        "Methods",
        offered(project),
        [n for n in dict.fromkeys((plan.method, DEFAULT)) if n in offered(project)],
        format_func=lambda n: METHODS[n].title,
        key=f"compare-methods-{state.opened}",
    )
    known = plan.epsilon if plan.epsilon in EPSILONS else 1.0
    budgets = right.multiselect("ε", EPSILONS, [known], format_func="{:g}".format, key=f"compare-eps-{state.opened}")
    unfenced = st.toggle("Also without the fence", key=f"compare-fence-{state.opened}")
    out: dict[str, Project] = {}
    fenced = False
    for name in methods:
        for epsilon in budgets:
            fair = plan.fair if METHODS[name].capabilities.fence == "optional" else None
            one = project.with_plan(method=name, epsilon=epsilon, fair=fair)
            out[f"{METHODS[name].title}, ε = {epsilon:g}"] = one
            if unfenced and method_of(one.plan).fenced(one.plan):
                fenced = True
                free = one.with_plan(**method_of(one.plan).without_fence)
                out[f"{METHODS[name].title}, ε = {epsilon:g}{NO_FENCE}"] = free
    if unfenced and out and not fenced:
        st.caption("None of these plans has a fence to leave out.")
    if len(out) > MOST:
        st.error(f"That makes {len(out)} plans; choose at most {MOST}.")
        return {}
    return out


def tested_on(state: Session, project: Project) -> Table | None:
    """Return the second table for judging plans: another hospital of the sample or an upload, otherwise None."""
    places = ["this table", *([AWAY] if state.sample == "readmission" else []), "another table (upload)"]
    start = 1 if AWAY in places and keeps_causes_only(project.plan) else 0
    where = st.selectbox("Tested on", places, start, key=f"compare-where-{state.opened}")
    if where == AWAY:
        return Table.encode(read_table(FOLDER / OTHER, OTHER), project.schema)
    if where == places[-1]:
        file = st.file_uploader(
            "A table from another place or year, with the same columns",
            type=["csv", "gz", "parquet", "xlsx"],
            key=f"compare-other-{state.opened}",
        )
        if file is not None and st.checkbox(
            "That table is public too, or comes from a release", key=f"compare-other-public-{state.opened}"
        ):
            try:
                return Table.encode(read_table(file.getvalue(), file.name), project.schema)
            except EspalierError as error:
                st.error(plain(error))
    return None


def start_button(state: Session, chosen: Mapping[str, Project], tested: Table | None = None) -> None:
    """Start the comparison as a job that shows its progress and can be cancelled.

    If a ledger knows one of the tables, the ledger records the comparison before anything is computed.
    """
    record, invented = payment.diagnosed(state, None, "the Compare page"), bool(state.sample)

    def work(report: Any) -> list[Outcome]:
        table = state.table()
        record([one for one in (None if invented else table, tested) if one is not None])
        return compare(chosen, table, holdout=tested, report=report)

    def done(into: Session, found: list[Outcome]) -> None:
        into.compared = found

    if reason := state.trouble.get("compare"):
        st.error(f"The comparison did not finish: {plain(reason)}")
    if st.button(
        f"Compare these {len(chosen)} plans" if len(chosen) > 1 else "Try this plan",
        type="primary",
        disabled=not chosen,
        icon=":material/balance:",
        key="compare-go",
    ):
        try:
            state.start("compare", work, done)
        except EspalierError as error:
            st.error(plain(error))
        st.rerun()


def results(state: Session, plans_by_name: Mapping[str, Project]) -> None:
    """Show the figures: a table, small multiples, and the best plans."""
    found: list[Outcome] = state.compared
    if not found:
        return
    numbered = list(enumerate(found, 1))
    st.subheader("Plans side by side", anchor=False)
    known = [key for key in FIGURES if any(o.figures[key] is not None for o in found)]
    st.dataframe(
        [{k: v for k, v in o.row().items() if k != "method" and (k not in FIGURES or k in known)} for o in found],
        hide_index=True,
        width="stretch",
        column_config={
            "plan": st.column_config.TextColumn(width=200),
            "ε": None,
            "ρ": st.column_config.NumberColumn(format="%.4f", help="What the plan would spend"),
            **{
                key: st.column_config.NumberColumn(HEADS[key], format="%.3f", help=what[:1].upper() + what[1:])
                for key, what in FIGURES.items()
            },
        },
    )
    for said in _prices(found):
        st.markdown(f"**{plain(said)}**")
    _over_epsilon(found, known)
    places = itertools.cycle(st.columns(2 if len(found) <= BESIDE else 1))
    for key in known:
        what, values = FIGURES[key], [o.figures[key] for o in found]
        whiskers = [o.intervals.get(key) for o in found]
        ends = {what: whiskers} if any(whiskers) else None
        figure = charts.bars([o.name for o in found], {what: values}, "", (charts.SYNTHETIC,), whiskers=ends)
        with next(places):
            st.markdown(f"**{what[:1].upper()}{what[1:]}**")
            charts.show(charts.wrapped(figure, [o.name for o in found]), f"compare-{key}", what)
    if len(found) > 1:
        numbers = "; ".join(f"**{i}** is {plain(o.name)}" for i, o in numbered)
        st.markdown(f"Plans in the charts below: {numbers}.")
    places = itertools.cycle(st.columns(2))
    for key, what in PARETO.items():
        if len(found) > 1 and (front := best(found, key)):
            listed = " and ".join(str(i) for i, o in numbered if o.name in front)
            called = f"plan {listed}" if len(front) == 1 else f"any of plans {listed}"
            points = [(o.name, x, y, o.name in front) for o in found for x, y in [(o.figures[key], o.figures["auc"])]]
            with next(places):
                st.markdown(
                    f"**{what[:1].upper()}{what[1:]}:** no other plan here is better than {called} on both figures."
                )
                charts.show(charts.front(points, FIGURES[key], FIGURES["auc"]), f"compare-front-{key}", what)
    st.markdown(
        f"Models are judged by {term('TSTR')}. An {term('AUC')} of 0.5 is a coin toss, and 1 is perfect. The "
        "lines on the bars are 95 % intervals that cover the choice of test rows only; another draw of the noise "
        "would also change the figures."
    )
    if "cmi" in known:
        st.markdown(
            f"{term('CMI')} measures how much the outcome reveals about protected columns once the admissible ones are "
            "known. 0 means none. Drawing rows at random adds a little, even if the model's CMI is exactly 0."
        )
    if any(keeps_causes_only(p.plan) for p in plans_by_name.values()):
        st.info(
            "Unless another table is chosen under *Tested on*, these figures refer to the open table. A plan with "
            "the causal regime keeps direct causes only: it may predict worse here and better elsewhere. "
            "To see how a release performs elsewhere, test it on the Diagnostics page with a table from another place."
        )
    names_of = [o.name for o in found if o.name in plans_by_name]
    chosen = st.selectbox("Use this plan", names_of, index=None, key="compare-take", placeholder="Choose one")
    why = st.text_input("Reason for this choice (shown in the report)", key="compare-why", max_chars=400)
    st.button(
        "Use it",
        key="compare-use",
        disabled=chosen is None,
        on_click=_take,
        args=(state, found, chosen, plans_by_name, why),
    )


def _prices(found: list[Outcome]) -> list[str]:
    """Return the cost of the fence for each plan that was also tried without a fence."""
    by_name = {o.name: o for o in found}
    out = []
    for name, fenced in by_name.items():
        free = by_name.get(name + NO_FENCE)
        if free is not None:
            figures = [(free.figures[key], fenced.figures[key]) for key in ("gap", "accuracy")]
            out.append(price(figures[0], figures[1], "without it", f"{name}: with the fence"))
    return [said for said in out if said]


def _over_epsilon(found: list[Outcome], known: list[str]) -> None:
    """Draw a small chart of plans over ε, with intervals if available."""
    key = next((key for key in ("auc", "accuracy", "r2", "two_way_tv") if key in known), None)
    if key is None or len({o.epsilon for o in found}) < 2:
        return
    lines: dict[str, list[tuple[float, float, tuple[float, float] | None]]] = {}
    for o in found:
        if (value := o.figures[key]) is not None:
            label = o.method + (", no fence" if o.name.endswith(NO_FENCE) else "")
            lines.setdefault(label, []).append((o.epsilon, value, o.intervals.get(key)))
    st.markdown(f"**{FIGURES[key][:1].upper()}{FIGURES[key][1:]}, by ε**")
    charts.show(charts.by_epsilon(lines, FIGURES[key]), "compare-epsilon", f"{FIGURES[key]} of each method by ε")


def _take(state: Session, found: list[Outcome], chosen: str, plans_by_name: Mapping[str, Project], why: str) -> None:
    """Continue with the chosen plan. The report states the reason and lists the compared plans. It omits their figures,
    because no budget paid for them and nothing proves that the tables were public.
    """
    reasons = {"chosen_because": why.strip(), "compared_with": "; ".join(o.name for o in found)}
    state.editor.sign({**state.project.signoff, **reasons})
    state.take_plan(plans_by_name[chosen].plan)
