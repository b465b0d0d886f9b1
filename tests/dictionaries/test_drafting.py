"""Schemas from dictionaries: declarations and questions; rows never change a declared column."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pandas as pd
import pytest

from espalier.core.dictionaries.base import Declared, Dictionary
from espalier.core.dictionaries.drafting import draft_schema
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.errors import ProjectError, SchemaError
from espalier.core.project.declared_by import STATEMENT
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema_json import column_to_json, schema_to_json
from espalier.core.report.page import _declared
from espalier.core.tables.guessing import guess_schema
from espalier.core.tables.reading import read_table
from espalier.core.tables.review import review
from espalier.core.tables.text_table import TextColumn, TextTable

DECLARED = (
    Declared("id", "identifier"),
    Declared("sex", "categorical", ("1", "2"), (("1", "male"), ("2", "female")), label="Sex"),
    Declared("age", "numeric", range=("0", "120"), integer=True, unit="years"),
    Declared("weight", "numeric"),
    Declared("note", "text"),
    Declared("ward", "open", labels=(("a", "Ward A"),)),
)


def book(*columns: Declared) -> Dictionary:
    return Dictionary(columns or DECLARED, "d.csv", "code list")


def table(**columns: list[str]) -> TextTable:
    return TextTable({n: TextColumn.of(c) for n, c in columns.items()}, len(next(iter(columns.values()))))


ROWS = {
    "id": ["7", "8", "9"],
    "sex": ["1", "2", "1"],
    "age": ["31", "77", "140"],
    "weight": ["61.5", "80", "77"],
    "note": ["fine", "ill", ""],
    "ward": ["a", "b", "a"],
}


def test_what_is_declared_is_no_guess_and_what_is_open_is_one():
    draft = draft_schema([book()], table(**ROWS))
    schema = draft.schema
    assert schema["sex"].categories == ("1", "2")
    assert (schema["sex"].label, schema["sex"].label_of("1"), schema["sex"].guessed) == ("Sex", "male", ())
    assert (schema["age"].edges[0], schema["age"].edges[-1], schema["age"].guessed) == (0, 120, ())
    assert schema["age"].unit == "years"
    assert schema["weight"].guessed == ("missing", "edges")
    assert set(schema["ward"].guessed) >= {"categories"}
    assert schema["ward"].label_of("a") == "Ward A"
    assert [c.name for c in schema.identifiers] == ["id"]
    assert draft.free_text == ("note",)
    assert draft.used[0].columns == tuple(ROWS)
    assert not draft.undecided


def test_signs_of_empty_cells_that_the_rows_hold_are_a_guess():
    """Previously, a mark in one row was stored as if the dictionary had declared it."""
    dictionary = book(Declared("weight", "numeric", required=True))
    for weights in (["61.5", "80", "77"], ["61.5", "80", "?"]):
        column = draft_schema([dictionary], table(weight=weights), marks=("?",)).schema["weight"]
        assert "missing" in column.guessed


def test_cells_that_are_not_declared_need_a_choice_and_are_not_quoted():
    odd = table(sex=["1", "unheard-of"], age=["1", ""])
    dictionary = book(*(DECLARED[1:2]), Declared("age", "numeric", range=("0", "9"), required=True))
    draft = draft_schema([dictionary], odd)
    with pytest.raises(SchemaError) as refused:
        draft.check()
    said = str(refused.value)
    assert "'sex' has values that the dictionary does not declare" in said
    assert "'age' has empty cells, which the dictionary does not allow" in said
    assert "unheard" not in said
    chosen = draft_schema([dictionary], odd, choices={"sex": "missing", "age": "leave-out"})
    chosen.check()
    assert (chosen.schema.names, chosen.schema["sex"].unknown) == (("sex",), "missing")
    guessed = draft_schema([dictionary], odd, choices={"sex": "guess", "age": "guess"}).schema
    assert "categories" in guessed["sex"].guessed
    with pytest.raises(SchemaError, match="no dictionary declares 'nothing'"):
        draft_schema([dictionary], odd, choices={"nothing": "guess"})


def test_codes_that_a_codebook_pads_with_zeros_are_read_without_them_too():
    dictionary = book(Declared("state", "categorical", ("01", "02", "10", "2")))
    column = draft_schema([dictionary], table(state=["1", "02", "10"])).schema["state"]
    assert column.judge(["1", "01", "02", "10", "2"]).tolist() == [0, 0, 1, 2, 3]
    assert column.categories == ("01", "02", "10", "2")


def test_dictionaries_add_up():
    labels = book(Declared("sex", "open", labels=(("2", "woman"),), label="Gender"))
    column = draft_schema([book(DECLARED[1]), labels], table(sex=["1"])).schema["sex"]
    assert (column.categories, column.label, column.label_of("1"), column.label_of("2")) == (
        ("1", "2"),
        "Gender",
        "male",
        "woman",
    )


def test_the_project_and_the_report_record_the_statement():
    digest = book(DECLARED[1]).digest
    draft = draft_schema([book(DECLARED[1])], table(sex=["1"]))
    project = Project("p", draft.schema, Plan("mst", 1.0, delta=1e-6), dictionaries=draft.used)
    said = project.to_json()["dictionaries"]
    assert said == [
        {
            "name": "d.csv",
            "format": "code list",
            "digest": book(DECLARED[1]).digest,
            "columns": ["sex"],
            "statement": STATEMENT,
        }
    ]
    assert Project.loads(project.dumps()) == project
    [line] = _declared(said)
    assert STATEMENT in line
    assert digest in line
    with pytest.raises(ProjectError, match="statement must read"):
        Project.from_json({**project.to_json(), "dictionaries": [{**said[0], "statement": "perhaps"}]})
    assert "dictionaries" not in Project("p", draft.schema, Plan("mst", 1.0, delta=1e-6)).to_json()


NEIGHBOURS = 150


@pytest.mark.parametrize("seed", range(NEIGHBOURS))
def test_one_row_changes_no_declared_column(seed):
    """Neighbouring tables: declared columns are equal, guessed ones differ only in what a person is shown."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    cells = {
        "id": [str(i) for i in range(n)],
        "sex": rng.choice(["1", "2", "", "9"], n, p=[0.4, 0.4, 0.1, 0.1]).tolist(),
        "age": [str(x) for x in rng.integers(0, 150, n)],
        "weight": [f"{x:.1f}" for x in rng.lognormal(4, 0.5, n)],
        "ward": rng.choice(["a", "b", "c", "d"], n, p=[0.6, 0.3, 0.08, 0.02]).tolist(),
        "free": [f"{x}" for x in rng.choice(["yes", "no", "2020-01-02", "[0-10)", "7"], n)],
    }
    row = int(rng.integers(n))
    other = {name: [*c[:row], c[int(rng.integers(n))], *c[row + 1 :]] for name, c in cells.items()}
    chosen = {"sex": "missing"}
    one, two = (draft_schema([book()], table(**c), choices=chosen) for c in (cells, other))
    for name in ("sex", "age"):
        assert column_to_json(one.schema[name]) == column_to_json(two.schema[name])
    assert (one.schema.identifiers, one.free_text, one.used) == (two.schema.identifiers, two.free_text, two.used)
    first, second = ({c.name: c for c in d.schema.columns} for d in (one, two))
    shown = [{r.name: r for r in review(table(**c), d.schema)} for c, d in ((cells, one), (other, two))]
    for name in first.keys() & second.keys():
        if column_to_json(first[name]) != column_to_json(second[name]):
            assert first[name].guessed
            assert second[name].guessed
            assert shown[0][name].digest != shown[1][name].digest, "the person sees the difference"
            assert shown[0][name].shown != shown[1][name].shown
    for name in first.keys() ^ second.keys():
        assert name in {*one.schema.unconfirmed, *two.schema.unconfirmed}


def test_declared_dates_are_read_in_the_order_of_the_table_which_is_a_guess():
    declared = book(Declared("seen", "date", range=("2020-01-01", "2020-12-31")))
    days = [f"{d}.3.2020" for d in range(1, 31)]
    iso = draft_schema([declared], table(seen=["2020-03-05"])).schema["seen"]
    made = draft_schema([declared], table(seen=[*days, ""])).schema["seen"]
    assert (made.date_order, made.guessed, made.edges) == ("dmy", ("date_order",), iso.edges)
    assert iso.guessed == ("date_order",), "one other row would have changed the order"
    unclear = table(seen=days[:12])
    assert draft_schema([declared], unclear).undecided, "a person must decide"
    chosen = draft_schema([declared], unclear, date_order="mdy")
    assert not chosen.undecided
    assert chosen.schema["seen"].date_order == "mdy"


def test_the_code_list_of_a_real_table():
    from tests.dictionaries.test_public_dictionaries import place

    dictionary = read_dictionary(place("diabetes_ids_mapping.csv"))
    rows = table(admission_type_id=["1", "8"], admission_source_id=["7", "16"])
    draft = draft_schema([dictionary], rows)
    assert [u.column for u in draft.undecided] == ["admission_source_id"]
    assert draft.absent == ("discharge_disposition_id",)
    assert json.dumps(schema_to_json(draft.schema))


def test_a_guess_alone_differs_only_in_what_is_shown():
    rng = np.random.default_rng(0)
    for _ in range(100):
        cells = rng.choice(["no", "yes", "1.234,5", "[0-5)", "[5-9)", "007", "2021-02-03", ""], 8).tolist()
        one, two = (table(x=c, y=["a"] * 8) for c in (cells, [*cells[:-1], "unusual"]))
        first, second = (guess_schema(t) for t in (one, two))
        if column_to_json(first["x"]) != column_to_json(second["x"]):
            a, b = (next(r for r in review(t, s) if r.name == "x") for t, s in ((one, first), (two, second)))
            assert a.digest != b.digest
            assert a.shown != b.shown


def test_blanks_around_a_column_of_the_table_do_not_hide_its_declaration():
    read = TextTable({n: TextColumn.of(["1", "2", "1"]) for n in (" sex ", "age")}, 3)
    draft = draft_schema([book(Declared("sex", "categorical", ("1", "2")), Declared("gone", "numeric"))], read)
    assert (draft.schema[" sex "].categories, draft.schema[" sex "].guessed) == (("1", "2"), ())
    assert (draft.used[0].columns, draft.absent) == ((" sex ",), ("gone",))
    both = TextTable({n: TextColumn.of(["1", "2", "1"]) for n in (" sex", "sex")}, 3)
    assert draft_schema([book(Declared("sex", "categorical", ("1", "2")))], both).schema[" sex"].guessed


DDI = (
    "<codeBook><dataDscr><var name='sex'><catgry><catValu>1</catValu><labl>m</labl><catStat type='freq'>{}</catStat>"
    "</catgry><catgry><catValu>2</catValu><labl>f</labl></catgry></var></dataDscr></codeBook>"
)


def test_counts_of_a_dictionarys_file_do_not_change_its_digest():
    """Previously, a release contained a digest of the whole file, so anyone could test a guess about one row."""
    one, other = (read_dictionary(DDI.format(count).encode(), "d.xml") for count in ("12", "13"))
    assert one["sex"].categories == ("1", "2")
    assert one.digest == other.digest
    changed = read_dictionary(DDI.format("12").replace("2", "3").encode(), "d.xml")
    assert changed.digest != one.digest


def test_the_digest_of_a_file_of_rows_is_not_released(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    digests = set()
    for place in (3, 4):
        frame = pd.DataFrame({"sex": [1.0, 2.0] * 5})
        frame.loc[place, "sex"] = 1.0
        pyreadstat.write_sav(frame, tmp_path / "t.sav", variable_value_labels={"sex": {1: "m", 2: "f"}})
        data = (tmp_path / "t.sav").read_bytes()
        draft = draft_schema([read_dictionary(data, "t.sav")], read_table(data, "t.sav"))
        project = Project("p", draft.schema, Plan("mst", 1.0, delta=1e-6), dictionaries=draft.used).dumps()
        assert hashlib.sha256(data).hexdigest() not in project
        digests.add(project)
    assert len(digests) == 1


@pytest.mark.parametrize("last", ["0.3", "0.4", "0.31"])
def test_declared_decimals_do_not_depend_on_the_guessed_edges(last):
    """Previously, the decimals vanished if an edge needed more of them, so one row decided whether they were listed."""
    declared = Dictionary((Declared("w", "numeric", decimals=1),), "d", "x")
    values = ["0.0", "0.1", "0.2", "0.3", last]
    made = draft_schema([declared], TextTable({"w": TextColumn.of(values)}, len(values))).schema["w"]
    assert (made.decimals, made.guessed) == (1, ("missing", "edges"))
    assert made.edges[0] <= 0
    assert made.edges[-1] >= float(last)
