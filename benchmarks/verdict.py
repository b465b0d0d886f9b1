"""Comparison of plans' verdicts with releases: does a plan rated "works" lose little to noise?

    python -m benchmarks.verdict [--cache FILE] [--measure-only] [--methods prism mst ...] [--until SECONDS] [--each]
                                 [--fresh] [--further] [--split]

Each release is compared with a release by the same method at ε = 100, which is nearly free of noise. A verdict holds if
the loss is at most 0.03 AUC (outcome), or if the mean total variation of pairs is at most 0.05 higher (pairs). The
rules of `espalier.core.planning.expectation` were chosen on ``TUNED``: their weights on the first seven tables, their
form and margins on all tables. The rule for "noise" was changed after results on the other tables were known, so those
tables are not a clean test of the rule. The decoder is measured on tables with a drawing, which comes from the network,
from the sample's project, or from `decoder_tables`. Measured figures are kept in a file, so a second run only
recomputes the ratings. ``--each`` adds a line per method, and a line for each plan rated noise. ``--fresh`` measures
``FRESH`` instead, and ``--further`` and ``--split`` measure ``FURTHER`` and ``SPLIT``: outcomes that had not been used
for any rule when they were listed.

Each table is printed twice. First, plans are rated without a declaration, assuming that the target's rarest value is in
25 % of rows. Then they are rated with this share declared; here, it is the true share, rounded down to one digit.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import decoder_tables
from benchmarks.schema import SAMPLES
from benchmarks.tables import (
    BINARY,
    CHOSEN,
    FOLDER,
    Case,
    binary_arrows,
    binary_case,
    by_codes,
    drawn,
    judge,
    network_arrows,
    predicted,
)
from benchmarks.tables import REPORTED as CASES
from espalier.core.evaluation.verdict import CHANCE
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.planning.expectation import Purpose
from espalier.core.planning.preview import preview
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.release.spend import release
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
FREE = 100.0
"""ε of the release that is treated as noise-free."""
MOST_ROWS = 8_000
"""Tables with more rows are cut to this number, which limits the benchmark to minutes."""


def _cut(case: Case, rows: int) -> Case:
    def load() -> Table:
        whole = case.load()
        return whole.take(np.random.default_rng(1).permutation(whole.rows)[:rows])

    return Case(f"{case.name}, {rows:,} rows", case.target, load)


def _sample(name: str) -> Case:
    project = Project.load(SAMPLES / f"{name}.json")
    assert project.plan.target is not None
    return Case(f"sample {name}", project.plan.target, lambda: _encoded(name))


def _encoded(name: str) -> Table:
    project = Project.load(SAMPLES / f"{name}.json")
    return Table.encode(read_table(SAMPLES / f"{name}.csv"), project.schema)


def _network(network: str, target: str, rows: int, seed: int) -> Case:
    return Case(f"{network} {rows:,} rows", target, lambda: drawn(network, rows, seed))


def _even_bins(frame: pd.DataFrame, ends: Mapping[str, tuple[float, float]], bins: int, target: str) -> Table:
    """Return the numbers between public ``ends`` in ``bins`` bins of equal width, and a target of two values."""
    codes: dict[str, Any] = {}
    for name, (low, high) in ends.items():
        share = (frame[name].to_numpy(dtype=float) - low) / (high - low)
        codes[name] = np.clip((bins * share).astype(np.int64), 0, bins - 1)
    codes[target] = frame[target].to_numpy(dtype=np.int64)
    return by_codes(codes, {**dict.fromkeys(ends, bins), target: 2})


def _breast_cancer() -> Table:
    """Return scikit-learn's table of 569 people: the ten means, with round numbers as ends."""
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer(as_frame=True)
    highest = (30.0, 40.0, 200.0, 2_500.0, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1)
    ends = {str(name): (0.0, high) for name, high in zip(found.feature_names[:10], highest, strict=True)}
    return _even_bins(found.frame.assign(benign=found.target), ends, 6, "benign")


def _characters() -> Table:
    """Return UCI's artificial characters with its public ends: is the letter one of the last five?"""
    frame = pd.read_csv(FOLDER / "artificial_characters.csv.gz")
    highest = (8.0, 48.0, 64.0, 64.0, 64.0, 64.0, 80.0)
    ends = {f"V{i}": (0.0 if i != 5 else -2.0, high) for i, high in enumerate(highest, 1)}
    return _even_bins(frame.assign(**{"late letter": frame["Class"] > 5}), ends, 8, "late letter")


_BY_NAME = {case.name: case for case in (*CHOSEN, *CASES, *BINARY)}
TUNED = (
    _BY_NAME["compas"],
    _cut(_BY_NAME["adult, quantile bins"], 6_000),
    _network("asia", "lung", 3_000, 1),
    _network("child", "BirthAsphyxia", 5_000, 3),
    _network("alarm", "HYPOVOLEMIA", 6_000, 6),
    _BY_NAME["binary network 0"],
    _BY_NAME["binary network 1"],
    _BY_NAME["insurance"],
    _BY_NAME["lucas"],
    _cut(_BY_NAME["adult"], 20_000),
    _cut(_BY_NAME["diabetes"], MOST_ROWS),
    _network("asia", "dysp", 10_000, 11),
    _network("child", "GruntingReport", 3_000, 13),
    _BY_NAME["binary network 4"],
    _sample("readmission"),
)
REPORTED = (
    Case("breast cancer", "benign", _breast_cancer),
    Case("characters", "late letter", _characters),
    _BY_NAME["binary network 2"],
    _BY_NAME["binary network 3"],
    _network("child", "Sick", 2_000, 4),
    _network("asia", "bronc", 20_000, 2),
    _BY_NAME["diabetes 8k, rare"],
    _network("child", "LVH", MOST_ROWS, 12),
    _sample("hiring"),
    _network("alarm", "PULMEMBOLUS", MOST_ROWS, 15),
)

_OTHERS = {
    "asia": ("asia", "either", "smoke", "tub", "xray"),
    "child": ("CO2Report", "Grunting", "HypDistrib", "LVHreport"),
    "alarm": ("CATECHOL", "ERRCAUTER", "FIO2", "INSUFFANESTH", "SHUNT"),
}
FRESH = tuple(
    replace(_network(network, target, (2_000, 5_000, 10_000)[i % 3], 100 + i), name=f"{network} {target}")
    for i, (network, target) in enumerate((n, t) for n, targets in _OTHERS.items() for t in targets)
)
"""All columns with two values that are not an outcome above (for alarm, every second one of these), regardless of the
values' shares.
"""

_NEVER_PREDICTED = {
    "compas": ("sex", "c_charge_degree"),
    "insurance": ("sex", "smoker"),
    "lucas": (
        "Smoking",
        "Yellow_Fingers",
        "Anxiety",
        "Peer_Pressure",
        "Genetics",
        "Attention_Disorder",
        "Born_an_Even_Day",
        "Car_Accident",
        "Fatigue",
        "Allergy",
        "Coughing",
    ),
    "diabetes": ("change", "diabetesMed"),
    "adult": ("sex",),
}
FURTHER = (
    *(
        replace(_network("alarm", target, 2_000, 200 + i), name=f"alarm {target}")
        for i, target in enumerate(("HISTORY", "ERRLOWOUTPUT", "ANAPHYLAXIS", "KINKEDTUBE", "DISCONNECT"))
    ),
    *(
        Case(f"{name} {target}", target, _cut(_BY_NAME[name], 2_000).load)
        for name, targets in _NEVER_PREDICTED.items()
        for target in targets
    ),
    *map(binary_case, range(6, 16)),
)
"""Columns with two values that are outcomes neither above nor in `benchmarks.tables`, and ten new random networks. All
have at most 2,000 rows, because plans with few rows are rated "noise" more often.
"""


def _in_two(network: str, target: str, seed: int) -> Case:
    """Return 1,000 rows of the network, with the target reduced to whether it has its first value."""

    def load() -> Table:
        table = drawn(network, 1_000, seed)
        codes = {**table.codes, target: (table.codes[target] > 0).astype(np.int64)}
        return by_codes(codes, {**table.schema.sizes, target: 2})

    return Case(f"{network} {target} in two", target, load)


_OF_MORE_VALUES = {
    "child": (
        "Disease",
        "DuctFlow",
        "CardiacMixing",
        "LungParench",
        "LungFlow",
        "HypoxiaInO2",
        "CO2",
        "ChestXray",
        "RUQO2",
        "XrayReport",
        "LowerBodyO2",
        "Age",
    ),
    "alarm": (
        "CVP",
        "PCWP",
        "LVEDVOLUME",
        "STROKEVOLUME",
        "HRBP",
        "HREKG",
        "HRSAT",
        "TPR",
        "EXPCO2",
        "MINVOL",
        "PVSAT",
        "SAO2",
        "PAP",
        "INTUBATION",
        "PRESS",
        "MINVOLSET",
        "VENTMACH",
        "VENTTUBE",
        "VENTLUNG",
        "VENTALV",
        "ARTCO2",
        "HR",
        "CO",
        "BP",
    ),
}
SPLIT = tuple(
    _in_two(network, target, 300 + i)
    for i, (network, target) in enumerate((n, t) for n, targets in _OF_MORE_VALUES.items() for t in targets)
)
"""All columns with more than two values in two networks. They were listed after the rule for "noise" had been changed
to `HIDDEN` = 2, and before they were measured.
"""


def _plain(case: Case, table: Table) -> Project:
    plan = Plan("mst", epsilon=1.0, delta=table.rows**-2.0, target=case.target)
    return Project(case.name, table.schema, plan)


def _fair(case: Case, table: Table) -> Project:
    """Return roles for fairness: the first column is protected, and every second further column is admissible."""
    others = [n for n in table.schema.names if n != case.target]
    roles = Roles((case.target,), (others[0],), tuple(others[1::2]))
    return replace(_plain(case, table), roles=roles)


def _drawn(case: Case, table: Table) -> Project | None:
    """Return the project with the arrows of the network that generated the table; other tables get no arrows."""
    network = case.name.split()[0]
    if network not in ("asia", "child", "alarm"):
        return None
    dag = Dag(tuple(network_arrows(network)))
    return replace(_plain(case, table), dag=dag) if dag.parents(case.target) else None


_DRAWINGS = {
    "compas": decoder_tables.COMPAS,
    "adult": decoder_tables.ADULT,
    "insurance": decoder_tables.INSURANCE,
    "diabetes": decoder_tables.DIABETES,
    "lucas": decoder_tables.LUCAS,
}


def _with_causes(case: Case, table: Table) -> Project | None:
    """Return the project with the table's drawing, whether or not the target has causes; `None` without a drawing."""
    name = case.name.replace(",", "").split()
    if name[0] == "sample":
        arrows = list(Project.load(SAMPLES / f"{name[1]}.json").dag.edges)
    elif name[0] in ("asia", "child", "alarm"):
        arrows = network_arrows(name[0])
    elif name[0] == "binary":
        arrows = binary_arrows(int(name[2]))
    elif name[0] in _DRAWINGS:
        arrows = decoder_tables.arrows(_DRAWINGS[name[0]])
    else:
        return None
    kept = tuple(arrow for arrow in arrows if set(arrow) <= set(table.schema.names))
    return replace(_plain(case, table), dag=Dag(kept))


@dataclass(frozen=True)
class Way:
    """A method for a purpose; ``rated`` lists the verdicts that its releases check."""

    name: str
    project: Callable[[Case, Table], Project | None]
    plan: Mapping[str, Any]
    rated: tuple[str, ...] = ("outcome", "pairs")
    causes: bool = False
    """True if the outcome is predicted from its drawn causes alone."""


WAYS = (
    Way("prism, here", _plain, {"method": "prism", "regime": "predictive"}),
    Way("prism, elsewhere", _drawn, {"method": "prism", "regime": "causal"}, ("outcome",), True),
    Way("privci, fairness", _fair, {"method": "privci"}),
    Way("workload, general", _plain, {"method": "workload"}),
    Way("mst", _plain, {"method": "mst"}),
    Way("prefair", _fair, {"method": "prefair"}),
    Way("privbayes", _plain, {"method": "privbayes"}),
    Way("independent", _plain, {"method": "independent"}, ("pairs",)),
    Way("decoder", _with_causes, {"method": "decoder"}),
)


@cache
def _parts(case: Case, seed: int) -> tuple[Table, Table]:
    return case.split(seed)


def projects(case: Case, way: Way, seed: int) -> Iterator[tuple[float, Project]]:
    """Yield the plans of one table and method, the noise-free plan first."""
    train, _ = _parts(case, seed)
    project = way.project(case, train)
    if project is not None:
        for epsilon in (FREE, *EPSILONS):
            yield epsilon, project.with_plan(**way.plan, epsilon=epsilon)


def measure(cases: tuple[Case, ...], ways: tuple[Way, ...], seeds: int, cache_file: Path, until: float) -> None:
    """Release and evaluate every plan that is not in the file yet, for at most this many seconds."""
    known: dict[str, Any] = json.loads(cache_file.read_text()) if cache_file.exists() else {}
    started = time.monotonic()
    for seed in range(seeds):
        for way in ways:
            for case in cases:
                train, test = _parts(case, seed)
                for epsilon, project in projects(case, way, seed):
                    key = f"{case.name}|{way.name}|{epsilon:g}|{seed}"
                    if key in known:
                        continue
                    if time.monotonic() - started > until:
                        return
                    before = time.process_time()
                    made = release(project, train)
                    spent = time.process_time() - before
                    known[key] = {**judge(made.codes, train, test, case.target), "cpu": spent}
                    if way.causes:  # the other plans make no promise about the target
                        kept = project.schema.clique((*project.dag.parents(case.target), case.target))
                        known[key]["auc"] = predicted({n: made.codes[n] for n in kept}, _only(test, kept), case.target)
                cache_file.write_text(json.dumps(known))


@dataclass(frozen=True)
class Rated:
    """One plan: its verdict, and whether the verdict is right."""

    way: str
    tuned: bool
    purpose: Purpose
    headline: bool
    rating: str
    holds: bool
    idle: bool
    """True if nothing predicts the outcome even without noise, so noise can do no harm."""
    figures: str
    """The plan and its figures, for a line of text."""


def rated(cases: tuple[Case, ...], ways: tuple[Way, ...], cache_file: Path, declared: bool) -> Iterator[Rated]:
    """Yield the verdict on every measured plan. Losses are means over the seeds. If ``declared``, plans declare the
    share of the target's rarer value.
    """
    known: dict[str, Any] = json.loads(cache_file.read_text())

    def mean(case: Case, way: Way, epsilon: float, figure: str) -> float:
        begin = f"{case.name}|{way.name}|{epsilon:g}|"
        return float(np.mean([found[figure] for key, found in known.items() if key.startswith(begin)]))

    for case in cases:
        train = _parts(case, 0)[0]
        share = _one_digit(train.codes[case.target].mean()) if declared else None
        for way in ways:
            plans = [x for x in projects(case, way, 0) if f"{case.name}|{way.name}|{x[0]:g}|0" in known]
            for epsilon, project in plans[1:]:
                found = preview(project.with_plan(rarer=share), train.rows).verdict
                if found is None:
                    continue
                loss = mean(case, way, FREE, "auc") - mean(case, way, epsilon, "auc")
                moved = mean(case, way, epsilon, "two_way_tv") - mean(case, way, FREE, "two_way_tv")
                held: dict[Purpose, bool] = {"outcome": loss <= 0.03, "pairs": moved <= 0.05}
                figures = f"{case.name}, {way.name}, ε = {epsilon:g}: AUC {mean(case, way, FREE, 'auc'):.3f} without "
                figures += f"noise, {loss:.3f} lost; TV of pairs {moved:.3f} higher"
                for purpose, holds in held.items():
                    if purpose in way.rated and (purpose == "pairs" or found.now.outcome):
                        shown = purpose == found.purpose
                        rating = found.now.rating(purpose)
                        idle = purpose == "outcome" and mean(case, way, FREE, "auc") < CHANCE
                        yield Rated(way.name, case in TUNED, purpose, shown, rating, holds, idle, figures)


def _one_digit(share: float) -> float:
    """Return the share of the rarer of two values, rounded down to one digit."""
    rarer = min(share, 1 - share)
    step = 10.0 ** math.floor(math.log10(rarer))
    return round(math.floor(rarer / step) * step, 6)


def show(found: list[Rated], each: bool = False) -> None:
    """Print the three goals, for plans rated by their purpose and for both ratings of every plan."""
    print(
        "| tables | rating | plans | rated works | of these hold | of those that hold rated works | noise | hold |",
        end="",
    )
    print(" hold, where something predicts the outcome |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    kinds: dict[str, Callable[[Rated], bool]] = {
        "by purpose": lambda r: r.headline,
        "by purpose: outcome": lambda r: r.headline and r.purpose == "outcome",
        "by purpose: pairs": lambda r: r.headline and r.purpose == "pairs",
        "any method: outcome": lambda r: r.purpose == "outcome",
        "any method: pairs": lambda r: r.purpose == "pairs",
    }
    if each:
        for way, purpose in dict.fromkeys((r.way, r.purpose) for r in found):
            kinds[f"{way}: {purpose}"] = _rated_by(way, purpose)
    for tuned in (True, False):
        for kind, fits in kinds.items():
            some = [r for r in found if r.tuned == tuned and fits(r)]
            works, hold, noise = (
                [r for r in some if r.rating == "works"],
                [r for r in some if r.holds],
                [r for r in some if r.rating == "noise"],
            )
            print(
                f"| {'chosen on' if tuned else 'reported'} | {kind} | {len(some)} | {len(works)} | "
                f"{_share(works, lambda r: r.holds)} | {_share(hold, lambda r: r.rating == 'works')} | {len(noise)} | "
                f"{_share(noise, lambda r: r.holds)} | {_share([r for r in noise if not r.idle], lambda r: r.holds)} |"
            )
    if each:
        for r in found:
            if r.headline and r.rating == "noise":
                print(f"rated noise ({r.purpose}): {r.figures}")


def _rated_by(way: str, purpose: Purpose) -> Callable[[Rated], bool]:
    return lambda r: (r.way, r.purpose) == (way, purpose)


def _share(some: list[Rated], of: Callable[[Rated], bool]) -> str:
    return f"{100 * sum(map(of, some)) / len(some):.1f} %" if some else "–"


def show_seconds(cases: tuple[Case, ...], ways: tuple[Way, ...], cache_file: Path) -> None:
    """Print how many plans at ε = 1 state a time within a factor of 2 of the measured processor time."""
    known: dict[str, Any] = json.loads(cache_file.read_text())
    near: dict[bool, list[bool]] = {True: [], False: []}
    for case in cases:
        rows = _parts(case, 0)[0].rows
        for way in ways:
            spent = known.get(f"{case.name}|{way.name}|1|0")
            if spent is None:
                continue
            (project,) = [project for epsilon, project in projects(case, way, 0) if epsilon == 1.0]
            near[case in TUNED].append(0.5 <= spent["cpu"] / preview(project, rows).size.seconds <= 2)
    for tuned, found in near.items():
        name = "chosen on" if tuned else "reported"
        print(f"planned seconds within a factor of 2, {name}: {sum(found)} of {len(found)} releases")


def _only(table: Table, kept: tuple[str, ...]) -> Table:
    return by_codes({n: table.codes[n] for n in kept}, {n: table.schema.sizes[n] for n in kept})


def main() -> None:
    """Measure what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "espalier-verdict.json")
    parser.add_argument("--methods", nargs="*", help="parts of method names")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--until", type=float, default=2_000.0, help="seconds after which nothing more is measured")
    parser.add_argument("--measure-only", action="store_true")
    parser.add_argument("--each", action="store_true", help="also a line for each method and for each plan rated noise")
    parser.add_argument("--fresh", action="store_true", help="measure outcomes that no rule was chosen on")
    parser.add_argument("--further", action="store_true", help="measure more such outcomes, with at most 2,000 rows")
    parser.add_argument("--split", action="store_true", help="measure columns with more values, reduced to two")
    opt = parser.parse_args()
    cases = (*FRESH * opt.fresh, *FURTHER * opt.further, *SPLIT * opt.split) or (*TUNED, *REPORTED)
    ways = tuple(w for w in WAYS if not opt.methods or any(part in w.name for part in opt.methods))
    measure(cases, ways, opt.seeds, opt.cache, opt.until)
    if not opt.measure_only:
        for declared in (False, True):
            print(f"\nshare of the rarest value {'declared' if declared else 'not declared'}")
            show(list(rated(cases, ways, opt.cache, declared)), opt.each and not declared)
        show_seconds(cases, ways, opt.cache)


if __name__ == "__main__":
    main()
