"""Quantiles of numbers that were counted in bins: intervals end at edges, and are valid for any positions of the
numbers inside their bins.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from espalier.core.analysis import figure_from_text as ask
from espalier.core.analysis.quantiles import QuantileContrast
from espalier.core.analysis.study import Study
from espalier.core.cli.main import main
from espalier.core.errors import ProjectError
from espalier.core.privacy.draws import Measurement
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.table import Table

EDGES = (0.0, 10.0, 20.0, 30.0, 40.0)


@pytest.mark.parametrize(("q", "level"), [(0.5, 0.95), (0.1, 0.95), (0.9, 0.8)])
def test_each_side_misses_at_half_the_error_at_most(q, level):
    """800 noisy tables, with the quantile just inside its bin, the hardest case. A false alarm (4 σ) has a chance of
    1e-4."""
    rng, probabilities = np.random.default_rng(5), np.array([0.09, 0.40, 0.40, 0.11])
    contrast = QuantileContrast("x", EDGES, q)
    cumulative = np.cumsum(probabilities)
    place = int(np.searchsorted(cumulative, q))
    low, high = EDGES[place], EDGES[place + 1]
    above = below = 0
    for _ in range(800):
        counts = rng.multinomial(300, probabilities) + np.rint(rng.normal(0, 12, 4))
        found = contrast.interval([Measurement(("x",), counts.astype(float), 12.0)], {}, level=level)
        above += found.low >= high
        below += found.high <= low
        assert found.low <= found.value <= found.high
        assert {found.low, found.high} <= set(EDGES)
    most = 800 * (1 - level) / 2
    assert max(above, below) <= most + 4 * np.sqrt(most)


def test_without_noise_it_is_the_interpolated_quantile_in_its_own_bin():
    exact = [Measurement(("x",), np.array([1e6, 2e6, 5e6, 2e6]), 1.0)]
    found = QuantileContrast("x", EDGES, 0.5).interval(exact, {})
    assert (found.low, found.high) == (20.0, 30.0)
    assert found.value == pytest.approx(24.0)


def test_merged_bins_leave_their_inner_edges_out():
    merged = {"x": np.array([0, 0, 1, 1])}
    exact = [Measurement(("x",), np.array([3e6, 7e6]), 1.0)]
    found = QuantileContrast("x", EDGES, 0.5).interval(exact, merged)
    assert (found.low, found.high) == (20.0, 40.0)


def clinic():
    rng, n = np.random.default_rng(2), 4000
    schema = Schema(
        (
            Column("age", "numeric", edges=(0.0, 20.0, 40.0, 60.0, 80.0, 100.0), missing=True),
            Column("sick", "categorical", ("no", "yes")),
        )
    )
    sick = rng.integers(0, 2, n)
    age = np.clip(rng.normal(45 + 10 * sick, 15, n), 0, 99) // 20
    age[rng.random(n) < 0.1] = 5
    table = Table(schema, {"age": age.astype(np.int64), "sick": sick}, n)
    return Project("clinic", schema, Plan("mst", epsilon=2, delta=1e-6), one_row_per_person=True), table


def test_it_is_asked_of_a_release_and_on_the_command_line(tmp_path, capsys):
    project, table = clinic()
    made = release(project, table)
    made.save(tmp_path / "made")
    study = Study.of(made).with_copies(5)
    figure = ask.quantile(project.schema, "age", 0.5, "sick=yes")
    (answer,) = study.ask(figure)
    assert (answer.name, answer.low, answer.high) == ("median", 40.0, 60.0)
    assert answer.observed == ("age",)
    run = ["analyse", str(tmp_path / "made"), "--quantile", "age", "0.5", "--quantile", "age", "0.9"]
    assert main([*run, "--among", "sick=yes", "--level", "0.9", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found] == ["median", "90 % quantile"]
    assert found[0]["of"] == "the median of age, among those with sick = yes, of the rows where age is observed"
    assert found[1]["level"] == 0.9
    assert main([*run[:3], "age", "half"]) == 2
    assert "needs a number between 0 and 1" in capsys.readouterr().err


def test_a_quantile_needs_a_number_and_a_probability():
    schema = clinic()[0].schema
    with pytest.raises(ProjectError, match="no mean or quantile"):
        ask.quantile(schema, "sick")
    with pytest.raises(ProjectError, match="between 0 and 1"):
        ask.quantile(schema, "age", 1.0)
