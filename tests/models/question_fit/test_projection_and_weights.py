"""The projection and its certificate, multiplicative weights, and predictions, on tables that can be enumerated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import linprog

from espalier.core.errors import SizeError
from espalier.core.models.graphical import Zeros, estimate
from espalier.core.models.question_fit import (
    Block,
    Network,
    Question,
    Rule,
    VisibleModel,
    check_cost,
    direct_errors,
    direct_is_better,
    fit_together,
    lower,
    lower_bound,
    marginal_errors,
    multiplicative_weights,
    predict_cost,
    project,
    public_rule,
    sensitivity,
)
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.draws import Measurement
from tests.support.enumeration import answers, every_row, workload


def posed(seed):
    """A workload, its statistics on every row, and noisy answers that contradict each other."""
    rng = np.random.default_rng([seed, 9])
    sizes, questions, counts = workload(rng, questions=12)
    lowered = lower(sizes, questions, counts)
    held = answers(every_row(sizes), questions, counts)[0]
    true = held @ rng.dirichlet(np.full(held.shape[1], 0.3)) * 1000
    return lowered, held, true, rng


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("warm", [False, True])
def test_projection_is_the_full_linear_program(seed, warm):
    lowered, held, true, rng = posed(seed)
    network = Network(lowered.sizes, lowered.blocks, lowered.zeros)
    scale = rng.uniform(10, 60, len(true))
    noisy = (true + rng.normal(0, scale))[lowered.order]
    scale = scale[lowered.order]
    start = network.draw(np.zeros(network.length), 20, rng) if warm else {}
    best = project(network, noisy, scale, 1000.0, start, rng)
    slow = held[lowered.order]
    limits = np.block([[slow, -scale[:, None] / 1000], [-slow, -scale[:, None] / 1000]])
    whole = np.ones((1, slow.shape[1] + 1))
    cost = np.zeros(slow.shape[1] + 1)
    cost[-1], whole[0, -1] = 1.0, 0.0
    full = linprog(cost, limits, np.concatenate([noisy, -noisy]) / 1000, whole, [1.0], (0, None), method="highs").fun
    assert best.certificate.alpha == pytest.approx(full, abs=1e-9)
    proved = lower_bound(network, noisy, scale, 1000.0, best.certificate.weights)
    assert proved == pytest.approx(full, abs=1e-9)
    by_hand = best.certificate.weights @ noisy - 1000 * (best.certificate.weights @ slow).max()
    assert by_hand / (scale @ np.abs(best.certificate.weights) or 1.0) == pytest.approx(proved, abs=1e-9)
    assert np.abs((best.answers - noisy) / scale).max() == pytest.approx(full, abs=1e-6)
    assert best.shares.sum() == pytest.approx(1.0)
    assert lower_bound(network, noisy, scale, 1000.0, rng.normal(size=len(noisy))) <= full + 1e-9
    assert lower_bound(network, noisy, scale, 1000.0, np.zeros(len(noisy))) == 0.0


@pytest.mark.parametrize("step", [None, 0.3])
@pytest.mark.parametrize("samples", [None, 20_000])
def test_multiplicative_weights_without_noise_reach_the_answers(step, samples):
    lowered, held, true, rng = posed(3)
    network = Network(lowered.sizes, lowered.blocks, lowered.zeros)
    true = true[lowered.order]

    def choose(expected):
        worst = int(np.argmax(np.abs(true - expected)))
        return worst, 1 if true[worst] > expected[worst] else -1

    def margin(chosen, sign, expected):
        return sign * (true[chosen] - expected)

    course = multiplicative_weights(
        network, 1000.0, Rule(300, 30.0, step), choose, margin, samples=samples, rng=rng if samples else None
    )
    assert course.stopped
    assert course.rounds < 300
    assert np.abs(course.fitted - true).max() <= (30.0 if samples is None else 60.0)
    start = network.evaluate(np.zeros(network.length))[1] * 1000
    assert np.abs(start - true).max() > 60.0
    p = np.exp(course.weights @ held[lowered.order])
    np.testing.assert_allclose(course.fitted, held[lowered.order] @ p / p.sum() * 1000, atol=1e-6)


def test_sampling_needs_a_generator():
    lowered = posed(0)[0]
    network = Network(lowered.sizes, lowered.blocks, lowered.zeros)
    with pytest.raises(ValueError, match="generator"):
        multiplicative_weights(network, 10.0, Rule(1, 0.0), lambda e: (0, 1), lambda j, s, e: 0.0, samples=5)


def test_the_public_rule_grows_with_rows_and_shrinks_with_rows_per_person():
    sizes = dict.fromkeys("abcdefghij", 6)
    few, many = (public_rule(sizes, n, 10_000, Budget(1.0, 1e-9, 0.02)) for n in (500, 20_000))
    assert few.rounds < many.rounds
    assert public_rule(sizes, 20_000, 10_000, Budget(1.0, 1e-9, 0.02), 5).rounds < many.rounds
    assert few.threshold < 0


def test_predicted_errors_are_those_of_simulated_noise():
    """1,000 draws of 5 scales: a standard deviation is off by more than 20 % once in 10⁹ runs."""
    sizes = {"a": 3, "b": 4}
    questions = [
        Question("x", ({"a": (0,), "b": (1, 2)},)),
        Question("y", ({"b": (0, 1, 2)},)),
        Question("z", ({"a": (1,)},)),
    ]
    lowered = lower(sizes, questions)
    cliques, errors = marginal_errors(lowered, np.sqrt(2), 0.01, total_known=True)
    assert cliques == (("a", "b"),)
    rng = np.random.default_rng(0)
    noise = rng.normal(0, np.sqrt(2) / np.sqrt(0.02), (1000, 12))
    noise -= noise.mean(axis=1, keepdims=True)
    held = np.array([q.holds(every_row(sizes)) for q in questions], dtype=float)
    seen = noise @ held.T
    np.testing.assert_allclose(seen.std(axis=0), errors.sigma, rtol=0.2)
    delta = sensitivity(lowered, replace=True)
    direct = direct_errors(3, delta.value, 0.01)
    seen = np.abs(rng.normal(0, direct.sigma[0], (4000, 3))).max(axis=1)
    assert 0.4 < np.mean(seen > direct.worst) < 0.6
    assert direct_is_better(direct, None)
    assert direct_is_better(direct, (cliques, errors)) == (direct.worst <= errors.worst)
    counted = lower(sizes, [Question("n", ({"n": (1,)},))], [posed_count()])
    assert marginal_errors(counted, 1.0, 0.01, total_known=False) is None


def posed_count():
    from espalier.core.models.question_fit import Count

    return Count("n", {"a": (1,), "b": (0, 1)}, 2)


def test_many_questions_on_few_cliques_are_better_asked_of_marginals():
    rng = np.random.default_rng(1)
    sizes = {f"c{i}": 4 for i in range(4)}
    codes = [tuple(sorted(rng.permutation(4)[:2].tolist())) for _ in range(4_000)]
    many = [Question(str(j), ({f"c{j % 3}": codes[j], f"c{j % 3 + 1}": codes[-j]},)) for j in range(2_000)]
    for k, direct in ((2_000, False), (3, True)):
        lowered = lower(sizes, many[:k])
        told = direct_errors(k, sensitivity(lowered, replace=True).value, 0.01)
        assert direct_is_better(told, marginal_errors(lowered, np.sqrt(2), 0.01, total_known=True)) == direct


def test_what_is_too_wide_is_refused_with_its_columns_and_questions():
    sizes = {f"c{i}": 6 for i in range(12)}
    asked = [Question("odd", tuple({f"c{i}": (i % 6,), f"c{i + 1}": (2,)} for i in range(11)))]
    asked += [Question(f"p{i}{j}", ({f"c{i}": (1,), f"c{j}": (2,)},)) for i in range(12) for j in range(i)]
    lowered = lower(sizes, asked)
    cost = predict_cost(lowered)
    assert cost.largest > 1_000_000
    assert cost.seconds > 1.0
    with pytest.raises(SizeError, match="limit is 1,000,000") as error:
        check_cost(lowered, max_cells=1_000_000)
    assert error.value.data["columns"] == cost.columns
    assert not any("~" in word for word in str(error.value).split())
    assert "Leave out the question 'odd'. Without it, the largest table has" in str(error.value)
    with pytest.raises(SizeError, match="Leave out the question '.*' and at least one more. Removing only"):
        check_cost(lowered, max_cells=1_000)
    with pytest.raises(SizeError, match="Leave out the count 'n' and the questions that use it .1.. Without"):
        _of_one_count(max_cells=100)
    assert check_cost(lower(sizes, asked[1:3])).largest <= 216


def _of_one_count(max_cells):
    from espalier.core.models.question_fit import Count

    sizes = {f"c{i}": 4 for i in range(8)}
    count = Count("n", dict.fromkeys(sizes, (1, 2)), 8)
    asked = [Question("many", ({"n": (5, 6, 7, 8)},)), Question("pair", ({"c0": (1,), "c1": (1,)},))]
    check_cost(lower(sizes, asked, [count]), max_cells=max_cells)


@dataclass(frozen=True)
class Counted:
    clique: tuple
    values: np.ndarray
    sigma: float


def test_the_joint_fit_is_that_of_estimate_with_a_hidden_column_for_each_question():
    rng = np.random.default_rng(2)
    sizes = {"a": 3, "b": 2, "c": 4}
    asked = [Question("x", ({"a": (0, 1), "c": (1, 2)},)), Question("y", ({"b": (1,), "c": (0,)}, {"a": (2,)}))]
    grid = every_row(sizes)
    n, p = 2_000.0, rng.dirichlet(np.ones(24))
    table = (n * p).reshape(3, 2, 4)
    made = [
        Measurement(("a", "b"), table.sum(axis=2) + rng.normal(0, 20, (3, 2)), 20.0),
        Measurement(("c",), table.sum(axis=(0, 1)) + rng.normal(0, 30, 4), 30.0),
    ]
    held = np.array([q.holds(grid) for q in asked], dtype=float)
    noisy = held @ (n * p) + rng.normal(0, 10, 2)
    forbidden = np.zeros((3, 4), dtype=bool)
    forbidden[0, 3] = True
    rule = Zeros(("a", "c"), forbidden)
    lowered = lower(sizes, asked, (), [m.clique for m in made])
    model, found = fit_together(lowered, made, noisy, 10.0, n, zeros=[rule])
    assert isinstance(model, VisibleModel)
    assert found.converged
    hidden = {**sizes, "x?": 2, "y?": 2}
    doors, answered = [], []
    for name, line, answer in zip(("x?", "y?"), held, noisy, strict=True):
        doors.append(Zeros(("a", "b", "c", name), line.reshape(3, 2, 4)[..., None] != np.arange(2)))
        answered.append(Measurement((name,), np.array([n - answer, answer]), 10.0 * np.sqrt(2)))
    slow = estimate(hidden, [*made, *answered], n, zeros=[rule, *doors])
    assert found.objective == pytest.approx(slow.fit.objective, abs=0.05)
    np.testing.assert_allclose(model.marginal(("a", "b")), slow.marginal(("a", "b")), atol=4.0)
    np.testing.assert_allclose(
        lowered.back(found.fitted[:2]), [slow.marginal(("x?",))[1], slow.marginal(("y?",))[1]], atol=3
    )
    assert model.marginal(("a", "c"))[0, 3] == 0.0
    assert Block(("a",), None).length(sizes) == 3
