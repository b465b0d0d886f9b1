"""Error bounds for the target on the Plan page, with assumptions that the reader can change."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from espalier.core.planning.error_bounds import excess_risk
from espalier.core.project.plan import Plan
from espalier.pages.common import text


def show(tree: float, features: int, inputs: Mapping[str, float], plan: Plan) -> None:
    """Show the bound for the columns counted with the target, and the bound for a model trained on the table."""
    with st.expander("Theoretical bounds for the target"):
        st.markdown("These **bounds** are a worst case. For decisions, use the expected error.")
        left, right = st.columns(2)
        loss = left.number_input(
            "Largest loss",
            0.01,
            1000.0,
            float(inputs["loss"]),
            key="promise-loss",
            help="The largest loss of one prediction. It is 1 for the 0–1 loss.",
        )
        norm = right.number_input(
            "Largest norm of the model's weights",
            0.01,
            1000.0,
            float(inputs["norm"]),
            key="promise-norm",
            help="The bound applies to a linear model on one-hot columns. Regularisation keeps this norm small.",
        )
        risk = excess_risk(tree, features, inputs["rows"], loss, norm, inputs["beta"] / 2)
        in_tree = (
            "the bound on the share of rows in the wrong cell is above 100 %, so it is **vacuous**"
            if tree > 1
            else f"at most **{100 * tree:.1f} %** of the rows are in the wrong cell"
        )
        trained = (
            "the bound on its excess risk is above the largest loss, so it is **vacuous**"
            if risk > loss
            else f"its risk exceeds the best possible risk by at most **{risk:.3f}**"
        )
        st.markdown(
            f"- For the joint table of {text.name(plan.target or '')} and the {features} columns counted with it, "
            f"{in_tree}. This assumes a table made from these pairs alone, in which the columns depend on each other "
            "only through the target. The bound is (2|T| − 1) times the largest bound of a pair.\n"
            f"- For a model trained on {inputs['rows']:,.0f} synthetic rows, {trained} (PRISM, Theorem 6.2)."
        )
