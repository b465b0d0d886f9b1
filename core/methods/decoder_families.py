"""The decoder's model of each drawn family: a table, additive causes with interactions, or additive causes alone.

A family is a column with its drawn causes. The choice reads public numbers only: the numbers of categories, the number
of rows, and the family's share of the budget. If the number of rows is neither public nor declared, its noisy count is
used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from espalier.core.graph.dag import Interaction
from espalier.core.graph.separations import Clique
from espalier.core.models.decoder import Causes
from espalier.core.models.decoder_training import NoisyInteraction, family_table
from espalier.core.privacy.draws import Measurement
from espalier.core.privacy.softmax_heads import CONSTANT, FloatArray, Heads

Way = Literal["auto", "tables", "additive"]

MOST_NOISE = 0.2
"""Largest expected noise of a table, as a share of the rows. Only cells beyond the parameters of additive causes are
included, because training makes a head's weights about as noisy as the same number of cells. The value was chosen on
generated tables and Adult.
"""

COUNTED = 0.5
"""Part of a family's share that pays for counts of its interactions; the rest trains its head."""

MOST_CAUSES = 6
"""Maximum number of causes for which all pairs are measured."""


@dataclass(frozen=True)
class Family:
    """A ``column`` with its drawn ``causes``, its ``share`` of the budget for families, and its chosen model.
    ``together`` are the sets of causes that are measured together with the column: all of them for a table, some for
    interactions, none if the causes are additive.
    """

    column: str
    causes: Causes
    share: float
    together: tuple[Causes, ...] = ()

    @property
    def table(self) -> bool:
        """True if the whole family is measured as one table."""
        return self.together == (self.causes,)

    @property
    def counted(self) -> float:
        """Part of the family's share that pays for counts; the rest trains its head."""
        return 1.0 if self.table else COUNTED if self.together else 0.0

    def cells(self, sizes: Mapping[str, int]) -> int:
        """Number of measured cells."""
        return sum(math.prod(sizes[n] for n in clique) for clique in self.cliques(sizes))

    def sentence(self, sizes: Mapping[str, int]) -> str:
        """Return a short description of the family's model."""
        if self.table:
            return f"{self.column}: a table of {self.cells(sizes):,} cells with {', '.join(self.causes)}"
        if not self.together:
            return f"{self.column}: additive causes {', '.join(self.causes)}"
        sets = "; ".join(" × ".join(causes) for causes in self.together)
        what = f"interactions {sets} ({self.cells(sizes):,} cells)"
        return f"{self.column}: additive causes {', '.join(self.causes)}, and {what}"

    def to_json(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """Return the entry of ``release.json``."""
        kind = "table" if self.table else "interactions" if self.together else "additive"
        out = {"column": self.column, "causes": list(self.causes), "becomes": kind, "cells": self.cells(sizes)}
        return {**out, "interactions": [list(causes) for causes in self.together]} if kind == "interactions" else out

    def counts(self, tables: Sequence[Measurement]) -> list[NoisyInteraction]:
        """Return the counts of each of ``together`` from ``tables``, with the column's axis last."""
        out = []
        for causes in self.together:
            m = next(m for m in tables if set(m.clique) == {self.column, *causes})
            out.append(NoisyInteraction(causes, np.moveaxis(m.values, m.clique.index(self.column), -1), m.sigma))
        return out

    def cliques(self, sizes: Mapping[str, int]) -> tuple[Clique, ...]:
        """Return the tables to measure, with their columns in schema order."""
        return tuple(tuple(n for n in sizes if n == self.column or n in causes) for causes in self.together)


@dataclass(frozen=True)
class Noise:
    """Numbers that determine the models of families: the ``sensitivity`` of a table's counts, ``rho`` for all
    families, the number of ``rows``, and the largest table.
    """

    sensitivity: float
    rho: float
    rows: float
    max_cells: int

    def allows(self, heads: Heads, column: str, together: Sequence[Causes], share: float) -> bool:
        """Return whether counts of each of ``together`` with ``column`` have little noise for this share of ``rho``."""
        if not together or max(_cells(heads, column, some) for some in together) > self.max_cells:
            return False
        counted = share if together == (heads.inputs(column),) else COUNTED * share
        sigma = self.sensitivity / math.sqrt(2 * self.rho * counted / len(together))
        further = sum(_cells(heads, column, some) - _weights(heads, column, some) for some in together)
        return sigma * further <= MOST_NOISE * self.rows


def families_of(heads: Heads, drawn: Sequence[Interaction], noise: Noise, way: Way) -> tuple[Family, ...]:
    """Choose a model for the family of each column with causes.

    A family's share is roughly its head's share of the squared norm of a row's gradient: the square of the column's
    weight, times one more than the number of its causes. A target therefore keeps the part of the budget that training
    would give it. The model is the first that applies:

    1. A table, if its additional noise is at most `MOST_NOISE`.
    2. Otherwise additive causes with all their pairs, and the drawn interactions, if their joint noise is at most
       `MOST_NOISE`.
    3. Otherwise additive causes with the drawn interactions.

    No table has more than ``noise.max_cells`` cells. A latent z leaves all causes additive.
    """
    effects = [n for n in heads.sizes if heads.inputs(n) and heads.sizes[n] > 1]
    weights = {n: heads.weight(n) ** 2 * (1 + len(heads.inputs(n))) for n in effects}
    out = []
    for column in effects:
        causes, share = heads.inputs(column), weights[column] / math.fsum(weights.values())
        together: tuple[Causes, ...] = ()
        if way != "additive" and not heads.latent:
            said = _drawn(heads, column, drawn, noise.max_cells)
            pairs = tuple(itertools.combinations(causes, 2)) if way == "auto" and len(causes) <= MOST_CAUSES else ()
            every = tuple(dict.fromkeys((*said, *pairs)))
            able = [some for some in ((causes,), every) if noise.allows(heads, column, some, share)]
            together = able[0] if able else said
        out.append(Family(column, causes, share, together))
    return tuple(out)


def conditional(
    families: Sequence[Family], tables: Sequence[Measurement], alone: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return p(column | causes) of the families that are tables; ``alone`` are the columns' own distributions."""
    out = {}
    for family in families:
        if family.table:
            (counted,) = family.counts(tables)
            out[family.column] = family_table(counted.values, counted.sigma, alone[family.column])
    return out


def gradient_norm(heads: Heads, columns: Iterable[str]) -> float:
    """Return the norm of the gradient of ``columns`` at the start, for a row of evenly distributed columns."""
    moved = {name: 1 - 1 / size for name, size in heads.sizes.items()}
    reads = {name: CONSTANT**2 + sum(moved[cause] for cause in heads.inputs(name)) for name in columns}
    return math.sqrt(math.fsum(heads.weight(name) ** 2 * moved[name] * reads[name] for name in reads))


def _drawn(heads: Heads, column: str, drawn: Sequence[Interaction], max_cells: int) -> tuple[Causes, ...]:
    """Return the drawn interactions on ``column`` with a table that is not too large."""
    found = [tuple(n for n in heads.inputs(column) if n in some) for some, effect in drawn if effect == column]
    return tuple(s for s in dict.fromkeys(found) if len(s) > 1 and _cells(heads, column, s) <= max_cells)


def _cells(heads: Heads, column: str, causes: Causes) -> int:
    return math.prod(heads.sizes[n] for n in (*causes, column))


def _weights(heads: Heads, column: str, causes: Causes) -> int:
    """Return the number of parameters that describe ``column`` with additive ``causes``."""
    return heads.sizes[column] * (1 + sum(heads.sizes[n] - 1 for n in causes))
