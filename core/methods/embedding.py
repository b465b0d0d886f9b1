"""Second stage for structure beyond pairs and triples of columns, from sums of features of whole rows. A method's model
is the base. One Gaussian measurement of random features of whole rows, by class of the target, shows the structure that
the base misses. Rows of the base are then weighted until they reproduce the measurement
(`espalier.core.models.tilted`). A small part of the measurement, the probe, decides whether the stage justifies its
budget.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import ProjectError
from espalier.core.graph.separations import Clique
from espalier.core.methods.base import Fit, Method
from espalier.core.methods.frame import Frame
from espalier.core.methods.marginals import Marginals
from espalier.core.methods.select.allocation import BudgetSplit
from espalier.core.models.fit_chance import seeded_by
from espalier.core.models.graphical import GraphicalModel, Size
from espalier.core.models.tilted import BLOCK, POOL, NoisySums, Rows, TiltedModel, tilted
from espalier.core.privacy.class_features import (
    BINS,
    TURN,
    UNIT,
    ClassSums,
    ColumnSets,
    RowFeatures,
    coarse_counts,
)
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.unit import Unit
from espalier.core.progress import Report, part, silent
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Schema

FREQUENCIES, PROBED = 500, 50
"""Numbers of random directions, each with a cosine and a sine: directions that the rows reproduce, and directions of
the probe. With fewer directions, the total noise is smaller, while the expected length of the base's error stays the
same.
"""

WIDTH = 0.2
"""Width of the kernel. Two rows are similar if their mid-ranks differ by less than this."""

NOMINAL = 3.0
"""Scale of one-hot columns. Two values of a nominal column are √2/3 apart."""

MARKED = 0.3
"""Share of a row's squared length that encodes its coarse cell."""

LARGEST_SET = 5
"""Maximum number of columns in the coarse cell."""

CHOICE_SECONDS, PER_ROW, PER_SET = 3.0, 4e-9, 3e-5
"""Maximum CPU seconds for choosing the coarse columns, and the seconds for one set of columns (per row, and fixed)."""

LEAST, SURE, ABOVE_BASE = 0.02, 3.0, 2.7
"""The gate opens if the base misses more than this share of the rows. The missed share must also exceed the share that
an equally noisy base misses of its own rows, by this number of standard deviations of the probe's noise and by this
factor. On generated tables of pairs the factor was at most 2.1, except once; on XOR and latent classes it was at least
3.5 (benchmarks/README.md). 2.7 is the geometric mean of the two.
"""

MOST_DRAWN = 4_000_000
"""Maximum number of rows in the gate's bootstrap. With fewer, the gate opens less often."""

MOST_CLASSES = 200
"""Maximum number of target classes, each of which has its own vector of noisy sums."""

SECONDS = 8.0
"""Seconds for weighting the rows twice, used in the planned time. Every benchmark table took 5 to 9 CPU seconds."""


@dataclass(frozen=True)
class Shares:
    """Shares of the budget for the base's counts, the choice of coarse columns, the probe, and the other sums."""

    base: float
    choice: float
    probe: float
    rest: float

    @classmethod
    def of(cls, share: float | str) -> Shares:
        """Return the shares of a plan's ``embedding_share``; only "auto" has a probe."""
        if isinstance(share, str):
            return cls(0.50, 0.02, 0.04, 0.44)
        return cls(1 - share, 0.04 * share, 0.0, 0.96 * share)


@dataclass(frozen=True)
class Found:
    """Result of the probe: the share of rows that the base misses, the share that an equally noisy base misses of its
    own rows, and the noise. ``missed`` is the length of the base's error relative to n rows, and ``by_noise`` is the
    same length for the bootstrap. ``sure`` is the distance between the two in standard deviations of the probe's noise.
    ``limit`` is the smallest ``missed`` that the probe can detect, with noise ``sigma`` in each of its ``sums``.
    """

    missed: float
    by_noise: float
    sure: float
    limit: float
    sigma: float
    sums: int

    @property
    def worth_it(self) -> bool:
        """True if the stage justifies the rest of its budget."""
        return self.sure > SURE and self.missed > LEAST and self.missed > ABOVE_BASE * self.by_noise


def detectable(sigma: float, cells: int, rows: float) -> float:
    """Return the smallest share of rows that a probe with noise ``sigma`` in ``cells`` sums can detect."""
    return max(LEAST, math.sqrt(SURE * sigma**2 * math.sqrt(2 * cells)) / max(rows, 1.0))


@dataclass(frozen=True)
class Embedded:
    """Marginals of a method, and the noisy sums over whole rows; ``sums`` is `None` if the stage was not used.

    ``found`` is the probe's result, or `None` if the plan sets a share. ``given`` is the base's model.
    """

    base: Marginals
    sums: NoisySums | None
    found: Found | None
    marked: Clique
    ordered: tuple[str, ...]
    given: GraphicalModel | None = None

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """Sets of columns that were measured together."""
        return self.base.cliques

    @property
    def features(self) -> tuple[str, ...]:
        """Columns measured with a target."""
        return self.base.features

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of columns that the counts link."""
        return self.base.edges

    @property
    def shrunk(self) -> bool:
        """True if the base's model shrinks associations."""
        return self.base.shrunk

    @property
    def smoothed(self) -> bool:
        """True if the base's model smooths counts along ordered columns."""
        return self.base.smoothed

    def size(self, max_cells: int, further: tuple[Clique, ...] = ()) -> Size:
        """Return the cost of the base's model and of the weighted rows."""
        size = self.base.size(max_cells, further)
        if self.sums is None:
            return size
        drawn = size.measured_cells + self.sums.values.size
        return replace(size, measured_cells=drawn, bytes=max(size.bytes, 6 * POOL * self.sums.recipe.features.size))

    def stage(self, rows: float | None, plan: Plan) -> str:
        """Return the second stage's cost and its detection limit; ``rows`` is the number of rows if it is known."""
        shares, seconds = Shares.of(plan.embedding_share), f"about {SECONDS:.0f} s"
        said = [f"The second stage takes {1 - shares.base:.0%} of the budget, and the counts take {shares.base:.0%}."]
        if self.found is not None and rows:
            limit = detectable(self.found.sigma, self.found.sums, rows)
            said.append(
                f"Its probe detects groups of similar rows of one class that the counts miss, if they make up at least "
                f"about {limit:.1%} of the rows. If it finds none, the rest of the share goes to the counts."
            )
        copies = f", and as long again for each of the {plan.copies} copies" if plan.copies else ""
        return " ".join([*said, f"Weighting the rows takes {seconds}{copies}."])

    def model(self, report: Report = silent) -> GraphicalModel | TiltedModel:
        """Return the weighted rows, or the base's model if the stage was not used."""
        if self.sums is None:
            return self.base.model(report)
        model = self.given or self.base.model(part(report, 0.0, 0.2))
        rng = seeded_by([self.sums.values])
        return tilted(model, self.sums, self.ordered, self.base.impossible, rng, part(report, 0.2, 1.0))

    def facts(self, project: Project) -> dict[str, Any]:
        """Return the base's entries and an entry that states whether the stage was used, and why."""
        said: dict[str, Any] = {"used": self.sums is not None, "columns": list(self.marked)}
        if self.sums is not None:
            said |= {"target": self.sums.recipe.target, "sigma": self.sums.sigma, "sums": self.sums.values.size}
        if self.found is not None:
            said |= {key: getattr(self.found, key) for key in ("missed", "by_noise", "sure", "limit")}
        return {**self.base.facts(project), "embedding": said}


def check(project: Project, method: Method, frame: Frame) -> None:
    """Raise :class:`ProjectError` if the stage cannot follow the plan's method, before anything is spent."""
    plan, schema = project.plan, project.schema

    def refuse(why: str) -> None:
        raise ProjectError(f"The second stage (embedding_share) {why}", key="embedding_share")

    if not method.capabilities.embedding:
        refuse(
            f"cannot follow the method {method.title}. Set embedding_share to off, or choose Workload, PRISM or MST."
        )
    if frame.separations or method.fenced(plan):
        refuse("may link any two columns, so it cannot keep a fence or a drawn regime. Set embedding_share to off.")
    if method.arrows(project) or method.effect_of(plan) is not None:
        refuse("may link any two columns, but the drawing shapes this plan's table. Set embedding_share to off.")
    if plan.question_share and project.question_list:
        refuse(
            "and a share for questions cannot be combined, because the rows would no longer follow the "
            "answers. Use only one of them."
        )
    if plan.target is None:
        refuse(
            "measures whole rows by class. Choose a target on the Plan page (target), or set embedding_share to off."
        )
    classes = 0 if plan.target is None else schema.sizes[plan.target]
    if classes > MOST_CLASSES:
        refuse(f"allows at most {MOST_CLASSES} categories in the target, and {plan.target} has {classes}.")
    if sum(size > 1 for size in schema.sizes.values()) < 3:
        refuse("needs three columns with two values or more. Set embedding_share to off.")


def embed(method: Fit, curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Embedded:
    """Run ``method`` as the base, then the second stage with its share of the budget.

    Sensitivities are proved in :class:`ClassSums` and :class:`ColumnSets`. Everything else reads only the base's model
    and noisy sums, so it is post-processing. The costs in ρ add up.
    """
    plan, whole, rng = project.plan, curator.budget, curator.chance()
    shares, auto = Shares.of(plan.embedding_share), isinstance(plan.embedding_share, str)
    split = BudgetSplit.of(plan, whole, curator.sizes)
    # step 1: the base, with its share of the budget, and rows of its model
    with curator.within(whole.part(shares.base)):
        base = method(curator, project, frame, part(report, 0.0, 0.5))
    if not isinstance(base, Marginals):
        raise TypeError("the second stage can only follow marginals")
    report(0.5, "Fitting the base")
    model = None if curator.takes_first else base.model()
    pool, rows = _pool(model, curator, rng)
    target = plan.target or ""
    ordered = ordered_columns(project.schema, target)
    # step 2: coordinates of codes, from the base's rows
    ranks = {name: mid_ranks(pool[name], size) for name, size in curator.whole.items() if size > 1 and name != target}
    if not ranks:  # all other columns were bought and have only one value
        return Embedded(_counted_again(base, curator, split, 1 - shares.base), None, None, (), ordered)
    # step 3: the columns of the coarse cell
    coarse = {name: (rank > 0.5).astype(np.int64) for name, rank in ranks.items()}
    report(0.6, "Choosing columns that interact")
    sets, spent = column_sets(coarse, pool, target, curator.whole[target], rows), 0.0
    marked: Clique = ()
    if sets is not None:
        marked, spent = curator.choose_columns(sets, split.choice(shares.choice), "embedding choice"), shares.choice
    # step 4: the features
    mark = math.floor(UNIT * math.sqrt(MARKED)) if marked else 0
    rest = shares.rest + shares.choice - spent
    noise = _sigma(curator.unit, mark, whole.rho * rest)
    features = RowFeatures(
        phases(ranks, ordered, directions(rows, noise, len(ranks)), rng), {n: coarse[n] for n in marked}, mark
    )
    recipe = ClassSums(features, target, curator.whole[target])
    # steps 5 and 6: the probe and the gate
    found: Found | None = None
    if auto:
        report(0.7, "Probing for structure that the base misses")
        few = replace(features, phases={n: table[:, :PROBED] for n, table in features.phases.items()})
        found = probed(base, model, pool, _ask(curator, replace(recipe, features=few), split, shares.probe), rows, rng)
        if model is not None and not found.worth_it:
            return Embedded(_counted_again(base, curator, split, rest), None, found, marked, ordered)
    # step 7: the other sums; steps 8 to 10 are in `Embedded.model`
    report(0.9, "Measuring features of whole rows")
    return Embedded(base, _ask(curator, recipe, split, rest), found, marked, ordered, model)


def _counted_again(base: Marginals, curator: Curator, split: BudgetSplit, share: float) -> Marginals:
    """Return the base with further counts of its tables, bought with this share of the budget."""
    again = curator.measure(_further(base, split.evenly(share, [1.0])[0]), "further counts")
    return replace(base, measurements=(*base.measurements, *again))


def _further(base: Marginals, rho: float) -> dict[Clique, float]:
    """Return ρ of further counts of the base's tables of several columns, in proportion to their earlier ρ.

    If there are such tables, single columns are not measured again: with half the budget, the base already spent a
    larger share on them.
    """
    joint = [m for m in base.measurements if len(m.clique) > 1] or list(base.measurements)
    whole, out = math.fsum(m.rho for m in joint), dict[Clique, float]()
    for m in joint:
        out[m.clique] = out.get(m.clique, 0.0) + rho * (1 - 1e-12) * m.rho / whole
    return out


def _pool(model: GraphicalModel | None, curator: Curator, rng: np.random.Generator) -> tuple[Rows, float]:
    """Return rows of the base's model, and its number of rows. A rehearsal returns made-up rows."""
    if model is None:
        made = {name: rng.integers(0, size, 64) for name, size in curator.whole.items()}
        return made, float(curator.rows or 10_000)
    return model.sample(POOL, rng, even=True), max(model.total, 1.0)


def ordered_columns(schema: Schema, target: str) -> tuple[str, ...]:
    """Return the columns with ordered codes, except the target."""
    return tuple(c.name for c in schema.columns if c.kind != "categorical" and c.name != target)


def mid_ranks(codes: NDArray[Any], size: int) -> NDArray[np.float64]:
    """Return the mid-rank of each code among ``codes``, between 0 and 1."""
    share = np.bincount(codes, minlength=size) / len(codes)
    return np.asarray(np.cumsum(share) - share / 2)


def column_sets(
    coarse: Mapping[str, NDArray[np.int64]], pool: Rows, target: str, classes: int, rows: float
) -> ColumnSets | None:
    """Return the score for all sets of 2 to `LARGEST_SET` columns, up to the largest size that takes at most
    `CHOICE_SECONDS`.

    Return `None` if even the pairs would take longer. The penalty is the expected distance between two samples of one
    model.
    """
    held = len(pool[target])
    most, sets = CHOICE_SECONDS / (PER_SET + PER_ROW * (rows + held)), list[Clique]()
    for size in range(2, min(LARGEST_SET, len(coarse)) + 1):
        if len(sets) + math.comb(len(coarse), size) > most:
            break
        sets += itertools.combinations(coarse, size)
    if not sets:
        return None
    bins = {name: coarse[name][pool[name]].astype(np.int32) for name in coarse}
    counts = coarse_counts(bins, pool[target].astype(np.int32), classes, sets)
    expected = [np.asarray(rows / held * table, dtype=np.float64) for table in counts]
    penalties = [math.sqrt(2 / math.pi * BINS ** len(names) * classes * rows * (1 + rows / held)) for names in sets]
    return ColumnSets(coarse, target, classes, sets, expected, penalties)


def directions(rows: float, sigma: float, columns: int) -> int:
    """Return how many columns one random direction may read while a neighbourhood still contains enough rows
    to exceed the noise."""
    return max(1, min(columns, math.floor(math.log2(max(2.0, rows / (8 * sigma))))))


def phases(
    ranks: Mapping[str, NDArray[np.float64]], ordered: Sequence[str], together: int, rng: np.random.Generator
) -> dict[str, NDArray[np.uint16]]:
    """Return each column's contribution to every angle, by code, in units of 1/`TURN` of a full turn: w·x with w ~ N(0,
    1/`WIDTH`²).

    A direction reads ``together`` random columns. An ordered column is read at its mid-rank, any other column as
    one-hot.
    """
    names, chosen = list(ranks), np.zeros((FREQUENCIES, len(ranks)), dtype=bool)
    for line in chosen:
        line[rng.choice(len(names), together, replace=False)] = True
    out = {}
    for i, name in enumerate(names):
        rank = ranks[name]
        if name in ordered or len(rank) == 2:
            angle = np.outer(rank, rng.normal(0, 1 / WIDTH, FREQUENCIES))
        else:
            angle = rng.normal(0, 1 / WIDTH, (len(rank), FREQUENCIES)) / NOMINAL
        turns = np.rint(np.where(chosen[:, i], angle, 0.0) * (TURN / (2 * math.pi))).astype(np.int64)
        out[name] = (turns % TURN).astype(np.uint16)
    return out


def _sigma(unit: Unit, mark: int, rho: float) -> float:
    """Return the noise, in rows, of class sums that cost ``rho``."""
    square = 1.0 if unit.neighbors == "add-remove" else 4 - 2 * (mark / UNIT) ** 2
    return unit.rows_per_person * math.sqrt(square / (2 * rho))


def _ask(curator: Curator, recipe: ClassSums, split: BudgetSplit, share: float) -> NoisySums:
    (rho,) = split.evenly(share, [1.0])
    sums = curator.measure_sums(recipe, rho, "embedding")
    return NoisySums(recipe, sums.values.reshape(recipe.classes, -1), sums.sigma)


def probed(
    base: Marginals, model: GraphicalModel | None, pool: Rows, sums: NoisySums, rows: float, rng: np.random.Generator
) -> Found:
    """Compare the base's error on the real rows with the error of an equally noisy base on its own rows."""
    noise = sums.sigma**2 * math.sqrt(2 * sums.values.size)
    limit = detectable(sums.sigma, sums.values.size, rows)
    if model is None:
        return Found(0.0, 0.0, 0.0, limit, sums.sigma, sums.values.size)
    ours = sums_of(pool, sums.recipe) * (rows / len(pool[sums.recipe.target]))
    square = float(np.sum((sums.values - ours) ** 2)) - sums.sigma**2 * sums.values.size
    few = min(max(round(rows), 1), MOST_DRAWN)
    drawn, each = model.sample(few, rng), max(round(rows), 1) / few
    again = replace(base, measurements=tuple(_noisy(m, base, drawn, rng, each) for m in base.measurements)).model()
    theirs = sums_of(again.sample(POOL, rng, even=True), sums.recipe) * (rows / POOL)
    own = float(np.sum((each * sums_of(drawn, sums.recipe) - theirs) ** 2))
    missed, by_noise = math.sqrt(max(square, 0.0)) / rows, math.sqrt(own) / rows
    return Found(missed, by_noise, (square - own) / noise, limit, sums.sigma, sums.values.size)


def sums_of(rows: Rows, recipe: ClassSums, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return the class sums of public rows, each with weight 1 or its own weight."""
    count = len(rows[recipe.target])
    weights = np.ones(count) if weights is None else weights
    total = np.zeros((recipe.classes, recipe.features.size))
    for start in range(0, count, BLOCK):
        block = {name: codes[start : start + BLOCK] for name, codes in rows.items()}
        marks = np.zeros((recipe.classes, len(block[recipe.target])))
        marks[block[recipe.target], np.arange(marks.shape[1])] = weights[start : start + BLOCK]
        total += marks @ recipe.features.of(block)
    return total / UNIT


def _noisy(m: Any, base: Marginals, rows: Rows, rng: np.random.Generator, each: float) -> Any:
    """Return the counts of ``rows``, each of which represents ``each`` people, with noise as in ``m``.

    The noise protects no one, because these rows are synthetic.
    """
    codes = [base.merged[n][rows[n]] if n in base.merged else rows[n] for n in m.clique]
    counts = np.bincount(np.ravel_multi_index(codes, m.values.shape), minlength=m.values.size)
    return replace(m, values=each * counts.reshape(m.values.shape) + rng.normal(0.0, m.sigma, m.values.shape))
