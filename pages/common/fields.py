"""Fields whose value can also change elsewhere: on the drawing, by undo, or in another field.

Setting a widget's state from Python races with the browser. A rerun that started before the browser received the new
value returns the old value, and Streamlit treats the old value as the user's choice. A field that changed elsewhere
therefore becomes a new widget with the new value as its default. A field that the user changed remains the same widget
and keeps the focus.
"""

from __future__ import annotations

import math
import re
from typing import Any

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.pages.session.drafts import Field
from espalier.pages.session.session import Session


def field(state: Session, name: str, value: Any, basis: Any = None) -> Field:
    """Return the field ``name`` for ``value``: the same widget as before, unless that widget showed a different
    value.
    """
    known = state.drafts.fields
    old = known.get(name)
    if old is None or not _alike(old.shown, value) or old.basis != basis or old.key not in st.session_state:
        state.drafts.fields_made += 1
        known[name] = Field(f"{name}-{state.opened}-{state.drafts.fields_made}", value, value, basis)
    return known[name]


def taken(state: Session, name: str) -> Any:
    """Return the user's choice in the field ``name``; for its ``on_change``."""
    own = state.drafts.fields[name]
    value = st.session_state[own.key]
    own.shown = value
    return value


def number(text: str, what: str) -> float:
    """Parse a typed number, with a point or a decimal comma; raises :class:`EspalierError` if it is ambiguous.

    Budgets are typed as text because browsers drop characters that their number fields do not know: 1,5 becomes 15.
    """
    typed = text.strip()
    if re.fullmatch(r"[+-]?[1-9]\d{0,2}([.,]\d{3})+([.,]\d+)?", typed) and not re.fullmatch(r"[+-]?\d+\.\d+", typed):
        raise EspalierError(f"{what}: {text!r} is ambiguous; type it without separators, such as 1.5")
    try:
        value = float(typed.replace(",", ".")) if typed.isascii() and "_" not in typed else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise EspalierError(f"{what} must be a number such as 1.5 or 1e-9, not {text!r}")
    return value


def _alike(one: Any, other: Any) -> bool:
    """Return whether two values are equal, ignoring the order of lists."""
    if isinstance(one, list) and isinstance(other, list):
        return sorted(one) == sorted(other)
    return bool(one == other)
