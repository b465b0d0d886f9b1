"""Sign-in on a server that has just started, tested by a program that sends pages, addresses and messages in any
order.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.util import calc_hash
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value, generate_xsrf_token_string
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from espalier.core.project.file import Project
from espalier.core.release import shelf
from espalier.core.release.spend import release
from espalier.core.server import peer
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table
from tests.support.app import PAGE_FILES, ROOT, free_port

PAGES = sorted(PAGE_FILES)
SECRET = "of this test alone, and long enough"
SHOWN = b"Shared releases"
REFUSED = b"Another user of this machine started this app"
ELSEWHERE = b"A page from another address opened this app"


@dataclass
class Server:
    """A server that asks people to sign in, with one release on its shelf."""

    port: int
    kept: Path
    open: ExitStack

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def secrets(self) -> Path:
        return self.kept / "secrets.toml"

    def lists(self, steward: str = "anna@hospital.example", viewer: str = "ben@partner.example") -> None:
        """Write the secrets."""
        self.secrets.write_text(
            f"""[auth]
redirect_uri = "{self.url}/oauth2callback"
cookie_secret = "{SECRET}"
client_id = "espalier"
client_secret = "x"
server_metadata_url = "http://127.0.0.1:9/nowhere"
[roles]
steward = ["{steward}"]
viewer = ["{viewer}"]
""",
            "utf-8",
        )

    def get(self, path: str, posted: bytes | None = None) -> bytes:
        """Return the server's answer to anyone, including the body of an error."""
        try:
            with urllib.request.urlopen(f"{self.url}{path}", posted, timeout=20) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            return error.read()

    def put(self, session: str, name: str, data: bytes) -> int:
        """Upload a file into a session; return the status."""
        token = generate_xsrf_token_string()
        body = b'--b\r\nContent-Disposition: form-data; name="f"; filename="t.csv"\r\n\r\n' + data + b"\r\n--b--\r\n"
        asked = urllib.request.Request(
            f"{self.url}/_stcore/upload_file/{session}/{name}",
            body,
            method="PUT",
            headers={
                "Content-Type": "multipart/form-data; boundary=b",
                "X-Xsrftoken": token,
                "Cookie": f"_streamlit_xsrf={token}",
            },
        )
        try:
            with urllib.request.urlopen(asked, timeout=20) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def visitor(
        self, email: str = "", session: str = "", headers: dict[str, str] | None = None, page: str = "", **claims: Any
    ) -> Visitor:
        """Return a visitor with a socket; given an address, one who has signed in with it."""
        token = generate_xsrf_token_string()
        cookies = [f"_streamlit_xsrf={token}"]
        if email:
            said = {"iss": "i", "sub": email, "email": email, "email_verified": True, "iat": int(time.time())}
            user = said | {"origin": self.url, "is_logged_in": True, "provider": "default"} | claims
            signed = create_signed_value(claims.pop("secret", SECRET), "_streamlit_user", json.dumps(user))
            cookies.append(f"_streamlit_user={signed.decode()}")
        return Visitor(
            self.open.enter_context(
                connect(
                    f"ws://localhost:{self.port}/_stcore/stream",
                    origin=Origin(page or self.url),
                    subprotocols=[Subprotocol(x) for x in ("streamlit", token, session) if x],
                    additional_headers={"Cookie": "; ".join(cookies), **(headers or {})},
                    max_size=None,
                )
            )
        )


@dataclass
class Visitor:
    """Return the session of a visitor."""

    socket: ClientConnection
    session: str = ""

    def visit(self, page: str = "", by_hash: bool = False, press: tuple[str, ...] = ()) -> bytes:
        """Return everything that the server sends until the page is drawn; the buttons ``press`` are clicked."""
        asked = BackMsg()
        if by_hash:
            asked.rerun_script.page_script_hash = calc_hash(page)
        else:
            asked.rerun_script.page_name = page
        for button in press:
            asked.rerun_script.widget_states.widgets.append(WidgetState(id=button, trigger_value=True))
        asked.rerun_script.query_string = "page=shared&role=steward&email=anna@hospital.example"
        self.socket.send(asked.SerializeToString())
        came = []
        while True:
            data = self.socket.recv(timeout=60)
            assert isinstance(data, bytes)
            came.append(data)
            message = ForwardMsg.FromString(data)
            if message.WhichOneof("type") == "new_session":
                self.session = message.new_session.initialize.session_id or self.session
            if message.WhichOneof("type") != "script_finished":
                continue
            if message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                return b"".join(came)


def start(server: Server) -> subprocess.Popen[bytes]:
    """Return the app in a separate process, up to its first answer."""
    options = ("--server.headless=true", f"--server.port={server.port}", f"--secrets.files={server.secrets}")
    places = {"ESPALIER_LEDGER": str(server.kept / "ledger.db"), "ESPALIER_SHARED": str(server.kept / "shelf")}
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", *options],
        cwd=ROOT,
        env=os.environ | places,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(240):
        assert process.poll() is None, "the app ended before it answered"
        try:
            urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=1).close()
            assert b"window.opener) location.reload()" in server.visitor().visit(), (
                "its page was served before the server's rules were in place"
            )
            return process
        except OSError:
            time.sleep(0.25)
    process.terminate()
    raise AssertionError("the app did not answer within a minute")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made = Server(free_port(), tmp_path, ExitStack())
    made.lists()
    monkeypatch.setenv("ESPALIER_SHARED", str(tmp_path / "shelf"))
    project = Project.load(ROOT / "sample_data" / "hiring.json").with_plan(method="independent")
    table = Table.encode(read_table(ROOT / "sample_data" / "hiring.csv"), project.schema)
    shelf.share(release(project, table).files)
    process = start(made)
    try:
        with made.open:
            yield made
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.skipif(not peer.known(), reason="only Linux states the user of a connection")
def test_without_sign_in_only_the_user_who_started_the_server_is_served(tmp_path: Path) -> None:
    """Previously, each user of the machine was the steward, who reads the ledger and may spend. So was a web page of
    another port that the steward opened.
    """
    server = Server(free_port(), tmp_path, ExitStack())
    process = start(server)
    try:
        with server.open:
            own = server.visitor()
            assert server.put(own.session, "f", b"x") == 403
            assert b"Begin with an example" in own.visit()
            assert server.put(own.session, "f", b"x") == 204
            with urllib.request.urlopen(server.url, timeout=20) as page:
                assert page.headers["Content-Security-Policy"] == "frame-ancestors 'self'", "no other page frames it"
            host, port, *_ = own.socket.local_address
            for headers in ({}, {"X-Forwarded-For": f"[{host}]:{port}"}, {"X-Forwarded-For": f"{host}:{port}"}):
                os.seteuid(65534)
                try:
                    stranger = server.visitor(headers=headers)
                finally:
                    os.seteuid(0)
                for page in ("", "ledger"):
                    assert REFUSED in stranger.visit(page), headers
                assert server.put(stranger.session, "f", b"x") == 403, headers
            assert REFUSED not in own.visit("ledger")
            assert REFUSED in server.visitor(headers={"X-Forwarded-For": "192.0.2.7"}).visit(), "a proxy"
            for page in ("http://localhost:9", "http://127.0.0.1"):
                assert ELSEWHERE in server.visitor(page=page).visit("ledger"), "a page of another port"
            own.socket.close()
            os.seteuid(65534)
            try:
                thief = server.visitor(session=own.session)
            finally:
                os.seteuid(0)
            assert REFUSED in thief.visit("ledger"), "previously, a session was checked once"
            assert thief.session == own.session
            again = server.visitor(session=own.session)
            assert REFUSED not in again.visit("ledger")
    finally:
        process.terminate()
        process.wait(20)


def media(came: bytes) -> list[str]:
    """Return the addresses of the files that a page offered."""
    return [found.decode() for found in re.findall(rb"/media/[0-9a-z]+\.\w+", came)]


def test_a_stranger_sees_nothing_whatever_comes_first(server: Server) -> None:
    """Fails if a page leaves the check to ``app.py``: before ``st.navigation``, Streamlit serves pages without it."""
    asked = [
        *((page, by_hash) for page in PAGES for by_hash in (False, True)),
        ("SHARED", False),
        ("common/sign_in", False),
    ]
    for page, by_hash in [*asked, ("", False)]:
        came = server.visitor().visit(page, by_hash)
        assert SHOWN not in came, (page, by_hash)
        assert b"hiring" not in came, (page, by_hash)
        assert b"Begin with an example" not in came, (page, by_hash)
        assert media(came) == [], (page, by_hash)
    assert b"Sign in" in server.visitor().visit("shared", by_hash=True), "after the navigation too"


@pytest.mark.nightly
def test_each_sees_on_a_fresh_server_what_the_lists_say(server: Server) -> None:
    viewer = server.visitor("ben@partner.example")
    came = viewer.visit("shared")
    assert SHOWN in came
    assert b"hiring" in came
    files = media(came)
    assert len(files) == 3, "a page that strangers must not see exists"
    assert b"," in server.get(files[0])
    for page in PAGES:
        if page != "shared":
            came = server.visitor("ben@partner.example").visit(page)
            assert b"Only a steward may do this" in came, page
            assert media(came) == [], page
    for claims in (
        {"email_verified": False},
        {"email_verified": "false"},
        {"iat": 0},
        {"iat": None},
        {"origin": "http://evil"},
        {"is_logged_in": False},
        {"secret": "another"},
    ):
        assert SHOWN not in server.visitor("ben@partner.example", **claims).visit("shared"), claims
    steward = server.visitor("anna@hospital.example")
    came = steward.visit()
    assert b"Begin with an example" in came
    buttons = tuple(x.decode() for x in re.findall(rb"\$\$ID-[0-9a-f]{32}-[\w-]+", came + steward.visit("ledger")))
    assert buttons

    viewer = server.visitor("ben@partner.example")
    for page in ("", "data", "release", "ledger"):
        came = viewer.visit(page, by_hash=True, press=buttons)
        assert b"Begin with an example" not in came, "the steward's widgets do nothing in a viewer's session"
        assert b"Open: " not in came
    assert not (server.kept / "ledger.db").exists()

    for thief in (server.visitor(session=steward.session), server.visitor("ben@partner.example", steward.session)):
        assert b"Begin with an example" not in thief.visit(), "a session's number alone opens nothing"


@pytest.mark.nightly
def test_what_streamlit_serves_by_itself_tells_nothing(server: Server) -> None:
    steward = server.visitor("anna@hospital.example")
    steward.visit()
    assert server.put(steward.session, "f", b"x" * 54_321) == 204
    told = server.get("/_stcore/metrics")
    assert b"UploadedFile" not in told, "the size of another visitor's table"
    assert b"session" not in told
    assert server.put("00000000-0000-0000-0000-000000000000", "f", b"x") == 403, "only into a steward's session"
    for other in (server.visitor("ben@partner.example"), server.visitor()):
        other.visit()
        assert server.put(other.session, "f", b"x") == 403
    page = server.get("/")
    assert b"<html" in page
    for path in (
        "/shared",
        "/pages/11_shared.py",
        "/app.py",
        "/.streamlit/secrets.toml",
        "/app/static/app.py",
        "/static/app.py",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/component/board/../../app.py",
        "/media/../app.py",
        "/media/",
        "/_stcore/script-health-check",
        "/_stcore/bidi-components/../app.py",
        "/~/+/shared",
        "/shared/_stcore/stream",
    ):
        got = server.get(path)
        assert got == page or len(got) < 200, path
        assert b"cookie_secret" not in got, path
        assert b"import streamlit" not in got, path
    assert b"does not serve the agent API" in server.get("/_stcore/agent/interact", b"{}")


@pytest.mark.nightly
def test_lists_that_change_count_at_once_and_secrets_that_forget_the_door_open_nothing(server: Server) -> None:
    anna = server.visitor("anna@hospital.example")
    assert b"Begin with an example" in anna.visit()

    def until(wanted: bytes, somebody: Visitor) -> bytes:
        for _ in range(60):
            if wanted in (came := somebody.visit()):
                return came
            assert somebody is anna or b"Begin with an example" not in came
            time.sleep(0.5)
        raise AssertionError(f"{wanted!r} was never said")

    server.lists(steward="dora@hospital.example")
    assert b"Begin with an example" not in until(b"Your address is not on this server's lists", anna)
    stranger = server.visitor()
    assert b"Sign in" in stranger.visit()
    server.secrets.write_text("database = 'x'", "utf-8")
    assert b"no longer contains the sign-in settings" in until(b"access is blocked", stranger)
    assert SHOWN not in server.visitor().visit("shared")
