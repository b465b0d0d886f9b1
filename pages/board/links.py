"""Links of the drawing other than arrows: unmeasured causes, separations, causes that act together."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from typing import Any

from espalier.core.errors import EspalierError, GraphError
from espalier.core.graph.separations import Separation
from espalier.core.methods import frame_of, may_be_fenced
from espalier.pages.board.sent import MOST_SELECTED, arrow_of, column_of
from espalier.pages.session.session import Session

MOST_APART = 40
"""Maximum number of dotted lines drawn."""


def share(state: Session, action: Mapping[str, Any]) -> str:
    one, other = arrow_of(state, action.get("pair"))
    state.editor.redraw(state.project.dag.sharing(one, other))
    return f"{one} and {other} share an unmeasured cause."


def separate(state: Session, action: Mapping[str, Any]) -> str:
    """Separate the first two columns given all other columns."""
    project, columns = state.project, action.get("columns")
    if not isinstance(columns, list) or len(columns) < 2:
        raise GraphError("select the two boxes to keep apart")
    one, other, *gate = [column_of(state, c) for c in columns[:MOST_SELECTED]]
    new = Separation((one,), (other,), project.schema.clique(gate))
    if any((set(s.left + s.right), s.given) == ({one, other}, new.given) for s in project.separations):
        raise GraphError(f"{one} and {other} are already kept apart in this way")
    state.editor.change_separations([*project.separations, new])
    kept = (
        ""
        if may_be_fenced(project.plan)
        else " The plan's method does not keep this separation: choose another method."
    )
    how = f"linked only through {', '.join(gate)}" if gate else "not linked at all"
    return f"{one} and {other} will be {how} in the released table.{kept}"


def together(state: Session, action: Mapping[str, Any]) -> str:
    """Link causes that act together. Their effect is the selected column that all of them cause, or else their only
    common effect.
    """
    dag, columns = state.project.dag, action.get("columns")
    if not isinstance(columns, list) or len(columns) < 2:
        raise GraphError("select the causes that act together")
    names = tuple(dict.fromkeys(column_of(state, c) for c in columns[:MOST_SELECTED]))
    effect = next((n for n in names if len(names) > 2 and {*names} - {n} <= {*dag.parents(n)}), None)
    if effect is None:
        shared = [n for n in state.project.schema.names if set(names) <= {*dag.parents(n)}]
        if not shared:
            raise GraphError(f"{' and '.join(names)} have no common effect: draw an arrow from each to that column")
        if len(shared) > 1:
            raise GraphError(
                f"{' and '.join(names)} have several common effects ({', '.join(shared[:6])}). Also select one of them"
            )
        effect = shared[0]
    causes = state.project.schema.clique(n for n in names if n != effect)
    state.editor.redraw(dag.interacting(causes, effect))
    return f"{' and '.join(causes)} act together on {effect}."


def unlink(state: Session, action: Mapping[str, Any]) -> str:
    """Erase a link that is not an arrow. The action lists the link's ends, followed by its kind."""
    project, link = state.project, action.get("link")
    if not isinstance(link, list) or len(link) < 3:
        raise GraphError("the drawing sent no link")
    *ends, kind = link
    if kind == "together":
        *causes, effect = (column_of(state, n) for n in ends)
        state.editor.redraw(project.dag.interacting(causes, effect, False))
        return f"{' and '.join(causes)} no longer act together on {effect}. Undo restores this."
    if kind == "bundle":
        raise GraphError("open the group, then erase one of its arrows")
    one, other = arrow_of(state, ends)
    if kind == "share":
        state.editor.redraw(project.dag.sharing(one, other, False))
        return f"{one} ↔ {other} is erased. Undo restores it."
    kept = [s for s in project.separations if not s.forbids(one, other)]
    if len(kept) == len(project.separations):
        raise GraphError(
            f"{one} and {other} are kept apart by roles or method: change a role, or the method on the Plan page"
        )
    state.editor.change_separations(kept)
    return f"{one} and {other} are no longer kept apart by your separation."


def apart(state: Session, near: Collection[str]) -> list[tuple[str, str, Separation]]:
    """Return the pairs that the user's separations keep apart, and those that the plan separates from ``near``."""
    project = state.project
    try:
        framed = frame_of(project).separations if near else ()
    except EspalierError:
        framed = ()
    found: dict[frozenset[str], tuple[str, str, Separation]] = {}
    for s in (*project.separations, *framed):
        for a, b in itertools.product(s.left, s.right):
            if s in project.separations or a in near or b in near:
                found.setdefault(frozenset((a, b)), (a, b, s))
    return list(found.values())[:MOST_APART]
