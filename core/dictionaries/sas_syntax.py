"""Reading SAS programs (``.sas``): formats of codes, and labels, formats and types of variables. No other statement is
read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from espalier.core.dictionaries.base import (
    MOST_COLUMNS,
    Declared,
    Dictionary,
    code_text,
    plain,
    text_of,
)
from espalier.core.dictionaries.complete_lists import is_value
from espalier.core.dictionaries.formats import is_date, is_sas_number, is_time, is_whole
from espalier.core.dictionaries.inline_rows import refuse_rows
from espalier.core.dictionaries.spss_syntax import MOST_LABELS, MOST_NAMED, Variable, declared_variable
from espalier.core.errors import SchemaError
from espalier.core.project.schema import NUMBER

_KNOWN = re.compile(
    r"^[ \t]*(?:proc[ \t]+format\b|data[ \t]+[\w.]+[ \t]*(?:\([^()\n]*\))?[ \t]*;)", re.IGNORECASE | re.MULTILINE
)
_TOKEN = re.compile(
    r"""(?P<comment>/\*.*?(?:\*/|\Z))|(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")|(?P<end>;)"""
    r"""|(?P<sign>[=,()@#/+&]|\[|\])|(?P<word>[^\s'";=,()@#/+&\[\]]+)""",
    re.DOTALL,
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_RANGE = re.compile(r"([A-Za-z_]\w*?)([0-9]{1,6})-([A-Za-z_]\w*?)([0-9]{1,6})")
_FORMAT = re.compile(r"\$?[A-Za-z_]?\w*\.[0-9]*|\$")
_PLAIN = re.compile(r"F?([0-9]+)\.([0-9]*)", re.IGNORECASE)
_WIDTH = re.compile(r"[0-9]*\.[0-9]*$")
_SPECIAL = re.compile(r"\.[A-Za-z_]")
_ALL = {"_all_", "_numeric_", "_character_", "_char_"}
_ATTRIBUTES = {"label", "format", "informat", "length"}

Token = tuple[str, str]
"""A kind (``text``, ``word`` or ``sign``) and its content."""


@dataclass
class Format:
    """Labels of codes. ``partial`` is true if the format also labels ranges, so its codes are not the complete list of
    values.
    """

    labels: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    partial: bool = False


def is_sas_syntax(text: str) -> bool:
    """Return whether the text contains a step that creates formats or a table."""
    return _KNOWN.search(text) is not None


def read_sas_syntax(data: bytes, source: str) -> Dictionary:
    """Return the dictionary that the statements declare; raise :class:`SchemaError`."""
    program = _Program()
    text = text_of(data).replace("\r\n", "\n").replace("\r", "\n")
    refuse_rows(text, source, "SAS")
    for statement in _statements(text):
        program.run(statement)
        if len(program.listed) > MOST_COLUMNS:
            raise SchemaError(f"{source} declares more than {MOST_COLUMNS:,} columns")
    if program.formats and not program.listed:
        raise SchemaError(f"{source} defines formats but no columns; add FORMAT or LABEL statements for the table")
    notes: list[str] = []
    columns = tuple(program.columns(notes))
    return Dictionary(columns, source, "SAS syntax", tuple(notes))


def _statements(text: str) -> Iterator[list[Token]]:
    """Yield the tokens of each statement, without comments."""
    at, statement = 0, list[Token]()
    while found := _TOKEN.search(text, at):
        at, kind = found.end(), str(found.lastgroup)
        if not statement and found[0].startswith(("*", "%*")):
            end = text.find(";", found.start())
            at = len(text) if end < 0 else end + 1
        elif kind == "end":
            if statement:
                yield statement
            statement = []
        elif kind == "text":
            statement.append((kind, found[0][1:-1].replace(found[0][0] * 2, found[0][0])))
        elif kind != "comment":
            statement.append((kind, found[0]))
    if statement:
        yield statement


class _Program:
    """Formats, and variables by their names in lower case, in the order in which statements name them."""

    def __init__(self) -> None:
        self.formats: dict[str, Format] = {}
        self.listed: dict[str, Variable] = {}
        self.used: dict[str, str] = {}
        self.read_as: dict[str, str] = {}
        self._named = 0

    def run(self, statement: Sequence[Token]) -> None:
        """Record the facts in one statement."""
        first = statement[0][1].casefold() if statement[0][0] == "word" else ""
        rest = list(statement[1:])
        if first == "value" and rest:
            self._value(rest)
        elif first == "label":
            self._label(rest)
        elif first in ("format", "informat"):
            self._format(rest, self.used if first == "format" else self.read_as)
        elif first in ("input", "length"):
            self._input(rest)
        elif first in ("attrib", "attribute"):
            self._attributes(rest)
        elif first == "if":
            self._missing([word.casefold() if kind == "word" else word for kind, word in rest])
        elif first == "rename":
            self._rename([word for kind, word in rest if kind == "word"])

    def columns(self, notes: list[str]) -> Iterator[Declared]:
        """Yield the column of each variable. Variables with the same format are read once."""
        read: dict[tuple[str, str, str], Declared] = {}
        labelled = 0
        for key, variable in self.listed.items():
            shown = self.used.get(key) or self.read_as.get(key, "")
            name = _WIDTH.sub("", shown).casefold()
            made = self.formats.get(name)
            if made is None:
                variable.form = _form(shown) or variable.form
                yield declared_variable(variable, notes)
                continue
            variable.form = "A" if shown.startswith("$") else variable.form or "F"
            same = (name, variable.form, repr(variable.missing))
            if same not in read:
                labelled += len(made.labels) + len(made.missing)
                if labelled > MOST_LABELS:
                    raise SchemaError(f"the variables have more than {MOST_LABELS:,} labelled codes in total")
                read[same] = _of_format(variable, made, notes)
            yield replace(read[same], name=variable.name, label=variable.label)

    def _variable(self, name: str) -> Variable:
        return self.listed.setdefault(name.casefold(), Variable(name))

    def named(self, words: Sequence[str]) -> list[Variable]:
        """Return the variables that these words name, such as ``a q1-q5 x--z`` or ``_all_``."""
        out: list[Variable] = []
        for word in words:
            first, dashes, last = word.partition("--")
            numbered = _RANGE.fullmatch(word)
            if word.casefold() in _ALL:
                out += self.listed.values()
            elif dashes:
                self._named += len(self.listed)  # searching for a prefix reads all names
                order = [*self.listed]
                if first.casefold() in self.listed and last.casefold() in self.listed:
                    ends = order.index(first.casefold()), order.index(last.casefold())
                    out += [self.listed[name] for name in order[ends[0] : ends[1] + 1]]
            elif numbered and numbered[1].casefold() == numbered[3].casefold():
                low, high = int(numbered[2]), min(int(numbered[4]), int(numbered[2]) + MOST_COLUMNS + 1)
                out += [self._variable(f"{numbered[1]}{i:0{len(numbered[2])}d}") for i in range(low, high + 1)]
            elif _NAME.fullmatch(word):
                out.append(self._variable(word))
            if self._named + len(out) > MOST_NAMED:
                raise SchemaError(f"the statements name variables more than {MOST_NAMED:,} times")
        self._named += len(out)
        return out

    def _value(self, tokens: list[Token]) -> None:
        """Read the labels of a format: ``value sexf 1 = 'male' 2, 3 = 'other' 10 - high = 'many'``."""
        made = self.formats.setdefault(tokens[0][1].rstrip(".").casefold(), Format())
        left: list[list[Token]] = [[]]
        depth, after = 0, False
        for kind, word in tokens[1:]:
            if (kind, word) == ("sign", "("):
                depth += 1
            elif (kind, word) == ("sign", ")"):
                depth, left = max(depth - 1, 0), [[]]
            elif depth:
                continue
            elif (kind, word) == ("sign", "="):
                after = True
            elif after and kind != "sign":
                _take(made, left, plain(word))
                left, after = [[]], False
            elif (kind, word) == ("sign", ","):
                left.append([])
            else:
                left[-1].append((kind, word))

    def _label(self, tokens: Sequence[Token]) -> None:
        names: list[str] = []
        for at, (kind, word) in enumerate(tokens):
            if kind == "text" and at and tokens[at - 1] == ("sign", "="):
                for variable in self.named(names[-1:]):
                    variable.label = plain(word)
                names = []
            elif kind == "word":
                names.append(word)

    def _format(self, tokens: Sequence[Token], into: dict[str, str]) -> None:
        names: list[str] = []
        for kind, word in _joined(tokens):
            if kind == "word" and _FORMAT.fullmatch(word):
                for variable in self.named(names):
                    into[variable.name.casefold()] = word
                names = []
            elif kind == "word":
                names.append(word)
        self.named(names)

    def _input(self, tokens: Sequence[Token]) -> None:
        """Read the names and types of ``input a $ 1-5 b 6-8 @10 c date9. (q1-q3) (1.)`` and of ``length a $ 5 b 8``."""
        names: list[Variable] = []
        fresh = False
        for kind, word in tokens:
            if kind == "word" and word.startswith("$"):
                for variable in names:
                    variable.form = "A"
                names, fresh = [], False
            elif (
                kind == "word"
                and _FORMAT.fullmatch(word)
                and any(c.isalnum() for c in word.rstrip("0123456789.") or word)
            ):
                for variable in names:
                    variable.form = (word if is_date(word) else variable.form) or "F"
                names, fresh = [], False
            elif kind == "word" and (_NAME.match(word)):
                more = self.named([word])
                for variable in more:
                    variable.form = variable.form or "F"
                if not fresh:
                    names = []
                names += more
                fresh = True
            elif kind == "word" and word[:1].isdigit():
                fresh = False

    def _attributes(self, tokens: Sequence[Token]) -> None:
        """Read ``attrib a label = 'x' format = f8. length = $ 5 b label = 'y'``."""
        names: list[str] = []
        key, begun = "", False
        for at, (kind, word) in enumerate(tokens):
            is_key = kind == "word" and word.casefold() in _ATTRIBUTES and tokens[at + 1 : at + 2] == [("sign", "=")]
            if is_key:
                key, begun = word.casefold(), True
            elif key and kind != "sign":
                for variable in self.named(names[-MOST_COLUMNS:]):
                    if key == "label":
                        variable.label = plain(word)
                    elif key in ("format", "informat"):
                        (self.used if key == "format" else self.read_as)[variable.name.casefold()] = word
                    elif word.startswith("$"):
                        variable.form = "A"
                    else:
                        variable.form = variable.form or "F"
                key = ""
            elif kind == "word" and not word[:1].isdigit():
                if begun:
                    names = []
                names.append(word)
                begun = False

    def _missing(self, words: Sequence[str]) -> None:
        """Read the codes that ``if a in (8, 9) then a = .`` makes missing."""
        bare = [word for word in words if word not in ("(", ")", ",", "+")]
        if "then" not in bare or len(bare) < 6:
            return
        at = bare.index("then")
        name, sign, codes, then = bare[0], bare[1], bare[2:at], bare[at + 1 :]
        same = len(then) == 3 and then[:2] == [name, "="] and (then[2] in (".", "") or _SPECIAL.fullmatch(then[2]))
        if sign in ("=", "eq", "in") and same and name in self.listed and all(map(NUMBER.fullmatch, codes)):
            self.listed[name].missing.append([("word", code) for code in codes])

    def _rename(self, words: Sequence[str]) -> None:
        for old, new in zip(words[::2], words[1::2], strict=False):
            if old.casefold() in self.listed and new.casefold() not in self.listed and _NAME.fullmatch(new):
                variable = self.listed.pop(old.casefold())
                variable.name = new
                self.listed[new.casefold()] = variable
                for kept in (self.used, self.read_as):
                    if old.casefold() in kept:
                        kept[new.casefold()] = kept.pop(old.casefold())


def _of_format(variable: Variable, made: Format, notes: list[str]) -> Declared:
    """Return a variable with a format of codes. If the format labels ranges, its codes are not the complete list of
    values.
    """
    variable.labels = made.labels
    variable.missing += [[("text", code)] for code in made.missing]
    about = declared_variable(variable, notes)
    if made.partial:
        about = replace(about, kind="open" if variable.form == "A" else "numeric", categories=())
    return about


def _take(made: Format, left: Sequence[Sequence[Token]], label: str) -> None:
    """Add the codes to the left of one label. Ranges are not codes; ``.`` is an empty cell, and ``.a`` is a missing
    code.
    """
    for part in left:
        if len(part) != 1:
            made.partial = made.partial or len(part) > 1
            continue
        [(kind, word)] = part
        if kind == "text":
            if word.strip():
                made.labels.setdefault(word.strip(), label)
        elif NUMBER.fullmatch(word):
            made.labels.setdefault(code_text(float(word)), label)
        elif _SPECIAL.fullmatch(word):
            made.missing.append(word[1:].upper())
            made.labels.setdefault(word[1:].upper(), label)
        elif word.casefold() == "other":
            made.partial = made.partial or is_value("other", {"other": label})
        elif word != ".":
            made.partial = True


def _joined(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens, with each ``$`` and the format that follows it joined into one token."""
    waiting = ""
    for kind, word in tokens:
        if kind == "word" and word == "$":
            waiting = "$"
        else:
            yield kind, waiting + word if kind == "word" else word
            waiting = ""


def _form(shown: str) -> str:
    """Return a SAS format in SPSS notation: ``A`` for text, ``F8.0`` for whole numbers."""
    if not shown:
        return ""
    if shown.startswith("$"):
        return "A"
    if is_date(shown) or is_time(shown):
        return shown.upper()
    if found := _PLAIN.fullmatch(shown):
        return f"F{found[1]}.{found[2] or 0}"
    if not is_sas_number(shown):
        return "A"  # a format defined for codes, whose labels are elsewhere
    return "F8.0" if is_whole(shown.rstrip("."), sas=True) else "F"
