"""Share of questions with an interval, and its coverage. `python -m benchmarks.conclusions questions`

Questions are fixed from public names before any release: pairs of columns drawn at random, with values drawn at random,
for a conditional share, a difference of shares, an odds ratio, and, if one column is a number, a difference of means.
Each release is made from rows drawn with replacement from a fully known population. For a figure whose columns were
measured together, the record contains the interval from 20 copies, the interval from the counts alone, and the smallest
required cell in σ.

The rule of the gate was chosen on the tables in ``CHOSEN`` and is reported on those in ``REPORTED``. Coverage has a
standard error clustered by release. A band or kind of question fails if its coverage is significantly below 93 % (level
5 %, Holm's correction over all bands and kinds). ``answered`` is the share of all questions with a bounded, informative
interval.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import intervals, regressions
from benchmarks.intervals import Population, Tallies
from benchmarks.tables import drawn
from espalier.core.analysis.combine import combine
from espalier.core.analysis.count_intervals import CountInterval
from espalier.core.analysis.estimands import Difference, Figure, Level, MeanDifference, OddsRatio, Proportion
from espalier.core.analysis.figure_from_text import middles
from espalier.core.analysis.study import Study
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.release import release

Record = dict[str, Any]
QUESTIONS, FAMILY = 160, 80
BANDS = (-math.inf, 0.5, 1.0, 2.0, 4.0, math.inf)


def _of(make: Callable[[], regressions.Population], target: str, method: str, epsilon: float) -> Population:
    population = make()
    plan = Plan(method, epsilon, target=target if method == "prism" else None)
    return Population(Project("questions", population.schema, plan), population.codes)


def _network(name: str, target: str, method: str, epsilon: float) -> Population:
    rows = drawn(name, 200_000, 191)
    plan = Plan(method, epsilon, target=target if method == "prism" else None)
    return Population(Project(name, rows.schema, plan), rows.codes)


def _replanned(population: Population, method: str) -> Population:
    project = population.project
    if method != project.plan.method:
        project = Project(project.name, project.schema, Plan(method, project.plan.epsilon))
    return Population(project, population.rows)


Make = Callable[[str, float], Population]
CHOSEN: dict[str, tuple[Make, str, int]] = {
    "adult": (intervals.adult_population, "income", 8000),
    "dependent": (lambda method, epsilon: _replanned(intervals._generated(True, epsilon), method), "y", 5000),
}
REPORTED: dict[str, tuple[Make, str, int]] = {
    "diabetes": (
        lambda method, epsilon: _replanned(intervals.diabetes_population(epsilon), method),
        "readmitted",
        8000,
    ),
    "compas": (lambda method, epsilon: _of(regressions.of_compas, "charge", method, epsilon), "charge", 5000),
    "insurance": (lambda method, epsilon: _of(regressions.of_insurance, "smoker", method, epsilon), "smoker", 8000),
    "child": (lambda method, epsilon: _network("child", "Sick", method, epsilon), "Sick", 10_000),
}
"""Each table, the outcome of half of the questions, and the number of rows in a release."""
SETTINGS = [
    *((name, method, 1.0) for name in CHOSEN | REPORTED for method in ("prism", "workload", "mst")),
    *((name, "prism", epsilon) for name in REPORTED for epsilon in (0.5, 3.0)),
]


def questions(population: Population, outcome: str) -> list[tuple[str, Figure]]:
    """Return questions about columns drawn at random, the same for every release. Every second question is about the
    outcome.
    """
    schema, rng = population.project.schema, np.random.default_rng(31)
    pairs = [p for p in itertools.permutations(schema.sizes, 2) if min(schema.sizes[n] for n in p) > 1]
    about = [p for p in pairs if p[0] == outcome]
    out: list[tuple[str, Figure]] = []
    for i in range(QUESTIONS):
        asked = about if i % 2 else pairs
        a, b = asked[int(rng.integers(len(asked)))]
        event, instead = (Level(a, int(c)) for c in rng.choice(schema.sizes[a], 2, replace=False))
        one, other = (Level(b, int(c)) for c in rng.choice(schema.sizes[b], 2, replace=False))
        kind = ("share", "difference", "odds ratio", "means")[i // 2 % 4]
        if kind == "means" and schema[a].kind == "numeric":
            out.append((kind, MeanDifference(a, middles(schema[a]), one, other)))
        elif kind == "odds ratio":
            out.append((kind, OddsRatio(event, instead, one, other)))
        elif kind == "share":
            out.append((kind, Proportion(event, (one,))))
        else:
            out.append(("difference", Difference(event, one, other)))
    return out


def examine(population: Population, outcome: str, n: int, rng: np.random.Generator) -> Record:
    """Make one release. Return a record of each question that the population answers, and the joint intervals."""
    sizes = population.project.schema.sizes
    everybody, real = Tallies(population.rows, sizes), population.sample(n, rng)
    study = Study.of(release(population.project, real)).with_copies(20)
    copies, sampled = [Tallies(rows, sizes) for rows in study.given], Tallies(real.codes, sizes)
    family: list[tuple[Figure, float]] = []
    out: list[Record] = []
    for kind, figure in questions(population, outcome):
        (part,) = figure.parts()
        truth = float(figure.estimate(everybody.of(figure.columns))[0][0])
        if not math.isfinite(truth):
            continue
        out.append(one := {"kind": kind, "about": figure.columns[0] == outcome, "told": False})
        if not study.gate.counted(figure.columns):
            continue
        variance = float(figure.estimate(sampled.of(figure.columns))[1][0])
        own = 3.92 * math.sqrt(variance) if variance > 0 else math.inf
        (told,) = study.ask(figure)
        badge = study.gate.judge(part.needs)
        one |= {"thinnest": min(badge.thinnest, 1e9), "promised": badge.interval}
        if told.low is not None and told.high is not None:
            low, high = ((math.log(max(end, 1e-300)) if part.ratio else end) for end in (told.low, told.high))
            assert part.contrast is not None
            found = CountInterval(0.0, low, high, part.contrast)
            one |= {"told": found.informative, "held": low <= truth <= high, "width": (high - low) / own}
            if found.informative and len(family) < FAMILY:
                family.append((figure, math.exp(truth) if part.ratio else truth))
        values = [figure.estimate(copy.of(figure.columns))[0][0] for copy in copies]
        if np.isfinite(values).all():
            one["copies"] = bool(
                abs(combine(values).estimate - truth) <= combine(values).high - combine(values).estimate
            )
    return {"questions": out, **_together(study, family)}


def _together(study: Study, family: list[tuple[Figure, float]]) -> Record:
    """Return whether all intervals of a family hold simultaneously, the family's size, and the widths relative to
    single intervals.
    """
    figures = [figure for figure, _ in family]
    ratios, held = [], True
    for (figure, truth), (joint,) in zip(family, study.together(figures), strict=True):
        (single,) = study.ask(figure)
        if None in (joint.low, joint.high, single.low, single.high):
            continue
        scale: Callable[[Any], float] = (lambda x: math.log(max(x, 1e-300))) if joint.ratio else float
        held &= bool(scale(joint.low) <= scale(truth) <= scale(joint.high))
        ratios.append((scale(joint.high) - scale(joint.low)) / (scale(single.high) - scale(single.low)))
    return {"family": len(family), "all": held, "wider": float(np.median(ratios)) if ratios else math.nan}


def run(name: str, method: str, epsilon: float, releases: int, keep: Path | None) -> list[Record]:
    """Return the releases of a setting. Releases stored in ``keep`` are not made again."""
    file = None if keep is None else keep / f"{name} {method} {epsilon:g}.jsonl"
    out = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file and file.exists() else []
    out = out[:releases]
    make, outcome, n = (CHOSEN | REPORTED)[name]
    population = make(method, epsilon)
    while len(out) < releases:
        out.append(examine(population, outcome, n, np.random.default_rng([31, round(1000 * epsilon), len(out)])))
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(out[-1], default=float) + "\n")
    return out


def show(releases: int, names: Iterable[str], keep: Path | None = None) -> None:
    """Print each setting, then coverage by band and by kind, over the chosen and over the reported tables."""
    asked = set(names)
    for title, tables in (("chosen on", CHOSEN), ("reported on", REPORTED)):
        every: list[list[Record]] = []
        for name, method, epsilon in SETTINGS:
            if name not in tables or (asked and name not in asked):
                continue
            made = run(name, method, epsilon, releases, keep)
            every += [one["questions"] for one in made]
            _line(f"{name}, {method}, ε = {epsilon:g}", made)
        if every:
            print(f"{title}: {len(every)} releases")
            _coverage(every)


def _line(name: str, made: list[Record]) -> None:
    records = [r for one in made for r in one["questions"]]
    told = 100 * float(np.mean([r["told"] for r in records]))
    about = 100 * float(np.mean([r["told"] for r in records if r["about"]]))
    before = 100 * float(np.mean([r.get("promised", False) for r in records]))
    held = [r["held"] for r in records if "held" in r]
    families = [one for one in made if one["family"] > 1]
    size, wider = max(one["family"] for one in made), np.median([one["wider"] for one in families] or [math.nan])
    print(
        f"{name}: {len(made)} releases; answered {told:.0f} % (about the outcome {about:.0f} %; from 4 σ on "
        f"{before:.0f} %), coverage {100 * np.mean(held):.1f} %; families of up to {size}: all hold in "
        f"{sum(one['all'] for one in families)} of {len(families)}, width × {wider:.2f}",
        flush=True,
    )


def _coverage(every: list[list[Record]]) -> None:
    """Print coverage by band and kind, and the bands and kinds that fail."""
    groups: dict[str, list[list[Record]]] = defaultdict(lambda: [[] for _ in every])
    for i, records in enumerate(every):
        for r in records:
            if "held" in r:
                band = next(k for k in range(len(BANDS) - 1) if BANDS[k] <= r["thinnest"] < BANDS[k + 1])
                groups[f"{BANDS[band]:g} to {BANDS[band + 1]:g} σ"][i].append(r)
                groups[r["kind"]][i].append(r)
                groups["all"][i].append(r)
    tests = []
    for name, by_release in groups.items():
        some = [r for records in by_release for r in records]
        share = float(np.mean([r["held"] for r in some]))
        off = [sum(r["held"] - share for r in records) for records in by_release]
        error = math.sqrt(sum(x * x for x in off)) / len(some)
        copies = [r["copies"] for r in some if "copies" in r]
        tests.append((0.5 * math.erfc((0.93 - share) / max(error, 1e-9) / math.sqrt(2)), name))
        print(
            f"  {name:14} {len(some):6} intervals  coverage {100 * share:5.1f} ± {100 * error:.1f} %  informative "
            f"{100 * np.mean([r['told'] for r in some]):3.0f} %  width × {np.median([r['width'] for r in some]):.1f}  "
            f"(by copies {100 * np.mean(copies) if copies else math.nan:5.1f} %)",
            flush=True,
        )
    tests.sort()
    failing = [name for k, (p, name) in enumerate(tests) if p * (len(tests) - k) <= 0.05]
    print(f"  significantly below 93 %: {', '.join(failing) or 'none'}", flush=True)
