"""Upload of a data dictionary on the Data page. The user must declare that it is public before its columns are used."""

from __future__ import annotations

from typing import Any

import streamlit as st

from espalier.core.dictionaries.base import Dictionary
from espalier.core.dictionaries.drafting import (
    CHOICES,
    Choice,
    Draft,
    draft_schema,
    merged,
    spelled_as,
    undeclared_values,
)
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.errors import EspalierError, SchemaError
from espalier.core.project.declared_by import STATEMENT
from espalier.core.tables.guessing import sure_marks
from espalier.core.tables.text_table import TextTable
from espalier.pages.common.text import CONFIDENTIAL, name, names, plain
from espalier.pages.session.session import Session

LARGEST = 50
"""Maximum size of a dictionary file, in megabytes."""
STAT = ["sav", "zsav", "dta", "sas7bdat", "xpt"]
"""Extensions of SPSS, Stata and SAS files."""
SHOWN = 30
"""Maximum number of undeclared values listed, and of notes listed."""


def show(state: Session) -> None:
    """Show the upload field, the columns of the dictionary, the statement that it is public, and the button."""
    for used in state.project.dictionaries:
        st.caption(f"{name(used.name)} ({plain(used.format)}) declares {names(used.columns, 8)}.")
    if state.text is None:
        return
    text = state.text
    done = len(state.project.dictionaries)
    with st.expander("Use a data dictionary", expanded=bool(state.project.schema.guessed) and not done):
        file = st.file_uploader(
            "A data dictionary",
            type=["csv", "tsv", "txt", "xml", "json", "jsonld", "xlsx", "sps", "sas", "do", *STAT],
            key=f"dictionary-file-{state.opened}-{done}",
            max_upload_size=LARGEST,
            help="REDCap dictionary (CSV), DDI, CDISC ODM, define.xml or XForm (XML), Table Schema, CSV on the Web or "
            "JSON Schema (JSON), XLSForm (Excel), SPSS or SAS syntax, Stata do-file, SPSS, Stata or SAS file, or CSV "
            "with the columns code,label or column,code,label. Only descriptions are read; rows and statistics in the "
            "file are ignored.",
        )
        if file is None:
            return
        try:
            dictionary = _read(file, list(text.columns), f"{state.opened}-{done}")
            if dictionary is not None:
                _offer(state, text, dictionary, f"{state.opened}-{done}")
        except EspalierError as error:
            st.error(plain(error))


def _read(file: Any, columns: list[str], key: str) -> Dictionary | None:
    """Return the uploaded dictionary, or `None` until the column of a code list is chosen."""
    try:
        return read_dictionary(file.getvalue(), file.name)
    except SchemaError as error:
        if error.data.get("key") != "column":
            raise
    chosen = st.selectbox(
        "Column that these codes belong to", columns, index=None, key=f"dictionary-column-{key}", placeholder="Choose"
    )
    return None if chosen is None else read_dictionary(file.getvalue(), file.name, chosen)


def _offer(state: Session, text: TextTable, dictionary: Dictionary, key: str) -> None:
    dictionary = spelled_as(dictionary, list(text.columns))
    declared = [n for n in merged([dictionary]) if n in text.columns]
    if not declared:
        raise SchemaError(
            f"{dictionary.source} declares no column of this table; compare its column names with the table's header"
        )
    st.markdown(f"It declares {len(declared)} column{'s' * (len(declared) > 1)} of this table: {names(declared)}.")
    for note in dictionary.notes[:SHOWN]:
        st.caption(plain(note))
    part = TextTable({n: text.columns[n] for n in declared}, text.rows)
    marks = sure_marks(part)
    choices: dict[str, Choice] = {}
    open_draft = draft_schema([dictionary], part, marks)
    for open_ in open_draft.undecided:
        picked = st.radio(
            f"{CONFIDENTIAL} {name(open_.column)} contains {open_.problem}. What should happen?",
            list(CHOICES),
            index=None,
            format_func=lambda choice: CHOICES[choice].capitalize(),
            key=f"dictionary-choice-{key}-{open_.column}",
        )
        if odd := undeclared_values(open_draft.schema[open_.column], part.columns[open_.column]):
            st.caption(f"Not declared: {names(odd, SHOWN)}.")
        if picked is not None:
            choices[open_.column] = picked
    draft = draft_schema([dictionary], part, marks, choices)
    stated = st.checkbox(f"{STATEMENT}.", key=f"dictionary-stated-{key}", help="The report quotes this statement.")
    st.button(
        "Use this dictionary",
        type="primary",
        disabled=not stated or bool(draft.undecided),
        key=f"dictionary-use-{key}",
        on_click=_use,
        args=(state, draft, [n for n, choice in choices.items() if choice == "leave-out"]),
    )


def _use(state: Session, draft: Draft, left_out: list[str]) -> None:
    try:
        schema = state.drafts.review.declare(state.editor, draft.schema, [*draft.free_text, *left_out])
        state.editor.declare(schema, draft.used)
    except EspalierError as error:
        state.trouble["review"] = str(error)
