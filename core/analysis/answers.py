"""Estimates of a figure from the copies of a release, with the intervals that the gate allows and the reasons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.combine import combine
from espalier.core.analysis.estimands import Figure
from espalier.core.analysis.gate import RARE, Badge, Gate, Needs
from espalier.core.analysis.missing_shares import MissingShares
from espalier.core.analysis.tally import Tally

MANY_MISSING = 0.05
"""Missing cells are a cause of a wide interval once at least this share of the rows is left out."""

Cause = Literal["noise", "few rows", "weak overlap", "missing"]


@dataclass(frozen=True)
class Width:
    """Causes of an interval's width, the largest first: noise or few rows, then weak overlap and missing cells.

    ``rows`` and ``noise`` belong to the smallest group that the figure compares; both are numbers of rows.
    """

    causes: tuple[Cause, ...]
    rows: float
    noise: float


@dataclass(frozen=True)
class Answer:
    """One estimated number with its interval. Ratios are ratios, not logarithms.

    ``low``, ``high`` and ``width`` are `None` if no interval may be shown. The number is about the rows where the
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


@dataclass(frozen=True)
class Copies:
    """Rows of a release's copies as codes, whether they were drawn evenly, and the row limit per person."""

    rows: Sequence[Mapping[str, NDArray[Any]]]
    sizes: Mapping[str, int]
    evenly: bool = True
    rows_per_person: int = 1


def answer(figure: Figure, copies: Copies, gate: Gate, missing: Sequence[MissingShares] = ()) -> tuple[Answer, ...]:
    """Estimate ``figure`` in each copy, combine the estimates, and keep the intervals that the gate allows.

    A number that cannot be computed in every copy has no interval, because a category hardly occurs. Without
    overlap it has no value either. ``missing`` are the missing shares of the whole figure.
    """
    tallies = [Tally.of_rows(rows, copies.sizes, figure.columns) for rows in copies.rows]
    found = [figure.estimate(tally) for tally in tallies]
    values, variances = (np.array(part) for part in zip(*found, strict=True))
    out = []
    for i, part in enumerate(figure.parts()):
        badge = gate.judge(part.needs)
        if not np.isfinite(values[:, i]).all():
            sentence = "This number cannot be computed in every copy, because a compared group hardly occurs."
            badge = badge if badge.kind in ("assumed", "no overlap") else Badge("thin", sentence, 0.0)
        known = np.isfinite(values[:, i]).any() and badge.kind != "no overlap"
        centre, ends = float(np.nanmean(values[:, i])) if known else math.nan, None
        columns = part.needs.columns
        left_out = {name: part.needs.missing[name] for name in columns if name in part.needs.missing}
        share = 1 - float(np.mean([t.observed(left_out).total / max(t.total, 1.0) for t in tallies]))
        if badge.interval:
            alone = copies.evenly or not np.isfinite(variances[:, i]).all()
            got = combine(values[:, i].tolist(), None if alone else variances[:, i].tolist())
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
            )
        )
    return tuple(out)


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
