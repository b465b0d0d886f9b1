"""Estimation of the distribution whose marginals fit noisy measurements best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from espalier.core.graph.junction_tree import FloatArray, Zeros
from espalier.core.graph.separations import Clique
from espalier.core.models.graphical.metric import closed_form, links
from espalier.core.models.graphical.model import FitSummary, GraphicalModel
from espalier.core.models.graphical.problem import Problem, pose
from espalier.core.models.graphical.solver import MOST_GAP, Solver
from espalier.core.privacy.draws import Measurement
from espalier.core.progress import Report

SMOOTHING, MOST_SMOOTHING, NOISY = 1.0, 3.0, 10.0
"""Smallest and largest strength with which a release shrinks toward independent columns (see `estimate`). Between these
limits, the strength is the third number times a cell's noise divided by its rows (see `smoothing_for`). With 0, a model
whose cells are mostly noise follows the noise, which lowers AUC at small ε. On Adult at ε = 0.2, PRISM has an AUC of
0.877 with a strength of 1 throughout, and 0.880 with up to 3.
"""

TOLERANCE = 1e-3
"""Default relative duality gap."""

MAX_ITERATIONS = 1000


def estimate(
    sizes: Mapping[str, int],
    measurements: Sequence[Measurement],
    total: float | None,
    *,
    zeros: Iterable[Zeros] = (),
    start: GraphicalModel | None = None,
    smoothing: float = 0.0,
    report: Report | None = None,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> GraphicalModel:
    """Return the model of ``total`` rows whose marginals μ minimise Σ_c ‖μ_c − y_c‖²/(2σ_c²).

    ``sizes`` are all columns in schema order with their numbers of categories; columns in no measurement are uniform.
    If ``total`` is None, it is estimated from the measurements
    (`espalier.core.models.graphical.problem.estimate_total`); a value below one row is raised to one. The model puts no
    mass on cells that a `Zeros` forbids, and its graph contains their cliques. ``start`` is an earlier model, whose
    potentials are reused if they fit. ``report(fraction, message)`` is called during the fit; if it raises an
    exception, the fit ends.

    The fit stops when the duality gap, a certified bound on the distance to the best objective, is at most
    ``tolerance`` times the objective (or times 1 if the objective is smaller, because smaller differences in
    log-likelihood are negligible). With smoothing, the gap must also be at most `MOST_GAP`. The result's ``fit``
    records whether this was reached within ``max_iterations``; if not, the best point found is returned.

    Raises ``ValueError`` for a measurement that does not fit the columns, and `espalier.core.errors.EspalierError` if
    the impossibilities leave no row. Check sizes first (`check_size`), because this function has no size limit.

    ``smoothing`` > 0 adds λ N KL(p ‖ q) to the objective, where λ = smoothing / (median noise scale), and q is the
    distribution with independent columns and the pooled one-way counts. The best fit to noisy counts follows the noise.
    If most cells are noise, the one-way counts are closer to the truth. If the same pairs of Adult are measured at ε =
    0.2 (tables of ``python -m benchmarks.peers``), mean two-way TV is 0.031 with shrinkage of 0.3 toward uniform cells,
    0.030 with 0.3 toward independent columns, and 0.028 with 1 toward independent columns. On 25 columns of 16,000 rows
    at ε = 1, it is 0.0292, 0.0277 and 0.0265, and the fit takes fewer steps. ``fit.objective`` is the plain objective,
    ``fit.gap`` the gap of the smoothed problem.

    The method is in `espalier.core.models.graphical.solver`. It was chosen by measurement (``python -m
    benchmarks.inference algorithms``). The table shows CPU seconds until the objective is certified to be within 0.1 %
    of the best, on 12 columns of Adult's shape, with equal σ | σ alternating between 1 and 1,000. ">" marks fits that
    were not certified in 1,000 steps or that rounding errors stopped:

    ====================================  =============  =============  =============  =============
    algorithm                             star           tree           star+tree      star+six
    ====================================  =============  =============  =============  =============
    proximal point, Newton-CG             0.00 | 0.07    0.02 | 0.15    0.07 | 0.55    0.08 | 0.50
    L-BFGS (30 pairs) for Newton-CG       0.00 | 0.06    0.04 | 0.15    0.17 | >2      0.17 | 2.78
    Newton-CG without the tree metric     0.05 | >6      >7   | >6      >11  | >10     12.6 | >12
    Newton-CG on one regularised dual     0.00 | 0.02    0.42 | 0.25    1.06 | 0.50    0.57 | 1.47
    mirror descent with line search       5,000 sweeps are never certified, and far off if σ differs
    ====================================  =============  =============  =============  =============

    Continuation in the smoothing (starting each minimisation at the previous minimum) came as close to the best
    objective. But without a proximal centre, its bounds tighten only in proportion to λ, which takes 400 to over 3,000
    steps of L-BFGS.
    """
    if not smoothing >= 0:
        raise ValueError(f"smoothing ({smoothing}) must not be negative")
    if not tolerance > 0:
        raise ValueError(f"tolerance ({tolerance}) must be positive")
    rules = tuple(zeros)
    problem = pose(sizes, measurements, total, rules)
    first = _closed_form(problem) if start is None else _transfer(problem, start)
    solver = Solver(problem, tolerance, max_iterations, report)
    solution = solver.smoothed(first, smoothing, _independent(problem)) if smoothing else solver.solve(first)
    cliques = tuple(dict.fromkeys([*(m.clique for m in measurements), *(rule.clique for rule in rules)]))
    if report is not None:
        report(1.0, "Model fitted")
    return GraphicalModel(
        sizes=dict(sizes),
        cliques=cliques,
        potentials=_potentials(problem, solution.potentials, cliques, rules),
        total=problem.total,
        fit=FitSummary(
            iterations=solution.iterations,
            objective=solution.objective,
            gap=solution.gap,
            converged=solution.converged,
            criterion=f"duality gap at most {tolerance:g} times max(1, objective)"
            + (f", and at most {MOST_GAP:g}, smoothing {smoothing:g}" if smoothing else ""),
        ),
    )


def smoothing_for(measurements: Sequence[Measurement], total: float | None) -> float:
    """Return the smoothing for a fit of ``measurements``. It is stronger if a typical cell has few rows relative to its
    noise, and depends only on noisy answers. ``total`` defaults to the mean of the measured totals.
    """
    noise = [m.sigma * m.values.size for m in measurements if len(m.clique) > 1]
    if not noise:
        return SMOOTHING
    rows = float(np.mean([m.values.sum() for m in measurements])) if total is None else total
    return float(np.clip(NOISY * np.median(noise) / max(rows, 1.0), SMOOTHING, MOST_SMOOTHING))


def _closed_form(problem: Problem) -> FloatArray:
    """Return a cold start from the tree in the measurements, as if the pooled estimate were exact."""
    floor = 0.3 * np.sqrt(problem.variance())
    return closed_form(problem.regions, links(problem.regions), np.maximum(problem.target, floor))


def _independent(problem: Problem) -> FloatArray:
    """Return the potentials of independent columns with their pooled counts, each raised to at least one row."""
    regions = problem.regions
    centre = np.zeros(regions.size)
    views, pooled = regions.views(centre), regions.views(problem.target)
    for column in range(len(regions.tree.nodes)):
        home = regions.home((column,))
        if home >= 0:
            held = regions.places[home].columns
            counts = pooled[home].sum(axis=tuple(axis for axis, c in enumerate(held) if c != column))
            views[home] += np.log(np.maximum(counts, 1.0)).reshape(regions.lift((column,), home))
    return centre


def _transfer(problem: Problem, start: GraphicalModel) -> FloatArray:
    """Return a warm start from the potentials of another model, if they fit into this problem's regions."""
    regions = problem.regions
    sizes = regions.tree.sizes
    potentials = np.zeros(regions.size)
    views = regions.views(potentials)
    for clique, table in start.potentials.items():
        if table.shape != tuple(sizes.get(name, 0) for name in clique):
            continue
        try:
            place = regions.tree.place(clique)
        except LookupError:
            continue
        home = regions.home(place.columns)
        if home >= 0:
            finite = np.where(np.isfinite(table), table, 0.0)
            views[home] += place.inward(finite).reshape(regions.lift(place.columns, home))
    return potentials


def _potentials(
    problem: Problem, flat: FloatArray, cliques: Sequence[Clique], zeros: Sequence[Zeros]
) -> dict[Clique, FloatArray]:
    """Return the potentials of each maximal clique, in the clique's order, with −∞ for cells that a rule forbids."""
    regions = problem.regions
    views = [view.copy() for view in regions.views(flat)]
    maximal = set(regions.maximal)
    for i, place in enumerate(regions.places):
        if i not in maximal:
            home = regions.home(place.columns, maximal)
            views[home] += views[i].reshape(regions.lift(place.columns, home))
    found: dict[Clique, FloatArray] = {}
    for clique in cliques:
        place = regions.tree.place(clique)
        i = regions.index.get(place.columns, -1)
        if i in maximal:
            maximal.discard(i)
            found[clique] = place.outward(views[i])
    for rule in zeros:
        table = found.get(rule.clique, np.zeros(rule.mask.shape))
        found[rule.clique] = np.where(rule.mask, -np.inf, table)
    return found
