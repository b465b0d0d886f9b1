"""The second stage: cases that the gate admits, refusals, copies, files that are read again, and the report."""

from __future__ import annotations

import dataclasses
from unittest import mock

import numpy as np
import pytest

from espalier.core.analysis.study import Study
from espalier.core.errors import EspalierError, ProjectError
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.methods import METHODS, embedding, frame_of
from espalier.core.methods.embedding import Embedded, Found, column_sets, detectable, directions, phases
from espalier.core.methods.frame import Frame
from espalier.core.models import tilted as tilted_module
from espalier.core.models.graphical import GraphicalModel
from espalier.core.models.tilted import TiltedModel, loads
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.table import Table
from verifier.check import verify

ROWS = 4_000
NAMES = ("a", "b", "c", "d")
SCHEMA = Schema(
    (*(Column(n, "ordinal", tuple("01234567")) for n in NAMES), Column("y", "categorical", ("no", "yes"))),
)


def xor(seed=0, rows=ROWS):
    """y states whether exactly one of a and b is high: no pair of columns shows this."""
    rng = np.random.default_rng(seed)
    codes = {n: rng.integers(0, 8, rows) for n in NAMES}
    codes["y"] = ((codes["a"] >= 4) ^ (codes["b"] >= 4)).astype(np.int64)
    return Table(SCHEMA, codes, rows)


def independent(seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    return Table(SCHEMA, {**{n: rng.integers(0, 8, rows) for n in NAMES}, "y": rng.integers(0, 2, rows)}, rows)


def planned(**more):
    settings = {"method": "mst", "epsilon": 20.0, "delta": 1e-6, "target": "y", "embedding_share": "auto", **more}
    dag, roles = settings.pop("dag", Dag()), settings.pop("roles", Roles())
    return Project("p", SCHEMA, Plan.from_json(settings), dag, roles)


@pytest.fixture(autouse=True, scope="module")
def small():
    """Fewer rows and directions: the tests check the steps, benchmarks/high_order.py their quality."""
    with (
        mock.patch.object(tilted_module, "POOL", 8_000),
        mock.patch.object(embedding, "POOL", 8_000),
        mock.patch.object(tilted_module, "STEPS", (15, 25)),
        mock.patch.object(embedding, "FREQUENCIES", 60),
        mock.patch.object(embedding, "PROBED", 20),
    ):
        yield


@pytest.fixture(scope="module")
def made(small):  # noqa: ARG001
    return release(planned(), xor())


def obeyed(codes):
    return np.mean(((codes["a"] >= 4) ^ (codes["b"] >= 4)) == codes["y"])


def test_the_stage_carries_what_no_pair_shows(made):
    assert isinstance(made.model, TiltedModel)
    assert set(made.fitted.marked) >= {"a", "b"}
    assert obeyed(made.codes) > 0.9
    assert obeyed(release(planned(embedding_share=0), xor()).codes) < 0.6


def test_even_rows_keep_each_column_as_even_as_a_graphical_model_does(made):
    for name, size in SCHEMA.sizes.items():
        wanted = made.model.base.marginal((name,)) / made.model.base.total * made.rows
        assert np.abs(np.bincount(made.codes[name], minlength=size) - wanted).max() < 6


def test_the_budget_is_spent_once_and_named_by_pool(made):
    spent = made.spending
    assert spent.rho <= made.budget.rho
    assert spent.rho == pytest.approx(made.budget.rho, rel=1e-9)
    assert {"embedding", "embedding choice"} <= {draw.pool for draw in spent.draws}
    assert [draw.recipe for draw in spent.draws if draw.pool == "embedding"] == ["class-features"] * 2


def test_without_such_structure_the_gate_stays_shut_and_the_counts_get_the_rest():
    made = release(planned(), independent())
    assert isinstance(made.fitted, Embedded)
    assert made.fitted.sums is None
    assert isinstance(made.model, GraphicalModel)
    assert made.spending.rho == pytest.approx(made.budget.rho, rel=1e-9)
    assert any(draw.pool == "further counts" for draw in made.spending.draws)
    assert made.to_json()["embedding"]["used"] is False
    assert "The second stage was not used." in made.files["report.html"].decode()


def test_a_plan_and_its_release_buy_the_same(made):
    shown = preview(planned(), ROWS)
    assert shown.spent == pytest.approx(made.spending.rho, rel=1e-9)
    lines = [(line.pool, line.rho) for line in shown.lines if line.pool.startswith("embedding")]
    assert lines == [(d.pool, d.rho) for d in made.spending.draws if d.pool.startswith("embedding")]
    assert "Its probe detects" in shown.stage
    assert "50% of the budget" in shown.stage
    assert shown.size.seconds > preview(planned(embedding_share=0), ROWS).size.seconds + 7
    assert "each of the 3 copies" in preview(planned(copies=3), ROWS).stage


def test_a_share_by_hand_has_no_probe():
    shown = preview(planned(embedding_share=0.3), ROWS)
    assert [line.pool for line in shown.lines if line.pool.startswith("embedding")] == ["embedding choice", "embedding"]
    assert shown.pools["embedding"] == pytest.approx(0.3 * 0.96 * shown.budget.rho)
    assert "probe" not in shown.stage


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"method": "privci", "roles": Roles(outcome=("y",), protected=("a",), admissible=("b",))}, "cannot follow"),
        ({"method": "workload", "fair": True, "roles": Roles(("y",), ("a",), ("b",))}, "cannot keep a fence"),
        ({"method": "prism", "regime": "causal", "dag": Dag((("a", "y"),))}, "drawn regime|the drawing shapes"),
        ({"method": "prism", "regime": "graphical", "dag": Dag((("a", "y"),))}, "drawn regime|the drawing shapes"),
        ({"method": "decoder", "dag": Dag((("a", "y"),))}, "cannot follow"),
        ({"target": None}, "Choose a target"),
    ],
)
def test_plans_that_it_cannot_follow_are_refused_before_anything_is_spent(plan, said):
    with pytest.raises(ProjectError, match=said) as caught:
        frame_of(planned(**plan))
    assert caught.value.data["key"] == "embedding_share"


def test_other_shares_are_refused():
    for wrong in ("always", -0.1, 0.95, True):
        with pytest.raises(ProjectError, match="embedding_share"):
            planned(embedding_share=wrong)
    assert "embedding_share" not in planned(embedding_share=0.0).plan.to_json()
    assert Plan.from_json(planned().plan.to_json()).embedding_share == "auto"


def test_a_release_is_read_again_sampled_again_and_verified(made, tmp_path):
    made.save(tmp_path / "r")
    findings = verify(tmp_path / "r")
    assert [f.text for f in findings if f.holds is False] == []
    again = loads((tmp_path / "r" / "model.npz").read_bytes())
    assert isinstance(again, TiltedModel)
    assert np.array_equal(again.weights, made.model.weights)
    rows = again.sample(ROWS, np.random.default_rng(0), even=True)
    assert obeyed(rows) > 0.9
    assert obeyed(again.sample(ROWS, np.random.default_rng(0))) > 0.85


def test_rows_of_another_table_do_not_verify(made, tmp_path):
    forged = dataclasses.replace(
        made,
        codes=dict(independent().codes),
        table={c.name: c.decode(independent().codes[c.name], np.random.default_rng(0)) for c in SCHEMA.columns},
        rows=ROWS,
    )
    forged.save(tmp_path / "r")
    assert any(f.check == 5 and f.holds is False for f in verify(tmp_path / "r"))


def test_a_damaged_model_is_refused(made):
    broken = dataclasses.replace(made.model, weights=made.model.weights * 2)
    with pytest.raises(EspalierError, match="not a model"):
        loads(broken.dumps())


def test_copies_fit_base_and_weights_again_and_figures_use_the_counts(made):
    study = Study.of(made)
    assert isinstance(study.model, GraphicalModel)
    ((copy, rows),) = study.more(1, np.random.default_rng(0))
    assert isinstance(copy, TiltedModel)
    assert obeyed(rows) > 0.85
    assert not np.array_equal(copy.sums.values, made.model.sums.values)
    figures = study.with_copies(2)
    assert all(obeyed(codes) < 0.7 for codes in figures.given)  # the counts contain nothing about the rule


def test_the_same_answers_give_the_same_rows(made):
    """Previously, a resumed release drew other rows, so it lost a private evaluation that had begun."""
    again = made.fitted.model()
    assert np.array_equal(again.weights, made.model.weights)
    assert all(np.array_equal(again.pool[name], codes) for name, codes in made.model.pool.items())


def test_no_row_gets_into_an_impossible_cell():
    mask = np.zeros((8, 8), dtype=bool)
    mask[0, :] = True
    mask[0, 0] = False
    table = xor()
    codes = {**table.codes, "b": np.where(table.codes["a"] == 0, 0, table.codes["b"])}
    pool = tilted_module._mutated(codes, "y", NAMES, {("a", "b"): mask}, np.random.default_rng(1))
    assert not mask[pool["a"], pool["b"]].any()
    assert (pool["c"] != codes["c"]).mean() > 0.15
    assert np.array_equal(pool["y"], codes["y"])


def test_the_gate_needs_size_certainty_and_more_than_noise():
    assert Found(0.06, 0.02, 5.0, 0.02, 1.0, 100).worth_it
    assert not Found(0.06, 0.023, 5.0, 0.02, 1.0, 100).worth_it
    assert not Found(0.06, 0.02, 2.5, 0.02, 1.0, 100).worth_it
    assert not Found(0.019, 0.001, 9.0, 0.02, 1.0, 100).worth_it
    assert detectable(1.0, 100, 1e6) == 0.02
    assert detectable(100.0, 100, 1_000) > 0.5


def test_candidates_have_a_public_limit_in_seconds():
    """Five of fifty columns are 2.4 million sets."""
    rng = np.random.default_rng(0)
    pool = {**{f"x{i}": rng.integers(0, 2, 100) for i in range(50)}, "y": rng.integers(0, 2, 100)}
    coarse = {f"x{i}": np.array([0, 1]) for i in range(50)}
    few = column_sets(coarse, pool, "y", 2, 10_000.0)
    assert few is not None
    assert max(map(len, few.candidates)) < 5
    cost = embedding.PER_SET + embedding.PER_ROW * (10_000 + 100)
    assert len(few.candidates) * cost <= embedding.CHOICE_SECONDS
    assert column_sets(coarse, pool, "y", 2, 1e9) is None


def test_directions_read_fewer_columns_where_noise_is_loud():
    assert directions(6_000, 5.0, 20) == 7
    assert directions(6_000, 5.0, 4) == 4
    assert directions(100, 50.0, 20) == 1
    ranks = {n: np.linspace(0, 1, 8) for n in NAMES}
    made = phases(ranks, ("a",), 2, np.random.default_rng(0))
    read = np.stack([(table != table[0]).any(axis=0) | (table != 0).any(axis=0) for table in made.values()])
    assert read.sum(axis=0).max() <= 2


@pytest.mark.parametrize("share", ["auto", 0.5])
def test_columns_that_were_bought_with_one_value_leave_the_base_and_the_whole_budget(share):
    schema = Schema((*(Column(n, "categorical", ("x",)) for n in NAMES), SCHEMA["y"]))
    rows = Table(schema, {**{n: np.zeros(ROWS, int) for n in NAMES}, "y": np.arange(ROWS) % 2}, ROWS)
    project = dataclasses.replace(planned(embedding_share=share), schema=schema)
    curator = PrivateCurator(rows, Unit("replace-one", 1), Budget.of(project.plan, ROWS), 10**6)
    found = embedding.embed(METHODS["mst"].fit, curator, project, Frame(()))
    assert found.sums is None
    assert isinstance(found.model(), GraphicalModel)
    assert curator.spending.rho == pytest.approx(curator.budget.rho)
    assert curator.spending.rho <= curator.budget.rho
