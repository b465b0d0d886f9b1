"""A release in a separate process: its result is complete, its limits hold, and no way of ending is mistaken for
another."""

# ruff: noqa: ARG001 (tasks share one signature)

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import threading
import time
import warnings
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from espalier.core.errors import Cancelled, EspalierError, LedgerError
from espalier.core.ledger.ledger import Ledger
from espalier.core.methods.registry import METHODS
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.server import worker
from espalier.core.server.queue import Job
from espalier.core.server.release_job import Order, Paid, carry_out
from espalier.core.server.worker import Limits, run_apart
from espalier.core.tables.code_file import CodeFile
from espalier.core.tables.table import Table

SCHEMA = Schema((Column("a", "categorical", ("x", "y")), Column("b", "categorical", ("u", "v", "w"))))
FREE = Limits()


def table(rows: int = 500) -> Table:
    rng = np.random.default_rng(0)
    return Table(SCHEMA, {c.name: rng.integers(0, c.size, rows) for c in SCHEMA.columns}, rows)


# Tasks of a worker: functions of a module, found by their names.


def whole(given, report, begun):
    codes = CodeFile({"a": 300, "b": 2})
    for i in range(3):
        codes.append({"a": np.arange(100 * i, 100 * i + 100), "b": np.ones(100, int)})
    return codes, threading.Lock(), os.getpid()


def refused(given, report, begun):
    raise LedgerError("too little is left", key="again")


def broken(given, report, begun):
    begun()
    raise ValueError("row 17: Alice")


def a_function(given, report, begun):
    return lambda: given


def patient(given, report, begun):
    begun()
    report(0.5, "half")
    while True:
        time.sleep(0.01)
        report(0.5, "half")


def late(given, report, begun):
    begun()
    report(0.9, "nearly")
    time.sleep(1)
    return "paid for"


def killed(given, report, begun):
    if given:
        begun()
    os.kill(os.getpid(), signal.SIGKILL)


def greedy(given, report, begun):
    return len(np.ones(given << 17))


def written(given, report, begun):
    with Path(given).open("wb") as file:
        for _ in range(30):
            file.write(b"x" * (1 << 20))


def test_open_files_and_locks_arrive():
    codes, lock, other = run_apart(whole, None, lambda *_: None, lambda: None, FREE)
    assert other != os.getpid()
    batches = list(codes.batches())
    assert np.concatenate([b["a"] for b in batches]).tolist() == list(range(300))
    assert lock.acquire(blocking=False)
    codes.append({"a": np.zeros(5, int), "b": np.zeros(5, int)})
    assert codes.rows == 305
    codes.close()


def noisy(given, report, begun):
    warnings.warn("row 17: Alice", stacklevel=2)
    logging.getLogger("library").warning("row 17: %s", "Alice")
    logging.getLogger("library").warning(KeyError("row 17: Alice"))
    thread = threading.Thread(target=broken, args=(given, report, begun))
    thread.start()
    thread.join()

    class Unclosed:
        def __del__(self):
            raise ValueError("row 17: Alice")

    Unclosed()
    return "done"


def test_nothing_that_a_worker_prints_quotes_a_cell(capfd):
    """Previously, warnings, other libraries' logs, and errors in threads and deleted objects were printed in full."""
    assert run_apart(noisy, None, lambda *_: None, lambda: None, FREE) == "done"
    printed = capfd.readouterr().err
    assert [word for word in ("UserWarning", "ValueError", "KeyError", "row 17: %s") if word not in printed] == []
    assert "Alice" not in printed


def test_a_worker_runs_nothing_from_the_folder_in_which_the_server_started(tmp_path, monkeypatch):
    """Previously, a file there replaced a library, and ran with the rows and the ledger."""
    for name in ("pickle", "array", "socket", "signal", "espalier"):
        (tmp_path / f"{name}.py").write_text("import os; os._exit(9)", "utf-8")
    monkeypatch.chdir(tmp_path)
    codes, _, _ = run_apart(whole, None, lambda *_: None, lambda: None, FREE)
    assert codes.rows == 300
    codes.close()


def test_an_error_keeps_its_data_and_another_quotes_nothing(caplog):
    with pytest.raises(LedgerError, match="too little is left") as refusal:
        run_apart(refused, None, lambda *_: None, lambda: None, FREE)
    assert refusal.value.data == {"key": "again"}
    with pytest.raises(EspalierError, match=r"unexpected error \(ValueError\)") as strange:
        run_apart(broken, None, lambda *_: None, lambda: None, FREE)
    assert "Alice" not in str(strange.value) + caplog.text


def test_a_result_that_cannot_be_sent_is_said_to_be_so():
    with pytest.raises(EspalierError, match="could not be handed over"):
        run_apart(a_function, None, lambda *_: None, lambda: None, FREE)


def test_a_worker_that_dies_says_whether_anything_was_drawn():
    seen: list[bool] = []
    for began in (False, True):
        with pytest.raises(EspalierError, match="status -9"):
            run_apart(killed, began, lambda *_: None, lambda: seen.append(True), FREE)
        assert seen == [True] * began


def test_memory_and_files_have_limits(tmp_path):
    with pytest.raises(EspalierError, match="not enough memory"):
        run_apart(greedy, 2000, lambda *_: None, lambda: None, Limits(memory=1000))
    assert run_apart(greedy, 200, lambda *_: None, lambda: None, Limits(memory=1000)) == 200 << 17
    with pytest.raises(EspalierError, match="unexpected error"):
        run_apart(written, str(tmp_path / "f"), lambda *_: None, lambda: None, Limits(file=10))
    assert (tmp_path / "f").stat().st_size == 10 << 20


def test_a_cancelled_job_ends_and_a_cancel_that_is_late_gives_the_release():
    for task, state in ((patient, "cancelled"), (late, "done")):
        begun = threading.Event()
        job = Job(
            "release",
            lambda report, task=task, begun=begun: run_apart(task, None, report, begun.set, FREE),
            lambda *_: None,
        )
        assert begun.wait(30)
        job.cancel()
        job.wait(30)
        assert (job.state, job.result) == (state, "paid for" if state == "done" else None)


def test_a_worker_that_does_not_stop_is_killed(monkeypatch):
    monkeypatch.setattr(worker, "GRACE", 0.5)

    def report(fraction, message):
        if message == "nearly":
            raise Cancelled("half an hour is over")

    began = []
    start = time.monotonic()
    with pytest.raises(Cancelled, match="half an hour"):
        run_apart(late, None, report, lambda: began.append(True), FREE)
    assert began == [True]
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("kind", ["view", "table"])
def test_a_release_of_an_engine_s_table_states_its_kind(kind, tmp_path, monkeypatch):
    """Previously, releases of the app did not state the relation's kind, so neither report nor ledger mentioned a
    view."""
    file, place = tmp_path / "clinic.sqlite", str(tmp_path / "ledger.db")
    with closing(sqlite3.connect(file)) as con:
        con.execute("CREATE TABLE 'table' (a text)")
        con.executemany("INSERT INTO 'table' VALUES (?)", [("x",), ("y",)] * 50)
        con.execute("CREATE VIEW 'view' AS SELECT a FROM 'table'")
        con.commit()
    monkeypatch.setenv("ESPALIER_LEDGER", place)
    monkeypatch.setenv("ESPALIER_SERVER_TABLES", "env:CLINIC")
    monkeypatch.setenv("CLINIC", f"sqlite://{file}")
    Ledger(place, create=True).open_table("t", epsilon=9, delta=1e-6)
    schema = Schema((Column("a", "categorical", ("x", "y")),))
    order = Order(
        Project("p", schema, Plan("mst", 1.0, 1e-6)), None, ("env:CLINIC", kind), 100, Paid("t", "anna", "", False)
    )
    made = carry_out(order, lambda *_: None, lambda: None)
    (entry,) = Ledger(place).population_of("t").entries
    assert (made.relation, entry.relation) == (kind, kind)


@pytest.mark.parametrize("method", ["mst", "privbayes", "decoder", "independent", "workload"])
def test_a_release_of_each_kind_of_model_comes_back_whole(method, tmp_path, monkeypatch):
    """The decoder's release is made in a separate process; the others are only serialised, as the worker would send
    them."""
    assert method in METHODS
    place = str(tmp_path / "ledger.db")
    monkeypatch.setenv("ESPALIER_LEDGER", place)
    Ledger(place, create=True).open_table("t", epsilon=9, delta=1e-6)
    order = Order(Project("p", SCHEMA, Plan(method, 1.0, 1e-6)), table(), None, 500, Paid("t", "anna", "", False))
    if method == "decoder":
        said, begun = [], []
        made = run_apart(carry_out, order, lambda f, m: said.append(m), lambda: begun.append(True), FREE)
        assert begun == [True]
        assert "Measuring" in said
    else:
        made = carry_out(order, lambda *_: None, lambda: None)
        ends = __import__("socket").socketpair()
        with worker._Line(ends[0]) as ours, worker._Line(ends[1]) as theirs:
            sender = threading.Thread(target=ours.send, args=(made,))
            sender.start()
            made = theirs.receive()
            sender.join()
    (entry,) = Ledger(place).population_of("t").entries
    assert entry.status == "spent"
    assert made.reservation.entry.id == entry.id
    assert made.files.keys() == Ledger(place).files(entry.released).keys()
    assert made.rows == 500
    assert made.spending.rho == pytest.approx(entry.counted)
