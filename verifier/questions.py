"""The effect of one row on the answers to a project's questions, computed from their public description alone."""

import itertools
import math
from typing import Any

import numpy as np

from .folder import Array, Folder, edges_of

FEW, MOST = 4_000, 20_000_000
"""Number of rows up to which all possible rows are tried. If there are more, this number of random rows is tried, each
of which satisfies some conditions.
"""


def squared(folder: Folder, draw: dict[str, Any]) -> int:
    """Return Δ² of a draw of ``questions`` for one row per person: the largest number of answers that one row changes.

    The value is exact if all rows are tried. Otherwise it is the largest value found, and Δ² may be larger. Questions
    about date labels are not read; if there are any, the value returned is at least the value in the
    statement.
    """
    project, stated = folder.facts["project"], int(draw["given"]["squared"])
    if draw["cells"] == 1 and folder.facts["method"] == "fpt-mw":
        return 1
    if draw["pool"] == "analyses" and project.get("analyses"):  # a row is in at most one of an analysis's cells
        alike = [d for d in folder.statement["draws"] if (d["pool"], d["recipe"]) == ("analyses", "questions")]
        if sorted(d["cells"] for d in alike) != sorted(filter(None, (counted(folder, a) for a in project["analyses"]))):
            raise ValueError("the draws do not have the cells of the analyses")
        return 2 if folder.statement["unit"]["neighbors"] == "replace-one" else 1
    if draw["cells"] != len(project["questions"]):
        raise TypeError(f"{draw['cells']} questions are answered, but the project has {len(project['questions'])}")
    counts = [c for c in project.get("counts", []) if readable(folder, c, [])]
    asked = [q for q in project["questions"] if readable(folder, q, counts)]
    if len(asked) < draw["cells"]:
        folder.note(
            2, f"the squared sensitivity of the questions may be above the statement's, {stated}: dates are not read"
        )
    if not asked:
        return stated
    patterns = np.unique(answers(folder, asked, counts), axis=1).astype(np.float32)
    met = patterns.sum(axis=0)  # the answers to which each row contributes
    apart = -2 * patterns.T @ patterns
    apart += met
    apart += met[:, None]  # the answers in which two rows differ
    found = int((apart if folder.statement["unit"]["neighbors"] == "replace-one" else met).max())
    return max(1, found, stated if len(asked) < draw["cells"] else 1)


def counted(folder: Folder, analysis: dict[str, Any]) -> int:
    """Return the number of cells that a planned analysis counts: groups, with and without the event; 0 for a
    regression."""
    values = {c["name"]: folder.sizes[c["name"]] - bool(c.get("missing")) for c in folder.columns}
    groups, kind = 2 if analysis.get("group") else 1, analysis["kind"]
    if kind == "effect":  # rows in other groups are also counted, in each stratum
        strata = math.prod(values[name] for name in analysis["adjust"])
        groups = strata * min(values[analysis["group"].partition("=")[0]], 3)
    if kind == "survival":
        groups *= values[analysis["time"]]
    return 0 if kind == "regression" else 2 * groups


def conditions(question: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the alternatives of a question, or the conditions of a count, as values by column."""
    (key,) = question.keys() & {"any", "where", "of"}
    return list(question["any"]) if key == "any" else [question[key]]


def readable(folder: Folder, question: dict[str, Any], counts: list[dict[str, Any]]) -> bool:
    """Return whether a question or a count names only columns, counts and values that this program reads."""
    named = [(name, values) for part in conditions(question) for name, values in part.items()]
    try:
        known = {*folder.sizes, *(c["name"] for c in counts)}
        return all(name in known and codes_of(folder, name, values) for name, values in named)
    except ValueError:
        return False


def candidates(folder: Folder, parts: list[dict[str, Any]]) -> dict[str, Array]:
    """Return the codes of all rows, or of `FEW` rows, each of which meets up to seven of the conditions ``parts``."""
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


def answers(folder: Folder, asked: list[dict[str, Any]], counts: list[dict[str, Any]]) -> Array:
    """Return whether each row (a column of the result) satisfies each question (a line of the result)."""
    seen = candidates(folder, [part for q in [*asked, *counts] for part in conditions(q)])

    def met(part: dict[str, Any]) -> list[Array]:
        return [np.isin(seen[name], codes_of(folder, name, values)) for name, values in part.items()]

    for c in counts:
        seen[c["name"]] = np.minimum(np.sum(met(c["of"]), axis=0), c.get("up_to", len(c["of"])))
    return np.array([np.any([np.all(met(part), axis=0) for part in conditions(q)], axis=0) for q in asked])


def codes_of(folder: Folder, name: str, values: list[Any]) -> list[int]:
    """Return the codes that a condition lists: categories, bins between two edges, or numbers of a count."""
    column = next((c for c in folder.columns if c["name"] == name), None)
    if column is None:
        return list(range(int(values[0]), int(values[1]) + 1))
    edges = edges_of(column) if "edges" in column else []
    if edges and all(isinstance(v, int | float) for v in values):
        return list(range(*map(edges.index, values)))
    ends = [f"{edge:,.10g}" for edge in edges]
    names = [f"{low} – <{high}" for low, high in itertools.pairwise(ends[:-1])] + [" – ".join(ends[-2:])]
    names = [*(column.get("categories") or names), *["(missing)"] * bool(column.get("missing"))]
    return [names.index(value) for value in values]
