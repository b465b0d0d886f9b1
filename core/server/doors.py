"""Responses of the app's web server: no page of another site may embed them, and only admitted sessions may upload
files.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]

HEADERS = {
    "content-security-policy": "frame-ancestors 'self'",
    "x-frame-options": "SAMEORIGIN",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
"""Headers of every response. They prevent other sites from framing the app, keeping a reference to its window, and
loading its files.
"""
IN_A_SANDBOX = "frame-ancestors 'self'; sandbox"
"""Policy for a file that a page offers: if a browser displays the file, no script in it runs as part of the app."""
_MARK = "espalier.doors"
_UPLOADS, _FILES = "/_stcore/upload_file/", "/media/"

admitted: set[str] = set()
"""Sessions that may upload files. Streamlit itself accepts uploads from everyone who has opened a connection."""


class Doors:
    """An ASGI web server that enforces these rules."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Answer one request."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        scope[_MARK] = True
        path = str(scope["path"])
        own = HEADERS | ({"content-security-policy": IN_A_SANDBOX} if _FILES in path else {})

        async def closed(message: Message) -> None:
            if message["type"] == "http.response.start":
                others = [(k, v) for k, v in message.get("headers", ()) if k.decode("latin-1").lower() not in own]
                message["headers"] = [*others, *((k.encode(), v.encode()) for k, v in own.items())]
            await send(message)

        if scope["type"] == "http" and _UPLOADS in path and scope["method"] != "OPTIONS":
            session = path.partition(_UPLOADS)[2].partition("/")[0]
            if session not in admitted:
                await closed({"type": "http.response.start", "status": 403, "headers": [(b"content-length", b"0")]})
                await closed({"type": "http.response.body", "body": b""})
                return
        await self._app(scope, receive, closed)


def close() -> None:
    """Wrap every server that Streamlit starts from now on in :class:`Doors`."""
    built: Any = importlib.import_module("streamlit.web.server.starlette.starlette_app")
    middleware: Any = importlib.import_module("starlette.middleware")
    make = built.create_streamlit_middleware
    built.create_streamlit_middleware = lambda: [middleware.Middleware(Doors), *make()]


def closed(scope: Message) -> bool:
    """Return whether this connection came through :class:`Doors`.

    If not, ``streamlit run`` started the server without these rules, and they are added now. In that case, the first
    page was sent without the headers. It must be loaded again if it is in a frame or was opened by another page.
    """
    if scope.get(_MARK):
        return True
    server = scope["app"]
    if not isinstance(server.middleware_stack, Doors):
        server.middleware_stack = Doors(server.middleware_stack)
    return False
