"""Random small workloads, and their answers by brute force over every row."""

from __future__ import annotations

import numpy as np

from espalier.core.models.question_fit import Count, Question


def workload(rng, columns=5, questions=8, with_counts=True):
    """Return sizes, questions and counts, with conjunctions, disjunctions and counts in conditions."""
    sizes = {f"c{i}": int(rng.integers(1, 4)) for i in range(columns)}
    counts = []
    if with_counts:
        for j in range(2):
            held = rng.permutation(list(sizes))[: rng.integers(1, columns + 1)]
            members = {str(c): codes(sizes[c], rng) for c in held}
            counts.append(Count(f"n{j}", members, int(rng.integers(1, 5))))
    every = {**sizes, **{c.name: c.size for c in counts}}
    asked = []
    for j in range(questions):
        alternatives = []
        for _ in range(rng.integers(1, 4)):
            held = rng.permutation(list(every))[: rng.integers(1, 4)]
            alternatives.append({str(c): codes(every[c], rng) for c in held})
        asked.append(Question(f"q{j}", tuple(alternatives)))
    return sizes, asked, counts


def codes(size, rng):
    return tuple(sorted(rng.permutation(size)[: rng.integers(1, size + 1)].tolist()))


def every_row(sizes):
    """Return the codes of all rows that can be encoded."""
    table = np.indices(list(sizes.values())).reshape(len(sizes), -1)
    return dict(zip(sizes, table, strict=True))


def answers(rows, questions, counts):
    """Return whether each question holds, one line per question, and the counts of each row."""
    told = {c.name: c.values(rows) for c in counts}
    both = {**rows, **told}
    return np.array([q.holds(both) for q in questions], dtype=float), told
