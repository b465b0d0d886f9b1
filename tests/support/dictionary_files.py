"""Public dictionaries with their expected schema: where they are, and what a dictionary declares in the same form."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from espalier.core.dictionaries.base import Declared, Dictionary
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.errors import SchemaError
from espalier.core.tables.stat_rows import READERS

FOLDER = Path(__file__).resolve().parents[1] / "dictionaries"
BLIND = FOLDER / "blind"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
INSTALLED = (
    Path("/usr/lib/R/library/foreign/files"),
    Path("/usr/lib/R/site-library/readstata13/extdata"),
    Path("/usr/lib/R/site-library/Hmisc/tests"),
    Path("/usr/share/pspp/examples"),
)
"""Examples of R's packages foreign, readstata13 and Hmisc and of PSPP, where Debian installs them."""


FORMATS = {".xml": "DDI", ".sps": "SPSS syntax", ".sas": "SAS syntax"} | dict.fromkeys(READERS, "SPSS, Stata, SAS")
STARTS = {
    **{"redcap": "REDCap", "schema": "Table Schema", "csvw": "CSV on the Web", "odm": "CDISC ODM"},
    **{"define": "define.xml", "xform": "XForm", "xlsform": "XLSForm"},
}


def format_of(name: str) -> str:
    """Return the format of a file by its name."""
    return STARTS.get(name.partition("_")[0]) or FORMATS.get(name[name.rindex(".") :], "code list")


def place(name: str, *folders: Path) -> Path | None:
    """Return the file, in these folders or where a package installs it; `None` if it is not on this machine."""
    for folder in (*folders, SHARED, *INSTALLED):
        if (folder / name).exists():
            return folder / name
    spec = importlib.util.find_spec("statsmodels")
    found = [] if spec is None or not spec.origin else sorted(Path(spec.origin).parent.rglob(name))
    return found[0] if found else None


def said(column: Declared) -> object:
    """Return what a column declares, in the form of ``expected.json``."""
    if column.kind == "categorical":
        return ["categorical", *column.categories]
    if column.kind != "numeric":
        return column.kind
    more = {"integer": column.integer, "decimals": column.decimals, "number_style": column.number_style}
    return {"kind": "numeric", "range": list(column.range), **{k: v for k, v in more.items() if v}}


def blind_sets() -> list[str]:
    """Return the names of the blind sets, in the order in which they were drawn."""
    return [name for name in ("first", "second", "third", "fourth", "fifth", "sixth") if (BLIND / name).is_dir()]


def expected(blind: str) -> dict[str, dict[str, Any]]:
    """Return the expected schema of each file of a blind set."""
    return json.loads((BLIND / blind / "expected.json").read_text())


def expected_missing(blind: str) -> dict[str, dict[str, list[str]]]:
    """Return the expected user-missing codes of each file of a blind set that has some."""
    return json.loads((BLIND / blind / "expected_missing.json").read_text())


def read_blind(blind: str, name: str) -> Dictionary:
    """Return the dictionary; a code list of one column describes the column of its expected schema."""
    path = place(name, BLIND / blind)
    assert path is not None, f"{name} is not on this machine"
    try:
        return read_dictionary(path)
    except SchemaError as error:
        if error.data.get("key") != "column":
            raise
    return read_dictionary(path, column=next(iter(expected(blind)[name])))


def edits(blind: str, name: str) -> dict[str, tuple[object, object]]:
    """Return the columns of a file that need an edit: what is expected, and what is declared or why it is refused."""
    listed, codes = expected(blind)[name], expected_missing(blind).get(name, {})
    try:
        read = {column.name: column for column in read_blind(blind, name).columns}
    except SchemaError as error:
        return dict.fromkeys(listed, ("readable", str(error)))
    out: dict[str, tuple[object, object]] = {}
    for column in {**listed, **read}:
        found = said(read[column]) if column in read else None
        missing = sorted(read[column].missing) if column in read else []
        if found != listed.get(column) or missing != sorted(codes.get(column, [])):
            out[column] = ((listed.get(column), codes.get(column, [])), (found, missing))
    return out
