"""What is handed over: the synthetic table, the model, the accounting, the report.

:func:`release` is the one place where a project, a table and a budget meet. ``release.json`` and ``report.html``
hold no figure computed on real rows outside the budget.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.errors import Cancelled, EspalierError, ProjectError, SchemaError, TableError
from core.evaluation.private.held_out import Looking, look
from core.graph.separations import Separation, clique_edges
from core.methods import METHODS, Measured, Report, silent
from core.methods.frame import Frame, frame_of
from core.methods.select.fence_cost import given_up
from core.models.graphical import GraphicalModel, check_size, estimate, refine, smoothing_for
from core.privacy.accounting import Budget, Unit, epsilon_of
from core.privacy.contribution import bounded, check_fits, held_rows, public_rows, split
from core.privacy.curator import PrivateCurator, Spending
from core.privacy.draws import Act, Clique
from core.project.file import MAX_ROWS, Plan, Project
from core.project.schema import Schema
from core.release.planning import preview, promised
from core.tables.csv_lines import DELIMITERS
from core.tables.csv_safety import defuse, restore
from core.tables.reading import TextColumn, TextTable, read_released
from core.tables.table import Table

if TYPE_CHECKING:
    from core.ledger.ledger import Account, Reservation

PROMISES = (
    "The figures are for this release alone. Another release from the same people adds to them: ρ adds up.",
    "Whoever made this release declares the schema (column names, categories, bin edges) to be public.",
    "That the table has at least one row is public.",
)
PROMISED = "What the plan says about rows per person is a promise; no person column enforces it."
ENFORCED = (
    "The protected unit is one person, with all their rows, however many: of each person in the column {person!r} at "
    "most {k} were kept, chosen by lot before anything was counted. Two spellings of a person count as two people."
)
EVEN = (
    "The rows are spread over the model's cells as evenly as whole numbers allow. So the table is closer to the model "
    "than independent rows would be, and has less variance than they have: whoever combines several tables drawn from "
    "one model must not take their spread for that of independent samples."
)
FILLED = (
    "The table that was counted was filled with invented rows or cut by lot to the declared {rows:,} rows; how many "
    "rows there really were is private."
)


@dataclass(frozen=True)
class Release:
    """A finished release. Everything in it is differentially private or public.

    ``codes`` are the synthetic rows as codes, ``table`` the same rows as text, one list per column.
    """

    project: Project
    budget: Budget
    frame: Frame
    measured: Measured
    model: GraphicalModel
    codes: dict[str, NDArray[Any]]
    table: dict[str, list[str]]
    rows: int
    spending: Spending
    seconds: dict[str, float]
    """Running times of what came after the noise: the fit and the sampling. What reads the rows is not timed."""
    warnings: tuple[str, ...] = ()
    """What the plan was warned of (:attr:`core.release.planning.Preview.warnings`), for the public number of rows."""
    looking: Looking | None = None
    reservation: Reservation | None = None
    """What a ledger set aside for it; None: this release is not recorded in a ledger."""
    ledger_trouble: str = ""
    """What is to be said if the ledger could not be told that the release was made."""
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    """The day it was made, in UTC."""

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs inside measured cliques, no fill-in: the graph the model is Markov with respect to."""
        return clique_edges(self.measured.cliques)

    def to_json(self) -> dict[str, Any]:
        """``release.json``."""
        s, plan = self.spending, self.project.plan
        return {
            "format": "espalier-release/1",
            "project": self.project.to_json(),
            "method": plan.method,
            "private": True,
            "spent": {
                "epsilon": epsilon_of(s.rho, self.budget.delta), "delta": self.budget.delta, "rho": s.rho,
                "neighbors": plan.neighbors, "rows_per_person": plan.rows_per_person, "person": plan.person,
            },
            "asked": {"epsilon": self.budget.epsilon, "delta": self.budget.delta, "rho": self.budget.rho},
            "selected": list(self.measured.features),
            "refused": list(self.frame.refused),
            "edges": [list(e) for e in self.edges],
            "cliques": [list(c) for c in self.measured.cliques],
            "separations": [{**x.to_json(), "holds": x.holds(self.edges)} for x in self.frame.separations],
            "measurements": [
                {"columns": list(m.clique), "pool": m.pool, "cells": m.values.size, "rho": m.rho, "sigma": m.sigma}
                for m in s.measurements
            ] + [
                {"columns": [], "pool": x.pool, "cells": x.values.size, "rho": x.rho, "sigma": x.sigma}
                for x in s.scores
            ] + [
                {"columns": [], "pool": g.pool, "cells": g.values.size, "rho": g.rho, "sigma": g.sigma}
                for g in s.gradients
            ],
            "bounds": promised(s, self.model.total, plan).to_json(),
            **self._beyond(),
            "choices": [
                {
                    "what": c.what, "chosen": list(c.chosen), "candidates": c.candidates, "pool": c.pool,
                    "rho": c.rho, "scale": c.scale, "sensitivity": c.sensitivity,
                }
                for c in s.choices
            ],
            "looking": None if self.looking is None else self.looking.to_json(),
            "rows": self.rows,
            "date": self.date,
            "fit": {
                "iterations": self.model.fit.iterations, "gap": self.model.fit.gap,
                "converged": self.model.fit.converged, "criterion": self.model.fit.criterion,
            },
            "seconds": {step: round(s, 2) for step, s in self.seconds.items()},
            "warnings": list(self.warnings),
            "promises": promises(plan),
            "ledger": self.reservation.facts() if self.reservation else None,
        }  # fmt: skip

    def _beyond(self) -> dict[str, Any]:
        """What only some plans pay for: scores of refused pairs, errors of all pairs by round, merged categories."""
        out: dict[str, Any] = {}
        if (bought := self.measured.explained) is not None:
            tree = [e for e in bought.cliques if e in self.edges]
            cost = given_up(bought, tree)
            scores = sorted(zip(bought.cliques, bought.values.tolist(), strict=True), key=lambda x: -x[1])
            out["explained"] = {
                "refused": [{"columns": list(q), "score": v} for q, v in scores if q not in tree],
                "tree": [{"columns": list(q), "score": v} for q, v in scores if q in tree],
                "sigma": bought.sigma, "sensitivity": bought.sensitivity, "rho": bought.rho,
                "q": {
                    "tree": cost.tree, "free": cost.free, "given_up": cost.free - cost.tree,
                    "sigma": cost.noise, "would_join": [list(q) for q in cost.swaps],
                },
            }  # fmt: skip
        others = [x for x in self.spending.scores if x is not bought]
        if errors := [x for x in others if any(len(q) == 2 for q in x.cliques)]:
            out["errors"] = [
                {"columns": list(q), "round": i, "error": v, "sigma": x.sigma}
                for i, x in enumerate(errors, 1)
                for q, v in zip(x.cliques, x.values.tolist(), strict=True)
            ]
        if weights := [x for x in others if all(len(q) != 2 for q in x.cliques)]:
            out["associations"] = [
                {"columns": list(q), "score": v, "sigma": x.sigma}
                for x in weights
                for q, v in zip(x.cliques, x.values.tolist(), strict=True)
            ]
        if self.measured.merged:
            out["merged"] = {
                name: [c for c, g in zip(self.project.schema[name].labels, groups.tolist(), strict=True)
                       if g == int(groups.max())]
                for name, groups in self.measured.merged.items()
            }  # fmt: skip
        return out

    def csv(self) -> str:
        """``synthetic.csv``'s text; names and categories that look like formulas are defused (see `csv_safety`).

        :func:`load_release` takes the apostrophes off again.
        """
        out = io.StringIO()
        plain, quoted = (csv.writer(out, lineterminator="\n", quoting=q) for q in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
        names = [defuse(name) for name in self.table]
        # where a name holds another delimiter, only quotes tell a reader which one the file is written with
        odd = any(mark in name for name in names for mark in DELIMITERS if mark != ",")
        (quoted if odd else plain).writerow(names)
        cells = []
        for column in self.project.schema.columns:
            changed = {c: defuse(c) for c in column.categories if defuse(c) != c}
            texts = self.table[column.name]
            cells.append([changed.get(t, t) for t in texts] if changed else texts)
        # a lone empty cell must not become a blank line
        (quoted if len(cells) == 1 else plain).writerows(zip(*cells, strict=True))
        return out.getvalue()

    @cached_property
    def files(self) -> dict[str, bytes]:
        """What is handed over, by file name: the table, the accounting, the model, the project file, the report."""
        from core.release.report import render

        facts = self.to_json()
        return {
            "synthetic.csv": self.csv().encode(),
            "release.json": (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode(),
            "project.json": self.project.dumps().encode(),
            "report.html": render(facts).encode(),
            "model.npz": self.model.dumps(),
        }

    def save(self, folder: str | Path) -> None:
        """Write the :attr:`files` into a new or empty folder; all of them or nothing."""
        save_files(self.files, folder)


def save_files(files: Mapping[str, bytes], folder: str | Path) -> None:
    """Write a release's files into a new or empty folder; all of them or nothing."""
    folder = Path(folder)
    check_folder(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as work:
            part = Path(work) / "part"
            part.mkdir()
            for name, data in files.items():
                (part / name).write_bytes(data)
            if folder.exists():
                folder.rmdir()
            shutil.move(part, folder)
    except OSError as error:
        raise ProjectError(f"cannot write to {folder}: {error.strerror or error}", path=str(folder)) from None


def promises(plan: Plan) -> list[str]:
    """What is promised beside (ε, δ), and what only by whoever made the release."""
    even = [EVEN] if plan.rows_drawn == "even" else []
    if plan.person is None:
        return [*PROMISES, PROMISED, *even]
    filled = [FILLED.format(rows=plan.rows)] if plan.neighbors == "replace-one" else []
    return [*PROMISES, ENFORCED.format(person=plan.person, k=plan.rows_per_person), *filled, *even]


def check_folder(folder: Path) -> None:
    """Raise :class:`ProjectError` unless ``folder`` can be made, or is empty: nothing is ever overwritten."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ProjectError(f"{folder} is not empty; name a new folder, nothing is overwritten", path=str(folder))
    parent = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ProjectError(f"cannot write to {folder}: {parent} does not allow it", path=str(folder))


def release(project: Project, table: Table, report: Report = silent, ledger: Account | None = None) -> Release:
    """Spend the plan's budget on ``table`` and return what may leave the building.

    Everything that can be refused is refused before the first draw: unconfirmed guesses, conflicts, sizes, a ledger
    that has not enough left. The result is (ε, δ)-DP for the plan's unit of privacy. ``report(fraction, message)``
    tells progress; raising from it cancels (what had been drawn by then stays spent).

    With ``ledger`` (an account of a :class:`core.ledger.ledger.Ledger`) the plan's whole ρ is reserved there before
    the first draw; a plan without a δ takes the ledger's. A finished release counts what it spent. One that ends
    otherwise is returned if nothing had been drawn, and counts in full if something had, or if the machine went down.
    """
    refuse_guessed(project.schema)
    check_fits(project, table)
    planned = ledger.check(project) if ledger else project
    plan, sizes = planned.plan, planned.schema.sizes
    total = public_rows(plan, table.rows)
    shown = preview(planned, total)  # a rehearsal: refuses conflicts and plans that are too large
    budget = Budget.of(plan, total)
    rest, held = _parts(plan, table, total)
    curator = PrivateCurator(rest, sizes, Unit(plan.neighbors, plan.rows_per_person), budget, plan.max_cells)
    looked = Spending(0.0)  # until it is known what the release itself has spent
    reservation = ledger.reserve(planned, budget, table.digest) if ledger else None
    try:
        made = _release(planned, curator, held, looked, total, report)
        made = replace(made, project=project, warnings=shown.warnings, reservation=reservation)
        files = made.files if reservation else {}
    except BaseException as error:
        if reservation is None:
            raise
        reason = "cancelled" if isinstance(error, Cancelled) else type(error).__name__  # a text could tell of rows
        drawn = bool(curator.spending.debits)
        trouble = reservation.end(drawn, f"ended without a release: {reason}", _acts(curator.spending, looked))
        if trouble and isinstance(error, EspalierError):
            raise type(error)(f"{error}. {trouble}", **error.data) from None
        raise
    if reservation:
        said = json.loads(files["release.json"])["spent"]["rho"]  # what counts is what the release says of itself
        if trouble := reservation.spend(said, files, _acts(curator.spending, looked)):
            made = replace(made, ledger_trouble=trouble)
    return made


def _acts(spending: Spending, looked: Spending) -> list[Act]:
    """What was drawn from the release's own rows, and from those held out."""
    return [*spending.acts, *(replace(act, kind="look") for act in looked.acts)]


def _release(
    project: Project, curator: PrivateCurator, held: Table | None, looked: Spending, total: int | None, report: Report
) -> Release:
    """Measure, fit and sample; everything is paid for from ``curator``. ``total`` is how many rows are public.

    What looking at the rows ``held`` out costs is booked in ``looked``.
    """
    plan, sizes = project.plan, project.schema.sizes
    frame = frame_of(project)
    report(0.0, "Measuring")  # the last moment to cancel for nothing
    measured = METHODS[plan.method](curator, project, frame, lambda f, m: report(0.4 * f, m))
    check_size(sizes, measured.cliques, max_cells=plan.max_cells)
    report(0.4, "Fitting the model")
    start = time.perf_counter()
    known = None if curator.rows is None else float(curator.rows)
    model = estimate(
        curator.sizes, measured.measurements, known,
        smoothing=smoothing_for(measured.measurements, known), report=lambda f, m: report(0.4 + 0.4 * f, m),
    )  # fmt: skip
    if measured.merged:
        model = refine(model, sizes, measured.merged)
    fitted = time.perf_counter()
    report(0.8, "Drawing synthetic rows")
    rows = plan.rows or total or min(max(round(model.total / (1 - plan.looking)), 1), MAX_ROWS)
    rng = np.random.default_rng()
    codes = model.sample(rows, rng, rounded=plan.rows_drawn == "even")
    text = {c.name: c.decode(codes[c.name], rng) for c in project.schema.columns}
    seconds = {"fit": fitted - start, "sample": time.perf_counter() - fitted}
    looking = None
    if held is not None:
        report(0.9, "Looking at the rows held out")
        looked.limit = curator.spending.rho  # never more than the release, whose ρ is then the larger one
        left = replace(curator.budget, rho=looked.limit)
        looking = look(project, Table(project.schema, codes, rows), held, left, looked)
    report(1.0, "Done")
    return Release(
        project, curator.budget, frame, measured, model, codes, text, rows, curator.spending, seconds, looking=looking
    )


def _parts(plan: Plan, table: Table, total: int | None) -> tuple[Table, Table | None]:
    """The rows the release is made from and those held out, at most k of a person."""
    rest, held, size = table, None, held_rows(plan, total)
    if plan.looking:
        rest, held = split(table, plan.looking, size or None if plan.person is None else None)
    if plan.person is None:
        return rest, held
    k = plan.rows_per_person
    kept = bounded(rest, k, None if total is None else total - size)
    return kept, None if held is None else bounded(held, k)


def refuse_guessed(schema: Schema) -> None:
    """Raise :class:`SchemaError` if a guess read off the data has not been confirmed."""
    if schema.unconfirmed:
        guesses = [f"{c.name}: {', '.join(c.guessed)}" for c in schema.guessed]
        guesses += [f"{c.name}: left out" for c in schema.left_out if not c.confirmed]
        listed = "; ".join(guesses[:5])
        raise SchemaError(
            f"the schema holds guesses read off the private data ({listed}); confirm or replace them on the Data page "
            '(or rename "guessed" to "confirmed" in the project file once you have checked that they are public)',
            columns=list(schema.unconfirmed),
        )


@dataclass(frozen=True)
class Released:
    """A release read back from its folder."""

    facts: dict[str, Any]
    project: Project
    model: GraphicalModel
    table: Table

    @property
    def separations(self) -> tuple[Separation, ...]:
        """The frame's separations."""
        return tuple(Separation.from_json(s) for s in self.facts["separations"])

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The measured cliques."""
        return tuple(tuple(c) for c in self.facts["cliques"])


def load_release(folder: str | Path) -> Released:
    """Read a release folder back; raises :class:`ProjectError` if it is not one."""
    folder = Path(folder)
    try:
        facts = json.loads((folder / "release.json").read_text("utf-8"))
        project = Project.from_json(facts["project"])
        model = GraphicalModel.load(folder / "model.npz")
    except (OSError, ValueError, KeyError, TypeError, EspalierError) as error:
        raise ProjectError(f"{folder} is not a release folder, or is damaged: {error}", path=str(folder)) from None
    try:
        read = read_released(folder / "synthetic.csv", [defuse(name) for name in project.schema.names])
        columns = {restore(n): TextColumn(tuple(map(restore, c.values)), c.codes) for n, c in read.columns.items()}
        table = Table.encode(TextTable(columns, read.rows, read.source), project.schema)
    except TableError as error:
        raise ProjectError(f"{folder}: {error}", path=str(folder)) from None
    return Released(facts, project, model, table)
