"""Conclusions with missing cells: `python -m benchmarks.conclusions missing [SETTING …] [--releases 60]`.

``regressions`` instead of ``missing`` runs `benchmarks.regressions`, ``planning`` runs `benchmarks.planned_widths`, and
``questions`` runs `benchmarks.counted_questions`. ``drawing`` runs `benchmarks.chosen_drawing_tests`, and ``survival``
runs `benchmarks.survival`.

Each release is made from rows drawn with replacement from a fully known population, at ε = 0.5, 1 and 3. The outcome is
missing more often in one group than in the other. Four figures compare the groups: a difference, an odds ratio, a
regression, and an effect adjusted by the drawing. For each figure, the benchmark prints the truth in the population's
rows where all the figure's columns are observed, the mean answer, and the mean answer of the same copies if a missing
outcome counts as "no event". It also prints how many intervals contain the truth, and the median width relative to the
interval from the real rows. Coverage over all figures has a standard error clustered by release. ``warned`` is the
number of releases in which a difference between the missing shares was found.

The reference is a generalised linear model fitted by statsmodels to the real rows without missing cells. R is not
called; its ``glm`` fits the same model to the same rows.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import adult, chosen_drawing_tests, counted_questions, planned_widths, regressions, survival
from espalier.core.analysis import figure_from_text
from espalier.core.analysis.estimands import Figure, FloatArray
from espalier.core.analysis.study import Study
from espalier.core.analysis.tally import Tally
from espalier.core.graph.dag import Dag
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.table import Table

EPSILONS = (0.5, 1.0, 3.0)
Record = dict[str, Any]


@dataclass(frozen=True)
class Population:
    """All rows as codes; ``group`` and ``outcome`` are compared, adjusted for ``given``; releases have ``n`` rows."""

    schema: Schema
    rows: Mapping[str, NDArray[np.int64]]
    n: int
    group: str
    outcome: str
    given: tuple[str, ...]

    def project(self, epsilon: float) -> Project:
        """Return PRISM's effect regime, with the drawing that generated the population."""
        causes = [(z, other) for z in self.given for other in (self.group, self.outcome)]
        plan = Plan(
            "prism",
            epsilon,
            target=self.outcome,
            copies=20,
            options={"regime": "effect", "treatment": self.group},
        )
        return Project("missing", self.schema, plan, Dag((*causes, (self.group, self.outcome))))

    def sample(self, rng: np.random.Generator) -> Table:
        """Return rows of a private table."""
        picked = rng.integers(0, len(self.rows[self.outcome]), self.n)
        return Table(self.schema, {name: codes[picked] for name, codes in self.rows.items()}, self.n)

    def figures(self) -> dict[str, Figure]:
        """Return the four figures. If the outcome is a number, they compare means instead of shares, and there is no
        odds ratio."""
        schema, group, outcome = self.schema, self.group, self.outcome
        effect = figure_from_text.effect(schema, group, outcome, self.given, self.n)
        regression = figure_from_text.regression(schema, outcome, [group])
        if schema[outcome].kind == "numeric":
            difference = figure_from_text.mean_difference(schema, outcome, group)
            return {"difference": difference, "effect": effect, "regression": regression}
        return {
            "difference": figure_from_text.difference(schema, outcome, group),
            "effect": effect,
            "regression": regression,
            "odds ratio": figure_from_text.odds_ratio(schema, outcome, group),
        }


def _kept(name: str, *values: str, missing: bool = False) -> Column:
    return Column(name, "categorical", values, missing=missing)


def generated(number: bool = False, shares: tuple[float, float] = (0.05, 0.5)) -> Population:
    """Return the generated table, with an outcome of 20 % and 42 % that is missing in 5 % of one group and 50 % of the
    other.

    With ``number``, the outcome is in bins of days, and 1.5 days longer in one group.
    """
    rng = np.random.default_rng(31)
    n = 400_000
    z = rng.integers(0, 3, n)
    t = (rng.random(n) < 0.3 + 0.2 * z).astype(np.int64)
    if number:
        y = np.clip(np.floor(rng.gamma(2.0, 1.5 + 0.75 * t + 0.2 * z, n) / 2), 0, 7).astype(np.int64)
        column = Column("y", "numeric", edges=tuple(np.arange(0.0, 18.0, 2.0)), missing=True)
    else:
        y = (rng.random(n) < 0.20 + 0.22 * t).astype(np.int64)
        column = _kept("y", "no", "yes", missing=True)
    y[rng.random(n) < np.where(t == 1, shares[1], shares[0])] = column.values
    noise = {f"n{i}": rng.integers(0, 4, n) for i in range(4)}
    rows = {"z": z, "t": t, "y": y, **noise}
    others = [_kept(name, *"abcd") for name in noise]
    schema = Schema((_kept("z", *"abc"), _kept("t", "no", "yes"), column, *others))
    return Population(schema, rows, 8000, "t", "y", ("z",))


def diabetes() -> Population:
    """Return stays of the diabetes table: is HbA1c, measured in 16 %, more often above 7 if medication was changed?"""
    frame = pd.read_csv(adult.DATA.parent / "diabetes_readmission_20k.csv.gz", dtype=str, keep_default_na=False)
    age = pd.to_numeric(frame["age"].str.extract(r"(\d+)")[0]).to_numpy() // 10
    high = frame["A1Cresult"].map({"Norm": 0, ">7": 1, ">8": 1, "None": 2}).to_numpy()
    rows = {
        "age": np.digitize(age, (5, 6, 7, 8)),
        "change": (frame["change"] == "Ch").to_numpy(),
        "a1c_high": high,
        "insulin": (frame["insulin"] != "No").to_numpy(),
        "readmitted": (frame["readmitted"] != "NO").to_numpy(),
        "inpatient": np.digitize(pd.to_numeric(frame["number_inpatient"]).to_numpy(), (1, 2)),
    }
    schema = Schema(
        (
            _kept("age", "0-49", "50s", "60s", "70s", "80+"),
            _kept("change", "no", "yes"),
            _kept("a1c_high", "no", "yes", missing=True),
            _kept("insulin", "no", "yes"),
            _kept("readmitted", "no", "yes"),
            _kept("inpatient", "0", "1", "2+"),
        )
    )
    codes = {name: np.asarray(values, dtype=np.int64) for name, values in rows.items()}
    return Population(schema, codes, 20_000, "change", "a1c_high", ("age",))


SETTINGS: dict[str, Callable[[], Population]] = {
    "generated": generated,
    "generated, a number": lambda: generated(number=True),
    "generated, missing alike": lambda: generated(shares=(0.2, 0.2)),
    "diabetes": diabetes,
}


def ignoring(figure: Figure, rows: Sequence[Mapping[str, NDArray[Any]]], sizes: Mapping[str, int]) -> FloatArray:
    """Return the mean answer of copies if a missing outcome counts as "no event"; NaN for a numeric outcome."""
    if getattr(figure, "scores", None):
        return np.full(len(figure.parts()), math.nan)
    made: Any = replace(figure, missing={})  # type: ignore[type-var]
    found: FloatArray = np.mean([made.estimate(Tally.of_rows(one, sizes, made.columns))[0] for one in rows], axis=0)
    return found


def examine(population: Population, epsilon: float, rng: np.random.Generator) -> Record:
    """Make one release, and return a record for each figure, by name."""
    sizes, sampled = population.schema.sizes, population.sample(rng)
    study = Study.of(release(population.project(epsilon), sampled))
    out: Record = {}
    own = math.nan
    for name, figure in population.figures().items():
        place = 1 if name == "effect" else 0  # adjusted
        part = figure.parts()[place]
        answer = study.ask(figure)[place]
        truth = figure.estimate(Tally.of_rows(population.rows, sizes, figure.columns))[0][place]
        real, variance = figure.estimate(Tally.of_rows(sampled.codes, sizes, figure.columns))
        before = ignoring(figure, study.given, sizes)[place]
        show = math.exp if part.ratio else float
        scale = math.log if part.ratio else float
        ends = None if answer.low is None or answer.high is None else (scale(answer.low), scale(answer.high))
        if variance[place] > 0:  # an effect is compared with the crude difference's interval
            own = 3.92 * math.sqrt(variance[place])
        out[name] = {
            "truth": show(truth),
            "real": show(real[place]),
            "value": answer.value,
            "holds": None if ends is None else bool(ends[0] <= truth <= ends[1]),
            "width": None if ends is None else (ends[1] - ends[0]) / own,
            "before": show(before),
            "warned": any(found.differ for found in answer.missing),
            "badge": answer.badge.kind,
        }
    out["difference"]["reference"] = reference(population, sampled)
    return out


def reference(population: Population, table: Table) -> str:
    """Return the coefficient on the real rows by statsmodels and by this package, or the reason why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import statsmodels.api as sm
    except ImportError:
        return "statsmodels is not installed"
    names = [population.group, population.outcome]
    frame = pd.DataFrame({name: table.codes[name].astype(float) for name in names})
    frame[population.outcome] = frame[population.outcome].where(
        frame[population.outcome] < population.schema[population.outcome].values
    )
    frame = frame.dropna()
    y = frame[population.outcome].to_numpy()
    number = population.schema[population.outcome].kind == "numeric"
    if number:
        y = np.asarray(figure_from_text.middles(population.schema[population.outcome]))[y.astype(int)]
    family = sm.families.Gaussian() if number else sm.families.Binomial()
    fit = sm.GLM(y, sm.add_constant(frame[[population.group]].to_numpy()), family=family).fit()
    figure = population.figures()["regression"]
    ours, _ = figure.estimate(Tally.of_rows(table.codes, table.schema.sizes, figure.columns))
    return f"glm {fit.params[1]:.6f}, ours {ours[0]:.6f}, off by {abs(fit.params[1] - ours[0]):.1e}"


def run(name: str, epsilon: float, releases: int, keep: Path | None) -> list[Record]:
    """Return the releases of a setting. Releases stored in ``keep`` are not made again."""
    file = None if keep is None else keep / f"{name} {epsilon:g}.jsonl"
    out = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file and file.exists() else []
    out = out[:releases]
    population = SETTINGS[name]()
    while len(out) < releases:
        out.append(examine(population, epsilon, np.random.default_rng([31, round(1000 * epsilon), len(out)])))
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(out[-1]) + "\n")
    return out


def show(name: str, epsilon: float, made: list[Record]) -> None:
    """Print one setting at one ε."""
    print(f"{name}, ε = {epsilon:g}, {len(made)} releases; reference: {made[0]['difference']['reference']}")
    for figure in made[0]:
        some = [one[figure] for one in made]
        held = [r["holds"] for r in some if r["holds"] is not None]
        wide = [r["width"] for r in some if r["width"] is not None]
        print(
            f"  {figure:11} truth {some[0]['truth']:7.3f}  answer {np.mean([r['value'] for r in some]):7.3f}"
            f"  ignoring missing {np.mean([r['before'] for r in some]):7.3f}"
            f"  holds {sum(held):3} of {len(held):3}  width × {np.median(wide) if wide else math.nan:4.1f}"
            f"  warned {100 * np.mean([r['warned'] for r in some]):3.0f} %"
        )
    shares = [np.mean([r["holds"] for r in one.values() if r["holds"] is not None]) for one in made]
    error = np.std(shares, ddof=1) / math.sqrt(len(shares)) if len(shares) > 1 else math.nan
    print(f"  all         coverage {100 * np.mean(shares):.1f} ± {100 * error:.1f} %", flush=True)


def main() -> None:
    """Print the requested parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["missing", "regressions", "planning", "questions", "drawing", "survival"])
    parser.add_argument("settings", nargs="*", help="default: all")
    parser.add_argument("--releases", type=int, default=60)
    parser.add_argument("--epsilon", type=float, nargs="*", default=list(EPSILONS))
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="store numbers there, and continue from them")
    args = parser.parse_args()
    if args.what == "regressions":
        regressions.show(args.releases)
        return
    if args.what == "planning":
        planned_widths.show(args.releases)
        return
    if args.what == "questions":
        counted_questions.show(args.releases, args.settings, args.keep)
        return
    if args.what == "drawing":
        chosen_drawing_tests.show(args.releases)
        return
    if args.what == "survival":
        survival.show(args.releases)
        return
    for name in args.settings or SETTINGS:
        for epsilon in args.epsilon:
            show(name, epsilon, run(name, epsilon, args.releases, args.keep))


if __name__ == "__main__":
    main()
