"""Search for model code inside other text. Lines that are not code are left out.

A line is code only if all of it parses as dagitty statements. A line that looks like code but does not parse is an
error, so no arrow is mistaken for prose.
"""

from __future__ import annotations

import re

from espalier.core.graph.formats.mixed import Remark, broken, shown

_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
_WORD = rf"(?:{_STRING}|-?[\w.]+)"
_END = rf"(?:{_WORD}|\{{[^{{}}\n]*\}})"
_ARROW = r"(?:<->|<-@|<-|@->|@--|@-@|->|--@|--)"
_ATTRIBUTES = r'\[(?:"[^"\n]*"|[^\]"\n])*\]'
_CHAIN = re.compile(rf"{_END}(?:\s*{_ARROW}\s*{_END})+\s*(?:{_ATTRIBUTES})?")
_NODE = re.compile(rf"{_WORD}\s*{_ATTRIBUTES}")
_SETTING = re.compile(rf"bb\s*=\s*{_WORD}")
_BARE = re.compile(_WORD)
_SUSPECT = re.compile(
    r"\S\s*(?:<->|->|<-|@-@)\s*\S|\S\s*\[[^\[\]]*\b(?:pos\s*=|exposure|outcome|latent|adjusted|unobserved)"
)
_COMMENT = re.compile(r"//|/\*|\A[ \t]*#")
_QUOTED = re.compile(_STRING)
_BRACES = re.compile(r'"|//[^\n]*|/\*|[{}]')
_TEXT = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BLOCK = re.compile(r"^[ \t>]*((?:strict\s+)?(?:digraph|graph|dag|pdag|mag|pag)\b[^{}\n]*\{)", re.MULTILINE)
_FENCE = re.compile(r"[`~]{3,}.*")


def has_code(text: str) -> bool:
    """Return whether any line looks like an arrow, or a node with attributes, of model code."""
    return any(_is_code(row) or _looks_like_code(row) for row in text.split("\n"))


def block(text: str, line: int) -> tuple[str, int, tuple[Remark, ...]] | None:
    """Return the only ``dag { … }`` or ``digraph { … }`` in the text, the number of its first line, and remarks on the
    text that is ignored. Return `None` if there is none. Raises :class:`GraphError` if there are two, or if the brace
    is never closed.
    """
    found = _BLOCK.search(text)
    if found is None:
        return None
    end = _closing(text, found.end(1))
    first = line + text.count("\n", 0, found.start(1))
    if end is None:
        raise broken(first, "the brace that opens here is never closed")
    if again := _BLOCK.search(text, end):
        raise broken(line + text.count("\n", 0, again.start(1)), "a second graph begins here; keep only one graph")
    if has_code(text[: found.start(1)]) or has_code(text[end:]):
        raise broken(first, "there is model code both inside and outside the braces; keep one of the two")
    before, after = text[: found.start(1)].strip("`~ \n\t>"), text[end:].strip("`~ \n\t")
    out = [Remark(line, "the text before the graph is left out")] if before else []
    if after:
        out.append(Remark(line + text.count("\n", 0, end), "the text after the graph is left out"))
    return text[found.start(1) : end], first, tuple(out)


def statements(text: str, line: int) -> tuple[str, tuple[Remark, ...]]:
    """Return the statements in text without braces, each with its original line, and the lines that are left out.

    Single words on a line are nodes if they are next to code, with no empty line between. Raises :class:`GraphError`
    for a line that looks like code but does not parse.
    """
    rows, out, remarks = text.split("\n"), [], []
    in_code = _beside_code(rows)
    for i, row in enumerate(rows):
        bare = _without_comments(row).strip()
        if not bare or _FENCE.fullmatch(bare):
            out.append("")
        elif _is_code(row) or (in_code[i] and all(_BARE.fullmatch(s) for s in _split(bare))):
            out.append(row)
        elif _looks_like_code(row):
            raise broken(
                line + i, f"cannot read {shown(row.strip())}; names with spaces or special characters need quotes"
            )
        else:
            out.append("")
            remarks.append(Remark(line + i, f"{shown(row.strip())} is not model code and is left out"))
    return "\n".join(out), tuple(remarks)


def _beside_code(rows: list[str]) -> list[bool]:
    """Return a flag for each row that is true if its paragraph contains code."""
    out: list[bool] = []
    start = 0
    for end in [*(i for i, row in enumerate(rows) if not row.strip()), len(rows)]:
        out += [any(map(_is_code, rows[start:end]))] * (end - start + 1)
        start = end + 1
    return out


def _is_code(row: str) -> bool:
    """Return whether all statements of a row are code and at least one is more than a single word."""
    found = _split(_without_comments(row).strip())
    sure = [bool(_CHAIN.fullmatch(s) or _NODE.fullmatch(s) or _SETTING.fullmatch(s)) for s in found]
    return any(sure) and all(ok or _BARE.fullmatch(s) for ok, s in zip(sure, found, strict=True))


def _split(row: str) -> list[str]:
    """Return a row's statements, split at semicolons outside quotes."""
    return [s.strip() for s in re.findall(r'(?:"[^"\n]*"|[^;"])+', row) if s.strip()]


def _looks_like_code(row: str) -> bool:
    return bool(_SUSPECT.search(_without_texts(_without_comments(row))))


def _without_comments(row: str) -> str:
    """Return the row without comments. A comment that is never closed is kept."""
    out, at, last = [], 0, row.rfind("*/")
    for found in _COMMENT.finditer(row):
        if found.start() < at or (found[0] == "/*" and last < found.end()):
            continue
        out.append(row[at : found.start()])
        at = row.index("*/", found.end()) + 2 if found[0] == "/*" else len(row)
    return "".join(out) + row[at:]


def _without_texts(row: str) -> str:
    """Return the row with each quoted text replaced by x. A quote that is never closed hides all later ones."""
    out, at = [], 0
    while (start := row.find('"', at)) >= 0 and (found := _QUOTED.match(row, start)):
        out += [row[at:start], "x"]
        at = found.end()
    return "".join(out) + row[at:]


def _closing(text: str, at: int) -> int | None:
    """Return the position after the brace that closes the brace before ``at``; braces in quotes and comments are
    ignored.
    """
    depth, last, quotes = 1, text.rfind("*/"), True
    while found := _BRACES.search(text, at):
        at = found.end()
        if found[0] == '"' and quotes:
            inside = _TEXT.match(text, at)
            at, quotes = (inside.end(), True) if inside else (at, False)
        elif found[0] == "/*" and last >= at:
            at = text.index("*/", at) + 2
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            return at
    return None
