"""Connections to engines: causes of failure, relation names, and time limits.

A driver's message may quote a password or a cell, so it is never shown. Instead, a refusal names one cause from a fixed
list and its remedy. No row is read while a connection is opened, so the cause may be derived from the text of the
driver's message. While rows are read, the cause is derived only from the error's type and code, because a cell must not
influence what Espalier reports.
"""

from __future__ import annotations

import os
import re

from espalier.core.errors import TableError

SECONDS = "ESPALIER_STATEMENT_SECONDS"
LONGEST, LOCKED = 3600, 30
"""Default time limit of a statement, and its longest wait for a lock, in seconds."""

CAUSES = {
    "TLS": "the encrypted connection (TLS) to the server failed. Check sslmode and the certificates in the URL",
    "unknown host": "no host with this name was found. Correct the host in the URL",
    "refused": "no server answers at this address. Check the host and port, and that the server is running",
    "authentication": "the server rejects this user. Check the user, the password and the server's access rules",
    "no such database": "the server has no database with this name. Correct the name at the end of the URL",
    "no such relation": "the database has no such table or view, or this user may not see it. Write SCHEMA.NAME",
    "no such file": "there is no such file. Correct the path",
    "permission": "this user may not read it. Request SELECT on the relation, or read permission for the file",
    "locked": "another process holds a lock on it. Try again after that process has ended",
    "time limit": f"a statement took longer than its limit. Raise {SECONDS}, or read from a table instead of a view",
    "no room": "the server has no space left on its disk",
    "lost": "the connection was lost. Try again",
}
"""Description and remedy of each cause."""

_WORDS = (
    ("TLS", r"\bssl\b|\btls\b|certificate|no encryption"),
    ("unknown host", r"translate host|name or service not known|resolve host|name resolution|unknown .*server host"),
    ("time limit", r"timed? ?out"),
    ("refused", r"refused|no such file or directory.*\n.*server running|can't connect to .*server|\b200[23]\b"),
    ("authentication", r"authentication|password|access denied|pg_hba|login failed|role .* does not exist"),
    ("no such file", r"read-only mode: database does not exist"),
    ("no such database", r"database .*does not exist|unknown database"),
    ("locked", r"\block"),
    ("permission", r"permission denied"),
    ("no such file", r"no such file|does not exist|unable to open database"),
)
_CODES = {
    "57014": "time limit",
    "25P03": "lost",
    "55P03": "locked",
    "40P01": "locked",
    "42501": "permission",
    "42P01": "no such relation",
    "53100": "no room",
    "57P01": "lost",
    "57P02": "lost",
    "57P03": "refused",
    "28000": "authentication",
    "28P01": "authentication",
    "3D000": "no such database",
}
"""Cause of failure for each SQLSTATE."""


def while_opening(error: Exception) -> str:
    """Return the cause of an error that a driver raised before any row was read, or its type if no cause is known."""
    if type(error).__name__ == "TableNotFound":
        return CAUSES["no such relation"]
    if (known := while_reading(error)) or (known := _by_words(str(error).lower())):
        return known
    return type(error).__name__


def while_reading(error: BaseException) -> str:
    """Return the cause for the error's type and code; empty if none is known."""
    if isinstance(error, FileNotFoundError):
        return CAUSES["no such file"]
    if isinstance(error, PermissionError):
        return CAUSES["permission"]
    code = getattr(error, "sqlstate", None)
    return CAUSES[_CODES[code]] if isinstance(code, str) and code in _CODES else ""


def _by_words(text: str) -> str:
    return next((CAUSES[cause] for cause, words in _WORDS if re.search(words, text)), "")


def time_limit() -> int:
    """Return the seconds that one statement may take; raises :class:`TableError` if the setting is not a number."""
    text = os.environ.get(SECONDS) or str(LONGEST)
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 10**6):
        raise TableError(f"{SECONDS} must be a whole number of seconds, at least 1")
    return int(text)


_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def parts_of(name: str) -> list[str]:
    """Return the parts of a relation's name. A part that contains a dot or a quote must be in quotes, as in SQL.

    Raises :class:`TableError` for any other form.
    """
    parts, at = [], 0
    while found := _PART.match(name, at):
        parts.append(found[1].replace('""', '"') if found[1] is not None else found[2])
        at = found.end()
        if at == len(name):
            return parts
        if name[at] != ".":
            break
        at += 1
    raise TableError(
        'the name of the relation cannot be read. Write SCHEMA.NAME, and quote a part that contains a dot: "A.B"'
    )
