"""Families of the decoder that are counted as full tables: causes that act together, and arrows without an effect."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from espalier.core.analysis.drawn_families import family_contradictions
from espalier.core.graph.dag import Dag
from espalier.core.methods.decoder import _trained
from espalier.core.methods.decoder_families import Noise, families_of
from espalier.core.models.decoder import Decoder
from espalier.core.models.decoder_training import family_table, shrunk, without_effect
from espalier.core.planning.preview import preview
from espalier.core.privacy.draws import Measurement
from espalier.core.privacy.softmax_heads import Heads
from espalier.core.progress import silent
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table
from tests.support.loosely import release
from tests.support.tables import schema_of
from verifier.check import verify

NAMES = ("a", "b", "c", "y")
SCHEMA = Schema(tuple(Column(n, "categorical", ("no", "yes")) for n in NAMES))
WIDE = Schema((Column("w", "categorical", tuple(map(str, range(60)))), *SCHEMA.columns))
ARROWS = (("a", "y"), ("b", "y"), ("c", "b"))
ROWS = 5_000


def table(seed=0, schema=SCHEMA):
    """y is the XOR of a and b; c, drawn as a cause of b, is not."""
    rng = np.random.default_rng(seed)
    codes = {n: rng.integers(0, 2, ROWS) for n in "abc"}
    codes["y"] = codes["a"] ^ codes["b"]
    if schema is WIDE:
        codes["w"] = rng.integers(0, 60, ROWS)
    return Table(schema, {n: codes[n] for n in schema.names}, ROWS)


def project(schema=SCHEMA, arrows=ARROWS, **plan):
    given = {"method": "decoder", "epsilon": 10.0, "delta": 1e-6, "families": "tables", **plan}
    return Project("p", schema, Plan.from_json(given), Dag(arrows))


def obeyed(codes):
    return float(np.mean((codes["a"] ^ codes["b"]) == codes["y"]))


@pytest.fixture(scope="module")
def made():
    return release(project(), table())


def test_causes_that_act_together_are_kept(made):
    assert obeyed(made.codes) > 0.97
    assert obeyed(release(project(families="additive", steps=3), table()).codes) < 0.6


def test_all_is_spent_and_only_counts_are_bought(made):
    assert 0.999 * made.budget.rho < made.spending.rho <= made.budget.rho
    assert {d.pool for d in made.spending.draws} == {"one-way", "families"}
    assert preview(project(), ROWS).spent == pytest.approx(made.spending.rho)


def test_arrows_that_the_data_contradict_are_reported(made):
    families = {f["column"]: f for f in made.to_json()["families"]}
    assert families["y"]["without_effect"] == []
    assert families["y"]["causes"] == ["a", "b"]
    report = made.files["report.html"].decode()
    assert "Counted together with their causes: b, y." in report
    assert "The counts are evidence against an effect of these drawn arrows: c → b." in report
    rng = np.random.default_rng(1)
    idle = rng.multinomial(ROWS, np.full(8, 1 / 8)).reshape(2, 2, 2) + rng.normal(0, 5, (2, 2, 2))
    strong = idle + 300 * np.array([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]])
    assert without_effect(idle, 5.0, 0)
    assert not without_effect(strong, 5.0, 0)
    assert not without_effect(strong, 5.0, 1)


def test_a_family_that_is_too_large_is_trained_and_the_others_are_counted():
    arrows = (*ARROWS, ("w", "c"), ("a", "c"))
    made = release(project(WIDE, arrows, epsilon=0.4, steps=3), table(schema=WIDE))
    assert 0.999 * made.budget.rho < made.spending.rho <= made.budget.rho
    assert set(made.model.tables) == {"b", "y"}
    assert made.model.steps == 3
    assert ("w", "c") in made.model.edges
    assert obeyed(made.codes) > 0.9


SIZES = {"a": 4, "b": 4, "c": 4, "d": 4, "y": 2}
LARGE = schema_of(**SIZES)
FOUR = tuple((cause, "y") for cause in "abcd")


def xor_of_two(rows=4_000):
    """y is the XOR of a and b being high; c and d, drawn as its causes too, have no effect."""
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, size, rows) for name, size in SIZES.items()}
    codes["y"] = (codes["a"] > 1) ^ (codes["b"] > 1)
    return Table(LARGE, codes, rows)


def of_two(said, **plan):
    given = {"method": "decoder", "epsilon": 1.0, "delta": 1e-6, "steps": 3, "max_cells": 100, **plan}
    dag = Dag(FOUR, interactions=((("a", "b"), "y"),) if said else ())
    return Project("p", LARGE, Plan.from_json(given), dag)


def obeys_both(codes):
    return float(np.mean(((codes["a"] > 1) ^ (codes["b"] > 1)) == codes["y"]))


@pytest.fixture(scope="module")
def said():
    return release(of_two(True), xor_of_two())


def test_a_drawn_interaction_is_counted_where_the_whole_family_is_too_large(said):
    assert obeys_both(said.codes) > 0.9
    assert obeys_both(release(of_two(False), xor_of_two()).codes) < 0.6
    assert {d.pool for d in said.spending.draws} == {"one-way", "families", "training"}
    assert 0.999 * said.budget.rho < said.spending.rho <= said.budget.rho
    (family,) = said.to_json()["families"]
    assert (family["becomes"], family["interactions"], family["cells"]) == ("interactions", [["a", "b"]], 32)
    report = said.files["report.html"].decode()
    assert "Trained with additive causes, and counted interactions: y." in report


def test_all_pairs_are_counted_where_the_noise_is_small():
    made = release(of_two(False, epsilon=30.0), xor_of_two())
    assert len(made.model.interactions["y"]) == 6
    assert obeys_both(made.codes) > 0.9
    assert not release(of_two(False, epsilon=30.0, families="tables"), xor_of_two()).model.interactions


def test_an_interaction_of_more_cells_than_allowed_is_left_out():
    assert preview(of_two(True, max_cells=31), 4_000).families == ("y: additive causes a, b, c, d",)
    with_all = Dag(FOUR, interactions=((("a", "b", "c", "d"), "y"),))
    wide = replace(of_two(True, max_cells=512, epsilon=0.1), dag=with_all)
    assert preview(wide, 500).families == ("y: a table of 512 cells with a, b, c, d",), "the expert said so"


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 30.0])
def test_the_plan_says_what_each_family_becomes_and_the_release_does_so(epsilon, neighbors):
    given = of_two(True, epsilon=epsilon, neighbors=neighbors, rows=4_000)
    seen, made = preview(given, 4_000), release(given, xor_of_two())
    assert seen.families == made.fitted.becomes
    assert seen.to_json()["families"] == list(seen.families)
    bought = sorted((d.pool, d.columns, d.rho) for d in made.spending.draws if d.columns)
    assert bought == sorted((line.pool, line.columns, line.rho) for line in seen.lines if line.columns)


def test_one_cause_is_always_a_table_and_a_private_number_of_rows_comes_from_the_counts():
    rows = table()
    given = project(arrows=(("a", "y"),), families="auto", epsilon=0.02, neighbors="add-remove")
    assert set(release(given, rows).model.tables) == {"y"}
    heads, tight = Heads({"a": 4, "b": 4, "y": 4}, {"y": ("a", "b")}), Noise(1.0, 1e-3, 5_000, 64)
    assert not families_of(heads, (), replace(tight, rows=500), "auto")[0].together
    assert families_of(heads, (), tight, "auto")[0].table
    assert not families_of(heads, (), tight, "additive")[0].together
    assert not families_of(replace(heads, latent=1), (), tight, "auto")[0].together
    assert not families_of(heads, (), replace(tight, max_cells=63), "auto")[0].together


def test_a_table_is_counted_up_to_the_noise_of_a_fifth_of_the_rows():
    """y has 2 × 4 × 4 cells, and additive causes need 2 · (1 + 3 + 3) of them; a budget of ρ leaves noise of
    1/√(2ρ)."""
    heads, rho = Heads({"a": 4, "b": 4, "y": 2}, {"y": ("a", "b")}), 1 / 200
    further, sigma = 32 - 14, 10.0
    rows = further * sigma / 0.2
    assert families_of(heads, (), Noise(1.0, rho, 1.001 * rows, 100), "auto")[0].table
    assert families_of(heads, (), Noise(1.0, rho, 0.999 * rows, 100), "auto")[0].together != (("a", "b"),)


def test_a_target_of_a_small_table_stays_additive_and_a_column_with_one_cause_is_a_table():
    """Sizes, rows and budget of a table of insured people at ε = 1."""
    sizes = {"age": 9, "bmi": 6, "children": 6, "smoker": 2, "charges": 2}
    heads = Heads(sizes, {"children": ("age",), "charges": ("age", "bmi", "children", "smoker")})
    found = families_of(heads, (), Noise(math.sqrt(2), 0.0105, 1_070, 10**6), "auto")
    assert [(f.column, f.table, f.together) for f in found[1:]] == [("charges", False, ())]
    assert found[0].table


def test_a_target_has_the_share_of_its_weight():
    heads = Heads({"a": 2, "b": 2, "y": 2}, {"b": ("a",), "y": ("a",)}, {"y": 3.0})
    assert [f.share for f in families_of(heads, (), Noise(1.0, 1.0, 100, 100), "auto")] == [0.1, 0.9]


def dependent(link, rows=6_000):
    """a and b cause y; b depends on a by ``link``, which the drawing denies."""
    rng = np.random.default_rng(int(1e6 * link) + rows)
    codes = {n: rng.integers(0, 2, rows) for n in "abc"}
    codes["b"] = np.where(rng.random(rows) < link, codes["a"], codes["b"])
    codes["y"] = codes["a"] ^ codes["b"] ^ (rng.random(rows) < 0.2)
    return Table(SCHEMA, codes, rows)


def test_an_independence_that_the_counts_contradict_is_reported():
    made = release(project(arrows=(("a", "y"), ("b", "y"))), dependent(0.3))
    found = made.to_json()["drawing_in_families"]
    assert found["tested"] == 1
    assert [(one["left"], one["right"]) for one in found["contradicted"]] == [(["a"], ["b"])]
    said = "The counts contradict the independence of a and b. An arrow between these columns may be missing."
    assert said in made.files["report.html"].decode()
    calm = release(project(arrows=(("a", "y"), ("b", "y")), epsilon=1.0), dependent(0.0)).to_json()
    assert calm["drawing_in_families"]["tested"] == 1


def test_contradictions_have_the_stated_rate_of_false_alarms():
    """Noisy counts of a table in which the drawing holds: at most 5 in 100 contradict it, and not far fewer."""
    rng, given = np.random.default_rng(3), project(arrows=(("a", "y"), ("b", "y"), ("c", "y")))
    p = rng.dirichlet(np.ones(2), (2, 2, 2)) / 8
    alarms = 0
    for _ in range(150):
        values = rng.multinomial(3_000, p.ravel()).reshape(p.shape) + rng.normal(0, 8, p.shape)
        fitted = Counted((Measurement(NAMES, values, 8.0, 0.1, "families"),))
        found = family_contradictions(given, fitted)["drawing_in_families"]
        assert found["tested"] == 3
        alarms += bool(found["contradicted"])
    assert 1 <= alarms <= 15  # 7.5 are expected; more than 15 occur in 1 of 200 runs


def test_an_arrow_with_a_small_effect_is_seldom_listed_and_one_without_mostly():
    """The arrows have correlations of 0.1 and of 0 between cause and column."""
    rng, listed = np.random.default_rng(4), {}
    for effect in (0.0, 0.1):
        p = 0.125 * np.ones((2, 2, 2)) * (1 + effect * np.array([[1, -1], [-1, 1]])[:, None, :])
        tables = (rng.multinomial(8_000, p.ravel()).reshape(p.shape) + rng.normal(0, 10, p.shape) for _ in range(300))
        listed[effect] = np.mean([without_effect(values, 10.0, 0) for values in tables])
    assert listed[0.1] <= 0.085  # 0.05 and three standard errors
    assert listed[0.0] >= 0.9


@dataclass(frozen=True)
class Counted:
    tables: tuple[Measurement, ...]
    becomes: tuple[str, ...] = ()


def test_a_release_with_an_interaction_is_verified_and_a_changed_one_is_not(said, tmp_path):
    said.save(tmp_path / "r")
    assert [f.text for f in verify(tmp_path / "r") if f.holds is False] == []
    factors = said.model.interactions["y"]["a", "b"] + np.array([0.0, 40.0]) * (np.arange(4) > 1)[:, None, None]
    replace(said, model=replace(said.model, interactions={"y": {("a", "b"): factors}})).save(tmp_path / "w")
    assert [f.check for f in verify(tmp_path / "w") if f.holds is False] == [5], "its rows are not the model's"


def test_the_file_is_read_again_and_verified(made, tmp_path):
    made.save(tmp_path / "r")
    assert [f.text for f in verify(tmp_path / "r") if f.holds is False] == []
    again = Decoder.loads((tmp_path / "r" / "model.npz").read_bytes())
    assert again.edges == made.model.edges
    assert obeyed(again.sample(2_000, np.random.default_rng(0))) > 0.97
    assert again.strength()["a", "y"] > 0.9


def test_noise_alone_leaves_a_columns_own_distribution():
    rng, alone = np.random.default_rng(2), np.array([0.3, 0.7])
    quiet = family_table(1_000 * np.array([[0.9, 0.1], [0.2, 0.8]]), 1.0, alone)
    assert np.allclose(quiet, [[0.9, 0.1], [0.2, 0.8]], atol=1e-3)
    loud = family_table(20 * alone + rng.normal(0, 1, (4, 2)), 100.0, alone)
    assert np.allclose(loud, alone, atol=0.1)
    empty = family_table(np.full((2, 2), -5.0), 3.0, alone)
    assert np.allclose(empty.sum(axis=-1), 1)


def test_effects_that_add_up_and_an_interaction_of_two_survive_the_noise_of_a_table_of_three():
    """3,000 rows, noise of 12 in each of 128 cells. Shrinking each combination of causes alone has errors of 0.08."""
    rng, places = np.random.default_rng(5), np.linspace(-1, 1, 4)
    added = places[:, None, None] + places[:, None] + places
    xor = 2 * np.sign(places[:, None, None] * places[:, None]) + 0 * places
    for odds, most in ((added, 0.045), (xor, 0.025)):
        chance = 1 / (1 + np.exp(-1.5 * odds))
        p, errors = np.stack([1 - chance, chance], axis=-1), []
        for _ in range(30):
            counts = rng.multinomial(3_000, (p / 64).ravel()).reshape(p.shape) + rng.normal(0, 12, p.shape)
            errors.append(float(((family_table(counts, 12.0, p.mean(axis=(0, 1, 2))) - p) ** 2).sum(axis=-1).mean()))
        assert np.mean(errors) < most


@pytest.mark.parametrize("shape", [(3, 2), (3, 4, 2), (2, 3, 4, 5), (2, 2, 2, 2, 3)])
def test_shrinking_keeps_what_is_far_above_noise_and_little_of_noise(shape):
    rng = np.random.default_rng(6)
    quiet = rng.normal(0, 100, shape)
    kept, left = shrunk(quiet, 1e-6 * shape[-1])
    assert np.allclose(kept, quiet, atol=1e-2)
    assert left == pytest.approx(1.0, abs=1e-4)
    loud = [rng.normal(0, 1, shape) for _ in range(200)]
    found = [shrunk(values, shape[-1]) for values in loud]
    assert np.mean([np.mean(kept**2) for kept, _ in found]) < 0.3
    assert np.mean([left for _, left in found]) < 0.2


def test_the_request_of_training_lists_counted_tables_in_the_order_of_the_schema():
    """An order that differed in each process made interrupted releases impossible to resume."""
    names = tuple(f"column {i}" for i in range(40))
    sizes = dict.fromkeys(names, 2)
    tables = dict.fromkeys(reversed(names[5:]), np.ones(2) / 2)
    counted = Decoder(Heads(sizes, dict.fromkeys(names, ())), np.zeros(0), tables=tables)
    asked = []

    class Prepaid(Exception):
        pass

    class Asking:
        def prepay(self, recipe, *_):
            asked.append(recipe)
            raise Prepaid

    with pytest.raises(Prepaid):
        _trained(Asking(), counted, {}, 1.0, 1.0, 10, silent)
    assert tuple(asked[0].heads.importance) == names[5:]
