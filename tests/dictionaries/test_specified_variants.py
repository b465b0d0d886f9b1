"""Constructs that the specifications of REDCap, SPSS, Stata and SAS allow but few files contain."""

from __future__ import annotations

from typing import Any

import pytest

from espalier.core.dictionaries.complete_lists import declares_all
from espalier.core.dictionaries.formats import is_date, is_sas_number, is_time, is_whole
from espalier.core.dictionaries.reading import read_dictionary

HEADER = (
    "field_name,form_name,field_type,field_label,select_choices_or_calculations,"
    "text_validation_type_or_show_slider_number\nid,f,text,Record,,\n"
)


def redcap(line: str) -> dict[str, Any]:
    return {c.name: c for c in read_dictionary((HEADER + line).encode(), "d.csv").columns[1:]}


def test_names_of_checkboxes_leave_out_characters_that_redcap_leaves_out():
    found = redcap('race,f,checkbox,Race,"-1, none | 1.5, half | A b, text | a/B, same | é, other",\n')
    assert list(found) == ["race____1", "race___1_5", "race___ab", "race___"]


@pytest.mark.parametrize("cell", ["-1, worse | 0, same", "'-1, worse | 0, same"])
def test_an_apostrophe_before_a_negative_code_is_no_part_of_it(cell):
    """A written dictionary has an apostrophe there, so that no spreadsheet runs the cell as a formula."""
    assert redcap(f'x,f,radio,X,"{cell}",\n')["x"].labels == (("-1", "worse"), ("0", "same"))


@pytest.mark.parametrize(
    ("stated", "kind"),
    [
        ("Yes/No", "categorical"),
        ("True - False", "categorical"),
        ("Notes Box", "text"),
        ("Calculated Field", "numeric"),
    ],
)
def test_names_of_types_as_the_designer_shows_them(stated, kind):
    assert redcap(f"x,f,{stated},X,,\n")["x"].kind == kind


def test_a_validation_in_the_place_of_a_type_and_a_type_that_redcap_does_not_have():
    lines = "a,f,integer,A,,\nb,f,float,B,,\nc,f,Date (YMD),C,,\nd,f,email,D,,\ne,f,gene sequence,E,,\n"
    read = read_dictionary((HEADER + lines).encode(), "d.csv")
    assert [(c.kind, c.integer) for c in read.columns[1:]] == [
        ("numeric", True),
        ("numeric", False),
        ("date", False),
        ("text", False),
        ("open", False),
    ]
    assert read.notes == ("e: the type 'gene sequence' is not known, so its kind is open",)


@pytest.mark.parametrize(("choices", "kind"), [("RXNORM:ALL", "open"), ("BIOPORTAL:ICD10", "open"), ("", "text")])
def test_a_text_with_a_service_of_codes_is_open(choices, kind):
    assert redcap(f"x,f,text,X,{choices},\n")["x"].kind == kind


def test_formats_of_sas_spss_and_stata():
    for form in ("E8601DX.", "IS8601DN", "NLDATMW30.", "WEEKV5.", "PDJULG4.", "MDYAMPM25.", "XYYMMDD8"):
        assert is_date(form), form
    for form in ("HOUR5.", "E8601TZ", "NLTIMAP10."):
        assert is_time(form), form
        assert not is_date(form), form
    for form in ("EURO10.2", "YEN8.", "PVALUE6.4", "NLMNY12.", "HEX16.", "QTR1.", "S370FZD4."[5:], "IB4."):
        assert is_sas_number(form), form
    for form in ("SEXF.", "YESNO.", "AGEGRP3."):
        assert not is_sas_number(form), form
    assert [is_whole(form) for form in ("Z4", "PCT5", "%9.0f", "%-12.0fc", "%9.2f", "%9.0g", "%tq")] == [True] * 4 + [
        False
    ] * 3


def test_blanks_that_spss_declares_as_missing_are_an_empty_cell(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    import pandas as pd

    place = str(tmp_path / "t.sav")
    pyreadstat.write_sav(pd.DataFrame({"s": ["a", "b"]}), place, missing_ranges={"s": ["b", "  "]})
    assert read_dictionary(place)["s"].missing == ("b",)


def test_labels_of_kinds_in_uneven_steps_are_a_list():
    countries = {"40": "Austria", "56": "Belgium", "208": "Denmark", "246": "Finland", "250": "France"}
    assert declares_all(tuple(countries), countries)
    assert not declares_all(tuple(countries)[:4], countries)
    assert not declares_all(tuple(countries), {**countries, "40": ""})
    assert not declares_all(tuple(countries), {**countries, "40": "two"})
    even = dict(zip(("0", "25", "50", "75", "100"), ("never", "seldom", "at times", "often", "always"), strict=True))
    assert not declares_all(tuple(even), even)
