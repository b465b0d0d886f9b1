"""Keyed fingerprints: is this the table that was released from before? Without the key a fingerprint says nothing.

A mark is ``key:nonce:tag``. ``key`` names the secret that made it, ``nonce`` is drawn anew each time and ``tag`` is
HMAC-SHA256 of nonce and table digest under the secret. Without the secret a tag looks like random text, so
it does not reveal the table, and since each mark has its own nonce, two marks do not even show whether their tables
were equal. Anyone who holds the secret and a table can check whether the mark is of that table, and nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

KEY_BYTES = 32


def mark(secret: bytes, digest: bytes) -> str:
    """A new mark of the table with this ``digest`` (:attr:`espalier.core.tables.table.Table.digest`)."""
    nonce = secrets.token_hex(16)
    return f"{key_name(secret)}:{nonce}:{_tag(secret, nonce, digest)}"


def matches(secret: bytes, digest: bytes, made: str) -> bool | None:
    """Return whether ``made`` is a mark of this table; None if it was made with another secret, or is no mark."""
    key, _, rest = made.partition(":")
    nonce, _, tag = rest.partition(":")
    if key != key_name(secret) or not tag:
        return None
    return hmac.compare_digest(tag, _tag(secret, nonce, digest))


def key_name(secret: bytes) -> str:
    """Return the name of a secret: a hash that does not reveal it."""
    return hashlib.sha256(b"espalier ledger key" + secret).hexdigest()[:8]


def _tag(secret: bytes, nonce: str, digest: bytes) -> str:
    return hmac.new(secret, nonce.encode() + b":" + digest, hashlib.sha256).hexdigest()
