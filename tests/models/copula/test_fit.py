"""The fit: its spending, its result and its refusals; its file is read back unchanged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from espalier.core.errors import EspalierError, ProjectError
from espalier.core.methods import METHODS, frame_of
from espalier.core.models.base import NumberModel
from espalier.core.models.copula.fit import cleaned, reach, shrunk
from espalier.core.models.copula.layout import Layout
from espalier.core.models.copula.model import CopulaModel
from espalier.core.models.copula.shapes import Pyramid, Shape
from espalier.core.models.graphical import GraphicalModel
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.numeric_axis import Axis
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Numbers, Schema
from espalier.core.tables.table import Table

SCHEMA = Schema(
    (
        Column("a", "numeric", edges=(0, 50, 100), integer=True),
        Column("b", "numeric", edges=(-1, 0, 2)),
        Column("c", "categorical", ("x", "y", "z")),
        Column("o", "ordinal", ("low", "middle", "high")),
        Column("y", "numeric", edges=(-20, 0, 40)),
    )
)


def table(rows, seed=0):
    rng = np.random.default_rng(seed)
    c = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    z = rng.normal(size=rows) + 0.8 * (c == 1)
    w = 0.6 * z + 0.8 * rng.normal(size=rows)
    o = np.digitize(w, [-0.5, 0.7])
    held = {
        "a": np.clip(np.rint(50 + 15 * z), 0, 100),
        "b": np.clip(0.5 + 0.4 * w, -1, 2),
        "y": np.clip(5 + 4 * z * z + 3 * w + 4 * (c == 2) + rng.normal(size=rows), -20, 40),
    }
    codes = {n: np.searchsorted(SCHEMA[n].edges[1:-1], v, side="right") for n, v in held.items()}
    return Table(SCHEMA, {**codes, "c": c, "o": o}, rows, values=held)


def project(**plan):
    given = {"method": "copula", "epsilon": 1.0, "delta": 1e-6, "target": "y", **plan}
    return Project("numbers", SCHEMA, Plan.from_json(given))


def fitted(rows=8000, rho=1.0, relation="replace-one"):
    curator = PrivateCurator(table(rows), Unit(relation, 1), Budget(8.0, 1e-6, rho), 10**6)
    given = project(neighbors=relation)
    done = METHODS["copula"].fit(curator, given, frame_of(given))
    return done.model(), curator


@pytest.mark.parametrize(("rows", "public"), [(8000, True), (2000, True), (8000, False)])
def test_rows_keep_bounds_precision_shape_and_dependence(rows, public):
    model, curator = fitted(rows, 50.0, "replace-one" if public else "add-remove")
    assert 0.999999 * 50 < curator.spending.rho <= 50
    assert math.isclose(model.total, rows, rel_tol=0.02)
    real, made = table(rows), model.draw(6000, np.random.default_rng(2))
    assert set(made) == {"a", "b", "c", "o", "y"}
    assert np.array_equal(made["a"], np.rint(made["a"]))
    assert made["a"].min() >= 0
    assert made["a"].max() <= 100
    assert made["b"].min() >= -1
    assert made["y"].max() <= 40
    assert set(np.unique(made["o"])) <= {0, 1, 2}
    assert (0.8 if rows > 5000 else 0.7) < made["y"].std() / real.values["y"].std() < 1.15
    assert abs(made["a"].mean() - real.values["a"].mean()) < 0.5
    link = np.corrcoef(real.values["a"], real.values["b"])[0, 1]
    assert abs(np.corrcoef(made["a"], made["b"])[0, 1] - link) < 0.15
    gap = real.values["a"][real.codes["c"] == 1].mean() - real.values["a"][real.codes["c"] == 0].mean()
    seen = made["a"][made["c"] == 1].mean() - made["a"][made["c"] == 0].mean()
    assert 0.5 * gap < seen < 1.3 * gap
    (codes,) = model.inputs.layout.reading.blocks(real)
    left = np.mean((real.values["y"] - model.response.surface.at(codes)) ** 2) / real.values["y"].var()
    assert left < (0.5 if rows > 5000 else 0.75)  # a polynomial clips the outcome nearer to its middle


def test_codes_and_numbers_of_a_row_agree():
    model, _ = fitted(3000)
    assert isinstance(model, NumberModel)
    codes, numbers = model.sample_numbers(500, np.random.default_rng(0))
    assert tuple(codes) == SCHEMA.names
    assert set(numbers) == {"a", "b", "y"}
    for name, column in ((n, SCHEMA[n]) for n in numbers):
        texts = column.write(numbers[name], codes[name])
        assert column.encode(texts).tolist() == codes[name].tolist()
        assert np.abs(column.numbers(texts) - numbers[name]).max() <= 1e-3 * (column.edges[-1] - column.edges[0])


def test_the_file_comes_back_the_same_and_others_are_refused():
    for rows in (1000, 6000):
        model, _ = fitted(rows)
        again: Any = METHODS["copula"].load(model.dumps())
        one, two = model.draw(100, np.random.default_rng(3)), again.draw(100, np.random.default_rng(3))
        assert all(np.array_equal(one[name], two[name]) for name in one)
        assert again.facts() == model.facts()
    with pytest.raises(EspalierError, match="not a model"):
        CopulaModel.loads(b"PK", GraphicalModel.loads)


def test_numbers_come_out_with_the_declared_decimals():
    schema = Schema(
        (Numbers("b", "numeric", (-1, 0, 2), decimals=1), Numbers("y", "numeric", (-20, 0, 40), decimals=2))
    )
    whole = table(500)
    two = Table(schema, {n: whole.codes[n] for n in "by"}, 500, values={n: whole.values[n] for n in "by"})
    curator = PrivateCurator(two, Unit("replace-one", 1), Budget(8.0, 1e-6, 1.0), 10**6)
    given = Project("numbers", schema, project().plan)
    model: Any = METHODS["copula"].fit(curator, given, frame_of(given)).model()
    drawn = model.draw(300, np.random.default_rng(0))
    for name, places in (("b", 1), ("y", 2)):
        assert np.allclose(drawn[name], np.round(drawn[name], places), atol=1e-9)


def test_what_it_cannot_carry_is_refused_or_said():
    with pytest.raises(ProjectError, match="numeric column as the target"):
        Layout.of(SCHEMA, "c")
    holes = Schema((Column("a", "numeric", edges=(0, 1), missing=True), Column("y", "numeric", edges=(0, 1))))
    with pytest.raises(ProjectError, match="empty cells of the numeric column 'a'"):
        Layout.of(holes, "y")
    said = " ".join(Layout.of(SCHEMA, "y").limits)
    assert "U-shaped" in said
    assert "mean of a number, not its spread" in said


def test_axis_counts_whole_numbers_one_by_one_and_gives_them_back():
    axis = Axis.declared("a", (0, 5, 10), 1.0)
    assert axis.bins == 11
    shape = Shape(axis, np.full(11, 1 / 11))
    assert set(shape.value_at(np.linspace(0, 0.9999, 500))) == set(range(11))
    assert np.array_equal(axis.bin_of(axis.code(np.arange(11.0))), np.arange(11))


@pytest.mark.parametrize("edges", [(0, 50, 100), (0, 7, 500), (0.5, 90.5)])
def test_bins_of_several_whole_numbers_draw_each_alike(edges):
    axis = Axis.declared("a", edges, 1.0)
    whole = np.arange(np.ceil(axis.low), axis.high + 1)
    counts = np.bincount(axis.bin_of(axis.code(whole)), minlength=axis.bins).astype(float)
    drawn = Shape(axis, counts / counts.sum()).value_at(np.linspace(0, 1, 100_000, endpoint=False))
    assert abs(drawn.mean() - whole.mean()) < 0.1


def pyramid(true, sigma, rng, widths=None, steps=(1, 4, 16)):
    answers = {}
    for step in steps:
        held = np.add.reduceat(true, np.arange(0, len(true), step))
        answers[step] = held + sigma * rng.standard_normal(len(held))
    return Pyramid.of(answers, np.ones(len(true)) if widths is None else widths, sigma)


def test_counts_of_several_widths_are_made_consistent_and_use_all_of_them():
    rng, true = np.random.default_rng(4), np.random.default_rng(5).uniform(50, 400, 21)
    exact = pyramid(true, 1e-6, rng)
    assert np.allclose(exact.chances(true.sum()), true / true.sum())
    assert len(exact.counts[-1]) == 1
    tops = [pyramid(true, 10.0, rng) for _ in range(400)]
    error = np.array([float(p.counts[-1][0]) for p in tops]) - true.sum()
    assert np.std(error) == pytest.approx(math.sqrt(float(tops[0].variance[-1][0])), rel=0.2)
    assert np.std(error) < 0.6 * 10 * math.sqrt(21), "single bins alone would add up to more noise"


def test_even_counts_stay_even_under_noise_and_a_step_is_kept():
    rng = np.random.default_rng(6)
    for true in (np.full(64, 100.0), np.repeat([20.0, 180.0], 32)):
        off = [np.abs(pyramid(true, 10.0, rng).chances(6400) * 6400 - true).mean() for _ in range(20)]
        assert np.mean(off) < 0.85 * 8, "noise of 10 alone causes an error of 8"
    wide = np.array([1.0, 3.0])
    assert Pyramid.of({1: np.array([30.0, 70.0])}, wide, 10.0).chances(100) == pytest.approx([0.25, 0.75])
    assert Pyramid.of({1: np.array([30.0, 70.0])}, wide, 0.1).chances(100) == pytest.approx([0.3, 0.7])


def test_empty_bins_add_up_to_no_tail():
    """1,000 rows are in four of 64 bins, with noise of 35: judged one by one, the bins would put rows everywhere."""
    rng, true = np.random.default_rng(8), np.zeros(64)
    true[4:8] = 250
    found = np.mean([pyramid(true, 35.0, rng).chances(1000)[16:].sum() for _ in range(50)])
    assert found < 0.1


def test_rows_are_counted_where_their_number_is_private_and_never_below_one():
    assert Pyramid.of({1: np.array([-5.0, -9.0])}, np.ones(2), 3.0).chances(0.0).sum() == pytest.approx(1)


def test_noise_clips_harder_and_weights_are_shrunk_by_it():
    assert reach(1e-3) > reach(0.1) > reach(0.9) == 1.0 == reach(50)
    rng = np.random.default_rng(9)
    a = rng.standard_normal((40, 10)) / 6
    matrix, w = a.T @ a, rng.standard_normal(10)
    right = matrix @ w
    sure, told = shrunk(matrix, right, (1e-6, 0.0, 1.0))
    assert np.allclose(sure, w, atol=1e-3)
    assert told == pytest.approx(float(np.trace(np.linalg.inv(matrix))), rel=0.05)
    noisy = right + 0.5 * rng.standard_normal(10)
    less, _ = shrunk(matrix, noisy, (0.5, 0.0, 1.0))
    assert np.linalg.norm(less - w) < np.linalg.norm(np.linalg.solve(matrix, noisy) - w)


def test_nothing_drawn_varies_more_than_the_target_where_noise_is_large():
    ratios = []
    for _ in range(5):
        model, _ = fitted(1000, 0.02)
        known = model.inputs.shapes["y"]
        edges = np.asarray(known.axis.edges)
        middles = (edges[1:] + edges[:-1]) / 2
        spread = math.sqrt(known.chances @ (middles - known.chances @ middles) ** 2)
        ratios.append(model.draw(4000, np.random.default_rng(0))["y"].std() / spread)
    assert max(ratios) < 1.15


def test_noise_is_cleaned_from_a_matrix_and_a_true_difference_is_kept():
    rng = np.random.default_rng(7)
    like, p = np.eye(60), 60
    noise = rng.normal(0, 0.01, (p, p))
    noise = (np.triu(noise) + np.triu(noise, 1).T) + np.diag(0.01 * (math.sqrt(2) - 1) * rng.standard_normal(p))
    assert np.abs(cleaned(like + noise, like, 0.01) - like).max() < 0.02
    along = np.ones((p, 1)) / math.sqrt(p)
    true = like + 2 * along @ along.T
    assert np.linalg.norm(cleaned(true + noise, like, 0.01) - true) < 0.4 * np.linalg.norm(noise)
