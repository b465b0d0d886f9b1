"""Fitted model: a distribution over all columns that answers queries."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, prod
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import DAMAGED, EspalierError
from espalier.core.graph.junction_tree import (
    IMPOSSIBLE,
    MAX_CELLS,
    FloatArray,
    JunctionTree,
    collect,
    distribute,
    junction_tree,
    sum_product,
)
from espalier.core.graph.separations import Clique, Separation, clique_edges
from espalier.core.models.base import Answer
from espalier.core.models.graphical.batches import BATCH_ROWS, draw_batches
from espalier.core.models.graphical.queries import joint
from espalier.core.models.graphical.sampling import Codes, draw_rows
from espalier.core.models.graphical.smoothness import Smooth
from espalier.core.progress import Report

FORMAT = "espalier-model/1"


@dataclass(frozen=True)
class FitSummary:
    """Outcome of a fit. ``objective`` is Σ ‖μ − y‖²/(2σ²), ``gap`` is a certified bound on the distance to the best
    objective, and ``converged`` states whether ``criterion`` (a sentence) was met within ``iterations``.
    """

    iterations: int
    objective: float
    gap: float
    converged: bool
    criterion: str


@dataclass(frozen=True)
class FirstFit:
    """First fit, which determines how far the second fit shrinks each association. It is stored for checkers.

    ``potentials`` belong to its model; ``wider`` is the factor by which each clique's σ is multiplied in the second
    fit, and ``smooth`` the smoothing of each pair with an ordered column.
    """

    potentials: Mapping[Clique, FloatArray]
    wider: Mapping[Clique, float]
    smooth: Mapping[Clique, Smooth] = field(default_factory=dict)


@dataclass(frozen=True)
class _Calibrated:
    """Junction tree with p(v | given) and the marginal probabilities of every node."""

    tree: JunctionTree
    log_partition: float
    conditionals: list[FloatArray]
    marginals: list[FloatArray]


@dataclass(frozen=True)
class GraphicalModel:
    """A distribution p(x) ∝ exp Σ_c potential_c(x_c) over all columns of ``sizes``, scaled to ``total`` rows.

    ``cliques`` are the measured cliques and the cliques of impossible cells, without the fill-in of the junction tree:
    if a third set of columns separates two sets in the graph of these cliques, the two are exactly independent given
    the third. ``potentials`` are natural logarithms, one array per maximal clique, axes in the clique's order, −∞ where
    impossible. Columns in no clique are uniform. Compare models by their marginals, because potentials are not unique.
    ``first`` is the fit before this one, if there was one.
    """

    sizes: Mapping[str, int]
    cliques: tuple[Clique, ...]
    potentials: Mapping[Clique, FloatArray]
    total: float
    fit: FitSummary
    first: FirstFit | None = None

    @cached_property
    def _calibrated(self) -> _Calibrated:
        tree, tables, constant = self._log_tables()
        log_partition, kept = collect(tree, tables, sum_product)
        log_partition += constant
        if log_partition < IMPOSSIBLE / 2:
            raise EspalierError(
                "The impossible combinations leave no possible row, because they contradict each other."
            )
        conditionals = [np.asarray(table, dtype=np.float64) for table in kept]
        return _Calibrated(tree, log_partition, conditionals, distribute(tree, conditionals))

    def _log_tables(self) -> tuple[JunctionTree, list[FloatArray], float]:
        """Junction tree, its log potentials, and the log potentials of cliques with one cell."""
        tree = junction_tree(self.sizes, self.potentials)
        tables, constant = tree.tables(), 0.0
        for clique, potential in self.potentials.items():
            place = tree.place(clique)
            values = np.maximum(place.inward(potential), IMPOSSIBLE)
            if place.columns:
                tables[place.node] += values.reshape(place.lift)
            else:
                constant += float(values)
        return tree, tables, constant

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the model draws, in schema order."""
        return tuple(self.sizes)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs inside measured cliques, without fill-in. The model is Markov with respect to this graph."""
        return clique_edges(self.cliques)

    def answers(self, separation: Separation) -> Answer:
        """Return ``exact`` if the graph of the model's cliques respects ``separation``."""
        return "exact" if separation.holds(self.edges) else "not promised"

    def facts(self) -> dict[str, Any]:
        """Return the outcome of the fit for release.json."""
        fit = self.fit
        return {
            "iterations": fit.iterations,
            "gap": fit.gap,
            "converged": fit.converged,
            "criterion": fit.criterion,
        }

    @property
    def log_partition(self) -> float:
        """Logarithm of Σ_x exp Σ_c potential_c(x_c)."""
        return self._calibrated.log_partition

    def marginal(self, clique: Sequence[str], *, max_cells: int = MAX_CELLS) -> FloatArray:
        """Return the expected counts of ``clique``, with one axis per column in the given order, summing to ``total``.

        The columns need not be in one clique. Raises `SizeError` if the answer, or an intermediate table, would have
        more than ``max_cells`` cells.
        """
        return self._probability(clique, max_cells) * self.total

    def _probability(self, columns: Sequence[str], limit: int) -> FloatArray:
        self._known(columns)
        fitted = self._calibrated
        tree = fitted.tree
        try:
            place = tree.place(columns)
        except LookupError:
            spots = [tree.position[name] for name in columns if self.sizes[name] > 1]
            table = joint(tree, fitted.conditionals, sorted(spots), limit)
            table = table.transpose(np.argsort(np.argsort(spots)))
        else:
            if not place.columns:
                return np.ones(place.outer)
            table = place.outward(np.add.reduce(fitted.marginals[place.node], axis=place.drop))
        return table.reshape([self.sizes[name] for name in columns])

    def _known(self, columns: Sequence[str]) -> None:
        for name in columns:
            if name not in self.sizes:
                raise KeyError(f"the model has no column {name!r}")
        if len(set(columns)) != len(columns):
            raise ValueError(f"a column is named twice: {', '.join(columns)}")

    def conditional(self, columns: Sequence[str], given: Sequence[str], *, max_cells: int = MAX_CELLS) -> FloatArray:
        """Return p(columns | given), with the axes of ``columns`` first and then those of ``given``.

        It sums to one over ``columns``. If a combination of ``given`` is impossible, all its probabilities are zero.
        """
        both = self._probability((*columns, *given), max_cells)
        below = np.add.reduce(both, axis=tuple(range(len(columns))), keepdims=True)
        return np.divide(both, below, out=np.zeros_like(both), where=below > 0)

    def cmi(
        self, left: Sequence[str], right: Sequence[str], given: Sequence[str], *, max_cells: int = MAX_CELLS
    ) -> float:
        """Return the exact conditional mutual information I(left; right | given) of the model in nats.

        Columns in ``given`` are removed from ``left`` and ``right``. Raises `SizeError` if the joint table would hold
        more than ``max_cells`` cells.
        """
        known = set(given)
        first = [name for name in left if name not in known]
        second = [name for name in right if name not in known]
        if set(first) & set(second):
            raise ValueError("left and right share a column")
        table = self._probability((*first, *second, *given), max_cells).reshape(
            prod(self.sizes[name] for name in first), prod(self.sizes[name] for name in second), -1
        )
        without_right = table.sum(axis=1, keepdims=True)
        without_left = table.sum(axis=0, keepdims=True)
        background = without_right.sum(axis=0, keepdims=True)
        possible = table > 0
        ratio = np.ones_like(table)
        np.divide(table, without_right, out=ratio, where=possible)
        np.divide(ratio, np.broadcast_to(without_left, table.shape), out=ratio, where=possible)
        np.multiply(ratio, background, out=ratio, where=possible)
        return max(0.0, float(np.sum(table * np.log(ratio, out=np.zeros_like(table), where=possible))))

    def sample(
        self, rows: int, rng: np.random.Generator, *, even: bool = False, report: Report | None = None
    ) -> dict[str, Codes]:
        """Return ``rows`` rows as one array of codes per column, in schema order, in the smallest unsigned type. This
        is exact ancestral sampling. With ``even``, the rows are spread over the cells as evenly as whole numbers allow
        (`espalier.core.models.graphical.sampling`): every cell keeps its expected count, measured marginals are closer
        than with independent rows, and conditional independence is preserved.
        """
        if rows < 0:
            raise ValueError(f"rows ({rows}) must not be negative")
        fitted = self._calibrated
        return draw_rows(fitted.tree, fitted.conditionals, rows, rng, even=even, report=report)

    def sample_batches(self, rows: int, rng: np.random.Generator, *, even: bool = False) -> Iterator[dict[str, Codes]]:
        """Yield the rows of `sample` in batches of at most `BATCH_ROWS`; memory holds one batch.

        With ``even`` the quotas apply to the whole output (`espalier.core.models.graphical.batches`).
        """
        fitted = self._calibrated
        if even:
            yield from draw_batches(fitted.tree, fitted.conditionals, rows, rng)
            return
        for start in range(0, rows, BATCH_ROWS):
            yield draw_rows(fitted.tree, fitted.conditionals, min(BATCH_ROWS, rows - start), rng)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to one ``.npz`` file of plain arrays and text (no pickle)."""
        Path(path).write_bytes(self.dumps())

    def dumps(self) -> bytes:
        """Return the file that `save` writes. Its ``order`` is the order in which `sample` draws the columns."""
        head: dict[str, Any] = {
            "format": FORMAT,
            "sizes": list(self.sizes.items()),
            "cliques": self.cliques,
            "potentials": list(self.potentials),
            "total": self.total,
            "fit": vars(self.fit),
            "order": self._calibrated.tree.columns,
        }
        arrays = {f"potential_{i}": table for i, table in enumerate(self.potentials.values())}
        if self.first is not None:
            head["first"] = list(self.first.potentials)
            head["wider"] = list(self.first.wider.items())
            if self.first.smooth:
                head["smooth"] = [[q, how.lengths, how.strength] for q, how in self.first.smooth.items()]
            arrays |= {f"first_{i}": table for i, table in enumerate(self.first.potentials.values())}
        text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
        out = io.BytesIO()
        np.savez_compressed(out, allow_pickle=False, head=text, **arrays)
        return out.getvalue()

    @classmethod
    def load(cls, path: str | PathLike[str]) -> GraphicalModel:
        """Read a file that `save` wrote. Raises `EspalierError` if the file is something else."""
        try:
            return cls.loads(Path(path).read_bytes())
        except EspalierError as error:
            raise EspalierError(f"{path} is not a model saved by Espalier.", path=str(path)) from error

    @staticmethod
    def loads(data: bytes) -> GraphicalModel:
        """Read a file that `dumps` wrote. Raises `EspalierError` for anything else."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                head = json.loads(file["head"].tobytes())
                if head["format"] != FORMAT:
                    raise ValueError(head["format"])
                cliques = [tuple(clique) for clique in head["potentials"]]
                potentials = {clique: np.array(file[f"potential_{i}"]) for i, clique in enumerate(cliques)}
                sizes = {str(name): int(size) for name, size in head["sizes"]}
                _check_potentials(sizes, potentials, float(head["total"]))
                if not {name for clique in head["cliques"] for name in clique} <= set(sizes):
                    raise ValueError("a clique has a column that the model does not have")
                first = None
                if "first" in head:
                    found = {tuple(clique): np.array(file[f"first_{i}"]) for i, clique in enumerate(head["first"])}
                    smooth = {tuple(q): Smooth((int(a), int(b)), float(by)) for q, (a, b), by in head.get("smooth", [])}
                    wider = {tuple(clique): float(by) for clique, by in head["wider"]}
                    first = FirstFit(found, wider, smooth)
                return GraphicalModel(
                    sizes=sizes,
                    cliques=tuple(tuple(clique) for clique in head["cliques"]),
                    potentials=potentials,
                    total=float(head["total"]),
                    fit=FitSummary(**head["fit"]),
                    first=first,
                )
        except DAMAGED as error:
            raise EspalierError("This is not a model saved by Espalier.") from error


def _check_potentials(sizes: Mapping[str, int], potentials: Mapping[Clique, NDArray[Any]], total: float) -> None:
    """Raise ValueError for a model that no fit produces: shapes that differ from the sizes, or potentials that are
    NaN.
    """
    if min(sizes.values(), default=1) < 1 or not (isfinite(total) and total >= 0):
        raise ValueError("each column needs at least one category, and the number of rows must not be negative")
    for clique, table in potentials.items():
        if table.shape != tuple(sizes[name] for name in clique) or table.dtype.kind != "f":
            raise ValueError("the shape of a potential does not match its columns")
        if np.isnan(table).any() or np.isposinf(table).any():
            raise ValueError("a potential is not a number")
