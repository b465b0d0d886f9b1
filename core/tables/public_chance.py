"""Random generators for public purposes, such as synthetic rows, random features and starting points, but never for
protective noise.

A resumed release needs the same random numbers again in order to ask the same questions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

Chance = Callable[[], np.random.Generator]
"""Function that returns a new generator with each call."""


def fresh() -> np.random.Generator:
    """Return a generator with a fresh seed that no one knows."""
    return np.random.default_rng()


def seeded(seed: int) -> Chance:
    """Return a function that yields the same sequence of generators for the same ``seed``."""
    first = np.random.default_rng(seed)
    return lambda: first.spawn(1)[0]


def seeded_by(answers: Iterable[NDArray[np.float64]]) -> np.random.Generator:
    """Return a generator whose seed depends only on noisy ``answers``, so another fit to them gives the same model."""
    hashed = hashlib.sha256()
    for values in answers:
        hashed.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
    return np.random.default_rng(np.frombuffer(hashed.digest(), "<u4"))
