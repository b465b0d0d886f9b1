"""Conflicts of a plan, each shown at the field that resolves it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.pages.common import shell
from espalier.pages.common.text import plain

Spots = dict[str, Any]
"""The place under each field of the plan, by the key of the errors that belong there."""
_ON_SCREEN = {"delta": "δ must be given here: a number above 0 and far below 1/n, such as 1e-9."}
"""Messages about δ, which the project file calls delta."""
_NEXT = {
    "rows": "δ is 1/n², so the plan needs the number of rows n: type it here, or give δ a number.",
    "person": "Next: type the **Declared total of rows** below. How many rows are left when each person keeps only a "
    "few is confidential, so the table is filled up or cut to a number that you declare. Or choose add-remove under "
    "**Neighbouring tables**, which needs no such number.",
    "questions": "Next: add questions or counts below. This method answers nothing else.",
    "target": "Next: choose the **Target** above. The method protects what predicts one column: choose it.",
}
"""Next step for a field that is still empty, by the field that shows it."""
_EMPTY = {
    "rows": "the number of rows n, or δ",
    "person": "the declared total of rows",
    "questions": "a question or a count",
    "target": "the target",
}
"""Name of such a field on other pages."""


def to_fill_in(error: EspalierError) -> str:
    """Return the next step if a field is only still empty; an empty text if something is wrong."""
    key = error.data.get("key", "")
    return _NEXT.get(key, "") if key == "rows" or error.data.get("missing") else ""


def still_empty(error: EspalierError) -> str:
    """Return the name of what is still missing; an empty text if something is wrong."""
    return _EMPTY[error.data["key"]] if to_fill_in(error) else ""


def conflict(spots: Spots, error: EspalierError) -> None:
    """Show a conflict at the field that resolves it, or the next step if a field is only empty."""
    key = error.data.get("key", "")
    sentence = plain(error)
    with spots.get(key) or st.container():
        if step := to_fill_in(error):
            st.info(step)
        else:
            st.error(_ON_SCREEN.get(key, f"{sentence[:1].upper()}{sentence[1:]}"))
        if key in ("roles", "regime"):
            shell.link_to("Structure", "Fix this on the Structure page", primary=False)
