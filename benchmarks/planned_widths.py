"""Promised and achieved half-widths of planned analyses. `python -m benchmarks.conclusions planning`

Each setting has one population, one ε, and the whole budget for up to nine analyses: proportions, differences and odds
ratios between public categories. The declared assumptions are correct: the population's shares, rounded to two
decimals. Two coefficients of regressions and one adjusted effect are added, with the population's shares and
correlations as assumptions. ``within`` is the share of achieved half-widths that do not exceed the promised half-width.
A figure without an interval counts as not within. ``promised ÷ reached`` is the median. The margins of regressions were
chosen on the populations `TUNED` (``margin`` is the margin that 90 % of their figures need). They were raised after the
other populations had been run once, and are reported on new regressions of those populations. The effects there had
been run before.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.regressions import DELTA, POPULATIONS, Population
from espalier.core.analysis.expected_regressions import MARGIN
from espalier.core.analysis.planned_analyses import analysed
from espalier.core.privacy.accounting import Budget, rho_of
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.unit import Unit
from espalier.core.project.analyses import PlannedCounts, read_analyses
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.regressions import BoughtRegression
from espalier.core.tables.table import Table

EPSILONS = (0.5, 1.0, 3.0)
TUNED = ("adult", "compas", "generated")
"""Populations on which the margins of planned regressions are chosen."""
REPORTED = {
    "diabetes": (("linear", "los", "age", "diagnoses", "change"), ("logistic", "gender=Male", "los", "insulin")),
    "insurance": (("linear", "age", "children", "smoker", "sex"), ("logistic", "sex=male", "bmi", "smoker")),
    "lucas": (("linear", "Allergy=1", "Smoking", "Fatigue"), ("logistic", "Fatigue=1", "Smoking", "Lung_cancer")),
}
"""Regressions of the other populations, first run with the margins fixed."""
WIDTHS = {"proportion": 0.02, "difference": 0.04, "odds_ratio": 0.25}


def analyses(population: Population) -> Iterator[dict[str, Any]]:
    """Yield analyses of pairs of categorical columns, with the shares of the population as assumptions."""
    named = [c for c in population.schema.columns if c.kind != "numeric"]
    for i, (one, other) in enumerate(itertools.islice(itertools.permutations(named, 2), 9)):
        kind = ("difference", "odds_ratio", "proportion")[i % 3]
        event = population.codes[one.name] == one.values - 1
        groups = [population.codes[other.name] == code for code in (1, 0)][: 1 if kind == "proportion" else 2]
        shares = [min(max(round(float(event[g].mean()), 2), 0.01), 0.99) for g in groups]
        names = [other.value_names[code] for code in (1, 0)]
        where = {"among": f"{other.name}={names[0]}"}
        if kind != "proportion":
            where = {"group": f"{other.name}={names[0]}:{names[1]}"}
        yield {
            "name": f"{kind} {one.name} by {other.name}",
            "kind": kind,
            "event": f"{one.name}={one.value_names[-1]}",
            **where,
            "half_width": WIDTHS[kind],
            "assume": {"shares": shares, "groups": [math.floor(100 * float(g.mean())) / 100 for g in groups]},
        }


def further(population: Population) -> Iterator[dict[str, Any]]:
    """Yield a coefficient of each of the first two regressions, and an effect adjusted for a third column."""
    schema, codes = population.schema, population.codes
    for asked in population.asked[:2]:
        names = [asked.target(schema)[0].name, *asked.on]
        shares = {n: np.maximum(np.bincount(codes[n], minlength=schema[n].values) / len(codes[n]), 1e-4) for n in names}
        ordered = [n for n in names if schema[n].kind == "numeric" or schema[n].values == 2]
        found = np.corrcoef([codes[n] for n in ordered]).reshape(len(ordered), -1)
        yield {
            **asked.to_json(),
            "kind": "regression",
            "half_width": 1e-3,
            "assume": {
                "shares": {n: (s / s.sum()).round(6).tolist() for n, s in shares.items()},
                "correlations": [
                    [a, b, round(float(found[i, j]), 2)]
                    for (i, a), (j, b) in itertools.combinations(enumerate(ordered), 2)
                ],
            },
        }
    named = [c for c in schema.columns if c.kind != "numeric"]
    if len(named) < 3:
        return
    event, group, stratum = named[:3]
    groups = [codes[group.name] == code for code in (1, 0)]
    strata = np.bincount(codes[stratum.name], minlength=stratum.values) / len(codes[stratum.name])
    happened = codes[event.name] == event.values - 1
    yield {
        "name": "effect",
        "kind": "effect",
        "event": f"{event.name}={event.value_names[-1]}",
        "group": f"{group.name}={group.value_names[1]}:{group.value_names[0]}",
        "adjust": [stratum.name],
        "half_width": 0.05,
        "assume": {
            "shares": [min(max(round(float(happened[g].mean()), 2), 0.01), 0.99) for g in groups],
            "groups": [math.floor(100 * float(g.mean())) / 100 for g in groups],
            "strata": np.maximum(strata, 1e-4).round(4).tolist(),
        },
    }


def truth(population: Population, one: PlannedCounts) -> float:
    """Return the figure in the whole population."""
    counts = []
    for cell in (cell for pair in one.cells(population.schema) for cell in pair):
        held = np.all([np.isin(population.codes[name], codes) for name, codes in cell.items()], axis=0)
        counts.append(float(held.sum()))
    if one.kind == "odds_ratio":
        return counts[0] * counts[3] / counts[1] / counts[2]
    shares = [counts[i] / (counts[i] + counts[i + 1]) for i in range(0, len(counts), 2)]
    return shares[0] - shares[1] if len(shares) > 1 else shares[0]


@dataclass(frozen=True)
class Made:
    """Facts about one analysis, and the population's figure if it is known."""

    facts: Mapping[str, Any]
    truth: float | None

    @property
    def kind(self) -> str:
        """Kind of analysis; for a regression, with its family."""
        return str(self.facts.get("family", self.facts["kind"]))

    @property
    def promised(self) -> float | None:
        """Promised half-width."""
        found: float | None = self.facts["promised"]
        return found

    @property
    def within(self) -> bool:
        """True if the achieved half-width is at most the promised half-width."""
        reached = self.facts["reached"]
        return reached is not None and self.promised is not None and bool(reached <= self.promised)

    @property
    def ratio(self) -> float | None:
        """Promised divided by achieved half-width; `None` without an interval."""
        return None if self.facts["reached"] is None else (self.promised or math.nan) / float(self.facts["reached"])

    @property
    def held(self) -> bool | None:
        """True if the interval contains the truth; `None` if either is unknown."""
        if self.truth is None or self.facts["low"] is None:
            return None
        return bool(self.facts["low"] <= self.truth <= self.facts["high"])


def show(draws: int) -> None:
    """Print proportions, differences and odds ratios by ε, then coefficients and effects."""
    for epsilon in EPSILONS:
        _show(f"ε = {epsilon:g}, counts", [made for n in POPULATIONS for made in measured(n, epsilon, draws, analyses)])
        for title, chosen in (("chosen on", True), ("reported", False)):
            names = [n for n in POPULATIONS if (n in TUNED) == chosen]
            every = [made for n in names for made in measured(n, epsilon, draws, further)]
            _show(f"ε = {epsilon:g}, regressions and effects, {title} {', '.join(names)}", every)


def measured(
    name: str, epsilon: float, draws: int, make_listed: Callable[[Population], Iterator[dict[str, Any]]]
) -> list[Made]:
    """Return the analyses of a population in ``draws`` releases."""
    population, rng = POPULATIONS[name](), np.random.default_rng([31, round(10 * epsilon)])
    if name in REPORTED:
        listed_ones = [{"name": f, "outcome": y, "on": on, "family": f} for f, y, *on in REPORTED[name]]
        population = replace(population, asked=tuple(map(BoughtRegression.from_json, listed_ones)))
    listed = read_analyses(list(make_listed(population)))
    plan = Plan("independent", epsilon, DELTA, analysis_share=0.9)
    project = Project("benchmark", population.schema, plan, analyses=listed)
    counted = [one for one in listed if isinstance(one, PlannedCounts) and one.kind != "effect"]
    true = {one.name: truth(population, one) for one in counted}
    every: list[Made] = []
    for _ in range(draws):
        picked = rng.integers(0, len(next(iter(population.codes.values()))), population.n)
        table = Table(population.schema, {c: v[picked] for c, v in population.codes.items()}, population.n)
        whole = Budget(epsilon, DELTA, rho_of(epsilon, DELTA))
        with analysed(PrivateCurator(table, Unit(), whole, 10**6), project) as found:
            every += [Made(one.facts(), true.get(one.analysis.name)) for one in found]
    return every


def _show(title: str, every: list[Made]) -> None:
    print(f"{title}: {len(every)} figures")
    for kind in ("all", *dict.fromkeys(one.kind for one in every)):
        some = [one for one in every if kind in ("all", one.kind)]
        promised = [one for one in some if one.promised is not None]
        held = [one.held for one in some if one.held is not None]
        ratios = [one.ratio for one in promised if one.ratio is not None]
        told = "none"
        if promised:
            inside = 100 * float(np.mean([one.within for one in promised]))
            told = f"{len(promised)}, within {inside:.1f} %, promised ÷ reached {np.median(ratios):.2f}"
        if promised and kind in MARGIN:
            needed = [math.inf if one.ratio is None else MARGIN[kind] / one.ratio for one in promised]
            told += f", margin {np.quantile(needed, 0.9):.2f}"
        coverage = f", coverage {100 * np.mean(held):.1f} %" if held else ""
        print(f"  {kind}: {len(some)} figures, promised {told}{coverage}", flush=True)
