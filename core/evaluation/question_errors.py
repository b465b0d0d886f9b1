"""Errors of the synthetic answers to the project's questions and counts. A count is compared like a column.

The comparison reads every real row, so it is not private.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.privacy.question_recipes.recipes import answers
from espalier.core.project.file import Project
from espalier.core.project.question_types import Count
from espalier.core.tables.source import Source
from espalier.core.tables.table import Table


@dataclass(frozen=True)
class Answered:
    """Number of rows that meet a question, in the real table and in the synthetic table scaled to the same size."""

    name: str
    real: float
    synthetic: float


@dataclass(frozen=True)
class CountError:
    """Number of rows with each value of a count in the real and the scaled synthetic table, and their total variation
    distance (0 means equal).
    """

    name: str
    real: tuple[float, ...]
    synthetic: tuple[float, ...]
    tv: float


@dataclass(frozen=True)
class QuestionErrors:
    """All questions and counts of a project."""

    questions: tuple[Answered, ...]
    counts: tuple[CountError, ...]

    @property
    def worst(self) -> Answered | None:
        """Question with the largest difference between the two tables; `None` without questions."""
        return max(self.questions, key=lambda q: abs(q.real - q.synthetic), default=None)

    def to_json(self) -> Mapping[str, Any]:
        """Return the comparison in the form that the command line prints."""
        return asdict(self)


def asked_of(project: Project, real: Source, synthetic: Table) -> QuestionErrors | None:
    """Return the comparison; None if the project has no questions."""
    if not project.question_list:
        return None
    questions, counts = project.question_list.resolve(project.schema)
    sizes, scale = project.schema.sizes, real.rows / max(synthetic.rows, 1)
    found = [answers(table, questions, counts, sizes) for table in (real, synthetic)]
    told = tuple(
        Answered(q.name, float(a), scale * float(b))
        for q, a, b in zip(questions, *(x.tolist() for x in found), strict=True)
    )
    held = []
    for count in counts:
        one, other = (_spread(count, table) for table in (real, synthetic))
        other = other * scale
        tv = 0.5 * float(np.abs(one - other).sum()) / max(real.rows, 1)
        held.append(CountError(count.name, tuple(one.tolist()), tuple(other.tolist()), tv))
    return QuestionErrors(told, tuple(held))


def _spread(count: Count, table: Source) -> NDArray[np.float64]:
    """Return the number of rows with each value of a count."""
    parts = [np.bincount(count.values(codes), minlength=count.size) for codes in table.batches()]
    return np.asarray(np.sum(parts, axis=0, dtype=np.float64))
