"""PRISM's effect regime: the adjustment, the counts, and the resulting effect."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.analysis import answer_text, figure_from_text
from espalier.core.analysis.study import Study
from espalier.core.errors import ProjectError
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.methods import frame_of
from espalier.core.planning.preview import preview
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release import release
from espalier.core.tables.table import Table

SCHEMA = Schema(
    (
        Column("z", "ordinal", ("lo", "mid", "hi")),
        Column("w", "categorical", ("a", "b")),
        Column("t", "categorical", ("no", "yes")),
        Column("m", "categorical", ("no", "yes")),
        Column("y", "categorical", ("no", "yes")),
        Column("noise", "categorical", tuple("abcde")),
    )
)
DAYS = Column("days", "numeric", edges=(0, 2, 4, 6, 8, 10), integer=True)
DRAWN = Dag((("z", "t"), ("z", "y"), ("w", "t"), ("w", "y"), ("t", "m"), ("m", "y")))
TRUTH = 0.25 * 0.8
"""t raises m by 0.8, m raises the risk by 0.25."""


def project(**plan) -> Project:
    given = {
        "method": "prism",
        "epsilon": 2.0,
        "target": "y",
        "regime": "effect",
        "treatment": "t",
        "copies": 20,
        **plan,
    }
    return Project("effect", SCHEMA, Plan.from_json(given), DRAWN)


def table(n: int = 20_000) -> Table:
    rng = np.random.default_rng(6)
    z, w = rng.integers(0, 3, n), rng.integers(0, 2, n)
    t = rng.random(n) < 0.15 + 0.25 * z + 0.15 * w
    m = rng.random(n) < 0.1 + 0.8 * t
    y = rng.random(n) < 0.55 - 0.2 * z - 0.1 * w + 0.25 * m
    codes = {"z": z, "w": w, "t": t, "m": m, "y": y, "noise": rng.integers(0, 5, n)}
    return Table(SCHEMA, {name: np.asarray(v, dtype=np.int64) for name, v in codes.items()}, n)


@pytest.fixture(scope="module")
def made():
    return release(project(), table())


def test_the_drawing_decides_what_is_counted(made):
    frame = frame_of(project())
    assert frame.features == ("z", "w", "t")
    assert ("z", "w", "t", "y") in made.fitted.cliques, "small enough to be counted together"
    assert not any("m" in clique and "t" in clique and "z" in clique for clique in made.fitted.cliques)
    assert made.spending.rho <= made.budget.rho
    assert made.spending.rho == pytest.approx(made.budget.rho, rel=1e-6)


def test_with_few_rows_each_column_is_counted_with_treatment_and_target():
    cliques = {line.columns for line in preview(project(), 1500).lines}
    assert {("z", "t", "y"), ("w", "t", "y"), ("z", "w")} <= cliques
    assert ("z", "w", "t", "y") not in cliques


def test_the_adjusted_effect_is_right_where_the_crude_one_is_not(made):
    study = Study.of(made)
    figure = figure_from_text.effect_by_drawing(made.project, "t", "y", None, made.rows)
    assert figure.adjust == ("z", "w")
    crude, adjusted = study.ask(figure)[:2]
    assert adjusted.name.startswith("adjusted difference, t: yes against no")
    assert adjusted.badge.kind == "counted"
    assert adjusted.low is not None
    assert adjusted.high is not None
    assert adjusted.value == pytest.approx(TRUTH, abs=0.05)
    assert crude.value < adjusted.value - 0.05
    assert "would bias" in answer_text.adjusted_for(made.project, figure)


def test_sets_that_are_not_valid_are_refused_with_the_reason():
    for adjust, why in (
        (["z"], "t ← w → y stays open"),
        (["z", "w", "m"], "removes part of the effect"),
        ([], "stays"),
    ):
        with pytest.raises(ProjectError, match=why) as caught:
            frame_of(project(adjust=adjust))
        assert caught.value.data["key"] == "adjust"
    assert frame_of(project(adjust=["w", "z"])).features == ("z", "w", "t")
    for wrong in (
        {"treatment": None},
        {"treatment": "zebra"},
        {"adjust": "z"},
        {"targets": {"m": 1.0}},
        {"treatment": "y"},
    ):
        with pytest.raises(ProjectError):
            frame_of(project(**wrong))


def test_a_fence_between_treatment_and_outcome_refuses():
    given = project(fair=True)
    fenced = Project("effect", SCHEMA, given.plan, DRAWN, Roles(outcome=("y",), protected=("t",), admissible=("m",)))
    with pytest.raises(ProjectError, match="t"):
        frame_of(fenced)


def test_hidden_causes_are_named_each_time():
    assert any("would bias the effect" in w for w in preview(project(), 20_000).warnings)


def test_the_report_says_the_effect_and_why(made):
    facts = made.to_json()["effect"]
    assert (facts["treatment"], facts["outcome"], facts["event"], facts["adjust"]) == ("t", "y", "yes", ["z", "w"])
    assert (facts["by"], facts["valid_sets"], facts["copies"]) == ("drawing", 1, 20)
    assert {n["name"].split(",")[0] for n in facts["numbers"]} == {
        f"{kind} {what}" for kind in ("crude", "adjusted") for what in ("difference", "ratio")
    }
    assert all(n["low"] < n["value"] < n["high"] for n in facts["numbers"])
    front, _ = made.files["report.html"].decode().split('<div class="annex">')
    for said in (
        "The effect of t on y</h2>",
        "Given z and w, every path from t to y that is not part of the effect is closed.",
        "t → m → y: part of the effect, open.",
        "adjusted risk ratio",
        "would bias the effect",
        "These figures cost no further budget",
    ):
        assert said in front
    answers = Study.of(made).ask(figure_from_text.effect_by_drawing(made.project, "t", "y", None, made.rows))
    assert [a.value for a in answers] == [n["value"] for n in facts["numbers"]]


def test_several_levels_and_a_binned_outcome_and_no_copies_of_its_own():
    schema = Schema((Column("dose", "ordinal", ("no", "half", "full")), *SCHEMA.columns[:2], DAYS))
    drawn = Dag((("z", "dose"), ("z", "days"), ("dose", "days")), hidden=(("w", "days"),))
    plan = Plan.from_json(
        {"method": "prism", "epsilon": 2.0, "target": "days", "regime": "effect", "treatment": "dose", "adjust": ["z"]}
    )
    rng, n = np.random.default_rng(7), 8000
    z, w = rng.integers(0, 3, n), rng.integers(0, 2, n)
    dose = np.minimum(rng.integers(0, 3, n) + (rng.random(n) < 0.3 * z), 2)
    days = np.clip(rng.integers(0, 3, n) + dose - (rng.random(n) < 0.4 * z), 0, 4)
    codes = {name: np.asarray(v, dtype=np.int64) for name, v in {"dose": dose, "z": z, "w": w, "days": days}.items()}
    one = release(Project("doses", schema, plan, drawn), Table(schema, codes, n))
    facts = one.to_json()["effect"]
    assert not one.copies
    assert (facts["event"], facts["by"], facts["copies"]) == (None, "plan", 20)
    assert [n["name"] for n in facts["numbers"]] == [
        f"{kind} difference, dose: {level} against no" for level in ("half", "full") for kind in ("crude", "adjusted")
    ]
    assert all(n["promised"] for n in facts["numbers"])
    report = one.files["report.html"].decode()
    for said in (
        "days was counted in bins",
        "the mean of days",
        "the set that the plan chose",
        "an unmeasured cause of w and days",
    ):
        assert said in report
    truth = [days[dose == d].mean() * 2 + 1 for d in range(3)]  # bins of two days, middles 1, 3, …
    crude = next(n for n in facts["numbers"] if n["name"].startswith("crude difference, dose: full"))
    assert crude["value"] == pytest.approx(truth[2] - truth[0], abs=0.5)


def test_other_regimes_have_no_effect_section():
    rows = table(3000)
    plain = release(project(regime="causal", treatment=None, copies=0), rows)
    assert "effect" not in plain.to_json()
    assert "<h2>The effect of" not in plain.files["report.html"].decode()
