"""Faults that the ledger must survive: kill -9, a full disk, a read-only folder, a lost database, a closed tab.

    python -m tests.reliability.faults                  300 releases from 4 processes, killed at random moments
    python -m tests.reliability.faults --postgres       the same on a PostgreSQL server that stops in the middle
    python -m tests.reliability.faults --releases 40    a short run

Every worker notes, in a file that survives a kill, the entry it received, that it is about to draw, and the release it
received. Afterwards the ledger must open and verify. Its charges must not exceed the total. Every received entry must
be in it once, no entry with a draw may be returned, and every release must be in it with its hash. Prints JSON; exit
status 1 if any of this fails.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import termios
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from espalier.core.errors import Cancelled, EspalierError, LedgerError, LedgerUnavailable
from espalier.core.ledger import database, reasons, store
from espalier.core.ledger.account import Account
from espalier.core.ledger.archive import digest_of
from espalier.core.ledger.ledger import Ledger
from espalier.core.privacy.accounting import epsilon_of, rho_of
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.spending import Spending
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.artefact import Release
from espalier.core.release.spend import release
from espalier.core.tables.table import Table
from tests.support.postgres import Absent, Server, server

DELTA, EPSILON = 1e-6, 0.05
SCHEMA = Schema(tuple(Column(n, "categorical", ("x", "y", "z")) for n in "abc"))
PROJECT = Project("faults", SCHEMA, Plan("mst", EPSILON, DELTA))
SHARE = 0.6
"""Share of the attempted releases that the total pays for; the others must be refused."""
ROUNDED = Fraction(1, 10**9)
"""Relative error allowed in a sum of floats."""


def table() -> Table:
    """Return a small table."""
    rng = np.random.default_rng(0)
    return Table(SCHEMA, {n: rng.integers(0, 3, 500).astype(np.uint8) for n in "abc"}, 500)


def opened(where: str, releases: float, table: str = "people") -> Ledger:
    """Return a ledger whose total pays for ``releases`` of the project's."""
    ledger = Ledger(where, create=True)
    total = epsilon_of(releases * rho_of(EPSILON, DELTA), DELTA)
    ledger.open_table(table, epsilon=total, delta=DELTA, who="faults")
    return ledger


def consistent(where: str) -> list[str]:
    """Return the faults of the ledger: those that `verify` reports, and a sum of our own over the stored rows."""
    ledger = Ledger(where)
    rows = ledger.store.read()
    counts: dict[str, Fraction] = {}
    for row in rows:
        if row["kind"] in ("reserve", "spend", "return"):
            counts[row["entry"]] = Fraction(row["rho"])
    wrong = ledger.verify()
    for row in rows:
        people = row["population"]
        counted = sum(counts[r["entry"]] for r in rows if r["kind"] == "reserve" and r["population"] == people)
        if row["kind"] == "open" and counted > Fraction(row["rho"]):
            wrong.append(f"the charged budget exceeds the total of {people}")
    turns = [r for r in rows if r["kind"] in ("reserve", "spend", "return")]
    twice = [k for k, n in Counter((r["entry"], r["kind"]) for r in turns).items() if n > 1]
    parts: dict[str, Fraction] = {}
    for row in rows:
        if row["kind"] in ("select", "measure"):
            parts[row["entry"]] = parts.get(row["entry"], Fraction(0)) + Fraction(row["rho"])
    wrong += [f"more was drawn than is charged: {e}" for e, drawn in parts.items() if drawn > counts[e] * (1 + ROUNDED)]
    whole = [r["entry"] for r in turns if r["kind"] == "spend" and r["released"]]
    wrong += [f"parts are lost: {e}" for e in whole if not parts.get(e, 0) >= counts[e] * (1 - ROUNDED)]
    ends = Counter(r["entry"] for r in rows if r["kind"] in ("spend", "return"))
    wrong += [f"doubled: {k}" for k in twice] + [f"ended twice: {e}" for e, n in ends.items() if n > 1]
    return wrong


def kills(where: str, releases: int, processes: int, seed: int, folder: Path) -> dict[str, Any]:
    """``processes`` workers attempt ``releases`` releases; at random moments, one worker is killed and replaced."""
    ledger = opened(where, SHARE * releases)
    rng, private = random.Random(seed), table()
    tokens, give = os.pipe()
    os.write(give, b"." * releases)
    notes = folder / "notes"

    def work() -> None:
        log = os.open(notes, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        given = ""

        def note(what: str, *more: str) -> None:
            os.write(log, (" ".join((what, given, *more)) + "\n").encode())

        reserve, debit = Account.reserve, Spending.debit

        def reserving(self: Account, *args: Any) -> Any:
            nonlocal given
            made = reserve(self, *args)
            given = made.entry.id
            note("given")
            return made

        def debiting(self: Spending, *args: Any) -> None:
            if given:
                note("draws")
            debit(self, *args)

        setattr(Account, "reserve", reserving)  # noqa: B010
        setattr(Spending, "debit", debiting)  # noqa: B010
        account = ledger.account("people")
        while os.read(tokens, 1):
            given = ""
            try:
                made = release(PROJECT, private, ledger=account)
            except LedgerError:
                note("refused")
            else:
                note("made", digest_of(made.files), made.ledger_trouble.replace(" ", "_") or "recorded")

    def fork() -> int:
        child = os.fork()
        if child:
            return child
        status = 1
        try:
            os.close(give)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    living, killed, failed = [fork() for _ in range(processes)], 0, 0
    begun = time.perf_counter()
    left, pause = releases, 0.0
    while left:
        pause += rng.expovariate(1 / 3)  # one kill for every three releases that begin, at a random moment
        while left and releases - left < pause:
            time.sleep(0.002)
            left = int.from_bytes(fcntl.ioctl(tokens, termios.FIONREAD, bytes(4)), sys.byteorder)
        time.sleep(rng.uniform(0, 0.2))
        victim = rng.choice(living)
        os.kill(victim, signal.SIGKILL)
        killed += 1
        living.remove(victim)
        failed += os.waitpid(victim, 0)[1] != signal.SIGKILL
        living.append(fork())
    os.close(give)
    for child in living:
        failed += os.waitpid(child, 0)[1] != 0
    os.close(tokens)
    seconds = time.perf_counter() - begun

    said: dict[str, list[list[str]]] = {}
    for line in notes.read_text().splitlines():
        what, *more = line.split(" ")
        said.setdefault(what, []).append(more)
    entries = {e.id: e for e in Ledger(where).population_of("people").entries}
    given = [m[0] for m in said.get("given", [])]
    made = {m[0]: m[1:] for m in said.get("made", [])}
    unsure = len(entries) - len(set(given))  # the worker was killed between the commit and the note
    wrong = consistent(where)
    wrong += ["a worker failed"] * failed
    wrong += [f"lost: {e}" for e in given if e not in entries] + ["given twice"] * (len(given) != len(set(given)))
    wrong += ["an entry without a request"] * (unsure < 0 or unsure > killed)
    wrong += [
        f"returned although something was drawn: {m[0]}"
        for m in said.get("draws", [])
        if entries[m[0]].status == "returned"
    ]
    for entry, (released, trouble) in made.items():
        known = entries[entry]
        if trouble != "recorded" or (known.status, known.released) != ("spent", released):
            wrong.append(f"delivered but not in the ledger: {entry}: {trouble}")
    statuses = Counter(e.status for e in entries.values())
    further = 0
    try:
        while further <= releases:  # further releases until nothing more fits
            release(PROJECT, private, ledger=ledger.account("people"))
            further += 1
        wrong.append("the total was never reached")
    except LedgerError:
        wrong += consistent(where)
    population = Ledger(where).population_of("people")
    return {
        "what": f"kill -9, {releases} releases from {processes} processes",
        "wrong": wrong,
        "kills": killed,
        "handed over": len(made),
        "refused": len(said.get("refused", [])),
        "entries": dict(statuses),
        "released one by one up to the total": further,
        "spent of the total": population.spent / population.rho,
        "seconds": round(seconds, 1),
    }


def fault(what: str, where: str, break_it: Callable[[], str], expected: str = "") -> dict[str, Any]:
    """Run ``break_it``, which returns the message that a person saw; the ledger must be consistent afterwards."""
    try:
        message = break_it()
    except EspalierError as error:
        message = str(error)
    wrong = consistent(where)
    if not message or expected not in message:
        wrong.append(f"the message does not say {expected!r}")
    return {"what": what, "wrong": wrong, "message": message}


def as_child(work: Callable[[], str]) -> str:
    """Run ``work`` in a separate process that may be limited; returns its message."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        try:
            try:
                message = work()
            except EspalierError as error:
                message = str(error)
            os.write(into, message.encode()[:4000])
        except BaseException:
            os.write(into, b"TRACEBACK " + traceback.format_exc().encode()[-2000:])
        finally:
            os._exit(0)
    os.close(into)
    message = b"".join(iter(lambda: os.read(out, 4096), b"")).decode()
    os.waitpid(child, 0)
    if message.startswith("TRACEBACK"):
        raise RuntimeError(message)
    return message


def until_it_fails(where: str) -> str:
    """Release until a message appears."""
    account, private = Ledger(where).account("people"), table()
    for _ in range(500):
        made = release(PROJECT, private, ledger=account)
        if made.ledger_trouble:
            return f"delivered, with the message: {made.ledger_trouble}"
    return ""


def full_disk(where: str) -> dict[str, Any]:
    """No file may grow to more than slightly above the ledger's size."""
    opened(where, 1000)
    size = Path(where).stat().st_size

    def limited() -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40_000, size + 40_000))
        return until_it_fails(where)

    return fault("a full disk after a draw", where, lambda: as_child(limited), "free some space")


def full_disk_before(where: str) -> dict[str, Any]:
    """Return the same fault during the reservation: nothing is drawn."""
    opened(where, 1000)

    def limited() -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        account = Ledger(where).account("people")
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        setattr(PrivateCurator, "measure", lambda *_: os._exit(9))  # noqa: B010  # no draw without a reservation
        release(PROJECT, table(), ledger=account)
        return ""

    found = fault("a full disk before a draw", where, lambda: as_child(limited), "free some space")
    if Ledger(where).population_of("people").entries:
        found["wrong"].append("an entry was left")
    return found


def full_tmpfs(folder: Path) -> dict[str, Any]:
    """A small file system that really is full, where one may be mounted."""
    place = folder / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        return {"what": "a full file system", "wrong": [], "skipped": "no file system may be mounted here"}
    try:
        where = str(place / "l.db")
        opened(where, 1000)
        return fault("a full file system", where, lambda: until_it_fails(where), "Free some space")
    finally:
        subprocess.run(["umount", str(place)], check=False)


def read_only(where: str) -> dict[str, Any]:
    """A folder and a file that are read-only."""
    opened(where, 10)
    release(PROJECT, table(), ledger=Ledger(where).account("people"))
    folder = Path(where).parent
    private = table()

    def limited() -> str:
        if os.getuid() == 0:  # root can write anywhere
            os.setgid(65534)
            os.setuid(65534)
            os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp()  # each person has their own home folder
        account = Ledger(where).account("people")
        release(PROJECT, private, ledger=account)
        return ""

    for path in folder.iterdir():
        if os.getuid() == 0:
            os.chown(path, 65534, 65534)
        path.chmod(0o400)
    folder.chmod(0o555)
    for parent in folder.parents[:2] if os.getuid() == 0 else ():
        parent.chmod(parent.stat().st_mode | 0o011)
    try:
        found = fault("a read-only folder", where, lambda: as_child(limited), "is not writable")
    finally:
        folder.chmod(0o755)
        for path in folder.iterdir():
            path.chmod(0o600)
    if len(Ledger(where).population_of("people").entries) != 1:
        found["wrong"].append("an entry was left")
    return found


def locked(where: str) -> dict[str, Any]:
    """Another process locks the ledger for longer than a writer waits."""
    opened(where, 10)
    patience = reasons.PATIENCE
    setattr(database, "PATIENCE", 1)  # noqa: B010 (a name that the module imports)
    try:
        with store.Store(where)._writing():
            return fault("a ledger that another process locks", where, lambda: until_it_fails(where), "try again")
    finally:
        setattr(database, "PATIENCE", patience)  # noqa: B010


def vanished(where: str) -> dict[str, Any]:
    """The file is removed during a release, and restored."""
    opened(where, 10)
    away = f"{where}-away"

    def taken(fraction: float, _: str) -> None:
        if fraction >= 0.4 and os.path.exists(where):
            os.rename(where, away)

    def run() -> str:
        made: Release = release(PROJECT, table(), taken, Ledger(where).account("people"))
        gone = "not created again" if not os.path.exists(where) else "MADE ANEW"
        os.rename(away, where)
        return f"{gone}; delivered {made.rows} rows, with the message: {made.ledger_trouble}"

    found = fault("a ledger that is lost during a release", where, run, "counts in full")
    if "MADE ANEW" in found["message"]:
        found["wrong"].append("an empty ledger took its place")
    return _still_reserved(found, where, "people")


def _still_reserved(found: dict[str, Any], where: str, table: str) -> dict[str, Any]:
    if [e.status for e in Ledger(where).population_of(table).entries] != ["reserved"]:
        found["wrong"].append("the reserved budget is not charged")
    return found


def lost_connection(running: Server) -> dict[str, Any]:
    """The server stops during a release, as in a power cut, and is down for the next one; then it runs again."""
    where = running.url

    def cut(fraction: float, _: str) -> None:
        if fraction >= 0.4 and not down:
            running.stop()
            down.append(True)

    down: list[bool] = []

    def run() -> str:
        account = Ledger(where).account("others", again=True)
        made: Release = release(PROJECT, table(), cut, account)
        try:
            release(PROJECT, table(), ledger=account)
            return ""
        except LedgerUnavailable as error:
            said = str(error)
        running.start()
        return f"delivered {made.rows} rows, with the message: {made.ledger_trouble}; then: {said}"

    opened(where, 10, "others")
    found = fault("a database server that is lost during a release", where, run, "counts in full")
    return _still_reserved(found, where, "others")


def cancelled(where: str) -> dict[str, Any]:
    """A release is cancelled at every stage. Before the first draw, its reservation is returned; afterwards, it stays
    reserved until the release is resumed or closed.
    """
    ledger = opened(where, 20)
    moments, statuses = (0.0, 0.3, 0.5, 0.9, 1.0), []
    message = ""
    for moment in moments:

        def stop(fraction: float, _: str, at: float = moment) -> None:
            if fraction >= at:
                raise Cancelled("cancelled")

        try:
            release(PROJECT, table(), stop, ledger.account("people"))
        except Cancelled as error:
            message = str(error)
        statuses.append(ledger.population_of("people").entries[-1].status)
    found = fault("a run that is cancelled at five points", where, lambda: message, "cancelled")
    if statuses != ["returned", *["reserved"] * 4]:  # each can be resumed
        found["wrong"].append(f"{statuses}")
    return found


def closed_tab(where: str) -> dict[str, Any]:
    """Test that the app's job continues after its session has ended, and that the ledger keeps its result."""
    from espalier.core.server.queue import Job

    ledger, private = opened(where, 10), table()

    def work(report: Any) -> Any:
        return release(PROJECT, private, report, ledger.account("people"))

    job = Job("release", work, lambda *_: None)
    thread = job._thread
    del job
    thread.join(60)
    (entry,) = ledger.population_of("people").entries
    files = ledger.files(entry.released or "")
    return fault("a closed tab", where, lambda: f"{entry.status}; kept: {', '.join(files)}", "spent; kept")


def run(releases: int, processes: int, seed: int, postgres: bool) -> list[dict[str, Any]]:
    """Return all faults, each on a separate ledger."""
    with ExitStack() as stack:
        top = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="espalier-faults-")))
        os.environ["ESPALIER_LEDGER_KEY"] = str(top / "shared.key")
        folder = top / "kills"
        folder.mkdir()
        if postgres:
            running = stack.enter_context(server())
            return [kills(running.url, releases, processes, seed, folder), lost_connection(running)]
        found = [kills(str(folder / "l.db"), releases, processes, seed, folder)]
        os.environ.pop("ESPALIER_LEDGER_KEY")
        for number, one in enumerate((full_disk, full_disk_before, read_only, locked, vanished, cancelled, closed_tab)):
            (top / str(number)).mkdir()
            found.append(one(str(top / str(number) / "l.db")))
        return [*found, full_tmpfs(top)]


def main() -> int:
    """Read the command line and run the chosen faults."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.reliability.faults", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--releases", type=int, default=300)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0, help="seed for the moments of the kills")
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL server started for this run")
    opt = parser.parse_args()
    try:
        found = run(opt.releases, opt.processes, opt.seed, opt.postgres)
    except Absent as why:
        print(f"skipped: {why}", file=sys.stderr)
        return 0
    print(json.dumps(found, indent=1, ensure_ascii=False))
    return 1 if any(one["wrong"] for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
