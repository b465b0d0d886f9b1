"""Audit events, with one JSON object per line for each sign-in, opening, refusal, plan, release, download and ledger
entry.

An event records the person, the time and the kind of action. It never contains a cell, a count of real rows, an address
of a database or the text of an error, which could name a column. Names of tables, files and columns are in ``names``,
and only if the operator sets ``ESPALIER_AUDIT_NAMES=1``.

Proof that no private value leaves: every argument of :func:`emit` is a name from `EVENTS`, an address of the sign-in
provider, a number of a release's public budget, or a text from a fixed list of this code. `tests/server/test_events.py`
runs the app with a marked table and finds no mark in the events.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

Kind = Literal["start", "stop", "sign-in", "sign-out", "open", "refuse", "plan", "release", "download", "ledger"]
EVENTS: tuple[Kind, ...] = (
    *("start", "stop", "sign-in", "sign-out"),
    *("open", "refuse", "plan", "release", "download", "ledger"),
)
LOG, NAMES = "ESPALIER_AUDIT_LOG", "ESPALIER_AUDIT_NAMES"
_log = logging.getLogger("espalier.audit")


def emit(
    kind: Kind, who: str = "", names: Mapping[str, str] | None = None, **facts: str | int | float | bool | None
) -> None:
    """Write an event. An event that cannot be written to its file goes to the log, so no one's work is interrupted."""
    event: dict[str, object] = {
        "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "event": kind,
        "who": who,
        **facts,
    }
    if names and os.environ.get(NAMES) == "1":
        event["names"] = dict(names)
    place = os.environ.get(LOG)
    if place:
        line = json.dumps(event, ensure_ascii=True) + "\n"
        try:
            file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(file, line.encode("ascii"))  # one write, so that lines of two processes do not mix
            finally:
                os.close(file)
            return
        except OSError:
            pass
    _log.info(kind, extra={"facts": event})


def trouble() -> str:
    """Return the reason why events cannot be written to their file; empty if they can, or if no file is set."""
    place = os.environ.get(LOG)
    if not place:
        return ""
    try:
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError as error:
        return f"the audit log cannot be written: {error.strerror}"
    return ""


class JsonLines(logging.Formatter):
    """One JSON object per line. An exception is represented by its type and place, because its text may quote a
    cell.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        if facts := getattr(record, "facts", None):
            line |= facts
        else:
            # the arguments of another library may quote a cell
            line["message"] = record.getMessage() if record.name.startswith("espalier") else str(record.msg)
        if record.exc_info and record.exc_info[0]:
            frame = record.exc_info[2]
            while frame is not None and frame.tb_next:
                frame = frame.tb_next
            where = f"{os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}" if frame else ""
            line |= {"error": record.exc_info[0].__name__, "where": where}
        return json.dumps(line, ensure_ascii=True)
