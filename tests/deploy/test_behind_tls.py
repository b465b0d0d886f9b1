"""The server as the kit runs it: `espalier serve` behind TLS, with a local OpenID Connect provider."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from espalier.core.server import doctor
from tests.support.app import ROOT, free_port
from tests.support.browser import _await, chromium
from tests.support.sign_in import Provider, signed_in
from tests.support.tls import certificate, proxy

pytestmark = [pytest.mark.browser, pytest.mark.nightly]

SECRETS = """[auth]
redirect_uri = "https://localhost:{tls}/oauth2callback"
cookie_secret = "of this test alone, and long enough"
client_id = "espalier"
client_secret = "x"
server_metadata_url = "{provider}/.well-known/openid-configuration"
[roles]
steward = ["anna@hospital.example"]
"""


def test_people_sign_in_through_the_proxy(tmp_path, monkeypatch):
    provider, web, tls, ask = Provider(), free_port(), free_port(), free_port()
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    secrets = tmp_path / "secrets.toml"
    secrets.write_text(SECRETS.format(tls=tls, provider=provider.url))
    secrets.chmod(0o600)
    log = tmp_path / "audit.jsonl"
    given = {"ESPALIER_AUDIT_LOG": str(log), "ESPALIER_LEDGER": str(tmp_path / "ledger.db")}
    command = [sys.executable, "-m", "core", "serve", "--host", "localhost", "--secrets", str(secrets)]
    server = subprocess.Popen(
        [*command, f"--port={web}", f"--monitor={ask}"],
        cwd=ROOT,
        env=os.environ | given,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    pem = certificate(tmp_path)
    try:
        _await(f"http://127.0.0.1:{web}/_stcore/health", server)
        with proxy(tls, web, pem), chromium() as browser:
            monkeypatch.setattr(
                browser, "new_context", lambda make=browser.new_context: make(ignore_https_errors=True), raising=False
            )
            guarded = f"https://localhost:{tls}", provider, tmp_path
            with signed_in(guarded, browser, "anna@hospital.example") as page:
                page.get_by_text("Begin with an example").first.wait_for()
                page.goto(f"https://localhost:{tls}/data")
                page.locator("[data-testid=stFileUploader]").nth(1).wait_for()
                page.get_by_role("button", name="Sign out").click()
                page.get_by_role("button", name="Sign in").wait_for()
            with signed_in(guarded, browser, "eve@evil.example") as page:
                page.get_by_text("Your address is not on this server's lists").first.wait_for()
            monkeypatch.setenv("SSL_CERT_FILE", str(pem))
            (line,) = doctor._proxy(f"localhost:{tls}")
            assert (line.state, "days" in line.text) == ("ok", True)
    finally:
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=60)
        provider.shutdown()
        provider.server_close()
    events = [(e["event"], e["who"]) for e in map(json.loads, log.read_text().splitlines())]
    assert events[0] == ("start", "")
    assert ("sign-in", "anna@hospital.example") in events
    assert ("sign-out", "anna@hospital.example") in events
    assert ("refuse", "eve@evil.example") in events
    assert events[-1] == ("stop", "")
    lines = [json.loads(line) for line in said.decode().splitlines() if line.startswith("{")]
    assert lines, "logs are JSON"
    assert "cookie" not in said.decode()
