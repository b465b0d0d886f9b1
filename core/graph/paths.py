"""Links between two columns in a drawing: open paths, confounders, mediators and colliders. A path is *open* given a
set of columns if the set does not block it: the set contains no column in the middle of a chain or a fork on the path,
and for every collider on the path (a column where two arrows meet), it contains the collider or a descendant of the
collider (Pearl, Causality, 2nd ed., Definition 1.2.3). Two columns are d-separated if no path between them is open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

Edges = Sequence[tuple[str, str]]
Path = tuple[str, ...]
State = tuple[str, bool]
"""A column, and a flag that is true if the path reached it in the direction of an arrow."""

MOST_STEPS = 6000


@dataclass(frozen=True)
class OpenPaths:
    """Shortest open paths between two sets of columns. ``complete`` is False if more exist than are listed."""

    paths: tuple[Path, ...]
    complete: bool


class _Walker:
    """A walk along open paths that avoids ``ends`` between the first and the last column."""

    def __init__(self, edges: Edges, left: Iterable[str], right: Iterable[str], given: Iterable[str]) -> None:
        self.causes: dict[str, list[str]] = {}
        self.effects: dict[str, list[str]] = {}
        for cause, effect in edges:
            self.causes.setdefault(effect, []).append(cause)
            self.effects.setdefault(cause, []).append(effect)
        self.given = set(given)
        self.left = [n for n in dict.fromkeys(left) if n not in self.given]
        self.right = set(right) - self.given
        self.opening = _reach(self.given, self.causes)
        self.ends = {*self.left, *self.right}

    def start(self, name: str) -> Iterator[State]:
        yield from ((n, True) for n in self.effects.get(name, ()))
        yield from ((n, False) for n in self.causes.get(name, ()))

    def after(self, state: State) -> Iterator[State]:
        name, along = state
        if name in self.ends:
            return
        if name not in self.given:
            yield from ((n, True) for n in self.effects.get(name, ()))
        if (along and name in self.opening) or (not along and name not in self.given):
            yield from ((n, False) for n in self.causes.get(name, ()))

    def useful(self) -> set[State]:
        """Return the states from which a column of ``right`` can be reached."""
        before: dict[State, list[State]] = {}
        seen: set[State] = set()
        queue = [s for name in self.left for s in self.start(name)]
        for state in queue:
            if state in seen:
                continue
            seen.add(state)
            for other in self.after(state):
                before.setdefault(other, []).append(state)
                if other not in seen:
                    queue.append(other)
        good = [s for s in seen if s[0] in self.right]
        found = set(good)
        for state in good:
            for other in before.get(state, ()):
                if other not in found:
                    found.add(other)
                    good.append(other)
        return found


def separated(edges: Edges, left: Iterable[str], right: Iterable[str], given: Iterable[str]) -> bool:
    """Return whether ``left`` and ``right`` are d-separated given ``given``: no path between them is open."""
    walker = _Walker(edges, left, right, given)
    return not set(walker.left) & walker.right and not walker.useful()


def open_paths(
    edges: Edges, left: Iterable[str], right: Iterable[str], given: Iterable[str], most: int = 24
) -> OpenPaths:
    """Return up to ``most`` open paths from ``left`` to ``right`` given ``given``, shortest first."""
    walker = _Walker(edges, left, right, given)
    useful = walker.useful()
    found: list[Path] = []
    queue: deque[tuple[Path, State]] = deque(
        ((name, state[0]), state) for name in walker.left for state in walker.start(name) if state in useful
    )
    steps = 0
    while queue:
        path, state = queue.popleft()
        steps += 1
        if len(found) == most or steps > MOST_STEPS:
            return OpenPaths(tuple(found), complete=False)
        if state[0] in walker.right:
            found.append(path)
            continue
        for other in walker.after(state):
            if other in useful and other[0] not in path:
                queue.append(((*path, other[0]), other))
    return OpenPaths(tuple(found), complete=True)


def is_open(path: Path, edges: Edges, given: Iterable[str]) -> bool:
    """Return whether this path exists and is open, given ``given``."""
    walker = _Walker(edges, path[:1], path[-1:], given)
    states = [s for s in walker.start(path[0]) if s[0] == path[1]]
    for name in path[2:]:
        states = [other for s in states for other in walker.after(s) if other[0] == name]
    return bool(states) and not {path[0], path[-1]} & walker.given


def arrows_of(path: Path, edges: Edges) -> tuple[tuple[str, str], ...]:
    """Return the arrows along a path, each as (cause, effect)."""
    drawn = set(edges)
    return tuple((a, b) if (a, b) in drawn else (b, a) for a, b in pairwise(path))


def is_causal(path: Path, edges: Edges) -> bool:
    """Return whether every arrow of the path points forward, from its first column to its last."""
    return all(pair in set(edges) for pair in pairwise(path))


@dataclass(frozen=True)
class Between:
    """Links of two columns: common causes, columns on a causal path between them, common effects."""

    confounders: tuple[str, ...]
    mediators: tuple[str, ...]
    colliders: tuple[str, ...]


def between(edges: Edges, one: str, other: str) -> Between:
    """Return the columns between ``one`` and ``other``.

    A confounder causes both, each by a path that avoids the other. A mediator is on a causal path from one to the
    other. A collider is an effect of both, each by a path that avoids the other.
    """
    causes: dict[str, list[str]] = {}
    effects: dict[str, list[str]] = {}
    for cause, effect in edges:
        causes.setdefault(effect, []).append(cause)
        effects.setdefault(cause, []).append(effect)

    def up(name: str, avoid: str) -> set[str]:
        return _reach({name}, causes, avoid) - {name}

    def down(name: str, avoid: str) -> set[str]:
        return _reach({name}, effects, avoid) - {name}

    middle = (_reach({one}, effects) & _reach({other}, causes)) | (_reach({other}, effects) & _reach({one}, causes))
    return Between(
        tuple(sorted(up(one, other) & up(other, one))),
        tuple(sorted(middle - {one, other})),
        tuple(sorted(down(one, other) & down(other, one))),
    )


def _reach(names: set[str], near: dict[str, list[str]], avoid: str | None = None) -> set[str]:
    """Return ``names`` and everything reachable from them without passing ``avoid``."""
    seen = set(names)
    queue = list(names)
    for name in queue:
        for other in near.get(name, ()):
            if other != avoid and other not in seen:
                seen.add(other)
                queue.append(other)
    return seen


def neighbourhood(edges: Iterable[tuple[str, str]], column: str, steps: int) -> list[str]:
    """Return ``column`` and the columns at most ``steps`` arrows away, the nearest first."""
    near: dict[str, list[str]] = {}
    for a, b in edges:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    away = {column: 0}
    queue = [column]
    for n in queue:
        for m in near.get(n, ()):
            if m not in away and away[n] < steps:
                away[m] = away[n] + 1
                queue.append(m)
    return queue
