"""Types of columns with a declared description: closed categories, numbers in bins, and dates in calendar bins."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.code_books import code_book
from espalier.core.csv_safety import NUMBER
from espalier.core.errors import first_twice
from espalier.core.project.bin_density import places
from espalier.core.project.cells import MISSING
from espalier.core.project.column import Column, plain_text
from espalier.core.project.date_orders import DATE_ORDERS
from espalier.core.project.dates import DateBins, date_texts, day_number
from espalier.core.project.numerals import STYLES, plain_number

LARGEST_EDGE = 1e307
"""Largest absolute value of a bin edge, so that sums and differences of two edges stay finite."""
_PLAIN = re.compile(r"-?\d+(\.\d+)?", re.ASCII)


@dataclass(frozen=True, repr=False)
class Categories(Column, kinds=("categorical", "ordinal")):
    """Closed categories, ordered if ``kind`` is "ordinal".

    ``groups`` pairs a category with the table's values that are merged into it (public coarsening: ``("Other",
    ("baker", "diver"))``). Text that counts as a code of the ``code_book`` is read as that code.
    """

    categories: tuple[str, ...] = ()
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    code_book: str = ""

    def _check(self) -> None:
        if self.kind not in ("categorical", "ordinal"):
            raise self.error(f"kind is {self.kind!r}; a column with categories must be categorical or ordinal")
        if not self.categories:
            raise self.error("list at least one category")
        if not all(isinstance(c, str) for c in self.categories):
            raise self.error("categories must be text, in quotes")
        if MISSING in self.categories:
            raise self.error('an empty string is not a category; set "missing": true instead')
        if (twice := first_twice(self.categories)) is not None:
            raise self.error(f"category {twice!r} is listed twice")
        known, seen = set(self.categories), set(self.categories)
        for group, members in self.groups:
            if group not in known:
                raise self.error(f"the group {group!r} must be one of the categories")
            for member in members:
                if member in seen or member == MISSING:
                    raise self.error(f"{member!r} in group {group!r} is empty, a category, or already in a group")
                seen.add(member)

    @property
    def values(self) -> int:
        """Number of categories, not counting the code of a missing cell."""
        return len(self.categories)

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of the categories."""
        return self.categories

    def judge(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the code of each text; see :meth:`Column.judge`."""
        known = dict(self.texts)
        known |= dict.fromkeys((MISSING, *self.missing_marks), self.empty_code)
        unknown = self.unknown_code
        if self.code_book:
            leaf = code_book(self.code_book).leaf
            texts = [text if text in known else leaf(text) or text for text in texts]
        return np.fromiter((known.get(text, unknown) for text in texts), np.int64, len(texts))


@dataclass(frozen=True, repr=False)
class Numbers(Column, kinds=("numeric",)):
    """Numbers in bins.

    Bins are half-open, ``[e0, e1)``, except for the last bin, which is closed. Numbers outside the range are clipped
    into the outermost bins. ``decimals`` is the declared precision of numbers that are not whole: digits after the
    point. ``number_style`` is one of `espalier.core.project.numerals.STYLES`.
    """

    edges: tuple[float, ...] = ()
    integer: bool = False
    decimals: int | None = None
    number_style: str = ""

    _why_unknown = "is not a number"

    def _check(self) -> None:
        if self.kind != "numeric":
            raise self.error(f"kind is {self.kind!r}; a column of numbers must have kind numeric")
        if len(self.edges) < 2 or not all(math.isfinite(e) for e in self.edges):
            raise self.error("a numeric column needs at least two finite edges")
        if max(map(abs, self.edges)) > LARGEST_EDGE:
            raise self.error(f"edges must lie between {-LARGEST_EDGE:g} and {LARGEST_EDGE:g}")
        for low, high in zip(self.edges, self.edges[1:], strict=False):
            if not low < high:
                raise self.error(f"edges must increase, but {high:g} follows {low:g}")
        if self.decimals is not None:
            self._check_decimals()
        if self.integer:
            for i, (low, high) in enumerate(zip(self.edges, self.edges[1:], strict=False)):
                last = math.floor(high) if i == len(self.edges) - 2 else math.ceil(high) - 1
                if math.ceil(low) > last:
                    raise self.error(f"the bin from {low:g} to {high:g} contains no whole number")
        if self.number_style and self.number_style not in STYLES:
            raise self.error(f"number_style is only for numbers, and must be one of {', '.join(STYLES)}")

    def _check_decimals(self) -> None:
        if isinstance(self.decimals, bool) or not isinstance(self.decimals, int) or not 1 <= self.decimals <= 9:
            raise self.error('"decimals" must be a whole number from 1 to 9; for whole numbers set "integer": true')
        if self.integer:
            raise self.error('whole numbers have no decimals: set either "integer" or "decimals"')
        if odd := [e for e in self.edges if abs(round(e, self.decimals) - e) > 1e-9 * max(1.0, abs(e))]:
            raise self.error(f"the edge {odd[0]:.12g} has more than {self.decimals} decimals, the declared precision")

    @property
    def values(self) -> int:
        """Number of bins, not counting the code of a missing cell."""
        return len(self.edges) - 1

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of the bins, which consist of their lower and upper ends."""
        bins = list(zip(self.edges, self.edges[1:], strict=False))
        shown = [f"{plain_text(a)} – <{plain_text(b)}" for a, b in bins[:-1]]
        return (*shown, *(f"{plain_text(a)} – {plain_text(b)}" for a, b in bins[-1:]))

    @property
    def as_released(self) -> Column:
        """Description for reading released cells, whose numbers have a decimal point."""
        return replace(self, number_style="") if self.number_style else self

    def coarser(self, values: int) -> Column | None:
        """Return this column with neighbouring bins merged until at most ``values`` codes are left, including that of a
        missing cell.
        """
        bins = max(1, values - self.missing)
        if bins >= self.values:
            return self
        kept = np.linspace(0, self.values, bins + 1).round().astype(int)
        return replace(self, edges=tuple(self.edges[i] for i in kept))

    def judge(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the bin of each text; see :meth:`Column.judge`."""
        numbers = [self.number_of(text) for text in texts]
        codes = self.bins_of(np.array([math.nan if x is None else x for x in numbers], dtype=np.float64))
        for i, number in enumerate(numbers):
            if number is None:
                codes[i] = self.empty_code if self.is_empty(texts[i]) else self.unknown_code
        return codes

    def numbers(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the number of each text (for a date, the day); NaN for an empty cell and for any other text.

        A number too large for a float becomes the column's outermost edge; its bin is unchanged.
        """
        known = np.array([math.nan if x is None else x for x in map(self.number_of, texts)], dtype=np.float64)
        return np.where(np.isinf(known), np.clip(known, self.edges[0], self.edges[-1]), known)

    def number_of(self, text: str) -> float | None:
        """Return the number that a text states; `None` for a missing mark and for any other text."""
        if text in self.missing_marks:
            return None
        if self.number_style:
            plain = plain_number(text, self.number_style)
            return None if plain is None else float(plain)
        return float(text) if NUMBER.fullmatch(text) else None

    def decode(self, codes: NDArray[Any], rng: np.random.Generator) -> list[str]:
        """Return text for ``codes``: numbers drawn inside their bins (`espalier.core.project.bin_density`)."""
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
        """Return text for ``numbers``, each inside the bin of its code.

        Numbers are whole or have the declared decimals. Otherwise they are precise to five significant digits of the
        bin's width.
        """
        if self.integer:
            known, place = np.unique(numbers, return_inverse=True)
            texts: list[str] = np.array(self._whole_texts(known), dtype=object)[place].tolist()
        else:
            low = np.asarray(self.edges[:-1])[np.minimum(codes, self.values - 1)]
            high = np.asarray(self.edges[1:])[np.minimum(codes, self.values - 1)]
            # without a declared precision, five digits of a bin's width are enough
            step = self.step or np.maximum(10.0 ** (np.floor(np.log10(high - low)) - 4), math.ulp(0.0))
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

    def why_not_released(self, text: str) -> str:
        """Return why no release contains ``text``; see :meth:`Column.why_not_released`."""
        low, high = self.edges[0], self.edges[-1]
        number = self.number_of(text) if self.dates is not None else float(text) if _PLAIN.fullmatch(text) else None
        if number is None or not low <= number <= high:
            known = self.missing and text == MISSING
        elif self.integer:
            known = self._whole_texts(np.array([float(number)])) == [text]
        else:
            known = self.decimals is None or round(number, self.decimals) == number
        return "" if known else f"is not {self._form(low, high)}"

    def _form(self, low: float, high: float) -> str:
        """Return a description of the numbers that a release contains."""
        digits = "" if self.decimals is None else f" with at most {self.decimals} decimals"
        return f"a {'whole ' * self.integer}number from {low:.12g} to {high:.12g}{digits}, such as {low:.12g}"

    def _whole_texts(self, numbers: NDArray[np.float64]) -> list[str]:
        return [str(int(x)) for x in numbers.tolist()]


@dataclass(frozen=True, repr=False)
class Dates(Numbers, kinds=("date",)):
    """Dates. Their numbers are days, their bins are calendar periods, and their text is ISO dates.

    ``date_order`` is one of `espalier.core.project.date_orders.DATE_ORDERS`; days in the table are in this order, or
    are ISO dates. In the project file the kind is ``date``.
    """

    dates: DateBins | None = None
    date_order: str = ""

    def _check(self) -> None:
        if self.dates is None or (self.kind, self.edges, self.integer) != ("numeric", self.dates.edges, True):
            raise self.error("a column of dates takes its bins from its range and period")
        if self.number_style:
            raise self.error(f"number_style is only for numbers, and must be one of {', '.join(STYLES)}")
        if self.date_order and self.date_order not in DATE_ORDERS:
            raise self.error(f"date_order is {self.date_order!r}; it must be one of {', '.join(DATE_ORDERS)}")
        super()._check()

    @classmethod
    def of(cls, name: str, dates: DateBins, **fields_: Any) -> Dates:
        """Return a date column with the bins of ``dates``."""
        return cls(name, "numeric", dates.edges, True, dates=dates, **fields_)

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of the calendar periods."""
        assert self.dates is not None
        return self.dates.labels

    def coarser(self, values: int) -> Column | None:  # noqa: ARG002
        """Return `None`, because a person must choose a longer calendar period."""
        return None

    def number_of(self, text: str) -> float | None:
        """Return the day of a date; `None` for a missing mark and for any other text."""
        return None if text in self.missing_marks else day_number(text, self.date_order)

    @property
    def _why_unknown(self) -> str:  # type: ignore[override]
        if not self.date_order:
            return "is not a date written as 2024-01-31"
        return f"is not a date such as {DATE_ORDERS[self.date_order]}"

    def _form(self, low: float, high: float) -> str:
        """Return a description of the days that a release contains."""
        first, last = date_texts(np.floor([low, high]))
        return f"a day from {first} to {last}, written in this form"

    def _whole_texts(self, numbers: NDArray[np.float64]) -> list[str]:
        return date_texts(np.floor(numbers))
