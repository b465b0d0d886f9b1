"""Picture for each sample, drawn from figures shipped with the samples.

The figures are computed from invented rows by ``python -m sample_data.stories``, never from the table of a release. A
report shows the picture only if its project has the name and the columns of a sample.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[2] / "sample_data" / "stories.json"
WIDE, HIGH = 440, 230
REAL, OURS = "#5d6a75", "#24684a"
SHIPPED = (
    "The figures come from a typical release of this sample, which is part of Espalier. "
    "All its rows are invented, even the “real” ones, so the figures may be shown."
)
_STYLE = (
    ".story text{font:14px 'Espalier Sans','Source Sans 3','Source Sans',system-ui,sans-serif;fill:#1f2a24}"
    ".story .head{font-weight:600}.story .soft{fill:#4c5751;font-size:13px}"
)


@cache
def stories() -> dict[str, Any]:
    """Return the figures of all samples; empty if they are not shipped."""
    return json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}


def section(facts: Mapping[str, Any]) -> str:
    """Return the report's picture of a sample; empty for every other project."""
    project = facts["project"]
    told = stories().get(project["name"])
    if told is None or told["columns"] != [c["name"] for c in project["schema"]]:
        return ""
    return (
        f'<section class="story"><h2>What this sample shows</h2><figure>{svg(told)}<figcaption>{escape(told["said"])} '
        f"{escape(SHIPPED)} They do not describe this release.</figcaption></figure></section>"
    )


def said(told: dict[str, Any]) -> str:
    """Return the figures of a picture as text."""
    if told["kind"] == "slope":
        parts = [f"{one['name']}: {_to(one['values'])}" for one in told["lines"]]
    elif told["kind"] == "points":
        parts = [f"{p['name']}: gap {100 * p['x']:.0f} points, accuracy {100 * p['y']:.0f} %" for p in told["points"]]
    else:
        parts = [f"{name}: {_to([v for v in values if v is not None])}" for name, values in told["series"].items()]
    return f"{told['title']}. {'; '.join(parts)}. {told['said']}"


def _to(values: list[float]) -> str:
    return " to ".join(f"{v:.2f}" for v in (values[0], values[-1]))


def svg(told: dict[str, Any]) -> str:
    """Return the picture as SVG text."""
    draw = {"slope": _slope, "points": _points, "lines": _lines}[told["kind"]]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="story" role="img" aria-label="{escape(said(told))}" '
        f'viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" height="{HIGH}">'
        f'<style>{_STYLE}</style><rect width="{WIDE}" height="{HIGH}" fill="#ffffff"/>'
        f"{_text(12, 22, told['title'], 'head')}{draw(told)}</svg>"
    )


def _slope(told: dict[str, Any]) -> str:
    left, right, parts = 60, 250, []
    ends: list[float] = []
    for one, color in zip(told["lines"], (REAL, OURS), strict=True):
        ys = [_scaled(v, 0.5, 1.0, 190, 58) for v in one["values"]]
        ends.append(ys[1])
        parts.append(f'<path d="M{left} {ys[0]:.0f}L{right} {ys[1]:.0f}" stroke="{color}" stroke-width="3"/>')
        for x, y, value, anchor, away in (
            (left, ys[0], one["values"][0], "end", -8),
            (right, ys[1], one["values"][1], "start", 8),
        ):
            parts.append(f'<circle cx="{x}" cy="{y:.0f}" r="5" fill="{color}"/>')
            parts.append(_text(x + away, y + 5, f"{value:.3f}", "", anchor))
        parts.append(_text(right + 52, ys[1] + 5, one["name"].replace("learned from ", ""), ""))
    parts.append(_text(left, 215, told["places"][0], "soft", "middle"))
    parts.append(_text(right, 215, told["places"][1], "soft", "middle"))
    return "".join(parts)


def _points(told: dict[str, Any]) -> str:
    points = told["points"]
    most = max(0.05, 1.15 * max(p["x"] for p in points))
    low, high = min(p["y"] for p in points) - 0.02, max(p["y"] for p in points) + 0.02
    parts = [f'<path d="M50 44V186H{WIDE - 20}" stroke="#8796a5" fill="none"/>']
    for p, color in zip(points, (REAL, "#9a6a12", OURS), strict=True):
        x, y = _scaled(p["x"], 0, most, 50, WIDE - 40), _scaled(p["y"], low, high, 180, 56)
        anchor, away = ("end", -10) if x > WIDE / 2 else ("start", 10)
        parts.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="7" fill="{color}"/>')
        parts.append(
            _text(x + away, y + 5, f"{p['name']} ({100 * p['x']:.0f} points, {100 * p['y']:.0f} %)", "", anchor)
        )
    parts.append(_text(WIDE / 2, 215, told["axes"][0], "soft", "middle"))
    parts.append(
        f'<text class="soft" transform="translate(28 130) rotate(-90)" text-anchor="middle">{told["axes"][1]}</text>'
    )
    return "".join(parts)


def _lines(told: dict[str, Any]) -> str:
    every = [v for values in told["series"].values() for v in values if v is not None]
    top, groups, parts = 1.15 * max(every), told["groups"], []
    left = 50 if len(groups) > 3 else 110
    step = (WIDE - 30 - left - (left - 50)) / max(len(groups) - 1, 1)
    for number, ((name, values), color) in enumerate(zip(told["series"].items(), (REAL, OURS), strict=True)):
        known = [(left + i * step, _scaled(v, 0, top, 180, 50)) for i, v in enumerate(values) if v is not None]
        dash = ' stroke-dasharray="6 4"' if number else ""
        line = "L".join(f"{x:.0f} {y:.0f}" for x, y in known)
        parts.append(f'<path d="M{line}" stroke="{color}" stroke-width="3" fill="none"{dash}/>')
        parts += [f'<circle cx="{x:.0f}" cy="{y:.0f}" r="4" fill="{color}"/>' for x, y in known]
        parts.append(_text(60 + 90 * number, 44, name, "", color=color))
    for i in range(0, len(groups), max(1, len(groups) // 6)):
        parts.append(_text(left + i * step, 204, groups[i], "soft", "middle"))
    for value in (0.0, top / 1.15):
        shown = f"{value:.2g}" if top > 2 else f"{100 * value:.0f} %"
        parts.append(_text(42, _scaled(value, 0, top, 180, 50) + 5, shown, "soft", "end"))
    return "".join(parts)


def _scaled(value: float, low: float, high: float, at_low: float, at_high: float) -> float:
    return at_low + (value - low) / (high - low) * (at_high - at_low)


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start", color: str = "") -> str:
    fill = f' style="fill:{color}"' if color else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}" text-anchor="{anchor}"{fill}>{escape(text)}</text>'
