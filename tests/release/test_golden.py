"""release.json has every key that it had when there were only marginals, and folders of that time can be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from espalier.core.analysis.loading import load_release
from espalier.core.project.file import Project
from espalier.core.release.spend import release
from espalier.core.report.page import render
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"
BEFORE = Path(__file__).parent / "before"
"""A folder as it was written before methods, models and draws became interfaces (30 rows of the hiring sample)."""

ALWAYS = """
    asked asked.delta asked.epsilon asked.rho bounds bounds.excess_risk bounds.inputs bounds.inputs.beta
    bounds.inputs.loss bounds.inputs.norm bounds.inputs.rows bounds.marginals bounds.marginals[].cells
    bounds.marginals[].clique bounds.marginals[].expected_tv bounds.marginals[].tv bounds.marginals[].vacuous
    bounds.tree choices choices[].candidates choices[].chosen choices[].pool choices[].rho choices[].scale
    choices[].sensitivity choices[].what cliques date edges fit fit.converged fit.criterion fit.gap fit.iterations
    format ledger looking measurements measurements[].cells measurements[].columns measurements[].pool
    measurements[].rho measurements[].sigma method private project project.plan project.plan.accounting
    project.plan.allocation project.plan.delta project.plan.epsilon project.plan.fair project.plan.features
    project.plan.method project.plan.neighbors project.plan.regime project.plan.rows project.plan.rows_per_person
    project.plan.target promises refused rows seconds seconds.fit seconds.sample selected separations spent
    spent.delta spent.epsilon spent.neighbors spent.person spent.rho spent.rows_per_person warnings
"""
"""Paths of keys that the releases below had in common; ``[]`` is any item of a list."""
FENCED = """
    explained explained.q explained.q.free explained.q.given_up explained.q.sigma explained.q.tree
    explained.q.would_join explained.refused explained.refused[].columns explained.refused[].score explained.rho
    explained.sensitivity explained.sigma explained.tree explained.tree[].columns explained.tree[].score
    looking.accuracy_baseline looking.by looking.figures looking.figures[].confidence looking.figures[].figure
    looking.figures[].high looking.figures[].low looking.figures[].method looking.figures[].reason
    looking.figures[].value looking.measurements looking.measurements[].cells looking.measurements[].columns
    looking.measurements[].pool looking.measurements[].rho looking.measurements[].sigma looking.private looking.rho
    looking.rows looking.share looking.target looking.why project.plan.compress project.plan.explain
    project.plan.width separations[].given separations[].holds separations[].left separations[].right
    separations[].why
"""
"""Further paths, of a fence with an explained cost and of held-out rows."""
VERDICT = """
    verdict verdict.assumed verdict.assumed.auc verdict.assumed.rarer verdict.assumed.rows verdict.columns
    verdict.columns[].column verdict.columns[].drowned verdict.columns[].error verdict.columns[].rating
    verdict.columns[].share verdict.grid verdict.grid[].drowned verdict.grid[].epsilon verdict.grid[].loss
    verdict.grid[].outcome verdict.grid[].pairs verdict.grid[].rarest verdict.grid[].tv verdict.headline verdict.now
    verdict.now.drowned verdict.now.epsilon verdict.now.loss verdict.now.outcome verdict.now.pairs verdict.now.rarest
    verdict.now.tv verdict.pairs
    verdict.pairs.noise verdict.pairs.weak verdict.pairs.works verdict.purpose verdict.rating verdict.sentences
    verdict.smallest_epsilon verdict.steps
"""
"""Paths of the facts that the plan stated before anything was spent."""
ADDED = {
    *VERDICT.split(),
    "measurements[].what",
    *("measurements[].kind", "method_title", "model", "project.plan.private_evaluation", "separations[].how"),
    *("copies", "noisy_counts", "espalier", "statement"),
    *("unit", "unit.neighbors", "unit.rows_per_person", "unit.person", "unit.one_row_per_person", "unit.stated"),
    *("links", "links[].columns", "links[].strength", "links[].noise"),
    *("errors", "errors[].columns", "errors[].error", "errors[].round", "errors[].sigma"),
    "looking.figures[].bound",
}
"""New paths: no other may appear without being listed here."""
CASES = {
    "fenced": (
        {"method": "privci", "fair": True, "width": 2, "explain": 0.1, "compress": True, "looking": 0.02},
        {*ALWAYS.split(), *FENCED.split()},
    ),
    "predictive": (
        {"method": "prism", "fair": False, "regime": "predictive", "three_way": 1, "features": 2},
        {*ALWAYS.split(), "project.plan.three_way"},
    ),
}


def paths(facts: Any, at: str = "") -> set[str]:
    """Return the paths of all keys."""
    if isinstance(facts, dict):
        here = {f"{at}.{key}".lstrip("."): value for key, value in facts.items()}
        return set(here).union(*(paths(value, path) for path, value in here.items()))
    if isinstance(facts, list):
        return set().union(*(paths(item, f"{at}[]") for item in facts))
    return set()


@pytest.mark.parametrize("name", CASES)
def test_every_key_of_before_is_there_and_what_is_new_is_listed(name):
    plan, expected = CASES[name]
    given = json.loads((SAMPLES / "hiring.json").read_text("utf-8"))
    given["plan"] = {**given["plan"], "epsilon": 3.0, "delta": 1e-6, **plan}
    project = Project.from_json(given)
    made = release(project, Table.encode(read_table(SAMPLES / "hiring.csv"), project.schema))
    everything = paths(json.loads(made.files["release.json"]))
    found = {p for p in everything if p.startswith("project.plan") or not p.startswith("project.")}
    assert expected <= found
    assert found <= expected | ADDED
    assert made.files["project.json"].decode() == Project.loads(made.files["project.json"]).dumps()


def test_a_folder_of_before_is_read_and_reported():
    back = load_release(BEFORE)
    assert back.project.plan.private_evaluation == 0.2, "under its old name in the file"
    assert back.table.rows == 30
    assert back.model is not None
    for s in back.separations:
        assert back.model.answers(s) == "exact"
    page = render(back.facts)
    assert "Cost of the frame" in page
    assert "PrivCI" in page
    assert "CMI, conditional mutual information, is how much" in page
    assert "TSTR (train on synthetic, test on real)" in page
