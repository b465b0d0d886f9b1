"""Methods that do not bin numbers: the two-stage method, which is not private, and a private counterpart.

    python -m benchmarks.two_stage insurance    the paper's insurance table with linkage and membership rows
    python -m benchmarks.two_stage stages       ΔMSE and linkage for each stage one, stage two and α; --tables NAME …
    python -m benchmarks.two_stage lookalikes   as insurance, on look-alikes of Tarragona, Census and EIA
    python -m benchmarks.two_stage bound        LID measured against equation (10), d = 1, 3, 8, and the LID requested
    python -m benchmarks.two_stage private      R² of a forest trained on private rows: nonlinear 3-d and insurance
    python -m benchmarks.two_stage chosen       the same on the tables on which the settings were chosen
    python -m benchmarks.two_stage marginal     the same two tables by prism and by mst of width 2, 16 bins
    python -m benchmarks.two_stage speed        10 columns × 100,000 rows
    python -m benchmarks.two_stage price        the price metrics of the paper's Table 4
    --data FOLDER       the folder of insurance.csv          --runs N      seeds (3)

The nonlinear table is the paper's §5 with x₃ = x₁² + x₂² + N(0, 1) as printed. The paper does not state the noise of y.
Here its standard deviation is 0.17, in training and test, which gives a forest trained on real rows R² = 0.865.
"""

from __future__ import annotations

import argparse
import csv
import functools
import itertools
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor
from threadpoolctl import threadpool_limits

from benchmarks.adult import DATA
from benchmarks.lookalikes import KINDS, lookalike
from benchmarks.smooth_tables import LARGE, SMALL
from espalier.core.blurring import kernel
from espalier.core.blurring import stages as algorithm
from espalier.core.blurring.inputs import alpha_for, bound, disclosed, hypercube, matched, nearness, thresholds
from espalier.core.blurring.responses import RESPONSES, Response, respond
from espalier.core.blurring.stages import Made, Numbers, Options, synthesize
from espalier.core.errors import ProjectError
from espalier.core.evaluation.marketing import delta_mse, elasticity, mapd, optimal_markup, profit_ratio
from espalier.core.evaluation.numeric_fidelity import train_and_test
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.table import Table

Array = NDArray[np.float64]

ETA = 0.001
"""Distance within which a value counts as disclosed, as a fraction of the declared range."""


@dataclass(frozen=True)
class Rows:
    """A table, with numbers and codes by column."""

    held: Mapping[str, Array]
    codes: Mapping[str, NDArray[np.int64]]

    def numbers(self, column: str) -> Array:
        """Return the values of a numeric column."""
        return self.held[column]

    def take(self, rows: NDArray[np.intp]) -> Rows:
        """Return only these ``rows``."""
        return Rows({k: v[rows] for k, v in self.held.items()}, {k: v[rows] for k, v in self.codes.items()})


@dataclass(frozen=True)
class Case:
    """A table with its public schema. The curator has ``rows`` of its rows, and the others are for testing."""

    name: str
    schema: Schema
    target: str
    table: Rows
    rows: int
    delta: float

    def split(self, seed: int) -> tuple[Rows, Rows]:
        """Return the curator's rows and the test rows."""
        order = np.random.default_rng(seed).permutation(len(self.table.held[self.target]))
        return self.table.take(order[: self.rows]), self.table.take(order[self.rows :])

    def design(self, held: Mapping[str, Array], codes: Mapping[str, NDArray[np.int64]]) -> tuple[Array, Array]:
        """Return inputs (categories one-hot) and outcome."""
        numbers = [held[c.name] for c in self.schema.columns if c.kind == "numeric" and c.name != self.target]
        marks = [np.eye(c.size)[codes[c.name]] for c in self.schema.columns if c.kind != "numeric"]
        return np.column_stack([*numbers, *marks]), held[self.target]


def insurance(folder: Path) -> Case:
    """Return the insurance table: 1,338 rows, of which the curator has 1,000. Bounds and categories are from its
    description.
    """
    with (folder / "insurance.csv").open() as file:
        read = list(csv.DictReader(file))
    words = {"sex": ("female", "male"), "smoker": ("no", "yes"), "region": ("northeast", "northwest", "southeast", "southwest")}  # fmt: skip  # noqa: E501
    schema = Schema(
        (
            Column("age", "numeric", edges=(18, 30, 40, 50, 65), integer=True),
            Column("sex", "categorical", words["sex"]),
            Column("bmi", "numeric", edges=(15, 20, 25, 30, 35, 40, 55)),
            Column("children", "numeric", edges=(0, 1, 2, 3, 4, 5), integer=True),
            Column("smoker", "categorical", words["smoker"]),
            Column("region", "categorical", words["region"]),
            Column("charges", "numeric", edges=(1000, 64000)),
        )
    )
    held = {n: np.array([float(r[n]) for r in read]) for n in ("age", "bmi", "children", "charges")}
    codes = {n: np.array([w.index(r[n]) for r in read]) for n, w in words.items()}
    return Case("insurance", schema, "charges", Rows(held, codes), 1_000, 1e-6)


def smooth(x: Array) -> Array:
    """Return the paper's g of §5."""
    r = np.linalg.norm(x, axis=1)
    return np.asarray(np.where(r <= 1, np.maximum(1 - r, 0) ** 5 * (1 + 5 * r), 0) + r * r / 5)


def nonlinear(rows: int = 20_000) -> Case:
    """Return the paper's nonlinear table, with 5,000 test rows."""
    rng = np.random.default_rng(5)
    a = rng.random((rows + 5_000, 2))
    x = np.column_stack([a, (a**2).sum(axis=1) + rng.standard_normal(len(a))])
    y = smooth(x) + 0.17 * rng.standard_normal(len(x))
    held = {"x1": x[:, 0], "x2": x[:, 1], "x3": x[:, 2], "y": y}
    edges = {"x1": (0, 1), "x2": (0, 1), "x3": (-4, 6), "y": (-1, 6)}
    schema = Schema(tuple(Column(n, "numeric", edges=e) for n, e in edges.items()))
    return Case("nonlinear", schema, "y", Rows(held, {}), rows, 1 / rows**2)


def chosen() -> list[Case]:
    """Return the tables on which the copula's settings were chosen, small tables first, with 4,000 further rows for
    testing.
    """
    wanted = [(SMALL, 1_000), (LARGE, 20_000)]
    made = [
        (f"{name} {rows:,}", table(rows + 4_000), rows) for tables, rows in wanted for name, table in tables.items()
    ]
    return [
        Case(name, schema, target, Rows(held, codes), rows, 1e-6 if rows < 5_000 else 1 / rows**2)
        for name, (schema, target, held, codes), rows in made
    ]


def as_table(schema: Schema, rows: Rows) -> Table:
    """Return the rows in the form that a curator reads: codes by the schema's bins, and the numbers."""
    codes = dict(rows.codes)
    for name, values in rows.held.items():
        codes[name] = np.searchsorted(schema[name].edges[1:-1], values, side="right")
    return Table(schema, codes, len(next(iter(rows.held.values()))), values=rows.held)


def released(case: Case, schema: Schema, train: Rows, plan: Plan) -> tuple[dict[str, Array], float]:
    """Return the released columns (numbers, and codes of categories) and the CPU seconds."""
    start = time.process_time()
    made = release(Project("numbers", schema, plan), as_table(schema, train))
    spent = time.process_time() - start
    return {
        c.name: np.array([float(t) for t in made.table[c.name]])
        if c.kind == "numeric"
        else np.asarray(made.codes[c.name], dtype=np.int64)
        for c in case.schema.columns
    }, spent


def compared(cases: Iterable[Case], plans: Iterable[dict[str, object]], epsilons: Iterable[float], runs: int) -> None:
    """Print the R² of a forest trained on released rows and tested on real rows, with its standard error over ``runs``
    (≥ 2).
    """
    known: dict[tuple[str, int], float] = {}
    for case, given, epsilon in itertools.product(cases, plans, epsilons):
        settings = {**given, "epsilon": epsilon, "delta": case.delta, "target": case.target}
        schema = case.schema if given["method"] == "copula" else binned(case.schema)
        told = []
        for seed in range(runs):
            train, test = case.split(seed)
            held, spent = released(case, schema, train, Plan.from_json(settings))
            against = case.design(test.held, test.codes)
            if (case.name, seed) not in known:
                known[case.name, seed] = train_and_test(case.design(train.held, train.codes), against).r2
            real = known[case.name, seed]
            codes: Any = held  # of a category, the code
            got = train_and_test(case.design(held, codes), against)
            told.append((real, got.r2, got.mae, held[case.target].std() / train.held[case.target].std(), spent))
        real_r2, r2, mae, spread, spent = np.mean(told, axis=0)
        error = np.std([t[1] for t in told], ddof=1) / np.sqrt(runs)
        print(
            f"{case.name} {given['method']} ε = {epsilon:g} δ = {case.delta:.1e}: R² {r2:.3f} ± "
            f"{error:.3f} (real {real_r2:.3f}), MAE {mae:.4g}, sd(y*)/sd(y) {spread:.2f}, "
            f"{spent:.1f} CPU s",
            flush=True,
        )


def binned(schema: Schema) -> Schema:
    """Return this schema with 16 bins for each numeric column that is not whole numbers, for methods that measure
    marginals."""
    return Schema(
        tuple(
            Column(c.name, "numeric", edges=tuple(np.linspace(c.edges[0], c.edges[-1], 17)))
            if c.kind == "numeric" and not c.integer
            else c
            for c in schema.columns
        )
    )


@dataclass(frozen=True)
class Shared:
    """A case divided between a provider and a public. ``moved`` columns are anonymised; ``public`` rows are the
    public's.
    """

    case: Case
    moved: tuple[str, ...]
    public: int

    @property
    def kept(self) -> list[Column]:
        """Inputs that stay unchanged: first numbers, then categories."""
        inputs = [c for c in self.case.schema.columns if c.name not in (*self.moved, self.case.target)]
        return sorted(inputs, key=lambda c: c.kind != "numeric")

    def numbers(self, rows: Rows) -> Numbers:
        """Return rows in the form that the method expects."""
        columns = [self.case.schema[n] for n in self.moved]
        target = self.case.schema[self.case.target]
        parts = [
            (rows.held[c.name] / c.edges[-1])[:, None] if c.kind == "numeric" else np.eye(c.size)[rows.codes[c.name]]
            for c in self.kept
        ]
        return Numbers(
            np.column_stack([rows.held[n] for n in self.moved]),
            np.array([[c.edges[0], c.edges[-1]] for c in columns]),
            np.zeros(len(columns)),
            np.hstack(parts) if parts else np.zeros((len(rows.held[target.name]), 0)),
            rows.held[target.name],
            (target.edges[0], target.edges[-1]),
        )

    def rows(self, made: Made) -> Rows:
        """Return the generated rows as a table."""
        held = {n: made.anonymized[:, i] for i, n in enumerate(self.moved)} | {self.case.target: made.outcome}
        codes, at = {}, 0
        for c in self.kept:
            part = made.untouched[:, at : at + (1 if c.kind == "numeric" else c.size)]
            at += part.shape[1]
            if c.kind == "numeric":
                held[c.name] = part[:, 0] * c.edges[-1]
            else:
                codes[c.name] = part.argmax(axis=1)
        return Rows(held, codes)


def alike(name: str) -> Shared:
    """Return a look-alike. Its fixed bounds are 0 and the next power of two above the largest value."""
    kind = KINDS[name]
    held = lookalike(kind)
    columns = [Column(n, "numeric", edges=(0.0, 2.0 ** np.ceil(np.log2(v.max())))) for n, v in held.items()]
    case = Case(f"{name}-like", Schema(tuple(columns)), kind.target, Rows(held, {}), kind.provider, 1e-6)
    return Shared(case, kind.inputs, kind.public)


TABLES = ("insurance", "nonlinear", *KINDS)


def shared_table(name: str, data: Path) -> Shared:
    """Return a table of the paper, or its look-alike, divided between provider, public and test as in the paper."""
    if name == "insurance":
        return Shared(insurance(data), ("age", "bmi"), 200)
    if name == "nonlinear":
        return Shared(nonlinear(1_000), ("x1", "x2", "x3"), 1_000)
    return alike(name)


HEADING = ("table", "stage one", "stage two", "α", "ΔMSE of ridge", "ΔMSE of a forest", "linked", "LID")


def paper_table(shared: Shared, runs: int) -> None:
    """Print the gain from the rows and the disclosure risk, for the paper's split into provider, public and test."""
    case = shared.case
    for alpha in (0.2, 0.5, 0.8):
        told = []
        for seed in range(runs):
            own, public, test = _split(shared, seed)
            real, rng = shared.numbers(own), np.random.default_rng(seed)
            made = synthesize(real, Options(eta=ETA, alpha=alpha, outcome="ridge"), rng)
            gains = [_gain(model, case, (public, test), shared.rows(made), rng) for model in ("krr", "forest")]
            d = made.disclosure
            shares = (d.lid_inputs, d.lid_outcome, d.linked, d.linked_anonymized, d.membership)
            told.append((*gains, *shares, made.outcome.std() / real.outcome.std()))
        krr, forest, lid, lid_y, linked, linked_two, member, spread = np.mean(told, axis=0)
        print(
            f"{case.name} α = {alpha:g}: ΔMSE krr {krr:.0%} forest {forest:.0%}, LID {lid:.1%} of y {lid_y:.1%}, "
            f"linked {linked:.0%} (by {', '.join(shared.moved[:3])}{' …' * (len(shared.moved) > 3)} {linked_two:.0%}), "
            f"member AUC {member:.2f}, sd(y*)/sd(y) {spread:.2f}",
            flush=True,
        )


STAGES = (
    *(("hypercube", outcome) for outcome in (*RESPONSES, "auto")),
    *((source, "auto") for source in ("uniform", "weibull", "cauchy")),
)
"""Sources of the inputs and regressions: the paper's comparisons of stage two, then of stage one."""


def stages(shared: Shared, runs: int) -> None:
    """Print ΔMSE and linkage on the paper's split, for each source of inputs, regression and α; ± is a
    standard error.
    """
    splits = [_split(shared, seed) for seed in range(runs)]
    fits: dict[tuple[int, str], Response] = {}
    for (source, outcome), alpha in itertools.product(STAGES, (0.2, 0.5, 0.8)):
        found, chosen = [], []
        for seed, (own, public, test) in enumerate(splits):
            rng = np.random.default_rng(seed)
            with mock.patch.object(algorithm, "respond", functools.partial(_fitted, fits, seed)):
                made = synthesize(shared.numbers(own), Options(alpha=alpha, inputs=source, outcome=outcome), rng)
            gains = [_gain(model, shared.case, (public, test), shared.rows(made), rng) for model in ("krr", "forest")]
            found.append((*gains, made.disclosure.linked, made.disclosure.lid_inputs))
            chosen.append(made.regression.name)
        said = (
            f"auto: {', '.join(f'{n} {chosen.count(n)}' for n in sorted({*chosen}))}" if outcome == "auto" else outcome
        )
        means, errors = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(runs)
        gained = [f"{100 * m:.0f} ± {100 * e:.0f} %" for m, e in zip(means[:2], errors[:2], strict=True)]
        cells = (shared.case.name, source, said, f"{alpha:g}", *gained, f"{means[2]:.0%}", f"{means[3]:.1%}")
        print(f"| {' | '.join(cells)} |", flush=True)


def _fitted(fits: dict[tuple[int, str], Response], seed: int, *given: Any) -> Response:
    """Return stage two's regression, fitted once for each seed. It depends only on the real rows, for any α."""
    *_, outcome, _ = given
    if (seed, outcome) not in fits:
        fits[seed, outcome] = respond(*given)
    return fits[seed, outcome]


def _split(shared: Shared, seed: int) -> tuple[Rows, Rows, Rows]:
    """Return the provider's rows, the public rows and the test rows."""
    own, rest = shared.case.split(seed)
    left = len(rest.held[shared.case.target])
    return own, rest.take(np.arange(shared.public)), rest.take(np.arange(shared.public, left))


def _gain(model: str, case: Case, beside: tuple[Rows, Rows], made: Rows, rng: np.random.Generator) -> float:
    """Return a public model's ΔMSE due to the released rows; ``beside`` holds the public's rows and the test rows."""
    scale = np.array([c.edges[-1] for c in case.schema.columns if c.kind == "numeric" and c.name != case.target])
    (x, y), (z, truth), (more, drawn) = (case.design(rows.held, rows.codes) for rows in (*beside, made))
    scale = np.append(scale, np.ones(x.shape[1] - len(scale)))
    errors = []
    for rows, outcome in ((x, y), (np.vstack([x, more]), np.concatenate([y, drawn]))):
        if model == "krr":
            told = kernel.fit(rows / scale, outcome, rng).at(z / scale)
        else:
            told = RandomForestRegressor(100, random_state=0).fit(rows, outcome).predict(z)
        errors.append(float(np.mean((told - truth) ** 2)))
    return delta_mse(*errors)


def asked(shared: Shared, runs: int) -> None:
    """Print the LID of stage one on the provider's rows, compared with equation (10) over d, and the LID for the α that
    should reproduce it.
    """
    case = shared.case
    for d in (1, 3, 8):
        if d > len(shared.moved):
            continue
        told: dict[float, list[float]] = {0.2: [], 0.5: [], 0.8: []}
        kept, refused = [], []
        for seed in range(runs):
            rng, real = np.random.default_rng(seed), shared.numbers(case.split(seed)[0]).scaled[:, :d]
            near = nearness(real, matched(real, np.clip(hypercube(real, rng), 0, 1), rng), thresholds(ETA, np.zeros(d)))
            for alpha, found in told.items():
                found.append(disclosed(near, alpha))
            for lid in (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 0.9):
                try:
                    kept.append(abs(disclosed(near, alpha_for(near, lid)) - lid) * len(near))
                except ProjectError as error:
                    refused.append((lid, error.data["best"]))
        shown = "; ".join(f"α = {a:g}: {np.mean(f):.1%} (bound {bound(ETA, a, d):.2%})" for a, f in told.items())
        best = f", refused {len(refused)} (best {np.mean([b for _, b in refused]):.1%})" if refused else ""
        print(
            f"{case.name} d = {d}: {shown}; α reproduces {len(kept)} thresholds, at most {max(kept, default=0):.1f} "
            f"rows off{best}",
            flush=True,
        )


def against_bound(runs: int) -> None:
    """Compare the measured LID with equation (10) on 1,000 uniform rows."""
    for d in (1, 3, 8):
        told: dict[float, list[float]] = {0.2: [], 0.5: [], 0.8: []}
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            real = rng.random((1_000, d))
            near = nearness(real, matched(real, hypercube(real, rng), rng), thresholds(ETA, np.zeros(d)))
            for alpha, found in told.items():
                found.append(disclosed(near, alpha))
        shown = "; ".join(f"α = {a:g}: {np.mean(f):.1%} (bound {bound(ETA, a, d):.2%})" for a, f in told.items())
        print(f"d = {d}: {shown}", flush=True)


def speed() -> None:
    """Print the speed for 10 columns × 100,000 rows."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100_000, 9))
    held = {f"x{i}": x[:, i] for i in range(9)} | {"y": x[:, 0] * x[:, 1] + np.sin(x[:, 2])}
    schema = Schema(tuple(Column(n, "numeric", edges=(-6, 6)) for n in held))
    plan = Plan.from_json({"method": "copula", "epsilon": 1.0, "delta": 1e-10, "target": "y"})
    table, start, cpu = as_table(schema, Rows(held, {})), time.perf_counter(), time.process_time()
    release(Project("numbers", schema, plan), table)
    print(f"10 columns × 100,000 rows: {time.process_time() - cpu:.1f} CPU s, {time.perf_counter() - start:.1f} s")


def price(runs: int) -> None:
    """Print the price metrics: 5 brands, 20 customers, 52 weeks; the public table has 20 similar rows."""
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
        told.append(
            (
                mapd(np.array(before), true),
                mapd(np.array(after), true),
                profit_ratio(before[0], true[0]),
                profit_ratio(after[0], true[0]),
            )
        )
    m = np.mean(told, axis=0)
    print(
        f"MAPD of the public table {m[0]:.2%}, with the released rows {m[1]:.2%}; "
        f"brand 1: OPR {m[2]:.2%} → {m[3]:.2%}, best mark-up {optimal_markup(true[0]):.0%}"
    )


def main() -> None:
    """Run the named parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "part",
        choices=("insurance", "stages", "lookalikes", "bound", "private", "chosen", "marginal", "speed", "price"),
    )
    parser.add_argument("--data", type=Path, default=DATA.parent)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES, help="of `stages`")
    given = parser.parse_args()

    def tables() -> list[Case]:
        return [insurance(given.data), nonlinear()]

    if given.part == "private":
        compared(tables(), [{"method": "copula"}], (1.0, 3.0, 10.0), given.runs)
    elif given.part == "chosen":
        compared(chosen(), [{"method": "copula"}], (1.0, 3.0), given.runs)
    elif given.part == "marginal":
        compared(tables(), [{"method": "prism"}, {"method": "mst", "width": 2}], (1.0, 3.0), given.runs)
    elif given.part == "insurance":
        paper_table(shared_table("insurance", given.data), given.runs)
    elif given.part == "stages":
        print(f"| {' | '.join(HEADING)} |\n" + "| --- " * len(HEADING) + "|")
        for name in given.tables:
            with threadpool_limits(1):
                stages(shared_table(name, given.data), given.runs)
    elif given.part == "lookalikes":
        for name in KINDS:
            paper_table(alike(name), given.runs)
    elif given.part == "bound":
        against_bound(given.runs)
        for name in KINDS:
            asked(alike(name), given.runs)
    elif given.part == "price":
        price(given.runs)
    else:
        speed()


if __name__ == "__main__":
    main()
