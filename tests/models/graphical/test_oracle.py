"""The dynamic program agrees with brute force over the whole joint table, on 240 random graphs."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.errors import EspalierError, SizeError
from espalier.core.models.graphical import GraphicalModel
from tests.support.graphs import SHAPES, joint_probabilities, joint_scores, project, random_model

CASES = [(shape, seed) for shape in SHAPES for seed in range(40)]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def case(request):
    shape, seed = request.param
    rng = np.random.default_rng([SHAPES.index(shape), seed])
    model = random_model(shape, rng, zeros=seed % 4 == 0)
    while not np.isfinite(joint_scores(model)).any():
        model = random_model(shape, rng, zeros=seed % 4 == 0)
    return model, *joint_probabilities(model), rng


def subset(names, rng):
    return tuple(rng.permutation(names)[: rng.integers(0, len(names) + 1)].tolist())


def test_every_answer_equals_brute_force(case):
    model, joint, log_partition, rng = case
    assert model.log_partition == pytest.approx(log_partition, abs=1e-9)
    names = list(model.sizes)
    for clique in [*model.cliques, *((name,) for name in names), subset(names, rng), subset(names, rng)]:
        answer = model.marginal(clique)
        np.testing.assert_allclose(answer, project(model, joint, clique) * model.total, atol=1e-9 * model.total)
        assert answer.sum() == pytest.approx(model.total)


def test_conditionals_equal_brute_force(case):
    model, joint, _, rng = case
    names = rng.permutation(list(model.sizes)).tolist()
    cut = int(rng.integers(0, len(names) + 1))
    columns, given = tuple(names[:cut]), tuple(names[cut:][:2])
    answer = model.conditional(columns, given)
    both = project(model, joint, columns + given)
    below = both.sum(axis=tuple(range(len(columns))), keepdims=True)
    np.testing.assert_allclose(answer * below, both, atol=1e-12)


def test_mutual_information_equals_brute_force(case):
    model, joint, _, rng = case
    names = rng.permutation(list(model.sizes)).tolist()
    left, right, given = tuple(names[:1]), tuple(names[1:3]), tuple(names[3:5])

    def entropy(columns):
        p = project(model, joint, columns)
        return -float(np.sum(p[p > 0] * np.log(p[p > 0])))

    expected = entropy(left + given) + entropy(right + given) - entropy(left + right + given) - entropy(given)
    assert model.cmi(left, right, given) == pytest.approx(expected, abs=1e-9)


def test_a_saved_model_is_the_same_model(tmp_path):
    sizes = {"größe, cm": 3, "a/b": 2, "“x”": 1, "": 4}
    potentials = {("größe, cm", "a/b"): np.random.default_rng(0).normal(size=(3, 2)), ("“x”", ""): np.zeros((1, 4))}
    potentials[("größe, cm", "a/b")][0, 0] = -np.inf
    plain = random_model("tree", np.random.default_rng(0))
    model = GraphicalModel(sizes, tuple(potentials), potentials, 12.5, plain.fit)
    model.save(tmp_path / "model.npz")
    again = GraphicalModel.load(tmp_path / "model.npz")
    assert (again.sizes, again.cliques, again.total, again.fit) == (sizes, model.cliques, 12.5, model.fit)
    assert list(again.sizes) == list(sizes)
    for clique, table in potentials.items():
        np.testing.assert_array_equal(again.potentials[clique], table)


def test_another_file_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    (tmp_path / "text.npz").write_text("hello")
    for name in ("other.npz", "text.npz"):
        with pytest.raises(EspalierError, match="is not a model saved by Espalier"):
            GraphicalModel.load(tmp_path / name)


def test_a_file_with_two_bytes_changed_is_read_or_refused_in_words():
    data = random_model("tree", np.random.default_rng(0)).dumps()
    refused = 0
    for at in range(0, len(data) - 2, 2):
        try:
            GraphicalModel.loads(data[:at] + b"\xff\xff" + data[at + 2 :])
        except EspalierError:
            refused += 1
    assert refused > 100


def test_answers_above_the_limit_are_refused_by_name():
    model = random_model("tree", np.random.default_rng(3), columns=6, largest=5)
    names = tuple(model.sizes)
    with pytest.raises(SizeError, match="needs one table of") as caught:
        model.marginal(names, max_cells=3)
    assert set(caught.value.data["clique"]) <= set(names)
    assert caught.value.data["limit"] == 3
    with pytest.raises(KeyError, match="no column 'nobody'"):
        model.marginal(("nobody",))
    with pytest.raises(ValueError, match="named twice"):
        model.marginal((names[0], names[0]))


def test_a_model_without_columns():
    plain = random_model("tree", np.random.default_rng(0))
    model = GraphicalModel({}, (), {}, 5.0, plain.fit)
    assert model.marginal(()) == 5.0
    assert model.sample(3, np.random.default_rng(0)) == {}
