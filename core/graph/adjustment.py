"""Adjustment sets: sets of columns that identify an effect in a drawing.

A set Z is valid for the effect of T on Y if none of its columns is a descendant of a column on a causal path from T to
Y, and Z blocks every path from T to Y that is not causal (Shpitser, VanderWeele & Robins 2010; Perković et al. 2015).
That is a single d-separation in the drawing without T's arrows on causal paths (van der Zander, Liśkiewicz & Textor
2014). A minimal valid set is among the causes of T and Y in that drawing and is a minimal cut of its moral graph. The
search below runs over these cuts.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from espalier.core.errors import GraphError
from espalier.core.graph.cuts import cheapest_cut
from espalier.core.graph.dag import Dag
from espalier.core.graph.paths import is_causal, open_paths, separated
from espalier.core.graph.separations import Separation

Arrow = tuple[str, str]
MOST_COLUMNS = 5
"""Maximum size of a listed set. The cheapest set is found even if it is larger."""
MOST_STEPS = 5000


@dataclass(frozen=True)
class Choice:
    """A valid adjustment set: its ``columns``, and the number of ``strata`` they form (the product of their sizes)."""

    columns: tuple[str, ...]
    strata: int


@dataclass(frozen=True)
class Validity:
    """Validity of a set. An invalid set has ``forbidden`` columns or an open ``path``; ``sentence`` is never empty."""

    valid: bool
    sentence: str
    forbidden: tuple[str, ...] = ()
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Effect:
    """The question "what is the effect of ``treatment`` on ``outcome``", asked about a drawing.

    ``latent`` are drawn columns missing from the table. The drawing's ``hidden`` pairs also share a cause. Raises
    :class:`GraphError` if the drawing cannot answer the question.
    """

    dag: Dag
    treatment: str
    outcome: str
    latent: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.treatment == self.outcome:
            raise GraphError(f"{self.treatment!r} cannot be both treatment and outcome", column=self.treatment)
        for role, name in (("treatment", self.treatment), ("outcome", self.outcome)):
            if name in self.latent:
                raise GraphError(f"the {role} {name!r} is not a column of the table", column=name)

    @property
    def edges(self) -> tuple[Arrow, ...]:
        """The drawing's arrows, and two arrows from each unmeasured cause that two columns share."""
        return self.dag.links

    @cached_property
    def on_causal_paths(self) -> frozenset[str]:
        """Columns on a causal path from treatment to outcome, including the outcome but not the treatment."""
        below = _descendants({self.treatment}, self.edges, avoid=frozenset())
        above = _descendants({self.outcome}, [(e, c) for c, e in self.edges], avoid=frozenset({self.treatment}))
        return frozenset(below & above - {self.treatment})

    @property
    def mediators(self) -> tuple[str, ...]:
        """Columns through which the treatment acts on the outcome."""
        return tuple(sorted(self.on_causal_paths - {self.outcome}))

    @cached_property
    def forbidden(self) -> frozenset[str]:
        """Columns that must not be adjusted for: descendants of columns on causal paths, treatment and outcome."""
        below = _descendants(set(self.on_causal_paths), self.edges, avoid=frozenset())
        return frozenset(below | {self.treatment, self.outcome})

    @cached_property
    def back_door(self) -> tuple[Arrow, ...]:
        """The drawing without the treatment's arrows on causal paths. Remaining links are not part of the effect."""
        gone = {(self.treatment, name) for name in self.on_causal_paths}
        return tuple(e for e in self.edges if e not in gone)

    @property
    def unseen(self) -> frozenset[str]:
        """All columns of the drawing that the table lacks."""
        return frozenset({*self.latent, *self.dag.unmeasured})

    def hidden_causes(self) -> tuple[str, ...]:
        """Return a sentence for every hidden common cause that could bias the effect. Each report of the effect shows
        these sentences.
        """
        out = list(self.dag.unmeasured)
        out += [
            f"{name}, which is not in the table, is a cause of {_listed(children)}"
            for name in self.latent
            if len(children := self.dag.children(name)) > 1
        ]
        return tuple(out)

    @property
    def caveat(self) -> str:
        """Caveat that no table can resolve, shown with each effect."""
        named = self.hidden_causes()
        drawn = f" Hidden common causes in the drawing: {'; '.join(named)}." if named else ""
        return (
            f"An undrawn common cause of {self.treatment} and {self.outcome} would bias the effect, and no table can "
            f"reveal it.{drawn}"
        )

    def sentence_of(self, path: tuple[str, ...]) -> str:
        """Return a path with its arrows, such as ``a ← b → c``."""
        drawn = set(self.edges)
        out = path[0]
        for a, b in itertools.pairwise(path):
            out += (" → " if (a, b) in drawn else " ← ") + b
        return out


def _descendants(names: set[str], edges: Iterable[Arrow], avoid: frozenset[str]) -> set[str]:
    """Return ``names`` and all columns that their arrows reach without passing ``avoid``."""
    effects: dict[str, list[str]] = {}
    for cause, effect in edges:
        effects.setdefault(cause, []).append(effect)
    seen, queue = set(names), list(names)
    for name in queue:
        if name not in avoid:
            new = [e for e in effects.get(name, ()) if e not in seen]
            seen.update(new)
            queue += new
    return seen


def verdict(effect: Effect, chosen: Iterable[str]) -> Validity:
    """Check ``chosen`` and return its forbidden columns with the reason, or a path that it leaves open."""
    columns = tuple(dict.fromkeys(chosen))
    t, y = effect.treatment, effect.outcome
    if wrong := tuple(name for name in columns if name in effect.forbidden or name in effect.unseen):
        return Validity(False, " ".join(_why_not(effect, name) for name in wrong), forbidden=wrong)
    if separated(effect.back_door, [t], [y], columns):
        given = f"given {_listed(columns)}" if columns else "without adjustment"
        return Validity(
            True, f"{given[0].upper()}{given[1:]}, every path from {t} to {y} that is not part of the effect is closed."
        )
    path = open_paths(effect.back_door, [t], [y], columns, most=1).paths[0]
    after = f"given {_listed(columns)}" if columns else "without adjustment"
    opened = [n for a, n, b in zip(path, path[1:], path[2:], strict=False) if {(a, n), (b, n)} <= set(effect.edges)]
    blame = f"; adjusting opens it at {_listed(opened)}, where two arrows meet" if opened else ""
    return Validity(False, f"The path {effect.sentence_of(path)} stays open {after}{blame}.", path=path)


def checked(effect: Effect, chosen: Iterable[str]) -> tuple[str, ...]:
    """Return ``chosen`` if it is valid; raise :class:`GraphError` with the open path or the reason why a column is
    forbidden.
    """
    columns = tuple(dict.fromkeys(chosen))
    found = verdict(effect, columns)
    if not found.valid:
        raise GraphError(
            f"the effect of {effect.treatment} on {effect.outcome} cannot be identified this way: {found.sentence}",
            path=found.path,
            forbidden=found.forbidden,
        )
    return columns


def choices(effect: Effect, sizes: Mapping[str, int]) -> tuple[Choice, ...]:
    """Return the minimal valid sets among the columns of ``sizes``, fewest strata first; empty if there is none.

    Sets of at most ``MOST_COLUMNS`` columns are all returned, unless there are so many that the search stops after
    ``MOST_STEPS`` steps. If only larger sets are valid, the cheapest of them is returned.
    """
    allowed = set(sizes) - effect.forbidden - effect.unseen
    return minimal_separators(effect.back_door, effect.treatment, effect.outcome, allowed, sizes)


def minimal_separators(
    edges: Iterable[Arrow], one: str, other: str, allowed: set[str], sizes: Mapping[str, int]
) -> tuple[Choice, ...]:
    """Return the minimal sets of ``allowed`` columns that d-separate ``one`` and ``other``, fewest strata first.

    The search always extends the cheapest partial set. If that set leaves a path open in the moral graph, every
    separating superset contains a column of the path, so the search continues with each column of a shortest open path.
    """
    moral = _moral(edges, one, other)

    def cost(name: str) -> float:
        return math.log(max(sizes[name], 2)) if name in allowed else math.inf

    cheapest = cheapest_cut(moral, one, other, cost)
    if cheapest is None:
        return ()
    around: dict[str, set[str]] = {}
    for a, b in moral:
        around.setdefault(a, set()).add(b)
        around.setdefault(b, set()).add(a)
    found: dict[tuple[str, ...], Choice] = {}
    queue: list[tuple[int, tuple[str, ...]]] = [(1, ())]
    seen: set[tuple[str, ...]] = {()}
    for _ in range(MOST_STEPS):
        if not queue:
            break
        price, columns = heapq.heappop(queue)
        path = Separation((one,), (other,), columns).path(moral)
        if path is None:
            if _is_minimal(around, one, other, set(columns)):
                found[columns] = Choice(columns, math.prod(sizes[name] for name in columns))
        elif len(columns) < MOST_COLUMNS:
            for name in set(path[1:-1]) & allowed:
                longer = tuple(sorted((*columns, name)))
                if longer not in seen:
                    seen.add(longer)
                    heapq.heappush(queue, (price * max(sizes[name], 2), longer))
    if not found:
        found[cheapest] = Choice(cheapest, math.prod(sizes[name] for name in cheapest))
    return tuple(sorted(found.values(), key=lambda choice: choice.strata))


def _moral(edges: Iterable[Arrow], one: str, other: str) -> list[Arrow]:
    """Return the moral graph over the causes of the two. Separation in it by a set of their causes is d-separation.

    Lauritzen et al. (1990), Proposition 3.
    """
    arrows = list(edges)
    causes = _descendants({one, other}, [(e, c) for c, e in arrows], avoid=frozenset())
    parents: dict[str, list[str]] = {}
    for cause, effect in arrows:
        if effect in causes:
            parents.setdefault(effect, []).append(cause)
    pairs = {(c, e): None for c, e in arrows if e in causes}
    for names in parents.values():
        pairs |= dict.fromkeys(itertools.combinations(sorted(names), 2))
    return list(pairs)


def _is_minimal(around: Mapping[str, set[str]], one: str, other: str, columns: set[str]) -> bool:
    """Return whether each of ``columns`` touches both the part reached from ``one`` and the part reached from
    ``other``.
    """

    def reached(start: str) -> set[str]:
        seen, queue = {start}, [start]
        for name in queue:
            new = [n for n in around.get(name, ()) if n not in seen and n not in columns]
            seen.update(new)
            queue += new
        return seen

    near, far = reached(one), reached(other)
    return all(around[name] & near and around[name] & far for name in columns)


def refuse_fenced(effect: Effect, chosen: Iterable[str], separations: Iterable[Separation]) -> None:
    """Raise :class:`GraphError` if a separation forbids measuring a pair of columns that the effect needs."""
    t, y = effect.treatment, effect.outcome
    needed = [(t, y), *((name, other) for name in chosen for other in (t, y))]
    for separation in separations:
        for a, b in needed:
            if separation.forbids(a, b):
                raise GraphError(
                    f"the effect of {t} on {y} cannot be released: it requires measuring {a} and {b} together, which "
                    f"the fence between {_listed(separation.left)} and {_listed(separation.right)} forbids",
                    pair=(a, b),
                )


@dataclass(frozen=True)
class Way:
    """A path between treatment and outcome, with a sentence about it, and flags that state whether it is part of the
    effect and whether it is open.
    """

    path: tuple[str, ...]
    causal: bool
    open: bool
    sentence: str


def ways(effect: Effect, chosen: Iterable[str], most: int = 24) -> tuple[Way, ...]:
    """Return up to ``most`` shortest paths between treatment and outcome, and the columns at which they are closed."""
    given, edges = set(chosen), effect.edges
    drawn = set(edges)
    opening = _descendants(given, [(e, c) for c, e in edges], avoid=frozenset())
    out = []
    for path in _paths(edges, effect.treatment, effect.outcome, most):
        line = effect.sentence_of(path)
        stops = []
        for a, n, b in zip(path, path[1:], path[2:], strict=False):
            collides = {(a, n), (b, n)} <= drawn
            if collides and n not in opening:
                stops.append(f"closed at {n}, where two arrows meet")
            elif not collides and n in given:
                stops.append(f"closed by adjusting for {n}")
        causal = is_causal(path, edges)
        part = "part of the effect" if causal else "not part of the effect"
        out.append(Way(path, causal, not stops, f"{line}: {part}, {stops[0] if stops else 'open'}."))
    return tuple(out)


def _paths(edges: Iterable[Arrow], one: str, other: str, most: int) -> list[tuple[str, ...]]:
    around: dict[str, list[str]] = {}
    for a, b in edges:
        around.setdefault(a, []).append(b)
        around.setdefault(b, []).append(a)
    found: list[tuple[str, ...]] = []
    queue: list[tuple[str, ...]] = [(one,)]
    for path in queue:
        if len(found) == most or len(queue) > MOST_STEPS:
            break
        if path[-1] == other:
            found.append(path)
        else:
            queue += [(*path, n) for n in around.get(path[-1], ()) if n not in path]
    return found


def _why_not(effect: Effect, name: str) -> str:
    t, y = effect.treatment, effect.outcome
    reasons: list[tuple[bool, str]] = [
        (name in (t, y), f"{name} is the {'treatment' if name == t else 'outcome'} itself."),
        (name in effect.unseen, f"{name} is not a column of the table, so it cannot be adjusted for."),
        (
            name in effect.mediators,
            f"{name} lies on a causal path from {t} to {y}: adjusting for it removes part of the effect.",
        ),
    ]
    for true, reason in reasons:
        if true:
            return reason
    source = next((n for n in (*effect.mediators, y) if name in _descendants({n}, effect.edges, avoid=frozenset())), y)
    return f"{name} is an effect of {source}: adjusting for it distorts the effect of {t} on {y}."


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]
