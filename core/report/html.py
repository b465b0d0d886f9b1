"""Parts that reports share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any


def table(caption: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    """A table that scrolls by itself; heads that end in # stand over numbers. ``rows`` are HTML already."""
    cells = "".join(
        f'<th class="n">{escape(h[:-1])}</th>' if h.endswith("#") else f"<th>{escape(h)}</th>" for h in heads
    )
    return (
        f'<div class="wide"><table><caption>{escape(caption)}</caption><thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def made_with(facts: Mapping[str, Any]) -> str:
    """The version of Espalier that made the release; releases before 0.2 do not record it."""
    version = facts.get("espalier")
    return f"<p>Made with Espalier {escape(version)}.</p>" if version else ""
