"""Data for the pictures of linked tables: transitions, flows over visits, and survival to the next visit.

Confidential if the panel is the real one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from espalier.core.project.linked import BEFORE
from espalier.core.tables.panel import Panel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Flow:
    """A share of all people who have ``before`` at visit ``visit`` (counted from 1) and ``after`` at the next."""

    visit: int
    before: int
    after: int
    share: float


def transitions(panel: Panel, name: str) -> Array:
    """Return P(value at a visit | value at the previous visit), one row per previous value.

    Each person has weight 1, as in the release. A row without a visit is zero.
    """
    (counts,) = panel.step_counts([(name + BEFORE, name)])
    held = counts[: panel.steps.sizes[name]].astype(np.float64)
    rows = held.sum(axis=1, keepdims=True)
    shares: Array = np.divide(held, rows, out=np.zeros_like(held), where=rows > 0)
    return shares


def flows(panel: Panel, name: str, most: int = 4) -> list[Flow]:
    """Return the flows of a column from each of the first ``most`` visits to the next."""
    assert panel.linked is not None
    out, size, codes = [], panel.steps.sizes[name], panel.visits[name].astype(np.int64)
    for t in range(1, min(panel.linked.keep, most + 1)):
        who = panel.steps.numbers > t
        cells = np.bincount(codes[who, t - 1] * size + codes[who, t], minlength=size * size)
        out += [Flow(t, i // size, i % size, float(cells[i]) / panel.rows) for i in np.flatnonzero(cells).tolist()]
    return out


def survival(panel: Panel, column: str) -> Mapping[int, Array]:
    """Return, for each value of a person's column, the share of its people with at least 1, 2, … kept visits."""
    assert panel.linked is not None
    codes, keep = panel.codes[column], panel.linked.keep
    found = {}
    for value in np.unique(codes).tolist():
        numbers = panel.steps.numbers[codes == value]
        found[value] = np.array([(numbers >= t).mean() for t in range(1, keep + 1)])
    return found
