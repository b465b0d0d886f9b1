"""Structure: draw causes, mark protected columns, and see what both imply."""

import streamlit as st

from espalier.core.blurring.notice import NOT_PRIVATE
from espalier.core.blurring.registry import is_blurring
from espalier.core.errors import EspalierError
from espalier.core.methods import frame_of, method_of
from espalier.pages.board import board
from espalier.pages.common import shell, sign_in, text
from espalier.pages.common.text import name, names, plain
from espalier.pages.glossary.terms import term
from espalier.pages.plan import drawing_test
from espalier.pages.structure import (
    arrow_fields,
    arrow_table,
    effects,
    graph_files,
    implications,
    merging,
    separations,
    two_slices,
)

sign_in.enter("steward")
state = shell.start(
    "Structure",
    "Draw what causes what, and mark the columns that matter for fairness. Use what you know; the table is not read.",
)
project = shell.need_project(state)

dag, found = implications.now(state)
board.show(state, found)
arrow_fields.view(state)

left, right = shell.beside((3, 2), "structure")
with left:
    titles = ["Selected", "Causes", "Roles", "Two columns", *(["Next visit"] if project.linked else [])]
    picked, causes, roles, two, *following = st.tabs(titles, key=f"structure-{state.opened}")
with picked:
    arrow_fields.annotation(state)
with causes:
    arrow_fields.causes(state)
with roles:
    arrow_fields.roles(state)
with two:
    arrow_fields.pair(state)
for tab in following:
    with tab:
        two_slices.show(state)
with right:
    st.subheader("What this implies", anchor=False)
    implications.show(state, dag, found)

drawn = len(project.dag.edges) + len(project.linked.arrows if project.linked else ())
many = f"{drawn} arrow{'s' * (drawn != 1)}"
with st.expander(f"All arrows as an editable table ({many})"):
    arrow_table.show(state)
with st.expander(f"All arrows as text ({many})"):
    causes_of = {n: parents for n in project.schema.names if (parents := project.dag.parents(n))}
    lines = [f"{name(n, project.schema)} ← {names(p, 40, schema=project.schema)}" for n, p in causes_of.items()]
    lines += [f"{name(key)}: {plain(note)}" for key, note in project.dag.notes.items() if isinstance(note, str)]
    st.markdown("\n".join(f"- {line}" for line in lines))
    if between := two_slices.sentences(state):
        st.markdown("\n".join(between))
    if not project.dag.edges and not between:
        st.markdown("No arrow is drawn yet.")
with st.expander("Compare and merge with another person's drawing"):
    merging.show(state)
graph_files.show(state)
if parked := state.editor.aside.edges:
    st.caption(
        "These arrows are set aside because their columns are left out on the Data page: "
        + ", ".join(f"{name(a)} → {name(b)}" for a, b in parked)
    )
separations.show(state)
effects.show(state)
drawing_test.found(state)
if is_blurring(project.plan):
    st.error(f"The plan's method is {text.method(project.plan.method)}. {NOT_PRIVATE}.")
else:
    try:
        frame = frame_of(state.project)
        chosen = text.method(project.plan.method)
        if frame.separations:
            st.markdown(
                f"Under the current plan ({chosen}), the released table will keep these "
                f"{term('separations', 'separation')}:"
            )
            for s in frame.separations:
                st.markdown(f"- {text.separation(s, project.schema)}")
        else:
            shows = method_of(project.plan).guidance.unseparated(bool(project.dag.edges))
            st.markdown(f"The plan's method is {chosen}. {shows} Change it on the Plan page.")
        for warning in frame.warnings:
            st.warning(plain(warning))
    except EspalierError as error:
        st.warning(f"The plan does not fit this structure yet: {plain(error)}")
shell.link_to("Plan", "Next: Plan")
shell.sidebar(state)
