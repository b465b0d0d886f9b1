"""Public coarsening of bins or categories, based only on the schema and the user's choices.

Every cell gets noise, so a table with rare categories or long tails is released more accurately if it is coarsened.
Nothing here reads the data. Each function returns a new column. A guessed range remains a guess, because the new edges
still begin and end at the same values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from espalier.core.errors import SchemaError
from espalier.core.project.schema import Categories, Column, Numbers


def even_bins(column: Column, bins: int) -> Column:
    """Return the column with ``bins`` bins of equal width over its declared range."""
    low, high = column.edges[0], column.edges[-1]
    return _with_edges(column, [low + (high - low) * i / bins for i in range(bins + 1)])


def growing_bins(column: Column, bins: int) -> Column:
    """Return the column with ``bins`` bins that widen by a constant factor away from zero, for skewed amounts; the
    range must start at 0 or above.

    If the range starts at 0, the first bin is [0, 1) for whole numbers and a thousandth of the range otherwise.
    """
    low, high = column.edges[0], column.edges[-1]
    if low < 0:
        raise SchemaError(
            f"column {column.name!r}: growing bins need a range that starts at 0 or above", column=column.name
        )
    first = low or (1.0 if column.integer else high / 1000)
    steps = bins if low else bins - 1
    if steps < 1 or high <= first:
        return even_bins(column, bins)
    grown = [first * (high / first) ** (i / steps) for i in range(steps + 1)]
    return _with_edges(column, grown if low else [0.0, *grown])


def _with_edges(column: Column, edges: list[float]) -> Column:
    """Return the column with inner edges rounded to two digits if they stay distinct. The range does not change."""
    inner = (round(e) if column.integer else _two_figures(e) for e in edges[1:-1])
    kept = sorted({e for e in inner if edges[0] < e < edges[-1]})
    assert isinstance(column, Numbers)
    return replace(column, edges=(edges[0], *map(float, kept), edges[-1]))


def _two_figures(x: float) -> float:
    return round(x, 1 - math.floor(math.log10(abs(x)))) if x else 0.0


def group(column: Column, members: Iterable[str], name: str) -> Column:
    """Merge the categories ``members`` into a category called ``name``; cells are still read as written."""
    chosen = tuple(c for c in column.categories if c in set(members))
    if not chosen:
        return column
    before = dict(column.groups)
    inside = tuple(m for c in chosen for m in ((*before[c],) if c in before else ()))
    absorbed = tuple(c for c in chosen if c != name)
    kept = tuple(c for c in column.categories if c not in chosen and c != name)
    groups = {g: m for g, m in before.items() if g not in chosen and g != name}
    groups[name] = (*before.get(name, ()), *(m for m in inside if m not in before.get(name, ())), *absorbed)
    assert isinstance(column, Categories)
    return replace(column, categories=(*kept, name), groups=tuple(groups.items()))
