"""Linked tables on the Analyse page: transitions of a column from one visit to the next, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from espalier.core.analysis.answer_text import value_names
from espalier.core.analysis.transitions import LEVEL, step_tables
from espalier.core.errors import EspalierError
from espalier.core.project.file import Project
from espalier.pages.common import charts
from espalier.pages.common.text import plain


def show(project: Project, facts: Mapping[str, Any], key: str) -> None:
    """Choose a column and a value; show the shares at the next visit."""
    st.subheader("From one visit to the next", anchor=False)
    try:
        tables = step_tables(facts, project.schema)
    except EspalierError as error:
        st.info(plain(error))
        return
    left, right = st.columns(2)
    column = left.selectbox("Column of the visits", list(tables), key=f"{key}-column")
    labels = tuple(value_names(project.schema[column]))
    before = right.selectbox("Value at a visit", labels, key=f"{key}-before-{column}")
    found = [tables[column].transition(labels, before, after) for after in labels]
    shown = [t for t in found if t.share is not None and t.low is not None and t.high is not None]
    if shown:
        whiskers = {"share": [(t.low or 0.0, t.high or 0.0) for t in shown]}
        figure = charts.bars(
            [t.after for t in shown],
            {"share": [t.share for t in shown]},
            "share at the next visit",
            (charts.SYNTHETIC,),
            whiskers=whiskers,
        )
        charts.show(figure, f"{key}-bars", f"Shares of {column} at the next visit after {before}")
    st.markdown("\n".join(f"- {plain(t)}" for t in found))
    st.caption(
        f"Each person with several kept visits has weight 1. The {LEVEL:.0%} intervals cover the noise and the "
        "sampling of people; they tend to be slightly too wide. The last kept visit is censored."
    )
