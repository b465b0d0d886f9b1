"""Keyed fingerprints that recognise a previously released table. Without the key, a fingerprint reveals nothing.

A mark is ``key:nonce:tag``. ``key`` names the secret that made it, ``nonce`` is drawn anew each time, and ``tag`` is
HMAC-SHA256 of nonce and table digest under the secret. Linked tables have one digest and one tag for each table,
``tag,tag``, so either table is recognised on its own. Without the secret, a tag looks like random text and does not
reveal the table. Since each mark has its own nonce, two marks do not even show whether their tables were equal. Anyone
who holds the secret and a table can check whether the mark belongs to that table, but learns nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

KEY_BYTES = 32
DIGEST_BYTES = 32
"""Length of the digest of one table."""


def mark(secret: bytes, digest: bytes) -> str:
    """Return a new mark for the table with this ``digest`` (:attr:`espalier.core.tables.table.Table.digest`)."""
    nonce = secrets.token_hex(16)
    return f"{key_name(secret)}:{nonce}:{','.join(_tags(secret, nonce, digest))}"


def matches(secret: bytes, digest: bytes, made: str, *, whole: bool = False) -> bool | None:
    """Return whether ``made`` is a mark of this table; `None` if it was made with another secret or is not a mark.

    For linked tables, one match is enough unless ``whole`` requires all tables to match.
    """
    key, _, rest = made.partition(":")
    nonce, _, tags = rest.partition(":")
    if key != key_name(secret) or not tags:
        return None
    mine, theirs = _tags(secret, nonce, digest), tags.split(",")
    found = [any(hmac.compare_digest(tag, other) for other in theirs) for tag in mine]
    return all(found) and len(mine) == len(theirs) if whole else any(found)


def key_name(secret: bytes) -> str:
    """Return the name of a secret: a hash that does not reveal it."""
    return hashlib.sha256(b"espalier ledger key" + secret).hexdigest()[:8]


def _tags(secret: bytes, nonce: str, digest: bytes) -> list[str]:
    """Return the tag of each table in a digest."""
    ends = range(0, len(digest), DIGEST_BYTES) if len(digest) % DIGEST_BYTES == 0 else (0,)
    if len(ends) < 2:
        return [_tag(secret, nonce, digest)]
    return [_tag(secret, nonce, digest[i : i + DIGEST_BYTES]) for i in ends]


def _tag(secret: bytes, nonce: str, digest: bytes) -> str:
    return hmac.new(secret, nonce.encode() + b":" + digest, hashlib.sha256).hexdigest()
