"""Formulas are defused, nothing else is changed, and every text can be recovered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espalier.core.tables.csv_safety import defuse, restore


@pytest.mark.parametrize(
    "text", ["=1+1", "=cmd|' /C calc'!A0", "+1+2", "-2+3", "--", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", "+a"]
)
def test_what_a_spreadsheet_would_run_gets_an_apostrophe(text):
    assert defuse(text) == "'" + text


@pytest.mark.parametrize(
    "text", ["", "-5", "+3.5", "-1e-9", "-", "+", "x", "a=1", "<=50K", ">50K", "?", "'", "'x", " =1"]
)
def test_everything_else_stays_as_it_is(text):
    assert defuse(text) == text
    assert restore(text) == text


@given(st.text(alphabet="'=+-@\t\n1ax.＝", max_size=6))
def test_every_text_comes_back_and_none_is_a_formula(text):
    shown = defuse(text)
    assert restore(shown) == text
    assert defuse(shown) == shown or shown.startswith("'")


def test_no_two_texts_become_one():
    texts = ["=1", "'=1", "''=1", "-1", "'-1", "''-1", "'", "''", "'x"]
    assert len({defuse(t) for t in texts}) == len(texts)
