"""Private evaluation: its cost and precision before the release, and its figures afterwards."""

from __future__ import annotations

import json

import streamlit as st

from espalier.core.evaluation.private.evaluation import PrivateEvaluation, PrivateFigure, bounded
from espalier.core.planning.preview import Preview
from espalier.core.privacy.accounting import round_up
from espalier.pages.common.text import SAFE, name, plain
from espalier.pages.glossary.terms import term
from espalier.pages.plan import measurement_table

FIGURES = {
    "accuracy": "TSTR accuracy",
    "auc": "TSTR AUC",
    "one_way_tv": "One-way error",
    "cmi": "CMI in the real table",
}
MEANING = (
    f"**How to read it.** {term('TSTR')}: a model trained on the synthetic rows predicts the target of real rows that "
    "the release never saw. *Accuracy* is the share of correct predictions. *AUC* measures how well it ranks them: 0.5 "
    "is a coin toss, 1 is perfect. *One-way error* is the mean error of a column's shares (total variation). "
    f"{term('CMI')} is how much the outcome reveals about protected columns beyond the admissible ones (nats). "
)
INTERVALS = "Each interval contains the true figure in 95 of 100 cases."


def planned(seen: Preview) -> None:
    """On the Plan page: the planned figures and their expected precision."""
    if not seen.private_evaluation:
        return
    st.subheader(
        "Private evaluation",
        anchor=False,
        help="These figures are predicted before any row is read. The actual intervals may be up to 50 % narrower or "
        "wider.",
    )
    share, by = seen.project.plan.private_evaluation, "people" if seen.project.plan.person else "rows"
    st.markdown(
        f"{100 * share:.3g} % of the {by}, chosen at random, are held out to judge the release "
        f"(ρ = {round_up(seen.spent)}). **This adds no privacy cost**: the release itself does not use them."
    )
    expected = [_expected(f) for f in seen.expected]
    if expected:
        wide = {"": st.column_config.TextColumn(width=190)}
        st.dataframe(expected, hide_index=True, width="stretch", column_config=wide)
        st.markdown(MEANING)
    with st.expander(f"All {len(seen.private_evaluation)} measurements on the held-out {by}"):
        measurement_table.table(seen.private_evaluation, f"held-out {by}")


def _expected(figure: PrivateFigure) -> dict[str, str]:
    if figure.value is None or figure.high is None or figure.low is None:
        return {"": FIGURES[figure.name], "expected": f"not available: {figure.reason}"}
    if figure.name in ("one_way_tv", "cmi"):
        about = f", {figure.about}" if figure.about else ""
        return {"": FIGURES[figure.name] + about, "expected": f"at most about {figure.high:.3f} if the true value is 0"}
    return {"": FIGURES[figure.name], "expected": f"± {(figure.high - figure.low) / 2:.3f}"}


def show(evaluation: PrivateEvaluation, stem: str) -> None:
    """On the Diagnostics page: the figures, with their intervals, marked as safe to share."""
    with st.container(border=True):
        st.markdown(f"#### Private evaluation {SAFE}")
        of = f" The target is {name(evaluation.target)}." if evaluation.target else ""
        st.markdown(
            f"The figures come from noisy counts of {100 * evaluation.share:.3g} % of the "
            f"{'people' if evaluation.by == 'person' else 'rows'}, chosen at random (about {evaluation.rows:,} rows)."
            f"{of} These checks used separate, held-out people, so they add no privacy cost."
        )
        there = [f for f in evaluation.figures if f.value is not None]
        with st.container(horizontal=True, gap="large"):
            for f in there:
                st.metric(
                    FIGURES[f.name],
                    f"{f.value:.3f}",
                    f"95 % interval: {f.low:.3f} to {f.high:.3f}",
                    delta_color="off",
                    delta_arrow="off",
                    width="content",
                    help=plain(f.method),
                )
        for f in evaluation.figures:
            if f.about:
                st.caption(f"{FIGURES[f.name]}: {plain(f.about)}.")
            if f.value is None:
                st.caption(f"{FIGURES[f.name]}: not shown, {plain(f.reason)}.")
            if said := bounded(f.to_json()):
                st.caption(said)
        if any(f.name == "accuracy" for f in there):
            guess = evaluation.accuracy_baseline
            st.markdown(
                f"For comparison, always guessing the most common value gives an accuracy of about **{guess:.3f}**, "
                "according to the same noisy counts."
                if guess is not None
                else "These counts do not show the accuracy of always guessing the most common value. That value's "
                "share in the synthetic table is a good estimate."
            )
        st.markdown(MEANING + INTERVALS)
        st.download_button(
            "Download private evaluation",
            json.dumps(evaluation.to_json(), indent=1, ensure_ascii=False, allow_nan=False),
            file_name=f"{stem}-figures.json",
            mime="application/json",
            on_click="ignore",
            icon=":material/download:",
        )
