"""Review of a project's columns: their sections, the facts shown to the user, and the user's decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from espalier.core.errors import EspalierError, SchemaError
from espalier.core.project.declared_by import DeclaredBy
from espalier.core.project.editor import ProjectEditor
from espalier.core.project.file import Project
from espalier.core.project.people import ROWS_KEPT
from espalier.core.project.plan import SCHEMA_SHARE
from espalier.core.project.schema import (
    MOST_FOUND,
    Categories,
    Column,
    HierarchyToBuy,
    Identifier,
    LeftOut,
    Schema,
    ToBuy,
    to_buy,
)
from espalier.core.tables.guessing import guess_column, possible_marks, sure_marks
from espalier.core.tables.review import (
    GROUPS,
    HARDLY_REPEATS,
    Reviewed,
    left_out_digest,
    review_column,
    shown_digest,
)
from espalier.core.tables.text_table import TextColumn, TextTable
from espalier.pages.data.typed_columns import column_of

DECLARED = "declared"
"""Group for columns that were not guessed."""
SECTIONS = (*GROUPS, DECLARED)
Stage = Literal["open", "confirmed", "declared", "left out", "person", "identifier"]
NOT_OPEN = "This was guessed from a table that is no longer open."


@dataclass(frozen=True)
class Row:
    """A column in the review: its section, its stage, and the reason.

    ``digest`` identifies what must be shown before a guess can be confirmed. ``books`` are the codebooks that contain
    all of its values. ``marks`` are values that may mean an empty cell. ``orders`` are the possible orders of day and
    month.
    """

    name: str
    section: str
    stage: Stage
    reason: str
    column: Column | None = None
    digest: str = ""
    books: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    orders: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settled:
    """Settled columns: declared or confirmed, left out, or identifiers."""

    described: tuple[Column, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    identifiers: tuple[Identifier, ...] = ()
    aside: tuple[str, ...] = ()
    """Columns left out by the user, not by a guess."""

    def __bool__(self) -> bool:
        return bool(self.described or self.left_out or self.identifiers or self.aside)


@dataclass
class ReviewDraft:
    """Unfinished review of one open project.

    ``sections`` is the section of each column, which does not change once it is set. ``aside`` holds the descriptions
    of columns that are left out. ``errors`` holds the reasons why typed descriptions cannot be used. ``seen`` holds the
    digest of the facts last shown for each open column: only those can be confirmed.
    """

    sections: dict[str, str] = field(default_factory=dict)
    aside: dict[str, Column] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    _placed: dict[str, tuple[Column, TextColumn, tuple[Reviewed, tuple[str, ...]]]] = field(default_factory=dict)
    _fits: dict[str, tuple[Column, TextColumn, bool]] = field(default_factory=dict)

    def rows(self, project: Project, names: Iterable[str], text: TextTable | None) -> list[Row]:
        """Return all columns in the order of the table, or in that of the project if no table is open. ``names`` are
        the table's columns.
        """
        schema, person = project.schema, project.plan.person
        known = dict.fromkeys((*names, *self.order, *schema.names, *(c.name for c in schema.left_out)))
        known |= dict.fromkeys((*(c.name for c in schema.identifiers), *([person] if person else [])))
        self.order = {name: i for i, name in enumerate(known)}
        described = {c.name: c for c in schema.columns}
        out, told = {c.name: c for c in schema.left_out}, {c.name for c in schema.identifiers}
        found = []
        for name in known:
            if name == person:
                why = "Its values are read to find each person's rows, and are never released."
                found.append(Row(name, self._section(name, "identifies someone"), "person", why))
            elif name in described:
                found.append(self._described(described[name], text))
            elif name in told:
                why = "It is declared as an identifier and is not read."
                found.append(Row(name, self._section(name, "identifies someone"), "identifier", why))
            elif name in out and not out[name].confirmed:
                place = self._section(name, "identifies someone")
                found.append(Row(name, place, "open", HARDLY_REPEATS, digest=left_out_digest(name)))
            else:
                place = self._section(name, "identifies someone" if name in out else DECLARED)
                found.append(Row(name, place, "left out", "It is not released."))
        return found

    def _section(self, name: str, section: str) -> str:
        return self.sections.setdefault(name, section)

    def _described(self, column: Column, text: TextTable | None) -> Row:
        read = text.columns.get(column.name) if text is not None else None
        if not column.guessed and not column.confirmed:
            why = (
                ""
                if isinstance(column, ToBuy) or not column.code_book
                else f"Its categories are from {column.code_book}."
            )
            return Row(column.name, self._section(column.name, DECLARED), "declared", why, column)
        stage: Stage = "open" if column.guessed else "confirmed"
        if read is None:
            place = self._section(column.name, "look closely" if column.guessed else DECLARED)
            return Row(column.name, place, stage, NOT_OPEN, column, shown_digest(column))
        placed, marks = self._place(column, read)
        section = self._section(column.name, placed.group)
        orders = placed.orders if stage == "open" else ()
        return Row(column.name, section, stage, placed.reason, column, placed.digest, placed.books, marks, orders)

    def _place(self, column: Column, read: TextColumn) -> tuple[Reviewed, tuple[str, ...]]:
        """Return the row of a column, and the values of an open guess that may mean an empty cell."""
        known = self._placed.get(column.name)
        if known is None or known[0] != column or known[1] is not read:
            open_ = column.guessed and not isinstance(column, ToBuy)
            marks = [m for m in possible_marks(read) if m not in column.missing_marks] if open_ else []
            left = tuple(m for m in marks if column.kind == "numeric" or m in column.categories)
            known = self._placed[column.name] = (column, read, (review_column(read, column), left))
        return known[2]

    def unfit(self, columns: Iterable[Column], text: TextTable) -> list[str]:
        """Return the names of columns with a value that their description does not allow. Private."""
        found = []
        for column in columns:
            read = text.columns[column.name]
            known = self._fits.get(column.name)
            if known is None or known[0] != column or known[1] is not read:
                known = self._fits[column.name] = (column, read, fits(column, read))
            if not known[2]:
                found.append(column.name)
        return found

    def show(self, rows: Iterable[Row]) -> None:
        """Record the facts that the page shows for these rows."""
        self.seen = {row.name: row.digest for row in rows if row.stage == "open"}

    def confirm(self, editor: ProjectEditor, names: Iterable[str]) -> None:
        """Confirm the guesses about these columns, provided that the page has shown their current state."""
        schema, wanted = editor.project.schema, set(names)

        def seen(name: str, digest: str) -> bool:
            return name in wanted and self.seen.get(name) == digest

        columns = tuple(
            c.confirm(digest) if c.guessed and seen(c.name, digest := shown_digest(c)) else c for c in schema.columns
        )
        out = tuple(
            LeftOut(c.name, True, digest) if not c.confirmed and seen(c.name, digest := left_out_digest(c.name)) else c
            for c in schema.left_out
        )
        editor.change_schema(replace(schema, columns=columns, left_out=out))

    def act(self, editor: ProjectEditor, text: TextTable | None, act: Mapping[str, Any]) -> None:
        """Carry out the user's action on one column. A failure is recorded in ``errors``."""
        name = act.get("name")
        if not isinstance(name, str) or name not in self.order:
            return
        self.errors.pop(name, None)
        steps = {"keep": self._keep, "out": self._leave_out, "person": self._identify, "change": self._change}
        try:
            step = steps[act["do"]]
            step(editor, text, name, act)
        except EspalierError as error:
            self.errors[name] = str(error)
        except (KeyError, TypeError, AttributeError):
            self.errors[name] = "The browser sent an unreadable action. Try again."

    def _keep(self, editor: ProjectEditor, text: TextTable | None, name: str, _: Mapping[str, Any]) -> None:
        schema = editor.project.schema
        if name in schema:
            return
        if editor.project.plan.person == name:
            editor.forget_person()
        column = self.aside.pop(name, None)
        if column is None and text is not None and name in text.columns:
            read = text.columns[name]
            column = guess_column(name, read, tuple(m for m in sure_marks(text) if m in read.values))
        self._put(editor, column or to_buy(name, "categorical", MOST_FOUND))

    def _put(self, editor: ProjectEditor, *columns: Column) -> None:
        """Add these columns to the schema, in the order of the table, and clear any mark as an identifier or as left
        out.
        """
        schema, new = editor.project.schema, {c.name: c for c in columns}
        kept = [c for c in schema.columns if c.name not in new]
        inside = sorted([*kept, *columns], key=lambda c: self.order.get(c.name, len(self.order)))
        editor.change_schema(
            Schema(
                tuple(inside),
                tuple(c for c in schema.left_out if c.name not in new),
                tuple(c for c in schema.identifiers if c.name not in new),
            )
        )

    def _leave_out(self, editor: ProjectEditor, _: TextTable | None, name: str, __: Mapping[str, Any]) -> None:
        self.leave_out(editor, name)

    def leave_out(self, editor: ProjectEditor, name: str) -> None:
        """Take a column out of the schema; if it was the person column, that role is cleared. Raises
        :class:`EspalierError`.
        """
        self._remove(editor, name)
        if editor.project.plan.person == name:
            editor.forget_person()

    def _remove(self, editor: ProjectEditor, name: str) -> None:
        """Take a column out of the schema; this also confirms a guess that left it out."""
        before = editor.project.schema
        editor.leave_out(name)
        schema = editor.project.schema
        if name in before:
            self.aside[name] = before[name]
        told = tuple(c for c in schema.identifiers if c.name != name)
        editor.change_schema(replace(schema, identifiers=told))
        self._note_left_out(editor, name)

    def _identify(self, editor: ProjectEditor, _: TextTable | None, name: str, __: Mapping[str, Any]) -> None:
        plan = editor.project.plan
        self.answer(editor, False, name, plan.rows_per_person if plan.person else ROWS_KEPT)

    def answer(self, editor: ProjectEditor, one_row: bool, person: str | None, rows_per_person: int) -> None:
        """Store whether each person has one row. Remove the person column from the schema."""
        before = editor.project.schema
        editor.answer(one_row, person, rows_per_person)
        if person is not None and person in before:
            self.aside[person] = before[person]

    def _note_left_out(self, editor: ProjectEditor, name: str) -> None:
        """Record the facts that a person saw when confirming that a column is left out, if a guess had left it out."""
        schema = editor.project.schema
        out = tuple(replace(c, shown=left_out_digest(name)) if c.name == name else c for c in schema.left_out)
        editor.change_schema(replace(schema, left_out=out))

    def _change(self, editor: ProjectEditor, text: TextTable | None, name: str, act: Mapping[str, Any]) -> None:
        column, typed = editor.project.schema[name], act["typed"]
        if typed["kind"] == "identifier":
            self._remove(editor, name)
            schema = editor.project.schema
            told = (*schema.identifiers, Identifier(name, bool(typed.get("invented")), self.order[name]))
            editor.change_schema(replace(schema, identifiers=told))
            return
        if (book := typed.get("book", "")) != column.code_book and book:
            self.use_book(editor, text, book, [name])
            return
        made = column_of(typed, column)
        plain = replace(made, label="", unit="", description="", value_labels=())
        changed = plain != replace(column, label="", unit="", description="", value_labels=())
        if changed and not isinstance(made, HierarchyToBuy):
            made = made.reopened()
        editor.change_column(made)

    def use_book(self, editor: ProjectEditor, text: TextTable | None, book: str, names: Iterable[str]) -> None:
        """Declare the whole codebook for these columns; raise :class:`SchemaError` if the codebook lacks one of their
        values. Empty cells are always allowed, so this reveals nothing about the rows; guessed marks for empty cells
        remain guesses. The budget determines which codes stay separate.
        """
        for name in names:
            before = editor.project.schema[name]
            open_marks = bool(before.missing_marks) and "missing" in before.guessed
            made = HierarchyToBuy.of_book(
                name,
                book,
                missing=True,
                unknown=before.unknown,
                missing_marks=before.missing_marks,
                guessed=("missing",) if open_marks else (),
                confirmed=() if open_marks else ("missing",),
                **before.about,
            )
            if text is not None and name in text.columns and not fits(made, text.columns[name]):
                raise SchemaError(
                    f"the codebook {book} lacks some values of {name!r}. Let other values count as empty first, "
                    "or choose another codebook",
                    column=name,
                )
            editor.change_column(made if open_marks else replace(made, shown=shown_digest(made)))
        if not editor.project.plan.schema_share:
            editor.change_plan(schema_share=SCHEMA_SHARE)

    def use_date_order(self, editor: ProjectEditor, text: TextTable, order: str, names: Iterable[str]) -> None:
        """Read these columns as dates written in this order of day, month and year, and guess their bins again."""
        for name in names:
            now = editor.project.schema[name]
            made = guess_column(name, text.columns[name], now.missing_marks, order)
            editor.change_column(replace(made, missing=made.missing or now.missing, unknown=now.unknown, **now.about))

    def mean_missing(self, editor: ProjectEditor, text: TextTable, mark: str, names: Iterable[str]) -> None:
        """Treat ``mark`` as an empty cell in these columns. Repeat the guesses that the user has not changed."""
        for name in names:
            read, now = text.columns[name], editor.project.schema[name]
            marks = (*now.missing_marks, mark)
            if replace(now, guessed=()) == replace(guess_column(name, read, now.missing_marks), guessed=()):
                editor.change_column(replace(guess_column(name, read, marks), missing=True))
                continue
            kept = tuple(c for c in now.categories if c != mark)
            if isinstance(now, Categories) and kept:
                groups = tuple((title, tuple(t for t in inside if t != mark)) for title, inside in now.groups)
                made = replace(now, categories=kept, groups=groups, missing=True, missing_marks=marks)
                editor.change_column(made.reopened())
            elif now.kind == "numeric":
                editor.change_column(replace(now, missing=True, missing_marks=marks).reopened())

    def settle(
        self, editor: ProjectEditor, names: Sequence[str], settled: Settled, dictionaries: Iterable[DeclaredBy]
    ) -> None:
        """Replace guesses by the settled columns with the same names."""
        self.order = {n: i for i, n in enumerate(names)}
        schema, person = editor.project.schema, editor.project.plan.person
        new = {c.name: c for c in settled.described if c.name in self.order and c.name != person}
        gone = {*(c.name for c in settled.left_out), *(c.name for c in settled.identifiers), *settled.aside}
        for c in schema.columns:
            if c.name in gone:
                self.aside[c.name] = c
        columns = [c for c in schema.columns if c.name not in new and c.name not in gone]
        inside = sorted([*columns, *new.values()], key=lambda c: self.order.get(c.name, len(self.order)))
        known = {c.name: c for c in (*schema.left_out, *settled.left_out) if c.name in self.order and c.name not in new}
        told = tuple(c for c in settled.identifiers if c.name in self.order)
        out = tuple(c for c in known.values() if c.name not in {person, *(c.name for c in told)})
        editor.declare(Schema(tuple(inside), out, told), dictionaries)

    def declare(self, editor: ProjectEditor, declared: Schema, free_text: Iterable[str]) -> Schema:
        """Return the schema with the columns and identifiers of a dictionary, but without its free-text columns."""
        schema = editor.project.schema
        new = {c.name: c for c in declared.columns}
        gone = {*(c.name for c in declared.identifiers), *free_text}
        columns = [c for c in schema.columns if c.name not in new and c.name not in gone]
        for name in (*new, *gone):
            self.sections.pop(name, None)
            self.errors.pop(name, None)
        inside = sorted([*columns, *new.values()], key=lambda c: self.order.get(c.name, len(self.order)))
        told = [c for c in schema.identifiers if c.name not in new and c.name not in gone]
        told += [replace(c, place=self.order.get(c.name, c.place)) for c in declared.identifiers]
        out = tuple(c for c in schema.left_out if c.name not in new and c.name not in gone)
        return Schema(tuple(inside), out, tuple(told))


def fits(column: Column, read: TextColumn) -> bool:
    """Return whether a description allows every value of a column. Private."""
    if isinstance(column, HierarchyToBuy):
        try:
            column.leaves(read.values)
        except EspalierError:
            return False
        return True
    if isinstance(column, ToBuy):
        return True
    return bool((column.judge(read.values) < column.size).all())
