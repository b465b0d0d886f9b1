"""Several plans released side by side and judged alike. Confidential: the figures look at real rows.

It is for samples, for tables that are public, or for an earlier synthetic table that stands in for the real one: each
plan is really carried out. Whoever runs it on a private table spends every plan's budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.evaluation import evaluate
from core.methods import method_of
from core.progress import Report, part, silent
from core.project.file import Project
from core.release.spend import release
from core.tables.table import Table

FIGURES = {
    "auc": "AUC on real rows",
    "accuracy": "accuracy on real rows",
    "r2": "R² of a regression on real rows",
    "gap": "demographic parity difference",
    "one_way_tv": "error of single columns (total variation)",
    "two_way_tv": "error of pairs (total variation)",
}
"""What is compared, and what each is called."""


@dataclass(frozen=True)
class Outcome:
    """One plan's release in figures; ``facts`` are all that :func:`core.evaluation.evaluate` found.

    A figure that cannot be had is None.
    """

    name: str
    method: str
    epsilon: float
    rho: float
    figures: Mapping[str, float | None]
    facts: Mapping[str, Any]

    def row(self) -> dict[str, Any]:
        """As one row of a table."""
        return {"plan": self.name, "method": self.method, "ε": self.epsilon, "ρ": self.rho, **self.figures}


def compare(
    plans: Mapping[str, Project], table: Table, *, holdout: Table | None = None, report: Report = silent
) -> list[Outcome]:
    """Release ``table`` under each of ``plans`` and judge every release on ``holdout``, else on ``table`` itself.

    ``report`` hears of each and cancels by raising. Raises :class:`core.errors.EspalierError` where a plan cannot be
    carried out.
    """
    out = []
    for i, (name, project) in enumerate(plans.items()):
        mine = part(report, i / len(plans), (i + 1) / len(plans))
        mine(0.0, f"Releasing {name}")
        made = release(project, table, part(mine, 0.0, 0.5))
        mine(0.5, f"Judging {name}")
        found = evaluate(project, table, made.synthetic, model=made.model, holdout=holdout, report=part(mine, 0.5, 1.0))
        out.append(outcome(name, project, made.spending.rho, found.to_json()))
    report(1.0, "Compared")
    return out


def outcome(name: str, project: Project, rho: float, facts: Mapping[str, Any]) -> Outcome:
    """One plan's figures out of those that the Diagnostics page shows."""
    fair = facts.get("fairness") or {}
    figures = {
        "auc": facts["tstr"]["auc_synthetic"],
        "accuracy": facts["tstr"]["accuracy_synthetic"],
        "r2": (facts["numbers"] or {}).get("r2_synthetic"),
        "gap": fair.get("demographic_parity_difference"),
        "one_way_tv": facts["fidelity"]["one_way_tv"],
        "two_way_tv": facts["fidelity"]["two_way_tv"],
    }
    plan = project.plan
    return Outcome(name, method_of(plan).title, plan.epsilon, rho, figures, facts)


def best(outcomes: list[Outcome], cost: str) -> set[str]:
    """The plans on the Pareto front of AUC (more is better) against ``cost`` (less is better), by name."""
    known = [(o.name, o.figures["auc"], o.figures[cost]) for o in outcomes]
    full = [(n, a, c) for n, a, c in known if a is not None and c is not None]
    return {n for n, a, c in full if not any((a2 >= a and c2 <= c) and (a2 > a or c2 < c) for _, a2, c2 in full)}
