"""PRISM's effect regime: what is adjusted for, what is counted, and the effect that comes out."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import ProjectError
from core.graph.dag import Dag
from core.graph.roles import Roles
from core.methods import frame_of
from core.project.file import Project
from core.project.plan import Plan
from core.project.schema import Column, Schema
from core.release import asking, preview, release
from core.release.study import Study
from core.tables.table import Table

SCHEMA = Schema(
    (
        Column("z", "ordinal", ("lo", "mid", "hi")),
        Column("w", "categorical", ("a", "b")),
        Column("t", "categorical", ("no", "yes")),
        Column("m", "categorical", ("no", "yes")),
        Column("y", "categorical", ("no", "yes")),
        Column("noise", "categorical", tuple("abcde")),
    )
)
DRAWN = Dag((("z", "t"), ("z", "y"), ("w", "t"), ("w", "y"), ("t", "m"), ("m", "y")))
TRUTH = 0.25 * 0.8
"""t raises m by 0.8, m raises the risk by 0.25."""


def project(**plan) -> Project:
    given = {
        "method": "prism",
        "epsilon": 2.0,
        "target": "y",
        "regime": "effect",
        "treatment": "t",
        "copies": 20,
        **plan,
    }
    return Project("effect", SCHEMA, Plan.from_json(given), DRAWN)


def table(n: int = 20_000) -> Table:
    rng = np.random.default_rng(6)
    z, w = rng.integers(0, 3, n), rng.integers(0, 2, n)
    t = rng.random(n) < 0.15 + 0.25 * z + 0.15 * w
    m = rng.random(n) < 0.1 + 0.8 * t
    y = rng.random(n) < 0.55 - 0.2 * z - 0.1 * w + 0.25 * m
    codes = {"z": z, "w": w, "t": t, "m": m, "y": y, "noise": rng.integers(0, 5, n)}
    return Table(SCHEMA, {name: np.asarray(v, dtype=np.int64) for name, v in codes.items()}, n)


@pytest.fixture(scope="module")
def made():
    return release(project(), table())


def test_the_drawing_decides_what_is_counted(made):
    frame = frame_of(project())
    assert frame.features == ("z", "w", "t")
    assert ("z", "w", "t", "y") in made.fitted.cliques, "small enough to be counted together"
    assert not any("m" in clique and "t" in clique and "z" in clique for clique in made.fitted.cliques)
    assert made.spending.rho <= made.budget.rho
    assert made.spending.rho == pytest.approx(made.budget.rho, rel=1e-6)


def test_with_few_rows_each_column_is_counted_with_treatment_and_target():
    cliques = {line.columns for line in preview(project(), 1500).lines}
    assert {("z", "t", "y"), ("w", "t", "y"), ("z", "w")} <= cliques
    assert ("z", "w", "t", "y") not in cliques


def test_the_adjusted_effect_is_right_where_the_crude_one_is_not(made):
    study = Study.of(made)
    figure = asking.effect_by_drawing(made.project, "t", "y", None, made.rows)
    assert figure.adjust == ("z", "w")
    crude, adjusted = study.ask(figure)[:2]
    assert adjusted.name.startswith("adjusted difference, t: yes against no")
    assert adjusted.badge.kind == "counted"
    assert adjusted.low is not None
    assert adjusted.high is not None
    assert adjusted.value == pytest.approx(TRUTH, abs=0.05)
    assert crude.value < adjusted.value - 0.05
    assert "not drawn would bias" in asking.adjusted_for(made.project, figure)


def test_sets_that_are_not_valid_are_refused_with_the_reason():
    for adjust, why in (
        (["z"], "t ← w → y stays open"),
        (["z", "w", "m"], "takes part of the effect away"),
        ([], "stays"),
    ):
        with pytest.raises(ProjectError, match=why) as caught:
            frame_of(project(adjust=adjust))
        assert caught.value.data["key"] == "adjust"
    assert frame_of(project(adjust=["w", "z"])).features == ("z", "w", "t")
    for wrong in (
        {"treatment": None},
        {"treatment": "zebra"},
        {"adjust": "z"},
        {"targets": {"m": 1.0}},
        {"treatment": "y"},
    ):
        with pytest.raises(ProjectError):
            frame_of(project(**wrong))


def test_a_fence_between_treatment_and_outcome_refuses():
    given = project(fair=True)
    fenced = Project("effect", SCHEMA, given.plan, DRAWN, Roles(outcome=("y",), protected=("t",), admissible=("m",)))
    with pytest.raises(ProjectError, match="t"):
        frame_of(fenced)


def test_hidden_causes_are_named_each_time():
    assert any("not drawn would bias the effect" in w for w in preview(project(), 20_000).warnings)
