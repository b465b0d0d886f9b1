"""Planned analyses as text: the estimate, the promise, and the assumptions of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def sentence(one: dict[str, Any]) -> str:
    """Return a plan's entry as one sentence, with its assumptions."""
    promised = "no promise" if one["promised"] is None else f"± {one['promised']:.3g}"
    wanted = "" if one["wanted"] is None else f" (desired ± {one['wanted']:.3g})"
    cannot = "" if one["reachable"] else " No budget reaches the desired width with this number of rows."
    given = one["assumed"]
    scale = " on the log scale" if one["kind"] == "odds_ratio" else ""
    return (
        f"{one['name']}: {promised}{scale}{wanted}, for {given['rows']:,.0f} rows, {assumptions(one['kind'], given)}."
        f"{cannot}"
    )


def asked(one: Mapping[str, Any]) -> str:
    """Describe the estimate of an analysis, from its entry in a project or in ``release.json``."""
    if one["kind"] == "survival":
        return ", ".join(filter(None, (f"{one['time']} to {one['event']}", f"at {one['at']}", one.get("group"))))
    if one["kind"] == "regression":
        return f"{one.get('term') or 'the first coefficient'} of {one['outcome']} on {', '.join(one['on'])}"
    adjust = one.get("adjust")
    adjusted = () if adjust is None else ("adjusted for", ", ".join(adjust) or "nothing")
    return " ".join(filter(None, (one["event"], one.get("group"), one.get("among"), *adjusted)))


def assumptions(kind: str, given: Mapping[str, Any]) -> str:
    """Return the declared assumptions of an analysis as text."""

    def listed(values: Iterable[float]) -> str:
        return "/".join(f"{x:.3g}" for x in values)

    if kind == "regression":
        parts = [f"{name} {listed(values)}" for name, values in given.get("shares", {}).items()]
        for key, called in (("means", "mean"), ("spreads", "standard deviation")):
            parts += [f"{called} of {name} {value:.4g}" for name, value in given.get(key, {}).items()]
        parts += [f"correlation of {a} and {b} {r:.2g}" for a, b, r in given.get("correlations", [])]
        return "; ".join(parts) or "evenly spread, independent values"
    if kind == "survival":
        return f"event shares {listed(given['shares'])}, group shares {listed(given['groups'])}, evenly spread times"
    strata = f", stratum shares {listed(given['strata'])}" if "strata" in given else ""
    return f"event shares {listed(given['shares'])}, group shares {listed(given['groups'])}{strata}"
