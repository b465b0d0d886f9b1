"""Linked tables on the Analyse page: transitions from one visit to the next, and shares at each visit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from espalier.core.analysis.answer_text import value_names
from espalier.core.analysis.transitions import LEVEL, IntervalShare, step_tables
from espalier.core.analysis.visit_shares import visit_tables
from espalier.core.errors import EspalierError
from espalier.core.project.file import Project
from espalier.pages.common import charts
from espalier.pages.common.text import name, plain


def show(project: Project, facts: Mapping[str, Any], key: str) -> None:
    """Show what follows a visit, and the shares at each visit."""
    st.subheader("From one visit to the next", anchor=False)
    try:
        _transitions(project, facts, f"transition-{key}")
    except EspalierError as error:
        st.info(plain(error))
    st.subheader("At each visit", anchor=False)
    try:
        _shares(project, facts, f"at-visit-{key}")
    except EspalierError as error:
        st.info(plain(error))


def _transitions(project: Project, facts: Mapping[str, Any], key: str) -> None:
    """Choose a column and a value; show the shares at the next visit."""
    tables = step_tables(facts, project.schema)
    if not tables:
        st.info("This release states no counts of steps from one visit to the next.")
        return
    left, right = st.columns(2)
    column = left.selectbox("Column of the visits", list(tables), key=f"{key}-column")
    labels = tuple(value_names(project.schema[column]))
    before = right.selectbox("Value at a visit", labels, key=f"{key}-before-{column}")
    found = [tables[column].transition(labels, before, after) for after in labels]
    title = f"Shares of {column} at the next visit after {before}"
    _drawn(found, [t.after for t in found], "share at the next visit", f"{key}-bars", title)
    st.caption(
        f"Each person with more than one kept visit counts once. The {LEVEL:.0%} intervals cover the noise and the "
        "sampling of people; they tend to be slightly too wide. The last kept visit is censored."
    )


def _shares(project: Project, facts: Mapping[str, Any], key: str) -> None:
    """Choose a column and a value; show its share at each visit that was counted."""
    assert project.linked is not None
    tables = visit_tables(facts, project.linked, project.schema)
    columns = list(dict.fromkeys(column for column, _ in tables))
    if not columns:
        st.info("This release states no counts of single visits. Release it again to get them.")
        return
    later = [column for column in columns if (column, 2) in tables]
    left, right = st.columns(2)
    first = columns.index(later[0]) if later else 0
    column = left.selectbox("Column at each visit", columns, first, key=f"{key}-column")
    labels = tuple(value_names(project.schema[column]))
    value = right.selectbox("Share of the value", labels, key=f"{key}-value-{column}")
    found = [table.share(labels, value) for (of, _), table in sorted(tables.items()) if of == column]
    title = f"Share of people with {value} in {column}, by visit"
    _drawn(found, [f"visit {one.visit}" for one in found], "share of people with this visit", f"{key}-bars", title)
    st.caption(
        f"Among people who have the visit, each person counts once. The {LEVEL:.0%} intervals cover the noise and the "
        "sampling of people."
    )
    if column not in later:
        st.info(
            f"{name(column)} was counted at the first visit only. To get later visits, choose it under “Columns "
            "counted at each visit” on the Plan page and release again."
        )


def _drawn(found: Sequence[IntervalShare], marks: Sequence[str], axis: str, key: str, title: str) -> None:
    """Draw the shown shares as bars with intervals if there are several, and list all of them."""
    shown = [(mark, one) for mark, one in zip(marks, found, strict=True) if one.share is not None]
    if len(shown) > 1:
        figure = charts.bars(
            [mark for mark, _ in shown],
            {"share": [one.share for _, one in shown]},
            axis,
            (charts.SYNTHETIC,),
            whiskers={"share": [(one.low or 0.0, one.high or 0.0) for _, one in shown]},
        )
        charts.show(figure, key, title)
    st.markdown("\n".join(f"- {plain(one)}" for one in found))
