"""The membership attack on the released plan: its introduction, its target rows, and the success of each attack."""

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
from espalier.pages.session.session import ReleaseBundle

INTRODUCTION = (
    "Could an attacker infer from the synthetic table whether one person's row was in the real one? A game answers "
    f"this. The attacker sees {MODELS} tables, each released under this plan from half of up to 1,000 real rows, and "
    "guesses which rows were in. The tables are created only for the game, then deleted. It takes minutes."
)


def rows_field(number: int) -> str:
    """Return the rows to attack, as typed."""
    return st.text_input(
        "Rows to attack",
        key=f"attack-rows-{number}",
        placeholder=f"{TARGETS} rows, half of them outliers",
        help="Leave it empty, or list at least two row numbers, counted from 1: 3, 17, 250.",
    )


def work(released: ReleaseBundle, real: Table, rows: str, report: Any) -> Played:
    """The game, in a job; ``rows`` as they were typed."""
    words = rows.replace(",", " ").split()
    if wrong := next((word for word in words if not word.isdecimal()), ""):
        raise EspalierError(f"{wrong!r} is not a row number; use numbers such as 3, 17, 250")
    targets = [int(word) - 1 for word in words] or TARGETS
    project = released.release.project.with_plan(
        delta=released.release.budget.delta
    )  # row numbers refer to the whole table, not to these rows
    return play(project, real, np.random.default_rng(), targets=targets, report=report)


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
        f"**How to read it.** {played.game} AUC 0.5 is a coin toss, 1 is always right. Advantage is the "
        "true-positive rate minus the false-positive rate: 0 is chance. The intervals resample tables "
        f"and rows. The budget allows an AUC of at most about {played.top:.3f} in this game. The control publishes the "
        f"rows themselves, and the main attack recognises them with AUC {control:.3f}: below {BLIND_BELOW:g} the "
        f"attack would be blind and prove nothing."
    )
