"""Comparison of a release with a data frame, for notebooks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from espalier.core.analysis.loading import Released
from espalier.core.errors import LedgerUnavailable
from espalier.core.evaluation import Evaluation
from espalier.core.evaluation import evaluate as evaluate_tables
from espalier.core.ledger.views import record_view
from espalier.core.progress import Report, silent
from espalier.core.release.artefact import Release
from espalier.core.tables.frames import as_table

if TYPE_CHECKING:
    from espalier.core.ledger.account import Account

VIEW = "es.evaluate"
"""Description of the view in the ledger."""


def evaluate(
    result: Release | Released,
    data: Any,
    *,
    holdout: Any = None,
    report: Report = silent,
    ledger: Account | None = None,
) -> Evaluation:
    """Compare a release with the real table from which it was made. The result is confidential, because it depends on
    every real row. ``data`` and ``holdout`` are data frames or tables; see
    :func:`espalier.core.tables.frames.as_table`.

    If a ledger paid for the release, the view is recorded there before anything is computed. For a release that was
    loaded from a folder, this is the default ledger (ESPALIER_LEDGER); a warning is issued if it has no entry of the
    release. ``ledger`` is an account of another ledger or table in which the view is recorded.

    Raises :class:`espalier.core.errors.TableError` if the tables do not fit the project, and
    :class:`espalier.core.errors.LedgerError` if the view cannot be recorded, or if a known table's account is missing.

    >>> import espalier as es, pandas as pd
    >>> frame = pd.DataFrame({"smoker": ["yes", "no"] * 500, "sick": ["yes", "no", "no", "no"] * 250})
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in frame]
    >>> project = es.Project("clinic", es.Schema(tuple(columns)), es.Plan("mst", epsilon=1, delta=1e-6))
    >>> judged = es.evaluate(es.release(project, frame), frame)
    >>> judged.to_json()["private"]
    False
    """
    schema = result.project.schema
    synthetic = result.table if isinstance(result, Released) else result.synthetic
    real = as_table(data, schema, result.project.plan.person)
    rows = None if holdout is None else as_table(holdout, schema)
    _record_view(result, ledger, [table.digest for table in (real, rows) if table is not None])
    return evaluate_tables(result.project, real, synthetic, model=result.model, holdout=rows, report=report)


def _record_view(result: Release | Released, account: Account | None, digests: Sequence[bytes]) -> None:
    """Record in the ledger that the figures of a release are about to be computed on tables with these ``digests``."""
    from espalier.core.ledger.ledger import Ledger, default_ledger

    if isinstance(result, Released):
        entry = result.facts.get("ledger")
    else:
        entry = None if result.reservation is None else result.reservation.facts()
        if account is None and result.reservation is not None:
            account = result.reservation.account
    chain = entry.get("chain") if isinstance(entry, dict) else None
    if account is not None:
        record_view(account.store, digests, [account.table], account.who, VIEW, chain)
        return
    try:
        found = Ledger(default_ledger()).diagnosed(digests, what=VIEW, chain=chain)
    except LedgerUnavailable as error:
        if not error.data.get("missing"):
            raise
        found = []
    if entry and not found:
        warnings.warn(
            "The release is recorded in another ledger, so this view of diagnostics is not recorded. Pass an account "
            "of that ledger: ledger=es.Ledger(FILE_OR_URL).account(TABLE)",
            stacklevel=3,
        )
