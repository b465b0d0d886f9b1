"""Small tables, sources and projects written out by hand, and what was bought, by kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Clique
from espalier.core.privacy.draws import Draw
from espalier.core.privacy.spending import Spending
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema, smallest_unsigned
from espalier.core.tables.table import Table


def schema_of(**sizes: int) -> Schema:
    """Return categorical columns whose categories are called v0, v1, …"""
    return Schema(tuple(Column(n, "categorical", tuple(f"v{i}" for i in range(k))) for n, k in sizes.items()))


def table_of(schema: Schema, **codes: Sequence[int] | np.ndarray[Any, Any]) -> Table:
    typed = {c.name: np.asarray(codes[c.name]).astype(smallest_unsigned(c.size)) for c in schema.columns}
    return Table(schema, typed, len(typed[schema.names[0]]))


def project_of(schema: Schema, target: str | None = None, **roles: tuple[str, ...]) -> Project:
    return Project("by hand", schema, Plan("mst", 1.0, delta=1e-9, target=target), roles=Roles(**roles))


def random_table(schema: Schema, rows: int, seed: int) -> Table:
    """Return rows whose columns are linked: half of the cells repeat the cell before them, folded to their size."""
    rng = np.random.default_rng(seed)
    codes: dict[str, Any] = {}
    before = rng.integers(0, 1 << 30, rows)
    for c in schema.columns:
        skewed = np.minimum(rng.geometric(0.4, rows) - 1, c.size - 1)
        before = np.where(rng.random(rows) < 0.5, before % c.size, skewed)
        codes[c.name] = before
    return table_of(schema, **codes)


class FakeSource:
    """A source without people; each test's subclass defines its counts."""

    person_column = None
    names_people = False
    row_limit = None
    digest = b"fake"

    def __init__(self, rows: int, **sizes: int) -> None:
        self.rows, self.schema = rows, schema_of(**sizes)

    def count(self, clique: Clique) -> np.ndarray[Any, Any]:
        raise NotImplementedError

    def count_many(self, cliques: Sequence[Clique]) -> list[np.ndarray[Any, Any]]:
        return [self.count(clique) for clique in cliques]


def bought(spending: Spending, *kinds: str) -> list[Draw]:
    """Return the draws of these kinds, in the order of spending."""
    return [draw for draw in spending.draws if draw.kind in kinds]


def quiet(fraction: float, message: str) -> None:
    """A report that checks its input."""
    assert 0 <= fraction <= 1
    assert message
