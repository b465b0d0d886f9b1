"""Comparison of a release with a data frame, for notebooks."""

from __future__ import annotations

from typing import Any

from espalier.core.analysis.loading import Released
from espalier.core.evaluation import Evaluation
from espalier.core.evaluation import evaluate as evaluate_tables
from espalier.core.progress import Report, silent
from espalier.core.release.artefact import Release
from espalier.core.tables.frames import as_table


def evaluate(result: Release | Released, data: Any, *, holdout: Any = None, report: Report = silent) -> Evaluation:
    """Compare a release with the real table from which it was made. The result is confidential, because it depends on
    every real row. ``data`` and ``holdout`` are data frames or tables; see
    :func:`espalier.core.tables.frames.as_table`. Raises :class:`espalier.core.errors.TableError` if they do not fit the
    project.

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
    return evaluate_tables(result.project, real, synthetic, model=result.model, holdout=rows, report=report)
