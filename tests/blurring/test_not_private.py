"""Output that is not private comes only from its own command, says so in all files, and is refused everywhere else."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from espalier.core.analysis.loading import load_release
from espalier.core.analysis.study import Study
from espalier.core.blurring.notice import NOT_PRIVATE, NOT_PRIVATE_CSV
from espalier.core.blurring.registry import BLURRINGS
from espalier.core.cli.main import main
from espalier.core.errors import LedgerError, ProjectError
from espalier.core.evaluation import evaluate
from espalier.core.graph.separations import Separation
from espalier.core.ledger.account import Account
from espalier.core.methods import METHODS, check_options, frame_of
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import Budget
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Numbers, Schema
from espalier.core.release import shelf
from espalier.core.release.blurred import blurred
from espalier.core.release.spend import release
from espalier.verifier.check import verify

SCHEMA = Schema(
    (
        Column("size", "numeric", edges=(0, 50, 100)),
        Column("age", "numeric", edges=(0, 60, 120), integer=True),
        Column("sex", "categorical", ("f", "m")),
        Column("price", "numeric", edges=(-50, 0, 250)),
    )
)


def frame(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    size, age, sex = rng.uniform(5, 95, rows), rng.integers(20, 90, rows), rng.integers(0, 2, rows)
    price = size + 0.5 * age + 10 * sex + rng.normal(0, 3, rows)
    return pd.DataFrame({"size": size.round(3), "age": age, "sex": np.array(["f", "m"])[sex], "price": price.round(2)})


def project(**plan):
    given = {"method": "two-stage", "target": "price", "eta": 0.0001, "lid": 0.3, "anonymize": ["size"], **plan}
    return Project("prices", SCHEMA, Plan.from_json(given))


@pytest.fixture(scope="module")
def made():
    return blurred(project(), frame(), public=frame(60, seed=9))


FILES = {NOT_PRIVATE_CSV, "release.json", "project.json", "report-NOT-PRIVATE.html"}


def test_every_file_and_the_facts_say_so(made):
    assert set(made.files) == {*FILES, "statement.json"}
    facts = json.loads(made.files["release.json"])
    assert facts["private"] is False
    assert facts["warning"] == NOT_PRIVATE
    assert facts["spent"] is facts["asked"] is facts["ledger"] is facts["model"] is None
    assert "epsilon" not in facts["project"]["plan"]
    page = made.files["report-NOT-PRIVATE.html"].decode()
    assert page.startswith("<!doctype html>")
    assert f"<h1>{NOT_PRIVATE}</h1>" in page
    for said in ("re-identified", "nearest row", "Interval disclosure", "row here, as in the real table"):
        assert said in page


def test_the_checker_says_that_it_is_not_private(made, tmp_path):
    made.save(tmp_path / "r")
    found = verify(tmp_path / "r")
    assert not [f for f in found if f.holds is False]
    assert any("NOT PRIVATE" in f.text for f in found)


def test_linkage_and_membership_stand_beside_lid(made):
    told = made.to_json()["disclosure"]
    assert told["lid_inputs"] <= 0.3 + 1 / 400
    assert told["linked"] > 0.5, "the unchanged columns identify the person"
    assert 0.5 < told["membership"] <= 1
    assert told["untouched"] == ["age", "sex"]
    assert 0.8 < told["spread"] < 1.05
    assert made.public["delta_mse"] == pytest.approx(1 - made.public["mse_combined"] / made.public["mse_public"])


def test_rows_are_shuffled_and_stay_inside_the_schema(made):
    real = frame()
    assert made.rows == 400
    assert sorted(made.table["age"]) == sorted(map(str, real["age"])), "untouched"
    assert made.table["age"] != [str(a) for a in real["age"]]
    assert all(0 <= float(t) <= 100 for t in made.table["size"])


def test_numbers_come_out_with_the_declared_decimals():
    price = Numbers("price", "numeric", (-50, 0, 250), decimals=1)
    schema = Schema(tuple(price if c.name == "price" else c for c in SCHEMA.columns))
    made = blurred(replace(project(), schema=schema), frame(120))
    assert {len(t.partition(".")[2]) for t in made.table["price"]} == {1}


def test_the_folder_comes_back_and_can_be_judged(made, tmp_path):
    made.save(tmp_path / "out")
    assert os.name != "posix" or (tmp_path / "out").stat().st_mode & 0o777 == 0o700, "no other user can read these rows"
    back = load_release(tmp_path / "out")
    assert back.model is None
    assert back.table.rows == 400
    assert not back.project.plan.has_epsilon
    found = evaluate(back.project, back.table, back.table)
    assert found.to_json()["tstr"]["target"] == "price"


ENTRANCES = {
    "release": lambda p: release(p, frame()),
    "preview": lambda p: preview(p, 400),
    "budget": lambda p: Budget.of(p.plan, 400),
    "frame": frame_of,
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_every_entrance_that_promises_privacy_refuses_it(entrance):
    with pytest.raises(ProjectError, match="not private|gives no guarantee"):
        ENTRANCES[entrance](project())


def test_a_ledger_refuses_it():
    with pytest.raises(LedgerError, match="only private releases"):
        Account.check(object.__new__(Account), project())


def test_the_shelf_of_shared_releases_refuses_it(made, tmp_path, monkeypatch):
    monkeypatch.setenv("ESPALIER_SHARED", str(tmp_path / "shelf"))
    with pytest.raises(ProjectError, match="Only a differentially private release can be shared"):
        shelf.share(made.files)
    assert shelf.shared() == []


def test_a_private_method_is_refused_here_and_an_epsilon_there():
    plain = Project("prices", SCHEMA, Plan.from_json({"method": "mst", "epsilon": 1.0}))
    with pytest.raises(ProjectError, match="is private: use it in a release instead"):
        blurred(plain, frame())
    with pytest.raises(ProjectError, match="epsilon is missing"):
        check_options(Plan.from_json({"method": "mst"}))
    with pytest.raises(ProjectError, match="remove epsilon from the plan"):
        check_options(Plan.from_json({"method": "two-stage", "epsilon": 1.0}))
    with pytest.raises(ProjectError, match="once epsilon is removed from the plan"):
        preview(project(epsilon=1.0), 400)
    assert project(epsilon=None).plan == project().plan
    with pytest.raises(ProjectError, match="epsilon is missing"):
        check_options(Plan.from_json({"method": "mst", "epsilon": None}))
    with pytest.raises(ProjectError, match="finite"):
        Plan.from_json({"method": "mst", "epsilon": float("inf")})
    with pytest.raises(ProjectError, match="must be a number"):
        Plan.from_json({"method": "mst", "epsilon": float("nan")})


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"target": "sex"}, "numeric column as the target"),
        ({"anonymize": ["sex"]}, "not a numeric input"),
        ({"anonymize": []}, "at least one"),
        ({"person": "who"}, "cannot honour person"),
        ({"private_evaluation": 0.2}, "cannot honour private_evaluation"),
        ({"delta": 1e-6}, "cannot honour delta"),
        ({"fair": True}, "has no fence"),
        ({"lid": 1.5}, "lid"),
        ({"eta": 0}, "eta"),
        ({"anonymize": "size"}, "list of column names"),
    ],
)
def test_what_it_cannot_keep_is_refused(changed, says):
    with pytest.raises(ProjectError, match=says):
        blurred(project(**changed), frame())
    listed = replace(project(), separations=(Separation(("price",), ("sex",), ("age",)),))
    with pytest.raises(ProjectError, match="cannot keep separations"):
        blurred(listed, frame())


@pytest.mark.nightly
def test_an_unreachable_threshold_says_the_best_that_can_be_had():
    with pytest.raises(ProjectError, match=r"cannot be reached, because .* in \d+\.\d% of cases") as error:
        blurred(project(lid=0.0, eta=0.0005), frame())
    best, offer = error.value.data["best"], error.value.data["offer"]
    assert 0 < best < offer < 1
    assert f'Ask for {offer:.0%} ("lid": {offer:g})' in str(error.value)
    assert blurred(project(lid=offer, eta=0.0005), frame()).disclosure["lid_inputs"] <= offer


@pytest.mark.nightly
def test_the_command_line_says_so_and_refuses_a_ledger(tmp_path, capsys):
    (tmp_path / "p.json").write_text(project().dumps())
    frame().to_csv(tmp_path / "t.csv", index=False)
    given = ["release", str(tmp_path / "p.json"), "--data", str(tmp_path / "t.csv"), "--out", str(tmp_path / "out")]
    assert main([*given, "--ledger", str(tmp_path / "l"), "--table", "t"]) == 2
    assert "no ledger counts the release" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    frame(60, seed=9).to_csv(tmp_path / "d.csv", index=False)
    assert main([*given, "--public", str(tmp_path / "d.csv")]) == 0
    said = capsys.readouterr().err
    assert NOT_PRIVATE in said
    assert "Re-identified" in said
    assert "ΔMSE" in said
    assert (tmp_path / "out" / NOT_PRIVATE_CSV).exists()
    assert not (tmp_path / "out" / "model.npz").exists()
    assert main(["plan", str(tmp_path / "p.json"), "--rows", "400"]) == 2
    assert "is not private" in capsys.readouterr().err


def test_a_private_plan_takes_no_public_table(tmp_path, capsys):
    plain = Project("prices", SCHEMA, Plan.from_json({"method": "mst", "epsilon": 1.0}))
    (tmp_path / "p.json").write_text(plain.dumps())
    given = ["release", str(tmp_path / "p.json"), "--data", "x.csv", "--out", str(tmp_path / "o"), "--public", "x.csv"]
    assert main(given) == 2
    assert "--public applies only to methods that are not private" in capsys.readouterr().err


def test_it_is_in_a_registry_of_its_own():
    assert "two-stage" in BLURRINGS
    assert not set(BLURRINGS) & set(METHODS)


def test_copies_and_intervals_are_refused_with_the_reason(made, tmp_path):
    made.save(tmp_path)
    with pytest.raises(ProjectError, match=NOT_PRIVATE):
        Study.of_folder(tmp_path)
    with pytest.raises(ProjectError, match="does not exist, so it is not a release folder"):
        Study.of_folder(tmp_path / "elsewhere")
