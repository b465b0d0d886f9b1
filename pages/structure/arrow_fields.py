"""Fields of the Structure page. They offer all actions of the board without a mouse, and show details."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.graph.annotations import BELIEFS, MOST
from espalier.core.graph.implied import implied, without
from espalier.core.graph.paths import between
from espalier.pages.board import drawing
from espalier.pages.common import text
from espalier.pages.common.fields import field, taken
from espalier.pages.common.text import called, names, plain
from espalier.pages.session.session import Session
from espalier.pages.structure import implications

Of = tuple[str, ...]
"""A column, or an arrow (cause, effect)."""


def view(state: Session) -> None:
    """Show the fields for the columns and marks on the drawing."""
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="bottom")
    shown, marks = field(state, "view", drawing.view(state)), field(state, "marks", drawing.marks(state))
    left.selectbox(
        f"Columns to show (of {len(state.project.schema.columns)})",
        list(drawing.VIEWS),
        list(drawing.VIEWS).index(shown.default),
        key=shown.key,
        on_change=_take_view,
        args=(state,),
        format_func=drawing.VIEWS.__getitem__,
    )
    right.pills(
        "Mark on the drawing",
        list(drawing.MARKS),
        selection_mode="multi",
        wrap=True,
        default=marks.default,
        key=marks.key,
        on_change=_take_marks,
        args=(state,),
        format_func=drawing.MARKS.__getitem__,
    )
    if drawing.view(state) == "around":
        _around(state)


def _around(state: Session) -> None:
    """Show fields for the neighbourhood: a search among all columns, and a radius."""
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="bottom")
    columns = list(state.project.schema.names)
    find, steps = field(state, "find", drawing.centre(state), columns), field(state, "steps", drawing.steps(state))
    left.selectbox(
        "Find a column (type part of its name)",
        columns,
        columns.index(find.default),
        format_func=partial(called, state.project.schema),
        key=find.key,
        on_change=_take_effect,
        args=(state, "find"),
    )
    right.segmented_control(
        "Radius (in arrows)",
        [1, 2, 3],
        default=steps.default,
        key=steps.key,
        required=True,
        on_change=_take_steps,
        args=(state,),
    )


def causes(state: Session) -> None:
    """Show effect, causes and target as fields with the same choices as the drawing."""
    project, columns = state.project, list(state.project.schema.names)
    shown = partial(called, project.schema)
    effect, target = drawing.centre(state), project.plan.target
    box = field(state, "effect", effect, columns)
    st.selectbox(
        "Effect",
        columns,
        columns.index(box.default),
        format_func=shown,
        key=box.key,
        on_change=_take_effect,
        args=(state, "effect"),
    )
    refused = state.drafts.board.refused.get(effect)
    drawn = [c for c in (refused[0] if refused else project.dag.parents(effect)) if c in columns]
    name = f"causes-{effect}"
    box = field(state, name, drawn, columns)
    st.multiselect(
        "Direct causes",
        [c for c in columns if c != effect],
        default=box.default,
        format_func=shown,
        key=box.key,
        on_change=_take_causes,
        args=(state, effect, name),
        placeholder="Choose its direct causes",
        wrap=True,
    )
    if refused:
        st.error(f"{plain(refused[1])} The graph is unchanged; your choice is still in the field.")
    box = field(state, "target", target, columns)
    st.selectbox(
        "Target",
        columns,
        None if box.default is None else columns.index(box.default),
        format_func=shown,
        key=box.key,
        on_change=_take_target,
        args=(state,),
        help="The column that will be predicted from the table. Some methods spend most of the budget on it.",
        placeholder="The column to predict",
    )


def roles(state: Session) -> None:
    """Show the columns of each role."""
    columns = list(state.project.schema.names)
    for role, meaning in text.ROLES.items():
        given = list(getattr(state.project.roles, role))
        if role == "outcome" and len(given) < 2:
            _outcome(state, columns, given[0] if given else None, meaning)
            continue
        box = field(state, f"role-{role}", given, columns)
        st.multiselect(
            role.capitalize(),
            columns,
            default=box.default,
            help=f"{meaning[:1].upper()}{meaning[1:]}.",
            wrap=True,
            format_func=partial(called, state.project.schema),
            key=box.key,
            on_change=_take_role,
            args=(state, role),
            placeholder=meaning,
        )


def _outcome(state: Session, columns: list[str], given: str | None, meaning: str) -> None:
    """Show the field for the outcome, which is one column unless the project file has several."""
    box = field(state, "role-outcome", given, columns)
    st.selectbox(
        "Outcome",
        columns,
        None if box.default is None else columns.index(box.default),
        help=f"{meaning[:1].upper()}{meaning[1:]}.",
        format_func=partial(called, state.project.schema),
        key=box.key,
        on_change=_take_role,
        args=(state, "outcome"),
        placeholder=meaning,
    )


def annotation(state: Session) -> None:
    """Show the details of the selected arrow or column."""
    dag = state.project.dag
    options: list[Of] = [*dag.edges, *((c,) for c in state.project.schema.names)]
    columns, arrow = drawing.selected(state)
    of: Of | None = arrow or (columns[-1:] or None)
    box = field(state, "annotate", of, options)
    st.selectbox(
        "Arrow or column",
        options,
        None if box.default is None else options.index(box.default),
        key=box.key,
        on_change=_take_selected,
        args=(state,),
        format_func=lambda of: called(state.project.schema, *of),
        placeholder="Select one on the drawing, or here",
        help="State how sure you are, and your source. Readers of the report see both.",
    )
    if of is None:
        return
    if len(of) == 2:
        now = implied(dag, state.project.plan.target, state.project.roles)
        rest = without(dag, [(of[0], of[1])], state.project.plan.target, state.project.roles, now)
        found = implications.erasing(rest)
        st.markdown(f"**If this arrow were erased:** {plain(found)}")
    remark = dag.annotation(*of)
    box = field(state, f"belief-{of!r}", remark.belief or None)
    st.pills(
        "Confidence",
        BELIEFS,
        default=box.default,
        key=box.key,
        on_change=_take_remark,
        args=(state, of, "belief"),
        format_func=str.capitalize,
        help="Contested arrows are dashed. The sets of causes can also be computed without them.",
    )
    if len(of) == 2:
        box = field(state, f"may_break-{of!r}", remark.may_break)
        st.checkbox(
            "May break elsewhere",
            box.default,
            key=box.key,
            on_change=_take_remark,
            args=(state, of, "may_break"),
            help="The arrow may not be valid where the table will be used, for example in another hospital or another "
            "year. The Plan page warns if the regime depends on this arrow.",
        )
    box = field(state, f"source-{of!r}", remark.source)
    st.text_input(
        "Source",
        box.default,
        key=box.key,
        on_change=_take_remark,
        args=(state, of, "source"),
        max_chars=MOST,
        placeholder="a study, a guideline, a colleague",
    )
    box = field(state, f"note-{of!r}", remark.note)
    st.text_area(
        "Note",
        box.default,
        key=box.key,
        on_change=_take_remark,
        args=(state, of, "note"),
        max_chars=MOST,
        height=90,
    )
    if len(of) == 2:
        st.button("Erase this arrow", on_click=_erase, args=(state, (of[0], of[1])), icon=":material/delete:")


def pair(state: Session) -> None:
    """Show the paths between two columns, on request."""
    project, columns = state.project, list(state.project.schema.names)
    chosen, arrow = drawing.selected(state)
    both = arrow or chosen
    if len(both) == 2:
        state.drafts.board.pair = [both[0], both[1]]
    kept = [n if n in columns else None for n in state.drafts.board.pair]
    for place, label, which in zip(st.columns(2), ("First column", "Second column"), (0, 1), strict=True):
        box = field(state, f"pair-{which}", kept[which], columns)
        place.selectbox(
            label,
            columns,
            None if box.default is None else columns.index(box.default),
            format_func=partial(called, project.schema),
            key=box.key,
            placeholder="Choose",
            on_change=_take_pair,
            args=(state, which, kept),
            help="You can also select two boxes on the drawing: click one, then Shift-click the other.",
        )
    one, other = kept
    if one is None or other is None or one == other:
        return
    found = between(project.dag.links, one, other)
    listed = partial(names, cap=30, nothing="none", schema=project.schema)
    st.markdown(
        f"- **Confounders**, causes of both: {listed(found.confounders)}.\n- **Mediators**, on a causal path from "
        f"one to the other: {listed(found.mediators)}.\n- **Colliders**, effects of both: "
        f"{listed(found.colliders)}. Selecting rows by a collider makes the two columns seem linked although they "
        "are not."
    )


def _take_view(state: Session) -> None:
    state.drafts.board.view = taken(state, "view")


def _take_marks(state: Session) -> None:
    state.drafts.board.marks = taken(state, "marks")


def _take_steps(state: Session) -> None:
    state.drafts.board.steps = taken(state, "steps")


def _take_remark(state: Session, of: Of, what: str) -> None:
    dag, value = state.project.dag, taken(state, f"{what}-{of!r}")
    changes: dict[str, Any] = {what: "" if value is None else value}
    state.editor.redraw(dag.annotated(of, replace(dag.annotation(*of), **changes)))


def _take_selected(state: Session) -> None:
    """Select the chosen column or arrow. An unchanged field must not narrow the selection."""
    shown, of = state.drafts.fields["annotate"].shown, taken(state, "annotate")
    if of == shown:
        return
    if of is None:
        drawing.select(state)
    else:
        drawing.select(state, of if len(of) == 1 else (), of if len(of) == 2 else None)


def _erase(state: Session, arrow: tuple[str, str]) -> None:
    state.editor.redraw(state.project.dag.without([arrow]))
    drawing.say(state, f"{arrow[0]} → {arrow[1]} is erased. Undo restores it.")


def _take_pair(state: Session, which: int, kept: list[str | None]) -> None:
    shown, chosen = state.drafts.fields[f"pair-{which}"].shown, taken(state, f"pair-{which}")
    if chosen == shown:
        return
    kept[which] = chosen
    state.drafts.board.pair = kept
    drawing.select(state)


def _take_effect(state: Session, name: str) -> None:
    """Select another effect, here and on the drawing. Do nothing if it is already selected."""
    chosen = taken(state, name)
    if chosen != drawing.centre(state):
        drawing.select(state, (chosen,))


def _take_causes(state: Session, effect: str, name: str) -> None:
    """Draw the chosen arrows into ``effect``. A cycle is refused, but the choice stays in the field."""
    chosen = taken(state, name)
    refused = state.drafts.board.refused
    try:
        state.editor.change_causes(effect, chosen)
        refused.pop(effect, None)
    except EspalierError as error:
        refused[effect] = (chosen, str(error))


def _take_role(state: Session, role: str) -> None:
    """Set a role as chosen. A column that had another role loses that role."""
    chosen = taken(state, f"role-{role}")
    state.editor.change_role(role, chosen if isinstance(chosen, list) else [] if chosen is None else [chosen])


def _take_target(state: Session) -> None:
    """Set the column to predict from the table."""
    state.editor.redraw(target=taken(state, "target"))
