"""Regressions bought by a plan. Each has an outcome, predictors and a family, which are checked against the schema."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from espalier.core.errors import ProjectError
from espalier.core.project.column import Column
from espalier.core.project.schema import Schema, ToBuy

Family = Literal["linear", "logistic", "poisson"]
MOST = 20
"""Maximum number of regressions in a plan."""
MOST_PREDICTORS = 15
"""Maximum number of predictors in a regression."""
LEAST_MEAN, LARGEST_MEAN = 1e-6, 8e6
"""Bounds on the largest outcome of a Poisson regression: its logarithm must be within the range of the linear
predictor, ± 16.
"""
MOST_TERMS = 40
"""Maximum number of coefficients in a regression, without the intercept."""
_KEYS = {"name", "outcome", "on", "family", "robust", "interactions"}


@dataclass(frozen=True)
class BoughtRegression:
    """A regression whose sums a release buys.

    ``outcome`` is a numeric column or an event, written ``column=value``. ``on`` are the predictors. ``interactions``
    are pairs of predictors; a column is in at most one pair. With ``robust``, intervals do not assume that the outcome
    has the same variance everywhere (linear) or the variance that its family implies. Robust intervals require a
    separate purchase.
    """

    name: str
    outcome: str
    on: tuple[str, ...]
    family: Family = "linear"
    robust: bool = False
    interactions: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_json(cls, data: Any) -> BoughtRegression:
        """Return a regression from the project file; raises :class:`ProjectError`."""
        if not isinstance(data, Mapping):
            raise _error("each regression must be an object")
        name = data.get("name")
        if not isinstance(name, str) or not name or len(name) > 200:
            raise _error("a regression needs a name of at most 200 characters")
        what = f"regression {name!r}"
        if odd := set(data) - _KEYS:
            raise _error(f"{what}: unknown key {sorted(map(str, odd))[0]!r}")
        outcome, family, robust = data.get("outcome"), data.get("family", "linear"), data.get("robust", False)
        if not isinstance(outcome, str) or not outcome:
            raise _error(f'{what}: outcome must be a numeric column, or an event such as "sick=yes"')
        if family not in get_args(Family):
            raise _error(f"{what}: family must be one of {', '.join(get_args(Family))}")
        if not isinstance(robust, bool):
            raise _error(f"{what}: robust must be true or false")
        on = _names(what, "on", data.get("on"))
        pairs = data.get("interactions", [])
        if not isinstance(pairs, list):
            raise _error(f"{what}: interactions must be a list of pairs of predictors")
        read = tuple(_names(what, "interactions", pair) for pair in pairs)
        if any(len(pair) != 2 or not set(pair) <= set(on) for pair in read):
            raise _error(f"{what}: each interaction lists two different predictors of this regression")
        inside = [column for pair in read for column in pair]
        if len(set(inside)) < len(inside):
            raise _error(f"{what}: a column can be in one interaction only")
        if not 1 <= len(on) <= MOST_PREDICTORS:
            raise _error(f"{what}: on must list 1 to {MOST_PREDICTORS} columns")
        return cls(name, outcome, on, family, robust, tuple((a, b) for a, b in read))

    def to_json(self) -> dict[str, Any]:
        """Return the regression as the project file stores it."""
        return {
            "name": self.name,
            "outcome": self.outcome,
            "on": list(self.on),
            "family": self.family,
            **({"robust": True} if self.robust else {}),
            **({"interactions": [list(pair) for pair in self.interactions]} if self.interactions else {}),
        }

    def target(self, schema: Schema) -> tuple[Column, int | None]:
        """Return the outcome's column and the code of the event, which is `None` for a number."""
        name, _, value = self.outcome.partition("=")
        if self.outcome in schema:
            name, value = self.outcome, ""
        column = schema[name]
        if not value and column.kind == "numeric" and self.family != "logistic":
            return column, None
        return column, column.value_names.index(value) if value else column.values - 1

    def check(self, schema: Schema) -> None:
        """Raise :class:`ProjectError` unless the columns exist and suit the family."""
        what = f"regression {self.name!r}"
        name, _, value = self.outcome.partition("=")
        if self.outcome in schema:
            name, value = self.outcome, ""
        for each in (name, *self.on):
            if each not in schema:
                raise _error(f"{what} names {each!r}, which is not a column", column=each)
            if isinstance(schema[each], ToBuy):
                raise _error(
                    f"{what}: {each!r} is not declared yet. Declare its categories or bins on the Data page, because "
                    "the sensitivity of a regression depends on them",
                    column=each,
                )
            if schema[each].values < 2:
                raise _error(f"{what}: {each!r} has only one value; leave that column out", column=each)
        if name in self.on:
            raise _error(f"{what}: {name!r} cannot be both the outcome and a predictor", column=name)
        column = schema[name]
        if value and value not in column.value_names:
            known = ", ".join(column.value_names[:12])
            raise _error(f"{what}: {name!r} has no value {value!r}; it has {known}", column=name)
        if not value and column.kind != "numeric" and (self.family != "logistic" or column.values > 2):
            example = f"{name}={column.value_names[-1]}"
            raise _error(f"{what}: {name!r} has categories. Name one of them, such as {example!r}", column=name)
        if not value and column.kind == "numeric" and self.family == "logistic":
            raise _error(f"{what}: a logistic regression needs an event, such as {name + '=…'!r}", column=name)
        if self.family == "poisson" and (value or column.middles[0] < 0):
            raise _error(f"{what}: a Poisson regression needs a numeric outcome without negative values", column=name)
        if self.family == "poisson" and not LEAST_MEAN <= column.middles[column.values - 1] <= LARGEST_MEAN:
            raise _error(
                f"{what}: a Poisson regression needs an outcome whose largest value is from {LEAST_MEAN:g} to "
                f"{LARGEST_MEAN:,.0f}. Give {name!r} in another unit",
                column=name,
            )
        if (terms := self.terms(schema)) > MOST_TERMS:
            raise _error(
                f"{what} has {terms} coefficients, more than the {MOST_TERMS} allowed. Leave out a predictor, or "
                "reduce the categories of one on the Data page"
            )

    def terms(self, schema: Schema) -> int:
        """Return the number of coefficients without the intercept."""
        each = {c: 1 if schema[c].kind == "numeric" else schema[c].values - 1 for c in self.on}
        return sum(each.values()) + sum(each[a] * each[b] for a, b in self.interactions)


def read_regressions(data: Any) -> tuple[BoughtRegression, ...]:
    """Return the regressions of a plan; raises :class:`ProjectError`."""
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise _error("regressions must be a list of objects")
    if len(data) > MOST:
        raise _error(f"regressions has {len(data)} entries, but at most {MOST} are allowed")
    found = tuple(one if isinstance(one, BoughtRegression) else BoughtRegression.from_json(one) for one in data)
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise _error(f"two regressions have the name {next(n for n in names if names.count(n) > 1)!r}")
    return found


def fitting(listed: Iterable[BoughtRegression], schema: Schema) -> tuple[BoughtRegression, ...]:
    """Return the regressions that are still valid after a change to ``schema``."""

    def fits(one: BoughtRegression) -> bool:
        try:
            one.check(schema)
        except ProjectError:
            return False
        return True

    return tuple(filter(fits, listed))


def named(listed: Iterable[Any], text: str) -> Any:
    """Return the regression called ``text``, or the only one with that outcome; raises :class:`ProjectError`.

    ``listed`` are objects with ``name`` and ``outcome``, or mappings with these keys.
    """

    def of(one: Any, key: str) -> str:
        return str(one[key] if isinstance(one, Mapping) else getattr(one, key))

    every = list(listed)
    if exact := [one for one in every if of(one, "name") == text]:
        return exact[0]
    alike = [one for one in every if text in (of(one, "outcome"), of(one, "outcome").partition("=")[0])]
    if len(alike) == 1:
        return alike[0]
    known = ", ".join(of(one, "name") for one in every)
    if alike:
        raise _error(f"several regressions have the outcome {text!r}. Name one of {known}", name=text)
    raise _error(
        f"there is no regression {text!r}; the regressions are {known}"
        if known
        else "this release bought no regression",
        name=text,
    )


def _names(what: str, key: str, data: Any) -> tuple[str, ...]:
    if not isinstance(data, list) or not all(isinstance(name, str) for name in data):
        raise _error(f"{what}: {key} must list names of columns")
    if len(set(data)) < len(data):
        raise _error(f"{what}: {key} names a column twice")
    return tuple(data)


def _error(text: str, **data: Any) -> ProjectError:
    return ProjectError(text, key="regressions", **data)


def centre_and_half(middles: Sequence[float]) -> tuple[float, float]:
    """Return the centre and the half-width of the range of bin midpoints, with a half-width above 0."""
    low, high = float(middles[0]), float(middles[-1])
    return (low + high) / 2, max((high - low) / 2, math.ulp(max(abs(low), abs(high), 1.0)))
