"""Releases of one table under several plans, all evaluated in the same way. Confidential, because the figures are
computed on real rows.

Each plan is actually carried out, so the comparison is meant for samples, public tables, or an earlier synthetic table
that replaces the real table. Running it on a private table spends every plan's budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from espalier.core.evaluation import evaluate
from espalier.core.methods import method_of
from espalier.core.progress import Report, part, silent
from espalier.core.project.file import Project
from espalier.core.release.spend import release
from espalier.core.tables.table import Table

Z = 1.959963984540054
"""Number of standard deviations within which a normal variable lies with probability 0.95."""
FIGURES = {
    "auc": "TSTR: AUC on real rows",
    "accuracy": "accuracy on real rows",
    "r2": "R² of a regression on real rows",
    "gap": "gap between groups",
    "cmi": "CMI: dependence on protected columns (nats)",
    "one_way_tv": "error of single columns (share of rows)",
    "two_way_tv": "error of pairs (share of rows)",
}
"""The compared figures and their labels."""


@dataclass(frozen=True)
class Outcome:
    """Figures of one plan's release. ``facts`` is the result of :func:`espalier.core.evaluation.evaluate`.

    A figure that cannot be computed is `None`. ``intervals`` (95 %) cover the choice of the tested rows, but not the
    variation between draws of the noise.
    """

    name: str
    method: str
    epsilon: float
    rho: float
    figures: Mapping[str, float | None]
    facts: Mapping[str, Any]
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """Return the outcome as one row of a table."""
        return {"plan": self.name, "method": self.method, "ε": self.epsilon, "ρ": self.rho, **self.figures}


def compare(
    plans: Mapping[str, Project], table: Table, *, holdout: Table | None = None, report: Report = silent
) -> list[Outcome]:
    """Release ``table`` under each of ``plans`` and judge every release on ``holdout``, or on ``table`` itself without
    a holdout.

    ``report`` is called for each release; if it raises, the work is cancelled. Raises
    :class:`espalier.core.errors.EspalierError` if a plan cannot be carried out.
    """
    out = []
    for i, (name, project) in enumerate(plans.items()):
        mine = part(report, i / len(plans), (i + 1) / len(plans))
        mine(0.0, f"Releasing {name}")
        made = release(project, table, part(mine, 0.0, 0.5))
        mine(0.5, f"Judging {name}")
        found = evaluate(project, table, made.synthetic, model=made.model, holdout=holdout, report=part(mine, 0.5, 1.0))
        out.append(outcome(name, project, made.spending.rho, found.to_json()))
    report(1.0, "The comparison is finished")
    return out


def outcome(name: str, project: Project, rho: float, facts: Mapping[str, Any]) -> Outcome:
    """Return the figures of one plan, a selection from those on the Diagnostics page."""
    fair = facts.get("fairness") or {}
    figures = {
        "auc": facts["tstr"]["auc_synthetic"],
        "accuracy": facts["tstr"]["accuracy_synthetic"],
        "r2": (facts["numbers"] or {}).get("r2_synthetic"),
        "gap": fair.get("demographic_parity_difference"),
        "cmi": fair.get("cmi_synthetic"),
        "one_way_tv": facts["fidelity"]["one_way_tv"],
        "two_way_tv": facts["fidelity"]["two_way_tv"],
    }
    plan = project.plan
    tested = (
        {**facts["tstr"], "classes": project.schema[facts["tstr"]["target"]].size} if facts["tstr"]["target"] else {}
    )
    return Outcome(name, method_of(plan).title, plan.epsilon, rho, figures, facts, _intervals(tested))


def _intervals(tested: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Return Wilson's interval for the accuracy and, if the target has two values, Hanley and McNeil's for the AUC."""
    rows, right, area, most = (
        tested.get(key) for key in ("tested_rows", "accuracy_synthetic", "auc_synthetic", "accuracy_baseline")
    )
    out = {}
    if rows and right is not None:
        middle, share = right + Z**2 / (2 * rows), 1 + Z**2 / rows
        half = Z * math.sqrt(right * (1 - right) / rows + Z**2 / (4 * rows**2))
        out["accuracy"] = ((middle - half) / share, (middle + half) / share)
    if rows and area is not None and most is not None and tested.get("classes") == 2:
        one, other = max(1.0, most * rows), max(1.0, (1 - most) * rows)
        twice, square = area / (2 - area), 2 * area**2 / (1 + area)
        spread = area * (1 - area) + (one - 1) * (twice - area**2) + (other - 1) * (square - area**2)
        half = Z * math.sqrt(max(0.0, spread) / (one * other))
        out["auc"] = (max(0.0, area - half), min(1.0, area + half))
    return out


def best(outcomes: list[Outcome], cost: str) -> set[str]:
    """Return the names of the plans on the Pareto front of AUC (higher is better) and ``cost`` (lower is better)."""
    known = [(o.name, o.figures["auc"], o.figures[cost]) for o in outcomes]
    full = [(n, a, c) for n, a, c in known if a is not None and c is not None]
    return {n for n, a, c in full if not any((a2 >= a and c2 <= c) and (a2 > a or c2 < c) for _, a2, c2 in full)}
