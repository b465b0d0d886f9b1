"""Numbers as numbers: the two-stage method, which is not private, and its private counterpart.

    python -m benchmarks.two_stage insurance    the paper's insurance table with linkage and membership rows
    python -m benchmarks.two_stage bound        LID measured against equation (10), d = 1, 3, 8
    python -m benchmarks.two_stage private      R² of a forest trained on private rows: nonlinear 3-d and insurance
    python -m benchmarks.two_stage marginal     the same two tables by prism and by mst of width 2, 16 bins
    python -m benchmarks.two_stage speed        10 columns × 100,000 rows
    python -m benchmarks.two_stage price        the price metrics of the paper's Table 4
    --data FOLDER       where insurance.csv lies          --runs N      seeds (3)

The nonlinear table is the paper's §5 with x₃ = x₁² + x₂² + N(0, 1) as printed. The paper does not give the noise of y;
its standard deviation is 0.18 here, in training and test, so that a forest trained on real rows has R² = 0.86.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

from core.copula.fit import Asked, fit
from core.copula.layout import Layout
from core.numeric_fidelity import train_and_test
from core.privacy.unit import Unit
from core.privacy.accounting import rho_of
from core.privacy.mechanisms import (add_gaussian, gaussian_scale)
from core.project.schema import (Column, Schema)
from core.two_stage import kernel
from core.two_stage.inputs import bound, disclosed, hypercube, matched, nearness, thresholds
from core.two_stage.marketing import delta_mse, elasticity, mapd, optimal_markup, profit_ratio
from core.two_stage.method import Numbers, Options, synthesize

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """A table: numbers and codes by column."""

    held: Mapping[str, Array]
    codes: Mapping[str, NDArray[np.int64]]

    def numbers(self, column: str) -> Array:
        """The values of a numeric column."""
        return self.held[column]

    def take(self, rows: NDArray[np.intp]) -> Rows:
        """Some rows."""
        return Rows({k: v[rows] for k, v in self.held.items()}, {k: v[rows] for k, v in self.codes.items()})


@dataclass(frozen=True)
class Case:
    """A table with its public schema; ``rows`` of it are the curator's, the others test."""

    name: str
    schema: Schema
    target: str
    table: Rows
    rows: int
    delta: float

    def split(self, seed: int) -> tuple[Rows, Rows]:
        """The curator's rows and the test's."""
        order = np.random.default_rng(seed).permutation(len(self.table.held[self.target]))
        return self.table.take(order[: self.rows]), self.table.take(order[self.rows :])

    def design(self, held: Mapping[str, Array], codes: Mapping[str, NDArray[np.int64]]) -> tuple[Array, Array]:
        """Inputs (categories one-hot) and outcome."""
        numbers = [held[c.name] for c in self.schema.columns if c.kind == "numeric" and c.name != self.target]
        marks = [np.eye(c.size)[codes[c.name]] for c in self.schema.columns if c.kind != "numeric"]
        return np.column_stack([*numbers, *marks]), held[self.target]


def insurance(folder: Path) -> Case:
    """Insurance: 1,338 rows, 1,000 of them the curator's; bounds and categories from its description."""
    with (folder / "insurance.csv").open() as file:
        read = list(csv.DictReader(file))
    words = {"sex": ("female", "male"), "smoker": ("no", "yes"), "region": ("northeast", "northwest", "southeast", "southwest")}  # fmt: skip  # noqa: E501
    schema = Schema((
        Column("age", "numeric", edges=(18, 30, 40, 50, 65), integer=True),
        Column("sex", "categorical", words["sex"]),
        Column("bmi", "numeric", edges=(15, 20, 25, 30, 35, 40, 55)),
        Column("children", "numeric", edges=(0, 1, 2, 3, 4, 5), integer=True),
        Column("smoker", "categorical", words["smoker"]),
        Column("region", "categorical", words["region"]),
        Column("charges", "numeric", edges=(1000, 64000)),
    ))  # fmt: skip
    held = {n: np.array([float(r[n]) for r in read]) for n in ("age", "bmi", "children", "charges")}
    codes = {n: np.array([w.index(r[n]) for r in read]) for n, w in words.items()}
    return Case("insurance", schema, "charges", Rows(held, codes), 1_000, 1e-6)


def smooth(x: Array) -> Array:
    """The paper's g of §5."""
    r = np.linalg.norm(x, axis=1)
    return np.where(r <= 1, np.maximum(1 - r, 0) ** 5 * (1 + 5 * r), 0) + r * r / 5


def nonlinear(rows: int = 20_000) -> Case:
    """The paper's nonlinear table, with 5,000 rows for the test."""
    rng = np.random.default_rng(5)
    a = rng.random((rows + 5_000, 2))
    x = np.column_stack([a, (a**2).sum(axis=1) + rng.standard_normal(len(a))])
    y = smooth(x) + 0.18 * rng.standard_normal(len(x))
    held = {"x1": x[:, 0], "x2": x[:, 1], "x3": x[:, 2], "y": y}
    edges = {"x1": (0, 1), "x2": (0, 1), "x3": (-4, 6), "y": (-1, 6)}
    schema = Schema(tuple(Column(n, "numeric", edges=e) for n, e in edges.items()))
    return Case("nonlinear", schema, "y", Rows(held, {}), rows, 1 / rows**2)


def protected(sums: NDArray[np.int64], sensitivity: float, rho: float, _what: str) -> tuple[Array, float]:
    """OpenDP's discrete Gaussian."""
    scale = gaussian_scale(sensitivity, rho)
    return add_gaussian(sums, scale), scale


def private(cases: Iterable[Case], runs: int) -> None:
    """R² of a forest trained on private rows."""
    for case in cases:
        for epsilon in (1.0, 3.0, 10.0):
            told = []
            for seed in range(runs):
                train, test = case.split(seed)
                layout, start = Layout.of(case.schema, case.target), time.process_time()
                ask, rng = Asked.of(train, layout, Unit(), protected), np.random.default_rng(seed)
                model = fit(layout, ask, rho_of(epsilon, case.delta), case.rows, rng)
                made = model.draw(case.rows, rng)
                spent = time.process_time() - start
                real = train_and_test(case.design(train.held, train.codes), case.design(test.held, test.codes))
                got = train_and_test(case.design(made, made), case.design(test.held, test.codes))
                spread = made[case.target].std() / train.held[case.target].std()
                told.append((real.r2, got.r2, got.mae, spread, spent))
            real_r2, r2, mae, spread, spent = np.mean(told, axis=0)
            deviation = np.std([t[1] for t in told])
            print(
                f"{case.name} ε = {epsilon:g} δ = {case.delta:.1e}: R² {r2:.3f} ± {deviation:.3f} "
                f"(real {real_r2:.3f}), MAE {mae:.4g}, sd(y*)/sd(y) {spread:.2f}, {spent:.1f} CPU s", flush=True,
            )  # fmt: skip


def paper_table(case: Case, runs: int) -> None:
    """The paper's split: 1,000 rows of the provider, 200 of the public, the rest for the test."""
    for alpha in (0.2, 0.5, 0.8):
        told = []
        for seed in range(runs):
            own, rest = case.split(seed)
            public, test = rest.take(np.arange(200)), rest.take(np.arange(200, len(rest.held["age"])))
            inputs = np.hstack([np.eye(s)[own.codes[n]] for n, s in (("sex", 2), ("smoker", 2), ("region", 4))])
            real = Numbers(
                np.column_stack([own.held["age"], own.held["bmi"]]), np.array([[18, 65], [15, 55.0]]),
                np.array([0.0, 0.0]), np.column_stack([inputs, own.held["children"] / 5]), own.held["charges"],
                (1000.0, 64000.0),
            )  # fmt: skip
            rng = np.random.default_rng(seed)
            made = synthesize(real, Options(alpha=alpha), rng)
            gains = [_gain(model, case, public, test, made, rng) for model in ("krr", "forest")]
            d = made.disclosure
            told.append((*gains, d.lid_inputs, d.lid_outcome, d.linked, d.linked_anonymized, d.membership,
                         made.outcome.std() / real.outcome.std()))  # fmt: skip
        krr, forest, lid, lid_y, linked, linked_two, member, spread = np.mean(told, axis=0)
        print(
            f"insurance α = {alpha:g}: ΔMSE krr {krr:.0%} forest {forest:.0%}, LID {lid:.1%} of y {lid_y:.1%}, "
            f"linked {linked:.0%} (by age and bmi {linked_two:.0%}), member AUC {member:.2f}, "
            f"sd(y*)/sd(y) {spread:.2f}", flush=True,
        )  # fmt: skip


def _gain(model: str, case: Case, public: Rows, test: Rows, made: object, rng: np.random.Generator) -> float:
    """ΔMSE of a public model by the rows made."""
    from core.two_stage.method import Made

    assert isinstance(made, Made)
    scale = np.array([65, 55, 5, *[1] * 8])
    x, y = case.design(public.held, public.codes)
    z, truth = case.design(test.held, test.codes)
    marks = made.untouched[:, :8]
    more = np.column_stack([made.anonymized, made.untouched[:, 8] * 5, marks])
    errors = []
    for rows, outcome in ((x, y), (np.vstack([x, more]), np.concatenate([y, made.outcome]))):
        if model == "krr":
            told = kernel.fit(rows / scale, outcome, rng).at(z / scale)
        else:
            told = RandomForestRegressor(100, random_state=0).fit(rows, outcome).predict(z)
        errors.append(float(np.mean((told - truth) ** 2)))
    return delta_mse(*errors)


def against_bound(runs: int) -> None:
    """LID measured against equation (10): 1,000 uniform rows, η = 0.001."""
    for d in (1, 3, 8):
        told: dict[float, list[float]] = {0.2: [], 0.5: [], 0.8: []}
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            real = rng.random((1_000, d))
            near = nearness(real, matched(real, hypercube(real, rng), rng), thresholds(0.001, np.zeros(d)))
            for alpha, found in told.items():
                found.append(disclosed(near, alpha))
        shown = "; ".join(f"α = {a:g}: {np.mean(f):.1%} (bound {bound(0.001, a, d):.2%})" for a, f in told.items())
        print(f"d = {d}: {shown}", flush=True)


def speed() -> None:
    """10 columns × 100,000 rows."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100_000, 9))
    held = {f"x{i}": x[:, i] for i in range(9)} | {"y": x[:, 0] * x[:, 1] + np.sin(x[:, 2])}
    schema = Schema(tuple(Column(n, "numeric", edges=(-6, 6)) for n in held))
    layout, start, cpu = Layout.of(schema, "y"), time.perf_counter(), time.process_time()
    model = fit(layout, Asked.of(Rows(held, {}), layout, Unit(), protected), 0.05, 100_000, rng)
    model.draw(100_000, rng)
    print(f"10 columns × 100,000 rows: {time.process_time() - cpu:.1f} CPU s, {time.perf_counter() - start:.1f} s")


def price(runs: int) -> None:
    """The price metrics: 5 brands, 20 customers, 52 weeks; the public has 20 of those rows' like."""
    true = np.array([-1.5, -1.7, -2.01, -1.98, -1.9])
    told = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        before, after = [], []
        for beta in true:
            x = np.log(rng.uniform(1, 4, 1_060))
            y = beta * x + np.sqrt(0.5) * rng.standard_normal(len(x))
            own, few = slice(0, 1_040), slice(1_040, None)
            real = Numbers(
                x[own, None], np.array([[0, np.log(4)]]), np.zeros(1), np.zeros((1_040, 0)), y[own], (-7.0, 4.0)
            )
            made = synthesize(real, Options(alpha=0.2), rng)
            before.append(elasticity(x[few], y[few]))
            after.append(elasticity(np.append(x[few], made.anonymized[:, 0]), np.append(y[few], made.outcome)))
        told.append((mapd(np.array(before), true), mapd(np.array(after), true),
                     profit_ratio(before[0], true[0]), profit_ratio(after[0], true[0])))  # fmt: skip
    m = np.mean(told, axis=0)
    print(f"MAPD of the public table {m[0]:.2%}, with the rows made {m[1]:.2%}; brand 1: OPR {m[2]:.2%} → {m[3]:.2%}, "
          f"best mark-up {optimal_markup(true[0]):.0%}")  # fmt: skip


def marginal(cases: Iterable[Case], runs: int) -> None:
    """The same tables by marginal methods on 16 bins, numbers drawn flat inside them."""
    from core.project.plan import Plan
from core.project.file import Project
    from core.release.spend import release
    from core.tables.table import Table

    for case in cases:
        columns = []
        for c in case.schema.columns:
            if c.kind == "numeric" and not c.integer:
                c = Column(c.name, "numeric", edges=tuple(np.linspace(c.edges[0], c.edges[-1], 17)))
            columns.append(c)
        schema = Schema(tuple(columns))
        for method, options in (("prism", {}), ("mst", {"width": 2})):
            for epsilon in (1.0, 3.0):
                told = []
                for seed in range(runs):
                    train, test = case.split(seed)
                    codes = dict(train.codes)
                    for c in schema.columns:
                        if c.kind == "numeric":
                            codes[c.name] = np.searchsorted(c.edges[1:-1], train.held[c.name], side="right")
                    plan = Plan(method, epsilon, case.delta, target=case.target, **options)
                    done = release(Project("numbers", schema, plan), Table(schema, codes, case.rows))
                    rng = np.random.default_rng(seed)
                    drawn = done.model.sample(case.rows, rng)
                    held = {c.name: np.array([float(t) for t in c.decode(drawn[c.name].astype(int), rng)])
                            for c in schema.columns if c.kind == "numeric"}  # fmt: skip
                    got = train_and_test(case.design(held, drawn), case.design(test.held, test.codes))
                    told.append((got.r2, held[case.target].std() / train.held[case.target].std()))
                r2, spread = np.mean(told, axis=0)
                print(f"{case.name} {method} ε = {epsilon:g}: R² {r2:.3f}, sd(y*)/sd(y) {spread:.2f}", flush=True)


def main() -> None:
    """Run what is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("insurance", "bound", "private", "marginal", "speed", "price"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    if given.part in ("private", "marginal"):
        run = private if given.part == "private" else marginal
        run([insurance(given.data), nonlinear()], given.runs)
    elif given.part == "insurance":
        paper_table(insurance(given.data), given.runs)
    elif given.part == "bound":
        against_bound(given.runs)
    elif given.part == "price":
        price(given.runs)
    else:
        speed()


if __name__ == "__main__":
    main()
