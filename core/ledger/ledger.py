"""The steward's ledger: one budget for all releases about the same people.

A **population** is a set of people with one total (ε, δ), set once, and one unit of privacy (neighbours, rows per
person, δ). The **tables** that describe these people share it. Each table's **person column**, which identifies the
person of a row, is fixed when it is opened. With a person column, the rows per person are *enforced* in every release;
without one, the plan's author *promises* them. A release from one of the tables is an **entry**: its ρ and its δ₀ are
*reserved* before the first draw, and count from then on. When the release ends they are *spent*, or *returned* if
nothing was drawn. The reservation of a crashed run remains and counts. An entry's **parts** are its draws: selections,
measurements, and the private evaluation on held-out rows.

Guarantee: all releases about a population together are δ₀-approximately ρ-zCDP for its unit, where ρ and δ₀ are the
sums of the counted amounts and never exceed the totals, and therefore (ε, δ)-DP with the total's ε and δ. Proof: each
release is δ₀ᵢ-approximately ρᵢ-zCDP for this unit (the curator; δ₀ᵢ = 0 for nearly all), each pair may be chosen after
seeing the earlier ones, and a filter that stops at a fixed ρ and a fixed δ₀ is valid for such choices (Whitehouse et
al. 2023, Theorem 1). A person in several tables of a population is affected by the releases of all of them, which the
same sum covers. δ is divided when the budget is opened: ``delta_for_draws`` = D for the draws, δ − D for the conversion
of ρ. A δ₀-approximately ρ-zCDP mechanism is (ε, δ₀ + (1 − δ₀)δ′)-DP where ρ-zCDP alone would be (ε, δ′)-DP (Bun &
Steinke 2016, Section 8); with δ₀ ≤ D and δ′ = δ − D that is at most δ. D is fixed in advance instead of being the
amount used so far, since the theorem needs fixed totals: anyone who could exchange δ₀ for ρ after seeing an answer
could use almost 2δ (`tests/ledger/test_delta.py` does). (ε, δ − D) is converted to ρ once, rounded down. Sums are exact
(rational numbers) and shown rounded up; the remainder is rounded down. The ρ of an entry's parts adds up in the same
way, with one exception: the private evaluation affects different people from the other parts, so an entry counts the
larger of the two sums (`espalier.core.evaluation.private.held_out`). The δ₀ of all parts add up. The sum covers one
person with at most the unit's number of rows in each table, so all releases of a table must refer to the same people. A
release with a different person column is therefore refused. With the user's consent, a table may be released for
**another unit**. The ledger records and shows this, and the sum then adds up ρ for different units. Without a person
column the sum is valid if the promise is true.

**Diagnostics** that are not private influence later plans and releases, and no budget covers this influence. The ledger
records a view of diagnostics before they are computed. Each entry states the number of earlier views.
"""

from __future__ import annotations

import getpass
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from espalier.core.errors import LedgerError, ProjectError
from espalier.core.ledger.account import Account
from espalier.core.ledger.archive import digest_of, unpacked
from espalier.core.ledger.events import START, Event, Row, next_event, read_events
from espalier.core.ledger.export import csv_text, exported
from espalier.core.ledger.fields import line, look_alike, yes_or_no
from espalier.core.ledger.population import Population, population_of
from espalier.core.ledger.replay import replay
from espalier.core.ledger.store import Store
from espalier.core.ledger.terms import Terms, checked, given_terms
from espalier.core.ledger.views import record_view


class Ledger:
    """A ledger by path or URL. Reading a ledger also checks it; a manipulated one raises :class:`LedgerError`.

    >>> import espalier as es
    >>> ledger = es.Ledger("ledger.db", create=True)
    >>> register = ledger.open_table("register", epsilon=3, delta=1e-9)
    >>> register.tables, register.entries
    (('register',), ())
    """

    def __init__(self, where: str | Path, create: bool = False) -> None:
        """``where`` is a SQLite file (created with ``create``) or a PostgreSQL URL; otherwise raises
        :class:`LedgerUnavailable`.
        """
        self.store = Store(where, create)

    @property
    def name(self) -> str:
        """Displayed name: the ledger's path, or its URL without a password."""
        return self.store.name

    def events(self) -> list[Event]:
        """Return all events, oldest first."""
        return read_events(self.store.read())

    def populations(self) -> dict[str, Population]:
        """Return a mapping from names to populations with their budgets, in the order in which they were opened."""
        return replay(self.events())

    def population_of(self, table: str) -> Population:
        """Return the population to which a table belongs; raises :class:`LedgerError` if it was never opened."""
        return population_of(self.populations(), table, self.name)

    def open_table(
        self,
        table: str,
        population: str | None = None,
        *,
        person: str | None = None,
        who: str = "",
        note: str = "",
        **terms: Unpack[Terms],
    ) -> Population:
        """Register a table with its person column, and set its population's total permanently.

        ``person`` is the column that identifies a row's person. If it is None, at most ``rows_per_person`` rows per
        person are promised.

        A new population needs at least ``epsilon`` and ``delta`` of its :class:`Terms`. A table about the people of an
        open population shares its budget: pass it as ``population`` without terms. Raises :class:`LedgerError` if the
        table is already open, :class:`ProjectError` for impossible values.
        """
        table = _name("table", table)
        shared_with = "" if population is None else _line("population", population)
        people = _name("population", shared_with) if shared_with else table
        given = given_terms(terms)
        who, note = _line("who", who) or whoami(), _line("note", note)
        person = None if person is None else _name("person", person)

        def make(rows: Sequence[Row]) -> list[Row]:
            events = read_events(rows)
            known = replay(events)
            if any(table in p.tables for p in known.values()):
                raise LedgerError(f"{table!r} is already open; its total was set once and cannot change", table=table)
            names = {name for p in known.values() for name in (p.name, *p.tables)}
            for key, name in (("table", table), ("population", people)):
                if name not in known and (other := look_alike(name, sorted(names))) is not None:
                    raise LedgerError(
                        f"the {key} {name!a} looks like {other!a}, which is open, but uses different characters. Use "
                        "the same name for the same people, and a clearly different one for others",
                        table=table,
                    )
            if people in known and not shared_with:
                raise LedgerError(
                    f"a population {people!r} already exists. If the table describes the same people, add it to "
                    "that population; otherwise choose another name",
                    population=people,
                )
            fields = {"who": who, "table_name": table, "population": people, "note": note}
            if (shared := known.get(people)) is not None:
                _check_same(shared, given)
                return [next_event(events, kind="join", **fields, plan=json.dumps({"person": person})).row()]
            total = {**checked(given), "rho_before": 0.0, "rho_after": 0.0}
            fixed: dict[str, Any] = {"person": person, "random": secrets.token_hex(16)}
            if for_draws := given.get("delta_for_draws"):
                fixed["delta_for_draws"] = for_draws
            return [next_event(events, kind="open", **fields, **total, plan=json.dumps(fixed)).row()]

        self.store.secret()  # without a key file, a ledger could not recognise tables
        self.store.append(make)
        return self.population_of(table)

    def account(
        self, table: str, who: str = "", note: str = "", *, again: bool = False, another_unit: bool = False
    ) -> Account:
        """Return the account that pays for a release from ``table``; raises :class:`LedgerError` if it is not open.

        ``again`` accepts a release although the table was, or may have been, released before from another budget, or
        under another name with another person column. ``another_unit`` accepts a release whose person column is not the
        table's.
        """
        table = _name("table", table)
        self.population_of(table)
        who, note = _line("who", who) or whoami(), _line("note", note)
        again, another_unit = yes_or_no("again", again), yes_or_no("another_unit", another_unit)
        return Account(self.store, table, who, note, again, another_unit)

    def diagnosed(
        self, digests: Sequence[bytes], tables: Sequence[str] = (), who: str = "", what: str = "", chain: object = None
    ) -> list[str]:
        """Record that someone is about to compute figures that are not private
        (:func:`espalier.core.ledger.views.record_view`).
        """
        return record_view(self.store, digests, tables, _line("who", who) or whoami(), what, chain)

    def verify(self) -> list[str]:
        """Check hashes, sums, rules, files and releases, and return the faults found."""
        try:
            stored = self.store.hashes()  # before the events, because a release may end in between
            populations = self.populations()
        except LedgerError as error:
            return [str(error)]
        problems = []
        released = {e.released for p in populations.values() for e in p.entries if e.released}
        for hash_ in sorted(stored):
            if hash_ not in released:
                problems.append(f"a stored release belongs to no entry: {hash_}")
                continue
            try:
                self.files(hash_)
            except LedgerError as error:
                problems.append(str(error))
        problems += [f"{path} can be read by users other than its owner" for path in self.store.open_to_others()]
        return problems

    def head(self) -> tuple[int, str]:
        """Return the number of events and the last hash, which should also be recorded elsewhere so that missing events
        are noticed.
        """
        events = self.events()
        return len(events), events[-1].hash if events else START

    def files(self, released: str) -> dict[str, bytes]:
        """Return the files of a release that was kept; raises :class:`LedgerError` if it was not kept or has changed
        since.
        """
        data = self.store.kept(released)
        if data is None:
            raise LedgerError(f"the release {released} is not kept in this ledger", released=released)
        changed = f"the release {released} has changed since it was kept"
        try:
            files = unpacked(data)
        except ProjectError as error:
            raise LedgerError(f"{changed}: {error}", released=released) from None
        if digest_of(files) != released:
            raise LedgerError(changed, released=released)
        return files

    def to_json(self) -> dict[str, Any]:
        """Return the whole ledger: populations with their entries, and the event chain. No figure in it is private."""
        return exported(self.events())

    def csv(self) -> str:
        """Return the event chain as CSV (:func:`espalier.core.ledger.export.csv_text`)."""
        return csv_text(self.events())


def _check_same(population: Population, terms: Mapping[str, Any]) -> None:
    """Raise :class:`LedgerError` if a table joins a population with different terms."""
    for key, value in terms.items():
        if value != getattr(population, key):
            raise LedgerError(
                f"{population.name!r} was opened with {key.replace('_', ' ')} {getattr(population, key)}, which cannot "
                "change; a table that joins it shares its total and its unit",
                key=key,
                population=population.name,
            )


def default_ledger() -> str:
    """Return the default location of the ledger: ESPALIER_LEDGER (a path or URL), or a file of the current user."""
    if place := os.environ.get("ESPALIER_LEDGER"):
        return place
    from platformdirs import user_data_path

    return str(user_data_path("espalier", appauthor=False) / "ledger.db")


def whoami() -> str:
    """Return the user's name on this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"


def _name(key: str, text: str) -> str:
    text = _line(key, text)
    if not text or len(text) > 200:
        raise ProjectError(f"ledger: the {key}'s name must have 1 to 200 characters", key=key)
    return text


def _line(key: str, text: str) -> str:
    return line(key, text.strip() if isinstance(text, str) else text)
