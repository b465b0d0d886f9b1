"""Accuracy of questions, in releases and in the sparse regime: ``python -m benchmarks.asked hybrid|sparse|rule``.

``hybrid`` makes complete releases of the sample *readmission*, with OpenDP's noise. ``sparse`` and ``rule`` are
simulations: they use NumPy's noise, and nothing is released. Figures are for one thread (``OMP_NUM_THREADS=1
OPENBLAS_NUM_THREADS=1``).
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.questions import matrix_of, parts_of, predicates, rows_along, triangles, truth_of, two_tree
from espalier.core.models.base import MarginalModel
from espalier.core.models.graphical.estimation import SMOOTHING, estimate
from espalier.core.models.question_fit import (
    Network,
    Rule,
    fit,
    lower,
    multiplicative_weights,
    public_rule,
    sensitivity,
)
from espalier.core.models.question_fit.weights import Choose, Margin
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import Budget, rho_of
from espalier.core.privacy.draws import Measurement
from espalier.core.privacy.question_recipes.lowering import mask_of
from espalier.core.privacy.question_recipes.recipes import answers
from espalier.core.project.file import Project
from espalier.core.project.question_list import QuestionList
from espalier.core.project.question_types import Question
from espalier.core.release.spend import release
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

MEDICAL = ("age", "sex", "smoking", "diabetes", "heart_failure", "kidney_disease", "lives_alone", "readmitted")


def hybrid(methods: Sequence[str], epsilons: Sequence[float], shares: Sequence[float], seeds: int) -> None:
    """Make complete releases of readmission with a share of the budget for 64 questions, and print the answers'
    errors."""
    project = Project.load("sample_data/readmission.json")
    project = replace(project, question_list=QuestionList(tuple(conjunctions(project, np.random.default_rng(64)))))
    table = Table.encode(read_table("sample_data/readmission.csv"), project.schema)
    questions, _ = project.question_list.resolve(project.schema)
    true = answers(table, questions, (), project.schema.sizes)
    pairs = list(itertools.combinations(project.schema.names, 2))
    exact = {pair: table.count(pair) / table.rows for pair in pairs}
    for method, epsilon, share in itertools.product(methods, epsilons, (0.0, *shares)):
        planned = project.with_plan(method=method, epsilon=epsilon, question_share=share, fair=None, target=None)
        told = []
        for _ in range(seeds):
            made = release(planned, table)
            assert isinstance(made.model, MarginalModel)
            known = {q["name"]: q["fitted"] for q in made.to_json().get("questions", [])}
            fitted = np.array([known.get(q.name, expected(made.model, q, project.schema.sizes)) for q in questions])
            tv = np.mean([0.5 * np.abs(made.model.marginal(p) / made.model.total - exact[p]).sum() for p in pairs])
            apart = np.abs(fitted - true)
            told.append((apart.max(), np.sqrt((apart**2).mean()), tv, made.seconds["fit"]))
        mean, spread = np.mean(told, axis=0), np.std(told, axis=0)
        line = preview(planned, table.rows).asked
        noise = f", noise of each answer ± {line[0].sigma:.0f} by the plan ({line[0].how})" if line else ""
        print(
            f"{method}, ε={epsilon:g}, share {share:g}: asked max {mean[0]:.0f} ± {spread[0]:.0f}, rms {mean[1]:.0f}, "
            f"pair TV {mean[2]:.4f}, fit {mean[3]:.2f} s{noise}",
            flush=True,
        )


def conjunctions(project: Project, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return 64 questions of two or three conditions: ranges of age, and single categories of other columns."""
    found = []
    for j in range(64):
        where: dict[str, list[Any]] = {}
        for name in sorted(rng.permutation(MEDICAL)[: rng.integers(2, 4)].tolist()):
            column = project.schema[name]
            low = int(rng.integers(0, column.size))
            high = int(rng.integers(low + 1, column.size + 1))
            if high - low == column.size:
                high -= 1
            numeric = column.kind == "numeric"
            where[name] = [column.edges[low], column.edges[high]] if numeric else [column.labels[low]]
        found.append({"name": f"q{j}", "where": where})
    return found


def expected(model: MarginalModel, question: Question, sizes: Any) -> float:
    """Return the model's expected answer to a question."""
    scope = question.columns(tuple(sizes))
    return float(np.sum(model.marginal(scope) * mask_of(question, scope, sizes)))


def sparse(rows_of: Sequence[int], seeds: Sequence[int], rules: bool, spread: float) -> None:
    """Answer 10,000 questions on 20 columns, and print the errors. With ``rules``, the constants of the rule run over a
    grid.
    """
    for n in rows_of:
        told: dict[str, list[float]] = {}
        for seed in seeds:
            rng = np.random.default_rng(seed)
            edges = two_tree(20, rng)
            rows = rows_along(edges, 6, n, rng, spread)
            asked = predicates(triangles(edges), 6, 10_000, rng)
            lowered = lower(dict.fromkeys(rows, 6), asked)
            network = Network(*parts_of(lowered))
            true = truth_of(asked, rows)[lowered.order]
            rho = rho_of(1.0, 1 / n**2)
            delta = sensitivity(lowered, replace=True)
            sigma = delta.value / np.sqrt(2 * rho)
            told.setdefault("plain", []).append(np.abs(rng.normal(0, sigma, len(true))).max() / n)
            told.setdefault("uniform", []).append(
                np.abs(network.evaluate(np.zeros(network.length))[1] - true / n).max()
            )
            cliques = tuple(dict.fromkeys(block.clique for block in lowered.blocks))
            s = np.sqrt(2 * len(cliques)) / np.sqrt(2 * rho)
            made = []
            for clique in cliques:
                flat = np.ravel_multi_index([rows[c] for c in clique], [6] * 3)
                made.append(
                    Measurement(clique, (np.bincount(flat, minlength=216) + rng.normal(0, s, 216)).reshape(6, 6, 6), s)
                )
            model = estimate(lowered.sizes, made, float(n), smoothing=SMOOTHING)
            got = np.concatenate([matrix_of(b) @ model.marginal(b.clique).ravel() for b in lowered.blocks])
            told.setdefault("marginals", []).append(np.abs(got - true).max() / n)
            if not rules:
                noisy = true + rng.normal(0, sigma, len(true))
                found = fit(network, noisy, np.full(len(true), sigma), float(n), tolerance=1e-2)
                told.setdefault("fitted", []).append(np.abs(found.fitted - true).max() / n)
            rule = public_rule(lowered.sizes, float(n), len(true), Budget(1.0, 1 / n**2, rho))
            grid = {"mw": rule}
            if rules:
                for rounds in (5, 10, 20, 40, 80):
                    for step in (None, 0.4, 0.8):
                        grid[f"{rounds} {step or 'measured'}"] = Rule(rounds, rule.threshold, step)
            for name, one in grid.items():
                course = multiplicative_weights(network, float(n), one, *_draws(true, one.rounds, rho, rng))
                told.setdefault(name, []).append(np.abs(course.fitted - true).max() / n)
            course_of_mwem = _mwem(network, float(n), rule.rounds, *_draws(true, rule.rounds, rho, rng))
            told.setdefault("MWEM", []).append(np.abs(course_of_mwem - true).max() / n)
        shown = ", ".join(f"{name} {np.mean(values):.3f}" for name, values in told.items())
        print(f"n={n:,} (rule: {rule.rounds} rounds): {shown}", flush=True)


def _mwem(network: Network, total: float, rounds: int, choose: Choose, margin: Margin) -> NDArray[np.float64]:
    """Run MWEM (Hardt, Ligett & McSherry 2012), with steps of half the measured error; return the average of all
    tables.
    """
    weights, tables = np.zeros(network.length), []
    for _ in range(rounds):
        tables.append(total * network.evaluate(weights)[1])
        chosen, sign = choose(tables[-1])
        weights[chosen] += sign * margin(chosen, sign, float(tables[-1][chosen])) / (2 * total)
    return np.asarray(np.mean([*tables[1:], total * network.evaluate(weights)[1]], axis=0))


def _draws(true: NDArray[np.float64], rounds: int, rho: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Simulate private draws with half of ρ/T for the choice (Gumbel) and half for the margin (Gaussian); Δ = 1 row."""
    each = rho / rounds / 2

    def choose(expected: NDArray[np.float64]) -> tuple[int, int]:
        apart = true - expected
        noisy = np.concatenate([apart, -apart]) + rng.gumbel(0, 1 / np.sqrt(2 * each), 2 * len(true))
        best = int(np.argmax(noisy))
        return best % len(true), 1 if best < len(true) else -1

    def margin(chosen: int, sign: int, expected: float) -> float:
        return float(sign * (true[chosen] - expected) + rng.normal(0, 1 / np.sqrt(2 * each)))

    return choose, margin


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.asked", description=__doc__)
    parser.add_argument("what", choices=["hybrid", "sparse", "rule"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--method", nargs="+", default=["mst"])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 0.3])
    parser.add_argument("--share", type=float, nargs="+", default=[0.3, 0.6])
    parser.add_argument("--spread", type=float, default=2.0, help="sparse: similarity of the categories")
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 1_000, 3_000, 10_000, 30_000])
    opt = parser.parse_args()
    if opt.what == "hybrid":
        hybrid(opt.method, opt.epsilon, opt.share, opt.seeds)
    else:
        first = 0 if opt.what == "sparse" else 1_000
        sparse(opt.rows, range(first, first + opt.seeds), opt.what == "rule", opt.spread)


if __name__ == "__main__":
    main()
