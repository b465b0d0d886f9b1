"""Resumed releases: the stored answers are replayed, then the missing answers are computed. Only missing answers need
the rows.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from espalier.core.errors import LedgerError, TableError, Unfinished
from espalier.core.ledger.population import Entry
from espalier.core.ledger.replay import ROUNDED
from espalier.core.ledger.secret_file import own_secret
from espalier.core.methods import method_of
from espalier.core.planning.preview import Preview, preview
from espalier.core.privacy.contribution import check_fits, public_rows
from espalier.core.privacy.journal import Journal
from espalier.core.progress import Report, silent
from espalier.core.project.people import stated
from espalier.core.project.plan import Plan
from espalier.core.release.artefact import Release
from espalier.core.release.run import PrivateRows, Run, parts, public_facts
from espalier.core.release.unfinished import Begun, FolderJournal, dealt, records_of, same_parts, same_rows
from espalier.core.statement.keys import Signer
from espalier.core.tables.deferred import Deferred
from espalier.core.tables.frames import opened, panel
from espalier.core.tables.public_chance import seeded
from espalier.core.tables.source import Source
from espalier.core.tables.stream import CHANGED

if TYPE_CHECKING:
    from espalier.core.ledger.account import Reservation


def resume(
    unfinished: str | Path | Reservation,
    data: Any = None,
    report: Report = silent,
    signer: Signer | None = None,
) -> Release:
    """Finish an interrupted release at no further cost.

    ``unfinished`` is the folder in which the release would have been saved, or a reservation of
    :meth:`espalier.core.ledger.account.Account.resumed`. Stored answers are reused in their order. ``data`` is the
    private table, as for :func:`espalier.core.release.spend.release`, or a function that returns it for the project.
    The table is read only if an answer is missing. It must be the table with which the release began, according to its
    keyed fingerprint.

    Raises :class:`Unfinished` if rows are needed and ``data`` is `None`, or if nothing is stored.

    >>> import espalier as es
    >>> es.resume("release")
    Traceback (most recent call last):
    espalier.core.errors.Unfinished: There is no unfinished release to release.
    """
    reservation, storage = None, None
    if isinstance(unfinished, str | Path):
        storage = FolderJournal(Path(unfinished))
        begun, records = storage.read()
        secret = own_secret()
    else:
        reservation = unfinished
        store = reservation.account.store
        stored = store.journal(reservation.entry.id)
        if not stored:
            raise Unfinished(f"No answers are stored for entry {reservation.entry.id}, so it cannot be resumed.")
        begun, records, secret = Begun.loads(stored[0]), records_of(stored[1:]), store.secret()
    with ExitStack() as files:
        needed = _Needed(begun, data, secret, files, len(records))
        shown = preview(begun.planned, begun.total)
        if reservation is not None:
            _check_entry(begun, reservation.entry, shown)
        journal = Journal(records, reservation or storage)
        own = Deferred(begun.own, begun.planned.schema, lambda: needed.parts[0])
        held = None
        if begun.held is not None:
            held = cast(Source, Deferred(begun.held, begun.planned.schema, needed.held))
        rows = PrivateRows(cast(Source, own), held, shown.budget, journal, seeded(begun.seed))
        return Run(begun, rows, shown, reservation, storage, signer, resumed=True).finish(report)


def _check_entry(begun: Begun, entry: Entry, shown: Preview) -> None:
    """Raise :class:`LedgerError` unless the facts are those of the reserved release: they are outside the ledger's
    hash chain, so anyone who can write to its database could change them.
    """
    project, plan = begun.planned, Plan.from_json(entry.plan)
    same = (
        project.plan.to_json() == plan.to_json()
        and begun.given.with_plan(delta=project.plan.delta) == project
        and (project.name, begun.relation) == (entry.project, entry.relation)
        and stated(project.one_row_per_person, project.plan) == entry.one_row_per_person
    )
    if not same or shown.budget.rho > entry.reserved or shown.delta > entry.delta_reserved * (1 + ROUNDED):
        raise LedgerError(
            f"the facts stored for entry {entry.id} are not those for which its budget was reserved; they "
            "were changed, or stored by another version of Espalier. Nothing was drawn",
            entry=entry.id,
        )


class _Needed:
    """Rows that are opened and checked when the first missing answer needs them."""

    def __init__(self, begun: Begun, data: Any, secret: bytes | None, files: ExitStack, stored: int) -> None:
        self._begun, self._data, self._secret, self._files, self._stored = begun, data, secret, files, stored

    @cached_property
    def parts(self) -> tuple[Source, Source | None]:
        """The same rows of the release, and the same held-out rows, as before the interruption."""
        begun, secret, plan = self._begun, self._secret, self._begun.planned.plan
        schema, link, data = begun.planned.schema, begun.planned.linked, self._data
        if data is None:
            raise Unfinished(
                f"{self._stored} answer{'s are' if self._stored != 1 else ' is'} stored, and the next one needs the "
                "rows. Name the table: --data TABLE",
                missing="data",
            )
        if begun.held is not None and schema.undeclared:
            raise Unfinished(
                "Rows were held out and columns were bought, so Espalier cannot show that the same people would be "
                "held out again. The drawn noise stays spent. Close the entry: espalier ledger close ENTRY"
            )
        if secret is None or not begun.marks:
            raise Unfinished("The release began without a key file, so its table cannot be recognised.")
        if callable(data):
            data = data(begun.planned)
        if link is None:
            keyed = begun.lot_key or None
            table = self._files.enter_context(opened(data, schema, plan.person, plan.rows_per_person, key=keyed))
        else:
            table = panel(link, schema, data)
        check_fits(begun.planned, table)
        same_rows(secret, begun.marks, table.digest)
        if table.origin != begun.relation:
            raise TableError(CHANGED.format("the table"))
        if method_of(plan).capabilities.numbers:
            for column in schema.columns:
                if column.kind == "numeric":
                    table.numbers(column.name)
        if begun.held is not None:  # all other random choices get fresh lots (`espalier.core.privacy.contribution`)
            table = dealt(table, secret, begun.nonce)
        own, held = parts(plan, table, begun.total, self._files)
        same_parts(secret, begun.marks, own, held)
        facts = [None if one is None else public_facts(one, plan) for one in (own, held)]
        if (public_rows(plan, table.rows), *facts) != (begun.total, begun.own, begun.held):
            raise Unfinished("The stored facts of the unfinished release do not match its table. Nothing was drawn.")
        return own, held

    def held(self) -> Source:
        """Return the held-out rows."""
        held = self.parts[1]
        assert held is not None
        return held
