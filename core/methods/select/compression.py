"""Merging of rare categories, found from noisy counts, into one group (MST's domain compression)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from espalier.core.privacy.draws import Measurement, Merged, fold

RARE = 3.0
"""A category is rare if its noisy count is below this many standard deviations of the noise (MST: McKenna, Miklau &
Sheldon 2021, §4)."""


def rare_categories(one_way: Sequence[Measurement]) -> Merged:
    """Return the groups of each column with two or more rare categories: all rare categories form one group.

    The result depends only on noisy counts. A column with only rare categories stays unchanged, because merging all of
    them would make it useless.
    """
    merged = {}
    for m in one_way:
        rare = m.values < RARE * m.sigma
        if 2 <= rare.sum() < len(rare):
            groups = np.cumsum(~rare) - 1
            groups[rare] = (~rare).sum()
            merged[m.clique[0]] = groups.astype(np.intp)
    return merged


def folded(one_way: Measurement, merged: Merged) -> Measurement:
    """Return a one-way measurement over the groups.

    Its ``sigma`` is the root mean square over the groups: the sum of m rare categories has √m times the noise of one
    category.
    """
    (name,) = one_way.clique
    if name not in merged:
        return one_way
    values = fold(one_way.values, one_way.clique, merged)
    sigma = one_way.sigma * float(np.sqrt(one_way.values.size / values.size))
    return replace(one_way, values=values, sigma=sigma)
