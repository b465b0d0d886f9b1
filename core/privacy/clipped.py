"""Sum of clipped per-row gradients as whole numbers, with its sensitivity, for a training step of a decoder.

**No Poisson sampling.** Every step reads every row. Privacy amplification by sampling in DP-SGD improves (ε, δ) but not
ρ: the Poisson-sampled Gaussian of scale σ is 1/(2σ²)-zCDP like the unsampled one, because at high orders its Rényi
divergence is that of the event in which the row was sampled. No theorem justifies charging "the ρ whose conversion
gives the accountant's ε", because such charges do not add up. A full-batch step is exactly zCDP and adds up with all
other purchases. It was as accurate as sampled steps in the trials behind this design.

**Ghost clipping.** A head's gradient for one row is the outer product of its input (the constant c, one-hot parents, z)
and its residual δ_X. Its squared norm is ‖δ_X‖²·(c² + m_X + ‖z‖²), where m_X is the number of parents not at their base
category in this row. Per-row gradients are therefore never built (Goodfellow 2015; Li et al. 2022, §4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from espalier.core.privacy.softmax_heads import CONSTANT, FloatArray, Heads
from espalier.core.privacy.unit import Unit
from espalier.core.tables.source import Source

UNITS = 2**20
"""Units in a gradient of 1."""

INPUT_UNITS = 2**6
"""Inputs of heads are whole multiples of 1/64 (one-hot entries 64, the constant 45, entries of z any number), and
residuals are whole multiples of 64/2²⁰, so products are whole units."""

LARGEST_LATENT = 8.0
"""Bound to which entries of z are clipped."""

LARGEST_CLIP = 64.0
"""(64 · 2²⁰)² is 2⁵²: squared norms up to the bound stay exact whole numbers in float64."""

NEARLY = 1 - 2**-16
"""Rows are scaled to this share of the norm. Rounding could otherwise leave a row slightly above the norm, and the row
would be ignored."""

_ONES, _INPUTS, _LATENTS = 24, 53 - 6, 53 - 6 - 3
"""Bits available to a product's weights: all 24 of a float32 for a factor of 0 or 1. A float64 has 53 bits; multiples
of 1/64 take six of them, and multiples up to 8 another three.
"""

LARGEST_WEIGHT = 1e6
"""Larger parameters are refused, because no fit produces them and exponentials of their sums overflow."""

_Float = TypeVar("_Float", np.float32, np.float64)

_EXACT = 2**53
_CHUNK_ENTRIES = 2**18
"""Number of one-hot entries held at a time (2 MB), which keeps a chunk of rows in the processor's cache."""

_CHUNK_ROWS = 1024
"""Minimum number of rows in a chunk. With fewer, overhead would dominate for a wide table."""


def clip_units(clip: float) -> int:
    """Return the clipping norm in whole units, rounded down."""
    if not 0 < clip <= LARGEST_CLIP or int(clip * UNITS) < 1:
        raise ValueError(f"clip ({clip}) must be above 0 and at most {LARGEST_CLIP:g}")
    return int(clip * UNITS)


def clipped_sensitivity(unit: Unit, clip: float) -> int:
    """Return the L2 sensitivity of `clipped_sums` in units: k·C under add-remove, 2k·C under replace-one.

    Proof. Parameters and step are public (computed from earlier noisy answers), and are the same for two neighbouring
    tables. `clipped_sums` adds, for each row, a vector of whole numbers that is a function of that row, the parameters
    and the step alone. It does not depend on the row's position or on any other row (the z of a row is drawn from a
    hash of its codes). Neither does the rounding. Matrix products add in an order that depends on the size of the chunk
    and the position in it, so parameters are rounded to a lattice on which these products are exact (`_on_lattices`).
    Everything else is computed entry by entry or, if order can matter, added up column by column in a fixed order
    (`_down`). The squared norm of a row's vector is Σ_X ‖q_X‖²·(45² + m_X·64² + ‖z‖²) plus the encoder's, where q, m
    and z are whole numbers. Every block is an outer product of one vector q_X with the head's input, which consists of
    45, m_X entries 64 (one for each parent that is not at its base category, counted row by row), zeros, and z. The
    squared norm is compared with ⌊C⌋² after all rounding, and a row that exceeds ⌊C⌋², or whose numbers are not finite,
    adds 0. The comparison is exact: all terms are non-negative whole numbers, so their float64 sum is exact up to 2⁵³
    and cannot fall below 2⁵³ if the true sum is above, while the bound is at most 2⁵². Adding or removing k rows
    therefore moves the sum by at most k·⌊C⌋ (triangle inequality), and replacing k rows by at most 2k·⌊C⌋. Sums are
    exact (see `clipped_sums`), so no allowance for rounding is needed. Base categories are public too, because they are
    chosen from noisy counts.

    Clipping a *sum* would prove nothing: a single row could still change the direction of the whole sum.
    """
    return unit.rows_per_person * (2 if unit.neighbors == "replace-one" else 1) * clip_units(clip)


@dataclass(frozen=True, eq=False)
class ClippedGradient:
    """Recipe of one training step for a curator: the clipped gradient of ``heads`` at public ``parameters``."""

    heads: Heads
    parameters: FloatArray
    clip: float
    step: int = 0
    kind: Literal["sums"] = "sums"
    units: int = UNITS
    recipe: str = "clipped-gradient"

    @property
    def what(self) -> str:
        """Description of the sums, for the report."""
        return "clipped gradients of a training step"

    @property
    def cells(self) -> int:
        """Length of the vector: one entry for each parameter."""
        return self.heads.parameters

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise :class:`ValueError` unless the network matches these columns."""
        if dict(self.heads.sizes) != dict(sizes):
            raise ValueError("the network was made for columns other than the table's")

    def given(self, unit: Unit) -> tuple[tuple[str, float], ...]:  # noqa: ARG002
        """Return the largest norm of a row's gradient."""
        return (("clip", clip_units(self.clip) / UNITS),)

    def sensitivity(self, unit: Unit) -> int:
        """Return the L2 sensitivity in units; see :func:`clipped_sensitivity`."""
        return clipped_sensitivity(unit, self.clip)

    def sums(self, source: Source) -> NDArray[np.int64]:
        """Return the exact sums. For the curator only."""
        total = np.zeros(self.cells, dtype=np.int64)
        for codes in source.batches():
            total += clipped_sums(codes, self.heads, self.parameters, self.clip, self.step)
        return total


def clipped_sums(
    codes: Mapping[str, NDArray[Any]], heads: Heads, parameters: FloatArray, clip: float, step: int = 0
) -> NDArray[np.int64]:
    """Return the sum over rows of the row's gradient of the log-likelihood (with a latent z: of the ELBO), clipped to
    ``clip``.

    One flat vector in units, laid out as ``parameters``. Each row's residuals are scaled down to the norm and then
    truncated towards 0, so the norm can only decrease. A float64 product sums the rows of a chunk: 64 times each
    partial sum is a whole number of at most rows · ⌊C⌋ in absolute value. A chunk has at most 2¹⁸ rows and ⌊C⌋ is at
    most 2²⁶, so this is at most 2⁴⁴, and no order of summation can round. Chunks and batches are added as 64-bit whole
    numbers, which hold the sum of fewer than 2³⁷ rows. Every table that can be read has fewer rows, so none is refused
    after budget is spent. ``step`` is part of the hash from which a row's z is drawn.
    """
    if parameters.shape != (heads.parameters,) or not np.all(np.abs(parameters) <= LARGEST_WEIGHT):
        most = f"{LARGEST_WEIGHT:g}"
        raise ValueError(f"the decoder needs {heads.parameters:,} parameters, each between -{most} and {most}")
    rows = len(next(iter(codes.values())))
    bound = clip_units(clip)
    total, read = np.zeros(heads.parameters, dtype=np.int64), _on_lattices(heads, parameters)
    length = max(_CHUNK_ROWS, _CHUNK_ENTRIES // heads.width)
    for start in range(0, rows, length):
        chunk = {name: np.asarray(codes[name][start : start + length]) for name in heads.sizes}
        total += _chunk(_Rows.of(chunk, heads, step), heads, read, bound)
    return total


@dataclass(frozen=True)
class _Rows:
    """A chunk of rows: one-hot vectors (entries × rows, entry 0 is the constant), a copy of them in single precision
    (``light``), and the noise of z (latent × rows).

    ``reads`` contains, for each entry and row, the sum of squared inputs of the entry's head, without z (0 without a
    head). Only probabilities are computed from ``light``, which halves the time. Its entry 0 is 1, because the
    intercepts are multiplied by the constant before they are rounded.
    """

    hot: FloatArray
    light: NDArray[np.float32]
    noise: FloatArray
    reads: FloatArray

    @classmethod
    def of(cls, codes: Mapping[str, NDArray[Any]], heads: Heads, step: int) -> _Rows:
        count = len(next(iter(codes.values())))
        hot = np.zeros((heads.width, count))
        hot[0] = CONSTANT
        place = np.arange(count)
        for name, span in heads.spans.items():
            hot[codes[name].astype(np.intp) + span.start, place] = 1.0
        light = hot.astype(np.float32)
        light[0] = 1.0
        reads = np.zeros_like(hot)
        for name, span in heads.spans.items():
            if heads.sizes[name] > 1:
                reads[span] = CONSTANT**2 + light[heads.features[name][1:]].sum(axis=0, dtype=np.float64)
        return cls(hot, light, _row_noise(codes, heads, step), reads)


def _chunk(rows: _Rows, heads: Heads, parameters: FloatArray, bound: int) -> NDArray[np.int64]:
    """Return the clipped sum over one chunk, at ``parameters`` that are `_on_lattices`."""
    blocks, encoder = heads.blocks(parameters)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread, z = _encode(rows, encoder, heads)
        residuals, pull = _residuals(rows.light, heads, blocks, z)
        inner = np.vstack([pull - mean, 0.5 * (pull * rows.noise * spread - spread**2 + 1)])
        square = np.square(residuals)
        squares = _squares(rows.reads, square, np.square(inner), np.square(z).sum(axis=0), heads, 1)
        factor = np.minimum(1.0, NEARLY * bound / np.sqrt(np.maximum(squares, 1e-30)) / UNITS) * (UNITS // INPUT_UNITS)
        residuals *= factor
        np.trunc(residuals, out=residuals)
        inner = np.trunc(inner * factor)
        whole = np.rint(z * INPUT_UNITS)
        lengths = np.square(whole).sum(axis=0)
        np.square(residuals, out=square)
        norms = _squares(rows.reads, square, np.square(inner), lengths, heads, INPUT_UNITS**2)
        out = ~(norms <= float(bound) ** 2)  # also true if one is NaN
    residuals[:, out], inner[:, out], whole[:, out] = 0.0, 0.0, 0.0
    return _products(rows.hot, residuals, inner, whole, heads)


def _encode(rows: _Rows, encoder: FloatArray, heads: Heads) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean, standard deviation and drawn value of z, each latent × rows; z is in whole multiples of 1/64."""
    latent = heads.latent
    code = encoder.T @ rows.hot if latent else np.zeros((0, rows.hot.shape[1]))
    mean, spread = code[:latent], np.exp(0.5 * np.clip(code[latent:], -20, 5))
    z = np.clip(mean + spread * rows.noise, -LARGEST_LATENT, LARGEST_LATENT)
    return mean, spread, np.rint(z * INPUT_UNITS) / INPUT_UNITS


def _residuals(
    hot: NDArray[np.float32], heads: Heads, blocks: Mapping[str, FloatArray], z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return every head's weighted residual, one-hot minus probability (entries × rows; entry 0 unused), and its
    gradient in z.
    """
    residuals = np.zeros(hot.shape)
    pull = np.zeros_like(z)
    for name, span in heads.spans.items():
        block = blocks[name]
        if not len(block):
            continue
        read = heads.features[name]
        logits = block[: len(read)].T.astype(np.float32) @ hot[read]
        if heads.latent:
            logits += block[len(read) :].T @ z
        logits -= logits.max(axis=0)
        p = np.exp(logits, out=logits)
        p /= _down(p)
        part = residuals[span]
        np.subtract(hot[span], p, out=part)
        if heads.weight(name) != 1:
            part *= heads.weight(name)
        if heads.latent:
            pull += [_down(weights[:, None] * part) for weights in block[len(read) :]]
    return residuals, pull


def _on_lattices(heads: Heads, parameters: FloatArray) -> FloatArray:
    """Return ``parameters`` with the heads' intercepts multiplied by the constant, rounded so that every matrix product
    of a row is exact.

    A row reads the constant and at most one category of each column, so no sum is larger than the sum of the largest
    weights of the constant and of each column.
    """
    out = parameters.copy()
    blocks, encoder = heads.blocks(out)
    for name, block in blocks.items():
        if len(block):
            lengths = [1, *(heads.sizes[parent] - 1 for parent in heads.inputs(name))]
            read = sum(lengths)
            block[0] *= CONSTANT
            block[:read] = _exact_in(_ONES, block[:read], lengths)
            block[read:] = _exact_in(_LATENTS, block[read:], [1] * heads.latent)
    encoder[:] = _exact_in(_INPUTS, encoder, [1, *heads.sizes.values()] if heads.latent else [])
    return out


def _exact_in(bits: int, weights: FloatArray, lengths: list[int]) -> FloatArray:
    """Return ``weights``, rounded so that sums of one entry from each group (sizes ``lengths``) are exact in ``bits``
    bits.

    They are whole multiples of a power of two, and every partial sum, in any order, is at most 2^bits times that power.
    That is about the resolution of floats near the largest sum, so no accuracy is lost.
    """
    if not len(weights):
        return weights
    most = float(np.maximum.reduceat(np.abs(weights).max(axis=1), np.cumsum([0, *lengths[:-1]])).sum())
    step = math.ldexp(1.0, math.frexp(max(most, 1e-20))[1] + 1 - bits)
    return np.asarray(np.rint(weights / step) * step)


def _squares(
    reads: FloatArray,
    residuals: FloatArray,
    inner: FloatArray,
    z: FloatArray,
    heads: Heads,
    one: int,
) -> FloatArray:
    """Return each row's squared gradient norm from squared residuals and ‖z‖²; ``one`` is the square of a one-hot
    entry.
    """
    total = one * _down(reads * residuals)
    if heads.latent:
        total += z * _down(residuals) + one * (CONSTANT**2 + len(heads.sizes)) * _down(inner)
    return total


def _down(table: NDArray[_Float]) -> NDArray[_Float]:
    """Return the sum of every column, added from top to bottom, because numpy's own order depends on the number of
    columns."""
    total: NDArray[_Float] = np.zeros_like(table[0])
    for line in table:
        total += line
    return total


def _products(
    hot: FloatArray, residuals: FloatArray, inner: FloatArray, whole: FloatArray, heads: Heads
) -> NDArray[np.int64]:
    """Return the sum over rows of the outer products, in units. It is exact: 64 times every partial sum is a whole
    number below 2⁵³.
    """
    total = np.zeros(heads.parameters)
    blocks, encoder = heads.blocks(total)
    for name, span in heads.spans.items():
        if len(blocks[name]):
            read = heads.features[name]
            blocks[name][: len(read)] = INPUT_UNITS * (hot[read] @ residuals[span].T)
            if heads.latent:
                blocks[name][len(read) :] = whole @ residuals[span].T
    if heads.latent:
        encoder[:] = INPUT_UNITS * (hot @ inner.T)
    if not np.all(np.abs(total) < _EXACT):
        raise ValueError("a sum of clipped gradients is too large for float64 to represent exactly")
    return total.astype(np.int64)


def _row_noise(codes: Mapping[str, NDArray[Any]], heads: Heads, step: int) -> FloatArray:
    """Return standard normal numbers, latent × rows, from a hash of a row's codes and the step.

    They protect nothing and need not be secret. Hashing the row makes its contribution independent of its position and
    of other rows.
    """
    count = len(next(iter(codes.values())))
    state = np.full(count, _mixed(np.array([step], dtype=np.uint64))[0])
    if heads.latent:
        for name in heads.sizes:
            state = _mixed(np.bitwise_xor(state, codes[name].astype(np.uint64)))
    out = np.zeros((heads.latent, count))
    for i in range(heads.latent):
        first, second = _mixed(state + np.uint64(2 * i + 1)), _mixed(state + np.uint64(2 * i + 2))
        radius = np.sqrt(-2 * np.log(((first >> np.uint64(11)) + 0.5) / _EXACT))
        out[i] = radius * np.cos(2 * math.pi * (second >> np.uint64(11)) / _EXACT)
    return out


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the finaliser of SplitMix64 (Steele, Lea & Flood 2014) to whole numbers modulo 2⁶⁴."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
