"""The review of what was guessed: one column at a time, shown whole before it can be confirmed.

A description counts as seen once the review has shown it to its end. Only what was seen can be confirmed, and a change
to a description makes it unseen again.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import streamlit as st

from espalier.core.project.schema import Column, LeftOut
from espalier.core.tables.guessing import possible_marks, reasons
from espalier.pages.common.text import CONFIDENTIAL, name, names, plain
from espalier.pages.data.schema_rows import SchemaDraft
from espalier.pages.session.session import Session

CHIPS = 200
"""Categories that are shown at a time."""
_STRIP = """<style>
.strip { display: flex; flex-wrap: wrap; list-style: none; margin: 0 !important; padding: 0 !important; gap: 2px 0; }
.strip li, .chips li { margin: 0 !important; }
.strip li { flex: 1 1 4.2rem; border-top: .7rem solid #3b8a63; border-left: 2px solid; padding: .15rem .2rem 0 .3rem;
  font-size: .85rem; white-space: nowrap; }
.strip li:nth-child(even) { border-top-color: #93c99a; }
.chips { display: flex; flex-wrap: wrap; list-style: none; margin: 0 !important; padding: 0 !important; gap: .3rem; }
.chips li { border: 1px solid; border-radius: 1rem; padding: .05rem .6rem; font-size: .9rem; white-space: pre-wrap;
  overflow-wrap: anywhere; }
</style>"""


def show(state: Session) -> None:
    """Show the columns that a guess left out, then the guessed columns one by one."""
    draft = state.schema_draft
    _left_out(state, draft)
    columns = draft.to_review()
    if not columns:
        return
    open_ = [c for c in columns if c.guessed]
    done = len(columns) - len(open_)
    if not open_:
        if draft.seen:
            st.success(f"Reviewed: all {done} guessed columns are confirmed." if done > 1 else "Reviewed: confirmed.")
        return
    with st.container(border=True, key="review"):
        st.subheader("Review what was guessed, one column at a time", anchor=False)
        waiting = sum(draft.seen.get(c.name) == c for c in open_)
        told = f"{done} of {len(columns)} columns confirmed" + (f", {waiting} more seen" if waiting else "")
        st.progress(done / len(columns), text=told)
        by_name = {c.name: c for c in columns}
        if draft.reviewed not in by_name:
            draft.reviewed = open_[0].name
        _choose(state, draft, columns)
        _card(state, draft, by_name[draft.reviewed], columns)


def _left_out(state: Session, draft: SchemaDraft) -> None:
    out: list[LeftOut] = [c for c in state.project.schema.left_out if not c.confirmed]
    if not out:
        return
    with st.container(border=True):
        one = len(out) == 1
        st.markdown(
            f"**{'One column was' if one else f'{len(out)} columns were'} left out by a guess:** "
            f"{names((c.name for c in out), len(out))}  \n"
            + (
                "Its values hardly repeat, so it looks like an identifier. Leave it out if you would have done so "
                "without looking. "
                if one
                else "Their values hardly repeat, so they look like identifiers. Leave them out if you would have done "
                "so without looking. "
            )
            + "Otherwise tick **Use** in the table below. A release waits for your answer."
        )
        st.button(
            "Leave it out" if one else f"Leave these {len(out)} out",
            on_click=draft.confirm_left_out,
            icon=":material/check:",
            key=f"confirm-left-out-{state.opened}",
        )


def _choose(state: Session, draft: SchemaDraft, columns: Sequence[Column]) -> None:
    """Which column is shown."""
    key = f"review-column-{state.opened}"
    st.session_state[key] = draft.reviewed
    st.selectbox("Column", [c.name for c in columns], key=key, on_change=lambda: _go(draft, st.session_state[key]))


def _go(draft: SchemaDraft, column: str) -> None:
    draft.reviewed = column


def _card(state: Session, draft: SchemaDraft, column: Column, columns: Sequence[Column]) -> None:
    """One column: its values, why they were guessed, what becomes public, and the answers."""
    cells = state.text.columns.get(column.name) if state.text is not None else None
    place = [c.name for c in columns].index(column.name)
    st.markdown(f"#### {plain(column.name)}  \n:small[Column {place + 1} of {len(columns)}] {CONFIDENTIAL}")
    left = _values(state, draft, column)
    marks = [m for m in possible_marks(cells) if column.guessed] if cells is not None else []
    marks = [m for m in marks if m not in column.missing_marks and m not in draft.not_marks.get(column.name, ())]
    if not left and not marks:
        draft.seen[column.name] = column
    if cells is not None and column.guessed:
        st.markdown("**Why this guess.** " + " ".join(reasons(cells, column)))
    if column.guessed:
        st.markdown(f"**If you confirm,** anybody may know: {_public(column)}.")
        st.markdown(
            "A rare category or the highest age can give a person away. Confirm only what you would have written "
            "without looking, from a code book or a form. Otherwise change it in the table below."
        )
    for mark in marks:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"Does {name(mark)} mean that the value is **missing**?")
            for label, act, given in (
                ("Yes, missing", draft.means_missing, (column.name, mark, cells)),
                ("No, a value", draft.is_value, (column.name, mark)),
            ):
                st.button(label, key=f"mark-{state.opened}-{column.name}-{mark}-{label}", on_click=act, args=given)
    _answers(state, draft, columns, place, waits=bool(left or marks))


def _values(state: Session, draft: SchemaDraft, column: Column) -> int:
    """Bins as a strip, categories as chips; returns how many are still to be shown."""
    if column.kind == "numeric":
        what, shown, left = "strip", column.labels, 0
    else:
        # A group lists its values, so that a word hides nothing of the table.
        inside = dict(column.groups)
        texts = [t + (f" = {', '.join(inside[t])}" if t in inside else "") for t in column.categories]
        end = CHIPS * (1 + draft.pages.get(column.name, 0))
        what, shown, left = "chips", (*texts[:end], *column.labels[column.values :]), max(0, len(texts) - end)
    count = f"{column.values:,} {'bins' if column.kind == 'numeric' else 'categories'}"
    items = "".join(f"<li>{escape(text)}</li>" for text in shown)
    st.html(f'{_STRIP}<ul class="{what}" aria-label="{count}">{items}</ul>')
    st.caption(count + (f", {left:,} not shown yet" if left else ""))
    if left:
        st.button(
            f"Show {min(left, CHIPS)} more",
            key=f"review-more-{state.opened}",
            on_click=lambda: draft.pages.update({column.name: draft.pages.get(column.name, 0) + 1}),
        )
    return left


def _public(column: Column) -> str:
    """What a confirmed guess tells everybody."""
    parts = []
    if "categories" in column.guessed:
        parts.append(f"that {'these' if column.values > 1 else 'this'} {column.values:,} categories occur")
    if "edges" in column.guessed:
        ends = column.labels[0].split(" – ")[0], column.labels[column.values - 1].split(" – ")[-1]
        parts.append(f"that values run from {plain(ends[0])} to {plain(ends[1])}")
    if "integer" in column.guessed:
        parts.append("that they are whole numbers" if column.integer else "that they are not all whole numbers")
    if "missing" in column.guessed:
        parts.append("that cells may be empty" if column.missing else "that no cell is empty")
    return ", ".join(parts) or f"that it is {column.kind}"


def _answers(state: Session, draft: SchemaDraft, columns: Sequence[Column], place: int, waits: bool) -> None:
    """Confirm and next, on and back without confirming, leave out, and confirm all that was seen."""
    column = columns[place]
    later = [*columns[place + 1 :], *columns[:place]]
    following = next((c.name for c in later if c.guessed), None)

    def confirm() -> None:
        draft.confirm(column.name)
        draft.reviewed = following or column.name

    seen = [c.name for c in columns if c.guessed and draft.seen.get(c.name) == c and c.name != column.name]
    ready = not waits and column.guessed
    seen += [column.name] * bool(ready)
    with st.container(horizontal=True):
        st.button(
            "Confirm and next" if following else "Confirm",
            type="primary",
            disabled=not ready,
            on_click=confirm,
            icon=":material/check:",
            key=f"review-confirm-{state.opened}",
        )
        steps = {"Back": columns[place - 1].name, "Not now, next": columns[(place + 1) % len(columns)].name}
        for label, other in steps.items():
            st.button(
                label,
                disabled=len(columns) == 1,
                on_click=_go,
                args=(draft, other),
                key=f"review-{label}-{state.opened}",
            )
        st.button(
            "Leave this column out",
            on_click=draft.leave_out,
            args=(column.name,),
            disabled=len(state.project.schema.columns) == 1,
            key=f"review-out-{state.opened}",
        )
        if len(seen) > 1:
            st.button(
                f"Confirm the {len(seen)} columns you have seen",
                on_click=draft.confirm,
                args=seen,
                key=f"review-seen-{state.opened}",
            )
    if waits and column.guessed:
        st.caption("Confirming waits until every category has been shown and every question is answered.")
