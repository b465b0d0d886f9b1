"""Reading ODK and CommCare XForms (XML): the questions of a form with their choices and limits."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from xml.etree.ElementTree import Element

from espalier.core.dictionaries.base import MOST_COLUMNS, Dictionary, plain
from espalier.core.dictionaries.questions import NO_CHOICES, Choices, Question, choices_of, columns_of
from espalier.core.errors import SchemaError
from espalier.core.xml_text import inner_text

_CONTROLS = ("input", "select", "select1", "range", "rank", "upload", "trigger", "secret")
MOST_STEPS = 50
"""Maximum number of nested groups around a question."""
_ITEXT = re.compile(r"jr:itext\('([^']*)'\)")
_INSTANCE = re.compile(r"instance\('([^']*)'\)")
_PRELOADS = ("start", "end", "today", "deviceid", "subscriberid", "simserial", "phonenumber", "username", "email")
_TYPES = {
    **{"int": "integer", "integer": "integer", "long": "integer", "decimal": "decimal", "double": "decimal"},
    **{"float": "decimal", "date": "date", "datetime": "datetime", "time": "time", "boolean": "boolean"},
    **{"geopoint": "geopoint", "geotrace": "geotrace", "geoshape": "geoshape", "binary": "file", "barcode": "barcode"},
}


def is_xform(whole: Element) -> bool:
    """Return whether the file is a form: a model with binds."""
    return whole.find(".//model/bind") is not None and whole.find(".//model/instance") is not None


def read_xform(whole: Element, source: str) -> Dictionary:
    """Return the dictionary of a form; raise :class:`SchemaError`."""
    form = _Form(whole)
    notes: list[str] = []
    columns = tuple(itertools.islice(columns_of(form.questions(), notes), MOST_COLUMNS + 1))
    if not columns:
        raise SchemaError(f"{source} is a form without questions")
    return Dictionary(columns, source, "XForm", tuple(notes))


class _Form:
    """Texts, lists and controls of a form. Each of them is read once."""

    def __init__(self, whole: Element) -> None:
        self.binds = list(whole.iter("bind"))
        self.texts = _texts(whole)
        self.controls = {
            ref: control
            for tag in _CONTROLS
            for control in whole.iter(tag)
            if (ref := control.get("ref") or control.get("bind"))
        }
        self._read: dict[int, tuple[str, str, Choices]] = {}
        self.lists: dict[str, Choices] = {}
        for instance in whole.iter("instance"):
            if instance.get("id"):
                self.lists[str(instance.get("id"))] = self._secondary(instance)

    def questions(self) -> Iterator[Question]:
        """Yield the question of each bind that has a question."""
        skipped = {bind.get("nodeset", "") for bind in self.binds if bind.get("relevant")}
        for bind in self.binds:
            path = (bind.get("nodeset") or bind.get("ref") or "").strip()
            control = self.controls.get(path)
            if control is None and bind.get("id"):
                control = self.controls.get(str(bind.get("id")))
            steps = [step for step in path.split("/") if step][-MOST_STEPS:]
            kind = self._kind(bind, control)
            if not steps or not kind or steps[-1].startswith("@") or _is_meta(steps):
                continue
            around = {"/" + "/".join(steps[:at]) for at in range(1, len(steps) + 1)}
            always = not (around & skipped)
            label, hint, choices = self._said(control)
            yield Question(
                steps[-1],
                kind,
                tuple(steps[1:-1]),
                label,
                hint,
                choices,
                bind.get("constraint", ""),
                always and bind.get("required", "").strip() in ("true()", "true"),
                "" if control is None else " ".join(f"{key}={control.get(key)}" for key in ("start", "end", "step")),
            )

    def _kind(self, bind: Element, control: Element | None) -> str:
        """Return the type of a question by its name in XLSForm, or an empty string if the bind is not a question."""
        stated = bind.get("type", "string").rpartition(":")[2].casefold()
        preload = next((value for key, value in bind.attrib.items() if key.rpartition("}")[2] == "preloadParams"), "")
        preload = preload.removeprefix("uri:")
        if preload:
            return preload if preload in _PRELOADS else "hidden"
        if control is None:
            return "calculate" if bind.get("calculate") else ""
        if control.tag in ("select1", "select"):
            kind = "one" if control.tag == "select1" else "multiple"
            return f"select {kind}"
        if control.tag in ("range", "rank"):
            return control.tag
        if control.tag == "trigger":
            return "acknowledge"
        if control.tag == "input" and bind.get("readonly", "").strip() == "true()":
            return "calculate" if bind.get("calculate") else "note"
        return _TYPES.get(stated, "text" if stated == "string" else stated)

    def _said(self, control: Element | None) -> tuple[str, str, Choices]:
        """Return the label, hint and choices of a control. Each control is read once, because many binds may refer to
        it.
        """
        if control is None:
            return "", "", NO_CHOICES
        if id(control) not in self._read:
            texts = self.text(control.find("label")), self.text(control.find("hint"))
            self._read[id(control)] = (*texts, self._choices(control))
        return self._read[id(control)]

    def _choices(self, control: Element) -> Choices:
        """Return the choices of a question, or those of the list that it refers to."""
        if control.tag not in ("select", "select1"):
            return NO_CHOICES
        itemset = control.find("itemset")
        if itemset is not None:
            found = _INSTANCE.search(itemset.get("nodeset", ""))
            return self.lists.get(found[1], NO_CHOICES) if found else NO_CHOICES
        listed = (
            (plain(item.findtext("value") or ""), self.text(item.find("label"))) for item in control.iterfind("item")
        )
        return choices_of(listed)

    def _secondary(self, instance: Element) -> Choices:
        """Return the choices in a list that is a separate instance."""
        root = next(iter(instance), None)
        out: dict[str, str] = {}
        for item in root if root is not None else ():
            code = plain(item.findtext("name") or item.findtext("value") or "")
            text = item.findtext("label") or self.texts.get(item.findtext("itextId") or "", "")
            if code:
                out.setdefault(code, plain(text))
        return choices_of(out.items())

    def text(self, element: Element | None) -> str:
        """Return a label, or the text that it refers to."""
        if element is None:
            return ""
        found = _ITEXT.fullmatch((element.get("ref") or "").strip())
        return self.texts.get(found[1], "") if found else plain(inner_text(element))


def _is_meta(steps: Sequence[str]) -> bool:
    """Return whether a path names part of the form's own record, such as its identifier, rather than a question."""
    return len(steps) > 2 and steps[1].rpartition(":")[2] == "meta"


def _texts(whole: Element) -> Mapping[str, str]:
    """Return the form's texts by identifier: in English, the form's own language, or the first language."""
    languages = list(whole.iter("translation"))

    def rank(translation: Element) -> int:
        language = (translation.get("lang") or "").casefold()
        return (
            0 if language.startswith("en") or "(en" in language else 1 if translation.get("default") is not None else 2
        )

    out: dict[str, str] = {}
    for translation in sorted(languages, key=rank):
        for text in translation.iterfind("text"):
            plain_values = [value for value in text.iterfind("value") if not value.get("form")]
            if plain_values and text.get("id"):
                out.setdefault(str(text.get("id")), plain(inner_text(plain_values[0])))
    return out
