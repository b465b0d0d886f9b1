"""Start a release as a background job of the session, and keep the result with its files."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from espalier.core.errors import Cancelled, LedgerError
from espalier.core.planning.preview import Preview, preview
from espalier.core.privacy.accounting import epsilon_of, total_up
from espalier.core.privacy.contribution import public_rows, split
from espalier.core.progress import Report
from espalier.core.project.file import Project
from espalier.core.release.artefact import Release
from espalier.core.server import events
from espalier.core.server.release_job import Ended, Order, Paid, Unended, carry_out
from espalier.core.server.release_job import finish as finish_stored
from espalier.core.server.worker import Limits, run_apart
from espalier.core.tables.table import Table
from espalier.pages.common import housekeeping, sign_in
from espalier.pages.release import payment
from espalier.pages.session.bundles import ReleaseBundle, RowsAtWork, Spent
from espalier.pages.session.session import Session, mark_of

AT_DELTA = 1e-9
"""The δ at which releases with δ = 0 are summed."""


def start(state: Session, share: float, seen: Preview, paid: Paid | None = None) -> None:
    """Spend the budget of the open project on the open table, and hold out this ``share`` of its rows for testing.

    ``seen`` is the confirmed preview for the remaining rows. ``paid`` is None for a release that no ledger records.
    """
    if not state.has_project or not state.has_table or state.job is not None:
        return
    project = state.project
    began, relation, n = threading.Event(), state.relation, state.public_rows
    table, text = (None, None) if relation is not None else (state.table(), state.text)
    far, apart = state.far, housekeeping.served()
    said: dict[str, Any] = {"method": project.plan.method, "epsilon": project.plan.epsilon, "ledger": paid is not None}
    who, named = sign_in.who(), {"project": project.name, "table": paid.table if paid else ""}
    plan, number = project.plan, state.releases + 1
    cost = seen.budget
    bill = Spent(
        state.tables, cost.rho, cost.delta, plan.neighbors, plan.rows_per_person, plan.person, True, seen.delta
    )
    rows = state.rows_at_work = RowsAtWork()

    def done(into: Session, release: Release) -> None:
        spent, delta = release.spending.rho, release.budget.delta
        if into.released is not None:
            into.earlier.append(into.released)
        at_work = into.rows_at_work
        into.released = ReleaseBundle(
            number,
            project,
            release,
            release.files,
            at_work.real,
            at_work.holdout,
            relation,
            far,
            marks[0] if marks else None,
        )
        into.releases, into.findings = number, {}
        into.spent.append(replace(bill, rho=spent, delta=delta, for_draws=release.spending.delta))

    known: list[bool] = []
    marks: list[bytes] = []

    def ended(into: Session, reason: str) -> None:
        if known and paid is not None:
            into.known_elsewhere = bill.table, paid.table
        if not began.is_set():
            into.trouble["release"] = f"{reason} Nothing was read and nothing is spent."
            return
        into.trouble["release"] = (
            f"{reason} The budget for noise already drawn counts as spent. It is at most the plan's ε."
        )
        into.spent.append(replace(bill, complete=False))

    def work(report: Report) -> Release:
        """Return the release. The session keeps the holdout and the rows from which the release was made."""
        real, holdout, ordered = table, None, project
        if table is not None and share:
            ordered, size = _without(project, table, share)
            real, holdout = split(table, share, size)
        order = Order(ordered, real, far, n, paid)
        events.emit("release", who, named, state="began", **said)
        try:
            made: Release
            if apart:  # a worker process, so that the server needs no memory for the rows or the release
                made = run_apart(carry_out, order, report, began.set, Limits.of_the_server())
            else:
                made = carry_out(order, report, began.set)
            reserved = made.reservation
            entry = reserved.entry.id if reserved else None
            events.emit("release", who, named, state="done", rho=made.spending.rho, entry=entry, **said)
        except LedgerError as error:
            events.emit("refuse", who, named, what="ledger", **said)
            known.extend([True] * (relation is not None and error.data.get("key") == "again"))
            raise
        except BaseException as error:
            ended = "cancelled" if isinstance(error, Cancelled) else "failed"
            events.emit("release", who, named, state=ended, drawn=began.is_set(), **said)
            raise
        if project.schema.undeclared and real is not None:  # the comparison encodes the rows with the bought schema
            real = real.recoded(made.project.schema)
            holdout = None if holdout is None else holdout.recoded(made.project.schema)
        rows.real, rows.holdout = real, holdout
        if text is not None and holdout is None:
            marks.append(mark_of(text))
        _ = made.files  # computed now, while the page is idle
        return made

    state.start("release", work, done, ended)
    if state.job is not None:
        state.job.if_cancelled = lambda: price_of_cancel(began.is_set(), plan.epsilon)


def finish(state: Session, population: str, entry: str) -> None:
    """Finish an interrupted release that the ledger records. If an answer is missing, the open table is read."""
    if state.job is not None:
        return
    table = state.table() if state.has_project and state.has_table and state.relation is None else None
    order = Unended(population, entry, payment.who(), table, state.far)
    apart, who = housekeeping.served(), sign_in.who()

    def work(report: Report) -> str:
        """Return a message about anything that could not be recorded in the ledger."""
        try:
            if apart:
                ended: Ended = run_apart(finish_stored, order, report, _nothing, Limits.of_the_server())
            else:
                ended = finish_stored(order, report, _nothing)
        except BaseException:
            events.emit("release", who, {}, state="failed", entry=entry, resumed=True)
            raise
        events.emit("release", who, {}, state="done", rho=ended.rho, entry=entry, resumed=True)
        return ended.trouble

    def done(here: Session, trouble: str) -> None:
        if trouble:
            here.trouble["resume"] = trouble

    state.start("resume", work, done)


def _nothing() -> None:
    """Do nothing when noise is drawn: it was paid for before the interruption."""


def price_of_cancel(began: bool, epsilon: float) -> str:
    """Return the amount that is spent if the release is cancelled now; the button shows it."""
    return f"up to ε = {epsilon:g} is already spent" if began else "nothing is spent yet"


def kept_back(state: Session, table: Table, share: float, delta: float | None) -> tuple[Preview, int | None]:
    """Return the preview with a holdout of this ``share``, and the number of remaining rows if it is public.

    ``delta`` is the ledger's δ, used if the plan sets none.
    """
    project, size = _without(state.project, table, share)
    n = public_rows(project.plan, table.rows)
    left = n if n is None or size is None else n - size
    if project is not state.project:
        return preview(project if project.plan.delta is not None else project.with_plan(delta=delta)), left
    return state.preview(left, delta), left


def _without(project: Project, table: Table, share: float) -> tuple[Project, int | None]:
    """Return the project for the rows that remain after a holdout of this ``share``.

    Also return the holdout's size if n is public. If n is private, each person (or row) is held out with this
    probability, and a declared total shrinks by this share.
    """
    plan = project.plan
    if plan.person is not None and plan.rows is not None and plan.neighbors == "replace-one":
        return project.with_plan(rows=max(1, round((1 - share) * plan.rows))), None
    if plan.person is not None or (n := public_rows(plan, table.rows)) is None:
        return project, None
    return project, min(max(round(share * n), 1), n - 1)


def total(state: Session) -> tuple[float, float, float] | None:
    """Return ρ, ε and δ of all releases of the open table together; None if their units of privacy differ."""
    mine = [s for s in state.spent if s.table == state.tables]
    if len({(s.neighbors, s.rows_per_person, s.person) for s in mine}) != 1:
        return None
    rho, for_draws = total_up(s.rho for s in mine), total_up(s.for_draws for s in mine)
    delta = min((s.delta - s.for_draws for s in mine if s.delta), default=AT_DELTA)
    return rho, epsilon_of(rho, delta), total_up((delta, for_draws))
