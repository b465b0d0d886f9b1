"""Generators for public chance: synthetic rows, random features, starting points. Never for noise that protects.

A release that was interrupted needs the same chance again, so that it asks the same questions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Chance = Callable[[], np.random.Generator]
"""Returns another generator with each call."""


def fresh() -> np.random.Generator:
    """Return a generator that no one can repeat."""
    return np.random.default_rng()


def seeded(seed: int) -> Chance:
    """Return a chance that returns the same generators, one after the other, for the same ``seed``."""
    first = np.random.default_rng(seed)
    return lambda: first.spawn(1)[0]
