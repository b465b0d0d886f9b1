"""Check 1: the files match the statement, and the key named in the statement has signed it."""

import base64
import gzip
import hashlib
import io
import json
import math
import re
import struct
import zipfile
import zlib
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

KNOWN = re.compile(
    r"synthetic(-NOT-PRIVATE|-whole)?\.csv|synthetic\.(parquet|sav|dta|xpt)|(report(-NOT-PRIVATE)?|label)\.html"
    r"|(release|project|croissant|statement|dictionary)\.json|(dictionary|questions)\.csv|registry\.yaml|statement\.sig"
    r"|(model|answers)\.npz|copies/\d{2,3}\.(csv\.gz|npz)"
)
NEEDED = ("report.html", "label.html", "registry.yaml", "croissant.json")
WITHOUT = {"answers.npz": ("decoder", "copula", "fpt-mw", "linked"), "model.npz": ("copula",)}
"""Optional files, each with the methods whose releases may lack it."""
NOT_PRIVATE = {"synthetic-NOT-PRIVATE.csv", "report-NOT-PRIVATE.html"}
NOT_PRIVATE |= {"release.json", "project.json", "statement.json"}
"""All files of a release without privacy."""
STATEMENT, SIGNATURE = "statement.json", "statement.sig"
UNREAD = re.compile(r"synthetic-whole\.csv|synthetic\.(parquet|sav|dta|xpt)|dictionary\..*|questions\.csv|copies/.*npz")
LIMIT, MOST_JSON, OVERHEAD = 1 << 30, 64 << 20, 256
"""Maximum size of a file, of a JSON file, and of an archive's overhead for each array, in bytes."""
Array = Any  # a numpy array
Clique = tuple[str, ...]


class Unreadable(Exception):
    """The folder contains no readable release."""


class Finding(NamedTuple):
    """One line of the result: the check's number, whether it holds (None: not tested), and a text."""

    check: int
    holds: bool | None
    text: str


class Folder:
    """A release folder, with its JSON files and the findings so far. ``statement`` is empty for an old release."""

    def __init__(self, path: Path) -> None:
        self.path, self.findings = path, list[Finding]()
        if not (path / "release.json").exists():  # fail before listing all folders of a large disk
            raise Unreadable(f"{path} contains no release.json")
        try:
            found = list(path.rglob("*"))
        except RecursionError:
            raise Unreadable("the folder has too many levels of folders") from None
        if odd := [p for p in found if p.exists() and not (p.is_dir() or p.is_file())]:
            raise Unreadable(f"{odd[0]} is a pipe or a device")
        held = {p.relative_to(path).as_posix(): p for p in found}
        self.names = {n for n, p in held.items() if n != "copies" or p.is_symlink() or not p.is_dir()}
        self.facts: dict[str, Any] = self.json("release.json")
        self.statement: dict[str, Any] = self.json(STATEMENT) if STATEMENT in self.names else {}
        formats = [(self.facts.get("format", "espalier-release/1"), "espalier-release/1")]
        if STATEMENT in self.names:
            formats.append((self.statement.get("format"), "espalier-statement/1"))
        for stated, known in formats:
            if stated != known:
                raise Unreadable(f"this checker does not know the format {stated}")
        schema = self.facts["project"]["schema"]
        self.columns = [c for c in schema if c["kind"] != "identifier"]
        for listed in ([c["name"] for c in schema], *(c.get("categories", ()) for c in schema)):
            if len(set(listed)) < len(listed):
                raise ValueError("the schema names a column or a category twice")
        self.sizes = {c["name"]: len(values_of(c)) + bool(c.get("missing")) for c in self.columns}
        linked = self.facts["project"].get("tables") or {}
        self.linked = {("visits" if "of" in table else "people"): name for name, table in linked.items()}
        self.tables = sorted(f"{name}.csv" for name in linked) or ["synthetic.csv"]

    @property
    def private(self) -> bool:
        """Whether both files of facts call the release private."""
        return bool(self.facts.get("private", True) and self.statement.get("private", True))

    def say(self, check: int, wrong: list[str], good: str = "") -> None:
        """Record a check: its faults ``wrong``, or the text ``good``."""
        self.findings.append(Finding(check, not wrong, "; ".join(wrong[:5]) or good))

    def note(self, check: int, text: str) -> None:
        """Record a check that could not be run."""
        self.findings.append(Finding(check, None, text))

    def read(self, name: str) -> bytes:
        """Return the bytes of a file of at most 1 GiB. Links are not followed."""
        path = self.path / name
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LIMIT:
            raise Unreadable(f"{name} is a link, not a file, or larger than 1 GiB")
        return path.read_bytes()

    def json(self, name: str) -> Any:
        """Return a JSON file of the folder, at most 64 MiB."""
        return parsed(self.read(name), name)

    def unpacked(self, name: str) -> bytes:
        """Return the unpacked bytes of a gzip file: at most 150 times its size, or 50 MB."""
        packed = self.read(name)
        most = max(50_000_000, 150 * len(packed))
        with gzip.open(io.BytesIO(packed)) as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise ValueError(f"{name} unpacks to more than 150 times its size")
        return data

    def arrays(self, name: str) -> tuple[Any, dict[str, Array]]:
        """Return the head and the arrays of an ``.npz`` file."""
        return unzipped(self.read(name), name)


def unzipped(packed: bytes, name: str) -> tuple[Any, dict[str, Array]]:
    """Return the head and the arrays of an ``.npz`` file; nothing is unpickled. At most 1 GiB is unpacked, and at most
    150 times the file's size or 50 MB. The file may contain only finite numbers and −∞, and no bytes between or after
    its arrays.
    """
    file = zipfile.ZipFile(data := io.BytesIO(packed))
    infos, size = file.infolist(), len(packed)
    most, packing = min(LIMIT, max(50_000_000, 150 * size)), sum(i.compress_size + OVERHEAD for i in infos)
    keys = {i.filename.removesuffix(".npy") for i in infos if i.filename.endswith(".npy")}
    if sum(i.file_size for i in infos) > most or len(keys) < len(infos):
        raise Unreadable(f"{name} unpacks to more than 150 times its size or 1 GiB, or holds an array twice")
    if file.comment or infos[0].header_offset or any(i.comment for i in infos) or size > packing + OVERHEAD:
        raise Unreadable(f"{name} contains more than its arrays")
    for i in infos:  # an entry's data start after a 30-byte header, the name and the extra field
        start = i.header_offset + 30 + sum(struct.unpack_from("<HH", packed, i.header_offset + 26))
        stream, part = zlib.decompressobj(-zlib.MAX_WBITS), packed[start : start + i.compress_size]
        if i.compress_type and (len(stream.decompress(part, i.file_size + 1)) > i.file_size or stream.unused_data):
            raise Unreadable(f"{name} contains more than its arrays")
    with np.load(data, allow_pickle=False) as arrays:
        found = {key: arrays[key] for key in arrays.files}
    if any(i.file_size > found[i.filename.removesuffix(".npy")].nbytes + OVERHEAD for i in infos):
        raise Unreadable(f"{name} contains more than its arrays")
    for array in found.values():
        usual = array.dtype.kind in "biuf" and array.dtype.itemsize <= 8 and array.dtype.isnative
        if not usual or np.isnan(array).any() or np.isposinf(array).any():
            raise Unreadable(f"{name} contains arrays that are not numbers")
    return parsed(found.pop("head").tobytes(), name), found


def parsed(data: bytes, name: str) -> Any:
    """Return the parsed JSON. Repeated keys, NaN and infinity are refused, because readers could interpret them
    differently."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key is repeated")
        return dict(pairs)

    def finite(number: str) -> float:
        if math.isinf(float(number)):
            raise ValueError("a number is too large")
        return float(number)

    if len(data) > MOST_JSON:
        raise Unreadable(f"{name} is larger than {MOST_JSON >> 20} MiB")
    try:
        return json.loads(data.decode(), object_pairs_hook=unique, parse_constant=int, parse_float=finite)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{name} is not unambiguous JSON: {error}") from None


def values_of(column: dict[str, Any]) -> list[Any]:
    """Return the categories of a column, or the lower edges of its bins."""
    return list(column["categories"]) if "categories" in column else edges_of(column)[:-1]


def edges_of(column: dict[str, Any]) -> list[float]:
    """Return the bin edges of a column of numbers or dates. Dates are days since the year 1."""
    if "dates" not in column:
        return [float(e) for e in column["edges"]]
    (day, last), by = (date.fromisoformat(column["dates"][key]) for key in ("from", "to")), column["dates"]["by"]
    edges = list[float]()
    while day <= last and len(edges) <= 1000:
        edges.append(float(day.toordinal()))
        if by in ("month", "quarter", "year"):
            month = {"month": day.month, "quarter": day.month + 2 - (day.month - 1) % 3, "year": 12}[by]
            day = date(day.year + month // 12, month % 12 + 1, 1)
        else:
            day += timedelta(days=7 - day.weekday())
    return [*edges, last.toordinal() + 0.5]


def check_files(folder: Folder) -> None:
    """Check that every file has the size and digest in the statement, and that there are no missing or additional
    files.
    """
    facts, made, names = folder.facts, folder.statement, folder.names
    needed = {"project.json", *(facts[key] for key in ("model", "noisy_counts") if isinstance(facts.get(key), str))}
    copies = {f"copies/{i:02d}.csv.gz" for i in range(1, min(int(facts.get("copies") or 0), 100) + 1)}
    needed |= copies
    if not folder.private:
        needed |= NOT_PRIVATE - {STATEMENT}
    else:
        needed |= {*folder.tables, *(NEEDED if made else NEEDED[:1])}
        needed |= {name for name, methods in WITHOUT.items() if made and facts["method"] not in methods}
        if made and made["accounting"]["rule"] == "pure" and facts["method"] == "fpt-lp":  # this method keeps no counts
            needed -= {"answers.npz"}
    wrong = [f"{n} is missing" for n in sorted(needed - names)]
    allowed = {n for n in names if KNOWN.fullmatch(n) and (n[:7] != "copies/" or f"{n.split('.')[0]}.csv.gz" in copies)}
    allowed -= {n for n in names if "NOT-PRIVATE" in n and facts.get("private", True)}
    allowed |= {*folder.tables, *(n[:-3] + "parquet" for n in folder.tables)} & names
    allowed &= names if folder.private else NOT_PRIVATE
    wrong += [f"{n!r} is not a file of this release" for n in sorted(names - allowed)]
    if "project.json" in names and folder.json("project.json") != facts["project"]:
        wrong.append("project.json and release.json hold different projects")
    if not made and "statement" in facts:
        wrong.append("the statement is missing")
    if made and folder.read(STATEMENT) != f"{json.dumps(made, indent=1, ensure_ascii=False)}\n".encode():
        wrong.append(f"{STATEMENT} is not written as Espalier writes it")
    listed = made.get("files", {})
    covered = names - {STATEMENT, SIGNATURE} if made else set()
    wrong += [f"{n} is missing, or not in the statement" for n in sorted(set(listed) ^ covered)]
    tables = {*folder.tables, *(n[:-3] + "parquet" for n in folder.tables)}
    for name in sorted(set(listed) & covered):
        wrong += [] if _is_whole(folder.path / name, listed[name], table=name in tables) else [f"{name} was changed"]
    old = "all files of an old release: it has no statement, so no digest was checked"
    folder.say(1, wrong, f"{len(listed)} files, each with the digest in the statement" if made else old)
    if unread := sorted(n for n in names if UNREAD.fullmatch(n) or n.endswith(".parquet")):
        folder.note(1, f"digest checked, content not checked: {', '.join(unread)}")


def _is_whole(path: Path, stated: Any, *, table: bool) -> bool:
    """Return whether a file has the stated size and digest. A file of another size is not read, and only a table may
    exceed 1 GiB.
    """
    size = path.lstat().st_size
    if path.is_symlink() or not isinstance(stated, dict) or stated.get("bytes") != size or (size > LIMIT and not table):
        return False
    with path.open("rb") as file:
        return bool(stated == {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": size})


def check_signature(folder: Folder, key: bytes | None) -> None:
    """Check the statement's signature against the key that it names and, if given, against ``key``."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    named, wrong = (folder.statement.get("signer") or {}).get("fingerprint"), list[str]()
    if SIGNATURE not in folder.names and not named and key is None:
        folder.note(1, "not signed")
        return
    made = folder.json(SIGNATURE)
    public, signature = (base64.b64decode(made[k], validate=True) for k in ("public_key", "signature"))
    body = json.dumps(folder.statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    mark = hashlib.sha256(public).hexdigest()
    both = {"public_key": base64.b64encode(public).decode(), "signature": base64.b64encode(signature).decode()}
    if made != {"format": "espalier-signature/1", "algorithm": "Ed25519", "fingerprint": mark, **both}:
        wrong.append(f"{SIGNATURE} states another key, or more than a signature")
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, f"espalier-statement/1\n{body}".encode())
    except (InvalidSignature, ValueError):
        wrong.append("the signature does not match this statement")
    if named not in (None, mark):
        wrong.append(f"the statement names the key {named}, but {mark} signed it")
    given: Any = None if key is None else load_pem_public_key(key)
    if key is not None and not (isinstance(given, Ed25519PublicKey) and given.public_bytes_raw() == public):
        wrong.append(f"signed by an unknown key, fingerprint {mark}")
    if key is None and not wrong:
        folder.note(1, f"signed by an unknown key, fingerprint {mark}")
    else:
        folder.say(1, wrong, "signed by the given key")
