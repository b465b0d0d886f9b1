"""All checks of one release folder, in order, and the command."""

import argparse
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .budget import check_budget
from .folder import LIMIT, Finding, Folder, Unreadable, check_files, check_signature
from .ledger import check_ledger
from .linked import check_linked
from .model import check_model
from .noise import check_noise
from .rows import check_rows
from .texts import check_texts, check_unprotected

NAMES = ("", "files", "budget", "noise", "model", "rows", "texts", "ledger")


def verify(path: Path, key: bytes | None = None, export: bytes | None = None) -> list[Finding]:
    """Return the findings for a release folder; ``key`` is a public key (PEM). Raises `Unreadable` for other
    folders."""
    try:
        folder = Folder(path)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise Unreadable(f"{path} contains no readable release: {error}") from None

    def tried(number: int, check: Callable[..., Any], *given: Any) -> Any:
        """Run a check; an error in the folder fails it."""
        try:
            with np.errstate(all="ignore"):  # a non-finite number fails a check
                return check(folder, *given)
        except Exception as error:
            folder.say(number, [f"cannot be checked: {type(error).__name__}: {str(error)[:200]}"])

    tried(1, check_files)
    tried(1, check_signature, key)
    if not folder.private:
        tried(6, check_unprotected)
        return folder.findings
    tried(2, check_budget)
    answers = tried(3, check_noise)
    if folder.linked:
        tried(5, check_linked)
    else:
        model = tried(4, check_model, answers)
        tried(5, check_rows, model, answers)
    tried(6, check_texts)
    tried(7, check_ledger, export)
    return folder.findings


def _read(path: Path) -> bytes:
    """Return the bytes of a file outside the folder, at most 1 GiB."""
    with path.open("rb") as file:
        data = file.read(LIMIT + 1)
    if len(data) > LIMIT:
        raise Unreadable(f"{path} is larger than 1 GiB")
    return data


def printable(text: str) -> str:
    """Return the text without terminal control characters."""
    return "".join(c if c.isprintable() else "�" for c in text)


def main(argv: list[str] | None = None) -> int:
    """Print the findings. Return 0 if all checks hold, 1 if one fails, 2 if the folder is unreadable."""
    parser = argparse.ArgumentParser(prog="verifier", description="Check a release of Espalier, using only its folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--key", type=Path, metavar="FILE", help="the public key that is expected to have signed the release"
    )
    parser.add_argument("--ledger", type=Path, metavar="EXPORT.json", help="an export of the ledger")
    opt = parser.parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a console may lack ρ
    try:
        findings = verify(opt.folder, *(None if p is None else _read(p) for p in (opt.key, opt.ledger)))
    except (Unreadable, OSError) as error:
        print(f"unreadable: {printable(str(error))}", file=sys.stderr)
        return 2
    for f in findings:
        word = {True: "holds", False: "FAILS", None: "note"}[f.holds]
        print(f"{f.check} {NAMES[f.check]:<7}{word:<6} {printable(f.text)}")
    bad = sum(f.holds is False for f in findings)
    print(f"{bad} of {len(findings)} findings FAIL." if bad else "All checks that apply hold.")
    sys.stdout.flush()  # otherwise the exit status would claim that the findings were written
    return 1 if bad else 0
