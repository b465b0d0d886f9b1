"""All checks of one release folder, in order."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from .budget import check_budget
from .folder import Finding, Folder, Unreadable, check_files, check_signature, open_folder
from .model import Model, check_model, read_model
from .noise import Answers, check_noise
from .rows import check_rows
from .texts import check_ledger, check_texts

DAMAGED = (
    *(ValueError, KeyError, TypeError, IndexError, AttributeError, OSError, EOFError, OverflowError, MemoryError),
    *(RuntimeError, NotImplementedError, ZeroDivisionError, zipfile.BadZipFile, zlib.error, Unreadable),
)
NAMES = ("", "files", "budget", "noise", "model", "rows", "texts", "ledger")


def verify(path: Path, key: bytes | None = None, export: bytes | None = None) -> list[Finding]:
    """The findings on a release folder; raises `Unreadable` where it holds no release."""
    folder = open_folder(path)
    _tried(folder, 1, lambda: check_files(folder))
    _tried(folder, 1, lambda: check_signature(folder, key))
    private = folder.facts.get("private", True)
    if not private or (folder.statement is not None and not folder.statement.get("private")):
        same = folder.statement is None or folder.statement.get("private") is private is False
        folder.add(2, same and not folder.facts.get("spent"), "NOT PRIVATE: these rows have no privacy guarantee")
        return folder.findings
    answers: list[Answers | None] = [None]
    model: list[Model | None] = [None]

    def noise() -> None:
        answers[0] = check_noise(folder)

    def fit() -> None:
        model[0] = read_model(folder)
        check_model(folder, model[0], answers[0])

    _tried(folder, 2, lambda: check_budget(folder))
    _tried(folder, 3, noise)
    _tried(folder, 4, fit)
    _tried(folder, 5, lambda: check_rows(folder, model[0], answers[0]))
    _tried(folder, 6, lambda: check_texts(folder))
    _tried(folder, 7, lambda: check_ledger(folder, export))
    return folder.findings


def _tried(folder: Folder, number: int, check: Callable[[], None]) -> None:
    """Run a check; a folder that breaks it fails it."""
    try:
        check()
    except DAMAGED as error:
        folder.add(number, False, f"cannot be checked: {type(error).__name__}: {str(error)[:200]}")


def lines(findings: list[Finding]) -> list[str]:
    """The findings for people, one line each."""
    word = {True: "holds", False: "FAILS", None: "note"}
    return [
        f"{f.check} {NAMES[f.check]:<7}{word[f.holds]:<6} {''.join(c if c.isprintable() else '�' for c in f.text)}"
        for f in findings
    ]
