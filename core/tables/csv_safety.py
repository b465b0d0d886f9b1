"""Escaping of texts that a spreadsheet would run as formulas, in a released CSV file, and its reversal.

Names and categories come from the author of the table, and a spreadsheet runs a cell that begins with ``=``, ``+``,
``-``, ``@`` (full-width forms too), a tab or a line break. In a released CSV file an apostrophe precedes such a text,
so spreadsheets treat it as text (OWASP, *CSV injection*). Numbers stay unchanged, because ``-5`` is harmless, and so is
a sign alone. The rule can be undone: a text that has apostrophes *before* such a character gets another apostrophe, and
reading a release removes exactly one. The rule applies only to ``synthetic.csv``; a private table is read as written.
"""

from __future__ import annotations

import re

from espalier.core.project.schema import NUMBER

_FORMULA = re.compile(r"'*([=@＝＠\t\r\n]|[+\-＋－].)", re.DOTALL)


def defuse(text: str) -> str:
    """Return ``text`` in a form that is safe in a spreadsheet."""
    return f"'{text}" if _FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def restore(text: str) -> str:
    """Return the original text, given the result of :func:`defuse`."""
    return text[1:] if text.startswith("'") and defuse(text[1:]) == text else text
