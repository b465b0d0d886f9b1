"""HTML parts shared by the reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

SHORT = 14
"""Maximum number of rows in a table that is kept on one page."""


def table(caption: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    """Return a scrollable table. A heading that ends in # marks a column of numbers. ``rows`` are already HTML.

    In print, a table of up to `SHORT` rows stays on one page with its headings.
    """
    cells = "".join(
        f'<th class="n">{escape(h[:-1])}</th>' if h.endswith("#") else f"<th>{escape(h)}</th>" for h in heads
    )
    return (
        f'<div class="wide{" short" * (len(rows) <= SHORT)}" tabindex="0" role="group" aria-label="{escape(caption)}">'
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def made_with(facts: Mapping[str, Any]) -> str:
    """Return the version of Espalier that made the release; empty for releases before 0.2."""
    version = facts.get("espalier")
    return f"<p>Made with Espalier {escape(version)}.</p>" if version else ""
