"""Errors of the synthetic rows on the project's questions, compared with the real rows. Confidential."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from espalier.core.models.base import Model
from espalier.core.release.question_facts import agreement
from espalier.core.report.question_section import agreement_said
from espalier.pages.common import charts
from espalier.pages.common.text import plain


def show(facts: Mapping[str, Any], model: Model) -> None:
    """Show real and synthetic answers to each question, the values of each count, and the best possible agreement."""
    if facts["questions"]:
        st.dataframe(
            [
                {
                    "question": q["name"],
                    "real rows": q["real"],
                    "synthetic rows": q["synthetic"],
                    "difference": q["synthetic"] - q["real"],
                }
                for q in facts["questions"]
            ],
            hide_index=True,
            width="stretch",
            column_config={
                n: st.column_config.NumberColumn(format="%.0f") for n in ("real rows", "synthetic rows", "difference")
            },
        )
    for i, count in enumerate(facts["counts"]):
        st.markdown(f"**{plain(count['name'])}**: {100 * count['tv']:.1f} % of rows differ (total variation)")
        values = [str(v) for v in range(len(count["real"]))]
        series = {"real": count["real"], "synthetic": count["synthetic"]}
        charts.show(
            charts.bars(values, series, "rows", (charts.REAL, charts.SYNTHETIC), figures=",.0f"),
            f"asked-count-{i}",
            f"Rows by the count {count['name']}, real and synthetic",
        )
    best = agreement(model)
    st.caption("Synthetic counts are scaled to the number of real rows." + (f" {agreement_said(best)}" if best else ""))
