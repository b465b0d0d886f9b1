"""Conclusions from a release: copies in files, and questions in plain language."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from espalier.core.analysis import answer_text, figure_from_text
from espalier.core.analysis.estimands import Level
from espalier.core.analysis.gate import Badge
from espalier.core.analysis.noisy_counts import NoisyCounts
from espalier.core.analysis.study import Study
from espalier.core.cli.main import main
from espalier.core.errors import ProjectError
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.models.graphical import GraphicalModel
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table
from tests.support.loosely import release
from verifier.check import verify

SCHEMA = Schema(
    (
        Column("hours", "numeric", edges=(0, 10, 20, 40)),
        Column("side", "categorical", ("left", "right"), missing=True),
        Column("noise", "categorical", ("a", "b", "c")),
        Column("sick", "categorical", ("no", "=yes")),
    )
)
ODDS = 0.8


def table(n: int = 6000) -> Table:
    rng = np.random.default_rng(3)
    hours, side, noise = rng.integers(0, 3, n), rng.integers(0, 2, n), rng.integers(0, 3, n)
    sick = rng.random(n) < 1 / (1 + np.exp(1 - ODDS * hours - 0.5 * side))
    return Table(SCHEMA, {"hours": hours, "side": side, "noise": noise, "sick": sick.astype(np.int64)}, n)


def made(**plan):
    given = {"method": "prism", "epsilon": 3.0, "target": "sick", "copies": 6, **plan}
    return release(Project("study", SCHEMA, Plan.from_json(given)), table())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "made"
    made().save(out)
    return out


def test_a_release_hands_over_its_copies_and_its_counts(folder):
    facts = json.loads((folder / "release.json").read_text())
    assert facts["copies"] == 6
    assert facts["project"]["plan"]["copies"] == 6
    names = [path.name for path in sorted(folder.glob("copies/*"))]
    assert names == [f"{i:02d}.{kind}" for i in range(1, 7) for kind in ("csv.gz", "npz")]
    kept = GraphicalModel.loads((folder / "copies" / "01.npz").read_bytes())
    assert kept.total == 6000
    assert dict(kept.sizes) == SCHEMA.sizes
    texts = [gzip.decompress(path.read_bytes()) for path in sorted(folder.glob("copies/*.csv.gz"))]
    assert len(set(texts)) == 6
    assert all(text.count(b"\n") == 6001 and text.startswith(b"hours,side,noise,sick\n") for text in texts)
    assert b"'=yes" in texts[0], "text that looks like a formula is defused in copies too"
    report = (folder / "report.html").read_text()
    assert "Never stack the copies into one table" in report
    assert "qt(0.975" in report


def test_a_study_of_files_is_that_of_the_release():
    one = made()
    here, there = Study.of(one), Study.of_files(one.files)
    figure = figure_from_text.odds_ratio(SCHEMA, "sick", "hours=20 – 40:0 – <10")
    assert len(there.given) == 6
    assert here.ask(figure) == there.ask(figure)
    back, counted = there.counted, here.counted
    assert [m.clique for m in back.measurements] == [m.clique for m in counted.measurements]
    assert all(
        np.array_equal(a.values, b.values) and a.sigma == b.sigma
        for a, b in zip(back.measurements, counted.measurements, strict=True)
    )


def test_an_odds_ratio_is_answered_with_an_interval_that_holds_the_truth(folder):
    study = Study.of_folder(folder)
    (answer,) = study.ask(figure_from_text.odds_ratio(SCHEMA, "sick", "hours=10 – <20:0 – <10"))
    assert answer.badge.kind == "counted"
    assert answer.low is not None
    assert answer.high is not None
    assert answer.low < answer.value < answer.high
    assert answer.value == pytest.approx(np.exp(ODDS), rel=0.35)
    assert "95 % interval" in answer_text.sentence(answer)
    assert answer_text.table([answer]).splitlines()[1].endswith("\tcounted")


def test_what_was_not_counted_together_gets_no_interval():
    study = Study.of(made(method="independent"))
    answers = study.ask(figure_from_text.regression(SCHEMA, "hours", ["side", "noise", "sick"]))
    assert {a.badge.kind for a in answers} == {"assumed"}
    assert all(a.low is None for a in answers)
    assert "without an interval" in answer_text.sentence(answers[0])


def test_what_is_assumed_comes_with_the_plan_that_would_have_counted_it():
    figure = figure_from_text.regression(SCHEMA, "sick", ["hours", "noise"])
    few = Study.of(made(method="independent"))
    said = answer_text.remedy(few.project, figure, few.ask(figure))
    assert "choose the method PRISM, choose 3 features: all columns are then measured with sick" in said
    every = Study.of(made(method="prism", features=3))
    answers = every.ask(figure)
    assert all(a.badge.interval for a in answers), "the advice was right"
    assert answer_text.remedy(every.project, figure, answers) == ""
    other = figure_from_text.regression(SCHEMA, "noise", ["side", "hours"])
    drawn = replace(every.project, dag=Dag((("side", "sick"), ("noise", "sick")))).with_plan(regime="causal")
    assumed = [replace(a, badge=Badge("assumed", "")) for a in answers]
    said = answer_text.remedy(drawn, other, assumed)
    assert "name noise as the target and choose the predictive regime and choose 3 features" in said
    effect = figure_from_text.effect(SCHEMA, "side", "sick", ["noise"], 6000)
    assert "the effect regime with the treatment side, adjusted for noise" in answer_text.remedy(drawn, effect, assumed)
    fenced = replace(every.project, roles=Roles(outcome=("sick",), protected=("side",), admissible=("hours",)))
    fenced = fenced.with_plan(method="privci")
    ratio = figure_from_text.odds_ratio(SCHEMA, "sick", "side")
    assert answer_text.remedy(fenced, ratio, assumed).startswith("The fence separates sick and side")


@pytest.mark.nightly
def test_copies_are_made_later_for_a_release_that_has_none(tmp_path, capsys):
    for plan in ({}, {"neighbors": "add-remove", "delta": 1e-6}, {"rows_per_person": 2}):
        folder = tmp_path / f"plan{len(plan)}{'delta' in plan}"
        made(copies=0, **plan).save(folder)
        assert not (folder / "copies").exists()
        assert main(["copies", str(folder), "--number", "3", "--quiet"]) == 0
        written = folder.with_name(f"{folder.name}-copies") / "copies"
        assert len(list(written.iterdir())) == 6, "rows and a model for each"
        assert main(["copies", str(folder), "--number", "3", "--quiet"]) == 2, "nothing is overwritten"
        asked = ["analyse", str(folder), "--proportion", "sick==yes", "--among", "hours=20 – 40", "--json"]
        capsys.readouterr()
        assert main(asked) == 0
        first = json.loads(capsys.readouterr().out)
        assert first[0]["low"] < first[0]["value"] < first[0]["high"]
        assert main(asked) == 0
        assert json.loads(capsys.readouterr().out) == first, "asking again gives the same answer"


def test_the_command_line_answers_in_sentences(folder, capsys):
    assert main(["analyse", str(folder), "--outcome", "sick", "--predictors", "hours,side"]) == 0
    said = capsys.readouterr().out
    assert "side: right against left" in said
    assert "may be shared" in said
    assert main(["analyse", str(folder), "--difference", "sick", "side=right:left"]) == 0
    assert main(["analyse", str(folder), "--odds-ratio", "sick", "planet"]) == 2
    assert "The release has no column 'planet'; it has " in capsys.readouterr().err


def test_questions_in_words():
    assert figure_from_text.proportion(SCHEMA, "side=(missing)").event == Level("side", 2)
    assert figure_from_text.odds_ratio(SCHEMA, "sick", "side").one == Level("side", 1), "missing is not the last value"
    assert figure_from_text.regression(SCHEMA, "hours", ["sick"]).event is None
    assert figure_from_text.regression(SCHEMA, "hours=20 – 40", ["sick"]).event == 2
    assert figure_from_text.regression(SCHEMA, "sick", ["hours"]).scores["hours"] == (5, 15, 30)
    for wrong in (
        lambda: figure_from_text.proportion(SCHEMA, "side"),
        lambda: figure_from_text.proportion(SCHEMA, "side=up"),
        lambda: figure_from_text.regression(SCHEMA, "sick", ["sick"]),
        lambda: figure_from_text.odds_ratio(SCHEMA, "sick", "sick"),
    ):
        with pytest.raises(ProjectError):
            wrong()


def test_copies_need_a_method_that_counts_marginals():
    with pytest.raises(ProjectError, match="set copies to 0"):
        made(method="decoder", delta=1e-6)
    with pytest.raises(ProjectError, match="copies"):
        Plan("mst", 1.0, copies=101)


def test_a_decoder_answers_from_its_counts_and_nothing_more(tmp_path):
    released = made(method="decoder", delta=1e-6, copies=0, steps=2, families="additive")
    released.save(tmp_path / "out")
    assert not [found for found in verify(tmp_path / "out") if found.holds is False]
    assert "espalier copies" not in (tmp_path / "out" / "report.html").read_text("utf-8")
    for study in (Study.of(released), Study.of_folder(tmp_path / "out")):
        ready = study.about(("noise", "sick")).with_copies(5)
        (one,) = ready.ask(figure_from_text.proportion(SCHEMA, "noise=a"))
        assert one.badge.kind == "counted"
        assert one.low < one.value < one.high
        (apart,) = ready.ask(figure_from_text.proportion(SCHEMA, "sick==yes", "noise=a"))
        assert math.isnan(apart.value)
        assert (apart.low, apart.high) == (None, None)
        assert "Training linked the columns" in apart.badge.sentence
        with pytest.raises(ProjectError, match="trained on more than its counts"):
            next(study.more(2, np.random.default_rng(0)))


def test_a_damaged_file_of_counts_is_told():
    for data in (b"", b"no archive", made(copies=0).files["model.npz"]):
        with pytest.raises(ProjectError, match="counts"):
            NoisyCounts.loads(data)


QUESTIONS = {
    "questions": [
        {"name": "sick right", "where": {"side": ["right"], "sick": ["=yes"]}},
        {"name": "many and sick", "where": {"marks": [1, 2], "sick": ["=yes"]}},
    ],
    "counts": [{"name": "marks", "of": {"side": ["right"], "noise": ["a", "b"]}, "up_to": 2}],
}


@pytest.mark.parametrize("asked", [("questions", "counts"), ("counts",)], ids=["questions and counts", "counts"])
@pytest.mark.parametrize("plan", [{}, {"method": "mst", "compress": True, "neighbors": "add-remove", "delta": 1e-6}])
def test_copies_are_made_of_releases_with_questions(asked, plan):
    given = {"method": "prism", "epsilon": 3.0, "target": "sick", "question_share": 0.4, "copies": 3, **plan}
    data = {**Project("asked", SCHEMA, Plan.from_json(given)).to_json(), **{key: QUESTIONS[key] for key in asked}}
    one = release(Project.from_json(data), table())
    study = Study.of_files(one.files)
    assert len(study.given) == 3
    assert not np.array_equal(study.given[0]["noise"], study.given[1]["noise"])
    back = study.counted
    assert (back.direct is None) == (one.fitted.answers.direct is None)
    assert [m.values.tolist() for m in back.histograms] == [m.values.tolist() for m in one.fitted.answers.histograms]
    assert back.histograms
    made = [model.marginal(("marks",)) for model, _ in study.drawn(3, np.random.default_rng(1))]
    assert np.std([m[2] for m in made]) > 0
    assert np.allclose(np.mean(made, axis=0), one.model.marginal(("marks",)), atol=250)
    (answer,) = study.ask(figure_from_text.proportion(SCHEMA, "sick==yes"))
    truth = float(table().codes["sick"].mean())
    assert answer.low is not None
    assert answer.high is not None
    assert answer.value == pytest.approx(truth, abs=0.06)
