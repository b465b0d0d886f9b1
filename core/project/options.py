"""Options: keys of a plan that belong to one method, declared in a separate dataclass.

A method declares each of its options with :func:`option`; pages draw the field from this declaration, and
:func:`read_options` checks the plan's values. A plan is flat; its file does not state which keys belong to a method.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from espalier.core.errors import ProjectError

T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """Declaration of an option: ``label`` and ``help`` on screen, bounds of a number, ``choices`` with their
    labels.

    The bounds ``low`` and ``high`` are inclusive. ``whole`` requires a whole number. ``empty`` explains a missing
    value, if `None` is allowed. If ``columns``, the option is a list of column names; with ``of_visits``, of columns
    that every visit has. With ``weights``, the option maps column names, or combinations such as "age × income", to
    numbers, which may be 0 if ``low`` is 0. ``example`` is a sample line. A ``fenced`` field is shown only if the plan
    has a fence. With ``only``, the field is shown if the options have the values given there (a tuple lists
    alternatives). ``pool`` is the pool that this share pays for, and ``unbought`` is the message if a plan buys nothing
    with it.
    """

    label: str
    help: str = ""
    low: float | None = None
    high: float | None = None
    whole: bool = False
    choices: Mapping[str, str] = field(default_factory=dict)
    empty: str = ""
    weights: bool = False
    example: str = "age × income: 2"
    columns: Literal["", "one", "several"] = ""
    of_visits: bool = False
    fenced: bool = False
    pool: str = ""
    unbought: str = ""
    only: Mapping[str, Any] = field(default_factory=dict)


def option(default: Any, label: str, **says: Any) -> Any:
    """Return a dataclass field that is an option; ``says`` gives the other fields of :class:`Option`."""
    made = {"option": Option(label, **says)}
    if isinstance(default, Mapping):
        return field(default_factory=lambda: dict(default), metadata=made)
    return field(default=default, metadata=made)


def declared(kind: type[Any]) -> dict[str, Option]:
    """Return the options declared by a dataclass, by key."""
    return {f.name: f.metadata["option"] for f in dataclasses.fields(kind)}


def read_options(kind: type[T], given: Mapping[str, Any]) -> T:
    """Return the options of ``kind`` with the ``given`` values and defaults; ignore keys of other methods.

    Raises :class:`ProjectError` for an impossible value, with its ``key``.
    """
    said = declared(kind)
    for key, value in given.items():
        if key in said:
            _check(key, value, said[key])
    return kind(**{key: value for key, value in given.items() if key in said})


def check_keys(given: Iterable[str], kinds: Sequence[type[Any]]) -> None:
    """Raise :class:`ProjectError` for a key that none of ``kinds`` declares."""
    known = {name for said in map(declared, kinds) for name in said}
    for key in sorted(given):
        if key not in known:
            near = difflib.get_close_matches(key, known, 1, 0.7)
            hint = f"did you mean {near[0]!r}?" if near else "remove it from the project file"
            raise ProjectError(f"plan: unknown key {key!r}; {hint}", key=key)


def check_known(given: Mapping[str, Any], kinds: Sequence[type[Any]]) -> None:
    """Raise :class:`ProjectError` for a key that none of ``kinds`` declares or a value that none of them allows."""
    check_keys(given, kinds)
    for key in sorted(given):
        known = [said[key] for said in map(declared, kinds) if key in said]
        wrong = [error for said in known if (error := _refused(key, given[key], said)) is not None]
        if len(wrong) == len(known):
            raise wrong[0]


def _refused(key: str, value: Any, said: Option) -> ProjectError | None:
    try:
        _check(key, value, said)
    except ProjectError as error:
        return error
    return None


def _check(key: str, value: Any, said: Option) -> None:
    if value is None and said.empty:
        return
    if said.weights:
        check_weights(key, value, said.high or 1000, none=said.low == 0)
    elif said.columns:
        several = isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
        if not (several if said.columns == "several" else isinstance(value, str)):
            what = "a list of column names" if said.columns == "several" else "a column name"
            raise ProjectError(f"plan: {key} must be {what}", key=key)
    elif said.choices:
        if value not in list(said.choices):
            known = ", ".join(said.choices)
            raise ProjectError(f"plan: {key} is {value!r}; it must be one of {known}", key=key)
    elif said.low is None:
        if not isinstance(value, bool):
            raise ProjectError(f"plan: {key} must be true or false", key=key)
    else:
        check_number(key, value, said)


LEAST_SHARE = 1e-6
"""Smallest nonzero share or weight. A share near the smallest float would leave nothing to spend."""


def check_number(key: str, value: Any, said: Option) -> None:
    """Raise :class:`ProjectError` unless ``value`` is a number within the bounds that ``said`` declares."""
    low, high = said.low, said.high
    assert low is not None
    assert high is not None
    if said.whole:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ProjectError(
                f"plan: {key} ({short(value)}) must be a whole number from {low:,.0f} to {high:,.0f}{unquoted(value)}",
                key=key,
            )
        return
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= sys.float_info.max:
        raise ProjectError(f"plan: {key} ({short(value)}) must be a number{unquoted(value)}", key=key)
    if not low <= value <= high:
        what = "share" if high <= 1 else "number"
        raise ProjectError(f"plan: {key} ({value:g}) must be a {what} from {low:g} to {high:g}", key=key)
    if high <= 1 and 0 < value < LEAST_SHARE:
        raise ProjectError(f"plan: {key} ({value:g}) is too small; use 0, or at least {LEAST_SHARE:g}", key=key)


def check_weights(key: str, given: Any, most: float, none: bool = False) -> None:
    """Raise :class:`ProjectError` unless ``given`` maps names to weights above 0 (or, with ``none``, at least 0) and at
    most ``most``.
    """
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ProjectError(f"plan: {key} must map column names to weights", key=key)
    for name, weight in given.items():
        if not isinstance(weight, int | float) or isinstance(weight, bool) or not abs(weight) <= sys.float_info.max:
            raise ProjectError(f"plan: {key} ({short(weight)}) must be a number{unquoted(weight)}", key=key)
        if not (0 < weight <= most or (none and weight == 0)):
            allowed = f"from 0 to {most:g}" if none else f"above 0 and at most {most:g}"
            raise ProjectError(
                f"plan: the weight of {name!r} in {key} is {weight:g}; it must be {allowed}",
                key=key,
            )
        if 0 < weight < LEAST_SHARE:
            raise ProjectError(
                f"plan: the weight of {name!r} in {key} is {weight:g}, which is too small; use at least "
                f"{LEAST_SHARE:g}",
                key=key,
            )


def unquoted(value: Any) -> str:
    """Return advice about a number in quotes, to append to a message; empty for anything else."""
    plain = isinstance(value, str) and re.fullmatch(r"\d{1,9}(\.\d{1,9}|,\d\d?)?", value)  # "1,000" is ambiguous
    return f"; write {value.replace(',', '.')} without quotes" if plain else ""


def short(value: Any) -> str:
    """Return a value for a message, shortened to one line; a number with more digits than Python will print is
    described in words.
    """
    try:
        shown = repr(value)
    except ValueError:
        return "a very long number"
    return shown if len(shown) <= 80 else shown[:79] + "…"
