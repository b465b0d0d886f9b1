"""Answers to questions about one release, and the kept questions. Slow answers are computed in a background job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from espalier.core.analysis import answer_text, forest, script
from espalier.core.analysis.answers import Answer
from espalier.core.analysis.estimands import Figure, Mean, MeanDifference, Regression
from espalier.core.analysis.figure_from_text import figure_of
from espalier.core.analysis.quantiles import Quantile
from espalier.core.analysis.study import Study
from espalier.core.errors import EspalierError
from espalier.core.ledger.archive import zipped
from espalier.core.progress import Report, silent
from espalier.core.project.asked import AskedQuestion
from espalier.pages.analyse import joint, seconds
from espalier.pages.common import picture, shell
from espalier.pages.common.text import SAFE, plain
from espalier.pages.session.session import Session

AT_ONCE = 2.0
"""Longest time in seconds for which the page waits for an answer."""
MOST = 40
"""Number of answers whose copies are kept."""


@dataclass(frozen=True, repr=False)
class Answered:
    """A question with its answers, and the study with the copies used for them."""

    figure: Figure
    study: Study
    answers: tuple[Answer, ...]


def answered(state: Session, which: str, study: Study, asked: AskedQuestion) -> Answered | None:
    """Return the answer, or None while a long computation waits for a click or for its job. Raises EspalierError."""
    known: Answered | None = state.answered.get((which, asked))
    if known is not None:
        return known
    figure = figure_of(study.project, asked, study.rows)
    part = study.about(figure.columns)
    if seconds.of(part) <= AT_ONCE:
        return _keep(state, which, asked, _worked_out(part, figure, asked.level))
    return None


def offer(state: Session, which: str, study: Study, asked: AskedQuestion) -> None:
    """Show the button that starts a long computation, with its estimated duration, or show the progress."""
    if state.job is not None:
        shell.progress()
        return
    if reason := state.trouble.get("analyse-answer"):
        st.error(f"The question was not answered: {plain(reason)}")
    figure = figure_of(study.project, asked, study.rows)
    part = study.about(figure.columns)

    def work(report: Report) -> Answered:
        return _worked_out(part, figure, asked.level, report)

    def done(into: Session, found: Answered) -> None:
        _keep(into, which, asked, found)

    def start() -> None:
        state.start("analyse-answer", work, done)

    st.info(
        "This question joins many columns, so its interval needs copies of a large part of the model, which "
        f"takes about {max(seconds.of(part), 1):.0f} seconds. It can be cancelled, and other questions keep their "
        "answers."
    )
    st.button("Compute the answer", type="primary", on_click=start, key=f"analyse-work-{which}")


def _worked_out(part: Study, figure: Figure, level: float, report: Report = silent) -> Answered:
    studied = part.with_copies(report=report)
    return Answered(figure, studied, studied.ask(figure, level))


def _keep(state: Session, which: str, asked: AskedQuestion, found: Answered) -> Answered:
    while len(state.answered) >= MOST:
        del state.answered[next(iter(state.answered))]
    state.answered[which, asked] = found
    return found


def keep_button(state: Session, asked: AskedQuestion, found: Answered) -> None:
    """Let the user keep the question with the project, or download a script that answers it, with its data."""
    with st.container(horizontal=True):
        if asked in state.asked:
            st.button("Kept below", disabled=True, key="analyse-kept", icon=":material/check:")
        else:
            st.button(
                "Keep this answer",
                type="primary",
                on_click=state.keep_asked,
                args=((*state.asked, asked),),
                key="analyse-keep",
                icon=":material/bookmark_add:",
            )
        st.download_button(
            "Script in R and Python, with its data (zip)",
            lambda: zipped(script.files(found.study, found.figure, asked.level)),
            file_name="question.zip",
            mime="application/zip",
            on_click="ignore",
            key="analyse-script",
            icon=":material/code:",
        )


def so_far(state: Session, which: str, study: Study) -> None:
    """Show the kept questions: a forest plot, the numbers as a CSV file, and a button that removes each question."""
    if not state.asked:
        return
    st.subheader("Answers so far", anchor=False)
    told: list[tuple[AskedQuestion, Answered]] = []
    waiting: list[str] = []
    for asked in state.asked:
        try:
            found = answered(state, which, study, asked)
        except (EspalierError, ValueError) as error:
            waiting.append(f"{_named(asked)}: {error}")
            continue
        if found is None:
            waiting.append(f"{_named(asked)}: choose it above to compute it.")
        else:
            told.append((asked, found))
    together = None
    if told and sum(len(found.answers) for _, found in told) > 1:
        together = joint.answers(state, study, which, [(asked, found.figure) for asked, found in told])
    every = [found.answers for _, found in told] if together is None else together
    lines = [line for (_, found), some in zip(told, every, strict=True) for line in lines_of(study, found.figure, some)]
    if drawn := forest.svg(lines):
        picture.show(drawn, f"forest-{which}", "answers", narrow=forest.svg(lines, 380))
        levels = " or ".join(dict.fromkeys(f"{100 * line.answer.level:g} %" for line in lines))
        family = 1 if together is None else lines[0].answer.family
        hold = f" All {family} intervals hold simultaneously." if family > 1 else ""
        st.caption(f"{SAFE} Lines are {levels} intervals; a hollow point has no interval.{hold}")
        st.download_button(
            "Save as CSV",
            forest.to_csv(lines),
            file_name="answers.csv",
            mime="text/csv",
            on_click="ignore",
            key="analyse-csv",
            icon=":material/download:",
        )
    for line in waiting:
        st.caption(f"Not shown: {plain(line)}")
    with st.expander("Change this list"):
        for i, asked in enumerate(state.asked):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(plain(_named(asked)))
                rest = tuple(one for one in state.asked if one != asked)
                st.button("Remove", key=f"analyse-remove-{i}", on_click=state.keep_asked, args=(rest,))
        if state.has_project:
            st.caption("The project file keeps these questions, without their answers.")


def lines_of(study: Study, figure: Figure, answers: Sequence[Answer]) -> list[forest.Line]:
    """Return the lines of an answer in the forest plot."""
    schema = study.project.schema
    question = answer_text.asked(schema, figure)
    question = question[:1].upper() + question[1:]
    number = figure.column if isinstance(figure, Mean | MeanDifference | Quantile) else None
    if isinstance(figure, Regression) and figure.event is None:
        number = figure.outcome
    if getattr(figure, "scores", None) and getattr(figure, "event", 0) is None:
        number = getattr(figure, "outcome", number)
    unit = "share" if number is None else f"{number} ({schema[number].unit})" if schema[number].unit else number
    return [forest.Line(question, "ratio" if a.ratio else unit, a) for a in answers]


def _named(asked: AskedQuestion) -> str:
    """Return a question as text, from its kind and columns, for any release."""
    kind = asked.kind.replace("_", " ")
    on: Sequence[str] = asked.on or ()
    parts = [f"of {asked.treatment} on {asked.of}" if asked.treatment else f"of {asked.of}"]
    parts += [f"among {' and '.join(asked.among)}"] if asked.among else []
    parts += [f"by {asked.group}"] if asked.group else []
    if on:
        parts.append(f"{'adjusted for' if asked.treatment else 'on'} {', '.join(on)}")
    return f"{kind[:1].upper()}{kind[1:]} {' '.join(parts)}"
