"""Total and unit of a population, as a user gives them and as its ``open`` event stores them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, TypedDict, get_args

from espalier.core.errors import ProjectError
from espalier.core.ledger.fields import number, one_of, whole
from espalier.core.privacy.accounting import LARGEST_DELTA, rho_of, rounded_down
from espalier.core.project.plan import Neighbors


class Terms(TypedDict, total=False):
    """Total and unit of a population, as given by a user. ``epsilon`` and ``delta`` are the total; ``delta_for_draws``
    is the share of ``delta`` for the δ₀ of all draws together (default 0). ``neighbors`` defaults to replace-one,
    ``rows_per_person`` to 1.
    """

    epsilon: float | None
    delta: float | None
    delta_for_draws: float | None
    neighbors: Neighbors | None
    rows_per_person: int | None


def given_terms(terms: Terms) -> dict[str, Any]:
    """Return the given ``terms``, each checked for its type; raise :class:`ProjectError` for an unknown term."""
    checks: Mapping[str, Callable[[Any], Any]] = {
        **{key: partial(number, key) for key in ("epsilon", "delta", "delta_for_draws")},
        "neighbors": partial(one_of, "neighbors", known=get_args(Neighbors)),
        "rows_per_person": partial(whole, "rows_per_person"),
    }
    return {key: checks[key](value) for key, value in terms.items() if value is not None}


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the terms of a new population for its ``open`` event; raises :class:`ProjectError`."""
    if lacking := [key for key in ("epsilon", "delta") if key not in given]:
        raise ProjectError("a new budget needs a total: set ε and δ", key=lacking[0])
    epsilon, delta, kept = given["epsilon"], given["delta"], given.get("delta_for_draws", 0.0)
    if not 1e-6 <= epsilon <= 100:
        raise ProjectError(f"the total's epsilon ({epsilon:g}) must be at least 1e-6 and at most 100", key="epsilon")
    if not 1e-300 <= delta < 1:
        raise ProjectError(f"the total's delta ({delta:g}) must lie strictly between 0 and 1", key="delta")
    if delta > LARGEST_DELTA:
        raise ProjectError(
            f"the total's delta ({delta:g}) must not be above {LARGEST_DELTA:g}: publishing one random row would "
            "satisfy such a guarantee. Set delta far below 1/n, such as 1e-9",
            key="delta",
        )
    if not 0 <= kept < delta:
        raise ProjectError(
            f"the delta for draws ({kept:g}) must be at least 0 and below the total's delta ({delta:g}): the rest "
            "converts ρ to ε",
            key="delta_for_draws",
        )
    return {
        "epsilon": epsilon,
        "delta": delta,
        "rho": rho_of(epsilon, conversion_delta(delta, kept)),
        "neighbors": given.get("neighbors", "replace-one"),
        "rows_per_person": given.get("rows_per_person", 1),
    }


def conversion_delta(delta: float, delta_for_draws: float) -> float:
    """Return the part of δ that remains to convert ρ, rounded down."""
    return rounded_down(Fraction(delta) - Fraction(delta_for_draws))
