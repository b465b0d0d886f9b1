"""Figures match textbook formulas and scikit-learn, and the effect matches the adjustment formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from espalier.core.analysis.answers import Copies, answer
from espalier.core.analysis.effect import StandardisedEffect, suggested_form
from espalier.core.analysis.estimands import Difference, Level, OddsRatio, Proportion, Regression
from espalier.core.analysis.gate import Gate
from espalier.core.analysis.tally import Tally
from espalier.core.models.graphical import estimate
from espalier.core.privacy.draws import Measurement

SIZES = {"z": 3, "w": 2, "t": 3, "y": 2}


def rows(n: int = 4000, seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    z, w = rng.integers(0, 3, n), rng.integers(0, 2, n)
    t = np.minimum((rng.random(n) < 0.25 + 0.2 * z).astype(int) + (rng.random(n) < 0.3), 2)
    y = (rng.random(n) < 1 / (1 + np.exp(-(-1.5 + 0.6 * t + 0.7 * z - 0.4 * w)))).astype(int)
    return {"z": z, "w": w, "t": t, "y": y}


def tally(*columns: str) -> Tally:
    return Tally.of_rows(rows(), SIZES, columns)


def test_a_tally_counts_every_row_once():
    got = tally("z", "t", "y")
    assert got.total == 4000
    table = np.zeros((3, 3, 2))
    np.add.at(table, tuple(rows()[n] for n in ("z", "t", "y")), 1)
    assert np.array_equal(got.codes, np.argwhere(table > 0))
    assert np.array_equal(got.weights, table[table > 0])
    with pytest.raises(ValueError, match="too many combinations"):
        Tally.of_rows(
            {f"c{i}": np.zeros(2, int) for i in range(20)},
            {f"c{i}": 100 for i in range(20)},
            [f"c{i}" for i in range(20)],
        )


def test_shares_and_odds():
    data = rows()
    y, yes = data["y"] == 1, Level("y", 1)
    p = Proportion(yes, (Level("z", 2),))
    among = data["z"] == 2
    value, variance = p.estimate(tally(*p.columns))
    assert value[0] == pytest.approx(y[among].mean())
    assert variance[0] == pytest.approx(y[among].var() / among.sum())
    d = Difference(yes, Level("z", 2), Level("z", 0))
    assert d.estimate(tally(*d.columns))[0][0] == pytest.approx(y[among].mean() - y[data["z"] == 0].mean())
    o = OddsRatio(yes, Level("y", 0), Level("z", 2), Level("z", 0))
    (log_odds,), (spread,) = o.estimate(tally(*o.columns))
    cells = [np.sum((data["y"] == a) & (data["z"] == b)) + 0.5 for a, b in ((1, 2), (0, 0), (1, 0), (0, 2))]
    assert math.exp(log_odds) == pytest.approx(cells[0] * cells[1] / cells[2] / cells[3])
    assert spread == pytest.approx(sum(1 / c for c in cells))


def test_logistic_regression_is_that_of_sklearn():
    figure = Regression("y", ("z", "w"), SIZES, event=1, scores={"w": (0.0, 10.0)})
    beta, variance = figure.estimate(tally(*figure.columns))
    assert [p.name for p in figure.parts()] == ["z=1", "z=2", "w"]
    data = rows()
    x = np.column_stack([data["z"] == 1, data["z"] == 2, 10.0 * data["w"]])
    fit = LogisticRegression(C=1e10, tol=1e-10, max_iter=5000).fit(x, data["y"])
    assert beta == pytest.approx(fit.coef_[0], abs=1e-4)
    p = fit.predict_proba(x)[:, 1]
    full = np.column_stack([np.ones(len(x)), x])
    assert variance == pytest.approx(np.diag(np.linalg.inv((full * (p * (1 - p))[:, None]).T @ full))[1:], rel=1e-3)


def test_linear_regression_is_least_squares():
    figure = Regression("t", ("z", "y"), SIZES, scores={"t": (0.0, 1.0, 5.0)}, reference={"z": 1})
    beta, variance = figure.estimate(tally(*figure.columns))
    data = rows()
    x = np.column_stack([np.ones(4000), data["z"] == 0, data["z"] == 2, data["y"] == 1])
    target = np.array([0.0, 1.0, 5.0])[data["t"]]
    coefficients, residual, _, _ = np.linalg.lstsq(x, target, rcond=None)
    assert beta == pytest.approx(coefficients[1:])
    assert variance == pytest.approx(np.diag(np.linalg.inv(x.T @ x))[1:] * residual[0] / 3996)


def test_a_category_that_decides_the_outcome_has_no_coefficient():
    data = {"x": np.array([0] * 50 + [1] * 50), "y": np.array([0, 1] * 25 + [1] * 50)}
    figure = Regression("y", ("x",), {"x": 3, "y": 2}, event=1)
    beta, _ = figure.estimate(Tally.of_rows(data, {"x": 3, "y": 2}, figure.columns))
    assert np.isnan(beta).all()


@pytest.mark.parametrize("form", ["saturated", "logistic"])
def test_the_adjusted_effect_is_the_adjustment_formula(form):
    figure = StandardisedEffect("t", "y", ("z", "w"), SIZES, event=1, form=form)
    names = [p.name for p in figure.parts()]
    values, _ = figure.estimate(tally(*figure.columns))
    got = dict(zip(names, values, strict=True))
    data = rows()
    by_hand = []
    if form == "saturated":
        for t in (0, 2):
            total = 0.0
            for z in range(3):
                for w in range(2):
                    stratum = (data["z"] == z) & (data["w"] == w)
                    total += stratum.mean() * data["y"][stratum & (data["t"] == t)].mean()
            by_hand.append(total)
    else:
        x = np.column_stack([data["t"] == 1, data["t"] == 2, data["z"] == 1, data["z"] == 2, data["w"]]).astype(float)
        fit = LogisticRegression(C=1e10, tol=1e-10, max_iter=5000).fit(x, data["y"])
        for t in (0, 2):
            x[:, :2] = [t == 1, t == 2]
            by_hand.append(fit.predict_proba(x)[:, 1].mean())
    assert got["adjusted difference, t=2"] == pytest.approx(by_hand[1] - by_hand[0], abs=1e-4)
    assert got["adjusted ratio, t=2"] == pytest.approx(math.log(by_hand[1] / by_hand[0]), abs=1e-3)
    crude = [data["y"][data["t"] == t].mean() for t in (0, 2)]
    assert got["crude difference, t=2"] == pytest.approx(crude[1] - crude[0])
    assert len(names) == 8
    assert abs(got["crude difference, t=2"]) > abs(got["adjusted difference, t=2"])  # confounding by z is upward


def test_where_nothing_is_adjusted_for_the_crude_figures_stand_alone():
    figure = StandardisedEffect("t", "y", (), SIZES, event=1)
    names = [p.name.split(",")[0] for p in figure.parts()]
    values, variances = figure.estimate(tally(*figure.columns))
    assert names == ["crude difference", "crude ratio"] * 2
    assert len(values) == len(variances) == 4
    data = rows()
    risk = [data["y"][data["t"] == t].mean() for t in range(3)]
    assert values == pytest.approx(
        [risk[1] - risk[0], math.log(risk[1] / risk[0]), risk[2] - risk[0], math.log(risk[2] / risk[0])]
    )


def test_a_numeric_outcome_is_compared_by_its_means():
    figure = StandardisedEffect("y", "t", ("z",), SIZES, scores=(0.0, 10.0, 20.0))
    values, _ = figure.estimate(tally(*figure.columns))
    data = rows()
    scores = 10.0 * data["t"]
    crude = scores[data["y"] == 1].mean() - scores[data["y"] == 0].mean()
    adjusted = sum(
        (data["z"] == z).mean()
        * (scores[(data["z"] == z) & (data["y"] == 1)].mean() - scores[(data["z"] == z) & (data["y"] == 0)].mean())
        for z in range(3)
    )
    assert values == pytest.approx([crude, adjusted])
    logistic = StandardisedEffect("y", "t", ("z",), SIZES, scores=(0.0, 10.0, 20.0), form="logistic")
    assert logistic.estimate(tally(*figure.columns))[0][1] == pytest.approx(adjusted, abs=0.3)


def test_strata_without_a_treatment_are_left_out():
    data = {"z": np.array([0] * 8 + [1] * 4), "t": np.array([0, 1] * 4 + [1] * 4), "y": np.array([0, 1] * 4 + [0] * 4)}
    sizes = {"z": 2, "t": 2, "y": 2}
    figure = StandardisedEffect("t", "y", ("z",), sizes, event=1)
    counted = Tally.of_rows(data, sizes, figure.columns)
    assert figure.estimate(counted)[0][1] == pytest.approx(1.0)
    assert suggested_form(8000, {**sizes, "z": 360}, "t", ("z",)) == "logistic"
    assert suggested_form(20_000, {**sizes, "z": 360}, "t", ("z",)) == "saturated"


def test_answers_show_intervals_only_where_the_gate_lets_them_through():
    counts = []
    data = rows()
    for clique in (("z", "y"), ("t", "y"), ("w",)):
        table = np.zeros(tuple(SIZES[n] for n in clique))
        np.add.at(table, tuple(data[n] for n in clique), 1)
        counts.append(Measurement(clique, table, 5.0))
    gate = Gate(counts, estimate(SIZES, counts, 4000.0))
    copies = Copies([rows(seed=s) for s in range(6)], SIZES)
    yes = Level("y", 1)
    (one,) = answer(Proportion(yes), copies, gate)
    assert one.low < one.value < one.high
    assert one.badge.promised
    (odds,) = answer(OddsRatio(yes, Level("y", 0), Level("z", 2), Level("z", 0)), copies, gate)
    assert odds.ratio
    assert 1 < odds.low < odds.value < odds.high
    (apart,) = answer(Difference(yes, Level("w", 1), Level("w", 0)), copies, gate)
    assert apart.low is None
    assert apart.high is None
    assert apart.badge.sentence == "y and w were not counted together; the table treats them as independent."
    both = answer(Regression("y", ("z", "t"), SIZES, event=1), copies, gate)
    assert {a.badge.kind for a in both} == {"outcome pairs counted"}
    assert all(a.low < a.value < a.high and not a.badge.promised for a in both)
    copies.rows[0]["t"][:] = 0
    (lost,) = (a for a in answer(Regression("y", ("t",), SIZES, event=1), copies, gate) if a.name == "t=2")
    assert (lost.badge.kind, lost.low) == ("thin", None)
    assert "is almost empty" in lost.badge.sentence
