"""A further method, whose model is not graphical: every row that it draws is the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from espalier.core.graph.separations import Clique, Separation
from espalier.core.methods.base import Capabilities, Guidance, Method
from espalier.core.methods.frame import Frame
from espalier.core.methods.marginals import one_ways
from espalier.core.methods.select.allocation import BudgetSplit
from espalier.core.models.base import Answer, Codes
from espalier.core.models.graphical import Size
from espalier.core.privacy.curator import Curator
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project
from espalier.core.project.options import option


@dataclass(frozen=True)
class ToyOptions:
    """One option of each kind that a page can draw."""

    mood: str = option("calm", "Mood", choices={"calm": "Every row is alike.", "wild": "Every row is alike here too."})
    pace: str = option("slow", "Pace", choices={"slow": "one by one", "fast": "all at once"})
    turns: int = option(2, "Turns", low=1, high=9, whole=True, help="Number of turns.")
    limit: int | None = option(None, "Limit (blank: none)", low=1, high=500, whole=True, empty="no limit")
    waste: float = option(0.25, "Wasted share", low=0.0, high=0.5)
    heat: float = option(20.0, "Heat", low=0.5, high=90.0)
    loud: bool = option(False, "Loud")
    dance: int = option(1, "Dance steps", low=1, high=4, whole=True, only={"mood": "wild"})
    guard: bool = option(False, "Guards", fenced=True)


@dataclass(frozen=True)
class ConstantModel:
    """Every row has the most common value of each column."""

    values: Mapping[str, int]
    total: float

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.values)

    def sample(
        self,
        rows: int,
        rng: np.random.Generator,  # noqa: ARG002
        *,
        even: bool = False,  # noqa: ARG002
        report: Report | None = None,  # noqa: ARG002
    ) -> Codes:
        return {name: np.full(rows, value, dtype=np.int32) for name, value in self.values.items()}

    def answers(self, separation: Separation) -> Answer:  # noqa: ARG002
        return "by design"

    def facts(self) -> Mapping[str, Any]:
        return {"model": "constant"}

    def dumps(self) -> bytes | None:
        return None


@dataclass(frozen=True)
class Toy:
    """Toy method's result."""

    values: Mapping[str, int]
    total: float
    cliques: tuple[Clique, ...]
    features: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()

    def size(self, max_cells: int, further: tuple[Clique, ...] = ()) -> Size:  # noqa: ARG002
        count = len(self.values)
        return Size(count, count, 8 * count, 0.01, self.cliques[0], 1, ())

    def model(self, report: Report = silent) -> ConstantModel:  # noqa: ARG002
        return ConstantModel(self.values, self.total)

    def facts(self, project: Project) -> Mapping[str, Any]:  # noqa: ARG002
        return {"toys": len(self.values)}


def play(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Toy:  # noqa: ARG001
    """One-way counts; their largest cells become the row."""
    budget = BudgetSplit.of(project.plan, curator.budget, curator.sizes)
    counted = curator.measure(budget.split(1.0, one_ways(curator)), "one-way")
    rows = float(curator.rows or max(counted[0].values.sum(), 1.0))
    values = {m.clique[0]: int(np.argmax(m.values)) for m in counted}
    return Toy(values, rows, tuple(m.clique for m in counted))


TOY = Method(
    name="toy",
    title="Toy",
    summary="one row, repeated",
    fit=play,
    guidance=Guidance("Choose it to see whether a new method needs changes elsewhere."),
    options=ToyOptions,
    capabilities=Capabilities(links=False),
)
