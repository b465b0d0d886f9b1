"""What a plan would do: its frame, every measurement with its price, sizes and warnings. Reads no data.

The synthesizer itself is run against a :class:`~core.privacy.curator.Rehearsal`, so the preview and the release
cannot disagree about the arithmetic.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from core.evaluation.private.held_out import PrivateFigure, rehearse
from core.methods import METHODS
from core.methods.advice import advice
from core.methods.frame import Frame, frame_of
from core.methods.select.adaptive import fits
from core.methods.select.allocation import MOST_BY_HAND, label
from core.models.graphical import Size, check_size
from core.privacy.accounting import Budget, Unit, epsilon_of, guess_right
from core.privacy.contribution import held_rows, public_rows
from core.privacy.curator import Rehearsal, Spending
from core.graph.separations import Clique
from core.privacy.draws import (Measurement)
from core.project.file import Plan, Project
from core.release.error_bounds import Counted, Promise, promise

TREES = ("privci", "prefair", "mst")
"""The methods that grow one tree, and read ``width``, ``explain`` and ``compress``."""


@dataclass(frozen=True)
class Line:
    """One row of the budget table.

    ``columns`` is None where a private choice decides them at release; then ``cells`` and ``sigma`` are those of the
    largest candidate. ``sigma`` is in rows (for a choice: the scale of its score's noise); ``error`` the expected
    absolute error per cell σ√(2/π) as a share of n, None where n is not known; ``bound`` (a total variation distance,
    see `core.release.error_bounds`) is what the whole marginal stays within with all others in 95 of 100 releases.
    """

    pool: str
    what: str
    columns: Clique | None
    cells: int | None
    rho: float
    sigma: float
    error: float | None
    bound: float | None = None


@dataclass(frozen=True)
class Preview:
    """A plan, rehearsed. ``features`` is how many columns prism's S holds, ``promise`` what theory says of the error
    (None where n is not known).

    ``looking`` is what is paid for on the held-out part, beside ``lines`` and not added to ``spent``; ``expected`` are
    private figures with intervals as wide as theirs are likely to be (empty where n is not known).
    """

    project: Project
    budget: Budget
    frame: Frame
    lines: tuple[Line, ...]
    size: Size
    spent: float
    forest: bool
    warnings: tuple[str, ...]
    features: int
    promise: Promise | None
    looking: tuple[Line, ...] = ()
    expected: tuple[PrivateFigure, ...] = ()

    @property
    def pools(self) -> dict[str, float]:
        """ρ by pool, in the order of spending."""
        out: dict[str, float] = {}
        for line in self.lines:
            out[line.pool] = out.get(line.pool, 0.0) + line.rho
        return out

    @property
    def alone(self) -> dict[str, float]:
        """ε of each pool if nothing else were spent, at the plan's δ. They do not add up to ε; ρ does."""
        return {pool: epsilon_of(rho, self.budget.delta) for pool, rho in self.pools.items()}

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the command line."""
        b = self.budget
        return {
            "epsilon": b.epsilon, "delta": b.delta, "rho": b.rho, "spent": self.spent,
            "guess_right": guess_right(b.epsilon, b.delta),
            "pools": self.pools, "pools_alone": self.alone,
            "lines": [vars(line) for line in self.lines],
            "looking": [vars(line) for line in self.looking],
            "looking_expected": [f.to_json() for f in self.expected],
            "separations": [s.to_json() for s in self.frame.separations],
            "bounds": self.promise.to_json() if self.promise else None,
            "features": self.frame.features, "refused": self.frame.refused,
            "cells": self.size.cells, "bytes": self.size.bytes, "seconds": self.size.seconds,
            "forest": self.forest, "warnings": self.warnings,
        }  # fmt: skip


def preview(project: Project, rows: int | None = None) -> Preview:
    """The preview of a project; ``rows`` is n where it is known and public.

    Raises :class:`EspalierError` for a conflict, a missing δ, or a plan too large for ``plan.max_cells``.
    """
    plan, sizes = project.plan, project.schema.sizes
    frame = frame_of(project)
    if plan.neighbors == "replace-one":
        rows = public_rows(plan, rows)
    budget = Budget.of(plan, rows)
    held = held_rows(plan, rows)
    rows = None if rows is None else rows - held
    curator = Rehearsal(sizes, Unit(plan.neighbors, plan.rows_per_person), budget, rows)
    measured = METHODS[plan.method](curator, project, frame)
    size = check_size(sizes, (*measured.cliques, *_largest(project, frame)), max_cells=plan.max_cells)
    if plan.method in TREES:  # a thicker one is fitted several times on the way
        varied = sum(values > 1 for values in sizes.values())
        size = replace(size, seconds=size.seconds * (1 + fits(varied, plan.width)))
    forest = _parts([name for name, size in sizes.items() if size > 1], measured.cliques) > 1
    bounds = promised(curator.spending, rows, plan) if rows else None
    lines = tuple(_lines(curator.spending, curator.open_cliques, rows, bounds))
    warnings = (*frame.warnings, *advice(project), *_warnings(project, frame, budget, forest, rows, lines))
    spent, features = curator.spending.rho, len(measured.features)
    shown = Preview(project, budget, frame, lines, size, spent, forest, warnings, features, bounds)
    if not plan.looking:
        return shown
    made, expected = rehearse(project, replace(budget, rho=spent), held or None)
    return replace(shown, looking=tuple(_counts(m, m.clique, held or None) for m in made), expected=expected)


def promised(spending: Spending, rows: float, plan: Plan) -> Promise:
    """What theory says of everything that ``spending`` counted, on a table of ``rows`` rows."""
    counted = (Counted(m.clique, m.values.size, m.sigma) for m in spending.measurements)
    return promise(counted, rows, plan.rows or rows, plan.target if plan.method == "prism" else None)


def _counts(m: Measurement, known: Clique | None, rows: int | None, most: float | None = None) -> Line:
    chosen = "a pair" if len(m.clique) == 2 else f"{len(m.clique)} columns"
    what = "counts of " + (" × ".join(known) if known else f"{chosen} chosen at release (largest shown)")
    error = m.sigma * math.sqrt(2 / math.pi) / rows if rows else None
    return Line(m.pool, what, known, m.values.size, m.rho, m.sigma, error, most)


def _lines(spending: Spending, open_cliques: set[Clique], rows: int | None, bounds: Promise | None) -> list[Line]:
    most = {m.clique: m.tv for m in bounds.marginals} if bounds else {}
    lines = [Line(c.pool, f"private choice of a {c.what}", None, None, c.rho, c.scale, None) for c in spending.choices]
    lines += [
        _counts(m, None if m.clique in open_cliques else m.clique, rows, most.get(m.clique))
        for m in spending.measurements
    ]
    for x in spending.scores:
        what = f"scores of refused pairs and of the tree ({len(x.cliques)} or so, the tree decides)"
        if x.pool != "explain":
            what = f"association given the target of {len(x.cliques)} three-way tables (their weights)"
        lines.append(Line(x.pool, what, None, None, x.rho, x.sigma, None))
    for g in spending.gradients:
        what = f"gradient of a logistic fit of {g.target}"
        lines.append(Line(g.pool, what, None, g.values.size, g.rho, g.sigma, None))
    return lines


def _largest(project: Project, frame: Frame) -> list[Clique]:
    """The largest table that a private choice could lead to: refused now, or never.

    That is the largest pair the frame allows; with prism's star around the target, its triangle with the target.
    privbayes knows its tables where the graph is drawn. Where it is learned, tables above ``max_cells`` are pairs only,
    and its rehearsal, which takes the largest candidate, meets the largest pair once one of the two is placed.
    """
    plan, schema, sizes = project.plan, project.schema, project.schema.sizes
    if plan.method in ("independent", "privbayes"):
        return []
    names = sorted(schema.names, key=lambda n: -sizes[n])
    others = [n for n in names if plan.method != "prism" or n not in plan.weights]
    pairs = ((a, b) for i, a in enumerate(others) for b in others[i + 1 :] if not frame.forbids(a, b))
    largest = max(pairs, key=lambda p: sizes[p[0]] * sizes[p[1]], default=())
    return (
        [schema.clique((*largest, *plan.weights))]
        if plan.method == "prism" and plan.target
        else [largest] * bool(largest)
    )


def grouped(lines: Iterable[Line]) -> list[tuple[int, Line]]:
    """Equal lines that follow each other, once each with how many there are: (times, the first of them)."""
    runs = (list(run) for _, run in itertools.groupby(lines, key=lambda x: (x.pool, x.what, x.rho)))
    return [(len(run), run[0]) for run in runs]


def _parts(names: list[str], cliques: tuple[Clique, ...]) -> int:
    """How many unconnected parts the model's graph has."""
    part = {name: {name} for name in names}
    for clique in cliques:
        joined = set().union(*(part[name] for name in clique if name in part))
        part.update(dict.fromkeys(joined, joined))
    return len({id(p) for p in part.values()})


def _warnings(
    project: Project, frame: Frame, budget: Budget, forest: bool, rows: int | None, lines: tuple[Line, ...]
) -> list[str]:
    plan = project.plan
    out = []
    if guessed := project.schema.unconfirmed:
        names = ", ".join(guessed[:6]) + (" …" if len(guessed) > 6 else "")
        out.append(f"Not confirmed yet on the Data page: {names}. A release will be refused until they are.")
    if frame.refused:
        out.append(f"The fence keeps {', '.join(frame.refused)} away from {plan.target}: left out of the features.")
    if forest and plan.method != "independent" and not frame.warnings:
        out.append(
            "Not all columns are linked with one another: the model falls into separate parts (a forest), which the "
            "table shows as unrelated."
        )
    if plan.method not in TREES and (plan.width > 1 or plan.explain or plan.compress):
        out.append(
            "Width, explaining and merging rare categories are for the tree methods (PrivCI, PreFair, MST) only."
        )
    elif plan.explain and not any(line.pool == "explain" for line in lines):
        out.append(
            "This plan refuses no pair in a tree, so the share for explaining buys nothing: it goes to the counts."
        )
    if plan.epsilon > 8:
        out.append(f"ε = {plan.epsilon:g} protects little: an attacker's odds may change by a factor of e^ε.")
    if rows and budget.delta > 1 / rows:
        out.append("δ is above 1/n: publishing one random row outright would satisfy it. Choose a smaller δ.")
    elif budget.delta > 1e-5:
        out.append(
            f"δ = {budget.delta:.2g} is large: with about that probability nothing is promised. Give a smaller one."
        )
    drowned = [x for x in lines if x.columns and x.cells and x.error and x.error * x.cells > 1]
    if rows and drowned:
        shown = "; ".join(
            f"{' × '.join(x.columns or ())}: {rows / (x.cells or 1):,.0f} rows a cell, "
            f"noise ±{(x.error or 0) * rows:,.0f}"
            for x in drowned[:4]
        )
        out.append(
            f"Some counts will be mostly noise ({shown}). Coarsen such columns on the Data page, or leave them out."
        )
    out += _hand(plan, lines)
    if plan.person is None and plan.rows_per_person > 1:
        out.append(
            f"That nobody has more than {plan.rows_per_person} rows is a promise this plan makes; it is not checked."
        )
    if plan.person is not None and plan.neighbors == "replace-one":
        out.append(
            f"The table will be filled with invented rows, or cut, to the declared {plan.rows:,} rows before it is "
            "counted, and how many is private: declare a number close to what is left when each person keeps "
            f"{plan.rows_per_person}."
        )
    if plan.looking and rows is None:
        out.append("Which private figures the rows held out can carry depends on their number; all of them are listed.")
    return out


def _hand(plan: Plan, lines: tuple[Line, ...]) -> list[str]:
    """What to say of shares given by hand."""
    if isinstance(plan.allocation, str):
        return []
    out = []
    counted = {label(line.columns): line.pool for line in lines if line.columns}
    if odd := [name for name in plan.allocation if name not in counted]:
        out.append(f"A share is given by hand for {', '.join(odd[:5])}, which this plan does not count.")
    for pool in dict.fromkeys(counted.values()):
        taken = sum(share for name, share in plan.allocation.items() if counted.get(name) == pool)
        if taken > MOST_BY_HAND and any(p == pool and name not in plan.allocation for name, p in counted.items()):
            out.append(
                f"The shares given by hand would take {taken:.0%} of the pool {pool}: they are scaled down to "
                f"{MOST_BY_HAND:.0%}, so that something is left for the other marginals."
            )
    return out
