"""Steps of a release, in order. Only this module spends a budget on a private table."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from espalier.core.errors import ProjectError, SchemaError
from espalier.core.ledger.secret_file import own_secret
from espalier.core.methods import check_options, method_of
from espalier.core.planning.preview import preview
from espalier.core.planning.space import Space
from espalier.core.privacy.contribution import check_fits, public_rows
from espalier.core.privacy.journal import Journal
from espalier.core.progress import Report, part, silent
from espalier.core.project.file import Project
from espalier.core.project.plan import IN_MEMORY
from espalier.core.release.artefact import Release
from espalier.core.release.run import PrivateRows, Run, parts, public_facts
from espalier.core.release.unfinished import Begun, FolderJournal, dealt, marks_of, new_seed
from espalier.core.statement.keys import Signer
from espalier.core.tables.frames import opened, panel, relation_of
from espalier.core.tables.public_chance import fresh, seeded
from espalier.core.tables.row_limits import new_key
from espalier.core.tables.source import Source

if TYPE_CHECKING:
    from espalier.core.ledger.account import Account


def release(
    project: Project,
    data: Any,
    report: Report = silent,
    ledger: Account | None = None,
    signer: Signer | None = None,
    folder: str | Path | None = None,
) -> Release:
    """Spend the plan's budget on a private table and return the release, which may be shared.

    ``data`` is one of:

    - a :class:`~espalier.core.tables.table.Table`;
    - a data frame of pandas or of any library that supports Arrow, read with the project's schema and the plan's
      person column;
    - a :class:`~espalier.core.tables.relation.Relation`, read once into a snapshot that is deleted on return;
    - a :class:`~espalier.core.tables.snapshot.Snapshot`, which the caller closes;
    - for linked tables, a pair of frames or tables as read, people first.

    Everything that can be refused is refused before the first draw: unconfirmed guesses, conflicts, excessive sizes,
    and an insufficient budget in the ledger. The result is (ε, δ)-DP for the plan's unit of privacy. ``report(fraction,
    message)`` reports progress. If it raises, the release is cancelled; the ρ of finished draws stays spent.

    ``ledger`` is an account of a :class:`espalier.core.ledger.ledger.Ledger`. The plan's whole ρ and the δ₀ of its
    draws are reserved there before the first draw, and a plan without δ uses the ledger's δ. The ledger charges a
    finished release the amount that it spent, and a failed release nothing if nothing was drawn. Otherwise, and after a
    crash, the whole amount stays reserved until :func:`espalier.core.release.resume.resume` finishes the release or the
    entry is closed.

    Each noisy answer is stored with the entry before it is used. Without a ledger, answers are stored next to
    ``folder``, the folder to which the release will be saved; without a folder they are not stored.

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
    if relation is not None:  # refuse before a long scan begins
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
        place = None if folder is None else Path(folder)
        return _release(project, table, rest, ledger, held, table.origin, signer, place)


def _release(
    project: Project,
    table: Source,
    report: Report,
    ledger: Account | None,
    files: ExitStack,
    relation: str | None = None,
    signer: Signer | None = None,
    folder: Path | None = None,
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
                table.numbers(
                    column.name
                )  # raises an error for a table that contains only codes, before anything is drawn
    total = public_rows(plan, table.rows)
    if plan.copies and (plan.rows or total or 0) > IN_MEMORY:
        raise ProjectError(
            f"Copies are drawn in memory, with at most {IN_MEMORY:,} rows each. Set rows in the plan.", key="copies"
        )
    held_in_text = project.constraints or any(c.invented for c in project.schema.identifiers)
    if held_in_text and (plan.rows or total or 0) > IN_MEMORY:
        raise ProjectError(
            f"Rows with constraints or invented identifiers are made in memory, up to {IN_MEMORY:,}. Set rows in "
            "the plan.",
            key="rows",
        )
    if project.linked is not None and (plan.rows or total or 0) > IN_MEMORY:
        raise ProjectError(
            f"Linked tables are made in memory, with at most {IN_MEMORY:,} people. Set rows in the plan."
        )
    shown = preview(planned, total)  # the rehearsal refuses conflicts and plans that are too large
    shown.memory.check()
    if size := plan.rows or total:
        Space.of(shown, size).check(folder, ledger.store.path if ledger else None)
    secret = ledger.store.secret() if ledger else own_secret() if folder else None
    nonce = secrets.token_hex(16)
    if secret is not None:
        table = dealt(table, secret, nonce)
    own, held = parts(plan, table, total, files)
    marks = () if secret is None else marks_of(secret, table, own, held)
    facts = [None if one is None else public_facts(one, plan) for one in (own, held)]
    assert facts[0] is not None
    lots = "" if plan.person is None else table.lot_key or new_key()  # one row may decide how the table is read
    begun = Begun(planned, project, total, relation, facts[0], facts[1], new_seed(), nonce, lots, marks)
    reservation, storage = None, None
    if ledger is not None:
        digest = table.digest
        reservation = ledger.reserve(planned, shown.budget, digest, shown.delta, relation, begun.dumps())
    elif folder is not None:
        storage = FolderJournal.begin(folder, begun)
    stored_in = reservation or storage
    chance = fresh if stored_in is None else seeded(begun.seed)
    rows = PrivateRows(own, held, shown.budget, Journal((), stored_in), chance)
    return Run(begun, rows, shown, reservation, storage, signer).finish(report)


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
