"""Model of visits after the first, which are drawn one by one and column by column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.models.even import uniforms
from espalier.core.models.linked.column import StepColumn, drawn
from espalier.core.project.linked import BEFORE, Codes, Linked, Steps


@dataclass(frozen=True)
class StepModel:
    """A visit's columns in the order in which they are drawn; ``sizes`` is `Linked.step_sizes`."""

    linked: Linked
    sizes: Mapping[str, int]
    columns: tuple[StepColumn, ...]

    def visits(self, rows: Codes, rng: np.random.Generator, *, even: bool = False) -> dict[str, NDArray[Any]]:
        """Return the visits of people with these ``rows``: one row per person and one column per position.

        Each person gets exactly their number of visits. Positions beyond it hold zeros. With ``even``, each column is
        spread evenly over people with equal parents (see `espalier.core.models.even`).
        """
        many = np.asarray(rows[self.linked.number], dtype=np.int64) + 1
        made = first_visits(self.linked, self.sizes, rows, [c.name for c in self.columns])
        steps = Steps(self.linked, self.sizes, rows, made)  # reads ``made``, to which drawn columns are added
        for at in range(1, self.linked.keep):
            who = np.flatnonzero(many > at)
            if len(who):
                cells = partial(steps.cells_at, who=who, at=np.full(len(who), at))
                for column in self.columns:
                    alike = [(cells(name), self.sizes[name]) for name in column.parents] if even else None
                    numbers = uniforms(len(who), alike, rng)
                    made[column.name][who, at] = drawn(column.probabilities(cells), numbers)
        return made


def first_visits(linked: Linked, sizes: Mapping[str, int], rows: Codes, columns: list[str]) -> dict[str, NDArray[Any]]:
    """Return visits with only the first filled in, with "none" as the days since the previous visit."""
    made = {}
    for name in columns:
        made[name] = np.zeros((len(rows[linked.number]), linked.keep), dtype=np.int64)
        made[name][:, 0] = rows[name] if name in rows else sizes[name + BEFORE] - 1
    return made
