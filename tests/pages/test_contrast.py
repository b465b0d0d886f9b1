"""Contrast of the text in charts and pictures, computed: axe leaves SVG text undecided. At least 4.5:1 (WCAG 1.4.3)."""

from __future__ import annotations

import re
import tomllib

import pytest

from espalier.core.analysis import forest
from espalier.core.report import drawing_picture, story, style
from espalier.pages.common import charts
from tests.support.app import ROOT

THEME = tomllib.loads((ROOT / ".streamlit/config.toml").read_text("utf-8"))["theme"]
ENOUGH = 4.5


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_measure_is_the_known_one():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_chart_text_is_legible(monkeypatch, scheme):
    ink = "#e6ebe7" if scheme == "dark" else "#1f2a24"
    monkeypatch.setattr(charts, "_ink", lambda: ink)
    figures = [
        charts.bars(["AUC"], {"a": [0.7], "b": [0.8]}, "share", (charts.REAL, charts.SYNTHETIC)),
        charts.lying(["x"], {"a": [0.1]}, "share", (charts.REAL,)),
        charts.pair_map(["a", "b"], {("a", "b"): 0.1})[0],
        charts.by_epsilon({"MST": [(1.0, 0.7, (0.6, 0.8))]}, "AUC"),
    ]
    ground = THEME[scheme]["backgroundColor"]
    for figure in figures:
        charts.legible(figure)
        layout = figure.layout
        colors = [layout.font.color, layout.legend.font.color, layout.xaxis.tickfont.color, layout.yaxis.tickfont.color]
        colors += [t.textfont.color for t in figure.data if t.type == "bar"]
        assert min(contrast(color, ground) for color in colors) >= ENOUGH


def of_text(sheet: str, dark: bool) -> list[str]:
    """Fill colours of text in the style of an SVG."""
    found = re.findall(r"(\.dark )?(?:text|\.soft|\.head)\{[^}]*?fill:(#[0-9a-f]{6})", sheet)
    return [color for own, color in found if bool(own) == dark]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_of_the_forest_plot_is_legible(scheme):
    colors = of_text(forest.STYLE, scheme == "dark")
    assert len(colors) == 2
    for color in colors:
        assert contrast(color, THEME[scheme]["backgroundColor"]) >= ENOUGH


def test_names_in_the_boxes_of_the_picture_are_legible():
    [ink] = of_text(drawing_picture.STYLE, dark=False)
    grounds = re.findall(r"rect\{fill:(#[0-9a-f]{6})", drawing_picture.STYLE)
    assert len(grounds) == 5
    for ground in grounds:
        assert contrast(ink, ground) >= ENOUGH


def test_text_of_the_stories_is_legible_on_their_paper():
    for color in (*of_text(story._STYLE, dark=False), story.REAL, story.OURS):
        assert contrast(color, "#ffffff") >= ENOUGH


def test_text_of_the_report_is_legible_on_all_its_grounds():
    light, dark = style.STYLE.split("@media (prefers-color-scheme: dark)")[:2]
    for sheet in (light, dark.split("svg.release")[0]):
        named = dict(re.findall(r"--(\w+): (#[0-9a-f]{3,6})", sheet))
        named = {k: v if len(v) == 7 else "#" + "".join(2 * c for c in v[1:]) for k, v in named.items()}
        for ground in ("paper", "good", "care", "bad"):
            assert contrast(named["ink"], named[ground]) >= ENOUGH
        assert contrast(named["soft"], named["paper"]) >= ENOUGH


def blended(color: str, ground: str, opacity: float) -> str:
    pairs = [(int(color[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(opacity * top + (1 - opacity) * low):02x}" for top, low in pairs)


@pytest.mark.parametrize(("dark", "ground"), [(False, "#ffffff"), (True, "#151a1f")])
def test_lines_of_the_picture_are_visible(dark, ground):
    """Lines that convey meaning need a contrast of 3:1 (WCAG 1.4.11), including their opacity."""
    for kind in ("line", "thin", "drowned", "faded", "refused", "together"):
        rules = re.findall(rf"(\.dark )?\.{kind}\b[^{{}}]*\{{stroke:(#[0-9a-f]{{6}})", drawing_picture.STYLE)
        own = {bool(at): color for at, color in rules}
        opacity = re.search(rf"\.{kind}\{{[^}}]*opacity:(\.\d+)", drawing_picture.STYLE)
        shown = blended(own[dark], ground, float(opacity[1]) if opacity else 1.0)
        assert contrast(shown, ground) >= 3, kind
