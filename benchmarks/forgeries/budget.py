"""Forged budgets: scales, sensitivities, ρ, (ε, δ), units and draws."""

from __future__ import annotations

import math
from dataclasses import replace

from benchmarks.forgeries.case import (
    ROWS,
    Case,
    Files,
    first,
    kind,
    one,
)
from espalier.core.privacy.draws import Draw
from espalier.core.privacy.spending import Spending
from espalier.core.release import Release


@kind("budget")
def sigma_stated_too_small(case: Case) -> Files | None:
    at = first(case, "count")
    made = one(case, at, scale=case.honest.spending.draws[at].scale / 2)
    return made.files if made else None


@kind("budget")
def sigma_stated_too_large(case: Case) -> Files | None:
    at = first(case, "count")
    made = one(case, at, scale=case.honest.spending.draws[at].scale * 2)
    return made.files if made else None


@kind("budget")
def scale_of_a_choice_halved(case: Case) -> Files | None:
    at = first(case, "choice")
    made = one(case, at, scale=case.honest.spending.draws[at].scale / 2) if at >= 0 else None
    return made.files if made else None


@kind("budget")
def rho_of_a_draw_understated(case: Case) -> Files | None:
    at = first(case, "count")
    made = one(case, at, rho=case.honest.spending.draws[at].rho / 10)
    return made.files if made else None


@kind("budget")
def sensitivity_too_small(case: Case) -> Files | None:
    def change(_: int, d: Draw) -> Draw:
        return replace(d, sensitivity=1.0, rho=d.rho / 2) if d.kind == "count" else d

    return case.drawn(change).files


@kind("budget")
def sensitivity_of_one_draw_too_small(case: Case) -> Files | None:
    d = case.honest.spending.draws[at := first(case, "count")]
    made = one(case, at, sensitivity=d.sensitivity / 2, rho=d.rho / 4)
    return made.files if made else None


@kind("budget")
def recipe_of_a_smaller_sensitivity(case: Case) -> Files | None:
    at = first(case, "choice")
    if at < 0:
        return None
    d = case.honest.spending.draws[at]
    made = one(case, at, recipe="worst-question", given=(), sensitivity=1.0, rho=0.5 / d.scale**2)
    return made.files if made else None


@kind("budget")
def feature_score_called_edge_score(case: Case) -> Files | None:
    at = next((i for i, d in enumerate(case.honest.spending.draws) if d.recipe == "feature-score"), -1)
    if at < 0:
        return None
    d = case.honest.spending.draws[at]
    made = one(case, at, recipe="edge-score", given=(), sensitivity=2.0, rho=2 / d.scale**2)
    return made.files if made else None


@kind("budget")
def epsilon_promised_too_small(case: Case) -> Files:
    budget = replace(case.honest.budget, epsilon=0.5)
    return case.made(budget=budget, project=case.replanned(epsilon=0.5)).files


@kind("budget")
def delta_promised_too_small(case: Case) -> Files:
    budget = replace(case.honest.budget, delta=1e-12)
    return case.made(budget=budget, project=case.replanned(delta=1e-12)).files


@kind("budget")
def delta_too_large(case: Case) -> Files:
    budget = replace(case.honest.budget, delta=0.1)
    return case.made(budget=budget, project=case.replanned(delta=0.1)).files


@kind("budget")
def epsilon_spent_altered(case: Case) -> Files:
    made = case.honest.to_json()
    made["spent"] = {**made["spent"], "epsilon": made["spent"]["epsilon"] / 2}
    forged = case.made()
    forged.__dict__["_facts"] = made
    return forged.files


@kind("budget")
def rho_spent_altered(case: Case) -> Files:
    made = case.honest.to_json()
    made["spent"] = {**made["spent"], "rho": made["spent"]["rho"] / 2}
    forged = case.made()
    forged.__dict__["_facts"] = made
    return forged.files


@kind("budget")
def unit_called_add_remove(case: Case) -> Files:
    return case.made(project=case.replanned(neighbors="add-remove", rows=ROWS), counted=None).files


@kind("budget")
def five_rows_per_person_called_protected(case: Case) -> Files:
    project = replace(case.honest.project, one_row_per_person="unasked")
    return case.made(project=replace(project, plan=project.plan.changed(rows_per_person=5))).files


@kind("budget")
def number_of_rows_inflated(case: Case) -> Files:
    def change(_: int, d: Draw) -> Draw:
        if d.recipe != "feature-score":
            return d
        less = (3 + 2 / 1e6) / (3 + 2 / ROWS)
        return replace(d, given=(("rows", 10**6),), sensitivity=d.sensitivity * less, rho=d.rho * less**2)

    return case.drawn(change, counted=10**6, fitted=replace(case.fitted, rows=10**6)).files


@kind("budget")
def a_count_removed_from_the_draws(case: Case) -> Files:
    at = first(case, "count")
    return case.drawn(lambda i, d: None if i == at else d).files


@kind("budget")
def a_choice_removed(case: Case) -> Files | None:
    at = first(case, "choice")
    return None if at < 0 else case.drawn(lambda i, d: None if i == at else d).files


def all_choices_removed(case: Case) -> Release | None:
    """Return the release without its choices, stating the ε that the other draws cost."""
    from espalier.core.privacy.accounting import epsilon_of

    if first(case, "choice") < 0:
        return None
    forged = case.drawn(lambda _, d: None if d.kind == "choice" else d)
    epsilon = epsilon_of(forged.spending.rho, 1e-6) * (1 + 1e-6)
    budget = replace(case.honest.budget, epsilon=epsilon, rho=forged.spending.rho)
    return replace(forged, budget=budget, project=case.replanned(epsilon=epsilon))


@kind("budget")
def all_choices_removed_and_epsilon_lowered(case: Case) -> Files | None:
    made = all_choices_removed(case)
    return made.files if made else None


@kind("budget")
def two_draws_called_parallel(case: Case) -> Files:
    from espalier.core.evaluation.private.evaluation import PrivateEvaluation

    draws = [d for d in case.honest.spending.draws if d.kind == "count"][:2]
    found = [next(m for m in case.fitted.measurements if m.clique == d.columns) for d in draws]
    held = tuple(replace(d, held_out=True) for d in draws)
    judged = PrivateEvaluation(0.1, "row", None, 300, math.fsum(d.rho for d in held), tuple(found), (), held)
    forged = case.drawn(lambda _, d: None if any(d is x for x in draws) else d, private_evaluation=judged)
    return replace(forged, project=case.replanned(private_evaluation=0.1)).files


@kind("budget")
def a_choice_called_parallel(case: Case) -> Files | None:
    from espalier.core.evaluation.private.evaluation import PrivateEvaluation

    at = first(case, "choice")
    if at < 0:
        return None
    held = (replace(case.honest.spending.draws[at], held_out=True),)
    judged = PrivateEvaluation(0.1, "row", None, 300, held[0].rho, (), (), held)
    forged = case.drawn(lambda i, d: None if i == at else d, private_evaluation=judged)
    return replace(forged, project=case.replanned(private_evaluation=0.1)).files


@kind("budget")
def a_free_threshold_added(case: Case) -> Files:
    d = case.honest.spending.draws[0]
    slip = replace(d, kind="schema", what="categories", recipe="threshold", given=(("threshold", 2),), delta=1e-9)
    draws = [*case.honest.spending.draws, replace(slip, rho=1e-9)]
    return case.made(spending=Spending(1.0, draws)).files


@kind("budget", detectable=False, why="under basic accounting the verifier does not know each draw's share")
def choices_removed_under_basic_accounting(case: Case) -> Files | None:
    made = all_choices_removed(case)
    return None if made is None else replace(made, project=made.project.with_plan(accounting="basic")).files
