"""Honest releases: false alarms, and the verifier's time and memory on Adult."""

from __future__ import annotations

import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.forgeries.case import (
    METHODS,
    frame,
    public_pem,
    signer,
    table,
    written,
)
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.ledger.ledger import Ledger
from espalier.core.project.constraint_kinds import Impossible
from espalier.core.project.constraints import Constraints
from espalier.core.project.file import Project
from espalier.core.project.linked import Linked
from espalier.core.project.plan import Plan
from espalier.core.project.question_list import QuestionList
from espalier.core.project.regressions import BoughtRegression
from espalier.core.project.schema import Column, Schema, to_buy
from espalier.core.release import release
from espalier.core.statement.keys import Signer
from espalier.core.tables.panel import Panel
from espalier.core.tables.table import Table
from espalier.verifier.check import verify


@dataclass(frozen=True)
class Setting:
    """One setting of a release: plan keys, and what the project adds."""

    plan: Mapping[str, Any]
    project: Mapping[str, Any] = field(default_factory=dict)
    rows: int = 1200
    constant: bool = False
    """True if the table has a column of one value."""


ARROWS = Dag((("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("g", "h"), ("e", "h"), ("a", "f")))
ASKED = QuestionList(
    ({"name": "both", "where": {"a": ["x"], "c": ["yes"]}}, {"name": "one", "where": {"b": ["q"]}}),
    ({"name": "n", "of": {"a": ["x"], "c": ["yes"]}},),
)
TO_BUY = Schema(
    (
        *(c for c in table(0, 10).schema.columns if c.name not in "dgh"),
        to_buy("d", "numeric", bins=4, integer=True),
        to_buy("g", "categorical", 6),
        to_buy("h", "categorical", 4),
    )
)
REGRESSIONS = (
    BoughtRegression("linear", "d", ("a", "e"), robust=True),
    BoughtRegression("logistic", "c=yes", ("a", "e"), "logistic"),
    BoughtRegression("Poisson", "d", ("a", "b"), "poisson", interactions=(("a", "b"),)),
)
RULED_OUT = Constraints((Impossible({"a": ("z",), "b": ("p",)}, "confirmed"),))


LINK = Linked("people", "visits", "id", "id", "at", 4)
VISITS = Schema(
    tuple(
        Column(name, "categorical", ("p", "q", "r")) for name in ("people.age", "people.region", "visits.x", "visits.y")
    )
)


def settings() -> Iterator[Setting]:
    """Yield every method under every unit, and the options that change what is bought or drawn."""
    units: tuple[Mapping[str, Any], ...] = (
        {},
        {"rows_per_person": 3},
        {"neighbors": "add-remove"},
        {"neighbors": "add-remove", "rows_per_person": 2},
    )
    for method, unit in itertools.product(("independent", "mst", "prism", "privbayes", "workload"), units):
        yield Setting({"method": method, **unit})
    more: tuple[Mapping[str, Any], ...] = (
        {"accounting": "basic", "epsilon": 0.5},
        {"rows_drawn": "independent"},
        {"private_evaluation": 0.2},
        {"rows": 500},
        {"epsilon": 0.1},
        {"epsilon": 20.0},
        {"epsilon": 100.0},
        {"copies": 2},
    )
    for method, options in itertools.product(("mst", "prism", "privbayes", "workload", "independent"), more):
        yield Setting({"method": method, **options})
    yield Setting({"method": "mst", "compress": True, "epsilon": 0.2})
    yield Setting({"method": "mst", "compress": True, "epsilon": 0.5, "neighbors": "add-remove"})
    yield Setting({"method": "mst", "width": 2})
    yield Setting({"method": "privci", "fair": True, "explain": 0.1})
    yield Setting({"method": "privci", "fair": True})
    yield Setting({"method": "prism", "regime": "graphical"}, {"dag": ARROWS})
    yield Setting({"method": "privbayes"}, {"dag": ARROWS})
    yield Setting({"method": "decoder"}, {"dag": ARROWS})
    yield Setting({"method": "decoder", "rows_drawn": "independent", "neighbors": "add-remove"}, {"dag": ARROWS})
    yield Setting({"method": "copula", "target": "d"})
    yield Setting({"method": "copula", "target": "d", "neighbors": "add-remove"})
    asked: tuple[Mapping[str, Any], ...] = (
        {"method": "mst", "question_share": 0.3},
        {"method": "prism", "question_share": 0.3, "neighbors": "add-remove"},
        {"method": "fpt-lp"},
        {"method": "fpt-mw"},
        {"method": "fpt-lp", "accounting": "pure", "delta": None},
        {"method": "fpt-mw", "accounting": "pure", "delta": None, "neighbors": "add-remove"},
    )
    for plan in asked:
        yield Setting(plan, {"question_list": ASKED})
    for method in ("mst", "privbayes", "independent"):
        yield Setting({"method": method}, {"constraints": RULED_OUT})
        yield Setting({"method": method, "person": "person", "rows_per_person": 2, "neighbors": "add-remove"})
        yield Setting({"method": method, "person": "person", "rows_per_person": 1, "rows": 900})
        yield Setting({"method": method, "schema_share": 0.1}, {"schema": TO_BUY})
        yield Setting({"method": method, "schema_share": 0.1, "neighbors": "add-remove"}, {"schema": TO_BUY})
    yield Setting({"method": "mst", "test_drawing": 0.1}, {"dag": ARROWS})
    for method, unit in itertools.product(("mst", "prism", "workload"), units):
        yield Setting({"method": method, "regressions": REGRESSIONS, "regression_share": 0.3, **unit})
    for method, share in itertools.product(("mst", "prism", "workload"), ("auto", 0.3)):
        yield Setting({"method": method, "embedding_share": share})
        yield Setting({"method": method, "embedding_share": share, "neighbors": "add-remove"})
    for method in ("independent", "mst", "prism", "privbayes", "workload"):
        yield Setting({"method": method}, constant=True)
    yield Setting({"method": "decoder"}, {"dag": ARROWS}, constant=True)
    yield Setting({"method": "copula", "target": "d"}, constant=True)
    bought = {"method": "prism", "regime": "causal", "task_weights": "bought"}
    yield Setting(bought, {"dag": ARROWS}, constant=True)
    yield Setting({**bought, "epsilon": 3.0}, {"dag": ARROWS})
    for families in ("auto", "additive"):
        yield Setting({"method": "decoder", "families": families, "epsilon": 10.0}, {"dag": ARROWS})
    linked = {"method": "linked", "person": "id", "target": None}
    yield Setting({**linked, "neighbors": "add-remove"})
    yield Setting({**linked, "rows": 1000})
    yield Setting({**linked, "neighbors": "add-remove", "epsilon": 20.0, "count_at_visits": ("visits.x",)})
    yield Setting({"method": "mst", "rows_per_person": 2}, {"one_row_per_person": False})
    yield Setting({"method": "mst"}, {"one_row_per_person": "unasked"})


def alarms(times: int) -> bool:
    """Make ``times`` honest releases in each setting, each recorded in a ledger; print every failed check, and return
    whether there is none.
    """
    key, wrong, runs, slowest = signer(), 0, 0, 0.0
    with tempfile.TemporaryDirectory() as place:
        for number, setting in enumerate(settings()):
            for seed in range(1000 * number, 1000 * number + times):
                try:
                    folder, export = honest(setting, seed, key, Path(place) / str(seed))
                except Exception as error:  # a setting that this version refuses is shown, not counted
                    print(f"refused: {dict(setting.plan)}: {error}")
                    break
                start = time.perf_counter()
                found = verify(folder, public_pem(key), export)
                slowest = max(slowest, time.perf_counter() - start)
                runs += 1
                for f in found:
                    if f.holds is False:
                        wrong += 1
                        print(f"ALARM {dict(setting.plan)}: check {f.check}: {f.text}", flush=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{runs} honest releases, {wrong} alarms; slowest check {slowest:.2f} s; {memory:.0f} MiB with the releases")
    return wrong == 0


def honest(setting: Setting, seed: int, key: Signer, place: Path) -> tuple[Path, bytes]:
    """Return the folder of an honest release in a setting, and the export of the ledger that contains only this
    release."""
    rows = table(seed, setting.rows)
    rows = _with_constant(rows) if setting.constant else rows
    plan = Plan(**{"epsilon": 1.0, "delta": 1e-6, "target": "c", **_split(setting.plan)})
    roles = Roles(outcome=("c",), protected=("g",), admissible=("b", "d"))
    one_row = "unasked" if plan.rows_per_person > 1 or plan.person else True
    data: Any = frame(rows) if plan.person or plan.schema_share else rows
    given = {"schema": rows.schema, "roles": roles, "one_row_per_person": one_row, **setting.project}
    if plan.method == "linked":
        data, given = visits(seed, setting.rows), {"schema": VISITS, "linked": LINK}
    project = Project("honest", plan=plan, **given)
    place.mkdir(parents=True)
    ledger = Ledger(place / "ledger.db", create=True)
    terms: Any = {"neighbors": plan.neighbors, "rows_per_person": plan.rows_per_person, "delta": 1e-6}
    terms |= {"delta_for_draws": 5e-7} if plan.schema_share else {}
    ledger.open_table("people", person=plan.person, who="steward", epsilon=min(100.0, 10 * plan.epsilon), **terms)
    made = release(project, data, ledger=ledger.account("people", "steward"), signer=key)
    return written(made.files, place / "release"), json.dumps(ledger.to_json()).encode()


def visits(seed: int, rows: int) -> Panel:
    """Return people with up to four visits; x stays the same in most of them, and y follows the region."""
    rng = np.random.default_rng(seed)
    age, region, number = (rng.integers(size, size=rows) for size in (3, 3, 4))
    x = np.where(rng.random((rows, 4)) < 0.7, age[:, None], rng.integers(3, size=(rows, 4)))
    y = np.where(rng.random((rows, 4)) < 0.6, region[:, None], rng.integers(3, size=(rows, 4)))
    codes = {"people.age": age, "people.region": region, "visits.x": x[:, 0], "visits.y": y[:, 0], LINK.number: number}
    own = {"visits.x": x, "visits.y": y}
    schema = Project("honest", VISITS, Plan("linked", 1.0, 1e-6, person="id"), linked=LINK).schema
    return Panel(schema, codes, rows, b"", np.arange(rows), "id", 1, linked=LINK, visits=own)


MEASURED = """
import re, sys, time
from pathlib import Path
from verifier.check import main
status = main(sys.argv[1:])
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(time.process_time(), peak * 1024 / 1e6, file=sys.stderr)
sys.exit(status)
"""
"""A check that prints its own CPU seconds and peak memory in MB. Linux counts a parent's memory in ``ru_maxrss``."""


def adult() -> bool:
    """Measure time and memory of the verifier on releases of Adult; return whether 2 s and 300 MiB suffice."""
    from benchmarks.tables import _adult

    rows, good = _adult(), True
    for method in METHODS:
        plan = Plan(method, 1.0, 1e-9, target="income")
        roles = Roles(outcome=("income",), protected=("sex",), admissible=("occupation",))
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "r"
            release(Project("adult", rows.schema, plan, roles=roles, one_row_per_person=True), rows).save(folder)
            done = subprocess.run([sys.executable, "-c", MEASURED, str(folder)], capture_output=True, text=True)
        cpu, memory = map(float, done.stderr.split()[-2:])
        print(f"adult, {method}: exit {done.returncode}, {cpu:.2f} CPU s, {memory:.0f} MB", flush=True)
        good &= done.returncode == 0 and cpu <= 2 and memory < 300
    return good


def _with_constant(rows: Table) -> Table:
    columns = (*rows.schema.columns, Column("k", "categorical", ("only",)))
    codes = {**rows.codes, "k": np.zeros(rows.rows, np.uint8)}
    return Table(Schema(columns), codes, rows.rows, values=rows.values)


def _split(plan: Mapping[str, Any]) -> dict[str, Any]:
    own = set(Plan.__dataclass_fields__)
    options = {k: v for k, v in plan.items() if k not in own}
    return {**{k: v for k, v in plan.items() if k in own}, "options": options}
