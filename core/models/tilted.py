"""Weighting of a graphical model's rows until they reproduce noisy sums of features of whole rows.

The weights have maximum entropy relative to the model's rows. A ridge set by the noise scale prevents overfitting the
noise. Everything here is post-processing of noisy answers and uses no budget.
"""

from __future__ import annotations

import io
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import DAMAGED, EspalierError
from espalier.core.graph.separations import Clique, Separation
from espalier.core.models.base import Answer
from espalier.core.models.graphical.model import GraphicalModel
from espalier.core.models.question_fit.model import VisibleModel
from espalier.core.models.question_fit.model import loads as loads_untilted
from espalier.core.privacy.class_features import UNIT, ClassSums, RowFeatures
from espalier.core.progress import Report, silent

Rows = Mapping[str, NDArray[Any]]
FloatArray = NDArray[np.float64]

POOL = 60_000
"""Number of weighted model rows. With 20,000 rows, too few are close to the data; 150,000 were no better."""

STEPS = (40, 80)
"""Number of optimiser steps in each round."""

MUTATED = 0.25
"""Share of the cells that are mutated between two rounds."""

SWEEPS = 20
"""Number of rounds of raking to the one-way counts."""

BLOCK = 4096
"""Number of rows whose features are computed at a time."""

PROPOSALS, PATIENCE = 64, 40
"""Number of rows compared for one exchange in an even draw, and number of consecutive failed exchanges that end the
draw."""


@dataclass(frozen=True)
class NoisySums:
    """Noisy class sums of ``recipe`` in rows, one line per class, with noise of scale ``sigma`` in each entry."""

    recipe: ClassSums
    values: FloatArray
    sigma: float


@dataclass(frozen=True)
class TiltedModel:
    """A weighted list of rows. ``base`` is the model from which the rows were drawn before they were weighted.

    ``pool`` are the rows as codes; ``weights`` sum to one. The weighted rows reproduce the noisy ``sums``, which are
    kept for copies.
    """

    base: GraphicalModel
    pool: Rows
    weights: FloatArray
    sums: NoisySums

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the model draws, in schema order."""
        return self.base.columns

    @property
    def sizes(self) -> Mapping[str, int]:
        """Columns with their numbers of categories."""
        return self.base.sizes

    @property
    def total(self) -> float:
        """Number of rows that the model represents."""
        return self.base.total

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of columns that the counts link. The weights may also link other columns."""
        return self.base.edges

    def answers(self, separation: Separation) -> Answer:  # noqa: ARG002
        """Return "not promised": the weights may link any two columns."""
        return "not promised"

    def facts(self) -> dict[str, Any]:
        """Return the outcome of the base's fit for release.json."""
        return self.base.facts()

    def marginal(self, clique: Sequence[str]) -> FloatArray:
        """Return expected counts of ``clique`` in rows, with one axis per column in the given order."""
        shape = tuple(self.sizes[name] for name in clique)
        cell = np.ravel_multi_index([self.pool[name] for name in clique], shape)
        return np.asarray(self.total * np.bincount(cell, self.weights, minlength=math.prod(shape)).reshape(shape))

    def cmi(self, left: Clique, right: Clique, given: Clique) -> float:
        """Return the conditional mutual information, in nats."""
        table = self.marginal((*left, *right, *given)) / self.total
        a, b = tuple(range(len(left))), tuple(range(len(left), len(left) + len(right)))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = table * table.sum(axis=a + b, keepdims=True)
            ratio = ratio / (table.sum(axis=a, keepdims=True) * table.sum(axis=b, keepdims=True))
            return max(0.0, float(np.sum(np.where(table > 0, table * np.log(ratio), 0.0))))

    def sample(
        self, rows: int, rng: np.random.Generator, *, even: bool = False, report: Report | None = None
    ) -> dict[str, NDArray[Any]]:
        """Return ``rows`` rows as codes; ``even`` rounds each row's share and keeps each column even."""
        if report is not None:
            report(0.0, "Drawing rows by their weights")
        chosen = (
            _even(self.pool, self.weights, rows, rng) if even else rng.choice(len(self.weights), rows, p=self.weights)
        )
        return {name: codes[chosen] for name, codes in self.pool.items()}

    def sample_batches(
        self, rows: int, rng: np.random.Generator, *, even: bool = False
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the rows of `sample` in batches. With ``even``, each batch is drawn evenly."""
        for start in range(0, rows, 10 * POOL):
            yield self.sample(min(10 * POOL, rows - start), rng, even=even)

    def dumps(self) -> bytes:
        """Return the base's file, with the pool, the weights, the features and their sums added."""
        with np.load(io.BytesIO(self.base.dumps()), allow_pickle=False) as file:
            arrays: dict[str, NDArray[Any]] = dict(file)
        recipe, features = self.sums.recipe, self.sums.recipe.features
        head = {
            "target": recipe.target,
            "phases": list(features.phases),
            "coarse": list(features.coarse),
            "mark": features.mark,
            "sigma": self.sums.sigma,
        }
        arrays |= {f"pool_{i}": self.pool[name] for i, name in enumerate(self.columns)}
        arrays |= {f"phase_{i}": table for i, table in enumerate(features.phases.values())}
        arrays |= {f"coarse_{i}": bins for i, bins in enumerate(features.coarse.values())}
        text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
        out = io.BytesIO()
        np.savez_compressed(out, allow_pickle=False, tilt=text, weights=self.weights, sums=self.sums.values, **arrays)
        return out.getvalue()


def loads(data: bytes) -> GraphicalModel | VisibleModel | TiltedModel:
    """Read the file of a graphical model, with its hidden columns or weights if any.

    Raises `EspalierError` for anything else.
    """
    base = loads_untilted(data)
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        if "tilt" not in file:
            return base
        try:
            if not isinstance(base, GraphicalModel):
                raise ValueError("weights and hidden columns")
            head = json.loads(file["tilt"].tobytes())
            phases = {str(name): file[f"phase_{i}"] for i, name in enumerate(head["phases"])}
            coarse = {str(name): file[f"coarse_{i}"].astype(np.int64) for i, name in enumerate(head["coarse"])}
            features = RowFeatures(phases, coarse, int(head["mark"]))
            target = str(head["target"])
            recipe = ClassSums(features, target, base.sizes[target])
            recipe.check(base.sizes)
            sums = NoisySums(recipe, file["sums"].astype(np.float64), float(head["sigma"]))
            pool = {name: file[f"pool_{i}"] for i, name in enumerate(base.columns)}
            weights = file["weights"].astype(np.float64)
            _check(base, pool, weights, sums)
        except DAMAGED as error:
            raise EspalierError("This is not a model saved by Espalier.") from error
    return TiltedModel(base, pool, weights, sums)


def _check(base: GraphicalModel, pool: Rows, weights: FloatArray, sums: NoisySums) -> None:
    """Raise :class:`ValueError` for rows, weights or sums that no fit produces."""
    if weights.ndim != 1 or not (weights >= 0).all() or not math.isclose(weights.sum(), 1.0, rel_tol=1e-6):
        raise ValueError("the weights do not sum to one")
    for name, codes in pool.items():
        if codes.shape != weights.shape or codes.dtype.kind not in "iu" or codes.size == 0:
            raise ValueError("a column of the pool is missing rows")
        if codes.min() < 0 or codes.max() >= base.sizes[name]:
            raise ValueError("a row of the pool is outside the domain")
    shape = (sums.recipe.classes, sums.recipe.features.size)
    if sums.values.shape != shape or not np.isfinite(sums.values).all() or not 0 < sums.sigma < math.inf:
        raise ValueError("the shape of the sums does not match their features")


def tilted(
    base: GraphicalModel,
    sums: NoisySums,
    ordered: Sequence[str],
    impossible: Mapping[Clique, NDArray[np.bool_]],
    rng: np.random.Generator,
    report: Report = silent,
) -> TiltedModel:
    """Run steps 8 to 10: weight rows of ``base`` until they reproduce the sums, mutate them, and weight them again.

    ``ordered`` are the columns with ordered codes. No row is moved into an ``impossible`` cell. One BLAS thread is
    used, because two are several times slower on a busy machine.
    """
    from threadpoolctl import threadpool_limits

    pool: Rows = base.sample(POOL, rng, even=True)
    with threadpool_limits(1):
        for round_, steps in enumerate(STEPS):
            report(round_ / len(STEPS), f"Weighting rows, round {round_ + 1} of {len(STEPS)}")
            weights = maximum_entropy(pool, sums, base.total, steps, report)
            if round_ + 1 < len(STEPS):
                kept = _resampled(pool, weights, rng)
                pool = _mutated(kept, sums.recipe.target, ordered, impossible, rng)
    return TiltedModel(base, pool, raked(pool, weights, base), sums)


def maximum_entropy(pool: Rows, sums: NoisySums, total: float, steps: int, report: Report = silent) -> FloatArray:
    """Return weights p ∝ exp(θ_y·φ(x)), with θ at the minimum of log Z(θ) − θ·Ŝ/N + (σ/6N)/2·‖θ‖²."""
    from scipy.optimize import minimize

    recipe, rows = sums.recipe, max(total, 1.0)
    order = np.argsort(pool[recipe.target], kind="stable")
    ends = np.searchsorted(pool[recipe.target][order], np.arange(recipe.classes + 1))
    phi = featured(pool, recipe.features, order)
    wanted, ridge = sums.values / rows, sums.sigma / (6 * rows)
    spans = [slice(a, b) for a, b in itertools.pairwise(ends.tolist())]
    parts = [phi[span] for span in spans]

    def tilt(theta: FloatArray) -> tuple[float, FloatArray]:
        small = theta.astype(np.float32)
        logits = np.concatenate([part @ t for part, t in zip(parts, small, strict=True)]).astype(np.float64)
        top = logits.max()
        p = np.exp(logits - top)
        z = float(p.sum())
        return math.log(z / len(p)) + float(top), np.asarray(p / z)

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        theta = flat.reshape(wanted.shape)
        log_z, p = tilt(theta)
        small = p.astype(np.float32)
        mean = np.stack([small[span] @ part for span, part in zip(spans, parts, strict=True)])
        gradient = mean.astype(np.float64) - wanted + ridge * theta
        value = log_z - float(np.sum(theta * wanted)) + ridge / 2 * float(np.sum(theta**2))
        return value, gradient.ravel()

    def pulse(_: FloatArray) -> None:
        report(0.0, "Weighting rows")

    found = minimize(
        loss,
        np.zeros(wanted.size),
        jac=True,
        method="L-BFGS-B",
        callback=pulse,
        options={"maxiter": steps, "ftol": 1e-12, "gtol": 1e-9, "maxcor": 20},
    )
    weights = np.empty(len(order))
    weights[order] = tilt(found.x.reshape(wanted.shape))[1]
    return weights


def featured(pool: Rows, features: RowFeatures, order: NDArray[np.intp]) -> NDArray[np.float32]:
    """Return φ of the rows in ``order``, scaled to length one."""
    out = np.empty((len(order), features.size), dtype=np.float32)
    for start in range(0, len(order), BLOCK):
        rows = order[start : start + BLOCK]
        out[start : start + BLOCK] = features.of({name: codes[rows] for name, codes in pool.items()})
    out /= UNIT
    return out


def raked(pool: Rows, weights: FloatArray, base: GraphicalModel) -> FloatArray:
    """Return weights that give each column the distribution of ``base`` (iterative proportional fitting)."""
    wanted = {name: base.marginal((name,)) / max(base.total, 1e-12) for name in base.columns if base.sizes[name] > 1}
    for _ in range(SWEEPS):
        for name, share in wanted.items():
            held = np.bincount(pool[name], weights, minlength=len(share))
            weights = weights * np.divide(share, held, out=np.ones(len(share)), where=held > 0)[pool[name]]
    return np.asarray(weights / weights.sum())


def _resampled(pool: Rows, weights: FloatArray, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Return as many rows as in ``pool``, each repeated as often as its weight implies, rounded down or up."""
    chosen = _systematic(weights, len(weights), rng)
    return {name: codes[chosen] for name, codes in pool.items()}


def _systematic(weights: FloatArray, rows: int, rng: np.random.Generator) -> NDArray[np.intp]:
    order = rng.permutation(len(weights))
    reached = np.floor(np.cumsum(weights[order]) / weights.sum() * rows + rng.random())
    reached[-1] = rows
    times = np.diff(np.minimum(reached, rows), prepend=0.0).astype(np.int64)
    return np.repeat(order, times)


def _mutated(
    pool: Rows,
    target: str,
    ordered: Sequence[str],
    impossible: Mapping[Clique, NDArray[np.bool_]],
    rng: np.random.Generator,
) -> dict[str, NDArray[Any]]:
    """Change a share `MUTATED` of the cells outside the target: an ordered code by one, any other code to a random
    row's code."""
    out: dict[str, NDArray[Any]] = {}
    for name, codes in pool.items():
        changed = rng.random(len(codes)) < (0.0 if name == target else MUTATED)
        if name in ordered:
            moved = codes.astype(np.int64) + rng.choice([-1, 1], len(codes))
            moved = np.clip(moved, 0, int(codes.max())).astype(codes.dtype)
        else:
            moved = codes[rng.integers(0, len(codes), len(codes))]
        out[name] = np.where(changed, moved, codes)
    bad = np.zeros(len(next(iter(pool.values()))), dtype=bool)
    for clique, mask in impossible.items():
        bad |= mask[tuple(out[name] for name in clique)]
    return {name: np.where(bad, pool[name], codes) for name, codes in out.items()}


def _even(pool: Rows, weights: FloatArray, rows: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw each row as often as its rounded weight implies, then exchange rows until the one-way counts are also
    even.
    """
    chosen = _systematic(weights, rows, rng)
    sizes = [int(codes.max()) + 1 for codes in pool.values()]
    starts = np.cumsum([0, *sizes[:-1]])
    spots = np.stack([codes + start for codes, start in zip(pool.values(), starts, strict=True)], axis=1)
    off = np.bincount(spots[chosen].ravel(), minlength=sum(sizes)).astype(np.float64)
    off -= rows * np.bincount(spots.ravel(), np.repeat(weights, spots.shape[1]), minlength=sum(sizes))
    spare, failed, at = _systematic(weights, len(weights), rng), 0, 0
    rng.shuffle(spare)
    while rows and failed < PATIENCE:
        out = rng.integers(0, rows, PROPOSALS)
        leaving = out[np.argmax(off[spots[chosen[out]]].sum(axis=1))]
        coming = spare[np.arange(at, at + PROPOSALS) % len(spare)]
        at += PROPOSALS
        new = coming[np.argmin(off[spots[coming]].sum(axis=1))]
        old = chosen[leaving]
        differ = int((spots[old] != spots[new]).sum())
        if off[spots[new]].sum() - off[spots[old]].sum() + differ < 0:
            off[spots[old]] -= 1
            off[spots[new]] += 1
            chosen[leaving], failed = new, 0
        else:
            failed += 1
    rng.shuffle(chosen)
    return chosen
