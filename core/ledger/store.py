"""Storage of a ledger: a database that only grows, with one writer at a time, and a separate key file.

The database is a SQLite file that only its owner can read, or PostgreSQL by URL, both through SQLAlchemy. A writer
locks the whole ledger (``BEGIN IMMEDIATE``; an advisory lock), reads it and appends, in one transaction, which is on
the disk when the call returns. SQLite keeps a rollback journal and also syncs its folder (``synchronous=EXTRA``), so a
power cut cannot undo a reservation and no shared-memory file is needed. Triggers refuse to change or delete an event.
Each event states the hash of the event before it, and no two events may state the same hash, so two writers cannot both
follow the same event.

A hash chain does not reveal that its end was cut off. The number of events and the last hash are therefore in the
database too, and in two files on this machine (``.seen``). One file is next to the ledger and is named after the
ledger's location. It also detects that a ledger was deleted and created again. The other file is in this user's folder
and is named after the ledger's identity. It also recognises the ledger under another path or another spelling of its
host. The identity is the hash of the first event, which contains a random number, so it cannot be changed without
changing every hash after it. A ledger restored from an earlier copy is therefore refused under any name.
"""

from __future__ import annotations

import itertools
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from espalier.core.errors import LedgerError, LedgerUnavailable
from espalier.core.ledger import memory
from espalier.core.ledger.database import engine_of, need_file
from espalier.core.ledger.events import Row, read_events, tampered
from espalier.core.ledger.fields import misfit
from espalier.core.ledger.memory import head
from espalier.core.ledger.places import database_url, key_file, memory_files, remembered, shown
from espalier.core.ledger.reasons import reason
from espalier.core.ledger.replay import replay
from espalier.core.ledger.secret_file import secret_in, tighten

VERSION, STOPPED = "4", "5"
"""Layout of a new ledger, and layout of a ledger with a stopped release that can be resumed."""
READS = ("1", "2", "3", VERSION, STOPPED)
"""Readable layouts. In layout 1, entries have no parts. Before 3, tables have no person column and there are no
diagnostics; before 4, there is no δ₀; before 5, there are no stopped releases. The first event that is added upgrades
the ledger to 4.
"""
_LOCK = 0x45_53_50_41_4C_49_45_52  # the text "ESPALIER" as the number of the advisory lock

_metadata = sa.MetaData()
_meta = sa.Table(
    "espalier_meta", _metadata, sa.Column("key", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False)
)
_events = sa.Table(
    "espalier_events",
    _metadata,
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("population", sa.Text, nullable=False),
    sa.Column("table_name", sa.Text, nullable=False),
    sa.Column("entry", sa.Text),
    sa.Column("neighbors", sa.Text),
    sa.Column("rows_per_person", sa.Integer),
    sa.Column("epsilon", sa.Double),
    sa.Column("delta", sa.Double),
    sa.Column("rho", sa.Double),
    sa.Column("rho_before", sa.Double),
    sa.Column("rho_after", sa.Double),
    sa.Column("plan", sa.Text),
    sa.Column("fingerprint", sa.Text),
    sa.Column("released", sa.Text),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("previous", sa.Text, nullable=False, unique=True),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
)
_kept = sa.Table(
    "espalier_releases",
    _metadata,
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("zip", sa.LargeBinary, nullable=False),
)
_journal = sa.Table(
    "espalier_journal",
    _metadata,
    sa.Column("entry", sa.Text, primary_key=True),
    sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("record", sa.LargeBinary, nullable=False),
)
"""Answers of unfinished releases: the facts at place 0, then one record per answer. Deleted when a release ends."""

_ONLY_GROWS = {
    "sqlite": [
        f"CREATE TRIGGER espalier_no_{act.lower()} BEFORE {act} ON espalier_events "
        "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"
        for act in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        "CREATE FUNCTION espalier_only_grows() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'a ledger only grows'; END $$",
        "CREATE TRIGGER espalier_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON espalier_events "
        "FOR EACH STATEMENT EXECUTE FUNCTION espalier_only_grows()",
    ],
}


class Store:
    """A ledger's database. ``name`` is its name in messages: a path, or a URL without its password."""

    def __init__(self, where: str | Path, create: bool = False) -> None:
        """Connect; ``create`` makes a missing database. Raises :class:`LedgerUnavailable`."""
        url = database_url(where)
        self.name = shown(url)
        self.path = None
        if url.get_backend_name() == "sqlite":  # resolved, so that a link to the file opens the same ledger
            self.path = Path(os.path.realpath(url.database or ""))
            url = url.set(database=str(self.path))
        self.key_file = key_file(url, self.path)
        self.seen_file, self._earlier_file = memory_files(url, self.path)
        """Memory file named after the ledger's location, and the one of earlier versions, valid until there is one."""
        with self._plainly("open"):
            if self.path is not None:
                need_file(self.path, create)
            self._url, self._engine = url, engine_of(url, _meta.name)
            self._check_version(create)
            if self.path is not None:
                tighten(self.path)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process on this machine, which is everything except the engine."""
        return {key: value for key, value in self.__dict__.items() if key != "_engine"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._engine = engine_of(self._url, _meta.name)

    def read(self) -> list[Row]:
        """Return all events, oldest first. Raises :class:`LedgerError` if earlier events are missing."""
        rows = self._read()
        before = self._seen(rows)
        if any(count > len(rows) for _, count, _ in before):
            rows = self._read()  # events may have been added and remembered after they were read
        self._compare(rows, before)
        self._remember(rows)
        return rows

    def append(
        self,
        make: Callable[[Sequence[Row]], Sequence[Row]],
        kept: tuple[str, bytes] | None = None,
        begun: tuple[str, bytes] | None = None,
        undrawn: str | None = None,
    ) -> None:
        """Append the events that ``make(events)`` returns, all or none of them, while no other process can write.

        Nothing is written if ``make`` raises or returns nothing. ``kept`` is a release (its hash and zip) to keep with
        them. ``begun`` starts the journal of an entry with the facts of its release. ``undrawn`` is an entry for which
        no answer may be stored: another process may have resumed it. Before the commit the events are read back and
        replayed. If the database stored a different value, or an event breaks a rule, the transaction is rolled back
        and :class:`LedgerError` is raised.
        """
        with self._plainly("write"), self._writing() as connection:
            there = self._all(connection)
            self._compare(there, self._seen(there))
            rows = make(there)
            if not rows:
                return
            if undrawn is not None and self._drawn(connection, undrawn):
                raise LedgerError(
                    f"another process has drawn noise for entry {undrawn}, so its reserved budget counts as spent",
                    entry=undrawn,
                )
            connection.execute(_events.insert(), [dict(row) for row in rows])
            self._check_stored(connection, [*there, *rows])
            last = rows[-1]["seq"], rows[-1]["hash"]
            connection.execute(_meta.update().where(_meta.c.key == "head").values(value=head(*last)))
            layout = STOPPED if any(row["kind"] == "stop" for row in [*there, *rows]) else VERSION
            connection.execute(_meta.update().where(_meta.c.key == "version").values(value=layout))
            if begun is not None:
                _journal.create(connection, checkfirst=True)  # an earlier version may have created the ledger
                self._insert(connection, begun[0], 0, begun[1])
            if kept is not None and not connection.scalar(sa.select(_kept.c.hash).where(_kept.c.hash == kept[0])):
                connection.execute(_kept.insert().values(hash=kept[0], zip=kept[1]))
        self._remember([*there, *rows])

    def kept(self, hash_: str) -> bytes | None:
        """Return the zip of a stored release, or None."""
        with self._plainly("read"), self._reading() as connection:
            found = connection.scalar(sa.select(_kept.c.zip).where(_kept.c.hash == hash_))
            if not isinstance(found, bytes | None):
                raise LedgerError(f"the ledger {self.name} was tampered with: the release {hash_} is not an archive")
            return found

    def hashes(self) -> set[str]:
        """Return the hashes of the stored releases."""
        with self._plainly("read"), self._reading() as connection:
            return set(map(str, connection.scalars(sa.select(_kept.c.hash))))

    def copy_to(self, target: sqlite3.Connection) -> None:
        """Copy a SQLite ledger to another database. A transaction that a killed process left unfinished is rolled back
        first.
        """
        with self._plainly("read"), self._reading() as connection:
            cast(sqlite3.Connection, connection.connection.driver_connection).backup(target)

    def secret(self) -> bytes:
        """Return the fingerprints' secret, from a key file that only its owner can read; the file is created if it does
        not exist.
        """
        return secret_in(self.key_file)

    # Journals of unfinished releases ----------------------------------------------------------------------------------

    def journal(self, entry: str) -> list[bytes]:
        """Return the stored records of an entry's unfinished release, in order; empty if there are none."""
        with self._plainly("read"), self._reading() as connection:
            if not sa.inspect(connection).has_table(_journal.name):  # an earlier version created the ledger
                return []
            asked = sa.select(_journal.c.record).where(_journal.c.entry == entry).order_by(_journal.c.place)
            return [bytes(record) for record in connection.scalars(asked)]

    def unfinished(self) -> dict[str, int]:
        """Return the number of stored answers of each unfinished release, by entry."""
        with self._plainly("read"), self._reading() as connection:
            if not sa.inspect(connection).has_table(_journal.name):
                return {}
            counted = sa.select(_journal.c.entry, sa.func.count()).group_by(_journal.c.entry)
            return {str(entry): int(count) - 1 for entry, count in connection.execute(counted)}

    def note(self, entry: str, place: int, record: bytes) -> None:
        """Store a record of an unfinished release durably.

        Raises :class:`LedgerError` if a record is stored there, if another process ended the entry, or if the record
        before it is missing. An equal record is refused as well, because the acceptance of an answer must not depend
        on its value (see :mod:`espalier.core.privacy.journal`).
        """
        ended = (_events.c.entry == entry) & _events.c.kind.in_(("spend", "return"))
        here = (_journal.c.entry == entry) & (_journal.c.place == place)
        with self._plainly("write"), self._writing() as connection:
            if connection.scalar(sa.select(_events.c.seq).where(ended)) is not None:
                raise LedgerError(f"entry {entry} has ended; the answer was not used", entry=entry)
            if connection.scalar(sa.select(_journal.c.place).where(here)) is not None:
                raise LedgerError(
                    f"answer {place} of entry {entry} is already stored: the connection was lost while it was stored, "
                    f"or another process is working on the release. To continue: espalier resume {entry}",
                    entry=entry,
                )
            before = (_journal.c.entry == entry) & (_journal.c.place == place - 1)
            if place and connection.scalar(sa.select(_journal.c.place).where(before)) is None:
                raise LedgerError(f"an earlier answer of entry {entry} is gone; the answer was not used", entry=entry)
            self._insert(connection, entry, place, record)

    def forget(self, entry: str) -> None:
        """Delete the journal of a release that is finished or abandoned."""
        with self._plainly("write"), self._writing() as connection:
            if sa.inspect(connection).has_table(_journal.name):
                connection.execute(_journal.delete().where(_journal.c.entry == entry))

    def _drawn(self, connection: sa.Connection, entry: str) -> bool:
        if not sa.inspect(connection).has_table(_journal.name):
            return False
        asked = sa.select(_journal.c.place).where((_journal.c.entry == entry) & (_journal.c.place > 0))
        return connection.scalar(asked) is not None

    def _insert(self, connection: sa.Connection, entry: str, place: int, record: bytes) -> None:
        connection.execute(_journal.insert().values(entry=entry, place=place, record=record))

    def open_to_others(self) -> list[Path]:
        """Return files of this ledger that users other than their owner may read."""
        if os.name != "posix":
            return []
        files = [p for p in (self.path, self.key_file) if p is not None and p.exists()]
        return [p for p in files if p.stat().st_mode & 0o077]

    def _check_stored(self, connection: sa.Connection, meant: Sequence[Row]) -> None:
        """Raise :class:`LedgerError` unless the database contains the events as given, and they follow all rules."""
        stored = connection.execute(sa.select(_events).order_by(_events.c.seq)).mappings()
        nothing: Row = {}
        for row, given in itertools.zip_longest(map(dict, stored), meant, fillvalue=nothing):
            for key in given or row:
                found, wanted = row.get(key), given.get(key)
                if type(found) is not type(wanted) or found != wanted:
                    raise LedgerError(
                        f"the ledger {self.name} did not store the field {key} of event "
                        f"{given.get('seq', row.get('seq'))} as given. The event was rolled back; nothing was "
                        "released. Check the encoding and the triggers of the database",
                        key=key,
                    )
        replay(read_events(meant))

    def _read(self) -> list[Row]:
        with self._plainly("read"), self._reading() as connection:
            return self._all(connection)

    def _all(self, connection: sa.Connection) -> list[Row]:
        """Return all events. The last one must agree with the database's own record."""
        rows: list[Row] = [
            dict(row) for row in connection.execute(sa.select(_events).order_by(_events.c.seq)).mappings()
        ]
        if rows and (wrong := misfit(rows[-1])):
            raise tampered(len(rows), f"its {wrong} has the wrong type")
        stored = connection.scalar(sa.select(_meta.c.value).where(_meta.c.key == "head"))
        if stored != (head(rows[-1]["seq"], rows[-1]["hash"]) if rows else head(0, "")):
            raise LedgerError(f"the ledger {self.name} was tampered with: its last events are missing or changed")
        return rows

    def _compare(self, rows: Sequence[Row], before: Sequence[memory.Seen]) -> None:
        """Raise :class:`LedgerError` unless ``rows`` continue the events that earlier reads, ``before``, returned."""
        for file, count, hash_ in before:
            if len(rows) < count or (count and rows[count - 1]["hash"] != hash_):
                shared = (
                    ". An earlier version of Espalier wrote this file for all ledgers in this database: if it "
                    "describes another user's ledger, open that one first"
                    if file == self._earlier_file != self.seen_file
                    else ""
                )
                raise LedgerError(
                    f"the ledger {self.name} was tampered with, or restored to an earlier copy: it had {count} "
                    "events when this machine last read it. No release can be charged to it. Restore the later "
                    f"copy; if that is impossible, account for the missing releases and then delete {file}{shared}"
                )

    def _seen(self, rows: Sequence[Row]) -> list[memory.Seen]:
        """Return both memories, by location and by identity."""
        if rows and (misfit(rows[0]) or not re.fullmatch("[0-9a-f]{64}", rows[0]["hash"])):
            # it becomes part of a file name and has not been checked yet
            raise LedgerError(f"the ledger {self.name} was tampered with: its first hash is invalid")
        return [memory.read(file, self.name) for file in self._memories(rows)]

    def _memories(self, rows: Sequence[Row]) -> list[Path]:
        """Return the files of both memories; without events, there is no identity yet."""
        earlier = [self._earlier_file] if not self.seen_file.exists() else []
        return list(dict.fromkeys([self.seen_file, *earlier, *([remembered(rows[0]["hash"])] if rows else [])]))

    def _remember(self, rows: Sequence[Row]) -> None:
        """Store the last event in each memory, except in a read-only folder."""
        new = self._earlier_file != self.seen_file and not self.seen_file.exists()
        for file in (self.seen_file, *([remembered(rows[0]["hash"])] if rows else [])):
            memory.write(file, self.name, len(rows), rows[-1]["hash"] if rows else "")
        if new and self.seen_file.exists():  # the earlier file described this ledger, and now describes none
            with suppress(OSError):
                self._earlier_file.unlink(missing_ok=True)

    def _check_version(self, create: bool) -> None:
        with self._engine.connect() as connection:
            there = sa.inspect(connection).has_table(_meta.name)
            found = connection.scalar(sa.select(_meta.c.value).where(_meta.c.key == "version")) if there else None
        if found is None and not create:
            raise LedgerUnavailable(
                f"{self.name} contains no ledger yet; opening a table's budget creates one", missing=True
            )
        if found is None:
            with self._writing() as connection:
                if not sa.inspect(connection).has_table(_meta.name):  # another process may have created it first
                    _metadata.create_all(connection)
                    for statement in _ONLY_GROWS[self._engine.dialect.name]:
                        connection.exec_driver_sql(statement)
                    connection.execute(_meta.insert().values(key="version", value=VERSION))
                    connection.execute(_meta.insert().values(key="head", value=head(0, "")))
        elif found not in READS:
            known = f"{', '.join(READS[:-1])} and {READS[-1]}"
            raise LedgerUnavailable(
                f"{self.name} has layout {found}, but this version of Espalier reads only {known}; use the "
                "version that created it"
            )

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        """Ensure that all reads in the context see one state, even while other processes write."""
        with self._engine.connect() as connection:
            if self._engine.dialect.name == "postgresql":  # SQLite's transactions guarantee this by default
                connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with self._engine.connect().execution_options(espalier_writes=True) as connection, connection.begin():
            if self._engine.dialect.name == "postgresql":
                connection.execute(sa.text("SET LOCAL synchronous_commit = on"))  # durable before it is used
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            yield connection

    @contextmanager
    def _plainly(self, act: str) -> Iterator[None]:
        """Re-raise the database's errors with a clear message and a remedy."""
        try:
            yield
        except (SQLAlchemyError, OSError, UnicodeDecodeError) as error:
            gone = self.path is not None and not self.path.exists() and not isinstance(error, PermissionError)
            why = "it no longer exists; restore it" if gone else reason(error)
            raise LedgerUnavailable(f"cannot {act} the ledger {self.name}: {why}", ledger=self.name) from None
