"""``espalier resume``: finish a release that was interrupted, at no further cost."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from espalier.core.cli import ledger
from espalier.core.cli.linked import read_linked
from espalier.core.cli.release import TABLE, Output, add_format, one_table, save, say
from espalier.core.cli.statement import KEY_HELP, signer
from espalier.core.cli.terminal import bar
from espalier.core.errors import ProjectError

if TYPE_CHECKING:
    from espalier.core.ledger.account import Reservation
    from espalier.core.project.file import Project


def add(commands: Any) -> None:
    """Declare the command."""
    resume = commands.add_parser("resume", help="finish an interrupted release at no further cost")
    resume.add_argument(
        "what",
        metavar="ENTRY|DIR",
        help="an entry of the ledger, or the folder that `release` was to write (its --out)",
    )
    resume.add_argument(
        "--data",
        nargs="+",
        metavar="TABLE",
        help=TABLE + "; read only if an answer is missing",
    )
    resume.add_argument("--relation", metavar="NAME", help="the name of the table in the engine that --data names")
    resume.add_argument("--out", type=Path, help="a new or empty folder, for an entry of the ledger")
    add_format(resume)
    resume.add_argument("--quiet", action="store_true", help="do not show progress on stderr")
    resume.add_argument("--ledger", metavar="FILE_OR_URL", help=ledger.WHERE)
    resume.add_argument(
        "--by", default="", metavar="WHO", help="name of the person who resumes (default: the user of this machine)"
    )
    resume.add_argument("--key", type=Path, metavar="FILE", help=KEY_HELP)
    resume.set_defaults(run=run)


def run(opt: argparse.Namespace) -> None:
    """Finish the release and write its folder."""
    from espalier.core.release.files import check_empty, check_folder
    from espalier.core.release.resume import resume
    from espalier.core.release.unfinished import JOURNAL, FolderJournal, work_folder
    from espalier.core.tables.frames import read_data

    key = signer(opt.key)
    here = Path(opt.what)
    reservation: Reservation | None = None
    if (work_folder(here) / JOURNAL).is_file():
        if opt.out not in (None, here):
            raise ProjectError(f"an unfinished release to {here} is always written there: omit --out", key="out")
        if (here / "release.json").is_file():
            finished = FolderJournal(here)
            if not finished.written:
                finished.leave()
                raise ProjectError(
                    f"{here} contains another release. Move that release elsewhere, then run this command again. "
                    f"The answers stored in {work_folder(here)} are unchanged.",
                    path=str(here),
                )
            finished.forget()  # the process ended between the last two steps
            print(f"{here}: the release is complete", file=sys.stderr)
            return
        check_empty(here)
        opt.out = here
    else:
        if opt.out is None:
            raise ProjectError(
                f"there is no unfinished release to a folder {opt.what}. For a ledger entry, give --out DIR"
            )
        check_folder(opt.out)
        opened = ledger.open_ledger(opt)
        entry = ledger.entry_of(opened, opt.what)
        if entry.released is not None and opened.store.kept(entry.released) is not None:  # only the folder is missing
            if opt.key is not None or opt.kind != "csv":
                raise ProjectError(
                    f"entry {entry.id} has ended and its release is kept, so it is written as it was made. Omit "
                    "--key and --as",
                    key="key",
                )
            ledger.take(opened, entry, opt.out)
            return
        reservation = opened.account(entry.table, opt.by).resumed(entry.id)
    output = Output(opt.out, opt.quiet, opt.kind)

    def tables(project: Project) -> Any:
        return read_data(one_table(opt), opt.relation) if project.linked is None else read_linked(project, opt.data)

    with bar(opt.quiet) as progress:
        made = resume(reservation or here, None if opt.data is None else tables, progress, key)
    if made.ledger_trouble:
        print(f"warning: {made.ledger_trouble}", file=sys.stderr)
    save(made, output)
    if not opt.quiet:
        say(made, output.folder)
