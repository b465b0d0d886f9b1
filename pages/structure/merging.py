"""Compare two drawings, resolve each difference, and merge them."""

from __future__ import annotations

import json
from functools import partial

import streamlit as st

from espalier.core.errors import EspalierError, GraphError
from espalier.core.graph.annotations import Annotation
from espalier.core.graph.dag import Dag
from espalier.core.graph.formats import read_graph
from espalier.core.graph.formats.resolve import resolve
from espalier.core.graph.merge import Difference, Side, differences, inside, merge
from espalier.core.graph.roles import Roles
from espalier.core.project.file import FORMAT, Project
from espalier.core.project.schema import Schema
from espalier.core.report.drawing_picture import drawing_picture
from espalier.pages.board import drawing
from espalier.pages.common import picture
from espalier.pages.common.fields import field, taken
from espalier.pages.common.text import name, names, plain
from espalier.pages.session.drafts import OtherDrawing
from espalier.pages.session.session import Session

SIDES: dict[Side, str] = {"mine": "This drawing", "theirs": "Theirs"}


def show(state: Session) -> None:
    """Load another person's drawing, resolve the differences, and merge."""
    file = st.file_uploader(
        "Another person's project file or graph file",
        key=f"theirs-file-{state.opened}",
        max_upload_size=2,
        help="Only the drawing in it is read. Both drawings must be about the same columns; "
        "they are shown side by side, and you decide arrow by arrow.",
    )
    draft = state.drafts.merge
    if file is not None and draft.file != file.file_id:
        draft.file = file.file_id
        try:
            drawn, remarks = read(file.getvalue(), file.name)
            draft.theirs = OtherDrawing(file.name, *inside(drawn, state.project.schema.names), remarks)
            draft.decided = {}
            state.trouble.pop("theirs", None)
        except EspalierError as error:
            state.trouble["theirs"] = f"{file.name}: {error}"
    if "theirs" in state.trouble:
        st.error(plain(state.trouble["theirs"]))
    if draft.theirs is None:
        return
    _decide(state, draft.theirs)


def read(data: bytes, title: str = "") -> tuple[Dag, tuple[str, ...]]:
    """Return the drawing in a project file, in its ``dag`` part alone, or in another tool's graph file, and the steps
    of its conversion. Raises :class:`EspalierError`, also if a person must decide something first.
    """
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError):
        parsed = None
    if isinstance(parsed, dict) and parsed.get("format") == FORMAT:
        return Project.from_json(parsed).dag, ()
    if isinstance(parsed, dict) and "edges" in parsed and "nodes" not in parsed:
        return Dag.from_json(parsed), ()
    resolved = resolve(read_graph(data, title))
    if resolved.dag is None:
        asked = [q.text for q in resolved.open] + list(resolved.clashes)
        raise GraphError(
            f"this graph has open questions ({asked[0]}): import it into a separate project, and compare with that"
        )
    return resolved.dag, resolved.remarks


def _decide(state: Session, theirs: OtherDrawing) -> None:
    project, draft = state.project, state.drafts.merge
    if theirs.remarks:
        st.markdown("\n".join(f"- {plain(sentence)}" for sentence in theirs.remarks))
    if theirs.unknown:
        st.warning(
            f"Left out with their arrows, because this table does not have these columns: {names(theirs.unknown)}."
        )
    for place, head, dag in zip(
        st.columns(2), ("This drawing", f"Theirs ({theirs.title})"), (project.dag, theirs.dag), strict=True
    ):
        with place:
            st.markdown(f"**{plain(head)}**: {len(dag.edges)} arrows")
            if drawn := drawing_picture(project.schema.names, dag, Roles(), project.plan.target):
                picture.show(drawn, f"side-{head[:4]}-{state.opened}", "drawing")
    found = differences(project.dag, theirs.dag)
    draft.decided = decided = {d: side for d, side in draft.decided.items() if d in found}
    if not found:
        st.success("The two drawings do not differ.")
        st.button("Close their drawing", on_click=_away, args=(state,))
        return
    left = len([d for d in found if d not in decided])
    st.markdown(f"**{len(found)} difference{'s' * (len(found) > 1)} to resolve**, {left or 'none'} of them still open")
    for difference in found:
        box = field(state, f"settle-{difference.kind}-{difference.of!r}", decided.get(difference), theirs.title)
        st.segmented_control(
            _question(difference, project.schema),
            list(SIDES),
            default=box.default,
            key=box.key,
            on_change=_choose,
            args=(state, difference),
            format_func=partial(_choice, difference),
        )
    open_ = [d for d in found if d not in decided]
    with st.container(horizontal=True):
        st.button(
            "Merge into this drawing",
            type="primary",
            disabled=bool(open_),
            on_click=_merge,
            args=(state, theirs.dag),
            help="Undo restores the earlier drawing.",
        )
        for side, label in SIDES.items():
            st.button(f"{label} for the rest", on_click=_rest, args=(state, open_, side), disabled=not open_)
        st.button("Close their drawing", on_click=_away, args=(state,))
    if "merge" in state.trouble:
        st.error(f"{plain(state.trouble['merge'])} Resolve one of these differences the other way.")


def _choice(d: Difference, side: Side) -> str:
    return f"{SIDES[side]}: {_has(d, side)}"


def _question(d: Difference, schema: Schema) -> str:
    ends = [name(column, schema) for column in d.of]
    if d.kind == "arrow":
        return f"{ends[0]} → {ends[1]}: is it an arrow?"
    if d.kind == "reversed":
        return f"{ends[0]} and {ends[1]}: which one is the cause?"
    return f"Notes on {' → '.join(ends)}"


def _has(d: Difference, side: Side) -> str:
    value = d.mine if side == "mine" else d.theirs
    if value is None:
        return "no arrow"
    return plain(value.words if isinstance(value, Annotation) else " → ".join(value))


def _choose(state: Session, difference: Difference) -> None:
    side = taken(state, f"settle-{difference.kind}-{difference.of!r}")
    if side is None:
        state.drafts.merge.decided.pop(difference, None)
    else:
        state.drafts.merge.decided[difference] = side


def _rest(state: Session, open_: list[Difference], side: Side) -> None:
    state.drafts.merge.decided.update(dict.fromkeys(open_, side))


def _merge(state: Session, theirs: Dag) -> None:
    try:
        state.editor.redraw(merge(state.project.dag, theirs, state.drafts.merge.decided))
    except EspalierError as error:
        state.trouble["merge"] = str(error)
        return
    _away(state)
    drawing.say(state, "The drawings are merged. Undo restores the earlier drawing.")


def _away(state: Session) -> None:
    state.drafts.merge.theirs, state.drafts.merge.decided = None, {}
    for key in ("theirs", "merge"):
        state.trouble.pop(key, None)
