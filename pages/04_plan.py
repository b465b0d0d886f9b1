"""Plan: method, frame and budget, with a preview of the release. Reads no data."""

from functools import partial

import streamlit as st

from espalier.core.blurring.registry import blurring_of, is_blurring
from espalier.core.errors import EspalierError
from espalier.core.methods import check_options, is_fenced, method_of
from espalier.core.privacy.accounting import guess_right
from espalier.pages.common import shell, sign_in, text
from espalier.pages.common.text import names, plain
from espalier.pages.glossary.terms import TERMS, term
from espalier.pages.plan import (
    analysis_editor,
    conflicts,
    drawing_test,
    plan_details,
    plan_fields,
    private_evaluation,
    question_editor,
    regression_editor,
    verdict,
)
from espalier.pages.release import payment

sign_in.enter("steward")
state = shell.start(
    "Plan",
    f"State what the table is for and how much of the privacy {term('budget')} it may spend. Nothing here reads "
    "the table.",
)
project = shell.need_project(state)
if not is_blurring(project.plan):
    shell.need_unit(state)

spots = plan_fields.show(state)
if project.linked is None or project.question_list or project.plan.question_share:  # linked tables refuse these keys
    spots["questions"] = spots["question_share"] = question_editor.show(state)
if not is_blurring(state.project.plan):
    spots["regressions"] = spots["regression_share"] = regression_editor.show(state)
    spots["analyses"] = spots["analysis_share"] = analysis_editor.show(state)
project = state.project
plan = project.plan
if is_blurring(plan):
    try:
        check_options(plan)
        blurring_of(plan).check(project)
    except EspalierError as error:
        conflicts.conflict(spots, error)
    shell.link_to("Release", "Next: Release")
    shell.sidebar(state)
    st.stop()

st.divider()
population, trouble = payment.chosen(state)
try:
    seen = state.preview(state.public_rows, population.delta if population else None)
except EspalierError as error:
    conflicts.conflict(spots, error)
    missing = conflicts.still_empty(error)
    todo = f"{missing} above." if missing else f"fix the conflict above: {plain(error)}"
    st.info(f"To see the preview here, {todo}")  # the field above may be in a closed expander
    shell.sidebar(state)
    st.stop()
except MemoryError:
    st.error("This plan needs more memory than is available: coarsen the columns with the most categories.")
    shell.sidebar(state)
    st.stop()

payable, below = False, st.container()
st.subheader("What would remain in the ledger", anchor=False, help=term("Ledger"))
if population is not None:
    if payable := payment.fits(state, population):
        payment.outlook(state, population, seen)
        if plan.delta is None:
            st.caption(f"The plan sets no δ, so the ledger's δ = {population.delta:g} applies.")
elif trouble:
    st.error(plain(trouble))
elif state.paid_from is None and not state.sample:
    st.markdown("On the Release page, choose the ledger budget that pays for this release.")
else:
    st.markdown("This release is not recorded in a ledger, so its cost is not added to that of other releases.")

with spots["consequences"]:
    verdict.headline(state, seen, population if payable else None)
    st.markdown(text.guess(guess_right(seen.budget.epsilon, seen.budget.delta)))
with below:
    if seen.stage:
        st.info(plain(seen.stage))
    if seen.families:
        with st.expander("How each column is modelled from its causes"):
            st.markdown("\n".join(f"- {plain(family)}" for family in seen.families))
            st.caption(
                "A table models every joint effect of the causes. Additive causes act separately. If "
                "two of them act together, say so on the Structure page: select both and choose *Act together*."
            )
    for warning in seen.warnings:
        st.warning(plain(warning))
    if seen.verdict is not None:
        verdict.details(state, seen.verdict)

st.subheader("The frame: what the table may show", anchor=False, help=TERMS["Frame"])
if seen.frame.tasks:
    for task in seen.frame.tasks:
        best = min(seen.features, len(task.candidates))
        if task.features is not None:
            which = names(task.features, 40)
        elif best < len(task.candidates):
            which = f"the **best {best}** of {len(task.candidates)} columns, chosen privately (with noise) at release"
        else:
            which = f"all {best} columns; the budget is large enough to count all of them"
        st.markdown(f"Measured together with {text.name(task.target)}: {which}.")
    if seen.frame.refused:
        st.markdown(f"Never paired with the target, because of the fence: {names(seen.frame.refused, 40)}.")
if seen.frame.separations:
    st.markdown("**Associations this table will not show:**")
    for s in seen.frame.separations:
        st.markdown(f"- {text.separation(s)}  \n  :small[{plain(s.why)}]")
    st.markdown(
        f"In the model, the {term('CMI')} of each is exactly 0. In the released rows, it is slightly above 0 by chance."
    )
else:
    st.markdown(method_of(plan).guidance.unseparated(bool(project.dag.edges)))
if is_fenced(plan) and project.roles.inadmissible:
    st.markdown("**The side of each inadmissible column.** The fence separates the outcome from the protected columns.")
    st.dataframe(text.sides(project, seen.frame), hide_index=True, width="stretch")

if state.relation is not None:
    st.subheader("Where the rows stay", anchor=False)
    st.markdown(f"{text.name(state.relation.shown)} is read in place. {state.notice}")
elif state.notice:
    st.info(state.notice)

if seen.apart:
    st.subheader("Values that the release will distinguish", anchor=False)
    for apart in seen.apart:
        st.markdown(plain(str(apart)))

question_editor.planned(seen)
analysis_editor.planned(seen)
regression_editor.planned(seen)
drawing_test.planned(seen)
private_evaluation.planned(seen)
shell.folded("Details: budget, measurements, memory and time", partial(plan_details.show, state, seen))
shell.link_to("Release", "Next: Release")
shell.sidebar(state)
