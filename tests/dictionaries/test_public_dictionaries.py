"""Public dictionaries, whose declarations were written down before the importers were run on them, and their round
trips.
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest

from espalier.core.dictionaries.base import Declared
from espalier.core.dictionaries.drafting import declared_column
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.dictionaries.writing import dictionary_csv, dictionary_json
from espalier.core.project.schema import Schema
from espalier.core.release.stat_output import losses, stat_names, write_stat
from tests.support.dictionary_files import said

HERE = Path(__file__).with_name("public")
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
R = Path("/usr/lib/R/library/foreign/files")
"""Examples of R's package foreign, where Debian installs R."""
PSPP = Path("/usr/share/pspp/examples")
"""Examples of PSPP, where Debian installs it."""
EXPECTED = json.loads((HERE / "expected.json").read_text())
MISSING_CODES = json.loads((HERE / "expected_missing.json").read_text())
STAT = (".sav", ".dta")
MOST_WRONG = 0.05
"""Share of columns that may need an edit."""


def place(name: str) -> Path:
    for folder in (HERE, SHARED, R, PSPP):
        if (folder / name).exists():
            return folder / name
    spec = importlib.util.find_spec("statsmodels")
    found = [] if spec is None else sorted(Path(spec.origin).parent.rglob(name))
    if not found:
        pytest.skip(f"{name} is not on this machine")
    return found[0]


@pytest.mark.parametrize("name", EXPECTED)
def test_columns_need_no_edit(name):
    path = place(name)
    if path.suffix in STAT:
        pytest.importorskip("pyreadstat")
    expected, read = EXPECTED[name], {c.name: c for c in read_dictionary(path).columns}
    found = {n: c.kind if expected.get(n) == "numeric" else said(c) for n, c in read.items()}
    wrong = {k: (v, found.get(k)) for k, v in expected.items() if found.get(k) != v}
    assert len(wrong) <= MOST_WRONG * len(expected), wrong
    assert found.keys() == expected.keys()


def test_there_are_twelve_public_dictionaries_in_four_formats():
    """Without the files that only some machines have."""
    formats = [read_dictionary(path).format for name in EXPECTED if (path := HERE / name).exists()]
    assert {"REDCap data dictionary", "DDI codebook", "SPSS file", "Stata file"} == set(formats)
    assert len(formats) == 12
    everywhere = ("macrodata.dta", "griliches76.dta", "diabetes_ids_mapping.csv")
    assert {*everywhere} <= EXPECTED.keys(), "Stata files of statsmodels, and a code list"


@pytest.mark.parametrize("name", MISSING_CODES)
def test_user_missing_codes_need_no_edit(name):
    path = place(name)
    if path.suffix in STAT:
        pytest.importorskip("pyreadstat")
    found = {c.name: sorted(c.missing) for c in read_dictionary(path).columns if c.missing}
    assert found == {column: sorted(codes) for column, codes in MISSING_CODES[name].items()}


def schema_of(path: Path) -> Schema:
    """Return the declared columns of a dictionary; numbers and dates without a range get one."""
    ranges = {"numeric": ("0", "100"), "date": ("2020-01-01", "2024-12-31")}
    made = []
    for about in read_dictionary(path).columns:
        filled = about if all(about.range) else replace(about, range=ranges.get(about.kind, ("", "")))
        if (column := declared_column(filled)) is not None:
            made.append(column)
    return Schema(tuple(made))


def texts(about: Declared) -> tuple[str, dict[str, str]]:
    return about.label, dict(about.labels)


@pytest.mark.parametrize("kind", ["sav", "dta"])
@pytest.mark.parametrize("name", EXPECTED)
def test_labels_and_missing_codes_survive_the_round_trip_into_a_table(name, kind, tmp_path):
    """Everything that a dictionary declared is in the file again, except what `losses` lists."""
    pytest.importorskip("pyreadstat")
    schema, place_out = schema_of(place(name)), tmp_path / f"t.{kind}"
    rows = max(len(c.categories) for c in schema.columns) or 1
    table = {
        c.name: [c.categories[i % len(c.categories)] if c.categories else "" for i in range(rows)]
        for c in schema.columns
    }
    write_stat(schema, table, place_out, kind)
    lost = " ".join(loss for loss in losses(schema, kind) if "its description is" not in loss)
    names = stat_names(schema.released, kind)
    again = {c.name: c for c in read_dictionary(place_out).columns}
    kept = 0
    for column in schema.columns:
        found, missing = again[names[column.name]], column.missing_marks
        if f"{column.name}: " in lost:
            continue
        shown = {code: label for code, label in column.value_labels if kind == "sav" or code not in missing}
        assert texts(found) == (column.label, shown)
        assert set(found.missing) == set(missing)
        kept += 1
    long_codes = name == "redcap_rarelink.csv"  # SPSS has no labels for texts of more than 8 bytes
    assert kept > len(schema.columns) / 2 or (lost and kept and (kind == "dta" or long_codes))


@pytest.mark.parametrize("name", EXPECTED)
def test_labels_and_missing_codes_survive_the_round_trip_into_a_dictionary(name):
    """JSON keeps everything. REDCap keeps labels of columns and of complete lists of codes, without ``|``."""
    schema = schema_of(place(name))
    listed = {c["name"]: c for c in json.loads(dictionary_json(schema))["columns"]}
    header, _, lines = dictionary_csv(schema).partition("\n")
    again = {c.name: c for c in read_dictionary(f"{header}\nid,,,text\n{lines}".encode(), "d.csv").columns}
    for column in schema.columns:
        entry = listed[column.name]
        coded = [*entry.get("values", []), *entry.get("labelled_values", []), *entry.get("missing_codes", [])]
        assert {c["code"]: c["label"] for c in coded if "label" in c} == dict(column.value_labels)
        assert [c["code"] for c in entry.get("missing_codes", [])] == list(column.missing_marks)
        assert entry.get("label", "") == column.label
        assert again[column.name].label == (column.label or column.name)
        shown = {code: (column.label_of(code) or code).replace("|", "/") for code in column.categories}
        assert dict(again[column.name].labels) == shown
