"""Public coarsening of one column on the Data page: fewer bins, or merged categories."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.project.coarsening import even_bins, group, growing_bins
from espalier.core.project.schema import Column
from espalier.pages.common.text import plain
from espalier.pages.session.session import Session


def show(state: Session) -> None:
    """Coarsen one column, using the schema and the user's choices but never the rows."""
    schema = state.project.schema
    if not (by_size := sorted((c for c in schema.columns if c not in schema.undeclared), key=lambda c: -c.size)):
        st.info("No declared column can be coarsened yet.")
        return
    st.markdown(
        "Every counted cell gets noise, so a few large categories are more accurate than many rare ones. These "
        "tools read only the declared schema, never the rows."
    )
    chosen = st.selectbox(
        "Column to coarsen",
        [c.name for c in by_size],
        key=f"coarsen-{state.opened}",
        format_func=lambda n: f"{n}  ({schema[n].size} values)" if n in schema else n,
    )
    column = schema[chosen]
    if column.kind == "numeric":
        bins = int(
            st.number_input("Number of bins", 1, 200, min(column.values, 10), key=f"bins-{state.opened}-{chosen}")
        )
        with st.container(horizontal=True):
            _act(state, "Bins of equal width", lambda: even_bins(column, bins), "even")
            _act(state, "Bins of increasing width (for skewed amounts)", lambda: growing_bins(column, bins), "growing")
    else:
        members = st.multiselect(
            "Categories to count as one", column.categories, key=f"members-{state.opened}-{chosen}"
        )
        called = st.text_input("Name of the group", "Other", key=f"called-{state.opened}-{chosen}")
        _act(
            state, "Group these categories", lambda: group(column, members, called), "group", not members or not called
        )
    if "coarsen" in state.trouble:
        st.error(plain(state.trouble["coarsen"]))
    shown = {"value": list(column.labels)}
    if inside := dict(column.groups):
        shown["contains"] = [", ".join(inside.get(label, ())) for label in column.labels]
    st.dataframe(shown, height=180, hide_index=True)


def _act(state: Session, label: str, make: Callable[[], Column], key: str, disabled: bool = False) -> None:
    def act() -> None:
        try:
            state.editor.change_column(make())
            state.trouble.pop("coarsen", None)
        except EspalierError as error:
            state.trouble["coarsen"] = str(error)

    st.button(label, on_click=act, key=f"coarsen-{key}", disabled=disabled)
