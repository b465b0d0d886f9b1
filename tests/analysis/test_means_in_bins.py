"""Means of numbers in bins: their intervals are valid for any positions of the numbers inside their bins."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from espalier.core.analysis import answer_text
from espalier.core.analysis import figure_from_text as ask
from espalier.core.analysis.study import Study
from espalier.core.cli.main import main
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release

SCHEMA = Schema(
    (
        Column("score", "numeric", edges=(0, 10, 20, 40)),
        Column("visits", "numeric", edges=(0, 1, 2, 3, 3.5), integer=True),
        Column("days", "numeric", edges=(0, 1, 2, 3), integer=True),
        Column("arm", "categorical", ("a", "b")),
    )
)


def frame(n=6000):
    """Scores at the very ends of their bins: the lowest in arm a, the highest in arm b. Days are 0 to 3."""
    rng = np.random.default_rng(5)
    arm, place = rng.integers(0, 2, n), rng.integers(0, 3, n)
    ends = np.where(arm == 0, np.array([0, 10, 20])[place], np.array([9.999, 19.999, 40])[place])
    counts = rng.integers(0, 4, n)
    return pd.DataFrame({"score": ends, "visits": counts, "days": counts, "arm": np.array(["a", "b"])[arm]}).astype(str)


@pytest.fixture(scope="module")
def made():
    return release(Project("bins", SCHEMA, Plan("workload", epsilon=3, delta=1e-6)), frame())


@pytest.fixture(scope="module")
def study(made):
    return Study.of(made).with_copies(20)


def test_the_interval_of_a_mean_holds_wherever_numbers_are_inside_their_bins(study):
    real = frame().astype({"score": float}).groupby("arm")["score"].mean()
    for arm in "ab":
        (found,) = study.ask(ask.mean(SCHEMA, "score", f"arm={arm}"))
        low, high = found.at_midpoints
        assert not low <= real[arm] <= high  # the interval for midpoints is for a different quantity
        assert found.low <= real[arm] <= found.high
        assert (found.high - found.low) == pytest.approx(high - low + 40 / 3, rel=0.1)  # bins of 10, 10 and 20
        assert found.width.causes[0] == "bins"
    (found,) = study.ask(ask.mean_difference(SCHEMA, "score", "arm=b:a"))
    assert not found.at_midpoints[0] <= real["b"] - real["a"] <= found.at_midpoints[1]
    assert found.low <= real["b"] - real["a"] <= found.high
    said = answer_text.sentence(found)
    assert "If every number were at the middle of its bin, the interval would be" in said
    assert "mostly from the bins (the counts do not show where the numbers lie inside them)" in said


def test_whole_numbers_in_bins_of_their_own_are_known(study):
    (found,) = study.ask(ask.mean(SCHEMA, "visits"))
    assert found.at_midpoints is None
    assert found.value == pytest.approx(frame()["visits"].astype(float).mean(), abs=0.05)
    assert found.high - found.low < 0.15
    (found,) = study.ask(ask.mean(SCHEMA, "days"))  # the last bin contains 2 and 3
    real = frame()["days"].astype(float).mean()
    assert found.low <= real <= found.high
    assert found.high - found.low == pytest.approx(0.5 + found.at_midpoints[1] - found.at_midpoints[0], rel=0.1)


def test_intervals_that_hold_together_and_those_from_counts_cover_the_bins_too(study):
    figures = [ask.mean(SCHEMA, "score", f"arm={arm}") for arm in "ab"]
    together = study.together(figures)
    for (joint,), figure in zip(together, figures, strict=True):
        (single,) = study.ask(figure)
        assert joint.family == 2
        assert joint.high - joint.low > single.high - single.low > 40 / 3 - 0.5
    real = frame().astype({"score": float})["score"].mean()
    assert study.ask(ask.mean(SCHEMA, "score"))[0].low <= real <= study.ask(ask.mean(SCHEMA, "score"))[0].high


def test_the_command_line_prints_both_intervals(made, tmp_path, capsys):
    made.save(tmp_path / "out")
    assert main(["analyse", str(tmp_path / "out"), "--mean", "score", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    low, high = found["at_midpoints"]
    assert found["low"] < low < found["value"] < high < found["high"]
    assert "bins" in found["width_from"]
