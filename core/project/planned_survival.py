"""A study's planned survival table: the time and event columns, the compared groups, and the assumptions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from espalier.core.errors import ProjectError
from espalier.core.project.column import Column, plain_text
from espalier.core.project.question_types import Condition
from espalier.core.project.schema import Schema, ToBuy

MOST_INTERVALS = 100
"""Maximum number of time intervals."""
_KEYS = {"name", "kind", "time", "event", "group", "at", "half_width", "assume"}


@dataclass(frozen=True)
class PlannedSurvival:
    """A survival table: for each interval of ``time``, the number of rows at risk and the number with the ``event``.

    ``time`` is a column of numbers in bins, or an ordinal column. It contains each row's last known time: the time of
    the event, or the time of censoring if the event did not happen. ``event`` is written ``column=value``. ``group``
    compares two values of a column (``column=value:other``); it is empty if one table covers all rows.

    ``at`` is the end of an interval; in an ordinal column, it is a value. ``half_width`` is the desired half-width of
    the 95 % interval for survival at this time, or for the difference in this survival between the groups. ``shares``
    are the assumed shares of rows with the event in each group, and ``groups`` the assumed shares of the groups among
    all rows. Times are assumed to be spread evenly over the intervals.
    """

    name: str
    time: str
    event: str
    at: float | str
    group: str = ""
    half_width: float | None = None
    shares: tuple[float, ...] | None = None
    groups: tuple[float, ...] | None = None
    kind: Literal["survival"] = field(default="survival", init=False)

    @property
    def many(self) -> int:
        """Number of groups."""
        return 2 if self.group else 1

    @classmethod
    def from_json(cls, data: Mapping[str, Any], half: float | None) -> PlannedSurvival:
        """Return an analysis from the project file; raises :class:`ProjectError`."""
        name, what = data["name"], f"analysis {data['name']!r}"
        if odd := set(data) - _KEYS:
            raise _error(f"{what}: unknown key {sorted(map(str, odd))[0]!r}")
        texts = {key: data.get(key, "") for key in ("time", "event", "group")}
        if any(not isinstance(text, str) for text in texts.values()) or not texts["time"] or not texts["event"]:
            raise _error(f"{what}: a survival table needs the keys 'time' (a column) and 'event' (such as 'died=yes')")
        at = data.get("at")
        if isinstance(at, bool) or not isinstance(at, int | float | str):
            raise _error(f"{what}: a survival table needs the key 'at': the end of one of its time intervals")
        assumed = data.get("assume", {})
        if not isinstance(assumed, Mapping) or set(assumed) - {"shares", "groups"}:
            raise _error(f"{what}: 'assume' may contain only 'shares' and 'groups'")
        many = 2 if texts["group"] else 1
        read = {key: _shares(what, key, assumed.get(key), many) for key in ("shares", "groups")}
        if read["groups"] and sum(read["groups"]) > 1 + 1e-9:
            raise _error(f"{what}: the shares of the groups add up to more than 1")
        return cls(name, texts["time"], texts["event"], at, texts["group"], half, read["shares"], read["groups"])

    def to_json(self) -> dict[str, Any]:
        """Return the analysis as the project file stores it."""
        assumed = {key: list(value) for key in ("shares", "groups") if (value := getattr(self, key)) is not None}
        return {
            "name": self.name,
            "kind": self.kind,
            "time": self.time,
            "event": self.event,
            **({"group": self.group} if self.group else {}),
            "at": self.at,
            **({} if self.half_width is None else {"half_width": self.half_width}),
            **({"assume": assumed} if assumed else {}),
        }

    def cells(self, schema: Schema) -> list[tuple[Condition, Condition]]:
        """Return, by group and interval, the conditions for rows with and without the event.

        A row meets at most one of these conditions. A row with a missing cell in one of the columns meets none of them.
        Raises :class:`ProjectError`.
        """
        time, event = self._column(schema, self.time), self._code(schema, self.event)
        others = tuple(code for code in range(event[0].values) if code != event[1])
        within: list[Condition] = [{}]
        if self.group:
            name, _, values = self.group.partition("=")
            one, _, other = values.partition(":")
            if not one or not other or one == other:
                raise _error(f"analysis {self.name!r}: write the group as column=value:other")
            within = [{name: (self._code(schema, f"{name}={value}")[1],)} for value in (one, other)]
        if len({time.name, event[0].name, *within[0]}) < 2 + len(within[0]):
            raise _error(f"analysis {self.name!r}: time, event and groups must be different columns")
        return [
            ({time.name: (t,), event[0].name: (event[1],), **more}, {time.name: (t,), event[0].name: others, **more})
            for more in within
            for t in range(time.values)
        ]

    def check(self, schema: Schema) -> None:
        """Raise :class:`ProjectError` unless the columns suit a survival table."""
        what, time = f"analysis {self.name!r}", self._column(schema, self.time)
        if time.kind == "categorical" or time.dates is not None:
            kind = "dates" if time.dates is not None else "categories without an order"
            raise _error(
                f"{what}: {time.name!r} has {kind}. A survival table needs the time from a start to the event, as "
                "numbers in bins",
                column=time.name,
            )
        if not 2 <= time.values <= MOST_INTERVALS:
            raise _error(
                f"{what}: {time.name!r} has {time.values} intervals; a survival table can have 2 to {MOST_INTERVALS}. "
                "Change its bins on the Data page",
                column=time.name,
            )
        if time.kind == "numeric" and time.edges[0] < 0:
            raise _error(f"{what}: {time.name!r} has negative times", column=time.name)
        if self._code(schema, self.event)[0].values < 2:
            raise _error(
                f"{what}: {self.event.partition('=')[0]!r} has only one value, so there is nothing to estimate",
            )
        self.cells(schema)
        self.last(schema)

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns whose joint counts are bought."""
        return tuple(sorted({name for pair in self.cells(schema) for cell in pair for name in cell}))

    def last(self, schema: Schema) -> int:
        """Return the index of the interval that ends ``at``; raises :class:`ProjectError`."""
        ends = self.ends(schema)
        if self.at not in ends:
            known = ", ".join(e if isinstance(e, str) else plain_text(e) for e in ends[:12])
            raise _error(
                f"analysis {self.name!r}: no interval of {self.time!r} ends at {self.at}. Intervals end at {known}",
                column=self.time,
            )
        return ends.index(self.at)

    def ends(self, schema: Schema) -> list[float | str]:
        """Return the end of each interval: its upper edge, or the value of an ordinal column."""
        time = self._column(schema, self.time)
        return list(time.edges[1:]) if time.kind == "numeric" else list(time.value_names)

    def exact(self, schema: Schema) -> bool:
        """Return whether each interval contains only one time; otherwise an interval may hide the order of its rows."""
        time = self._column(schema, self.time)
        if time.kind != "numeric":
            return True
        last = math.floor(time.edges[-1]) - math.ceil(time.edges[-2])  # the last bin is closed
        return (
            time.integer
            and last == 0
            and all(math.ceil(b) - math.ceil(a) == 1 for a, b in zip(time.edges[:-2], time.edges[1:-1], strict=True))
        )

    def shape(self, schema: Schema) -> tuple[int, ...]:
        """Return the shape of the counts: groups, intervals, and with or without the event."""
        return self.many, schema[self.time].values, 2

    def assumed(self, schema: Schema) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the assumed shares of the event by group, and of the groups among all rows."""
        shares = self.shares or (0.5,) * self.many
        if self.groups is not None or not self.group:
            return shares, self.groups or (1.0,)
        return shares, (1 / schema[self.group.partition("=")[0]].values,) * 2

    def assumed_cells(self, schema: Schema) -> list[tuple[float, float]]:
        """Return two assumed shares for each pair of `cells`: the pair's share of all rows, and the event's share of
        the pair's rows.
        """
        shares, groups = self.assumed(schema)
        many = schema[self.time].values
        return [(g / many, p) for g, p in zip(groups, shares, strict=True) for _ in range(many)]

    def _column(self, schema: Schema, name: str) -> Column:
        if name not in schema:
            raise _error(f"analysis {self.name!r} names {name!r}, which is not a column", column=name)
        column = schema[name]
        if isinstance(column, ToBuy):
            raise _error(f"analysis {self.name!r}: {name!r} is not declared yet. Declare it on the Data page")
        return column

    def _code(self, schema: Schema, text: str) -> tuple[Column, int]:
        name, _, value = text.partition("=")
        column = self._column(schema, name)
        if value not in column.value_names:
            known = ", ".join(column.value_names[:12])
            raise _error(f"analysis {self.name!r}: {name!r} has no value {value!r}; it has {known}", column=name)
        return column, column.value_names.index(value)


def _shares(what: str, key: str, data: Any, many: int) -> tuple[float, ...] | None:
    if data is None:
        return None
    fine = isinstance(data, Sequence) and not isinstance(data, str) and len(data) == many
    if not fine or not all(isinstance(x, int | float) and not isinstance(x, bool) and 0 < x <= 1 for x in data):
        raise _error(f"{what}: {key} must list {many} share{'s' * (many != 1)} between 0 and 1")
    return tuple(float(x) for x in data)


def _error(text: str, **data: Any) -> ProjectError:
    return ProjectError(text, key="analyses", **data)
