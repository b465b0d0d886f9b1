"""Choice of the statements that test a drawing, so that together they detect as many missing arrows as possible.

Each pair of columns without an arrow is an alternative: the drawing with that arrow, in each direction that closes no
cycle. An alternative changes the partial correlations of the statements, which follow from a linear model with the same
strength on every drawn arrow. A partial correlation is 0 if the statement still holds, and becomes smaller along a
path. The power of each test follows from its noise. Statements are then added one by one. Each step adds the statement
that most increases the expected number of detected alternatives. The statements about contested pairs come first. Only
the drawing and public numbers are used, so a plan and a release choose the same statements.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.independence_fit import Null
from espalier.core.analysis.strength import associated, scores
from espalier.core.graph.dag import Dag
from espalier.core.graph.separations import Separation

FloatArray = NDArray[np.float64]
DRAWN, ABSENT = 0.6, 0.2
"""Assumed joint strength of the drawn arrows into one column, and assumed strength of an absent arrow, as
correlations.
"""
FACTORS = (0.25, 0.5, 1.0, 2.0)
"""Factors applied to the assumed strength of an absent arrow. Because this strength is unknown, the arrow's own
statement matters most.
"""
MOST_ALTERNATIVES = 2000
"""Maximum number of alternatives; with more, an evenly spaced subset is used, so that a drawing of hundreds of columns
takes only seconds.
"""
REFERENCE = math.log(2)
MOST_CONTESTED = 10
"""Maximum number of contested pairs that are tested even if the plan asks for fewer statements."""


def contested(dag: Dag) -> set[frozenset[str]]:
    """Return the pairs of columns without an arrow that an annotation marks as contested."""
    linked = {frozenset(edge) for edge in (*dag.edges, *dag.hidden)}
    marked = {frozenset(of) for of, said in dag.annotations.items() if len(of) == 2 and said.belief == "contested"}
    return marked - linked


def alternatives(dag: Dag, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the arrows between these columns that are not drawn and would close no cycle."""
    linked = {frozenset(edge) for edge in (*dag.edges, *dag.hidden)}
    after = {name: _reached(dag, name) for name in names}
    apart = (pair for pair in itertools.combinations(names, 2) if frozenset(pair) not in linked)
    return [(a, b) for pair in apart for a, b in (pair, pair[::-1]) if a not in after[b]]


def chosen(
    dag: Dag, candidates: Sequence[Separation], null: Callable[[Separation], Null], level: float, most: int
) -> tuple[Separation, ...]:
    """Return at most ``most`` of the candidates; ``null`` is a function that returns the counts expected if a statement
    is true.
    """
    names = list(dict.fromkeys(name for edge in dag.edges for name in edge))
    arrows = alternatives(dag, names)
    if len(arrows) > MOST_ALTERNATIVES:
        arrows = [arrows[i] for i in np.linspace(0, len(arrows) - 1, MOST_ALTERNATIVES).astype(int)]
    if not arrows or not candidates:
        return tuple(candidates[:most])
    both = set(arrows)
    weights = np.array([1 / (1 + ((b, a) in both)) for a, b in arrows])
    marked = contested(dag)
    first = [i for i, s in enumerate(candidates) if frozenset((*s.left, *s.right)) in marked]
    power = powers(names, covariances(dag, names, arrows), candidates, null, level, FACTORS)
    return picked(candidates, power, weights, most, first)


def picked(
    candidates: Sequence[Separation], power: FloatArray, weights: FloatArray, most: int, first: Sequence[int] = ()
) -> tuple[Separation, ...]:
    """Return the most sensitive statements: each step adds the statement that most increases the weighted chance of
    detection.

    ``power`` has a row per statement and a column per alternative. Statements at the positions ``first`` come first.
    """
    unnoticed, left = weights.copy(), set(range(len(candidates)))
    out: list[Separation] = []
    while left and len(out) < most:
        best = max(sorted(left & set(first) or left), key=lambda i: float(power[i] @ unnoticed))
        left.remove(best)
        out.append(candidates[best])
        unnoticed *= 1 - power[best]
    return tuple(out)


def powers(
    names: Sequence[str],
    covariance: FloatArray,
    candidates: Sequence[Separation],
    null: Callable[[Separation], Null],
    level: float,
    factors: Sequence[float] = (1.0,),
) -> FloatArray:
    """Return the power of each statement's test (row) against each alternative (column), given the `covariances` under
    each alternative.

    The power is averaged over partial correlations multiplied by each of ``factors``.
    """
    from scipy.stats import chi2, ncx2

    place = {name: i for i, name in enumerate(names)}
    out = np.zeros((len(candidates), len(covariance)))
    known: dict[tuple[float, ...], tuple[float, float, int]] = {}
    for row, statement in enumerate(candidates):
        at = [place[name] for name in (*statement.left, *statement.right, *statement.given)]
        inside = covariance[:, at][:, :, at]
        precision = np.linalg.inv(inside)
        partial = -precision[:, 0, 1] / np.sqrt(precision[:, 0, 0] * precision[:, 1, 1])
        expected = null(statement)
        key = (*expected.expected.shape, expected.sigma)
        if key not in known:
            known[key] = _reference(expected)
        far, unit, df = known[key]
        for factor in factors:
            theta = np.arctanh(np.clip(factor * np.abs(partial), 0, 0.95)) / unit
            far_off = np.maximum(far * (theta / REFERENCE) ** 2, 1e-9)
            out[row] += ncx2.sf(chi2.isf(level, df), df, far_off) / len(factors)
        out[row][np.abs(partial) < 1e-9] = 0.0
    return out


def _reference(null: Null) -> tuple[float, float, int]:
    """Return the noncentrality at log odds ratio `REFERENCE`, the correlation per unit of log odds ratio, and the
    degrees of freedom.
    """
    sums = np.einsum("ijk,k->ij", associated(null, REFERENCE) - null.expected, null.weights).ravel()
    far = float(sums @ np.linalg.pinv(null.covariance(), rcond=1e-9, hermitian=True) @ sums)
    i, j, _ = null.expected.shape
    return far, float(scores(i).std() * scores(j).std()), (i - 1) * (j - 1)


def covariances(
    dag: Dag,
    names: Sequence[str],
    arrows: Sequence[tuple[str, str]],
    strength: Mapping[tuple[str, str], float] | None = None,
) -> FloatArray:
    """Return the covariance of the linear model under each alternative; ``strength`` replaces the assumed strengths."""
    place, size, given = {name: i for i, name in enumerate(names)}, len(names), strength or {}
    drawn = np.zeros((size, size))
    for cause, effect in dag.edges:
        default = DRAWN / math.sqrt(len(dag.parents(effect)))
        drawn[place[effect], place[cause]] = given.get((cause, effect), default)
    shared = np.eye(size)
    for a, b in dag.hidden:
        if a in place and b in place:
            shared[place[a], place[b]] = shared[place[b], place[a]] = DRAWN**2
    by = np.repeat(drawn[None], len(arrows), axis=0)
    for k, (cause, effect) in enumerate(arrows):
        by[k, place[effect], place[cause]] = given.get((cause, effect), ABSENT)
    spread = np.linalg.inv(np.eye(size) - by)
    return np.asarray(spread @ shared @ np.swapaxes(spread, 1, 2))


def _reached(dag: Dag, start: str) -> set[str]:
    """Return the columns that ``start`` causes, directly or indirectly."""
    found, queue = {start}, [start]
    for name in queue:
        for other in dag.children(name):
            if other not in found:
                found.add(other)
                queue.append(other)
    return found
