"""The cost of a fence: the counterpart of each plan, the definitions of the figures, and the people who may not see
them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from espalier.core.compare import fence_cost as comparison
from espalier.core.compare.fence_cost import FIGURES, cost_or_reason, fence_cost, without_fence
from espalier.core.errors import Cancelled, SizeError
from espalier.core.evaluation.quality import tree_quality
from espalier.core.methods import METHODS, method_of
from espalier.core.project.file import Project
from espalier.core.release.spend import release
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"


def options(plan):
    """The plan's options as a tree method reads them. Without a fence, all tree methods read the same options."""
    return METHODS["privci"].read(plan)


@pytest.fixture(scope="module")
def made():
    project = Project.load(SAMPLES / "hiring.json").with_plan(epsilon=5.0)
    return release(project, Table.encode(read_table(SAMPLES / "hiring.csv"), project.schema))


@pytest.fixture(scope="module")
def real(made):
    return Table.encode(read_table(SAMPLES / "hiring.csv"), made.project.schema)


@pytest.mark.parametrize(
    ("plan", "method", "fenced"),
    [
        ({"method": "privci", "width": 2, "explain": 0.1}, "mst", False),
        ({"method": "prefair"}, "mst", False),
        ({"method": "prism", "fair": True, "strict": True}, "prism", False),
        ({"method": "independent", "fair": True}, "independent", False),
    ],
)
def test_the_counterpart_spends_the_same_without_a_fence(made, plan, method, fenced):
    project = made.project.with_plan(fair=None).with_plan(**plan)
    free = without_fence(project)
    assert (free.plan.method, method_of(free.plan).fenced(free.plan)) == (method, fenced)
    assert options(free.plan).explain == 0
    assert options(free.plan).width == options(project.plan).width
    for key in ("epsilon", "delta", "neighbors", "rows_per_person", "target"):
        assert getattr(free.plan, key) == getattr(project.plan, key)
    assert without_fence(free) is None


def test_on_a_table_with_a_spurious_link_the_fence_costs_q_and_saves_cmi(made, real, monkeypatch):
    monkeypatch.setattr(comparison, "REPEATS", 2)
    told = []
    synthetic = Table(made.project.schema, made.codes, made.rows)
    cost = fence_cost(made.project, real, synthetic, made.edges, report=lambda f, m: told.append((f, m)))
    facts = json.loads(json.dumps(cost.to_json(), allow_nan=False))
    assert facts["private"] is False
    assert facts["looked_at_real_data"] is True
    assert facts["method_without"] == "mst"
    assert facts["repeats"] == 2
    assert facts["with"]["q"] == pytest.approx(tree_quality(real, made.edges))
    assert facts["with"]["q"] < facts["without"]["q"] <= facts["q_best"] + 1e-6
    assert facts["with"]["cmi"] < facts["without"]["cmi"]
    for figure in FIGURES:
        low, high = facts["without_range"][figure]
        assert low <= facts["without"][figure] <= high
    assert [f for f, _ in told] == sorted(f for f, _ in told)
    assert told[-1][0] == 1.0


def test_no_fence_and_no_room_are_said(made, real, monkeypatch):
    synthetic = Table(made.project.schema, made.codes, made.rows)
    free = without_fence(made.project)
    assert "no fence" in cost_or_reason(free, real, synthetic, made.edges)["fence_cost_reason"]

    def refuse(*_):
        raise SizeError("too large")

    monkeypatch.setattr(comparison, "release", refuse)
    assert cost_or_reason(made.project, real, synthetic, made.edges)["fence_cost_reason"].endswith("too large.")

    def cancel(*_):
        raise Cancelled("cancelled")

    with pytest.raises(Cancelled):
        cost_or_reason(made.project, real, synthetic, made.edges, report=cancel)


def test_a_model_that_cannot_be_trained_has_no_auc(made, real):
    flat = {name: codes * (name != "hired") for name, codes in made.codes.items()}
    flat = {name: np.asarray(codes) for name, codes in flat.items()}
    table = Table(made.project.schema, flat, made.rows)
    assert comparison._auc(made.project, table, real) is None
