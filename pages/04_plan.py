"""Plan: method, frame and budget, and what a release under them would do. Reads no data."""

import streamlit as st

from espalier.core.blurring.registry import blurring_of, is_blurring
from espalier.core.errors import EspalierError
from espalier.core.methods import check_options, is_fenced, method_of
from espalier.core.methods.pools import pool_in_words
from espalier.core.privacy.accounting import guess_right, round_up
from espalier.pages.common import charts, shell, sign_in, text
from espalier.pages.common.text import names, plain
from espalier.pages.glossary.terms import TERMS, term
from espalier.pages.plan import (
    allocation_editor,
    conflicts,
    drawing_test,
    error_bounds,
    measurement_table,
    plan_fields,
    private_evaluation,
    question_editor,
)
from espalier.pages.release import payment

sign_in.enter("steward")
state = shell.start(
    "Plan",
    f"Say what the table is for and how much of the privacy {term('budget')} it may spend. Nothing here reads "
    "the table.",
)
project = shell.need_project(state)
if not is_blurring(project.plan):
    shell.need_unit(state)

spots = plan_fields.show(state)
spots["questions"] = spots["question_share"] = question_editor.show(state)
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
    todo = f"**{missing}** is given above" if missing else "the conflict above is fixed"
    st.info(f"The preview appears here once {todo}.")
    shell.sidebar(state)
    st.stop()
except MemoryError:
    st.error("This plan needs more memory than there is: coarsen the columns with the most categories.")
    shell.sidebar(state)
    st.stop()

st.subheader("What will be protected", anchor=False)
with spots["consequences"]:
    st.markdown(text.guess(guess_right(seen.budget.epsilon, seen.budget.delta)))
    if counted := [line for line in seen.lines if line.error is not None and len(line.columns or ()) == 1]:
        errors = {line.columns: line.error or 0.0 for line in sorted(counted, key=lambda line: -(line.error or 0.0))}
        worst = max(errors.values())  # of a column that is counted twice, the better count
        st.markdown(f"Each count of one column is expected to be off by **{100 * worst:.2g} %** of all rows, or less.")
with st.container(horizontal=True, gap="large"):
    st.metric("ε (privacy loss)", f"{seen.budget.epsilon:g}", width="content")
    st.metric("δ (chance of worse)", round_up(seen.budget.delta), width="content")
    st.metric(
        "ρ (what is spent)",
        round_up(seen.budget.rho),
        width="content",
        help="Zero-concentrated "
        "differential privacy: the "
        "currency that adds up. It is the largest ρ that the tight conversion allows for this ε and δ.",
    )
    st.metric(
        "Memory", text.size(seen.size.bytes), width="content", help=f"The model has at most {seen.size.cells:,} cells."
    )
    st.metric(
        "Time to fit",
        f"{max(seen.size.seconds, 0.1):.1f} s",
        width="content",
        help="About so long if the model is as large as this plan allows.",
    )
st.markdown(f"{term('Unit of privacy')}: {text.unit(plan.neighbors, plan.rows_per_person, plan.person)}.")
for warning in seen.warnings:
    st.warning(plain(warning))

st.subheader("What it would leave in the ledger", anchor=False, help=term("Ledger"))
if population is not None:
    if payment.fits(state, population):
        payment.outlook(population, seen)
        if plan.delta is None:
            st.caption(f"The plan gives no δ of its own: it takes the ledger's, {population.delta:g}.")
elif trouble:
    st.error(plain(trouble))
elif state.paid_from is None and not state.sample:
    st.markdown("You choose the budget on the Release page.")
else:
    st.markdown("It is not recorded in a ledger: nothing adds it up with other releases.")

st.subheader("The frame: what the table may show", anchor=False, help=TERMS["Frame"])
if seen.frame.tasks:
    for task in seen.frame.tasks:
        best = min(seen.features, len(task.candidates))
        if task.features is not None:
            which = names(task.features, 40)
        elif best < len(task.candidates):
            which = f"the **{best} best** of {len(task.candidates)} columns, by a noisy choice at release"
        else:
            which = f"all {best} columns; the budget counts all of them usefully"
        st.markdown(f"Measured together with {text.name(task.target)}: {which}.")
    if seen.frame.refused:
        st.markdown(f"Refused, because the fence forbids the pair: {names(seen.frame.refused, 40)}.")
if seen.frame.separations:
    st.markdown("**Associations this table will not show:**")
    for s in seen.frame.separations:
        st.markdown(f"- {text.separation(s)}  \n  :small[{plain(s.why)}]")
else:
    st.markdown(method_of(plan).guidance.unseparated(bool(project.dag.edges)))
if is_fenced(plan) and project.roles.inadmissible:
    st.markdown(
        "**Where the inadmissible columns may fall.** The fence stands between the outcome and the protected columns."
    )
    st.dataframe(text.sides(project, seen.frame), hide_index=True, width="stretch")

if state.relation is not None:
    st.subheader("Where its rows stay", anchor=False)
    st.markdown(f"{text.name(state.relation.shown)} is read where it is. {state.relation.notice}")

if seen.apart:
    st.subheader("What will be told apart", anchor=False)
    for apart in seen.apart:
        st.markdown(plain(str(apart)))

alone = ", ".join(f"{plain(pool_in_words(pool))} {round_up(epsilon, 2)}" for pool, epsilon in seen.alone.items())
shares = (
    f"Point at a segment to see what it pays for. Each part by itself would cost, in ε: {alone}. ρ adds up, ε does not."
)
st.subheader("The budget", anchor=False, help=shares)
charts.show(charts.budget(seen.lines, seen.budget.rho), "plan-budget", "Share of the budget by pool")
with st.expander(f"All {len(seen.lines)} measurements and choices", expanded=True):
    measurement_table.table(seen.lines)
    st.markdown(
        f"Columns on one line are counted together: one {term('marginal')}. σ is the usual size of the "
        f"{term('noise')} in each cell, in rows. Use the expected error; the bound is a worst case."
    )
question_editor.planned(seen)
allocation_editor.show(state, seen)
if seen.bounds and seen.bounds.tree is not None:
    error_bounds.show(seen.bounds.tree, seen.features, seen.bounds.inputs, plan)
drawing_test.planned(seen)
private_evaluation.planned(seen)
shell.link_to("Release", "Next: Release")
shell.sidebar(state)
