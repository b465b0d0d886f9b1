"""A statistician's task in a real browser: from a release to a sentence with an interval, in under two minutes."""

from __future__ import annotations

import re
import time
from math import log

import numpy as np
import pytest

from espalier.core.analysis import figure_from_text
from espalier.core.analysis.tally import Tally
from espalier.core.project.file import Project
from sample_data.make import hospital
from tests.conftest import SAMPLES

pytestmark = [pytest.mark.browser]

SENTENCE = re.compile(r"severe against normal: ([\d.]+) \(95 % interval ([\d.]+) to ([\d.]+)")


def truth() -> float:
    """Return the odds ratio in 200,000 people drawn from the same process as the sample."""
    schema, rows = Project.load(SAMPLES / "readmission.json").schema, hospital(np.random.default_rng(1), 200_000, True)
    codes = {name: _codes(schema[name].labels, rows[name]) for name in ("heart_failure", "readmitted")}
    codes["age"] = np.digitize(rows["age"].astype(float), schema["age"].edges[1:-1])
    figure = figure_from_text.regression(schema, "readmitted=yes", ["heart_failure", "age"])
    found, _ = figure.estimate(Tally.of_rows(codes, schema.sizes, figure.columns))
    return float(found[2])


def _codes(labels: tuple[str, ...], cells: np.ndarray) -> np.ndarray:
    return np.select([cells == label for label in labels], range(len(labels)))


def plan(person, label: str, value: str) -> None:
    """Type a value into a field of the plan."""
    field = person.page.locator("input").and_(person.page.get_by_label(label)).first
    field.fill(value)
    field.press("Enter")
    person.rests()


@pytest.mark.nightly  # tests/pages/test_analyse.py asks the same question without a browser
def test_is_heart_failure_associated_with_readmission_after_adjusting_for_age(person) -> None:
    person.visit("Home", "Espalier")
    person.press("Open readmission")
    person.visit("Plan")
    person.page.get_by_text("Predict an outcome, here").first.click()
    person.rests()
    plan(person, "ε (the budget)", "2")
    plan(person, "Features to choose", "13")  # every column is counted with the target, however large the noise
    person.visit("Release")
    person.press("Spend ε = 2 and release")
    person.sees(": 8,000 synthetic rows")

    begun = time.monotonic()
    person.visit("Analyse")
    person.pick("Predictors", "heart_failure")
    person.finds(person.page.get_by_text(SENTENCE).first, 100)
    person.page.keyboard.press("Escape")
    person.rests()
    person.pick("Predictors", "age")
    person.page.keyboard.press("Escape")
    person.finds(person.page.get_by_text("age were each counted with readmitted").first, 100)
    said = person.page.get_by_text(SENTENCE).first.inner_text()
    assert time.monotonic() - begun < 120

    found = SENTENCE.search(said)
    assert found is not None
    estimate, low, high = (log(float(number)) for number in found.groups())
    assert low > 0, "associated, and the interval shows it"
    assert abs(estimate - truth()) < 3 * (high - low) / 2, "more than six standard errors would be wrong"
    assert "each counted with readmitted" in said
    person.fine()
