"""The button of every download: its bytes are made when it is pressed, and the press is an audit event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from espalier.core.server import events
from espalier.pages.common import sign_in

Made = bytes | str


def button(label: str, data: Made | Callable[[], Made], place: DeltaGenerator | None = None, **options: Any) -> None:
    """Show a download button at ``place`` (by default here)."""
    if isinstance(data, str):
        options.setdefault("mime", "text/plain")
    who, file = sign_in.who(), str(options.get("file_name", ""))

    def pressed() -> Made:
        kind = file.rpartition(".")[2][:8]
        events.emit("download", who, {"file": file}, type=kind, confidential="CONFIDENTIAL" in file)
        return data() if callable(data) else data

    (st if place is None else place).download_button(label, pressed, **options)
