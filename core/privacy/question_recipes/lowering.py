"""Questions and counts as hidden columns, which let the junction tree answer them.

A count is a sum of 0s and 1s, and a question is an automaton that reads its columns one after the other. Both are
functions of a few columns and a running *state*. Each state becomes a hidden column. Impossible cells (`Zeros`) over
the previous state, one column and the next state make the hidden column a function of the row. Each row therefore has
one extension to the hidden columns, and every sum or maximum over rows is a sum or maximum over extended rows. The cost
depends on the width of this gate network. The width of the paper's incidence graph does not bound the width of the gate
network: a family of incidence width 2 encodes 3-SAT, because a diagram that is small in one column order need not be
small in the order forced by the rest of the workload.

The order in which columns are read follows the tree of the measured marginals: from a column to its branches, the
heaviest branch last. Therefore, at most log₂ d of the current column's ancestors wait for their next branch at any
time. A random order costs hundreds of times as much. Hidden columns must never be released, so
`espalier.core.models.question_fit.model` hides them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import EspalierError, SizeError
from espalier.core.graph.junction_tree import JunctionTree, Zeros, cells, junction_tree
from espalier.core.graph.separations import Clique
from espalier.core.privacy.question_recipes.automaton import IntArray, automaton
from espalier.core.project.question_types import Count, Question, allowed

DIRECT_CELLS = 4_096
"""A question may be answered from the marginal of its columns if these have at most this many joint combinations."""

MOST_READ = 256
"""Maximum number of small questions for which automata are tried, because each adds hidden columns."""

GATE_CELLS = 10_000_000
"""Maximum number of cells in a gate."""


@dataclass(frozen=True)
class Block:
    """Several statistics of one clique. Row i of ``matrix`` (k × the shape of the clique) contains statistic i of each
    cell. None means one indicator for every cell, in the clique's order (a marginal).
    """

    clique: Clique
    matrix: NDArray[np.float64] | None

    def length(self, sizes: Mapping[str, int]) -> int:
        """Return the number of statistics."""
        return prod(sizes[name] for name in self.clique) if self.matrix is None else len(self.matrix)


@dataclass(frozen=True)
class Lowered:
    """Questions and counts over ``sizes``: the ``visible`` columns first, then counts, then hidden states.

    ``zeros`` make the hidden ones functions of the visible ones. ``blocks`` hold the questions' indicators, one block
    per clique; ``order[j]`` is the index of the question at position j of the blocks' statistics; ``owner`` names the
    question or count for which a hidden column was made. ``asked`` and ``counted`` are the lowered questions and
    counts.
    """

    sizes: Mapping[str, int]
    visible: tuple[str, ...]
    counts: tuple[str, ...]
    zeros: tuple[Zeros, ...]
    blocks: tuple[Block, ...]
    order: NDArray[np.intp]
    owner: Mapping[str, str]
    asked: tuple[Question, ...] = ()
    counted: tuple[Count, ...] = ()

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """Cliques that the junction tree must contain."""
        return (*(rule.clique for rule in self.zeros), *(block.clique for block in self.blocks))

    def back(self, statistics: NDArray[np.float64]) -> NDArray[np.float64]:
        """Reorder values from the order of the blocks to the order of the questions."""
        found = np.empty_like(statistics)
        found[self.order] = statistics
        return found


def lower(
    sizes: Mapping[str, int],
    questions: Sequence[Question],
    counts: Sequence[Count] = (),
    cliques: Iterable[Clique] = (),
) -> Lowered:
    """Return the hidden columns that ``questions`` and ``counts`` need in addition to the measured ``cliques``.

    ``sizes`` are the visible columns in schema order. Two encodings are compared, and the one with fewer cells is used:
    all small questions as marginals of their own columns, or only those inside an existing clique of the junction tree,
    with the others as automata. Raises `EspalierError` for unknown columns and repeated names, and `SizeError` for a
    gate that is too large.
    """
    known = {*sizes}
    for count in counts:
        count.check(sizes)
        if count.name in known:
            raise EspalierError(f"The name {count.name!r} of a count is already in use.", count=count.name)
        known.add(count.name)
    all_sizes = {**sizes, **{count.name: count.size for count in counts}}
    for question in questions:
        question.check(all_sizes)
    beside = [tuple(clique) for clique in cliques]
    scopes = [question.columns(tuple(all_sizes)) for question in questions]
    small = [prod(all_sizes[c] for c in scope) <= DIRECT_CELLS for scope in scopes]
    plain = [scope for scope, fits in zip(scopes, small, strict=True) if fits and set(scope) <= set(sizes)]
    found: list[tuple[int, int, Lowered]] = []
    for with_scopes in (True, False):
        tree = junction_tree(sizes, [*beside, *dict.fromkeys(plain)] if with_scopes else beside)
        direct = [fits and (with_scopes or _held(tree, scope)) for fits, scope in zip(small, scopes, strict=True)]
        if not with_scopes and not 0 < sum(small) - sum(direct) <= MOST_READ:
            break
        for branching in (False, True) if counts else (False,):
            gates = _Gates(dict(all_sizes), tree)
            for count in counts:
                gates.count(count, branching)
            blocks, order = gates.ask(questions, scopes, direct)
            lowered = Lowered(
                gates.sizes,
                tuple(sizes),
                tuple(c.name for c in counts),
                tuple(gates.zeros),
                blocks,
                order,
                gates.owner,
                tuple(questions),
                tuple(counts),
            )
            found.append((cells(junction_tree(lowered.sizes, [*beside, *lowered.cliques])), len(found), lowered))
    return min(found)[2]


def _held(tree: JunctionTree, scope: Sequence[str]) -> bool:
    if not set(scope) <= set(tree.sizes):
        return False
    try:
        tree.place(scope)
    except LookupError:
        return False
    return True


@dataclass
class _Gates:
    """Network under construction; ``tree`` determines the order in which columns are read."""

    sizes: dict[str, int]
    tree: JunctionTree
    zeros: list[Zeros] = field(default_factory=list)
    owner: dict[str, str] = field(default_factory=dict)
    _asking: str = ""
    _known: dict[tuple[str, str, bytes], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.branches, rank = _walk(self.tree)
        late = len(rank)
        self.prefix = "~" * (1 + max((len(name) - len(name.lstrip("~")) for name in self.sizes), default=0))
        self.rank = {name: rank.get(name, late + i) for i, name in enumerate(self.sizes)}

    def count(self, count: Count, branching: bool) -> None:
        """Add the hidden columns of a count: one running sum, or one sum per branch of the tree."""
        self._asking = count.name
        step = {c: allowed(codes, self.sizes[c]).astype(np.intp) for c, codes in count.members.items()}
        if branching:
            sums = [s for root in self.branches[""] if (s := self._sum(root, step, count.up_to))]
            sums += [(c, step[c], 1) for c in step if c not in self.tree.position]
        else:
            sums = [(c, step[c], 1) for c in sorted(step, key=self.rank.__getitem__)]
        self._add(sums, count.up_to, count.name)

    def _sum(self, name: str, step: Mapping[str, IntArray], most: int) -> tuple[str, IntArray, int] | None:
        """Return the column of the sum over ``name`` and its subtree, the count that each code of this column stands
        for, and the largest sum; None if no column of the subtree is counted."""
        parts = [(name, step[name], 1)] if name in step else []
        parts += [s for child in self.branches[name] if (s := self._sum(child, step, most))]
        return self._add(parts, most) if parts else None

    def _add(self, parts: Sequence[tuple[str, IntArray, int]], most: int, name: str = "") -> tuple[str, IntArray, int]:
        """Add a saturating adder for two parts at a time; the last one writes to the column ``name``."""
        held, worth, top = parts[0]
        rest = parts[1:]
        if not rest and name:
            self._gate((held,), worth, min(top, most) + 1, name)
        for i, (other, more, more_top) in enumerate(rest):
            top = min(top + more_top, most)
            added = np.minimum(np.add.outer(worth, more), most)
            held = self._gate((held, other), added, top + 1, name if i + 1 == len(rest) else "")
            worth = np.arange(top + 1)
        return held, worth, top

    def ask(
        self, questions: Sequence[Question], scopes: Sequence[Clique], direct: Sequence[bool]
    ) -> tuple[tuple[Block, ...], NDArray[np.intp]]:
        """Return one block per clique, and the index of the question behind each statistic."""
        held: dict[Clique, list[tuple[int, NDArray[np.float64]]]] = {}
        for i, (question, scope) in enumerate(zip(questions, scopes, strict=True)):
            if direct[i]:
                clique, mask = scope, mask_of(question, scope, self.sizes)
            else:
                clique, mask = self._read(question, scope)
            held.setdefault(clique, []).append((i, mask))
        blocks = tuple(Block(clique, np.stack([mask for _, mask in members])) for clique, members in held.items())
        order = [i for members in held.values() for i, _ in members]
        return blocks, np.array(order, dtype=np.intp)

    def _read(self, question: Question, scope: Clique) -> tuple[Clique, NDArray[np.float64]]:
        """Add the automaton's states as hidden columns; its last step is the statistic."""
        self._asking = question.name
        columns = sorted(scope, key=self.rank.__getitem__)
        machine = automaton(question, columns, [self.sizes[c] for c in columns])
        state = ""
        for column, step in zip(columns[:-1], machine.steps[:-1], strict=True):
            key = (state, column, step.tobytes())
            if key not in self._known:
                inputs = (state, column) if state else (column,)
                table = step if state else step[0]
                bits = int(step.max()) + 1
                whole = not state and bits == self.sizes[column]  # the column itself is the state
                self._known[key] = column if whole else self._gate(inputs, table, bits)
            state = self._known[key]
        last = machine.steps[-1].astype(np.float64)
        return ((state, columns[-1]), last) if state else ((columns[-1],), last[0])

    def _gate(self, inputs: Clique, table: IntArray, size: int, name: str = "") -> str:
        """Add a hidden column that is the function ``table`` of its inputs; return its name."""
        name = name or f"{self.prefix}{len(self.zeros)}"
        held = table.size * size
        if held > GATE_CELLS:
            raise SizeError(
                f"{self._asking!r} needs one table of {held:,} cells; the limit is {GATE_CELLS:,}. Count fewer "
                "separate values, or use fewer columns.",
                cells=held,
                limit=GATE_CELLS,
                questions=(self._asking,),
            )
        self.sizes[name] = size
        self.owner[name] = self._asking
        self.zeros.append(Zeros((*inputs, name), table[..., None] != np.arange(size)))
        return name


def mask_of(question: Question, scope: Clique, sizes: Mapping[str, int]) -> NDArray[np.float64]:
    """Return the indicator of the question, one axis per column of ``scope``."""
    whole = np.zeros([sizes[c] for c in scope], dtype=bool)
    for condition in question.alternatives:
        part = np.ones(whole.shape, dtype=bool)
        for axis, column in enumerate(scope):
            if column in condition:
                shape = [-1 if i == axis else 1 for i in range(len(scope))]
                part &= allowed(condition[column], sizes[column]).reshape(shape)
        whole |= part
    return whole.astype(np.float64)


def _walk(tree: JunctionTree) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Return each column's children in the junction tree (the roots are under ""), lightest branch first, and the
    position of every column in a traversal from the roots."""
    weight = [1] * len(tree.nodes)
    for node in reversed(tree.nodes):
        if node.parent >= 0:
            weight[node.parent] += weight[node.own]
    branches: dict[str, list[str]] = {"": [], **{name: [] for name in tree.columns}}
    for node in sorted(tree.nodes, key=lambda node: weight[node.own]):
        branches[tree.columns[node.parent] if node.parent >= 0 else ""].append(tree.columns[node.own])
    rank: dict[str, int] = {}
    waiting = branches[""][::-1]
    while waiting:
        name = waiting.pop()
        rank[name] = len(rank)
        waiting.extend(reversed(branches[name]))
    return branches, rank
