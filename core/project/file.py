"""The project file: schema, graph, roles and plan in one JSON text that app, command line and report share."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from core.errors import EspalierError, ProjectError
from core.graph.dag import Dag
from core.graph.roles import Roles
from core.graph.separations import Separation
from core.project.schema import Schema

FORMAT = "espalier-project/1"
Method = Literal["prism", "privci", "mst", "prefair", "privbayes", "independent", "workload"]
Regime = Literal["causal", "graphical", "predictive"]
Neighbors = Literal["replace-one", "add-remove"]
AllocationRule = Literal["auto", "optimal", "uniform"]
Selector = Literal["exponential", "logistic"]
AccountingRule = Literal["zcdp", "basic"]
RowsDrawn = Literal["even", "independent"]
MAX_ROWS = 10_000_000
DEEPEST = 50
"""Levels of nesting in a project file; a right one has six, and what a drawing tool keeps in the notes."""


@dataclass(frozen=True)
class Plan:
    """How to release: method, frame options, budget. Reads no data.

    ``epsilon`` and ``delta`` (None: 1/n², replace-one only) are the whole budget. ``neighbors`` and
    ``rows_per_person`` are the unit of privacy. ``person`` is the column of the table, not of the schema, that says
    whose a row is: at most ``rows_per_person`` rows of each are kept; without it that number is a promise.
    ``fair`` None means what the method implies (privci and prefair: True, others: False); ``strict`` also keeps
    inadmissible columns away from the outcome. ``regime`` is read by prism only, ``features`` (how many are chosen;
    None: as many as the budget counts usefully) only in its predictive regime, as is ``selector`` (greedy by the
    exponential mechanism, or the support of a private logistic fit), ``three_way`` (how many tables of two features
    with the target are chosen, at most 20) by prism only. ``targets`` (prism) are further columns to predict with their
    weights, the target's own weight being 1 unless given: the budget of the task is divided by weight. ``allocation``
    may also map marginals ("age × income") to their parts of their pools, the others following ``auto``. ``rows`` None
    means n, or the noisy total under add-remove; with a person column under replace-one it must be given, and is the
    declared total to which the private table is filled up or cut. ``max_cells`` is the largest table of the model that
    the plan allows. ``looking`` is the share of the people (rows) held out for private figures, 0 for none.
    ``rows_drawn`` is how the table is drawn from the model: ``even`` spreads the rows over the cells as evenly as whole
    numbers allow, so the table errs less than independent draws would, and less than they would vary.
    Read by the tree methods (privci, prefair, mst) only: ``width`` is the largest clique minus one, 1 being the tree;
    ``explain`` the share of the budget that buys the scores of the refused pairs; ``compress`` merges rare categories
    while pairs are counted.

    Raises :class:`ProjectError` for values that cannot be.
    """

    method: Method
    epsilon: float
    delta: float | None = None
    regime: Regime = "predictive"
    fair: bool | None = None
    strict: bool = False
    target: str | None = None
    neighbors: Neighbors = "replace-one"
    rows_per_person: int = 1
    allocation: AllocationRule | Mapping[str, float] = "auto"
    accounting: AccountingRule = "zcdp"
    features: int | None = None
    targets: Mapping[str, float] = field(default_factory=dict)
    selector: Selector = "exponential"
    three_way: int = 0
    rows: int | None = None
    max_cells: int = 10_000_000
    width: int = 1
    explain: float = 0.0
    compress: bool = False
    person: str | None = None
    looking: float = 0.0
    rows_drawn: RowsDrawn = "even"

    def __post_init__(self) -> None:
        for name, allowed in _WORDS.items():
            if name == "allocation" and isinstance(self.allocation, Mapping):
                _shares(self.allocation)
            elif getattr(self, name) not in get_args(allowed):
                known = ", ".join(get_args(allowed))
                raise ProjectError(f"plan: {name} is {getattr(self, name)!r}; it must be one of {known}", key=name)
        _number("epsilon", self.epsilon)
        if not 1e-6 <= self.epsilon <= 100:
            raise ProjectError(
                f"plan: epsilon ({self.epsilon:g}) must be above 0 (at least 1e-6) and at most 100", key="epsilon"
            )
        if self.delta is not None:
            _number("delta", self.delta)
            if not 1e-300 <= self.delta < 1:
                raise ProjectError(f"plan: delta ({self.delta:g}) must lie between 0 and 1, both left out", key="delta")
        if not isinstance(self.fair, bool | None) or not isinstance(self.strict, bool):
            raise ProjectError("plan: fair and strict must be true or false", key="fair")
        for name, top in (
            ("rows_per_person", 10_000),
            ("features", 10_000),
            ("rows", MAX_ROWS),
            ("max_cells", 10**9),
            ("width", 6),
        ):
            value = getattr(self, name)
            if value is None and name in ("rows", "features"):
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= top:
                raise ProjectError(f"plan: {name} ({_short(value)}) must be a whole number from 1 to {top:,}", key=name)
        _weights(self.targets)
        if not isinstance(self.three_way, int) or isinstance(self.three_way, bool) or not 0 <= self.three_way <= 20:
            raise ProjectError(
                f"plan: three_way ({_short(self.three_way)}) must be a whole number from 0 to 20", key="three_way"
            )
        if self.target is not None and not isinstance(self.target, str):
            raise ProjectError("plan: target must be a column name", key="target")
        _number("explain", self.explain)
        if not 0 <= self.explain <= 0.5:
            raise ProjectError(f"plan: explain ({self.explain:g}) must be a share from 0 to 0.5", key="explain")
        if not isinstance(self.compress, bool):
            raise ProjectError("plan: compress must be true or false", key="compress")
        if self.person is not None and (not isinstance(self.person, str) or not self.person):
            raise ProjectError("plan: person must be the name of a column", key="person")
        _number("looking", self.looking)
        if not 0 <= self.looking <= 0.5:
            raise ProjectError(f"plan: looking ({self.looking:g}) must be a share from 0 to 0.5", key="looking")

    @property
    def weights(self) -> dict[str, float]:
        """Every target with its weight, the first one first; empty without a target."""
        if self.target is None:
            return {}
        return {self.target: self.targets.get(self.target, 1.0), **self.targets}

    @property
    def fenced(self) -> bool:
        """Does the plan carry the roles' separation?"""
        return self.fair if self.fair is not None else self.method in ("privci", "prefair")

    def to_json(self) -> dict[str, Any]:
        """The plan as it stands in the project file."""
        out = asdict(self)
        if not self.strict:
            del out["strict"]
        out["targets"] = dict(self.targets)
        if not self.targets:
            del out["targets"]
        for key in (
            "max_cells",
            "selector",
            "three_way",
            "width",
            "explain",
            "compress",
            "person",
            "looking",
            "rows_drawn",
        ):
            if getattr(self, key) == getattr(Plan, key):
                del out[key]
        if self.fair is None:
            out["fair"] = self.fenced
        return out

    @classmethod
    def from_json(cls, data: Any) -> Plan:
        """A plan from the project file; raises :class:`ProjectError`."""
        if not isinstance(data, Mapping):
            raise ProjectError("plan must be an object")
        known = {f.name for f in fields(cls)}
        if odd := set(data) - known:
            raise ProjectError(f"plan: unknown key {sorted(odd)[0]!r}", key=sorted(odd)[0])
        for key in ("method", "epsilon"):
            if key not in data:
                raise ProjectError(f"plan: {key} is missing", key=key)
        return cls(**data)


_WORDS: dict[str, Any] = {
    "method": Method, "regime": Regime, "neighbors": Neighbors,
    "allocation": AllocationRule, "selector": Selector, "accounting": AccountingRule, "rows_drawn": RowsDrawn,
}  # fmt: skip


def _weights(given: Any) -> None:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ProjectError("plan: targets maps column names to weights", key="targets")
    for name, weight in given.items():
        _number("targets", weight)
        if not 0 < weight <= 1000:
            raise ProjectError(
                f"plan: the weight of {name!r} in targets is {weight:g}; it must be above 0 and at most 1000",
                key="targets",
            )


def _shares(given: Mapping[Any, Any]) -> None:
    for name, share in given.items():
        if not isinstance(name, str) or isinstance(share, bool) or not isinstance(share, int | float):
            raise ProjectError("plan: allocation by hand maps a marginal's name to a number", key="allocation")
        if not 0 < share < 1:
            raise ProjectError(
                f"plan: the share of {name!r} in allocation is {_short(share)}; it must lie between 0 and 1, "
                "both left out",
                key="allocation",
            )


def _number(name: str, value: Any) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= sys.float_info.max:
        raise ProjectError(f"plan: {name} ({_short(value)}) must be a number", key=name)


def _short(value: Any) -> str:
    """A value for a message; digits beyond what Python will write, and text beyond a line, are left out."""
    try:
        shown = repr(value)
    except ValueError:
        return "a very long number"
    return shown if len(shown) <= 80 else shown[:79] + "…"


@dataclass(frozen=True)
class Project:
    """Everything a release needs beside the table. Raises an :class:`EspalierError` where parts do not fit."""

    name: str
    schema: Schema
    plan: Plan
    dag: Dag = field(default_factory=Dag)
    roles: Roles = field(default_factory=Roles)
    separations: tuple[Separation, ...] = ()
    """Further separations that every plan with a fence carries, beside the one that the roles imply."""

    def __post_init__(self) -> None:
        for s in self.separations:
            s.check_columns(self.schema.names)
        self.dag.check_columns(self.schema.names)
        self.roles.check_columns(self.schema.names)
        if self.plan.target is not None and self.plan.target not in self.schema:
            raise ProjectError(f"plan: the target {self.plan.target!r} is not a column", key="target")
        for name in self.plan.targets:
            if name not in self.schema:
                raise ProjectError(f"plan: the further target {name!r} is not a column", key="targets")
        if self.plan.targets and self.plan.target is None:
            raise ProjectError("plan: name the target before further targets", key="target")
        if self.plan.person in self.schema:
            raise ProjectError(
                f"plan: the person column {self.plan.person!r} would be released; take it out of the schema",
                key="person",
            )

    def with_plan(self, **changes: Any) -> Project:
        """The same project under a changed plan."""
        return replace(self, plan=replace(self.plan, **changes))

    def to_json(self) -> dict[str, Any]:
        """The whole project file."""
        return {
            "format": FORMAT,
            "name": self.name,
            "schema": self.schema.to_json(),
            **({"left_out": [c.to_json() for c in self.schema.left_out]} if self.schema.left_out else {}),
            "dag": self.dag.to_json(),
            "roles": self.roles.to_json(),
            **({"separations": [s.to_json() for s in self.separations]} if self.separations else {}),
            "plan": self.plan.to_json(),
        }

    def dumps(self) -> str:
        """The project file's text."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, data: Any) -> Project:
        """A project from parsed JSON; raises :class:`EspalierError`. Keys the format does not know are errors."""
        if not isinstance(data, Mapping):
            raise ProjectError("a project file holds one JSON object")
        if data.get("format") != FORMAT:
            raise ProjectError(f"this is not an Espalier project: format is {data.get('format')!r}, not {FORMAT!r}")
        known = {"format", "name", "schema", "left_out", "dag", "roles", "separations", "plan"}
        if odd := set(data) - known:
            raise ProjectError(f"unknown key {sorted(odd)[0]!r} in the project file", key=sorted(odd)[0])
        for key in ("schema", "plan"):
            if key not in data:
                raise ProjectError(f"the project file has no {key}", key=key)
        name = data.get("name", "unnamed")
        if not isinstance(name, str):
            raise ProjectError("name must be a text", key="name")
        return cls(
            name=name,
            schema=Schema.from_json(data["schema"], data.get("left_out", [])),
            plan=Plan.from_json(data["plan"]),
            dag=Dag.from_json(data.get("dag", {})),
            roles=Roles.from_json(data.get("roles", {})),
            separations=_separations(data.get("separations", [])),
        )

    @classmethod
    def loads(cls, text: str | bytes) -> Project:
        """A project from a file's text; raises :class:`EspalierError`."""
        try:
            if isinstance(text, bytes):
                text = text.decode("utf-8-sig")
            data = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_doubles)
        except UnicodeDecodeError:
            raise ProjectError("the project file is not UTF-8 text") from None
        except json.JSONDecodeError as error:
            where = f"line {error.lineno}, column {error.colno}"
            raise ProjectError(f"the project file is not JSON: {error.msg} at {where}", line=error.lineno) from None
        except (RecursionError, ValueError):
            raise ProjectError(
                "the project file is not JSON: it is nested too deeply or holds too long a number"
            ) from None
        _check_text(data)
        return cls.from_json(data)

    @classmethod
    def load(cls, path: str | Path) -> Project:
        """A project from a file; raises :class:`EspalierError`."""
        try:
            return cls.loads(Path(path).read_bytes())
        except OSError as error:
            raise ProjectError(f"cannot read {path}: {error.strerror or error}", path=str(path)) from None
        except EspalierError as error:
            raise type(error)(f"{path}: {error}", **error.data) from None


def _separations(data: Any) -> tuple[Separation, ...]:
    if not isinstance(data, list):
        raise ProjectError("separations must be a list", key="separations")
    return tuple(Separation.read(item) for item in data)


def _check_text(data: Any) -> None:
    """Refuse what could be read but not be written again: lists within lists, and halves of characters."""
    level, depth = [data], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise ProjectError(f"the project file is nested more than {DEEPEST} levels deep")
        inside = (x.values() if isinstance(x, dict) else x for x in level if isinstance(x, dict | list))
        level = [value for values in inside for value in values]
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except (UnicodeEncodeError, ValueError):
        raise ProjectError(
            "the project file holds half a character (a lone surrogate) or too long a number; it cannot be written"
        ) from None


def _no_constant(word: str) -> Any:
    raise ProjectError(f"{word} is not a number that a project file may hold")


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        names = [k for k, _ in pairs]
        raise ProjectError(f"the key {next(k for k in names if names.count(k) > 1)!r} is given twice")
    return out
