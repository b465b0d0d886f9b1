"""The project file: schema, graph, roles and plan in one JSON text that app, command line and report share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from espalier.core.errors import EspalierError, ProjectError
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Separation
from espalier.core.project.constraints import KEYS, Constraints
from espalier.core.project.plan import Plan
from espalier.core.project.question_list import QuestionList
from espalier.core.project.schema import Schema

FORMAT = "espalier-project/1"
DEEPEST = 50
"""Levels of nesting in a project file; a right one has six, and what a drawing tool keeps in the notes."""


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
    question_list: QuestionList = field(default_factory=QuestionList)
    """The questions that reports will ask, and the counts over whole rows."""
    constraints: Constraints = field(default_factory=Constraints)
    """Which combinations no row may have: the model holds them."""
    signoff: Mapping[str, str] = field(default_factory=dict)
    """Who answers for what: ``drawn_by``, ``schema_confirmed_by``, ``approved_by``; and why the plan was chosen:
    ``chosen_because``, ``compared_with``."""

    def __post_init__(self) -> None:
        for s in self.separations:
            s.check_columns(self.schema.names)
        self.question_list.resolve(self.schema)
        self.constraints.check_columns(self.schema.names)
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

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """What was read off the data and nobody has confirmed: names of columns, and constraints in words."""
        return (*self.schema.unconfirmed, *map(str, self.constraints.guessed))

    def says_the_same(self, other: Project) -> bool:
        """Would both be released alike? Where boxes stand on the drawing and who signed is no difference."""
        mine, theirs = (replace(p, dag=replace(p.dag, positions={}), signoff={}).to_json() for p in (self, other))
        return mine == theirs

    def with_plan(self, **changes: Any) -> Project:
        """The same project under a changed plan."""
        return replace(self, plan=self.plan.changed(**changes))

    def bought(self, schema: Schema) -> Project:
        """The same with its schema bought: what names the top of a hierarchy names the categories inside it."""
        inside = {c.name: c.inside(schema[c.name]) for c in self.schema.columns if c.hierarchy}
        return replace(
            self,
            schema=schema,
            question_list=self.question_list.told_apart(inside),
            constraints=self.constraints.told_apart(inside),
        )

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
            **self.question_list.to_json(),
            **self.constraints.to_json(),
            **({"signoff": dict(self.signoff)} if self.signoff else {}),
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
        known = {"format", "name", "schema", "left_out", "dag", "roles", "separations"}
        known |= {"questions", "counts", "signoff", "plan", *KEYS}
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
            question_list=QuestionList.from_json(data.get("questions", []), data.get("counts", [])),
            constraints=Constraints.from_json(data),
            signoff=_signoff(data.get("signoff", {})),
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
            why = f"the project file is not JSON: {error.msg} at {where}"
            if error.pos == 0:
                why += "; a table is not a project file: `init`, or the Data page, makes one from it"
            raise ProjectError(why, line=error.lineno) from None
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


SIGNOFF = ("drawn_by", "schema_confirmed_by", "approved_by")
CHOSEN = ("chosen_because", "compared_with")
"""Why this plan, and what it was compared with: they stand beside the signatures."""


def _signoff(data: Any) -> dict[str, str]:
    if not isinstance(data, Mapping) or not all(isinstance(who, str) for who in data.values()):
        raise ProjectError("signoff maps what was signed to a name", key="signoff")
    for key in data:
        if key not in (*SIGNOFF, *CHOSEN):
            raise ProjectError(f"signoff: {key!r} is not one of {', '.join((*SIGNOFF, *CHOSEN))}", key="signoff")
    return dict(data)


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
