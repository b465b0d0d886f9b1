"""Spend the budget and fit: three kinds of noisy sums, and all else is made from them.

Steps and shares of ρ (all answers Gaussian, so that ρ adds up exactly): one-way counts of every column; moments of the
normal scores and categories; moments of the public features and the target; counts of what the fit leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from core.models.copula.layout import Layout
from core.models.copula.model import CopulaModel, Inputs, Nominal, Response
from core.models.copula.shapes import Shape, to_chances
from core.privacy.draws import SumMeasurement
from core.privacy.features import Features, Fourier, Polynomial, Surface, side_by_side
from core.privacy.moments import Bin, Histogram, Left, Moments, Scored, WithOutcome
from core.privacy.sums import SumRecipe

Ask = Callable[[SumRecipe, float, str], SumMeasurement]
"""What answers a recipe, having paid so much ρ from a pool: a curator."""

COUNTS, SCORES, FIT, LEFT = "one-way", "dependence", "regression", "residuals"
SHARES = {COUNTS: 0.2, SCORES: 0.1, FIT: 0.55, LEFT: 0.15}
"""Parts of ρ."""

SCORE_UNITS = 2**10
"""Length of a row's normal scores in units, once shortened."""

LENGTH = 1.3
"""A row's normal scores are shortened to √(1.3·d): E‖z‖² = d."""

CATEGORY = 0.5
"""Length of a row's categories beside its scores."""

REACH = {Polynomial: 1.5, Fourier: 3.0}
"""The target is clipped to so many standard deviations around its middle for the fit, both from noisy counts: less
where rows are few and noise counts for more."""

LEFT_BINS, LEFT_REACH = 20, 1.5
"""Bins for what the fit leaves, and how far they reach on either side, in the reach of the fit."""

SCORE_REACH = 2.5
"""Normal scores of this size are scores of 1; a polynomial clips there."""

ROWS_FOR_MOMENTS = 4_000
"""Synthetic inputs drawn to know their moments."""

MODEL_ERROR = 1e-3
"""By how much the moments of synthetic inputs are trusted: their error, in squared lengths of a row's features."""

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
    scores = {n: z / SCORE_REACH for n, z in normal.items()}
    surface = _surface(inputs, layout.features(scores, rows, rng), total, (ask, rhos[FIT]), rng)
    return CopulaModel(inputs, _left(surface, layout, total, (ask, rhos[LEFT])), total)


def _one_way(layout: Layout, ask: Ask, rho: float, rows: int | None) -> tuple[dict[str, Shape], float]:
    """Every axis's noisy distribution, equal shares of ``rho``, and the number of rows, public or noisy."""
    each = math.nextafter(rho / len(layout.axes), 0)  # so that the parts never add up to more
    answers = {}
    for name, axis in layout.axes.items():
        recipe = Histogram(f"counts of {name}", axis.bins, layout.reading.only(name), Bin(name, axis))
        answers[name] = ask(recipe, each, COUNTS).values
    total = float(rows) if rows is not None else _total(list(answers.values()))
    return {n: Shape(axis, to_chances(answers[n], total)) for n, axis in layout.axes.items()}, total


def _total(answers: list[NDArray[np.float64]]) -> float:
    """The number of rows from noisy counts of one scale: each sum's variance grows with its bins; at least 1."""
    sums, bins = np.array([a.sum() for a in answers]), np.array([len(a) for a in answers])
    return max(1.0, float((sums / bins).sum() / (1 / bins).sum()))


def _normal(shape: Shape, total: float) -> NDArray[np.float64]:
    """The normal score of each tick, by the noisy distribution; as far out as ``total`` rows reach."""
    from scipy.special import ndtri

    tail = min(0.5 / total, 0.25)
    return np.asarray(ndtri(np.clip(shape.share_below(shape.axis.middles), tail, 1 - tail)))


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
    half = REACH[type(features)] * max(
        math.sqrt(float(shape.chances @ (middles - middle) ** 2)), float(np.diff(edges).min())
    )
    length = math.isqrt(features.square)
    outcome = np.trunc(length * np.clip((axis.middles - middle) / half, -1, 1)).astype(np.int64)
    vectors = WithOutcome(features, inputs.layout.target, outcome)
    recipe = Moments("products of features and the target", inputs.layout.reading, vectors)
    answer = bought[0](recipe, bought[1], FIT)
    scale = recipe.square / (features.square * total)
    moments, noise = scale * recipe.matrix(answer.values), scale * recipe.noise(answer.sigma)
    made = features.of(inputs.draw(ROWS_FOR_MOMENTS, rng)[1]) / length
    known = noise**2 / (noise**2 + MODEL_ERROR**2)
    matrix = (1 - known) * moments[:-1, :-1] + known * (made.T @ made) / len(made)
    weights = damped(matrix, moments[:-1, -1], DAMPING * noise * math.sqrt(features.size))
    return Surface(features, weights * half / length, middle, half)


def _left(surface: Surface, layout: Layout, total: float, bought: tuple[Ask, float]) -> Response:
    """The response: the fit, with the noisy histogram of what it leaves, over public bins."""
    reach, axis = surface.half * LEFT_REACH, layout.axes[layout.target]
    edges = np.linspace(-reach, reach, LEFT_BINS + 1)
    group = Left(surface, axis, tuple(edges.tolist()))
    recipe = Histogram(f"counts of what the fit of {axis.name} leaves", LEFT_BINS, layout.reading, group)
    return Response(surface, to_chances(bought[0](recipe, bought[1], LEFT).values, total), edges)
