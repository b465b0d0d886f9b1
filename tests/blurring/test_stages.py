"""The stages of the two-stage method that a plan may choose, and α compared with the requested LID."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.blurring.inputs import independent
from espalier.core.blurring.responses import RESPONSES, respond
from espalier.core.errors import ProjectError
from espalier.core.release.blurred import blurred, render
from tests.blurring.test_not_private import frame, project


@pytest.mark.parametrize(("source", "middle"), [("uniform", 0.5), ("weibull", 0.96), ("cauchy", 0.5)])
def test_sources_stay_in_range_around_their_median(source, middle):
    drawn = independent(np.zeros((4_000, 2)), source, np.random.default_rng(0))
    assert drawn.shape == (4_000, 2)
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    assert np.median(drawn) == pytest.approx(middle, abs=0.03)


@pytest.mark.parametrize("name", RESPONSES)
def test_every_regression_follows_a_curve(name):
    rng = np.random.default_rng(1)
    x = rng.random((250, 2))
    y = np.sin(3 * x[:, 0]) + x[:, 1]
    made = respond(x, y + 0.05 * rng.normal(size=250), rng, name)
    assert made.name == name
    assert made.errors == {}
    assert np.mean((made.at(x) - y) ** 2) < 0.15 * y.var()
    assert len(made.left) == 250


@pytest.mark.nightly
def test_cross_validation_passes_over_the_regression_that_fails():
    """A step is not a smooth function of many columns: trees find it, and the errors show this."""
    rng = np.random.default_rng(2)
    x = rng.random((300, 6))
    made = respond(x, 10.0 * (x[:, 0] > 0.5), rng)
    assert made.name in ("adaboost", "forest")
    assert set(made.errors) == set(RESPONSES)
    assert made.errors[made.name] == min(made.errors.values())
    assert made.errors[made.name] < 0.5 * made.errors["nearest"]


def test_alpha_is_a_plan_key_and_what_was_chosen_is_reported():
    plan = project(alpha=0.4, outcome="ridge", inputs="uniform")
    plan = plan.with_plan(**{k: v for k, v in plan.plan.options.items() if k != "lid"})
    options = {k: v for k, v in plan.plan.options.items() if k != "lid"}
    from dataclasses import replace

    plan = replace(plan, plan=replace(plan.plan, options=options))
    made = blurred(plan, frame(150))
    assert made.disclosure["alpha"] == 0.4
    page = made.files["report-NOT-PRIVATE.html"].decode()
    assert "The plan gives α = 0.4" in page
    assert "Method for the inputs: uniform; for the outcome: ridge." in page


def test_alpha_and_lid_together_are_refused():
    with pytest.raises(ProjectError, match="give only one"):
        blurred(project(alpha=0.4), frame(150))


def test_reports_of_earlier_releases_still_render():
    made = blurred(project(outcome="ridge"), frame(150))
    facts = made.to_json()
    for key in ("inputs", "regression"):
        facts["disclosure"].pop(key)
    assert "The plan requests LID of at most 30%" in render(facts)
