"""SPSS syntax: the commands that declare something, and the facts that they leave open."""

from __future__ import annotations

import contextlib
import time

import pytest

from espalier.core.dictionaries.base import MOST_COLUMNS, Declared
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.errors import SchemaError


def columns(text: str, name: str = "d.sps") -> dict[str, Declared]:
    return {c.name: c for c in read_dictionary(text.encode(), name).columns}


FILE = """* Encoding: UTF-8.
* The survey's variables: don't read this as 'MISSING VALUES x (1)'.
DATA LIST FILE='C:\\data.txt' /
   ID      1 - 5  (A)
   SEX     6      (F,0)
   AGE     7-9    (F3.0)
   WEIGHT 10-14   (2)   /* in kg */
   SEEN   15-24   (SDATE)
   SCORE  25-27.
VARIABLE LABELS
  SEX "Sex of the person"
  AGE 'Person''s age ' +
      'in years'
  /WEIGHT "Weight".
VALUE LABELS
  SEX 1 "Male" 2 "Female" 9 "Refused"
  /AGE 98 'Don''t know' 99 'Refused'.
MISSING VALUES SEX (9) /AGE (98 THRU 99) SCORE (LO THRU -1).
EXECUTE.
"""


def test_the_commands_of_an_archive():
    read = read_dictionary(FILE.encode(), "d.sps")
    found = {c.name: c for c in read.columns}
    assert read.format == "SPSS syntax"
    assert list(found) == ["ID", "SEX", "AGE", "WEIGHT", "SEEN", "SCORE"]
    assert [c.kind for c in read.columns] == ["open", "categorical", "numeric", "numeric", "date", "numeric"]
    assert (found["SEX"].categories, found["SEX"].missing) == (("1", "2"), ("9",))
    assert found["SEX"].labels == (("1", "Male"), ("2", "Female"), ("9", "Refused"))
    assert (found["AGE"].label, found["AGE"].missing, found["AGE"].integer) == (
        "Person's age in years",
        ("98", "99"),
        True,
    )
    assert (found["WEIGHT"].decimals, found["WEIGHT"].integer, found["SCORE"].integer) == (2, False, False)
    assert "SCORE: only the labelled codes in the range of missing values were used" in read.notes


def test_a_survey_tool_with_a_list_of_formats_and_new_names():
    found = columns(
        """GET DATA /TYPE=TXT /FILE='s.dat' /DELIMITERS="," /VARIABLES=
 V1 F4
 V2 DATETIME23.2
 V3 A20
 V4 F5.1.
CACHE.
EXECUTE.
*Define variable properties.
VARIABLE LABELS V1 "id".
VALUE LABELS V3 "M" "Male" "F" "Female".
VARIABLE LEVEL V3(NOMINAL) V4 (SCALE).
RENAME VARIABLE ( V1 = id ).
RENAME VARIABLE ( V3 V4 = sex rate ).
"""
    )
    assert list(found) == ["id", "V2", "sex", "rate"]
    assert [c.kind for c in found.values()] == ["numeric", "date", "categorical", "numeric"]
    assert (found["sex"].categories, found["sex"].labels[0]) == (("M", "F"), ("M", "Male"))
    assert (found["id"].integer, found["id"].label, found["rate"].decimals) == (True, "id", 1)


def test_several_variables_at_once_by_a_range_of_names_and_all():
    found = columns(
        """data list free / a b c d.
val lab a to c 0 'no' 1 'yes' / d q1 TO q3 1 'never' 7 'always'.
add value labels a 8 'other'.
MISSING VALUES ALL (-1).
MISSING VALUES b ().
VARIABLE LEVEL a (ORDINAL).
"""
    )
    assert list(found) == ["a", "b", "c", "d", "q1", "q2", "q3"]
    assert [found[n].categories for n in "bc"] == [("0", "1"), ("0", "1")]
    assert found["a"].kind == "open", "a code after a gap may be a point of a scale"
    assert (found["d"].kind, found["q2"].labels) == ("open", (("1", "never"), ("7", "always")))
    assert [found[n].missing for n in "abcd"] == [("-1",), (), ("-1",), ("-1",)]


@pytest.mark.parametrize(
    "command",
    [
        "VALUE LABELS sex M 'Male' F 'Female'.",
        "value label sex 'M' \"Male\" 'F' \"Female\" .",
        "VALUE LABELS SEX\n'M' 'Male'\n'F' 'Female'\n/.",
        "VALUE LABELS sex 'M' 'Male', 'F' 'Female'\nEXECUTE.",
        "VALUE LABELS /sex 'M' 'Ma' + 'le' 'F' 'Female'\r\nVARIABLE LABELS sex ''.\r\n",
        "COMMENT nothing.\n\nADD VALUE LABELS sex 'M  ' 'Male' 'F' 'Female'.",
    ],
)
def test_value_labels_in_other_spellings(command):
    [found] = columns(command).values()
    assert (found.name.lower(), found.categories) == ("sex", ("M", "F"))
    assert found.labels == (("M", "Male"), ("F", "Female"))


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        ("(9)", "9"),
        ("('   ')", ""),
        ("(8, 9)", "8 9"),
        ("(8 9.00)", "8 9"),
        ("(7 thru 9)", "7 8 9"),
        ("(97 THRU HI, -1)", "98 -1"),
    ],
)
def test_missing_values_in_other_spellings(given, codes):
    text = f"FORMATS x (F2.0).\nVALUE LABELS x 1 'a' 98 'b'.\nMISSING VALUE x {given}.\n"
    assert columns(text)["x"].missing == tuple(codes.split())


def test_a_variable_with_a_label_only_is_open_and_missing_numbers_make_a_number():
    found = columns("VARIABLE LABELS a 'A' b 'B'.\nMISSING VALUES b (99).")
    assert [c.kind for c in found.values()] == ["open", "numeric"]


def test_syntax_is_known_by_its_commands_too():
    assert list(columns("\n  variable labels x 'X'.\n", "d.txt")) == ["x"]
    with pytest.raises(SchemaError, match="not a dictionary"):
        read_dictionary(b"Variable label,Value label\na,b\n", "d.csv")
    with pytest.raises(SchemaError, match="declares no columns"):
        read_dictionary(b"EXECUTE.", "d.sps")


@pytest.mark.parametrize(
    "text",
    [
        "VALUE LABELS q1 TO q999999 1 'a' 2 'b'.",
        "VARIABLE LABELS " + " ".join(f"v{i} 'x'" for i in range(MOST_COLUMNS + 2)) + ".",
    ],
    ids=["range", "list"],
)
def test_too_many_variables_are_refused(text):
    with pytest.raises(SchemaError, match="more than"):
        columns(text)


@pytest.mark.parametrize(
    "text",
    [
        "VALUE LABELS x " + "'" * 300_001,
        "VALUE LABELS x 1 'a' " + "/" * 300_000 + ".",
        "VALUE LABELS x 1 'a'. " + "x" * 300_000,
        "VARIABLE LABELS x 'a'\n" + "* " * 150_000,
        "VALUE LABELS x 1 'a' " + "\n" * 300_000,
        "VALUE LABELS x 1 'a' " + "'a' + " * 30_000,
    ],
    ids=["quotes", "bars", "word", "stars", "lines", "joined"],
)
def test_crafted_syntax_takes_no_minutes(text):
    start = time.process_time()
    with contextlib.suppress(SchemaError):
        columns(text)
    assert time.process_time() - start < 5


def test_value_labels_replace_earlier_ones_and_may_be_added_to():
    found = columns("VALUE LABELS x 1 'a' 2 'b'.\nVALUE LABELS x 1 'c'.\nADD VALUE LABELS x 2 'd'.")
    assert found["x"].labels == (("1", "c"), ("2", "d"))


def test_an_apostrophe_in_a_word_ends_no_text():
    found = columns("VALUE LABELS x 1 'Don't know' 2 'l'an dernier'\n.")
    assert found["x"].labels == (("1", "Don't know"), ("2", "l'an dernier"))


def test_fixed_columns_formats_and_deleted_variables():
    found = columns(
        """GET DATA /TYPE=TXT /FILE='s.dat' /ARRANGEMENT=FIXED /VARIABLES=
 /1 sex 0-0 F1.0 name 1-9 A9 gone 10-11 F2.
FORMAT sex (F3.0).
DELETE VARIABLES gone.
VARIABLE LABELS sex 'Sex'
SORT CASES BY sex.
"""
    )
    assert [(c.name, c.kind, c.integer) for c in found.values()] == [("sex", "numeric", True), ("name", "open", False)]


@pytest.mark.parametrize(
    "text",
    [
        "FORMATS q1 TO q19999 (F2).\n" * 2_000,
        "VALUE LABELS q1 TO q9999 " + " ".join(f"{i} 'x'" for i in range(9_999)) + ".",
        "VALUE LABELS x 1 " + "'a" * 150_000,
    ],
    ids=["ranges", "shared list", "apostrophes"],
)
def test_many_variables_that_share_what_is_stated_take_no_minutes(text):
    start = time.process_time()
    with contextlib.suppress(SchemaError):
        columns(text)
    assert time.process_time() - start < 5
