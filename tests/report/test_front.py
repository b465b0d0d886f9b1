"""The report's first pages follow from the facts, and the card next to them is JSON-LD."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

from espalier.core.evaluation import evaluate
from espalier.core.evaluation.verdict import verdict
from espalier.core.planning.budget_lines import not_in_rows
from espalier.core.planning.preview import preview
from espalier.core.project.file import Project
from espalier.core.release import release
from espalier.core.report import measurement_section
from espalier.core.report.page import _shape, render
from espalier.core.statement.label import label
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table


@pytest.fixture(scope="module")
def made(samples_folder):
    project = Project.load(samples_folder / "hiring.json")
    return release(project, Table.encode(read_table(samples_folder / "hiring.csv"), project.schema))


@pytest.fixture(scope="module")
def samples_folder():
    from tests.conftest import SAMPLES

    return SAMPLES


def test_the_first_pages_come_before_the_annex(made):
    front, annex = made.files["report.html"].decode().split('<div class="annex">')
    for said in (
        "What it shows",
        "Privacy",
        "What works, and what is noise",
        "People responsible",
        "Use of the budget",
    ):
        assert f"{said}</h2>" in front
    assert "not known from this release" in front, "no people were held out"
    assert "shows no link between <strong>hired</strong> and <strong>gender</strong>" in front
    assert "Every measurement" in annex
    assert "The columns</h2>" in annex
    assert front.count("<svg") == 2, "the picture of the release, and the sample's own picture"
    assert front.count('class="refused"') == 1, "gender may not be linked to hired"


def test_a_release_drowned_in_noise_says_so(made):
    tiny = made.project.with_plan(epsilon=0.01)
    facts = release(tiny, Table(tiny.schema, made.codes, made.rows)).to_json()
    assert "<strong>Noise outweighs the data</strong> in" in render(facts)
    assert "Noise outweighs the data" not in made.files["report.html"].decode()


def test_columns_called_noise_are_those_rated_as_noise(made):
    """Previously, a column whose noise moves 23 % of its rows was called noise in one place and rated "with care" in
    another.
    """
    facts = json.loads(made.files["release.json"])
    name = facts["bounds"]["marginals"][0]["clique"][0]
    facts["bounds"]["marginals"][0]["expected_tv"] = 0.23
    assert "Noise outweighs the data" not in render(facts)
    next(c for c in facts["verdict"]["columns"] if c["column"] == name)["rating"] = "noise"
    assert f"<strong>Noise outweighs the data</strong> in <strong>{name}</strong>. Draw no" in render(facts)


def test_columns_that_are_summed_are_called_noise_nowhere(samples_folder):
    project = Project.load(samples_folder / "stays.json")
    table = Table.encode(read_table(samples_folder / "stays.csv"), project.schema)
    report = release(project, table).files["report.html"].decode()
    assert "Noise outweighs" not in report
    listed = re.search(r"Not predicted</th><td>5 columns.*?<td colspan=\"2\" class=\"names\">(.*?)</td>", report, re.S)
    assert listed is not None
    assert listed[1] == "age, illnesses, marker, haemoglobin, days"


def test_the_report_shows_only_what_was_paid_for(made):
    """All of it follows from release.json and the statement, in which every number is public or paid for."""
    facts, claims = json.loads(made.files["release.json"]), json.loads(made.files["statement.json"])
    assert render(facts, label(claims)) == made.files["report.html"].decode()


@pytest.mark.parametrize("sample", ["hiring", "readmission"])
def test_a_release_at_a_tiny_epsilon_is_told_not_to_be_used(sample, samples_folder):
    project = Project.load(samples_folder / f"{sample}.json").with_plan(epsilon=0.01)
    table = Table.encode(read_table(samples_folder / f"{sample}.csv"), project.schema)
    made = release(project, table)
    found = evaluate(project, table, Table(project.schema, made.codes, made.shown), model=made.model).to_json()
    said = verdict(project, found)
    assert said.grade == "poor", said
    assert said.headline.startswith("This table should not be used")


def test_who_signed_is_shown_escaped(made):
    facts = made.to_json()
    facts["project"] = {**facts["project"], "signoff": {"drawn_by": "<b>Dr. A</b>"}}
    shown = render(facts)
    assert "&lt;b&gt;Dr. A&lt;/b&gt;" in shown
    assert shown.count("no one is named") == 2


def test_why_the_plan_was_chosen_stands_in_the_report(made):
    facts = made.to_json()
    facts["project"] = {**facts["project"], "signoff": {"chosen_because": "fair & good", "compared_with": "MST"}}
    assert "Why this plan</td><td>fair &amp; good" in render(facts)
    assert "Why this plan" not in made.files["report.html"].decode()
    assert Project.from_json(facts["project"]).signoff["compared_with"] == "MST"


def test_the_card_describes_the_table(made):
    card = json.loads(made.files["croissant.json"])
    assert card["@type"] == "sc:Dataset"
    assert card["distribution"][0]["sha256"] == hashlib.sha256(made.files["synthetic.csv"]).hexdigest()
    assert [f["name"] for f in card["recordSet"][0]["field"]] == list(made.project.schema.names)


def test_the_plan_and_the_report_say_that_a_gradient_is_not_in_rows(samples_folder):
    project = Project.load(samples_folder / "readmission.json")
    project = project.with_plan(method="decoder", steps=4, families="additive")
    lines = preview(project, 8000).lines
    said = "Measured in their own unit, so their σ is not in rows: clipped gradients of a training step."
    assert not_in_rows(lines) == said
    assert not_in_rows(line for line in lines if line.pool == "one-way") == ""
    table = Table.encode(read_table(samples_folder / "readmission.csv"), project.schema)
    report = release(project, table).files["report.html"].decode()
    assert report.count("clipped gradients of a training step") == 1
    assert "4 times, each: clipped gradients of a training step" in report
    assert "in rows per cell (for sums other than counts, in their own unit)" in report


def test_the_report_carries_its_fonts_and_fetches_nothing(made):
    report = made.files["report.html"].decode()
    assert report.count("@font-face") == 2
    assert "SIL Open Font License" in report
    assert not [url for url in re.findall(r"url\(([^)]{1,40})", report) if not url.startswith(("data:", "#"))]


def test_a_wide_report_names_no_measurement_one_by_one():
    """The list is in release.json; one line for each pool is enough for 200 counts."""
    counts = [
        {"columns": [f"c{i}", "y"], "pool": "pairs", "cells": 4, "rho": 1e-4, "sigma": 10.0 + i} for i in range(200)
    ]
    told = measurement_section.measurements({"measurements": counts})
    assert told.count("<tr>") == 2
    assert "10 to 209" in told
    assert "c17" not in told
    assert measurement_section.measurements({"measurements": counts[:20]}).count("<tr>") == 21


@pytest.mark.parametrize(
    ("edges", "name"),
    [([], ""), (["ab", "bc"], " (a tree)"), (["ab", "cd"], " (a forest)"), (["ab", "bc", "ac"], "")],
)
def test_the_report_names_a_tree(edges: list[str], name: str) -> None:
    assert _shape(edges) == name


def test_a_release_without_a_drawing_says_nothing_of_one(made):
    facts = made.to_json()
    facts["project"] = {**facts["project"], "dag": {"edges": []}}
    assert "The drawn graph" not in render(facts)
    assert "The drawn graph" in made.files["report.html"].decode()
