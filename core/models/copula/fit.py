"""Purchase of noisy histograms and moments, and the fit computed from them.

The steps are: one-way counts of every column; moments of the normal scores and categories; moments of the public
features and the target, then of the residual of that fit; and counts of the residual of the last fit. All answers are
Gaussian, so ρ adds up exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from espalier.core.models.copula.layout import Layout
from espalier.core.models.copula.model import CopulaModel, Inputs, Nominal, Response
from espalier.core.models.copula.shapes import Pyramid, Shape
from espalier.core.privacy.draws import SumMeasurement
from espalier.core.privacy.moments import Bin, Histogram, Left, Moments, Scored, WithOutcome
from espalier.core.privacy.regression_features import Features, Surface, side_by_side
from espalier.core.privacy.sums import SumRecipe

Ask = Callable[[SumRecipe, float, str], SumMeasurement]
"""Function that answers a recipe after paying ρ from a pool, as a curator does."""

COUNTS, SCORES, FIT, LEFT = "one-way", "dependence", "regression", "residuals"
SHARES = {COUNTS: 0.15, SCORES: 0.1, FIT: 0.65, LEFT: 0.1}
"""Shares of ρ by pool."""

SCORE_UNITS = 2**10
"""Length of a row's clipped normal scores, in units."""

LENGTH = 1.3
"""Factor 1.3: a row's normal scores are shortened to the length √(1.3·d), because E‖z‖² = d."""

CATEGORY = 0.5
"""Length of a row's category part relative to its scores."""

TOGETHER = 4
"""Size of a group. Bins are counted one by one, then in groups, then in groups of groups, and so on."""

ROUNDS = (0.4, 0.6)
"""Shares of the regression's ρ, by round."""

FURTHEST_FIT = 4.0
"""Half of the largest distance between a fitted value and the target's mean, in standard deviations of the target."""

LEFT_BINS, LEFT_REACH = 24, 3.0
"""Number of bins for the residual, and the range that they cover on either side of 0 in standard deviations of the
target.
"""

FURTHEST = 3.0
"""Number of standard deviations at which the features clip a value."""

ROWS_FOR_MOMENTS = 4_000
"""Number of synthetic inputs from which moments are computed."""

LEAST_LEFT = 0.3
"""Smallest residual of any fit, in standard deviations of the target."""


def parts(layout: Layout) -> dict[str, float]:
    """Return the shares of ρ that this table needs."""
    needed = len(layout.inputs) > 1 or (layout.inputs and layout.categories)
    kept = {name: share for name, share in SHARES.items() if needed or name != SCORES}
    return {name: share / math.fsum(kept.values()) for name, share in kept.items()}


def fit(
    layout: Layout,
    ask: Ask,
    rhos: Mapping[str, float],
    rows: int | None,
    nominal: Nominal | None,
    rng: np.random.Generator,
) -> CopulaModel:
    """Spend ``rhos`` (ρ by pool), and return the fit. ``rows`` is n if it is public.

    ``nominal`` is the model of the nominal columns, fitted by a marginal method, or `None` if there are none. ``rng``
    chooses public frequencies and synthetic rows, never noise.
    """
    shapes, total, sigma = _one_way(layout, ask, rhos[COUNTS], rows)
    normal = {n: _normal(shapes[n], total) for n in layout.inputs}
    slopes, spread = _linked(layout, normal, nominal, total, (ask, rhos.get(SCORES, 0.0)))
    inputs = Inputs(layout, shapes, nominal, slopes, spread)
    seen = {n: (z + _standardised(shapes[n])) / 2 for n, z in normal.items()}
    surface = _surface(inputs, layout.features(seen, rows, rng), (total, sigma), (ask, rhos[FIT]), rng)
    return CopulaModel(inputs, _left(surface, inputs, total, (ask, rhos[LEFT]), rng), total)


def _one_way(layout: Layout, ask: Ask, rho: float, rows: int | None) -> tuple[dict[str, Shape], float, float]:
    """Return the noisy distribution of every axis, for equal shares of ``rho``; the number of rows, public or noisy;
    and σ of a count that costs ρ = 1.
    """
    each, told, sigma = rho / len(layout.axes), {}, 0.0
    for name, axis in layout.axes.items():
        recipe = Histogram(f"counts of {name}", axis.bins, layout.reading.only(name), Bin(name, axis))
        told[name], sigma = _counted(recipe, np.diff(axis.edges), (ask, each), COUNTS)
    total = float(rows) if rows is not None else _total(list(told.values()))
    return {n: Shape(layout.axes[n], pyramid.chances(total)) for n, pyramid in told.items()}, total, sigma


def _counted(
    recipe: Histogram, widths: NDArray[np.float64], bought: tuple[Ask, float], pool: str
) -> tuple[Pyramid, float]:
    """Return counts of bins, of groups of ``TOGETHER`` bins and so on, with equal shares of ρ; and σ of a count that
    costs ρ = 1.
    """
    steps = [1]
    while steps[-1] * TOGETHER < recipe.bins:
        steps.append(steps[-1] * TOGETHER)
    each = math.nextafter(bought[1] / len(steps), 0)  # keeps the sum of the shares within ρ
    answers, sigma = {}, 0.0
    for step in steps:
        what = recipe.what if step == 1 else f"{recipe.what}, in groups of {step} bins"
        answer = bought[0](replace(recipe, what=what, together=step), each, pool)
        answers[step], sigma = answer.values, answer.sigma
    return Pyramid.of(answers, widths, sigma), sigma * math.sqrt(each)


def _total(told: list[Pyramid]) -> float:
    """Return the number of rows: the mean over the counts of all columns, weighted by their noise; at least 1."""
    weights = np.array([1 / float(p.variance[-1][0]) for p in told])
    return max(1.0, float(weights @ [float(p.counts[-1][0]) for p in told] / weights.sum()))


def _normal(shape: Shape, total: float) -> NDArray[np.float64]:
    """Return the normal score of each tick under the noisy distribution, limited to the range of scores expected in
    ``total`` rows.
    """
    from scipy.special import ndtri

    tail = min(0.5 / total, 0.25)
    return np.asarray(ndtri(np.clip(shape.share_below(shape.axis.middles), tail, 1 - tail)))


def _standardised(shape: Shape) -> NDArray[np.float64]:
    """Return each tick in standard deviations from the mean of the noisy distribution.

    A target depends smoothly on a column's values about as often as on its ranks, so the features use the mean of both.
    """
    edges = np.asarray(shape.axis.edges)
    mean = float(shape.chances @ (edges[1:] + edges[:-1])) / 2
    return np.asarray(np.clip((shape.axis.middles - mean) / _spread(shape), -FURTHEST, FURTHEST))


def _linked(
    layout: Layout,
    normal: Mapping[str, NDArray[np.float64]],
    nominal: Nominal | None,
    total: float,
    bought: tuple[Ask, float],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the dependence of normal scores on categories (slopes on one-hot categories) and on each other (Cholesky
    factor).

    The noisy correlation is replaced by the nearest matrix with unit diagonal and eigenvalues of at least 0.02.
    """
    d, one_hot = len(normal), {n: np.eye(size, dtype=np.int64) for n, size in layout.categories.items()}
    width = sum(layout.categories.values())
    if not bought[1] or not d:
        return np.zeros((width, d)), np.eye(d)
    unit = SCORE_UNITS / math.sqrt(LENGTH * d)
    marked = math.floor(CATEGORY * SCORE_UNITS / math.sqrt(max(len(one_hot), 1)))
    scores = {n: np.rint(unit * z).astype(np.int64)[:, None] for n, z in normal.items()}
    vectors = Scored(scores, {n: marked * table for n, table in one_hot.items()}, SCORE_UNITS)
    recipe = Moments("products of normal scores and categories", layout.reading.only(*scores, *one_hot), vectors)
    answer = bought[0](recipe, bought[1], SCORES)
    moments = recipe.square * recipe.matrix(answer.values) / total
    within = _correlation(moments[:d, :d])
    if not one_hot or nominal is None:
        return np.zeros((0, d)), _factor(within)
    drawn = side_by_side(nominal.sample(ROWS_FOR_MOMENTS, np.random.default_rng(0)), one_hot).astype(np.float64)
    beside = recipe.square * recipe.noise(answer.sigma) / total / (unit * marked)
    shared = drawn.T @ drawn / len(drawn)
    slopes = damped(shared, moments[d:, :d] / (unit * marked), 2 * beside)
    mean = drawn @ slopes
    return slopes, _factor(within - np.cov(mean.T, bias=True).reshape(d, d))


def _correlation(moments: NDArray[np.float64]) -> NDArray[np.float64]:
    scale = np.sqrt(np.maximum(np.diag(moments), 0.3 * max(float(np.diag(moments).mean()), 1e-9)))
    out = np.clip(moments / np.outer(scale, scale), -0.99, 0.99)
    np.fill_diagonal(out, 1.0)
    return np.asarray(out)


def _factor(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(np.linalg.cholesky((vectors * np.maximum(values, 0.02)) @ vectors.T))


def damped(matrix: NDArray[np.float64], right: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Return x with matrix·x ≈ right, both noisy. Eigenvalues γ > 0 are inverted as γ/(γ² + noise²); the others are
    left out.
    """
    values, vectors = np.linalg.eigh(matrix)
    kept = np.maximum(values, 0.0)
    gain = kept / (kept * kept + max(noise, 1e-9) ** 2)
    return np.asarray(vectors @ (gain[:, None] * (vectors.T @ right.reshape(len(values), -1)))).reshape(right.shape)


def cleaned(noisy: NDArray[np.float64], like: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Return ``like``, corrected by the part of its difference from the ``noisy`` matrix that exceeds the noise.

    A symmetric noise matrix (``noise`` off the diagonal, √2 times as much on it) has eigenvalues up to e =
    2·√p·``noise``. Eigenvalues of the difference within e become 0, and a larger v becomes √(v² − e²). This is optimal
    for differences of low rank (Donoho, Gavish & Johnstone 2018).
    """
    values, vectors = np.linalg.eigh(noisy - like)
    edge = 2 * math.sqrt(len(values)) * noise
    kept = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    return np.asarray(like + (vectors * kept) @ vectors.T)


def _surface(
    inputs: Inputs,
    features: Features,
    known: tuple[float, float],
    bought: tuple[Ask, float],
    rng: np.random.Generator,
) -> Surface:
    """Return the target's smooth dependence on the features, from noisy matrices of moments of (φ, y), in ``ROUNDS``.

    The first round fits the target, and each later round fits the residual so far. The residual is smaller, so a
    tighter clip suffices, and the noise shrinks with the clip. AᵀA and Aᵀy are bought as one matrix. Bought separately
    under replace-one, AᵀA would have Δ = √2 and Aᵀy Δ = 2, and they would share ρ. Together, with |y| ≤ ‖φ‖, Δ = 2·√2,
    and every off-diagonal entry has the noise that Aᵀy alone would have for all of ρ. Synthetic inputs yield the same
    matrix without noise, but with the errors of these inputs: see `cleaned`. ``known`` holds the number of rows, and σ
    of a count for a ρ of 1. These sums have the same σ as counts, because they have the same Δ.
    """
    (ask, rho), (total, sigma) = bought, known
    axis, shape = inputs.layout.axes[inputs.layout.target], inputs.shapes[inputs.layout.target]
    edges = np.asarray(axis.edges)
    middle, spread = float(shape.chances @ (edges[1:] + edges[:-1])) / 2, _spread(shape)
    length, wide = math.isqrt(features.square), math.sqrt(features.size)
    made = features.of(inputs.draw(ROWS_FOR_MOMENTS, rng)[1]) / length
    surface = Surface(features, np.zeros(features.size), middle, FURTHEST_FIT * spread)
    left, seen, certain = spread, np.zeros((features.size, features.size)), 0.0
    for number, part in enumerate(ROUNDS, 1):
        noise = 2 * Moments.noise(sigma / math.sqrt(part * rho)) / total  # noise of an entry, where ‖φ‖² is at most 1
        half = reach(noise * wide) * left
        what = "products of features and " + ("the target" if number == 1 else "the residual of the fit")
        vectors = WithOutcome(surface, axis, half)
        recipe = Moments(what, inputs.layout.reading, vectors)
        answer = ask(recipe, math.nextafter(part * rho, 0), FIT)
        moments = recipe.square * recipe.matrix(answer.values) / (features.square * total)
        seen, certain = seen + moments[:-1, :-1] / noise**2, certain + 1 / noise**2
        matrix = cleaned(seen / certain, made.T @ made / len(made), certain**-0.5)
        before, right = surface.weights * length, half * moments[:-1, -1]
        rest = max(half**2 * float(moments[-1, -1]), (LEAST_LEFT * spread) ** 2)
        weights, told = shrunk(matrix, right + matrix @ before, (half * noise, rest / total, spread))
        step = weights - before
        # add back the noise that the fit absorbed; otherwise the estimated residual would be too small
        after = float(rest - 2 * step @ right + step @ matrix @ step + 2 * told * (half * noise) ** 2)
        left = math.sqrt(min(max(after, (LEAST_LEFT * spread) ** 2), spread**2))
        surface = replace(surface, weights=weights / length)
    return surface


def reach(noise: float) -> float:
    """Return the clipping bound in standard deviations, given the ``noise`` in sums of unit vectors.

    A tighter bound means less noise but cuts off more of the target. The part of a normal target beyond c is about
    e^(−c²/2), so at √(2·ln(1/noise)) the loss equals the noise. A bound smaller by ½ was best on tables that no
    benchmark reports.
    """
    return max(1.0, math.sqrt(2 * math.log(1 / min(noise, 0.9))) - 0.5)


def shrunk(
    matrix: NDArray[np.float64], right: NDArray[np.float64], known: tuple[float, float, float]
) -> tuple[NDArray[np.float64], float]:
    """Return the posterior mean of w given matrix·w + error = right, with w normal around 0, and the effective number
    of weights.

    ``known`` holds the noise of an entry, the variance that sampling adds per unit of ``matrix``, and the target's
    standard deviation. The variance of w is the mode under a log-normal prior around the target's variance.
    """
    noise, sampling, spread = known
    values, vectors = np.linalg.eigh(matrix)
    kept, seen = np.maximum(values, 0.0), vectors.T @ right
    error = noise**2 + kept * sampling
    tried = spread**2 * np.logspace(-3, 3, 37)
    total = kept**2 * tried[:, None] + error
    likely = -0.5 * (np.log(total) + seen**2 / total).sum(axis=1) - np.log(tried / spread**2) ** 2 / 2
    variance = float(tried[likely.argmax()])
    gain = kept * variance / (kept**2 * variance + error)
    return np.asarray(vectors @ (gain * seen)), float(gain.sum())


def _spread(shape: Shape) -> float:
    """Return the standard deviation of a noisy distribution, at least the width of a bin."""
    edges = np.asarray(shape.axis.edges)
    middles = (edges[1:] + edges[:-1]) / 2
    apart = middles - float(shape.chances @ middles)
    return max(math.sqrt(float(shape.chances @ apart**2)), float(np.diff(edges).min()))


def _left(
    surface: Surface, inputs: Inputs, total: float, bought: tuple[Ask, float], rng: np.random.Generator
) -> Response:
    """Return the response: the fit and the noisy histogram of its residual over public bins.

    Noise makes this histogram too wide. The target's variance is known from its own counts, and the variance of the fit
    from synthetic inputs. The residual is narrowed until its variance and the fit's variance add up to the target's.
    """
    layout = inputs.layout
    reach, axis = LEFT_REACH * _spread(inputs.shapes[layout.target]), layout.axes[layout.target]
    edges = np.linspace(-reach, reach, LEFT_BINS + 1)
    group = Left(surface, axis, tuple(edges.tolist()))
    recipe = Histogram(f"counts of the residual of {axis.name}", LEFT_BINS, layout.reading, group)
    chances = _counted(recipe, np.diff(edges), bought, LEFT)[0].chances(total)
    middles = (edges[1:] + edges[:-1]) / 2
    mean = float(chances @ middles)
    known = _spread(inputs.shapes[layout.target]) ** 2
    fitted = float(surface.at(inputs.draw(ROWS_FOR_MOMENTS, rng)[1]).var())
    most = (1 - LEAST_LEFT**2) * known
    if fitted > most:  # a true fit never varies more than the target, but noise can make it do so
        surface, fitted = replace(surface, weights=surface.weights * math.sqrt(most / fitted)), most
    wanted = math.sqrt((known - fitted) / float(chances @ (middles - mean) ** 2 + 1e-300))
    return Response(surface, chances, mean + min(wanted, 1.0) * (edges - mean))
