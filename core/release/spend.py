"""Releases: the only module that spends a budget on a private table, and the order of its steps."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.drawing import outcome
from espalier.core.analysis.noisy_counts import NoisyCounts
from espalier.core.analysis.plan_effect import effect_facts
from espalier.core.analysis.study import Study
from espalier.core.errors import Cancelled, EspalierError, ProjectError, SchemaError
from espalier.core.evaluation.private.evaluation import PrivateEvaluation
from espalier.core.evaluation.private.held_out import judge
from espalier.core.methods import check_options, method_of
from espalier.core.models.base import Codes, Model, NumberModel, VisitModel
from espalier.core.planning.hierarchies import told_apart
from espalier.core.planning.preview import Preview, preview
from espalier.core.planning.procedure import carry_out
from espalier.core.privacy.accounting import Budget, total_up
from espalier.core.privacy.bought_schema import Part, buy, nothing_found
from espalier.core.privacy.contribution import bounded, check_fits, held_rows, public_rows, split
from espalier.core.privacy.curator import Impossible, PrivateCurator
from espalier.core.privacy.draws import Draw, subtotals_of
from espalier.core.privacy.spending import Spending
from espalier.core.privacy.unit import Unit
from espalier.core.progress import Report, part, silent
from espalier.core.project.file import Project
from espalier.core.project.plan import IN_MEMORY, MAX_ROWS, Plan
from espalier.core.release.artefact import Release
from espalier.core.release.files import with_identifiers
from espalier.core.release.linked_tables import linked_tables
from espalier.core.release.output import on_disk
from espalier.core.statement.keys import Signer
from espalier.core.tables.consistency import settle
from espalier.core.tables.frames import opened, panel, relation_of
from espalier.core.tables.snapshot import Snapshot
from espalier.core.tables.source import Source
from espalier.core.tables.table import Table

if TYPE_CHECKING:
    from espalier.core.ledger.account import Account, Reservation


def release(
    project: Project,
    data: Any,
    report: Report = silent,
    ledger: Account | None = None,
    signer: Signer | None = None,
) -> Release:
    """Spend the plan's budget on a private table and return the release, which may be shared.

    ``data`` is one of:

    - a :class:`~espalier.core.tables.table.Table`;
    - a data frame of pandas or of any library that supports Arrow, read with the project's schema and the plan's
      person column;
    - a :class:`~espalier.core.tables.relation.Relation`, read once into a snapshot that is deleted on return;
    - a :class:`~espalier.core.tables.snapshot.Snapshot`, which the caller closes;
    - for linked tables, a pair of frames or tables as read, people first.

    Everything that can be refused is refused before the first draw: unconfirmed guesses, conflicts, sizes, and too
    little budget in the ledger. The result is (ε, δ)-DP for the plan's unit of privacy. ``report(fraction, message)``
    reports progress. Raising from it cancels; the ρ of finished draws stays spent.

    ``ledger`` is an account of a :class:`espalier.core.ledger.ledger.Ledger`. The plan's whole ρ and the δ₀ of its
    draws are reserved there before the first draw, and a plan without δ uses the ledger's. A finished release is
    charged what it spent. A failed release is charged nothing if nothing was drawn. Otherwise, and after a crash, it
    is charged in full.

    ``signer`` is the key that signs the release's statement (`espalier.core.statement.keys`).

    >>> import espalier as es, pandas as pd
    >>> frame = pd.DataFrame({"smoker": ["yes", "no"] * 500, "sick": ["yes", "no", "no", "no"] * 250})
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in frame]
    >>> project = es.Project("clinic", es.Schema(tuple(columns)), es.Plan("mst", epsilon=1, delta=1e-6))
    >>> made = es.release(project, frame)
    >>> made.rows, list(made.frame)
    (1000, ['smoker', 'sick'])
    """
    check_options(project.plan)
    method_of(project.plan)
    project.need_unit()
    project.check_text()
    refuse_guessed(project)
    relation, reading = relation_of(data), 0.0
    if relation is not None:  # refuse before a long scan
        if ledger:
            ledger.check(project)
        reading = 0.3
    with ExitStack() as held:
        scan, rest = part(report, 0.0, reading), part(report, reading, 1.0)
        k = project.plan.rows_per_person
        if project.linked is None:
            table = held.enter_context(opened(data, project.schema, project.plan.person, k, scan))
        else:
            table = panel(project.linked, project.schema, data)
        origin = None if relation is None else relation.origin
        return _release(project, table, rest, ledger, held, origin, signer)


def _release(
    project: Project,
    table: Source,
    report: Report,
    ledger: Account | None,
    files: ExitStack,
    relation: str | None = None,
    signer: Signer | None = None,
) -> Release:
    """Release an open table. ``files`` closes the intermediate tables.

    ``relation`` is the kind of relation that the catalogue states; `None` for files and frames.
    """
    check_fits(project, table)
    planned = ledger.check(project) if ledger else project
    plan = planned.plan
    if method_of(plan).capabilities.numbers:
        for column in project.schema.columns:
            if column.kind == "numeric":
                table.numbers(column.name)  # raises for a table with codes alone, before anything is drawn
    total = public_rows(plan, table.rows)
    if plan.copies and (plan.rows or total or 0) > IN_MEMORY:
        raise ProjectError(
            f"Copies are drawn in memory, with at most {IN_MEMORY:,} rows each. Set the plan's rows.", key="copies"
        )
    held_in_text = project.constraints or any(c.invented for c in project.schema.identifiers)
    if held_in_text and (plan.rows or total or 0) > IN_MEMORY:
        raise ProjectError(
            f"Rows with constraints or invented identifiers are made in memory, at most {IN_MEMORY:,}. Set the plan's "
            "rows.",
            key="rows",
        )
    if project.linked is not None and (plan.rows or total or 0) > IN_MEMORY:
        raise ProjectError(f"Linked tables are made in memory, at most {IN_MEMORY:,} people. Set the plan's rows.")
    shown = preview(planned, total)  # the rehearsal refuses conflicts and plans that are too large
    rows = _PrivateRows(*_parts(plan, table, total, files), shown.budget)
    reservation = ledger.reserve(planned, shown.budget, table.digest, shown.delta, relation) if ledger else None
    try:
        report(0.0, "Measuring")  # the last moment to cancel without a cost
        made = _Run(planned, project, rows, total, shown, reservation, relation, signer).release(report)
        kept = made.files if reservation else {}
    except BaseException as error:
        if reservation is None:
            raise
        reason = "cancelled" if isinstance(error, Cancelled) else type(error).__name__  # a text could reveal rows
        trouble = reservation.end(bool(rows.draws), f"ended without a release: {reason}", subtotals_of(rows.draws))
        if trouble and isinstance(error, EspalierError):
            raise type(error)(f"{error} {trouble}", **error.data) from None
        raise
    if reservation:
        rho = json.loads(kept["release.json"])["spent"]["rho"]  # the ledger charges the ρ that release.json states
        delta = total_up(draw.delta for draw in rows.draws)
        if trouble := reservation.spend(rho, kept, subtotals_of(rows.draws), delta):
            made = replace(made, ledger_trouble=trouble)
    return made


class _PrivateRows:
    """Private rows of one release, and the draws made from them.

    ``own`` are the rows that the release is made from, ``held`` the rows held out to evaluate it.
    """

    def __init__(self, own: Source, held: Source | None, budget: Budget) -> None:
        self.own, self.held, self._delta = own, held, budget.delta
        self.schema_spending, self.held_spending = Spending(budget.rho), Spending(0.0)
        self._curator: PrivateCurator | None = None

    @property
    def draws(self) -> list[Draw]:
        """All draws so far, from own and held-out rows."""
        own = self._curator.spending.draws if self._curator else []
        return [*self.schema_spending.draws, *own, *self.held_spending.draws]

    def describe(self, project: Project, parts: Sequence[Part]) -> Project:
        """Buy ``parts`` of the schema from the own rows, and recode all rows with the result."""
        if not parts:
            return project
        wanted = project.schema
        schema = buy(self.own, wanted, _unit(project.plan), parts, self._delta, self.schema_spending)
        self.own = self.own.recoded(schema)
        self.held = None if self.held is None else self.held.recoded(schema)
        return project.bought(schema)

    def curator(self, project: Project, budget: Budget, impossible: Impossible) -> PrivateCurator:
        """Return the curator of the own rows."""
        plan = project.plan
        self._curator = PrivateCurator(self.own, _unit(plan), budget, plan.max_cells, impossible=impossible)
        return self._curator

    def judge(self, project: Project, synthetic: Table, budget: Budget, spent: float) -> PrivateEvaluation | None:
        """Evaluate ``synthetic`` privately on the held-out rows, with the ρ that the release ``spent``.

        The two groups of people are disjoint, so together they cost the larger ρ, that of the release.
        """
        if self.held is None:
            return None
        self.held_spending.limit = spent
        return judge(project, synthetic, self.held, replace(budget, rho=spent), self.held_spending)


def _unit(plan: Plan) -> Unit:
    return Unit(plan.neighbors, plan.rows_per_person)


@dataclass(frozen=True)
class _Run:
    """State of one release.

    ``planned`` is the project with the ledger's δ, ``given`` the project of the caller. ``total`` is the number of
    rows; `None` if it is private. ``relation`` is the kind of the relation that was read, ``signer`` the key
    that signs.
    """

    planned: Project
    given: Project
    private: _PrivateRows
    total: int | None
    preview: Preview
    reservation: Reservation | None
    relation: str | None
    signer: Signer | None

    def release(self, report: Report) -> Release:
        """Measure, fit, sample and evaluate."""
        preview, budget = self.preview, self.preview.budget
        carried = carry_out(self.planned, budget, preview.frame, self.private, part(report, 0.0, 0.4))
        project, fitted, plan = carried.project, carried.fitted, carried.project.plan
        fitted.size(plan.max_cells)
        report(0.4, "Fitting the model")
        start = time.perf_counter()
        model = fitted.model(part(report, 0.4, 0.8))
        done = time.perf_counter()
        report(0.8, "Drawing synthetic rows")
        most = MAX_ROWS if project.linked is None else IN_MEMORY
        rows = plan.rows or self.total or min(max(round(model.total / (1 - plan.private_evaluation)), 1), most)
        rng = np.random.default_rng()
        codes, text, whole = drawn(model, project, rows, rng, part(report, 0.8, 0.9))
        text = settle(project.constraints, project.schema, codes, text)
        text = with_identifiers(project.schema, text, rng)
        tables = None
        if project.linked is not None:
            assert isinstance(model, VisitModel)
            number = codes[project.linked.number]
            tables = linked_tables(project.linked, project.schema, text, model.visits(codes, rng), number, rng)
        seconds = {"fit": done - start, "sample": time.perf_counter() - done}
        if self.private.held is not None:
            report(0.9, "Evaluating it on the held-out rows")
        synthetic = Table(project.schema, codes, len(next(iter(codes.values()))))
        spending = carried.curator.spending
        judged = self.private.judge(project, synthetic, carried.curator.budget, spending.rho)
        wanted = self.given.schema
        made = Release(
            self.given.bought(project.schema),
            budget,
            preview.frame,
            fitted,
            model,
            codes,
            text,
            rows,
            Spending(budget.rho, [*self.private.schema_spending.draws, *spending.draws]),
            seconds,
            (*preview.warnings, *nothing_found(wanted, project.schema)),
            judged,
            whole=whole,
            drawing=outcome(project, carried.tests, rng),
            analyses=tuple(one.facts() for one in carried.analyses),
            regressions=tuple(one.facts(project.schema) for one in carried.regressions),
            apart=told_apart(wanted, project.schema),
            reservation=self.reservation,
            relation=self.relation,
            counted=carried.curator.rows,
            signer=self.signer,
            verdict=preview.verdict,
            tables=tables,
        )
        if plan.copies:
            start = time.perf_counter()
            copies = tuple(Study.of(made).more(plan.copies, rng, part(report, 0.95, 0.98)))
            made = replace(made, copies=copies, seconds={**seconds, "copies": time.perf_counter() - start})
        if NoisyCounts.of(fitted) is not None:
            made = replace(made, effect=effect_facts(Study.of(made), part(report, 0.98, 1.0)))
        report(1.0, "Done")
        return made


def drawn(
    model: Model, project: Project, rows: int, rng: np.random.Generator, report: Report = silent
) -> tuple[Codes, dict[str, list[str]], Snapshot | None]:
    """Draw ``rows`` rows of ``model`` as codes and as text.

    A model without numbers has them drawn inside its bins. Above `IN_MEMORY` rows the result has the first rows in
    memory and all rows as codes on disk. Models that draw their own numbers stay in memory.
    """
    numbers: Mapping[str, NDArray[np.float64]] = {}
    whole, even = None, project.plan.rows_drawn == "even"
    if isinstance(model, NumberModel):
        codes, numbers = model.sample_numbers(rows, rng)
    elif rows > IN_MEMORY:
        codes, whole = on_disk(model, project.schema, rows, rng, even=even, report=report)
    else:
        codes = model.sample(rows, rng, even=even)
    text = {
        c.name: c.write(numbers[c.name], codes[c.name]) if c.name in numbers else c.decode(codes[c.name], rng)
        for c in project.schema.columns
    }
    return codes, text, whole


def _parts(plan: Plan, table: Source, total: int | None, files: ExitStack) -> tuple[Source, Source | None]:
    """Return the rows of the release and the held-out rows, with at most k rows per person in each."""
    rest, held, size = table, None, held_rows(plan, total)
    if plan.private_evaluation:
        rest, held = split(table, plan.private_evaluation, size or None if plan.person is None else None)
        files.callback(rest.close)
        files.callback(held.close)
    if plan.person is None:
        return rest, held
    k = plan.rows_per_person
    kept = bounded(rest, k, None if total is None else total - size)
    if kept is not rest:
        files.callback(kept.close)
    return kept, None if held is None else bounded(held, k)


def _first(said: Iterable[str], most: int = 5) -> str:
    listed = list(said)
    return "; ".join(listed[:most]) + (f"; and {len(listed) - most} more" if len(listed) > most else "")


def refuse_guessed(project: Project) -> None:
    """Raise :class:`SchemaError` if a guess from the real rows is unconfirmed."""
    schema = project.schema
    if guessed := project.constraints.guessed:
        listed = _first(map(str, guessed))
        raise SchemaError(
            f"Constraints were guessed from the real rows ({listed}). Confirm or remove them on the Data page, "
            'or rename "guessed" to "confirmed" in the project file once you have checked that they are public.',
            columns=sorted({name for c in guessed for name in c.columns}),
        )
    if schema.unconfirmed:
        guesses = [f"{c.name}: {', '.join(c.guessed)}" for c in schema.guessed]
        guesses += [f"{c.name}: left out" for c in schema.left_out if not c.confirmed]
        listed = _first(guesses)
        raise SchemaError(
            f"The schema contains guesses from the real rows ({listed}). Confirm or replace them on the Data page, "
            'or rename "guessed" to "confirmed" in the project file once you have checked that they are public.',
            columns=list(schema.unconfirmed),
        )
