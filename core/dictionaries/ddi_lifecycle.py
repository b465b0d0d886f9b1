"""DDI Lifecycle (XML, version 3): variables with their representations. Frequencies and statistics are not read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from espalier.core.dictionaries.base import (
    MOST_MARKS,
    YES,
    Declared,
    DeclaredKind,
    Dictionary,
    add_note,
    once_each,
    pairs,
    plain,
)
from espalier.core.dictionaries.complete_lists import is_value
from espalier.core.errors import SchemaError
from espalier.core.xml_text import inner_text

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_LISTS = ("CodeList", "CodeScheme")
_LABELLED = (*_LISTS, "Category", "RepresentedVariable", "ConceptualVariable")
_MANAGED = "Managed"
_KINDS = ("Numeric", "Code", "Text", "DateTime", "Category", "Scale", "Geographic", "MissingValues")
_WHOLE_TYPES = {"integer", "int", "long", "short", "biginteger", "count", "nonnegativeinteger", "incremental"}
MOST_CODES = 1_000_000
"""Maximum number of codes and parts over all variables, because many variables may share a long list."""
_WHOLE = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True)
class CodeList:
    """Codes of a list with their labels, and the codes that mean missing."""

    labels: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]


def is_lifecycle(whole: Element) -> bool:
    """Return whether the file describes variables in the form of DDI Lifecycle."""
    return any(_representation(variable) is not None for variable in whole.iter("Variable"))


def read_lifecycle(whole: Element, source: str) -> Dictionary:
    """Return the dictionary in the file; raise :class:`SchemaError`.

    A file may contain the variables of several tables; for variables with the same name, the first description is used.
    """
    notes: list[str] = []
    items = _Items(whole)
    found = ((at, items.column(variable, notes)) for at, scheme in enumerate(_schemes(whole)) for variable in scheme)
    read = once_each(((at, column) for at, column in found if column is not None), notes)
    if not read:
        raise SchemaError(f"{source} is DDI Lifecycle but describes no variables")
    return Dictionary(read, source, "DDI Lifecycle", tuple(notes))


def _schemes(whole: Element) -> Iterator[list[Element]]:
    """Yield the variables of each scheme. A variable outside any scheme, as in a list of fragments, forms a scheme of
    its own.
    """
    inside: set[int] = set()
    for scheme in whole.iter("VariableScheme"):
        listed = [variable for variable in scheme.iterfind("Variable") if id(variable) not in inside]
        inside |= {id(variable) for variable in listed}
        yield listed
    for variable in whole.iter("Variable"):
        if id(variable) not in inside:
            yield [variable]


class _Items:
    """Elements that variables refer to, by identifier. Each list of codes is read once."""

    def __init__(self, whole: Element) -> None:
        self.known: dict[str, Element] = {}
        self._lists: dict[int, CodeList] = {}
        self._labels: dict[int, str] = {}
        self._units: dict[int, str] = {}
        self._held = 0
        for element in whole.iter():
            if isinstance(element.tag, str) and (element.tag in _LABELLED or element.tag.startswith(_MANAGED)):
                for key in _own_keys(element):
                    self.known.setdefault(key, element)

    def find(self, reference: Element | None) -> Element | None:
        """Return the element that a reference names, or that it contains."""
        if reference is None:
            return None
        return next((self.known[key] for key in _keys(reference) if key in self.known), None)

    def label(self, element: Element | None) -> str:
        """Return the label of an element to which many others may refer."""
        if element is None:
            return ""
        if id(element) not in self._labels:
            self._labels[id(element)] = _label(element)
        return self._labels[id(element)]

    def unit(self, outer: Element | None) -> str:
        """Return the unit of a representation, which many variables may share."""
        element = None if outer is None else outer.find("MeasurementUnit")
        if element is None:
            return ""
        if id(element) not in self._units:
            self._units[id(element)] = plain(_text(element))
        return self._units[id(element)]

    def codes(self, found: Element) -> CodeList:
        """Return the codes of a list."""
        if id(found) not in self._lists:
            self._lists[id(found)] = self._read(found)
        return self._lists[id(found)]

    def _read(self, found: Element) -> CodeList:
        labels: list[tuple[str, str]] = []
        missing: list[str] = []
        for code in _codes(found):
            value = plain(code.findtext("Value") or "")
            category = self.find(code.find("CategoryReference"))
            category = code.find("Category") if category is None else category
            if value:
                labels.append((value, self.label(category) or _label(code)))
                stated = "" if category is None else category.get("isMissing") or category.get("missing") or ""
                missing += [value] if stated.casefold() in YES else []
        return CodeList(tuple(dict(labels).items()), tuple(missing))

    def _hold(self, more: int) -> None:
        """Count codes and parts, which many variables may share; raise :class:`SchemaError` for too many."""
        self._held += more
        if self._held > MOST_CODES:
            raise SchemaError(f"the variables have more than {MOST_CODES:,} codes and parts in total")

    def column(self, variable: Element, notes: list[str]) -> Declared | None:
        """Return one variable, or `None` if it has no name."""
        name = _name(variable)
        if not name:
            add_note(notes, "a variable", "it has no name and was not read")
            return None
        base = self.find(variable.find("RepresentedVariableReference"))
        shown, outer = _representation(variable), _outer(variable)
        if shown is None and base is not None:
            shown, outer = _representation(base), _outer(base)
        managed = None
        if shown is not None and shown.tag.endswith("Reference"):
            managed = self.find(shown)
            shown = shown if managed is None else managed
        label = _label(variable) or self.label(base)
        about = Declared(name, label=label, description=plain(_content(variable.find("Description"))))
        if shown is None:
            return about
        self._hold(sum(len(part) for part in (base, shown, outer) if part is not None))
        return self._declared(shown, outer, replace(about, unit=self.unit(outer)), notes)

    def _declared(self, shown: Element, outer: Element | None, about: Declared, notes: list[str]) -> Declared:
        kind = next((kind for kind in _KINDS if shown.tag.removeprefix(_MANAGED).startswith(kind)), "")
        special = self._missing(shown, outer, about.name, notes)
        reference = next((found for tag in _LISTS if (found := shown.find(f"{tag}Reference")) is not None), None)
        held = next((found for tag in _LISTS if (found := shown.find(tag)) is not None), None)
        listed = self.find(reference) if held is None else held
        own = CodeList((), ()) if listed is None else self.codes(listed)
        self._hold(len(own.labels) + len(special.labels))
        labels = own.labels if not special.labels else tuple({**dict(own.labels), **dict(special.labels)}.items())
        missing = tuple(dict.fromkeys((*own.missing, *special.missing)))
        about = replace(about, labels=pairs(labels), missing=missing)
        level = (shown.get("classificationLevel") or "").casefold()
        if kind == "Code":
            return _of_codes(about, [code for code, _ in own.labels if code not in set(missing)], level)
        if kind == "DateTime":
            stated = (shown.findtext("DateTypeCode") or shown.get("type") or "date").casefold()
            dates = "date" in stated or stated.startswith("year")
            return replace(about, kind="date" if dates and "duration" not in stated else "open")
        if kind == "Numeric":
            stated = (shown.findtext("NumericTypeCode") or shown.get("type") or "").casefold()
            digits = shown.get("decimalPositions") or ""
            whole = stated in _WHOLE_TYPES or digits == "0"
            places = int(digits) if re.fullmatch("[1-9]", digits) else None
            return replace(about, kind="numeric", integer=whole, decimals=places, range=_range(shown))
        return about

    def _missing(self, shown: Element, outer: Element | None, name: str, notes: list[str]) -> CodeList:
        """Return the missing codes that a representation states, or those in its list of missing values."""
        stated = " ".join(part.get("missingValue") or "" for part in (shown, outer) if part is not None).split()
        labels: dict[str, str] = {}
        for part in (outer, shown):
            found = self.find(part.find("MissingValuesReference")) if part is not None else None
            self._hold(len(found) if found is not None else 0)
            for inner in found if found is not None else ():
                if inner.tag in ("MissingCodeRepresentation", "CodeRepresentation"):
                    listed = self.find(next((i for i in inner if i.tag.endswith("Reference")), None))
                    more = self.codes(listed).labels if listed is not None else ()
                    self._hold(len(more))
                    labels |= dict(more)
                elif inner.tag in ("MissingNumericRepresentation", "NumericRepresentation"):
                    stated += _numbers(inner, name, notes)
        self._hold(len(stated))
        return CodeList(tuple(labels.items()), tuple(dict.fromkeys((*stated, *labels))))


def _codes(found: Element) -> Iterator[Element]:
    """Yield the codes of a list, including nested codes."""
    waiting = [code for code in reversed(found) if code.tag == "Code"]
    while waiting:
        code = waiting.pop()
        yield code
        waiting += (inner for inner in reversed(code) if inner.tag == "Code")


def _of_codes(about: Declared, codes: Sequence[str], level: str) -> Declared:
    """Return a variable with a list of codes. The codes are its values, unless they only name special values of an
    amount.
    """
    labels: Mapping[str, str] = dict(about.labels)
    amounts = level in ("interval", "ratio", "continuous", "percent")
    values = sum(is_value(code, labels) for code in codes)
    if codes and not amounts and (level in ("nominal", "ordinal") or (len(codes) > 1 and values)):
        kind: DeclaredKind = "ordinal" if level == "ordinal" else "categorical"
        return replace(about, kind=kind, categories=tuple(codes))
    return replace(about, kind="numeric" if amounts or not values else "open")


def _numbers(found: Element, name: str, notes: list[str]) -> list[str]:
    """Return the whole numbers of ranges of missing values."""
    out: list[str] = []
    for part in found.iterfind("NumberRange"):
        low, high = _end(part, "Low"), _end(part, "High")
        if _WHOLE.fullmatch(low) and _WHOLE.fullmatch(high) and 0 <= int(high) - int(low) < MOST_MARKS:
            out += map(str, range(int(low), int(high) + 1))
        else:
            add_note(
                notes,
                name,
                "a range of missing values was not used, because its ends are not whole numbers close to each other",
            )
    return out


def _range(shown: Element) -> tuple[str, str]:
    """Return the ends of the only range of numbers."""
    found = shown.findall("NumberRange")
    return (_end(found[0], "Low"), _end(found[0], "High")) if len(found) == 1 else ("", "")


def _end(part: Element, tag: str) -> str:
    return (part.findtext(tag) or part.get(tag.lower()) or "").strip()


def _outer(variable: Element) -> Element | None:
    """Return the element around the representation of a variable."""
    found = variable.find("VariableRepresentation")
    return variable.find("Representation") if found is None else found


def _representation(variable: Element) -> Element | None:
    """Return the representation of a variable, or the reference to a shared one."""
    outer = _outer(variable)
    within: list[Element] = [*(outer if outer is not None else ()), *variable]
    for inner in within:
        name = inner.tag.removeprefix(_MANAGED) if isinstance(inner.tag, str) else ""
        if any(name.startswith(f"{kind}Representation") for kind in _KINDS[:-1]):
            return inner
        if name == "ValueRepresentation" or name == "ValueRepresentationReference":
            return inner
    return None


def _own_keys(element: Element) -> Iterator[str]:
    """Yield the identifiers of an element, which are attributes in version 3.1 and elements in later versions."""
    yield from (text for key in ("id", "urn") if (text := element.get(key)))
    yield from _keys(element)


def _keys(element: Element) -> Iterator[str]:
    """Yield the identifiers in an element. The third part of a URN names the element."""
    for tag in ("URN", "ID", "UserID"):
        text = (element.findtext(tag) or "").strip()
        if text:
            yield text
            parts = text.split(":")
            if tag == "URN" and len(parts) > 3:
                yield parts[3]


def _name(variable: Element) -> str:
    """Return the name of a variable."""
    for tag in ("VariableName", "Name"):
        if text := plain(_content(variable.find(tag))):
            return text
    return ""


def _label(element: Element | None) -> str:
    """Return the label of an element, in English if there are several languages."""
    if element is None:
        return ""
    listed = [content for label in element.iterfind("Label") for content in (label.findall("Content") or [label])]
    english = [found for found in listed if found.get(_LANGUAGE, "").lower().startswith("en")]
    chosen = next(iter(english or listed), None)
    return plain(_text(chosen)) or plain(_content(element.find("CategoryName")))


def _content(element: Element | None) -> str:
    """Return the text of an element: its ``String`` or ``Content``, or its own."""
    if element is None:
        return ""
    inside = [part for part in element if part.tag in ("String", "Content")]
    english = [part for part in inside if part.get(_LANGUAGE, "").lower().startswith("en")]
    return _text(next(iter(english or inside), element))


def _text(element: Element | None) -> str:
    return "" if element is None else inner_text(element)
