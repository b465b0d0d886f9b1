"""Results that are either a figure or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Figure = float | str
"""An intermediate result: the number, or the reason why there is none."""


def split(figures: Mapping[str, Figure]) -> dict[str, Any]:
    """Return keyword arguments for a result: each number or `None`, and ``reasons`` by name."""
    values: dict[str, Any] = {k: None if isinstance(v, str) else v for k, v in figures.items()}
    return {**values, "reasons": {k: v for k, v in figures.items() if isinstance(v, str)}}


def shown(result: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the figures ``names`` of a result for JSON. A null figure comes with its ``…_reason``."""
    out: dict[str, Any] = {}
    for name in names:
        out[name] = getattr(result, name)
        if name in result.reasons:
            out[f"{name}_reason"] = result.reasons[name]
    return out
