"""Procedure of a plan: describe the schema, test the drawing, buy regressions, and fit the method. A preview runs it
without rows, and a release runs it on the private rows. Both use this code, so they agree on every draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from espalier.core.analysis.bought_regressions import Regressed, regressed
from espalier.core.analysis.drawing import Test, tested
from espalier.core.analysis.planned_analyses import Analysed, analysed
from espalier.core.methods import Fitted, Frame, fit
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.bought_schema import Part, left, prices
from espalier.core.privacy.curator import Curator, Impossible
from espalier.core.privacy.spending import Spending
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project


class Rows(Protocol):
    """Rows of a procedure: no rows for a preview, the private rows for a release."""

    @property
    def schema_spending(self) -> Spending:
        """Draws that bought the schema."""
        ...

    def describe(self, project: Project, parts: Sequence[Part]) -> Project:
        """Pay for ``parts`` of the schema and return the project with them."""
        ...

    def curator(self, project: Project, budget: Budget, impossible: Impossible) -> Curator:
        """Return the curator of the described rows, which may spend ``budget``."""
        ...


@dataclass(frozen=True)
class Carried:
    """Results of a procedure: the described project, the curator with its draws, tests, the fit and regressions."""

    project: Project
    curator: Curator
    tests: tuple[Test, ...]
    fitted: Fitted
    regressions: tuple[Regressed, ...] = ()
    analyses: tuple[Analysed, ...] = ()


def carry_out(project: Project, budget: Budget, frame: Frame, rows: Rows, report: Report = silent) -> Carried:
    """Spend ``budget`` on ``rows``: first on the schema, the test of the drawing, analyses and regressions.

    The method divides the rest, inside ``frame``. Raises :class:`EspalierError` for a conflict or a plan that
    is too large.
    """
    described = rows.describe(project, prices(project, budget))
    impossible = described.constraints.masks(described.schema, described.plan.max_cells)
    curator = rows.curator(described, left(budget, rows.schema_spending), impossible)
    with (
        tested(curator, described) as tests,
        analysed(curator, described) as analyses,
        regressed(curator, described) as regressions,
    ):
        fitted = fit(curator, described, frame, report)
    planned = tuple(one.regressed for one in analyses if one.regressed is not None)
    return Carried(described, curator, tests, fitted, (*regressions, *planned), analyses)
