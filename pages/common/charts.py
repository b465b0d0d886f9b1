"""Plotly figures: transparent, in Streamlit's theme, legible in light and dark mode, with a unit on every axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import streamlit as st

from espalier.core.ledger.population import Population
from espalier.core.methods.pools import pool_in_words
from espalier.core.planning.budget_lines import Line

if TYPE_CHECKING:
    import plotly.graph_objects as go

REAL, SYNTHETIC, MODEL = "#8796a5", "#3f9a6b", "#c58a2b"
MARK = "#d1495b"
MOST_LEVEL = 8
"""Above this number of bars, the figures on them are vertical so that they do not overlap."""
MOST_SEGMENTS = 30
"""Maximum number of measurements or choices in a pool that are drawn as separate segments."""
MOST_DOWN, MOST_ACROSS = 60, 20
"""Maximum number of labels to the left of a map and below it."""
POOLS = ("#3f9a6b", "#c58a2b", "#5b8fc7", "#b0699c", "#8796a5")


def show(figure: go.Figure, key: str, alt: str, on_select: Callable[[], None] | None = None) -> None:
    """Draw a figure without a toolbar; a click on a point calls ``on_select``."""
    config = {"displayModeBar": False, "staticPlot": False}
    legible(figure)
    if on_select is None:
        st.plotly_chart(figure, key=key, config=config, alt=alt)
    else:
        figure.update_layout(dragmode=False)
        st.plotly_chart(figure, key=key, config=config, alt=alt, on_select=on_select, selection_mode="points")


def legible(figure: go.Figure) -> None:
    """Use the page's text colour for a figure. Streamlit's grey has a contrast of only 3.6:1; 4.5:1 is required."""
    ink = _ink()
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(tickfont={"color": ink}, title={"font": {"color": ink}})
    figure.update_layout(font={"color": ink}, legend={"font": {"color": ink}})
    figure.update_traces(textfont={"color": ink}, selector=_plain_text)
    figure.update_traces(
        colorbar={"tickfont": {"color": ink}, "title": {"font": {"color": ink}}}, selector={"type": "heatmap"}
    )


def _plain_text(trace: Any) -> bool:
    """Return whether a trace draws text outside its marks without setting a text colour."""
    outside = trace.type == "bar" or (trace.type == "scatter" and trace.mode == "text")
    return outside and trace.textfont.color is None


def blank(height: int, **layout: Any) -> go.Figure:
    """Return an empty, transparent figure without margins."""
    import plotly.graph_objects as go

    axis = {"fixedrange": True, "automargin": True}
    return go.Figure(  # Plotly is several times slower if the layout is updated later
        layout={
            "height": height,
            "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0, "title": None},
            "bargap": 0.35,
            "xaxis": axis,
            "yaxis": axis,
            **layout,
        }
    )


def short(text: str, most: int = 34) -> str:
    """Return a label short enough for the chart; angle brackets are escaped."""
    text = text if len(text) <= most else text[: most - 1] + "…"
    return text.replace("&", "&amp;").replace("<", "&lt;")


def budget(lines: Sequence[Line], total: float, *, pure: bool = False) -> go.Figure:
    """Draw each pool's share of ρ, or of ε under a ``pure`` budget. Each segment is one measurement or choice; a pool
    with more than `MOST_SEGMENTS` is drawn as one segment, because narrower segments would blur into stripes.
    """
    import plotly.graph_objects as go

    named = {pool: pool_in_words(pool) for pool in dict.fromkeys(line.pool for line in lines)}
    pools = list(dict.fromkeys(named.values()))
    unit = "ε" if pure else "ρ"

    def cost(line: Line) -> float:
        return line.epsilon or 0.0 if pure else line.rho

    figure = blank(70 + 44 * len(pools), barmode="stack", showlegend=False)
    rows: list[tuple[str, float, str, str]] = []
    for pool, color in zip(pools, cycle(POOLS), strict=False):
        inside = [line for line in lines if named[line.pool] == pool]
        if len(inside) > MOST_SEGMENTS:
            many = f"{len(inside)} measurements or choices"
            rows.append((pool, 100 * math.fsum(map(cost, inside)) / total, many, color))
        else:
            rows += [(pool, 100 * cost(line) / total, short(line.what, 60), color) for line in inside]
    figure.add_trace(
        go.Bar(
            y=[r[0] for r in rows],
            x=[r[1] for r in rows],
            orientation="h",
            customdata=[r[2] for r in rows],
            marker={"color": [r[3] for r in rows], "line": {"width": 0.6, "color": "rgba(255,255,255,.55)"}},
            hovertemplate=f"%{{customdata}}<br>%{{x:.2f}} % of {unit}<extra></extra>",
        )
    )
    figure.update_xaxes(title=f"share of the budget {unit} (%)")
    figure.update_yaxes(autorange="reversed", title=None)
    return figure


def ledger(people: Population, following: float, called: str = "the open plan") -> go.Figure:
    """Draw one bar in ρ: the cost of each entry, the cost of the next plan (named ``called``), and the remainder."""
    import plotly.graph_objects as go

    figure = blank(150, barmode="stack", showlegend=True)
    counted = [e for e in people.entries if e.counted > 0]
    shown = [(f"{e.project}, ε = {e.epsilon:g}", e.counted, e.status) for e in counted[-60:]]
    if rest := sum(e.counted for e in counted[:-60]):
        shown.insert(0, (f"{len(counted) - 60} earlier entries", rest, "spent"))
    parts = {
        "spent": ([(t, r) for t, r, s in shown if s == "spent"], POOLS[0]),
        "reserved": ([(t, r) for t, r, s in shown if s == "reserved"], POOLS[1]),
        called: ([(called, following)] if following else [], POOLS[2]),
        "left": ([("left", max(people.after(following), 0.0))], "rgba(135,150,165,.25)"),
    }
    for label, (segments, color) in parts.items():
        if segments:
            figure.add_trace(
                go.Bar(
                    y=["ρ"] * len(segments),
                    x=[r for _, r in segments],
                    orientation="h",
                    name=label,
                    marker={"color": color, "line": {"width": 0.6, "color": "rgba(255,255,255,.55)"}},
                    customdata=[short(t, 60) for t, _ in segments],
                    hovertemplate="%{customdata}<br>ρ = %{x:.4g}<extra>" + label + "</extra>",
                )
            )
    figure.update_layout(legend_traceorder="normal")
    figure.update_xaxes(title="ρ", range=[0, people.rho])
    figure.update_yaxes(showticklabels=False, title=None)
    return figure


def bars(
    names: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    unit: str,
    colors: Sequence[str | Sequence[str]],
    top: float | None = None,
    figures: str = ".3f",
    whiskers: Mapping[str, Sequence[tuple[float, float] | None]] | None = None,
    marks: tuple[str, Sequence[float | None]] | None = None,
) -> go.Figure:
    """Return grouped upright bars with intervals as whiskers and a mark for each name.

    Figures appear above each bar and whisker; crowded bars show theirs on hover.
    """
    import plotly.graph_objects as go

    figure = blank(300, barmode="group", showlegend=len(series) > 1)
    crowded = len(names) * len(series) > MOST_LEVEL
    lifted = bool(whiskers or marks)
    air = 0.015 * (top or _fitted(series, whiskers, marks))
    for (label, values), color in zip(series.items(), colors, strict=False):
        ends = (whiskers or {}).get(label) or [None] * len(values)
        arms = [(e[1] - v, v - e[0]) if e and v is not None else (0.0, 0.0) for e, v in zip(ends, values, strict=True)]
        figure.add_trace(
            go.Bar(
                x=[short(n) for n in names],
                y=list(values),
                name=label,
                showlegend=bool(label),
                marker={"color": color},
                cliponaxis=False,
                offsetgroup=f"of {label}",
                text=None if lifted else ["" if v is None else f"{v:{figures}}" for v in values],
                textposition="outside",
                textangle=-90 if crowded else 0,
                constraintext="none",
                error_y={
                    "array": [a for a, _ in arms],
                    "arrayminus": [b for _, b in arms],
                    "visible": bool(whiskers),
                    "color": _ink(),
                },
                hovertemplate="%{x}: %{y:.4g}<extra>" + label + "</extra>",
            )
        )
        if lifted and not crowded:
            over = marks[1] if marks else [None] * len(values)
            reach = [max(e[1] if e else 0, v or 0, m or 0) + air for e, v, m in zip(ends, values, over, strict=True)]
            figure.add_trace(
                go.Scatter(
                    x=[short(n) for n in names],
                    y=reach,
                    offsetgroup=f"of {label}",
                    text=["" if v is None else f"{v:{figures}}" for v in values],
                    mode="text",
                    textposition="top center",
                    cliponaxis=False,
                    showlegend=False,
                    hoverinfo="skip",
                )
            )
    if lifted:
        figure.update_layout(scattermode="group", scattergap=0.35)
    if marks:
        figure.add_trace(
            go.Scatter(
                x=[short(n) for n in names],
                y=list(marks[1]),
                name=marks[0],
                offsetgroup=f"of {next(iter(series))}",
                mode="markers",
                marker={"symbol": "line-ew", "size": 46, "line": {"width": 3, "color": MARK}},
                cliponaxis=False,
                hovertemplate="%{x}: %{y:.4g}<extra>" + marks[0] + "</extra>",
            )
        )
        figure.update_layout(showlegend=True)
    figure.update_yaxes(title=unit, range=[0, top + 0.15 * crowded if top else _fitted(series, whiskers, marks)])
    figure.update_xaxes(type="category")
    return figure


def coin_toss(figure: go.Figure, start: float, end: float) -> go.Figure:
    """Add a line at an AUC of 0.5 across the categories from ``start`` to ``end``."""
    line = {"color": MARK, "width": 2, "dash": "dot"}
    figure.add_shape(type="line", x0=start, x1=end, y0=0.5, y1=0.5, line=line)
    figure.add_annotation(
        x=start, y=0.5, text="coin toss", showarrow=False, xanchor="left", yanchor="bottom", font={"size": 12}
    )
    return figure


def by_epsilon(lines: Mapping[str, Sequence[tuple[float, float, tuple[float, float] | None]]], unit: str) -> go.Figure:
    """Draw one line per method over a logarithmic ε axis; the points are (ε, figure, interval)."""
    import plotly.graph_objects as go

    figure = blank(330, showlegend=True)
    symbols = ("circle", "square", "diamond", "triangle-up", "x", "star")
    for (label, points), color, symbol in zip(lines.items(), cycle(POOLS), cycle(symbols), strict=False):
        points = sorted(points)
        figure.add_trace(
            go.Scatter(
                x=[p[0] for p in points],
                y=[p[1] for p in points],
                name=short(label, 60),
                mode="lines+markers",
                line={"color": color, "dash": "dot" if "no fence" in label else "solid"},
                marker={"symbol": symbol, "size": 10},
                error_y={
                    "array": [p[2][1] - p[1] if p[2] else 0.0 for p in points],
                    "arrayminus": [p[1] - p[2][0] if p[2] else 0.0 for p in points],
                    "color": color,
                },
                hovertemplate="ε = %{x:g}: %{y:.3f}<extra>" + short(label, 60) + "</extra>",
            )
        )
    every = sorted({p[0] for points in lines.values() for p in points})
    figure.update_xaxes(
        title="ε", type="log", tickmode="array", tickvals=every, ticktext=[f"{epsilon:g}" for epsilon in every]
    )
    figure.update_yaxes(title=unit)
    figure.update_layout(legend={"yanchor": "top", "y": -0.25})
    return figure


def _ink() -> str:
    """Return colours that are visible on bars and on the page, in light and dark themes."""
    return "#e6ebe7" if st.context.theme.type == "dark" else "#1f2a24"


def wrapped(figure: go.Figure, names: Sequence[str]) -> go.Figure:
    """Wrap each name at its commas, so that it fits under its bar."""
    labels = [short(n) for n in names]
    lines = [label.replace(", ", "<br>") for label in labels]
    figure.update_xaxes(tickmode="array", tickvals=labels, ticktext=lines, tickangle=0)
    return figure


def front(points: Sequence[tuple[str, float | None, float | None, bool]], x: str, y: str) -> go.Figure:
    """Draw plans as numbered points: undominated plans are filled, the others are hollow. Better plans are towards the
    upper left.
    """
    import plotly.graph_objects as go

    figure = blank(320, showlegend=False)
    for number, (name, across, up, best) in enumerate(points, 1):
        if across is not None and up is not None:
            symbol = "circle" if best else "circle-open"
            figure.add_trace(
                go.Scatter(
                    x=[across],
                    y=[up],
                    text=[f"<b>{number}</b>"],
                    textfont={"color": "#10201a"} if best else None,
                    mode="markers+text",
                    textposition="middle center",
                    cliponaxis=False,
                    marker={"size": 24, "color": SYNTHETIC if best else REAL, "symbol": symbol, "line": {"width": 2}},
                    hovertemplate=f"{short(name)}<br>%{{x:.3g}}, %{{y:.3g}}<extra></extra>",
                )
            )
    figure.update_xaxes(title=f"{x} (lower is better)")
    figure.update_yaxes(title=f"{y} (higher is better)")
    return figure


def _fitted(
    series: Mapping[str, Sequence[float | None]],
    whiskers: Mapping[str, Sequence[tuple[float, float] | None]] | None,
    marks: tuple[str, Sequence[float | None]] | None,
) -> float:
    """Return the upper limit of an axis that shows every bar, whisker and mark, with room for a figure above."""
    reached = [v for values in (*series.values(), *([marks[1]] if marks else [])) for v in values if v is not None]
    reached += [end[1] for ends in (whiskers or {}).values() for end in ends if end is not None]
    return 1.18 * max(reached, default=0.0) or 1.0


def lying(
    names: Sequence[str], series: Mapping[str, Sequence[float | None]], unit: str, colors: Sequence[str]
) -> go.Figure:
    """Return grouped horizontal bars, for many or long names; the first name is at the top."""
    import plotly.graph_objects as go

    figure = blank(70 + (18 + 12 * len(series)) * max(len(names), 1), barmode="group", showlegend=len(series) > 1)
    labels = [short(n, 44) for n in names]
    for (label, values), color in zip(series.items(), colors, strict=False):
        figure.add_trace(
            go.Bar(
                y=list(range(len(names))),
                x=list(values),
                name=label,
                orientation="h",
                marker_color=color,
                customdata=labels,
                hovertemplate="%{customdata}: %{x:.4g}<extra>" + label + "</extra>",
            )
        )
    figure.update_xaxes(title=unit, rangemode="tozero")
    figure.update_yaxes(autorange="reversed", tickmode="array", tickvals=list(range(len(names))), ticktext=labels)
    return figure


def pair_map(names: Sequence[str], errors: Mapping[tuple[str, ...], float]) -> tuple[go.Figure, list[tuple[str, ...]]]:
    """Draw every pair's error as the shade of a cell. Also return the pairs in the order of the clickable points."""
    import plotly.graph_objects as go

    at = {n: i for i, n in enumerate(names)}
    cells = list(errors)
    grid: list[list[float | None]] = [[None] * len(names) for _ in names]
    for (a, b), value in errors.items():
        grid[max(at[a], at[b])][min(at[a], at[b])] = value
    figure = blank(140 + max(16 * len(names), 120), showlegend=False)
    bar = {"title": "error", "thickness": 10}
    figure.add_trace(go.Heatmap(z=grid, colorscale="Greens", zmin=0, hoverinfo="skip", xgap=1, ygap=1, colorbar=bar))
    figure.add_trace(
        go.Scatter(
            x=[min(at[a], at[b]) for a, b in cells],
            y=[max(at[a], at[b]) for a, b in cells],
            mode="markers",
            marker={"size": 16, "symbol": "square", "color": "rgba(0,0,0,0)"},
            customdata=[short(f"{a} × {b}", 60) for a, b in cells],
            text=[f"{v:.3f}" for v in errors.values()],
            hovertemplate="%{customdata}: %{text}<extra></extra>",
        )
    )
    labels = {"tickmode": "array", "tickvals": list(range(len(names))), "ticktext": [short(n, 20) for n in names]}
    figure.update_xaxes(showgrid=False, zeroline=False, tickangle=-45, **labels)
    figure.update_yaxes(showgrid=False, zeroline=False, autorange="reversed", **labels)
    return figure, cells


def heat(
    shares: Sequence[Sequence[float]], labels: Sequence[Sequence[str]], names: Sequence[str], top: float
) -> go.Figure:
    """Draw the shares of the combinations of two columns, rows by columns, shaded up to ``top``.

    The height fits the labels on the left; if there are too many, only every second, third, … label is shown.
    """
    import plotly.graph_objects as go

    down, across = ([short(n, 16) for n in side] for side in labels)
    figure = blank(max(360, 110 + 15 * min(len(down), MOST_DOWN)))
    figure.add_trace(
        go.Heatmap(
            z=shares,
            colorscale="Greens",
            zmin=0,
            zmax=top,
            colorbar={"title": "share", "thickness": 10},
            hovertemplate="%{z:.4f}<extra></extra>",
        )
    )
    for update, name, texts, most in (
        (figure.update_xaxes, names[1], across, MOST_ACROSS),
        (figure.update_yaxes, names[0], down, MOST_DOWN),
    ):
        shown = range(0, len(texts), math.ceil(len(texts) / most))
        update(title=short(name), tickmode="array", tickvals=list(shown), ticktext=[texts[i] for i in shown])
    return figure


def calibration(
    lines: Mapping[str, Sequence[Mapping[str, float]]], colors: Sequence[str], predicted: str, observed: str
) -> go.Figure:
    """Draw predicted probability against observed frequency, with a line and a mark for each group."""
    import plotly.graph_objects as go

    figure = blank(400)
    figure.update_layout(legend={"yanchor": "top", "y": -0.2})
    figure.add_trace(
        go.Scatter(x=[0, 1], y=[0, 1], mode="lines", name="perfect", line={"dash": "dot", "color": REAL, "width": 1})
    )
    symbols = ("circle", "square", "diamond", "triangle-up", "x", "star")
    for (label, bins), color, symbol in zip(lines.items(), cycle(colors), cycle(symbols), strict=False):
        figure.add_trace(
            go.Scatter(
                x=[b["predicted"] for b in bins],
                y=[b["observed"] for b in bins],
                customdata=[b["rows"] for b in bins],
                name=short(label),
                mode="lines+markers",
                line={"color": color},
                marker={"symbol": symbol, "size": 8},
                hovertemplate="predicted %{x:.2f}, observed %{y:.2f}, %{customdata:,} rows<extra>"
                + short(label)
                + "</extra>",
            )
        )
    figure.update_xaxes(title=predicted, range=[-0.02, 1.02])
    figure.update_yaxes(title=observed, range=[-0.02, 1.02])
    return figure
