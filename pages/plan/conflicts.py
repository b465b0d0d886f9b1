"""Conflicts of a plan, each shown at the field that resolves it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.pages.common import shell
from espalier.pages.common.text import plain

Spots = dict[str, Any]
"""Placeholder under each field of the plan, by the key of the errors shown there."""
_ON_SCREEN = {"delta": "Enter δ here: a number above 0 and far below 1/n, such as 1e-9."}
"""Text that identifies messages about δ, which the project file calls delta."""
_NEXT = {
    "rows": "δ is 1/n², so the plan needs the number of rows n: enter it here, or set δ.",
    "person": "Next: type the **Declared total** below. The real total is confidential, so the table is padded or cut "
    "to a number that you declare. Or choose add-remove under **Neighbouring tables**, which needs no such number.",
    "questions": "Next: add questions or counts below. This method answers only these.",
    "target": "Next: choose the **Target** above, the column to predict.",
}
"""Next step for an empty field, by the field that shows it."""
_EMPTY = {
    "rows": "set **the number of rows n or δ**",
    "person": "set **the declared total**",
    "questions": "add **a question or a count**",
    "target": "set **the target**",
}
"""What to do about an empty field, as other places show it."""


def to_fill_in(error: EspalierError) -> str:
    """Return the next step if a field is merely empty; an empty string if something is wrong."""
    key = error.data.get("key", "")
    return _NEXT.get(key, "") if key == "rows" or error.data.get("missing") else ""


def still_empty(error: EspalierError) -> str:
    """Return what to do about the missing input; an empty string if something is wrong."""
    return _EMPTY[error.data["key"]] if to_fill_in(error) else ""


def conflict(spots: Spots, error: EspalierError) -> None:
    """Show a conflict at the field that resolves it, or the next step if a field is merely empty."""
    key = error.data.get("key", "")
    sentence = plain(error)
    with spots.get(key) or st.container():
        if step := to_fill_in(error):
            st.info(step)
        else:
            st.error(_ON_SCREEN.get(key, f"{sentence[:1].upper()}{sentence[1:]}"))
        if key in ("roles", "regime"):
            shell.link_to("Structure", "Fix this on the Structure page", primary=False)
