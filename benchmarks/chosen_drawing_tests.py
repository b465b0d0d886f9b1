"""Share of absent arrows detected by the default statements. `python -m benchmarks.conclusions drawing [--releases 30]`

ε = 1, δ = 1e-9, a tenth of ρ over five statements, 20,000 rows, replace-one.

``contested``: rows of a network (asia, child, alarm) with a drawing that lacks one arrow. Both ends keep another arrow,
because a drawing makes no statement about columns outside it. The pair is among ten contested pairs. The statements are
chosen by the plan, bought with OpenDP noise, and judged. ``held``: the whole network is drawn, with ten contested
pairs, so any contradiction is a false alarm.

``without marks``: the alternatives are all arrows that are absent from the drawing of a network or of a random graph,
each added alone. Strengths are random and differ from the strengths that the choice assumes. The probability that five
statements detect an arrow follows from the linear model. ``best`` are five statements chosen step by step with these
strengths known. ``before`` are the five statements with the fewest cells.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np

from benchmarks.tables import drawn, network_arrows
from espalier.core.analysis.chosen_statements import alternatives, chosen, covariances, picked, powers
from espalier.core.analysis.drawing import LEVEL, outcome, tested
from espalier.core.analysis.independence_fit import Null
from espalier.core.graph.annotations import Annotation
from espalier.core.graph.dag import Dag
from espalier.core.graph.separations import Separation
from espalier.core.graph.statements import statements
from espalier.core.privacy.accounting import Budget, rho_of
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.mechanisms import gaussian_scale
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan

NETWORKS = ("asia", "child", "alarm")
ROWS, DELTA, FIVE = 20_000, 1e-9, 5


def noticed(network: str, releases: int, erase: bool) -> tuple[int, int, int]:
    """Return the number of releases with a contradicted statement, with a statement about the removed arrow, and in
    total.
    """
    edges, rng = network_arrows(network), np.random.default_rng(31)
    often = Counter(name for edge in edges for name in edge)
    erasable = [edge for edge in edges if min(often[name] for name in edge) > 1]
    found = named = 0
    for i in range(releases):
        table = drawn(network, ROWS, 1000 + i)
        gone = erasable[int(rng.integers(len(erasable)))] if erase else None
        kept = tuple(edge for edge in edges if edge != gone)
        names = [n for n in dict.fromkeys(n for edge in kept for n in edge) if table.schema.sizes[n] > 1]
        linked = {frozenset(edge) for edge in edges}
        absent = [p for p in itertools.combinations(names, 2) if frozenset(p) not in linked]
        marks = [absent[int(k)] for k in rng.choice(len(absent), 10 - erase, replace=False)]
        marked = [*marks, *([gone] if gone else [])]
        notes = {tuple(pair): Annotation(belief="contested") for pair in marked}
        plan = Plan("independent", 1.0, DELTA, test_drawing=0.1, statements=FIVE)
        project = Project("drawing", table.schema, plan, Dag(kept, annotations=notes))
        curator = PrivateCurator(table, Unit(), Budget(1.0, DELTA, rho_of(1.0, DELTA)), 10**7)
        with tested(curator, project) as tests:
            result = outcome(project, tests, rng)
        found += any(one.contradicted(LEVEL) for _, one in result)
        named += any({*t.statement.left, *t.statement.right} == set(gone or ()) for t in tests)
    return found, named, releases


def unmarked(dag: Dag, sizes: dict[str, int], rng: np.random.Generator) -> tuple[float, float, float]:
    """Return the expected share of absent arrows detected by the chosen statements, by the best statements, and by the
    earlier choice.
    """
    sigma = gaussian_scale(Unit().count_sensitivity, 0.1 * rho_of(1.0, DELTA) / FIVE)

    def null(statement: Separation) -> Null:
        shape = [math.prod(sizes[n] for n in part) for part in (statement.left, statement.right, statement.given)]
        return Null.uniform((shape[0], shape[1], shape[2]), ROWS, sigma)

    level = LEVEL / FIVE
    candidates = statements(dag, sizes, most=1000)
    names = list(dict.fromkeys(name for edge in dag.edges for name in edge))
    arrows = alternatives(dag, names)
    strength = {edge: float(rng.uniform(0.2, 0.8)) / math.sqrt(len(dag.parents(edge[1]))) for edge in dag.edges}
    strength |= {arrow: float(rng.uniform(0.05, 0.4)) for arrow in arrows}
    power = powers(names, covariances(dag, names, arrows, strength), candidates, null, level)
    ways = np.array([1 + (arrow[::-1] in set(arrows)) for arrow in arrows])
    place = {statement: i for i, statement in enumerate(candidates)}

    def reached(some: tuple[Separation, ...]) -> float:
        missed = np.prod([1 - power[place[s]] for s in some], axis=0)
        return float(np.average(1 - missed, weights=1 / ways))

    best = picked(candidates, power, 1 / ways, FIVE)
    return reached(chosen(dag, candidates, null, level, FIVE)), reached(best), reached(candidates[:FIVE])


def show(releases: int) -> None:
    """Print the three parts."""
    for title, erase in (("contested", True), ("held", False)):
        total = np.zeros(3, dtype=int)
        for network in NETWORKS:
            got = noticed(network, releases, erase)
            total += got
            print(f"{title}: {network}: contradicted in {got[0]} of {got[2]}, own statement in {got[1]}", flush=True)
        print(f"{title}: {100 * total[0] / total[2]:.1f} % of {total[2]} releases", flush=True)
    rng = np.random.default_rng(32)
    shares = []
    for i in range(releases):
        if i % 3 == 0:
            network = NETWORKS[i // 3 % 3]
            dag, sizes = Dag(tuple(network_arrows(network))), dict(drawn(network, 10, 0).schema.sizes)
        else:
            names = [f"c{k}" for k in range(int(rng.integers(8, 21)))]
            pairs = list(itertools.combinations(names, 2))
            dag = Dag(tuple(pairs[int(k)] for k in rng.choice(len(pairs), round(1.4 * len(names)), replace=False)))
            sizes = {name: int(rng.integers(2, 5)) for name in names}
        shares.append(unmarked(dag, sizes, rng))
    mine, best, before = np.mean(shares, axis=0)
    print(
        f"without marks: {releases} drawings: detected {100 * mine:.1f} %, best {100 * best:.1f} %, before "
        f"{100 * before:.1f} %; chosen ÷ best {100 * np.mean([m / b for m, b, _ in shares]):.0f} %, before ÷ best "
        f"{100 * np.mean([c / b for _, b, c in shares]):.0f} %",
        flush=True,
    )
