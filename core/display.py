"""HTML for display, protected from names that reorder the surrounding text, and cards for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_REORDERS = {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
"""Visible replacements for characters that set the direction of all following text in the paragraph."""


def in_order(html: str) -> str:
    """Return the page with these characters made visible and ineffective."""
    return html.translate(_REORDERS)


def card(title: str, sentences: Iterable[str], heads: Sequence[str] = (), rows: Iterable[Sequence[object]] = ()) -> str:
    """Return a small card as escaped HTML. ``rows`` are the cells of a table with the headings ``heads``."""
    parts = [f"<h4>{escape(title)}</h4>", *(f"<p>{escape(text)}</p>" for text in sentences)]
    if heads:
        head = "".join(f"<th>{escape(h)}</th>" for h in heads)
        body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    return in_order("\n".join(parts))
