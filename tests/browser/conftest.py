"""A server for all browser tests, and somebody at the screen for each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.app import free_port
from tests.support.browser import CHROMIUM, FLAGS, Person, serving
from tests.support.sign_in import Guarded, Provider


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    with serving(port, tmp_path_factory.mktemp("kept")):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def person(address: str, tmp_path: Path) -> Iterator[Person]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            tmp_path, executable_path=CHROMIUM, args=FLAGS, viewport={"width": 1280, "height": 1400}, has_touch=True
        )
        page = context.pages[0] if context.pages else context.new_page()
        page.set_default_timeout(30_000)
        someone = Person(page)
        page.goto(f"{address}/data")
        yield someone
        context.close()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """The app with sign-in, and its provider."""
    provider, port, kept = Provider(), free_port(), tmp_path_factory.mktemp("kept")
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    secrets = tmp_path_factory.mktemp("secrets") / "secrets.toml"
    secrets.write_text(
        f"""[auth]
redirect_uri = "http://localhost:{port}/oauth2callback"
cookie_secret = "of this test alone, and long enough"
client_id = "espalier"
client_secret = "x"
server_metadata_url = "{provider.url}/.well-known/openid-configuration"
[roles]
steward = ["anna@hospital.example"]
viewer = ["@partner.example"]
""",
        "utf-8",
    )
    with serving(port, kept, f"--secrets.files={secrets}"):
        yield f"http://localhost:{port}", provider, kept / "shelf"
    provider.shutdown()
    provider.server_close()
