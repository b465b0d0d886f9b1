"""Private figures are paid for, have the recorded noise, come from held-out people, and are near the truth."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from espalier.core.errors import ProjectError
from espalier.core.evaluation.classifier import fit
from espalier.core.evaluation.private.counts import HeldOutCounts
from espalier.core.evaluation.private.evaluation import bounded
from espalier.core.evaluation.private.held_out import judge, judged, rehearse
from espalier.core.graph.roles import Roles
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.report.page import render
from espalier.core.tables.table import Table

SCHEMA = Schema(
    (
        Column("s", "categorical", ("f", "m")),
        Column("a", "ordinal", ("lo", "mid", "hi")),
        Column("x", "numeric", edges=(0, 10, 20, 40), integer=True),
        Column("y", "categorical", ("no", "yes")),
    )
)
ROLES = Roles(outcome=("y",), protected=("s",), admissible=("a",))
PROJECT = Project("t", SCHEMA, Plan("mst", 2.0, 1e-6, target="y", private_evaluation=0.2), roles=ROLES)
FALSE_ALARM = 1e-7


def table(n=6000, seed=0, person=None):
    rng = np.random.default_rng(seed)
    s, a = rng.integers(0, 2, n), rng.integers(0, 3, n)
    y = (rng.random(n) < 0.1 + 0.3 * a + 0.1 * s).astype(int)
    x = np.where(rng.random(n) < 0.7, y, rng.integers(0, 3, n))
    return Table(
        SCHEMA, {"s": s, "a": a, "x": x, "y": y}, n, person=person, person_column=None if person is None else "id"
    )


@pytest.fixture(scope="module")
def made():
    return release(PROJECT, table())


def test_looking_spends_no_more_than_the_release_and_adds_nothing(made):
    facts = made.to_json()
    section = facts["looking"]
    release_rho = math.fsum(x["rho"] for x in [*facts["measurements"], *facts["choices"]])
    looking_rho = math.fsum(m["rho"] for m in section["measurements"])
    assert facts["spent"]["rho"] == release_rho
    assert looking_rho == pytest.approx(section["rho"], rel=1e-12)
    assert 0.999999 * release_rho < looking_rho <= release_rho <= made.budget.rho
    for m in section["measurements"]:
        assert m["sigma"] == pytest.approx(math.sqrt(2) / math.sqrt(2 * m["rho"]), rel=1e-12)
    assert section["rows"] == 1200
    assert made.model.total == pytest.approx(4800), "the release was made from the rest"
    assert made.rows == 6000


@pytest.mark.parametrize("accounting", ["zcdp", "basic"])
def test_where_a_release_spends_less_looking_may_not_spend_more(accounting):
    r = release(PROJECT.with_plan(accounting=accounting), table())
    assert r.private_evaluation.rho <= r.spending.rho <= r.budget.rho


@pytest.mark.parametrize("unit", [Unit(), Unit("replace-one", 3), Unit("add-remove"), Unit("add-remove", 2)], ids=str)
def test_noise_of_the_held_out_counts_has_the_booked_scale(unit):
    """The test is two-sided: it rejects less noise than recorded as well as more."""
    schema = Schema((Column("v", "categorical", tuple(map(str, range(3000)))),))
    plan = Plan(
        "mst", 1.0, 1e-9, neighbors=unit.neighbors, rows_per_person=unit.rows_per_person, private_evaluation=0.1
    )
    held = Table(schema, {"v": np.arange(3000)}, 3000)
    (m,) = judge(Project("t", schema, plan), held, held, Budget(1.0, 1e-9, 0.01)).measurements
    assert m.sigma == pytest.approx(unit.count_sensitivity / math.sqrt(2 * m.rho), rel=1e-12)
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 3000)
    squares = float(np.sum((m.values - 1) ** 2))
    assert low <= squares / m.sigma**2 <= high
    assert squares / (1.15 * m.sigma) ** 2 < low
    assert squares / (m.sigma / 1.15) ** 2 > high


def test_one_held_out_row_moves_one_cell_of_each_table_by_one():
    """The sensitivity of the counts, by enumeration: every value of one row against every other."""
    synthetic, held = table(500, 1), table(40, 2)
    asked = HeldOutCounts.of(PROJECT)
    cliques = [(asked.right,), *asked.cliques("auc"), *asked.cliques("one_way_tv")]
    cliques += [one.conditional for one in asked.levels()]
    counted = {}
    for values in np.ndindex(2, 3, 3, 2):
        codes = {n: np.r_[held.codes[n][1:], v] for n, v in zip(SCHEMA.names, values, strict=True)}
        seen = judged(asked, synthetic, Table(SCHEMA, codes, 40))
        for clique in cliques:
            counted.setdefault(clique, []).append(seen.count(clique).ravel())
    for clique, tables in counted.items():
        largest = max(float(np.linalg.norm(a - b)) for a in tables for b in tables)
        assert largest == pytest.approx(math.sqrt(2)), clique
        assert largest <= Unit().count_sensitivity


def test_the_figures_are_near_those_of_the_rows_they_speak_of():
    """With a budget so large that the noise is negligible, accuracy, AUC, error and CMI are those computed directly."""
    from sklearn.metrics import roc_auc_score

    from espalier.core.evaluation.dependence import cmi

    project = PROJECT.with_plan(neighbors="add-remove")
    synthetic, held = table(4000, 3), table(5000, 4)
    found = {f.name: f for f in judge(project, synthetic, held, Budget(1.0, 1e-6, 200.0)).figures}
    model = fit(synthetic, "y")
    scores, truth = model.scores(held), held.codes["y"]
    assert found["accuracy"].value == pytest.approx(np.mean(scores.argmax(axis=1) == truth), abs=0.002)
    exact = roc_auc_score(truth, scores[:, 1] - scores[:, 0])
    assert found["auc"].value == pytest.approx(exact, abs=0.01), "ten bins lose little"
    assert found["auc"].low < exact < found["auc"].high
    tv = np.mean(
        [
            np.abs(
                np.bincount(held.codes[c.name], minlength=c.size) / 5000
                - np.bincount(synthetic.codes[c.name], minlength=c.size) / 4000
            ).sum()
            / 2
            for c in SCHEMA.columns
        ]
    )
    assert found["one_way_tv"].low - 0.01 <= tv <= found["one_way_tv"].high
    there = cmi(held, HeldOutCounts.of(PROJECT).separation)
    plug_in, chance = there.value, there.chance
    assert found["cmi"].value == pytest.approx(plug_in - chance, abs=0.002)
    assert found["cmi"].low < plug_in < found["cmi"].high + 0.001


def test_intervals_hold_the_figures_of_a_large_table():
    """From release to interval: nearly all of the sixty intervals contain the figure of a table with ten times as many
    rows.
    """
    synthetic = table(3000, 5)
    large = table(60_000, 6)
    model = fit(synthetic, "y")
    accuracy = float(np.mean(model.scores(large).argmax(axis=1) == large.codes["y"]))
    rng, hit = np.random.default_rng(7), 0
    for _ in range(60):
        held = large.take(rng.choice(60_000, 700, replace=False))
        found = judge(PROJECT, synthetic, held, Budget(1.0, 1e-6, 0.02)).figures[0]
        hit += found.low <= accuracy <= found.high
    assert hit >= 46, "fewer would occur twice in ten million runs; of intervals half as wide, 40 cover"


def test_what_the_rows_cannot_carry_is_said_and_not_paid_for():
    few = release(PROJECT.with_plan(epsilon=0.3), table(600)).to_json()["looking"]
    reasons = {f["figure"]: f.get("reason", "") for f in few["figures"]}
    assert "too few" in reasons["cmi"]
    assert "error of" in reasons["one_way_tv"]
    assert {m["pool"] for m in few["measurements"]} == {"accuracy"}, "the first figure gets the budget of the others"
    assert few["rho"] == pytest.approx(sum(m["rho"] for m in few["measurements"]))


def test_strata_are_merged_by_a_public_rule_until_the_rows_support_them():
    """``a`` has 3 values: 12 cells, then 2 groups and 8 cells, then no condition and 4 cells."""
    asked = HeldOutCounts.of(PROJECT)
    assert [one.conditional for one in asked.levels()] == [("s", "a", "y"), ("s", "y", "a in 2 groups"), ("s", "y")]
    held = table(1200, 8)
    codes = asked.merging(held.codes)["a in 2 groups"]
    assert codes.tolist() == np.array([0, 0, 1])[held.codes["a"]].tolist()
    given = {}
    for rho in (0.02, 0.07, 1.0):
        found = judge(PROJECT, table(500, 1), held, Budget(1.0, 1e-6, rho))
        (figure,) = (f for f in found.figures if f.name == "cmi")
        assert figure.value is not None
        given[rho] = figure.about
    assert given[0.02].startswith("without any condition, because there are too few held-out rows")
    assert given[0.07].startswith("given a in 2 groups of neighbouring values, because")
    assert given[1.0] == ""
    small = release(PROJECT.with_plan(epsilon=1.2), table()).to_json()
    assert "about protected columns without any condition, because" in render(small)


def test_cmi_has_an_upper_bound_where_no_merged_strata_are_supported():
    """Each column has 38 values: 1,444 cells even without a condition, for 2,000 rows."""
    names = tuple(f"v{i}" for i in range(38))
    columns = [Column(n, "categorical", names) for n in ("s", "y")]
    schema = Schema((*columns, Column("a", "categorical", ("f", "m"))))
    given = Project("t", schema, Plan("mst", 2.0, 1e-6, target="a", private_evaluation=0.2), roles=ROLES)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(2000) < 0.9, 0, rng.integers(0, 38, 2000))
    held = Table(schema, {"s": y, "y": y, "a": rng.integers(0, 2, 2000)}, 2000)
    found = judge(given, held, held, Budget(1.0, 1e-6, 20.0))
    (figure,) = (f for f in found.figures if f.name == "cmi")
    assert figure.value is None
    assert "cells" in figure.reason
    p = np.bincount(y, minlength=38) / 2000
    entropy = -float(p[p > 0] @ np.log(p[p > 0]))  # one column determines the other, so this is the CMI
    assert figure.bound[0] == 0
    assert entropy < figure.bound[1] < entropy + 0.2
    assert f"CMI is at most {figure.bound[1]:.3f}" in bounded(figure.to_json())
    some = replace(schema["s"], missing=True)
    kept = replace(given, schema=Schema((some, *schema.columns[1:])))
    observed = Table(kept.schema, held.codes, 2000)
    (figure,) = (f for f in judge(kept, observed, observed, Budget(1.0, 1e-6, 20.0)).figures if f.name == "cmi")
    assert figure.bound == (0, pytest.approx(math.log(38)))  # the complete rows may differ from all rows


def test_the_report_states_what_score_bins_leave_open(made):
    section = made.to_json()["looking"]
    (auc,) = (f for f in section["figures"] if f["figure"] == "auc")
    low, high = auc["bound"]
    assert 0 <= low <= auc["low"] <= auc["value"] <= auc["high"] <= high <= 1
    assert low < high
    assert f"The AUC is between {low:.3f} and {high:.3f} for any positions of the scores inside their bins." in render(
        made.to_json()
    )


def test_a_missing_cell_of_a_merged_column_stays_missing():
    columns = (Column("a", "ordinal", tuple("vwxyz"), missing=True), *(c for c in SCHEMA.columns if c.name != "a"))
    asked = HeldOutCounts.of(replace(PROJECT, schema=Schema(columns)))
    names = ["a", "a in 3 groups", "a in 2 groups"]
    assert [one.separation.given for one in asked.levels()] == [*((n,) for n in names), ()]
    made = asked.merging({"a": np.arange(6)})
    assert made["a in 3 groups"].tolist() == [0, 0, 1, 1, 2, 3]
    assert made["a in 2 groups"].tolist() == [0, 0, 0, 1, 1, 2]
    assert asked.schema["a in 3 groups"].missing


def test_no_target_no_roles_many_values():
    plain = replace(PROJECT, roles=Roles(), plan=replace(PROJECT.plan, target=None))
    found = {f["figure"]: f for f in release(plain, table()).to_json()["looking"]["figures"]}
    assert found["one_way_tv"]["value"] is not None
    assert "no target" in found["accuracy"]["reason"]
    three = release(PROJECT.with_plan(target="a", epsilon=20.0), table()).to_json()["looking"]
    assert "mean over the 3 values" in next(f for f in three["figures"] if f["figure"] == "auc")["method"]
    wide = Schema((Column("t", "categorical", tuple("abcdefghij")), *SCHEMA.columns))
    assert "10 values" in HeldOutCounts.of(Project("t", wide, Plan("mst", 1.0, target="t"))).reasons["auc"]


def test_made_up_columns_take_no_name_that_is_there():
    taken = Schema((*SCHEMA.columns, Column("y guessed right", "categorical", ("u", "v"))))
    asked = HeldOutCounts.of(Project("t", taken, Plan("mst", 1.0, target="y")))
    assert asked.right == "y guessed right′"
    assert len(set(asked.schema.names)) == len(asked.schema.names)


def test_a_synthetic_table_with_one_value_of_the_target_still_can_be_judged():
    synthetic = table(500, 1)
    lone = Table(SCHEMA, {**synthetic.codes, "y": np.zeros(500, int)}, 500)
    found = {f.name: f for f in judge(PROJECT, lone, table(2000), Budget(1.0, 1e-6, 1.0)).figures}
    auc = found["auc"]
    assert abs(auc.value - 0.5) < 3 * (auc.high - auc.low), "six standard deviations: all rows have one score"
    assert auc.high - auc.low < 0.1
    empty = Table(SCHEMA, {n: np.zeros(0, int) for n in SCHEMA.names}, 0)
    nothing = judge(PROJECT.with_plan(neighbors="add-remove"), synthetic, empty, Budget(1.0, 1e-6, 0.01))
    assert nothing.figures[1].value is None


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_people_are_held_out_whole_and_their_number_stays_private(neighbors):
    plan = replace(PROJECT.plan, neighbors=neighbors, person="id", rows_per_person=2, rows=5432)
    found = release(replace(PROJECT, plan=plan), table(6000, person=np.arange(6000) // 3))
    section = found.to_json()["looking"]
    assert section["by"] == "person"
    assert section["rows"] == pytest.approx(800, abs=250), "two of three rows of a fifth of 2,000 people, noisy"
    size = {"replace-one": 2 * math.sqrt(2), "add-remove": 2.0}[neighbors]
    for m in section["measurements"]:
        assert m["sigma"] == pytest.approx(size / math.sqrt(2 * m["rho"]))
    if neighbors == "replace-one":
        assert found.model.total == pytest.approx(5432 - round(0.2 * 5432))
    assert found.rows == 5432


def test_the_preview_shows_what_looking_will_pay(made):
    shown = preview(PROJECT, 6000)
    paid = {tuple(m["columns"]): m for m in made.to_json()["looking"]["measurements"]}
    assert len(shown.private_evaluation) == len(paid)
    for line in shown.private_evaluation:
        assert line.rho == pytest.approx(paid[tuple(line.columns)]["rho"], rel=1e-6)
        assert line.sigma == pytest.approx(paid[tuple(line.columns)]["sigma"], rel=1e-6)
        assert line.error == pytest.approx(line.sigma * math.sqrt(2 / math.pi) / 1200)
    assert shown.spent == pytest.approx(math.fsum(line.rho for line in shown.lines))
    assert preview(PROJECT.with_plan(private_evaluation=0.0), 6000).private_evaluation == ()
    json.dumps(shown.to_json())
    widths = {f.name: f.high - f.low for f in shown.expected if f.value is not None}
    real = {f.name: f.high - f.low for f in made.private_evaluation.figures if f.value is not None}
    assert {"accuracy", "auc", "one_way_tv"} <= set(real) <= set(widths)
    assert 0.95 < widths["accuracy"] / real["accuracy"] < 2.2, "guessing is the worst case"
    assert 0 < widths["one_way_tv"] < 0.1


def test_a_plan_without_n_lists_every_figure_and_says_so():
    shown = preview(PROJECT.with_plan(neighbors="add-remove"), None)
    assert {line.pool for line in shown.private_evaluation} == {"accuracy", "AUC", "one-way", "CMI"}
    assert shown.expected == ()
    assert any("figures of the private evaluation are possible depends on" in w for w in shown.warnings)


def test_the_report_shows_private_figures_and_says_that_they_are(made):
    html = render(made.to_json())
    assert "safe to share" in html
    assert "AUC of that model" in html
    assert f"{made.private_evaluation.figures[0].value:.3f}" in html
    counts = next(m.values for m in made.private_evaluation.measurements if m.clique == ("y",))
    guess = counts.max() / counts.sum()
    assert made.to_json()["looking"]["accuracy_baseline"] == pytest.approx(guess)
    assert f"most common value would have an accuracy of about {guess:.3f}" in html
    uncounted = replace(made.private_evaluation, measurements=made.private_evaluation.measurements[:1])
    assert uncounted.accuracy_baseline is None
    assert "do not show the accuracy of" in render({**made.to_json(), "looking": uncounted.to_json()})
    without = release(PROJECT.with_plan(private_evaluation=0.0), table()).to_json()
    assert without["looking"] is None
    assert "private evaluation" not in render(without)


def test_too_few_rows_to_hold_any_out():
    with pytest.raises(ProjectError, match="at least two rows"):
        release(PROJECT, table(1))
    assert release(PROJECT, table(2)).private_evaluation.rows == 1


def test_rehearsing_reads_nothing_and_costs_what_a_release_costs():
    budget = Budget(1.0, 1e-6, 0.05)
    rehearsed, _ = rehearse(PROJECT, budget, 1200)
    paid = judge(PROJECT, table(500, 1), table(1200, 2), budget).measurements
    assert [(d.columns, d.rho) for d in rehearsed] == [(m.clique, m.rho) for m in paid]
