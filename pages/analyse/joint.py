"""Simultaneous intervals of all kept questions: the fields for rule and level, and the job that computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from espalier.core.analysis.answers import LEAST_COPIES, Answer, Rule
from espalier.core.analysis.estimands import Figure
from espalier.core.analysis.study import SUGGESTED, Study
from espalier.core.progress import Report
from espalier.core.project.asked import AskedQuestion
from espalier.pages.analyse import seconds
from espalier.pages.common import shell
from espalier.pages.common.text import plain
from espalier.pages.session.session import Session

ALONE, BONFERRONI, LARGEST = "separate", "simultaneous", "simultaneous, from 100 copies"
RULES: dict[str, Rule] = {BONFERRONI: "bonferroni", LARGEST: "max-t"}


@dataclass(frozen=True)
class Family:
    """Questions whose intervals hold simultaneously, and the release that answers them."""

    which: str
    asked: tuple[AskedQuestion, ...]
    rule: Rule
    level: float


def answers(
    state: Session, study: Study, which: str, listed: Sequence[tuple[AskedQuestion, Figure]]
) -> list[tuple[Answer, ...]] | None:
    """Let the user choose the rule. Return the joint answers, or None for separate intervals."""
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        chosen = st.segmented_control(
            "Kind of intervals",
            (ALONE, BONFERRONI, LARGEST),
            default=ALONE,
            required=True,
            key=f"joint-{which}",
            help="Among many separate intervals, some will miss the true value. Simultaneous intervals are wider; with "
            "at least 100 copies, they are slightly narrower.",
        )
    if chosen == ALONE:
        return None
    with right:
        level = st.number_input("Level (%)", 50.0, 99.9, 95.0, key=f"joint-level-{which}") / 100
    family = Family(which, tuple(asked for asked, _ in listed), RULES[chosen], level)
    if state.joint is not None and state.joint[0] == family:
        found: list[tuple[Answer, ...]] = state.joint[1]
        return found
    _offer(state, study, family, [figure for _, figure in listed])
    return None


def _offer(state: Session, study: Study, family: Family, figures: list[Figure]) -> None:
    """Show the button that computes a family, with its estimated duration, or show the progress."""
    if state.job is not None:
        shell.progress()
        return
    if reason := state.trouble.get("analyse-joint"):
        st.error(f"The intervals were not computed: {plain(reason)}")
    number = LEAST_COPIES if family.rule == "max-t" else SUGGESTED
    columns = list(dict.fromkeys(column for figure in figures for column in figure.columns))
    whole = study.about(columns)
    part = whole if len(whole.given) >= number else whole.without_copies()

    def work(report: Report) -> list[tuple[Answer, ...]]:
        return part.with_copies(number, report).together(figures, family.level, family.rule)

    def done(into: Session, found: list[tuple[Answer, ...]]) -> None:
        into.joint = family, found

    def start() -> None:
        state.start("analyse-joint", work, done)

    st.button(
        f"Compute {len(figures)} questions together, about {max(seconds.of(part, number), 1):.0f} seconds",
        on_click=start,
        key=f"joint-work-{family.which}",
    )
