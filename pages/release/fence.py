"""Display of a release's fence: its sides, its measured cost, and a check of one pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from espalier.core.graph.links import link_of, sides
from espalier.core.release.artefact import Release
from espalier.pages.common.text import name, names

MOST_REFUSED = 12


def sides_said(release: Release, bought: Mapping[str, Any] | None) -> None:
    """Show both sides and the gate of each separation, and the refused pairs with the scores that were paid for."""
    project = release.project
    for s in release.plan_frame.separations:
        fair = set(s.left) <= set(project.roles.outcome) and set(s.given) == set(project.roles.admissible)
        heads = ("Protected side", "Gate (admissible)", "Outcome side")
        if not fair or not set(s.right) <= {*project.roles.protected, *project.roles.inadmissible}:
            heads = ("Separated columns", "Linked only through", "Separated from")
        where = sides(project.schema.names, release.edges, s)
        by_side = {k: [n for n, at in where.items() if at == k] for k in ("right", "gate", "left", "free")}
        st.markdown(
            "; ".join(
                f"**{head}**: {names(by_side[k], 40)}"
                for head, k in zip((*heads, "On neither side"), by_side, strict=True)
                if by_side[k]
            )
            + "."
        )
    if not bought:
        st.caption(
            "A red line does not show how strong the link is in the real table, because this plan did not "
            "pay for that figure."
        )
        return
    scores = "; ".join(
        f"{' – '.join(map(name, x['columns']))} {x['score']:,.0f}" for x in bought["refused"][:MOST_REFUSED]
    )
    st.caption(f"Refused pairs with their noisy scores in rows, which the budget paid for: {scores}.")


def given_up(bought: Mapping[str, Any] | None) -> None:
    """Show the cost of the fence according to the bought scores."""
    if not bought:
        return
    q = bought["q"]
    share = 100 * max(q["given_up"], 0.0) / q["free"] if q["free"] > 0 else 0.0
    joining = "; ".join(" – ".join(map(name, pair)) for pair in q["would_join"])
    st.markdown(
        f"**Cost of the fence** (measured with budget): it removed about **{share:.0f} %** of the association "
        "that the tree could have kept. "
        + (
            f"Without the fence, the tree would also link: {joining}."
            if joining
            else "Without the fence, the tree would link the same pairs."
        )
    )


def ask(release: Release) -> None:
    """Explain why two columns are connected, or why they are not."""
    project = release.project
    columns, roles = list(project.schema.names), project.roles
    if len(columns) < 2:
        return
    far = next((n for n in (*roles.inadmissible, *roles.protected, *columns)), columns[0])
    near = next((n for n in (*roles.outcome, project.plan.target, *reversed(columns)) if n and n != far), columns[-1])
    st.markdown("**Why are two columns connected, or why not?**")
    a, b = st.columns(2)
    first = a.selectbox("First column", columns, index=columns.index(far), key="ask-a")
    second = b.selectbox("Second column", columns, index=columns.index(near), key="ask-b")
    if first == second:
        st.info("Choose two different columns.")
    elif first and second:
        st.markdown(link_of(first, second, release.edges, release.plan_frame.separations).sentence(name))
