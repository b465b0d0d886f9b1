"""Check 1: the files are those of the statement, and the key that it names has signed it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import zipfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

KNOWN = re.compile(
    r"synthetic(-NOT-PRIVATE|-whole)?\.csv|synthetic\.(parquet|sav|dta|xpt)|(report(-NOT-PRIVATE)?|label)\.html"
    r"|(release|project|croissant|statement|dictionary)\.json|(dictionary|questions)\.csv|registry\.yaml|statement\.sig"
    r"|(model|answers)\.npz|copies/\d{2,3}\.(csv\.gz|npz)"
)
NO_COUNTS, NO_MODEL = ("decoder", "copula", "fpt-mw"), ("copula",)
"""Methods whose releases hold no noisy counts, or perhaps no model."""
STATEMENT, SIGNATURE, PARQUET = "statement.json", "statement.sig", "synthetic.parquet"
LIMIT = 1 << 30
Array = Any  # an array of numpy
Clique = tuple[str, ...]


class Unreadable(Exception):
    """The folder holds no release that can be read."""


class Finding(NamedTuple):
    """One line of the result: its check, whether it holds (None: not tested), and a text."""

    check: int
    holds: bool | None
    text: str


class Folder:
    """A release folder: its JSON files, and the findings so far. ``statement`` is empty for an old release."""

    def __init__(self, path: Path) -> None:
        self.path, self.findings = path, list[Finding]()
        self.names = {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_symlink() or not p.is_dir()}
        if "release.json" not in self.names:
            raise Unreadable(f"{path} holds no release.json")
        self.facts: dict[str, Any] = self.json("release.json")
        self.statement: dict[str, Any] = self.json(STATEMENT) if STATEMENT in self.names else {}
        formats = self.facts.get("format", "espalier-release/1"), self.statement.get("format", "espalier-statement/1")
        if formats != ("espalier-release/1", "espalier-statement/1"):
            raise Unreadable(f"this checker does not know the formats {formats}")

    def say(self, check: int, wrong: list[str], good: str) -> None:
        """Record a check: what is ``wrong`` with it, or that it is ``good``."""
        self.findings.append(Finding(check, not wrong, "; ".join(wrong[:5]) or good))

    def note(self, check: int, text: str) -> None:
        """Record what could not be tested."""
        self.findings.append(Finding(check, None, text))

    def read(self, name: str) -> bytes:
        """The bytes of a file; never through a link, and at most 1 GiB."""
        path = self.path / name
        if path.is_symlink() or path.stat().st_size > LIMIT:
            raise Unreadable(f"{name} is a link, or larger than 1 GiB")
        return path.read_bytes()

    def json(self, name: str) -> Any:
        """A JSON file of the folder."""
        return parsed(self.read(name), name)

    def arrays(self, name: str) -> tuple[Any, dict[str, Array]]:
        """The head and the arrays of an ``.npz`` file; nothing is unpickled, and at most 1 GiB unpacked."""
        data = self.read(name)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            if sum(i.file_size for i in infos) > LIMIT or any(i.compress_type not in (0, 8) for i in infos):
                raise Unreadable(f"{name} unpacks to more than 1 GiB, or is packed by another method")
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            found = {key: file[key] for key in file.files}
        return parsed(found.pop("head").tobytes(), name), found

    @property
    def sizes(self) -> dict[str, int]:
        """Number of codes of each column: bins or categories, and one more where cells may be missing."""
        schema = [c for c in self.facts["project"]["schema"] if c["kind"] != "identifier"]
        kept = {c["name"]: c["categories"] if "categories" in c else edges_of(c)[1:] for c in schema}
        return {c["name"]: len(kept[c["name"]]) + bool(c.get("missing")) for c in schema}


def parsed(data: bytes, name: str) -> Any:
    """JSON without repeated keys and without NaN, which two readers could understand in two ways."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key is repeated")
        return dict(pairs)

    def refuse(text: str) -> None:
        raise ValueError(f"{text} is no number")

    try:
        return json.loads(data, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{name} is no JSON that two readers understand alike: {error}") from None


def edges_of(column: dict[str, Any]) -> list[float]:
    """The bin edges of a column of numbers or dates; dates are days since the year 1."""
    if "dates" not in column:
        return [float(e) for e in column["edges"]]
    (day, last), by = (date.fromisoformat(column["dates"][key]) for key in ("from", "to")), column["dates"]["by"]
    edges = list[float]()
    while day <= last and len(edges) <= 1000:
        edges.append(float(day.toordinal()))
        months = {"month": 1, "quarter": 3 - (day.month - 1) % 3, "year": 13 - day.month}.get(by, 0)
        month = day.month - 1 + months
        day = day.replace(year=day.year + month // 12, month=month % 12 + 1, day=1) if months else day
        day += timedelta(days=0 if months else 7 - day.weekday())
    return [*edges, last.toordinal() + 0.5]


def check_files(folder: Folder) -> None:
    """Every file has the size and digest of the statement; none is missing, and none is extra."""
    facts, made, names = folder.facts, folder.statement, folder.names
    private = facts.get("private", True)
    needed = {"project.json", *(("report.html", "synthetic.csv") if private else ())}
    needed |= {facts[key] for key in ("model", "noisy_counts") if isinstance(facts.get(key), str)}
    needed |= {f"copies/{i:02d}.csv.gz" for i in range(1, min(int(facts.get("copies") or 0), 100) + 1)}
    if made and private:
        needed |= {"label.html", "registry.yaml", "croissant.json"}
        needed |= {"answers.npz"} if facts["method"] not in NO_COUNTS else set()
        needed |= {"model.npz"} if facts["method"] not in NO_MODEL else set()
    wrong = [f"{n} is missing" for n in sorted(needed - names)]
    wrong += [f"{n!r} is no file of a release" for n in sorted(names) if not KNOWN.fullmatch(n)]
    if facts.get("rows_shown", facts["rows"]) < facts["rows"] and not {PARQUET, "synthetic-whole.csv"} & names:
        wrong.append("the file with all rows is missing")
    if "project.json" in names and folder.json("project.json") != facts["project"]:
        wrong.append("project.json and release.json hold different projects")
    if not made:
        wrong += ["the statement is missing"] if "statement" in facts else []
        folder.say(1, wrong, "all files of an old release; it has no statement, so no digest was checked")
        return
    listed, covered = made["files"], names - {STATEMENT, SIGNATURE}
    wrong += [f"{n} is missing, or not in the statement" for n in sorted(set(listed) ^ covered)]
    for name in sorted(set(listed) & covered):
        with (folder.path / name).open("rb") as file:
            found = {
                "bytes": file.seek(0, 2),
                "sha256": (file.seek(0), hashlib.file_digest(file, "sha256"))[1].hexdigest(),
            }
        wrong += [f"{name} was changed"] if found != listed[name] or (folder.path / name).is_symlink() else []
    folder.say(1, wrong, f"{len(listed)} files, each with the digest in the statement")
    if PARQUET in names:
        folder.note(1, f"{PARQUET}: digest checked, rows not checked")


def check_signature(folder: Folder, key: bytes | None) -> None:
    """The signature is the statement's, by the key that the statement names, and by ``key`` where one is given."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    named = (folder.statement.get("signer") or {}).get("fingerprint")
    if SIGNATURE not in folder.names:
        if named or key:
            folder.say(1, ["the signature is missing"], "")
        else:
            folder.note(1, "not signed")
        return
    made = folder.json(SIGNATURE)
    public, signature = (base64.b64decode(made[k], validate=True) for k in ("public_key", "signature"))
    mark = hashlib.sha256(public).hexdigest()
    try:
        body = json.dumps(folder.statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        Ed25519PublicKey.from_public_bytes(public).verify(signature, f"espalier-statement/1\n{body}".encode())
    except (InvalidSignature, ValueError):
        folder.say(1, ["the signature is not that of this statement"], "")
        return
    wrong = [f"the statement names the key {named}, and {mark} signed"] if named not in (None, mark) else []
    given: Any = None if key is None else load_pem_public_key(key)
    if given is None and not wrong:
        folder.note(1, f"signed by an unknown key, fingerprint {mark}")
        return
    same = isinstance(given, Ed25519PublicKey) and given.public_bytes_raw() == public
    folder.say(
        1, [*wrong, *([] if same else [f"signed by an unknown key, fingerprint {mark}"])], "signed by the given key"
    )
