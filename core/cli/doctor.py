"""``espalier doctor``: checks that an operator runs before putting a server into use."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from espalier.core.cli.ledger import WHERE


def add(commands: Any) -> None:
    """Declare the command."""
    doctor = commands.add_parser("doctor", help="check grants, TLS, disk, clock, ledger, versions and the allow-list")
    doctor.add_argument("--ledger", metavar="FILE_OR_URL", help=WHERE)
    doctor.add_argument("--secrets", type=Path, metavar="FILE", help="secrets.toml of the server")
    doctor.add_argument("--proxy", metavar="HOST[:PORT]", help="public name of the server, to check its certificate")
    doctor.set_defaults(run=run)


def run(opt: argparse.Namespace) -> int:
    """Print one line for each check; return 1 if any line needs attention."""
    from espalier.core.server.doctor import examine

    lines = list(examine(opt.ledger, opt.secrets, opt.proxy))
    for line in lines:
        print(line)
    wrong = sum(line.state == "fix" for line in lines)
    if wrong:
        print(f"{wrong} {'lines need' if wrong > 1 else 'line needs'} attention")
    return 1 if wrong else 0
