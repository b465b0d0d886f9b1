"""Purchase of the categories of a text column, by a private histogram over unknown keys with a threshold.

Noise is added to the number of rows with each text value that occurs, and values with a noisy count below a threshold
are left out (stable partition selection: Korolova et al. 2009; Rogers 2023). A value that only one person has may pass
the threshold with probability δ₀, so the purchase is δ₀-approximate ρ-zCDP (Bun & Steinke 2016, Definition 8.1),
computed by OpenDP's ``make_gaussian_threshold``.

**Accounting.** Approximate zCDP composes: ρ and δ₀ add up (Lemma 8.2). A release that is ρ-zCDP with total Σδ₀ is (ε,
δ)-DP if ρ alone gives (ε, δ − Σδ₀): with probability 1 − Σδ₀ the answers equal those of a ρ-zCDP mechanism, and
the rest is added to δ. So ρ is converted at δ − Σδ₀ (`rho_beside`, `epsilon_beside`).

**Rows chosen at random, and a part held out at random.** The two coupling arguments of
:mod:`espalier.core.privacy.contribution` hold for (ρ, δ₀) as well. Write "P and P′ are (ρ, δ₀)-close" for: P = (1 −
δ₀)·A + δ₀·B and P′ = (1 − δ₀)·A′ + δ₀·B′ with D_α(A ‖ A′) ≤ αρ and D_α(A′ ‖ A) ≤ αρ for all α > 1. This is Definition
8.1: if its events have probability above 1 − δ₀, a coin that is independent of the outcome reduces the probability to
exactly 1 − δ₀ and leaves the conditional distributions unchanged.

1. *Mixtures over lots.* If P_r and P′_r are (ρ, δ₀)-close for all lots r, with weights w_r that are the same on both
   sides, so are Σ w_r P_r and Σ w_r P′_r. Proof: Σ w_r P_r = (1 − δ₀)·Σ w_r A_r + δ₀·Σ w_r B_r, and the other side
   likewise; D_α(Σ w_r A_r ‖ Σ w_r A′_r) ≤ max_r D_α(A_r ‖ A′_r) ≤ αρ (joint quasi-convexity).
   So the proof of :func:`espalier.core.privacy.contribution.bounded` for fixed lots still applies.
2. *Held out by person.* Let everything computed from the rest be (ρ₁, δ₁) and everything computed from the held part
   (ρ₂, δ₂), for any outcome of the rest. For fixed lots, the person falls into one part and the other part is equal in
   both tables. If the person is in the rest, the held part's answers are a function of the rest's outcome with fresh
   noise. This is post-processing, so both together are (ρ₁, δ₁)-close. If the person is in the held part, the rest's
   outcome has one distribution, and for each outcome the answers are (ρ₂, δ₂)-close: a mixture with equal weights as in
   item 1. Both together are (max ρ, max δ)-close.
3. *Held out by row, k rows per person.* With j rows in the rest and k − j held out, a histogram calibrated to k rows
   has the distances of j rows: j·√2 or j in L2, so ρ costs at most (j/k)²·ρ₁ as in `people.split`; and at most 2j
   or j keys, each by at most j. δ₀ is no larger than for k rows, since OpenDP's map does not fall when distances
   grow: at most δ₁. Together at most (max ρ, δ₁ + δ₂). Nothing is bought with a threshold from the held part
   (δ₂ = 0), so the release and its private figures are (max ρ, δ₁).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from espalier.core.errors import BudgetError
from espalier.core.privacy.accounting import epsilon_of, rho_of
from espalier.core.privacy.unit import Unit
from espalier.core.project.schema import MOST_CATEGORIES

LARGEST = 2**61
"""Largest threshold, in rows."""
LONGEST = 200
"""Maximum length of a category; longer text is not a category. This public rule is applied row by row."""


@dataclass(frozen=True)
class Distances:
    """One person's largest change to a histogram over text values: the number of ``keys`` that change, the L2 change of
    all counts (``l2``), and the change of one count (``most``).
    """

    keys: int
    l2: float
    most: int


@dataclass(frozen=True)
class Threshold:
    """Recipe for counts with discrete Gaussian noise of scale ``sigma``, without those below ``threshold``.

    It costs at most ``rho`` and ``delta`` (δ₀) for its unit of privacy.
    """

    sigma: float
    threshold: int
    rho: float
    delta: float


@dataclass(frozen=True)
class Found:
    """Text values and their noisy counts in rows, the largest first; at most ``at_most`` of them."""

    counts: Mapping[str, float]
    sigma: float
    threshold: int


def distances(unit: Unit) -> Distances:
    """Return the distances between histograms over text values, for k rows per person. Every row has at most one value.

    Add-remove: k rows are added or removed. At most k keys move; the counts move by u ≥ 0 with ‖u‖₁ ≤ k, so ‖u‖₂ ≤ k
    and each by at most k.

    Replace-one: k rows leave their values and k rows take others. At most 2k keys move; the counts move by u − v with
    ‖u‖₁, ‖v‖₁ ≤ k and u, v ≥ 0, so ‖u − v‖₂² ≤ ‖u‖₂² + ‖v‖₂² ≤ 2k², and each by at most k.

    All bounds are attained, though not by the same table: the bound on keys if all k rows differ, the others if they
    are equal.
    """
    k = unit.rows_per_person
    return Distances(2 * k if unit.neighbors == "replace-one" else k, unit.count_sensitivity, k)


@cache
def _space() -> tuple[Any, Any]:
    from opendp.domains import atom_domain, map_domain
    from opendp.metrics import absolute_distance, l02inf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    texts = map_domain(atom_domain(T="String"), atom_domain(T="i64"))
    return texts, l02inf_distance(absolute_distance(T="f64"))


@lru_cache
def _mechanism(sigma: float, threshold: int) -> Any:
    from opendp.measurements import make_gaussian_threshold

    return make_gaussian_threshold(*_space(), scale=sigma, threshold=threshold)


def cost(unit: Unit, sigma: float, threshold: int) -> tuple[float, float]:
    """Return (ρ, δ₀) of a histogram with this noise and threshold, by OpenDP's map for a threshold that is one lower.

    OpenDP releases a count of exactly the threshold, and its map omits that event (opendp issue 2922, in 0.16.0): a new
    value with t rows passes with probability P[Z ≥ T − t], but the map uses P[N ≥ T − t] with N continuous, which is
    less. P[Z ≥ m] ≤ P[N ≥ m − 1] (Canonne, Kamath & Steinke 2020, Proposition 25), so the map of T − 1 is a bound. Keep
    this correction while such versions may be installed. With a corrected version, it raises the threshold by one row.
    """
    d = distances(unit)
    rho, delta = _mechanism(sigma, threshold - 1).map((d.keys, d.l2, float(d.most)))
    return float(rho), float(delta)


@lru_cache
def threshold_for(unit: Unit, rho: float, delta: float) -> Threshold:
    """Return the recipe that costs at most (``rho``, ``delta``): σ = Δ/√(2ρ), and the lowest whole threshold that keeps
    δ₀.

    Raises :class:`BudgetError` if either is not positive, or δ₀ is too small for floats.
    """
    if not (rho > 0 and math.isfinite(rho) and 0 < delta < 1):
        raise BudgetError(f"bought categories need a positive ρ ({rho:g}) and δ₀ ({delta:g})", requested=rho)
    d = distances(unit)
    sigma = d.l2 / math.sqrt(2 * rho)
    high = math.ceil(d.most + sigma) + 2
    while cost(unit, sigma, high)[0] > rho:
        sigma = math.nextafter(sigma, math.inf)
    while cost(unit, sigma, high)[1] > delta:
        high *= 2
        if high > LARGEST:
            raise BudgetError(f"no threshold of categories costs as little as δ₀ = {delta:.3g}: set a larger delta")
    low = d.most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(unit, sigma, middle)[1] > delta else (low, middle)
    return Threshold(sigma, high, *cost(unit, sigma, high))


def find_categories(counts: Mapping[str, int], recipe: Threshold, at_most: int) -> Found:
    """Return the text values in ``counts`` (exact numbers of rows, private) that pass the threshold, at most the
    ``at_most`` largest.

    Guarantee: (``recipe.rho``, ``recipe.delta``) in approximate zCDP. The cap and the order (ties are broken by text)
    use only the values that passed, so they are post-processing. Empty strings are missing cells, and text longer than
    `LONGEST` is not a category: both are excluded row by row, which changes no distance.
    """
    if not 1 <= at_most <= MOST_CATEGORIES:
        raise ValueError(f"at_most ({at_most}) must be a number from 1 to {MOST_CATEGORIES:,}")
    asked = {text: int(n) for text, n in counts.items() if n > 0 and 0 < len(text) <= LONGEST and "\0" not in text}
    noisy: dict[str, int] = _mechanism(recipe.sigma, recipe.threshold)(asked)
    first = sorted(noisy.items(), key=lambda item: (-item[1], item[0]))[:at_most]
    return Found({text: float(n) for text, n in first}, recipe.sigma, recipe.threshold)


def _left(delta: float, deltas: Iterable[float]) -> float:
    """Return δ minus all δ₀, rounded down. Raises :class:`BudgetError` if nothing is left."""
    spent = math.nextafter(math.fsum(deltas), math.inf)
    left = math.nextafter(delta - spent, 0.0) if spent > math.ulp(0.0) else delta
    if left <= 0:
        raise BudgetError(
            f"thresholds take δ₀ = {spent:.3g} in total, but δ is only {delta:.3g}; reduce their share",
            requested=spent,
            remaining=delta,
        )
    return left


def rho_beside(epsilon: float, delta: float, deltas: Iterable[float]) -> float:
    """Return the largest ρ, rounded down, that together with draws of these δ₀ implies (ε, δ)-DP: the ρ of (ε, δ −
    Σδ₀).
    """
    return rho_of(epsilon, _left(delta, deltas))


def epsilon_beside(rho: float, delta: float, deltas: Iterable[float]) -> float:
    """Return the smallest ε, rounded up, such that ρ-zCDP and draws of these δ₀ together imply (ε, δ)-DP."""
    return epsilon_of(rho, _left(delta, deltas))
