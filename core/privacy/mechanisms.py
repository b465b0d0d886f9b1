"""The only draws that protect people: OpenDP's discrete Gaussian, discrete Laplace and exponential mechanism.

All use OpenDP's secure generator. Plans with a pure guarantee (δ = 0) use Laplace noise; all others use Gaussian noise.
Nothing here can be seeded. Functions return nothing about the data except the draw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray


@cache
def _opendp() -> Any:
    """Return OpenDP's constructors; its modules are imported one by one because importing the prelude takes seconds."""
    from types import SimpleNamespace

    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace, make_noisy_max
    from opendp.measures import zero_concentrated_divergence
    from opendp.metrics import l1_distance, l2_distance, linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    integers = vector_domain(atom_domain(T="i64"))
    return SimpleNamespace(
        gaussian=lru_cache(lambda scale: make_gaussian(integers, l2_distance(T="f64"), scale=scale)),
        laplace=lru_cache(lambda scale: make_laplace(integers, l1_distance(T="i64"), scale=scale)),
        noisy_max=lru_cache(
            lambda scale: make_noisy_max(integers, linf_distance(T="i64"), zero_concentrated_divergence(), scale=scale)
        ),
    )


@lru_cache
def gaussian_scale(sensitivity: float, rho: float) -> float:
    """Return σ in rows of a discrete Gaussian with L2 ``sensitivity`` that costs at most ``rho`` in zCDP: Δ/√(2ρ).

    Canonne, Kamath & Steinke (2020), Theorem 4: the discrete Gaussian is Δ²/(2σ²)-zCDP. σ is moved up by single
    floats until OpenDP's own map, which rounds toward privacy, agrees.
    """
    sigma = sensitivity / math.sqrt(2 * rho)
    while _opendp().gaussian(sigma).map(sensitivity) > rho:
        sigma = math.nextafter(sigma, math.inf)
    return sigma


def add_gaussian(counts: NDArray[np.int64], sigma: float) -> NDArray[np.float64]:
    """Return ``counts`` (any shape, in rows) plus discrete Gaussian noise of scale ``sigma``: whole numbers,
    as floats.
    """
    noisy = _opendp().gaussian(sigma)(counts.ravel().tolist())
    return np.asarray(noisy, dtype=np.float64).reshape(counts.shape)


@lru_cache
def laplace_scale(sensitivity: int, rho: float) -> float:
    """Return σ = √2·b in rows of a discrete Laplace with L1 ``sensitivity`` that is pure √(2·``rho``)-DP: b = Δ₁/√(2ρ).

    Proof. Noise z has probability proportional to exp(−|z|/b) on the whole numbers, independently in each entry. A
    vector that moves by at most Δ₁ in L1 changes the likelihood of any answer by at most exp(Δ₁/b) = exp(√(2ρ)). ε-DP
    implies ε²/2-zCDP (Bun & Steinke 2016, Proposition 1.4), so the cost in zCDP is at most ``rho``. σ is moved up by
    single floats until OpenDP's own map, which rounds toward privacy, agrees for the b that is used for drawing. The
    standard deviation of the noise is below √2·b, by less than 2 % if b ≥ 2.
    """
    epsilon = math.nextafter(math.sqrt(2 * rho), 0)
    sigma = math.sqrt(2) * sensitivity / epsilon
    while _opendp().laplace(laplace_parameter(sigma)).map(sensitivity) > epsilon:
        sigma = math.nextafter(sigma, math.inf)
    return sigma


def laplace_parameter(sigma: float) -> float:
    """Return b of a discrete Laplace with the scale ``sigma``."""
    return sigma / math.sqrt(2)


def add_laplace(counts: NDArray[np.int64], sigma: float) -> NDArray[np.float64]:
    """Return ``counts`` (any shape, in rows) plus discrete Laplace noise with b = ``sigma``/√2: whole numbers, as
    floats.
    """
    noisy = _opendp().laplace(laplace_parameter(sigma))(counts.ravel().tolist())
    return np.asarray(noisy, dtype=np.float64).reshape(counts.shape)


@lru_cache
def gumbel_scale(sensitivity: int, rho: float) -> float:
    """Return the scale of the exponential mechanism (noisy max, not monotonic) of cost ``rho``: Δ/√(2ρ).

    With Gumbel noise of scale 2Δ/ε the noisy max is the exponential mechanism, which is (ε²/8)-zCDP (Cesar & Rogers
    2021); ρ = ε²/8 gives Δ/√(2ρ). ``sensitivity`` is a whole number because scores are.
    """
    scale = sensitivity / math.sqrt(2 * rho)
    while _opendp().noisy_max(scale).map(sensitivity) > rho:
        scale = math.nextafter(scale, math.inf)
    return scale


def noisy_max(scores: Sequence[int], scale: float) -> int:
    """Return the index chosen by the exponential mechanism; ``scores`` and ``scale`` are in the same units."""
    return int(_opendp().noisy_max(scale)(list(scores)))
