"""The decoder as a method: refused plans and the reasons, its budget, wide tables, and cancelling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from espalier.core.errors import Cancelled, EspalierError, ProjectError, SizeError
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Separation
from espalier.core.methods import frame_of
from espalier.core.methods.decoder import heads_of
from espalier.core.planning.preview import preview
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from tests.support.loosely import release
from tests.support.tables import bought, random_table, schema_of

SCHEMA = schema_of(a=2, b=3, c=2, y=2)
CHAIN = Dag((("a", "b"), ("b", "c"), ("c", "y")))


def project(dag=CHAIN, roles=None, separations=(), schema=SCHEMA, **plan):
    settings = {"method": "decoder", "epsilon": 1.0, "delta": 1e-6, "target": "y", "steps": 3, **plan}
    return Project("t", schema, Plan.from_json(settings), dag, roles or Roles(), separations)


def test_a_latent_can_keep_neither_a_separation_nor_the_causal_regime():
    separation = Separation(("y",), ("a",), ("c",))
    roles = Roles(outcome=("y",), protected=("a",), admissible=("c",))
    for plan, what in (
        (project(roles=roles, fair=True, latent=2), "a separation cannot be kept"),
        (project(regime="causal", latent=1), "the causal regime cannot be kept"),
    ):
        with pytest.raises(ProjectError, match=f"a hidden variable connects all columns, so {what}"):
            frame_of(plan)
    assert frame_of(project(latent=2)).separations == ()
    assert separation.left == frame_of(project(roles=roles, fair=True)).separations[0].left


def test_a_fence_that_the_drawing_does_not_imply_is_refused_before_anything_is_spent():
    roles = Roles(outcome=("y",), protected=("a",), admissible=("c",))
    assert frame_of(project(roles=roles, fair=True)).separations
    around = Dag((*CHAIN.edges, ("a", "y")))
    with pytest.raises(ProjectError, match="the drawing does not make y independent of a given c"):
        release(project(around, roles, fair=True), random_table(SCHEMA, 50, 0))


def test_the_causal_regime_names_what_it_lacks_and_cuts_the_arrows_out_of_the_target():
    with pytest.raises(ProjectError, match="needs a target"):
        frame_of(project(target=None, regime="causal"))
    with pytest.raises(ProjectError, match="needs a drawing"):
        frame_of(project(Dag(), regime="causal"))
    made = release(project(Dag((("a", "y"), ("y", "b"))), regime="causal"), random_table(SCHEMA, 300, 0))
    assert made.model.edges == (("a", "y"),)
    assert made.model.answers(Separation(("y",), ("b", "c"), ("a",))) == "exact"


def test_without_a_drawing_the_schema_is_an_order_and_that_is_said():
    shown = preview(project(Dag()), 300)
    assert any("This order is not a causal claim" in warning for warning in shown.warnings)


def test_every_step_is_booked_alike_and_the_model_knows_its_steps():
    made = release(project(steps=4, families="additive"), random_table(SCHEMA, 400, 0))
    steps = bought(made.spending, "sums")
    assert len(steps) == 4
    assert len({(d.rho, d.scale, d.sensitivity) for d in steps}) == 1
    assert sum(1 for m in made.spending.draws if m.pool == "one-way") == 4
    assert made.spending.rho <= made.budget.rho
    assert made.model.steps == 4


@pytest.mark.parametrize(("latent", "families", "answers"), [(0, "additive", 8), (2, "auto", 8), (0, "auto", 2)])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_what_is_asked_hangs_on_answers_alone_and_is_paid_for_before(neighbors, latent, families, answers, monkeypatch):
    """If neighbouring tables get the same answers, every request is the same, byte for byte."""
    rng, asked, seeded = np.random.default_rng, [], np.random.default_rng(1)
    monkeypatch.setattr(np.random, "default_rng", lambda seed=0: rng(seed))

    def counts(self, cliques, scales):
        asked.append((tuple(cliques), tuple(scales.values()), self.spending.rho))
        shapes = [tuple(self.sizes[name] for name in q) for q in cliques]
        return [500.0 / np.prod(shape) + seeded.normal(size=shape) for shape in shapes]

    def sums(self, recipe, scale):
        heads = recipe.heads
        public = (heads.sizes, heads.parents, heads.importance, heads.latent, heads.base, recipe.clip, recipe.step)
        asked.append((str(public), recipe.parameters.tobytes(), scale, self.spending.rho))
        recipe.sums(self._source)
        return seeded.normal(size=recipe.cells) * scale

    monkeypatch.setattr(PrivateCurator, "_counts", counts)
    monkeypatch.setattr(PrivateCurator, "_sums", sums)
    table = random_table(SCHEMA, 500, 0)
    codes = {n: c.copy() for n, c in table.codes.items()}
    for column in codes.values():
        column[7] = 1 - column[7] % 2
    neighbour = type(table)(SCHEMA, codes, 500) if neighbors == "replace-one" else table.take(np.arange(1, 500))
    seen, parameters = [], []
    for one in (table, neighbour):
        asked.clear()
        seeded = rng(1)
        plan = project(steps=7, neighbors=neighbors, latent=latent, families=families, rows=100)
        made = release(plan, one)
        seen.append(list(asked))
        parameters.append(made.model.parameters.tobytes())
        assert len(asked) == answers
        assert asked[0][-1] < made.spending.rho
        assert {request[-1] for request in asked[1:]} == {made.spending.rho}, "all steps are paid for before the first"
        assert 0.999 * made.budget.rho < made.spending.rho <= made.budget.rho
    assert seen[0] == seen[1]
    assert parameters[0] == parameters[1]


@pytest.mark.parametrize("families", ["auto", "additive"])
@pytest.mark.parametrize(("epsilon", "steps", "columns"), [(0.01, 999, 12), (1.0, 1, 2), (10.0, 50, 200)])
def test_a_plan_spends_all_and_never_more(epsilon, steps, columns, families):
    names = [f"c{i:03}" for i in range(columns)]
    wide = Dag(tuple((names[j], names[i]) for i in range(columns) for j in range(max(0, i - 4), i)))
    schema = schema_of(**{name: 2 + i % 4 for i, name in enumerate(names)})
    given = project(wide, schema=schema, target=names[-1], epsilon=epsilon, steps=steps, families=families)
    seen = preview(given, 5_000)
    assert 0.999 * seen.budget.rho < seen.spent <= seen.budget.rho


@pytest.mark.nightly
def test_a_thousand_columns_are_planned_and_released():
    names = [f"c{i}" for i in range(1000)]
    schema = schema_of(**dict.fromkeys(names, 2))
    dag = Dag(tuple((names[i - 1], names[i]) for i in range(1, 1000)))
    wide = project(dag, schema=schema, target="c999", steps=1)
    made = release(wide, random_table(schema, 120, 0))
    assert len(made.codes) == 1000
    assert made.rows == 120


def test_more_than_two_hundred_thousand_parameters_are_refused_with_the_column():
    schema = schema_of(p=1000, x=300, y=2)
    with pytest.raises(SizeError, match="more than the 200,000 allowed") as error:
        preview(project(Dag((("p", "x"),)), schema=schema), 100)
    assert error.value.data["column"] == "x"


def test_training_is_cancelled_between_steps():
    said = []

    def report(fraction, message):
        said.append((fraction, message))
        if "step 3" in message:
            raise Cancelled("enough")

    with pytest.raises(Cancelled):
        release(project(steps=20, families="additive"), random_table(SCHEMA, 200, 0), report)
    assert [fraction for fraction, _ in said] == sorted(fraction for fraction, _ in said)
    assert not any("step 4" in message for _, message in said)


@pytest.mark.parametrize("key", ["latent", "steps", "clip"])
def test_options_outside_their_range_are_refused(key):
    with pytest.raises(EspalierError, match=key):
        frame_of(project(**{key: -1}))


def test_arrow_strengths_are_those_of_the_model_and_tell_strong_from_none():
    rng = np.random.default_rng(0)
    table = random_table(SCHEMA, 4000, 0)
    codes = {**table.codes, "y": table.codes["c"], "b": rng.integers(0, 3, 4000).astype(np.uint8)}
    made = release(project(steps=30, epsilon=20.0), type(table)(SCHEMA, codes, 4000))
    strength = made.model.strength()
    assert set(strength) == set(CHAIN.edges)
    assert strength["c", "y"] > 0.5
    assert strength["a", "b"] < 0.15


@pytest.mark.parametrize(("columns", "weight"), [(4, 1.0), (12, 1.0), (20, 3.0), (32, 6.0), (200, 6.0)])
def test_a_target_weighs_more_among_many_columns(columns, weight):
    names = [f"c{i}" for i in range(columns)]
    heads = heads_of(project(Dag(), schema=schema_of(**dict.fromkeys(names, 2)), target="c1", targets={"c0": 0.5}))
    assert heads.importance == {"c1": weight, "c0": 0.5 * weight}


def test_without_arrows_only_the_hidden_variable_links_columns():
    for wrong in ({}, {"latent": 2, "regime": "causal"}):
        with pytest.raises(ProjectError, match="without arrows|the causal regime cannot be kept"):
            frame_of(project(arrows="none", **wrong))
    made = project(arrows="none", latent=2)
    assert not any(heads_of(made).inputs(name) for name in SCHEMA.names)
    assert heads_of(made).latent == 2
    assert not frame_of(made).separations
    assert preview(made, 1000).spent > 0


PANEL = Dag((("a", "b"), ("c", "y")), groups={"panel": ("b", "c")})


def test_a_group_as_one_node_has_the_arrows_of_all_its_columns():
    assert heads_of(project(PANEL)).parents["c"] == ()
    joint = heads_of(project(PANEL, groups="joint")).parents
    assert joint == {"a": (), "c": ("a",), "b": ("a", "c"), "y": ("b", "c")}  # c has no drawn cause: it comes first
    inner = Dag((("a", "b"), ("c", "b"), ("c", "y")), groups={"panel": ("b", "c")})
    assert heads_of(project(inner, groups="joint")).parents == {"a": (), "c": ("a",), "b": ("a", "c"), "y": ("b", "c")}
    assert heads_of(project(groups="joint")).parents == heads_of(project()).parents


def test_a_separation_is_judged_on_the_groups_as_nodes():
    split = Separation(("y",), ("b",), ("c",))
    assert frame_of(project(PANEL, separations=(split,), fair=True)).separations
    with pytest.raises(ProjectError, match="the drawing does not make y independent of b given c"):
        frame_of(project(PANEL, separations=(split,), fair=True, groups="joint"))


def test_groups_that_cause_each_other_are_refused_with_the_cycle():
    around = Dag((("b", "a"), ("a", "c")), groups={"panel": ("b", "c")})
    assert frame_of(project(around))
    with pytest.raises(ProjectError, match="as single nodes, the arrows form a cycle") as error:
        release(project(around, groups="joint"), random_table(SCHEMA, 50, 0))
    assert error.value.data["key"] == "groups"


def test_columns_of_a_joint_group_depend_on_each_other_in_the_table():
    """b and c are equal in the real rows, and no arrow links them."""
    rows = random_table(SCHEMA, 4000, 0)
    same = replace(rows, codes={**rows.codes, "b": rows.codes["c"]})
    agree = {}
    for groups in ("columns", "joint"):
        made = release(project(PANEL, groups=groups, steps=40, epsilon=8.0), same)
        agree[groups] = float((made.codes["b"] == made.codes["c"]).mean())
    assert agree["columns"] < 0.6
    assert agree["joint"] > 0.8
