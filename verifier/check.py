"""All checks of one release folder, in order, and the command."""

from __future__ import annotations

import argparse
import csv
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .budget import check_budget
from .folder import Finding, Folder, Unreadable, check_files, check_signature
from .model import check_model
from .noise import check_noise
from .rows import check_rows
from .texts import check_ledger, check_texts

DAMAGED = (
    *(
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        OSError,
        EOFError,
        ArithmeticError,
        MemoryError,
        RuntimeError,
    ),
    *(csv.Error, zipfile.BadZipFile, zlib.error, Unreadable),
)
NAMES = ("", "files", "budget", "noise", "model", "rows", "texts", "ledger")


def verify(path: Path, key: bytes | None = None, export: bytes | None = None) -> list[Finding]:
    """The findings on a release folder; ``key`` is a public key (PEM). Raises `Unreadable` for another folder."""
    folder = Folder(path)

    def tried(number: int, check: Callable[[], Any]) -> Any:
        """Run a check; a folder that breaks it fails it."""
        try:
            return check()
        except DAMAGED as error:
            folder.say(number, [f"cannot be checked: {type(error).__name__}: {str(error)[:200]}"], "")

    tried(1, lambda: check_files(folder))
    tried(1, lambda: check_signature(folder, key))
    private = folder.facts.get("private", True), folder.statement.get("private", folder.facts.get("private", True))
    if private != (True, True):
        wrong = (
            ["statement and release.json differ on whether the rows are private"] if private != (False, False) else []
        )
        folder.say(2, wrong, "NOT PRIVATE: these rows have no privacy guarantee, and no further check applies")
        return folder.findings
    tried(2, lambda: check_budget(folder))
    answers = tried(3, lambda: check_noise(folder))
    model = tried(4, lambda: check_model(folder, answers))
    tried(5, lambda: check_rows(folder, model, answers))
    tried(6, lambda: check_texts(folder))
    tried(7, lambda: check_ledger(folder, export))
    return folder.findings


def main(argv: list[str] | None = None) -> int:
    """Print the findings: 0 all holds, 1 something does not, 2 unreadable."""
    parser = argparse.ArgumentParser(prog="verifier", description="Check a release by Espalier from its folder alone.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--key", type=Path, metavar="FILE", help="the public key that should have signed")
    parser.add_argument("--ledger", type=Path, metavar="EXPORT.json", help="an export of the ledger")
    opt = parser.parse_args(argv)
    try:
        given = [None if p is None else p.read_bytes() for p in (opt.key, opt.ledger)]
        findings = verify(opt.folder, *given)
    except (Unreadable, OSError) as error:
        print(f"unreadable: {error}", file=sys.stderr)
        return 2
    for f in findings:
        word = {True: "holds", False: "FAILS", None: "note"}[f.holds]
        print(f"{f.check} {NAMES[f.check]:<7}{word:<6} {''.join(c if c.isprintable() else '�' for c in f.text)}")
    bad = sum(f.holds is False for f in findings)
    print(f"{bad} of {len(findings)} findings FAIL." if bad else "All checks that apply hold.")
    return 1 if bad else 0
