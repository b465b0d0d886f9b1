"""Variants of dictionaries that other programs and editors write: headings, delimiters, encodings, lists, formats."""

from __future__ import annotations

import pytest

from espalier.core.dictionaries.base import Declared, csv_lines
from espalier.core.dictionaries.complete_lists import declares_all
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.dictionaries.redcap import HEADER, redcap_csv
from espalier.core.errors import SchemaError


def columns(data: str | bytes, name: str = "d.csv") -> dict[str, Declared]:
    read = read_dictionary(data if isinstance(data, bytes) else data.encode(), name)
    return {c.name: c for c in read.columns}


def redcap(*fields: dict[int, str], header: tuple[str, ...] = HEADER, delimiter: str = ",") -> str:
    """Return a dictionary of these fields, each a mapping from column numbers to cells, after a first field that names
    the record.
    """
    rows = [header, *([f.get(i, "") for i in range(18)] for f in ({0: "id", 1: "f", 3: "text"}, *fields))]
    return "\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in rows) + "\n"


SEX = {0: "sex", 1: "f", 3: "radio", 4: "Gender", 5: "1, Male | 2, Female", 12: "y"}
R_NAMES = tuple("".join(c if c.isalnum() else "." for c in name) for name in HEADER)
SPANISH = ("Variable / Nombre del campo", *(f"columna {i}" for i in range(1, 18)))


@pytest.mark.parametrize(
    "data",
    [
        redcap(SEX, delimiter=";"),
        redcap(SEX, delimiter="\t"),
        "sep=;\n" + redcap(SEX, delimiter=";"),
        "\n,,,\n" + redcap(SEX),
        redcap(SEX).encode("utf-16"),
        ("\ufeff" + redcap(SEX)).encode(),
        redcap(SEX, header=R_NAMES),
        redcap(SEX, header=tuple(name.lower().replace(" ", "_") for name in HEADER)),
        redcap(SEX, header=SPANISH),
    ],
    ids=["semicolons", "tabs", "sep=", "empty lines", "utf-16", "mark", "R", "snake case", "Spanish"],
)
def test_a_redcap_dictionary_in_other_spellings(data):
    found = columns(data)
    assert list(found) == ["id", "sex"]
    assert found["sex"] == Declared(
        "sex", "categorical", ("1", "2"), (("1", "Male"), ("2", "Female")), required=True, label="Gender"
    )


def test_a_redcap_dictionary_of_an_early_version():
    header = (
        "Variable / Field Name,Form Name,Field Units,Section Header,Field Type,Field Label,Choices OR Calculations,"
    )
    rows = 'id,f,,,text,Record,,\nheight,f,cm,,text,Height,,float\nsex,f,,,radio,Sex,"0, f | 1, m",\n'
    found = columns(f"{header}Text Validation Type\n{rows}")
    assert (found["height"].kind, found["height"].unit) == ("numeric", "cm")
    assert found["sex"].categories == ("0", "1")


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ("1, Male\n2, Female", (("1", "Male"), ("2", "Female"))),
        ("1=Male|2=Female", (("1", "Male"), ("2", "Female"))),
        ("1, a label\nof two lines | 2, b", (("1", "a label of two lines"), ("2", "b"))),
        ("a, &lt;5 mg | b, <b>5</b> mg, or more |", (("a", "<5 mg"), ("b", "5 mg, or more"))),
        ("-1, none | 0, some", (("-1", "none"), ("0", "some"))),
    ],
)
def test_choices_in_other_spellings(cell, labels):
    found = columns(redcap({**SEX, 5: cell}))["sex"]
    assert found.labels == labels
    assert found.categories == tuple(code for code, _ in labels)


def test_a_line_without_a_field_is_noted():
    read = read_dictionary(redcap(SEX, {12: "y"}).encode(), "d.csv")
    assert [c.name for c in read.columns] == ["id", "sex"]
    assert read.notes == ("a line: it has neither a field name nor a field type, and was not read",)


def test_fields_of_other_types_and_bounds():
    text = {1: "f", 3: "text"}
    found = columns(
        redcap(
            {0: "a", **text, 7: "int", 8: "0", 9: "[other]"},
            {0: "b", **text, 7: "date_ymd", 8: "2020-01-01", 9: "today"},
            {0: "c", 1: "f", 3: "advcheckbox"},
            {0: "d", 1: "f", 3: "checkbox"},
            {0: "e", **text, 10: "Y"},
            {0: "g", **text, 10: "1"},
        )
    )
    assert (found["a"].kind, found["a"].range, found["a"].integer) == ("numeric", ("0", ""), True)
    assert (found["b"].kind, found["b"].range) == ("date", ("2020-01-01", ""))
    assert found["c"].categories == ("0", "1")
    assert found["d"].kind == "text"
    assert {found["e"].kind, found["g"].kind} == {"identifier"}


def test_the_first_field_of_a_form_saved_alone_is_no_identifier():
    def first(*cells: tuple[int, str]) -> Declared:
        row = dict(cells)
        data = "\n".join(
            ",".join(f'"{cell}"' for cell in line) for line in (HEADER, [row.get(i, "") for i in range(18)])
        )
        return next(iter(columns(data).values()))

    assert first((0, "q1"), (3, "radio"), (5, "0, No | 1, Yes")).categories == ("0", "1")
    assert first((0, "seen"), (3, "text"), (7, "date_dmy")).kind == "date"
    assert first((0, "record_id"), (3, "text")).kind == "identifier"


@pytest.mark.parametrize(
    "data",
    [
        "question;value;label\nsex;1;Männer\nsex;2;Frauen\n".encode("cp1252"),
        "Variable Name,Code,Code Description\nsex,1,Männer\n,2,Frauen\n",
        "label,value,variable\nMänner,1,sex\nFrauen,2,sex\n",
        "name\tvalue\tvalue_label\tvariable_label\nsex\t1\tMänner\tSex\nsex\t2\tFrauen\tSex\n",
        "variable,code,label,notes,,\nsex,1,Männer,,,\nsex,2,Frauen,new,,\n",
        "Field,Code,Title,Description\nsex,1,Männer,Personen\nsex,2,Frauen,Personen\n",
        "code,name_en,name_fr,variable\n1,Männer,H,sex\n2,Frauen,F,sex\n",
        "Variável;Código;Descrição\nsex;1;Männer\nsex;2;Frauen\n",
    ],
    ids=[
        "cp1252",
        "filled down",
        "other order",
        "column's label",
        "more columns",
        "two labels",
        "languages",
        "Portuguese",
    ],
)
def test_a_code_list_in_other_spellings(data):
    found = columns(data)["sex"]
    assert (found.categories, found.labels) == (("1", "2"), (("1", "Männer"), ("2", "Frauen")))
    assert found.label in ("", "Sex")


def test_a_code_list_with_missing_codes_commas_and_two_labels_for_a_code():
    read = read_dictionary(b"variable,code,label,is_missing\na,1,x,FALSE\na,-1,lost,TRUE\n", "d.csv")
    assert (read["a"].categories, read["a"].missing) == (("1",), ("-1",))
    read = read_dictionary(b"variable,code,label\na,1,x, or y\na,1,z\na,2,\n", "d.csv")
    assert read["a"].labels == (("1", "x, or y"),)
    assert read["a"].categories == ("1", "2")
    assert read.notes == ("line 3: the code '1' of 'a' has another label; the first label was used",)


def test_a_table_or_a_list_of_columns_is_no_code_list():
    for header in ("name,type,description", "variable,description", "id,age,sex", "code,value,label"):
        with pytest.raises(SchemaError, match="not a dictionary"):
            read_dictionary(f"{header}\na,b,c\n".encode(), "d.csv")


@pytest.mark.parametrize(
    "data",
    [
        "code,name,description,category,url\n1,one,,x,u\n2,two,,x,u\n",
        "Name,Code\none,1\ntwo,2\n",
        "name,code,description\none,1,d\ntwo,2,e\n",
        "id,code,label\n17,1,one\n18,2,two\n",
        "Codes;Labels\n1;one\n2;two\n",
        "Key,Value\n1,one\n2,two\n",
        "Country Name,Country Code,Region\none,1,r\ntwo,2,r\n",
        "notation_code,numericCode,englishName\n1,7,one\n2,7,two\n",
        "Table of sizes\n\ncode,label\n1,one\n2,two\n",
    ],
    ids=["category", "name first", "name is a label", "id", "plural", "value", "in words", "camel case", "title"],
)
def test_which_headings_name_the_code_and_its_label(data):
    found = read_dictionary(data.encode(), "d.csv", column="size")["size"]
    assert (found.categories, found.labels) == (("1", "2"), (("1", "one"), ("2", "two")))


def test_a_heading_that_only_contains_a_word_for_codes_needs_codes_that_differ():
    """A table of rows has such headings too, and its codes repeat."""
    for table in ("Zip code,Name\n7,Ann\n7,Bob\n", "zip_code,name\n7,Ann\n,Bob\n", "zip_code,name\n7,Ann\n"):
        with pytest.raises(SchemaError, match="not a dictionary"):
            read_dictionary(table.encode(), "d.csv", column="x")


def test_lines_of_a_csv_file_keep_their_numbers():
    assert list(csv_lines('sep=|\n\na|"b\nc"\n | \nd|e\n', "t")) == [(4, ["a", "b\nc"]), (6, ["d", "e"])]


LISTS = {
    "one and five": {"1": "Yes", "5": "No"},
    "other languages": {"0": "Nein", "6": "Ja"},
    "opposites": {"1": "Female", "7": "male"},
    "no opinion within": {"1": "agree", "2": "no opinion", "3": "disagree"},
    "other after a gap": {"1": "a", "2": "b", "3": "c", "96": "Other"},
    "special codes around": {"-8": "inap", "1": "a", "2": "b", "3": "c", "7": "something else", "9": "Verweigert"},
    "negative": {"-1": "worse", "0": "same", "1": "better"},
    "from two": {"2": "b", "3": "c", "4": "d"},
    "steps": {"10": "poor", "20": "fair", "30": "good"},
    "letters and marks": {"1": "a", "2": "b", ".": "Missing"},
    "code before the label": {"1": "1. YES", "5": "5. NO", "9": "9. NA"},
    "code and special code": {"0": "0. NA", "1": "1. one", "2": "(2) two", "9": "9 = DK"},
    "Spanish": {"1": "Sí", "2": "No", "9": "No sabe, no informa"},
}
NO_LISTS = {
    "ends": {"1": "never", "7": "always"},
    "top code": {"0": "none", "1": "one", "2": "two", "90": "90 or more"},
    "top code among special codes": {"0": "none", "1": "once", "2": "twice", "97": "97 or more"},
    "special only": {"97": "Refused", "98": "Don't know", "99": "Missing"},
    "points of a scale": {"1": "low", "3": "middle", "5": "high"},
    "number in the label": {"1": "1. once", "2": "2. twice", "97": "97. 97 or more"},
    "one value": {"1": "yes", "9": "N/A"},
    "far from zero": {"2001": "a", "2002": "b", "2003": "c"},
    "half": {"0": "none", "50": "half", "100": "all"},
    "decimals": {"0": "a", "0.5": "b", "1": "c"},
}


@pytest.mark.parametrize("name", [*LISTS, *NO_LISTS])
def test_which_labels_are_a_complete_list(name):
    labels = {**LISTS, **NO_LISTS}[name]
    assert declares_all(tuple(labels), labels) is (name in LISTS)


DDI = """<codeBook version="2.0"><dataDscr>
<var name="a" intrvl="discrete"><catgry><catValu>1</catValu><labl>x</labl></catgry>
 <catgry><catValu>2</catValu><labl>y</labl></catgry><catgry missing="Yes"><catValu>-1</catValu><labl>z</labl></catgry>
 <catgry missing="Y"><catValu>Sysmiss</catValu></catgry><varFormat type="numeric"/></var>
<var name="b" intrvl="discrete"><invalrng><range min="97" max="99"/><range min="100" max="9999"/></invalrng>
 <varFormat type="numeric" formatname="F8.2"/></var>
<var name="c" intrvl="discrete"><catgry><catValu>17</catValu><catStat type="freq">3</catStat></catgry>
 <catgry><catValu>18</catValu><catStat type="freq">4</catStat></catgry>
 <catgry><catValu>19</catValu><catStat type="freq">1</catStat></catgry><varFormat type="numeric"/></var>
<var name="d" intrvl="discrete"><catgry><catValu>99</catValu><labl>Don't know</labl></catgry>
 <varFormat type="numeric" formatname="F2.0"/></var>
<var name="e"><catgry><catValu>Ann</catValu><catStat type="freq">1</catStat></catgry>
 <catgry><catValu>Bob</catValu><catStat type="freq">1</catStat></catgry><varFormat type="character"/></var>
<var name="f"><catgry><catValu>2018</catValu><labl>2018</labl><catStat type="count">3</catStat></catgry>
 <catgry><catValu>2019</catValu><labl>2019</labl><catStat type="count">4</catStat></catgry>
 <varFormat type="character">text</varFormat></var>
<var name="g"><varFormat type="character" formatname="other">calendar_date</varFormat></var>
<var name="h"><varFormat type="numeric" formatname="Float">%tdD_m_Y</varFormat></var>
<var name="i"><varFormat type="numeric" dcml="3"/></var><var name="j"><varFormat type="numeric" dcml="0"/></var>
<var name="k"><catgry><catValu>a</catValu><labl>a</labl></catgry>
 <catgry><catValu>b</catValu><labl>b</labl></catgry></var>
</dataDscr></codeBook>"""


def test_a_ddi_codebook_of_other_programs():
    read = read_dictionary(DDI.encode(), "d.xml")
    assert (read["a"].categories, read["a"].missing) == (("1", "2"), ("-1",))
    assert (read["b"].missing, read["b"].decimals) == (("97", "98", "99"), 2)
    assert (
        "b: a range of missing values was not used, because its ends are not whole numbers close to each other"
        in read.notes
    )
    assert (read["d"].kind, read["d"].integer, read["d"].labels) == ("numeric", True, (("99", "Don't know"),))


def test_values_that_a_tool_counted_in_the_rows_are_no_domain():
    """A list of values without labels, with their frequencies, shows only the values that occur in the rows."""
    found = columns(DDI, "d.xml")
    assert (found["c"].kind, found["c"].categories) == ("numeric", ())
    assert (found["e"].kind, found["e"].categories) == ("open", ())
    assert (found["f"].kind, found["f"].categories) == ("open", ()), "a label that repeats its value is not a label"
    assert found["k"].categories == ("a", "b"), "a list without frequencies was written by a person"


def test_formats_in_a_ddi_codebook():
    found = columns(DDI, "d.xml")
    assert [found[name].kind for name in "gh"] == ["date", "date"]
    assert (found["i"].decimals, found["j"].integer) == (3, True)


def test_formats_of_stata_and_sas(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    import pandas as pd

    frame = pd.DataFrame({name: [1.0, 2.0] for name in ("a", "b", "c", "d", "e", "f")})
    pyreadstat.write_xport(
        frame,
        str(tmp_path / "t.xpt"),
        variable_format={"a": "MMDDYY10.", "b": "SEXF.", "c": "COMMA8.", "d": "TIME8.", "e": "BEST12.", "f": "8."},
    )
    found = {c.name: c.kind for c in read_dictionary(tmp_path / "t.xpt").columns}
    assert found == {"a": "date", "b": "open", "c": "numeric", "d": "open", "e": "numeric", "f": "numeric"}
    pyreadstat.write_dta(
        frame,
        str(tmp_path / "t.dta"),
        variable_format={"a": "%tdNN/DD/CCYY", "b": "%tc", "c": "%9.2f", "d": "%-9.0g", "e": "%tm", "f": "%tbnyse"},
    )
    found = {c.name: c.kind for c in read_dictionary(tmp_path / "t.dta").columns}
    assert found == {"a": "date", "b": "date", "c": "numeric", "d": "numeric", "e": "numeric", "f": "date"}


def test_more_formats_of_sas(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    import pandas as pd

    forms = {"a": "MONNAME3.", "b": "MINGUO10.", "c": "WEEKDATE20.", "d": "8.", "e": "8.2", "f": "COMMA9."}
    place = str(tmp_path / "t.xpt")
    pyreadstat.write_xport(pd.DataFrame({name: [1.0] for name in forms}), place, variable_format=forms)
    found = {c.name: c for c in read_dictionary(place).columns}
    assert [found[name].kind for name in "abc"] == ["date"] * 3
    assert [(found[name].kind, found[name].integer) for name in "def"] == [
        ("numeric", True),
        ("numeric", False),
        ("numeric", True),
    ]


def test_labels_of_kinds_are_a_list_even_of_a_scale_and_labels_of_amounts_are_none(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    import pandas as pd

    labels = {
        "kind": {1: "Single", 2: "Married", 3: "Widowed"},
        "kids": {0: "none", 1: "one", 2: "two"},
        "pay": {-8: "Refused", -9: "Don't know"},
    }
    place = tmp_path / "t.sav"
    pyreadstat.write_sav(
        pd.DataFrame({name: [1.0] for name in labels}),
        str(place),
        variable_value_labels=labels,
        variable_measure={"kind": "scale", "kids": "scale", "pay": "nominal"},
    )
    found = {c.name: c for c in read_dictionary(place).columns}
    assert found["kind"].categories == ("1", "2", "3")
    assert [found[name].kind for name in ("kids", "pay")] == ["numeric", "numeric"]


MORE_DDI = """<codeBook><dataDscr>
<var name="id" files="F1"><varFormat type="numeric"/></var>
<var name="sex" files="F1" representationType="code"><catgry><catValu>1.0</catValu><labl>m</labl></catgry>
 <catgry><catValu>4.0</catValu><labl>f</labl></catgry><catgry missing="Y"><catValu>9.0</catValu></catgry>
 <catgry><catValu>.</catValu></catgry><varFormat type="numeric"/></var>
<var name="id" files="F2"><varFormat type="numeric"/></var>
<var name="sex" files="F2"><varFormat type="character"/></var>
<var ID="V3" dcml="0" intrvl="discrete"><valrng><range UNITS="INT" min="0" maxExclusive="120"/></valrng>
 <varFormat type="numeric"/></var>
<var name="size"><valrng><item VALUE="1"/><item VALUE="2"/><item VALUE="3"/></valrng></var>
<var name="seen" representationType="datetime"/>
<var name="born"><varFormat type="character">YYYY-MM-DD</varFormat></var>
<var name="at"><varFormat type="character" category="time" formatname="TIME8"/></var>
<var name="weight" wgt="wgt"/>
</dataDscr></codeBook>"""


def test_a_ddi_codebook_with_several_files_and_with_what_attributes_say():
    read = read_dictionary(MORE_DDI.encode(), "d.xml")
    assert [c.name for c in read.columns] == ["id", "sex", "V3", "size", "seen", "born", "at", "weight"]
    assert read.notes == ("sex: described differently for several files; the first description was used",)
    assert (read["sex"].categories, read["sex"].missing) == (("1", "4"), ("9",))
    assert (read["V3"].range, read["V3"].integer) == (("0", "120"), True)
    assert read["size"].categories == ("1", "2", "3")
    assert [read[name].kind for name in ("seen", "born", "at", "weight")] == ["date", "date", "open", "numeric"]


def test_a_record_with_several_ddi_codebooks():
    book = '<codeBook><var name="{}"/><var name="id"/></codeBook>'
    assert list(columns(f"<records>{book.format('a')}{book.format('b')}</records>", "d.xml")) == ["a", "id", "b"]


def test_a_ddi_codebook_in_a_record_of_a_catalogue_and_labels_in_several_languages():
    label = '<labl xml:lang="fi">Sukupuoli</labl><labl xml:lang="en">Gender</labl>'
    record = f'<OAI-PMH><record><codeBook><var name="t1">{label}</var></codeBook></record></OAI-PMH>'
    assert columns(record, "d.xml")["t1"].label == "Gender"
    assert list(columns('<dataDscr><var name="a"/></dataDscr>', "d.xml")) == ["a"]
    assert list(columns('<var name="a"/>', "d.xml")) == ["a"]
    with pytest.raises(SchemaError, match="its root is 'DDIInstance'"):
        columns("<DDIInstance><var name='a'/></DDIInstance>", "d.xml")


@pytest.mark.parametrize("code", ["Stream walk, other", "a|b"])
def test_codes_that_redcap_would_split_are_written_as_a_note_and_not_as_other_codes(code):
    column = Declared("place", "categorical", categories=(code, "Bank"), description="Where.")
    written = redcap_csv([Declared("id", "identifier"), column], "f")
    assert f"Where. Values: {code}; Bank." in written
    assert columns(written)["place"].kind == "text"
