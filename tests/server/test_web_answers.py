"""Headers of the web server's answers, and who may upload."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from espalier.core.server import doors

FRAMED = {"content-security-policy": "*", "X-Frame-Options": "ALLOWALL", "content-type": "text/html"}


def answer(path: str, method: str = "GET") -> tuple[int, dict[str, str]]:
    """Return status and headers of one answer; the server behind the doors allows everything."""
    sent: list[MutableMapping[str, Any]] = []

    async def server(_scope: Any, _receive: Any, send: Any) -> None:
        headers = [(k.encode(), v.encode()) for k, v in FRAMED.items()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def served() -> None:
        await doors.Doors(server)({"type": "http", "path": path, "method": method}, receive, send)

    with ThreadPoolExecutor(1) as apart:  # a browser test before this one leaves a loop running in its thread
        apart.submit(lambda: asyncio.run(served())).result()
    named = [(k.decode().lower(), v.decode()) for k, v in sent[0]["headers"]]
    assert len({k for k, _ in named}) == len(named)
    return sent[0]["status"], dict(named)


@pytest.mark.parametrize("path", ["/", "/data", "/_stcore/host-config", "/base/_stcore/health"])
def test_no_other_site_may_frame_or_embed_the_app(path: str) -> None:
    """Previously, any page could frame an app on this machine and lay its own picture over the buttons."""
    status, headers = answer(path)
    assert status == 200
    assert headers == doors.HEADERS | {"content-type": "text/html"}
    assert headers["content-security-policy"] == "frame-ancestors 'self'"


def test_a_file_that_a_page_offers_runs_no_script() -> None:
    assert "sandbox" in answer("/base/media/0a.svg")[1]["content-security-policy"]


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_only_admitted_sessions_upload(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Previously, anyone who had opened a connection could fill the server's memory."""
    monkeypatch.setattr(doors, "admitted", {"anna"})
    assert answer("/base/_stcore/upload_file/anna/1", method)[0] == 200
    for path in ("ben/1", "/anna/1", "anna%2f/1", "", "anna1/1"):
        status, headers = answer(f"/_stcore/upload_file/{path}", method)
        assert status == 403, path
        assert headers["content-security-policy"] == "frame-ancestors 'self'"
