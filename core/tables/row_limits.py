"""Row limit per person.

The choice of a person's rows is the same for every kind of storage.

A row's lot is the first 64 bits of MD5 of ``key:codes:index:person``. Here *codes* are the row's codes joined into a
few whole numbers (see :func:`joined`), and *index* distinguishes rows with the same person and codes. Each person keeps
the rows with the smallest lots. MD5 is used because every engine has it; nothing depends on its strength.

**Unit.** For every fixed key, the choice of a person's rows depends only on that person's own identifier and codes,
never on positions in the table or on another person's rows. If at most k rows of each person are kept, two tables that
differ in any number of one person's rows become tables that differ by adding or removing at most k rows. This holds for
each key and needs no assumption about the hash. (A mixture over keys keeps the bound, see
`espalier.core.privacy.contribution`, Coupling.) Identifiers must be exact: they are compared as the bytes of their
text, never by a hash.

These lots serve row limits only. Choosing the holdout by such lots would leak, because under replace-one, a person may
be replaced by another person whose lot is in the other part, and then both parts change.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.tables.catalogue import ROWS

JOINED_LIMIT = 1 << 62
"""Bound on joined codes, so that they fit signed 64-bit numbers."""


def new_key() -> str:
    """Return a fresh key from the operating system's generator."""
    return secrets.token_hex(16)


def runs(sizes: Sequence[int]) -> list[slice]:
    """Return the columns, in order, in the fewest runs whose product of sizes stays below `JOINED_LIMIT`."""
    out, start, product = [], 0, 1
    for i, size in enumerate(sizes):
        if product * size >= JOINED_LIMIT:
            out.append(slice(start, i))
            start, product = i, 1
        product *= size
    return [*out, slice(start, len(sizes))]


def joined(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> list[NDArray[np.int64]]:
    """Return each run of columns as one number per row: ((c0 · s1 + c1) · s2 + c2) …"""
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
    """Return the rows that are kept, in ascending order: for each person, the ``most`` with the smallest lots.

    ``person`` contains the index of each row's identifier in ``names``, and ``codes`` the columns in schema order.
    """
    counts = np.bincount(person, minlength=len(names))
    over = np.flatnonzero(counts[person] > most)
    if not len(over):
        return np.arange(len(person))
    numbers = joined([column[over] for column in codes], sizes)
    owner = person[over]
    alike = np.lexsort((*numbers, owner))  # puts equal rows of one person next to each other
    over, owner, numbers = over[alike], owner[alike], [number[alike] for number in numbers]
    fresh = np.ones(len(over), dtype=np.bool_)
    fresh[1:] = np.any([np.diff(column) != 0 for column in (owner, *numbers)], axis=0)
    index = np.arange(len(over)) - np.maximum.accumulate(np.where(fresh, np.arange(len(over)), 0))
    lots = _lots(key, names, owner, numbers, index)
    order = np.lexsort((lots, owner))  # rows with equal lots stay in order of codes and index
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    place = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    kept = over[order[place < most]]
    return np.sort(np.concatenate([np.flatnonzero(counts[person] <= most), kept]))


def _lots(
    key: str, names: Sequence[str], owner: NDArray[Any], numbers: Sequence[NDArray[np.int64]], index: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Return the lot of each row. DuckDB formats and hashes the text, which takes a third of the time that Python
    takes.
    """
    import pyarrow as pa

    people = pa.DictionaryArray.from_arrays(owner.astype(np.int32), pa.array(names, pa.string()))
    columns = {f"r{i}": pa.array(number) for i, number in enumerate(numbers)}
    return _hashed(pa.table({**columns, "i": pa.array(index), "person": people}), list(columns), key)


def _hashed(rows: Any, numbers: Sequence[str], key: str) -> NDArray[np.uint64]:
    """Return the lots of an Arrow table's rows, in order, from its columns ``numbers``, ``i`` and ``person``."""
    joined = " || ',' || ".join(numbers)
    text = f"$1 || ':' || {joined} || ':' || i || ':' || person"
    with _hashing().cursor() as con:
        con.register(ROWS, rows)
        found = con.execute(f"SELECT ('0x' || left(md5({text}), 16))::UBIGINT AS lot FROM {ROWS}", [key]).fetchnumpy()
    return np.asarray(found["lot"])


@lru_cache(maxsize=1)
def _hashing() -> Any:
    """Return an embedded engine that stores nothing. One thread keeps rows in order, and nothing is spilled to disk."""
    import duckdb

    return duckdb.connect(config={"threads": 1, "temp_directory": ""})
