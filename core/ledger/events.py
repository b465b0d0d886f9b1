"""Events of the ledger, one line each, and the hash chain that links them.

Events are only ever added: ``open`` and ``join`` (a table), ``reserve``, ``stop`` (a release that was interrupted and
can be resumed; it stays reserved), ``spend``, ``return``, ``diagnose``, and for the parts of an entry ``select``,
``measure``, ``look`` (the private evaluation). Parts are written together with the event that ends their entry, in one
transaction. Writing each part when it is paid for would reveal how long each part took. It would not improve
protection, because the whole reservation counts until the end. A crashed run therefore has no parts and counts in full.
Its noisy answers are in a separate table until it is resumed or closed.

Nothing in an event depends on private rows. Events contain plans, sums of ρ and δ₀, hashes of the released files, keyed
fingerprints (`espalier.core.ledger.fingerprint`), and times to the minute (finer times would reveal how long counting
takes).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from espalier.core.errors import LedgerError
from espalier.core.ledger.fields import checked_fields, misfit
from espalier.core.project.plan import Neighbors

Row = Mapping[str, Any]
"""An event as the database stores it: its fields and its hash."""
Kind = Literal["open", "join", "reserve", "select", "measure", "look", "stop", "spend", "return", "diagnose"]
START = "0" * 64
"""Previous hash of the first event."""


@dataclass(frozen=True)
class Event:
    """One line of the ledger. Fields that a kind of event does not use are None.

    ``epsilon`` and ``rho`` belong to the total (open), the plan (reserve), the draws (a part), or the final count
    (spend). ``delta`` belongs to the total (open) or the plan (reserve). For a part and for ``spend``, it is the δ₀ of
    the draws or of the final count, or `None` if that is 0. ``rho_before`` and ``rho_after`` are the counted ρ of the
    population before and after this event. For a part, these sums include the amount that its entry has drawn so far,
    not the amount reserved for it. ``released`` is the hash of the released files
    (:func:`espalier.core.ledger.archive.digest_of`). ``plan`` is JSON. For a ``reserve`` it contains the project's
    name, its plan, whether its unit differs from the table's, whether the project states one row per person (if it
    states either), and the reserved δ₀, if any. For ``open`` and ``join`` it contains the person column (or null). For
    ``open`` it also contains the share of δ for draws, if any, and a random number, so that no two ledgers begin with
    the same event. ``plan`` is None for a table that was opened before person columns were fixed.
    """

    seq: int
    at: str
    who: str
    kind: Kind
    population: str
    table_name: str
    previous: str
    entry: str | None = None
    neighbors: Neighbors | None = None
    rows_per_person: int | None = None
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    rho_before: float | None = None
    rho_after: float | None = None
    plan: str | None = None
    fingerprint: str | None = None
    released: str | None = None
    note: str = ""

    @property
    def hash(self) -> str:
        """SHA-256 of all fields above, including ``previous``, as JSON with sorted keys."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def row(self) -> Row:
        """Return the stored values."""
        return {**asdict(self), "hash": self.hash}


def read_events(rows: Sequence[Row]) -> list[Event]:
    """Return the rows as events; raises :class:`LedgerError` unless the hash chain is complete."""
    events: list[Event] = []
    previous = START
    for place, row in enumerate(rows, start=1):
        if wrong := misfit(row):
            raise tampered(place, f"its {wrong} has the wrong type")
        event = Event(**{k: v for k, v in row.items() if k != "hash"})
        if event.seq != place:
            raise tampered(place, "an event is missing")
        if event.previous != previous:
            raise tampered(place, "it does not follow the event before it")
        previous = event.hash
        if row["hash"] != previous:
            raise tampered(place, "its hash does not match its contents")
        events.append(event)
    return events


def next_event(events: Sequence[Event], **fields: Any) -> Event:
    """Return the event with these ``fields`` that follows ``events`` now; raises :class:`ProjectError` for a wrong
    field.
    """
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%MZ")
    previous = events[-1].hash if events else START
    return Event(seq=len(events) + 1, at=now, previous=previous, **checked_fields(fields))


def tampered(seq: int, why: str) -> LedgerError:
    """Return the error for an impossible event ``seq``."""
    return LedgerError(
        f"the ledger was tampered with, or is damaged, at event {seq}: {why}. No release can be charged to it; "
        "restore a backup and account for the releases made since",
        seq=seq,
    )
