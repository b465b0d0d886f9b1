"""Size of a model, computed from the graph alone. No table is allocated and no data is read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod

from espalier.core.errors import SizeError
from espalier.core.graph.junction_tree import MAX_CELLS, JunctionTree, cells, junction_tree
from espalier.core.graph.separations import Clique

SECONDS_PER_NOISY_CELL = 14e-6
"""Seconds per draw of discrete Gaussian noise (measured: 9 to 14 µs, and more for smaller σ)."""

SWEEPS = 40
"""Assumed number of passes over the junction tree in a fit. Trees take 5 to 15, and models of 300,000 cells 30 to 65.
"""

SECONDS_PER_CELL = 100e-9
SECONDS_PER_NODE = 60e-6
"""Seconds of one pass per cell of the tree and per column. Measured: 40–120 ns and 15–70 µs (seven tables of 8 to 37
columns).
"""

SECONDS_PER_PAIR = 250e-6
"""Seconds to score one pair of columns against a fitted model (measured: 0.15 to 0.5 ms, most of which is spent on the
pair's marginal).
"""


@dataclass(frozen=True)
class Size:
    """Cost of a set of measured cliques.

    ``cells`` and ``largest_cells`` are the numbers of cells in the junction tree and in its ``largest`` clique;
    ``measured_cells`` is the number of cells that get noise. ``bytes`` is the peak memory of the fit, ``seconds`` the
    estimated time for noise and fit together, and ``noise`` the time for noise alone. ``culprit`` are the measured
    cliques that caused the largest clique: the clique itself if it was measured, otherwise the cliques that share two
    columns or more with it. ``treewidth`` is the number of columns in the widest clique of the junction tree, minus
    one; 0 for a model without a tree.
    """

    cells: int
    measured_cells: int
    bytes: int
    seconds: float
    largest: Clique
    largest_cells: int
    culprit: tuple[Clique, ...]
    noise: float = 0.0
    treewidth: int = 0

    def at_least(self, cells: int) -> Size:
        """Return this size with a junction tree of at least ``cells`` cells, for a plan with choices that are still
        open.
        """
        more = max(0, cells - self.cells)
        seconds = self.seconds + SWEEPS * more * SECONDS_PER_CELL
        return replace(self, cells=self.cells + more, bytes=self.bytes + 64 * more, seconds=seconds)

    def chosen(self, fits: int, sizes: Mapping[str, int]) -> Size:
        """Return this size for a plan in which private choices decide between large and small tables, with ``fits``
        intermediate models.

        ``cells`` and ``bytes`` remain the maximum. Choices rarely select the largest tables, so ``seconds`` is the time
        for a model whose size is halfway, on a logarithmic scale, between this maximum and the cells of the single
        columns. Intermediate models grow, so each is charged as half a model, and the pairs of columns are scored
        against each of them.
        """
        if not fits:
            return self
        cells = math.sqrt(self.cells * sum(sizes.values()))
        pairs = math.comb(sum(size > 1 for size in sizes.values()), 2)
        fit = _fit_seconds(cells, len(sizes))
        return replace(self, seconds=self.noise + (1 + fits / 2) * fit + fits * pairs * SECONDS_PER_PAIR)


def predict_size(sizes: Mapping[str, int], cliques: Iterable[Clique], *, noisy: bool = True) -> Size:
    """Return the cost of measuring ``cliques`` and fitting a model to them.

    ``noisy`` adds the time of drawing noise for every measured cell. The computation takes milliseconds for tables of
    any size.
    """
    measured = [tuple(clique) for clique in cliques]
    tree = junction_tree(sizes, measured)
    largest, largest_cells = _largest(tree)
    drawn = sum(prod(sizes[name] for name in clique) for clique in measured)
    held = cells(tree)
    fit = _fit_seconds(held, len(tree.nodes))
    noise = drawn * SECONDS_PER_NOISY_CELL if noisy else 0.0
    return Size(
        cells=held,
        measured_cells=drawn,
        bytes=8 * (8 * held + 4 * drawn),
        seconds=fit + noise,
        largest=largest,
        largest_cells=largest_cells,
        culprit=_culprit(largest, measured),
        noise=noise,
        treewidth=max((len(node.given) for node in tree.nodes), default=0),
    )


def _fit_seconds(cells: float, nodes: int) -> float:
    """Return the seconds for one fit of a junction tree with ``cells`` cells and ``nodes`` nodes."""
    return SWEEPS * (cells * SECONDS_PER_CELL + nodes * SECONDS_PER_NODE)


def check_size(sizes: Mapping[str, int], cliques: Iterable[Clique], *, max_cells: int = MAX_CELLS) -> Size:
    """Return `predict_size`, and refuse a plan whose largest clique has more than ``max_cells`` cells.

    Raises `SizeError` naming the clique, its columns with their sizes and the column to coarsen, with
    ``clique``, ``cells``, ``limit``, ``culprit`` and ``coarsen`` as attributes.
    """
    size = predict_size(sizes, cliques)
    if size.largest_cells > max_cells:
        raise too_large(sizes, size.largest, max_cells, "Fitting these marginals", culprit=size.culprit)
    return size


def too_large(
    sizes: Mapping[str, int], clique: Clique, limit: int, what: str, *, culprit: tuple[Clique, ...] = ()
) -> SizeError:
    """Return the error for a table over ``clique``; ``what`` is the sentence's subject ("Fitting …")."""
    held = prod(sizes[name] for name in clique)
    named = ", ".join(f"{name} ({sizes[name]})" for name in clique)
    widest = max(clique, key=lambda name: sizes[name])
    others = held // sizes[widest]
    allowed = limit // others
    if allowed >= 2:
        advice = f"Coarsen {widest} from {sizes[widest]} to at most {allowed} categories, or measure fewer pairs."
    else:
        advice = f"Coarsen {widest} ({sizes[widest]} categories) and others, or measure fewer marginals together."
    text = f"{what} needs one table of {held:,} cells over {named}; the limit is {limit:,}. {advice}"
    if culprit and culprit != (clique,):
        shown = "; ".join(" × ".join(one) for one in culprit[:5]) + ("; …" if len(culprit) > 5 else "")
        text += f" This table results from measuring {shown} together."
    return SizeError(text, clique=clique, cells=held, limit=limit, culprit=culprit, coarsen=widest)


def _largest(tree: JunctionTree) -> tuple[Clique, int]:
    if not tree.nodes:
        return (), 1
    node = max(tree.nodes, key=lambda node: prod(node.shape))
    return tree.names((*node.given, node.own)), prod(node.shape)


def _culprit(largest: Clique, measured: Iterable[Clique]) -> tuple[Clique, ...]:
    held = set(largest)
    unique = list(dict.fromkeys(measured))
    whole = [clique for clique in unique if held <= set(clique)]
    if whole:
        return tuple(whole)
    return tuple(clique for clique in unique if len(held & set(clique)) >= 2)
