"""Linked tables on the Analyse page: transitions from one visit to the next, shares at each visit, and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from espalier.core.analysis.answer_text import value_names
from espalier.core.analysis.returns import return_tables
from espalier.core.analysis.transitions import LEVEL, IntervalShare, step_tables
from espalier.core.analysis.visit_shares import visit_tables
from espalier.core.errors import EspalierError
from espalier.core.project.file import Project
from espalier.pages.common import charts
from espalier.pages.common.text import name, plain


def show(project: Project, facts: Mapping[str, Any], key: str) -> None:
    """Show the transitions to the next visit, the shares at each visit, and the returns after a visit."""
    parts: Sequence[tuple[str, str, Callable[[Project, Mapping[str, Any], str], None]]] = (
        ("From one visit to the next", "transition", _transitions),
        ("At each visit", "at-visit", _shares),
        ("Returns after a visit", "returns", _returns),
    )
    for title, mark, part in parts:
        st.subheader(title, anchor=False)
        try:
            part(project, facts, f"{mark}-{key}")
        except EspalierError as error:
            st.info(plain(error))


def _transitions(project: Project, facts: Mapping[str, Any], key: str) -> None:
    """Choose a column and a value; show the shares at the next visit."""
    tables = step_tables(facts, project.schema)
    if not tables:
        st.info("This release contains no counts of transitions between visits.")
        return
    left, right = st.columns(2)
    column = left.selectbox("Column in the table of visits", list(tables), key=f"{key}-column")
    labels = tuple(value_names(project.schema[column]))
    before = right.selectbox("Value at the earlier visit", labels, key=f"{key}-before-{column}")
    found = [tables[column].transition(labels, before, after) for after in labels]
    title = f"Shares of {column} at the visit that follows {before}"
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
        st.info("This release contains no counts of single visits. Release the table again to get them.")
        return
    later = [column for column in columns if (column, 2) in tables]
    left, right = st.columns(2)
    first = columns.index(later[0]) if later else 0
    column = left.selectbox("Column at each visit", columns, first, key=f"{key}-column")
    labels = tuple(value_names(project.schema[column]))
    value = right.selectbox("Value to show", labels, key=f"{key}-value-{column}")
    found = [table.share(labels, value) for (of, _), table in sorted(tables.items()) if of == column]
    title = f"Share of people with {value} in {column}, by visit"
    _drawn(found, [f"visit {one.visit}" for one in found], "share of people with this visit", f"{key}-bars", title)
    st.caption(
        f"Among people who have this visit, each person counts once. The {LEVEL:.0%} intervals cover the noise and the "
        "sampling of people."
    )
    if column not in later:
        st.info(
            f"{name(column)} was counted at the first visit only. To count it at later visits, choose it under "
            "“Columns counted at each visit” on the Plan page and release again."
        )


def _returns(project: Project, facts: Mapping[str, Any], key: str) -> None:
    """Choose a counted column. For each value, show the share of visits after which the person returned within the
    period.
    """
    assert project.linked is not None
    tables = return_tables(facts, project.linked, project.schema)
    if not tables:
        st.info(
            "This release did not count returns. Choose “Columns for which returns are counted” on the Plan page and "
            "release again. The visits need dates."
        )
        return
    column = st.selectbox("Column of the earlier visit", list(tables), key=f"{key}-column")
    table, labels = tables[column], tuple(value_names(project.schema[column]))
    found = [table.share(labels, value) for value in labels]
    title = f"Shares of visits followed by a return within {table.days} days, by {column}"
    _drawn(found, list(labels), f"returned within {table.days} days", f"{key}-bars", title)
    st.caption(
        f"Each person has weight 1, spread evenly over their first {project.linked.keep - 1} visits. A visit without a "
        f"later one in the table counts as not followed by a return, even if the records end within {table.days} days. "
        f"The {LEVEL:.0%} intervals cover the noise and the sampling of people; they tend to be slightly too wide."
    )


def _drawn(found: Sequence[IntervalShare], marks: Sequence[str], axis: str, key: str, title: str) -> None:
    """List all shares. If several are available, also draw them as bars with intervals."""
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
