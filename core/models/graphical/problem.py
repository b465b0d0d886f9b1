"""Estimation problem in flat arrays: the measurements, their precision, and their positions in the junction tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from espalier.core.errors import EspalierError
from espalier.core.graph.junction_tree import (
    IMPOSSIBLE,
    FloatArray,
    Zeros,
    collect,
    derivative,
    distribute,
    junction_tree,
    max_only,
    sum_product,
)
from espalier.core.graph.separations import Clique
from espalier.core.models.graphical.regions import Regions
from espalier.core.privacy.draws import Measurement

SMALLEST_TOTAL = 1.0
"""Minimum total, in rows. Noise can bring an estimate below zero, where no distribution exists."""


def inner(a: FloatArray, b: FloatArray) -> float:
    """Return Σ a b of two flat vectors, without BLAS: for vectors of this length, BLAS threads are slower by a factor
    of twenty on a busy machine.
    """
    return float(np.einsum("i,i->", a, b))


@dataclass(frozen=True)
class Sweep:
    """Result of one pass up and down the junction tree: p(v | given) and marginals of its nodes, and the flat
    ``marginals`` of the regions, all scaled to the total."""

    log_partition: float
    conditionals: list[FloatArray]
    nodes: list[FloatArray]
    marginals: FloatArray


@dataclass(frozen=True)
class Problem:
    """Minimisation of Σ_c ‖μ_c − y_c‖²/(2σ_c²) over flat vectors of region marginals (`Regions`).

    ``target`` is û, the pooled unbiased estimate, consistent but possibly negative; ``weight`` is its precision per
    region. ``precision`` and ``centre`` define the objective itself, cell by cell, up to ``constant``. ``floor`` is the
    objective at û, a lower bound for every distribution.
    """

    regions: Regions
    total: float
    weight: FloatArray
    target: FloatArray
    precision: FloatArray
    centre: FloatArray
    constant: float
    floor: float
    base: list[FloatArray | None] | None

    def objective(self, marginals: FloatArray) -> float:
        """Σ_c ‖μ_c − y_c‖²/(2σ_c²)."""
        return self.constant + self.norm(marginals - self.centre)

    def norm(self, difference: FloatArray) -> float:
        """Return Σ_c ‖d_c‖²/(2σ_c²) of a difference of marginals."""
        return 0.5 * inner(self.precision, difference * difference)

    def variance(self) -> FloatArray:
        """Return the noise variance 1/w, cell by cell, of the part of a region that no smaller region measures."""
        return np.repeat(1.0 / self.weight, [span.stop - span.start for span in self.regions.spans])

    def noise(self) -> float:
        """Return the median noise scale of the maximal cliques, in rows."""
        return float(np.sqrt(np.median(1.0 / self.weight[self.regions.maximal]))) if len(self.weight) else 1.0

    def smooth(self, potentials: FloatArray) -> FloatArray:
        """Apply `Regions.smooth` with this problem's weights."""
        return self.regions.smooth(potentials, self.weight)

    def sweep(self, potentials: FloatArray) -> Sweep:
        """Return the log partition function and the marginals of the potentials."""
        tree = self.regions.tree
        log_partition, kept = collect(tree, self.regions.tables(potentials, self.base), sum_product)
        conditionals = [np.asarray(table, dtype=np.float64) for table in kept]
        nodes = distribute(tree, conditionals, self.total)
        return Sweep(log_partition, conditionals, nodes, self.regions.marginals(nodes))

    def covariance(self, sweep: Sweep, direction: FloatArray) -> FloatArray:
        """Return N Cov(p) times ``direction``: the derivative of the regions' marginals in this direction of the
        potentials.
        """
        tables = self.regions.tables(direction)
        return self.regions.marginals(derivative(self.regions.tree, sweep.conditionals, sweep.nodes, tables))

    def best_score(self, potentials: FloatArray) -> float:
        """Return the largest sum of potentials over all possible rows."""
        return collect(self.regions.tree, self.regions.tables(potentials, self.base), max_only)[0]


def pose(
    sizes: Mapping[str, int],
    measurements: Sequence[Measurement],
    total: float | None,
    zeros: Iterable[Zeros] = (),
) -> Problem:
    """Check the measurements and build the problem. Raises ``ValueError`` for shapes, scales or names that do not fit,
    and `EspalierError` if the impossibilities leave no row.
    """
    zeros = tuple(zeros)
    for measurement in measurements:
        _check(sizes, measurement.clique, measurement.values.shape)
        if not (isfinite(measurement.sigma) and measurement.sigma > 0):
            raise ValueError(f"sigma ({measurement.sigma}) must be positive")
        if not np.isfinite(measurement.values).all():
            raise ValueError(f"the counts of {_name(measurement.clique)} are not all finite")
    for rule in zeros:
        _check(sizes, rule.clique, rule.mask.shape)
    if total is None:
        total = estimate_total(measurements)
    elif not isfinite(total):
        raise ValueError(f"total ({total}) must be finite")
    total = max(float(total), SMALLEST_TOTAL)

    measured = [measurement.clique for measurement in measurements]
    tree = junction_tree(sizes, (*measured, *(rule.clique for rule in zeros)))
    base: list[FloatArray | None] | None = None
    if zeros:
        base = [None] * len(tree.nodes)
        for rule in zeros:
            place = tree.place(rule.clique)
            if not place.columns:
                if rule.mask.all():
                    raise _no_row()
                continue
            table = base[place.node]
            table = np.zeros(tree.nodes[place.node].shape) if table is None else table
            table += np.where(place.inward(rule.mask) > 0, IMPOSSIBLE, 0.0).reshape(place.lift)
            base[place.node] = np.maximum(table, IMPOSSIBLE)
    regions = Regions(tree, measured)
    weight, target = regions.pool(measurements, total)
    precision, centre, constant = _pool_cells(regions, measurements, total)
    problem = Problem(regions, total, weight, target, precision, centre, constant, 0.0, base)
    if base is not None and problem.best_score(np.zeros(regions.size)) < IMPOSSIBLE / 2:
        raise _no_row()
    floor = problem.objective(target)
    return Problem(regions, total, weight, target, precision, centre, constant, floor, base)


def estimate_total(measurements: Iterable[Measurement]) -> float:
    """Return the number of rows estimated from all measurements, at least `SMALLEST_TOTAL`: the mean of the sums of
    their noisy counts, each weighted by its inverse variance 1/(cells σ²).
    """
    numerator = denominator = 0.0
    for measurement in measurements:
        weight = 1.0 / (measurement.values.size * measurement.sigma**2)
        numerator += weight * float(measurement.values.sum())
        denominator += weight
    return max(numerator / denominator if denominator else 0.0, SMALLEST_TOTAL)


def _pool_cells(
    regions: Regions, measurements: Iterable[Measurement], total: float
) -> tuple[FloatArray, FloatArray, float]:
    """Merge repeated measurements of one clique. Return precision and mean per cell, and the remaining objective.
    Measurements of columns with one category, or of no column, only repeat the constant total.
    """
    precision, centre, constant = np.zeros(regions.size), np.zeros(regions.size), 0.0
    for measurement in measurements:
        added = 1.0 / measurement.sigma**2
        place = regions.tree.place(measurement.clique)
        if not place.columns:
            constant += 0.5 * added * (total - float(measurement.values.sum())) ** 2
            continue
        span = regions.spans[regions.index[place.columns]]
        before = precision[span]
        after = before + added
        apart = place.inward(measurement.values).ravel() - centre[span]
        constant += 0.5 * float(np.sum(before * added / after * apart * apart))
        centre[span] += added / after * apart
        precision[span] = after
    return precision, centre, constant


def _check(sizes: Mapping[str, int], clique: Clique, shape: tuple[int, ...]) -> None:
    for name in clique:
        if name not in sizes:
            raise ValueError(f"{_name(clique)} names a column that does not exist: {name}")
    if len(set(clique)) != len(clique):
        raise ValueError(f"{_name(clique)} names a column twice")
    expected = tuple(sizes[name] for name in clique)
    if shape != expected:
        raise ValueError(f"the table of {_name(clique)} has shape {shape}, but its columns have sizes {expected}")


def _name(clique: Clique) -> str:
    return "(" + ", ".join(clique) + ")"


def _no_row() -> EspalierError:
    return EspalierError("The impossible combinations leave no possible row, because they contradict each other.")
