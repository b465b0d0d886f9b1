"""One release of the session: started once, in a job; kept with its files."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from core.privacy.budget import epsilon_of
from core.project import Project
from core.tables.table import Table
from pages.parts.session import Made, Session, Spent

Report = Callable[[float, str], None]


def start(state: Session, share: float, rho: float, delta: float) -> None:
    """Spend the budget of the open project on the open table, ``share`` of its rows kept back for testing.

    ``rho`` and ``delta`` are what was agreed to, for the rows that are left.
    """
    project = state.project
    if project is None or state.text is None or state.job is not None:
        return
    table, began = state.table(), threading.Event()
    plan, number = project.plan, state.releases + 1
    bill = Spent(state.tables, rho, delta, plan.neighbors, plan.rows_per_person)

    def done(made: Made) -> None:
        spent = made.release.spending.rho
        if state.made is not None:
            state.earlier.append(state.made)
        state.made, state.releases, state.findings = made, number, {}
        state.spent.append(Spent(bill.table, spent, made.release.budget.delta, plan.neighbors, plan.rows_per_person))

    def ended(reason: str) -> None:
        if not began.is_set():
            state.trouble["release"] = f"{reason}. Nothing was read and nothing is spent"
            return
        state.trouble["release"] = f"{reason}. What had been drawn counts as spent, at most the whole ε asked for"
        state.spent.append(Spent(bill.table, rho, delta, plan.neighbors, plan.rows_per_person, complete=False))

    state.start("release", lambda report: _make(project, table, share, number, began, report), done, ended)


def _make(project: Project, table: Table, share: float, number: int, began: threading.Event, report: Report) -> Made:
    from core.report import render

    holdout = None
    if share:
        from core.diagnostics import split_holdout

        table, holdout = split_holdout(table, share, np.random.default_rng())
    from core.release import release

    def told(fraction: float, message: str) -> None:
        report(0.95 * fraction, message)
        began.set()  # from here on something may have been drawn

    made = release(project, table, told)
    report(0.96, "Writing the files")
    facts = made.to_json()
    files = {
        "synthetic.csv": made.csv().encode(),
        "release.json": (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode(),
        "project.json": project.dumps().encode(),
        "report.html": render(facts).encode(),
        "model.npz": _model(made),
    }
    return Made(number, made, files, table, holdout)


def _model(made: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        made.model.save(path)
        return path.read_bytes()


def total(state: Session) -> tuple[float, float, float] | None:
    """ρ, ε and δ of all releases of the open table together; None if they speak of different units of privacy."""
    mine = [s for s in state.spent if s.table == state.tables]
    if len({(s.neighbors, s.rows_per_person) for s in mine}) != 1:
        return None
    rho, delta = sum(s.rho for s in mine), min(s.delta for s in mine)
    return rho, epsilon_of(rho, delta), delta
