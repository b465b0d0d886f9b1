"""The bounds hold under the theorem's conditions, follow the printed formulas, and state when they are vacuous."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from espalier.core.planning.error_bounds import Counted, error_bounds, excess_risk, marginal_bound, tree_bound
from espalier.core.privacy.mechanisms import add_gaussian


def tv(p, q):
    return 0.5 * float(np.abs(p - q).sum())


def simplex(v):
    """Euclidean projection onto the probability simplex."""
    u = np.sort(v)[::-1]
    over = u - (np.cumsum(u) - 1) / np.arange(1, len(u) + 1)
    k = np.nonzero(over > 0)[0][-1]
    return np.maximum(v - (u[: k + 1].sum() - 1) / (k + 1), 0)


def test_a_marginal_stays_within_its_bound_and_near_what_is_expected():
    rng = np.random.default_rng(1)
    counts, sigma = rng.multinomial(5000, rng.dirichlet(np.ones(12))), 40.0
    bound = marginal_bound(Counted(("a",), 12, sigma), 5000, 0.05)
    apart, raw = [], []
    for _ in range(400):
        noisy = add_gaussian(counts.astype(np.int64), sigma) / 5000
        apart.append(tv(simplex(noisy), counts / 5000))
        raw.append(tv(noisy, counts / 5000))
    assert max(apart) <= bound.tv
    assert np.mean(raw) == pytest.approx(bound.expected_tv, rel=0.1)
    assert bound.tv == pytest.approx(0.5 * 12 * 40 / 5000 * math.sqrt(2 * math.log(2 * 12 / 0.05)))


def random_tree(rng, columns):
    return [(int(rng.integers(0, i)), i) for i in range(1, columns)]


def along(tree, root, conditionals):
    """The joint of binary columns that factor along ``tree``."""
    columns = len(tree) + 1
    joint = np.zeros((2,) * columns)
    for cell in itertools.product((0, 1), repeat=columns):
        p = root[cell[0]]
        for (parent, child), table in zip(tree, conditionals, strict=True):
            p *= table[cell[parent], cell[child]]
        joint[cell] = p
    return joint


def test_the_trees_bound_holds_on_random_trees_and_is_approached():
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(300):
        tree = random_tree(rng, int(rng.integers(2, 6)))
        roots = rng.dirichlet(np.ones(2), 2)
        roots[1] = roots[0] + 0.02 * (roots[1] - roots[0])
        tables = [rng.dirichlet(np.ones(2) * 0.3, 2) for _ in tree]
        moved = [t + 0.02 * (rng.dirichlet(np.ones(2), 2) - t) for t in tables]
        p, q = along(tree, roots[0], tables), along(tree, roots[1], moved)
        alpha = 0.0
        for pair in tree:
            rest = tuple(i for i in range(len(tree) + 1) if i not in pair)
            alpha = max(alpha, tv(p.sum(axis=rest), q.sum(axis=rest)))
        assert tv(p, q) <= tree_bound(len(tree), alpha) + 1e-12
        worst = max(worst, tv(p, q) / tree_bound(len(tree), alpha))
    assert worst == pytest.approx(1.0), "one edge reaches the bound"


def test_an_error_per_edge_adds_up_so_a_bound_without_the_factor_would_be_wrong():
    """If P̃ moves in the same direction on both edges, the joint moves farther than on either edge."""
    flip = np.array([[1.0, 0.0], [0.0, 1.0]])
    noisy = np.array([[0.99, 0.01], [0.01, 0.99]])
    tree = [(0, 1), (1, 2)]
    p, q = along(tree, [0.5, 0.5], [flip, flip]), along(tree, [0.5, 0.5], [noisy, noisy])
    assert tv(p.sum(axis=2), q.sum(axis=2)) == pytest.approx(0.01)
    assert 0.019 < tv(p, q) <= tree_bound(2, 0.01)


def test_excess_risk_is_the_theorems_sum():
    value = excess_risk(0.1, 9, 10_000, 1.0, 2.0, 0.05)
    assert value == pytest.approx(0.2 + 2 * 2 * 3 / 100 + 2 * math.sqrt(math.log(40) / 20_000))


def test_a_plan_promises_nothing_about_a_target_that_is_counted_alone():
    made = error_bounds([Counted(("a",), 3, 10.0)], 1000, 1000, "y")
    assert made.tree is None
    assert made.excess_risk is None


def test_vacuous_bounds_say_so_and_the_best_of_two_counts_is_taken():
    items = [Counted(("a", "y"), 200, 50.0), Counted(("a", "y"), 200, 5.0), Counted(("b", "y"), 4, 5.0)]
    made = error_bounds(items, 1000, 1000, "y")
    by_name = {m.clique: m for m in made.marginals}
    assert len(made.marginals) == 2
    assert by_name[("a", "y")].vacuous
    assert not by_name[("b", "y")].vacuous
    assert made.tree == pytest.approx(3 * by_name[("a", "y")].tv)
    assert made.to_json()["marginals"][0]["vacuous"] is True
