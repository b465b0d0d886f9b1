"""Table of all measurements and choices of a plan or release with their noise, the most important first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from espalier.core.methods.pools import pool_in_words
from espalier.core.planning.budget_lines import Line, grouped, not_in_rows
from espalier.pages.common.text import plain

HIGHEST = 420
"""Maximum height in pixels; a longer table scrolls."""


def table(bought: Sequence[Line], of: str = "n") -> None:
    """Show the table. Errors and bounds are relative to the total named ``of``. Empty columns are left out. If the unit
    of σ is not rows, a sentence below the table states it.
    """
    rows = grouped(bought)
    error, bound = f"error (% of {of})", f"bound (% of {of})"
    columns: dict[str, list[Any]] = {
        "what": [f"{x.what} ({times} times)" if times > 1 else x.what for times, x in rows],
        "paid for": [pool_in_words(x.pool) for _, x in rows],
        "σ (rows)": [x.sigma for _, x in rows],
        error: [None if x.error is None else 100 * x.error for _, x in rows],
        "ρ (each)": [x.rho for _, x in rows],
        "cells": [x.cells for _, x in rows],
        bound: [None if x.bound is None else 100 * x.bound for _, x in rows],
    }
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    st.dataframe(
        {name: cells for name, cells in columns.items() if any(c is not None for c in cells)},
        hide_index=True,
        placeholder="",
        width="stretch",
        height=min(36 * (len(rows) + 1) + 4, HIGHEST),
        column_config={
            "what": text(width=285 if any(x.error is None for _, x in rows) else 195),
            "σ (rows)": number(format="%.1f", width=70),
            error: number(format="%.3f", width=100),
            "ρ (each)": number(format="%.3g", width=78),
            "cells": number(width=52),
            bound: number(format="%.1f", width=104),
            "paid for": text(width=168),
        },
    )
    if other := not_in_rows(bought):
        st.caption(plain(other))
