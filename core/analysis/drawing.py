"""Private test of the drawing for any method: its statements, their cost, and the results.

Only the drawing and public numbers determine which statements are chosen. Their counts take a share of the budget and
are bought from the rows of the release, after the holdout and the row limit per person. The method divides the rest of
the budget and does not use these counts. Everything after the counts is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from espalier.core.analysis.chosen_statements import MOST_CONTESTED, chosen, contested
from espalier.core.analysis.independence_fit import Counts, Null
from espalier.core.analysis.independence_test import LARGEST_NOTICED, Tested, judged
from espalier.core.analysis.strength import POWER, noticed, power
from espalier.core.errors import ProjectError
from espalier.core.graph.separations import Separation
from espalier.core.graph.statements import check_statement, statements
from espalier.core.methods.select.allocation import BudgetSplit
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.draws import Measurement
from espalier.core.privacy.rehearsal import UNKNOWN_ROWS
from espalier.core.project.file import Project

POOL = "test of the drawing"
MOST_CANDIDATES = 1000
"""Maximum number of statements that are compared. Statements over fewer cells come first."""
LEVEL = 0.05
"""Chance of any false alarm over all statements of a release."""


@dataclass(frozen=True)
class Test:
    """One ``statement`` with its noisy ``counts``.

    ``predicted`` is the smallest odds ratio that the test detects with 80 % power, assuming even margins. It uses only
    public numbers, and is `None` if even an odds ratio of 100 goes undetected or n is private.
    """

    statement: Separation
    counts: Measurement
    predicted: float | None


@contextmanager
def tested(curator: Curator, project: Project) -> Iterator[tuple[Test, ...]]:
    """Buy the counts of the plan's statements. Inside the context, the curator can spend only the rest of the budget.

    Raises :class:`ProjectError` for a statement that the drawing does not imply.
    """
    plan, whole = project.plan, curator.budget
    if not plan.test_drawing:
        yield ()
        return
    bought = _chosen(curator, project)
    if not bought:
        yield ()
        return
    found = []
    for statement in bought:  # bought one by one, so that each has independent noise
        rhos = _price(curator, project, statement, len(bought))
        (counts,) = curator.measure(rhos, POOL)
        likely = None
        if curator.rows:
            likely = noticed(_even(project, statement, curator.rows, counts.sigma), LEVEL / len(bought))
        found.append(Test(statement, counts, likely))
    with curator.within(whole.part(1 - plan.test_drawing)):
        yield tuple(found)


def statements_of(project: Project) -> tuple[Separation, ...]:
    """Return the statements that may be tested: the plan's list, or all implied independences, the smallest first.

    Raises :class:`ProjectError` without a drawing, or for a listed statement that cannot be tested.
    """
    plan, schema = project.plan, project.schema
    if not project.dag.edges:
        raise ProjectError("There is no drawing to test. Draw arrows on the Structure page.", key="test_drawing")
    if isinstance(plan.statements, int):
        return statements(project.dag, schema.sizes, most=MOST_CANDIDATES)
    for statement in plan.statements:
        named = (*statement.left, *statement.right, *statement.given)
        if odd := next((name for name in named if name not in schema), None):
            raise ProjectError(f"plan: statements name {odd!r}, which is not a column.", key="statements")
        if why := check_statement(project.dag, statement):
            raise ProjectError(
                f"plan: the statement about {' and '.join(named[:2])} cannot be tested: {why}", key="statements"
            )
        if any(schema[name].size < 2 for name in (*statement.left, *statement.right)):
            raise ProjectError(f"plan: {' or '.join(named[:2])} has only one value", key="statements")
    return plan.statements


def _chosen(curator: Curator, project: Project) -> tuple[Separation, ...]:
    """Return the statements to buy: the plan's list, or statements that would be false if an absent arrow existed.

    Contested pairs are all tested, up to `MOST_CONTESTED`, even if the plan asks for fewer statements. Statements that
    the plan does not list are candidates only if their test has power. If no test has power, fewer statements share the
    budget. If the number of rows is private, the plan's ``rows`` or a guess replaces it, so that plan and release
    agree.
    """
    candidates = statements_of(project)
    if not isinstance(project.plan.statements, int):
        return candidates
    delta, rows = curator.unit.count_sensitivity, curator.rows or project.plan.rows or UNKNOWN_ROWS
    known: dict[tuple[float, ...], bool] = {}

    def null(statement: Separation, of: int) -> Null:
        (rho,) = _price(curator, project, statement, of).values()
        return _even(project, statement, rows, delta / math.sqrt(2 * rho))

    def powerful(statement: Separation, of: int) -> bool:
        expected = null(statement, of)
        key = (*expected.expected.shape, expected.sigma)
        if key not in known:
            known[key] = power(expected, LARGEST_NOTICED, LEVEL / of) >= POWER
        return known[key]

    wanted = max(project.plan.statements, min(len(contested(project.dag)), MOST_CONTESTED))
    for most in range(min(wanted, len(candidates)), 0, -1):
        if found := [s for s in candidates if powerful(s, most)]:
            return chosen(project.dag, found, partial(null, of=most), LEVEL / most, most)
    return ()


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
    """Return each test with its result. All tests are evaluated together."""
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
    """Return the section ``test_drawing`` of ``release.json``."""
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
    """Return one sentence per statement, each starting with the strength of the association."""
    return [one["sentence"] for one in section["statements"]]


def predicted(test: Test) -> str:
    """Return the plan's sentence about the expected power of one test."""
    s = test.statement
    given = f" given {' and '.join(s.given)}" if s.given else ""
    pair = f"{s.left[0]} and {s.right[0]}{given}"
    if test.predicted is None:
        return (
            f"{pair}: no detectable odds ratio can be stated, because n is private or even an odds ratio of 100 "
            "would go undetected"
        )
    return (
        f"{pair}: with even margins, an odds ratio of {test.predicted:.1f} would be detected four times in five. "
        "With rare categories, only a larger odds ratio would be detected; how much larger cannot be known before the "
        "release"
    )
