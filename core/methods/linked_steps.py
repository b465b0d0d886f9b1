"""Counts of steps between visits, and the step model that is fitted to them while pairs are chosen.

The method is in `espalier.core.methods.linked`, and the recipes for counting steps are in
`espalier.core.privacy.steps`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import ProjectError
from espalier.core.graph.separations import Separation
from espalier.core.graph.two_slices import TwoSlices, drawing_order
from espalier.core.methods.frame import Frame
from espalier.core.methods.marginals import Marginals
from espalier.core.models.graphical import GraphicalModel
from espalier.core.models.linked.column import NoisyTable, StepColumn, Target, drawn, fit_column, shrunk
from espalier.core.models.linked.steps import StepModel, first_visits
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.steps import Echoes, StepCounts, StepScore
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.linked import BEFORE, EARLIER, POSITION, Codes, Linked, Pair, Steps

Array = NDArray[np.float64]

OWN_POOL = "visits"
OWN, ECHOES, CHOICE, CHOSEN = 0.50, 0.06, 0.10, 0.34
"""Shares of the visits' budget for measuring each column with itself at the previous visit, for measuring repeats, for
choosing further pairs, and for measuring these pairs.
"""
BATCHES = 8
"""Rounds of choosing and measuring further pairs, each based on the model's remaining errors."""
EVEN_SHARES = 2
"""Largest share of a batch for one column's pairs, because one missing pair makes many others wrong."""
FEW_PAIRS, MOST_PAIRS, GOOD_PAIR = 16, 60, 0.008
"""Minimum and maximum number of further pairs, and the largest expected TV error of a typical pair at which another
pair is measured.
"""
TIED_VISITS, TIED_PEOPLE = 4, 2
"""Maximum numbers of columns of the same visit, and of the person, to which a column is tied without a joint count."""
TIE, WEAK_TIE = 4.0, 0.1
"""σ of a tie: this multiple of the median σ of the counts, but at least this fraction of an average cell's count."""
WEAKER = 3
"""Divisor of the scores of pairs without the plan's target."""
EVIDENCE, LATE_EVIDENCE, LAST_EVIDENCE = 10_000, 25_000, 100_000
"""Numbers of synthetic people's steps for fitting the model while pairs are chosen, afterwards, and at the end. With P
parameters per column, sampling n steps leaves a total variation of about √P/(2√n)."""
EVALUATIONS, LATE_EVALUATIONS, LAST_EVALUATIONS = 20, 80, 20


@dataclass(frozen=True)
class Layout:
    """Columns of a linked project, and the arcs that its frame allows."""

    linked: Linked
    sizes: Mapping[str, int]
    person: tuple[str, ...]
    columns: tuple[str, ...]
    slices: TwoSlices
    separations: tuple[Separation, ...]

    @classmethod
    def of(cls, project: Project, separations: Sequence[Separation]) -> Layout:
        """Return the layout of a project under ``separations``, which are widened."""
        link, schema = linked_of(project), project.schema
        steps = drawing_order(link.step_columns(schema), separations)
        person = (*link.person_columns(schema), link.number)
        drawn_arrows = (*project.dag.edges, *link.arrows)
        slices = TwoSlices(person, link.number, link.visit_columns(schema), steps, link.keep, drawn_arrows)
        return cls(link, link.step_sizes(schema), person, steps, slices, tuple(separations))

    def allows(self, pair: Pair) -> bool:
        """Return whether the frame allows an arc from the first of ``pair`` to the second."""
        parent, child = column_of(pair[0]), pair[1]
        return parent == POSITION or all(self.slices.allows(s, parent, child) for s in self.separations)

    def candidates(self, order: Sequence[str]) -> list[Pair]:
        """Return the pairs that may be measured if columns are drawn in ``order``, the largest first."""
        past = [name + suffix for name in self.columns for suffix in (BEFORE, EARLIER)]
        pairs = [*itertools.product((*self.person, POSITION, *past), self.columns), *itertools.combinations(order, 2)]
        varied = (p for p in pairs if min(self.sizes[name] for name in p) > 1 and self.allows(p))
        return sorted((p for p in varied if p[0] != p[1] + BEFORE), key=lambda p: -self.cells(p))

    def cells(self, pair: Pair) -> int:
        """Return the number of cells of a pair."""
        return self.sizes[pair[0]] * self.sizes[pair[1]]


@dataclass
class Stepping:
    """Counts of steps so far, and the intermediate models fitted to them. A rehearsal fits nothing.

    The state becomes part of the release, so it stores only the curator's public facts, never the curator itself.
    """

    is_rehearsal: bool
    unit: Unit
    layout: Layout
    rho: float
    people: Marginals
    target: str
    max_cells: int
    rng: np.random.Generator
    tables: dict[Pair, NoisyTable] = field(default_factory=dict)
    echoes: dict[str, float] = field(default_factory=dict)
    columns: dict[str, StepColumn] = field(default_factory=dict)
    stale: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, curator: Curator, project: Project, frame: Frame, rho: float, people: Marginals) -> Stepping:
        """Return the initial state, with no measurements."""
        layout = Layout.of(project, frame.separations)
        target, most = project.plan.target or "", project.plan.max_cells
        return cls(curator.takes_first, curator.unit, layout, rho * (1 - 1e-9), people, target, most, curator.chance())

    # Counting ---------------------------------------------------------------------------------------------------------

    def count_own(self, curator: Curator) -> None:
        """Measure each column with itself at the previous visit, with ρ ∝ cells^(2/3). Shares without another purpose
        are added.
        """
        share = OWN + (0 if self.has_echoes else ECHOES) + (0 if self.candidates() else CHOICE + CHOSEN)
        self.count(curator, [(name + BEFORE, name) for name in self.layout.columns], share * self.rho, OWN_POOL)

    def count_echoes(self, curator: Curator) -> None:
        """Measure how often each column repeats its value from the visit before the previous one."""
        if not self.has_echoes:
            return
        columns = self.layout.columns
        found = curator.measure_sums(Echoes(columns, self.layout.linked.units), ECHOES * self.rho, "echoes")
        self.echoes = dict(zip(columns, found.values.tolist(), strict=True))

    @property
    def has_echoes(self) -> bool:
        """True if a person may keep three visits."""
        return self.layout.linked.keep > 2

    def candidates(self) -> list[Pair]:
        """Return the pairs that may be measured but are not yet."""
        found = self.layout.candidates(self.order)
        return [p for p in found if p not in self.tables and self.layout.cells(p) <= self.max_cells]

    def rounds(self) -> list[tuple[int, float]]:
        """Return the number of pairs in each batch, and its part of the shares for choosing and measuring."""
        most, batches = min(self.most_pairs, len(self.candidates())), min(BATCHES, len(self.candidates()))
        ends = [most * i // batches for i in range(batches + 1)] if batches else [0]
        return [(b - a, 1 / batches) for a, b in itertools.pairwise(ends)]

    def count_chosen(self, curator: Curator, most: int, share: float) -> None:
        """Choose ``most`` pairs for which the model is wrong, each by the exponential mechanism, and measure them."""
        candidates, count = self.candidates(), share * CHOSEN * self.rho
        noise = math.sqrt(2 / math.pi) * self.unit.count_sensitivity / math.sqrt(2 * count / most)
        score = StepScore(self.expected(), self.layout.linked.units, noise, self.target, WEAKER)
        chosen = list[Pair]()
        for _ in range(most):
            pair = curator.choose_step(score, candidates, share * CHOICE * self.rho / most, "visit choice")
            chosen.append(pair)
            candidates.remove(pair)
            others = [p for p in candidates if p[1] != pair[1]]
            is_full = sum(child == pair[1] for _, child in chosen) >= self.most_each(most)
            candidates = others if is_full and len(others) >= most - len(chosen) else candidates
        self.count(curator, chosen, count, "visit pairs")

    def most_each(self, most: int) -> int:
        """Return the largest number of pairs of one column in a batch of ``most`` pairs."""
        return math.ceil(EVEN_SHARES * most / len(self.layout.columns))

    def count(self, curator: Curator, pairs: Sequence[Pair], rho: float, pool: str) -> None:
        """Measure ``pairs`` for ``rho`` in total."""
        sizes = [self.layout.cells(pair) ** (2 / 3) for pair in pairs]
        self.stale = {name for _, name in pairs}
        for pair, size in zip(pairs, sizes, strict=True):
            shape = self.layout.sizes[pair[0]], self.layout.sizes[pair[1]]
            is_open = self.is_rehearsal and pool != OWN_POOL
            recipe = StepCounts(pair, shape, self.layout.linked.units, is_open)
            found = curator.measure_sums(recipe, rho * size / math.fsum(sizes), pool)
            self.tables[pair] = NoisyTable(found.values.reshape(shape), found.sigma)

    @property
    def most_pairs(self) -> int:
        """Total number of further pairs, computed from noisy counts. It is larger if a typical pair has
        little noise.
        """
        cells = sorted(self.layout.cells(pair) for pair in self.layout.candidates(self.layout.columns))
        typical = cells[len(cells) // 2] if cells else 1
        unit, total = self.unit.count_sensitivity, max(self.total, 1.0)
        most = FEW_PAIRS
        while most < MOST_PAIRS and not self.is_rehearsal:
            sigma = unit / math.sqrt(2 * CHOSEN * self.rho / (most + 1))
            if 0.5 * typical * sigma * math.sqrt(2 / math.pi) / total > GOOD_PAIR:
                break
            most += 1
        return most

    # Estimates from noisy answers ---------------------------------------------------------------------------------

    @cached_property
    def person_model(self) -> GraphicalModel:
        """Model of people with their first visit."""
        return self.people.model()

    @property
    def total(self) -> float:
        """Noisy number of people with two visits or more, from the person model; 1 in a rehearsal."""
        if self.is_rehearsal:
            return 1.0
        return max(1.0, float(self.person_model.marginal((self.layout.linked.number,))[1:].sum()))

    def margin(self, name: str) -> Array:
        """Return the noisy counts of a column of this visit, from all tables that contain it, weighted by their
        precision.

        Counts that are mostly noise are shrunk towards the first visit of people with further visits.
        """
        found = [
            (t.values.sum(axis=0), t.sigma**2 * len(t.values)) for (_, child), t in self.tables.items() if child == name
        ]
        total = sum(1 / variance for _, variance in found)
        values = np.asarray(sum(values / variance for values, variance in found) / total)
        number = self.layout.linked.number
        if name not in self.person_model.sizes:
            return values
        first = self.person_model.marginal((number, name))[1:].sum(axis=0)
        return shrunk(values, first, math.sqrt(1 / total))

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Columns of a visit in the order of the person model's strongest links. Columns on the right side of a
        separation are last."""
        if self.is_rehearsal:
            return self.layout.columns
        left = [name for name in self.layout.columns if name in self.person_model.sizes]
        placed = [name for name in self.layout.columns if name not in left]
        while left:
            weight = {name: sum(self.strength(name, other) for other in placed or left) for name in left}
            best = max(left, key=lambda name: weight[name])
            placed.append(best)
            left.remove(best)
        return drawing_order(placed, self.layout.separations)

    def strength(self, a: str, b: str) -> float:
        """Return the dependence of two columns of a row in the person model, as a TV distance."""
        key = min(a, b), max(a, b)
        if key not in self._strengths:
            self._strengths[key] = self._strength(*key)
        return self._strengths[key]

    @cached_property
    def _strengths(self) -> dict[Pair, float]:
        return {}

    def _strength(self, a: str, b: str) -> float:
        if a == b or not {a, b} <= set(self.person_model.sizes):
            return 0.0
        joint = self.person_model.marginal((a, b)) / max(self.person_model.total, 1e-9)
        return 0.5 * float(np.abs(joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum())

    # Fitting ----------------------------------------------------------------------------------------------------------

    def parents(self, name: str) -> dict[str, NoisyTable]:
        """Return the parents of a column: the columns measured with it, and the columns to which it is tied."""
        counted = {parent: table for (parent, child), table in self.tables.items() if child == name}
        before = self.order[: self.order.index(name)]
        return counted | {other: self.tie(other, name) for other in self.tied(name, before) if other not in counted}

    def tied(self, name: str, before: Sequence[str]) -> list[str]:
        """Return the columns to which ``name`` is tied: those with the strongest links at the first visit."""
        found = list[str]()
        for others, most in ((before, TIED_VISITS), (self.layout.person, TIED_PEOPLE)):
            may = [o for o in others if self.layout.allows((o, name)) and self.strength(o, name) > 0]
            found += sorted(may, key=lambda o: -self.strength(o, name))[:most]
        return found

    def tie(self, other: str, name: str) -> NoisyTable:
        """Return the association of two columns at the first visit, fitted to the margins of later visits.

        It uses no budget, because it is computed from answers that are already paid for.
        """
        joint = self.person_model.marginal((other, name)) + 1e-9
        total = self.total
        right = _positive(self.margin(name), total)
        left = _positive(self.margin(other) if other in self.layout.columns else joint.sum(axis=1), total)
        for _ in range(30):
            joint *= (left / joint.sum(axis=1))[:, None]
            joint *= right / joint.sum(axis=0)
        sigma = float(np.median([t.sigma for t in self.tables.values()]))
        return NoisyTable(joint, max(TIE * sigma, WEAK_TIE * total / joint.size))

    def fit(
        self, cells: Callable[[str], Any], weights: Array, evaluations: int, stale: Iterable[str]
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        """Fit the ``stale`` columns, in order, on the synthetic steps. Return the codes drawn for this visit, and all
        probabilities.
        """
        now, shown = dict[str, Any](), dict[str, Array]()
        for name in self.order:
            look = partial(_looked_up, now, cells)
            if name in stale:
                target = Target(name, self.parents(name), self.margin(name), self.echoes.get(name, 0.0), self.total)
                self.columns[name] = fit_column(target, look, weights, self.columns.get(name), evaluations)
            shown[name] = self.columns[name].probabilities(look)
            now[name] = drawn(shown[name], self.rng.random(len(shown[name])))
        return now, shown

    def fitted(
        self, most: int, evaluations: int, stale: Iterable[str]
    ) -> tuple[Steps, dict[str, Any], dict[str, Array]]:
        """Fit on the steps of new synthetic people: on their first steps if there is no model yet, then on all
        steps."""
        if not self.columns:
            first = self.people_with_steps(most)
            made = first_visits(self.layout.linked, self.layout.sizes, first, list(self.layout.columns))
            who = np.arange(len(first[self.layout.linked.number]))
            steps = Steps(self.layout.linked, self.layout.sizes, first, made)
            cells = _cached(partial(steps.cells_at, who=who, at=np.ones(len(who), dtype=np.int64)))
            self.fit(cells, np.ones(len(who)), evaluations, self.order)
        people = self.people_with_steps(most)
        steps = Steps(self.layout.linked, self.layout.sizes, people, self.model.visits(people, self.rng))
        now, shown = self.fit(_cached(steps.cells), 1 / steps.of_person, evaluations, stale)
        return steps, now, shown

    def people_with_steps(self, most: int) -> Codes:
        """Return synthetic people with two visits or more, who have about ``most`` steps in total."""
        number = self.layout.linked.number
        shares = self.person_model.marginal((number,)) / max(self.person_model.total, 1e-9)
        mean = max(float(shares @ np.arange(len(shares))), 1e-2)
        rows = self.person_model.sample(math.ceil(most / mean), self.rng)
        kept = np.flatnonzero(rows[number] > 0)
        if not len(kept):  # noise removed all second visits, so everyone gets one
            rows, kept = {**rows, number: np.ones_like(rows[number])}, np.arange(len(rows[number]))
        return {name: codes[kept] for name, codes in rows.items()}

    @property
    def model(self) -> StepModel:
        """Current step model."""
        return StepModel(self.layout.linked, self.layout.sizes, tuple(self.columns[name] for name in self.order))

    def expected(self) -> Callable[[Pair], Array]:
        """Return the model's expected counts of a pair, with rows scaled to noisy counts of the parent if these are
        known. A measured pair determines a conditional, but cannot correct the parent's distribution.
        """
        if self.is_rehearsal:
            return lambda pair: np.zeros((self.layout.sizes[pair[0]], self.layout.sizes[pair[1]]))
        steps, now, shown = self.fitted(EVIDENCE, EVALUATIONS, self.stale)
        weights = 1 / steps.of_person * self.total / (1 / steps.of_person).sum()
        cells, known = partial(_looked_up, now, _cached(steps.cells)), dict[Pair, Array]()

        def table(pair: Pair) -> Array:
            if pair not in known:
                parent, child = pair
                codes, size = np.asarray(cells(parent), dtype=np.int64), self.layout.sizes[parent]
                columns = (shown[child] * weights[:, None]).T
                made = np.stack([np.bincount(codes, column, size) for column in columns], axis=1).astype(np.float64)
                rows = self._rows_known(parent)
                if rows is not None:
                    made *= np.divide(rows, made.sum(axis=1), out=np.ones(size), where=made.sum(axis=1) > 0)[:, None]
                known[pair] = np.asarray(made, dtype=np.float64)
            return known[pair]

        return table

    def _rows_known(self, parent: str) -> Array | None:
        """Return noisy counts of a parent's values; `None` if the parent was not measured."""
        if parent in self.layout.columns:
            return _positive(self.margin(parent), self.total)
        own = self.tables.get((parent, parent.removesuffix(BEFORE)))
        return _positive(own.values.sum(axis=1), self.total) if own is not None else None


def column_of(name: str) -> str:
    """Return the column's name without its visit suffix."""
    return name.removesuffix(BEFORE).removesuffix(EARLIER)


def linked_of(project: Project) -> Linked:
    """Return the link of a project; raises :class:`ProjectError` for a single table."""
    if project.linked is None:
        raise ProjectError(
            "the method linked releases people with their visits. Draft a project of two tables with espalier init "
            "PEOPLE VISITS --by COLUMN --order COLUMN, or choose another method",
            key="method",
        )
    return project.linked


def _positive(values: Array, total: float) -> Array:
    """Return noisy counts with negative counts set to zero, scaled to ``total``."""
    kept = np.maximum(values, 0.0) + 1e-6 * total
    return np.asarray(kept * (total / kept.sum()))


def _looked_up(now: Mapping[str, Any], cells: Callable[[str], Any], name: str) -> Any:
    """Return the cells of ``name``: from this visit if the column was drawn there, otherwise from the evidence."""
    return now[name] if name in now else cells(name)


def _cached(cells: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return ``cells`` with a cache that looks up each name only once."""
    known = dict[str, Any]()

    def cached(name: str) -> Any:
        if name not in known:
            known[name] = cells(name)
        return known[name]

    return cached
