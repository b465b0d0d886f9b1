"""The privacy audit: does any release distinguish two neighbouring tables better than its ρ allows?

    python -m tests.audits.audit                  mechanisms, methods, whole releases, and their broken copies
    python -m tests.audits.audit mechanisms       one part of it (also: methods, releases)
    python -m tests.audits.audit methods --only privci            cases whose names contain this
    python -m tests.audits.audit --only "half the noise"          these copies alone
    python -m tests.audits.audit seams            ways around the mechanisms instead: `tests.audits.seams`
    python -m tests.audits.audit --runs 500       fewer runs on each table: faster, weaker

The audit runs every mechanism and every method many times on each of two neighbouring tables of at most 50 rows. An
attacker who knows both tables sees everything released (noisy counts and private choices) and computes the
log-likelihood ratio, the strongest statistic there is (Neyman & Pearson). `tests.audits.distinguish` turns it into
lower bounds on δ(ε′), compared with the whole curve that the claimed ρ implies. All bounds of all audits hold
simultaneously with confidence 95 % (Bonferroni), no matter how many calls compute them.

Methods are audited without the fit, which loses nothing. Model, rows and report are post-processing of the noisy
answers, and the likelihood ratio of the answers is a stronger statistic than any statistic of them. *releases* run
everything and read the fitted model, to check that nothing else leaks on the way. Three cases are audited as
mechanisms: a person's rows bounded at random (in memory, and in a file that DuckDB reads), and a holdout drawn at
random, with its own curator and the whole ρ.

Then copies that are broken on purpose run the same audit, and it must catch them: half the noise (a quarter for
workload, since its runs are slow), a seeded generator, a score or a gradient that ignores its sensitivity, a training
step clipped after the sum or charged C for 2C, a person without a row limit. An audit that misses them proves nothing.

The ε of a lower bound belongs to the smallest ρ whose curve allows the observed difference, at the plan's δ. Exit
status 1 if a claim is refuted or a broken copy is not caught.
"""

from __future__ import annotations

import argparse
import atexit
import itertools
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet
from scipy.special import log_softmax

from espalier.core.analysis.drawing import tested
from espalier.core.evaluation.private import held_out
from espalier.core.evaluation.private.counts import HeldOutCounts
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Clique
from espalier.core.methods import fit, frame_of
from espalier.core.models.base import MarginalModel
from espalier.core.privacy import clipped, contribution, mechanisms
from espalier.core.privacy.accounting import Budget, epsilon_of
from espalier.core.privacy.class_features import UNIT, ClassSums, ColumnSets, RowFeatures, coarse_counts
from espalier.core.privacy.clipped import LARGEST_CLIP, UNITS, ClippedGradient, clip_units, clipped_sums
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.draws import Measurement, Merged, ScoreMeasurement
from espalier.core.privacy.gradient import LogisticGradient
from espalier.core.privacy.moments import Bin, Histogram, Moments, Reading, Scored, WithOutcome
from espalier.core.privacy.question_recipes.recipes import CountHistogram, QuestionSums, WorstQuestion, answers
from espalier.core.privacy.regression_features import TURN, Fourier, Surface
from espalier.core.privacy.regression_sums import RegressionSums, design_of
from espalier.core.privacy.scores import ConditionalScore, EdgeScore, FeatureScore, Score
from espalier.core.privacy.softmax_heads import FloatArray, Heads
from espalier.core.privacy.steps import Echoes, ReturnCounts, StepCounts, StepScore, VisitCounts
from espalier.core.privacy.sums import SumRecipe
from espalier.core.privacy.unit import Unit
from espalier.core.project.column_types import Dates
from espalier.core.project.dates import DateBins
from espalier.core.project.file import Project
from espalier.core.project.linked import Linked
from espalier.core.project.linked import Pair as Step
from espalier.core.project.numeric_axis import Axis
from espalier.core.project.plan import Neighbors, Plan
from espalier.core.project.question_list import QuestionList
from espalier.core.project.question_types import Count, Question
from espalier.core.project.regressions import BoughtRegression
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables import random_rows, scan
from espalier.core.tables.gradient import Weights
from espalier.core.tables.panel import Panel
from espalier.core.tables.relation import open_relation
from espalier.core.tables.source import Source
from espalier.core.tables.table import Table
from tests.audits import seams
from tests.audits.distinguish import Verdict, audit

EPSILON, DELTA = 8.0, 1e-6
"""At this ε, an audit needs the fewest runs to distinguish half the noise from the full noise. Scales depend only on
ρ."""
SCHEMA = Schema(tuple(Column(name, "categorical", tuple("wxyz")) for name in "abcd"))
SMALL = Schema(tuple(Column(name, "categorical", tuple("xyz")) for name in "abcdy"))
"""Number of rows in the methods' tables, and in those of a single mechanism."""
NUMBERS = Schema(
    (
        *(Column(name, "categorical", tuple("wx")) for name in "ab"),
        *(Column(name, "numeric", edges=(0, 1, 2)) for name in "cd"),
    )
)
"""Numbers in the tables of methods that read numbers: the middles of their bins."""
DAG = Dag((("a", "b"), ("b", "d"), ("c", "d")))
ROLES = Roles(outcome=("d",), protected=("a",), admissible=("b",), inadmissible=("c",))
ROWS, MOST = 48, 10
"""Number of rows of the tables, and of a person who has more rows than may count."""
RELATIONS: tuple[Neighbors, ...] = ("replace-one", "add-remove")
CONFIDENCE = 0.05

Row = tuple[int, ...]
"""The codes of a row."""

METHOD_CASES: dict[str, dict[str, Any]] = {
    "prism causal": {"method": "prism", "regime": "causal"},
    "prism graphical": {"method": "prism", "regime": "graphical"},
    "prism predictive": {"method": "prism", "features": 2},
    "prism predictive, fair": {"method": "prism", "features": 1, "fair": True},
    "prism three-way": {"method": "prism", "three_way": 1},
    "prism, S by a logistic fit": {"method": "prism", "features": 2, "selector": "logistic"},
    "prism, weights bought": {"method": "prism", "regime": "causal", "task_weights": "bought"},
    "prism, two targets": {"method": "prism", "regime": "causal", "targets": {"c": 1.0}},
    "privci": {"method": "privci"},
    "privci thicker": {"method": "privci", "width": 2},
    "privci exact": {"method": "privci", "tree": "exact"},
    "privci explained": {"method": "privci", "explain": 0.1},
    "privci compressed": {"method": "privci", "width": 2, "compress": True},
    "mst": {"method": "mst"},
    "mst, the drawing tested": {
        "method": "mst",
        "test_drawing": 0.5,
        "statements": [{"left": ["a"], "right": ["c"]}, {"left": ["a"], "right": ["d"], "given": ["b", "c"]}],
    },
    "prefair": {"method": "prefair"},
    "privbayes drawn": {"method": "privbayes"},
    "privbayes learned": {"method": "privbayes", "dag": Dag()},
    "independent": {"method": "independent"},
    "workload": {"method": "workload"},
    "workload explained": {"method": "workload", "fair": True, "explain": 0.2},
    "workload, scored together": {"method": "workload", "weights": {"a": 2.0}},
    "copula": {"method": "copula", "schema": NUMBERS},
    "decoder": {"method": "decoder", "steps": 4, "families": "additive"},
    "decoder, tables": {  # b becomes a table, d is trained and has a counted interaction
        "method": "decoder",
        "steps": 4,
        "dag": Dag((*DAG.edges, ("a", "d")), interactions=((("b", "c"), "d"),)),
    },
    "mst with a second stage": {"method": "mst", "embedding_share": 0.5},
    "mst with questions and a count": {"method": "mst", "question_share": 0.4, "asked": True},
    "mst with regressions": {
        "method": "mst",
        "regression_share": 0.9,
        "regressions": [
            {"name": "few", "outcome": "d=x", "on": ["a", "b"], "robust": True},
            {"name": "odds", "outcome": "c=x", "on": ["a"], "family": "logistic"},
        ],
    },
    "fpt-lp": {"method": "fpt-lp", "asked": True},
    "fpt-mw": {"method": "fpt-mw", "rounds": 3, "asked": True},
    "fpt-mw, one-way": {"method": "fpt-mw", "rounds": 3, "one_way": 0.3, "asked": True},
}
ASKED = QuestionList(
    (
        {"name": "fewer of both", "where": {"a": ["w", "y"], "b": ["w", "z"]}},
        {"name": "more of either", "any": [{"c": ["x"], "d": ["x", "y"]}, {"c": ["z"], "d": ["z", "w"]}]},
        {"name": "more marks", "where": {"marks": [2, 4]}},
        *({"name": f"{name} is {value}", "where": {name: [value]}} for name, value in zip("abcd", "wxwx", strict=True)),
    ),
    ({"name": "marks", "of": {name: ["x"] for name in "abcd"}, "up_to": 4},),
)
"""The requests in the audits of the methods. The person of :func:`between` moves every answer, some up and some down,
so that all answers together move by their whole sensitivity. All answers are about equally far above those of an even
table. The choice of the worst answer is then close, and so reveals the most.
"""


@dataclass(frozen=True)
class Case:
    """One audit: ``run(side)`` runs the mechanism on table 0 or 1 and returns the attacker's statistic."""

    name: str
    relation: str
    rho: float
    run: Callable[[int], float]
    broken: str = ""
    times: int = 1
    """Factor on the number of runs: half the noise takes many runs to detect, and single mechanisms are quick."""
    pure: float | None = None
    """The ε that is claimed at δ = 0; then ``rho`` is only its cost."""

    @property
    def what(self) -> str:
        """Name of the case, followed by the fault."""
        return f"{self.name}: {self.broken}" if self.broken else self.name


class Counted:
    """A table that counts each marginal only once, because thousands of runs ask for the same ones."""

    def __init__(self, table: Table) -> None:
        """Takes every answer from ``table``."""
        self.schema, self.rows, self.digest = table.schema, table.rows, table.digest
        self.person_column, self.names_people = table.person_column, table.names_people
        self.row_limit = table.row_limit
        self.count, self.residual_sums = cache(table.count), table.residual_sums
        self.numbers, self.take, self.batches = table.numbers, table.take, table.batches
        self.step_counts, self.step_echoes = table.step_counts, table.step_echoes
        self.visit_counts, self.return_counts = table.visit_counts, table.return_counts

    def count_many(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """Return the counts of each of ``cliques``."""
        return [self.count(clique) for clique in cliques]


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables, D and D′."""

    unit: Unit
    tables: tuple[Table, Table]

    @cached_property
    def counted(self) -> tuple[Counted, Counted]:
        """Both tables, for a curator."""
        return Counted(self.tables[0]), Counted(self.tables[1])

    @property
    def sizes(self) -> dict[str, int]:
        """Number of categories of each column."""
        return self.tables[0].schema.sizes


class Witness(PrivateCurator):
    """Real curator of one of two tables, and an attacker who sees its answers.

    ``evidence`` is log P(answers | D) − log P(answers | D′) up to a constant, with the recorded scales.
    """

    def __init__(self, pair: Pair, side: int, budget: Budget, table: Source | None = None) -> None:
        """Use ``table`` instead of the pair's own table if making the table is part of the audit."""
        super().__init__(table or pair.counted[side], pair.unit, budget, 10**6)
        self.evidence = 0.0
        self.views = [PrivateCurator(view, pair.unit, budget, 10**6) for view in pair.counted]

    def _add(self, values: NDArray[Any], exact: Sequence[NDArray[Any]], sigma: float) -> None:
        """Add the evidence of discrete noise: the likelihood of ``values`` given the ``exact`` values of either
        table."""
        if self.noise == "laplace":
            one, other = (float(np.sum(np.abs(values - true))) for true in exact)
            self.evidence += (other - one) / mechanisms.laplace_parameter(sigma)
            return
        one, other = (float(np.sum((values - true) ** 2)) for true in exact)
        self.evidence += (other - one) / (2 * sigma**2)

    def measure(self, rhos: Any, pool: str = "") -> list[Measurement]:
        """Return the curator's answer."""
        made = super().measure(rhos, pool)
        for m in made:
            self._add(m.values, [view._exact([m.clique])[0] for view in self.views], m.sigma)
        return made

    def measure_scores(
        self, score: Score, cliques: Sequence[Clique], rho: float, what: str, pool: str = ""
    ) -> ScoreMeasurement:
        """Return the curator's answer."""
        made = super().measure_scores(score, cliques, rho, what, pool)
        exact = [scores(score, made.cliques, view, self.rows) for view in self.views]
        self._add(made.values, [x / score.per_row(self.rows) for x in exact], made.sigma)
        return made

    def _sums(self, recipe: SumRecipe, scale: float) -> NDArray[np.float64]:
        """Return the curator's answer, in units; every vector of sums is drawn this way, whenever it was paid for."""
        values = super()._sums(recipe, scale)
        self._add(values, [recipe.sums(view._source) for view in self.views], scale)
        return values

    def choose(self, score: Score, candidates: Sequence[Clique], rho: float, what: str, pool: str = "") -> Clique:
        """Return the curator's answer; its likelihood under either table is a softmax of the scores."""
        chosen = super().choose(score, candidates, rho, what, pool)
        scale = self.spending.draws[-1].scale * score.per_row(self.rows)
        one, other = (log_softmax(scores(score, candidates, view, self.rows) / scale) for view in self.views)
        self.evidence += float((one - other)[list(candidates).index(chosen)])
        return chosen

    def _best_step(self, score: StepScore, candidates: Sequence[Step], scale: float) -> int:
        """Return the curator's answer; its likelihood under either table is a softmax of the scores."""
        chosen = super()._best_step(score, candidates, scale)
        exact = [zip(candidates, view._source.step_counts(candidates), strict=True) for view in self.views]
        one, other = (log_softmax(np.array([score.value(p, c) for p, c in x], dtype=float) / scale) for x in exact)
        self.evidence += float((one - other)[chosen])
        return chosen

    def _worst(self, recipe: WorstQuestion, scale: float) -> int:
        """Return the curator's answer; its likelihood under either table is a softmax of the scores."""
        chosen, asked = super()._worst(recipe, scale), recipe.asked
        exact = [answers(view._source, asked.questions, asked.counts, asked.sizes) for view in self.views]
        one, other = (log_softmax(np.array(recipe.scores(x), dtype=float) / scale) for x in exact)
        self.evidence += float((one - other)[chosen])
        return chosen

    def _set(self, recipe: ColumnSets, scale: float) -> int:
        """Return the curator's answer; its likelihood under either table is a softmax of the scores."""
        chosen = super()._set(recipe, scale)
        exact = (np.array(recipe.scores(view._source), dtype=float) for view in self.views)
        one, other = (log_softmax(x / scale) for x in exact)
        self.evidence += float((one - other)[chosen])
        return chosen

    def merge(self, merged: Merged) -> Merged:
        """Return groups of categories: they are made from the answers, so the attacker knows them too."""
        for view in self.views:
            view.merge(merged)
        return super().merge(merged)


def scores(score: Score, cliques: Sequence[Clique], view: PrivateCurator, n: int | None) -> NDArray[Any]:
    """Return the exact scores, in units. The empty clique means "no choice" and has score 0."""
    return np.array([score.value(c, view._exact([c])[0], n) if c else 0 for c in cliques], dtype=float)


def table_of(rows: Sequence[Sequence[int]], schema: Schema) -> Table:
    """Return a table with these rows of codes."""
    codes = np.array(rows, dtype=np.int64).reshape(len(rows), len(schema.columns))
    values = {c.name: codes[:, i] + 0.5 for i, c in enumerate(schema.columns) if c.kind == "numeric"}
    return Table(schema, dict(zip(schema.names, codes.T, strict=True)), len(rows), values=values)


def pair_of(unit: Unit, others: Sequence[Row], before: Row, after: Row, schema: Schema) -> Pair:
    """Return D and D′: ``others`` and one person, with the rows ``before`` (absent under add-remove) or ``after``."""
    k = unit.rows_per_person
    one = [*others, *[before] * k] if unit.neighbors == "replace-one" else others
    return Pair(unit, (table_of(one, schema), table_of([*others, *[after] * k], schema)))


def apart(unit: Unit) -> Pair:
    """Return one person who differs from all others in every column: every marginal moves by its whole sensitivity."""
    return pair_of(unit, [(2,) * 5] * (ROWS - unit.rows_per_person), (0, 0, 0, 0, 1), (1, 1, 1, 1, 2), SMALL)


def associated(unit: Unit, strata: bool) -> Pair:
    """Return a pair in which one association, a-b, rises by nearly the most possible, and another, c-d, falls as much.

    A row that is alone in its row and column of the table creates an association (+2n/(n + 1) rows). A row in a corner
    that all other rows avoid weakens one (−1.5 rows at n = 48, the most that enumeration finds). With ``strata``, the
    values 0 and 1 of y, a replaced row leaves one stratum and enters the other.
    """
    count = ROWS - unit.rows_per_person

    def plain(n: int) -> list[tuple[int, int]]:
        return [(2, 2)] * n

    def avoiding(n: int) -> list[tuple[int, int]]:
        h = math.isqrt(n * unit.rows_per_person)
        return [(2, 2)] * (n - 2 * h) + [(0, 2)] * h + [(2, 0)] * h

    def joined(ab: list[tuple[int, int]], cd: list[tuple[int, int]], y: int) -> list[Row]:
        return [(*p, *q, y) for p, q in zip(ab, cd, strict=True)]

    before, after = (0, 0, 1, 1, 0), (1, 1, 0, 0, int(strata))
    if unit.neighbors == "add-remove":
        others = joined(plain(count), avoiding(count), after[-1])
    elif strata:
        half = count // 2
        others = joined(avoiding(half), plain(half), 0) + joined(plain(count - half), avoiding(count - half), 1)
    else:
        others = joined(avoiding(count), avoiding(count), 0)
    return pair_of(unit, others, before, after, SMALL)


def switched(unit: Unit) -> Pair:
    """Return a pair whose two rows differ only in d and y; a fit that uses only d is as wrong as possible about
    both."""
    return pair_of(unit, [(2, 2, 2, 2, 0)] * (ROWS - unit.rows_per_person), (0, 0, 0, 0, 1), (0, 0, 0, 1, 2), SMALL)


WRONG: Weights = {
    "y": np.zeros((1, 2)),
    **{name: np.zeros((3, 2)) for name in "abc"},
    "d": np.array([[0.0, 40.0], [40.0, 0.0], [0.0, 0.0]]),
}
"""Where d is 0, this fit is certain of y = 2; where d is 1, of y = 1."""


OPPOSED = Scored({"d": np.array([[100], [-100], [0]])}, {"y": 100 * np.eye(3, dtype=np.int64)}, 100)
"""Vectors of full length; those of the two rows of :func:`switched` differ in every entry."""

Y = Axis.declared("y", range(3), 1.0, 3)
TURNED = Surface(Fourier({"d": np.array([[0], [TURN // 2], [0]])}, 0.0), np.zeros(3), -10.0, 1.0)
"""A fit whose residual is the largest that counts for every row; its features for d = 0 are the negated ones for d =
1."""

HALF_TURN = np.array([[0, 0], [TURN // 2, TURN // 2], [0, 0]], dtype=np.uint16)
WHOLE_ROWS = ClassSums(RowFeatures({"d": HALF_TURN}, {"y": np.array([0, 0, 1])}, UNIT // 2), "a", 3)
"""Features in which the rows of :func:`switched`, both of one class, point in opposite directions and are in different
cells."""

PLAIN = "measure", "measure a histogram", "measure two bins as one"
"""Draws of counts, whose sensitivity is 1 if one row is added or removed."""

HEADS = Heads(SMALL.sizes, {})
STEP = ClippedGradient(HEADS, np.tile([0.0, 0.0, -40.0], len(SMALL.columns)), clip=0.25)
"""A training step whose model gives every column's third category probability 0, and the other categories equal
probabilities: a row of first categories has the negated gradient of a row of second categories, and both are longer
than the clip.
"""


STAYS: Step = ("visits.x@before", "visits.x")
RETURNS: Step = ("visits.x@earlier", "visits.x")


def people_of(visits: Sequence[Sequence[int]]) -> Panel:
    """Return people with these visits, the same number of each."""
    codes = np.array(visits, dtype=np.int64)
    link = Linked("people", "visits", "id", "id", "at", codes.shape[1], gap=(0, 31, 91))
    columns = Column("people.a", "categorical", ("x",)), Column("visits.x", "categorical", tuple("xyz"))
    day = Dates.of("visits.at", DateBins.from_json({"from": "2020-01-01", "to": "2020-12-31", "by": "year"}))
    rows, schema = len(codes), link.completed(Schema((columns[0], day, columns[1])))
    row = {name: np.zeros(rows, int) for name in ("people.a", "visits.at")}
    row |= {link.number: np.full(rows, link.keep - 1), "visits.x": codes[:, 0]}
    seen = {"visits.x": codes, link.gap_name: np.zeros_like(codes)}
    return Panel(schema, row, rows, b"x", np.arange(rows), "id", 1, linked=link, visits=seen)


def with_visits(relation: Neighbors, steps: int) -> Pair:
    """Return one person whose visits are all alike, in the same cell at each step, among people in a different cell."""
    crowd = [[2] * (steps + 1)] * (ROWS - 1)
    one = [*crowd, [0] * (steps + 1)] if relation == "replace-one" else crowd
    return Pair(Unit(relation), (people_of(one), people_of([*crowd, [1] * (steps + 1)])))


def step_cases(broken: bool) -> Iterator[Case]:
    """Yield counts, echoes and choices over the visits of linked tables, of people with one and with three steps,
    or with six in the broken copies."""
    budget = Budget.of(Plan("linked", EPSILON, DELTA, neighbors="add-remove"), None)
    rho = budget.rho * (1 - 1e-9)
    for relation, steps in itertools.product(RELATIONS, (6,) if broken else (1, 3)):
        pair = with_visits(relation, steps)
        first = pair.tables[0]
        assert isinstance(first, Panel)
        assert first.linked is not None
        units = first.linked.units
        # one table is expected to be as in D, the other as in D′
        tables = [pair.tables[0].step_counts([STAYS])[0], pair.tables[1].step_counts([RETURNS])[0]]
        expected = dict(zip((STAYS, RETURNS), [t / units for t in tables], strict=True))
        score = StepScore(expected.__getitem__, units)
        asked: dict[str, Callable[[Witness], object]] = {
            "count steps": lambda c, u=units: c.measure_sums(StepCounts(STAYS, (3, 3), u), rho),
            "choose steps": lambda c, s=score: c.choose_step(s, [STAYS, RETURNS], rho),
            "count visits": lambda c, t=steps: c.measure_sums(VisitCounts("visits.x", 3, t), rho),
            "count returns": lambda c, u=units: c.measure_sums(ReturnCounts("visits.x", 3, 1, u), rho),
        }
        if relation == "add-remove" and steps > 1:
            asked["count echoes"] = lambda c, u=units: c.measure_sums(Echoes(("visits.x",), u), rho)
        for name, ask in asked.items():

            def run(side: int, pair: Pair = pair, ask: Callable[[Witness], object] = ask) -> float:
                curator = Witness(pair, side, budget)
                ask(curator)
                return curator.evidence

            ways = ["half the noise", "seeded", "no sensitivity"] if broken else [""]
            ways += ["each step weighs 1"] * (broken and name in ("count steps", "count returns"))
            ways += ["one visit for all"] * (broken and name == "count visits")
            for way in ways:
                yield Case(f"{name}, {steps} a person", relation, rho, run, way, _times(way))


def weigh_one(panel: Panel, cells: NDArray[np.int64], size: int, _: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts in which each step weighs 1, so that a person with many steps counts as many people: a broken
    copy.
    """
    return panel.linked.units * np.bincount(cells, minlength=size)


def mechanism_cases(broken: bool) -> Iterator[Case]:
    """Yield every kind of curator answer with each score recipe, a person's rows, and a holdout drawn at random."""
    budget = Budget.of(Plan("mst", EPSILON, DELTA), ROWS)
    rho = budget.rho * (1 - 1e-9)
    of_pairs: list[Clique] = [("a", "b"), ("c", "d")]
    of_triples: list[Clique] = [("a", "b", "y"), ("c", "d", "y")]

    def ask_counts(c: Witness) -> None:
        c.measure({("a",): rho / 2, ("b", "c"): rho / 2})

    def ask_gradient(c: Witness) -> None:
        c.measure_sums(LogisticGradient("y", tuple("abcd"), WRONG), rho)

    def ask_histogram(c: Witness) -> None:
        c.measure_sums(Histogram("audit", 3, Reading({}, (), {"d": 3}), Bin("d", None)), rho)

    def ask_together(c: Witness) -> None:
        c.measure_sums(Histogram("audit", 3, Reading({}, (), {"y": 3}), Bin("y", None), 2), rho)

    def ask_left(c: Witness) -> None:
        c.measure_sums(Moments("audit", Reading({"y": Y}, ("y",), {"d": 3}), WithOutcome(TURNED, Y, 1.0)), rho)

    def ask_moments(c: Witness) -> None:
        c.measure_sums(Moments("audit", Reading({}, (), {"d": 3, "y": 3}), OPPOSED), rho)

    def ask_rows(c: Witness) -> None:
        c.measure_sums(WHOLE_ROWS, rho)

    def ask_step(c: Witness) -> None:
        c.measure_sums(STEP, rho)

    def ask_regression(c: Witness) -> None:
        asked = BoughtRegression("audit", "y=z", ("a",))
        c.measure_sums(RegressionSums("audit", design_of(asked, SMALL), "moments", counted=True), rho)

    questions = tuple(Question(name, ({name: (1,)},)) for name in "abcd")
    count = Count("marks", dict.fromkeys("abcdy", (1,)), 5)
    counted = Question("many marks", ({"marks": (3, 4, 5)},))
    sums = QuestionSums((*questions, counted), (count,), dict.fromkeys("abcdy", 3))
    # for one question it is as if the person were in D, for the other as in D′; both are far above what is expected
    either = QuestionSums(tuple(Question(f"a = {v}", ({"a": (v,)},)) for v in (0, 1)), (), sums.sizes)

    def ask_sums(recipe: SumRecipe) -> Callable[[Witness], object]:
        return lambda c: c.measure_sums(recipe, rho)

    def ask_margin(c: Witness) -> None:
        c.measure_sums(QuestionSums((counted,), (count,), sums.sizes, less=20.0), rho)

    def ask_worst(unit: Unit) -> Callable[[Witness], object]:
        # if only one of the two counts moves, it starts half a move below the other and ends half a move above it
        lead = unit.rows_per_person / 2 if unit.neighbors == "add-remove" else 0.0
        return lambda c: c.choose_question(WorstQuestion(either, np.array([-50.0, -50.0 + lead])), rho)

    def ask_columns(recipe: ColumnSets) -> Callable[[Witness], object]:
        return lambda c: c.choose_columns(recipe, rho)

    def ask_scores(score: Score) -> Callable[[Witness], object]:
        return lambda c: c.measure_scores(score, of_pairs, rho, "audit")

    def choose(score: Score, candidates: Sequence[Clique]) -> Callable[[Witness], object]:
        return lambda c: c.choose(score, candidates, rho, "audit")

    for relation, k in itertools.product(RELATIONS, (1,) if broken else (1, 3)):
        unit = Unit(relation, k)
        plain, pairs, strata = apart(unit), associated(unit, False), associated(unit, True)
        # one pair is expected to be as in D, the other as in D′: one score goes from 0 to Δ, the other from Δ to 0
        expected = {q: plain.tables[side].count(q).astype(float) for side, q in enumerate(of_pairs)}
        edge = EdgeScore(expected.__getitem__)
        sets = column_sets(plain, of_pairs)
        asked: dict[str, tuple[Pair, Callable[[Witness], object]]] = {
            "measure": (plain, ask_counts),
            "measure scores": (plain, ask_scores(edge)),
            "measure a gradient": (switched(unit), ask_gradient),
            "measure a histogram": (switched(unit), ask_histogram),
            "measure two bins as one": (switched(unit), ask_together),
            "measure moments": (switched(unit), ask_moments),
            "measure what a fit leaves": (switched(unit), ask_left),
            "measure features of whole rows": (switched(unit), ask_rows),
            "choose columns": (plain, ask_columns(sets)),
            "a regression": (switched(unit), ask_regression),
            "a training step": (between(unit, SMALL), ask_step),
            "answer questions": (plain, ask_sums(sums)),
            "a count over whole rows": (plain, ask_sums(CountHistogram(count, sums.sizes))),
            "a noisy margin": (plain, ask_margin),
            "choose the worst question": (plain, ask_worst(unit)),
            "choose by EdgeScore": (plain, choose(edge, of_pairs)),
            "choose by FeatureScore": (pairs, choose(FeatureScore(dict(zip(of_pairs, "bd", strict=True))), of_pairs)),
            "choose by ConditionalScore": (strata, choose(ConditionalScore("y"), of_triples)),
        }
        for name, (pair, ask) in asked.items():

            def run(side: int, pair: Pair = pair, ask: Callable[[Witness], object] = ask) -> float:
                curator = Witness(pair, side, budget)
                ask(curator)
                return curator.evidence

            ways = ["half the noise", "seeded", *["no sensitivity"] * (name not in PLAIN)] if broken else [""]
            if broken and name == "a training step":
                ways += ["clipped after the sum", *["C for 2C"] * (relation == "replace-one")]
            if broken and name == "measure features of whole rows" and relation == "replace-one":
                ways.append("one class forgotten")
            for way in ways:
                yield Case(name if k == 1 else f"{name}, {k} rows a person", relation, rho, run, way, _times(way))
    for relation in RELATIONS:
        for way in ["half the noise", "all rows kept"] if broken else [""]:
            yield Case("a person's rows", relation, rho, persons(relation, budget), way, _times(way))
            yield Case(
                "a person's rows in DuckDB", relation, rho, persons_in_duckdb(relation, budget), way, _times(way)
            )
        for way in ["half the noise"] if broken else [""]:
            yield Case("a part held out", relation, rho, part_held_out(relation, budget), way, _times(way))


PURE = 2.0
"""ε of the pure cases: at ε′ = ε, a pure claim allows no δ at all, and with so small an ε few runs can test this."""
PURE_METHODS: dict[str, dict[str, Any]] = {
    "fpt-lp, pure": {"method": "fpt-lp"},
    "fpt-mw, pure": {"method": "fpt-mw", "rounds": 1},
}


def pure_cases(broken: bool) -> Iterator[Case]:
    """Yield every kind of draw with a pure guarantee, and the methods that make no others."""
    budget = Budget.of_pure(PURE)
    sizes = dict.fromkeys("abcdy", 3)
    noise, choice = (PURE**2 / x * (1 - 1e-9) for x in (2, 8))
    questions = tuple(Question(name, ({name: (1,)},)) for name in "abc")
    count = Count("marks", dict.fromkeys("abcdy", (1,)), 5)
    either = QuestionSums(tuple(Question(f"a = {v}", ({"a": (v,)},)) for v in (0, 1)), (), sizes)
    for relation, k in itertools.product(RELATIONS, (1,) if broken else (1, 3)):
        pair = apart(Unit(relation, k))
        lead = k / 2 if relation == "add-remove" else 0.0
        worst = WorstQuestion(either, np.array([-50.0, -50.0 + lead]))
        asked: dict[str, Callable[[Witness], object]] = {
            "counts": lambda c: c.measure({("a",): noise}),
            "questions": lambda c: c.measure_sums(QuestionSums(questions, (), sizes), noise),
            "a count": lambda c: c.measure_sums(CountHistogram(count, sizes), noise),
            "a margin": lambda c: c.measure_sums(QuestionSums(questions[:1], (), sizes, less=20.0), noise),
            "the worst question": lambda c, w=worst: c.choose_question(w, choice),
        }
        for name, ask in asked.items():

            def run(side: int, pair: Pair = pair, ask: Callable[[Witness], object] = ask) -> float:
                curator = Witness(pair, side, budget)
                ask(curator)
                return curator.evidence

            ways = ["half the noise", "seeded", *["L2 for L1"] * (name == "questions")] if broken else [""]
            if broken and name == "the worst question":  # it reveals about half of its ε, and less if one count moves
                ways = ["a quarter of the noise", "seeded"] if relation == "replace-one" else ["seeded"]
            for way in ways:
                title = f"{name}, pure" if k == 1 else f"{name}, pure, {k} rows a person"
                yield Case(title, relation, budget.rho, run, way, _times(way), PURE)
    for name, relation in itertools.product(PURE_METHODS, RELATIONS[:1] if broken else RELATIONS):
        plan: dict[str, Any] = {"epsilon": PURE, "accounting": "pure", "neighbors": relation, **PURE_METHODS[name]}
        given = Project("audit", SCHEMA, Plan.from_json(plan), DAG, ROLES, question_list=ASKED)
        pair, frame = between(Unit(relation), SCHEMA), frame_of(given)

        def whole(side: int, given: Project = given, pair: Pair = pair, frame: Any = frame) -> float:
            curator = Witness(pair, side, budget)
            fit(curator, given, frame)
            return curator.evidence

        yield Case(name, relation, budget.rho, whole, "a quarter of the noise" if broken else "", 2, PURE)


def _times(way: str) -> int:
    if way in ("half the noise", "C for 2C", "one class forgotten", "L2 for L1"):
        return 8
    return 4 if way == "one visit for all" else 2


def column_sets(pair: Pair, sets: Sequence[Clique]) -> ColumnSets:
    """Return a choice between two sets of columns with y: one is expected to be as in D, the other as in D′."""
    coarse = {name: np.array([0, 1, 1]) for name in "abcd"}
    expected = []
    for table, names in zip(pair.tables, sets, strict=True):
        bins = {name: coarse[name][table.codes[name]].astype(np.int32) for name in coarse}
        expected += [x.astype(float) for x in coarse_counts(bins, table.codes["y"].astype(np.int32), 3, [names])]
    return ColumnSets(coarse, "y", 3, sets, expected, [0.0] * len(sets))


def persons(relation: Neighbors, budget: Budget) -> Callable[[int], float]:
    """Return a case in which one person has MOST rows, two of which may count."""
    pair = apart(Unit(relation, 2))
    whole, total = more_rows(pair), ROWS if relation == "replace-one" else None

    def run(side: int) -> float:
        curator = Witness(pair, side, budget, contribution.bounded(whole[side], 2, total))
        curator.measure({("a",): budget.rho / 2, ("b", "c"): budget.rho / 2})
        return curator.evidence

    return run


def persons_in_duckdb(relation: Neighbors, budget: Budget) -> Callable[[int], float]:
    """Like the audit of persons above, but through DuckDB, which reads a file and keeps two random rows of each person,
    chosen with a key of that run."""
    pair = apart(Unit(relation, 2))
    folder, total = Path(tempfile.mkdtemp()), ROWS if relation == "replace-one" else None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    opened = []
    for side, table in enumerate(more_rows(pair)):
        assert table.person is not None
        columns = {c.name: [c.labels[code] for code in table.codes[c.name]] for c in table.schema.columns}
        path = folder / f"{side}.parquet"
        parquet.write_table(pa.table({**columns, "who": [f"p{i}" for i in table.person]}), path)
        opened.append(open_relation(path))

    def run(side: int) -> float:
        with (
            closing(opened[side].snapshot(SMALL, "who", 2)) as snapshot,
            closing(contribution.bounded(snapshot, 2, total)) as kept,
        ):
            curator = Witness(pair, side, budget, kept)
            curator.measure({("a",): budget.rho / 2, ("b", "c"): budget.rho / 2})
        return curator.evidence

    return run


def more_rows(pair: Pair) -> tuple[Table, ...]:
    """Return the pair's tables before rows are bounded. The person in whom they differ has MOST equal rows, so it does
    not matter which of them are kept. Everyone else has one row.
    """
    others = ROWS - pair.unit.rows_per_person
    found = []
    for table in pair.tables:
        rows = np.minimum(np.arange(others + MOST if table.rows > others else others), table.rows - 1)
        people_of = np.minimum(np.arange(len(rows)), others)
        found.append(replace(table.take(rows), person=people_of, person_column="who"))
    return tuple(found)


def part_held_out(relation: Neighbors, budget: Budget) -> Callable[[int], float]:
    """Return two curators with the whole ρ each, one for a random holdout, one for the rest; the attacker knows the
    split.
    """
    unit = Unit(relation)
    given = Project("audit", SMALL, Plan("mst", EPSILON, DELTA, neighbors=relation, target="y", private_evaluation=0.5))
    asked, likely = HeldOutCounts.of(given), table_of([(i % 3,) * 5 for i in range(300)], SMALL)
    # a classifier of such rows is right about one and wrong about the other
    pair = pair_of(unit, [(2,) * 5] * (ROWS - 1), (0, 0, 0, 0, 0), (1, 1, 1, 1, 2), SMALL)
    seen = [held_out.judged(asked, likely, table) for table in pair.tables]
    size = contribution.held_rows(given.plan, contribution.public_rows(given.plan, ROWS)) or None

    def run(side: int) -> float:
        lots = random_rows.fresh_lots(ROWS)
        with mock.patch.object(random_rows, "fresh_lots", lambda count: lots[:count]):
            parts = [contribution.split(table, given.plan.private_evaluation, size) for table in seen]
        rest, held = zip(*parts, strict=True)
        curator = Witness(Pair(unit, rest), side, budget)
        curator.measure({("a",): budget.rho})
        evidence = curator.evidence
        curator = Witness(Pair(unit, held), side, budget)
        held_out.measure(curator, asked, size)
        return evidence + curator.evidence

    return run


def project(case: str, relation: Neighbors) -> Project:
    """Return a project for one of METHOD_CASES."""
    plan = dict(METHOD_CASES[case])
    dag, schema, asked = plan.pop("dag", DAG), plan.pop("schema", SCHEMA), plan.pop("asked", False)
    settings = {"epsilon": EPSILON, "delta": DELTA, "neighbors": relation, "target": "d", **plan}
    listed = ASKED if asked else QuestionList()
    return Project("audit", schema, Plan.from_json(settings), dag, ROLES, question_list=listed)


def between(unit: Unit, schema: Schema) -> Pair:
    """Return a pair in which one person moves from one crowd to another that differs in every column: every marginal
    moves by its sensitivity.

    No count that moves is near 0, so that a fitted model, which has no negative ones, can show it.
    """
    width, others = len(schema.columns), ROWS - unit.rows_per_person
    crowds = [(0,) * width] * (others // 2) + [(1,) * width] * (others - others // 2)
    return pair_of(unit, crowds, (0,) * width, (1,) * width, schema)


def methods(broken: bool) -> Iterator[Case]:
    """Yield every method, up to its last measurement and choice; everything later is post-processing."""
    for name, relation in itertools.product(METHOD_CASES, RELATIONS[:1] if broken else RELATIONS):
        if broken and "schema" in METHOD_CASES[name]:
            continue  # slow, and this pair moves its sums by half: broken copies of single sums are audited instead
        given = project(name, relation)
        pair, frame, budget = between(Unit(relation), given.schema), frame_of(given), Budget.of(given.plan, ROWS)

        def run(
            side: int, given: Project = given, pair: Pair = pair, frame: Any = frame, budget: Any = budget
        ) -> float:
            curator = Witness(pair, side, budget)
            with tested(curator, given):
                fit(curator, given, frame)
            return curator.evidence

        if not broken:
            yield Case(name, relation, budget.rho, run)
        elif METHOD_CASES[name]["method"] == "workload" or name == "decoder, tables":  # slow, because of fits and steps
            yield Case(name, relation, budget.rho, run, "a quarter of the noise")
            yield Case(name, relation, budget.rho, run, "seeded", _times("seeded"))
        else:
            easy = {"width", "schema", "asked"} & METHOD_CASES[name].keys()  # also slow
            yield Case(name, relation, budget.rho, run, "half the noise", 3 if easy else 8)


def releases(broken: bool) -> Iterator[Case]:
    """Yield whole releases, judged by the fitted model alone: its marginals along the direction in which D and D′
    differ.
    """
    names = "mst", "prism predictive", "privbayes drawn", "mst, a person's rows"
    for name, relation in itertools.product(names, RELATIONS[:1] if broken else RELATIONS):
        given, unit = project(name.split(",")[0], relation), Unit(relation)
        bounded = name.endswith("rows")
        if bounded:
            rows = ROWS if relation == "replace-one" else None
            given = replace(given, plan=replace(given.plan, person="who", rows_per_person=2, rows=rows))
            unit = Unit(relation, 2)
        pair = between(unit, SCHEMA)
        tables = more_rows(pair) if bounded else pair.tables

        def run(side: int, given: Project = given, pair: Pair = pair, tables: Sequence[Table] = tables) -> float:
            model = release(given, tables[side]).model
            assert isinstance(model, MarginalModel)
            shown = 0.0
            for column in SCHEMA.names:
                one, other = (t.count((column,)) for t in pair.counted)
                shown += float(np.sum(model.total * model.marginal((column,)) * (one - other)))
            return shown

        rho = Budget.of(given.plan, ROWS).rho
        for way in ["half the noise", *["all rows kept"] * bounded] if broken else [""]:
            yield Case(f"{name}, fitted model", relation, rho, run, way, 8 if broken else 1)


def clipped_after_the_sum(
    codes: Mapping[str, NDArray[Any]], heads: Heads, parameters: FloatArray, clip: float, step: int = 0
) -> NDArray[np.int64]:
    """Return the sum of unclipped gradients, scaled down to the largest norm that its clipped rows could have in total:
    a broken copy.
    """
    total = clipped_sums(codes, heads, parameters, LARGEST_CLIP, step)
    most = clip * UNITS * len(next(iter(codes.values())))
    scaled = total * min(1.0, most / max(float(np.linalg.norm(total)), 1.0))
    return np.asarray(np.trunc(scaled), dtype=np.int64)


LESS_NOISE = {"half the noise": 0.5, "a quarter of the noise": 0.25}
"""Broken copies, by the share of the claimed noise that they draw."""


@contextmanager
def breaking(way: str, seed: int = 0) -> Iterator[None]:
    """The code with one thing broken on purpose."""
    gaussian, gumbel, laplace = mechanisms.gaussian_scale, mechanisms.gumbel_scale, mechanisms.laplace_scale

    def seeded_gaussian(counts: NDArray[np.int64], sigma: float) -> NDArray[np.float64]:
        return np.asarray(counts + np.rint(np.random.default_rng(seed).normal(0, sigma, counts.shape)))

    def seeded_laplace(counts: NDArray[np.int64], sigma: float) -> NDArray[np.float64]:
        noise = np.random.default_rng(seed).laplace(0, mechanisms.laplace_parameter(sigma), counts.shape)
        return np.asarray(counts + np.rint(noise))

    def seeded_max(scores: Sequence[int], scale: float) -> int:
        return int(np.argmax(np.array(scores) + np.random.default_rng(seed).gumbel(0, scale, len(scores))))

    with ExitStack() as stack:
        if way in LESS_NOISE:
            kept = LESS_NOISE[way]
            stack.enter_context(mock.patch.object(mechanisms, "gaussian_scale", lambda d, rho: gaussian(d, rho) * kept))
            stack.enter_context(mock.patch.object(mechanisms, "gumbel_scale", lambda d, rho: gumbel(d, rho) * kept))
            stack.enter_context(mock.patch.object(mechanisms, "laplace_scale", lambda d, rho: laplace(d, rho) * kept))
        elif way == "seeded":
            stack.enter_context(mock.patch.object(mechanisms, "add_gaussian", seeded_gaussian))
            stack.enter_context(mock.patch.object(mechanisms, "add_laplace", seeded_laplace))
            stack.enter_context(mock.patch.object(mechanisms, "noisy_max", seeded_max))
        elif way == "no sensitivity":
            for recipe in (EdgeScore, FeatureScore, ConditionalScore, WorstQuestion, ColumnSets, StepScore):
                stack.enter_context(mock.patch.object(recipe, "sensitivity", return_value=1))
            for sums in (
                LogisticGradient,
                ClippedGradient,
                Moments,
                QuestionSums,
                CountHistogram,
                RegressionSums,
                ClassSums,
                StepCounts,
                Echoes,
                VisitCounts,
                ReturnCounts,
            ):
                stack.enter_context(mock.patch.object(sums, "sensitivity", return_value=1))
        elif way == "clipped after the sum":
            stack.enter_context(mock.patch.object(clipped, "clipped_sums", clipped_after_the_sum))
        elif way == "each step weighs 1":
            stack.enter_context(mock.patch.object(Panel, "_by_weight", weigh_one))
        elif way == "one visit for all":
            one = VisitCounts("visits.x", 3, 1).sensitivity
            stack.enter_context(mock.patch.object(VisitCounts, "sensitivity", lambda _, unit: one(unit)))
        elif way == "C for 2C":
            stack.enter_context(
                mock.patch.object(clipped, "clipped_sensitivity", lambda unit, c: unit.rows_per_person * clip_units(c))
            )
        elif way == "one class forgotten":
            stack.enter_context(
                mock.patch.object(ClassSums, "sensitivity", lambda _, unit: math.sqrt(2) * UNIT * unit.rows_per_person)
            )
        elif way == "L2 for L1":
            stack.enter_context(mock.patch.object(QuestionSums, "total_sensitivity", QuestionSums.sensitivity))
        elif way == "all rows kept":
            stack.enter_context(
                mock.patch.object(random_rows, "first_of_each", lambda person, *_: np.arange(len(person)))
            )
            stack.enter_context(mock.patch.object(scan, "kept_rows", lambda *given: np.arange(len(given[2]))))
        elif way:
            raise ValueError(f"there is no broken copy {way!r}")
        yield


def telling_seed(case: Case) -> int:
    """Return a seed under which the two tables get different answers, which an attacker who knows the seed could find.

    (An attacker would know the seed and search for the tables; the reverse search is merely quicker.)
    """
    for seed in range(1000):
        with breaking("seeded", seed):
            if case.run(0) != case.run(1):
                return seed
    raise RuntimeError(f"no seed distinguishes the tables of {case.name}")


def judge(case: Case, runs: int, alpha: float) -> Verdict:
    """Run one case ``runs`` times on each table and test its claim."""
    with breaking(case.broken, telling_seed(case) if case.broken == "seeded" else 0):
        sides = [[case.run(side) for _ in range(runs * case.times)] for side in (0, 1)]
    return audit(sides[0], sides[1], case.rho, alpha, case.pure)


PARTS = {
    "mechanisms": mechanism_cases,
    "steps": step_cases,
    "pure": pure_cases,
    "methods": methods,
    "releases": releases,
}


def main() -> int:
    """Run the audit and print a line for each case; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("part", nargs="?", choices=(*PARTS, "schema", "seams"))
    parser.add_argument("--only", default="", metavar="NAME", help="cases whose names contain this")
    parser.add_argument(
        "--runs", type=int, default=600, help="runs on each table (some cases take a multiple: see the table)"
    )
    opt = parser.parse_args()
    if opt.part == "schema":
        from tests.audits import audit_schema  # imported here because it imports this file

        return audit_schema.audited(opt.only, opt.runs)
    if opt.part == "seams":
        return seams.main()
    cases = [(part, c) for broken in (False, True) for part, made in PARTS.items() for c in made(broken)]
    alpha = CONFIDENCE / len(cases)  # even if few are run, so that the bounds of several calls hold together
    wanted = [c for part, c in cases if part == (opt.part or part) and opt.only in c.what]
    wrong = 0
    print(
        f"{len(wanted)} of {len(cases)} audits, all together at confidence {1 - CONFIDENCE:.0%}; ε at δ = {DELTA:g}, "
        "of pure cases at δ = 0\n"
    )
    print(f"{'what':<44} {'relation':<12} {'runs':>6} {'ε claimed':>9} {'ε at least':>10}  worst: δ(ε′) ≥ low, claimed")
    for case in wanted:
        start = time.perf_counter()
        verdict = judge(case, opt.runs, alpha)
        fine = verdict.refuted == bool(case.broken)
        wrong += not fine
        w = verdict.worst
        word = "caught" if verdict.refuted else "holds"
        print(
            f"{case.what:<44} {case.relation:<12} {opt.runs * case.times:>6} "
            f"{case.pure or epsilon_of(case.rho, DELTA):>9.3f} {verdict.epsilon_low(DELTA):>10.3f}  "
            f"δ({w.epsilon:.2f}) ≥ {w.low:.3f}, "
            f"{w.claimed:.3f}: {word}{'' if fine else '  <-- WRONG'}  {time.perf_counter() - start:.0f} s",
            flush=True,
        )
    print(f"\n{'as expected' if not wrong else f'{wrong} of {len(wanted)} wrong'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
