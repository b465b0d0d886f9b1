"""Unfinished input on each page: typed text, choices and positions that are not yet part of the project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from espalier.core.graph.dag import Dag
from espalier.core.graph.formats.mixed import MixedGraph
from espalier.core.graph.merge import Difference, Side
from espalier.core.graph.roles import Roles
from espalier.core.project.declared_by import DeclaredBy
from espalier.core.project.editor import Drawing
from espalier.core.project.file import Project
from espalier.core.tables.text_table import TextTable
from espalier.pages.board.boxes import Bends, Places
from espalier.pages.data.review_draft import ReviewDraft, Settled

Arrow = tuple[str, str]


@dataclass
class Field:
    """A widget: its key, its default, its current value, and the options that it offers (``basis``)."""

    key: str
    default: Any
    shown: Any
    basis: Any


class Message(TypedDict):
    """A sentence under the drawing: its number, its text, and whether it reports a refusal."""

    n: int
    text: str
    bad: bool


@dataclass
class BoardDraft:
    """Drawing board. ``board`` identifies the browser's board; ``taken`` is the last action that was carried out.

    The drawing shows ``view`` (None: chosen by the number of columns), ``marks`` (None: all) and ``steps`` (None:
    chosen once for each column, and kept in ``reach``). ``places`` are positions of boxes by view. ``laid`` is the last
    layout: its positions, the bends of its arrows, and the number of arrows at each box. ``wide`` is the maximum width
    of a line of boxes in pixels, and ``fits`` is the number of requests to fit the picture to its frame. ``effect`` is
    the most recently chosen column, and ``pair`` holds the two columns being compared. ``refused`` holds, for each
    effect, the causes that could not be drawn and the reason. ``brought`` lists the columns that the user added to the
    drawing, ``opened`` lists the groups whose columns are shown, and ``group`` is the selected group. For linked
    tables, ``copies`` are the selected boxes that are not columns of the schema; ``later`` is the most recently chosen
    column of the next visit. ``routes`` contains the most recent paths of lines, with the boxes and lines for which
    they were computed.
    """

    board: str | None = None
    taken: int = 0
    message: Message | None = None
    view: str | None = None
    marks: list[str] | None = None
    steps: int | None = None
    reach: dict[str, int] = field(default_factory=dict)
    places: dict[str, Places] = field(default_factory=dict)
    laid: dict[str, tuple[Places, Bends, Mapping[str, int]]] = field(default_factory=dict)
    wide: int = 1000
    fits: int = 0
    columns: tuple[str, ...] = ()
    arrow: Arrow | None = None
    effect: str | None = None
    pair: list[str | None] = field(default_factory=lambda: [None, None])
    refused: dict[str, tuple[list[str], str]] = field(default_factory=dict)
    without_contested: bool = False
    brought: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    group: str | None = None
    copies: tuple[str, ...] = ()
    later: str | None = None
    routes: dict[str, tuple[Any, Any]] = field(default_factory=dict)


@dataclass
class ArrowTableDraft:
    """Table of arrows: its drawing, its rows, and the rows without a cause or an effect (``half``)."""

    revision: int = 0
    dag: Dag | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    half: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class GraphFileDraft:
    """A graph from another tool. ``file`` is the upload that was read last; ``closed`` counts the files that were
    closed.
    """

    text: str = ""
    file: str | None = None
    closed: int = 0
    graph: tuple[str, MixedGraph] | None = None
    """Title and graph."""
    answers: dict[str, str] = field(default_factory=dict)
    remarks: tuple[tuple[str, ...], Drawing] | None = None
    """Changes made to the imported graph, and the resulting drawing."""


@dataclass(frozen=True)
class OtherDrawing:
    """Another person's drawing, its columns that this table lacks, and the changes that were needed to read it."""

    title: str
    dag: Dag
    unknown: tuple[str, ...]
    remarks: tuple[str, ...]


@dataclass
class MergeDraft:
    """Two drawings side by side, and the side chosen for each difference."""

    file: str | None = None
    theirs: OtherDrawing | None = None
    decided: dict[Difference, Side] = field(default_factory=dict)


@dataclass
class PlanDraft:
    """Chosen purpose, ε and δ as typed, and the fence setting for methods with an optional fence."""

    purpose: str | None = None
    epsilon: str | None = None
    delta: str | None = None
    fair: bool | None = None


@dataclass(repr=False)
class Drafts:
    """Drafts of all pages."""

    review: ReviewDraft = field(default_factory=ReviewDraft)
    answering: bool = False
    """True if the user is changing the answer about rows per person."""
    own_table: bool = False
    """True if the user chose on Home to open their own table, and has opened nothing since."""
    upload: tuple[str, TextTable] | None = None
    """Id of the uploaded file, and the table read from it."""
    linked_uploads: dict[str, TextTable] = field(default_factory=dict)
    """The uploaded tables of people and visits, by the ids of their files."""
    linked_far: tuple[TextTable, ...] = ()
    """The tables of people and visits that were read from a database on the server."""
    board: BoardDraft = field(default_factory=BoardDraft)
    arrows: ArrowTableDraft = field(default_factory=ArrowTableDraft)
    graph_file: GraphFileDraft = field(default_factory=GraphFileDraft)
    merge: MergeDraft = field(default_factory=MergeDraft)
    plan: PlanDraft = field(default_factory=PlanDraft)
    fields: dict[str, Field] = field(default_factory=dict)
    fields_made: int = 0


@dataclass(frozen=True)
class Kept:
    """Draft that the browser tab kept: a whole project. For a project with open guesses, the draft contains only the
    drawing, the ``answer``, and the ``columns`` without an open guess.

    The answer states whether each person has one row, the person column, and the row limit. ``opened`` are the groups
    of the drawing whose columns are shown.
    """

    title: str
    dag: Dag
    roles: Roles
    project: Project | None
    rows: int | None
    sample: str
    answer: tuple[bool, str | None, int] | None = None
    columns: Settled = field(default_factory=Settled)
    dictionaries: tuple[DeclaredBy, ...] = ()
    opened: tuple[str, ...] = ()
