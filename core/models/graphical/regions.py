"""Information in a set of noisy marginals, without redundancy. Overlapping marginals repeat information: every pair
with column A, for example, contains a noisy copy of A's counts. Splitting each marginal into orthogonal components
removes this redundancy. Take the measured cliques and all their intersections (the *regions*). The component of a
marginal for region ``a`` is what remains on ``a`` after subtracting the components of all smaller regions (an analysis
of variance; the same split underlies the residual mechanism of Xiao, He, Zhang & Kifer 2023, "An Optimal and Scalable
Matrix Mechanism for Noisy Marginals under Convex Loss Functions"). Marginals agree if and only if they share
components, and the squared loss splits into one term per component:

    Σ_c ‖μ_c − y_c‖²/(2σ_c²) = const + Σ_a w_a ‖u_a − û_a‖²/2,   w_a = Σ_{c ⊇ a} 1/(σ_c² cells(c∖a))

where û_a is the mean over the measurements that contain ``a``, weighted by their share of w_a. Thus û is the best
linear unbiased estimate from all measurements, in closed form and for any overlaps.

All values are stored in flat vectors: one slice per region, axes in tree order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import prod

import numpy as np

from espalier.core.graph.junction_tree import FloatArray, JunctionTree, Place
from espalier.core.graph.separations import Clique
from espalier.core.privacy.draws import Measurement


class Regions:
    """Regions of a set of cliques within a junction tree, and the flat vectors over them.

    ``places[i]`` is the node of region ``i``, ``spans[i]`` its slice of a flat vector of ``size`` numbers. Smaller
    regions come before regions that contain them. ``maximal`` are the regions that no other region contains.
    """

    def __init__(self, tree: JunctionTree, cliques: Iterable[Clique]) -> None:
        self.tree = tree
        names = {place.columns: place for place in map(tree.place, cliques) if place.columns}
        closed = _close(set(names))
        self.index = {columns: i for i, columns in enumerate(closed)}
        self.places: list[Place] = [tree.place(tree.names(columns)) for columns in closed]
        self.spans: list[slice] = []
        start = 0
        for place in self.places:
            self.spans.append(slice(start, start + prod(place.shape)))
            start = self.spans[-1].stop
        self.size = start
        self.below = _below(closed)
        self.maximal = _maximal(self.below)
        self._mobius = [_mobius(i, self.below) for i in range(len(closed))]
        self._axes = {
            (i, j): tuple(k for k, c in enumerate(closed[i]) if c not in set(closed[j]))
            for i, inner in enumerate(self.below)
            for j in inner
        }
        self._lift = {
            (i, j): tuple(1 if k in axes else n for k, n in enumerate(self.places[i].shape))
            for (i, j), axes in self._axes.items()
        }
        self._holding: dict[int, list[int]] = {}
        for i, columns in enumerate(closed):
            for c in columns:
                self._holding.setdefault(c, []).append(i)
        self._per_node: list[list[int]] = [[] for _ in tree.nodes]
        for i, place in enumerate(self.places):
            self._per_node[place.node].append(i)

    def views(self, flat: FloatArray) -> list[FloatArray]:
        """Return the parts of a flat vector as arrays, one per region, which share its memory."""
        return [flat[span].reshape(place.shape) for span, place in zip(self.spans, self.places, strict=True)]

    def home(self, columns: tuple[int, ...], among: Collection[int] | None = None) -> int:
        """Return the smallest region (of those ``among``) that contains all of ``columns``; −1 if none does."""
        if among is None and columns in self.index:
            return self.index[columns]
        if not columns:
            return -1
        wanted = set(columns)
        candidates = self._holding.get(columns[-1], [])
        allowed = (i for i in candidates if among is None or i in among)
        return next((i for i in allowed if wanted.issubset(self.places[i].columns)), -1)

    def dropped(self, region: int, inner: int) -> tuple[int, ...]:
        """Return the axes of a region that are not in a smaller region inside it."""
        return self._axes[region, inner]

    def lifted(self, region: int, inner: int) -> tuple[int, ...]:
        """Return the shape in which a table over a smaller region is added to a table over a region around it."""
        return self._lift[region, inner]

    def lift(self, columns: tuple[int, ...], region: int) -> tuple[int, ...]:
        """Return the shape in which a table over ``columns`` is added to a table over the region."""
        place, inside = self.places[region], set(columns)
        return tuple(n if c in inside else 1 for c, n in zip(place.columns, place.shape, strict=True))

    def tables(self, potentials: FloatArray, base: Sequence[FloatArray | None] | None = None) -> list[FloatArray]:
        """Return the sum of the regions' log potentials and those in ``base``, as one new table per node."""
        parts = self.views(potentials)
        tables: list[FloatArray] = []
        for node, inside in zip(self.tree.nodes, self._per_node, strict=True):
            given = None if base is None else base[node.own]
            table: FloatArray | None = None if given is None else given.copy()
            for i in inside:
                if self.places[i].drop:
                    table = np.zeros(node.shape) if table is None else table
                    table += parts[i].reshape(self.places[i].lift)
                elif table is None:
                    table = parts[i].copy()
                else:
                    table += parts[i]
            tables.append(np.zeros(node.shape) if table is None else table)
        return tables

    def marginals(self, nodes: Sequence[FloatArray]) -> FloatArray:
        """Return the regions' marginals, computed from the marginals of the tree's nodes."""
        flat = np.empty(self.size)
        for place, span in zip(self.places, self.spans, strict=True):
            held = nodes[place.node]
            flat[span] = (np.add.reduce(held, axis=place.drop) if place.drop else held).ravel()
        return flat

    def pool(self, measurements: Iterable[Measurement], total: float) -> tuple[FloatArray, FloatArray]:
        """Pool all measurements: return the weights w and the best linear unbiased estimate of every marginal.

        There is one weight per region (per cell² of noise variance). The flat vector of consistent marginals û sums to
        ``total`` and may contain negative cells.
        """
        weight = np.zeros(len(self.places))
        sums = [np.zeros(place.shape) for place in self.places]
        for measurement in measurements:
            place = self.tree.place(measurement.clique)
            if not place.columns:
                continue
            home = self.index[place.columns]
            parts = self._components(home, place.inward(measurement.values))
            for i in (*self.below[home], home):
                share = prod(self.places[i].shape) / (prod(place.shape) * measurement.sigma**2)
                weight[i] += share
                sums[i] += share * parts[i]
        pooled = np.zeros(self.size)
        for view, part, w in zip(self.views(pooled), sums, weight, strict=True):
            np.divide(part, w, out=view)
        return weight, self._assemble(self.views(pooled), total)

    def _components(self, home: int, marginal: FloatArray) -> dict[int, FloatArray]:
        """Return the components of one marginal, by region. Each sums to zero over every smaller region."""
        parts: dict[int, FloatArray] = {}
        for i in (*self.below[home], home):
            own = marginal if i == home else np.add.reduce(marginal, axis=self._axes[home, i])
            part = own - float(np.add.reduce(own, axis=None)) / own.size
            for j in self.below[i]:
                part -= parts[j].reshape(self._lift[i, j]) * (parts[j].size / own.size)
            parts[i] = part
        return parts

    def _assemble(self, components: Sequence[FloatArray], total: float) -> FloatArray:
        """Return marginals from their components: the inverse of the split."""
        flat = np.empty(self.size)
        for i, view in enumerate(self.views(flat)):
            np.add(components[i], total / view.size, out=view)
            for j in self.below[i]:
                view += components[j].reshape(self._lift[i, j]) * (components[j].size / view.size)
        return flat

    def smooth(self, potentials: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the gradient of Σ_a ‖τ_a‖²/(2 w_a), where τ are the components of the potentials, as a flat vector of
        marginals.

        The function is the conjugate of the pooled squared loss (without the linear part ⟨τ, û⟩).
        """
        parts = self.views(potentials)
        gathered: list[FloatArray | None] = [None] * len(parts)
        means: dict[tuple[int, int], FloatArray] = {}
        for i, part in enumerate(parts):
            for j in self.below[i]:
                means[i, j] = np.add.reduce(part, axis=self._axes[i, j]) * (parts[j].size / part.size)
        for (_, j), mean in means.items():
            before = gathered[j]
            gathered[j] = parts[j] + mean if before is None else before + mean
        components: list[FloatArray] = []
        for i, part in enumerate(parts):
            whole = gathered[i]
            own = part if whole is None else whole
            constant, mobius = self._mobius[i]
            component = own + constant * (float(np.add.reduce(own, axis=None)) / own.size)
            for j, sign in mobius:
                mean = (
                    means[i, j]
                    if whole is None
                    else np.add.reduce(own, axis=self._axes[i, j]) * (parts[j].size / own.size)
                )
                component += (mean if sign == 1 else sign * mean).reshape(self._lift[i, j])
            components.append(np.divide(component, weight[i], out=component))
        return self._assemble(components, 0.0)


def _close(cliques: set[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the cliques and all their nonempty intersections, smaller sets first."""
    closed: set[tuple[int, ...]] = set()
    holding: dict[int, set[tuple[int, ...]]] = {}
    waiting = sorted(cliques)
    while waiting:
        new = waiting.pop()
        if new in closed:
            continue
        members = set(new)
        for other in set().union(*(holding.get(c, set()) for c in new)):
            shared = tuple(c for c in other if c in members)
            if shared not in closed:
                waiting.append(shared)
        closed.add(new)
        for c in new:
            holding.setdefault(c, set()).add(new)
    return sorted(closed, key=lambda columns: (len(columns), columns))


def _below(closed: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Return the regions inside each region, smaller regions first."""
    holding: dict[int, list[int]] = {}
    below: list[list[int]] = []
    for i, columns in enumerate(closed):
        members = set(columns)
        near = sorted(set().union(*(holding.get(c, []) for c in columns)))
        below.append([j for j in near if len(closed[j]) < len(columns) and members.issuperset(closed[j])])
        for c in columns:
            holding.setdefault(c, []).append(i)
    return below


def _maximal(below: Sequence[Sequence[int]]) -> list[int]:
    held = {j for inner in below for j in inner}
    return [i for i in range(len(below)) if i not in held]


def _mobius(top: int, below: Sequence[Sequence[int]]) -> tuple[float, list[tuple[int, float]]]:
    """Return the Möbius function of the regions under ``top``, for the empty region and for all regions with a nonzero
    value.

    The component of ``top`` in a table is Σ_b m(b, top) mean_b(table).
    """
    inner = below[top]
    value: dict[int, float] = {}
    for j in reversed(inner):
        value[j] = -1.0 - sum(value[k] for k in inner if k in value and j in below[k])
    constant = -1.0 - sum(value.values())
    return constant, [(j, value[j]) for j in inner if value[j] != 0.0]
