"""Ed25519 keys and signatures. A key is made once, stored encrypted, and used to sign statements.

The private key's file is encrypted with a passphrase and is never stored in the folder of a project or a release.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from espalier.core.errors import ProjectError
from espalier.core.limited_file import read_limited, write_new
from espalier.core.statement.claims import canonical

SIGNED = "espalier-signature/1"
KEY, PASSPHRASE = "ESPALIER_SIGNING_KEY", "ESPALIER_KEY_PASSPHRASE"
"""Environment variables that name the file of the server's private key, and its passphrase."""
LONGEST_KEY = 1 << 20
"""Maximum size of a key file in bytes."""
SHORTEST = 8
"""Minimum length of a passphrase."""


@dataclass(frozen=True)
class Signer:
    """A private key that is ready to sign. ``public`` is its raw public key."""

    private: Any
    public: bytes

    @property
    def facts(self) -> dict[str, str]:
        """Statement's entry about its signer."""
        return {"algorithm": "Ed25519", "fingerprint": fingerprint(self.public)}

    def sign(self, statement: Mapping[str, Any]) -> bytes:
        """Return ``statement.sig``, which contains the signature of the statement's canonical form and the public
        key; raise :class:`ProjectError` for a statement that is not text.
        """
        try:
            content = canonical(statement)
        except ValueError:  # half a surrogate pair
            raise ProjectError("the statement contains characters that are not text, so it cannot be signed") from None
        made = {
            "format": SIGNED,
            **self.facts,
            "public_key": base64.b64encode(self.public).decode(),
            "signature": base64.b64encode(self.private.sign(content)).decode(),
        }
        return (json.dumps(made, indent=1) + "\n").encode()


def fingerprint(public: bytes) -> str:
    """Return the SHA-256 of a raw public key in hexadecimal."""
    return hashlib.sha256(public).hexdigest()


def new_key(path: Path, passphrase: str) -> Signer:
    """Make a key. Write the encrypted private key to ``path`` and the public key to ``path`` with ``.pub`` added.

    Raises :class:`ProjectError` for a short passphrase, an existing file, or a folder of a project or release.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if not path.name:
        raise ProjectError(f"{path} is not the name of a new file", path=str(path))
    public_path = path.with_name(f"{path.name}.pub")
    if len(passphrase) < SHORTEST:
        raise ProjectError(f"the passphrase of a key needs at least {SHORTEST} characters")
    if path.parent.is_dir() and (found := _project_in(path.parent)):
        raise ProjectError(
            f"{path.parent} contains a project or a release ({found}); keep private keys in another folder"
        )
    for one in (path, public_path):
        if one.exists():
            raise ProjectError(f"{one} already exists; nothing is overwritten", path=str(one))
    private = Ed25519PrivateKey.generate()
    try:
        secret = private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(passphrase.encode()),
        )
    except ValueError:  # the library's own limit, or bytes that are not UTF-8
        raise ProjectError("the passphrase of a key must be text of at most 1,000 characters") from None
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_new(public_path, public, 0o644)  # a link is an existing file
        try:
            write_new(path, secret, 0o600)
        except OSError:
            public_path.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ProjectError(f"cannot write {path}: {error.strerror or error}", path=str(path)) from None
    return _signer(private)


def load_signer(path: Path, passphrase: str) -> Signer:
    """Return the private key in ``path``; raise :class:`ProjectError` for any other file or a wrong passphrase."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        data = read_limited(path, LONGEST_KEY)
    except OSError as error:
        raise ProjectError(f"cannot read {path}: {error.strerror or error}", path=str(path)) from None
    try:
        private = load_pem_private_key(data, passphrase.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ProjectError(
            f"{path} is not an encrypted private key, or the passphrase is wrong; make keys with `espalier keys new`"
        ) from None
    if not isinstance(private, Ed25519PrivateKey):
        raise ProjectError(f"{path} is not an Ed25519 key; make one with `espalier keys new`", path=str(path))
    return _signer(private)


def server_signer() -> Signer | None:
    """Return the key with which the server signs, from `KEY` and `PASSPHRASE`; `None` if none is configured."""
    path = os.environ.get(KEY)
    return load_signer(Path(path), os.environ.get(PASSPHRASE, "")) if path else None


def _signer(private: Any) -> Signer:
    return Signer(private, private.public_key().public_bytes_raw())


def _project_in(folder: Path) -> str:
    """Return the name of a project file or a ``release.json`` in ``folder``; empty if there is none."""
    for path in sorted(folder.glob("*.json")):
        try:
            if not path.is_file():  # reading a pipe may never end
                continue
            with path.open("rb") as file:
                head = file.read(200)
        except OSError:
            continue
        if b"espalier-project/" in head or b"espalier-release/" in head:
            return path.name
    return ""
