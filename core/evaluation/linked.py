"""Distance of a synthetic panel from a real one. Confidential, because the figures compare real rows with synthetic
ones. Distances are total variation (TV), averaged over columns or pairs. A step is a visit after the first.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from espalier.core.project.linked import BEFORE, EARLIER, Linked, Steps
from espalier.core.tables.panel import Panel

Array = NDArray[np.float64]


def figures_of(real: Panel, synthetic: Panel) -> dict[str, float | None]:
    """Return the figures of two panels of one project, by name.

    - ``next_visit_same``: TV of a column at two consecutive visits; ``next_visit_any`` of any two columns.
    - ``transition_error``: TV of a column given its value at the previous visit, averaged over the real values.
    - ``visit_pairs``, ``person_visit``: TV of two columns of a visit, and of a person's and a visit's column.
    - ``visits_per_person``: TV of the number of visits.
    - ``echo_real``, ``echo``: share of visits at which a column repeats its value from the visit before the previous
      one.
    - ``same_first_third_real``, ``same_first_third``: share of people for whom a column has the same value at visits 1
      and 3.
    - ``distinct_real``, ``distinct``: distinct values of a column over a person's visits, for people with all visits.
    - ``within_real``, ``within``: the share of a number's variance within people, over bins.
    """
    (one, other), names = (real.steps, synthetic.steps), _linked(real).step_columns(real.schema)
    person = _linked(real).person_columns(real.schema)
    same = [_pair_tv(one, other, name + BEFORE, name) for name in names]
    past = [_pair_tv(one, other, a + BEFORE, b) for a, b in itertools.product(names, names) if a != b]
    within = [_pair_tv(one, other, a, b) for a, b in itertools.combinations(names, 2)]
    whole = [_pair_tv(one, other, a, b) for a, b in itertools.product(person, names)]
    number = real.schema[_linked(real).number].size
    counts = [np.bincount(p.steps.numbers - 1, minlength=number) for p in (real, synthetic)]
    return {
        "next_visit_same": float(np.mean(same)),
        "next_visit_any": _mean(past),
        "transition_error": float(np.mean([_transition(one, other, name) for name in names])),
        "visit_pairs": _mean(within),
        "person_visit": _mean(whole),
        "visits_per_person": _tv(*counts),
        "echo_real": _echo(one, names),
        "echo": _echo(other, names),
        "same_first_third_real": _apart(real, names),
        "same_first_third": _apart(synthetic, names),
        "distinct_real": _distinct(real, names),
        "distinct": _distinct(synthetic, names),
        "within_real": _within(real, names),
        "within": _within(synthetic, names),
    }


def _linked(panel: Panel) -> Linked:
    assert panel.linked is not None
    return panel.linked


def _joint(steps: Steps, a: str, b: str) -> Array:
    shape = steps.sizes[a], steps.sizes[b]
    cells = np.asarray(steps.cells(a), dtype=np.int64) * shape[1] + steps.cells(b)
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(float)


def _tv(a: NDArray[np.int64] | Array, b: NDArray[np.int64] | Array) -> float:
    return 0.5 * float(np.abs(a / max(a.sum(), 1) - b / max(b.sum(), 1)).sum())


def _pair_tv(one: Steps, other: Steps, a: str, b: str) -> float:
    return _tv(_joint(one, a, b), _joint(other, a, b))


def _transition(one: Steps, other: Steps, name: str) -> float:
    a, b = _joint(one, name + BEFORE, name), _joint(other, name + BEFORE, name)
    weights = a.sum(axis=1) / max(a.sum(), 1)
    return float(sum(w * _tv(x, y) for w, x, y in zip(weights, a, b, strict=True) if w > 0))


def _echo(steps: Steps, names: Sequence[str]) -> float | None:
    at = steps.place[1] > 1
    if not at.any():
        return None
    return float(np.mean([np.mean((steps.cells(n) == steps.cells(n + EARLIER))[at]) for n in names]))


def _apart(panel: Panel, names: Sequence[str]) -> float | None:
    whole = panel.steps.numbers > 2
    if not whole.any():
        return None
    names = [
        name for name in names if name in panel.schema
    ]  # at the first visit, there are no days since a previous one
    return float(np.mean([np.mean(panel.visits[name][whole, 0] == panel.visits[name][whole, 2]) for name in names]))


def _distinct(panel: Panel, names: Sequence[str]) -> float | None:
    whole = panel.steps.numbers == _linked(panel).keep
    if not whole.any():
        return None
    ordered = [np.sort(panel.visits[name][whole], axis=1) for name in names]
    return float(np.mean([1 + (np.diff(cells, axis=1) != 0).sum(axis=1).mean() for cells in ordered]))


def _within(panel: Panel, names: Sequence[str]) -> float | None:
    """Return the mean share of variance within people over numeric and ordinal columns; `None` without such columns."""
    ordered = [n for n in names if n in panel.schema and panel.schema[n].kind in ("numeric", "ordinal")]
    seen = np.arange(_linked(panel).keep) < panel.steps.numbers[:, None]
    several = panel.steps.numbers > 1
    shares = []
    for name in ordered:
        codes = np.where(seen, panel.visits[name], 0).astype(np.float64)[several]
        there, many = seen[several], panel.steps.numbers[several][:, None]
        apart = np.where(there, codes - codes.sum(axis=1, keepdims=True) / many, 0.0)
        whole = np.where(there, codes - codes.sum() / max(there.sum(), 1), 0.0)
        if total := float((whole**2).sum()):
            shares.append(float((apart**2).sum()) / total)
    return float(np.mean(shares)) if shares else None


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else 0.0
