"""PRISM's feature subset S, chosen privately (regimes 3a and 3b, §5.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from espalier.core.methods.select.allocation import BudgetSplit, Choices
from espalier.core.methods.select.greedy_tree import Growth
from espalier.core.methods.select.usefulness import useful_cells
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.gradient import LogisticGradient
from espalier.core.privacy.scores import FeatureScore


def choose_features(
    choices: Choices, target: str, candidates: Sequence[str], k: int, growth: Growth
) -> tuple[tuple[str, ...], float]:
    """Choose ``k`` of ``candidates`` by association with ``target``; also return the unspent share of the budget.

    The greedy exponential mechanism spends share/k per round, with :class:`FeatureScore` (the safe total-variation
    score, which replaces the paper's clipped χ²). If k covers all candidates, nothing is drawn or paid. Pairs that the
    frame forbids, given the links in ``growth``, are not candidates. Chosen pairs are added to these links. The chosen
    columns predict the target, but need not be its causes or its blanket.
    """
    share, sizes = choices.share, choices.curator.sizes
    if k >= len(candidates) and growth.link_all([(name, target) for name in candidates]):
        return tuple(candidates), share
    order = list(sizes)
    pairs = {tuple(sorted((name, target), key=order.index)): name for name in candidates}
    left = sorted(pairs, key=lambda q: -sizes[pairs[q]])
    score = FeatureScore(target)
    chosen: set[str] = set()
    steps = min(k, len(candidates))
    unspent = share
    for _ in range(steps):
        left = [pair for pair, fine in zip(left, growth.may_link(left).tolist(), strict=True) if fine]
        if not left:
            break
        pair = left[0]
        if len(left) > 1:
            pair = choices.one(score, left, steps, f"feature for {target}")
            unspent -= share / steps
        left.remove(pair)
        growth.link(pair)
        chosen.add(pairs[pair])
    return tuple(name for name in order if name in chosen), max(0.0, unspent)


STEPS = 2
"""Number of steps of the fit. A single step would rank each column separately; more than two would divide the budget
too finely if n is a few thousand (20 columns, n = 5,000, ε = 1, a tenth of ρ: of 12 relevant columns, 2 steps find 10
to 11, and 6 steps find 5 to 7).
"""


def fit_features(
    choices: Choices, target: str, candidates: Sequence[str], k: int, growth: Growth
) -> tuple[tuple[str, ...], float]:
    """Return the support of a private logistic fit with ``k`` columns, and the unspent share of the budget (regime 3b).

    The fit uses noisy gradient descent (Bassily, Smith & Thakurta 2014) with hard thresholding to k columns after each
    step (Cai, Wang & Zhang 2021), where each column's one-hot weights form a group. Each step's gradient is one
    Gaussian measurement (`espalier.core.privacy.gradient`), so the fit is as private as its measurements, for any
    weights. Unlike objective perturbation, it makes no assumption about the data, convergence or an exact minimiser.
    Stability of a support under subsampling (Thakurta & Smith 2013) needs hundreds of blocks of rows, more than a table
    of a few thousand rows can provide. In the second step, a redundant column gains little. Greedy selection cannot
    detect redundancy.
    """
    curator, budget, share, pool = choices.curator, choices.budget, choices.share, choices.pool
    sizes = curator.sizes
    candidates = [name for name in candidates if sizes[name] > 1]
    if k >= len(candidates) and growth.link_all([(name, target) for name in candidates]):
        return tuple(candidates), share
    if sizes[target] < 2:
        return (), share
    (alone,) = curator.measure(budget.split(share / 10, [(target,)]), pool)
    base = np.maximum(alone.values, 1.0)
    others = sizes[target] - 1
    weights = {name: np.zeros((sizes[name], others)) for name in candidates}
    weights[target] = np.log(base[1:] / base[0])[None, :]
    ends = np.cumsum([sizes[name] * others for name in candidates])[:-1]
    kept: list[str] = []
    for step in range(1, STEPS + 1):
        (rho,) = budget.split(0.9 * share / STEPS, [(target,)]).values()
        gradient = curator.measure_sums(LogisticGradient(target, tuple(candidates), dict(weights)), rho, pool)
        strength = {}
        for name, part in zip(candidates, np.split(gradient.values, ends), strict=True):
            rate = sizes[name] / base.sum()
            weights[name] = weights[name] + rate * part.reshape(sizes[name], others)
            by_noise = step * (rate * gradient.sigma) ** 2
            strength[name] = float(np.mean(weights[name] ** 2)) - by_noise
        kept = sorted(candidates, key=lambda name: -strength[name])[:k]
        for name in set(candidates) - set(kept):
            weights[name] = np.zeros_like(weights[name])
    return tuple(name for name in sizes if name in kept and growth.link_all([(name, target)])), 0.0


THETA = 1.0
"""A feature is measured if a cell's average count is at least this multiple of its expected noise. A factor of four, as
for PrivBayes' tables, excludes useful columns: the plain star, which measures all columns, then predicts better.
"""


def suggested(
    curator: Curator, budget: BudgetSplit, share: float, target: str, candidates: Sequence[str], rows: float
) -> int:
    """Return the default k: as many features as ``share`` of the budget can usefully measure, at least one.

    This depends on the budget, the sizes of the domains and ``rows``, which is n or a noisy total.
    """
    cells = sorted(curator.sizes[name] * curator.sizes[target] for name in candidates)
    for k in range(len(cells), 1, -1):
        if cells[len(cells) // 2] <= useful_cells(curator, budget, share / k, rows, THETA):
            return k
    return 1
