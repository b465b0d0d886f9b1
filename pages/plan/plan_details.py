"""Details of a plan: its budget, every measurement and choice, memory and time."""

from __future__ import annotations

import streamlit as st

from espalier.core.methods import method_of
from espalier.core.methods.pools import pool_in_words
from espalier.core.planning.preview import Preview
from espalier.core.privacy.accounting import round_up
from espalier.pages.common import charts, text
from espalier.pages.common.text import plain
from espalier.pages.glossary.terms import term
from espalier.pages.plan import allocation_editor, error_bounds, measurement_table
from espalier.pages.session.session import Session


def show(state: Session, seen: Preview) -> None:
    """Show the details of the previewed plan."""
    plan, pure = seen.project.plan, seen.budget.pure
    with st.container(horizontal=True, gap="large"):
        st.metric("ε (privacy loss)", f"{seen.budget.epsilon:g}", width="content")
        st.metric("δ (failure probability)", round_up(seen.budget.delta), width="content")
        st.metric(
            "ρ (budget spent)",
            round_up(seen.budget.rho),
            width="content",
            help="Zero-concentrated differential privacy: costs in ρ add up. "
            + ("A pure plan costs at most ε²/2." if pure else "This is the largest ρ for this ε and δ."),
        )
        st.metric(
            "Memory",
            text.size(seen.memory.total),
            width="content",
            help=f"Peak memory of the release. The model takes {text.size(seen.memory.model)} of it and has at "
            f"most {seen.size.cells:,} cells."
            + (f" Its junction tree has treewidth {seen.size.treewidth}." if seen.size.treewidth else ""),
        )
        st.metric(
            "Time to fit",
            f"{max(seen.size.seconds, 0.1):.1f} s",
            width="content",
            help="An estimate for the largest model that this plan allows.",
        )
    st.markdown(f"{term('Unit of privacy')}: {text.unit_of(seen.project)}.")
    alone = ", ".join(f"{plain(pool_in_words(pool))} {round_up(epsilon, 2)}" for pool, epsilon in seen.alone.items())
    shares = f"Hover over a segment to see what it pays for. The cost of each pool on its own, in ε: {alone}. " + (
        "These add up to ε." if pure else "Costs in ρ add up; costs in ε do not."
    )
    st.subheader("The budget", anchor=False, help=shares)
    total = seen.budget.epsilon if pure else seen.budget.rho
    charts.show(charts.budget(seen.lines, total, pure=pure), "plan-budget", "Share of the budget by pool")
    with st.expander(f"All {len(seen.lines)} measurements and choices", expanded=True):
        measurement_table.table(seen.lines)
        st.markdown(
            f"Columns on one line are counted together and form one {term('marginal')}. σ is the usual size of the "
            f"{term('noise')} in each cell, in rows. Use the expected error; the bound is a worst case."
        )
    if method_of(plan).offers(plan, "allocation"):
        allocation_editor.show(state, seen)
    if seen.bounds and seen.bounds.tree is not None:
        error_bounds.show(seen.bounds.tree, seen.features, seen.bounds.inputs, plan)
