"""The declared schema on the Data page: an editable table, and public coarsening."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.project.coarsening import even_bins, group, growing_bins
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.guessing import guess_column
from espalier.pages.common.text import name, names, plain
from espalier.pages.data.schema_rows import SchemaDraft
from espalier.pages.session.session import Session

_CONFIG = {
    "use": st.column_config.CheckboxColumn("Use", help="Untick to leave the column out of everything", width=62),
    "guess": st.column_config.TextColumn(
        "⚠ Guessed, unconfirmed", disabled=True, help="Fields that were read off the real table"
    ),
    "name": st.column_config.TextColumn("Name", pinned=True, width=105, help="As in the table's header"),
    "kind": st.column_config.SelectboxColumn(
        "Kind",
        options=["categorical", "ordinal", "numeric", "date", "identifier"],
        required=True,
        width=100,
        help="categorical: names; ordinal: names in an order; numeric: numbers in bins; date: days in calendar "
        "periods; identifier: never read, left out or invented",
    ),
    "categories": st.column_config.TextColumn(
        "Categories (; between)",
        width=165,
        help='For categorical and ordinal columns. Put "quotes" around a category that holds a semicolon. '
        "Or “at most 50”: they are bought from the budget.",
    ),
    "edges": st.column_config.TextColumn(
        "Bins (; between)",
        width=122,
        help="For numeric columns: 0; 18; 40 makes the bins 0 to below 18 and 18 to 40. Numbers outside join "
        "the outermost bin. “8 bins” or “8 bins from 0 to 100”: they are bought from the budget. For dates: first day; "
        "last day; week, month, quarter or year. For identifiers: invented, "
        "if the released table shall have such a column.",
    ),
    "integer": st.column_config.CheckboxColumn("Whole", width=76, help="The numbers have no decimals"),
    "decimals": st.column_config.TextColumn(
        "Decimals",
        width=92,
        help="For numeric columns that are not whole: how many figures after the point numbers come out with. Blank: "
        "five figures of the bin's width.",
    ),
    "missing": st.column_config.CheckboxColumn(
        "Empty", width=76, help="Cells may be empty. Empty cells become a category of their own"
    ),
    "unknown": st.column_config.CheckboxColumn(
        "Others",
        width=84,
        help="Other values than those declared are taken for empty cells. Otherwise a table that holds one is refused",
    ),
}


def _bought(state: Session) -> None:
    """Show the columns whose bins or categories are bought, and cheaper alternatives."""
    if not (bought := state.project.schema.undeclared):
        return
    said = {True: f"{names([c.name for c in bought if c.kind == 'numeric'], 8)} (bins)"}
    said[False] = f"{names([c.name for c in bought if c.kind != 'numeric'], 8)} (categories)"
    listed = " and ".join(said[kind] for kind in (True, False) if any((c.kind == "numeric") == kind for c in bought))
    share = state.project.plan.schema_share
    paid = (
        f"**{share:.0%} of the budget buys** {listed}" if share else f"**Nothing buys yet** {listed}: see the Plan page"
    )
    st.markdown(
        f"{paid}. Say which columns are numbers, dates or identifiers, and declare what everybody knows, such as "
        "“f; m”: what is declared costs nothing, and no category of it is lost. Numbers cost less with their range: "
        "“8 bins from 0 to 100”."
    )


def show(state: Session) -> None:
    """The editor. What can be used goes into the project at once; what cannot stays as typed, with its reason."""
    head = st.container()
    draft = state.schema_draft
    key = f"schema-{state.opened}-{draft.revision}"
    if draft.base is None or key not in st.session_state:
        draft.refresh()
        draft.base = draft.frame()
    hidden = set() if any(row["guess"] for row in draft.rows) else {"guess"}
    order = ("use", "name", "guess", "kind", "categories", "edges", "integer", "decimals", "missing", "unknown")
    edited = st.data_editor(
        draft.base,
        key=key,
        column_config=_CONFIG,
        column_order=[c for c in order if c not in hidden],
        hide_index=True,
        num_rows="add" if state.text is None else "fixed",
        height=min(35 * (len(draft.rows) + 1 + (state.text is None)) + 3, 560),
        alt="The declared columns, one row each",
        disabled=["guess"] if state.text is None else ["guess", "name"],
    )
    draft.take(edited)
    columns = draft.columns()
    for row, reason in draft.errors.items():
        st.error(f"Row {row + 1}: {plain(reason)}")
    state.drafts.schema_errors = len(draft.errors)
    if not columns:
        st.error("At least one column must be in use.")
        state.drafts.schema_errors += 1
    else:
        kept = {c.name: c for c in state.project.schema.columns}
        broken = {draft.rows[i]["name"] for i in draft.errors}
        _apply(state, [*columns, *(kept[n] for n in kept if n in broken and n not in {c.name for c in columns})], draft)
    with head:
        _bought(state)
    _left_out(state, draft)


def _apply(state: Session, columns: list[Column], draft: SchemaDraft) -> None:
    place = {row["name"]: i for i, row in reversed(list(enumerate(draft.rows)))}
    try:
        inside = tuple(sorted(columns, key=lambda c: place[c.name]))
        state.editor.change_schema(Schema(inside, draft.still_out(columns), draft.identifiers()))
    except EspalierError as error:
        st.error(plain(error))


def _left_out(state: Session, draft: SchemaDraft) -> None:
    out = [row["name"] for row in draft.rows if not row["use"]]
    out += [c for c in state.columns if c not in state.project.schema and c not in {row["name"] for row in draft.rows}]
    person = state.project.plan.person
    if person is not None and person in out:
        out.remove(person)
        st.markdown(f"**Whose a row is:** {name(person)}. It is never counted or released.")
    if not out:
        return
    st.markdown(f"**Left out of everything:** {names(out, 20)}.")
    unknown = [c for c in out if c not in {row["name"] for row in draft.rows} and c]
    if unknown and state.text is not None:
        text = state.text
        st.button(
            "Guess these columns from the table too",
            icon=":material/visibility:",
            on_click=lambda: draft.add([guess_column(n, text.columns[n]) for n in unknown]),
        )


def coarsen(state: Session) -> None:
    """Coarsen one column. This uses the schema and the person's choices, never the rows."""
    schema, draft = state.project.schema, state.schema_draft
    if not (by_size := sorted((c for c in schema.columns if c not in schema.undeclared), key=lambda c: -c.size)):
        st.info("Nothing is declared yet that could be made coarser.")
        return
    st.markdown(
        "Every cell that is counted gets noise, so few, well-filled categories are released better than many "
        "rare ones. "
        "These tools look at the declared schema only, never at the rows."
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
            _act(state, "Bins of equal width", lambda: even_bins(column, bins), draft, "even")
            _act(state, "Bins that grow (for skewed amounts)", lambda: growing_bins(column, bins), draft, "growing")
    else:
        members = st.multiselect(
            "Categories to count as one", column.categories, key=f"members-{state.opened}-{chosen}"
        )
        called = st.text_input("Called", "Other", key=f"called-{state.opened}-{chosen}")
        _act(state, "Group them", lambda: group(column, members, called), draft, "group", not members or not called)
    if "coarsen" in state.trouble:
        st.error(plain(state.trouble["coarsen"]))
    shown = {"value": list(column.labels)}
    if inside := dict(column.groups):
        shown["stands for"] = [", ".join(inside.get(label, ())) for label in column.labels]
    st.dataframe(shown, height=180, hide_index=True)


def _act(
    state: Session, label: str, make: Callable[[], Column], draft: SchemaDraft, key: str, disabled: bool = False
) -> None:
    def act() -> None:
        try:
            draft.replace(make())
            state.trouble.pop("coarsen", None)
        except EspalierError as error:
            state.trouble["coarsen"] = str(error)

    st.button(label, on_click=act, key=f"coarsen-{key}", disabled=disabled)
