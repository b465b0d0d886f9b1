"""Formulas are defused, nothing else is changed, and every text can be recovered."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espalier.core.csv_safety import NUMBER, defuse, restore
from espalier.verifier.rows import restored


@pytest.mark.parametrize(
    "text", ["=1+1", "=cmd|' /C calc'!A0", "+1+2", "-2+3", "--", "@SUM(A1)", "\tx", "\rx", "\nx", "＝1+1", "+a"]
)
def test_what_a_spreadsheet_would_run_gets_an_apostrophe(text):
    assert defuse(text) == "'" + text


@pytest.mark.parametrize(
    "text", ["", "-5", "+3.5", "-1e-9", "-", "+", "x", "a=1", "<=50K", ">50K", "?", "'", "'x", " =1"]
)
def test_everything_else_stays_as_it_is(text):
    assert defuse(text) == text
    assert restore(text) == text


@pytest.mark.parametrize("mark", [";", "\t", "\n", "\r", "\r\n", "x;y\t"])
def test_what_begins_a_cell_under_another_delimiter_gets_an_apostrophe_too(mark):
    """Previously, ``a;=cmd`` was a formula where spreadsheets expect semicolons, whatever the quotes."""
    assert defuse(f"a{mark}=1+1;-5;-x") == f"a{mark}'=1+1;-5;'-x"
    assert defuse(f"a{mark}'=1") == f"a{mark}''=1"


@given(st.text(alphabet="'=+-@\t\n1ax.＝;", max_size=9))
def test_every_text_comes_back_and_none_is_a_formula(text):
    shown = defuse(text)
    assert restore(shown) == text
    assert restored(shown) == text, "the checker agrees"
    for part in re.split(r"[;\t\r\n]", shown):
        assert NUMBER.fullmatch(part) or not re.match(r"[=@＝]|[+-].", part)


def test_no_two_texts_become_one():
    texts = ["=1", "'=1", "''=1", "-1", "'-1", "''-1", "'", "''", "'x"]
    assert len({defuse(t) for t in texts}) == len(texts)
