"""Bad input: hundreds of tables and projects on the command line lead to a clear message at worst."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from espalier.core.cli.main import main
from tests.support import corpus

ROOT = Path(__file__).resolve().parent.parent
FILES = {"synthetic.csv", "release.json", "report.html", "model.npz", "answers.npz", "croissant.json", "project.json"}
FILES |= {"label.html", "registry.yaml", "statement.json"}
TABLES = corpus.tables()
PROJECTS = corpus.projects()
SECONDS = 20


class Hung(BaseException):
    """No code that reads a table may catch this."""


@contextmanager
def no_hang() -> Iterator[None]:
    """Ends a computation after SECONDS of processor time, or six times as long by the clock, since other work may be
    running.
    """

    def ring(*_: object) -> None:
        raise Hung(f"more than {SECONDS} s of work")

    timers = ((signal.ITIMER_PROF, signal.SIGPROF, SECONDS), (signal.ITIMER_REAL, signal.SIGALRM, 6 * SECONDS))
    before = [signal.signal(rings, ring) for _, rings, _ in timers]
    for timer, _, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (timer, rings, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(rings, handler)


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*args: str) -> int:
    with no_hang():
        try:
            return main(list(args))
        except SystemExit as stop:
            return int(stop.code or 0)


def told(err: str) -> None:
    lines = err.strip().splitlines()
    assert 1 <= len(lines) <= 3, err[:500]
    assert lines[-1].startswith("espalier: ")
    assert all(len(line) < 1000 for line in lines)
    assert all(c.isprintable() for line in lines for c in line), ascii(err)[:500]


def test_the_corpus_is_large_enough():
    assert len(TABLES) >= 150
    assert len({c.name for c in TABLES}) == len(TABLES)


@pytest.mark.parametrize("case", TABLES, ids=[c.name for c in TABLES])
def test_tables(work, capsys, case):
    (work / case.file).write_bytes(case.make())
    (work / "p.json").write_text(json.dumps(case.project), "utf-8")
    before = {p.name for p in work.iterdir()}
    status = run("release", "p.json", "--data", case.file, "--out", "o", "--quiet")
    err = capsys.readouterr().err
    if case.status is not None:
        assert status == case.status, err[:500]
    if status == 0:
        assert {p.name for p in (work / "o").iterdir()} == FILES
        assert run("evaluate", "o", "--data", case.file) == 0, capsys.readouterr().err[:500]
    else:
        assert status == 2
        told(err)
        assert {p.name for p in work.iterdir()} == before, "no output folder is left"


@pytest.mark.parametrize("name", PROJECTS)
def test_broken_projects_are_refused(work, capsys, name):
    (work / "p.json").write_bytes(PROJECTS[name])
    assert run("plan", "p.json", "--rows", "60") == 2
    told(capsys.readouterr().err)


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.nightly)])
def test_every_key_with_every_wrong_value(work, capsys, step):
    """With every fourth change, each key still gets at least five values, and each value is tried on a quarter of the
    keys.
    """
    statuses = []
    for name, changed in itertools.islice(corpus.broken(), 0, None, step):
        (work / "p.json").write_text(json.dumps(changed), "utf-8")
        try:
            statuses.append(run("plan", "p.json", "--rows", "60"))
        except Exception as error:
            pytest.fail(f"{name}: {type(error).__name__}: {error}")
        captured = capsys.readouterr()
        if statuses[-1]:
            assert statuses[-1] == 2, name
            told(captured.err)
        else:
            assert "total spent" in captured.out, name
    assert len(statuses) > 1000 / step
    assert statuses.count(2) > 0.8 * len(statuses), "almost all of these are wrong"
    assert statuses.count(0) > 0


@pytest.mark.parametrize("name", ["csv: bytes", "xlsx: half a zip", "parquet: lists", "own project: column '=1+1'"])
def test_in_a_process_of_its_own(work, name):
    case = next(c for c in TABLES if c.name == name)
    (work / case.file).write_bytes(case.make())
    (work / "p.json").write_text(json.dumps(case.project), "utf-8")
    command = [sys.executable, "-m", "core", "release", str(work / "p.json"), "--data", case.file, "--out", "o"]
    got = subprocess.run(
        command, cwd=work, env={"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}, capture_output=True, text=True
    )
    assert got.returncode == case.status
    assert "Traceback" not in got.stderr
    assert (work / "o").exists() == (case.status == 0)
