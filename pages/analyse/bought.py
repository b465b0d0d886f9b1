"""Results included in a release: bought regressions and planned analyses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from espalier.core.analysis.regression_text import about, interval
from espalier.core.analysis.survival_table import about as about_survival
from espalier.core.analysis.survival_table import compared, shown, survival_tables
from espalier.pages.common.text import plain


def show_planned(listed: Sequence[Mapping[str, Any]]) -> None:
    """Show the planned analyses of a release with promised and achieved half-widths; nothing if it has none."""
    if not listed:
        return
    with st.expander("Planned analyses", expanded=True):
        st.dataframe(
            [
                {
                    "analysis": one["name"],
                    "figure": one["kind"].replace("_", " "),
                    "estimate": one["value"],
                    "low (95 %)": one["low"],
                    "high (95 %)": one["high"],
                    "promised ±": one["promised"],
                    "reached ±": one["reached"],
                }
                for one in listed
            ],
            hide_index=True,
            width="stretch",
        )
        st.caption("Half-widths of odds ratios are on the log scale.")
    for one in survival_tables(listed):
        with st.expander(f"Survival: {plain(one['name'])}", expanded=True):
            st.markdown(f"{plain(about_survival(one))} {plain(compared(one))}")
            st.dataframe(
                [
                    {
                        **({"group": part["group"]} if one.get("group") else {}),
                        one["time"]: part["interval"],
                        "at risk": max(part["at_risk"], 0),
                        "hazard (95 %)": shown(part, "hazard"),
                        "survival at its end (95 %)": shown(part, "survival"),
                    }
                    for part in one["table"]
                ],
                hide_index=True,
                width="stretch",
                column_config={"at risk": st.column_config.NumberColumn(format="%.0f")},
            )


def show(listed: Sequence[Mapping[str, Any]]) -> None:
    """Show the bought regressions of a release; nothing if it bought none."""
    if not listed:
        return
    with st.expander("Bought regressions", expanded=True):
        for one in listed:
            st.markdown(plain(about(one)))
            st.dataframe(
                [
                    {"term": part["term"], "value": part["value"], "95 % interval": interval(part)}
                    for part in one["coefficients"]
                ],
                hide_index=True,
                width="stretch",
                column_config={"value": st.column_config.NumberColumn(format="%.4g")},
            )
