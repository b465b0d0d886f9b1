"""Dictionaries inside SPSS, Stata and SAS files. PyReadStat reads their headers; rows are not read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from espalier.core.dictionaries.base import (
    MOST_MARKS,
    Declared,
    DeclaredKind,
    Dictionary,
    code_text,
    pairs,
    plain,
)
from espalier.core.dictionaries.complete_lists import declares_all, is_value, kinds_not_amounts
from espalier.core.dictionaries.formats import is_date, is_sas_number, is_time, is_whole
from espalier.core.errors import SchemaError, TableError
from espalier.core.tables.stat_rows import READERS, read_stat

_SAS = ("sas7bdat", "xport")


def is_stat_file(name: str) -> bool:
    """Return whether the file name has an extension of SPSS, Stata or SAS."""
    return Path(name).suffix.lower() in READERS


def read_stat_dictionary(data: bytes, source: str) -> Dictionary:
    """Return the dictionary of an SPSS, Stata or SAS file; raise :class:`SchemaError`."""
    suffix = Path(source).suffix.lower()
    try:
        _, facts = read_stat(data, source, rows=False, suffix=suffix)
    except TableError as error:
        raise SchemaError(str(error)) from None
    notes: list[str] = []
    columns = tuple(_declared(name, facts, notes) for name in facts.column_names)
    return Dictionary(columns, source, f"{READERS[suffix][1]} file", tuple(notes))


def _declared(name: str, facts: Any, notes: list[str]) -> Declared:
    """Return one variable, from its labels, storage type, format, measure and user-missing codes."""
    labels: Mapping[Any, str] = facts.variable_value_labels.get(name, {})
    named = {code_text(code): label for code, label in labels.items()}
    whole = _whole(name, facts)
    ranges = facts.missing_ranges.get(name, [])
    missing = [code for part in ranges for code in missing_codes(name, part, named, notes, whole=whole)]
    missing += [code for code in named if len(code) == 1 and code.isalpha() and _numeric(name, facts)]
    codes = tuple(code for code in named if code not in missing)
    measure = str(facts.variable_measure.get(name, "unknown"))
    complete = (measure != "scale" or kinds_not_amounts(codes, named)) and declares_all(codes, named)
    labelled = any(is_value(code, named) for code in codes)
    kind, integer = _kind(name, facts, measure, complete=complete, labelled=labelled)
    return Declared(
        name,
        kind,
        codes if complete else (),
        pairs(named.items()),
        tuple(dict.fromkeys(missing)),
        integer=integer,
        label=plain(facts.column_names_to_labels.get(name) or ""),
    )


def _numeric(name: str, facts: Any) -> bool:
    return str(facts.readstat_variable_types.get(name)) != "string"


def _kind(name: str, facts: Any, measure: str, *, complete: bool, labelled: bool) -> tuple[DeclaredKind, bool]:
    """Return the kind, and whether its numbers are whole."""
    if complete:
        return "ordinal" if measure == "ordinal" else "categorical", False
    stored = str(facts.readstat_variable_types.get(name))
    form = str(facts.original_variable_types.get(name) or "")
    if is_date(form):
        return "date", False
    if stored == "string" or is_time(form):
        return "open", False
    if labelled and measure != "scale":
        return "open", False
    if str(facts.file_format) in _SAS and not is_sas_number(form):
        return "open", False  # the labels of the codes are in a format catalogue
    return "numeric", _whole(name, facts)


def _whole(name: str, facts: Any) -> bool:
    """Return whether a column of numbers is stored or shown without decimals."""
    form = str(facts.original_variable_types.get(name) or "")
    return str(facts.readstat_variable_types.get(name)).startswith("int") or is_whole(
        form, sas=str(facts.file_format) in _SAS
    )


def missing_codes(
    name: str, part: Mapping[str, Any], named: Mapping[str, str], notes: list[str], *, whole: bool
) -> list[str]:
    """Return the codes of one user-missing value or range."""
    low, high = part["lo"], part["hi"]
    if low == high:
        return [code] if (code := code_text(low).strip()) else []  # blanks mean an empty cell
    inside = [code for code in named if _between(code, low, high)]
    if isinstance(low, float) and isinstance(high, float) and low.is_integer() and high - low < MOST_MARKS:
        if not whole:
            notes.append(f"{name}: only the whole numbers in the range of missing values were used")
        return [str(int(low) + i) for i in range(int(high - low) + 1)]
    notes.append(f"{name}: only the labelled codes in the range of missing values were used")
    return inside


def _between(code: str, low: Any, high: Any) -> bool:
    try:
        return float(low) <= float(code) <= float(high)
    except ValueError:
        return False
