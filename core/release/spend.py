"""The one place where a project, a table and a budget meet: what is spent, and in which order."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import Cancelled, EspalierError, ProjectError, SchemaError
from espalier.core.evaluation.private.figures import PrivateEvaluation
from espalier.core.evaluation.private.held_out import judge
from espalier.core.methods import check_options, fit, method_of, need_private
from espalier.core.models.base import Codes, Model, NumberModel
from espalier.core.privacy.accounting import total_up
from espalier.core.privacy.bought_schema import buy, described, left, nothing_found, prices
from espalier.core.privacy.contribution import bounded, check_fits, held_rows, public_rows, split
from espalier.core.privacy.curator import PrivateCurator, Spending
from espalier.core.privacy.draws import Draw, subtotals_of
from espalier.core.privacy.unit import Unit
from espalier.core.progress import Report, part, silent
from espalier.core.project.file import Project
from espalier.core.project.plan import MAX_ROWS, Plan
from espalier.core.release.artefact import Release
from espalier.core.release.counts import NoisyCounts
from espalier.core.release.drawing import outcome, tested
from espalier.core.release.effect_section import effect_facts
from espalier.core.release.files import with_identifiers
from espalier.core.release.output import IN_MEMORY, on_disk
from espalier.core.release.planning import Preview, preview
from espalier.core.release.study import Study
from espalier.core.release.told_apart import told_apart
from espalier.core.tables.consistency import settle
from espalier.core.tables.frames import opened
from espalier.core.tables.relation import Relation
from espalier.core.tables.snapshot import Snapshot
from espalier.core.tables.source import Source
from espalier.core.tables.table import Table

if TYPE_CHECKING:
    from espalier.core.ledger.account import Account


def release(project: Project, data: Any, report: Report = silent, ledger: Account | None = None) -> Release:
    """Spend the plan's budget on a private table and return what may leave the building.

    ``data`` is a :class:`~espalier.core.tables.table.Table`, or a data frame (pandas, or whatever speaks Arrow), which
    is read with the project's schema and the plan's person column; or a
    :class:`~espalier.core.tables.relation.Relation`, which is read once into a snapshot that is gone when this returns,
    or such a snapshot, which stays its owner's to close.

    Everything that can be refused is refused before the first draw: unconfirmed guesses, conflicts, sizes, a ledger
    that has not enough left. The result is (ε, δ)-DP for the plan's unit of privacy. ``report(fraction, message)``
    tells progress; raising from it cancels (what had been drawn by then stays spent).

    With ``ledger`` (an account of a :class:`espalier.core.ledger.ledger.Ledger`) the plan's whole ρ and the δ₀ of its
    draws are reserved there before the first draw; a plan without a δ takes the ledger's. A finished release counts
    what it spent. One that ends otherwise is returned if nothing had been drawn, and counts in full if something had,
    or if the machine went down.

    >>> import espalier as es, pandas as pd
    >>> frame = pd.DataFrame({"smoker": ["yes", "no"] * 500, "sick": ["yes", "no", "no", "no"] * 250})
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in frame]
    >>> project = es.Project("clinic", es.Schema(tuple(columns)), es.Plan("mst", epsilon=1, delta=1e-6))
    >>> made = es.release(project, frame)
    >>> made.rows, list(made.frame)
    (1000, ['smoker', 'sick'])
    """
    check_options(project.plan)
    need_private(project.plan)
    project.need_unit()
    refuse_guessed(project)
    reading = 0.0
    if isinstance(data, Relation):  # what will be refused is refused before a long scan
        if ledger:
            ledger.check(project)
        reading = 0.3
    with ExitStack() as held:
        scan, rest = part(report, 0.0, reading), part(report, reading, 1.0)
        k = project.plan.rows_per_person
        table = held.enter_context(opened(data, project.schema, project.plan.person, k, scan))
        relation = data.origin if isinstance(data, Relation) else None
        return _release(project, table, rest, ledger, held, relation)


def _release(
    project: Project,
    table: Source,
    report: Report,
    ledger: Account | None,
    files: ExitStack,
    relation: str | None = None,
) -> Release:
    """:func:`release` of an open table; what is made of it on the way is closed with ``files``.

    ``relation`` is what the catalogue says the relation is; None for files and frames.
    """
    check_fits(project, table)
    planned = ledger.check(project) if ledger else project
    plan = planned.plan
    if method_of(plan).numbers:
        for column in project.schema.columns:
            if column.kind == "numeric":
                table.numbers(column.name)  # refused here, before anything is drawn, where there are codes only
    total = public_rows(plan, table.rows)
    if plan.copies and (plan.rows or total or 0) > IN_MEMORY:
        raise ProjectError(
            f"copies are drawn in memory, of at most {IN_MEMORY:,} rows each: set the plan's rows", key="copies"
        )
    held_in_text = project.constraints or any(c.invented for c in project.schema.identifiers)
    if held_in_text and (plan.rows or total or 0) > IN_MEMORY:
        raise ProjectError(
            f"rows with constraints or invented identifiers are made in memory, {IN_MEMORY:,} at most: set the plan's "
            "rows",
            key="rows",
        )
    shown = preview(planned, total)  # a rehearsal: refuses conflicts and plans that are too large
    rest, held = _parts(plan, table, total, files)
    looked, of_schema = Spending(0.0), Spending(shown.budget.rho)  # ``looked``: until it is known what was spent before
    bought = [of_schema, looked]
    reservation = ledger.reserve(planned, shown.budget, table.digest, shown.delta, relation) if ledger else None
    try:
        report(0.0, "Measuring")  # the last moment to cancel for nothing
        known, rest, held = _described(planned, shown, rest, held, of_schema)
        unit = Unit(plan.neighbors, plan.rows_per_person)
        curator = PrivateCurator(rest, unit, left(shown.budget, of_schema), plan.max_cells)
        curator.impossible = known.constraints.masks(known.schema, plan.max_cells)
        bought = [of_schema, curator.spending, looked]
        made = _Run(known, curator, held, looked, total, shown).release(report)
        every = Spending(shown.budget.rho, [*of_schema.draws, *curator.spending.draws])
        public, apart = project.bought(known.schema), told_apart(project.schema, known.schema)
        warnings = (*made.warnings, *nothing_found(project.schema, known.schema))
        made = replace(
            made,
            project=public,
            apart=apart,
            warnings=warnings,
            budget=shown.budget,
            spending=every,
            reservation=reservation,
            relation=relation,
        )
        kept = made.files if reservation else {}
    except BaseException as error:
        if reservation is None:
            raise
        reason = "cancelled" if isinstance(error, Cancelled) else type(error).__name__  # a text could tell of rows
        drawn = any(spending.draws for spending in bought)
        trouble = reservation.end(drawn, f"ended without a release: {reason}", subtotals_of(_draws(bought)))
        if trouble and isinstance(error, EspalierError):
            raise type(error)(f"{error}. {trouble}", **error.data) from None
        raise
    if reservation:
        said = json.loads(kept["release.json"])["spent"]["rho"]  # what counts is what the release says of itself
        draws = _draws(bought)
        if trouble := reservation.spend(said, kept, subtotals_of(draws), total_up(draw.delta for draw in draws)):
            made = replace(made, ledger_trouble=trouble)
    return made


def _draws(bought: Sequence[Spending]) -> list[Draw]:
    """What was drawn, from the release's own rows and from those held out."""
    return [draw for spending in bought for draw in spending.draws]


def _described(
    project: Project, shown: Preview, rest: Source, held: Source | None, spending: Spending
) -> tuple[Project, Source, Source | None]:
    """Project and rows by a schema without gaps: what is not declared is bought from ``rest``."""
    parts = prices(project, shown.budget)
    if not parts:
        return project, rest, held
    plan = project.plan
    unit, wanted = Unit(plan.neighbors, plan.rows_per_person), project.schema
    schema = buy(rest, wanted, unit, parts, shown.budget.delta, spending)
    own, judged = described(rest, wanted, schema), None if held is None else described(held, wanted, schema)
    return project.bought(schema), own, judged


@dataclass(frozen=True)
class _Run:
    """One release under way: what it is made from, where it pays (``curator``; ``looked`` for what judges it on the
    rows ``held`` out), and how many rows are public."""

    project: Project
    curator: PrivateCurator
    held: Source | None
    looked: Spending
    total: int | None
    planned: Preview

    def release(self, report: Report) -> Release:
        """Measure, fit, sample and judge."""
        project, curator, plan = self.project, self.curator, self.project.plan
        with tested(curator, project) as tests:
            fitted = fit(curator, project, self.planned.frame, part(report, 0.0, 0.4))
        fitted.size(plan.max_cells)
        report(0.4, "Fitting the model")
        start = time.perf_counter()
        model = fitted.model(part(report, 0.4, 0.8))
        done = time.perf_counter()
        report(0.8, "Drawing synthetic rows")
        rows = plan.rows or self.total or min(max(round(model.total / (1 - plan.private_evaluation)), 1), MAX_ROWS)
        rng = np.random.default_rng()
        codes, text, whole = drawn(model, project, rows, rng, part(report, 0.8, 0.9))
        text = settle(project.constraints, project.schema, codes, text)
        text = with_identifiers(project.schema, text, rng)
        seconds = {"fit": done - start, "sample": time.perf_counter() - done}
        judged = self._judge(Table(project.schema, codes, len(next(iter(codes.values())))), report)
        made = Release(
            project,
            curator.budget,
            self.planned.frame,
            fitted,
            model,
            codes,
            text,
            rows,
            curator.spending,
            seconds,
            self.planned.warnings,
            judged,
            whole=whole,
            drawing=outcome(project, tests, rng),
        )
        if plan.copies:
            start = time.perf_counter()
            copies = tuple(Study.of(made).more(plan.copies, rng, part(report, 0.95, 0.98)))
            made = replace(made, copies=copies, seconds={**seconds, "copies": time.perf_counter() - start})
        if NoisyCounts.of(fitted) is not None:
            made = replace(made, effect=effect_facts(Study.of(made), part(report, 0.98, 1.0)))
        report(1.0, "Done")
        return made

    def _judge(self, synthetic: Table, report: Report) -> PrivateEvaluation | None:
        if self.held is None:
            return None
        report(0.9, "Judging it on the rows held out")
        spent = self.curator.spending.rho
        self.looked.limit = spent  # never more than the release, whose ρ is then the larger one
        return judge(self.project, synthetic, self.held, replace(self.curator.budget, rho=spent), self.looked)


def drawn(
    model: Model, project: Project, rows: int, rng: np.random.Generator, report: Report = silent
) -> tuple[Codes, dict[str, list[str]], Snapshot | None]:
    """``rows`` rows of ``model`` as codes and as text; numbers from their bins where it does not draw them.

    Beyond `IN_MEMORY` rows some of them, and all of them as codes on disk. Numbers of a model's own stay in memory.
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
    """The rows the release is made from and those held out, at most k of a person."""
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
    """Raise :class:`SchemaError` if a guess read off the data has not been confirmed."""
    schema = project.schema
    if guessed := project.constraints.guessed:
        listed = _first(map(str, guessed))
        raise SchemaError(
            f"constraints were guessed off the real rows ({listed}); confirm or remove them on the Data page "
            '(or rename "guessed" to "confirmed" in the project file once you have checked that they are public)',
            columns=sorted({name for c in guessed for name in c.columns}),
        )
    if schema.unconfirmed:
        guesses = [f"{c.name}: {', '.join(c.guessed)}" for c in schema.guessed]
        guesses += [f"{c.name}: left out" for c in schema.left_out if not c.confirmed]
        listed = _first(guesses)
        raise SchemaError(
            f"the schema holds guesses read off the real rows ({listed}); confirm or replace them on the Data page "
            '(or rename "guessed" to "confirmed" in the project file once you have checked that they are public)',
            columns=list(schema.unconfirmed),
        )
