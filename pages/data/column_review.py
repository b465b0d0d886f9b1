"""The columns on the Data page, in groups: guesses, declarations, and the user's decision about each column.

The page shows all values of a guessed column as text. The button that confirms a group is below the last value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from espalier.core.code_books import CODE_BOOKS, code_book
from espalier.core.errors import EspalierError
from espalier.core.project.schema import MOST_FOUND, Column, HierarchyToBuy, ToBuy, to_buy
from espalier.core.tables.review import ORDERED
from espalier.pages.common import shell
from espalier.pages.common.text import CONFIDENTIAL, name, names, plain
from espalier.pages.data.review_draft import DECLARED, SECTIONS, Row
from espalier.pages.data.typed_columns import row_of
from espalier.pages.session.session import Session

FOLDER = Path(__file__).resolve().parent
FEW = 8
"""Number of values listed for a column that needs no confirmation."""
TITLES = {
    "obviously public": ("Obviously public", "Yes and no, small whole numbers, short lists without rare values."),
    "look closely": ("Look closely", "Rare values, free-form codes, dates, numeric bounds, long lists."),
    "identifies someone": ("Identifies someone", "Columns that identify people or cases."),
    DECLARED: ("Declared", "None of these columns was guessed from the rows."),
}
KINDS = {"categorical": "categories", "ordinal": "ordered categories", "numeric": "numbers in bins"}
ORDER_CHOICES = {"dmy": "Day first, as in 31/12/2020", "mdy": "Month first, as in 12/31/2020"}
STAGES = {
    "open": "guessed",
    "confirmed": "confirmed",
    "declared": "",
    "left out": "left out",
    "person": "identifies the person",
    "identifier": "identifier",
}


@cache
def _component() -> Any:
    return st.components.v2.component(
        "espalier_review",
        js=(FOLDER / "review.js").read_text("utf-8"),
        css=(FOLDER / "review.css").read_text("utf-8"),
        html='<ul class="review"></ul>',
    )


def show(state: Session) -> bool:
    """Show all columns in their groups, with a button for each group, and the next step once all groups are confirmed.
    Return whether there was anything to review.
    """
    rows = state.drafts.review.rows(state.project, state.columns, state.text)
    if (link := state.project.linked) is not None:  # shown above; identifiers cannot be changed here
        rows = [row for row in rows if row.name not in (link.key, link.number)]
    guessed = [row for row in rows if row.stage in ("open", "confirmed")]
    open_ = [row for row in guessed if row.stage == "open"]
    if open_:
        st.progress(1 - len(open_) / len(guessed), f"{len(guessed) - len(open_)} of {len(guessed)} columns confirmed")
        st.markdown(
            f"{CONFIDENTIAL} A guess shows which values occur. **A group counts as public once you confirm it.** "
            "A rare category or the highest age can reveal a person: confirm only what you would have written without "
            "seeing the rows, for example from a codebook or a form. Change the others, or leave them out."
        )
    if "review" in state.trouble:
        st.error(plain(state.trouble.pop("review")))
    _bought(state)
    for section in SECTIONS:
        if inside := [row for row in rows if row.section == section]:
            _section(state, section, inside)
    state.drafts.review.show(rows)
    if not state.has_table:
        _add(state)
    if guessed and not open_:
        many = f"all {len(guessed)} guessed columns are" if len(guessed) > 1 else "the guessed column is"
        st.success(f"Reviewed: {many} confirmed.")
        lead_on(state)
    return bool(guessed)


def _section(state: Session, section: str, rows: Sequence[Row]) -> None:
    """Show one group: its proposals, its columns, and the button after the last value."""
    title, about = TITLES[section]
    open_ = [row for row in rows if row.stage == "open"]
    st.subheader(f"{title} ({len(rows)})", anchor=False)
    st.caption(about)
    if open_:
        _proposals(state, section, open_)
    key = f"review-{section}-{state.opened}"

    def take() -> None:
        act = st.session_state[key].get("act")
        if isinstance(act, dict):
            state.drafts.review.act(state.editor, state.text, act)

    sent = [_sent(state, row) for row in rows]
    _component()(key=key, data={"title": title, "rows": sent, "opened": state.opened}, on_act_change=take)
    if open_:
        many = f"these {len(open_)} columns" if len(open_) > 1 else "this column"
        st.button(
            f"Confirm {many} ({title.lower()})",
            type="primary",
            icon=":material/check:",
            key=f"review-confirm-{section}-{state.opened}",
            on_click=_confirm,
            args=(state, [row.name for row in open_]),
        )


def _confirm(state: Session, columns: Sequence[str]) -> None:
    state.drafts.review.confirm(state.editor, columns)


def _proposals(state: Session, section: str, rows: Sequence[Row]) -> None:
    """Show a button for each codebook, missing-value mark and date order; it applies to all columns of the group."""
    books: dict[str, list[str]] = {}
    marks: dict[str, list[str]] = {}
    orders: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        for book in row.books[:1]:
            books.setdefault(book, []).append(row.name)
        for mark in row.marks:
            marks.setdefault(mark, []).append(row.name)
        if row.orders:
            orders.setdefault(row.orders, []).append(row.name)
    for choices, columns in orders.items():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"How are the dates in {names(columns)} written?", width="stretch")
            for order in choices:
                st.button(
                    ORDER_CHOICES[order],
                    key=f"review-order-{section}-{order}-{columns[0]}-{state.opened}",
                    on_click=_use_order,
                    args=(state, order, columns),
                )
    for book, columns in books.items():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"{plain(code_book(book).title)} contains every value of {names(columns)}.", width="stretch")
            st.button(
                f"Use {book} for {len(columns)} column{'s' * (len(columns) > 1)}",
                key=f"review-book-{section}-{book}-{state.opened}",
                on_click=_use_book,
                args=(state, book, columns),
            )
    for mark, columns in marks.items():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"Does {name(mark)} stand for a missing value in {names(columns)}?", width="stretch")
            st.button(
                "Yes, missing",
                key=f"review-mark-{section}-{mark}-{state.opened}",
                on_click=_mean_missing,
                args=(state, mark, columns),
            )


def _use_book(state: Session, book: str, columns: Sequence[str]) -> None:
    try:
        state.drafts.review.use_book(state.editor, state.text, book, columns)
    except EspalierError as error:
        state.trouble["review"] = str(error)


def _use_order(state: Session, order: str, columns: Sequence[str]) -> None:
    if state.text is not None:
        state.drafts.review.use_date_order(state.editor, state.text, order, columns)


def _mean_missing(state: Session, mark: str, columns: Sequence[str]) -> None:
    if state.text is not None:
        state.drafts.review.mean_missing(state.editor, state.text, mark, columns)


def _sent(state: Session, row: Row) -> dict[str, Any]:
    """Return a column as sent to the browser, which shows every text literally."""
    column, waits = row.column, row.stage == "open"
    chosen = {"left out": "out", "person": "person", "identifier": ""}.get(row.stage, "keep")
    if row.stage == "open" and column is None:
        chosen = "out"
    sent: dict[str, Any] = {
        "name": row.name,
        "stage": STAGES[row.stage] if column is not None or row.stage != "open" else "guessed to be left out",
        "chosen": chosen,
        "acts": ["keep", "out", *([] if state.project.linked else ["person"])],
        "reason": row.reason if row.stage != "confirmed" else "",
        "error": state.drafts.review.errors.get(row.name, ""),
        "values": [],
        "marks": [],
        "rest": "",
    }
    return sent | (_described(column, waits, row) if column is not None else {})


def _described(column: Column, waits: bool, row: Row) -> dict[str, Any]:
    """Return the kind, values and descriptive text of a column. All values are included until its guess is
    confirmed.
    """
    order = f" {ORDERED[column.date_order]}" if column.date_order else ""
    kind = f"dates{order}" if column.dates else KINDS[column.kind]
    if isinstance(column, ToBuy):
        what = "bins" if column.kind == "numeric" else "categories"
        count = f"{what} are bought from the budget"
        if isinstance(column, HierarchyToBuy):
            whole = f"the whole codebook {column.code_book}" if column.code_book else "a hierarchy"
            count = f"{len(column.tree.texts):,} codes of {whole}; at most {column.at_most:,} stay separate"
        values: list[dict[str, str]] = []
        left = 0
    else:
        count = f"{column.values:,} {'bin' if column.kind == 'numeric' else 'value'}{'s' * (column.values != 1)}"
        values = _values(column)
        left = 0 if waits else max(0, len(values) - FEW)
        values = values[: len(values) - left]
    marks = list(column.missing_marks)
    form = row_of(column)
    books = [*row.books, *(book for book in CODE_BOOKS if book not in row.books)]
    return {
        "kind": f"{kind}, {count}",
        "count": f"{column.name}: {count}",
        "label": column.label,
        "unit": column.unit,
        "description": column.description,
        "values": values,
        "marks": marks,
        "rest": f"… and {left:,} more" if left else "",
        "form": {
            **form,
            "invented": False,
            "book": column.code_book if isinstance(column, HierarchyToBuy) else "",
            "books": [[book, f"{book}: {code_book(book).title}"] for book in books],
        },
    }


def _values(column: Column) -> list[dict[str, str]]:
    """Return each value with its label. A group of values lists its members, so that its name does not hide any value
    of the table.
    """
    inside = dict(column.groups)
    labels = dict(column.value_labels)
    out = []
    for value in column.labels:
        members = f" = {', '.join(inside[value])}" if value in inside else ""
        out.append({"t": value + members, "l": labels.get(value, "")})
    return out


def _bought(state: Session) -> None:
    """Show the columns whose bins or categories are bought, and cheaper alternatives."""
    if not (bought := [c for c in state.project.schema.undeclared if not isinstance(c, HierarchyToBuy)]):
        return
    said = {True: f"{names([c.name for c in bought if c.kind == 'numeric'], 8)} (bins)"}
    said[False] = f"{names([c.name for c in bought if c.kind != 'numeric'], 8)} (categories)"
    listed = " and ".join(said[kind] for kind in (True, False) if any((c.kind == "numeric") == kind for c in bought))
    share = state.project.plan.schema_share
    paid = (
        f"**{share:.0%} of the budget buys** {listed}"
        if share
        else f"**No budget is set aside yet to buy** {listed}: see the Plan page"
    )
    st.markdown(
        f"{paid}. Declare which columns are numbers, dates or identifiers, and any public categories, such as “f; m”. "
        "Declared columns cost nothing and lose no category. Numbers cost less if you give a range: "
        "“8 bins from 0 to 100”."
    )


def _add(state: Session) -> None:
    """Show a field that adds a column to a project without a table."""
    key = f"add-column-{state.opened}"

    def add() -> None:
        typed = st.session_state[key].strip()
        if typed and typed not in state.project.schema:
            schema = state.project.schema
            columns = (*schema.columns, to_buy(typed, "categorical", MOST_FOUND))
            state.editor.change_schema(type(schema)(columns, schema.left_out, schema.identifiers))
            st.session_state[key] = ""

    st.text_input("Add a column", key=key, on_change=add, placeholder="column name as in the table's header")


def lead_on(state: Session) -> None:
    """Show links to the next pages."""
    with st.container(horizontal=True):
        shell.link_to("Structure", "Next: Structure")
        if not state.project.unit_open:
            shell.link_to("Plan", "Skip to Plan", primary=False)
