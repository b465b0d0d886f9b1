"""The encoding theorem, for each engine, type, special value and layout: one row never changes how another is read.

`tests.support.row_by_row` states what is checked, `tests.support.layouts` for which tables. The broken readers at the
end prove that the checker finds the breaks that Espalier's readers once had.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from espalier.core.project.schema import Schema
from espalier.core.tables.frames import opened
from espalier.core.tables.narrow_text import narrow_text
from tests.support import broken_readers, layouts
from tests.support.row_by_row import Kind, Layout, Outcome, check, check_people, codes_of

SHOWN = 5
POSTGRES_REFUSES = "timestamptz bytes bit varbit interval inet json"


def confirmed(outcome: Outcome, least: int, refused: str = "") -> None:
    """Check that there is no break, that there are at least this many combinations, and that only these kinds are
    refused. `pytest -rP` shows what was covered.
    """
    print(f"{outcome.combinations} combinations; refused: {', '.join(sorted(outcome.refused)) or 'none'}")
    assert not outcome.broken, "\n".join([f"{len(outcome.broken)} breaks", *outcome.broken[:SHOWN]])
    assert outcome.combinations >= least
    assert outcome.refused <= set(refused.split()), outcome.unnamed
    assert not outcome.unnamed or not refused, outcome.unnamed


def whole(outcome: Outcome, least: int, kind: str) -> None:
    """Like `confirmed`, for tables that may be refused as a whole."""
    outcome.unnamed.clear()
    confirmed(outcome, least, kind)


def of(name: str) -> Any:
    return pytest.mark.parametrize("layout", getattr(layouts, name), ids=lambda layout: layout.name)


def alone(kinds: list[Kind], layout: Layout, folder: Path) -> Outcome:
    """Each kind, view and special value has its own table if tables are refused as a whole."""
    out = Outcome()
    for i, kind in enumerate(kinds):
        for view in kind.views:
            for j in range(len(kind.special)):
                own = folder / f"{i}-{view}-{j}"
                own.mkdir()
                out += check([kind._replace(views=(view,), special=(kind.special[j],))], layout, own)
    return out


@of("MEMORY")
def test_frames_and_small_files(layout, tmp_path):
    confirmed(check(layouts.ARROW, layout, tmp_path), 2000, "zoned")


@of("FILES")
def test_parquet(layout, tmp_path):
    confirmed(check(layouts.ARROW, layout, tmp_path), 2000, "zoned")


@of("TEXT_FILES")
def test_csv(layout, tmp_path):
    confirmed(check(layouts.CELLS, layout, tmp_path), 500)


@of("SHEETS")
def test_excel(layout, tmp_path):
    confirmed(check(layouts.SHEET, layout, tmp_path), 100)


STEPS = pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.nightly)])
"""Engines encode slowly: for each commit, every value is in the base table, and some of them in the odd row."""


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.nightly)])
@of("DUCKDB_LAYOUTS")
def test_duckdb(layout, tmp_path, step):
    refused = "date timestamp timestamptz blob bit interval"
    confirmed(check(layouts.DUCKDB, layout, tmp_path, step), 2000 // step, refused)


@STEPS
@of("SQLITE_LAYOUTS")
def test_sqlite(layout, tmp_path, step):
    confirmed(check(layouts.SQLITE, layout, tmp_path, step), 1500 // step, "integer text boolean untyped blob")


@of("DUCKDB_TEXT")
def test_text_files_through_duckdb(layout, tmp_path):
    """DuckDB's own reader guesses the quotation mark from the rows: such a table is refused."""
    whole(alone(layouts.RAW, layout, tmp_path), 10, "raw")


@of("RAW_FILES")
def test_quotation_marks(layout, tmp_path):
    whole(alone(layouts.RAW, layout, tmp_path), 10, "raw")


@of("PER_FILE_LAYOUTS")
def test_a_folder_whose_files_differ(layout, tmp_path):
    whole(check(layouts.PER_FILE, layout, tmp_path), 30, "number")


@pytest.mark.parametrize("kind", layouts.OBJECTS, ids=lambda kind: str(kind.ordinary[0]))
def test_frames_of_objects(kind, tmp_path):
    whole(alone([kind], Layout("objects", layouts.objects), tmp_path), 10, "object")


@pytest.mark.parametrize("step", [12, pytest.param(1, marks=pytest.mark.nightly)])
def test_postgres(postgres_layout, tmp_path, step):
    confirmed(check(layouts.POSTGRES, postgres_layout, tmp_path, step), 2000 // step, POSTGRES_REFUSES)


def as_linked(relation: Any, schema: Schema) -> Mapping[str, np.ndarray]:
    """Return the codes of a large linked table whose named columns are read as text first."""
    with opened(narrow_text(relation, schema.names)[0], schema) as source:
        return codes_of(source)


LINKED = {
    "Parquet": (layouts.ARROW, layouts.FILES[0], ""),
    "CSV": (layouts.CELLS, layouts.TEXT_FILES[1], ""),
    "DuckDB": (layouts.DUCKDB, layouts.DUCKDB_LAYOUTS[0], "date timestamp timestamptz blob bit interval"),
    "SQLite": (layouts.SQLITE, layouts.SQLITE_LAYOUTS[0], "integer text boolean untyped blob"),
}


@pytest.mark.parametrize("name", LINKED)
def test_large_linked_tables(name, tmp_path):
    kinds, layout, refused = LINKED[name]
    confirmed(check(kinds, layout._replace(read=as_linked), tmp_path, 6), 100, refused)


@pytest.mark.nightly
def test_large_linked_tables_in_postgres(postgres_layout, tmp_path):
    """PostgreSQL's driver refuses infinite dates and 24:00, so the whole table is refused."""
    layout = postgres_layout._replace(read=as_linked)
    whole(alone(layouts.POSTGRES, layout, tmp_path), 100, f"{POSTGRES_REFUSES} date time timestamp")


@pytest.mark.parametrize("people", [layouts.TEXT_PEOPLE, layouts.WHOLE_PEOPLE], ids=lambda people: people.name)
def test_people_in_postgres(people, postgres_layout, tmp_path):
    typed = people._replace(kind=people.kind._replace(declared="text" if people is layouts.TEXT_PEOPLE else "int8"))
    confirmed(check_people(typed, postgres_layout, tmp_path), len(people.odd))


@pytest.fixture(params=["", "&options=-cdefault_transaction_read_only%3Don"], ids=["kept", "streamed"])
def postgres_layout(postgres, request):
    """Codes are kept in a temporary table, or are streamed to a session that only reads."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as con:
        yield Layout("PostgreSQL, relation", layouts.in_postgres(con, postgres + request.param), together=20)
        con.execute("DROP TABLE IF EXISTS t; DROP TYPE espalier_kind")


PEOPLE = [
    *(
        (people, layout)
        for people in (layouts.TEXT_PEOPLE, layouts.WHOLE_PEOPLE)
        for layout in (*layouts.FILES[::3], *layouts.MEMORY[::2])
    ),
    *((layouts.TEXT_PEOPLE, layout) for layout in (*layouts.TEXT_FILES, *layouts.SHEETS)),
    *((people, layouts.SHEETS[0]) for people in (layouts.SHORT_PEOPLE, *layouts.MIXED_PEOPLE)),
    *((people, Layout("objects", layouts.objects)) for people in layouts.MIXED_PEOPLE),
    (layouts.PER_FILE_PEOPLE, layouts.PER_FILE_LAYOUTS[0]),
    *(
        (people, layout)
        for people in (layouts.TEXT_PEOPLE, layouts.WHOLE_PEOPLE)
        for layout in (layouts.DUCKDB_LAYOUTS[0], layouts.SQLITE_LAYOUTS[0])
    ),
]


@pytest.mark.parametrize(("people", "layout"), PEOPLE, ids=lambda of: of.name)
def test_people(people, layout, tmp_path):
    alike = people.kind is not None and layout is not layouts.SQLITE_LAYOUTS[0]
    confirmed(check_people(people, layout, tmp_path), len(people.odd), "" if alike else "people")


@pytest.mark.parametrize(
    ("kinds", "layout"),
    [
        ([layouts.ARROW[0]], Layout("statistics", layouts.one_file(), read=broken_readers.by_query)),
        (layouts.PER_FILE, Layout("first file", layouts.by_pandas, odd_first=True, read=broken_readers.by_first_file)),
        (layouts.RAW, Layout("sniffed", layouts.raw_file, read=broken_readers.by_sniffing)),
    ],
    ids=lambda of: getattr(of, "name", ""),
)
def test_a_broken_reader_is_found(kinds, layout, tmp_path):
    assert alone(kinds, layout, tmp_path).broken or check(kinds, layout, tmp_path).broken


@pytest.mark.parametrize(
    ("people", "layout"),
    [
        (layouts.PER_FILE_PEOPLE, Layout("first file", layouts.by_pandas, True, broken_readers.people_by_first_file)),
        (layouts.MIXED_PEOPLE[0], Layout("text", layouts.sheet, read=broken_readers.people_as_text)),
    ],
    ids=lambda of: of.name,
)
def test_merged_people_are_found(people, layout, tmp_path):
    assert any("merged" in text for text in check_people(people, layout, tmp_path).broken)
