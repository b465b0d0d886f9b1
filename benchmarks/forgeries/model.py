"""Forged models, and separations that they do not keep."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.forgeries.case import (
    Case,
    Files,
    kind,
)
from espalier.core.graph.separations import Clique
from espalier.core.models.graphical import GraphicalModel


def exact_model(case: Case) -> Any:
    """Return the method's fit to exact counts."""
    counts = tuple(replace(m, values=case.exact(m.clique)) for m in case.fitted.measurements)
    return replace(case.fitted, measurements=counts).model()


@kind("model")
def a_model_refitted_to_exact_counts(case: Case) -> Files:
    return case.refitted(exact_model(case)).files


@kind("model")
def a_model_halfway_to_exact_counts(case: Case) -> Files:
    counts = tuple(replace(m, values=(m.values + case.exact(m.clique)) / 2) for m in case.fitted.measurements)
    return case.refitted(replace(case.fitted, measurements=counts).model()).files


@kind("model")
def a_model_with_less_noise_believed(case: Case) -> Files:
    counts = tuple(replace(m, sigma=m.sigma / 2) for m in case.fitted.measurements)
    return case.refitted(replace(case.fitted, measurements=counts).model()).files


@kind("model")
def the_model_of_another_release(case: Case) -> Files:
    return case.refitted(case.other.model).files


def bent(model: GraphicalModel, clique: Clique, by: float) -> GraphicalModel:
    """Return the model with one potential changed in one cell, or a new one."""
    tables = dict(model.potentials)
    old = tables.get(clique)
    new = np.zeros([model.sizes[n] for n in clique]) if old is None else old.copy()
    new.flat[0] += by
    cliques = model.cliques if clique in model.cliques else (*model.cliques, clique)
    return replace(model, potentials={**tables, clique: new}, cliques=cliques)


@kind("model")
def a_potential_changed_in_one_cell(case: Case) -> Files:
    model: Any = case.honest.model
    return case.refitted(bent(model, max(model.potentials, key=len), 0.5)).files


@kind("model")
def an_edge_across_the_fence(case: Case) -> Files:
    model: Any = case.honest.model
    made = case.refitted(bent(model, ("c", "g"), 0.3))
    if not case.honest.plan_frame.separations:
        return made.files
    facts = {**made.to_json(), "separations": case.honest.to_json()["separations"]}
    made.__dict__["_facts"] = facts
    return made.files


@kind("model")
def an_edge_that_was_not_counted(case: Case) -> Files | None:
    model: Any = case.honest.model
    held = {frozenset(q) for q in model.potentials}
    free = [q for q in itertools.combinations("abdefh", 2) if not any(set(q) <= h for h in held)]
    return case.refitted(bent(model, free[0], 0.5)).files if free else None


@kind("model")
def a_model_of_more_rows(case: Case) -> Files:
    model: Any = case.honest.model
    return case.made(model=replace(model, total=2.0 * model.total)).files


@kind("model")
def a_separation_that_is_not_kept(case: Case) -> Files:
    made = case.made()
    facts = made.to_json()
    linked = facts["edges"][0]
    facts["separations"] = [
        *facts["separations"],
        {"left": [linked[0]], "right": [linked[1]], "given": [], "holds": True, "how": "exact", "why": "stated"},
    ]
    made.__dict__["_facts"] = facts
    return made.files
