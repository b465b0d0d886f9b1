"""Every sensitivity, checked on all small tables and all their neighbours: the bound is reached or nearly reached."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest

from espalier.core.privacy.draws import fold
from espalier.core.privacy.scores import FIXED_POINT, ConditionalScore, EdgeScore, FeatureScore, vector_sensitivity
from espalier.core.privacy.unit import Unit


def tables(cells: int, n: int):
    """All count vectors of ``n`` rows over ``cells`` cells."""
    for bars in itertools.combinations(range(n + cells - 1), cells - 1):
        ends = (-1, *bars, n + cells - 1)
        yield np.array([b - a - 1 for a, b in itertools.pairwise(ends)], dtype=np.int64)


def neighbours(counts: np.ndarray, unit: Unit):
    """All count vectors that one person with up to k rows can turn ``counts`` into."""
    frontier = {tuple(counts)}
    seen = set(frontier)
    for _ in range(unit.rows_per_person):
        step = set()
        for c in frontier:
            for i in range(len(c)):
                if unit.neighbors == "add-remove":
                    step.add((*c[:i], c[i] + 1, *c[i + 1 :]))
                    if c[i]:
                        step.add((*c[:i], c[i] - 1, *c[i + 1 :]))
                elif c[i]:
                    for j in range(len(c)):
                        moved = list(c)
                        moved[i] -= 1
                        moved[j] += 1
                        step.add(tuple(moved))
        frontier = step - seen
        seen |= step
    return [np.array(c, dtype=np.int64) for c in seen]


def largest_move(shape, sizes, unit, value):
    @cache
    def of(*counts):  # tables share most of their neighbours
        return value(np.array(counts, dtype=np.int64).reshape(shape), sum(counts))

    return max(
        abs(of(*other.tolist()) - of(*counts.tolist()))
        for n in sizes
        for counts in tables(math.prod(shape), n)
        for other in neighbours(counts, unit)
    )


UNITS = [
    Unit("replace-one", 1),
    Unit("replace-one", 2),
    Unit("add-remove", 1),
    Unit("add-remove", 2),
]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_counts_move_by_exactly_the_l2_sensitivity(unit):
    worst = 0.0
    for n in (2, 3, 4):
        for counts in tables(9, n):
            for other in neighbours(counts, unit):
                worst = max(worst, float(np.linalg.norm(other - counts)))
    assert worst == pytest.approx(unit.count_sensitivity, abs=1e-12)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_edge_score_moves_by_at_most_its_sensitivity_and_reaches_it(unit):
    rng = np.random.default_rng(5)
    worst = 0
    for _ in range(3):
        table = rng.normal(0.5, 1.0, (3, 3))
        score = EdgeScore(lambda pair, table=table: table, per_cell=1.7)

        def value(counts, n, score=score):
            return score.value(("a", "b"), counts, n)

        worst = max(worst, largest_move((3, 3), (3,) if unit.rows_per_person > 1 else (3, 4), unit, value))
    assert worst <= score.sensitivity(unit, None)
    assert worst >= 0.9 * score.sensitivity(unit, None)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_edge_score_of_three_columns_has_the_same_sensitivity(unit):
    """A triple against a model's marginal, with a penalty: the bound holds and is reached or nearly reached."""
    table = np.random.default_rng(6).normal(0.5, 1.0, (2, 2, 2))
    score = EdgeScore(lambda clique: table, per_cell=2.3)
    sizes = (2, 3) if unit.rows_per_person > 1 else (2, 3, 4)
    worst = largest_move((2, 2, 2), sizes, unit, lambda c, n: score.value(("a", "b", "c"), c, n))
    assert worst <= score.sensitivity(unit, None)
    assert worst >= 0.9 * score.sensitivity(unit, None)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_vector_of_scores_moves_by_at_most_its_l2_sensitivity_and_reaches_it(unit):
    """All three pairs of three binary columns, all rows from one corner to the other: each gains above, loses below."""
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    drop = {("a", "b"): 2, ("a", "c"): 1, ("b", "c"): 0}
    rng = np.random.default_rng(8)
    worst, bound = 0.0, vector_sensitivity(EdgeScore(lambda pair: np.zeros((2, 2))), 3, unit, None)
    for expected in (lambda pair: np.array([[0.0, 1.5], [1.5, 9.0]]), lambda pair: rng.normal(1, 1, (2, 2))):
        tables_of = {pair: expected(pair) for pair in pairs}
        score = EdgeScore(tables_of.__getitem__)

        def values(counts, score=score):
            cube = counts.reshape(2, 2, 2)
            return np.array([score.value(p, cube.sum(axis=drop[p]), None) for p in pairs], dtype=float)

        for counts in tables(8, 3):
            here = values(counts)
            for other in neighbours(counts, unit):
                worst = max(worst, float(np.linalg.norm(values(other) - here)))
    assert worst <= bound
    assert worst >= 0.99 * bound
    assert bound == math.ceil(math.sqrt(3) * EdgeScore(lambda pair: np.zeros((2, 2))).sensitivity(unit, None))


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_counts_over_groups_of_categories_move_by_at_most_the_l2_sensitivity(unit):
    groups = {"a": np.array([0, 2, 1, 2])}
    worst = 0.0
    for counts in tables(4, 3):
        for other in neighbours(counts, unit):
            moved = fold(other - counts, ("a",), groups)
            worst = max(worst, float(np.linalg.norm(moved)))
    assert worst == pytest.approx(unit.count_sensitivity, abs=1e-12)


def test_folding_adds_up_along_every_axis():
    values = np.arange(24).reshape(2, 3, 4)
    groups = {"b": np.array([1, 0, 1]), "c": np.array([0, 0, 1, 0])}
    out = fold(values, ("a", "b", "c"), groups)
    assert out.shape == (2, 2, 2)
    for a, b, c in itertools.product(range(2), repeat=3):
        expected = sum(
            int(values[a, j, k]) for j in range(3) for k in range(4) if groups["b"][j] == b and groups["c"][k] == c
        )
        assert out[a, b, c] == expected


@pytest.mark.parametrize("k", [1, 2])
def test_feature_score_under_replace_one_with_a_private_number_of_rows(k):
    """A person's rows become as many other rows, fewer, more or none: at most k rows leave and at most k rows enter."""
    score = FeatureScore("y")

    def value(counts):
        return score.value(("x", "y"), counts.reshape(2, 2), None)

    worst = 0
    for n in (2, 3, 4):
        for counts in tables(4, n):
            for left in neighbours(counts, Unit("add-remove", k)):
                if left.sum() <= n and (left <= counts).all():
                    came = [o for o in neighbours(left, Unit("add-remove", k)) if (o >= left).all()]
                    worst = max([worst, *(abs(value(other) - value(counts)) for other in came)])
    assert worst <= score.sensitivity(Unit("replace-one", k), None)
    here = np.array([[10, 0, 8], [0, 0, 0], [1, 0, 1]], dtype=np.int64)
    there = np.array([[10, 0, 8], [0, 1, 0], [1, 0, 0]], dtype=np.int64)
    move = abs(score.value(("x", "y"), here, None) - score.value(("x", "y"), there, None))
    assert move > score.sensitivity(Unit("add-remove"), None), "that bound is not enough if rows are replaced"
    assert move <= score.sensitivity(Unit("replace-one"), None)


@pytest.mark.parametrize("shape", [(2, 2), (3, 3)])
@pytest.mark.parametrize("k", [1, 2])
def test_feature_score_under_replace_one(shape, k):
    unit, score = Unit("replace-one", k), FeatureScore("y")
    for n in (3, 4, 5) if k == 1 else (3, 4):
        worst = largest_move(shape, (n,), unit, lambda c, n: score.value(("x", "y"), c, n))
        assert worst <= score.sensitivity(unit, n)
        assert score.sensitivity(unit, n) / score.per_row(n) == pytest.approx(3 * k + 2 * k * k / n)
    # the enumerated maximum of one replaced row on 2×2 is 2(1 − 1/n) rows: a bound below that would be wrong
    if shape == (2, 2) and k == 1:
        assert worst / score.per_row(n) == pytest.approx(2 * (1 - 1 / n))


@pytest.mark.parametrize("shape", [(2, 2), (3, 3)])
@pytest.mark.parametrize("k", [1, 2])
def test_feature_score_under_add_remove(shape, k):
    unit, score = Unit("add-remove", k), FeatureScore("y")
    sizes = (0, 1, 2, 3, 4) if k == 1 else (0, 1, 2, 3)
    worst = largest_move(shape, sizes, unit, lambda c, n: score.value(("x", "y"), c, None))
    assert worst <= score.sensitivity(unit, None)
    assert worst >= 0.5 * FIXED_POINT * k, "the enumeration must come near the bound, or it tests nothing"


@pytest.mark.parametrize(("shape", "child"), [((2, 2, 2), "a"), ((2, 2, 2), "b"), ((2, 3, 2), "b")])
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_feature_score_of_a_child_with_several_parents(shape, child, unit):
    """The tables 2 × (2 × 2) and 3 × (2 × 2), the child first and in the middle: the two-way bound holds."""
    clique = ("a", "b", "c")
    score = FeatureScore({clique: child})
    public = unit.neighbors == "replace-one"
    for n in (2, 3, 4) if math.prod(shape) == 8 and unit.rows_per_person == 1 else (2, 3):
        worst = largest_move(shape, (n,), unit, lambda c, n: score.value(clique, c, n if public else None))
        assert worst <= score.sensitivity(unit, n if public else None)
    if unit.rows_per_person == 1:  # with more rows such small tables stay far below the bound
        assert worst >= 0.3 * score.sensitivity(unit, n if public else None)


@pytest.mark.parametrize(("shape", "target"), [((2, 2, 2), "c"), ((2, 2, 2), "a"), ((3, 3, 1), "c"), ((2, 2, 3), "c")])
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_conditional_score_moves_by_at_most_its_sensitivity(shape, target, unit):
    score = ConditionalScore(target)
    sizes = (0, 1, 2, 3, 4) if math.prod(shape) < 12 and unit.rows_per_person == 1 else (0, 1, 2, 3)
    worst = largest_move(shape, sizes, unit, lambda c, n: score.value(("a", "b", "c"), c, n))
    assert worst <= score.sensitivity(unit, None)
    # tables as small as these stay well below the bound; the next test approaches it
    assert worst >= 0.15 * score.sensitivity(unit, None)


def test_conditional_score_comes_near_its_bound_on_larger_tables():
    """One row that is alone in its row and column of a stratum moves the score by nearly two rows."""
    score = ConditionalScore("c")
    before = np.zeros((2, 2, 2), dtype=np.int64)
    before[0, 0] = 10**6
    after = before.copy()
    after[1, 1, 0] = 1
    move = score.value(("a", "b", "c"), after, None) - score.value(("a", "b", "c"), before, None)
    assert 1.9 * FIXED_POINT < move <= score.sensitivity(Unit("add-remove"), None)


def test_conditional_score_is_its_definition_stratum_by_stratum():
    counts = np.random.default_rng(5).multinomial(700, np.full(24, 1 / 24)).reshape(2, 3, 4).astype(np.int64)
    for axis, name in enumerate("abc"):
        rows = 0.0
        for stratum in np.moveaxis(counts, axis, 0):
            product = np.outer(stratum.sum(1), stratum.sum(0)) / stratum.sum()
            rows += 0.5 * np.abs(stratum - product).sum()
        value = ConditionalScore(name).value(("a", "b", "c"), counts, None) / FIXED_POINT
        assert rows - len(counts) * 5 / FIXED_POINT < value <= rows + 1e-9
    independent = np.multiply.outer(np.outer([2, 3], [1, 4]), [1, 2]).astype(np.int64)
    assert ConditionalScore("c").value(("a", "b", "c"), independent, None) == 0


def test_feature_score_with_several_parents_is_that_of_the_flattened_table():
    counts = np.random.default_rng(3).multinomial(500, np.full(24, 1 / 24)).reshape(2, 3, 4).astype(np.int64)
    clique = ("a", "b", "c")
    for axis, name in enumerate(clique):
        exact = 0  # from the definition, cell by cell
        others = [i for i in range(3) if i != axis]
        alone, joint = counts.sum(axis=tuple(others)), counts.sum(axis=axis)
        for cell in itertools.product(*map(range, counts.shape)):
            exact += abs(500 * int(counts[cell]) - int(alone[cell[axis]]) * int(joint[tuple(cell[i] for i in others)]))
        assert FeatureScore(name).value(clique, counts, 500) == exact
        assert FeatureScore({clique: name}).value(clique, counts, 500) == exact


def test_feature_score_fits_only_cliques_that_hold_its_target():
    assert FeatureScore("y").fits(("x", "y"))
    assert FeatureScore("y").fits(("w", "x", "y"))
    assert not FeatureScore("y").fits(("w", "x"))
    assert not FeatureScore("y").fits(("y",))
    assert not FeatureScore({("w", "x"): "w"}).fits(("x", "y"))


def test_feature_score_near_its_add_remove_bound_on_larger_tables():
    """One row that is alone in its row and column moves the score by nearly two rows when n is large."""
    unit, score = Unit("add-remove", 1), FeatureScore("y")
    for n in (10, 1000, 10**6):
        before = np.array([[n, 0], [0, 0]], dtype=np.int64)
        after = before + np.array([[0, 0], [0, 1]])
        move = abs(score.value(("x", "y"), after, None) - score.value(("x", "y"), before, None))
        assert 1.5 * FIXED_POINT < move <= score.sensitivity(unit, None)


def test_the_papers_clipped_chi_square_would_not_be_safe():
    """The reason for the score used here: one replaced row moves min(χ²/n, 1) by its whole range."""

    def clipped(counts):
        n = counts.sum()
        e = np.outer(counts.sum(1), counts.sum(0)) / n
        return min(1.0, float(np.sum(np.where(e > 0, (counts - e) ** 2 / np.where(e > 0, e, 1), 0)) / n))

    here = np.array([[20, 0], [0, 1]])
    there = np.array([[21, 0], [0, 0]])
    assert clipped(here) - clipped(there) == pytest.approx(1.0)


def test_scores_are_exact_whole_numbers_at_a_million_rows():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(10**6, rng.dirichlet(np.ones(400))).reshape(20, 20).astype(np.int64)
    value = FeatureScore("y").value(("x", "y"), counts, 10**6)
    exact = sum(
        abs(10**6 * int(c) - int(a) * int(b))
        for row, a in zip(counts, counts.sum(1), strict=True)
        for c, b in zip(row, counts.sum(0), strict=True)
    )
    assert value == exact
