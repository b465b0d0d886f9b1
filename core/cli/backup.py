"""``espalier backup`` and ``espalier restore``, for the ledger, its key, its memory files, and shared releases."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from espalier.core.cli.ledger import WHERE


def add(commands: Any) -> None:
    """Declare the two commands."""
    backup = commands.add_parser("backup", help="back up the ledger, its key and this machine's memory of it")
    backup.add_argument("folder", type=Path, help="a new folder")
    backup.add_argument(
        "--memories", action="store_true", help="back up only the memory files, which record the last event seen"
    )
    restore = commands.add_parser("restore", help="restore a backup to a place without a ledger")
    restore.add_argument("folder", type=Path, help="the folder of a backup")
    restore.add_argument(
        "--memories",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder with later memory files; may be repeated",
    )
    for command in (backup, restore):
        command.add_argument("--ledger", metavar="FILE_OR_URL", help=WHERE)
    backup.set_defaults(run=_backup)
    restore.set_defaults(run=_restore)


def _backup(opt: argparse.Namespace) -> None:
    from espalier.core.ledger.ledger import default_ledger
    from espalier.core.release.shelf import shelf
    from espalier.core.server.backup import back_up

    print(back_up(opt.ledger or default_ledger(), opt.folder, shelf(), memories_only=opt.memories))


def _restore(opt: argparse.Namespace) -> None:
    from espalier.core.ledger.ledger import default_ledger
    from espalier.core.release.shelf import shelf
    from espalier.core.server.backup import restore

    print(restore(opt.folder, opt.ledger or default_ledger(), shelf(), opt.memories))
