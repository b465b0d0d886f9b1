"""Rows of a method that is not private: a confirmation before they are made, and a report of what they disclose."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from espalier.core.blurring.notice import NOT_PRIVATE
from espalier.core.blurring.registry import blurring_of
from espalier.core.errors import EspalierError
from espalier.core.progress import Report
from espalier.core.release.blurred import SENTENCE, Blurred, blurred, shown
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table
from espalier.core.tables.text_table import TextTable
from espalier.pages.common import shell
from espalier.pages.common.text import name, plain
from espalier.pages.session.bundles import BlurredBundle
from espalier.pages.session.session import Session


def show(state: Session) -> None:
    """Show the Release page for a method that is not private."""
    st.error(
        f"**{NOT_PRIVATE}.** {SENTENCE} These rows have no ε and no ledger entry, and cannot be shared with viewers."
    )
    if state.job is not None:
        shell.progress()
    elif state.text is None:
        st.info("No table is open. Open one on the Data page, then come back.")
        shell.link_to("Data", "Go to Data")
    else:
        _make(state, state.text)
    if reason := state.trouble.get("release"):
        st.error(f"No rows were made: {plain(reason)}")
    if state.blurred is not None:
        _result(state.blurred.made)


def _make(state: Session, text: TextTable) -> None:
    try:
        blurring_of(state.project.plan).check(state.project)
    except EspalierError as error:
        st.error(plain(error))
        shell.link_to("Plan", "Fix this on the Plan page")
        return
    given = st.file_uploader(
        "A public table with the same columns (optional)",
        type=["csv"],
        key=f"public-{state.opened}",
        help="This table is used to measure what the rows would add to it (ΔMSE). It is not stored.",
    )
    agreed = st.checkbox(
        f"I understand that each row will be a blurred copy of a real row of {name(text.source)}",
        key=f"blur-{state.opened}",
    )

    def start(changes: Mapping[str, float] | None = None) -> None:
        state.editor.change_plan(**(changes or {}))
        project = state.project
        data, called = (None, "") if given is None else (given.getvalue(), given.name)
        offered: dict[str, float] = {}

        def work(report: Report) -> Blurred:
            try:
                return blurred(project, text, report, None if data is None else read_table(data, called))
            except EspalierError as error:
                if offer := error.data.get("offer"):
                    offered[error.data["key"]] = offer
                raise

        def done(into: Session, made: Blurred) -> None:
            into.blurred = BlurredBundle(made, Table.encode(text, project.schema))

        def ended(into: Session, reason: str) -> None:
            into.trouble["release"], into.offered = reason, offered

        state.offered = {}
        state.start("release", work, done, ended, outlives=False)

    st.button("Make the rows (NOT PRIVATE)", disabled=not agreed, on_click=start, icon=":material/lock_open:")
    for key, offer in state.offered.items() if "release" in state.trouble else ():
        st.button(
            f"Ask for a {key.upper()} of {offer:.0%} and make the rows (NOT PRIVATE)",
            disabled=not agreed,
            on_click=start,
            args=({key: offer},),
            icon=":material/lock_open:",
        )


def _result(made: Blurred) -> None:
    st.subheader(f"{made.rows:,} rows of {plain(made.project.name)}: NOT PRIVATE", anchor=False)
    st.table([{"What the rows reveal": what, "": value} for what, value in shown(made.disclosure)])
    if made.public is not None:
        st.markdown(f"Added to the public table: ΔMSE = **{made.public['delta_mse']:.0%}**.")
    for file, data in made.files.items():
        st.download_button(
            f"{file} (NOT PRIVATE)" if "NOT-PRIVATE" not in file else file,
            data,
            file_name=f"{shell.filename(made.project.name)}-{file.replace('.json', '-NOT-PRIVATE.json')}",
            on_click="ignore",
            key=f"blurred-{file}",
            icon=":material/lock_open:",
        )
    shell.link_to("Diagnostics", "Compare them with the real rows", primary=False)
