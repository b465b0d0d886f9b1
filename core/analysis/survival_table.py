"""Planned survival table: its figure, its promise, its entry in ``release.json``, and its text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.survival import Survival, difference, survival
from espalier.core.errors import ProjectError
from espalier.core.project.planned_survival import PlannedSurvival
from espalier.core.project.schema import Schema

FloatArray = NDArray[np.float64]
DRAWS = 300
"""Number of simulated purchases on which a promise is based."""
WITHIN, SURE = 0.9, 0.98
"""Share of releases that stay within a promise, and minimum share of releases with an interval, if the assumptions
hold.
"""
NUMBERS = ("at_risk", "events", "hazard", "hazard_low", "hazard_high", "survival", "low", "high")
"""Keys of one interval of a table."""
FIGURE = ("value", "low", "high")
FIGURES = (("hazard", "hazard_low", "hazard_high"), ("survival", "low", "high"))
"""Keys of an estimate and the ends of its interval, for an analysis and for one interval of its table."""
NO_FIGURE = "the noise exceeds the rows at risk"


def figure(
    one: PlannedSurvival, schema: Schema, counts: FloatArray, sigma: float, k: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the survival at the planned time, or its difference, with the ends of the interval; NaN if there is none.

    The last axes of ``counts`` are groups, intervals and event.
    """
    at, found = one.last(schema), _groups(one, schema, counts, sigma, k)
    if one.group:
        return difference(found[0], found[1], at)
    alone = found[0].survival
    return alone.value[..., at], alone.low[..., at], alone.high[..., at]


def promise(one: PlannedSurvival, schema: Schema, expected: FloatArray, k: int) -> Callable[[float], float]:
    """Return the promised half-width as a function of σ: the half-width that 9 in 10 simulated purchases do not exceed.

    The counts vary around their expectations like counts of independent rows. The half-width is infinite if more than 1
    in 50 simulated purchases have no interval.
    """
    rng = np.random.default_rng(31)
    sampled, noise = rng.standard_normal((2, DRAWS, *expected.shape))
    rows = np.maximum(expected + np.sqrt(k * expected) * sampled, 0.0)

    def of(sigma: float) -> float:
        _, low, high = figure(one, schema, rows + sigma * noise, sigma, k)
        half = np.sort(np.where(np.isnan(high - low), math.inf, (high - low) / 2))
        if half[math.ceil(SURE * DRAWS) - 1] == math.inf:
            return math.inf
        return float(half[math.ceil(WITHIN * DRAWS) - 1])

    return of


def table(one: PlannedSurvival, schema: Schema, counts: FloatArray, sigma: float, k: int) -> list[dict[str, Any]]:
    """Return one entry for each group and interval; numbers that cannot be estimated because of noise are null."""
    groups = one.group.partition("=")[2].split(":") if one.group else [""]
    out = []
    for group, of in zip(groups, _groups(one, schema, counts, sigma, k), strict=True):
        columns = (of.at_risk, of.events, *(part for ends in (of.hazard, of.survival) for part in ends))
        for t, (end, label) in enumerate(zip(one.ends(schema), schema[one.time].value_names, strict=True)):
            numbers = (float(column[t]) for column in columns)
            out.append(
                {
                    "group": group,
                    "interval": label,
                    "end": end,
                    **{key: x if math.isfinite(x) else None for key, x in zip(NUMBERS, numbers, strict=True)},
                }
            )
    return out


def _groups(one: PlannedSurvival, schema: Schema, counts: FloatArray, sigma: float, k: int) -> list[Survival]:
    exact = one.exact(schema)
    return [survival(counts[..., group, :, :], sigma, k, exact=exact) for group in range(one.many)]


# Text ----------------------------------------------------------------------------------------------------------------


def survival_tables(listed: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the planned analyses of a release that are survival tables."""
    return [one for one in listed if one["kind"] == "survival"]


def survival_named(listed: Iterable[Mapping[str, Any]], text: str) -> Mapping[str, Any]:
    """Return a release's survival table called ``text``, or its only table about that event; raises
    :class:`ProjectError`.
    """
    every = survival_tables(listed)
    exact = [one for one in every if one["name"] == text]
    found = exact or [one for one in every if text in (one["event"], one["event"].partition("=")[0])]
    if len(found) == 1:
        return found[0]
    known = ", ".join(one["name"] for one in every)
    if found:
        raise ProjectError(f"several survival tables are about {text!r}. Name one of {known}", key="analyses")
    why = (
        f"its survival tables are {known}"
        if known
        else 'list an analysis of kind "survival" in the project before a release'
    )
    raise ProjectError(f"this release has no survival table {text!r}; {why}", key="analyses")


def check_survival(one: Mapping[str, Any]) -> None:
    """Raise :class:`ProjectError` for a survival table that a release could not have written."""
    texts = [one.get(key) for key in ("time", "event")] + [one.get("group", "")]
    parts = one.get("table")
    fine = isinstance(parts, list) and all(isinstance(text, str) for text in texts) and _figure(one, FIGURE)
    for part in parts if isinstance(parts, list) else ():
        fine = fine and isinstance(part, dict) and all(isinstance(part.get(key), str) for key in ("group", "interval"))
        fine = fine and all(_figure(part, keys) for keys in FIGURES) and _finite(part.get("at_risk"))
        fine = fine and (part.get("events") is None or _finite(part["events"]))
    if not fine or not (isinstance(one.get("at"), str) or _finite(one.get("at"))):
        raise ProjectError("release.json: a survival table lacks its columns or intervals", key="analyses")


def _figure(found: Mapping[str, Any], keys: Sequence[str]) -> bool:
    """Return whether an estimate and its ends are three numbers, or all null."""
    values = [found.get(key, "") for key in keys]
    return values == [None] * len(keys) or all(map(_finite, values))


def _finite(x: Any) -> bool:
    return type(x) in (int, float) and abs(x) < 1e300  # a larger whole number does not fit into a float


def about(one: Mapping[str, Any]) -> str:
    """Return sentences about a survival table: its columns, and how it counts rows that leave."""
    group = f", by {one['group'].partition('=')[0]}" if one.get("group") else ""
    inside = (
        "Rows without the event are counted as at risk throughout their last interval."
        if one.get("exact")
        else "The counts do not show when rows without the event leave during an interval of time. Confidence "
        "intervals cover every order, and the estimate counts half of these rows as at risk."
    )
    return f"{one['name']}: survival without {one['event']} by {one['time']}{group}. {inside}"


def compared(one: Mapping[str, Any]) -> str:
    """Return the promised figure of the analysis as one sentence."""
    values = one.get("group", "").partition("=")[2].split(":")
    what = f"Survival at {one['at']}" if len(values) < 2 else f"Survival at {one['at']}, {values[0]} minus {values[1]}"
    if one["value"] is None:
        return f"{what}: none, because {NO_FIGURE}."
    return f"{what}: {one['value']:.3f}, 95 % interval {one['low']:.3f} to {one['high']:.3f}."


def line(part: Mapping[str, Any]) -> str:
    """Return one interval of time as text."""
    group = f"{part['group']}, " if part["group"] else ""
    if part["survival"] is None:
        return f"{group}{part['interval']}: {NO_FIGURE}"
    return (
        f"{group}{part['interval']}: {max(part['at_risk'], 0):,.0f} at risk, hazard {shown(part, 'hazard')}, "
        f"survival {shown(part, 'survival')}"
    )


def shown(part: Mapping[str, Any], key: str) -> str:
    """Return a hazard or survival with its interval, or a statement that the noise is too large."""
    low, high = ("hazard_low", "hazard_high") if key == "hazard" else ("low", "high")
    if part[key] is None:
        return NO_FIGURE
    return f"{part[key]:.3f} ({part[low]:.3f} to {part[high]:.3f})"
