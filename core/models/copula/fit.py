"""Spend the budget and fit: three kinds of noisy sums, and all else is made from them.

Steps and shares of ρ (all answers Gaussian, so that ρ adds up exactly): one-way counts of every column; moments of the
normal scores and categories; moments of the public features and the target; counts of what the fit leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from core.models.copula.layout import SMALL_TABLE, Layout
from core.models.copula.model import CopulaModel, Inputs, Nominal, Response
from core.models.copula.shapes import Shape, smoothed, to_chances
from core.privacy.draws import SumMeasurement
from core.privacy.features import Features, Fourier, Polynomial, Surface, side_by_side
from core.privacy.moments import Bin, Histogram, Left, Moments, Scored, WithOutcome
from core.privacy.sums import SumRecipe

Ask = Callable[[SumRecipe, float, str], SumMeasurement]
"""What answers a recipe, having paid so much ρ from a pool: a curator."""

COUNTS, SCORES, FIT, LEFT = "one-way", "dependence", "regression", "residuals"
SHARES = {COUNTS: 0.15, SCORES: 0.1, FIT: 0.65, LEFT: 0.1}
"""Parts of ρ."""

SCORE_UNITS = 2**10
"""Length of a row's normal scores in units, once shortened."""

LENGTH = 1.3
"""A row's normal scores are shortened to √(1.3·d): E‖z‖² = d."""

CATEGORY = 0.5
"""Length of a row's categories beside its scores."""

REACH, REACH_OF_FEW = {Polynomial: 2.0, Fourier: 4.0}, 1.2
"""The target is clipped to so many standard deviations around its middle for the fit, both from noisy counts: less
where rows are few and noise counts for more."""

LEFT_BINS, LEFT_REACH = 24, 3.0
"""Bins for what the fit leaves, and how far they reach on either side, in standard deviations of the target."""

FURTHEST = 3.0
"""Standard deviations beyond which a value counts no further for the features."""

ROWS_FOR_MOMENTS = 4_000
"""Synthetic inputs drawn to know their moments."""

LEAST_LEFT = 0.05
"""The share of the target's variance that is left by any fit."""

DAMPING = 0.3
"""Directions whose moments lie below so much of the noise's norm are damped."""


def parts(layout: Layout) -> dict[str, float]:
    """The shares of ρ, without a part that this table does not need."""
    needed = len(layout.inputs) > 1 or (layout.inputs and layout.categories)
    kept = {name: share for name, share in SHARES.items() if needed or name != SCORES}
    return {name: share / math.fsum(kept.values()) for name, share in kept.items()}


def fit(
    layout: Layout, ask: Ask, rhos: Mapping[str, float], rows: int | None, nominal: Nominal | None = None
) -> CopulaModel:
    """Spend ``rhos`` (ρ by pool) and fit. ``rows`` is n where it is public.

    ``nominal`` draws the nominal columns, which a marginal method has fitted; None where there are none. Chance here
    chooses public frequencies and synthetic rows, never noise.
    """
    rng = np.random.default_rng()
    shapes, total = _one_way(layout, ask, rhos[COUNTS], rows)
    normal = {n: _normal(shapes[n], total) for n in layout.inputs}
    slopes, spread = _linked(layout, normal, nominal, total, (ask, rhos.get(SCORES, 0.0)))
    inputs = Inputs(layout, shapes, nominal, slopes, spread)
    seen = {n: (z + _standardised(shapes[n])) / 2 for n, z in normal.items()}
    surface = _surface(inputs, layout.features(seen, rows, rng), total, (ask, rhos[FIT]), rng)
    return CopulaModel(inputs, _left(surface, inputs, total, (ask, rhos[LEFT]), rng), total)


def _one_way(layout: Layout, ask: Ask, rho: float, rows: int | None) -> tuple[dict[str, Shape], float]:
    """Every axis's noisy distribution, equal shares of ``rho``, and the number of rows, public or noisy."""
    each = math.nextafter(rho / len(layout.axes), 0)  # so that the parts never add up to more
    answers, sigma = {}, 0.0
    for name, axis in layout.axes.items():
        recipe = Histogram(f"counts of {name}", axis.bins, layout.reading.only(name), Bin(name, axis))
        answer = ask(recipe, each, COUNTS)
        answers[name], sigma = answer.values, answer.sigma
    total = float(rows) if rows is not None else _total(list(answers.values()))
    even = {n: smoothed(answers[n], np.diff(axis.edges), sigma) for n, axis in layout.axes.items()}
    return {n: Shape(axis, to_chances(even[n], total)) for n, axis in layout.axes.items()}, total


def _total(answers: list[NDArray[np.float64]]) -> float:
    """The number of rows from noisy counts of one scale: each sum's variance grows with its bins; at least 1."""
    sums, bins = np.array([a.sum() for a in answers]), np.array([len(a) for a in answers])
    return max(1.0, float((sums / bins).sum() / (1 / bins).sum()))


def _normal(shape: Shape, total: float) -> NDArray[np.float64]:
    """The normal score of each tick, by the noisy distribution; as far out as ``total`` rows reach."""
    from scipy.special import ndtri

    tail = min(0.5 / total, 0.25)
    return np.asarray(ndtri(np.clip(shape.share_below(shape.axis.middles), tail, 1 - tail)))


def _standardised(shape: Shape) -> NDArray[np.float64]:
    """Each tick in standard deviations from the mean of the noisy distribution.

    A target is smooth in a column's values as often as in its ranks, so the features see the mean of both.
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
    """How normal scores depend on categories and on one another: slopes on one-hot categories, Cholesky factor.

    The noisy correlation is brought to the nearest matrix of unit diagonal whose eigenvalues are at least 0.02.
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
    """The x of matrix·x ≈ right, where both are noisy: eigenvalues γ enter as γ/(γ² + noise²), those below 0 not."""
    values, vectors = np.linalg.eigh(matrix)
    kept = np.maximum(values, 0.0)
    gain = kept / (kept * kept + max(noise, 1e-9) ** 2)
    return np.asarray(vectors @ (gain[:, None] * (vectors.T @ right.reshape(len(values), -1)))).reshape(right.shape)


def cleaned(noisy: NDArray[np.float64], like: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """``like``, put right by as much of its difference from the ``noisy`` matrix as stands out of the noise.

    A symmetric matrix of noise (``noise`` beside the diagonal, √2 times as much on it) has eigenvalues up to
    e = 2·√p·``noise``. Of the difference those within it go to 0 and a larger v to √(v² − e²), which errs least for
    differences of low rank (Donoho, Gavish & Johnstone 2018).
    """
    values, vectors = np.linalg.eigh(noisy - like)
    edge = 2 * math.sqrt(len(values)) * noise
    kept = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    return np.asarray(like + (vectors * kept) @ vectors.T)


def _surface(
    inputs: Inputs, features: Features, total: float, bought: tuple[Ask, float], rng: np.random.Generator
) -> Surface:
    """The target's smooth dependence on the features, from one noisy matrix of moments of (φ, y).

    One matrix serves AᵀA and Aᵀy. Bought apart under replace-one, AᵀA would have Δ = √2 and Aᵀy Δ = 2, and ρ would be
    split between them; together, with |y| ≤ ‖φ‖, Δ = 2·√2 and every entry beside the diagonal has the noise that Aᵀy
    alone would have had for all of ρ. The matrix is mixed with that of synthetic inputs as far as it is noisier than
    those are wrong.
    """
    axis, shape = inputs.layout.axes[inputs.layout.target], inputs.shapes[inputs.layout.target]
    edges = np.asarray(axis.edges)
    middles = (edges[1:] + edges[:-1]) / 2
    middle = float(shape.chances @ middles)
    reach = REACH_OF_FEW if total < SMALL_TABLE else REACH[type(features)]
    half = reach * _spread(shape)
    length = math.isqrt(features.square)
    outcome = np.trunc(length * np.clip((axis.middles - middle) / half, -1, 1)).astype(np.int64)
    vectors = WithOutcome(features, inputs.layout.target, outcome)
    recipe = Moments("products of features and the target", inputs.layout.reading, vectors)
    answer = bought[0](recipe, bought[1], FIT)
    scale = recipe.square / (features.square * total)
    moments, noise = scale * recipe.matrix(answer.values), scale * recipe.noise(answer.sigma)
    made = features.of(inputs.draw(ROWS_FOR_MOMENTS, rng)[1]) / length
    matrix = cleaned(moments[:-1, :-1], made.T @ made / len(made), noise)
    weights = damped(matrix, moments[:-1, -1], DAMPING * noise * math.sqrt(features.size))
    return Surface(features, weights * half / length, middle, half)


def _spread(shape: Shape) -> float:
    """The standard deviation of a noisy distribution, at least a bin's width."""
    edges = np.asarray(shape.axis.edges)
    middles = (edges[1:] + edges[:-1]) / 2
    apart = middles - float(shape.chances @ middles)
    return max(math.sqrt(float(shape.chances @ apart**2)), float(np.diff(edges).min()))


def _left(
    surface: Surface, inputs: Inputs, total: float, bought: tuple[Ask, float], rng: np.random.Generator
) -> Response:
    """The response: the fit, with the noisy histogram of what it leaves, over public bins.

    Noise in that histogram makes it too wide. How much the target varies is known from its own counts, and how much the
    fit does over synthetic inputs from the fit; what is left is drawn in so that both together vary as the target does.
    """
    layout = inputs.layout
    reach, axis = LEFT_REACH * _spread(inputs.shapes[layout.target]), layout.axes[layout.target]
    edges = np.linspace(-reach, reach, LEFT_BINS + 1)
    group = Left(surface, axis, tuple(edges.tolist()))
    recipe = Histogram(f"counts of what the fit of {axis.name} leaves", LEFT_BINS, layout.reading, group)
    answer = bought[0](recipe, bought[1], LEFT)
    chances = to_chances(smoothed(answer.values, np.diff(edges), answer.sigma), total)
    middles = (edges[1:] + edges[:-1]) / 2
    mean = float(chances @ middles)
    known = _spread(inputs.shapes[layout.target]) ** 2
    fitted = float(surface.at(inputs.draw(ROWS_FOR_MOMENTS, rng)[1]).var())
    wanted = math.sqrt(max(known - fitted, LEAST_LEFT * known) / float(chances @ (middles - mean) ** 2 + 1e-300))
    return Response(surface, chances, mean + min(wanted, 1.0) * (edges - mean))
