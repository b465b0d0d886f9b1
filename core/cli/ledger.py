"""``espalier ledger``: open a table's budget; list, verify and export the ledger; write a stored release to a
folder.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from espalier.core.cli.number_types import number, whole
from espalier.core.errors import LedgerError, LedgerUnavailable, ProjectError
from espalier.core.limited_file import write_new
from espalier.core.project.json_text import read_json

if TYPE_CHECKING:
    from espalier.core.ledger.account import Account
    from espalier.core.ledger.ledger import Ledger
    from espalier.core.ledger.population import Entry, Population

SHORTEST = 4
"""Minimum number of digits of an abbreviated id, which must still identify one entry."""

WHERE = "a SQLite file or a PostgreSQL URL (default: ESPALIER_LEDGER, otherwise a file in the user's data folder)"


def add_options(command: argparse.ArgumentParser) -> None:
    """Declare ``--ledger`` and ``--table``, for commands that pay from an account."""
    command.add_argument("--ledger", metavar="FILE_OR_URL", help=WHERE)
    command.add_argument("--table", metavar="NAME", help="the private table's name in the ledger")


def add_consent(command: argparse.ArgumentParser) -> None:
    """Add the options that allow a release despite a warning."""
    command.add_argument(
        "--again", action="store_true", help="release even though another budget has already paid for this table"
    )
    command.add_argument(
        "--another-unit",
        action="store_true",
        help="use a person column other than the one fixed in the ledger; the ledger records and shows this",
    )


def account(opt: argparse.Namespace, who: str = "", note: str = "") -> Account | None:
    """Return the account named by ``--ledger`` and ``--table``; None without these options."""
    if opt.table is None:
        if opt.ledger is not None:
            raise ProjectError("--ledger needs --table NAME, the private table whose budget pays for this")
        return None
    consent = {key: getattr(opt, key, False) for key in ("again", "another_unit")}
    return open_ledger(opt).account(opt.table, who, note, **consent)


def add(commands: Any) -> None:
    """Declare ``ledger`` with its subcommands."""
    ledger = commands.add_parser("ledger", help="the steward's ledger: open, list, verify, export, take, close")
    acts = ledger.add_subparsers(dest="act", required=True, metavar="open|list|verify|export|take|close")

    opened = acts.add_parser("open", help="name a private table and set its total, which cannot be changed later")
    add_options(opened)
    opened.add_argument("--epsilon", type=number, help="the total ε")
    opened.add_argument("--delta", type=number, help="the total δ, such as 1e-9")
    opened.add_argument(
        "--delta-for-draws",
        type=number,
        metavar="D",
        help="amount of δ for draws with their own δ₀, such as 1e-10 (default: 0); the rest is used to convert ρ to ε",
    )
    opened.add_argument(
        "--neighbors",
        choices=("replace-one", "add-remove"),
        help="neighbouring tables: rows change in place, or are added or removed (default: replace-one)",
    )
    opened.add_argument(
        "--rows-per-person", type=whole, metavar="K", help="maximum number of rows per person (default: 1)"
    )
    opened.add_argument("--person", metavar="COLUMN", help="person column (default: none; K is then a promise)")
    opened.add_argument(
        "--population",
        metavar="NAME",
        help="name of the people whom the table describes; tables of one population share a budget",
    )
    opened.add_argument(
        "--by",
        default="",
        metavar="WHO",
        help="name of the person who sets the total (default: the user of this machine)",
    )
    opened.add_argument("--note", default="", metavar="TEXT", help="a note for readers of the ledger")

    listed = acts.add_parser("list", help="show totals, remaining budget and every entry")
    verify = acts.add_parser(
        "verify", help="check every hash, sum and rule of the ledger, an export or a release folder"
    )
    verify.add_argument("what", nargs="?", type=Path, help="an exported JSON file, or a release's folder")
    export = acts.add_parser("export", help="write the whole ledger as CSV or JSON")
    take = acts.add_parser("take", help="write a stored release to a new folder")
    close = acts.add_parser("close", help="end an interrupted release that no one will resume")
    for command in (listed, verify, export, take, close):
        command.add_argument("--ledger", metavar="FILE_OR_URL", help=WHERE)
    listed.add_argument("--table", metavar="NAME", help="show only the budget of this table")
    export.add_argument("--format", choices=("csv", "json"), default="csv")
    export.add_argument("--out", type=Path, metavar="FILE", help="a new file (default: print the export)")
    take.add_argument("entry", help="an entry's id, as list shows it, or its first digits (at least 4)")
    take.add_argument("--out", type=Path, required=True, help="a new or empty folder")
    close.add_argument("entry", help="an entry's id, as list shows it, or its first digits (at least 4)")
    close.add_argument(
        "--by",
        default="",
        metavar="WHO",
        help="name of the person who closes the entry (default: the user of this machine)",
    )
    ledger.set_defaults(run=run)


def run(opt: argparse.Namespace) -> None:
    """Run one of the commands."""
    _ACTS[opt.act](opt)


def open_ledger(opt: argparse.Namespace, create: bool = False) -> Ledger:
    """Return the ledger that ``--ledger`` names, or the default one."""
    from espalier.core.ledger.ledger import Ledger, default_ledger

    return Ledger(opt.ledger or default_ledger(), create)


def record_diagnostics(opt: argparse.Namespace, facts: Mapping[str, Any], digests: Sequence[bytes]) -> None:
    """Record in the ledger that a command is about to compute figures that are not private.

    ``facts`` are the release's, or empty if there is none. ``--ledger`` names the ledger; without it, the default
    ledger is used. The budgets are those of ``--table`` and of the release's entry. If a table with one of these
    ``digests`` was released before, one of its budgets must be named. If the ledger is missing or contains none of
    them, nothing is recorded; if the release has an entry, a warning is printed.
    """
    entry = facts.get("ledger")
    tables = [opt.table] if opt.table is not None else []
    try:
        ledger = open_ledger(opt)
    except LedgerUnavailable as error:
        if opt.ledger is not None or tables or not error.data.get("missing"):
            raise
        concerned = []
    else:
        for table in tables:
            ledger.population_of(table)
        chain = entry.get("chain") if isinstance(entry, dict) else None  # the ledger records the entry's table
        concerned = ledger.diagnosed(digests, tables, opt.by, opt.command, chain)
    for population in concerned:
        print(f"ledger: recorded a view of diagnostics for {population}", file=sys.stderr)
    if entry and not concerned:
        print(
            "warning: the release is recorded in another ledger, so this view of diagnostics is not recorded. "
            "Name the other ledger with --ledger",
            file=sys.stderr,
        )


def _entries(ledger: Ledger) -> dict[str, Entry]:
    return {e.id: e for p in ledger.populations().values() for e in p.entries}


def _open(opt: argparse.Namespace) -> None:
    if opt.table is None:
        raise ProjectError("name the table: --table NAME")
    if opt.population is None and (opt.epsilon is None or opt.delta is None):
        raise ProjectError(
            "a new budget needs its total: --epsilon and --delta (or --population NAME, to share an open budget)"
        )
    ledger = open_ledger(opt, create=True)
    made = ledger.open_table(
        opt.table,
        opt.population,
        epsilon=opt.epsilon,
        delta=opt.delta,
        delta_for_draws=opt.delta_for_draws,
        neighbors=opt.neighbors,
        rows_per_person=opt.rows_per_person,
        person=opt.person,
        who=opt.by,
        note=opt.note,
    )
    shared = f", shared with {', '.join(t for t in made.tables if t != opt.table)}" if len(made.tables) > 1 else ""
    print(f"{ledger.name}: {opt.table} is open; {_state(made)}{shared}")
    print(f"  {_unit(made, opt.table)}")


def _list(opt: argparse.Namespace) -> None:
    from espalier.core.ledger.population import PART_NAMES
    from espalier.core.privacy.accounting import round_up

    ledger = open_ledger(opt)
    populations = ledger.populations()
    if opt.table is not None:
        one = ledger.population_of(opt.table)
        populations = {one.name: one}
    if not populations:
        print(f"{ledger.name}: no table is open yet")
    for p in populations.values():
        print(f"{p.name}: {_state(p)}")
        print(f"  {p.neighbors}; opened {p.opened_at} by {p.opened_by}; tables: {', '.join(p.tables)}")
        for text in [*(_unit(p, table) for table in p.tables), *(f"note: {c}" for c in p.caveats)]:
            print(f"  {text}")
        if p.entries:
            heads = f"{'status':<8}  {'rho':>10}  {'ε before':>9}  {'ε after':>9}  description"
            print(f"  {'entry, parts':<16}  {'when':<17}  {heads}")
        for e in p.entries:

            def line(name: str, at: str, rhos: Sequence[float], what: str, p: Any = p, status: str = e.status) -> str:
                before, after = (round_up(p.epsilon_after(r)) for r in rhos[1:])
                figures = f"{round_up(rhos[0]):>10}  {before:>9}  {after:>9}"
                return f"  {name:<16}  {at:<17}  {status:<8}  {figures}  {what}"

            what = f"{e.project} ({e.plan.get('method')}, ε = {e.epsilon:g}) from {e.table}, by {e.who}"
            what += f"; {e.unit}" if e.unit != p.unit_of(e.table) else ""
            what += f"; relation: {e.relation}" if e.relation not in (None, "table") else ""
            what += f"; δ₀ = {round_up(e.delta_counted)}" if e.delta_counted else ""
            what += f"; diagnostics viewed before: {e.diagnostics_before}" if e.diagnostics_before else ""
            print(line(e.id, e.at, (e.counted, e.rho_before, e.rho_now), what + (f"; {e.note}" if e.note else "")))
            for part in e.parts:
                what = part.what + (f"; δ₀ = {round_up(part.delta)}" if part.delta else "")
                print(line(f"  {PART_NAMES[part.kind]}", "", (part.rho, part.rho_before, part.rho_after), what))
            if e.stopped_short:
                print(f"  {'  not drawn':<16}  {'':<17}  {e.status:<8}  {round_up(e.undrawn):>10}  still counted")


def _unit(p: Population, table: str) -> str:
    k = f"{p.rows_per_person} row{'s' if p.rows_per_person > 1 else ''} per person"
    return f"{table}: {k}, {p.unit_of(table)}"


def _state(p: Population) -> str:
    from espalier.core.privacy.accounting import round_up

    draws = f"; δ₀ of draws: spent {round_up(p.delta_spent)} of {p.delta_for_draws:.4g}" if p.delta_for_draws else ""
    return (
        f"total ε = {p.epsilon:g}, δ = {p.delta:g} (ρ = {p.rho:.4g}); spent ρ = {round_up(p.spent)} "
        f"(ε = {round_up(p.epsilon_after(p.spent))}); ρ = {p.left:.4g} is left, "
        f"enough for one more plan with ε up to {p.largest():g}" + draws
    )


def _verify(opt: argparse.Namespace) -> None:
    if opt.what is not None:
        from espalier.core.ledger.verify_copies import check_export, check_release

        if opt.what.is_dir():
            print(check_release(opt.what, open_ledger(opt)))
        else:
            print(check_export(opt.what, None if opt.ledger is None else open_ledger(opt)))
        return
    ledger = open_ledger(opt)
    if problems := ledger.verify():
        raise LedgerError("; ".join(problems))
    count, last = ledger.head()
    print(
        f"{ledger.name}: {count:,} event{'s' * (count != 1)}; hashes, sums and rules verified; the last hash is {last}"
    )


def _export(opt: argparse.Namespace) -> None:
    ledger = open_ledger(opt)
    if opt.format == "csv":
        text = ledger.csv()
    else:
        text = json.dumps(ledger.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if opt.out is None:
        sys.stdout.write(text)
        return
    try:
        write_new(opt.out, text.encode("utf-8"))
    except FileExistsError:
        raise ProjectError(f"{opt.out} already exists; nothing is overwritten", path=str(opt.out)) from None
    except OSError as error:
        raise ProjectError(f"cannot write {opt.out}: {error.strerror or error}", path=str(opt.out)) from None


def _take(opt: argparse.Namespace) -> None:
    from espalier.core.release.files import check_folder

    check_folder(opt.out)
    ledger = open_ledger(opt)
    take(ledger, entry_of(ledger, opt.entry), opt.out)


def take(ledger: Ledger, entry: Entry, out: Path) -> None:
    """Write a release stored in the ledger to the folder ``out``, with all its rows unless its statement is signed."""
    from espalier.core.release.files import save_files
    from espalier.core.statement.claims import SIGNATURE

    released = entry.released
    if entry.status == "reserved":
        raise ProjectError(
            f"entry {entry.id} has not ended. If no one is working on it, finish it: espalier resume {entry.id} "
            f"--out {out}"
        )
    if released is None:
        raise ProjectError(f"entry {entry.id} ended without a release: there is nothing to take")
    files = ledger.files(released)
    further = _all_rows(files)
    if further and SIGNATURE in files:
        further = {}
        print(
            "note: synthetic.csv contains only the first rows. The statement is signed, so a file of all rows cannot "
            "be added",
            file=sys.stderr,
        )
    save_files(files, out, further, partial(_with_further, files))
    print(f"{out}: the release of entry {entry.id}, unchanged ({released})", file=sys.stderr)


def _all_rows(files: Mapping[str, bytes]) -> dict[str, Callable[[Path], None]]:
    """Return a function that writes all rows, redrawn from the model; `None` if ``synthetic.csv`` contains all rows."""
    from espalier.core.analysis.loading import read_files
    from espalier.core.ledger.archive import MODEL
    from espalier.core.release.output import WHOLE, write_again

    if "rows_shown" not in json.loads(files["release.json"]) or MODEL not in files:
        return {}
    read = read_files(files)
    model, rows = read.model, int(read.facts["rows"])
    return {} if model is None else {WHOLE["csv"]: lambda path: write_again(model, read.project, rows, path)}


def _with_further(files: Mapping[str, bytes], further: Mapping[str, Mapping[str, Any]]) -> dict[str, bytes]:
    """Return the statement with the digests of ``further`` files; empty if the release has no statement."""
    from espalier.core.statement.claims import STATEMENT, text

    if STATEMENT not in files:
        return {}
    made = read_json(files[STATEMENT], STATEMENT)
    if not isinstance(made, dict) or not isinstance(made.get("files"), dict):
        raise ProjectError(f"{STATEMENT} is damaged", key=STATEMENT)
    return {STATEMENT: text({**made, "files": dict(sorted({**made["files"], **further}.items()))})}


def _close(opt: argparse.Namespace) -> None:
    ledger = open_ledger(opt)
    entry = entry_of(ledger, opt.entry)
    account = ledger.account(entry.table, opt.by)
    account.resumed(entry.id).close(f"closed by {account.who}")
    print(f"{ledger.name}: entry {entry.id} is closed; ρ = {entry.reserved:.4g} stays spent", file=sys.stderr)


def entry_of(ledger: Ledger, given: str) -> Entry:
    """Return the entry with this id, or with an id that begins with it (at least `SHORTEST` digits).

    Raises :class:`ProjectError`.
    """
    entries = _entries(ledger)
    if given in entries:
        return entries[given]
    if len(given) < SHORTEST:
        raise ProjectError(f"give at least {SHORTEST} digits of an entry's id, not {given!r}; `ledger list` shows them")
    found = [entry for name, entry in sorted(entries.items()) if name.startswith(given)]
    if not found:
        raise ProjectError(f"the ledger {ledger.name} has no entry {given!r}; `ledger list` shows them")
    if len(found) > 1:
        raise ProjectError(
            f"{len(found)} entries begin with {given!r} ({', '.join(e.id for e in found[:3])}); give more digits"
        )
    return found[0]


_ACTS = {"open": _open, "list": _list, "verify": _verify, "export": _export, "take": _take, "close": _close}
