"""Refusal of syntax files that contain rows of data.

A row may look like a command, so such a file could declare what one row says. The file is refused if a command that
starts rows of data is anywhere outside quotation marks and comments. The rows come after this command, so they cannot
hide it.
"""

from __future__ import annotations

import re
from typing import Literal

from espalier.core.errors import SchemaError

Language = Literal["SPSS", "SAS", "Stata"]
_STARTS: dict[Language, re.Pattern[str]] = {
    "SPSS": re.compile(r"\bbeg(?:in?)?\s+dat(?:a)?\b", re.IGNORECASE),
    "SAS": re.compile(
        r"\b(?:datalines|cards|lines|parmcards)4?(?=(?>\s|/\*.{0,200}?\*/)*+;)", re.IGNORECASE | re.DOTALL
    ),  # whatever comes before: a comment, a text or a macro may end without a semicolon
    "Stata": re.compile(r"\binp(?:ut?)?\b"),
}
"""Commands that start rows of data, in every spelling that the programs accept."""
_STATA_APART = re.compile(
    r"""`"[^\n]{0,1000}?"'|"[^"\n]*"|/\*.*?(?:\*/|\Z)|^[ \t]*\*[^\n]*|(?:(?<=\s)|^)//[^\n]*""",
    re.DOTALL | re.MULTILINE,
)
"""Quoted text and comments of Stata, in which ``input`` is an ordinary word."""


def refuse_rows(text: str, source: str, *languages: Language) -> None:
    """Raise :class:`SchemaError` if the text contains a command that starts rows of data in one of the languages."""
    for language in languages:
        plain = _STATA_APART.sub(_line_breaks, text) if language == "Stata" else text
        if found := _STARTS[language].search(plain):
            line, command = plain.count("\n", 0, found.end()) + 1, found[0]
            other = language == "Stata" and not source.lower().endswith(".do")
            raise SchemaError(
                f"{source}, line {line}: {command!r} starts rows of data in {language}. A row may look like a command, "
                "so remove the rows and this line from a copy of the file"
                f"{', or end the name of a SAS program with .sas' if other else ''}"
            )


def _line_breaks(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n") or " "
