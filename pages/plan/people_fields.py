"""Fields for rows per person, the declared total, and the rows held out for the private evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from espalier.pages.common import shell, text
from espalier.pages.session.session import Session

Bound = Callable[..., dict[str, Any]]
TENTH = 0.1


def show(state: Session, spots: dict[str, Any], bound: Bound) -> None:
    """The fields. ``bound`` gives a widget its key and puts its value into the plan."""
    project, plan = state.project, state.project.plan
    st.markdown(f"**Rows per person.** {text.people(project)}")
    shell.link_to("Data", "Change this on Data", primary=False)
    spots["person"] = spots["one_row_per_person"] = st.container()
    if project.linked is None and project.one_row_per_person is not True:
        st.number_input(
            "Rows per person, at most",
            2 if project.one_row_per_person is False and plan.person is None else 1,
            10_000,
            plan.rows_per_person,
            help="These rows of each person are kept, chosen at random. More rows need more noise."
            if plan.person
            else "How many rows of the table may belong to one person. This is a promise.",
            **bound(state, "rows_per_person"),
        )
    if plan.person is not None and plan.neighbors == "replace-one":
        st.number_input(
            "Declared total of rows",
            1,
            10_000_000,
            plan.rows,
            placeholder="type a round number",
            help="How many rows are left when each person keeps only a few is confidential. The table is filled with "
            "invented rows, or cut at random, to this number, which is public; the synthetic table has as many. "
            "Take it from what is public anyway, such as an annual report, and not from a count of this table. "
            "Add-remove does without.",
            **bound(state, "rows"),
        )
    spots["private_evaluation"] = st.container()
    if project.linked is not None:
        return  # not supported yet
    st.toggle(
        "Shareable figures, from people held out",
        plan.private_evaluation > 0,
        wrap=True,
        help="A tenth of the people (without a person column: of the rows), chosen at random, is kept out of the "
        "release and judges it. No one is in both parts, so it adds no privacy cost. The figures are safe to share. "
        "The release is made from a tenth fewer rows.",
        **bound(state, "private_evaluation", lambda s, v: s.editor.change_plan(private_evaluation=TENTH if v else 0.0)),
    )
