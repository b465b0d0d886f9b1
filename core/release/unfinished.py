"""Unfinished releases: the facts stored before the first draw, and the working folder of a release without a ledger.

`Begun` holds the public facts that a resumed release needs in addition to its noisy answers. With a ledger both are
stored with the entry (`espalier.core.ledger.store`). Without a ledger, both are in ``.NAME.unfinished``, next to the
folder NAME to which the release is written.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from espalier import __version__
from espalier.core.errors import ProjectError, TableError, Unfinished
from espalier.core.ledger import fingerprint
from espalier.core.privacy.journal import Record
from espalier.core.project.file import Project
from espalier.core.tables.deferred import Facts
from espalier.core.tables.digest import digest_of
from espalier.core.tables.random_rows import Deal, seeded_lots
from espalier.core.tables.source import Source

FORMAT = "espalier-unfinished/1"
JOURNAL, WRITTEN = "journal", "written"
"""Files of the working folder: the answers, and the digests of the release that was written."""
SEED_BITS = 128


@dataclass(frozen=True)
class Begun:
    """Public facts of a release that was about to draw. None of them depends on the content of a row.

    ``planned`` is the project with the ledger's δ, ``given`` the caller's project; ``total`` is the public number of
    rows. ``own`` describes the rows of the release, ``held`` the held-out rows. ``seed`` seeds everything random except
    noise. ``nonce`` and the secret of the key file determine the seed of the lots; ``lot_key`` is the key of row
    limits, which need not be secret. ``marks`` are keyed fingerprints of the table and, if rows are held out, of both
    parts; empty without a key file.
    """

    planned: Project
    given: Project
    total: int | None
    relation: str | None
    own: Facts
    held: Facts | None
    seed: int
    nonce: str
    lot_key: str
    marks: tuple[str, ...]

    def dumps(self) -> bytes:
        """Return the facts as JSON."""
        data = {
            "format": FORMAT,
            "espalier": __version__,
            "planned": self.planned.to_json(),
            "given": self.given.to_json(),
            "total": self.total,
            "relation": self.relation,
            "own": vars(self.own),
            "held": None if self.held is None else vars(self.held),
            "seed": str(self.seed),
            "nonce": self.nonce,
            "lot_key": self.lot_key,
            "marks": list(self.marks),
        }
        return json.dumps(data).encode()

    @classmethod
    def loads(cls, text: bytes) -> Self:
        """Return the facts; raises :class:`Unfinished` for any other text."""
        try:
            data = json.loads(text)
            if data["format"] != FORMAT:
                raise Unfinished(f"The release was started with format {data['format']!r}, not {FORMAT!r}.")
            made = cls(
                Project.from_json(data["planned"]),
                Project.from_json(data["given"]),
                data["total"],
                data["relation"],
                Facts(**data["own"]),
                None if data["held"] is None else Facts(**data["held"]),
                int(data["seed"]),
                data["nonce"],
                data["lot_key"],
                tuple(data["marks"]),
            )
            made._check()
            return made
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Unfinished("The record of the unfinished release is damaged, so it cannot be resumed.") from None

    def _check(self) -> None:
        """Raise ValueError for facts of the wrong type."""
        counts = (self.total, *(n for one in (self.own, self.held) if one for n in (one.rows, one.row_limit)))
        texts = (self.nonce, self.lot_key, *self.marks, *([] if self.relation is None else [self.relation]))
        whole = all(n is None or (type(n) is int and n >= 0) for n in counts) and self.seed >= 0
        if not whole or not all(isinstance(text, str) for text in texts):
            raise ValueError
        if (self.held is None) != (not self.planned.plan.private_evaluation):
            raise ValueError


def new_seed() -> int:
    """Return a fresh seed for everything random except noise."""
    return secrets.randbits(SEED_BITS)


def dealt(table: Source, secret: bytes, nonce: str) -> Source:
    """Return ``table`` with the lots of ``nonce``, which only the holder of ``secret`` can compute."""
    deal: Deal = seeded_lots(hmac.new(secret, b"espalier lots:" + nonce.encode(), hashlib.sha256).digest())
    return table.dealt_by(deal)


def marks_of(secret: bytes, table: Source, own: Source, held: Source | None) -> tuple[str, ...]:
    """Return keyed fingerprints of ``table`` and, if rows are held out, of both parts."""
    digests = [table.digest] if held is None else [table.digest, digest_of(own), digest_of(held)]
    return tuple(fingerprint.mark(secret, one) for one in digests)


def same_rows(secret: bytes, marks: tuple[str, ...], digest: bytes) -> None:
    """Raise :class:`TableError` unless the release began with the table that has this ``digest``."""
    same = fingerprint.matches(secret, digest, marks[0], whole=True)
    if same is None:
        raise TableError(
            "the release began with a different key file, so the table cannot be recognised. Set ESPALIER_LEDGER_KEY "
            "to "
            "the path of that file, or of a copy"
        )
    if not same:
        raise TableError(
            "this is not the table with which the release began, or it has changed. Nothing was drawn. Use the "
            "unchanged table"
        )


def same_parts(secret: bytes, marks: tuple[str, ...], own: Source, held: Source | None) -> None:
    """Raise :class:`TableError` unless both parts are those with which the release began.

    `espalier.core.privacy.contribution` explains why.
    """
    if held is None:
        return
    wanted = zip(marks[1:], (own, held), strict=True)
    if not all(fingerprint.matches(secret, digest_of(rows), mark) for mark, rows in wanted):
        raise TableError(
            "the rows are in a different order from when the release began, so other people would be held out. Nothing "
            "was drawn. Use the same file, read by the same version"
        )


# A release without a ledger -------------------------------------------------------------------------------------------


def work_folder(folder: Path) -> Path:
    """Return the hidden folder in which the release to ``folder`` is written."""
    folder = folder.absolute()
    return folder.with_name(f".{folder.name}.unfinished")


def check_none(folder: Path) -> None:
    """Raise :class:`ProjectError` if answers of an unfinished release to ``folder`` are stored; remove leftovers of a
    killed process.
    """
    if (work_folder(folder) / JOURNAL).exists():
        left = FolderJournal(folder)
        if not left.answers:
            left.forget()
            return
        left.leave()
        raise ProjectError(
            f"An unfinished release to {folder} is kept. Finish it: espalier resume {folder}. To abandon it, delete "
            f"{work_folder(folder)}; the noise already drawn stays spent.",
            path=str(folder),
        )


HEAD, MOST = 48, 1 << 32
"""Number of bytes before a record (for its length and the checksums of length and record), and maximum size of a
journal.
"""


class FolderJournal:
    """A journal in a hidden folder next to the release: frames of a length and a record, appended and synced.

    A torn frame at the end was not durable, so its answer was not used (`espalier.core.privacy.journal` has the proof).
    It is cut off before anything is drawn. A damaged frame before the end is refused. The length has its own checksum,
    so a damaged length is not mistaken for a torn end.
    """

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        """Open the journal of the release to ``folder``; raises :class:`Unfinished` while another process has it
        open.
        """
        self.folder = folder
        self.work = work_folder(folder)
        self._next = 0
        """Place of the next answer, once the facts have been stored or read."""
        path = self.work / JOURNAL
        if create:
            _make_own(self.work)
        elif not path.is_file():
            raise Unfinished(f"There is no unfinished release to {folder}.", path=str(folder))
        if create:
            check_none(folder)
        flags = os.O_RDWR | (os.O_CREAT | os.O_EXCL if create else 0)
        self._file = os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0)
        weakref.finalize(self, self._file.close)
        try:
            lock(self._file)
        except OSError:
            self._file.close()
            raise Unfinished(f"Another process is working on the release to {folder}.", path=str(folder)) from None
        if create:
            synced(self.work)
            synced(self.work.parent)

    @classmethod
    def begin(cls, folder: Path, begun: Begun) -> Self:
        """Create a journal and store the facts."""
        made = cls(folder, create=True)
        try:
            made._write(begun.dumps())
        except OSError:
            made.forget()
            raise
        return made

    def read(self) -> tuple[Begun, list[Record]]:
        """Return the facts and the stored answers, and cut off a torn end."""
        frames, end = self._frames()
        if not frames:
            raise Unfinished(f"Nothing was drawn for the release to {self.folder}. Delete {self.work} and start again.")
        self._file.truncate(end)
        os.fsync(self._file.fileno())
        self._file.seek(end)
        self._next = len(frames) - 1
        return Begun.loads(frames[0]), records_of(frames[1:])

    @property
    def answers(self) -> int:
        """Number of stored answers."""
        return max(len(self._frames()[0]) - 1, 0)

    def append(self, place: int, record: bytes) -> None:
        """Store the answer at ``place``; raises :class:`Unfinished` unless it is the next answer."""
        if place != self._next:
            raise Unfinished(
                f"Answer {place + 1} does not follow the {self._next} answers in {self.work}. Resume again."
            )
        self._write(record)
        self._next += 1

    def _write(self, record: bytes) -> None:
        length = len(record).to_bytes(8, "big")
        data = length + hashlib.sha256(length).digest()[:8] + hashlib.sha256(record).digest() + record
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise Unfinished(
                f"Cannot store an answer in {self.work}: {error.strerror}. The answer was not used. Free some space, "
                f"then run: espalier resume {self.folder}"
            ) from None

    def _frames(self) -> tuple[list[bytes], int]:
        damaged = f"The journal in {self.work} is damaged, so the release cannot be finished. Drawn noise stays spent."
        if os.fstat(self._file.fileno()).st_size > MOST:
            raise Unfinished(damaged)
        self._file.seek(0)
        data = self._file.read()
        frames, at = [], 0
        while at + HEAD <= len(data):
            if not any(data[at:]):  # a power failure may leave zeros after the end
                break
            length, start = data[at : at + 8], at + HEAD
            if hashlib.sha256(length).digest()[:8] != data[at + 8 : at + 16]:
                raise Unfinished(damaged)
            end = start + int.from_bytes(length, "big")
            if end > len(data):
                break
            if hashlib.sha256(data[start:end]).digest() != data[at + 16 : start]:
                if end < len(data):
                    raise Unfinished(damaged)
                break
            frames.append(data[start:end])
            at = end
        return frames, at

    def about_to_write(self, files: Mapping[str, bytes]) -> None:
        """Store the digests of the release that is about to be written, by which :attr:`written` recognises it."""
        if self._file.closed:
            return
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        with suppress(OSError):  # the release can be written without them
            (self.work / WRITTEN).write_text(json.dumps(digests), "utf-8")
            synced(self.work / WRITTEN)

    @property
    def written(self) -> bool:
        """True if the folder contains the release made from these answers, and not another release."""
        try:
            digests = json.loads((self.work / WRITTEN).read_text("utf-8"))
            found = {name: hashlib.sha256((self.folder / name).read_bytes()).hexdigest() for name in digests}
        except (OSError, ValueError):
            return False
        return bool(digests == found)

    def forget(self) -> None:
        """Remove the journal, because the release is finished or nothing was drawn.

        Once the lock is released, the folder may contain the answers of another release, so nothing is removed.
        """
        if self._file.closed:
            return
        self._file.close()
        with suppress(OSError):
            for name in (JOURNAL, WRITTEN):
                (self.work / name).unlink(missing_ok=True)
            self.work.rmdir()  # a folder with other files is kept

    def leave(self) -> None:
        """Release the lock, so that another process can take it."""
        self._file.close()


def _make_own(work: Path) -> None:
    """Create the hidden folder. In a shared location, another user may have created it in order to change its
    contents.
    """
    try:
        work.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        found = work.lstat()
        if not stat.S_ISDIR(found.st_mode) or (os.name == "posix" and found.st_uid != os.geteuid()):
            raise Unfinished(f"{work} is a link, or belongs to another user. Name another folder.") from None


def lock(file: Any) -> None:
    """Lock an open file until it is closed or the process ends; raises OSError if another process has locked it."""
    with suppress(ImportError):  # Windows has no such locks
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def records_of(stored: list[bytes]) -> list[Record]:
    """Return stored answers; raises :class:`Unfinished` for a damaged answer."""
    records = [Record.unpacked(place, data) for place, data in enumerate(stored)]
    if None in records:
        raise Unfinished(f"Stored answer {records.index(None) + 1} is damaged. The noise already drawn stays spent.")
    return [record for record in records if record is not None]


def synced(path: Path) -> None:
    """Wait until a file or folder is on the disk, if the system supports this."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
