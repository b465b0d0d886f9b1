"""Diagnostics: the quality of the synthetic table, judged on real rows. Confidential."""

import json

import streamlit as st

from espalier.core.blurring.registry import is_blurring
from espalier.core.evaluation import MOST_ROWS
from espalier.pages.common import shell, sign_in, story, text
from espalier.pages.common.text import name, plain
from espalier.pages.diagnostics import (
    blurred,
    distributions,
    fairness,
    further_tests,
    judgement,
    linked_tables,
    numeric_columns,
    price_elasticities,
    question_errors,
    separations,
    summary,
)
from espalier.pages.glossary.terms import term
from espalier.pages.plan import private_evaluation

sign_in.enter("steward")
state = shell.start(
    "Diagnostics", f"What is the {term('synthetic table')} good for? This page compares it with the real rows."
)
project = shell.need_project(state)
if is_blurring(project.plan) and state.blurred is not None:
    st.markdown(f"{text.CONFIDENTIAL} Every figure below is computed on real rows.")
    blurred.show(state, state.blurred)
    shell.link_to("Plan", "Change the plan", primary=False)
    shell.sidebar(state)
    st.stop()
state.give_rows_back()
released = state.released
if released is not None and released.release.private_evaluation is not None:
    private_evaluation.show(released.release.private_evaluation, shell.filename(released.release.project.name))
st.markdown(
    f"{text.CONFIDENTIAL} Every figure below is computed on real rows, and none of them is paid for from the "
    f"{term('budget')}. "
    "If they lead you to choose one release over another, tell the recipients of that release."
)

if released is None:
    shell.no_release("judge")
    shell.sidebar(state)
    st.stop()

if not released.has_rows:
    st.info(
        "The tab was reloaded, so the server no longer has the real rows. "
        + (
            "It also lost the list of rows that were held out for testing, so this release cannot be compared again."
            if released.mark is None and released.far is None
            else "Open the same table on the Data page to compare this release with them again."
        )
    )
    shell.link_to("Data", "Go to Data")
if released.release.project.linked is not None:
    if released.has_rows:
        linked_tables.show(state, released)
    shell.link_to("Plan", "Change the plan", primary=False)
    shell.sidebar(state)
    st.stop()
if released.real is None and released.has_rows:
    st.info(
        "This release was made from a table that is read in place, and each comparison reads it again. Columns, "
        "pairs and questions are compared by counts of all rows. "
        + (
            "Tasks, fairness and further tests need the rows themselves, which stay in the database."
            if released.relation is not None and released.relation.remote
            else f"Tasks, fairness and further tests use at most {MOST_ROWS:,} random rows."
        )
    )
if not project.says_the_same(released.planned):
    st.info(
        f"This page judges release {released.number} of {name(released.release.project.name)}; the project has changed "
        "since."
    )
if state.job is not None and state.job.kind not in further_tests.KINDS:
    shell.progress()
elif not state.findings and released.has_rows:
    where = f"the {released.holdout.rows:,} held-out rows" if released.holdout else "the table from which it was made"
    st.markdown(f"Release {released.number} can be judged on {where}. This spends nothing.")
    st.button(
        "Compare with the real rows",
        type="primary",
        disabled=state.job is not None,
        on_click=judgement.start,
        args=(state, released),
        icon=":material/monitoring:",
    )
if reason := state.trouble.get("diagnostics"):
    st.error(f"The comparison did not finish: {plain(reason)}")

if state.findings:
    summary.show(released.release.project, state.findings)
    if state.sample and state.sample == released.release.project.name:
        story.show(state.sample)
    shown = list(state.findings)
    which = shown[0]
    if len(shown) > 1:
        which = (
            st.segmented_control(
                "Details of the test on", shown, default=shown[0], key=f"tested-{released.number}-{len(shown)}"
            )
            or shown[0]
        )
    facts = state.findings[which]
    tabs = [
        "Task",
        "Fairness",
        "What the fence cost",
        "Columns",
        "Pairs",
        "Numbers",
        *["Questions"] * ("asked" in facts),
    ]
    task, fair, cost, one, two, figures, *asked = st.tabs(tabs)
    with task:
        for learned in (facts["tstr"], *facts.get("tstr_further", [])):
            judgement.task(learned, which)
    with fair:
        fairness.show(facts["fairness"], facts.get("fairness_reason", ""), which, released.release.project.schema)
        separations.show(facts.get("separations", ()))
    with cost:
        fairness.cost(facts)
    with one:
        distributions.columns(facts["fidelity"], released)
    with two:
        distributions.pairs(facts["fidelity"], released)
    with figures:
        numeric_columns.show(facts, released.release.project.schema)
        if facts.get("numbers") and released.real is not None:
            price_elasticities.show(
                released.release.project, (released.real, released.release.synthetic), released.number
            )
    for place in asked:
        with place:
            question_errors.show(facts["asked"], released.release.model)
    st.download_button(
        "Download confidential figures",
        json.dumps(state.findings, indent=1, ensure_ascii=False, allow_nan=False),
        file_name=f"{shell.filename(released.release.project.name)}-diagnostics-CONFIDENTIAL.json",
        mime="application/json",
        on_click="ignore",
        icon=":material/lock:",
    )
    if released.has_rows:
        judgement.another_table(state, released)
if released.has_rows:
    further_tests.show(state, released)
shell.link_to("Plan", "Change the plan", primary=False)
shell.sidebar(state)
