"""PrivBayes: a Bayesian network, drawn or learned, and the counts of every column with its parents."""

from __future__ import annotations

import math

from espalier.core.errors import SizeError
from espalier.core.graph.separations import Clique
from espalier.core.methods.base import Capabilities, Guidance, Method, any_association
from espalier.core.methods.frame import Frame
from espalier.core.methods.marginals import Marginals
from espalier.core.methods.select.allocation import BudgetSplit, Choices
from espalier.core.methods.select.network import choose_network
from espalier.core.methods.select.usefulness import useful_cells
from espalier.core.privacy.curator import Curator
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project

NETWORK, COUNTS = 0.3, 0.7
"""Pools, as shares of the budget. The paper gives half of ε to each. On Adult at ε = 1, R scores reach thousands of
rows and have noise of about a hundred. Choices therefore remain good with a smaller share, while every measured cell
benefits from the rest.
"""


def privbayes(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Marginals:  # noqa: ARG001
    """Measure P(X, Pa(X)) for every column X, with parents from the drawn graph if there is one, otherwise from a
    privately chosen network.

    A drawn graph costs nothing, so the whole budget goes to its counts. A learned network starts from the column with
    the fewest values (at least two). Any column could be first, and this one adds the fewest cells to its children's
    tables. A table that is contained in another is not measured separately (the paper also derives its first k tables
    from one joint table). The model is the maximum-entropy fit to all these tables together.
    """
    plan, budget = project.plan, BudgetSplit.of(project.plan, curator.budget, curator.sizes)
    if project.dag.edges:
        cliques = _drawn(project)
        report(0.0, "Counting every column with its causes")
        return Marginals.of(curator, curator.measure(budget.split(1.0, cliques), "network"))

    report(0.0, "Choosing the network")
    sizes = curator.sizes
    first = min(sizes, key=lambda name: (sizes[name] < 2, sizes[name]))
    useful = min(useful_cells(curator, budget, COUNTS / len(sizes)), plan.max_cells)
    network, unspent = choose_network(
        Choices(curator, budget, NETWORK, "network choice"), first, useful, plan.max_cells
    )
    report(0.6, "Counting every column with its parents")
    largest = [q for q in network if not any(set(q) < set(other) for other in network)] or [(first,)]
    return Marginals.of(curator, curator.measure(budget.split(COUNTS + unspent, largest), "network"))


def _drawn(project: Project) -> list[Clique]:
    """Return every column with its drawn causes; raises :class:`SizeError` if such a table is too large."""
    schema, limit = project.schema, project.plan.max_cells
    cliques = []
    for name in schema.names:
        clique = schema.clique((name, *project.dag.parents(name)))
        cells = math.prod(schema.sizes[c] for c in clique)
        if cells > limit:
            named = " × ".join(f"{c} ({schema.sizes[c]})" for c in clique)
            raise SizeError(
                f"the table of {name} with all its causes, {named}, would have {cells:,} cells, more than the "
                f"{limit:,} allowed; remove an arrow into {name}, or use fewer categories or bins for one of "
                "these columns",
                clique=clique,
                cells=cells,
                limit=limit,
                column=name,
            )
        cliques.append(clique)
    return cliques


def _unseparated(drawn: bool) -> str:
    if not drawn:
        return any_association(drawn)
    return (
        "No separation is promised. The table shows the associations along drawn arrows, within the budget; columns "
        "without an arrow between them are related only through others."
    )


PRIVBAYES = Method(
    name="privbayes",
    title="PrivBayes",
    summary="a Bayesian network, every column measured together with its parents",
    fit=privbayes,
    guidance=Guidance(
        when="Choose it if the whole drawing should shape the table.",
        unseparated=_unseparated,
        pools={"network choice": "choosing the pairs", "network": "counts of columns together"},
    ),
    capabilities=Capabilities(fence="never", questions="beside"),
    arrows=lambda project: project.dag.edges,
)
"""PrivBayes (Zhang et al. 2017). If the graph is drawn, its tables are known. If it is learned, only pairs may exceed
``max_cells``. The rehearsal always takes the largest candidate, so it measures the largest pair as soon as one of its
columns is placed.
"""
