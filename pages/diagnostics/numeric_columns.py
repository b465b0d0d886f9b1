"""Numeric columns compared as numbers: distance, quantiles, correlation, and a regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from espalier.core.project.schema import Schema
from espalier.pages.common.text import name, plain

Facts = Mapping[str, Any]


def show(found: Facts, schema: Schema) -> None:
    """Show all figures, or the reason why they are missing."""
    facts = found.get("numbers")
    if not facts:
        st.info(f"There are no numbers to compare: {plain(found.get('numbers_reason', 'they were not computed'))}.")
        return
    _regression(facts)
    _distances(facts, schema)
    _quantiles(facts)


def _regression(facts: Facts) -> None:
    if "target" not in facts:
        return
    st.subheader(
        f"Predicting the number {plain(facts['target'])}",
        anchor=False,
        help="Two random forests of the same kind, one trained on synthetic and one on real rows, both tested on real "
        "rows. An R² of 1 is perfect; 0 is no better than always predicting the mean. Without a holdout, each "
        "tree of the real forest is tested on rows that it did not see.",
    )
    if "r2_synthetic" not in facts:
        st.info(f"There is no regression: {plain(facts['r2_reason'])}.")
        return
    error = f"mean absolute error (in the unit of {facts['target']})"
    st.dataframe(
        [
            {"trained on": f"{which} rows", "R²": facts[f"r2_{which}"], error: facts[f"mae_{which}"]}
            for which in ("synthetic", "real")
        ],
        hide_index=True,
        column_config={"R²": st.column_config.NumberColumn(format="%.3f")}
        | {error: st.column_config.NumberColumn(format="%.4g")},
    )


def _distances(facts: Facts, schema: Schema) -> None:
    st.subheader(
        "How far apart are the values?",
        anchor=False,
        help="The distance is how far values must move, on average, to turn the synthetic column into the real "
        "one (Wasserstein distance, in the column's own unit); 0 means equal. Spread is the synthetic "
        "standard deviation divided by the real one; 1 means equal.",
    )
    st.dataframe(
        [
            {
                "column": c["name"],
                "mean distance": c["wasserstein"],
                "unit": "days" if schema[c["name"]].dates else "the column's",
                "distance (% of the range)": 100 * c["relative"],
                "spread": c["spread"],
            }
            for c in sorted(facts["columns"], key=lambda c: -c["relative"])
        ],
        hide_index=True,
        column_config={
            "mean distance": st.column_config.NumberColumn(format="%.4g"),
            "distance (% of the range)": st.column_config.NumberColumn(format="%.2f"),
            "spread": st.column_config.NumberColumn(format="%.2f"),
        },
    )
    if "largest_correlation_difference" in facts:
        one, other = facts["largest_correlation_pair"]
        largest = facts["largest_correlation_difference"]
        st.markdown(
            f"**Rank correlation** differs by at most {largest:.3f}"
            + (f", between {name(one)} and {name(other)}." if largest > 0 else ".")
            + " It ranges from −1 to 1; 0 means no monotone link."
        )


def _quantiles(facts: Facts) -> None:
    columns = {c["name"]: c for c in facts["columns"]}
    if not columns:
        return
    st.subheader("Quantiles", anchor=False)
    one = st.selectbox("Column", list(columns), key="look-quantiles")
    if one not in columns:
        return
    shown = {which: [_written(x) for x in columns[one][which]] for which in ("real", "synthetic")}
    st.dataframe(
        [
            {"quantile": f"{100 * share:g} %", "real": real, "synthetic": synthetic}
            for share, real, synthetic in zip(facts["quantiles"], shown["real"], shown["synthetic"], strict=True)
        ],
        hide_index=True,
    )


def _written(value: float | str) -> str:
    """Format a number. Dates are already text and stay unchanged."""
    return value if isinstance(value, str) else f"{value:,.5g}"
