"""Coverage and widths of survival tables. `python -m benchmarks.conclusions survival --releases 60`

Each release buys two survival tables, for all rows and by group, with the whole budget. ``exact`` has a known
distribution in discrete time, with one time in each interval. ``continuous`` has a known distribution in continuous
time, with Weibull times and censoring inside the intervals. Rows of ``flchain`` (7,874 people and their deaths in 14
years, from R's package survival) are drawn with replacement; its truth is statsmodels' Kaplan–Meier estimate on all
rows with exact times. Coverage is of survival, hazards and the difference at the planned time; its standard error is
clustered by release. Widths are relative to statsmodels' own intervals (Greenwood) on the rows of each release, with
exact times. ``promised`` describes the planned figures: the share of achieved half-widths within the promise, and the
median of promised ÷ achieved.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from espalier.core.analysis.planned_analyses import analysed
from espalier.core.privacy.accounting import Budget, rho_of
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.unit import Unit
from espalier.core.project.analyses import read_analyses
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table

DELTA, N = 1e-9, 8000
EPSILONS = (0.5, 1.0, 3.0)
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Exact times, whether the event happened then, and the group."""

    time: FloatArray
    event: NDArray[np.int64]
    group: NDArray[np.int64]


@dataclass(frozen=True)
class Law:
    """A population: its intervals, a sampler, and the survival at the end of each interval, by group."""

    edges: tuple[float, ...]
    at: float
    sample: Callable[[np.random.Generator], Rows]
    survival: FloatArray
    whole: FloatArray
    exact: bool = False

    @property
    def schema(self) -> Schema:
        """Columns: time in intervals, event and group."""
        return Schema(
            (
                Column("time", "numeric", edges=self.edges, integer=self.exact),
                Column("event", "categorical", ("no", "yes")),
                Column("group", "categorical", ("a", "b")),
            )
        )


def exact() -> Law:
    """Return a population with hazards of 0.2 to 8 % in discrete time, twice as high in group b. Rows are censored at
    random."""
    hazards = np.array([0.02, 0.04, 0.002, 0.06, 0.03, 0.08]) * np.array([[1.0], [2.0]])

    def sample(rng: np.random.Generator) -> Rows:
        group = rng.integers(0, 2, N)
        died = np.full(N, 99)
        for t in reversed(range(6)):
            died = np.where(rng.random(N) < hazards[group, t], t, died)
        left = np.minimum(rng.integers(0, 12, N), 6)
        return Rows(np.minimum(died, left).astype(float), (died <= left).astype(np.int64), group)

    survived = np.cumprod(1 - hazards, axis=1)
    edges = (0, 1, 2, 3, 4, 5, 6, 6.5)  # all other rows have time 6
    return Law(edges, 4, sample, survived, survived.mean(axis=0), True)


def continuous() -> Law:
    """Return a population with Weibull times, longer in group b, with exponential censoring and the end of the study at
    10."""
    edges = (*map(float, range(11)), 11.0)
    scales = np.array([9.0, 14.0])

    def sample(rng: np.random.Generator) -> Rows:
        group = rng.integers(0, 2, N)
        died, left = scales[group] * rng.weibull(1.3, N), np.minimum(rng.exponential(30, N), 10.0)
        return Rows(np.minimum(died, left), (died <= left).astype(np.int64), group)

    survived = np.exp(-((np.array(edges[1:11]) / scales[:, None]) ** 1.3))
    return Law(edges, 5.0, sample, survived, survived.mean(axis=0))


def flchain() -> Law | None:
    """Return follow-up of 7,874 people in Olmsted County by sex; `None` without R's package survival."""
    rscript = shutil.which("Rscript")
    code = "library(survival); write.csv(flchain[, c('futime', 'death', 'sex')], row.names = FALSE)"
    made = subprocess.run([rscript, "-e", code], capture_output=True, text=True) if rscript else None
    if made is None or made.returncode:
        return None
    table = pd.read_csv(io.StringIO(made.stdout))
    group = np.array(table["sex"] == "M", dtype=np.int64)
    whole = Rows(table["futime"].to_numpy(float), table["death"].to_numpy(np.int64), group)
    edges = (*(365.0 * year for year in range(14)), 5300.0)

    def sample(rng: np.random.Generator) -> Rows:
        picked = rng.integers(0, len(group), len(group))
        return Rows(whole.time[picked], whole.event[picked], group[picked])

    ends = edges[1:14]
    by_group = np.array(
        [usual(Rows(whole.time[m], whole.event[m], group[m]), ends)[0] for m in (group == 0, group == 1)]
    )
    return Law(edges, 3650.0, sample, by_group, usual(whole, ends)[0])


def usual(rows: Rows, ends: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """Return statsmodels' Kaplan–Meier estimate just before each end, and its standard error."""
    from statsmodels.duration.survfunc import SurvfuncRight

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the last standard error divides by zero
        found = SurvfuncRight(rows.time, rows.event)
    place = np.searchsorted(found.surv_times, ends) - 1
    before = place < 0
    return np.where(before, 1.0, found.surv_prob[place]), np.where(before, 0.0, found.surv_prob_se[place])


def show(releases: int) -> None:
    """Print one line for each population and ε."""
    for name, make in (("exact", exact), ("continuous", continuous), ("flchain", flchain)):
        law = make()
        if law is None:
            print(f"{name}: skipped, because R or its package survival is missing")
            continue
        for epsilon in EPSILONS:
            project, rng = planned(law, epsilon), np.random.default_rng([31, round(10 * epsilon)])
            print(
                f"{name}, ε = {epsilon:g}: {_told([released(law, project, rng) for _ in range(releases)])}", flush=True
            )


def planned(law: Law, epsilon: float) -> Project:
    """Return the project with both tables, with a sample's share of events as the only assumption."""
    share = float(np.mean(law.sample(np.random.default_rng(1)).event))
    one = {"name": "all", "kind": "survival", "time": "time", "event": "event=yes", "at": law.at}
    listed = [
        {**one, "assume": {"shares": [share]}},
        {**one, "name": "groups", "group": "group=b:a", "assume": {"shares": [share, share]}},
    ]
    plan = Plan("independent", epsilon, DELTA, analysis_share=0.9)
    return Project("benchmark", law.schema, plan, analyses=read_analyses(listed))


@dataclass(frozen=True)
class Released:
    """Result of one release: which intervals contain the truth, relative widths, and both planned figures. ``asked`` is
    the number of figures.
    """

    held: dict[str, list[bool]]
    widths: list[float]
    facts: list[dict[str, Any]]
    asked: int


def released(law: Law, project: Project, rng: np.random.Generator) -> Released:
    """Buy both tables from one sample; compare them with the true distribution, and with statsmodels on the same
    rows."""
    rows, epsilon = law.sample(rng), project.plan.epsilon
    codes = np.clip(np.searchsorted(law.edges, rows.time, side="right") - 1, 0, len(law.edges) - 2)
    table = Table(law.schema, {"time": codes, "event": rows.event, "group": rows.group}, len(codes))
    whole = Budget(epsilon, DELTA, rho_of(epsilon, DELTA) / 0.9)
    with analysed(PrivateCurator(table, Unit(), whole, 10**6), project) as found:
        facts = [one.facts() for one in found]
    known, out = law.survival.shape[1], Released({"survival": [], "hazard": [], "difference": []}, [], facts, 0)
    ends = tuple(t + 0.5 for t in range(known)) if law.exact else law.edges[1 : known + 1]
    tables = [("", law.whole, rows)] + [(g, law.survival[i], _only(rows, i)) for i, g in enumerate("ab")]
    for group, truth, some in tables:
        errors, hazards = usual(some, ends)[1], 1 - truth / np.concatenate([[1.0], truth[:-1]])
        parts = [part for one in facts for part in one["table"] if part["group"] == group][:known]
        for part, true, hazard, error in zip(parts, truth, hazards, errors, strict=True):
            if part["survival"] is not None:
                out.held["survival"].append(bool(part["low"] <= true <= part["high"]))
                out.held["hazard"].append(bool(part["hazard_low"] <= hazard <= part["hazard_high"]))
                out.widths.append((part["high"] - part["low"]) / (2 * 1.96 * error))
    place, last = law.edges[1:].index(law.at), facts[1]
    if last["low"] is not None:
        apart = law.survival[1, place] - law.survival[0, place]
        out.held["difference"].append(bool(last["low"] <= apart <= last["high"]))
    return replace(out, asked=known * len(tables))


def _told(every: list[Released]) -> str:
    widths = [width for one in every for width in one.widths]
    covered = ", ".join(f"{key} {_clustered([one.held[key] for one in every])}" for key in every[0].held)
    figures = [one for made in every for one in made.facts if one["promised"] is not None]
    within = np.mean([one["reached"] is not None and one["reached"] <= one["promised"] for one in figures] or [np.nan])
    ratio = np.median([one["promised"] / one["reached"] for one in figures if one["reached"]] or [np.nan])
    return (
        f"covered {covered}; answered {100 * len(widths) / sum(one.asked for one in every):.0f} %; width "
        f"{np.median(widths):.2f} × real; {len(figures)} promised, within {100 * within:.0f} %, promised ÷ reached "
        f"{ratio:.2f}"
    )


def _only(rows: Rows, group: int) -> Rows:
    some = rows.group == group
    return Rows(rows.time[some], rows.event[some], rows.group[some])


def _clustered(each: list[list[bool]]) -> str:
    """Return the coverage with its standard error, clustered by release."""
    sizes, held = np.array([len(one) for one in each]), np.array([sum(one) for one in each])
    share = held.sum() / max(sizes.sum(), 1)
    error = np.sqrt(((held - share * sizes) ** 2).sum()) / max(sizes.sum(), 1)
    return f"{100 * share:.1f} ± {100 * error:.1f} % of {sizes.sum():,}"
