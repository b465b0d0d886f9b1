"""A snapshot's rows cut to a public total, and some of its people set aside at random, batch by batch.

These are :func:`espalier.core.privacy.contribution.bounded` and `split` for rows that are not in memory; the proofs are
given there. Every lot here is fresh, from the operating system's generator, and independent of the row's content
and of its person: a hold-out by a hash of the id would let a replaced person change both parts.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.tables.snapshot import PERSON, CodeFile, Snapshot

FILL_ROWS = 1 << 20


def to_total(snapshot: Snapshot, total: int) -> Snapshot:
    """Return exactly ``total`` rows of a snapshot cut to k a person: others left out at random, or invented ones added.

    This is the second half of `bounded`: lots are fresh and independent for each kept row, filler rows come last.
    """
    if snapshot.person_column is None or snapshot.kept is None:
        raise TableError("a declared total needs the rows of each person to be limited first")
    chosen = snapshot.take(_subset(snapshot.rows, min(total, snapshot.rows)))
    sizes = {f"c{i}": column.size for i, column in enumerate(snapshot.schema.columns)}
    file = CodeFile(Snapshot.sizes(snapshot.schema))
    for batch in chosen.file.batches():
        file.append({name: batch[name] for name in sizes})
    for start in range(chosen.rows, total, FILL_ROWS):
        rows = min(FILL_ROWS, total - start)
        file.append({name: (_lots(rows) % np.uint64(size)).astype(np.int64) for name, size in sizes.items()})
    chosen.close()
    return snapshot.like(file)


def split_snapshot(snapshot: Snapshot, share: float, size: int | None = None) -> tuple[Snapshot, Snapshot]:
    """(rest, held): each person, where people are named, else each row, is held with chance ``share``.

    With ``size`` exactly that many rows are, which needs a public number of rows and no person column.
    """
    held = np.zeros(snapshot.rows, dtype=np.bool_)
    if snapshot.names_people:
        at = 0
        for batch in snapshot.file.batches((PERSON,)):
            person = batch[PERSON]
            held[at : at + len(person)] = _by_chance(int(person.max()) + 1, share)[person]
            at += len(person)
    elif size is None:
        held = _by_chance(snapshot.rows, share)
    else:
        held = _subset(snapshot.rows, size)
    return snapshot.take(~held), snapshot.take(held)


def _by_chance(count: int, share: float) -> NDArray[np.bool_]:
    return _lots(count) < np.uint64(share * 2.0**64)


def _subset(rows: int, size: int) -> NDArray[np.bool_]:
    """``size`` of ``rows`` places, every set of them equally likely: places drawn until so many are different.

    No draw is larger than what is still missing, so it never takes one too many, and by symmetry no set is preferred.
    """
    few = min(size, rows - size)
    marked = np.zeros(rows, dtype=np.bool_)
    limit = np.uint64(2**64 // rows * rows - 1) if rows else np.uint64(0)
    while missing := few - int(np.count_nonzero(marked)):
        lots = _lots(min(missing, FILL_ROWS))
        marked[(lots[lots <= limit] % np.uint64(rows)).astype(np.int64)] = True  # the rest would favour low places
    return marked if few == size else ~marked


def _lots(count: int) -> NDArray[np.uint64]:
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
