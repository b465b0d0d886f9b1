"""Counts of pairs, smoothed along ordered columns by lengths that the noisy counts choose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from espalier.core.methods.marginals import Marginals
from espalier.core.models.graphical import FirstFit, GraphicalModel, ordered_values
from espalier.core.models.graphical.smoothness import (
    LENGTHS,
    ROUGH,
    Smooth,
    axis_of,
    filtered,
    smoothed,
)
from espalier.core.privacy.draws import Measurement
from espalier.core.project.schema import Column, Schema
from espalier.verifier import smoothing as checker
from espalier.verifier.noise import Counts

ROWS, BINS, PAIRS = 5000.0, 10, 8
SHARE = np.linspace(1.0, 2.0, BINS) / np.linspace(1.0, 2.0, BINS).sum()
SHARES = {"y": np.array([0.6, 0.4]), **{f"x{i}": SHARE for i in range(PAIRS)}}
ORDERED = {f"x{i}": BINS for i in range(PAIRS)}


def pairs(rng: np.random.Generator, *, smooth: bool, sigma: float = 60.0) -> tuple[list[np.ndarray], list[Measurement]]:
    """Return true tables of columns with y, and noisy counts; their association is smooth along x, or has no order."""
    true, found = [], []
    for i in range(PAIRS):
        ratio = np.tanh(np.linspace(-1.5, 1.5, BINS) * rng.normal()) if smooth else rng.choice([-0.5, 0.5], BINS)
        ratio = ratio - SHARE @ ratio
        table = ROWS * np.outer(SHARES["y"], SHARE) + ROWS * np.outer([0.3, -0.3], SHARE * ratio)
        true.append(table)
        found.append(Measurement(("y", f"x{i}"), table + rng.normal(0, sigma, table.shape), sigma))
    return true, found


def error(true: list[np.ndarray], found: list[Measurement]) -> float:
    """Return the squared error of associations, without row and column sums."""
    out = 0.0
    for table, m in zip(true, found, strict=True):
        apart = m.values - table
        centred = apart - apart.mean(axis=0) - apart.mean(axis=1, keepdims=True) + apart.mean()
        out += float(np.sum(centred**2))
    return out


def test_a_smooth_association_loses_more_than_half_of_its_noise():
    for seed in range(4):
        true, found = pairs(np.random.default_rng(seed), smooth=True)
        made, chosen = smoothed(found, SHARES, ORDERED, ROWS)
        assert len(chosen) == PAIRS
        assert all(how.lengths[0] == 0 < how.lengths[1] for how in chosen.values())
        assert error(true, made) < 0.5 * error(true, found)
        assert all(m.sigma < 0.8 * 60.0 for m in made)


def test_counts_that_do_not_ask_for_it_hardly_change():
    for seed in range(4):
        true, found = pairs(np.random.default_rng(seed), smooth=False, sigma=20.0)
        made, _ = smoothed(found, SHARES, ORDERED, ROWS)
        assert error(true, made) < 1.05 * error(true, found)
        assert all(m.sigma > 0.9 * 20.0 for m in made)


def test_without_an_ordered_column_nothing_happens():
    _, found = pairs(np.random.default_rng(0), smooth=True)
    assert smoothed(found, SHARES, {}, ROWS) == (found, {})


def test_the_filter_is_the_posterior_mean_of_the_prior():
    """Compared with a direct solution over all cells, scaled so that the clearest direction is kept."""
    rng, strength, total = np.random.default_rng(2), 7.0, 900.0
    p, q, span, length = np.array([0.1, 0.4, 0.3, 0.15, 0.05]), np.array([0.7, 0.2, 0.1]), 4, 2
    m = Measurement(("a", "b"), total * np.outer(p, q) + rng.normal(0, 9, (5, 3)), 6.0)
    made = filtered(m, (p, q), (axis_of(p, span, length), axis_of(q)), strength, total)
    plain, other = np.diag(p) - np.outer(p, p), np.diag(q) - np.outer(q, q)
    near = np.eye(5)
    near[:4, :4] = [[np.exp(-((i - j) ** 2) / (2 * length**2)) for j in range(4)] for i in range(4)]
    smooth = plain @ near @ plain
    prior = (1 - ROUGH) * smooth * np.trace(plain) / np.trace(smooth) + ROUGH * plain
    variance = strength * total * np.kron(prior, other)
    centre = np.kron(np.eye(5) - 1 / 5, np.eye(3) - 1 / 3)
    gain = variance @ np.linalg.inv(variance + m.sigma**2 * np.eye(15)) @ centre
    largest = np.linalg.eigvalsh((gain + gain.T) / 2).max()
    expected = (gain @ (m.values - total * np.outer(p, q)).ravel()).reshape(5, 3) / largest
    assert np.allclose(made.values - total * np.outer(p, q), expected)
    assert made.sigma == pytest.approx(m.sigma * np.sqrt(np.trace(gain) / largest / (4 * 2)))


def test_columns_without_an_order_and_empty_cells_are_not_ordered():
    schema = Schema(
        (
            Column("colour", "categorical", ("red", "green", "blue")),
            Column("grade", "ordinal", ("low", "middle", "high"), missing=True),
            Column("age", "numeric", edges=(0, 18, 30, 65, 120)),
            Column("merged", "ordinal", ("a", "b", "c", "d")),
            Column("sex", "ordinal", ("f", "m")),
        )
    )
    assert ordered_values(schema, schema.sizes | {"merged": 3}) == {"grade": 3, "age": 4}
    near = axis_of(np.full(4, 0.25), 3, 8)
    alone = near.vectors @ np.diag(near.values) @ near.vectors.T
    assert abs(alone[3, 0]) == pytest.approx(abs(alone[3, 2])), "no ordered value is nearer to the empty cell"


def test_a_fit_uses_it_except_for_columns_with_impossible_cells():
    _, found = pairs(np.random.default_rng(1), smooth=True)
    sizes = {name: len(share) for name, share in SHARES.items()}
    fitted = Marginals(sizes, sizes, int(ROWS), tuple(found), shrunk=True, ordered=ORDERED)
    model = fitted.model()
    assert model.first is not None
    assert len(model.first.smooth) == PAIRS
    again = GraphicalModel.loads(model.dumps())
    assert again.first is not None
    assert again.first.smooth == model.first.smooth
    mask = np.zeros((2, BINS), dtype=bool)
    mask[0, 0] = True
    held = replace(fitted, impossible={("y", "x0"): mask}).model()
    assert held.first is not None
    assert len(held.first.smooth) == PAIRS - 1


def test_a_first_fit_of_an_earlier_version_has_no_smoothing():
    assert FirstFit({}, {}).smooth == {}


@pytest.mark.parametrize("lengths", [(x, y) for x in LENGTHS for y in LENGTHS if x or y])
def test_the_checker_smooths_in_the_same_way(lengths):
    rng, total, strength = np.random.default_rng(3), 800.0, 12.0
    p, q = rng.dirichlet(np.full(6, 2.0)), rng.dirichlet(np.full(4, 2.0))
    m = Measurement(("a", "b"), rng.normal(30, 9, (6, 4)), 5.0)
    made = filtered(m, (p, q), (axis_of(p, 5, lengths[0]), axis_of(q, 4, lengths[1])), strength, total)
    found = checker.smoothed(Counts(m.clique, m.values, m.sigma), (p, q), (5, 4), (lengths, strength), total)
    assert np.allclose(found.values, made.values)
    assert found.sigma == pytest.approx(made.sigma)


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        (Smooth((3, 0), 5.0), "unknown length"),
        (Smooth((0, 2), 5.0), "no order"),
        (Smooth((2, 0), 0.1), "outside the bounds"),
        (Smooth((2, 0), 900.0), "outside the bounds"),
        (Smooth((0, 0), 5.0), "outside the bounds"),
    ],
)
def test_the_checker_refuses_other_smoothing(how, fault):
    c, shares = Counts(("a", "b"), np.full((3, 2), 130.0), 5.0), (np.full(3, 1 / 3), np.full(2, 0.5))
    with pytest.raises(ValueError, match=fault):
        checker.smoothed(c, shares, (3, 0), (how.lengths, how.strength), 800.0)


def test_a_column_left_with_one_value_by_a_constraint_is_not_smoothed():
    """Previously, its pairs kept no noise, so a release that was paid for ended in a division by zero."""
    _, found = pairs(np.random.default_rng(0), smooth=True)
    shares = SHARES | {"y": np.array([1.0, 0.0])}
    same, chosen = smoothed(found, shares, ORDERED, ROWS)
    assert chosen == {}
    assert all(one is other for one, other in zip(same, found, strict=True))
