"""A server for all browser tests, and a person at the screen for each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.app import free_port
from tests.support.browser import Person, chromium, serving
from tests.support.sign_in import Guarded, Provider


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    with serving(port, tmp_path_factory.mktemp("kept")):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """One browser for the tests of this folder. Its event loop would interfere with the tests of other folders."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="package")
def context(browser: Any) -> Any:
    """The context that the tabs of all tests share: cookies, and the app's compiled scripts, which take seconds for
    each tab."""
    return browser.new_context(viewport={"width": 1280, "height": 1400}, has_touch=True)


@pytest.fixture
def person(context: Any, address: str) -> Iterator[Person]:
    """A person with a separate tab, and therefore a separate session."""
    page = context.new_page()
    page.set_default_timeout(60_000)
    someone = Person(page)
    page.goto(f"{address}/data")
    yield someone
    for tab in context.pages:
        tab.close()


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
