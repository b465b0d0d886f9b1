"""Audit events: one line of JSON for each sign-in, opening, refusal, plan, release, download and ledger entry.

An event records the person, the time and the kind of action. It never contains a cell, a count of real rows, an address
of a database or the message of an error, which could name a column. Names of tables, files and columns are recorded, in
``names``, only if the operator sets ``ESPALIER_AUDIT_NAMES=1``.

Proof that no event contains a private value: every argument of :func:`emit` is a name from `EVENTS`, an address of the
sign-in provider, a number of a release's public budget, or text from a fixed list in this code.
`tests/server/test_events.py` runs the app with a marked table and finds no mark in the events.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal

Kind = Literal["start", "stop", "sign-in", "sign-out", "open", "refuse", "plan", "release", "download", "ledger"]
EVENTS: tuple[Kind, ...] = (
    *("start", "stop", "sign-in", "sign-out"),
    *("open", "refuse", "plan", "release", "download", "ledger"),
)
LOG, NAMES = "ESPALIER_AUDIT_LOG", "ESPALIER_AUDIT_NAMES"
_log, _uncaught = logging.getLogger("espalier.audit"), logging.getLogger("espalier.uncaught")


def emit(
    kind: Kind, who: str = "", names: Mapping[str, str] | None = None, **facts: str | int | float | bool | None
) -> None:
    """Write an event. If an event cannot be written to its file, it is written to the log, so that no one's work is
    interrupted.
    """
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
                os.write(file, line.encode("ascii"))  # a single write, so that the lines of two processes do not mix
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


def log_as_json() -> logging.Handler:
    """Write the log to standard error as JSON, without text that may quote a cell; return the handler. Uncaught
    exceptions and warnings are logged too, because Python would print their text.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)

    def uncaught(kind: type[BaseException] | None, _: Any = None, trace: TracebackType | None = None) -> None:
        _uncaught.error("uncaught: %s in %s", "an error" if kind is None else kind.__name__, _place(trace))

    def raised(said: Any) -> None:
        uncaught(said.exc_type, None, said.exc_traceback)

    def warned(
        message: object, category: type[Warning], filename: str, lineno: int, file: object = None, line: object = None
    ) -> None:
        del message, file, line
        _uncaught.warning("warning: %s in %s:%s", category.__name__, os.path.basename(filename), lineno)

    sys.excepthook, sys.unraisablehook, threading.excepthook = uncaught, raised, raised
    warnings.showwarning = warned
    return handler


def _place(trace: TracebackType | None) -> str:
    """Return the file and line of the innermost call."""
    while trace is not None and trace.tb_next:
        trace = trace.tb_next
    return "" if trace is None else f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"


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
            # the arguments of another library may quote a cell, and so may an error that it logs as a message
            said = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
            line["message"] = record.getMessage() if record.name.startswith("espalier") else said
        if record.exc_info and record.exc_info[0]:
            line |= {"error": record.exc_info[0].__name__, "where": _place(record.exc_info[2])}
        return json.dumps(line, ensure_ascii=True)
