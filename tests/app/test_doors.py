"""The doors: what the server lets in and out by default, and who may do what once people sign in."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core import shared
from core.privacy.ledger import Ledger
from core.project import Plan, Project
from core.release import release
from core.schema import Column, Schema
from core.tables.read import read_table
from core.tables.table import Table
from pages.parts import doors
from tests.app.test_pages import finish, go, press, sample, state, words

ROOT = Path(__file__).resolve().parents[2]
ROLES = {"steward": ["anna@hospital.example"], "viewer": ["ben@partner.example", "@hospital.example"]}


class User(dict[str, Any]):
    """What Streamlit knows of who has signed in."""

    @property
    def is_logged_in(self) -> bool:
        return "email" in self


@pytest.fixture(autouse=True)
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ESPALIER_SHARED", str(tmp_path / "shelf"))
    return tmp_path / "shelf"


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The app of a server that asks people to sign in, as somebody meets it."""

    def come(**user: Any) -> AppTest:
        monkeypatch.setattr(st, "user", User(user))
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.secrets["auth"] = {"client_id": "x"}
        app.secrets["roles"] = ROLES
        app.run()
        assert not app.exception
        return app

    return come


def test_the_configuration_is_closed_by_default() -> None:
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))
    server = config["server"]
    assert server["address"] == "127.0.0.1"
    assert set(server["allowedHosts"]) == {"localhost", "127.0.0.1", "[::1]"}
    assert server["enableXsrfProtection"] is True
    assert server["enableCORS"] is True
    assert server["enableStaticServing"] is False
    assert server["enableAgentApi"] is False
    assert server["maxUploadSize"] <= 200
    assert config["browser"]["gatherUsageStats"] is False
    assert config["client"]["showErrorDetails"] == "none"
    assert config["client"]["disableDataExport"] is True
    for section, options in config.items():
        if section != "theme":
            for option in options:
                assert st.get_option(f"{section}.{option}") is not None, "Streamlit knows the option"


def test_no_ceremony_by_default() -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    assert any(b.label == "Open hiring" for b in app.button)
    assert not any(b.label.startswith("Sign") for b in app.button)
    assert doors.role_of({}, {}) is None


@pytest.mark.parametrize(
    ("user", "role"),
    [
        ({"email": "anna@hospital.example"}, "steward"),
        ({"email": " Anna@Hospital.Example "}, "steward"),
        ({"email": "carl@hospital.example"}, "viewer"),
        ({"email": "ben@partner.example"}, "viewer"),
        ({"email": "eve@partner.example"}, None),
        ({"email": "eve@evil.example@hospital.example.evil.example"}, None),
        ({"email": "anna@hospital.example", "email_verified": False}, None),
        ({"email": "anna@hospital.example", "email_verified": True}, "steward"),
        ({"email": ""}, None),
        ({"email": "@"}, None),
        ({}, None),
    ],
)
def test_roles_are_what_the_lists_say(user: dict[str, Any], role: str | None) -> None:
    assert doors.role_of(user, ROLES) == role


@pytest.mark.parametrize("roles", [{}, {"steward": "anna@hospital.example"}, {"steward": None}, {"steward": [1]}])
def test_broken_lists_let_nobody_in(roles: dict[str, Any]) -> None:
    assert doors.role_of({"email": "anna@hospital.example"}, roles) is None


def test_who_has_not_signed_in_sees_a_door(visit: Any) -> None:
    app = visit()
    assert [b.label for b in app.button] == ["Sign in"]
    assert not app.file_uploader


def test_who_is_on_no_list_stays_outside(visit: Any) -> None:
    app = visit(email="eve@evil.example")
    assert "on no list" in words(app)
    assert [b.label for b in app.button] == ["Sign out"]


def test_a_viewer_sees_only_what_is_shared(visit: Any) -> None:
    app = visit(email="carl@hospital.example")
    assert "Nothing is shared yet" in words(app)
    assert not app.file_uploader
    for page in ("data", "plan", "release", "diagnostics", "structure", "ledger"):
        with pytest.raises(ValueError, match="Could not find a navigation page"):
            app.switch_page(f"pages/{page}.py").run()
    assert "espalier" not in app.session_state, "no page of a steward's ran"


def test_pages_refuse_a_viewer_even_without_the_door(visit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "enter", lambda: "steward")
    app = visit(email="carl@hospital.example")
    assert "Only a steward may do this" in words(app)
    assert not app.file_uploader


def test_a_viewer_neither_sees_nor_opens_nor_spends_a_budget(
    visit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / "ledger.db"
    monkeypatch.setenv("ESPALIER_LEDGER", str(where))
    ledger = Ledger(where, create=True)
    ledger.open_table("register", epsilon=9.0, delta=1e-9, who="Anna")
    project = Project.load(ROOT / "sample_data" / "hiring.json")
    table = Table.encode(read_table(ROOT / "sample_data" / "hiring.csv"), project.schema)
    made = [release(project.with_plan(method="independent"), table, ledger=ledger.account("register")) for _ in "ab"]
    shared.share(made[0].files)
    before = ledger.head()

    viewer = visit(email="ben@partner.example")
    assert len(viewer.get("download_button")) == 3, "of two releases the one that is shared"
    assert "register" not in words(viewer)
    monkeypatch.setattr(doors, "enter", lambda: "steward")
    viewer = visit(email="ben@partner.example")  # should the door ever fail, each page has its own
    for page in ("ledger", "release"):
        viewer.switch_page(f"pages/{page}.py").run()
        assert not viewer.exception
        assert "Only a steward may do this" in words(viewer)
        assert not any(viewer.get(kind) for kind in ("button", "download_button", "metric", "dataframe", "text_input"))
    assert ledger.head() == before

    steward = visit(email="anna@hospital.example")
    steward.switch_page("pages/ledger.py").run()
    assert "register" in words(steward)
    assert steward.metric, "what the viewer is kept from is there"


def test_a_steward_shares_a_release_and_takes_it_back(visit: Any) -> None:
    app = visit(email="anna@hospital.example")
    finish(press(go(sample(app, "hiring"), "release"), "Spend"))
    assert shared.shared() == [], "nothing is shared unasked"
    made = state(app).made
    assert made is not None

    app.toggle(key="share-1").set_value(True).run()
    assert shared.files(shared.shared()[0].id) == made.files

    viewer = visit(email="ben@partner.example")
    assert "`hiring`" in words(viewer)
    assert len(viewer.get("download_button")) == 3

    steward = visit(email="anna@hospital.example")
    assert any(b.label == "Open hiring" for b in steward.button)
    app.toggle(key="share-1").set_value(False).run()
    assert shared.shared() == []
    assert "Nothing is shared yet" in words(visit(email="ben@partner.example"))


def test_whose_rows_are_protected_is_said_of_what_is_shared(visit: Any) -> None:
    schema = Schema((Column("a", "categorical", ("x", "y")),))
    plan = Plan("independent", 1.0, 1e-6, person="who", rows_per_person=2, rows=60)
    text = read_table(b"a,who\n" + b"x,P1\ny,P2\nx,P3\n" * 20, "t.csv")
    shared.share(release(Project("t", schema, plan), Table.encode(text, schema, "who")).files)
    said = words(visit(email="ben@partner.example"))
    assert "`who`, at most 2" in said, said


def test_broken_secrets_let_nobody_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = tmp_path / "secrets.toml"
    secrets.write_text("[auth\n", "utf-8")
    monkeypatch.setattr(st.secrets, "load_if_toml_exists", lambda: False)
    monkeypatch.setattr(doors, "secret_files", lambda: [secrets])
    app = AppTest.from_function(_door, default_timeout=60).run()
    assert "cannot be read" in words(app)
    assert "inside" not in words(app)


def _door() -> None:
    import streamlit as st

    from pages.parts import doors

    doors.enter()
    st.markdown("inside")


def test_only_releases_reach_the_shelf(shelf: Path) -> None:
    from core.errors import ProjectError

    files = dict.fromkeys(shared.FILES, b"x")
    with pytest.raises(ProjectError):
        shared.share({**files, "release.json": b'{"private": false}'})
    with pytest.raises(ProjectError, match="not a shared release"):
        shared.files("../../etc/passwd")
    shelf.mkdir()
    (shelf / "0123456789abcdef.zip").write_bytes(b"broken")
    assert shared.shared() == []
    with pytest.raises(ProjectError, match="not shared any more"):
        shared.files("0123456789abcdef")
