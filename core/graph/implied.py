"""Implications of a drawing for a target and its roles, and their changes if arrows are removed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from espalier.core.graph.dag import Dag
from espalier.core.graph.paths import Path, is_open, open_paths, separated
from espalier.core.graph.roles import Roles

Arrow = tuple[str, str]


@dataclass(frozen=True)
class Implied:
    """Pa(Y) and Mb(Y) of the target Y (empty without a target), and the open paths.

    These are paths from protected columns to the outcome that are open given the admissible columns.

    ``complete`` is False if more paths are open than listed. ``separated`` is the drawing's own claim: False if a path
    is open, and True if none is. It is `None` if no column is protected or none is an outcome. It is also `None` if no
    path is open but some of these columns have no arrow, because a drawing makes no claim about columns that it does
    not name.
    """

    parents: tuple[str, ...] = ()
    blanket: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()
    complete: bool = True
    separated: bool | None = None


@dataclass(frozen=True)
class Change:
    """Differences between two drawings. An empty tuple means no difference."""

    parents_lost: tuple[str, ...] = ()
    parents_new: tuple[str, ...] = ()
    blanket_lost: tuple[str, ...] = ()
    blanket_new: tuple[str, ...] = ()
    paths_lost: tuple[Path, ...] = ()
    paths_new: tuple[Path, ...] = ()
    separated: bool | None = None
    """New value of :attr:`Implied.separated`, if it changed."""

    def __bool__(self) -> bool:
        return self != Change()


def implied(dag: Dag, target: str | None, roles: Roles) -> Implied:
    """Return the implications of ``dag``."""
    sets = (dag.parents(target), dag.blanket(target)) if target is not None else ((), ())
    if not roles.protected or not roles.outcome:
        return Implied(*sets)
    found = open_paths(dag.links, roles.protected, roles.outcome, roles.admissible)
    return Implied(*sets, found.paths, found.complete, _claim(dag, roles))


def _claim(dag: Dag, roles: Roles) -> bool | None:
    """Return whether the drawing separates protected columns from the outcome; `None` if it makes no claim."""
    if not separated(dag.links, roles.protected, roles.outcome, roles.admissible):
        return False
    named = {name for link in dag.links for name in link}
    return True if named.issuperset((*roles.protected, *roles.outcome)) else None


def change(before: Implied, after: Implied) -> Change:
    """Return the changes from ``before`` to ``after``."""
    return Change(
        _minus(before.parents, after.parents),
        _minus(after.parents, before.parents),
        _minus(before.blanket, after.blanket),
        _minus(after.blanket, before.blanket),
        tuple(p for p in before.paths if p not in after.paths) if after.complete else (),
        tuple(p for p in after.paths if p not in before.paths) if before.complete else (),
        after.separated if after.separated != before.separated else None,
    )


def without(dag: Dag, arrows: Iterable[Arrow], target: str | None, roles: Roles, now: Implied) -> Change:
    """Return the changes that erasing ``arrows`` would cause; ``now`` contains what ``dag`` implies.

    Erasing cannot open a path, because paths lose arrows and colliders lose effects. The remaining paths are therefore
    among those of ``now``.
    """
    arrows = set(arrows)
    family = set() if target is None else {target, *dag.children(target)}
    if now.separated is not False and not any(effect in family for _, effect in arrows):
        return Change()  # Pa(Y) and Mb(Y) depend only on arrows into the target and its effects
    less = dag.without(arrows)
    sets = (less.parents(target), less.blanket(target)) if target is not None else ((), ())
    if now.separated is None:
        return change(now, Implied(*sets))
    left = tuple(p for p in now.paths if is_open(p, less.links, roles.admissible))
    return change(now, Implied(*sets, left, True, _claim(less, roles)))


def _minus(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(n for n in a if n not in b)
