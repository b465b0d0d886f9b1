"""Open a bundled sample, a table, or a project file."""

from __future__ import annotations

from typing import Any

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.methods import refuse_unknown_keys
from espalier.core.project.file import Project
from espalier.core.project.plan import SCHEMA_SHARE
from espalier.core.project.schema import Schema
from espalier.core.tables.guessing import guess_schema, sure_marks
from espalier.core.tables.reading import misread, read_table
from espalier.core.tables.text_table import TextTable
from espalier.pages.common.shell import filename
from espalier.pages.common.text import name, plain
from espalier.pages.data import linked_tables
from espalier.pages.data.samples import FOLDER, SAMPLES, read_sample
from espalier.pages.session.session import Session, blank


def samples(state: Session) -> None:
    """Show the samples as cards in two columns; one click opens a sample with its project."""
    places = [place for _ in range(0, len(SAMPLES), 2) for place in st.columns(2)]
    for place, (key, (title, icon, rows, text)) in zip(places, SAMPLES.items(), strict=False):
        with place.container(border=True, height="stretch"):
            st.markdown(f"#### :material/{icon}: {title}")
            st.markdown(text)
            st.button(
                f"Open {title.lower()}",
                key=f"sample-{key}",
                width="stretch",
                type="secondary" if state.has_project else "primary",
                on_click=open_sample,
                args=(state, key, rows),
            )


def open_sample(state: Session, key: str, rows: int) -> None:
    """Open a bundled sample with its project."""
    project = Project.load(FOLDER / f"{key}.json")
    state.open(project, read_sample(key, project), rows, key)


def upload(state: Session) -> None:
    """Show fields for the user's own table, with or without a project file, or for a project file alone."""
    left, right = st.columns(2)
    file = left.file_uploader(
        "Your table",
        type=["csv", "tsv", "txt", "gz", "parquet", "xlsx"],
        key=f"table-file-{state.opened}",
        max_upload_size=200,
        help="CSV (any delimiter, also gzipped), Parquet or Excel, up to 200 MB. "
        "It stays in the memory of the server that runs this app, for this session only. "
        "Without a project file, its columns can be guessed.",
    )
    plan = right.file_uploader(
        "Its project file",
        type=["json"],
        key=f"project-file-{state.opened}",
        max_upload_size=20,
        help="A JSON file that this app or the command line saved. It describes the columns without any data; "
        "with it alone you can plan before you have data.",
    )
    if file is None:
        state.drafts.upload = None
    if file is None and plan is None:
        with st.expander("People with several visits: open two linked tables"):
            linked_tables.upload(state)
        return
    try:
        text = None if file is None else _read(state, file)
        project = None if plan is None else Project.loads(plan.getvalue())
        if project is not None:  # no field on the Plan page removes such a key
            refuse_unknown_keys(project.plan)
    except EspalierError as error:
        st.error(plain(error))
        return
    if project is not None and project.linked is not None:
        st.markdown(f"{name(project.name)} links a table of people and a table of their visits.")
        linked_tables.upload(state, project)
        return
    if project is not None:
        what = "Open the project" + (" with this table" if text else "")
        st.button(what, type="primary", on_click=state.open, args=(project, text))
    elif text is not None:
        _table_alone(state, text)


def _read(state: Session, file: Any) -> TextTable:
    """Return the uploaded table, parsed once, not on every rerun."""
    known = state.drafts.upload
    if known is None or known[0] != file.file_id:
        known = state.drafts.upload = (file.file_id, read_table(file.getvalue(), file.name))
    return known[1]


def warn_if_misread(text: TextTable) -> None:
    """Warn if a table was read as one column but appears to have several."""
    if misread(text):
        st.warning(
            f"{name(text.source)} was read as **one column**, and most of its cells contain a comma, a semicolon, "
            "a tab or a vertical bar. The header line probably does not name every column, or the file contains a "
            "stray quotation mark. Correct the first lines of the file and open it again."
        )


def _table_alone(state: Session, text: TextTable) -> None:
    warn_if_misread(text)
    if state.has_project:
        lacking = [c for c in state.project.schema.names if c not in text.columns]
        if lacking:
            st.warning(
                f"The open project {name(state.project.name)} does not fit this table, which has no {name(lacking[0])}."
            )
        else:
            st.button(
                "Open this table in the open project",
                type="primary",
                on_click=state.attach,
                args=(text,),
            )
    st.markdown(
        "**No project file?** The columns can be guessed from the table. The next screen is confidential: it "
        "shows categories and ranges that occur in the table. You confirm them in groups."
    )
    st.button(
        "Buy the schema without reading rows",
        on_click=_buy,
        args=(state, text),
        icon=":material/shopping_cart:",
        help="This reads only the column names. Mark the numeric columns on the next page. The release then "
        "spends part of the budget on choosing bins and categories.",
    )
    st.button("Guess the columns from the table", on_click=_guess, args=(state, text), icon=":material/visibility:")


def _buy(state: Session, text: TextTable) -> None:
    """Open the table by its header alone; the release will buy the bins or categories of every column."""
    try:
        schema = Schema.to_buy(n for n in text.columns if n)
        project = blank(filename(text.source.split(".")[0]), schema).with_plan(schema_share=SCHEMA_SHARE)
        state.open(project, text)
    except EspalierError as error:
        state.trouble["open"] = str(error)


def _guess(state: Session, text: TextTable) -> None:
    """Open the table with guessed columns. Marks such as ``?`` are assumed to be empty cells."""
    try:
        state.open(blank(filename(text.source.split(".")[0]), guess_schema(text, sure_marks(text))), text)
    except EspalierError as error:
        state.trouble["open"] = str(error)
