"""Twenty targets × five classifiers: real beats shuffled rows, equal rows tie, rare targets are left out."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.errors import Cancelled, SizeError, TableError
from espalier.core.evaluation.downstream import (
    CLASSIFIERS,
    Downstream,
    Tables,
    _classifier,
    _judge,
    downstream,
    many_targets,
)
from tests.support.tables import random_table, schema_of

SIZES = {"x": 3, "y": 2, "z": 3, "rare": 2, "only": 1}


def rows(n, seed, linked=True):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, n)
    y = np.where(rng.random(n) < 0.9, x > 0, rng.integers(0, 2, n)) if linked else rng.permutation(x > 0)
    z = np.where(rng.random(n) < 0.7, x, rng.integers(0, 3, n)) if linked else rng.integers(0, 3, n)
    rare = (np.arange(n) < 3).astype(int)
    return {"x": x, "y": y.astype(int), "z": z, "rare": rare, "only": np.zeros(n, int)}


def tables(linked):
    return Tables(rows(800, 0), rows(800, 1, linked), rows(600, 2), SIZES)


def test_rows_of_the_same_law_score_alike_and_unlinked_rows_score_chance():
    good, bad = (downstream(tables(linked), np.random.default_rng(0)) for linked in (True, False))
    assert good.left_out == ("rare",)
    assert {t.target for t in good.tasks} == {"x", "y", "z"}
    assert len(good.tasks) == 3 * len(CLASSIFIERS)
    macro = good.macro()
    assert macro["auc_real"] > 0.8
    assert macro["auc_synthetic"] == pytest.approx(macro["auc_real"], abs=0.03)
    assert bad.macro()["auc_synthetic"] < 0.65
    assert bad.macro()["auc_real"] == pytest.approx(macro["auc_real"], abs=1e-3)
    assert good.macro(target="y")["auc_real"] > good.macro(target="z")["auc_real"]
    assert good.to_json()["classifiers"].keys() == set(CLASSIFIERS)
    assert all(t.rarer <= 0.5 for t in good.tasks)
    assert all(1 - t.rarer < t.accuracy_real < 1 for t in good.tasks if t.target == "y")


def test_f1_is_of_the_rarer_side():
    x = np.array([[0.0], [0.0], [0.0], [1.0]] * 20)
    y = x[:, 0] > 0
    for name in CLASSIFIERS:
        assert _judge(name, x, y, x, y) == (1.0, 1.0, 1.0)
    assert _classifier("knn", 4).n_neighbors == 4


def test_progress_is_told_and_cancels_and_a_wide_table_is_refused():
    told = []

    def report(fraction, _):
        told.append(fraction)
        if len(told) == 3:
            raise Cancelled("enough")

    with pytest.raises(Cancelled):
        downstream(tables(True), np.random.default_rng(0), report=report)
    assert told == sorted(told)
    with pytest.raises(SizeError, match="1,000"):
        downstream(Tables({}, {}, {}, {"x": 1001}), np.random.default_rng(0))
    assert Downstream((), ()).macro() == {}


def test_targets_may_be_chosen_and_are_twenty_at_most():
    found = downstream(tables(True), np.random.default_rng(0), ["y"])
    assert {t.target for t in found.tasks} == {"y"}
    rng = np.random.default_rng(1)
    wide = {f"c{i}": (rng.random(60) < 0.1).astype(int) for i in range(22)}
    many = downstream(Tables(wide, wide, wide, dict.fromkeys(wide, 2)), rng)
    assert len({t.target for t in many.tasks} | set(many.left_out)) == 20


def test_a_release_is_judged_on_held_out_rows_or_on_rows_that_no_classifier_saw():
    schema = schema_of(x=3, y=2)
    real, synthetic, held = (random_table(schema, 300, seed) for seed in range(3))
    for holdout in (held, None):
        found = many_targets(real, synthetic, holdout, np.random.default_rng(0), ["y"])
        assert len(found.tasks) == len(CLASSIFIERS)
        expected = (held if holdout else real).codes["y"].mean()
        assert found.tasks[0].rarer == pytest.approx(min(expected, 1 - expected), abs=0.02 if holdout else 0.1)
    with pytest.raises(TableError, match="too few"):
        many_targets(real, synthetic.take(np.arange(0)), held, np.random.default_rng(0))
