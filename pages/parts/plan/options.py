"""The fields of a method's own options, drawn from what the method declares of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from core.methods import method_of
from core.project.options import Option, declared
from pages.parts import text
from pages.parts.session.session import Session

Bound = Callable[[Session, str], dict[str, Any]]


def first(state: Session, bound: Bound) -> dict[str, Any]:
    """The choices that shape the plan, such as a regime, each with its meaning; returns the places under them."""
    spots = {}
    for key, said, value in _shown(state):
        if said.choices and not said.only:
            ways = list(said.choices)
            st.selectbox(
                said.label,
                ways,
                index=ways.index(value),
                format_func=str.capitalize,
                help=said.help or None,
                **bound(state, key),
            )
            st.markdown(text.plain(said.choices[value]))
            spots[key] = st.container()
    return spots


def further(state: Session, bound: Bound) -> None:
    """All other options, in two columns."""
    shown = [item for item in _shown(state) if not item[1].choices or item[1].only]
    for place, (key, said, value) in zip(st.columns(2) * len(shown), shown, strict=False):
        with place:
            _field(state, key, said, value, bound)


def any_further(state: Session) -> bool:
    """Does the plan's method have options beyond those that `first` draws?"""
    return any(not said.choices or said.only for _, said, _ in _shown(state))


def given(state: Session) -> dict[str, Any]:
    """The method's options that the plan gives another value than the default."""
    return {key: value for key, said, value in _shown(state) if value != _default(state, key) and not said.choices}


def _default(state: Session, key: str) -> Any:
    assert state.project is not None
    return getattr(method_of(state.project.plan).options(), key)


def _shown(state: Session) -> list[tuple[str, Option, Any]]:
    assert state.project is not None
    plan = state.project.plan
    method = method_of(plan)
    now = vars(method.read(plan))
    return [
        (key, said, now[key])
        for key, said in declared(method.options).items()
        if (method.fenced(plan) or not said.fenced) and all(now[k] == v for k, v in said.only.items())
    ]


def _field(state: Session, key: str, said: Option, value: Any, bound: Bound) -> None:
    field = bound(state, key)
    if said.choices:
        ways = list(said.choices)
        st.selectbox(
            said.label, ways, index=ways.index(value), format_func=said.choices.get, help=said.help or None, **field
        )
    elif said.low is None or said.high is None:
        st.toggle(said.label, value, wrap=True, help=said.help or None, **field)
    elif said.whole and said.high <= 10:
        st.slider(said.label, int(said.low), int(said.high), value, help=said.help or None, **field)
    elif said.whole:
        st.number_input(
            said.label, int(said.low), int(said.high), value, placeholder=said.empty or None, help=said.help or None,
            **field,
        )  # fmt: skip
    elif said.high <= 1:
        _share(state, key, said, value, bound)
    else:
        st.number_input(said.label, float(said.low), float(said.high), value, help=said.help or None, **field)


def _share(state: Session, key: str, said: Option, value: float, bound: Bound) -> None:
    """A share, typed in percent."""
    field = bound(state, key)

    def take() -> None:
        state.change_plan(**{key: st.session_state[field["key"]] / 100})

    low, high = round(100 * (said.low or 0)), round(100 * (said.high or 1))
    st.slider(
        f"{said.label} (%)", low, high, round(100 * value), help=said.help or None, key=field["key"], on_change=take
    )
