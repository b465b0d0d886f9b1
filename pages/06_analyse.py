"""Analyse: figures from a release, with intervals where they are valid. Nothing here reads a private row."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from espalier.core.analysis.loading import Files
from espalier.core.analysis.study import SUGGESTED, Study
from espalier.core.errors import EspalierError
from espalier.core.statement.check import checked_files
from espalier.pages.analyse import answers, asking, bought, open_release, visits
from espalier.pages.common import shell, sign_in
from espalier.pages.common.text import plain
from espalier.pages.glossary.terms import term

sign_in.enter("steward")
state = shell.start(
    "Analyse",
    f"Ask questions of the released table; answers have an {term('interval')} where noise allows one. This reads only "
    f"the released files, costs no {term('budget')}, and its figures are "
    f"{term('safe to share')}.",
)
made = {str(one.number): one.release for one in (state.released, *reversed(state.earlier)) if one is not None}
if not made and not state.taken:
    st.info(
        "There is nothing to analyse yet. Release a synthetic table first, or open a release that another session made."
    )
    shell.link_to("Release", "Go to Release")
    open_release.show(state, open_=True)
    shell.sidebar(state)
    st.stop()


def said(key: str) -> str:
    """Return the name of a release on this page."""
    if key in made:
        return f"Release {key} of {plain(made[key].project.name)}"
    return f"Release {key[:6]} of {plain(state.taken[key].project.name)} (opened)"


def linked(key: str) -> Mapping[str, Any] | None:
    """Return the facts of a release of linked tables; `None` for a single table."""
    if key in made:
        return made[key].to_json() if made[key].project.linked is not None else None
    opened = state.taken[key]
    return opened.facts if isinstance(opened, Files) else None


def check(key: str) -> None:
    """Show the result of the independent checker."""
    if key not in state.checked:
        state.checked[key] = checked_files(made[key].files)
    holds, result = state.checked[key]
    (st.caption if holds else st.warning)(plain(result))


every = [*made, *state.taken]
which = every[0]
if len(every) > 1:
    which = st.selectbox("Release", every, format_func=said, key=open_release.chooser(state))
if (facts := linked(which)) is not None:
    check(which)
    visits.show(made[which].project if which in made else state.taken[which].project, facts, which)
    open_release.show(state, open_=False)
    shell.sidebar(state)
    st.stop()
if state.studied is None or state.studied[0] != which:
    try:
        opened = state.taken.get(which)
        state.studied = which, opened if isinstance(opened, Study) else Study.of(made[which])
    except EspalierError as error:
        bought.show_planned(made[which].analyses if which in made else ())
        bought.show(made[which].regressions if which in made else ())
        st.info(f"{plain(str(error)[:1].upper() + str(error)[1:])}")
        open_release.show(state, open_=False)
        shell.sidebar(state)
        st.stop()
study = state.studied[1]
check(which)

bought.show_planned(made[which].analyses if which in made else study.analyses)
bought.show(made[which].regressions if which in made else study.regressions)
asked = asking.ask(study, f"analyse-{which}")
if asked is not None:
    try:
        with st.spinner("Computing…"):
            found = answers.answered(state, which, study, asked)
        if found is None:
            answers.offer(state, which, study, asked)
        else:
            asking.show(study, found.figure, found.answers)
            answers.keep_button(state, asked, found)
    except (EspalierError, ValueError) as error:
        st.error(plain(error))
else:
    st.info("Choose the columns above. The answer and its interval appear here.")
came = len(study.given) > 1
st.caption(
    f"Answers from {said(which)} combine {len(study.given) if came else SUGGESTED} {term('copies')}, which "
    f"{'came with the release' if came else 'are made from the release for each question'}. The intervals do not "
    "account for the choice of the columns that were counted together. Regressions and effects replace each number by "
    "the midpoint of its bin.",
    help="The copies follow the noisy counts more closely than the released table does, so figures may differ slightly "
    "from those of the table.",
)
answers.so_far(state, which, study)
open_release.show(state, open_=False)
shell.sidebar(state)
