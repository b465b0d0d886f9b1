"""The report's section on bought regressions."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from espalier.core.analysis.regression_text import about, interval
from espalier.core.report.html import table


def regression_section(facts: Mapping[str, Any]) -> str:
    """Return a table for each bought regression; empty without any."""
    listed = facts.get("regressions", [])
    if not listed:
        return ""
    parts = [
        "<h2>Regressions</h2>",
        "<p>The sums that each regression needs were bought with noise of a known size. The intervals cover the noise "
        "and the sampling of people, in 95 of 100 releases each. Rows with a missing cell in one of the columns are "
        "left out, as R's lm and glm do.</p>",
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
