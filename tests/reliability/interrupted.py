"""Releases that are interrupted at many points, each followed by ``espalier resume``.

    python -m tests.reliability.interrupted                 all faults at 20 points each; prints the table
    python -m tests.reliability.interrupted --points 5      a short run

A point is before a draw, between a draw and its storage, after the storage, and before and after the rows, the files,
the ledger's entry and the folder are written. At each point of a release one fault happens: kill -9, SIGTERM, a full
disk (of the folder, of TMPDIR, of the ledger), a lost PostgreSQL server, or a memory limit. A recording journal notes
each answer that is drawn and each that is returned. Then the fault is repaired and the release is resumed, with the
rows.

Prints one line for each fault: the number of interrupted releases, the number that had paid, and the numbers that were
lost, counted twice, changed or drawn twice. Exit status 1 unless these four are 0.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from espalier.core.cli.main import main
from espalier.core.ledger.account import Reservation
from espalier.core.ledger.ledger import Ledger
from espalier.core.privacy import journal
from espalier.core.project import plan as limits
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release import artefact, run
from espalier.core.tables import frames
from tests.reliability.faults import consistent
from tests.support.postgres import Absent, Server, server

EPSILON, DELTA, ROWS = 1.0, 1e-6, 600
SCHEMA = Schema(tuple(Column(n, "categorical", ("x", "y", "z")) for n in "abcd"))
PLAN = Plan("mst", EPSILON, DELTA, target="a", private_evaluation=0.2)
DISK = 16 << 20
"""Bytes of the disks that are filled."""
SPARE = 2 << 20
"""Bytes of address space that a memory limit leaves."""


class Points:
    """Counts the points of one process, and triggers the fault at one point. ``log`` receives the drawn and returned
    answers."""

    def __init__(self, log: Path, at: int, strike: Callable[[], None]) -> None:
        self.count, self._at, self._strike = 0, at, strike
        self._log = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def reach(self) -> None:
        """Count a point."""
        self.count += 1
        if self.count == self._at:
            self._strike()

    def say(self, *what: Any) -> None:
        """Write a line that survives a kill."""
        os.write(self._log, (json.dumps(what) + "\n").encode())

    def install(self) -> None:
        """Put the points into this process."""
        answer = journal.Journal.answer

        def answering(own: journal.Journal, request: Any, draw: Callable[[], bytes]) -> bytes:
            place = own.place

            def drawing() -> bytes:
                self.reach()
                made = draw()
                self.say("drawn", place)
                self.reach()
                return made

            made = answer(own, request, drawing)
            self.say("used", place, hashlib.sha256(made).hexdigest())
            self.reach()
            return made

        setattr(journal.Journal, "answer", answering)  # noqa: B010
        for owner, name in ((run, "drawn"), (Reservation, "spend"), (artefact, "save_files")):
            setattr(owner, name, self._around(getattr(owner, name)))

    def _around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def done(*args: Any, **more: Any) -> Any:
            self.reach()
            out = work(*args, **more)
            self.reach()
            return out

        return done


@dataclass
class Case:
    """A fault: where answers are stored, what fails, and how it is repaired."""

    name: str
    ledger: str
    strike: Callable[[], None]
    mend: Callable[[], None]
    out: Path
    on_disk: bool = False


@dataclass
class Tally:
    """Outcome of the releases of one case."""

    points: int = 0
    paid: int = 0
    replayed: int = 0
    lost: int = 0
    twice: int = 0
    changed: int = 0
    drawn_twice: int = 0
    wrong: list[str] = field(default_factory=list)


def command(arguments: list[str], log: Path, at: int, strike: Callable[[], None], *, on_disk: bool) -> tuple[int, str]:
    """Run a command in a separate process; returns its exit status (negative for a signal) and its messages."""
    said = log.with_suffix(".stderr")
    child = os.fork()
    if not child:
        status = 99
        try:
            with said.open("w") as file, contextlib.redirect_stderr(file), contextlib.redirect_stdout(file):
                tempfile.tempdir = None
                if on_disk:  # rows are codes in TMPDIR, as for large tables
                    setattr(limits, "IN_MEMORY", 100)  # noqa: B010
                    frames.LARGE_BYTES = 0
                points = Points(log, at, strike)
                points.install()
                status = main(arguments)
                points.say("points", points.count)
        except SystemExit as stop:
            status = int(stop.code or 0)
        except BaseException as error:
            with suppress(Exception):
                said.open("a").write(f"TRACEBACK {error!r}")
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, said.read_text()


def interrupt(case: Case, project: Path, data: Path, log: Path, at: int, tally: Tally) -> int:
    """Interrupt one release at point ``at`` and resume it; returns the number of points that it has."""
    log.unlink(missing_ok=True)
    shutil.rmtree(case.out, ignore_errors=True)
    arguments = ["release", str(project), "--data", str(data), "--out", str(case.out), "--quiet"]
    known: set[str] = set()
    if case.ledger:
        arguments += ["--ledger", case.ledger, "--table", "people"]
        known = set(entries(case.ledger))
    command(arguments, log, at, case.strike, on_disk=case.on_disk)
    case.mend()
    told = lines(log)
    before = sum(line[0] == "used" for line in told)
    if at == 0:
        return next(int(line[1]) for line in told if line[0] == "points")
    tally.points += 1
    here = {k: e for k, e in entries(case.ledger).items() if k not in known} if case.ledger else {}
    paid = any(e.status != "returned" for e in here.values()) if case.ledger else before > 0
    tally.paid += paid
    if not paid:
        return 0
    entry = next(iter(here), "")
    resumed = ["resume", entry or str(case.out), "--data", str(data), "--quiet"]
    resumed += ["--out", str(case.out), "--ledger", case.ledger] if case.ledger else []
    status, said = 0, ""
    hidden = case.out.with_name(f".{case.out.name}.unfinished").exists()
    whole = (case.out / "release.json").exists()
    if whole and entry and here[entry].status == "reserved":  # delivered with a warning, and not recorded
        resumed[resumed.index("--out") + 1] = str(case.out.with_name("recorded"))
        shutil.rmtree(case.out.with_name("recorded"), ignore_errors=True)
        whole = False
    if hidden or not whole:
        status, said = command(resumed, log, 0, case.strike, on_disk=case.on_disk)
    if status or not (case.out / "statement.json").exists():
        tally.lost += 1
        tally.wrong.append(f"{case.name}, point {at}: {said.strip() or status}")
    check(case, lines(log), entry, before, tally)
    return 0


def check(case: Case, told: list[list[Any]], entry: str, before: int, tally: Tally) -> None:
    """Add what the record and the ledger show of one resumed release."""
    used: dict[int, str] = {}
    for what, place, *more in told:
        if what == "drawn" and place in used:
            tally.drawn_twice += 1
        if what == "used":
            tally.changed += used.setdefault(place, more[0]) != more[0]
    tally.replayed += before
    if entry:
        ended = entries(case.ledger)[entry]
        if ended.status != "spent" or ended.released is None or ended.counted > ended.reserved:
            tally.twice += 1
            tally.wrong.append(f"{case.name}: entry {entry} is {ended.status} with ρ = {ended.counted}")
        wrong = consistent(case.ledger)
        tally.twice += bool(wrong)
        tally.wrong += wrong
    hidden = [p.name for p in case.out.parent.glob(".*") if p.name.startswith((f".{case.out.name}", ".espalier-"))]
    tally.wrong += [f"{case.name}: {name} was left" for name in hidden]


def entries(where: str) -> dict[str, Any]:
    """Return the entries of a ledger by id."""
    return {e.id: e for e in Ledger(where).population_of("people").entries}


def lines(log: Path) -> list[list[Any]]:
    """Return the noted lines."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@contextmanager
def disk(place: Path) -> Iterator[Path]:
    """A separate small file system; raises :class:`Absent` where none may be mounted."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        raise Absent("no file system may be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def fill(place: Path) -> None:
    """Fill the disk."""
    with suppress(OSError), (place / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def limit_memory() -> None:
    """Leave little address space."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + SPARE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def cases(folder: Path, held: ExitStack) -> Iterator[Case]:
    """Yield all faults that can happen on this machine."""

    def nothing() -> None:
        pass

    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def term() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    out, sqlite = folder / "out", str(folder / "ledger.db")
    strikes = {"kill -9": kill, "SIGTERM": term, "memory limit": limit_memory}
    for name, strike in strikes.items():
        yield Case(f"{name}, no ledger", "", strike, nothing, out)
        yield Case(f"{name}, SQLite", sqlite, strike, nothing, out)
    yield Case("kill -9, rows on disk", sqlite, kill, nothing, out, on_disk=True)
    with suppress(Absent):
        for name in ("out", "TMPDIR", "ledger"):
            place = held.enter_context(disk(folder / f"disk-{name}"))

            def full(place: Path = place) -> None:
                fill(place)

            def room(place: Path = place) -> None:
                (place / "filler").unlink(missing_ok=True)

            if name == "TMPDIR":
                os.environ["TMPDIR"] = str(place)
            yield Case(
                f"full disk ({name})",
                "" if name == "out" else str(place / "ledger.db") if name == "ledger" else sqlite,
                full,
                room,
                place / "out" if name == "out" else out,
                on_disk=name == "TMPDIR",
            )
            os.environ.pop("TMPDIR", None)
    with suppress(Absent):
        running: Server = held.enter_context(server())

        def restart() -> None:
            with suppress(subprocess.CalledProcessError):
                running.start()

        yield Case("lost database", running.url, running.stop, restart, out)


def work(points: int, only: str = "") -> Iterator[tuple[str, Tally]]:
    """Interrupt a release at ``points`` points for each fault; yield the outcomes."""
    os.environ.pop("ESPALIER_LEDGER", None)
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="espalier-interrupted-")))
        os.environ["ESPALIER_LEDGER_KEY"] = str(folder / "key")
        rng = np.random.default_rng(0)
        data, project, log = folder / "data.csv", folder / "project.json", folder / "log"
        rows = "\n".join(",".join("xyz"[i] for i in row) for row in rng.integers(0, 3, (ROWS, 4)))
        data.write_text("a,b,c,d\n" + rows + "\n")
        for case in cases(folder, held):
            if only not in case.name:
                continue
            plan = replace(PLAN, delta=None) if case.ledger else PLAN
            project.write_text(Project("interrupted", SCHEMA, plan, one_row_per_person=True).dumps())
            if case.ledger and "people" not in Ledger(case.ledger, create=True).populations():
                Ledger(case.ledger).open_table("people", epsilon=100, delta=DELTA, who="faults")
            tally = Tally()
            number = interrupt(case, project, data, log, 0, tally)
            for at in sorted({round(x) for x in np.linspace(1, number, min(points, number))}):
                interrupt(case, project, data, log, at, tally)
            yield case.name, tally


def run_all() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--only", default="", help="only faults whose name contains this")
    opt = parser.parse_args()
    failed = False
    print("| fault | points | had paid | lost | counted twice | answers changed | drawn twice | answers replayed |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, t in work(opt.points, opt.only):
        counts = t.points, t.paid, t.lost, t.twice, t.changed, t.drawn_twice, t.replayed
        print(f"| {name} | {' | '.join(map(str, counts))} |", flush=True)
        for wrong in t.wrong:
            print(wrong, file=sys.stderr)
        failed |= bool(t.lost or t.twice or t.changed or t.drawn_twice or t.wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(run_all())
