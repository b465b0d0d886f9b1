"""The membership attack on the released plan: the game in words, its control, and what each attack reached."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from core.compare.membership import MODELS, Played, play, rows_of
from core.evaluation.membership.attack import BLIND_BELOW
from pages.parts import charts
from pages.parts.session.session import ReleaseBundle
from pages.parts.text import plain

INTRODUCTION = (
    "Could somebody tell from the synthetic table whether one person's row was in the real one? A game answers it. The "
    f"attacker sees {MODELS} tables, each released under this plan from half of up to 1,000 real rows, and guesses "
    "which rows were in. Half of the 20 rows that are attacked are outliers. The tables are drawn for the game alone "
    "and thrown away. It takes minutes."
)


def work(released: ReleaseBundle, report: Any) -> Played:
    """The game, in a job."""
    assert released.real is not None
    return play(released.release.project, released.real, np.random.default_rng(), report=report)


def show(played: Played) -> None:
    """The verdict, the figures, and how to read them."""
    control = played.control[0].auc.value
    if played.blind:
        st.error(plain(played.verdict))
    else:
        (st.warning if played.verdicts[0].auc.low > 0.5 else st.success)(plain(played.verdict))
    rows = rows_of(played)
    charts.show(
        charts.lying(
            [r["attack"] for r in rows],
            {
                "this plan": [r["AUC"] for r in rows],
                "real rows published (control)": [r["AUC on published rows"] for r in rows],
            },
            "AUC (0.5: chance, 1: always right)",
            (charts.SYNTHETIC, charts.REAL),
        ),
        "attack-auc",
        "AUC of each attack on releases of this plan and on published rows",
    )
    st.dataframe(
        rows,
        hide_index=True,
        column_config={k: st.column_config.NumberColumn(format="%.3f") for k in rows[0] if k != "attack"},
    )
    st.markdown(
        f"**How to read it.** {played.game} AUC 0.5 is a coin toss, 1 is always right. The intervals resample tables "
        f"and rows. The budget allows an AUC of about {played.top:.3f} at most in this game. The control publishes "
        f"the rows themselves, and the main attack tells these with AUC {control:.3f}: below {BLIND_BELOW:g} it would "
        "be blind, and prove nothing."
    )
