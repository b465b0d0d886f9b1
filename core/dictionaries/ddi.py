"""DDI codebooks (XML, versions 1 and 2), read without entities. Frequencies and summary statistics are not read."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from espalier.core.dictionaries.base import (
    MOST_COLUMNS,
    Declared,
    DeclaredKind,
    Dictionary,
    declares_all,
    digest_of,
    pairs,
    plain,
)
from espalier.core.errors import SchemaError
from espalier.core.xml_text import read_xml

_STATISTICS = "the file contains frequencies or summary statistics; they and the ranges next to them were not read"


def read_ddi(data: bytes, source: str) -> Dictionary:
    """Return the dictionary in the file; raise :class:`SchemaError`."""
    root = read_xml(data, source)
    if root.tag != "codeBook":
        raise SchemaError(
            f"{source} is XML but not a DDI codebook: its root is {root.tag!r}. Export the study as DDI Codebook 2"
        )
    named = (var for var in root.iter("var") if var.get("name"))
    columns = tuple(_declared(var) for var in itertools.islice(named, MOST_COLUMNS + 1))
    counted = any(True for _ in root.iter("sumStat")) or any(True for _ in root.iter("catStat"))
    return Dictionary(columns, source, "DDI codebook", digest_of(data), (_STATISTICS,) if counted else ())


def _declared(var: Element) -> Declared:
    """Return one variable. Its range is ignored next to summary statistics: tools compute both from the rows."""
    form = var.find("varFormat")
    text = form is not None and form.get("type") == "character"
    missing: list[tuple[str, str]] = []
    listed: list[tuple[str, str]] = []
    for category in var.iter("catgry"):
        code = _text(category.find("catValu"))
        if code:
            (missing if category.get("missing") == "Y" else listed).append((code, _label(category)))
    missing += [(code, "") for code in _invalid(var)]
    labels = dict(pairs([*listed, *missing]))
    codes = tuple(dict.fromkeys(code for code, _ in listed if code not in {m for m, _ in missing}))
    nature, continuous = var.get("nature", ""), var.get("intrvl") == "contin"
    complete = bool(codes) and not continuous and (nature in ("nominal", "ordinal") or declares_all(codes, labels))
    kind: DeclaredKind = "open"
    if complete:
        kind = "ordinal" if nature == "ordinal" else "categorical"
    elif form is not None and (
        form.get("category") in ("date", "time") or "date" in form.get("formatname", "").lower()
    ):
        kind = "date"
    elif text:
        kind = "open"
    elif continuous or nature in ("interval", "ratio") or (form is not None and form.get("type") == "numeric"):
        kind = "numeric" if not codes or continuous else "open"
    decimals = var.get("dcml", "")
    places = int(decimals) if re.fullmatch("[1-9]", decimals) else None
    return Declared(
        str(var.get("name")),
        kind,
        codes if complete else (),
        tuple(labels.items()),
        tuple(dict.fromkeys(code for code, _ in missing)),
        _range(var) if kind in ("numeric", "date") else ("", ""),
        integer=kind == "numeric" and decimals == "0",
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


def _invalid(var: Element) -> Iterator[str]:
    """Yield the codes of ``invalrng``: single values, and ranges with equal ends."""
    for item in var.iterfind("invalrng/item"):
        yield (item.get("VALUE") or item.get("value") or "").strip()
    for item in var.iterfind("invalrng/range"):
        if item.get("min") and item.get("min") == item.get("max"):
            yield item.get("min", "").strip()


def _label(element: Element) -> str:
    return plain(_text(element.find("labl")))


def _text(element: Element | None) -> str:
    return "" if element is None else "".join(element.itertext()).strip()
