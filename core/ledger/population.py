"""State of a ledger (populations with their entries and parts), and the arithmetic of the remaining budget. Sums of ρ
and of δ₀ are exact (rational numbers). Spent amounts are shown rounded up, and remaining amounts rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any, Literal

from espalier.core.errors import LedgerError
from espalier.core.ledger.fields import look_alike
from espalier.core.ledger.terms import conversion_delta
from espalier.core.privacy.accounting import Budget, epsilon_of, rho_of, round_up, rounded_down, rounded_up
from espalier.core.privacy.draws import PartKind, Subtotal
from espalier.core.project.file import Project
from espalier.core.project.options import short
from espalier.core.project.plan import Neighbors

Status = Literal["reserved", "spent", "returned"]
PART_NAMES: Mapping[PartKind, str] = {"select": "selection", "measure": "measurement", "look": "private evaluation"}
"""Names of an entry's parts on screen."""


@dataclass(frozen=True)
class Part:
    """An entry's selections, measurements or private evaluation that were paid for by one pool of its budget, ``what``.

    ``rho_before`` and ``rho_after`` are the counted ρ of the population before and after it, including other entries.
    ``delta`` is its δ₀.
    """

    kind: PartKind
    what: str
    rho: float
    rho_before: float
    rho_after: float
    delta: float = 0.0


@dataclass(frozen=True)
class Entry:
    """A release in the ledger. ``counted`` is the ρ that counts for it now; ``parts`` state what it was spent on.

    ``delta`` is the plan's. ``delta_reserved`` and ``delta_counted`` are the δ₀ allowed for its draws and the δ₀
    counted now. Parts are known once the entry has ended, and share its plan and its status.
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
    """True if the release used a different person column from the one fixed for its table."""
    diagnostics_before: int = 0
    """Number of views of the population's diagnostics when the release was reserved."""
    delta_reserved: float = 0.0
    delta_counted: float = 0.0
    one_row_per_person: bool | None = None
    """The project's statement about one row per person; ``None`` if it has none, as in old projects."""
    relation: str | None = None
    """Kind of the relation in the catalogue, such as "view"; None for files, and in older entries."""

    @property
    def person(self) -> str | None:
        """Person column of the plan."""
        return person_in(self.plan)

    @property
    def unit(self) -> str:
        """Clause that states whether the row limit per person is enforced or promised, and whether the unit is the
        table's.
        """
        one = self.person is None and self.one_row_per_person
        promised = "; the project states one row per person" if one else ""
        return (
            unit_in_words(self.person) + promised + ("; a different unit from the table's" if self.another_unit else "")
        )

    @property
    def rho_now(self) -> float:
        """Total before the reservation, plus the amount counted now, rounded up."""
        return rounded_up(Fraction(self.rho_before) + Fraction(self.counted))

    @property
    def stopped_short(self) -> bool:
        """True if some of the counted ρ was never drawn, apart from rounding."""
        return self.undrawn > 1e-9 * self.counted

    @property
    def undrawn(self) -> float:
        """ρ that counts although it was never drawn, because the run was ended after its first draw."""
        if self.status != "spent" or self.released or not self.parts:
            return 0.0
        return max(rounded_down(Fraction(self.counted) - rho_drawn(self.parts)), 0.0)


@dataclass(frozen=True)
class Diagnosis:
    """A view of figures that are not private, on rows of these people. ``what`` names the figures."""

    at: str
    who: str
    table: str
    what: str


@dataclass(frozen=True)
class Population:
    """People with one total budget, (``epsilon``, ``delta``).

    ``delta_for_draws`` is the share of ``delta`` reserved for the δ₀ of draws; the rest is for the conversion. ``rho``
    is the total ρ, which was computed from ``epsilon`` and that rest when the budget was opened, and rounded down.
    ``persons`` is the person column fixed for each table, None for one whose unit is promised. A table that is not
    listed was opened before person columns were fixed, and has had no release yet. Its first release fixes its person
    column.
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
    delta_for_draws: float = 0.0

    def unit_of(self, table: str) -> str:
        """Return a clause that states whether the row limit per person of a table is enforced or promised."""
        return unit_in_words(self.persons[table]) if table in self.persons else "fixed by the first release"

    @property
    def caveats(self) -> list[str]:
        """Sentences about the limits of this population's sums."""
        out = []
        if others := sum(e.another_unit and e.counted > 0 for e in self.entries):
            out.append(
                f"{others} release{'s' if others > 1 else ''} used a different unit from the table's, so the sums mix "
                "ρ of different units, and the total is valid for neither unit"
            )
        if promised := [t for t in self.tables if self.persons.get(t, "") is None]:
            out.append(
                f"the sums are valid only if no one has more than {self.rows_per_person} "
                f"row{'s' if self.rows_per_person > 1 else ''} in {', '.join(map(repr, promised))}; no person column "
                "enforces this"
            )
        if len(columns := {p for p in self.persons.values() if p is not None}) > 1:
            out.append(
                f"its tables identify people by different columns ({', '.join(map(repr, sorted(columns)))}), so the "
                "total is valid only if all these columns refer to the same people"
            )
        if self.diagnoses:
            last = self.diagnoses[-1]
            out.append(
                f"confidential diagnostics were viewed {_times(len(self.diagnoses))}, last on "
                f"{last.at[:10]} by {last.who}, so later plans and releases may depend on them"
            )
        return out

    @property
    def rho_counted(self) -> Fraction:
        """Exact sum of the counted ρ."""
        return sum((Fraction(e.counted) for e in self.entries), Fraction(0))

    @property
    def delta_counted(self) -> Fraction:
        """Exact sum of the counted δ₀."""
        return sum((Fraction(e.delta_counted) for e in self.entries), Fraction(0))

    @property
    def spent(self) -> float:
        """Counted ρ, which is the spent ρ and the ρ reserved by runs that have not ended, rounded up."""
        return rounded_up(self.rho_counted)

    @property
    def left(self) -> float:
        """Remaining ρ, rounded down."""
        return rounded_down(Fraction(self.rho) - self.rho_counted)

    @property
    def delta_spent(self) -> float:
        """Counted δ₀, rounded up."""
        return rounded_up(self.delta_counted)

    @property
    def delta_left(self) -> float:
        """Remaining δ₀ for draws, rounded down."""
        return rounded_down(Fraction(self.delta_for_draws) - self.delta_counted)

    def after(self, rho: float) -> float:
        """Return the ρ that is left after another release of ``rho``, rounded down; negative if it does not fit."""
        return rounded_down(Fraction(self.rho) - self.rho_counted - Fraction(rho))

    def epsilon_after(self, rho: float) -> float:
        """Return the ε that a sum of ``rho`` implies at this population's δ minus the part for draws, rounded up."""
        return _epsilon(rho, conversion_delta(self.delta, self.delta_for_draws))

    def largest(self, left: float | None = None, pure: bool = False) -> float:
        """Return the largest ε, to four digits, of another plan within ``left`` (by default the remaining ρ).

        If ``pure``, the plan has δ = 0 and costs ρ = ε²/2.
        """
        left = self.left if left is None else left
        if left <= 0:
            return 0.0
        most = math.sqrt(2 * left) if pure else _epsilon(left, self.delta)
        epsilon = _four_figures_down(most * (1 + 1e-6))  # the conversion from ε to ρ and back loses the last digit
        while epsilon >= 1e-6 and (Budget.of_pure(epsilon).rho if pure else rho_of(epsilon, self.delta)) > left:
            epsilon = _four_figures_down(epsilon * (1 - 1e-4))
        return epsilon if epsilon >= 1e-6 else 0.0

    def fits(self, project: Project, table: str, another_unit: bool = False) -> Project:
        """Return the project for a release from ``table``, with the population's δ if the plan has none.

        Raises :class:`LedgerError` for a plan with another unit of privacy; ``another_unit`` accepts another person
        column.
        """
        plan = project.plan
        wanted = {"neighbors": self.neighbors, "rows_per_person": self.rows_per_person, "delta": self.delta}
        if plan.pure:  # such a plan has no δ, so its ρ can be added to any total
            del wanted["delta"]
        for key, fixed in wanted.items():
            given = getattr(plan, key)
            if given != fixed and not (key == "delta" and given is None):
                raise LedgerError(
                    f"the ledger fixed {key.replace('_', ' ')} at {fixed} for {self.name!r} when it was opened, but "
                    f"the plan uses {given}. Releases with different units cannot share a budget. In the plan, set "
                    f"it to {fixed}",
                    key=key,
                    fixed=fixed,
                    population=self.name,
                )
        person = self.persons.get(table, plan.person)
        if plan.person != person and not another_unit:
            column = "no person column" if person is None else f"the person column {person!r}"
            named = "none" if plan.person is None else short(plan.person)
            raise LedgerError(
                f"the ledger fixed {column} for the table {table!r}, but the plan uses {named}. Their ρ "
                "values cannot be added. Change the plan's person column, or release for another unit on the command "
                "line (--another-unit); the ledger records and shows this",
                key="person",
                fixed=person,
                population=self.name,
            )
        return project.with_plan(delta=self.delta) if plan.delta is None else project

    def outlook(self, rho: float, pure: bool = False, delta: float = 0.0) -> dict[str, Any]:
        """Return the remaining budget after one more release of ``rho`` and ``delta`` (δ₀), whether that release fits,
        and how many more like it would fit. If ``pure``, the release has δ = 0, and so have the releases for which the
        largest ε is given.
        """
        after = self.after(rho)
        more = Fraction(self.delta_for_draws) - self.delta_counted - Fraction(delta)
        like_it = [Fraction(after) / Fraction(rho), *([more / Fraction(delta)] if delta else [])]
        return {
            "population": self.name,
            "total": self.rho,
            "spent": self.spent,
            "left": self.left,
            "after": after,
            "fits": after >= 0 and (not delta or more >= 0),
            "largest": self.largest(None, pure),
            "largest_after": self.largest(after, pure),
            "like_it_after": max(int(min(like_it)), 0),
        }

    def allows(self, rho: float, delta: float = 0.0, pure: bool = False) -> None:
        """Raise :class:`LedgerError` unless ``rho`` and ``delta`` (δ₀) fit into the remaining budget.

        If ``pure``, the release has δ = 0, and the message names the largest ε of such a plan.
        """
        if not (rho > 0 and math.isfinite(rho)):
            raise LedgerError(f"a release needs a positive ρ, not {rho}", key="rho", requested=rho)
        if not 0 <= delta < 1:
            raise LedgerError(
                f"the δ₀ of a release must be at least 0 and below 1, not {delta}",
                key="delta_for_draws",
                requested=delta,
            )
        if self.rho_counted + Fraction(rho) > Fraction(self.rho):
            largest = self.largest(None, pure)
            raise LedgerError(
                f"the ledger refuses this release: it needs ρ = {round_up(rho)}, but {self.name!r} has only "
                f"{self.left:.4g} of {self.rho:.4g} left; nothing was read. "
                + (f"A plan with ε up to {largest:g} would fit" if largest else "No other plan fits"),
                key="rho",
                requested=rho,
                remaining=self.left,
                population=self.name,
            )
        if self.delta_counted + Fraction(delta) > Fraction(self.delta_for_draws):
            kept = f"only {self.delta_left:.4g} of {self.delta_for_draws:.4g}" if self.delta_for_draws else "no δ"
            raise LedgerError(
                f"the ledger refuses this release: its draws need δ₀ = {round_up(delta)}, but {self.name!r} has "
                f"{kept} left for draws; nothing was read. The share of δ for draws is set when a budget "
                "is opened (--delta-for-draws)",
                key="delta_for_draws",
                requested=delta,
                remaining=self.delta_left,
                population=self.name,
            )


def population_of(populations: Mapping[str, Population], table: str, where: str) -> Population:
    """Return the population to which ``table`` belongs; raise :class:`LedgerError` if no population of the ledger
    ``where`` contains it.
    """
    for population in populations.values():
        if table in population.tables:
            return population
    other = look_alike(table, [t for p in populations.values() for t in p.tables])
    if other is not None:
        raise LedgerError(
            f"the ledger {where} has no table {table!a}, but {other!a}, which looks like it. Use the name exactly as "
            "in the ledger",
            table=table,
        )
    known = ", ".join(repr(t) for p in list(populations.values())[:8] for t in p.tables[:4])
    raise LedgerError(
        f"the ledger {where} has no table {table!r}"
        + (f"; it has {known}" if known else "")
        + ". Open its budget first (espalier ledger open, or the Ledger page)",
        table=table,
    )


def rho_drawn(parts: Sequence[Part | Subtotal]) -> Fraction:
    """Return the counted ρ of one entry's parts. The private evaluation affects different people from the rest."""
    evaluated = sum((Fraction(p.rho) for p in parts if p.kind == "look"), Fraction(0))
    return max(evaluated, sum((Fraction(p.rho) for p in parts if p.kind != "look"), Fraction(0)))


def person_in(plan: Any) -> str | None:
    """Return the person column in a plan, or in an event that opens a table; raises ValueError for anything else."""
    if not isinstance(plan, Mapping):
        raise ValueError("its plan is invalid")
    person = plan.get("person")
    if not (person is None or isinstance(person, str)):
        raise ValueError("its person column is not a column name")
    return person


def unit_in_words(person: str | None) -> str:
    """Return a clause that states whether the row limit per person is enforced or promised."""
    return "promised; no person column enforces it" if person is None else f"enforced by the person column {person!r}"


@cache
def _epsilon(rho: float, delta: float) -> float:
    return epsilon_of(rho, delta)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count) or f"{count} times"


def _four_figures_down(x: float) -> float:
    if x == 0:  # δ alone covers a ρ that is as small as a rounding error
        return 0.0
    step = 10.0 ** (math.floor(math.log10(x)) - 3)
    return float(f"{math.floor(x / step * (1 + 1e-12)) * step:.4g}")
