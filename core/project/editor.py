"""Editing of a project: changes, undo, and the parts set aside while their columns are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from espalier.core.errors import EspalierError
from espalier.core.graph.dag import Dag, Interaction
from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Separation
from espalier.core.project.analyses import PlannedAnalysis, fitting_analyses
from espalier.core.project.asked import AskedQuestion
from espalier.core.project.constraints import Constraints
from espalier.core.project.declared_by import DeclaredBy
from espalier.core.project.file import Project
from espalier.core.project.linked import Linked, Pair
from espalier.core.project.plan import Plan
from espalier.core.project.question_list import QuestionList
from espalier.core.project.regressions import fitting
from espalier.core.project.schema import Column, Schema

Drawing = tuple[Dag, Roles, str | None, tuple[Pair, ...]]
"""State restored by undo: graph, roles, target, and arrows from one visit to the next."""
UNDO_STEPS = 200


@dataclass(frozen=True)
class References:
    """Parts of a project that refer to columns, except the schema and the questions."""

    edges: tuple[tuple[str, str], ...] = ()
    hidden: tuple[tuple[str, str], ...] = ()
    interactions: tuple[Interaction, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    roles: Roles = field(default_factory=Roles)
    separations: tuple[Separation, ...] = ()
    constraints: Constraints = field(default_factory=Constraints)
    target: str | None = None
    targets: Mapping[str, float] = field(default_factory=dict)
    between: tuple[Pair, ...] = ()
    """Arrows from one visit to the next."""

    @classmethod
    def of(cls, project: Project) -> References:
        """Return the references of a project."""
        dag, plan = project.dag, project.plan
        drawn = dag.edges, dag.hidden, dag.interactions, dag.groups
        found = cls(*drawn, project.roles, project.separations, project.constraints, plan.target, plan.targets)
        return found if project.linked is None else replace(found, between=project.linked.arrows)

    def put_into(self, project: Project, schema: Schema) -> Project:
        """Return the project with this schema and these references. Questions and regressions that no longer fit are
        dropped.
        """
        return replace(
            project,
            schema=schema,
            dag=replace(
                project.dag,
                edges=self.edges,
                hidden=self.hidden,
                interactions=self.interactions,
                groups=self.groups,
            ),
            linked=project.linked and replace(project.linked, arrows=self.between),
            roles=self.roles,
            separations=self.separations,
            constraints=self.constraints,
            question_list=project.question_list.fitting(schema),
            analyses=fitting_analyses(project.analyses, schema),
            plan=replace(
                project.plan,
                target=self.target,
                targets=self.targets,
                regressions=fitting(project.plan.regressions, schema),
            ),
        )

    def __add__(self, other: References) -> References:
        """Return the references of both objects, without repetition. A target of ``self`` replaces the targets of
        ``other``.
        """
        target = self.target or other.target
        return References(
            edges=_once(self.edges, other.edges),
            hidden=_once(self.hidden, other.hidden),
            interactions=_once(self.interactions, other.interactions),
            groups={
                name: _once(self.groups.get(name, ()), other.groups.get(name, ()))
                for name in _once(tuple(self.groups), tuple(other.groups))
            },
            roles=Roles(**{role: _once(columns, getattr(other.roles, role)) for role, columns in self.roles.items()}),
            separations=_once(self.separations, other.separations),
            constraints=self.constraints + other.constraints,
            target=target,
            targets={**other.targets, **self.targets} if other.target in (None, target) else self.targets,
            between=_once(self.between, other.between),
        )

    def split(self, names: Iterable[str]) -> tuple[References, References]:
        """Return the references to ``names``, and all other references. Further targets follow the main target."""
        known = frozenset(names)
        unknown = [c for c in self.constraints if not known.issuperset(c.columns)]
        stays = self.target in known
        near = References(
            edges=tuple(e for e in self.edges if known.issuperset(e)),
            hidden=tuple(pair for pair in self.hidden if known.issuperset(pair)),
            interactions=tuple((causes, e) for causes, e in self.interactions if known.issuperset((*causes, e))),
            groups=_members(self.groups, known.__contains__),
            roles=Roles(**{role: tuple(c for c in columns if c in known) for role, columns in self.roles.items()}),
            separations=tuple(s for s in self.separations if known.issuperset((*s.left, *s.right, *s.given))),
            constraints=self.constraints.without(unknown),
            target=self.target if stays else None,
            targets={c: weight for c, weight in self.targets.items() if stays and c in known},
            between=tuple(arrow for arrow in self.between if known.issuperset(arrow)),
        )
        far = References(
            edges=tuple(e for e in self.edges if e not in near.edges),
            hidden=tuple(pair for pair in self.hidden if pair not in near.hidden),
            interactions=tuple(found for found in self.interactions if found not in near.interactions),
            groups=_members(self.groups, lambda name: name not in known),
            roles=Roles(**{role: tuple(c for c in columns if c not in known) for role, columns in self.roles.items()}),
            separations=tuple(s for s in self.separations if s not in near.separations),
            constraints=self.constraints.without(near.constraints),
            target=None if stays else self.target,
            targets={c: weight for c, weight in self.targets.items() if c not in near.targets},
            between=tuple(arrow for arrow in self.between if arrow not in near.between),
        )
        return near, far


def _members(groups: Mapping[str, tuple[str, ...]], wanted: Callable[[str], bool]) -> dict[str, tuple[str, ...]]:
    """Return ``groups`` without unwanted columns and empty groups."""
    found = {group: tuple(name for name in names if wanted(name)) for group, names in groups.items()}
    return {group: names for group, names in found.items() if names}


def _once(one: Sequence[Any], other: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys((*one, *other)))


@dataclass(repr=False)
class ProjectEditor:
    """One open project. A method that cannot make a change raises :class:`EspalierError` and leaves the project
    unchanged.

    ``aside`` holds references to columns that are currently left out; they return with their columns. ``past`` and
    ``future`` are the drawings that undo and redo restore.
    """

    project: Project
    aside: References = field(default_factory=References)
    past: list[Drawing] = field(default_factory=list)
    future: list[Drawing] = field(default_factory=list)

    def change_schema(self, schema: Schema) -> None:
        """Change the columns. References to a removed column are set aside, and restored when the column returns."""
        if schema != self.project.schema:
            self._take(*self._under(schema))

    def change_column(self, column: Column) -> None:
        """Replace the description of one column."""
        columns = tuple(column if c.name == column.name else c for c in self.project.schema.columns)
        self.change_schema(replace(self.project.schema, columns=columns))

    def declare(self, schema: Schema, used: Iterable[DeclaredBy]) -> None:
        """Replace columns with the declarations of dictionaries, and record each dictionary once."""
        self.change_schema(schema)
        known = {d.digest: d for d in (*self.project.dictionaries, *used)}
        self.project = replace(self.project, dictionaries=tuple(known.values()))

    def forget_person(self) -> None:
        """Remove the person column, which reopens the question of whether one person can have several rows."""
        self.project = self.project.with_plan(person=None, rows_per_person=1)

    def leave_out(self, column: str) -> None:
        """Take a column out of the schema. If a guess had already set the column aside, the guess is confirmed."""
        self._take(*self._under(self._without(column)))

    def answer(self, one_row: bool, person: str | None = None, rows_per_person: int = 1) -> None:
        """Store the answer to whether each person has one row, and remove the person column from the schema."""
        schema = self.project.schema
        if person is not None:  # whether a guess had left it out depends on the rows
            schema = self._without(person)
            schema = replace(schema, left_out=tuple(c for c in schema.left_out if c.name != person))
        project, aside = self._under(schema)
        self._take(project.answered(one_row, person, rows_per_person), aside)

    def _without(self, column: str) -> Schema:
        schema = self.project.schema
        kept = tuple(c for c in schema.columns if c.name != column)
        if not kept:
            raise EspalierError(f"{column!r} is the only column. Without it, nothing is left to release.")
        left_out = tuple(replace(c, confirmed=c.confirmed or c.name == column) for c in schema.left_out)
        return replace(schema, columns=kept, left_out=left_out)

    def _under(self, schema: Schema) -> tuple[Project, References]:
        """Return the project with another schema, and the parts that this sets aside."""
        linked = self.project.linked
        steps = linked.step_columns(schema) if linked else ()
        inside, aside = (References.of(self.project) + self.aside).split((*schema.names, *steps))
        return inside.put_into(self.project, schema), aside

    def _take(self, project: Project, aside: References) -> None:
        if project.schema.names != self.project.schema.names:
            self.past, self.future = [], []  # these parts refer to other columns
        self.project, self.aside = project, aside

    @property
    def drawing(self) -> Drawing:
        """Graph, roles, target, and arrows from one visit to the next."""
        project = self.project
        return project.dag, project.roles, project.plan.target, project.linked.arrows if project.linked else ()

    def redraw(
        self,
        dag: Dag | None = None,
        roles: Roles | None = None,
        between: tuple[Pair, ...] | None = None,
        **target: str | None,
    ) -> None:
        """Change the drawing; undo restores the previous drawing. ``between`` are arrows from one visit to the next."""
        was = self.drawing
        new = (dag or was[0], roles or was[1], target.get("target", was[2]), was[3] if between is None else between)
        if new != was:
            self._restore(new)
            self.past = [*self.past[1 - UNDO_STEPS :], was]
            self.future = []

    def undo(self) -> bool:
        """Restore the drawing before the last change; return False if there is none."""
        if not self.past:
            return False
        self.future.append(self.drawing)
        self._restore(self.past.pop())
        return True

    def redo(self) -> bool:
        """Restore the drawing that was undone last; return False if there is none."""
        if not self.future:
            return False
        self.past.append(self.drawing)
        self._restore(self.future.pop())
        return True

    def _restore(self, drawing: Drawing) -> None:
        dag, roles, target, between = drawing
        linked = self.project.linked and replace(self.project.linked, arrows=between)
        plan = replace(self.project.plan, target=target)
        self.project = replace(self.project, dag=dag, roles=roles, linked=linked, plan=plan)

    def change_causes(self, effect: str, causes: list[str]) -> None:
        """Draw the arrows into ``effect``."""
        dag = self.project.dag.without((c, effect) for c in self.project.dag.parents(effect) if c not in causes)
        for cause in causes:
            dag = dag.drawn(cause, effect)
        self.redraw(dag)

    def change_role(self, role: str, columns: list[str]) -> None:
        """Give ``columns`` the role, replacing any former role. A new outcome becomes the target."""
        roles, target = self.project.roles, self.project.plan.target
        others = {r: tuple(c for c in cols if c not in columns) for r, cols in roles.items()}
        order = self.project.schema.clique(columns)
        follows = role == "outcome" and len(order) == 1 and (target is None or target in roles.outcome)
        self.redraw(roles=Roles(**{**others, role: order}), target=order[0] if follows else target)

    def give_role(self, column: str, role: str | None) -> None:
        """Give one column a role, or none. There is only one outcome, so a new outcome replaces the old one."""
        roles = self.project.roles
        if role is None:
            self.redraw(roles=Roles(**{r: tuple(c for c in cols if c != column) for r, cols in roles.items()}))
        else:
            self.change_role(role, [column] if role == "outcome" else [*getattr(roles, role), column])

    def change_separations(self, separations: Iterable[Separation]) -> None:
        """Replace the separations that the roles do not require."""
        self.project = replace(self.project, separations=tuple(separations))

    def change_constraints(self, constraints: Constraints) -> None:
        """Replace the constraints."""
        self.project = replace(self.project, constraints=constraints)

    def change_questions(self, questions: QuestionList) -> None:
        """Replace the questions and counts."""
        self.project = replace(self.project, question_list=questions)

    def change_analyses(self, analyses: tuple[PlannedAnalysis, ...], share: float) -> None:
        """Change the planned analyses, and the share of the budget that buys them."""
        self.project = replace(self.project, analyses=analyses, plan=self.project.plan.changed(analysis_share=share))

    def change_plan(self, **changes: Any) -> None:
        """Change settings of the plan."""
        self.project = self.project.with_plan(**changes)

    def change_link(self, linked: Linked) -> None:
        """Change the link between two tables, such as the number of visits kept."""
        self.project = replace(self.project, linked=linked)

    def take_plan(self, plan: Plan) -> None:
        """Replace the plan, except for the person column and the rows per person."""
        own = self.project.plan
        kept = plan.changed(person=own.person, rows_per_person=own.rows_per_person)
        self.project = replace(self.project, plan=kept)

    def ask(self, asked: Iterable[AskedQuestion]) -> None:
        """Replace the questions that were asked of a release, without repetition."""
        self.project = replace(self.project, asked=tuple(dict.fromkeys(asked)))

    def sign(self, signoff: Mapping[str, str]) -> None:
        """Replace the signatures and the reason for the plan; empty ones are left out."""
        self.project = replace(self.project, signoff={key: text for key, text in signoff.items() if text})
