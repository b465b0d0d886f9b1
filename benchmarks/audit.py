"""The privacy audit: does anything released tell two neighbouring tables apart better than its ρ allows?

    python -m benchmarks.audit                  mechanisms, methods, whole releases, and their broken copies
    python -m benchmarks.audit mechanisms       one part of it (also: methods, releases)
    python -m benchmarks.audit --runs 500       fewer runs on each table: faster, weaker

Every mechanism and every method is run many times on each of two neighbouring tables of at most 50 rows. An attacker
who knows both tables sees all that is released (noisy counts and private choices) and computes the log-likelihood
ratio, the strongest statistic there is (Neyman & Pearson). `benchmarks.distinguish` turns it into lower bounds on
δ(ε′), to be held against the whole curve that the claimed ρ implies. All bounds of all audits of one call hold together
with confidence 95 % (Bonferroni). Methods are audited without the fit, and that loses nothing: model, rows and report
are made from the noisy answers alone (post-processing), and the likelihood ratio of those answers is a stronger
statistic than any of what is made from them. *releases* run everything and look at the fitted model, to check that
nothing else leaks on the way.

Then the same with copies that are broken on purpose, which must be caught: half the noise, a seeded generator, a score
that forgets its sensitivity. An audit that cannot catch them would prove nothing.

The ε of a lower bound is that of the smallest ρ whose curve allows what was seen, at the plan's δ. Exit status 1 if a
claim is refuted or a broken copy is not caught.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from benchmarks.distinguish import Verdict, audit
from core.graph.dag import Dag
from core.graph.frame import frame_of
from core.graph.roles import Roles
from core.privacy import noise
from core.privacy.budget import Budget, Unit, epsilon_of
from core.privacy.curator import PrivateCurator
from core.privacy.gradient import UNITS, Weights
from core.privacy.measurement import Clique, GradientMeasurement, Measurement, Merged, ScoreMeasurement
from core.privacy.scores import ConditionalScore, EdgeScore, FeatureScore, Score
from core.project import Neighbors, Plan, Project
from core.release import release
from core.schema import Column, Schema
from core.synthesizers import METHODS
from core.tables.table import Table

EPSILON, DELTA = 8.0, 1e-6
"""At this ε an audit needs the fewest runs to tell half the noise from all of it; scales follow ρ alone."""
SCHEMA = Schema(tuple(Column(name, "categorical", tuple("wxyz")) for name in "abcd"))
DAG = Dag((("a", "b"), ("b", "d"), ("c", "d")))
ROLES = Roles(outcome=("d",), protected=("a",), admissible=("b",), inadmissible=("c",))
ROWS, VALUES = 48, 4
RELATIONS: tuple[Neighbors, ...] = ("replace-one", "add-remove")
CONFIDENCE = 0.05
STARTS, STEPS = 6, 2500
"""How long the search for the worst tables is."""
Recipe = tuple[Score, Sequence[Clique]]
"""A score and the candidates it is to choose from."""

METHOD_CASES: dict[str, dict[str, Any]] = {
    "prism causal": {"method": "prism", "regime": "causal"},
    "prism graphical": {"method": "prism", "regime": "graphical"},
    "prism predictive": {"method": "prism", "features": 2},
    "prism predictive, fair": {"method": "prism", "features": 1, "fair": True},
    "prism three-way": {"method": "prism", "three_way": 1},
    "prism, S by a logistic fit": {"method": "prism", "features": 2, "selector": "logistic"},
    "prism, two targets": {"method": "prism", "regime": "causal", "targets": {"c": 1.0}},
    "privci": {"method": "privci"},
    "privci thicker": {"method": "privci", "width": 2},
    "privci explained": {"method": "privci", "explain": 0.1},
    "privci compressed": {"method": "privci", "width": 2, "compress": True},
    "mst": {"method": "mst"},
    "prefair": {"method": "prefair"},
    "privbayes drawn": {"method": "privbayes"},
    "privbayes learned": {"method": "privbayes", "dag": Dag()},
    "independent": {"method": "independent"},
}


@dataclass(frozen=True)
class Case:
    """One audit: ``run(side)`` runs the mechanism on table 0 or 1 and gives the attacker's statistic."""

    name: str
    relation: str
    rho: float
    run: Callable[[int], float]
    broken: str = ""
    seed: int = 0
    times: int = 1
    """How many times the runs asked for: single mechanisms are quick, and some copies hard to catch."""


class Counted:
    """A table that counts each marginal once: thousands of runs ask for the same."""

    def __init__(self, table: Table) -> None:
        """The same answers as ``table``."""
        self.rows, self.count, self.residual_sums = table.rows, cache(table.count), table.residual_sums


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables, D and D′."""

    unit: Unit
    tables: tuple[Table, Table]

    @cached_property
    def counted(self) -> tuple[Counted, Counted]:
        """The two, for a curator."""
        return Counted(self.tables[0]), Counted(self.tables[1])

    @property
    def rows(self) -> int | None:
        """n, where it is public."""
        return self.tables[0].rows if self.unit.neighbors == "replace-one" else None


class Witness(PrivateCurator):
    """The real curator of one of two tables, and an attacker who hears its answers.

    ``evidence`` is log P(answers | D) − log P(answers | D′) up to a constant, with the scales that are booked.
    """

    def __init__(self, pair: Pair, side: int, budget: Budget) -> None:
        super().__init__(pair.counted[side], SCHEMA.sizes, pair.unit, budget, 10**6)
        self.evidence = 0.0
        self.views = [PrivateCurator(table, SCHEMA.sizes, pair.unit, budget, 10**6) for table in pair.counted]

    def _add(self, values: NDArray[Any], exact: Sequence[NDArray[Any]], sigma: float) -> None:
        """Discrete Gaussian noise: the likelihood of ``values`` under either table's ``exact`` ones."""
        one, other = (float(np.sum((values - true) ** 2)) for true in exact)
        self.evidence += (other - one) / (2 * sigma**2)

    def measure(self, rhos: Any, pool: str = "") -> list[Measurement]:
        """The curator's answer."""
        made = super().measure(rhos, pool)
        for m in made:
            self._add(m.values, [view._count(m.clique) for view in self.views], m.sigma)
        return made

    def measure_scores(self, score: Score, cliques: Sequence[Clique], rho: float, pool: str = "") -> ScoreMeasurement:
        """The curator's answer."""
        made = super().measure_scores(score, cliques, rho, pool)
        exact = [scores(score, made.cliques, view._count, self.rows) for view in self.views]
        self._add(made.values, [x / score.per_row(self.rows) for x in exact], made.sigma)
        return made

    def measure_gradient(
        self, target: str, columns: Sequence[str], weights: Weights, rho: float, pool: str = ""
    ) -> GradientMeasurement:
        """The curator's answer."""
        made = super().measure_gradient(target, columns, weights, rho, pool)
        exact = [view._table.residual_sums(target, made.columns, weights) / UNITS for view in self.views]
        self._add(made.values, exact, made.sigma)
        return made

    def choose(self, score: Score, candidates: Sequence[Clique], rho: float, what: str, pool: str = "") -> Clique:
        """The curator's answer; its likelihood under either table is a softmax of the scores."""
        chosen = super().choose(score, candidates, rho, what, pool)
        scale = self.spending.choices[-1].scale * score.per_row(self.rows)
        one, other = (log_softmax(scores(score, candidates, view._count, self.rows) / scale) for view in self.views)
        self.evidence += float((one - other)[list(candidates).index(chosen)])
        return chosen

    def merge(self, merged: Merged) -> Merged:
        """Groups of categories: made from what was answered, so the attacker knows them too."""
        for view in self.views:
            view.merge(merged)
        return super().merge(merged)


def scores(score: Score, cliques: Sequence[Clique], count: Callable[[Clique], Any], n: int | None) -> NDArray[Any]:
    """The exact scores, in units; the empty clique stands for none and has score 0."""
    return np.array([score.value(c, count(c), n) if c else 0 for c in cliques], dtype=float)


@dataclass(frozen=True)
class Rows:
    """A table as an array of codes, quick to make and to count: thousands are tried in a search."""

    codes: NDArray[np.int64]

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.codes)

    def count(self, clique: Clique) -> NDArray[np.int64]:
        """Exact counts of ``clique``."""
        flat = np.zeros(self.rows, dtype=np.int64)
        for name in clique:
            flat = flat * VALUES + self.codes[:, SCHEMA.names.index(name)]
        return np.bincount(flat, minlength=VALUES ** len(clique)).reshape((VALUES,) * len(clique))

    def table(self) -> Table:
        """The same as the core's table."""
        columns = self.codes.T.astype(np.uint8)
        return Table(SCHEMA, dict(zip(SCHEMA.names, columns, strict=True)), self.rows)


@cache
def worst_pair(unit: Unit, rho: float, recipe: Recipe | None = None, everywhere: bool = True) -> Pair:
    """Two neighbouring tables on which answers differ as much as they can, or nearly.

    The rows of one person change in every column, which moves every marginal by its whole sensitivity. Where a choice
    is to be attacked, a random search (with a seed: nothing here protects anybody) then looks for the tables on which
    half the noise would change its odds most; ``everywhere`` False frees it from that condition.
    """
    rng, k = np.random.default_rng(7), unit.rows_per_person
    joined = unit.neighbors == "add-remove"

    def pair(rows: NDArray[Any], before: NDArray[Any], after: NDArray[Any]) -> tuple[Rows, Rows]:
        one = rows if joined else np.vstack([rows, np.tile(before, (k, 1))])
        return Rows(one), Rows(np.vstack([rows, np.tile(after, (k, 1))]))

    def gap(found: tuple[Rows, Rows]) -> float:
        assert recipe is not None
        score, candidates = recipe
        n = None if joined else ROWS
        scale = score.sensitivity(unit, n) / math.sqrt(2 * rho) / 2
        both = [scores(score, candidates, t.count, n) / scale for t in found]
        one, other = (np.exp(log_softmax(x)) for x in both)
        factor = math.exp(math.sqrt(rho / 2))
        return float(max(np.maximum(one - factor * other, 0).sum(), np.maximum(other - factor * one, 0).sum()))

    best, most = pair(np.zeros((ROWS - k, 4), np.int64), np.array([0, 1, 0, 1]), np.array([1, 0, 1, 0])), 0.0
    for _ in range(STARTS if recipe else 0):
        spread = rng.random((ROWS - k, 4)) < rng.choice((0.0, 0.2, 0.5))
        here: tuple[NDArray[Any], ...] = np.where(spread, rng.integers(0, VALUES, spread.shape), 0), *a_change(rng)
        high = gap(pair(*here))
        for _ in range(STEPS):
            tried = tuple(x.copy() for x in here)
            for _ in range(rng.integers(1, 3)):
                which = tried[rng.choice(3, p=(0.8, 0.1, 0.1))]
                which[tuple(rng.integers(size) for size in which.shape)] = rng.integers(VALUES)
            if everywhere and np.any(tried[1] == tried[2]):
                continue
            if (reached := gap(pair(*tried))) >= high:
                here, high = tried, reached
        if high > most:
            best, most = pair(*here), high
    return Pair(unit, (best[0].table(), best[1].table()))


def a_change(rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A row, and another that differs from it in every column."""
    before = rng.integers(0, VALUES, 4)
    return before, (before + rng.integers(1, VALUES, 4)) % VALUES


PAIRS = tuple(itertools.combinations(SCHEMA.names, 2))
BY_EDGE: Recipe = (EdgeScore(lambda pair: np.full((VALUES, VALUES), ROWS / VALUES**2)), PAIRS)  # noqa: ARG005
"""E is the uniform table: as public, and as allowed, as any other."""
BY_FEATURE: Recipe = (FeatureScore("d"), tuple(p for p in PAIRS if "d" in p))
BY_CONDITIONAL: Recipe = (ConditionalScore("d"), tuple(t for t in itertools.combinations(SCHEMA.names, 3) if "d" in t))


def by_edge(pair: Pair) -> Recipe:
    """EdgeScore at its worst: one pair is expected to be as it is in D, the other as it is in D′.

    So one score goes from 0 to Δ and the other from Δ to 0.
    """
    apart = (("a", "b"), ("c", "d"))
    expected = {q: pair.tables[side].count(q).astype(float) for side, q in enumerate(apart)}
    return EdgeScore(expected.__getitem__), apart


RECIPES = {
    "measure": None,
    "measure scores": BY_EDGE,
    "choose by EdgeScore": BY_EDGE,
    "choose by FeatureScore": BY_FEATURE,
    "choose by ConditionalScore": BY_CONDITIONAL,
}


def mechanisms(broken: bool) -> Iterator[Case]:
    """Every kind of the curator's answers, with each score recipe.

    Half the noise of a choice by ConditionalScore is not among the copies: on so few rows that score moves by too
    little of its proved bound for the difference to show. The noise is the same code's as for the other scores.
    """
    budget = Budget.of(Plan("mst", EPSILON, DELTA), ROWS)
    rho = budget.rho * (1 - 1e-9)
    for relation, k, (name, recipe) in itertools.product(RELATIONS, (1,) if broken else (1, 3), RECIPES.items()):
        vector, edge = name == "measure scores", recipe is BY_EDGE
        pair = worst_pair(Unit(relation, k), rho, None if edge else recipe, everywhere=False)
        recipe = by_edge(pair) if edge else recipe
        ways = (
            ["half the noise"] * (recipe is not BY_CONDITIONAL) + ["seeded"] + ["no sensitivity"] * (recipe is not None)
        )
        seed = telling_seed(pair, recipe, rho) if broken and recipe and not vector else 0
        for way in ways if broken else [""]:

            def run(side: int, pair: Pair = pair, recipe: Recipe | None = recipe, vector: bool = vector) -> float:
                curator = Witness(pair, side, budget)
                if recipe and vector:
                    curator.measure_scores(*recipe, rho)
                elif recipe is None:
                    curator.measure({("a",): rho / 2, ("b",): rho / 2})
                else:
                    curator.choose(*recipe, rho, "audit")
                return curator.evidence

            yield Case(name if k == 1 else f"{name}, {k} rows a person", relation, rho, run, way, seed, 3)


def telling_seed(pair: Pair, recipe: Recipe, rho: float) -> int:
    """A seed under which the two tables get different answers, as they do for somebody who knows it and looks for them.

    (Knowing the seed, one would rather look for the tables; that the search goes the other way is only quicker.)
    """
    for seed in range(1000):
        with breaking("seeded", seed):
            curators = [
                PrivateCurator(t, SCHEMA.sizes, pair.unit, Budget(EPSILON, DELTA, rho), 10**6) for t in pair.tables
            ]
            if len({c.choose(*recipe, rho, "audit") for c in curators}) == 2:
                return seed
    raise RuntimeError("no seed tells these tables apart")


def project(case: str, relation: Neighbors) -> Project:
    """A project for one of METHOD_CASES."""
    plan = dict(METHOD_CASES[case])
    dag = plan.pop("dag", DAG)
    return Project(
        "audit", SCHEMA, Plan(epsilon=EPSILON, delta=DELTA, neighbors=relation, target="d", **plan), dag, ROLES
    )


def pair_for(plan: Plan, unit: Unit) -> Pair:
    """The tables on which the choices of a method differ most."""
    by_feature = plan.method == "privbayes" or (plan.method == "prism" and plan.regime == "predictive")
    return worst_pair(unit, Budget.of(plan, ROWS).rho, BY_FEATURE if by_feature else BY_EDGE)


def methods(broken: bool) -> Iterator[Case]:
    """Every method, up to what it measures and chooses: all else is post-processing."""
    for name, relation in itertools.product(METHOD_CASES, RELATIONS[:1] if broken else RELATIONS):
        given = project(name, relation)
        unit = Unit(given.plan.neighbors)
        pair, frame, budget = pair_for(given.plan, unit), frame_of(given), Budget.of(given.plan, ROWS)

        def run(
            side: int, given: Project = given, pair: Pair = pair, frame: Any = frame, budget: Any = budget
        ) -> float:
            curator = Witness(pair, side, budget)
            METHODS[given.plan.method](curator, given, frame)
            return curator.evidence

        yield Case(name, relation, budget.rho, run, "half the noise" if broken else "")


def releases(broken: bool) -> Iterator[Case]:
    """Whole releases, judged by the fitted model alone: its marginals along the direction in which D and D′ differ."""
    for name, relation in itertools.product(("mst", "prism predictive", "privbayes drawn"), RELATIONS):
        given = project(name, relation)
        pair = pair_for(given.plan, Unit(given.plan.neighbors))

        def run(side: int, given: Project = given, pair: Pair = pair) -> float:
            model = release(given, pair.tables[side]).model
            shown = 0.0
            for column in SCHEMA.names:
                one, other = (t.count((column,)) for t in pair.tables)
                shown += float(np.sum(model.total * model.marginal((column,)) * (one - other)))
            return shown

        yield Case(
            f"{name}, fitted model", relation, Budget.of(given.plan, ROWS).rho, run, "half the noise" if broken else ""
        )


@contextmanager
def breaking(way: str, seed: int = 0) -> Iterator[None]:
    """The code with one thing broken on purpose."""
    gaussian, gumbel = noise.gaussian_scale, noise.gumbel_scale

    def seeded_gaussian(counts: NDArray[np.int64], sigma: float) -> NDArray[np.float64]:
        return counts + np.rint(np.random.default_rng(seed).normal(0, sigma, counts.shape))

    def seeded_max(scores: Sequence[int], scale: float) -> int:
        return int(np.argmax(np.array(scores) + np.random.default_rng(seed).gumbel(0, scale, len(scores))))

    with ExitStack() as stack:
        if way == "half the noise":
            stack.enter_context(mock.patch.object(noise, "gaussian_scale", lambda d, rho: gaussian(d, rho) / 2))
            stack.enter_context(mock.patch.object(noise, "gumbel_scale", lambda d, rho: gumbel(d, rho) / 2))
        elif way == "seeded":
            stack.enter_context(mock.patch.object(noise, "add_gaussian", seeded_gaussian))
            stack.enter_context(mock.patch.object(noise, "noisy_max", seeded_max))
        elif way == "no sensitivity":
            for recipe in (EdgeScore, FeatureScore, ConditionalScore):
                stack.enter_context(mock.patch.object(recipe, "sensitivity", return_value=1))
        elif way:
            raise ValueError(f"there is no broken copy {way!r}")
        yield


def judge(case: Case, runs: int, alpha: float) -> Verdict:
    """Run one case ``runs`` times on each table and test its claim."""
    with breaking(case.broken, case.seed):
        sides = [[case.run(side) for _ in range(runs * case.times)] for side in (0, 1)]
    return audit(*sides, case.rho, alpha)


PARTS = {"mechanisms": mechanisms, "methods": methods, "releases": releases}


def main() -> int:
    """Run the audit and print a line for each case; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("part", nargs="?", choices=PARTS)
    parser.add_argument(
        "--runs", type=int, default=1000, help="runs on each table (three times as many of a mechanism)"
    )
    opt = parser.parse_args()
    parts = [PARTS[opt.part]] if opt.part else list(PARTS.values())
    cases = [c for broken in (False, True) for part in parts for c in part(broken)]
    wrong = 0
    print(f"{len(cases)} audits, together at confidence {1 - CONFIDENCE:.0%}; ε at δ = {DELTA:g}\n")
    print(f"{'what':<44} {'relation':<12} {'runs':>6} {'ε claimed':>9} {'ε at least':>10}  worst: δ(ε′) ≥ low, claimed")
    for case in cases:
        start = time.perf_counter()
        verdict = judge(case, opt.runs, CONFIDENCE / len(cases))
        fine = verdict.refuted == bool(case.broken)
        wrong += not fine
        w = verdict.worst
        what = f"{case.name}: {case.broken}" if case.broken else case.name
        word = "caught" if verdict.refuted else "holds"
        print(
            f"{what:<44} {case.relation:<12} {opt.runs * case.times:>6} {epsilon_of(case.rho, DELTA):>9.3f} "
            f"{epsilon_of(min(verdict.rho_low, 1e3), DELTA):>10.3f}  δ({w.epsilon:.2f}) ≥ {w.low:.3f}, "
            f"{w.claimed:.3f}: {word}{'' if fine else '  <-- WRONG'}  {time.perf_counter() - start:.0f} s",
            flush=True,
        )
    print(f"\n{'as it should be' if not wrong else f'{wrong} of {len(cases)} wrong'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
