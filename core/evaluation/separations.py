"""CMI of every separation of a plan: of its fence, its regime and the project's own list. Confidential."""

from __future__ import annotations

from typing import Any

import numpy as np

from espalier.core.errors import EspalierError, SizeError
from espalier.core.evaluation.dependence import cmi
from espalier.core.methods import frame_of
from espalier.core.models.base import MarginalModel, Model
from espalier.core.progress import Report
from espalier.core.project.file import Project
from espalier.core.tables.table import Table

MOST = 12
"""Maximum number of measured separations, in the plan's order. Each is compared with 199 shuffled tables."""
ROWS = 50_000
"""Maximum number of rows used from either table, chosen at random with a fixed seed."""


def separations_of(
    project: Project, real: Table, synthetic: Table, model: Model | None, report: Report
) -> list[dict[str, Any]]:
    """Return the conditional mutual information of each separation in nats, for real rows, synthetic rows and the
    model.

    ``floor_real`` and ``floor_synthetic`` are exceeded in 5 % of tables in which the separation is true. ``cmi_model``
    is exact; None for a model that cannot compute it, or if its table would be too large.
    """
    try:
        wanted = frame_of(project).separations[:MOST]
    except EspalierError:  # for example, plan, roles and graph conflict
        return []
    tables = [_some(table) for table in (real, synthetic)]
    out = []
    for i, separation in enumerate(wanted):
        report(i / len(wanted), f"Measuring separation {i + 1} of {len(wanted)}")
        there, here = (cmi(table, separation) for table in tables)
        try:
            sides = (separation.left, separation.right, separation.given)
            exact = model.cmi(*sides) if isinstance(model, MarginalModel) else None
        except SizeError:
            exact = None
        out.append(
            {
                **separation.to_json(),
                "cmi_real": there.value,
                "floor_real": there.floor,
                "cmi_synthetic": here.value,
                "floor_synthetic": here.floor,
                "cmi_model": exact,
            }
        )
    return out


def _some(table: Table) -> Table:
    if table.rows <= ROWS:
        return table
    return table.take(np.sort(np.random.default_rng(0).choice(table.rows, ROWS, replace=False)))
