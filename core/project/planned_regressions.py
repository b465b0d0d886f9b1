"""A study's planned regression: the coefficient of interest, its desired half-width, and the assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from espalier.core.errors import ProjectError
from espalier.core.project.regressions import BoughtRegression
from espalier.core.project.schema import Schema

_PARTS = ("outcome", "on", "family", "robust", "interactions")
_ASSUMED = ("shares", "means", "spreads", "correlations")
KEYS = {"name", "kind", *_PARTS, "term", "half_width", "assume"}
Named = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Assumed:
    """Assumptions about the columns of a regression, by name.

    Possible assumptions are ``shares`` of a column's values, ``means`` and standard deviations (``spreads``) of
    numbers, and ``correlations`` between the normal variables that the columns cut into bins. Without assumptions,
    values are independent and equally frequent.
    """

    shares: Named = ()
    means: Named = ()
    spreads: Named = ()
    correlations: tuple[tuple[str, str, float], ...] = ()

    @classmethod
    def from_json(cls, what: str, data: Any) -> Assumed:
        """Return the assumptions of the analysis ``what``; raises :class:`ProjectError`."""
        if not isinstance(data, Mapping) or set(data) - set(_ASSUMED):
            raise _error(f"{what}: 'assume' may contain only {', '.join(_ASSUMED)}")
        read: dict[str, Named] = {}
        for key in ("shares", "means", "spreads"):
            given = data.get(key, {})
            if not isinstance(given, Mapping):
                raise _error(f"{what}: {key} must be an object that maps columns to values")
            for name, value in given.items():
                fine = (
                    _numbers(value) and abs(sum(value) - 1) < 0.02 and min(value) > 0
                    if key == "shares"
                    else (_numbers([value]) and (key == "means" or value > 0))
                )
                if not fine:
                    need = "a list of shares above 0 that add up to 1" if key == "shares" else "a number"
                    raise _error(f"{what}: {key} of {name!r} must be {need}{' above 0' * (key == 'spreads')}")
            read[key] = tuple((name, tuple(v) if isinstance(v, list) else float(v)) for name, v in given.items())
        pairs = data.get("correlations", [])
        if not isinstance(pairs, list) or not all(
            isinstance(p, list)
            and len(p) == 3
            and isinstance(p[0], str)
            and isinstance(p[1], str)
            and p[0] != p[1]
            and _numbers(p[2:])
            and abs(p[2]) < 1
            for p in pairs
        ):
            raise _error(f"{what}: correlations must list triples such as ['age', 'stay', 0.3]")
        return cls(**read, correlations=tuple((a, b, float(r)) for a, b, r in pairs))

    def to_json(self) -> dict[str, Any]:
        """Return the assumptions as the project file stores them."""
        out: dict[str, Any] = {
            "shares": {name: list(value) for name, value in self.shares},
            "means": dict(self.means),
            "spreads": dict(self.spreads),
            "correlations": [list(one) for one in self.correlations],
        }
        return {key: value for key, value in out.items() if value}


@dataclass(frozen=True)
class PlannedRegression:
    """A regression that an analysis buys, with the half-width that the 95 % interval of one coefficient should have.

    ``term`` names the coefficient, as the release does; empty means the first after the intercept.
    """

    name: str
    regression: BoughtRegression
    term: str = ""
    half_width: float | None = None
    assumed: Assumed = field(default_factory=Assumed)
    kind: Literal["regression"] = field(default="regression", init=False)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], half: float | None) -> PlannedRegression:
        """Return an analysis from the project file; raises :class:`ProjectError`."""
        what = f"analysis {data['name']!r}"
        if odd := set(data) - KEYS:
            raise _error(f"{what}: unknown key {sorted(map(str, odd))[0]!r}")
        if not isinstance(data.get("term", ""), str):
            raise _error(f"{what}: term must be the name of a coefficient, such as 'age'")
        try:
            regression = BoughtRegression.from_json({k: data[k] for k in ("name", *_PARTS) if k in data})
        except ProjectError as error:
            raise _error(str(error)) from None
        return cls(
            data["name"], regression, data.get("term", ""), half, Assumed.from_json(what, data.get("assume", {}))
        )

    def to_json(self) -> dict[str, Any]:
        """Return the analysis as the project file stores it."""
        assumed = self.assumed.to_json()
        return {
            "kind": self.kind,
            **self.regression.to_json(),
            **({"term": self.term} if self.term else {}),
            **({} if self.half_width is None else {"half_width": self.half_width}),
            **({"assume": assumed} if assumed else {}),
        }

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """Return the outcome and the predictors; their joint sums are bought."""
        return (self.regression.target(schema)[0].name, *self.regression.on)

    def check(self, schema: Schema) -> None:
        """Raise :class:`ProjectError` unless columns, family and assumptions fit the schema."""
        what = f"analysis {self.name!r}"
        try:
            self.regression.check(schema)
        except ProjectError as error:
            raise _error(str(error), **{k: v for k, v in error.data.items() if k != "key"}) from None
        columns = self.columns(schema)
        for name, value in (*self.assumed.shares, *self.assumed.means, *self.assumed.spreads):
            if name not in columns:
                raise _error(f"{what} makes an assumption about {name!r}, but does not use that column")
            if isinstance(value, tuple) and len(value) != schema[name].values:
                raise _error(f"{what}: {name!r} has {schema[name].values} values, so list that many shares")
        for name, _ in (*self.assumed.means, *self.assumed.spreads):
            if schema[name].kind != "numeric":
                raise _error(f"{what}: {name!r} has categories, so give shares instead of a mean or spread")
        if odd := {n for a, b, _ in self.assumed.correlations for n in (a, b)} - set(columns):
            raise _error(
                f"{what}: it assumes a correlation with {sorted(odd)[0]!r}, a column that the regression does not use",
            )
        if np.linalg.eigvalsh(self.correlation(schema)).min() < 1e-6:
            raise _error(f"{what}: no columns can have all these correlations at the same time")

    def correlation(self, schema: Schema) -> Any:
        """Return the assumed correlation matrix over `columns`."""
        columns = self.columns(schema)
        out = np.eye(len(columns))
        for a, b, r in self.assumed.correlations:
            i, j = columns.index(a), columns.index(b)
            out[i, j] = out[j, i] = r
        return out


def _numbers(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(x, int | float) and not isinstance(x, bool) for x in values)


def _error(text: str, **data: Any) -> ProjectError:
    return ProjectError(text, key="analyses", **data)
