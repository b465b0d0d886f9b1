"""Display of a release: its files, its graph with the fence, its cost, and its first rows."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterable, Mapping

import streamlit as st

from espalier.core.analysis.noisy_counts import COUNTS
from espalier.core.errors import EspalierError, ProjectError
from espalier.core.ledger.archive import tables_of, zipped
from espalier.core.planning.budget_lines import Line, lines_of
from espalier.core.privacy.accounting import round_up
from espalier.core.privacy.bought_schema import nothing_found
from espalier.core.project.file import Project
from espalier.core.release import shelf
from espalier.core.release.artefact import Release
from espalier.pages.common import charts, picture, shell, sign_in, text
from espalier.pages.common.text import SAFE, name, names, plain
from espalier.pages.plan import measurement_table
from espalier.pages.release import answers, fence, payment
from espalier.pages.session.bundles import ReleaseBundle
from espalier.pages.session.session import Session

FILES = (
    ("report.html", "Report", "text/html"),
    ("release.json", "Accounting (JSON)", "application/json"),
    ("project.json", "Project file", "application/json"),
    ("model.npz", "Model", "application/octet-stream"),
    (COUNTS, "Noisy counts", "application/octet-stream"),
)
"""Files offered in addition to the tables: file, name on screen, type."""


def handed_over(names: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return the files offered separately for a release with these ``names``, its tables first."""
    known = list(names)
    tables = tables_of(known)
    title = "Synthetic table" if len(tables) < 2 else "Table of {}"
    first = [(file, title.format(file.removesuffix(".csv")), "text/csv") for file in tables]
    return [*first, *(of for of in FILES if of[0] in known)]


def in_short(project: Project, files: Mapping[str, bytes]) -> tuple[str, list[list[dict[str, str]]]]:
    """Return a sentence about a kept release, and the first rows of its tables. Raises :class:`ProjectError` for any
    other content.

    Anyone who can write to the ledger may have stored arbitrary text in place of a release.
    """
    try:
        facts = json.loads(files["release.json"])
        spent, made = facts["spent"], "rows" if project.linked is None else "people and their visits"
        about = (
            f"{name(project.name)}: {facts['rows']:,} synthetic {made}, {len(project.schema.columns)} columns, by "
            f"{text.method(facts['method'])}; ε = {round_up(spent['epsilon'])} at δ = {round_up(spent['delta'])}."
        )
        tables = [io.StringIO(files[table].decode()) for table in tables_of(files)]
        return about, [list(itertools.islice(csv.DictReader(table), 10)) for table in tables]
    except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RecursionError, csv.Error):
        raise ProjectError("This release is damaged and cannot be shown.") from None


def files(released: ReleaseBundle) -> None:
    """Offer all files of a release as one zip, followed by a button for each file."""
    stem = shell.filename(released.release.project.name)
    st.download_button(
        "Download everything (zip)",
        released.zip,
        file_name=f"{stem}-release-{released.number}.zip",
        mime="application/zip",
        on_click="ignore",
        key=f"take-{released.number}-zip",
        type="primary",
        icon=":material/folder_zip:",
    )
    st.markdown(f"{SAFE} Or download a single file:")
    with st.container(horizontal=True):
        for file, label, mime in handed_over(released.files):
            st.download_button(
                label,
                released.files[file],
                file_name=f"{stem}-{file}",
                mime=mime,
                on_click="ignore",
                key=f"take-{released.number}-{file}",
                icon=":material/download:",
            )
    if copies := [file for file in released.files if file.startswith("copies/")]:
        st.download_button(
            f"{sum(file.endswith('.csv.gz') for file in copies)} copies, for intervals",
            lambda: zipped({file: released.files[file] for file in copies}),
            file_name=f"{stem}-copies.zip",
            mime="application/zip",
            on_click="ignore",
            key=f"take-{released.number}-copies",
            icon=":material/download:",
        )
    if sign_in.guarded():
        _sharing(released)


def _sharing(released: ReleaseBundle) -> None:
    """Let the user share a release with viewers, or withdraw it."""
    try:
        there = shelf.is_shared(released.files)
        on = st.toggle(
            "Shared with viewers",
            value=there,
            key=f"share-{released.number}",
            help="Anyone who signs in as a viewer can see this release's figures and download its table, report and "
            "accounting. They cannot see anything else in this project.",
        )
        if on and not there:
            shelf.share(released.files)
        elif there and not on:
            shelf.take_back(shelf.identity(released.files))
    except EspalierError as error:
        st.error(plain(error))


def show(state: Session, released: ReleaseBundle) -> None:
    """Show the release: its files, graph, cost and first rows."""
    release = released.release
    project = release.project
    made = "rows" if project.linked is None else "people and their visits"
    st.subheader(f"Release {released.number} of {plain(project.name)}: {release.rows:,} synthetic {made}", anchor=False)
    shell.focus(f"Release {released.number} of", f"{id(state)}-{released.number}")
    if state.has_project and not state.project.says_the_same(released.planned):
        st.info(
            "The open project differs from the one that this release was made from. The release's own project file "
            "is below."
        )
    for warning in nothing_found(released.planned.schema, project.schema):
        st.warning(plain(warning))
    files(released)
    payment.recorded(release)
    with st.container(horizontal=True):
        shell.link_to("Diagnostics", "Next: Diagnostics")
        shell.link_to("Analyse", "Analyse: figures with intervals", primary=False)
    told = released.facts
    tabs = ["What was measured", "What was spent", "First rows", *["Questions"] * ("questions" in told)]
    graph, bill, rows, *questions = st.tabs(tabs)
    for place in questions:
        with place:
            answers.show(told, f"asked-{released.number}")
    with graph:
        _picture(released)
    with bill:
        spent = told["spent"]
        unit = text.unit(spent["neighbors"], spent["rows_per_person"], spent["person"], linked="tables" in told)
        st.markdown(
            f"Spent: ε = {round_up(spent['epsilon'])} at δ = {round_up(spent['delta'])}, ρ = "
            f"{round_up(spent['rho'])} for {unit}."
        )
        bought = lines(release)
        charts.show(
            charts.budget(bought, spent["rho"] if spent["delta"] else spent["epsilon"], pure=not spent["delta"]),
            "spent-budget",
            "Share of the budget by pool, as spent",
        )
        measurement_table.table(bought)
        if release.private_evaluation is not None:
            st.markdown(
                "**The private evaluation** used separate, held-out people, so it adds no privacy cost. It is on the "
                "Diagnostics page, in the report and in release.json."
            )
            measurement_table.table(list(lines_of(release.private_evaluation.draws)))
    with rows:
        tables = {"": release.table} if release.tables is None else release.tables.texts
        for title, table in tables.items():
            if title:
                st.markdown(f"**{plain(title)}**")
            st.dataframe({n: cells[:20] for n, cells in table.items()}, hide_index=True)


def _picture(released: ReleaseBundle) -> None:
    """Show the drawing, the measured pairs, and the pairs refused by the fence, in one picture or in two (before and
    after).
    """
    release, made = released.release, released.picture
    edges = release.edges
    shown = "One picture"
    if made.before:
        shown = st.segmented_control(
            "Picture",
            ("One picture", "Before and after"),
            default="One picture",
            required=True,
            key="release-picture-of",
        )
    if shown == "One picture" and made.whole:
        picture.show(made.whole, "release-picture", "release")
        st.caption(
            "Solid lines are measured links; those with an arrowhead were also drawn. The wider a line, the stronger "
            "the link in the released rows."
            + " Dotted lines are measured links that noise alone would explain." * bool(made.drowned)
            + " Grey dashed lines were drawn but not measured." * ('class="faded"' in made.whole)
            + " Red dashed lines are links that the frame (the separations of the plan) keeps out." * bool(made.refused)
            + (" A cross in a circle marks causes that act together." if 'class="together"' in made.whole else "")
            + (
                f" The text below also lists measured pairs that are not shown: {made.unseen}."
                if made.unseen > 0
                else ""
            )
            + (f" Columns without a line: {', '.join(map(plain, made.apart))}." if made.apart else "")
        )
    elif made.whole:
        left, right = shell.beside((1, 1), "release-pictures")
        with left:
            st.markdown("**Before: what was drawn**")
            picture.show(made.before, "release-before", "drawn")
        with right:
            st.markdown("**After: what was measured**")
            picture.show(made.after, "release-after", "measured")
    if release.plan_frame.separations:
        fence.sides_said(release, released.facts.get("explained"))
    if release.fitted.features:
        targets = list(release.project.plan.weights)
        chosen = [c for c in release.fitted.features if c not in targets[:1]]
        st.markdown(f"Measured together with {names(targets)}: {names(chosen, 40)}.")
    for s in release.plan_frame.separations:
        kept = "holds" if release.model.answers(s) != "not promised" else "**does not hold**"
        given = f" given {names(s.given)}" if s.given else ""
        st.markdown(f"- {names(s.left)} and {names(s.right)} are independent{given}: {kept}.")
    fence.given_up(released.facts.get("explained"))
    with st.expander(f"The {len(edges)} measured pairs as text"):
        st.markdown("; ".join(f"{name(a)} – {name(b)}" for a, b in edges) or "None: no columns are linked.")
    fence.ask(release)


def lines(release: Release) -> list[Line]:
    """Return the purchases in the order in which they were made, in the format of the plan's preview."""
    return list(lines_of(release.spending.draws))
