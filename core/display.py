"""HTML cards for notebooks: a title, sentences and one table. All text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def card(title: str, sentences: Iterable[str], heads: Sequence[str] = (), rows: Iterable[Sequence[object]] = ()) -> str:
    """Return a small card as HTML. ``rows`` are the cells of a table with the headings ``heads``."""
    parts = [f"<h4>{escape(title)}</h4>", *(f"<p>{escape(text)}</p>" for text in sentences)]
    if heads:
        head = "".join(f"<th>{escape(h)}</th>" for h in heads)
        body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    return "\n".join(parts)
