"""Plain-language causes and remedies for errors of a ledger's database."""

from __future__ import annotations

PATIENCE = 30
"""Seconds to wait for another writer."""
DAMAGED = "it is damaged; restore a backup and account for the releases made since"


def reason(error: Exception) -> str:
    """Return the cause of a database error and its remedy."""
    if isinstance(error, PermissionError):
        return "the file or its folder is not writable; allow writing, or name another ledger"
    if isinstance(error, OSError):
        return f"{error.strerror or error}"
    if isinstance(error, UnicodeDecodeError):  # this message may be long; SQLite decodes names and text
        return DAMAGED
    said = str(getattr(error, "orig", None) or error)
    for part, words in (
        ("locked", f"another process has been writing for more than {PATIENCE} seconds; try again"),
        ("lock timeout", f"another process has been writing for more than {PATIENCE} seconds; try again"),
        ("readonly", "the file or its folder is not writable; allow writing, or name another ledger"),
        ("unable to open", "the file or its folder is not writable; allow writing, or name another ledger"),
        ("disk is full", "the disk is full; free some space and try again"),
        (
            "disk I/O",
            "the disk accepts no more data because it is full, at a limit, or broken; free some space and try again",
        ),
        ("not a database", "it is not a ledger; use a ledger file"),
        ("malformed", DAMAGED),
        ("interrupted", DAMAGED),  # see `limit_steps`
        ("Could not decode", DAMAGED),
        ("only grows", "an event of a ledger is never changed or deleted"),
        ("UNIQUE", "another process wrote at the same moment; try again"),
        ("unique", "another process wrote at the same moment; try again"),
    ):
        if part in said:
            return words
    first = said.strip().splitlines()[0][:160] if said.strip() else type(error).__name__
    return f"{first}; make sure that the database is running"
