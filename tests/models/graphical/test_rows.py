"""Sampling: the right frequencies, no invented dependence, and rounding that helps."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.models.graphical import GraphicalModel
from tests.support.graphs import NO_FIT, SHAPES, joint_probabilities, random_model


def counts(rows, sizes, columns):
    table = np.zeros([sizes[name] for name in columns])
    np.add.at(table, tuple(rows[name] for name in columns), 1.0)
    return table


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_frequencies_are_those_of_the_joint(shape, even):
    """Chi-square is below its mean plus 6 standard deviations, with a false alarm about once in 10⁷ runs; seeded
    anyway.
    """
    n = 20_000
    for seed in range(6):
        rng = np.random.default_rng([SHAPES.index(shape), seed])
        model = random_model(shape, rng, columns=4, largest=4)
        joint, _ = joint_probabilities(model)
        rows = model.sample(n, rng, even=even)
        seen = counts(rows, model.sizes, tuple(model.sizes))
        expected = joint * n
        assert not seen[expected == 0].any()
        common = expected > 5
        statistic = float(np.sum((seen - expected)[common] ** 2 / expected[common]))
        assert statistic < common.sum() + 6 * np.sqrt(2 * common.sum()) + 6


def star(children, sizes):
    """A hub with strongly dependent, conditionally independent children."""
    rng = np.random.default_rng(1)
    hub, width = sizes
    potentials = {("hub", f"child {i}"): rng.normal(0, 2, (hub, width)) for i in range(children)}
    columns = {"hub": hub, **{f"child {i}": width for i in range(children)}}
    return GraphicalModel(columns, tuple(potentials), potentials, 1.0, NO_FIT)


@pytest.mark.parametrize("even", [False, True])
def test_children_of_one_parent_stay_conditionally_independent(even):
    """The sampler of mbi 1.x fails this: total variation is 0.6 where sampling noise gives 0.01."""
    model = star(3, (4, 6))
    n = 50_000
    rows = model.sample(n, np.random.default_rng(2), even=even)
    for pair in [("child 0", "child 1"), ("child 0", "child 2"), ("child 1", "child 2")]:
        seen = counts(rows, model.sizes, ("hub", *pair)) / n
        assert 0.5 * np.abs(seen - model.marginal(("hub", *pair))).sum() < 0.03


def test_even_rows_bring_small_tables_close_to_the_measured_pairs():
    model = star(3, (4, 6))
    n = 500
    errors = {}
    for even in (False, True):
        rng = np.random.default_rng(3)
        errors[even] = np.mean(
            [
                np.abs(counts(model.sample(n, rng, even=even), model.sizes, pair) - n * model.marginal(pair)).mean()
                for pair in model.cliques
                for _ in range(20)
            ]
        )
    assert errors[True] < 0.7
    assert errors[True] < 0.4 * errors[False]


def test_even_rows_do_not_bias_a_cell():
    """The mean count over 4,000 tables of 7 rows is within 5 standard errors of its expectation."""
    model = star(2, (2, 3))
    rng = np.random.default_rng(4)
    repeats, n = 4_000, 7
    seen = sum(counts(model.sample(n, rng, even=True), model.sizes, ("hub", "child 1")) for _ in range(repeats))
    expected = n * model.marginal(("hub", "child 1"))
    assert np.abs(seen / repeats - expected).max() < 5 * np.sqrt(expected.max() / repeats)


def test_impossible_cells_are_never_drawn():
    table = np.zeros((3, 4))
    table[:, 1] = table[2, :3] = table[0, 3] = -np.inf
    model = GraphicalModel({"a": 3, "b": 4}, (("a", "b"),), {("a", "b"): table}, 1.0, NO_FIT)
    for even in (False, True):
        seen = counts(model.sample(30_000, np.random.default_rng(0), even=even), model.sizes, ("a", "b"))
        assert not seen[np.isinf(table)].any()
        assert (seen[~np.isinf(table)] > 0).all()


def test_codes_are_small_and_repeatable():
    model = GraphicalModel({"a": 2, "b": 300, "c": 1, "d": 70_000}, (), {}, 1.0, NO_FIT)
    rows = model.sample(100, np.random.default_rng(7))
    assert [column.dtype.name for column in rows.values()] == ["uint8", "uint16", "uint8", "uint32"]
    assert list(rows) == ["a", "b", "c", "d"]
    again = model.sample(100, np.random.default_rng(7))
    assert all((rows[name] == again[name]).all() for name in rows)
    assert all(len(column) == 0 for column in model.sample(0, np.random.default_rng(7), even=True).values())
    with pytest.raises(ValueError, match=r"rows \(-1\) must not be negative"):
        model.sample(-1, np.random.default_rng(7))


def test_progress_is_told_and_cancels():
    told = []
    star(3, (2, 2)).sample(10, np.random.default_rng(0), report=lambda fraction, _: told.append(fraction))
    assert told == sorted(told)
    assert told[-1] == 1.0

    def cancel(_fraction, message):
        raise InterruptedError(message)

    with pytest.raises(InterruptedError):
        star(3, (2, 2)).sample(10, np.random.default_rng(0), report=cancel)


@pytest.mark.parametrize("even", [False, True])
def test_a_separation_stays_at_its_sampling_floor(even):
    """The mean of n·I(child 0; child 1 | hub) over 200 tables is as small as independence given the hub makes it.

    2n·I is then χ² with 4 · (4 − 1)(6 − 1) = 60 degrees of freedom, even for even rows: each column is shuffled on its
    own. The mean of 200 is within six standard errors, and within a twentieth of the 60 for the small counts' bias.
    """
    draws = np.random.default_rng(8)
    potentials = {("hub", f"child {i}"): draws.normal(0, 0.5, (4, size)) for i, size in enumerate((4, 6))}
    model = GraphicalModel({"hub": 4, "child 0": 4, "child 1": 6}, tuple(potentials), potentials, 1.0, NO_FIT)
    rng = np.random.default_rng(9)
    n, times, found = 5_000, 200, []
    for _ in range(times):
        seen = counts(model.sample(n, rng, even=even), model.sizes, ("hub", "child 0", "child 1")).astype(float)
        hub, left, right = seen.sum(axis=(1, 2)), seen.sum(axis=2), seen.sum(axis=1)
        expected = left[:, :, None] * right[:, None, :] / hub[:, None, None]
        ratio = np.divide(seen, expected, out=np.ones_like(seen), where=seen > 0)
        found.append(2 * float((seen * np.log(ratio)).sum()))
    assert abs(np.mean(found) - 60) < 6 * np.sqrt(2 * 60 / times) + 3
