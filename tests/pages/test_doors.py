"""What the server accepts and reveals by default, and each role's rights after sign-in."""

from __future__ import annotations

import ast
import runpy
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit import file_util, net_util
from streamlit.testing.v1 import AppTest
from streamlit.web.server.server_util import is_url_from_allowed_origins
from streamlit.web.server.starlette import starlette_app

from espalier.core.cli import serve
from espalier.core.cli.main import main
from espalier.core.ledger.archive import REQUIRED
from espalier.core.ledger.ledger import Ledger
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release import shelf as shared
from espalier.core.release.spend import release
from espalier.core.server import doors, monitor
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table
from espalier.pages.common import housekeeping, sign_in
from espalier.pages.session.session import Session
from tests.support.app import PAGE_FILES, ROOT, finish, go, press, sample, sentences, state

ROLES = {"steward": ["anna@hospital.example"], "viewer": ["ben@partner.example", "@hospital.example"]}


class User(dict[str, Any]):
    """Streamlit's data about the signed-in person."""

    @property
    def is_logged_in(self) -> bool:
        return "email" in self


@pytest.fixture(autouse=True)
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ESPALIER_SHARED", str(tmp_path / "shelf"))
    return tmp_path / "shelf"


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The app of a server that asks people to sign in, on a first visit."""

    def come(page: str = "app.py", **user: Any) -> AppTest:
        now = {"sub": "1", "iat": time.time(), "email_verified": True}
        monkeypatch.setattr(st, "user", User(user and now | user))
        app = AppTest.from_file(str(ROOT / page), default_timeout=60)
        app.secrets["auth"] = {"client_id": "x", "cookie_secret": "s" * sign_in.SECRET}
        app.secrets["roles"] = ROLES
        app.run()
        assert not app.exception
        return app

    return come


def test_the_configuration_is_closed_by_default() -> None:
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))
    server = config["server"]
    # stated, so that a file in the folder where the app is started cannot turn them on
    assert config["global"] == {"appTest": False, "e2eTest": False}
    assert server["customComponentBaseUrlPath"] == ""
    assert server["address"] == "127.0.0.1"
    assert set(server["allowedHosts"]) == {"localhost", "127.0.0.1", "[::1]"}
    assert server["enableXsrfProtection"] is True
    assert server["enableCORS"] is True
    assert server["enableStaticServing"] is False
    assert server["enableAgentApi"] is False
    assert server["maxUploadSize"] <= 200
    assert config["runner"]["postScriptGC"] is False, "progress redraws twice a second"
    assert config["browser"]["gatherUsageStats"] is False
    assert config["browser"]["serverAddress"] == "127.0.0.1"
    assert server["corsAllowedOrigins"] == []
    assert config["client"]["showErrorDetails"] == "none"
    assert config["client"]["disableDataExport"] is True
    assert config["client"]["allowedOrigins"] == [], "a page of these hosts may redirect uploads"
    for section, options in config.items():
        if section != "theme":
            for option in options:
                assert st.get_option(f"{section}.{option}") is not None, "Streamlit knows the option"


@pytest.mark.parametrize("command", [["app", "--no-browser"], ["serve", "--host", "localhost"]])
def test_the_folder_in_which_the_app_is_started_settles_nothing(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Previously, its secrets became environment variables, and its settings could open the app to other pages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(runpy, "run_module", lambda *_, **__: None)
    monkeypatch.setattr(file_util, "get_project_streamlit_file_path", file_util.get_project_streamlit_file_path)
    monkeypatch.setattr(starlette_app, "create_streamlit_middleware", starlette_app.create_streamlit_middleware)
    for effect in ("_log_as_json", "_load", "_drain_first"):
        monkeypatch.setattr(serve, effect, lambda *_: None)
    monkeypatch.setattr(monitor, "serve", lambda _: None)
    assert main(command) == 0
    secrets = [Path(one.removeprefix("--secrets.files=")) for one in sys.argv if one.startswith("--secrets.files=")]
    assert secrets == [Path.home() / ".streamlit" / "secrets.toml", ROOT / ".streamlit" / "secrets.toml"]
    read = {Path(one).parent for one in st.config.get_config_files("config.toml")}
    assert {Path.home() / ".streamlit", ROOT / ".streamlit"} <= read
    assert not any(one.is_relative_to(tmp_path) for one in read)
    first: Any = starlette_app.create_streamlit_middleware()[0].cls
    assert first is doors.Doors


def test_no_ceremony_by_default() -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    assert any(b.label == "Open hiring" for b in app.button)
    assert not any(b.label.startswith("Sign") for b in app.button)
    assert sign_in.role_of({}, {}) is None


@pytest.mark.parametrize(
    ("user", "role"),
    [
        ({"email": "anna@hospital.example"}, "steward"),
        ({"email": "Anna@Hospital.Example"}, "steward"),
        ({"email": " anna@hospital.example"}, None),
        ({"email": "anna@hospital.example\u2003"}, None),
        ({"email": "anna@hospital.example\n"}, None),
        ({"email": "anna@hospital.example."}, None),
        ({"email": "MAR\u212a@HOSPITAL.EXAMPLE"}, "viewer"),  # the Kelvin sign is not k: this is not the steward mark
        ({"email": "carl@ho\u017fpital.example"}, None),
        ({"email": "carl@sub.hospital.example"}, None),
        ({"email": "carl@evil.example@hospital.example"}, None),
        ({"email": "@hospital.example"}, None),
        ({"email": "a@"}, None),
        ({"email": ["anna@hospital.example"]}, None),
        ({"email": "carl@hospital.example"}, "viewer"),
        ({"email": "ben@partner.example"}, "viewer"),
        ({"email": "eve@partner.example"}, None),
        ({"email": "eve@evil.example@hospital.example.evil.example"}, None),
        ({"email": "anna@hospital.example", "email_verified": False}, None),
        ({"email": "anna@hospital.example", "email_verified": "false"}, None),
        ({"email": "anna@hospital.example", "email_verified": 0}, None),
        ({"email": "anna@hospital.example", "email_verified": None}, None),
        ({"email": "anna@hospital.example", "email_verified": "true"}, "steward"),
        ({"email": ""}, None),
        ({"email": "@"}, None),
        ({}, None),
    ],
)
def test_roles_are_what_the_lists_say(user: dict[str, Any], role: str | None) -> None:
    roles = ROLES | {"steward": ["anna@hospital.example", "mark@hospital.example"]}
    assert sign_in.role_of({"email_verified": True} | user, roles) == role


def test_an_address_that_nobody_verified_counts_only_where_the_provider_is_trusted() -> None:
    anna = {"email": "anna@hospital.example"}
    assert sign_in.role_of(anna, ROLES) is None
    assert sign_in.role_of(anna, ROLES | {"vouched": "true"}) is None
    assert sign_in.role_of(anna, ROLES | {"vouched": True}) == "steward"
    assert sign_in.role_of(anna | {"email_verified": False}, ROLES | {"vouched": True}) is None


@pytest.mark.parametrize("roles", [{}, {"steward": "anna@hospital.example"}, {"steward": None}, {"steward": [1]}])
def test_broken_lists_let_nobody_in(roles: dict[str, Any]) -> None:
    assert sign_in.role_of({"email": "anna@hospital.example", "email_verified": True}, roles) is None


@pytest.mark.parametrize("began", [0, None, "now", -1.0])
def test_an_old_sign_in_counts_no_more(visit: Any, began: Any) -> None:
    began = time.time() - sign_in.LASTS if began == 0 else began
    app = visit(email="anna@hospital.example", iat=began)
    assert [b.label for b in app.button] == ["Sign in"]


def test_signing_out_in_one_tab_ends_the_other(visit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in, "_ended", {})
    monkeypatch.setattr(st, "logout", lambda: None)
    one = visit(email="anna@hospital.example")
    other = visit(email="anna@hospital.example", iat=dict(st.user)["iat"])
    press(one, "Sign out")
    assert [b.label for b in other.run().button] == ["Sign in"]
    again = visit(email="anna@hospital.example")
    assert not any(b.label == "Sign in" for b in again.button), "a new sign-in counts"


@pytest.mark.parametrize("moved", [-86_400.0, 7 * 86_400.0])
def test_a_clock_that_is_set_back_revives_no_sign_in(monkeypatch: pytest.MonkeyPatch, moved: float) -> None:
    now, clock = time.time(), {"real": 0.0, "shown": 0.0}
    monkeypatch.setattr(sign_in, "_ended", {})
    monkeypatch.setattr(sign_in, "_STARTED", now)
    monkeypatch.setattr(time, "time", lambda: now + clock["shown"])
    monkeypatch.setattr(time, "monotonic", lambda: clock["real"])
    monkeypatch.setattr(st, "logout", lambda: None)

    def enters(who: str, began: float) -> bool:
        monkeypatch.setattr(st, "user", User({"email": who, "iat": began}))
        return sign_in.signed_in()

    assert enters("anna@hospital.example", now)
    sign_in.sign_out()
    clock |= {"real": 60.0, "shown": moved}
    enters("ben@partner.example", now + 60)
    sign_in.sign_out()
    clock["shown"] = 120.0
    assert not enters("anna@hospital.example", now), "it was ended"
    assert enters("carl@hospital.example", now)
    clock |= {"real": sign_in.LASTS + 1, "shown": 180.0}
    assert not enters("carl@hospital.example", now), "it is twelve hours old, even if the clock shows another time"
    assert not enters("carl@hospital.example", now + 3 * sign_in.LASTS), "it began in the distant future"


def test_who_is_no_steward_any_more_spends_nothing(visit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    app = go(sample(visit(email="anna@hospital.example"), "hiring"), "release")
    held = state(app)
    monkeypatch.setattr(st, "user", User(dict(st.user) | {"email": "carl@hospital.example"}))
    press(app, "Spend")  # the button is still on the screen; its callback runs before the page
    assert held.job is None
    assert held.released is None
    assert not held.spent
    assert "Only a steward may do this" in sentences(app)
    assert not any(app.run().get(kind) for kind in CONTENT)


def test_who_is_no_steward_any_more_opens_no_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from espalier.pages.release import payment

    monkeypatch.setenv("ESPALIER_LEDGER", str(tmp_path / "ledger.db"))
    monkeypatch.setattr(sign_in, "role", lambda: "viewer")
    monkeypatch.setattr(st, "stop", lambda: (_ for _ in ()).throw(InterruptedError))
    with pytest.raises(InterruptedError):
        payment._open(Session(), "k", "nobody")
    assert not (tmp_path / "ledger.db").exists()


def test_who_has_not_signed_in_sees_a_door(visit: Any) -> None:
    app = visit()
    assert [b.label for b in app.button] == ["Sign in"]
    assert not app.file_uploader


def test_who_is_on_no_list_stays_outside(visit: Any) -> None:
    app = visit(email="eve@evil.example")
    assert "not on this server" in sentences(app)
    assert [b.label for b in app.button] == ["Sign out"]


def test_a_viewer_sees_only_what_is_shared(visit: Any) -> None:
    app = visit(email="carl@hospital.example")
    assert "Nothing is shared yet" in sentences(app)
    assert not app.file_uploader
    for page in ("data", "plan", "release", "diagnostics", "structure", "ledger"):
        with pytest.raises(ValueError, match="Could not find a navigation page"):
            app.switch_page(PAGE_FILES[page]).run()
    assert "espalier" not in app.session_state, "no page of a steward's ran"


PAGES = sorted(PAGE_FILES)
FOR_STEWARDS = [page for page in PAGES if page != "shared"]
CONTENT = ("file_uploader", "download_button", "metric", "dataframe", "text_input", "selectbox", "toggle")


@pytest.mark.parametrize("page", PAGES)
def test_every_page_asks_who_is_there_before_anything_else(page: str) -> None:
    body = ast.parse((ROOT / PAGE_FILES[page]).read_text("utf-8")).body
    done = [node for node in body[1:] if not isinstance(node, ast.Import | ast.ImportFrom)]
    assert ast.unparse(done[0]) == f"sign_in.enter({'viewer' if page == 'shared' else 'steward'!r})"


@pytest.mark.parametrize("page", FOR_STEWARDS)
def test_a_page_served_by_itself_refuses_a_viewer(visit: Any, page: str) -> None:
    app = visit(PAGE_FILES[page], email="carl@hospital.example")
    assert "Only a steward may do this" in sentences(app)
    assert [b.label for b in app.button] == ["Sign out"]
    assert not any(app.get(kind) for kind in CONTENT)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_served_by_itself_shows_a_stranger_the_door(visit: Any, page: str) -> None:
    app = visit(PAGE_FILES[page])
    assert [b.label for b in app.button] == ["Sign in"]
    assert not any(app.get(kind) for kind in CONTENT)
    assert "Shared releases" not in sentences(app)


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
    assert len(viewer.get("download_button")) == 3, "of two releases, only the shared one is shown"
    assert "register" not in sentences(viewer)
    for page in FOR_STEWARDS:
        viewer = visit(PAGE_FILES[page], email="ben@partner.example")
        assert "Only a steward may do this" in sentences(viewer)
        assert not any(viewer.get(kind) for kind in CONTENT)
    assert ledger.head() == before

    steward = visit(email="anna@hospital.example")
    steward.switch_page("pages/09_ledger.py").run()
    assert "register" in sentences(steward)
    assert steward.metric, "the content that is hidden from viewers exists"


def test_a_steward_shares_a_release_and_takes_it_back(visit: Any) -> None:
    app = visit(email="anna@hospital.example")
    finish(press(go(sample(app, "hiring"), "release"), "Spend"))
    assert shared.shared() == [], "nothing is shared without a request"
    made = state(app).released
    assert made is not None

    app.toggle(key="share-1").set_value(True).run()
    assert shared.files(shared.shared()[0].id) == made.files

    viewer = visit(email="ben@partner.example")
    assert [s.value for s in viewer.subheader] == ["hiring"]
    assert len(viewer.get("download_button")) == 3

    steward = visit(email="anna@hospital.example")
    assert any(b.label == "Open hiring" for b in steward.button)
    app.toggle(key="share-1").set_value(False).run()
    assert shared.shared() == []
    assert "Nothing is shared yet" in sentences(visit(email="ben@partner.example"))


def test_whose_rows_are_protected_is_said_of_what_is_shared(visit: Any) -> None:
    schema = Schema((Column("a", "categorical", ("x", "y")),))
    plan = Plan("independent", 1.0, 1e-6, person="who", rows_per_person=2, rows=60)
    text = read_table(b"a,who\n" + b"x,P1\ny,P2\nx,P3\n" * 20, "t.csv")
    shared.share(release(Project("t", schema, plan), Table.encode(text, schema, "who")).files)
    said = sentences(visit(email="ben@partner.example"))
    assert "`who`, at most 2" in said, said


def test_broken_secrets_let_nobody_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = tmp_path / "secrets.toml"
    secrets.write_text("[auth\n", "utf-8")
    monkeypatch.setattr(st.secrets, "load_if_toml_exists", lambda: False)
    monkeypatch.setattr(sign_in, "secret_files", lambda: [secrets])
    app = AppTest.from_function(_door, default_timeout=60).run()
    assert "cannot be read" in sentences(app)
    assert "inside" not in sentences(app)


@pytest.mark.parametrize(
    ("secrets", "why"),
    [
        ({"auth": {"client_id": "x", "cookie_secret": "short"}}, "fewer than 32 characters"),
        ({"auth": {"client_id": "x"}}, "fewer than 32 characters"),
        ({"roles": ROLES, "Auth": {}}, "has no [auth]"),
    ],
)
def test_secrets_that_keep_nobody_out_let_nobody_in(secrets: dict[str, Any], why: str) -> None:
    app = AppTest.from_function(_door, default_timeout=60)
    for key, value in secrets.items():
        app.secrets[key] = value
    app.run()
    assert why in sentences(app)
    assert "inside" not in sentences(app)


def test_a_door_that_was_shut_does_not_open_when_its_secrets_vanish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "inside" in sentences(AppTest.from_function(_door, default_timeout=60).run())
    monkeypatch.setattr(sign_in, "_asked", {tmp_path / "secrets.toml"})
    app = AppTest.from_function(_door, default_timeout=60).run()
    assert "no longer contains the sign-in settings" in sentences(app)
    assert "inside" not in sentences(app)


@pytest.mark.parametrize("address", ["0.0.0.0", "", None, "::", "192.0.2.7"])
def test_a_server_that_others_reach_asks_who_is_there(address: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = st.get_option
    monkeypatch.setattr(st, "get_option", lambda key: address if key == "server.address" else asked(key))
    app = AppTest.from_function(_door, default_timeout=60).run()
    assert "accepts connections from other machines" in sentences(app)
    assert "inside" not in sentences(app)


def test_a_page_of_another_address_makes_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Previously, Streamlit then asked a server on the internet for this machine's address."""
    monkeypatch.setattr(net_util, "_external_ip", None)
    monkeypatch.setattr(net_util, "_make_blocking_http_get", lambda *_, **__: pytest.fail("asked"))
    housekeeping.stay_silent()
    assert not is_url_from_allowed_origins("https://elsewhere.example")


def test_no_header_says_who_is_there(visit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit can take a person's address from a request header instead of from the provider."""
    asked = st.get_option
    trusted = {"server.trustedUserHeaders": {"X-Forwarded-Email": "email"}}
    monkeypatch.setattr(st, "get_option", lambda key: trusted.get(key, asked(key)))
    app = visit(email="anna@hospital.example")
    assert "names of people from request headers" in sentences(app)
    assert "Signed in as" not in sentences(app)


def _door() -> None:
    import streamlit as st

    from espalier.pages.common import sign_in

    sign_in.enter("steward")
    st.markdown("inside")


def test_only_releases_reach_the_shelf(shelf: Path) -> None:
    from espalier.core.errors import ProjectError

    files = dict.fromkeys(REQUIRED, b"x")
    with pytest.raises(ProjectError):
        shared.share({**files, "release.json": b'{"private": false}'})
    with pytest.raises(ProjectError, match="no longer shared"):
        shared.files("../../etc/passwd")
    shelf.mkdir()
    (shelf / "0123456789abcdef.zip").write_bytes(b"broken")
    assert shared.shared() == []
    with pytest.raises(ProjectError, match="no longer shared"):
        shared.files("0123456789abcdef")
