"""A target with missing cells: utility, fairness and private evaluation describe the rows where it is observed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from espalier.core.evaluation import evaluate
from espalier.core.evaluation.classifier import fit
from espalier.core.evaluation.private.counts import HeldOutCounts
from espalier.core.evaluation.private.held_out import judge, judged
from espalier.core.evaluation.verdict import verdict
from espalier.core.graph.roles import Roles
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table


def schema(missing: bool) -> Schema:
    return Schema(
        (
            Column("s", "categorical", ("f", "m")),
            Column("x", "numeric", edges=(0, 10, 20, 40), integer=True),
            Column("y", "categorical", ("no", "yes"), missing=missing),
        )
    )


def project(missing: bool) -> Project:
    plan = Plan("mst", 2.0, 1e-6, target="y", private_evaluation=0.2)
    return Project("t", schema(missing), plan, roles=Roles(outcome=("y",), protected=("s",)))


def table(n: int, seed: int, *, gone: float = 0.4) -> Table:
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 2, n)
    y = (rng.random(n) < 0.3 + 0.2 * s).astype(int)
    x = np.where(rng.random(n) < 0.6, y, rng.integers(0, 3, n))
    y[rng.random(n) < gone * s] = 2
    return Table(schema(True), {"s": s, "x": x, "y": y}, n)


def observed(table: Table) -> Table:
    """Return the complete rows, in a schema without missing cells."""
    kept = table.codes["y"] < 2
    return Table(schema(False), {name: codes[kept] for name, codes in table.codes.items()}, int(kept.sum()))


def test_utility_and_fairness_are_those_of_complete_rows():
    real, synthetic, holdout = table(3000, 1), table(3000, 2), table(2000, 3)
    found = evaluate(project(True), real, synthetic, holdout=holdout).to_json()
    alone = evaluate(project(False), observed(real), observed(synthetic), holdout=observed(holdout)).to_json()
    for name in (
        "auc_synthetic",
        "auc_real",
        "accuracy_synthetic",
        "accuracy_real",
        "accuracy_baseline",
        "tested_rows",
    ):
        assert found["tstr"][name] == pytest.approx(alone["tstr"][name], abs=1e-9), name
    for name in ("equalized_odds_difference", "demographic_parity_difference", "demographic_parity_difference_real"):
        assert found["fairness"][name] is not None
        assert found["fairness"][name] == pytest.approx(alone["fairness"][name], abs=1e-9), name
    assert found["fairness"]["positive"] == "yes"
    for one, other in zip(found["fairness"]["groups"], alone["fairness"]["groups"], strict=True):
        assert one["outcome_rate_synthetic"] == pytest.approx(other["outcome_rate_synthetic"])
        assert one["outcome_rate_real"] == pytest.approx(other["outcome_rate_real"])
    assert "% of the tested rows where y is missing are left out" in found["tstr"]["note"]
    assert found["tstr"]["target_missing"] == pytest.approx(np.mean(holdout.codes["y"] == 2))
    said = " ".join(verdict(project(True), found).sentences)
    assert "y is missing in 19 % of the tested rows" in said
    assert "these figures leave them out" in said
    assert "missing" not in " ".join(verdict(project(False), alone).sentences)
    without = evaluate(project(True), real, synthetic).to_json()["tstr"]
    assert without["tested_rows"] == observed(real).rows


def test_a_target_that_is_never_observed_is_told():
    none = table(500, 1)
    none = replace(none, codes={**none.codes, "y": np.full(500, 2)})
    some = table(500, 2)
    assert "missing in every tested row" in evaluate(project(True), none, some).to_json()["tstr"]["auc_real_reason"]
    lost = evaluate(project(True), some, none).to_json()
    assert "every synthetic row has y missing" in lost["tstr"]["auc_synthetic_reason"]
    found = judge(project(True), none, some, Budget(1.0, 1e-6, 50.0)).figures
    assert found[0].value is not None, "a guess, not a traceback"


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_private_figures_are_those_of_complete_rows(neighbors):
    """With a budget so large that the noise is negligible."""
    synthetic, held = table(4000, 3), table(6000, 4)
    made = judge(project(True).with_plan(neighbors=neighbors), synthetic, held, Budget(1.0, 1e-6, 300.0))
    found = {f.name: f for f in made.figures}
    whole = observed(held)
    scores = fit(observed(synthetic), "y").scores(whole)
    truth = whole.codes["y"]
    assert found["accuracy"].value == pytest.approx(np.mean(scores.argmax(axis=1) == truth), abs=0.003)
    area = roc_auc_score(truth, scores[:, 1] - scores[:, 0])
    assert found["auc"].low < area < found["auc"].high
    assert found["auc"].value == pytest.approx(area, abs=0.015)
    assert "of the rows where y is observed (y is missing in about" in found["accuracy"].method
    assert made.accuracy_baseline == pytest.approx(max(np.bincount(truth)) / len(truth), abs=0.01)
    from espalier.core.evaluation.dependence import cmi
    from espalier.core.graph.separations import Separation

    plain = cmi(whole, Separation(("y",), ("s",), ()))
    assert found["cmi"].value == pytest.approx(plain.value - plain.chance, abs=0.003)
    assert found["cmi"].low <= plain.value <= found["cmi"].high + 0.001


@pytest.mark.nightly
def test_accuracy_intervals_hold_the_share_of_observed_rows():
    """Nearly all of sixty intervals at 95 % contain the figure of ten times as many rows."""
    synthetic, large = table(3000, 5), table(60_000, 6)
    whole = observed(large)
    accuracy = float(np.mean(fit(observed(synthetic), "y").scores(whole).argmax(axis=1) == whole.codes["y"]))
    rng, hit = np.random.default_rng(7), 0
    for _ in range(60):
        held = large.take(rng.choice(60_000, 900, replace=False))
        figure = judge(project(True), synthetic, held, Budget(1.0, 1e-6, 0.02)).figures[0]
        hit += figure.low <= accuracy <= figure.high
    assert hit >= 46, "fewer have a chance of two in ten million"


def test_one_held_out_row_still_moves_one_cell_by_one():
    synthetic, held = table(500, 1), table(40, 2)
    asked = HeldOutCounts.of(project(True))
    counted = {}
    for values in np.ndindex(2, 3, 3):
        codes = {n: np.r_[held.codes[n][1:], v] for n, v in zip(("s", "x", "y"), values, strict=True)}
        seen = judged(asked, synthetic, Table(schema(True), codes, 40))
        for clique in [(asked.right,), *asked.cliques("auc"), *asked.cliques("cmi")]:
            counted.setdefault(clique, []).append(seen.count(clique).ravel())
    for tables in counted.values():
        largest = max(float(np.linalg.norm(a - b)) for a in tables for b in tables)
        assert largest <= Unit().count_sensitivity + 1e-12


def test_a_target_that_cannot_be_missing_is_counted_as_before():
    asked = HeldOutCounts.of(project(False))
    assert [asked.schema[name].size for name in (asked.right, *asked.cliques("auc")[0])] == [2, 2, 10]
    asked = HeldOutCounts.of(project(True))
    assert [asked.schema[name].size for name in (asked.right, *asked.cliques("auc")[0])] == [3, 3, 10]
    assert len(asked.tells) == 1, "two values and a missing cell are one question"
