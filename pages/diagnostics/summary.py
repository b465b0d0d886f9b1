"""Verdict at the top of the Diagnostics page: suitable and unsuitable uses of the table, with the evidence.
Confidential.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from espalier.core.evaluation.verdict import Grade, verdict
from espalier.core.project.file import Project
from espalier.pages.common.text import plain

_LOOKS = {
    "good": (st.success, ":material/thumb_up:"),
    "fair": (st.warning, ":material/thumbs_up_down:"),
    "poor": (st.error, ":material/thumb_down:"),
    "unknown": (st.info, ":material/help:"),
}


def show_grade(grade: Grade, headline: str) -> None:
    """Show the first sentence in a box with the colour of its grade."""
    box, icon = _LOOKS[grade]
    box(f"**{plain(headline)}**", icon=icon)


def show(project: Project, findings: Mapping[str, Mapping[str, Any]]) -> None:
    """Show the first finding in a box, the other findings below, and the figures of all places next to each other. The
    first finding is about the place where the real rows were collected.
    """
    (_, facts), *rest = findings.items()
    found = verdict(project, facts, dict(rest))
    show_grade(found.grade, found.headline)
    st.markdown("\n".join(f"- {plain(s)}" for s in found.sentences))
    if rest:
        st.dataframe(
            [
                {
                    "tested on": where,
                    "TSTR: AUC, trained on synthetic": there["tstr"]["auc_synthetic"],
                    "AUC, trained on real": there["tstr"]["auc_real"],
                    "rows": there["tstr"]["tested_rows"],
                }
                for where, there in findings.items()
            ],
            hide_index=True,
            column_config={
                k: st.column_config.NumberColumn(format="%.3f")
                for k in ("TSTR: AUC, trained on synthetic", "AUC, trained on real")
            },
        )
