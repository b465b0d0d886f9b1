"""A session's release, carried out by a worker process or a thread."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from espalier.core.errors import TableError
from espalier.core.ledger.ledger import Ledger, default_ledger
from espalier.core.privacy.contribution import public_rows
from espalier.core.progress import Report, part
from espalier.core.project.file import Project
from espalier.core.release.artefact import Release
from espalier.core.server.allowed import allowed
from espalier.core.server.worker import Begun
from espalier.core.statement.keys import server_signer
from espalier.core.tables.relation import Relation
from espalier.core.tables.table import Table


class Paid(NamedTuple):
    """Payment of a release: the table's name in the ledger, the person, a note, and whether a warning was confirmed."""

    table: str
    who: str
    note: str
    ticked: bool


@dataclass(frozen=True, repr=False)
class Order:
    """Table to release: in memory, or ``far``, a place and a name that the server's operator allows.

    ``rows`` is the number of rows on the Plan page, if it is public. If ``paid`` is `None`, the release is not recorded
    in a ledger.
    """

    project: Project
    table: Table | None
    far: tuple[str, str | None] | None
    rows: int | None
    paid: Paid | None


def carry_out(order: Order, report: Report, begun: Begun) -> Release:
    """Spend the budget; ``begun`` is called before the first draw."""
    from espalier.core.release.spend import release
    from espalier.core.tables.frames import opened

    project, paid = order.project, order.paid
    plan = project.plan
    account = Ledger(default_ledger()).account(*paid[:3], again=paid.ticked) if paid else None
    if order.table is not None:
        return release(project, order.table, _marking(part(report, 0.0, 0.95), begun), account, server_signer())
    if order.far is None:
        raise TableError("no table is open")
    relation = allowed().open(*order.far)
    scan = part(report, 0.0, 0.3)
    with opened(relation, project.schema, plan.person, plan.rows_per_person, scan) as table:
        counted = public_rows(plan, table.rows)
        if counted is not None and counted != order.rows:
            stated = "no number" if order.rows is None else f"{order.rows:,}"
            raise TableError(
                f"the table has {counted:,} rows, but the Plan page states {stated}. Under replace-one, the number of "
                f"rows is public: enter {counted:,} there"
            )
        return release(project, table, _marking(part(report, 0.3, 0.95), begun), account, server_signer())


@dataclass(frozen=True, repr=False)
class Unended:
    """An interrupted release to finish: its ledger table and entry, the person who finishes it, and the open table."""

    population: str
    entry: str
    who: str
    table: Table | None
    far: tuple[str, str | None] | None


class Ended(NamedTuple):
    """ρ of a finished release kept by the ledger, and a message if the ledger could not record the release."""

    rho: float
    trouble: str


def finish(order: Unended, report: Report, begun: Begun) -> Ended:
    """Finish a release from its stored answers. ``begun`` is called immediately, because all draws are already paid
    for.
    """
    from espalier.core.release.resume import resume

    begun()
    reservation = Ledger(default_ledger()).account(order.population, order.who).resumed(order.entry)
    with ExitStack() as held:
        data: Table | Relation | None = order.table
        if data is None and order.far is not None:
            data = allowed().open(*order.far)
            held.callback(data.close)
        made = resume(reservation, data, report, server_signer())
        return Ended(made.spending.rho, made.ledger_trouble)


def _marking(report: Report, begun: Begun) -> Report:
    """Return a report that marks the first moment at which something may be drawn."""
    first = [True]

    def marked(fraction: float, message: str) -> None:
        report(fraction, message)
        if first[0]:
            first[0] = False
            begun()

    return marked
