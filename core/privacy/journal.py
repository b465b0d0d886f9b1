"""Journal of a release. It stores the noisy answers in order, so an interrupted release can be finished.

Every noisy answer and every private choice passes through :meth:`Journal.answer`. A new answer is drawn and stored
durably before it is returned. A resumed release first returns the stored answers in order, without drawing anything. A
request that differs from the stored one is refused with :class:`RequestDiffers`.

Guarantee: a release that was interrupted and resumed any number of times is as private as an uninterrupted one. Proof.
Let M₁, M₂, … be the mechanisms of a release; each may depend on earlier answers, and the filter bounds the sum of their
ρ. A journal holds a₁, …, aⱼ and public facts (the plan, seeds that generate no noise, a keyed fingerprint). Returning
aᵢ again is post-processing of aᵢ. The plan is rehearsed and debited again from the same public facts, so the debits of
the whole run sum to those of an uninterrupted run. It remains to show that no one ever sees two outputs of one
mechanism. An answer leaves :meth:`Journal.answer` only after it was stored. If storing failed or never finished, no
later request, file or message depends on the answer, and it vanishes with the process. Whether storing failed does not
depend on the answer's value: the length of each record is public (answers are arrays of a public shape, or text padded
to a public length), and a place that is taken is refused to every other answer, even to an equal one. The resumed run
draws from Mⱼ₊₁ again, and this draw is the only output of Mⱼ₊₁ that anyone sees. The purchase of a column's bins or
categories is one mechanism with several draws: only its final output is stored.

A resumed release reuses the lots of a hold-out, but draws fresh lots for row limits and declared totals
(`espalier.core.privacy.contribution`).

A journal never contains a row, an exact count, an unkeyed digest, a path, or the seed of noise.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import Unfinished

EXACT = 1 << 20
"""Resolution of floats in requests, relative to an array's largest entry. It is coarse because other machines may add
floats in a different order.
"""


class RequestDiffers(Unfinished):
    """Raised if a resumed release makes a request that differs from the stored one."""


class Storage(Protocol):
    """Durable storage of records, in order."""

    def append(self, place: int, record: bytes) -> None:
        """Store a record durably at ``place`` before returning. Raises an error unless this is the next free place."""
        ...


@dataclass(frozen=True)
class Record:
    """One stored answer: the digest of its request, and its bytes."""

    request: str
    answer: bytes

    def packed(self, place: int) -> bytes:
        """Return the record as bytes: its checksum, request and answer."""
        body = bytes.fromhex(self.request) + self.answer
        return hashlib.sha256(b"%d:" % place + body).digest() + body

    @classmethod
    def unpacked(cls, place: int, data: bytes) -> Record | None:
        """Return the record stored at ``place``; `None` if it is damaged."""
        check, body = data[:32], data[32:]
        if len(body) < 32 or hashlib.sha256(b"%d:" % place + body).digest() != check:
            return None
        return cls(body[:32].hex(), body[32:])


class Journal:
    """Answers of one release: the stored answers, then those drawn by this process.

    Without a ``storage`` nothing is stored.
    """

    def __init__(self, stored: Sequence[Record] = (), storage: Storage | None = None) -> None:
        self._stored, self._storage = list(stored), storage
        self.place = 0
        """Number of answers returned so far."""
        self.drawn = 0
        """Number of answers drawn by this process."""
        self.context = ""
        """Public facts that later requests depend on, such as the digest of the synthetic rows under evaluation."""

    @property
    def stored(self) -> int:
        """Number of answers that were stored before this run."""
        return len(self._stored)

    @property
    def replays(self) -> bool:
        """True if the next answer is a stored one."""
        return self.place < len(self._stored)

    def answer(self, request: Any, draw: Callable[[], bytes]) -> bytes:
        """Return the stored answer to ``request``; otherwise draw, store and return it."""
        digest = request_digest((self.context, request))
        place = self.place
        if self.replays:
            kept = self._stored[place]
            if kept.request != digest:
                raise RequestDiffers(
                    f"The resumed release makes a different request from the one stored with answer {place + 1} of "
                    f"{len(self._stored)}. Resume with the same version of Espalier, the same libraries and the same "
                    "number of threads. The stored answers are unchanged."
                )
            self.place += 1
            return kept.answer
        drawn = draw()
        self.drawn += 1
        if self._storage is not None:
            self._storage.append(place, Record(digest, drawn).packed(place))
            self._stored.append(Record(digest, b""))  # keep it: its bytes are already in the storage
        self.place += 1
        return drawn

    def number(self, request: Any, draw: Callable[[], int]) -> int:
        """Return a whole number, such as the index of a chosen candidate."""
        return int.from_bytes(self.answer(request, lambda: draw().to_bytes(8, "little")), "little")

    def array(
        self, request: Any, shape: tuple[int, ...], draw: Callable[[], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Return an array of floats of ``shape``."""
        return self.arrays(request, [shape], lambda: [draw()])[0]

    def arrays(
        self, request: Any, shapes: Sequence[tuple[int, ...]], draw: Callable[[], Sequence[NDArray[np.float64]]]
    ) -> list[NDArray[np.float64]]:
        """Return several arrays of floats of these ``shapes``, stored together."""
        if not shapes:
            return []

        def joined() -> bytes:
            made = draw()
            if [one.shape for one in made] != list(shapes):
                raise ValueError("the answers do not have the requested shape")
            return b"".join(np.ascontiguousarray(one, dtype="<f8").tobytes() for one in made)

        ends = np.cumsum([int(np.prod(shape, dtype=np.int64)) for shape in shapes])
        data = self.answer(request, joined)
        flat = np.frombuffer(data, dtype="<f8").astype(np.float64) if len(data) == 8 * ends[-1] else np.full(1, np.nan)
        if not np.isfinite(flat).all():
            raise Unfinished(
                f"Stored answer {self.place} does not have the requested shape, or is not a number. "
                "Its cost stays spent."
            )
        return [one.reshape(shape) for one, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True)]

    def facts(self, request: Any, most: int, draw: Callable[[], Any]) -> Any:
        """Return plain values, such as the categories of a bought column. Their JSON is padded to ``most`` bytes."""

        def written() -> bytes:
            made = json.dumps(draw()).encode().ljust(most)
            if len(made) > most:
                raise ValueError(f"an answer takes {len(made)} bytes, more than {most}")
            return made

        return json.loads(self.answer(request, written))


def request_digest(request: Any) -> str:
    """Return the digest of a request, computed from its plain values, dataclasses and arrays.

    Floats are compared to 20 bits of the largest, since machines may add them in different orders. Objects of other
    types are represented by the name of their type.
    """
    hashed = hashlib.sha256()
    _add(hashed.update, request)
    return hashed.hexdigest()


def _add(update: Callable[[bytes], object], value: Any) -> None:
    if isinstance(value, float | np.floating):
        update(b"f%.6g;" % (value + 0.0))
    elif value is None or isinstance(value, str | bytes | int | np.integer | np.bool_):
        update(f"{type(value).__name__[0]}{value!r};".encode("utf-8", "surrogatepass"))
    elif isinstance(value, np.ndarray):
        update(f"a{value.shape};".encode())
        if value.dtype.kind == "f":
            largest = float(np.abs(value[np.isfinite(value)]).max(initial=0.0)) or 1.0
            value = np.rint(np.nan_to_num(value, posinf=0, neginf=0) / largest * EXACT).astype(np.int64)
            update(b"%.6g;" % largest)
        update(np.ascontiguousarray(value).tobytes())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        update(type(value).__name__.encode())
        for field in dataclasses.fields(value):
            _add(update, getattr(value, field.name))
    elif isinstance(value, Mapping):
        update(b"{")
        for key, inner in value.items():
            _add(update, key)
            _add(update, inner)
        update(b"}")
    elif isinstance(value, Sequence):
        update(b"(")
        if value and all(type(one) is tuple for one in value) and all(type(x) is str for one in value for x in one):
            update(repr(list(value)).encode("utf-8", "surrogatepass"))  # thousands of cliques
        else:
            for one in value:
                _add(update, one)
        update(b")")
    else:
        update(type(value).__name__.encode())
