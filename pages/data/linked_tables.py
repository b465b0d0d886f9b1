"""Linked tables on the Data page: fields that open people with their visits and describe the link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.methods import METHODS
from espalier.core.project.file import Project
from espalier.core.project.linked import MOST_KEPT, Linked
from espalier.core.tables.linked_text import KEEP, LinkedText, draft, table_names
from espalier.core.tables.reading import read_table
from espalier.core.tables.text_table import TextTable
from espalier.pages.common import fields
from espalier.pages.common.shell import filename
from espalier.pages.common.text import CONFIDENTIAL, name, names, plain
from espalier.pages.session.session import Session, TableSource

TYPES = ["csv", "tsv", "txt", "gz", "parquet", "xlsx"]
NONE = "none"


def upload(state: Session, project: Project | None = None) -> None:
    """Show upload fields for both tables. The tables belong to ``project`` if it links two tables; otherwise a project
    is drafted from them.
    """
    left, right = st.columns(2)
    together = project is not None and project.linked is not None and project.linked.together
    people = left.file_uploader(
        "Table of people, or one table with both" if project is None else "Table of people",
        type=TYPES,
        key=f"people-file-{state.opened}",
        max_upload_size=200,
        help="One row per person. It stays in the memory of the server that runs this app, for this session only.",
    )
    visits = (
        None
        if together
        else right.file_uploader(
            "Table of their visits",
            type=TYPES,
            key=f"visits-file-{state.opened}",
            max_upload_size=200,
            help="Any number of rows per person: visits, stays, orders. Leave it empty if one table contains both.",
        )
    )
    try:
        read = [_read(state, file) for file in (people, visits) if file is not None]
    except EspalierError as error:
        st.error(plain(error))
        return
    if project is not None:
        _with_project(state, project, read)
    elif people is not None:
        _questions(state, read)


def read_from_database(state: Session, read: Sequence[TextTable]) -> None:
    """Let the user open tables that were read from a database, in the open project or in a new draft."""
    st.markdown(" and ".join(f"{name(table.source)}: {len(table.columns)} columns" for table in read) + ".")
    link = state.project.linked if state.has_project else None
    if link is not None and len(read) == (1 if link.together else 2):
        st.button("Open these tables in the open project", type="primary", on_click=_attach, args=(state, link, read))
    _questions(state, read, "server")


def _attach(state: Session, link: Linked, read: Sequence[TextTable]) -> None:
    """Open both tables of the database in the open project."""
    try:
        state.attach(LinkedText.of(link, read), "server")
    except EspalierError as error:
        state.trouble["open"] = str(error)


def _read(state: Session, file: Any) -> TextTable:
    """Return an uploaded table, parsed once, not on every rerun."""
    known = state.drafts.linked_uploads
    if file.file_id not in known:
        known[file.file_id] = read_table(file.getvalue(), file.name)
    return known[file.file_id]


def _with_project(state: Session, project: Project, read: Sequence[TextTable]) -> None:
    """Show the button that opens a project of linked tables, with its tables once both are chosen."""
    assert project.linked is not None
    if read and len(read) < (1 if project.linked.together else 2):
        st.info("Also choose the other table, or open the project without a table.")
        return
    try:
        text = LinkedText.of(project.linked, read) if read else None
    except EspalierError as error:
        st.error(plain(error))
        return
    label = "Open the project with these tables" if text else "Open the project without its tables"
    st.button(label, type="primary", on_click=state.open, args=(project, text), key=f"linked-open-{state.opened}")


def _questions(state: Session, read: Sequence[TextTable], source: TableSource = "upload") -> None:
    """Show the four questions, and the button that drafts the project."""
    people, visits = read[0], read[-1]
    shared = [n for n in visits.columns if n and n in people.columns]
    if not shared:
        st.error(
            "The two tables have no column name in common, so nothing links them. The table of people has the columns "
            f"{names(people.columns, 8)}."
        )
        return
    key = f"{state.opened}-{len(read)}"  # new fields once the second table is uploaded
    one, two = st.columns(2)
    by = one.selectbox(
        "Who are the people? Choose the column that identifies them",
        shared,
        index=None if len(read) == 1 else 0,
        key=f"linked-by-{key}",
        placeholder="Choose a column",
        help="Both tables have this column, and it links them. It is read to find each person's visits and is "
        "never released.",
    )
    rest = [n for n in visits.columns if n and n != by]
    order = two.selectbox(
        "What orders the visits?",
        rest,
        index=None,
        key=f"linked-order-{key}",
        placeholder="Choose a column",
        help="For example, a date of admission, written as 2024-05-31, or a sequence number.",
    )
    visit_key = one.selectbox(
        "What identifies a visit?",
        [NONE, *(n for n in rest if n != order)],
        key=f"linked-key-{key}",
        help="Optional. It breaks ties in the order. Its released values are invented.",
    )
    keep = two.number_input(
        "How many visits of each person are kept?",
        2,
        MOST_KEPT,
        KEEP,
        key=f"linked-keep-{key}",
        help="The first visits are kept, in the order above. The noise does not grow with this number.",
    )
    person_columns: Sequence[str] = ()
    if len(read) == 1:
        person_columns = st.multiselect(
            "Which columns describe the person?",
            [n for n in rest if n not in (order, visit_key)],
            key=f"linked-person-{key}",
            help="For example, sex. Their values come from the first kept visit. All other columns describe a visit.",
        )
    if by is None or order is None or (len(read) == 1 and not person_columns):
        return
    sources = [table.source for table in read]
    link = Linked(*table_names(sources), by, by, order, int(keep), "" if visit_key == NONE else visit_key)
    link = replace(link, together=len(read) == 1)
    try:
        _share(LinkedText.of(link, read), int(keep))
    except EspalierError as error:
        st.error(plain(error))
        return
    st.markdown(
        "The columns of both tables can be guessed. The next screen is confidential: it shows categories and ranges "
        "that occur in the tables. You confirm them in groups."
    )
    st.button(
        "Guess the columns of both tables",
        on_click=_guess,
        args=(state, link, read, person_columns, source),
        icon=":material/visibility:",
        type="primary",
        key=f"linked-guess-{key}",
    )


def _guess(
    state: Session, link: Linked, read: Sequence[TextTable], person_columns: Sequence[str], source: TableSource
) -> None:
    """Open both tables with guessed columns."""
    (method,) = (m.name for m in METHODS.values() if m.capabilities.linked)
    try:
        project = draft(read, link, method, person_columns)
        assert project.linked is not None
        linked = LinkedText.of(project.linked, read)
        state.open(replace(project, name=filename(project.name)), linked, source=source)
    except EspalierError as error:
        state.trouble["open"] = str(error)


def _share(text: LinkedText, keep: int) -> None:
    """Show the share of visits that are kept, to the steward only."""
    st.caption(
        f"{CONFIDENTIAL} With {keep} visits per person, **{text.kept(keep):.1%}** of the visits are kept; with "
        f"{keep + 1}, {text.kept(keep + 1):.1%}. Choose a number that you would also have chosen without these shares."
    )


def show(state: Session) -> None:
    """Show how the open tables are linked, and let the user change the number of visits kept."""
    link = state.project.linked
    assert link is not None
    with st.container(border=True, key="linked-tables"):
        st.subheader("People and their visits", anchor=False)
        where = "one table" if link.together else f"{name(link.people)} and {name(link.visits)}"
        more = f" {name(link.visit_key)} breaks ties." if link.visit_key else ""
        st.markdown(
            f"- **Who are the people?** Each value of {name(link.key)} in {name(link.people)} is one person, "
            f"protected with all their rows in both tables.\n- **What links the tables?** {name(link.by)}, in "
            f"{where}.\n- **What orders the visits?** {name(link.order)}.{more}"
            + (" Released dates are computed from the days since the previous visit." if link.gap else "")
        )
        key, bins = f"linked-kept-{state.opened}", f"linked-gap-{state.opened}"

        def take() -> None:
            _change(state, keep=int(st.session_state[key]))

        def take_gap() -> None:
            state.trouble.pop("gap", None)
            try:
                days = [fields.number(edge, "each end of a bin of days") for edge in st.session_state[bins].split(",")]
                _change(state, gap=tuple(map(float, days)))
            except (EspalierError, ValueError) as error:
                state.trouble["gap"] = str(error)

        st.number_input(
            "How many visits of each person are kept?", 2, MOST_KEPT, link.keep, key=key, on_change=take, width=320
        )
        if isinstance(state.text, LinkedText):
            _share(state.text, link.keep)
        if link.gap:
            st.text_input(
                "Days between visits: first day of each bin, and the end of the last",
                ", ".join(f"{edge:g}" for edge in link.gap),
                key=bins,
                on_change=take_gap,
                width=480,
                help="Whole days from 0, in ascending order. Longer times are counted in the last bin. To count "
                "returns within 30 days, start a bin at day 31.",
            )
        if "gap" in state.trouble:
            st.error(f"{plain(state.trouble['gap'])} The bins are unchanged.")


def _change(state: Session, **changes: Any) -> None:
    """Change the link of the open tables."""
    link = state.project.linked
    assert link is not None
    link = replace(link, **changes)
    state.editor.change_link(link)
    if isinstance(state.text, LinkedText):
        state.text = LinkedText.of(link, state.text.tables)


def rows(text: LinkedText) -> None:
    """Show a few rows of both tables, on request."""
    if not st.toggle("Show me the rows (confidential)", key="linked-rows"):
        return
    for table in text.tables:
        st.markdown(f"{CONFIDENTIAL} These are real rows: the first 8 of {table.rows:,} of {name(table.source)}.")
        st.dataframe(
            {n: [c.values[k] for k in c.codes[:8].tolist()] for n, c in table.columns.items()}, hide_index=True
        )
