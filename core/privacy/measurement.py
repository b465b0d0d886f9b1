"""What a measurement and a private choice are: plain values that travel from the curator to the fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Clique = tuple[str, ...]
"""A marginal: column names, in schema order."""


@dataclass(frozen=True)
class Measurement:
    """Noisy counts of one clique.

    ``values`` has one axis per column of ``clique`` and is in rows; ``sigma`` is the scale in rows of the
    discrete Gaussian noise that *drew* ``values`` (computed once, in the curator); ``rho`` what it cost in zCDP;
    ``pool`` the share of the budget that paid.
    """

    clique: Clique
    values: NDArray[np.float64]
    sigma: float
    rho: float = 0.0
    pool: str = ""


@dataclass(frozen=True)
class Choice:
    """One private selection: ``chosen`` out of ``candidates`` cliques.

    ``scale`` is the Gumbel scale Δ/√(2ρ) of the exponential mechanism in rows, ``sensitivity`` the Δ of the
    score in rows. The scores themselves are not part of it: selection releases the choice and nothing else.
    """

    what: str
    chosen: Clique
    candidates: int
    rho: float
    scale: float
    sensitivity: float
    pool: str = ""
