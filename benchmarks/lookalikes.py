"""Public look-alikes of three unavailable tables of the two-stage paper: Tarragona, Census (CASC) and EIA.

Every number is invented and the seed is fixed. A look-alike has the paper's numbers of rows and columns, and the known
properties of its tables: positive, strongly skewed and strongly correlated numbers. It is not the paper's table, so its
figures cannot be compared with the paper's. The benchmark tests whether the method keeps its promises on tables of this
kind.

Each column is exp(scale·z), where z are normal scores with a common factor and one of three group factors. The target
is a sum of inputs, multiplied by another number of this form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SCALE = 1.2
"""Standard deviation of the logarithm: the mean is twice the median, and the largest of 1,000 values is forty times the
median.
"""

COMMON, GROUP = 0.5, 0.3
"""Shares of the normal scores' variance due to the common factor and to the group factor. The rest is specific to the
column.
"""

LEFT = 0.25
"""Standard deviation of the logarithm of the part of the target that the inputs do not explain."""


@dataclass(frozen=True)
class Kind:
    """A table of the paper with ``rows`` rows, of which the provider has ``provider`` and the public has ``public``."""

    inputs: tuple[str, ...]
    target: str
    rows: int
    provider: int
    public: int
    seed: int


KINDS = {
    "tarragona": Kind(("PAID_UP_CAPITAL", "OPERATING_PROFIT", "GROSS_PROFIT"), "NET_PROFIT", 834, 600, 134, 834),
    "census": Kind(
        (
            *("AFNLWGT", "AGI", "EMCONTRB", "PTOTVAL", "STATETAX", "TAXINC"),
            *("POTHVAL", "INTVAL", "PEARNVAL", "FICA", "WSALVAL", "ERNVAL"),
        ),
        "FEDTAX",
        1080,
        800,
        180,
        1080,
    ),
    "eia": Kind(
        (
            *("RESREVENUE", "RESSALES", "COMREVENUE", "COMSALES", "INDSALES"),
            *("OTHREVENUE", "OTHRSALES", "TOTREVENUE", "TOTSALES"),
        ),
        "INDREVENUE",
        1500,
        1000,
        300,
        4092,
    ),
}


def lookalike(kind: Kind) -> dict[str, NDArray[np.float64]]:
    """Return the columns, rounded to two decimals, with the target last."""
    rng, d = np.random.default_rng(kind.seed), len(kind.inputs)
    groups = rng.standard_normal((kind.rows, 3))[:, np.arange(d) % 3]
    own = rng.standard_normal((kind.rows, d))
    z = np.sqrt(COMMON) * rng.standard_normal((kind.rows, 1)) + np.sqrt(GROUP) * groups
    x = np.round(100 * np.exp(SCALE * (z + np.sqrt(1 - COMMON - GROUP) * own)), 2)
    y = np.round(x[:, :3].sum(axis=1) * np.exp(LEFT * rng.standard_normal(kind.rows)), 2)
    return dict(zip((*kind.inputs, kind.target), (*x.T, y), strict=True))
