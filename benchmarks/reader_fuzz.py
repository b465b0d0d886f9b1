"""Test the readers with random tables: `python -m benchmarks.reader_fuzz [--seconds 900] [--seed 0] [--only NAME]`.

Each turn generates a layout, columns with their descriptions, and a few rows of special and random cells. It then
removes, adds or changes one row. Four properties must hold:

1. Other rows keep their codes, or the table is refused.
2. A row has the same codes as in a table that contains only this row.
3. A table is refused if and only if one of its rows is refused as a single-row table, and with that row's message. A
   refusal that names several columns names exactly the columns refused for single rows.
4. All layouts with the same kinds of cells (Arrow types) give the same codes.

One turn in three tests people instead: each person keeps as many rows as the row limit allows, and a changed row
affects only the kept rows of its previous and its new person.

PostgreSQL is included if it is installed. A violation is printed with the seed of its turn, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import collections
import datetime as dt
import math
import random
import re
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from espalier.core.errors import EspalierError
from espalier.core.project.schema import Column, Schema
from espalier.core.project.schema_json import column_from_json
from espalier.core.tables.text_table import cell_text
from tests.support import layouts
from tests.support.postgres import Absent, server
from tests.support.row_by_row import LIMIT, OWNER, PERSON, ROW, Cells, Kind, Layout, kept, read, released

Marked = dict[str, tuple[int, ...]]
"""The codes of each row, by the row's label."""
MOST_ROWS, MOST_COLUMNS = 7, 4
LETTERS = "0179.eE+-_ ,;\t\"'\\|xéA\u0301\u00a0\u200b\u2028\u0660\ufeffİß💥"
ROWS = [f"r{i}" for i in range(2 * MOST_ROWS)]


@dataclass(frozen=True)
class Family:
    """Layouts that store the same kinds of cells. If ``alike`` is true, all give the same codes."""

    layouts: list[Layout]
    kinds: list[Kind]
    people: list[Kind]
    alike: bool = False
    literal: bool = False
    """True if cells are written as SQL literals."""


def families(postgres: Layout | None) -> list[Family]:
    """Return all families of layouts."""
    text = Kind("id", layouts.ARROW[10].declared, ("x", "1"), tuple(filter(None, layouts.TEXTS)), (), ())
    arrow = [text, *(kind for kind in layouts.ARROW if kind.name in ("int64", "uint64", "wide", "dictionary"))]
    objects = [Layout("objects", layouts.objects)]
    found = [
        Family([*layouts.MEMORY, *layouts.FILES], layouts.ARROW, arrow, alike=True),
        Family(layouts.TEXT_FILES, layouts.CELLS, [text]),
        Family(layouts.RAW_FILES, layouts.RAW, []),
        Family(layouts.SHEETS, layouts.SHEET, layouts.SHEET),
        Family(objects, layouts.OBJECTS, layouts.OBJECTS),
        Family(
            layouts.DUCKDB_LAYOUTS, layouts.DUCKDB, _named(layouts.DUCKDB, "text bigint hugeint uuid"), literal=True
        ),
        Family(layouts.SQLITE_LAYOUTS, layouts.SQLITE, _named(layouts.SQLITE, "text integer untyped")),
    ]
    if postgres is not None:
        people = _named(layouts.POSTGRES, "text bigint padded uuid varchar")
        found.append(Family([postgres], layouts.POSTGRES, people, literal=True))
    return found


def _named(kinds: list[Kind], names: str) -> list[Kind]:
    return [kind for kind in kinds if kind.name in names.split()]


def cell(rng: random.Random, kind: Kind, family: Family) -> Any:
    """Return an ordinary, special or random cell of this kind."""
    drawn = rng.random()
    if drawn < 0.3:
        return rng.choice(kind.ordinary)
    like = rng.choice(kind.special)
    if drawn < 0.75 or like is None or (family.literal and kind.name not in ("text", "varchar", "padded")):
        return like
    return _mutated(rng, like)


def _mutated(rng: random.Random, like: Any) -> Any:
    """Return a random cell of the same Python type."""
    if isinstance(like, bool):
        return rng.random() < 0.5
    if isinstance(like, int):
        return rng.choice([rng.randrange(-9, 99), rng.randrange(-(2**63), 2**63), 2 ** rng.randrange(7, 64) - 1])
    if isinstance(like, float):
        near = rng.choice((0.0, 0.3, 1.0, 2.5, 7.0, 9.0))
        bits = struct.unpack("<d", rng.randbytes(8))[0]
        return rng.choice([math.nextafter(near, rng.choice((-math.inf, math.inf))), bits, rng.random() * 10])
    if isinstance(like, Decimal):
        return Decimal(rng.randrange(-(10**8), 10**8)).scaleb(like.as_tuple().exponent)  # type: ignore[arg-type]
    if isinstance(like, dt.datetime):
        return dt.datetime(rng.randrange(1700, 2262), rng.randrange(1, 13), rng.randrange(1, 29), tzinfo=like.tzinfo)
    if isinstance(like, dt.date):
        return dt.date.fromordinal(rng.randrange(1, dt.date.max.toordinal() + 1))
    if isinstance(like, dt.time):
        return dt.time(rng.randrange(24), rng.randrange(60), 0, rng.choice((0, 1)))
    if isinstance(like, str):
        kept_part = like[: rng.randrange(len(like) + 1)]
        return kept_part + "".join(rng.choice(LETTERS) for _ in range(rng.randrange(1, 5)))
    return like


def column(rng: random.Random, name: str, kind: Kind, view: str, cells: list[Any]) -> Column:
    """Return a random description. Some descriptions declare text from the cells."""
    texts = sorted({*kind.categories, *(str(x) for x in cells if x is not None), *map(cell_text, cells)} - {""})
    texts = [text for text in texts if _is_text(text)]
    missing = rng.random() < 0.8
    unknown = "missing" if missing and rng.random() < 0.7 else "refuse"
    marks = tuple(rng.sample(texts, min(len(texts), rng.randrange(3)))) if missing and rng.random() < 0.4 else ()
    common: dict[str, Any] = {"missing": missing, "unknown": unknown, "missing_marks": marks}
    if view == "dates":
        bins = {"from": "1990-01-01", "to": "2024-12-31", "by": rng.choice(("year", "quarter", "month"))}
        return column_from_json({"name": name, "kind": "date", "dates": bins, **common, "missing_marks": list(marks)})
    if view == "numeric":
        edges = {0.0, 0.3, 1.0, 2.5, 7.0, *(rng.uniform(-10, 10) for _ in range(rng.randrange(60)))}
        edges |= {float(x) for x in cells if isinstance(x, int | float) and math.isfinite(x) and abs(x) < 1e300}
        return Column(name, "numeric", edges=tuple(sorted(edges)), **common)
    taken = [text for text in texts if text not in marks]
    chosen = rng.sample(taken, rng.randrange(1, len(taken) + 1)) if taken else ["x"]
    cut = rng.randrange(1, len(chosen) + 1)
    groups = ((chosen[0], tuple(chosen[cut:])),) if chosen[cut:] and rng.random() < 0.3 else ()
    return Column(name, "categorical", tuple(chosen[:cut] if groups else chosen), groups=groups, **common)


def _is_text(text: str) -> bool:
    with suppress(UnicodeEncodeError):
        return bool(text.encode()) and "\0" not in text
    return False


@dataclass
class Turn:
    """A random schema in a layout, and the codes of its tables."""

    family: Family
    layout: Layout
    kinds: dict[str, Kind | None]
    schema: Schema
    folder: Path
    reads: int = 0
    person: bool = False
    broken: list[str] = field(default_factory=list)
    columns: dict[str, frozenset[str]] = field(default_factory=dict)
    """The columns that each refusal names, by the refusal's text."""

    def read(self, rows: list[dict[str, Any]], layout: Layout | None = None) -> tuple[Marked, str]:
        """Return the codes of each row by its label, or a refusal without line numbers."""
        self.reads += 1
        inside, data = self.folder / str(self.reads), None
        inside.mkdir()
        cells: Cells = {name: [row[name] for row in rows] for name in self.kinds}
        layout = layout or self.layout
        try:
            data = layout.write(cells, self.kinds, inside)
            codes = kept(data, self.schema, "key") if self.person else read(data, self.schema)
        except EspalierError as error:
            said = re.sub(r"/\S+|\b(line|row|first in data row|data row) [\d,]+", "", str(error))
            self.columns[said] = frozenset(error.data.get("columns") or [str(error.data.get("column"))])
            return {}, said
        finally:
            released(data)
        marks = [ROWS[place] for place in np.asarray(codes[ROW]).tolist()]
        held = zip(*(np.asarray(codes[name]).tolist() for name in self.schema.names if name != ROW), strict=True)
        return dict(zip(marks, held, strict=True)), ""

    def explained(self, refused: str, alone: set[str]) -> bool:
        """Return whether refusals of single rows explain the refusal of the table, which must name all their
        columns."""
        columns = self.columns[refused]
        if len(columns) == 1:
            return refused in alone
        return columns == frozenset().union(*(self.columns[message] for message in alone))

    def wrong(self, what: str, *rows: Any) -> None:
        """Record a violation."""
        self.broken.append(f"{self.layout.name}: {what}: {rows!r} under {self.schema.columns!r}")


def check_codes(rng: random.Random, turn: Turn, rows: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    """Check properties 1 to 4 on two neighbouring tables."""
    own = {row[ROW]: row for row in other}
    changed = {row[ROW] for row in rows if repr(own.get(row[ROW])) != repr(row)}
    found = [turn.read(table) for table in (rows, other)]
    if not any(refused for _, refused in found):
        for mark in found[0][0].keys() & found[1][0].keys() - changed:
            if found[0][0][mark] != found[1][0][mark]:
                turn.wrong("another row changes a row's codes", mark, rows, other, found[0][0][mark], found[1][0][mark])
    for table, (codes, refused) in zip((rows, other), found, strict=True):
        if not refused and sorted(codes) != sorted(row[ROW] for row in table):
            turn.wrong("rows are lost", table, codes)
        alone = [turn.read([row]) for row in table]
        messages = {message for _, message in alone if message}
        if bool(refused) != bool(messages) or (refused and not turn.explained(refused, messages)):
            turn.wrong("a refusal depends on other rows", table, refused, messages)
        for row, (codes_alone, message) in zip(table, alone, strict=True):
            if not message and not refused and codes_alone[row[ROW]] != codes[row[ROW]]:
                turn.wrong("a single row has different codes", row, table, codes_alone, codes)
    if turn.family.alike and not found[0][1]:
        second = rng.choice(turn.family.layouts)
        without = (*second.without, "zoned")  # DuckDB writes timestamps in UTC, which have another type
        if not any(kind and kind.name in without for kind in turn.kinds.values()):
            codes, refused = turn.read(rows, second)
            if not refused and codes != found[0][0]:
                turn.wrong(f"{second.name} gives different codes", rows, found[0][0], codes)


def check_people(turn: Turn, rows: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    """Check that each person keeps as many rows as allowed, and that others keep the same rows under the same key."""
    found = [turn.read(table) for table in (rows, other)]
    owners = [{row[ROW]: row[OWNER] for row in table} for table in (rows, other)]
    sides = []
    for (marks, refused), owner in zip(found, owners, strict=True):
        by = collections.defaultdict(set)
        for mark in marks:
            by[owner[mark]].add(mark)
        have = collections.Counter(owner.values())
        if not refused and any(len(by[who]) != min(n, LIMIT) for who, n in have.items()):
            turn.wrong("people are merged or divided", rows, other, dict(by))
        sides.append(by)
    if not any(refused for _, refused in found) and turn.layout.name.endswith("relation"):
        moved = {o for a, b in ((owners[0], owners[1]), (owners[1], owners[0])) for m, o in a.items() if b.get(m) != o}
        for who in (sides[0].keys() | sides[1].keys()) - moved:
            if sides[0][who] != sides[1][who]:
                turn.wrong("a row changes the kept rows of others", who, rows, other, sides)


def neighbour(rng: random.Random, rows: list[dict[str, Any]], fresh: Callable[[str], dict[str, Any]]) -> Any:
    """Return the rows with one removed, added or replaced."""
    how, place = rng.choice(("remove", "add", "replace")), rng.randrange(len(rows))
    if how == "remove" and len(rows) > 1:
        return rows[:place] + rows[place + 1 :]
    if how == "add":
        return [*rows[:place], fresh(ROWS[len(rows)]), *rows[place:]]
    return [*rows[:place], fresh(rows[place][ROW]), *rows[place + 1 :]]


def one_turn(seed: str, found: list[Family], folder: Path, only: str) -> Turn | None:
    """Return a random pair of neighbouring tables, or `None` if the generated rows are not a table."""
    rng = random.Random(seed)
    able = [f for f in found if any(only in layout.name for layout in f.layouts)]
    family = rng.choices(able, [4 if f.alike else 1 for f in able])[0]  # quick, and includes the largest limit
    layout = rng.choice([layout for layout in family.layouts if only in layout.name])
    person = bool(family.people) and rng.random() < 1 / 3
    kinds: dict[str, Kind | None] = {ROW: None}
    pool = [kind for kind in family.kinds if kind.name not in layout.without]
    if person:
        who = rng.choice([k for k in family.people if k.name not in layout.without])
        ids = [x for x in (cell(rng, who, family) for _ in range(rng.randrange(1, 5))) if x is not None]
        if not ids:
            return None
        kinds |= {OWNER: None, PERSON: who}
        alike: dict[str, str] = {}

        def fresh(mark: str) -> dict[str, Any]:
            drawn = rng.choice(ids)
            owner = alike.setdefault(_as_person(drawn, who), f"o{len(alike)}")
            return {ROW: mark, OWNER: owner, PERSON: drawn}

        described = [Column(OWNER, "categorical", tuple(f"o{i}" for i in range(9)))]
    else:
        chosen = [(f"c{i} {k.name}", k, rng.choice(k.views)) for i, k in enumerate(rng.choices(pool, k=MOST_COLUMNS))]
        chosen = chosen[: rng.randrange(1, MOST_COLUMNS + 1)]
        cells = {name: [cell(rng, kind, family) for _ in range(6)] for name, kind, _ in chosen}
        kinds |= {name: kind for name, kind, _ in chosen}

        def fresh(mark: str) -> dict[str, Any]:
            return {ROW: mark} | {name: rng.choice(held) for name, held in cells.items()}

        described = [column(rng, name, kind, view, cells[name]) for name, kind, view in chosen]
    rows = [fresh(mark) for mark in ROWS[: rng.randrange(1, MOST_ROWS)]]
    other = neighbour(rng, rows, fresh)
    schema = Schema((Column(ROW, "categorical", tuple(ROWS)), *described))
    turn = Turn(family, layout, kinds, schema, folder, person=person)
    if person:
        check_people(turn, rows, other)
    else:
        check_codes(rng, turn, rows, other)
    return turn


def _as_person(cell: Any, kind: Kind) -> str:
    """Return the key that distinguishes people: the value, and its type if each cell has its own type."""
    if isinstance(cell, str) and isinstance(kind.declared, str):
        if kind.declared.startswith("char("):
            return cell.rstrip(" ")
        if re.search("INT|int", kind.declared):
            with suppress(ValueError):
                return str(int(cell))
    return f"{type(cell).__name__} {cell!r}" if not isinstance(cell, bytes) else cell.hex()


@contextmanager
def _postgres() -> Iterator[Layout | None]:
    try:
        import psycopg

        with server() as running, psycopg.connect(running.url, autocommit=True) as con:
            yield Layout("PostgreSQL, relation", layouts.in_postgres(con, running.url), together=20)
    except (Absent, ImportError) as error:
        print(f"without PostgreSQL: {error}")
        yield None


def main() -> int:
    """Run turns until the processor time is used up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=900, help="processor time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a part of the layouts' names")
    parser.add_argument("--turn", type=int, help="run this turn only")
    given = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    reads, broken, number = 0, 0, given.turn or 0
    with _postgres() as postgres:
        found = families(postgres)
        while time.process_time() < given.seconds and broken < 20:
            with tempfile.TemporaryDirectory(prefix="espalier-fuzz-") as folder:
                try:
                    turn = one_turn(f"{given.seed}:{number}", found, Path(folder), given.only)
                except EspalierError:  # an impossible description
                    turn = None
                except Exception as error:  # an engine that cannot store the cell
                    counts[f"not stored: {type(error).__module__.split('.')[0]}.{type(error).__name__}"] += 1
                    if given.turn is not None:
                        raise
                    turn = None
            if turn is not None:
                counts[turn.layout.name] += 1
                reads += turn.reads
                for text in turn.broken[:3]:
                    broken += 1
                    print(f"BROKEN seed {given.seed} turn {number}: {text}", flush=True)
            number += 1
            if given.turn is not None:
                break
    for name, times in sorted(counts.items()):
        print(f"{times:8,}  {name}")
    print(f"{number:,} turns, {reads:,} tables read, {broken} broken, {time.process_time():.0f} CPU s")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
