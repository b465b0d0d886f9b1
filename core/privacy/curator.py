"""The curator, the only object that can read the rows. It answers only paid requests. A method gets a :class:`Curator`
and never a table. Every verb debits *before* it draws and refuses before it reads. :class:`PrivateCurator` queries the
table and adds noise. The :class:`~espalier.core.privacy.rehearsal.Rehearsal` has no rows. A method run against it
spends the same budget on made-up answers. A plan can therefore show every draw and its price without reading data.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import BudgetError, SizeError
from espalier.core.graph.separations import Clique
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.class_features import ColumnSets
from espalier.core.privacy.contribution import known_rows
from espalier.core.privacy.draws import (
    Draw,
    Measurement,
    Merged,
    Noise,
    ScoreMeasurement,
    SumMeasurement,
    counts_of,
    fold,
)
from espalier.core.privacy.journal import Journal
from espalier.core.privacy.question_recipes.recipes import QuestionSums, WorstQuestion, answers
from espalier.core.privacy.scores import (
    FIXED_POINT,
    ConditionalScore,
    EdgeScore,
    FeatureScore,
    Score,
    vector_sensitivity,
)
from espalier.core.privacy.spending import Spending
from espalier.core.privacy.steps import StepScore
from espalier.core.privacy.sums import PROVED, PureRecipe, SumRecipe
from espalier.core.privacy.unit import Unit
from espalier.core.project.linked import Pair
from espalier.core.tables.public_chance import Chance, fresh
from espalier.core.tables.source import Source

Impossible = Mapping[Clique, NDArray[np.bool_]]
"""Cells that no row of the model may be in, by clique; True for an impossible cell."""

TOGETHER = 1 << 22
"""Maximum number of cells of exact counts in memory at a time (32 MB)."""


class Curator(ABC):
    """Requests that a method can make. Each verb checks and debits before it answers.

    ``whole`` maps the columns, in schema order, to their numbers of categories. ``sizes`` is the same mapping after
    categories were merged into groups. ``scored`` lists the score vectors that were answered. ``rows`` is the number of
    rows if it is public, else None. ``max_cells`` is the size of the largest marginal that may be measured.
    ``held_out`` is true if the rows belong to people held out to judge a release. ``impossible`` contains, by clique,
    the cells that no row of the model may be in (public constraints, which models use and sensitivities ignore).
    """

    takes_first = False
    """True if every choice returns its first candidate, as in a rehearsal. Two candidates are then enough."""

    def __init__(
        self,
        sizes: Mapping[str, int],
        unit: Unit,
        budget: Budget,
        rows: int | None,
        max_cells: int,
        impossible: Impossible | None = None,
        *,
        held_out: bool = False,
    ) -> None:
        """Create a curator for columns of these ``sizes``, which may spend ``budget.rho``."""
        self.sizes: Mapping[str, int] = dict(sizes)
        self.unit, self.budget, self.rows = unit, budget, rows
        self.spending = Spending.of(budget)
        self.noise: Noise = "laplace" if budget.pure else "gaussian"
        self.held_out = held_out
        self.scored: list[ScoreMeasurement] = []
        self.impossible: Impossible = impossible or {}
        self.whole: Mapping[str, int] = dict(sizes)
        self.chance: Chance = fresh
        """Public random numbers for methods, such as random features. A resumed release gets the same numbers again."""
        self._max_cells = max_cells
        self._order = {name: i for i, name in enumerate(sizes)}
        self._fine: set[Clique] = set()
        """Cliques that were already checked, because a tree requests each of its 19,900 pairs about a hundred times."""

    @property
    def cell_sensitivity(self) -> float:
        """Sensitivity, in rows, of one clique's counts: L2 with Gaussian noise, L1 with Laplace noise."""
        return self.unit.count_sensitivity if self.noise == "gaussian" else self.unit.rows_moved

    def sensitivity_of(self, recipe: SumRecipe) -> float:
        """Return the sensitivity of sums in their units: L2 with Gaussian noise, L1 with Laplace noise.

        Raises :class:`BudgetError` for sums that have no proved L1 sensitivity.
        """
        if self.noise == "gaussian":
            return recipe.sensitivity(self.unit)
        if not isinstance(recipe, PureRecipe):
            raise BudgetError(
                f"pure accounting cannot pay for {recipe.what}, because their proof covers only Gaussian noise. "
                "Leave them out of the plan, or set accounting to zcdp"
            )
        return recipe.total_sensitivity(self.unit)

    def measure(self, rhos: Mapping[Clique, float], pool: str = "") -> list[Measurement]:
        """Return noisy counts of each clique for the given ρ: σ = Δ/√(2ρ), where Δ depends on the unit of privacy
        (`cell_sensitivity`).

        Raises :class:`BudgetError` and :class:`SizeError` before anything is read.
        """
        for clique in rhos:
            _check_clique(clique, self.whole, self._order, self._max_cells)
        delta = self.cell_sensitivity
        scales = {q: self._noise_scale(delta, rho) for q, rho in rhos.items()}
        self._debit(
            Draw(
                "count",
                counts_of(q, self._is_open(q)),
                q,
                pool,
                math.prod(self.sizes[name] for name in q),
                delta,
                scales[q],
                rho,
                is_open=self._is_open(q),
                noise=self.noise,
            )
            for q, rho in rhos.items()
        )
        answers = self._counts(list(rhos), scales)
        return [Measurement(q, a, scales[q], rhos[q], pool) for q, a in zip(rhos, answers, strict=True)]

    def choose(self, score: Score, candidates: Sequence[Clique], rho: float, what: str, pool: str = "") -> Clique:
        """Return one of ``candidates``, chosen by the exponential mechanism of cost ``rho``: noisy max over
        whole-number scores.

        The empty clique, if the score allows it, means "none of them"; its score is 0.
        """
        self._check_score(score, candidates)
        n = self._score_rows()
        sensitivity = score.sensitivity(self.unit, n)
        scale, unit = self._choice_scale(sensitivity, rho), score.per_row(n)
        self._debit(
            [
                Draw(
                    "choice",
                    what,
                    None,
                    pool,
                    0,
                    sensitivity / unit,
                    scale / unit,
                    rho,
                    candidates=len(candidates),
                    recipe=score.recipe,
                    given=score.given(n),
                )
            ]
        )
        return self._pick(score, candidates, scale)

    def choose_question(self, recipe: WorstQuestion, rho: float, pool: str = "") -> tuple[int, int]:
        """Return the question whose expected answer is most wrong, and the sign of the error, chosen by the exponential
        mechanism of cost ``rho``.

        See :class:`WorstQuestion`.
        """
        if type(recipe) is not WorstQuestion:
            raise TypeError("a choice among questions must use the recipe proved in question_recipes/recipes.py")
        self._check_sums(recipe.asked)
        sensitivity, unit = recipe.sensitivity(self.unit), recipe.units
        scale = self._choice_scale(sensitivity, rho)
        each, noise, among = sensitivity / unit, scale / unit, recipe.candidates
        draw = Draw("choice", "question", None, pool, 0, each, noise, rho, candidates=among, recipe="worst-question")
        self._debit([draw])
        return recipe.question_of(self._worst(recipe, scale))

    def choose_step(self, score: StepScore, candidates: Sequence[Pair], rho: float, pool: str = "") -> Pair:
        """Choose one of ``candidates``, pairs of columns at a step, by the exponential mechanism of cost ``rho``."""
        if type(score) is not StepScore or not candidates:
            raise TypeError("a choice among pairs of a step must use the score proved in steps.py")
        sensitivity, unit = score.sensitivity(self.unit), score.units
        scale = self._choice_scale(sensitivity, rho)
        each, noise, among = sensitivity / unit, scale / unit, len(candidates)
        draw = Draw("choice", "pair of a step", None, pool, 0, each, noise, rho, candidates=among, recipe=score.recipe)
        self._debit([draw])
        return candidates[self._best_step(score, candidates, scale)]

    def choose_columns(self, recipe: ColumnSets, rho: float, pool: str = "") -> Clique:
        """Return one of the recipe's sets of columns, by the exponential mechanism of cost ``rho``.

        See :class:`ColumnSets`.
        """
        if type(recipe) is not ColumnSets:
            raise TypeError("a choice among sets of columns must use the recipe proved in class_features.py")
        recipe.check(self.whole)
        sensitivity = recipe.sensitivity(self.unit)
        scale, among = self._choice_scale(sensitivity, rho), len(recipe.candidates)
        each, noise = sensitivity / FIXED_POINT, scale / FIXED_POINT
        what = "set of interacting columns"
        self._debit([Draw("choice", what, None, pool, 0, each, noise, rho, candidates=among, recipe="edge-score")])
        return recipe.candidates[self._set(recipe, scale)]

    def measure_scores(
        self, score: Score, cliques: Sequence[Clique], rho: float, what: str, pool: str = ""
    ) -> ScoreMeasurement:
        """Return the noisy scores of ``cliques`` as one vector of whole numbers, with discrete Gaussian noise and Δ
        from `vector_sensitivity`.

        A pure budget refuses them, because the proof for the vector covers only Gaussian noise.
        """
        wanted = tuple(dict.fromkeys(cliques))
        self._check_score(score, wanted)
        n = self._score_rows()
        sensitivity = vector_sensitivity(score, len(wanted), self.unit, n)
        scale, unit = self._noise_scale(sensitivity, rho), score.per_row(n)
        draw = Draw("scores", what, None, pool, len(wanted), sensitivity / unit, scale / unit, rho)
        self._debit([replace(draw, recipe=score.recipe, given=score.given(n))])
        values = self._scores(score, wanted, scale)
        made = ScoreMeasurement(wanted, values / unit, scale / unit, sensitivity / unit, rho, pool)
        self.scored.append(made)
        return made

    def measure_sums(self, recipe: SumRecipe, rho: float, pool: str = "") -> SumMeasurement:
        """Return the noisy sums of ``recipe`` as one vector; Δ from `sensitivity_of`."""
        return self.prepay(recipe, rho, 1, pool)(recipe)

    def prepay(self, like: SumRecipe, rho: float, times: int, pool: str = "") -> Callable[[SumRecipe], SumMeasurement]:
        """Buy ``times`` vectors of sums of the same kind as ``like``, for ``rho`` each, before drawing the first one.

        The returned function answers one recipe per call, at most ``times`` times; each recipe has the kind and the
        sensitivity of ``like`` and may depend on earlier answers. Unused calls stay spent.
        """
        self._check_sums(like)
        sensitivity = self.sensitivity_of(like)
        scale = self._noise_scale(sensitivity, rho)
        draw = Draw(like.kind, like.what, None, pool, like.cells, sensitivity / like.units, scale / like.units, rho)
        self._debit([replace(draw, recipe=like.recipe, given=like.given(self.unit), noise=self.noise)] * times)
        left = iter(range(times))

        def answer(recipe: SumRecipe) -> SumMeasurement:
            self._check_sums(recipe)
            alike = type(recipe) is type(like) and (recipe.units, recipe.cells) == (like.units, like.cells)
            if not alike or self.sensitivity_of(recipe) > sensitivity:
                raise ValueError("these are not the sums that were paid for")
            if next(left, None) is None:
                raise BudgetError(f"only {times} vectors of these sums were paid for", requested=rho)
            values = self._sums(recipe, scale)
            return SumMeasurement(recipe.what, values / recipe.units, draw.scale, draw.sensitivity, rho, pool)

        return answer

    @contextmanager
    def within(self, budget: Budget) -> Iterator[None]:
        """Let a method divide ``budget`` within the context. The total limit does not change."""
        whole, self.budget = self.budget, budget
        try:
            yield
        finally:
            self.budget = whole

    @abstractmethod
    def merge(self, merged: Merged) -> Merged:
        """Count these categories in groups from now on, update ``sizes``, and return the current groups."""

    def _debit(self, draws: Iterable[Draw]) -> None:
        self.spending.debit(replace(draw, held_out=self.held_out) for draw in draws)

    def _check_score(self, score: Score, cliques: Sequence[Clique]) -> None:
        """Raise an error unless ``score`` is a known recipe and is defined for every clique."""
        if type(score) not in (EdgeScore, FeatureScore, ConditionalScore):
            raise TypeError("a score must be one of the recipes proved in scores.py")
        if not cliques or not all(score.fits(clique) for clique in cliques):
            raise ValueError("a choice needs one or more sets of columns for which its score is defined")
        for clique in cliques:
            if clique and clique not in self._fine:
                _check_clique(clique, self.whole, self._order, self._max_cells)
                self._fine.add(clique)

    def _check_sums(self, recipe: SumRecipe) -> None:
        """Raise an error unless ``recipe`` is a known recipe and is defined for this table."""
        if type(recipe) not in PROVED:
            raise TypeError("sums must be one of the proved recipes (see sums.py)")
        recipe.check(self.whole)

    def _is_open(self, clique: Clique) -> bool:  # noqa: ARG002
        """Return whether a private choice at release may replace ``clique``."""
        return False

    def _score_rows(self) -> int | None:
        """Return the number of rows that a score's sensitivity may use."""
        return self.rows

    @abstractmethod
    def _noise_scale(self, sensitivity: float, rho: float) -> float: ...

    @abstractmethod
    def _choice_scale(self, sensitivity: int, rho: float) -> float: ...

    @abstractmethod
    def _counts(self, cliques: Sequence[Clique], scales: Mapping[Clique, float]) -> list[NDArray[np.float64]]: ...

    @abstractmethod
    def _pick(self, score: Score, candidates: Sequence[Clique], scale: float) -> Clique: ...

    @abstractmethod
    def _best_step(self, score: StepScore, candidates: Sequence[Pair], scale: float) -> int: ...

    @abstractmethod
    def _scores(self, score: Score, cliques: Sequence[Clique], scale: float) -> NDArray[np.float64]: ...

    @abstractmethod
    def _worst(self, recipe: WorstQuestion, scale: float) -> int: ...

    @abstractmethod
    def _set(self, recipe: ColumnSets, scale: float) -> int: ...

    @abstractmethod
    def _sums(self, recipe: SumRecipe, scale: float) -> NDArray[np.float64]: ...


class PrivateCurator(Curator):
    """Curator of a private table.

    Guarantee: all its answers together are ``spending.rho``-zCDP for its ``unit``, at most ``budget.rho``, hence (ε,
    δ)-DP as planned. Proof: each answer is one call of a discrete Gaussian or exponential mechanism whose sensitivity
    is proved in :class:`Unit` or by its recipe (`espalier.core.privacy.draws.PROOFS`). ρ adds up, and a filter that
    stops at a fixed total is also valid for adaptive choices (Whitehouse et al. 2023, Theorem 1). Under a pure budget,
    Laplace noise replaces Gaussian noise, and everything is also ``budget.epsilon``-DP with δ = 0 (:class:`Spending`
    has the proof). Choosing rows at random before anything is measured changes neither guarantee: a mixture with equal
    weights on both sides has no larger likelihood ratio than its parts. If a table has a person column, the curator
    refuses it if a person may have more than ``unit.rows_per_person`` rows
    (:func:`espalier.core.privacy.contribution.bounded` ensures the limit). Without a person column, the limit is a
    promise that nothing checks. ``rows`` is the number of rows if it is public, else None; a private number of rows is
    never shown exactly. Each answer passes through a ``journal``, which stores it before it is returned. No answer is
    drawn twice (:mod:`espalier.core.privacy.journal` has the proof).
    """

    def __init__(
        self,
        source: Source,
        unit: Unit,
        budget: Budget,
        max_cells: int,
        spending: Spending | None = None,
        impossible: Impossible | None = None,
        *,
        held_out: bool = False,
        journal: Journal | None = None,
    ) -> None:
        """``max_cells`` is the size of the largest marginal that may be measured; ``spending`` is the account to
        charge, by default a new one.

        Without a ``journal`` no answer is stored.
        """
        rows = known_rows(source, unit)
        super().__init__(source.schema.sizes, unit, budget, rows, max_cells, impossible, held_out=held_out)
        if spending is not None:
            if spending.limit > budget.rho:
                raise ValueError("a shared account must keep the same budget")
            self.spending = spending
        self._source = source
        self._journal = journal or Journal()
        self._merged: Merged = {}
        self._counted: dict[Clique, NDArray[np.int64]] = {}
        self._known: tuple[Score | None, dict[Clique, int]] = (None, {})
        self._stepped: dict[Pair, NDArray[np.int64]] = {}
        self._answered: tuple[QuestionSums, NDArray[np.int64]] | None = None

    def merge(self, merged: Merged) -> Merged:
        """Count categories in groups from now on.

        The groups must be computed from this curator's answers, so they are public. A histogram of groups is a
        histogram: every sensitivity stays the same.
        """
        for name, groups in merged.items():
            used = np.unique(groups)
            if groups.shape != (self.whole[name],) or not np.array_equal(used, np.arange(len(used))):
                raise ValueError(f"the groups of {name} must cover all its categories and be numbered from 0")
        self._merged, self._known = dict(merged), (None, {})
        self.sizes = {n: int(merged[n].max()) + 1 if n in merged else size for n, size in self.whole.items()}
        return merged

    def _noise_scale(self, sensitivity: float, rho: float) -> float:
        from espalier.core.privacy.mechanisms import gaussian_scale, laplace_scale

        if not rho > 0:  # also refuses NaN
            return 0.0
        return gaussian_scale(sensitivity, rho) if self.noise == "gaussian" else laplace_scale(int(sensitivity), rho)

    def _noisy(self, values: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
        from espalier.core.privacy.mechanisms import add_gaussian, add_laplace

        return add_gaussian(values, scale) if self.noise == "gaussian" else add_laplace(values, scale)

    def _choice_scale(self, sensitivity: int, rho: float) -> float:
        from espalier.core.privacy.mechanisms import gumbel_scale

        return gumbel_scale(sensitivity, rho) if rho > 0 else 0.0

    def _counts(self, cliques: Sequence[Clique], scales: Mapping[Clique, float]) -> list[NDArray[np.float64]]:
        def draw() -> list[NDArray[np.float64]]:
            return [self._noisy(c, scales[q]) for q, c in zip(cliques, self._exact(cliques), strict=True)]

        shapes = [tuple(self.sizes[name] for name in clique) for clique in cliques]
        asked = ("counts", tuple(cliques), [scales[q] for q in cliques], self._merged)
        return self._journal.arrays(asked, shapes, draw)

    def _pick(self, score: Score, candidates: Sequence[Clique], scale: float) -> Clique:
        from espalier.core.privacy.mechanisms import noisy_max

        def draw() -> int:
            known = self._evaluated(score, candidates)
            return noisy_max([known[c] for c in candidates], scale)

        chosen = candidates[self._journal.number(("choice", score.recipe, tuple(candidates), scale), draw)]
        self.spending.decided(chosen)
        return chosen

    def _scores(self, score: Score, cliques: Sequence[Clique], scale: float) -> NDArray[np.float64]:
        def draw() -> NDArray[np.float64]:
            known = self._evaluated(score, cliques)
            return self._noisy(np.array([known[c] for c in cliques], dtype=np.int64), scale)

        return self._journal.array(("scores", score.recipe, tuple(cliques), scale), (len(cliques),), draw)

    def _worst(self, recipe: WorstQuestion, scale: float) -> int:
        from espalier.core.privacy.mechanisms import noisy_max

        asked = recipe.asked

        def draw() -> int:
            if self._answered is None or self._answered[0] is not asked:
                self._answered = asked, answers(self._source, asked.questions, asked.counts, asked.sizes)
            return noisy_max(recipe.scores(self._answered[1]), scale)

        chosen = self._journal.number(("question", asked, recipe.candidates, scale), draw)
        self.spending.decided(asked.questions[recipe.question_of(chosen)[0]].columns(tuple(self.whole)))
        return chosen

    def _best_step(self, score: StepScore, candidates: Sequence[Pair], scale: float) -> int:
        from espalier.core.privacy.mechanisms import noisy_max

        def draw() -> int:
            unknown = [pair for pair in candidates if pair not in self._stepped]
            self._stepped |= dict(zip(unknown, self._source.step_counts(unknown), strict=True))
            return noisy_max([score.value(pair, self._stepped[pair]) for pair in candidates], scale)

        chosen = self._journal.number(("step", score.recipe, tuple(candidates), scale), draw)
        self.spending.decided(candidates[chosen])
        return chosen

    def _set(self, recipe: ColumnSets, scale: float) -> int:
        from espalier.core.privacy.mechanisms import noisy_max

        asked = ("set of columns", recipe.target, tuple(recipe.candidates), scale)
        chosen = self._journal.number(asked, lambda: noisy_max(recipe.scores(self._source), scale))
        self.spending.decided((*recipe.candidates[chosen], recipe.target))
        return chosen

    def _sums(self, recipe: SumRecipe, scale: float) -> NDArray[np.float64]:
        def draw() -> NDArray[np.float64]:
            sums = recipe.sums(self._source)
            if sums.shape != (recipe.cells,) or sums.dtype != np.int64:
                raise ValueError(f"the computed sums are not the requested ones ({recipe.what})")
            return self._noisy(sums, scale)

        return self._journal.array(("sums", recipe, scale), (recipe.cells,), draw)

    def _exact(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """Return the exact counts, checked against this table: the noise scale is proved for counts that sum to n.

        The counts are cached, up to `TOGETHER` cells, so a second choice among pairs reads no rows.
        """
        out, wanted = [], [q for q in dict.fromkeys(cliques) if q not in self._counted]
        found = self._counted | dict(zip(wanted, self._source.count_many(wanted) if wanted else (), strict=True))
        if sum(counts.size for counts in found.values()) <= TOGETHER:
            self._counted = found
        for clique in cliques:
            counts = found[clique]
            if counts.shape != tuple(self.whole[name] for name in clique) or int(counts.sum()) != self._source.rows:
                raise ValueError(f"the table returned inconsistent counts for {clique}")
            out.append(fold(counts, clique, self._merged))
        return out

    def _evaluated(self, score: Score, cliques: Sequence[Clique]) -> dict[Clique, int]:
        """Return exact values of the current score, which never leave the curator. They are cached, so each marginal is
        counted once.
        """
        if self._known[0] is not score:
            self._known = (score, {})
        known = self._known[1]
        known.setdefault((), 0)
        wanted = list(dict.fromkeys(q for q in cliques if q not in known))
        while wanted:
            some = _few(wanted, self.whole)
            for clique, counts in zip(wanted[:some], self._exact(wanted[:some]), strict=True):
                known[clique] = score.value(clique, counts, self.rows)
            del wanted[:some]
        return known


def _few(cliques: Sequence[Clique], sizes: Mapping[str, int]) -> int:
    """Return how many of the first ``cliques`` to count together: at most `TOGETHER` cells, but at least one clique."""
    cells = itertools.accumulate(math.prod(sizes[name] for name in clique) for clique in cliques)
    return max(1, sum(1 for _ in itertools.takewhile(lambda total: total <= TOGETHER, cells)))


def _check_clique(clique: Clique, sizes: Mapping[str, int], order: Mapping[str, int], max_cells: int) -> None:
    if not clique or any(name not in order for name in clique):
        raise ValueError(f"{clique!r} is not a clique of this table")
    if any(order[a] >= order[b] for a, b in itertools.pairwise(clique)):
        raise ValueError(f"{clique!r} is not in schema order")
    cells = math.prod(sizes[name] for name in clique)
    if cells > max_cells:
        raise SizeError(
            f"the table of {' × '.join(clique)} would have {cells:,} cells, more than the {max_cells:,} allowed; use "
            "fewer categories or bins for one of these columns",
            clique=clique,
            cells=cells,
            limit=max_cells,
        )
