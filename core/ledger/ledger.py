"""The steward's ledger: one budget for all that is ever released about the same people.

A **population** is a set of people with one total (ε, δ), set once, and one unit of privacy (neighbours, rows per
person, δ). The **tables** that describe these people share it; for each of them the **person column**, which says whose
a row is, is fixed when it is opened. With one, the rows per person are *enforced* in every release; with none, they are
*promised* by whoever plans. Whatever is to be released from one of them is an **entry**: its ρ is *reserved* before the
first draw, and counts from then on; in the end it is *spent*, or *returned* if nothing had been drawn. A run that
crashed stays reserved, and counts. An entry's **parts** are what was drawn for it: selections, measurements, and the
looking at rows held out.

Guarantee: everything ever released about a population is together ρ-zCDP for its unit, ρ the sum of what counts, never
above the total's, hence (ε, δ)-DP as the total says. Proof: each release is ρᵢ-zCDP for this unit (the curator), each
ρᵢ may be chosen after seeing what came before, and a filter that stops at a fixed total holds for such choices
(Whitehouse et al. 2023, Theorem 1); a person in several tables of a population meets all of their releases, which is
the same sum. (ε, δ) is converted to ρ once, rounded down; sums of ρ are exact (rational numbers), shown rounded up, and
what is left is rounded down. Parts add up likewise, but for looking, which meets other people than the rest of its
entry: an entry counts the larger of the two sums (`core.evaluation.private.held_out`). The sum is for one person and at
most that many of their rows in each table, so all releases of a table must mean the same people: one with another
person column is refused. Whoever insists may release it for **another unit**; this is written down and shown, and the sum is
then of ρ for different units. For tables without a person column the sum holds as far as the promise does.

**Diagnostics** that are not private steer what is planned and shared afterwards, which no budget covers. That somebody
looked at them is recorded before they are computed, and each entry tells how often this was done before it.

What is stored are **events**, only ever added: ``open`` and ``join`` (a table), ``reserve``, ``spend``, ``return``,
``diagnose``, and for the parts ``select``, ``measure``, ``look``. Parts are written together with the event that ends
their entry, in one transaction. Writing each as it is paid for would protect nothing, since all of the reservation
counts until the end whatever was drawn; it would show how long each took; and a ledger that is lost in the middle would
stop a run that is paid for. So a run that crashed has no parts, and counts in full.

Each event holds the hash of the one before; the state is what replaying them gives, and replaying checks every hash,
sum and rule again. Nothing in an event depends on private rows: plans, sums of ρ, hashes of what was released, keyed
fingerprints (`core.ledger.fingerprint`), and times to the minute (finer ones would tell how long counting took).
"""

from __future__ import annotations

import csv
import datetime as dt
import getpass
import hashlib
import io
import json
import math
import os
import secrets
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from core.errors import EspalierError, LedgerError, LedgerUnavailable, ProjectError
from core.ledger import fingerprint
from core.ledger.archive import unpacked
from core.ledger.store import Row, Store
from core.privacy.accounting import LARGEST_DELTA, Budget, epsilon_of, rho_of, round_up
from core.privacy.draws import Act, PartKind
from core.project.file import Project
from core.project.plan import Neighbors
from core.tables.csv_safety import defuse

FORMAT = "espalier-ledger/1"
_FLOATS = ("epsilon", "delta", "rho", "rho_before", "rho_after")
START = "0" * 64
"""What the first event follows."""
KEPT_BYTES = 64 << 20
"""Releases are kept up to this size, zipped."""
ROUNDED = 1e-9
"""By so much of itself the sum of an entry's parts may differ from what it counts: both are sums of floats."""
T = TypeVar("T")
Kind = Literal["open", "join", "reserve", "select", "measure", "look", "spend", "return", "diagnose"]
Status = Literal["reserved", "spent", "returned"]
PART_NAMES: Mapping[PartKind, str] = {"select": "selection", "measure": "measurement", "look": "looking"}
"""What parts of an entry are called wherever they are shown."""


@dataclass(frozen=True)
class Event:
    """One line of the ledger. What a kind does not need is None.

    ``epsilon``, ``delta``, ``rho`` are the total's (open), the plan's (reserve), what was drawn (a part), or what
    counts in the end (spend); ``rho_before`` and ``rho_after`` what counts in the population before and after this
    event (for a part: if its entry counted what had been drawn by then, and not what is reserved for it);
    ``released`` is the hash of what was handed over (:func:`digest_of`). ``plan`` is JSON: of a ``reserve`` the
    project's name, its plan, and whether it is for another unit than the table's; of ``open`` and ``join`` the person
    column (or null), and of ``open`` a random number, so that no two ledgers begin alike. Where a table was opened
    before person columns were fixed, it is None.
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
        """SHA-256 of everything above, ``previous`` included, as JSON with sorted keys."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def row(self) -> Row:
        """What is stored."""
        return {**asdict(self), "hash": self.hash}


@dataclass(frozen=True)
class Part:
    """All selections, measurements or looking of an entry that one pool of its budget paid for, ``what``.

    ``rho_before`` and ``rho_after`` are what counts in the population before and after it, other entries included.
    """

    kind: PartKind
    what: str
    rho: float
    rho_before: float
    rho_after: float


@dataclass(frozen=True)
class Entry:
    """A release as the ledger knows it. ``counted`` is the ρ that counts for it now; ``parts`` what it was drawn for.

    Parts are known once the entry has ended, and share its plan and its status.
    """

    id: str
    population: str
    table: str
    status: Status
    at: str
    who: str
    project: str
    plan: Mapping[str, Any]
    epsilon: float
    delta: float
    reserved: float
    counted: float
    rho_before: float
    rho_after: float
    chain: str
    note: str
    ended: str | None = None
    released: str | None = None
    parts: tuple[Part, ...] = ()
    another_unit: bool = False
    """Was it for another person column than the one fixed for its table?"""
    diagnostics_before: int = 0
    """How often diagnostics of its population had been looked at when it was reserved."""

    @property
    def person(self) -> str | None:
        """The person column of its plan."""
        return _person(self.plan)

    @property
    def unit(self) -> str:
        """Whether the rows per person are enforced or promised, and whether that is the table's unit."""
        return unit_in_words(self.person) + ("; another unit than the table's" if self.another_unit else "")

    @property
    def rho_now(self) -> float:
        """What counted when this was reserved, and on top of it what this counts now. Rounded up."""
        return _up(Fraction(self.rho_before) + Fraction(self.counted))

    @property
    def undrawn(self) -> float:
        """ρ that counts although nothing was drawn for it: of a run that was ended after its first draw."""
        if self.status != "spent" or self.released or not self.parts:
            return 0.0
        return max(_down(Fraction(self.counted) - _drawn(self.parts)), 0.0)


@dataclass(frozen=True)
class Diagnosis:
    """Somebody looked at figures that are not private, on rows of these people. ``what`` says where."""

    at: str
    who: str
    table: str
    what: str


@dataclass(frozen=True)
class Population:
    """People with one budget. ``rho`` is the total, rounded down from (``epsilon``, ``delta``) when it was set.

    ``persons`` is the person column fixed for each table, None for one whose unit is promised. A table that is not in
    it was opened before person columns were fixed, and nothing was released from it yet: the first release fixes it.
    """

    name: str
    epsilon: float
    delta: float
    rho: float
    neighbors: Neighbors
    rows_per_person: int
    opened_at: str
    opened_by: str
    note: str
    tables: tuple[str, ...]
    entries: tuple[Entry, ...] = ()
    persons: Mapping[str, str | None] = field(default_factory=dict)
    diagnoses: tuple[Diagnosis, ...] = ()

    def unit_of(self, table: str) -> str:
        """Whether the rows per person of a table are enforced or promised, in half a sentence."""
        return unit_in_words(self.persons[table]) if table in self.persons else "fixed by the first release"

    @property
    def caveats(self) -> list[str]:
        """What limits the sums of this population, in sentences."""
        out = []
        if others := sum(e.another_unit and e.counted > 0 for e in self.entries):
            out.append(
                f"{others} release{'s were' if others > 1 else ' was'} for another unit than the table's: the sums add "
                "up ρ of different units, and the total holds for neither"
            )
        if promised := [t for t in self.tables if self.persons.get(t, "") is None]:
            out.append(
                f"the sums hold as far as it is true that nobody has more than {self.rows_per_person} "
                f"row{'s' if self.rows_per_person > 1 else ''} in {', '.join(map(repr, promised))}: no person column "
                "enforces it"
            )
        if len(columns := {p for p in self.persons.values() if p is not None}) > 1:
            out.append(
                f"its tables name people by different columns ({', '.join(map(repr, sorted(columns)))}): the total "
                "holds as far as all of them mean the same people"
            )
        if self.diagnoses:
            last = self.diagnoses[-1]
            out.append(
                f"diagnostics that are not private were looked at {_times(len(self.diagnoses))}, last on "
                f"{last.at[:10]} by {last.who}: what is planned and shared since may depend on them"
            )
        return out

    @property
    def _counted(self) -> Fraction:
        return sum((Fraction(e.counted) for e in self.entries), Fraction(0))

    @property
    def spent(self) -> float:
        """ρ that counts: spent, and reserved by runs that have not ended. Rounded up."""
        return _up(self._counted)

    @property
    def left(self) -> float:
        """ρ that is left, rounded down."""
        return _down(Fraction(self.rho) - self._counted)

    def after(self, rho: float) -> float:
        """ρ left after one more release of ``rho``, rounded down; negative if it does not fit."""
        return _down(Fraction(self.rho) - self._counted - Fraction(rho))

    def epsilon_after(self, rho: float) -> float:
        """The ε that a sum of ``rho`` implies at this population's δ, rounded up."""
        return _epsilon(rho, self.delta)

    def largest(self, left: float | None = None) -> float:
        """The largest ε, to four figures, that one more plan may ask for out of ``left`` (default: what is left)."""
        left = self.left if left is None else left
        if left <= 0:
            return 0.0
        epsilon = _four_figures_down(_epsilon(left, self.delta) * (1 + 1e-6))  # ε → ρ → ε loses a last digit
        while epsilon >= 1e-6 and rho_of(epsilon, self.delta) > left:
            epsilon = _four_figures_down(epsilon * (1 - 1e-4))
        return epsilon if epsilon >= 1e-6 else 0.0

    def fits(self, project: Project, table: str, another_unit: bool = False) -> Project:
        """The project as it may be released from ``table``: a plan without a δ takes the population's.

        Raises :class:`LedgerError` for a plan with another unit of privacy; ``another_unit`` lets another person column
        pass.
        """
        plan = project.plan
        wanted = {"neighbors": self.neighbors, "rows_per_person": self.rows_per_person, "delta": self.delta}
        for key, fixed in wanted.items():
            given = getattr(plan, key)
            if given != fixed and not (key == "delta" and given is None):
                raise LedgerError(
                    f"the ledger fixed {key.replace('_', ' ')} at {fixed} for {self.name!r} when it was opened, and "
                    f"the plan says {given}: ρ of different units does not add up. Set the plan's to {fixed}",
                    key=key, fixed=fixed, population=self.name,
                )  # fmt: skip
        person = self.persons.get(table, plan.person)
        if plan.person != person and not another_unit:
            column = "no person column" if person is None else f"the person column {person!r}"
            named = "none" if plan.person is None else repr(plan.person)
            raise LedgerError(
                f"the ledger fixed {column} for the table {table!r}, and the plan names {named}: ρ of different units "
                "does not add up. Change the plan's person column; or release for another unit on the command line "
                "(--another-unit), which is recorded and shown",
                key="person", fixed=person, population=self.name,
            )  # fmt: skip
        return project.with_plan(delta=self.delta) if plan.delta is None else project

    def outlook(self, rho: float) -> dict[str, Any]:
        """What one more release of ``rho`` would leave, whether it fits, and how many like it fit after it."""
        after = self.after(rho)
        return {
            "population": self.name, "total": self.rho, "spent": self.spent, "left": self.left, "after": after,
            "fits": after >= 0, "largest_after": self.largest(after),
            "like_it_after": max(int(Fraction(after) / Fraction(rho)), 0),
        }  # fmt: skip

    def allows(self, rho: float) -> None:
        """Raise :class:`LedgerError` unless ``rho`` more fits into what is left."""
        if not (rho > 0 and math.isfinite(rho)):
            raise LedgerError(f"a release needs a positive share of the budget, not ρ = {rho}", requested=rho)
        if self._counted + Fraction(rho) > Fraction(self.rho):
            raise LedgerError(
                f"the ledger refuses: this needs ρ = {round_up(rho)}, and of {self.name!r} only {self.left:.4g} of "
                f"{self.rho:.4g} is left; nothing was read. "
                + (f"One plan with ε up to {self.largest():g} still fits" if self.largest() else "Nothing more fits"),
                requested=rho, remaining=self.left, population=self.name,
            )  # fmt: skip


class Ledger:
    """A ledger by path or URL. Reading it checks it: a ledger that was tampered with raises :class:`LedgerError`."""

    def __init__(self, where: str | Path, create: bool = False) -> None:
        """``where`` is a SQLite file (made if ``create``) or a PostgreSQL URL; :class:`LedgerUnavailable` if not."""
        self.store = Store(where, create)

    @property
    def name(self) -> str:
        """What to call it: its path, or its URL without a password."""
        return self.store.name

    def populations(self) -> dict[str, Population]:
        """Everybody's budget, by name, in the order of opening."""
        return replay(read_events(self.store.read()))

    def population_of(self, table: str) -> Population:
        """The population a table belongs to; raises :class:`LedgerError` if it was never opened."""
        return _population_of(self.populations(), table, self.name)

    def open_table(
        self, table: str, population: str | None = None, *, epsilon: float | None = None, delta: float | None = None,
        neighbors: Neighbors | None = None, rows_per_person: int | None = None, person: str | None = None,
        who: str = "", note: str = "",
    ) -> Population:  # fmt: skip
        """Give a table an identity and a person column, and its population a total, once and for all.

        ``person`` is the column that says whose a row is; None: that nobody has more than ``rows_per_person`` rows is a
        promise.

        A new population needs ``epsilon`` and ``delta`` (``neighbors`` default replace-one, ``rows_per_person`` 1). A
        table that describes the people of one that is open shares its budget: name it as ``population`` and give no
        total. Raises :class:`LedgerError` where something is open already, :class:`ProjectError` for values that
        cannot be.
        """
        table = _name("the table's name", table)
        people = _name("the population's name", population) if population else table
        who, note = _text("who opens it", who or whoami()), _text("the note", note)
        person = None if person is None else _name("the person column's name", person, "person")
        given = {"epsilon": epsilon, "delta": delta, "neighbors": neighbors, "rows_per_person": rows_per_person}

        def make(rows: Sequence[Row]) -> list[Row]:
            events = read_events(rows)
            known = replay(events)
            if any(table in p.tables for p in known.values()):
                raise LedgerError(f"{table!r} is open already; its total was set once and stays", table=table)
            if people in known and not population:
                raise LedgerError(
                    f"there is a population {people!r}; if this table is about the same people, say so by naming it as "
                    "their population, else choose another name", population=people,
                )  # fmt: skip
            common = {"who": who, "table_name": table, "population": people, "note": note}
            if (there := known.get(people)) is not None:
                for key, value in given.items():
                    if value is not None and value != getattr(there, key):
                        raise LedgerError(
                            f"{people!r} is open with {key.replace('_', ' ')} {getattr(there, key)}, set once; a table "
                            "that joins it shares its total and its unit", key=key, population=people,
                        )  # fmt: skip
                return [_next(events, kind="join", **common, plan=json.dumps({"person": person})).row()]
            total = _total(
                epsilon, delta, neighbors or "replace-one", 1 if rows_per_person is None else rows_per_person
            )
            fixed = json.dumps({"person": person, "random": secrets.token_hex(16)})
            return [_next(events, kind="open", **common, **total, rho_before=0.0, rho_after=0.0, plan=fixed).row()]

        self.store.secret()  # a ledger without its key file could not recognise tables
        self.store.append(make)
        return self.population_of(table)

    def account(
        self, table: str, who: str = "", note: str = "", *, again: bool = False, another_unit: bool = False
    ) -> Account:
        """The account that a release from ``table`` is paid from; raises :class:`LedgerError` if it is not open.

        ``again`` lets a release pass although the table was, or may have been, released before from another budget, or
        under another name with another person column;
        ``another_unit`` one with another person column than the table's.
        """
        self.population_of(table)
        said = _text("who releases", who or whoami()), _text("the note", note)
        return Account(self, table, *said, again, another_unit)

    def diagnosed(
        self, digests: Sequence[bytes], tables: Sequence[str] = (), who: str = "", what: str = ""
    ) -> list[str]:
        """Record that figures that are not private are about to be computed; returns the populations it concerns.

        They are computed on tables with these ``digests``: it concerns the populations of ``tables``, and those that
        one of the digests was released from by its fingerprint. Names that are not open are passed over.
        """
        who, what = _text("who looks", who or whoami()), _text("what is looked at", what)
        secret = self.store.secret()
        found: list[str] = []

        def make(rows: Sequence[Row]) -> list[Row]:
            events = read_events(rows)
            of = {e.table_name: e.population for e in events if e.kind in ("open", "join")}
            concerned = {of[table]: table for table in tables if table in of}
            for e in events:
                if e.fingerprint and any(fingerprint.matches(secret, d, e.fingerprint) for d in digests):
                    concerned.setdefault(e.population, e.table_name)
            found[:], added = concerned, list(events)
            for population, table in concerned.items():
                added.append(_next(added, kind="diagnose", who=who, population=population, table_name=table, note=what))
            return [event.row() for event in added[len(events) :]]

        self.store.append(make)
        return found

    def verify(self) -> list[str]:
        """What is wrong with the ledger, in words; empty if nothing is. Checks hashes, sums, rules, files, releases."""
        try:
            events = read_events(self.store.read())
            populations = replay(events)
        except LedgerError as error:
            return [str(error)]
        problems = []
        released = {e.released for p in populations.values() for e in p.entries if e.released}
        for hash_ in sorted(self.store.hashes()):
            if hash_ not in released:
                problems.append(f"a release is kept that no entry speaks of: {hash_}")
                continue
            try:
                self.files(hash_)
            except LedgerError as error:
                problems.append(str(error))
        problems += [f"{path} may be read by others than its owner" for path in self.store.open_to_others()]
        return problems

    def head(self) -> tuple[int, str]:
        """The number of events and the hash of the last: what to write down elsewhere, to notice missing ends."""
        events = read_events(self.store.read())
        return len(events), events[-1].hash if events else START

    def files(self, released: str) -> dict[str, bytes]:
        """The files of a release that was kept; raises :class:`LedgerError` if it was not, or was changed since."""
        data = self.store.kept(released)
        if data is None:
            raise LedgerError(f"the release {released} is not kept in this ledger", released=released)
        try:
            files = unpacked(data)
        except ProjectError as error:
            raise LedgerError(
                f"the release {released} was changed since it was kept: {error}", released=released
            ) from None
        if digest_of(files) != released:
            raise LedgerError(f"the release {released} was changed since it was kept", released=released)
        return files

    def to_json(self) -> dict[str, Any]:
        """The whole ledger: populations with their entries, and the chain of events. No private figure is in it."""
        return exported(read_events(self.store.read()))

    def csv(self) -> str:
        """The chain of events as CSV, one line each, with ε before and after at the population's δ.

        Of what opens a table and what is reserved, ``unit`` says whether rows per person are enforced or promised.
        """
        events = read_events(self.store.read())
        populations = replay(events)
        entries = {entry.id: entry for p in populations.values() for entry in p.entries}
        out = io.StringIO()
        heads = [*Event.__dataclass_fields__, "hash", "epsilon_before", "epsilon_after", "unit"]
        writer = csv.DictWriter(out, heads, lineterminator="\n")
        writer.writeheader()
        for e in events:
            p = populations[e.population]
            before, after = (None if r is None else p.epsilon_after(r) for r in (e.rho_before, e.rho_after))
            unit = entries[e.entry].unit if e.entry else p.unit_of(e.table_name)
            row = {**e.row(), "epsilon_before": before, "epsilon_after": after, "unit": unit}
            writer.writerow({k: defuse(v) if isinstance(v, str) else v for k, v in row.items()})
        return out.getvalue()


@dataclass(frozen=True)
class Account:
    """One table's account, for one release: who releases, a note, and what is let pass (:meth:`Ledger.account`)."""

    ledger: Ledger
    table: str
    who: str
    note: str
    again: bool = False
    another_unit: bool = False

    @property
    def population(self) -> Population:
        """As it stands now."""
        return self.ledger.population_of(self.table)

    def check(self, project: Project) -> Project:
        """The project as it may run; raises :class:`LedgerError` early, before a table is read.

        A plan takes all of its (ε, δ) in ρ, whatever is spent of that in the end.
        """
        population = self.population
        fitting = population.fits(project, self.table, self.another_unit)
        population.allows(rho_of(fitting.plan.epsilon, population.delta))
        return fitting

    def warnings(self, digest: bytes) -> list[str]:
        """Is this the table that was released from before, under this name? For the curator's eyes: never exported."""
        return [
            text for text, _ in _warnings(read_events(self.ledger.store.read()), self.ledger.store, self.table, digest)
        ]

    def reserve(self, project: Project, budget: Budget, digest: bytes) -> Reservation:
        """Set ``budget.rho`` aside, or raise :class:`LedgerError`; nothing may be drawn before this returns."""
        store, entry = self.ledger.store, secrets.token_hex(8)
        mark = fingerprint.mark(store.secret(), digest)
        person = project.plan.person
        warned: list[str] = []

        def make(rows: Sequence[Row]) -> list[Row]:
            events = read_events(rows)
            population = _population_of(replay(events), self.table, store.name)
            population.fits(project, self.table, self.another_unit)
            if budget.delta != population.delta:
                raise LedgerError(f"the budget is for another δ than the ledger's, {population.delta}", key="delta")
            population.allows(budget.rho)
            found = _warnings(events, store, self.table, digest)
            warned[:] = [text for text, _ in found]
            if not self.again and (elsewhere := [text for text, refused in found if refused]):
                raise LedgerError(
                    f"the ledger refuses: {'; '.join(elsewhere)}. Nothing was drawn. If the release is meant all the "
                    "same, say so (--again on the command line)", key="again",
                )  # fmt: skip
            another = person != population.persons.get(self.table, person)
            plan = json.dumps({"project": project.name, "plan": project.plan.to_json(), "another_unit": another})
            reserved = _next(
                events, kind="reserve", who=self.who, population=population.name, table_name=self.table, entry=entry,
                neighbors=population.neighbors, rows_per_person=population.rows_per_person, epsilon=budget.epsilon,
                delta=budget.delta, rho=budget.rho, rho_before=population.spent,
                rho_after=_up(population._counted + Fraction(budget.rho)), plan=plan, fingerprint=mark, note=self.note,
            )  # fmt: skip
            return [reserved.row()]

        store.append(make)
        population = self.population
        made = next(e for e in population.entries if e.id == entry)
        return Reservation(self, population, made, tuple(warned))


@dataclass(frozen=True)
class Reservation:
    """What was set aside for one release, and how it ends. ``warnings`` are for the curator's eyes."""

    account: Account
    population: Population
    entry: Entry
    warnings: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """What ``release.json`` says of it."""
        p, e = self.population, self.entry
        return {
            "population": p.name, "table": e.table, "entry": e.id, "reserved": e.reserved, "chain": e.chain,
            "total": {"epsilon": p.epsilon, "delta": p.delta, "rho": p.rho},
            "before": {"rho": e.rho_before, "epsilon": p.epsilon_after(e.rho_before)},
            "after": {"rho": e.rho_after, "epsilon": p.epsilon_after(e.rho_after)},
            "unit": {"person": e.person, "enforced": e.person is not None, "another_unit": e.another_unit},
            "diagnostics_before": e.diagnostics_before,
        }  # fmt: skip

    def spend(self, rho: float, files: Mapping[str, bytes], acts: Sequence[Act] = ()) -> str:
        """The release is made by ``acts``: it counts ``rho`` (at most what was reserved), and its files are kept.

        Returns the empty text, or what is to be said if the ledger could not be told: the release is paid for by its
        reservation and is handed over all the same.
        """
        if not 0 <= rho <= self.entry.reserved:
            raise ValueError("a release cannot spend more than was reserved for it")
        released, data = digest_of(files), _zip(files)
        note = "" if len(data) <= KEPT_BYTES else f"too large to keep: {len(data) / 2**20:.0f} MiB zipped"
        kept = None if note else (released, data)
        for wait in (0.2, 1.0, None):
            try:
                self._close("spend", rho, note, acts, released, kept)
                return note
            except EspalierError as error:
                trouble = error
            if wait is None or not isinstance(trouble, LedgerUnavailable):
                break
            time.sleep(wait)
        return f"{trouble}. The release counts in full, as it was reserved; the ledger does not know its hash"

    def end(self, drawn: bool, reason: str, acts: Sequence[Act] = ()) -> str:
        """The run ended without a release: returned if nothing was ``drawn``, else it counts in full.

        ``acts`` are what had been drawn by then.

        Returns the empty text, or what is to be said if the ledger could not be told: it counts in full.
        """
        try:
            self._close("spend" if drawn else "return", self.entry.reserved if drawn else 0.0, reason, acts)
        except EspalierError as error:
            return f"{error}. What was reserved counts as spent"
        return ""

    def _close(
        self, kind: Literal["spend", "return"], rho: float, note: str, acts: Sequence[Act],
        released: str | None = None, kept: tuple[str, bytes] | None = None,
    ) -> None:  # fmt: skip
        entry = self.entry

        def make(rows: Sequence[Row]) -> list[Row]:
            events = read_events(rows)
            if any(e.entry == entry.id and e.kind == kind and e.released == released for e in events):
                return []  # it was written the last time, and only the answer was lost
            population = replay(events)[entry.population]
            if not any(e.id == entry.id and e.status == "reserved" for e in population.entries):
                raise LedgerError(f"the entry {entry.id} has ended already", entry=entry.id)
            said = {
                "who": self.account.who, "population": entry.population, "table_name": entry.table, "entry": entry.id,
            }  # fmt: skip
            others, added = population._counted - Fraction(entry.reserved), list(events)
            for place, act in enumerate(acts):
                what = f"{act.pool or 'everything'}, {act.draws} draw{'s' if act.draws > 1 else ''}"
                what += " from rows held out" if act.kind == "look" else ""
                before, after = (_up(others + _drawn(acts[:i])) for i in (place, place + 1))
                added.append(
                    _next(added, kind=act.kind, **said, rho=act.rho, rho_before=before, rho_after=after, note=what)
                )
            added.append(_next(
                added, kind=kind, **said, rho=rho, rho_before=population.spent, rho_after=_up(others + Fraction(rho)),
                released=released, note=note,
            ))  # fmt: skip
            return [event.row() for event in added[len(events) :]]

        self.account.ledger.store.append(make, kept)


def replay(events: Sequence[Event]) -> dict[str, Population]:
    """The state that the events lead to. Raises :class:`LedgerError` at the first event that breaks a rule."""
    populations: dict[str, Population] = {}
    sums: dict[str, Fraction] = {}
    entries: dict[str, Entry] = {}
    tables: dict[str, str] = {}
    persons: dict[str, str | None] = {}
    diagnoses: dict[str, list[Diagnosis]] = {}
    for e in events:
        try:
            if e.kind in ("open", "join"):
                _require(e.table_name not in tables, "a table is opened twice")
                tables[e.table_name] = e.population
                if e.plan is not None:  # else it was opened before person columns were fixed
                    persons[e.table_name] = _person(json.loads(e.plan))
            else:
                _require(tables.get(e.table_name) == e.population, "its table is not open")
            if e.kind == "open":
                _require(e.population not in populations, "a total is set twice")
                populations[e.population] = _opened(e)
                sums[e.population] = Fraction(0)
                diagnoses[e.population] = []
            elif e.kind == "join":
                p = populations[e.population]
                populations[e.population] = replace(p, tables=(*p.tables, e.table_name))
            elif e.kind == "reserve":
                entry = _reserved(e, populations[e.population], sums, entries)
                entries[entry.id] = replace(
                    entry, another_unit=_another_unit(entry, e, persons),
                    diagnostics_before=len(diagnoses[e.population]),
                )  # fmt: skip
            elif e.kind == "diagnose":
                diagnoses[e.population].append(Diagnosis(e.at, e.who, e.table_name, e.note))
            elif e.kind in ("select", "measure", "look"):
                _part(e, e.kind, sums, entries)
            elif e.kind in ("spend", "return"):
                _closed(e, sums, entries)
            else:
                raise ValueError(f"there is no kind {e.kind!r}")
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise _tampered(e.seq, str(error)) from None
    of: dict[str, list[Entry]] = {name: [] for name in populations}
    for entry in entries.values():
        of[entry.population].append(entry)
    return {
        name: replace(
            p, entries=tuple(of[name]), persons={t: persons[t] for t in p.tables if t in persons},
            diagnoses=tuple(diagnoses[name]),
        )
        for name, p in populations.items()
    }  # fmt: skip


def exported(events: Sequence[Event]) -> dict[str, Any]:
    """What an export says: the events, and what replaying them gives."""
    out = []
    for p in replay(events).values():
        facts = {k: v for k, v in vars(p).items() if k not in ("entries", "tables", "diagnoses")}
        counts = {"spent": p.spent, "epsilon_spent": p.epsilon_after(p.spent), "left": p.left}
        entries = [facts_of(p, entry) for entry in p.entries]
        out.append({
            **facts, "tables": list(p.tables), "units": {t: p.unit_of(t) for t in p.tables}, "caveats": p.caveats,
            **counts, "largest_next": p.largest(), "diagnoses": [vars(d) for d in p.diagnoses], "entries": entries,
        })  # fmt: skip
    return {"format": FORMAT, "populations": out, "events": [dict(e.row()) for e in events]}


def _opened(e: Event) -> Population:
    epsilon, delta, rho = _there(e.epsilon), _there(e.delta), _there(e.rho)
    _require(0 < epsilon <= 100 and 0 < delta < 1, "its total cannot be")
    _require(0 < rho <= rho_of(epsilon, delta) * (1 + 1e-6), "its ρ is more than its (ε, δ) allows")
    neighbors: Neighbors = _there(e.neighbors)
    k = _there(e.rows_per_person)
    return Population(e.population, epsilon, delta, rho, neighbors, k, e.at, e.who, e.note, (e.table_name,))


def _reserved(e: Event, p: Population, sums: dict[str, Fraction], entries: dict[str, Entry]) -> Entry:
    entry, rho, epsilon, delta = _there(e.entry), _there(e.rho), _there(e.epsilon), _there(e.delta)
    _require(entry not in entries, "an entry is reserved twice")
    unit = p.neighbors, p.rows_per_person, p.delta
    _require((e.neighbors, e.rows_per_person, delta) == unit, "its unit is not the population's")
    _require(rho > 0, "it reserves nothing")
    before, after = _change(e, sums, Fraction(rho))
    _require(sums[p.name] <= Fraction(p.rho), "it reserves more than the total")
    plan = json.loads(_there(e.plan))
    return Entry(
        entry, p.name, e.table_name, "reserved", e.at, e.who, plan["project"], plan["plan"], epsilon, delta, rho, rho,
        before, after, e.hash, e.note,
    )  # fmt: skip


def _another_unit(entry: Entry, e: Event, persons: dict[str, str | None]) -> bool:
    """Is a reservation for another person column than its table's? The first one fixes it where nothing has yet."""
    another = entry.person != persons.setdefault(entry.table, entry.person)
    said = json.loads(_there(e.plan)).get("another_unit", another)  # before person columns were fixed it said nothing
    _require(said is another, "it does not say whether it is for another unit")
    return another


def _person(said: Any) -> str | None:
    """The person column in a plan, or in what opens a table."""
    _require(isinstance(said, Mapping), "its plan is none")
    person: str | None = said.get("person")
    _require(person is None or isinstance(person, str), "its person column is no name")
    return person


def unit_in_words(person: str | None) -> str:
    """Whether rows per person are enforced or promised, in half a sentence."""
    return "promised, no person column enforces it" if person is None else f"enforced by the person column {person!r}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count) or f"{count} times"


def _part(e: Event, kind: PartKind, sums: dict[str, Fraction], entries: dict[str, Entry]) -> None:
    entry, rho = _running(e, entries), _there(e.rho)
    _require(rho > 0, "it drew for nothing")
    others = sums[e.population] - Fraction(entry.reserved)
    parts = (*entry.parts, Part(kind, e.note, rho, _there(e.rho_before), _there(e.rho_after)))
    sums_drawn = _up(others + _drawn(entry.parts)), _up(others + _drawn(parts))
    _require((e.rho_before, e.rho_after) == sums_drawn, "what it says was drawn before and after is not the sum")
    entries[entry.id] = replace(entry, parts=parts)


def _drawn(parts: Sequence[Part | Act]) -> Fraction:
    """What parts of one entry count: looking meets other people than all the rest."""
    looked = sum((Fraction(p.rho) for p in parts if p.kind == "look"), Fraction(0))
    return max(looked, sum((Fraction(p.rho) for p in parts if p.kind != "look"), Fraction(0)))


def _running(e: Event, entries: dict[str, Entry]) -> Entry:
    entry = entries[_there(e.entry)]
    _require((entry.population, entry.table) == (e.population, e.table_name), "its entry is of another table")
    _require(entry.status == "reserved", "its entry has ended")
    return entry


def _closed(e: Event, sums: dict[str, Fraction], entries: dict[str, Entry]) -> None:
    entry, rho = _running(e, entries), _there(e.rho)
    _require(0 <= rho <= entry.reserved, "it counts more than was reserved")
    _require(e.kind == "spend" or rho == 0, "what is returned counts nothing")
    drawn = float(_drawn(entry.parts))
    _require(drawn <= rho * (1 + ROUNDED), "it counts less than was drawn")
    _require(not (e.released and entry.parts) or drawn >= rho * (1 - ROUNDED), "its parts are not all that it counts")
    _change(e, sums, Fraction(rho) - Fraction(entry.reserved))
    entries[entry.id] = replace(
        entry, status="spent" if e.kind == "spend" else "returned", counted=rho, ended=e.at, released=e.released,
        note="; ".join(filter(None, (entry.note, e.note))),
    )  # fmt: skip


def _change(e: Event, sums: dict[str, Fraction], by: Fraction) -> tuple[float, float]:
    """What counts in the population before and after the event, checked against what the event says."""
    before, after = _up(sums[e.population]), _up(sums[e.population] + by)
    _require((e.rho_before, e.rho_after) == (before, after), "what it says was spent before and after is not the sum")
    sums[e.population] += by
    return before, after


def _there(value: T | None) -> T:
    if value is None:
        raise ValueError("a value is missing")
    return value


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _tampered(seq: int, why: str) -> LedgerError:
    return LedgerError(
        f"the ledger was tampered with, or is damaged, at event {seq}: {why}. Nothing is released on it; bring back a "
        "backup and count what was released since",
        seq=seq,
    )


def read_events(rows: Sequence[Row]) -> list[Event]:
    """Rows as events, once the chain is seen to be whole; raises :class:`LedgerError`."""
    events: list[Event] = []
    previous = START
    for place, row in enumerate(rows, start=1):
        event = Event(**{k: v for k, v in row.items() if k != "hash"})
        if event.seq != place:
            raise _tampered(place, "an event is missing")
        if event.previous != previous:
            raise _tampered(place, "it does not follow the event before it")
        previous = event.hash
        if row["hash"] != previous:
            raise _tampered(place, "its hash is not that of what it says")
        events.append(event)
    return events


def _next(events: Sequence[Event], **said: Any) -> Event:
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%MZ")
    said = {k: float(v) if k in _FLOATS and v is not None else v for k, v in said.items()}  # as they are read back
    return Event(seq=len(events) + 1, at=now, previous=events[-1].hash if events else START, **said)


def _population_of(populations: Mapping[str, Population], table: str, where: str) -> Population:
    for population in populations.values():
        if table in population.tables:
            return population
    known = ", ".join(repr(t) for p in list(populations.values())[:8] for t in p.tables[:4])
    raise LedgerError(
        f"the ledger {where} has no table {table!r}" + (f"; it has {known}" if known else "")
        + ". Open its budget first (python -m core ledger open, or the Ledger page)",
        table=table,
    )  # fmt: skip


def _warnings(events: Sequence[Event], store: Store, table: str, digest: bytes) -> list[tuple[str, bool]]:
    """What the fingerprints say about a table: changed under an old name, old under a new one.

    Each text comes with whether it needs consent: the table was, or may have been, released from another budget, or for
    another person column.
    """
    marks = [e for e in events if e.fingerprint]
    if not marks:
        return []
    secret = store.secret()
    out: list[tuple[str, bool]] = []
    seen = {e.seq: fingerprint.matches(secret, digest, e.fingerprint or "") for e in marks}
    mine = [e for e in marks if e.table_name == table]
    p = _population_of(replay(events), table, store.name)
    here, persons = p.name, p.persons
    if mine and seen[mine[-1].seq] is False:
        out.append((
            f"the table has changed since {table!r} was last released from ({mine[-1].at[:10]}). If it is another "
            "table, give it its own name", False,
        ))  # fmt: skip
    others = {e.table_name: e.population for e in marks if seen[e.seq] and e.table_name != table}
    for other, population in others.items():
        mixed = population == here and persons.get(other, "") != persons.get(table, "")
        if mixed:
            how = "Both count in the same budget, but with another person column: ρ of different units does not add up"
        elif population == here:
            how = "Both count in the same budget"
        else:
            how = f"That was counted in another budget, {population!r}: the two add up, and no total covers both"
        out.append((f"this very table was released from before, as {other!r}. {how}", mixed or population != here))
    if unknown := [e for e in marks if seen[e.seq] is None]:
        out.append((
            f"some earlier releases carry fingerprints of another key than {store.key_file}: whether they were of this "
            "table cannot be told. Give all machines the same key file (ESPALIER_LEDGER_KEY says where it lies)",
            any(e.population != here for e in unknown),
        ))  # fmt: skip
    return out


def facts_of(population: Population, entry: Entry) -> dict[str, Any]:
    """An entry as plain values, with ε before and after at the population's δ, also of each of its parts."""

    def epsilons(one: Entry | Part) -> dict[str, float]:
        before, after = population.epsilon_after(one.rho_before), population.epsilon_after(one.rho_after)
        return {"epsilon_before": before, "epsilon_after": after}

    return {
        **{k: v for k, v in vars(entry).items() if k != "chain"},
        "plan": dict(entry.plan),
        **epsilons(entry),
        "parts": [{**vars(part), "status": entry.status, **epsilons(part)} for part in entry.parts],
        "undrawn": entry.undrawn,
        "unit": entry.unit,
        "enforced": entry.person is not None,
    }


def digest_of(files: Mapping[str, bytes]) -> str:
    """The hash of what was released: SHA-256 of what ``sha256sum`` prints for its files, sorted by name.

    In a release's folder, ``LC_ALL=C; sha256sum * | sha256sum`` prints the same.
    """
    lines = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()


def zipped(files: Mapping[str, bytes]) -> bytes:
    """The files of a release as one zip."""
    return _zip(files)


def default_ledger() -> str:
    """Where the ledger is unless said otherwise: ESPALIER_LEDGER (a path or URL), else a file of this user's."""
    if said := os.environ.get("ESPALIER_LEDGER"):
        return said
    from platformdirs import user_data_path

    return str(user_data_path("espalier", appauthor=False) / "ledger.db")


def whoami() -> str:
    """Who runs this, as the machine knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"


def _zip(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), files[name], zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _total(
    epsilon: float | None, delta: float | None, neighbors: Neighbors, rows_per_person: int | None
) -> dict[str, Any]:
    """The total of a new population, checked; raises :class:`ProjectError`."""
    k = 1 if rows_per_person is None else rows_per_person
    if epsilon is None or delta is None:
        raise ProjectError("a new budget needs its total: give ε and δ", key="epsilon" if epsilon is None else "delta")
    if not (math.isfinite(epsilon) and 1e-6 <= epsilon <= 100):
        raise ProjectError(f"the total's epsilon ({epsilon:g}) must be at least 1e-6 and at most 100", key="epsilon")
    if not 1e-300 <= delta < 1:
        raise ProjectError(f"the total's delta ({delta:g}) must lie between 0 and 1, both left out", key="delta")
    if delta > LARGEST_DELTA:
        raise ProjectError(
            f"the total's delta ({delta:g}) must not be above {LARGEST_DELTA:g}: publishing one row outright, drawn by "
            "lot, would keep such a promise. Give a delta far below 1/n, such as 1e-9",
            key="delta",
        )
    if neighbors not in ("replace-one", "add-remove"):
        raise ProjectError(f"neighbors is {neighbors!r}; it must be replace-one or add-remove", key="neighbors")
    if not 1 <= k <= 10_000:
        raise ProjectError("rows per person must be a whole number from 1 to 10,000", key="rows_per_person")
    return {
        "epsilon": float(epsilon), "delta": float(delta), "rho": rho_of(float(epsilon), float(delta)),
        "neighbors": neighbors, "rows_per_person": k,
    }  # fmt: skip


def _name(what: str, text: str, key: str = "table") -> str:
    text = _text(what, text)
    if not text or len(text) > 200:
        raise ProjectError(f"{what} must have 1 to 200 letters", key=key)
    return text


def _text(what: str, text: str) -> str:
    text = text.strip()
    if any(ord(c) < 32 or ord(c) == 127 or 0xD800 <= ord(c) < 0xE000 for c in text) or len(text) > 2000:
        raise ProjectError(f"{what} must be one line of at most 2,000 letters, without control characters")
    return text


@cache
def _epsilon(rho: float, delta: float) -> float:
    return epsilon_of(rho, delta)


def _up(exact: Fraction) -> float:
    """The nearest float that is not below."""
    near = float(exact)
    return math.nextafter(near, math.inf) if Fraction(near) < exact else near


def _down(exact: Fraction) -> float:
    """The nearest float that is not above."""
    near = float(exact)
    return math.nextafter(near, -math.inf) if Fraction(near) > exact else near


def _four_figures_down(x: float) -> float:
    step = 10.0 ** (math.floor(math.log10(x)) - 3)
    return float(f"{math.floor(x / step * (1 + 1e-12)) * step:.4g}")
