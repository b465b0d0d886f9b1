"""``espalier keys``, ``sign``, ``statement`` and ``verify``: state, sign and check the claims of a release."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from espalier.core.errors import ProjectError

if TYPE_CHECKING:
    from espalier.core.statement.keys import Signer

EXPORTS = ("registry", "label", "croissant", "dcat", "dpv", "spdx")
KEY_HELP = "sign the statement with this private key (passphrase from ESPALIER_KEY_PASSPHRASE or the terminal)"


def add(commands: Any) -> None:
    """Declare the commands."""
    keys = commands.add_parser("keys", help="make a key that signs releases")
    acts = keys.add_subparsers(dest="act", metavar="act", required=True)
    new = acts.add_parser("new", help="make an Ed25519 key: FILE (private, encrypted) and FILE.pub")
    new.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="the new key file, which must be outside every project and release folder",
    )
    new.set_defaults(run=_new)

    sign = commands.add_parser("sign", help="sign the statement of a release folder; adds statement.sig")
    sign.add_argument("folder", type=Path, help="the folder that `release` wrote (its --out)")
    sign.add_argument("--key", type=Path, required=True, metavar="FILE", help=KEY_HELP)
    sign.set_defaults(run=_sign)

    shown = commands.add_parser("statement", help="print the statement of a release folder, or an export from it")
    shown.add_argument("folder", type=Path, help="the folder that `release` wrote (its --out)")
    which = shown.add_mutually_exclusive_group()
    for name in EXPORTS:
        which.add_argument(
            f"--{name}", dest="export", action="store_const", const=name, help=f"print it as {_ABOUT[name]}"
        )
    shown.set_defaults(run=_statement)

    check = commands.add_parser("verify", help="check a release from its folder alone; exits with 1 if a check fails")
    check.add_argument("folder", type=Path, help="the folder that `release` wrote (its --out)")
    check.add_argument(
        "--key", type=Path, metavar="FILE", help="the public key that is expected to have signed the release"
    )
    check.add_argument("--ledger", type=Path, metavar="EXPORT.json", help="an export of the ledger")
    check.set_defaults(run=_verify)


_ABOUT = {
    "registry": "an entry of the registry of deployments of differential privacy (YAML)",
    "label": "a one-page privacy label (HTML)",
    "croissant": "a Croissant card with its RAI fields (JSON-LD)",
    "dcat": "a DCAT dataset with HealthDCAT-AP properties (JSON-LD)",
    "dpv": "a W3C DPV description of the processing (JSON-LD)",
    "spdx": "an SPDX 3 dataset (JSON-LD)",
}


def signer(path: Path | None) -> Signer | None:
    """Return the private key in ``path``, asking for its passphrase if necessary; `None` without a path."""
    from espalier.core.statement.keys import load_signer

    return None if path is None else load_signer(path, _passphrase())


def _passphrase(twice: bool = False) -> str:
    from espalier.core.statement.keys import PASSPHRASE

    if (given := os.environ.get(PASSPHRASE)) is not None:
        return given
    if not sys.stdin.isatty():
        raise ProjectError(f"a key needs its passphrase: set {PASSPHRASE}, or run the command in a terminal")
    given = getpass.getpass("Passphrase of the key: ")
    if twice and getpass.getpass("Repeat the passphrase: ") != given:
        raise ProjectError("the passphrases differ; nothing was written")
    return given


def _new(opt: argparse.Namespace) -> None:
    from espalier.core.statement.keys import new_key

    made = new_key(opt.file, _passphrase(twice=True))
    print(
        f"{opt.file}: private key, encrypted. Keep it and its passphrase; without the passphrase it cannot sign.",
        file=sys.stderr,
    )
    print(f"{opt.file}.pub: public key. Publish its fingerprint: {made.facts['fingerprint']}", file=sys.stderr)


def _sign(opt: argparse.Namespace) -> None:
    from espalier.core.statement.check import checked_folder
    from espalier.core.statement.folder import sign_folder

    key = signer(opt.key)
    assert key is not None  # the option is required
    sign_folder(opt.folder, key)
    passes, result = checked_folder(opt.folder)
    if not passes:  # an honest release may fail too, for example if a column is named like a privacy parameter
        print(f"warning: {result}", file=sys.stderr)
    print(f"{opt.folder}: signed by {key.facts['fingerprint']}", file=sys.stderr)


def _statement(opt: argparse.Namespace) -> None:
    from espalier.core.statement.folder import exported

    sys.stdout.write(exported(opt.folder, opt.export))


def _verify(opt: argparse.Namespace) -> int:
    from espalier.verifier.check import main

    given = [("--key", opt.key), ("--ledger", opt.ledger)]
    return main([str(opt.folder), *(x for name, path in given if path for x in (name, str(path)))])
