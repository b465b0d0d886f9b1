"""The minimisation itself: proximal points, each found by L-BFGS in the curvature of a tree.

**The problem.** Minimise f(μ) = Σ_c ‖μ_c − y_c‖²/(2σ_c²) over the marginals of distributions with N rows.

**Outer loop: proximal point.** p_{k+1} minimises f(μ(p)) + λ N KL(p ‖ p_k). This keeps p in the exponential
family of the measured cliques (θ_{k+1} = θ_k − ∇f(μ_{k+1})/λ: mirror descent with the gradient taken at the *new*
point), so λ may be a thousand times smaller than a mirror descent step allows. λ follows the work: down
where the inner problem is easy, up where it is hard.

**Inner problem: its dual**, smooth and strictly convex in θ (û, K: the pooled estimate and the conjugate of the
pooled loss, `core.inference.regions`):

    N log Z(θ) − ⟨θ, û⟩ + λ/2 ⟨θ − θ_k, K(θ − θ_k)⟩,     gradient  μ(θ) − û + λ K(θ − θ_k).

Its curvature is N Cov(p) + λK. L-BFGS starts from the explicit inverse of that on a tree (`core.inference.metric`),
which makes a step nearly a Newton step; moving θ_k changes the gradient by a constant, so the pairs stay valid
from one proximal point to the next.

**Stopping.** Any w bounds the optimum from below: min_s ⟨w, s⟩ − ⟨w, û⟩ − ⟨w, Kw⟩/2 + f(û), s over all
single rows (one max-plus sweep). With w = −λ(θ − θ_k), and with the same over a window of several outer steps,
that bound is close at the end. The gap between f and the bound is the reported, certified criterion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log

import numpy as np

from core.inference.junction_tree import FloatArray
from core.inference.metric import TreeMetric, levels, links
from core.inference.problem import Problem, inner
from core.inference.sampling import Report

MEMORY = 30
HISTORY_BYTES = 400_000_000
"""Steps that L-BFGS remembers, and the memory they may take."""

DAMPING = 1.0
"""The first λ times the median noise scale."""

EASY, HARD, LOWER, RAISE = 3, 8, 0.6, 1.5
"""λ falls after at most EASY inner steps and rises after HARD or more, by these factors."""

FIRST_SMOOTHING, SMOOTHING_FALLS = 0.3, 0.1
"""Where the way over smoothed problems starts, and the factor from one to the next."""

WORSE, SHORT = 10.0, 0.01
"""A step may make the error of the marginals this much worse, unless it is already this short: a step so long
that most of the mass moves to wrong cells lowers the dual but is a bad place to go on from."""


@dataclass(frozen=True)
class Point:
    """An iterate: potentials θ, K(θ − centre), and what one sweep told about θ."""

    potentials: FloatArray
    smoothed: FloatArray
    log_partition: float
    marginals: FloatArray


@dataclass(frozen=True)
class Pair:
    """One accepted step of L-BFGS: the step, the change it made to the marginals, and K(step)."""

    step: FloatArray
    change: FloatArray
    smoothed: FloatArray


@dataclass(frozen=True)
class Solution:
    """Potentials, and how good they are: ``objective`` f, certified ``gap`` to the optimum."""

    potentials: FloatArray
    objective: float
    gap: float
    iterations: int
    sweeps: int
    converged: bool


class Subproblem:
    """The dual of one proximal step around ``centre`` with weight ``damping`` (λ)."""

    def __init__(self, problem: Problem, centre: FloatArray, damping: float) -> None:
        self.problem, self.centre, self.damping = problem, centre, damping

    def value(self, point: Point) -> float:
        """The dual objective, up to a constant."""
        offset = point.potentials - self.centre
        linear = inner(offset, 0.5 * self.damping * point.smoothed - self.problem.target)
        return self.problem.total * point.log_partition + linear

    def gradient(self, point: Point) -> FloatArray:
        """Marginals minus what they should be."""
        return point.marginals + self.damping * point.smoothed - self.problem.target


class Solver:
    """One minimisation. ``solve`` runs it; the fields count what it cost."""

    def __init__(self, problem: Problem, tolerance: float, max_iterations: int, report: Report | None) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.report = report
        self.chain = links(problem.regions)
        self.levels = levels(problem.regions, self.chain)
        self.variance = problem.variance()
        self.memory = max(3, min(MEMORY, HISTORY_BYTES // max(24 * problem.regions.size, 1)))
        self.pairs: list[Pair] = []
        self.sweeps = 0
        self.bounds = Bounds(problem)
        self.first_gap = 0.0
        self.progress = 0.0

    def solve(self, potentials: FloatArray, limit: int | None = None) -> Solution:
        """From ``potentials`` to the optimum, or to the best point met within ``limit`` steps (default: all)."""
        limit = self.max_iterations if limit is None else limit
        problem = self.problem
        point = self._sweep(potentials, np.zeros_like(potentials))
        best, lowest = point, problem.objective(point.marginals)
        previous, iteration, tries = lowest, 0, 0
        step = Subproblem(problem, potentials, DAMPING / problem.noise())
        self.bounds.restart(potentials)
        while iteration < limit and problem.regions.size:
            iteration += 1
            tries += 1
            moved = self._step(step, point)
            if moved is None:
                break
            point = moved
            objective = problem.objective(point.marginals)
            if objective < lowest:
                best, lowest = point, objective
            gained = max(previous - objective, 0.0)
            accepted = self.tolerance * max(1.0, objective)
            if problem.norm(step.gradient(point)) >= gained + 0.1 * accepted:
                continue
            self.bounds.add(step, point, sharp=gained < accepted)
            self._tell(iteration, lowest)
            if lowest - self.bounds.best <= accepted:
                break
            factor = LOWER if tries <= EASY else RAISE if tries >= HARD else 1.0
            step = Subproblem(problem, point.potentials, factor * step.damping)
            point = replace(point, smoothed=np.zeros_like(potentials))
            previous, tries = objective, 0
        gap = max(lowest - self.bounds.best, 0.0) if problem.regions.size else 0.0
        done = gap <= self.tolerance * max(1.0, lowest)
        return Solution(best.potentials, lowest, gap, iteration, self.sweeps, done)

    def smoothed(
        self, potentials: FloatArray, smoothing: float, tolerance: float | None = None, limit: int | None = None
    ) -> Solution:
        """The minimum of f(μ) + λ N KL(p ‖ uniform) with λ = ``smoothing`` over the median noise scale.

        One proximal step around the uniform distribution. Its duality gap is the error of the marginals in
        the norm of f. ``tolerance`` and ``limit`` default to those of the fit.
        """
        problem = self.problem
        tolerance = self.tolerance if tolerance is None else tolerance
        limit = self.max_iterations if limit is None else limit
        task = Subproblem(problem, np.zeros_like(potentials), smoothing / problem.noise())
        point = self._sweep(potentials, problem.smooth(potentials))
        iteration = 0
        while True:
            objective, gap = problem.objective(point.marginals), problem.norm(task.gradient(point))
            accepted = tolerance * max(1.0, objective)
            if self.report is not None:
                self.progress = max(self.progress, min(accepted / max(gap, accepted), 1.0))
                self.report(self.progress, f"Fitting: step {iteration}, gap {gap / max(1.0, objective):.1%}")
            moved = self._step(task, point) if gap > accepted and iteration < limit else None
            if moved is None:
                return Solution(point.potentials, objective, gap, iteration, self.sweeps, gap <= accepted)
            point = moved
            iteration += 1

    def continued(self, so_far: Solution) -> Solution:
        """The plain minimum as the limit of smoothed ones, each started at the one before: slower where the direct
        way works, far faster where noise scales differ by a factor of a thousand around loops.

        A smoothed optimum is certified for the plain problem too: with λ N KL(p ‖ uniform) ≤ λ N log(cells of the
        joint) its objective is at most gap + λ N log(cells) above the best. The rest goes on until that is enough.
        """
        problem, best, used = self.problem, so_far, so_far.iterations
        cells = sum(log(size) for size in problem.regions.tree.sizes.values())
        potentials, amount = np.zeros_like(so_far.potentials), FIRST_SMOOTHING
        self.pairs.clear()
        while used < self.max_iterations:
            found = self.smoothed(potentials, amount, self.tolerance / 2, self.max_iterations - used)
            potentials, used = found.potentials, used + found.iterations
            gap = found.gap + amount / problem.noise() * problem.total * cells
            if found.objective < best.objective or gap < best.gap:
                done = gap <= self.tolerance * max(1.0, found.objective)
                best = replace(found, gap=min(gap, best.gap), converged=done)
                if done:
                    break
            if not found.converged:
                break
            amount *= SMOOTHING_FALLS
        return replace(best, iterations=used, sweeps=self.sweeps)

    def _sweep(self, potentials: FloatArray, smoothed: FloatArray) -> Point:
        self.sweeps += 1
        log_partition, marginals = self.problem.sweep(potentials)
        return Point(potentials, smoothed, log_partition, marginals)

    def _step(self, task: Subproblem, point: Point) -> Point | None:
        """One L-BFGS step with a backtracking line search; None where rounding errors allow no descent."""
        gradient = task.gradient(point)
        scale = np.maximum(point.marginals, point.marginals - gradient) + task.damping * self.variance
        metric = TreeMetric(self.problem.regions, self.chain, self.levels, point.marginals, scale)
        direction = self._direction(gradient, metric, task.damping)
        descent = inner(direction, gradient)
        if not descent < 0.0:
            self.pairs.clear()
            direction = -metric.apply(gradient)
            descent = inner(direction, gradient)
            if not descent < 0.0:
                return None
        smoothed = self.problem.smooth(direction)
        value, worst = task.value(point), WORSE * self.problem.norm(gradient)
        length = 1.0
        for _ in range(20):
            trial = self._sweep(point.potentials + length * direction, point.smoothed + length * smoothed)
            error = task.gradient(trial)
            lower = task.value(trial) <= value + 1e-4 * length * descent + 1e-12 * abs(value)
            if lower and (length < SHORT or self.problem.norm(error) <= worst):
                break
            slope = inner(direction, error)
            secant = length * descent / (descent - slope) if slope > descent else 0.0
            length = min(max(secant, 0.05 * length), 0.7 * length)
        self.pairs.append(Pair(length * direction, trial.marginals - point.marginals, length * smoothed))
        del self.pairs[: max(len(self.pairs) - self.memory, 0)]
        return trial

    def _direction(self, gradient: FloatArray, metric: TreeMetric, damping: float) -> FloatArray:
        """Minus the inverse Hessian of L-BFGS (Nocedal & Wright 2006, algorithm 7.4) times the gradient."""
        vector = gradient.copy()
        used: list[tuple[Pair, FloatArray, float, float]] = []
        for pair in reversed(self.pairs):
            change = pair.change + damping * pair.smoothed
            curvature = inner(pair.step, change)
            if curvature > 0.0:
                share = inner(pair.step, vector) / curvature
                vector -= share * change
                used.append((pair, change, curvature, share))
        vector = metric.apply(vector)
        for pair, change, curvature, share in reversed(used):
            vector += (share - inner(change, vector) / curvature) * pair.step
        return -vector

    def _tell(self, iteration: int, objective: float) -> None:
        if self.report is None:
            return
        accepted = self.tolerance * max(1.0, objective)
        gap = objective - self.bounds.best
        self.first_gap = self.first_gap or max(gap, accepted)
        left, whole = log(max(gap, accepted) / accepted), log(self.first_gap / accepted)
        self.progress = max(self.progress, 1.0 - left / whole if whole > 0.0 else 0.0)
        self.report(self.progress, f"Fitting: step {iteration}, gap {gap / max(1.0, objective):.1%}")


class Bounds:
    """Lower bounds on the optimum from the steps taken: from the last one and from a window of them.

    ``best`` starts from what û leaves, which is the optimum where no count needs to be negative.
    The steps of a window average their dual vectors, weighted by 1/λ: (θ − start of window) / Σ 1/λ.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.best = problem.floor
        self.steps = 0

    def restart(self, potentials: FloatArray) -> None:
        """Begin a new window here."""
        self.start, self.weight = potentials, 0.0
        self.due = int(1.5 * self.steps) + 4

    def add(self, step: Subproblem, point: Point, *, sharp: bool) -> None:
        """Record an outer step; compute bounds if ``sharp``, and every fifth time anyway."""
        self.steps += 1
        self.weight += 1.0 / step.damping
        if sharp or self.steps % 5 == 0:
            self._try(point.potentials - step.centre, point.smoothed, step.damping)
            if self.start is not step.centre:
                offset = point.potentials - self.start
                self._try(offset, self.problem.smooth(offset), 1.0 / self.weight)
        if self.steps >= self.due:
            self.restart(point.potentials)

    def _try(self, offset: FloatArray, smoothed: FloatArray, damping: float) -> None:
        problem = self.problem
        linear = inner(offset, problem.target - 0.5 * damping * smoothed)
        bound = damping * (linear - problem.total * problem.best_score(offset)) + problem.floor
        self.best = max(self.best, bound)
