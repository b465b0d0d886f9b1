"""A hierarchy on the Data page is pasted, checked, accepted, and visible in the plan."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.reading import read_table
from espalier.pages.data.typed_columns import column_of, row_of
from tests.support.app import act, field, go, press, sentences, state, unfold

CODES = tuple(f"{chapter}{i}" for chapter in "AB" for i in range(4))
PASTED = "code,group\n" + "".join(f"{code},chapter {code[0]}\n" for code in CODES)


def opened(app: AppTest) -> AppTest:
    """Return a table whose column of codes is declared."""
    schema = Schema((Column("code", "categorical", CODES), Column("ill", "categorical", ("no", "yes"))))
    text = "code,ill\n" + "".join(f"{CODES[i % 8]},{('no', 'yes')[i % 2]}\n" for i in range(400))
    state(app).open(Project("w", schema, Plan("mst", 1.0, 1e-6, schema_share=0.1)), read_table(text.encode(), "w.csv"))
    return go(app, "data")


def paste(app: AppTest, text: str) -> AppTest:
    """Paste into the field of the chosen column."""
    field(app, "text_area", "Code and group").set_value(text).run()
    assert not app.exception
    return app


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A0,x\nx,y\ny,x\n", "form a cycle"),
        ("A0,x\nZ9,x\n", "names 'Z9', which is neither a category nor a group"),
        ("A0,x\nA0,y\n", "but an earlier line assigns it to"),
        ("A0\n", "two cells"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(app: AppTest, text: str, reason: str):
    paste(opened(app), text)
    assert any(reason in e.value.replace("\\", "") for e in app.error), [e.value for e in app.error]
    assert next(b for b in app.button if b.label == "Use this hierarchy").disabled
    assert not state(app).project.schema.hierarchies


def test_a_hierarchy_is_taken_and_the_plan_shows_what_will_be_told_apart(app: AppTest):
    paste(opened(app), PASTED.replace("B3,chapter B\n", ""))
    assert "1 declared categories are not in the hierarchy" in sentences(app)
    paste(app, PASTED)
    assert "8 codes in 2 levels, 2 at the top" in sentences(app)
    field(app, "number_input", "Maximum number of categories").set_value(5).run()
    press(app, "Use this hierarchy")
    column: Any = state(app).project.schema["code"]
    assert column.tree.texts == CODES
    assert column.at_most == 5
    assert row_of(column)["categories"] == "at most 5 of 8 codes in a hierarchy"
    go(app, "data")
    assert state(app).project.schema["code"] == column, "the table of columns leaves it as it is"
    assert "has a hierarchy: 8 codes in 2 levels" in sentences(app)
    fewer: Any = column_of({**row_of(column), "categories": "at most 3 of 8 codes in a hierarchy"}, column)
    assert fewer.at_most == 3
    act(app, "change", "code", label="Diagnosis")
    changed: Any = state(app).project.schema["code"]
    assert changed.hierarchy == column.hierarchy
    assert column_of({**row_of(column), "categories": "x; y"}, column).categories == ("x", "y")
    go(app, "plan")
    assert "8 codes in 2 levels" in sentences(app)
    unfold(app, "Details")
    shown = " ".join(str(frame.value) for frame in app.dataframe)
    assert "rows of code by level 1 of 2 of its hierarchy" in shown


def test_guessed_categories_are_confirmed_first(app: AppTest):
    opened(app)
    guessed = Column("code", "categorical", CODES, guessed=("categories",))
    schema = Schema((guessed, Column("ill", "categorical", ("no", "yes"))))
    state(app).open(Project("w", schema, Plan("mst", 1.0, 1e-6)), None)
    go(app, "data")
    paste(app, PASTED)
    assert any("confirm them first" in e.value for e in app.error)
