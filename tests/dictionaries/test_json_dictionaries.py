"""Dictionaries in JSON: Table Schema, CSV on the Web, JSON Schema, and the dictionary of a release."""

from __future__ import annotations

import json
from typing import Any

import pytest

from espalier.core.dictionaries.base import Declared
from espalier.core.dictionaries.drafting import declared_column, draft_schema, merged
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.dictionaries.writing import dictionary_json
from espalier.core.errors import SchemaError
from espalier.core.project.json_text import DEEPEST
from espalier.core.project.schema import Schema
from espalier.core.tables.text_table import TextColumn, TextTable


def columns(value: Any, name: str = "d.json") -> dict[str, Declared]:
    return {c.name: c for c in read_dictionary(json.dumps(value).encode(), name).columns}


def field(**facts: Any) -> Declared:
    return columns({"fields": [{"name": "x", **facts}]})["x"]


PACKAGE = {
    "name": "visits",
    "resources": [
        {
            "name": "people",
            "schema": {
                "fields": [
                    {"name": "id", "type": "string", "title": "Person"},
                    {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}},
                    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}, "unit": "years"},
                    {"name": "weight", "type": "number"},
                    {"name": "seen", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2021-12-31"}},
                ],
                "primaryKey": "id",
                "missingValues": ["", "NA", "-99"],
            },
        },
        {"name": "wards", "schema": {"fields": [{"name": "id", "type": "integer"}, {"name": "ward"}]}},
        {"name": "elsewhere", "schema": "wards.json"},
    ],
}


def test_a_data_package_declares_the_fields_of_its_schemas():
    read = read_dictionary(json.dumps(PACKAGE).encode(), "datapackage.json")
    found = {c.name: c for c in read.columns}
    assert read.format == "Table Schema"
    assert list(found) == ["id", "sex", "age", "weight", "seen", "ward"]
    assert [c.kind for c in read.columns] == ["identifier", "categorical", "numeric", "numeric", "date", "open"]
    assert (found["sex"].categories, found["sex"].missing) == (("f", "m"), ("NA", "-99"))
    assert (found["age"].range, found["age"].integer, found["age"].unit) == (("0", "120"), True, "years")
    assert found["seen"].range == ("2020-01-01", "2021-12-31")
    assert found["id"].label == "Person"
    assert "id: described differently" in read.notes[0]


@pytest.mark.parametrize(
    ("facts", "kind", "values"),
    [
        (
            {"categories": [{"value": 0, "label": "no"}, {"value": 1, "label": "yes"}], "type": "integer"},
            "categorical",
            "01",
        ),
        ({"categories": ["a", "b"], "categoriesOrdered": True, "type": "string"}, "ordinal", "ab"),
        ({"constraints": {"enum": [1, 2.0]}, "enumLabels": {"1": "x", "2": "y"}, "enumOrdered": True}, "ordinal", "12"),
        ({"encodings": {"1": "x", "2": "y"}, "type": "integer"}, "categorical", "12"),
        ({"constraints": {"pattern": "^(a|b)$"}, "type": "string"}, "categorical", "ab"),
        ({"constraints": {"pattern": "^(?:a|b)$"}}, "categorical", "ab"),
        ({"constraints": {"pattern": "a|[bc]+"}, "type": "string"}, "open", ""),
        ({"constraints": {"enum": ["a", "b"]}, "type": "array"}, "text", ""),
        ({"constraints": {"enum": ["a", None, "b", ""]}}, "categorical", "ab"),
        ({"type": "string", "format": "email"}, "text", ""),
        ({"type": "string", "constraints": {"unique": True}}, "identifier", ""),
        ({"type": "string", "constraints": {"format": "uri"}}, "text", ""),
        ({"type": "string", "format": "uuid"}, "identifier", ""),
        ({"type": "string", "format": "default", "rdfType": "https://schema.org/DateTime"}, "date", ""),
        ({"type": "string", "rdfType": "http://schema.org/URL"}, "text", ""),
        ({"type": "string", "rdfType": "https://schema.org/postalCode"}, "open", ""),
        ({"type": "datetime"}, "date", ""),
        ({"type": "year"}, "numeric", ""),
        ({"type": "time"}, "open", ""),
        ({"type": "geopoint"}, "text", ""),
        ({"type": "number", "bareNumber": False}, "open", ""),
        ({}, "open", ""),
    ],
)
def test_types_of_table_schema(facts, kind, values):
    found = field(**facts)
    assert (found.kind, "".join(found.categories)) == (kind, values)


def test_labels_of_values_and_of_missing_codes():
    found = field(
        type="integer",
        categories=[{"value": 1, "label": "low"}, {"value": 2, "label": "high"}],
        missingValues=["", {"value": "-9", "label": "Refused"}],
    )
    assert found.labels == (("1", "low"), ("2", "high"), ("-9", "Refused"))
    assert (found.categories, found.missing) == (("1", "2"), ("-9",))


def test_spellings_of_truth_values_count_as_the_first_one():
    plain = field(type="boolean")
    assert plain.categories == ("true", "false")
    column = declared_column(plain)
    assert column is not None
    assert column.judge(["TRUE", "1", "false", "0", "maybe"]).tolist() == [0, 0, 1, 1, column.size]
    own = field(type="boolean", trueValues=["ja", "Ja"], falseValues=["nein"])
    assert own.categories == ("ja", "nein")
    marked = declared_column(field(type="boolean", missingValues=["0"]))
    assert marked is not None
    assert marked.judge(["0"]).tolist() == [2], "a missing code is not a spelling of true or false"
    kept = merged(
        [
            read_dictionary(b'{"fields": [{"name": "x", "type": "boolean"}]}', "d.json"),
            read_dictionary(b'[{"name": "x"}]', "e.json"),
        ]
    )
    assert kept["x"].spellings == plain.spellings


@pytest.mark.parametrize(
    ("facts", "style"),
    [
        ({"decimalChar": ","}, "1234,5"),
        ({"decimalChar": ",", "groupChar": "."}, "1.234,5"),
        ({"groupChar": ","}, "1,234.5"),
        ({}, ""),
    ],
)
def test_styles_of_numbers(facts, style):
    assert field(type="number", **facts).number_style == style


CSVW = {
    "@context": "http://www.w3.org/ns/csvw",
    "url": "t.csv",
    "null": "NA",
    "tableSchema": {
        "primaryKey": "pid",
        "columns": [
            {"name": "pid", "titles": "Person ID", "datatype": "string"},
            {
                "name": "age",
                "titles": {"de": "Alter", "en": "Age"},
                "datatype": {"base": "integer", "minimum": 0, "maximum": "99"},
            },
            {"name": "n", "datatype": "xsd:nonNegativeInteger"},
            {"name": "w", "titles": ["w", "weight"], "datatype": {"base": "decimal", "format": {"decimalChar": ","}}},
            {"name": "ill", "datatype": {"base": "boolean", "format": "Y|N"}, "null": ["", "?"], "dc:title": "Ill"},
            {"name": "ok", "datatype": "boolean"},
            {"name": "day", "datatype": {"base": "date", "format": "d.M.yyyy"}, "dc:description": {"@value": "Seen"}},
            {"name": "size", "datatype": {"base": "string", "format": "S|M|L"}, "required": True},
            {"name": "tags", "separator": ";"},
            {"name": "made", "virtual": True},
        ],
    },
}


def test_metadata_of_csv_on_the_web():
    found = columns(CSVW, "t.csv-metadata.json")
    assert list(found) == ["Person ID", "Age", "n", "w", "ill", "ok", "day", "size", "tags"]
    kinds = [c.kind for c in found.values()]
    assert kinds == ["identifier", *["numeric"] * 3, *["categorical"] * 2, "date", "categorical", "text"]
    assert (found["Age"].range, found["Age"].integer) == (("0", "99"), True)
    assert found["n"].range == ("0", "")
    assert found["w"].number_style == "1234,5"
    assert (found["ill"].categories, found["ill"].missing, found["ill"].label) == (("Y", "N"), ("?",), "Ill")
    assert found["ok"].spellings == (("true", ("1",)), ("false", ("0",)))
    assert (found["day"].description, found["day"].missing) == ("Seen", ("NA",))
    assert found["size"].categories == ("S", "M", "L")
    group = {"tables": [CSVW, {"url": "u.csv", "tableSchema": {"columns": [{"name": "more"}]}}]}
    assert list(columns(group)) == [*found, "more"]


def test_a_json_schema():
    whole = {
        "type": "array",
        "items": {"$ref": "#/$defs/row"},
        "$defs": {
            "row": {
                "properties": {
                    "sex": {"oneOf": [{"const": 1, "title": "male"}, {"const": 2, "title": "female"}]},
                    "age": {"type": ["null", "integer"], "minimum": 0, "exclusiveMaximum": 120},
                    "seen": {"type": "string", "format": "date"},
                    "grade": {"$ref": "#/$defs/grade", "description": "Result"},
                    "more": True,
                },
                "required": ["sex"],
            },
            "grade": {"enum": ["A", "B", None]},
        },
    }
    read = read_dictionary(json.dumps(whole).encode(), "s.json")
    found = {c.name: c for c in read.columns}
    assert (found["sex"].labels, found["sex"].required) == ((("1", "male"), ("2", "female")), True)
    assert (found["age"].kind, found["age"].range, found["age"].required) == ("numeric", ("0", "120"), False)
    assert found["seen"].kind == "date"
    assert (found["grade"].categories, found["grade"].description) == (("A", "B"), "Result")
    assert read.notes == ("more: it is not described and was not read",)


def test_the_dictionary_of_a_release_is_read_again():
    declared = [
        Declared(
            "sex", "categorical", ("1", "2"), (("1", "male"), ("2", "female"), ("-9", "refused")), ("-9",), label="Sex"
        ),
        Declared("grade", "ordinal", ("C", "A"), required=True),
        Declared("age", "numeric", (), (("90", "90 or more"),), ("999",), ("0", "120"), integer=True, unit="years"),
        Declared("rate", "numeric", range=("0", "1"), decimals=2, required=True, description="Share"),
        Declared("seen", "date", range=("2020-01-01", "2024-12-31"), required=True, label="Seen"),
    ]
    schema = Schema(tuple(column for about in declared if (column := declared_column(about)) is not None))
    again = read_dictionary(dictionary_json(schema).encode(), "dictionary.json")
    assert list(again.columns) == declared
    assert again.format == "dictionary of a release"


def test_rows_are_drafted_by_a_table_schema():
    rows = {
        "id": ["a", "b"],
        "sex": ["f", "m"],
        "age": ["31", "-99"],
        "weight": ["60", "NA"],
        "seen": ["2020-02-03", "NA"],
    }
    text = TextTable({n: TextColumn.of(c) for n, c in rows.items()}, 2)
    draft = draft_schema([read_dictionary(json.dumps(PACKAGE).encode(), "datapackage.json")], text)
    assert not draft.undecided
    assert draft.schema["age"].missing_marks == ("NA", "-99")
    assert [c.name for c in draft.schema.identifiers] == ["id"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"a": 1}', "not a dictionary that Espalier can read"),
        (b"[1, 2]", "not a dictionary that Espalier can read"),
        (b'{"fields": []}', "declares no columns"),
        (b'{"fields": [{"type": "string"}]}', "declares no columns"),
        (b'{"fields": [{"name": "a"}, {"name": "a"}]}', "declares the column 'a' twice"),
        (b'{"fields": [', "not JSON"),
        (b'{"fields": ' + b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1) + b"}", "nested"),
        (b'{"fields": 1, "tableSchema": [], "properties": 3, "tables": {}, "resources": 7}', "not a dictionary"),
    ],
)
def test_json_that_is_no_dictionary_is_refused(data, why):
    with pytest.raises(SchemaError, match=why):
        read_dictionary(data, "d.json")


@pytest.mark.parametrize("odd", [None, 7, True, "x", [], {}, [None], [{}], {"a": None}, [[1]]])
def test_odd_values_in_any_place_are_no_traceback(odd):
    keys = (
        "type",
        "format",
        "rdfType",
        "constraints",
        "categories",
        "enumLabels",
        "missingValues",
        "trueValues",
        "title",
        "unit",
    )
    for key in (*keys, "title", "unit"):
        assert field(**{key: odd}).name == "x"
    for key in ("enum", "minimum", "maximum", "pattern", "required", "unique"):
        assert field(type="integer", constraints={key: odd}).name == "x"
        assert list(columns({"properties": {"x": {key: odd, "type": odd, "oneOf": odd, "$ref": odd}}})) == ["x"]
    for key in ("datatype", "null", "titles", "required", "dc:title"):
        column = {"name": "x", key: odd}
        assert len(columns({"tableSchema": {"columns": [column], "primaryKey": odd}})) == 1


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        ({"minimum": -90, "maximum": 90}, "numeric"),
        ({"minimum": "-90"}, "open"),
        ({"minimum": True}, "open"),
        ({}, "open"),
    ],
)
def test_bounds_that_are_numbers_state_the_type_of_a_field_without_one(limits, kind):
    data = json.dumps({"fields": [{"name": "latitude", "constraints": limits}]}).encode()
    assert read_dictionary(data, "d.json")["latitude"].kind == kind
