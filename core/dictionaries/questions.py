"""Questions of ODK forms, as XLSForm writes them. XLSForms are compiled into XForms, which use the same types."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from espalier.core.dictionaries.base import MOST_COLUMNS, SHORT, Declared, DeclaredKind, add_note, pairs

_KINDS: dict[str, DeclaredKind] = {
    **dict.fromkeys(("integer", "int", "decimal", "range"), "numeric"),
    **dict.fromkeys(("date", "today", "datetime", "start", "end"), "date"),
    **dict.fromkeys(("deviceid", "subscriberid", "simserial", "phonenumber", "username", "email"), "identifier"),
    **dict.fromkeys(("text", "string", "geopoint", "geotrace", "geoshape", "audit"), "text"),
    **dict.fromkeys(("image", "audio", "video", "file", "osm", "start-geopoint", "background-audio"), "text"),
    **dict.fromkeys(("barcode", "calculate", "hidden", "time", "rank", "select file", "background-geopoint"), "open"),
}
_OTHER_NAMES = {
    **{"int": "integer", "string": "text", "date time": "datetime", "dateTime": "datetime", "q int": "integer"},
    **{"q string": "text", "photo": "image", "signature": "image", "gps": "geopoint", "location": "geopoint"},
    **{"get device id": "deviceid", "device id": "deviceid", "imei": "deviceid", "get sim id": "simserial"},
    **{"sim id": "simserial", "phone number": "phonenumber", "get phone number": "phonenumber"},
    **{"get subscriber id": "subscriberid", "start time": "start", "get start time": "start", "end time": "end"},
    **{"get end time": "end", "get today": "today", "q date": "date", "q decimal": "decimal", "trigger": "acknowledge"},
    **{"get email address": "email", "uri:email": "email", "uri:username": "username", "uri:deviceid": "deviceid"},
    **{"uri:phonenumber": "phonenumber", "uri:subscriberid": "subscriberid", "uri:simserial": "simserial"},
}
"""Other names of types, in lower case."""
NO_COLUMNS = {"note", "xml-external", "csv-external", "entity", ""}
_SELECT = re.compile(
    r"(?:add )?(?:(?P<one>select[ _]?(?:one|1))|(?P<many>select[ _](?:multiple|all that apply))|(?P<rank>rank))"
    r"(?P<file>[ _]external|[ _]from[ _]file)?(?: prompt using| from)? (?P<list>\S+)"
    r"(?P<other> (?:or_other|or other|or specify other))?",
    re.IGNORECASE,
)
_LIMIT = re.compile(r"\(*\.(?P<sign>[<>]=?)(?P<value>-?[0-9]+(?:\.[0-9]+)?|date\('[0-9-]{10}'\)|'[0-9-]{10}')\)*")
_REVERSED = re.compile(r"\(*(?P<value>-?[0-9]+(?:\.[0-9]+)?)(?P<sign>[<>]=?)\.\)*")
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OK = (("OK", "OK"),)
_OTHER = ("other", "Other")


@dataclass(frozen=True)
class Choices:
    """A list of choices, which many questions may share: codes and their labels. A choice without a label is labelled
    by its code.
    """

    labels: tuple[tuple[str, str], ...] = ()

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """Codes in the order of the list."""
        return tuple(code for code, _ in self.labels)

    @cached_property
    def with_other(self) -> Choices:
        """These choices, followed by one for any other answer."""
        return Choices((*(choice for choice in self.labels if choice[0] != _OTHER[0]), _OTHER))


NO_CHOICES = Choices()


def choices_of(listed: Iterable[tuple[str, str]]) -> Choices:
    """Make choices from codes with labels."""
    return Choices(pairs((code, label or code) for code, label in listed))


@dataclass(frozen=True)
class Question:
    """One question of a form.

    ``kind`` is a type of XLSForm, ``select one`` or ``select multiple``. ``parameters`` are the parameters of a range,
    such as ``start=1 end=10 step=1``.
    """

    name: str
    kind: str
    path: tuple[str, ...] = ()
    label: str = ""
    description: str = ""
    choices: Choices = NO_CHOICES
    constraint: str = ""
    required: bool = False
    parameters: str = ""


def kind_and_list(stated: str) -> tuple[str, str, bool]:
    """Return the type of a question, the name of its choice list, and whether other answers are allowed."""
    text = " ".join(stated[:SHORT].split())
    found = _SELECT.fullmatch(text)
    if found is None:
        folded = "osm" if text.casefold().startswith("osm ") else text.casefold()
        return _OTHER_NAMES.get(folded, folded), "", False
    kind = "select one" if found["one"] else "select multiple" if found["many"] else "rank"
    if found["file"] or found["list"].startswith("${"):
        kind = "select file" if found["one"] else "rank"
    return kind, found["list"], bool(found["other"])


def columns_of(questions: Iterable[Question], notes: list[str]) -> Iterator[Declared]:
    """Yield the columns of each question. A name that occurs in several groups is preceded by the names of its
    groups.
    """
    listed = list(itertools.islice(questions, MOST_COLUMNS + 1))
    used = Counter(question.name for question in listed)
    for question in listed:
        if used[question.name] > 1:
            question = replace(question, name="/".join((*question.path, question.name)))
        yield from _columns(question, notes)


def other_answer(question: Question) -> tuple[Question, Question]:
    """Return a question with the choice "other", and a second question for the text of that answer."""
    more = Question(f"{question.name}_other", "text", question.path)
    return replace(question, choices=question.choices.with_other), more


def for_each(question: Question, choices: Choices) -> Iterator[Question]:
    """Yield a question in a loop once for each choice. The code of the choice precedes its name."""
    for code, label in choices.labels:
        if code != _OTHER[0]:
            shown = question.label.replace("%(label)s", label[:SHORT], 1).replace("%(name)s", code[:SHORT], 1)
            yield replace(question, name=f"{code}/{question.name}", label=shown)


def _columns(question: Question, notes: list[str]) -> Iterator[Declared]:
    about = Declared(question.name, required=question.required, label=question.label, description=question.description)
    kind, choices = question.kind, question.choices
    if kind in NO_COLUMNS:
        return
    if kind == "select one" and choices.codes:
        yield replace(about, kind="categorical", categories=choices.codes, labels=choices.labels)
    elif kind == "select multiple":
        yield about
        for code, label in choices.labels:
            shown = f"{question.label[:SHORT]}: {label}"
            yield Declared(f"{question.name}/{code}", "categorical", ("0", "1"), label=shown)
    elif kind == "acknowledge":
        yield replace(about, kind="categorical", categories=("OK",), labels=_OK)
    else:
        if kind not in _KINDS and not kind.startswith("select"):
            add_note(notes, question.name, f"the type {kind[:SHORT]!r} is unknown, so the column has no declared kind")
        yield _measured(replace(about, kind=_KINDS.get(kind, "open")), question)


def _measured(about: Declared, question: Question) -> Declared:
    """Return a column with the range that its constraint or its parameters state."""
    if about.kind not in ("numeric", "date"):
        return about
    if question.kind == "range":
        given = dict(part.split("=", 1) for part in re.split(r"[\s,;]+", question.parameters) if part.count("=") == 1)
        ends = given.get("start", "1"), given.get("end", "10")
        whole = not any("." in text for text in (*ends, given.get("step", "1")))
        return replace(about, range=ends, integer=whole)
    ends = _ends(question.constraint)
    return replace(about, range=ends, integer=question.kind == "integer")


def _ends(constraint: str) -> tuple[str, str]:
    """Return the bounds in a constraint such as ``. >= 0 and . <= 120``. Alternatives are not read."""
    clauses = re.split(r"\band\b", constraint[:1000])
    ends = {"<": "", ">": ""}
    if re.search(r"\bor\b", constraint[:1000]):
        return "", ""
    for clause in clauses:
        bare = re.sub(r"\s+", "", clause)
        found, turned = _LIMIT.fullmatch(bare), _REVERSED.fullmatch(bare)
        if found or turned:
            sign = found["sign"] if found else _TURNED[turned["sign"]] if turned else ""
            value = (found or turned)["value"]  # type: ignore[index]
            ends[sign[0]] = ends[sign[0]] or value.removeprefix("date(").strip("()'")
    return ends[">"], ends["<"]
