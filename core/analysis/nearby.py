"""The part of a release's counts on which one question depends. Copies of this part take a fraction of a second.

A model over all columns factorises along a junction tree. The cliques that join the columns of a question determine the
joint distribution of these columns. Other cliques only add counts of the columns that they share with these cliques.
All other columns are therefore summed out of every noisy count, which adds up the noise of the summed cells. The copies
fit the remaining counts.

The columns that remain are found by Graham's reduction of the junction tree (Tarjan & Yannakakis 1984): repeatedly
leave out columns that are in only one clique and in no question, then cliques contained in another clique, until
nothing changes. If a counted clique contains all columns of the question, exactly these columns remain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.noisy_counts import NoisyCounts
from espalier.core.graph.elimination import eliminate
from espalier.core.graph.separations import Clique
from espalier.core.privacy.draws import Measurement


def nearby(sizes: Mapping[str, int], cliques: Iterable[Clique], wanted: Iterable[str]) -> tuple[str, ...]:
    """Return ``wanted`` and the columns that join them in a model of these ``cliques``, in the order of ``sizes``."""
    asked = set(wanted)
    found = [{name, *around} for name, around in eliminate(sizes, cliques)]
    found += [{name} for name in asked if sizes[name] <= 1]
    while True:
        often: dict[str, int] = {}
        for clique in found:
            for name in clique:
                often[name] = often.get(name, 0) + 1
        kept = [{name for name in clique if name in asked or often[name] > 1} for clique in found]
        kept = [
            clique
            for i, clique in enumerate(kept)
            if clique and not any(clique < other or (clique == other and j < i) for j, other in enumerate(kept))
        ]
        if kept == found:
            return tuple(name for name in sizes if any(name in clique for clique in found))
        found = kept


def summed_out(counts: NoisyCounts, columns: Sequence[str]) -> NoisyCounts:
    """Return the counts over ``columns`` alone; counts of the same columns are weighted by their precision."""
    sums: dict[Clique, NDArray[np.float64]] = {}
    precision: dict[Clique, float] = {}
    for m in counts.measurements:
        clique, values = _over(m, columns)
        if clique:
            weight = values.size / (m.sigma**2 * m.values.size)
            sums[clique] = sums.get(clique, 0.0) + weight * values
            precision[clique] = precision.get(clique, 0.0) + weight
    impossible: dict[Clique, NDArray[np.bool_]] = {}
    for clique, mask in counts.impossible.items():
        left = tuple(name for name in clique if name in columns)
        out = tuple(axis for axis, name in enumerate(clique) if name not in columns)
        never = mask.all(axis=out)
        if left and never.any():
            impossible[left] = impossible.get(left, np.zeros_like(never)) | never
    return NoisyCounts(
        tuple(Measurement(clique, sums[clique] / p, p**-0.5) for clique, p in precision.items()),
        counts.rows,
        {name: groups for name, groups in counts.merged.items() if name in columns},
        impossible,
    )


def _over(m: Measurement, columns: Sequence[str]) -> tuple[Clique, NDArray[np.float64]]:
    out = tuple(axis for axis, name in enumerate(m.clique) if name not in columns)
    return tuple(name for name in m.clique if name in columns), m.values.sum(axis=out)


def cells(sizes: Mapping[str, int], counts: NoisyCounts) -> float:
    """Return the number of cells of the largest tables that a fit of ``counts`` needs."""
    found = eliminate(sizes, [m.clique for m in counts.measurements])
    return float(sum(math.prod(sizes[name] for name in (own, *around)) for own, around in found))
