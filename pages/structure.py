"""Structure: what causes what, who is protected, and what that implies."""

import streamlit as st

from core.errors import EspalierError
from core.graph.frame import frame_of
from pages.parts import graph_picture, shell, structure_fields, words
from pages.parts.words import name, names, plain

state = shell.start(
    "Structure",
    "Say what causes what, and which columns play a part in fairness. This is what you know; nothing is read "
    "off the table.",
)
project = shell.need_project(state)
columns = list(project.schema.names)


structure_fields.show(state)
project = state.project or project
if project.dag.edges or any(c for _, c in project.roles.items()):
    graph_picture.dag(columns, project.dag.edges, project.roles, project.plan.target, f"dag-{state.opened}")
else:
    st.info("No arrows and no roles yet. Choose an effect, then its direct causes.")
if project.dag.edges:
    with st.expander(f"The {len(project.dag.edges)} arrows as text"):
        for column in columns:
            if parents := project.dag.parents(column):
                st.markdown(f"{name(column)} ← {names(parents, 40)}")
if parked := state.parked[0].edges:
    st.caption(
        "Kept aside, as their columns are left out on Data: " + ", ".join(f"{name(a)} → {name(b)}" for a, b in parked)
    )

st.subheader("What this implies", anchor=False)
target = project.plan.target
if target is None:
    st.caption("Choose a target, and its direct causes and Markov blanket are shown here.")
else:
    a, b = st.columns(2)
    a.markdown(f"**Direct causes of {name(target)}, Pa(Y):** {names(project.dag.parents(target), 40, 'none drawn')}.")
    b.markdown(
        f"**Its Markov blanket, Mb(Y)** (causes, effects, and the effects' other causes): "
        f"{names(project.dag.blanket(target), 40, 'none drawn')}."
    )
try:
    frame = frame_of(project)
    chosen = words.METHOD_NAMES[project.plan.method]
    if frame.separations:
        st.markdown(f"With the plan as it stands ({chosen}), the released table will keep these **separations**:")
        for s in frame.separations:
            st.markdown(f"- {words.separation(s)}")
    else:
        st.markdown(
            f"With the plan as it stands ({chosen}) there is no separation: any association may show. The "
            "method is chosen on the Plan page."
        )
    for warning in frame.warnings:
        st.warning(plain(warning))
except EspalierError as error:
    st.warning(f"The plan does not fit this structure yet: {plain(error)}.")
shell.way("Plan", "Next: Plan")
shell.sidebar(state)
