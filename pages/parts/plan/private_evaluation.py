"""Private figures: what they will cost and how sharp they will be, and what they are. Apart from all that is not."""

from __future__ import annotations

import json

import streamlit as st

from core.evaluation.private.figures import PrivateEvaluation, PrivateFigure
from core.privacy.accounting import round_up
from core.release.planning import Preview
from pages.parts.plan import measured
from pages.parts.text import name, plain

FIGURES = {
    "accuracy": "Accuracy",
    "auc": "AUC",
    "one_way_tv": "One-way error",
    "cmi": "Dependence left in the real table",
}
MEANING = (
    "**How to read it.** A model trained on the synthetic rows guesses the target of real rows that the release never "
    "saw: *accuracy* is the share it gets right, *AUC* how well it ranks them (0.5 is a coin toss, 1 is perfect). "
    "*One-way error* is how far a column's shares are off, mean over columns (total variation, 0 is equal). "
    "*Dependence* is what the outcome tells about protected columns beyond the admissible ones, in nats (0 is none). "
    "Each interval holds the figure of the whole population in 95 of 100 cases, noise and sampling together."
)


def planned(seen: Preview) -> None:
    """On the Plan page: what will be paid for, and how sharp the figures will be."""
    if not seen.private_evaluation:
        return
    st.subheader("Private figures", anchor=False)
    share, by = seen.project.plan.private_evaluation, "people" if seen.project.plan.person else "rows"
    st.markdown(
        f"{100 * share:.3g} % of the {by} are held out by lot and used to judge the release, for the same "
        f"ρ = {round_up(seen.spent)} once more. **That adds nothing to the bill**: nobody is in both parts."
    )
    expected = [_expected(f) for f in seen.expected]
    if expected:
        wide = {"": st.column_config.TextColumn(width=190)}
        st.dataframe(expected, hide_index=True, width="stretch", column_config=wide)
        st.caption(
            "Expected before any row is read, for a model that guesses and a target with even shares; the real "
            "intervals are narrower or wider by a half or so."
        )
    with st.expander(f"All {len(seen.private_evaluation)} measurements of the {by} held out"):
        measured.table(seen.private_evaluation, "those")


def _expected(figure: PrivateFigure) -> dict[str, str]:
    if figure.value is None or figure.high is None or figure.low is None:
        return {"": FIGURES[figure.name], "expected": f"not to be had: {figure.reason}"}
    if figure.name in ("one_way_tv", "cmi"):
        return {"": FIGURES[figure.name], "expected": f"at most about {figure.high:.3f} where the truth is 0"}
    return {"": FIGURES[figure.name], "expected": f"± {(figure.high - figure.low) / 2:.3f}"}


def show(evaluation: PrivateEvaluation, stem: str) -> None:
    """On the Diagnostics page: the figures, with their intervals, marked as what may be shared."""
    with st.container(border=True):
        st.markdown("#### :material/share: Private figures: these may leave the building")
        of = f", predicting {name(evaluation.target)}" if evaluation.target else ""
        st.markdown(
            f"Differentially private, from noisy counts of {100 * evaluation.share:.3g} % of the "
            f"{'people' if evaluation.by == 'person' else 'rows'}, held out by lot (about {evaluation.rows:,} rows)"
            f"{of}. They cost ρ = {round_up(evaluation.rho)} on those alone, which adds nothing to what the release "
            "spent."
        )
        there = [f for f in evaluation.figures if f.value is not None]
        with st.container(horizontal=True, gap="large"):
            for f in there:
                with st.container(width="content", gap=None):
                    st.metric(FIGURES[f.name], f"{f.value:.3f}", width="content", help=plain(f.method))
                    st.caption(f"95 % interval: {f.low:.3f} to {f.high:.3f}")
        for f in evaluation.figures:
            if f.value is None:
                st.caption(f"{FIGURES[f.name]}: not shown, {plain(f.reason)}.")
        if any(f.name == "accuracy" for f in there):
            guess = evaluation.accuracy_baseline
            st.markdown(
                f"Beside accuracy: always guessing the commonest value gives about **{guess:.3f}**, by the same noisy "
                "counts."
                if guess is not None
                else "Beside accuracy: these counts do not say what always guessing the commonest value gives; its "
                "share in the synthetic table tells about as much."
            )
        st.markdown(MEANING)
        st.download_button(
            "Download these figures (private)",
            json.dumps(evaluation.to_json(), indent=1, ensure_ascii=False, allow_nan=False),
            file_name=f"{stem}-private-figures.json",
            mime="application/json",
            on_click="ignore",
            icon=":material/download:",
        )
