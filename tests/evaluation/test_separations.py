"""CMI of every separation of a plan."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.evaluation import evaluate
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Separation
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.release.spend import release
from espalier.core.tables.table import Table
from tests.support.tables import schema_of

SCHEMA = schema_of(a=3, b=2, c=2, y=2)
ROLES = Roles(outcome=("y",), protected=("b",), admissible=("a",))


def table(n=1500):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, n)
    y = (rng.random(n) < 0.2 + 0.3 * a).astype(int)
    c = np.where(rng.random(n) < 0.9, y, 1 - y)
    codes = {"a": a, "b": rng.integers(0, 2, n), "c": c, "y": y}
    return Table(SCHEMA, {k: v.astype(np.uint8) for k, v in codes.items()}, n)


def test_a_regime_and_the_projects_own_separations_are_measured():
    plan = Plan.from_json(
        {"method": "prism", "epsilon": 5.0, "delta": 1e-6, "target": "y", "regime": "causal", "fair": True}
    )
    apart = (Separation(("b",), ("c",), ()),)
    project = Project("t", SCHEMA, plan, Dag((("a", "y"), ("y", "c"))), ROLES, apart)
    real = table()
    made = release(project, real)
    found = evaluate(project, real, made.synthetic, model=made.model).to_json()["separations"]
    regime = next(one for one in found if "c" in one["right"] and one["left"] == ["y"])
    assert regime["given"] == ["a"]
    assert regime["cmi_real"] > regime["floor_real"] > 0  # c is linked with y in the real rows
    assert regime["cmi_synthetic"] < 1.5 * regime["floor_synthetic"]
    assert regime["cmi_model"] == pytest.approx(0, abs=1e-9)
    own = next(one for one in found if one["left"] == ["b"])
    assert own["cmi_model"] == pytest.approx(0, abs=1e-9)
    assert own["cmi_real"] < 2 * own["floor_real"]


def test_a_plan_without_separations_has_no_such_section():
    plan = Plan.from_json({"method": "mst", "epsilon": 5.0, "delta": 1e-6, "target": "y"})
    project, real = Project("t", SCHEMA, plan), table(300)
    assert "separations" not in evaluate(project, real, release(project, real).synthetic).to_json()
