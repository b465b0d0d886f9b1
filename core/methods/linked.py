"""Model of people with their first visit, and of the step from each visit to the next.

A wide table (``insulin_1``, ``insulin_2``, …) loses the dynamics between visits. Here, the budget is divided in two.
One part buys the person model as in the method `workload`. The other part measures pairs of columns over all steps;
each person has total weight 1, however many visits they have (`espalier.core.privacy.steps`). The step model is fitted
to these counts on *synthetic* people. The counts determine only its conditionals, so columns may have any number of
parents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from espalier.core.errors import ProjectError
from espalier.core.graph.separations import Clique
from espalier.core.graph.two_slices import largest
from espalier.core.methods.base import Capabilities, Guidance, Limits, Method, Separations
from espalier.core.methods.frame import Frame
from espalier.core.methods.linked_steps import (
    BATCHES,
    LAST_EVALUATIONS,
    LAST_EVIDENCE,
    LATE_EVALUATIONS,
    LATE_EVIDENCE,
    Layout,
    Stepping,
    linked_of,
)
from espalier.core.methods.marginals import Marginals
from espalier.core.methods.visit_answers import POOL, AtVisit, Returns, check_asked, count_asked, first_visits_of
from espalier.core.methods.workload import FITS, most_cells, workload
from espalier.core.methods.workload_weights import Workload
from espalier.core.models.graphical import Size
from espalier.core.models.linked.model import LinkedModel, load_linked
from espalier.core.privacy.curator import Curator
from espalier.core.progress import Report, part, silent
from espalier.core.project.file import Project
from espalier.core.project.linked import BEFORE
from espalier.core.project.options import option, read_options


@dataclass(frozen=True)
class LinkedOptions:
    """Division of the budget between people and visits."""

    visit_share: float = option(
        0.5,
        "Share of the budget for later visits",
        low=0.1,
        high=0.9,
        help="Pays for the model of the steps between visits. The rest pays for people with their first visit.",
    )
    count_at_visits: Sequence[str] | None = option(
        None,
        "Columns counted at each visit",
        columns="several",
        of_visits=True,
        empty="none",
        help="Analyse then shows the share of people with each value at their second, third, … visit, with an "
        "interval. The first visit needs no further counts.",
    )
    count_returns_after: Sequence[str] | None = option(
        None,
        "Columns for which returns are counted",
        columns="several",
        of_visits=True,
        empty="none",
        help="Analyse then shows, for each value, the share of visits after which the person returns in time, with an "
        "interval.",
    )
    return_days: int = option(
        30,
        "Days within which the next visit counts as a return",
        low=0,
        high=3650,
        whole=True,
        help="The bins for the days between visits must have an edge right after this day.",
    )
    at_visits_share: float = option(
        0.1,
        "Share of the budget for counts at each visit and counts of returns",
        low=0.01,
        high=0.5,
        help="Spent only if columns are named. It then reduces the budget for the model.",
    )


def linked(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> LinkedFit:
    """Spend the budget on the person model, and then on the steps: each column with its previous value, then echoes,
    then further pairs in batches.

    Before the steps, the columns that the plan names are counted at each visit or with the returns after it.
    """
    chosen = read_options(LinkedOptions, project.plan.options)
    link, share = linked_of(project), chosen.visit_share
    left = 1 - chosen.at_visits_share if chosen.count_at_visits or chosen.count_returns_after else 1.0
    with curator.within(curator.budget.part(left * (1 - share))):
        people = workload(curator, project, frame, part(report, 0.0, 0.4))
    later, returns = count_asked(curator, link, project.schema, chosen, (1 - left) * (1 - 1e-9) * curator.budget.rho)
    steps = Stepping.of(curator, project, frame, left * share * curator.budget.rho, people)
    steps.count_own(curator)
    steps.count_echoes(curator)
    for i, (most, part_of) in enumerate(steps.rounds()):
        report(0.5 + 0.5 * i / BATCHES, "Choosing the links between visits")
        steps.count_chosen(curator, most, part_of)
    return LinkedFit(people, steps, tuple(later), tuple(returns))


@dataclass(frozen=True)
class LinkedFit:
    """Result of a plan for linked tables: counts of people, of steps, of columns at later visits, and of returns."""

    people: Marginals
    steps: Stepping
    later: tuple[AtVisit, ...] = ()
    returns: tuple[Returns, ...] = ()

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """Sets of columns of a row that were measured together."""
        return self.people.cliques

    @property
    def features(self) -> tuple[str, ...]:
        """Empty, because no column is measured only with a target."""
        return ()

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of columns of a row that the model links."""
        return self.people.edges

    def size(self, max_cells: int, further: tuple[Clique, ...] = ()) -> Size:
        """Return the cost of the person model, which exceeds the cost of the steps."""
        return self.people.size(max_cells, further)

    def model(self, report: Report = silent) -> LinkedModel:
        """Fit the step model to all counts, on more synthetic people than during the choice of pairs."""
        report(0.0, "Fitting the model of successive visits")
        self.steps.fitted(LATE_EVIDENCE, LATE_EVALUATIONS, self.steps.order)
        report(0.5, "Fitting the model of successive visits")
        self.steps.fitted(LAST_EVIDENCE, LAST_EVALUATIONS, self.steps.order)
        return LinkedModel(self.steps.person_model, self.steps.model, self.steps.layout.slices)

    def facts(self, project: Project) -> dict[str, Any]:
        """Return the pairs measured over steps, the counts of columns at each visit and of returns, the order in which
        a visit's columns are drawn, and the entries of the person model.
        """
        link = linked_of(project)
        return {
            **self.people.facts(project),
            "tables": {
                "people": link.people,
                "visits": link.visits,
                "keep": link.keep,
                "order": list(self.steps.order),
                "steps": [{"parent": p, "column": c, "sigma": t.sigma} for (p, c), t in self.steps.tables.items()],
                "transitions": [
                    {"column": c, "sigma": t.sigma, "counts": np.round(t.values, 3).tolist()}
                    for (p, c), t in self.steps.tables.items()
                    if p == c + BEFORE
                ],
                "at_visits": [*first_visits_of(self.people, link, project.schema), *self.later],
                "returns": list(self.returns),
            },
        }


def _frame(project: Project, separations: Separations, warnings: list[str]) -> Frame:
    """Widen the separations to all visits. If a visit would break a separation, refuse the plan and name the path.

    The check is made on the largest model that the frame allows, so it holds for every release.
    """
    link, plan = linked_of(project), project.plan
    for key, given in (("accounting", plan.accounting == "basic"), ("copies", plan.copies), *_not_yet(project)):
        if given:
            raise ProjectError(f"the method linked does not support {key} yet. Remove it from the plan.", key=key)
    check_asked(read_options(LinkedOptions, plan.options), link, project.schema)
    layout = Layout.of(project, ())
    slices = layout.slices
    if wide_columns := [n for n in layout.columns if layout.cells((n + BEFORE, n)) > plan.max_cells]:
        raise ProjectError(
            f"{wide_columns[0]!r} has too many values: a table with its previous value needs more than "
            f"{plan.max_cells:,} cells. Group its values, or raise max_cells",
            key="max_cells",
            column=wide_columns[0],
        )
    for separation in separations:
        if link.number in (*separation.right, *separation.given):
            raise ProjectError(
                f"the number of visits ({link.number}) can be neither protected nor admissible", key="roles"
            )
    inadmissible = project.roles.inadmissible
    wide = tuple(slices.widened(s, inadmissible) for s in separations)
    for separation in wide:
        if path := largest(slices, wide).path(separation):
            raise ProjectError(
                "these separations cannot all hold at every visit, because they leave the path "
                f"{' – '.join(path)} open. Change the roles or the separations",
                key="roles",
                path=path,
            )
    return Frame(wide, warnings=tuple(warnings))


def _not_yet(project: Project) -> Iterable[tuple[str, Any]]:
    """Return the plan keys that linked tables do not support."""
    plan = project.plan
    keys = ("private_evaluation", "schema_share", "question_share", "test_drawing")
    return [(key, getattr(plan, key)) for key in keys]


LINKED = Method(
    name="linked",
    title="Linked tables",
    summary="people with all their visits, including the links between successive visits",
    fit=linked,
    load=load_linked,
    options=LinkedOptions,
    frame=_frame,
    guidance=Guidance(
        when="Choose it for a table of people and a table of their visits.",
        pools={
            "visits": "counts of visits",
            "echoes": "counts of visits",
            "visit choice": "choosing pairs of visits",
            "visit pairs": "counts of visits",
            POOL: "counts of visits",
        },
    ),
    capabilities=Capabilities(constraints=False, linked=True, unread=("accounting", "copies")),
    limits=Limits(
        cells=lambda project: most_cells(project, Workload.of(project).max_cells),
        fits=lambda project: FITS,  # noqa: ARG005
    ),
    without_fence={"fair": False, "strict": False},
)
