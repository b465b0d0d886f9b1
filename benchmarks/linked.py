"""Linked tables: people and their visits, on simulated panels with a known distribution.

    python -m benchmarks.linked                 everything; --only panel, time, coverage, at_visits, returns, scale
                                                or parquet

Figures are means of three runs under add-remove, δ = 1e-6. At ε = 100 the panel has four runs, and the smallest and
largest figures are also printed. The panel is compared with 300,000 people drawn from the same distribution.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from espalier.core.analysis.returns import return_tables
from espalier.core.analysis.transitions import step_tables
from espalier.core.analysis.visit_shares import visit_tables
from espalier.core.evaluation.linked import figures_of
from espalier.core.evaluation.linked_pictures import transitions
from espalier.core.methods import fit, frame_of
from espalier.core.methods.linked import LinkedOptions
from espalier.core.methods.visit_answers import count_asked
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.unit import Unit
from espalier.core.project.column_types import Dates
from espalier.core.project.dates import DateBins
from espalier.core.project.file import Project
from espalier.core.project.linked import Linked
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.frames import panel as linked_panel
from espalier.core.tables.frames import read_data
from espalier.core.tables.panel import Panel, panel_of
from espalier.core.tables.reading import read_table

EPSILONS, SEEDS, DELTA = (0.5, 1.0, 3.0), 3, 1e-6
VISIT_COLUMNS = (5, 4, 3, 6, 4, 3, 5, 3)
"""Number of values of each of the panel's visit columns."""


class Law:
    """The true model: a visit's columns depend on the person, on this visit, and on the two previous visits."""

    def __init__(self, sizes: tuple[int, ...] = VISIT_COLUMNS, keep: int = 8, seed: int = 0) -> None:
        """A model with visit columns of these sizes, and up to ``keep`` visits."""
        rng = np.random.default_rng(seed)
        self.sizes, self.keep = sizes, keep
        self.stay = rng.uniform(0.5, 2.0, len(sizes))
        self.echo = rng.uniform(0.3, 1.2, len(sizes))
        self.base = [rng.normal(0, 0.6, size) for size in sizes]
        self.age = [rng.normal(0, 0.5, (5, size)) for size in sizes]
        self.region = [rng.normal(0, 0.4, (3, size)) * (j % 3 == 0) for j, size in enumerate(sizes)]
        self.within = {(j - 1, j): rng.normal(0, 0.7, (sizes[j - 1], sizes[j])) for j in range(1, len(sizes))}
        pairs = rng.permutation([(i, j) for i in range(len(sizes)) for j in range(len(sizes)) if i != j])
        self.past = {(i, j): rng.normal(0, 0.6, (sizes[i], sizes[j])) for i, j in pairs[: len(sizes)].tolist()}

    def people(self, count: int, rng: np.random.Generator) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
        """Return the codes of people's rows and of all their visits."""
        age, region = rng.choice(5, count, p=[0.1, 0.2, 0.3, 0.25, 0.15]), rng.choice(3, count, p=[0.5, 0.3, 0.2])
        number = np.minimum(rng.geometric(0.55 - 0.06 * age), self.keep) - 1
        visits = {f"visits.c{j}": np.zeros((count, self.keep), dtype=np.int64) for j in range(len(self.sizes))}
        seen = list(visits.values())
        for t, (j, size) in itertools.product(range(self.keep), enumerate(self.sizes)):
            logits = self.base[j] + self.age[j][age] + self.region[j][region]
            if j:
                logits = logits + self.within[j - 1, j][seen[j - 1][:, t]]
            if t:
                logits = logits + self.stay[j] * np.eye(size)[seen[j][:, t - 1]]
                for i in (i for i, k in self.past if k == j):
                    logits = logits + self.past[i, j][seen[i][:, t - 1]]
            if t > 1:
                logits = logits + self.echo[j] * np.eye(size)[seen[j][:, t - 2]]
            seen[j][:, t] = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
        rows = {"patients.age": age, "patients.region": region, "visits per person": number}
        return rows | {name: codes[:, 0] for name, codes in visits.items()}, visits

    def project(self, epsilon: float, **plan: Any) -> Project:
        """Return the project of these people."""
        sizes = {"patients.age": 5, "patients.region": 3} | {f"visits.c{j}": n for j, n in enumerate(self.sizes)}
        columns = tuple(Column(name, "categorical", tuple(map(str, range(size)))) for name, size in sizes.items())
        link = Linked("patients", "visits", "patient_id", "patient_id", "admitted", self.keep)
        made = Plan("linked", epsilon, DELTA, neighbors="add-remove", person=link.key).changed(**plan)
        return Project("panel", Schema(columns), made, linked=link)

    def panel(self, project: Project, count: int, rng: np.random.Generator) -> Panel:
        """Return ``count`` people drawn from this model."""
        rows, visits = self.people(count, rng)
        return panel_from(project, rows, visits)


def panel_from(project: Project, rows: Mapping[str, NDArray[Any]], visits: Mapping[str, NDArray[Any]]) -> Panel:
    """Return people with these codes as a panel."""
    count, link = len(next(iter(rows.values()))), project.linked
    assert link is not None
    return Panel(
        project.schema, rows, count, b"panel", np.arange(count), link.key, row_limit=1, linked=link, visits=visits
    )


def released(project: Project, panel: Panel, people: int = 0) -> tuple[Panel, float]:
    """Return a synthetic panel with this number of people (by default, as in the real panel), and the CPU seconds for
    it.
    """
    start = time.process_time()
    unit = Unit(project.plan.neighbors, 1)
    curator = PrivateCurator(panel, unit, Budget.of(project.plan, None), project.plan.max_cells)
    model: Any = fit(curator, project, frame_of(project)).model()
    rng = np.random.default_rng()
    rows = model.sample(people or panel.rows, rng, even=True)
    made = panel_from(project, rows, model.visits(rows, rng, even=True))
    return made, time.process_time() - start


def mean(of: list[dict[str, float | None]]) -> dict[str, float]:
    """Return the mean of each figure that is available."""
    return combined(of, np.mean)


def combined(of: list[dict[str, float | None]], how: Callable[[list[float]], Any]) -> dict[str, float]:
    """Return the mean, the smallest or the largest of each available figure."""
    known = [key for key, value in of[0].items() if value is not None]
    return {key: float(how([found[key] or 0.0 for found in of])) for key in known}


def show(title: str, found: Mapping[str, float | None]) -> None:
    """Print one line of figures."""
    print(
        f"{title:<28} " + "  ".join(f"{key} {value:.3f}" for key, value in found.items() if value is not None),
        flush=True,
    )


def panel() -> None:
    """Run on the panel with a known distribution."""
    law = Law()
    project = law.project(1.0)
    rng = np.random.default_rng(1)
    real, truth = law.panel(project, 10_000, rng), law.panel(project, 300_000, rng)
    show("the real sample", figures_of(truth, real))
    for epsilon in (*EPSILONS, 100.0):
        runs = []
        for _ in range(SEEDS + (epsilon == 100)):
            made, seconds = released(law.project(epsilon), real)
            runs.append(figures_of(truth, made) | {"CPU s": seconds})
        show(f"ε = {epsilon:g}", mean(runs))
    show("ε = 100, smallest", combined(runs, np.min))
    show("ε = 100, largest", combined(runs, np.max))
    made, _ = released(law.project(100.0), real, 300_000)
    show("ε = 100, 300,000 people", figures_of(truth, made))


def seconds() -> None:
    """Print the time for a panel of 70,000 people with 17 columns and up to 3 visits."""
    law = Law(sizes=(9, 5, 4, 12, 3, 8, 6, 3, 3, 14, 5, 4, 3, 3, 9), keep=3, seed=2)
    project = law.project(1.0)
    real = law.panel(project, 70_000, np.random.default_rng(1))
    made, used = released(project, real)
    show("70,000 × 17 × 3, ε = 1", figures_of(real, made) | {"CPU s": used})


def coverage() -> None:
    """Print the intervals of all transitions over 30 fresh panels with a known distribution, at ε = 1."""
    law, rng = Law(), np.random.default_rng(3)
    project = law.project(1.0)
    truth = law.panel(project, 300_000, rng)
    held, shown, wide = 0, 0, list[float]()
    for _ in range(30):
        own = law.panel(project, 10_000, rng)
        curator = PrivateCurator(own, Unit(project.plan.neighbors, 1), Budget.of(project.plan, None), 10**6)
        facts = fit(curator, project, frame_of(project)).facts(project)
        for name, table in step_tables(facts, project.schema).items():
            true, labels = transitions(truth, name), tuple(project.schema[name].labels)
            for (i, before), (j, after) in itertools.product(enumerate(labels), repeat=2):
                found = table.transition(labels, before, after)
                if found.low is not None and found.high is not None:
                    shown += 1
                    held += found.low <= true[i, j] <= found.high
                    wide.append(found.high - found.low)
    print(f"coverage of 95 % intervals {held / shown:.3f}, mean width {np.mean(wide):.3f}, {shown:,} intervals")


def at_visits() -> None:
    """Print the intervals of all shares at all visits over 30 fresh panels with a known distribution, at each ε.

    Three of the eight columns are measured at later visits, for a tenth of the budget.
    """
    law, rng = Law(), np.random.default_rng(5)
    asked = ["visits.c0", "visits.c3", "visits.c7"]
    truth = law.panel(law.project(1.0), 1_000_000, rng)
    many = truth.steps.numbers
    for epsilon in EPSILONS:
        project = law.project(epsilon, count_at_visits=asked)
        kept, hidden = dict[str, list[tuple[bool, float]]](), 0
        for _ in range(30):
            own = law.panel(project, 10_000, rng)
            curator = PrivateCurator(own, Unit(project.plan.neighbors, 1), Budget.of(project.plan, None), 10**6)
            facts = fit(curator, project, frame_of(project)).facts(project)
            assert project.linked is not None
            for (name, visit), table in visit_tables(facts, project.linked, project.schema).items():
                codes, labels = truth.visits[name][many >= visit, visit - 1], tuple(project.schema[name].labels)
                true = np.bincount(codes, minlength=len(labels)) / len(codes)
                for code, value in enumerate(labels):
                    found = table.share(labels, value)
                    if found.low is None or found.high is None:
                        hidden += 1
                        continue
                    where = "first visit" if visit == 1 else "visits 2 to 4" if visit < 5 else "visits 5 to 8"
                    held = found.low <= true[code] <= found.high
                    kept.setdefault(where, []).append((bool(held), found.high - found.low))
        for where, each in kept.items():
            held_all, wide = np.mean(each, axis=0)
            print(f"ε = {epsilon:g}, {where}: coverage {held_all:.3f}, mean width {wide:.3f}, {len(each):,} intervals")
        print(f"ε = {epsilon:g}: {hidden:,} not shown", flush=True)


def returns() -> None:
    """Print the intervals of all shares of visits with a return over 30 fresh panels with a known distribution, at each
    ε.

    Three of the eight columns are measured with the return, for a tenth of the budget. The counts are bought as in a
    release, but the model is not fitted.
    """
    law, rng = Law(), np.random.default_rng(7)
    asked = LinkedOptions(count_returns_after=["visits.c0", "visits.c3", "visits.c7"])
    plain = law.project(1.0)
    assert plain.linked is not None
    days = DateBins.from_json({"from": "2020-01-01", "to": "2020-12-31", "by": "year"})
    link = replace(plain.linked, gap=(0, 8, 31, 91, 181))
    schema = Schema((*plain.schema.columns, Dates.of(f"visits.{link.order}", days)))
    truth = _returning(law, link, schema, 1_000_000, rng)
    for epsilon in EPSILONS:
        held, wide, hidden = list[bool](), list[float](), 0
        for _ in range(30):
            own = _returning(law, link, schema, 10_000, rng)
            budget = Budget.of(law.project(epsilon).plan, None)
            curator = PrivateCurator(own, Unit("add-remove", 1), budget, 10**6)
            _, bought = count_asked(curator, link, schema, asked, asked.at_visits_share * budget.rho)
            for name, table in return_tables({"tables": {"returns": bought}}, link, schema).items():
                exact, labels = truth.return_counts(name, 2), tuple(schema[name].labels)
                for value, true in zip(labels, exact[:, 0] / exact.sum(axis=1), strict=True):
                    found = table.share(labels, value)
                    if found.low is None or found.high is None:
                        hidden += 1
                        continue
                    held.append(bool(found.low <= true <= found.high))
                    wide.append(found.high - found.low)
        print(
            f"ε = {epsilon:g}: coverage {np.mean(held):.3f}, mean width {np.mean(wide):.3f}, {len(held):,} intervals, "
            f"{hidden:,} not shown",
            flush=True,
        )


def _returning(law: Law, link: Linked, schema: Schema, count: int, rng: np.random.Generator) -> Panel:
    """Return people drawn from a model in which returns, and early returns, depend on the visit and on a trait of the
    person."""
    rows, visits = law.people(count, rng)
    trait, active = rng.normal(0, 1, count), np.ones(count, dtype=bool)
    gaps, number = np.zeros((count, link.keep), dtype=np.int64), np.zeros(count, dtype=np.int64)
    for t in range(1, link.keep):
        first, other = visits["visits.c0"][:, t - 1], visits["visits.c3"][:, t - 1]
        active &= rng.random(count) < expit(0.4 * first - 0.2 * other + trait)
        soon = rng.random(count) < expit(0.5 * other - 1.5 + trait)
        gaps[:, t] = np.where(soon, rng.integers(0, 2, count), rng.integers(2, 4, count))
        number += active
    day = np.zeros(count, dtype=np.int64)
    project = Project("panel", schema, law.project(1.0).plan, linked=link)
    rows |= {link.number: number, link.dated: day}
    return panel_from(project, rows, {link.gap_name: gaps, **visits})


def scale() -> None:
    """Print the time for reading, counting, fitting and drawing, and the peak memory, for a million visits of 200,000
    people in two CSV files.
    """
    law = Law(sizes=(5, 4, 3, 6, 4), keep=8, seed=4)
    project = law.project(1.0)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("patients.csv", "visits.csv")]
        pid = os.fork()  # keeps the simulation out of this process's memory
        if not pid:
            _write(law, *files)
            os._exit(0)
        os.waitpid(pid, 0)
        start = time.process_time()
        assert project.linked is not None
        real = panel_of(project.linked, project.schema, read_table(files[0]), read_table(files[1]))
        read = time.process_time() - start
    made, used = released(project, real)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    many = int(real.steps.numbers.sum())
    more = {"CPU s, reading": read, "CPU s, release": used, "peak GB": peak}
    show(f"{many:,} visits, ε = 1", figures_of(real, made) | more)


def parquet() -> None:
    """Release ten million visits of two million people from two Parquet files, and draw 100,000 people."""
    law = Law(sizes=(5, 4, 3, 6, 4), keep=8, seed=4)
    project = law.project(1.0)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("patients.parquet", "visits.parquet")]
        pid = os.fork()
        if not pid:
            _write_parquet(law, *files)
            os._exit(0)
        os.waitpid(pid, 0)
        start = time.process_time()
        assert project.linked is not None
        real = linked_panel(project.linked, project.schema, [read_data(file) for file in files])
        read, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    made, used = released(project, real, 100_000)
    whole = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    many = int(real.steps.numbers.sum())
    more = {"CPU s, reading": read, "CPU s, release": used, "peak GB, reading": peak, "peak GB": whole}
    show(f"{many:,} visits, ε = 1", figures_of(real.take(np.arange(100_000)), made) | more)


def _people(law: Law) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]], NDArray[Any], NDArray[Any]]:
    """Return 200,000 people drawn from a model, with one to eight visits each, and the person and position of each
    visit."""
    rng, count = np.random.default_rng(1), 200_000
    rows, cells = law.people(count, rng)
    many = np.clip(rng.binomial(8, 0.62, count), 1, 8)
    who = np.repeat(np.arange(count), many)
    at = np.arange(len(who)) - np.repeat(np.cumsum(many) - many, many)
    return rows, cells, who, at


def _write_parquet(law: Law, people: Path, visits: Path) -> None:
    """Write the people ten times, with different identifiers and with visits in random order."""
    import pyarrow as pa
    from pyarrow import parquet as files

    rows, cells, who, at = _people(law)
    columns = {"age": rows["patients.age"], "region": rows["patients.region"]}
    wide = {f"c{j}": codes[who, at].astype(str) for j, codes in enumerate(cells.values())}
    mixed = np.random.default_rng(2).permutation(len(who))
    count = len(columns["age"])

    def group(start: int, ids: NDArray[Any], more: dict[str, NDArray[Any]]) -> pa.Table:
        return pa.table({"patient_id": np.char.add("q", (ids + start).astype(str)), **more})

    first = group(0, np.arange(count), {name: codes.astype(str) for name, codes in columns.items()})
    with files.ParquetWriter(people, first.schema) as out:
        for i in range(10):
            out.write_table(group(i * count, np.arange(count), {n: c.astype(str) for n, c in columns.items()}))
    given = {"admitted": at[mixed], **{name: codes[mixed] for name, codes in wide.items()}}
    with files.ParquetWriter(visits, group(0, who[mixed], given).schema) as out:
        for i in range(10):
            out.write_table(group(i * count, who[mixed], given))


def _write(law: Law, people: Path, visits: Path) -> None:
    """Write these people as CSV."""
    rows, cells, who, at = _people(law)
    count = len(rows["patients.age"])
    with people.open("w") as file:
        file.write("patient_id,age,region\n")
        np.savetxt(file, np.column_stack([np.arange(count), rows["patients.age"], rows["patients.region"]]), "%d", ",")
    with visits.open("w") as file:
        file.write(",".join(["patient_id", "admitted", *(f"c{j}" for j in range(len(cells)))]) + "\n")
        np.savetxt(file, np.column_stack([who, at, *(codes[who, at] for codes in cells.values())]), "%d", ",")


PARTS = {
    "panel": panel,
    "time": seconds,
    "coverage": coverage,
    "at_visits": at_visits,
    "returns": returns,
    "scale": scale,
    "parquet": parquet,
}


def main() -> None:
    """Run the requested parts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    for name in parser.parse_args().only:
        print(f"== {name}", flush=True)
        PARTS[name]()


if __name__ == "__main__":
    main()
