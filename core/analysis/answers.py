"""A figure asked of a release's copies: numbers, intervals where they are earned, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.combine import combine
from espalier.core.analysis.figures import Figure
from espalier.core.analysis.gate import Badge, Gate
from espalier.core.analysis.tally import Tally


@dataclass(frozen=True)
class Answer:
    """One number. ``low`` and ``high`` are None where no interval may be shown. Ratios are given as ratios."""

    name: str
    value: float
    low: float | None
    high: float | None
    badge: Badge
    ratio: bool


@dataclass(frozen=True)
class Copies:
    """The rows of a release's copies as codes, and whether they were drawn evenly."""

    rows: Sequence[Mapping[str, NDArray[Any]]]
    sizes: Mapping[str, int]
    evenly: bool = True


def answer(figure: Figure, copies: Copies, gate: Gate) -> tuple[Answer, ...]:
    """Estimate ``figure`` in each copy alone, combine, and show the intervals that the gate lets through.

    Where a number cannot be worked out in some copy it gets none: its category hardly occurs.
    """
    found = [figure.estimate(Tally.of_rows(rows, copies.sizes, figure.columns)) for rows in copies.rows]
    values, variances = (np.array(part) for part in zip(*found, strict=True))
    out = []
    for i, part in enumerate(figure.parts()):
        badge = gate.judge(part.needs)
        if not np.isfinite(values[:, i]).all():
            sentence = "This number cannot be worked out in every copy: one of its groups hardly occurs."
            badge = badge if badge.kind == "assumed" else Badge("thin", sentence, 0.0)
        centre, ends = float(np.nanmean(values[:, i])) if np.isfinite(values[:, i]).any() else math.nan, None
        if badge.interval:
            alone = copies.evenly or not np.isfinite(variances[:, i]).all()
            got = combine(values[:, i].tolist(), None if alone else variances[:, i].tolist())
            ends = (got.low, got.high)
        show = math.exp if part.ratio else float
        low, high = (None, None) if ends is None else (show(ends[0]), show(ends[1]))
        out.append(Answer(part.name, show(centre), low, high, badge, part.ratio))
    return tuple(out)
