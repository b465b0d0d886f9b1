"""A release's answers to its questions and counts, as a table and a dot plot. Safe to share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from espalier.core.project.question_list import in_words
from espalier.core.report.question_section import agreement_said, asked_words
from espalier.pages.common import charts
from espalier.pages.common.text import plain

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_DOTS = 60
"""Maximum number of questions in the plot; the table shows all of them."""


def show(facts: Mapping[str, Any], key: str) -> None:
    """Show noisy answers with their intervals, the fitted answers, and the answers of the synthetic rows."""
    questions, counts = facts.get("questions", []), facts.get("counts", [])
    if not questions and not counts:
        return
    st.subheader("Questions and counts", anchor=False)
    words = asked_words(facts["project"])
    if questions:
        charts.show(dots(questions[:MOST_DOTS]), f"{key}-dots", "Answers to each question, with intervals")
        st.dataframe(
            [
                {
                    "question": q["name"],
                    "meaning": in_words(words[q["name"]]) if q["name"] in words else "",
                    "noisy answer": q["answer"],
                    "σ": q["sigma"],
                    "low (95 %)": q["low"],
                    "high (95 %)": q["high"],
                    "fitted": q["fitted"],
                    **({"L∞ projection": q["projected"]} if "projected" in q else {}),
                    "synthetic rows": q["rows"],
                }
                for q in questions
            ],
            hide_index=True,
            width="stretch",
            column_config={
                n: st.column_config.NumberColumn(format="%.0f")
                for n in ("noisy answer", "low (95 %)", "high (95 %)", "fitted", "L∞ projection", "synthetic rows")
            }
            | {"σ": st.column_config.NumberColumn(format="%.1f")},
        )
    for i, count in enumerate(counts):
        last = len(count["answer"]) - 1
        more = last < len(words[count["name"]]["of"])
        st.markdown(f"**{plain(count['name'])}**: {plain(in_words(words[count['name']]))}")
        values = [f"{v}{' or more' if more and v == last else ''}" for v in range(last + 1)]
        series = {"noisy": count["answer"], "fitted": count["fitted"], "synthetic rows": count["rows"]}
        charts.show(
            charts.bars(values, series, "rows", (charts.REAL, charts.MODEL, charts.SYNTHETIC), figures=",.0f"),
            f"{key}-count-{i}",
            f"Rows by the count {count['name']}",
        )
    said = [agreement_said(facts["agreement"])] if facts.get("agreement") else []
    if questions:
        said.insert(0, "Answers are numbers of rows. In 95 of 100 releases, all intervals contain the true answers.")
    if said:
        st.caption(" ".join(said))


def dots(questions: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Draw one line for each question, with the interval of its noisy answer and three dots."""
    import plotly.graph_objects as go

    figure = charts.blank(90 + 26 * len(questions))
    names = [charts.short(q["name"]) for q in questions]
    for which, label, color, symbol in (
        ("answer", "noisy answer, 95 %", charts.REAL, "circle"),
        ("fitted", "fitted", charts.MODEL, "diamond"),
        ("rows", "synthetic rows", charts.SYNTHETIC, "x"),
    ):
        arms = {}
        if which == "answer":
            arms = {
                "type": "data",
                "symmetric": False,
                "array": [max((q["high"] or 0) - (q["answer"] or 0), 0) for q in questions],
                "arrayminus": [max((q["answer"] or 0) - (q["low"] or 0), 0) for q in questions],
            }
        figure.add_trace(
            go.Scatter(
                x=[q[which] for q in questions],
                y=names,
                mode="markers",
                name=label,
                marker={"color": color, "symbol": symbol, "size": 9},
                error_x=arms or None,
                hovertemplate="%{y}: %{x:,.0f} rows<extra>" + label + "</extra>",
            )
        )
    figure.update_xaxes(title="rows")
    figure.update_yaxes(autorange="reversed", title=None)
    return figure
