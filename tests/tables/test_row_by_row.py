"""The encoding theorem, for each engine, type, special value and layout: one row never changes how another is read.

`tests.support.row_by_row` states what is checked, `tests.support.layouts` for what. The broken readers at the end prove
that the checker finds the breaks that Espalier's readers once had.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from espalier.core.errors import TableError
from espalier.core.tables.reading import from_arrow
from espalier.core.tables.table import Table
from tests.support import layouts
from tests.support.row_by_row import OWNER, PERSON, ROW, Kind, Layout, Outcome, People, check, check_people

SHOWN = 5


def confirmed(outcome: Outcome, record_property, least: int) -> None:
    """No break, and at least this many combinations, which the test's record states."""
    record_property("combinations", outcome.combinations)
    record_property("refused", sorted(outcome.refused))
    assert not outcome.broken, "\n".join([f"{len(outcome.broken)} breaks", *outcome.broken[:SHOWN]])
    assert outcome.combinations >= least


def of(name):
    return pytest.mark.parametrize("layout", getattr(layouts, name), ids=lambda layout: layout.name)


@of("MEMORY")
def test_frames_and_small_files(layout, tmp_path, record_property):
    confirmed(check(layouts.ARROW, layout, tmp_path), record_property, 500)


@of("FILES")
def test_parquet(layout, tmp_path, record_property):
    confirmed(check(layouts.ARROW, layout, tmp_path), record_property, 500)


@of("TEXT_FILES")
def test_csv(layout, tmp_path, record_property):
    confirmed(check(layouts.CELLS, layout, tmp_path), record_property, 500)


@of("SHEETS")
def test_excel(layout, tmp_path, record_property):
    confirmed(check(layouts.SHEET, layout, tmp_path), record_property, 100)


@of("DUCKDB_LAYOUTS")
def test_duckdb(layout, tmp_path, record_property):
    confirmed(check(layouts.DUCKDB, layout, tmp_path), record_property, 500)


@of("SQLITE_LAYOUTS")
def test_sqlite(layout, tmp_path, record_property):
    confirmed(check(layouts.SQLITE, layout, tmp_path), record_property, 500)
