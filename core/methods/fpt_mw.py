"""Second FPT algorithm: private multiplicative weights on an implicit distribution (Ghazi, Guzmán, Kamath, Knop, Kumar
& Manurangsi 2026), with exact expectations and zCDP. Sampling and the paper's composition are options. With that
composition over 60 rounds at ε = 1 and δ = 1e-6, the noise is 1.7 times as large. The method is suited to thousands of
questions on a few thousand rows. With fewer questions or more rows, fitted direct answers are several times closer.
Columns that no question names become uniform.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from espalier.core.errors import ProjectError
from espalier.core.graph.junction_tree import FloatArray
from espalier.core.graph.separations import Clique
from espalier.core.methods.base import Capabilities, Guidance, Method
from espalier.core.methods.frame import Frame
from espalier.core.methods.marginals import one_ways
from espalier.core.methods.question_answers import Answers
from espalier.core.methods.question_links import links_of, scopes_of
from espalier.core.methods.select.allocation import BudgetSplit
from espalier.core.models.graphical import FitSummary, Size
from espalier.core.models.question_fit.model import VisibleModel
from espalier.core.models.question_fit.network import Network
from espalier.core.models.question_fit.weights import multiplicative_weights, public_rule
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.draws import Measurement
from espalier.core.privacy.question_recipes.lowering import Block, Lowered, lower
from espalier.core.privacy.question_recipes.prediction import check_cost
from espalier.core.privacy.question_recipes.recipes import QuestionSums, WorstQuestion
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project
from espalier.core.project.options import option, read_options
from espalier.core.project.question_types import Question

TOTAL = 0.05
"""Share of the budget for the number of rows, if it is private."""


@dataclass(frozen=True)
class WeightsOptions:
    """Plan keys of the method."""

    rounds: int | None = option(
        None,
        "Rounds",
        low=1,
        high=200,
        whole=True,
        empty="set by a public rule",
        help="Each round selects the question with the worst answer and measures its error.",
    )
    samples: int | None = option(
        None,
        "Rows sampled per round",
        low=100,
        high=100_000,
        whole=True,
        empty="none: exact answers",
        help="The paper estimates answers from samples. Exact answers are faster and at least as accurate.",
    )
    step: float | None = option(
        None,
        "Step size",
        low=0.001,
        high=10,
        empty="from each noisy answer",
        help="As published, each round moves one weight up or down by this number. If blank, the weight moves toward "
        "the noisy answer, which needs fewer rounds.",
    )
    noise: Literal["zcdp", "published"] = option(
        "zcdp",
        "Noise of a round",
        choices={
            "zcdp": "by adding up ρ over the rounds",
            "published": "by the paper's composition of pure guarantees",
        },
        help="The paper's rule (Proposition 29) adds more noise and leaves part of the budget unspent.",
    )
    one_way: float = option(
        0.0,
        "Share of the budget for single columns",
        low=0.0,
        high=0.5,
        help="The search then starts from noisy counts of each column instead of uniform counts. Without this "
        "share, columns that no question names stay uniform.",
        pool="one-way",
    )


@dataclass(frozen=True)
class Chosen(Answers):
    """Last noisy answer to each chosen question: number → (answer, σ)."""

    measured: dict[int, tuple[float, float]] = field(default_factory=dict)

    def told(self, j: int) -> tuple[float, float] | None:
        """Return the noisy answer to question ``j`` and its σ; `None` if the question was never chosen."""
        return self.measured.get(j)


@dataclass(frozen=True)
class Weighted:
    """Result of multiplicative weights: a weight for each question."""

    answers: Chosen
    lowered: Lowered
    scopes: tuple[Clique, ...]
    weights: FloatArray
    fitted: FloatArray
    total: float
    rounds: int
    planned: int
    stopped: bool
    ones: tuple[Measurement, ...] = ()
    features: tuple[str, ...] = ()

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """Measured columns, each on its own; no columns were measured together."""
        return tuple(m.clique for m in self.ones)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of columns that a question joins."""
        return links_of(self.scopes)

    def size(self, max_cells: int, further: tuple[Clique, ...] = ()) -> Size:
        """Return the model's cost; raise :class:`SizeError` above ``max_cells``."""
        cost = check_cost(self.lowered, further, max_cells=max_cells)
        seconds = self.planned * cost.cells * 1e-6
        drawn = 2 * self.planned + sum(m.values.size for m in self.ones)
        return Size(
            cost.cells, drawn, 64 * cost.cells, seconds, cost.columns, cost.largest, (), treewidth=cost.treewidth
        )

    def model(self, report: Report = silent) -> VisibleModel:
        """p ∝ exp Σ θ_j q_j: the weights are the fit."""
        report(0.0, "Storing the weights")
        lowered = self.lowered
        network = _network(lowered, self.ones)
        said = f"{self.rounds} rounds" + (
            ", because a noisy margin showed that choices were no better than random" if self.stopped else ""
        )
        inner = network.model(self.weights, self.total, FitSummary(self.rounds, 0.0, 0.0, True, said))
        names = [question.name for question in self.answers.questions]
        told = dict(zip(names, lowered.back(self.fitted).tolist(), strict=True))
        return VisibleModel(inner, lowered.visible, lowered.counts, self.edges, told)

    def facts(self, project: Project) -> dict[str, Any]:  # noqa: ARG002
        """Return the number of planned rounds that ran, and whether the private stopping rule ended them."""
        return {"rounds": {"ran": self.rounds, "planned": self.planned, "stopped": self.stopped}}


def fpt_mw(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Weighted:  # noqa: ARG001
    """Run T rounds of one private choice and one noisy margin, with 1/(2T) of the budget each, and stop when a margin
    is only noise. The share ``one_way`` of the budget first measures every column, and the search starts from
    independent columns with these counts. T and the threshold follow from public figures (`public_rule`). The choice is
    made by the exponential mechanism over all questions and both signs, with Δ = k rows. The margin has Gaussian noise
    (Laplace noise under pure accounting) and Δ = k rows. It is charged in every round that runs, because it both moves
    the weight and determines whether to stop. If the search ends early, the rest of the budget stays unspent. All
    rounds that ran are charged, and a filter that stops at the planned total remains valid for an adaptive number of
    rounds. A count without a question becomes a question for each of its values.
    """
    plan, whole = project.plan, curator.whole
    options = read_options(WeightsOptions, plan.options)
    asked, counts = project.question_list.resolve(project.schema)
    asked = (*asked, *_of_counts(asked, counts))
    lowered = lower(whole, asked, counts)
    check_cost(lowered, max_cells=plan.max_cells)
    ordered = tuple(asked[j] for j in lowered.order)
    budget, share, total = BudgetSplit.of(plan, curator.budget, curator.sizes), 1.0, float(curator.rows or 0)
    if curator.rows is None:
        report(0.0, "Counting the rows")
        smallest = min(whole, key=whole.__getitem__)
        (counted,) = curator.measure(budget.split(TOTAL, [(smallest,)]), "total")
        share, total = 1 - TOTAL, max(float(counted.values.sum()), 1.0)
    ones: list[Measurement] = []
    if options.one_way:
        ones = curator.measure(budget.split(options.one_way * share, one_ways(curator)), "one-way")
        share *= 1 - options.one_way
    network = _network(lowered, ones)
    rule = public_rule(
        lowered.sizes, total, len(asked), budget.budget.part(share), curator.unit.rows_per_person, options.rounds
    )
    rule = replace(rule, step=options.step)
    each = share / rule.rounds / 2
    price, (noise_price,) = budget.choice(each), budget.evenly(each, [1.0])
    if options.noise == "published":
        told = published_prices(budget.budget.part(share), rule.rounds)
        price, noise_price = min(price, told[0]), min(noise_price, told[1])
        rule = replace(rule, threshold=-2.0 * curator.unit.rows_per_person / math.sqrt(2 * noise_price))
    sums = QuestionSums(ordered, counts, whole)
    measured: dict[int, tuple[float, float]] = {}

    def choose(expected: FloatArray) -> tuple[int, int]:
        return curator.choose_question(WorstQuestion(sums, expected), price, "questions")

    def margin(chosen: int, sign: int, expected: float) -> float:
        one = QuestionSums((ordered[chosen],), counts, whole, less=expected)
        told = curator.measure_sums(one, noise_price, "questions")
        measured[int(lowered.order[chosen])] = float(told.values[0]) + expected, told.sigma
        return sign * float(told.values[0])

    course = multiplicative_weights(
        network,
        total,
        rule,
        choose,
        margin,
        samples=options.samples,
        asked=len(asked),
        rng=curator.chance() if options.samples else None,
        start=np.concatenate([np.zeros(len(asked)), *(_logarithms(m) for m in ones)]),
        report=report,
    )
    answers = Chosen(asked, counts, None, (), (), curator.noise, measured)
    scopes = tuple(scopes_of(project).values())
    return Weighted(
        answers,
        lowered,
        scopes,
        course.weights,
        course.fitted,
        total,
        course.rounds,
        rule.rounds,
        course.stopped,
        tuple(ones),
    )


def published_prices(budget: Budget, rounds: int) -> tuple[float, float]:
    """Return ρ of a choice and of a margin if ``rounds`` rounds compose as in the paper (Proposition 29).

    Each of the 2T draws is ε₀-DP. Together they are (ε₀√(4T ln(1/δ)) + 2Tε₀(exp(ε₀) − 1), δ)-DP, or (2Tε₀, 0)-DP. ε₀ is
    the largest value that stays within ``budget``. A choice that is ε₀-DP costs ε₀²/8. The paper's Laplace noise has a
    standard deviation of √2/ε₀; Gaussian noise with the same standard deviation costs ε₀²/4. Raises
    :class:`ProjectError` for a pure budget.
    """
    if budget.pure:
        raise ProjectError("published noise needs δ above 0: set accounting to zcdp, or noise to zcdp", key="noise")
    draws = 2 * rounds
    once = math.sqrt(2 * draws * math.log(1 / budget.delta))
    low, high = budget.epsilon / draws, budget.epsilon
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        fits = middle * once + draws * middle * math.expm1(middle) <= budget.epsilon
        low, high = (middle, high) if fits else (low, middle)
    return low**2 / 8, low**2 / 4


def _network(lowered: Lowered, ones: Sequence[Measurement]) -> Network:
    """Return the statistics: every question, then the cells of every measured column."""
    return Network(lowered.sizes, [*lowered.blocks, *(Block(m.clique, None) for m in ones)], lowered.zeros)


def _logarithms(m: Measurement) -> FloatArray:
    """Return the logarithms of a column's noisy shares, each raised to at least one standard deviation of its noise."""
    return np.log(np.maximum(m.values, max(m.sigma, 1.0)) / max(float(m.values.sum()), 1.0))


def _of_counts(asked: tuple[Question, ...], counts: tuple[Any, ...]) -> list[Question]:
    used = {name for question in asked for condition in question.alternatives for name in condition}
    return [
        Question(f"{count.name} = {value}", ({count.name: (value,)},))
        for count in counts
        if count.name not in used
        for value in range(count.size)
    ]


FPT_MW = Method(
    name="fpt-mw",
    title="FPT, multiplicative weights",
    summary="in each round, learns from the question with the worst answer, chosen privately",
    fit=fpt_mw,
    options=WeightsOptions,
    guidance=Guidance(
        when="Choose it for thousands of questions on a few thousand rows. With fewer questions or more rows, "
        "another method with a share for questions is more accurate.",
    ),
    capabilities=Capabilities(
        questions="alone",
        constraints=False,
        accounting=("zcdp", "pure"),
        unread=("allocation", "copies", "question_share"),
    ),
)
