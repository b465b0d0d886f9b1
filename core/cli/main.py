"""The command line: plan, release, evaluate, graph, demo, ledger.

Exit status: 0 done; 2 bad input, conflict, or size refused (a clear line on stderr, no output folder left); 3 the
budget or the ledger refuses.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from core.cli import ledger
from core.errors import BudgetError, EspalierError
from core.project.file import Project

if TYPE_CHECKING:
    from core.ledger.ledger import Account
    from core.release.planning import Line

FORMAT_NAMES = ("dagitty", "dot", "gml", "bif", "csv", "json", "graphml", "bnlearn", "tetrad")
LONGEST = 800
"""Characters of a message; names and values may be longer."""
SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parser = _Parser(prog="python -m core", description="Synthetic tables under differential privacy.")
    commands = parser.add_subparsers(dest="command", metavar="command", title="commands")

    plan = commands.add_parser("plan", help="show what a plan would spend, and on what; reads no data")
    plan.add_argument("project", type=Path)
    plan.add_argument("--rows", type=_rows, help="number of rows n, where it is public")
    plan.add_argument("--json", action="store_true", help="print JSON instead of a table")
    ledger.add_options(plan)

    release = commands.add_parser("release", help="spend the budget and write the release to a folder")
    release.add_argument("project", type=Path)
    release.add_argument("--data", type=Path, required=True, help="the private table (CSV, Parquet, Excel)")
    release.add_argument("--out", type=Path, required=True, help="a new or empty folder")
    release.add_argument("--quiet", action="store_true", help="no progress on stderr")
    ledger.add_options(release)
    ledger.add_consent(release)
    release.add_argument("--by", default="", metavar="WHO", help="who releases (default: the user of this machine)")
    release.add_argument("--note", default="", metavar="TEXT", help="a note for the ledger")

    evaluate = commands.add_parser("evaluate", help="compare a release with the real table; NOT private")
    evaluate.add_argument("folder", type=Path)
    evaluate.add_argument("--data", type=Path, required=True)
    evaluate.add_argument("--holdout", type=Path, help="rows that were not released from")
    ledger.add_options(evaluate)
    evaluate.add_argument("--by", default="", metavar="WHO", help="who looks (default: the user of this machine)")

    graph = commands.add_parser("graph", help="read a graph file of another tool, and write it in another format")
    graph.add_argument("file", type=Path)
    graph.add_argument("--to", choices=FORMAT_NAMES, help="print the graph in this format; what it cannot hold is said")

    demo = commands.add_parser("demo", help="release a bundled sample to a folder")
    demo.add_argument("--sample", choices=("readmission", "hiring", "services", "visits"), default="readmission")
    demo.add_argument("--out", type=Path, default=None, help="a new or empty folder (default: out/SAMPLE)")
    ledger.add_commands(commands)

    opt = parser.parse_args(argv)
    if opt.command is None:
        parser.print_help(sys.stderr)
        return 2
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that has no ρ gets \u03c1
    try:
        _COMMANDS[opt.command](opt)
    except BudgetError as error:
        print(_line(error), file=sys.stderr)
        return 3
    except EspalierError as error:
        print(_line(error), file=sys.stderr)
        return 2
    except MemoryError:
        print(
            "espalier: not enough memory for this; coarsen the columns with the most categories",
            file=sys.stderr,
        )
        return 2
    except BrokenPipeError:  # whoever read our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("\nespalier: cancelled; what had been drawn counts as spent", file=sys.stderr)
        return 130
    return 0


def _line(error: EspalierError) -> str:
    """One line for the terminal: what names and cells hold must neither steer it nor flood it."""
    text = " ".join(str(error).split())
    shown = "".join(c if c.isprintable() else "�" for c in text)
    return "espalier: " + (shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 200]} … {shown[-180:]}")


def _rows(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return value


def _plan(opt: argparse.Namespace) -> None:
    from core.release.planning import grouped, preview

    account = ledger.account(opt)
    project, left = Project.load(opt.project), None
    if account is not None:
        project = account.population.fits(project, account.table)
    shown = preview(project, opt.rows)
    if account is not None:
        left = account.population.outlook(shown.budget.rho)
    if opt.json:
        print(json.dumps({**shown.to_json(), "ledger": left}, indent=1, ensure_ascii=False))
        return
    b = shown.budget
    print(f"{shown.project.name}: {shown.project.plan.method}, ε = {b.epsilon:g}, δ = {b.delta:.3g}, ρ = {b.rho:.6g}")
    for s in shown.frame.separations:
        given = f" given {', '.join(s.given)}" if s.given else ""
        print(f"  {', '.join(s.left)} and {', '.join(s.right)} independent{given}   ({s.why})")
    if shown.frame.features:
        print(f"  measured with the target: {', '.join(shown.frame.features)}")
    print(f"\n{'pool':<12} {'cells':>9} {'rho':>11} {'sigma (rows)':>13} {'error/n':>9}  what")
    _print_lines(grouped(shown.lines))
    print(f"\nspent in all: ρ = {shown.spent:.6g} of {b.rho:.6g}")
    if left is not None:
        fits = f"would leave ρ = {left['after']:.4g}" if left["fits"] else "is more than is left: it would be refused"
        print(f"ledger: {left['population']} has ρ = {left['left']:.4g} of {left['total']:.4g} left; this plan {fits}")
    if shown.private_evaluation:
        print("\nprivate figures, on people (rows) held out by lot: the same ρ over again, which adds nothing")
        _print_lines(grouped(shown.private_evaluation))
        for figure in shown.expected:
            if figure.value is None:
                print(f"  {figure.name}: cannot be carried: {figure.reason}")
            elif figure.name in ("one_way_tv", "cmi"):
                print(f"  {figure.name}: at most about {figure.high:.3f} where the truth is 0")
            else:
                print(f"  {figure.name}: about ± {(figure.high or 0) - figure.value:.3f}")
    print(f"model: {shown.size.cells:,} cells, {shown.size.bytes / 2**20:.1f} MiB, about {shown.size.seconds:.1f} s")
    for warning in shown.warnings:
        print(f"note: {warning}")


def _print_lines(lines: Iterable[tuple[int, Line]]) -> None:
    for count, line in lines:
        times = f"{count} times: " if count > 1 else ""
        cells = f"{line.cells:,}" if line.cells else ""
        error = f"{line.error:.2e}" if line.error is not None else ""
        print(f"{line.pool:<12} {cells:>9} {line.rho:>11.3e} {line.sigma:>13.2f} {error:>9}  {times}{line.what}")


def _release(opt: argparse.Namespace) -> None:
    account = ledger.account(opt, opt.by, opt.note)
    _run_release(Project.load(opt.project), opt.data, opt.out, opt.quiet, account)


def _run_release(project: Project, data: Path, out: Path, quiet: bool, account: Account | None = None) -> None:
    from core.release.files import check_folder
    from core.release.spend import refuse_guessed, release
    from core.tables.reading import read_table
    from core.tables.table import Table

    check_folder(out)
    refuse_guessed(project.schema)
    if account is not None:
        account.check(project)  # what the ledger will refuse is refused before the table is read
    text = read_table(data)
    left_out = [name for name in Table.left_out(text, project.schema) if name != project.plan.person]
    if left_out and not quiet:
        print(f"left out (not in the schema): {', '.join(left_out)}", file=sys.stderr)
    if project.plan.person and not quiet:
        k = project.plan.rows_per_person
        print(f"at most {k} row{'s' * (k > 1)} of each person in {project.plan.person!r} are kept", file=sys.stderr)
    table = Table.encode(text, project.schema, project.plan.person)

    def progress(fraction: float, message: str) -> None:
        if not quiet and sys.stderr.isatty():
            print(f"\r{100 * fraction:3.0f} %  {message:<40}", end="", file=sys.stderr, flush=True)

    for warning in account.warnings(table.digest) if account else ():
        print(f"warning: {warning}", file=sys.stderr)
    made = release(project, table, progress, account)
    if made.ledger_trouble:
        print(f"warning: {made.ledger_trouble}", file=sys.stderr)
    try:
        made.save(out)
    except EspalierError as error:
        if made.reservation is None or made.ledger_trouble:
            raise
        entry = made.reservation.entry.id
        raise type(error)(
            f"{error}. The release is paid for and kept: python -m core ledger take {entry} --out ANOTHER_FOLDER"
        ) from None
    if not quiet:
        from core.privacy.accounting import round_up

        for warning in made.warnings:
            print(f"note: {warning}", file=sys.stderr)
        spent = made.to_json()["spent"]
        if sys.stderr.isatty():
            print(file=sys.stderr)
        print(
            f"{out}: {made.rows:,} rows; spent ε = {round_up(spent['epsilon'])}, δ = {round_up(spent['delta'])}"
            + ("" if made.reservation else "; not recorded in a ledger"),
            file=sys.stderr,
        )
        if made.reservation:
            p = made.reservation.account.population
            print(f"ledger: entry {made.reservation.entry.id} of {p.name}; ρ = {p.left:.4g} is left", file=sys.stderr)


def _evaluate(opt: argparse.Namespace) -> None:
    from core.compare.fence_cost import cost_or_reason
    from core.evaluation import evaluate
    from core.graph.separations import clique_edges
    from core.release.artefact import load_release
    from core.tables.reading import read_table
    from core.tables.table import Table

    released = load_release(opt.folder)
    schema = released.project.schema
    real = Table.encode(read_table(opt.data), schema, released.project.plan.person)
    holdout = Table.encode(read_table(opt.holdout), schema) if opt.holdout else None
    tables = [real, holdout] if holdout else [real]
    ledger.record_diagnostics(opt, released.facts, [table.digest for table in tables])
    result: Any = evaluate(released.project, real, released.table, model=released.model, holdout=holdout)
    edges = clique_edges(released.cliques)
    cost = cost_or_reason(released.project, real, released.table, edges, holdout=holdout)
    print(json.dumps({**result.to_json(), **cost}, indent=1, ensure_ascii=False, allow_nan=False))


def _graph(opt: argparse.Namespace) -> None:
    from core.graph.formats import not_held, write_graph
    from core.graph.formats.describe import checked, load_graph, summary

    found = load_graph(opt.file)
    if opt.to is None:
        print(summary(found, opt.file.name))
        checked(found, opt.file)
        return
    text = write_graph(checked(found, opt.file), opt.to)
    for remark in found.remarks:
        print(f"note: {opt.file}: line {remark.line}: {remark.text}", file=sys.stderr)
    for lost in not_held(found, opt.to):
        print(f"note: {lost}", file=sys.stderr)
    print(text, end="")


def _demo(opt: argparse.Namespace) -> None:
    out = opt.out or Path("out") / opt.sample
    _run_release(Project.load(SAMPLES / f"{opt.sample}.json"), SAMPLES / f"{opt.sample}.csv", out, quiet=False)


_COMMANDS = {
    "plan": _plan, "release": _release, "evaluate": _evaluate, "graph": _graph, "demo": _demo,
    "ledger": ledger.run,
}  # fmt: skip
