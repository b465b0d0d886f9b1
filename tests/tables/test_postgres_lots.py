"""Fresh random numbers inside PostgreSQL: they choose the held-out people and the rows of a declared total."""

from __future__ import annotations

import itertools
import uuid
from collections import Counter

import numpy as np
import psycopg
import pytest

from espalier.core.errors import Cancelled, TableError
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.postgres_snapshot import PostgresSnapshot
from espalier.core.tables.postgres_statements import CODES, HeldOut, cut, later_statements, part_of
from espalier.core.tables.relation import open_relation

SCHEMA = Schema((Column("a", "categorical", ("x", "y", "z")), Column("b", "categorical", ("n", "m"))))
PEOPLE, ROWS, K = 400, 2_000, 2


def lot(number):
    return str(uuid.UUID(int=number << 80))


@pytest.fixture
def con(postgres):
    with psycopg.connect(postgres) as con:  # one transaction, rolled back at the end
        yield con
        con.rollback()


def write(con, name, columns, rows):
    con.execute(f"DROP TABLE IF EXISTS {name}")
    con.execute(f"CREATE TEMP TABLE {name} ({columns})")
    with con.cursor().copy(f"COPY {name} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def found(con, query):
    return Counter(con.execute(query).fetchall())


def held_by_person(con, rows, lots):
    write(con, "codes", "c0 int, c1 int, person text", rows)
    write(con, "lots", "person text, lot uuid", lots)
    asked = HeldOut(0.5, None, True)
    return [found(con, part_of(SCHEMA, "codes", "lots", asked, held=h)) for h in (False, True)]


def test_a_replaced_person_moves_rows_in_one_part_only(con):
    others = [(a, b, f"p{i}") for i, (a, b) in enumerate(itertools.product(range(3), range(2)))]
    lots = [(f"p{i}", lot(i << 45)) for i in range(6)]  # some below half of 2⁴⁸, some above
    for own in (lot(0), lot((1 << 47) - 1), lot(1 << 47)):
        tables = [
            held_by_person(con, others + [(*row, who) for row in mine], [*lots, (who, own)])
            for who, mine in (("q", [(0, 0), (2, 1)]), ("Q", [(1, 1)]))
        ]
        moved = [sum(((a - b) + (b - a)).values()) for a, b in zip(*tables, strict=True)]
        assert sorted(moved) == [0, 3]  # two rows left a part, one was added
        assert (moved[1] > 0) == (uuid.UUID(own).int < 1 << 127)


def test_a_replaced_row_keeps_its_lot_and_changes_one_row_of_one_part(con):
    rng = np.random.default_rng(0)
    for _ in range(6):
        rows = [(*rng.integers(0, (3, 2)).tolist(), lot(int(rng.integers(0, 4)))) for _ in range(6)]  # with ties
        other = list(rows)
        place = int(rng.integers(0, 6))
        other[place] = (int(rng.integers(0, 3)), int(rng.integers(0, 2)), rows[place][2])
        tables = []
        for one in (rows, other):
            write(con, "lots", "c0 int, c1 int, lot uuid", one)
            asked = HeldOut(0.3, 2, False)
            tables.append([found(con, part_of(SCHEMA, "codes", "lots", asked, held=h)) for h in (False, True)])
            assert [sum(part.values()) for part in tables[-1]] == [4, 2]
        changed = [sum((a - b).values()) for a, b in zip(*tables, strict=True)]
        assert sum(changed) <= 1


def test_a_person_changes_at_most_k_rows_of_a_declared_total(con):
    """As proved in `bounded`: for fixed random numbers, a person's rows are replaced by any others, with filler rows
    last."""
    rng = np.random.default_rng(1)
    for _ in range(6):
        others = [(*rng.integers(0, (3, 2)).tolist(), lot(int(rng.integers(0, 6)))) for _ in range(5)]
        invented = [(0, 0)] * 9
        for total in (3, 5, 8):
            tables = []
            for size in rng.integers(0, K + 1, 2).tolist():
                mine = [(*rng.integers(0, (3, 2)).tolist(), lot(int(rng.integers(0, 6)))) for _ in range(size)]
                write(con, "lots", "c0 int, c1 int, lot uuid", others + mine)
                kept = found(con, cut(SCHEMA, "lots", total))
                kept.update(invented[: total - sum(kept.values())])
                assert sum(kept.values()) == total
                tables.append(kept)
            assert sum((tables[0] - tables[1]).values()) <= K


@pytest.fixture
def visits(postgres):
    rng = np.random.default_rng(0)
    whose = rng.integers(0, PEOPLE, ROWS).tolist()
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("CREATE TABLE visits (id text, a text, b text)")
        with con.cursor().copy("COPY visits FROM STDIN") as copy:
            for who in whose:
                copy.write_row([f"p{who}", "xyz"[who % 3], "nm"[int(rng.integers(0, 2))]])
        yield open_relation(postgres, "visits"), np.bincount(np.bincount(whose, minlength=PEOPLE), minlength=3)
        con.execute("DROP TABLE visits")


def rows_in(snapshot):
    return sum(
        (Counter(zip(*(c.tolist() for c in b.values()), strict=True)) for b in snapshot.batches()),
        Counter(),
    )


def people_in(snapshot):
    return {row[0] for row in snapshot._run(f"SELECT DISTINCT person FROM {snapshot._table}").fetchall()}


def test_people_are_held_out_whole_by_chance_and_drawn_once(visits):
    snapshot = PostgresSnapshot(visits[0], SCHEMA, "id", K)
    there = people_in(snapshot)
    splits = []
    for _ in range(2):
        rest, held = snapshot.split(0.3)
        assert rest.names_people
        assert held.names_people
        assert rows_in(rest) + rows_in(held) == rows_in(snapshot)
        assert rows_in(held) == rows_in(held)
        assert held.count(("a", "b")).sum() == held.rows
        assert rest.digest == held.digest == snapshot.digest
        one, other = people_in(rest), people_in(held)
        assert one | other == there
        assert not one & other
        assert abs(len(other) - 0.3 * len(there)) < 5.5 * np.sqrt(0.21 * len(there))
        splits.append(other)
        rest.close()
        held.close()
    assert splits[0] != splits[1]  # equal with a probability below 10⁻⁵⁰
    assert rows_in(snapshot)  # closing one part closes nothing else
    snapshot.close()


def test_rows_are_held_out_by_number_or_by_chance(visits):
    snapshot = PostgresSnapshot(visits[0], SCHEMA)
    rest, held = snapshot.split(0.2, 123)
    assert (rest.rows, held.rows) == (ROWS - 123, 123)
    assert rows_in(rest) + rows_in(held) == rows_in(snapshot)
    rest, held = snapshot.split(0.2)
    assert rest.rows + held.rows == ROWS
    assert abs(held.rows - 0.2 * ROWS) < 5.5 * np.sqrt(0.16 * ROWS)
    snapshot.close()


def test_a_declared_total_is_cut_or_filled_evenly(visits):
    snapshot = PostgresSnapshot(visits[0], SCHEMA, "id", K)
    less = snapshot.to_total(snapshot.rows - 200)
    assert less.rows == snapshot.rows - 200 == less.count(("a",)).sum()
    assert not less.names_people
    assert not rows_in(less) - rows_in(snapshot)
    more = snapshot.to_total(snapshot.rows + 6_000)
    assert more.rows == snapshot.rows + 6_000 == more.count(("b",)).sum()
    assert not rows_in(snapshot) - rows_in(more)
    added = np.array(sorted((rows_in(more) - rows_in(snapshot)).items()), dtype=object)[:, 1].astype(int)
    assert len(added) == 6
    assert abs(added - 1_000).max() < 6 * np.sqrt(1_000 * 5 / 6)
    snapshot.close()


def test_columns_made_from_the_rows_stay_in_the_server(visits):
    snapshot = PostgresSnapshot(visits[0], SCHEMA, "id", K)
    wide = Schema((*SCHEMA.columns, Column("same", "ordinal", ("no", "yes"))))
    made = snapshot.widened(wide, lambda rows: {"same": (rows["a"] == rows["b"]).astype(int)})
    counts = made.count(("a", "b", "same"))
    assert np.array_equal(counts.sum(axis=2), snapshot.count(("a", "b")))
    assert counts[0, 0, 0] == counts[1, 1, 0] == counts[0, 1, 1] == 0
    assert made.names_people
    snapshot.close()


def test_what_is_drawn_is_drawn_where_it_is_written_and_once(visits):
    plan = Plan("mst", 1.0, 1e-6, person="id", rows_per_person=K, rows=3_000, private_evaluation=0.2)
    drawing = [s for s in visits[0].statements(SCHEMA, plan) if "uuid()" in s]
    people, rows, filled = drawing
    assert people.startswith(f"CREATE TEMP TABLE {CODES}_1 ")
    assert rows.startswith(f"CREATE TEMP TABLE {CODES}_4 ")
    assert [s.count("uuid()") for s in (people, rows)] == [1, 1]
    assert "DISTINCT person" in people
    assert filled.startswith("INSERT INTO")
    assert filled.count("uuid()") == len(SCHEMA.columns)
    assert not any("random()" in s for s in later_statements(SCHEMA, plan))
    by_row = later_statements(SCHEMA, Plan("mst", 1.0, 1e-6, private_evaluation=0.2))
    assert sum("uuid()" in s for s in by_row) == 1


def test_a_long_statement_can_be_cancelled(visits):
    def cancel():
        raise Cancelled("stop")

    snapshot = PostgresSnapshot(visits[0], SCHEMA)
    snapshot.pulse = cancel
    with pytest.raises(Cancelled):
        snapshot._run("SELECT pg_sleep(20)")
    snapshot.close()
    again = PostgresSnapshot(visits[0], SCHEMA)
    assert again.rows == ROWS
    again.close()


def test_a_server_that_goes_away_is_told_in_words(visits, postgres):
    snapshot = PostgresSnapshot(visits[0], SCHEMA)
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("SELECT pg_terminate_backend(%s)", [visits[0].backend.con.info.backend_pid])
    with pytest.raises(TableError, match="the engine failed while it counted"):
        snapshot.count(("a",))
    snapshot.close()
