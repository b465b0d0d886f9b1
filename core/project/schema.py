"""The PUBLIC description of each column: kind, categories, bin edges, missing; and the mapping of text to codes.

Nothing here reads a private value to learn a domain: the schema comes from the user or a data dictionary.
Guesses from the data are listed in :attr:`Column.guessed` and a release refuses them.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from espalier.core.code_books import checked_book, code_book
from espalier.core.errors import SchemaError, TableError
from espalier.core.project.bin_density import places
from espalier.core.project.cells import MISSING as MISSING
from espalier.core.project.dates import DateBins, date_texts, day_number
from espalier.core.project.hierarchy import Cut, Hierarchy
from espalier.core.project.numerals import STYLES, plain_number

Kind = Literal["categorical", "ordinal", "numeric"]
NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_KEYS = {
    "at_most",
    "bins",
    "range",
    "name",
    "kind",
    "categories",
    "groups",
    "edges",
    "integer",
    "decimals",
    "missing",
    "unknown",
    "guessed",
    "confirmed",
    "shown",
    "dates",
    "missing_marks",
    "hierarchy",
    "code_book",
    "number_style",
    "label",
    "unit",
    "description",
    "labels",
}
_DESCRIBED = ("label", "unit", "description")
"""Texts about a column for people to read."""
LONGEST_LABEL = 10_000
"""Characters of a label, unit or description at most."""
FIELDS = {
    "kind": "kind",
    "categories": "categories",
    "edges": "bin edges",
    "integer": "whole numbers",
    "missing": "empty cells",
}
"""What can be guessed off a table, and what it is called on screen and in the report."""


APART = 100
"""Largest number of codes and groups after expansion of a hierarchy, unless the column gives another."""

NOT_KNOWN = (
    "What its bins or categories will be is bought at release and not known before: declare them, or leave the column "
    "out here"
)
"""Why a question or a constraint cannot name a column that is to be bought."""

TOP_ONLY = (
    "The release buys how deep a hierarchy is expanded, so inner codes are not known before. Name an entry of the top "
    "level, which is always known"
)
"""Why a question or a constraint cannot name a code inside a hierarchy."""

MOST_BINS, MOST_CATEGORIES = 64, 10_000
"""Bins and categories that can be bought of a column at most."""

BINS_FOUND, MOST_FOUND = 10, 50
"""Default number of bins, and largest default number of categories, of a column that is bought."""


def smallest_unsigned(size: int) -> np.dtype[Any]:
    """The smallest unsigned integer type that holds codes 0 … size − 1."""
    return np.min_scalar_type(max(size - 1, 0))


@dataclass(frozen=True)
class Column:
    """One column's public description.

    ``categories`` are texts, compared as written (categorical, ordinal). ``edges`` are a numeric column's bin
    edges: bins are half-open ``[e0, e1)``, the last one closed; a number outside is clipped into the outermost
    bin. ``missing`` makes the empty cell a category, always the last code. ``missing_marks`` are texts that count as an
    empty cell, such as ``?`` or ``-9``. ``unknown="missing"`` sends text that is not declared there instead of refusing
    it. ``groups`` pairs a category with texts of the table that count as
    it (public coarsening: ``("Other", ("baker", "diver"))``). ``guessed`` names the fields that were guessed from the
    data, in whole or in part, and are not confirmed yet, ``confirmed`` those that are: the report
    lists them. ``shown`` is the digest of what a person saw when they confirmed them.
    ``dates`` makes a numeric column one of dates: its numbers are days, its edges and labels those of calendar periods,
    and its texts ISO dates. In the project file its kind is ``date``. ``decimals`` is the declared
    precision of numbers that are not whole: how many figures they have after the point; None leaves it to the bins.

    A column may be left undeclared, for a plan that buys its description: ``at_most`` limits its number of
    categories, ``bins`` its number of bins, over ``range`` where that is known. Until then its categories or edges only
    hold the place (:meth:`to_buy`), and the empty cell is one of its codes.

    ``hierarchy`` pairs each code and group with the group it belongs to (empty: none). Then the codes are known, and
    the budget buys how deep it is expanded: to at most ``at_most`` codes and groups (:meth:`of_hierarchy`).
    ``code_book`` names the book of `espalier.core.code_books` that the codes are from; a text that counts as one of its
    codes is read as that code.

    ``number_style`` is how the table writes numbers, one of `espalier.core.project.numerals.STYLES`; empty for a plain
    point. ``label``, ``unit`` and ``description`` are texts for people; ``value_labels`` pairs values with theirs (in
    the project file: ``labels``). They change no cell. They are untrusted: what shows them escapes them.

    Raises :class:`SchemaError` for a description that cannot be.

    >>> import espalier as es
    >>> es.Column("smoker", "categorical", ("no", "yes")).size
    2
    >>> age = es.Column("age", "numeric", edges=(0, 18, 65, 120), integer=True)
    >>> age.encode(["17", "70"]).tolist()
    [0, 2]
    """

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    integer: bool = False
    missing: bool = False
    unknown: Literal["refuse", "missing"] = "refuse"
    guessed: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    dates: DateBins | None = None
    at_most: int = 0
    bins: int = 0
    range: tuple[float, float] | None = None
    decimals: int | None = None
    missing_marks: tuple[str, ...] = ()
    hierarchy: tuple[tuple[str, str], ...] = ()
    code_book: str = ""
    number_style: str = ""
    label: str = ""
    unit: str = ""
    description: str = ""
    value_labels: tuple[tuple[str, str], ...] = ()
    shown: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError("a column needs a name that is a text of at least one character", column=self.name)
        if self.kind not in get_args(Kind):
            raise self._error(f"kind is {self.kind!r}; it must be categorical, ordinal, numeric, date or identifier")
        if self.dates is not None and (self.kind, self.edges, self.integer) != ("numeric", self.dates.edges, True):
            raise self._error("a column of dates takes its bins from its range and period")
        if self.kind == "numeric":
            self._check_edges()
        else:
            self._check_categories()
        if self.unknown not in ("refuse", "missing"):
            raise self._error(f'unknown is {self.unknown!r}; the only other policy is "missing"')
        if self.unknown == "missing" and not self.missing:
            raise self._error('"unknown": "missing" needs "missing": true, so that there is a place for them')
        if self.missing_marks and not self.missing:
            raise self._error('"missing_marks" needs "missing": true, so that there is a place for them')
        if taken := set(self.missing_marks) & {MISSING, *self.categories, *(t for _, g in self.groups for t in g)}:
            raise self._error(f"{min(taken)!r} cannot be both a mark of a missing value and a value, or an empty text")
        if self.number_style and (self.kind != "numeric" or self.dates is not None or self.number_style not in STYLES):
            raise self._error(f"number_style belongs to numbers, and is one of {', '.join(STYLES)}")
        if self.code_book:
            code_book(self.code_book)
        if not isinstance(self.shown, str):
            raise self._error('"shown" is the digest of what was shown, as a text')
        for text in (self.label, self.unit, self.description, *(t for pair in self.value_labels for t in pair)):
            if not isinstance(text, str) or len(text) > LONGEST_LABEL:
                raise self._error(f"labels, units and descriptions are texts of at most {LONGEST_LABEL:,} characters")
        for key, fields in (("guessed", self.guessed), ("confirmed", self.confirmed)):
            if odd := set(fields) - FIELDS.keys():
                raise self._error(f"{key} names {sorted(odd)}, which are not fields that can be guessed")

    def _error(self, text: str) -> SchemaError:
        return SchemaError(f"column {self.name!r}: {text}", column=self.name)

    def _check_edges(self) -> None:
        if self.categories or self.groups:
            raise self._error("a numeric column has edges, not categories or groups")
        if len(self.edges) < 2 or not all(math.isfinite(e) for e in self.edges):
            raise self._error("a numeric column needs at least two finite edges")
        for low, high in zip(self.edges, self.edges[1:], strict=False):
            if not low < high:
                raise self._error(f"edges must increase, but {high:g} follows {low:g}")
        if self.decimals is not None:
            self._check_decimals()
        if self.integer:
            for i, (low, high) in enumerate(zip(self.edges, self.edges[1:], strict=False)):
                first, last = _whole_numbers(low, high, closed=i == len(self.edges) - 2)
                if first > last:
                    raise self._error(f"the bin from {low:g} to {high:g} holds no whole number")

    def _check_decimals(self) -> None:
        if isinstance(self.decimals, bool) or not isinstance(self.decimals, int) or not 1 <= self.decimals <= 9:
            raise self._error('"decimals" is a whole number from 1 to 9; for whole numbers say "integer": true')
        if self.integer:
            raise self._error('whole numbers have no decimals: give "integer" or "decimals"')
        if odd := [e for e in self.edges if abs(round(e, self.decimals) - e) > 1e-9 * max(1.0, abs(e))]:
            raise self._error(f"the edge {odd[0]:.12g} has more than {self.decimals} decimals, the declared precision")

    def _check_categories(self) -> None:
        if self.edges:
            raise self._error("a column with categories has no edges; use kind numeric for edges")
        if self.integer or self.decimals is not None:
            raise self._error('"integer" and "decimals" belong to numeric columns')
        if not self.categories:
            raise self._error("list at least one category")
        if not all(isinstance(c, str) for c in self.categories):
            raise self._error("categories must be texts, in quotes")
        if MISSING in self.categories:
            raise self._error('an empty text is not a category; say "missing": true instead')
        if len(set(self.categories)) < len(self.categories):
            twice = next(c for c in self.categories if self.categories.count(c) > 1)
            raise self._error(f"category {twice!r} is listed twice")
        seen = set(self.categories)
        for group, members in self.groups:
            if group not in self.categories:
                raise self._error(f"the group {group!r} must be one of the categories")
            for member in members:
                if member in seen or member == MISSING:
                    raise self._error(f"{member!r} in group {group!r} is empty, a category, or in a group already")
                seen.add(member)

    @property
    def undeclared(self) -> bool:
        """Whether its bins or categories are still to be bought."""
        return bool(self.at_most or self.bins)

    @classmethod
    def to_buy(
        cls,
        name: str,
        kind: Kind,
        at_most: int = 0,
        bins: int = 0,
        range: tuple[float, float] | None = None,
        integer: bool = False,
    ) -> Column:
        """Return a column with declared name and kind only (and the range of its numbers, where it is known)."""
        numeric = kind == "numeric"
        if numeric and not 2 <= bins <= MOST_BINS:
            raise SchemaError(f"column {name!r}: from 2 to {MOST_BINS} bins can be bought", column=name)
        if not numeric and not 1 <= at_most <= MOST_CATEGORIES:
            raise SchemaError(f"column {name!r}: from 1 to {MOST_CATEGORIES:,} categories can be bought", column=name)
        if range is not None and not (math.isfinite(range[0]) and math.isfinite(range[1]) and range[0] < range[1]):
            raise SchemaError(f"column {name!r}: a range goes from a number up to a larger one", column=name)
        if range is not None and integer and math.floor(range[1]) - math.ceil(range[0]) < 2:
            raise SchemaError(f"column {name!r}: the range holds too few whole numbers", column=name)
        edges = tuple(float(i) for i in np.arange(bins + 1)) if numeric else ()
        categories = () if numeric else tuple(f"category {i + 1}" for i in np.arange(at_most))
        return cls(
            name,
            kind,
            categories,
            edges,
            integer and numeric,
            True,
            "missing",
            at_most=0 if numeric else at_most,
            bins=bins if numeric else 0,
            range=range if numeric else None,
        )

    @classmethod
    def of_hierarchy(
        cls,
        name: str,
        hierarchy: Mapping[str, str],
        at_most: int = APART,
        *,
        missing: bool = False,
        unknown: str = "",
        missing_marks: tuple[str, ...] = (),
        code_book: str = "",
    ) -> Column:
        """Return a column of many codes in groups of groups, to be expanded within the budget.

        Raises :class:`SchemaError` for a hierarchy that cannot be, or that has more than ``at_most`` codes and groups
        at the top.
        """
        held = cls.to_buy(name, "categorical", at_most)
        made = replace(
            held,
            missing=missing or unknown == "missing",
            unknown="missing" if unknown == "missing" else "refuse",
            hierarchy=tuple(hierarchy.items()),
            missing_marks=missing_marks,
            code_book=code_book,
        )
        top = len(made.tree.children[-1]) - made.missing
        if top > at_most:
            alone = [made.tree.labels[node] for node in made.tree.children[-1] if node < made.tree.codes]
            codes = f" ({len(alone)} of them codes, such as {alone[0]!r})" if alone else ""
            raise SchemaError(
                f"column {name!r}: the top of the hierarchy has {top:,} codes and groups{codes}, and at most {at_most} "
                "are allowed: put them into groups, or raise at_most",
                column=name,
            )
        return made

    @classmethod
    def of_book(
        cls, name: str, book: str, at_most: int = APART, *, missing: bool = False, missing_marks: tuple[str, ...] = ()
    ) -> Column:
        """Return a column that uses a whole code book as its hierarchy; raise :class:`SchemaError` for no such book."""
        groups = code_book(book).groups
        return cls.of_hierarchy(name, groups, at_most, missing=missing, missing_marks=missing_marks, code_book=book)

    @cached_property
    def tree(self) -> Hierarchy:
        """The hierarchy, read; raises :class:`SchemaError`."""
        return Hierarchy.of(self.name, dict(self.hierarchy), missing=self.missing)

    @cached_property
    def named(self) -> dict[str, tuple[int, ...]]:
        """The categories that questions and constraints may name, with the codes of each.

        Before expansion of a hierarchy they are the codes and groups at its top, which stay separate from
        one another whatever the budget (:func:`espalier.core.project.hierarchy.descend`). Until then codes
        only hold the place: one for each of them, the codes that are left over for the last. Of another column that is
        to be bought nothing is known.
        """
        if not self.undeclared:
            return {text: (i,) for i, text in enumerate(self.categories)}
        if not self.hierarchy:
            return {}
        tops = [self.tree.labels[n] for n in self.tree.children[-1] if not (self.missing and n == self.tree.codes - 1)]
        last = len(tops) - 1
        return {text: (i,) if i < last else tuple(range(i, self.values)) for i, text in enumerate(tops)}

    def inside(self, bought: Column) -> dict[str, tuple[str, ...]]:
        """For each code or group at the top of the hierarchy, the categories of ``bought`` that it holds; ``bought`` is
        this column after expansion."""
        members, out = dict(bought.groups), dict[str, tuple[str, ...]]()
        place = {text: code for code, text in enumerate(self.tree.texts)}
        for category in bought.categories:
            code = place[members.get(category, (category,))[0]]
            top = self.tree.labels[self.tree.above(code)[-1]]
            out[top] = (*out.get(top, ()), category)
        return out

    def told_apart(self, cut: Cut) -> Column:
        """Return the column with its hierarchy divided by ``cut``: the parts are its categories, and a group counts for
        all codes in it."""
        held: dict[int, list[str]] = {}
        for text, group in zip(self.tree.texts, cut.groups.tolist(), strict=False):
            held.setdefault(group, []).append(text)
        found = [(cut.names[group], tuple(inside)) for group, inside in held.items()]
        return Column(
            self.name,
            self.kind,
            tuple(name for name, _ in found),
            missing=self.missing,
            unknown=self.unknown,
            groups=tuple((name, inside) for name, inside in found if inside != (name,)),
            missing_marks=self.missing_marks,
            code_book=self.code_book,
            label=self.label,
            unit=self.unit,
            description=self.description,
            value_labels=self.value_labels,
            confirmed=self.confirmed,
            shown=self.shown,
        )

    def label_of(self, text: str) -> str:
        """The label of a value or group; an empty text if it has none."""
        return self._value_labels.get(text, "")

    @cached_property
    def _value_labels(self) -> dict[str, str]:
        from_book = code_book(self.code_book).labels if self.code_book else {}
        return {**from_book, **dict(self.value_labels)}

    @property
    def step(self) -> float:
        """The declared precision of numbers: what two of them differ by at least. 0 for none."""
        return 1.0 if self.integer else 0.0 if self.decimals is None else 10.0**-self.decimals

    @property
    def values(self) -> int:
        """Number of categories or bins, without missing."""
        return len(self.edges) - 1 if self.kind == "numeric" else len(self.categories)

    @cached_property
    def middles(self) -> NDArray[np.float64]:
        """The middle of each bin of a numeric column, NaN for a missing cell."""
        edges = np.asarray(self.edges)
        return np.append((edges[:-1] + edges[1:]) / 2, [np.nan] * self.missing)

    @property
    def size(self) -> int:
        """Number of codes: categories or bins, and one more where cells may be missing."""
        return self.values + self.missing

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the codes on screen and in the report."""
        if self.dates is not None:
            shown = list(self.dates.labels)
        elif self.kind == "numeric":
            bins = list(zip(self.edges, self.edges[1:], strict=False))
            shown = [f"{_plain(a)} – <{_plain(b)}" for a, b in bins[:-1]]
            shown += [f"{_plain(a)} – {_plain(b)}" for a, b in bins[-1:]]
        else:
            shown = list(self.categories)
        return (*shown, "(missing)") if self.missing else tuple(shown)

    def encode(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The code of each text (meant for distinct texts, not for every cell).

        Raises :class:`TableError` naming column and value for text that the description does not allow.
        """
        if self.hierarchy:  # which code is which is not told yet, only that it is one
            return np.where(self.leaves(texts) < len(self.tree.texts), 0, self.values)
        codes = self.judge(texts)
        for i in np.flatnonzero(codes >= self.size)[:1].tolist():
            self._refuse_empty() if codes[i] == self.empty_code else self._refuse_unknown(texts[i])
        return codes

    @property
    def empty_code(self) -> int:
        """What :meth:`judge` says of an empty cell: the code of the missing, or ``size + 1`` where it is refused."""
        return self.values if self.missing else self.size + 1

    @property
    def unknown_code(self) -> int:
        """What :meth:`judge` says of an undeclared value: the code of the missing, or ``size`` where it is refused."""
        return self.values if self.unknown == "missing" else self.size

    def judge(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The code of each text; :attr:`empty_code` and :attr:`unknown_code` for a text that has none.

        Each code depends on its own text and on this description only. Columns with a hierarchy are read by
        :func:`espalier.core.project.public_grid.as_read` first.
        """
        if self.kind != "numeric":
            known = {c: i for i, c in enumerate(self.categories)}
            known |= {member: known[group] for group, members in self.groups for member in members}
            known |= dict.fromkeys((MISSING, *self.missing_marks), self.empty_code)
            unknown = self.unknown_code
            if self.code_book:
                leaf = code_book(self.code_book).leaf
                texts = [text if text in known else leaf(text) or text for text in texts]
            return np.fromiter((known.get(text, unknown) for text in texts), np.int64, len(texts))
        numbers = [self._number(text) for text in texts]
        codes = self.bins_of(np.array([math.nan if x is None else x for x in numbers], dtype=np.float64))
        for i, number in enumerate(numbers):
            if number is None:
                codes[i] = self.empty_code if self._empty(texts[i]) else self.unknown_code
        return codes

    def bins_of(self, numbers: NDArray[Any]) -> NDArray[np.int64]:
        """The bin of each number of a numeric column: how many inner edges are at or below it."""
        return np.searchsorted(np.asarray(self.edges[1:-1], dtype=np.float64), numbers, side="right").astype(np.int64)

    def leaves(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The code of each text in the hierarchy, the missing cell's last; raises :class:`TableError`."""
        known = {text: i for i, text in enumerate(self.tree.texts)}
        out = np.full(len(texts), len(known), dtype=np.int64)
        for i, text in enumerate(texts):
            code = text if text in known or not self.code_book else code_book(self.code_book).leaf(text)
            if self._empty(text):
                if not self.missing:
                    self._refuse_empty()
            elif code in known:
                out[i] = known[code]
            elif self.unknown != "missing":
                self._refuse_unknown(text)
        return out

    def numbers(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The number (of a date: the day) that each text says, NaN for an empty cell and for what says none.

        A number too large for a float is the column's outermost edge, as it is in its bins; edges that are still to be
        bought say nothing, so that it is the largest float.
        """
        known = np.array([math.nan if x is None else x for x in map(self._number, texts)], dtype=np.float64)
        if self.undeclared or not self.edges:
            return np.clip(known, -sys.float_info.max, sys.float_info.max)
        return np.where(np.isinf(known), np.clip(known, self.edges[0], self.edges[-1]), known)

    def _empty(self, text: str) -> bool:
        return text == MISSING or text in self.missing_marks

    def _number(self, text: str) -> float | None:
        if text in self.missing_marks:
            return None
        if self.dates is not None:
            return day_number(text)
        if self.number_style:
            plain = plain_number(text, self.number_style)
            return None if plain is None else float(plain)
        return float(text) if NUMBER.fullmatch(text) else None

    def _refuse_empty(self) -> None:
        raise TableError(
            f'column {self.name!r} has empty cells, but its schema does not say "missing": true',
            column=self.name,
            value=MISSING,
        )

    def _refuse_unknown(self, text: str) -> None:
        if self.kind != "numeric":
            why = "is not among its declared categories"
        else:
            why = "is not a number" if self.dates is None else "is not a date written as 2024-01-31"
        shown = text if len(text) <= 60 else text[:57] + "…"
        raise TableError(
            f"column {self.name!r}: the value {shown!r} {why}; correct the table, declare it, "
            f'or say "unknown": "missing"',
            column=self.name,
            value=text,
        )

    def decode(self, codes: NDArray[Any], rng: np.random.Generator) -> list[str]:
        """Return texts for ``codes``. Numbers are drawn inside their bins (`espalier.core.project.bin_density`)."""
        if self.kind != "numeric":
            names = np.array([*self.categories, MISSING], dtype=object)
            cells: list[str] = names[codes].tolist()
            return cells
        low = np.asarray(self.edges[:-1])[np.minimum(codes, self.values - 1)]
        high = np.asarray(self.edges[1:])[np.minimum(codes, self.values - 1)]
        inside = places(self.edges, codes, rng)
        if self.integer:
            last_bin = codes == self.values - 1
            first = np.ceil(low)
            count = np.where(last_bin, np.floor(high), np.ceil(high) - 1) - first + 1
            drawn = first + np.floor(inside * count)
        else:
            drawn = low + inside * (high - low)
        return self.write(drawn, codes)

    def write(self, numbers: NDArray[np.float64], codes: NDArray[Any]) -> list[str]:
        """Texts for ``numbers`` of a numeric column, each inside the bin that its code says.

        A whole number or one of the declared decimals, else five figures of the bin's width.
        """
        if self.integer:
            known, place = np.unique(numbers, return_inverse=True)
            shown = [str(int(x)) for x in known.tolist()] if self.dates is None else date_texts(np.floor(known))
            texts: list[str] = np.array(shown, dtype=object)[place].tolist()
        else:
            low = np.asarray(self.edges[:-1])[np.minimum(codes, self.values - 1)]
            high = np.asarray(self.edges[1:])[np.minimum(codes, self.values - 1)]
            # five figures of a bin's width are enough, where no precision is declared
            step = self.step or 10.0 ** (np.floor(np.log10(high - low)) - 4)
            numbers = np.maximum(np.floor(numbers / step + 1e-9) * step, low)
            texts = [f"{x:.12g}" if self.decimals is None else f"{x:.{self.decimals}f}" for x in numbers]
            ends = high == self.edges[-1]  # the last bin is closed
            texts = [
                t if lo <= float(t) < hi or (end and float(t) == hi) else repr(lo)
                for t, lo, hi, end in zip(texts, low.tolist(), high.tolist(), ends.tolist(), strict=True)
            ]
        if self.missing:
            texts = [MISSING if code == self.values else t for t, code in zip(texts, codes.tolist(), strict=True)]
        return texts

    def to_json(self) -> dict[str, Any]:
        """Return the column as the project file stores it."""
        out: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if self.undeclared:
            known = {"at_most": self.at_most, "bins": self.bins, "integer": self.integer}
            out |= {k: v for k, v in known.items() if v}
            if self.hierarchy:
                out |= {"missing": True} if self.missing else {}
                out |= {"unknown": self.unknown} if self.unknown == "missing" else {}
                out |= {"missing_marks": list(self.missing_marks)} if self.missing_marks else {}
                out |= self._book_json() or {"hierarchy": dict(self.hierarchy)}
                out |= {"confirmed": list(self.confirmed)} if self.confirmed else {}
            out |= self._described_json()
            out |= {"shown": self.shown} if self.shown else {}
            return {**out, **({"range": list(self.range)} if self.range else {})}
        if self.dates is not None:
            out |= {"kind": "date", "dates": self.dates.to_json()}
        elif self.kind == "numeric":
            out["edges"] = [int(e) if e == int(e) and abs(e) < 2**53 else e for e in self.edges]
        else:
            out["categories"] = list(self.categories)
        if self.groups:
            out["groups"] = {group: list(members) for group, members in self.groups}
        if self.decimals is not None:
            out["decimals"] = self.decimals
        out |= self._book_json() | self._described_json()
        out |= {"number_style": self.number_style} if self.number_style else {}
        for key in ("integer", "missing"):
            if getattr(self, key) and (key != "integer" or self.dates is None):
                out[key] = True
        if self.unknown != "refuse":
            out["unknown"] = self.unknown
        if self.missing_marks:
            out["missing_marks"] = list(self.missing_marks)
        for key in ("guessed", "confirmed"):
            if fields := getattr(self, key):
                out[key] = list(fields)
        if self.shown:
            out["shown"] = self.shown
        return out

    def _book_json(self) -> dict[str, Any]:
        """The code book by its name and digest; nothing where there is none."""
        if not self.code_book:
            return {}
        return {"code_book": {"name": self.code_book, "digest": code_book(self.code_book).digest}}

    def _described_json(self) -> dict[str, Any]:
        """The texts for people; nothing where there are none."""
        out: dict[str, Any] = {key: text for key in _DESCRIBED if (text := getattr(self, key))}
        return {**out, **({"labels": dict(self.value_labels)} if self.value_labels else {})}

    @classmethod
    def from_json(cls, data: Any) -> Column:
        """A column from the project file; raises :class:`SchemaError`."""
        if not isinstance(data, Mapping):
            raise SchemaError(f"each entry of the schema must be an object, not {data!r}")
        texts = {key: data[key] for key in (*_DESCRIBED, "shown", "labels") if key in data}
        if not texts:
            return cls._from_json(data)
        made = cls._from_json({key: value for key, value in data.items() if key not in texts})
        labels = texts.pop("labels", {})
        if not isinstance(labels, Mapping):
            raise made._error("labels must be an object, value to label")
        return replace(made, **texts, value_labels=tuple(labels.items()))

    @classmethod
    def _from_json(cls, data: Mapping[str, Any]) -> Column:
        """A column without its texts for people."""
        name = data.get("name")
        if not isinstance(name, str):
            raise SchemaError(f"a column's name must be a text, not {name!r}")
        if odd := set(data) - _KEYS:
            raise SchemaError(f"column {name!r}: unknown key {sorted(odd)[0]!r}", column=name, key=sorted(odd)[0])
        for key in ("integer", "missing"):
            if not isinstance(data.get(key, False), bool):
                raise SchemaError(f"column {name!r}: {key} must be true or false", column=name)
        book = _book(name, data.get("code_book"))
        if book and not {"categories", "groups"} & set(data):
            inside = {key: value for key, value in data.items() if key != "code_book"}
            return cls._of_hierarchy({**inside, "hierarchy": code_book(book).groups}, book)
        if "hierarchy" in data:
            return cls._of_hierarchy(data)
        if held := {"at_most", "bins", "range"} & set(data):
            return cls._to_buy_of(data, sorted(held)[0])
        dates = None
        if data.get("kind") == "date":
            if odd := {"edges", "categories", "integer", "decimals", "groups"} & set(data):
                raise SchemaError(f"column {name!r}: a column of dates has no {sorted(odd)[0]}", column=name)
            try:
                dates = DateBins.from_json(data.get("dates"))
            except SchemaError as error:
                raise SchemaError(f"column {name!r}: {error}", column=name) from None
            data = {**data, "kind": "numeric", "edges": list(dates.edges), "integer": True}
        elif "dates" in data:
            raise SchemaError(f'column {name!r}: "dates" belongs to the kind "date"', column=name)
        return cls(
            name=name,
            dates=dates,
            kind=data.get("kind", "categorical"),
            categories=_texts(name, "categories", data.get("categories", [])),
            edges=_numbers(name, data.get("edges", [])),
            integer=data.get("integer", False),
            decimals=data.get("decimals"),
            missing=data.get("missing", False),
            unknown=data.get("unknown", "refuse"),
            missing_marks=_texts(name, "missing_marks", data.get("missing_marks", [])),
            guessed=_texts(name, "guessed", data.get("guessed", [])),
            confirmed=_texts(name, "confirmed", data.get("confirmed", [])),
            groups=_groups(name, data.get("groups", {})),
            code_book=book,
            number_style=data.get("number_style", ""),
        )

    @classmethod
    def _to_buy_of(cls, data: Mapping[str, Any], key: str) -> Column:
        """An undeclared column from the project file."""
        name, kind = data["name"], data.get("kind", "categorical")
        if kind not in get_args(Kind):
            raise SchemaError(f"column {name!r}: {key} does not go with the kind {kind!r}", column=name)
        allowed = {"bins", "range", "integer"} if kind == "numeric" else {"at_most"}
        if odd := set(data) - allowed - {"name", "kind"}:
            raise SchemaError(
                f"column {name!r} is to be bought ({key}), so it has no {sorted(odd)[0]!r}", column=name, key=key
            )
        for count in ("at_most", "bins"):
            if not isinstance(data.get(count, 0), int) or isinstance(data.get(count), bool):
                raise SchemaError(f"column {name!r}: {count} must be a whole number", column=name)
        ends = _numbers(name, data["range"]) if "range" in data else None
        if ends is not None and len(ends) != 2:
            raise SchemaError(f"column {name!r}: a range is two numbers", column=name)
        return cls.to_buy(
            name,
            kind,
            data.get("at_most", 0),
            data.get("bins", BINS_FOUND),
            (ends[0], ends[1]) if ends else None,
            data.get("integer", False),
        )

    @classmethod
    def _of_hierarchy(cls, data: Mapping[str, Any], book: str = "") -> Column:
        """A column with a hierarchy from the project file. Categories, where given, must be codes of it; those that it
        does not name are at the top."""
        name, given, at_most = data["name"], data["hierarchy"], data.get("at_most", APART)
        allowed = {"name", "kind", "hierarchy", "at_most", "missing", "unknown", "categories", "guessed", "confirmed"}
        allowed |= {"missing_marks"}
        if odd := set(data) - allowed:
            raise SchemaError(f"column {name!r} has a hierarchy, so it has no {sorted(odd)[0]!r}", column=name)
        if data.get("kind", "categorical") != "categorical":
            raise SchemaError(f"column {name!r} has a hierarchy, so its kind must be categorical", column=name)
        if not isinstance(at_most, int) or isinstance(at_most, bool):
            raise SchemaError(f"column {name!r}: at_most must be a whole number", column=name)
        if data.get("guessed"):
            raise SchemaError(
                f"column {name!r}: guessed categories are not allowed together with a hierarchy: leave the list out, "
                "the hierarchy names the codes",
                column=name,
            )
        if not isinstance(given, Mapping):
            raise SchemaError(f"column {name!r}: a hierarchy is an object, code to group", column=name)
        listed = _texts(name, "categories", data.get("categories", []))
        missing = data.get("missing", False)
        made = cls.of_hierarchy(
            name,
            with_categories(name, given, listed),
            at_most,
            missing=missing,
            unknown=data.get("unknown", "refuse"),
            missing_marks=_texts(name, "missing_marks", data.get("missing_marks", [])),
            code_book=book,
        )
        if made.unknown == "missing" and not missing:
            raise made._error('"unknown": "missing" needs "missing": true, so that there is a place for them')
        return replace(made, confirmed=_texts(name, "confirmed", data.get("confirmed", [])))

    def confirm(self, digest: str) -> Column:
        """Return this description with its guesses confirmed; ``digest`` identifies what was shown."""
        return replace(self, guessed=(), confirmed=tuple(dict.fromkeys((*self.confirmed, *self.guessed))), shown=digest)

    def reopened(self) -> Column:
        """Return this description with what was confirmed marked as guessed again."""
        return replace(self, guessed=tuple(dict.fromkeys((*self.guessed, *self.confirmed))), confirmed=(), shown="")

    def marked_like(self, origin: Column) -> Column:
        """Return this description with the marks of ``origin``, which it replaces.

        A mark stays as long as anything of the guess does. A list stays guessed (or confirmed) while one of its
        categories, one text of its groups or one bin edge is here too, also where categories became edges: adding
        one's own values to a guessed list declares none of the others. Another field stays while its value does.
        """
        lists = {"categories", "edges"}
        same = {f for f in FIELDS.keys() - lists if getattr(self, f) == getattr(origin, f)}
        same |= lists if _stated(self) & _stated(origin) else set()
        now = "edges" if self.kind == "numeric" else "categories"

        def kept(fields: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(dict.fromkeys(now if f in lists else f for f in fields if f in same))

        return replace(self, guessed=kept(origin.guessed), confirmed=kept(origin.confirmed))


def with_categories(column: str, hierarchy: Mapping[str, str], categories: Sequence[str]) -> Mapping[str, str]:
    """``hierarchy`` with the declared ``categories`` that it does not name, at the top; all as given where none are.

    Raises :class:`SchemaError` for a code that is no category, and for a category that is a group.
    """
    if not categories:
        return hierarchy
    known, groups = set(categories), set(hierarchy.values())
    for text in hierarchy:
        if text not in known and text not in groups:
            raise SchemaError(
                f"column {column!r}: the hierarchy names {text!r}, which is neither a category nor a group",
                column=column,
                value=text,
            )
    for text in categories:
        if text in groups:
            raise SchemaError(
                f"column {column!r}: the hierarchy puts others into {text!r}, which is a category",
                column=column,
                value=text,
            )
    return {**hierarchy, **{text: MISSING for text in categories if text not in hierarchy}}


def _stated(column: Column) -> set[str]:
    """Every value that a description tells; a number in one spelling."""
    texts = {*column.categories, *(text for _, members in column.groups for text in members)}
    return {_plain(float(t)) if NUMBER.fullmatch(t) else t for t in texts} | {_plain(e) for e in column.edges}


@dataclass(frozen=True)
class LeftOut:
    """A column of the table that a guess left out of the schema. It stays a guess until it is confirmed.

    ``shown`` is the digest of what a person saw when they confirmed it.
    """

    name: str
    confirmed: bool = False
    shown: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the entry as the project file stores it."""
        mark = {"confirmed" if self.confirmed else "guessed": True}
        return {"name": self.name, **mark, **({"shown": self.shown} if self.shown else {})}

    @classmethod
    def from_json(cls, data: Any) -> LeftOut:
        """An entry from the project file; raises :class:`SchemaError`."""
        name = data.get("name") if isinstance(data, Mapping) else None
        marks = {k: v for k, v in data.items() if k not in ("name", "shown")} if isinstance(data, Mapping) else {}
        shown = data.get("shown", "") if isinstance(data, Mapping) else ""
        named = isinstance(name, str) and isinstance(shown, str)
        if not named or marks not in ({m: True} for m in ("guessed", "confirmed")):
            raise SchemaError('each entry of left_out must hold a "name", and "guessed": true or "confirmed": true')
        return cls(str(name), "confirmed" in data, shown)


@dataclass(frozen=True)
class Identifier:
    """A column that tells rows or people apart. It is never read, counted or modelled.

    ``invented``: the table that goes out has such a column too, with made-up values; else it has none. ``place`` is
    where it stands among all columns.
    """

    name: str
    invented: bool = False
    place: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the entry as the project file stores it."""
        return {"name": self.name, "kind": "identifier", **({"invented": True} if self.invented else {})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], place: int) -> Identifier:
        """An entry from the project file; raises :class:`SchemaError`."""
        name, invented = data.get("name"), data.get("invented", False)
        if not isinstance(name, str) or not name or not isinstance(invented, bool):
            raise SchemaError('an identifier has a "name", and may say "invented": true')
        if odd := set(data) - {"name", "kind", "invented"}:
            raise SchemaError(f"column {name!r}: an identifier has no {sorted(odd)[0]!r}", column=name)
        return cls(name, invented, place)


@dataclass(frozen=True)
class Schema:
    """All columns, in order; ``schema["age"]`` is a column.

    ``left_out`` are columns of the table that a guess took for identifiers. Which columns a schema has is public, and
    that guess counts private values, so it must be confirmed like any other. What a person leaves out need not be
    listed.

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
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise SchemaError(f"the schema names column {twice!r} twice", column=twice)
        told = [c.name for c in self.identifiers]
        for name in told:
            if name in names or told.count(name) > 1:
                raise SchemaError(f"the schema names column {name!r} twice", column=name)
        out = [c.name for c in self.left_out]
        for name in out:
            if name in names or out.count(name) > 1:
                raise SchemaError(f"left_out names {name!r}, which is a column in use or is listed twice", column=name)

    @classmethod
    def to_buy(cls, names: Iterable[str]) -> Schema:
        """Return columns known by name only: texts with categories to buy, until more is declared."""
        return cls(tuple(Column.to_buy(name, "categorical", MOST_FOUND) for name in names))

    @property
    def undeclared(self) -> tuple[Column, ...]:
        """Columns whose bins or categories are still to be bought."""
        return tuple(c for c in self.columns if c.undeclared)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(c.name for c in self.columns)

    @property
    def released(self) -> tuple[str, ...]:
        """The columns of a table that goes out, in order: these, and the identifiers that are invented."""
        out = list(self.names)
        for c in sorted((c for c in self.identifiers if c.invented), key=lambda c: c.place):
            out.insert(c.place, c.name)
        return tuple(out)

    @property
    def sizes(self) -> dict[str, int]:
        """Number of codes of each column, in order: all that inference needs to know."""
        return {c.name: c.size for c in self.columns}

    @property
    def guessed(self) -> tuple[Column, ...]:
        """Columns with unconfirmed fields."""
        return tuple(c for c in self.columns if c.guessed)

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """Names of columns that were guessed, in or out of the schema, and that are not confirmed."""
        return (*(c.name for c in self.guessed), *(c.name for c in self.left_out if not c.confirmed))

    def __getitem__(self, name: str) -> Column:
        for c in self.columns:
            if c.name == name:
                return c
        raise SchemaError(f"there is no column {name!r} in the schema", column=name)

    def __contains__(self, name: object) -> bool:
        return any(c.name == name for c in self.columns)

    def clique(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names as a clique: each once, in schema order."""
        wanted = set(names)
        return tuple(n for n in self.names if n in wanted)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the columns as the project file stores them, without ``left_out``."""
        out = [c.to_json() for c in self.columns]
        for c in sorted(self.identifiers, key=lambda c: c.place):
            out.insert(c.place, c.to_json())
        return out

    @classmethod
    def from_json(cls, data: Any, left_out: Any = ()) -> Schema:
        """A schema from the project file's ``schema`` and ``left_out``; raises :class:`SchemaError`."""
        if not isinstance(data, list):
            raise SchemaError("schema must be a list of columns")
        if not isinstance(left_out, list | tuple):
            raise SchemaError("left_out must be a list")
        told = [isinstance(c, Mapping) and c.get("kind") == "identifier" for c in data]
        return cls(
            tuple(Column.from_json(c) for c, is_one in zip(data, told, strict=True) if not is_one),
            tuple(LeftOut.from_json(c) for c in left_out),
            tuple(Identifier.from_json(c, i) for i, c in enumerate(data) if told[i]),
        )


def _book(name: str, data: Any) -> str:
    """The name of a code book from the project file, whose digest must be that of the book's present contents."""
    if data is None:
        return ""
    if isinstance(data, str):
        return code_book(data).name
    if not isinstance(data, Mapping) or set(data) != {"name", "digest"}:
        raise SchemaError(f'column {name!r}: a code book has a "name" and a "digest"', column=name)
    return checked_book(data["name"], data["digest"]).name


def _whole_numbers(low: float, high: float, *, closed: bool) -> tuple[int, int]:
    return math.ceil(low), math.floor(high) if closed else math.ceil(high) - 1


def _plain(x: float) -> str:
    return f"{x:,.10g}"


def _texts(name: str, key: str, data: Any) -> tuple[str, ...]:
    if not isinstance(data, list) or not all(isinstance(x, str) for x in data):
        raise SchemaError(f"column {name!r}: {key} must be a list of texts, in quotes", column=name)
    return tuple(data)


def _groups(name: str, data: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(data, Mapping):
        raise SchemaError(f"column {name!r}: groups must be an object of lists", column=name)
    return tuple((group, _texts(name, f"group {group!r}", members)) for group, members in data.items())


def _numbers(name: str, data: Any) -> tuple[float, ...]:
    if not isinstance(data, list) or not all(isinstance(x, int | float) and not isinstance(x, bool) for x in data):
        raise SchemaError(f"column {name!r}: edges must be a list of numbers", column=name)
    try:
        return tuple(float(x) for x in data)
    except OverflowError:
        raise SchemaError(f"column {name!r}: an edge is too large a number", column=name) from None
