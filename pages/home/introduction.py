"""Parts of the Home page: three steps, the samples with their questions and pictures, and a guided tour."""

from __future__ import annotations

from base64 import b64encode

import streamlit as st

from espalier.pages.common import shell, story
from espalier.pages.common.text import plain
from espalier.pages.common.tour import STOPS
from espalier.pages.data import opening
from espalier.pages.data.samples import SAMPLES
from espalier.pages.session.session import Session

_TREE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48">
<path d="M6 4v40M42 4v40M6 12h36M6 24h36M6 36h36" stroke="#9a8468" stroke-width="2" fill="none"/>
<path d="M24 45V12M24 15c-4 0-7-3-13-3M24 15c4 0 7-3 13-3M24 27c-4 0-7-3-13-3M24 27c4 0 7-3 13-3M24 39c-4 0-7-3-13-3
M24 39c4 0 7-3 13-3" stroke="#3d8a62" stroke-width="3.2" stroke-linecap="round" fill="none"/>
<g fill="#4fa374"><circle cx="24" cy="10" r="4"/><circle cx="11" cy="11" r="4"/><circle cx="37" cy="11" r="4"/>
<circle cx="11" cy="23" r="4"/><circle cx="37" cy="23" r="4"/><circle cx="11" cy="35" r="4"/>
<circle cx="37" cy="35" r="4"/></g></svg>"""
MARK = (
    f'<img src="data:image/svg+xml;base64,{b64encode(_TREE.encode()).decode()}" width="52" height="52" '
    'alt="A tree trained along a frame">'
)
"""The product's logo: an espalier."""

QUESTIONS = {
    "readmission": "Which patients come back within 30 days, and do the findings hold in another hospital?",
    "hiring": "Can we share who was hired without teaching machines to prefer men?",
    "services": "Who is granted a benefit, in a wide table with rare values and empty cells?",
    "visits": "Which visits are missed, when each person has several?",
    "stays": "How do age and severity shape the length of a stay?",
    "clinic": "Do patients come back sooner after insulin was changed, across visits in two linked tables?",
}
"""Question behind each bundled example. An example without a question is shown under its name."""

PICTURES = (
    "The pictures show figures from a typical release of each sample. The samples come with Espalier and contain "
    "only invented rows, so these figures may be published."
)
"""A note below the examples."""

STEPS = (
    (
        ":material/account_tree:",
        "Say what you know",
        "Draw what causes what, mark who is protected, and describe the columns.",
    ),
    (":material/savings:", "See what it costs", "A plan shows every count and its price, before any row is read."),
    (
        ":material/verified:",
        "Release and judge",
        "Release with one deliberate click. Then see what the table is good for.",
    ),
)


def steps() -> None:
    """Show the three steps next to each other."""
    for place, (icon, title, text) in zip(st.columns(3), STEPS, strict=True):
        with place, st.container(border=True, height="stretch"):
            st.markdown(f"**{icon} {title}**")
            st.markdown(text)


def samples(state: Session) -> None:
    """Show the open project and the next step, then the examples with their questions. One click opens an example."""
    if state.sample:
        st.success(f"The example {plain(state.sample)} is open.")
        with st.container(horizontal=True):
            shell.link_to("Plan", "Next: the plan")
            shell.link_to("Structure", "See what was drawn", primary=False)
            shell.link_to("Release", "Go straight to the release", primary=False)
    places = [place for _ in range(0, len(SAMPLES), 2) for place in st.columns(2)]
    for place, (key, (title, icon, rows, _)) in zip(places, SAMPLES.items(), strict=False):
        with place.container(border=True, height="stretch"):
            st.markdown(f"**:material/{icon}: {title}**  \n{QUESTIONS.get(key, 'An invented table.')}")
            story.show(key, source=False)
            st.button(f"Open {title.lower()}", key=f"home-{key}", on_click=opening.open_sample, args=(state, key, rows))
    st.caption(PICTURES)


def tour(state: Session) -> None:
    """Start the guided tour: a bar leads from page to page, with the sample *readmission* open."""
    with st.container(border=True):
        st.markdown(
            f"**A guided tour: readmission, in {len(STOPS)} stops.** A bar above each page describes the page and "
            "leads to the next stop."
        )
        if state.touring:
            shell.link_to(STOPS[0][0], "Go to the first stop", primary=False)
            st.button("End the tour", key="tour-end", on_click=end_tour, args=(state,))
        else:
            st.button("Start the tour", key="tour-open", on_click=start_tour, args=(state,), icon=":material/tour:")


def start_tour(state: Session) -> None:
    """Open the sample of the tour, unless it is open, and show the bar."""
    if state.sample != "readmission":
        opening.open_sample(state, "readmission", SAMPLES["readmission"][2])
    state.touring = True


def end_tour(state: Session) -> None:
    """Hide the bar."""
    state.touring = False
