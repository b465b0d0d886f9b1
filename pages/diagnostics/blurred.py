"""Rows that are not private beside the real ones, number by number."""

from __future__ import annotations

from typing import Any

import streamlit as st

from espalier.core.blurring.notice import NOT_PRIVATE
from espalier.core.evaluation.numeric_fidelity import numbers_of
from espalier.core.release.blurred import Blurred
from espalier.core.tables.table import Table
from espalier.pages.common import shell
from espalier.pages.common.text import name, plain
from espalier.pages.diagnostics import numeric_columns, price_elasticities
from espalier.pages.release import payment
from espalier.pages.session.session import Session


def show(state: Session, made: Blurred, real: Table) -> None:
    """What they are, and once somebody asks for it the comparison."""
    st.error(f"**{NOT_PRIVATE}.** Such rows come close to the real ones: that is no sign of a good release.")
    st.markdown(f"Compared here are the {made.rows:,} rows of {name(made.project.name)} made last by this method.")
    if state.job is not None:
        shell.progress()
    elif state.blurred_figures is None:
        st.button(
            "Compare with the real rows",
            type="primary",
            on_click=_start,
            args=(state, made, real),
            icon=":material/monitoring:",
        )
    if reason := state.trouble.get("diagnostics"):
        st.error(f"The comparison did not finish: {plain(reason)}")
    if state.blurred_figures is not None:
        (place,) = st.tabs(["Numbers"])
        with place:
            numeric_columns.show({"numbers": state.blurred_figures}, made.project.schema)
            price_elasticities.show(made.project, (real, made.synthetic), "blurred")


def _start(state: Session, made: Blurred, real: Table) -> None:
    record = payment.diagnosed(state, None)

    def work(report: Any) -> dict[str, Any]:
        record([real])  # before anything is computed: who has looked cannot undo it
        report(0.1, "Comparing numbers")
        return numbers_of(made.project, real, made.synthetic, None) or {}

    def done(found: dict[str, Any]) -> None:
        if state.blurred is made:
            state.blurred_figures = found

    state.start("diagnostics", work, done, lambda _: None)
