"""Planned analyses: what is promised before a release, what it reaches, and the ε that reaches what is wanted."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from espalier.core.analysis.loading import load_release
from espalier.core.analysis.planned_analyses import Setting, analysed, divided, half_width
from espalier.core.cli.main import main
from espalier.core.errors import ProjectError
from espalier.core.graph.roles import Roles
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import Budget, rho_of
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.unit import Unit
from espalier.core.project.analyses import PlannedAnalysis, read_analyses
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
        ({"group": "ward=a"}, "a proportion may have among"),
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
    one = PlannedAnalysis.from_json(ASKED[1])
    counts = np.array([[120.0, 180.0], [80.0, 320.0]])
    assert half_width(one, counts, 0.0, 1) == pytest.approx(1.959964 * math.sqrt(0.24 / 300 + 0.16 / 400))
    odds = PlannedAnalysis.from_json(ASKED[2])
    assert half_width(odds, counts, 0.0, 1) == pytest.approx(1.959964 * math.sqrt((1 / counts).sum()))
    assert half_width(odds, counts, 30.0, 1) == math.inf
    assert half_width(one, counts, 30.0, 4) > 1.9 * half_width(one, counts, 0.0, 1)


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_at_the_epsilon_that_the_plan_names_every_wanted_half_width_is_promised(neighbors):
    given = project(neighbors=neighbors, rows=8000)
    shown = preview(given, 8000)
    reaches = shown.analyses_epsilon
    assert reaches is not None
    for factor, fits in ((1.001, True), (0.9, False)):
        plans = [one.plan() for one in preview(given.with_plan(epsilon=reaches * factor), 8000).analyses]
        assert all(one["promised"] <= one["wanted"] for one in plans) is fits
    assert shown.pools["analyses"] == pytest.approx(0.5 * shown.budget.rho)


def test_a_width_that_the_rows_cannot_reach_is_stated_and_no_epsilon_is_named():
    shown = preview(project(asked=[{**ASKED[1], "half_width": 0.001}, ASKED[0]]), 4000)
    assert [one.plan()["reachable"] for one in shown.analyses] == [False, True]
    assert shown.analyses_epsilon is None
    assert shown.to_json()["analyses"][0]["assumed"] == {"rows": 4000.0, "shares": [0.4, 0.2], "groups": [0.3, 0.3]}


def test_where_the_assumptions_hold_most_reached_widths_stay_within_the_promise_and_close_to_it():
    """30 releases of three figures: 90 % are expected within, so fewer than 62 of 90 have a chance below 1e-6."""
    made = [one for seed in range(30) for one in bought(project(), 8000, seed)]
    within = [one["reached"] <= one["promised"] for one in made]
    assert sum(within) >= 62
    assert 0.67 <= np.median([one["reached"] / one["promised"] for one in made]) <= 1
    truth = {"share": 0.3, "gap": 0.2, "odds": 1.0}
    held = [one["low"] <= truth[one["name"]] <= one["high"] for one in made]
    assert sum(held) >= 70


def test_a_budget_is_divided_by_need():
    setting = Setting(SCHEMA, Unit(), 8000.0)
    parts = divided(setting, read_analyses(ASKED), 0.02)
    assert sum(parts) == pytest.approx(0.02)
    wide = divided(setting, read_analyses([{**ASKED[0], "half_width": 0.2}, *ASKED[1:]]), 0.02)
    assert wide[0] < parts[0]


def test_a_release_states_promised_and_reached_widths_and_the_command_line_prints_the_promise(tmp_path, capsys):
    given = project(epsilon=2.0)
    file = tmp_path / "study.json"
    file.write_text(given.answered(True).dumps(), "utf-8")
    assert main(["plan", str(file), "--rows", "8000"]) == 0
    said = capsys.readouterr().out
    assert "analysis gap: ± " in said
    assert "for 8,000 rows, events 0.4/0.2, groups 0.3/0.3" in said
    assert "reaches every wanted half-width" in said
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
    both = {**regression, "outcome": "old=yes", "on": ["sick", "ward"]}  # the sums hold their products too
    bought = replace(bought, plan=fenced.plan.changed(regressions=[both], regression_share=0.2))
    with pytest.raises(ProjectError, match="fence keeps sick and ward apart"):
        preview(bought, 8000)
    assert preview(replace(fenced, analyses=read_analyses([ASKED[2]])), 8000).analyses
