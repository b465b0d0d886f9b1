"""A study's analyses, planned before anything is spent: questions, and the half-widths of their intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from espalier.core.errors import ProjectError
from espalier.core.project.column import Column
from espalier.core.project.planned_regressions import PlannedRegression
from espalier.core.project.planned_survival import PlannedSurvival
from espalier.core.project.question_types import Condition
from espalier.core.project.schema import Schema, ToBuy

Kind = Literal["proportion", "difference", "odds_ratio", "effect"]
MOST = 60
"""Maximum number of analyses in a project."""
MOST_STRATA = 50
"""Maximum number of strata for an effect."""
_KEYS = {"name", "kind", "event", "group", "among", "adjust", "half_width", "assume"}
_ASSUMED = {"shares", "groups", "strata"}


@dataclass(frozen=True)
class PlannedCounts:
    """A question about counts, with the desired half-width of its 95 % interval (for an odds ratio, on the log scale).

    ``event`` and ``among`` are written ``column=value``, ``group`` is ``column=value:other``. ``shares`` are the
    assumed shares of the event in each group; `None` means one half. ``groups`` are the assumed shares of the groups
    among all rows; `None` means that they are equally common.

    An ``effect`` is the difference between the event's shares in two groups in each stratum of the columns ``adjust``,
    weighted by the strata's shares of all rows. ``strata`` are the assumed shares of the strata; the last column varies
    fastest. The groups are assumed to have the same distribution over the strata.
    """

    name: str
    kind: Kind
    event: str
    group: str = ""
    among: str = ""
    half_width: float | None = None
    shares: tuple[float, ...] | None = None
    groups: tuple[float, ...] | None = None
    adjust: tuple[str, ...] | None = None
    strata: tuple[float, ...] | None = None

    @property
    def many(self) -> int:
        """Number of groups: two for a comparison, otherwise one group."""
        return 1 if self.kind == "proportion" else 2

    @classmethod
    def from_json(cls, data: Mapping[str, Any], half: float | None) -> PlannedCounts:
        """Return an analysis from the project file; raises :class:`ProjectError`."""
        name, what = data["name"], f"analysis {data['name']!r}"
        if odd := set(data) - _KEYS:
            raise _error(f"{what}: unknown key {sorted(map(str, odd))[0]!r}")
        texts = {key: data.get(key, "") for key in ("event", "group", "among")}
        if any(not isinstance(text, str) for text in texts.values()):
            raise _error(f"{what}: event, group and among must be text such as 'sick=yes'")
        if (data["kind"] == "proportion") == bool(texts["group"]) or (texts["among"] and texts["group"]):
            raise _error(f"{what}: a proportion may have among but no group; any other kind needs a group and no among")
        assumed = data.get("assume", {})
        if not isinstance(assumed, Mapping) or set(assumed) - _ASSUMED:
            raise _error(f"{what}: 'assume' may contain only 'shares', 'groups' and 'strata'")
        adjust = data.get("adjust")
        if (data["kind"] == "effect") != (adjust is not None):
            raise _error(
                f"{what}: an effect needs adjust (the columns to adjust for, or []); other kinds must not have it"
            )
        if adjust is not None and not (isinstance(adjust, list) and all(isinstance(one, str) for one in adjust)):
            raise _error(f"{what}: adjust must list names of columns")
        if "strata" in assumed and not adjust:
            raise _error(f"{what}: only an effect with columns to adjust for has strata")
        many = 1 if data["kind"] == "proportion" else 2
        read = {
            key: _shares(what, key, assumed[key], None if key == "strata" else many) if key in assumed else None
            for key in _ASSUMED
        }
        if read["groups"] and sum(read["groups"]) > 1 + 1e-9:
            raise _error(f"{what}: the shares of the groups add up to more than 1")
        if read["strata"] and abs(sum(read["strata"]) - 1) > 0.02:
            raise _error(f"{what}: the shares of the strata must add up to 1")
        return cls(
            name,
            data["kind"],
            texts["event"],
            texts["group"],
            texts["among"],
            half,
            read["shares"],
            read["groups"],
            None if adjust is None else tuple(adjust),
            read["strata"],
        )

    def to_json(self) -> dict[str, Any]:
        """Return the analysis as the project file stores it."""
        texts = {key: text for key in ("event", "group", "among") if (text := getattr(self, key))}
        assumed = {
            key: list(value) for key in ("shares", "groups", "strata") if (value := getattr(self, key)) is not None
        }
        return {
            "name": self.name,
            "kind": self.kind,
            **texts,
            **({} if self.adjust is None else {"adjust": list(self.adjust)}),
            **({} if self.half_width is None else {"half_width": self.half_width}),
            **({"assume": assumed} if assumed else {}),
        }

    def cells(self, schema: Schema) -> list[tuple[Condition, Condition]]:
        """Return, for each group, the rows with the event and those without; raises :class:`ProjectError`.

        Rows with a missing cell in one of the columns are left out. For an effect, each stratum has the two
        groups, and the rows of further groups if there are any.
        """
        column, event = self._level(schema, self.event)
        others = tuple(code for code in range(column.values) if code != event)
        if not others:
            raise _error(f"analysis {self.name!r}: {column.name!r} has only one value, so there is nothing to estimate")
        within: list[Condition] = [{}]
        if self.among:
            of, code = self._level(schema, self.among)
            within = [{of.name: (code,)}]
        if self.group:
            name, _, values = self.group.partition("=")
            one, _, other = values.partition(":")
            if not one or not other or one == other:
                raise _error(f"analysis {self.name!r}: write the group as column=value:other")
            levels = [self._level(schema, f"{name}={value}") for value in (one, other)]
            within = [{c.name: (code,)} for c, code in levels]
            rest = tuple(code for code in range(levels[0][0].values) if code not in (levels[0][1], levels[1][1]))
            if self.adjust is not None:
                within += [{name: rest}] if rest else []
                strata = self._strata(schema, (column.name, name))
                within = [{**stratum, **one} for stratum in strata for one in within]
        if any(column.name in condition for condition in within):
            raise _error(f"analysis {self.name!r}: the event and the groups must use different columns")
        return [({column.name: (event,), **more}, {column.name: others, **more}) for more in within]

    def check(self, schema: Schema) -> None:
        """Raise :class:`ProjectError` unless the schema contains the analysis's columns and values."""
        self.cells(schema)
        if self.strata is not None and len(self.strata) != math.prod(schema[n].values for n in self.adjust or ()):
            raise _error(f"analysis {self.name!r}: list one share for each stratum")

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns whose joint counts are bought."""
        return tuple(sorted({name for pair in self.cells(schema) for cell in pair for name in cell}))

    def assumed(self, schema: Schema) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the assumed shares of the event by group, and of the groups among all rows."""
        shares = self.shares or (0.5,) * self.many
        text = self.group or self.among
        if self.groups is not None:
            return shares, self.groups
        return shares, ((1 / schema[text.partition("=")[0]].values,) * self.many if text else (1.0,))

    def assumed_cells(self, schema: Schema) -> list[tuple[float, float]]:
        """Return two assumed shares for each pair of `cells`: the pair's share of all rows, and the event's share of
        the pair's rows.
        """
        shares, groups = self.assumed(schema)
        if self.adjust is None:
            return list(zip(groups, shares, strict=True))
        strata = self.strata or (1.0,)
        if self.strata is None and self.adjust:
            many = math.prod(schema[name].values for name in self.adjust)
            strata = (1 / many,) * many
        if schema[self.group.partition("=")[0]].values > 2:
            groups, shares = (*groups, max(1 - sum(groups), 1e-9)), (*shares, sum(shares) / 2)
        return [(s * g, p) for s in strata for g, p in zip(groups, shares, strict=True)]

    def shape(self, schema: Schema) -> tuple[int, ...]:
        """Return the axes of the counts: groups and event, or strata, groups and event for an effect."""
        if self.adjust is None:
            return self.many, 2
        strata = math.prod(schema[name].values for name in self.adjust)
        return strata, len(self.cells(schema)) // strata, 2

    def _strata(self, schema: Schema, taken: tuple[str, ...]) -> list[Condition]:
        for name in self.adjust or ():
            if name not in schema or name in taken or isinstance(schema[name], ToBuy):
                raise _error(f"analysis {self.name!r} cannot be adjusted for {name!r}", column=name)
        codes = [range(schema[name].values) for name in self.adjust or ()]
        if (many := math.prod(map(len, codes))) > MOST_STRATA:
            raise _error(f"analysis {self.name!r} has {many} strata, more than the {MOST_STRATA} allowed")
        return [
            {name: (code,) for name, code in zip(self.adjust or (), some, strict=True)}
            for some in itertools.product(*codes)
        ]

    def _level(self, schema: Schema, text: str) -> tuple[Column, int]:
        name, _, value = text.partition("=")
        if name not in schema:
            raise _error(f"analysis {self.name!r} names {name!r}, which is not a column", column=name)
        column = schema[name]
        if isinstance(column, ToBuy):
            raise _error(f"analysis {self.name!r}: {name!r} is not declared yet. Declare it on the Data page")
        if value not in column.value_names:
            known = ", ".join(column.value_names[:12])
            raise _error(f"analysis {self.name!r}: {name!r} has no value {value!r}; it has {known}", column=name)
        return column, column.value_names.index(value)


PlannedAnalysis = PlannedCounts | PlannedRegression | PlannedSurvival
_FURTHER = {"regression": PlannedRegression, "survival": PlannedSurvival}


def read_analysis(data: Any) -> PlannedAnalysis:
    """Return an analysis from the project file; raises :class:`ProjectError`."""
    if not isinstance(data, Mapping):
        raise _error("each analysis must be an object")
    name, kind = data.get("name"), data.get("kind")
    if not isinstance(name, str) or not name or len(name) > 200 or name.startswith("~"):
        raise _error("an analysis needs a name of at most 200 characters that does not start with ~")
    if kind not in (*get_args(Kind), *_FURTHER):
        raise _error(f"analysis {name!r}: kind must be one of {', '.join((*get_args(Kind), *_FURTHER))}")
    half = data.get("half_width")
    if half is not None and (isinstance(half, bool) or not isinstance(half, int | float) or not 0 < half < 1e6):
        raise _error(f"analysis {name!r}: half_width must be a positive number")
    read: type[PlannedCounts | PlannedRegression | PlannedSurvival] = _FURTHER.get(str(kind), PlannedCounts)
    return read.from_json(data, half)


def read_analyses(data: Any) -> tuple[PlannedAnalysis, ...]:
    """Return the analyses of a project; raises :class:`ProjectError`."""
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise _error("analyses must be a list of objects")
    if len(data) > MOST:
        raise _error(f"analyses has {len(data)} entries, but at most {MOST} are allowed")
    found = tuple(map(read_analysis, data))
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise _error(f"two analyses have the name {next(n for n in names if names.count(n) > 1)!r}")
    return found


def fitting_analyses(listed: Sequence[PlannedAnalysis], schema: Schema) -> tuple[PlannedAnalysis, ...]:
    """Return the analyses that are still valid after a change to ``schema``."""

    def fits(one: PlannedAnalysis) -> bool:
        try:
            one.check(schema)
        except ProjectError:
            return False
        return True

    return tuple(filter(fits, listed))


def _shares(what: str, key: str, data: Any, many: int | None) -> tuple[float, ...]:
    if (
        not isinstance(data, list)
        or (many is not None and len(data) != many)
        or not all(isinstance(x, int | float) and not isinstance(x, bool) and 0 < x <= 1 for x in data)
    ):
        raise _error(f"{what}: {key} must list {f'{many} ' if many else ''}share{'s' * (many != 1)} between 0 and 1")
    return tuple(float(x) for x in data)


def _error(text: str, **data: Any) -> ProjectError:
    return ProjectError(text, key="analyses", **data)
