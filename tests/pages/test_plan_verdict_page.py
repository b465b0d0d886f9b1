"""The verdict on the Plan page before anything is spent: its sentence, its table, its buttons and its dial."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.ledger.ledger import Ledger
from espalier.core.planning.preview import preview
from espalier.core.project.column import Column
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Schema
from espalier.pages.plan import verdict
from tests.support.app import field, go, press, sample, sentences, state, unfold


@pytest.fixture
def planned(app: AppTest) -> AppTest:
    """A plan whose largest column is mostly noise."""
    edges = tuple(map(float, range(61)))
    columns = [
        Column("age", "numeric", edges=edges),
        *(Column(n, "categorical", categories=("0", "1")) for n in "abcy"),
    ]
    codes = Column("code", "categorical", categories=tuple(map(str, range(90))))
    plan = Plan("workload", 0.1, 1e-9, target="y")
    state(app).open(Project("trial", Schema((*columns, codes)), plan), rows=5000)
    state(app).editor.answer(True)
    return go(app, "plan")


def test_the_sentence_the_table_and_the_smallest_budget(planned: AppTest) -> None:
    found = preview(state(planned).project, 5000).verdict
    assert found is not None
    boxes = [e.value for kind in (planned.warning, planned.success) for e in kind]
    assert any(box.startswith(found.headline.split(":")[0]) for box in boxes)
    table = next(d.value for d in planned.dataframe if "verdict" in d.value.columns)
    assert list(table["column"]) == [c.column for c in found.columns]
    assert set(table["verdict"]) <= {"works", "weak", "noise"}
    assert table["share of the noise (%)"].sum() == pytest.approx(100)
    press(planned, "Set ε = ")
    now = preview(state(planned).project, 5000).verdict
    assert now is not None
    assert now.rating == "works"
    assert field(planned, "text_input", "ε").value == f"{now.now.epsilon:g}"
    assert any(box.value.startswith("Works") for box in planned.success)


def test_closed_parts_of_the_page_are_not_drawn(planned: AppTest) -> None:
    charts, fields = len(planned.get("plotly_chart")), len(planned.selectbox)
    assert not planned.metric
    unfold(planned, "Details")
    assert any(m.label == "Time to fit" for m in planned.metric)
    assert len(planned.get("plotly_chart")) == charts + 1
    for label in ("Questions", "Regressions", "Planned analyses"):
        unfold(planned, label)
    assert len(planned.selectbox) > fields + 2


@pytest.mark.parametrize(("epsilon", "offered"), [(0.58, True), (0.61, False), (0.7, True)])
def test_an_epsilon_that_saves_next_to_nothing_is_not_offered(app: AppTest, epsilon: float, offered: bool) -> None:
    sample(app, "hiring")  # ε = 0.6 is enough
    state(app).editor.change_plan(epsilon=epsilon)
    go(app, "plan")
    assert any(b.label == "Set ε = 0.6" for b in app.button) == offered


def test_a_method_that_sums_numbers_has_no_verdict(app: AppTest) -> None:
    go(sample(app, "stays"), "plan")
    seen = preview(state(app).project, 6000)
    assert seen.unrated in [e.value for e in app.info]
    assert not any("Noise outweighs" in e.value for kind in (app.warning, app.success) for e in kind)


def test_one_click_leaves_a_column_out_or_coarsens_it(planned: AppTest) -> None:
    go(go(planned, "data"), "plan")
    press(planned, "Leave out `code`")
    assert "code" not in state(planned).project.schema
    assert "code" in state(planned).drafts.review.aside, "the Data page can keep it again"
    before = state(planned).project.schema["age"].size
    press(planned, "Coarsen `age`")
    assert state(planned).project.schema["age"].size == before // 3
    go(go(planned, "data"), "plan")
    assert state(planned).project.schema["age"].size == before // 3, "the Data page agrees"


def test_the_dial_needs_no_second_rehearsal(tmp_path: Path) -> None:
    columns = tuple(Column(n, "categorical", categories=("0", "1")) for n in "aby")
    seen = preview(Project("trial", Schema(columns), Plan("workload", 0.7, 1e-9, target="y")), 4000)
    assert seen.verdict is not None
    ledger = Ledger(tmp_path / "ledger.db", create=True)
    ledger.open_table("trial", epsilon=1.0, delta=1e-9, neighbors="replace-one", rows_per_person=1)
    points = verdict.dial(seen, ledger.populations()["trial"])
    assert [p["epsilon"] for p in points] == sorted({*(e.epsilon for e in seen.verdict.grid), 0.7})
    says = {p["epsilon"]: p["says"] for p in points}
    assert seen.verdict.headline in says[0.7]
    assert "would remain in the ledger" in says[0.7]
    assert "ε up to 1 fits" in says[10.0]
    assert "right at most 73.2 %" in says[1.0]
    for p in points:
        assert "Someone who guesses" in p["says"]


def test_under_add_remove_the_rows_are_declared_on_the_page(planned: AppTest) -> None:
    state(planned).editor.change_plan(neighbors="add-remove")
    planned.run()
    assert "Declare the number of rows" in sentences(planned)
    assert not any("verdict" in d.value.columns for d in planned.dataframe)
    field(planned, "number_input", "Declared number of rows").set_value(7000).run()
    assert not planned.exception
    assert "Assumed: 7,000 rows" in sentences(planned).replace("\\", "")


def test_the_share_of_the_rarer_value_is_declared_on_the_page(app: AppTest) -> None:
    go(sample(app, "hiring"), "plan")
    typed = field(app, "number_input", "Rows with the rarest value of hired (%)")
    assert typed.value is None
    assert any(box.value.startswith("Works") for box in app.success)
    typed.set_value(0.9).run()
    assert state(app).project.plan.rarer == 0.009
    assert not any(box.value.startswith("Works") for box in app.success)
    assert "the rarest value of the target in 0.9 %" in sentences(app).replace("\\", "")
    field(app, "selectbox", "Target").set_value("gender").run()
    assert state(app).project.plan.rarer is None, "it was the share of another column"


def test_a_method_without_an_outcome_does_not_ask_for_its_share(app: AppTest) -> None:
    go(sample(app, "hiring"), "plan")
    state(app).editor.change_plan(method="mst", fair=None)
    app.run()
    assert not any("rarest value" in n.label for n in app.number_input)


def test_a_target_with_one_value_is_refused_at_its_field(planned: AppTest) -> None:
    session = state(planned)
    session.describe(Column("y", "categorical", categories=("0",)))
    planned.run()
    assert any("has only one value" in e.value for e in planned.error)
    assert any("fix the conflict above" in i.value and "has only one value" in i.value for i in planned.info)


def test_overspending_offers_the_budget_that_fits(
    app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESPALIER_LEDGER", str(tmp_path / "ledger.db"))
    sample(app, "hiring")
    session = state(app)
    session.editor.change_plan(delta=1e-9, epsilon=2.0)
    ledger = Ledger(tmp_path / "ledger.db", create=True)
    ledger.open_table("hiring", epsilon=1.0, delta=1e-9, neighbors="replace-one", rows_per_person=1)
    session.paid_from = "hiring"
    go(app, "plan")
    assert any("has only ρ =" in e.value for e in app.error)
    press(app, "Set ε = 1, which fits")
    assert session.project.plan.epsilon == 1.0
    assert not any("has only ρ =" in e.value for e in app.error)


def test_a_plan_that_lacks_only_the_number_of_rows_asks_for_it(app: AppTest) -> None:
    columns = tuple(Column(n, "categorical", categories=("0", "1")) for n in "abcy")
    state(app).open(Project("trial", Schema(columns), Plan("workload", 1.0, 1e-9, target="y")))
    state(app).editor.answer(True)
    go(app, "plan")
    asked = "Enter the number of rows to see what noise would hide."
    assert asked in [box.value for box in app.info]
    field(app, "number_input", "Number of rows").set_value(5000).run()
    assert asked not in [box.value for box in app.info]
