"""TSTR for linked tables: the outcome of the next visit is predicted by models trained on synthetic and on real people,
and both are tested on real people. The inputs are the columns of the person and of the previous visit. Real people are
divided at random: two thirds train the real model, and one third tests both. Confidential.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from espalier.core.evaluation import classifier
from espalier.core.project.file import Project
from espalier.core.project.linked import BEFORE
from espalier.core.project.schema import Schema
from espalier.core.tables.panel import Panel
from espalier.core.tables.table import Table

TESTED = 1 / 3
SEED = 20_251_123
FEWEST = 30
"""Minimum number of steps for training and for testing."""


@dataclass(frozen=True)
class NextVisit:
    """AUC of the next visit's ``target``, for models trained on synthetic and on real people."""

    target: str
    auc_synthetic: float | None = None
    auc_real: float | None = None
    tested_steps: int = 0
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``evaluate --json``."""
        return asdict(self)


def outcome_of(project: Project) -> str:
    """Return the column of a visit that is predicted: the plan's target, else the outcome; empty if there is none."""
    assert project.linked is not None
    steps = project.linked.step_columns(project.schema)
    wanted = [project.plan.target, *project.roles.outcome]
    return next((name for name in wanted if name in steps and name in project.schema), "")


def next_visit(project: Project, real: Panel, synthetic: Panel) -> NextVisit:
    """Predict the outcome of the next visit from the person and the previous visit."""
    target = outcome_of(project)
    if not target:
        return NextVisit("", reason="no column of a visit is the target or the outcome")
    held = np.random.default_rng(SEED).random(real.rows) < TESTED
    tested, own, made = (_steps(panel, target) for panel in (real.take(held), real.take(~held), synthetic))
    tested = tested.observed(target)
    if min(tested.rows, own.rows, made.rows) < FEWEST:
        return NextVisit(target, reason=f"fewer than {FEWEST} visits follow a first visit")
    truth = tested.codes[target]
    if len(np.unique(truth)) < 2:
        return NextVisit(target, tested_steps=tested.rows, reason=f"{target} has only one value in the tested visits")
    ours, theirs = (classifier.auc(classifier.fit(t, target).scores(tested), truth) for t in (made, own))
    return NextVisit(target, ours, theirs, tested.rows)


def _steps(panel: Panel, target: str) -> Table:
    """Return all steps as a table: the person, the previous visit, and the target at this visit."""
    assert panel.linked is not None
    link, schema = panel.linked, panel.schema
    before = [name for name in link.step_columns(schema) if name in schema]
    columns = [schema[name] for name in link.person_columns(schema)]
    columns += [replace(schema[name], name=name + BEFORE) for name in before]
    made = Schema((*columns, schema[target]))
    codes = {c.name: panel.steps.cells(c.name) for c in made.columns}
    return Table(made, codes, len(panel.steps.of_person))
