"""Frame of a plan: separations from roles, features and conflicts. Everything is derived before any data is read."""

from __future__ import annotations

from dataclasses import dataclass

from espalier.core.errors import ProjectError
from espalier.core.graph.separations import Separation
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan

LARGEST_BASIC = 4.0
"""Largest ε in PRISM's experiments. The classical calibration is proved up to ε = 1 per measurement."""


GAUSSIAN_ALONE = (
    "schema_share",
    "private_evaluation",
    "embedding_share",
    "test_drawing",
    "regression_share",
    "analysis_share",
    "copies",
)
"""Plan keys with draws or intervals that are proved only for Gaussian noise."""


@dataclass(frozen=True)
class Task:
    """One of PRISM's targets: its weight, its features S and the refused columns.

    ``features`` is `None` if S is chosen privately from ``candidates``.
    """

    target: str
    weight: float
    features: tuple[str, ...] | None
    candidates: tuple[str, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True)
class Frame:
    """Constraints that a plan imposes on the model's graph.

    - ``features``: PRISM's S if the drawing determines it; `None` if it is chosen privately; empty for other methods.
    - ``candidates``: columns for a private choice of S.
    - ``refused``: columns left out of S because the fence forbids their pair with the target.
    - ``warnings``: sentences for the author of the plan.
    - ``tasks``: one per target (PRISM only). ``features`` and ``candidates`` belong to the first target.
    """

    separations: tuple[Separation, ...] = ()
    features: tuple[str, ...] | None = ()
    candidates: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()

    def forbids(self, a: str, b: str) -> bool:
        """Return whether the pair (a, b) must not be measured together."""
        return any(s.forbids(a, b) for s in self.separations)


def check_plan(plan: Plan) -> None:
    """Raise :class:`ProjectError` if parts of the plan contradict each other. These checks apply to every method."""
    if plan.accounting == "basic" and plan.epsilon > LARGEST_BASIC:
        raise ProjectError(
            f"basic accounting calibrates noise for a small ε, at most {LARGEST_BASIC:g} here: "
            "choose the accounting zcdp, or a smaller ε",
            key="accounting",
        )
    if plan.pure and (odd := [key for key in GAUSSIAN_ALONE if getattr(plan, key)]):
        raise ProjectError(
            f"{odd[0]} relies on Gaussian noise, which has no pure guarantee: leave it out, or set accounting to zcdp",
            key=odd[0],
        )
    if plan.neighbors == "add-remove" and plan.delta is None:
        raise ProjectError(
            "under add-remove the number of rows is confidential, so delta cannot be 1/n²: set delta to a number, such "
            "as 1e-9",
            key="delta",
        )
    if plan.neighbors == "replace-one" and plan.person is not None and plan.rows is None:
        raise ProjectError(
            "the number of rows after the limit per person is confidential: declare a total (rows) to which the table "
            "is filled or cut, or choose add-remove",
            key="person",
            missing="rows",
        )


def fence(project: Project, warnings: list[str]) -> tuple[Separation, ...]:
    """Return the separations of a plan with a fence: the separation implied by the roles, and those listed in the
    project."""
    return (*_of_roles(project, warnings), *_listed(project))


def _of_roles(project: Project, warnings: list[str]) -> tuple[Separation, ...]:
    """Return outcome ⊥ protected | admissible (PrivCI §I), or with inadmissible added to protected under ``strict``."""
    roles, schema = project.roles, project.schema
    if project.separations and not roles.outcome and not roles.protected:
        return ()
    instead = "plan without the fence" if project.plan.fair else "choose a method without a fence"
    for role, names in (("protected", roles.protected), ("outcome", roles.outcome)):
        if not names:
            raise ProjectError(
                f"a fence needs at least one {role} column: mark one on the Structure page, or {instead}",
                key="roles",
                role=role,
            )
    if not roles.admissible:
        warnings.append(
            "No column is admissible, so nothing may link the protected columns to the outcome. The model falls "
            "into separate parts (a forest)."
        )
    far = (*roles.protected, *roles.inadmissible) if project.plan.strict else roles.protected
    why = "protected and inadmissible" if project.plan.strict and roles.inadmissible else "protected"
    return (
        Separation(
            schema.clique(roles.outcome),
            schema.clique(far),
            schema.clique(roles.admissible),
            f"fairness: the outcome may depend on {why} columns only through the admissible ones",
        ),
    )


def _listed(project: Project) -> tuple[Separation, ...]:
    """Return the separations that the project lists, which may overlap."""
    clique = project.schema.clique
    return tuple(
        Separation(clique(s.left), clique(s.right), clique(s.given), s.why or "a further separation")
        for s in project.separations
    )
