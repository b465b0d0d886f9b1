"""Budget shares set by hand: one marginal gets more or less of its pool, and the other marginals share the rest."""

from __future__ import annotations

import streamlit as st

from espalier.core.methods.pools import pool_in_words
from espalier.core.methods.select.allocation import MOST_BY_HAND, label
from espalier.core.planning.budget_lines import Line
from espalier.core.planning.preview import Preview, preview
from espalier.pages.common.text import plain
from espalier.pages.session.session import Session

_WHY = {
    "zcdp": "By default every marginal of a pool gets the same share. Giving more to larger or more important "
    "tables reduces a bound on the error. In our benchmarks, however, it left too little for the many "
    "columns with a weak link to the target, and predictions were no better. You can change the even split below.",
    "basic": "By default a marginal gets a share of ε that grows with the square root of its cell count (PRISM, "
    "Theorem 6.3). Under basic accounting the noise is so large that this split did better in our benchmarks. You can "
    "change it below.",
    "pure": "By default a marginal gets a share of ε that grows with the square root of its cell count. You can change "
    "it below.",
}


def show(state: Session, seen: Preview) -> None:
    """Let the user choose a marginal and set its share, and show the effect on all errors in its pool."""
    plan = state.project.plan
    hand = {} if isinstance(plan.allocation, str) else dict(plan.allocation)
    lines = [line for line in seen.lines if line.columns and len(_pool(seen, line.pool)) > 1]
    with st.expander("Shares set by hand", expanded=bool(hand)):
        st.markdown(_WHY[plan.accounting])
        if not lines:
            st.info(
                "There is nothing to divide, because no pool of this plan has two or more marginals that are "
                "known before the release."
            )
            return
        lines.sort(key=lambda line: (not line.pool.startswith("task"), line.pool == "one-way"))
        names = list(dict.fromkeys(label(line.columns or ()) for line in lines))
        key = f"by-hand-{state.opened}"
        chosen = st.selectbox("Marginal", names, key=key, format_func=lambda n: f"{n} (set)" if n in hand else n)
        line = next(x for x in lines if label(x.columns or ()) == chosen)
        pool = _pool(seen, line.pool)
        now = 100 * line.rho / sum(x.rho for x in pool)

        def take() -> None:
            share = st.session_state[f"{key}-{chosen}"] / 100
            state.editor.change_plan(allocation={**hand, chosen: share})

        def release() -> None:
            rest = {name: share for name, share in hand.items() if name != chosen}
            state.editor.change_plan(allocation=rest or "auto")

        st.session_state[f"{key}-{chosen}"] = min(max(round(now), 1), round(100 * MOST_BY_HAND))
        st.slider(
            f"Share of the pool “{plain(pool_in_words(line.pool))}” (%)",
            1,
            round(100 * MOST_BY_HAND),
            key=f"{key}-{chosen}",
            on_change=take,
            help="The other counts in the pool share the rest.",
        )
        with st.container(horizontal=True):
            st.button("Reset this share", on_click=release, disabled=chosen not in hand)
            st.button(
                "Reset all shares",
                on_click=lambda: state.editor.change_plan(allocation="auto"),
                disabled=not hand,
            )
        _effect(state, seen, line.pool, hand)


def _effect(state: Session, seen: Preview, pool: str, hand: dict[str, float]) -> None:
    """Show each marginal of the pool with its share, its expected error, and its expected error without shares set by
    hand.
    """
    before: dict[str, float | None] = {}
    if hand:
        alone = preview(state.project.with_plan(allocation="auto", delta=seen.budget.delta), state.public_rows)
        before = {label(x.columns or ()): x.sigma for x in _pool(alone, pool)}
    lines = _pool(seen, pool)
    whole = sum(x.rho for x in lines)
    n = state.public_rows
    st.dataframe(
        [
            {
                "marginal": label(x.columns) if x.columns else x.what,
                "share (%)": 100 * x.rho / whole,
                "σ (rows)": x.sigma,
                "default σ (rows)": before.get(label(x.columns or ())) if hand else None,
                "error (% of n)": None if x.error is None or not n else 100 * x.error,
                "set by": "hand" if x.columns and label(x.columns) in hand else "",
            }
            for x in sorted(lines, key=lambda x: -x.rho)
        ],
        hide_index=True,
        placeholder="",
        width="stretch",
        height=min(36 * (len(lines) + 1) + 4, 320),
        column_config={
            "share (%)": st.column_config.ProgressColumn(format="%.1f", min_value=0, max_value=100),
            "σ (rows)": st.column_config.NumberColumn(format="%.1f"),
            "default σ (rows)": st.column_config.NumberColumn(format="%.1f"),
            "error (% of n)": st.column_config.NumberColumn(format="%.3f"),
        },
    )


def _pool(seen: Preview, pool: str) -> list[Line]:
    return [line for line in seen.lines if line.pool == pool and line.cells]
