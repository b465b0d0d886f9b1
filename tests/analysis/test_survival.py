"""Survival tables from noisy counts, compared with statsmodels and a known distribution, from plan to answer."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from espalier.core.analysis.loading import load_release
from espalier.core.analysis.planned_analyses import Setting, analysed
from espalier.core.analysis.survival import _squared_gradient, difference, survival
from espalier.core.analysis.survival_table import NUMBERS, check_survival, figure
from espalier.core.cli.main import main
from espalier.core.errors import ProjectError
from espalier.core.graph.roles import Roles
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import Budget, rho_of
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.unit import Unit
from espalier.core.project.analyses import read_analyses, read_analysis
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.table import Table
from verifier.check import verify

SCHEMA = Schema(
    (
        Column("months", "numeric", edges=(0, 6, 12, 18, 24, 30)),
        Column("days", "numeric", edges=tuple(range(0, 8)), integer=True),
        Column("stage", "ordinal", ("I", "II", "III")),
        Column("since", "numeric", edges=(-1, 0, 1)),
        Column("died", "categorical", ("no", "yes"), missing=True),
        Column("arm", "categorical", ("a", "b", "c")),
    )
)
ALL = {
    "name": "all",
    "kind": "survival",
    "time": "months",
    "event": "died=yes",
    "at": 12,
    "half_width": 0.05,
    "assume": {"shares": [0.4]},
}
ARMS = {**ALL, "name": "arms", "group": "arm=a:b", "assume": {"shares": [0.4, 0.4], "groups": [0.5, 0.5]}}


def table(n=8000, seed=0):
    """Times spread evenly and events independent of them, as the promises assume."""
    rng = np.random.default_rng(seed)
    codes = {
        "months": rng.integers(0, 5, n),
        "days": rng.integers(0, 7, n),
        "stage": rng.integers(0, 3, n),
        "since": rng.integers(0, 2, n),
        "died": (rng.random(n) < 0.4).astype(np.int64),
        "arm": rng.integers(0, 2, n),
    }
    return Table(SCHEMA, codes, n)


def project(asked=(ALL, ARMS), **plan):
    given = {"epsilon": 2.0, "delta": 1e-6, "analysis_share": 0.5, **plan}
    return Project("study", SCHEMA, Plan("mst", **given), analyses=read_analyses(list(asked)))


def counted(times, events, many):
    counts = np.zeros((many, 2))
    np.add.at(counts, (times, 1 - events), 1)
    return counts


def heart():
    """Days and deaths of the 69 patients of the Stanford heart transplant study."""
    data = pytest.importorskip("statsmodels.api").datasets.heart.load_pandas().data
    return data["survival"].to_numpy(), data["censors"].to_numpy().astype(int)


def test_without_noise_a_table_of_single_times_is_the_kaplan_meier_estimate_of_statsmodels():
    survfunc = pytest.importorskip("statsmodels.duration.survfunc")
    days, died = heart()
    months = (days // 30).astype(int)
    reference = survfunc.SurvfuncRight(months, died)
    found = survival(counted(months, died, months.max() + 1), 0.0, exact=True)
    at = reference.surv_times.astype(int)
    assert found.survival.value[at] == pytest.approx(reference.surv_prob)
    assert found.at_risk[at] == pytest.approx(reference.n_risk)
    middle = at[(reference.surv_prob > 0.3) & (reference.surv_prob < 0.8)]
    errors = dict(zip(at, reference.surv_prob_se, strict=True))
    width = [(found.survival.high - found.survival.low)[t] / (2 * 1.96 * errors[t]) for t in middle]
    assert 0.9 < min(width) <= max(width) < 1.1


def test_without_noise_the_exact_kaplan_meier_estimate_lies_between_the_two_orders_inside_each_interval():
    survfunc = pytest.importorskip("statsmodels.duration.survfunc")
    days, died = heart()
    edges = np.arange(0, 1900, 180)
    found = survival(counted(np.minimum(days // 180, 9).astype(int), died, 10), 0.0)
    reference = survfunc.SurvfuncRight(days, died)
    known = np.isfinite(found.early.value)
    assert known[:6].all()
    for t, edge in enumerate(edges[1:][known]):
        exact = reference.surv_prob[reference.surv_times < edge][-1]
        assert found.early.value[t] - 1e-9 <= exact <= found.late.value[t] + 1e-9
        assert found.survival.low[t] < exact < found.survival.high[t]
    assert np.nanmax(found.late.value - found.early.value) > 0.02  # the counts alone leave this much open


@pytest.mark.parametrize("sigma", [0.0, 8.0])
def test_intervals_cover_a_known_law_and_no_more_than_that(sigma):
    """2,000 tables from a discrete distribution. If 95 % cover, fewer than 92.5 % or more than 97.5 % has a chance
    below 1e-6."""
    rng, hazards, n = np.random.default_rng(3), np.array([0.02, 0.05, 0.002, 0.1]), 1500
    truth = np.cumprod(1 - hazards)
    died = np.minimum.reduce([np.where(rng.random((2000, n)) < h, t, 9) for t, h in enumerate(hazards)])
    left = rng.integers(0, 6, (2000, n))
    time, event = np.minimum(np.minimum(died, left), 3), ((died <= left) & (died <= 3)).astype(int)
    counts = np.stack([counted(a, b, 4) for a, b in zip(time, event, strict=True)])
    found = survival(counts + sigma * rng.standard_normal(counts.shape), sigma, exact=True)
    for ends, true in ((found.survival, truth), (found.hazard, hazards)):
        covered = ((ends.low <= true) & (true <= ends.high)).mean(axis=0)
        assert (covered > 0.925).all(), covered
        assert (covered < 0.975).all(), covered
    ignored = survival(counts + sigma * rng.standard_normal(counts.shape), 0.0, exact=True).survival
    missed = ((ignored.low <= truth) & (truth <= ignored.high)).mean()
    assert (missed < 0.8) == (sigma > 0)  # noise that the interval does not account for


def test_a_difference_covers_and_several_rows_per_person_widen_it():
    rng, n, sigma = np.random.default_rng(4), 3000, 10.0
    counts = np.stack(
        [[counted(rng.integers(0, 5, n), (rng.random(n) < p).astype(int), 5) for p in (0.5, 0.2)] for _ in range(400)]
    )
    exact = [np.cumprod([1 - p / (5 - t) for t in range(5)])[2] for p in (0.5, 0.2)]  # all times are equally frequent
    noisy = counts + sigma * rng.standard_normal(counts.shape)
    one, other = (survival(noisy[:, g], sigma, exact=True) for g in (0, 1))
    value, low, high = difference(one, other, 2)
    assert 0.91 < ((low <= exact[0] - exact[1]) & (exact[0] - exact[1] <= high)).mean() < 0.985
    assert ((low <= value) & (value <= high)).all()
    few, many = (survival(noisy[:, g], sigma, 4, exact=True) for g in (0, 1))
    wide = difference(few, many, 2)
    assert 1.5 < np.median((wide[2] - wide[1]) / (high - low)) < 2


def test_nothing_is_estimated_once_noise_exceeds_the_rows_at_risk():
    counts = np.array([[10.0, 400], [10, 30], [20, 300], [1, 2]])
    found = survival(counts, 10.0)
    assert np.isfinite(found.survival.low).tolist() == [True, True, False, False]
    assert np.isfinite(found.hazard.high).tolist() == [True, True, False, False]
    one = read_analysis({**ALL, "at": 18})
    assert [math.isnan(x) for x in figure(one, SCHEMA, np.tile(counts, (1, 1, 1))[:, [0, 1, 2, 3, 3]], 10.0, 1)] == [
        True,
        True,
        True,
    ]


def test_a_row_is_in_at_most_one_of_the_counts_so_they_are_one_marginal():
    setting = Setting(SCHEMA, Unit(), 8000.0)
    for asked in (ALL, ARMS):
        one = read_analysis(asked)
        sums = setting.sums(one)
        met = []
        for m, d, a in itertools.product(range(5), range(3), range(3)):
            row = {"months": m, "died": d, "arm": a}
            met.append(sum(all(row[c] in v for c, v in q.alternatives[0].items()) for q in sums.questions))
        assert max(met) == 1
        assert (sums.squared(True), sums.squared(False)) == (2, 1)
        assert one.shape(SCHEMA)[0] * 10 == sums.cells


def test_most_reached_widths_stay_within_the_promise_and_close_to_it():
    """30 releases of two figures: 90 % should keep the promise; fewer than 40 of 60 do so with probability below
    1e-6."""
    given, made = project(), []
    for seed in range(30):
        curator = PrivateCurator(table(seed=seed), Unit(), Budget(2.0, 1e-6, rho_of(2.0, 1e-6)), 10**6)
        with analysed(curator, given) as found:
            made += [one.facts() for one in found]
    assert sum(one["reached"] <= one["promised"] for one in made) >= 40
    assert 0.67 <= np.median([one["reached"] / one["promised"] for one in made]) <= 1
    assert sum(one["low"] <= 0 <= one["high"] for one in made if one["name"] == "arms") >= 25


def test_a_survival_table_goes_from_a_plan_to_every_answer_and_buys_no_new_kind_of_draw(tmp_path, capsys):
    given = project()
    assert Project.loads(given.dumps()) == given
    assert given.to_json()["analyses"] == [ALL, ARMS]
    shown = preview(given, 8000)
    assert [one.plan()["promised"] is not None for one in shown.analyses] == [True, True]
    assert shown.analyses_epsilon is not None
    file = tmp_path / "study.json"
    file.write_text(given.answered(True).dumps(), "utf-8")
    assert main(["plan", str(file), "--rows", "8000"]) == 0
    assert "for 8,000 rows, event shares 0.4, group shares 1, evenly spread times" in capsys.readouterr().out
    made = release(given, table())
    made.save(tmp_path / "out")
    drawn = [d for d in made.spending.draws if d.pool == "analyses"]
    assert [d.recipe for d in drawn] == ["questions", "questions"]
    assert not [f for f in verify(tmp_path / "out") if f.holds is False]
    assert main(["analyse", str(tmp_path / "out"), "--survival", "arms", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["group"], one["end"]) for one in found["table"]][4:6] == [("a", 30), ("b", 6)]
    assert found["low"] <= found["value"] <= found["high"]
    assert found == made.survival("arms")
    assert main(["analyse", str(tmp_path / "out"), "--survival", "all"]) == 0
    said = capsys.readouterr().out
    assert "all: survival without died=yes by months." in said
    assert "Survival at 12: 0." in said
    report = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "Survival: arms" in report
    assert "survival of months to died=yes, at 12, arm=a:b" in report
    with pytest.raises(ProjectError, match=r"several survival tables are about 'died'. Name one of all, arms"):
        made.survival("died")
    with pytest.raises(ProjectError, match="no survival table 'x'; its survival tables are all, arms"):
        made.survival("x")
    for key, value in (("at_risk", None), ("low", "0"), ("interval", 1)):
        held = json.loads((tmp_path / "out" / "release.json").read_text("utf-8"))
        kept = json.dumps(held)
        held["analyses"][0]["table"][0][key] = value
        (tmp_path / "out" / "release.json").write_text(json.dumps(held), "utf-8")
        with pytest.raises(ProjectError, match="survival table"):
            load_release(tmp_path / "out")
        (tmp_path / "out" / "release.json").write_text(kept, "utf-8")


@pytest.mark.parametrize("key", ["hazard", "hazard_low", "survival", "low", "value", "at_risk"])
@pytest.mark.parametrize("odd", ["missing", None, 10**400])
def test_a_survival_table_with_half_an_interval_is_refused(key, odd):
    """Previously, `analyse` and the report ended in a traceback."""
    numbers = dict.fromkeys(NUMBERS, 0.5)
    one: dict[str, Any] = {
        "name": "n",
        "kind": "survival",
        "time": "t",
        "event": "e=y",
        "at": 1,
        "value": 0.5,
        "low": 0.5,
        "high": 0.5,
    }
    one["table"] = [{"group": "", "interval": "0 to 1", **numbers}]
    check_survival(one)
    place = one if key == "value" else one["table"][0]
    del place[key]
    place |= {} if odd == "missing" else {key: odd}
    with pytest.raises(ProjectError, match="survival table lacks its columns or intervals"):
        check_survival(one)


def test_a_survival_table_does_not_lead_around_a_fence():
    roles = Roles(outcome=("died",), protected=("arm",), admissible=("days",))
    fenced = replace(project([ARMS]).with_plan(method="privci"), roles=roles)
    with pytest.raises(ProjectError, match="fence keeps arm and died and months apart"):
        preview(fenced, 8000)


def test_an_interval_of_a_single_time_is_known_from_the_schema():
    days, stage, months = (read_analysis({**ALL, "time": t, "at": at}) for t, at in zip(*CHOSEN, strict=True))
    assert not days.exact(SCHEMA)  # the bin 6 – 7 contains two days
    assert stage.exact(SCHEMA)
    assert not months.exact(SCHEMA)
    half = Schema((Column("days", "numeric", edges=(0, 1, 2, 2.5), integer=True), SCHEMA["died"]))
    assert days.exact(half)


CHOSEN = ("days", "stage", "months"), (2, "II", 12)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"at": 13}, "no interval of 'months' ends at 13. Intervals end at 6, 12, 18, 24, 30"),
        ({"at": None}, "needs the key 'at': the end of one of its time intervals"),
        ({"time": "arm", "at": "a"}, "has categories without an order"),
        ({"time": "since", "at": 0}, "negative times"),
        ({"time": "weight"}, "not a column"),
        ({"time": ""}, "needs the keys 'time'"),
        ({"event": "died"}, "has no value ''; it has no, yes"),
        ({"event": "months=0 – <6"}, "must be different columns"),
        ({"group": "arm=a", "assume": {}}, "column=value:other"),
        ({"group": "died=no:yes", "assume": {}}, "must be different columns"),
        ({"assume": {"shares": [0.4, 0.5]}}, "must list 1 share between"),
        ({"among": "arm=a"}, "unknown key 'among'"),
    ],
)
def test_a_survival_table_that_cannot_be_is_refused_with_a_reason(changes, said):
    with pytest.raises(ProjectError, match=said):
        project([{**ALL, **changes}])


@pytest.mark.parametrize("w", [0.0, 0.5, 1.0])
def test_the_gradient_of_survival_in_the_counts_is_that_of_differences(w):
    counts = np.random.default_rng(1).uniform(20, 80, (6, 2))

    def parts(of):
        later = np.cumsum(of.sum(axis=1)[::-1])[::-1]
        risk = later - (1 - w) * of[:, 1]
        left = np.append(1 - of[:-1, 0] / risk[:-1], 0.5)  # the last one is 0 if all leave before the events
        return np.cumprod(left), risk, left

    squared = np.zeros(6)
    for place in np.ndindex(counts.shape):
        moved = counts.copy()
        moved[place] += 1e-4
        squared += ((parts(moved)[0] - parts(counts)[0]) / 1e-4) ** 2
    left, risk, ratio = parts(counts)
    assert _squared_gradient(left, risk, ratio, w)[:5] == pytest.approx(squared[:5], rel=1e-4)
