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
    """Draw the fields. ``bound`` returns a widget's key and the callback that stores its value in the plan."""
    project, plan = state.project, state.project.plan
    st.markdown(f"**Rows per person.** {text.people(project)}")
    shell.link_to("Data", "Change this on the Data page", primary=False)
    spots["person"] = spots["one_row_per_person"] = st.container()
    if project.linked is None and project.one_row_per_person is not True:
        st.number_input(
            "Rows per person (maximum)",
            2 if project.one_row_per_person is False and plan.person is None else 1,
            10_000,
            plan.rows_per_person,
            help="At most this many rows of each person are kept, chosen at random. A higher limit needs more noise."
            if plan.person
            else "Maximum number of rows that may belong to one person. You promise that this limit holds.",
            **bound(state, "rows_per_person"),
        )
    if plan.person is not None and plan.neighbors == "replace-one":
        left = "people" if project.linked is not None else "rows that remain after the limit per person is applied"
        st.number_input(
            f"Declared total of {text.counted(project)}",
            1,
            10_000_000,
            plan.rows,
            placeholder="type a round number",
            help=f"The number of {left} is confidential. Espalier adds invented {text.counted(project)} or removes "
            f"{text.counted(project)} at random to reach this public number. The synthetic table has the same number. "
            "Take it from a public source, such as an annual report, not from a count of this table. "
            "Under add-remove it is not needed.",
            **bound(state, "rows"),
        )
    spots["private_evaluation"] = st.container()
    if project.linked is not None:
        return  # this field is not supported yet
    st.toggle(
        "Private evaluation, on held-out people",
        plan.private_evaluation > 0,
        wrap=True,
        help="A random tenth of the people (or of the rows, without a person column) is held out of the release and "
        "used "
        "to judge it. No one is in both parts, so this adds no privacy cost. The figures are safe to share. The "
        "release uses a tenth fewer rows.",
        **bound(state, "private_evaluation", lambda s, v: s.editor.change_plan(private_evaluation=TENTH if v else 0.0)),
    )
