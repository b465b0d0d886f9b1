"""PUBLIC description of one column, and the mapping of its text to codes and back.

A column has one of these types. Code outside this package uses the common interface or matches on the type:

| type | what it describes | file |
| --- | --- | --- |
| `Categories` | closed categories, ordered if ``kind`` is "ordinal" | `column_types` |
| `Numbers` | numbers in bins | `column_types` |
| `Dates` | days in calendar bins; their numbers count days | `column_types` |
| `CategoriesToBuy`, `NumbersToBuy`, `HierarchyToBuy` | columns whose description a release buys | `columns_to_buy` |

An identifier is not a column: it is never read (`espalier.core.project.schema.Identifier`). Nothing here reads a
private value to learn a domain, because the schema comes from the user or a data dictionary. Guesses from the data are
listed in ``guessed``, and a release refuses them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, get_args

import numpy as np
from numpy.typing import NDArray

from espalier.core.code_books import code_book
from espalier.core.csv_safety import NUMBER
from espalier.core.errors import SchemaError, TableError
from espalier.core.project.cells import MISSING
from espalier.core.project.spellings import spellings

if TYPE_CHECKING:
    from espalier.core.project.dates import DateBins

Kind = Literal["categorical", "ordinal", "numeric"]
FIELDS = {
    "kind": "kind",
    "categories": "categories",
    "edges": "bin edges",
    "integer": "whole numbers",
    "missing": "empty cells",
    "date_order": "order of day, month and year",
    "number_style": "number style",
}
"""Fields that can be guessed from a table, with their names on screen and in the report."""
LONGEST_LABEL = 10_000
"""Maximum number of characters of a label, unit or description."""


def smallest_unsigned(size: int) -> np.dtype[Any]:
    """Return the smallest unsigned integer type that holds codes 0 … size − 1."""
    return np.min_scalar_type(max(size - 1, 0))


_TYPES: dict[str, type[Column]] = {}


@dataclass(frozen=True, init=False, repr=False)
class Column:
    """Description of one column. ``Column(name, kind, …)`` makes the type that the kind needs.

    ``missing`` makes the empty cell a category, always the last code. ``missing_marks`` are values that count as an
    empty cell, such as ``?`` or ``-9``. With ``unknown="missing"``, an undeclared value is read as an empty cell
    instead of being refused. ``guessed`` names the fields that were guessed from the data, in whole or in part, and are
    not confirmed yet. ``confirmed`` names the guessed fields that have been confirmed. The report lists both. ``shown``
    is the digest of what a person saw when they confirmed them.

    ``label``, ``unit`` and ``description`` describe the column for people; ``value_labels`` maps values to labels (in
    the project file: ``labels``). They do not change any cell. They are untrusted: all code that shows them must escape
    them.

    Raises :class:`SchemaError` for an impossible description.

    >>> import espalier as es
    >>> es.Column("smoker", "categorical", ("no", "yes")).size
    2
    >>> age = es.Column("age", "numeric", edges=(0, 18, 65, 120), integer=True)
    >>> age.encode(["17", "70"]).tolist()
    [0, 2]
    """

    name: str
    kind: Kind
    _: KW_ONLY
    missing: bool = False
    unknown: Literal["refuse", "missing"] = "refuse"
    missing_marks: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    label: str = ""
    unit: str = ""
    description: str = ""
    value_labels: tuple[tuple[str, str], ...] = ()
    shown: str = ""

    def __new__(cls, name: str = "", kind: Kind = "categorical", *args: Any, **given: Any) -> Column:  # noqa: ARG004
        """Make an object of the type that ``kind`` needs."""
        if cls is not Column:
            return super().__new__(cls)
        if kind not in get_args(Kind):
            raise SchemaError(
                f"column {name!r}: kind is {kind!r}; it must be categorical, ordinal, numeric, date or identifier",
                column=name,
            )
        return super().__new__(_TYPES[kind if given.get("dates") is None else "date"])

    def __init_subclass__(cls, kinds: Sequence[str] = ()) -> None:
        """Register the type that describes columns of these ``kinds``."""
        _TYPES.update(dict.fromkeys(kinds, cls))

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError("a column's name must be text of at least one character", column=self.name)
        self._check()
        if self.unknown not in ("refuse", "missing"):
            raise self.error(f'"unknown" must be "refuse" or "missing", not {self.unknown!r}')
        if self.unknown == "missing" and not self.missing:
            raise self.error('"unknown": "missing" needs "missing": true')
        if self.missing_marks and not self.missing:
            raise self.error('"missing_marks" needs "missing": true')
        if taken := set(self.missing_marks) & {MISSING, *self.categories, *(t for _, g in self.groups for t in g)}:
            raise self.error(f"{min(taken)!r} cannot mark a missing value, because it is empty or is also a value")
        if self.code_book:
            code_book(self.code_book)
        if not isinstance(self.shown, str):
            raise self.error('"shown" must be a digest, as text')
        for text in (self.label, self.unit, self.description, *(t for pair in self.value_labels for t in pair)):
            if not isinstance(text, str) or len(text) > LONGEST_LABEL:
                raise self.error(f"labels, units and descriptions must be text of at most {LONGEST_LABEL:,} characters")
        for key, marked in (("guessed", self.guessed), ("confirmed", self.confirmed)):
            if odd := set(marked) - FIELDS.keys():
                raise self.error(f"{key} names {sorted(odd)}, which are not fields that can be guessed")

    def __repr__(self) -> str:
        shown = "Column" if type(self) in _TYPES.values() else type(self).__name__
        known = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return f"{shown}({', '.join(f'{name}={value!r}' for name, value in known.items())})"

    def error(self, text: str) -> SchemaError:
        """Return an error that names the column."""
        return SchemaError(f"column {self.name!r}: {text}", column=self.name)

    def _check(self) -> None:
        """Raise :class:`SchemaError` for impossible fields of the type."""
        raise NotImplementedError

    # Fields that only some types have ----------------------------------------------------------------------

    @property
    def categories(self) -> tuple[str, ...]:
        """Text values, which are compared as written; empty for numbers."""
        return ()

    @property
    def groups(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Categories, each with the table's values that are merged into it."""
        return ()

    @cached_property
    def texts(self) -> Mapping[str, int]:
        """Every text that has a code: categories, members of groups, and other spellings of both. Texts in
        :attr:`missing_marks` are excluded. Empty for numbers in bins.
        """
        known = self._listed
        more = {} if self.code_book else spellings(known)[0]
        return {**known, **{text: code for text, code in more.items() if text not in self.missing_marks}}

    @property
    def _listed(self) -> dict[str, int]:
        known = {category: i for i, category in enumerate(self.categories)}
        return known | {member: known[group] for group, members in self.groups for member in members}

    @property
    def doubled(self) -> tuple[str, str] | None:
        """Two listed text values with the same meaning but different codes, such as "1" and "1.0"; `None` if there are
        none.
        """
        return None if self.code_book else spellings(self._listed)[1]

    @property
    def code_book(self) -> str:
        """Name of the codebook (`espalier.core.code_books`) that contains the codes; empty if there is none."""
        return ""

    @property
    def edges(self) -> tuple[float, ...]:
        """Bin edges; empty for categories."""
        return ()

    @property
    def integer(self) -> bool:
        """True if the numbers are whole."""
        return False

    @property
    def decimals(self) -> int | None:
        """Declared number of decimals; if `None`, the bins determine it."""
        return None

    @property
    def number_style(self) -> str:
        """Style in which the table writes numbers; empty for a plain decimal point."""
        return ""

    @property
    def as_released(self) -> Column:
        """Description for reading released cells, whose numbers have a decimal point."""
        return self

    @property
    def date_order(self) -> str:
        """Order of day, month and year in which the table writes dates; empty for ISO dates."""
        return ""

    @property
    def dates(self) -> DateBins | None:
        """Calendar bins of a column of dates."""
        return None

    # Codes -----------------------------------------------------------------------------------------------------------

    @property
    def values(self) -> int:
        """Number of categories or bins, not counting the code of a missing cell."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Number of codes: categories or bins, plus one if cells may be missing."""
        return self.values + self.missing

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of the codes, without the code of a missing cell."""
        raise NotImplementedError

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the codes on screen and in the report."""
        return (*self.value_names, "(missing)") if self.missing else self.value_names

    @property
    def named(self) -> dict[str, tuple[int, ...]]:
        """Categories that questions and constraints may name, with the codes of each."""
        return {text: (i,) for i, text in enumerate(self.categories)}

    @property
    def nameable(self) -> tuple[str, ...]:
        """Values that a question may name; empty if none is known before the release."""
        return self.labels

    @property
    def reads_texts(self) -> bool:
        """True if the release buys the description by counting text values of the column."""
        return False

    def label_of(self, text: str) -> str:
        """Return the label of a value or group; an empty string if it has none."""
        return self._value_labels.get(text, "")

    @cached_property
    def _value_labels(self) -> dict[str, str]:
        from_book = code_book(self.code_book).labels if self.code_book else {}
        return {**from_book, **dict(self.value_labels)}

    @property
    def about(self) -> dict[str, Any]:
        """Labels, unit and description of the column, as fields for another :class:`Column`."""
        keys = ("label", "unit", "description", "value_labels")
        return {key: getattr(self, key) for key in keys}

    @property
    def empty_code(self) -> int:
        """Code that :meth:`judge` returns for an empty cell: the missing code, or ``size + 1`` if empty cells are
        refused.
        """
        return self.values if self.missing else self.size + 1

    @property
    def unknown_code(self) -> int:
        """Code that :meth:`judge` returns for an undeclared value: the missing code, or ``size`` if such values are
        refused.
        """
        return self.values if self.unknown == "missing" else self.size

    def judge(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the code of each text. A text without a code gets :attr:`empty_code` or :attr:`unknown_code`.

        Each code depends on its own text and on this description only. Columns with a hierarchy are read by
        :func:`espalier.core.project.public_grid.as_read` first.
        """
        raise NotImplementedError

    def encode(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the code of each text. Pass distinct values rather than every cell.

        Raises a :class:`TableError` that names the column and the value if the description does not allow the text.
        """
        codes = self.judge(texts)
        for i in np.flatnonzero(codes >= self.size)[:1].tolist():
            self.refuse_empty() if codes[i] == self.empty_code else self.refuse_unknown(texts[i])
        return codes

    def decode(self, codes: NDArray[Any], rng: np.random.Generator) -> list[str]:  # noqa: ARG002
        """Return text for ``codes``. Numbers are drawn inside their bins (`espalier.core.project.bin_density`)."""
        names = np.array([*self.categories, MISSING], dtype=object)
        cells: list[str] = names[codes].tolist()
        return cells

    def why_not_released(self, text: str) -> str:
        """Return why no release contains ``text`` in this column, as the end of a sentence; empty if one can."""
        known = text in self.categories or (self.missing and text == MISSING)
        return "" if known else "is not among its declared categories"

    def is_empty(self, text: str) -> bool:
        """Return whether ``text`` counts as an empty cell."""
        return text == MISSING or text in self.missing_marks

    _why_unknown = "is not among its declared categories"

    def refuse_empty(self) -> NoReturn:
        """Raise the error for an empty cell that is refused."""
        raise TableError(
            f'column {self.name!r} has empty cells, but its schema does not set "missing": true',
            column=self.name,
            value=MISSING,
        )

    def refuse_unknown(self, text: str) -> NoReturn:
        """Raise the error for an undeclared value that is refused."""
        shown = text if len(text) <= 60 else text[:57] + "…"
        raise TableError(
            f"column {self.name!r}: the value {shown!r} {self._why_unknown}; correct the table, declare "
            f'the value, or set "unknown": "missing"',
            column=self.name,
            value=text,
        )

    # Numbers only ----------------------------------------------------------------------------------------------------

    @property
    def step(self) -> float:
        """Declared precision: the smallest difference between two numbers; 0 if no precision is declared."""
        return 1.0 if self.integer else 0.0 if self.decimals is None else 10.0**-self.decimals

    @property
    def middles(self) -> NDArray[np.float64]:
        """Middle of each bin; NaN for the code of a missing cell."""
        edges = np.asarray(self.edges)
        return np.append((edges[:-1] + edges[1:]) / 2, [np.nan] * self.missing)

    def bins_of(self, numbers: NDArray[Any]) -> NDArray[np.int64]:
        """Return the bin of each number: the number of inner edges at or below it."""
        return np.searchsorted(np.asarray(self.edges[1:-1], dtype=np.float64), numbers, side="right").astype(np.int64)

    def coarser(self, values: int) -> Column | None:  # noqa: ARG002
        """Return this column with at most ``values`` codes, including that of a missing cell, or `None` if a person
        must choose them.
        """
        return None

    def numbers(self, texts: Sequence[str]) -> NDArray[np.float64]:  # noqa: ARG002
        """Return the number of each text (for a date, the day); NaN for an empty cell and for any other text."""
        raise self.error("has no numbers")

    def write(self, numbers: NDArray[np.float64], codes: NDArray[Any]) -> list[str]:  # noqa: ARG002
        """Return text for ``numbers``, each inside the bin of its code."""
        raise self.error("has no numbers")

    def confirm(self, digest: str) -> Self:
        """Return this description with its guesses confirmed; ``digest`` identifies what was shown."""
        return replace(self, guessed=(), confirmed=tuple(dict.fromkeys((*self.confirmed, *self.guessed))), shown=digest)

    def reopened(self) -> Self:
        """Return this description with confirmed guesses marked as guessed again."""
        return replace(self, guessed=tuple(dict.fromkeys((*self.guessed, *self.confirmed))), confirmed=(), shown="")

    def marked_like(self, origin: Column) -> Self:
        """Return this description with the fields that are guessed or confirmed in ``origin``, which it replaces.

        A field keeps its status as long as a part of the guess remains. A list stays guessed (or confirmed) as long as
        one of its categories, bin edges or group members is present, even if categories became edges, because adding
        values to a guessed list does not declare its other values. Any other field keeps its status as long as its
        value is unchanged.
        """
        lists = {"categories", "edges"}
        same = {f for f in FIELDS.keys() - lists if getattr(self, f) == getattr(origin, f)}
        same |= lists if _stated(self) & _stated(origin) else set()
        now = "edges" if self.kind == "numeric" else "categories"

        def kept(marked: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(dict.fromkeys(now if f in lists else f for f in marked if f in same))

        return replace(self, guessed=kept(origin.guessed), confirmed=kept(origin.confirmed))


def _stated(column: Column) -> set[str]:
    """Return every value in a description, with each number in a canonical spelling."""
    texts = {*column.categories, *(text for _, members in column.groups for text in members)}
    return {plain_text(float(t)) if NUMBER.fullmatch(t) else t for t in texts} | {plain_text(e) for e in column.edges}


def plain_text(x: float) -> str:
    """Return a number in its canonical spelling, with thousands separators."""
    return f"{x:,.10g}"
