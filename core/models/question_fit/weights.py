"""Private multiplicative weights on an implicit distribution (Algorithm B of the paper). The search starts from the
uniform table. In each round, a private choice selects the question for which the table's error is largest, and the sign
of the error. A noisy margin decides whether the error still matters. If it does, the question's weight moves one step
in that direction; otherwise the search ends. The table is p ∝ exp Σ_j θ_j q_j throughout, so its expectations take one
sweep of the junction tree. The paper estimates them from samples. Exact expectations are about as accurate (0.145,
compared with 0.140 for 4,000 samples) and 150 times as fast. Sampling remains an option.

The caller supplies the private draws. This module reads no data, and gives no guarantee by itself. Every round pays for
one choice and one margin, so at most ``rounds`` of each are paid for.

The method is suited to thousands of questions on a few thousand rows, where direct answers would be mostly noise. With
fewer questions or more rows, the fit of direct answers (`espalier.core.models.question_fit.fitting`) or of clique
marginals is several times closer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from espalier.core.graph.junction_tree import FloatArray
from espalier.core.models.question_fit.network import Network
from espalier.core.privacy.accounting import Budget

Choose = Callable[[FloatArray], tuple[int, int]]
"""Expected counts of all statistics under the current table, in rows → the chosen statistic, and the sign (±1) of its
count minus the expected count. Private: each candidate's score ±(c_j − e_j) moves by at most one per row of a
person."""

Margin = Callable[[int, int, float], float]
"""(statistic, sign, expected count) → sign · (count − expected) with fresh noise, in rows, with the same
sensitivity."""


@dataclass(frozen=True)
class Rule:
    """Parameters of the search: at most ``rounds`` rounds, ending when a noisy margin is at most ``threshold`` rows.

    With ``step`` None, a weight moves by `DAMPING` times logit(answer) − logit(expected), which projects the table in
    relative entropy. With a number, the weight moves by this amount, up or down, as published.
    """

    rounds: int
    threshold: float
    step: float | None = None


@dataclass(frozen=True)
class Course:
    """Result of the search: the weights θ, the expected answers in rows, the number of rounds that ran, and whether a
    noisy margin ended the search.
    """

    weights: FloatArray
    fitted: FloatArray
    rounds: int
    stopped: bool


ROUNDS, DAMPING = 0.1, 0.7
"""Constants of `public_rule` and of the measured step, tuned on seeds that no benchmark reports
(``python -m benchmarks.asked rule``). With 10,000 questions on 20 columns, they are suitable for 500 to 10,000 rows."""

FEWEST, MOST = 5, 100

CLIP = 0.01
"""Answers are clipped to the range from this share to one minus this share, because noise may move them outside it."""


def public_rule(
    sizes: Mapping[str, int],
    total: float,
    questions: int,
    budget: Budget,
    rows_per_person: int = 1,
    rounds: int | None = None,
) -> Rule:
    """Return the number of rounds (unless given) and the threshold, computed from public figures alone.

    With T rounds, the table's error is about √(log|X|/T) (the regret of multiplicative weights), and the error of a
    choice that costs ρ/(2T) is about √(T/ρ) log k / n. Their sum is smallest at T = √(log|X|) n √ρ / log k, up to the
    constant `ROUNDS`. Under a pure budget, the error of a choice that costs ε/(2T) is about 4T log k / (ε n), and the
    sum is smallest at T^(3/2) = √(log|X|) n ε / (8 log k), up to the same constant. A margin below minus two standard
    deviations of its noise shows that the choices are noise, so the search ends.
    """
    bits = float(np.log([float(size) for size in sizes.values()]).sum())
    seen = ROUNDS * sqrt(bits) * total / (rows_per_person * log(max(questions, 3)))
    best = (seen * budget.epsilon / 8) ** (2 / 3) if budget.pure else seen * sqrt(budget.rho)
    rounds = rounds or int(min(max(round(best), FEWEST), MOST))
    sigma = sqrt(8) * rounds / budget.epsilon if budget.pure else sqrt(rounds / budget.rho)
    return Rule(rounds, -2.0 * rows_per_person * sigma)


def multiplicative_weights(
    network: Network,
    total: float,
    rule: Rule,
    choose: Choose,
    margin: Margin,
    *,
    asked: int | None = None,
    samples: int | None = None,
    rng: np.random.Generator | None = None,
    start: FloatArray | None = None,
    report: Callable[[float, str], None] | None = None,
) -> Course:
    """Run Algorithm 1 (IPMWU). With ``samples``, estimate expectations from this many rows drawn with ``rng``, as
    published.

    ``start`` are the weights of the first table, which is uniform by default. Statistics after the first ``asked`` keep
    their weights and are never chosen.
    """
    if samples is not None and rng is None:
        raise ValueError("sampling needs a generator")
    weights = np.zeros(network.length) if start is None else start.copy()
    for done in range(rule.rounds):
        if report is not None:
            report(done / rule.rounds, f"Round {done + 1} of {rule.rounds}")
        expected = total * _expected(network, weights, samples, rng)[:asked]
        chosen, sign = choose(expected)
        apart = margin(chosen, sign, float(expected[chosen]))
        if apart <= rule.threshold:
            return Course(weights, total * network.evaluate(weights)[1][:asked], done + 1, True)
        before = float(expected[chosen]) / total
        moved = DAMPING * (_logit(before + sign * apart / total) - _logit(before))
        weights[chosen] += moved if rule.step is None else sign * rule.step
    return Course(weights, total * network.evaluate(weights)[1][:asked], rule.rounds, False)


def _expected(
    network: Network, weights: FloatArray, samples: int | None, rng: np.random.Generator | None
) -> FloatArray:
    if samples is None or rng is None:
        return network.evaluate(weights)[1]
    return np.asarray(network.statistics(network.draw(weights, samples, rng)).mean(axis=1))


def _logit(share: float) -> float:
    kept = min(max(share, CLIP), 1.0 - CLIP)
    return log(kept / (1.0 - kept))
