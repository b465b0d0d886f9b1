"""Blind sets of public dictionaries: nearly all columns need no edit; labels and missing codes survive round trips.

The importers were run on a set only after its expected schema was committed: ``benchmarks/README.md`` has those runs.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from espalier.core.dictionaries.drafting import declared_column
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.dictionaries.writing import dictionary_csv, dictionary_json
from espalier.core.project.schema import Schema
from espalier.core.release.stat_output import losses, stat_names, write_stat
from tests.support.dictionary_files import BLIND, blind_sets, edits, expected, format_of, place, read_blind

MOST_WRONG = 0.05
"""Share of columns that may need an edit."""
WITHOUT_OLD_FORMATS = {"fifth"}
"""Sets that test the formats that were added last."""
FILES = [(blind, name) for blind in blind_sets() for name in expected(blind)]
RANGES = {"numeric": ("0", "100"), "date": ("2020-01-01", "2024-12-31")}


def here(blind: str, name: str) -> bool:
    """Return whether the file is on this machine and can be read."""
    if place(name, BLIND / blind) is None:
        return False
    if format_of(name) == "SPSS, Stata, SAS":
        pytest.importorskip("pyreadstat")
    return True


def schema_of(blind: str, name: str) -> Schema:
    """Return the declared columns of a dictionary; numbers and dates without a range get one."""
    if not here(blind, name):
        pytest.skip(f"{name} is not on this machine")
    read = read_blind(blind, name).columns
    filled = [about if all(about.range) else replace(about, range=RANGES.get(about.kind, ("", ""))) for about in read]
    made = [column for about in filled if (column := declared_column(about)) is not None]
    if not made:
        pytest.skip(f"{name} declares no column")
    return Schema(tuple(made))


@pytest.mark.parametrize("blind", blind_sets())
def test_columns_need_no_edit(blind):
    files = [name for name in expected(blind) if here(blind, name)]
    wrong = {name: found for name in files if (found := edits(blind, name))}
    assert sum(map(len, wrong.values())) <= MOST_WRONG * sum(len(expected(blind)[name]) for name in files), wrong


@pytest.mark.parametrize("blind", blind_sets())
def test_a_blind_set_has_twelve_dictionaries_and_many_columns_in_four_formats(blind):
    listed = expected(blind)
    assert len(listed) >= 12
    assert sum(map(len, listed.values())) >= 75
    formats = {format_of(name) for name in listed}
    assert len(formats) >= 4
    assert {"REDCap", "DDI"} <= formats or blind in WITHOUT_OLD_FORMATS


@pytest.mark.parametrize("kind", ["sav", "dta"])
@pytest.mark.parametrize(("blind", "name"), FILES)
def test_labels_and_missing_codes_survive_the_round_trip_into_a_table(blind, name, kind, tmp_path):
    """Everything that a dictionary declared is in the file again, except what `losses` lists."""
    pytest.importorskip("pyreadstat")
    schema, written = schema_of(blind, name), tmp_path / f"t.{kind}"
    rows = max(len(c.categories) for c in schema.columns) or 1
    table = {
        c.name: [c.categories[i % len(c.categories)] if c.categories else "" for i in range(rows)]
        for c in schema.columns
    }
    write_stat(schema, table, written, kind)
    lost = " ".join(loss for loss in losses(schema, kind) if "its description is" not in loss)
    names = stat_names(schema.released, kind)
    again = {c.name: c for c in read_dictionary(written).columns}
    for column in schema.columns:
        if f"{column.name}: " in lost:
            continue
        found, missing = again[names[column.name]], column.missing_marks
        shown = {code: label for code, label in column.value_labels if kind == "sav" or code not in missing}
        assert (found.label, dict(found.labels)) == (column.label, shown)
        assert set(found.missing) == set(missing)


@pytest.mark.parametrize(("blind", "name"), FILES)
def test_labels_and_missing_codes_survive_the_round_trip_into_a_dictionary(blind, name):
    """JSON keeps everything. REDCap keeps labels of columns and of complete lists of codes without ``,`` or ``|``."""
    schema = schema_of(blind, name)
    kept = {c.name: c for c in read_dictionary(dictionary_json(schema).encode(), "dictionary.json").columns}
    for column in schema.columns:
        found = kept[column.name]
        assert (found.label, found.unit, dict(found.labels)) == (column.label, column.unit, dict(column.value_labels))
        assert (found.categories, found.missing) == (column.categories, column.missing_marks)
    listed = {c["name"]: c for c in json.loads(dictionary_json(schema))["columns"]}
    header, _, lines = dictionary_csv(schema).partition("\n")
    again = {c.name: c for c in read_dictionary(f"{header}\nfirst_field,,,text\n{lines}".encode(), "d.csv").columns}
    for column in schema.columns:
        entry = listed[column.name]
        coded = [*entry.get("values", []), *entry.get("labelled_values", []), *entry.get("missing_codes", [])]
        assert {c["code"]: c["label"] for c in coded if "label" in c} == dict(column.value_labels)
        assert [c["code"] for c in entry.get("missing_codes", [])] == list(column.missing_marks)
        assert entry.get("label", "") == column.label
        assert again[column.name].label == (column.label or column.name)
        held = not any(mark in code for code in column.categories for mark in ",|")
        codes = column.categories if held else ()
        shown = {code: (column.label_of(code) or code).replace("|", "/") for code in codes}
        assert dict(again[column.name].labels) == shown
