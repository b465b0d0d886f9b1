"""Linked tables on the command line: draft, release and evaluation."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from espalier.core.cli import ledger
from espalier.core.cli.number_types import whole
from espalier.core.cli.terminal import bar
from espalier.core.errors import ProjectError
from espalier.core.limited_file import write_own

if TYPE_CHECKING:
    from espalier.core.analysis.loading import Released
    from espalier.core.project.file import Project

NEXT = """Next:
  1. Read the schema in {out}. Kinds, categories and bin edges were guessed from the rows. Correct
     anything that must not be public.
  2. Confirm: change each "guessed" to "confirmed" once you have checked that it is public.
  3. espalier plan {out} --rows N        show what it would cost for N people; reads no data
  4. espalier release {out} --data {data} --out DIR"""


def add_options(init: argparse.ArgumentParser) -> None:
    """Declare the options of ``init`` for linked tables."""
    link = init.add_argument_group(
        "linked tables", "a table of people and a table of their visits, or both in one file"
    )
    link.add_argument("--by", metavar="COLUMN", help="the column of both tables that identifies the person")
    link.add_argument("--order", metavar="COLUMN", help="the column that orders a person's visits, such as a date")
    link.add_argument("--keep", type=whole, metavar="K", help="number of visits kept per person (default: 3)")
    link.add_argument(
        "--visit-key", metavar="COLUMN", help="the column that identifies a visit; breaks ties of --order"
    )
    link.add_argument(
        "--tables",
        nargs="+",
        metavar="NAME",
        help="with a database: the names of its two tables, people first, or of the one table that contains both",
    )
    link.add_argument(
        "--person-columns",
        nargs="+",
        metavar="COLUMN",
        help="with one file: the columns of the person; their values come from the first kept visit",
    )


def wanted(opt: argparse.Namespace) -> bool:
    """Return whether ``init`` drafts linked tables; raise :class:`ProjectError` for incompatible options."""
    from espalier.core.tables.frames import is_database

    given = [o for o in ("order", "keep", "visit_key", "person_columns", "tables") if getattr(opt, o) is not None]
    if opt.by is None:
        if given or len(opt.table) > 1:
            raise ProjectError("linked tables need --by COLUMN, the column of both tables that identifies the person")
        return False
    if opt.order is None:
        raise ProjectError("linked tables need --order COLUMN, the column that orders a person's visits")
    many = 2 if opt.person_columns is None else 1
    far = [is_database(where) for where in opt.table]
    if any(far) and (len(set(opt.table)) > 1 or len(opt.table) > many or len(opt.tables or ()) != many):
        raise ProjectError(
            "in a database, name the two tables: --tables PEOPLE VISITS, or --tables VISITS with --person-columns "
            "COLUMN …. Give the URL once; both tables are in this database"
        )
    if opt.tables and not any(far):
        raise ProjectError("--tables names tables in a database; files have their own names")
    if not any(far) and len(opt.table) != many:
        raise ProjectError("give a table of people and a table of visits, or one table with --person-columns COLUMN …")
    single = ("person", "rows_per_person", "one_row_per_person", "buy", "dictionary", "code_book", "relation")
    if odd := [name for name in single if getattr(opt, name)]:
        raise ProjectError(f"--{odd[0].replace('_', '-')} does not work with linked tables yet: leave it out")
    return True


def draft(opt: argparse.Namespace) -> None:
    """Guess the schema of both tables, and write the draft of a linked project."""
    from espalier.core.methods import METHODS
    from espalier.core.project.linked import Linked
    from espalier.core.tables import linked_text
    from espalier.core.tables.frames import read_data, relation_of

    together = opt.person_columns is not None
    if opt.tables:
        (*people, visits_name) = opt.tables
        names: tuple[str, str] = (people[0] if people else "people", visits_name)
        out = opt.out or Path(f"{names[1]}.json")
    else:
        names = linked_text.table_names(opt.table)
        out = opt.out or Path(opt.table[-1]).with_name(f"{names[1]}.json")
    if out.exists():
        raise ProjectError(f"{out} already exists; nothing is overwritten. Choose another file: --out FILE")
    if opt.tables:
        found = [read_data(opt.table[0], relation) for relation in opt.tables]
    else:
        found = [read_data(path) for path in opt.table]
    far = [relation_of(table) for table in found]
    read = [
        table.sample() if relation is None else relation.sample(every_value=opt.every_row)
        for table, relation in zip(found, far, strict=True)
    ]
    if any(relation is not None for relation in far) and not opt.every_row:
        rows = " and ".join(f"{table.rows:,}" for table in read)
        print(
            f"guessed from {rows} rows spread over the tables; other rows may contain other values. To read every "
            "row once, add --every-row",
            file=sys.stderr,
        )
    keep = opt.keep or linked_text.KEEP
    link = Linked(*names, opt.by, opt.by, opt.order, keep, opt.visit_key or "", together)
    (method,) = (m.name for m in METHODS.values() if m.capabilities.linked)
    made = linked_text.draft(read, link, method, opt.person_columns or (), opt.missing, opt.date_order)
    people, visits = link.person_columns(made.schema), link.visit_columns(made.schema)
    try:
        write_own(out, made.dumps())
    except OSError as error:
        raise ProjectError(f"cannot write {out}: {error.strerror or error}", path=str(out)) from None
    print(
        f"{out}: a draft with {len(people)} columns for people and {len(visits)} for visits. It keeps {keep} visits "
        "per person and may contain private values until it is confirmed"
    )
    print(NEXT.format(out=out, data=" ".join(opt.table)), file=sys.stderr)


def read_linked(project: Project, data: Sequence[str]) -> list[Any]:
    """Return the tables that ``--data`` names; raises :class:`ProjectError` for any other number of tables.

    In a database, the project names the tables, and the URL may be given once or twice.
    """
    from espalier.core.tables.frames import is_database, read_data

    assert project.linked is not None
    link = project.linked
    names = [link.visits] if link.together else [link.people, link.visits]
    if len(data) == 1 and is_database(data[0]):
        data = [data[0]] * len(names)
    if len(data) != len(names):
        both = "one table" if link.together else f"the tables {link.people} and {link.visits}, in this order"
        raise ProjectError(f"this project releases {both}. Give {'it' if link.together else 'both'} after --data")
    return [read_data(where, name if is_database(where) else None) for where, name in zip(data, names, strict=True)]


def evaluate(opt: argparse.Namespace, released: Released) -> None:
    """Compare both tables of a release with the real ones."""
    from espalier.core.evaluation.linked_verdict import judged
    from espalier.core.tables.frames import panel
    from espalier.core.tables.panel import Panel

    project = released.project
    assert project.linked is not None
    assert isinstance(released.table, Panel)
    odd = [o for o in ("holdout", "public", "price", "sales", "per", "classifiers", "relation") if getattr(opt, o)]
    if odd:
        raise ProjectError(f"--{odd[0]} does not work with linked tables yet: leave it out")
    with bar(opt.json) as progress:
        real = panel(project.linked, project.schema, read_linked(project, opt.data))
        ledger.record_diagnostics(opt, released.facts, [real.digest])
        progress(0.5, "Comparing visits")
        found = judged(project, real, released.table)
        progress(1.0, "Done")
    if opt.json:
        print(json.dumps({"private": False, **found.to_json()}, indent=1, allow_nan=False))
        return
    print("CONFIDENTIAL: computed on real rows. Do not share.\n")
    print(f"{found.headline}\n")
    for name, value in found.figures.items():
        grade = found.grades.get(name, "")
        print(f"{FIGURES[name]:<66} {'not known' if value is None else f'{value:.3f}'}  {grade}".rstrip())
    task = found.task
    if task.auc_synthetic is None or task.auc_real is None:
        print(f"The next visit was not predicted: {task.reason}")
        return
    for trained, value in (("synthetic", task.auc_synthetic), ("real", task.auc_real)):
        print(f"{f'AUC of {task.target} at the next visit, trained on {trained} people':<66} {value:.3f}")


FIGURES = {
    "next_visit_same": "Total variation: one column at consecutive visits",
    "next_visit_any": "Total variation: two columns at consecutive visits",
    "transition_error": "Total variation: a column given its value at the previous visit",
    "visit_pairs": "Total variation: two columns of one visit",
    "person_visit": "Total variation: a column of the person and a column of a visit",
    "visits_per_person": "Total variation: number of visits per person",
    "echo_real": "Share of values repeated from two visits before, real people",
    "echo": "Share of values repeated from two visits before, synthetic people",
    "same_first_third_real": "Share of real people with the same value at visits 1 and 3",
    "same_first_third": "Share of synthetic people with the same value at visits 1 and 3",
    "distinct_real": "Distinct values of a column over the visits of a real person",
    "distinct": "Distinct values of a column over the visits of a synthetic person",
    "within_real": "Share of a number's variance within real people",
    "within": "Share of a number's variance within synthetic people",
}
"""Names of the figures, as shown on a terminal."""
