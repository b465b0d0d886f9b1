"""The audit of the seams finds them closed, and finds one that is opened on purpose."""

from __future__ import annotations

from unittest import mock

import pytest

from espalier.core.release import run
from espalier.core.tables import reading
from tests.audits import audit, seams


def named(check) -> seams.Seam:
    return next(s for s in seams.SEAMS if s.check is check)


@pytest.mark.parametrize("check", [seams.reader, seams.one_person, seams.in_engine, seams.bought, seams.figures])
def test_a_closed_seam_is_found_closed(check):
    fine, came = seams.judge(named(check))
    assert fine, came


def test_a_reader_that_looks_at_no_line_is_caught():
    with mock.patch.object(reading, "check_lines", return_value=None):
        fine, came = seams.judge(named(seams.reader))
    assert not fine
    assert "exit 0" in came or "not named" in came


def test_a_release_that_tells_the_rows_of_a_person_is_caught():
    """Without noise, nothing hides a leak: even the smallest difference in a file counts."""
    with mock.patch.object(run, "bounded", lambda table, *_: table):
        fine, came = seams.judge(named(seams.one_person))
    assert not fine
    assert "person column" in came


def test_the_audit_runs_the_seams(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["audit", "seams"])
    monkeypatch.setattr(seams, "SEAMS", (named(seams.figures),))
    assert audit.main() == 0
    assert "every seam is closed" in capsys.readouterr().out
