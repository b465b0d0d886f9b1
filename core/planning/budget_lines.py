"""Budget table of a plan or release, with one line for each measurement and each private choice."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from espalier.core.graph.separations import Clique
from espalier.core.methods.select.allocation import MOST_BY_HAND, label
from espalier.core.planning.error_bounds import ErrorBounds
from espalier.core.privacy.draws import Draw
from espalier.core.project.plan import Plan

IN_ROWS = ("step-counts", "echoes", "visit-counts")
"""Recipes of sums whose σ is in rows (or in people, for linked tables)."""


@dataclass(frozen=True)
class Line:
    """One row of the budget table.

    ``columns`` is None if a private choice determines them at release; then ``cells`` and ``sigma`` describe the
    largest candidate. ``sigma`` is in rows (for a choice, the scale of its score's noise). ``error`` is the expected
    absolute error per cell, σ√(2/π), as a share of n, or None if n is not known. ``bound`` is a bound on the total
    variation distance (`espalier.core.planning.error_bounds`); it holds for all marginals simultaneously in 95 of 100
    releases. ``sums`` is true for a vector of sums other than counts, such as a gradient, with σ in its own unit
    instead of rows. ``epsilon`` is the ε of its pure guarantee, None without one.
    """

    pool: str
    what: str
    columns: Clique | None
    cells: int | None
    rho: float
    sigma: float
    error: float | None
    bound: float | None = None
    sums: bool = False
    epsilon: float | None = None


def lines_of(draws: Iterable[Draw], rows: int | None = None, bounds: ErrorBounds | None = None) -> Iterator[Line]:
    """Yield the draws as rows of the budget table; ``rows`` is n if it is known."""
    most = {m.clique: m.tv for m in bounds.marginals} if bounds else {}
    for d in draws:
        epsilon = None if d.epsilon == math.inf else d.epsilon
        if d.kind == "count":
            error = d.scale * math.sqrt(2 / math.pi) / rows if rows else None
            known = None if d.is_open else d.columns
            yield Line(d.pool, d.what, known, d.cells, d.rho, d.scale, error, most.get(d.columns or ()), False, epsilon)
        else:
            what = f"noisy choice of a {d.what}" if d.kind == "choice" else d.what
            if d.kind == "choice" and d.columns:
                what += f": {' – '.join(d.columns)}"
            sums = d.kind in ("gradient", "sums")
            cells = d.cells if sums else None
            apart = sums and d.recipe not in IN_ROWS
            yield Line(d.pool, what, None, cells, d.rho, d.scale, None, sums=apart, epsilon=epsilon)


def grouped(lines: Iterable[Line]) -> list[tuple[int, Line]]:
    """Return runs of equal lines as pairs (number of lines, first line)."""
    runs = (list(run) for _, run in itertools.groupby(lines, key=lambda x: (x.pool, x.what, x.rho)))
    return [(len(run), run[0]) for run in runs]


def not_in_rows(lines: Iterable[Line]) -> str:
    """Return a sentence about lines whose σ is not in rows; empty if there is none."""
    what = list(dict.fromkeys(line.what for line in lines if line.sums))
    more = f" and {len(what) - 5} more" if len(what) > 5 else ""
    return f"Measured in their own unit, so their σ is not in rows: {', '.join(what[:5])}{more}." if what else ""


def given_by_hand(plan: Plan, lines: tuple[Line, ...]) -> list[str]:
    """Return sentences about shares set by hand that are ignored or scaled down."""
    if isinstance(plan.allocation, str):
        return []
    out = []
    counted = {label(line.columns): line.pool for line in lines if line.columns}
    if odd := [name for name in plan.allocation if name not in counted]:
        out.append(f"A share is set by hand for {', '.join(odd[:5])}, which this plan does not measure.")
    for pool in dict.fromkeys(counted.values()):
        taken = sum(share for name, share in plan.allocation.items() if counted.get(name) == pool)
        if taken > MOST_BY_HAND and any(p == pool and name not in plan.allocation for name, p in counted.items()):
            out.append(
                f"The shares set by hand would take {taken:.0%} of the pool {pool}. They are scaled down to "
                f"{MOST_BY_HAND:.0%}, so that a share is left for the other marginals."
            )
    return out
