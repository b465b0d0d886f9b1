"""Shared: the releases that the steward marked for others to see and take."""

import streamlit as st

from core.errors import EspalierError
from core.privacy.accounting import round_up
from core.release import shelf
from pages.parts import doors, text
from pages.parts.text import name, plain

doors.enter("viewer")

FILES = (
    ("synthetic.csv", "Synthetic table", "text/csv"),
    ("report.html", "Report", "text/html"),
    ("release.json", "Accounting (JSON)", "application/json"),
)

st.title("Shared releases", anchor=False)
st.markdown("Synthetic tables that the steward released and marked for sharing. They hold invented rows only.")
found = shelf.shared()
if not found:
    st.info("Nothing is shared yet. A steward marks a release for sharing on the Release page.")
for release in found:
    facts = release.facts
    spent, project = facts["spent"], facts["project"]
    unit = text.unit(spent["neighbors"], spent["rows_per_person"], spent.get("person"))
    with st.container(border=True):
        st.markdown(f"**{name(project['name'])}**: {facts['rows']:,} rows, {len(project['schema'])} columns")
        st.caption(
            f"{text.method(facts['method'])}; ε = {round_up(spent['epsilon'])} at "
            f"δ = {round_up(spent['delta'])} for {unit}."
        )
        with st.container(horizontal=True):
            try:
                files = shelf.files(release.id)
            except EspalierError as error:
                st.caption(plain(error))
                continue
            for file, label, mime in FILES:
                st.download_button(
                    label,
                    files[file],
                    file_name=f"{release.id}-{file}",
                    mime=mime,
                    on_click="ignore",
                    key=f"shared-{release.id}-{file}",
                    icon=":material/download:",
                )
