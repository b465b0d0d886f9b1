"""Verdicts on linked tables: good for the same distribution, not if visits lost their order or their person."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.linked import Law
from espalier.core.evaluation.linked_pictures import flows, survival, transitions
from espalier.core.evaluation.linked_verdict import judged
from espalier.core.evaluation.next_visit import next_visit
from espalier.core.project.file import Project
from espalier.core.tables.panel import Panel


@pytest.fixture(scope="module")
def panels() -> tuple[Project, Panel, Panel]:
    law, rng = Law(sizes=(3, 4), keep=3), np.random.default_rng(0)
    law.stay[:] = 2.5  # a visit after a lost one is then far from the true distribution
    project = law.project(1.0, target="visits.c1")
    return project, law.panel(project, 12_000, rng), law.panel(project, 12_000, rng)


def test_people_of_the_same_law_are_good(panels: tuple[Project, Panel, Panel]) -> None:
    project, real, other = panels
    found = judged(project, real, other)
    assert found.grade == "good", found.grades
    assert found.task.auc_synthetic is not None
    assert found.task.auc_synthetic == pytest.approx(found.task.auc_real, abs=0.03)
    assert set(found.to_json()) == {"visits", "floor", "next_visit", "verdict"}


def test_visits_dealt_to_other_people_are_poor(panels: tuple[Project, Panel, Panel]) -> None:
    project, real, other = panels
    rng = np.random.default_rng(1)
    dealt = {}
    for name, codes in other.visits.items():
        dealt[name] = codes.copy()
        for t in (1, 2):
            who = np.flatnonzero(other.steps.numbers > t)
            dealt[name][who, t] = codes[rng.permutation(who), t]
    found = judged(project, real, replace(other, visits=dealt))
    assert found.grade == "poor"
    assert found.grades["transition_error"] == "poor"
    assert found.grades["visits_per_person"] == "good"
    assert found.grades["next_visit"] != "good"


def test_the_next_visit_is_not_predicted_without_an_outcome(panels: tuple[Project, Panel, Panel]) -> None:
    project, real, other = panels
    assert "no column of a visit" in next_visit(project.with_plan(target=None), real, other).reason
    few = real.take(np.arange(20))
    assert "fewer than" in next_visit(project, few, other).reason


def test_what_the_pictures_show(panels: tuple[Project, Panel, Panel]) -> None:
    _, real, _ = panels
    shares = transitions(real, "visits.c0")
    assert shares.sum(axis=1) == pytest.approx(1.0)
    found = [f for f in flows(real, "visits.c0") if f.visit == 1]
    assert sum(f.share for f in found) == pytest.approx((real.steps.numbers > 1).mean())
    one = survival(real, "patients.age")[0]
    own = real.steps.numbers[real.codes["patients.age"] == 0]
    assert one.tolist() == [1.0, (own > 1).mean(), (own > 2).mean()]
