"""``python -m verifier DIR [--key FILE] [--ledger EXPORT.json]``: 0 all holds, 1 something does not, 2 unreadable."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .check import lines, verify
from .folder import Unreadable


def main(argv: list[str] | None = None) -> int:
    """Check one folder and print the findings; returns the exit status."""
    parser = argparse.ArgumentParser(prog="verifier", description="Check a release by Espalier from its folder alone.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--key", type=Path, help="the public key (PEM) that should have signed")
    parser.add_argument("--ledger", type=Path, help="an export of the ledger (JSON)")
    opt = parser.parse_args(argv)
    try:
        key = None if opt.key is None else opt.key.read_bytes()
        export = None if opt.ledger is None else opt.ledger.read_bytes()
        findings = verify(opt.folder, key, export)
    except (Unreadable, OSError) as error:
        print(f"unreadable: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines(findings)))
    bad = sum(f.holds is False for f in findings)
    print(f"{bad} of {len(findings)} findings FAIL" if bad else "All checks that apply hold.")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
