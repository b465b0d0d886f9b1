"""The curator: the only door to the rows. What has been paid for is answered; nothing else is.

A synthesizer is given a :class:`Curator` and never a table. The private one debits *before* it draws and refuses
before it reads. The rehearsing one has no rows at all: a synthesizer run against it spends the same budget on
made-up answers, which is how a plan shows every measurement and its price without reading data.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from core.errors import BudgetError, SizeError
from core.privacy.accounting import Budget, Unit
from core.privacy.draws import (
    Act,
    Choice,
    Clique,
    GradientMeasurement,
    Kind,
    Measurement,
    Merged,
    ScoreMeasurement,
    fold,
)
from core.privacy.gradient import LARGEST_WEIGHT, UNITS, Weights, gradient_sensitivity
from core.privacy.scores import ConditionalScore, EdgeScore, FeatureScore, Score, vector_sensitivity


class Counts(Protocol):
    """What the curator needs of a table: its size, what of that is public, and the counts of a marginal."""

    @property
    def rows(self) -> int:
        """How many rows."""
        ...

    def known_rows(self, unit: Unit) -> int | None:
        """How many rows, if that is public under ``unit``; raises :class:`TableError` if the unit does not hold."""
        ...

    def count(self, clique: Clique) -> NDArray[np.int64]:
        """Exact counts, one axis per column of ``clique``."""
        ...

    def residual_sums(self, target: str, columns: Sequence[str], weights: Weights) -> NDArray[np.int64]:
        """Exact gradient of a logistic fit, see `core.privacy.gradient`."""
        ...


class Curator(Protocol):
    """What a synthesizer may ask."""

    sizes: Mapping[str, int]
    unit: Unit
    budget: Budget
    rows: int | None

    def measure(self, rhos: Mapping[Clique, float], pool: str = "") -> list[Measurement]:
        """Noisy counts of each clique, for the ρ given; raises :class:`BudgetError` before anything is read."""
        ...

    def choose(self, score: Score, candidates: Sequence[Clique], rho: float, what: str, pool: str = "") -> Clique:
        """One of ``candidates``, by the exponential mechanism of cost ``rho``.

        The empty clique, where the score allows it, stands for none of them; its score is 0.
        """
        ...

    def measure_scores(self, score: Score, cliques: Sequence[Clique], rho: float, pool: str = "") -> ScoreMeasurement:
        """Noisy scores of ``cliques``, all together for ``rho``."""
        ...

    def measure_gradient(
        self, target: str, columns: Sequence[str], weights: Weights, rho: float, pool: str = ""
    ) -> GradientMeasurement:
        """The noisy gradient, in rows, of a logistic fit of ``target`` at ``weights``."""
        ...

    def merge(self, merged: Merged) -> Merged:
        """From now on count these categories in groups; returns what is in force, and ``sizes`` follow it."""
        ...


@dataclass
class Spending:
    """What has been bought so far. ``rho`` adds up exactly rounded; ``limit`` is never passed."""

    limit: float
    measurements: list[Measurement] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    scores: list[ScoreMeasurement] = field(default_factory=list)
    gradients: list[GradientMeasurement] = field(default_factory=list)
    debits: list[float] = field(default_factory=list)
    _bought: dict[tuple[Kind, str], list[float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def rho(self) -> float:
        """ρ spent."""
        return math.fsum(self.debits)

    @property
    def acts(self) -> tuple[Act, ...]:
        """What ρ was spent on, in the order in which each was first paid for."""
        return tuple(Act(kind, pool, len(rhos), math.fsum(rhos)) for (kind, pool), rhos in self._bought.items())

    def debit(self, rhos: Sequence[float], kind: Kind = "measure", pool: str = "") -> None:
        """Take ``rhos`` from what is left, all or nothing; raises :class:`BudgetError`."""
        with self._lock:
            self._debit(rhos)
            if rhos:
                self._bought.setdefault((kind, pool), []).extend(rhos)

    def _debit(self, rhos: Sequence[float]) -> None:
        for rho in rhos:
            if not (rho > 0 and math.isfinite(rho)):
                raise BudgetError(f"a measurement needs a positive share of the budget, not ρ = {rho}", requested=rho)
        after = math.fsum([*self.debits, *rhos])
        if after > self.limit:
            left = self.limit - self.rho
            raise BudgetError(
                f"this needs ρ = {math.fsum(rhos):.6g}, but only {left:.6g} of {self.limit:.6g} is left; "
                "nothing was read",
                requested=math.fsum(rhos), remaining=left,
            )  # fmt: skip
        self.debits.extend(rhos)


class PrivateCurator:
    """The curator of a private table.

    Guarantee: everything it ever answered is together ``spending.rho``-zCDP for its ``unit``, at most
    ``budget.rho``, hence (ε, δ)-DP as asked. Proof: each answer is one call of a discrete Gaussian or exponential
    mechanism whose sensitivity is proved at :class:`Unit` and in ``scores.py``; ρ adds up, and a filter that
    stops at a fixed total holds for adaptive choices too (Whitehouse et al. 2023, Theorem 1).
    Where a table names people, it refuses one in which a person may have more than ``unit.rows_per_person`` rows
    (:func:`core.privacy.contribution.bounded` sees to that); where it does not, that number is a promise, which nobody
    checks. ``rows`` is the number of rows where it is public, else None: the exact number never shows.
    """

    def __init__(
        self, table: Counts, sizes: Mapping[str, int], unit: Unit, budget: Budget, max_cells: int,
        spending: Spending | None = None,
    ) -> None:  # fmt: skip
        """``max_cells`` is the largest marginal it will count; ``spending`` is where it books, if not in its own."""
        self.sizes: Mapping[str, int] = dict(sizes)
        self.unit, self.budget = unit, budget
        self.rows = table.known_rows(unit)
        self.spending = spending or Spending(budget.rho)
        if self.spending.limit > budget.rho:
            raise ValueError("what is booked elsewhere is held to the budget all the same")
        self._table, self._max_cells = table, max_cells
        self._whole, self._merged = dict(sizes), dict[str, NDArray[np.intp]]()
        self._order = {name: i for i, name in enumerate(sizes)}
        self._scores: tuple[Score | None, dict[Clique, int]] = (None, {})

    def measure(self, rhos: Mapping[Clique, float], pool: str = "") -> list[Measurement]:
        """Noisy counts of each clique: discrete Gaussian of scale Δ/√(2ρ), Δ from the unit of privacy."""
        from core.privacy.mechanisms import add_gaussian, gaussian_scale

        wanted = tuple(rhos.items())
        for clique, _ in wanted:
            _check_clique(clique, self._whole, self._order, self._max_cells)
        scales = [gaussian_scale(self.unit.count_sensitivity, rho) if rho > 0 else 0.0 for _, rho in wanted]
        self.spending.debit([rho for _, rho in wanted], "measure", pool)
        made = [
            Measurement(clique, add_gaussian(self._count(clique), sigma), sigma, rho, pool)
            for (clique, rho), sigma in zip(wanted, scales, strict=True)
        ]
        self.spending.measurements += made
        return made

    def choose(self, score: Score, candidates: Sequence[Clique], rho: float, what: str, pool: str = "") -> Clique:
        """One candidate by the exponential mechanism: noisy max over the whole-number scores."""
        from core.privacy.mechanisms import gumbel_scale, noisy_max

        known = self._checked(score, candidates)
        sensitivity = score.sensitivity(self.unit, self.rows)
        if not rho > 0:
            raise BudgetError(f"a choice needs a positive share of the budget, not ρ = {rho}", requested=rho)
        scale = gumbel_scale(sensitivity, rho)
        self.spending.debit([rho], "select", pool)
        self._evaluate(score, candidates, known)
        chosen = candidates[noisy_max([known[c] for c in candidates], scale)]
        per_row = score.per_row(self.rows)
        self.spending.choices.append(
            Choice(what, chosen, len(candidates), rho, scale / per_row, sensitivity / per_row, pool)
        )
        return chosen

    def measure_scores(self, score: Score, cliques: Sequence[Clique], rho: float, pool: str = "") -> ScoreMeasurement:
        """The scores of ``cliques`` as one vector of whole numbers: discrete Gaussian, Δ from `vector_sensitivity`."""
        from core.privacy.mechanisms import add_gaussian, gaussian_scale

        wanted = tuple(dict.fromkeys(cliques))
        known = self._checked(score, wanted)
        if not rho > 0:
            raise BudgetError(f"a measurement needs a positive share of the budget, not ρ = {rho}", requested=rho)
        sensitivity = vector_sensitivity(score, len(wanted), self.unit, self.rows)
        scale = gaussian_scale(sensitivity, rho)
        self.spending.debit([rho], "select", pool)
        self._evaluate(score, wanted, known)
        noisy = add_gaussian(np.array([known[c] for c in wanted], dtype=np.int64), scale)
        per_row = score.per_row(self.rows)
        made = ScoreMeasurement(wanted, noisy / per_row, scale / per_row, sensitivity / per_row, rho, pool)
        self.spending.scores.append(made)
        return made

    def measure_gradient(
        self, target: str, columns: Sequence[str], weights: Weights, rho: float, pool: str = ""
    ) -> GradientMeasurement:
        """The gradient's whole numbers as one vector: discrete Gaussian, Δ from `gradient_sensitivity`."""
        from core.privacy.mechanisms import add_gaussian, gaussian_scale

        wanted = _columns(target, columns, weights, self._whole)
        if not rho > 0:
            raise BudgetError(f"a measurement needs a positive share of the budget, not ρ = {rho}", requested=rho)
        sensitivity = gradient_sensitivity(self.unit, len(wanted), self._whole[target])
        scale = gaussian_scale(sensitivity, rho)
        self.spending.debit([rho], "select", pool)
        noisy = add_gaussian(self._table.residual_sums(target, wanted, weights), scale)
        made = GradientMeasurement(target, wanted, noisy / UNITS, scale / UNITS, sensitivity / UNITS, rho, pool)
        self.spending.gradients.append(made)
        return made

    def merge(self, merged: Merged) -> Merged:
        """Count in groups of categories from now on.

        The groups must be made from what this curator has answered, so that they are public. A histogram of groups is
        a histogram: every sensitivity stays what it is.
        """
        for name, groups in merged.items():
            used = np.unique(groups)
            if groups.shape != (self._whole[name],) or not np.array_equal(used, np.arange(len(used))):
                raise ValueError(f"the groups of {name} must number all its categories from 0")
        self._merged, self._scores = dict(merged), (None, {})
        self.sizes = {n: int(merged[n].max()) + 1 if n in merged else size for n, size in self._whole.items()}
        return merged

    def _count(self, clique: Clique) -> NDArray[np.int64]:
        """The exact counts, checked to be those of this table: a scale is proved for counts that sum to n."""
        counts = self._table.count(clique)
        if counts.shape != tuple(self._whole[name] for name in clique) or int(counts.sum()) != self._table.rows:
            raise ValueError(f"the table miscounts {clique}")
        return fold(counts, clique, self._merged)

    def _checked(self, score: Score, cliques: Sequence[Clique]) -> dict[Clique, int]:
        """The known values of ``score``, once it is one of ours and every clique is one it may be asked for."""
        if type(score) not in (EdgeScore, FeatureScore, ConditionalScore):
            raise TypeError("a score must be one of the recipes whose sensitivity is proved in scores.py")
        if not cliques or not all(score.fits(clique) for clique in cliques):
            raise ValueError("a choice is among one or more sets of columns, or of a target with others")
        known = self._known(score)
        for clique in cliques:
            if clique and clique not in known:
                _check_clique(clique, self._whole, self._order, self._max_cells)
        return known

    def _evaluate(self, score: Score, cliques: Sequence[Clique], known: dict[Clique, int]) -> None:
        for clique in cliques:
            if clique not in known:
                known[clique] = score.value(clique, self._count(clique), self.rows) if clique else 0

    def _known(self, score: Score) -> dict[Clique, int]:
        """Exact values of the score in use, kept so that each marginal is counted once; they never leave."""
        if self._scores[0] is not score:
            self._scores = (score, {})
        return self._scores[1]


UNKNOWN_ROWS = 10_000
"""The rows that a rehearsal assumes where their number is private: what a plan shows then is that of such a table."""


class Rehearsal:
    """A curator without rows: spends the same budget, answers uniformly, and takes the first candidate.

    Selection offers candidates largest marginal first, so what a rehearsal ends with is a pessimistic picture of
    the size a release may have. ``open_cliques`` are the cliques that a private choice would decide.
    """

    def __init__(self, sizes: Mapping[str, int], unit: Unit, budget: Budget, rows: int | None) -> None:
        """``rows`` is n where the person who plans has given it."""
        self.sizes: Mapping[str, int] = dict(sizes)
        self.unit, self.budget = unit, budget
        self.rows = rows if unit.neighbors == "replace-one" else None
        self.spending = Spending(budget.rho)
        self.open_cliques: set[Clique] = set()
        self._guess = rows or UNKNOWN_ROWS

    def measure(self, rhos: Mapping[Clique, float], pool: str = "") -> list[Measurement]:
        """Uniform counts at the price and scale a release would pay."""
        self.spending.debit(list(rhos.values()))
        if self.spending.choices or self.spending.gradients:  # what follows a choice may hang on it
            self.open_cliques |= {clique for clique in rhos if len(clique) > 1}
        made = []
        for clique, rho in rhos.items():
            shape = tuple(self.sizes[name] for name in clique)
            uniform = np.broadcast_to(np.float64(self._guess / math.prod(shape)), shape)
            sigma = self.unit.count_sensitivity / math.sqrt(2 * rho)
            made.append(Measurement(clique, uniform, sigma, rho, pool))
        self.spending.measurements += made
        return made

    def choose(self, score: Score, candidates: Sequence[Clique], rho: float, what: str, pool: str = "") -> Clique:
        """The first candidate, at the price a release would pay."""
        self.spending.debit([rho])
        n = self._public_rows()
        per_row = score.per_row(n)
        sensitivity = score.sensitivity(self.unit, n)
        scale = sensitivity / math.sqrt(2 * rho)
        self.spending.choices.append(
            Choice(what, candidates[0], len(candidates), rho, scale / per_row, sensitivity / per_row, pool)
        )
        self.open_cliques.add(candidates[0])
        return candidates[0]

    def measure_scores(self, score: Score, cliques: Sequence[Clique], rho: float, pool: str = "") -> ScoreMeasurement:
        """As many rows for each as the table has, at the price and scale a release would pay."""
        self.spending.debit([rho])
        wanted = tuple(dict.fromkeys(cliques))
        n = self._public_rows()
        sensitivity = vector_sensitivity(score, len(wanted), self.unit, n) / score.per_row(n)
        values = np.full(len(wanted), float(self._guess))
        made = ScoreMeasurement(wanted, values, sensitivity / math.sqrt(2 * rho), sensitivity, rho, pool)
        self.spending.scores.append(made)
        return made

    def measure_gradient(
        self, target: str, columns: Sequence[str], weights: Weights, rho: float, pool: str = ""
    ) -> GradientMeasurement:
        """A gradient of 0 at the price and scale a release would pay."""
        self.spending.debit([rho])
        wanted = _columns(target, columns, weights, self.sizes)
        sensitivity = gradient_sensitivity(self.unit, len(wanted), self.sizes[target]) / UNITS
        values = np.zeros((self.sizes[target] - 1) * sum(self.sizes[name] for name in wanted))
        made = GradientMeasurement(target, wanted, values, sensitivity / math.sqrt(2 * rho), sensitivity, rho, pool)
        self.spending.gradients.append(made)
        return made

    def merge(self, merged: Merged) -> Merged:  # noqa: ARG002
        """Nothing is merged: what is rare is not known before a release, and a plan shows tables at their largest."""
        return {}

    def _public_rows(self) -> int | None:
        """n where it is public; where nobody has given it yet, so many that Δ is at its limit."""
        return self.rows if self.unit.neighbors == "add-remove" or self.rows else 10**9


def _columns(target: str, columns: Sequence[str], weights: Weights, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The columns of a gradient, once each; raises :class:`ValueError` unless all weights have their shape."""
    wanted = tuple(dict.fromkeys(columns))
    others = sizes[target] - 1
    if target in wanted or not wanted or others < 1:
        raise ValueError("a logistic fit needs a target of two values or more and other columns")
    for name in (*wanted, target):
        if weights[name].shape != (1 if name == target else sizes[name], others):
            raise ValueError(f"the weights of {name!r} do not fit its categories")
        if not np.all(np.abs(weights[name]) <= LARGEST_WEIGHT):  # also where one is not a number
            raise ValueError(f"the weights of {name!r} must be numbers of at most {LARGEST_WEIGHT:g}")
    return wanted


def _check_clique(clique: Clique, sizes: Mapping[str, int], order: Mapping[str, int], max_cells: int) -> None:
    if not clique or any(name not in order for name in clique):
        raise ValueError(f"{clique!r} is not a clique of this table")
    if any(order[a] >= order[b] for a, b in itertools.pairwise(clique)):
        raise ValueError(f"{clique!r} is not in schema order")
    cells = math.prod(sizes[name] for name in clique)
    if cells > max_cells:
        raise SizeError(
            f"the table of {' × '.join(clique)} would have {cells:,} cells, more than the {max_cells:,} allowed; "
            "give one of these columns fewer categories or bins",
            clique=clique, cells=cells, limit=max_cells,
        )  # fmt: skip
