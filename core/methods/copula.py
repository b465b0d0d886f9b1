"""Smooth regression on numeric columns: a Gaussian copula for the inputs, and a regression on noisy moments for the
target. This is the private counterpart of the two-stage idea of Liu et al.: Latin hypercube inputs with the noisy
correlation of normal scores, followed by a smooth function of them plus a residual. Nominal columns come from a tree of
pair counts. Everything is a sum over the rows with Gaussian noise, so ρ adds up exactly.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from espalier.core.errors import ProjectError
from espalier.core.graph.separations import Clique, Separation
from espalier.core.methods.base import Capabilities, Guidance, Method
from espalier.core.methods.frame import Frame
from espalier.core.methods.select.allocation import BudgetSplit, Choices
from espalier.core.methods.select.expected import independent, noisy_total
from espalier.core.methods.select.greedy_tree import choose_tree
from espalier.core.models.graphical import GraphicalModel, Size, check_size, estimate, smoothing_for
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.scores import EdgeScore
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project

if TYPE_CHECKING:
    from espalier.core.models.copula.layout import Layout
    from espalier.core.models.copula.model import CopulaModel

NOMINAL = 0.15
"""Share of ρ for measuring and linking nominal columns, if there are any."""

ALONE, CHOICE = 0.4, 0.2
"""Parts of this share for one-way counts and for choosing pairs. Counts of the pairs get the rest."""

BYTES_PER_SUM, SECONDS_PER_SUM = 40, 20e-6
"""Approximate memory and time for one noisy sum."""


@dataclass(frozen=True)
class Smooth:
    """Fitted model, and the measured cliques of nominal columns."""

    fitted: CopulaModel
    counted: tuple[Clique, ...]
    sums: int
    features: tuple[str, ...] = ()

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """Each column alone, and the measured pairs of nominal columns."""
        return tuple(dict.fromkeys([*((name,) for name in self.fitted.inputs.layout.axes), *self.counted]))

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Every pair of columns, because the regression may link any two."""
        return tuple(itertools.combinations(self.fitted.columns, 2))

    def size(self, max_cells: int, further: tuple[Clique, ...] = ()) -> Size:  # noqa: ARG002
        """Return the number of sums instead of cells. The tree of nominal columns has its own limit."""
        layout = self.fitted.inputs.layout
        tree = check_size(layout.categories, self.counted, max_cells=max_cells) if self.counted else None
        cells, memory = (tree.cells, tree.bytes) if tree else (0, 0)
        seconds = 1 + SECONDS_PER_SUM * self.sums + (tree.seconds if tree else 0.0)
        return Size(cells + self.sums, cells + self.sums, memory + BYTES_PER_SUM * self.sums, seconds, (), cells, ())

    def model(self, report: Report = silent) -> CopulaModel:  # noqa: ARG002
        """Return the model, which is already fitted because each query depended on the previous answer."""
        return self.fitted

    def facts(self, project: Project) -> Mapping[str, Any]:  # noqa: ARG002
        """Return nothing, because the draws contain everything."""
        return {}


def copula(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Smooth:  # noqa: ARG001
    """Measure a tree of nominal columns, then the numeric columns: one-way counts, dependence, regression and
    residuals.
    """
    from espalier.core.models.copula.fit import fit, parts
    from espalier.core.models.copula.layout import Layout

    layout = Layout.of(project.schema, project.plan.target)
    rest = 1 - NOMINAL if layout.categories else 1.0
    # the floating-point sum of ρ may exceed the budget in the last digit, so round it down
    rhos = {pool: (1 - 1e-12) * rest * share * curator.budget.rho for pool, share in parts(layout).items()}
    report(0.0, "Counting nominal columns")
    nominal, counted = _nominal(curator, layout)
    report(0.3, "Measuring moments")
    before = len(curator.spending.draws)
    fitted = fit(layout, curator.measure_sums, rhos, curator.rows, nominal, curator.chance())
    return Smooth(fitted, counted, sum(d.cells for d in curator.spending.draws[before:]))


def _nominal(curator: Curator, layout: Layout) -> tuple[GraphicalModel | None, tuple[Clique, ...]]:
    """Measure a tree of pairs over the nominal columns, grown as in MST, with their share of the budget."""
    names = list(layout.categories)
    if not names:
        return None, ()
    budget = BudgetSplit(curator.budget, curator.sizes, "uniform", "zcdp")
    linked = sum(size > 1 for size in layout.categories.values()) > 1
    found = curator.measure(budget.split(NOMINAL * (ALONE if linked else 1.0), [(n,) for n in names]), "one-way")
    if linked:
        score = EdgeScore(independent(found, noisy_total(curator, found)))
        edges, unspent = choose_tree(
            Choices(curator, budget, NOMINAL * CHOICE, "tree choice"), (), score, list(itertools.combinations(names, 2))
        )
        share = math.fsum([NOMINAL * (1 - ALONE - CHOICE), unspent])
        found += curator.measure(budget.split(share, edges), "two-way")
    total = None if curator.rows is None else float(curator.rows)
    model = estimate(layout.categories, found, total, smoothing=smoothing_for(found, total))
    return model, tuple(m.clique for m in found)


def _frame(project: Project, separations: tuple[Separation, ...], warnings: list[str]) -> Frame:
    """Refuse separations, and warn about dependence that the model cannot represent."""
    from espalier.core.models.copula.layout import Layout

    layout = Layout.of(project.schema, project.plan.target)
    if separations or (project.separations and project.plan.fair is None):
        raise ProjectError(
            "this method links every column with every other, so it cannot keep a separation: remove the separations "
            "from the project, set fair to false, or choose a method that keeps a fence",
            key="fair",
        )
    return Frame(warnings=(*warnings, *layout.limits))


def _load(data: bytes) -> CopulaModel:
    from espalier.core.models.copula.model import CopulaModel

    return CopulaModel.loads(data, GraphicalModel.loads)


COPULA = Method(
    name="copula",
    title="Copula regression",
    summary="numbers stay numbers; the target is a smooth function of the other columns",
    fit=copula,
    load=_load,
    frame=_frame,
    guidance=Guidance(
        when="Choose it to predict a number that depends smoothly on other numbers.",
        unseparated=lambda drawn: "No separation: the regression may link any two columns.",  # noqa: ARG005
        pools={
            "dependence": "how columns depend on each other",
            "regression": "how columns predict the target",
            "residuals": "residuals of the prediction",
            "tree choice": "choosing the pairs",
            "two-way": "counts of pairs",
        },
    ),
    capabilities=Capabilities(
        fence="never",
        targets=True,
        constraints=False,
        numbers=True,
        unread=("allocation", "accounting", "copies"),
    ),
)
