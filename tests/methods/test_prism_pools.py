"""Pools of a PRISM plan that are set by hand, and bought weights of its task."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from espalier.core.errors import ProjectError
from espalier.core.graph.dag import Dag
from espalier.core.methods.prism_pools import pools_of
from espalier.core.planning.preview import preview
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.release.spend import release
from espalier.core.tables.table import Table
from tests.support.tables import schema_of

SCHEMA = schema_of(a=3, b=3, c=4, d=2, y=2)
DAG = Dag((("a", "y"), ("b", "y")))


def project(**plan: Any) -> Project:
    given = {"method": "prism", "epsilon": 1.0, "delta": 1e-7, "target": "y", **plan}
    return Project("t", SCHEMA, Plan.from_json(given), DAG)


def test_pools_are_scaled_and_what_is_not_named_gets_nothing() -> None:
    pools = pools_of({"one-way": 1, "target": 3, "background": 0})
    assert pools is not None
    assert (pools.one_way, pools.task, pools.background, pools.selection) == (0.25, 0.75, 0.0, 0.0)
    assert pools_of({}) is None


@pytest.mark.parametrize("shares", [{"task": 1.0}, {"one-way": 0.2}, {"target": 1.0}, {"one-way": 0, "target": 1}])
def test_pools_that_cannot_be_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(ProjectError, match="pools"):
        preview(project(regime="causal", pools=shares), 5000)


def test_the_papers_split_is_a_plan() -> None:
    """As in §5.4 for the causal regime: the selection's share goes to the task, and the rest is as given."""
    shares = {"one-way": 0.1, "selection": 0.1, "target": 0.6, "background": 0.2}
    seen = preview(project(regime="causal", pools=shares, features=None), 5000)
    parts = {pool: rho / seen.budget.rho for pool, rho in seen.pools.items()}
    assert parts["one-way"] == pytest.approx(0.1, rel=1e-3)
    assert parts["task"] == pytest.approx(0.7, rel=1e-3)
    rest = sum(rho for pool, rho in parts.items() if pool not in ("one-way", "task"))
    assert rest == pytest.approx(0.2, rel=1e-3)


def test_under_basic_accounting_the_pools_are_shares_of_epsilon() -> None:
    plan = {"accounting": "basic", "allocation": "uniform", "pools": {"one-way": 0.2, "target": 0.8}}
    seen = preview(project(regime="causal", **plan), 5000)
    one, task = (next(x for x in seen.lines if x.pool == pool).sigma for pool in ("one-way", "task"))
    tables = sum(x.pool == "task" for x in seen.lines)  # two pairs, and their joint table with the target
    assert one / task == pytest.approx(0.8 / 0.2 * 5 / tables, rel=0.1)  # five columns share 0.2


def test_choosing_features_without_a_share_is_refused() -> None:
    shares = {"one-way": 0.2, "target": 0.8}
    with pytest.raises(ProjectError, match="selection"):
        preview(project(pools=shares), 5000)
    preview(project(pools=shares, features=4), 5000)


def test_the_effect_regime_keeps_its_own_pools() -> None:
    for changes in ({"pools": {"one-way": 0.2, "target": 0.8}}, {"task_weights": "bought"}):
        with pytest.raises(ProjectError, match="effect regime"):
            preview(project(regime="effect", treatment="a", **changes), 5000)


def test_weights_under_a_uniform_allocation_are_refused() -> None:
    with pytest.raises(ProjectError, match="uniform"):
        preview(project(task_weights="bought", allocation="uniform"), 5000)


def test_bought_weights_give_the_stronger_pair_more() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    codes = {name: rng.integers(0, size, n) for name, size in SCHEMA.sizes.items()}
    codes["b"] = np.where(rng.random(n) < 0.8, codes["y"], codes["b"])
    table = Table(SCHEMA, {k: v.astype(np.uint8) for k, v in codes.items()}, n)
    made = release(project(regime="causal", task_weights="bought", epsilon=2.0), table)
    rhos = {m.clique: m.rho for m in made.fitted.measurements if m.pool == "task"}  # type: ignore[attr-defined]
    assert rhos["b", "y"] > 2 * rhos["a", "y"]
    bought = [d for d in made.spending.draws if d.pool == "weights"]
    assert [d.recipe for d in bought] == ["feature-score"]
    assert bought[0].rho == pytest.approx(0.05 * sum(d.rho for d in made.spending.draws if d.pool != "x"), rel=0.6)
    assert {tuple(a["columns"]) for a in made.to_json()["associations"]} == {("a", "y"), ("b", "y")}
