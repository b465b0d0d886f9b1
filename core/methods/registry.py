"""The published methods, by name. A new one joins with one file and one line here."""

from __future__ import annotations

from dataclasses import replace

from espalier.core.errors import ProjectError
from espalier.core.graph.separations import Separation
from espalier.core.methods.base import Fitted, Method
from espalier.core.methods.copula import COPULA
from espalier.core.methods.decoder import DECODER
from espalier.core.methods.fpt_lp import FPT_LP
from espalier.core.methods.fpt_mw import FPT_MW
from espalier.core.methods.frame import Frame, check_plan, fence
from espalier.core.methods.independent import INDEPENDENT
from espalier.core.methods.prism import PRISM
from espalier.core.methods.privbayes import PRIVBAYES
from espalier.core.methods.question_links import scopes_of, widened
from espalier.core.methods.questions import fit_beside
from espalier.core.methods.trees import MST, PREFAIR, PRIVCI
from espalier.core.methods.two_stage import TWO_STAGE
from espalier.core.methods.workload import WORKLOAD
from espalier.core.privacy.curator import Curator
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project
from espalier.core.project.options import check_known
from espalier.core.project.plan import NO_EPSILON, Plan

_ALL = (WORKLOAD, PRISM, PRIVCI, MST, PREFAIR, PRIVBAYES, DECODER, COPULA, FPT_LP, FPT_MW, INDEPENDENT, TWO_STAGE)
METHODS: dict[str, Method] = {m.name: m for m in _ALL}
DEFAULT = WORKLOAD.name
"""The method of a new project."""


def method_of(plan: Plan) -> Method:
    """The method that ``plan`` names; raises :class:`ProjectError` for one that is not known."""
    if plan.method not in METHODS:
        raise ProjectError(f"plan: method is {plan.method!r}; it must be one of {', '.join(METHODS)}", key="method")
    return METHODS[plan.method]


def check_options(plan: Plan) -> None:
    """Raise :class:`ProjectError` for a method, a key or a value of a key that no method knows.

    A key of another method than the plan's is accepted and unused.
    """
    method = method_of(plan)
    if method.private and plan.epsilon == NO_EPSILON:
        raise ProjectError("plan: epsilon is missing", key="epsilon")
    if not method.private and plan.epsilon != NO_EPSILON:
        raise ProjectError(
            f"the method {method.name} is not private: it keeps no ε, so take epsilon out of the plan", key="epsilon"
        )
    method.read(plan)
    check_known(plan.options, [m.options for m in METHODS.values()])


def need_private(plan: Plan) -> None:
    """Raise :class:`ProjectError` for a method that is not private: no entrance that promises privacy takes it."""
    method = method_of(plan)
    if not method.private:
        raise ProjectError(
            f"the method {method.name} is not private ({method.summary}): no budget, no ledger and nothing that "
            "promises privacy can take it; `release` makes its rows"
            + ("" if plan.epsilon == NO_EPSILON else ", once epsilon is out of the plan"),
            key="method",
        )


def frame_of(project: Project) -> Frame:
    """The frame of ``project``; raises :class:`ProjectError` where plan, roles and graph conflict."""
    plan, method = project.plan, method_of(project.plan)
    check_options(plan)
    if method.private:
        check_plan(plan)
    if method.fence == "never" and plan.fair:
        others = ", ".join(m.name for m in METHODS.values() if m.fence != "never")
        raise ProjectError(
            f"the method {method.name} knows no fence: set fair to false, or choose a method that keeps one ({others})",
            key="fair",
        )
    if method.fence == "always" and plan.fair is False:
        others = ", ".join(m.name for m in METHODS.values() if m.fence != "always")
        raise ProjectError(
            f"the method {method.name} always carries the fence: set fair to true, or choose a method that has none "
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
    return replace(frame, separations=_around(project, tuple(widened(s, project, scopes) for s in frame.separations)))


def asks(project: Project) -> bool:
    """Return whether the plan spends on questions and counts. Raises :class:`ProjectError` where it cannot."""
    plan, method = project.plan, method_of(project.plan)
    if method.questions == "alone":
        if not project.question_list:
            raise ProjectError(
                f"the method {method.name} answers questions: list questions or counts first",
                key="questions",
                missing="questions",
            )
        return True
    if not plan.question_share or not project.question_list:
        return False
    if method.questions == "no":
        able = ", ".join(m.name for m in METHODS.values() if m.questions == "beside")
        raise ProjectError(
            f"the method {method.name} counts no marginals, so it cannot measure questions as well: set the share "
            f"of the budget for questions (question_share) to 0, or choose one of {able}",
            key="question_share",
        )
    return True


def fit(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Fitted:
    """Run the plan's method, and measure the project's questions with their share of the budget."""
    method = method_of(project.plan)
    if method.questions == "beside" and asks(project):
        return fit_beside(method.fit, curator, project, frame, report)
    return method.fit(curator, project, frame, report)


def _around(project: Project, separations: tuple[Separation, ...]) -> tuple[Separation, ...]:
    """Return the separations with the pairs that constraints join; raise if these lead around a separation."""
    if found := project.constraints.conflict(separations):
        raise ProjectError(found[1], key="constraints")
    return tuple(replace(s, links=project.constraints.edges) for s in separations)


def _check_constraints(project: Project, method: Method) -> None:
    """Raise where the plan's method cannot hold them, or where they do not fit the columns."""
    if not method.holds_constraints:
        raise ProjectError(
            f"the method {method.title} cannot hold constraints (impossible combinations, ordered pairs, "
            "dependencies): choose another method, or leave them out on the Data page",
            key="constraints",
        )
    if project.plan.options.get("compress"):
        raise ProjectError(
            "rare categories cannot be merged in a plan with constraints, which name single categories: "
            "set compress to false",
            key="compress",
        )
    project.constraints.masks(project.schema, project.plan.max_cells)
