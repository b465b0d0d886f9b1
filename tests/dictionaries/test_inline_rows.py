"""Syntax files that contain rows of data are refused, because a row may look like a command."""

from __future__ import annotations

import pytest

from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.errors import SchemaError

STATA = '\nlabel define s 1 "m" 2 "f"\nlabel values sex s\n'
SPSS = "\nVALUE LABELS sex 1 'm' 2 'f'.\n"
SAS = "proc format; value s 1='m' 2='f';\ndata u; set t; format sex s.;\n"
ROW = "1 'end' /* \"; end data\n"
WITH_ROWS = {
    "d.do": [
        "input str8 a\n{}end",
        "inp a\n{}end",
        "/* the data */ input str8 a\n{}end",
        "n input str8 a\n{}end",
        "input\n{}end",
        "version 14: input str8 a\n{}end",
        "#delimit ;\nclear; input str8 a;\n{}end;",
        "* the rows\n// of this file\nqui: inpu a\n{}end",
        'label variable sex "sex"\n capture noisily input ///\n a\n{}end',
    ],
    "d.sps": [
        "DATA LIST FREE / sex.\nBEGIN DATA.\n{}END DATA.",
        "DATA LIST FREE / sex.\n+BEGIN DATA.\n{}END DATA.",
        "DATA LIST FREE / sex\n\nbeg dat\n{}END DATA.",
        "DATA LIST FREE / sex.\nBegin\n  Data.\n  END DATA\n{}END DATA.",
    ],
    "d.sas": [
        *(f"data t; input sex;\n{word};\n{{}};;;;\n" for word in ("cards", "DATALINES4", "lines", "parmcards4 ")),
        "data t; input sex; /* rows */ cards;\n{};\n",
        "%let q=%str(%'); data t; input sex;\fdatalines;\n{};\n",
        "data t; input sex; %m cards /* the rows */ /**/ ;\n{};\n",
        "data t; input sex; %if 1 %then lines/**/;\n{};\n",
    ],
}
LABELS = {"d.do": STATA, "d.sps": SPSS, "d.sas": SAS}
CASES = [(name, text) for name, texts in WITH_ROWS.items() for text in texts]


@pytest.mark.parametrize(("name", "text"), CASES)
@pytest.mark.parametrize("own", [True, False])
def test_a_file_with_rows_is_refused(name, text, own):
    """Previously, such rows were left out in the usual spellings only, and read as declarations in others."""
    given = text.format(ROW) + LABELS[name]
    with pytest.raises(SchemaError, match="starts rows of data in"):
        read_dictionary(given.encode(), name if own else "setup.txt")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.do", '* input of the survey\n/* how to\n input */\nlabel variable sex "input"\n// input' + STATA),
        ("d.sps", "* The data begin in 2020.\nVARIABLE LABELS sex 'beginning date'." + SPSS),
        ("d.sas", "/* 80 lines */ data t; infile 'cards.txt'; input sex;\n" + SAS),
    ],
)
def test_a_file_without_rows_is_read(name, text):
    assert read_dictionary(text.encode(), name)["sex"].categories == ("1", "2")


def test_the_message_names_the_line():
    with pytest.raises(SchemaError, match="d.sps, line 3: 'BEGIN DATA' starts rows of data in SPSS. A row may look"):
        read_dictionary(("DATA LIST FREE / sex.\n\nBEGIN DATA.\n1\nEND DATA." + SPSS).encode(), "d.sps")
