"""Espalier reads, ignores and refuses the right parts of each dictionary format."""

from __future__ import annotations

import csv
import io

import pytest

from espalier.core.dictionaries.base import Declared
from espalier.core.dictionaries.complete_lists import declares_all
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.dictionaries.redcap import redcap_csv
from espalier.core.errors import SchemaError

DDI = """<?xml version="1.0" encoding="UTF-8"?>
<codeBook xmlns="ddi:codebook:2_5" version="2.5"><dataDscr>
<var ID="V1" name="sex" intrvl="discrete"><labl>Sex of the person</labl>
 <catgry><catValu>1</catValu><labl>Male</labl><catStat type="freq">812</catStat></catgry>
 <catgry><catValu>2</catValu><labl>Female</labl><catStat type="freq">790</catStat></catgry>
 <catgry missing="Y"><catValu>-9</catValu><labl>Refused</labl></catgry>
 <varFormat type="numeric"/></var>
<var ID="V2" name="age" intrvl="contin" dcml="0" measUnit="years"><labl>Age</labl>
 <valrng><range min="0" max="110"/></valrng><invalrng><item VALUE="999"/></invalrng><varFormat type="numeric"/></var>
<var ID="V3" name="income" intrvl="contin"><valrng><range min="12.5" max="98123.77"/></valrng>
 <sumStat type="max">98123.77</sumStat><varFormat type="numeric"/></var>
<var ID="V4" name="visits" intrvl="discrete"><catgry><catValu>0</catValu><labl>none</labl></catgry>
 <catgry><catValu>90</catValu><labl>90 or more</labl></catgry><varFormat type="numeric"/></var>
<var ID="V5" name="grade" nature="ordinal"><catgry><catValu>A</catValu><labl>top</labl></catgry>
 <catgry><catValu>C</catValu><labl/></catgry></var>
<var ID="V6" name="seen"><varFormat type="character" category="date"/></var>
</dataDscr></codeBook>"""


def columns(data: str, name: str = "d.xml", column: str | None = None) -> dict[str, Declared]:
    return {c.name: c for c in read_dictionary(data.encode(), name, column).columns}


def test_a_ddi_codebook_declares_kinds_labels_units_and_missing_codes():
    found = columns(DDI)
    assert (found["sex"].kind, found["sex"].categories, found["sex"].missing) == ("categorical", ("1", "2"), ("-9",))
    assert found["sex"].labels == (("1", "Male"), ("2", "Female"), ("-9", "Refused"))
    age = found["age"]
    assert (age.kind, age.range, age.integer, age.unit, age.missing) == (
        "numeric",
        ("0", "110"),
        True,
        "years",
        ("999",),
    )
    assert (found["grade"].kind, found["grade"].categories) == ("ordinal", ("A", "C"))
    assert found["seen"].kind == "date"


def test_statistics_of_a_codebook_are_not_read():
    """A tool that writes the largest value of the rows also writes it as the end of the range."""
    dictionary = read_dictionary(DDI.encode(), "d.xml")
    assert dictionary["income"].range == ("", "")
    assert "98123" not in repr(dictionary)
    assert "812" not in repr(dictionary.columns)
    assert "were not read" in dictionary.notes[0]


def test_labels_on_some_codes_declare_no_domain():
    visits = columns(DDI)["visits"]
    assert (visits.kind, visits.categories) == ("open", ())
    assert visits.labels == (("0", "none"), ("90", "90 or more"))
    assert not declares_all(("1", "7"), {"1": "strongly disagree", "7": "strongly agree"})
    assert declares_all(("1", "2", "9"), {"9": "No answer"})
    assert not declares_all(("1", "2", "9"), {"9": "very often"})
    assert declares_all(("1", "2", "4", "5", "6", "8", "56"), {}) is False
    assert declares_all(("1", "2", "4", "5", "6", "8", "9", "10", "11", "12", "13", "15"), {}), "codes of states"
    assert not declares_all(("0", "95", "96", "97", "98", "99"), {"0": "none", "95": "95 or more"})
    assert declares_all(("01", "02", "99"), {"99": "NIU (Not in universe)"})
    years = {str(year): f"census of {year}" for year in range(1800, 2000, 10)}
    assert declares_all(tuple(years), years), "twenty labelled codes are a complete list"
    assert not declares_all(tuple(years), {**years, "1800": ""})
    assert not declares_all(tuple(years)[1:], years)


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><codeBook>&b;</codeBook>',
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><codeBook>&a;</codeBook>',
        "<codeBook><dataDscr>",
        "<html/>",
        "<codeBook/>",
    ],
)
def test_hostile_and_broken_xml_is_refused(text):
    with pytest.raises(SchemaError) as refused:
        read_dictionary(text.encode(), "d.xml")
    assert "d.xml" in str(refused.value)
    assert "root:" not in str(refused.value)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("a,b,c\n1,2,3\n", "not a dictionary that Espalier can read"),
        ("", "not a dictionary that Espalier can read"),
        ("code,label\n1,one\n", "write FILE:COLUMN"),
        ('column,code,label\nsex,1,"' + "x" * 200_000 + '"\n', "line 2: field larger than"),
        ("column,code,label\nsex,1\n", "line 2: write a column, a code and a label"),
        ("column,code,label\n,1,a\n", "line 2: write a column, a code and a label"),
        ("field_name,form_name,field_type\n,f,text\n", "has no name"),
    ],
)
def test_what_is_no_dictionary_is_refused_with_a_next_step(data, why):
    with pytest.raises(SchemaError, match=why):
        read_dictionary(data.encode(), "d.csv")


def test_a_code_list_of_one_column():
    found = columns("code;label\n10;ten\n2;two\n", "d.csv", "size")
    assert found["size"].categories == ("2", "10")
    assert dict(found["size"].labels) == {"2": "two", "10": "ten"}


def test_formulas_in_labels_are_defused_in_a_redcap_dictionary():
    said = redcap_csv([Declared("x", "categorical", ("1",), (("1", "=cmd()"),), label="=1+1")], "f")
    row = list(csv.reader(io.StringIO(said)))[1]
    assert row[4] == "'=1+1"
    assert not any(cell.startswith(("=", "+", "@")) for cell in row)


def test_a_redcap_dictionary_survives_its_round_trip():
    first = [
        Declared("sex", "categorical", ("1", "2"), (("1", "male"), ("2", "female")), label="Sex", required=True),
        Declared("age", "numeric", range=("0", "120"), integer=True, label="Age"),
        Declared("seen", "date", range=("2020-01-01", "2024-12-31"), label="Seen"),
    ]
    begin = Declared("id", "text", label="id")
    again = read_dictionary(redcap_csv([begin, *first], "f").encode(), "d.csv")
    assert list(again.columns[1:]) == first


def test_a_stat_file_declares_labels_and_missing_codes_and_keeps_its_rows(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    import pandas as pd

    frame = pd.DataFrame({"sex": [1.0, 2.0, -9.0], "age": [31.0, 77.0, 99.0], "mark": [0.0, 90.0, 3.0]})
    place = tmp_path / "t.sav"
    pyreadstat.write_sav(
        frame,
        str(place),
        column_labels={"sex": "Sex"},
        variable_value_labels={"sex": {1: "male", 2: "female", -9: "refused"}, "mark": {0: "none", 90: "90 or more"}},
        missing_ranges={"sex": [-9], "age": [{"lo": 97, "hi": 99}]},
        variable_format={"age": "F8.0"},
    )
    found = {c.name: c for c in read_dictionary(place).columns}
    assert (found["sex"].kind, found["sex"].categories, found["sex"].missing) == ("categorical", ("1", "2"), ("-9",))
    assert (found["sex"].label, dict(found["sex"].labels)["-9"]) == ("Sex", "refused")
    assert (found["age"].kind, found["age"].missing, found["age"].integer) == ("numeric", ("97", "98", "99"), True)
    assert (found["mark"].kind, found["mark"].categories) == ("open", ())
    assert "77" not in repr(found), "no row is read"


def test_a_redcap_dictionary_may_rename_its_first_column_and_ontologies_hold_codes():
    header = '1,Form Name,Field Type,Field Label,"Choices, Calculations, OR Slider Labels"'
    text = f"{header}\nrecord_id,a,text,Record,\ndiag,a,text,Diagnosis,BIOPORTAL:ICD10CM\nnote,a,text,Note,\n"
    found = columns(text, "d.csv")
    assert {name: c.kind for name, c in found.items()} == {"record_id": "identifier", "diag": "open", "note": "text"}


def test_two_labels_in_sequence_are_a_list_even_of_a_scale_and_its_ends_are_none(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    import pandas as pd

    place = tmp_path / "t.sav"
    labels = {"sex": {0: "m", 1: "f"}, "pain": {0: "none", 10: "worst"}, "kids": {0: "none", 1: "one", 2: "two"}}
    frame = pd.DataFrame({"sex": [0.0], "pain": [0.0], "kids": [0.0], "pay": [7.0], "rate": [7.0]})
    pyreadstat.write_sav(
        frame,
        str(place),
        variable_value_labels=labels,
        variable_measure=dict.fromkeys(frame, "scale"),
        variable_format={"pay": "DOLLAR12", "rate": "COMMA8.2"},
    )
    found = {c.name: c for c in read_dictionary(place).columns}
    assert found["sex"].categories == ("0", "1")
    assert [found[n].kind for n in ("pain", "kids", "pay", "rate")] == ["numeric"] * 4
    assert (found["pay"].integer, found["rate"].integer) == (True, False)


def test_formats_of_spss_say_which_numbers_are_whole(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    import pandas as pd

    place = tmp_path / "t.sav"
    frame = pd.DataFrame({"code": [17.0], "amount": [1.5], "count": [3.0]})
    pyreadstat.write_sav(
        frame,
        str(place),
        variable_format={"code": "N6", "amount": "F8.2", "count": "F8.0"},
        missing_ranges={"amount": [{"lo": 97, "hi": 99}], "count": [{"lo": 97, "hi": 99}]},
    )
    read = read_dictionary(place)
    assert [c.integer for c in read.columns] == [True, False, True]
    assert [c.missing for c in read.columns] == [(), ("97", "98", "99"), ("97", "98", "99")]
    assert read.notes == ("amount: only the whole numbers in the range of missing values were used",)
