"""Guesses of kinds, and the groups in which a person reviews them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from espalier.core.errors import SchemaError
from espalier.core.project.dates import DateBins
from espalier.core.project.numerals import STYLES, plain_number
from espalier.core.project.schema import Column
from espalier.core.project.schema_json import column_from_json, column_to_json
from espalier.core.tables.guessing import guess_column, guess_schema, identifiers
from espalier.core.tables.reading import read_table
from espalier.core.tables.review import GROUPS, review, review_column, shown_digest
from espalier.core.tables.table import Table
from espalier.core.tables.text_table import TextColumn, TextTable
from espalier.core.tables.value_patterns import number_style, range_order, ranges_in_order


def guess(*cells: str, name: str = "x") -> Column:
    return guess_column(name, TextColumn.of(cells))


def placed(*cells: str, name: str = "x"):
    return review_column(TextColumn.of(cells), guess(*cells, name=name))


@pytest.mark.parametrize(
    ("values", "order"),
    [
        (("[10-20)", "[0-10)", "[100-110)"), ("[0-10)", "[10-20)", "[100-110)")),
        ((">200", "[0-25)", "[100-125)"), ("[0-25)", "[100-125)", ">200")),
        (("$20,000+", "$10,000-$19,999", "$0-$9,999"), ("$0-$9,999", "$10,000-$19,999", "$20,000+")),
        (("10 000 - 20 000", "< 10 000", "20 000 - 30 000"), ("< 10 000", "10 000 - 20 000", "20 000 - 30 000")),
        (("€1.5 to €2", "über 10", "2 bis 10"), ("€1.5 to €2", "2 bis 10", "über 10")),
        (("(100,1000]", "(0,100]"), ("(0,100]", "(100,1000]")),
        (("18 to 25", "under 18", "26 to 40", "65+"), ("under 18", "18 to 25", "26 to 40", "65+")),
        (("1 - 4 yrs", "0 - 1 yrs", "10 years and over"), ("0 - 1 yrs", "1 - 4 yrs", "10 years and over")),
        (("<30", ">=40", "30-39.5"), ("<30", "30-39.5", ">=40")),
        (("25 - 45", "Greater than 45", "Less than 25"), ("Less than 25", "25 - 45", "Greater than 45")),
    ],
)
def test_ranges_are_categories_in_their_order(values, order):
    assert ranges_in_order(values) == order
    assert (guess(*values).kind, guess(*values).categories) == ("ordinal", order)


@pytest.mark.parametrize("text", ["10", "20-10", "a-b", "", "ward 3-4 b", "2020-01-02", "+49 30-1234 x"])
def test_what_is_no_range(text):
    assert range_order(text) is None


def test_a_long_cell_is_no_range():
    """Previously, the time grew with the square of the number of blanks, to hours for a million."""
    assert range_order("1-2" + " " * 1_000_000 + "!") is None


@pytest.mark.parametrize(
    ("cells", "dates"),
    [
        (("2020-03-04", "2021-05-06"), DateBins.from_json({"from": "2020-01-01", "to": "2021-12-31", "by": "month"})),
        (("2010-03-04", "2021-05-06"), DateBins.from_json({"from": "2010-01-01", "to": "2021-12-31", "by": "quarter"})),
        (("1930-03-04", "2021-05-06"), DateBins.from_json({"from": "1930-01-01", "to": "2021-12-31", "by": "year"})),
    ],
)
def test_dates_become_calendar_bins_of_whole_years(cells, dates):
    column = guess(*cells)
    assert column.dates == dates
    assert {"kind", "edges"} <= set(column.guessed)
    assert (column.judge(cells) < column.size).all()


def test_dates_of_an_excel_sheet_and_of_parquet_become_months(tmp_path):
    import datetime as dt

    import pandas as pd

    frame = pd.DataFrame({"seen": [dt.datetime(2024, 1 + i % 12, 3) for i in range(40)], "n": ["a"] * 40})
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.xlsx", "t.parquet"):
        table = read_table(tmp_path / name)
        schema = guess_schema(table)
        assert schema["seen"].dates.by == "month"
        assert Table.encode(table, schema).rows == 40


@pytest.mark.parametrize(
    ("cells", "style", "first"),
    [
        (("1,5", "22,75"), "1234,5", 1.5),
        (("1,234", "12"), "1234,5", 1.234),
        (("1,234,567", "12"), "1,234.5", 1234567),
        (("1.234,5", "12"), "1.234,5", 1234.5),
        (("1.234.567", "1"), "1.234,5", 1234567),
        (("1 234", "5"), "1 234,5", 1234),
        (("1'234.5", "5"), "1'234.5", 1234.5),
        (("1.5", "2"), "", None),
        (("a", "1,5"), "", None),
    ],
)
def test_styles_of_numbers(cells, style, first):
    assert number_style(cells) == style
    if style:
        assert float(plain_number(cells[0], style)) == first


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("text", ["", "x", "1,,5", "1.2.3", "--1", "1 23", "٣,٥", "1e5"])
def test_what_is_no_number_in_any_style(style, text):
    assert plain_number(text, style) is None


def test_a_column_with_decimal_commas_is_read_and_binned():
    cells = [f"{i},5" for i in range(100)]
    column = guess(*cells)
    assert (column.kind, column.number_style, column.integer) == ("numeric", "1234,5", False)
    assert "number_style" in column.guessed
    assert column.numbers(["7,5", ""])[0] == 7.5
    assert (column.judge(cells) < column.values).all()
    assert column_from_json(column_to_json(column)) == column


def test_codes_with_leading_zeros_stay_text():
    cells = [f"{i:05d}" for i in range(30)] * 3
    assert guess(*cells).kind == "categorical"
    assert "00007" in guess(*cells).categories
    assert "leading zeros" in placed(*cells).reason


def test_amounts_are_no_identifiers_and_numbers_of_people_are():
    amounts = [str(250 + 37 * i * i % 18_000) for i in range(300)] + ["250"]
    columns = {
        "credit_amount": amounts,
        "customer_id": amounts,
        "row": [str(i) for i in range(300)] + ["0"],
        "mrn": [str(10_000_000 + 7919 * i) for i in range(300)] + ["10000000"],
        "phone": [str(1_000_000 + 7919 * i) for i in range(301)],
    }
    table = TextTable({n: TextColumn.of(c) for n, c in columns.items()}, 301)
    assert identifiers(table) == ("customer_id", "row", "mrn", "phone")


@pytest.mark.parametrize("order", [("2021Q1", "2021Q2"), ("2021-02", "2021-11"), ("1950s", "1960s")])
def test_months_quarters_and_decades_are_categories_in_their_order(order):
    column = guess(*reversed(order))
    assert (column.kind, column.categories) == ("ordinal", order)
    assert guess(*order, "1234-56").kind == "categorical"


@pytest.mark.parametrize(
    ("spelling", "order"),
    [
        *(("{d}.3.2021", "dmy"), ("{d:02d}/03/2021 14:05", "dmy"), ("{d}-MAR-2021", "dmy"), ("{d:02d}mar2021", "dmy")),
        *(("03/{d:02d}/2021", "mdy"), ("Mar {d}, 2021", "mdy"), ("2021/3/{d}", "ymd"), ("202103{d:02d}", "ymd")),
    ],
)
def test_days_in_another_spelling_become_months_like_iso_dates(spelling, order):
    cells = [spelling.format(d=d) for d in range(1, 28)]
    column, iso = guess(*cells), guess(*(f"2021-03-{d:02d}" for d in range(1, 28)))
    assert (column.date_order, column.dates, column.edges) == (order, iso.dates, iso.edges)
    assert "date_order" in column.guessed
    assert identifiers(TextTable({"x": TextColumn.of(cells)}, 27)) == ()
    assert column.judge(cells).tolist() == [2] * 27
    found = placed(*cells)
    assert found.group == "look closely"
    assert {"dmy": "day first", "mdy": "month first", "ymd": "year first"}[order] in found.reason
    assert column_from_json(column_to_json(column)) == column
    assert shown_digest(column) != shown_digest(replace(cast(Any, column), date_order=""))


def test_whether_the_day_or_the_month_comes_first_is_asked_and_never_guessed():
    cells = [f"{d:02d}/{m:02d}/2021" for d in range(1, 13) for m in (1, 2, 12)]
    column, found = guess(*cells), placed(*cells)
    assert column.dates is None
    assert found.orders == ("dmy", "mdy")
    assert "day or the month comes first" in found.reason
    table = TextTable({"x": TextColumn.of(cells)}, len(cells))
    assert identifiers(table) == (), "dates that hardly repeat are not identifiers"
    assert guess_schema(table)["x"].dates is None
    for order, first in (("dmy", 0), ("mdy", 0)):
        made = guess_schema(table, (), order)["x"]
        assert (made.date_order, made.judge(["01/01/2021"])[0]) == (order, first)
    assert guess_schema(table, (), "dmy")["x"].judge(["01/02/2021"])[0] == 1
    assert guess_schema(table, (), "mdy")["x"].judge(["01/02/2021"])[0] == 0
    shows = guess(*cells, "13/01/2021")
    assert shows.date_order == "dmy", "one value shows the order"
    assert guess(*cells, "01/13/2021").date_order == "mdy"
    assert guess(*cells, "13/01/2021", "01/13/2021").dates is None, "no single order"


@pytest.mark.parametrize("spelling", ["{d}.3.21", "{d}/02/2021", "{d}-Mai-2021"])
def test_dates_that_no_order_reads_are_looked_at_closely(spelling):
    found = placed(*(spelling.format(d=d) for d in range(1, 31)))
    assert found.orders == ()
    assert found.group == "look closely"
    assert "Write them as 2024-01-31" in found.reason


@pytest.mark.parametrize("order", ["DMY", "", 5, None, ["dmy"], True])
def test_an_unknown_order_of_dates_is_refused(order):
    data = {"name": "d", "kind": "date", "dates": {"from": "2020-01-01", "to": "2020-12-31", "by": "month"}}
    with pytest.raises(SchemaError, match=r"column 'd': date_order is .* it must be one of \"dmy\" \(31.12.2020"):
        column_from_json({**data, "date_order": order})
    with pytest.raises(SchemaError, match='"date_order" belongs to the kind "date"'):
        column_from_json({"name": "d", "kind": "numeric", "edges": [0, 1], "date_order": "dmy"})


def test_numbers_of_people_may_repeat_in_a_table_of_visits():
    visits = [str(1 + i // 3) for i in range(900)]
    columns = {
        "id": visits,
        "subject": visits,
        "num_drugs": visits,
        "site_id": [str(i % 40) for i in range(900)],
        "item_id": [str(i % 120) for i in range(900)],
    }
    table = TextTable({n: TextColumn.of(c) for n, c in columns.items()}, 900)
    assert identifiers(table) == ("id", "subject", "item_id")
    assert "identifier" in placed(*columns["site_id"], name="site_id").reason
    long = TextTable({"id": TextColumn.of([str(i % 120) for i in range(9000)])}, 9000)
    assert identifiers(long) == (), "75 rows each: places or products"


def test_texts_that_number_people_may_repeat_and_are_no_codes_of_a_book():
    visits = [f"P{10000 + i // 3}" for i in range(600)]
    columns = {"patient_id": visits, "patient_ward": visits, "diagnosis": visits}
    table = TextTable({n: TextColumn.of(c) for n, c in columns.items()}, 600)
    assert identifiers(table) == ("patient_id",), "a name without a word for a number may be a place or a code"
    assert placed(*visits, name="diagnosis").books == ("icd-10-cm",), "P10 is a block of ICD-10"
    assert placed(*visits[:120], name="patient_ward").books == ()


def test_bounds_are_never_the_largest_number_found():
    for largest in (100, 1000, 99, 120, 7500):
        column = guess(*(str(i) for i in range(0, largest + 1, max(1, largest // 60))), str(largest))
        assert column.edges[-1] > largest
        assert column.edges[0] == 0


@pytest.mark.parametrize(
    ("cells", "group"),
    [
        (["ja", "nein"] * 2, "obviously public"),
        (["oui", "non"] * 2, "obviously public"),
        (["1", "2", "3"], "obviously public"),
        (["a"] * 30 + ["b"] * 30, "obviously public"),
        (["a"] * 30 + ["b"], "look closely"),
        (["1", "2", "17"], "look closely"),
        (["2020-01-02", "2020-03-04"] * 30, "look closely"),
        ([f"w{i}" for i in range(31)] * 30, "look closely"),
        ([f"a{i}@example.org" for i in range(5)], "identifies someone"),
        ([str(i) for i in range(50)] * 3, "look closely"),
    ],
)
def test_groups(cells, group):
    found = placed(*cells)
    assert found.group == group
    assert group in GROUPS
    assert found.reason.endswith(".")
    assert not any(c in found.reason for c in cells if len(c) > 3), "no value is quoted"


def test_a_code_book_is_proposed_for_values_that_it_holds():
    found = placed(*[f"{i}.{j}" for i in range(250, 300) for j in range(3)][:90], "V57")
    assert found.books == ("icd-9-cm",)
    assert "icd-9-cm" in found.reason
    assert placed("CA", "NY", "TX", "WA", "OR").books == ("us-states",)
    assert placed("CA", "NY", "TX", "WA", "ZZ").books == ()
    assert placed(*(str(i) for i in range(100, 140))).books == (), "numbers are not codes"


def test_the_digest_covers_what_is_shown_and_not_the_marks_of_the_guess():
    column = guess("a", "b")
    assert shown_digest(column) == shown_digest(replace(column, guessed=(), confirmed=("kind",)))
    others = [guess("a", "c"), guess("a", "b", ""), guess("a", "b", name="y"), replace(column, missing=True)]
    assert len({shown_digest(c) for c in (column, *others[:3])}) == 4
    assert shown_digest(others[1]) == shown_digest(others[3])


def test_a_review_has_each_column_once_in_the_order_of_the_table():
    cells = {"id": [f"p{i}" for i in range(60)], "sex": ["f", "m"] * 30, "age": [str(i % 25) for i in range(60)]}
    table = TextTable({n: TextColumn.of(c) for n, c in cells.items()}, 60)
    found = review(table, guess_schema(table))
    assert [(r.name, r.group) for r in found] == [
        ("id", "identifies someone"),
        ("sex", "obviously public"),
        ("age", "look closely"),
    ]
    assert all(r.digest and r.shown for r in found)
