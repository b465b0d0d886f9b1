"""Planned analyses: the promised width, the achieved width, and the ε that reaches the desired width."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from espalier.core.analysis.dividing import Curve, divided
from espalier.core.analysis.figure_from_text import effect
from espalier.core.analysis.loading import load_release
from espalier.core.analysis.planned_analyses import Setting, analysed, half_width, standardised, unpromised
from espalier.core.analysis.tally import Tally
from espalier.core.cli.main import main
from espalier.core.errors import ProjectError
from espalier.core.graph.dag import Dag
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
        Column("ward", "categorical", tuple("abc"), missing=True),
        Column("sick", "categorical", ("no", "yes")),
        Column("old", "categorical", ("no", "yes")),
    )
)
ASKED = [
    {"name": "share", "kind": "proportion", "event": "sick=yes", "half_width": 0.02, "assume": {"shares": [0.3]}},
    {
        "name": "gap",
        "kind": "difference",
        "event": "sick=yes",
        "group": "ward=a:b",
        "half_width": 0.05,
        "assume": {"shares": [0.4, 0.2], "groups": [0.3, 0.3]},
    },
    {
        "name": "odds",
        "kind": "odds_ratio",
        "event": "old=yes",
        "group": "sick=yes:no",
        "half_width": 0.3,
        "assume": {"shares": [0.5, 0.5], "groups": [0.3, 0.7]},
    },
]


def table(n=8000, seed=0):
    rng = np.random.default_rng(seed)
    ward = rng.choice(4, n, p=(0.3, 0.3, 0.3, 0.1))
    sick = (rng.random(n) < np.array([0.4, 0.2, 0.3, 0.3])[ward]).astype(int)
    codes = {"ward": ward, "sick": sick, "old": rng.integers(0, 2, n)}
    return Table(SCHEMA, {k: v.astype(np.int64) for k, v in codes.items()}, n)


def project(share=0.5, asked=ASKED, **plan):
    given = {"epsilon": 1.0, "delta": 1e-6, "analysis_share": share, **plan}
    return Project("study", SCHEMA, Plan("mst", **given), analyses=read_analyses(asked))


def bought(given, rows, seed=0):
    budget = Budget(given.plan.epsilon, 1e-6, rho_of(given.plan.epsilon, 1e-6))
    curator = PrivateCurator(table(rows, seed), Unit(given.plan.neighbors), budget, 10**6)
    with analysed(curator, given) as found:
        return [one.facts() for one in found]


def test_a_project_file_keeps_its_analyses_and_a_changed_schema_drops_what_no_longer_fits():
    made = project()
    again = Project.loads(made.dumps())
    assert again == made
    assert again.to_json()["analyses"] == ASKED
    assert again.plan.analysis_share == 0.5


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "mean"}, "kind must be one of"),
        ({"group": "ward=a"}, "a proportion may have among but no group"),
        ({"kind": "difference", "group": "ward=a", "assume": {}}, "column=value:other"),
        ({"event": "sick=maybe"}, "has no value 'maybe'"),
        ({"event": "thick=yes"}, "not a column"),
        ({"among": "sick=no"}, "different columns"),
        ({"assume": {"shares": [0.2, 0.3]}}, "must list 1 share between"),
        ({"half_width": -1}, "positive number"),
        ({"sample": 1}, "unknown key 'sample'"),
    ],
)
def test_an_analysis_that_cannot_be_is_refused_with_a_reason(changes, said):
    with pytest.raises(ProjectError, match=said):
        project(asked=[{**ASKED[0], **changes}])


def test_without_noise_the_intervals_are_the_usual_ones():
    one = read_analysis(ASKED[1])
    counts = np.array([[120.0, 180.0], [80.0, 320.0]])
    assert half_width(one, counts, 0.0, 1) == pytest.approx(1.959964 * math.sqrt(0.24 / 300 + 0.16 / 400))
    odds = read_analysis(ASKED[2])
    assert half_width(odds, counts, 0.0, 1) == pytest.approx(1.959964 * math.sqrt((1 / counts).sum()))
    assert half_width(odds, counts, 30.0, 1) == math.inf
    assert half_width(one, counts, 30.0, 4) > 1.9 * half_width(one, counts, 0.0, 1)


def test_an_event_that_everyone_is_assumed_to_have():
    """Previously, `plan` ended in a traceback."""
    shown = preview(project(asked=[{**ASKED[1], "assume": {"shares": [0.4, 1.0], "groups": [0.5, 0.5]}}]), 4000)
    assert 0 < shown.to_json()["analyses"][0]["promised"] < 1


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_at_the_epsilon_that_the_plan_names_every_wanted_half_width_is_promised(neighbors):
    given = project(neighbors=neighbors, rows=8000)
    shown = preview(given, 8000)
    reaches = shown.analyses_epsilon
    assert reaches is not None
    assert f"{reaches:.3g}" == f"{reaches:g}"
    for factor, fits in ((1, True), (0.9, False)):  # the number as it is printed
        plans = [one.plan() for one in preview(given.with_plan(epsilon=reaches * factor), 8000).analyses]
        assert all(one["promised"] <= one["wanted"] for one in plans) is fits
    assert shown.pools["analyses"] == pytest.approx(0.5 * shown.budget.rho)


def test_a_width_that_the_rows_cannot_reach_is_stated_and_no_epsilon_is_named():
    shown = preview(project(asked=[{**ASKED[1], "half_width": 0.001}, ASKED[0]]), 4000)
    assert [one.plan()["reachable"] for one in shown.analyses] == [False, True]
    assert shown.analyses_epsilon is None
    assert shown.to_json()["analyses"][0]["assumed"] == {"rows": 4000.0, "shares": [0.4, 0.2], "groups": [0.3, 0.3]}


def test_where_the_assumptions_hold_most_reached_widths_stay_within_the_promise_and_close_to_it():
    """30 releases of three figures: 90 % should keep the promise; fewer than 62 of 90 do so with probability below
    1e-6."""
    made = [one for seed in range(30) for one in bought(project(), 8000, seed)]
    within = [one["reached"] <= one["promised"] for one in made]
    assert sum(within) >= 62
    assert 0.67 <= np.median([one["reached"] / one["promised"] for one in made]) <= 1
    truth = {"share": 0.3, "gap": 0.2, "odds": 1.0}
    held = [one["low"] <= truth[one["name"]] <= one["high"] for one in made]
    assert sum(held) >= 70


def test_a_budget_is_divided_so_that_every_promise_is_the_same_multiple_of_what_is_wanted():
    setting = Setting(SCHEMA, Unit(), 8000.0)
    curves = [setting.curve(one) for one in read_analyses(ASKED)]
    parts = divided(curves, 0.0006)
    assert sum(parts) == pytest.approx(0.0006)
    stretches = [curve.at(part) / curve.target for curve, part in zip(curves, parts, strict=True)]
    assert min(stretches) > 1
    assert max(stretches) / min(stretches) < 1.05
    wide = divided([Curve(curves[0].promise, 0.2), *curves[1:]], 0.0006)
    assert wide[0] < parts[0]


def test_an_analysis_that_needs_much_does_not_take_the_promise_of_another():
    """One promise of 1/√ρ needs ρ = 0.01, another ρ = 1: a large budget pays for both, a smaller one only for the
    first."""

    def curve(least, wanted):
        return Curve(lambda rho: 1 / math.sqrt(rho) if rho >= least else math.inf, wanted)

    cheap, dear, never = curve(0.01, 9.0), curve(1.0, 1e-3), curve(math.inf, 1.0)
    assert cheap.least == pytest.approx(0.01, rel=0.03)
    assert cheap.needed == pytest.approx(1 / 81, rel=0.01)
    assert never.least == never.needed == math.inf
    for rho, promised in ((1.2, [True, True]), (0.5, [True, False]), (0.001, [False, False])):
        parts = divided([cheap, dear], rho)
        assert sum(parts) <= rho
        assert [math.isfinite(c.at(p)) for c, p in zip([cheap, dear], parts, strict=True)] == promised
    assert divided([never, never], 1.0) == pytest.approx([0.5, 0.5])
    assert divided([cheap, never], 1.0) == pytest.approx([0.75, 0.25])


def test_nothing_is_promised_where_noise_decides_the_width_and_the_plan_names_an_epsilon():
    rare = {**MORE[0], "assume": {"shares": {"ward": [0.94, 0.05, 0.01]}}, "term": "ward=c"}
    shown = preview(stay_project([rare], epsilon=0.5), 8000)
    assert [one.plan()["promised"] for one in shown.analyses] == [None]
    said = unpromised(shown.analyses, shown.budget)
    assert "stay by age: no half-width is promised" in said
    enough = shown.to_json()["promises_epsilon"]
    assert f"At ε = {enough:.3g} or above" in said
    for factor, made in ((1.01, True), (0.9, False)):
        again = preview(stay_project([rare], epsilon=factor * enough), 8000)
        assert (again.analyses[0].plan()["promised"] is not None) is made
        assert (unpromised(again.analyses, again.budget) == "") is made
    few = preview(project(asked=[{**ASKED[2], "assume": {"shares": [0.1, 0.1]}}]), 20)
    assert "no ε gives every analysis a promise" in unpromised(few.analyses, few.budget)


def test_a_release_states_promised_and_reached_widths_and_the_command_line_prints_the_promise(tmp_path, capsys):
    given = project(epsilon=2.0)
    file = tmp_path / "study.json"
    file.write_text(given.answered(True).dumps(), "utf-8")
    assert main(["plan", str(file), "--rows", "8000"]) == 0
    said = capsys.readouterr().out
    assert "analysis gap: ± " in said
    assert "for 8,000 rows, event shares 0.4/0.2, group shares 0.3/0.3" in said
    assert "all desired half-widths together need ε = " in said
    where = tmp_path / "release"
    release(given, table()).save(where)
    listed = load_release(where).facts["analyses"]
    planned = json.loads(json.dumps([one.plan() for one in preview(given, 8000).analyses]))
    assert [one["promised"] for one in listed] == pytest.approx([one["promised"] for one in planned])
    assert all(one["low"] < one["value"] < one["high"] for one in listed)
    assert "reached ±" in (where / "report.html").read_text("utf-8")
    assert not [f for f in verify(where) if f.holds is False]
    held = json.loads((where / "release.json").read_text("utf-8"))
    held["analyses"][0]["promised"] = "narrow"
    (where / "release.json").write_text(json.dumps(held), "utf-8")
    with pytest.raises(ProjectError, match="analysis"):
        load_release(where)


def test_neither_an_analysis_nor_a_regression_leads_around_a_fence():
    regression = {"name": "r", "outcome": "sick=yes", "on": ["ward"], "family": "logistic"}
    roles = Roles(outcome=("sick",), protected=("ward",), admissible=("old",))
    fenced = replace(project(asked=[ASKED[1]]).with_plan(method="privci"), roles=roles)
    with pytest.raises(ProjectError, match="fence keeps sick and ward apart"):
        preview(fenced, 8000)
    bought = replace(fenced, analyses=(), plan=fenced.plan.changed(regressions=[regression], regression_share=0.2))
    with pytest.raises(ProjectError, match="fence keeps sick and ward apart"):
        preview(bought, 8000)
    both = {**regression, "outcome": "old=yes", "on": ["sick", "ward"]}  # the sums contain their products too
    bought = replace(bought, plan=fenced.plan.changed(regressions=[both], regression_share=0.2))
    with pytest.raises(ProjectError, match="fence keeps sick and ward apart"):
        preview(bought, 8000)
    assert preview(replace(fenced, analyses=read_analyses([ASKED[2]])), 8000).analyses


STAY = Schema(
    (
        Column("ward", "categorical", tuple("abc")),
        Column("age", "numeric", edges=tuple(range(0, 101, 10))),
        Column("drug", "categorical", ("no", "yes")),
        Column("sick", "categorical", ("no", "yes")),
        Column("stay", "numeric", edges=tuple(range(0, 31, 2))),
    )
)
MORE = [
    {
        "name": "stay by age",
        "kind": "regression",
        "outcome": "stay",
        "on": ["age", "ward"],
        "family": "linear",
        "term": "age",
        "half_width": 0.02,
        "assume": {
            "shares": {"ward": [0.5, 0.3, 0.2]},
            "means": {"age": 50, "stay": 12.0},
            "spreads": {"age": 20, "stay": 5.0},
            "correlations": [["age", "stay", 0.4]],
        },
    },
    {
        "name": "risk",
        "kind": "regression",
        "outcome": "sick=yes",
        "on": ["ward"],
        "family": "logistic",
        "term": "ward=b",
        "half_width": 0.4,
        "assume": {"shares": {"ward": [0.5, 0.3, 0.2], "sick": [0.7, 0.3]}},
    },
    {
        "name": "drug",
        "kind": "effect",
        "event": "sick=yes",
        "group": "drug=yes:no",
        "adjust": ["ward"],
        "half_width": 0.06,
        "assume": {"shares": [0.4, 0.2], "groups": [0.5, 0.5], "strata": [0.5, 0.3, 0.2]},
    },
]


def stays(n=8000, seed=0):
    """A table for which the assumptions of `MORE` hold."""
    rng = np.random.default_rng(seed)
    age, extra = rng.standard_normal(n), rng.standard_normal(n)
    drug = rng.integers(0, 2, n)
    codes = {
        "ward": rng.choice(3, n, p=(0.5, 0.3, 0.2)),
        "age": np.clip(50 + 20 * age, 0, 99.9) // 10,
        "drug": drug,
        "sick": rng.random(n) < np.where(drug == 1, 0.4, 0.2),
        "stay": np.clip(12 + 5 * (0.4 * age + 0.84**0.5 * extra), 0, 29.9) // 2,
    }
    return Table(STAY, {name: values.astype(np.int64) for name, values in codes.items()}, n)


def stay_project(asked=MORE, **plan):
    dag = Dag((("ward", "drug"), ("ward", "sick"), ("drug", "sick")))
    given = {"epsilon": 2.0, "delta": 1e-6, "analysis_share": 0.6, **plan}
    return Project("stays", STAY, Plan("mst", **given), dag, analyses=read_analyses(asked))


@pytest.mark.nightly
def test_regressions_and_effects_keep_their_promises_where_the_assumptions_hold():
    """6 tables of three figures: 90 % should keep the promise; fewer than 10 of 18 do so with probability below
    1e-4."""
    given = stay_project()
    assert Project.loads(given.dumps()) == given
    assert given.to_json()["analyses"] == MORE
    made = []
    for seed in range(6):
        curator = PrivateCurator(stays(seed=seed), Unit(), Budget(2.0, 1e-6, rho_of(2.0, 1e-6)), 10**6)
        with analysed(curator, given) as found:
            made += [one.facts() for one in found]
    assert sum(one["reached"] <= one["promised"] for one in made) >= 10
    for name, truth in (("risk", 0.0), ("drug", 0.2)):
        some = [one for one in made if one["name"] == name]
        assert 0.5 <= np.median([one["reached"] / one["promised"] for one in some]) <= 1, name
        assert sum(one["low"] <= truth <= one["high"] for one in some) >= 3, name  # fewer has a probability of 1e-4
    assert 0.5 <= np.median([m["reached"] / m["promised"] for m in made if m["name"] == "stay by age"]) <= 1


def test_an_effect_without_noise_is_the_adjusted_difference_of_the_rows():
    rows = stays()
    figure = effect(STAY, "drug", "sick=yes", ["ward"], rows.rows)
    expected = figure.estimate(Tally.of_rows(rows.codes, STAY.sizes, figure.columns))[0][1]
    one = read_analysis(MORE[2])
    held = [np.all([np.isin(rows.codes[n], c) for n, c in cell.items()], axis=0) for p in one.cells(STAY) for cell in p]
    counts = np.array([h.sum() for h in held], dtype=float).reshape(one.shape(STAY))
    value, slopes = standardised(counts)
    assert value == pytest.approx(expected)
    moved = counts.copy()
    moved[1, 0, 1] += 1e-3
    assert (standardised(moved)[0] - value) / 1e-3 == pytest.approx(slopes[1, 0, 1], rel=1e-3)
    third = read_analysis({**MORE[2], "group": "ward=b:a", "adjust": ["drug"], "assume": {}})
    assert third.shape(STAY) == (2, 3, 2)
    assert sum(share for share, _ in third.assumed_cells(STAY)) == pytest.approx(1)


def test_a_release_lists_a_planned_regression_among_its_regressions_and_its_width_among_the_promises(tmp_path, capsys):
    given = stay_project()
    shown = preview(given, 8000)
    reaches = shown.analyses_epsilon
    assert reaches is not None
    plans = [one.plan() for one in preview(given.with_plan(epsilon=reaches), 8000).analyses]
    assert all(one["promised"] <= one["wanted"] for one in plans)
    made = release(given, stays())
    made.save(tmp_path / "out")
    assert [one["reached"] is not None for one in load_release(tmp_path / "out").facts["analyses"]] == [True] * 3
    assert main(["analyse", str(tmp_path / "out"), "--regression", "stay by age", "--json"]) == 0
    terms = [one["term"] for one in json.loads(capsys.readouterr().out)["coefficients"]]
    assert terms == ["(intercept)", "age", "ward=b", "ward=c"]
    report = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "regression of age of stay on age, ward" in report
    assert "effect of sick=yes drug=yes:no adjusted for ward" in report
    assert not [f for f in verify(tmp_path / "out") if f.holds is False]


@pytest.mark.parametrize(
    ("place", "changes", "said"),
    [
        (0, {"term": "height"}, "no coefficient 'height'; the coefficients are age"),
        (0, {"on": ["stay"]}, "both the outcome and a predictor"),
        (0, {"assume": {"shares": {"ward": [0.5, 0.5]}}}, "has 3 values"),
        (0, {"assume": {"means": {"ward": 1}}}, "instead of a mean or spread"),
        (0, {"assume": {"spreads": {"age": 0}}}, "a number above 0"),
        (0, {"assume": {"correlations": [["age", "stay", 2]]}}, "must list triples"),
        (0, {"event": "sick=yes"}, "unknown key 'event'"),
        (2, {"adjust": ["sick"]}, "cannot be adjusted for 'sick'"),
        (2, {"adjust": []}, "drug ← ward → sick"),
        (2, {"adjust": ["ward", "age", "stay"]}, "450 strata"),
        (2, {"assume": {"strata": [0.5, 0.5]}}, "one share for each stratum"),
        (2, {"kind": "difference"}, "an effect needs adjust"),
    ],
)
def test_a_regression_or_effect_that_cannot_be_is_refused_with_a_reason(place, changes, said):
    asked = {**MORE[place], **changes}
    if changes == {"adjust": []}:
        del asked["assume"]
    with pytest.raises(ProjectError, match=said):
        preview(stay_project([asked]), 8000)
