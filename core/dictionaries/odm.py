"""Reading CDISC ODM and define.xml: the items of a clinical study with code lists, ranges and units. Cells are not
read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from xml.etree.ElementTree import Element

from espalier.core.dictionaries.base import (
    YES,
    Declared,
    DeclaredKind,
    Dictionary,
    once_each,
    pairs,
    plain,
)
from espalier.core.dictionaries.formats import is_date, is_time
from espalier.core.xml_text import inner_text

_NUMBERS = {"integer", "float", "double", "decimal", "hexfloat"}
_DATES = {"date", "datetime"}
_NO_VALUES = {"uri", "base64binary", "hexbinary", "base64float"}
_SUBJECTS = {"USUBJID", "SUBJID", "SUBJECTID"}
"""Names of the person identifier in the CDISC standards."""
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_LOW, _HIGH = {"GE", "GT"}, {"LE", "LT"}
_BOOLEAN = (("true", ("1", "TRUE", "True")), ("false", ("0", "FALSE", "False")))


@dataclass(frozen=True)
class CodeList:
    """Permitted values of an item. ``ordered`` is true if all of them have a rank."""

    codes: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    ordered: bool


def read_odm(whole: Element, source: str) -> Dictionary:
    """Return the dictionary in the file; raise `espalier.core.errors.SchemaError`.

    Each group of items is a table. Several tables may have the same column. The first description is used.
    """
    notes: list[str] = []
    versions = [*whole.iterfind("MetaDataVersion"), *whole.iterfind("*/MetaDataVersion")] or [whole]
    units = {
        unit.get("OID", ""): _first_text(unit, "Symbol") or plain(unit.get("Name", ""))
        for unit in whole.iter("MeasurementUnit")
    }
    found = ((group, column) for version in versions for group, column in _columns(_Items(version, units)))
    form = "define.xml" if any("Standard" in key for version in versions for key in version.attrib) else "CDISC ODM"
    return Dictionary(once_each(found, notes), source, form, tuple(notes))


class _Items:
    """Items and code lists of one version of the metadata. Each item and list is read once, even if many tables refer
    to it.
    """

    def __init__(self, version: Element, units: Mapping[str, str]) -> None:
        self.version, self.units = version, units
        self.items = {item.get("OID", ""): item for item in version.iter("ItemDef")}
        self._read: dict[str, Declared] = {}

    @cached_property
    def lists(self) -> dict[str, CodeList]:
        return {found.get("OID", ""): _code_list(found) for found in self.version.iter("CodeList")}

    def column(self, oid: str) -> Declared:
        """Return the column of an item."""
        if oid not in self._read:
            self._read[oid] = _declared(self.items[oid], self)
        return self._read[oid]


def _columns(items: _Items) -> Iterator[tuple[object, Declared]]:
    """Yield the columns of each group of items, or of all items if no group refers to them.

    Items of value lists are skipped, because they describe only some rows of another item.
    """
    groups = [group for group in items.version.iter("ItemGroupDef") if group.find("ItemRef") is not None]
    if not groups:
        yield from ((0, items.column(oid)) for oid in items.items)
    for at, group in enumerate(groups):
        listed = {ref.get("ItemOID", ""): ref for ref in group.iterfind("ItemRef")}
        known = {oid: ref for oid, ref in listed.items() if oid in items.items}
        names = Counter(_name(items.items[oid]) for oid in known)
        keys = [oid for oid, ref in known.items() if ref.get("KeySequence")]
        for oid, ref in known.items():
            column = items.column(oid)
            if names[column.name] > 1:
                column = replace(column, name=oid)
            if keys == [oid]:
                column = Declared(column.name, "identifier", label=column.label, description=column.description)
            yield at, replace(column, required=ref.get("Mandatory", "").casefold() in YES)


def _name(item: Element) -> str:
    return item.get("Name", "") or item.get("OID", "")


def _declared(item: Element, items: _Items) -> Declared:
    """Return one item. A code list is complete: it defines the permitted values."""
    name, kind = _name(item), item.get("DataType", "").casefold()
    question = _first_text(item, "Question")
    label = _first_text(item, "Description") or plain(_attribute(item, "Label")) or question
    about = Declared(name, label=label, description=question if question != label else "")
    listed = items.lists.get(_reference(item, "CodeListRef", "CodeListOID"))
    checks = [(check.get("Comparator", ""), _values(check)) for check in item.iterfind("RangeCheck")]
    inside = next((values for comparator, values in checks if comparator == "IN" and values), ())
    if name.upper() in _SUBJECTS:
        return replace(about, kind="identifier")
    if (listed is not None and listed.codes) or inside:
        codes = listed or CodeList(tuple(dict.fromkeys(inside)), (), ordered=False)
        shape: DeclaredKind = "ordinal" if codes.ordered else "categorical"
        return replace(about, kind=shape, categories=codes.codes, labels=codes.labels)
    if kind == "boolean":
        return replace(about, kind="categorical", categories=("true", "false"), spellings=_BOOLEAN)
    form = _attribute(item, "DisplayFormat").upper()
    if kind in _DATES or (kind in _NUMBERS and is_date(form)):
        shape = "date"
    elif kind in _NO_VALUES:
        shape = "text"
    else:
        shape = "numeric" if kind in _NUMBERS and listed is None and not (form and is_time(form)) else "open"
    if shape not in ("numeric", "date"):
        return replace(about, kind=shape)
    digits = item.get("SignificantDigits", "")
    return replace(
        about,
        kind=shape,
        range=(_end(checks, _LOW), _end(checks, _HIGH)),
        integer=shape == "numeric" and kind == "integer",
        decimals=int(digits) if shape == "numeric" and kind != "integer" and re.fullmatch("[1-9]", digits) else None,
        unit=items.units.get(_reference(item, "MeasurementUnitRef", "MeasurementUnitOID"), ""),
    )


def _code_list(found: Element) -> CodeList:
    """Return the values of a code list with their labels. An external list has no values."""
    listed = [item for item in found if item.tag in ("CodeListItem", "EnumeratedItem") and item.get("CodedValue")]
    codes = tuple(dict.fromkeys(str(item.get("CodedValue")).strip() for item in listed))
    labels = pairs((str(item.get("CodedValue")).strip(), _first_text(item, "Decode")) for item in listed)
    return CodeList(codes, labels, ordered=bool(listed) and all(_attribute(item, "Rank") for item in listed))


def _values(check: Element) -> tuple[str, ...]:
    return tuple(text for value in check.iterfind("CheckValue") if (text := (value.text or "").strip()))


def _end(checks: list[tuple[str, tuple[str, ...]]], comparators: set[str]) -> str:
    """Return the first lower or upper limit, as written."""
    return next((values[0] for comparator, values in checks if comparator in comparators and values), "")


def _reference(item: Element, tag: str, key: str) -> str:
    found = item.find(tag)
    return "" if found is None else found.get(key, "")


def _attribute(item: Element, name: str) -> str:
    """Return an attribute, in any namespace."""
    return next((value for key, value in item.attrib.items() if key.rpartition("}")[2] == name), "")


def _first_text(item: Element, tag: str) -> str:
    """Return the text of an element, in English if there are several languages."""
    inside = item.find(tag)
    texts = [] if inside is None else inside.findall("TranslatedText")
    english = [found for found in texts if found.get(_LANGUAGE, "").lower().startswith("en")]
    chosen = next(iter(english or texts), inside)
    return "" if chosen is None else plain(inner_text(chosen))
