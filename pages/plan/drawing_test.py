"""Private test of the drawing: its fields and its power on the Plan page, and its result on the Structure page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from espalier.core.analysis.drawing import LEVEL, POOL, predicted
from espalier.core.planning.preview import Preview
from espalier.core.project.plan import MOST_STATEMENTS
from espalier.pages.common.text import names, plain
from espalier.pages.session.session import Session

Bound = Callable[..., dict[str, Any]]


def fields(state: Session, bound: Bound) -> None:
    """Show the fields for the test's share of the budget and its number of statements."""
    plan = state.project.plan

    def take(s: Session, percent: int) -> None:
        s.editor.change_plan(test_drawing=percent / 100)

    st.slider(
        "Share of the budget for testing the drawing (%)",
        0,
        50,
        round(100 * plan.test_drawing),
        help="This tests some independences implied by the drawing on separate noisy counts. The results may be "
        "shared and show where an arrow may be missing.",
        **bound(state, "test_drawing", take),
    )
    if not plan.test_drawing:
        return
    if isinstance(plan.statements, int):
        st.slider(
            "Maximum number of statements",
            1,
            MOST_STATEMENTS,
            plan.statements,
            help="Pairs marked as contested come first, followed by the statements that would reveal the largest "
            "number of missing arrows.",
            **bound(state, "statements"),
        )
    else:
        st.caption(f"The project file lists the {len(plan.statements)} statements that are tested.")


def planned(seen: Preview) -> None:
    """Show the planned tests and the smallest association they would detect, before anything is spent."""
    if not seen.tests:
        return
    st.subheader(
        "The test of the drawing",
        anchor=False,
        help="The predictions use public numbers only, and assume that all values of a column are equally frequent. "
        "Rare values weaken the test.",
    )
    rho = sum(line.rho for line in seen.lines if line.pool == POOL)
    st.markdown(
        f"These independences, chosen from the drawing alone, are tested at a cost of ρ = {rho:.3g}. All tests "
        f"together raise a false alarm in at most {100 * LEVEL:g} of 100 releases."
    )
    st.markdown("\n".join(f"- {plain(predicted(test))}." for test in seen.tests))


def found(state: Session) -> None:
    """Show the result of the last release for the drawing."""
    made = state.released
    if made is None or not made.release.drawing:
        return
    with st.expander(f"Result of release {made.number} for the drawing", expanded=True):
        project = state.project
        if made.release.project.dag.edges != project.dag.edges:
            st.info("The drawing has changed since. The result refers to the earlier drawing.")
        for test, result in made.release.drawing:
            s = test.statement
            line = plain(result.sentence(s.left[0], s.right[0], s.given, LEVEL))
            st.markdown(f"- {':material/warning: ' if result.contradicted(LEVEL) else ''}{line}")
        missing = [names((*t.statement.left, *t.statement.right)) for t, r in made.release.drawing if r.contradicted()]
        if missing:
            st.markdown(
                f"An arrow may be missing between {'; '.join(missing)}. You decide whether it exists and which way it "
                "points: Espalier never draws it for you."
            )
        st.caption(
            "Read the strength first: with many rows, even a weak association contradicts a drawing. Passing the test "
            "does not confirm a drawing. These figures are differentially private and may be shared."
        )
