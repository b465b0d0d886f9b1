"""Payment for one release: checks and the reservation before the first draw, and the end of the reservation."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from espalier.core.errors import EspalierError, LedgerError, LedgerUnavailable, ProjectError
from espalier.core.ledger import fingerprint
from espalier.core.ledger.archive import digest_of, zipped
from espalier.core.ledger.events import Event, Row, next_event, read_events
from espalier.core.ledger.fields import number, octets, part
from espalier.core.ledger.population import Entry, Population, population_of, rho_drawn
from espalier.core.ledger.replay import ROUNDED, replay
from espalier.core.ledger.store import Store
from espalier.core.privacy.accounting import Budget, rho_asked, rounded_up
from espalier.core.privacy.draws import Subtotal
from espalier.core.project.file import Project
from espalier.core.project.people import KEY as ONE_ROW
from espalier.core.project.people import stated

KEPT_BYTES = 64 << 20
"""Maximum size of the zip file of a kept release."""
TOO_LARGE = "too large to keep"
"""Beginning of the note about a release that the ledger does not keep."""
OTHER_FILES = (
    "The ledger recorded the hash of files that were never written, so it does not recognise the files of this resumed "
    "release."
)
"""Warning about a release that the ledger did not keep and that was resumed after its entry had ended."""


@dataclass(frozen=True)
class Account:
    """One table's account for one release: the person, a note, and the confirmed warnings.

    See :meth:`espalier.core.ledger.ledger.Ledger.account`.
    """

    store: Store
    table: str
    who: str
    note: str
    again: bool = False
    another_unit: bool = False

    @property
    def population(self) -> Population:
        """Current state of the population."""
        return population_of(replay(self._events()), self.table, self.store.name)

    def _events(self) -> list[Event]:
        return read_events(self.store.read())

    def check(self, project: Project) -> Project:
        """Return the project with the ledger's δ; raises :class:`LedgerError` early, before a table is read.

        A plan reserves all of its (ε, δ) in ρ, even if less is spent in the end.
        """
        if not project.plan.has_epsilon:
            raise LedgerError(
                "a ledger records only private releases, but this plan has no epsilon. Set epsilon, or use no ledger",
                key="epsilon",
            )
        population = self.population
        fitting = population.fits(project, self.table, self.another_unit)
        population.allows(rho_asked(fitting.plan, population.delta), pure=fitting.plan.pure)
        return fitting

    def warnings(self, digest: bytes) -> list[str]:
        """Return warnings if a different table was released under this name. For the curator only: never exported."""
        return [text for text, _ in _warnings(self._events(), self.store, self.table, digest)]

    def reserve(
        self,
        project: Project,
        budget: Budget,
        digest: bytes,
        delta: float = 0.0,
        relation: str | None = None,
        begun: bytes = b"",
    ) -> Reservation:
        """Set ``budget.rho`` and ``delta`` (the δ₀ of all draws) aside, or raise :class:`LedgerError`.

        ``relation`` is the kind of the relation in the engine's catalogue, such as "view"; the entry records it.
        ``begun`` are the public facts that a resumed release needs; they are stored in the same transaction.

        Nothing may be drawn before this returns.
        """
        store, id_ = self.store, secrets.token_hex(8)
        epsilon, rho = number("epsilon", budget.epsilon), number("rho", budget.rho)
        delta = number("delta_for_draws", delta, most=1.0)
        mark = fingerprint.mark(store.secret(), octets("digest", digest))
        person = project.plan.person
        made: list[Reservation] = []

        def make(rows: Sequence[Row]) -> list[Row]:
            events = read_events(rows)
            population = population_of(replay(events), self.table, store.name)
            population.fits(project, self.table, self.another_unit)
            if not budget.pure and number("delta", budget.delta) != population.delta:
                raise LedgerError(f"the budget has a different δ from the ledger's, {population.delta}", key="delta")
            population.allows(rho, delta, budget.pure)
            found = _warnings(events, store, self.table, digest)
            if not self.again and (elsewhere := [text for text, refused in found if refused]):
                raise LedgerError(
                    f"the ledger refuses this release: {'; '.join(elsewhere)}. Nothing was drawn. To release "
                    "anyway, confirm it (--again on the command line)",
                    key="again",
                )
            another = person != population.persons.get(self.table, person)
            plan = {"project": project.name, "plan": project.plan.to_json(), "another_unit": another}
            if (one_row := stated(project.one_row_per_person, project.plan)) is not None:
                plan[ONE_ROW] = one_row
            if relation is not None:
                plan["relation"] = relation
            if delta:
                plan["delta_for_draws"] = delta
            reserved = next_event(
                events,
                kind="reserve",
                who=self.who,
                population=population.name,
                table_name=self.table,
                entry=id_,
                neighbors=population.neighbors,
                rows_per_person=population.rows_per_person,
                epsilon=epsilon,
                delta=budget.delta,
                rho=rho,
                rho_before=population.spent,
                rho_after=rounded_up(population.rho_counted + Fraction(rho)),
                plan=_as_json(plan),
                fingerprint=mark,
                note=self.note,
            )
            population = replay([*events, reserved])[population.name]
            entry = next(e for e in population.entries if e.id == id_)
            made[:] = [Reservation(self, population, entry, tuple(text for text, _ in found))]
            return [reserved.row()]

        try:
            store.append(make, begun=(id_, begun) if begun else None)
        except KeyboardInterrupt:  # it may already be stored
            for reservation in made:
                reservation.end(drawn=False, reason="ended without a release: cancelled")
            raise
        return made[0]

    def resumed(self, entry: str) -> Reservation:
        """Return the reservation of an interrupted release, or of one that was too large to keep."""
        population = self.population
        found = next((e for e in population.entries if e.id == entry), None)
        if found is None or found.status == "returned":
            raise LedgerError(f"entry {entry} has ended: nothing was drawn for it", entry=entry)
        return Reservation(self, population, found, ())


@dataclass(frozen=True)
class Reservation:
    """Reservation for one release, until the release ends. ``warnings`` are for the curator only."""

    account: Account
    population: Population
    entry: Entry
    warnings: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """Return the facts that ``release.json`` states about the entry."""
        p, e = self.population, self.entry
        return {
            "population": p.name,
            "table": e.table,
            "entry": e.id,
            "reserved": e.reserved,
            "chain": e.chain,
            "total": {"epsilon": p.epsilon, "delta": p.delta, "rho": p.rho},
            "before": {"rho": e.rho_before, "epsilon": p.epsilon_after(e.rho_before)},
            "after": {"rho": e.rho_after, "epsilon": p.epsilon_after(e.rho_after)},
            "unit": {"person": e.person, "enforced": e.person is not None, "another_unit": e.another_unit},
            "diagnostics_before": e.diagnostics_before,
            "delta_for_draws": {"total": p.delta_for_draws, "reserved": e.delta_reserved},
        }

    def spend(self, rho: float, files: Mapping[str, bytes], acts: Sequence[Subtotal] = (), delta: float = 0.0) -> str:
        """Record the release and keep its ``files``. ``acts`` are its draws, and ``rho`` and ``delta`` (its δ₀) are the
        amounts counted for it.

        Neither amount may exceed the reservation. Returns an empty string, or a warning if the ledger could not be
        written. In that case, the reservation pays for the release, which is returned anyway.
        """
        rho, delta = number("rho", rho), number("delta_for_draws", delta, most=1.0)
        acts = [part(act) for act in acts]
        for data in files.values():
            octets("file", data)
        if not (0 <= rho <= self.entry.reserved and 0 <= delta <= self.entry.delta_reserved * (1 + ROUNDED)):
            raise LedgerError("a release cannot spend more than was reserved for it", key="rho")
        released, kept = digest_of(files), zipped(files)
        note = "" if len(kept) <= KEPT_BYTES else f"{TOO_LARGE}: {len(kept) / 2**20:.0f} MiB zipped"
        end = _End("spend", rho, min(delta, self.entry.delta_reserved), note, released)
        for wait in (0.2, 1.0, None):
            try:
                self._close(end, acts, None if note else kept)
                if not note:
                    self.forget()
                return note
            except EspalierError as error:
                trouble = error
            if wait is None or not isinstance(trouble, LedgerUnavailable):
                break
            time.sleep(wait)
        if trouble.data.get("entry") == self.entry.id:
            return (
                "Another process has already ended the entry, so the ledger does not recognise the files of this "
                "release. If that process wrote a release from the same answers, the ledger keeps it: espalier ledger "
                f"take {self.entry.id} --out ANOTHER_FOLDER"
            )
        return (
            f"{trouble} The release counts in full, as reserved, but the ledger has no record of its hash. To write "
            f"it again and record it: espalier resume {self.entry.id} --out ANOTHER_FOLDER"
        )

    def forget(self) -> None:
        """Delete the stored answers of a release that is kept or was written. If this fails, the remaining answers are
        harmless.
        """
        with suppress(EspalierError):
            self.account.store.forget(self.entry.id)

    def end(self, drawn: bool, reason: str) -> str:
        """End a run without a release. If nothing was ``drawn``, the reservation is returned; otherwise the entry is
        stopped and counts in full.

        A stopped release can be resumed or closed. Returns an empty string, or a warning if the ledger could not be
        written: the entry then counts in full.
        """
        try:
            if drawn:
                self._stop(reason)
            else:
                self._close(_End("return", 0.0, 0.0, reason), ())
                self.account.store.forget(self.entry.id)
        except EspalierError as error:
            return f"{error} The reserved amount counts as spent."
        return ""

    def close(self, reason: str, acts: Sequence[Subtotal] = ()) -> None:
        """End a release that no one will resume. The reserved amount stays spent, and the stored answers are deleted.

        ``acts`` are the finished draws, if known.
        """
        e = self.entry
        self._close(_End("spend", e.reserved, e.delta_reserved, reason), acts)
        self.account.store.forget(e.id)

    def append(self, place: int, record: bytes) -> None:
        """Store the answer at ``place`` durably. If the connection is lost, retry; if that fails, the run must stop."""
        for wait in (0.2, 1.0, 3.0, None):
            try:
                self.account.store.note(self.entry.id, place + 1, record)
                return
            except LedgerUnavailable as error:
                if wait is None:
                    raise LedgerUnavailable(
                        f"{error} The answer was not used, and the release stays reserved. To finish it later: "
                        f"espalier resume {self.entry.id}"
                    ) from None
            time.sleep(wait)

    def _stop(self, reason: str) -> None:
        """Record once that the run stopped."""
        entry = self.entry

        def make(rows: Sequence[Row]) -> list[Row]:
            events = read_events(rows)
            replayed = replay(events)[entry.population]
            if not any(e.id == entry.id and e.status == "reserved" for e in replayed.entries):
                raise LedgerError(f"entry {entry.id} has already ended", entry=entry.id)
            fields = {"population": entry.population, "table_name": entry.table, "entry": entry.id, "note": reason}
            return [next_event(events, kind="stop", who=self.account.who, **fields).row()]

        self.account.store.append(make)

    def _close(self, end: _End, acts: Sequence[Subtotal], zip_: bytes | None = None) -> None:
        """Write the parts for ``acts`` and the end of the entry, in one transaction; ``zip_`` is kept with the
        entry.
        """
        entry = self.entry
        common = {
            "who": self.account.who,
            "population": entry.population,
            "table_name": entry.table,
            "entry": entry.id,
        }

        def make(rows: Sequence[Row]) -> list[Row]:
            events = read_events(rows)
            if any(e.entry == entry.id and e.kind == end.kind and e.released == end.released for e in events):
                return []  # the previous attempt was successful, and only the server's reply was lost
            population = replay(events)[entry.population]
            if not any(e.id == entry.id and e.status == "reserved" for e in population.entries):
                raise LedgerError(f"entry {entry.id} has already ended", entry=entry.id)
            others, added = population.rho_counted - Fraction(entry.reserved), list(events)
            for place, act in enumerate(acts):
                before, after = (rounded_up(others + rho_drawn(acts[:i])) for i in (place, place + 1))
                added.append(
                    next_event(
                        added,
                        kind=act.kind,
                        **common,
                        rho=act.rho,
                        delta=act.delta or None,
                        rho_before=before,
                        rho_after=after,
                        note=_in_words(act),
                    )
                )
            added.append(
                next_event(
                    added,
                    kind=end.kind,
                    **common,
                    rho=end.rho,
                    delta=end.delta or None,
                    rho_before=population.spent,
                    rho_after=rounded_up(others + Fraction(end.rho)),
                    released=end.released,
                    note=end.note,
                )
            )
            return [event.row() for event in added[len(events) :]]

        kept = None if end.released is None or zip_ is None else (end.released, zip_)
        if end.kind == "return":
            self.account.store.append(make, kept, undrawn=entry.id)
        else:
            self.account.store.append(make, kept)


@dataclass(frozen=True)
class _End:
    """End of an entry: its counted amounts, and the hash of the released files."""

    kind: Literal["spend", "return"]
    rho: float
    delta: float
    note: str
    released: str | None = None


def _as_json(plan: Mapping[str, Any]) -> str:
    try:
        return json.dumps(plan, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ProjectError("ledger: the plan may contain only text, finite numbers and lists", key="plan") from None


def _in_words(act: Subtotal) -> str:
    text = f"{act.pool or 'everything'}, {act.draws} draw{'s' if act.draws > 1 else ''}"
    return text + (" from rows held out" if act.kind == "look" else "")


def _warnings(events: Sequence[Event], store: Store, table: str, digest: bytes) -> list[tuple[str, bool]]:
    """Return warnings from a table's fingerprints: it has changed under a known name, or it is known under another
    name. Each warning has a flag that is true if it needs consent. This is the case if the table was, or may have been,
    released from another budget or for another person column.
    """
    marks = [e for e in events if e.fingerprint]
    if not marks:
        return []
    secret = store.secret()
    out: list[tuple[str, bool]] = []
    seen = {e.seq: fingerprint.matches(secret, digest, e.fingerprint or "") for e in marks}
    mine = [e for e in marks if e.table_name == table]
    p = population_of(replay(events), table, store.name)
    here, persons = p.name, p.persons
    if mine and fingerprint.matches(secret, digest, mine[-1].fingerprint or "", whole=True) is False:
        out.append(
            (
                f"the table has changed since it was last released as {table!r} ({mine[-1].at[:10]}). If it is a "
                "different table, give it its own name",
                False,
            )
        )
    others = {e.table_name: e.population for e in marks if seen[e.seq] and e.table_name != table}
    for other, population in others.items():
        mixed = population == here and persons.get(other, "") != persons.get(table, "")
        if mixed:
            how = (
                "Both releases count in the same budget but have different person columns, and ρ "
                "values for different units of privacy cannot be added"
            )
        elif population == here:
            how = "Both releases count in the same budget"
        else:
            how = (
                f"That release was counted in another budget, {population!r}. The privacy losses of both releases add "
                "up, but no total covers both"
            )
        out.append((f"this table was already released as {other!r}. {how}", mixed or population != here))
    if unknown := [e for e in marks if seen[e.seq] is None]:
        out.append(
            (
                f"some earlier releases have fingerprints made with a different key from {store.key_file}, so the "
                "ledger cannot check whether they used this table. Use the same key file on all machines (set "
                "its path in ESPALIER_LEDGER_KEY)",
                any(e.population != here for e in unknown),
            )
        )
    return out
