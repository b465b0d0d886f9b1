"""Weights on row statistics, and junction-tree sweeps that compute the best row, log Z and expectations.

Weights w_j on the statistics q_j define a score Σ_j w_j q_j(x) for each row x. One max-plus sweep finds the best row
(the paper's separation oracle). One sum-product sweep finds log Σ_x exp of the score, and the expectations of all
statistics under p ∝ exp of the score (the paper's Theorem 19 for two semirings).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import EspalierError
from espalier.core.graph.junction_tree import (
    IMPOSSIBLE,
    FloatArray,
    Place,
    Zeros,
    cells,
    collect,
    decode,
    derivative,
    distribute,
    junction_tree,
    max_only,
    max_plus,
    sum_product,
)
from espalier.core.graph.separations import Clique
from espalier.core.models.graphical.model import FitSummary, GraphicalModel
from espalier.core.models.graphical.sampling import Codes, draw_rows
from espalier.core.privacy.question_recipes.lowering import Block


@dataclass(frozen=True)
class Part:
    """A block within the tree. ``matrix`` has one column per cell, in tree order; None for a marginal, whose ``cells``
    are in tree order."""

    clique: Clique
    place: Place
    span: slice
    matrix: FloatArray | None
    cells: NDArray[np.intp]


@dataclass(frozen=True)
class _Item:
    """Statistics ``index`` as tables over a node, broadcast over the axes ``drop``. ``own`` is true for statistics of a
    block at this node, false for expectations passed up from below.
    """

    index: NDArray[np.intp]
    values: FloatArray
    drop: tuple[int, ...]
    own: bool


@dataclass(frozen=True)
class Calibrated:
    """log Z, the expectation of every statistic, and p(v | given) and marginals of the tree's nodes."""

    log_partition: float
    mean: FloatArray
    conditionals: list[FloatArray]
    nodes: list[FloatArray]


class Network:
    """Statistics of ``blocks``, concatenated, over all rows that ``zeros`` allow.

    ``sizes`` are all columns, including hidden ones. ``length`` is the number of statistics. Raises ``LookupError`` or
    ``ValueError`` for cliques that do not fit the columns. Check sizes first, because this class has no size limit.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        blocks: Sequence[Block],
        zeros: Iterable[Zeros] = (),
        cliques: Iterable[Clique] = (),
    ) -> None:
        self.sizes = dict(sizes)
        self.blocks = tuple(blocks)
        self.zeros = tuple(zeros)
        wanted = [*(rule.clique for rule in self.zeros), *(block.clique for block in blocks), *cliques]
        self.tree = junction_tree(sizes, dict.fromkeys(wanted))
        self.cells = cells(self.tree)
        self.parts: list[Part] = []
        start = 0
        for block in blocks:
            span = slice(start, start + block.length(sizes))
            self.parts.append(self._part(block, span))
            start = span.stop
        self.length = start
        self._base: list[FloatArray | None] = [None] * len(self.tree.nodes)
        for rule in self.zeros:
            place = self.tree.place(rule.clique)
            if not place.columns:
                if rule.mask.all():
                    raise EspalierError("The impossible combinations leave no possible row.")
                continue
            node = self.tree.nodes[place.node]
            table = self._base[place.node]
            table = np.zeros(node.shape) if table is None else table
            table += np.where(place.inward(rule.mask) > 0, IMPOSSIBLE, 0.0).reshape(place.lift)
            self._base[place.node] = np.maximum(table, IMPOSSIBLE)

    def _part(self, block: Block, span: slice) -> Part:
        place = self.tree.place(block.clique)
        outer = [self.sizes[name] for name in block.clique]
        index = place.inward(np.arange(prod(outer)).reshape(outer)).ravel().astype(np.intp)
        if block.matrix is None:
            return Part(block.clique, place, span, None, index)
        matrix = np.ascontiguousarray(block.matrix.reshape(len(block.matrix), -1)[:, index], dtype=np.float64)
        return Part(block.clique, place, span, matrix, index)

    def spans(self) -> list[slice]:
        """Return the positions of each block's statistics."""
        return [part.span for part in self.parts]

    def _tables(self, weights: FloatArray) -> tuple[list[FloatArray], float]:
        """Return the score as one table per node, and the constant shared by all rows."""
        tables = [
            np.zeros(node.shape) if base is None else base.copy()
            for node, base in zip(self.tree.nodes, self._base, strict=True)
        ]
        constant = 0.0
        for part in self.parts:
            own = weights[part.span]
            score = own[part.cells] if part.matrix is None else own @ part.matrix
            if part.place.columns:
                tables[part.place.node] += score.reshape(part.place.lift)
            else:
                constant += float(score[0])
        return tables, constant

    def evaluate(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return log Σ_x exp Σ_j w_j q_j(x) over all possible rows, and the expectation of every statistic."""
        at = self.calibrate(weights)
        return at.log_partition, at.mean

    def _calibrate(self, weights: FloatArray) -> tuple[list[FloatArray], float]:
        tables, constant = self._tables(weights)
        log_partition, kept = collect(self.tree, tables, sum_product)
        if log_partition < IMPOSSIBLE / 2:
            raise EspalierError(
                "The impossible combinations leave no possible row, because they contradict each other."
            )
        return [np.asarray(table, dtype=np.float64) for table in kept], log_partition + constant

    def calibrate(self, weights: FloatArray) -> Calibrated:
        """Return `evaluate`, plus the tables that `covariance` and `product` need."""
        conditionals, log_partition = self._calibrate(weights)
        nodes = distribute(self.tree, conditionals)
        return Calibrated(log_partition, self._expectations(nodes), conditionals, nodes)

    def product(self, at: Calibrated, direction: FloatArray) -> FloatArray:
        """Return the covariance of all statistics times ``direction``, by another pass up and down."""
        tables = [np.zeros(node.shape) for node in self.tree.nodes]
        for part in self.parts:
            own = direction[part.span]
            if part.place.columns:
                score = own[part.cells] if part.matrix is None else own @ part.matrix
                tables[part.place.node] += score.reshape(part.place.lift)
        return self._expectations(derivative(self.tree, at.conditionals, at.nodes, tables), constant=0.0)

    def covariance(self, at: Calibrated) -> FloatArray:
        """Return the covariance matrix of all statistics. Any two statistics first meet at one node of the tree. Below
        this node, each statistic is replaced by its expectation given the separator; at the node, E[q q'] is a sum over
        the node's cells. Every pair therefore costs one product.
        """
        outer = np.outer(at.mean, at.mean)
        both = outer.copy()
        items: list[list[_Item]] = [[] for _ in self.tree.nodes]
        for part in self.parts:
            if part.place.columns:
                span = np.arange(part.span.start, part.span.stop)
                matrix = np.eye(len(span))[part.cells].T if part.matrix is None else part.matrix
                items[part.place.node].append(_Item(span, matrix.reshape(-1, *part.place.lift), part.place.drop, True))
        for node in reversed(self.tree.nodes):
            here = items[node.own]
            marginal, conditional = at.nodes[node.own], at.conditionals[node.own]
            for i, one in enumerate(here):
                weighted = one.values * marginal
                for other in here[i if one.own else i + 1 :]:
                    rows = np.add.reduce(weighted, axis=tuple(a + 1 for a in other.drop)) if other.drop else weighted
                    meet = rows.reshape(len(rows), -1) @ other.values.reshape(len(other.values), -1).T
                    both[np.ix_(one.index, other.index)] = meet
                    both[np.ix_(other.index, one.index)] = meet.T
            if node.parent >= 0 and here:
                up = np.concatenate([np.add.reduce(one.values * conditional, axis=-1) for one in here])
                index = np.concatenate([one.index for one in here])
                items[node.parent].append(_Item(index, up.reshape(-1, *node.lift), node.drop, False))
            items[node.own] = []
        both -= outer
        return both

    def _expectations(self, nodes: Sequence[FloatArray], constant: float = 1.0) -> FloatArray:
        found = np.empty(self.length)
        for part in self.parts:
            if not part.place.columns:
                found[part.span] = constant if part.matrix is None else constant * part.matrix[:, 0]
                continue
            node = nodes[part.place.node]
            marginal = (np.add.reduce(node, axis=part.place.drop) if part.place.drop else node).ravel()
            if part.matrix is None:
                found[part.span][part.cells] = marginal
            else:
                found[part.span] = part.matrix @ marginal
        return found

    def highest(self, weights: FloatArray) -> float:
        """Return max_x Σ_j w_j q_j(x), exact up to rounding."""
        tables, constant = self._tables(weights)
        return collect(self.tree, tables, max_only)[0] + constant

    def best(self, weights: FloatArray) -> tuple[float, dict[str, int]]:
        """Return the largest score and a row that attains it: the code of every column, including hidden columns."""
        tables, constant = self._tables(weights)
        value, kept = collect(self.tree, tables, max_plus)
        row = decode(self.tree, [np.asarray(choice, dtype=np.intp) for choice in kept])
        codes = {n: row[self.tree.position[n]] if n in self.tree.position else 0 for n in self.sizes}
        return value + constant, codes

    def draw(self, weights: FloatArray, rows: int, rng: np.random.Generator) -> dict[str, Codes]:
        """Draw ``rows`` independent rows of p ∝ exp Σ_j w_j q_j, including hidden columns (the paper's Gibbs
        sampler).
        """
        return draw_rows(self.tree, self._calibrate(weights)[0], rows, rng)

    def statistics(self, codes: Mapping[str, NDArray[np.integer]]) -> FloatArray:
        """Return the statistics of every row, one column per row; ``codes`` include the hidden columns."""
        rows = len(next(iter(codes.values())))
        found = np.zeros((self.length, rows))
        for block, part in zip(self.blocks, self.parts, strict=True):
            cell = np.zeros(rows, dtype=np.intp)
            for name in block.clique:
                cell = cell * self.sizes[name] + codes[name]
            if block.matrix is None:
                found[part.span][cell, np.arange(rows)] = 1.0
            else:
                found[part.span] = block.matrix.reshape(len(block.matrix), -1)[:, cell]
        return found

    def model(self, weights: FloatArray, total: float, fit: FitSummary) -> GraphicalModel:
        """Return p ∝ exp Σ_j w_j q_j as a model of ``total`` rows over all columns, including hidden columns."""
        potentials: dict[Clique, FloatArray] = {}
        for block, part in zip(self.blocks, self.parts, strict=True):
            own = weights[part.span]
            shape = [self.sizes[name] for name in block.clique]
            score = own if block.matrix is None else own @ block.matrix.reshape(len(block.matrix), -1)
            potentials[block.clique] = potentials.get(block.clique, 0.0) + score.reshape(shape)
        for rule in self.zeros:
            table = potentials.get(rule.clique, np.zeros(rule.mask.shape))
            potentials[rule.clique] = np.where(rule.mask, -np.inf, table)
        return GraphicalModel(dict(self.sizes), tuple(potentials), potentials, total, fit)
