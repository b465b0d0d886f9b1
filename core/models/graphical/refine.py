"""Expansion of a model over groups of categories to the categories themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from espalier.core.models.graphical.model import GraphicalModel


def refine(model: GraphicalModel, sizes: Mapping[str, int], groups: Mapping[str, NDArray[np.intp]]) -> GraphicalModel:
    """Return ``model`` over all categories. ``groups[column]`` has the group number of each category. A group's
    probability is divided evenly among its categories.

    p(x) = p(g(x)) / Π |g(x_column)|, so every marginal over groups and every conditional independence is preserved,
    because the category within a group depends on nothing else.
    """
    potentials = dict(model.potentials)
    for name, group in groups.items():
        divided = False
        for clique, table in potentials.items():
            if name in clique:
                axis = clique.index(name)
                table = np.take(table, group, axis=axis)
                if not divided:
                    share = -np.log(np.bincount(group)[group])
                    table = table + share.reshape([-1 if i == axis else 1 for i in range(len(clique))])
                    divided = True
                potentials[clique] = table
        if not divided:
            potentials[(name,)] = -np.log(np.bincount(group)[group])
    return replace(model, sizes=dict(sizes), potentials=potentials)
