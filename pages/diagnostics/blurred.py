"""Compare rows that are not private with the real rows, figure by figure."""

from __future__ import annotations

from typing import Any

import streamlit as st

from espalier.core.blurring.notice import NOT_PRIVATE
from espalier.core.evaluation.numeric_fidelity import numbers_of
from espalier.pages.common import shell
from espalier.pages.common.text import name, plain
from espalier.pages.diagnostics import numeric_columns, price_elasticities
from espalier.pages.release import payment
from espalier.pages.session.bundles import BlurredBundle
from espalier.pages.session.session import Session


def show(state: Session, blurred: BlurredBundle) -> None:
    """Describe the rows and show the comparison on request."""
    made = blurred.made
    st.error(
        f"**{NOT_PRIVATE}.** These rows are close to the real ones, but closeness alone does not make a good release."
    )
    st.markdown(
        f"The comparison uses the {made.rows:,} rows that this method last made from {name(made.project.name)}."
    )
    if state.job is not None:
        shell.progress()
    elif blurred.figures is None:
        st.button(
            "Compare with the real rows",
            type="primary",
            on_click=_start,
            args=(state, blurred),
            icon=":material/monitoring:",
        )
    if reason := state.trouble.get("diagnostics"):
        st.error(f"The comparison did not finish: {plain(reason)}")
    if blurred.figures is not None:
        (place,) = st.tabs(["Numbers"])
        with place:
            numeric_columns.show({"numbers": blurred.figures}, made.project.schema)
            price_elasticities.show(made.project, (blurred.real, made.synthetic), "blurred")


def _start(state: Session, blurred: BlurredBundle) -> None:
    made, real = blurred.made, blurred.real
    record = payment.diagnosed(state, None)

    def work(report: Any) -> dict[str, Any]:
        record([real])  # recorded before anything is computed, because an evaluation cannot be undone
        report(0.1, "Comparing numbers")
        return numbers_of(made.project, real, made.synthetic, None) or {}

    def done(_: Session, found: dict[str, Any]) -> None:
        blurred.figures = found

    state.start("diagnostics", work, done, outlives=False)
