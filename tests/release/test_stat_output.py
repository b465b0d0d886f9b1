"""Released tables as files of SPSS, Stata and SAS transport: labels, names, empty cells, losses, dictionaries."""

from __future__ import annotations

import csv
import json

import pandas as pd
import pytest

import espalier as es
from espalier.core.cli.main import main
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.dictionaries.writing import dictionary_json
from espalier.core.errors import ProjectError
from espalier.core.project.schema import Column, Schema
from espalier.core.project.schema_json import column_from_json
from espalier.core.release.stat_output import STAT_FORMATS, check_stat, losses, stat_names, write_stat
from espalier.core.report.front import _named, _with_label
from espalier.core.tables.reading import read_table

pyreadstat = pytest.importorskip("pyreadstat")

SCHEMA = Schema(
    (
        Column(
            "sex", "categorical", ("1", "2"), missing=True, label="Sex", value_labels=(("1", "male"), ("2", "female"))
        ),
        Column("ward", "categorical", ("a", "b"), value_labels=(("a", "Ward A"),)),
        Column("age", "numeric", edges=(0, 50, 120), integer=True, unit="years", missing=True),
        Column("dose (mg)", "numeric", edges=(0, 0.5, 1), decimals=2),
        column_from_json(
            {"name": "in", "kind": "date", "dates": {"from": "2024-01-01", "to": "2024-12-31", "by": "month"}}
        ),
    )
)
TABLE = {
    "sex": ["1", "", "2"],
    "ward": ["a", "b", "b"],
    "age": ["31", "", "77"],
    "dose (mg)": ["0.25", "0.50", "1.00"],
    "in": ["2024-01-31", "2024-02-29", "2024-12-31"],
}


def cells(table, name):
    column = table.columns[name]
    return [column.values[code] for code in column.codes]


@pytest.mark.parametrize("kind", STAT_FORMATS)
def test_cells_labels_and_empty_cells_survive_the_round_trip(kind, tmp_path):
    place = tmp_path / f"t.{kind}"
    write_stat(SCHEMA, TABLE, place, kind)
    read, named = read_table(place), stat_names(SCHEMA.released, kind)
    assert list(read.columns) == list(named.values())
    for name, texts in TABLE.items():
        number = name in ("dose (mg)",)
        wanted = [str(float(t)).removesuffix(".0") if number else t for t in texts]
        assert cells(read, named[name]) == wanted
    found = {c.name: c for c in read_dictionary(place).columns}
    assert found["sex"].label == "Sex"
    if kind != "xpt":
        assert found["sex"].categories == ("1", "2")
        assert dict(found["sex"].labels) == {"1": "male", "2": "female"}
    assert (dict(found["ward"].labels) == {"a": "Ward A"}) == (kind == "sav")


@pytest.mark.parametrize(
    ("kind", "lost"),
    [
        ("sav", []),
        ("dta", ["ward: Stata cannot label such text values"]),
        ("xpt", ["sex: SAS transport has no value labels"]),
    ],
)
def test_losses_are_listed(kind, lost):
    said = " ".join(losses(SCHEMA, kind))
    assert all(text in said for text in lost)
    assert "dose__mg_ for dose (mg)" in said
    assert ("ward" in said) == (kind != "sav")


def test_names_are_allowed_distinct_and_within_their_limit():
    names = ["a b", "a_b", "A_B", "1st", "if", "x" * 70, "x" * 70 + "y", "größe"]
    for kind, most in (("sav", 64), ("dta", 32), ("xpt", 32)):
        made = stat_names(names, kind)
        assert len({m.lower() for m in made.values()}) == len(names)
        assert all(m.isascii() and len(m) <= most and m[0].isalpha() for m in made.values())
        assert made["a_b"] != made["a b"]


@pytest.mark.parametrize("kind", STAT_FORMATS)
def test_a_labelled_column_may_have_a_name_of_any_length(kind, tmp_path):
    named = [f"{'x' * 70}{i}" for i in range(101)]
    schema = Schema(tuple(Column(n, "categorical", ("1",), value_labels=(("1", "one"),)) for n in named))
    write_stat(schema, {n: ["1"] for n in named}, tmp_path / f"t.{kind}", kind)
    assert len(read_table(tmp_path / f"t.{kind}").columns) == len(named)


def test_a_text_that_the_format_cannot_hold_is_refused_before_anything_is_spent():
    long = Schema((Column("x", "categorical", ("a", "b" * 300)),))
    with pytest.raises(ProjectError, match="text values of at most 200 bytes"):
        check_stat(long, "xpt")
    check_stat(long, "dta")


def test_a_long_text_that_was_bought_is_cut_and_listed(tmp_path):
    """Nothing may fail after the budget is spent."""
    bought = Schema((Column("x", "categorical", ("a", "b" * 300)),))
    assert losses(bought, "xpt") == ["x: text values are cut to 200 bytes."]
    write_stat(bought, {"x": ["a", "b" * 300]}, tmp_path / "t.xpt", "xpt")
    assert cells(read_table(tmp_path / "t.xpt"), "x") == ["a", "b" * 200]


@pytest.mark.parametrize("kind", ["sav", "xpt", "dta"])
def test_blanks_at_the_end_of_a_text_are_kept_or_listed(kind, tmp_path):
    """Previously, SPSS and SAS transport files made such categories equal without a note."""
    texts = ["a", "a ", "a  ", " "]
    bought = Schema((Column("x", "categorical", tuple(texts)),))
    write_stat(bought, {"x": texts}, tmp_path / f"t.{kind}", kind)
    kept = cells(read_table(tmp_path / f"t.{kind}"), "x") == texts
    assert kept is (losses(bought, kind) == [])
    assert kept is (kind == "dta")


def test_user_missing_codes_survive_the_round_trip_where_the_format_has_them(tmp_path):
    column = Column(
        "income",
        "numeric",
        edges=(0, 50, 100),
        missing=True,
        missing_marks=("-9", "-8"),
        value_labels=(("-9", "refused"), ("-8", "not asked")),
    )
    schema = Schema((column,))
    write_stat(schema, {"income": ["3", ""]}, tmp_path / "t.sav", "sav")
    [found] = read_dictionary(tmp_path / "t.sav").columns
    assert set(found.missing) == {"-9", "-8"}
    assert dict(found.labels) == {"-9": "refused", "-8": "not asked"}
    assert "not all codes of missing values" in losses(schema, "dta")[0]
    assert json.loads(dictionary_json(schema))["columns"][0]["missing_codes"][0] == {"code": "-9", "label": "refused"}


def test_labels_of_some_numbers_survive_the_round_trip(tmp_path):
    labels = (("90", "90 or more"), ("0.5", "half a year"), ("-9", "refused"))
    column = Column("age", "numeric", edges=(0, 50, 120), missing=True, missing_marks=("-9",), value_labels=labels)
    schema = Schema((column,))
    for kind in ("sav", "dta"):
        write_stat(schema, {"age": ["3", "90"]}, tmp_path / f"t.{kind}", kind)
    [spss], [stata] = (read_dictionary(tmp_path / f"t.{kind}").columns for kind in ("sav", "dta"))
    assert dict(spss.labels) == dict(labels)
    assert losses(schema, "sav") == []
    assert dict(stata.labels) == {"90": "90 or more"}
    assert losses(schema, "dta")[0].startswith("age: Stata labels only whole numbers")
    [said] = json.loads(dictionary_json(schema))["columns"]
    assert said["labelled_values"] == [{"code": c, "label": label} for c, label in labels[:2]]
    assert said["missing_codes"] == [{"code": "-9", "label": "refused"}]


def test_a_release_writes_the_file_and_its_dictionary(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame({"sex": ["1", "2"] * 300, "ward": ["a", "b", "b"] * 200})
    rows.to_csv("t.csv", index=False)
    pd.DataFrame({"column": ["sex", "sex"], "code": [1, 2], "label": ["=male", "female"]}).to_csv("d.csv", index=False)
    asked = ("init", "t.csv", "--dictionary", "d.csv", "--one-row-per-person", "--out", "p.json")
    assert main(asked) == 2
    assert "--not-from-these-rows" in capsys.readouterr().err
    assert main((*asked, "--not-from-these-rows")) == 0
    project = json.loads((tmp_path / "p.json").read_text())
    assert "guessed" not in project["schema"][0]
    project["schema"][1]["confirmed"] = project["schema"][1].pop("guessed")
    project["plan"]["delta"] = 1e-6
    (tmp_path / "p.json").write_text(json.dumps(project))
    assert main(("release", "p.json", "--data", "t.csv", "--out", "o", "--format", "sav")) == 0
    made = tmp_path / "o"
    assert read_table(made / "synthetic.sav").rows == 600
    said = json.loads((made / "dictionary.json").read_text())
    assert said["columns"][0]["values"][0] == {"code": "1", "label": "=male"}
    listed = list(csv.reader((made / "dictionary.csv").read_text().splitlines()))
    assert listed[1][0] == "sex"
    report = (made / "report.html").read_text()
    assert "1 = =male" in report
    assert "This dictionary was not produced from these rows" in report
    assert es.load_release(made)


def test_labels_are_escaped_in_the_report():
    column = {"name": "x<b>", "label": "<script>", "unit": "&", "labels": {"1": "<i>"}}
    assert _named(column) == "x&lt;b&gt;<br><small>&lt;script&gt; [&amp;]</small>"
    assert _with_label(column, "1") == "1 = <i>", "escaped by its caller"
