"""Independences that a drawing implies and a table could contradict, chosen only from the drawing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from espalier.core.graph.adjustment import minimal_separators
from espalier.core.graph.dag import Dag
from espalier.core.graph.separations import Separation

MOST_CELLS = 2000
"""Maximum number of cells of a statement's table. The cells of larger tables would contain only noise."""


def statements(
    dag: Dag, sizes: Mapping[str, int], first: Sequence[str] = (), latent: Iterable[str] = (), most: int = 5
) -> tuple[Separation, ...]:
    """Return up to ``most`` implied independences, one per missing arrow, given the cheapest separating set.

    Independences that involve ``first`` (the target or the treatment) come first, followed by independences over fewer
    cells, whose test is more sensitive. ``latent`` are drawn columns that the table does not have. Columns that the
    drawing does not name are left out, because the drawing implies nothing about them. No data is read.
    """
    hidden = set(latent)
    drawn = {name for edge in dag.edges for name in edge} - hidden
    names = [name for name in sizes if name in drawn and sizes[name] > 1]
    linked = {frozenset(edge) for edge in (*dag.edges, *dag.hidden)}
    found = []
    for a, b in itertools.combinations(names, 2):
        if frozenset((a, b)) in linked:
            continue
        sets = minimal_separators(dag.links, a, b, set(names) - {a, b}, sizes)
        if not sets:
            continue
        cells = math.prod(sizes[n] for n in (a, b, *sets[0].columns))
        if cells <= MOST_CELLS:
            given = tuple(n for n in sizes if n in sets[0].columns)
            found.append(
                (not {a, b} & set(first), cells, Separation((a,), (b,), given, "the drawing has no arrow between them"))
            )
    found.sort(key=lambda entry: entry[:2])
    return tuple(statement for _, _, statement in found[:most])


def check_statement(dag: Dag, statement: Separation) -> str:
    """Return an empty string if the drawing implies ``statement``, otherwise a sentence that names an open path."""
    from espalier.core.graph.paths import open_paths

    if len(statement.left) != 1 or len(statement.right) != 1:
        return "A statement needs two columns."
    found = open_paths(dag.links, statement.left, statement.right, statement.given, most=1).paths
    if not found:
        return ""
    return f"The drawing does not imply this: the path {' – '.join(found[0])} stays open."
