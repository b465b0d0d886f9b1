"""Model of one column of a visit given its parents, with a fit of its parameters to noisy counts.

p(b = v | pa) ∝ exp(β_v + s_v·1[a = v] + κ·1[c = v] + Σ_e φ_e(pa_e, v)): b is the column at this visit, a the column at
the previous visit, c the column at the visit before that. The parameters maximise

    ⟨θ, T⟩ − Σ_r w_r log Z_r(θ) − (λ/2) Σ_e σ_e² ‖φ_e‖²

over evidence rows r with weights w_r, for noisy counts T. This objective is the dual of min Σ_e ‖M_e − T_e‖²/(2σ_e²) +
λ·KL, so it is concave, and it needs no table over all parents, however many there are. β, s and κ are hardly penalised,
so the fit shrinks towards "stay or draw again" instead of independence from the previous visit. Tables whose cells are
mostly noise have less weight: σ_e² is multiplied by 1 + σ divided by the average cell. The counts that determine s are
shrunk towards a common probability of staying.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.project.linked import BEFORE, EARLIER

Array = NDArray[np.float64]
Cells = Callable[[str], NDArray[Any]]
"""Function that returns a column's code at each step."""

PENALTY = 1e-4
"""Penalty on β, s and κ, per unit of weight. It only keeps them finite if a value never occurs."""
ROWS_BY = 2.0
"""Largest factor (or inverse factor) that scales a row of a noisy table to the number of evidence rows."""
MEMORY = 12
"""Number of steps that L-BFGS stores."""
LARGEST = 60.0
"""Bound at which logits are clipped while a column is fitted."""
GAP = 1e-5
"""The fit stops once no entry of the scaled gradient exceeds this value."""


@dataclass(frozen=True)
class StepColumn:
    """One column of a visit after the first. ``effects`` maps parents to φ, one row per code of the parent."""

    name: str
    base: Array
    stay: Array
    echo: float
    effects: Mapping[str, Array]

    @property
    def size(self) -> int:
        """Number of codes."""
        return len(self.base)

    @property
    def parents(self) -> tuple[str, ...]:
        """Columns on which this column depends. Columns of the previous visit come first, and columns of the visit
        before that come last.
        """
        own = self.name + BEFORE, self.name + EARLIER
        return own[0], *(name for name in self.effects if name not in own), own[1]

    def probabilities(self, cells: Cells) -> Array:
        """Return p(b | parents) at each step, one row per step."""
        logits = self.base + np.zeros((len(cells(self.name + BEFORE)), 1))
        for parent, effect in self.effects.items():
            logits += effect[cells(parent)]
        _add(logits, cells(self.name + BEFORE), self.stay)
        _add(logits, cells(self.name + EARLIER), np.full(self.size, self.echo))
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        return np.asarray(logits / logits.sum(axis=1, keepdims=True))


def drawn(probabilities: Array, numbers: Array) -> NDArray[np.int64]:
    """Return one code for each row of ``probabilities``, selected by the row's number in [0, 1)."""
    below = np.cumsum(probabilities, axis=1)
    found = (below < numbers[:, None] * below[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(found, probabilities.shape[1] - 1), dtype=np.int64)


def _add(logits: Array, codes: NDArray[Any], values: Array) -> None:
    """Add to each row the value of its code. A code beyond the column's codes means "none"."""
    rows = np.flatnonzero(codes < len(values))
    logits[rows, codes[rows]] += values[codes[rows]]


@dataclass(frozen=True)
class NoisyTable:
    """Noisy counts of a parent with the column, in people, and their σ."""

    values: Array
    sigma: float


@dataclass(frozen=True)
class Target:
    """Noisy counts for the column ``name``: ``tables`` by parent, its ``margin``, and how often the column repeats its
    value.

    All are in people; ``total`` is the number of people with steps.
    """

    name: str
    tables: Mapping[str, NoisyTable]
    margin: Array
    echoes: float
    total: float


def fit_column(
    target: Target, cells: Cells, weights: Array, start: StepColumn | None = None, evaluations: int = 60
) -> StepColumn:
    """Return the column that fits ``target`` on evidence rows, which ``cells`` and ``weights`` describe."""
    problem = _Problem(target, cells, weights / weights.sum())
    return problem.column(minimised(problem.loss, problem.packed(start), evaluations))


def minimised(loss: Callable[[Array], tuple[float, Array]], x: Array, evaluations: int) -> Array:
    """Return a minimum of ``loss``, which returns a value and its gradient, by L-BFGS (Nocedal & Wright 2006, 7.4).

    On these short vectors, SciPy's implementation would take a second and many threads.
    """
    value, slope = loss(x)
    pairs, left = list[tuple[Array, Array, float]](), evaluations - 1
    while left > 0 and np.abs(slope).max() > GAP:
        direction, alphas = -slope, list[float]()
        for moved, turned, curvature in reversed(pairs):
            alphas.append(float(moved @ direction) / curvature)
            direction -= alphas[-1] * turned
        if pairs:
            moved, turned, curvature = pairs[-1]
            direction *= curvature / float(turned @ turned)
        for (moved, turned, curvature), alpha in zip(pairs, reversed(alphas), strict=True):
            direction += (alpha - float(turned @ direction) / curvature) * moved
        descent, length = float(direction @ slope), 1.0
        while left > 0:
            trial = x + length * direction
            found, gradient = loss(trial)
            left -= 1
            if found <= value + 1e-4 * length * descent:
                break
            length *= 0.4
        else:
            break
        moved, turned = trial - x, gradient - slope
        if (curvature := float(moved @ turned)) > 1e-12 * float(turned @ turned):
            pairs = [*pairs[1 - MEMORY :], (moved, turned, curvature)]
        x, value, slope = trial, found, gradient
    return x


class _Problem:
    """Fit of one column, in shares of the total weight, with parameters scaled to curvatures of about 1."""

    def __init__(self, target: Target, cells: Cells, weights: Array) -> None:
        from scipy import sparse

        self.target, self.weights = target, weights.astype(np.float32)
        self.margin = _shares(target.margin)
        size, rows = len(self.margin), len(weights)
        codes = [np.asarray(cells(name), dtype=np.int64) for name in target.tables]
        heights = [len(table.values) for table in target.tables.values()]
        self.splits = np.cumsum(heights)[:-1]
        offsets = np.concatenate([[0], np.cumsum(heights)[:-1]]).astype(np.int64)
        places = np.stack([c + o for c, o in zip(codes, offsets, strict=True)], axis=1).ravel()
        pointers = np.arange(rows + 1) * len(codes)
        self.design = sparse.csr_matrix(
            (np.ones(len(places), np.float32), places, pointers), shape=(rows, sum(heights))
        )
        self.turned = self.design.T.tocsr()
        self.shown = [np.bincount(c, weights, h).astype(np.float64) for c, h in zip(codes, heights, strict=True)]
        noise = np.array([table.sigma for table in target.tables.values()])
        typical = target.total / np.array([table.values.size for table in target.tables.values()])
        people_to_a_row = target.total * float((self.weights.astype(np.float64) ** 2).sum())
        sigmas = np.sqrt(noise**2 + typical * (1 + people_to_a_row))  # both the people and the evidence are samples
        strength = sigmas**2 / (np.median(sigmas) * target.total) * (1 + noise / typical)
        self.penalty = np.concatenate([np.full((h, 1), p) for h, p in zip(heights, strength, strict=True)])
        self.wanted = np.concatenate(
            [
                _scaled(table.values / target.total, shown, self.margin)
                for table, shown in zip(target.tables.values(), self.shown, strict=True)
            ]
        )
        curvature = np.concatenate(self.shown)[:, None] * self.margin * (1 - self.margin) + self.penalty
        self.scale = 1 / np.sqrt(np.maximum(curvature, 1e-9))
        self.before, self.earlier = (np.asarray(cells(target.name + suffix)) for suffix in (BEFORE, EARLIER))
        self.same = [np.flatnonzero(codes < size) for codes in (self.before, self.earlier)]
        own = list(target.tables).index(target.name + BEFORE)
        stay = np.split(self.wanted, self.splits)[own][:size]
        self.stays = self._stays(np.diag(stay), target.tables[target.name + BEFORE].sigma / target.total)
        self.echoes = min(max(target.echoes / target.total, 0.0), float(weights[self.same[1]].sum()))
        self.small = np.concatenate([np.sqrt(np.maximum(self.margin, 1e-3))] * 2 + [[0.5]])

    def _stays(self, counted: Array, sigma: float) -> Array:
        """Return the share of steps that keep each value, shrunk towards a common probability of staying."""
        by_chance = self.margin**2
        chance = float((counted.sum() - by_chance.sum()) / max(1 - by_chance.sum(), 1e-9))
        chance = min(max(chance, 0.0), 1.0)
        return shrunk(counted, chance * self.margin + (1 - chance) * by_chance, sigma)

    def packed(self, start: StepColumn | None) -> Array:
        """Return the initial scaled parameters."""
        size = len(self.margin)
        if start is None:
            base = np.log(np.maximum(self.margin, 1e-4))
            return np.concatenate([np.concatenate([base, np.zeros(size + 1)]) * self.small, np.zeros(self.wanted.size)])
        known = [start.effects.get(name, np.zeros_like(t.values)) for name, t in self.target.tables.items()]
        small = np.concatenate([start.base, start.stay, [start.echo]]) * self.small
        return np.concatenate([small, (np.concatenate(known) / self.scale).ravel()])

    def column(self, x: Array) -> StepColumn:
        """Return the column for scaled parameters."""
        size = len(self.margin)
        small, effects = x[: 2 * size + 1] / self.small, x[2 * size + 1 :].reshape(-1, size) * self.scale
        parts = dict(zip(self.target.tables, np.split(effects, self.splits), strict=True))
        return StepColumn(self.target.name, small[:size], small[size:-1], float(small[-1]), parts)

    def loss(self, x: Array) -> tuple[float, Array]:
        """Return the negative objective and its gradient."""
        size = len(self.margin)
        small, effects = x[: 2 * size + 1] / self.small, x[2 * size + 1 :].reshape(-1, size) * self.scale
        base, stay, echo = small[:size], small[size:-1], small[-1]
        logits = self.design @ effects.astype(
            np.float32
        )  # takes half the time of float64, with errors far below the noise
        logits += base.astype(np.float32)
        (at_a, at_c), a, c = self.same, self.before, self.earlier
        logits[at_a, a[at_a]] += stay[a[at_a]]
        logits[at_c, c[at_c]] += echo
        np.exp(np.clip(logits, -LARGEST, LARGEST, out=logits), out=logits)
        z = np.einsum("rv->r", logits)  # faster than a sum over a short axis, and uses one thread
        logits *= (self.weights / z)[:, None]
        value = float((self.weights * np.log(z)).sum(dtype=np.float64))
        value -= float((base * self.margin + stay * self.stays).sum() + echo * self.echoes)
        value -= float((effects * self.wanted).sum())
        value += 0.5 * float((self.penalty * effects**2).sum() + PENALTY * (small**2).sum())
        to_stay = np.bincount(a[at_a], logits[at_a, a[at_a]], size) - self.stays
        to_echo = logits[at_c, c[at_c]].sum() - self.echoes
        to_small = np.concatenate([np.einsum("rv->v", logits) - self.margin, to_stay, [to_echo]]) + PENALTY * small
        to_effects = self.turned @ logits - self.wanted + self.penalty * effects
        return value, np.concatenate([to_small / self.small, (to_effects * self.scale).ravel()])


def shrunk(values: Array, towards: Array, sigma: float) -> Array:
    """Return noisy counts moved ``towards`` an estimate, by the part of their distance that noise explains.

    This is the positive-part estimator of James and Stein (1961). Values with much noise are close to the estimate, and
    values with little noise hardly change.
    """
    apart = values - towards
    distance = float((apart**2).sum())
    explained = max(len(values) - 2, 1) * sigma**2
    return towards if distance <= explained else np.asarray(values - explained / distance * apart)


def _shares(values: Array) -> Array:
    """Return noisy counts as shares, each at least slightly above 0."""
    kept = np.maximum(values, 0.0)
    kept = kept / kept.sum() if kept.sum() > 0 else np.full(len(kept), 1 / len(kept))
    kept = np.maximum(kept, 1e-6)
    return np.asarray(kept / kept.sum())


def _scaled(table: Array, shown: Array, margin: Array) -> Array:
    """Return ``table`` with the row sums of the evidence, because counts determine only conditionals.

    Rows are scaled by a limited factor. The rest of the difference is distributed like the ``margin``.
    """
    rows = table.sum(axis=1)
    factor = np.clip(np.divide(shown, rows, out=np.ones_like(shown), where=rows > 0), 1 / ROWS_BY, ROWS_BY)
    made = table * factor[:, None]
    return np.asarray(made + (shown - made.sum(axis=1))[:, None] * margin)
