"""Public look-alikes of three tables of the two-stage paper that are not available: Tarragona, Census (CASC), EIA.

Every number is invented and the seed is fixed. A look-alike has the numbers of rows and columns that the paper used,
and the known properties of its tables: positive numbers, strongly skewed, strongly correlated. It is not the paper's
table, so the paper's figures cannot be compared with these. The benchmark tests whether the method keeps its promises
on tables of this kind.

Each column is exp(scale·z), where z are normal scores with a common factor and one of three group factors. The
target is a sum of inputs times another such number.
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
"""Shares of the variance of normal scores due to the common factor and to the group factor. The rest belongs to the
column.
"""

LEFT = 0.25
"""Standard deviation of the logarithm of the part of the target that the inputs do not explain."""


@dataclass(frozen=True)
class Kind:
    """A table of the paper with ``rows`` rows: the provider has ``provider`` of them, and the public has ``public``."""

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
    """Return the columns, target last, to two decimals."""
    rng, d = np.random.default_rng(kind.seed), len(kind.inputs)
    groups = rng.standard_normal((kind.rows, 3))[:, np.arange(d) % 3]
    own = rng.standard_normal((kind.rows, d))
    z = np.sqrt(COMMON) * rng.standard_normal((kind.rows, 1)) + np.sqrt(GROUP) * groups
    x = np.round(100 * np.exp(SCALE * (z + np.sqrt(1 - COMMON - GROUP) * own)), 2)
    y = np.round(x[:, :3].sum(axis=1) * np.exp(LEFT * rng.standard_normal(kind.rows)), 2)
    return dict(zip((*kind.inputs, kind.target), (*x.T, y), strict=True))
