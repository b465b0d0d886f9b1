"""Results of a method that is not private. Nothing here is protected, and every file states this.

The results have no ε, no ledger entry and no model file, and cannot be shared as a release. Linkage and membership are
reported next to LID, which is uninformative by itself.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from espalier import __version__
from espalier.core.blurring.base import Rows
from espalier.core.blurring.notice import NOT_PRIVATE, NOT_PRIVATE_CSV
from espalier.core.blurring.registry import blurring_of
from espalier.core.display import in_order
from espalier.core.evaluation.marketing import gain_of
from espalier.core.methods import check_options
from espalier.core.progress import Report, part, silent
from espalier.core.project.file import Project
from espalier.core.release.files import save_files
from espalier.core.release.spend import refuse_guessed
from espalier.core.report.html import made_with
from espalier.core.statement import claims as statement
from espalier.core.tables.frames import as_table
from espalier.core.tables.released import csv_bytes
from espalier.core.tables.table import Table

FIGURES = {
    "linked": "Share of people re-identified by someone who knows their inputs",
    "linked_anonymized": "Share of people re-identified by someone who knows only their anonymised columns",
    "membership": "AUC of inferring membership in the table from the nearest row (0.5 is a coin toss)",
    "lid_inputs": "Interval disclosure (LID): share of people with an anonymised value within η of the real one",
    "lid_outcome": "Interval disclosure of the outcome",
    "alpha": "Share of the real row in each row (α)",
    "spread": "Ratio of the outcome's standard deviation to the real one (below 1, standard errors are too small)",
}
"""Figures of the disclosure in the order shown, linkage and membership first."""

SENTENCE = (
    "Someone who knows a patient's age, weight and illnesses can find that patient's row here, as in the real table. "
    "Protect this file like the real one."
)
"""Warning for clinicians."""


@dataclass(frozen=True)
class Blurred:
    """Blurred rows of real people: ``table`` as text, ``synthetic`` as codes and numbers.

    ``disclosure`` measures what they reveal. ``public`` is the gain for a public table, or `None` without a public
    table.
    """

    project: Project
    table: dict[str, list[str]]
    synthetic: Table
    disclosure: Mapping[str, Any]
    public: Mapping[str, Any] | None
    seconds: float
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.synthetic.rows

    def to_json(self) -> dict[str, Any]:
        """Return the facts of ``release.json``."""
        method = blurring_of(self.project.plan)
        return {
            "format": "espalier-release/1",
            "espalier": __version__,
            "private": False,
            "warning": NOT_PRIVATE,
            "project": self.project.to_json(),
            "method": method.name,
            "method_title": method.title,
            "spent": None,
            "asked": None,
            "ledger": None,
            "model": None,
            "selected": [],
            "refused": [],
            "edges": [],
            "cliques": [],
            "separations": [],
            "measurements": [],
            "choices": [],
            "rows": self.rows,
            "date": self.date,
            "disclosure": dict(self.disclosure),
            "public": self.public,
            "seconds": {"fit": round(self.seconds, 2)},
            "warnings": [f"{NOT_PRIVATE}.", SENTENCE],
            "promises": [],
        }

    @cached_property
    def files(self) -> dict[str, bytes]:
        """Files of the result by name. There is no model file, because it would contain real rows."""
        facts = self.to_json()
        files = {
            NOT_PRIVATE_CSV: csv_bytes(self.project.schema, self.table),
            "release.json": (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode(),
            "project.json": (json.dumps(facts["project"], indent=1, ensure_ascii=False) + "\n").encode(),
            "report-NOT-PRIVATE.html": render(facts).encode(),
        }
        made = statement.sealed(statement.not_private(facts, f"{NOT_PRIVATE}. {SENTENCE}"), files)
        return {**files, statement.STATEMENT: statement.text(made)}

    def save(self, folder: str | Path) -> None:
        """Write all of the :attr:`files`, or none, into a new or empty folder that only the user can open."""
        save_files(self.files, folder, mode=0o700)


def blurred(project: Project, data: Any, report: Report = silent, public: Any = None) -> Blurred:
    """Blur real rows with the plan's method, which is not private. Raises :class:`ProjectError` for a private method.

    ``public`` is a public table D′ with the same columns. The gain from adding the blurred rows to it is estimated by
    cross-validation on D′. Real rows affect this figure only through the blurred rows.
    """
    plan = project.plan
    method = blurring_of(plan)
    check_options(plan)
    method.check(project)
    project.need_unit()
    refuse_guessed(project)
    table = as_table(data, project.schema)
    public_table = None if public is None else as_table(public, project.schema)
    real = _numbers(table)
    start = time.perf_counter()
    report(0.0, "Reading the real rows")
    made, disclosure = method.blur(project, real, part(report, 0.0, 0.8))
    seconds = time.perf_counter() - start
    text = {
        c.name: c.write(made.numbers[c.name], made.codes[c.name])
        if c.name in made.numbers
        else c.decode(made.codes[c.name], np.random.default_rng())
        for c in project.schema.columns
    }
    synthetic = Table(project.schema, made.codes, len(next(iter(text.values()))), values=made.numbers)
    report(0.8, "Measuring the gain for the public table")
    gain = None if public_table is None else gain_of(project.schema, plan.target, synthetic, public_table)
    report(1.0, "Done")
    return Blurred(project, text, synthetic, disclosure, gain, seconds)


def _numbers(table: Table) -> Rows:
    numeric = [c.name for c in table.schema.columns if c.kind == "numeric"]
    return Rows(table.codes, {name: table.numbers(name) for name in numeric})


def shown(disclosure: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the description and the value of each figure of a disclosure, linkage and membership first."""
    out = []
    for key, what in FIGURES.items():
        value = disclosure[key]
        out.append((what, f"{value:.2f}" if key in ("membership", "alpha", "spread") else f"{value:.0%}"))
    return out


def _asked(told: Mapping[str, Any]) -> str:
    """Return the sentence about the mixture that the plan requested."""
    if told.get("alpha_given"):
        return f"The plan gives α = {told['alpha']:g}; η is {told['eta']:g} of the declared range."
    return f"The plan requests LID of at most {told['lid_asked']:.0%} at η = {told['eta']:g} of the declared range."


def _regression(told: Mapping[str, Any]) -> str:
    """Return a sentence about the regression behind the outcome and the reason for its choice. It is empty for a
    release of an earlier version.
    """
    if "regression" not in told:
        return ""
    errors = told.get("regression_errors", {})
    among = ", ".join(f"{name} {error:.2f}" for name, error in errors.items())
    chosen = f", chosen by cross-validation (error as a share of the variance: {among})" if among else ""
    outcome = escape(told["regression"] + chosen)
    return f" Method for the inputs: {escape(told['inputs'])}; for the outcome: {outcome}."


def render(facts: Mapping[str, Any]) -> str:
    """Return the report's HTML from the facts of ``release.json``. All names are escaped."""
    name = escape(facts["project"]["name"])
    rows = "".join(f"<tr><td>{escape(w)}</td><td>{escape(v)}</td></tr>" for w, v in shown(facts["disclosure"]))
    told, public = facts["disclosure"], facts["public"]
    gain = ""
    if public is not None:
        gain = (
            f"<p>Added to a public table of {public['rows']:,} rows, these rows reduce the mean squared error of a "
            f"random forest on it by {public['delta_mse']:.0%} (ΔMSE, five folds of the public table).</p>"
        )
    return in_order(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>NOT PRIVATE: {name}</title></head>\n'
        '<body style="font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto">'
        f"<h1>{escape(NOT_PRIVATE)}</h1>\n<p>{name}: {facts['rows']:,} rows, made on {escape(facts['date'])} by "
        f"{escape(facts['method_title'])}. {escape(SENTENCE)} It has no ε and no ledger entry.</p>\n"
        f"<h2>What the rows reveal</h2>\n<table>{rows}</table>\n"
        f"<p>{_asked(told)} "
        "LID measures whether a value is close to the real one, not whether a row can be traced to its person.</p>\n"
        f"<p>Anonymised: {escape(', '.join(told['anonymized']))}. Unchanged from the real row: "
        f"{escape(', '.join(told['untouched'])) or 'none'}.{_regression(told)}</p>\n"
        f"{gain}{made_with(facts)}</body></html>\n"
    )
