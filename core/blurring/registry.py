"""Registry of the methods without a privacy guarantee, by name."""

from __future__ import annotations

from espalier.core.blurring.base import Blurring
from espalier.core.blurring.two_stage import TWO_STAGE
from espalier.core.errors import ProjectError
from espalier.core.project.plan import Plan

BLURRINGS: dict[str, Blurring] = {TWO_STAGE.name: TWO_STAGE}


def is_blurring(plan: Plan) -> bool:
    """Return whether the plan names a method without a privacy guarantee."""
    return plan.method in BLURRINGS


def blurring_of(plan: Plan) -> Blurring:
    """Return the method without a privacy guarantee that ``plan`` names; raise :class:`ProjectError` for a private
    method.
    """
    if plan.method not in BLURRINGS:
        raise ProjectError(f"the method {plan.method} is private: use it in a release instead", key="method")
    return BLURRINGS[plan.method]


def check_blurring(plan: Plan) -> None:
    """Raise :class:`ProjectError` if the plan gives an ε, or an invalid value of an option."""
    method = blurring_of(plan)
    if plan.has_epsilon:
        raise ProjectError(
            f"the method {method.name} is not private and has no ε: remove epsilon from the plan", key="epsilon"
        )
    method.read(plan)


def refuse_blurring(plan: Plan) -> None:
    """Raise :class:`ProjectError` if the plan names a method without a privacy guarantee."""
    if is_blurring(plan):
        method = BLURRINGS[plan.method]
        raise ProjectError(
            f"the method {method.name} is not private ({method.summary}), so it cannot be used with a budget, a ledger "
            "or any other feature that promises privacy. Use `release` to make its rows"
            + (", once epsilon is removed from the plan" if plan.has_epsilon else ""),
            key="method",
        )
