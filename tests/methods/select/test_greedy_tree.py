"""The tree inside the frame: never a violation, and a spanning tree whenever one exists."""

from __future__ import annotations

import itertools
import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Separation
from espalier.core.methods import frame_of
from espalier.core.methods.select.allocation import BudgetSplit, Choices
from espalier.core.methods.select.expected import by_model, independent
from espalier.core.methods.select.greedy_tree import Growth, choose_tree
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.draws import Measurement
from espalier.core.privacy.rehearsal import Rehearsal
from espalier.core.privacy.scores import EdgeScore
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from tests.support.tables import FakeSource, bought

FIVE = tuple("abcde")
NINE = tuple("abcdefghi")
TREES = [tuple(sorted(nx.from_prufer_sequence(list(code)).edges)) for code in itertools.product(range(5), repeat=3)]


def random_separation(rng, names):
    """Each column is on the left, on the right, in the gate or nowhere; both sides have at least one column."""
    while True:
        where = {n: rng.choice("LRG-") for n in names}
        left, right, given = (tuple(n for n in names if where[n] == side) for side in "LRG")
        if left and right:
            return Separation(left, right, given)


def grow(names, separations, rng, columns=None, linked=()):
    growth = Growth(names, separations, columns)
    for edge in linked:
        growth.link(edge)
    edges = []
    while candidates := growth.candidates():
        edge = rng.choice(candidates)
        growth.add(edge)
        edges.append(edge)
    return edges, growth


def a_tree_exists(separations):
    named = ([(FIVE[a], FIVE[b]) for a, b in tree] for tree in TREES)
    return any(all(s.holds(tree) for s in separations) for tree in named)


def test_there_are_125_trees_on_five_columns():
    assert len(set(TREES)) == 125


@pytest.mark.parametrize("how_many", [1, 2, 3])
def test_a_spanning_tree_is_found_whenever_one_exists(how_many):
    """By enumeration on five columns: a plain greedy search runs into dead ends here, but this loop never does."""
    rng = random.Random(7)
    admitted = 0
    for _ in range(150):
        separations = [random_separation(rng, FIVE) for _ in range(how_many)]
        exists = a_tree_exists(separations)
        admitted += exists
        for _ in range(4):
            edges, growth = grow(FIVE, separations, rng)
            assert all(s.holds(edges) for s in separations)
            assert nx.is_forest(nx.Graph(edges))
            assert (len(edges) == 4) == exists, (separations, edges)
            assert growth.parts == 5 - len(edges)
    assert 20 < admitted < 150 or how_many == 1


def test_plain_greedy_does_run_into_dead_ends():
    """Otherwise the test above would show nothing."""
    rng = random.Random(7)
    dead = 0
    for _ in range(150):
        separations = [random_separation(rng, FIVE) for _ in range(2)]
        if a_tree_exists(separations):
            growth = Growth(FIVE, separations)
            growth.candidates()
            growth.complete = False  # this search looks only one step ahead
            while candidates := growth.candidates():
                growth.add(rng.choice(candidates))
            dead += growth.parts > 1
    assert dead > 3


@pytest.mark.nightly
def test_random_roles_on_many_columns():
    rng = random.Random(3)
    for n in (2, 3, 8, 15, 25):
        names = tuple(f"x{i}" for i in range(n))
        for how_many in (1, 2, 3):
            separations = [random_separation(rng, names) for _ in range(how_many)]
            edges, growth = grow(names, separations, rng)
            assert all(s.holds(edges) for s in separations)
            assert growth.complete is not True or len(edges) == n - 1
            if how_many == 1:
                assert (len(edges) == n - 1) == bool(separations[0].given)


def test_without_an_admissible_column_there_are_two_parts():
    edges, growth = grow(FIVE, [Separation(("a",), ("b", "c"), ())], random.Random(0))
    assert growth.parts == 2
    assert len(edges) == 3


def test_linked_edges_count_in_the_frame_and_forbidden_ones_are_refused():
    growth = Growth(FIVE, [Separation(("a",), ("b",), ("c",))])
    growth.link(("a", "d"))
    with pytest.raises(ValueError, match="forbids"):
        growth.link(("b", "d"))
    with pytest.raises(ValueError, match="forbids"):
        growth.add(("b", "d"))
    assert ("b", "d") not in growth.candidates()
    assert ("a", "d") in growth.candidates(), "a linked pair is not in the forest"
    growth.add(("a", "e"))
    with pytest.raises(ValueError, match="loop"):
        growth.add(("a", "e"))


def test_a_tree_over_some_columns_beside_a_star_on_the_others():
    """PRISM with a fence: the star of y is linked, the tree spans the rest, nothing bypasses the gate."""
    names = (*FIVE, "y")
    rng = random.Random(11)
    fence = Separation(("y",), ("a",), ("b",))
    star = [("b", "y"), ("c", "y")]
    for _ in range(30):
        edges, growth = grow(names, [fence], rng, FIVE, star)
        assert fence.holds([*edges, *star])
        assert len(edges) == 4
        assert growth.complete
        assert not any("y" in e for e in edges)


class Rows(FakeSource):
    """A small table of columns with three values."""

    def __init__(self, columns):
        super().__init__(len(next(iter(columns.values()))), **dict.fromkeys(columns, 3))
        self.columns = columns

    def count(self, clique):
        out = np.zeros(tuple(3 for _ in clique), dtype=np.int64)
        np.add.at(out, tuple(self.columns[c] for c in clique), 1)
        return out


def linked_rows():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 3, 3000)
    follow = lambda x: np.where(rng.random(3000) < 0.8, x, rng.integers(0, 3, 3000))  # noqa: E731
    b = follow(a)
    return Rows({"a": a, "b": b, "c": follow(b), "d": rng.integers(0, 3, 3000)})


def chosen(separations, epsilon=100.0):
    table = linked_rows()
    sizes = dict.fromkeys("abcd", 3)
    plan = Plan("mst", epsilon, 1e-9)
    budget = Budget.of(plan, None)
    c = PrivateCurator(table, Unit(), budget, 10**6)
    split = BudgetSplit.of(plan, budget, sizes)
    ones = c.measure(split.split(1 / 3, [(n,) for n in sizes]))
    return choose_tree(Choices(c, split, 1 / 3), separations, EdgeScore(independent(ones, 3000.0)))[0], c, split


def test_with_a_large_budget_the_strong_edges_win():
    edges, _, _ = chosen([])
    assert {("a", "b"), ("b", "c")} <= set(edges)


def test_a_separation_turns_the_tree_away_from_them():
    edges, _, _ = chosen([Separation(("a",), ("b",), ("d",))])
    assert ("a", "b") not in edges
    assert Separation(("a",), ("b",), ("d",)).holds(edges)


def test_only_pairs_among_those_given_are_edges():
    curator = Rehearsal(dict.fromkeys("abcd", 3), Unit(), Budget.of(Plan("mst", 1.0, 1e-9), None), 1000)
    budget = BudgetSplit.of(Plan("mst", 1.0, 1e-9), curator.budget, curator.sizes)
    score = EdgeScore(lambda q: np.zeros([3] * len(q)))
    edges, unspent = choose_tree(Choices(curator, budget, 0.3), [], score, [("b", "a"), ("b", "c"), ("a", "c")])
    assert len(edges) == 2
    assert set(edges) <= {("a", "b"), ("b", "c"), ("a", "c")}
    assert choose_tree(Choices(curator, budget, 0.3), [], score, []) == ([], 0.3)
    assert unspent == pytest.approx(0.0)


def test_each_step_pays_an_equal_share_and_the_rest_is_handed_back():
    table = linked_rows()
    sizes = dict.fromkeys("abcd", 3)
    plan = Plan("mst", 1.0, 1e-9)
    budget = Budget.of(plan, None)
    c = PrivateCurator(table, Unit(), budget, 10**6)
    split = BudgetSplit.of(plan, budget, sizes)
    ones = c.measure(split.split(0.1, [(n,) for n in sizes]))
    edges, unspent = choose_tree(
        Choices(c, split, 0.3), [Separation(("a",), ("b", "c", "d"), ())], EdgeScore(independent(ones, 3000.0))
    )
    assert len(edges) == 2
    prices = [x.rho for x in bought(c.spending, "choice")]
    assert prices == pytest.approx([0.1 * split.budget.rho] * 2)
    assert unspent == pytest.approx(0.1), "the third of three steps never happened: b, c, d and a stay separate"


def test_what_the_star_explains_is_not_chosen_again():
    """b and c depend on each other only through y, d and e directly. Without noise, the star predicts b–c correctly."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 200_000)
    copy = lambda: np.where(rng.random(len(y)) < 0.9, y, rng.integers(0, 2, len(y)))  # noqa: E731
    b, c = copy(), copy()
    counts = np.zeros((2, 2))
    np.add.at(counts, (b, c), 1)
    pairs = []
    for column, name in ((b, "b"), (c, "c")):
        values = np.zeros((2, 2))
        np.add.at(values, (column, y), 1)
        pairs.append(Measurement((name, "y"), values, 1.0))
    ones = [Measurement((n,), np.bincount(x).astype(float), 1.0) for n, x in (("b", b), ("c", c), ("y", y))]
    curator = Rehearsal({"b": 2, "c": 2, "y": 2}, Unit(), Budget.of(Plan("mst", 1.0, 1e-9), None), len(y))
    star = by_model(curator, [*ones, *pairs])(("b", "c"))
    alone = independent(ones, float(len(y)))(("b", "c"))
    assert np.abs(star - counts).sum() < 0.01 * len(y)
    assert np.abs(alone - counts).sum() > 0.5 * len(y)


def test_a_rehearsal_of_200_columns_offers_the_largest_pairs_first():
    sizes = {f"c{i}": 2 + i % 7 for i in range(200)}
    plan = Plan("mst", 1.0, 1e-9)
    budget = Budget.of(plan, None)
    r = Rehearsal(sizes, Unit(), budget, 1000)
    split = BudgetSplit.of(plan, budget, sizes)
    ones = r.measure(split.split(0.3, [(n,) for n in sizes]))
    edges, _ = choose_tree(Choices(r, split, 0.3), [], EdgeScore(independent(ones, 1000.0)))
    assert len(edges) == 199
    assert sizes[edges[0][0]] * sizes[edges[0][1]] == 64


@st.composite
def projects(draw):
    """Up to seven columns with random roles, any number of columns in each, and up to two further separations."""
    names = NINE[: draw(st.integers(3, 7))]
    where = [draw(st.sampled_from(["outcome", "protected", "admissible", "inadmissible", None])) for _ in names]
    roles = {r: tuple(n for n, at in zip(names, where, strict=True) if at == r) for r in set(where) - {None}}
    schema = Schema(tuple(Column(n, "categorical", ("0", "1", "2")[: draw(st.integers(1, 3))]) for n in names))
    further = []
    for _ in range(draw(st.integers(0, 2))):
        sides = [draw(st.sampled_from("LRG-")) for _ in names]
        left, right, given_ = (tuple(n for n, at in zip(names, sides, strict=True) if at == x) for x in "LRG")
        if left and right:
            further.append(Separation(left, right, given_))
    method = draw(st.sampled_from(["privci", "prefair"]))
    return Project("random", schema, Plan(method, 1.0, 1e-6), roles=Roles(**roles), separations=tuple(further))


@settings(max_examples=150)
@given(projects(), st.randoms(use_true_random=False))
@pytest.mark.nightly
def test_random_roles_and_separations_never_a_violation_and_a_forest_only_where_announced(project, rng):
    roles = project.roles
    assume((roles.outcome and roles.protected) or (project.separations and not roles.outcome and not roles.protected))
    announced = preview(project, 100).forest
    separations, sizes = frame_of(project).separations, project.schema.sizes
    varied = [n for n, size in sizes.items() if size > 1]
    for _ in range(3):
        edges, growth = grow(tuple(sizes), separations, rng, varied)
        assert all(s.holds(edges) for s in separations)
        assert growth.parts == 1 or not varied or announced
        if len(separations) == 1 and growth.parts > 1:
            assert not set(separations[0].given) & set(varied), "one separation with a gate always has a tree"
