"""Open a file or database that the server's operator has listed. Its rows are read in place."""

from __future__ import annotations

import os
from dataclasses import replace

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.project.file import Project
from espalier.core.server import events
from espalier.core.server.allowed import allowed
from espalier.core.tables.frames import LARGE_CELLS
from espalier.core.tables.guessing import guess_schema
from espalier.core.tables.narrow_text import whole_text
from espalier.pages.common import sign_in
from espalier.pages.common.shell import filename
from espalier.pages.common.text import plain
from espalier.pages.data import linked_tables
from espalier.pages.session.session import Session, blank


def show(state: Session) -> None:
    """Show two fields and their buttons to stewards of a server with an allow-list."""
    if not (listed := allowed()) or sign_in.role() != "steward":
        return
    with st.container(border=True):
        where = st.text_input(
            "A file or database on the server",
            key=f"far-{state.opened}",
            placeholder=f"{listed.folders[0]}/…" if listed.folders else f"env:{listed.connections[0]}",
            help="A CSV or Parquet file of any size, a folder of such files, or env:NAME for a database. The server's "
            "operator lists what may be opened. The table is read in place. Once it is open, the page states what a "
            "release stores on this machine.",
        )
        relation = st.text_input("Name of the table in a database", key=f"far-table-{state.opened}")
        place = st.container(horizontal=True)
        if state.has_project:
            place.button("Open it in this project", on_click=_open, args=(state, where, relation), disabled=not where)
        place.button(
            "Guess the columns from its first rows",
            on_click=_guess,
            args=(state, where, relation),
            disabled=not where,
            icon=":material/visibility:",
        )


def show_linked(state: Session) -> None:
    """Show fields for two linked tables of one database, then the fields that open or draft their project."""
    if not (listed := allowed()).connections or sign_in.role() != "steward":
        return
    with st.expander("People with several visits: two tables in a database", expanded=bool(state.drafts.linked_far)):
        where = st.text_input(
            "The database",
            key=f"far-linked-{state.opened}",
            placeholder=f"env:{listed.connections[0]}",
            help="Both tables are read into the memory of this server, for this session only. Use the command line for "
            "large tables.",
        )
        left, right = st.columns(2)
        people = left.text_input("Name of the table of people", key=f"far-people-{state.opened}")
        visits = right.text_input(
            "Name of the table of their visits",
            key=f"far-visits-{state.opened}",
            help="Leave it empty if one table contains both.",
        )
        st.button(
            "Read these tables",
            on_click=_read_linked,
            args=(state, where, [name for name in (people, visits) if name]),
            disabled=not (where and people),
        )
        if state.drafts.linked_far:
            linked_tables.read_from_database(state, state.drafts.linked_far)


def _read_linked(state: Session, where: str, names: list[str]) -> None:
    sign_in.need_steward()
    try:
        found = [replace(whole_text(allowed().open(where, name), LARGE_CELLS), source=name) for name in names]
        state.drafts.linked_far = tuple(found)
        events.emit("open", sign_in.who(), {"table": where}, source="server")
    except EspalierError as error:
        _refused(state, where, error)


def _open(state: Session, where: str, relation: str) -> None:
    sign_in.need_steward()
    try:
        found = allowed().open(where, relation or None)
        if lacking := [c for c in state.project.schema.names if c not in found.columns]:
            raise EspalierError(f"it has no column {lacking[0]!r}")
        state.attach_far(found, (where, relation or None))
    except EspalierError as error:
        _refused(state, where, error)


def _guess(state: Session, where: str, relation: str) -> None:
    sign_in.need_steward()
    try:
        found = allowed().open(where, relation or None)
        title = filename(relation or os.path.basename(where.rstrip("/")).split(".")[0] or "table")
        drafted: Project = blank(title, guess_schema(found.sample()))
        state.open(drafted)
        state.attach_far(found, (where, relation or None))
    except EspalierError as error:
        _refused(state, where, error)


def _refused(state: Session, where: str, error: EspalierError) -> None:
    events.emit("refuse", sign_in.who(), {"table": where}, what="open", source="server")
    state.trouble["open"] = str(error)


def offer_whole(state: Session) -> None:
    """Offer to write a release of many rows to a folder on the server, batch by batch."""
    released = state.released
    if released is None or released.release.whole is None:
        return
    release = released.release
    st.info(f"The synthetic table below contains {release.shown:,} of {release.rows:,} rows, in random order.")
    if not (listed := allowed()).folders:
        return
    folder = st.text_input("Write all rows to a new folder on the server", key=f"far-out-{released.number}")
    if st.button("Write as Parquet", disabled=not folder, key=f"far-write-{released.number}"):
        sign_in.need_steward()
        try:
            with st.spinner("Writing"):
                release.save(listed.new(folder), "parquet")
            st.success("All rows are written.")
        except EspalierError as error:
            st.error(plain(error))
