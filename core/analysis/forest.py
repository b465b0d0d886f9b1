"""Forest plot of answers as SVG, with one line for each number and its interval, and the same numbers as CSV.

Ratios share a logarithmic axis with a line at 1. Shares and differences share a linear axis with a line at 0. Means
have an axis for each column. A number without an interval is a hollow point.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from espalier.core.analysis.answer_text import BADGES, shown
from espalier.core.analysis.answers import Answer
from espalier.core.csv_safety import defuse

STYLE = (
    "text{font-family:'Source Sans 3','Source Sans Pro','Source Sans',system-ui,sans-serif;fill:#1f2a24}"
    ".soft{fill:#4c5751}.head{font-weight:600}.axis{stroke:#8796a5;stroke-width:1}.zero{stroke:#5d6a63;stroke-width:1;"
    "stroke-dasharray:4 3}.arm{stroke:#24684a;stroke-width:2.5}.point{fill:#24684a;stroke:#24684a;stroke-width:2}"
    ".hollow{fill:none}.dark text{fill:#e6ebe7}.dark .soft{fill:#c3cac5}.dark .zero{stroke:#aab4ae}"
    ".dark .arm,.dark .point{stroke:#6cc497}.dark .point{fill:#6cc497}.dark .hollow{fill:none}"
)
NARROW = 600
"""Width in pixels below which a number's text is above its interval."""


@dataclass(frozen=True)
class Line:
    """One number: the ``question`` it answers, its ``scale`` ("ratio", "share" or a unit), and the answer."""

    question: str
    scale: str
    answer: Answer

    @property
    def text(self) -> str:
        """The estimate with its interval, as text."""
        a = self.answer
        if not math.isfinite(a.value):
            return "no estimate"
        return (
            shown(a.value)
            if a.low is None or a.high is None
            else f"{shown(a.value)} ({shown(a.low)} to {shown(a.high)})"
        )


def to_csv(lines: Iterable[Line]) -> str:
    """Return the numbers as CSV, at full precision; names that a spreadsheet would read as formulas are escaped."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("question", "number", "estimate", "low", "high", "level", "together", "answer", "reason"))
    for line in lines:
        a = line.answer
        ends = ("" if end is None else f"{end:.10g}" for end in (a.low, a.high))
        value = f"{a.value:.10g}" if math.isfinite(a.value) else ""
        names = defuse(line.question), defuse(a.name)
        writer.writerow((*names, value, *ends, f"{a.level:g}", a.family, BADGES[a.badge.kind], a.badge.sentence))
    return out.getvalue()


def svg(lines: Sequence[Line], width: int = 880) -> str:
    """Return the picture as SVG text; empty if no number can be shown."""
    drawn = [line for line in lines if math.isfinite(line.answer.value)]
    narrow, parts, y = width < NARROW, [], 8.0
    for scale in dict.fromkeys(line.scale for line in drawn):
        made, y = _panel([line for line in drawn if line.scale == scale], scale, width, narrow, y)
        parts += made
    if not drawn:
        return ""
    said = "; ".join(f"{line.answer.name}: {line.text}" for line in drawn[:40])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="light" role="img" aria-label="{escape(said)}" '
        f'viewBox="0 0 {width} {y:.0f}" width="{width}" height="{y:.0f}"><style>{STYLE}</style>{"".join(parts)}</svg>'
    )


def _panel(lines: Sequence[Line], scale: str, width: int, narrow: bool, y: float) -> tuple[list[str], float]:
    left, right = (12.0, width - 16.0) if narrow else (0.44 * width, width - 190.0)
    axis = Axis.of(lines, scale == "ratio", left, right)
    title = {"ratio": "Ratio (logarithmic axis)", "share": "Share or difference of shares"}.get(scale, scale)
    parts = [_text(0, y + 14, title, "head", 15)]
    top = y = y + 26
    question = ""
    for line in lines:
        if line.question != question:
            question = line.question
            for piece in wrapped(question, round(width / 7.2) if narrow else round(0.42 * width / 6.6)):
                parts.append(_text(0, y + 14, piece, "soft", 13))
                y += 17
            y += 5
        name = wrapped(line.answer.name, round(width / 7.6) if narrow else round(0.42 * width / 7.2))
        for i, piece in enumerate(name):
            parts.append(_text(8, y + 15 + 17 * i, piece, "", 14))
        if narrow:
            y += 17 * len(name)
            parts.append(_text(8, y + 15, line.text, "", 14))
            y += 19
            middle, y = y + 9, y + 24
            parts += axis.zero(middle - 8, middle + 8)  # between the lines of text
        else:
            parts.append(_text(right + 16, y + 15, line.text, "", 14))
            middle, y = y + 10, y + max(24, 17 * len(name) + 6)
        parts += axis.mark(line.answer, middle)
    return [*axis.drawn(y), *([] if narrow else axis.zero(top, y + 4)), *parts], y + 44


@dataclass(frozen=True)
class Axis:
    """An axis from ``low`` to ``high`` (logarithms, for ratios) between two positions in pixels."""

    low: float
    high: float
    left: float
    right: float
    ratio: bool

    @classmethod
    def of(cls, lines: Sequence[Line], ratio: bool, left: float, right: float) -> Axis:
        """Return an axis for all lines. It includes 1 for ratios and 0 for shares; for means, it need not include 0."""
        ends = [e for line in lines for e in (line.answer.value, line.answer.low, line.answer.high) if e is not None]
        ends = [e for e in ends if math.isfinite(e) and (not ratio or e > 0)]
        if ratio:
            ends = [math.log(min(max(e, 0.01), 100.0)) for e in ends] + [0.0]
        elif lines[0].scale == "share":
            ends.append(0.0)
        low, high = min(ends, default=0.0), max(ends, default=1.0)
        room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
        return cls(low - room, high + room, left, right, ratio)

    def at(self, value: float) -> float:
        """Return the position of a value in pixels, within the axis."""
        x = math.log(min(max(value, 1e-9), 1e9)) if self.ratio else value
        share = (x - self.low) / (self.high - self.low)
        return self.left + min(max(share, 0.0), 1.0) * (self.right - self.left)

    def ticks(self) -> list[float]:
        """Return four to eight round values on the axis."""
        if self.ratio:
            every = [m * 10.0**k for k in range(-3, 4) for m in (1, 2, 5)]
            found = [v for v in every if self.low <= math.log(v) <= self.high]
            if len(found) >= 3:
                return found[:: max(1, len(found) // 6)]
            low, high = math.exp(self.low), math.exp(self.high)
        else:
            low, high = self.low, self.high
        step = 10.0 ** math.floor(math.log10((high - low) / 4))
        step *= next(m for m in (1, 2, 2.5, 5, 10) if (high - low) / (m * step) <= 6)
        first = math.ceil(low / step)
        return [round(i * step, 12) for i in range(first, math.floor(high / step) + 1)]

    def drawn(self, bottom: float) -> list[str]:
        """Return the axis below its lines, with its ticks."""
        parts = [f'<path class="axis" d="M{self.left:.0f} {bottom + 4:.0f}H{self.right:.0f}"/>']
        for value in self.ticks():
            x = self.at(value)
            parts.append(f'<path class="axis" d="M{x:.1f} {bottom + 4:.0f}v5"/>')
            parts.append(_text(x, bottom + 23, f"{value:.10g}", "soft", 13, "middle"))
        return parts

    def zero(self, top: float, bottom: float) -> list[str]:
        """Return the dashed line at a ratio of 1 or a difference of 0, if it is on the axis."""
        if not self.low <= 0.0 <= self.high:  # the logarithm of 1
            return []
        x = self.at(1.0 if self.ratio else 0.0)
        return [f'<path class="zero" d="M{x:.1f} {top:.0f}V{bottom:.0f}"/>']

    def mark(self, answer: Answer, y: float) -> list[str]:
        """Return the interval and the point of one number."""
        x = self.at(answer.value)
        if answer.low is None or answer.high is None:
            return [f'<circle class="point hollow" cx="{x:.1f}" cy="{y:.1f}" r="5"/>']
        return [
            f'<path class="arm" d="M{self.at(answer.low):.1f} {y:.1f}H{self.at(answer.high):.1f}"/>',
            f'<rect class="point" x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10"/>',
        ]


def wrapped(text: str, most: int) -> list[str]:
    """Return the lines of ``text``, each of at most ``most`` characters. A longer word is cut."""
    out = [""]
    for word in text.split():
        word = word if len(word) <= most else word[: most - 1] + "…"
        if out[-1] and len(out[-1]) + 1 + len(word) > most:
            out.append(word)
        else:
            out[-1] = f"{out[-1]} {word}".strip()
    return out


def _text(x: float, y: float, text: str, kind: str, size: int, anchor: str = "start") -> str:
    kind_of = f' class="{kind}"' if kind else ""
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}"{kind_of}{at}>{escape(text)}</text>'
