"""Families of the decoder that are counted as full tables: causes that act together, and arrows without an effect."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.graph.dag import Dag
from espalier.core.models.decoder import Decoder
from espalier.core.models.decoder_training import family_table, without_effect
from espalier.core.planning.preview import preview
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.table import Table
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
    assert "Columns and their causes" in made.files["report.html"].decode()
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
