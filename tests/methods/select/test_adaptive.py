"""Tables in addition to a tree: none has more noise than the model's largest possible error."""

from __future__ import annotations

import math

import numpy as np
import pytest

from espalier.core.methods import fit, frame_of
from espalier.core.methods.select.adaptive import LARGEST_ERROR
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table

SCHEMA = Schema(tuple(Column(name, "categorical", tuple("uvwxyz")) for name in "abcdefgh"))
ROWS = 400


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 6, ROWS)
    codes = {n: np.where(rng.random(ROWS) < 0.6, hidden, rng.integers(0, 6, ROWS)) for n in SCHEMA.names}
    return Table(SCHEMA, codes, ROWS)


def project(**plan):
    return Project("wide", SCHEMA, Plan.from_json({"method": "mst", "epsilon": 1.0, "delta": 1e-8, **plan}))


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_no_new_table_has_more_noise_than_the_model_can_be_wrong(neighbors, table):
    made = project(width=6, neighbors=neighbors)
    curator = PrivateCurator(table, Unit(neighbors), Budget.of(made.plan, ROWS), 10**6)
    fitted = fit(curator, made, frame_of(made))
    draws = [d for d in curator.spending.draws if d.kind == "count"]
    tree = {d.columns for d in draws if d.pool == "two-way"}
    most = LARGEST_ERROR * ROWS * (1.01 if neighbors == "replace-one" else 1.5)  # the total is noisy
    new = [d for d in draws if d.pool == "further cliques" and d.columns not in tree]
    assert all(math.sqrt(2 / math.pi) * d.scale * d.cells <= most for d in new)
    assert curator.spending.rho == pytest.approx(curator.budget.rho, rel=1e-9)
    assert len(fitted.cliques) > len(SCHEMA.names)


def test_a_plan_does_not_reckon_with_tables_that_are_never_counted():
    """Six columns of six categories have 46,656 cells; 400 rows at ε = 1 support a few hundred."""
    shown = preview(project(width=6), ROWS)
    assert shown.size.measured_cells < 20_000
    assert preview(project(width=6, epsilon=100.0), 10**6).size.measured_cells > 10 * shown.size.measured_cells
