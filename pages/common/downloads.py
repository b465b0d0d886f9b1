"""Audit events for downloads: one for each file that a browser fetches.

Streamlit calls nothing when a download button with ``on_click="ignore"`` is pressed. A callback would redraw the page,
and a redraw drops any file made on demand, even while it is being downloaded. This module therefore watches the storage
of downloads.
"""

from __future__ import annotations

from typing import Any

from streamlit.runtime.media_file_storage import MediaFileKind
from streamlit.runtime.scriptrunner import get_script_run_ctx

from espalier.core.server import events

_people: dict[str, str] = {}
"""The signed-in person of each session."""


def remember(who: str) -> None:
    """Remember who is signed in to this session."""
    if (context := get_script_run_ctx()) is not None:
        _people[context.session_id] = who


def watch(server: Any) -> None:
    """Record each fetch of a file from ``server``, Streamlit's runtime."""
    manager = server.media_file_mgr
    storage = manager._storage
    find = storage.get_file

    def get_file(name: str) -> Any:
        found = find(name)
        file_id, _, suffix = name.partition(".")
        if suffix and found.kind == MediaFileKind.DOWNLOADABLE:  # without a suffix, Streamlit only looks up the address
            with manager._lock:
                places = manager._files_by_session_and_coord.items()
                sessions = [session for session, files in places if file_id in files.values()]
            file = found.filename or ""
            for who in sorted({_people.get(session, "") for session in sessions}) or [""]:
                events.emit("download", who, {"file": file}, type=suffix[:8], confidential="CONFIDENTIAL" in file)
        return found

    storage.get_file = get_file


def forget(sessions: list[str]) -> None:
    """Forget who was signed in to sessions other than these."""
    for gone in _people.keys() - set(sessions):
        _people.pop(gone, None)
