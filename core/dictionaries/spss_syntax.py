"""Reading SPSS syntax (``.sps``): labels, value labels, missing values, levels, formats. No other command is read."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from espalier.core.dictionaries.base import (
    MOST_COLUMNS,
    Declared,
    DeclaredKind,
    Dictionary,
    add_note,
    code_text,
    pairs,
    plain,
    text_of,
)
from espalier.core.dictionaries.complete_lists import declares_all, is_value, kinds_not_amounts
from espalier.core.dictionaries.formats import decimals, is_date, is_time, is_whole
from espalier.core.dictionaries.inline_rows import refuse_rows
from espalier.core.dictionaries.stat_files import missing_codes
from espalier.core.errors import SchemaError
from espalier.core.project.schema import NUMBER

MOST_LABELS, MOST_NAMED = 500_000, 500_000
"""Maximum number of labelled codes over all variables, and of variables named in all commands together. A range such as
``q1 TO q9999`` names many variables, which may share a long list.
"""
_START = r"(?:VAR\w*[ \t]+(?:LAB|LEV)\w*|(?:ADD[ \t]+)?VAL\w*[ \t]+LAB\w*|MIS\w*[ \t]+VAL\w*)(?=\s)"
"""Commands that state facts of a dictionary. Each word may be shortened to three letters."""
_OTHERS = (
    r"(?:EXE\w*[ \t]*\.?|(?:DATA[ \t]+LIST|(?:GET|BEGIN)[ \t]+DATA|FORMATS|SAVE[ \t]+OUTFILE|FILE[ \t]+HANDLE"
    r"|(?:PRINT|WRITE)[ \t]+FORMATS?|REN\w*[ \t]+VAR\w*|DEL\w*[ \t]+VAR\w*|VAR\w*[ \t]+(?:WID|ALI|ROL|ATT)\w*"
    r"|SORT[ \t]+CASES|SELECT[ \t]+IF|SPLIT[ \t]+FILE|WEIGHT[ \t]+BY|MISSING[ \t]+VAL\w*|DATASET[ \t]+\w+)\b)"
)
_COMMAND = re.compile(rf"^[ \t]*(?:{_START}|{_OTHERS})", re.IGNORECASE | re.MULTILINE)
_KNOWN = re.compile(rf"^[ \t]*{_START}", re.IGNORECASE | re.MULTILINE)
_TOKEN = re.compile(
    r"""(?P<comment>/\*.*?(?:\*/|$))|(?P<text>'(?:[^'\n]|''|(?<=[^\W\d])'(?=[^\W\d]))*'|"(?:[^"\n]|"")*")"""
    r"""|(?P<end>\.[ \t]*(?:/\*.*)?$)"""
    r"""|(?P<word>[^\s'"()/=,+]+?(?=\.?[ \t]*$|\s|['"()/=,+]))|(?P<sign>[()/=,+.])""",
    re.MULTILINE,
)
_COMMENT_END = re.compile(r"\.[ \t]*$|\n[ \t]*\n", re.MULTILINE)
_FORMAT = re.compile(r"[A-Za-z]+[0-9]*(?:\.[0-9]*)?")
_NAME = re.compile(r"[^\W\d]|[@#$]")
_NUMBERED = re.compile(r"(.*?)([0-9]+)")
_LOWEST, _HIGHEST = {"LO", "LOW", "LOWEST"}, {"HI", "HIGH", "HIGHEST"}
_LEVELS = {"NOM": "nominal", "ORD": "ordinal", "SCA": "scale"}

Token = tuple[str, str]
"""A kind (``text`` for quoted text, ``word``, or ``sign``) and its content."""


@dataclass
class Variable:
    """Facts about a variable that the commands have stated so far."""

    name: str
    label: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    missing: list[list[Token]] = field(default_factory=list)
    form: str = ""
    level: str = ""


def is_spss_syntax(text: str) -> bool:
    """Return whether the text contains a command that labels variables or values, or declares missing values."""
    return _KNOWN.search(text) is not None


def read_spss_syntax(data: bytes, source: str) -> Dictionary:
    """Return the dictionary that the commands declare; raise :class:`SchemaError`."""
    variables = _Variables()
    text = text_of(data).replace("\r\n", "\n").replace("\r", "\n")
    refuse_rows(text, source, "SPSS")
    for command in _commands(text):
        variables.run(command)
        if len(variables.listed) > MOST_COLUMNS:
            raise SchemaError(f"{source} declares more than {MOST_COLUMNS:,} columns")
    notes: list[str] = []
    columns = tuple(declared_variable(variable, notes) for variable in variables.listed.values())
    return Dictionary(columns, source, "SPSS syntax", tuple(notes))


def _commands(text: str) -> Iterator[list[Token]]:
    """Yield the tokens of each command. A command ends with a period at the end of a line, or where a known command
    starts.
    """
    starts = {found.start() + len(found[0]) - len(found[0].lstrip()) for found in _COMMAND.finditer(text)}
    at, command = 0, list[Token]()
    while found := _TOKEN.search(text, at):
        at, kind = found.end(), str(found.lastgroup)
        if command and found.start() in starts:
            yield command
            command = []
        if not command and (found[0].startswith("*") or found[0].upper() == "COMMENT"):
            end = _COMMENT_END.search(text, found.start())
            at = end.end() if end else len(text)
        elif kind == "end":
            yield command
            command = []
        elif kind == "text":
            command.append((kind, found[0][1:-1].replace(found[0][0] * 2, found[0][0])))
        elif kind != "comment":
            command.append((kind, found[0]))
    yield command


class _Variables:
    """Variables by their names in lower case, in the order in which the commands first name them."""

    def __init__(self) -> None:
        self.listed: dict[str, Variable] = {}
        self._labelled = self._named = 0

    def run(self, command: Sequence[Token]) -> None:
        """Record the facts in one command."""
        words = [word.upper() for kind, word in command[:3] if kind == "word"]
        for names, take in self._takers().items():
            if len(words) >= len(names) and all(w.startswith(n) for w, n in zip(words, names, strict=False)):
                take(_joined(command[len(names) :]))
                return

    def _takers(self) -> dict[tuple[str, ...], Callable[[list[Token]], None]]:
        return {
            ("VAR", "LAB"): self._label,
            ("VAL", "LAB"): self._set_labels,
            ("ADD", "VAL", "LAB"): self._label_values,
            ("MIS", "VAL"): self._mark,
            ("VAR", "LEV"): self._level,
            ("FORMAT",): self._format,
            ("PRI", "FOR"): self._format,
            ("STRING",): self._format,
            ("NUMERIC",): self._format,
            ("DATA", "LIST"): self._list,
            ("GET", "DATA"): self._get,
            ("REN", "VAR"): self._rename,
            ("DEL", "VAR"): self._delete,
        }

    def named(self, words: Sequence[str]) -> list[Variable]:
        """Return the variables that these words name, such as ``q1 q3 TO q5`` or ``ALL``."""
        if [word.upper() for word in words] == ["ALL"]:
            return list(self.listed.values())
        names: list[str] = []
        for at, word in enumerate(words):
            if word.upper() == "TO" or not _NAME.match(word):
                continue
            if at > 1 and words[at - 1].upper() == "TO":
                names += self._between(words[at - 2], word)
            names.append(word)
            if self._named + len(names) > MOST_NAMED:
                raise SchemaError(f"the commands name variables more than {MOST_NAMED:,} times")
        self._named += len(names)
        return [self.listed.setdefault(name.lower(), Variable(name)) for name in names[: MOST_COLUMNS + 1]]

    def _between(self, first: str, last: str) -> list[str]:
        """Return the names from one name to another: the declared names, or else the numbered names."""
        order = list(self.listed)
        if first.lower() in self.listed and last.lower() in self.listed:
            known = order[order.index(first.lower()) + 1 : order.index(last.lower())]
            return [self.listed[name].name for name in known]
        low, high = _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(last)
        if low is None or high is None or low[1].lower() != high[1].lower() or max(len(low[2]), len(high[2])) > 6:
            return []
        numbers = range(int(low[2]) + 1, min(int(high[2]), int(low[2]) + MOST_COLUMNS + 1))
        return [f"{low[1]}{number:0{len(low[2])}d}" for number in numbers]

    def _label(self, tokens: list[Token]) -> None:
        for (kind, name), (after, label) in itertools.pairwise(tokens):
            if (kind, after) == ("word", "text"):
                self.named([name])[0].label = plain(label)

    def _set_labels(self, tokens: list[Token]) -> None:
        self._label_values(tokens, anew=True)

    def _label_values(self, tokens: list[Token], *, anew: bool = False) -> None:
        """Add value labels. ``VALUE LABELS`` replaces the labels from earlier commands."""
        for part in _parts(tokens):
            first = next((at for at, (kind, _) in enumerate(part) if kind == "text"), len(part))
            if first == len(part):
                continue
            before = [word for kind, word in part[:first] if kind == "word"]
            value_first = first + 1 < len(part) and part[first + 1][0] == "text"
            numbers = next((at for at, word in enumerate(before) if at and NUMBER.fullmatch(word)), None)
            count = len(before) if value_first else numbers if numbers is not None else len(before) - 1
            labels = [token for token in part if token[0] != "sign"][count:]
            named = self.named(before[:count])
            self._labelled += len(named) * len(labels) // 2
            if self._labelled > MOST_LABELS:
                raise SchemaError(f"the variables have more than {MOST_LABELS:,} labelled codes in total")
            for variable in named:
                if anew:
                    variable.labels = {}
                for (kind, code), (after, label) in zip(labels[::2], labels[1::2], strict=False):
                    if after == "text":
                        variable.labels[_code(kind, code)] = label
                        variable.form = variable.form or ("F" if kind == "word" and NUMBER.fullmatch(code) else "")

    def _mark(self, tokens: list[Token]) -> None:
        for words, inside in _in_brackets(tokens):
            for variable in self.named(words):
                variable.missing = [inside]

    def _level(self, tokens: list[Token]) -> None:
        for words, inside in _in_brackets(tokens):
            for variable in self.named(words):
                variable.level = _LEVELS.get("".join(word for _, word in inside)[:3].upper(), "")

    def _format(self, tokens: list[Token]) -> None:
        for words, inside in _in_brackets(tokens):
            for variable in self.named(words):
                variable.form = _form(inside)

    def _list(self, tokens: list[Token]) -> None:
        """Read the variables after the first slash that follows the options: names, columns, and formats in
        parentheses.
        """
        bars = [at for at, token in enumerate(tokens) if token == ("sign", "/")]
        start = next((at for at in bars if not _is_option(tokens, at)), None)
        words: list[str] = []
        inside: list[Token] | None = None
        for kind, word in tokens[start + 1 :] if start is not None else ():
            if word == "(" and kind == "sign":
                inside = []
            elif word == ")" and kind == "sign":
                for variable in self.named(words):
                    variable.form = _form(inside or [])
                words, inside = [], None
            elif inside is not None:
                inside.append((kind, word))
            elif kind == "word" and _NAME.match(word):
                if words and words[-1].startswith("\n"):
                    self._plain(words)
                    words = []
                words.append(word)
            elif kind == "word" and words:
                words.append("\n" + word)
            words = [w for w in words if not (inside == [] and w.startswith("\n"))]
        self._plain(words)

    def _plain(self, words: Sequence[str]) -> None:
        """Record the variables of a list without a format in parentheses, which are numbers."""
        for variable in self.named([word for word in words if not word.startswith("\n")]):
            variable.form = variable.form or "F"

    def _get(self, tokens: list[Token]) -> None:
        """Read the pairs of a name and a format after ``/VARIABLES=``."""
        at = next((i for i, (_, word) in enumerate(tokens) if word.upper() == "VARIABLES"), len(tokens))
        end = next((i for i in range(at + 1, len(tokens)) if tokens[i] == ("sign", "/")), len(tokens))
        if end == at + 2 and tokens[end] == ("sign", "/"):  # a record of fixed columns: /1 name 0-3 F4
            end = len(tokens)
        words = [word for kind, word in tokens[at + 1 : end] if kind == "word" and _NAME.match(word)]
        for name, form in zip(words[::2], words[1::2], strict=False):
            self.named([name])[0].form = form.upper() if _FORMAT.fullmatch(form) else ""

    def _delete(self, tokens: list[Token]) -> None:
        for variable in self.named([word for kind, word in tokens if kind == "word"]):
            self.listed.pop(variable.name.lower(), None)

    def _rename(self, tokens: list[Token]) -> None:
        words = [word for kind, word in tokens if kind == "word" or word in "=)"]
        new: dict[str, str] = {}
        while words:
            end = words.index(")") if ")" in words else len(words)
            part, words = words[:end], words[end + 1 :]
            if "=" in part:
                new |= dict(zip(part[: part.index("=")], part[part.index("=") + 1 :], strict=False))
        by_name = {old.lower(): name for old, name in new.items()}
        for old, variable in self.listed.items():
            variable.name = by_name.get(old, variable.name)
        self.listed = {variable.name.lower(): variable for variable in self.listed.values()}


def _joined(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens; quoted pieces connected by a plus sign are joined."""
    out: list[Token] = []
    plus = False
    for kind, word in tokens:
        if kind == "text" and plus and out and out[-1][0] == "text":
            out[-1] = ("text", out[-1][1] + word)
        elif (kind, word) != ("sign", "+"):
            out.append((kind, word))
        plus = (kind, word) == ("sign", "+")
    return out


def _parts(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the parts between slashes."""
    for bar, part in itertools.groupby(tokens, lambda token: token == ("sign", "/")):
        if not bar:
            yield list(part)


def _in_brackets(tokens: Sequence[Token]) -> Iterator[tuple[list[str], list[Token]]]:
    """Yield the words before each pair of parentheses, and the words inside it."""
    words: list[str] = []
    inside: list[Token] | None = None
    for kind, word in tokens:
        if (kind, word) == ("sign", "("):
            inside = []
        elif (kind, word) == ("sign", ")"):
            yield words, inside or []
            words, inside = [], None
        elif inside is not None:
            inside.append((kind, word))
        elif kind == "word":
            words.append(word)


def _is_option(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a slash of ``DATA LIST`` starts an option, such as ``/NAME=``, instead of the list of
    variables.
    """
    return at + 2 < len(tokens) and tokens[at + 2] == ("sign", "=")


def _form(inside: Sequence[Token]) -> str:
    """Return the format in parentheses: ``(F8.2)``, ``(F,2)``, ``(A)``, or only decimals, as in ``(2)``."""
    words = [word for kind, word in inside if kind == "word"]
    if not words:
        return "F"
    if words[0].isdigit():
        return f"F8.{words[0]}"
    return f"{words[0]}8.{words[1]}".upper() if len(words) > 1 else words[0].upper()


def _code(kind: str, code: str) -> str:
    """Return a code as a table would write it: ``1.00`` becomes ``1``, and quoted text loses its trailing blanks."""
    return code_text(float(code)) if kind == "word" and NUMBER.fullmatch(code) else code.strip()


def declared_variable(variable: Variable, notes: list[str]) -> Declared:
    """Return the declaration of a variable. Labels on only some codes do not declare a domain."""
    form, level = variable.form, variable.level
    whole = is_whole(form) or re.fullmatch(r"F[0-9]+", form) is not None
    missing = [code for listed in variable.missing for code in _missing(variable, listed, notes, whole=whole)]
    text = form.startswith("A") and not is_date(form)
    codes = tuple(code for code in variable.labels if code not in missing)
    complete = (level != "scale" or kinds_not_amounts(codes, variable.labels)) and declares_all(codes, variable.labels)
    kind: DeclaredKind = "open"
    if complete:
        kind = "ordinal" if level == "ordinal" else "categorical"
    elif is_date(form):
        kind = "date"
    elif text or is_time(form) or (level != "scale" and any(is_value(code, variable.labels) for code in codes)):
        kind = "open"
    elif form or level == "scale" or (missing and all(NUMBER.fullmatch(code) for code in missing)):
        kind = "numeric"
    places = decimals(form)
    return Declared(
        variable.name,
        kind,
        codes if complete else (),
        pairs(variable.labels.items()),
        tuple(dict.fromkeys(missing)),
        integer=kind == "numeric" and whole,
        decimals=int(places) if kind == "numeric" and places not in ("", "0") else None,
        label=variable.label,
    )


def _missing(variable: Variable, listed: Sequence[Token], notes: list[str], *, whole: bool) -> Iterator[str]:
    """Yield the codes of one list of missing values: ``(9)``, ``(97 THRU 99, -1)``, ``(LO THRU -1)``, ``('x')``."""
    tokens = [token for token in listed if token[0] != "sign"]
    at = 0
    while at < len(tokens):
        kind, word = tokens[at]
        if at + 2 < len(tokens) and tokens[at + 1][1].upper() in ("THRU", "THROUGH"):
            ends = _end(word), _end(tokens[at + 2][1])
            at += 3
            if None in ends:
                add_note(notes, variable.name, "a range of missing values without numbers was not used")
            else:
                part = dict(zip(("lo", "hi"), ends, strict=True))
                yield from missing_codes(variable.name, part, variable.labels, notes, whole=whole)
        else:
            at += 1
            if code := _code(kind, word):  # blanks mean an empty cell
                yield code


def _end(word: str) -> float | None:
    if word.upper() in _LOWEST | _HIGHEST:
        return float("-inf") if word.upper() in _LOWEST else float("inf")
    return float(word) if NUMBER.fullmatch(word) else None
