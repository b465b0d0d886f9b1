"""Missing cells: every figure equals the one that pandas computes from complete rows; missing shares; positivity."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from espalier.core.analysis import answer_text, figure_from_text
from espalier.core.analysis.answers import Copies, answer
from espalier.core.analysis.estimands import Level
from espalier.core.analysis.gate import Gate, Needs
from espalier.core.analysis.missing_shares import Question, missing_shares, questions
from espalier.core.analysis.tally import Tally
from espalier.core.models.graphical import estimate
from espalier.core.privacy.draws import Measurement, summed
from espalier.core.project.schema import Column, Schema

SCHEMA = Schema(
    (
        Column("z", "categorical", ("a", "b", "c"), missing=True),
        Column("t", "categorical", ("no", "yes"), missing=True),
        Column("y", "categorical", ("no", "yes"), missing=True),
        Column("days", "numeric", edges=(0, 2, 4, 8), missing=True),
        Column("size", "numeric", edges=(0, 10, 20), missing=True),
    )
)
SIZES = SCHEMA.sizes
MIDDLES = {"days": (1.0, 3.0, 6.0), "size": (5.0, 15.0)}


def rows(n: int = 6000) -> dict[str, np.ndarray]:
    """Return codes, with missing cells that depend on the treatment and on z."""
    rng = np.random.default_rng(5)
    z, size = rng.integers(0, 3, n), rng.integers(0, 2, n)
    t = (rng.random(n) < 0.25 + 0.2 * z).astype(int)
    y = (rng.random(n) < 0.2 + 0.2 * t + 0.1 * z).astype(int)
    days = np.minimum(rng.integers(0, 2, n) + (rng.random(n) < 0.2 + 0.4 * t), 2)
    y[rng.random(n) < np.where(t == 1, 0.5, 0.05)] = 2
    days[rng.random(n) < np.where(t == 1, 0.3, 0.1)] = 3
    z[rng.random(n) < 0.1] = 3
    t[rng.random(n) < 0.07] = 2
    size[rng.random(n) < 0.1] = 2
    return {"z": z, "t": t, "y": y, "days": days, "size": size}


def frame(*columns: str) -> pd.DataFrame:
    """Return the complete rows of some columns: codes, and numbers as the middles of their bins."""
    out = pd.DataFrame({name: rows()[name].astype(float) for name in columns})
    for name in columns:
        out[name] = out[name].where(out[name] < SCHEMA[name].values)
    out = out.dropna()
    for name in set(columns) & set(MIDDLES):
        out[name] = np.array(MIDDLES[name])[out[name].astype(int)]
    return out


def values(figure) -> np.ndarray:
    return figure.estimate(Tally.of_rows(rows(), SIZES, figure.columns))[0]


def test_shares_differences_and_odds_are_those_of_complete_rows():
    both, y = frame("t", "y"), frame("y")["y"]
    risk = [both[both["t"] == t]["y"].mean() for t in (0, 1)]
    assert values(figure_from_text.proportion(SCHEMA, "y=yes")) == pytest.approx(y.mean())
    assert values(figure_from_text.proportion(SCHEMA, "y=yes", "t=yes")) == pytest.approx(risk[1])
    assert values(figure_from_text.difference(SCHEMA, "y", "t")) == pytest.approx(risk[1] - risk[0])
    cells = [[((both["t"] == t) & (both["y"] == v)).sum() + 0.5 for v in (0, 1)] for t in (0, 1)]
    odds = cells[1][1] * cells[0][0] / cells[1][0] / cells[0][1]
    assert values(figure_from_text.odds_ratio(SCHEMA, "y", "t")) == pytest.approx(math.log(odds))
    assert risk[1] - risk[0] > 0.15, "if a missing outcome counted as no event, it would be near 0"


def test_a_number_with_missing_cells_has_a_mean():
    both = frame("t", "days")
    mean = both.groupby("t")["days"].mean()
    assert values(figure_from_text.mean(SCHEMA, "days")) == pytest.approx(frame("days")["days"].mean())
    assert values(figure_from_text.mean(SCHEMA, "days", "t=yes")) == pytest.approx(mean[1])
    assert values(figure_from_text.mean_difference(SCHEMA, "days", "t")) == pytest.approx(mean[1] - mean[0])
    figure = figure_from_text.mean_difference(SCHEMA, "days", "t")
    _, variance = figure.estimate(Tally.of_rows(rows(), SIZES, figure.columns))
    groups = [both[both["t"] == t]["days"] for t in (0, 1)]
    assert variance == pytest.approx(sum(g.var() / len(g) for g in groups))
    assert values(figure_from_text.regression(SCHEMA, "days", ["t"])) == pytest.approx(mean[1] - mean[0])
    crude, adjusted = values(figure_from_text.effect(SCHEMA, "t", "days", ["z"], 6000))
    assert crude == pytest.approx(mean[1] - mean[0])
    assert adjusted == pytest.approx(standardised("days"))


def standardised(outcome: str) -> float:
    whole, total = frame("z", "t", outcome), 0.0
    for z in range(3):
        stratum = whole[whole["z"] == z]
        treated, control = (stratum[stratum["t"] == t][outcome].mean() for t in (1, 0))
        total += len(stratum) / len(whole) * (treated - control)
    return total


def test_regressions_are_those_of_complete_rows():
    whole = frame("t", "size", "z", "y")
    x = np.column_stack([whole["t"] == 1, whole["size"], whole["z"] == 1, whole["z"] == 2]).astype(float)
    figure = figure_from_text.regression(SCHEMA, "y", ["t", "size", "z"])
    assert [p.name for p in figure.parts()] == ["t: yes against no", "size", "z: b against a", "z: c against a"]
    fit = LogisticRegression(C=1e10, tol=1e-10, max_iter=5000).fit(x, whole["y"])
    assert values(figure) == pytest.approx(fit.coef_[0], abs=1e-4)
    whole = frame("t", "size", "z", "days")
    x = np.column_stack([whole["t"] == 1, whole["size"], whole["z"] == 1, whole["z"] == 2]).astype(float)
    figure = figure_from_text.regression(SCHEMA, "days", ["t", "size", "z"])
    assert values(figure) == pytest.approx(LinearRegression().fit(x, whole["days"]).coef_)


def test_effects_are_those_of_complete_rows():
    figure = figure_from_text.effect(SCHEMA, "t", "y", ["z"], 6000)
    names = [p.name for p in figure.parts()]
    got = dict(zip(names, values(figure), strict=True))
    assert names[:2] == ["crude difference, t: yes against no", "adjusted difference, t: yes against no"]
    both = frame("t", "y").groupby("t")["y"].mean()
    assert got[names[0]] == pytest.approx(both[1] - both[0]), "crude figures do not need z"
    assert got[names[1]] == pytest.approx(standardised("y"))
    logistic = figure_from_text.effect(SCHEMA, "t", "y", ["z", "size"], 100)
    assert logistic.form == "logistic"
    whole = frame("t", "z", "size", "y")
    x = np.column_stack([whole["t"] == 1, whole["z"] == 1, whole["z"] == 2, (whole["size"] > 10).astype(float)]).astype(
        float
    )
    fit = LogisticRegression(C=1e10, tol=1e-10, max_iter=5000).fit(x, whole["y"])
    risk = [fit.predict_proba(np.column_stack([np.full(len(x), t), x[:, 1:]]))[:, 1].mean() for t in (0, 1)]
    assert values(logistic)[1] == pytest.approx(risk[1] - risk[0], abs=1e-4)


def test_missing_cells_can_be_asked_about_themselves():
    y, t = rows()["y"], rows()["t"]
    for text in ("y=", "y=(missing)"):
        figure = figure_from_text.proportion(SCHEMA, text)
        assert figure.event == Level("y", 2)
        assert not figure.missing
        assert values(figure) == pytest.approx((y == 2).mean())
    assert values(figure_from_text.proportion(SCHEMA, "y=", "t=yes")) == pytest.approx((y[t == 1] == 2).mean())
    gone = figure_from_text.difference(SCHEMA, "y=", "t=yes:no")
    assert gone.missing == {"t": 2}
    assert values(gone) == pytest.approx((y[t == 1] == 2).mean() - (y[t == 0] == 2).mean())
    assert values(figure_from_text.regression(SCHEMA, "y=", ["t"]))[0] > 1
    assert figure_from_text.regression(SCHEMA, "days=", ["t"]).event == 3
    assert figure_from_text.odds_ratio(SCHEMA, "days", "t=:yes").missing == {"days": 3}


def test_a_figure_without_any_observed_row_has_no_number():
    gone = {name: np.full(50, SCHEMA[name].values) for name in SIZES}
    for figure in (
        figure_from_text.proportion(SCHEMA, "y=yes"),
        figure_from_text.mean(SCHEMA, "days"),
        figure_from_text.regression(SCHEMA, "y", ["t"]),
        figure_from_text.effect(SCHEMA, "t", "y", ["z"], 6000),
        figure_from_text.effect(SCHEMA, "t", "y", ["z"], 10),
    ):
        assert np.isnan(figure.estimate(Tally.of_rows(gone, SIZES, figure.columns))[0]).all()


def counted(clique: tuple[str, ...], sigma: float = 1e-6, noise: np.random.Generator | None = None) -> Measurement:
    table = np.zeros(tuple(SIZES[name] for name in clique))
    np.add.at(table, tuple(rows()[name] for name in clique), 1)
    return Measurement(clique, table + (0 if noise is None else noise.normal(0, sigma, table.shape)), sigma)


def test_what_is_left_over_of_a_share_is_observed():
    m = Measurement(("t", "y"), np.array([[500.0, 3.0, 900.0], [300.0, 100.0, 100.0], [0.0, 0.0, 0.0]]), 10.0)
    gate = Gate([m], estimate({"t": 3, "y": 3}, [m], 1903.0))
    most, cell = Needs(("y", "t"), (), rests=((("y", 0), ("t", 0)),)), (("y", 0), ("t", 0))
    assert gate.judge(most).kind == "counted", "with missing as a value, 903 rows remain"
    assert gate.judge(Needs(("y", "t"), (), rests=(cell,), missing={"y": 2})).kind == "thin"
    assert gate.noise(cell, rest=True, missing={"y": 2}) == pytest.approx(10.0)
    (part,) = figure_from_text.mean_difference(SCHEMA, "days", "t").parts()
    few = np.array([[60.0, 60, 60, 700], [2.0, 2, 2, 700], [0, 0, 0, 0]])
    m = Measurement(("t", "days"), few, 5.0)
    gate = Gate([m], estimate({"t": 3, "days": 4}, [m], float(few.sum())))
    assert gate.judge(part.needs).kind == "thin", "700 rows have t, but hardly any of these have a number"


def test_shares_are_those_of_the_counts():
    figure = figure_from_text.difference(SCHEMA, "y", "t")
    asked = list(questions(figure, SIZES))
    assert asked == [Question("y", 2, "t", (1, 0)), Question("t", 2, "y", (0, 1))]
    by_t, by_y = missing_shares(asked, [counted(("z", "t", "y"))], {})
    y, t = rows()["y"], rows()["t"]
    assert [s.value for s in by_t.shares] == pytest.approx([(y[t == v] == 2).mean() for v in (1, 0)])
    assert by_t.differ
    assert by_t.p < 1e-6
    assert by_t.level == 0.025, "two tests"
    assert not by_y.differ, "t is missing at random"
    (alone,) = missing_shares(questions(figure_from_text.proportion(SCHEMA, "y=yes"), SIZES), [counted(("y",))], {})
    assert (alone.by, alone.p, alone.shares[0].value) == (None, None, pytest.approx((y == 2).mean()))
    apart = missing_shares(asked, [counted(("y",)), counted(("t",))], {})
    assert "y and t were not counted together" in apart[0].reason
    merged = {"y": np.array([0, 1, 1])}
    assert "together with rare values" in missing_shares(asked, [counted(("t", "y"))], merged)[0].reason


def test_counts_of_several_cliques_are_weighted_by_their_precision():
    found, sigma = summed([counted(("z", "t", "y"), 3.0), counted(("t", "y"), 2.0)], ("y", "t"))
    assert found == pytest.approx(counted(("y", "t")).values)
    assert sigma == pytest.approx((1 / (9 * 4) + 1 / 4) ** -0.5)
    assert summed([counted(("t", "y"))], ("z", "y")) is None


@pytest.mark.parametrize(("sigma", "k"), [(0.5, 1), (15.0, 1), (15.0, 3)])
def test_equal_shares_are_seldom_called_different(sigma, k):
    """With 2,000 tables at 5 % the chance of more than 160 false alarms is below 1e-8; the draws are seeded anyway."""
    rng = np.random.default_rng(8)
    alarms = 0
    for _ in range(2000):
        sizes = rng.multinomial(3000 // k, [0.5, 0.3, 0.2])
        missing = rng.binomial(sizes, 0.2)
        table = k * np.array([missing, sizes - missing]) + rng.normal(0, sigma, (2, 3))
        question = Question("y", 0, "t", (0, 1, 2))
        (one,) = missing_shares([question], [Measurement(("y", "t"), table, sigma)], {}, k)
        alarms += one.differ
    assert 50 < alarms < 160


def test_a_treatment_that_a_stratum_lacks_has_no_effect_but_a_reason():
    data = {name: codes[rows()["z"] != 3] for name, codes in rows().items()}
    data["t"] = np.where((data["z"] == 2) & (data["t"] == 1), 0, data["t"])
    table = np.zeros((4, 3, 3))
    np.add.at(table, tuple(data[name] for name in ("z", "t", "y")), 1)
    figure = figure_from_text.effect(SCHEMA, "t", "y", ["z"], 6000)
    labels = {column.name: column.labels for column in SCHEMA.columns}
    for sigma in (1e-6, 8.0):
        m = [Measurement(("z", "t", "y"), table + np.random.default_rng(1).normal(0, sigma, table.shape), sigma)]
        gate = Gate(m, estimate({n: SIZES[n] for n in ("z", "t", "y")}, m, table.sum()), labels=labels)
        crude, adjusted = answer(figure, Copies([data] * 3, SIZES), gate)[:2]
        assert crude.badge.kind == "counted"
        assert (adjusted.badge.kind, adjusted.low, adjusted.width) == ("no overlap", None, None)
        assert math.isnan(adjusted.value)
        assert "among rows with z = c, almost none have t = yes" in adjusted.badge.sentence
        with_t = data["t"] != 2
        share = (data["z"] == 2)[with_t & (data["y"] != 2)].mean()
        assert gate.overlap(figure.parts()[1].needs).lacking == pytest.approx(share, abs=0.05)
        assert answer_text.sentence(adjusted).startswith(
            "adjusted difference, t: yes against no: cannot be estimated. No answer"
        )
    m = [counted(("z", "t", "y"))]
    gate = Gate(m, estimate({n: SIZES[n] for n in ("z", "t", "y")}, m, 6000.0))
    assert gate.overlap(figure.parts()[1].needs).where == ()
    assert gate.judge(figure.parts()[1].needs).kind == "counted"


def test_an_answer_says_what_makes_its_interval_wide():
    figure = figure_from_text.difference(SCHEMA, "y", "t")
    found = {}
    for sigma in (1.0, 60.0):
        m = [counted(("t", "y"), sigma)]
        gate = Gate(m, estimate({"t": 3, "y": 3}, m, 6000.0))
        copies = [{n: np.roll(c, 1) for n, c in rows().items()}, rows()]
        copies[0]["y"][:40] = 1
        found[sigma] = answer(figure, Copies(copies, SIZES), gate)[0]
    assert found[1.0].width.causes == ("few rows", "missing")
    assert found[60.0].width.causes == ("noise", "missing")
    assert found[1.0].observed == ("y", "t")
    complete = (rows()["y"] != 2) & (rows()["t"] != 2)
    assert found[1.0].left_out == pytest.approx(1 - complete.mean(), abs=0.01)
    assert "of the rows where y and t are observed" in answer_text.sentence(found[1.0])
    assert "The width of the interval comes mostly from the noise" in answer_text.sentence(found[60.0])
    rare = {"z": np.repeat([0, 1], 2000), "t": np.r_[np.tile([0, 1], 1000), np.repeat([0, 1], [1950, 50])]}
    rare["y"] = np.tile([0, 1, 1, 0], 1000)
    table = np.zeros((4, 3, 3))
    np.add.at(table, tuple(rare[name] for name in ("z", "t", "y")), 1)
    m = [Measurement(("z", "t", "y"), table, 2.0)]
    gate = Gate(m, estimate({n: SIZES[n] for n in ("z", "t", "y")}, m, 4000.0))
    effect = figure_from_text.effect(SCHEMA, "t", "y", ["z"], 4000)
    (_, adjusted, *_) = answer(effect, Copies([rare, rare], SIZES), gate)
    assert "weak overlap" in adjusted.width.causes
