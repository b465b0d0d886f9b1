"""``espalier init``: a draft project for a table, its guesses marked."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from espalier.core.cli.release import TABLE
from espalier.core.errors import ProjectError

if TYPE_CHECKING:
    from espalier.core.project.file import Project
    from espalier.core.project.schema import Schema
    from espalier.core.tables.reading import TextTable

MANY = 50
"""Categories from which on a column may be one of names or numbers of people."""

BUYING = """Next:
  1. In {out} (or on the Data page of the app) say which columns are numbers, dates or identifiers, and declare
     what everybody knows, which costs nothing:
       {{"name": "age", "kind": "numeric", "bins": 8, "range": [0, 100], "integer": true}}
       {{"name": "seen", "kind": "date", "dates": {{"from": "2024-01-01", "to": "2024-12-31", "by": "month"}}}}
       {{"name": "id", "kind": "identifier"}}
       {{"name": "sex", "kind": "categorical", "categories": ["f", "m"]}}
     What is left is bought from the budget: "schema_share" of the plan.
  2. espalier plan {out} --rows N        every part and its price; reads no data
  3. espalier release {out} --data {table} --out DIR"""
"""What to do with a draft of names."""


def add(commands: Any) -> None:
    """Declare the command."""
    init = commands.add_parser("init", help="write a draft project for a table; guesses are marked")
    init.add_argument("table", help=TABLE)
    init.add_argument("--relation", metavar="NAME", help="the name of the table in the engine")
    init.add_argument("--out", type=Path, metavar="PROJECT.json", help="a new file (default: beside the table)")
    init.add_argument(
        "--buy", action="store_true", help="take the names of the columns alone: the budget buys bins and categories"
    )
    init.add_argument(
        "--missing",
        nargs="+",
        default=(),
        metavar="TEXT",
        help="texts that mean an empty cell wherever they stand, such as '?' or -9",
    )
    init.set_defaults(run=run)


def run(opt: argparse.Namespace) -> None:
    """Guess a schema, write the draft, and say what to do next."""
    from espalier.core.methods import DEFAULT
    from espalier.core.project.file import Project
    from espalier.core.project.plan import SCHEMA_SHARE, Plan
    from espalier.core.project.schema import Schema
    from espalier.core.tables.frames import read_data
    from espalier.core.tables.guessing import guess_schema, looks_like_dates
    from espalier.core.tables.relation import Relation, is_url

    elsewhere = is_url(opt.table) or opt.table.startswith("env:")
    path = Path(opt.relation or "table") if elsewhere else Path(opt.table)
    name = path.name.split(".")[0]
    out = opt.out or path.with_name(f"{name}.json")
    if out.exists():
        raise ProjectError(f"{out} is there already; nothing is overwritten. Name another file: --out FILE")
    if opt.buy and opt.missing:
        raise ProjectError("--missing looks at the rows, and --buy takes names alone: give one of them")
    read = read_data(opt.table, opt.relation)
    if opt.buy:
        draft = Project(
            name, Schema.to_buy(n for n in read.columns if n), Plan(DEFAULT, 1.0, schema_share=SCHEMA_SHARE)
        )
        _write(draft, out)
        print(f"{out}: a draft for {len(draft.schema.columns)} columns; it holds their names, and nothing of the rows")
        print(BUYING.format(out=out, table=_again(opt)), file=sys.stderr)
        return
    if isinstance(read, Relation):
        read = read.sample()
        print(f"guessed from the first {read.rows:,} rows: other rows may hold other values", file=sys.stderr)
    schema = guess_schema(read, opt.missing)
    if strange := [m for m in opt.missing if not any(m in c.missing_marks for c in schema.columns)]:
        raise ProjectError(f"no column of {opt.table} holds {', '.join(map(repr, strange))}; see --missing")
    draft = Project(name, schema, Plan(DEFAULT, 1.0))
    _write(draft, out)
    left = f", left out as identifiers: {', '.join(c.name for c in schema.left_out)}" if schema.left_out else ""
    print(f"{out}: a draft for {len(schema.columns)} columns{left}. It may hold private values until it is confirmed")
    dates = [c.name for c in schema.columns if looks_like_dates(read.columns[c.name])]
    if dates:
        print(
            f"Columns of dates: {', '.join(dates)}. Every day is a category now. Write instead, with a range that you "
            'would know without the table: {"name": …, "kind": "date", "dates": {"from": "2020-01-01", "to": '
            '"2024-12-31", "by": "month"}}',
            file=sys.stderr,
        )
    marked = _marks(read, schema)
    many = [
        f"{c.name} ({c.size:,})"
        for c in schema.columns
        if c.kind == "categorical" and c.size > MANY and c.name not in (*dates, *marked)
    ]
    if many:
        print(
            f"Columns of many values: {', '.join(many)}. If they name people, delete them here or give them "
            '"kind": "identifier", and name the people\'s column as the plan\'s "person".',
            file=sys.stderr,
        )
    if marked:
        texts = list(dict.fromkeys(m for marks in marked.values() for m in marks))
        where = "; ".join(f"{', '.join(map(repr, marks))} in {column}" for column, marks in marked.items())
        print(
            f"Perhaps these mean an empty cell: {where}. If they do, delete {out} and begin again with "
            f"--missing {' '.join(map(shlex.quote, texts))}",
            file=sys.stderr,
        )
    print(
        "Next:\n"
        "  1. Read the schema in this file, or open it on the Data page of the app. Kinds, categories, bin edges and\n"
        "     what is left out were guessed from the rows. Mend what must not be public.\n"
        '  2. Confirm: rename each "guessed" to "confirmed" once you have checked that it is public.\n'
        f"  3. espalier plan {out} --rows N        what it would cost; reads no data\n"
        f"  4. espalier release {out} --data {_again(opt)} --out DIR",
        file=sys.stderr,
    )


def _again(opt: argparse.Namespace) -> str:
    """How the table is named to the next command; a URL may hold a password."""
    return "TABLE --relation NAME" if opt.relation else str(opt.table)


def _write(draft: Project, out: Path) -> None:
    try:
        out.write_text(draft.dumps(), "utf-8")
    except OSError as error:
        raise ProjectError(f"cannot write {out}: {error.strerror or error}", path=str(out)) from None


def _marks(read: TextTable, schema: Schema) -> dict[str, tuple[str, ...]]:
    """By column, what may mean an empty cell and was not said to."""
    from espalier.core.tables.guessing import possible_marks

    found = {
        c.name: tuple(m for m in possible_marks(read.columns[c.name]) if m not in c.missing_marks)
        for c in schema.columns
    }
    return {name: marks for name, marks in found.items() if marks}
