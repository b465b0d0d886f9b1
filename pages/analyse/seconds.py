"""Estimate of the time needed to make the copies for a question."""

from __future__ import annotations

from espalier.core.analysis import nearby
from espalier.core.analysis.study import SUGGESTED, Study

PER_COPY, PER_CELL = 0.02, 4e-5
"""Seconds per copy and per cell of its tables, on one core of a laptop."""


def of(part: Study, number: int = SUGGESTED) -> float:
    """Return roughly how many seconds the copies for a part of a study will take; 0 if they exist already."""
    if len(part.given) > 1:
        return 0.0
    cells = nearby.cells(part.project.schema.sizes, part.counted)
    return number * (PER_COPY + PER_CELL * cells)
