"""PrivBayes: the drawn graph unchanged, or a network learned from the data, never beyond its largest table."""

from __future__ import annotations

import math
import time

import networkx as nx
import numpy as np
import pytest

from espalier.core.errors import ProjectError, SizeError
from espalier.core.graph.dag import Dag
from espalier.core.graph.separations import clique_edges
from espalier.core.methods.select.allocation import BudgetSplit, Choices
from espalier.core.methods.select.network import WIDE, choose_network
from espalier.core.models.graphical import predict_size
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.rehearsal import Rehearsal
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table
from tests.support.loosely import release
from tests.support.tables import bought


def column(name, size):
    return Column(name, "categorical", tuple(map(str, range(size))))


def wide(count, size=3):
    return Schema(tuple(column(f"c{i}", size + i % 4) for i in range(count)))


def plan(epsilon=1.0, **changes):
    return Plan.from_json({"method": "privbayes", "epsilon": epsilon, "delta": 1e-9, **changes})


def exclusive_or(n=20_000):
    """``x`` and ``y`` are coin flips, ``z`` states whether they differ (pairs show nothing), and ``w`` nearly repeats
    ``z``.
    """
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    z = x ^ y
    w = np.where(rng.random(n) < 0.95, z, 1 - z)
    schema = Schema(tuple(column(name, 2) for name in "xyzw"))
    return Table(schema, {"x": x, "y": y, "z": z, "w": w}, n)


def test_a_drawn_graph_is_measured_as_it_is():
    rows = exclusive_or()
    drawn = Dag((("x", "z"), ("y", "z"), ("z", "w")))
    made = release(Project("t", rows.schema, plan(), drawn), rows)
    assert made.fitted.cliques == (("x",), ("y",), ("x", "y", "z"), ("z", "w"))
    assert not bought(made.spending, "choice")
    assert made.spending.rho == pytest.approx(made.budget.rho, rel=1e-6)
    assert made.model.cmi(["x", "y"], ["w"], ["z"]) < 1e-9


def test_two_parents_show_what_no_pair_does():
    rows = exclusive_or()
    made = release(Project("t", rows.schema, plan(5.0)), rows)
    assert ("x", "y", "z") in made.fitted.cliques or ("x", "y", "w") in made.fitted.cliques
    differ = made.codes["x"] ^ made.codes["y"]
    assert np.mean(differ == made.codes["z"]) > 0.9
    assert np.mean(differ == made.codes["w"]) > 0.85


def test_a_choice_has_one_new_column_and_parents_that_were_counted_together():
    schema = wide(9)
    rng = np.random.default_rng(1)
    rows = Table(schema, {c.name: rng.integers(0, c.size, 500) for c in schema.columns}, 500)
    budget = Budget.of(plan(), 500)
    curator = PrivateCurator(rows, Unit(), budget, 10**6)
    split = BudgetSplit.of(plan(), budget, schema.sizes)
    for useful in (1, 40, 10**6):
        cliques, unspent = choose_network(Choices(curator, split, 0.1), "c0", useful, 10**7)
        placed, allowed = {"c0"}, [{"c0"}]
        for q in cliques:
            (x,) = set(q) - placed
            parents = set(q) - {x}
            assert any(parents <= other for other in allowed)
            assert len(parents) == 1 or (len(parents) == 2 and math.prod(schema.sizes[c] for c in q) <= useful)
            placed.add(x)
            allowed.append(set(q))
        assert placed == set(schema.names)
        assert unspent == 0
        assert nx.is_chordal(nx.Graph(clique_edges(cliques)))
        tables = [math.prod(schema.sizes[c] for c in q) for q in cliques]
        assert predict_size(schema.sizes, cliques).largest_cells == max(tables)


def test_parents_too_many_are_refused_naming_their_table_and_nothing_is_read():
    schema = wide(60, 100)
    drawn = Dag(tuple((f"c{i}", "c59") for i in range(40)))
    with pytest.raises(SizeError, match="the table of c59 with all its causes, c0 \\(100\\) × c1") as error:
        preview(Project("t", schema, plan(), drawn), 1000)
    assert error.value.data["column"] == "c59"
    assert len(error.value.data["clique"]) == 41


def test_a_drawn_graph_whose_tables_meet_in_one_too_large_is_refused():
    names = [f"c{i}" for i in range(8)]
    schema = Schema(tuple(column(n, 30) for n in names))
    drawn = Dag(tuple((a, b) for i, a in enumerate(names) for b in names[i + 1 : i + 3]))
    preview(Project("t", schema, plan(), drawn), 1000)
    loop = Dag(tuple((a, b) for a in names[:4] for b in names[4:]))
    with pytest.raises(SizeError, match="c4"):
        preview(Project("t", schema, plan(max_cells=100_000), loop), 1000)


def test_a_pair_too_large_is_refused_before_anything_is_spent():
    """The rehearsal includes the pair of the two wide columns, for every position of these columns and every choice of
    the release.
    """
    for i, j in ((0, 1), (2, 5), (4, 5)):
        sizes = [3] * 6
        sizes[i] = sizes[j] = 200
        schema = Schema(tuple(column(f"c{k}", s) for k, s in enumerate(sizes)))
        with pytest.raises(SizeError, match=f"c{i} .*c{j}"):
            preview(Project("t", schema, plan(max_cells=30_000)), 10**6)
        assert preview(Project("t", schema, plan(max_cells=40_000)), 10**6).size.largest_cells == 40_000


def test_the_preview_of_a_learned_network_names_no_column_and_calls_a_table_what_it_is():
    schema = wide(8)
    lines = preview(Project("t", schema, plan()), 10**6).lines
    assert sum(line.what == "noisy choice of a column and its parents" for line in lines) == 7
    counts = [line for line in lines if line.cells]
    assert all(line.columns is None for line in counts)
    assert all(line.what == "counts of 3 columns chosen at release (largest shown)" for line in counts)


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_the_network_is_connected_with_and_without_n(neighbors):
    project = Project("t", wide(10, 20), plan(neighbors=neighbors))
    for rows in (None, 50, 10**6):
        assert not preview(project, rows).forest


@pytest.mark.nightly
def test_wide_tables_keep_their_candidates_few():
    for count in (WIDE, 200):
        schema = wide(count, 2)
        budget = Budget.of(plan(), 10**6)
        curator = Rehearsal(schema.sizes, Unit(), budget, 10**6)
        start = time.process_time()
        choices = Choices(curator, BudgetSplit.of(plan(), budget, schema.sizes), 0.3)
        cliques, _ = choose_network(choices, "c0", 10**6, 10**7)
        assert time.process_time() - start < 10
        assert max(map(len, cliques)) == (3 if count <= WIDE else 2)
        assert max(c.candidates for c in bought(curator.spending, "choice")) <= 10_000


def test_a_fence_is_a_conflict():
    with pytest.raises(ProjectError, match="privbayes has no fence") as error:
        preview(Project("t", wide(3), plan(fair=True)), 1000)
    assert error.value.data["key"] == "fair"


def test_one_and_two_columns():
    for count, cliques in ((1, (("c0",),)), (2, (("c0", "c1"),))):
        schema = wide(count)
        rows = Table(schema, {c.name: np.arange(30) % c.size for c in schema.columns}, 30)
        made = release(Project("t", schema, plan()), rows)
        assert made.fitted.cliques == cliques
        assert not bought(made.spending, "choice")
        assert made.spending.rho == pytest.approx(made.budget.rho, rel=1e-6)
