"""Preview of a plan: its frame, every draw with its price, its sizes and its warnings. Reads no data.

The method itself is run against a :class:`~espalier.core.privacy.rehearsal.Rehearsal`, so the preview and the release
use the same arithmetic.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from espalier.core.analysis.drawing import POOL, Test, predicted
from espalier.core.analysis.noisy_counts import NoisyCounts
from espalier.core.analysis.planned_analyses import Analysed, epsilon_needed, epsilons
from espalier.core.display import card
from espalier.core.errors import EspalierError, ProjectError, SizeError
from espalier.core.evaluation.private.evaluation import PrivateFigure
from espalier.core.evaluation.private.held_out import rehearse
from espalier.core.graph.separations import Clique
from espalier.core.methods import METHODS, Frame, frame_of, method_of
from espalier.core.methods.base import DrawnFamilies, Fitted, TrainedPairs
from espalier.core.methods.embedding import SECONDS, Embedded
from espalier.core.models.graphical import Size
from espalier.core.planning.budget_lines import Line, grouped, lines_of
from espalier.core.planning.duration import seconds_of
from espalier.core.planning.error_bounds import ErrorBounds, error_bounds_of
from espalier.core.planning.expectation import Assumed, Purpose
from espalier.core.planning.expected_answers import Expected
from espalier.core.planning.expected_answers import expected as expected_answers
from espalier.core.planning.hierarchies import Foreseen, foreseen
from espalier.core.planning.memory import Memory
from espalier.core.planning.noise import noise_of
from espalier.core.planning.plan_warnings import warnings_of
from espalier.core.planning.procedure import carry_out
from espalier.core.planning.regression_needs import Need, check_fence, needs
from espalier.core.planning.verdict import Verdict, verdict_of
from espalier.core.privacy.accounting import Budget, epsilon_of, guess_right, round_up, total_up
from espalier.core.privacy.bought_schema import Part, budget_of, refuse_filled
from espalier.core.privacy.contribution import held_rows, public_rows
from espalier.core.privacy.curator import Curator, Impossible
from espalier.core.privacy.draws import Draw
from espalier.core.privacy.rehearsal import Rehearsal
from espalier.core.privacy.spending import Spending
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project

NAMED = 2
"""Maximum number of methods suggested in an error message if a plan's questions do not fit."""


_UNMET = "This plan does not meet that need, even if the values are spread evenly."

UNRATED = (
    "This method measures means and correlations of numbers, and the effect of their noise is not known before "
    "the release. Choose private evaluation to see afterwards how well the table predicts."
)
"""Text shown instead of a verdict for a method that sums numbers."""


@dataclass(frozen=True)
class Preview:
    """A rehearsed plan. ``features`` is the number of columns measured with a target, ``bounds`` the theoretical error
    bounds (None if n is not known).

    ``private_evaluation`` lists the draws on the held-out part, which are not included in ``lines`` and ``spent``.
    ``expected`` lists the private figures with intervals of the expected width; it is empty if n is not known.
    ``asked`` has the expected error of each answer to a question or count. ``families`` describes, if the method
    determines it, the model of each column given its causes in the drawing.
    """

    project: Project
    budget: Budget
    frame: Frame
    lines: tuple[Line, ...]
    size: Size
    spent: float
    forest: bool
    warnings: tuple[str, ...]
    features: int
    bounds: ErrorBounds | None
    memory: Memory
    """Peak memory of the release, in bytes."""
    private_evaluation: tuple[Line, ...] = ()
    expected: tuple[PrivateFigure, ...] = ()
    asked: tuple[Expected, ...] = ()
    delta: float = 0.0
    """δ₀ of all draws, including those on the held-out part."""
    tests: tuple[Test, ...] = ()
    """Planned test of the drawing, on made-up counts."""
    analyses: tuple[Analysed, ...] = ()
    """Planned analyses, each with its promise."""
    needs: tuple[Need, ...] = ()
    """Data that the bought regressions need; empty if n is not known."""
    apart: tuple[Foreseen, ...] = ()
    """Codes that the release will distinguish in columns with a hierarchy."""
    stage: str = ""
    """Cost and detection limit of a second stage for whole rows; empty without a second stage."""
    families: tuple[str, ...] = ()
    verdict: Verdict | None = None
    """Verdict on the plan. It concerns the noise of counts, so it is None if nothing is counted or the method sums
    numbers, and also if the number of rows is neither known nor declared.
    """

    @property
    def pools(self) -> dict[str, float]:
        """ρ by pool, in the order of spending."""
        out: dict[str, float] = {}
        for line in self.lines:
            out[line.pool] = total_up((out.get(line.pool, 0.0), line.rho))
        return out

    @property
    def lacks_rows(self) -> bool:
        """True if the only reason for a missing verdict is that the number of rows is neither known nor declared."""
        capabilities = method_of(self.project.plan).capabilities
        rated = capabilities.questions != "alone" and not capabilities.numbers
        return rated and self.bounds is None and self.project.plan.rows is None

    @property
    def unrated(self) -> str:
        """Reason why there is no verdict although n may be known; empty for a method that supports verdicts."""
        return UNRATED if method_of(self.project.plan).capabilities.numbers else ""

    @property
    def analyses_epsilon(self) -> float | None:
        """ε that this plan needs for all desired half-widths; `None` if it has too few rows for them."""
        return epsilon_needed(self.analyses, self.budget)

    @property
    def alone(self) -> dict[str, float]:
        """ε of each pool at the plan's δ, as if nothing else were spent. These add up to ε only under a pure budget."""
        if not self.budget.pure:
            return {pool: epsilon_of(rho, self.budget.delta) for pool, rho in self.pools.items()}
        out: dict[str, float] = {}
        for line in self.lines:
            out[line.pool] = total_up((out.get(line.pool, 0.0), line.epsilon or 0.0))
        return out

    def _repr_html_(self) -> str:
        b = self.budget
        rows = [
            (f"{n} × {x.what}" if n > 1 else x.what, x.pool, f"{x.sigma:.1f}", round_up(x.rho, 3))
            for n, x in grouped(self.lines)
        ]
        said = [f"ε = {b.epsilon:g}, δ = {b.delta:.3g}: ρ = {b.rho:.4g}. Reads no data.", *self.warnings]
        title = f"Plan of {self.project.name}: {method_of(self.project.plan).title}"
        return card(title, said, ("what is bought", "pool", "σ (rows)", "ρ (each)"), rows)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, for the command line."""
        b = self.budget
        return {
            "epsilon": b.epsilon,
            "delta": b.delta,
            "rho": b.rho,
            "spent": self.spent,
            "guess_right": guess_right(b.epsilon, b.delta),
            "unit": self.project.unit_facts(),
            "pools": self.pools,
            "pools_alone": self.alone,
            "lines": [vars(line) for line in self.lines],
            "looking": [vars(line) for line in self.private_evaluation],
            "looking_expected": [f.to_json() for f in self.expected],
            "separations": [s.to_json() for s in self.frame.separations],
            **({"told_apart": [one.to_json() for one in self.apart]} if self.apart else {}),
            **({"asked": [vars(one) for one in self.asked]} if self.asked else {}),
            "bounds": self.bounds.to_json() if self.bounds else None,
            "features": self.frame.features,
            "refused": self.frame.refused,
            "cells": self.size.cells,
            "bytes": self.size.bytes,
            "memory": self.memory.to_json(),
            **({"treewidth": self.size.treewidth} if self.size.treewidth else {}),
            "seconds": self.size.seconds,
            **({"test_drawing": [predicted(test) for test in self.tests]} if self.project.plan.test_drawing else {}),
            **({"analyses": [one.plan() for one in self.analyses]} if self.analyses else {}),
            **epsilons(self.analyses, self.budget),
            **({"regression_needs": [one.to_json() for one in self.needs]} if self.needs else {}),
            "forest": self.forest,
            **({"embedding": self.stage} if self.stage else {}),
            **({"families": list(self.families)} if self.families else {}),
            "warnings": self.warnings,
            "verdict": self.verdict.to_json() if self.verdict else None,
        }


def preview(project: Project, rows: int | None = None, assumed: Mapping[str, float] | None = None) -> Preview:
    """Return the preview of a project; ``rows`` is n if it is known and public.

    ``assumed`` are assumptions of the verdict that differ from the usual ones
    (:class:`~espalier.core.planning.verdict.Assumed`).

    Raises :class:`EspalierError` for a conflict, a missing δ, or a plan too large for ``plan.max_cells``. If its
    questions make it too large, the error names methods that can answer them.

    >>> import espalier as es, pandas as pd
    >>> frame = pd.DataFrame({"smoker": ["yes", "no"] * 500, "sick": ["yes", "no", "no", "no"] * 250})
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in frame]
    >>> project = es.Project("clinic", es.Schema(tuple(columns)), es.Plan("mst", epsilon=1, delta=1e-6))
    >>> [line.what for line in es.preview(project, rows=1000).lines]
    ['counts of smoker', 'counts of sick', 'counts of smoker × sick']
    """
    try:
        return _preview(project, rows, assumed)
    except SizeError as error:
        able = ", ".join(itertools.islice(_fitting(project, rows), NAMED)) if "questions" in error.data else ""
        if not able:
            raise
        raise SizeError(f"{error} Or choose a method that can answer them: {able}.", **error.data) from None


def _fitting(project: Project, rows: int | None) -> Iterator[str]:
    """Return the methods that could answer the project's questions within its ``max_cells``, with everything else
    unchanged.
    """
    for other in METHODS.values():
        if other.capabilities.questions == "beside" and other.capabilities.links and other.name != project.plan.method:
            try:
                _preview(project.with_plan(method=other.name), rows)
            except EspalierError:
                continue
            yield other.name


@dataclass(frozen=True)
class _NoRows:
    """Rows of a rehearsal, none of which is read; ``rows`` is their number if it is known."""

    rows: int | None
    schema_spending: Spending

    def describe(self, project: Project, parts: Sequence[Part]) -> Project:
        """Pay for the schema and return the project unchanged."""
        self.schema_spending.debit(part.draw for part in parts)
        return project

    def curator(self, project: Project, budget: Budget, impossible: Impossible) -> Curator:
        """Return a curator that answers without rows."""
        unit = Unit(project.plan.neighbors, project.plan.rows_per_person)
        return Rehearsal(project.schema.sizes, unit, budget, self.rows, impossible)


def _preview(project: Project, rows: int | None, assumed: Mapping[str, float] | None = None) -> Preview:
    project.schema.need_distinct()
    project.need_unit()
    plan, method, sizes = project.plan, method_of(project.plan), project.schema.sizes
    if plan.schema_share:
        refuse_filled(project)  # checked before asking for a declared total, which would not help
    frame = frame_of(project)
    check_fence(project, frame)
    if plan.neighbors == "replace-one":
        rows = public_rows(plan, rows)
    budget = budget_of(project, Budget.of(plan, rows))
    held, all_rows, of_schema = held_rows(plan, rows), rows or plan.rows, Spending.of(budget)
    rows = None if rows is None else rows - held
    carried = carry_out(project, budget, frame, _NoRows(rows, of_schema))
    curator, fitted = carried.curator, carried.fitted
    counted = NoisyCounts.of(fitted)
    if plan.copies and (counted is None or counted.in_part):
        raise ProjectError(
            "copies are fitted to noisy counts of marginals, but this plan measures none: set copies to 0, or "
            "change the method or the questions",
            key="copies",
        )
    size = fitted.size(plan.max_cells, method.limits.largest(project, frame)).at_least(method.limits.cells(project))
    size = size.chosen(method.limits.fits(project), sizes)
    forest = _parts([name for name, size in sizes.items() if size > 1], fitted.edges) > 1
    draws = curator.spending.draws
    size = replace(size, seconds=seconds_of(size, draws, rows, len(sizes), method.limits.fits(project)))
    stage = ""
    if isinstance(fitted, Embedded):
        stage = fitted.stage(rows or plan.rows, plan)
        size = replace(size, seconds=size.seconds + SECONDS * (1 + plan.copies))
    bounds = error_bounds_of(draws, rows, plan) if rows else None
    lines = tuple(lines_of([*of_schema.draws, *draws], rows, bounds))
    more = warnings_of(project, frame, budget, forest, rows, lines)
    wanted = tuple(needs(carried.regressions, project.schema, rows)) if rows else ()
    more += [f"{one.sentence} {_UNMET}" for one in wanted if not one.met]
    warnings = (*frame.warnings, *method.guidance.advice(project), *more)
    spent, features = curator.spending.rho, len(fitted.features)
    shown = Preview(
        project,
        budget,
        frame,
        lines,
        size,
        total_up((of_schema.rho, spent)),
        forest,
        warnings,
        features,
        bounds,
        Memory.of(project.schema, plan, size, all_rows),
        asked=expected_answers(fitted),
        delta=total_up((of_schema.delta, curator.spending.delta)),
        tests=carried.tests,
        apart=foreseen(project.schema, of_schema.draws, rows),
        analyses=carried.analyses,
        stage=stage,
        families=fitted.becomes if isinstance(fitted, DrawnFamilies) else (),
        needs=wanted,
        verdict=_verdict(project, budget, draws, rows or plan.rows, fitted, assumed or {}),
    )
    if not plan.private_evaluation:
        return shown
    bought, expected = rehearse(project, replace(budget, rho=spent), held or None)
    delta = total_up((shown.delta, *(draw.delta for draw in bought)))
    return replace(shown, private_evaluation=tuple(lines_of(bought, held or None)), expected=expected, delta=delta)


def _verdict(
    project: Project,
    budget: Budget,
    draws: Sequence[Draw],
    rows: int | None,
    fitted: Fitted,
    assumed: Mapping[str, float],
) -> Verdict | None:
    """Return the verdict on the plan for ``rows`` rows, a public or declared number."""
    plan, method = project.plan, method_of(project.plan)
    if rows is None or method.capabilities.questions == "alone" or method.capabilities.numbers:
        return None
    target, sizes = plan.target if method.capabilities.links else None, project.schema.sizes
    trained = fitted.trained_pairs if isinstance(fitted, TrainedPairs) else None
    noise = noise_of([d for d in draws if d.pool != POOL], sizes, rows, target, bool(fitted.features), trained)
    purpose: Purpose = "outcome" if method.capabilities.targets or method.fenced(plan) else "pairs"
    if noise is None:
        return None
    declared = {} if plan.rarer is None else {"rarer": plan.rarer}
    believed = Assumed(rows, **{**declared, **assumed})
    roles, causes = project.roles, project.dag.parents(plan.target) if plan.target else ()
    needed = {*roles.outcome, *roles.protected, *roles.admissible, *causes}
    return verdict_of(noise, purpose, budget.epsilon, budget.delta, believed, needed)


def _parts(names: list[str], edges: Iterable[Clique]) -> int:
    """Return the number of connected components of the model's graph."""
    part = {name: {name} for name in names}
    for clique in edges:
        joined = set().union(*(part[name] for name in clique if name in part))
        part.update(dict.fromkeys(joined, joined))
    return len({id(p) for p in part.values()})
