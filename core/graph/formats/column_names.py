"""Proposed columns for names in a drawing that match no column."""

from __future__ import annotations

import difflib
import re
import unicodedata

_SUGGESTED_FOR = 200
_ALIKE = (
    {"sex", "gender"},
    {"race", "ethnicity", "ethnic"},
    {"income", "salary", "wage", "wages", "earnings", "pay"},
    {"education", "schooling"},
    {"smoking", "smoker", "tobacco"},
    {"job", "occupation", "profession"},
    {"nationality", "citizenship"},
    {"children", "kids"},
    {"death", "mortality", "died"},
    {"weight", "mass"},
)
"""Words that tables and drawings use for the same thing. Matches based on them are proposed and never applied
automatically.
"""


class FreeColumns:
    """Columns that match no node by name, from which matches for a name are proposed."""

    def __init__(self, columns: tuple[str, ...], taken: set[str]) -> None:
        self.all = set(columns)
        self.columns = [c for c in columns if c not in taken]
        self._by_fold: dict[str, str] = {}
        for column in self.columns:
            self._by_fold.setdefault(_fold(column), column)
        self._words = {column: _words(column) for column in self.columns}
        self._searched = 0

    def same(self, *names: str) -> str | None:
        """Return the column that equals one of ``names`` except for case, spaces and punctuation."""
        return next((self._by_fold[f] for f in map(_fold, names) if f in self._by_fold), None)

    def like(self, *names: str) -> list[str]:
        """Return columns that look like one of ``names`` or share words with it."""
        found: list[str] = []
        if self._searched < _SUGGESTED_FOR:
            self._searched += 1
            for name in names:
                close = difflib.get_close_matches(_fold(name)[:200], list(self._by_fold), 3, 0.6)
                found += [self._by_fold[f] for f in close]
                words = _words(name)
                near = set().union(*(alike for alike in _ALIKE if alike & words)) - words
                found += [c for c, others in self._words.items() if others & near]
                found += [
                    c for c, others in self._words.items() if words and others and (words <= others or others <= words)
                ]
        return list(dict.fromkeys(found))


def _words(name: str) -> set[str]:
    """Return a name's words of at least two letters, split at punctuation, spaces and inner capitals."""
    cut = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", unicodedata.normalize("NFKC", name))
    return {word for word in re.findall(r"[^\W_]+", cut.casefold()) if len(word) > 1}


def _fold(name: str) -> str:
    """Return a name normalised for case, spaces, punctuation and accents."""
    text = unicodedata.normalize("NFKC", name).casefold()
    return "".join(c for c in text if c.isalnum()) or text
