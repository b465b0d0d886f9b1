"""DDI codebooks (XML, versions 1 and 2), read without entities. Frequencies and summary statistics are not read."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from espalier.core.dictionaries.base import (
    MOST_COLUMNS,
    MOST_MARKS,
    YES,
    Declared,
    DeclaredKind,
    Dictionary,
    add_note,
    digest_of,
    pairs,
    plain,
)
from espalier.core.dictionaries.complete_lists import declares_all, is_value
from espalier.core.dictionaries.formats import decimals, is_date
from espalier.core.errors import SchemaError
from espalier.core.xml_text import read_xml

_WHOLE = re.compile(r"-?[0-9]{1,9}")
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_STATISTICS = "the file contains frequencies or summary statistics; they and the ranges next to them were not read"


def read_ddi(data: bytes, source: str) -> Dictionary:
    """Return the dictionary in the file; raise :class:`SchemaError`.

    The codebook may be part of a record that an archive's catalogue sends.
    """
    whole = read_xml(data, source)
    root = whole if whole.tag in ("codeBook", "dataDscr") else whole.find(".//codeBook")
    if root is None:
        raise SchemaError(
            f"{source} is XML but not a DDI codebook: its root is {whole.tag!r}. Export the study as DDI Codebook 2"
        )
    named = (var for var in root.iter("var") if var.get("name"))
    notes: list[str] = []
    columns = tuple(_declared(var, notes) for var in itertools.islice(named, MOST_COLUMNS + 1))
    counted = any(True for _ in root.iter("sumStat")) or any(True for _ in root.iter("catStat"))
    return Dictionary(columns, source, "DDI codebook", digest_of(data), (*((_STATISTICS,) if counted else ()), *notes))


def _declared(var: Element, notes: list[str]) -> Declared:
    """Return one variable. Its range is ignored next to summary statistics: tools compute both from the rows."""
    form = var.find("varFormat")
    text = form is not None and form.get("type") == "character"
    missing: dict[str, str] = {}
    listed: list[tuple[str, str]] = []
    for category in itertools.chain(var.iterfind("catgry"), var.iterfind("catgryGrp/catgry")):
        code = _text(category.find("catValu"))
        if code and code.casefold() != "sysmiss":  # Nesstar's name for an empty cell
            if category.get("missing", "").casefold() in YES:
                missing[code] = _label(category) or missing.get(code, "")
            else:
                listed.append((code, _label(category)))
    for code in _invalid(var, notes):
        missing.setdefault(code, "")
    labels = dict(pairs([*listed, *missing.items()]))
    if all(label in ("", code) for code, label in listed) and var.find("catgry/catStat") is not None:
        listed = []  # values without labels that a tool found in the rows and counted
    codes = tuple(dict.fromkeys(code for code, _ in listed if code not in missing))
    nature, continuous = var.get("nature", ""), var.get("intrvl") == "contin"
    complete = bool(codes) and not continuous and (nature in ("nominal", "ordinal") or declares_all(codes, labels))
    kind: DeclaredKind = "open"
    if complete:
        kind = "ordinal" if nature == "ordinal" else "categorical"
    elif form is not None and _shows_dates(form):
        kind = "date"
    elif text:
        kind = "open"
    elif continuous or nature in ("interval", "ratio") or (form is not None and form.get("type") == "numeric"):
        values = any(is_value(code, labels) for code in codes)
        kind = "open" if values and not continuous else "numeric"
    digits = var.get("dcml") or ("" if form is None else form.get("dcml") or decimals(form.get("formatname", "")))
    places = int(digits) if re.fullmatch("[1-9]", digits) else None
    return Declared(
        str(var.get("name")),
        kind,
        codes if complete else (),
        tuple(labels.items()),
        tuple(missing),
        _range(var) if kind in ("numeric", "date") else ("", ""),
        integer=kind == "numeric" and digits == "0",
        decimals=places if kind == "numeric" else None,
        label=_label(var),
        unit=plain(var.get("measUnit", "")),
        description=plain(_text(var.find("txt")) or _text(var.find("qstn/qstnLit"))),
    )


def _range(var: Element) -> tuple[str, str]:
    found = var.find("valrng/range")
    if found is None or var.find("sumStat") is not None:
        return "", ""
    return found.get("min", "").strip(), found.get("max", "").strip()


def _shows_dates(form: Element) -> bool:
    """Whether a format is one of dates, by its category, its name or its text."""
    named = (form.get("formatname", "").strip(), _text(form))
    return form.get("category") in ("date", "time") or any("date" in name.lower() or is_date(name) for name in named)


def _invalid(var: Element, notes: list[str]) -> Iterator[str]:
    """Yield the codes of ``invalrng``: single values, and ranges of whole numbers."""
    for item in var.iterfind("invalrng/item"):
        yield (item.get("VALUE") or item.get("value") or "").strip()
    for item in var.iterfind("invalrng/range"):
        low, high = item.get("min", "").strip(), item.get("max", "").strip()
        if low and low == high:
            yield low
        elif _WHOLE.fullmatch(low) and _WHOLE.fullmatch(high) and 0 < int(high) - int(low) < MOST_MARKS:
            yield from map(str, range(int(low), int(high) + 1))
        else:
            add_note(notes, var.get("name", ""), "a range of missing values without whole, near ends was not used")


def _label(element: Element) -> str:
    """Return the label, in English if there are several languages."""
    listed = element.findall("labl")
    english = [found for found in listed if found.get(_LANGUAGE, "").lower().startswith("en")]
    return plain(_text(next(iter(english or listed), None)))


def _text(element: Element | None) -> str:
    return "" if element is None else "".join(element.itertext()).strip()
