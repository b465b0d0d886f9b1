"""What is handed over: the synthetic table, the model, the accounting, the report; and how a folder of it is read.

``release.json`` and ``report.html`` hold no figure computed on real rows outside the budget.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from espalier import __version__
from espalier.core.analysis.drawing import Test, test_facts
from espalier.core.analysis.drawing_test import Tested
from espalier.core.analysis.noisy_counts import COUNTS, NoisyCounts
from espalier.core.display import card
from espalier.core.evaluation.private.figures import PrivateEvaluation
from espalier.core.ledger.archive import MODEL
from espalier.core.methods import Fitted, Frame, method_of
from espalier.core.models.base import Codes, Model
from espalier.core.planning.hierarchies import ToldApart
from espalier.core.planning.preview import error_bounds_of
from espalier.core.privacy.accounting import Budget, round_up
from espalier.core.privacy.curator import Spending
from espalier.core.privacy.draws import Draw
from espalier.core.privacy.partitions import epsilon_beside
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project
from espalier.core.release.files import copy_files, save_files
from espalier.core.release.output import WHOLE, write_into, write_texts, write_whole
from espalier.core.release.question_facts import question_facts
from espalier.core.tables.catalogue import TRUSTED
from espalier.core.tables.consistency import violations
from espalier.core.tables.destination import Destination
from espalier.core.tables.released import csv_text
from espalier.core.tables.snapshot import Snapshot
from espalier.core.tables.table import Table

if TYPE_CHECKING:
    from espalier.core.ledger.account import Reservation
    from espalier.core.planning.verdict import Verdict

PROMISES = (
    "The figures are for this release alone. Another release from the same people adds to them: ρ adds up.",
    "Whoever made this release declares the schema (column names, categories, bin edges) to be public.",
    "That the table has at least one row is public.",
)
ENFORCED = (
    "The protected unit is one person, with all their rows, however many: of each person in the column {person!r} at "
    "most {k} were kept, chosen at random before anything was counted. Two spellings of a person count as two people."
)
EVEN = (
    "The rows are spread over the model's cells as evenly as whole numbers allow. So the table is closer to the model "
    "than independent rows would be, and has less variance than they have: whoever combines several tables drawn from "
    "one model must not take their spread for that of independent samples."
)
SHRUNK = (
    "Where noise may explain an association between two columns, the model believes that much less of it. So the rows "
    "err less on average, and a weak association shows weaker in them than it is. Copies and intervals rest on the "
    "counts."
)
FILLED = (
    "The table that was counted was filled with invented rows or cut at random to the declared {rows:,} rows; how many "
    "rows there really were is confidential."
)


@dataclass(frozen=True)
class Release:
    """A finished release. Everything in it is differentially private or public.

    ``codes`` are the synthetic rows as codes, ``table`` the same rows as text, one list per column. ``seconds`` are
    running times of what came after the noise: the fit and the sampling. What reads the rows is not timed.
    ``warnings`` is what the plan was warned of, for the public number of rows. ``reservation`` is what a ledger set
    aside for it (None: it is not recorded in one), ``ledger_trouble`` what is to be said if the ledger could not be
    told that it was made. ``copies`` are what it might have been (`espalier.core.analysis.copies`), each a model and
    codes; ``drawing`` is what the test of the drawing found, ``effect`` what `espalier.core.report.effect` says of the
    plan's treatment. ``date`` is the day it was made, in UTC. Of more than a million rows ``codes`` and ``table`` hold
    only some, and ``whole`` all, as codes on disk while somebody holds the release (`espalier.core.release.output`).
    """

    project: Project
    budget: Budget
    plan_frame: Frame
    fitted: Fitted
    model: Model
    codes: Codes
    table: dict[str, list[str]]
    rows: int
    spending: Spending
    seconds: dict[str, float]
    warnings: tuple[str, ...] = ()
    private_evaluation: PrivateEvaluation | None = None
    reservation: Reservation | None = None
    ledger_trouble: str = ""
    copies: tuple[tuple[Model, Codes], ...] = ()
    whole: Snapshot | None = None
    drawing: tuple[tuple[Test, Tested], ...] = ()
    effect: Mapping[str, Any] | None = None
    apart: tuple[ToldApart, ...] = ()
    relation: str | None = None
    """What the catalogue says the relation is that was read (`espalier.core.tables.catalogue`); None for files."""
    verdict: Verdict | None = None
    """The plan's verdict before anything was spent; None where no number of rows was public or declared."""
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())

    @property
    def shown(self) -> int:
        """How many of the rows are in memory, and in ``synthetic.csv``."""
        return len(next(iter(self.codes.values())))

    @cached_property
    def synthetic(self) -> Table:
        """The rows in memory as a table: their codes, and the numbers as ``synthetic.csv`` has them (days of dates, NaN
        where a cell is empty)."""
        schema = self.project.schema
        values = {c.name: c.numbers(self.table[c.name]) for c in schema.columns if c.kind == "numeric"}
        return Table(schema, self.codes, self.shown, values=values)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The pairs of columns that the model links: the graph that the frame was kept in."""
        return self.fitted.edges

    def _repr_html_(self) -> str:
        s, names = self.spending, list(self.table)
        said = [f"{self.rows:,} synthetic rows; spent ρ = {round_up(s.rho)}. Safe to share.", *self.warnings]
        rows = zip(*(self.table[name][:5] for name in names), strict=True)
        return card(f"Release of {self.project.name}: {method_of(self.project.plan).title}", said, names, rows)

    @property
    def frame(self) -> Any:
        """The synthetic rows as a pandas data frame, cells as text."""
        import pandas as pd

        return pd.DataFrame(self.table)

    def to_json(self) -> dict[str, Any]:
        """``release.json``."""
        s, plan = self.spending, self.project.plan
        method = method_of(plan)
        project = self.project.to_json()
        project["plan"] = {**project["plan"], "fair": method.fenced(plan)}
        return {
            "format": "espalier-release/1",
            "espalier": __version__,
            "project": project,
            "method": plan.method,
            "method_title": method.title,
            "private": True,
            "spent": {
                "epsilon": epsilon_beside(s.rho, self.budget.delta, [s.delta] if s.delta else []),
                "delta": self.budget.delta,
                "rho": s.rho,
                "neighbors": plan.neighbors,
                "rows_per_person": plan.rows_per_person,
                "person": plan.person,
            },
            "unit": self.project.unit_facts(),
            "asked": {"epsilon": self.budget.epsilon, "delta": self.budget.delta, "rho": self.budget.rho},
            "selected": list(self.fitted.features),
            "refused": list(self.plan_frame.refused),
            "edges": [list(e) for e in self.edges],
            "cliques": [list(c) for c in self.fitted.cliques],
            "separations": [
                {**x.to_json(), "holds": (kept := self.model.answers(x)) != "not promised", "how": kept}
                for x in self.plan_frame.separations
            ],
            **self._schema_bought(),
            "measurements": [_measurement(d) for d in s.draws if d.kind not in ("choice", "schema")],
            "bounds": error_bounds_of(s.draws, self.model.total, plan).to_json(),
            **({} if self.verdict is None else {"verdict": self.verdict.to_json()}),
            **self.fitted.facts(self.project),
            **question_facts(self.fitted, self.model, self.codes, self.shown),
            "choices": [_choice(d) for d in s.draws if d.kind == "choice"],
            "looking": None if self.private_evaluation is None else self.private_evaluation.to_json(),
            **self._constraints(),
            "rows": self.rows,
            **({} if self.whole is None else {"rows_shown": self.shown}),
            "date": self.date,
            "fit": dict(self.model.facts()),
            "model": None if self._dumped is None else MODEL,
            "noisy_counts": None if self._counted is None else COUNTS,
            "copies": len(self.copies),
            **({"test_drawing": test_facts(self.drawing)} if plan.test_drawing else {}),
            **({} if self.effect is None else {"effect": dict(self.effect)}),
            "seconds": {step: round(s, 2) for step, s in self.seconds.items()},
            "warnings": list(self.warnings),
            **({} if self.relation is None else {"relation": self.relation}),
            "promises": [
                *promises(self.project),
                *([SHRUNK] if getattr(self.fitted, "shrunk", False) else []),
                *([TRUSTED[self.relation]] if self.relation in TRUSTED else []),
            ],
            "ledger": self.reservation.facts() if self.reservation else None,
        }

    def _schema_bought(self) -> dict[str, Any]:
        """Every part of the schema that was bought; nothing where all of it was declared."""
        bought = [
            {
                "column": (d.columns or ("",))[0],
                "what": d.what,
                "pool": d.pool,
                "rho": d.rho,
                "delta": d.delta,
                "scale": d.scale,
                "sensitivity": d.sensitivity,
            }
            for d in self.spending.draws
            if d.kind == "schema"
        ]
        apart = {"told_apart": [one.to_json() for one in self.apart]} if self.apart else {}
        return {**({"schema_bought": bought} if bought else {}), **apart}

    def _constraints(self) -> dict[str, Any]:
        """Every constraint with how many of the synthetic rows break it; nothing where there is none."""
        if not self.project.constraints:
            return {}
        found = violations(self.project.constraints, self.project.schema, self.table)
        return {
            "constraints": {
                "violations": sum(n for _, n in found),
                "each": [{"constraint": str(c), "violations": n} for c, n in found],
            }
        }

    def csv(self) -> str:
        """``synthetic.csv``'s text."""
        return csv_text(self.project.schema, self.table)

    @cached_property
    def files(self) -> dict[str, bytes]:
        """What is handed over, by file name: the table, the accounting, the project file, the report, the model."""
        from espalier.core.report.croissant import card
        from espalier.core.report.page import render

        facts, model, table = self.to_json(), self._dumped, self.csv().encode()
        return {
            "synthetic.csv": table,
            "release.json": (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode(),
            "project.json": (json.dumps(facts["project"], indent=1, ensure_ascii=False) + "\n").encode(),
            "report.html": render(facts).encode(),
            "croissant.json": card(facts, table),
            **({} if model is None else {MODEL: model}),
            **({} if self._counted is None else {COUNTS: self._counted.dumps()}),
            **dict(copy_files(self.project, self.copies)),
        }

    @cached_property
    def _dumped(self) -> bytes | None:
        """The model's file, None where it must not be written."""
        return self.model.dumps()

    @cached_property
    def _counted(self) -> NoisyCounts | None:
        """The noisy counts of the fit, for copies made later."""
        return NoisyCounts.of(self.fitted)

    def save(self, folder: str | Path, kind: Literal["csv", "parquet"] = "csv", report: Report = silent) -> None:
        """Write the :attr:`files` into a new or empty folder; all of them or nothing.

        A file of `espalier.core.release.output.WHOLE` joins them where ``synthetic.csv`` does not hold all rows, or
        where ``kind`` is Parquet. It is written batch by batch, and no ledger knows its hash.
        """
        more: dict[str, Callable[[Path], None]] = {}
        if self.whole is not None:
            more = {WHOLE[kind]: partial(write_whole, self.project, self.whole, report=report)}
        elif kind == "parquet":
            more = {WHOLE[kind]: partial(write_texts, [self.table], self.project.schema, self.rows)}
        save_files(self.files, folder, more)

    def write_into(self, place: Destination, report: Report = silent) -> None:
        """Write all rows into a new table of an engine, in one transaction."""
        write_into(self.project, self.table if self.whole is None else self.whole, place, report)


def _measurement(d: Draw) -> dict[str, Any]:
    return {
        "columns": list(d.columns or ()),
        "pool": d.pool,
        "cells": d.cells,
        "rho": d.rho,
        "sigma": d.scale,
        "kind": d.kind,
        **({} if d.columns else {"what": d.what}),
    }


def _choice(d: Draw) -> dict[str, Any]:
    return {
        "what": d.what,
        "chosen": list(d.columns or ()),
        "candidates": d.candidates,
        "pool": d.pool,
        "rho": d.rho,
        "scale": d.scale,
        "sensitivity": d.sensitivity,
    }


def promises(project: Project) -> list[str]:
    """What is promised in addition to (ε, δ), and by whom."""
    plan = project.plan
    even = [EVEN] if plan.rows_drawn == "even" else []
    if plan.person is None:
        return [*PROMISES, project.unit_facts()["stated"], *even]
    filled = [FILLED.format(rows=plan.rows)] if plan.neighbors == "replace-one" else []
    return [*PROMISES, ENFORCED.format(person=plan.person, k=plan.rows_per_person), *filled, *even]
