"""Measurements beyond a tree: cliques inside the frame, chosen privately by the error of the model so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from espalier.core.graph.separations import Clique
from espalier.core.methods.frame import Frame
from espalier.core.methods.marginals import one_ways
from espalier.core.methods.select.allocation import BudgetSplit
from espalier.core.methods.select.cliques import MAX_CELLS, further_cliques
from espalier.core.methods.select.constrained import joined
from espalier.core.methods.select.expected import by_model, noisy_total
from espalier.core.methods.select.usefulness import expected_noise, useful_cells
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.draws import Measurement
from espalier.core.privacy.scores import EdgeScore
from espalier.core.progress import Report

CHOICE = 0.2
"""Fraction of a clique's share for choosing it; the rest pays for measuring it (AIM: 0.1)."""

LARGEST_ERROR = 2
"""Largest possible L1 error of a table of n rows, in units of n. A table with a larger error is never a candidate: it
could be chosen only by mistake, and every plan would have to allow for its size.
"""

BATCHES = 10
"""Maximum number of refits while cliques are chosen."""


@dataclass(frozen=True)
class Further:
    """Request for further measurements: ``steps`` cliques for ``share`` of the budget, up to ``width`` and
    ``max_cells`` cells.
    """

    share: float
    steps: int
    width: int
    max_cells: int


def measure_further(
    curator: Curator, budget: BudgetSplit, asked: Further, found: Sequence[Measurement], frame: Frame, report: Report
) -> list[Measurement]:
    """Make ``asked.steps`` more measurements for ``asked.share`` of the budget, as in AIM (McKenna et al. 2022, Alg.
    2).

    In each step, the exponential mechanism selects among the cliques that `further_cliques` allows. The score is the
    amount by which a clique's error in the model fitted so far (L1, in rows) exceeds the noise of measuring the clique.
    The selected clique is then measured. Unlike in AIM, the number of rounds and their prices are fixed, and a plan can
    show them. The candidates keep the model decomposable, inside the frame, and no wider than ``asked.width``. The
    noise of new tables is at most `LARGEST_ERROR` · n. Beyond `BATCHES` rounds, several cliques are chosen against one
    model and measured together.
    """
    made: list[Measurement] = []
    steps, cells = asked.steps, min(MAX_CELLS, asked.max_cells)
    each = asked.share / steps
    noise = expected_noise(curator, budget, (1 - CHOICE) * each)
    total = noisy_total(curator, [m for m in found if len(m.clique) == 1])
    useful = useful_cells(curator, budget, (1 - CHOICE) * each, total, 1 / LARGEST_ERROR)
    done, unspent = 0, 0.0
    for batch in range(min(BATCHES, steps), 0, -1):
        size = -(-(steps - done) // batch)
        report(0.4 + 0.6 * done / steps, "Choosing further pairs and triples")
        score = EdgeScore(by_model(curator, [*found, *made]), noise)
        chosen: list[Clique] = []
        for _ in range(size):
            held = [*joined(curator), *(m.clique for m in (*found, *made)), *chosen]
            candidates = [
                q
                for q in further_cliques(curator.sizes, held, frame.separations, asked.width, cells)
                if q not in chosen and (q in held or math.prod(curator.sizes[name] for name in q) <= useful)
            ]
            if len(candidates) > 1:
                chosen.append(
                    curator.choose(score, candidates, budget.choice(CHOICE * each), "further clique", "further cliques")
                )
            else:
                chosen += candidates
                unspent += CHOICE * each
        if chosen:
            made += curator.measure(budget.split((1 - CHOICE) * each * size + unspent, chosen), "further cliques")
            unspent = 0.0
        else:
            unspent += (1 - CHOICE) * each * size
        done += size
    if unspent:  # the frame allows no pair
        made += curator.measure(budget.split(unspent, one_ways(curator)), "one-way")
    return made
