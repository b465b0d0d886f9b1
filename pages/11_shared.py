"""Shared: releases that the steward made available to viewers."""

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.ledger.archive import tables_of
from espalier.core.privacy.accounting import guess_right, round_up
from espalier.core.release import shelf
from espalier.pages.common import shell, sign_in, text
from espalier.pages.common.text import names, plain
from espalier.pages.release import bundle

sign_in.enter("viewer")

# Files that a viewer may download in addition to the tables. Streamlit would show a docstring here on the page.
TAKEN = ("report.html", "release.json")

shell.look()
st.title("Shared releases", anchor=False)
st.markdown(
    f"{text.SAFE} Synthetic tables that the steward chose to share. Every row is invented. Read the report before "
    "you use a table."
)
found = shelf.shared()
if not found:
    st.info("Nothing is shared yet. Releases that the steward shares appear here.")
    if sign_in.role() == "steward":
        shell.link_to("Release", "Share one on the Release page")
for release in found:
    facts = release.facts
    asked = facts["asked"]
    unit = text.unit_of(release.project)
    with st.container(border=True):
        st.subheader(plain(release.project.name), anchor=False)
        day = f", released on {plain(facts['date'])}" if facts.get("date") else ""
        lines = [f"{facts['rows']:,} invented rows in {len(release.project.schema.columns)} columns{day}."]
        for s in facts.get("separations", []):
            given = f" except through {names(s['given'])}" if s["given"] else ""
            lines.append(f"By design it shows no link between {names(s['left'])} and {names(s['right'])}{given}.")
        lines.append(
            f"{text.guess(guess_right(asked['epsilon'], asked['delta']))} (ε = {round_up(asked['epsilon'])}, "
            f"δ = {round_up(asked['delta'])}, unit of privacy: {unit}.)"
        )
        st.markdown("\n".join(f"- {line}" for line in lines))
        with st.container(horizontal=True):
            try:
                files = shelf.files(release.id)
            except EspalierError as error:
                st.warning(plain(error))
                continue
            tables = tables_of(files)
            for file, label, mime in bundle.handed_over((*tables, *TAKEN)):
                st.download_button(
                    label,
                    files[file],
                    file_name=f"{release.id}-{file}",
                    mime=mime,
                    on_click="ignore",
                    key=f"shared-{release.id}-{file}",
                    icon=":material/download:",
                )
shell.fold()
