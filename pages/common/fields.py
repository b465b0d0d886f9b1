"""Fields whose value is changed elsewhere too: on the drawing, by undo, in another field.

Setting a widget's state from Python races with the browser: a rerun that was started before the browser heard of the
new value brings the old one along, and Streamlit takes it for what the person chose. So a field that was changed
elsewhere becomes a new widget, with the new value as its default; one that was changed by its own hand stays what it
is, and keeps the focus.
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
    """The field ``name``, to show ``value``: the same widget as before, unless that showed something else."""
    known = state.drafts.fields
    old = known.get(name)
    if old is None or not _alike(old.shown, value) or old.basis != basis or old.key not in st.session_state:
        state.drafts.fields_made += 1
        known[name] = Field(f"{name}-{state.opened}-{state.drafts.fields_made}", value, value, basis)
    return known[name]


def taken(state: Session, name: str) -> Any:
    """What the person chose in the field ``name``; for its ``on_change``."""
    own = state.drafts.fields[name]
    value = st.session_state[own.key]
    own.shown = value
    return value


def number(text: str, what: str) -> float:
    """A number as it was typed, a decimal comma being a point; raises :class:`EspalierError` for what may mean two.

    Browsers drop what their own number fields do not know: there 1,5 becomes 15. So budgets are typed as text.
    """
    typed = text.strip()
    if re.fullmatch(r"[+-]?[1-9]\d{0,2}([.,]\d{3})+([.,]\d+)?", typed) and not re.fullmatch(r"[+-]?\d+\.\d+", typed):
        raise EspalierError(f"{what}: {text!r} may mean two numbers; type it without separators, such as 1.5")
    try:
        value = float(typed.replace(",", ".")) if typed.isascii() and "_" not in typed else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise EspalierError(f"{what} must be a number such as 1.5 or 1e-9, not {text!r}")
    return value


def _alike(one: Any, other: Any) -> bool:
    """Equal; lists in whatever order."""
    if isinstance(one, list) and isinstance(other, list):
        return sorted(one) == sorted(other)
    return bool(one == other)
