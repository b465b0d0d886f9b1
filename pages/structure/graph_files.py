"""Graph files: import another tool's graph once its open questions are answered, and export the drawing."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.graph.formats import FORMATS, graph_of, not_held, read_graph, write_graph
from espalier.core.graph.formats.mixed import MixedGraph
from espalier.core.graph.formats.resolve import MARGINALISE, Question, Resolved, resolve, taken_over
from espalier.core.graph.roles import Roles
from espalier.core.project.file import Project
from espalier.core.project.linked import BEFORE, Pair, by_visit
from espalier.pages.board import drawing, slices
from espalier.pages.board.boxes import GAP, HIGH
from espalier.pages.common.shell import filename
from espalier.pages.common.text import plain
from espalier.pages.session.session import Session

MOST_BYTES = 2_000_000
"""Maximum size of a graph file. A file of this size takes about two seconds to read."""
MOST_QUESTIONS = 25
KINDS = {
    "column": "Names that are not columns of the table",
    "latent": "Columns that were not measured (latent)",
    "matrix": "Direction of a matrix",
    "undirected": "Links without a direction",
    "partly directed": "Links with one unknown end",
    "bidirected": "Shared unmeasured causes",
    "cycle": "Cycles",
    "role": "Roles",
}
READS = "dagitty, DOT, GML, GraphML, BIF, bnlearn, Tetrad, CSV (arrows or a matrix), JSON, or another project file"


def show(state: Session) -> None:
    """Show an expander with fields that import a graph and export the drawing."""
    with st.expander("Import or export a graph"):
        bring, take = st.tabs(["Import", "Export"], key=f"graph-files-{state.opened}")
        with bring:
            _bring(state)
        with take:
            _take(state)


def _bring(state: Session) -> None:
    left, right = st.columns(2, gap="medium")
    draft = state.drafts.graph_file
    with left:
        file = st.file_uploader(
            "A graph file",
            key=f"graph-file-{state.opened}-{draft.closed}",
            max_upload_size=2,
            help=f"{READS}. Anything unclear becomes a question; nothing changes until you import it.",
        )
    key = f"graph-text-{state.opened}"
    st.session_state[key] = draft.text
    with right:
        st.text_area(
            "Or paste its text",
            key=key,
            height=110,
            on_change=_pasted,
            args=(state, key),
            placeholder="dag { smoking -> tar; tar -> cancer }",
        )
    if file is not None and draft.file != file.file_id:
        draft.file = file.file_id
        _read(state, file.name, file.getvalue())
    if "graph" in state.trouble:
        st.error(plain(state.trouble["graph"]))
    if draft.graph is not None:
        _resolve(state, *draft.graph)
    elif draft.remarks is not None and draft.remarks[1] == state.editor.drawing:
        st.success("The graph is imported. Undo, above the drawing, restores the earlier graph.")
        _list(draft.remarks[0])


def _pasted(state: Session, key: str) -> None:
    state.drafts.graph_file.text = st.session_state[key]
    if st.session_state[key].strip():
        _read(state, "the pasted text", st.session_state[key])
    else:
        _away(state)


def _read(state: Session, title: str, data: str | bytes) -> None:
    """Read a graph once, not at every rerun. The last readable graph is kept."""
    _away(state)
    try:
        if len(data) > MOST_BYTES:
            raise EspalierError("graphs larger than 2 MB need the command line: espalier graph FILE")
        state.drafts.graph_file.graph = (title, read_graph(data, title))
    except EspalierError as error:
        state.trouble["graph"] = f"{title}: {error}"


def _away(state: Session) -> None:
    draft = state.drafts.graph_file
    draft.graph, draft.answers, draft.remarks = None, {}, None
    state.trouble.pop("graph", None)


def _resolve(state: Session, title: str, graph: MixedGraph) -> None:
    kind, columns = FORMATS[graph.format].title, _names(state.project)
    st.markdown(
        f"**{plain(title)}** · {kind} · {len(graph.nodes):,} names, {len(graph.edges):,} links · "
        f"{len({n.name for n in graph.nodes} & set(columns)):,} of the names are columns of the table"
    )
    _list([f"line {r.line}: {r.text}" for r in graph.remarks])
    try:
        resolved = resolve(graph, columns, state.drafts.graph_file.answers)
    except EspalierError as error:
        st.error(plain(error))
        return
    _questions(state, title, resolved)
    for clash in resolved.clashes:
        st.error(plain(clash))
    if resolved.open:
        st.caption(f"{len(resolved.open)} of {len(resolved.questions)} questions are still open.")
    empty = resolved.dag is None or not (resolved.dag.edges or resolved.roles)
    if resolved.dag is not None:
        _list(resolved.remarks)
        arrows, drawn = len(resolved.dag.edges), len(slices.arrows(state.project))
        st.markdown(
            f"It adds **{arrows} arrow{'s' * (arrows != 1)}**. Drawn now: {drawn}. Existing notes, beliefs and sources "
            "are kept." + " None of its names is a column of this table yet. Assign its names to columns above." * empty
        )
    with st.container(horizontal=True):
        for keep, label in ((False, "Replace the drawing with it"), (True, "Add it to the drawing")):
            st.button(
                label,
                type="secondary" if keep else "primary",
                disabled=empty,
                on_click=_take_over,
                args=(state, title, resolved, keep),
                help="Undo restores the earlier drawing.",
            )
        st.button("Close the file", on_click=_close, args=(state,))
    if "graph_taking" in state.trouble:
        st.error(plain(state.trouble["graph_taking"]))


def _names(project: Project) -> tuple[str, ...]:
    """Return the names that a graph file may use: columns and, for linked tables, columns of the previous visit."""
    steps = project.linked.step_columns(project.schema) if project.linked else ()
    return tuple(dict.fromkeys((*project.schema.names, *steps, *(name + BEFORE for name in steps))))


def _questions(state: Session, title: str, resolved: Resolved) -> None:
    """Show a field for each question, open questions first; many others may have a proposed answer."""
    open_ = {q.key for q in resolved.open}
    ranked = sorted(resolved.questions, key=lambda q: (list(KINDS).index(q.kind), q.line))
    if len(ranked) > MOST_QUESTIONS:
        ranked.sort(key=lambda q: q.key not in open_)
        key = f"graph-all-{state.opened}"
        st.toggle(
            f"Show all {len(ranked):,} questions",
            key=key,
            help="The other questions have a proposed answer, or appear when these are resolved.",
        )
        if not st.session_state[key]:
            ranked = ranked[:MOST_QUESTIONS]
    if directions := [q for q in resolved.open if "->" in q.choices]:
        st.button(
            f"Use the file's direction for {len(directions)} link{'s' * (len(directions) > 1)}",
            key=f"graph-listed-{state.opened}",
            on_click=_answer_all,
            args=(state, directions, "->"),
        )
    if unknown := [q for q in resolved.open if q.kind == "column" and not q.near]:
        st.button(
            f"Not in my table: {len(unknown)} name{'s' * (len(unknown) != 1)} (causes are connected to effects)",
            key=f"graph-absent-{state.opened}",
            on_click=_answer_all,
            args=(state, unknown, MARGINALISE),
        )
    heading = ""
    for question in ranked[:500]:
        if question.kind != heading:
            heading = question.kind
            st.markdown(f"**{KINDS[heading]}**")
        _field(state, title, question)


def _field(state: Session, title: str, question: Question) -> None:
    mark = hashlib.sha1(f"{title}\n{question.key}".encode()).hexdigest()[:12]
    key = f"graph-question-{state.opened}-{mark}"
    answer = state.drafts.graph_file.answers.get(question.key, question.default)
    st.session_state[key] = answer if answer in question.choices else question.default
    place, label = st.container(), f"Line {question.line}: {plain(question.text)}"
    if question.kind == "column":  # one row of the table: the name and its meaning
        said, place = st.columns((2, 3), vertical_alignment="center")
        said.markdown(label)
    place.selectbox(
        label,
        list(question.choices),
        index=None,
        key=key,
        format_func=question.choices.__getitem__,
        label_visibility="collapsed" if question.kind == "column" else "visible",
        placeholder=f"Near: {', '.join(question.near)}" if question.near else "Choose",
        on_change=_answer,
        args=(state, question.key, key),
    )


def _answer(state: Session, question: str, key: str) -> None:
    if (answer := st.session_state[key]) is None:
        state.drafts.graph_file.answers.pop(question, None)
    else:
        state.drafts.graph_file.answers[question] = answer


def _answer_all(state: Session, questions: list[Question], answer: str) -> None:
    state.drafts.graph_file.answers.update({q.key: answer for q in questions})


def _take_over(state: Session, title: str, resolved: Resolved, keep: bool) -> None:
    """Put the resolved graph into the project as a single step that can be undone."""
    project = state.project
    assert resolved.dag is not None
    state.trouble.pop("graph_taking", None)
    try:
        new = resolved.dag
        between: tuple[Pair, ...] = ()
        if project.linked is not None:
            within, ahead = by_visit(resolved.dag.edges)
            new = replace(resolved.dag, edges=tuple(within), positions={})
            between = tuple(dict.fromkeys((*(project.linked.arrows if keep else ()), *ahead)))
        dag = taken_over(project.dag, new, keep)
        if not keep:
            dag = replace(dag, positions=_on_the_board(dict(new.positions)))
        roles, target = _roles(project.roles, resolved.roles), project.plan.target
        if len(roles.outcome) == 1 and (target is None or target in project.roles.outcome):
            target = roles.outcome[0]
        state.editor.redraw(dag, roles, between, target=target)
    except EspalierError as error:
        state.trouble["graph_taking"] = f"{error} The drawing is unchanged."
        return
    if not keep:
        state.drafts.board.places = {}
        state.drafts.board.fits += 1
    _close(state)
    state.drafts.graph_file.remarks = (resolved.remarks, state.editor.drawing)
    drawing.say(state, f"{title} is imported: {len(resolved.dag.edges)} arrows. Undo restores the earlier graph.")


def _roles(have: Roles, given: Any) -> Roles:
    """Apply the file's roles. A column with a new role loses its earlier role; the file's outcome, if any, replaces the
    present outcome.
    """
    moved = {c for columns in given.values() for c in columns}
    kept = {role: tuple(c for c in columns if c not in moved) for role, columns in have.items()}
    if given.get("outcome"):
        kept["outcome"] = ()
    return Roles(**{role: (*columns, *given.get(role, ())) for role, columns in kept.items()})


def _on_the_board(places: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Return positions in pixels of the drawing, stretched if the boxes would otherwise overlap."""
    points = list(places.values())
    if len(points) < 2 or len(points) > 400:
        return places if len(points) == 1 else {}
    pairs = [(abs(a[0] - b[0]), abs(a[1] - b[1])) for i, a in enumerate(points) for b in points[:i]]
    widest = max(max(pair) for pair in pairs)
    nearest = min(max(x / 170, y / (HIGH + GAP)) for x, y in pairs)
    if widest <= 0:
        return {}
    stretch = 1.0 if nearest >= 0.8 and widest <= 4000 else min(1 / max(nearest, 1e-9), 2400 / widest)
    return {name: (round(stretch * x), round(stretch * y)) for name, (x, y) in places.items()}


def _close(state: Session) -> None:
    """Close the file and clear the pasted text."""
    _away(state)
    state.drafts.graph_file.text = ""
    state.drafts.graph_file.closed += 1  # an empty uploader


def _list(sentences: Any) -> None:
    """Show the first sentences; a click shows the others."""
    lines = [f"- {plain(sentence)}" for sentence in sentences]
    if lines:
        st.markdown("\n".join(lines[:8]))
    if len(lines) > 8:
        with st.popover(f"{len(lines) - 8} more"):
            st.markdown("\n".join(lines[8:500]))


def _take(state: Session) -> None:
    project = state.project
    left, right = st.columns(2, gap="medium", vertical_alignment="bottom")
    kind = left.selectbox(
        "Format", list(FORMATS), key=f"graph-format-{state.opened}", format_func=lambda f: FORMATS[f].title
    )
    before = [(a + BEFORE, b) for a, b in (project.linked.arrows if project.linked else ())]
    columns = dict.fromkeys([*project.schema.names, *(name for arrow in before for name in arrow)])
    graph = graph_of(replace(project.dag, edges=(*project.dag.edges, *before)), project.roles, tuple(columns))
    try:
        text = write_graph(graph, kind)
    except EspalierError as error:
        st.error(plain(error))
        return
    suffix = FORMATS[kind].suffixes[0] if FORMATS[kind].suffixes else f".{kind}.txt"
    right.download_button(
        "Download the graph",
        text,
        file_name=f"{filename(project.name)}-graph{suffix}",
        on_click="ignore",
        icon=":material/download:",
        key=f"graph-download-{state.opened}",
    )
    _list(not_held(graph, kind))
    with st.popover("Show the text"):
        st.code(text if len(text) <= 20_000 else text[:20_000] + "\n…", language=None)
