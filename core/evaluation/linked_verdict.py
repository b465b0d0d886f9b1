"""Verdict on linked tables: are visits related to people and to earlier visits as in the real tables?

Each distance is compared with its *floor*, the distance of real people resampled with replacement. Confidential.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from espalier.core.evaluation.linked import figures_of
from espalier.core.evaluation.next_visit import NextVisit, next_visit
from espalier.core.evaluation.verdict import CLOSE, FAR, Grade
from espalier.core.project.file import Project
from espalier.core.tables.panel import Panel

GOOD, POOR = 0.04, 0.10
"""Distances up to which visits count as close, and above which they count as far off. If another sample of the same
people is further away than the first limit, its distance replaces that limit.
"""
RATE_GOOD, RATE_POOR = 0.03, 0.10
"""The same limits for a difference of rates; distinct values are compared as a ratio."""
SEED = 20_251_124

DISTANCES = {
    "next_visit_same": "one column at two consecutive visits",
    "next_visit_any": "pairs of columns at two consecutive visits",
    "transition_error": "a column given its value at the previous visit",
    "visit_pairs": "pairs of columns of a visit",
    "person_visit": "pairs of a person's column and a visit's column",
    "visits_per_person": "the number of visits per person",
}
"""Distances (total variation), each with a description."""
RATES = {
    "echo": "visits that repeat the visit before the previous one",
    "same_first_third": "people with the same value at visits 1 and 3",
    "distinct": "distinct values of a column over all kept visits",
    "within": "share of a number's variance within people",
}
"""Figures reported for real and for synthetic people."""


@dataclass(frozen=True)
class LinkedVerdict:
    """``figures`` of `figures_of`, their ``floor``, the ``task`` of the next visit, and a grade for each figure."""

    figures: Mapping[str, float | None]
    floor: Mapping[str, float | None]
    task: NextVisit
    grades: Mapping[str, Grade]
    grade: Grade
    headline: str

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``evaluate --json``."""
        return {
            "visits": dict(self.figures),
            "floor": {name: self.floor[name] for name in DISTANCES},
            "next_visit": self.task.to_json(),
            "verdict": {"grade": self.grade, "headline": self.headline, "grades": dict(self.grades)},
        }


def judged(project: Project, real: Panel, synthetic: Panel) -> LinkedVerdict:
    """Return the figures of a synthetic panel with their verdicts."""
    figures = figures_of(real, synthetic)
    again = real.take(np.random.default_rng(SEED).integers(real.rows, size=real.rows))
    floor, task = figures_of(real, again), next_visit(project, real, synthetic)
    grades = {name: _distance(figures[name], floor[name]) for name in DISTANCES}
    grades |= {name: _rate(name, figures[name], figures[f"{name}_real"]) for name in RATES}
    grades["next_visit"] = _task(task)
    known = [g for g in grades.values() if g != "unknown"]
    grade: Grade = "poor" if known.count("poor") > 1 or _lost(grades) else "fair" if set(known) - {"good"} else "good"
    return LinkedVerdict(figures, floor, task, grades, grade, _headline(grade, grades))


def _lost(grades: Mapping[str, Grade]) -> bool:
    return "poor" in (grades["transition_error"], grades["visits_per_person"])


def _distance(value: float | None, floor: float | None) -> Grade:
    if value is None:
        return "unknown"
    return (
        "good" if value <= max(GOOD, 2 * (floor or 0)) else "fair" if value <= max(POOR, 3 * (floor or 0)) else "poor"
    )


def _rate(name: str, value: float | None, real: float | None) -> Grade:
    if value is None or real is None:
        return "unknown"
    apart = abs(value - real) / (real if name == "distinct" else 1)
    return "good" if apart <= RATE_GOOD else "fair" if apart <= RATE_POOR else "poor"


def _task(task: NextVisit) -> Grade:
    if task.auc_synthetic is None or task.auc_real is None:
        return "unknown"
    loss = task.auc_real - task.auc_synthetic
    return "good" if loss <= CLOSE else "fair" if loss <= FAR else "poor"


def _headline(grade: Grade, grades: Mapping[str, Grade]) -> str:
    weak = [(DISTANCES | RATES).get(n, "predicting the next visit") for n, g in grades.items() if g in ("fair", "poor")]
    if grade == "good":
        return "Visits are related to people and to earlier visits as in the real tables."
    if grade == "poor":
        return f"Do not analyse several visits together. Very different from the real tables: {', '.join(weak)}."
    return f"Visits are related roughly as in the real tables. Less accurate: {', '.join(weak)}."
