"""The wheel outside this clone: what it contains, its commands, and every page of its app in a real browser."""

from __future__ import annotations

import ast
import os
import socket
import subprocess
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.support.app import ROOT, free_port
from tests.support.browser import CHROMIUM, FLAGS, Person, answering
from tests.support.installed import environment, metadata, wheel

PAGES = ("Home", "Data", "Structure", "Plan", "Release", "Analyse", "Diagnostics", "Compare", "Ledger", "Glossary")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def bare(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel without any extra: no Streamlit, no openpyxl, no driver."""
    return environment(tmp_path_factory.mktemp("bare"), built)


@pytest.fixture(scope="module")
def full(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("full"), built, "app", "formats")


def run(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run one command in a folder outside the clone."""
    return subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True)


def espalier(python: Path, folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return run(folder, python.with_name("espalier"), *args)


def test_the_wheel_holds_the_product_and_nothing_else(built):
    with zipfile.ZipFile(built) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
        licences = {Path(name).name for name in archive.namelist() if "/licenses/" in name}
    assert {name.split("/")[0] for name in inside} == {"espalier"}
    rooms = ("core", "pages", "sample_data", "verifier")
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *rooms]
    tracked = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    wanted = {f"espalier/{name}" for name in tracked if name and not name.endswith(".md")}
    own = {"espalier/__init__.py", "espalier/app.py", "espalier/py.typed", "espalier/.streamlit/config.toml"}
    assert inside == wanted | own
    assert licences == {"LICENSE", "NOTICE"}


@pytest.mark.parametrize("name", ["app.py", "espalier/app.py"])
def test_streamlit_finds_nothing_to_show_in_its_main_script(name):
    """Streamlit writes every bare expression of the script that it runs onto each page, even a constant's docstring."""
    body = ast.parse((ROOT / name).read_text("utf-8")).body
    bare = [node for node in body[1:] if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call)]
    assert not bare


def test_only_espalier_is_imported_from_it(bare, tmp_path):
    code = """
import importlib.util, sys, espalier
assert espalier.__file__.startswith(sys.prefix)
for name in ("core", "pages", "sample_data", "streamlit", "pyvis", "plotly", "openpyxl", "psycopg", "pytest"):
    assert importlib.util.find_spec(name) is None, name
"""
    got = run(tmp_path, bare, "-c", code)
    assert got.returncode == 0, got.stderr


def test_a_release_needs_no_streamlit(bare, tmp_path):
    """`demo`, `init`, `plan`, `release`, `evaluate` and a notebook's import, with only the default libraries."""
    assert espalier(bare, tmp_path, "--version").stdout.strip() == f"espalier {_version()}"
    got = espalier(bare, tmp_path, "demo", "--sample", "hiring", "--out", "demo")
    assert got.returncode == 0, got.stderr
    code = """
from espalier.core.cli.main import main
for line in (
    "plan demo/project.json --rows 6000",
    "init demo/synthetic.csv --out draft.json",
    "release demo/project.json --data demo/synthetic.csv --out again",
    "evaluate again --data demo/synthetic.csv",
):
    assert main(line.split()) == 0, line
import espalier as es, pandas as pd
frame = pd.read_csv("demo/synthetic.csv", dtype=str, keep_default_na=False)
assert es.release(es.Project.load("demo/project.json"), frame).rows == len(frame)
"""
    got = run(tmp_path, bare, "-c", code)
    assert got.returncode == 0, got.stderr


@pytest.mark.parametrize(
    ("extra", "args"),
    [
        ("app", ("app",)),
        ("formats", ("init", "table.xlsx")),
        ("postgres", ("ledger", "list", "--ledger", "postgresql://server/ledger")),
        ("postgres", ("init", "postgresql://server/warehouse", "--relation", "t")),
    ],
)
def test_what_an_extra_brings_is_named_where_it_is_missing(bare, tmp_path, extra, args):
    (tmp_path / "table.xlsx").write_bytes(b"PK\x03\x04")
    got = espalier(bare, tmp_path, *args)
    assert got.returncode == 2
    assert f"[{extra}]" in got.stderr
    assert len(got.stderr.strip().splitlines()) == 1


@pytest.fixture(scope="module")
def port(full: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The installed app, started by its own command in an empty folder."""
    port, folder = free_port(), tmp_path_factory.mktemp("elsewhere")
    [page] = full.parent.parent.glob("lib/*/site-packages/espalier/pages/10_glossary.py")
    with page.open("a") as file:  # an error, to see that no detail of it is shown
        file.write("\nimport streamlit\nif 'broken' in streamlit.query_params: raise ValueError('a private value')\n")
    command = [str(full.with_name("espalier")), "app", "--no-browser", f"--port={port}"]
    with answering(command, port, folder, tmp_path_factory.mktemp("kept")):
        yield port


def test_the_installed_server_is_closed_by_default(port):
    """Read from the running server: Streamlit's own defaults are the opposite of each of these."""
    socket.create_connection(("127.0.0.1", port), 5).close()
    with pytest.raises(ConnectionRefusedError):  # this address answers if the server listens on all addresses
        socket.create_connection(("127.0.0.2", port), 5)
    with connect(f"ws://127.0.0.1:{port}/_stcore/stream", subprotocols=[Subprotocol("streamlit")]) as opened:
        asked = BackMsg()
        asked.rerun_script.query_string = ""
        opened.send(asked.SerializeToString())
        message = ForwardMsg()
        while message.WhichOneof("type") != "new_session":
            message = ForwardMsg.FromString(opened.recv(timeout=30))
        config, session = message.new_session.config, message.new_session.initialize.session_id
        assert not config.gather_usage_stats
        assert config.disable_data_export
        while message.WhichOneof("type") != "script_finished":  # a page admits its session to uploads
            message = ForwardMsg.FromString(opened.recv(timeout=30))
        url = f"http://127.0.0.1:{port}/_stcore/upload_file/{session}/f"
        body = b'--b\r\nContent-Disposition: form-data; name="f"; filename="t.csv"\r\n\r\nx\r\n--b--\r\n'
        upload = urllib.request.Request(url, body, {"Content-Type": "multipart/form-data; boundary=b"}, method="PUT")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(upload, timeout=20)
        with refused.value as answer:
            assert answer.code == 403, "an upload without the token against forged requests"
        token = generate_xsrf_token_string()
        upload.add_header("X-Xsrftoken", token)
        upload.add_header("Cookie", f"_streamlit_xsrf={token}")
        with urllib.request.urlopen(upload, timeout=20) as answer:
            assert answer.status < 300


@pytest.mark.nightly
@pytest.mark.browser
def test_every_page_of_the_installed_app_opens(port, tmp_path):
    """A sample is released, so that each page has something to draw. None fails or fetches anything from outside."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            tmp_path, executable_path=CHROMIUM, args=FLAGS, viewport={"width": 1280, "height": 1400}
        )
        person = Person(context.pages[0])
        person.page.set_default_timeout(30_000)
        person.page.goto(f"http://127.0.0.1:{port}")
        person.press("Open hiring")
        person.press("Go straight to the release")
        person.press("Spend ε = 1 and release")
        person.sees(": 6,000 synthetic rows")
        for page in PAGES:
            person.visit(page, "Espalier" if page == "Home" else page)
            person.rests()
            person.fine()
            if page == "Structure":
                person.paints(".canvas")
            if folder := os.environ.get("ESPALIER_PICTURES"):
                person.page.screenshot(path=f"{folder}/{page}.png")
        person.page.goto(f"http://127.0.0.1:{port}/glossary?broken=yes")
        person.page.locator("[data-testid=stException]").wait_for()
        assert "private value" not in person.page.content()
        assert "ValueError" not in person.page.content()
        context.close()


def test_the_metadata_names_extras_and_version(built):
    said = metadata(built)
    assert (said["Name"], said["Version"]) == ("espalier-tables", _version())
    assert set(said.get_all("Provides-Extra", [])) == {"app", "formats", "postgres", "mysql", "spark"}
    plain = [text for text in said.get_all("Requires-Dist", []) if "extra ==" not in text]
    assert not [text for text in plain if text.startswith(("streamlit", "pyvis", "plotly", "psycopg", "openpyxl"))]


def _version() -> str:
    import espalier

    return espalier.__version__
