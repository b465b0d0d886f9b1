"""Similarity of the synthetic table to the real one, column by column and pair by pair.

Total variation TV(p, q) = ½ Σ|p − q| is the largest difference in share that any set of cells can show: 0 means equal,
1 means disjoint. The Kullback-Leibler divergence KL(real‖synthetic) is in nats, with ½ added to every cell's count in
both tables, so empty cells do not make it infinite. (PrivCI §V-B.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.evaluation.figure_or_reason import shown
from espalier.core.graph.separations import Clique
from espalier.core.tables.counting import Cells
from espalier.core.tables.source import Source
from espalier.core.tables.table import Table

if TYPE_CHECKING:
    from espalier.core.progress import Report

TOLERANCE = 0.005
"""Differences in total variation that are below this value, or below the effect of sampling, are not reported."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class ColumnFidelity:
    """Total variation between a column's real and synthetic distribution."""

    column: str
    tv: float

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``evaluate``."""
        return {"column": self.column, "tv": self.tv}


@dataclass(frozen=True)
class PairFidelity:
    """Errors of a pair of columns.

    ``tv`` and ``kl`` compare the pair's synthetic with its real distribution; ``tv_independent`` is the score of the
    product of the synthetic table's two columns; ``sampling`` bounds the average contribution of drawing the synthetic
    rows, ½ (Σ√q_a)(Σ√q_b)/√rows for column distributions q.
    """

    columns: Clique
    tv: float
    kl: float
    tv_independent: float
    sampling: float

    @property
    def worse_than_independence(self) -> bool:
        """True if leaving out the pair's link would have been better by more than sampling explains."""
        return self.tv > self.tv_independent + self.sampling + TOLERANCE

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``evaluate``."""
        figures = {"tv": self.tv, "kl": self.kl, "tv_independent": self.tv_independent}
        return {"columns": list(self.columns), **figures}


@dataclass(frozen=True)
class Fidelity:
    """Means over columns and over pairs, and the underlying lists, computed on real rows. ``two_way_tv`` and ``kl`` are
    None if there is only one column.
    """

    compared_with: str
    one_way_tv: float
    two_way_tv: float | None
    kl: float | None
    columns: tuple[ColumnFidelity, ...]
    pairs: tuple[PairFidelity, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)
    looked_at_real_data: bool = field(default=True, init=False)

    @property
    def worse_than_independence(self) -> tuple[PairFidelity, ...]:
        """Pairs whose synthetic link is worse than no link, the worst first."""
        worse = [p for p in self.pairs if p.worse_than_independence]
        return tuple(sorted(worse, key=lambda p: p.tv_independent - p.tv))

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``evaluate``."""
        return {
            "compared_with": self.compared_with,
            **shown(self, ("one_way_tv", "two_way_tv", "kl")),
            "worse_than_independence": [p.to_json() for p in self.worse_than_independence],
            "columns": [c.to_json() for c in self.columns],
            "pairs": [p.to_json() for p in self.pairs],
            "looked_at_real_data": self.looked_at_real_data,
        }


def fidelity_of(real: Source, synthetic: Table, report: Report) -> Fidelity:
    """Compare every column and every pair of columns; ``real`` is the table from which the release was made.

    Raises :class:`TableError` for a pair of columns with more cells than can be counted in the database.
    """
    names, sizes = real.schema.names, real.schema.sizes
    one_by_one = [(name,) for name in names]
    shares = {n: c / synthetic.rows for n, c in zip(names, synthetic.count_many(one_by_one), strict=True)}
    roots = {n: float(np.sqrt(q).sum()) for n, q in shares.items()}
    columns = tuple(
        ColumnFidelity(n, _tv(c / real.rows, shares[n]))
        for n, c in zip(names, real.count_many(one_by_one), strict=True)
    )
    names_of_pairs = list(combinations(names, 2))
    counted = zip(real.cells(names_of_pairs), synthetic.cells(names_of_pairs), strict=True)
    pairs = []
    for i, a in enumerate(names):
        report(1 - (1 - i / len(names)) ** 2, f"Comparing pairs with {a}")
        for b in names[i + 1 :]:
            size = sizes[a] * sizes[b]
            cells, r, s = _aligned(*next(counted), size)
            p, q = r / real.rows, s / synthetic.rows
            product = shares[a][cells // sizes[b]] * shares[b][cells % sizes[b]]
            independent = _tv(p, product) + max(0.0, 1 - float(product.sum())) / 2
            sampling = min(1.0, roots[a] * roots[b] / math.sqrt(synthetic.rows) / 2)
            pairs.append(PairFidelity((a, b), _tv(p, q), _kl(r, s, size), independent, sampling))
    why = "a single column has no pairs"
    return Fidelity(
        "the table itself",
        float(np.mean([c.tv for c in columns])),
        float(np.mean([p.tv for p in pairs])) if pairs else None,
        float(np.mean([p.kl for p in pairs])) if pairs else None,
        columns,
        tuple(pairs),
        {} if pairs else {"two_way_tv": why, "kl": why},
    )


def _aligned(real: Cells, synthetic: Cells, size: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return (cells, real counts, synthetic counts): all ``size`` cells, or those that are occupied in either table."""
    if len(real[0]) == size == len(synthetic[0]):
        return real[0], real[1], synthetic[1]
    cells = np.union1d(real[0], synthetic[0])
    r, s = (np.zeros(len(cells), dtype=np.int64) for _ in range(2))
    r[np.searchsorted(cells, real[0])] = real[1]
    s[np.searchsorted(cells, synthetic[0])] = synthetic[1]
    return cells, r, s


def _tv(p: FloatArray, q: FloatArray) -> float:
    return float(np.abs(p - q).sum() / 2)


def _kl(r: IntArray, s: IntArray, size: int) -> float:
    """Return KL in nats of counts with ½ added to each of ``size`` cells. Cells that are not listed are empty in both
    tables.
    """
    total_r, total_s = r.sum() + size / 2, s.sum() + size / 2
    p, q = (r + 0.5) / total_r, (s + 0.5) / total_s
    empty = (size - len(r)) * 0.5 / total_r * np.log(total_s / total_r)
    return max(0.0, float((p * np.log(p / q)).sum() + empty))
