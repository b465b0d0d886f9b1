"""Count many marginals at once in one process: most are counted in blocks of columns, and pairs of small columns on bit
planes.

A **block** is a set of columns whose joint table has at most `BLOCK_CELLS` cells. One pass over the rows counts it, and
every marginal inside it follows exactly by summation. A cover is a small, greedily chosen set of blocks that contains
all requested marginals. For example, eight blocks contain Adult's 66 pairs. Pairs of small columns that are in no such
block are counted on **bit planes**, which have one bit per row and category. The count of a cell is the number of bits
that are set in both of its planes. The counts of the last category follow from the margins.

Both methods give the same whole numbers as a separate count of each marginal. Exact counts are private:
:mod:`espalier.core.tables.table` states which code may request them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.graph.separations import Clique

BLOCK_CELLS = 1 << 16
"""Maximum number of cells of a block, so that its codes fit into 16 bits and its counts into the processor's cache."""
PLANE_VALUES = 4
"""Maximum number of categories of columns whose pairs are counted on bit planes."""
KEPT_CELLS = 1 << 21
"""Maximum number of cells in the blocks whose counts are kept until all batches have been counted."""
CHUNK = 1 << 16
"""Number of rows processed at a time."""
PLANE_ROWS = 1 << 20
"""Number of rows in one set of bit planes."""
MOST_WORDS = 1023
"""Number of 64-bit words whose set bits a 16-bit number can count."""
PLANE_BYTES = 1 << 19
"""Memory, in bytes, for the AND of one plane with others."""

DENSE_CELLS = 1_000_000
"""Diagnostics list every cell of a marginal up to this size, and only the occupied cells of a larger one."""

Codes = Mapping[str, NDArray[Any]]
Counts = NDArray[np.int64]
Cells = tuple[NDArray[np.int64], Counts]
"""Cells of a marginal in ascending order, as indices into its flat array, and their counts."""


def count_many(codes: Codes, sizes: Mapping[str, int], rows: int, cliques: Sequence[Clique]) -> list[Counts]:
    """Return the exact counts of each of ``cliques`` in rows, one axis per column."""
    counting = Counting(cliques, sizes)
    counting.add(codes, rows)
    return counting.counts()


def cells_of(codes: Codes, sizes: Mapping[str, int], clique: Clique) -> Cells:
    """Return the exact counts of ``clique`` in rows in memory: every cell of a small marginal, and the occupied cells
    of a large one.
    """
    size = math.prod(sizes[name] for name in clique)
    flat = codes[clique[0]].astype(np.int64)
    for name in clique[1:]:
        flat *= sizes[name]
        flat += codes[name]
    if size <= DENSE_CELLS:
        return np.arange(size), np.bincount(flat, minlength=size)
    return np.unique(flat, return_counts=True)


def whole_cells(
    count_many: Callable[[Sequence[Clique]], list[Counts]], sizes: Mapping[str, int], cliques: Sequence[Clique]
) -> Iterator[Cells]:
    """Yield every cell of each clique, counted together. Raise :class:`TableError` for a clique that is too large."""
    for clique in cliques:
        if (cells := math.prod(sizes[name] for name in clique)) > DENSE_CELLS:
            raise TableError(
                f"columns {' and '.join(map(repr, clique))} have {cells:,} cells together, too many to count in the "
                "database; coarsen one of these columns, or use a file with fewer rows"
            )
    for counts in count_many(cliques):
        yield np.arange(counts.size), counts.ravel()


class Counting:
    """Counts of ``cliques`` added up over batches of rows. They need memory for the counts and a few MB more."""

    def __init__(self, cliques: Sequence[Clique], sizes: Mapping[str, int]) -> None:
        """``sizes`` are the numbers of codes by column; columns that no clique names are ignored."""
        self._asked, self._sizes = tuple(cliques), dict(sizes)
        wanted = tuple(dict.fromkeys(self._asked))
        self._sums = {q: np.zeros([sizes[name] for name in q], dtype=np.int64) for q in wanted}
        small = [q for q in wanted if len(q) == 2 and all(1 < sizes[name] <= PLANE_VALUES for name in q)]
        apart = set(small)
        blocks = cover([q for q in wanted if q not in apart], sizes)
        held = assign(wanted, blocks)
        self._pairs = [q for q in small if q not in held]
        if len(self._pairs) < 2 * len(
            {name for q in self._pairs for name in q}
        ):  # there are too few pairs to justify the planes
            blocks += cover(self._pairs, sizes)
            held, self._pairs = assign(wanted, blocks), []
        self._blocks = [(block, [q for q in held if held[q] == i]) for i, block in enumerate(blocks)]
        self._totals: dict[int, Counts] = {}
        """Counts of the first blocks over all batches. Counts of the other blocks are marginalised batch by batch."""
        room = KEPT_CELLS
        for i, block in enumerate(blocks):
            room -= math.prod(sizes[name] for name in block)
            if room >= 0:
                self._totals[i] = np.zeros([sizes[name] for name in block], dtype=np.int64)
        self._planes = _PlanePairs(self._pairs, sizes)

    def add(self, codes: Codes, rows: int) -> None:
        """Count one batch of ``rows`` rows, given as codes by column."""
        for i, (block, inside) in enumerate(self._blocks):
            counts = _count_block([codes[name] for name in block], [self._sizes[name] for name in block], rows)
            if i in self._totals:
                self._totals[i] += counts
            else:
                self._spread(counts, block, inside)
        if self._pairs:
            for start in range(0, rows, PLANE_ROWS):
                self._planes.add(codes, slice(start, min(start + PLANE_ROWS, rows)))

    def counts(self) -> list[Counts]:
        """Return the counts so far, in the order of the requests."""
        for i, total in self._totals.items():
            self._spread(total, *self._blocks[i])
            total[:] = 0
        self._sums |= self._planes.counts()
        return [self._sums[clique] for clique in self._asked]

    def _spread(self, counts: Counts, block: Clique, inside: Sequence[Clique]) -> None:
        for clique in inside:
            self._sums[clique] += marginal(counts, block, clique)


class _PlanePairs:
    """Counts of pairs, computed on bit planes. Every category but one has a plane. The counts of single planes and of
    pairs of planes determine all other counts.
    """

    def __init__(self, pairs: Sequence[Clique], sizes: Mapping[str, int]) -> None:
        self._pairs, self._sizes = pairs, sizes
        self._names = sorted({name for q in pairs for name in q})
        self._first = np.cumsum([0, *(sizes[name] - 1 for name in self._names)]).tolist()
        place = {name: i for i, name in enumerate(self._names)}
        self._place, total = place, self._first[-1]
        partners: dict[int, list[int]] = {}
        for a, b in pairs:
            partners.setdefault(place[a], []).append(place[b])
        self._others = {  # sorting makes most planes adjacent
            i: np.concatenate([np.arange(self._first[j], self._first[j + 1]) for j in sorted(others)])
            for i, others in partners.items()
        }
        self._shared = np.zeros((total + 1, total + 1), dtype=np.int64)
        """Number of rows in both of two planes. The last row of the array contains the number of rows in each plane,
        and the total number of rows.
        """

    def add(self, codes: Codes, part: slice) -> None:
        """Count the rows ``part`` of ``codes``."""
        planes = _planes([codes[name][part] for name in self._names], self._first)
        self._shared[-1, :-1] += _popcounts(planes)
        self._shared[-1, -1] += part.stop - part.start
        for i, others in self._others.items():
            for plane in range(self._first[i], self._first[i + 1]):
                self._shared[plane, others] += _joint(planes, plane, others)

    def counts(self) -> dict[Clique, Counts]:
        """Return the table of each pair: the counts of its planes, completed by the margins."""
        spans = {name: slice(self._first[i], self._first[i + 1]) for name, i in self._place.items()}
        rows, ones = self._shared[-1, -1], self._shared[-1]
        return {
            q: _completed(self._shared[spans[a], spans[b]], ones[spans[a]], ones[spans[b]], rows)
            for q in self._pairs
            for a, b in [q]
        }


def cover(cliques: Sequence[Clique], sizes: Mapping[str, int]) -> list[Clique]:
    """Return a few blocks of at most `BLOCK_CELLS` cells that together contain all ``cliques``, each in the order of
    ``sizes``.

    A larger clique is a separate block. The choice is greedy: a clique of three or more columns goes into the first
    block where it fits best. Pairs are covered by blocks that grow column by column. Each step adds the column that
    covers the most missing pairs. Single columns go wherever they fit.
    """
    names = [name for name in sizes if any(name in q for q in cliques)] if len(cliques) < 50 else list(sizes)
    place = {name: i for i, name in enumerate(names)}
    logs = np.log2([max(sizes[name], 1) for name in names])
    wanted = sorted(
        {frozenset(q) for q in cliques}, key=lambda q: (-len(q), -sum(logs[place[n]] for n in q), sorted(q))
    )
    taken = _Blocks(logs)
    missing = np.zeros((len(names), len(names)), dtype=np.bool_)
    for clique in wanted:
        columns = [place[name] for name in clique]
        if len(columns) > 2:
            taken.place(columns)
        elif len(columns) == 2:
            a, b = columns
            missing[a, b] = missing[b, a] = True
    for block in taken.blocks():
        missing[np.ix_(block, block)] = False
    for grown in _best_growth(missing, logs):
        taken.new(grown)
    for clique in wanted:
        if len(clique) < 2:
            taken.place([place[name] for name in clique])
    return [tuple(names[i] for i in block) for block in taken.blocks()]


def assign(cliques: Sequence[Clique], blocks: Sequence[Clique]) -> dict[Clique, int]:
    """Return, for each clique that some block contains, the index of the containing block with the fewest columns; the
    first one if several tie.
    """
    holds: dict[str, set[int]] = {}
    for i, block in enumerate(blocks):
        for name in block:
            holds.setdefault(name, set()).add(i)
    found = {}
    for clique in cliques:
        inside = set.intersection(*(holds.get(name, set()) for name in clique)) if clique else set(range(len(blocks)))
        if inside:
            found[clique] = min(inside, key=lambda i: (len(blocks[i]), i))
    return found


def marginal(counts: Counts, block: Clique, clique: Clique) -> Counts:
    """Return the counts of ``clique``, whose columns are among those of ``block``, with axes in the order of
    ``clique``.
    """
    kept = [name for name in block if name in clique]
    out = counts.sum(axis=tuple(i for i, name in enumerate(block) if name not in clique))
    return np.asarray(out).transpose([kept.index(name) for name in clique])


class _Blocks:
    """Blocks as a matrix with one row per block and one column per table column, so that thousands of cliques are
    placed quickly.
    """

    def __init__(self, logs: NDArray[np.float64]) -> None:
        self._logs = logs
        self._member = np.zeros((0, len(logs)), dtype=np.bool_)
        self._limit = math.log2(BLOCK_CELLS) + 1e-9

    def place(self, columns: Sequence[int]) -> None:
        """Add the clique to the block that contains most of it and stays within the limit, else to a new block."""
        inside = np.zeros(len(self._logs), dtype=np.bool_)
        inside[list(columns)] = True
        more = (~self._member & inside) @ self._logs
        fits = (self._member @ self._logs + more <= self._limit) | ~(~self._member & inside).any(axis=1)
        if fits.any():
            self._member[np.flatnonzero(fits)[np.argmin(more[fits])]] |= inside
        else:
            self.new(columns)

    def new(self, columns: Sequence[int]) -> None:
        row = np.zeros((1, len(self._logs)), dtype=np.bool_)
        row[0, list(columns)] = True
        self._member = np.vstack([self._member, row])

    def blocks(self) -> list[list[int]]:
        return [np.flatnonzero(row).tolist() for row in self._member]


def _best_growth(missing: NDArray[np.bool_], logs: NDArray[np.float64]) -> list[list[int]]:
    """Return blocks that contain all missing pairs, by the greedy rule that needs the fewest blocks."""
    rules = [(weight, seed) for weight in (0.0, 0.5, 1.0) for seed in (0.0, 1.0)] if len(logs) <= 40 else [(0.0, 0.0)]
    return min((_grow(missing.copy(), logs, *rule) for rule in rules), key=len)


def _grow(missing: NDArray[np.bool_], logs: NDArray[np.float64], weight: float, seed: float) -> list[list[int]]:
    """Return blocks grown column by column, by the number of missing pairs divided by the size to the power ``weight``.

    A block begins with the column that has the most missing pairs; ``seed`` is the weight of the column's size in this
    choice.
    """
    limit = math.log2(BLOCK_CELLS) + 1e-9
    price = np.maximum(logs, 1e-3) ** weight
    blocks = []
    while (degree := missing.sum(axis=1)).any():
        first = int(np.argmax(degree * (1 + seed * logs)))
        block, used = [first], float(logs[first])
        gain = missing[first].astype(np.int64)
        while True:
            fits = (gain > 0) & ((used + logs <= limit) | (len(block) == 1))
            if not fits.any():
                break
            score = (gain + degree / (len(logs) * len(logs))) / price
            best = int(np.argmax(np.where(fits, score, -1.0)))
            block.append(best)
            used += float(logs[best])
            gain += missing[best]
            gain[block] = 0
        missing[np.ix_(block, block)] = False
        blocks.append(block)
    return blocks


def _count_block(codes: Sequence[NDArray[Any]], sizes: Sequence[int], rows: int) -> Counts:
    """Return the joint counts of a few columns: a histogram of their codes, joined into one number, chunk by chunk."""
    cells = math.prod(sizes)
    out = np.zeros(cells, dtype=np.int64)
    step = max(CHUNK, 2 * cells)
    narrow = np.empty(min(step, rows), dtype=np.uint16 if cells < 1 << 16 else np.intp)
    wide = np.empty(min(step, rows), dtype=np.intp)
    for start in range(0, rows, step):
        stop = min(start + step, rows)
        joined = narrow[: stop - start]
        joined[:] = codes[0][start:stop] if codes else 0
        for column, size in zip(codes[1:], sizes[1:], strict=True):
            np.multiply(joined, joined.dtype.type(size), out=joined)
            np.add(joined, column[start:stop], out=joined, casting="unsafe")
        place = wide[: stop - start]
        place[:] = joined
        out += np.bincount(place, minlength=cells)
    return out.reshape(sizes)


def _planes(codes: Sequence[NDArray[Any]], first: Sequence[int]) -> NDArray[np.uint64]:
    """Return a row of bits for each category of each column except its last one. A column's rows begin at ``first``."""
    bits = math.ceil(len(codes[0]) / 64)
    parts = math.ceil(bits / MOST_WORDS)
    planes = np.zeros((first[-1], parts * math.ceil(bits / parts) * 8), dtype=np.uint8)
    for column, start, stop in zip(codes, first, first[1:], strict=False):
        for plane in range(start, stop):
            packed = np.packbits(column == plane - start)
            planes[plane, : len(packed)] = packed
    return planes.view(np.uint64)


def _joint(planes: NDArray[np.uint64], plane: int, others: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of rows in which both ``plane`` and each of ``others`` have their bit set."""
    step = max(1, PLANE_BYTES // (8 * planes.shape[1]))
    both, out = np.empty((step, planes.shape[1]), dtype=np.uint64), np.empty(len(others), dtype=np.int64)
    for start in range(0, len(others), step):
        run = others[start : start + step]
        out[start : start + step] = _popcounts(np.bitwise_and(_rows(planes, run), planes[plane], out=both[: len(run)]))
    return out


def _rows(planes: NDArray[np.uint64], run: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the rows ``run`` of ``planes``, as a view if they are adjacent."""
    if run[-1] - run[0] == len(run) - 1:  # in ascending order
        return planes[run[0] : run[-1] + 1]
    return planes[run]


def _popcounts(bits: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of set bits in each row. Runs of words are summed in 16 bits first, which is fastest, and then
    the runs are added up.
    """
    runs = math.ceil(bits.shape[1] / MOST_WORDS)
    counts = np.bitwise_count(bits).reshape(len(bits), runs, -1)
    return np.asarray(counts.sum(axis=2, dtype=np.uint16).sum(axis=1, dtype=np.int64))


def _completed(inner: Counts, rows: Counts, columns: Counts, n: int) -> Counts:
    """Return a table of counts, given its margins and its cells except the last row and column."""
    table = np.empty((len(rows) + 1, len(columns) + 1), dtype=np.int64)
    table[:-1, :-1] = inner
    table[:-1, -1] = rows - inner.sum(axis=1)
    table[-1, :-1] = columns - inner.sum(axis=0)
    table[-1, -1] = n - rows.sum() - table[-1, :-1].sum()
    return table
