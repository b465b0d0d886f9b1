"""Payment for a release: the choice of a budget, the form that opens a budget, and the remaining amount."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from espalier.core.errors import EspalierError, LedgerUnavailable
from espalier.core.ledger.ledger import Ledger, default_ledger, whoami
from espalier.core.ledger.population import Population
from espalier.core.planning.preview import Preview
from espalier.core.privacy.accounting import round_up
from espalier.core.privacy.contribution import public_rows
from espalier.core.project.plan import Neighbors
from espalier.core.release.artefact import Release
from espalier.core.server import events
from espalier.core.tables.source import Source
from espalier.pages.common import fields, shell, sign_in, text
from espalier.pages.common.text import name, plain
from espalier.pages.session import session
from espalier.pages.session.bundles import ReleaseBundle
from espalier.pages.session.kept_work import LASTS
from espalier.pages.session.session import Session

UNRECORDED, NEW = "Not recorded in a ledger", "Open a new budget …"


def open_ledger() -> tuple[Ledger | None, str]:
    """Return the ledger, which is opened once per session, and an error message. Both are empty if there is no ledger
    yet.
    """
    state, where = session.here(), default_ledger()
    if state.ledger is None or state.ledger[0] != where:
        try:
            state.ledger = (where, Ledger(where))
        except EspalierError as error:
            return None, "" if error.data.get("missing") else str(error)
    return state.ledger[1], ""


def budgets(ledger: Ledger | None) -> tuple[dict[str, Population], str]:
    """Return all budgets by the names of their tables, and the ledger's error message."""
    if ledger is None:
        return {}, ""
    try:
        return {table: p for p in ledger.populations().values() for table in p.tables}, ""
    except EspalierError as error:
        return {}, str(error)


def chosen(state: Session) -> tuple[Population | None, str]:
    """Return the budget that pays for a release of the open table, and an error message.

    Until the user chooses, the table named after the project is selected if the ledger has one. A sample has invented
    rows, so its releases are not recorded unless the user chooses a budget.
    """
    if not state.has_project or state.paid_from == "" or (state.paid_from is None and state.sample):
        return None, ""
    ledger, trouble = open_ledger()
    known, more = budgets(ledger)
    if state.paid_from is None and state.project.name in known and state.has_table:
        state.paid_from = state.project.name
    if state.paid_from is None or trouble or more:
        return None, trouble or more
    if state.paid_from not in known:
        return None, f"the ledger no longer has a table {state.paid_from!r}: choose the budget for the release"
    return known[state.paid_from], ""


def choose(state: Session) -> tuple[bool, Population | None]:
    """Let the user choose. Return whether a choice is made, and the budget (None: not recorded)."""
    population, trouble = chosen(state)
    ledger, away = open_ledger()
    known, broken = budgets(ledger)
    if trouble := trouble or away or broken:
        st.error(plain(trouble))
    options = list(dict.fromkeys([*known, NEW, UNRECORDED]))  # a table may have such a name
    undecided = UNRECORDED if state.sample or trouble else NEW
    now = UNRECORDED if state.paid_from == "" else state.paid_from if state.paid_from in known else undecided
    key = f"paid-from-{state.tables}-{len(known)}"

    def take() -> None:
        picked = st.session_state[key]
        state.paid_from = picked if picked in known else "" if picked == UNRECORDED else None

    picked = st.selectbox(
        "Paid from the budget of",
        options,
        index=options.index(now),
        key=key,
        on_change=take,
        help="A ledger budget is shared by all releases from the same people, and cannot be overspent.",
    )
    if picked in known:
        return population is not None and not trouble, population
    if picked == UNRECORDED:
        if not state.sample:
            st.caption("This release will not be counted with others from the same people. Its report states this.")
        return True, None
    opening_form(state, known)
    return False, None


def fits(state: Session, population: Population) -> bool:
    """Return whether the plan uses the budget's unit of privacy. If not, show a warning and a button that changes the
    plan.
    """
    plan = state.project.plan
    try:
        population.fits(state.project, state.paid_from or "")
    except EspalierError as error:
        st.error(plain(error))

        def mend() -> None:
            delta = None if plan.pure or population.neighbors == "replace-one" else population.delta
            state.drafts.plan.delta = None
            person = population.persons.get(state.paid_from or "", plan.person)
            k = population.rows_per_person
            try:
                if person is not None or k > 1:
                    state.answer(False, person, k)
                state.editor.change_plan(neighbors=population.neighbors, rows_per_person=k, delta=delta, person=person)
                state.trouble.pop("unit", None)
            except EspalierError as error:
                state.trouble["unit"] = str(error)

        unit = text.unit(
            population.neighbors, population.rows_per_person, population.persons.get(state.paid_from or "", plan.person)
        )
        st.button(f"Use the ledger's unit: {unit}, δ = {population.delta:g}", on_click=mend)
        if "unit" in state.trouble:
            st.error(plain(state.trouble["unit"]))
        return False
    return True


def outlook(state: Session, population: Population, seen: Preview) -> bool:
    """Show the remaining budget before and after this plan. Return whether enough is left.

    If not, offer the largest ε that fits.
    """
    left = population.outlook(seen.budget.rho, seen.budget.pure, seen.delta)
    budget = f"the budget of {name(population.name)} (total ε = {population.epsilon:g} at δ = {population.delta:g})"
    if not left["fits"] and left["after"] >= 0:
        st.error(
            f"This plan needs δ₀ = {round_up(seen.delta)} for its draws, but {budget} does not have that much left."
        )
        return False
    if not left["fits"]:
        st.error(
            f"This plan needs ρ = {round_up(seen.budget.rho)}, but {budget} has only ρ = {left['left']:.4g} left. "
            + (f"A plan with ε up to {left['largest']:g} still fits." if left["largest"] else "The budget is spent.")
        )
        if left["largest"]:
            st.button(
                f"Set ε = {left['largest']:g}, which fits",
                on_click=state.choose_epsilon,
                args=(left["largest"],),
                key="fitting-epsilon",
            )
        return False
    further = left["largest_after"]
    st.markdown(f"This release uses **{100 * seen.budget.rho / left['total']:.3g} %** of the total budget.")
    st.markdown(
        f"Remaining in {budget}: **ρ = {left['left']:.4g}** of {left['total']:.4g}. After this plan: "
        f"**ρ = {left['after']:.4g}**"
        + (f", enough for {_more(left['like_it_after'])}a plan with ε up to {further:g}." if further else ".")
    )
    st.progress(min(left["spent"] / left["total"], 1.0), text=f"spent {100 * left['spent'] / left['total']:.0f} %")
    return True


def known_table(state: Session) -> tuple[bool, bool]:
    """Check whether the ledger knows the open table under this name only, and ask the user if not.

    Return whether a release may continue, and whether the current warning is confirmed.
    """
    assert state.paid_from
    ledger, trouble = open_ledger()
    if state.relation is not None:
        if state.known_elsewhere != (state.tables, state.paid_from):
            st.caption(
                "The ledger checks this table when the release reads it. If the ledger knows the table under another "
                "name, it refuses the release."
            )
            return True, False
        ticked = st.checkbox(
            "I have read the refusal and still want to release this table under this name",
            key=f"known-far-{state.tables}-{state.paid_from}",
        )
        return ticked, ticked
    if ledger is None or state.text is None:
        st.error(f"{plain(trouble or 'The ledger no longer exists.')}")
        return False, False
    try:
        digest = state.table().digest
    except EspalierError as error:
        st.error(plain(error))
        return False, False
    warnings = ledger.account(state.paid_from).warnings(digest)
    for warning in warnings:
        st.warning(f"Confidential: {plain(warning)}.", icon=":material/fingerprint:")
    ticked = bool(warnings) and st.checkbox(
        "I have read this and want to release this table under this name",
        key=f"known-{state.tables}-{state.paid_from}-{warnings}",  # the tick confirms only the warnings shown here
    )
    return ticked or not warnings, ticked


def diagnosed(
    state: Session, released: ReleaseBundle | None, page: str = "the Diagnostics page"
) -> Callable[[Sequence[Source]], None]:
    """Return a function that records in the ledger, from any thread, that diagnostics of ``released`` on ``page`` will
    read some tables.

    `None` means that the rows are not private, so no ledger entry paid for them.
    """
    by, where = who(), default_ledger()
    reservation = released.release.reservation if released else None
    names = [reservation.entry.table if reservation else None, state.paid_from]

    def record(tables: Sequence[Source]) -> None:
        try:
            ledger = Ledger(where)
        except LedgerUnavailable as error:
            if not error.data.get("missing"):
                raise
            return  # there is no ledger yet
        ledger.diagnosed([table.digest for table in tables], list(filter(None, names)), by, page)

    return record


def _more(like_it: int) -> str:
    return f"{'one more' if like_it == 1 else f'{like_it} more'} like this, or " if like_it else ""


def opening_form(state: Session, known: dict[str, Population]) -> None:
    """Show the form that opens a budget. The form proposes a table's name and a total, which cannot be changed
    later.
    """
    plan = state.project.plan if state.has_project else None
    key = f"open-budget-{state.tables}-{len(known)}"
    with st.container(border=True):
        st.markdown("**Open a table's budget.** You cannot change its total or its unit of privacy later.")
        a, b = st.columns(2)
        a.text_input(
            "Name of the table", state.project.name if state.has_project and state.has_table else "", key=f"{key}-table"
        )
        people = {p.name: p for p in known.values()}
        nobody = "people who are in no other budget"
        shared = b.selectbox(
            "People in the table",
            [nobody, *people],
            key=f"{key}-people",
            format_func=lambda p: p if p == nobody else f"the people of {p}",
            help="Two tables about the same people, such as two extracts of one register, must share one budget.",
        )
        if shared == nobody:
            a, b = st.columns(2)
            epsilon = 2.0 * plan.epsilon if plan else 2.0
            a.text_input(
                "Total ε",
                f"{min(epsilon, 100.0):g}",
                key=f"{key}-epsilon",
                help="The total for all releases, forever. What adds up is ρ, not ε: ε = 2 pays for about four "
                "plans with ε = 1.",
            )
            place = b.empty()
            planned, k = (plan.neighbors, plan.rows_per_person) if plan else ("replace-one", 1)
            neighbors: Neighbors = a.selectbox(
                "Neighbouring tables",
                list(text.NEIGHBORS),
                index=list(text.NEIGHBORS).index(planned),
                key=f"{key}-neighbors",
                help=" ".join(text.NEIGHBORS.values()),
            )
            person = st.session_state.get(f"{key}-person", plan.person if plan else None)
            place.text_input(
                "δ",
                f"{_delta(state, neighbors, person):.3g}",
                key=_delta_key(key, neighbors, person),
                help="Far below 1/n. Every plan from now on uses this δ.",
            )
            b.number_input("Rows per person (maximum)", 1, 10_000, k, key=f"{key}-rows")
        else:
            st.markdown(f"It shares the total and the unit of {name(shared)}, so both have the same amount left.")
        st.text_input(
            "Person column of this table",
            plan.person or "" if plan else "",
            key=f"{key}-person",
            placeholder="none: you promise that no one has more rows",
            help="The column that identifies the person to whom a row belongs. It is fixed; no release may use a "
            "different one. If you leave it empty, no release uses a person column, and nothing enforces the row limit "
            "per person.",
        )
        a, b = st.columns(2)
        a.text_input("Opened by", who(), key=f"{key}-who", disabled=sign_in.guarded())
        b.text_input("Note", key=f"{key}-note", placeholder="for readers of the ledger")
        if state.has_table:
            st.caption(
                "Opening a budget spends nothing. The release is a separate step afterwards, on the Release page."
            )
        st.button("Open this budget", type="primary", on_click=_open, args=(state, key, nobody), key=f"{key}-go")
        if trouble := state.trouble.get("ledger"):
            st.error(plain(trouble))


def _open(state: Session, key: str, nobody: str) -> None:
    """Open the budget described by the form, and pay from it."""
    sign_in.need_steward()
    entered = {str(k).removeprefix(f"{key}-"): v for k, v in st.session_state.items() if str(k).startswith(key)}
    state.trouble.pop("ledger", None)
    try:
        if entered["people"] != nobody:
            unit: dict[str, Any] = {"population": entered["people"]}
        else:
            unit = {
                "epsilon": fields.number(entered["epsilon"], "Total ε"),
                "delta": fields.number(st.session_state[_delta_key(key, entered["neighbors"], entered["person"])], "δ"),
                "neighbors": entered["neighbors"],
                "rows_per_person": entered["rows"],
            }
        ledger = Ledger(default_ledger(), create=True)
        by = who() if sign_in.guarded() else entered["who"]  # a typed name is not a signature
        ledger.open_table(
            entered["table"], **unit, person=entered["person"].strip() or None, who=by, note=entered["note"]
        )
    except EspalierError as error:
        state.trouble["ledger"] = str(error)
        events.emit("refuse", sign_in.who(), {"table": entered["table"]}, what="ledger")
        return
    events.emit("ledger", sign_in.who(), {"table": entered["table"]}, act="open", shared=bool(unit.get("population")))
    if state.has_project and state.has_table:
        state.paid_from = entered["table"].strip()


def _delta(state: Session, neighbors: Neighbors, person: str | None) -> float:
    """Return a proposed δ: the plan's δ, or 1/n² if n is known and public in the form's unit, or 1e-9."""
    if not state.has_project:
        return 1e-9
    plan = replace(state.project.plan, neighbors=neighbors, person=(person or "").strip() or None)
    if plan.delta:
        return plan.delta
    n = public_rows(plan, state.rows or (None if state.text is None else state.text.rows))
    return 1 / n**2 if n is not None and n > 100 else 1e-9


def _delta_key(key: str, neighbors: Neighbors, person: str | None) -> str:
    """Return a key that differs for each unit of privacy, so that a δ of 1/n² is discarded if n becomes private."""
    return f"{key}-delta-{neighbors}-{(person or '').strip()}"


def who() -> str:
    """Return the person who signed in, or else the user who runs the app."""
    signed_in = st.user.get("email") if st.user.get("is_logged_in") else None
    return str(signed_in or whoami())


def recorded(release: Release) -> None:
    """Show whether a release is in the ledger."""
    if release.reservation is None:
        st.markdown(
            f"**Not recorded in a ledger.** Reloading this tab restores it for {LASTS / 60:.0f} minutes; after "
            "that, it is lost. Download what you need."
        )
        return
    p, entry = release.reservation.population, release.reservation.entry
    st.caption(
        f"Recorded in the ledger as entry {name(entry.id)} of {name(p.name)}. The Ledger page offers it for download "
        "even after this tab is closed."
    )
    if release.ledger_trouble:
        st.warning(f"{plain(release.ledger_trouble)} Download what you need before you close this tab.")
    shell.link_to("Ledger", "See the ledger", primary=False)
