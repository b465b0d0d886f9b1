"""Workload of a plan: the weights of columns, pairs and triples, and the size of the model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from espalier.core.errors import ProjectError
from espalier.core.graph.separations import Clique
from espalier.core.methods.select.cliques import MOST_ROUNDS
from espalier.core.project.file import Project
from espalier.core.project.options import option, read_options

MAX_CELLS = 100_000
"""Number of cells in the largest clique. On Adult at ε = 1, 50,000 cells give a TV of 0.0097 in 1.6 s, and 200,000
cells give 0.0092 in 6 s.
"""

WIDTH, MOST_PAIRS, BATCHES = 6, 80, 8
"""Limits if pairs are chosen one at a time: the size of the largest clique minus one, the maximum number of pairs added
to the tree, and the number of batches. On Adult at ε = 1, width 4 with 4 batches gives a TV of 0.0098, and these values
give 0.0090. On alarm with 30,000 rows, 4 batches give 0.0062 and 8 batches 0.0055.
"""

PER_COLUMN = 2
"""Maximum number of choices per column, if pairs are chosen one at a time and their counts are noisy. Mean two-way TV
at ε = 1 of six random networks of twelve binary columns (1,600 rows) and two draws of asia (1,200 and 1,600), ten runs
each: 0.0176 with up to 40 pairs, 0.0170 with 16; 0.0168 with up to 40 pairs and tables of three or four columns that
are measured instead of their pairs, 0.0160 to 0.0162 with 16 or 24. Adult, whose columns are larger (five runs): 0.0095
with up to 40, 0.0090 with 26.
"""


@dataclass(frozen=True)
class WorkloadOptions:
    """Options of the workload method: the purpose of the table, the size of the model, and the report on the fence."""

    weights: Mapping[str, float] = option(
        {},
        "Weights of columns, pairs and triples",
        weights=True,
        low=0.0,
        high=1000.0,
        help="Importance of each column, pair or triple; the default is 1. A column's weight applies to all its "
        'pairs, and 0 excludes them. "age × income" weights one pair. Three names add a table of three columns as a '
        "candidate.",
    )
    triples: int = option(
        0,
        "Maximum number of tables of three columns",
        low=0,
        high=20,
        whole=True,
        help="In the second round, three columns that the first round linked may be counted together. Such tables show "
        "how two columns act together on a third, but are noisier. Three to five columns with few values are "
        "counted together regardless of this limit if that makes the counts of their pairs more precise.",
    )
    clique_cells: int = option(
        MAX_CELLS,
        "Maximum number of cells in a table of the model",
        low=100,
        high=100_000_000,
        whole=True,
        help="More cells allow more pairs, but take more time and memory.",
    )
    explain: float = option(
        0.0,
        "Share of the budget for explaining the fence's cost",
        low=0.0,
        high=0.5,
        fenced=True,
        help="Buys noisy scores of the pairs that the fence refuses, and an estimate of the fence's cost. Without "
        "this share, a release reports neither. The share reduces the budget for the counts.",
        pool="explain",
        unbought="The fence of this plan refuses no pair in a tree, so the explanation share buys nothing",
    )


@dataclass(frozen=True)
class Workload:
    """Purpose of the table. ``columns`` and ``cliques`` have weights, which default to 1. A pair has the weight given
    for it, or otherwise the product of its columns' weights. ``cliques`` may contain triples, which become further
    candidates. ``max_cells`` caps the model; at most ``triples`` additional tables join the second round. Pairs chosen
    one at a time are measured in ``batches``, with at most ``rounds`` choices unless pairs have little noise. With
    ``together``, small columns may be measured together. With ``compared``, all pairs are scored together if the scores
    are clear.
    """

    columns: Mapping[str, float] = field(default_factory=dict)
    cliques: Mapping[Clique, float] = field(default_factory=dict)
    max_cells: int = MAX_CELLS
    triples: int = 0
    batches: int = BATCHES
    rounds: int = MOST_ROUNDS
    together: bool = False
    compared: bool = False

    @classmethod
    def of(cls, project: Project) -> Workload:
        """Return the workload that the plan describes; raise :class:`ProjectError` for an unknown name."""
        options = read_options(WorkloadOptions, project.plan.options)
        given = {_columns_of(project, name): weight for name, weight in options.weights.items()}
        return cls(
            {q[0]: weight for q, weight in given.items() if len(q) == 1},
            {q: weight for q, weight in given.items() if len(q) > 1},
            min(options.clique_cells, project.plan.max_cells),
            options.triples,
            rounds=min(MOST_ROUNDS, PER_COLUMN * len(project.schema.names)),
            together=True,
            compared=True,
        )

    @property
    def weighted(self) -> bool:
        """True if the workload gives candidates different weights, other than by leaving some out."""
        given = (*self.columns.values(), *self.cliques.values())
        return (
            self.triples > 0
            or any(weight not in (0.0, 1.0) for weight in given)
            or any(len(q) > 2 for q in self.cliques)
        )

    def weight(self, clique: Clique) -> float:
        """Return the weight of one marginal."""
        return self.cliques.get(clique, math.prod(self.columns.get(name, 1.0) for name in clique))

    def candidates(self, sizes: Mapping[str, int]) -> list[Clique]:
        """Return all pairs of columns with two values or more, and the named cliques, except those with weight 0 and
        those that are too large.
        """
        varied = [name for name in sizes if sizes[name] > 1]
        pairs = [*itertools.combinations(varied, 2), *(q for q in self.cliques if len(q) > 2)]
        return [
            q
            for q in dict.fromkeys(pairs)
            if self.weight(q) > 0 and math.prod(sizes[name] for name in q) <= self.max_cells
        ]


def _columns_of(project: Project, name: str) -> Clique:
    """Return the column, pair or triple called ``name``."""
    schema = project.schema
    parts = [name] if name in schema.names else name.split(" × ")
    if not set(parts) <= set(schema.names) or len(set(parts)) < len(parts) or len(parts) > 3:
        raise ProjectError(
            f"plan: weights names {name!r}, which is neither a column nor two or three of them, such as 'a × b'",
            key="weights",
        )
    return schema.clique(parts)
