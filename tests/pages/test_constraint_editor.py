"""Constraints on the Data page are added, refused where they contradict a separation, guessed and confirmed."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from espalier.core.graph.roles import Roles
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.reading import read_table
from tests.support.app import go, press, state

SCHEMA = Schema(
    (
        Column("sex", "categorical", ("f", "m")),
        Column("pregnant", "categorical", ("no", "yes")),
        Column("ill", "categorical", ("no", "yes")),
    )
)


def opened(app: AppTest) -> AppTest:
    roles = Roles(outcome=("ill",), protected=("sex",))
    text = "sex,pregnant,ill\n" + "".join(f"{'fm'[i % 2]},{'yes' if not i % 4 else 'no'},no\n" for i in range(200))
    state(app).open(Project("w", SCHEMA, Plan("privci", 1.0), roles=roles), read_table(text.encode(), "w.csv"))
    return go(app, "data")


def choose(app: AppTest, first: str, value: str, second: str, other: str) -> AppTest:
    field(app, "Columns").set_value([first, second]).run()
    field(app, f"Values of {first}").set_value([value])
    field(app, f"Values of {second}").set_value([other]).run()
    return press(app, "Add this constraint")


def field(app: AppTest, label: str):
    return next(w for w in app.multiselect if w.label == label)


def test_a_combination_is_added_and_one_around_the_fence_is_refused(app: AppTest):
    opened(app)
    choose(app, "sex", "m", "pregnant", "yes")
    assert [str(c) for c in state(app).project.constraints] == ["sex = m and pregnant = yes"]
    choose(app, "sex", "m", "ill", "yes")
    assert any("bypasses it" in e.value for e in app.error)
    assert [str(c) for c in state(app).project.constraints] == ["sex = m and pregnant = yes"]
    press(app, "Remove")
    assert not state(app).project.constraints


def test_what_is_found_in_the_rows_is_guessed_until_it_is_confirmed(app: AppTest):
    opened(app)
    press(app, "Look for constraints in the rows")
    found = state(app).project.constraints
    assert [str(c) for c in found.guessed] == ["sex = m and pregnant = yes"]
    press(app, "Confirm 1 guessed constraint")
    assert not state(app).project.constraints.guessed
