"""Random numbers of a fit, such as its starting rows."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray


def settled(answers: NDArray[np.float64]) -> np.random.Generator:
    """Return a generator whose seed is a digest of noisy ``answers``. A resumed release, which has the same answers,
    then fits the same model.
    """
    digest = hashlib.sha256(np.ascontiguousarray(answers, dtype="<f8").tobytes()).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))
