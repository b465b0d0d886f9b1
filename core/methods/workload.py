"""Workload method, which chooses measurements that minimise the error of a workload (by default, all pairs).

It is similar to SWIFT (dpsynth) and AIM (McKenna, Mullins, Sheldon & Miklau 2022), but uses the exact solver of this
project. First, a tree is measured. Then the method buys noisy errors of the model fitted to the tree, and measures the
subset of marginals, with the shares, that minimises the predicted error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from espalier.core.graph.separations import Clique, Separation, clique_edges
from espalier.core.methods.base import Capabilities, Guidance, Limits, Method, Purpose, Separations
from espalier.core.methods.frame import Frame
from espalier.core.methods.marginals import Marginals, one_ways
from espalier.core.methods.select.allocation import BudgetSplit, Choices, label
from espalier.core.methods.select.cliques import rounds
from espalier.core.methods.select.constrained import joined
from espalier.core.methods.select.expected import Expected, by_model, independent, noisy_total
from espalier.core.methods.select.greedy_tree import Growth, choose_tree
from espalier.core.methods.select.marginals import (
    FITTED,
    MEAN,
    TREES,
    Candidate,
    Room,
    best_subset,
    noisy_cells,
    shrunk,
)
from espalier.core.methods.select.pairs import Reach, by_cells, choose_pairs
from espalier.core.methods.select.refused_pairs import refused_pairs, strongest_tree
from espalier.core.methods.select.usefulness import expected_noise
from espalier.core.methods.workload_weights import (
    BATCHES,
    MOST_PAIRS,
    WIDTH,
    Workload,
    WorkloadOptions,
)
from espalier.core.models.graphical import ordered_values
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.draws import Measurement, ScoreMeasurement
from espalier.core.privacy.scores import EdgeScore, vector_sensitivity
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project
from espalier.core.project.options import read_options

FEW = 350
"""Maximum number of weighted candidates that are scored together. Their noise grows with the square root of the number
of candidates; with one choice at a time, it grows with the square root of the number of choices."""

ONE_WAY, MOST_ONE_WAY = 0.08, 0.25
"""Smallest and largest share of the budget for the one-way counts. Pairs of small columns also improve single columns.
On 3,000 rows of asia at ε = 0.2, two-way TV is 0.050 with a limit of 0.6, and 0.041 with 0.25. Adult reaches neither
limit.
"""

GOOD_ENOUGH = 0.015
"""Expected TV error of one-way counts at or below which they get no more than `ONE_WAY`."""

CHOICE = 0.06
"""Share of the budget for choosing in each of the two rounds."""

FIRST = 0.5
"""Share of the remaining budget for pairs that the first round gets."""

FITS = 1 + BATCHES
"""Number of intermediate models, for the planned time: one for the tree, and one per batch."""

CLEAR = 0.03
"""Largest expected error that noise adds to a score, as a TV, if the scores of all pairs are bought together. Compared
with choosing one pair at a time, buying all scores together changed the mean TV as follows (two to four runs). At an
expected error of 0.018 (tables of 10,000 rows and 22 columns, ε = 1): −0.0164 to −0.0016. At 0.033 (child with 5,000
rows, ε = 1): −0.0010 ± 0.0023, but the rare outcome is found less often (AUC 0.49, with mst 0.58). At 0.065 (the same
rows, ε = 0.5): +0.0019 ± 0.0013; at ε = 0.2: +0.0105 ± 0.0051.
"""

GOOD_PAIR = 0.0105
"""Expected TV error of a typical pair up to which more pairs than `MOST_ROUNDS` are measured, one at a time: with all
pairs scored together, alarm with 50,000 rows has a TV of 0.0043 instead of 0.0037 at ε = 1. With up to 80 pairs instead
of 40, whatever the error, alarm with 30,000 rows has a TV of 0.0054 instead of 0.0058 at ε = 1 (expected error 0.0075
to 0.0106). But child with 20,000 rows has 0.0087 instead of 0.0079 (expected error 0.011 or more), and alarm with 8,000
rows at ε = 0.2 has 0.056 instead of 0.053.
"""


@dataclass(frozen=True)
class Request:
    """Request to measure counts for ``wanted`` inside ``separations``, with ``curator`` and ``budget``."""

    curator: Curator
    budget: BudgetSplit
    separations: Sequence[Separation]
    wanted: Workload
    report: Report = silent


def workload(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Marginals:
    """Measure one-way counts, then choose and measure in two rounds, inside ``frame``.

    With a frame, the share ``explain`` buys scores of the pairs that the frame refused. If columns are ordered, the fit
    smooths the counts of pairs along their values (`espalier.core.models.graphical.smoothness`).
    """
    budget = BudgetSplit.of(project.plan, curator.budget, curator.sizes)
    explain = read_options(WorkloadOptions, project.plan.options).explain if frame.separations else 0.0
    report(0.0, "Counting every column")
    ones, left = measure_ones(curator, budget, 1.0 - explain)
    request = Request(curator, budget, frame.separations, Workload.of(project), report)
    made, left = measure_pairs(request, left, ones, ())
    explained, unspent = _explain(request, explain, ones, made)
    made += curator.measure(budget.split(left + unspent, one_ways(curator)), "one-way")
    ordered = ordered_values(project.schema, curator.sizes)
    return Marginals.of(curator, [*ones, *made], explained=explained, ordered=ordered, shrunk=bool(ordered))


def _explain(
    request: Request, share: float, ones: Sequence[Measurement], made: Sequence[Measurement]
) -> tuple[ScoreMeasurement | None, float]:
    """Score the pairs that the frame refused against the strongest tree of measured pairs; return the rest of
    ``share``.

    The strongest tree is determined by the noisy counts of its pairs.
    """
    curator, alone = request.curator, independent(ones, noisy_total(request.curator, ones))
    strength: dict[Clique, float] = {}
    for m in made:
        for pair in itertools.combinations(m.clique, 2):
            others = tuple(i for i, name in enumerate(m.clique) if name not in pair)
            strength[pair] = float(np.abs(m.values.sum(axis=others) - alone(pair)).sum())
    refused = refused_pairs(curator.sizes, request.separations, strength)
    if not share or not refused:
        return None, share
    asked = [*strongest_tree(strength), *refused]
    (rho,) = request.budget.split(share, one_ways(curator)[:1]).values()
    what = f"scores of refused pairs and of the tree (about {len(asked)}, depending on the tree)"
    return curator.measure_scores(EdgeScore(alone), asked, rho, what, "explain"), 0.0


def measure_ones(curator: Curator, budget: BudgetSplit, share: float) -> tuple[list[Measurement], float]:
    """Measure one-way counts; return them and the rest of ``share``.

    These counts get the share that brings their expected TV error to `GOOD_ENOUGH`, between `ONE_WAY` and
    `MOST_ONE_WAY` of ``share``. It depends on n or, if n is private, on the noisy total of the first of two portions.
    """
    ones = curator.measure(budget.split(ONE_WAY * share, one_ways(curator)), "one-way")
    cells = sum(curator.sizes.values()) / len(curator.sizes)
    each = expected_noise(curator, budget, share / len(ones))
    error = 0.5 * cells * each / max(1.0, noisy_total(curator, ones))
    wanted = min(MOST_ONE_WAY, (error / GOOD_ENOUGH) ** 2)
    if wanted <= ONE_WAY:
        return ones, (1 - ONE_WAY) * share
    ones += curator.measure(budget.split((wanted - ONE_WAY) * share, one_ways(curator)), "one-way")
    return ones, (1 - wanted) * share


def measure_pairs(
    request: Request, share: float, ones: Sequence[Measurement], known: Sequence[Measurement]
) -> tuple[list[Measurement], float]:
    """Measure counts for ``share``, in addition to ``ones`` and ``known``; return them and the rest of the share.

    First a tree is measured, with each edge chosen by the exponential mechanism. The pairs for which the fitted model
    is still wrong follow: all together if their scores are clear (`_clear`) or have different weights, otherwise one at
    a time. Scores bought together show how many pairs are worth measuring: 60 to 110 on tables of 22 columns, where two
    choices per column reach 60. But their noise grows with the square root of the number of candidates, and on small
    tables they are mostly noise.
    """
    curator, wanted = request.curator, request.wanted
    held = [*curator.impossible, *(m.clique for m in known)]
    room = Room(curator.sizes, held, request.separations, wanted.max_cells, curator.takes_first)
    cliques = [q for q in wanted.candidates(curator.sizes) if room.may_take(q)]
    if not cliques:
        return [], share
    alone = independent(ones, noisy_total(curator, ones))
    score = EdgeScore(by_model(curator, [*ones, *known]) if known else alone)

    request.report(0.1, "Choosing a tree")
    linked = clique_edges([*joined(curator), *(m.clique for m in known)])
    choices = Choices(curator, request.budget, CHOICE * share, "pair choice")
    pairs = [q for q in cliques if len(q) == 2]
    tree, unspent = choose_tree(choices, request.separations, score, pairs, linked)
    tree = [edge for edge in tree if room.take(edge)]
    if not tree:
        return [], (1 - CHOICE) * share + unspent
    count = (1 - 2 * CHOICE) * share
    made = _counted(request, FIRST * count + unspent, tree, alone)

    request.report(0.6, "Choosing pairs with remaining errors")
    found = [*ones, *known, *made]
    second = Second(request, share, (1 - FIRST) * count, tree, alone, found)
    if len(cliques) <= FEW if wanted.weighted else _clear(second, cliques):
        return [*made, *_at_once(second, cliques, room)], 0.0
    return [*made, *_one_by_one(second, pairs, linked, room)], 0.0


@dataclass(frozen=True)
class Second:
    """State of the second round: the ``share`` of the budget, of which ``count`` pays for measurements; the ``tree`` of
    the first round; the measurements ``found`` so far; and ``alone``, the expectations for independent columns.
    """

    request: Request
    share: float
    count: float
    tree: Sequence[Clique]
    alone: Expected
    found: Sequence[Measurement]


def _counted(
    request: Request, share: float, cliques: Sequence[Clique], alone: Expected, sigma: float | None = None
) -> list[Measurement]:
    """Measure ``cliques`` with ρ_i ∝ (w_i·cells_i)^(2/3), where cells_i is the effective number of cells; shares set by
    hand are kept.
    """
    curator, budget, wanted = request.curator, request.budget, request.wanted
    sigma = sigma or expected_noise(curator, budget, share / len(cliques)) / MEAN
    cells = [math.prod(budget.sizes[name] for name in q) for q in cliques]
    weights = [wanted.weight(q) * noisy_cells(alone(q), sigma) / k for q, k in zip(cliques, cells, strict=True)]
    return curator.measure(replace(budget, rule="optimal").split(share, cliques, weights), "pairs")


def _clear(second: Second, cliques: Sequence[Clique]) -> bool:
    """Return whether scores of all ``cliques``, bought together, show which pairs to measure.

    If the tree and one choice at a time reach half of all pairs, as with up to twelve columns, one choice at a time is
    better: asia with 3,000 rows at ε = 1 has a TV of 0.0080, and 0.0105 with all pairs scored together; Adult at ε = 3
    has 0.0053 and 0.0057. It is also better if pairs are measured with little noise, because each choice then accounts
    for the earlier counts.
    """
    request, curator = second.request, second.request.curator
    pairs = [q for q in cliques if len(q) == 2]
    reached = len({name for pair in pairs for name in pair}) - 1 + request.wanted.rounds
    if not request.wanted.compared or 2 * reached >= len(pairs) or _how_many(second, pairs) > request.wanted.rounds:
        return False
    (rho,) = request.budget.split(CHOICE * second.share, one_ways(curator)[:1]).values()
    score = EdgeScore(second.alone)
    delta = vector_sensitivity(score, len(cliques), curator.unit, curator.rows) / score.per_row(curator.rows)
    return 0.5 * MEAN * delta / math.sqrt(2 * rho) / _rows(second) <= CLEAR


def _at_once(second: Second, cliques: Sequence[Clique], room: Room) -> list[Measurement]:
    """Buy noisy errors of all candidates together, and measure their best subset, or the tree if no candidate helps."""
    request, alone, curator = second.request, second.alone, second.request.curator
    asked = [*cliques, *_triangles(second, cliques)]
    (rho,) = request.budget.split(CHOICE * second.share, one_ways(curator)[:1]).values()
    score = EdgeScore(by_model(curator, second.found))
    what = f"errors of {len(asked)} marginals, all together"
    errors = shrunk(curator.measure_scores(score, asked, rho, what, "pair choice"))
    noise = expected_noise(curator, request.budget, second.count) / MEAN
    sigma = noise * math.sqrt(2 * len(curator.sizes))
    candidates = [
        Candidate(q, error, request.wanted.weight(q), noisy_cells(alone(q), sigma))
        for q, error in zip(asked, errors.tolist(), strict=True)
    ]
    chosen = [c.clique for c in best_subset(candidates, noise, room)]
    return _counted(request, second.count, chosen or second.tree, alone, sigma)


def _triangles(second: Second, cliques: Sequence[Clique]) -> list[Clique]:
    """Return triples that the tree links, up to the wanted number, with the strongest edges first."""
    request, strength = second.request, dict[Clique, float]()
    if not request.wanted.triples:
        return []
    for m in second.found:
        if m.clique in second.tree:
            strength[m.clique] = float(np.abs(m.values - second.alone(m.clique)).sum())
    found: dict[Clique, float] = {}
    for a, b in itertools.combinations(strength, 2):
        triple = tuple(name for name in request.curator.sizes if name in (*a, *b))
        if len(triple) == 3 and triple not in cliques and request.wanted.weight(triple) > 0:
            found[triple] = strength[a] + strength[b]
    return sorted(found, key=lambda q: -found[q])[: request.wanted.triples]


def _one_by_one(second: Second, pairs: Sequence[Clique], linked: Sequence[Clique], room: Room) -> list[Measurement]:
    """Choose further pairs by the exponential mechanism and measure them, in batches that use the results of earlier
    batches.

    Small columns may be measured together (`tells_its_pairs`).
    """
    request, curator, wanted = second.request, second.request.curator, second.request.wanted
    batches = wanted.batches
    most = -(-_how_many(second, pairs) // batches)
    choices = Choices(curator, request.budget, CHOICE * second.share / batches, "pair choice")
    noise = FITTED * expected_noise(curator, request.budget, second.count / batches / max(1, most))
    growth = Growth(tuple(curator.sizes), request.separations)
    for pair in linked:
        growth.link(pair)
    chosen, refused = list(second.tree), set[Clique]()
    made, left = list[Measurement](), 0.0
    ordered = by_cells(curator.sizes, pairs) if curator.takes_first else []
    for _ in range(batches):
        score = EdgeScore(by_model(curator, [*second.found, *made]), noise)
        open_, first = ([q for q in some if q not in refused] for some in (pairs, ordered))
        reach = Reach(open_, most, WIDTH, wanted.max_cells, wanted.together, first)
        found, unspent = choose_pairs(choices, growth, score, chosen, reach)
        further = [q for q in found if room.take(q)]
        refused |= set(clique_edges([q for q in found if q not in further]))
        left += second.count / batches + unspent
        if further:
            made += _counted(request, left, further, second.alone)
            left = 0.0
        chosen += further
    return [*made, *_counted(request, left, chosen, second.alone)] if left else made


def _how_many(second: Second, pairs: Sequence[Clique]) -> int:
    """Return the number of cliques that may join the tree. It depends on quantities that are public or paid for (see
    `GOOD_PAIR`).
    """
    curator, budget = second.request.curator, second.request.budget
    columns = len({name for pair in pairs for name in pair})
    most, room = (rounds(columns, WIDTH, most) for most in (second.request.wanted.rounds, MOST_PAIRS))
    cells = sorted(math.prod(curator.sizes[name] for name in pair) for pair in pairs)[len(pairs) // 2]
    rows = _rows(second)
    while most < room and 0.5 * cells * expected_noise(curator, budget, second.count / (most + 1)) / rows <= GOOD_PAIR:
        most += 1
    return most


def _rows(second: Second) -> float:
    """Return the number of rows, or an estimate from the counts of single columns."""
    return max(1.0, noisy_total(second.request.curator, [m for m in second.found if len(m.clique) == 1]))


def _frame(project: Project, separations: Separations, warnings: list[str]) -> Frame:
    """Return the frame unchanged; warn about weights that it makes useless, and refuse weights of unknown columns."""
    frame = Frame(separations)
    idle = [
        label(q)
        for q in Workload.of(project).cliques
        if any(frame.forbids(a, b) for a, b in itertools.combinations(q, 2))
    ]
    if idle:
        warnings.append(f"The fence refuses {', '.join(idle)}, so the weights given for them are not used.")
    return replace(frame, warnings=tuple(warnings))


def most_cells(project: Project, max_cells: int) -> int:
    """Return the largest number of cells of a model whose largest clique may have ``max_cells``.

    It is less than twice the number of cells in the joint table of all columns: a junction tree has a table for each
    column, over some of the columns not yet eliminated, and every eliminated column at least halves the rest.
    """
    return min(TREES * max_cells, 2 * math.prod(project.schema.sizes.values()))


WORKLOAD = Method(
    name="workload",
    title="Workload",
    summary="chooses and measures pairs in two rounds, to bring the whole table close to the real one",
    fit=workload,
    options=WorkloadOptions,
    frame=_frame,
    guidance=Guidance(
        when="Choose it for general use if all pairs of columns matter, with or without a fence.",
        purposes={
            "general": Purpose("It brings all pairs of columns as close to the real table as the budget allows."),
            "questions": Purpose(
                "It also answers your questions. List them on this page and give them a share of the budget."
            ),
        },
        pools={
            "pair choice": "choosing the pairs",
            "pairs": "counts of pairs",
            "tree choice": "choosing the pairs",
            "two-way": "counts of pairs",
            "explain": "scores of refused pairs",
        },
    ),
    capabilities=Capabilities(questions="beside", embedding=True),
    limits=Limits(
        cells=lambda project: most_cells(project, Workload.of(project).max_cells),
        fits=lambda project: FITS,  # noqa: ARG005
    ),
    without_fence={"fair": False, "strict": False, "explain": 0.0},
)
