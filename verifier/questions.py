"""How far one row moves the answers to a project's questions, from their public description alone."""

import math
from typing import Any

import numpy as np

from .folder import Array, Folder, edges_of, values_of

FEW = 4_000
"""All rows are tried where there are at most so many; else so many at random, each meeting some of the conditions."""


def squared(folder: Folder, draw: dict[str, Any]) -> int:
    """Δ² of a draw of ``questions`` for one row per person: the most answers that one row changes.

    It is exact where all rows are tried. Otherwise it is the most that was found, so Δ² may be larger. Conditions that
    name bins by their label are not read, and the statement's number is taken.
    """
    asked, stated = folder.facts["project"].get("questions", []), int(draw["given"]["squared"])
    if draw["cells"] in (0, 1) or draw["cells"] != len(asked):
        return max(1, draw["cells"])  # no answer moves by more than 1
    try:
        return furthest(folder, asked, replace=folder.statement["unit"]["neighbors"] == "replace-one")
    except ValueError as error:
        folder.note(2, f"the squared sensitivity of the questions is taken from the statement, {stated}: {error}")
        return stated


def furthest(folder: Folder, asked: list[dict[str, Any]], *, replace: bool) -> int:
    """The most answers that a row changes when it comes or goes, or becomes another one (``replace``)."""
    parts = [*(where for q in asked for where in ways(q)), *(c["of"] for c in counts(folder))]
    sizes = {n: s for n, s in folder.sizes.items() if any(n in where for where in parts)}
    rows = np.indices(list(sizes.values())) if math.prod(sizes.values()) <= FEW else np.zeros((len(sizes), FEW), int)
    codes = dict(zip(sizes, rows.reshape(len(sizes), -1), strict=True))
    if math.prod(sizes.values()) > FEW:
        rng = np.random.default_rng(0)
        for name, size in sizes.items():
            codes[name] = rng.integers(0, size, FEW)
        for row in range(FEW):
            for i in rng.permutation(len(parts))[: row % 8]:
                for name in parts[i].keys() & sizes.keys():
                    codes[name][row] = rng.choice(codes_of(folder, name, parts[i][name]))
    patterns = np.unique(answers(folder, codes), axis=1).astype(float)
    met = patterns.sum(axis=0)
    apart = met[:, None] + met - 2 * patterns.T @ patterns
    return max(1, int((apart if replace else met).max()))


def ways(question: dict[str, Any]) -> list[dict[str, Any]]:
    """The alternatives of a question: conditions by column."""
    return question.get("any") or [question["where"]]


def counts(folder: Folder) -> list[dict[str, Any]]:
    """The counts of a project: each is the number of its conditions ``of`` that a row meets, cut at ``up_to``."""
    return list(folder.facts["project"].get("counts", []))


def answers(folder: Folder, rows: dict[str, Array]) -> Array:
    """Which questions (lines) the rows (columns) meet."""
    seen = dict(rows)
    for c in counts(folder):
        met = sum(np.isin(seen[n], codes_of(folder, n, v)).astype(int) for n, v in c["of"].items())
        seen[c["name"]] = np.minimum(met, c.get("up_to", len(c["of"])))
    asked = folder.facts["project"]["questions"]
    each = {(n, *v): np.isin(seen[n], codes_of(folder, n, v)) for q in asked for w in ways(q) for n, v in w.items()}
    return np.array(
        [np.any([np.all([each[n, *v] for n, v in w.items()], axis=0) for w in ways(q)], axis=0) for q in asked]
    )


def codes_of(folder: Folder, name: str, values: list[Any]) -> list[int]:
    """The codes of the categories, the bins between two edges, or the numbers of a count that a condition lists."""
    column = next((c for c in folder.columns if c["name"] == name), None)
    if column is None:
        return list(range(int(values[0]), int(values[1]) + 1))
    if "edges" in column and all(isinstance(v, int | float) for v in values):
        low, high = map(edges_of(column).index, values)
        return list(range(low, high))
    last = len(values_of(column))
    return [last if v == "(missing)" and column.get("missing") else values_of(column).index(v) for v in values]
