"""Transitions from one visit to the next, with intervals, from the noisy counts in a release of linked tables.

A figure is *person-averaged*: each person with several visits has weight 1, so each of a person's m steps has weight
1/m. Steps beyond the kept visits are ignored. The answer depends only on the release and may be shared.

The interval. Let x_i be person i's weight at steps from value a, and y_i ≤ x_i the part that leads to b. With p = Σ E y
/ Σ E x, a person contributes y − p·x to the error. Since 0 ≤ y ≤ x ≤ 1, E (y − p·x)² ≤ p(1 − p) E x. For p ≤ 1/2, this
follows from (y − p·x)² = y² − 2pxy + p²x² ≤ xy(1 − 2p) + p²x², xy ≤ y and x² ≤ x. For larger p, the same argument
applies to x − y instead of y. The sampling variance of Σ(y − p·x) is therefore at most p(1 − p)·Σ E x, and weighted
counts may be treated as counts of independent rows. Independent noise of standard deviation σ on the K cells of the row
adds σ²((1 − p)² + (K − 1)p²). The interval contains every p whose error is within z standard deviations (Fieller 1954;
without noise it is Wilson's).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import ProjectError
from espalier.core.project.linked import GAP
from espalier.core.project.plan import MOST_COUNT
from espalier.core.project.schema import Schema

LEVEL = 0.95
WIDEST = 0.5
"""Maximum width of an interval that is shown. In a wider interval, noise outweighs the counts."""


ASK_FOR_RETURNS = (
    "counts of the days since the previous visit contain only visits that are followed by another, so people who never "
    "return are missing. Ask for the share of visits after which the person returns in time: "
    "--returned COLUMN VALUE DAYS"
)


class IntervalShare:
    """A share with its interval, ready for output. A share that is not shown is `None`, and ``reason`` states why."""

    share: float | None
    low: float | None
    high: float | None
    reason: str

    @property
    def asked(self) -> str:
        """Description of the share."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``analyse --json``."""
        return {**vars(self), "level": LEVEL}

    def __str__(self) -> str:
        if self.share is None:
            return f"{self.asked} is not shown: {self.reason}."
        return f"{self.asked}: {self.share:.1%} ({self.low:.1%} to {self.high:.1%}, {LEVEL:.0%} interval)."


@dataclass(frozen=True)
class Transition(IntervalShare):
    """Share of ``after`` at the next visit among people with ``before`` at a visit."""

    column: str
    before: str
    after: str
    share: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""

    @property
    def asked(self) -> str:
        """Description of the share."""
        return f"{self.column}: {self.after} at the next visit after {self.before}"


@dataclass(frozen=True)
class StepTable:
    """Noisy weighted counts, in people, of a column's values at one visit and at the previous visit, and the σ of each
    cell.
    """

    column: str
    counts: NDArray[np.float64]
    sigma: float

    def transition(self, labels: tuple[str, ...], before: str, after: str) -> Transition:
        """Return one transition with its interval, or the reason why it is not shown."""
        row = self.counts[labels.index(before)]
        made = interval(float(row[labels.index(after)]), float(row.sum()), len(row), self.sigma)
        if made is None:
            why = f"there are too few people with {before} for the noise (σ = {self.sigma:.3g} people in each cell)"
            return Transition(self.column, before, after, reason=why)
        return Transition(self.column, before, after, *made)


def interval(cell: float, row: float, cells: int, sigma: float) -> tuple[float, float, float] | None:
    """Return the share and the ends of its interval; `None` if noise outweighs the counts."""
    z, noise = NormalDist().inv_cdf(0.5 + LEVEL / 2), sigma * sigma
    if row <= 0:
        return None
    # (cell − p·row)² ≤ z²(p(1 − p)·row + σ²((1 − p)² + (cells − 1)p²)), as a·p² − 2b·p + c ≤ 0
    a = row * row + z * z * (row - noise * cells)
    b = cell * row + z * z * (row / 2 - noise)
    c = cell * cell - z * z * noise
    inside = b * b - a * c
    if a <= 0 or inside < 0:
        return None
    low, high = (min(max((b + side * math.sqrt(inside)) / a, 0.0), 1.0) for side in (-1, 1))
    if high - low > WIDEST or high <= low:
        return None
    return min(max(cell / row, low), high), low, high


def step_tables(facts: Mapping[str, Any], schema: Schema) -> dict[str, StepTable]:
    """Return the step tables in a release's ``release.json``, by column; raises :class:`ProjectError`."""
    tables = facts.get("tables")
    found = tables.get("transitions") if isinstance(tables, Mapping) else None
    if not found:
        raise ProjectError("this release contains no counts of steps from one visit to the next")
    out = {}
    with reading("counts of transitions"):
        for entry in found:
            name = entry["column"]
            counts, sigma = noisy_counts(entry, (schema[name].size,) * 2 if name in schema else None)
            if name in schema:  # the days since the previous visit are not a column of the tables
                out[name] = StepTable(name, counts, sigma)
    return out


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Raise :class:`ProjectError` if ``what`` is damaged in ``release.json``."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise ProjectError(f"the {what} in release.json are damaged") from None


def noisy_counts(entry: Mapping[str, Any], shape: tuple[int, ...] | None) -> tuple[NDArray[np.float64], float]:
    """Return the counts of an entry of ``release.json`` and their σ; raises :class:`ValueError` if one is above
    `MOST_COUNT` or not a number, or if they do not have this ``shape``.
    """
    counts, sigma = np.array(entry["counts"], dtype=np.float64), float(entry["sigma"])
    if (shape and counts.shape != shape) or not (np.abs(counts) <= MOST_COUNT).all() or not 0 <= sigma <= MOST_COUNT:
        raise ValueError("the counts do not fit their column")
    return counts, sigma


def transition(facts: Mapping[str, Any], schema: Schema, column: str, before: str, after: str) -> Transition:
    """Return one transition of a release with its interval; raises :class:`ProjectError` for unknown names."""
    tables = step_tables(facts, schema)
    if column.endswith(GAP):
        raise ProjectError(ASK_FOR_RETURNS, column=column)
    if column not in tables:
        known = ", ".join(tables)
        raise ProjectError(f"{column!r} is not a column of the visits; the release has {known}", column=column)
    labels = tuple(schema[column].labels)
    for value in (before, after):
        if value not in labels:
            raise ProjectError(f"{value!r} is not a value of {column!r}", column=column)
    return tables[column].transition(labels, before, after)
