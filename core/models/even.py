"""Even draws: numbers in [0, 1) that select the rows' codes and are spread evenly over rows with equal causes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

GOLDEN = (5**0.5 - 1) / 2


def uniforms(
    rows: int, causes: Iterable[tuple[NDArray[Any], int]] | None, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each row, independent or spread evenly over rows with equal ``causes``.

    Each of ``causes`` is a column's codes and its number of categories. To spread the numbers, rows are sorted by the
    causes' codes, with ties in random order, and receive the multiples of the golden ratio modulo 1 from a random
    start. Each number alone is uniform, so every row is drawn from the model. Any run of neighbours fills [0, 1)
    evenly, so counts have smaller errors than with independent rows.
    """
    if causes is None:
        return rng.random(rows)
    group = np.zeros(rows, dtype=np.uint64)
    for codes, size in causes:
        group = group * np.uint64(size) + codes.astype(np.uint64)
    ties = rng.permutation(rows)
    out = np.empty(rows)
    out[ties[np.argsort(group[ties], kind="stable")]] = (rng.random() + GOLDEN * np.arange(rows)) % 1
    return out
