"""The fields of the Structure page: all that the drawing does, without a mouse, and what is said about its parts."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.errors import EspalierError
from core.graph.annotations import BELIEFS, MOST
from core.graph.implied import implied, without
from core.graph.paths import between
from pages.parts import drawing, implying, words
from pages.parts.session import Session
from pages.parts.words import names, plain

Of = tuple[str, ...]
"""A column, or an arrow (cause, effect)."""


def view(state: Session) -> None:
    """Which columns the drawing shows, and what it marks."""
    assert state.project is not None
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="bottom")
    key = f"view-{state.opened}"
    st.session_state[key] = drawing.view(state)
    with left:
        st.selectbox(
            f"Show (of {len(state.project.schema.columns)} columns)",
            list(drawing.VIEWS),
            key=key,
            on_change=lambda: state.drafts.update(view=st.session_state[key]),
            format_func=drawing.VIEWS.get,
        )
    with right:
        key_marks = f"marks-{state.opened}"
        st.session_state[key_marks] = drawing.marks(state)
        st.pills(
            "Mark on the drawing",
            list(drawing.MARKS),
            selection_mode="multi",
            wrap=True,
            key=key_marks,
            on_change=lambda: state.drafts.update(marks=list(st.session_state[key_marks])),
            format_func=drawing.MARKS.get,
        )
    if drawing.view(state) == "around":
        _around(state)


def _around(state: Session) -> None:
    """Which neighbourhood is shown: the search among all columns, and how far it reaches."""
    assert state.project is not None
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="bottom")
    find, steps = f"find-{state.opened}", f"steps-{state.opened}"
    st.session_state[find] = drawing.centre(state)
    left.selectbox(
        "Find a column (type a part of its name)",
        list(state.project.schema.names),
        key=find,
        on_change=_take_effect,
        args=(state, find),
    )
    st.session_state[steps] = state.drafts.get("steps", 1)
    right.segmented_control(
        "Arrows away",
        [1, 2, 3],
        key=steps,
        required=True,
        on_change=lambda: state.drafts.update(steps=st.session_state[steps]),
    )


def causes(state: Session) -> None:
    """Effect, causes of it, target: the same as the drawing, in boxes."""
    assert state.project is not None
    project, columns = state.project, list(state.project.schema.names)
    effect_key, target_key = f"effect-{state.opened}", f"target-structure-{state.opened}"
    st.session_state[effect_key] = drawing.centre(state)
    effect = st.selectbox(
        "Effect",
        columns,
        key=effect_key,
        on_change=_take_effect,
        args=(state, effect_key),
        format_func=lambda c: f"{c}  ({len(project.dag.parents(c))} causes)" if project.dag.parents(c) else c,
    )
    refused = state.drafts.get("causes", {}).get(effect)
    key = f"causes-{state.opened}-{effect}"
    st.session_state[key] = [c for c in (refused[0] if refused else project.dag.parents(effect)) if c in columns]
    st.multiselect(
        "Causes of it",
        [c for c in columns if c != effect],
        key=key,
        on_change=_take_causes,
        args=(state, effect, key),
        placeholder="Choose its direct causes",
        wrap=True,
    )
    if refused:
        st.error(f"{plain(refused[1])}. The graph is unchanged; your choice is still in the field.")
    st.session_state[target_key] = project.plan.target
    st.selectbox(
        "Target",
        columns,
        index=None,
        key=target_key,
        on_change=_take_target,
        args=(state, target_key),
        help="The column that somebody will want to predict from the table. PRISM spends most of the budget on it.",
        placeholder="The column to predict",
    )


def roles(state: Session) -> None:
    """The columns of each role."""
    assert state.project is not None
    columns = list(state.project.schema.names)
    for role, meaning in words.ROLES.items():
        key, given = f"role-{state.opened}-{role}", list(getattr(state.project.roles, role))
        st.session_state[key] = given
        st.multiselect(
            role.capitalize(),
            columns,
            help=meaning,
            wrap=True,
            key=key,
            on_change=_take_role,
            args=(state, role),
            max_selections=max(1, len(given)) if role == "outcome" else None,
            placeholder=meaning,
        )


def annotation(state: Session) -> None:
    """What is said about the selected arrow or column."""
    assert state.project is not None
    dag = state.project.dag
    options: list[Of] = [*dag.edges, *((c,) for c in state.project.schema.names)]
    columns, arrow = drawing.selected(state)
    chosen: Of | None = arrow or (columns[-1:] or None)
    key = f"annotate-{state.opened}"
    st.session_state[key] = chosen
    of = st.selectbox(
        "Arrow or column",
        options,
        index=None,
        key=key,
        on_change=_take_selected,
        args=(state, key),
        format_func=lambda o: " → ".join(o) + (f"  ({dag.annotation(*o).words})" if dag.annotation(*o) else ""),
        placeholder="Select one on the drawing, or here",
    )
    if of is None:
        st.caption("A note, how sure you are, and where you know it from: whoever reads the report sees them.")
        return
    said = dag.annotation(*of)
    if len(of) == 2:
        now = implied(dag, state.project.plan.target, state.project.roles)
        found = implying.erasing(without(dag, [(of[0], of[1])], state.project.plan.target, state.project.roles, now))
        st.markdown(f"**What if it were erased?** {plain(found)}")
    _said(state, of, "belief", said.belief or None, lambda k: st.pills(
        "How sure", BELIEFS, key=k, on_change=_take_said, args=(state, of, "belief", k),
        format_func=str.capitalize, help="Contested arrows are dashed, and the sets can be seen without them.",
    ))  # fmt: skip
    if len(of) == 2:
        _said(state, of, "may_break", said.may_break, lambda k: st.checkbox(
            "May break elsewhere", key=k, on_change=_take_said, args=(state, of, "may_break", k),
            help="It may not hold where the table will be used: another hospital, another year. The Plan page "
            "warns if the regime leans on it.",
        ))  # fmt: skip
    _said(state, of, "source", said.source, lambda k: st.text_input(
        "Source", key=k, on_change=_take_said, args=(state, of, "source", k), max_chars=MOST,
        placeholder="a study, a guideline, a colleague",
    ))  # fmt: skip
    _said(state, of, "note", said.note, lambda k: st.text_area(
        "Note", key=k, on_change=_take_said, args=(state, of, "note", k), max_chars=MOST, height=90,
    ))  # fmt: skip
    if len(of) == 2:
        st.button("Erase this arrow", on_click=_erase, args=(state, (of[0], of[1])), icon=":material/delete:")


def pair(state: Session) -> None:
    """What stands between two columns, on request."""
    assert state.project is not None
    project, names_ = state.project, list(state.project.schema.names)
    columns, arrow = drawing.selected(state)
    both = arrow or columns
    kept = state.drafts.get("pair", (None, None))
    if len(both) == 2:
        kept = state.drafts["pair"] = (both[0], both[1])
    left, right = st.columns(2)
    chosen = []
    for place, label, which in ((left, "One column", 0), (right, "Another column", 1)):
        key = f"pair-{state.opened}-{which}"
        st.session_state[key] = kept[which] if kept[which] in names_ else None
        chosen.append(
            place.selectbox(
                label, names_, index=None, key=key, placeholder="Choose", on_change=_take_pair, args=(state,)
            )
        )
    one, other = chosen
    if one is None or other is None or one == other:
        st.caption("Choose two different columns, or select two boxes on the drawing (Shift and click the second).")
        return
    found = between(project.dag.edges, one, other)
    st.markdown(
        f"- **Confounders**, causes of both: {names(found.confounders, 30, 'none')}.\n"
        f"- **Mediators**, on a causal path from one to the other: {names(found.mediators, 30, 'none')}.\n"
        f"- **Colliders**, effects of both: {names(found.colliders, 30, 'none')}. Looking only at some values of a "
        f"collider makes the two seem linked although they are not."
    )


def _said(state: Session, of: Of, what: str, value: object, widget: object) -> None:
    key = f"said-{state.opened}-{what}-{of!r}"
    st.session_state[key] = value
    widget(key)  # type: ignore[operator]


def _take_said(state: Session, of: Of, what: str, key: str) -> None:
    assert state.project is not None
    dag = state.project.dag
    value = st.session_state[key]
    state.redraw(dag.annotated(of, replace(dag.annotation(*of), **{what: "" if value is None else value})))


def _take_selected(state: Session, key: str) -> None:
    of = st.session_state[key]
    if of is None:
        drawing.select(state)
    else:
        drawing.select(state, of if len(of) == 1 else (), of if len(of) == 2 else None)


def _erase(state: Session, arrow: tuple[str, str]) -> None:
    assert state.project is not None
    state.redraw(state.project.dag.without([arrow]))
    drawing.say(state, f"{arrow[0]} → {arrow[1]} is erased. Undo brings it back.")


def _take_pair(state: Session) -> None:
    state.drafts["pair"] = tuple(st.session_state[f"pair-{state.opened}-{k}"] for k in (0, 1))
    drawing.select(state)


def _take_effect(state: Session, key: str) -> None:
    """Another effect, selected on the drawing too."""
    drawing.select(state, (st.session_state[key],))


def _take_causes(state: Session, effect: str, key: str) -> None:
    """Arrows into ``effect`` as chosen; a cycle is refused and what was chosen stays in the field."""
    chosen = st.session_state[key]
    refused = state.drafts.setdefault("causes", {})
    try:
        state.change_causes(effect, chosen)
        refused.pop(effect, None)
    except EspalierError as error:
        refused[effect] = (chosen, str(error))


def _take_role(state: Session, role: str) -> None:
    """A role as chosen; a column that had another role moves."""
    state.change_role(role, st.session_state[f"role-{state.opened}-{role}"])


def _take_target(state: Session, key: str) -> None:
    """The column that the table is for predicting."""
    state.redraw(target=st.session_state[key])
