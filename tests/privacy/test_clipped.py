"""Clipped sums: ghost norms are the true ones, sums are whole numbers, and no person moves them more than is proved."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from espalier.core.errors import GraphError, SizeError
from espalier.core.privacy import clipped
from espalier.core.privacy.clipped import (
    _CHUNK_ENTRIES,
    _CHUNK_ROWS,
    INPUT_UNITS,
    LARGEST_CLIP,
    NEARLY,
    UNITS,
    _mixed,
    _row_noise,
    clip_units,
    clipped_sensitivity,
    clipped_sums,
)
from espalier.core.privacy.softmax_heads import CONSTANT, Heads
from espalier.core.privacy.unit import Unit

SIZES = {"a": 2, "one": 1, "b": 3, "y": 2}
PARENTS = {"b": ("a", "one"), "y": ("a", "b")}
BASE = {"a": 1, "b": 2}
ROWS = list(itertools.product(*map(range, SIZES.values())))


def heads(latent=0, importance=3.0):
    return Heads(SIZES, PARENTS, {"y": importance}, latent, BASE)


def codes(rows):
    return {name: np.array([row[i] for row in rows], dtype=np.uint8) for i, name in enumerate(SIZES)}


def numbers(shape, seed, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=shape)


def gradient(one, net, parameters, step=0):
    """A row's gradient written out block by block, from the definition and not from norms."""
    blocks, encoder = net.blocks(parameters)
    hot = np.concatenate([[CONSTANT], *(np.eye(size)[code] for size, code in zip(SIZES.values(), one, strict=True))])
    noise = _row_noise(codes([one]), net, step)[:, 0]
    code = encoder.T @ hot if net.latent else np.zeros(0)
    mean, spread = code[: net.latent], np.exp(0.5 * np.clip(code[net.latent :], -20, 5))
    z = np.rint(np.clip(mean + spread * noise, -8, 8) * INPUT_UNITS) / INPUT_UNITS
    parts, pull = [], np.zeros(net.latent)
    for i, name in enumerate(SIZES):
        if SIZES[name] == 1:
            continue
        parents = [np.delete(np.eye(SIZES[p])[one[list(SIZES).index(p)]], BASE[p]) for p in net.inputs(name)]
        read = np.concatenate([[CONSTANT], *parents, z])
        odds = read @ blocks[name]
        p = np.exp(odds - odds.max())
        residual = net.weight(name) * (np.eye(SIZES[name])[one[i]] - p / p.sum())
        parts.append(np.outer(read, residual).ravel())
        pull += blocks[name][len(read) - net.latent :] @ residual
    inner = np.concatenate([pull - mean, 0.5 * (pull * noise * spread - spread**2 + 1)])
    return np.concatenate([*parts, np.outer(hot, inner).ravel() if net.latent else []])


@pytest.mark.parametrize("latent", [0, 2])
@pytest.mark.parametrize("clip", [0.7, 3.0, 60.0])
def test_a_clipped_row_is_its_brute_force_gradient_scaled_to_the_norm(latent, clip):
    net = heads(latent)
    for seed, scale in enumerate((0.0, 1.0, 4.0)):
        parameters = numbers(net.parameters, seed, scale)
        for row in ROWS:
            expected = gradient(row, net, parameters)
            expected *= min(1.0, NEARLY * clip / max(np.linalg.norm(expected), 1e-300))
            got = clipped_sums(codes([row]), net, parameters, clip) / UNITS
            # truncation takes less than one residual unit from each entry, and the norm itself is rounded down
            assert np.abs(got - expected).max() < (9 if latent else 1.1) * INPUT_UNITS / UNITS + 1e-5
            assert np.linalg.norm(got) <= clip


def test_without_clipping_it_is_the_gradient_of_the_log_likelihood():
    net = heads(importance=1.0)
    parameters = numbers(net.parameters, 7, 0.5)
    rows = [ROWS[i] for i in np.random.default_rng(1).integers(0, len(ROWS), 30)]

    def likelihood(flat):
        blocks, total = net.blocks(flat)[0], 0.0
        for row in rows:
            at = dict(zip(SIZES, row, strict=True))
            for name in ("a", "b", "y"):
                odds, place = CONSTANT * blocks[name][0], 1
                for parent in net.inputs(name):
                    if at[parent] != BASE[parent]:
                        odds += blocks[name][place + at[parent] - (at[parent] > BASE[parent])]
                    place += SIZES[parent] - 1
                total += odds[at[name]] - np.log(np.exp(odds).sum())
        return total

    sums = clipped_sums(codes(rows), net, parameters, 60.0) / UNITS
    for i in range(net.parameters):
        moved = parameters.copy()
        moved[i] += 1e-6
        assert (likelihood(moved) - likelihood(parameters)) / 1e-6 == pytest.approx(sums[i], abs=1e-3)


@pytest.mark.parametrize("latent", [0, 3])
def test_the_sum_over_a_table_is_exactly_the_sum_over_its_rows_in_any_order(latent, monkeypatch):
    net = heads(latent)
    parameters = numbers(net.parameters, 3)
    rng = np.random.default_rng(4)
    rows = [ROWS[i] for i in rng.integers(0, len(ROWS), 200)]
    whole = clipped_sums(codes(rows), net, parameters, 1.5, step=5)
    assert whole.dtype == np.int64
    single = [clipped_sums(codes([row]), net, parameters, 1.5, step=5) for row in rows]
    assert (whole == sum(single)).all()
    order = rng.permutation(len(rows))
    assert (whole == clipped_sums(codes([rows[i] for i in order]), net, parameters, 1.5, step=5)).all()
    monkeypatch.setattr("espalier.core.privacy.clipped._CHUNK_ENTRIES", 1)
    monkeypatch.setattr("espalier.core.privacy.clipped._CHUNK_ROWS", 7)
    assert (whole == clipped_sums(codes(rows), net, parameters, 1.5, step=5)).all(), "for any division into chunks"


@pytest.mark.parametrize("latent", [0, 2])
def test_what_a_row_adds_hangs_on_no_chunk_that_it_stands_in(latent):
    """With many inputs and categories, float sums depend on their order, which libraries choose by shape."""
    rng = np.random.default_rng(5)
    sizes = {f"c{i}": int(size) for i, size in enumerate(rng.integers(2, 40, 24))}
    net = Heads(sizes, {name: tuple(sizes)[:i] for i, name in enumerate(sizes)}, {"c9": 100.0}, latent)
    parameters = numbers(net.parameters, 6)
    table = {name: rng.integers(0, size, 240).astype(np.uint8) for name, size in sizes.items()}

    def cut(length):
        parts = [{n: c[at : at + length] for n, c in table.items()} for at in range(0, 240, length)]
        return sum(clipped_sums(part, net, parameters, 64.0) for part in parts)

    whole = clipped_sums(table, net, parameters, 64.0)
    for length in (1, 2, 17, 239):
        assert (cut(length) == whole).all()


def test_a_row_of_a_wide_table_counts_wherever_it_stands():
    """Previously, the squares of 8,000 residuals were added in single precision, and their sum was below the true norm.
    A row was ignored among others and counted in full on its own, so a row that came or went moved the sum by up to
    twice its sensitivity.
    """
    sizes = {f"c{i}": 2 for i in range(4000)}
    net = Heads(sizes, {}, dict.fromkeys(sizes, 100.0))
    for weight in (-1.14, -0.9, 0.6):
        parameters = np.tile([weight, 0.0], len(sizes))
        one, other = ({name: np.array([code], np.uint8) for name in sizes} for code in (0, 1))
        both = {name: np.array([0, 1], np.uint8) for name in sizes}
        alone = [clipped_sums(row, net, parameters, 64.0) for row in (one, other)]
        assert (clipped_sums(both, net, parameters, 64.0) == sum(alone)).all()
        for sums in alone:
            assert 0.999 * clip_units(64.0) < np.linalg.norm(sums) <= clip_units(64.0)


@pytest.mark.parametrize("latent", [0, 1])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("k", [1, 2])
def test_no_person_moves_the_sum_by_more_than_its_sensitivity(latent, neighbors, k):
    """Every row is replaced by every other: the remaining rows add the same on both sides."""
    net, clip = heads(latent), 0.5
    bound = clipped_sensitivity(Unit(neighbors, k), clip)
    worst = 0
    for seed, scale in enumerate((0.0, 1.0, 30.0)):
        parameters = numbers(net.parameters, seed, scale)
        one = [clipped_sums(codes([row]), net, parameters, clip).astype(object) for row in ROWS]
        groups: list[Any] = [sum(g) for g in itertools.combinations_with_replacement(one, k)]
        others = groups if neighbors == "replace-one" else [0 * groups[0]]
        worst = max(worst, max(int(((g - h) ** 2).sum()) for g in groups for h in others))
    assert worst <= bound**2, "compared as whole numbers, so no rounding hides an excess"
    assert math.isqrt(worst) >= 0.7 * bound, "the enumeration must come near the bound, or it tests nothing"


def test_the_enumeration_would_tell_one_clip_from_two():
    """Replaced rows move the sum by more than k·C: the factor 2 is needed."""
    net, clip = heads(), 0.5
    parameters = numbers(net.parameters, 0)
    one = [clipped_sums(codes([row]), net, parameters, clip) for row in ROWS]
    worst = max(float(np.linalg.norm(g - h)) for g in one for h in one)
    assert worst > 1.2 * clipped_sensitivity(Unit("add-remove"), clip)


def test_no_row_is_above_the_norm_after_rounding_even_with_wild_parameters():
    """At 1e6, exponentials overflow; values that are not numbers add nothing."""
    for latent in (0, 2):
        net = heads(latent)
        for seed in range(20):
            parameters = numbers(net.parameters, seed, 3e5)
            parameters = np.clip(parameters, -1e6, 1e6)
            for row in ROWS:
                q = clipped_sums(codes([row]), net, parameters, 0.3).astype(object)
                assert int((q**2).sum()) <= clip_units(0.3) ** 2


def test_the_noise_of_z_hangs_on_the_row_and_the_step_alone_and_is_normal():
    net = heads(2)
    wide = Heads({f"c{i}": 256 for i in range(3)}, {}, latent=2)
    rng = np.random.default_rng(0)
    draws: Any = _row_noise({f"c{i}": rng.integers(0, 256, 100_000) for i in range(3)}, wide, 1)
    assert abs(draws.mean()) < 0.015
    assert draws.std() == pytest.approx(1, abs=0.01)
    assert abs(np.corrcoef(draws)[0, 1]) < 0.02
    several = _row_noise(codes([ROWS[0], ROWS[5], ROWS[0]]), net, 2)
    assert (several[:, 0] == several[:, 2]).all()
    assert not (several[:, 0] == several[:, 1]).any()
    assert not (several == _row_noise(codes([ROWS[0], ROWS[5], ROWS[0]]), net, 3)).any()
    assert int(_mixed(np.array([0], dtype=np.uint64))[0]) == 0xE220A8397B1DCDAF, "SplitMix64's first output"


def test_no_number_of_rows_is_refused_after_the_budget_is_spent(monkeypatch):
    """Previously, 2²⁷ rows at the largest clip were refused in the first step; only the sum of a chunk must fit
    float64."""
    length = max(_CHUNK_ROWS, _CHUNK_ENTRIES)
    assert length * clip_units(LARGEST_CLIP) < 2**53
    net, seen = heads(), []

    def chunk(rows, *_):
        seen.append(rows)
        return np.full(net.parameters, 2**40)

    monkeypatch.setattr(clipped._Rows, "of", lambda part, *_: len(part["a"]))
    monkeypatch.setattr(clipped, "_chunk", chunk)
    many = {name: np.broadcast_to(np.zeros(1, dtype=np.uint8), (2**27,)) for name in SIZES}
    total = clipped_sums(many, net, np.zeros(net.parameters), LARGEST_CLIP)
    assert sum(seen) == 2**27
    assert max(seen) <= length
    assert (total == len(seen) * 2**40).all()


def test_what_cannot_be_asked_is_refused():
    net = heads()
    good = np.zeros(net.parameters)
    for bad in (np.full(net.parameters, np.nan), np.full(net.parameters, 1e7), np.zeros(3)):
        with pytest.raises(ValueError, match="parameters"):
            clipped_sums(codes(ROWS), net, bad, 1.0)
    for clip in (0.0, -1.0, 65.0, math.nan, 1e-9):
        with pytest.raises(ValueError, match="clip"):
            clipped_sums(codes(ROWS), net, good, clip)
    with pytest.raises(GraphError, match="cycle"):
        Heads(SIZES, {"a": ("b",), "b": ("a",)})
    with pytest.raises(GraphError, match="does not join"):
        Heads(SIZES, {"a": ("nobody",)})
    with pytest.raises(SizeError, match="more than the 200,000 allowed") as error:
        Heads({"p": 1000, "x": 300}, {"x": ("p",)})
    assert error.value.data["column"] == "x"
    with pytest.raises(ValueError, match="latent"):
        Heads(SIZES, {}, latent=9)
    with pytest.raises(ValueError, match="base"):
        Heads(SIZES, {}, base={"a": 2})


def worst_move(sums):
    """The largest change of ``sums`` if one of two rows is replaced, over all pairs of rows and all replacements."""
    parameters = numbers(heads().parameters, 0)
    at = {tuple(sorted(pair)): sums(pair, parameters) for pair in itertools.combinations_with_replacement(ROWS, 2)}
    return max(
        float(np.linalg.norm(at[tuple(sorted((kept, a)))] - at[tuple(sorted((kept, b)))]))
        for kept in ROWS
        for a, b in itertools.combinations(ROWS, 2)
    )


def test_broken_copies_cost_more_than_they_are_charged():
    """A Gaussian of scale σ on a sum that moves by d is d²/(2σ²)-zCDP: that must be the ρ that is charged, and here it
    is not.
    """
    net, clip, rho = heads(), 0.5, 0.01
    unit = Unit("replace-one")

    def honest(rows, parameters):
        return clipped_sums(codes(rows), net, parameters, clip).astype(float)

    def after_the_sum(rows, parameters):
        """The *sum* is scaled down to the largest norm that its clipped rows could have in total."""
        total = sum(gradient(row, net, parameters) for row in rows) * UNITS
        return total * min(1.0, clip * UNITS * len(rows) / np.linalg.norm(total))

    def cost(sums, sensitivity, noise=1.0):
        sigma = noise * sensitivity / math.sqrt(2 * rho)
        return worst_move(sums) ** 2 / (2 * sigma**2)

    proved = clipped_sensitivity(unit, clip)
    assert 0.5 * rho < cost(honest, proved) <= rho
    assert cost(after_the_sum, proved) > rho, "clipped after the sum"
    assert cost(honest, clipped_sensitivity(Unit("add-remove"), clip)) > rho, "C instead of 2C"
    assert cost(honest, proved, noise=0.5) > rho, "half the noise"
