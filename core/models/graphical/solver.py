"""Minimisation by proximal points. Each is found by Newton's method with a preconditioner from a tree.

**The problem.** Minimise f(μ) = Σ_c ‖μ_c − y_c‖²/(2σ_c²) over the marginals of distributions with N rows. The best μ
usually lies on the boundary (cells with noisy counts below zero), where potentials tend to −∞.

**Outer loop: proximal point.** p_{k+1} minimises f(μ(p)) + λ N KL(p ‖ p_k). This keeps p in the exponential family of
the measured cliques: θ_{k+1} = θ_k − ∇f(μ_{k+1})/λ, mirror descent with the gradient taken at the *new* point. λ falls
by the factor LOWER from one point to the next. Close to the optimum, ∇f hardly changes, so the next step is
extrapolated from the last step, divided by LOWER, and kept if it lowers the dual. Potentials that tend to −∞ then need
only a few steps. λ rises again when steps diverge.

**Inner problem: its dual**, smooth and strictly convex in θ (û, K: the pooled estimate and the conjugate of the
pooled loss, `espalier.core.models.graphical.regions`):

    N log Z(θ) − ⟨θ, û⟩ + λ/2 ⟨θ − θ_k, K(θ − θ_k)⟩,     gradient  μ(θ) − û + λ K(θ − θ_k).

Its Hessian is N Cov(p) + λK. Newton's direction is found by conjugate gradients: a product with Cov(p) is another pass
over the junction tree (`espalier.core.graph.junction_tree.derivative`), and the explicit inverse of the Hessian on a
tree (`espalier.core.models.graphical.metric`) preconditions them at any noise scale, so a few products suffice. The
conjugate gradients stop at half the residual or after PRODUCTS products, far from an exact solution; the next step
corrects the rest.

**Stopping.** Any w gives a lower bound on the optimum: min_s ⟨w, s⟩ − ⟨w, û⟩ − ⟨w, Kw⟩/2 + f(û), with s over all single
rows (one max-plus sweep). With w = −λ(θ − θ_k), this bound is tight at the end. The gap between f and the best bound is
the certified criterion that the fit reports.

`espalier.core.models.graphical.estimation.estimate` compares this method with alternatives, with figures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log

import numpy as np

from espalier.core.graph.junction_tree import FloatArray
from espalier.core.models.graphical.metric import TreeMetric, levels, links
from espalier.core.models.graphical.problem import Problem, Sweep, inner
from espalier.core.progress import Report

DAMPING, LOWER = 0.3, 0.6
"""First λ as a multiple of the median noise scale, and the factor by which λ falls from one proximal point to the
next.
"""

PATIENCE, RAISE = 12, 5.0
"""A proximal point that is not found within this number of steps is replaced by a nearer point, with λ raised by this
factor. If λ is too low, a step may move most of the mass to wrong cells, and recovery takes hundreds of steps.
"""

MOST_GAP = 0.1
"""Largest gap of a smoothed fit, whatever its objective. The gap of a column of two categories is its squared distance
from the best fit, divided by twice its noise variance. So no such column is further away than 0.45 times its noise.
Large tables have objectives in the thousands, and a relative gap of a thousandth could leave a column 2.5 times its
noise away. This bound costs one or two Newton steps.
"""

FORCING, PRODUCTS = 0.5, 20
"""Conjugate gradients stop when the residual has fallen to this share, or after this number of products."""

INEXACT = 0.3
"""A proximal point is accepted when its error is below this share of its gain or of the tolerance."""


@dataclass(frozen=True)
class Point:
    """An iterate: potentials θ, K(θ − centre), and the result of a sweep at θ."""

    potentials: FloatArray
    smoothed: FloatArray
    sweep: Sweep

    @property
    def marginals(self) -> FloatArray:
        """Marginals of the regions, as a flat vector."""
        return self.sweep.marginals


@dataclass(frozen=True)
class Solution:
    """Potentials and their quality: the ``objective`` f and the certified ``gap`` to the optimum.

    ``iterations`` are Newton steps, ``sweeps`` all passes up and down the junction tree.
    """

    potentials: FloatArray
    objective: float
    gap: float
    iterations: int
    sweeps: int
    converged: bool


@dataclass(frozen=True)
class Subproblem:
    """Dual of one proximal step around ``centre`` with weight ``damping`` (λ)."""

    problem: Problem
    centre: FloatArray
    damping: float

    def value(self, point: Point) -> float:
        """Return the dual objective, up to a constant."""
        offset = point.potentials - self.centre
        linear = inner(offset, 0.5 * self.damping * point.smoothed - self.problem.target)
        return self.problem.total * point.sweep.log_partition + linear

    def gradient(self, point: Point) -> FloatArray:
        """Return the marginals minus their targets."""
        return point.marginals + self.damping * point.smoothed - self.problem.target

    def bound(self, point: Point) -> float:
        """Return a lower bound on the optimum of f, certified by w = −λ(θ − centre)."""
        problem, offset = self.problem, point.potentials - self.centre
        linear = inner(offset, problem.target - 0.5 * self.damping * point.smoothed)
        return self.damping * (linear - problem.total * problem.best_score(offset)) + problem.floor


class Solver:
    """State of a minimisation, which ``solve`` or ``smoothed`` runs; ``sweeps`` is the number of passes over the
    tree."""

    def __init__(self, problem: Problem, tolerance: float, max_iterations: int, report: Report | None) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.report = report
        self.chain = links(problem.regions)
        self.levels = levels(problem.regions, self.chain)
        self.variance = problem.variance()
        self.sweeps = 0
        self.progress = 0.0
        self.first_gap = 0.0

    def solve(self, potentials: FloatArray) -> Solution:
        """Start from ``potentials``; return the optimum, or the best point within ``max_iterations`` steps."""
        problem = self.problem
        task = Subproblem(problem, potentials, DAMPING / problem.noise())
        home = point = self._sweep(potentials, np.zeros_like(potentials))
        best, lowest, bound = potentials, problem.objective(point.marginals), problem.floor
        previous, iteration, rounds, tries = lowest, 0, 0, 0
        while problem.regions.size:
            objective = problem.objective(point.marginals)
            if objective < lowest:
                best, lowest = point.potentials, objective
            accepted = self.tolerance * max(1.0, lowest)
            self._tell(iteration, lowest - bound, accepted)
            if problem.norm(task.gradient(point)) <= INEXACT * max(accepted, previous - objective):
                bound = max(bound, task.bound(point))
                if lowest - bound <= accepted:
                    break
                step = point.potentials - task.centre
                task = Subproblem(problem, point.potentials, LOWER * task.damping)
                further = self._sweep(point.potentials + step / LOWER, point.smoothed / LOWER)
                home = point = replace(point, smoothed=np.zeros_like(step))
                if rounds and task.value(further) < task.value(point):
                    point = further
                previous, rounds, tries = objective, rounds + 1, 0
            elif tries == PATIENCE:
                task, point, tries = replace(task, damping=RAISE * task.damping), home, 0
            moved = self._step(task, point) if iteration < self.max_iterations else None
            if moved is None:
                break
            point = moved
            iteration, tries = iteration + 1, tries + 1
        gap = max(lowest - bound, 0.0) if problem.regions.size else 0.0
        done = gap <= self.tolerance * max(1.0, lowest)
        return Solution(best, lowest, gap, iteration, self.sweeps, done)

    def smoothed(self, potentials: FloatArray, smoothing: float, centre: FloatArray) -> Solution:
        """Return the minimum of f(μ) + λ N KL(p ‖ q) with λ = ``smoothing`` divided by the median noise scale.

        It takes one proximal step around q, the distribution with the potentials ``centre``. Its duality gap bounds the
        error of the marginals in the norm of f; it is at most `MOST_GAP` at the end.
        """
        problem = self.problem
        task = Subproblem(problem, centre, smoothing / problem.noise())
        point = self._sweep(potentials, problem.smooth(potentials - centre))
        iteration = 0
        while True:
            objective, gap = problem.objective(point.marginals), problem.norm(task.gradient(point))
            accepted = min(self.tolerance * max(1.0, objective), MOST_GAP)
            self._tell(iteration, gap, accepted)
            moved = self._step(task, point) if gap > accepted and iteration < self.max_iterations else None
            if moved is None:
                return Solution(point.potentials, objective, gap, iteration, self.sweeps, gap <= accepted)
            point = moved
            iteration += 1

    def _sweep(self, potentials: FloatArray, smoothed: FloatArray) -> Point:
        self.sweeps += 1
        return Point(potentials, smoothed, self.problem.sweep(potentials))

    def _step(self, task: Subproblem, point: Point) -> Point | None:
        """Take one Newton step with a backtracking line search; return None if rounding errors prevent descent."""
        gradient = task.gradient(point)
        direction, smoothed = self._direction(task, point, gradient)
        descent = inner(direction, gradient)
        if not descent < 0.0:
            return None
        value, length = task.value(point), 1.0
        for _ in range(20):
            trial = self._sweep(point.potentials + length * direction, point.smoothed + length * smoothed)
            if task.value(trial) <= value + 1e-4 * length * descent + 1e-12 * abs(value):
                break
            slope = inner(direction, task.gradient(trial))
            secant = length * descent / (descent - slope) if slope > descent else 0.0
            length = min(max(secant, 0.05 * length), 0.7 * length)
        return trial

    def _direction(self, task: Subproblem, point: Point, gradient: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the Newton direction (minus the inverse Hessian times the gradient), by preconditioned conjugate
        gradients stopped early (Nocedal & Wright 2006, algorithms 5.3 and 7.1), and K times this direction.
        """
        problem = self.problem
        scale = np.maximum(point.marginals, point.marginals - gradient) + task.damping * self.variance
        metric = TreeMetric(problem.regions, self.chain, self.levels, point.marginals, scale)
        direction, smoothed = np.zeros_like(gradient), np.zeros_like(gradient)
        residual = -gradient
        ahead = metric.apply(residual)
        size = first = inner(residual, ahead)
        for _ in range(PRODUCTS):
            ahead_smoothed = problem.smooth(ahead)
            change = problem.covariance(point.sweep, ahead) + task.damping * ahead_smoothed
            self.sweeps += 1
            curvature = inner(ahead, change)
            if not curvature > 0.0:
                break
            length = size / curvature
            direction += length * ahead
            smoothed += length * ahead_smoothed
            residual -= length * change
            preconditioned = metric.apply(residual)
            before, size = size, inner(residual, preconditioned)
            if size <= FORCING**2 * first:
                break
            ahead = preconditioned + (size / before) * ahead
        return direction, smoothed

    def _tell(self, iteration: int, gap: float, accepted: float) -> None:
        if self.report is None:
            return
        self.first_gap = self.first_gap or max(gap, accepted)
        left, whole = log(max(gap, accepted) / accepted), log(self.first_gap / accepted)
        self.progress = max(self.progress, 1.0 - left / whole if whole > 0.0 else 0.0)
        self.report(self.progress, f"Fitting: step {iteration}, gap {gap * self.tolerance / accepted:.1%}")
