"""The decoder as a model: its rows, its file, its separations, and its training."""

from __future__ import annotations

import io
import itertools
import json
from typing import Any

import networkx as nx
import numpy as np
import pytest

from espalier.core.errors import Cancelled, EspalierError
from espalier.core.models.decoder import Decoder, draw, logits, parents_of, separated
from espalier.core.models.decoder_training import NoisyInteraction, Training, rake, train
from espalier.core.privacy.clipped import UNITS, clipped_sums
from espalier.core.privacy.draws import SumMeasurement
from espalier.core.privacy.softmax_heads import CONSTANT, Heads

SIZES = {"a": 2, "b": 3, "only": 1, "y": 2}
EDGES = (("a", "b"), ("a", "y"), ("b", "y"), ("only", "y"))


def decoder(latent=0, seed=0):
    heads = Heads(SIZES, parents_of(SIZES, EDGES), {"y": 2.0}, latent, {"b": 1})
    return Decoder(heads, np.random.default_rng(seed).normal(size=heads.parameters))


def joint(model):
    """Return the probability of every row, computed from the parameters."""
    blocks, out = model.heads.blocks(model.parameters)[0], {}
    start = {name: CONSTANT * block[0] for name, block in blocks.items() if len(block)}
    for a, b, y in itertools.product(range(2), range(3), range(2)):
        of_a, of_b = (np.concatenate([[np.zeros(2)], blocks["y"][1:2]]), np.insert(blocks["y"][2:], 1, 0, axis=0))
        odds = [(start["a"], a), (start["b"] + a * blocks["b"][1], b), (start["y"] + of_a[a] + of_b[b], y)]
        out[a, b, y] = float(np.prod([np.exp(o[k]) / np.exp(o).sum() for o, k in odds]))
    return out


def test_rows_are_drawn_from_the_network():
    model, n = decoder(), 200_000
    rows = model.sample(n, np.random.default_rng(0))
    assert list(rows) == list(SIZES)
    assert all(c.dtype == np.uint8 and len(c) == n for c in rows.values())
    flat = rows["a"] * 6 + rows["b"] * 2 + rows["y"].astype(int)
    seen = np.bincount(flat, minlength=12) / n
    assert np.abs(seen - list(joint(model).values())).max() < 0.007


def test_even_rows_err_less_and_follow_the_same_network():
    model, n = decoder(), 3000
    truth = np.array(list(joint(model).values()))
    errors: dict[bool, list[float]] = {False: [], True: []}
    summed = np.zeros(12)
    for seed in range(20):
        for even in errors:
            rows = model.sample(n, np.random.default_rng(seed), even=even)
            seen = np.bincount(rows["a"] * 6 + rows["b"] * 2 + rows["y"].astype(int), minlength=12) / n
            errors[even].append(np.abs(seen - truth).sum())
            summed += seen * even
    assert max(errors[True]) < 0.02 < np.mean(errors[False])
    assert np.abs(summed / 20 - truth).max() < 0.002


def test_even_rows_of_columns_without_a_link_stay_unlinked():
    sizes = {"a": 3, "b": 4}
    heads = Heads(sizes, {})
    rows = Decoder(heads, np.zeros(heads.parameters)).sample(8000, np.random.default_rng(0), even=True)
    counts = np.bincount(rows["a"] * 4 + rows["b"].astype(int), minlength=12)
    assert np.abs(counts - 8000 / 12).max() < 150  # 6 standard deviations of independent draws
    neighbours = np.corrcoef(rows["b"][1:], rows["b"][:-1])[0, 1]
    assert abs(neighbours) < 0.06


def archive(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def test_a_file_gives_the_same_model_back_and_anything_else_is_refused():
    for latent in (0, 2):
        model = decoder(latent)
        back = Decoder.loads(model.dumps())
        assert (back.parameters == model.parameters).all()
        assert back.edges == model.edges == (("a", "b"), ("a", "y"), ("b", "y"))
        for left, right in zip(*(m.sample(50, np.random.default_rng(1)).values() for m in (model, back)), strict=True):
            assert (left == right).all()
    with np.load(io.BytesIO(model.dumps()), allow_pickle=False) as file:
        assert set(file) == {"head", "parameters"}
        head = file["head"]
    broken = {
        "text": b"no archive",
        "short": archive(head=head, parameters=np.zeros(2)),
        "not a number": archive(head=head, parameters=np.full(model.heads.parameters, np.nan)),
    }
    with pytest.raises(EspalierError, match="format is 'x', .* read it with the version that saved it"):
        Decoder.loads(archive(head=np.frombuffer(b'{"format": "x"}', np.uint8)))
    for data in broken.values():
        with pytest.raises(EspalierError, match="not a decoder"):
            Decoder.loads(data)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_file_that_somebody_changed_is_refused_in_words(number):
    model = decoder()
    with np.load(io.BytesIO(model.dumps()), allow_pickle=False) as file:
        told = json.loads(file["head"].tobytes()) | {"format": f"espalier-decoder/{number}"}
    changed = [{n: v for n, v in told.items() if n != key} for key in told if (key, number) != ("base", 1)]
    for key in told:
        wrong_values: list[Any] = [None, "x", [[]], 1e400, -1, [1], {"a": None}]
        changed += [told | {key: value} for value in wrong_values]
    sizes = ([["a", 0], ["b", 3]], [["a", 2], ["a", 3]], [["a", 10**12]], [["a", 1e400]])
    changed += [told | {"sizes": wrong, "edges": [], "importance": {}, "base": {}} for wrong in sizes]
    heads = [json.dumps(head).encode() for head in changed] + [b"", b"[]", b"[" * 100_000]
    files = [archive(head=np.frombuffer(head, np.uint8), parameters=model.parameters) for head in heads]
    head = np.frombuffer(json.dumps({n: v for n, v in told.items() if n != "base" or number > 1}).encode(), np.uint8)
    large = np.full(len(model.parameters), 1.7e308)
    files += [archive(head=head, parameters=p) for p in (np.zeros(0), np.array(3.0), large, model.parameters + 1j)]
    whole = model.dumps()
    files += [whole[:at] + b"\xff\xff" + whole[at + 2 :] for at in range(60, 200, 4)]
    refused = 0
    for data in files:
        try:
            read = Decoder.loads(data)
        except EspalierError:
            refused += 1
        else:  # the choice of damaged parts does not depend on the model
            assert read.heads.sizes == model.heads.sizes
    assert refused > 0.9 * len(files)


@pytest.mark.parametrize("latent", [0, 2])
def test_a_file_of_the_first_format_is_read_as_the_same_distribution(latent):
    rng = np.random.default_rng(7)
    shapes = {"a": (1, 2), "b": (3, 3), "y": (6, 2)}  # rows: 1, then all categories of the causes but those of "only"
    first = {name: rng.normal(size=(rows + latent, size)) for name, (rows, size) in shapes.items()}
    encoder = rng.normal(size=(1 + sum(SIZES.values()), 2 * latent))
    told = {"format": "espalier-decoder/1", "sizes": list(SIZES.items()), "edges": EDGES[:3], "importance": {}}
    head = np.frombuffer(json.dumps({**told, "latent": latent, "total": 9.0, "steps": 3}).encode(), np.uint8)
    parameters = np.concatenate([*(w.ravel() for w in first.values()), encoder.ravel()])
    model = Decoder.loads(archive(head=head, parameters=parameters))
    assert (model.total, model.steps, model.edges) == (9.0, 3, EDGES[:3])
    blocks, read = model.heads.blocks(model.parameters)
    read[:1] *= CONSTANT
    assert read.ravel() == pytest.approx(encoder.ravel())
    z = rng.normal(size=(latent, 1))
    for a, b in itertools.product(range(2), range(3)):
        made = {"a": np.array([a]), "b": np.array([b])}
        rows = {"a": [0], "b": [0, 1 + a], "y": [0, 1 + a, 3 + b]}
        for name, weights in first.items():
            odds = weights[rows[name]].sum(axis=0) + (weights[len(weights) - latent :].T @ z).ravel()
            assert logits(model.heads, blocks[name], name, made, z).ravel() == pytest.approx(odds)
    with pytest.raises(EspalierError, match="not a decoder"):
        Decoder.loads(archive(head=head, parameters=parameters[:-1]))
    assert Decoder.loads(model.dumps()).parameters.tolist() == model.parameters.tolist()


@pytest.mark.parametrize("latent", [0, 2])
def test_a_file_of_the_second_format_is_read_as_the_same_distribution(latent):
    now = decoder(latent)
    parameters = now.parameters.copy()
    blocks, encoder = now.heads.blocks(parameters)
    for block in (*blocks.values(), encoder):
        block[:1] *= CONSTANT  # in the old format, intercepts are multiplied by 1
    told: dict[str, Any] = {
        "format": "espalier-decoder/2",
        "sizes": list(SIZES.items()),
        "edges": EDGES,
        "importance": {"y": 2.0},
    }
    told |= {"latent": latent, "base": {"b": 1}, "total": 9.0, "steps": 3}
    read = Decoder.loads(archive(head=np.frombuffer(json.dumps(told).encode(), np.uint8), parameters=parameters))
    assert read.heads == now.heads
    assert read.parameters.tolist() == pytest.approx(now.parameters.tolist())


@pytest.mark.parametrize("seed", range(6))
def test_separations_are_those_of_d_separation(seed):
    rng = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(6)]
    edges = [(a, b) for a, b in itertools.combinations(names, 2) if rng.random() < 0.4]
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(names)
    parents = parents_of(dict.fromkeys(names, 2), edges)
    answers = set()
    for left, right in itertools.combinations(names, 2):
        others = [n for n in names if n not in (left, right)]
        for k in range(3):
            for given in itertools.combinations(others, k):
                said = separated(parents, {left}, {right}, set(given))
                assert said == nx.is_d_separator(graph, {left}, {right}, set(given))
                answers.add(said)
    assert answers == {True, False}


def test_a_collider_is_open_only_when_it_is_given_and_a_shared_z_promises_nothing():
    sizes = {"a": 2, "b": 2, "c": 2}
    parents = parents_of(sizes, [("a", "c"), ("b", "c")])
    plain, shared = Heads(sizes, parents), Heads(sizes, parents, latent=1)
    model = Decoder(plain, np.zeros(plain.parameters))
    assert model.holds(["a"], ["b"], []) is True
    assert model.holds(["a"], ["b"], ["c"]) is False
    assert Decoder(shared, np.zeros(shared.parameters)).holds(["a"], ["b"], []) is None


def answer(values, sigma=0.0):
    return SumMeasurement("", values, sigma, 1.0, 1.0)


def exact(rows, heads, clip=3.0):
    return lambda parameters, step: answer(clipped_sums(rows, heads, parameters, clip, step) / UNITS)


def test_training_without_noise_finds_the_network_that_made_the_rows():
    truth = decoder(seed=3)
    rows = truth.sample(20_000, np.random.default_rng(1))
    counts = {n: np.bincount(rows[n], minlength=k).astype(float) for n, k in SIZES.items()}
    fitted = train(
        truth.heads, counts, exact(rows, truth.heads, 20.0), Training(steps=100, clip=20.0), np.random.default_rng(2)
    )
    made = fitted.sample(200_000, np.random.default_rng(3))
    for pair in itertools.combinations(("a", "b", "y"), 2):
        shape = (SIZES[pair[0]], SIZES[pair[1]])
        tables = []
        for t in (rows, made):
            flat = np.ravel_multi_index((t[pair[0]], t[pair[1]]), shape)
            tables.append(np.bincount(flat, minlength=6) / len(flat))
        assert 0.5 * np.abs(tables[0] - tables[1]).sum() < 0.02
    assert fitted.strength()["a", "b"] == pytest.approx(truth.strength()["a", "b"], abs=0.1)
    assert set(fitted.strength()) == set(truth.edges)


def test_a_latent_carries_what_no_arrow_does():
    rng = np.random.default_rng(0)
    u = rng.random(8000) < 0.5
    rows = {f"x{i}": (u ^ (rng.random(8000) < 0.1)).astype(np.uint8) for i in range(6)}
    sizes = dict.fromkeys(rows, 2)
    counts = {n: np.bincount(c, minlength=2).astype(float) for n, c in rows.items()}
    found = []
    for latent in (0, 1):
        heads = Heads(sizes, {}, latent=latent)
        fitted = train(heads, counts, exact(rows, heads), Training(steps=80), np.random.default_rng(1))
        made = fitted.sample(20_000, rng)
        found.append(np.corrcoef(made["x0"], made["x1"])[0, 1])
    assert abs(found[0]) < 0.05
    assert found[1] > 0.3


def test_raking_gives_back_the_one_way_counts():
    wanted = {"a": np.array([0.9, 0.1]), "b": np.array([0.2, 0.3, 0.5]), "only": np.ones(1), "y": np.array([0.6, 0.4])}
    raked = rake(decoder(seed=5), wanted, np.random.default_rng(0))
    rows = raked.sample(200_000, np.random.default_rng(1))
    for name, shares_ in wanted.items():
        assert np.abs(np.bincount(rows[name], minlength=len(shares_)) / 200_000 - shares_).max() < 0.015


def test_an_interaction_is_raked_to_its_counts_and_read_again():
    """y is the XOR of a and b in the counts, and independent in the head."""
    heads = Heads({"a": 2, "b": 2, "c": 3, "y": 2}, {"y": ("a", "b", "c")}, base={"a": 1})
    counts = 1_000 * np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]])
    even = {name: np.full(size, 1 / size) for name, size in heads.sizes.items()}
    start = Decoder(heads, np.zeros(heads.parameters))
    made = rake(start, even, np.random.default_rng(0), {"y": [NoisyInteraction(("a", "b"), counts, 5.0)]})
    for one in (made, Decoder.loads(made.dumps())):
        rows = one.sample(20_000, np.random.default_rng(1))
        assert 0.88 < np.mean((rows["a"] ^ rows["b"]) == rows["y"]) < 0.92
        assert one.strength()["a", "y"] == pytest.approx(0.8, abs=0.03)
        assert one.strength()["c", "y"] < 0.01
    quiet = rake(start, even, np.random.default_rng(0), {"y": [NoisyInteraction(("a", "b"), counts, 1e4)]})
    assert np.abs(quiet.interactions["y"]["a", "b"]).max() < 0.1, "the part that noise explains is left out"


@pytest.mark.parametrize("wrong", ["shape", "causes", "number"])
def test_a_file_with_a_wrong_interaction_is_refused(wrong):
    heads = Heads({"a": 2, "b": 2, "y": 2}, {"y": ("a", "b")})
    factors = np.zeros((2, 2, 3) if wrong == "shape" else (2, 2, 2))
    factors[0, 0, 0] = np.nan if wrong == "number" else 0.0
    causes = ("a", "y") if wrong == "causes" else ("a", "b")
    made = Decoder(heads, np.zeros(heads.parameters), interactions={"y": {causes: factors}})
    with pytest.raises(EspalierError, match="not a decoder saved by Espalier"):
        Decoder.loads(made.dumps())


def test_progress_is_told_at_every_step_and_raising_stops_it():
    heads = decoder().heads
    counts = {n: np.ones(k) for n, k in SIZES.items()}
    said, asked = [], []

    def report(fraction, message):
        said.append((fraction, message))
        if len(said) == 4:
            raise Cancelled("enough")

    def noisy(_, step):
        asked.append(step)
        return answer(np.zeros(heads.parameters))

    with pytest.raises(Cancelled):
        train(heads, counts, noisy, Training(steps=10), np.random.default_rng(0), report)
    assert asked == [0, 1, 2]
    assert [f for f, _ in said] == sorted(f for f, _ in said)


def test_a_thousand_columns_have_no_width():
    names = [f"c{i}" for i in range(1000)]
    sizes = dict.fromkeys(names, 2)
    heads = Heads(sizes, {n: tuple(names[max(0, i - 3) : i]) for i, n in enumerate(names)})
    rows = {n: np.random.default_rng(i).integers(0, 2, 300) for i, n in enumerate(names)}
    counts = {n: np.bincount(c, minlength=2).astype(float) for n, c in rows.items()}
    fitted = train(heads, counts, exact(rows, heads), Training(steps=2), np.random.default_rng(0))
    assert len(fitted.sample(10, np.random.default_rng(0))) == 1000


def test_one_category_per_row_is_drawn():
    odds = np.log(np.array([[1.0, 1e-12, 1e-12], [1e-12, 1.0, 1e-12], [1e-12, 1e-12, 1.0]]))
    assert draw(odds, np.random.default_rng(0).random(3)).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="steps"):
        Training(steps=0)
    with pytest.raises(ValueError, match="rows"):
        decoder().sample(-1, np.random.default_rng(0))


def test_an_arrow_to_a_column_with_one_value_has_no_strength():
    """Previously, Diagnostics ended in an error."""
    sizes = {"a": 3, "only": 1, "y": 2}
    heads = Heads(sizes, parents_of(sizes, (("a", "only"), ("only", "y"), ("a", "y"))))
    found = Decoder(heads, np.random.default_rng(0).normal(size=heads.parameters)).strength()
    assert found["a", "only"] == 0.0
    assert found["a", "y"] > 0
