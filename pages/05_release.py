"""Release: spend the budget once, deliberately, and download the synthetic table."""

import streamlit as st

from espalier.core.blurring.registry import is_blurring
from espalier.core.errors import EspalierError, sentence
from espalier.core.planning.preview import Preview
from espalier.core.privacy.accounting import round_up
from espalier.core.privacy.contribution import public_rows
from espalier.core.server.release_job import Paid
from espalier.core.tables.table import Table
from espalier.pages.common import shell, sign_in, text
from espalier.pages.common.text import name, names, plain
from espalier.pages.data import opening_on_server
from espalier.pages.glossary.terms import term
from espalier.pages.plan import conflicts
from espalier.pages.release import bundle, not_private, payment, signoff, spending
from espalier.pages.session.session import Session, here

sign_in.enter("steward")
opened = here()
promised = not opened.has_project or not is_blurring(opened.project.plan)
state = shell.start(
    "Release",
    f"Make the synthetic table: this spends privacy {term('budget')}. The resulting files are safe to "
    "share; the real table is not."
    if promised
    else "These files are as confidential as the table itself.",
)


def trouble(state: Session) -> None:
    """Show why the last release failed."""
    if reason := state.trouble.get("release"):
        st.error(f"No table was released: {plain(reason)}")


if state.has_project and is_blurring(state.project.plan):
    not_private.show(state)
    shell.sidebar(state)
    st.stop()
if state.has_project:
    shell.need_unit(state)
elif state.job is None and state.released is None:
    trouble(state)
    shell.need_project(state)


def ready(state: Session) -> tuple[Table | None, Preview] | None:
    """Return the table and the preview. If something is missing, show the next step and return None."""
    if not state.has_table:
        st.info("No table is open. Open one on the Data page, then come back.")
        shell.link_to("Data", "Go to Data")
        return None
    try:
        population, _ = payment.chosen(state)
        delta = population.delta if population else None
        if state.relation is not None:  # n comes from the Plan page and is checked before anything is drawn
            return None, state.preview(state.public_rows, delta)
        table = state.table()
        return table, state.preview(public_rows(state.project.plan, table.rows), delta)
    except EspalierError as error:
        if missing := conflicts.still_empty(error):
            st.info(f"The plan is not complete yet. On the Plan page, {missing}.")
        else:
            reason = "the table contains a value that is not declared" if error.data.get("value") else str(error)
            st.error(plain(sentence(reason[:1].upper() + reason[1:])))
        key = error.data.get("key")
        page = "Structure" if key in ("roles", "regime") else "Plan" if key else "Data"
        shell.link_to(page, f"Fix this on the {page} page")
        return None


def spend(state: Session, table: Table | None, seen: Preview) -> None:
    """Show the cost of the release and the button that spends the budget."""
    plan, again = state.project.plan, [s for s in state.spent if s.table == state.tables]
    if unconfirmed := state.project.unconfirmed:
        guessed = names(unconfirmed, 8)
        st.error(f"These columns contain unconfirmed guesses: {guessed}.")
        shell.link_to("Data", "Confirm them on the Data page")
        return
    signoff.fields(state)
    with st.container(border=True):
        decided, population = payment.choose(state)
        if not decided or (population is not None and not payment.fits(state, population)):
            return
        line = st.empty()
        planned, counted = state.public_rows, None if table is None else public_rows(plan, table.rows)
        if planned is not None and counted is not None and planned != counted:
            st.warning(
                f"The plan states n = {planned:,}, but the table has {counted:,} rows. The release uses the table's "
                "number."
            )
        share = (
            0
            if table is None
            else st.select_slider(
                "Hold out rows for an honest test",
                [0, 5, 10, 20, 30],
                format_func=lambda p: f"{p} %" if p else "none",
                key=f"holdout-{state.opened}",
                help="The release does not use these rows, so a test on them is fair. The noise per cell stays the "
                "same with fewer rows, so relative errors grow.",
            )
        )
        notes: list[str] = []
        if share and table is not None:
            delta = population.delta if population else None
            seen, left = spending.kept_back(state, table, share / 100, delta)
            notes.append(
                f"Holding rows out costs accuracy: noise is {100 * (1 / (1 - share / 100) - 1):.0f} % larger "
                f"relative to the {'' if left is None else f'{left:,} '}remaining rows"
                + (", and n in δ = 1/n² is their number." if plan.delta is None and population is None else ".")
            )
        source = state.relation.shown if state.relation else state.text.source if state.text else ""
        line.markdown(
            f"**{text.method(plan.method)}** on {name(source)} will spend "
            f"**ε = {plan.epsilon:g}**, δ = {round_up(seen.budget.delta)} (at most ρ = {round_up(seen.budget.rho)}) "
            f"for {text.unit_of(state.project)}. This cannot be undone."
        )
        if plan.private_evaluation:
            notes.append(
                f"{100 * plan.private_evaluation:g} % of the {'people' if plan.person else 'rows'}, chosen at random, "
                "are held out for private evaluation. The resulting figures are safe to share and add no privacy cost."
            )
        if state.notice:
            notes.append(state.notice)
        if notes:
            st.caption(" ".join(notes))
        agreed, ticked, note = True, False, f"note-{state.opened}"
        if population is not None:
            if not payment.outlook(state, population, seen):
                shell.link_to("Plan", "Choose another ε on the Plan page")
                return
            agreed, ticked = payment.known_table(state)
            st.text_input("Note for the ledger", key=note)
        elif again:
            st.warning(
                f"This session has already made {'a release' if len(again) == 1 else f'{len(again)} releases'} from "
                "this table. Costs **add up**: the ρ of all releases is summed. If you pay from a ledger budget, the "
                "ledger keeps the total."
            )
            agreed = st.checkbox(
                "I want to spend the budget on this table again", key=f"again-{state.opened}-{len(state.spent)}"
            )

        def start() -> None:
            typed = st.session_state.get(note, "")  # the current value, even if typed just before the click
            paid = None if population is None else Paid(state.paid_from or "", payment.who(), typed, ticked)
            spending.start(state, share / 100, seen, paid)

        st.button(
            f"Spend ε = {plan.epsilon:g} and release",
            type="primary",
            disabled=not agreed,
            icon=":material/publish:",
            on_click=start,
            key=f"release-{state.releases}-{len(state.spent)}",
        )


if state.job is not None and state.job.kind == "release":
    shell.progress()
    st.caption("You can use the other pages in the meantime.")
elif state.job is not None:
    st.info("Another job of this session is running. Try again when it has ended.")
    shell.progress()
else:
    trouble(state)
    if state.has_project:
        released = any(s.table == state.tables for s in state.spent)
        holder = st.expander("Release again") if released else st.container()
        with holder:
            if (there := ready(state)) is not None:
                spend(state, *there)
if state.spent and (sums := spending.total(state)) and len([s for s in state.spent if s.table == state.tables]) > 1:
    st.warning(
        f"In this session, all releases of this table together cost ρ = {round_up(sums[0])}, which is ε = "
        f"{round_up(sums[1])} at δ = {round_up(sums[2])}."
    )
if state.released is not None:
    if state.too_late:
        st.info("It was too late to cancel, because all noise had been drawn and paid for. Here is the release.")
    opening_on_server.offer_whole(state)
    bundle.show(state, state.released)
for old in reversed(state.earlier):
    with st.expander(f"Files of release {old.number} of {name(old.release.project.name)}"):
        bundle.files(old)
shell.sidebar(state)
