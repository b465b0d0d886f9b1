"""PUBLIC description of a table: its columns, its identifiers, and the columns that a guess left out.

For the types of columns see `espalier.core.project.column`, and for the form in the project file
`espalier.core.project.schema_json`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from espalier.core.csv_safety import NUMBER
from espalier.core.errors import SchemaError, first_twice
from espalier.core.project.cells import MISSING
from espalier.core.project.column import FIELDS, LONGEST_LABEL, Column, Kind, smallest_unsigned
from espalier.core.project.column_types import Categories, Dates, Numbers
from espalier.core.project.columns_to_buy import (
    APART,
    BINS_FOUND,
    MOST_BINS,
    MOST_CATEGORIES,
    MOST_FOUND,
    NOT_KNOWN,
    TOP_ONLY,
    CategoriesToBuy,
    HierarchyToBuy,
    NumbersToBuy,
    ToBuy,
    to_buy,
    with_categories,
)

__all__ = [
    "APART",
    "BINS_FOUND",
    "FIELDS",
    "LONGEST_LABEL",
    "MISSING",
    "MOST_BINS",
    "MOST_CATEGORIES",
    "MOST_FOUND",
    "NOT_KNOWN",
    "NUMBER",
    "TOP_ONLY",
    "Categories",
    "CategoriesToBuy",
    "Column",
    "Dates",
    "HierarchyToBuy",
    "Identifier",
    "Kind",
    "LeftOut",
    "Numbers",
    "NumbersToBuy",
    "Schema",
    "ToBuy",
    "smallest_unsigned",
    "to_buy",
    "with_categories",
]


@dataclass(frozen=True)
class LeftOut:
    """A column of the table that a guess left out of the schema. It stays a guess until it is confirmed.

    ``shown`` is the digest of what was shown to the person who confirmed it.
    """

    name: str
    confirmed: bool = False
    shown: str = ""


@dataclass(frozen=True)
class Identifier:
    """A column that identifies rows or people. It is never read, counted or modelled.

    If ``invented``, the released table has this column with made-up values; otherwise it lacks the column. ``place`` is
    its position among all columns.
    """

    name: str
    invented: bool = False
    place: int = 0


@dataclass(frozen=True)
class Schema:
    """All columns, in order; ``schema["age"]`` is a column.

    ``left_out`` are columns of the table that a guess classified as identifiers. The columns of a schema are public,
    but this guess depends on counts of private values, so it must be confirmed like any other. Columns that a person
    leaves out need not be listed.

    >>> import espalier as es
    >>> schema = es.Schema((es.Column("smoker", "categorical", ("no", "yes")),))
    >>> schema.names, schema["smoker"].size
    (('smoker',), 2)
    """

    columns: tuple[Column, ...]
    left_out: tuple[LeftOut, ...] = ()
    identifiers: tuple[Identifier, ...] = ()

    def __post_init__(self) -> None:
        if not self.columns:
            raise SchemaError("the schema has no columns; describe at least one")
        names = self.names
        if (twice := first_twice([*names, *(c.name for c in self.identifiers)])) is not None:
            raise SchemaError(f"the schema names column {twice!r} twice", column=twice)
        if (twice := first_twice([*names, *(c.name for c in self.left_out)])) is not None:
            raise SchemaError(f"left_out names {twice!r}, which is a column in use or is listed twice", column=twice)

    @classmethod
    def to_buy(cls, names: Iterable[str]) -> Schema:
        """Return columns of which only the names are known: text columns with categories to buy, until more is
        declared.
        """
        return cls(tuple(CategoriesToBuy(name, "categorical", MOST_FOUND) for name in names))

    @property
    def undeclared(self) -> tuple[ToBuy, ...]:
        """Columns whose description is still to be bought."""
        return tuple(c for c in self.columns if isinstance(c, ToBuy))

    @property
    def hierarchies(self) -> tuple[HierarchyToBuy, ...]:
        """Columns whose hierarchy is still to be expanded."""
        return tuple(c for c in self.columns if isinstance(c, HierarchyToBuy))

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(c.name for c in self.columns)

    @property
    def released(self) -> tuple[str, ...]:
        """Columns of the released table, in order: these columns and the invented identifiers."""
        out = list(self.names)
        for c in sorted((c for c in self.identifiers if c.invented), key=lambda c: c.place):
            out.insert(c.place, c.name)
        return tuple(out)

    @property
    def sizes(self) -> dict[str, int]:
        """Number of codes of each column, in order. Inference needs nothing else."""
        return {c.name: c.size for c in self.columns}

    @property
    def guessed(self) -> tuple[Column, ...]:
        """Columns with unconfirmed fields."""
        return tuple(c for c in self.columns if c.guessed)

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """Names of unconfirmed columns that a guess put into the schema or left out of it."""
        return (*(c.name for c in self.guessed), *(c.name for c in self.left_out if not c.confirmed))

    def need_distinct(self) -> None:
        """Raise :class:`SchemaError` if two categories of a column are the same value, such as "1" and "1.0"."""
        for column in self.columns:
            if column.doubled is not None:
                one, other = column.doubled
                raise SchemaError(
                    f"column {column.name!r}: {one!r} and {other!r} are the same value, which a database or another "
                    "file format writes in the same way. Join them into one category",
                    column=column.name,
                )

    def __getitem__(self, name: str) -> Column:
        for c in self.columns:
            if c.name == name:
                return c
        raise SchemaError(f"there is no column {name!r} in the schema", column=name)

    def __contains__(self, name: object) -> bool:
        return any(c.name == name for c in self.columns)

    def clique(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names as a clique, without repetition and in schema order."""
        wanted = set(names)
        return tuple(n for n in self.names if n in wanted)
