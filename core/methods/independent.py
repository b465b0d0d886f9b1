"""Independent columns, from one-way counts alone: the baseline that every other method must beat."""

from __future__ import annotations

from espalier.core.methods.base import Capabilities, Guidance, Method
from espalier.core.methods.frame import Frame
from espalier.core.methods.marginals import Marginals, one_ways
from espalier.core.methods.select.allocation import BudgetSplit
from espalier.core.privacy.curator import Curator
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project


def independent(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Marginals:  # noqa: ARG001
    """Spend the whole budget on one-way counts. Every separation holds, because no columns are linked."""
    report(0.0, "Counting every column")
    budget = BudgetSplit.of(project.plan, curator.budget, curator.sizes)
    return Marginals.of(curator, curator.measure(budget.split(1.0, one_ways(curator)), "one-way"))


INDEPENDENT = Method(
    name="independent",
    title="Independent",
    summary="every column on its own, without links",
    fit=independent,
    guidance=Guidance(
        when="Choose it as the baseline that every other method must beat.",
        unseparated=lambda drawn: "Every column is measured on its own, so the table shows no associations.",  # noqa: ARG005
    ),
    capabilities=Capabilities(links=False, questions="beside"),
)
