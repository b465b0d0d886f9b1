"""Dates: bins that follow the calendar, conversion from text to day numbers and back, and invented identifiers."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest

from espalier.core.errors import SchemaError
from espalier.core.project.dates import DateBins, date_texts, day_number, invented
from espalier.core.project.schema import Column

RANGES = [
    (date(2023, 11, 15), date(2024, 3, 2)),
    (date(2024, 1, 1), date(2024, 12, 31)),
    (date(2023, 12, 31), date(2024, 2, 1)),
    (date(2019, 2, 28), date(2020, 3, 1)),
]


def period(day: date, by: str) -> object:
    """Return the period that a day is in, from the calendar."""
    return {
        "week": day.isocalendar()[:2],
        "month": (day.year, day.month),
        "quarter": (day.year, (day.month - 1) // 3),
        "year": day.year,
    }[by]


def column(bins: DateBins) -> Column:
    return Column("day", "numeric", edges=bins.edges, integer=True, missing=True)


@pytest.mark.parametrize("by", ["week", "month", "quarter", "year"])
@pytest.mark.parametrize(("first", "last"), RANGES)
def test_two_days_share_a_bin_if_and_only_if_they_share_a_period(first, last, by):
    bins = DateBins(first, last, by)
    days = [first + timedelta(days=i) for i in range((last - first).days + 1)]
    codes = column(bins).encode([str(day.toordinal()) for day in days])
    expected = {p: i for i, p in enumerate(dict.fromkeys(period(day, by) for day in days))}
    assert codes.tolist() == [expected[period(day, by)] for day in days]
    assert len(bins.labels) == len(expected) == len(set(bins.labels)) == len(bins.edges) - 1


def test_labels():
    first, last = date(2024, 12, 20), date(2025, 1, 10)
    assert DateBins(first, last, "week").labels == ("2024-W51", "2024-W52", "2025-W01", "2025-W02")
    assert DateBins(first, last, "month").labels == ("2024-12", "2025-01")
    assert DateBins(first, last, "quarter").labels == ("2024-Q4", "2025-Q1")
    assert DateBins(first, last, "year").labels == ("2024", "2025")


@pytest.mark.parametrize("by", ["week", "month", "quarter", "year"])
@pytest.mark.parametrize(("first", "last"), RANGES)
def test_drawn_dates_lie_in_the_range_and_in_their_bins(first, last, by):
    bins = DateBins(first, last, by)
    shown = column(bins)
    codes = np.repeat(np.arange(shown.size), 40)
    rng = np.random.default_rng(1)
    days = np.array([float(t) if t else np.nan for t in shown.decode(codes, rng)])
    texts = date_texts(days)
    again = np.array([np.nan if t == "" else day_number(t) for t in texts], dtype=float)
    assert np.array_equal(again, days, equal_nan=True)
    assert (
        shown.encode([t if t == "" else str(int(d)) for t, d in zip(texts, again, strict=True)]).tolist()
        == codes.tolist()
    )
    assert min(t for t in texts if t) >= first.isoformat()
    assert max(texts) <= last.isoformat()


def test_reading_dates():
    assert day_number(" 2024-02-29 ") == date(2024, 2, 29).toordinal()
    assert day_number("2024-02-29T10:30:00+01:00") == day_number("2024-02-29 10:30") == day_number("2024-02-29")
    for text in ("2023-02-29", "29.2.2024", "2024-2-9", "x", "2024-02-29x", "20240229"):
        assert day_number(text) is None


def test_the_project_file():
    bins = DateBins(date(2020, 1, 1), date(2021, 6, 30), "quarter")
    assert DateBins.from_json(bins.to_json()) == bins
    for data, text in [
        ("month", "need a range"),
        ({"from": "2020-01-01", "to": "2020-13-01", "by": "month"}, "must be written like 2020-01-31"),
        ({"from": 2020, "to": 2021, "by": "year"}, "must be written like 2020-01-31"),
        ({"from": "2020-01-01", "to": "2020-01-01", "by": "month"}, "from a day to a later one"),
        ({"from": "2020-01-01", "to": "2021-01-01", "by": "day"}, "not by 'day'"),
        ({"from": "1900-01-01", "to": "2020-01-01", "by": "week"}, "more than 1,000 bins"),
        ({"from": "1900-01-01", "to": "9999-01-01", "by": "year"}, "before the year 9999"),
    ]:
        with pytest.raises(SchemaError, match=text):
            DateBins.from_json(data)


def test_invented_identifiers_are_unique_and_in_no_order():
    made = invented(1000, np.random.default_rng(0))
    assert len(set(made)) == 1000
    assert made != sorted(made)
    assert set(map(len, made)) == {5}
    assert invented(0, np.random.default_rng(0)) == []
