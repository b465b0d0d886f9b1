"""Test of the independences that the drawing implies among columns that were counted together with their causes. It
uses these counts.

The counts are noisy and already paid for, so the test uses no budget. Only the drawing and public numbers determine
which statements are chosen. Holm's rule bounds the chance of any false alarm.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from espalier.core.analysis.independence_fit import Counts
from espalier.core.analysis.independence_test import holm, p_value
from espalier.core.graph.adjustment import minimal_separators
from espalier.core.graph.separations import Separation
from espalier.core.methods.base import DrawnFamilies
from espalier.core.privacy.draws import Measurement
from espalier.core.project.file import Project

LEVEL = 0.05
"""Chance of any false alarm over all statements of a release."""

MOST = 20
"""Maximum number of statements that are tested. Statements with the least noise come first."""

MOST_PAIRS = 400
"""Maximum number of pairs of columns for which a separating set is sought. The smallest tables come first."""


def family_contradictions(project: Project, fitted: Any) -> dict[str, Any]:
    """Return the section ``drawing_in_families`` of ``release.json``; empty if no statement can be tested."""
    if not isinstance(fitted, DrawnFamilies) or not project.dag.edges:
        return {}
    chosen = _chosen(project, fitted.tables)
    if not chosen:
        return {}
    rng = np.random.default_rng(0)  # the counts are public, and the same release should always give the same p values
    ps = [p_value(_counts(project, statement, table), rng) for statement, table in chosen]
    found = [
        {**statement.to_json(), "p_adjusted": p, "table": list(table.clique)}
        for (statement, table), p in zip(chosen, holm(ps), strict=True)
        if p <= LEVEL
    ]
    return {"drawing_in_families": {"level": LEVEL, "tested": len(chosen), "contradicted": found}}


def _chosen(project: Project, tables: Sequence[Measurement]) -> list[tuple[Separation, Measurement]]:
    """Return one statement for each pair of columns, from the table with the least noise."""
    best: dict[frozenset[str], tuple[float, Separation, Measurement]] = {}
    for statement, table in itertools.islice(_statements(project, tables), MOST_PAIRS):
        noise = table.sigma * math.sqrt(table.values.size)
        pair = frozenset((*statement.left, *statement.right))
        if pair not in best or noise < best[pair][0]:
            best[pair] = (noise, statement, table)
    found = sorted(best.values(), key=lambda entry: entry[0])[:MOST]
    return [(statement, table) for _, statement, table in found]


def _statements(project: Project, tables: Sequence[Measurement]) -> Iterator[tuple[Separation, Measurement]]:
    """Yield each pair of a table's columns that the drawing separates by other columns of the table."""
    dag, sizes = project.dag, project.schema.sizes
    linked = {frozenset(pair) for pair in (*dag.edges, *dag.hidden)}
    for table in sorted(tables, key=lambda m: m.values.size):
        for a, b in itertools.combinations(table.clique, 2):
            if min(sizes[a], sizes[b]) < 2 or frozenset((a, b)) in linked:
                continue
            if sets := minimal_separators(dag.links, a, b, set(table.clique) - {a, b}, sizes):
                given = tuple(n for n in sizes if n in sets[0].columns)
                yield Separation((a,), (b,), given, "the drawing has no arrow between them"), table


def _counts(project: Project, statement: Separation, table: Measurement) -> Counts:
    """Return the counts of a statement's columns, and their noise, which grows with the number of cells in each sum."""
    names = (*statement.left, *statement.right, *statement.given)
    others = tuple(i for i, name in enumerate(table.clique) if name not in names)
    added = math.prod(table.values.shape[i] for i in others)
    kept = [name for name in table.clique if name in names]
    values = np.transpose(table.values.sum(axis=others), [kept.index(name) for name in names])
    shape = (*values.shape[:2], -1)
    return Counts(values.reshape(shape), table.sigma * math.sqrt(added), project.plan.rows_per_person)
