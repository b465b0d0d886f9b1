"""Effects of a treatment from private releases: `python -m benchmarks.effect [SETTING …] [--releases 60] [--quick]`.

For each setting, this prints the RMSE of the adjusted risk difference against the difference in the real rows, by what
was measured: whole methods (mst, prism predictive, prism with the parents drawn), and three possible plans for an
effect regime, with shares one-way .05, task .75, background .20. These measure the joint table (T, Y, Z), the triples
(z, T, Y), or the pairs. The background is the pairs within Z. Whole methods run for every third release.

For the triples, it also prints the mean of 20 copies. For a release by prism's effect regime, it prints the report's
figure, which is also a mean of copies. It prints the RMSE of both, the share of intervals that contain the population's
effect (rule B), and the RMSE against that effect. ``--keep FOLDER`` writes each release's numbers to the folder
immediately, and continues where an earlier run ended.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import adult
from benchmarks.tables import drawn
from espalier.core.analysis.combine import combine
from espalier.core.analysis.copies import Recipe, copies, warm_refit
from espalier.core.analysis.effect import Form, StandardisedEffect
from espalier.core.analysis.tally import Tally
from espalier.core.graph.dag import Dag
from espalier.core.models.graphical import SMOOTHING, GraphicalModel, estimate
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.draws import Measurement
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.table import Table

ONE_WAY, TASK, BACKGROUND = 0.05, 0.75, 0.20
Record = dict[str, Any]
PLANS = ("joint", "triples", "pairs")
METHODS: tuple[tuple[str, dict[str, str]], ...] = (
    ("mst", {"method": "mst"}),
    ("prism predictive", {"method": "prism"}),
    ("prism, parents drawn", {"method": "prism", "regime": "causal"}),
)


@dataclass(frozen=True)
class Setting:
    """A population, the number of rows drawn from it with replacement, and the effect of t on y that is estimated."""

    rows: Mapping[str, NDArray[np.int64]]
    n: int
    treatment: str
    outcome: str
    adjust: tuple[str, ...]
    form: Form = "saturated"

    @property
    def project(self) -> Project:
        """Return a project with columns named by code. In the drawing, Z and T cause Y, and Z causes T."""
        schema = Schema(
            tuple(
                Column(name, "categorical", tuple(f"c{i}" for i in range(int(codes.max()) + 1)))
                for name, codes in self.rows.items()
            )
        )
        into = [(name, self.outcome) for name in (*self.adjust, self.treatment)]
        dag = Dag((*into, *((name, self.treatment) for name in self.adjust)))
        return Project("effect", schema, Plan("mst", 1.0, target=self.outcome), dag)

    def effect(self, rows: Mapping[str, NDArray[Any]]) -> tuple[float, float]:
        """Return the crude and adjusted risk difference of a table."""
        sizes = self.project.schema.sizes
        figure = StandardisedEffect(self.treatment, self.outcome, self.adjust, sizes, event=1, form=self.form)
        values, _ = figure.estimate(Tally.of_rows(rows, sizes, figure.columns))
        return float(values[0]), float(values[1])

    def draw(self, rng: np.random.Generator) -> Table:
        """Return rows of a private table."""
        picked = rng.integers(0, len(self.rows[self.outcome]), self.n)
        return Table(self.project.schema, {name: codes[picked] for name, codes in self.rows.items()}, self.n)


def generated() -> Setting:
    """Return a population with twelve strata, a strong confounder and six further columns."""
    rng = np.random.default_rng(191)
    n = 400_000
    z1, z2, z3 = rng.integers(0, 3, n), rng.integers(0, 2, n), rng.integers(0, 2, n)
    t = (rng.random(n) < 1 / (1 + np.exp(-(-1.2 + 0.9 * z1 + 0.6 * z2)))).astype(np.int64)
    y = (rng.random(n) < 1 / (1 + np.exp(-(-1.0 - 0.5 * t + 0.6 * z1 + 0.4 * z2 + 0.3 * z3)))).astype(np.int64)
    more = {f"n{i}": rng.integers(0, 4, n) for i in range(6)}
    return Setting({"z1": z1, "z2": z2, "z3": z3, "t": t, **more, "y": y}, 8000, "t", "y", ("z1", "z2", "z3"))


def diabetes(n: int, many: bool) -> Setting:
    """Return the setting of insulin and readmission in diabetes, given 90 strata (or six columns, by logistic
    regression)."""
    frame = pd.read_csv(adult.DATA.parent / "diabetes_readmission_20k.csv.gz", dtype=str, keep_default_na=False)

    def binned(name: str, edges: Sequence[int]) -> NDArray[np.int64]:
        bins: NDArray[np.int64] = np.digitize(pd.to_numeric(frame[name]).to_numpy(), edges).astype(np.int64)
        return bins

    age = pd.to_numeric(frame["age"].str.extract(r"(\d+)")[0]).to_numpy() // 10
    out = {
        "age": np.digitize(age, (4, 5, 6, 7, 8)).astype(np.int64),
        "inpatient": binned("number_inpatient", (1, 2)),
        "days": binned("time_in_hospital", (2, 3, 5, 8)),
        "diagnoses": binned("number_diagnoses", (5, 8, 9)),
        "emergency": binned("number_emergency", (1,)),
        "tests": binned("num_lab_procedures", (25, 45, 60)),
        "insulin": (frame["insulin"] != "No").to_numpy().astype(np.int64),
        "readmitted": (frame["readmitted"] != "NO").to_numpy().astype(np.int64),
    }
    three = ("age", "inpatient", "days")
    adjust = (*three, "diagnoses", "emergency", "tests") if many else three
    return Setting(out, n, "insulin", "readmitted", adjust, "logistic" if many else "saturated")


def asia() -> Setting:
    """Return the setting of bronchitis and shortness of breath, given smoking: a strong effect, one column."""
    return Setting(drawn("asia", 400_000, 190).codes, 8000, "bronc", "dysp", ("smoke",))


SETTINGS: dict[str, Callable[[], Setting]] = {
    "network 8000": generated,
    "diabetes 8000": lambda: diabetes(8000, False),
    "diabetes 20000": lambda: diabetes(20_000, False),
    "diabetes 20000, six columns": lambda: diabetes(20_000, True),
    "asia 8000": asia,
}


def planned(setting: Setting, table: Table, what: str) -> tuple[tuple[Measurement, ...], GraphicalModel]:
    """Return the counts of an effect regime at ε = 1, and its fit."""
    sizes = table.schema.sizes
    budget = Budget.of(setting.project.plan, table.rows)
    curator = PrivateCurator(table, Unit(), budget, 10_000_000)

    def clique(*names: str) -> tuple[str, ...]:
        return tuple(name for name in sizes if name in names)

    t, y, zs = setting.treatment, setting.outcome, setting.adjust
    task = {
        "joint": [clique(t, y, *zs)],
        "triples": [clique(z, t, y) for z in zs],
        "pairs": [clique(*pair) for z in zs for pair in ((z, t), (z, y))] + [clique(t, y)],
    }[what]
    within = [clique(*pair) for pair in itertools.combinations(zs, 2)]
    bought: list[Measurement] = []
    for share, cliques in ((ONE_WAY, [(name,) for name in sizes]), (TASK, task), (BACKGROUND, within)):
        bought += curator.measure({q: share * budget.rho * (1 - 1e-9) / len(cliques) for q in dict.fromkeys(cliques)})
    return tuple(bought), estimate(sizes, bought, float(table.rows), smoothing=SMOOTHING)


def examine(setting: Setting, truth: float, number: int) -> Record:
    """Make one release by each plan; return estimates by plan, ends of intervals, and the effect in the real rows."""
    rng = np.random.default_rng([8, number])
    table = setting.draw(rng)
    found: dict[str, float] = {"real rows": setting.effect(table.codes)[1]}
    held: dict[str, bool] = {}
    for method, plan in METHODS if number % 3 == 0 else ():
        found[method] = setting.effect(release(setting.project.with_plan(**plan), table).codes)[1]
    for what in PLANS:
        if what == "joint" and setting.form == "logistic":
            continue
        counts, model = planned(setting, table, what)
        found[what] = setting.effect(model.sample(table.rows, rng, even=True))[1]
        if what == "triples":
            refit = warm_refit(model, model.total)
            made_copies = copies(counts, refit(counts), refit, Recipe(20, table.rows), rng)
            interval = combine([setting.effect(rows)[1] for _, rows in made_copies])
            found["copies of triples"] = interval.estimate
            held["copies of triples"] = interval.low <= truth <= interval.high
    adjust = list(setting.adjust)
    regime = setting.project.with_plan(method="prism", regime="effect", treatment=setting.treatment, adjust=adjust)
    told = release(regime, table).effect
    assert told is not None
    adjusted = next(number for number in told["numbers"] if number["name"].startswith("adjusted difference"))
    found["prism effect"] = adjusted["value"]
    if adjusted["low"] is not None:
        held["prism effect"] = adjusted["low"] <= truth <= adjusted["high"]
    return {"found": found, "held": held, "badge": adjusted["badge"]}


def run(name: str, setting: Setting, releases: int, keep: Path | None) -> list[Record]:
    """Return the releases of this setting. Releases stored in ``keep`` are not made again."""
    _, truth = setting.effect(setting.rows)
    file = None if keep is None else keep / f"effect, {name}.jsonl"
    out = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file and file.exists() else []
    out = out[:releases]
    while len(out) < releases:
        out.append(examine(setting, truth, len(out)))
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(out[-1]) + "\n")
    return out


def show(name: str, releases: int, keep: Path | None) -> None:
    """Print one setting."""
    setting = SETTINGS[name]()
    crude, truth = setting.effect(setting.rows)
    made = run(name, setting, releases, keep)

    def rmse(what: str, against: str = "") -> float:
        """Return the root mean squared error against the effect in the real rows, or against the truth."""
        some = [one["found"] for one in made if what in one["found"]]
        errors = [found[what] - (found[against] if against else truth) for found in some]
        return math.sqrt(float(np.nanmean(np.square(errors))))

    print(
        f"{name}: crude {crude:.3f}, adjusted {truth:.3f}, {releases} releases; RMSE against the real rows' own effect"
    )
    kinds = dict.fromkeys(what for one in made for what in one["found"] if what != "real rows")
    print("  " + ", ".join(f"{what} {rmse(what, 'real rows'):.4f}" for what in kinds))
    for what in ("copies of triples", "prism effect"):
        holds = [one["held"][what] for one in made if what in one["held"]]
        if holds:
            cover = 100 * float(np.mean(holds))
            print(
                f"  {what}: the interval contains the population's effect in {cover:.1f} ± "
                f"{math.sqrt(cover * (100 - cover) / len(holds)):.1f} % of {len(holds)}; RMSE against it "
                f"{rmse(what) / rmse('real rows'):.2f} × real rows'"
            )
    print(f"  badges of prism effect: {dict(Counter(one['badge'] for one in made))}", flush=True)


def main() -> None:
    """Print the requested settings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*", default=list(SETTINGS))
    parser.add_argument("--releases", type=int, default=60)
    parser.add_argument("--quick", action="store_true", help="four releases each")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write numbers there, and continue from them")
    args = parser.parse_args()
    for name in args.settings:
        show(name, 4 if args.quick else args.releases, args.keep)


if __name__ == "__main__":
    main()
