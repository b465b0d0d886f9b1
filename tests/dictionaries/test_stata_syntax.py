"""Stata do-files that label a table."""

from __future__ import annotations

import contextlib
import time

import pytest

from espalier.core.dictionaries.base import Declared
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.errors import SchemaError


def columns(text: str, name: str = "d.do") -> dict[str, Declared]:
    return {c.name: c for c in read_dictionary(text.encode(), name).columns}


FILE = """* label variable no "this is a comment"
set more off
quietly infix          ///
  int   year    1-4    ///
  str   id      5-9    ///
  byte  sex     10-10  ///
  double weight 11-19  ///
  using "t.dat"
replace weight = weight / 100
format seen %td
label var year `"Year of the "survey""'
cap label variable sex "Sex" // as stated
lab define sex_lbl 1 "Male" 2 "Female"
la de sex_lbl 9 "Refused" .a "Lost", add
label values sex sex_lbl
mvdecode sex weight, mv(9 \\ -8 = .b)
#delimit ;
label values kids   kids;
label define kids 0 "none" 90
  "90 or more" /* a
  comment */ ;
#delimit cr
label variable kids "Children"
"""


def test_the_commands_of_a_labelled_extract():
    read = read_dictionary(FILE.encode(), "d.do")
    found = {c.name: c for c in read.columns}
    assert read.format == "Stata do-file"
    assert list(found) == ["year", "id", "sex", "weight", "seen", "kids"]
    assert [c.kind for c in read.columns] == ["numeric", "open", "categorical", "numeric", "date", "open"]
    assert (found["year"].integer, found["year"].label) == (True, 'Year of the "survey"')
    assert (found["sex"].categories, found["sex"].missing) == (("1", "2"), ("9", "-8", ".a"))
    assert found["sex"].labels == (("1", "Male"), ("2", "Female"), ("9", "Refused"), (".a", "Lost"))
    assert (found["weight"].integer, found["weight"].missing) == (False, ("9", "-8"))
    assert (found["kids"].label, found["kids"].labels) == ("Children", (("0", "none"), ("90", "90 or more")))


def test_do_files_are_known_by_their_commands_and_others_are_refused():
    assert list(columns('label variable x "X"\n', "d.txt")) == ["x"]
    with pytest.raises(SchemaError, match="declares no columns"):
        columns("regress y x\n")


def test_one_list_of_labels_for_several_variables():
    found = columns('label define yn 0 "no" 1 "yes"\nlabel values a b yn, nofix\nmvdecode _all, mv(-9 -8)\n')
    assert [c.categories for c in found.values()] == [("0", "1")] * 2
    assert [c.missing for c in found.values()] == [("-9", "-8")] * 2


@pytest.mark.parametrize(
    "text",
    ['label define x 1 "' + '"' * 300_000, '`"' * 100_000, "/* " * 100_000, "// " * 100_000, "/// \n" * 80_000],
    ids=["quotes", "compound quotes", "open comments", "slashes", "continued lines"],
)
def test_crafted_do_files_take_no_minutes(text):
    start = time.process_time()
    with contextlib.suppress(SchemaError):
        columns(text)
    assert time.process_time() - start < 5
