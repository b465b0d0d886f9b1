"""Check 1: the files of a release folder are those of its statement, and the statement is signed."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import zipfile
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

STATEMENT, SIGNATURE = "statement.json", "statement.sig"
MOST_BYTES = 1 << 30
MOST_PERIODS = 1000
KNOWN = re.compile(
    r"(synthetic|synthetic-NOT-PRIVATE|synthetic-whole|questions)\.csv|synthetic\.parquet|statement\.sig"
    r"|(release|project|croissant|statement)\.json|(report|report-NOT-PRIVATE|label)\.html|registry\.yaml"
    r"|(model|answers)\.npz|copies/\d{2,3}\.(csv\.gz|npz)"
)


class Unreadable(Exception):
    """The folder holds no release that can be read."""


@dataclass
class Finding:
    """One line of the result: the number of its check, whether it holds (None: it could not be tested), and a text."""

    check: int
    holds: bool | None
    text: str


@dataclass
class Folder:
    """A release folder: its JSON files, and the findings so far. ``statement`` is None for an old release."""

    path: Path
    facts: dict[str, Any]
    statement: dict[str, Any] | None
    findings: list[Finding] = field(default_factory=list)

    def add(self, check: int, holds: bool | None, text: str) -> bool:
        """Record a finding; returns whether it holds."""
        self.findings.append(Finding(check, holds, text))
        return bool(holds)

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        return (self.path / name).read_bytes()

    def has(self, name: str) -> bool:
        """Return whether the folder holds a file of this name."""
        return (self.path / name).is_file()

    @property
    def sizes(self) -> dict[str, int]:
        """The columns of the table with their numbers of codes, from the project's schema."""
        return {c["name"]: codes_of(c) for c in self.facts["project"]["schema"] if c["kind"] != "identifier"}


def codes_of(column: dict[str, Any]) -> int:
    """Number of codes of a column: bins or categories, and one more where cells may be missing."""
    kept = column["categories"] if "categories" in column else edges_of(column)[1:]
    return len(kept) + bool(column.get("missing"))


def edges_of(column: dict[str, Any]) -> list[float]:
    """The bin edges of a column of numbers or dates; dates are days since the year 1."""
    if "dates" not in column:
        return [float(e) for e in column["edges"]]
    day, last = (date.fromisoformat(column["dates"][key]) for key in ("from", "to"))
    by, edges = column["dates"]["by"], list[float]()
    while day <= last and len(edges) <= MOST_PERIODS:
        edges.append(float(day.toordinal()))
        if by == "week":
            day += timedelta(days=7 - day.weekday())
        elif by == "year":
            day = date(day.year + 1, 1, 1)
        else:
            month = day.month + (1 if by == "month" else 3 - (day.month - 1) % 3)
            day = date(day.year + (month > 12), (month - 1) % 12 + 1, 1)
    return [*edges, last.toordinal() + 0.5]


def parsed(data: bytes, name: str) -> Any:
    """JSON without repeated keys and without NaN, which two readers could understand in two ways."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            raise Unreadable(f"{name} repeats a key")
        return made

    def refuse(text: str) -> Any:
        raise Unreadable(f"{name} holds {text}")

    try:
        return json.loads(data, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{name} is no JSON: {error}") from None


def arrays(data: bytes, name: str) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """The head and the arrays of an ``.npz`` file. Nothing is unpickled, and no more than `MOST_BYTES` unpacked."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        packed = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
        if sum(i.file_size for i in infos) > MOST_BYTES or {i.compress_type for i in infos} - packed:
            raise Unreadable(f"{name} unpacks to more than 1 GiB, or is packed in another way")
        if len({i.filename for i in infos}) < len(infos):
            raise Unreadable(f"{name} holds two arrays of one name")
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        found = {key: file[key] for key in file.files}
    return parsed(found.pop("head").tobytes(), name), found


def open_folder(path: Path) -> Folder:
    """The folder, with ``release.json`` and ``statement.json`` read; raises `Unreadable`."""
    if not path.is_dir():
        raise Unreadable(f"{path} is no folder")
    try:
        facts = parsed((path / "release.json").read_bytes(), "release.json")
        statement = parsed((path / STATEMENT).read_bytes(), STATEMENT) if (path / STATEMENT).is_file() else None
    except OSError as error:
        raise Unreadable(f"{error.filename} cannot be read: {error.strerror}") from None
    if not isinstance(facts, dict) or not str(facts.get("format", "espalier-release/")).startswith("espalier-release/"):
        raise Unreadable("release.json is not that of a release by Espalier")
    if statement is not None and (not isinstance(statement, dict) or statement.get("format") != "espalier-statement/1"):
        raise Unreadable("statement.json has a format that this checker does not know")
    return Folder(path, facts, statement)


def canonical(statement: dict[str, Any]) -> bytes:
    """The bytes that are signed."""
    made = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return f"espalier-statement/1\n{made}".encode()


def check_files(folder: Folder) -> None:
    """Every file is listed with its size and digest, every listed file is there, and none is missing or extra."""
    paths = [p for p in folder.path.rglob("*") if not p.is_dir() or p.is_symlink()]
    names = {p.relative_to(folder.path).as_posix() for p in paths}
    if odd := sorted(n for n in names if not KNOWN.fullmatch(n) or (folder.path / n).is_symlink()):
        folder.add(1, False, f"{odd[0]} is no file of a release")
    facts, private = folder.facts, folder.facts.get("private", True)
    needed = {"release.json", "project.json", *(("report.html", "synthetic.csv") if private else ())}
    needed |= {facts[key] for key in ("model", "noisy_counts") if isinstance(facts.get(key), str)}
    needed |= {f"copies/{i:02d}.csv.gz" for i in range(1, int(facts.get("copies") or 0) + 1)}
    if folder.statement is not None and private:
        needed |= {"label.html", "registry.yaml", "croissant.json"}
    if lacking := sorted(needed - names):
        folder.add(1, False, f"{', '.join(lacking)} missing")
    if "project.json" in names and parsed(folder.read("project.json"), "project.json") != facts.get("project"):
        folder.add(1, False, "project.json and release.json hold different projects")
    if folder.statement is None:
        new = isinstance(facts.get("statement"), str)
        said = "release.json names a statement, and there is none" if new else "no statement: an old release"
        folder.add(1, False if new else None, said)
        return
    listed = folder.statement.get("files", {})
    covered = names - {STATEMENT, SIGNATURE}
    wrong = [f"{n} is missing" for n in sorted(set(listed) - covered)]
    wrong += [f"{n} is not in the statement" for n in sorted(covered - set(listed))]
    for name in sorted(covered & set(listed)):
        with (folder.path / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != listed[name]["sha256"] or (folder.path / name).stat().st_size != listed[name]["bytes"]:
            wrong.append(f"{name} was changed")
    folder.add(1, not wrong, "; ".join(wrong[:5]) or f"{len(listed)} files, each with the digest in the statement")
    if "synthetic.parquet" in names:
        folder.add(1, None, "synthetic.parquet: digest checked, rows not checked")


def check_signature(folder: Folder, key: bytes | None) -> None:
    """The signature is that of the statement, by the key that the statement names, and by ``key`` where one is given."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if folder.statement is None or not folder.has(SIGNATURE):
        named = folder.statement is not None and folder.statement.get("signer") is not None
        wrong = named or key is not None
        folder.add(1, False if wrong else None, "the signature is missing" if wrong else "not signed")
        return
    made = parsed(folder.read(SIGNATURE), SIGNATURE)
    public = base64.b64decode(made["public_key"], validate=True)
    mark = hashlib.sha256(public).hexdigest()
    try:
        signature = base64.b64decode(made["signature"], validate=True)
        Ed25519PublicKey.from_public_bytes(public).verify(signature, canonical(folder.statement))
    except (InvalidSignature, ValueError):
        folder.add(1, False, "the signature is not that of this statement")
        return
    named = (folder.statement.get("signer") or {}).get("fingerprint", mark)
    if named != mark:
        folder.add(1, False, f"the statement names the key {named[:16]}…, and {mark[:16]}… signed it")
    elif key is None:
        folder.add(1, None, f"signed by an unknown key, fingerprint {mark}")
    else:
        given = load_pem_public_key(key)
        same = isinstance(given, Ed25519PublicKey) and given.public_bytes_raw() == public
        folder.add(1, same, "signed by the given key" if same else f"signed by an unknown key, fingerprint {mark}")
