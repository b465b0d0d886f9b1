"""Estimates of a figure from the copies of a release, with the intervals that the gate allows and its reasons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.combine import combine
from espalier.core.analysis.count_intervals import CountInterval
from espalier.core.analysis.estimands import Figure, Mean, MeanDifference, Part
from espalier.core.analysis.gate import ENOUGH, RARE, Badge, Gate, Needs
from espalier.core.analysis.missing_shares import MissingShares
from espalier.core.analysis.tally import Tally
from espalier.core.errors import EspalierError
from espalier.core.privacy.draws import Measurement, Merged

MANY_MISSING = 0.05
"""Missing cells are named as a cause of a wide interval if at least this share of the rows is left out."""

LEAST_COPIES = 100
"""Minimum number of copies for the max-t rule. With fewer copies, the critical value would be an extreme value among
the copies.
"""

Cause = Literal["noise", "few rows", "weak overlap", "missing", "bins"]
Rule = Literal["bonferroni", "max-t"]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Width:
    """Causes of an interval's width, the largest first: noise, few rows or bins, then weak overlap and missing cells.

    ``rows`` and ``noise`` belong to the smallest group that the figure compares. Both are numbers of rows.
    """

    causes: tuple[Cause, ...]
    rows: float
    noise: float


@dataclass(frozen=True)
class Answer:
    """One estimated number with its interval. Ratios are stored as ratios, not as logarithms.

    ``low``, ``high`` and ``width`` are `None` if no interval may be shown. The number describes the rows where the
    columns ``observed`` are not missing; ``left_out`` is the share of all other rows. ``missing`` has the missing
    shares by group.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    badge: Badge
    ratio: bool
    observed: tuple[str, ...] = ()
    left_out: float = 0.0
    missing: tuple[MissingShares, ...] = ()
    width: Width | None = None
    level: float = 0.95
    family: int = 1
    """Number of intervals that hold simultaneously at ``level``."""
    at_midpoints: tuple[float, float] | None = None
    """For a mean of binned numbers: the interval from noise and sampling alone, as if every number were at the middle
    of its bin. ``low`` and ``high`` are valid for any positions of the numbers inside their bins.
    """


@dataclass(frozen=True)
class Copies:
    """Rows of a release's copies as codes, a flag for evenly drawn rows, and the row limit per person.

    ``counts`` are the noisy counts of the release, which count the ``merged`` groups of categories.
    """

    rows: Sequence[Mapping[str, NDArray[Any]]]
    sizes: Mapping[str, int]
    evenly: bool = True
    rows_per_person: int = 1
    counts: tuple[Measurement, ...] = ()
    merged: Merged = field(default_factory=dict)


@dataclass(frozen=True)
class Levels:
    """Levels of a figure's intervals from copies (``by_copies``) and from counts (``by_counts``)."""

    by_copies: float = 0.95
    by_counts: float = 0.95


def answer(
    figure: Figure, copies: Copies, gate: Gate, missing: Sequence[MissingShares] = (), levels: Levels = Levels()
) -> tuple[Answer, ...]:
    """Estimate ``figure`` in each copy, combine the estimates, and keep the intervals that the gate allows.

    A number that cannot be computed in every copy, because a category is very rare, has no interval from copies.
    Without overlap it has no value either. `by_counts` decides which intervals follow from the counts instead.
    ``missing`` are the missing shares of the whole figure. For a mean of numbers in bins, the interval starts at the
    low end for the smallest numbers and ends at the high end for the largest numbers. The interval is therefore valid
    for any positions of the numbers inside their bins.
    """
    found = _answer(figure, copies, gate, missing, levels)
    if not isinstance(figure, Mean | MeanDifference) or not figure.ranges:
        return found
    (middle,) = found
    (least,), (largest,) = (_answer(one, copies, gate, missing, levels) for one in figure.extremes())
    if middle.low is None or middle.high is None or least.low is None or largest.high is None:
        return found
    low, high = min(least.low, middle.low), max(largest.high, middle.high)
    inside, width = middle.high - middle.low, middle.width
    if width is not None:
        first, *others = width.causes
        causes: list[Cause] = ["bins", first] if high - low > 2 * inside else [first, "bins"]
        width = replace(width, causes=(*causes, *others))
    return (replace(middle, low=low, high=high, width=width, at_midpoints=(middle.low, middle.high)),)


def _answer(
    figure: Figure, copies: Copies, gate: Gate, missing: Sequence[MissingShares], levels: Levels
) -> tuple[Answer, ...]:
    tallies = [Tally.of_rows(rows, copies.sizes, figure.columns) for rows in copies.rows]
    found = [figure.estimate(tally) for tally in tallies]
    values, variances = (np.array(part) for part in zip(*found, strict=True))
    out = []
    for i, part in enumerate(figure.parts()):
        badge = gate.judge(part.needs)
        if not np.isfinite(values[:, i]).all():
            sentence = (
                "This number cannot be computed in every copy, because one of the compared groups is almost empty."
            )
            badge = badge if badge.kind in ("assumed", "no overlap") else Badge("thin", sentence, 0.0)
        known = np.isfinite(values[:, i]).any() and badge.kind != "no overlap"
        centre, ends = float(np.nanmean(values[:, i])) if known else math.nan, None
        columns = part.needs.columns
        left_out = {name: part.needs.missing[name] for name in columns if name in part.needs.missing}
        share = 1 - float(np.mean([t.observed(left_out).total / max(t.total, 1.0) for t in tallies]))
        alone = by_counts(part, badge, gate, copies, levels.by_counts)
        if alone is not None:
            badge, known, centre = _badge(part, badge, alone), True, alone.value
            ends = (alone.low, alone.high) if badge.interval else None
        elif badge.interval:
            single = copies.evenly or not np.isfinite(variances[:, i]).all()
            got = combine(values[:, i].tolist(), None if single else variances[:, i].tolist(), levels.by_copies)
            ends = (got.low, got.high)
        show = math.exp if part.ratio else float
        low, high = (None, None) if ends is None else (show(ends[0]), show(ends[1]))
        out.append(
            Answer(
                part.name,
                show(centre),
                low,
                high,
                badge,
                part.ratio,
                tuple(left_out),
                share,
                tuple(m for m in missing if m.column in columns and (m.by is None or m.by in columns)),
                None if ends is None else _width(part.needs, gate, share, copies.rows_per_person),
                levels.by_copies if alone is None else levels.by_counts,
            )
        )
    return tuple(out)


def by_counts(part: Part, badge: Badge, gate: Gate, copies: Copies, level: float) -> CountInterval | None:
    """Return the interval of a number from the counts alone; `None` if copies are used instead, or if neither is
    possible.

    Copies cannot go below zero rows, so they overestimate cells that are mostly noise. Intervals therefore follow from
    the counts if a needed group is thin, or if a mean has a thin bin. On Adult at ε = 1 with prism, intervals of groups
    below 4 σ then cover 95–98 % (copies: 89–97 %), and means 96 % (copies: 74 %).
    """
    if part.contrast is None or badge.kind not in ("counted", "thin") or not gate.counted(part.needs.columns):
        return None
    if badge.kind == "counted" and part.contrast.copies_serve(copies.counts, copies.merged, ENOUGH):
        return None
    return part.contrast.interval(copies.counts, copies.merged, copies.rows_per_person, level)


def joint_levels(
    figures: Sequence[Figure], copies: Copies, gate: Gate, level: float, rule: Rule = "bonferroni"
) -> tuple[int, Levels]:
    """Return the number of intervals of these figures, and levels at which all hold with probability ``level``.

    Bonferroni divides the chance of a miss evenly. ``max-t`` treats all intervals from copies jointly and gives them
    one part of that chance. This part is the probability that a copy's largest distance from the mean, in standard
    deviations, exceeds the critical value. The rule accounts for the correlation between figures, so its intervals are
    shorter.
    """
    from scipy.stats import t as student

    found: list[FloatArray] = []
    many = 0
    for figure in figures:
        tallies = [Tally.of_rows(rows, copies.sizes, figure.columns) for rows in copies.rows]
        values = np.array([figure.estimate(tally)[0] for tally in tallies])
        for i, part in enumerate(figure.parts()):
            badge = gate.judge(part.needs)
            if (alone := by_counts(part, badge, gate, copies, level)) is not None:
                many += _badge(part, badge, alone).interval
            elif badge.interval and np.isfinite(values[:, i]).all():
                found.append(values[:, i])
    many += len(found)
    each = 1 - (1 - level) / max(many, 1)
    if rule == "bonferroni" or not found:
        return many, Levels(each, each)
    m = len(copies.rows)
    if m < LEAST_COPIES:
        raise EspalierError(f"The max-t rule needs at least {LEAST_COPIES} copies; there are {m}.")
    table = np.array(found)
    spread = np.maximum(table.std(axis=1, ddof=1, keepdims=True), 1e-300)
    largest = np.sort(np.abs((table - table.mean(axis=1, keepdims=True)) / spread).max(axis=0))
    together = 1 - (1 - level) * len(found) / many
    critical = float(largest[min(math.ceil((m + 1) * together), m) - 1]) * math.sqrt(m / (m - 1))
    return many, Levels(min(max(2 * float(student.cdf(critical, m - 1)) - 1, level), each), each)


def _badge(part: Part, badge: Badge, found: CountInterval) -> Badge:
    """Return the badge of a number whose interval follows from the counts. The badge is "thin" if noise leaves no upper
    end.
    """
    if badge.kind == "counted":
        return badge
    if found.high < math.inf:
        together = f"{' and '.join(part.needs.columns)} were counted together" if len(part.needs.columns) > 1 else ""
        return Badge(
            "counted",
            f"{together or f'{part.needs.columns[0]} was counted'}. The smallest compared group is about "
            f"{max(badge.thinnest, 0):.1f} times as large as its noise, so the interval follows from the noisy "
            "counts alone.",
            badge.thinnest,
        )
    least = f" It is at least {math.exp(found.low):.3g}." if math.exp(found.low) > 0.001 else ""
    return Badge(
        "thin",
        f"Too few rows: the smallest compared group is about {max(badge.thinnest, 0):.1f} times as large as its noise, "
        f"so the ratio has no upper limit.{least}",
        badge.thinnest,
    )


def _width(needs: Needs, gate: Gate, left_out: float, k: int) -> Width:
    """Return the causes of the width. In the smallest group of r rows, noise adds σ² to the sampling variance k r; the
    larger of the two comes first."""
    rows, noise = gate.smallest(needs) if needs.cells or needs.rests else (math.inf, gate.sigma(needs.columns))
    causes: list[Cause] = ["noise" if noise**2 > k * rows else "few rows"]
    if gate.overlap(needs).weak >= RARE:
        causes.append("weak overlap")
    if left_out >= MANY_MISSING:
        causes.append("missing")
    return Width(tuple(causes), rows, noise)
