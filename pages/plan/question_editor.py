"""Editor for a project's questions and counts, built from lists. No text is ever executed."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from espalier.core.analysis.answer_text import text_with_label
from espalier.core.blurring.registry import is_blurring
from espalier.core.errors import EspalierError
from espalier.core.methods import method_of
from espalier.core.planning.preview import Preview
from espalier.core.project.question_list import QuestionList, in_words, read_questions
from espalier.core.project.schema import Column
from espalier.pages.common import shell
from espalier.pages.common.text import plain
from espalier.pages.plan.listed import line, share
from espalier.pages.session.session import Session

SHOWN = 50
"""Maximum number of questions listed on the page; a file may contain thousands."""
_ABOUT = (
    "What will your reports ask of the table? **A question** asks how many rows match a description; **a count** "
    "states how many of several conditions each row meets. Methods reproduce pairs of columns well, but counts over "
    "whole rows badly unless these counts are measured. You can give questions and counts a share of the budget."
)


def show(state: Session) -> Any:
    """Show the questions, the builder and the share. Return the place where a conflict is shown."""
    folder = shell.folded(
        "Questions that reports will ask", partial(_fields, state), bool(state.project.question_list), "ask-"
    )
    spot = folder.container()
    if reason := state.trouble.get("questions"):
        spot.error(plain(reason))
    return spot


def _fields(state: Session) -> None:
    listed, plan = state.project.question_list, state.project.plan
    st.markdown(_ABOUT)
    _listed(state, listed)
    _build(state, listed)
    _file(state, listed)
    kind = "no" if is_blurring(plan) else method_of(plan).capabilities.questions
    in_the_way = kind == "no" and plan.question_share > 0  # the field stays, so that the user can reset the share
    if listed and (kind == "beside" or in_the_way):
        share(
            state,
            "question_share",
            "Share of the budget for questions and counts (%)",
            "The method gets the rest. This helps if the table has many rows for its ε; with few rows and a small "
            "ε, splitting the budget makes everything worse.",
        )


def _listed(state: Session, listed: QuestionList) -> None:
    for kind, entries in (("counts", listed.counts), ("questions", listed.questions)):
        for i, entry in enumerate(entries[:SHOWN]):
            up_to = f" (counts up to {entry['up_to']})" if "up_to" in entry else ""
            line(
                f"**{plain(entry['name'])}**: {plain(in_words(entry))}{up_to}",
                f"{kind}-{i}-{state.opened}",
                f"Remove the {kind[:-1]} {entry['name']}",
                *(_remove, state, kind, i),
            )
        if len(entries) > SHOWN:
            st.caption(f"… and {len(entries) - SHOWN:,} more {kind}")


def _remove(state: Session, kind: str, i: int) -> None:
    listed = state.project.question_list
    left = tuple(e for j, e in enumerate(getattr(listed, kind)) if j != i)
    _take(state, QuestionList(listed.questions, left) if kind == "counts" else QuestionList(left, listed.counts))


def _build(state: Session, listed: QuestionList) -> None:
    """Show fields that form a sentence: the kind, the columns, their values and a name."""
    schema, at = state.project.schema, f"{state.opened}-{len(listed.questions)}-{len(listed.counts)}"
    kind = st.segmented_control(
        "Add", ["a question", "a count"], default="a question", key=f"ask-kind-{at}", required=True
    )
    counting = kind == "a count"
    told_apart = {str(c["name"]): min(len(c["of"]), c.get("up_to", len(c["of"]))) for c in listed.counts}
    counts = {} if counting else told_apart
    chosen = st.multiselect(
        "Number of rows in which … (choose columns)"
        if not counting
        else "How many conditions does each row meet? (choose columns)",
        [*(c.name for c in schema.columns if c.nameable), *counts],
        key=f"ask-columns-{kind}-{at}",
        placeholder="Choose columns or counts" if counts else "Choose columns",
    )
    where: dict[str, list[Any]] = {}
    for column in chosen:
        key = f"ask-{kind}-{at}-{column}"
        if column in counts:
            where[column] = list(
                st.slider(f"… {plain(column)} is between", 0, counts[column], (1, counts[column]), key=key)
            )
        else:
            where[column] = _values(schema[column], key)
    if not chosen or not all(where.values()):
        return
    entry: dict[str, Any] = {"of": where} if counting else {"where": where}
    if counting:
        entry["up_to"] = st.number_input(
            "Largest count listed separately", 1, max(len(where), 1), len(where), key=f"ask-top-{at}"
        )
    said = in_words(entry)
    st.markdown(f"**{plain(said[0].upper() + said[1:])}**" if counting else f"**How many {plain(said)} are there?**")
    called = st.text_input("Name", key=f"ask-name-{kind}-{at}", placeholder="a short name for the report").strip()
    st.button(
        f"Add the {'count' if counting else 'question'}",
        on_click=_add,
        args=(state, {"name": called, **entry}),
        disabled=not called,
        key=f"ask-add-{at}",
        icon=":material/add:",
    )


def _values(column: Column, key: str) -> list[Any]:
    """Show the choice of values of a column: a range along bin edges, or categories."""
    if column.kind == "numeric":
        edges = [int(e) if e == int(e) else e for e in column.edges]
        low, high = st.select_slider(f"… {plain(column.name)} is between", edges, (edges[0], edges[-1]), key=key)
        return [] if low == high else [low, high]
    known = list(column.nameable)
    said, shown = f"… {plain(column.name)} is one of", partial(text_with_label, column)
    return list(st.multiselect(said, known, format_func=shown, key=key, placeholder="categories"))


def _add(state: Session, entry: dict[str, Any]) -> None:
    listed = state.project.question_list
    if "of" in entry:
        _take(state, QuestionList(listed.questions, (*listed.counts, entry)))
    else:
        _take(state, QuestionList((*listed.questions, entry), listed.counts))


def _take(state: Session, listed: QuestionList) -> None:
    try:
        state.editor.change_questions(listed)
        state.trouble.pop("questions", None)
    except EspalierError as error:
        state.trouble["questions"] = str(error)


def _file(state: Session, listed: QuestionList) -> None:
    with st.popover("Questions from a CSV file", icon=":material/upload:"):
        st.markdown(
            "Write one line for each condition under the header `question,column,values`. Separate categories with "
            "`;`, or write a range as `60..100`. A row must meet every condition of a question. To allow "
            "alternatives, add a fourth column `or`, and number the alternatives in it."
        )
        given = st.file_uploader("A file of questions", type="csv", key=f"ask-file-{state.opened}", max_upload_size=5)
        if given is not None and st.button("Add these questions", key=f"ask-file-add-{state.opened}"):
            try:
                more = read_questions(given.getvalue().decode("utf-8-sig"), state.project.schema, listed.counts)
            except (UnicodeDecodeError, EspalierError) as error:
                unreadable = isinstance(error, UnicodeDecodeError)
                st.error("The file is not UTF-8 text: save it as UTF-8." if unreadable else plain(error))
                return
            _take(state, QuestionList((*listed.questions, *more), listed.counts))
            st.rerun()


def planned(seen: Preview) -> None:
    """Show the expected error of each answer, before any row is read."""
    if not seen.asked:
        return
    st.subheader("Expected precision of your answers", anchor=False)
    st.dataframe(
        [
            {
                "asked": one.name,
                "kind": one.kind,
                "how": one.how,
                "σ (rows)": one.sigma,
                "95 % bound (rows)": one.within,
            }
            for one in seen.asked
        ],
        hide_index=True,
        width="stretch",
        column_config={
            "σ (rows)": st.column_config.NumberColumn(format="%.1f"),
            "95 % bound (rows)": st.column_config.NumberColumn(format="%.0f"),
        },
    )
    worst = max((one.within for one in seen.asked if one.within is not None), default=None)
    if worst is not None:
        st.caption(
            f"In 95 of 100 releases, all noisy answers are off by at most {worst:,.0f} rows. This covers noise "
            "alone; the release states how closely the fitted table follows the noisy answers."
        )
