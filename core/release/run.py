"""Runs of new and resumed releases: draw, fit, sample, evaluate, and end the reservation.

`espalier.core.release.spend` begins a run and `espalier.core.release.resume` continues one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.drawing import outcome
from espalier.core.analysis.noisy_counts import NoisyCounts
from espalier.core.analysis.plan_effect import effect_facts
from espalier.core.analysis.study import Study
from espalier.core.errors import Cancelled, EspalierError
from espalier.core.evaluation.private.evaluation import PrivateEvaluation
from espalier.core.evaluation.private.held_out import judge
from espalier.core.ledger.account import OTHER_FILES
from espalier.core.ledger.archive import digest_of
from espalier.core.models.base import Codes, Model, NumberModel, VisitModel
from espalier.core.planning.hierarchies import told_apart
from espalier.core.planning.preview import Preview
from espalier.core.planning.procedure import carry_out
from espalier.core.privacy.accounting import Budget, total_up
from espalier.core.privacy.bought_schema import Part, buy, nothing_found
from espalier.core.privacy.contribution import bounded, held_rows, known_rows, split
from espalier.core.privacy.curator import Impossible, PrivateCurator
from espalier.core.privacy.draws import Draw, subtotals_of
from espalier.core.privacy.journal import Journal, RequestDiffers
from espalier.core.privacy.spending import Spending
from espalier.core.privacy.unit import Unit
from espalier.core.process_memory import MANY_CELLS, give_back
from espalier.core.progress import Report, part, silent
from espalier.core.project.file import Project
from espalier.core.project.plan import IN_MEMORY, MAX_ROWS, Plan, rows_in_memory
from espalier.core.release.artefact import Release
from espalier.core.release.files import with_identifiers
from espalier.core.release.linked_tables import linked_tables
from espalier.core.release.output import on_disk
from espalier.core.release.unfinished import Begun, FolderJournal
from espalier.core.statement.keys import Signer
from espalier.core.tables.consistency import settle
from espalier.core.tables.deferred import Facts
from espalier.core.tables.public_chance import Chance
from espalier.core.tables.snapshot import Snapshot
from espalier.core.tables.source import Source
from espalier.core.tables.table import Table

if TYPE_CHECKING:
    from espalier.core.ledger.account import Reservation


class PrivateRows:
    """Private rows of one release, and the draws made from them.

    ``own`` are the rows from which the release is made, ``held`` the rows held out to evaluate it.
    """

    def __init__(self, own: Source, held: Source | None, budget: Budget, journal: Journal, chance: Chance) -> None:
        self.own, self.held, self._delta = own, held, budget.delta
        self.journal, self.chance = journal, chance
        self.schema_spending, self.held_spending = Spending.of(budget), Spending(0.0)
        self._curator: PrivateCurator | None = None

    @property
    def draws(self) -> list[Draw]:
        """All draws so far, from the own rows and the held-out rows."""
        own = self._curator.spending.draws if self._curator else []
        return [*self.schema_spending.draws, *own, *self.held_spending.draws]

    def describe(self, project: Project, parts: Sequence[Part]) -> Project:
        """Buy ``parts`` of the schema from the own rows, and recode all rows with the result."""
        if not parts:
            return project
        wanted = project.schema
        schema = buy(self.own, wanted, _unit(project.plan), parts, self._delta, self.schema_spending, self.journal)
        self.own = self.own.recoded(schema)
        self.held = None if self.held is None else self.held.recoded(schema)
        return project.bought(schema)

    def curator(self, project: Project, budget: Budget, impossible: Impossible) -> PrivateCurator:
        """Return the curator of the own rows."""
        plan = project.plan
        self._curator = PrivateCurator(
            self.own, _unit(plan), budget, plan.max_cells, impossible=impossible, journal=self.journal
        )
        self._curator.chance = self.chance
        return self._curator

    def judge(self, project: Project, synthetic: Table, budget: Budget, spent: float) -> PrivateEvaluation | None:
        """Evaluate ``synthetic`` privately on the held-out rows, with the ρ that the release ``spent``.

        The two groups of people are disjoint, so together they cost only the larger ρ, which is the release's.
        """
        if self.held is None:
            return None
        self.held_spending.limit = spent
        self.journal.context = _digest(synthetic)  # the rows of ``synthetic`` affect what is counted
        return judge(project, synthetic, self.held, replace(budget, rho=spent), self.held_spending, self.journal)


def _unit(plan: Plan) -> Unit:
    return Unit(plan.neighbors, plan.rows_per_person)


def public_facts(rows: Source, plan: Plan) -> Facts:
    """Return the public facts of ``rows``."""
    known = known_rows(rows, _unit(plan))
    return Facts(known, rows.names_people, rows.person_column, rows.row_limit)


def _digest(synthetic: Table) -> str:
    hashed = hashlib.sha256()
    for name, codes in synthetic.codes.items():
        hashed.update(name.encode() + b":" + codes.tobytes())
    return hashed.hexdigest()


@dataclass(frozen=True)
class Run:
    """State of one release, new or resumed.

    ``begun`` are its public facts. ``storage`` keeps the answers if there is no ``reservation``. ``signer`` is the key
    that signs. ``resumed`` is true for a release that an earlier run began.
    """

    begun: Begun
    private: PrivateRows
    preview: Preview
    reservation: Reservation | None
    storage: FolderJournal | None
    signer: Signer | None
    resumed: bool = False

    def finish(self, report: Report) -> Release:
        """Return the release, and end its reservation. If that fails, its answers stay stored."""
        reservation, rows = self.reservation, self.private
        try:
            report(0.0, "Measuring")  # last moment to cancel without cost
            made = self._made(report)
            if rows.journal.replays and NOT_JUDGED not in made.warnings:
                raise RequestDiffers(
                    "The resumed release makes fewer requests than were stored. Resume with the same version of "
                    "Espalier, the same libraries and the same number of threads. The stored answers are unchanged."
                )
            kept = made.files if reservation else {}
        except BaseException as error:
            trouble = self._interrupted(error)
            if trouble and isinstance(error, EspalierError):
                raise type(error)(f"{error} {trouble}", **error.data) from None
            raise
        if reservation and reservation.entry.status == "reserved":
            rho = json.loads(kept["release.json"])["spent"]["rho"]  # the ledger charges the ρ that release.json states
            delta = total_up(draw.delta for draw in rows.draws)
            if trouble := reservation.spend(rho, kept, subtotals_of(rows.draws), delta):
                made = replace(made, ledger_trouble=trouble)
        elif reservation and digest_of(kept) != reservation.entry.released:
            made = replace(made, ledger_trouble=OTHER_FILES)
        return made

    def _interrupted(self, error: BaseException) -> str:
        """Record that the run stopped; return a message if the ledger could not record it.

        A resumed run that drew nothing records nothing unless it was cancelled. Otherwise, the ledger and its exports
        would show whether the table was still the one with which the release began.
        """
        reason = "cancelled" if isinstance(error, Cancelled | KeyboardInterrupt) else type(error).__name__
        drawn, trouble = bool(self.private.draws), ""  # the text of the error could reveal values of rows
        idle = self.resumed and not self.private.journal.drawn and reason != "cancelled"
        if self.reservation is not None and self.reservation.entry.status == "reserved" and not idle:
            stopped = f"stopped: {reason}" if drawn else f"ended without a release: {reason}"
            trouble = self.reservation.end(drawn, stopped)
        if self.storage is not None:
            if self.private.journal.place or self.private.journal.stored:
                self.storage.leave()
            else:
                self.storage.forget()
        where = self.reservation.entry.id if self.reservation else self.storage.folder if self.storage else None
        if where is not None and (self.private.journal.place or (drawn and self.reservation)):
            unknown = (
                ". The key file (ESPALIER_LEDGER_KEY) could not be used, so the table cannot be recognised, and the "
                "release can only be finished if no answer is missing"
            )
            error.add_note(
                "The answers drawn so far are stored. To finish the release at no further cost: espalier resume "
                f"{where}{'' if self.begun.marks else unknown}"
            )
        return trouble

    def _made(self, report: Report) -> Release:
        """Measure, fit, sample and evaluate."""
        preview, budget = self.preview, self.preview.budget
        carried = carry_out(self.begun.planned, budget, preview.frame, self.private, part(report, 0.0, 0.4))
        project, fitted, plan = carried.project, carried.fitted, carried.project.plan
        fitted.size(plan.max_cells)
        report(0.4, "Fitting the model")
        start = time.perf_counter()
        model = fitted.model(part(report, 0.4, 0.8))
        done = time.perf_counter()
        report(0.8, "Drawing synthetic rows")
        most = MAX_ROWS if project.linked is None else IN_MEMORY
        rows = plan.rows or self.begun.total or min(max(round(model.total / (1 - plan.private_evaluation)), 1), most)
        rng = self.private.chance()
        codes, text, whole = drawn(model, project, rows, rng, part(report, 0.8, 0.9))
        text = settle(project.constraints, project.schema, codes, text)
        text = with_identifiers(project.schema, text, rng)
        tables = None
        if project.linked is not None:
            assert isinstance(model, VisitModel)
            number = codes[project.linked.number]
            visits = model.visits(codes, rng, even=plan.rows_drawn == "even")
            tables = linked_tables(project.linked, project.schema, text, visits, number, rng)
        seconds = {"fit": done - start, "sample": time.perf_counter() - done}
        if self.private.held is not None:
            report(0.9, "Evaluating it on the held-out rows")
        synthetic = Table(project.schema, codes, len(next(iter(codes.values()))))
        spending = carried.curator.spending
        judged, lost = None, ""
        try:
            judged = self.private.judge(project, synthetic, carried.curator.budget, spending.rho)
        except RequestDiffers:  # another machine, or other libraries, drew different rows from the same answers
            lost = NOT_JUDGED
        wanted = self.begun.given.schema
        made = Release(
            self.begun.given.bought(project.schema),
            budget,
            preview.frame,
            fitted,
            model,
            codes,
            text,
            rows,
            Spending.of(budget, [*self.private.schema_spending.draws, *spending.draws]),
            seconds,
            (*preview.warnings, *nothing_found(wanted, project.schema), *filter(None, [lost])),
            judged,
            whole=whole,
            drawing=outcome(project, carried.tests, rng),
            analyses=tuple(one.facts() for one in carried.analyses),
            regressions=tuple(one.facts(project.schema) for one in carried.regressions),
            apart=told_apart(wanted, project.schema),
            reservation=self.reservation,
            storage=self.storage,
            relation=self.begun.relation,
            counted=carried.curator.rows,
            signer=self.signer,
            verdict=preview.verdict,
            tables=tables,
        )
        if plan.copies:
            start = time.perf_counter()
            copies = tuple(Study.of(made).more(plan.copies, rng, part(report, 0.95, 0.98)))
            made = replace(made, copies=copies, seconds={**seconds, "copies": time.perf_counter() - start})
        counted = NoisyCounts.of(fitted)
        if counted is not None and not counted.in_part:
            made = replace(made, effect=effect_facts(Study.of(made), part(report, 0.98, 1.0)))
        report(1.0, "Done")
        return made


NOT_JUDGED = (
    "The private evaluation began before the release was interrupted, but this machine draws different synthetic rows "
    "from the same answers. The evaluation was not finished. Its budget is spent."
)
"""Warning for a release that was interrupted during its evaluation and resumed elsewhere."""


def drawn(
    model: Model, project: Project, rows: int, rng: np.random.Generator, report: Report = silent
) -> tuple[Codes, dict[str, list[str]], Snapshot | None]:
    """Draw ``rows`` rows of ``model`` as codes and as text.

    If a model does not draw numbers, they are drawn inside its bins. Above :func:`rows_in_memory` the result has the
    first rows in memory and all rows as codes on disk. Models that draw their own numbers stay in memory.
    """
    numbers: Mapping[str, NDArray[np.float64]] = {}
    whole, even = None, project.plan.rows_drawn == "even"
    if isinstance(model, NumberModel):
        codes, numbers = model.sample_numbers(rows, rng)
    elif rows > rows_in_memory(len(project.schema.columns)):
        codes, whole = on_disk(model, project.schema, rows, rng, even=even, report=report)
    else:
        codes = model.sample(rows, rng, even=even)
    text = {
        c.name: c.write(numbers[c.name], codes[c.name]) if c.name in numbers else c.decode(codes[c.name], rng)
        for c in project.schema.columns
    }
    if len(text) * rows > MANY_CELLS:
        give_back()
    return codes, text, whole


def parts(plan: Plan, table: Source, total: int | None, files: ExitStack) -> tuple[Source, Source | None]:
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
