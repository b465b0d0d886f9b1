"""Ledger: one budget for all releases from the same people, and earlier releases to download again."""

import json
from typing import Any

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.ledger.archive import zipped
from espalier.core.ledger.ledger import Ledger, default_ledger
from espalier.core.ledger.population import PART_NAMES, Entry, Population
from espalier.core.methods import METHODS
from espalier.core.methods.pools import pool_in_words
from espalier.core.privacy.accounting import rho_asked, round_up
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.statement.folder import signed_files
from espalier.core.statement.keys import server_signer
from espalier.pages.analyse import open_release
from espalier.pages.common import charts, shell, sign_in, text
from espalier.pages.common.text import name, plain
from espalier.pages.glossary.terms import term
from espalier.pages.release import bundle, payment, spending
from espalier.pages.session.session import Session

sign_in.enter("steward")
state = shell.start(
    "Ledger",
    f"One privacy {term('budget')} for everything that is ever released about the same people. It cannot be overspent. "
    "Apart from the releases themselves, nothing here comes from real rows.",
)


def total(state: Session, p: Population) -> None:
    """Show the total, the amount spent, the remainder, and the remainder after the next plan."""
    with st.container(horizontal=True, gap="medium"):
        st.metric("Total ε", f"{p.epsilon:g}", width="content", help=f"At δ = {p.delta:g}, which is ρ = {p.rho:.6g}.")
        st.metric("Spent ε", round_up(p.epsilon_after(p.spent)), width="content", help="All releases together.")
        st.metric("Spent ρ", round_up(p.spent), width="content", help="ρ adds up; ε does not.")
        st.metric("Remaining ρ", f"{p.left:.4g}", width="content")
        largest = f"{p.largest():g}" if p.largest() else "none"
        st.metric(
            "Largest next ε",
            largest,
            width="content",
            help="Another plan with this ε would use up what is left. This ε may exceed the total minus the amount "
            "spent, because ρ adds up and ε does not.",
        )
    following, called = next_plan(state, p)
    charts.show(charts.ledger(p, following, called), f"ledger-{p.name}", "Spent, and the cost of the next plan")
    st.caption(
        f"For {text.unit(p.neighbors, p.rows_per_person)}; δ = {p.delta:g}. Opened by {name(p.opened_by)} on "
        f"{p.opened_at[:10]}"
        + (f": {plain(p.note)}" if p.note else "")
        + "."
        + "".join(
            f" Rows per person in {name(table)}: at most {p.rows_per_person}, {plain(p.unit_of(table))}."
            for table in p.tables
            if p.persons.get(table, "") is not None  # the caveats below describe the other tables
        )
        + " In linked tables, a row is one person with all their rows in both tables." * any(map(_is_linked, p.entries))
    )
    for caveat in p.caveats:
        st.info(f"{plain(caveat[:1].upper() + caveat[1:])}.")


def _is_linked(entry: Entry) -> bool:
    """Return whether an entry released linked tables."""
    method = METHODS.get(entry.plan.get("method", ""))
    return method is not None and method.capabilities.linked


def next_plan(state: Session, p: Population) -> tuple[float, str]:
    """Show what the open plan would leave, if this budget pays for it. Return the plan's ρ (0 if it takes none) and its
    name.
    """
    if not state.has_project:
        return 0.0, ""
    payer, _ = payment.chosen(state)
    if payer is None or payer.name != p.name:
        st.caption("The open plan is not paid from this budget. Choose the budget on the Release page.")
        return 0.0, ""
    try:
        plan = p.fits(state.project, state.paid_from or "").plan
    except EspalierError as error:
        st.info(f"The open plan cannot be paid from this budget: {plain(error)}")
        return 0.0, ""
    again = any(e.project == state.project.name and same_plan(e, plan) for e in p.entries if e.counted)
    rho = rho_asked(plan, p.delta)
    left = p.outlook(rho, plan.pure)
    if not left["fits"]:
        what, say = ("The same plan again", st.info) if again else ("The open plan", st.warning)
        say(f"{what} (ε = {plan.epsilon:g}) does not fit: it needs ρ = {round_up(rho)}.")
        return 0.0, ""
    more = (
        f"enough for a plan with ε up to {left['largest_after']:g}"
        if left["largest_after"]
        else "not enough for any plan"
    )
    what = "Releasing the same plan again" if again else "The open plan"
    st.markdown(f"{what}, ε = {plan.epsilon:g}, would leave **ρ = {left['after']:.4g}**: {more}.")
    return rho, "the same plan again" if again else "the open plan"


def same_plan(e: Entry, plan: Plan) -> bool:
    """Return whether this plan was already paid for. A plan without a δ uses the δ of the budget."""
    return {**e.plan, "delta": e.delta} == {**plan.to_json(), "delta": e.delta}


def entries(p: Population) -> None:
    """Show every entry, the newest first."""
    if not p.entries:
        st.info("Nothing has been released from this budget yet.")
        shell.link_to("Release", "Go to Release")
        return
    parts = st.toggle("Show every selection, measurement and check", value=True, key="parts")
    rows = [row for e in reversed(p.entries) for row in lines(p, e)[: None if parts else 1]]
    st.dataframe(
        rows,
        hide_index=True,
        placeholder="",
        column_config={
            "ρ": st.column_config.NumberColumn(format="%.4g"),
            "of": st.column_config.TextColumn("project or pool"),
            "when": st.column_config.TextColumn("when (UTC)", width=130),
            "table": st.column_config.TextColumn(width=110),
            "looked": st.column_config.NumberColumn(
                "earlier diagnostics",
                help="Number of times that confidential figures had been shown before this release.",
            ),
            "hash": st.column_config.TextColumn("hash of the release"),
        },
    )


def lines(p: Population, e: Entry) -> list[dict[str, Any]]:
    """Return one line for an entry, followed by one line for each of its parts."""

    def line(what: str, of: str, rho: float, before: float, after: float, **more: Any) -> dict[str, Any]:
        epsilons = {"ε before": p.epsilon_after(before), "ε after": p.epsilon_after(after)}
        shown = {key: round_up(epsilon) for key, epsilon in epsilons.items()}
        return {"what": what, "of": of, "status": e.status, "ρ": rho, **shown, **more}

    made = line(
        "release",
        e.project,
        e.counted,
        e.rho_before,
        e.rho_now,
        when=e.at.replace("T", " ").rstrip("Z"),
        method=text.method(e.plan.get("method", "")),
        plan=f"ε = {e.epsilon:g}",
        table=e.table,
        unit=e.unit,
        looked=e.diagnostics_before,
        who=e.who,
        note=e.note,
        entry=e.id,
        hash=e.released,
    )
    out = [made, *(line(f"↳ {PART_NAMES[x.kind]}", _said(x.what), x.rho, x.rho_before, x.rho_after) for x in e.parts)]
    if e.stopped_short:
        last = e.parts[-1].rho_after
        out.append(line("↳ not drawn", "still counted", e.undrawn, last, last + e.undrawn))
    return out


def _said(what: str) -> str:
    """Describe a part of an entry: its pool and the number of draws."""
    pool, comma, draws = what.rpartition(", ")
    return f"{pool_in_words(pool)}{comma}{draws}"


def unfinished(state: Session, ledger: Ledger, p: Population) -> None:
    """Offer to finish interrupted releases. Their answers are stored, so this costs no further budget."""
    stored = ledger.store.unfinished()
    for e in (e for e in p.entries if e.status == "reserved" and e.id in stored):
        st.warning(
            f"The release of {name(e.project)} from {e.at.replace('T', ' ').rstrip('Z')} UTC has not finished; "
            f"{stored[e.id]} of its noisy answers are stored. If no one is working on it any more, finish it at no "
            f"further "
            f"cost. Open its table on the Data page first, in case an answer is missing. On the command line: "
            f"`espalier resume {e.id} --out DIR --data TABLE`."
        )
        st.button(
            "Finish the release",
            key=f"resume-{e.id}",
            icon=":material/resume:",
            disabled=state.job is not None,
            on_click=spending.finish,
            args=(state, e.table, e.id),
        )
    if state.job is not None and state.job.kind == "resume":
        shell.progress()
    elif reason := state.trouble.get("resume"):
        st.error(plain(reason))


def releases(state: Session, ledger: Ledger, p: Population) -> None:
    """Reopen a release and download its files."""
    made = {e.id: e for e in reversed(p.entries) if e.released}
    if not made:
        return
    st.subheader("Releases", anchor=False)

    def label(id_: str) -> str:
        e: Entry = made[id_]
        return f"{e.at.replace('T', ' ').rstrip('Z')} UTC · {e.project} · ε = {e.epsilon:g} · {e.id}"

    picked = st.selectbox("Release", list(made), index=None, format_func=label, placeholder="Choose one to open it")
    if picked is None:
        return
    try:
        files = signed_files(ledger.files(made[picked].released or ""), server_signer())
        project = Project.loads(files["project.json"])
        about, tables = bundle.in_short(project, files)
    except EspalierError as error:
        st.error(plain(error))
        return
    st.markdown(f"{about} These are the original files of the release: their hash matches the one in the entry.")
    for rows in tables:
        st.dataframe(rows, hide_index=True, placeholder="")
    stem = shell.filename(project.name)
    with st.container(horizontal=True):
        st.download_button(
            "All files (zip)",
            zipped(files),
            file_name=f"{stem}-{picked}.zip",
            mime="application/zip",
            on_click="ignore",
            key=f"zip-{picked}",
            type="primary",
            icon=":material/download:",
        )
        for file, title, mime in bundle.handed_over(files):
            st.download_button(
                title,
                files[file],
                file_name=f"{stem}-{file}",
                mime=mime,
                on_click="ignore",
                key=f"file-{picked}-{file}",
                icon=":material/download:",
            )
        st.button(
            "Open its project",
            on_click=state.open,
            args=(project,),
            key=f"open-{picked}",
            icon=":material/folder_open:",
        )
        analysed = st.button("Analyse it", key=f"analyse-{picked}", icon=":material/query_stats:")
    if analysed:
        open_release.take(state, lambda: files)
        st.switch_page(shell.PAGES["Analyse"])


def checks(ledger: Ledger) -> None:
    """Show the buttons that verify and export the ledger."""
    with st.container(horizontal=True):
        verify = st.button("Check every hash and sum", icon=":material/fact_check:")
        st.download_button(
            "Export as CSV",
            ledger.csv(),
            file_name="ledger.csv",
            mime="text/csv",
            on_click="ignore",
            icon=":material/download:",
        )
        st.download_button(
            "Export as JSON",
            json.dumps(ledger.to_json(), indent=1, ensure_ascii=False, allow_nan=False),
            file_name="ledger.json",
            mime="application/json",
            on_click="ignore",
            icon=":material/download:",
        )
    if verify:
        problems = ledger.verify()
        for problem in problems:
            st.error(f"{plain(problem)}.")
        if not problems:
            count, last = ledger.head()
            st.success(
                f"{count} events checked: every hash and sum is correct, and every rule is met. The last "
                f"hash is {name(last)}."
            )


ledger, trouble = payment.open_ledger()
known, broken = payment.budgets(ledger)
if trouble := trouble or broken:
    st.error(f"{plain(trouble)} Expected ledger: {name(ledger.name if ledger else text.where(default_ledger()))}.")
elif ledger is None or not known:
    st.info(
        "No budget is open yet. A budget is one limit, in ε and δ, for all releases from the same people, by "
        "anyone. It persists when the app stops. Open one for your table: the Release page then pays from it."
    )
    payment.opening_form(state, known)
else:
    people = list(dict.fromkeys(p.name for p in known.values()))
    populations = {p.name: p for p in known.values()}
    mine = known[state.paid_from].name if state.paid_from in known else people[-1]
    picked = people[0]
    if len(people) > 1:
        picked = st.selectbox("Budget to show", people, index=people.index(mine), key=f"budget-{len(people)}-{mine}")
    population = populations[picked]
    st.subheader(f"The budget of {plain(picked)}", anchor=False)
    total(state, population)
    st.subheader("Entries", anchor=False)
    entries(population)
    unfinished(state, ledger, population)
    releases(state, ledger, population)
    st.subheader(
        "The ledger itself",
        anchor=False,
        help=f"The ledger is {name(ledger.name)}. Events are only ever added, and each event contains the hash of the "
        f"previous event.",
    )
    checks(ledger)
    with st.expander("Open another table's budget"):
        payment.opening_form(state, known)
shell.sidebar(state)
