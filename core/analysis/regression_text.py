"""Bought regressions as text: a description of the estimates, and one line for each coefficient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NO_VALUE = "no estimate, because the noise exceeds the information about the coefficient"
UNBOUNDED = "unbounded, because the noise exceeds the information about the coefficient"
_SCALES = {
    "outcome": "Coefficients are changes in {outcome}.",
    "log odds": "Coefficients are changes in the log odds of {outcome}.",
    "log mean": "Coefficients are changes in the logarithm of the mean of {outcome}.",
}


def about(one: Mapping[str, Any]) -> str:
    """Return sentences about a regression: family, outcome, predictors and scale."""
    robust = " The intervals are robust, because the release bought the variance." if one.get("robust") else ""
    scale = _SCALES.get(one["scale"], "").format(outcome=one["outcome"])
    return (
        f"{one['name']}: a {one['family']} regression of {one['outcome']} on {', '.join(map(str, one.get('on', [])))}. "
        f"{scale} A category is compared with the first one; a number is represented by the midpoint of its "
        f"bin.{robust}"
    )


def interval(part: Mapping[str, Any]) -> str:
    """Return the interval of a coefficient as text."""
    if part["value"] is None:
        return NO_VALUE
    if part["low"] is None or part["high"] is None:
        return UNBOUNDED
    return f"{part['low']:.4g} to {part['high']:.4g}"


def line(part: Mapping[str, Any]) -> str:
    """Return one coefficient with its 95 % interval."""
    value = "" if part["value"] is None else f"{part['value']:.4g}, 95 % interval "
    return f"{part['term']}: {value}{interval(part)}"
