"""Which figures of a release carry an interval: those that rest on what was counted.

No combining rule repairs a figure that the release never measured, so each figure is judged first. The judgement uses
the released cliques, noise scales and model alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.copies import CopyableModel
from espalier.core.graph.cuts import cheapest_cut
from espalier.core.graph.separations import Clique, clique_edges
from espalier.core.privacy.draws import Measurement, Merged

Kind = Literal["counted", "outcome pairs counted", "thin", "assumed", "no overlap"]
Cell = tuple[tuple[str, int], ...]
"""Columns and a code of each: the rows that have all of them."""

ENOUGH = 4.0
"""A figure is thin where a cell that it needs holds fewer rows than this many σ. Odds ratios on Adult at ε = 1 cover
21 % where the smallest cell is below 1 σ, 55 % at 1–2 σ, 87 % at 2–3 σ, 91 % at 3–5 σ and 95 % above."""

ABSENT, EXPECTED = 2.0, 5.0
"""A stratum has no rows of a group if it holds fewer than ``ABSENT`` σ of them, where the group's share of all rows
would put at least ``EXPECTED`` σ. Noise alone makes 5 σ look like less than 2 σ in 0.1 % of strata."""
RARE = 0.05
"""Overlap is weak where a group makes up less than this share of a stratum, in strata with this share of the rows."""


@dataclass(frozen=True)
class Needs:
    """What a figure rests on: its ``columns``, and the ``cells`` whose rows it compares.

    ``rests`` are cells whose remainder it needs too: the rows that are alike but for another value of the cell's first
    column. A share has one: where the remainder is noise, so is one minus the share. No fit goes below zero rows, so
    it finds too many in such a remainder, and copies find still more: intervals miss to one side.

    ``outcome`` is the column that it models given the others, if any (a regression, a standardised effect): then pairs
    with the outcome may do.

    ``together`` are further columns that must share a clique with the outcome and each other column: the treatment of
    a standardised effect.

    ``missing`` are the columns whose missing cells are left out, with the code of such a cell: they are in no remainder
    but that of the missing cell itself, which is the rows where the column is observed.

    ``support`` are groups that must all occur in each stratum of the other columns (positivity).
    """

    columns: tuple[str, ...]
    cells: tuple[Cell, ...] = ()
    outcome: str | None = None
    together: tuple[str, ...] = ()
    rests: tuple[Cell, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    support: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class Overlap:
    """How the compared groups share the strata: ``lacking`` and ``weak`` are shares of the rows.

    ``lacking`` is that of strata without rows of some group, ``weak`` that of strata where some group is rare.
    ``where`` are the groups and strata that lack rows, the largest stratum first.
    """

    lacking: float = 0.0
    weak: float = 0.0
    where: tuple[tuple[Cell, Cell], ...] = ()


@dataclass(frozen=True)
class Badge:
    """The answer for one figure. ``interval``: may one be shown; ``promised``: is its coverage promised.

    ``apart`` are two columns that were not counted together, and ``given`` those given which the table takes them as
    independent (both empty unless ``kind`` is "assumed"). ``thinnest`` is the smallest cell needed, in σ.
    """

    kind: Kind
    sentence: str
    thinnest: float = math.inf
    apart: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def interval(self) -> bool:
        """May an interval be shown?"""
        return self.kind in ("counted", "outcome pairs counted")

    @property
    def promised(self) -> bool:
        """Is the interval's coverage promised?"""
        return self.kind == "counted"


class Gate:
    """Judges figures of one release."""

    def __init__(
        self,
        measurements: Iterable[Measurement],
        model: CopyableModel,
        merged: Merged | None = None,
        labels: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """``measurements`` are those that ``model`` was fitted to; of their values only the shapes are used.

        ``merged`` are the groups of categories that they count, ``labels`` what the categories are called.
        """
        self._model = model
        self._labels = labels or {}
        self._merged = merged or {}
        self._noise: dict[Clique, float] = {}
        self._shape: dict[Clique, tuple[int, ...]] = {}
        for m in measurements:
            self._noise[m.clique] = 1 / (1 / self._noise.get(m.clique, math.inf) ** 2 + 1 / m.sigma**2) ** 0.5
            self._shape[m.clique] = m.values.shape
        self._marginals: dict[Clique, NDArray[np.float64]] = {}

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs that were counted together."""
        return clique_edges(self._noise)

    def counted(self, columns: Iterable[str]) -> bool:
        """Do all these columns share a counted clique?"""
        return any(set(columns) <= set(clique) for clique in self._noise)

    def sigma(self, columns: Sequence[str]) -> float:
        """The noise in a cell of the marginal over ``columns``, in rows, from all cliques that hold them.

        Summing out the other columns of a clique adds up as many cells' noise.
        """
        precision = 0.0
        for clique, sigma in self._noise.items():
            if set(columns) <= set(clique):
                summed = math.prod(
                    size for name, size in zip(clique, self._shape[clique], strict=True) if name not in columns
                )
                precision += 1 / (sigma**2 * summed)
        return precision**-0.5 if precision else math.inf

    def noise(self, cell: Cell, rest: bool = False, missing: Mapping[str, int] | None = None) -> float:
        """The noise in a cell, or in the sum of the cells that are its ``rest``, in rows."""
        names = [name for name, _ in cell]
        return self.sigma(names) * math.sqrt(max(len(self._others(cell, missing or {})) if rest else 1, 1))

    def judge(self, needs: Needs) -> Badge:
        """One of five answers."""
        names = needs.columns
        if self.counted(names):
            return (
                self._no_overlap(needs)
                or self._thin(needs)
                or Badge(
                    "counted",
                    f"{_listed(names)} {'was counted' if len(names) == 1 else 'were counted together'}.",
                    self._thinnest(needs),
                )
            )
        y = needs.outcome
        others = [n for n in names if n != y and n not in needs.together]
        if y is not None and all(self.counted({*needs.together, n, y}) for n in others):
            with_outcome = _listed((*needs.together, y))
            return (
                self._no_overlap(needs)
                or self._thin(needs)
                or Badge(
                    "outcome pairs counted",
                    f"Given the model: {_listed(others)} were each counted with {with_outcome}, but not all together; "
                    "their joint pattern is modelled. No coverage is promised.",
                    self._thinnest(needs),
                )
            )
        return self._assumed(needs)

    def smallest(self, needs: Needs) -> tuple[float, float]:
        """Rows and noise of the cell or remainder that has the fewest rows for its noise; infinite without cells."""
        cells = [(self._rows(cell), self.noise(cell)) for cell in needs.cells]
        missing = needs.missing
        rests = [(self._rest(cell, missing), self.noise(cell, True, missing)) for cell in needs.rests]
        return min(cells + rests, key=lambda found: found[0] / found[1], default=(math.inf, 1.0))

    def overlap(self, needs: Needs) -> Overlap:
        """How the groups of ``needs.support`` share the strata of the other columns, by the released model.

        Strata are those of all other columns where these were counted together with the groups' column, else those of
        each of them alone. Rows with a missing cell are in none.
        """
        names = [n for n in needs.columns if n != needs.outcome and n not in needs.together]
        if not needs.support or not names:
            return Overlap()
        treatment = needs.support[0][0][0]
        strata = [names] if self.counted((treatment, *names)) else [[name] for name in names]
        found = [self._overlap(needs, treatment, given) for given in strata if self.counted((treatment, *given))]
        return max(found, key=lambda one: (one.lacking, one.weak), default=Overlap())

    def _overlap(self, needs: Needs, treatment: str, given: Sequence[str]) -> Overlap:
        y = needs.outcome
        with_outcome = y is not None and y in needs.missing and self.counted((treatment, *given, y))
        columns = (treatment, *given, *([y] if y is not None and with_outcome else []))
        rows = self._marginal(columns)
        for axis, name in enumerate(columns):
            if name in needs.missing:
                rows = np.delete(rows, needs.missing[name], axis=axis)  # a missing cell's code is the last one
        noise = self.sigma(columns) * (math.sqrt(rows.shape[-1]) if with_outcome else 1.0)
        rows = np.maximum(rows.sum(axis=-1) if with_outcome else rows, 0.0)
        shape, rows = rows.shape[1:], rows.reshape(len(rows), -1)
        strata, total = rows.sum(axis=0), float(rows.sum())
        lacking, weak = np.zeros(len(strata), np.bool_), np.zeros(len(strata), np.bool_)
        where: list[tuple[float, tuple[Cell, Cell]]] = []
        for group in needs.support:
            of = rows[group[0][1]]
            absent = (of < ABSENT * noise) & (strata * of.sum() / max(total, 1e-9) >= EXPECTED * noise)
            lacking, weak = lacking | absent, weak | (of < RARE * strata)
            for stratum in np.flatnonzero(absent):
                codes = (int(code) for code in np.unravel_index(stratum, shape))
                where.append((strata[stratum], (group, tuple(zip(given, codes, strict=True)))))
        where.sort(key=lambda one: -one[0])
        without, few = (float(strata[which].sum() / max(total, 1e-9)) for which in (lacking, weak))
        return Overlap(without, few, tuple(place for _, place in where))

    def _no_overlap(self, needs: Needs) -> Badge | None:
        """Positivity: each compared group has rows in each stratum. Where one has none, no effect can be estimated."""
        found = self.overlap(needs)
        if not found.where:
            return None
        group, stratum = found.where[0]
        others = f", and {len(found.where) - 1} more such places" if len(found.where) > 1 else ""
        return Badge(
            "no overlap",
            f"No answer: among rows with {self._named(stratum)} hardly any, if any, have {self._named(group)}{others}. "
            f"About {100 * found.lacking:.0f} % of the rows are in such a stratum, and nothing shows what the outcome "
            "would be there. Coarsen or leave out these columns, or ask about the other rows alone.",
            0.0,
        )

    def _named(self, cell: Cell) -> str:
        return " and ".join(
            f"{name} = {self._labels[name][code]}" if name in self._labels else f"{name}={code}" for name, code in cell
        )

    def _thinnest(self, needs: Needs) -> float:
        rows, noise = self.smallest(needs)
        return rows / noise

    def _rows(self, cell: Cell) -> float:
        return float(self._counts(cell)[tuple(code for _, code in cell)])

    def _rest(self, cell: Cell, missing: Mapping[str, int]) -> float:
        alike = np.moveaxis(self._counts(cell), 0, -1)[tuple(c for _, c in cell[1:])]
        return float(alike[self._others(cell, missing)].sum())

    def _others(self, cell: Cell, missing: Mapping[str, int]) -> list[int]:
        """The codes of a cell's first column that are in its remainder."""
        name, code = cell[0]
        return [c for c in range(self._counts(cell).shape[0]) if c not in (code, missing.get(name))]

    def _counts(self, cell: Cell) -> NDArray[np.float64]:
        return self._marginal(tuple(name for name, _ in cell))

    def _marginal(self, columns: tuple[str, ...]) -> NDArray[np.float64]:
        if columns not in self._marginals:
            self._marginals[columns] = self._model.marginal(columns)
        return self._marginals[columns]

    def _thin(self, needs: Needs) -> Badge | None:
        for name, code in (place for cell in needs.cells for place in cell):
            groups = self._merged.get(name)
            if groups is not None and np.count_nonzero(groups == groups[code]) > 1:
                return Badge(
                    "thin",
                    f"A category of {name} that this compares was counted in a group with other rare ones; the table "
                    "divides the group evenly among them.",
                    0.0,
                )
        thinnest = self._thinnest(needs)
        if thinnest >= ENOUGH:
            return None
        return Badge(
            "thin",
            f"Too few rows: the smallest group that this compares is about {max(thinnest, 0):.1f} times as large as "
            f"the noise in it, and {ENOUGH:g} times would be needed for an interval.",
            thinnest,
        )

    def _assumed(self, needs: Needs) -> Badge:
        """Name what the table takes as independent given what."""
        y = needs.outcome
        pairs = list(itertools.combinations(needs.columns, 2))
        if y is not None:
            pairs.sort(key=lambda pair: y not in pair)
        apart = next((pair for pair in pairs if not self.counted(pair)), None)
        if apart is None:
            return Badge(
                "assumed",
                f"{_listed(needs.columns)} were counted in smaller groups, never all together; the table takes their "
                "joint pattern to be no richer than those.",
            )
        given = cheapest_cut(self.edges, *apart) or ()
        how = f"independent given {_listed(given)}" if given else "independent"
        return Badge(
            "assumed",
            f"{_listed(apart)} were not counted together; the table takes them as {how}.",
            apart=apart,
            given=given,
        )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
