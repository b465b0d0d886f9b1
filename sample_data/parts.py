"""Building blocks of all samples: descriptions of columns, project files, and random draws."""

from collections.abc import Sequence
from typing import Any

import numpy as np

Column = dict[str, Any]
Table = dict[str, np.ndarray]

YES_NO = ("no", "yes")
SEXES = ("female", "male")


def categorical(name: str, categories: Sequence[str], missing: bool = False) -> Column:
    """Return a column whose values have no order."""
    return _column({"name": name, "kind": "categorical", "categories": list(categories)}, missing)


def ordinal(name: str, categories: Sequence[str], missing: bool = False) -> Column:
    """Return a column whose categories are listed from low to high."""
    return _column({"name": name, "kind": "ordinal", "categories": list(categories)}, missing)


def numeric(name: str, edges: Sequence[float], integer: bool = True, missing: bool = False) -> Column:
    """Return a column of numbers between the first and the last edge."""
    return _column({"name": name, "kind": "numeric", "edges": list(edges), "integer": integer}, missing)


def _column(column: Column, missing: bool) -> Column:
    return {**column, "missing": True} if missing else column


def project(
    name: str, schema: list[Column], edges: list[list[str]], roles: dict[str, list[str]], **plan: Any
) -> dict[str, Any]:
    """Return a complete project file; ``plan`` holds the keys that differ from the plan that all samples share."""
    shared = {
        "method": "prism",
        "regime": "predictive",
        "fair": False,
        "target": None,
        "epsilon": 1.0,
        "delta": None,
        "neighbors": "replace-one",
        "rows_per_person": 1,
        "allocation": "auto",
        "accounting": "zcdp",
        "features": 8,
        "rows": None,
    }
    return {
        "format": "espalier-project/1",
        "name": name,
        "schema": schema,
        "one_row_per_person": "person" not in plan,
        "dag": {"edges": edges, "notes": {}, "positions": {}},
        "roles": roles,
        "plan": {**shared, **plan},
    }


def pick(rng: np.random.Generator, weights: Any, rows: int) -> np.ndarray:
    """Return one index per row, with probabilities in proportion to ``weights``, of shape (k,) or (rows, k)."""
    weights = np.broadcast_to(weights, (rows, np.shape(weights)[-1]))
    steps = np.cumsum(weights, axis=1)
    return np.asarray((rng.random((rows, 1)) * steps[:, -1:] >= steps).sum(axis=1))


def coin(rng: np.random.Generator, logit: Any, rows: int) -> np.ndarray:
    """Return one 0 or 1 per row; ``logit`` is the log-odds of 1, one number or one per row."""
    return np.asarray((rng.random(rows) < 1 / (1 + np.exp(-np.broadcast_to(logit, rows)))).astype(int))


def named(categories: Sequence[str], index: np.ndarray) -> np.ndarray:
    """Return the category of each index, as text."""
    return np.asarray(np.array(categories, dtype=object)[index])


def text(numbers: np.ndarray, digits: int = 0) -> np.ndarray:
    """Return the numbers as text, in the form of a table's cells."""
    return np.array([f"{number:.{digits}f}" for number in numbers.tolist()], dtype=object)


def within(numbers: np.ndarray, edges: Sequence[float]) -> np.ndarray:
    """Return the numbers kept between the first and the last declared edge."""
    return np.asarray(np.clip(numbers, edges[0], edges[-1]))


def blank(rng: np.random.Generator, cells: np.ndarray, share: float) -> np.ndarray:
    """Return the same cells with about ``share`` of them left empty."""
    return np.where(rng.random(len(cells)) < share, "", cells)
