"""Tables of a report."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def table(caption: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    """A table that scrolls by itself; heads that end in # stand over numbers. ``rows`` are HTML already."""
    cells = "".join(
        f'<th class="n">{escape(h[:-1])}</th>' if h.endswith("#") else f"<th>{escape(h)}</th>" for h in heads
    )
    return (
        f'<div class="wide"><table><caption>{escape(caption)}</caption><thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
