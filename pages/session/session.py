"""State of one browser session: the open project, the private table, releases and results.

The state has one plain key in ``st.session_state``, so it survives a change of page and ends with the session. No cache
shared between sessions contains private rows. Changes to the project are in `espalier.core.project.editor`.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, TypeVar

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from espalier.core.analysis.loading import Files
from espalier.core.analysis.study import Study
from espalier.core.compare.plans import Outcome
from espalier.core.errors import EspalierError
from espalier.core.ledger.ledger import Ledger
from espalier.core.methods.registry import DEFAULT
from espalier.core.planning.preview import Preview, preview
from espalier.core.privacy.contribution import public_rows
from espalier.core.progress import Report
from espalier.core.project.asked import AskedQuestion
from espalier.core.project.editor import ProjectEditor
from espalier.core.project.file import Project
from espalier.core.project.linked import Linked
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.server import events
from espalier.core.server.queue import Job
from espalier.core.tables.catalogue import TRUSTED
from espalier.core.tables.frames import encoded
from espalier.core.tables.relation import Relation
from espalier.core.tables.table import Table
from espalier.core.tables.text_table import TextTable
from espalier.pages.common import sign_in
from espalier.pages.session import kept_work
from espalier.pages.session.bundles import BlurredBundle, Opened, ReleaseBundle, Results, RowsAtWork, Spent
from espalier.pages.session.drafts import Drafts, Kept

KEY = "espalier"
T = TypeVar("T")
TableSource = Literal["upload", "server"]
"""Origin of an opened table's rows, as named in the audit log."""


@dataclass(repr=False)
class Session:
    """Everything that one user has opened, typed and made."""

    # Open project and table
    open_project: ProjectEditor | None = None
    text: TextTable | None = None
    relation: Relation | None = None
    """A table that is read where it is stored; replaces ``text``. Only its catalogue is in memory."""
    far: tuple[str, str | None] | None = None
    """Place and name of ``relation``, as the steward typed them: a worker opens it again."""
    rows: int | None = None
    """n as entered on the Plan page, which never reads it from the table. A person column or add-remove may since have
    made n private, so other code reads :attr:`public_rows` only.
    """
    sample: str = ""
    opened: int = 0
    """Number of projects opened; part of widget keys, so that a newly opened project has new widgets."""
    tables: int = 0
    drafts: Drafts = field(default_factory=Drafts)
    before: Opened | None = None

    # The draft from before a reload
    found: Kept | None = None
    """The draft that the browser tab kept, until it is restored or discarded. A whole project is also dropped when
    another project is opened.
    """
    forget: bool = False

    # Ledger and releases
    ledger: tuple[str, Ledger] | None = None
    """Address of the ledger, and the ledger, which holds no connection."""
    paid_from: str | None = None
    """The open table's name in the ledger; empty: not recorded; None: not chosen yet."""
    known_elsewhere: tuple[int, str] | None = None
    """The table and the name of its budget, if the ledger refused the table because it is known under another name."""
    released: ReleaseBundle | None = None
    earlier: list[ReleaseBundle] = field(default_factory=list)
    """Releases before the last one; their files can still be downloaded."""
    releases: int = 0
    spent: list[Spent] = field(default_factory=list)
    too_late: bool = False
    """True if the last release was cancelled after everything was drawn and paid for."""
    blurred: BlurredBundle | None = None
    """Rows of a method that is not private; never among the releases."""
    offered: dict[str, float] = field(default_factory=dict)
    """The option and a value that can be reached, if the last attempt to blur rows missed the requested value."""

    # Results
    studied: tuple[str, Study] | None = None
    """The release being analysed, and the figures that it supports."""
    answered: dict[tuple[str, AskedQuestion], Any] = field(default_factory=dict)
    """Answers by release and question, with the copies that they came from."""
    joint: tuple[Any, Any] | None = None
    """The figures that were last given joint intervals, and the result."""
    asked_alone: tuple[AskedQuestion, ...] = ()
    """Kept questions while no project is open."""
    taken: dict[str, Study | Files] = field(default_factory=dict)
    """Releases of other sessions, opened to be analysed, by their hashes."""
    checked: dict[str, tuple[bool, str]] = field(default_factory=dict)
    """Results of the independent checker, keyed by release as on the Analyse page."""
    findings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Figures of the comparison with real rows, keyed by the rows used for testing. Confidential."""
    further: dict[tuple[int, str], Any] = field(default_factory=dict)
    """Results of the further tests of Diagnostics, by the release's number and the test."""
    compared: list[Outcome] = field(default_factory=list)
    """The latest results of the Compare page."""

    touring: bool = False
    """True if the bar of the guided tour is shown."""

    # Running work
    job: Job | None = None
    rows_at_work: RowsAtWork = field(default_factory=RowsAtWork)
    token: str | None = None
    """Token under which the job and the results are kept for a reload; None before the first job."""
    gone: bool = False
    """True if the tab presented a token whose results are no longer kept."""
    known: tuple[str, int] | None = None
    """Name and number of the table that was open before a reload; it gets the same number when it is reopened."""
    trouble: dict[str, str] = field(default_factory=dict)
    """Reasons for failures, by the action that failed."""
    _encoded: tuple[tuple[Schema, str | None, Linked | None], TextTable, Table | EspalierError] | None = None
    _previewed: tuple[Project, int | None, Preview] | None = None

    def open(
        self,
        project: Project,
        text: TextTable | None = None,
        rows: int | None = None,
        sample: str = "",
        source: TableSource = "upload",
    ) -> None:
        """Open a project, with its table, if there is one, from ``source``. `go_back` restores the previous project.

        A whole draft from before a reload is no longer offered: it would replace the project that was just opened.
        """
        if self.found is not None and self.found.project is not None:
            self.found = None
        self.drafts.upload, self.drafts.own_table = None, False
        if self.has_project:
            self.before = self._opened()
        self.open_project = ProjectEditor(project)
        self.text, self.rows, self.sample = text, rows, sample
        self.relation = self.far = None
        self.drafts, self._encoded, self.compared = Drafts(), None, []
        self.opened += 1
        self.tables, self.paid_from = self._number_of_table(), None
        self._record_opening("sample" if sample else source if text is not None else "project")

    @property
    def source(self) -> str:
        """Name of the open table; empty if no table is open."""
        return self.relation.shown if self.relation is not None else self.text.source if self.text else ""

    def _number_of_table(self) -> int:
        """Return the number under which spending on the open table is summed."""
        return self.known[1] if self.known is not None and self.known[0] == self.source else self.opened

    def _record_opening(self, source: str) -> None:
        named = {"project": self.project.name if self.has_project else "", "table": self.source}
        events.emit("open", sign_in.who(), named, source=source)

    def go_back(self) -> None:
        """Reopen the project that was open before, with its drafts and its undo steps."""
        if self.before is not None:
            now, then = self._opened(), self.before
            for each in fields(then):
                setattr(self, each.name, getattr(then, each.name))
            self.before, self._encoded = now, None
            self.opened += 1

    def _opened(self) -> Opened:
        return Opened(**{each.name: getattr(self, each.name) for each in fields(Opened)})

    @property
    def has_project(self) -> bool:
        """True if a project is open."""
        return self.open_project is not None

    @property
    def editor(self) -> ProjectEditor:
        """The open project with its edits. Raises :class:`LookupError` if none is open; pages call `need_project`."""
        if self.open_project is None:
            raise LookupError("no project is open")
        return self.open_project

    @property
    def project(self) -> Project:
        """The open project. Raises :class:`LookupError` if none is open; pages call `need_project`."""
        return self.editor.project

    def take_plan(self, plan: Plan) -> None:
        """Replace the open project's plan; keep the answer about people."""
        self.editor.take_plan(plan)
        self.opened += 1  # new widgets, which show the new plan

    def attach(self, text: TextTable, source: TableSource = "upload") -> None:
        """Open a table for the open project."""
        self._attach(text, None, None, source)

    def attach_far(self, relation: Relation, where: tuple[str, str | None]) -> None:
        """Open a table for the open project. The table is read in place; ``where`` is its place as the steward typed
        it.
        """
        self._attach(None, relation, where, "server")

    def _attach(
        self,
        text: TextTable | None,
        relation: Relation | None,
        far: tuple[str, str | None] | None,
        source: TableSource,
    ) -> None:
        """Replace the table. The new rows are not a sample's, and earlier comparisons used other rows."""
        self.text, self.relation, self.far, self._encoded = text, relation, far, None
        self.sample, self.compared = "", []
        self.drafts.own_table = False
        self.opened += 1
        self.tables, self.paid_from = self._number_of_table(), None
        self._record_opening(source)

    @property
    def has_table(self) -> bool:
        """True if a table is open, in memory or in place."""
        return self.text is not None or self.relation is not None

    @property
    def columns(self) -> list[str]:
        """Column names of the open table; none if no table is open."""
        table = self.text or self.relation
        return [] if table is None else [name for name in table.columns if name]

    @property
    def notice(self) -> str:
        """Notice about the open relation: what a release stores, and who is trusted. Empty for files in memory."""
        if self.relation is not None:
            return self.relation.notice
        return TRUSTED.get(self.text.origin or "", "") if self.text is not None else ""

    def table(self) -> Table:
        """Return the private table encoded by the schema. Raises :class:`EspalierError` if they do not fit."""
        if self.text is None:
            raise LookupError("no table is open in memory")
        known = self._encoded
        project = self.project
        sees = project.schema, project.plan.person, project.linked
        if known is None or known[0] != sees or known[1] is not self.text:
            try:
                table: Table | EspalierError = encoded(project, self.text)
            except EspalierError as error:
                table = error
            known = self._encoded = (sees, self.text, table)
        if isinstance(known[2], EspalierError):
            raise known[2]
        return known[2]

    @property
    def public_rows(self) -> int | None:
        """Number of rows as given on the Plan page, if the plan makes it public."""
        return public_rows(self.project.plan, self.rows)

    def preview(self, rows: int | None, delta: float | None = None) -> Preview:
        """Return the preview of the plan for ``rows`` rows, from memory if nothing changed.

        A plan without a δ uses ``delta``, the ledger's δ. Raises :class:`EspalierError`.
        """
        planned = self.project
        if delta is not None and planned.plan.delta is None:
            planned = planned.with_plan(delta=delta)
        known = self._previewed
        if known is None or known[:2] != (planned, rows):
            known = self._previewed = (planned, rows, preview(planned, rows))
            plan = planned.plan
            events.emit("plan", sign_in.who(), method=plan.method, epsilon=plan.epsilon, delta=plan.delta)
        return known[2]

    def choose_epsilon(self, epsilon: float) -> None:
        """Set ε with one click; any text typed in its field is dropped. Raises :class:`EspalierError`."""
        self.editor.change_plan(epsilon=epsilon)
        self.drafts.plan.epsilon = None
        self.trouble.pop("epsilon", None)

    def leave_out(self, column: str) -> None:
        """Take a column out of the schema, on the Data page too. Raises :class:`EspalierError`."""
        self.drafts.review.leave_out(self.editor, column)

    def describe(self, column: Column) -> None:
        """Replace the description of one column, on the Data page too. Raises :class:`EspalierError`."""
        schema = self.project.schema
        columns = tuple(column if c.name == column.name else c for c in schema.columns)
        self.editor.change_schema(replace(schema, columns=columns))

    @property
    def asked(self) -> tuple[AskedQuestion, ...]:
        """Kept questions of the open project or, if no project is open, of the session."""
        return self.project.asked if self.has_project else self.asked_alone

    def keep_asked(self, asked: tuple[AskedQuestion, ...]) -> None:
        """Replace the kept questions."""
        if self.has_project:
            self.editor.ask(asked)
        else:
            self.asked_alone = asked

    def answer(self, one_row: bool, person: str | None = None, rows_per_person: int = 1) -> None:
        """Store the answer to whether each person has one row. A person column leaves the schema. Raises
        :class:`EspalierError`.
        """
        self.drafts.review.answer(self.editor, one_row, person, rows_per_person)

    def start(
        self,
        kind: str,
        work: Callable[[Report], T],
        done: Callable[[Session, T], None],
        ended: Callable[[Session, str], None] = lambda *_: None,
        *,
        outlives: bool = True,
    ) -> None:
        """Start a job for a steward, unless one is running or the queue is full. If ``outlives`` is true, a reload of
        the tab returns to the job; it must be False for a result that holds rows.
        """
        sign_in.need_steward()
        if self.job is not None:
            return
        self.trouble.pop(kind, None)
        self.gone = False
        still_here, token = _still_here(), self.token or kept_work.new_token()
        wanted = partial(kept_work.KEPT.watched, token) if outlives else still_here
        try:
            if outlives:
                kept_work.KEPT.watch(token, sign_in.identity(), still_here)
            self.job = Job(kind, work, done, ended, wanted)
        except EspalierError as error:
            events.emit("refuse", sign_in.who(), what="queue")
            self.trouble[kind] = str(error)
            return
        if outlives:
            self.token = token
            self.store()

    def store(self) -> None:
        """Keep the job and the results for a reload of the tab. Called at the end of each page."""
        if self.token is not None:
            made = {each.name: getattr(self, each.name) for each in fields(Results)}
            made["released"] = self.released.without_rows() if self.released is not None else None
            made["earlier"] = [one.without_rows() for one in self.earlier]
            made["known"] = (self.source, self.tables) if self.has_table else self.known
            kept_work.KEPT.store(self.token, self.job, Results(**made))

    def take_back(self, token: str) -> None:
        """Continue with the work kept under the token of the tab, unless this session has made results of its own."""
        if self.token is not None or self.job is not None:
            return
        found = kept_work.KEPT.take(token, sign_in.identity(), _still_here())
        if found is None:
            self.gone = True
            return
        self.token, self.job = token, found.job
        for each in fields(Results):
            setattr(self, each.name, copy(getattr(found.results, each.name)))
        self.opened = self.tables = max([self.opened, *(s.table for s in self.spent)])

    def give_rows_back(self) -> None:
        """Make the last release comparable again once its table is reopened after a reload. Nothing is restored if rows
        were held out for testing, because the list of held-out rows is lost.
        """
        made = self.released
        if made is None or made.has_rows or not self.has_table or not self.project.says_the_same(made.planned):
            return
        if made.far is not None and made.far == self.far:
            self.released = replace(made, relation=self.relation)
        elif self.text is not None and made.mark is not None and made.mark == mark_of(self.text):
            real, schema = self.table(), made.release.project.schema
            self.released = replace(made, real=real.recoded(schema) if made.planned.schema.undeclared else real)

    def collect(self) -> None:
        """Take over the result of a finished job."""
        job = self.job
        if job is None or not job.finished:
            return
        self.job, self.too_late = None, job.kind == "release" and job.too_late
        if job.state == "done":
            job.done(self, job.result)
        else:
            self.trouble[job.kind] = job.reason
            job.ended(self, job.reason)
        self.rows_at_work = RowsAtWork()
        self.store()


_KEY = secrets.token_bytes(32)
"""Key of this server's process. The key is never stored."""


def mark_of(table: TextTable) -> bytes:
    """Return a keyed digest of the rows, by which only this process can recognise a table with the same rows."""
    return hmac.digest(_KEY, table.digest, "sha256")


def here() -> Session:
    """Return this session's state."""
    if KEY not in st.session_state:
        st.session_state[KEY] = Session()
    state: Session = st.session_state[KEY]
    return state


def _still_here() -> Callable[[], bool]:
    """Return a function that reports whether this session's browser tab is connected; True if no server runs."""
    context = get_script_run_ctx()
    if context is None or not runtime.exists():
        return lambda: True
    session_id = context.session_id
    return lambda: runtime.exists() and runtime.get_instance().is_active_session(session_id)


def blank(name: str, schema: Schema) -> Project:
    """Return a project with the default plan, for a table without one."""
    return Project(name, schema, Plan(DEFAULT, 1.0), one_row_per_person=None)
