"""Finished release: the synthetic table, the model, the accounting and the report.

``release.json`` and ``report.html`` contain no figure computed on real rows outside the budget.
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
from espalier.core.analysis.drawn_families import family_contradictions
from espalier.core.analysis.independence_test import Tested
from espalier.core.analysis.noisy_counts import COUNTS, NoisyCounts
from espalier.core.analysis.survival_table import survival_named
from espalier.core.dictionaries.writing import dictionary_csv, dictionary_json
from espalier.core.display import card
from espalier.core.evaluation.private.evaluation import PrivateEvaluation
from espalier.core.ledger.account import OTHER_FILES, TOO_LARGE
from espalier.core.ledger.archive import MODEL
from espalier.core.methods import Fitted, Frame, method_of
from espalier.core.models.base import Codes, Model
from espalier.core.planning.error_bounds import ErrorBounds, error_bounds_of
from espalier.core.planning.hierarchies import ToldApart
from espalier.core.privacy.accounting import Budget, round_up
from espalier.core.privacy.draws import Draw
from espalier.core.privacy.spending import Spending
from espalier.core.process_memory import MANY_CELLS, give_back
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project
from espalier.core.project.regressions import named
from espalier.core.project.schema import Schema
from espalier.core.release.files import copy_files, save_files
from espalier.core.release.link_strengths import link_strengths
from espalier.core.release.linked_tables import LinkedTables
from espalier.core.release.output import WHOLE, slices, write_into, write_texts, write_whole, write_whole_into
from espalier.core.release.question_facts import question_facts
from espalier.core.release.stat_output import STAT_FORMATS, StatFormat, write_stat
from espalier.core.statement import claims as statement
from espalier.core.statement import label, registry
from espalier.core.statement.keys import Signer
from espalier.core.tables.catalogue import TRUSTED
from espalier.core.tables.consistency import violations
from espalier.core.tables.destination import Destination
from espalier.core.tables.released import as_released, csv_bytes
from espalier.core.tables.snapshot import Snapshot
from espalier.core.tables.table import Table

if TYPE_CHECKING:
    from espalier.core.ledger.account import Reservation
    from espalier.core.planning.verdict import Verdict
    from espalier.core.release.unfinished import FolderJournal

TableFormat = Literal["csv", "parquet", "sav", "dta", "xpt"]
"""Formats of the released table. CSV is always written; one other format is written on request."""

PROMISES = (
    "These figures describe this release alone. Another release from the same people adds its ρ to them.",
    "The person who made this release declares the schema (column names, categories, bin edges) to be public.",
    "It is public that the table has at least one row.",
)
ENFORCED = (
    "The protected unit is one person with all their rows. At most {k} rows of each person in the column {person!r} "
    "were kept, chosen at random before anything was counted. Two spellings of a person count as two people."
)
LINKED = (
    "The protected unit is one person with all rows of both tables. The first {keep} visits of each person, in the "
    "order of {order!r}, were kept. Two spellings of a person count as two people."
)
LINKED_FILLED = (
    "Before counting, people were invented or left out at random to reach the declared number of {rows:,} people. "
    "The real number of people is confidential."
)
EVEN = (
    "The rows are spread over the model's cells as evenly as whole numbers allow. The table is therefore closer to the "
    "model than independent rows would be, and has less variance. If you combine several tables drawn from one model, "
    "do not treat their spread as that of independent samples."
)
SHRUNK = (
    "The model shrinks associations between two columns by the part that noise may explain. The rows are therefore "
    "more accurate on average, but a weak association appears weaker in them than it is. Copies and intervals use the "
    "counts, which are not shrunk."
)
SMOOTHED = (
    "Counts of two columns are smoothed along the values of ordered columns, over a length that the noisy counts show. "
    "A jump between neighbouring values may therefore appear smaller in the rows than it is."
)
FILLED = (
    "Before counting, rows were invented or left out at random to reach the declared number of {rows:,} rows. The real "
    "number of rows is confidential."
)


@dataclass(frozen=True)
class Release:
    """A finished release. Everything in it is differentially private or public.

    - ``codes``, ``table``: the synthetic rows as codes, and as text with one list per column. Above one million rows or
      20 million cells they contain the first `espalier.core.project.plan.rows_shown` rows; ``whole`` then holds all
      rows as codes on disk until the release is garbage-collected.
    - ``seconds``: running times of the fit and the sampling. Steps that read private rows are not timed.
    - ``warnings``: warnings of the plan, computed for the public number of rows.
    - ``reservation``: the reservation in a ledger; `None` for a release without a ledger. ``ledger_trouble``: the
      message to show if the ledger could not record the release.
    - ``copies``: copies of the release, each a model and codes (`espalier.core.analysis.copies`).
    - ``drawing``: results of the test of the drawing. ``effect``: the facts that
      `espalier.core.report.effect_section` renders. ``regressions``: the facts of each bought regression.
    - ``date``: the day of the release, in UTC.
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
    analyses: tuple[Mapping[str, Any], ...] = ()
    """Planned analyses with their intervals, and with promised and achieved half-widths."""
    regressions: tuple[Mapping[str, Any], ...] = ()
    apart: tuple[ToldApart, ...] = ()
    counted: int | None = None
    """Number of rows from which the release was made, if it is public."""
    storage: FolderJournal | None = None
    """Stored answers of a release without a ledger, until it is saved."""
    signer: Signer | None = None
    """Key that signs the statement; None for a release without a signature."""
    relation: str | None = None
    """Kind of the relation that was read, as named in its catalogue (`espalier.core.tables.catalogue`); `None` for
    files.
    """
    verdict: Verdict | None = None
    """Verdict on the plan before anything was spent; None if the number of rows was neither public nor declared."""
    tables: LinkedTables | None = None
    """Both tables of a linked release; ``table`` then contains the people with their first visit."""
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())

    @property
    def shown(self) -> int:
        """Number of rows in memory and in ``synthetic.csv``."""
        return len(next(iter(self.codes.values())))

    @cached_property
    def synthetic(self) -> Table:
        """Rows in memory as a table: codes, and the numbers of ``synthetic.csv`` (dates as days, empty cells as
        NaN).
        """
        schema = self.project.schema
        values = {c.name: c.as_released.numbers(self.table[c.name]) for c in schema.columns if c.kind == "numeric"}
        return Table(schema, self.codes, self.shown, values=values)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of columns that the model links directly; they respect the frame."""
        return self.fitted.edges

    def regression(self, name: str) -> Mapping[str, Any]:
        """Return a bought regression by its name, or by its outcome if only one has it; see ``release.json``."""
        found: Mapping[str, Any] = named(self.regressions, name)
        return found

    def survival(self, name: str) -> Mapping[str, Any]:
        """Return a planned survival table by its name, or by its event if only one has it; see ``release.json``."""
        return survival_named(self.analyses, name)

    def _repr_html_(self) -> str:
        s, names = self.spending, list(self.table)
        said = [f"{self.rows:,} synthetic rows; spent ρ = {round_up(s.rho)}. Safe to share.", *self.warnings]
        rows = zip(*(self.table[name][:5] for name in names), strict=True)
        return card(f"Release of {self.project.name}: {method_of(self.project.plan).title}", said, names, rows)

    @property
    def frame(self) -> Any:
        """Synthetic rows as a pandas data frame, with cells as text."""
        import pandas as pd

        return pd.DataFrame(self.table)

    def to_json(self) -> dict[str, Any]:
        """Return the facts of ``release.json``."""
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
                "epsilon": s.epsilon_at(self.budget.delta),
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
            "links": self._links,
            "separations": [
                {**x.to_json(), "holds": (kept := self.model.answers(x)) != "not promised", "how": kept}
                for x in self.plan_frame.separations
            ],
            **self._schema_bought(),
            "measurements": [_measurement(d) for d in s.draws if d.kind not in ("choice", "schema")],
            "bounds": self._bounds.to_json(),
            **({} if self.verdict is None else {"verdict": self.verdict.to_json()}),
            **self.fitted.facts(self.project),
            **family_contradictions(self.project, self.fitted),
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
            **({"counts_in_part": True} if self._counted is not None and self._counted.in_part else {}),
            "copies": len(self.copies),
            **({"test_drawing": test_facts(self.drawing)} if plan.test_drawing else {}),
            **({} if self.effect is None else {"effect": dict(self.effect)}),
            **({"analyses": [dict(one) for one in self.analyses]} if self.analyses else {}),
            **({"regressions": [dict(one) for one in self.regressions]} if self.regressions else {}),
            "seconds": {step: round(s, 2) for step, s in self.seconds.items()},
            "warnings": list(self.warnings),
            **({} if self.relation is None else {"relation": self.relation}),
            "promises": [
                *promises(self.project),
                *([SHRUNK] if getattr(self.fitted, "shrunk", False) else []),
                *([SMOOTHED] if getattr(self.fitted, "smoothed", False) else []),
                *([TRUSTED[self.relation]] if self.relation in TRUSTED else []),
            ],
            "ledger": self.reservation.facts() if self.reservation else None,
            "statement": statement.STATEMENT,
        }

    def _schema_bought(self) -> dict[str, Any]:
        """Return the bought parts of the schema; empty if the whole schema was declared."""
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
        """Return every constraint with the number of synthetic rows that violate it; empty without constraints."""
        if not self.project.constraints:
            return {}
        found = violations(self.project.constraints, as_released(self.project.schema), self.table)
        return {
            "constraints": {
                "violations": sum(n for _, n in found),
                "each": [{"constraint": str(c), "violations": n} for c, n in found],
            }
        }

    def csv(self) -> str:
        """Return the text of ``synthetic.csv``."""
        return csv_bytes(self.project.schema, self.table).decode()

    @cached_property
    def files(self) -> dict[str, bytes]:
        """Files of the release by name: the table, the accounting, the project file, the report, the model, copies.

        The statement comes last and contains the digests of all other files.
        """
        from espalier.core.report.croissant import card
        from espalier.core.report.page import render

        facts, model, claims = self._facts, self._dumped, self._claims
        csv = {} if self.tables is not None else {"synthetic.csv": csv_bytes(self.project.schema, self.table)}
        tables = csv if self.tables is None else self.tables.csv()
        files = {
            **tables,
            "release.json": (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode(),
            "project.json": (json.dumps(facts["project"], indent=1, ensure_ascii=False) + "\n").encode(),
            "report.html": render(facts, label.label(claims)).encode(),
            "croissant.json": card(facts, tables, claims),
            statement.LABEL: label.page(claims),
            statement.REGISTRY: registry.text(claims),
            **({} if model is None else {MODEL: model}),
            **({} if self._counted is None else {COUNTS: self._counted.dumps()}),
            **dict(copy_files(self.project, self.copies)),
        }
        return {**files, **self._sealed(statement.sealed(claims, files))}

    def _sealed(self, made: Mapping[str, Any]) -> dict[str, bytes]:
        """Return the file of a finished statement, and its signature if there is a key."""
        signed = {} if self.signer is None else {statement.SIGNATURE: self.signer.sign(made)}
        return {statement.STATEMENT: statement.text(made), **signed}

    @cached_property
    def _facts(self) -> dict[str, Any]:
        """Contents of ``release.json``, computed once, because its copies and intervals take time."""
        return self.to_json()

    @cached_property
    def _bounds(self) -> ErrorBounds:
        """Expected errors and bounds of the counts."""
        return error_bounds_of(self.spending.draws, self.model.total, self.project.plan)

    @cached_property
    def _links(self) -> list[dict[str, Any]]:
        """Strengths of the measured pairs, computed once."""
        return link_strengths(Table(self.project.schema, self.codes, self.shown), self.edges, self._bounds.marginals)

    @cached_property
    def _claims(self) -> dict[str, Any]:
        """Statement without the digests of the files."""
        held = () if self.private_evaluation is None else self.private_evaluation.draws
        signer = None if self.signer is None else self.signer.facts
        return statement.claims(self._facts, self.spending.draws, held, self.counted, signer)

    @cached_property
    def _dumped(self) -> bytes | None:
        """Contents of the model file; `None` if the model must not be written."""
        return self.model.dumps()

    @cached_property
    def _counted(self) -> NoisyCounts | None:
        """Noisy counts of the fit, for copies made later; `None` for a method that measures no marginals."""
        return NoisyCounts.of(self.fitted)

    def save(self, folder: str | Path, kind: TableFormat = "csv", report: Report = silent) -> None:
        """Write the :attr:`files` into a new or empty folder, all of them or none.

        If ``synthetic.csv`` does not contain all rows, or ``kind`` is Parquet, this also writes a file of
        `espalier.core.release.output.WHOLE` in batches. Ledgers do not record the hash of that file. An SPSS, Stata
        or SAS transport file contains the rows of ``synthetic.csv``. With such a file, or if the schema has labels, the
        folder also contains a dictionary.
        """
        more: dict[str, Callable[[Path], None]] = {}
        schema = self.project.schema
        if self.shown * len(schema.columns) > MANY_CELLS:
            give_back()
        if self.tables is not None:
            names = self.tables.texts if kind == "parquet" else ()
            more = {f"{name}.parquet": partial(self.tables.write_parquet, name) for name in names}
            self._save(folder, more)
            return
        if kind in STAT_FORMATS:
            more[f"synthetic.{kind}"] = partial(_write_stat, schema, self.table, kind)
        if kind in STAT_FORMATS or any(c.label or c.value_labels or c.unit or c.description for c in schema.columns):
            more["dictionary.json"] = partial(_write_text, dictionary_json(schema))
            more["dictionary.csv"] = partial(_write_text, dictionary_csv(schema))
        if self.whole is not None:
            whole = WHOLE["parquet" if kind == "parquet" else "csv"]
            more |= {whole: partial(write_whole, self.project, self.whole, report=report)}
        elif kind == "parquet":
            more |= {WHOLE[kind]: partial(write_texts, slices(self.table), self.project.schema, self.rows)}
        self._save(folder, more)

    def _save(self, folder: str | Path, more: Mapping[str, Callable[[Path], None]]) -> None:
        """Write everything, then delete the stored answers, which are no longer needed."""
        if self.storage is not None:
            sealed = (statement.STATEMENT, statement.SIGNATURE)  # rewritten if there are further files
            self.storage.about_to_write({name: data for name, data in self.files.items() if name not in sealed})
        save_files(self.files, folder, more, self._with_further)
        if self.storage is not None:
            self.storage.forget()
        if self.reservation is not None and self.ledger_trouble.startswith((TOO_LARGE, OTHER_FILES)):
            self.reservation.forget()

    def _with_further(self, further: Mapping[str, Mapping[str, Any]]) -> dict[str, bytes]:
        """Return the statement with the digests of files that were written after it."""
        made = statement.sealed(self._claims, self.files)
        return self._sealed({**made, "files": dict(sorted({**made["files"], **further}.items()))})

    def write_into(self, place: Destination, report: Report = silent) -> None:
        """Write all rows into a new table of an engine, in one transaction."""
        if self.whole is None:
            write_into(self.project, self.table, place, report)
        else:
            write_whole_into(self.project, self.whole, place, report)


def _write_text(text: str, path: Path) -> None:
    path.write_text(text, "utf-8")


def _write_stat(schema: Schema, table: Mapping[str, list[str]], kind: StatFormat, path: Path) -> None:
    write_stat(schema, table, path, kind)


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
    """Return the assumptions and promises that accompany (ε, δ)."""
    plan = project.plan
    even = [EVEN] if plan.rows_drawn == "even" else []
    if (link := project.linked) is not None:
        filled = [LINKED_FILLED.format(rows=plan.rows)] if plan.neighbors == "replace-one" else []
        return [*PROMISES, LINKED.format(keep=link.keep, order=link.order), *filled]
    if plan.person is None:
        return [*PROMISES, project.unit_facts()["stated"], *even]
    filled = [FILLED.format(rows=plan.rows)] if plan.neighbors == "replace-one" else []
    return [*PROMISES, ENFORCED.format(person=plan.person, k=plan.rows_per_person), *filled, *even]
