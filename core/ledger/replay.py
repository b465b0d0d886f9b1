"""Replay of the events, which recomputes the state and checks every sum and rule, event by event."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeVar, get_args

from espalier.core.ledger.events import Event, tampered
from espalier.core.ledger.fields import FLOATS, MOST_NUMBER, MOST_ROWS_PER_PERSON
from espalier.core.ledger.population import (
    Diagnosis,
    Entry,
    Part,
    Population,
    person_in,
)
from espalier.core.ledger.terms import conversion_delta
from espalier.core.privacy.accounting import rho_of, rounded_up
from espalier.core.privacy.draws import PartKind
from espalier.core.project.people import KEY as ONE_ROW
from espalier.core.project.plan import Neighbors

ROUNDED = 1e-9
"""Relative difference allowed between the sum of an entry's parts and its counted ρ: both are sums of floats."""
LEAST_RHO = 1e-100
"""Smallest total. The smallest budget that can be opened, ε = 1e-6 at δ = 1e-300, is ρ = 4e-16."""
T = TypeVar("T")


def replay(events: Sequence[Event]) -> dict[str, Population]:
    """Return the populations by name. Raises :class:`LedgerError` at the first event that breaks a rule."""
    state = _State()
    for event in events:
        try:
            state.take(event)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise tampered(event.seq, str(error)) from None
    return state.result()


@dataclass(frozen=True)
class _Drawn:
    """Exact sums of an entry's parts, as in :func:`espalier.core.ledger.population.rho_drawn`: ``held`` is the private
    evaluation's ρ, ``own`` that of all other parts.
    """

    own: Fraction = Fraction(0)
    held: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    @property
    def rho(self) -> Fraction:
        """ρ that counts for the entry."""
        return max(self.own, self.held)

    def plus(self, kind: PartKind, rho: float, delta: float) -> _Drawn:
        """Return the sums with one more part."""
        own, held = (Fraction(0), Fraction(rho)) if kind == "look" else (Fraction(rho), Fraction(0))
        return _Drawn(self.own + own, self.held + held, self.delta + Fraction(delta))


@dataclass
class _State:
    """State after the events so far. ``rho`` and ``delta`` are the exact counted sums of each population, ``drawn``
    those of each entry's parts. Additions to a population or an entry are collected in lists until the end.
    """

    populations: dict[str, Population] = field(default_factory=dict)
    joined: dict[str, list[str]] = field(default_factory=dict)
    parts: dict[str, list[Part]] = field(default_factory=dict)
    drawn: dict[str, _Drawn] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    persons: dict[str, str | None] = field(default_factory=dict)
    diagnoses: dict[str, list[Diagnosis]] = field(default_factory=dict)
    rho: dict[str, Fraction] = field(default_factory=dict)
    delta: dict[str, Fraction] = field(default_factory=dict)

    def take(self, e: Event) -> None:
        """Apply one more event; raises ValueError, KeyError or TypeError if it breaks a rule."""
        _check_fields(e)
        if e.kind in ("open", "join"):
            self._table(e)
        else:
            _require(self.tables.get(e.table_name) == e.population, "its table is not open")
        if e.kind == "open":
            self._open(e)
        elif e.kind == "join":
            self.joined[e.population].append(e.table_name)
        elif e.kind == "reserve":
            self._reserve(e)
        elif e.kind == "diagnose":
            self.diagnoses[e.population].append(Diagnosis(e.at, e.who, e.table_name, e.note))
        elif e.kind in ("select", "measure", "look"):
            self._part(e, e.kind)
        elif e.kind == "stop":
            self._stop(e)
        elif e.kind in ("spend", "return"):
            self._end(e)
        else:
            raise ValueError(f"its kind {e.kind!r} is unknown")

    def result(self) -> dict[str, Population]:
        """Return the populations in the order in which they were opened, each with its entries in the order of
        reservation.
        """
        of: dict[str, list[Entry]] = {name: [] for name in self.populations}
        for entry in self.entries.values():
            of[entry.population].append(replace(entry, parts=tuple(self.parts[entry.id])))
        return {
            name: replace(
                p,
                tables=tuple(self.joined[name]),
                entries=tuple(of[name]),
                diagnoses=tuple(self.diagnoses[name]),
                persons={t: self.persons[t] for t in self.joined[name] if t in self.persons},
            )
            for name, p in self.populations.items()
        }

    def _table(self, e: Event) -> None:
        _require(e.table_name not in self.tables, "a table is opened twice")
        self.tables[e.table_name] = e.population
        if e.plan is not None:  # without this key, the table was opened before person columns were fixed
            self.persons[e.table_name] = person_in(_read(e.plan))

    def _open(self, e: Event) -> None:
        _require(e.population not in self.populations, "a total is set twice")
        epsilon, delta, rho = _given(e.epsilon), _given(e.delta), _given(e.rho)
        for_draws = 0.0 if e.plan is None else _share(_read(e.plan), "delta_for_draws")
        _require(0 < epsilon <= 100 and 0 < delta < 1 and 0 <= for_draws < delta, "its total is impossible")
        most = rho_of(epsilon, conversion_delta(delta, for_draws))
        _require(LEAST_RHO <= rho <= most * (1 + 1e-6), "its ρ exceeds what its (ε, δ) allows")
        neighbors: Neighbors = _given(e.neighbors)
        k = _given(e.rows_per_person)
        _require(neighbors in get_args(Neighbors) and 1 <= k <= MOST_ROWS_PER_PERSON, "its unit is impossible")
        self.populations[e.population] = Population(
            e.population,
            epsilon,
            delta,
            rho,
            neighbors,
            k,
            e.at,
            e.who,
            e.note,
            (),
            delta_for_draws=for_draws,
        )
        self.joined[e.population] = [e.table_name]
        self.rho[e.population] = self.delta[e.population] = Fraction(0)
        self.diagnoses[e.population] = []

    def _reserve(self, e: Event) -> None:
        p, stored = self.populations[e.population], _read(_given(e.plan))
        id_, rho, epsilon, delta = _given(e.entry), _given(e.rho), _given(e.epsilon), _given(e.delta)
        _require(id_ not in self.entries, "an entry is reserved twice")
        unit = p.neighbors, p.rows_per_person
        same = (e.neighbors, e.rows_per_person) == unit and delta == (0.0 if _is_pure(stored) else p.delta)
        _require(same, "its unit is not the population's")
        _require(rho > 0, "it reserves nothing")
        draws = _share(stored, "delta_for_draws")
        _require(draws >= 0, "it reserves a negative δ₀")
        before, after = self._change(e, Fraction(rho), Fraction(draws))
        _require(self.rho[p.name] <= Fraction(p.rho), "it reserves more than the total")
        _require(self.delta[p.name] <= Fraction(p.delta_for_draws), "it reserves more δ₀ than allowed for draws")
        relation = stored.get("relation")
        _require(isinstance(stored["project"], str) and isinstance(relation, str | None), "its plan has the wrong type")
        entry = Entry(
            id_,
            p.name,
            e.table_name,
            "reserved",
            e.at,
            e.who,
            stored["project"],
            stored["plan"],
            epsilon,
            delta,
            rho,
            rho,
            before,
            after,
            e.hash,
            e.note,
            diagnostics_before=len(self.diagnoses[p.name]),
            delta_reserved=draws,
            delta_counted=draws,
            one_row_per_person=_answer(stored),
            relation=relation,
        )
        self.entries[id_] = replace(entry, another_unit=self._another_unit(entry, stored))
        self.parts[id_], self.drawn[id_] = [], _Drawn()

    def _another_unit(self, entry: Entry, stored: dict[str, Any]) -> bool:
        """Return whether a reservation's person column differs from its table's, which the first reservation fixes."""
        another = entry.person != self.persons.setdefault(entry.table, entry.person)
        # before person columns were fixed, nothing was stored
        _require(stored.get("another_unit", another) is another, "it does not state whether it is for another unit")
        return another

    def _part(self, e: Event, kind: PartKind) -> None:
        entry, rho, delta = self._running(e), _given(e.rho), e.delta or 0.0
        _require(rho > 0 and delta >= 0, "it records draws without a cost")
        others = self.rho[e.population] - Fraction(entry.reserved)
        before = self.drawn[entry.id]
        after = self.drawn[entry.id] = before.plus(kind, rho, delta)
        sums = rounded_up(others + before.rho), rounded_up(others + after.rho)
        _require((e.rho_before, e.rho_after) == sums, "its amounts drawn before and after it are wrong")
        self.parts[entry.id].append(Part(kind, e.note, rho, _given(e.rho_before), _given(e.rho_after), delta))

    def _end(self, e: Event) -> None:
        entry, rho, delta = self._running(e), _given(e.rho), e.delta or 0.0
        _require(0 <= rho <= entry.reserved, "it counts more than was reserved")
        _require(0 <= delta <= entry.delta_reserved, "it counts more δ₀ than was reserved")
        _require(e.kind == "spend" or rho == delta == 0, "a returned entry must count nothing")
        sums, parts = self.drawn[entry.id], self.parts[entry.id]
        for counted, drawn in ((rho, float(sums.rho)), (delta, float(sums.delta))):
            _require(drawn <= counted * (1 + ROUNDED), "it counts less than was drawn")
            whole = not (e.released and parts) or drawn >= counted * (1 - ROUNDED)
            _require(whole, "its parts do not add up to its count")
        self._change(e, Fraction(rho) - Fraction(entry.reserved), Fraction(delta) - Fraction(entry.delta_reserved))
        self.entries[entry.id] = replace(
            entry,
            status="spent" if e.kind == "spend" else "returned",
            counted=rho,
            delta_counted=delta,
            ended=e.at,
            released=e.released,
            note="; ".join(filter(None, (entry.note, e.note))),
        )

    def _stop(self, e: Event) -> None:
        entry = self._running(e)
        self.entries[entry.id] = replace(entry, note="; ".join(filter(None, (entry.note, e.note))))

    def _running(self, e: Event) -> Entry:
        entry = self.entries[_given(e.entry)]
        _require((entry.population, entry.table) == (e.population, e.table_name), "its entry belongs to another table")
        _require(entry.status == "reserved", "its entry has ended")
        return entry

    def _change(self, e: Event, rho: Fraction, delta: Fraction) -> tuple[float, float]:
        """Add ``rho``; return the counted ρ before and after the event, checked against the event."""
        now = self.rho[e.population]
        before, after = rounded_up(now), rounded_up(now + rho)
        sums = e.rho_before, e.rho_after
        _require(sums == (before, after), "its amounts spent before and after it are wrong")
        self.rho[e.population] += rho
        self.delta[e.population] += delta
        return before, after


def _check_fields(e: Event) -> None:
    """Raise ValueError for an impossible number, or an entry in an event that must not have an entry."""
    for name in FLOATS:
        value = getattr(e, name)
        _require(value is None or 0 <= value <= MOST_NUMBER, f"its {name} is impossible")
    _require(e.entry is None or e.kind not in ("open", "join", "diagnose"), "it belongs to no entry")


def _read(plan: str) -> Any:
    """Return the JSON of an event; raise ValueError for a number that is not finite."""

    def finite(text: str) -> float:
        _require(math.isfinite(number := float(text)), "its plan contains a number that is not finite")
        return number

    value = json.loads(plan, parse_constant=finite, parse_float=finite)
    half = any(0xD800 <= ord(c) < 0xE000 for c in json.dumps(value, ensure_ascii=False))
    _require(not half, "its plan contains characters that are not text")  # an export could not be written
    return value


def _share(stored: Any, key: str) -> float:
    if not isinstance(stored, dict) or not isinstance(stored.get(key, 0.0), float):
        raise ValueError(f"its {key} is not a number")
    return float(stored.get(key, 0.0))


def _is_pure(stored: dict[str, Any]) -> bool:
    """Return whether the stored plan promises pure ε-differential privacy."""
    plan = stored.get("plan")
    return isinstance(plan, dict) and plan.get("accounting") == "pure"


def _answer(stored: Any) -> bool | None:
    """Return whether the released project states one row per person; ``None`` if nothing is stored."""
    answer = stored.get(ONE_ROW)
    if not isinstance(answer, bool | None):
        raise ValueError(f"its {ONE_ROW} is neither true nor false")
    return answer


def _given(value: T | None) -> T:
    if value is None:
        raise ValueError("a value is missing")
    return value


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
