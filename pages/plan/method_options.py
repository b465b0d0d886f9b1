"""Fields of a method's own options, built from their declarations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import streamlit as st

from espalier.core.methods import is_fenced, options_of
from espalier.core.project.options import Option, declared, read_options
from espalier.pages.common import fields, text
from espalier.pages.session.session import Session

Bound = Callable[..., dict[str, Any]]
"""Function that returns a field's key and the callback that stores its value in the plan."""


class Given(NamedTuple):
    """An option of the plan's method, and its value in the plan."""

    key: str
    option: Option
    value: Any

    @property
    def leads(self) -> bool:
        """True if the option shapes the plan; its field is then directly below the method."""
        return bool(self.option.choices) and not self.option.only


def first(state: Session, bound: Bound) -> dict[str, Any]:
    """Draw the choices that shape the plan, such as a regime, each with a description. Return the placeholders below
    them.
    """
    spots = {}
    for key, option, value in (given for given in _shown(state) if given.leads):
        choices = list(option.choices)
        st.selectbox(
            option.label,
            choices,
            index=choices.index(value),
            format_func=str.capitalize,
            help=option.help or None,
            **bound(state, key),
        )
        st.markdown(text.plain(option.choices[value]))
        spots[key] = st.container()
    return spots


def further(state: Session, bound: Bound) -> dict[str, Any]:
    """Draw all other options in two columns; return the place below each option."""
    shown = [given for given in _shown(state) if not given.leads]
    for k in range(0, len(shown), 2):
        for place, given in zip(st.columns(2), shown[k : k + 2], strict=False):
            with place:
                _field(state, given, bound)
    return dict.fromkeys((given.key for given in shown), st.container())


def any_further(state: Session) -> bool:
    """Return whether the plan's method has options other than those drawn by `first`."""
    return any(not given.leads for given in _shown(state))


def any_changed(state: Session) -> bool:
    """Return whether the plan sets one of these further options to a value other than the default."""
    usual = vars(options_of(state.project.plan)())
    return any(given.value != usual[given.key] for given in _shown(state) if not given.leads)


def _shown(state: Session) -> list[Given]:
    plan = state.project.plan
    own = options_of(plan)
    now = vars(read_options(own, plan.options))
    return [
        Given(key, option, now[key])
        for key, option in declared(own).items()
        if (is_fenced(plan) or not option.fenced)
        and all(now[k] in (v if isinstance(v, tuple) else (v,)) for k, v in option.only.items())
    ]


def _field(state: Session, given: Given, bound: Bound) -> None:
    key, option, value = given
    tip = option.help or None
    if option.choices:
        choices, label = list(option.choices), option.choices.__getitem__
        st.selectbox(option.label, choices, choices.index(value), label, help=tip, **bound(state, key))
    elif option.columns:
        columns = _offered(state, option)
        hint = option.empty or "Choose a column"
        if option.columns == "one":
            index = columns.index(value) if value in columns else None
            st.selectbox(option.label, columns, index, placeholder=hint, help=tip, **bound(state, key))
        else:
            now = [name for name in value or () if name in columns]
            st.multiselect(
                option.label,
                columns,
                now,
                placeholder=hint,
                help=tip,
                **bound(state, key, lambda s, chosen: s.editor.change_plan(**{key: chosen or None})),
            )
    elif option.weights:
        _weights(state, given, bound)
    elif option.low is None or option.high is None:
        st.toggle(option.label, value, wrap=True, help=tip, **bound(state, key))
    elif option.whole and option.high <= 10 and not option.empty:
        st.slider(option.label, int(option.low), int(option.high), value, help=tip, **bound(state, key))
    elif not option.whole and option.high <= 1 and not option.empty and not 0 < option.low < 0.01:
        _share(state, given, bound)
    else:
        kind = int if option.whole else float
        st.number_input(
            option.label,
            kind(option.low),
            kind(option.high),
            value,
            placeholder=option.empty or None,
            format="%g" if not option.whole and option.low < 0.01 else None,
            help=tip,
            **bound(state, key),
        )


def _offered(state: Session, option: Option) -> list[str]:
    """Return the columns that an option may name."""
    project = state.project
    if option.of_visits and project.linked is not None:
        return [name for name in project.linked.step_columns(project.schema) if name in project.schema]
    return [name for name in project.schema.names if name != project.plan.target]


def _weights(state: Session, given: Given, bound: Bound) -> None:
    """Show a text field with one weight per line. Each weight applies to one or more columns."""
    key, option, value = given

    def take(s: Session, typed: str) -> None:
        weights = {}
        for line in filter(str.strip, typed.splitlines()):
            what, _, number = line.rpartition(":")
            weights[what.strip()] = fields.number(number, f"the weight of {what.strip()}")
        s.editor.change_plan(**{key: weights})

    lines = "\n".join(f"{what}: {number:g}" for what, number in value.items())
    tip = f"{option.help} Write one weight per line, such as {option.example}".strip()
    st.text_area(option.label, lines, placeholder=option.example, help=tip, **bound(state, key, take))
    if key in state.trouble:
        st.error(f"{text.plain(state.trouble[key])} The plan keeps its old weights.")


def _share(state: Session, given: Given, bound: Bound) -> None:
    """Show the field for a share, in percent."""
    key, option, value = given

    def take(s: Session, percent: int) -> None:
        s.editor.change_plan(**{key: percent / 100})

    low, high = round(100 * (option.low or 0)), round(100 * (option.high or 1))
    st.slider(f"{option.label} (%)", low, high, round(100 * value), help=option.help or None, **bound(state, key, take))
