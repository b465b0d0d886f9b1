"""DDI codebooks (XML, versions 1 and 2), read without entities. Frequencies and summary statistics are not read."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
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
from espalier.core.dictionaries.complete_lists import declares_all, is_value, kinds_not_amounts, span_of
from espalier.core.dictionaries.formats import decimals, is_date, is_time
from espalier.core.errors import SchemaError
from espalier.core.project.schema import NUMBER

_WHOLE = re.compile(r"-?[0-9]{1,9}")
_FRACTION = re.compile(r"-?[0-9]*\.[0-9]*[1-9]")
_WITH_ZEROS = re.compile(r"-?[0-9]+\.0+")
_DATE_TEXT = re.compile(r"(Y{2,4}|D{1,2}|M{1,3})([-/. ]?(Y{2,4}|D{1,2}|M{1,3})){2}([T ]?H.*)?", re.IGNORECASE)
"""Pattern for text that states a format, such as ``YYYY-MM-DD``."""
_TEXT = re.compile(r"\$?(A|CHAR|STR)[0-9.]*|\$[0-9.]*|%-?[0-9]+s|(free )?text|string|character|ascii", re.IGNORECASE)
"""Names of text formats."""
_EMPTY = {"sysmiss", "sysmis", ".", "nan", "(blank)"}
"""Names of an empty cell in Nesstar, SPSS, Stata and other tools."""
_STATA_MISSING = re.compile(r"\.[a-z]")
_KEY = re.compile(r"^[ \t]*(-?[0-9]{1,9})[ \t]+[-=:.)]*[ \t]*(\S.*)$", re.MULTILINE)
"""A line that explains a code, such as ``98 DK``."""
_ROOTS = ("codeBook", "dataDscr", "var")
"""Elements that may be the root: a codebook, or a part of one."""
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_STATISTICS = "the file contains frequencies or summary statistics; they and the ranges next to them were not read"


def read_ddi(whole: Element, source: str) -> Dictionary:
    """Return the dictionary in the file; raise :class:`SchemaError`.

    The codebook may be part of a record that an archive's catalogue sends. A study with several files may describe the
    same column for each file. The first description is used.
    """
    books = [whole] if whole.tag in _ROOTS else [*_outermost(whole, "codeBook")] or [*_outermost(whole, "dataDscr")]
    if not books:
        raise SchemaError(
            f"{source} is XML but not a dictionary that Espalier can read: its root is {whole.tag!r}. Espalier "
            "reads DDI codebooks, DDI Lifecycle, CDISC ODM and define.xml, and XForms"
        )
    named = ((at, var) for at, book in enumerate(books) for var in book.iter("var") if var.get("name") or var.get("ID"))
    notes: list[str] = []
    read = once_each((((at, _files(var)), _declared(var, notes)) for at, var in named), notes)
    counted = any(True for _ in whole.iter("sumStat")) or any(True for _ in whole.iter("catStat"))
    return Dictionary(read, source, "DDI codebook", (*((_STATISTICS,) if counted else ()), *notes))


def _outermost(root: Element, tag: str) -> Iterator[Element]:
    """Yield the elements with this tag that are not nested in another, so that each part of a file is read once."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element.tag == tag:
            yield element
        else:
            waiting += reversed(element)


def _files(var: Element) -> tuple[str, ...]:
    """Return the facts that distinguish variables with the same name: their files and their identifiers."""
    places = (place.get("fileid", "") + place.get("recSegNo", "") for place in var.iterfind("location"))
    return var.get("files", ""), var.get("ID", ""), *places


def _declared(var: Element, notes: list[str]) -> Declared:
    """Return one variable. Its range is ignored if summary statistics are next to it, because tools compute both from
    the rows.
    """
    form = var.find("varFormat")
    shown = var.get("representationType", "")
    text = shown == "text" or (form is not None and _is_text(form))
    missing: dict[str, str] = {}
    listed: list[tuple[str, str]] = []
    counted = False
    keyed = dict(_KEY.findall(_text(var.find("invalrng/key"))))
    for category in itertools.chain(var.iterfind("catgry"), var.iterfind("catgryGrp/catgry")):
        code = _text(category.find("catValu"))
        if code and code.casefold() not in _EMPTY:
            label = _label(category)
            if _is_missing(category, code, text=text):
                missing[code] = label or missing.get(code, "")
            elif label or category.find("catStat") is None:
                listed.append((code, label))
            else:
                counted = True  # an unlabelled value that a tool found in the rows
    for code in _invalid(var, {**dict(listed), **missing}, notes):
        missing.setdefault(code, "")
    missing = {code: label or keyed.get(code, "") for code, label in missing.items()}
    if var.find("sumStat") is None and var.find("valrng/range") is None:
        named = {code for code, _ in listed} | {"", *missing}
        listed += [(code, "") for item in var.iterfind("valrng/item") if (code := _value(item)) not in named]
    if not text and all(_WITH_ZEROS.fullmatch(code) for code in itertools.chain(missing, (code for code, _ in listed))):
        listed, missing = _whole(listed), dict(_whole([*missing.items()]))
    if all(label == code for code, label in listed) and var.find("catgry/catStat") is not None:
        listed = []  # values that a tool counted in the rows and labelled with themselves
    span = None if text else span_of([code for code, _ in listed])
    listed = [(code, label) for code, label in listed if span is None or code != span[0]]
    labels = dict(pairs([*listed, *missing.items()]))
    codes = tuple(dict.fromkeys(code for code, _ in listed if code not in missing))
    nature, continuous = var.get("nature", ""), var.get("intrvl") == "contin"
    sure = nature in ("nominal", "ordinal") or shown == "code" or declares_all(codes, labels)
    sure = sure or (var.get("dcml") == "0" and _has_fractions(codes, labels))
    if continuous:
        sure = declares_all(codes, labels) and kinds_not_amounts(codes, labels)
    complete = bool(codes) and sure and not counted and span is None
    kind: DeclaredKind = "open"
    if complete:
        kind = "ordinal" if nature == "ordinal" else "categorical"
    elif "datetime" in (shown, _domain(var)) or (form is not None and _shows_dates(form)):
        kind = "date"
    elif text or var.find("stdCatgry") is not None:
        kind = "open"
    elif span is not None or _measured(var, form):
        values = span is None and any(is_value(code, labels) for code in codes)
        kind = "open" if values and not continuous else "numeric"
    digits = var.get("dcml") or ("" if form is None else form.get("dcml") or decimals(form.get("formatname", "")))
    places = int(digits) if re.fullmatch("[1-9]", digits) else None
    return Declared(
        str(var.get("name") or var.get("ID")).strip(),
        kind,
        codes if complete else (),
        tuple(labels.items()),
        tuple(missing),
        _range(var, span[1] if span else ("", "")) if kind in ("numeric", "date") else ("", ""),
        integer=kind == "numeric" and (digits == "0" or (not digits and _whole_range(var))),
        decimals=places if kind == "numeric" else None,
        label=_label(var),
        unit=plain(var.get("measUnit", "")),
        description=plain(_text(var.find("txt")) or _text(var.find("qstn/qstnLit"))),
    )


def _has_fractions(codes: Sequence[str], labels: Mapping[str, str]) -> bool:
    """Return whether all codes have a label and some have decimals. For a variable without decimals, such codes are
    categories.
    """
    return len(codes) > 2 and all(map(labels.get, codes)) and any(_FRACTION.fullmatch(code) for code in codes)


def _whole(listed: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return codes such as ``1.0`` as a table writes them, with their labels."""
    return [(code.partition(".")[0], label) for code, label in listed]


def _measured(var: Element, form: Element | None) -> bool:
    """Return whether a variable contains numbers, according to its attributes."""
    stated = "numeric" in (var.get("representationType"), _domain(var))
    stated = stated or var.get("wgt") == "wgt" or var.get("intrvl") == "contin"
    nature = var.get("nature") in ("interval", "ratio", "percent")
    return stated or nature or (form is not None and form.get("type", "numeric") == "numeric")


def _is_text(form: Element) -> bool:
    """Return whether a format is for text. By the DDI specification, a format without a type is numeric."""
    named = form.get("formatname", "").strip() or _text(form)
    return form.get("type", "") == "character" or ("type" not in form.attrib and _TEXT.fullmatch(named) is not None)


def _domain(var: Element) -> str:
    """Return the kind of answer that the question allows, such as ``numeric`` or ``datetime``."""
    question = var.find("qstn")
    return "" if question is None else question.get("responseDomainType", "")


def _range(var: Element, other: tuple[str, str]) -> tuple[str, str]:
    """Return the ends of the allowed range, or of all ranges and values together; ``other`` if there are none."""
    if var.find("sumStat") is not None:
        return other
    ends = [_ends(found) for found in var.iterfind("valrng/range")]
    ends += [(value, value) for found in var.iterfind("valrng/item") if (value := _value(found))]
    if len(ends) < 2 or not all(NUMBER.fullmatch(end) for pair in ends for end in pair):
        return ends[0] if ends else other
    return min((low for low, _ in ends), key=float), max((high for _, high in ends), key=float)


def _ends(found: Element) -> tuple[str, str]:
    low, high = (found.get(end, "") or found.get(f"{end}Exclusive", "") for end in ("min", "max"))
    return low.strip(), high.strip()


def _whole_range(var: Element) -> bool:
    """Return whether the allowed range is declared as a range of whole numbers."""
    found = var.find("valrng/range")
    return found is not None and found.get("UNITS") == "INT"


def _shows_dates(form: Element) -> bool:
    """Return whether a format shows dates, by its category, its name or its text. A time of day is not a date."""
    named = [name for name in (form.get("formatname", "").strip(), _text(form)) if name]
    if any("date" in name.lower() or is_date(name) or _DATE_TEXT.fullmatch(name) for name in named):
        return True
    return form.get("category") in ("date", "time") and not any(is_time(name) for name in named)


def _is_missing(category: Element, code: str, *, text: bool) -> bool:
    """Return whether a category is a missing code: if the file states so, if it has a missing-value type, or if it
    looks like Stata's ``.a`` to ``.z``.
    """
    stated = category.get("missing", "").casefold()
    if stated:
        return stated in YES
    return bool(category.get("missType")) or (not text and _STATA_MISSING.fullmatch(code) is not None)


def _invalid(var: Element, labelled: Mapping[str, str], notes: list[str]) -> Iterator[str]:
    """Yield the codes of ``invalrng``: single values, ranges of whole numbers, and labelled codes of open ranges."""
    for item in var.iterfind("invalrng/item"):
        yield _value(item)
    for item in var.iterfind("invalrng/range"):
        low, high = _ends(item)
        inside = [code for code in labelled if NUMBER.fullmatch(code)]
        if bool(low) != bool(high) and NUMBER.fullmatch(low or high):
            yield from (c for c in inside if (float(c) >= float(low) if low else float(c) <= float(high)))
            add_note(notes, var.get("name", ""), "only the labelled codes in the range of missing values were used")
            continue
        if low and low == high:
            yield low
        elif _WHOLE.fullmatch(low) and _WHOLE.fullmatch(high) and 0 < int(high) - int(low) < MOST_MARKS:
            yield from map(str, range(int(low), int(high) + 1))
        else:
            add_note(
                notes,
                var.get("name", ""),
                "a range of missing values was not used, because its ends are not whole numbers close to each other",
            )


def _value(item: Element) -> str:
    return (item.get("VALUE") or item.get("value") or "").strip()


def _label(element: Element) -> str:
    """Return the label, in English if there are several languages. A category may have text instead of a label."""
    listed = element.findall("labl") or (element.findall("txt") if element.tag == "catgry" else [])
    english = [found for found in listed if found.get(_LANGUAGE, "").lower().startswith("en")]
    return plain(_text(next(iter(english or listed), None)))


def _text(element: Element | None) -> str:
    """Return an element's text, excluding the text of variables inside it."""
    parts, waiting = list[str](), list[Element | str | None]([element])
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            parts.append(one)
        elif one is not None and one.tag != "var":
            for child in reversed(one):
                waiting += (child.tail, child)
            waiting.append(one.text)
    return "".join(parts).strip()
