"""The whole method on a table of numbers: stage one, stage two, and a measure of disclosure. NOT private."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from espalier.core.blurring.disclosure import membership_auc, reidentified
from espalier.core.blurring.inputs import (
    Mixed,
    alpha_for,
    disclosed,
    hypercube,
    independent,
    matched,
    mixed,
    nearness,
    thresholds,
)
from espalier.core.blurring.responses import Response, respond
from espalier.core.errors import ProjectError, TableError

LEFT_OUT = 0.2
"""Share of people left out to measure membership."""


@dataclass(frozen=True)
class Options:
    """``eta`` is a fraction of the declared range; ``lid`` the share (0 to 1) that may be disclosed.

    ``alpha`` fixes the mixture instead of the threshold. If ``hybrid`` is False, rows of stage one contain no part of a
    real row. ``residual_noise`` adds draws of leave-one-out residuals to the outcome. The paper omits this, but without
    it standard errors from the rows are too small. ``landmarks``: see :func:`espalier.core.blurring.kernel.fit`.
    ``inputs`` is the source of stage one (`independent`, or "hypercube"). ``outcome`` is the regression of stage two
    (`espalier.core.blurring.responses`).
    """

    eta: float = 0.0001
    lid: float = 0.15
    alpha: float | None = None
    hybrid: bool = True
    residual_noise: bool = False
    landmarks: int | None = None
    inputs: str = "hypercube"
    outcome: str = "auto"

    def __post_init__(self) -> None:
        if not 0 < self.eta < 1:
            raise ProjectError(
                f"eta is {self.eta:g}; it must be a fraction of the declared range, between 0 and 1", key="eta"
            )
        if not 0 <= self.lid <= 1:
            raise ProjectError(f"lid is {self.lid:g}; it must be a share from 0 to 1", key="lid")
        if self.alpha is not None and not 0 <= self.alpha < 1:
            raise ProjectError(f"alpha is {self.alpha:g}; it must be at least 0 and below 1", key="alpha")


@dataclass(frozen=True)
class Numbers:
    """Real rows: ``anonymized`` columns with public ``bounds`` (low, high) and ``steps``. Other columns are unchanged.

    ``untouched`` are further inputs as numbers (categories one-hot), released unchanged. ``outcome`` is the target,
    ``outcome_bounds`` and ``outcome_step`` its declared range and precision (0 for none).
    """

    anonymized: NDArray[np.float64]
    bounds: NDArray[np.float64]
    steps: NDArray[np.float64]
    untouched: NDArray[np.float64]
    outcome: NDArray[np.float64]
    outcome_bounds: tuple[float, float]
    outcome_step: float = 0.0

    def __post_init__(self) -> None:
        if not self.anonymized.shape[1]:
            raise ProjectError("choose at least one numeric column to anonymise", key="anonymize")
        if not all(np.isfinite(a).all() for a in (self.anonymized, self.untouched, self.outcome)):
            raise TableError("this method cannot use rows with empty cells: fill the cells or leave the column out")

    @property
    def scaled(self) -> NDArray[np.float64]:
        """Anonymised columns, scaled to 0 at the lower bound and 1 at the upper."""
        return (self.anonymized - self.bounds[:, 0]) / np.diff(self.bounds)[:, 0]

    def take(self, rows: NDArray[np.intp]) -> Numbers:
        """Return only these ``rows``."""
        return Numbers(
            self.anonymized[rows],
            self.bounds,
            self.steps,
            self.untouched[rows],
            self.outcome[rows],
            self.outcome_bounds,
            self.outcome_step,
        )


@dataclass(frozen=True)
class Disclosure:
    """Disclosure by the released rows, in shares from 0 to 1. For the curator only, because it is computed on real
    rows. ``lid_inputs`` and ``lid_outcome`` are the LID of the released values. ``linked`` is the share of people
    re-identified by someone who knows the inputs; ``linked_anonymized``, by someone who knows only the anonymised
    columns. ``membership`` is the AUC of distinguishing members from others by the nearest row.
    """

    lid_inputs: float
    lid_outcome: float
    linked: float
    linked_anonymized: float
    membership: float


@dataclass(frozen=True)
class Made:
    """Blurred rows, shuffled. Row i was made from real row ``whose[i]``. This index is never released."""

    anonymized: NDArray[np.float64]
    untouched: NDArray[np.float64]
    outcome: NDArray[np.float64]
    whose: NDArray[np.int64]
    alpha: float
    regression: Response
    disclosure: Disclosure

    def dumps(self) -> bytes | None:
        """Return `None`, because the regression contains real rows and is never written."""
        return None


def synthesize(real: Numbers, options: Options, rng: np.random.Generator) -> Made:
    """Return one blurred row for each real one, in random order, and their disclosure.

    Raises :class:`ProjectError` for a threshold that cannot be reached, and :class:`SizeError` for too many rows.
    """
    one = _stage_one(real, options, rng)
    anonymized = _released(real, one.values)
    known = np.hstack([real.scaled, real.untouched])
    regression = respond(known, real.outcome, rng, options.outcome, options.landmarks)
    inputs = np.hstack([_scaled(real, anonymized), real.untouched])
    outcome = regression.at(inputs)
    if options.residual_noise:
        outcome = outcome + rng.choice(regression.left, len(outcome))
    outcome = _kept(outcome, np.array([real.outcome_bounds]), np.array([real.outcome_step]))
    order = rng.permutation(len(outcome))
    told = _disclosure(real, anonymized, outcome, options, rng)
    return Made(
        anonymized[order], real.untouched[order], outcome[order], order.astype(np.int64), one.alpha, regression, told
    )


def _stage_one(real: Numbers, options: Options, rng: np.random.Generator) -> Mixed:
    scaled = real.scaled
    synthetic = matched(scaled, _source(scaled, options, rng), rng)
    alpha = options.alpha
    if alpha is None:
        near = nearness(scaled, synthetic, _limits(real, options.eta))
        alpha = alpha_for(near, options.lid) if options.hybrid else 0.0
        alpha = min(alpha, 1 - 1e-6)
    return mixed(scaled, synthetic, alpha)


def _source(scaled: NDArray[np.float64], options: Options, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return synthetic rows from the source of stage one, before they are matched."""
    if options.inputs == "hypercube":
        return np.clip(hypercube(scaled, rng), 0, 1)
    return independent(scaled, options.inputs, rng)


def _limits(real: Numbers, eta: float) -> NDArray[np.float64]:
    return thresholds(eta, real.steps / np.diff(real.bounds)[:, 0])


def _released(real: Numbers, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values in their own unit, rounded to their precision and within their bounds."""
    return _kept(real.bounds[:, 0] + scaled * np.diff(real.bounds)[:, 0], real.bounds, real.steps)


def _kept(values: NDArray[np.float64], bounds: NDArray[np.float64], steps: NDArray[np.float64]) -> NDArray[np.float64]:
    safe = np.where(steps > 0, steps, 1.0)
    rounded = np.where(steps > 0, np.rint(values / safe) * safe, values)
    return np.asarray(np.clip(rounded, bounds[:, 0], bounds[:, 1]))


def _scaled(real: Numbers, values: NDArray[np.float64]) -> NDArray[np.float64]:
    return (values - real.bounds[:, 0]) / np.diff(real.bounds)[:, 0]


def _disclosure(
    real: Numbers,
    anonymized: NDArray[np.float64],
    outcome: NDArray[np.float64],
    options: Options,
    rng: np.random.Generator,
) -> Disclosure:
    scaled, released = real.scaled, _scaled(real, anonymized)
    low, high = real.outcome_bounds
    near = np.abs(scaled - released).min(axis=1) / (options.eta * (1 + 1e-9))
    near_outcome = np.abs(real.outcome - outcome) / ((high - low) * options.eta * (1 + 1e-9))
    own = np.arange(len(scaled))
    return Disclosure(
        lid_inputs=disclosed(near, 0.0),
        lid_outcome=disclosed(near_outcome, 0.0),
        linked=reidentified(np.hstack([scaled, real.untouched]), np.hstack([released, real.untouched]), own),
        linked_anonymized=reidentified(scaled, released, own),
        membership=_membership(real, options, rng),
    )


def _membership(real: Numbers, options: Options, rng: np.random.Generator) -> float:
    """Return how well the distance to the nearest row separates members from others, if a fifth of the people are left
    out of stage one.
    """
    order = rng.permutation(len(real.outcome))
    inside, outside = np.split(order, [len(order) - max(1, int(LEFT_OUT * len(order)))])
    part = real.take(inside)
    try:
        values = _stage_one(part, options, rng).values
    except ProjectError:  # with a fifth fewer rows the threshold may be just out of reach, so come as close as possible
        values = matched(part.scaled, _source(part.scaled, options, rng), rng)
    rows = np.hstack([_scaled(real, _released(real, values)), part.untouched])
    others = real.take(outside)
    members = np.hstack([part.scaled, part.untouched])
    return membership_auc(members, np.hstack([others.scaled, others.untouched]), rows)
