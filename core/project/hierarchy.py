"""Hierarchies of categories: codes in blocks, blocks in chapters, expanded only to the depth that the budget allows.

A hierarchy is public input, ``{"I21": "I20-I25", "I20-I25": "I00-I99", …}``: the group of each category and of each
group. A column of thousands of categories is measured from the top down. The groups at the top are counted with
noise; a group with enough rows is divided into its members, and so on. The model treats an undivided group as one
value, which is spread evenly over its categories when rows are drawn.

Nothing here draws noise or counts rows: the caller passes in the answers. Everything is computed from noisy answers
(or, in a plan, from public expectations), so it is post-processing. A histogram over groups has the sensitivity of any
histogram.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import SchemaError
from espalier.core.project.cells import MISSING

DIVIDE = 2.0
"""A group is divided if its noisy count is at least this multiple of its parts' joint noise: σ·√parts. Below that, even
a part that contained all rows of the group would not exceed the noise.
"""

RARE = 2.0
"""Categories of a group whose counts are below this many σ are merged again after they have been counted."""

MOST_APART = 1000
"""Maximum number of groups after expansion. These become the column's categories in the model, whatever the number of
codes.
"""

DEEPEST = 8

HEADS = {(a, b) for a in ("code", "child", "category") for b in ("group", "parent")}
"""Possible header lines of a table with two columns."""

Ask = Callable[["Cut"], tuple[NDArray[np.float64], float]]
"""Noisy counts of the groups of a cut, in rows, and the σ of their noise."""


@dataclass(frozen=True)
class Cut:
    """A division of a column's codes into groups.

    ``groups`` gives the group of each code, counted from 0. ``parts`` gives the nodes of each group: one, or several
    that were combined (a node is a code or a group of the hierarchy). ``names`` gives the name of each group.
    """

    groups: NDArray[np.intp]
    parts: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.parts)


@dataclass(frozen=True)
class Reached:
    """Result of an expansion: the last ``cut``, and for each level its ``sigma`` and its number of groups."""

    cut: Cut
    sigmas: tuple[float, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Hierarchy:
    """Codes of one column in nested groups.

    ``labels`` are the codes in order, followed by the groups; with ``missing``, the empty cell is the last code.
    ``parent`` is the index of each node's group, −1 at the top. Raises :class:`SchemaError` for an impossible
    hierarchy.
    """

    column: str
    codes: int
    labels: tuple[str, ...]
    parent: tuple[int, ...]
    missing: bool = False

    @classmethod
    def of(cls, column: str, given: Mapping[str, str], *, missing: bool = False) -> Hierarchy:
        """Build the hierarchy from the project file's mapping. An entry without members is a code; an empty string
        means the top.
        """
        if not given or not all(isinstance(x, str) for x in (*given, *given.values())):
            raise SchemaError(
                f'column {column!r}: a hierarchy must map strings to strings: {{"I21": "I20-I25"}}', column=column
            )
        if MISSING in given:
            raise SchemaError(f"column {column!r}: an empty string cannot be a code of the hierarchy", column=column)
        groups = list(dict.fromkeys(g for g in given.values() if g != MISSING))
        inner = set(groups)
        codes = [text for text in given if text not in inner]
        labels = (*codes, *["(missing)"] * missing, *groups)
        place = {text: i for i, text in enumerate(labels)} | {text: i for i, text in enumerate(codes)}
        place |= {text: len(codes) + missing + i for i, text in enumerate(groups)}
        above = [given.get(text, MISSING) for text in (*codes, *groups)]
        tops = [-1 if text == MISSING else place[text] for text in above]
        size = len(codes) + missing
        made = cls(column, size, labels, (*tops[: len(codes)], *[-1] * missing, *tops[len(codes) :]), missing)
        made._check()
        return made

    @property
    def texts(self) -> tuple[str, ...]:
        """Codes, without the empty cell."""
        return self.labels[: self.codes - self.missing]

    def _check(self) -> None:
        """Raise an error for a cycle of groups, or too many levels."""
        for start in range(len(self.labels)):
            node, steps = start, 0
            while node >= 0:
                node, steps = self.parent[node], steps + 1
                if steps > DEEPEST:
                    raise SchemaError(
                        f"column {self.column!r}: the groups above {self.labels[start]!r} form a cycle or are more "
                        f"than {DEEPEST} levels deep",
                        column=self.column,
                        value=self.labels[start],
                    )

    @cached_property
    def children(self) -> dict[int, tuple[int, ...]]:
        """Members of each group, where −1 means the top. Groups without categories are left out."""
        used = set(range(self.codes))
        for code in range(self.codes):
            node = self.parent[code]
            while node >= 0 and node not in used:
                used.add(node)
                node = self.parent[node]
        out: dict[int, list[int]] = {}
        for node in sorted(used):
            out.setdefault(self.parent[node], []).append(node)
        return {node: tuple(inside) for node, inside in out.items()}

    @cached_property
    def depth(self) -> int:
        """Number of levels: 1 without groups."""
        return max(len(self.above(code)) for code in range(self.codes))

    @cached_property
    def _paths(self) -> NDArray[np.intp]:
        """Each code, followed by the groups that contain it; rows are padded with a node that means "none"."""
        out = np.full((self.codes, self.depth), len(self.labels), dtype=np.intp)
        for code in range(self.codes):
            path = self.above(code)
            out[code, : len(path)] = path
        return out

    def above(self, node: int) -> tuple[int, ...]:
        """Return the node and all groups that contain it, from the bottom up."""
        out = []
        while node >= 0:
            out.append(node)
            node = self.parent[node]
        return tuple(out)

    def cut(self, parts: Sequence[tuple[int, ...]]) -> Cut:
        """Return the division into ``parts``, each of one or more nodes; every code must be in exactly one part."""
        place = np.full(len(self.labels) + 1, -1, dtype=np.intp)
        for i, part in enumerate(parts):
            place[list(part)] = i
        groups = place[self._paths].max(axis=1)  # each path has exactly one node in a part
        return Cut(groups, tuple(parts), self._names(parts))

    def _names(self, parts: Sequence[tuple[int, ...]]) -> tuple[str, ...]:
        """Return the name of each part. The names are distinct, and no part has the name of a code or group that it
        does not represent.
        """
        names, taken = [], set(self.labels)
        for part in parts:
            name = self.labels[part[0]]
            if len(part) > 1:
                name = f"other {self.labels[self.parent[part[0]]]}"
                while name in taken:
                    name = f"{name} …"
                taken.add(name)
            names.append(name)
        return tuple(names)

    def top(self) -> Cut:
        """Return the cut at the top, one group for each node."""
        return self.cut([(node,) for node in self.children[-1]])

    def rows_needed(self, node: int, sigma: float) -> float:
        """Return the smallest noisy count of rows at which the group is divided."""
        return DIVIDE * sigma * math.sqrt(len(self.children.get(node, ())))

    def divide(self, cut: Cut, counts: NDArray[np.float64], sigma: float, at_most: int = MOST_APART) -> Cut:
        """Return ``cut`` after dividing each group with enough rows, up to ``at_most`` groups in total. Groups with the
        most rows per part are divided first. Combined groups stay combined.
        """
        wanted = []
        for part, count in zip(cut.parts, counts.tolist(), strict=True):
            inside = self.children.get(part[0], ()) if len(part) == 1 else ()
            if inside and (len(inside) == 1 or count >= self.rows_needed(part[0], sigma)):
                wanted.append((-count / len(inside), part[0]))
        size, divided = len(cut), set()
        for _, node in sorted(wanted):
            more = len(self.children[node]) - 1
            if size + more <= at_most:
                divided.add(node)
                size += more
        parts: list[tuple[int, ...]] = []
        for part in cut.parts:
            parts += [(node,) for node in self.children[part[0]]] if part[0] in divided else [part]
        return self.cut(parts)

    def gather(self, cut: Cut, counts: NDArray[np.float64], sigma: float) -> tuple[Cut, NDArray[np.float64]]:
        """Return ``cut`` with the rare parts of each group combined again, and its counts; parts at the top stay
        separate.
        """
        rare: dict[int, list[int]] = {}
        for i, (part, count) in enumerate(zip(cut.parts, counts.tolist(), strict=True)):
            if self.parent[part[0]] >= 0 and (len(part) > 1 or count < RARE * sigma):
                rare.setdefault(self.parent[part[0]], []).append(i)
        together = [several for several in rare.values() if len(several) > 1]
        gone = {i for several in together for i in several}
        kept = [i for i in range(len(cut)) if i not in gone]
        parts = [
            *(cut.parts[i] for i in kept),
            *(tuple(n for i in several for n in cut.parts[i]) for several in together),
        ]
        sums = [*(counts[i] for i in kept), *(counts[several].sum() for several in together)]
        return self.cut(parts), np.array(sums, dtype=np.float64)


def descend(hierarchy: Hierarchy, ask: Ask, at_most: int = MOST_APART) -> Reached:
    """Measure from the top down, with at most `Hierarchy.depth` calls of ``ask``, or fewer if nothing is left to
    divide. After each call, rare nodes of a group are combined, to make room for the frequent ones.

    For any hierarchy, memory and time equal those of one histogram of the column. If ``ask`` answers from public
    expectations, the result is the cut that a plan shows (`expected`).
    """
    cut, sigmas, sizes = hierarchy.top(), [], []
    for level in range(hierarchy.depth):
        counts, sigma = ask(cut)
        sigmas.append(sigma)
        sizes.append(len(cut))
        gathered, sums = hierarchy.gather(cut, counts, sigma)
        finer = hierarchy.divide(gathered, sums, sigma, at_most)
        if level == hierarchy.depth - 1 or finer.parts == gathered.parts:
            break
        cut = finer
    return Reached(gathered, tuple(sigmas), tuple(sizes))


def expected(hierarchy: Hierarchy, rows: float, sigma: float, at_most: int = MOST_APART) -> Reached:
    """Return the expected cut if ``rows`` are spread evenly over the codes and each level is measured with noise of σ.

    Evenly spread rows are close to a worst case: if a few codes have most of the rows, these codes are expanded
    further. `Hierarchy.rows_needed` gives the rows that each group needs.
    """

    def ask(cut: Cut) -> tuple[NDArray[np.float64], float]:
        each = np.full(hierarchy.codes, rows / hierarchy.codes)
        return np.asarray(np.bincount(cut.groups, each, minlength=len(cut)), dtype=np.float64), sigma

    return descend(hierarchy, ask, at_most)


def read_hierarchy(text: str) -> dict[str, str]:
    """Return the mapping in a two-column table: a code or group, and the group to which it belongs or an empty cell.
    Cells are separated by commas, semicolons or tabs; a first line such as ``code,group`` is ignored. Raises a
    :class:`SchemaError` that names the line.
    """
    lines = text.lstrip("\ufeff").splitlines()
    first = next((line for line in lines if line.strip()), "")
    parted = max(",;\t", key=first.count)
    out: dict[str, str] = {}
    for number, cells in enumerate(_cells(lines, parted), 1):
        row = [cell.strip() for cell in cells]
        if not any(row) or (not out and tuple(cell.lower() for cell in row) in HEADS):
            continue
        if len(row) != 2 or not row[0]:
            raise SchemaError(
                f"line {number} of the hierarchy must have two cells, a code or group and the group it belongs to; it "
                f"has {len(row)}" + ("" if len(row) != 2 else ", the first of them empty"),
                line=number,
            )
        if out.get(row[0], row[1]) != row[1]:
            raise SchemaError(
                f"line {number} of the hierarchy assigns {row[0]!r} to {row[1]!r}, but an earlier line assigns it to "
                f"{out[row[0]]!r}; a value can belong to only one group",
                line=number,
            )
        out[row[0]] = row[1]
    if not out:
        raise SchemaError("the hierarchy is empty: write a line for each code, such as I21,I20-I25")
    return out


def _cells(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter)
    try:
        yield from reader
    except csv.Error as error:
        raise SchemaError(f"line {reader.line_num} of the hierarchy: {error}", line=reader.line_num) from None
