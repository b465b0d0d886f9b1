"""``espalier init``: write a draft project for a table and mark the guesses in it."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from espalier.core.cli import linked
from espalier.core.cli.init_people import answered, check_options, step_to_answer
from espalier.core.cli.number_types import whole
from espalier.core.cli.release import TABLE
from espalier.core.errors import ProjectError
from espalier.core.limited_file import write_own
from espalier.core.project.date_orders import DATE_ORDERS
from espalier.core.project.people import ROWS_KEPT

if TYPE_CHECKING:
    from espalier.core.project.declared_by import DeclaredBy
    from espalier.core.project.file import Project
    from espalier.core.project.schema import Column, Schema
    from espalier.core.tables.text_table import TextTable

MANY = 50
"""Minimum number of categories for a column that may contain people's names or numbers."""

BUYING = """Next:
  1. In {out} (or on the Data page of the app) declare which columns are numbers, dates or identifiers, and declare
     what is public knowledge, which costs nothing:
       {{"name": "age", "kind": "numeric", "bins": 8, "range": [0, 100], "integer": true}}
       {{"name": "seen", "kind": "date", "dates": {{"from": "2024-01-01", "to": "2024-12-31", "by": "month"}}}}
       {{"name": "id", "kind": "identifier"}}
       {{"name": "sex", "kind": "categorical", "categories": ["f", "m"]}}
     The budget buys the rest: "schema_share" of the plan.
{person}  2. espalier plan {out} --rows N        list every part and its price; reads no data
  3. espalier release {out} --data {table} --out DIR"""
"""Next steps after ``--buy``, which writes a draft that contains only the names of the columns."""


def add(commands: Any) -> None:
    """Declare the command."""
    init = commands.add_parser("init", help="write a draft project for a table; guesses are marked")
    init.add_argument("table", nargs="+", help=TABLE + "; or two linked tables, people and visits (--by)")
    init.add_argument("--relation", metavar="NAME", help="the name of the table in the engine")
    init.add_argument(
        "--out", type=Path, metavar="PROJECT.json", help="the new project file (default: next to the table)"
    )
    init.add_argument(
        "--buy",
        action="store_true",
        help="read only the names of the columns; the budget then buys bins and categories",
    )
    init.add_argument(
        "--every-row",
        action="store_true",
        help="read every row of a large table once, so that the draft lists every value of columns with up "
        "to 2,000 different values; giving this option is your consent",
    )
    init.add_argument(
        "--missing",
        nargs="+",
        default=(),
        metavar="TEXT",
        help="values that mean an empty cell in any column, such as '?' or -9",
    )
    init.add_argument(
        "--date-order",
        choices=tuple(DATE_ORDERS),
        default="",
        help="order of dates such as 03/04/2020, day first (dmy) or month first (mdy), if the rows do not show it",
    )
    init.add_argument(
        "--dictionary",
        action="append",
        default=[],
        metavar="FILE[:COLUMN]",
        help="a data dictionary: REDCap (CSV), DDI (XML), Table Schema, CSV on the Web, JSON Schema, SPSS syntax, "
        "Stata do-file, SPSS, Stata or SAS file, or CSV with code,label (of COLUMN) or column,code,label; may be "
        "given several times",
    )
    init.add_argument(
        "--not-from-these-rows",
        action="store_true",
        help="your statement that no --dictionary was produced from these rows",
    )
    init.add_argument(
        "--undeclared",
        action="append",
        default=[],
        metavar="COLUMN=CHOICE",
        help="treatment of cells that a dictionary does not declare: missing, guess or leave-out",
    )
    init.add_argument(
        "--code-book",
        action="append",
        default=[],
        metavar="COLUMN=BOOK",
        help="use a whole codebook as the column's hierarchy, such as icd-9-cm; or your own FILE (ClaML, or CSV with "
        "code,label,group), or atc:FILE (CSV with code,label)",
    )
    linked.add_options(init)
    people = init.add_mutually_exclusive_group()
    people.add_argument(
        "--person", metavar="COLUMN", help="one person can have several rows; COLUMN identifies the person"
    )
    people.add_argument("--one-row-per-person", action="store_true", help="your promise that each person has one row")
    init.add_argument(
        "--rows-per-person",
        type=whole,
        metavar="K",
        help=f"with --person, the number of rows kept per person (default: {ROWS_KEPT}); otherwise, the largest "
        "number of rows that one person has, which you promise",
    )
    init.set_defaults(run=run)


def run(opt: argparse.Namespace) -> None:
    """Guess a schema, write the draft, and print the next steps."""
    from espalier.core.methods import DEFAULT
    from espalier.core.project.file import Project
    from espalier.core.project.plan import SCHEMA_SHARE, Plan
    from espalier.core.project.schema import Schema
    from espalier.core.tables.frames import read_data, relation_of
    from espalier.core.tables.guessing import guess_schema
    from espalier.core.tables.relation import is_url
    from espalier.core.tables.review import unclear_orders

    if linked.wanted(opt):
        linked.draft(opt)
        return
    (opt.table,) = opt.table
    elsewhere = is_url(opt.table) or opt.table.startswith("env:")
    path = Path(opt.relation or "table") if elsewhere else Path(opt.table)
    name = path.name.split(".")[0].encode("utf-8", "replace").decode()  # a file name need not be UTF-8
    out = opt.out or path.with_name(f"{name}.json")
    if out.exists():
        raise ProjectError(f"{out} already exists; nothing is overwritten. Choose another file: --out FILE")
    check_options(opt)
    if opt.buy and (opt.dictionary or opt.code_book):
        raise ProjectError("--buy uses only the column names: omit --dictionary and --code-book, or omit --buy")
    if opt.undeclared and not opt.dictionary:
        raise ProjectError("--undeclared needs --dictionary")
    if opt.buy and opt.missing:
        raise ProjectError("--missing reads the rows, but --buy uses only the column names: give only one")
    read = read_data(opt.table, opt.relation)
    if opt.buy:
        draft = Project(
            name,
            Schema.to_buy(n for n in read.columns if n),
            Plan(DEFAULT, 1.0, schema_share=SCHEMA_SHARE),
            one_row_per_person=None,
        )
        draft = answered(draft, opt, list(filter(None, read.columns)))
        _write(draft, out)
        print(
            f"{out}: a draft for {len(draft.schema.columns)} columns; it contains their names and nothing from the rows"
        )
        print(BUYING.format(out=out, table=_again(opt), person=step_to_answer(draft)), file=sys.stderr)
        return
    far = relation_of(read)
    text = read.sample() if far is None else far.sample(every_value=opt.every_row)
    if far is not None and not opt.every_row:
        print(
            f"guessed from {text.rows:,} rows spread over the table; other rows may contain other values. To read "
            "every row once, add --every-row",
            file=sys.stderr,
        )
    schema, used = _drafted(text, opt) if opt.dictionary else (guess_schema(text, opt.missing, opt.date_order), ())
    schema = _with_books(schema, opt)
    if strange := [m for m in opt.missing if not any(m in c.missing_marks for c in schema.columns)]:
        raise ProjectError(f"no column of {opt.table} contains {', '.join(map(repr, strange))}; see --missing")
    plan = Plan(DEFAULT, 1.0, schema_share=SCHEMA_SHARE if schema.undeclared else 0.0)
    draft = Project(name, schema, plan, dictionaries=used, one_row_per_person=None)
    draft = answered(draft, opt, list(filter(None, text.columns)))
    schema, person = draft.schema, draft.plan.person
    _write(draft, out)
    out_of_it = [c.name for c in schema.left_out if c.name != person]
    left = f", left out as identifiers: {', '.join(out_of_it)}" if out_of_it else ""
    print(
        f"{out}: a draft for {len(schema.columns)} columns{left}. It may contain private values until it is confirmed"
    )
    dates = [c.name for c in schema.guessed if c.dates is not None]
    if dates:
        print(
            f"Date columns: {', '.join(dates)}. They are counted by month, quarter or year over whole years. Write "
            'a range that you know without the table: "dates": {"from": "2020-01-01", "to": "2024-12-31", "by": '
            '"month"}',
            file=sys.stderr,
        )
    unclear = [c.name for c in schema.columns if c.dates is None and unclear_orders(text.columns[c.name])]
    if unclear:
        print(
            f"Dates kept as text: {', '.join(unclear)}. No value shows whether the day or the month comes first. "
            f"To count them by month, delete {out} and start again with --date-order dmy or mdy",
            file=sys.stderr,
        )
    marked = _marks(text, schema)
    many = [
        f"{c.name} ({c.size:,})"
        for c in schema.columns
        if c.kind == "categorical"
        and c not in schema.undeclared
        and c.size > MANY
        and c.name not in (*dates, *unclear, *marked)
    ]
    if many:
        print(
            f"Columns with many values: {', '.join(many)}. If they name people, delete them here or give them "
            '"kind": "identifier", and set the plan\'s "person" to the column that identifies people.',
            file=sys.stderr,
        )
    if marked:
        texts = list(dict.fromkeys(m for marks in marked.values() for m in marks))
        where = "; ".join(f"{', '.join(map(repr, marks))} in {column}" for column, marks in marked.items())
        print(
            f"These values may stand for an empty cell: {where}. If they do, delete {out} and start again with "
            f"--missing {' '.join(map(shlex.quote, texts))}",
            file=sys.stderr,
        )
    print(
        "Next:\n"
        "  1. Read the schema in this file, or open it on the Data page of the app. Kinds, categories, bin edges and\n"
        "     left-out columns were guessed from the rows. Replace anything that must not be public.\n"
        '  2. Confirm: change each "guessed" to "confirmed" once you have checked that it is public.\n'
        f"{step_to_answer(draft)}"
        f"  3. espalier plan {out} --rows N        show what it would cost; reads no data\n"
        f"  4. espalier release {out} --data {_again(opt)} --out DIR",
        file=sys.stderr,
    )


def _drafted(read: TextTable, opt: argparse.Namespace) -> tuple[Schema, tuple[DeclaredBy, ...]]:
    """Return the schema that the dictionaries declare, with guesses for all other columns, and a record of the
    dictionaries.
    """
    from espalier.core.dictionaries.drafting import CHOICES, draft_schema
    from espalier.core.dictionaries.reading import read_dictionary
    from espalier.core.project.declared_by import STATEMENT

    if not opt.not_from_these_rows:
        raise ProjectError(
            f'a dictionary is public only with your statement "{STATEMENT}". Give --not-from-these-rows if that is '
            "true of each --dictionary; leave the dictionary out otherwise"
        )
    dictionaries = []
    for given in opt.dictionary:
        place, colon, column = given.rpartition(":")
        named = colon and not Path(given).exists()
        dictionaries.append(read_dictionary(place if named else given, column=column if named else None))
    choices = _paired(opt.undeclared, "--undeclared", tuple(CHOICES))
    draft = draft_schema(dictionaries, read, opt.missing, choices, opt.date_order)  # type: ignore[arg-type]
    draft.check()
    for found in dictionaries:
        for note in found.notes:
            print(f"{found.source}: {note}", file=sys.stderr)
    if draft.free_text:
        print(f"left out, because the dictionary declares free text: {', '.join(draft.free_text)}", file=sys.stderr)
    if draft.absent:
        print(f"declared, but not in the table: {', '.join(draft.absent)}", file=sys.stderr)
    return draft.schema, draft.used


def _with_books(schema: Schema, opt: argparse.Namespace) -> Schema:
    """Return the schema in which a whole codebook declares each column named by ``--code-book``."""
    books = _paired(opt.code_book, "--code-book")
    if strange := [name for name in books if name not in schema]:
        raise ProjectError(f"--code-book: the draft has no column {strange[0]!r}")
    return replace(
        schema,
        columns=tuple(
            replace(_of_book(c, books[c.name], opt.missing), label=c.label, unit=c.unit, description=c.description)
            if c.name in books
            else c
            for c in schema.columns
        ),
    )


def _of_book(column: Column, book: str, marks: list[str]) -> Column:
    """Return the column as declared by one of Espalier's codebooks, or by the user's own file.

    All ``marks`` that are not codes count as empty, even if they do not occur in the rows: the declaration must not
    depend on the rows.
    """
    from espalier.core.code_books import CODE_BOOKS, code_book
    from espalier.core.code_books.importing import MOST_BYTES, read_own_book
    from espalier.core.limited_file import read_limited
    from espalier.core.project.schema import HierarchyToBuy

    if book in CODE_BOOKS:
        free = tuple(m for m in dict.fromkeys(marks) if not code_book(book).leaf(m))
        return HierarchyToBuy.of_book(column.name, book, missing=True, missing_marks=free)
    place = Path(book.removeprefix("atc:"))
    if not place.is_file():
        raise ProjectError(
            f"--code-book: {book!r} is neither a file nor one of the books {', '.join(CODE_BOOKS)}", key="code_book"
        )
    own = read_own_book(read_limited(place, MOST_BYTES), atc=book.startswith("atc:"))
    free = tuple(m for m in dict.fromkeys(marks) if m not in own.groups)
    made = HierarchyToBuy.of(column.name, own.groups, missing=True, missing_marks=free)
    return replace(made, value_labels=tuple(own.labels.items()))


def _paired(given: list[str], option: str, allowed: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the values, by column, of an option that takes COLUMN=VALUE and may be given several times."""
    out = {}
    for text in given:
        column, equals, value = text.partition("=")
        if not equals or (allowed and value not in allowed):
            wanted = f", with one of {', '.join(allowed)}" if allowed else ""
            raise ProjectError(f"{option} takes COLUMN=VALUE{wanted}")
        out[column] = value
    return out


def _again(opt: argparse.Namespace) -> str:
    """Return the table as written in the next command. With ``--relation`` this is a placeholder, because URLs may
    contain passwords.
    """
    return "TABLE --relation NAME" if opt.relation else str(opt.table)


def _write(draft: Project, out: Path) -> None:
    try:
        write_own(out, draft.dumps())
    except OSError as error:
        raise ProjectError(f"cannot write {out}: {error.strerror or error}", path=str(out)) from None


def _marks(text: TextTable, schema: Schema) -> dict[str, tuple[str, ...]]:
    """Return, by column, the undeclared values that may mean an empty cell."""
    from espalier.core.tables.guessing import possible_marks

    found = {
        c.name: tuple(m for m in possible_marks(text.columns[c.name]) if m not in c.missing_marks)
        for c in schema.columns
    }
    return {name: marks for name, marks in found.items() if marks}
