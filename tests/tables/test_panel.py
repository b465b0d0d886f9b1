"""Two linked tables are read as a panel. The rules for keeping visits depend on one person's rows alone."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from espalier.core.errors import ProjectError, TableError
from espalier.core.project.column_types import Dates
from espalier.core.project.dates import DateBins
from espalier.core.project.linked import Linked
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.frames import panel
from espalier.core.tables.panel import Panel, ranks_of
from espalier.core.tables.text_table import TextColumn

LINK = Linked("people", "visits", "id", "id", "at", 3, "key")
SCHEMA = LINK.completed(
    Schema((Column("people.a", "categorical", ("n", "y")), Column("visits.x", "categorical", tuple("pqrs"))))
)
DATED = Linked("people", "visits", "id", "id", "at", 3, gap=(0, 7, 30))
DAYS = DATED.completed(
    Schema(
        (
            Column("people.a", "categorical", ("n", "y")),
            Dates.of("visits.at", DateBins.from_json({"from": "2020-01-01", "to": "2020-12-31", "by": "month"})),
            Column("visits.x", "categorical", tuple("pqrs")),
        )
    )
)


def people(*rows: tuple[str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["id", "a"], dtype=object)


def visits(*rows: tuple[str, str, str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["id", "at", "key", "x"], dtype=object)


def read(one: pd.DataFrame, other: pd.DataFrame, link: Linked = LINK, schema: Schema = SCHEMA) -> Panel:
    return panel(link, schema, (one, other))


def told(made: Panel) -> list[tuple[Any, ...]]:
    """Return the person column and the kept visits of each person. The order of people does not matter."""
    numbers = made.codes[LINK.number].astype(int) + 1
    out = [
        (int(made.codes["people.a"][i]), *made.visits["visits.x"][i, : numbers[i]].tolist()) for i in range(made.rows)
    ]
    return sorted(out)


def test_one_message_names_the_columns_of_both_tables_that_do_not_fit():
    """Previously, the columns were named one after the other."""
    with pytest.raises(TableError) as refused:
        read(people(("1", "odd")), visits(("1", "10", "a", "odd")))
    assert refused.value.data["columns"] == ["visits.x", "people.a"]


def test_the_first_visits_in_order_are_kept():
    made = read(
        people(("1", "n"), ("2", "y")),
        visits(("1", "10", "a", "p"), ("2", "1", "b", "s"), ("1", "9", "c", "q"), ("1", "11", "d", "r"),
               ("1", "12", "e", "s")),
    )  # fmt: skip
    assert told(made) == [(0, 1, 0, 2), (1, 3)]
    assert made.person_column == "id"
    assert made.codes["visits.x"].tolist() in ([1, 3], [3, 1])


def test_numbers_come_before_dates_and_an_empty_cell_comes_last():
    made = read(
        people(("1", "n")),
        visits(("1", "", "a", "s"), ("1", "2020-01-02", "b", "r"), ("1", "10", "c", "q"), ("1", "9.5", "d", "p")),
    )
    assert told(made) == [(0, 0, 1, 2)]


def test_ties_follow_the_identifier_and_then_the_cells_never_the_place():
    rows = [("1", "1", "k2", "p"), ("1", "1", "k1", "q"), ("1", "1", "", "s"), ("1", "1", "", "r"), ("2", "1", "", "p")]
    found = {str(told(read(people(("1", "n"), ("2", "y")), visits(*order)))) for order in itertools.permutations(rows)}
    assert found == {str([(0, 1, 0, 2), (1, 0)])}


def test_people_without_visits_and_visits_without_a_person_are_left_out():
    made = read(people(("1", "n"), ("3", "y")), visits(("1", "1", "a", "p"), ("2", "1", "b", "q")))
    assert told(made) == [(0, 0)]


def test_of_several_rows_of_a_person_the_smallest_counts_in_any_order():
    given = [("1", "y"), ("1", "n"), ("2", "y")]
    for order in itertools.permutations(given):
        assert told(read(people(*order), visits(("1", "1", "a", "p"), ("2", "1", "b", "q")))) == [(0, 0), (1, 1)]


def test_one_file_takes_the_person_columns_from_the_first_kept_visit():
    link = Linked("people", "visits", "id", "id", "at", 3, together=True)
    frame = pd.DataFrame(
        [("1", "2", "y", "q"), ("1", "1", "n", "p"), ("2", "1", "y", "r")], columns=["id", "at", "a", "x"], dtype=object
    )
    assert told(panel(link, SCHEMA, frame)) == [(0, 0, 1), (1, 2)]


def test_ties_in_one_file_follow_the_person_columns_never_the_place():
    link = Linked("people", "visits", "id", "id", "at", 3, together=True)
    rows = [("1", "1", "y", "p"), ("1", "1", "n", "p")]
    for order in (rows, rows[::-1]):
        frame = pd.DataFrame(order, columns=["id", "at", "a", "x"], dtype=object)
        assert told(panel(link, SCHEMA, frame)) == [(0, 0, 0)]


def test_a_panel_of_another_link_is_refused():
    made = read(people(("1", "n")), visits(("1", "1", "a", "p")))
    assert panel(LINK, SCHEMA, made) is made
    with pytest.raises(TableError, match="a different link"):
        panel(replace(LINK, visit_key=""), SCHEMA, made)


def test_gaps_are_days_since_the_visit_before_and_are_clipped():
    made = read(
        people(("1", "n")),
        visits(("1", "2020-03-01", "a", "p"), ("1", "2020-01-01", "b", "q"), ("1", "2020-01-05", "c", "r")),
        DATED,
        DAYS,
    )
    none = DATED.gap_column(DAYS).size
    assert made.visits[DATED.gap_name].tolist() == [[none, 0, 1]]
    assert made.codes["visits.at"].tolist() == [0]
    assert "visits.at" not in made.visits


def test_dates_in_several_spellings_are_ordered_by_day_and_time():
    """Previously, 2020-01-05 10:00 came before 05.01.2020 09:00, because a blank sorts before T."""
    cells = ["05.01.2020 09:00", "2020-01-05 10:00", "2020-01-05T11:00", " 2020-01-06", "07.01.2020"]
    assert ranks_of(TextColumn.of(cells), "dmy").tolist() == [0, 1, 2, 3, 4]


def test_visits_are_ordered_by_their_day_in_any_spelling():
    rows = (("1", "01.03.2020", "a", "p"), ("1", "2. Feb 2020 9:30 PM", "b", "q"), ("1", "02.02.2020 10:15", "c", "r"))
    schema = Schema(tuple(replace(c, date_order="dmy") if isinstance(c, Dates) else c for c in DAYS.columns))
    made = read(people(("1", "n")), visits(*rows), DATED, schema)
    assert made.visits["visits.x"].tolist() == [["pqrs".index(x) for x in "rqp"]], "as text, 01.03. would come first"
    assert made.codes["visits.at"].tolist() == [1]
    assert made.visits[DATED.gap_name].tolist() == [[DATED.gap_column(schema).size, 0, 1]]


def test_one_person_never_changes_how_another_is_read():
    """The generated test of the two-file reader: the rows of an additional person never change how the other rows are
    read.
    """
    rng = np.random.default_rng(0)
    texts = ["1", "01", "1.0", "2", "-3", "1e2", "2020-01-01", "2020-01-01T05:00", "b", "NaN", "inf", "", "é", "10"]

    def some(who: str) -> tuple[list[tuple[str, str]], list[tuple[str, str, str, str]]]:
        own = [(who, rng.choice(["n", "y"])) for _ in range(rng.integers(0, 3))]
        return own, [(who, rng.choice(texts), rng.choice(texts), rng.choice(list("pqrs"))) for _ in range(5)]

    for _ in range(60):
        base, more = [some(who) for who in ("1", "2", "3")], some("4")
        alone = read(people(*(r for p, _ in base for r in p)), visits(*(r for _, v in base for r in v)))
        rows = [r for p, v in (*base, more) for r in p], [r for p, v in (*base, more) for r in v]
        for part in rows:
            rng.shuffle(part)
        both = read(people(*rows[0]), visits(*rows[1]))
        kept = told(both)
        for person in told(alone):
            kept.remove(person)
        assert len(kept) <= 1


def test_invented_people_fill_a_declared_total():
    made = read(people(("1", "n"), ("2", "y")), visits(("1", "1", "a", "p"), ("2", "1", "b", "q")))
    for total in (1, 2, 50):
        filled = made.to_total(total)
        assert filled.rows == total == len(filled.visits["visits.x"])
        assert np.array_equal(filled.visits["visits.x"][:, 0], filled.codes["visits.x"])
        assert filled.step_counts([("position", "visits.x")])[0].sum() <= LINK.units * total


def test_refusals_quote_no_identifier():
    with pytest.raises(TableError, match="person column 'id' has an empty cell") as found:
        read(people(("1", "n")), visits(("1", "1", "a", "p"), ("", "2", "secret", "q")))
    assert "secret" not in str(found.value)
    with pytest.raises(TableError, match="no column 'at'"):
        read(people(("1", "n")), visits(("1", "1", "a", "p")).drop(columns="at"))
    with pytest.raises(TableError, match="pass the table 'people' and then the table 'visits'"):
        panel(LINK, SCHEMA, visits(("1", "1", "a", "p")))
    with pytest.raises(ProjectError, match="from 2 to 20"):
        Linked("people", "visits", "id", "id", "at", 1)


@pytest.mark.parametrize(
    ("link", "column"),
    [
        (Linked("people", "visits", "id", "id", "at", 3), "visits.visit"),
        (Linked("people", "visits", "id", "id", "at", 3, "visit"), "visits.x"),
        (Linked("people", "visits", "id", "id", "at", 3, "id"), "visits.x"),
        (Linked("people", "visits", "id", "visit", "at", 3), "visits.x"),
        (Linked("people", "visits", "id", "id", "at", 3, "key"), "visits.key"),
    ],
    ids=["a column", "the visit's identifier", "the person's", "the position", "an identifier in the schema"],
)
def test_a_released_table_with_two_columns_of_one_name_is_refused_with_the_project(link, column):
    """Previously, this was noticed when the release was written, after the budget was spent."""
    schema = Schema((Column("people.a", "categorical", ("n", "y")), Column(column, "categorical", tuple("pqrs"))))
    with pytest.raises(ProjectError, match="would have two columns"):
        link.check(link.completed(schema))
