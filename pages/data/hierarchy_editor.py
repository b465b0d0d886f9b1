"""Form for the hierarchy of a column with many codes, on the Data page."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from espalier.core.errors import EspalierError, SchemaError
from espalier.core.project.hierarchy import read_hierarchy
from espalier.core.project.schema import APART, MOST_CATEGORIES, Column, HierarchyToBuy, ToBuy, with_categories
from espalier.pages.common.text import name, names, plain
from espalier.pages.session.session import Session

LARGEST = 5
"""Maximum size of a file with a hierarchy, in megabytes."""


def show(state: Session) -> None:
    """Show the form and the existing hierarchies."""
    schema, key = state.project.schema, f"hierarchy-{state.opened}"
    st.markdown("#### A hierarchy for a column with many codes")
    st.markdown(
        "For example, group diagnoses into blocks and chapters, or postcodes into regions. The groups are public. "
        "The codes are counted from the top down and kept separate **only where the budget is large enough**. The "
        "schema's share of the budget pays for this; set it on the Plan page, which shows the codes to expect."
    )
    for column in schema.columns:
        if isinstance(column, HierarchyToBuy):
            st.markdown(_taken(column))
    able = [c.name for c in schema.columns if c.kind == "categorical"]
    if not able:
        st.info("No column has categories.")
        return
    chosen = st.selectbox("Column with a hierarchy", able, key=f"{key}-column")
    column = schema[chosen]
    pasted = st.text_area(
        "Code and group, one pair per line",
        key=f"{key}-text-{chosen}",
        placeholder="I21,I20-I25\nI22,I20-I25\nI20-I25,I00-I99",
        help="Two cells per line, separated by a comma, a semicolon or a tab. Groups may belong to other groups. A "
        "code without a group is at the top.",
    )
    file = st.file_uploader(
        "Or a file with two columns",
        type=["csv", "tsv", "txt"],
        key=f"{key}-file-{chosen}",
        max_upload_size=LARGEST,
    )
    left, right = st.columns(2, vertical_alignment="bottom")
    held = column.at_most if isinstance(column, HierarchyToBuy) else APART
    most = left.number_input("Maximum number of categories", 1, MOST_CATEGORIES, held, key=f"{key}-most-{chosen}")
    given, made = None, None
    try:
        text = file.getvalue().decode("utf-8-sig") if file is not None else pasted
        if text.strip():
            given = read_hierarchy(text)
            made = _made(column, given, int(most))
    except UnicodeDecodeError:
        st.error("The file is not UTF-8 text: save it as UTF-8.")
    except EspalierError as error:
        st.error(plain(error))
    if made is not None and given is not None and (alone := _orphans(column, given)):
        st.warning(
            f"{len(alone):,} declared categories are not in the hierarchy: {names(alone, 8)}. Each is a group of "
            "its own at the top."
        )
    if made is not None:
        st.caption(f"{_shape(made)}.")
    right.button(
        "Use this hierarchy",
        key=f"{key}-take",
        type="primary",
        disabled=made is None,
        on_click=_take,
        args=(state, made),
    )


def _made(column: Column, given: Mapping[str, str], at_most: int) -> HierarchyToBuy:
    """Return the column with this hierarchy; raises :class:`SchemaError` for cycles and codes that are not
    categories.
    """
    if "categories" in column.guessed:
        raise SchemaError(
            f"the categories of {column.name!r} were guessed from the rows: confirm them first, or open the "
            "table again without reading its rows",
            column=column.name,
        )
    declared = () if isinstance(column, ToBuy) else _declared(column)
    return HierarchyToBuy.of(
        column.name,
        with_categories(column.name, given, declared),
        at_most,
        missing=column.missing,
        unknown=column.unknown,
        missing_marks=column.missing_marks,
        guessed=tuple(f for f in column.guessed if f == "missing"),
        confirmed=tuple(f for f in column.confirmed if f == "missing"),
        shown=column.shown,
        **column.about,
    )


def _declared(column: Column) -> tuple[str, ...]:
    """Return the values allowed by the column's description."""
    grouped = dict(column.groups)
    return tuple(text for category in column.categories for text in grouped.get(category, (category,)))


def _orphans(column: Column, given: Mapping[str, str]) -> list[str]:
    """Return the declared categories that the hierarchy lacks."""
    return [] if isinstance(column, ToBuy) else [text for text in _declared(column) if text not in given]


def _shape(column: HierarchyToBuy) -> str:
    tree = column.tree
    levels = f"{tree.depth} level{'s' * (tree.depth > 1)}"
    return f"{len(tree.texts):,} codes in {levels}, {len(tree.children[-1]) - tree.missing:,} at the top"


def _taken(column: HierarchyToBuy) -> str:
    return f"- {name(column.name)} has a hierarchy: {_shape(column)}; at most {column.at_most:,} categories."


def _take(state: Session, made: Column) -> None:
    state.editor.change_column(made)
