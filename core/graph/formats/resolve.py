"""Conversion of a mixed graph to a :class:`~espalier.core.graph.dag.Dag`, with questions to the user and the effect of
each answer. Nothing is decided silently. Anything that a DAG cannot represent, and any name that is not a column,
becomes a question with its line, its choices and, if there is a natural one, a default. Remarks report the changes
made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import Literal

from espalier.core.errors import GraphError
from espalier.core.graph.annotations import MOST, Annotation
from espalier.core.graph.dag import Dag, find_cycle
from espalier.core.graph.formats.column_names import FreeColumns
from espalier.core.graph.formats.mixed import Edge, MixedGraph, Node, shown
from espalier.core.graph.roles import Roles

Kind = Literal["matrix", "latent", "column", "undirected", "partly directed", "bidirected", "cycle", "role"]
MARGINALISE, DROP, SHARE = "marginalise", "drop", "share"
LIMIT = 100_000
"""Maximum number of arrows, or of pairs with a shared cause, that marginalising one latent node may add."""
_GUESS = {"outcome": "outcome", "protected": "protected", "admissible": "admissible", "inadmissible": "inadmissible"}


@dataclass(frozen=True)
class Question:
    """A point that the file leaves open. ``choices`` maps each possible answer to its text; ``default`` is None if the
    user must choose.

    A name is matched automatically only to a column that differs in case, spaces or punctuation. Other similar columns
    come first among the choices (``near``), and nothing is left out without a question.
    """

    key: str
    kind: Kind
    line: int
    text: str
    choices: Mapping[str, str]
    default: str | None = None
    near: tuple[str, ...] = ()


@dataclass(frozen=True)
class Resolved:
    """Result of answering the questions. ``dag`` is None while a question is open or answers conflict (``clashes``)."""

    questions: tuple[Question, ...]
    open: tuple[Question, ...]
    clashes: tuple[str, ...] = ()
    dag: Dag | None = None
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


class _Asking:
    """Questions asked so far, with the valid answer to each."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers = answers
        self.questions: list[Question] = []
        self.open: list[Question] = []
        self.remarks: list[str] = []

    def ask(self, question: Question) -> str | None:
        """Return the given answer if it is one of the choices, otherwise the default."""
        self.questions.append(question)
        answer = self.answers.get(question.key, question.default)
        if answer not in question.choices:
            answer = question.default
        if answer is None:
            self.open.append(question)
        return answer


def resolve(
    graph: MixedGraph, columns: Iterable[str] | None = None, answers: Mapping[str, str] | None = None
) -> Resolved:
    """Ask all questions that ``graph`` leaves open, and make the DAG if all of them are answered.

    ``columns`` are the columns of the table; with `None`, every node may stay. ``answers`` maps the keys of questions
    to choices. Questions about cycles are asked only once the direction of every edge is known. Raises
    :class:`GraphError` if marginalising would add more than :data:`LIMIT` arrows.
    """
    asking = _Asking(answers or {})
    known = None if columns is None else tuple(columns)
    edges = list(graph.edges)
    if graph.is_matrix and _matrix(graph, asking) == "column":
        edges = [replace(e, left=e.right, right=e.left) if e.mark == "->" else e for e in edges]
    names, hidden = _fates(graph, known, asking)
    here = {*names, *hidden}
    kept = [e for e in edges if e.left in here and e.right in here]
    if gone := len(edges) - len(kept):
        asking.remarks.append(f"links removed together with their names: {gone}")
    arrows, confounded = _directions(kept, asking)
    if not asking.open:
        arrows = _without_cycles(arrows, asking)
    roles = _roles(graph, names, asking)
    clashes = _clashes(names)
    if asking.open or clashes:
        return Resolved(tuple(asking.questions), tuple(asking.open), clashes)
    pairs, shared = _marginalised([(e.left, e.right) for e in arrows], confounded, hidden, asking)
    nodes, drawn = [n for n in graph.nodes if n.name in names], set(pairs)
    dag = Dag(
        tuple((names[a], names[b]) for a, b in pairs),
        positions={names[n.name]: n.position for n in nodes if n.position is not None},
        annotations={
            **{(names[n.name],): n.said for n in nodes if n.said},
            **{(names[e.left], names[e.right]): e.said for e in arrows if e.said and (e.left, e.right) in drawn},
        },
        hidden=tuple((names[a], names[b]) for a, b in shared),
    )
    unsaid = [shown(n.name) for n in graph.nodes if n.said and n.name not in names]
    unsaid += [str(e) for e in edges if e.said and not {(e.left, e.right), (e.right, e.left)} & drawn]
    asking.remarks += [f"the notes on {thing} are removed with it" for thing in unsaid]
    return Resolved(tuple(asking.questions), (), (), dag, roles, tuple(asking.remarks))


def taken_over(have: Dag, new: Dag, keep: bool) -> Dag:
    """Return ``have`` with its arrows replaced by those of ``new``, or (``keep``) with the arrows of ``new`` added.

    Notes in ``have`` are kept, even those of removed arrows. If both drawings have notes, they are joined. Everything
    else comes from ``have``. Raises :class:`GraphError` for a cycle, naming it.
    """
    annotations = dict(have.annotations)
    for of, said in new.annotations.items():
        was = have.annotation(*of)
        note = was.note if said.note in was.note else "; ".join(filter(None, (was.note, said.note)))
        annotations[of] = Annotation(
            note[:MOST], was.belief or said.belief, was.source or said.source, was.may_break or said.may_break
        )
    edges = tuple(dict.fromkeys((*have.edges, *new.edges))) if keep else new.edges
    positions = {**new.positions, **have.positions} if keep else new.positions
    hidden = new.hidden
    if keep:
        known = {frozenset(pair) for pair in have.hidden}
        hidden = (*have.hidden, *(pair for pair in new.hidden if frozenset(pair) not in known))
    return replace(have, edges=edges, positions=positions, annotations=annotations, hidden=hidden)


def _matrix(graph: MixedGraph, asking: _Asking) -> str | None:
    first = min((e.line for e in graph.edges), default=1)
    question = Question(
        "matrix",
        "matrix",
        first,
        "an adjacency matrix does not state the direction of its arrows",
        {
            "row": "from the row to the column, as in bnlearn, networkx and dagitty",
            "column": "from the column to the row, as in LiNGAM and pcalg",
        },
        "row",
    )
    return asking.ask(question)


def _fates(graph: MixedGraph, columns: tuple[str, ...] | None, asking: _Asking) -> tuple[dict[str, str], list[str]]:
    """Return the column for each node, and the nodes to marginalise. All other nodes are left out."""
    names: dict[str, str] = {}
    hidden: list[str] = []
    free = FreeColumns(columns or (), {n.name for n in graph.nodes if not n.latent})
    every = {f"column:{c}": f"it is the column {shown(c)}" for c in free.columns} | _HIDE
    for node in graph.nodes:
        inside = columns is None or node.name in free.all
        if inside and not node.latent:
            names[node.name] = node.name
            continue
        answer = asking.ask(_latent(node, inside) if node.latent else _unknown(node, free, every))
        if answer is None:
            names[node.name] = node.name
        elif answer == MARGINALISE:
            hidden.append(node.name)
        elif answer == DROP:
            asking.remarks.append(f"{shown(node.name)} is left out, with its links")
        else:
            column = names[node.name] = answer.removeprefix("column:")
            if column != node.name:
                asking.remarks.append(f"{shown(node.name)} is the column {shown(column)}")
    return names, hidden


_HIDE = {
    MARGINALISE: "not in my table: connect its causes to its effects",
    DROP: "leave it out, with its links",
}


def _latent(node: Node, may_stay: bool) -> Question:
    choices = dict(_HIDE)
    if may_stay:
        choices[f"column:{node.name}"] = "keep it: it is still a column"
    text = f"{shown(node.name)} is latent: it was not measured"
    return Question(f"node:{node.name}", "latent", node.line, text, choices, MARGINALISE)


def _unknown(node: Node, free: FreeColumns, every: dict[str, str]) -> Question:
    """Ask which of the ``free`` columns a node is; ``every`` contains all choices, which all such questions share."""
    names = [n for n in (node.name, node.label) if n]
    same = free.same(*names)
    like = [same] if same else free.like(*names)
    first = {f"column:{c}": every[f"column:{c}"] for c in like}
    label = f" (labelled {shown(node.label)})" if node.label and node.label != node.name else ""
    default = f"column:{same}" if same else None
    text = f"{shown(node.name)}{label} is not a column of the table"
    choices, near = {**first, **every} if first else every, () if same else tuple(like)
    return Question(f"node:{node.name}", "column", node.line, text, choices, default, near)


def _directions(edges: list[Edge], asking: _Asking) -> tuple[list[Edge], list[tuple[str, str]]]:
    """Return the arrows, and the pairs with an unmeasured common cause."""
    arrows: dict[tuple[str, str], Edge] = {}
    confounded: list[tuple[str, str]] = []
    for edge in edges:
        answer: str | None = "->"
        if edge.mark != "->":
            answer = asking.ask(_direction(edge))
        ends = (edge.right, edge.left) if answer == "<-" else (edge.left, edge.right)
        if answer in ("->", "<-"):
            if ends in arrows:
                asking.remarks.append(f"{edge} (line {edge.line}) is the same arrow as on line {arrows[ends].line}")
            arrows.setdefault(ends, Edge(*ends, "->", edge.line, edge.said))
        elif answer == SHARE:
            confounded.append(ends)
        elif answer == DROP:
            asking.remarks.append(f"{edge} (line {edge.line}) is left out")
        if answer in ("->", "<-") and edge.mark != "->":
            asking.remarks.append(f"{edge} (line {edge.line}) is read as {shown(ends[0])} → {shown(ends[1])}")
    return list(arrows.values()), confounded


def _direction(edge: Edge) -> Question:
    forth, back = f"{shown(edge.left)} → {shown(edge.right)}", f"{shown(edge.right)} → {shown(edge.left)}"
    key = f"edge:{edge.left}\n{edge.mark}\n{edge.right}"
    share = {SHARE: f"{shown(edge.left)} and {shown(edge.right)} share an unmeasured cause"}
    out = {DROP: "leave it out"}
    if edge.mark == "<->":
        text = f"{edge} means that the two share an unmeasured cause"
        return Question(key, "bidirected", edge.line, text, {**share, "->": forth, "<-": back, **out}, SHARE)
    if edge.mark == "o->":
        text = f"{edge} is an arrow or a shared unmeasured cause"
        return Question(key, "partly directed", edge.line, text, {"->": forth, **share, **out})
    if edge.mark == "o-o":
        text = f"{edge} has no direction, and may be a shared unmeasured cause"
        return Question(key, "undirected", edge.line, text, {"->": forth, "<-": back, **share, **out})
    return Question(key, "undirected", edge.line, f"{edge} has no direction", {"->": forth, "<-": back, **out})


def _without_cycles(arrows: list[Edge], asking: _Asking) -> list[Edge]:
    """Return the arrows without those that the user removed to break a cycle; stop at the first cycle that is still
    unresolved.
    """
    by_ends = {(e.left, e.right): e for e in arrows}
    loops = [
        [end, end] for end, other in reversed(by_ends) if end == other
    ]  # searching again after each removal would take minutes
    while path := loops.pop() if loops else find_cycle(by_ends):
        ring = [by_ends[ends] for ends in pairwise(path)]
        choices = {f"{e.left}\n{e.right}": f"leave out {e} (line {e.line})" for e in ring}
        text = "the arrows form a cycle: " + " → ".join(shown(name) for name in path)
        if len(path) == 2:
            text = f"{shown(path[0])} cannot be its own cause"
        last = max(ring, key=lambda e: e.line)
        default = next(iter(choices)) if len(choices) == 1 else None
        answer = asking.ask(Question("cycle:" + "\n".join(sorted(choices)), "cycle", last.line, text, choices, default))
        if answer is None:
            break
        gone = next(e for e in ring if f"{e.left}\n{e.right}" == answer)
        del by_ends[gone.left, gone.right]
        asking.remarks.append(f"{gone} (line {gone.line}) is left out because it closes a cycle")
    return list(by_ends.values())


def _roles(graph: MixedGraph, called: Mapping[str, str], asking: _Asking) -> dict[str, tuple[str, ...]]:
    """Return the columns of each assigned role."""
    out: dict[str, tuple[str, ...]] = {}
    given: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for role in node.roles:
            if node.name in called:
                given.setdefault(role, []).append(node)
    for role, nodes in given.items():
        names = ", ".join(shown(n.name) for n in nodes[:8]) + (" …" if len(nodes) > 8 else "")
        choices = {known: f"make it {known}" for known, _ in Roles().items()} | {"none": "no role"}
        text = f"the file gives {names} the role {role}"
        answer = asking.ask(Question(f"role:{role}", "role", nodes[0].line, text, choices, _GUESS.get(role, "none")))
        if answer and answer != "none":
            columns = (called[n.name] for n in nodes)
            taken = {c for cols in out.values() for c in cols}
            out[answer] = (*out.get(answer, ()), *(c for c in columns if c not in taken))
        else:
            asking.remarks.append(f"{names}: {role} in the file; no role is assigned here")
    return out


def _clashes(called: Mapping[str, str]) -> tuple[str, ...]:
    taken: dict[str, list[str]] = {}
    for name, column in called.items():
        taken.setdefault(column, []).append(name)
    return tuple(
        f"{' and '.join(map(shown, names))} cannot all be the column {shown(column)}; choose different columns"
        for column, names in taken.items()
        if len(names) > 1
    )


def _marginalised(
    pairs: list[tuple[str, str]], confounded: list[tuple[str, str]], hidden: list[str], asking: _Asking
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the latent projection: arrows through hidden nodes, and pairs that share an unmeasured cause.

    Hidden nodes are removed one by one (Verma 1993, "Graphical aspects of causal models"): the causes of a hidden node
    become causes of its effects, its effects are confounded, and all nodes confounded with it are confounded with its
    effects. All pairs in a confounded group are confounded.
    """
    causes: dict[str, dict[str, None]] = {}
    effects: dict[str, dict[str, None]] = {}
    for cause, effect in pairs:
        effects.setdefault(cause, {})[effect] = None
        causes.setdefault(effect, {})[cause] = None
    groups = [set(pair) for pair in confounded]
    for name in hidden:
        before, after = causes.pop(name, {}), effects.pop(name, {})
        if len(before) * len(after) > LIMIT:
            added = f"{len(before) * len(after):,} arrows"
            raise GraphError(f"marginalising {shown(name)} would add {added}; leave it out instead", node=name)
        for cause in before:
            effects[cause].pop(name)
            effects[cause] |= after
        for effect in after:
            causes[effect].pop(name)
            causes[effect] |= before
        groups = [(group - {name}) | set(after) if name in group else group for group in groups]
        groups.append(set(after))
        asking.remarks.append(_hidden_remark(name, list(before), list(after)))
    left = dict.fromkeys((cause, effect) for cause, found in effects.items() for effect in found)
    in_order = dict.fromkeys([*(pair for pair in pairs if pair in left), *left])
    if sum(len(group) ** 2 for group in groups) > 2 * LIMIT:
        raise GraphError(f"more than {LIMIT:,} pairs would share an unmeasured cause; leave some latent names out")
    order = {name: i for i, name in enumerate(dict.fromkeys(n for pair in (*pairs, *confounded) for n in pair))}
    ranked = (sorted(group - set(hidden), key=order.__getitem__) for group in groups)
    return list(in_order), list(dict.fromkeys(pair for group in ranked for pair in combinations(group, 2)))


def _hidden_remark(name: str, before: list[str], after: list[str]) -> str:
    text = f"{shown(name)} is marginalised"
    if before and after:
        text += f": {_list(before)} → {_list(after)}"
    return text + (f"; {_list(after)} share an unmeasured cause" if len(after) > 1 else "")


def _list(names: list[str]) -> str:
    return ", ".join(map(shown, names[:6])) + (" …" if len(names) > 6 else "")
