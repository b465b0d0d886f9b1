"""Data that a bought regression needs (rows in a category, spread of a number), computed before anything is spent."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from espalier.core.analysis.bought_regressions import QUANTILE, Regressed
from espalier.core.errors import GraphError, ProjectError
from espalier.core.graph.adjustment import Effect, checked
from espalier.core.methods import Frame
from espalier.core.privacy.regression_sums import ONE, OTHER, OUTCOME
from espalier.core.project.analyses import PlannedCounts
from espalier.core.project.file import Project
from espalier.core.project.regressions import centre_and_half
from espalier.core.project.schema import Schema


@dataclass(frozen=True)
class Need:
    """Minimum data in ``column`` for a bounded interval in a regression.

    ``least`` counts rows in each category, or is the standard deviation of a number. ``even`` is the same figure for
    evenly spread values. A rare event needs more.
    """

    regression: str
    column: str
    kind: str
    least: float
    even: float

    @property
    def met(self) -> bool:
        """True if evenly spread values would suffice."""
        return self.least <= self.even

    @property
    def sentence(self) -> str:
        """Sentence that states the need."""
        if self.kind == "category":
            return f"{self.regression}: each category of {self.column} needs about {self.least:,.0f} complete rows."
        return f"{self.regression}: {self.column} needs a standard deviation of about {self.least:.3g}."

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**vars(self), "sentence": self.sentence}


def needs(bought: Iterable[Regressed], schema: Schema, rows: int) -> Iterator[Need]:
    """Yield the needs of rehearsed regressions, for a table of ``rows`` rows."""
    for one in bought:
        sigma = _sigma(one)
        for block in one.design.blocks:
            if not block.products:
                lines = block.flat / ONE
                counts = np.linalg.inv(np.vstack([lines.T, np.ones(len(lines))]))[:, :-1]
                noise = sigma * float(np.sqrt((counts**2).sum(axis=1)).max())
                name = " × ".join(block.columns)
                yield Need(one.regression.name, name, "category", QUANTILE * noise, rows / len(lines))
            elif block.size == 1:
                column = schema[block.columns[0]]
                half = centre_and_half(column.middles[: column.values].tolist())[1]
                least = half * math.sqrt(QUANTILE * sigma / rows)
                yield Need(one.regression.name, column.name, "number", least, half / math.sqrt(3))


def _sigma(one: Regressed) -> float:
    """Return the noise, in rows, of a product of two scores, in the moments or the last curvature as applicable."""
    by = {answer.what.split()[0]: answer.sigma for answer in one.answers}
    return by.get("curvature", by["moments"] * OUTCOME / OTHER)


def _check_adjustment(project: Project, analysis: PlannedCounts, adjust: Iterable[str]) -> None:
    """Raise :class:`ProjectError` unless the drawing makes this adjustment valid."""
    treatment, outcome = (text.partition("=")[0] for text in (analysis.group, analysis.event))
    drawn = {name for edge in project.dag.edges for name in edge}
    if lacking := {treatment, outcome} - drawn:
        raise ProjectError(
            f"analysis {analysis.name!r}: an effect needs a drawing, and {sorted(lacking)[0]!r} is not drawn",
            key="analyses",
        )
    try:
        checked(Effect(project.dag, treatment, outcome), adjust)
    except GraphError as error:
        raise ProjectError(f"analysis {analysis.name!r}: {error}", key="analyses") from None


def check_fence(project: Project, frame: Frame) -> None:
    """Raise :class:`ProjectError` for a regression or analysis that relates columns that the frame keeps apart."""
    for analysis in project.analyses if project.plan.analysis_share else ():
        if isinstance(analysis, PlannedCounts) and analysis.adjust is not None:
            _check_adjustment(project, analysis, analysis.adjust)
        columns = analysis.columns(project.schema)
        if any(frame.forbids(a, b) for a, b in itertools.combinations(columns, 2)):
            raise ProjectError(
                f"analysis {analysis.name!r}: the fence keeps {' and '.join(columns)} apart, but this analysis would "
                "publish their association. Leave it out, or plan without the fence",
                key="analyses",
            )
    for one in project.plan.regressions if project.plan.regression_share else ():
        names = (one.target(project.schema)[0].name, *one.on)  # products of two predictors are published as well
        if apart := [pair for pair in itertools.combinations(names, 2) if frame.forbids(*pair)]:
            raise ProjectError(
                f"regression {one.name!r}: the fence keeps {' and '.join(apart[0])} apart, but this regression would "
                "publish their association. Leave one of them out, or plan without the fence",
                key="regressions",
            )
