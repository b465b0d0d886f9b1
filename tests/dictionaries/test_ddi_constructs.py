"""Constructs of DDI Codebook that few programs write."""

from __future__ import annotations

import pytest

from espalier.core.dictionaries.base import Declared
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.errors import SchemaError


def variable(inside: str, attributes: str = "") -> tuple[Declared, tuple[str, ...]]:
    text = f'<codeBook><dataDscr><var name="x" {attributes}>{inside}</var></dataDscr></codeBook>'
    read = read_dictionary(text.encode(), "d.xml")
    return read["x"], read.notes


NUMERIC = '<varFormat type="numeric"/>'
YES_NO = "<catgry><catValu>1</catValu><labl>Yes</labl></catgry><catgry><catValu>2</catValu><labl>No</labl></catgry>"


def test_a_missing_code_is_stated_by_its_type_or_by_statas_spelling():
    typed = '<catgry missType="refusal"><catValu>7</catValu><labl>Refused</labl></catgry>'
    found, _ = variable(YES_NO + typed + NUMERIC)
    assert (found.categories, found.missing) == (("1", "2"), ("7",))
    stata = "<catgry><catValu>.a</catValu><labl>Refused</labl></catgry><catgry><catValu>.</catValu></catgry>"
    found, _ = variable(YES_NO + stata + NUMERIC)
    assert (found.categories, found.missing, dict(found.labels)[".a"]) == (("1", "2"), (".a",), "Refused")
    stated = '<catgry missing="N" missType="x"><catValu>3</catValu><labl>Maybe</labl></catgry>'
    assert variable(YES_NO + stated + NUMERIC)[0].categories == ("1", "2", "3")


@pytest.mark.parametrize("mark", ["Sysmiss", "SYSMIS", "NaN", "(blank)", "."])
def test_names_of_an_empty_cell_are_no_codes(mark):
    found, _ = variable(f"{YES_NO}<catgry><catValu>{mark}</catValu></catgry>{NUMERIC}")
    assert (found.categories, found.missing) == (("1", "2"), ())


def test_a_range_of_missing_values_without_an_end_takes_labelled_codes():
    special = "<catgry><catValu>-8</catValu><labl>Lost</labl></catgry>"
    found, notes = variable(f'{YES_NO}{special}<invalrng><range max="-1"/></invalrng>{NUMERIC}')
    assert (found.categories, found.missing) == (("1", "2"), ("-8",))
    assert notes == ("x: only the labelled codes in the range of missing values were used",)
    found, _ = variable(f'{YES_NO}{special}<invalrng><range minExclusive="1.5"/></invalrng>{NUMERIC}')
    assert found.missing == ("2",)


def test_a_key_names_missing_codes():
    key = '<invalrng><range min="98" max="99"/><key>\n 98 DK\n 99 = Inappropriate\n</key></invalrng>'
    found, _ = variable(key + NUMERIC)
    assert found.labels == (("98", "DK"), ("99", "Inappropriate"))
    assert (found.kind, found.missing) == ("numeric", ("98", "99"))


def test_several_ranges_are_one_from_the_least_to_the_largest():
    found, _ = variable(
        f'<valrng><range min="1" max="5"/><range min="8" max="20"/><item VALUE="30"/></valrng>{NUMERIC}'
    )
    assert found.range == ("1", "30")
    found, _ = variable(f'<valrng><range min="1"/><range min="8" max="20"/></valrng>{NUMERIC}')
    assert found.range == ("1", "")


def test_a_category_may_have_a_text_and_no_label():
    found, _ = variable(
        "<catgry><catValu>1</catValu><txt>Yes</txt></catgry><catgry><catValu>2</catValu><txt>No</txt></catgry>"
    )
    assert found.labels == (("1", "Yes"), ("2", "No"))


@pytest.mark.parametrize(("domain", "kind"), [("numeric", "numeric"), ("datetime", "date"), ("text", "open")])
def test_the_question_states_the_kind_of_answers(domain, kind):
    found, _ = variable(f'<qstn responseDomainType="{domain}"><qstnLit>What?</qstnLit></qstn>')
    assert (found.kind, found.description) == (kind, "What?")


def test_codes_with_decimals_of_a_variable_without_decimals_are_categories():
    labels = {"0": "none", "0.5": "treated", "1": "despite therapy"}
    inside = "".join(f"<catgry><catValu>{c}</catValu><labl>{t}</labl></catgry>" for c, t in labels.items()) + NUMERIC
    assert variable(inside, 'dcml="0" intrvl="discrete"')[0].categories == ("0", "0.5", "1")
    assert variable(inside, 'dcml="1" intrvl="discrete"')[0].kind == "open"
    assert variable(inside, 'dcml="0" intrvl="contin"')[0].categories == ()
    partly = inside.replace("<labl>none</labl>", "")
    assert variable(partly, 'dcml="0" intrvl="discrete"')[0].kind == "open"


def test_labels_of_kinds_are_a_list_even_of_a_continuous_variable():
    """Many programs write "contin" for every numeric column."""
    assert variable(YES_NO + NUMERIC, 'intrvl="contin"')[0].categories == ("1", "2")
    amounts = YES_NO.replace("Yes", "one").replace("No", "two") + "<catgry><catValu>3</catValu><labl>3</labl></catgry>"
    assert variable(amounts + NUMERIC, 'intrvl="contin"')[0].kind == "numeric"


def test_a_value_that_is_a_range_of_numbers():
    special = "<catgry><catValu>99</catValu><labl>Unknown</labl></catgry>"
    inside = f"<catgry><catValu>00-97</catValu><labl>Age</labl></catgry>{special}"
    found, _ = variable(inside + NUMERIC)
    assert (found.kind, found.range, found.labels) == ("numeric", ("00", "97"), (("99", "Unknown"),))
    assert variable(inside + '<varFormat type="character"/>')[0].kind == "categorical"


def test_labels_on_some_values_that_were_counted_declare_no_domain():
    counted = "".join(
        f"<catgry><catValu>{i}</catValu>{label}<catStat type='freq'>3</catStat></catgry>"
        for i, label in enumerate(("<labl>none</labl>", "<labl>few</labl>", "", ""))
    )
    found, _ = variable(counted + NUMERIC)
    assert (found.kind, found.categories, found.labels) == ("open", (), (("0", "none"), ("1", "few")))


def test_a_standard_classification_is_open():
    assert variable(f"<stdCatgry>ISCO-08</stdCatgry>{NUMERIC}")[0].kind == "open"


@pytest.mark.parametrize(
    ("form", "kind"),
    [("<varFormat/>", "numeric"), ('<varFormat formatname="A8"/>', "open"), ("<varFormat>ASCII</varFormat>", "open")],
)
def test_a_format_without_a_type_is_one_of_numbers(form, kind):
    assert variable(form)[0].kind == kind


@pytest.mark.parametrize("inside", ['<location fileid="F{}"/>', '<location recSegNo="{}"/>', "{}"])
def test_a_variable_of_several_files(inside):
    both = "".join(f'<var name="id"{" ID=" + repr(f"V{i}")}>{inside.format(i)}</var>' for i in (1, 2))
    assert [c.name for c in read_dictionary(f"<codeBook>{both}</codeBook>".encode(), "d.xml").columns] == ["id"]


BOOK = "<codeBook><var name='x'><labl>{}</labl></var></codeBook>"


@pytest.mark.parametrize(
    ("data", "label"),
    [
        (BOOK.format("caf&eacute;&nbsp;x"), "café x"),
        ('<!DOCTYPE codeBook SYSTEM "v.dtd">' + BOOK.format("caf&eacute;"), "café"),
        ("\n\n<?xml version='1.0'?>" + BOOK.format("é"), "é"),
        (BOOK.format("a & b &amp; &#233;"), "a & b & é"),
        (BOOK.format("a\x0bb\x1a"), "a b"),
        (("<?xml version='1.0' encoding='UTF-8'?>" + BOOK.format("é")).encode("cp1252"), "é"),
        (BOOK.format("é").encode("cp1252"), "é"),
        (("<?xml version='1.0' encoding='UTF-16'?>" + BOOK.format("é")).encode("utf-16"), "é"),
    ],
    ids=["entities", "with a DTD", "blank lines", "ampersand", "control", "stated UTF-8", "cp1252", "UTF-16"],
)
def test_faults_of_xml_that_many_programs_make(data, label):
    read = read_dictionary(data if isinstance(data, bytes) else data.encode(), "d.xml")
    assert read["x"].label == label


def test_an_unknown_entity_is_refused_at_its_place():
    with pytest.raises(SchemaError, match="see line 2, column 3"):
        read_dictionary(b"<codeBook>\nab &nothing;</codeBook>", "d.xml")
    with pytest.raises(SchemaError, match="declares entities"):
        read_dictionary(b"<!DOCTYPE x [<!ENTITY a 'b'>]><codeBook>&nbsp;&a;</codeBook>", "d.xml")
