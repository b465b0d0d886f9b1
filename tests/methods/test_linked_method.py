"""The method for linked tables: plan and release agree, fences hold at every visit, and unsupported plans are
refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from espalier.core.analysis.returns import return_tables
from espalier.core.analysis.visit_shares import visit_tables
from espalier.core.errors import BudgetError, ProjectError
from espalier.core.evaluation.linked import figures_of
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.methods import fit, frame_of, method_of
from espalier.core.models.linked.column import NoisyTable, Target, fit_column, minimised
from espalier.core.models.linked.model import LinkedModel
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.unit import Unit
from espalier.core.project.column_types import Dates
from espalier.core.project.dates import DateBins
from espalier.core.project.file import Project
from espalier.core.project.linked import Linked
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.panel import Panel

LINK = Linked("people", "visits", "id", "id", "at", 4)
COLUMNS = ("people.age", "people.region", "visits.x", "visits.y")


def project_of(**changes: Any) -> Project:
    schema = Schema(tuple(Column(name, "categorical", tuple("pqr")) for name in COLUMNS))
    plan = Plan("linked", 20.0, 1e-6, neighbors="add-remove", person="id").changed(**changes.pop("plan", {}))
    return Project("people", schema, plan, linked=LINK, **changes)


def panel_of(project: Project, rows: int = 3000, seed: int = 0) -> Panel:
    """Return people whose x stays the same, whose y follows x of the previous visit, and whose region affects y."""
    rng = np.random.default_rng(seed)
    age, region, number = rng.integers(3, size=rows), rng.integers(3, size=rows), rng.integers(4, size=rows)
    x, y = np.zeros((rows, 4), dtype=np.int64), np.zeros((rows, 4), dtype=np.int64)
    for t in range(4):
        fresh = rng.integers(3, size=rows)
        x[:, t] = np.where(rng.random(rows) < 0.7, x[:, t - 1] if t else age, fresh)
        y[:, t] = np.where(rng.random(rows) < 0.6, x[:, t - 1] if t else region, np.where(fresh > 1, region, fresh))
    codes = {"people.age": age, "people.region": region, LINK.number: number, "visits.x": x[:, 0], "visits.y": y[:, 0]}
    visits = {"visits.x": x, "visits.y": y}
    return Panel(project.schema, codes, rows, b"x", np.arange(rows), "id", 1, linked=LINK, visits=visits)


def fitted(project: Project, panel: Panel) -> LinkedModel:
    curator = PrivateCurator(panel, Unit("add-remove"), Budget.of(project.plan, None), 10**6)
    model = fit(curator, project, frame_of(project)).model()
    assert isinstance(model, LinkedModel)
    return model


def drawn(project: Project, model: LinkedModel, rows: int) -> Panel:
    rng = np.random.default_rng(3)
    codes = model.sample(rows, rng)
    return Panel(
        project.schema, codes, rows, b"y", np.arange(rows), "id", 1, linked=LINK, visits=model.visits(codes, rng)
    )


def test_with_little_noise_visits_follow_each_other_as_the_real_ones_do():
    project = project_of(plan={"epsilon": 100.0})
    real = panel_of(project)
    figures = figures_of(real, drawn(project, fitted(project, real), 20_000))
    assert figures["next_visit_same"] < 0.1
    assert figures["transition_error"] < 0.1
    assert figures["next_visit_any"] < 0.1
    assert abs(figures["echo"] - figures["echo_real"]) < 0.05


def test_a_plan_buys_what_a_release_buys():
    project = project_of()
    planned = preview(project, 3000)
    made = release(project, panel_of(project))
    spent = made.spending
    assert spent.rho == pytest.approx(planned.budget.rho, rel=1e-6)
    assert {d.recipe for d in spent.draws} >= {"counts", "step-counts", "echoes", "step-score"}
    assert any("chosen at release" in line.what for line in planned.lines if line.pool == "visit pairs")
    assert [line.what for line in planned.lines if line.pool == "visits"] == [
        d.what for d in spent.draws if d.pool == "visits"
    ]


def test_columns_that_the_plan_names_are_counted_at_each_visit():
    project = project_of(plan={"count_at_visits": ["visits.y"], "at_visits_share": 0.2})
    real = panel_of(project)
    planned, made = preview(project, 3000), release(project, real)
    assert made.spending.rho == pytest.approx(planned.budget.rho, rel=1e-6)
    (draw,) = (d for d in made.spending.draws if d.recipe == "visit-counts")
    assert draw.rho == pytest.approx(0.2 * made.spending.rho, rel=1e-6)
    assert draw.what in [line.what for line in planned.lines]
    tables = visit_tables(json.loads(made.files["release.json"]), LINK, project.schema)
    assert set(tables) == {("visits.x", 1), *(("visits.y", visit) for visit in range(1, 5))}
    many = np.asarray(real.codes[LINK.number]) + 1
    for (name, visit), table in tables.items():
        exact = np.bincount(real.visits[name][many >= visit, visit - 1], minlength=3)
        assert np.abs(table.counts - exact).max() < 7 * table.sigma + 0.001


@pytest.mark.parametrize("key", ["count_at_visits", "count_returns_after"])
@pytest.mark.parametrize(
    ("names", "why"),
    [(["people.age"], "not a column of every visit"), (["visits.x"] * 2, "twice"), ("visits.x", "must be a list")],
)
def test_only_columns_of_every_visit_are_counted(key: str, names: Any, why: str):
    with pytest.raises(ProjectError, match=why) as refused:
        preview(project_of(plan={key: names}), 3000)
    assert refused.value.data["key"] == key


def dated(gap: tuple[float, ...], **plan: Any) -> Project:
    """Return a project whose visits have dates, with these bins of the days between visits."""
    made = project_of(plan=plan)
    year = Dates.of("visits.at", DateBins.from_json({"from": "2020-01-01", "to": "2020-12-31", "by": "year"}))
    schema = Schema((*made.schema.columns, year))
    return Project("people", schema, made.plan, linked=replace(LINK, gap=gap))


def test_returns_that_the_plan_names_are_counted():
    asked = {"count_at_visits": ["visits.x"], "count_returns_after": ["visits.y", "visits.x"], "at_visits_share": 0.3}
    project = dated((0, 8, 31, 91), return_days=7, **asked)
    link, real = project.linked, panel_of(project_of(), 2000)
    assert link is not None
    codes = {**real.codes, "visits.at": np.zeros(real.rows, dtype=np.int64)}
    gaps = np.random.default_rng(2).integers(3, size=(real.rows, link.keep))
    visits = {link.gap_name: gaps, **real.visits}
    real = replace(real, schema=project.schema, codes=codes, linked=link, visits=visits)
    planned, made = preview(project, 2000), release(project, real)
    assert made.spending.rho == pytest.approx(planned.budget.rho, rel=1e-6)
    draws = [d for d in made.spending.draws if d.recipe in ("return-counts", "visit-counts")]
    assert [d.rho for d in draws] == pytest.approx([0.1 * made.spending.rho] * 3, rel=1e-6)
    assert {d.what for d in draws} <= {line.what for line in planned.lines}
    tables = return_tables(json.loads(made.files["release.json"]), link, project.schema)
    assert {name: table.days for name, table in tables.items()} == {"visits.y": 7, "visits.x": 7}
    for name, table in tables.items():
        exact = real.return_counts(name, 1) / link.units
        assert exact.sum() == pytest.approx(real.rows)
        assert np.abs(table.counts - exact).max() < 7 * table.sigma + 0.001


@pytest.mark.parametrize(
    ("gap", "days", "why"),
    [
        ((), 30, r'Order the visits by a column of dates.*"dates": \{"at": \{"gap": \[0, 31, 62\]'),
        ((0, 7, 30, 90), 30, 'Add 31 to the bins .*"gap" in the project file\\), or choose 6, 29\\.$'),
        ((0, 31), 30, "Add 31 to the bins .*\\)\\.$"),
    ],
)
def test_returns_need_days_between_visits_with_a_boundary_after_the_last_day(gap, days: int, why: str):
    plan = {"count_returns_after": ["visits.x"], "return_days": days}
    project = dated(gap, **plan) if gap else project_of(plan=plan)
    with pytest.raises(ProjectError, match=why) as refused:
        preview(project, 3000)
    assert refused.value.data["key"] == ("return_days" if gap else "count_returns_after")


def test_a_release_keeps_every_visit_with_its_person():
    project = project_of()
    made = release(project, panel_of(project))
    assert made.tables is not None
    people, visits = made.tables.texts["people"], made.tables.texts["visits"]
    assert len(set(people["id"])) == made.rows
    assert set(visits["id"]) == set(people["id"])
    numbers = {who: visits["id"].count(who) for who in people["id"][:50]}
    assert [numbers[who] - 1 for who in people["id"][:50]] == made.codes[LINK.number][:50].tolist()
    assert set(visits["visit"]) <= {"1", "2", "3", "4"}
    assert set(visits["x"]) <= set("pqr")
    assert set(made.files) >= {"people.csv", "visits.csv", "release.json", "statement.json", "report.html"}
    facts = json.loads(made.files["release.json"])
    assert facts["tables"]["keep"] == 4
    assert "both tables" in json.loads(made.files["statement.json"])["unit"]["sentence"]
    assert b"at most 1 of them" not in made.files["report.html"]


@pytest.mark.nightly
def test_a_saved_model_draws_the_same():
    project = project_of()
    model = fitted(project, panel_of(project, 500))
    again = method_of(project.plan).load(model.dumps())
    assert isinstance(again, LinkedModel)
    codes = model.sample(200, np.random.default_rng(0))
    one, other = (m.visits(codes, np.random.default_rng(1)) for m in (model, again))
    assert all(np.array_equal(one[name], other[name]) for name in one)


FAIR = Roles(outcome=("visits.x",), protected=("people.region",), admissible=("people.age",))


def g_test(panel: Panel, at: int) -> tuple[float, int]:
    """Return the G statistic and degrees of freedom of x at a visit against region given age."""
    there = np.asarray(panel.codes[LINK.number]) >= at
    total = 0.0
    for age in range(3):
        rows = there & (np.asarray(panel.codes["people.age"]) == age)
        cells = np.zeros((3, 3))
        np.add.at(cells, (panel.visits["visits.x"][rows, at], np.asarray(panel.codes["people.region"])[rows]), 1)
        expected = np.outer(cells.sum(axis=1), cells.sum(axis=0)) / max(cells.sum(), 1)
        total += 2 * float((cells * np.log(np.where(cells > 0, cells / np.maximum(expected, 1e-12), 1))).sum())
    return total, 12


def test_a_fence_holds_at_every_visit_of_the_model_and_of_its_rows():
    from scipy.stats import chi2

    project = project_of(roles=FAIR, plan={"fair": True}, dag=Dag((("people.region", "visits.y"),)))
    model = fitted(project, panel_of(project))
    (separation,) = frame_of(project).separations
    assert set(separation.right) == {"people.region", "visits.y"}
    assert model.answers(separation) == "exact"
    rows = drawn(project, model, 60_000)
    for at in range(4):
        statistic, df = g_test(rows, at)
        assert chi2.sf(statistic, df) > 1e-7  # with Holm's correction over four tests: below one in a million


@pytest.mark.nightly
def test_without_the_fence_the_table_shows_the_link():
    from scipy.stats import chi2

    project = project_of(roles=FAIR, plan={"epsilon": 100.0})
    real = panel_of(project)
    codes = dict(real.codes) | {"visits.x": real.codes["people.region"]}
    visits = dict(real.visits)
    visits["visits.x"] = np.repeat(np.asarray(real.codes["people.region"])[:, None], 4, axis=1)
    unfair = Panel(project.schema, codes, real.rows, b"x", np.arange(real.rows), "id", 1, linked=LINK, visits=visits)
    rows = drawn(project, fitted(project, unfair), 20_000)
    assert all(chi2.sf(*g_test(rows, at)) < 1e-7 for at in range(4))


def test_what_is_not_supported_is_refused_before_anything_is_spent():
    single = Project("people", Schema((Column("a", "categorical", ("n", "y")),)), Plan("linked", 1.0, 1e-6))
    for project, why in (
        (single, "the method linked releases people with their visits"),
        (project_of(plan={"method": "mst"}), "releases a single table, and this project links two"),
        (project_of(plan={"copies": 3}), "does not support copies"),
        (project_of(plan={"private_evaluation": 0.1}), "does not support private_evaluation"),
        (
            project_of(roles=Roles(outcome=("visits.x",), protected=(LINK.number,)), plan={"fair": True}),
            "can be neither protected nor admissible",
        ),
    ):
        with pytest.raises(ProjectError, match=why):
            preview(project, 3000)


def test_nothing_is_drawn_beyond_the_budget():
    project = project_of()
    panel = panel_of(project, 300)
    curator = PrivateCurator(panel, Unit("add-remove"), Budget.of(project.plan, None), 10**6)
    fit(curator, project, frame_of(project))
    assert curator.spending.rho <= curator.budget.rho
    with pytest.raises(BudgetError):
        curator.measure({("people.age",): curator.budget.rho * 0.01})


def test_a_declared_number_of_people_is_met_under_replace_one():
    made = release(project_of(plan={"neighbors": "replace-one", "rows": 700}), panel_of(project_of(), 500))
    assert made.rows == 700
    assert made.to_json()["spent"]["neighbors"] == "replace-one"


def test_a_project_file_of_linked_tables_reads_back():
    link = Linked("people", "visits", "id", "id", "at", 4, arrows=(("visits.x", "visits.y"),))
    made = project_of(dag=Dag((("people.age", "visits.x"),)))
    made = Project("people", made.schema, made.plan, made.dag, linked=link)
    data = json.loads(made.dumps())
    assert data["format"] == "espalier-project/2"
    assert ["visits.x@before", "visits.y"] in data["dag"]["edges"]
    assert Project.loads(made.dumps()) == made
    for change, why in (
        ({"tables": {}}, "one table of people and one table of visits"),
        ({"tables": {**data["tables"], "third": {"of": "people"}}}, "one table of people and one table of visits"),
        ({"tables": {"people": {"key": "id"}, "visits": {**data["tables"]["visits"], "keep": 99}}}, "from 2 to 20"),
        (
            {"tables": {"pe/ople": {"key": "id"}, "visits": {**data["tables"]["visits"], "of": "pe/ople"}}},
            "cannot name",
        ),
    ):
        with pytest.raises(ProjectError, match=why):
            Project.from_json({**data, **change})


def test_a_column_fits_its_counts():
    """With almost no noise and the true parents, the fit reaches the true conditionals; L-BFGS finds a known
    minimum.
    """
    rng = np.random.default_rng(0)
    before, other = rng.integers(3, size=4000), rng.integers(2, size=4000)
    this = np.where(rng.random(4000) < 0.6, before, other)
    cells = {"x@before": before, "x@earlier": np.full(4000, 3), "o": other}
    tables = {}
    for name, size in (("x@before", 3), ("o", 2)):
        counts = np.zeros((size, 3))
        np.add.at(counts, (cells[name], this), 1)
        tables[name] = NoisyTable(counts, 0.01)
    target = Target("x", tables, np.bincount(this, minlength=3).astype(float), 0.0, 4000.0)
    column = fit_column(target, cells.__getitem__, np.ones(4000))
    shown = np.zeros((3, 3))
    np.add.at(shown, before, column.probabilities(cells.__getitem__))
    assert np.abs(shown - tables["x@before"].values).max() < 15
    found = minimised(lambda x: (float(((x - 3) ** 4).sum()), 4 * (x - 3) ** 3), np.zeros(5), 200)
    assert np.abs(found - 3).max() < 0.05
