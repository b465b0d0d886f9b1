"""The fence of a release on screen: its picture, its measured cost, and the check of one pair."""

from __future__ import annotations

import streamlit as st

from espalier.core.graph.links import link_of, sides
from espalier.core.graph.separations import Clique
from espalier.core.release.artefact import Release
from espalier.pages.common import charts
from espalier.pages.common.text import name, names
from espalier.pages.release import fence_picture

MOST_REFUSED = 12


def picture(release: Release) -> None:
    """Both sides of a separation and its gate, the measured pairs through it, the refused ones dashed."""
    project, separations = release.project, release.plan_frame.separations
    s = separations[0]
    if len(separations) > 1:
        number = st.selectbox(
            "Separation",
            range(len(separations)),
            format_func=lambda i: separations[i].why or f"{i + 1}",
            key="fence-of",
            help="This plan has several; each is drawn on its own.",
        )
        s = separations[number or 0]
    fair = set(s.left) <= set(project.roles.outcome) and set(s.given) == set(project.roles.admissible)
    heads = ("Protected side", "Gate (admissible)", "Outcome side")
    if not fair or not set(s.right) <= {*project.roles.protected, *project.roles.inadmissible}:
        heads = ("Kept apart", "Gate", "From this" if len(s.left) == 1 else "From these")
    bought = release.to_json().get("explained")
    refused: list[tuple[Clique, float | None]]
    if bought:
        refused = [((x["columns"][0], x["columns"][1]), x["score"]) for x in bought["refused"][:MOST_REFUSED]]
    else:
        refused = [(pair, None) for pair in refused_pairs(release)]
    figure = fence_picture.draw(project.schema.names, release.edges, s, project.roles, refused, heads)
    charts.show(figure, "release-fence", f"The fence: {len(release.edges)} measured pairs, all listed as text below")
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
    st.caption(
        "Figures on dashed lines: noisy scores in rows, which this plan paid for."
        if bought
        else "A dashed line does not show how strong that link is in the real table: this plan did not pay for that. "
        "Not all refused pairs are drawn."
    )


def given_up(release: Release) -> None:
    """What the scores that were paid for say."""
    bought = release.to_json().get("explained")
    if not bought:
        return
    q = bought["q"]
    share = 100 * max(q["given_up"], 0.0) / q["free"] if q["free"] > 0 else 0.0
    joining = "; ".join(" – ".join(map(name, pair)) for pair in q["would_join"])
    st.markdown(
        f"**What the fence gave up** (paid for from the budget): it removed about **{share:.0f} %** of the association "
        "that the tree could have kept. " + (f"Pairs that would join: {joining}." if joining else "No pair would join.")
    )


def ask(release: Release) -> None:
    """Why are two columns connected, or not?"""
    project = release.project
    columns, roles = list(project.schema.names), project.roles
    if len(columns) < 2:
        return
    far = next((n for n in (*roles.inadmissible, *roles.protected, *columns)), columns[0])
    near = next((n for n in (*roles.outcome, project.plan.target, *reversed(columns)) if n and n != far), columns[-1])
    st.markdown("**Why are two columns connected, or why not?**")
    a, b = st.columns(2)
    first = a.selectbox("One column", columns, index=columns.index(far), key="ask-a")
    second = b.selectbox("Another column", columns, index=columns.index(near), key="ask-b")
    if first == second:
        st.info("Choose two different columns.")
    elif first and second:
        st.markdown(link_of(first, second, release.edges, release.plan_frame.separations).sentence(name))


def refused_pairs(release: Release, most: int = MOST_REFUSED) -> list[tuple[str, str]]:
    """Pairs that the frame forbids, those at the target or an outcome first."""
    project, frame = release.project, release.plan_frame
    first = {*project.roles.outcome, project.plan.target}
    out = []
    for s in frame.separations:
        pairs = [(a, b) for a in s.left for b in s.right]
        out += sorted(pairs, key=lambda p: (p[0] not in first, p[1] not in project.roles.protected))
    return list(dict.fromkeys(out))[:most]
