"""Keyed lots: which rows of a person are kept, the same wherever the table lives.

A row's lot is the first 64 bits of MD5 of ``key:codes:index:person``, where *codes* are the row's codes joined to a few
whole numbers (see :func:`joined`) and *index* tells rows apart that are alike in person and codes. Of each person the
rows with the smallest lots are kept. MD5 is taken because every engine has it; nothing hangs on it being hard to break:

**Unit.** For every fixed key, which rows of a person are kept depends on that person's own rows only: on whose they
are and what they say, never on their places in the table or on another's rows. So with at most k rows kept, tables that
differ in one person's rows, however many, are cut to tables that differ in at most k rows that come or go. This holds
key by key and needs no assumption on the hash (a mixture over keys keeps the bound: see
`espalier.core.privacy.contribution`, Coupling). What must be exact is who is who: persons are compared as the bytes of
their text, never by a hash.

These lots serve this and nothing else. A hold-out by such a lot would leak: under replace-one a person may become
another whose lot falls into the other part, and both parts change.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

JOINED_LIMIT = 1 << 62
"""Joined codes stay below, so that engines hold them in a signed 64-bit number."""


def new_key() -> str:
    """A fresh key from the operating system's generator."""
    return secrets.token_hex(16)


def runs(sizes: Sequence[int]) -> list[slice]:
    """The columns, in order, in as few runs as keep the product of the sizes below `JOINED_LIMIT`."""
    out, start, product = [], 0, 1
    for i, size in enumerate(sizes):
        if product * size >= JOINED_LIMIT:
            out.append(slice(start, i))
            start, product = i, 1
        product *= size
    return [*out, slice(start, len(sizes))]


def joined(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> list[NDArray[np.int64]]:
    """Each run of columns as one number per row: ((c0 · s1 + c1) · s2 + c2) …"""
    out = []
    for run in runs(sizes):
        number = np.zeros(len(codes[0]), dtype=np.int64)
        for column, size in zip(codes[run], sizes[run], strict=True):
            number *= size
            number += column
        out.append(number)
    return out


def kept_rows(
    key: str, names: Sequence[str], person: NDArray[Any], codes: Sequence[NDArray[Any]], sizes: Sequence[int], most: int
) -> NDArray[np.int64]:
    """The rows (ascending) that are kept: of each person the ``most`` with the smallest lots.

    ``person`` gives, by row, the place in ``names`` of whose row it is; ``codes`` the columns in schema order.
    """
    counts = np.bincount(person, minlength=len(names))
    over = np.flatnonzero(counts[person] > most)
    if not len(over):
        return np.arange(len(person))
    numbers = joined([column[over] for column in codes], sizes)
    whose = person[over]
    alike = np.lexsort((*numbers, whose))  # rows of one person that are alike stand together
    over, whose, numbers = over[alike], whose[alike], [number[alike] for number in numbers]
    fresh = np.ones(len(over), dtype=np.bool_)
    fresh[1:] = np.any([np.diff(column) != 0 for column in (whose, *numbers)], axis=0)
    index = np.arange(len(over)) - np.maximum.accumulate(np.where(fresh, np.arange(len(over)), 0))
    lots = _lots(key, names, whose, numbers, index)
    order = np.lexsort((lots, whose))  # lots that are the same leave rows as they stood, by codes and index
    starts = np.flatnonzero(np.diff(whose[order], prepend=-1))
    place = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    kept = over[order[place < most]]
    return np.sort(np.concatenate([np.flatnonzero(counts[person] <= most), kept]))


def _lots(
    key: str, names: Sequence[str], whose: NDArray[Any], numbers: Sequence[NDArray[np.int64]], index: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """The lot of each row. DuckDB writes the texts and hashes them, in a third of the time that Python takes."""
    import pyarrow as pa

    from espalier.core.tables.sql import lots_of

    people = pa.DictionaryArray.from_arrays(whose.astype(np.int32), pa.array(names, pa.string()))
    columns = {f"r{i}": pa.array(number) for i, number in enumerate(numbers)}
    return lots_of(pa.table({**columns, "i": pa.array(index), "person": people}), list(columns), key)
