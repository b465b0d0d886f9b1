"""What is handed over, what is refused, and that a failure leaves nothing behind."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from core.errors import Cancelled, ProjectError, SchemaError, SizeError, TableError
from core.graph.roles import Roles
from core.preview import preview
from core.privacy.curator import PrivateCurator
from core.project import Plan, Project
from core.release import load_release, release
from core.report import render
from core.schema import Column, Schema
from core.tables.read import read_table
from core.tables.table import Table

NASTY = 'a, "b" <script>alert(1)</script> 年齢'
SCHEMA = Schema((
    Column(NASTY, "categorical", ("=1+1", "x, y", '"q"', "línea\nnueva"), missing=True),
    Column("n", "numeric", edges=(0, 1.5, 4), missing=True),
))  # fmt: skip
PROJECT = Project("<b>t</b>", SCHEMA, Plan("mst", 2.0, 1e-6))


def table(n=300):
    rng = np.random.default_rng(0)
    return Table(
        SCHEMA,
        {NASTY: rng.integers(0, 5, n).astype(np.uint8), "n": rng.integers(0, 3, n).astype(np.uint8)},
        n,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("r") / "deep" / "out"
    release(PROJECT, table()).save(out)
    return out


def test_a_release_comes_back_from_its_folder(folder):
    assert {p.name for p in folder.iterdir()} == {
        "synthetic.csv", "release.json", "project.json", "report.html", "model.npz",
    }  # fmt: skip
    back = load_release(folder)
    assert back.project == Project.load(folder / "project.json")
    assert back.table.rows == 300
    assert back.cliques == tuple(tuple(c) for c in back.facts["cliques"])
    assert back.model.marginal(("n",)).sum() == pytest.approx(300)


def test_nasty_names_and_missing_cells_round_trip(folder):
    text = read_table(folder / "synthetic.csv")
    assert list(text.columns) == [NASTY, "n"]
    assert set(text.columns[NASTY].values) <= {*SCHEMA[NASTY].categories, ""}


def test_release_json_has_what_the_interface_promises(folder):
    facts = json.loads((folder / "release.json").read_text("utf-8"))
    for key in (
        "project", "method", "private", "spent", "selected", "refused", "edges", "cliques", "separations",
        "measurements", "choices", "rows", "seconds",
    ):  # fmt: skip
        assert key in facts
    assert set(facts["seconds"]) == {"select", "measure", "fit", "sample"}
    assert {"epsilon", "delta", "rho", "neighbors"} <= set(facts["spent"])
    assert facts["private"] is True


def test_the_report_escapes_every_name_and_fetches_nothing(folder):
    html = (folder / "report.html").read_text("utf-8")
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "<b>t</b>" not in html
    assert "http" not in html.replace("http-equiv", "")


def test_the_report_needs_the_facts_alone(folder):
    facts = json.loads((folder / "release.json").read_text("utf-8"))
    assert render(facts) == (folder / "report.html").read_text("utf-8")


def test_no_figure_depends_on_private_rows_outside_the_budget():
    """Under add-remove, two tables of very different size give facts with the same keys and no true count."""
    project = replace(PROJECT, plan=Plan("mst", 2.0, 1e-6, neighbors="add-remove"))
    several = [release(project, table(12_345)).to_json() for _ in range(4)]
    assert not all("12345" in json.dumps(f) for f in several), "a noisy total may hit it, but not every time"
    facts = several[0]
    assert facts["seconds"]["select"] is None, "times that grow with a private number of rows are left out"
    assert facts["seconds"]["measure"] is None


def test_an_output_folder_is_never_overwritten(folder, tmp_path):
    made = release(PROJECT, table())
    with pytest.raises(ProjectError, match="not empty"):
        made.save(folder)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ProjectError, match="not empty"):
        made.save(tmp_path / "file")
    made.save(tmp_path / "empty")
    with pytest.raises(ProjectError, match="cannot write|not empty"):
        made.save(tmp_path / "file" / "below")


def test_unconfirmed_guesses_are_refused_before_anything(monkeypatch):
    monkeypatch.setattr(PrivateCurator, "__init__", lambda *a: pytest.fail("reached the curator"))
    schema = Schema((replace(SCHEMA.columns[0], guessed=("categories",)), SCHEMA.columns[1]))
    with pytest.raises(SchemaError, match="confirm or replace"):
        release(replace(PROJECT, schema=schema), table())


def test_a_table_read_with_another_schema_is_refused():
    other = Schema((replace(SCHEMA.columns[0], categories=SCHEMA.columns[0].categories[::-1]), SCHEMA.columns[1]))
    with pytest.raises(TableError, match="another schema"):
        release(replace(PROJECT, schema=other), table())


def test_whatever_could_be_chosen_is_checked_before_the_first_draw():
    """A pair that the rehearsal would not meet, but a private choice could, is refused with the plan."""
    sizes = {"y": 2, "P": 4000, "X": 4000, "a": 2, "c": 2}
    schema = Schema(tuple(Column(n, "categorical", tuple(map(str, range(k)))) for n, k in sizes.items()))
    roles = Roles(outcome=("y",), protected=("P",), admissible=("a",))
    plan = Plan("prism", 1.0, 1e-6, fair=True, target="y", features=1)
    with pytest.raises(SizeError, match="P"):
        preview(Project("t", schema, plan, roles=roles), 1000)


def test_too_large_a_plan_is_refused_before_the_first_draw(monkeypatch):
    monkeypatch.setattr(PrivateCurator, "measure", lambda *a: pytest.fail("measured"))
    with pytest.raises(SizeError) as error:
        release(PROJECT.with_plan(max_cells=5), table())
    assert error.value.clique


def test_cancelling_stops_the_work():
    def stop(fraction, message):  # noqa: ARG001
        if fraction > 0.2:
            raise Cancelled("cancelled")

    with pytest.raises(Cancelled):
        release(PROJECT, table(), stop)


def test_progress_only_moves_forward():
    seen = []
    release(PROJECT, table(), lambda f, m: seen.append((f, m)))
    fractions = [f for f, _ in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert all(m for _, m in seen)


def test_rows_asked_for_are_drawn():
    assert release(PROJECT.with_plan(rows=17), table()).rows == 17


def test_two_releases_differ():
    first, second = (release(PROJECT, table()).spending.measurements[0].values for _ in range(2))
    assert not np.array_equal(first, second)


def test_a_damaged_release_folder_is_named(folder, tmp_path):
    with pytest.raises(ProjectError, match="not a release folder"):
        load_release(tmp_path)
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "model.npz").write_bytes(b"PK junk")
    with pytest.raises(ProjectError, match="damaged"):
        load_release(tmp_path)
