"""The private test of the drawing beside any method: what is tested, what it costs, and what came out.

The statements are chosen from the drawing and public numbers alone. Their counts are bought from the rows that the
release is made from, after the hold-out and the limit per person, for a share of the budget; the method divides what is
left and never sees them. Everything after the counts is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from espalier.core.analysis.independence_test import LARGEST_NOTICED, Tested, judged
from espalier.core.analysis.null import Counts, Null
from espalier.core.analysis.strength import POWER, noticed, power
from espalier.core.errors import ProjectError
from espalier.core.graph.separations import Separation
from espalier.core.graph.statements import check_statement, statements
from espalier.core.methods import planned_effect
from espalier.core.methods.select.allocation import BudgetSplit
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.draws import Measurement
from espalier.core.project.file import Project

POOL = "test of the drawing"
LEVEL = 0.05
"""The chance of any false alarm, over all statements of a release."""


@dataclass(frozen=True)
class Test:
    """One ``statement`` with its noisy ``counts``; ``predicted`` is the smallest odds ratio that would be noticed four
    times in five, by even margins and public numbers (None: not even one of 100, or n is not known)."""

    statement: Separation
    counts: Measurement
    predicted: float | None


@contextmanager
def tested(curator: Curator, project: Project) -> Iterator[tuple[Test, ...]]:
    """Buy the counts of the plan's statements; while it lasts, a method is told what is left of the budget.

    Raises :class:`ProjectError` for a statement that the drawing does not imply.
    """
    plan, whole = project.plan, curator.budget
    if not plan.test_drawing:
        yield ()
        return
    chosen = _chosen(curator, project)
    if not chosen:
        yield ()
        return
    found = []
    for statement in chosen:  # bought one by one, so that each has noise of its own
        rhos = _price(curator, project, statement, len(chosen))
        (counts,) = curator.measure(rhos, POOL)
        likely = None
        if curator.rows:
            likely = noticed(_even(project, statement, curator.rows, counts.sigma), LEVEL / len(chosen))
        found.append(Test(statement, counts, likely))
    with curator.within(whole.part(1 - plan.test_drawing)):
        yield tuple(found)


def statements_of(project: Project) -> tuple[Separation, ...]:
    """What a plan asks to test: its list, or as many implied independences, target and treatment first.

    Raises :class:`ProjectError`.
    """
    plan, schema = project.plan, project.schema
    if not project.dag.edges:
        raise ProjectError("there is no drawing to test: draw arrows on the Structure page", key="test_drawing")
    if isinstance(plan.statements, int):
        effect = planned_effect(plan)
        first = [name for name in (plan.target, effect.treatment if effect else None) if name is not None]
        return statements(project.dag, schema.sizes, first, most=plan.statements)
    for statement in plan.statements:
        named = (*statement.left, *statement.right, *statement.given)
        if odd := next((name for name in named if name not in schema), None):
            raise ProjectError(f"plan: statements name {odd!r}, which is not a column", key="statements")
        if why := check_statement(project.dag, statement):
            raise ProjectError(
                f"plan: the statement on {' and '.join(named[:2])} cannot be tested: {why}", key="statements"
            )
        if any(schema[name].size < 2 for name in (*statement.left, *statement.right)):
            raise ProjectError(f"plan: {' or '.join(named[:2])} has only one value", key="statements")
    return plan.statements


def _chosen(curator: Curator, project: Project) -> tuple[Separation, ...]:
    """The plan's statements; of those that were not listed, the ones that so many rows could tell anything about.

    The largest that could not goes first, as each that goes leaves more budget to the others.
    """
    found = list(statements_of(project))
    if not isinstance(project.plan.statements, int) or not curator.rows:
        return tuple(found)
    delta = curator.unit.count_sensitivity

    def tells(statement: Separation) -> bool:
        (rho,) = _price(curator, project, statement, len(found)).values()
        null = _even(project, statement, curator.rows or 1, delta / math.sqrt(2 * rho))
        return power(null, LARGEST_NOTICED, LEVEL / len(found)) >= POWER

    def cells(statement: Separation) -> int:
        return math.prod(_shape(project, statement))

    while found:
        silent = [s for s in found if not tells(s)]
        if not silent:
            break
        found.remove(max(silent, key=cells))
    return tuple(found)


def _price(curator: Curator, project: Project, statement: Separation, of: int) -> dict[tuple[str, ...], float]:
    budget = BudgetSplit.of(project.plan.changed(allocation="auto"), curator.budget, curator.whole)
    clique = project.schema.clique((*statement.left, *statement.right, *statement.given))
    return budget.split(project.plan.test_drawing / of, [clique])


def _shape(project: Project, statement: Separation) -> tuple[int, int, int]:
    sizes = project.schema.sizes
    return sizes[statement.left[0]], sizes[statement.right[0]], math.prod(sizes[n] for n in statement.given)


def _even(project: Project, statement: Separation, rows: int, sigma: float) -> Null:
    return Null.uniform(_shape(project, statement), rows, sigma, project.plan.rows_per_person)


def outcome(project: Project, tests: Sequence[Test], rng: np.random.Generator) -> tuple[tuple[Test, Tested], ...]:
    """Each test with what came out of it, all judged together."""
    schema, tables = project.schema, []
    for test in tests:
        names, clique = (*test.statement.left, *test.statement.right, *test.statement.given), test.counts.clique
        values = np.transpose(test.counts.values, [clique.index(name) for name in names])
        ends = [schema[name] for name in names[:2]]
        ordered = all(c.size == 2 or (c.kind != "categorical" and not c.missing) for c in ends)
        values = values.reshape(*values.shape[:2], -1)
        tables.append(Counts(values, test.counts.sigma, project.plan.rows_per_person, ordered))
    return tuple(zip(tests, judged(tables, rng, LEVEL), strict=True)) if tables else ()


def test_facts(found: Sequence[tuple[Test, Tested]]) -> dict[str, Any]:
    """The section of ``release.json``."""
    out = []
    for test, result in found:
        s, strong = test.statement, result.strength
        out.append(
            {
                **s.to_json(),
                "sentence": result.sentence(s.left[0], s.right[0], s.given, LEVEL),
                "strength": {"of": strong.kind, "value": strong.value, "low": strong.low, "high": strong.high},
                "p": result.p,
                "p_adjusted": result.adjusted,
                "contradicted": result.contradicted(LEVEL),
                "enough_rows": result.telling,
                "noticed": result.noticed,
                "predicted": test.predicted,
                "sigma": test.counts.sigma,
                "rho": test.counts.rho,
                "cells": int(test.counts.values.size),
            }
        )
    return {"level": LEVEL, "statements": out}


def sentences(section: Mapping[str, Any]) -> list[str]:
    """What came out, in words: the strength of each first."""
    return [one["sentence"] for one in section["statements"]]


def predicted(test: Test) -> str:
    """What a plan may expect of one test, in words."""
    s = test.statement
    given = f" given {' and '.join(s.given)}" if s.given else ""
    pair = f"{s.left[0]} and {s.right[0]}{given}"
    if test.predicted is None:
        return f"{pair}: not even an odds ratio of 100 would be noticed, or n is not known"
    return f"{pair}: an odds ratio of {test.predicted:.1f} would be noticed four times in five, were margins even"
