"""The verdict states where each plan wins, what remains unknown, and when a table must not be used."""

from __future__ import annotations

import pytest

from espalier.core.evaluation.verdict import _columns, verdict
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema

SCHEMA = Schema((Column("y", "categorical", ("n", "j")), Column("x", "categorical", ("a", "b"))))


def project(regime: str = "causal") -> Project:
    return Project("t", SCHEMA, Plan("prism", 1.0, target="y", options={"regime": regime}))


def facts(ours: float | None, real: float | None, tv: float = 0.02, **fair: float) -> dict:
    task = {
        "target": "y",
        "auc_synthetic": ours,
        "auc_real": real,
        "accuracy_synthetic": 0.72,
        "accuracy_real": 0.78,
    }
    return {"tstr": task, "fidelity": {"one_way_tv": tv, "two_way_tv": 2 * tv}, "fairness": fair or None}


FAIR = {
    "demographic_parity_difference": 0.02,
    "demographic_parity_difference_real": 0.585,
    "protected": ["sex"],
    "target": "y",
    "positive": "yes",
    "groups": [{"group": {"sex": "woman"}}, {"group": {"sex": "man"}}],
}


def test_the_first_sentence_says_who_wins_at_home_and_who_elsewhere():
    home, away = facts(0.739, 0.995), facts(0.750, 0.575)
    found = verdict(project(), home, {"The other hospital": away})
    assert found.headline.startswith("At home the model trained on real rows predicts y much better (AUC: synthetic")
    assert not any("0.739" in s for s in found.sentences), "one sentence only"
    close = verdict(project(), facts(0.750, 0.751), {"The other hospital": away})
    assert close.headline.startswith("At home the model trained on real rows predicts y slightly better (AUC")
    assert "in the other hospital the model trained on synthetic rows does" in found.headline
    assert "synthetic 0.739, real 0.995" in found.headline
    assert "keeps only the direct causes" in found.headline


def test_without_a_second_table_it_says_what_cannot_be_known():
    found = verdict(project(), facts(0.739, 0.995))
    assert any("it is unknown whether this holds elsewhere" in s for s in found.sentences)
    assert not any("cannot be known" in s for s in verdict(project("predictive"), facts(0.74, 0.75)).sentences)


@pytest.mark.parametrize("poor", [facts(0.51, 0.80), facts(0.70, 0.72, tv=0.4)])
def test_a_bad_table_is_told_not_to_be_used(poor):
    found = verdict(project("predictive"), poor)
    assert found.grade == "poor"
    assert found.headline.startswith("This table should not be used")
    assert any("Use more of the budget" in s for s in found.sentences)


def test_the_gap_between_groups_is_said_in_numbers():
    found = verdict(
        project(),
        facts(0.72, 0.84, **FAIR),
    )
    assert any("fell from 0.585 to 0.020" in s and "0.78 to 0.72" in s for s in found.sentences)


def test_nothing_to_predict_is_no_praise():
    assert verdict(project("predictive"), facts(None, None)).grade == "unknown"


def test_behind_a_fence_the_gap_comes_first():
    found = verdict(Project("t", SCHEMA, Plan("privci", 1.0, target="y")), facts(0.72, 0.78, **FAIR))
    assert "the gap between woman and man in how often it predicts y = yes fell from 0.585" in found.headline


def test_more_than_two_groups_are_named_by_their_column():
    many = FAIR | {"groups": [{"group": {"sex": g}} for g in ("a", "b", "c")]}
    found = verdict(Project("t", SCHEMA, Plan("privci", 1.0, target="y")), facts(0.72, 0.78, **many))
    assert "the gap between the groups by sex in how often" in found.headline


@pytest.mark.parametrize(("rows", "cautious"), [((18, 3000), True), ((150, 3000), False)])
def test_a_gap_between_groups_of_few_rows_is_said_to_depend_on_chance(rows, cautious):
    groups = [{"group": {"sex": sex}, "rows": n} for sex, n in zip(("woman", "man"), rows, strict=True)]
    found = verdict(
        Project("t", SCHEMA, Plan("privci", 1.0, target="y")), facts(0.72, 0.78, **FAIR | {"groups": groups})
    )
    caution = "The smallest group has 18 of the tested rows, so chance alone can make the gap large."
    assert found.headline.endswith(caution) == cautious


def test_the_verdict_names_the_columns_that_are_noise():
    columns = [{"column": f"diag_{i}", "tv": 0.5 - 0.01 * i} for i in range(1, 7)]
    columns += [{"column": "age", "tv": 0.15}, {"column": "sex", "tv": 0.01}]
    found = {"one_way_tv": 0.03, "two_way_tv": None, "columns": columns}
    grade, said = _columns(found)
    assert grade == "good"
    assert "closely, except diag_1, diag_2, diag_3, diag_4 and 2 more (noise) and age (far off): " in said
    assert "except" not in _columns({**found, "columns": columns[-1:]})[1]
