"""Registry of the published methods, by name. A new method needs one file and one line here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from espalier.core.blurring.registry import BLURRINGS, blurring_of, check_blurring, is_blurring, refuse_blurring
from espalier.core.errors import ProjectError
from espalier.core.graph.separations import Separation
from espalier.core.methods.base import Fitted, Method, PlannedEffect
from espalier.core.methods.copula import COPULA
from espalier.core.methods.decoder import DECODER
from espalier.core.methods.embedding import check as check_embedding
from espalier.core.methods.embedding import embed
from espalier.core.methods.fpt_lp import FPT_LP
from espalier.core.methods.fpt_mw import FPT_MW
from espalier.core.methods.frame import Frame, check_plan, fence
from espalier.core.methods.independent import INDEPENDENT
from espalier.core.methods.linked import LINKED
from espalier.core.methods.prism import PRISM
from espalier.core.methods.privbayes import PRIVBAYES
from espalier.core.methods.question_answers import fit_beside
from espalier.core.methods.question_links import scopes_of, widened
from espalier.core.methods.trees import MST, PREFAIR, PRIVCI
from espalier.core.methods.workload import WORKLOAD
from espalier.core.privacy.curator import Curator
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project
from espalier.core.project.options import check_keys, check_known, declared
from espalier.core.project.plan import ALWAYS, Plan

_ALL = (WORKLOAD, LINKED, PRISM, PRIVCI, MST, PREFAIR, PRIVBAYES, DECODER, COPULA, FPT_LP, FPT_MW, INDEPENDENT)
METHODS: dict[str, Method] = {m.name: m for m in _ALL}
DEFAULT = WORKLOAD.name
"""Method of a new project's plan."""


def offered(project: Project) -> list[str]:
    """Return the names of the methods for the project's tables: a single table, or two linked tables."""
    return [m.name for m in METHODS.values() if m.capabilities.linked == (project.linked is not None)]


def method_of(plan: Plan) -> Method:
    """Return the method that ``plan`` names. Raises :class:`ProjectError` for a method that is unknown or not
    private.
    """
    refuse_blurring(plan)
    if plan.method not in METHODS:
        known = ", ".join([*METHODS, *BLURRINGS])
        raise ProjectError(f"plan: method is {plan.method!r}; it must be one of {known}", key="method")
    return METHODS[plan.method]


def check_options(plan: Plan) -> None:
    """Raise :class:`ProjectError` for an unknown method, an unknown key, or an invalid value of a key.

    A key that belongs to a method other than the plan's is accepted and ignored.
    """
    if is_blurring(plan):
        check_blurring(plan)
    else:
        method = method_of(plan)
        if not plan.has_epsilon:
            raise ProjectError("plan: epsilon is missing", key="epsilon")
        method.read(plan)
    check_known(plan.options, _every_option())


def refuse_unknown_keys(plan: Plan) -> None:
    """Raise :class:`ProjectError` for a key of the plan that no method defines, regardless of the other values."""
    check_keys(plan.options, _every_option())


def _every_option() -> list[type[Any]]:
    """Return the options that any method declares."""
    return [*(m.options for m in METHODS.values()), *(b.options for b in BLURRINGS.values())]


def options_of(plan: Plan) -> type[Any]:
    """Return the dataclass of the plan's own options, with or without a privacy guarantee."""
    return blurring_of(plan).options if is_blurring(plan) else method_of(plan).options


def unused_options(plan: Plan) -> list[str]:
    """Return the keys that the plan sets and its method ignores, except keys set to their default."""
    method = method_of(plan)
    read = declared(method.options)
    usual: dict[str, Any] = {}
    for kind in _every_option():
        usual |= vars(kind())
    return [
        *method.unread(plan),
        *(k for k, v in plan.options.items() if k not in (*read, *ALWAYS) and usual.get(k) != v),
    ]


def is_fenced(plan: Plan) -> bool:
    """Return whether the plan keeps the roles' separation. False for a method without a privacy guarantee."""
    return not is_blurring(plan) and method_of(plan).fenced(plan)


def may_be_fenced(plan: Plan) -> bool:
    """Return whether the plan's method can keep separations. False for a method without a privacy guarantee."""
    return not is_blurring(plan) and method_of(plan).capabilities.fence != "never"


def keeps_causes_only(plan: Plan) -> bool:
    """Return whether the plan links the target to its drawn direct causes only."""
    return not is_blurring(plan) and method_of(plan).causes_only(plan)


def asks_causes_only(plan: Plan) -> bool:
    """Return whether some method would link the plan's target to its drawn direct causes only."""
    return any(method.causes_only(plan) for method in METHODS.values())


def planned_effect(plan: Plan) -> PlannedEffect | None:
    """Return the effect requested by the plan, or `None`."""
    return None if is_blurring(plan) else method_of(plan).effect_of(plan)


def frame_of(project: Project) -> Frame:
    """Return the frame of ``project``; raises :class:`ProjectError` if plan, roles and graph conflict."""
    plan, method = project.plan, method_of(project.plan)
    check_options(plan)
    check_plan(plan)
    _check_targets(project)
    can = method.capabilities
    if plan.accounting not in can.accounting:
        able = ", ".join(n for n in offered(project) if plan.accounting in METHODS[n].capabilities.accounting)
        raise ProjectError(
            f"the method {method.name} does not support {plan.accounting} accounting: set accounting to "
            f"{' or '.join(can.accounting)}, or choose a method that does ({able})",
            key="accounting",
        )
    if project.linked is not None and not can.linked:
        able = ", ".join(offered(project))
        raise ProjectError(
            f"the method {method.name} releases a single table, and this project links two: choose {able}", key="method"
        )
    if can.fence == "never" and plan.fair:
        others = ", ".join(n for n in offered(project) if METHODS[n].capabilities.fence != "never")
        raise ProjectError(
            f"the method {method.name} has no fence: set fair to false, or choose a method that keeps one ({others})",
            key="fair",
        )
    if can.fence == "always" and plan.fair is False:
        others = ", ".join(n for n in offered(project) if METHODS[n].capabilities.fence != "always")
        raise ProjectError(
            f"the method {method.name} always keeps the fence: set fair to true, or choose a method without one "
            f"({others})",
            key="fair",
        )
    if project.constraints:
        _check_constraints(project, method)
    warnings: list[str] = []
    separations = fence(project, warnings) if method.fenced(plan) else ()
    scopes = scopes_of(project) if asks(project) else {}
    around = _around(project, tuple(widened(s, project, scopes) for s in separations))
    frame = method.frame(project, around, warnings)
    if plan.embedding_share:
        check_embedding(project, method, frame)
    return replace(frame, separations=_around(project, tuple(widened(s, project, scopes) for s in frame.separations)))


def asks(project: Project) -> bool:
    """Return whether the plan spends on questions and counts. Raises :class:`ProjectError` if its method cannot answer
    them.
    """
    plan, method = project.plan, method_of(project.plan)
    if method.capabilities.questions == "alone":
        if not project.question_list:
            raise ProjectError(
                f"the method {method.name} answers questions: list questions or counts first",
                key="questions",
                missing="questions",
            )
        return True
    if not plan.question_share or not project.question_list:
        return False
    if method.capabilities.questions == "no":
        able = ", ".join(m.name for m in METHODS.values() if m.capabilities.questions == "beside")
        raise ProjectError(
            f"the method {method.name} measures no marginals, so it cannot measure questions: set the share "
            f"of the budget for questions (question_share) to 0, or choose one of {able}",
            key="question_share",
        )
    return True


def fit(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Fitted:
    """Run the plan's method and its additions: questions, or a second stage for whole rows."""
    method = method_of(project.plan)
    if project.plan.embedding_share:
        return embed(method.fit, curator, project, frame, report)
    if method.capabilities.questions == "beside" and asks(project):
        return fit_beside(method.fit, curator, project, frame, report)
    return method.fit(curator, project, frame, report)


def _check_targets(project: Project) -> None:
    """Raise :class:`ProjectError` for a target with only one value, because there is nothing to predict."""
    for name in project.plan.weights:
        if project.schema[name].values < 2 and project.schema[name] not in project.schema.undeclared:
            raise ProjectError(
                f"plan: the target {name!r} has only one value, so there is nothing to predict. Choose a target "
                "with two values or more, or add the missing values on the Data page",
                key="target",
            )


def _around(project: Project, separations: tuple[Separation, ...]) -> tuple[Separation, ...]:
    """Return the separations, including the pairs that constraints join. Raise an error if these pairs form a path that
    bypasses a separation.
    """
    if found := project.constraints.conflict(separations):
        raise ProjectError(found[1], key="constraints")
    return tuple(replace(s, links=project.constraints.edges) for s in separations)


def _check_constraints(project: Project, method: Method) -> None:
    """Raise an error if the plan's method cannot keep the constraints, or if they do not match the columns."""
    if not method.capabilities.constraints:
        raise ProjectError(
            f"the method {method.title} cannot keep constraints (impossible combinations, ordered pairs, "
            "dependencies): choose another method, or remove them on the Data page",
            key="constraints",
        )
    project.constraints.masks(project.schema, project.plan.max_cells)
