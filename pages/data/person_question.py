"""The first question of the Data page: can one person have several rows? The answer fixes the unit of privacy."""

from __future__ import annotations

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.project.people import ROWS_KEPT, UNASKED, proposed
from espalier.core.tables.guessing import repeating
from espalier.pages.common import text
from espalier.pages.common.text import CONFIDENTIAL, name, names, plain
from espalier.pages.session.session import Session

NO, COLUMN, PROMISE = "no", "column", "promise"
ANSWERS = {
    NO: "No, one row per person",
    COLUMN: "Yes, and a column identifies the person",
    PROMISE: "Yes, but no column identifies the person",
}


def show(state: Session) -> None:
    """Show the question until it is answered and while the answer is being changed; otherwise show the answer and a
    button to change it.
    """
    if state.project.unit_open or state.drafts.answering:
        _ask(state)
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**Rows per person.** {text.people(state.project)}")
        unasked = state.project.one_row_per_person == UNASKED and state.project.plan.person is None
        st.button(
            "Answer the question" if unasked else "Change the answer",
            on_click=_reconsider,
            args=(state,),
            key=f"person-change-{state.opened}",
            icon=":material/edit:",
        )


def _reconsider(state: Session) -> None:
    state.drafts.answering = True


def _ask(state: Session) -> None:
    still_open = state.project.unit_open
    with st.container(border=True, key="person-question"):
        st.subheader("First: can one person have several rows?", anchor=False)
        st.markdown(
            "For example, a patient can have several visits, or a customer several orders. Differential privacy "
            "protects **all** rows of a person together, so Espalier needs to know how many rows one person can have. "
            + ("You can plan and release once you have answered this question." if still_open else "")
        )
        current = _current(state)
        chosen = st.radio(
            "Can one person have several rows?",
            list(ANSWERS),
            index=None if current is None else list(ANSWERS).index(current),
            format_func=ANSWERS.__getitem__,
            label_visibility="collapsed",
            key=f"person-answer-{state.opened}",
        )
        person, k = None, 1
        if chosen == NO:
            _one_row(state)
        elif chosen == COLUMN:
            person, k = _column(state)
        elif chosen == PROMISE:
            k = _promise(state)
        if "person" in state.trouble:
            st.error(plain(state.trouble["person"]))
        ready = chosen == NO or (chosen == COLUMN and person is not None) or (chosen == PROMISE and k > 1)
        with st.container(horizontal=True):
            st.button(
                "Use this answer",
                type="primary",
                disabled=not ready,
                on_click=_take,
                args=(state, chosen == NO, person, k),
                key=f"person-use-{state.opened}",
                icon=":material/check:",
            )
            if not still_open:
                st.button("Keep the old answer", on_click=_settle, args=(state,), key=f"person-keep-{state.opened}")


def _current(state: Session) -> str | None:
    """Return the answer in the project, or ``None`` if it has none."""
    if state.project.plan.person is not None:
        return COLUMN
    answer = state.project.one_row_per_person
    return {True: NO, False: PROMISE}.get(answer) if isinstance(answer, bool) else None


def _one_row(state: Session) -> None:
    """State that this answer is a promise, and name the columns that contradict it."""
    st.caption("This is your promise. Anyone with more rows is protected less than the report states.")
    if state.text is None:
        return
    if found := repeating(state.text, [c for c in _set_aside(state) if c in state.text.columns]):
        looks, its = ("looks like an identifier", "its") if len(found) == 1 else ("look like identifiers", "their")
        st.warning(
            f"{CONFIDENTIAL} {names(found)} {looks}, and some of {its} values occur in several rows. If such a column "
            "identifies people, change your answer to Yes."
        )


def _column(state: Session) -> tuple[str | None, int]:
    """Show the fields for the person column and the row limit, and return both values."""
    plan = state.project.plan
    aside = _set_aside(state)
    others = [c for c in (state.columns or state.project.schema.names) if c not in aside]
    options = [*aside, *others]
    if plan.person is not None and plan.person not in options:
        options.insert(0, plan.person)
    usual = plan.person or proposed(aside, others)
    left, right = st.columns(2)
    person = left.selectbox(
        "Column that identifies the person",
        options,
        index=None if usual is None else options.index(usual),
        placeholder="Choose a column",
        accept_new_options=not state.columns,
        key=f"person-column-{state.opened}",
        help="For example, a patient number. Espalier reads it to count each person's rows, and never releases it.",
    )
    k = right.number_input(
        "Keep at most this many rows of each person",
        1,
        10_000,
        plan.rows_per_person if plan.person else ROWS_KEPT,
        key=f"person-kept-{state.opened}",
        help="The rows to keep are chosen at random. A higher limit keeps more of the table, but needs more noise.",
    )
    if person is not None:
        st.caption(
            f"{name(person)} is used only to find each person's rows. All rows of a person are protected together."
        )
        if person in state.project.schema.names:
            st.caption(f"{name(person)} will be left out of the columns, so that it cannot be released.")
    return person, int(k)


def _promise(state: Session) -> int:
    """Ask for the largest number of rows of one person, which is a promise. Return 1 until a number is typed."""
    plan = state.project.plan
    k = st.number_input(
        "At most this many rows of one person",
        2,
        10_000,
        plan.rows_per_person if plan.person is None and plan.rows_per_person > 1 else None,
        placeholder="type a number",
        key=f"person-promised-{state.opened}",
        help="Derive this number from how the table was made; for example, one row a year for five years gives 5. "
        "A higher number needs more noise.",
    )
    st.caption(
        "This is your promise; nothing checks it. Anyone with more rows is protected less than the report states."
    )
    return int(k or 1)


def _set_aside(state: Session) -> list[str]:
    """Return columns that look like identifiers or are declared as identifiers."""
    schema = state.project.schema
    return [*(c.name for c in schema.left_out), *(c.name for c in schema.identifiers)]


def _take(state: Session, one_row: bool, person: str | None, rows_per_person: int) -> None:
    try:
        state.answer(one_row, person, rows_per_person)
    except EspalierError as error:
        state.trouble["person"] = str(error)
        return
    _settle(state)


def _settle(state: Session) -> None:
    state.drafts.answering = False
    state.trouble.pop("person", None)
