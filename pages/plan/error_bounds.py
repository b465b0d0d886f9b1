"""Error bounds for the target on the Plan page, with the assumptions that the reader can change."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from espalier.core.planning.error_bounds import excess_risk
from espalier.core.project.plan import Plan
from espalier.pages.common import text


def show(tree: float, features: int, inputs: Mapping[str, float], plan: Plan) -> None:
    """Show the bound for the columns counted with the target, and for a model trained on the table."""
    with st.expander("Theoretical bounds for the target"):
        st.markdown("These **bounds** are a worst case. For decisions, use the expected error.")
        left, right = st.columns(2)
        loss = left.number_input(
            "The loss is at most", 0.01, 1000.0, float(inputs["loss"]), key="promise-loss", help="0–1 loss: 1."
        )
        norm = right.number_input(
            "The model's weights have a norm of at most",
            0.01,
            1000.0,
            float(inputs["norm"]),
            key="promise-norm",
            help="Of a linear model on one-hot columns; a regularised fit keeps it small.",
        )
        risk = excess_risk(tree, features, inputs["rows"], loss, norm, inputs["beta"] / 2)
        st.markdown(
            f"- {text.name(plan.target or '')} and the {features} columns counted with it, all together: "
            f"{_bound(tree)} of the rows in the wrong cell, for a table made from these pairs alone whose columns "
            "depend on each other through the target only ((2|T| − 1) times the largest bound of a pair).\n"
            f"- A model trained on {inputs['rows']:,.0f} synthetic rows: its risk is above the best possible by at "
            f"most **{'a vacuous bound' if risk > loss else f'{risk:.3f}'}** (PRISM, Theorem 6.2)."
        )


def _bound(value: float) -> str:
    return "a **vacuous** bound (above 100 %)" if value > 1 else f"at most **{100 * value:.1f} %**"
