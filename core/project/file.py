"""Project file: schema, graph, roles and plan in one JSON text that the app, the command line and the report share."""

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
from espalier.core.limited_file import read_limited
from espalier.core.project.analyses import PlannedAnalysis, read_analyses
from espalier.core.project.asked import AskedQuestion, read_asked
from espalier.core.project.constraints import KEYS, Constraints
from espalier.core.project.declared_by import KEY as DICTIONARIES
from espalier.core.project.declared_by import DeclaredBy, read_declared_by
from espalier.core.project.json_text import MOST_JSON, read_json
from espalier.core.project.linked import BEFORE, NEXT, Linked, by_visit
from espalier.core.project.linked import FORMAT as LINKED_FORMAT
from espalier.core.project.people import KEY as ONE_ROW
from espalier.core.project.people import OPEN, UNASKED, Answer, answer_after, check_answer, is_open, read_answer, stated
from espalier.core.project.people import in_words as people_in_words
from espalier.core.project.plan import Plan
from espalier.core.project.question_list import QuestionList
from espalier.core.project.schema import Schema
from espalier.core.project.schema_json import left_out_to_json, schema_from_json, schema_to_json

FORMAT = "espalier-project/1"
LINKED_UNIT = "Both tables identify the person of each row, so all rows of one person are protected together."


@dataclass(frozen=True)
class Project:
    """Everything that a release needs except the table. Raises an :class:`EspalierError` if parts do not match.

    >>> import espalier as es
    >>> schema = es.Schema((es.Column("smoker", "categorical", ("no", "yes")),))
    >>> project = es.Project("clinic", schema, es.Plan("mst", epsilon=1, delta=1e-6))
    >>> es.Project.loads(project.dumps()) == project
    True
    """

    name: str
    schema: Schema
    plan: Plan
    dag: Dag = field(default_factory=Dag)
    roles: Roles = field(default_factory=Roles)
    separations: tuple[Separation, ...] = ()
    """Further separations that every plan with a fence keeps, in addition to the separation implied by the roles."""
    question_list: QuestionList = field(default_factory=QuestionList)
    """Questions that reports will ask of the table, and counts over whole rows."""
    analyses: tuple[PlannedAnalysis, ...] = ()
    """Analyses planned by the study, with the desired half-widths."""
    constraints: Constraints = field(default_factory=Constraints)
    """Combinations that no row may have. The model enforces them."""
    signoff: Mapping[str, str] = field(default_factory=dict)
    """Signatures: ``drawn_by``, ``schema_confirmed_by``, ``approved_by``; and the reason for the plan:
    ``chosen_because``, ``compared_with``.
    """
    dictionaries: tuple[DeclaredBy, ...] = ()
    """Dictionaries that declared parts of the schema; see :mod:`espalier.core.project.declared_by`."""
    one_row_per_person: Answer = UNASKED
    """Answer to the question that fixes the unit of privacy; see :mod:`espalier.core.project.people`."""
    linked: Linked | None = None
    """Link between a table of people and a table of their visits; `None` for a single table."""
    asked: tuple[AskedQuestion, ...] = field(default=(), compare=False)
    """Questions that were asked of a release. They do not affect any release."""

    def __post_init__(self) -> None:
        if self.linked is not None:
            self._check_linked(self.linked)
        for s in self.separations:
            s.check_columns(self.schema.names)
        self.question_list.resolve(self.schema)
        for analysis in self.analyses:
            analysis.check(self.schema)
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
        for regression in self.plan.regressions:
            regression.check(self.schema)
        bought = [one.name for one in self.plan.regressions]
        if twice := [one.name for one in self.analyses if one.kind == "regression" and one.name in bought]:
            raise ProjectError(
                f"an analysis and a regression have the same name, {twice[0]!r}; rename one of them",
                key="analyses",
            )
        if self.plan.person in self.schema:
            raise ProjectError(
                f"plan: the person column {self.plan.person!r} would be released; remove it from the schema",
                key="person",
            )
        check_answer(self.one_row_per_person, self.plan)

    def _check_linked(self, linked: Linked) -> None:
        """Complete the schema with the number of visits, and check that the tables fit the schema and the plan."""
        object.__setattr__(self, "schema", linked.completed(self.schema))
        linked.check(self.schema)
        if taken := [group for group in self.dag.groups if group.startswith(NEXT)]:
            raise ProjectError(f"the group {taken[0]!r} has the name of a box at the next visit; rename it", key="dag")
        if self.plan.person != linked.key or self.plan.rows_per_person != 1:
            raise ProjectError(
                f"plan: linked tables need the person column {linked.key!r} and one row per person. Set person to "
                f"{linked.key!r} and rows_per_person to 1",
                key="person",
            )

    @property
    def unit_open(self) -> bool:
        """True if the question about several rows per person is still open."""
        return is_open(self.one_row_per_person, self.plan)

    def need_unit(self) -> None:
        """Raise :class:`ProjectError` while the question about several rows per person is open.

        Until it is answered, nothing is planned, attacked or released.
        """
        if self.unit_open:
            raise ProjectError(OPEN, key=ONE_ROW)

    def unit_facts(self) -> dict[str, Any]:
        """Return the unit of privacy, and the source of the row limit per person, for plan output and
        ``release.json``.
        """
        plan = self.plan
        return {
            "neighbors": plan.neighbors,
            "rows_per_person": plan.rows_per_person,
            "person": plan.person,
            ONE_ROW: stated(self.one_row_per_person, plan),
            "stated": people_in_words(self.one_row_per_person, plan) if self.linked is None else LINKED_UNIT,
        }

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """Unconfirmed guesses from the data: column names, and constraints as text."""
        return (*self.schema.unconfirmed, *map(str, self.constraints.guessed))

    def says_the_same(self, other: Project) -> bool:
        """Return whether both projects would lead to the same release. Positions, groups, signatures and asked
        questions make no difference.
        """
        plain = (replace(p, dag=replace(p.dag, positions={}, groups={}), signoff={}, asked=()) for p in (self, other))
        mine, theirs = (p.to_json() for p in plain)
        return mine == theirs

    def with_plan(self, **changes: Any) -> Project:
        """Return the project with a different plan."""
        plan = self.plan.changed(**changes)
        return replace(self, plan=plan, one_row_per_person=answer_after(self.one_row_per_person, self.plan, plan))

    def answered(self, one_row: bool, person: str | None = None, rows_per_person: int = 1) -> Project:
        """Return the project with a different answer to the question about rows per person."""
        plan = self.plan.changed(person=person, rows_per_person=rows_per_person)
        return replace(self, plan=plan, one_row_per_person=one_row)

    def bought(self, schema: Schema) -> Project:
        """Return the project with its bought schema. Questions about top groups then name the categories inside these
        groups.
        """
        inside = {c.name: c.inside(schema[c.name]) for c in self.schema.hierarchies}
        return replace(
            self,
            schema=schema,
            question_list=self.question_list.expanded(inside),
            constraints=self.constraints.expanded(inside),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the whole project file."""
        return {
            "format": FORMAT if self.linked is None else LINKED_FORMAT,
            "name": self.name,
            **({} if self.linked is None else {"tables": self.linked.to_json()}),
            "schema": schema_to_json(self.schema),
            **({"left_out": [left_out_to_json(c) for c in self.schema.left_out]} if self.schema.left_out else {}),
            **({DICTIONARIES: [d.to_json() for d in self.dictionaries]} if self.dictionaries else {}),
            **({} if self.one_row_per_person == UNASKED else {ONE_ROW: self.one_row_per_person}),
            "dag": _dag_to_json(self.dag, self.linked),
            "roles": self.roles.to_json(),
            **({"separations": [s.to_json() for s in self.separations]} if self.separations else {}),
            **self.question_list.to_json(),
            **({"analyses": [one.to_json() for one in self.analyses]} if self.analyses else {}),
            **self.constraints.to_json(),
            **({"asked": [one.to_json() for one in self.asked]} if self.asked else {}),
            **({"signoff": dict(self.signoff)} if self.signoff else {}),
            "plan": self.plan.to_json(),
        }

    def dumps(self) -> str:
        """Return the text of the project file."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, data: Any) -> Project:
        """Return a project from parsed JSON; raise :class:`EspalierError`. Unknown keys are errors."""
        if not isinstance(data, Mapping):
            raise ProjectError("a project file holds one JSON object")
        _check_text(data)
        is_linked = data.get("format") == LINKED_FORMAT
        if data.get("format") != FORMAT and not is_linked:
            raise ProjectError(f"this is not an Espalier project: format is {data.get('format')!r}, not {FORMAT!r}")
        known = {"format", "name", "schema", "left_out", "dag", "roles", "separations"}
        known |= {"questions", "counts", "analyses", "asked", "signoff", "plan", ONE_ROW, DICTIONARIES, *KEYS}
        known |= {"tables"} if is_linked else set()
        if odd := set(data) - known:
            raise ProjectError(f"unknown key {sorted(odd)[0]!r} in the project file", key=sorted(odd)[0])
        for key in ("schema", "plan", *(["tables"] if is_linked else [])):
            if key not in data:
                raise ProjectError(f"the project file has no {key}", key=key)
        name = data.get("name", "unnamed")
        if not isinstance(name, str):
            raise ProjectError("name must be text", key="name")
        dag, linked = data.get("dag", {}), None
        plan = Plan.from_json(data["plan"])
        if is_linked:
            linked, dag = _linked(data["tables"], dag)
            plan = replace(plan, person=linked.key) if plan.person is None else plan
        return cls(
            linked=linked,
            name=name,
            schema=schema_from_json(data["schema"], data.get("left_out", [])),
            plan=plan,
            dag=Dag.from_json(dag),
            roles=Roles.from_json(data.get("roles", {})),
            separations=_separations(data.get("separations", [])),
            question_list=QuestionList.from_json(data.get("questions", []), data.get("counts", [])),
            analyses=read_analyses(data.get("analyses", [])),
            constraints=Constraints.from_json(data),
            signoff=_signoff(data.get("signoff", {})),
            dictionaries=read_declared_by(data.get(DICTIONARIES, [])),
            one_row_per_person=read_answer(data[ONE_ROW]) if ONE_ROW in data else UNASKED,
            asked=read_asked(data.get("asked", [])),
        )

    def check_text(self) -> None:
        """Raise :class:`ProjectError` for text that cannot be written to a release's files."""
        _check_text(self.to_json())

    @classmethod
    def loads(cls, text: str | bytes) -> Project:
        """Return a project from a file's text; raise :class:`EspalierError`."""
        try:
            data = read_json(text, "the project file")
        except ProjectError as error:
            if error.data.get("start"):
                why = f"{error}; if this is a table, create a project file from it with `init` or on the Data page"
                raise ProjectError(why, **error.data) from None
            raise
        return cls.from_json(data)

    @classmethod
    def load(cls, path: str | Path) -> Project:
        """Return a project from a file; raise :class:`EspalierError`."""
        try:
            return cls.loads(read_limited(Path(path), MOST_JSON))
        except OSError as error:
            raise ProjectError(f"cannot read {path}: {error.strerror or error}", path=str(path)) from None
        except EspalierError as error:
            raise type(error)(f"{path}: {error}", **error.data) from None


SIGNOFF = ("drawn_by", "schema_confirmed_by", "approved_by")
CHOSEN = ("chosen_because", "compared_with")
"""Keys of the reason for this plan and of the plans with which it was compared, stored with the signatures."""


def _signoff(data: Any) -> dict[str, str]:
    if not isinstance(data, Mapping) or not all(isinstance(who, str) for who in data.values()):
        raise ProjectError("signoff maps each signature to a name", key="signoff")
    for key in data:
        if key not in (*SIGNOFF, *CHOSEN):
            raise ProjectError(f"signoff: {key!r} is not one of {', '.join((*SIGNOFF, *CHOSEN))}", key="signoff")
    return dict(data)


def _linked(tables: Any, dag: Any) -> tuple[Linked, Any]:
    """Return the link of two tables with the arrows from one visit to the next, and the rest of the drawing."""
    linked, edges = Linked.from_json(tables), dag.get("edges") if isinstance(dag, Mapping) else None
    if not isinstance(edges, list):
        return linked, dag
    within, between = by_visit(edges)
    return replace(linked, arrows=tuple(between)), {**dag, "edges": within}


def _dag_to_json(dag: Dag, linked: Linked | None) -> dict[str, Any]:
    """Return the drawing, with the arrows from one visit to the next among its edges."""
    out = dag.to_json()
    if linked is not None:
        out["edges"] += [[cause + BEFORE, effect] for cause, effect in linked.arrows]
    return out


def _separations(data: Any) -> tuple[Separation, ...]:
    if not isinstance(data, list):
        raise ProjectError("separations must be a list", key="separations")
    return tuple(Separation.read(item) for item in data)


def _check_text(data: Any) -> None:
    """Refuse halves of surrogate pairs, which can be read but not written."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except (UnicodeEncodeError, ValueError):
        raise ProjectError(
            "the project contains half a character (a lone surrogate) or a number that is too long, so it cannot be "
            "written"
        ) from None
