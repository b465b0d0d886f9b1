"""Forged exports of the ledger."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.forgeries.case import (
    Case,
    Files,
    kind,
)


def chained(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events with new numbers and hashes."""
    previous, out = "0" * 64, []
    for i, event in enumerate(events, 1):
        fields = {**{k: v for k, v in event.items() if k != "hash"}, "seq": i, "previous": previous}
        previous = hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        out.append({**fields, "hash": previous})
    return out


def with_events(case: Case, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> tuple[Files, Any]:
    """Return the honest files with an export of changed events."""
    events = [dict(e.row()) for e in case.ledger.events()]
    return dict(case.honest.files), {"format": "espalier-ledger/1", "populations": [], "events": change(events)}


def mine(case: Case, event: Mapping[str, Any]) -> bool:
    """Return whether an event belongs to this release."""
    reservation = case.honest.reservation
    return reservation is not None and event["entry"] == reservation.entry.id


@kind("ledger")
def the_entry_is_missing(case: Case) -> Any:
    return with_events(case, lambda events: chained([e for e in events if not mine(case, e)]))


@kind("ledger")
def the_entry_is_there_twice(case: Case) -> Any:
    return with_events(case, lambda events: chained([*events, *(e for e in events if mine(case, e))]))


@kind("ledger")
def the_entry_is_of_another_table(case: Case) -> Any:
    def change(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return chained([{**e, "table_name": "another"} if mine(case, e) else e for e in events])

    return with_events(case, change)


@kind("ledger")
def the_entry_counts_less(case: Case) -> Any:
    def change(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return chained([{**e, "rho": e["rho"] / 2} if mine(case, e) and e["kind"] == "spend" else e for e in events])

    return with_events(case, change)


@kind("ledger")
def the_total_is_exceeded(case: Case) -> Any:
    def change(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        more = [{**e, "entry": "x" * 16, "rho": 10.0} for e in events if mine(case, e) and e["kind"] == "reserve"]
        return chained([*events, *more])

    return with_events(case, change)


@kind("ledger")
def the_chain_is_broken(case: Case) -> Any:
    return with_events(case, lambda events: [{**events[0], "note": "changed"}, *events[1:]])


@kind("ledger")
def the_unit_of_the_entry_is_another(case: Case) -> Any:
    def change(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return chained([{**e, "rows_per_person": 5} if e["kind"] in ("open", "reserve") else e for e in events])

    return with_events(case, change)


@kind("ledger")
def the_release_names_no_entry(case: Case) -> Any:
    _, export = with_events(case, lambda events: events)
    return case.made(reservation=None).files, export
