"""The tests' own OpenID Connect provider, and a person who signs in with it."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider(ThreadingHTTPServer):
    """A provider that signs every visitor in as ``address``."""

    address = ""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.key = rsa.generate_private_key(65537, 2048)
        self.nonces: dict[str, str] = {}
        self.url = f"http://127.0.0.1:{self.server_port}"

    def token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {
            "iss": self.url,
            "sub": self.address,
            "aud": "espalier",
            "iat": now,
            "exp": now + 600,
            "nonce": nonce,
            "email": self.address,
            "email_verified": True,
        }
        head = {"alg": "RS256", "kid": "k", "typ": "JWT"}
        body = ".".join(_encoded(json.dumps(part).encode()) for part in (head, claims))
        return f"{body}.{_encoded(self.key.sign(body.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def jwks(self) -> dict[str, Any]:
        numbers = self.key.public_key().public_numbers()
        n, e = (_encoded(x.to_bytes((x.bit_length() + 7) // 8, "big")) for x in (numbers.n, numbers.e))
        return {"keys": [{"kty": "RSA", "kid": "k", "alg": "RS256", "use": "sig", "n": n, "e": e}]}


class Answer(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        where, asked = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        url = self.server.url
        if where == "/authorize":
            self.server.nonces["code"] = asked["nonce"][0]
            self.send_response(302)
            back = urlencode({"code": "code", "state": asked["state"][0]})
            self.send_header("Location", f"{asked['redirect_uri'][0]}?{back}")
            self.end_headers()
        elif where == "/jwks":
            self._json(self.server.jwks())
        else:
            self._json(
                {
                    "issuer": url,
                    "authorization_endpoint": f"{url}/authorize",
                    "token_endpoint": f"{url}/token",
                    "jwks_uri": f"{url}/jwks",
                    "response_types_supported": ["code"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": ["RS256"],
                }
            )

    def do_POST(self) -> None:
        token = self.server.token(self.server.nonces["code"])
        self._json({"access_token": "x", "token_type": "Bearer", "expires_in": 600, "id_token": token})

    def _json(self, data: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(data).encode())

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


Guarded = tuple[str, Provider, Path]
"""A server's address, its sign-in provider, and the folder of its shared releases."""


@contextmanager
def signed_in(guarded: Guarded, browser: Any, address: str) -> Iterator[Any]:
    """A page of ``browser`` on which ``address`` has pressed "Sign in"."""
    url, guarded[1].address = guarded[0], address
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(url)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text(f"Signed in as {address}").wait_for()
    yield page
    context.close()
