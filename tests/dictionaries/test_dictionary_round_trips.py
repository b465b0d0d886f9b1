"""Labels and user-missing codes of each format survive the way into a released table and into its dictionary."""

from __future__ import annotations

import json

import pytest

from espalier.core.dictionaries.drafting import draft_schema
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.dictionaries.writing import dictionary_json
from espalier.core.project.schema import Schema
from espalier.core.release.stat_output import write_stat
from espalier.core.tables.text_table import TextColumn, TextTable

ROWS = {"sex": ["1", "2", "-9"], "age": ["31", "77", "999"]}
LABELS = {"1": "male", "2": "female", "-9": "refused"}
LIMITS = {"minimum": 0, "maximum": 120}
SEX = [{"value": 1, "label": "male"}, {"value": 2, "label": "female"}]
MARK = {"value": -9, "label": "refused"}
SOURCES = {
    "table_schema.json": json.dumps(
        {
            "fields": [
                {"name": "sex", "title": "Sex", "type": "integer", "categories": SEX, "missingValues": ["", MARK]},
                {"name": "age", "title": "Age", "type": "integer", "constraints": LIMITS, "missingValues": ["999"]},
            ]
        }
    ),
    "table_schema_of_version_1.json": json.dumps(
        {
            "fields": [
                {
                    "name": "sex",
                    "title": "Sex",
                    "type": "string",
                    "constraints": {"enum": ["1", "2"]},
                    "enumLabels": {"1": "male", "2": "female"},
                    "missingValues": [MARK],
                },
                {"name": "age", "title": "Age", "type": "integer", "constraints": LIMITS, "missingValues": ["999"]},
            ]
        }
    ),
    "json_schema.json": json.dumps(
        {
            "properties": {
                "sex": {
                    "title": "Sex",
                    "oneOf": [{"const": 1, "title": "male"}, {"const": 2, "title": "female"}],
                    "missingValues": [MARK],
                },
                "age": {"title": "Age", "type": "integer", **LIMITS, "missingValues": ["999"]},
            }
        }
    ),
    "syntax.sps": """VARIABLE LABELS sex 'Sex' age 'Age'.
VALUE LABELS sex 1 'male' 2 'female' -9 'refused'.
MISSING VALUES sex (-9) age (999).
FORMATS sex age (F3.0).
""",
    "labels.do": """infix byte sex 1-2 int age 3-5 using "t.dat"
label variable sex "Sex"
label variable age "Age"
label define s 1 "male" 2 "female" -9 "refused"
label values sex s
mvdecode sex, mv(-9)
mvdecode age, mv(999)
""",
    "codebook.xml": """<codeBook><dataDscr>
<var name="sex"><labl>Sex</labl><catgry><catValu>1</catValu><labl>male</labl></catgry>
<catgry><catValu>2</catValu><labl>female</labl></catgry>
<catgry missing="Y"><catValu>-9</catValu><labl>refused</labl></catgry><varFormat type="numeric"/></var>
<var name="age" dcml="0"><labl>Age</labl><valrng><range min="0" max="120"/></valrng>
<invalrng><item VALUE="999"/></invalrng><varFormat type="numeric"/></var>
</dataDscr></codeBook>""",
}


def drafted(name: str) -> Schema:
    """Return the columns that a dictionary declares; numbers without a range get one from the rows."""
    table = TextTable({n: TextColumn.of(c) for n, c in ROWS.items()}, 3)
    draft = draft_schema([read_dictionary(SOURCES[name].encode(), name)], table)
    assert not draft.undecided
    return draft.schema


@pytest.mark.parametrize("name", SOURCES)
def test_into_the_dictionary_of_a_release(name):
    schema = drafted(name)
    found = {c.name: c for c in read_dictionary(dictionary_json(schema).encode(), "dictionary.json").columns}
    assert (found["sex"].categories, found["sex"].missing) == (("1", "2"), ("-9",))
    assert (found["sex"].label, dict(found["sex"].labels)) == ("Sex", LABELS)
    assert (found["age"].label, found["age"].missing, found["age"].kind) == ("Age", ("999",), "numeric")


@pytest.mark.parametrize("kind", ["sav", "dta"])
@pytest.mark.parametrize("name", SOURCES)
def test_into_a_table_of_spss_and_stata(name, kind, tmp_path):
    """Stata has no codes for missing values of the kind that a survey writes; SPSS keeps them with their labels."""
    pytest.importorskip("pyreadstat")
    written = tmp_path / f"t.{kind}"
    write_stat(drafted(name), {"sex": ["1", "2"], "age": ["31", "77"]}, written, kind)
    found = {c.name: c for c in read_dictionary(written).columns}
    shown = LABELS if kind == "sav" else {code: label for code, label in LABELS.items() if code != "-9"}
    assert (found["sex"].label, dict(found["sex"].labels)) == ("Sex", shown)
    assert found["age"].label == "Age"
    if kind == "sav":
        assert (found["sex"].missing, found["age"].missing) == (("-9",), ("999",))
