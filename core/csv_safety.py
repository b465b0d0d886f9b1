"""Escaping, in released CSV files, of text that a spreadsheet would run as a formula, and the reverse.

Names and categories come from the table's author, and a spreadsheet may run a cell that begins with ``=``, ``+``,
``-``, ``@`` (or their full-width forms), a tab or a line break. In a spreadsheet that expects semicolons or tabs
between cells, a cell also begins after each of these, and after a line break, regardless of quoting. In a released CSV
file, an apostrophe precedes such text, so spreadsheets treat it as text (OWASP, *CSV injection*). Numbers such as
``-5`` and lone signs are harmless and stay unchanged. The escaping is reversible: text with apostrophes *before* such a
character gets another apostrophe, and reading a release removes exactly one in each place. The rule applies only to
files that Espalier writes; a private table is read as written.
"""

from __future__ import annotations

import re

NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_FIRST = re.compile(r"'*([=@＝＠\t\r\n]|[+\-＋－].)", re.DOTALL)
_LATER = re.compile(r"'*([=@＝＠]|[+\-＋－].)")
_ENDS_A_CELL = re.compile(r"([;\t\r\n])")


def defuse(text: str) -> str:
    """Return ``text`` in a form that is safe in a spreadsheet."""
    first, *rest = _ENDS_A_CELL.split(text)
    later = (f"'{part}" if _runs(part) else part for part in rest)
    return ("'" if _begins(text) else "") + first + "".join(later)


def restore(text: str) -> str:
    """Return the original text, given the result of :func:`defuse`."""
    first, *rest = _ENDS_A_CELL.split(text)
    made = first + "".join(part[1:] if part.startswith("'") and _runs(part[1:]) else part for part in rest)
    return made[1:] if made.startswith("'") and _begins(made[1:]) else made


def _begins(text: str) -> bool:
    """Return whether a spreadsheet might run this text as a separate cell."""
    return _FIRST.match(text) is not None and not NUMBER.fullmatch(text)


def _runs(part: str) -> bool:
    """Return whether a spreadsheet might run this part of a text if it treats the preceding part as another cell."""
    return _LATER.match(part) is not None and not NUMBER.fullmatch(part)
