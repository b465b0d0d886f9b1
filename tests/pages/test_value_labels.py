"""Labels of values and columns in sentences and pictures."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import espalier as es
from espalier.core.analysis.answer_text import asked, event_name, value_names
from espalier.core.analysis.estimands import Level, Proportion
from espalier.core.graph.dag import Dag
from espalier.core.graph.separations import Separation
from espalier.core.project.schema import Column, Schema
from espalier.core.report.release_picture import release_picture
from espalier.pages.board import board
from espalier.pages.common import charts
from espalier.pages.common.text import called, names, separation
from espalier.pages.diagnostics import distributions, fairness
from espalier.pages.structure import implications
from tests.support.app import go, state, unfold

SEX = Column("sex", "categorical", ("1", "2"), label="Sex", value_labels=(("1", "male"), ("2", "<b>female</b>")))
SCHEMA = Schema((SEX, Column("ward", "categorical", ("a", "b"))))


@pytest.fixture
def drawn(monkeypatch: Any) -> list[list[str]]:
    """The names of the bars or cells of each chart."""
    names: list[list[str]] = []

    def chart(labels: Any, *_: Any, **__: Any) -> None:
        names.append(list(labels))

    for draw in ("bars", "lying"):
        monkeypatch.setattr(charts, draw, chart)
    monkeypatch.setattr(charts, "heat", lambda _cells, labels, *_: names.extend(map(list, labels)))
    monkeypatch.setattr(charts, "show", lambda *_: None)
    return names


def test_a_question_within_a_group_names_its_label() -> None:
    figure = Proportion(Level("ward", 0), among=(Level("sex", 0),))
    assert "among those with sex = 1 (male)" in asked(SCHEMA, figure)


def test_an_event_of_the_plan_names_its_label() -> None:
    odd = Schema((*SCHEMA.columns, Column("sex=a", "categorical", ("1", "2"), value_labels=(("2", "b"),))))
    assert event_name(odd, "sex=1") == "sex=1 (male)"
    assert event_name(odd, "ward=a") == "ward=a"
    assert event_name(odd, "sex=a=2") == "sex=a=2 (b)"
    assert event_name(odd, "sex=a") == "sex=a", "a column's name"


def test_the_plan_page_offers_values_with_their_labels(app: AppTest) -> None:
    project = es.Project("t", SCHEMA, es.Plan("mst", epsilon=1, delta=1e-6), one_row_per_person=True)
    state(app).open(project)
    go(app, "plan")
    unfold(app, "Planned analyses")
    unfold(app, "Regressions")
    offered = {box.label: list(box.options) for box in app.selectbox}
    assert "sex=1 (male)" in offered["Event"]
    assert "sex=1 (male)" in offered["Outcome"]


LABELLED = Schema(
    (
        SEX,
        *(Column(name, "categorical", ("a", "b"), label=f"{name} [x](http://y)") for name in ("age", "ward")),
        Column("bare", "categorical", ("a", "b")),
    )
)


def test_the_structure_page_lists_columns_with_their_labels(app: AppTest) -> None:
    project = es.Project("t", LABELLED, es.Plan("mst", epsilon=1, delta=1e-6), one_row_per_person=True)
    state(app).open(replace(project, dag=Dag((("age", "sex"), ("sex", "ward")))))
    go(app, "structure")
    offered = {box.label: list(box.options) for box in [*app.selectbox, *app.multiselect]}
    known = ["sex: Sex", "age: age [x](http://y)", "ward: ward [x](http://y)", "bare"]
    for field in ("Effect", "Target", "Outcome", "Protected", "First column", "Effect of", "Effect on", "First group"):
        assert offered[field] == known, field
    assert "age: age [x](http://y) → sex: Sex" in offered["Arrow or column"]
    text = "\n".join(m.value for m in app.markdown)
    assert "- `sex` (Sex) ← `age` (age" in text
    assert "[x](http" not in text, "a label is not a link"
    data = board.data(state(app), implications.now(state(app))[1])
    assert data["labels"] == {"sex": "sex: Sex", "age": "age: age [x](http://y)", "ward": "ward: ward [x](http://y)"}


def test_a_long_label_is_cut_in_lists_and_a_separation_names_labels() -> None:
    long = Schema((Column("a", "categorical", ("x", "y"), label="L" * 300), *SCHEMA.columns))
    assert called(long, "a") == "a: " + "L" * 59 + "…"
    assert called(long, "a", "ward", "gone") == "a: " + "L" * 59 + "… → ward → gone"
    assert names(["sex", "ward"], schema=SCHEMA) == "`sex` (Sex), `ward`"
    assert "`sex` (Sex) and `ward` will be **independent given** `a`" in separation(
        Separation(("sex",), ("ward",), ("a",)), SCHEMA
    )


def test_charts_of_one_column_and_of_a_pair_have_labels(drawn: list[list[str]]) -> None:
    synthetic = SimpleNamespace(count=lambda clique: np.ones([2] * len(clique)))
    release = SimpleNamespace(project=SimpleNamespace(schema=SCHEMA), synthetic=synthetic, shown=4)
    released: Any = SimpleNamespace(release=release, real=SimpleNamespace(count=synthetic.count, rows=4))
    distributions._one(released, "sex")
    distributions._two(released, ("sex", "ward"))
    assert drawn[0] == value_names(SEX) == ["1 (male)", "2 (<b>female</b>)"]
    assert drawn[1:3] == [value_names(SEX), ["a", "b"]]


def test_groups_of_the_fairness_figures_have_labels(drawn: list[list[str]]) -> None:
    kinds = ("selection_rate", "auc", "accuracy", "calibration_error")
    figures: dict[str, Any] = {f"{k}_{rows}": 0.5 for k in kinds for rows in ("synthetic", "real")}
    group = {"group": {"sex": "1"}, "rows": 9, "outcome_rate_real": 0.5, "calibration_synthetic": [], **figures}
    fairness._groups({"groups": [group], "target": "ward", "positive": "a"}, SCHEMA)
    assert drawn == [["1 (male)"], ["1 (male)"]]


def test_a_box_of_the_release_picture_has_its_label_escaped() -> None:
    project = es.Project("t", Schema((SEX, SCHEMA["ward"])), es.Plan("mst", epsilon=1, delta=1e-6)).to_json()
    project["schema"][0]["label"] = "<i>Sex</i>"
    project |= {"dag": {"edges": [["sex", "ward"]]}, "roles": {}}
    made = release_picture({"project": project, "edges": [["sex", "ward"]], "separations": []})
    assert "<title>sex: &lt;i&gt;Sex&lt;/i&gt;</title>" in made.whole
    assert "<title>ward</title>" in made.whole
