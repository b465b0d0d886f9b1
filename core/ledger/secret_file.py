"""Key files: a secret that only its owner can read, created if missing."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from espalier.core.errors import LedgerUnavailable
from espalier.core.ledger.fingerprint import KEY_BYTES
from espalier.core.limited_file import read_limited


def own_secret() -> bytes | None:
    """Return this user's secret for releases without a ledger; `None` if its file cannot be used.

    The file is the one that ESPALIER_LEDGER_KEY names, or ``releases.key`` in the user's data folder.
    """
    from platformdirs import user_data_path

    place = os.environ.get("ESPALIER_LEDGER_KEY") or user_data_path("espalier", appauthor=False) / "releases.key"
    try:
        return secret_in(Path(place))
    except LedgerUnavailable:
        return None


def secret_in(path: Path) -> bytes:
    """Return the secret in ``path``; raises :class:`LedgerUnavailable` if the file cannot be made or read."""
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
            try:
                with open(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
                    file.write(secrets.token_hex(KEY_BYTES) + "\n")
                    file.flush()
                    os.fsync(file.fileno())
                os.link(new, path)  # write all or nothing; a second process uses the existing file
            except FileExistsError:
                pass
            finally:
                new.unlink(missing_ok=True)
        if not path.is_file():
            raise LedgerUnavailable(f"the ledger's key file {path} cannot be used: it is not a file")
        need_own(path)
        key = bytes.fromhex(read_limited(path, 4 * KEY_BYTES).decode("ascii").strip())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is damaged"
        raise LedgerUnavailable(f"the ledger's key file {path} cannot be used: {reason}") from None
    if len(key) != KEY_BYTES:
        raise LedgerUnavailable(f"the ledger's key file {path} cannot be used: it is damaged")
    tighten(path)  # done last, because any other file keeps its permissions
    return key


def need_own(path: Path) -> None:
    """Raise :class:`LedgerUnavailable` for a file that another user may have created in order to know a secret in
    advance or to change what is stored. Its owner must be this user, the system's administrator, or the owner of its
    folder.
    """
    if os.name == "posix":
        real = Path(os.path.realpath(path))
        owner, trusted = real.stat().st_uid, {os.geteuid(), 0, real.parent.stat().st_uid}
        if owner not in trusted:
            raise LedgerUnavailable(f"{path} belongs to another user. Name a file of your own")


def tighten(path: Path) -> None:
    """Remove other users' permissions on the file, if possible."""
    mode = path.stat().st_mode
    if os.name == "posix" and mode & 0o077:
        with suppress(OSError):
            path.chmod(mode & 0o700)
