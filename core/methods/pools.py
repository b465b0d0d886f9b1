"""Plain names of a budget's pools, for screens and the first pages of the report. The annex shows the
internal names.
"""

from __future__ import annotations

from espalier.core.methods.registry import METHODS

SHARED = {
    "one-way": "counts of single columns",
    "total": "the number of rows",
    "questions": "answers to questions",
    "counts": "answers to counts",
    "regressions": "sums for regressions",
    "analyses": "counts for planned analyses",
    "schema": "finding categories and bins",
    "test of the drawing": "testing the drawing",
    "accuracy": "counts of correct predictions",
    "AUC": "counts of correct rankings",
    "CMI": "counts for the fairness figure",
}
"""Pools that any plan may have. Each method declares further pools (`espalier.core.methods.base.Guidance`)."""


def pool_in_words(pool: str) -> str:
    """Return the pool's plain name, or the pool itself if no method declares it.

    The name of a further target's pool, such as ``task: income``, includes its column.
    """
    base, _, column = pool.partition(": ")
    known = SHARED | {name: words for m in METHODS.values() for name, words in m.guidance.pools.items()}
    words = known.get(base, pool)
    return words.replace("the target", column) if column else words
