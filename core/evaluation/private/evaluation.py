"""Private evaluation: its figures with intervals, and its section of ``release.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.privacy.draws import Draw, Measurement

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PrivateFigure:
    """A figure that may be shared, or the reason why the held-out rows do not support it.

    ``value`` lies in ``low`` … ``high``, the interval at 95 %; ``method`` describes how it was computed. ``about`` is
    the condition of CMI if it differs from the project's own admissible columns. ``bound`` is an interval that needs no
    assumption, or that is available even if the rows allow no other. For AUC it is valid for any positions of the
    scores inside their bins; for CMI it comes from the entropy of its columns.
    """

    name: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = ""
    reason: str = ""
    about: str = ""
    bound: tuple[float, float] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``release.json``. A null value comes with a reason."""
        facts: dict[str, Any] = {"figure": self.name, "value": self.value}
        bound = {"bound": list(self.bound)} if self.bound is not None else {}
        if self.value is None:
            return {**facts, "reason": self.reason, **bound}
        about = {**({"about": self.about} if self.about else {}), **bound}
        return {**facts, "low": self.low, "high": self.high, "confidence": 0.95, "method": self.method, **about}


def bounded(figure: Mapping[str, Any]) -> str:
    """Return the bound of a figure's entry in ``release.json`` as a sentence; empty without a bound."""
    if figure.get("bound") is None:
        return ""
    low, high = figure["bound"]
    if figure["figure"] == "cmi":
        return f"CMI is at most {high:.3f}, because it cannot exceed the entropy of its columns."
    return f"The AUC is between {low:.3f} and {high:.3f} for any positions of the scores inside their bins."


@dataclass(frozen=True)
class PrivateEvaluation:
    """Purchases on the held-out part, and the resulting figures. ``rows`` is n if it is public, else a noisy
    estimate.
    """

    share: float
    by: str
    target: str | None
    rows: int
    rho: float
    measurements: tuple[Measurement, ...]
    figures: tuple[PrivateFigure, ...]
    draws: tuple[Draw, ...] = ()
    target_values: int | None = None

    @property
    def accuracy_baseline(self) -> float | None:
        """Accuracy of always guessing the target's most common value, according to the noisy counts of the
        target. ``target_values`` is the number of its values except the missing cell, which is never guessed.

        This is post-processing, so it costs nothing; `None` if the target was not counted separately.
        """
        made = [m for m in self.measurements if m.clique == (self.target,)]
        if not made:
            return None
        counts = np.maximum(combined(made)[0][: self.target_values], 0.0)
        return float(counts.max() / counts.sum()) if counts.sum() > 0 else None

    def to_json(self) -> dict[str, Any]:
        """Return the section ``looking`` of ``release.json``."""
        return {
            "private": True,
            "share": self.share,
            "by": self.by,
            "target": self.target,
            "rows": self.rows,
            "rho": self.rho,
            "why": WHY,
            "accuracy_baseline": self.accuracy_baseline,
            "measurements": [
                {"columns": list(m.clique), "pool": m.pool, "cells": m.values.size, "rho": m.rho, "sigma": m.sigma}
                for m in self.measurements
            ],
            "figures": [f.to_json() for f in self.figures],
        }


WHY = (
    "These measurements read only people (rows) held out at random, whom the release's own measurements and choices "
    "did not use. No one is in both parts, so both together cost the larger of the two sums of ρ, not their sum. The ρ "
    "spent is the release's; this section's ρ is no larger and is not added."
)


def combined(measurements: Sequence[Measurement]) -> tuple[FloatArray, float]:
    """Combine several noisy counts of one clique, weighted by precision; return the result and its σ."""
    weights = np.array([m.sigma**-2 for m in measurements])
    values = sum(w * m.values for w, m in zip(weights, measurements, strict=True)) / weights.sum()
    return np.asarray(values), float(weights.sum() ** -0.5)
