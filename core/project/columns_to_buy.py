"""Types of columns for which a release buys the description: categories, bins, or the depth of a hierarchy.

Until then, each column has a public number of codes, and its values are placeholders. The empty cell is always one of
the codes of bought categories and bins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from espalier.core.code_books import code_book
from espalier.core.errors import SchemaError
from espalier.core.project.cells import MISSING
from espalier.core.project.column import Column, Kind
from espalier.core.project.column_types import Categories, Numbers
from espalier.core.project.hierarchy import Cut, Hierarchy

APART = 100
"""Maximum number of codes and groups after the expansion of a hierarchy, unless the column states a different one."""
MOST_BINS, MOST_CATEGORIES = 64, 10_000
"""Maximum number of bins, and of categories, that can be bought for a column."""
BINS_FOUND, MOST_FOUND = 10, 50
"""Default number of bins, and largest default number of categories, of a column that is bought."""
NOT_KNOWN = (
    "Its bins or categories are bought at release and are not known beforehand; declare them, or leave the column "
    "out here"
)
"""Reason why a question or a constraint cannot name a column that is to be bought."""
TOP_ONLY = (
    "The release buys the depth to which a hierarchy is expanded, so inner codes are not known beforehand. Name an "
    "entry of the top level, which is always known"
)
"""Reason why a question or a constraint cannot name a code inside a hierarchy."""


@dataclass(frozen=True, repr=False)
class ToBuy(Column):
    """A column with a declared name and kind, for which the release buys the rest of the description."""

    missing: bool = field(default=True, kw_only=True)
    unknown: Literal["refuse", "missing"] = field(default="missing", kw_only=True)

    @property
    def nameable(self) -> tuple[str, ...]:
        """Values that a question may name: those known before the release."""
        return tuple(self.named)


@dataclass(frozen=True, repr=False)
class CategoriesToBuy(ToBuy):
    """A text column in which the release finds at most ``at_most`` categories."""

    at_most: int = MOST_FOUND

    def _check(self) -> None:
        if self.kind == "numeric":
            raise self.error("a column with categories must be categorical or ordinal")
        if {*self.guessed, *self.confirmed} - {"kind"}:
            raise self.error("only the kind can be guessed in a column whose categories are bought")
        if not 1 <= self.at_most <= MOST_CATEGORIES:
            raise self.error(f"the number of categories must be from 1 to {MOST_CATEGORIES:,}")

    @property
    def values(self) -> int:
        """Maximum number of categories."""
        return self.at_most

    @property
    def value_names(self) -> tuple[str, ...]:
        """Placeholder names."""
        return tuple(f"category {i + 1}" for i in range(self.at_most))

    @property
    def named(self) -> dict[str, tuple[int, ...]]:
        """Empty, because no value is known before the release."""
        return {}

    @property
    def reads_texts(self) -> bool:
        """True, because the release finds the categories by counting text values."""
        return True

    def judge(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the code of a missing cell for each text, because no category is known."""
        return np.full(len(texts), self.values, dtype=np.int64)


@dataclass(frozen=True, repr=False)
class NumbersToBuy(ToBuy):
    """A numeric column for which the release buys at most ``bins`` bins, over ``range`` if it is known."""

    bins: int = BINS_FOUND
    range: tuple[float, float] | None = None
    integer: bool = False

    def _check(self) -> None:
        if self.kind != "numeric":
            raise self.error("only numeric columns have bins")
        if {*self.guessed, *self.confirmed} - {"integer"}:
            raise self.error("only whole numbers can be guessed in a column whose bins are bought")
        if not 2 <= self.bins <= MOST_BINS:
            raise self.error(f"the number of bins must be from 2 to {MOST_BINS}")
        if self.range is None:
            return
        low, high = self.range
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise self.error("a range must go from a number to a larger one")
        if self.integer and math.floor(high) - math.ceil(low) < 2:
            raise self.error("the range contains too few whole numbers")

    @property
    def edges(self) -> tuple[float, ...]:
        """Placeholder edges: 0, 1, 2, …"""
        return tuple(float(i) for i in np.arange(self.bins + 1))

    @property
    def values(self) -> int:
        """Maximum number of bins."""
        return self.bins

    @property
    def value_names(self) -> tuple[str, ...]:
        """Placeholder names."""
        return self._placeholder.value_names

    @property
    def named(self) -> dict[str, tuple[int, ...]]:
        """Empty, because no value is known before the release."""
        return {}

    @cached_property
    def _placeholder(self) -> Numbers:
        return Numbers(self.name, "numeric", self.edges, missing=True, unknown="missing")

    def judge(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return a placeholder code for each text."""
        return self._placeholder.judge(texts)

    def numbers(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the number of each text, NaN for any other text. A number too large for a float becomes the largest
        float.
        """
        read = self._placeholder.number_of
        known = np.array([math.nan if x is None else x for x in map(read, texts)], dtype=np.float64)
        largest = float(np.finfo(np.float64).max)
        return np.clip(known, -largest, largest)

    def decode(self, codes: NDArray[Any], rng: np.random.Generator) -> list[str]:
        """Return placeholder numbers."""
        return self._placeholder.decode(codes, rng)


@dataclass(frozen=True, repr=False)
class HierarchyToBuy(ToBuy):
    """A column with many known codes in nested groups, for which the release buys the depth of expansion.

    ``hierarchy`` pairs each code and group with the group to which it belongs, or with an empty string. It is expanded
    to at most ``at_most`` codes and groups. Create it with :meth:`of`.
    """

    missing: bool = field(default=False, kw_only=True)
    unknown: Literal["refuse", "missing"] = field(default="refuse", kw_only=True)
    hierarchy: tuple[tuple[str, str], ...] = ()
    at_most: int = APART
    code_book: str = ""

    @classmethod
    def of(cls, name: str, hierarchy: Mapping[str, str], at_most: int = APART, **given: Any) -> HierarchyToBuy:
        """Return a column of the codes in ``hierarchy``, the project file's mapping.

        Raises :class:`SchemaError` for an impossible hierarchy, or one with more than ``at_most`` codes and groups at
        the top.
        """
        if given.get("unknown") == "missing":
            given["missing"] = True
        return cls(name, "categorical", tuple(hierarchy.items()), at_most, **given)

    @classmethod
    def of_book(cls, name: str, book: str, at_most: int = APART, **given: Any) -> HierarchyToBuy:
        """Return a column that uses a whole codebook as its hierarchy; raise :class:`SchemaError` for no such book."""
        return cls.of(name, code_book(book).groups, at_most, code_book=book, **given)

    def _check(self) -> None:
        if not 1 <= self.at_most <= MOST_CATEGORIES:
            raise self.error(f"the number of categories must be from 1 to {MOST_CATEGORIES:,}")
        names = {*self.tree.labels, *(f"other {label}" for label in self.tree.labels)}
        if taken := [mark for mark in self.missing_marks if mark.rstrip(" …") in names]:
            raise self.error(
                f"{taken[0]!r} cannot mark a missing value, because the release may give a group this name"
            )
        top = len(self.tree.children[-1]) - self.missing
        if top > self.at_most:
            alone = [self.tree.labels[node] for node in self.tree.children[-1] if node < self.tree.codes]
            codes = f" ({len(alone)} of them codes, such as {alone[0]!r})" if alone else ""
            raise self.error(
                f"the top of the hierarchy has {top:,} codes and groups{codes}, but at most {self.at_most} are "
                "allowed: put them into groups, or raise at_most"
            )

    @cached_property
    def tree(self) -> Hierarchy:
        """Parsed hierarchy; raises :class:`SchemaError`."""
        return Hierarchy.of(self.name, dict(self.hierarchy), missing=self.missing)

    @property
    def values(self) -> int:
        """Maximum number of codes and groups after expansion."""
        return self.at_most

    @property
    def value_names(self) -> tuple[str, ...]:
        """Placeholder names."""
        return tuple(f"category {i + 1}" for i in range(self.at_most))

    @cached_property
    def named(self) -> dict[str, tuple[int, ...]]:
        """Codes and groups at the top, with their placeholder codes.

        The entries at the top stay separate under any budget (:func:`espalier.core.project.hierarchy.descend`). Each
        entry has one placeholder; the last entry also gets all remaining placeholders.
        """
        tops = [self.tree.labels[n] for n in self.tree.children[-1] if not (self.missing and n == self.tree.codes - 1)]
        last = len(tops) - 1
        return {text: (i,) if i < last else tuple(range(i, self.values)) for i, text in enumerate(tops)}

    @property
    def reads_texts(self) -> bool:
        """True, because the release counts the codes as text values."""
        return True

    def judge(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return a placeholder for each text. The text is a known code, but it is not known yet which codes stay
        separate.
        """
        return np.where(self.leaves(texts) < len(self.tree.texts), 0, self.values)

    def leaves(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the code of each text in the hierarchy, where the missing cell has the last code; raises
        :class:`TableError`.
        """
        return self.finest().encode(texts)

    def finest(self) -> Categories:
        """Return the column with every code as a category."""
        return Categories(
            self.name,
            self.kind,
            self.tree.texts,
            missing=self.missing,
            unknown=self.unknown,
            missing_marks=self.missing_marks,
            code_book=self.code_book,
        )

    def expanded(self, cut: Cut) -> Categories:
        """Return the column with its hierarchy divided by ``cut``. The parts become the categories; a group stands for
        all codes in it.
        """
        held: dict[int, list[str]] = {}
        for text, group in zip(self.tree.texts, cut.groups.tolist(), strict=False):
            held.setdefault(group, []).append(text)
        found = [(cut.names[group], tuple(inside)) for group, inside in held.items()]
        return Categories(
            self.name,
            self.kind,
            tuple(name for name, _ in found),
            tuple((name, inside) for name, inside in found if inside != (name,)),
            self.code_book,
            missing=self.missing,
            unknown=self.unknown,
            missing_marks=self.missing_marks,
            confirmed=self.confirmed,
            shown=self.shown,
            **self.about,
        )

    def inside(self, bought: Column) -> dict[str, tuple[str, ...]]:
        """Return the categories in each code or group at the top. ``bought`` is this column after :meth:`expanded`."""
        members, out = dict(bought.groups), dict[str, tuple[str, ...]]()
        place = {text: code for code, text in enumerate(self.tree.texts)}
        for category in bought.categories:
            code = place[members.get(category, (category,))[0]]
            top = self.tree.labels[self.tree.above(code)[-1]]
            out[top] = (*out.get(top, ()), category)
        return out


def to_buy(
    name: str,
    kind: Kind,
    at_most: int = MOST_FOUND,
    bins: int = BINS_FOUND,
    range: tuple[float, float] | None = None,
    integer: bool = False,
) -> CategoriesToBuy | NumbersToBuy:
    """Return a column with only a declared name and kind, and the range of its numbers if known."""
    if kind == "numeric":
        return NumbersToBuy(name, kind, bins, range, integer)
    return CategoriesToBuy(name, kind, at_most)


def with_categories(column: str, hierarchy: Mapping[str, str], categories: Sequence[str]) -> Mapping[str, str]:
    """Return ``hierarchy``, adding at the top the declared ``categories`` that it does not name. Without declared
    categories, it is unchanged.

    Raises :class:`SchemaError` for a code that is not a category, and for a category that is a group.
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
                f"column {column!r}: the hierarchy assigns other values to {text!r}, which is a category",
                column=column,
                value=text,
            )
    return {**hierarchy, **{text: MISSING for text in categories if text not in hierarchy}}
