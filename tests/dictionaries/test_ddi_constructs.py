"""Constructs of DDI Codebook that few programs write."""

from __future__ import annotations

import pytest

from espalier.core.dictionaries.base import Declared
from espalier.core.dictionaries.reading import read_dictionary


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
