"""Random choice of rows, based on random numbers called lots.

Every lot is 64 bits, independent of every row's content and person. It comes fresh from the operating system's
generator, or from a stream whose secret seed lets a resumed release hold out the same rows again. No lot is a hash of a
row. `espalier.core.privacy.contribution` proves the guarantee of such choices and explains why a public seed would
break it.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Lots = NDArray[np.uint64]
Mask = NDArray[np.bool_]
Deal = Callable[[int], Lots]
"""Function that returns the requested number of independent lots, new ones with each call."""

STEP = 1 << 20
"""Number of lots drawn at a time."""


def fresh_lots(count: int) -> Lots:
    """Return ``count`` independent lots, uniform over 64 bits."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def lots_for(count: int, deal: Deal | None) -> Lots:
    """Return ``count`` lots from ``deal``, or fresh lots if ``deal`` is `None`."""
    return (deal or fresh_lots)(count)


def seeded_lots(seed: bytes) -> Deal:
    """Return lots that are indistinguishable from fresh ones without ``seed``: SHAKE-256 of the seed and a counter."""
    calls = itertools.count()

    def deal(count: int) -> Lots:
        stream = hashlib.shake_256(b"%d:" % next(calls) + seed)
        return np.frombuffer(stream.digest(8 * count), dtype="<u8").astype(np.uint64)

    return deal


def by_chance(count: int, share: float, deal: Deal | None = None) -> Mask:
    """Choose each of ``count`` people or rows with probability ``share``, and return a mask of the chosen ones."""
    return lots_for(count, deal) < np.uint64(share * 2.0**64)


def first(lots: Lots, most: int) -> Rows:
    """Return the ``most`` positions with the smallest lots, or all positions if there are fewer."""
    return np.argsort(lots, kind="stable")[:most].astype(np.int64)


def first_of_each(person: NDArray[Any], lots: Lots, most: int) -> Rows:
    """Return the rows, in ascending order, that have one of the ``most`` smallest lots of their person."""
    order = np.lexsort((lots, person))
    starts = np.flatnonzero(np.diff(person[order], prepend=-1))
    place = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    return np.sort(order[place < most])


def subset(rows: int, size: int, deal: Deal | None = None) -> Mask:
    """Choose ``size`` of ``rows`` positions, where every set of that size is equally likely.

    This needs the memory of one bit array. Positions are drawn until enough distinct ones are marked. No more positions
    are drawn at a time than are still missing, so the total is exact, and by symmetry no set is preferred.
    """
    few = min(size, rows - size)
    marked = np.zeros(rows, dtype=np.bool_)
    limit = np.uint64(2**64 // rows * rows - 1) if rows else np.uint64(0)
    while missing := few - int(np.count_nonzero(marked)):
        lots = lots_for(min(missing, STEP), deal)
        marked[(lots[lots <= limit] % np.uint64(rows)).astype(np.int64)] = (
            True  # the remainder would favour low positions
        )
    return marked if few == size else ~marked


def invented_codes(count: int, size: int, deal: Deal | None = None) -> Rows:
    """Return ``count`` codes for invented rows of a column, uniform over its ``size`` codes."""
    return (lots_for(count, deal) % np.uint64(size)).astype(np.int64)
