"""Random generators for public purposes, such as synthetic rows, random features and starting points, but never for
protective noise.

A resumed release needs the same random numbers again in order to ask the same questions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Chance = Callable[[], np.random.Generator]
"""Function that returns a new generator with each call."""


def fresh() -> np.random.Generator:
    """Return a generator with a fresh seed that no one knows."""
    return np.random.default_rng()


def seeded(seed: int) -> Chance:
    """Return a function that yields the same sequence of generators for the same ``seed``."""
    first = np.random.default_rng(seed)
    return lambda: first.spawn(1)[0]
