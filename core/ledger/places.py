"""Locations of the files of a ledger: its database, its key, and this machine's memory of its last event."""

from __future__ import annotations

import os
from getpass import getuser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from espalier.core.errors import LedgerUnavailable, wheel_with


def database_url(where: str | Path) -> sa.URL:
    """Return the URL of a ledger, given its path or URL; raises :class:`LedgerUnavailable` for any other kind of
    database.
    """
    if "://" not in str(where):
        return sa.URL.create("sqlite", database=str(where))
    try:
        url = sa.make_url(str(where))
    except (ArgumentError, ValueError):  # for example, the port is not a number
        raise LedgerUnavailable("the ledger's URL cannot be read; write postgresql://user@host/database") from None
    backend = url.drivername.split("+")[0]
    if backend == "sqlite" and url.database and url.database != ":memory:":
        return sa.URL.create("sqlite", database=url.database)
    if backend in ("postgresql", "postgres"):
        if find_spec("psycopg") is None:
            raise LedgerUnavailable(
                f"A ledger in PostgreSQL needs psycopg: the extra [postgres]. {wheel_with('postgres')}"
            )
        # Espalier's own options would override these, so the ledger might be in another schema
        if "options" in url.query:
            raise LedgerUnavailable(
                "the ledger's URL contains options, which Espalier does not use. Remove them. To set a schema, use "
                "ALTER ROLE ... SET search_path"
            )
        return url.set(drivername="postgresql+psycopg")
    raise LedgerUnavailable(
        f"a ledger must be a SQLite file (a path) or a PostgreSQL database (a URL), not {backend!r}"
    )


def remembered(identity: str) -> Path:
    """Return the current user's memory file of the ledger whose first event has the hash ``identity``."""
    from platformdirs import user_data_path

    return user_data_path("espalier", appauthor=False) / "seen" / f"{identity[:32]}.seen"


def shown(url: sa.URL) -> str:
    """Return the path, or the given URL without its password and without options that do not locate the ledger."""
    if url.get_backend_name() == "sqlite":
        return str(Path(url.database or ""))
    url = url.set(query={key: value for key, value in url.query.items() if key in ("host", "port")})
    return unquote(url.set(drivername="postgresql").render_as_string(hide_password=True))


def key_file(url: sa.URL, path: Path | None) -> Path:
    """Return the path of the key file: the path in ESPALIER_LEDGER_KEY, or else a file next to a SQLite ledger, or a
    file in this user's folder if the ledger is in PostgreSQL.
    """
    if place := os.environ.get("ESPALIER_LEDGER_KEY"):
        return Path(place)
    if path is not None:
        return path.parent / f"{path.name}.key"
    from platformdirs import user_data_path

    return user_data_path("espalier", appauthor=False) / f"{file_name(url, path)}.key"


def memory_files(url: sa.URL, path: Path | None) -> tuple[Path, Path]:
    """Return the file that remembers the ledger at this location, and the one in which earlier versions did so.

    A server's location includes the user, because each user's search path may lead to a ledger in another schema.
    Espalier does not use the name of that schema, because the server's administrator can change it.
    """
    earlier = (path or key_file(url, path)).parent / f"{file_name(url, path)}.seen"
    if path is not None:
        return earlier, earlier
    user = url.username or url.query.get("user") or os.environ.get("PGUSER") or getuser()
    return earlier.with_name(f"{user}@{earlier.name}".replace(os.sep, "-")), earlier


def file_name(url: sa.URL, path: Path | None) -> str:
    """Return the name of the ledger's location in the names of its key file and of earlier versions' memory files."""
    if path is not None:
        return path.name
    parts = (url.host or url.query.get("host"), url.port, url.database)
    return "-".join(str(part) for part in parts if part).replace(os.sep, "-").strip("-")
