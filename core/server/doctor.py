"""Checks of ``espalier doctor``. Each check yields results that are fine, are notes, or need attention."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import socket
import ssl
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import sqlalchemy as sa

from espalier import __version__
from espalier.core.errors import EspalierError, LedgerUnavailable
from espalier.core.ledger.ledger import Ledger, default_ledger
from espalier.core.ledger.places import database_url
from espalier.core.server import events, settings
from espalier.core.server.allowed import Allowed, allowed
from espalier.core.tables.frames import resolved

ROOM = 2 << 30
"""Free bytes below which a folder needs attention."""
SKEW = 5.0
"""Largest allowed difference between two clocks, in seconds."""
DAYS = 21
"""Number of remaining days below which a certificate needs attention."""
EXPECTED = ("pandas", "numpy", "scipy", "pyarrow", "duckdb", "opendp", "ibis-framework", "sqlglot", "streamlit")
"""Libraries that read private rows, draw noise or show pages."""

_TABLES = ("espalier_events", "espalier_meta", "espalier_releases")


@dataclass(frozen=True)
class Line:
    """One result. ``fix`` needs attention; ``note`` states something that may be intended."""

    state: Literal["ok", "note", "fix"]
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.state:<4}  {self.subject:<10}  {self.text}"


def ok(subject: str, text: str) -> Line:
    """Return a result that is fine."""
    return Line("ok", subject, text)


def fix(subject: str, text: str) -> Line:
    """Return a result that needs attention."""
    return Line("fix", subject, text)


def note(subject: str, text: str) -> Line:
    """Return a result that may be intended."""
    return Line("note", subject, text)


def examine(ledger: str | None = None, secrets: Path | None = None, proxy: str | None = None) -> Iterator[Line]:
    """Yield the result of every check. No check changes anything."""
    yield from _versions()
    yield from _settings()
    yield from _disk()
    yield from _ledger(ledger or default_ledger())
    yield from _allow_list(allowed())
    yield from _sign_in(secrets)
    if proxy:
        yield from _proxy(proxy)


def _versions() -> Iterator[Line]:
    version = ".".join(map(str, sys.version_info[:3]))
    state: Callable[[str, str], Line] = ok if sys.version_info >= (3, 11) else fix
    yield state("versions", f"Espalier {__version__}, Python {version}")
    missing = [name for name in EXPECTED if not _installed(name)]
    if missing:
        yield note("versions", f"not installed: {', '.join(missing)}")
    else:
        said = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in EXPECTED)
        yield ok("versions", said)


def _installed(name: str) -> bool:
    try:
        return bool(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return False


def _settings() -> Iterator[Line]:
    strange = settings.unknown()
    if strange:
        yield fix("settings", f"not a setting of Espalier: {', '.join(strange)}. Correct the name")
    for name in settings.NUMBERS:
        try:
            settings.number(name)
        except EspalierError as error:
            yield fix("settings", str(error))
    if trouble := events.trouble():
        yield fix("settings", trouble)
    if not strange:
        yield ok("settings", "every variable is known")


def _disk() -> Iterator[Line]:
    places = {"temporary codes": Path(tempfile.gettempdir())}
    if "://" not in (place := default_ledger()):
        places["ledger"] = Path(place).parent
    for what, folder in places.items():
        there = next((p for p in (folder, *folder.parents) if p.exists()), folder)
        try:
            free = shutil.disk_usage(there).free
        except OSError as error:
            yield fix("disk", f"{folder} ({what}) cannot be used: {error.strerror}")
            continue
        room = f"{folder} ({what}): {free / 2**30:.1f} GB free"
        yield ok("disk", room) if free >= ROOM else fix("disk", f"{room}; free some space")
    if any(line.split()[1:3] == [str(Path(tempfile.gettempdir())), "tmpfs"] for line in _mounts()):
        yield note("disk", f"{tempfile.gettempdir()} is in memory; large tables need a TMPDIR on a disk")


def _mounts() -> list[str]:
    try:
        return Path("/proc/mounts").read_text("utf-8").splitlines()
    except OSError:
        return []


def _ledger(where: str) -> Iterator[Line]:
    try:
        ledger = Ledger(where)
        problems, (count, last) = ledger.verify(), ledger.head()
    except LedgerUnavailable as error:
        state = note if error.data.get("missing") else fix
        yield state("ledger", str(error))
        return
    except EspalierError as error:
        yield fix("ledger", str(error))
        return
    for problem in problems:
        yield fix("ledger", problem)
    if not problems:
        yield ok(
            "ledger",
            f"{ledger.name}: {count:,} events; hashes, sums and rules verified; last hash {last[:16]}…",
        )
    store = ledger.store
    if not store.key_file.exists():
        yield note("key", f"{store.key_file} will be created by the first release; back it up then")
    elif store.key_file.stat().st_mode & 0o077:
        yield fix("key", f"{store.key_file} can be read by others: chmod 600")
    else:
        yield ok("key", f"only its owner can read {store.key_file}")
    memories = [store.seen_file.parent]
    for folder in memories:
        if not os.access(folder, os.W_OK):
            yield fix("memory", f"{folder} is not writable, so this machine cannot detect an older copy of the ledger")
        else:
            yield ok("memory", f"{folder} stores the last event seen")
    written = ledger.events()
    if written:
        ahead = (datetime.fromisoformat(written[-1].at) - datetime.now(UTC)).total_seconds()
        if ahead > SKEW:
            yield fix("clock", f"the last event of the ledger is {ahead:.0f} s in the future; set this machine's clock")
        else:
            yield ok("clock", "no event of the ledger is in the future")
    if store.path is None:
        yield from _server(where)


def _server(where: str) -> Iterator[Line]:
    """Check the role's rights on the ledger, TLS, and the server's clock."""
    url = database_url(where)
    engine = sa.create_engine(url, poolclass=sa.NullPool, connect_args={"connect_timeout": 10})
    try:
        with engine.connect() as connection:
            yield from _transport(connection, url)
            role, above = connection.execute(
                sa.text("SELECT current_user, rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user")
            ).one()
            wrong = [
                f"{right} on {table}"
                for table in _TABLES
                for right in ("UPDATE", "DELETE", "TRUNCATE", "TRIGGER")
                if (table, right) != ("espalier_meta", "UPDATE")
                and connection.scalar(sa.text("SELECT has_table_privilege(:t, :r)"), {"t": table, "r": right})
            ]
            if above:
                yield fix("grants", f"the role {role} administers the server; use the role of ledger-roles.sql")
            elif wrong:
                yield fix("grants", f"the role {role} could rewrite the ledger: {', '.join(wrong[:3])}")
            else:
                yield ok("grants", f"the role {role} can add events but not change any")
            now = connection.scalar(sa.text("SELECT extract(epoch FROM clock_timestamp())"))
            skew = abs(float(now or 0) - datetime.now(UTC).timestamp())
            yield (ok if skew <= SKEW else fix)("clock", f"the clock of the ledger's server differs by {skew:.1f} s")
    except sa.exc.SQLAlchemyError as error:
        yield fix("ledger", f"the server of the ledger does not answer ({type(error).__name__})")


def _transport(connection: sa.Connection, url: sa.URL, what: str = "the ledger's server") -> Iterator[Line]:
    local = (str(url.host or url.query.get("host") or "")) in ("", "localhost", "127.0.0.1", "::1")
    local = local or str(url.query.get("host", "")).startswith("/")
    version = connection.scalar(sa.text("SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))
    verified = str(url.query.get("sslmode", "")) in ("verify-full", "verify-ca")
    if local:
        yield ok("TLS", f"{what} is on this machine")
    elif not version:
        yield fix("TLS", f"the connection to {what} is not encrypted; add sslmode=verify-full to its URL")
    elif not verified:
        yield fix(
            "TLS", f"the certificate of {what} is not verified; add sslmode=verify-full and sslrootcert to its URL"
        )
    else:
        yield ok("TLS", f"{what}: {version}, verified")


def _allow_list(list_: Allowed) -> Iterator[Line]:
    for entry in list_.wrong:
        yield fix("tables", f"{entry!r} is neither the path of a folder other than / nor env:NAME")
    ledger = Path(os.path.realpath(default_ledger())) if "://" not in default_ledger() else None
    for folder in list_.folders:
        if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
            yield fix("tables", f"{folder} is not a folder that this user may read")
        elif ledger is not None and folder in ledger.parents:
            yield fix("tables", f"{folder} contains the ledger, which stewards could open as a table")
        else:
            yield ok("tables", f"{folder} may be opened")
    for name in list_.connections:
        yield from _connection(name)
    if not list_ and not list_.wrong:
        yield ok("tables", "stewards can only open uploads")


def _connection(name: str) -> Iterator[Line]:
    try:
        text = resolved(f"env:{name}")
    except EspalierError as error:
        yield fix("tables", str(error))
        return
    if not text.startswith("postgres"):
        yield note("tables", f"env:{name} is set; only connections to PostgreSQL are checked further")
        return
    try:
        url = database_url(text)
        engine = sa.create_engine(url, poolclass=sa.NullPool, connect_args={"connect_timeout": 10})
        with engine.connect() as connection:
            yield from _transport(connection, url, f"the server of env:{name}")
            writes = connection.scalar(
                sa.text(
                    "SELECT count(*) FROM information_schema.role_table_grants WHERE privilege_type IN "
                    "('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE') AND grantee IN (SELECT rolname FROM pg_roles "
                    "WHERE pg_has_role(current_user, oid, 'USAGE')) AND table_schema NOT LIKE 'pg\\_%'"
                )
            )
            above = connection.scalar(sa.text("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"))
            if above:
                yield fix("grants", f"the role of env:{name} administers the server; use the role of warehouse.sql")
            elif writes:
                yield fix("grants", f"the role of env:{name} may change tables; a release only needs SELECT")
            else:
                yield ok("grants", f"the role of env:{name} can only read")
    except (sa.exc.SQLAlchemyError, EspalierError) as error:
        yield fix("tables", f"env:{name} does not answer ({type(error).__name__})")


def _sign_in(secrets: Path | None) -> Iterator[Line]:
    if secrets is None:
        yield note("sign-in", "no --secrets given: the sign-in is not checked")
        return
    try:
        said = tomllib.loads(secrets.read_text("utf-8"))
    except OSError as error:
        yield fix("sign-in", f"{secrets} cannot be read: {error.strerror}")
        return
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        yield fix("sign-in", f"{secrets} is not TOML")
        return
    if secrets.stat().st_mode & 0o077:
        yield fix("sign-in", f"{secrets} can be read by others: chmod 600")
    auth, roles = said.get("auth", {}), said.get("roles", {})
    lacking = [key for key in ("redirect_uri", "cookie_secret", "client_id") if not auth.get(key)]
    if lacking:
        yield fix("sign-in", f"[auth] lacks {', '.join(lacking)}")
    elif len(str(auth["cookie_secret"])) < 32:
        yield fix("sign-in", "cookie_secret has fewer than 32 characters")
    elif not str(auth["redirect_uri"]).startswith("https://"):
        yield fix("sign-in", "redirect_uri does not begin with https://")
    elif not roles.get("steward"):
        yield fix("sign-in", "[roles] lists no steward")
    else:
        yield ok("sign-in", f"{len(roles['steward'])} stewards, {len(roles.get('viewer', []))} viewer entries")


def _proxy(name: str) -> Iterator[Line]:
    """Check the certificate that the proxy presents for ``name`` (host or host:port)."""
    host, _, port = name.partition(":")
    try:
        context = ssl.create_default_context()
        with (
            socket.create_connection((host, int(port or 443)), timeout=10) as raw,
            context.wrap_socket(raw, server_hostname=host) as secure,
        ):
            ends = ssl.cert_time_to_seconds(str(secure.getpeercert()["notAfter"]))  # type: ignore[index]
            version = secure.version()
    except (OSError, ValueError) as error:
        yield fix("TLS", f"{name} presents no certificate that this machine trusts ({type(error).__name__})")
        return
    left = (ends - datetime.now(UTC).timestamp()) / 86_400
    yield (ok if left >= DAYS else fix)("TLS", f"{name}: {version}, the certificate expires in {left:.0f} days")
