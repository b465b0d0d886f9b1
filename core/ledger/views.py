"""Views of diagnostics that are not private, which a ledger records before they are computed."""

from __future__ import annotations

from collections.abc import Sequence

from espalier.core.errors import LedgerError
from espalier.core.ledger import fingerprint
from espalier.core.ledger.events import Row, next_event, read_events
from espalier.core.ledger.fields import line, octets
from espalier.core.ledger.store import Store


def record_view(
    store: Store, digests: Sequence[bytes], tables: Sequence[str], who: str, what: str, chain: object = None
) -> list[str]:
    """Record that someone is about to compute figures that are not private, on tables with these ``digests``. Return
    the populations concerned: those of ``tables``, and the one that paid for the entry whose hash is ``chain``. Names
    that are not open are ignored.

    Raises :class:`LedgerError` if one of the digests was released, according to its fingerprint, and no population of
    such a release is named. A view is never recorded on the basis of a fingerprint alone, because the exported events
    would then show whether a table has changed since its release.
    """
    who, what = line("who", who), line("what", what)
    digests, tables = [octets("digest", d) for d in digests], [line("table", table) for table in tables]
    secret = store.secret()
    found: list[str] = []

    def make(rows: Sequence[Row]) -> list[Row]:
        events = read_events(rows)
        of = {e.table_name: e.population for e in events if e.kind in ("open", "join")}
        paid = [e.table_name for e in events if e.kind == "reserve" and e.hash == chain]
        concerned = {of[table]: table for table in (*tables, *paid) if table in of}
        known = {
            e.population: e.table_name
            for e in events
            if e.fingerprint and any(fingerprint.matches(secret, d, e.fingerprint) for d in digests)
        }
        if known and not known.keys() & concerned.keys():
            names = " and ".join(map(repr, sorted(known.values())))
            raise LedgerError(
                f"this table was already released as {names}, so a view of its diagnostics must be recorded there. "
                "Name that table: --table on the command line; ledger= in a notebook; in the app, choose its budget on "
                "the Release page. Nothing was computed",
                key="table",
            )
        found[:], added = concerned, list(events)
        for population, table in concerned.items():
            fields = {"who": who, "population": population, "table_name": table, "note": what}
            added.append(next_event(added, kind="diagnose", **fields))
        return [event.row() for event in added[len(events) :]]

    store.append(make)
    return found
