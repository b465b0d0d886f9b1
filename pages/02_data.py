"""Data: open a sample or a table, declare its columns, and confirm guesses."""

from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from espalier.core.errors import EspalierError
from espalier.core.project.plan import Plan
from espalier.core.tables.linked_text import LinkedText
from espalier.core.tables.relation import Relation
from espalier.core.tables.text_table import TextTable
from espalier.pages.common import shell, sign_in
from espalier.pages.common.text import CONFIDENTIAL, name, names, plain
from espalier.pages.data import (
    coarsening,
    column_review,
    constraint_editor,
    dictionary_upload,
    hierarchy_editor,
    linked_tables,
    opening,
    opening_on_server,
    person_question,
)
from espalier.pages.glossary.terms import term
from espalier.pages.session.session import Session

sign_in.enter("steward")
state = shell.start(
    "Data",
    "Open a table and state the public facts about each column: the values it may have, and the "
    f"{term('bins', 'bin')} of its numbers. The rows themselves stay {term('confidential')}.",
)


def rows_for_the_curator(state: Session, text: TextTable) -> None:
    """Show a few rows and one-way counts on request."""
    if not st.toggle("Show me the rows (confidential)", key=f"rows-{state.opened}"):
        return
    st.markdown(f"{CONFIDENTIAL} These are real rows: the first 8 of {text.rows:,}, as read.")
    st.dataframe({n: [c.values[k] for k in c.codes[:8].tolist()] for n, c in text.columns.items()}, hide_index=True)
    table = state.table()
    if table.person is not None:
        st.markdown(_people(table.person, state.project.plan))
    column = st.selectbox("Column to count", table.schema.names, key=f"count-{state.opened}")
    counts = table.count((column,))
    st.dataframe(
        {"value": list(table.schema[column].labels), "rows": counts.tolist(), "share": (counts / table.rows).tolist()},
        hide_index=True,
        column_config={"share": st.column_config.ProgressColumn(format="percent")},
    )


def first_rows(state: Session, relation: Relation) -> None:
    """On request, show a few rows of a table that is read in place."""
    if not st.toggle("Show me the first rows (confidential)", key=f"first-{state.opened}"):
        st.info("Counting this table means reading all of it. Diagnostics shows the counts next to those of a release.")
        return
    try:
        few = relation.first(8)
    except EspalierError as error:
        st.error(plain(error))
        return
    st.markdown(f"{CONFIDENTIAL} These are real rows: the first {few.rows}, as read.")
    st.dataframe({n: [c.values[k] for k in c.codes.tolist()] for n, c in few.columns.items()}, hide_index=True)


def _people(person: NDArray[Any], plan: Plan) -> str:
    """Return each person's number of rows. Private."""
    rows = np.bincount(person)
    kept = np.minimum(rows, plan.rows_per_person).sum()
    return (
        f"{name(plan.person or '')} identifies {len(rows):,} people, with at most {rows.max():,} rows each. "
        f"With at most {plan.rows_per_person} rows per person, {kept:,} of {rows.sum():,} rows are kept. A total "
        "declared on the Plan page becomes public: choose a round number that you would also have chosen without "
        "seeing these counts."
    )


def table_state(state: Session) -> None:
    """Show whether the open table fits its schema."""
    if state.relation is not None:
        st.info(f"{name(state.relation.shown)} is open and read in place. {state.relation.notice}")
        return
    if state.text is None:
        st.info(
            "No table is open in this project. You can already make a plan. To release, open a table under “Open "
            "something else”."
        )
        return
    text = state.text
    columns = state.project.schema.columns
    if lacking := [c.name for c in columns if c.name not in text.columns]:
        st.error(f"The table has no column {names(lacking)}. Open a table that has it, or leave the column out below.")
        return
    if not (unfit := state.drafts.review.unfit(columns, text)):
        return
    st.error(
        f"These columns contain values that their descriptions do not allow: {names(unfit)}. Correct the table, or "
        "press “Change” next to a column to declare its values, or to treat undeclared values as empty."
    )
    if st.toggle("Show me which values (confidential)", key=f"which-{state.opened}"):
        try:
            state.table()
        except EspalierError as error:
            st.warning(plain(error))


def opened(state: Session) -> None:
    """Show the open project and table, whether they match, and the next step."""
    project = state.project
    bought, guessed = len(project.schema.undeclared), sum(bool(c.guessed) for c in project.schema.columns)
    count = len(project.schema.columns) - bought - guessed
    said = [f"{count} column{' is' if count == 1 else 's are'} declared."] * (count > 0 or not guessed)
    if guessed:
        these, them = ("column is", "it") if guessed == 1 else ("columns are", "them")
        said.append(f"{guessed} {these} guessed: confirm {them} below.")
    more = f" The bins or categories of {bought} column{'s' * (bought > 1)} will be bought." if bought else ""
    source = "" if state.text is None else f", with the table {name(state.text.source)}"
    st.success(f"Open: {name(project.name)}{source}. {' '.join(said)}{more}")
    if state.text is not None:
        opening.warn_if_misread(state.text)
    table_state(state)


def something_else(state: Session) -> None:
    """Show the ways to open another table or project, expanded for a user who came from Home to open their own."""
    with st.expander("Open something else", expanded=state.drafts.own_table, key=f"open-else-{state.opened}"):
        if state.before is not None:
            kept = state.before.open_project.project
            st.button(f"Go back to {name(kept.name)}, as you left it", on_click=state.go_back, icon=":material/undo:")
        opening.upload(state)
        opening_on_server.show(state)
        opening_on_server.show_linked(state)
        st.subheader("Or open a sample", anchor=False)
        opening.samples(state)


if "open" in state.trouble:
    st.error(plain(state.trouble.pop("open")))

if not state.has_project:
    st.subheader("Open your own table", anchor=False)
    opening.upload(state)
    opening_on_server.show(state)
    opening_on_server.show_linked(state)
    st.subheader("Or start with a sample", anchor=False)
    opening.samples(state)
else:
    opened(state)
    something_else(state)
    head = st.container()
    if state.project.linked is None:
        person_question.show(state)
        dictionary_upload.show(state)
    else:
        linked_tables.show(state)
    if not column_review.show(state):
        with head:
            column_review.lead_on(state)
    coarse, constraints, rows = st.tabs(["Coarsen", "Constraints", "The rows"], key=f"tabs-{state.opened}")
    with coarse:
        coarsening.show(state)
        if state.project.linked is None:
            hierarchy_editor.show(state)
    with constraints:
        if state.project.linked is None:
            constraint_editor.show(state)
        else:
            st.info("Linked tables do not support constraints yet.")
    with rows:
        if state.relation is not None:
            first_rows(state, state.relation)
        elif isinstance(state.text, LinkedText):
            linked_tables.rows(state.text)
        elif state.text is None:
            st.info("No table is open. Open one under “Open something else”.")
        else:
            try:
                rows_for_the_curator(state, state.text)
            except EspalierError:
                st.info("Counts appear here once the table fits its declared columns.")

shell.sidebar(state)
