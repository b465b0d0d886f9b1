"""What a measurement and a private choice are: plain values that travel from the curator to the fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Clique = tuple[str, ...]
"""A marginal: column names, in schema order."""


Kind = Literal["select", "measure", "look"]
"""What a draw is for: choosing what to measure, measuring it, or judging the result on rows held out."""


@dataclass(frozen=True)
class Act:
    """All that was drawn of one ``kind`` from one ``pool`` of the budget: how many draws, and their ρ together."""

    kind: Kind
    pool: str
    draws: int
    rho: float


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


@dataclass(frozen=True)
class ScoreMeasurement:
    """Noisy scores of several cliques, bought together.

    ``values`` are in rows, one for each of ``cliques``; ``sigma`` is the scale in rows of the discrete Gaussian noise
    that drew them, ``sensitivity`` the L2 sensitivity in rows of all of them together.
    """

    cliques: tuple[Clique, ...]
    values: NDArray[np.float64]
    sigma: float
    sensitivity: float
    rho: float
    pool: str = ""


@dataclass(frozen=True)
class GradientMeasurement:
    """A noisy gradient of a logistic fit (see `core.privacy.gradient`).

    ``values`` is one flat vector in rows, a part for each of ``columns``; ``sigma`` the scale in rows of the discrete
    Gaussian noise on each entry, ``sensitivity`` the L2 sensitivity in rows of the whole vector.
    """

    target: str
    columns: tuple[str, ...]
    values: NDArray[np.float64]
    sigma: float
    sensitivity: float
    rho: float
    pool: str = ""


Merged = Mapping[str, NDArray[np.intp]]
"""Columns whose categories are counted together in groups: for each category, the number of its group."""


def fold(values: NDArray[Any], clique: Clique, merged: Merged) -> NDArray[Any]:
    """Counts of ``clique`` over the groups of ``merged`` instead of the single categories."""
    for axis, name in enumerate(clique):
        if name in merged:
            groups = merged[name]
            moved = np.moveaxis(values, axis, 0)
            out = np.zeros((int(groups.max()) + 1, *moved.shape[1:]), dtype=values.dtype)
            np.add.at(out, groups, moved)
            values = np.moveaxis(out, 0, axis)
    return values
