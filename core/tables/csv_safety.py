"""Text that a spreadsheet would take for a formula, made harmless in the CSV that is handed over, and back.

Names and categories come from whoever made the table, and a spreadsheet runs a cell that begins with ``=``, ``+``,
``-``, ``@`` (full-width forms too), a tab or a line break. Where one leaves the building as CSV, an apostrophe is put
before it, which spreadsheets read as "this is text" (OWASP, *CSV injection*). Numbers are left alone: ``-5`` is
harmless. So is a lone sign.

The rule can be undone: a text that has apostrophes and *then* such a beginning gets one more, and reading a release
back takes exactly one away. It holds for ``synthetic.csv`` only; a private table is read as it is written.
"""

from __future__ import annotations

import re

from espalier.core.project.schema import NUMBER

_FORMULA = re.compile(r"'*([=@＝＠\t\r\n]|[+\-＋－].)", re.DOTALL)


def defuse(text: str) -> str:
    """``text`` as it may stand in a CSV file that somebody opens in a spreadsheet."""
    return f"'{text}" if _FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def restore(text: str) -> str:
    """What :func:`defuse` was given."""
    return text[1:] if text.startswith("'") and defuse(text[1:]) == text else text
