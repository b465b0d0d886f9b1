"""Automaton that evaluates a question column by column: the ordered decision diagram of a disjunction of conjunctions.

After some columns have been read, the answer depends only on the alternatives that are still possible and on their
conditions on the remaining columns. Together these are the *residual* (the paper's word, Definition 14; an ordered
binary decision diagram of Bryant 1986 has the same states). Alternatives with the same remaining conditions are merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import SizeError
from espalier.core.project.question_types import Question, allowed

MAX_STATES = 20_000
"""Maximum number of states after one column. A table in the dynamic program has the square of this number of cells."""

IntArray = NDArray[np.intp]

DONE, FAILED = -1, -2
"""The two final residuals: no conditions remain, or no alternative is possible."""


@dataclass(frozen=True)
class Automaton:
    """``steps[i][state, code]`` is the state after column ``columns[i]``; before the first column there is one state.

    States are numbered in the order in which they are found. The last step ends in 0 (the question does not hold) or 1
    (it holds).
    """

    columns: tuple[str, ...]
    steps: tuple[IntArray, ...]


def automaton(question: Question, columns: Sequence[str], sizes: Sequence[int]) -> Automaton:
    """Return the automaton that reads ``columns`` (all of the question's columns) of ``sizes`` in this order.

    Raises `SizeError` if it needs more than `MAX_STATES` states.
    """
    asks = [
        [
            allowed(condition[c], n) if c in condition else np.ones(n, dtype=bool)
            for c, n in zip(columns, sizes, strict=True)
        ]
        for condition in question.alternatives
    ]
    number: dict[tuple[bytes, int], int] = {}
    follow: list[tuple[NDArray[np.bool_], int]] = []  # suffix → (mask of its first column, the rest)
    starts = set()
    for masks in asks:
        suffix = DONE
        for mask in reversed(masks):
            key = (mask.tobytes(), suffix)
            if suffix < 0 and mask.all():
                continue
            if key not in number:
                number[key] = len(follow)
                follow.append((mask, suffix))
            suffix = number[key]
        starts.add(suffix)
    states: list[frozenset[int]] = [frozenset({DONE} if DONE in starts else starts)]
    steps: list[IntArray] = []
    for i, size in enumerate(sizes):
        last = i + 1 == len(sizes)
        met: dict[frozenset[int], int] = {frozenset(): 0, frozenset({DONE}): 1} if last else {}
        step = np.empty((len(states), size), dtype=np.intp)
        for s, state in enumerate(states):
            for code in range(size):
                alive = {_after(suffix, follow, code) for suffix in state} - {FAILED}
                step[s, code] = met.setdefault(frozenset({DONE} if DONE in alive else alive), len(met))
            if len(met) > MAX_STATES:
                raise SizeError(
                    f"The question {question.name!r} needs more than {MAX_STATES:,} states after {columns[i]!r}. Use "
                    f"fewer columns or fewer alternatives.",
                    question=question.name,
                    cells=len(met),
                    limit=MAX_STATES,
                )
        steps.append(step)
        states = list(met)
    return Automaton(tuple(columns), tuple(steps))


def _after(suffix: int, follow: Sequence[tuple[NDArray[np.bool_], int]], code: int) -> int:
    """Return the residual after one more column has this code."""
    if suffix < 0:
        return suffix
    mask, after = follow[suffix]
    return after if mask[code] else FAILED
