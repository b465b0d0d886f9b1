"""Open a release from another session: from the ledger, from its zip, or from a folder on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import streamlit as st

from espalier.core.analysis.loading import Files, read_files
from espalier.core.analysis.study import Study
from espalier.core.errors import EspalierError, ProjectError
from espalier.core.ledger.archive import check_names, files_of, has_model, unpacked
from espalier.core.project.json_text import read_json
from espalier.core.project.linked import FORMAT
from espalier.core.release.shelf import identity
from espalier.core.statement.check import checked_files, checked_folder
from espalier.pages.common import shell, sign_in
from espalier.pages.common.text import plain
from espalier.pages.session.session import Session


def show(state: Session, *, open_: bool) -> None:
    """Show the places from which a release can be opened. A folder is offered only on a single-user server, because the
    path refers to the server's own disk.
    """
    if reason := state.trouble.pop("analyse", None):
        st.error(f"This release was not opened: {plain(reason)}")
    with st.expander("Open another release", expanded=open_):
        st.markdown("Open a release from another session. This reads only the release's own files and costs nothing.")
        file = st.file_uploader(
            "Release files (zip)",
            type=["zip"],
            key=f"analyse-zip-{len(state.taken)}",
            help="The zip file downloaded from the Release or Ledger page.",
        )
        if file is not None:
            data = file.getvalue()
            st.button("Open these files", type="primary", on_click=take, args=(state, lambda: unpacked(data)))
        if not sign_in.guarded():
            folder = st.text_input(
                "Or a release folder on this machine", placeholder="out/hiring", key="analyse-folder"
            )
            st.button(
                "Open the folder", on_click=take, args=(state, lambda: of_folder(folder), folder), disabled=not folder
            )
        shell.link_to("Ledger", "Choose one from the ledger", primary=False)


def take(state: Session, files: Callable[[], Mapping[str, bytes]], folder: str = "") -> None:
    """Add a release to those that can be analysed, and select it. Errors appear on the page."""
    sign_in.need_steward()
    try:
        found = files()
        if "release.json" not in found:
            raise ProjectError("release.json is missing")
        check_names(found, has_model(found["release.json"]))
        key = identity(found)
        state.taken = {key: opened(found)} | state.taken
        state.checked[key] = checked_folder(Path(folder).expanduser()) if folder else checked_files(found)
    except EspalierError as error:
        state.trouble["analyse"] = str(error)
        return
    st.session_state[chooser(state)] = key


def opened(files: Mapping[str, bytes]) -> Study | Files:
    """Return the study of a release's files, or their contents if the release has linked tables. Raises
    `ProjectError`.
    """
    project = read_json(files["release.json"], "release.json").get("project")
    if isinstance(project, Mapping) and project.get("format") == FORMAT:
        return read_files(files)
    return Study.of_files(files)


def chooser(state: Session) -> str:
    """Return the key of the field that selects a release: a new one whenever a release is added."""
    return f"analyse-which-{state.releases}-{len(state.taken)}"


def of_folder(text: str) -> dict[str, bytes]:
    """Return the files of a release's folder."""
    try:
        return files_of(Path(text).expanduser())
    except (OSError, RuntimeError, ValueError) as error:  # the home folder of an unknown user, or not a path
        raise ProjectError(f"cannot read {text}: {getattr(error, 'strerror', None) or error}", path=text) from None
