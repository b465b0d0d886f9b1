"""Reading Stata do-files that label a table: ``label``, ``infix``, ``format`` and ``mvdecode``. No other command is
read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from espalier.core.dictionaries.base import MOST_COLUMNS, Dictionary, code_text, plain, text_of
from espalier.core.dictionaries.inline_rows import refuse_rows
from espalier.core.dictionaries.spss_syntax import Variable, declared_variable
from espalier.core.errors import SchemaError
from espalier.core.project.schema import NUMBER

_KNOWN = re.compile(r"^[ \t]*(?:cap\w*[ \t]+|qui\w*[ \t]+)*la(?:b(?:el?)?)?[ \t]+(?:var|de|val)", re.MULTILINE)
_QUOTED = r"""`"([^\n]{0,1000}?)"'|"([^"\n]*)\""""
"""Text in quotation marks. Longer text in compound quotes is not read, because finding its end would take too long."""
_PARTS = re.compile(rf"""{_QUOTED}|([^\s"`,\\()=]+)|([,\\()=])""")
_IGNORED = re.compile(rf"({_QUOTED})|/\*.*?(?:\*/|\Z)|///[^\n]*\n|(?:(?<=\s)|^)//[^\n]*", re.DOTALL | re.MULTILINE)
_DELIMIT = re.compile(r"^[ \t]*#d\w*[ \t]*(;|cr)[ \t]*$", re.MULTILINE)
_PREFIXES = ("cap", "qui", "noi")
_WHOLE, _REAL = {"byte", "int", "long"}, {"float", "double"}

Part = tuple[bool, str]
"""A flag that is true for quoted text, and the content."""


def is_stata_syntax(text: str) -> bool:
    """Return whether the text contains a command that labels variables or values."""
    return _KNOWN.search(text) is not None


def read_stata_syntax(data: bytes, source: str) -> Dictionary:
    """Return the dictionary that the commands declare; raise :class:`SchemaError`."""
    listed: dict[str, Variable] = {}
    labels: dict[str, dict[str, str]] = {}
    used: dict[str, str] = {}
    text = text_of(data).replace("\r\n", "\n").replace("\r", "\n")
    refuse_rows(text, source, "Stata")
    for command in _commands(text):
        words = [word for _, word in command[:2]]
        if words[0] in ("label", "la", "lab", "labe") and len(words) > 1:
            _label(command[1:], listed, labels, used)
        elif words[0] == "infix":
            _infix(command[1:], listed)
        elif words[0] in ("format", "form") and len(words) > 1:
            forms = [word for _, word in command if word.startswith("%")]
            for name in [word for _, word in command[1:] if not word.startswith("%")] if forms else ():
                _variable(listed, name).form = forms[0]
        elif words[0] in ("mvdecode", "mvde"):
            _decode(command[1:], listed)
        if len(listed) > MOST_COLUMNS:
            raise SchemaError(f"{source} declares more than {MOST_COLUMNS:,} columns")
    for name, label in used.items():
        if name in listed:
            listed[name].labels = labels.get(label, {})
            listed[name].missing += [[("word", code)] for code in listed[name].labels if code.startswith(".")]
    notes: list[str] = []
    columns = tuple(declared_variable(variable, notes) for variable in listed.values())
    return Dictionary(columns, source, "Stata do-file", tuple(notes))


def _commands(text: str) -> Iterator[list[Part]]:
    """Yield the parts of each command, which ends with its line, or with ``;`` after ``#delimit ;``. Comments are left
    out.
    """
    pieces = _DELIMIT.split(_IGNORED.sub(lambda found: found[1] or " ", text))
    for sign, piece in zip(["cr", *pieces[1::2]], pieces[::2], strict=True):
        for line in re.split(r";" if sign == ";" else r"\n", piece):
            if not line.lstrip().startswith("*"):
                parts = [(not (p[3] or p[4]), p[1] or p[2] or p[3] or p[4] or "") for p in _PARTS.finditer(line)]
                while parts and len(parts) > 1 and parts[0][1].startswith(_PREFIXES) and not parts[0][0]:
                    parts = parts[1:]
                if parts:
                    yield parts


def _variable(listed: dict[str, Variable], name: str) -> Variable:
    return listed.setdefault(name, Variable(name))


def _label(
    command: Sequence[Part], listed: dict[str, Variable], labels: dict[str, dict[str, str]], used: dict[str, str]
) -> None:
    """Record the facts in one ``label`` command."""
    end = next((at for at, part in enumerate(command) if part == (False, ",")), len(command))
    what, rest = command[0][1], list(command[1:end])
    words = [word for quoted, word in rest if not quoted]
    if what.startswith("var") and len(rest) > 1 and rest[1][0]:
        _variable(listed, rest[0][1]).label = plain(rest[1][1])
    elif what.startswith("de") and words:
        mine = labels.setdefault(words[0], {})
        for (quoted, code), (text, label) in itertools.pairwise(rest[1:]):
            if text and not quoted:
                mine[code_text(float(code)) if NUMBER.fullmatch(code) else code] = label
    elif what.startswith("val") and len(words) > 1:
        for name in words[:-1]:
            variable = _variable(listed, name)
            variable.form = variable.form or "F"
            used[name] = words[-1]


def _infix(command: Sequence[Part], listed: dict[str, Variable]) -> None:
    """Read the types and names of ``infix byte sex 1-1 str name 2-9 using file``."""
    kind = ""
    for _, word in command:
        if word == "using":
            return
        if word in _WHOLE | _REAL or re.fullmatch(r"str[0-9]*", word):
            kind = word
        elif word[:1].isalpha() or word.startswith("_"):
            form = "A" if kind.startswith("str") else "F8.0" if kind in _WHOLE else "F"
            _variable(listed, word).form = form
            kind = ""


def _decode(command: Sequence[Part], listed: dict[str, Variable]) -> None:
    """Read the codes that ``mvdecode a b, mv(-9 = .a \\ -8 = .b)`` makes missing."""
    words = [word for _, word in command]
    if "mv" not in words or "," not in words:
        return
    codes = [w for at, w in enumerate(words[words.index("mv") :], words.index("mv")) if NUMBER.fullmatch(w)]
    names = words[: words.index(",")]
    chosen = list(listed.values()) if names == ["_all"] else [_variable(listed, name) for name in names]
    for variable in chosen:
        variable.missing += [[("word", code)] for code in codes]
