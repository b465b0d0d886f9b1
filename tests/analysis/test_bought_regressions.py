"""Bought regressions match those of the rows if noise is negligible, and their intervals account for the noise."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from espalier.core.analysis.bought_regressions import QUANTILE, System, regressed, terms
from espalier.core.analysis.loading import load_release
from espalier.core.cli.main import main
from espalier.core.errors import ProjectError
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.draws import SumMeasurement
from espalier.core.privacy.regression_sums import ONE, design_of
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.regressions import BoughtRegression
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.table import Table
from verifier.check import verify

SCHEMA = Schema(
    (
        Column("age", "numeric", edges=tuple(range(20, 100, 10))),
        Column("ward", "categorical", tuple("abc"), missing=True),
        Column("drug", "categorical", ("no", "yes")),
        Column("los", "numeric", edges=tuple(np.arange(-0.5, 15))),
        Column("back", "categorical", ("no", "yes")),
    )
)


def table(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    age, ward, drug = rng.integers(0, 7, n), rng.integers(0, 4, n), rng.integers(0, 2, n)
    mean = 1 + 0.4 * age + (ward == 1) + 1.5 * drug - 0.2 * age * drug
    los = np.clip(rng.poisson(np.maximum(mean, 0.2)), 0, 14)
    back = (rng.random(n) < 1 / (1 + np.exp(2.5 - 0.3 * age - 0.8 * drug))).astype(int)
    codes = {"age": age, "ward": ward, "drug": drug, "los": los, "back": back}
    return Table(SCHEMA, {k: v.astype(np.int64) for k, v in codes.items()}, n)


class Loud(PrivateCurator):
    """A curator without noise, for arithmetic alone."""

    def _sums(self, recipe, scale):  # noqa: ARG002
        return recipe.sums(self._source).astype(float)


def plan(*regressions, share=0.5, **more):
    return Project("t", SCHEMA, Plan("mst", 1.0, 1e-6, regressions=regressions, regression_share=share, **more))


def facts(given, **more):
    rows = table()
    project = plan(given, **more)
    curator = Loud(rows, Unit(project.plan.neighbors), Budget(1.0, 1e-6, 0.05), 10**6)
    with regressed(curator, project) as found:
        assert curator.budget.rho == pytest.approx(0.025)
    return found[0].facts(SCHEMA)


def design(columns, rows, pair=None):
    """The usual design matrix with treatment coding, for the rows whose ward is known, and these rows."""
    codes = rows.codes
    kept = codes["ward"] < 3 if "ward" in columns else np.ones(rows.rows, bool)
    known = {"age": (codes["age"] * 10 + 25.0)[:, None], "drug": (codes["drug"] == 1)[:, None]}
    known["ward"] = codes["ward"][:, None] == np.array([1, 2])
    parts = [np.ones((rows.rows, 1)), *(known[c] for c in columns)]
    if pair:
        parts.append((known[pair[0]][:, :, None] * known[pair[1]][:, None, :]).reshape(rows.rows, -1))
    return np.hstack(parts).astype(float)[kept], kept


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("on", "pair"),
    [
        (("age", "ward", "drug"), None),
        (("ward", "age", "drug"), ("age", "drug")),
        (("age", "drug", "ward"), ("drug", "ward")),
    ],
)
def test_a_linear_regression_without_noise_is_that_of_least_squares(on, pair, neighbors):
    given = BoughtRegression("stay", "los", on, interactions=(pair,) if pair else ())
    found = {one["term"]: one["value"] for one in facts(given, neighbors=neighbors)["coefficients"]}
    rows = table()
    x, kept = design(on, rows, pair)
    wanted, *_ = np.linalg.lstsq(x, rows.codes["los"][kept].astype(float), rcond=None)
    assert sorted(found.values()) == pytest.approx(sorted(wanted), abs=0.01)
    assert found["age"] == pytest.approx(wanted[1 + (2 if on[0] == "ward" else 0)], abs=1e-3)
    assert "ward=a" not in found
    assert len(found) == x.shape[1]


@pytest.mark.parametrize(("family", "outcome"), [("logistic", "back=yes"), ("poisson", "los")])
def test_newton_steps_without_noise_reach_the_maximum_of_the_likelihood(family, outcome):
    given = BoughtRegression("r", outcome, ("age", "drug"), family)
    found = [one["value"] for one in facts(given)["coefficients"]]
    rows = table()
    x, _ = design(("age", "drug"), rows)
    y = rows.codes["back" if family == "logistic" else "los"].astype(float)
    beta = np.array([math.log(y.mean()), 0, 0])
    for _ in range(30):
        mu = 1 / (1 + np.exp(-x @ beta)) if family == "logistic" else np.exp(x @ beta)
        weight = mu * (1 - mu) if family == "logistic" else mu
        beta = beta + np.linalg.solve(x.T @ (x * weight[:, None]), x.T @ (y - mu))
    assert found == pytest.approx(beta, abs=0.02)


@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_robust_intervals_buy_the_spread_and_nothing_else_changes(family):
    outcome = "los" if family == "linear" else "back=yes"
    plain, robust = (facts(BoughtRegression("r", outcome, ("age", "drug"), family, r)) for r in (False, True))
    assert [s["what"].split()[0] for s in robust["sums"]] == [s["what"].split()[0] for s in plain["sums"]] + ["spread"]
    for one, other in zip(plain["coefficients"], robust["coefficients"], strict=True):
        assert one["value"] == pytest.approx(other["value"], rel=1e-3)
        assert other["high"] - other["low"] > one["high"] - one["low"]  # the other draws have 70 % of the budget


def system(noise, spread=1.0):
    left = np.array([[100.0, 20.0], [20.0, 50.0]])
    size = np.zeros((2, 2, 3))
    size[0, 0, 0], size[1, 1, 1], size[0, 1, 2], size[1, 0, 2] = [noise] * 4
    return System(left, np.array([10.0, 20.0]), size, np.zeros((2, 3)), spread * left)


def test_an_interval_without_noise_is_the_usual_one_and_noise_widens_it_until_it_has_no_end():
    contrast = np.array([0.0, 1.0])
    value, low, high = system(0.0).interval(contrast)
    error = QUANTILE * math.sqrt(np.linalg.inv(system(0.0).left)[1, 1])
    assert (low, high) == pytest.approx((value - error, value + error))
    _, wide_low, wide_high = system(10.0).interval(contrast)
    assert wide_high - wide_low > high - low
    assert system(40.0).interval(contrast)[1:] == (None, None)
    _, two_low, two_high = replace(system(0.0), rows_per_person=4).interval(contrast)
    assert two_high - two_low == pytest.approx(2 * (high - low))


def test_an_indefinite_system_has_neither_values_nor_ends():
    given = BoughtRegression("stay", "los", ("age", "drug"))
    project = plan(given)

    class Indefinite(Loud):
        def _sums(self, recipe, scale):
            return super()._sums(recipe, scale) * np.where(recipe.weights == 7, 1, -1)

    curator = Indefinite(table(), Unit(), Budget(1.0, 1e-6, 0.05), 10**6)
    with regressed(curator, project) as found:
        pass
    made = found[0].facts(SCHEMA)["coefficients"]
    assert [set(one.values()) - {one["term"]} for one in made] == [{None}] * 3


def test_terms_name_each_column_and_compare_with_the_first_category():
    given = BoughtRegression("r", "los", ("age", "ward", "drug"), interactions=(("ward", "drug"),))
    found = list(terms(design_of(given, SCHEMA), SCHEMA))
    assert [name for name, _ in found] == [
        *("(intercept)", "age", "ward=b", "ward=c", "drug=yes"),
        *("ward=b × drug=yes", "ward=c × drug=yes"),
    ]
    scores, _ = design_of(given, SCHEMA).of({n: np.array([0, 0]) for n in SCHEMA.names} | {"ward": np.array([0, 1])})
    assert np.allclose(found[2][1], (scores[1] - scores[0]) / ONE, atol=2e-3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    asked = [
        {"name": "stay", "outcome": "los", "on": ["age", "ward", "drug"], "robust": True},
        {"name": "again", "outcome": "back=yes", "on": ["age", "drug"], "family": "logistic"},
    ]
    project = plan(*map(BoughtRegression.from_json, asked), neighbors="add-remove").with_plan(epsilon=5.0)
    where = tmp_path_factory.mktemp("regressions") / "release"
    release(Project.loads(project.dumps()), table()).save(where)
    return where


def test_a_release_writes_its_regressions_and_the_verifier_accepts_its_draws(folder):
    made = load_release(folder).regression("stay")
    slope = next(one for one in made["coefficients"] if one["term"] == "age")
    assert 0 < slope["low"] < slope["value"] < slope["high"] < 0.1
    assert made["complete_rows"] == pytest.approx(4500, abs=700)
    assert not [f for f in verify(folder) if f.holds is False]
    assert "Coefficients of stay" in (folder / "report.html").read_text("utf-8")


def test_analyse_prints_a_regression_by_its_name_or_its_outcome(folder, capsys):
    assert main(["analyse", str(folder), "--regression", "again", "--json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert [set(c) for c in one["coefficients"]] == [{"term", "value", "low", "high"}] * 3
    assert main(["analyse", str(folder), "--regression", "los"]) == 0
    assert "stay: a linear regression of los on age, ward, drug" in capsys.readouterr().out
    assert main(["analyse", str(folder), "--regression", "ward"]) == 2
    assert "the regressions are stay, again" in capsys.readouterr().err


def test_a_damaged_regression_is_refused(folder, tmp_path):
    for change in ({"coefficients": None}, {"coefficients": [{"term": "age", "value": "1"}]}, {"level": "much"}):
        held = json.loads((folder / "release.json").read_text("utf-8"))
        held["regressions"][0] |= change
        where = tmp_path / str(len(list(tmp_path.iterdir())))
        where.mkdir()
        for path in folder.iterdir():
            (where / path.name).write_bytes(path.read_bytes())
        (where / "release.json").write_text(json.dumps(held), "utf-8")
        with pytest.raises(ProjectError, match="regression"):
            load_release(where)


def test_a_plan_shows_each_purchase_and_its_share():
    shown = preview(plan(BoughtRegression("stay", "los", ("age", "drug")), share=0.3), 6000)
    assert shown.lines[0].what == "moments of the regression stay"
    assert shown.pools["regressions"] == pytest.approx(0.3 * shown.budget.rho)
    assert shown.spent <= shown.budget.rho


def test_a_noisy_answer_has_the_scale_that_its_draw_states():
    project = plan(BoughtRegression("stay", "los", ("age", "drug")))
    curator = PrivateCurator(table(), Unit(), Budget(1.0, 1e-6, 0.05), 10**6)
    with regressed(curator, project) as found:
        pass
    answer, draw = found[0].answers[0], curator.spending.draws[0]
    assert isinstance(answer, SumMeasurement)
    assert (answer.sigma, draw.recipe, draw.kind) == (draw.scale, "regression", "sums")


@pytest.mark.parametrize(
    "edges", [(0.0, 1.0, 1e307), (0.0, 1e-10, 1e300), (0.0, 5e-324, 1e-323), (1.0, 1 + 2**-52, 2.0)]
)
def test_predictors_at_the_ends_of_floats_cost_no_release(edges):
    """Previously, a coefficient per unit was divided by 0 after everything had been paid for."""
    schema = Schema((Column("x", "numeric", edges=edges), Column("b", "categorical", ("no", "yes"))))
    rows = Table(schema, {name: np.arange(60) % 2 for name in schema.names}, 60)
    bought = BoughtRegression("r", "b=yes", ("x",), "logistic")
    wanted = Plan("independent", 1.0, 1e-6, regressions=(bought,), regression_share=0.5)
    found = release(Project("t", schema, wanted, one_row_per_person=True), rows).regressions[0]["coefficients"]
    assert [one["term"] for one in found] == ["(intercept)", "x"]


@pytest.mark.parametrize("edges", [(0.0, 1.0, 1e307), (0.0, 1e7, 2e7), (0.0, 1e-300, 2e-300)])
def test_a_poisson_outcome_beyond_the_linear_predictor_is_refused_with_the_project(edges):
    """Previously, this was noticed only after the first sums had been paid for."""
    schema = Schema((Column("y", "numeric", edges=edges), Column("b", "categorical", ("no", "yes"))))
    with pytest.raises(ProjectError, match="in another unit"):
        BoughtRegression("r", "y", ("b",), "poisson").check(schema)
