"""The verdict before spending follows from public facts alone, and uses the words of the verdict after the release."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import espalier as es
from espalier.core.cli.main import main
from espalier.core.errors import ProjectError
from espalier.core.planning.expectation import Assumed
from espalier.core.planning.noise import noise_of
from espalier.core.planning.preview import preview
from espalier.core.planning.verdict import enough, verdict_of
from espalier.core.privacy.draws import Draw
from espalier.core.privacy.rehearsal import Rehearsal
from espalier.core.project.file import Project
from tests.conftest import SAMPLES


def project(method="mst", sizes=(3, 8, 40, 2), **plan):
    columns = [es.Column(f"c{i}", "categorical", tuple(map(str, range(k)))) for i, k in enumerate(sizes)]
    given = {"epsilon": 1.0, "delta": 1e-9, "target": f"c{len(sizes) - 1}", **plan}
    return es.Project("trial", es.Schema(tuple(columns)), es.Plan(method, **given))


def draw(columns, sigma, cells, **more):
    return Draw("count", "counts", columns, "pool", cells, math.sqrt(2), sigma, 1 / sigma**2, **more)


def test_noise_of_known_counts():
    sizes = {"a": 2, "b": 4, "y": 2, "alone": 1}
    draws = [draw(("a",), 10.0, 2), draw(("b",), 10.0, 4), draw(("a", "y"), 5.0, 4), draw(("a", "y"), 5.0, 4)]
    found = noise_of(draws, sizes, 1000, "y", True)
    assert found.names == ("a", "b", "y")
    assert found.pair[0, 2] == pytest.approx(5 / math.sqrt(2)), "counted twice"
    assert math.isinf(found.pair[0, 1])
    assert found.one[1] == 10.0
    assert found.one[0] == pytest.approx(1 / math.sqrt(1 / 100 + 2 / (2 * 25))), "the pair's counts add up to its own"
    assert found.with_target.tolist() == [1.0, 0.0, 0.0]
    assert found.visible[0, 2] == pytest.approx(2 * found.pair[0, 2] / 1000), "V of a 2 × 2 table is 2σ/n"
    assert found.visible[0, 1] == 1.0, "a pair that is not counted is lost in noise"
    assert found.column_errors[1] == pytest.approx(0.5 * 4 * 10 * math.sqrt(2 / math.pi) / 1000)


def test_a_pair_that_a_choice_decides_drowns_in_the_noise_of_the_choice():
    sizes = {"a": 2, "b": 2, "c": 2}
    choice = Draw("choice", "tree edge", None, "choice", 0, 2.0, 50.0, 0.01)
    draws = [*(draw((n,), 10.0, 2) for n in sizes), choice, draw(("a", "b"), 5.0, 4, is_open=True)]
    found = noise_of(draws, sizes, 1000, None, False)
    assert found.visible[1, 2] == pytest.approx(2 * 50 / math.sqrt(2 / math.pi) / 1000)


def test_noise_falls_with_epsilon_and_the_smallest_one_is_where_it_works():
    for method in ("mst", "prism", "workload", "independent"):
        found = preview(project(method), 5000).verdict
        assert found is not None
        assert [e.tv for e in found.grid] == sorted((e.tv for e in found.grid), reverse=True)
        smallest = found.smallest_epsilon
        assert smallest is not None
        budget = found.now.epsilon
        assert found.now.rating(found.purpose) == ("works" if budget >= smallest else found.rating)
        for e in found.grid:
            assert (e.rating(found.purpose) == "works") == (e.epsilon >= smallest)


def test_it_rates_a_plan_by_what_is_spent():
    ratings = [preview(project(epsilon=e), 2000).verdict.rating for e in (0.05, 1.0, 10.0)]
    assert ratings[0] == "noise"
    assert ratings[-1] == "works"


def test_an_outcome_is_noise_only_if_even_a_perfect_predictor_drowns():
    """One column that is counted well may carry the whole prediction, even if noise hides everything else."""
    sizes = {"a": 2, "b": 200, "y": 2}

    def rated(sigma):
        draws = [*(draw((n,), 10.0, k) for n, k in sizes.items()), draw(("b", "y"), 300.0, 400)]
        noise = noise_of([*draws, draw(("a", "y"), sigma, 4)], sizes, 1000, "y", True)
        found = verdict_of(noise, "outcome", 1.0, 1e-9, Assumed(1000))
        return found.now, float(noise.visible[2, 0])

    weak, seen = rated(300.0)
    assert weak.loss == pytest.approx(0.25), "the expected loss leaves no signal"
    assert seen < 1
    assert weak.outcome == "weak"
    equal, seen = rated(600.0)
    assert seen == 1
    assert equal.outcome == "weak", "a perfect association is nearly as strong as the noise"
    assert rated(1100.0)[0].outcome == "noise"


def step(sigma):
    return Draw("sums", "steps", None, "training", 9, 2.0, sigma, 1 / sigma**2, recipe="clipped-gradient")


def test_training_steps_are_as_noisy_as_counts_of_each_pair_by_the_weight_of_a_row():
    sizes = {"a": 2, "b": 4, "y": 2}
    draws = [draw((n,), 10.0, k) for n, k in sizes.items()]
    found = noise_of([*draws, *[step(12.0)] * 9], sizes, 1000, "y", False, {("a", "y"): 0.5})
    assert found.pair[0, 2] == found.pair[2, 0] == pytest.approx(12 / 3 / 0.5)
    assert found.with_target.tolist() == [1.0, 0.0, 0.0]
    assert found.one.tolist() == pytest.approx([10.0, 10.0, 10.0]), "intercepts follow the one-way counts"


@pytest.mark.parametrize("families", ["auto", "additive"])
def test_the_decoder_has_a_verdict_on_its_outcome_with_trained_causes_too(families):
    arrows = tuple((f"c{i}", "c3") for i in range(3))
    given = replace(project("decoder"), dag=es.Dag(arrows)).with_plan(families=families)
    found = preview(given, 5000).verdict
    assert found.purpose == "outcome"
    assert found.now.loss > 0
    ratings = [preview(given.with_plan(epsilon=e), 5000).verdict.rating for e in (0.05, 50.0)]
    assert ratings[0] != "works"
    assert ratings[1] == "works"


def test_a_trained_outcome_is_as_noisy_beside_counted_columns_as_beside_trained_ones():
    """The columns with one cause are counted. A row's gradient is shorter without them, so it is clipped to less."""
    chain = tuple((f"c{i}", f"c{i + 1}") for i in range(5))
    arrows = (*chain, ("c1", "c6"), ("c3", "c6"))
    found = {}
    for families in ("auto", "additive"):
        given = replace(project("decoder", (5,) * 6 + (2,)), dag=es.Dag(arrows)).with_plan(families=families)
        seen = preview(given, 1000)
        assert seen.families[-1].startswith("c6: additive causes")
        found[families] = seen.verdict.noise.pair[6, 1]
    assert found["auto"] == pytest.approx(found["additive"], rel=0.1)


def test_the_worst_column_is_named_and_leaving_it_out_helps():
    found = preview(project(sizes=(2, 2, 2, 200, 3, 2), epsilon=0.3), 3000).verdict
    assert found.columns[0].column == "c3"
    assert found.columns[0].rating == "noise"
    assert found.columns[0].share > 0.8
    steps = {(s.column, s.values_left) for s in found.steps}
    assert ("c3", None) in steps
    assert any(column == "c3" and values for column, values in steps), "or coarsen it"
    assert all(s.epsilon < found.smallest_epsilon for s in found.steps)


@pytest.mark.parametrize(
    "more", [{"dag": es.Dag((("c3", "c5"),))}, {"roles": es.Roles(outcome=("c5",), admissible=("c3",))}]
)
def test_a_drawn_cause_or_a_column_with_a_role_is_coarsened_but_not_left_out(more):
    given = replace(project("workload", sizes=(2, 2, 2, 200, 3, 2), epsilon=0.3), **more)
    steps = [(s.column, s.values_left is None) for s in preview(given, 3000).verdict.steps]
    assert ("c3", False) in steps
    assert ("c3", True) not in steps


def test_a_confidential_number_of_rows_must_be_declared():
    assert preview(project(neighbors="add-remove")).verdict is None
    assert preview(project(neighbors="add-remove"), 4000).verdict is not None
    assert preview(project(neighbors="add-remove", rows=4000)).verdict.assumed.rows == 4000


def test_declared_assumptions_change_the_loss():
    noise = preview(project("prism", epsilon=2.0), 3000).verdict.noise
    loss = [verdict_of(noise, "outcome", 2.0, 1e-9, Assumed(3000, rarer=r)).now.loss for r in (0.1, 0.25)]
    assert loss[0] > loss[1]


def test_the_first_sentence_states_how_rare_the_outcome_may_be():
    found = preview(project("prism", (3, 4, 2), epsilon=3.0), 3000).verdict
    rarest = found.now.rarest
    assert found.rating == "works"
    assert 0.005 < rarest < found.assumed.rarer
    assert f"may be larger if fewer than {enough(100 * rarest)} % of rows have the rarest outcome." in found.headline
    for share, rating in ((1.01 * rarest, "works"), (0.99 * rarest, "weak")):
        again = preview(project("prism", (3, 4, 2), epsilon=3.0, rarer=share), 3000).verdict
        assert again.assumed.rarer == share
        assert again.rating == rating
    assert again.now.rarest is None
    assert "rarest value" not in again.headline


def test_a_rare_outcome_needs_a_larger_epsilon_than_the_assumed_one():
    needed = [preview(project("prism", (3, 4, 2), rarer=r), 3000).verdict.smallest_epsilon for r in (0.02, None, 0.5)]
    assert needed[0] > 2 * needed[1] > 2 * needed[2]


@pytest.mark.parametrize("wrong", [0, 0.6, "a", True, math.nan])
def test_an_impossible_share_of_the_rarer_value_is_refused(wrong):
    with pytest.raises(ProjectError, match="plan: rarer") as error:
        project(rarer=wrong)
    assert error.value.data["key"] == "rarer"


def test_a_method_without_links_is_judged_by_its_columns():
    found = preview(project("independent"), 5000).verdict
    assert found.sentences[-1] == "Assumed: 5,000 rows.", "no outcome, so nothing about its AUC"
    assert found.purpose == "pairs"
    assert found.now.loss is None


def test_sums_of_numbers_are_not_rated_as_noise(tmp_path, capsys):
    plan = Project.load(SAMPLES / "stays.json")
    seen = preview(plan, 6000)
    assert seen.verdict is None, "its releases are accurate, although nothing counts these columns"
    assert "measures means and correlations of numbers" in seen.unrated
    assert preview(plan.with_plan(method="prism"), 6000).unrated == ""
    path = tmp_path / "stays.json"
    path.write_text(plan.dumps(), encoding="utf-8")
    assert main(["plan", str(path), "--rows", "6000"]) == 0
    assert f"verdict: {seen.unrated}" in capsys.readouterr().out


@pytest.mark.parametrize("method", ["prism", "mst"])
def test_a_target_with_one_value_is_refused(method):
    with pytest.raises(ProjectError, match="has only one value, so there is nothing to predict"):
        preview(project(method, sizes=(3, 4, 1)), 1000)


def test_plan_release_and_report_carry_the_same_verdict():
    plan = project("prism", sizes=(3, 4, 2), rows=500)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({c.name: rng.choice(list(c.categories), 500) for c in plan.schema.columns})
    made = es.release(plan, frame)
    facts = json.loads(made.files["release.json"])
    expected = json.loads(json.dumps(preview(plan, 500).to_json()["verdict"]))
    assert facts["verdict"] == expected
    assert expected["headline"] in made.files["report.html"].decode().replace("&#x27;", "'")


def test_the_command_line_prints_it(tmp_path, capsys):
    path = tmp_path / "project.json"
    path.write_text(project("prism", epsilon=0.1).dumps(), encoding="utf-8")
    assert main(["plan", str(path), "--rows", "3000", "--auc", "0.8"]) == 0
    said = capsys.readouterr().out
    assert "verdict: " in said
    assert "an AUC of 0.8 without noise" in said
    assert main(["plan", str(path), "--rows", "3000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["purpose"] == "outcome"
    with pytest.raises(SystemExit):
        main(["plan", str(path), "--rows", "3000", "--auc", "0.2"])
    assert "between 0.5 and 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("method", "fair"), [("mst", False), ("workload", False), ("workload", True), ("prism", True), ("privci", True)]
)
def test_a_rehearsal_that_skips_candidates_ends_as_one_that_offers_all(method, fair, monkeypatch):
    planned = project(method, sizes=(3, 8, 40, 2, 5, 6, 9, 2, 3, 12, 7, 2), fair=fair)
    roles = es.Roles(outcome=("c11",), protected=("c0",), admissible=("c2", "c4", "c6"))
    planned = replace(planned, roles=roles)
    quick = preview(planned, 30_000)
    monkeypatch.setattr(Rehearsal, "takes_first", False)
    whole = preview(planned, 30_000)
    assert quick.lines == whole.lines
    assert quick.size == whole.size
