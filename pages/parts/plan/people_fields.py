"""Whose rows they are, how many of each person count, and what may be held out for shareable figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from espalier.pages.parts.session.session import Session

Bound = Callable[..., dict[str, Any]]
TENTH = 0.1


def show(state: Session, spots: dict[str, Any], bound: Bound) -> None:
    """The fields. ``bound`` gives a widget its key and puts its value into the plan."""
    assert state.project is not None
    plan = state.project.plan
    known = state.columns
    if plan.person and plan.person not in known:
        known.append(plan.person)
    st.selectbox(
        "Person column (whose row is it?)",
        ["", *known],
        index=known.index(plan.person) + 1 if plan.person else 0,
        format_func=lambda column: column or "none",
        accept_new_options=not state.columns,
        help="A column that names the person of each row, such as a patient number. It is used to keep at most so many "
        "rows of each person, chosen at random, before anything is counted. It is never released or counted itself.",
        **bound(state, "person", lambda s, v: s.change_person(v)),
    )
    spots["person"] = st.container()
    st.number_input(
        "Rows per person, at most",
        1,
        10_000,
        plan.rows_per_person,
        help="Of each person at most so many rows are kept, chosen at random. More rows cost more noise."
        if plan.person
        else "How many rows of the table may belong to one person.",
        **bound(state, "rows_per_person"),
    )
    if plan.person is None:
        st.caption("You promise that nobody has more rows. Without a person column, nothing checks it.")
    elif plan.neighbors == "replace-one":
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
    st.toggle(
        "Shareable figures, from people held out",
        plan.private_evaluation > 0,
        wrap=True,
        help="A tenth of the people (without a person column: of the rows), chosen at random, is kept out of the "
        "release and judges it. Nobody is in both parts, so it adds no privacy cost. The figures are safe to share. "
        "The release is made from a tenth fewer rows.",
        **bound(state, "private_evaluation", lambda s, v: s.change_plan(private_evaluation=TENTH if v else 0.0)),
    )
    spots["private_evaluation"] = st.container()
