"""The session's state and its one owner: the project, the private table, what was released and found.

Everything lives under one plain key of ``st.session_state``, so it survives a change of page and dies with the
session. Private rows are never in a cache that sessions share. The core's values are frozen: a change puts a new
one in the place of the old.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from espalier.core.analysis.study import Study
from espalier.core.compare.plans import Outcome
from espalier.core.errors import EspalierError
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Clique, Separation
from espalier.core.ledger.ledger import Ledger
from espalier.core.methods.registry import DEFAULT
from espalier.core.planning.preview import Preview, preview
from espalier.core.privacy.contribution import public_rows
from espalier.core.progress import Report
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.question_list import QuestionList
from espalier.core.project.schema import Schema
from espalier.core.release.artefact import Release
from espalier.core.release.blurred import Blurred
from espalier.core.tables.reading import TextTable
from espalier.core.tables.relation import Relation
from espalier.core.tables.table import Table
from espalier.pages.parts import doors
from espalier.pages.parts.session.drafts import Drafts, Drawing, Kept
from espalier.pages.parts.session.job import Job

KEY = "espalier"
T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class ReleaseBundle:
    """A release with its files, the private rows it may be judged by (in memory, or where they are), and the project
    that was open when it began."""

    number: int
    planned: Project
    release: Release
    files: dict[str, bytes]
    real: Table | None
    holdout: Table | None
    relation: Relation | None = None
    counted: dict[Clique, NDArray[np.int64]] = field(default_factory=dict)
    """Of a table that is read where it is: what was counted for pictures of single columns and pairs. Confidential."""


@dataclass(frozen=True)
class Spent:
    """What one release of a table cost; ``complete`` False if it was cancelled and ``rho`` is an upper bound."""

    table: int
    rho: float
    delta: float
    neighbors: str
    rows_per_person: int
    person: str | None
    complete: bool = True


@dataclass(frozen=True, repr=False)
class Opened:
    """What opening something else puts aside, to be brought back."""

    project: Project | None
    text: TextTable | None
    relation: Relation | None
    rows: int | None
    sample: str
    tables: int
    paid_from: str | None
    parked: tuple[Dag, Roles]
    drafts: Drafts


@dataclass(repr=False)
class Session:
    """What one person has opened, typed and made."""

    project: Project | None = None
    text: TextTable | None = None
    relation: Relation | None = None
    """A table that is read where it is, in place of ``text``: nothing of it is here but its catalogue."""
    rows: int | None = None
    """n as the person who plans has given it; the Plan page never reads it off the table by itself. It may have become
    private since, with a person column or under add-remove: what leaves this object is :attr:`public_rows`."""
    sample: str = ""
    opened: int = 0
    """Counts opened projects; part of widget keys, so that a newly opened project gets fresh widgets."""
    tables: int = 0
    ledger: tuple[str, Ledger] | None = None
    """Where the ledger is, and the ledger; it holds no connection."""
    paid_from: str | None = None
    """The open table's name in the ledger; empty: not recorded; None: nobody has chosen yet."""
    parked: tuple[Dag, Roles] = (Dag(), Roles())
    """Arrows and roles of columns that are left out at the moment."""
    past: list[Drawing] = field(default_factory=list)
    future: list[Drawing] = field(default_factory=list)
    """Drawings to undo to and to redo."""
    drafts: Drafts = field(default_factory=Drafts)
    before: Opened | None = None
    found: Kept | None = None
    """What the browser's tab had kept from before a reload, until it is restored or forgotten; a whole project also
    until another one is opened."""
    forget: bool = False
    released: ReleaseBundle | None = None
    blurred: Blurred | None = None
    """Rows of a method that is not private; never among the releases."""
    blurred_from: Table | None = None
    """The real rows that they were made from."""
    blurred_figures: dict[str, Any] | None = None
    """What was found when they were compared with the real ones."""
    offered: dict[str, float] = field(default_factory=dict)
    """The option and the value that can be kept, if the last attempt to make such rows missed its own."""
    earlier: list[ReleaseBundle] = field(default_factory=list)
    """Releases before the last one: what was paid for stays to be taken home."""
    studied: tuple[str, Study] | None = None
    """Which release is analysed, and what may be concluded from it, copies made."""
    taken: dict[str, Study] = field(default_factory=dict)
    """Releases of other sessions, opened to be analysed, by their hashes."""
    releases: int = 0
    spent: list[Spent] = field(default_factory=list)
    findings: dict[str, dict[str, Any]] = field(default_factory=dict)
    further: dict[tuple[int, str], Any] = field(default_factory=dict)
    """What the further tests of Diagnostics found, by the release's number and the test."""
    compared: list[Outcome] = field(default_factory=list)
    """What the Compare page found last."""
    job: Job | None = None
    known_elsewhere: tuple[int, str] | None = None
    """The table that is read where it is, and the name it was to be paid under, when the ledger refused it as known."""
    trouble: dict[str, str] = field(default_factory=dict)
    too_late: bool = False
    """Was the last release cancelled when all was drawn and paid for?"""
    _encoded: tuple[tuple[Schema, str | None], TextTable, Table | EspalierError] | None = None
    _previewed: tuple[Project, int | None, Preview] | None = None

    def open(self, project: Project, text: TextTable | None = None, rows: int | None = None, sample: str = "") -> None:
        """Put a project (and its table) in place of what was open, which can be brought back once.

        A whole draft from before a reload is offered no longer: taking it up now would replace what was just opened.
        """
        if self.found is not None and self.found.project is not None:
            self.found = None
        self.drafts.upload = None
        if self.project is not None:
            self.before = self._opened()
        self.project, self.text, self.rows, self.sample = project, text, rows, sample
        self.relation = None
        self.parked, self.drafts, self._encoded = (Dag(), Roles()), Drafts(), None
        self.past, self.future, self.compared = [], [], []
        self.opened += 1
        self.tables, self.paid_from = self.opened, None

    def go_back(self) -> None:
        """Bring back what was open before."""
        if self.before is not None:
            now, then = self._opened(), self.before
            for each in fields(then):
                setattr(self, each.name, getattr(then, each.name))
            self.before, self._encoded = now, None
            self.past, self.future = [], []
            self.opened += 1

    def _opened(self) -> Opened:
        return Opened(**{each.name: getattr(self, each.name) for each in fields(Opened)})

    def take_plan(self, plan: Plan) -> None:
        """Go on with another plan for the open project; the answer about people stays."""
        assert self.project is not None
        own = self.project.plan
        self.project = replace(self.project, plan=plan.changed(person=own.person, rows_per_person=own.rows_per_person))
        self.opened += 1  # fresh widgets, which show the plan that was taken

    def attach(self, text: TextTable) -> None:
        """A table for the project that is open."""
        self._attach(text, None)

    def attach_far(self, relation: Relation) -> None:
        """A table that is read where it is, for the project that is open."""
        self._attach(None, relation)

    def _attach(self, text: TextTable | None, relation: Relation | None) -> None:
        """The rows are no example's, whoever made the project, and what was compared was told of others."""
        self.text, self.relation, self._encoded = text, relation, None
        self.sample, self.compared = "", []
        self.opened += 1
        self.tables, self.paid_from = self.opened, None

    @property
    def has_table(self) -> bool:
        """Is a table open, here or where it is?"""
        return self.text is not None or self.relation is not None

    @property
    def columns(self) -> list[str]:
        """The names that the open table's columns have; none where no table is open."""
        table = self.text or self.relation
        return [] if table is None else [name for name in table.columns if name]

    def table(self) -> Table:
        """The private table as the schema sees it; raises :class:`EspalierError`."""
        assert self.project is not None
        assert self.text is not None
        known = self._encoded
        sees = self.project.schema, self.project.plan.person
        if known is None or known[0] != sees or known[1] is not self.text:
            try:
                table: Table | EspalierError = Table.encode(self.text, *sees)
            except EspalierError as error:
                table = error
            known = self._encoded = (sees, self.text, table)
        if isinstance(known[2], EspalierError):
            raise known[2]
        return known[2]

    @property
    def public_rows(self) -> int | None:
        """How many rows are public under the plan, where the person who plans has said so."""
        assert self.project is not None
        return public_rows(self.project.plan, self.rows)

    def preview(self, rows: int | None, delta: float | None = None) -> Preview:
        """What the plan would do with ``rows`` rows, worked out once; raises :class:`EspalierError`.

        ``delta`` is the ledger's, which a plan without a δ takes.
        """
        assert self.project is not None
        planned = self.project
        if delta is not None and planned.plan.delta is None:
            planned = planned.with_plan(delta=delta)
        known = self._previewed
        if known is None or known[:2] != (planned, rows):
            known = self._previewed = (planned, rows, preview(planned, rows))
        return known[2]

    def answer(self, one_row: bool, person: str | None = None, rows_per_person: int = 1) -> None:
        """Answer whether each person has one row. A person column leaves the schema. Raises :class:`EspalierError`."""
        assert self.project is not None
        if person is not None:
            self._leave_out(person)
        self.project = self.project.answered(one_row, person, rows_per_person)

    def _leave_out(self, person: str) -> None:
        """Take the person column out of the schema; if a guess set it aside, that is confirmed."""
        assert self.project is not None
        schema = self.project.schema
        kept = tuple(c for c in schema.columns if c.name != person)
        if not kept:
            raise EspalierError(f"{person!r} is the only column: there would be nothing left to release")
        left_out = tuple(replace(c, confirmed=c.confirmed or c.name == person) for c in schema.left_out)
        self.change_schema(replace(schema, columns=kept, left_out=left_out))
        if self.drafts.schema is not None:
            self.drafts.schema.confirm_left_out(person)
            if person in schema:
                self.drafts.schema.leave_out(person)

    def change_schema(self, schema: Schema) -> None:
        """A new schema; arrows and roles of columns that are not in it are parked until they are."""
        project = self.project
        assert project is not None
        if schema == project.schema:
            return
        inside, known = set(schema.names), set(schema.names).issuperset
        if schema.names != project.schema.names:
            self.past, self.future = [], []  # they speak of other columns
        edges = tuple(dict.fromkeys((*project.dag.edges, *self.parked[0].edges)))
        hidden = tuple(dict.fromkeys((*project.dag.hidden, *self.parked[0].hidden)))
        together = tuple(dict.fromkeys((*project.dag.interactions, *self.parked[0].interactions)))
        groups = {group: tuple(n for n in names if n in inside) for group, names in project.dag.groups.items()}
        roles = {role: (*cols, *getattr(self.parked[1], role)) for role, cols in project.roles.items()}
        further = (*project.separations, *self.drafts.separations)
        whole = [s for s in further if known((*s.left, *s.right, *s.given))]
        self.drafts.separations = [s for s in further if s not in whole]
        given = project.constraints + self.drafts.constraints
        self.drafts.constraints = given.without([c for c in given if known(c.columns)])
        target = project.plan.target or self.drafts.target
        if target is not None and target not in inside:
            self.drafts.target = target
        self.parked = (
            Dag(
                tuple(e for e in edges if not known(e)),
                hidden=tuple(pair for pair in hidden if not known(pair)),
                interactions=tuple(found for found in together if not known((*found[0], found[1]))),
            ),
            Roles(**{r: tuple(c for c in cols if c not in inside) for r, cols in roles.items()}),
        )
        self.project = replace(
            project,
            schema=schema,
            dag=replace(
                project.dag,
                edges=tuple(e for e in edges if known(e)),
                hidden=tuple(pair for pair in hidden if known(pair)),
                interactions=tuple(found for found in together if known((*found[0], found[1]))),
                groups={group: names for group, names in groups.items() if names},
            ),
            roles=Roles(**{r: tuple(c for c in cols if c in inside) for r, cols in roles.items()}),
            separations=tuple(whole),
            constraints=given.without(self.drafts.constraints),
            question_list=project.question_list.fitting(schema),
            plan=replace(project.plan, target=target if target in inside else None),
        )

    @property
    def drawing(self) -> Drawing:
        """What undo brings back."""
        assert self.project is not None
        return self.project.dag, self.project.roles, self.project.plan.target

    def redraw(self, dag: Dag | None = None, roles: Roles | None = None, **target: str | None) -> None:
        """A changed drawing, which can be undone; raises :class:`EspalierError` and changes nothing."""
        assert self.project is not None
        was = self.drawing
        new = (dag or was[0], roles or was[1], target.get("target", was[2]))
        if new != was:
            self._put(new)
            self.past = [*self.past[-199:], was]
            self.future = []

    def undo(self) -> bool:
        """Back to the drawing before the last change; False if there was none."""
        if not self.past:
            return False
        self.future.append(self.drawing)
        self._put(self.past.pop())
        return True

    def redo(self) -> bool:
        """Forward to the drawing that was undone; False if there is none."""
        if not self.future:
            return False
        self.past.append(self.drawing)
        self._put(self.future.pop())
        return True

    def _put(self, drawing: Drawing) -> None:
        assert self.project is not None
        dag, roles, target = drawing
        self.project = replace(self.project, dag=dag, roles=roles, plan=replace(self.project.plan, target=target))

    def change_causes(self, effect: str, causes: list[str]) -> None:
        """Draw the arrows into ``effect``; raises :class:`GraphError` for a cycle and keeps what was drawn."""
        assert self.project is not None
        dag = self.project.dag.without((c, effect) for c in self.project.dag.parents(effect) if c not in causes)
        for cause in causes:
            dag = dag.drawn(cause, effect)
        self.redraw(dag)

    def change_role(self, role: str, columns: list[str]) -> None:
        """Give ``columns`` the role; they lose the one they had. The target follows a new outcome."""
        assert self.project is not None
        roles, target = self.project.roles, self.project.plan.target
        given = {r: tuple(c for c in cols if c not in columns) for r, cols in roles.items()}
        order = self.project.schema.clique(columns)
        follows = role == "outcome" and len(order) == 1 and (target is None or target in roles.outcome)
        self.redraw(roles=Roles(**{**given, role: order}), target=order[0] if follows else target)

    def give_role(self, column: str, role: str | None) -> None:
        """Give one column a role, or none; there is one outcome, so another one loses that role."""
        assert self.project is not None
        roles = self.project.roles
        if role is None:
            self.redraw(roles=Roles(**{r: tuple(c for c in cols if c != column) for r, cols in roles.items()}))
        else:
            self.change_role(role, [column] if role == "outcome" else [*getattr(roles, role), column])

    def change_separations(self, separations: Sequence[Separation]) -> None:
        """The further separations; raises :class:`GraphError` for one that cannot be."""
        assert self.project is not None
        self.project = replace(self.project, separations=tuple(separations))

    def change_questions(self, questions: QuestionList) -> None:
        """The questions and counts; raises :class:`ProjectError` for one that cannot be asked."""
        assert self.project is not None
        self.project = replace(self.project, question_list=questions)

    def change_plan(self, **changes: Any) -> None:
        """A changed plan; raises :class:`EspalierError` for a value that cannot be."""
        assert self.project is not None
        self.project = self.project.with_plan(**changes)

    def start(
        self, kind: str, work: Callable[[Report], T], done: Callable[[T], None], ended: Callable[[str], None]
    ) -> None:
        """Start a job, for a steward only, unless one is under way, or the queue is full."""
        doors.need_steward()
        if self.job is None:
            self.trouble.pop(kind, None)
            try:
                self.job = Job(kind, work, done, ended, _still_here())
            except EspalierError as error:
                self.trouble[kind] = str(error)

    def collect(self) -> None:
        """Take over what a finished job made."""
        job = self.job
        if job is None or not job.finished:
            return
        self.job, self.too_late = None, job.kind == "release" and job.too_late
        if job.state == "done":
            job.done(job.result)
        else:
            self.trouble[job.kind] = job.reason
            job.ended(job.reason)


def here() -> Session:
    """This session's state."""
    if KEY not in st.session_state:
        st.session_state[KEY] = Session()
    state: Session = st.session_state[KEY]
    return state


def _still_here() -> Callable[[], bool]:
    """A way to ask, from anywhere, whether this session's browser tab is connected (always, where no server runs)."""
    context = get_script_run_ctx()
    if context is None or not runtime.exists():
        return lambda: True
    session_id = context.session_id
    return lambda: runtime.get_instance().is_active_session(session_id)


def blank(name: str, schema: Schema) -> Project:
    """A project for a table that has none yet."""
    return Project(name, schema, Plan(DEFAULT, 1.0), one_row_per_person=None)
