"""``espalier release`` and ``espalier demo``: spend the budget and write the files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from espalier.core.blurring.registry import is_blurring
from espalier.core.cli import ledger, linked, questions_option
from espalier.core.cli.statement import KEY_HELP, signer
from espalier.core.cli.terminal import bar
from espalier.core.errors import EspalierError, ProjectError
from espalier.core.methods import check_options
from espalier.core.project.file import Project

if TYPE_CHECKING:
    from espalier.core.ledger.account import Account
    from espalier.core.release.artefact import Release, TableFormat
    from espalier.core.statement.keys import Signer

TABLE = (
    "the private table: a file (CSV, Parquet, Excel) or folder of Parquet files of any size, or a URL (postgresql://…, "
    "duckdb://… or any other engine of Ibis; env:NAME reads the URL from the environment variable NAME)"
)
SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"


def add(commands: Any) -> None:
    """Declare the commands."""
    release = commands.add_parser("release", help="spend the budget and write the release to a folder")
    release.add_argument("project", type=Path)
    release.add_argument(
        "--data",
        required=True,
        nargs="+",
        metavar="TABLE",
        help=TABLE + "; for linked tables, both tables, people first",
    )
    release.add_argument("--relation", metavar="NAME", help="the name of the table in the engine that --data names")
    release.add_argument("--out", type=Path, required=True, help="a new or empty folder")
    add_format(release)
    release.add_argument(
        "--into", metavar="NAME", help="also write the synthetic rows to this new table in the same database"
    )
    release.add_argument("--quiet", action="store_true", help="do not show progress on stderr")
    questions_option.add_option(release)
    ledger.add_options(release)
    ledger.add_consent(release)
    release.add_argument(
        "--by", default="", metavar="WHO", help="name of the person who releases (default: the user of this machine)"
    )
    release.add_argument(
        "--public",
        type=Path,
        metavar="FILE",
        help="a public table with the same columns, to judge rows that are not private",
    )
    release.add_argument("--note", default="", metavar="TEXT", help="a note for the ledger")
    release.add_argument("--key", type=Path, metavar="FILE", help=KEY_HELP)
    release.set_defaults(run=run)

    demo = commands.add_parser("demo", help="release a bundled sample to a folder")
    samples = sorted(path.stem for path in SAMPLES.glob("*.json") if _tables(path.stem))
    demo.add_argument("--sample", choices=samples, default="readmission")
    demo.add_argument("--out", type=Path, default=None, help="a new or empty folder (default: out/SAMPLE)")
    demo.set_defaults(run=_demo)


def add_format(parser: argparse.ArgumentParser) -> None:
    """Declare the option for a second file of the released table."""
    parser.add_argument(
        "--as",
        "--format",
        dest="kind",
        choices=["csv", "parquet", "sav", "dta", "xpt"],
        default="csv",
        help="also write the table as Parquet, SPSS (sav), Stata (dta) or SAS transport (xpt), with a dictionary",
    )


def run(opt: argparse.Namespace) -> None:
    """Release a synthetic table and write its folder. No other command spends the budget."""
    project = questions_option.load(opt)
    if is_blurring(project.plan):
        _not_private(project, opt)
        return
    key = signer(opt.key)  # ask for the passphrase before anything is read
    if opt.public:
        raise ProjectError("--public applies only to methods that are not private", key="public")
    account = ledger.account(opt, opt.by, opt.note)
    output = Output(opt.out, opt.quiet, opt.kind, opt.into)
    if project.linked is not None:
        linked_to(project, opt.data, output, opt.relation, account, key)
        return
    release_to(project, one_table(opt), output, opt.relation, account, key)


def one_table(opt: argparse.Namespace) -> str:
    """Return the only table of ``--data``; raises :class:`ProjectError` for several."""
    if len(opt.data) > 1:
        raise ProjectError("this project releases a single table: name just one after --data")
    return str(opt.data[0])


def linked_to(
    project: Project,
    data: Sequence[str],
    output: Output,
    relation: str | None = None,
    account: Account | None = None,
    key: Signer | None = None,
) -> None:
    """Read both linked tables, spend the budget and write the release."""
    from espalier.core.progress import part
    from espalier.core.release.files import check_folder
    from espalier.core.release.spend import refuse_guessed, release
    from espalier.core.tables.frames import panel
    from espalier.core.tables.narrow_text import notices

    assert project.linked is not None
    if output.kind not in ("csv", "parquet") or output.into or relation:
        raise ProjectError(
            "linked tables are written as CSV or Parquet, and in a database the project names them: omit the "
            "other options"
        )
    check_options(project.plan)
    check_folder(output.folder)
    refuse_guessed(project)
    if account is not None:
        account.check(project)
    read = linked.read_linked(project, data)
    if not output.quiet:
        for notice in notices(read):
            print(notice, file=sys.stderr)
    with bar(output.quiet) as progress:
        table = panel(project.linked, project.schema, read)
        for warning in account.warnings(table.digest) if account else ():
            print(f"warning: {warning}", file=sys.stderr)
        made = release(project, table, part(progress, 0.1, 1.0), account, key, output.folder)
    if made.ledger_trouble:
        print(f"warning: {made.ledger_trouble}", file=sys.stderr)
    save(made, output)
    if not output.quiet:
        say(made, output.folder)


def _not_private(project: Project, opt: argparse.Namespace) -> None:
    """Write the rows of a method that is not private. The choice of the method in the plan counts as consent. No ledger
    records the release.
    """
    from espalier.core.blurring.notice import NOT_PRIVATE
    from espalier.core.release.blurred import blurred, shown
    from espalier.core.release.files import check_folder
    from espalier.core.release.spend import refuse_guessed
    from espalier.core.tables.reading import read_table

    if opt.key:
        raise ProjectError(f"{NOT_PRIVATE}, so no key signs the release. Omit --key", key="method")
    if any(getattr(opt, key, None) for key in ("ledger", "table", "note")):
        raise ProjectError(f"{NOT_PRIVATE}, so no ledger counts the release. Omit the ledger options", key="method")
    check_options(project.plan)
    check_folder(opt.out)
    project.need_unit()
    refuse_guessed(project)
    print(f"{NOT_PRIVATE}.", file=sys.stderr)
    with bar(opt.quiet) as progress:
        made = blurred(project, read_table(one_table(opt)), progress, read_table(opt.public) if opt.public else None)
    made.save(opt.out)
    for what, value in shown(made.disclosure):
        print(f"{value:>6}  {what}", file=sys.stderr)
    if made.public is not None:
        print(f"ΔMSE with the public table: {made.public['delta_mse']:.0%}", file=sys.stderr)
    print(f"{opt.out}: {made.rows:,} rows, NOT PRIVATE", file=sys.stderr)


class Output(NamedTuple):
    """Destination of a release: the folder, its format, the destination table, and the display of progress."""

    folder: Path
    quiet: bool = False
    kind: TableFormat = "csv"
    into: str | None = None


def release_to(
    project: Project,
    data: str,
    output: Output,
    relation: str | None = None,
    account: Account | None = None,
    key: Signer | None = None,
) -> None:
    """Read the table, spend the budget and write the release."""
    from espalier.core.progress import part
    from espalier.core.release.files import check_folder
    from espalier.core.release.output import arrow_columns
    from espalier.core.release.spend import refuse_guessed, release
    from espalier.core.release.stat_output import STAT_FORMATS, check_stat, losses
    from espalier.core.tables.frames import destination, opened, read_data, relation_of

    out, quiet, plan = output.folder, output.quiet, project.plan

    check_options(project.plan)
    check_folder(out)
    project.need_unit()
    refuse_guessed(project)
    if output.kind in STAT_FORMATS:
        check_stat(project.schema, output.kind)
    if account is not None:
        account.check(project)  # a refusal by the ledger must come before the table is read
    place = None if output.into is None else destination(data, output.into)
    if place is not None:
        place.check(arrow_columns(project.schema))
    read = read_data(data, relation)
    left_out = [name for name in read.columns if name not in project.schema and name != plan.person]
    if left_out and not quiet:
        print(f"left out (not in the schema): {', '.join(left_out)}", file=sys.stderr)
    far = relation_of(read)
    if far is not None and not quiet:
        print(far.notice, file=sys.stderr)
    if project.plan.person and not quiet:
        k = project.plan.rows_per_person
        kept = f"at most {k} row{'s are' if k > 1 else ' is'} kept for each person in {project.plan.person!r}"
        print(kept, file=sys.stderr)
    with (
        bar(quiet) as progress,
        opened(read, project.schema, plan.person, plan.rows_per_person, part(progress, 0.0, 0.3)) as table,
    ):
        for warning in account.warnings(table.digest) if account else ():
            print(f"warning: {warning}", file=sys.stderr)
        made = release(project, table, part(progress, 0.3, 1.0), account, key, out)
    del read, table  # frees their memory before the files are written
    if made.ledger_trouble:
        print(f"warning: {made.ledger_trouble}", file=sys.stderr)
    save(made, output)
    if place is not None:
        if far is not None:
            far.close()  # DuckDB refuses writers while the file is open for reading
        try:
            with bar(quiet) as progress:
                made.write_into(place, progress)
        except EspalierError as error:
            raise type(error)(f"{error} The release has been written to {out}") from None
    if not quiet and output.kind in STAT_FORMATS:
        for loss in losses(made.project.schema, output.kind):
            print(f"note: {loss}", file=sys.stderr)
    if not quiet:
        say(made, out)


def save(made: Release, output: Output) -> None:
    """Write the folder. If that fails, the error states how to obtain the release, which is already paid for."""
    try:
        with bar(output.quiet or made.whole is None) as progress:
            made.save(output.folder, output.kind, progress)
    except BaseException as error:
        if made.storage is not None:
            made.storage.leave()
            error.add_note(f"The release is paid for, and its answers are stored: espalier resume {output.folder}")
        elif made.reservation is not None:
            entry, kept = made.reservation.entry.id, not made.ledger_trouble
            how = "ledger take" if kept else "resume"
            error.add_note(f"The release is paid for and kept: espalier {how} {entry} --out ANOTHER_FOLDER")
        raise


def say(made: Release, out: Path) -> None:
    """Print the budget spent and the amount left in the ledger."""
    from espalier.core.privacy.accounting import round_up

    for warning in made.warnings:
        print(f"note: {warning}", file=sys.stderr)
    spent, what = made.to_json()["spent"], "rows" if made.tables is None else "people"
    print(
        f"{out}: {made.rows:,} {what}; spent ε = {round_up(spent['epsilon'])}, δ = {round_up(spent['delta'])}"
        + ("" if made.reservation else "; not recorded in a ledger"),
        file=sys.stderr,
    )
    if made.reservation:
        p = made.reservation.account.population
        largest = p.largest(None, made.budget.pure)
        more = f"enough for one more plan with ε up to {largest:g}" if largest else "not enough for any plan"
        print(
            f"ledger: entry {made.reservation.entry.id} of {p.name}; ρ = {p.left:.4g} is left, {more}",
            file=sys.stderr,
        )


def _demo(opt: argparse.Namespace) -> None:
    output = Output(opt.out or Path("out") / opt.sample)
    project, tables = Project.load(SAMPLES / f"{opt.sample}.json"), _tables(opt.sample)
    if project.linked is None:
        release_to(project, tables[0], output)
    else:
        linked_to(project, tables, output)


def _tables(sample: str) -> list[str]:
    """Return the paths of a sample's table, or of its linked tables, people first."""
    one = SAMPLES / f"{sample}.csv"
    return [str(path) for path in ([one] if one.exists() else sorted(SAMPLES.glob(f"{sample}_*.csv")))]
