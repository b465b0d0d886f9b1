"""The declared schema as rows of an editable table, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from espalier.core.errors import EspalierError, SchemaError
from espalier.core.project.dates import DateBins
from espalier.core.project.schema import (
    BINS_FOUND,
    FIELDS,
    MOST_FOUND,
    Categories,
    CategoriesToBuy,
    Column,
    Dates,
    HierarchyToBuy,
    Identifier,
    Kind,
    LeftOut,
    Numbers,
    NumbersToBuy,
    Schema,
    to_buy,
)
from espalier.core.tables.guessing import guess_column
from espalier.core.tables.reading import TextColumn

INVENTED = "invented"
IN_HIERARCHY = re.compile(r"\s*at most (\d{1,6}) of [\d,]+ codes in a hierarchy\s*")
TEXTS = ("guess", "name", "kind", "categories", "edges", "decimals")
FLAGS = ("use", "integer", "missing", "unknown")


@dataclass
class SchemaDraft:
    """What the editable table holds, usable or not.

    ``origin`` is, by row, the column as it was opened or guessed: a guessed field is one no more when nothing of the
    guess is left in it, or when the person has confirmed the row. ``left_out`` are the columns that a guess left out,
    also those that are in use by now. ``revision`` grows when the rows change from outside.

    ``reviewed`` is the column that the review shows, and ``seen`` the descriptions that it has shown to their end: only
    such a description can be confirmed. ``pages`` counts, by column, the further categories that were asked for, and
    ``not_marks`` holds, by column, marks that mean a value of their own.
    """

    rows: list[dict[str, Any]]
    origin: list[Column | None]
    left_out: tuple[LeftOut, ...] = ()
    revision: int = 0
    base: pd.DataFrame | None = None
    errors: dict[int, str] = field(default_factory=dict)
    reviewed: str | None = None
    seen: dict[str, Column] = field(default_factory=dict)
    pages: dict[str, int] = field(default_factory=dict)
    not_marks: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema) -> SchemaDraft:
        """The rows of a schema."""
        rows = [row_of(c) for c in schema.columns]
        origin: list[Column | None] = list(schema.columns)
        for c in sorted(schema.identifiers, key=lambda c: c.place):
            rows.insert(c.place, _identifier_row(c))
            origin.insert(c.place, None)
        return cls(rows, origin, schema.left_out)

    def frame(self) -> pd.DataFrame:
        """The rows for the editor."""
        made = pd.DataFrame(self.rows, columns=["use", *TEXTS, "integer", "missing", "unknown"])
        return made.astype({**dict.fromkeys(FLAGS, bool), **dict.fromkeys(TEXTS, str)})

    def take(self, edited: pd.DataFrame) -> None:
        """What came back from the editor."""
        rows = [
            {k: (v if isinstance(v, bool | str) else None) for k, v in row.items()} for row in edited.to_dict("records")
        ]
        self.rows = [{**{k: bool(row[k]) for k in FLAGS}, **{k: row[k] or "" for k in TEXTS}} for row in rows]
        if all(row["name"] == "" for row in self.rows[len(self.origin) :]):
            self.rows = self.rows[: len(self.origin)]
        self.origin += [None] * (len(self.rows) - len(self.origin))

    def columns(self) -> list[Column]:
        """Return the columns in use; ``errors`` holds the reasons for the others, by row."""
        out: list[Column] = []
        self.errors = {}
        for i, (row, origin) in enumerate(zip(self.rows, self.origin, strict=True)):
            if not row["use"] or row["kind"] == "identifier":
                continue
            try:
                column = column_of(row, origin)
                if any(column.name == other.name for other in out):
                    raise SchemaError(f"column {column.name!r} is listed twice; give each name once")
                out.append(column)
            except EspalierError as error:
                self.errors[i] = str(error)
        return out

    def identifiers(self) -> tuple[Identifier, ...]:
        """The rows that describe identifiers."""
        used = [row for row in self.rows if row["use"] and row["name"]]
        return tuple(
            Identifier(row["name"], row["edges"].strip() == INVENTED, i)
            for i, row in enumerate(used)
            if row["kind"] == "identifier"
        )

    def still_out(self, columns: Iterable[Column]) -> tuple[LeftOut, ...]:
        """What a guess left out, where these ``columns`` are in use."""
        used = {c.name for c in columns}
        return tuple(c for c in self.left_out if c.name not in used)

    def confirm_left_out(self, *names: str) -> None:
        """Confirm that these columns, or all that a guess left out and no one took in, stay out."""
        staying = set(names) or {c.name for c in self.left_out} - {row["name"] for row in self.rows if row["use"]}
        self.left_out = tuple(LeftOut(c.name, c.confirmed or c.name in staying) for c in self.left_out)

    def replace(self, column: Column) -> None:
        """Another description of one column, decided elsewhere on the page."""
        for i, row in enumerate(self.rows):
            if row["name"] == column.name:
                self.rows[i], self.origin[i] = row_of(column), column
        self.revision += 1

    def add(self, columns: list[Column]) -> None:
        """More columns at the end."""
        self.rows += [row_of(c) for c in columns]
        self.origin += columns
        self.revision += 1

    def leave_out(self, column: str) -> None:
        """Untick a column, for a reason found elsewhere."""
        for row in self.rows:
            row["use"] = row["use"] and row["name"] != column
        self.revision += 1

    def to_review(self) -> list[Column]:
        """The columns in use that were guessed, confirmed or not, as they are described now."""
        return [c for c in self.columns() if c.guessed or c.confirmed]

    def confirm(self, *names: str) -> None:
        """Confirm the guessed fields of these columns, of those whose description was seen as it stands now."""
        described = {c.name: c for c in self.columns()}
        for row, (i, origin) in zip(self.rows, enumerate(self.origin), strict=True):
            column = described.get(row["name"])
            if column is None or column.name not in names or self.seen.get(column.name) != column or origin is None:
                continue
            row["guess"] = ""
            confirmed = tuple(dict.fromkeys((*origin.confirmed, *column.guessed)))
            self.origin[i] = replace(origin, guessed=(), confirmed=confirmed)
            self.seen[column.name] = replace(column, guessed=(), confirmed=confirmed)
        self.revision += 1

    def means_missing(self, name: str, mark: str, cells: TextColumn) -> None:
        """From now on ``mark`` is an empty cell of the column. An unchanged guess is made again."""
        i = next(i for i, row in enumerate(self.rows) if row["name"] == name)
        now = column_of(self.rows[i], self.origin[i])
        marks = (*now.missing_marks, mark)
        if now == guess_column(name, cells, now.missing_marks):
            self.replace(guess_column(name, cells, marks))
            return
        kept = tuple(c for c in now.categories if c != mark)
        if isinstance(now, Categories) and kept:
            groups = tuple((title, tuple(t for t in inside if t != mark)) for title, inside in now.groups)
            self.replace(replace(now, categories=kept, groups=groups, missing=True, missing_marks=marks))
        elif now.kind == "numeric":
            self.replace(replace(now, missing=True, missing_marks=marks))

    def is_value(self, name: str, mark: str) -> None:
        """``mark`` is a value like any other."""
        self.not_marks.setdefault(name, set()).add(mark)

    def refresh(self) -> None:
        """What each row says about its guessed fields, after typing."""
        for i, (row, origin) in enumerate(zip(self.rows, self.origin, strict=True)):
            if i not in self.errors and row["use"] and row["kind"] != "identifier":
                row["guess"] = _guess_text(column_of(row, origin))


def row_of(column: Column) -> dict[str, Any]:
    """A column as a row."""
    return {
        "use": True,
        "guess": _guess_text(column),
        "name": column.name,
        "kind": column.kind if column.dates is None else "date",
        "categories": _categories(column),
        "edges": _edges(column),
        "decimals": "" if column.decimals is None else str(column.decimals),
        "integer": column.integer,
        "missing": column.missing,
        "unknown": column.unknown == "missing",
    }


def _guess_text(column: Column) -> str:
    return ", ".join(FIELDS[f] for f in column.guessed)


def column_of(row: dict[str, Any], origin: Column | None) -> Column:
    """A row as a column; raises :class:`SchemaError`. Only the cells that the kind needs are read."""
    if row["kind"] == "date":
        return _marked(Dates.of(_name(row, origin), _dates(row["edges"], row["name"]), **_common(row, origin)), origin)
    numeric = row["kind"] == "numeric"
    if isinstance(origin, HierarchyToBuy) and (found := IN_HIERARCHY.fullmatch(row["categories"])):
        at_most, missing = int(found[1]), row["missing"] or row["unknown"]
        return replace(
            origin,
            name=row["name"],
            at_most=at_most,
            missing=missing,
            unknown="missing" if row["unknown"] else "refuse",
        )
    if (wanted := _to_buy(row, numeric)) is not None:
        return wanted
    if numeric:
        edges = numbers(row["edges"], row["name"])
        made: Column = Numbers(
            _name(row, origin), "numeric", edges, row["integer"], _decimals(row), **_common(row, origin)
        )
    else:
        categories = split(row["categories"])
        groups = tuple(g for g in origin.groups if g[0] in categories) if origin else ()
        kind: Kind = row["kind"] or "categorical"
        made = Categories(_name(row, origin), kind, categories, groups, **_common(row, origin, categories))
    return _marked(made, origin)


def _name(row: dict[str, Any], origin: Column | None) -> str:
    return str(row["name"].strip() if origin is None else row["name"])


def _common(row: dict[str, Any], origin: Column | None, categories: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields that a row gives to every type of column."""
    return {
        "missing": row["missing"],
        "unknown": "missing" if row["unknown"] else "refuse",
        "missing_marks": _marks(row, origin, categories),
        **({} if origin is None else origin.about),
    }


def _marked(column: Column, origin: Column | None) -> Column:
    return column if origin is None else column.marked_like(origin)


def _decimals(row: dict[str, Any]) -> int | None:
    typed = row["decimals"].strip()
    if not typed:
        return None
    if not typed.isascii() or not typed.isdigit():
        raise SchemaError(f"column {row['name']!r}: decimals ({typed!r}) is a whole number from 1 to 9, or blank")
    return int(typed)


def _marks(row: dict[str, Any], origin: Column | None, categories: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The marks of a missing value, while cells may be empty; one that is typed as a category is a mark no more."""
    return tuple(m for m in origin.missing_marks if m not in categories) if origin and row["missing"] else ()


def _identifier_row(identifier: Identifier) -> dict[str, Any]:
    empty = dict.fromkeys(("integer", "missing", "unknown"), False)
    texts = {"guess": "", "name": identifier.name, "categories": "", "decimals": ""}
    texts["edges"] = INVENTED if identifier.invented else ""
    return {"use": True, "kind": "identifier", **empty, **texts}


def _categories(column: Column) -> str:
    if isinstance(column, HierarchyToBuy):
        return f"at most {column.at_most} of {len(column.tree.texts):,} codes in a hierarchy"
    return f"at most {column.at_most}" if isinstance(column, CategoriesToBuy) else join(column.categories)


def _edges(column: Column) -> str:
    if column.dates is not None:
        return _range(column.dates)
    if isinstance(column, NumbersToBuy):
        between = f" from {column.range[0]:.12g} to {column.range[1]:.12g}" if column.range else ""
        return f"{column.bins} bins{between}"
    return "; ".join(f"{e:.12g}" for e in column.edges)


def _to_buy(row: dict[str, Any], numeric: bool) -> Column | None:
    """A row that leaves bins or categories to be bought; None for one that declares them.

    A kind that was changed while the other kind's cell still says “to be bought”, and its own nothing, leaves it so.
    """
    texts = re.fullmatch(r"\s*at most (\d{1,6})\s*", row["categories"])
    found = re.fullmatch(r"\s*(\d{1,3}) bins(?: from (\S+) to (\S+))?\s*", row["edges"])
    if not numeric:
        most = int(texts[1]) if texts else MOST_FOUND if found and not row["categories"].strip() else 0
        return to_buy(row["name"], row["kind"] or "categorical", most) if texts or most else None
    if texts and not row["edges"].strip():
        return to_buy(row["name"], "numeric", bins=BINS_FOUND, integer=row["integer"])
    if found is None:
        return None
    ends = numbers(f"{found[2]}; {found[3]}", row["name"]) if found[2] else None
    limits = (ends[0], ends[1]) if ends else None
    return to_buy(row["name"], "numeric", bins=int(found[1]), range=limits, integer=row["integer"])


def _range(dates: DateBins) -> str:
    return f"{dates.first}; {dates.last}; {dates.by}"


def _dates(text: str, column: str) -> DateBins:
    """The range and period of a date column from a cell."""
    parts = [part.strip() for part in text.split(";")]
    if len(parts) != 3:
        raise SchemaError(
            f"column {column!r}: write the range of its dates like 2020-01-01; 2024-12-31; month", column=column
        )
    return DateBins.from_json({"from": parts[0], "to": parts[1], "by": parts[2]})


def join(categories: tuple[str, ...]) -> str:
    """Categories as one line, parted by semicolons; one with a semicolon or a quote is quoted."""
    quoted = ['"' + p.replace('"', '""') + '"' if re.search(r'[;"\n]|^\s|\s$', p) else p for p in categories]
    return "; ".join(quoted)


def split(text: str) -> tuple[str, ...]:
    """Categories from a cell: parted by semicolons or line ends, quotes around one that holds either."""
    out: list[str] = []
    for match in re.finditer(r'\s*(?:"((?:[^"]|"")*)"\s*(?=[;\n]|$)|([^;\n]*))(?:[;\n]|$)', text):
        quoted, bare = match.group(1), (match.group(2) or "").strip()
        if quoted is not None:
            out.append(quoted.replace('""', '"'))
        elif bare:
            out.append(bare)
    return tuple(out)


def numbers(text: str, column: str) -> tuple[float, ...]:
    """Bin edges from a cell, parted by semicolons or blanks."""
    out = []
    for part in re.split(r"[;\s]+|,\s+", text.strip()):
        if part:
            try:
                out.append(float(part))
            except ValueError:
                raise SchemaError(
                    f"column {column!r}: {part!r} is not a number; write bin edges like 0; 18; 40; 65; 100",
                    column=column,
                ) from None
    return tuple(out)
