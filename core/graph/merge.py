"""Comparison and merge of two people's drawings of the same table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from espalier.core.graph.annotations import Annotation
from espalier.core.graph.dag import Dag

Arrow = tuple[str, str]
Side = Literal["mine", "theirs"]


@dataclass(frozen=True)
class Difference:
    """One difference to resolve, about the arrow or column ``of``.

    The ``kind`` is "arrow" if only one of the two has the arrow, "reversed" if both have it in opposite directions, and
    "annotation" if both have one with different contents. ``mine`` and ``theirs`` are the two versions: an arrow, an
    annotation, or `None`.
    """

    kind: Literal["arrow", "reversed", "annotation"]
    of: tuple[str, ...]
    mine: Arrow | Annotation | None
    theirs: Arrow | Annotation | None


def differences(mine: Dag, theirs: Dag) -> tuple[Difference, ...]:
    """Return the conflicts to resolve before a merge. Annotations that only one drawing has are not conflicts."""
    here, there = set(mine.edges), set(theirs.edges)
    out: list[Difference] = []
    for a, b in dict.fromkeys((*mine.edges, *theirs.edges)):
        if (a, b) in here and (b, a) in there:
            out.append(Difference("reversed", (a, b), (a, b), (b, a)))
        elif (a, b) in here and (a, b) not in there:
            out.append(Difference("arrow", (a, b), (a, b), None))
        elif (a, b) in there and (a, b) not in here and (b, a) not in here:
            out.append(Difference("arrow", (a, b), None, (a, b)))
    for of, said in mine.annotations.items():
        other = theirs.annotations.get(of)
        if other and other != said and (len(of) == 1 or of in here & there):
            out.append(Difference("annotation", of, said, other))
    return tuple(out)


def merge(mine: Dag, theirs: Dag, settled: Mapping[Difference, Side]) -> Dag:
    """Return one drawing with everything that both have in common and the chosen side of each difference (default
    "mine").

    Positions, notes, unmeasured causes, interactions and groups that only ``theirs`` has are added. Raises
    :class:`GraphError` that names a cycle, if there is one.
    """
    edges = list(mine.edges)
    annotations = {**theirs.annotations, **mine.annotations}
    for found in differences(mine, theirs):
        if settled.get(found, "mine") == "mine":
            continue
        if found.kind == "annotation":
            assert isinstance(found.theirs, Annotation)
            annotations[found.of] = found.theirs
            continue
        if isinstance(found.mine, tuple):
            edges.remove(found.mine)
        if isinstance(found.theirs, tuple):
            edges.append(found.theirs)
    known = {frozenset(pair) for pair in mine.hidden}
    together = {(frozenset(causes), effect) for causes, effect in mine.interactions}
    grouped = {name for inside in mine.groups.values() for name in inside}
    groups = {group: inside for group, inside in theirs.groups.items() if not grouped & set(inside)}
    return replace(
        mine,
        edges=tuple(edges),
        hidden=(*mine.hidden, *(pair for pair in theirs.hidden if frozenset(pair) not in known)),
        notes={**theirs.notes, **mine.notes},
        positions={**theirs.positions, **mine.positions} if mine.positions else mine.positions,
        annotations=annotations,
        interactions=(
            *mine.interactions,
            *(
                (causes, effect)
                for causes, effect in theirs.interactions
                if (frozenset(causes), effect) not in together
            ),
        ),
        groups={**groups, **mine.groups},
    )


def inside(theirs: Dag, columns: tuple[str, ...]) -> tuple[Dag, tuple[str, ...]]:
    """Return the part of a drawing that concerns these columns, and the names that it leaves out."""
    known = set(columns)
    named = dict.fromkeys(n for e in theirs.edges for n in e)
    kept = replace(
        theirs,
        edges=tuple(e for e in theirs.edges if known.issuperset(e)),
        hidden=tuple(pair for pair in theirs.hidden if known.issuperset(pair)),
        positions={n: xy for n, xy in theirs.positions.items() if n in known},
        annotations={of: said for of, said in theirs.annotations.items() if known.issuperset(of)},
        interactions=tuple(found for found in theirs.interactions if known.issuperset((*found[0], found[1]))),
        groups={
            group: tuple(n for n in names if n in known)
            for group, names in theirs.groups.items()
            if group not in known and known & set(names)
        },
    )
    return kept, tuple(n for n in named if n not in known)
