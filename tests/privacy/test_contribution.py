"""At most k rows of each person count, and some people are held out. Tables that differ in one person are enumerated
for every step.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from espalier.core.compare.fence_cost import fence_cost
from espalier.core.errors import ProjectError, TableError
from espalier.core.evaluation.private import held_out
from espalier.core.evaluation.private.held_out import judge
from espalier.core.graph.roles import Roles
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.contribution import bounded, public_rows, split
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.scores import ConditionalScore, EdgeScore, FeatureScore
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables import random_rows
from espalier.core.tables.random_rows import first_of_each
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table
from tests.support.loosely import release

SCHEMA = Schema((Column("a", "categorical", ("0", "1")), Column("b", "categorical", ("0", "1"))))
CELLS = list(itertools.product((0, 1), repeat=2))
MINE = [rows for size in range(3) for rows in itertools.combinations_with_replacement(CELLS, size)]
MINE += [(cell,) * 3 for cell in CELLS] + [tuple(CELLS[:3])]
"""The rows of the one person in whom two tables differ: all sets of up to two rows, and some of three."""
OTHERS = [
    {0: [(0, 0)], 1: [(1, 1)]},
    {0: [(0, 0), (0, 1), (1, 1)], 1: [(1, 0)]},
    {0: [(0, 0), (0, 0)], 1: [(1, 1), (0, 1)]},
]
FALSE_ALARM = 1e-7


def table(others, mine, order=0):
    """The person's rows come first or last in the table; 9 is their code."""
    rest = [(who, cell) for who, cells in others.items() for cell in cells]
    rows = [(9, cell) for cell in mine] + rest if order else rest + [(9, cell) for cell in mine]
    codes = np.array([cell for _, cell in rows], dtype=np.int64).reshape(-1, 2)
    return Table(
        SCHEMA,
        {"a": codes[:, 0], "b": codes[:, 1]},
        len(rows),
        person=np.array([w for w, _ in rows], dtype=int),
        person_column="id",
    )


def drawn(monkeypatch, made, lots, seed, k, total):
    """Return ``bounded`` of a table in which everyone else, and every filler row, has the same random numbers as
    elsewhere."""
    rng = np.random.default_rng(seed)
    person = made.person
    theirs = iter(rng.integers(0, 2**60, (len(person), 2)))  # by the position among all other people
    every = np.array([lots[i] if who == 9 else next(theirs) for i, who in enumerate(person.tolist())])
    every = every.reshape(-1, 2).astype(np.uint64)
    fill = np.random.default_rng(seed + 1).integers(0, 2**60, (2, 20)).astype(np.uint64)
    kept = first_of_each(person, every[:, 0], k)
    queue = [every[:, 0]] + ([] if total is None else [every[kept, 1], fill[0], fill[1]])
    monkeypatch.setattr(random_rows, "fresh_lots", lambda count: queue.pop(0)[:count])
    return bounded(made, k, total)


def own_lots(rows, rng):
    return {i: rng.integers(0, 2**60, 2) for i in range(rows)}


def pairs(monkeypatch, k, total):
    """All pairs of tables that differ in one person, with the same random numbers for everyone else."""
    rng = np.random.default_rng(k)
    for seed, others in enumerate(OTHERS):
        for a, b in itertools.combinations(MINE, 2):
            order = int(rng.integers(0, 2))
            both = []
            for mine in (a, b):
                made = table(others, mine, order)
                lots = own_lots(made.rows, rng)
                both.append(drawn(monkeypatch, made, lots, 17 * seed, k, total))
            yield both


@pytest.mark.parametrize("k", [1, 2])
def test_a_person_that_comes_or_goes_moves_at_most_k_rows(monkeypatch, k):
    """Add-remove: against the table without the person, counts and scores move by at most their sensitivity."""
    unit, edge, feature = Unit("add-remove", k), EdgeScore(lambda pair: np.full((2, 2), 0.4)), FeatureScore("b")
    rng, worst = np.random.default_rng(0), 0.0
    for seed, others in enumerate(OTHERS):
        for mine in MINE:
            without = drawn(monkeypatch, table(others, ()), {}, seed, k, None)
            made = table(others, mine, seed % 2)
            there = drawn(monkeypatch, made, own_lots(made.rows, rng), seed, k, None)
            assert there.rows - without.rows == min(len(mine), k)
            c, d = (t.count(("a", "b")) for t in (there, without))
            assert np.all(c >= d), "the rows of other people are unchanged"
            worst = max(worst, float(np.linalg.norm(c - d)))
            for score in (edge, feature):
                move = abs(score.value(("a", "b"), c, None) - score.value(("a", "b"), d, None))
                assert move <= score.sensitivity(unit, None)
    assert worst == pytest.approx(unit.count_sensitivity), "the bound is reached"


@pytest.mark.parametrize(("k", "total"), [(1, 3), (1, 8), (2, 3), (2, 4), (2, 9)])
def test_a_person_that_becomes_any_other_changes_at_most_k_rows_of_a_declared_total(monkeypatch, k, total):
    """Under replace-one, whether cut or filled, there are R rows before and after, and sums move at most as for k
    replaced rows.
    """
    unit, edge, feature = Unit("replace-one", k), EdgeScore(lambda pair: np.full((2, 2), 0.4)), FeatureScore("b")
    worst, seen = 0.0, 0
    for one, other in pairs(monkeypatch, k, total):
        assert one.rows == other.rows == total
        c, d = (t.count(("a", "b")) for t in (one, other))
        assert np.abs(c - d).sum() <= 2 * k
        worst = max(worst, float(np.linalg.norm(c - d)))
        assert np.linalg.norm(c - d) <= unit.count_sensitivity
        for score in (edge, feature):
            move = abs(score.value(("a", "b"), c, total) - score.value(("a", "b"), d, total))
            assert move <= score.sensitivity(unit, total)
        seen += 1
    assert worst == pytest.approx(unit.count_sensitivity), "the bound is reached"
    assert seen == len(OTHERS) * math.comb(len(MINE), 2)


@pytest.mark.parametrize("k", [1, 2])
def test_held_out_counts_without_a_total_move_by_at_most_the_replace_one_sensitivity(monkeypatch, k):
    """Rows held out are not filled: their histograms still move by at most √2·k when a person becomes another."""
    unit, worst = Unit("replace-one", k), 0.0
    for one, other in pairs(monkeypatch, k, None):
        move = float(np.linalg.norm(one.count(("a", "b")) - other.count(("a", "b"))))
        assert move <= unit.count_sensitivity
        worst = max(worst, move)
    assert worst == pytest.approx(unit.count_sensitivity)


def test_lots_dealt_by_row_from_a_seed_would_break_the_coupling():
    """No function here takes a seed: with a known stream, removing a person would shift the random numbers of everyone
    after."""
    person = np.repeat(np.arange(40), 3)
    cells = np.tile([0, 1, 1], 40)
    stream = np.random.default_rng(5).integers(0, 2**60, 120).astype(np.uint64)
    with_all = cells[first_of_each(person, stream, 1)]
    without_first = cells[3:][first_of_each(person[3:], stream[:117], 1)]
    assert np.sum(with_all[1:] != without_first) > 1, "everyone else's choice moved too"


@pytest.mark.parametrize("k", [1, 2, 5])
def test_each_person_keeps_at_most_k_rows_and_all_if_fewer(k):
    rng = np.random.default_rng(k)
    person = rng.integers(0, 30, 200)
    codes = rng.integers(0, 2, (2, 200))
    made = Table(SCHEMA, {"a": codes[0], "b": codes[1]}, 200, person=person, person_column="id")
    kept = bounded(made, k)
    assert np.array_equal(np.bincount(kept.person, minlength=30), np.minimum(np.bincount(person, minlength=30), k))


def test_which_rows_are_kept_is_even_fresh_and_unseeded():
    schema = Schema((Column("row", "categorical", tuple("abcd")),))
    made = Table(
        schema, {"row": np.tile(np.arange(4), 5000)}, 20_000, person=np.repeat(np.arange(5000), 4), person_column="id"
    )
    np.random.seed(0)  # noqa: NPY002
    one = bounded(made, 1).codes["row"]
    np.random.seed(0)  # noqa: NPY002
    two = bounded(made, 1).codes["row"]
    assert not np.array_equal(one, two)
    seen = np.bincount(one, minlength=4)
    assert stats.chisquare(seen).pvalue > FALSE_ALARM
    pair = np.bincount(4 * one[::2].astype(int) + one[1::2], minlength=16)
    assert stats.chisquare(pair).pvalue > FALSE_ALARM, "people are chosen independently"


def test_a_declared_total_is_filled_evenly_or_cut_evenly():
    schema = Schema((Column("v", "categorical", tuple("abcde")),))
    made = Table(schema, {"v": np.zeros(1000, int)}, 1000, person=np.arange(1000), person_column="id")
    filled = np.bincount(bounded(made, 1, 9000).codes["v"], minlength=5)
    assert filled.sum() == 9000
    assert stats.chisquare(filled - [1000, 0, 0, 0, 0]).pvalue > FALSE_ALARM
    many = Table(schema, {"v": np.arange(5000) % 5}, 5000, person=np.arange(5000), person_column="id")
    cut = np.bincount(bounded(many, 1, 1000).codes["v"], minlength=5)
    assert cut.sum() == 1000
    assert stats.chisquare(cut).pvalue > FALSE_ALARM


def test_no_row_at_all_is_no_exception():
    none = Table(SCHEMA, {"a": np.zeros(0, int), "b": np.zeros(0, int)}, 0, person=np.zeros(0, int), person_column="id")
    assert bounded(none, 3).rows == 0
    assert bounded(none, 3, 7).rows == 7
    assert [t.rows for t in split(none, 0.3)] == [0, 0]


def test_rows_without_people_are_not_bounded():
    with pytest.raises(TableError, match="person column"):
        bounded(replace(table(OTHERS[0], ()), person=None, person_column=None), 1)


def test_a_person_falls_into_one_part_whole_and_by_lot_alone(monkeypatch):
    """No one is in both parts, and with the same random numbers, other values in the rows change nothing."""
    person = np.repeat(np.arange(50), 4)
    codes = np.random.default_rng(0).integers(0, 2, (2, 200))
    made = Table(SCHEMA, {"a": codes[0], "b": codes[1]}, 200, person=person, person_column="id")
    lots = np.random.default_rng(1).integers(0, 2**63, 50).astype(np.uint64) * np.uint64(2)
    monkeypatch.setattr(random_rows, "fresh_lots", lambda count: lots[:count])
    rest, held = split(made, 0.3)
    assert not set(rest.person) & set(held.person)
    assert rest.rows + held.rows == 200
    assert 4 < len(set(held.person)) < 28
    for who in (0, int(held.person[0]), int(rest.person[0])):
        other = {"a": np.where(person == who, 1 - codes[0], codes[0]), "b": codes[1]}
        again, apart = split(replace(made, codes=other), 0.3)
        assert np.array_equal(again.person, rest.person)
        changed = [not np.array_equal(x.codes["a"], y.codes["a"]) for x, y in ((again, rest), (apart, held))]
        assert sum(changed) == 1, "the one person in whom the tables differ is in one part, the other is equal"
        assert changed[1] == (who in held.person)


def test_rows_fall_into_one_part_by_place_alone(monkeypatch):
    codes = np.random.default_rng(0).integers(0, 2, (2, 90))
    made = Table(SCHEMA, {"a": codes[0], "b": codes[1]}, 90)
    lots = np.random.default_rng(1).integers(0, 2**63, 90).astype(np.uint64)
    monkeypatch.setattr(random_rows, "fresh_lots", lambda count: lots[:count])
    rest, held = split(made, 0.1, 9)
    assert (rest.rows, held.rows) == (81, 9)
    flipped = replace(made, codes={"a": 1 - codes[0], "b": codes[1]})
    for one, other in zip(split(flipped, 0.1, 9), (rest, held), strict=True):
        assert np.array_equal(one.codes["a"], 1 - other.codes["a"])


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_held_share_is_what_was_said(share):
    made = Table(SCHEMA, {"a": np.zeros(40_000, int), "b": np.zeros(40_000, int)}, 40_000)
    assert split(made, share, 4000)[1].rows == 4000
    for named in (made, replace(made, person=np.arange(40_000), person_column="id")):
        assert stats.binomtest(split(named, share)[1].rows, 40_000, share).pvalue > FALSE_ALARM


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("k", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [1, 3, 40, 10**6])
def test_a_person_whose_rows_fall_into_both_parts_costs_no_more_than_one(neighbors, k, n):
    """The proof by row: Δ(j) ≤ (j/k)·Δ(k) for counts and both scores, so the two prices add up to no more than the
    larger.
    """
    public = n if neighbors == "replace-one" else None
    bounds = [
        lambda unit: unit.count_sensitivity,
        lambda unit: EdgeScore(lambda pair: np.ones((2, 2))).sensitivity(unit, public),
        lambda unit: FeatureScore("b").sensitivity(unit, public),
        lambda unit: ConditionalScore("b").sensitivity(unit, public),
    ]
    for bound in bounds:
        whole = bound(Unit(neighbors, k))
        for j in range(1, k):
            parts = [bound(Unit(neighbors, x)) / whole for x in (j, k - j)]
            assert parts[0] <= j / k * (1 + 1e-12)
            assert sum(p * p for p in parts) <= 1 + 1e-12


PROJECT = Project("t", SCHEMA, Plan("mst", 3.0, 1e-6, neighbors="add-remove", person="id", rows_per_person=2))


def crowd(people_count=300, heavy=5000):
    """Everyone has one row in cell (0, 0); one person has thousands in (1, 1)."""
    codes = np.repeat([0, 1], [people_count, heavy])
    return Table(
        SCHEMA,
        {"a": codes, "b": codes},
        len(codes),
        person=np.minimum(np.arange(len(codes)), people_count),
        person_column="id",
    )


def test_thousands_of_rows_of_one_person_count_as_k():
    made = release(PROJECT, crowd())
    for m in made.fitted.measurements:
        assert m.sigma == pytest.approx(2 / math.sqrt(2 * m.rho))
        assert m.values.sum() == pytest.approx(302, abs=8 * m.sigma * math.sqrt(m.values.size))
        if len(m.clique) == 2:
            assert m.values[1, 1] == pytest.approx(2, abs=8 * m.sigma)
    assert made.rows < 1000
    facts = made.to_json()
    assert facts["spent"]["person"] == "id"
    assert any("chosen at random" in p for p in facts["promises"])
    assert not any("is a promise" in p for p in facts["promises"])


def test_under_replace_one_the_declared_total_is_what_is_public():
    plan = Plan("mst", 3.0, neighbors="replace-one", person="id", rows_per_person=2, rows=400)
    made = release(replace(PROJECT, plan=plan), crowd())
    assert made.rows == 400
    assert made.model.total == pytest.approx(400)
    assert made.budget.delta == 1 / 400**2
    said = str(made.to_json()).replace(",", "")
    assert not re.search(r"(?<![\d.])5300(?!\d)", said), "no number is the true one (digits inside others may be)"
    assert any("rows were invented" in p for p in made.to_json()["promises"])
    for m in made.fitted.measurements:
        assert m.sigma == pytest.approx(2 * math.sqrt(2) / math.sqrt(2 * m.rho))


def test_without_a_person_column_rows_per_person_is_said_to_be_a_promise():
    plain = replace(PROJECT, plan=replace(PROJECT.plan, person=None))
    facts = release(plain, replace(crowd(), person=None, person_column=None)).to_json()
    assert facts["spent"]["person"] is None
    assert any("as a promise" in p for p in facts["promises"])
    assert facts["rows"] > 4000, "no person column is named, so no rows are left out"


def test_what_cannot_be_is_refused(tmp_path):
    with pytest.raises(TableError, match="person column"):
        release(PROJECT, replace(crowd(), person=None, person_column=None))
    with pytest.raises(ProjectError, match="declare a total"):
        release(replace(PROJECT, plan=replace(PROJECT.plan, neighbors="replace-one")), crowd())
    with pytest.raises(ProjectError, match="would be released"):
        PROJECT.with_plan(person="a")
    with pytest.raises(ProjectError, match="name of a column"):
        PROJECT.with_plan(person="")
    (tmp_path / "t.csv").write_text("id,a,b\np1,0,1\n,1,1\np2,0,0\n")
    text = read_table(tmp_path / "t.csv")
    with pytest.raises(TableError, match=r"'id' has an empty cell in data row 2;") as error:
        Table.encode(text, SCHEMA, "id")
    assert (error.value.data["column"], error.value.data["row"]) == ("id", 2)
    with pytest.raises(TableError, match="no column 'nobody'"):
        Table.encode(text, SCHEMA, "nobody")


def test_people_are_read_from_their_column(tmp_path):
    (tmp_path / "t.csv").write_text("id,a,b\np1,0,1\np2,1,1\np1,0,0\n")
    made = Table.encode(read_table(tmp_path / "t.csv"), SCHEMA, "id")
    assert made.person.tolist() == [0, 1, 0]
    assert made.take(np.array([2, 1])).person.tolist() == [0, 1]
    assert Table.encode(read_table(tmp_path / "t.csv"), SCHEMA).person is None


def test_roles_and_fence_know_nothing_of_the_person_column():
    roles = Roles(outcome=("b",), protected=("a",))
    made = release(replace(PROJECT, roles=roles, plan=replace(PROJECT.plan, method="privci")), crowd())
    assert "id" not in made.table
    assert made.to_json()["edges"] == []


VISITS = b"patient,visit,a,b\n" + b"".join(f"p{i // 50},v{i},{i % 2},{i % 2}\n".encode() for i in range(400))


def read_by(column, schema=SCHEMA):
    return Table.encode(read_table(VISITS, "visits.csv"), schema, column)


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("read", "planned"), [("visit", "patient"), ("patient", "visit"), (None, "patient"), ("visit", None)]
)
def test_a_table_read_with_another_person_column_than_the_plan_names_is_refused(neighbors, read, planned):
    """A bound of one row per visit keeps all rows of a patient."""
    plan = replace(
        PROJECT.plan, neighbors=neighbors, person=planned, rows_per_person=1, rows=40, private_evaluation=0.2
    )
    project, table = replace(PROJECT, plan=plan), read_by(read)
    with pytest.raises(TableError, match="person column") as error:
        release(project, table)
    assert error.value.data["column"] == planned
    with pytest.raises(TableError, match="held-out part was read"):
        judge(project, table, table, Budget(1.0, 1e-6, 0.1))
    fenced = replace(project, plan=replace(plan, method="privci", target="a"), roles=Roles(("a",), ("b",)))
    with pytest.raises(TableError, match="real table was read"):
        fence_cost(fenced, table, table, [])
    release(project, read_by(planned))


@pytest.mark.parametrize("whose", [[0.0, math.nan, math.nan, 1.0], [0, -1, -1, 1]])
def test_a_row_that_is_nobody_s_is_refused_in_a_table_built_by_hand(whose):
    """NaN is not equal to itself: each such row would be a separate person, and k would bound nothing."""
    codes = {"a": np.zeros(4, int), "b": np.zeros(4, int)}
    with pytest.raises(TableError, match="whole numbers from 0"):
        Table(SCHEMA, codes, 4, person=np.array(whose), person_column="patient")


def test_a_curator_built_directly_refuses_people_that_are_not_bounded_to_its_unit():
    def built(table, unit):
        return PrivateCurator(table, unit, Budget(1.0, 1e-6, 0.1), 100)

    patients = read_by("patient")
    for neighbors in ("replace-one", "add-remove"):
        for parts in ([patients], split(patients, 0.5)):
            for part in parts:
                with pytest.raises(TableError, match="keeps any number of each person's rows"):
                    built(part, Unit(neighbors, 50))
        with pytest.raises(TableError, match="keeps 3 of each person's rows"):
            built(bounded(patients, 3), Unit(neighbors, 2))
        assert built(bounded(patients, 3), Unit(neighbors, 3)).rows is None, "how many are kept is private"
        assert built(split(bounded(patients, 3), 0.5)[0], Unit(neighbors, 3)).rows is None
    filled = bounded(patients, 2, 40)
    assert built(filled, Unit("replace-one", 2)).rows == 40
    with pytest.raises(TableError, match="replace-one only"):
        built(filled, Unit("add-remove", 2))
    with pytest.raises(TableError, match="keeps 2"):
        built(filled.take(np.arange(10)), Unit("replace-one", 1))
    with pytest.raises(TableError, match="without its person column"):
        bounded(filled, 1)
    assert built(read_by(None), Unit()).rows == 400
    assert built(read_by(None), Unit("add-remove")).rows is None


def test_a_number_of_rows_cannot_be_held_out_of_people():
    with pytest.raises(TableError, match="cannot be set"):
        split(read_by("patient"), 0.5, 200)
    with pytest.raises(TableError, match="name the column"):
        Table(SCHEMA, {"a": np.zeros(2, int), "b": np.zeros(2, int)}, 2, person=np.arange(2))


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("person", ["patient", None])
def test_the_held_out_curator_knows_how_many_rows_it_has_only_where_that_is_public(monkeypatch, neighbors, person):
    seen = []

    class Watched(PrivateCurator):
        def __init__(self, *args, **given):
            super().__init__(*args, **given)
            seen.append(self.rows)

    monkeypatch.setattr(held_out, "PrivateCurator", Watched)
    plan = replace(PROJECT.plan, neighbors=neighbors, person=person, rows=300, private_evaluation=0.2)
    release(replace(PROJECT, plan=plan), read_by(person))
    assert seen == [80 if neighbors == "replace-one" and person is None else None]


@pytest.mark.parametrize(
    ("neighbors", "person", "rows", "known"),
    [
        ("replace-one", None, None, 150),
        ("replace-one", None, 70, 150),
        ("replace-one", "id", 70, 70),
        ("replace-one", "id", None, None),
        ("add-remove", None, 70, None),
        ("add-remove", "id", 70, None),
    ],
)
def test_the_number_of_rows_is_public_only_under_replace_one_without_a_person_column(neighbors, person, rows, known):
    plan = Plan("mst", 1.0, 1e-6, neighbors=neighbors, person=person, rows=rows)
    assert public_rows(plan, 150) == known
