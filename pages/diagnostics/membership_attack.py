"""The membership game for the released plan: introduction, target rows, and the success of each attack."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from espalier.core.compare.membership import MODELS, Played, play, rows_of
from espalier.core.errors import EspalierError
from espalier.core.evaluation.membership.attack import BLIND_BELOW
from espalier.core.evaluation.membership.game import TARGETS
from espalier.core.tables.table import Table
from espalier.pages.common import charts
from espalier.pages.common.text import plain
from espalier.pages.session.bundles import ReleaseBundle

INTRODUCTION = (
    "Could an attacker infer from the synthetic table whether one person's row was in the real one? A game answers "
    f"this. The attacker sees {MODELS} tables, each released under this plan from half of up to 1,000 real rows, and "
    "guesses which rows were used. The tables are created only for the game and then deleted. The game takes minutes."
)


def rows_field(number: int) -> str:
    """Show the field for the rows to attack, and return its text."""
    return st.text_input(
        "Rows to attack",
        key=f"attack-rows-{number}",
        placeholder=f"{TARGETS} rows, half of them outliers",
        help="Leave this field empty, or list at least two row numbers, such as 3, 17, 250. The first row is 1.",
    )


def work(released: ReleaseBundle, real: Table, rows: str, report: Any) -> Played:
    """Play the game as a background job; ``rows`` is the text that the user typed."""
    words = rows.replace(",", " ").split()
    if wrong := next((word for word in words if not word.isdecimal()), ""):
        raise EspalierError(f"{wrong!r} is not a row number; use numbers such as 3, 17, 250")
    targets = [int(word) - 1 for word in words] or TARGETS
    project = released.release.project.with_plan(
        delta=released.release.budget.delta
    )  # row numbers refer to the whole table, not to these rows
    return play(project, real, np.random.default_rng(), targets=targets, report=report)


def show(played: Played) -> None:
    """Show the verdict, the figures, and how to read them."""
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
                "real rows published (control)": [r["AUC, published rows"] for r in rows],
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
        column_config={
            k: st.column_config.NumberColumn(format="%.3f") for k in rows[0] if k not in ("attack", "conclusion")
        },
    )
    st.markdown(
        f"**How to read it.** {played.game} An AUC of 0.5 means chance; an AUC of 1 means that the attack is always "
        "right. Advantage is the true-positive rate minus the false-positive rate; an advantage of 0 means chance. "
        "The intervals come from resampled tables and rows. The budget allows an AUC of at most about "
        f"{played.top:.3f} in this game. The control publishes the rows themselves, and the main attack recognises "
        f"them with AUC {control:.3f}. If this AUC were below {BLIND_BELOW:g}, the attack would be blind, and its "
        "failure would prove nothing."
    )
