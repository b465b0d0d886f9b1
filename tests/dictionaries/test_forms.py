"""XLSForms and XForms: the questions that become columns, and their declarations."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence

import pytest

from espalier.core.dictionaries.base import Declared
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.errors import SchemaError

SURVEY = [
    [
        "type",
        "name",
        "label::French (fr)",
        "label::English (en)",
        "hint",
        "constraint",
        "required",
        "relevant",
        "parameters",
    ],
    ["start", "start"],
    ["deviceid", "deviceid"],
    ["note", "hello", "", "Welcome"],
    ["begin_group", "about", "", "About you"],
    ["select_one sex", "sex", "Sexe", "Sex", "As in the passport", "", "yes"],
    ["integer", "age", "Age", "Age", "", ". >= 0 and . <= 120", "true()"],
    ["begin group", "more", "", "", "", "", "", "${age} > 17"],
    ["decimal", "weight", "", "Weight", "", "(.>2.5) and (250>=.)", "yes"],
    ["end group"],
    ["end_group"],
    ["select_multiple langs", "langs", "", "Languages"],
    ["select_one sex or_other", "head", "", "Head of the household"],
    ["date", "born", "", "Born", "", ". <= today() and . >= date('1900-01-01')"],
    ["range", "pain", "", "Pain", "", "", "", "", "start=0 end=10 step=1"],
    ["text", "name", "", "Name"],
    ["geopoint", "place"],
    ["calculate", "score"],
    ["acknowledge", "ok"],
    ["select_one_from_file towns.csv", "town"],
    ["rank langs", "order"],
    ["integer", "limit", "", "", "", ". < 5 or . = 99"],
]
CHOICES = [
    ["list_name", "name", "label::French (fr)", "label::English (en)"],
    ["sex", "1", "homme", "male"],
    ["sex", "2", "femme", "female"],
    [],
    ["langs", "fr", "français", "French"],
    ["langs", "en", "anglais", "English"],
]


def workbook(**sheets: Sequence[Sequence[object]]) -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


def in_csv() -> bytes:
    lines = [["survey"], *(["", *row] for row in SURVEY), ["choices"], *(["", *row] for row in CHOICES)]
    return "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines).encode()


def columns(data: bytes, name: str = "form.xlsx") -> dict[str, Declared]:
    return {column.name: column for column in read_dictionary(data, name).columns}


@pytest.mark.parametrize("spelling", ["workbook", "csv", "capitals"])
def test_an_xlsform(spelling):
    choices = [[int(cell) if str(cell).isdigit() else cell for cell in row] for row in CHOICES]
    if spelling == "csv":
        found = columns(in_csv(), "form.csv")
    elif spelling == "workbook":
        found = columns(workbook(survey=SURVEY, choices=choices, settings=[["form_title"], ["x"]]))
    else:
        header = ["Type", "Name", "label:French", "label", "Hint", "Constraint", "Required", "Relevance", "Parameters"]
        lists = ["list name", "value", "label:French", "Label"]
        found = columns(workbook(settings=[["a"]], Survey=[header, *SURVEY[1:]], Choices=[lists, *choices[1:]]))
    kinds = {name: column.kind for name, column in found.items()}
    assert kinds == {
        **{"start": "date", "deviceid": "identifier", "sex": "categorical", "age": "numeric", "weight": "numeric"},
        **{"langs": "open", "langs/fr": "categorical", "langs/en": "categorical", "head": "categorical"},
        **{"head_other": "text", "born": "date", "pain": "numeric", "name": "text", "place": "text", "score": "open"},
        **{"ok": "categorical", "town": "open", "order": "open", "limit": "numeric"},
    }
    assert (found["sex"].categories, found["sex"].labels) == (("1", "2"), (("1", "male"), ("2", "female")))
    assert (found["sex"].label, found["sex"].description, found["sex"].required) == ("Sex", "As in the passport", True)
    assert (found["age"].range, found["age"].integer, found["age"].required) == (("0", "120"), True, True)
    assert (found["weight"].range, found["weight"].integer) == (("2.5", "250"), False)
    assert not found["weight"].required, "a condition may skip its group"
    assert found["langs/fr"].label == "Languages: French"
    assert found["head"].categories == ("1", "2", "other")
    assert (found["born"].range, found["pain"].range) == (("1900-01-01", ""), ("0", "10"))
    assert found["limit"].range == ("", ""), "alternatives are not a range"


@pytest.mark.parametrize(
    ("stated", "kind"),
    [
        ("select one from sex", "categorical"),
        ("add select one prompt using sex", "categorical"),
        ("select1 sex", "categorical"),
        ("Select_One  sex", "categorical"),
        ("select_one_external sex", "open"),
        ("select_one ${person}", "open"),
        ("select all that apply from sex", "open"),
        ("int", "numeric"),
        ("date time", "date"),
        ("phone number", "identifier"),
        ("photo", "text"),
        ("trigger", "categorical"),
        ("osm towns", "text"),
        ("made_up", "open"),
    ],
)
def test_types_in_other_spellings(stated, kind):
    read = read_dictionary(workbook(survey=[["type", "name"], [stated, "q"]], choices=CHOICES), "f.xlsx")
    assert read["q"].kind == kind
    assert bool(read.notes) is (stated == "made_up")


def test_a_list_of_questions_alone_leaves_choices_open():
    data = b"type,name,label\nbegin_group,g,\nselect_one x,a,A\ninteger,b,B\nend_group,,\n"
    assert {name: c.kind for name, c in columns(data, "survey.csv").items()} == {"a": "open", "b": "numeric"}


def test_names_that_several_groups_use_have_their_groups_in_front():
    survey = [
        ["type", "name"],
        ["begin group", "g"],
        ["integer", "n"],
        ["end group"],
        ["begin repeat", "h"],
        ["date", "n"],
    ]
    assert list(columns(workbook(survey=survey))) == ["g/n", "h/n"]


def test_a_workbook_without_a_survey_is_refused():
    with pytest.raises(SchemaError, match="no sheet 'survey'"):
        columns(workbook(data=[["a"], [1]]))
    with pytest.raises(SchemaError, match="cannot be read as an Excel workbook"):
        columns(b"PK\x03\x04 nothing")


XFORM = """<h:html xmlns="http://www.w3.org/2002/xforms" xmlns:h="http://www.w3.org/1999/xhtml"
 xmlns:jr="http://openrosa.org/javarosa"><h:head><h:title>t</h:title><model>
<itext><translation lang="fr" default="true()"><text id="/d/g/sex:label"><value>Sexe</value></text></translation>
<translation lang="English (en)"><text id="/d/g/sex:label"><value form="image">x.png</value><value>Sex</value></text>
<text id="/d/town:label"><value>Town</value></text><text id="t-0"><value>Ulm</value></text></translation></itext>
<instance><d id="f"><g><sex/><age/></g><town/><langs/><when/><meta><instanceID/></meta></d></instance>
<instance id="towns"><root><item><itextId>t-0</itextId><name>u</name></item>
 <item><name>b</name><label>Bonn</label></item></root></instance>
<bind nodeset="/d/when" type="dateTime" jr:preload="timestamp" jr:preloadParams="start"/>
<bind nodeset="/d/g" relevant="true()"/>
<bind nodeset="/d/g/sex" type="select1" required="true()"/>
<bind nodeset="/d/g/age" type="xsd:int" constraint=". &gt;= 0 and . &lt; 120"/>
<bind nodeset="/d/town" type="string" required="true()"/>
<bind nodeset="/d/langs" type="select"/>
<bind nodeset="/d/note" type="string" readonly="true()"/>
<bind nodeset="/d/sum" type="string" calculate="1 + 1"/>
<bind nodeset="/d/meta/instanceID" type="string" calculate="uuid()"/>
</model></h:head><h:body>
<group ref="/d/g"><select1 ref="/d/g/sex"><label ref="jr:itext('/d/g/sex:label')"/>
 <item><label>male</label><value>m</value></item><item><label>female</label><value>f</value></item></select1>
<input ref="/d/g/age"><label>Age <output value="/d/x"/>now</label><hint>in years</hint></input></group>
<select1 ref="/d/town"><label ref="jr:itext('/d/town:label')"/>
 <itemset nodeset="instance('towns')/root/item[x=1]"><value ref="name"/></itemset></select1>
<select ref="/d/langs"><item><label>French</label><value>fr</value></item></select>
<input ref="/d/note"><label>Hello</label></input>
</h:body></h:html>"""


def test_an_xform():
    found = columns(XFORM.encode(), "form.xml")
    assert list(found) == ["when", "sex", "age", "town", "langs", "langs/fr", "sum"]
    assert (found["sex"].categories, found["sex"].label, found["sex"].required) == (("m", "f"), "Sex", False)
    assert (found["age"].range, found["age"].integer) == (("0", "120"), True)
    assert (found["age"].label, found["age"].description) == ("Age now", "in years")
    assert (found["town"].labels, found["town"].required) == ((("u", "Ulm"), ("b", "Bonn")), True)
    assert [found[name].kind for name in ("when", "langs", "sum")] == ["date", "open", "open"]


def test_a_loop_asks_its_questions_for_each_choice():
    survey = [
        ["type", "name", "label"],
        ["select all that apply from toilets or specify other", "kinds", "Which?"],
        ["begin loop over toilets", "t"],
        ["integer", "number", "How many %(label)s?"],
        ["end loop"],
        ["integer", "rooms"],
    ]
    choices = [["list name", "name", "label"], ["toilets", "slab", "slabs"], ["toilets", "pit", "pits"]]
    found = columns(workbook(survey=survey, choices=choices))
    assert list(found) == [
        *("kinds", "kinds/slab", "kinds/pit", "kinds/other", "kinds_other"),
        *("slab/number", "pit/number", "rooms"),
    ]
    assert found["pit/number"].label == "How many pits?"


@pytest.mark.parametrize(("heading", "cell"), [("bind:readonly", "true()"), ("read_only", "yes"), ("readonly", "TRUE")])
def test_a_text_that_is_only_shown_has_no_column(heading, cell):
    survey = [["type", "name", heading, "calculation"], ["text", "shown", cell], ["text", "made", cell, "1 + 1"]]
    assert list(columns(workbook(survey=[*survey, ["integer", "n", cell]]))) == ["made", "n"]


def test_an_xform_with_a_button_a_record_and_names_of_a_device():
    binds = """<bind nodeset="/d/ok"/><bind nodeset="/d/phone" p:preloadParams="uri:phonenumber" xmlns:p="p"/>
    <bind nodeset="/d/meta/entity/@id" calculate="1"/><bind nodeset="/d/meta/entity/label" calculate="1"/>"""
    text = f"<html><model><instance><d/></instance>{binds}</model><body><trigger ref='/d/ok'/></body></html>"
    found = columns(text.encode(), "form.xml")
    assert list(found) == ["ok", "phone"]
    assert (found["ok"].categories, found["phone"].kind) == (("OK",), "identifier")


def test_a_crafted_form_takes_no_minutes():
    """Many questions share one long list; lists with several answers become too many columns."""
    began = time.process_time()
    lists = [["list_name", "name", "label"], *(["l", f"c{i}", "x"] for i in range(3_000))]
    many = [["type", "name"], *(["select_one l", f"q{i}"] for i in range(3_000))]
    assert len(columns(workbook(survey=many, choices=lists))) == 3_000
    many = [["type", "name"], *(["select_multiple l", f"q{i}"] for i in range(3_000))]
    with pytest.raises(SchemaError, match="more than 20,000 columns"):
        columns(workbook(survey=many, choices=lists))
    assert time.process_time() - began < 20
