"""A purpose leads to a method and a regime, and a plan lists the parts of the drawing that it leaves unused."""

from __future__ import annotations

from pathlib import Path

import pytest

from espalier.core.methods import METHODS, frame_of
from espalier.core.methods.base import Method
from espalier.core.methods.purpose import PURPOSES, advise, drawing_unused, unused
from espalier.core.project.file import Project

SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"
READMISSION, HIRING = (Project.load(SAMPLES / f"{name}.json") for name in ("readmission", "hiring"))


def planned(project: Project, purpose: str) -> tuple[Project, Method]:
    advice = advise(project, purpose)
    fair = project.plan.fair if advice.method.capabilities.fence == "optional" else None
    return project.with_plan(method=advice.method.name, fair=fair, **advice.changes), advice.method


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("project", [READMISSION, HIRING], ids=lambda p: p.name)
def test_what_is_recommended_can_be_planned(project: Project, purpose: str) -> None:
    if purpose == "fairness" and not project.roles.protected:
        assert advise(project, purpose).lacking
        return
    made, _ = planned(project, purpose)
    lacking = advise(project, purpose).lacking
    assert lacking.startswith("No question is listed yet") if purpose == "questions" else not lacking
    frame_of(made)


def test_only_known_purposes_are_declared() -> None:
    assert {p for m in METHODS.values() for p in m.guidance.purposes} == set(PURPOSES)


def test_elsewhere_asks_for_the_drawn_causes() -> None:
    bare = READMISSION.with_plan(target="age")
    assert "Draw the direct causes" in advise(bare, "elsewhere").lacking or bare.dag.parents("age")
    made, _ = planned(READMISSION, "elsewhere")
    here, _ = planned(READMISSION, "here")
    into = [e for e in READMISSION.dag.edges if e[1] == "readmitted"]
    left = len(READMISSION.dag.edges) - len(into)
    every = len(READMISSION.dag.edges)
    assert unused(here)[0].startswith(f"This plan uses none of the {every} drawn arrows")
    assert unused(made)[0].startswith(f"This plan does not use {left} of the {every} drawn arrows")


def test_a_purpose_that_ignores_the_drawing_says_so_and_names_the_one_that_uses_it() -> None:
    here, _ = planned(READMISSION, "here")
    every = len(READMISSION.dag.edges)
    assert drawing_unused(here) == (
        f"It uses none of the {every} arrows that you drew. “Predict an outcome, elsewhere” uses the arrows into "
        "readmitted."
    )
    assert drawing_unused(here.with_plan(target="age")) == f"It uses none of the {every} arrows that you drew."
    assert drawing_unused(planned(READMISSION, "elsewhere")[0]) == ""


def test_roles_without_a_fence_are_said_to_be_unused() -> None:
    fenced, method = planned(HIRING, "fairness")
    assert method.capabilities.fence == "always"
    assert not any("roles" in s for s in unused(fenced))
    free, _ = planned(HIRING.with_plan(fair=False), "general")
    assert any("no fence" in s for s in unused(free))
