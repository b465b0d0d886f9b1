"""Prediction of a workload's cost and errors before anything is spent, from public figures alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import erfc, prod, sqrt

import numpy as np

from espalier.core.errors import SizeError
from espalier.core.graph.junction_tree import MAX_CELLS, FloatArray, cells, junction_tree
from espalier.core.graph.separations import Clique
from espalier.core.privacy.question_recipes.lowering import Lowered, lower

TRIED = 5
"""Maximum number of questions and counts for which a refusal computes the size of the model without them."""

STEPS = 20
"""Number of Newton steps assumed for a fit; most need fewer."""

SECONDS_PER_CELL, SECONDS_PER_PAIR, SECONDS_PER_CUBE = 1e-6, 1.5e-6, 1e-10
"""Measured seconds of one step: per cell of the tree, per pair of statistics, and per product of pairs and
statistics.
"""


@dataclass(frozen=True)
class Cost:
    """``cells`` of the junction tree with all hidden columns, the cells of its ``largest`` table, the visible
    ``columns`` of that table, the ``questions`` and counts whose states it contains, and the ``seconds`` of a fit.
    ``treewidth`` is the width of the decomposition, hidden columns included."""

    cells: int
    largest: int
    columns: Clique
    questions: tuple[str, ...]
    seconds: float
    treewidth: int = 0


def predict_cost(lowered: Lowered, cliques: Iterable[Clique] = (), statistics: int = 0) -> Cost:
    """Return the cost of fitting the questions together with ``cliques``, which have ``statistics`` cells in total.

    No table is allocated."""
    tree = junction_tree(lowered.sizes, dict.fromkeys([*lowered.cliques, *cliques]))
    node = max(tree.nodes, key=lambda node: prod(node.shape), default=None)
    held = tree.names((*node.given, node.own)) if node else ()
    k, size = len(lowered.order) + statistics, cells(tree)
    dense = SECONDS_PER_PAIR * k**2 + SECONDS_PER_CUBE * k**3
    return Cost(
        cells=size,
        largest=prod(node.shape) if node else 1,
        columns=tuple(name for name in held if name in lowered.visible),
        questions=tuple(dict.fromkeys(lowered.owner[name] for name in held if name in lowered.owner)),
        seconds=STEPS * (SECONDS_PER_CELL * size + dense),
        treewidth=max((len(node.given) for node in tree.nodes), default=0),
    )


def check_cost(lowered: Lowered, cliques: Iterable[Clique] = (), *, max_cells: int = MAX_CELLS) -> Cost:
    """Return `predict_cost`, and refuse tables of more than ``max_cells`` cells. The `SizeError` names the columns and
    questions, and suggests a question to leave out. Its attributes are ``cells``, ``limit``, ``columns`` and
    ``questions``.
    """
    beside = tuple(cliques)
    cost = predict_cost(lowered, beside)
    if cost.largest <= max_cells:
        return cost
    shown = ", ".join(cost.questions[:5]) + (", …" if len(cost.questions) > 5 else "")
    because = f" together with the states of {shown}" if shown else ""
    raise SizeError(
        f"The questions need one table of {cost.largest:,} cells (about {cost.seconds:,.0f} seconds in total) over "
        f"{', '.join(cost.columns) or 'states alone'}{because}; the limit is {max_cells:,}. "
        f"{_what_to_leave_out(lowered, beside, cost, max_cells)}",
        cells=cost.largest,
        limit=max_cells,
        columns=cost.columns,
        questions=cost.questions,
    )


def _what_to_leave_out(lowered: Lowered, cliques: tuple[Clique, ...], cost: Cost, max_cells: int) -> str:
    """Return the question or count in the largest table whose removal leaves the smallest model. The widest are tried
    first.
    """
    sizes = {name: lowered.sizes[name] for name in lowered.visible}
    held = set(cost.columns)
    wide = {question.name: len(held & set(question.columns(lowered.visible))) for question in lowered.asked}
    wide |= {count.name: len(held & set(count.members)) for count in lowered.counted}
    owners = sorted(cost.questions, key=lambda name: -wide.get(name, 0))
    others = sorted((name for name in wide if wide[name] > 1 and name not in owners), key=lambda name: -wide[name])
    found: list[tuple[int, str, str]] = []
    for name in [*owners, *others][:TRIED]:
        counts = [count for count in lowered.counted if count.name != name]
        gone = {count.name for count in lowered.counted} - {count.name for count in counts}
        asked = [q for q in lowered.asked if q.name != name or gone]
        kept = [q for q in asked if not gone & {column for condition in q.alternatives for column in condition}]
        needed = predict_cost(lower(sizes, kept, counts, cliques), cliques).largest
        what = f"the count {name!r}" if gone else f"the question {name!r}"
        if len(kept) < len(asked):
            what += f" and the questions that use it ({len(asked) - len(kept)})"
        found.append((needed, what, name))
    if not found:
        return "Use fewer questions together."
    needed, what, _ = min(found)
    if needed <= max_cells:
        return f"Leave out {what}. Without it, the largest table has {needed:,} cells."
    return f"Leave out {what} and at least one more. Removing only {what} leaves a table of {needed:,} cells."


@dataclass(frozen=True)
class Errors:
    """Expected noise, in rows: ``sigma`` of each question (in the questions' order), the root mean square of these, and
    ``worst``, a bound that the largest error exceeds in at most half of the releases."""

    sigma: FloatArray
    rms: float
    worst: float


def direct_errors(questions: int, sensitivity: float, rho: float) -> Errors:
    """Return the errors of questions that are answered directly with ρ = ``rho``: σ = Δ/√(2ρ) for each."""
    return _errors(np.full(questions, sensitivity / sqrt(2.0 * rho)))


def marginal_errors(
    lowered: Lowered, count_sensitivity: float, rho: float, *, total_known: bool
) -> tuple[tuple[Clique, ...], Errors] | None:
    """Return the questions' own cliques and the errors of answers computed from their marginals, which share ρ evenly;
    None if a question has no clique.

    If a question holds in m of a clique's C cells, its answer is the sum of m noisy cells, with variance m σ². If the
    total is known, the cells are first corrected to sum to it, so the variance is m (1 − m/C) σ².
    """
    if any(name not in lowered.visible for block in lowered.blocks for name in block.clique):
        return None
    scopes = [frozenset(block.clique) for block in lowered.blocks]
    widest = [scope for scope in dict.fromkeys(scopes) if not any(scope < other for other in scopes)]
    cliques = tuple(tuple(name for name in lowered.sizes if name in scope) for scope in widest)
    each = count_sensitivity * sqrt(len(cliques)) / sqrt(2.0 * rho)
    found = []
    for block, scope in zip(lowered.blocks, scopes, strict=True):
        home = min(prod(lowered.sizes[n] for n in whole) for whole in widest if scope <= whole)
        assert block.matrix is not None  # questions always have a clique
        share = block.matrix.reshape(len(block.matrix), -1).mean(axis=1)
        variance = share * home * (1.0 - share if total_known else 1.0)
        found.append(each * np.sqrt(variance))
    return cliques, _errors(lowered.back(np.concatenate(found)))


def _errors(sigma: FloatArray) -> Errors:
    if not len(sigma):
        return Errors(sigma, 0.0, 0.0)
    low, high = 0.0, 10.0 * float(sigma.max()) + 1e-12
    noisy = sigma[sigma > 0]
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        above = sum(erfc(middle / (sqrt(2.0) * s)) for s in noisy.tolist())
        low, high = (middle, high) if above > 0.5 else (low, middle)
    return Errors(sigma, float(np.sqrt(np.mean(sigma**2))), high)


def direct_is_better(direct: Errors, marginal: tuple[Sequence[Clique], Errors] | None) -> bool:
    """Return whether asking the questions directly gives the smaller worst expected error."""
    return marginal is None or direct.worst <= marginal[1].worst
