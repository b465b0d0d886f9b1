"""The whole evaluation has the right output and refusals, and no odd table breaks it."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espalier.core.errors import Cancelled, TableError
from espalier.core.evaluation import evaluate, split_holdout, target_of
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table
from tests.support.tables import project_of, random_table, schema_of, table_of

ROLES = {"outcome": ("y",), "protected": ("s",), "admissible": ("a",)}
SCHEMA = schema_of(a=3, s=2, y=2)


def printed(evaluation):
    """Convert to JSON and back; every null figure must have its reason next to it."""
    data = json.loads(json.dumps(evaluation.to_json(), allow_nan=False))

    def check(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                if inner is None and key not in ("target", "positive"):
                    assert value[f"{key}_reason"], key
                assert not (key.endswith("_reason") and value[key.removesuffix("_reason")] is not None), key
                check(inner)
        elif isinstance(value, list):
            for inner in value:
                check(inner)

    check(data)
    return data


def test_what_it_prints():
    real, synthetic = random_table(SCHEMA, 300, 1), random_table(SCHEMA, 200, 2)
    data = printed(evaluate(project_of(SCHEMA, **ROLES), real, synthetic))
    assert data["private"] is False
    assert data["tested_on"] == "the table itself"
    assert {"auc_synthetic", "auc_real", "accuracy_synthetic", "accuracy_real"} <= set(data["tstr"])
    assert {"one_way_tv", "two_way_tv", "kl"} <= set(data["fidelity"])
    wanted = {"cmi_real", "cmi_synthetic", "cmi_model", "equalized_odds_difference"}
    assert wanted <= set(data["fairness"])
    for part in (data, data["tstr"], data["fidelity"], data["fairness"]):
        assert part["looked_at_real_data"] is True


def test_every_result_is_frozen_and_says_that_it_looked():
    table = random_table(SCHEMA, 60, 3)
    result = evaluate(project_of(SCHEMA, **ROLES), table, table)
    for part in (result, result.utility, result.fidelity, result.fairness):
        assert part.looked_at_real_data
        with pytest.raises(dataclasses.FrozenInstanceError):
            part.looked_at_real_data = False


def test_the_holdout_is_tested_on_and_nothing_else():
    real, synthetic, holdout = (random_table(SCHEMA, n, n) for n in (200, 150, 90))
    project = project_of(SCHEMA, **ROLES)
    with_it, without = evaluate(project, real, synthetic, holdout=holdout), evaluate(project, real, synthetic)
    assert with_it.tested_on == with_it.utility.tested_on == "holdout"
    assert sum(g.rows for g in with_it.fairness.groups) == with_it.utility.tested_rows == 90
    assert with_it.fidelity == without.fidelity
    assert with_it.fairness.cmi_real == without.fairness.cmi_real


def test_missing_roles_have_a_reason():
    table = random_table(SCHEMA, 60, 4)
    data = printed(evaluate(project_of(SCHEMA, "y"), table, table))
    assert data["fairness"] is None
    assert data["fairness_reason"] == "the project gives no column the role outcome or protected"
    data = printed(evaluate(project_of(SCHEMA, "y", outcome=("y",)), table, table))
    assert data["fairness_reason"] == "the project gives no column the role protected"


def test_the_same_tables_give_the_same_figures():
    real, synthetic = random_table(SCHEMA, 120, 5), random_table(SCHEMA, 120, 6)
    project = project_of(SCHEMA, **ROLES)
    assert evaluate(project, real, synthetic) == evaluate(project, real, synthetic)


def test_nothing_is_changed():
    real, synthetic = random_table(SCHEMA, 50, 7), random_table(SCHEMA, 50, 8)
    before = [{n: c.copy() for n, c in t.codes.items()} for t in (real, synthetic)]
    evaluate(project_of(SCHEMA, **ROLES), real, synthetic)
    for table, codes in zip((real, synthetic), before, strict=True):
        assert all((table.codes[n] == c).all() and table.codes[n].dtype == c.dtype for n, c in codes.items())


def test_names_in_any_script_missing_cells_and_a_constant_column():
    schema = Schema(
        (
            Column("年齢", "numeric", edges=(0, 30, 60, 120), integer=True, missing=True),
            Column("größe, “cm”", "ordinal", ("klein", "groß"), missing=True),
            Column("país", "categorical", ("(missing)",), missing=True),
            Column("🏥", "categorical", ("constant",)),
            Column("résultat", "categorical", ("non", "oui")),
        )
    )
    text = '年齢,"größe, “cm”",país,🏥,résultat\n' + "".join(
        f"{age},{size},{land},constant,{out}\n"
        for age, size, land, out in [
            (20, "klein", "(missing)", "oui"),
            ("", "", "", "non"),
            (70, "groß", "", "oui"),
            (50, "", "(missing)", "non"),
            (10, "klein", "", "non"),
            (44, "groß", "(missing)", "oui"),
        ]
        * 4
    )
    table = Table.encode(read_table(text.encode(), "t.csv"), schema)
    project = project_of(schema, outcome=("résultat",), protected=("país", "größe, “cm”"), admissible=("年齢",))
    data = printed(evaluate(project, table, table))
    # a category called "(missing)" and a missing cell look alike on screen, but are two groups
    assert len(data["fairness"]["groups"]) == 6
    assert data["fairness"]["protected"] == ["größe, “cm”", "país"]
    assert data["fidelity"]["kl"] == 0


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_tiny_tables(rows):
    for seed in range(4):
        real, synthetic = random_table(SCHEMA, rows, seed), random_table(SCHEMA, 1 + seed, seed + 9)
        printed(evaluate(project_of(SCHEMA, **ROLES), real, synthetic))
        printed(evaluate(project_of(SCHEMA, **ROLES), real, synthetic, holdout=random_table(SCHEMA, 1, seed)))


@settings(max_examples=40)
@given(st.data())
def test_no_table_breaks_it(data):
    sizes = {name: data.draw(st.integers(1, 4), name) for name in ("a", "s", "y", "b")}
    schema = schema_of(**sizes)

    def table(what):
        rows = data.draw(st.integers(1, 12), f"rows of {what}")
        column = {n: st.lists(st.integers(0, k - 1), min_size=rows, max_size=rows) for n, k in sizes.items()}
        return table_of(schema, **{n: data.draw(c, f"{what}.{n}") for n, c in column.items()})

    holdout = table("holdout") if data.draw(st.booleans(), "with a holdout") else None
    roles = data.draw(st.sampled_from([{}, ROLES, {**ROLES, "protected": ("s", "b")}, {"outcome": ("a", "y")}]))
    target = data.draw(st.sampled_from([None, "y", "s"]), "target")
    shown = printed(evaluate(project_of(schema, target, **roles), table("real"), table("synthetic"), holdout=holdout))
    for name in ("auc_synthetic", "auc_real", "accuracy_synthetic", "accuracy_real"):
        assert shown["tstr"][name] is None or 0 <= shown["tstr"][name] <= 1


def test_progress_goes_from_nothing_to_all():
    table = random_table(SCHEMA, 60, 10)
    told = []
    evaluate(project_of(SCHEMA, **ROLES), table, table, report=lambda f, m: told.append((f, m)))
    fractions = [f for f, _ in told]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0, 1)
    assert all(m for _, m in told)


def test_raising_from_the_report_cancels():
    table = random_table(SCHEMA, 60, 11)
    for step in (0.0, 0.5, 0.7, 0.8, 1.0):

        def stop(fraction, message, step=step):
            if fraction >= step:
                raise Cancelled(message)

        with pytest.raises(Cancelled):
            evaluate(project_of(SCHEMA, **ROLES), table, table, report=stop)


def test_tables_that_do_not_belong_to_the_project_are_refused():
    table, project = random_table(SCHEMA, 20, 12), project_of(SCHEMA, **ROLES)
    none = table.take(np.zeros(20, dtype=bool))
    with pytest.raises(TableError, match="the synthetic table has no rows"):
        evaluate(project, table, none)
    with pytest.raises(TableError, match="the hold-out has no rows"):
        evaluate(project, table, table, holdout=none)
    wider = random_table(schema_of(a=3, s=3, y=2), 20, 13)
    with pytest.raises(TableError, match="the real table was read with a schema other than .*'s' is missing") as caught:
        evaluate(project, wider, table)
    assert caught.value.data["column"] == "s"
    with pytest.raises(TableError, match="'y' is missing or differs"):
        evaluate(project, table, random_table(schema_of(a=3, s=2), 20, 14))


def test_a_holdout_and_the_rest_make_up_the_table():
    schema = schema_of(row=50, y=2)
    table = table_of(schema, row=np.arange(50), y=np.arange(50) % 2)
    rest, held = split_holdout(table, 0.3, np.random.default_rng(1))
    assert (rest.rows, held.rows) == (35, 15)
    assert sorted([*rest.codes["row"], *held.codes["row"]]) == list(range(50))
    for part in (rest, held):
        assert (np.diff(part.codes["row"].astype(int)) > 0).all()
        assert (part.codes["y"] == part.codes["row"] % 2).all()
    again = split_holdout(table, 0.3, np.random.default_rng(1))[1]
    assert (again.codes["row"] == held.codes["row"]).all()


def test_each_row_is_as_likely_to_be_held_out():
    """In 4,000 splits of 5 rows, each row is held out 1,600 ± 31 times; five σ give a false alarm once in 300,000
    runs."""
    table = table_of(schema_of(row=5), row=np.arange(5))
    rng, held = np.random.default_rng(2), np.zeros(5)
    for _ in range(4000):
        held[split_holdout(table, 0.4, rng)[1].codes["row"]] += 1
    assert held == pytest.approx(np.full(5, 1600), abs=155)


@pytest.mark.parametrize(("rows", "share", "held"), [(2, 0.01, 1), (2, 0.99, 1), (3, 0.99, 2), (10, 0.25, 2)])
def test_no_part_of_a_split_is_empty(rows, share, held):
    table = random_table(SCHEMA, rows, 15)
    assert split_holdout(table, share, np.random.default_rng(3))[1].rows == held


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan")])
def test_a_share_that_cannot_be_is_refused(share):
    with pytest.raises(TableError, match="must lie strictly between 0 and 1"):
        split_holdout(random_table(SCHEMA, 9, 16), share, np.random.default_rng(4))
    with pytest.raises(TableError, match="at least two rows"):
        split_holdout(random_table(SCHEMA, 1, 16), 0.5, np.random.default_rng(4))


def test_every_target_of_the_plan_is_judged():
    real, synthetic = random_table(SCHEMA, 300, 1), random_table(SCHEMA, 200, 2)
    project = project_of(SCHEMA, **ROLES)
    other = next(n for n in SCHEMA.names if n != target_of(project))
    several = project.with_plan(method="prism", target=target_of(project), targets={other: 0.5})
    found, alone = evaluate(several, real, synthetic), evaluate(project, real, synthetic)
    assert found.utility == alone.utility
    assert [one.target for one in found.further] == [other]
    assert found.further[0] == evaluate(project.with_plan(target=other), real, synthetic).utility
    assert printed(found)["tstr_further"][0]["target"] == other
    assert "tstr_further" not in printed(alone)
