"""Disclosure by rows of stage one, measured by linkage and membership. These figures are always shown next to LID,
which measures only whether a value is close to the real one. The actual harm occurs when a row is traced to its person:
on insurance data, LID was 11 %, but nine in ten people could be identified.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree


def reidentified(known: NDArray[np.float64], released: NDArray[np.float64], whose: NDArray[np.int64]) -> float:
    """Return the share of people whose own released row is the one nearest to what an attacker knows about them.

    ``known`` has one row per person, and ``released`` has the same columns. ``whose[i]`` is the person whose real row
    was blurred into released row i. If several rows are equally near, the attacker picks one at random, and the result
    is the expected share of hits.
    """
    tree = cKDTree(released)
    nearest, _ = tree.query(known)
    own = np.argsort(whose)
    apart = np.linalg.norm(known - released[own], axis=1)
    hits = 0.0
    for i in np.flatnonzero(apart <= nearest + 1e-12):
        hits += 1 / max(1, len(tree.query_ball_point(known[i], nearest[i] + 1e-12)))
    return hits / len(known)


def membership_auc(members: NDArray[np.float64], others: NDArray[np.float64], released: NDArray[np.float64]) -> float:
    """Return the AUC with which the distance to the released rows separates members from others: 0.5 is chance, 1 is
    perfect."""
    tree = cKDTree(released)
    near = np.concatenate([tree.query(members)[0], tree.query(others)[0]])
    truth = np.repeat([1, 0], [len(members), len(others)])
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, -near))
