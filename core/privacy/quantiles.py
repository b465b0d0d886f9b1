"""Private quantiles: bin edges and a range for numbers, bought by the exponential mechanism over a public grid.

A quantile q = a/b is a choice among the points z of a finite public grid. Its score is the whole number

    −|(b − a)·below(z) − a·above(z)|,    below(z) = #{x < z},  above(z) = #{x ≥ z}.

The score is 0 if a share q of the values lies below z (Smith 2011, here in whole numbers). Bins are half-open, so
values equal to an edge z are in the bin to its right, as in the score. Several quantiles are found by repeated halving:
first the edge with half of the bins on either side, then the edges inside each half among the values of that half
(Kaplan, Schnapp & Stemmer 2022). The sequence of choices depends on the grid and on earlier choices alone, never on the
values.

Edges are chosen from one histogram, the numbers of values between the points of the grid (`Source.grid_counts`). Any
engine that counts can compute this histogram, so the values stay in the engine.

This module draws nothing. The caller pays for ``choose(scores, sensitivity)``, the exponential mechanism. Missing
values (NaN) are not counted. Infinite values are clipped to the grid like all others.

Rows may be held out or limited at random. Every sensitivity here is k times a constant, so an answer calibrated to k
rows costs at most (j/k)² of its price if j of these rows are present. The proof in
:func:`espalier.core.privacy.contribution.split` requires this for each answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import SchemaError
from espalier.core.privacy.unit import Unit
from espalier.core.project.schema import MOST_BINS

Choose = Callable[[Sequence[int], int], int]
"""Function that runs the exponential mechanism at the price of one call. It takes the scores and their sensitivity, and
returns the index of the choice.
"""

Values = NDArray[np.float64]

TAIL = 0.005
"""Share of the rows below which a cell is treated as empty when a range is chosen."""

LIKELY, CERTAIN = 1.5, 6.0
"""Thresholds, in σ, above which a cell joins a range: for a cell next to cells with rows, and for an isolated cell.

An isolated cell can widen a range by powers of ten. Noise alone exceeds 6 σ in one of the 114 cells of fewer than one
in 8 million ranges (114 · 9.9·10⁻¹⁰ = 1.2·10⁻⁷).

A neighbouring cell widens a range by a factor of 2 to 2.5, which does little harm, since bins are bought inside the
range. A higher threshold would cut off real tails: at 3.5 σ twice as many rows were outside (1,000 to 5,000 rows, seven
shapes). A range extends j empty cells too far on one side only if a sum of i ≥ j of them exceeds i times the threshold,
with probability at most Σ_{i≥j} Q(1.5·√i): 9.1 % for one cell, 2.4 % for two, 0.7 % for three (7.4, 1.3 and 0.3 %
measured).
"""


def quantile_scores(below: NDArray[np.int64], values: int, q: Fraction) -> NDArray[np.int64]:
    """Return the score of each point as quantile ``q``, if ``below`` of all ``values`` lie below it."""
    a, b = q.numerator, q.denominator
    return np.asarray(-np.abs((b - a) * below - a * (values - below)), dtype=np.int64)


def score_sensitivity(unit: Unit, q: Fraction) -> int:
    """Return one person's largest change to the score of any point, for q = a/b and k rows per person.

    Let s = (b − a)·below − a·above. A value below z adds b − a to s, and a value at or above z adds −a.

    Add-remove: k values are added or removed, some below z and some not, so s moves by at most k·max(a, b − a). A
    missing value adds nothing.

    Replace-one: a row changes from one contribution to another. The contributions are b − a, −a and 0 (a missing
    value, or one in another part of the recursion), so a row moves s by at most b, and k rows by at most k·b.

    |s| moves by at most as much as s. Both bounds are attained.
    """
    a, b = q.numerator, q.denominator
    return unit.rows_per_person * (b if unit.neighbors == "replace-one" else max(a, b - a))


def calls_of_level(unit: Unit) -> int:
    """Return the joint cost of all choices at one level of the halving, in units of the price ρ of one choice.

    The parts of a level are disjoint and their borders are known. Let t_i be the number of the person's rows that are
    in part i before or after. Each of them moves the scores of part i by at most 1/k of `score_sensitivity`, so the
    scores of part i move by at most t_i/k of `score_sensitivity` and the choice in it costs at most (t_i/k)²·ρ.

    Add-remove: Σ t_i ≤ k, so Σ (t_i/k)² ≤ 1.

    Replace-one: a row leaves one part and enters another, so Σ t_i ≤ 2k, and t_i ≤ k, so Σ (t_i/k)² ≤ 2.
    """
    return 2 if unit.neighbors == "replace-one" else 1


def levels_of(bins: int) -> int:
    """Return the number of levels of halving for ``bins`` bins: ⌈log₂ bins⌉."""
    return max(bins - 1, 0).bit_length()


def calls_of_edges(bins: int, unit: Unit) -> int:
    """Return the joint cost of all choices of `choose_edges`, in units of the price ρ of one choice.

    The first level has one part, which costs one call for any change by a person (t ≤ k above). Each further level
    costs `calls_of_level`, and the costs of the levels add up.
    """
    levels = levels_of(bins)
    return 1 + (levels - 1) * calls_of_level(unit) if levels else 0


def choose_edges(
    counts: NDArray[np.int64], grid: Values, bins: int, unit: Unit, choose: Choose, rho: float
) -> tuple[float, ...]:
    """Choose edges of at most ``bins`` bins with about the same number of values each, in `levels_of` levels.

    ``counts`` are the numbers of values between the points of ``grid`` (`Source.grid_counts`). The outermost edges are
    the ends of ``grid``. If many values are equal, or the grid is coarse, there are fewer bins. ``rho`` is the price of
    one call. It sets the noise scale. The score of a cut is lowered by one noise scale, a public number of rows, for
    each doubling of its distance from the lower end of its part. So among cuts with the same counts, the one next to
    the equal values below is preferred, and a bin of zeros ends just above 0. Adding a public number to a score does
    not change its sensitivity.

    Guarantee: with ``choose`` at price ρ per call, `calls_of_edges` (bins, unit) × ρ in zCDP.
    """
    if not 1 <= bins <= MOST_BINS:
        raise SchemaError(f"a column must have 1 to {MOST_BINS} bins, not {bins}")
    below = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    cuts = [0, len(grid) - 1]
    parts = [(0, len(grid) - 1, bins)]
    while parts:
        finer = []
        for low, high, wanted in parts:
            inner = grid[low + 1 : high]
            if wanted < 2 or not len(inner):
                continue
            left = wanted // 2
            q = Fraction(left, wanted)
            sensitivity = score_sensitivity(unit, q)
            doublings = np.log2((inner - grid[low]) / (inner[0] - grid[low]))
            price = np.ceil(sensitivity / math.sqrt(2 * rho) * doublings).astype(np.int64)
            held = quantile_scores(below[low + 1 : high] - below[low], int(below[high] - below[low]), q)
            chosen = choose((held - price).tolist(), sensitivity)
            cut = low + 1 + chosen
            cuts.append(cut)
            finer += [(low, cut, left), (cut, high, wanted - left)]
        parts = finer
    return tuple(float(x) for x in grid[sorted(cuts)])


def range_grid() -> Values:
    """Return the public grid of a range: 0 and ±1, 2, 5 times the powers of ten from 10⁻⁶ to 10¹²."""
    sizes = [float(f"{m}e{power}") for power in range(-6, 13) for m in (1, 2, 5)]
    return np.array([*(-x for x in reversed(sizes)), 0.0, *sizes])


def range_of(noisy: NDArray[np.float64], sigma: float) -> tuple[float, float]:
    """Return a range for a column, from the ``noisy`` counts of its values between the points of `range_grid`.

    The range contains the run of cells with the largest sum of counts above ``sigma`` times `LIKELY`, and every cell
    with a count above ``sigma`` times `CERTAIN`. A cell with less than a share `TAIL` of the rows is treated as empty.
    Values outside join the outermost bins. This is post-processing, because nothing is drawn.
    """
    grid, few = range_grid(), TAIL * max(float(noisy.sum()), 0.0)
    sums = np.concatenate([[0.0], np.cumsum(noisy - max(LIKELY * sigma, few))])
    last = int(np.argmax(sums[1:] - np.minimum.accumulate(sums)[:-1]))
    first = int(np.argmin(sums[: last + 1]))
    certain = np.flatnonzero(noisy > max(CERTAIN * sigma, few)).tolist()
    return float(grid[min(first, *certain, first)]), float(grid[max(last, *certain, last) + 1])
