"""95 % intervals for figures from noisy counts, covering both noise and sampling of rows.

The counts are h = c + e, where c are the exact counts of n rows drawn from a population and e is independent noise with
mean zero and known scale σ. With k rows per person, sampling variances are multiplied by k. Everything here is
post-processing of released counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Z = 1.959963984540054
"""Two-sided 95 % quantile of a normal distribution."""
TAIL = 0.025
DRAWS = 400
STEPS = 61
FARTHEST = 64.0
"""Limit for the upper end of an interval, as a multiple of the observed dependence."""
FILLED, FILLED_SIGMAS = 5.0, 3.0
"""A stratum is used if independence predicts at least this number of rows, and at least this multiple of σ, in each of
its cells.
"""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """``low`` ≤ ``value`` ≤ ``high``; ``method`` describes how the interval was computed. ``bound`` is a wider interval
    that needs no assumption about what the counts do not show; `None` if the first one needs none."""

    value: float
    low: float
    high: float
    method: str
    bound: tuple[float, float] | None = None


def share_interval(counts: FloatArray, sigma: float, n: float, spread: float, k: int) -> Interval | str:
    """Return the share of the second of two cells. ``spread`` is the standard error of ``n``. If n is known, ½ + (h₁ −
    h₀)/2n has noise σ/(√2·n), which is less than that of h₁/n. The interval is Wilson's for a share p with variance p(1
    − p)k/n, widened by that noise s: all p with (p − v)² ≤ z²(p(1 − p)k/n + s²), the roots of p²(1 + a) − p(2v + a) +
    v² − z²s² = 0 with a = z²k/n.
    """
    if n < 1:
        return "there are too few held-out rows"
    lean = float(counts[1] - counts[0]) / (2 * n)
    value = min(max(0.5 + lean, 0.0), 1.0)
    noise = (sigma / (math.sqrt(2) * n)) ** 2 + (lean * spread / n) ** 2
    a = Z**2 * k / n
    middle = 2 * value + a
    root = math.sqrt(max(middle**2 - 4 * (1 + a) * (value**2 - Z**2 * noise), 0.0))
    low, high = ((middle - root) / (2 + 2 * a), (middle + root) / (2 + 2 * a))
    method = "Wilson interval for a share, widened by the variance of the noise"
    return Interval(value, max(low, 0.0), min(high, 1.0), method)


def area_interval(tables: Sequence[tuple[FloatArray, float]], k: int, least: float) -> Interval | str:
    """Return the area under the ROC curve from noisy counts of (truth, bin of the score), averaged over several such
    tables.

    The exact area of n₀ and n₁ rows, A = Σ_b h₁(b)[h₀(below b) + ½h₀(b)]/(n₀n₁), may change by up to 1 with a single
    row, so it is never released with its own noise. From noisy cells, it is a ratio whose numerator is unbiased, since
    the noise of different cells is independent. The interval uses the delta method: with g the gradient of A, the
    variance is Σ(σ² + k·c)g² (Σ c·g² is DeLong's variance of a binned score), plus σ⁴B²/2(n₀n₁)² for the product of two
    noises. The sampling errors of several tables are assumed to be identical, and their noise to be independent. The
    figure is the mean over all tables. If either truth has fewer rows than ``least``·σ√B in a table, that table's area
    may be anything from 0 to 1. Bins hide the ranking of the rows inside them, so the area is slightly too small. The
    upper end includes the loss from binning normal scores with this area (`hidden`: 0.001 to 0.004 with ten bins). The
    ``bound`` is valid for any scores. It starts at the low end for the area if every pair within a bin is ranked
    incorrectly, A − ½Σ_b h₀(b)h₁(b)/(n₀n₁), and ends at the high end for the area if every such pair is ranked
    correctly.
    """
    found = _area(tables, k, least, 0.5)
    if found is None:
        return "there are too few held-out rows of the target's values for this noise"
    (value, half, unknown, bins), many = found, len(tables)
    lost, won = _area(tables, k, least, 0.0), _area(tables, k, least, 1.0)
    assert lost is not None
    assert won is not None
    low, high = max(value - half, 0.0), min(value + half + bins, 1.0)
    bound = min(max(lost[0] - lost[1], 0.0), low), max(min(won[0] + won[1], 1.0), high)
    over = "" if many == 1 else f", mean over the {many} values of the target"
    if unknown:
        over += f"; {unknown} of them have too few rows for the noise and may have any area from 0 to 1"
    method = (
        f"delta method (DeLong) with the variance of the noise; scores in {tables[0][0].shape[1]} bins; the upper end "
        "includes the loss from binning normal scores, and for any scores the AUC is between "
        f"{bound[0]:.3f} and {bound[1]:.3f}{over}"
    )
    return Interval(value, low, high, method, bound)


def _area(
    tables: Sequence[tuple[FloatArray, float]], k: int, least: float, won: float
) -> tuple[float, float, int, float] | None:
    """Return the area if a share ``won`` of the pairs within each bin is ranked correctly, or `None` without an area.

    Also return the half-width of its interval, the number of tables without a known area, and the area hidden by bins.
    """
    areas, noises, samplings, bins = [], [], [], []
    for h, sigma in tables:
        below, above = h[0].sum(), h[1].sum()
        if min(below, above) < least * sigma * math.sqrt(h.shape[1]):
            continue
        rank = np.cumsum(h[0]) - (1 - won) * h[0]
        passed = above - np.cumsum(h[1]) + won * h[1]
        area = float(h[1] @ rank / (below * above))
        slope = np.stack([(passed / above - area) / below, (rank / below - area) / above])
        second = sigma**4 * h.shape[1] ** 2 / 2 / (below * above) ** 2
        areas.append(area)
        noises.append(sigma**2 * float((slope**2).sum()) + second)
        samplings.append(math.sqrt(k * float((np.maximum(h, 0) * slope**2).sum())))
        bins.append(hidden(area, h.shape[1]))
    if not areas:
        return None
    many, unknown = len(tables), len(tables) - len(areas)
    half = Z * math.sqrt(sum(noises) + sum(samplings) ** 2) / many + unknown / many / 2
    value = min(max((sum(areas) + unknown / 2) / many, 0.0), 1.0)
    return value, half, unknown, sum(bins) / many


def hidden(area: float, bins: int) -> float:
    """Return the area that equally filled ``bins`` of a score hide if both truths have normal scores."""
    from scipy.special import ndtr, ndtri

    apart = math.sqrt(2) * float(ndtri(min(max(area, 0.5), 0.999)))
    points = np.linspace(-6.0, 6.0 + apart, 4001)
    below = np.stack([ndtr(points), ndtr(points - apart)])
    cuts = np.searchsorted(below.mean(axis=0), np.arange(1, bins) / bins)
    zero, one = np.diff(np.hstack([np.zeros((2, 1)), below[:, cuts], np.ones((2, 1))]))
    return max(float(ndtr(apart / math.sqrt(2)) - one @ (np.cumsum(zero) - zero / 2)), 0.0)


def entropy_bound(counts: FloatArray, sigma: float, n: float, k: int, error: float = 0.05) -> float:
    """Return an upper bound of a column's entropy in nats, from its noisy ``counts``. The bound fails with probability
    ``error``. It is the upper end of the delta method plus the bias of the plug-in estimate (Miller 1955: (k p(1 − p)/n
    + σ²/n²)/2p for each value), and never exceeds the logarithm of the number of values.
    """
    most = math.log(len(counts))
    p = np.maximum(counts, 0.5) / np.maximum(counts, 0.5).sum()
    variances = k * p * (1 - p) / max(n, 1.0) + (sigma / max(n, 1.0)) ** 2
    entropy = -float(p @ np.log(p))
    slope = np.log(p) + entropy
    spread, bias = math.sqrt(float(slope**2 @ variances)), float((variances / p).sum()) / 2
    return min(entropy + NormalDist().inv_cdf(1 - error) * spread + bias, most)


def distance_interval(
    counts: Sequence[FloatArray] | None,
    shares: Sequence[FloatArray],
    sampling: FloatArray,
    sigmas: Sequence[float],
    n: float,
    spread: float,
    rng: np.random.Generator,
) -> Interval | str:
    """Return the mean total variation between columns' noisy counts and the public ``shares`` q.

    ``sampling`` contains errors of shares in simulated samples, draws × all cells; ``spread`` is the standard error of
    ``n``; if ``counts`` is `None`, the result is the expectation for correct shares.

    A total variation of noisy shares is biased upward by up to the errors' own ‖e‖. Let M̂ be the total variation of
    the noisy shares and T the true one. Then T ≥ M̂ − ‖e‖ (triangle inequality), so the lower end is M̂ minus the 97.5
    % point of ‖e‖. For the upper end, note that among all deviations with mean total variation T, the hardest to detect
    is spread over all cells in proportion to their errors' standard deviations. The upper end is the largest T under
    which an M̂ this small occurs in more than 2.5 % of simulated samples. The value is the T under which M̂ would be
    the median, which tends to be too large, so the interval is conservative. An M̂ below its usual size under errors
    alone is due to chance and proves nothing, so the upper end is never below that of a table with correct shares and
    typical errors.
    """
    if n < 1:
        return "there are too few held-out rows"
    q = np.concatenate(list(shares))
    columns = len(shares)
    scale = np.concatenate([np.full(len(p), s / n) for p, s in zip(shares, sigmas, strict=True)])
    errors = sampling + scale * rng.standard_normal(sampling.shape)
    errors += (spread / n) * rng.standard_normal((len(errors), 1)) * q
    alone = np.abs(errors).sum(axis=1) / 2 / columns
    shown = float(np.median(alone))
    if counts is not None:
        shown = float(np.abs(np.concatenate(list(counts)) / n - q).sum()) / 2 / columns
    low = max(shown - float(np.quantile(alone, 1 - TAIL)), 0.0)
    sd = errors.std(axis=0)
    lean = sd / max(float(sd.sum()) / 2 / columns, 1e-300)
    sign = rng.choice([-1.0, 1.0], errors.shape)
    grid = np.linspace(0.0, 2 * max(shown, float(np.median(alone))), STEPS)
    usual = max(shown, float(np.median(alone)))
    drawn = np.array([np.abs(t * lean * sign + errors).sum(axis=1) / 2 / columns for t in grid])
    value = min(_where(grid, (drawn > shown).mean(axis=1), 0.5), 1.0)
    high = min(_where(grid, (drawn > usual).mean(axis=1), 1 - TAIL), 1.0)
    method = "simulation of noise and sampling; the upper end is valid for any spread of the error over the cells"
    return Interval(max(value, low), low, max(high, low), method)


def information_interval(
    counts: FloatArray, sigma: float, axes: Sequence[Sequence[int]], k: int, rng: np.random.Generator
) -> Interval | str:
    """Return the conditional mutual information I(left; right | given), in nats, of noisy ``counts``. ``axes`` contains
    the axes of left, right and given.

    Chance biases the plug-in estimate upward, so the interval inverts a test. A line of populations runs from the
    independent table that best fits the noisy counts to the noisy counts themselves, and beyond. The interval contains
    the information of those populations under which the observed plug-in estimate lies between the 2.5 % and the 97.5 %
    point of simulated estimates. The value is the information of the population with this median. Strata (values of the
    given columns) are left out if independence predicts fewer than ``FILLED`` rows, or less than ``FILLED_SIGMAS``·σ,
    in one of their cells, because noise would look like dependence there. If more than a fifth of the rows are in such
    strata, there is no figure. An estimate smaller than usual under independence is due to chance, so the upper end is
    never below the usual one.
    """
    h = np.transpose(counts, [a for side in axes for a in side])
    h = h.reshape([math.prod(counts.shape[a] for a in side) for side in axes])
    total = np.maximum(h.sum(axis=(0, 1)), 1e-9)
    least = np.maximum(h.sum(axis=1).min(axis=0), 0) * np.maximum(h.sum(axis=0).min(axis=0), 0) / total
    kept = least >= max(FILLED, FILLED_SIGMAS * sigma)
    if total[kept].sum() < 0.8 * total.sum():
        return "too many strata have too few held-out rows for this noise"
    h = np.maximum(h[:, :, kept], 0.0)
    n, sizes = float(h.sum()), h.shape
    seen = float(information(h)[()])
    p = (h + 1e-9) / (h + 1e-9).sum()
    xz, yz = p.sum(axis=1, keepdims=True), p.sum(axis=0, keepdims=True)
    apart = xz * yz / p.sum(axis=(0, 1), keepdims=True)
    normal, noise = rng.standard_normal((2, DRAWS, *sizes))

    def simulated(shares: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(n * shares + np.sqrt(k * n * shares) * normal + sigma * noise, 0.0))

    none = simulated(apart)
    alone = information(none)
    usual = max(seen, float(np.median(alone)))
    if seen < usual:  # the line then leads to a typical table without dependence
        p = none[np.argsort(alone)[DRAWS // 2]]
        p = p / p.sum()

    def along(t: float) -> FloatArray:
        line = np.maximum((1 - t) * apart + t * p, 1e-12)
        return np.asarray(line / line.sum())

    far = 2.0  # if noise hides the dependence, the line must lead far beyond the observed counts
    while far < FARTHEST and (information(simulated(along(far))) >= usual).mean() < 1 - TAIL / 2:
        far *= 2
    truth, drawn = np.empty(STEPS), np.empty((STEPS, DRAWS))
    for i, t in enumerate(np.linspace(0.0, far, STEPS)):
        line = along(t)
        truth[i] = float(information(line)[()])
        drawn[i] = information(simulated(line))
    truth[0] = 0.0  # this is the independent table, up to rounding
    truth = np.maximum.accumulate(truth)
    low, value = (_where(truth, (drawn >= seen).mean(axis=1), level) for level in (TAIL, 0.5))
    high = _where(truth, (drawn >= usual).mean(axis=1), 1 - TAIL)
    over = "" if kept.all() else f", over the {kept.sum()} of {len(kept)} strata that have enough rows"
    return Interval(value, low, high, f"test inversion by simulation of noise and sampling{over}")


def information(tables: FloatArray) -> FloatArray:
    """Return the plug-in I(x; y | z) in nats of tables of counts (… × x × y × z), each at least 0."""

    def entropy(t: FloatArray, axes: tuple[int, ...]) -> FloatArray:
        t = t.sum(axis=axes, keepdims=True) if axes else t
        return np.asarray(-(t * np.log(np.maximum(t, 1e-300))).sum(axis=(-3, -2, -1)))

    p = tables / np.maximum(tables.sum(axis=(-3, -2, -1), keepdims=True), 1e-300)
    apart = entropy(p, (-2,)) + entropy(p, (-3,)) - entropy(p, ()) - entropy(p, (-3, -2))
    return np.asarray(np.maximum(apart, 0.0))


def _where(values: FloatArray, chance: FloatArray, level: float) -> float:
    """Return the value, among increasing ``values``, at which ``chance`` reaches ``level``, or an end if it does
    not.
    """
    chance = np.maximum.accumulate(chance)
    if chance[0] >= level:
        return float(values[0])
    return float(np.interp(level, chance, values))
