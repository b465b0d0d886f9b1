"""Start and end of every page: title, sidebar, links to other pages, and empty states."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from espalier.core.project.file import Project
from espalier.pages.common import tour
from espalier.pages.common.text import CONFIDENTIAL, plain
from espalier.pages.session import restore, session

PAGES = {
    "Home": "pages/01_home.py",
    "Data": "pages/02_data.py",
    "Structure": "pages/03_structure.py",
    "Plan": "pages/04_plan.py",
    "Release": "pages/05_release.py",
    "Analyse": "pages/06_analyse.py",
    "Diagnostics": "pages/07_diagnostics.py",
    "Compare": "pages/08_compare.py",
    "Ledger": "pages/09_ledger.py",
    "Glossary": "pages/10_glossary.py",
}


_LOOK = """<style>
[data-testid="stMainBlockContainer"] { padding-top: 3.5rem; }
[data-testid="stCaptionContainer"] { color: light-dark(#4c5751, #c3cac5); opacity: 1; }
button[data-variant][data-selected="true"] p, [role="tab"][aria-selected="true"] p {
  color: light-dark(#1f2a24, #e6ebe7); font-weight: 600; }
[data-testid="stSliderThumbValue"] { color: light-dark(#1f2a24, #e6ebe7); }
[data-testid="stApp"]:has([data-testid="stExpandSidebarButton"]) [data-testid="stSidebar"] { visibility: hidden; }
@media (max-width: 1400px) { [data-testid="stMainBlockContainer"] { padding-left: 2.5rem; padding-right: 2.5rem; } }
@media (max-width: 900px) { [data-testid="stMainBlockContainer"] { padding-left: 1.2rem; padding-right: 1.2rem; } }
</style>"""
"""Legible captions in light and dark, no empty space at the top, and no tab stop in a folded sidebar."""
BUILDERS = ("ask-", "regression-", "analysis-")
"""Key prefixes of the fields that build a list entry on the Plan page."""
_STACK = """<style>
@media (max-width: 1000px) {
  [class*="st-key-stacking"] > div > [data-testid="stHorizontalBlock"] > [data-testid="stColumn"],
  [class*="st-key-stacking"] > [data-testid="stHorizontalBlock"] > [data-testid="stColumn"] { min-width: 100%; }
}
</style>"""


def beside(weights: tuple[int, int], key: str) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Return two columns, which are stacked in a narrow window. They stack at a larger width than Streamlit's own
    columns.
    """
    st.html(_STACK)
    left, right = st.container(key=f"stacking-{key}").columns(weights, gap="large")
    return left, right


def folded(label: str, draw: Callable[[], None], expanded: bool = False, builder: str = "") -> DeltaGenerator:
    """Return an expander. ``draw`` fills the expander only while it is open, so a closed expander costs no time.

    ``builder``, one of `BUILDERS`, is the key prefix of fields that keep their contents while the expander is closed.
    """
    folder = st.expander(label, expanded, key=f"folded-{label}", on_change="rerun")
    if folder.open:
        with folder:
            draw()
    elif builder:
        keep_typed(builder)
    return folder


def keep_typed(*builders: str) -> None:
    """Keep the contents of half-filled builders in runs that do not draw these fields; Streamlit would discard them."""
    for key in map(str, st.session_state):
        if key.startswith(builders) and "-add-" not in key:
            st.session_state[key] = st.session_state[key]


_FOLD = """
const known = new WeakSet();
let folded = false;
const press = (button) => document.querySelector(button)?.click();
export default function ({ parentElement }) {
  if (known.has(parentElement)) return;
  known.add(parentElement);
  const narrow = matchMedia("(max-width: 900px)");
  const fold = () => {
    const bar = document.querySelector('[data-testid="stSidebar"]');
    const open = bar && bar.getBoundingClientRect().right > 0;
    if (narrow.matches && open) press('[data-testid="stSidebarCollapseButton"] button');
    if (!narrow.matches && folded) press('[data-testid="stExpandSidebarButton"]');
    folded = narrow.matches && (folded || open);
  };
  narrow.addEventListener("change", fold);
  setTimeout(fold, 50);
  return () => narrow.removeEventListener("change", fold);
}
"""


@cache
def _folding() -> Any:
    """Fold the sidebar in a narrow window, when a page opens and when the window becomes narrow."""
    return st.components.v2.component("espalier_fold", js=_FOLD, html="<span></span>")


def look() -> None:
    """Apply the styles of every page."""
    st.html(_LOOK)


def fold() -> None:
    """Fold the sidebar in a narrow window. Call this last, because the component occupies a line of the page."""
    _folding()(key="espalier-fold", height=1)


def start(title: str, lead: str, mark: str = "") -> session.Session:
    """Draw the title, one sentence and the sidebar; return the session's state, including finished work.

    ``mark`` is a small drawing next to the title, as HTML.
    """
    state = session.here()
    state.collect()
    look()
    if title != "Plan":
        keep_typed(*BUILDERS)
    with st.container(horizontal=True, vertical_alignment="center"):
        if mark:
            st.html(mark, width="content")
        st.title(title, anchor=False)
    st.markdown(lead)
    if state.touring and state.sample == "readmission":
        _tour_bar(state, title)
    restore.offer(state)
    if state.gone:
        st.info(
            "Results from before the reload are no longer kept. Releases paid from a budget are on the Ledger page."
        )
    return state


def _tour_bar(state: session.Session, page: str) -> None:
    """Show the text of the tour's current stop, and the link to the next stop."""
    here = tour.place(page)
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="tour-bar"):
        if here is None:
            st.markdown("**Readmission tour.**", width="stretch")
            link_to(tour.STOPS[0][0], f"First stop: {tour.STOPS[0][0]}")
            return
        st.markdown(f"**Stop {here + 1} of {len(tour.STOPS)}.** {tour.STOPS[here][1]}", width="stretch")
        if here + 1 < len(tour.STOPS):
            following = tour.STOPS[here + 1][0]
            link_to(following, f"Next stop: {following}")
        else:
            st.button("End the tour", key="tour-bar-end", on_click=setattr, args=(state, "touring", False))


def sidebar(state: session.Session) -> None:
    """Show the open project, with its file to download. Call this last, after the page's changes."""
    restore.keep(state)
    fold()
    with st.sidebar:
        if state.job is not None:
            where = {"release": "Release", "compare": "Compare", "analyse-answer": "Analyse", "resume": "Ledger"}
            st.caption(f"A job is running: see the {where.get(state.job.kind, 'Diagnostics')} page.")
        if not state.has_project:
            return
        project = state.project
        opened = state.relation.shown if state.relation else state.text.source if state.text else None
        table = "no table open" if opened is None else plain(opened)
        count = len(project.schema.columns)
        st.markdown(f"**{plain(project.name)}**  \n:small[{count} column{'s' * (count != 1)} · {table}]")
        guessed = bool(project.unconfirmed)
        if guessed:
            st.caption(f"{CONFIDENTIAL} The project file contains guesses made from real rows.")
        st.download_button(
            "Download project file",
            project.dumps(),
            file_name=f"{filename(project.name)}{'-CONFIDENTIAL' if guessed else ''}.json",
            mime="application/json",
            on_click="ignore",
            icon=":material/download:",
            width="stretch",
        )


def filename(text: str) -> str:
    """Return a name that every file system accepts."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-.")[:60] or "project"


_FOCUS = """
const done = new Set();
export default function ({ data }) {
  if (done.has(data.once)) return;
  const heading = [...document.querySelectorAll('[data-testid="stHeading"] :is(h1, h2, h3)')]
    .find((one) => one.innerText.startsWith(data.text));
  if (!heading) return;
  done.add(data.once);
  heading.tabIndex = -1;
  heading.focus();
}
"""


@cache
def _focusing() -> Any:
    return st.components.v2.component("espalier_focus", js=_FOCUS, html="<span></span>")


def focus(heading: str, once: str) -> None:
    """Move the keyboard focus to a heading that begins with this text, the first time that ``once`` appears in this
    tab.
    """
    _focusing()(key="espalier-focus", data={"text": heading, "once": once}, height=1)


def need_project(state: session.Session) -> Project:
    """Return the open project. Without one, show the next step and stop the page."""
    if not state.has_project:
        st.info("There is no project yet. Open a sample or your own table on the Data page first.")
        link_to("Data", "Go to Data")
        sidebar(state)
        st.stop()
    return state.project


def need_unit(state: session.Session) -> None:
    """Stop with the empty state until the question about several rows per person is answered."""
    if state.project.unit_open:
        st.info(
            "One question comes first: **can one person have several rows?** The answer determines who is "
            "protected, so you cannot plan or release anything until you have answered it."
        )
        link_to("Data", "Answer it on the Data page")
        sidebar(state)
        st.stop()


def link_to(page: str, label: str, primary: bool = True, on_click: Callable[[], None] | None = None) -> None:
    """Show a button that calls ``on_click`` and leads to another page."""
    if st.button(
        label,
        type="primary" if primary else "secondary",
        key=f"way-{page}-{label}",
        icon=":material/arrow_forward:",
        on_click=on_click,
    ):
        st.switch_page(PAGES[page])


def no_release(what: str) -> None:
    """Show the next step on a page that needs a release, if this session has made none."""
    st.info(
        f"There is nothing to {what} yet. Release a synthetic table first. Releases from earlier sessions are not "
        "listed here. If a budget paid for them, you can download them on the Ledger page at no further cost."
    )
    with st.container(horizontal=True):
        link_to("Release", "Go to Release")
        link_to("Ledger", "Go to Ledger", primary=False)


@st.fragment(run_every=0.5)
def progress() -> None:
    """Show the progress of the session's job; rerun the page when it has ended."""
    job = session.here().job
    if job is None or job.finished:
        st.rerun()
    left = job.seconds_left()
    st.progress(job.fraction, text=plain(job.message) + ("" if left is None else f" · about {max(left, 1):.0f} s left"))
    price = job.if_cancelled()
    label = f"Cancel ({plain(price)})" if price else "Cancel"
    st.button(label, on_click=job.cancel, key=f"cancel-{id(job)}", icon=":material/stop_circle:")
