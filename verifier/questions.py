"""The effect of one row on the answers to a project's questions, from their public description alone."""

import math
from typing import Any

import numpy as np

from .folder import Array, Folder, edges_of, values_of

FEW, MOST = 4_000, 20_000_000
"""Up to this number of rows, all rows are tried; if there are more, this number of random rows, each satisfying some
conditions.
"""


def squared(folder: Folder, draw: dict[str, Any]) -> int:
    """Return Δ² of a draw of ``questions`` for one row per person: the largest number of answers that one row changes.

    It is exact if all rows are tried. Otherwise it is the largest value found, so Δ² may be larger. Conditions that
    name bins by their label are not read; the statement's number is used.
    """
    project, stated = folder.facts["project"], int(draw["given"]["squared"])
    if draw["cells"] == 1 and folder.facts["method"] == "fpt-mw":
        return 1
    if draw["pool"] == "analyses" and project.get("analyses"):  # the cells of an analysis: a row is in at most one
        return 2 if folder.statement["unit"]["neighbors"] == "replace-one" else 1
    if draw["cells"] != len(project["questions"]):
        raise TypeError(f"{draw['cells']} questions are answered, but the project has {len(project['questions'])}")
    try:
        patterns = np.unique(answers(folder, candidates(folder)), axis=1).astype(np.float32)
    except ValueError as error:
        folder.note(2, f"the squared sensitivity of the questions is taken from the statement, {stated}: {error}")
        return stated
    met = patterns.sum(axis=0)  # the answers to which each kind of row adds
    apart = -2 * patterns.T @ patterns
    apart += met
    apart += met[:, None]  # the answers in which two kinds of rows differ
    return max(1, int((apart if folder.statement["unit"]["neighbors"] == "replace-one" else met).max()))


def conditions(question: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the alternatives of a question, or the conditions of a count: values by column."""
    return question.get("any") or [question.get("where") or question["of"]]


def candidates(folder: Folder) -> dict[str, Array]:
    """Return the codes of all rows, or of `FEW` rows that each meet up to seven conditions."""
    project = folder.facts["project"]
    parts = [part for q in [*project["questions"], *project.get("counts", [])] for part in conditions(q)]
    sizes = {n: s for n, s in folder.sizes.items() if any(n in part for part in parts)}
    few = min(FEW, MOST // max(len(parts), 1))
    if math.prod(sizes.values()) <= few:
        return dict(zip(sizes, np.indices(list(sizes.values())).reshape(len(sizes), -1), strict=True))
    rng = np.random.default_rng(0)
    rows = {n: rng.integers(0, size, few) for n, size in sizes.items()}
    for row in range(few):
        for part in (parts[i] for i in rng.permutation(len(parts))[: row % 8]):
            for name in part.keys() & sizes.keys():
                rows[name][row] = rng.choice(codes_of(folder, name, part[name]))
    return rows


def answers(folder: Folder, rows: dict[str, Array]) -> Array:
    """Return whether the rows (columns) satisfy the questions (lines)."""
    project, seen = folder.facts["project"], dict(rows)

    def met(part: dict[str, Any]) -> list[Array]:
        return [np.isin(seen[name], codes_of(folder, name, values)) for name, values in part.items()]

    for c in project.get("counts", []):
        seen[c["name"]] = np.minimum(np.sum(met(c["of"]), axis=0), c.get("up_to", len(c["of"])))
    return np.array(
        [np.any([np.all(met(part), axis=0) for part in conditions(q)], axis=0) for q in project["questions"]]
    )


def codes_of(folder: Folder, name: str, values: list[Any]) -> list[int]:
    """Return the codes that a condition lists: categories, bins between two edges, or numbers of a count."""
    column = next((c for c in folder.columns if c["name"] == name), None)
    if column is None:
        return list(range(int(values[0]), int(values[1]) + 1))
    if "edges" in column and all(isinstance(v, int | float) for v in values):
        low, high = map(edges_of(column).index, values)
        return list(range(low, high))
    last = len(values_of(column))
    return [last if v == "(missing)" and column.get("missing") else values_of(column).index(v) for v in values]
