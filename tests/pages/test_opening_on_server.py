"""A table on the server is opened in place, planned and released, and none of its rows enters the app."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from espalier.core.errors import TableError
from espalier.core.project.editor import ProjectEditor
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.server import allowed as opening
from espalier.core.server.allowed import VARIABLE, allowed
from espalier.core.tables import relation
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table
from espalier.pages.data import opening_on_server
from espalier.pages.diagnostics import judgement
from espalier.pages.release import spending
from espalier.pages.session.session import Session
from tests.support.app import field, finish, go, press, sentences
from tests.support.app import state as here

SCHEMA = Schema((Column("a", "categorical", ("x", "y")), Column("v", "numeric", edges=(0, 5, 10))))


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, f"{tmp_path},env:FAR_WAREHOUSE")
    rng = np.random.default_rng(0)
    parquet.write_table(
        pa.table({"a": np.array(["x", "y"])[rng.integers(0, 2, 500)], "v": rng.integers(0, 10, 500)}),
        tmp_path / "t.parquet",
    )
    return Session(ProjectEditor(Project("far", SCHEMA, Plan("mst", 5.0, 1e-6)))), str(tmp_path / "t.parquet")


def test_a_file_on_the_server_is_released_from_where_it_is(state, monkeypatch):
    session, path = state
    opening_on_server._open(session, path, "")
    assert session.relation is not None
    assert session.text is None
    monkeypatch.setattr(Table, "encode", lambda *_: pytest.fail("rows were read into memory"))
    ran = []
    monkeypatch.setattr(Session, "start", lambda _, kind, work, done, *_more: ran.append((kind, work, done)))
    session.rows = 400
    spending.start(session, 0.0, session.preview(session.public_rows))
    with pytest.raises(Exception, match="has 500 rows, but the Plan page states 400"):
        ran.pop()[1](lambda *_: None)
    session.rows = 500
    spending.start(session, 0.0, session.preview(session.public_rows))
    _, work, done = ran.pop()
    done(session, work(lambda *_: None))
    assert session.released.release.rows == 500
    assert session.released.real is None
    assert session.spent[0].rho > 0
    judgement.start(session, session.released)
    kind, work, done = ran.pop()
    done(session, work(lambda *_: None))
    found = session.findings["The original table"]
    assert (kind, found["random_rows"]) == ("diagnostics", 500)
    assert found["fidelity"]["one_way_tv"] < 0.2
    assert "release from a file with fewer rows" in found["fence_cost_reason"]
    assert "in bins; to compare numbers, release from" in found["numbers_reason"]


def test_columns_are_guessed_from_its_first_rows_and_marked(state):
    session, path = state
    opening_on_server._guess(session, path, "")
    assert session.project.unconfirmed
    assert session.relation is not None
    session.go_back()
    assert session.relation is None


def test_nothing_is_opened_that_the_operator_did_not_list(state, tmp_path, monkeypatch):
    session, path = state
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    (outside / "deep").mkdir(parents=True)
    (tmp_path / "folder").mkdir()
    shutil.copy(path, outside / "t.parquet")
    shutil.copy(path, tmp_path / "folder" / "t.parquet")
    (tmp_path / "link.parquet").symlink_to(outside / "t.parquet")
    (tmp_path / "way").symlink_to(outside)
    (tmp_path / "inside.parquet").symlink_to(path)
    monkeypatch.setenv("SECRET", "postgresql://me:hush@127.0.0.1:1/db")
    refused = [
        "postgresql://me:hush@127.0.0.1:1/db",
        f"sqlite:///{path}",
        "env:SECRET",
        "env:",
        "/etc/shadow",
        "/etc/nothing-of-that-name",
        "t.parquet",
        f"{tmp_path}/../{outside.name}/t.parquet",
        f"{tmp_path}/link.parquet",
        f"{tmp_path}/way/t.parquet",
        f"{tmp_path}-outside/t.parquet",
        f"{path}\0",
    ]
    said = set()
    for where in refused:
        for act in (opening_on_server._open, opening_on_server._guess):
            act(session, where, "t" if "://" in where or "env" in where else "")
            assert session.relation is None, where
            said.add(session.trouble.pop("open"))
    assert len(said) == 1, "a refusal shows whether a file exists"
    opening_on_server._open(session, f"{tmp_path}/inside.parquet", "")
    assert session.relation is not None, session.trouble
    session.relation = None
    opening_on_server._open(session, f"{tmp_path}/folder", "")
    assert session.relation is not None, session.trouble
    session.relation = None
    (tmp_path / "folder" / "more.parquet").symlink_to(outside / "t.parquet")
    opening_on_server._open(session, f"{tmp_path}/folder", "")
    assert session.relation is None
    assert "leads out" in session.trouble["open"]
    for wrong in ("/tmp/elsewhere", "here", f"{tmp_path}/way/new", f"{tmp_path}/../new"):
        with pytest.raises(TableError):
            allowed().new(wrong)
    assert allowed().new(f"{tmp_path}/new") == str(tmp_path / "new")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "deep/t.csv"])
def test_a_link_that_replaces_an_open_file_is_not_followed(name, tmp_path):
    """Previously, the rows of a CSV file outside the listed folders were read, once a link had replaced the file."""
    inside, outside = tmp_path / "listed", tmp_path / "outside"
    for folder in (inside, outside):
        (folder / name).parent.mkdir(parents=True)
        table = pa.table({"a": [folder.name]})
        parquet.write_table(table, folder / name) if name.endswith("parquet") else csv.write_csv(table, folder / name)
    opened = allowed({VARIABLE: str(inside)}).open(str(inside / name), None)
    assert opened.first(1).columns["a"].values == ("listed",)
    replaced = (inside / name).relative_to(inside).parts[0]
    shutil.move(inside / replaced, tmp_path / "old")
    (inside / replaced).symlink_to(outside / replaced)
    for read in (
        lambda: opened.first(1),
        opened.sample,
        lambda: opened.snapshot(Schema((Column("a", "categorical", ("outside",)),))),
    ):
        with pytest.raises(TableError, match="was changed after it was opened"):
            read()
    with pytest.raises(TableError, match="does not allow that table"):
        allowed({VARIABLE: str(inside)}).open(str(inside / name), None)


def test_an_entry_that_opens_everything_is_none():
    for entry in ("1", "/", "//", "relative", "env:", "postgresql://x/y"):
        made = allowed({VARIABLE: entry})
        assert not made
        assert made.wrong == (entry,)


def test_a_url_may_stand_in_the_servers_secrets(state, tmp_path, monkeypatch):
    from streamlit import config
    from streamlit.runtime.secrets import Secrets

    session, _ = state
    monkeypatch.setenv("FAR_WAREHOUSE", "")  # set first, so that monkeypatch removes it again
    (tmp_path / "secrets.toml").write_text('FAR_WAREHOUSE = "postgresql://me:hush@127.0.0.1:1/db"\n')
    before = config.get_option("secrets.files")
    config.set_option("secrets.files", [str(tmp_path / "secrets.toml")])
    try:
        assert Secrets().load_if_toml_exists()  # as the server does when it starts
    finally:
        config.set_option("secrets.files", before)
    opening_on_server._open(session, "env:FAR_WAREHOUSE", "t")
    assert "cannot open the postgresql relation 't'" in session.trouble["open"]
    assert "hush" not in session.trouble["open"]


def test_the_field_is_there_only_where_the_operator_allows_it(app, monkeypatch):
    monkeypatch.setenv(VARIABLE, "env:FAR_WAREHOUSE")
    app.switch_page("pages/02_data.py").run()
    assert any("on the server" in field.label for field in app.text_input)
    monkeypatch.delenv(VARIABLE)
    app.run()
    assert not any("on the server" in field.label for field in app.text_input)


def test_a_table_given_to_an_examples_project_is_no_example(state):
    """Previously, it counted as an example: its release was recorded only on request, and Compare judged plans on it
    silently.
    """
    session, path = state
    whole = session.project
    for give in (
        lambda: opening_on_server._open(session, path, ""),
        lambda: session.attach(read_table(b"a,v\nx,1\n", "t.csv")),
    ):
        session.open(whole, None, None, "readmission")
        session.compared = [object()]
        give()
        assert session.trouble == {}
        assert session.sample == ""
        assert session.compared == []


@pytest.fixture
def ready(state, app, tmp_path, monkeypatch):
    """The app with the table open in place and planned, and with its own ledger."""
    monkeypatch.setenv("ESPALIER_LEDGER", str(tmp_path / "ledger.db"))
    session, path = state
    shown = here(app)
    shown.open(session.project)
    opening_on_server._open(shown, path, "")
    shown.rows = 500
    return app


def test_a_budget_opened_on_the_release_page_is_the_one_that_pays(ready):
    """Previously, the budget's name was not filled in, and after it was opened, the page showed the form for another
    budget."""
    app = go(ready, "release")
    assert field(app, "text_input", "Name of the table").value == "far"
    press(app, "Open this budget")
    assert here(app).paid_from == "far"
    assert "Codes of the rows, not the rows themselves, are kept on this machine" in sentences(app)
    finish(press(app, "Spend"))
    assert here(app).released.release.reservation is not None
    assert not app.error


def test_a_table_that_the_ledger_knows_is_refused_until_somebody_has_read_why(ready):
    app = go(ready, "release")
    press(app, "Open this budget")
    finish(press(app, "Spend"))
    assert len(here(app).spent) == 1
    here(app).paid_from = None
    app.run()
    field(app, "selectbox", "Paid from").set_value("Open a new budget …").run()
    field(app, "text_input", "Name of the table").input("other").run()
    press(app, "Open this budget")
    assert here(app).paid_from == "other"
    finish(press(app, "Spend"))
    assert "the ledger refuses" in app.error[0].value
    assert len(here(app).spent) == 1
    assert next(b for b in app.button if b.label.startswith("Spend")).disabled
    field(app, "checkbox", "I have read the refusal").check().run()
    finish(press(app, "Spend"))
    assert len(here(app).spent) == 2


def test_diagnostics_show_pictures_and_further_tests_of_random_rows(ready):
    """Previously, a table that is read in place had neither: it was compared by figures alone."""
    app = go(ready, "release")
    field(app, "selectbox", "Paid from").set_value("Not recorded in a ledger").run()
    finish(press(app, "Spend"))
    finish(press(go(app, "diagnostics"), "Compare"))
    assert here(app).released.real is None
    assert field(app, "selectbox", "Show one column").options == ["a", "v"]
    assert field(app, "selectbox", "Show one pair").options == ["a × v"]
    assert int(here(app).released.counted["a", "v"].sum()) == 500
    assert "at most 1,000,000 random rows" in sentences(app)
    assert not [f for f in app.text_input if f.label == "Rows to attack"], "its rows have no numbers"
    finish(press(app, "Train the classifiers"))
    assert (1, "many-targets") in here(app).further
    assert not app.error


def test_the_first_rows_are_shown_to_who_asks(ready):
    app = go(ready, "data")
    assert not [f for f in app.dataframe if "v" in f.value.columns]
    assert "No table is open" not in sentences(app)
    field(app, "toggle", "Show me the first rows").set_value(True).run()
    (shown,) = [f.value for f in app.dataframe if "v" in f.value.columns]
    assert (list(shown.columns), len(shown)) == (["a", "v"], 8)


def test_compare_says_what_to_do_instead(ready):
    app = go(ready, "compare")
    assert "this table is read in place. Open a file with fewer rows on the Data page" in sentences(app)
    assert "No table is open" not in sentences(app)


def test_its_columns_are_offered_as_the_person_column_and_told_when_they_are_left_out(ready):
    session = here(ready)
    session.editor.project = Project("far", Schema(SCHEMA.columns[:1]), Plan("mst", 5.0, 1e-6))
    go(ready, "data")
    stages = {row.name: row.stage for row in session.drafts.review.rows(session.project, session.columns, None)}
    assert stages["v"] == "left out"
    press(ready, "Answer the question")
    field(ready, "radio", "Can one person").set_value("column").run()
    assert field(ready, "selectbox", "Column that identifies").options == ["a", "v"]


@pytest.mark.parametrize("kind", ["file", "folder", "csv"])
def test_a_link_that_leads_out_for_a_moment_only_is_refused(state, kind, tmp_path, monkeypatch):
    """Previously, a file outside was read if a link led to it only between two checks of the path."""
    _, path = state
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    for place in (outside, tmp_path / "in"):
        (place / "deep").mkdir(parents=True)
        shutil.copy(path, place / "deep" / "t.parquet")
        (place / "t.csv").write_text("a,v\nx,1\n", "utf-8")
    where = str(tmp_path / "in" / {"file": "deep/t.parquet", "folder": "deep", "csv": "t.csv"}[kind])
    opens = relation.open_relation

    def swap(*names):
        (tmp_path / "in").rename(tmp_path / "aside")
        (tmp_path / "in").symlink_to(outside)
        opened = opens(*names)
        (tmp_path / "in").unlink()
        (tmp_path / "aside").rename(tmp_path / "in")
        return opened

    assert allowed().open(where, None).columns
    monkeypatch.setattr(opening, "open_relation", swap)
    with pytest.raises(TableError, match="does not allow that table"):
        allowed().open(where, None)
