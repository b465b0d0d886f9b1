"""Analyses that a study plans before anything is spent: questions, and the half-widths of their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from espalier.core.errors import ProjectError
from espalier.core.project.column import Column
from espalier.core.project.question_types import Condition
from espalier.core.project.schema import Schema, ToBuy

Kind = Literal["proportion", "difference", "odds_ratio"]
MOST = 60
"""Largest number of analyses of a project."""
_KEYS = {"name", "kind", "event", "group", "among", "half_width", "assume"}
_ASSUMED = {"shares", "groups"}


@dataclass(frozen=True)
class PlannedAnalysis:
    """One question with the half-width that its 95 % interval should have; of an odds ratio, on the log scale.

    ``event`` and ``among`` are written ``column=value``, ``group`` is ``column=value:other``. ``shares`` are the
    assumed shares of the event in each group, and ``groups`` the assumed shares of the groups among all rows; `None`
    means one half, and equally common values.
    """

    name: str
    kind: Kind
    event: str
    group: str = ""
    among: str = ""
    half_width: float | None = None
    shares: tuple[float, ...] | None = None
    groups: tuple[float, ...] | None = None

    @property
    def many(self) -> int:
        """Number of groups: two for a comparison, otherwise one."""
        return 1 if self.kind == "proportion" else 2

    @classmethod
    def from_json(cls, data: Any) -> PlannedAnalysis:
        """Return an analysis from the project file; raises :class:`ProjectError`."""
        if not isinstance(data, Mapping):
            raise _error("each analysis must be an object")
        name = data.get("name")
        if not isinstance(name, str) or not name or len(name) > 200 or name.startswith("~"):
            raise _error("an analysis needs a name: a text of at most 200 characters that does not start with ~")
        what = f"analysis {name!r}"
        if odd := set(data) - _KEYS:
            raise _error(f"{what}: unknown key {sorted(map(str, odd))[0]!r}")
        if data.get("kind") not in get_args(Kind):
            raise _error(f"{what}: kind must be one of {', '.join(get_args(Kind))}")
        texts = {key: data.get(key, "") for key in ("event", "group", "among")}
        if any(not isinstance(text, str) for text in texts.values()):
            raise _error(f"{what}: event, group and among are texts such as 'sick=yes'")
        if (data["kind"] == "proportion") == bool(texts["group"]) or (texts["among"] and texts["group"]):
            raise _error(f"{what}: a proportion may have among, and any other kind needs a group")
        assumed = data.get("assume", {})
        if not isinstance(assumed, Mapping) or set(assumed) - _ASSUMED:
            raise _error(f"{what}: assume may give shares and groups")
        many = 1 if data["kind"] == "proportion" else 2
        read = {key: _shares(what, key, assumed[key], many) if key in assumed else None for key in _ASSUMED}
        if read["groups"] and sum(read["groups"]) > 1 + 1e-9:
            raise _error(f"{what}: the shares of the groups add up to more than 1")
        half = data.get("half_width")
        if half is not None and (isinstance(half, bool) or not isinstance(half, int | float) or not 0 < half < 1e6):
            raise _error(f"{what}: half_width must be a positive number")
        shares, groups = read["shares"], read["groups"]
        return cls(name, data["kind"], texts["event"], texts["group"], texts["among"], half, shares, groups)

    def to_json(self) -> dict[str, Any]:
        """Return the analysis as the project file stores it."""
        texts = {key: text for key in ("event", "group", "among") if (text := getattr(self, key))}
        assumed = {key: list(value) for key in ("shares", "groups") if (value := getattr(self, key)) is not None}
        return {
            "name": self.name,
            "kind": self.kind,
            **texts,
            **({} if self.half_width is None else {"half_width": self.half_width}),
            **({"assume": assumed} if assumed else {}),
        }

    def cells(self, schema: Schema) -> list[tuple[Condition, Condition]]:
        """Return, for each group, the rows with the event and those without; raises :class:`ProjectError`.

        Rows with a missing cell in one of the columns are in neither.
        """
        column, event = self._level(schema, self.event)
        others = tuple(code for code in range(column.values) if code != event)
        if not others:
            raise _error(f"analysis {self.name!r}: {column.name!r} has only one value")
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
        if any(column.name in condition for condition in within):
            raise _error(f"analysis {self.name!r}: the event and the groups must be of different columns")
        return [({column.name: (event,), **more}, {column.name: others, **more}) for more in within]

    def assumed(self, schema: Schema) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the assumed shares of the event by group, and of the groups among all rows."""
        shares = self.shares or (0.5,) * self.many
        text = self.group or self.among
        if self.groups is not None:
            return shares, self.groups
        return shares, ((1 / schema[text.partition("=")[0]].values,) * self.many if text else (1.0,))

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


def read_analyses(data: Any) -> tuple[PlannedAnalysis, ...]:
    """Return the analyses of a project; raises :class:`ProjectError`."""
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise _error("analyses must be a list of objects")
    if len(data) > MOST:
        raise _error(f"analyses lists {len(data)}; a project has at most {MOST}")
    found = tuple(map(PlannedAnalysis.from_json, data))
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise _error(f"two analyses have the name {next(n for n in names if names.count(n) > 1)!r}")
    return found


def fitting_analyses(listed: Sequence[PlannedAnalysis], schema: Schema) -> tuple[PlannedAnalysis, ...]:
    """Return the analyses that are still valid under ``schema``, after a change of the schema."""

    def fits(one: PlannedAnalysis) -> bool:
        try:
            one.cells(schema)
        except ProjectError:
            return False
        return True

    return tuple(filter(fits, listed))


def _shares(what: str, key: str, data: Any, many: int) -> tuple[float, ...]:
    if (
        not isinstance(data, list)
        or len(data) != many
        or not all(isinstance(x, int | float) and not isinstance(x, bool) and 0 < x <= 1 for x in data)
    ):
        raise _error(f"{what}: {key} must list {many} share{'s' * (many > 1)} between 0 and 1")
    return tuple(float(x) for x in data)


def _error(text: str, **data: Any) -> ProjectError:
    return ProjectError(text, key="analyses", **data)
