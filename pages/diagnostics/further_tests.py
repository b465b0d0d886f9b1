"""Further tests of a release. Each is a job with progress and cancellation. Their results are confidential and never
appear in a report.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.evaluation import some_rows
from espalier.core.progress import Report, part
from espalier.core.tables.table import Table
from espalier.pages.common import shell
from espalier.pages.common.text import plain
from espalier.pages.diagnostics import arrow_strength, judgement, many_targets, membership_attack, public_table
from espalier.pages.release import payment
from espalier.pages.session.bundles import ReleaseBundle
from espalier.pages.session.session import Session

KINDS = ("many-targets", "attack", "public-table", "arrows")
"""Kinds of the tests' jobs. Each job shows its progress under its own button."""


def show(state: Session, released: ReleaseBundle) -> None:
    """Show the tabs. Arrows need a model that measures their strength; a public table needs a numeric target."""
    project = released.release.project
    target = project.plan.target
    numeric = target is not None and project.schema[target].kind == "numeric"
    st.subheader("More tests", anchor=False)
    strength = getattr(released.release.model, "strength", None)
    if released.relation is not None and released.relation.remote:
        st.info(
            "These tests need the rows themselves, but the rows of a database stay in the database. Run these tests on "
            "a file instead."
        )
        return
    names = ["Many targets", "Membership attack", *["Public table"] * numeric, *["Arrows"] * bool(strength)]
    tabs = st.tabs(names, key=f"further-{released.number}", on_change="rerun")  # the tab stays open when a job ends
    with tabs[0]:
        if found := _result(
            state,
            released,
            "many-targets",
            "Train the classifiers",
            many_targets.INTRODUCTION,
            lambda real, report: many_targets.work(released, real, report),
        ):
            many_targets.show(found, released.number)
    with tabs[1]:
        named = released.real is not None and (released.number, "attack") not in state.further
        rows = membership_attack.rows_field(released.number) if named else ""
        if found := _result(
            state,
            released,
            "attack",
            "Play the game",
            membership_attack.INTRODUCTION,
            lambda real, report: membership_attack.work(released, real, rows, report),
        ):
            membership_attack.show(found)
    if numeric:
        with tabs[2]:
            given = None
            if (released.number, "public-table") not in state.further:
                given = public_table.file_field(released.number)
            if found := _result(
                state,
                released,
                "public-table",
                "Compare with the public table",
                public_table.INTRODUCTION,
                lambda *_: public_table.work(released, given),
                ready=given is not None,
            ):
                public_table.show(found, target)
    if strength:
        with tabs[-1]:
            arrows = strength()
            arrow_strength.show(arrows, bool(project.dag.edges))
            if arrows and (
                found := _result(
                    state,
                    released,
                    "arrows",
                    "Measure the arrows",
                    arrow_strength.INTRODUCTION,
                    lambda real, report: arrow_strength.work(released, real, arrows, report),
                )
            ):
                arrow_strength.survived(found)


def _result(
    state: Session,
    released: ReleaseBundle,
    kind: str,
    label: str,
    introduction: str,
    work: Callable[[Table, Report], Any],
    *,
    ready: bool = True,
) -> Any:
    """Return the result of this job for this release. Until it exists, show the introduction and the button, which is
    disabled until the input is ``ready``. ``work`` receives real rows in memory.
    """
    key = (released.number, kind)
    if key not in state.further:
        st.markdown(introduction)
        st.button(
            label,
            key=f"{kind}-{released.number}",
            disabled=state.job is not None or not ready,
            icon=":material/play_arrow:",
            on_click=_start,
            args=(state, released, kind, work),
        )
        if state.job is not None and state.job.kind == kind:
            shell.progress()
    if reason := state.trouble.get(kind):
        st.error(f"This did not finish: {plain(reason)}")
    return state.further.get(key)


def _start(state: Session, released: ReleaseBundle, kind: str, work: Callable[[Table, Report], Any]) -> None:
    try:
        record = payment.diagnosed(state, released)
    except EspalierError as error:
        state.trouble[kind] = str(error)
        return

    def recorded(report: Report) -> Any:
        """Record the evaluation in the ledger, then run the test on all real rows or on a random sample of them."""
        with judgement.read_again(released, part(report, 0.0, 0.3)) as real:
            # recorded before anything is computed, because an evaluation cannot be undone
            record([t for t in (real, released.holdout) if t is not None])
            rows = some_rows(real)
        return work(rows, report if released.real is not None else part(report, 0.3, 1.0))

    number = released.number

    def done(into: Session, found: Any) -> None:
        into.further[number, kind] = found

    state.start(kind, recorded, done)
