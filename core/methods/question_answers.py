"""Questions and counts measured in addition to any method that returns marginals, and the model fitted to both.

The method itself does not change. It gets a smaller budget, and its measurements are fitted together with the answers.
Questions are measured first, so a plan and its release divide the budget in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from espalier.core.graph.separations import Clique, clique_edges
from espalier.core.methods.base import Fit
from espalier.core.methods.frame import Frame
from espalier.core.methods.marginals import Marginals
from espalier.core.methods.question_links import links_of, scopes_of
from espalier.core.methods.select.allocation import BudgetSplit
from espalier.core.models.fit_chance import seeded_by
from espalier.core.models.graphical import Size, Zeros, estimate, predict_size, smoothing_for
from espalier.core.models.graphical.problem import estimate_total
from espalier.core.models.question_fit.joint import fit_together
from espalier.core.models.question_fit.model import VisibleModel
from espalier.core.models.question_fit.network import Network
from espalier.core.models.question_fit.projection import Projection, project
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.draws import Measurement, Noise, SumMeasurement
from espalier.core.privacy.question_recipes.lowering import Block, Lowered, lower, mask_of
from espalier.core.privacy.question_recipes.prediction import (
    check_cost,
    direct_errors,
    direct_is_better,
    marginal_errors,
)
from espalier.core.privacy.question_recipes.recipes import CountHistogram, QuestionSums
from espalier.core.progress import Report, part, silent
from espalier.core.project.file import Project
from espalier.core.project.question_types import Count, Question

CERTIFIED = 500
"""Maximum number of noisy answers for which a release computes the best possible agreement of any table."""

COLUMNS = 1_500
"""Rows drawn from the fit as the initial columns of the linear program for that agreement."""


@dataclass(frozen=True)
class Answers:
    """Questions and counts of a project with their noisy answers, in rows.

    ``direct`` holds the answers to all questions. It is `None` if ``marginals`` of their columns were measured instead,
    or if there are no questions. ``histograms`` has one histogram per count, and is empty if a method answers counts
    through questions. ``noise`` is the noise distribution of all of these.
    """

    questions: tuple[Question, ...]
    counts: tuple[Count, ...]
    direct: SumMeasurement | None
    marginals: tuple[Measurement, ...]
    histograms: tuple[Measurement, ...]
    noise: Noise = "gaussian"

    @property
    def numbers(self) -> int:
        """Number of noisy numbers bought directly: answers, and cells of the counts."""
        return (len(self.questions) if self.direct else 0) + sum(m.values.size for m in self.histograms)

    def told(self, j: int) -> tuple[float, float] | None:
        """Return the noisy answer to question ``j`` and its σ; `None` if the question was not measured.

        Without direct answers, the answer is computed from the smallest measured marginal that contains the question's
        columns.
        """
        if self.direct is not None:
            return float(self.direct.values[j]), self.direct.sigma
        question = self.questions[j]
        home = min(
            (m for m in self.marginals if _columns(question) <= set(m.clique)),
            key=lambda m: m.values.size,
        )
        held = mask_of(question, home.clique, dict(zip(home.clique, home.values.shape, strict=True)))
        return float(np.sum(held * home.values)), home.sigma * sqrt(float(held.sum()))


def ask(curator: Curator, project: Project, budget: Budget, *, direct: bool = False) -> Answers:
    """Measure the project's questions and counts with ``budget``.

    Questions are asked directly or through marginals of their columns, whichever has the smaller worst expected error
    according to public figures. ``direct`` forces direct questions. Raises :class:`SizeError`, before anything is
    drawn, for questions that together need too many cells.
    """
    questions, counts = project.question_list.resolve(project.schema)
    split = BudgetSplit.of(project.plan, budget, curator.whole)
    sums = QuestionSums(questions, counts, curator.whole)
    cell = curator.cell_sensitivity
    length = curator.sensitivity_of(sums) / sums.units if questions else 0.0
    cliques: Sequence[Clique] = ()
    if questions and not direct:
        lowered = lower(curator.whole, questions, counts)
        own = length**2 / (length**2 + cell**2 * len(counts))
        asked = direct_errors(len(questions), length, budget.rho * own)
        known = curator.rows is not None
        tables = marginal_errors(lowered, cell, budget.rho, total_known=known)
        if tables is not None and counts:
            most = len(tables[0])
            tables = marginal_errors(lowered, cell, budget.rho * most / (most + len(counts)), total_known=known)
        if tables is not None and not direct_is_better(asked, tables):
            cliques = tables[0]
    vectors = [cell] * len(cliques) or ([length] if questions else [])
    rhos = split.evenly(1.0, [*vectors, *[cell] * len(counts)])
    first, last = rhos[: len(vectors)], rhos[len(vectors) :]
    found = curator.measure_sums(sums, first[0], "questions") if questions and not cliques else None
    marginals = curator.measure(dict(zip(cliques, first, strict=True)), "questions") if cliques else []
    histograms = []
    for count, rho in zip(counts, last, strict=True):
        told = curator.measure_sums(CountHistogram(count, curator.whole), rho, "counts")
        histograms.append(Measurement((count.name,), told.values, told.sigma, rho, "counts"))
    return Answers(questions, counts, found, tuple(marginals), tuple(histograms), curator.noise)


def fit_beside(method: Fit, curator: Curator, plan: Project, frame: Frame, report: Report = silent) -> Asked:
    """Run ``method`` and the questions, each with its share of the budget, and return the combined fit."""
    share, whole = plan.plan.question_share, curator.budget
    answers = ask(curator, plan, whole.part(share))
    with curator.within(whole.part(1 - share)):
        base = method(curator, plan, frame, part(report, 0.1, 1.0))
    if not isinstance(base, Marginals):
        raise TypeError("questions can only be measured in addition to marginals")
    return Asked(base, answers, tuple(scopes_of(plan).values()))


@dataclass(frozen=True)
class Asked:
    """Marginals of a method with answers to questions and counts, all fitted together.

    ``scopes`` are the columns that each question or count joins. With ``projected``, the fit also reports the smallest
    L∞ correction of the answers, whatever their number (`espalier.core.models.question_fit.projection`).
    """

    base: Marginals
    answers: Answers
    scopes: tuple[Clique, ...]
    projected: bool = False

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """Sets of columns that were measured together, each once."""
        return tuple(dict.fromkeys([*self.base.cliques, *(m.clique for m in self.answers.marginals)]))

    @property
    def features(self) -> tuple[str, ...]:
        """Columns measured with a target."""
        return self.base.features

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of columns that were measured together, or that a constraint, one question or one count joins."""
        return tuple(dict.fromkeys([*self.base.edges, *clique_edges(self.cliques), *links_of(self.scopes)]))

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All marginals except those of counts."""
        return (*self.base.measurements, *self.answers.marginals)

    @cached_property
    def lowered(self) -> Lowered:
        """Hidden columns for the counts, and for the questions that were asked directly."""
        questions = self.answers.questions if self.answers.direct else ()
        return lower(self.base.sizes, questions, self.answers.counts, (*self.cliques, *self.base.impossible))

    def size(self, max_cells: int, further: tuple[Clique, ...] = ()) -> Size:
        """Return the model's cost; raise :class:`SizeError` above ``max_cells``, naming columns or questions."""
        base = self.base.size(max_cells, further)
        held = (*self.cliques, *self.base.impossible, *further)
        cost = check_cost(self.lowered, held, max_cells=max_cells)
        drawn = base.measured_cells + self.answers.numbers + sum(m.values.size for m in self.answers.marginals)
        whole = predict_size(self.lowered.sizes, (*self.lowered.cliques, *held), noisy=False)
        seconds = base.seconds + (cost.seconds if self._jointly else whole.seconds)
        return replace(
            base,
            cells=cost.cells,
            measured_cells=drawn,
            bytes=8 * (8 * cost.cells + 4 * drawn),
            seconds=seconds,
            treewidth=cost.treewidth,
        )

    @property
    def _jointly(self) -> bool:
        """True if anything other than marginals was measured."""
        return self.answers.direct is not None or bool(self.base.merged)

    def total(self) -> float:
        """Number of rows, either public or estimated from the noisy counts."""
        rows = self.base.rows
        return float(rows) if rows is not None else estimate_total([*self.measurements, *self.answers.histograms])

    def fitted(self, report: Report = silent, smoothing: float | None = None) -> VisibleModel:
        """Return the maximum-entropy model of marginals, counts and answers, each weighted by its noise.

        Without direct questions, `espalier.core.models.graphical.estimate` fits the hidden columns of the counts.
        ``smoothing`` defaults to the smoothing of a release (`smoothing_for`).
        """
        lowered, direct, total = self.lowered, self.answers.direct, self.total()
        marginals = [*self.measurements, *self.answers.histograms]
        if smoothing is None:
            smoothing = smoothing_for(self.measurements, total)
        impossible = [Zeros(clique, mask) for clique, mask in self.base.impossible.items()]
        if not self._jointly:
            inner = estimate(
                lowered.sizes,
                marginals,
                total,
                zeros=(*lowered.zeros, *impossible),
                smoothing=smoothing,
                report=report,
            )
            made = VisibleModel(inner, lowered.visible, lowered.counts)
        else:
            values = np.empty(0) if direct is None else direct.values
            made, fitting = fit_together(
                lowered,
                marginals,
                values,
                1.0 if direct is None else direct.sigma,
                total,
                zeros=impossible,
                merged=self.base.merged,
                smoothing=smoothing,
                report=report,
            )
            answers = lowered.back(fitting.fitted[: len(values)])
            names = [question.name for question in self.answers.questions]
            made = replace(made, fitted=dict(zip(names, answers.tolist(), strict=True)) if direct else {})
        return replace(made, links=self.edges)

    def model(self, report: Report = silent) -> VisibleModel:
        """Return the fitted model with the certificate of the best possible agreement."""
        lowered, direct = self.lowered, self.answers.direct
        made = self.fitted(part(report, 0, 0.9))
        report(0.9, "Computing the best possible agreement with the answers")
        if self.projected or 0 < self.answers.numbers <= CERTIFIED:
            best = self.closest(made)
            made = replace(made, certificate=best.certificate)
            if self.projected and direct is not None:
                closest = lowered.back(best.answers[: len(direct.values)]).tolist()
                made = replace(made, projected=dict(zip(made.fitted, closest, strict=True)))
        return made

    def closest(self, made: VisibleModel) -> Projection:
        """Return the table with the smallest worst deviation from the noisy answers, each in units of its σ.

        The search starts from rows of the fit. With ``projected``, the answers include one-way counts.
        """
        lowered, direct, total = self.lowered, self.answers.direct, self.total()
        ones = [m for m in self.base.measurements if self.projected and not self.base.merged]
        tables = [*self.answers.histograms, *ones]
        network = Network(lowered.sizes, [*lowered.blocks, *(Block(m.clique, None) for m in tables)], lowered.zeros)
        asked = np.empty(0) if direct is None else direct.values[lowered.order]
        noisy = np.concatenate([asked, *(m.values.ravel() for m in tables)])
        scale = [
            np.full(len(asked), direct.sigma if direct else 1.0),
            *(np.full(m.values.size, m.sigma) for m in tables),
        ]
        rng = seeded_by([noisy])
        start: dict[str, Any] = made.inner.sample(COLUMNS, rng)
        return project(
            network, noisy, np.concatenate(scale), max(total, 1.0), start, rng, tolerance=1e-7, max_rounds=50
        )

    def facts(self, project: Project) -> dict[str, Any]:
        """Return the entries that not all plans pay for."""
        return self.base.facts(project)


def _columns(question: Question) -> set[str]:
    return {column for condition in question.alternatives for column in condition}
