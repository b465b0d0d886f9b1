"""Editor of a study's planned analyses: wanted half-widths, assumptions, and promised half-widths."""

from __future__ import annotations

from typing import Any

import streamlit as st

from espalier.core.analysis.planned_analyses import sentence
from espalier.core.errors import EspalierError
from espalier.core.planning.preview import Preview
from espalier.core.project.analyses import PlannedAnalysis
from espalier.core.project.schema import ToBuy
from espalier.pages.common.text import plain
from espalier.pages.session.session import Session

_ABOUT = (
    "List what the study will estimate, and how wide each 95 % interval may be. The plan then promises half-widths "
    "from your assumptions alone, and names the ε that reaches the wanted ones. The counts of exactly these rows are "
    "bought."
)
_KINDS = {"proportion": "proportion", "difference": "difference of shares", "odds_ratio": "odds ratio"}


def show(state: Session) -> Any:
    """Show the analyses, the builder and the share. Return the place for a conflict."""
    project = state.project
    with st.expander("Analyses that the study plans", expanded=bool(project.analyses)):
        st.markdown(_ABOUT)
        for i, one in enumerate(project.analyses):
            text, button = st.columns([7, 1], vertical_alignment="center")
            wanted = "" if one.half_width is None else f", ± {one.half_width:g}"
            where = " ".join(filter(None, (one.event, one.group, one.among)))
            text.markdown(f"**{plain(one.name)}**: {_KINDS[one.kind]} of {plain(where)}{wanted}")
            button.button(
                "Remove",
                key=f"remove-analysis-{i}-{state.opened}",
                icon=":material/close:",
                type="tertiary",
                on_click=_take,
                args=(state, (*project.analyses[:i], *project.analyses[i + 1 :])),
                help=f"Leave out {one.name}",
            )
        _build(state)
        if project.analyses:
            key = f"analysis-share-{state.opened}"
            st.session_state[key] = round(100 * project.plan.analysis_share)

            def change() -> None:
                state.editor.change_plan(analysis_share=st.session_state[key] / 100)

            st.slider(
                "Share of the budget for analyses (%)",
                0,
                90,
                key=key,
                on_change=change,
                help="The method gets the rest. The analyses divide the share by their needs.",
            )
        spot = st.container()
        if reason := state.trouble.get("analyses"):
            spot.error(plain(reason))
    return spot


def _build(state: Session) -> None:
    schema, at = state.project.schema, f"{state.opened}-{len(state.project.analyses)}"
    columns = [c for c in schema.columns if not isinstance(c, ToBuy) and c.values > 1]
    kind = st.selectbox("Figure", list(_KINDS), format_func=_KINDS.__getitem__, key=f"analysis-kind-{at}")
    events = [f"{c.name}={value}" for c in columns for value in c.value_names]
    event = st.selectbox("Event", events, index=None, key=f"analysis-event-{at}", placeholder="column=value")
    if event is None:
        return
    asked: dict[str, Any] = {"kind": kind, "event": event}
    shares = 1
    if kind != "proportion":
        group = st.selectbox("Groups of", [c.name for c in columns], index=None, key=f"analysis-group-{at}")
        if group is None:
            return
        names, shares = schema[group].value_names, 2
        one = st.selectbox("Group", names, len(names) - 1, key=f"analysis-one-{group}-{at}")
        other = st.selectbox("Compared with", names, 0, key=f"analysis-other-{group}-{at}")
        asked["group"] = f"{group}={one}:{other}"
    assumed = []
    for i in range(shares):
        label = f"Assumed share of the event in group {i + 1}" if shares > 1 else "Assumed share of the event"
        assumed.append(st.number_input(label, 0.01, 0.99, 0.5, key=f"analysis-assumed-{i}-{at}"))
    asked["assume"] = {"shares": assumed}
    asked["half_width"] = st.number_input(
        "Wanted half-width", 0.001, 10.0, 0.05, key=f"analysis-width-{at}", help="For an odds ratio, on the log scale."
    )
    called = st.text_input("Name", key=f"analysis-name-{at}", placeholder="a short name for the report")
    asked["name"] = called.strip()
    st.button(
        "Add the analysis",
        on_click=_add,
        args=(state, asked),
        disabled=not asked["name"],
        key=f"analysis-add-{at}",
        icon=":material/add:",
    )


def _add(state: Session, asked: dict[str, Any]) -> None:
    try:
        _take(state, (*state.project.analyses, PlannedAnalysis.from_json(asked)))
    except EspalierError as error:
        state.trouble["analyses"] = str(error)


def _take(state: Session, listed: tuple[PlannedAnalysis, ...]) -> None:
    share = state.project.plan.analysis_share or (0.2 if listed else 0.0)
    try:
        state.editor.change_analyses(listed, share if listed else 0.0)
        state.trouble.pop("analyses", None)
    except EspalierError as error:
        state.trouble["analyses"] = str(error)


def planned(seen: Preview) -> None:
    """Show the promised half-width of each analysis, before any row is read."""
    if not seen.analyses:
        return
    st.subheader("Promised half-widths of your analyses", anchor=False)
    st.markdown("\n".join(f"- {plain(sentence(one.plan()))}" for one in seen.analyses))
    if (reaches := seen.analyses_epsilon) is not None:
        st.markdown(f"ε = {reaches:.3g} reaches every wanted half-width, with these shares of the budget.")
    st.caption("If the assumptions hold, 9 of 10 releases stay within the promised half-width of a figure.")
