"""Evaluation of a synthetic table on real rows. The results are not private, so they are for the curator only. There is
one module per question: :mod:`~espalier.core.evaluation.utility` (does a model trained on it work on real rows?),
:mod:`~espalier.core.evaluation.fidelity` (does it look like the real table?), :mod:`~espalier.core.evaluation.fairness`
(how does the outcome depend on protected features?). These figures are not paid for from a budget, so none of them may
appear in a release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from espalier.core.display import card
from espalier.core.errors import TableError
from espalier.core.evaluation.classifier import SEED
from espalier.core.evaluation.fairness import Fairness, Group, fairness_of
from espalier.core.evaluation.fidelity import ColumnFidelity, Fidelity, PairFidelity, fidelity_of
from espalier.core.evaluation.numeric_fidelity import numbers_of, why_no_numbers
from espalier.core.evaluation.question_errors import QuestionErrors, asked_of
from espalier.core.evaluation.separations import separations_of
from espalier.core.evaluation.utility import FIGURES as UTILITY_FIGURES
from espalier.core.evaluation.utility import ITSELF, Utility, predict, target_of, utility_of
from espalier.core.models.base import Model
from espalier.core.privacy.contribution import check_fits
from espalier.core.project.file import Project
from espalier.core.tables.source import Source
from espalier.core.tables.table import Table

if TYPE_CHECKING:
    from espalier.core.progress import Report

__all__ = [
    "ColumnFidelity",
    "Evaluation",
    "Fairness",
    "Fidelity",
    "Group",
    "Model",
    "PairFidelity",
    "Utility",
    "evaluate",
    "some_rows",
    "split_holdout",
    "target_of",
]

MOST_ROWS = 1_000_000
"""Maximum number of rows that classifiers and fairness use from a table that is read in place."""


@dataclass(frozen=True)
class Evaluation:
    """All results of :func:`evaluate`. Everything was computed on real rows.

    ``tested_on`` names the rows on which the classifiers were tested: "holdout" or "the table itself". ``utility`` and
    ``fairness`` describe the first target, ``further`` the plan's further targets. ``fairness`` is None if roles are
    missing; ``reasons`` then states this. ``asked`` compares the answers to the project's questions; None if the
    project has none. ``numbers`` compares numeric columns as numbers (`espalier.core.evaluation.numeric_fidelity`); if
    it is None, ``reasons`` states why. ``drawn`` is the number of rows that the classifiers and ``fairness`` read at
    random from a table read in place; None if they read all.
    """

    tested_on: str
    utility: Utility
    fidelity: Fidelity
    fairness: Fairness | None
    further: tuple[Utility, ...] = ()
    reasons: dict[str, str] = field(default_factory=dict)
    asked: QuestionErrors | None = None
    numbers: dict[str, Any] | None = None
    drawn: int | None = None
    separations: tuple[dict[str, Any], ...] = ()
    looked_at_real_data: bool = field(default=True, init=False)

    def _repr_html_(self) -> str:
        facts = self.to_json()
        rows = [
            (part, name, f"{value:.4g}")
            for part in ("tstr", "fidelity", "numbers", "fairness")
            for name, value in (facts[part] or {}).items()
            if isinstance(value, float)
        ]
        said = ["Confidential: computed on real rows. Do not share.", f"Models were tested on {self.tested_on}."]
        return card("Diagnostics", said, ("of", "figure", "value"), rows)

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``espalier evaluate``. A null figure comes with its ``…_reason``."""
        return {
            "private": False,
            "tested_on": self.tested_on,
            **({"random_rows": self.drawn} if self.drawn is not None else {}),
            "tstr": self.utility.to_json(),
            **({"tstr_further": [one.to_json() for one in self.further]} if self.further else {}),
            "fidelity": self.fidelity.to_json(),
            "fairness": None if self.fairness is None else self.fairness.to_json(),
            **({"separations": list(self.separations)} if self.separations else {}),
            **({"asked": self.asked.to_json()} if self.asked else {}),
            "numbers": self.numbers,
            **{f"{name}_reason": why for name, why in self.reasons.items()},
            "looked_at_real_data": self.looked_at_real_data,
        }


def evaluate(
    project: Project,
    real: Source,
    synthetic: Table,
    *,
    model: Model | None = None,
    holdout: Table | None = None,
    report: Report | None = None,
) -> Evaluation:
    """Compare ``synthetic`` with ``real``, the table from which it was released. This is not private, because it reads
    every real row, including those beyond the plan's row limit per person.

    Classifiers for every target of the plan are tested on ``holdout`` if it is given, else on ``real`` itself; fidelity
    and conditional mutual information always compare with ``real``. ``model`` is the released graphical model, for its
    exact conditional mutual information. ``report(fraction, message)`` reports progress; if it raises an exception, the
    evaluation is cancelled. The same arguments always give the same figures. Raises :class:`TableError` for a table
    without rows or with a different schema.

    For a table read in place, fidelity and questions use counts of all its rows. Classifiers and fairness read
    `MOST_ROWS` random rows of a local file. Database rows stay in the database, so these figures are None, with a
    reason.
    """
    for what, table in {"real table": real, "synthetic table": synthetic, "hold-out": holdout}.items():
        if table is not None:
            _check(project, table, f"the {what}")
    report = report or _silent
    if real.counts_only:
        return _of_counts(project, real, synthetic, report)
    everything, real = real, some_rows(real)
    others = list(project.plan.weights)[1:]
    steps = [0.6 * k / (len(others) + 1) for k in range(len(others) + 2)]
    predictions = predict(project, real, synthetic, holdout, _part(report, 0.0, steps[1]))
    used = utility_of(predictions)
    further = [
        utility_of(predict(project, real, synthetic, holdout, _part(report, low, high), target))
        for target, low, high in zip(others, steps[1:], steps[2:], strict=False)
    ]
    report(0.6, "Scoring the models")
    fair = fairness_of(project, real, synthetic, model, predictions, _part(report, 0.65, 0.75))
    apart = separations_of(project, real, synthetic, model, _part(report, 0.75, 0.8))
    looks = fidelity_of(everything, synthetic, _part(report, 0.8, 1.0))
    report(1.0, "Done")
    reasons = {} if fair else {"fairness": _missing_roles(project)}
    if why := why_no_numbers(project, real, synthetic, holdout):
        where = "the table is read in place, in bins; to compare numbers, release from a file with fewer rows"
        reasons["numbers"] = why if real is everything else where
    return Evaluation(
        predictions.tested_on,
        used,
        looks,
        fair,
        tuple(further),
        reasons,
        asked_of(project, everything, synthetic),
        numbers_of(project, real, synthetic, holdout),
        None if real is everything else real.rows,
        tuple(apart),
    )


def _of_counts(project: Project, real: Source, synthetic: Table, report: Report) -> Evaluation:
    """Evaluate from counts and sums alone, for a database from which no rows are read."""
    why = "this figure needs rows, but the rows of a database stay in the database"
    unknown = dict.fromkeys(UTILITY_FIGURES, why)
    used, *further = (
        Utility(t, ITSELF, 0, reasons=unknown) for t in [target_of(project), *[*project.plan.weights][1:]]
    )
    looks = fidelity_of(real, synthetic, report)
    reasons = {"fairness": why, "numbers": why}
    return Evaluation(ITSELF, used, looks, None, tuple(further), reasons, asked_of(project, real, synthetic))


def some_rows(source: Source) -> Table:
    """Return all rows of a table in memory, or at most `MOST_ROWS` random rows of any other table (fixed seed)."""
    return source.sample(MOST_ROWS, np.random.default_rng(SEED))


def split_holdout(table: Table, share: float, rng: np.random.Generator) -> tuple[Table, Table]:
    """Return (rest, holdout). A random ``share`` of the rows is set aside before a release, and each part keeps the
    table's order. The holdout provides unbiased test rows, which are then missing from the release. Each part gets at
    least one row; raises :class:`TableError` if ``share`` is not between 0 and 1 or the table has fewer than two rows.
    """
    if not 0 < share < 1:
        text = f"the holdout's share ({share:g}) must lie strictly between 0 and 1"
        raise TableError(text, share=share)
    if table.rows < 2:
        raise TableError("a holdout needs a table of at least two rows", rows=table.rows)
    size = min(max(round(share * table.rows), 1), table.rows - 1)
    held = np.zeros(table.rows, dtype=np.bool_)
    held[rng.choice(table.rows, size, replace=False)] = True
    return table.take(~held), table.take(held)


def _check(project: Project, table: Source, what: str) -> None:
    if table.rows == 0:
        raise TableError(f"{what} has no rows, so there is nothing to evaluate")
    check_fits(project, table, what, figures=True)


def _silent(fraction: float, message: str) -> None:
    """Ignore progress."""


def _part(report: Callable[[float, str], None], low: float, high: float) -> Report:
    """Return a function that reports the progress of a step that covers ``low`` to ``high`` of the whole."""
    return lambda fraction, message: report(low + (high - low) * fraction, message)


def _missing_roles(project: Project) -> str:
    lacking = [role for role in ("outcome", "protected") if not getattr(project.roles, role)]
    return f"the project gives no column the role {' or '.join(lacking)}"
