"""SAS programs: the statements that declare something, and the facts that they leave open."""

from __future__ import annotations

import contextlib
import time

import pytest

from espalier.core.dictionaries.base import Declared
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.errors import SchemaError


def columns(text: str, name: str = "d.sas") -> dict[str, Declared]:
    return {c.name: c for c in read_dictionary(text.encode(), name).columns}


PROGRAM = """* The survey's formats: don't read 'value x 1=y' here;
/* value skipped 1 = 'x'; */
options nocenter;
PROC FORMAT LIBRARY=work;
  VALUE sexf (default=20)
    1 = 'Male'   2 = "Female"
    .A = 'Refused' . = 'Not asked';
  value $racef 'W','w' = 'White' 'B' = 'Black''s';
  VALUE agef low - 17 = 'child' 18-high = 'adult' 99 = 'Unknown';
  value yn 0 = No 1 = Yes other = 'Missing';
  picture money low-high = '000,009';
run;
data survey;
  infile "x.dat" lrecl=80;
  input @1 id $char6. sex 7 age 8-10 race $ 11
        @12 seen mmddyy10. (q1-q3) (1.) weight 5.2 note $;
  length note $ 200;
  label sex = 'Sex of the person' age="Age in years"
        q1 = 'Smokes';
  format sex sexf. race $racef1. age agef. q1-q3 yn. seen date9. weight 6.1;
  if age in (998, 999) then age = .;
  if q1 = 9 then q2 = .;
run;
"""


def test_a_program_with_formats_and_a_table():
    read = read_dictionary(PROGRAM.encode(), "d.sas")
    found = {c.name: c for c in read.columns}
    assert read.format == "SAS syntax"
    assert list(found) == ["id", "sex", "age", "race", "seen", "q1", "q2", "q3", "weight", "note"]
    assert {name: column.kind for name, column in found.items()} == {
        **{"id": "open", "sex": "categorical", "age": "numeric", "race": "categorical", "seen": "date"},
        **{"q1": "categorical", "q2": "categorical", "q3": "categorical", "weight": "numeric", "note": "open"},
    }
    assert (found["sex"].categories, found["sex"].missing) == (("1", "2"), ("A",))
    assert found["sex"].labels == (("1", "Male"), ("2", "Female"), ("A", "Refused"))
    assert found["sex"].label == "Sex of the person"
    assert found["race"].labels == (("W", "White"), ("w", "White"), ("B", "Black's"))
    assert (found["age"].labels, found["age"].missing) == ((("99", "Unknown"),), ("998", "999"))
    assert (found["q1"].labels, found["q1"].label, found["q2"].missing) == ((("0", "No"), ("1", "Yes")), "Smokes", ())
    assert found["weight"].decimals == 1


def test_the_program_that_redcap_writes():
    found = columns("""%macro removeOldFile(bye); %if %sysfunc(exist(&bye.)) %then %do;
proc delete data=&bye.; run; %end; %mend;
data REDCAP; %let _EFIERR_ = 0;
infile 'd.csv' delimiter = ',' MISSOVER DSD lrecl=32767 firstobs=1 ;
	informat record_id $500. ;
	informat sex best32. ;
	informat dob yymmdd10. ;
	informat height best32. ;
	format record_id $500. ;
	format sex best12. ;
	format dob yymmdd10. ;
	format height best12. ;
input
	record_id $
	sex
	dob
	height
;
if _ERROR_ then call symput('_EFIERR_',"1");
run;
proc contents;run;
data redcap;
	set redcap;
	label record_id='Study ID';
	label sex='Gender';
	format sex sex_.;
run;
proc format;
	value sex_ 0='Female' 1='Male';
run;
""")
    assert [c.kind for c in found.values()] == ["open", "categorical", "date", "numeric"]
    assert (found["sex"].labels, found["sex"].label) == ((("0", "Female"), ("1", "Male")), "Gender")


def test_attributes_and_new_names():
    found = columns("""data x; attrib a label = 'A' format = yn. b length = $ 8 label = "B"
c d length = 8 format = date9.;
rename a = first; run; proc format; value yn 1 = 'yes' 2 = 'no'; run;""")
    assert sorted(found) == ["b", "c", "d", "first"]
    assert (found["first"].label, found["first"].categories) == ("A", ("1", "2"))
    assert (found["b"].label, found["b"].kind) == ("B", "open")
    assert [found[name].kind for name in "cd"] == ["date", "date"]


def test_formats_without_columns_are_refused():
    with pytest.raises(SchemaError, match="defines formats but no columns"):
        columns("proc format; value a 1 = 'x' 2 = 'y'; run;")


def test_sas_is_known_by_its_steps_too():
    assert list(columns("\nproc format;\nvalue a 1='x' 2='y';\nrun;\ndata t;\nformat v a.;\n", "d.txt")) == ["v"]


def test_a_format_of_codes_made_elsewhere_leaves_the_kind_open():
    found = columns("data t; format a mycodes. b 8. c 8.2 d comma9. e time5. f mmddyy8.; run;")
    assert [c.kind for c in found.values()] == ["open", "numeric", "numeric", "numeric", "open", "date"]
    assert [c.integer for c in found.values()] == [False, True, False, True, False, False]


@pytest.mark.parametrize(
    "text",
    [
        "data x; label a=" + "'" * 300_001,
        "data x; label a='x' " + '"b' * 150_000,
        "proc format; value a " + "1," * 150_000 + ";",
        "data x; " + "/*" * 150_000,
        "data x; input " + "a1-a19999 " * 30_000 + ";",
        "data x; input q1-q9999; format q1-q9999 a.; proc format; value a "
        + " ".join(f"{i}='x'" for i in range(9_999))
        + ";",
        "* " * 150_000,
        "if a = 1 " * 50_000,
    ],
    ids=["quotes", "open quotes", "codes", "comments", "ranges", "shared list", "stars", "conditions"],
)
def test_a_crafted_program_takes_no_minutes(text):
    start = time.process_time()
    with contextlib.suppress(SchemaError):
        columns(text)
    assert time.process_time() - start < 5
