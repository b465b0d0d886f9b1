"""Released table as an SPSS, Stata or SAS transport file, and a list of the limitations of the format."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

import numpy as np

from espalier.core.dictionaries.writing import labelled_numbers
from espalier.core.errors import ProjectError, TableError
from espalier.core.project.schema import MISSING, NUMBER, Column, Schema
from espalier.core.tables.stat_rows import pyreadstat

StatFormat = Literal["sav", "dta", "xpt"]
STAT_FORMATS: tuple[StatFormat, ...] = ("sav", "dta", "xpt")
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,8})", re.ASCII)
_TITLES = {"sav": "SPSS", "dta": "Stata", "xpt": "SAS transport"}


@dataclass(frozen=True)
class _Limits:
    """Maximum lengths of a name, a column label, a value label and a text cell, and whether text values may have
    labels.
    """

    name: int
    label: int
    value: int
    text: int
    texts_labelled: bool


_LIMITS: Mapping[str, _Limits] = {
    "sav": _Limits(64, 255, 120, 32767, texts_labelled=True),
    "dta": _Limits(32, 80, 32000, 2045, texts_labelled=False),
    "xpt": _Limits(32, 255, 0, 200, texts_labelled=False),
}
"""Limits in bytes. SPSS can label text values of at most 8 bytes; transport files cannot contain value labels."""
_SHORT = 8
_RESERVED = {
    *("all", "and", "by", "eq", "ge", "gt", "le", "lt", "ne", "not", "or", "to", "with", "byte", "double", "float"),
    *("if", "in", "int", "long", "str", "using"),
}
"""Names reserved by SPSS or Stata."""


def numbers_as_codes(column: Column) -> bool:
    """Return whether all categories are whole numbers, which every format stores as numbers."""
    return column.kind != "numeric" and all(_WHOLE.fullmatch(text) for text in column.categories)


def _as_numbers(column: Column) -> bool:
    """Return whether the cells are stored as numbers."""
    return column.kind == "numeric" or numbers_as_codes(column)


def stat_names(names: Sequence[str], kind: StatFormat) -> dict[str, str]:
    """Return a name that the format allows for each column; allowed names stay unchanged.

    For Stata, PyReadStat names a column's set of labels after the column and appends the column's number, within the
    same limit.
    """
    out: dict[str, str] = {}
    taken: set[str] = set()
    most = _LIMITS[kind].name - (len(str(len(names))) if kind == "dta" else 0)
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        plain = plain if plain[:1].isalpha() else f"v{plain}"
        plain = f"{plain}_" if plain.lower() in _RESERVED else plain
        made, number = plain[:most], 1
        while made.lower() in taken:
            number += 1
            made = f"{plain[: most - len(str(number)) - 1]}_{number}"
        taken.add(made.lower())
        out[name] = made
    return out


def losses(schema: Schema, kind: StatFormat) -> list[str]:
    """Return the limitations of this format, one sentence each."""
    limits, out, title = _LIMITS[kind], [], _TITLES[kind]
    renamed = {name: new for name, new in stat_names(schema.released, kind).items() if new != name}
    if renamed:
        names = ", ".join(f"{b} for {a}" for a, b in renamed.items())
        out.append(f"{title} does not allow some names, so the file uses others: {names}.")
    for column in schema.columns:
        labelled = [c for c in (*column.categories, *labelled_numbers(column)) if column.label_of(c)]
        kept, numbers = _labels(column, kind), _as_numbers(column)
        if any((_number(c) if numbers else c) not in kept for c in labelled):
            only = "has no value labels" if kind == "xpt" else "cannot label such text values"
            why = "labels only whole numbers" if numbers and kind == "dta" else only
            out.append(f"{column.name}: {title} {why}; the dictionary next to the file contains the labels.")
        elif limits.value and any(len(column.label_of(c).encode()) > limits.value for c in labelled):
            out.append(f"{column.name}: value labels are cut to {limits.value} bytes.")
        if len(_title(column).encode()) > limits.label:
            out.append(f"{column.name}: its label is cut to {limits.label} bytes.")
        if column.description:
            out.append(f"{column.name}: its description is only in the dictionary.")
        if column.missing_marks and len(_missing(column, kind)) < len(column.missing_marks):
            out.append(
                f"{column.name}: not all codes of missing values can be declared; the dictionary lists all of them."
            )
        if _too_long(column, kind):
            out.append(f"{column.name}: text values are cut to {limits.text} bytes.")
        if kind != "dta" and not numbers and any(c.endswith(" ") for c in column.categories):
            out.append(f"{column.name}: {title} leaves out blanks at the end of text values, so some may become equal.")
    return out


def _too_long(column: Column, kind: StatFormat) -> bool:
    return any(len(c.encode()) > _LIMITS[kind].text for c in column.categories)


def _missing(column: Column, kind: StatFormat) -> list[Any]:
    """Return the user-missing codes that the format can declare: SPSS allows up to three for a column."""
    if kind != "sav" or column.dates is not None or len(column.missing_marks) > 3:
        return []
    if _as_numbers(column):
        whole = all(NUMBER.fullmatch(mark) for mark in column.missing_marks)
        return [float(mark) for mark in column.missing_marks] if whole else []
    return list(column.missing_marks) if all(len(m.encode()) <= _SHORT for m in column.missing_marks) else []


def _title(column: Column) -> str:
    return " ".join(filter(None, (column.label, f"[{column.unit}]" if column.unit else "")))


def _labels(column: Column, kind: StatFormat) -> dict[Any, str]:
    """Return the value labels that the format can store for a column, including user-missing codes."""
    limits, numbers = _LIMITS[kind], _as_numbers(column)
    if kind == "xpt" or column.dates is not None:
        return {}
    if not numbers and not (limits.texts_labelled and all(len(c.encode()) <= _SHORT for c in column.categories)):
        return {}
    declared = [f"{code:.12g}" if isinstance(code, float) else code for code in _missing(column, kind)]
    named = {c: column.label_of(c) for c in (*column.categories, *declared, *labelled_numbers(column))}
    if kind == "dta":
        named = {c: label for c, label in named.items() if _WHOLE.fullmatch(c)}
    return {_number(c) if numbers else c: _cut(label, limits.value) for c, label in named.items() if label}


def _number(code: str) -> int | float:
    return int(code) if _WHOLE.fullmatch(code) else float(code)


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode("utf-8", "ignore")


def check_stat(schema: Schema, kind: StatFormat) -> None:
    """Raise an error before anything is spent if the file cannot be written. The check writes a file with one row,
    which contains the first value of each column, and deletes it.

    Columns whose description is bought are left out. After this check, the file can be written, because longer text is
    cut.
    """
    pyreadstat()
    known = tuple(c for c in schema.columns if c not in schema.undeclared)
    for column in known:
        if _too_long(column, kind):
            most = _LIMITS[kind].text
            raise ProjectError(
                f"{_TITLES[kind]} allows text values of at most {most} bytes, but {column.name!r} has a longer "
                "category. "
                "Shorten it, or choose another format",
                key="format",
            )
    if known:
        rng = np.random.default_rng()
        row = {c.name: c.decode(np.zeros(1, dtype=np.int64), rng) for c in known}
        with tempfile.TemporaryDirectory(prefix="espalier-") as folder:
            write_stat(Schema(known), row, Path(folder) / f"row.{kind}", kind)


def write_stat(schema: Schema, table: Mapping[str, Sequence[str]], path: Path, kind: StatFormat) -> None:
    """Write the released table; raise :class:`TableError` if the library refuses."""
    library, names, limits = pyreadstat(), stat_names(schema.released, kind), _LIMITS[kind]
    columns = {c.name: c for c in schema.columns}
    frame = {names[name]: _cells(columns.get(name), table[name], kind) for name in schema.released}
    titles = {names[n]: _cut(_title(c), limits.label) for n, c in columns.items() if _title(c)}
    labels = {names[n]: found for n, c in columns.items() if (found := _labels(c, kind))}
    options: dict[str, Any] = {"column_labels": titles}
    if kind == "sav":
        options |= {"variable_value_labels": labels}
        options |= {"missing_ranges": {names[n]: marks for n, c in columns.items() if (marks := _missing(c, kind))}}
        options |= {"variable_measure": {names[n]: _measure(c) for n, c in columns.items()}}
        options |= {"variable_format": {names[n]: "F8.0" for n, c in columns.items() if _whole(c)}}
    elif kind == "dta":
        options |= {"variable_value_labels": labels, "version": 15}
    else:
        options |= {"file_format_version": 8}
    import pandas as pd

    with tempfile.TemporaryDirectory(prefix=".espalier-", dir=path.parent) as folder:
        place = Path(folder) / f"table.{kind}"
        write = {"sav": library.write_sav, "dta": library.write_dta, "xpt": library.write_xport}[kind]
        try:
            write(pd.DataFrame(frame), str(place), **options)
        except (library.PyreadstatError, library.ReadstatError, ValueError, TypeError) as error:
            raise TableError(f"the table cannot be written as a file of {_TITLES[kind]}: {error}") from None
        place.rename(path)


def _whole(column: Column) -> bool:
    return (column.kind == "numeric" and column.integer and column.dates is None) or numbers_as_codes(column)


def _measure(column: Column) -> str:
    return {"categorical": "nominal", "ordinal": "ordinal", "numeric": "scale"}[column.kind]


def _cells(column: Column | None, texts: Sequence[str], kind: StatFormat) -> Any:
    """Return a column's cells: numbers, days or text; `None` for an empty cell."""
    import pandas as pd

    if column is not None and column.dates is not None:
        return pd.Series([None if t == MISSING else date.fromisoformat(t) for t in texts], dtype=object)
    if column is not None and _as_numbers(column):
        return pd.Series([float("nan") if t == MISSING else float(t) for t in texts], dtype=float)
    most = _LIMITS[kind].text
    return pd.Series([_cut(t, most) if len(t) * 4 > most else t for t in texts], dtype=object)
