"""Gate that decides which figures of a release have an interval. A figure must depend on counted marginals, because no
combining rule can repair a figure that the release never measured. The gate uses only the released cliques, noise
scales and model.
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
"""The rows with one given code in each of these columns."""

ENOUGH = 4.0
"""A figure is thin if a cell that it needs has fewer rows than this multiple of σ. On Adult at ε = 1, intervals of odds
ratios cover 21 % if the smallest cell is below 1 σ, 55 % at 1–2 σ, 87 % at 2–3 σ, 91 % at 3–5 σ and 95 % above."""

ABSENT, EXPECTED = 2.0, 5.0
"""A stratum lacks a group if it contains fewer of the group's rows than ``ABSENT`` σ although the group's overall share
predicts at least ``EXPECTED`` σ. Noise alone makes 5 σ appear as less than 2 σ in 0.1 % of strata."""
RARE = 0.05
"""Overlap is weak if a group has less than this share of a stratum, in strata with at least this share of the rows."""


@dataclass(frozen=True)
class Needs:
    """Counts that a figure depends on: its ``columns``, and the ``cells`` that it compares.

    - ``rests``: cells whose remainder the figure needs too. The remainder of a cell has another value of the cell's
      first column and the same values elsewhere. A share needs its remainder: if the remainder is noise, so is one
      minus the share. A fitted model has no cell below zero rows, so it overestimates such a remainder. Copies
      overestimate the remainder even more, so intervals miss the truth on one side.
    - ``outcome``: the column that a regression or standardised effect models given the others. Pairs with the outcome
      may then suffice.
    - ``together``: columns that must share a clique with the outcome and each other column, such as the treatment of a
      standardised effect.
    - ``missing``: columns whose missing cells are left out, with the code of such a cell. Missing cells belong to no
      remainder. The remainder of the missing cell itself consists of the rows in which the column is observed.
    - ``support``: groups that must all occur in each stratum of the other columns (positivity).
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
    """Overlap of the compared groups across strata.

    ``lacking`` is the share of rows in strata without rows of some group, and ``weak`` the share in strata where some
    group is rare. ``where`` lists the groups and strata without rows, the largest stratum first.
    """

    lacking: float = 0.0
    weak: float = 0.0
    where: tuple[tuple[Cell, Cell], ...] = ()


@dataclass(frozen=True)
class Badge:
    """Verdict on one figure.

    ``apart`` are two columns that were not counted together, and ``given`` the columns given which the table treats
    them as independent. Both are empty unless ``kind`` is "assumed". ``thinnest`` is the smallest needed cell, in σ.
    """

    kind: Kind
    sentence: str
    thinnest: float = math.inf
    apart: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def interval(self) -> bool:
        """True if an interval may be shown."""
        return self.kind in ("counted", "outcome pairs counted")

    @property
    def promised(self) -> bool:
        """True if the coverage of the interval is promised."""
        return self.kind == "counted"


class Gate:
    """Gate for the figures of one release."""

    def __init__(
        self,
        measurements: Iterable[Measurement],
        model: CopyableModel,
        merged: Merged | None = None,
        labels: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """``measurements`` are the counts to which ``model`` was fitted; only the shapes of their values are used.

        ``merged`` are the groups of categories that they count, ``labels`` the names of the categories.
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
        """Pairs of columns that were counted together."""
        return clique_edges(self._noise)

    def counted(self, columns: Iterable[str]) -> bool:
        """Return whether all these columns share a counted clique."""
        return any(set(columns) <= set(clique) for clique in self._noise)

    def sigma(self, columns: Sequence[str]) -> float:
        """Return the noise in a cell of the marginal over ``columns``, in rows, from all cliques that contain them.

        Summing out the other columns of a clique adds the noise of the summed cells.
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
        """Return the noise in a cell, or in the sum of the cells of its ``rest``, in rows."""
        names = [name for name, _ in cell]
        return self.sigma(names) * math.sqrt(max(len(self._others(cell, missing or {})) if rest else 1, 1))

    def judge(self, needs: Needs) -> Badge:
        """Return the badge for a figure with these needs. There are five kinds of badges."""
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
                    f"Given the model: {_listed(others)} were each counted with {with_outcome}, but not all together. "
                    "Their joint pattern comes from the model. The coverage of the interval is not promised.",
                    self._thinnest(needs),
                )
            )
        return self._assumed(needs)

    def smallest(self, needs: Needs) -> tuple[float, float]:
        """Return rows and noise of the cell or remainder with the smallest ratio of rows to noise; infinite if there
        are no cells.
        """
        cells = [(self._rows(cell), self.noise(cell)) for cell in needs.cells]
        missing = needs.missing
        rests = [(self._rest(cell, missing), self.noise(cell, True, missing)) for cell in needs.rests]
        return min(cells + rests, key=lambda found: found[0] / found[1], default=(math.inf, 1.0))

    def overlap(self, needs: Needs) -> Overlap:
        """Return how the groups of ``needs.support`` overlap in the strata of the other columns, according to the
        released model.

        Strata combine all other columns if these were counted together with the groups' column. Otherwise each column
        forms its own strata. Rows with a missing cell belong to no stratum.
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
                rows = np.delete(rows, needs.missing[name], axis=axis)  # a missing cell has the last code
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
        """Return a badge if positivity fails: some compared group has no rows in some stratum; else `None`."""
        found = self.overlap(needs)
        if not found.where:
            return None
        group, stratum = found.where[0]
        others = f", and the same is true of {len(found.where) - 1} more groups" if len(found.where) > 1 else ""
        return Badge(
            "no overlap",
            f"No answer: among rows with {self._named(stratum)}, almost none have {self._named(group)}{others}. "
            f"About {100 * found.lacking:.0f} % of the rows are in such strata, and the table does not show the "
            "outcome there. Coarsen these columns, leave them out, or ask only about the other rows.",
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
        """Return the codes of a cell's first column that form its remainder."""
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
                    f"This figure compares a category of {name} that was counted together with other rare "
                    "categories. The table divides their count evenly among them.",
                    0.0,
                )
        thinnest = self._thinnest(needs)
        if thinnest >= ENOUGH:
            return None
        return Badge(
            "thin",
            f"Too few rows: the smallest compared group is about {max(thinnest, 0):.1f} times as large as its noise. "
            f"An interval requires a ratio of at least {ENOUGH:g}.",
            thinnest,
        )

    def _assumed(self, needs: Needs) -> Badge:
        """Return a badge that names the independence assumed by the table."""
        y = needs.outcome
        pairs = list(itertools.combinations(needs.columns, 2))
        if y is not None:
            pairs.sort(key=lambda pair: y not in pair)
        apart = next((pair for pair in pairs if not self.counted(pair)), None)
        if apart is None:
            return Badge(
                "assumed",
                f"{_listed(needs.columns)} were counted in smaller groups, never all together. The table assumes that "
                "their joint pattern follows from these groups.",
            )
        given = cheapest_cut(self.edges, *apart) or ()
        how = f"independent given {_listed(given)}" if given else "independent"
        return Badge(
            "assumed",
            f"{_listed(apart)} were not counted together; the table treats them as {how}.",
            apart=apart,
            given=given,
        )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
