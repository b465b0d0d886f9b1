"""Effect of the plan's treatment on its target, estimated from copies of the release.

The copies are made from noisy counts that were paid for from the budget.
"""

from __future__ import annotations

from typing import Any

from espalier.core.analysis import answer_text, figure_from_text
from espalier.core.analysis.missing_text import missing_sentences
from espalier.core.analysis.study import Study
from espalier.core.graph.adjustment import Effect, choices, ways
from espalier.core.methods import planned_effect
from espalier.core.progress import Report, silent

MOST_WAYS = 8
"""Number of paths that the report lists."""


def effect_facts(study: Study, report: Report = silent) -> dict[str, Any] | None:
    """Return the section ``effect`` of ``release.json``; `None` if the plan has no effect."""
    project = study.project
    planned = planned_effect(project.plan)
    if planned is None:
        return None
    treatment, outcome = planned.treatment, planned.outcome
    asked = Effect(project.dag, treatment, outcome)
    figure = figure_from_text.effect_by_drawing(project, treatment, outcome, None, study.rows)
    studied = study.with_copies(report=report)
    answers = studied.ask(figure)
    missing, warnings = missing_sentences(project.schema, answers)
    valid = choices(asked, project.schema.sizes)
    return {
        "treatment": treatment,
        "outcome": outcome,
        "event": None if figure.event is None else project.schema[outcome].labels[figure.event],
        "adjust": list(figure.adjust),
        "by": "drawing" if planned.adjust is None else "plan",
        "valid_sets": len(valid),
        "why": answer_text.adjusted_for(project, figure),
        "ways": [way.sentence for way in ways(asked, figure.adjust, MOST_WAYS)],
        "form": figure.form,
        "copies": len(studied.given),
        "numbers": [answer_text.to_json(project.schema, answer) for answer in answers],
        "missing": missing,
        "warnings": warnings,
    }
