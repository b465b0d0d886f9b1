"""Purposes of a table, the recommended methods, and the unused parts of the drawing. No data is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from espalier.core.blurring.registry import is_blurring
from espalier.core.methods.base import Method
from espalier.core.methods.registry import METHODS, method_of
from espalier.core.project.file import Project

PURPOSES = {
    "here": "Predict an outcome, here",
    "elsewhere": "Predict an outcome, elsewhere",
    "fairness": "Meet a fairness requirement",
    "general": "General use",
    "questions": "Answer my questions",
}
"""Purposes of a table, with their labels."""


@dataclass(frozen=True)
class Advice:
    """Recommended method. ``changes`` are the plan keys to set, ``why`` is an explanation of one or two sentences, and
    ``lacking`` is the missing input, if any.
    """

    method: Method
    changes: Mapping[str, Any]
    why: str
    lacking: str = ""


def advise(project: Project, purpose: str) -> Advice:
    """Return the first method that declares ``purpose``, with its options; raises KeyError if there is none."""
    PURPOSES[purpose]
    method = next(m for m in METHODS.values() if purpose in m.guidance.purposes)
    given = method.guidance.purposes[purpose]
    return Advice(method, given.changes, given.why, _lacking(project, purpose))


def _lacking(project: Project, purpose: str) -> str:
    target, roles = project.plan.target, project.roles
    if purpose in ("here", "elsewhere") and target is None:
        return "Choose the target: the column to predict."
    if purpose == "elsewhere" and not project.dag.parents(target or ""):
        return "Draw the direct causes of the target on the Structure page."
    if purpose == "fairness" and not (roles.outcome and roles.protected):
        return "Mark the outcome and the protected columns on the Structure page."
    if purpose == "questions" and not project.question_list:
        return "No question is listed yet: add one below, under “Questions that reports will ask”."
    return ""


def unused(project: Project) -> tuple[str, ...]:
    """Return a sentence for each part of the drawing that the plan does not use."""
    if is_blurring(project.plan):
        return ()
    method, roles = method_of(project.plan), project.roles
    idle = set(project.dag.edges) - set(method.arrows(project))
    out = []
    if idle:
        every = len(project.dag.edges)
        some = ", ".join(f"{a} → {b}" for a, b in sorted(idle)[:3])
        some += ", …" * (len(idle) > 3)
        out.append(
            f"This plan uses none of the {every} drawn arrows ({some})."
            if len(idle) == every
            else f"This plan does not use {len(idle)} of the {every} drawn arrows ({some})."
        )
    if not method.fenced(project.plan) and (roles.protected or roles.admissible or roles.inadmissible):
        out.append("The roles protected, admissible and inadmissible are not used, because this plan has no fence.")
    if project.separations and not method.fenced(project.plan):
        out.append("The further separations are not used, because this plan has no fence.")
    return tuple(out)


def drawing_unused(project: Project) -> str:
    """Return a sentence that names the purpose that would use the drawn arrows if the plan uses none of them; otherwise
    an empty string.
    """
    if not project.dag.edges or is_blurring(project.plan) or method_of(project.plan).arrows(project):
        return ""
    other = ""
    if project.dag.parents(project.plan.target or ""):
        other = f" “{PURPOSES['elsewhere']}” uses the arrows into {project.plan.target}."
    return f"It uses none of the {len(project.dag.edges)} arrows that you drew.{other}"
