"""Implications of a drawing as sentences and icons: direct causes, neighbourhood, fence, open paths."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import streamlit as st

from espalier.core.blurring.registry import is_blurring
from espalier.core.graph.dag import Dag
from espalier.core.graph.implied import Change, Implied, change, implied
from espalier.core.graph.paths import Path, is_causal
from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Separation
from espalier.core.methods import is_fenced, method_of
from espalier.core.project.file import Project
from espalier.pages.common.fields import field, taken
from espalier.pages.common.text import name, names, plain
from espalier.pages.glossary.terms import term
from espalier.pages.session.session import Session

PARENT, BLANKET, BEHIND, GATE = "◆", "◇", "▮", "∩"
"""Icons on the drawing, explained in its legend."""


def tags(column: str, project: Project, now: Implied, marks: Iterable[str]) -> list[str]:
    """Return the marks of one column as text."""
    out, roles = [], project.roles
    if "fence" in marks and is_fenced(project.plan) and roles.protected and roles.outcome:
        role = roles.of(column)
        far = role == "protected" or (role == "inadmissible" and project.plan.strict)
        out += [BEHIND] * far + [GATE] * (role == "admissible")
    if "parents" in marks and column in now.parents:
        out.append(PARENT)
    elif "blanket" in marks and column in now.blanket:
        out.append(BLANKET)
    return [" ".join(out)] if out else []


def told(project: Project, now: Implied) -> list[dict[str, Any]]:
    """Return what the drawing implies, in short sentences; ``bad`` marks a warning."""
    target, roles, dag = project.plan.target, project.roles, project.dag
    out: list[dict[str, Any]] = []

    def tell(text: str, bad: bool = False) -> None:
        out.append({"text": text, "bad": bad})

    if target is None:
        tell("Give one column the role of outcome to mark its direct causes.")
    else:
        tell(f"{len(now.parents)} direct cause{'s' * (len(now.parents) != 1)} of {target} (◆).")
        if project.linked and (before := [a for a, b in project.linked.arrows if b == target]):
            tell(f"Causes of {target} at the previous visit: {', '.join(before)}.")
        for cause, effect in dag.confounded:
            if effect == target:
                tell(
                    f"{cause} is drawn as a direct cause of {effect}, and these two columns share an unmeasured cause. "
                    "Part of their link is not causal and may not hold elsewhere.",
                    True,
                )
    others = [f"{a} → {b}" for a, b in dag.confounded if b != target]
    if others:
        tell(f"Arrows whose ends share an unmeasured cause: {', '.join(others[:5])}.", True)
    if now.separated:
        tell(f"{', '.join(roles.protected)} and {', '.join(roles.outcome)} are separated by the drawing itself.")
    elif now.separated is False:
        past = avoiding(now, roles)
        many, verb = f"{len(past)} open path{'s' * (len(past) != 1)}", "avoids" if len(past) == 1 else "avoid"
        tell(
            f"{many} from {', '.join(roles.protected)} to {', '.join(roles.outcome)} {verb} the admissible columns "
            "(red in the drawing).",
            bool(past),
        )
        if past:
            tell(
                "The plan's fence removes these links from the released table."
                if is_fenced(project.plan)
                else "The plan has no fence, so these links may appear in the released table."
            )
    return out


def apart(one: str, other: str, separation: Separation, own: bool) -> str:
    """Return why two columns are separated, and how to remove the separation."""
    through = f"linked only through {', '.join(separation.given)}" if separation.given else "not linked at all"
    why = f" Why: {separation.why}." if separation.why else ""
    lift = (
        "To remove this separation, press Delete."
        if own
        else "This separation comes from the roles and the plan's method."
    )
    return f"{one} and {other} will be {through} in the released table.{why} {lift}"


def avoiding(found: Implied, roles: Roles) -> list[Path]:
    """Return the open paths that avoid the admissible columns. Only conditioning on these columns opens other paths."""
    return [p for p in found.paths if not set(p) & set(roles.admissible)]


def path_words(path: Path, edges: Iterable[tuple[str, str]]) -> str:
    """Return a path with its arrows: a → b ← c."""
    drawn = set(edges)
    return path[0] + "".join(f" {'→' if (a, b) in drawn else '←'} {b}" for a, b in pairwise(path))


def erasing(found: Change) -> str:
    """Return one or two sentences about the consequences of erasing an arrow."""
    parts = []
    if found.parents_lost:
        parts.append(f"{', '.join(found.parents_lost)} would no longer be a direct cause of the target")
    gone = [n for n in found.blanket_lost if n not in found.parents_lost]
    if gone:
        parts.append(f"{', '.join(gone)} would leave the Markov blanket")
    if found.separated:
        parts.append("no path from protected to outcome would remain open")
    elif found.paths_lost:
        few = len(found.paths_lost)
        parts.append(f"{few} open path{'s' * (few > 1)} from protected to outcome would close")
    return f"Without this arrow, {'; '.join(parts)}." if parts else "Without this arrow, the sets stay the same."


def now(state: Session) -> tuple[Dag, Implied]:
    """Return the drawing, with or without its contested arrows, and its implications."""
    project = state.project
    dag = project.dag.without(project.dag.contested) if state.drafts.board.without_contested else project.dag
    return dag, implied(dag, project.plan.target, project.roles)


def show(state: Session, dag: Dag, found: Implied) -> None:
    """Show the sets as text, and the fence that the drawing implies."""
    project = state.project
    target, roles, schema = project.plan.target, project.roles, project.schema
    if target is not None:
        parents, blanket = (names(some, 40, "none drawn", schema) for some in (found.parents, found.blanket))
        st.markdown(f"**Direct causes of {name(target, schema)}:** {parents}.")
        st.markdown(f"**Neighbourhood of {name(target, schema)}** ({term('Markov blanket')}): {blanket}.")
    if found.separated is not None:
        ends = f"{names(roles.protected, schema=schema)} and {names(roles.outcome, schema=schema)}"
        if found.separated:
            gate = f" given the admissible {names(roles.admissible, schema=schema)}" if roles.admissible else ""
            st.markdown(f"**Separation:** the drawing itself keeps {ends} apart{gate}.")
        else:
            _open(found, dag, project, ends)
    contested(state)
    if not is_blurring(project.plan):
        for sentence in method_of(project.plan).guidance.advice(project):
            st.info(plain(sentence))


def _open(found: Implied, dag: Dag, project: Project, ends: str) -> None:
    """Show the open paths that avoid the admissible columns, then the paths that conditioning on them opens."""
    roles = project.roles
    past = avoiding(found, roles)
    through = [p for p in found.paths if p not in past]
    more = "" if found.complete else " (only the shortest are listed)"
    if past:
        gate = f" that avoid the admissible {names(roles.admissible)}" if roles.admissible else ""
        st.markdown(f"**Open paths** between {ends}{gate}, red in the drawing{more}:")
        _listed(past, dag)
    if through:
        gate, begin = names(roles.admissible), "**Further open paths**" if past else "**Open paths**"
        st.markdown(
            f"{begin} between {ends}, opened by conditioning on {gate}{more}. Two causes of a column seem linked "
            "once its value is known:"
        )
        _listed(through, dag)


def _listed(paths: list[Path], dag: Dag) -> None:
    def bullets(some: list[Path]) -> str:
        kinds = {True: "", False: " (association, no causal path)"}
        return "\n".join(f"- {plain(path_words(p, dag.links))}{kinds[is_causal(p, dag.links)]}" for p in some)

    st.markdown(bullets(paths[:8]))
    if len(paths) > 8:
        with st.expander(f"{len(paths) - 8} more"):
            st.markdown(bullets(paths[8:]))


def contested(state: Session) -> None:
    """Show the switch that leaves contested arrows out of the sets, and how the sets change without these arrows."""
    project = state.project
    if not project.dag.contested:
        return
    box = field(state, "without_contested", state.drafts.board.without_contested)
    st.toggle(
        "Leave contested arrows out",
        box.default,
        key=box.key,
        wrap=True,
        on_change=_take_switch,
        args=(state,),
        help="The drawing keeps them as dashed lines; only the sets and marks are computed without them.",
    )
    whole = implied(project.dag, project.plan.target, project.roles)
    less_dag = project.dag.without(project.dag.contested)
    less = implied(less_dag, project.plan.target, project.roles)
    st.markdown(f"**Without contested arrows:** {difference(change(whole, less), project.dag)}")


def _take_switch(state: Session) -> None:
    state.drafts.board.without_contested = taken(state, "without_contested")


def difference(found: Change, dag: Dag) -> str:
    """Return a change as markdown, in one line."""
    parts = []
    for lost, one, many in (
        (found.parents_lost, "is no longer a direct cause", "are no longer direct causes"),
        (found.blanket_lost, "leaves the neighbourhood", "leave the neighbourhood"),
    ):
        if lost:
            parts.append(f"{names(lost)} {one if len(lost) == 1 else many}")
    if found.separated:
        parts.append("no open path from protected to outcome remains")
    elif found.paths_lost:
        shown = "; ".join(plain(path_words(p, dag.links)) for p in found.paths_lost[:4])
        closed = f"{len(found.paths_lost)} open paths close" if len(found.paths_lost) > 1 else "an open path closes"
        parts.append(f"{closed}: {shown}")
    return f"{', '.join(parts)}." if parts else "the sets and the open paths stay the same."
