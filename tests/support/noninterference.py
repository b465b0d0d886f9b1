"""Runs a release with replaced noise: its requests, files and messages may depend only on public facts and answers.

`Noise` replaces every protective draw with values that depend on the number of the draw, its shape and its scale. So
two tables with the same public facts get the same noisy answers. Everything that follows must then be the same bytes. A
difference is a path from a private row to the outside that no budget paid for.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from espalier.core.errors import EspalierError
from espalier.core.ledger.ledger import Ledger
from espalier.core.privacy import bought_schema, mechanisms
from espalier.core.privacy.partitions import Found
from espalier.core.release import spend

_default_rng = np.random.default_rng


@dataclass
class Noise:
    """Answers of one run, and the ``requests`` that they answer: kind, shape and scale of each draw."""

    requests: list[tuple[Any, ...]] = field(default_factory=list)

    def _rng(self) -> np.random.Generator:
        """Return the generator of the next answer: it depends on all requests so far, and on nothing else."""
        digest = hashlib.sha256(json.dumps([*self.requests[-1:], len(self.requests)], default=str).encode()).digest()
        return _default_rng(int.from_bytes(digest[:8]))

    def gaussian(self, counts: Any, sigma: float) -> Any:
        """Answers of about 50 rows per cell, for any counts."""
        self.requests.append(("gaussian", np.shape(counts), sigma))
        return np.floor(self._rng().random(np.shape(counts)) * 100)

    def choice(self, scores: Any, scale: float) -> int:
        """Return one of the candidates, for any scores."""
        self.requests.append(("choice", len(list(scores)), scale))
        return int(self._rng().integers(len(list(scores))))

    def categories(self, _: Any, recipe: Any, at_most: int) -> Found:
        """Return the same three categories, for any texts in the table."""
        self.requests.append(("categories", recipe.sigma, recipe.threshold, at_most))
        return Found({"u": 60.0, "v": 50.0, "w": 40.0}, recipe.sigma, recipe.threshold)


@contextmanager
def replaced() -> Iterator[Noise]:
    """Replaces noise, the randomness of samples, and the clock."""
    noise, drawn = Noise(), iter(range(1, 1 << 30))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanisms, "add_gaussian", noise.gaussian)
        patch.setattr(mechanisms, "add_laplace", noise.gaussian)
        patch.setattr(mechanisms, "noisy_max", noise.choice)
        patch.setattr(bought_schema, "add_gaussian", noise.gaussian)
        patch.setattr(bought_schema, "noisy_max", noise.choice)
        patch.setattr(bought_schema, "find_categories", noise.categories)
        patch.setattr(np.random, "default_rng", lambda seed=None: _default_rng(next(drawn) if seed is None else seed))
        patch.setattr(spend, "new_seed", lambda: next(drawn))
        patch.setattr(time, "perf_counter", lambda: 0.0)
        yield noise


@dataclass(frozen=True)
class Outside:
    """Everything that a run shows: requests, files, messages, exit status, ledger. ``error`` is its error, if it
    failed."""

    requests: tuple[Any, ...]
    files: tuple[tuple[str, int, str], ...]
    said: tuple[str, ...]
    status: int
    ledger: tuple[Any, ...]
    error: str = ""

    def difference(self, other: Outside) -> str:
        """Return a short description of the first part that differs; empty if none does."""
        for name in self.__dataclass_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                pairs = zip(mine, theirs, strict=False) if isinstance(mine, tuple) else [(mine, theirs)]
                first = next(((a, b) for a, b in pairs if a != b), (len(mine), len(theirs)))
                return f"{name}: {str(first[0])[:300]} / {str(first[1])[:300]}"
        return ""


def masked(text: str, place: str = "") -> str:
    """Return ``text`` without times, identifiers, nonces and hashes, and without the folder of the run."""
    text = text.replace(place, "PLACE") if place else text
    text = re.sub(r"[0-9a-f]{64}", "HASH", text)
    text = re.sub(r"\b[0-9a-f]{16}\b", "ID", text)
    text = re.sub(r"[0-9a-f]{8}:[0-9a-f]{32}:HASH", "MARK", text)
    text = re.sub(r'"random": "[0-9a-f]{32}"|\\"random\\": \\"[0-9a-f]{32}\\"', "RANDOM", text)
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ", "TIME", text)


def files_of(files: dict[str, bytes], place: str = "") -> tuple[tuple[str, int, str], ...]:
    """Return the name, size and content of each file, times and identifiers masked."""
    out = []
    for name, data in sorted(files.items()):
        if name.endswith((".json", ".html", ".csv")):
            data = masked(data.decode(), place).encode()
        out.append((name, len(data), hashlib.sha256(data).hexdigest()))
    return tuple(out)


def ledger_of(where: str | None, place: str = "") -> tuple[Any, ...]:
    """Return the events of a ledger, identifiers and nonces masked."""
    if where is None:
        return ()
    hidden = {"at", "hash", "previous", "entry", "fingerprint", "released"}
    rows = [{k: v for k, v in e.row().items() if k not in hidden} for e in Ledger(where).events()]
    return tuple(masked(json.dumps(row), place) for row in rows)


def in_memory(run: Callable[[Any], Any]) -> Outside:
    """Return everything that ``run(report)`` shows; it returns a release."""
    heard: list[str] = []
    with replaced() as noise:
        try:
            made = run(lambda fraction, message: heard.append(f"{fraction:.6f} {message}"))
        except EspalierError as error:
            return Outside(tuple(noise.requests), (), tuple(heard), 2, (), f"{type(error).__name__}: {error}")
        files = dict(made.files)
        draws = tuple(map(repr, made.spending.draws))
    said = (*heard, *made.warnings, masked(made._repr_html_()))
    return Outside((*noise.requests, *draws), files_of(files), said, 0, ())


def on_command_line(
    run: Callable[[], int], out: Path, place: Path, said: Callable[[], Any], ledger: str | None
) -> Outside:
    """Return what a command that writes into the folder ``out`` shows; ``said()`` returns what it has printed."""
    with replaced() as noise:
        status = run()
    told = said()
    read = (
        {p.relative_to(out).as_posix(): p.read_bytes() for p in out.rglob("*") if p.is_file()} if out.exists() else {}
    )
    words = tuple(masked(text, str(place)) for text in (told.out, told.err))
    return Outside(
        tuple(noise.requests), files_of(read, str(place)), words, status, ledger_of(ledger, str(place))
    )  # fmt: skip
