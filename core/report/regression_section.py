"""Sections of the report on planned analyses and on bought regressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from espalier.core.analysis.planned_text import asked
from espalier.core.analysis.regression_text import about, interval
from espalier.core.analysis.survival_table import NO_FIGURE, shown, survival_tables
from espalier.core.analysis.survival_table import about as about_survival
from espalier.core.report.html import table


def regression_section(facts: Mapping[str, Any]) -> str:
    """Return a table for each bought regression; empty without any."""
    listed = facts.get("regressions", [])
    if not listed:
        return ""
    parts = [
        "<h2>Regressions</h2>",
        "<p>The sums that each regression needs were bought with noise of a known size. Each interval covers the "
        "noise and the sampling of people in 95 of 100 releases. Rows with a missing cell in one of the columns "
        "are left out, as in R's lm and glm.</p>",
    ]
    for one in listed:
        rows = [
            f"<tr><td>{escape(part['term'])}</td>"
            f'<td class="n">{"" if part["value"] is None else format(part["value"], ".4g")}</td>'
            f"<td>{escape(interval(part))}</td></tr>"
            for part in one["coefficients"]
        ]
        parts.append(f"<p>{escape(about(one))}</p>")
        parts.append(table(f"Coefficients of {one['name']}", ["term", "value#", "95 % interval"], rows))
    return "\n".join(parts)


def analysis_section(facts: Mapping[str, Any]) -> str:
    """Return the planned analyses with promised and achieved half-widths; empty without any."""
    listed = facts.get("analyses", [])
    if not listed:
        return ""

    def shown(x: float | None) -> str:
        return "none" if x is None else f"{x:.4g}"

    rows = []
    for one in listed:
        figure = f"{one['kind'].replace('_', ' ')} of {asked(one)}"
        wanted = shown(one["half_width"]) if "half_width" in one else ""
        interval = "none" if one["low"] is None else f"{one['low']:.4g} to {one['high']:.4g}"
        rows.append(
            f"<tr><td>{escape(one['name'])}</td><td>{escape(figure)}</td>"
            f'<td class="n">{shown(one["value"])}</td><td>{interval}</td><td class="n">{wanted}</td>'
            f'<td class="n">{shown(one["promised"])}</td><td class="n">{shown(one["reached"])}</td></tr>'
        )
    heads = ["analysis", "figure", "value#", "95 % interval", "desired ±#", "promised ±#", "reached ±#"]
    return (
        "<h2>Planned analyses</h2><p>The release bought exactly the counts, or the regression sums, that "
        "each analysis needs. The promised half-width was computed from the declared assumptions before any row was "
        "read. If they hold, 9 of 10 releases stay within it. Half-widths of odds ratios are on the log scale. An "
        "effect is the difference between the groups' event shares in each stratum, weighted by the strata's shares of "
        "all rows. Rows with a missing cell in one of the columns are left out.</p>"
        + table("Planned analyses", heads, rows)
        + _survival(listed)
    )


def _survival(listed: Sequence[Mapping[str, Any]]) -> str:
    """Return each survival table: hazards and survival by interval of time."""
    parts = []
    for one in survival_tables(listed):
        rows = [
            f"<tr><td>{escape(part['group'])}</td><td>{escape(part['interval'])}</td>"
            f'<td class="n">{max(part["at_risk"], 0):,.0f}</td>'
            f"<td>{shown(part, 'hazard')}</td><td>{shown(part, 'survival')}</td></tr>"
            for part in one["table"]
            if part["survival"] is not None
        ]
        heads = ["group", one["time"], "at risk at its start#", "hazard (95 %)", "survival at its end (95 %)"]
        less = "" if len(rows) == len(one["table"]) else f" Later intervals are not shown: {NO_FIGURE}."
        parts.append(f"<p>{escape(about_survival(one))}{less}</p>")
        parts.append(table(f"Survival: {one['name']}", heads, rows))
    return "\n".join(parts)
