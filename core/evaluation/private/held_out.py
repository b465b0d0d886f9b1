"""Private evaluation: the quality of the synthetic table, measured on held-out people and paid for from the budget.
Unlike the figures for the curator (:func:`espalier.core.evaluation.evaluate`), these may be shared. They are computed
on a part of the table that the release did not use, through a separate curator, from noisy counts alone.
:func:`espalier.core.privacy.contribution.split` proves that evaluating this part for ρ₂ and releasing for ρ₁ costs
max(ρ₁, ρ₂) together. Everything after the counts is post-processing.

Each figure has a 95 % interval for that figure alone. It covers both the noise and the sampling of held-out rows from a
larger population. With k rows per person the sampling variance is multiplied by k, as if each person had k equal rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from espalier.core.evaluation.private.counts import BINS, HeldOutCounts
from espalier.core.evaluation.private.evaluation import PrivateEvaluation, PrivateFigure, combined
from espalier.core.evaluation.private.intervals import (
    Interval,
    area_interval,
    distance_interval,
    entropy_bound,
    information_interval,
    share_interval,
)
from espalier.core.graph.separations import Clique
from espalier.core.methods.select.allocation import BudgetSplit
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.contribution import check_fits
from espalier.core.privacy.curator import Curator, PrivateCurator
from espalier.core.privacy.draws import Draw, Measurement
from espalier.core.privacy.journal import Journal
from espalier.core.privacy.rehearsal import Rehearsal
from espalier.core.privacy.spending import Spending
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.tables.source import Source
from espalier.core.tables.table import Table

if TYPE_CHECKING:
    from espalier.core.evaluation.classifier import FloatArray

S = TypeVar("S", bound=Source)

FIRST = 0.1
"""Share of the budget for the accuracy, which needs two cells. Their total also estimates the number of rows."""
WEIGHTS = {"auc": 5.0, "one_way_tv": 3.0, "cmi": 2.0}
"""Division of the rest of the budget among the figures that the held-out rows support."""
MOST_RANKED = 100_000
"""Number of synthetic rows that determine the bin edges of a score."""
CELLS_PER_SIGMA = 3.0
"""Minimum ratio of a class's rows to the joint noise of its bins."""
BLUR = 0.1
"""Largest mean total variation that noise alone may cause. If noise would cause more, the figure is not measured."""
UNKNOWN = 10**12
"""Number of rows that is assumed if none is given. It is enough for every figure."""
SPARSE, CELL_PER_SIGMA = 20.0, 12.0
"""Minimum average number of rows in a cell of the conditional table, and its minimum ratio to the noise of a cell. A
stratum is used if independence predicts three times the noise in its smallest cell, which is assumed to contain a
quarter of the average.
"""


def judge(
    project: Project,
    synthetic: Table,
    held: Source,
    budget: Budget,
    spending: Spending | None = None,
    journal: Journal | None = None,
) -> PrivateEvaluation:
    """Judge ``synthetic`` on the rows of ``held``, which must have been set aside at random before the release.

    Guarantee: the result is ``budget.rho``-zCDP for ``held`` under the plan's unit of privacy, for any ``synthetic``
    that does not depend on ``held``. Proof: the classifier is trained on synthetic rows, so its guess, its score and
    the score's bins are functions of one held-out row at a time. The same is true of merged values. Each clique is
    therefore a histogram of held-out rows, whose L2 sensitivity is :attr:`Unit.count_sensitivity`, even if one person's
    rows are replaced by fewer or more rows. The curator of the held-out part debits each histogram before it is drawn.
    The levels of CMI that are measured depend on public facts and on the noisy total. The curator's debits are recorded
    in ``spending``, for the caller, even if an error is raised, for example because ``held`` does not match the
    project. The ``journal`` stores each answer.
    """
    check_fits(project, held, "the held-out part")
    asked, plan = HeldOutCounts.of(project), project.plan
    seen = judged(asked, synthetic, held)
    unit = Unit(plan.neighbors, plan.rows_per_person)
    with nullcontext() if seen is held else closing(seen):
        curator = PrivateCurator(seen, unit, budget, plan.max_cells, spending, held_out=True, journal=journal)
        made = measure(curator, asked, curator.rows)
    figures, n = figures_of(asked, made, curator.rows, unit, synthetic)
    by, draws = "person" if plan.person else "row", curator.spending.draws
    values = None if asked.target is None else asked.schema[asked.target].values
    return PrivateEvaluation(
        plan.private_evaluation, by, asked.target, n, curator.spending.rho, tuple(made), figures, tuple(draws), values
    )


def rehearse(project: Project, budget: Budget, rows: int | None) -> tuple[tuple[Draw, ...], tuple[PrivateFigure, ...]]:
    """Return the purchases of an evaluation, and figures with intervals of the expected width. This reads no data.

    ``rows`` is the number of rows to be held out, if known; otherwise they are assumed to support every figure, and
    none is shown. The figures assume uniform answers, as from a classifier that guesses an even target.
    """
    asked, plan = HeldOutCounts.of(project), project.plan
    unit = Unit(plan.neighbors, plan.rows_per_person)
    curator = Rehearsal(asked.schema.sizes, unit, budget, rows, held_out=True)
    made = measure(curator, asked, UNKNOWN if rows is None else rows)
    return tuple(curator.spending.draws), figures_of(asked, made, rows, unit, None)[0] if rows is not None else ()


def judged(asked: HeldOutCounts, synthetic: Table, held: S) -> S:
    """Return the held-out rows with the predictions of a classifier trained on ``synthetic``, and merged columns.

    Private.
    """
    if asked.target is None:
        return held
    from espalier.core.evaluation.classifier import fit, log_odds

    target, values = asked.target, asked.schema[asked.target].values
    model = fit(synthetic, target)
    known_target = synthetic.observed(target)
    some = known_target if known_target.rows else synthetic
    some = some.take(np.arange(min(some.rows, MOST_RANKED)))  # the order of synthetic rows has no meaning
    known = log_odds(model.scores(some))
    edges = [_edges(known[:, code], some.codes[target] == code) for code, _, _ in asked.tells]

    def made(rows: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        truth = rows[target].astype(np.int64)
        scores = model.scores_of(rows, len(truth))
        observed = truth < values
        codes = {asked.right: np.where(observed, scores.argmax(axis=1) == truth, 2)}
        odds = log_odds(scores)
        for (code, is_it, score), cuts in zip(asked.tells, edges, strict=True):
            codes[is_it] = np.where(observed, truth == code, 2)
            codes[score] = np.searchsorted(cuts, odds[:, code], side="right")
        return codes | asked.merging(rows)

    return held.widened(asked.schema, made)


def _edges(scores: FloatArray, positive: NDArray[np.bool_]) -> FloatArray:
    """Return BINS − 1 cuts that give each bin the same share of synthetic rows, with equal weight for both outcomes."""
    weight = np.where(positive, 1 / max(positive.sum(), 1), 1 / max((~positive).sum(), 1))
    order = np.argsort(scores)
    filled = np.cumsum(weight[order])
    place = np.searchsorted(filled, filled[-1] * np.arange(1, BINS) / BINS)
    return np.asarray(scores[order][np.minimum(place, len(order) - 1)])


def measure(curator: Curator, asked: HeldOutCounts, rows: int | None) -> list[Measurement]:
    """Spend the curator's budget: first on accuracy, then on the figures that the estimated number of rows supports.

    Public facts and the noisy total determine the supported figures before they are paid for. The rest of the budget
    refines the accuracy.
    """
    budget = BudgetSplit(curator.budget, curator.sizes, "uniform", "zcdp")
    ways = [(name,) for name in asked.columns]
    if asked.target is None:
        return curator.measure(budget.split(1.0, ways), "one-way")
    first = [(asked.right,)]
    made = curator.measure(budget.split(FIRST, first), "accuracy")
    n = float(made[0].values.sum()) if rows is None else float(rows)
    shares, asked = _shares(curator, budget, asked, n)
    for figure, share in shares.items():
        made += curator.measure(budget.split(share, asked.cliques(figure)), _POOLS[figure])
    if not shares:
        made += curator.measure(budget.split(1 - FIRST, first), "accuracy")
    return made


_POOLS = {"auc": "AUC", "one_way_tv": "one-way", "cmi": "CMI"}


def _shares(
    curator: Curator, budget: BudgetSplit, asked: HeldOutCounts, n: float
) -> tuple[dict[str, float], HeldOutCounts]:
    """Return shares of the budget for the figures that ``n`` rows support, and the counts with the strata that they
    support. CMI uses the first of its levels that ``n`` and the noise allow, both of which are public or already
    bought.
    """
    whole = sum(WEIGHTS.values())
    carried = []
    for figure, weight in WEIGHTS.items():
        cliques = asked.cliques(figure)
        if figure in asked.reasons or not cliques:
            continue
        rho = next(iter(budget.split((1 - FIRST) * weight / whole, cliques).values()))
        sigma = curator.unit.count_sensitivity / math.sqrt(2 * rho)
        levels = asked.levels() if figure == "cmi" else iter((asked,))
        found = next((one for one in levels if not blocked(figure, one, n, sigma)), None)
        if found is not None:
            carried.append(figure)
            asked = found
    total = sum(WEIGHTS[f] for f in carried)
    return {f: (1 - FIRST) * WEIGHTS[f] / total for f in carried}, asked


def blocked(figure: str, asked: HeldOutCounts, n: float, sigma: float) -> str:
    """Return the reason why about ``n`` held-out rows do not support a figure with noise ``sigma``; "" if they do."""
    rows, noise = f"about {max(n, 0):,.0f} held-out rows", f"noise of {sigma:,.0f} rows per cell"
    if figure == "auc":
        need = 2 * CELLS_PER_SIGMA * sigma * math.sqrt(BINS)
        return "" if n >= need else f"{rows} are too few for {noise}; {need:,.0f} would be needed"
    if figure == "one_way_tv":
        sizes = [asked.schema[name].size for name in asked.columns]
        blur = float(np.mean(sizes)) * sigma * math.sqrt(2 / math.pi) / 2 / max(n, 1.0)
        return "" if blur <= BLUR else f"on {rows}, {noise} would by itself look like an error of {blur:.2f}"
    need = asked.cells * max(SPARSE, CELL_PER_SIGMA * sigma)
    what = f"the table of {', '.join(asked.conditional)} has {asked.cells:,} cells"
    return "" if n >= need else f"{what}; {rows} are too few for that with {noise}: {need:,.0f} would be needed"


def figures_of(
    asked: HeldOutCounts, made: Sequence[Measurement], rows: int | None, unit: Unit, synthetic: Table | None
) -> tuple[tuple[PrivateFigure, ...], int]:
    """Return the figures and the number of held-out rows, from noisy counts, the synthetic table and public facts
    alone.
    """
    n, spread = _total(made, rows)
    rng = np.random.default_rng()
    k = unit.rows_per_person
    by_clique: dict[Clique, list[Measurement]] = {}
    for m in made:
        by_clique.setdefault(m.clique, []).append(m)
    out = []
    own, bought = asked, [one for one in asked.levels() if one.conditional in by_clique]
    if bought:
        asked = bought[0]
    for figure in ("accuracy", *WEIGHTS):
        cliques = [(asked.right,)] if figure == "accuracy" else asked.cliques(figure)
        got = [by_clique[c] for c in cliques if c in by_clique]
        if figure in asked.reasons or not got:
            why = asked.reasons.get(figure) or _why(figure, asked, made, n, unit)
            bound = _cmi_bound(own, by_clique, n, k) if figure == "cmi" and synthetic is not None else None
            out.append(PrivateFigure(figure, reason=why or "there are too few held-out rows", bound=bound))
            continue
        found: Interval | str
        if figure == "accuracy":
            values, sigma = combined(got[0])
            found = share_interval(values[:2], sigma, *_observed(values, sigma, n, spread), k)
        elif figure == "auc":
            found = area_interval([(g[0].values[:2], g[0].sigma) for g in got], k, CELLS_PER_SIGMA)
        elif figure == "cmi":
            s = asked.separation
            assert s is not None
            axes = [[asked.conditional.index(c) for c in side] for side in (s.left, s.right, s.given)]
            values = got[0][0].values
            for axis, name in enumerate(asked.conditional):
                values = values.take(range(asked.schema[name].values), axis=axis)
            found = information_interval(values, got[0][0].sigma, axes, k, rng)
        else:
            shares, errors = _sampling(asked, synthetic, n, k, rng)
            counts = None if synthetic is None else [g[0].values for g in got]
            found = distance_interval(counts, shares, errors, [g[0].sigma for g in got], n, spread, rng)
        if isinstance(found, str):
            bound = _cmi_bound(own, by_clique, n, k) if figure == "cmi" and synthetic is not None else None
            out.append(PrivateFigure(figure, reason=found, bound=bound))
        else:
            method = found.method + _left_out(figure, asked, by_clique)
            about = own.given(asked.separation.given) if figure == "cmi" and asked.separation is not None else ""
            ends = (found.value, found.low, found.high)
            out.append(PrivateFigure(figure, *ends, method, about=about, bound=found.bound))
    return tuple(out), max(round(n), 0)


def _cmi_bound(
    asked: HeldOutCounts, counted: Mapping[Clique, Sequence[Measurement]], n: float, k: int
) -> tuple[float, float] | None:
    """Return an interval of CMI from the counts of single columns; `None` if they were not bought.

    I(left; right | given) is at most the entropy of either side, and that is at most the sum over its columns. The
    chance of an error is divided evenly among the columns. If a cell may be missing, CMI describes only some of the
    rows, so the bound of a column is the logarithm of its number of values.
    """
    separation = asked.separation
    if separation is None or any((name,) not in counted for name in (*separation.left, *separation.right)):
        return None
    sides = (separation.left, separation.right)
    some = any(asked.schema[name].missing for name in asked.conditional)
    error = 0.05 / sum(map(len, sides))

    def most(name: str) -> float:
        values, sigma = combined(counted[(name,)])
        return math.log(len(values) - asked.schema[name].missing) if some else entropy_bound(values, sigma, n, k, error)

    return 0.0, min(math.fsum(map(most, side)) for side in sides)


def _observed(counts: FloatArray, sigma: float, n: float, spread: float) -> tuple[float, float]:
    """Return (rows whose target is observed, standard error) from counts of wrong and correct predictions and missing
    targets. It combines two unbiased estimates with independent noise, weighted by precision: the sum of the first two
    cells, and ``n`` minus the third. Neither depends on the difference of the first two.
    """
    if len(counts) == 2:
        return n, spread
    one, other = 1 / (2 * sigma**2), 1 / (sigma**2 + spread**2)
    found = (one * float(counts[:2].sum()) + other * (n - float(counts[2]))) / (one + other)
    return found, (one + other) ** -0.5


def _left_out(figure: str, asked: HeldOutCounts, counted: Mapping[Clique, Sequence[Measurement]]) -> str:
    """If cells may be missing, return a sentence about the rows behind a figure and the share without a target."""
    names = asked.conditional if figure == "cmi" else () if figure == "one_way_tv" else (asked.target,)
    missing = [name for name in names if name is not None and asked.schema[name].missing]
    if not missing:
        return ""
    said = f"; of the rows where {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} observed"
    counts = np.maximum(combined(counted[(asked.right,)])[0], 0.0) if (asked.right,) in counted else np.zeros(3)
    if len(counts) < 3 or not counts.sum() > 0:
        return said
    return f"{said} ({asked.target} is missing in about {100 * counts[2] / counts.sum():.0f} %)"


def _why(figure: str, asked: HeldOutCounts, made: Sequence[Measurement], n: float, unit: Unit) -> str:
    """Return the reason why a figure was not paid for, with the noise that it would have had."""
    budget = BudgetSplit(Budget(1.0, 0.0, math.fsum(m.rho for m in made)), asked.schema.sizes, "uniform", "zcdp")
    share = (1 - FIRST) * WEIGHTS[figure] / sum(WEIGHTS.values())
    if figure == "cmi":
        asked = list(asked.levels())[-1]
    rho = next(iter(budget.split(share, asked.cliques(figure)).values()))
    return blocked(figure, asked, n, unit.count_sensitivity / math.sqrt(2 * rho))


def _total(made: Sequence[Measurement], rows: int | None) -> tuple[float, float]:
    """Return (n, its standard error), exact if n is public, else from the noisy totals, weighted by precision."""
    if rows is not None:
        return float(rows), 0.0
    weights = np.array([1 / (m.values.size * m.sigma**2) for m in made])
    totals = np.array([m.values.sum() for m in made])
    return float(weights @ totals / weights.sum()), float(weights.sum() ** -0.5)


DRAWS = 400
"""Number of samples of the held-out rows' one-way counts, drawn from the synthetic table."""
LARGEST_SAMPLE = 2000
"""Errors of a larger sample follow by scaling, because they fall with √n."""


def _sampling(
    asked: HeldOutCounts, synthetic: Table | None, n: float, k: int, rng: np.random.Generator
) -> tuple[list[FloatArray], FloatArray]:
    """Return the one-way shares of the synthetic table, and the errors (DRAWS × all cells) of shares in samples of n/k
    of its rows. Whole rows are drawn, so that errors of different columns are correlated as they are among the held-out
    rows.
    """
    sizes = [asked.schema[name].size for name in asked.columns]
    people = max(n / k, 1.0)
    drawn = int(min(people, LARGEST_SAMPLE))
    if synthetic is None:
        shares = [np.full(size, 1 / size) for size in sizes]
        parts = [rng.multinomial(drawn, q, size=DRAWS) / drawn - q for q in shares]
        return shares, np.concatenate(parts, axis=1) * math.sqrt(drawn / people)
    codes = [synthetic.codes[name] for name in asked.columns]
    shares = [np.bincount(c, minlength=s) / synthetic.rows for c, s in zip(codes, sizes, strict=True)]
    errors = np.empty((DRAWS, sum(sizes)))
    for i in range(DRAWS):
        rows = rng.integers(0, synthetic.rows, drawn)
        counts = [np.bincount(c[rows], minlength=s) / drawn for c, s in zip(codes, sizes, strict=True)]
        errors[i] = np.concatenate(counts) - np.concatenate(shares)
    return shares, errors * math.sqrt(drawn / people)
