"""What a person has typed, chosen or placed on a page and is not part of the project: one record for each page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict

from espalier.core.graph.dag import Dag
from espalier.core.graph.formats.mixed import MixedGraph
from espalier.core.graph.merge import Difference, Side
from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Separation
from espalier.core.project.constraints import Constraints
from espalier.core.project.file import Project
from espalier.core.tables.reading import TextTable
from espalier.pages.board.boxes import Places
from espalier.pages.data.schema_rows import SchemaDraft

Drawing = tuple[Dag, Roles, str | None]
"""Graph, roles and target."""
Arrow = tuple[str, str]


@dataclass
class Field:
    """A widget's key and default; ``shown`` is what it shows now, ``basis`` what it chooses from."""

    key: str
    default: Any
    shown: Any
    basis: Any


class Message(TypedDict):
    """A sentence under the drawing: its number, its text, and whether it refuses something."""

    n: int
    text: str
    bad: bool


@dataclass
class BoardDraft:
    """The drawing board. ``board`` is the browser's board and ``taken`` the last of its actions that was carried out.

    ``view`` (None: whatever suits the number of columns), ``marks`` (None: all) and ``steps`` say what is shown.
    ``places`` are positions of boxes by view, ``wide`` the width in pixels that lines of boxes may have, ``fits``
    counts how often the picture was to be fitted to its frame. ``effect`` is the column chosen last, ``pair`` the two
    columns that are compared, ``refused`` the causes that could not be drawn, by effect, with the reason.
    """

    board: str | None = None
    taken: int = 0
    message: Message | None = None
    view: str | None = None
    marks: list[str] | None = None
    steps: int = 1
    places: dict[str, Places] = field(default_factory=dict)
    wide: int = 1000
    fits: int = 0
    columns: tuple[str, ...] = ()
    arrow: Arrow | None = None
    effect: str | None = None
    pair: list[str | None] = field(default_factory=lambda: [None, None])
    refused: dict[str, tuple[list[str], str]] = field(default_factory=dict)
    without_contested: bool = False


@dataclass
class ArrowTableDraft:
    """The table of arrows: the drawing that it shows, its rows, and those that lack a cause or an effect."""

    revision: int = 0
    dag: Dag | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    half: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class GraphFileDraft:
    """A graph of another tool. ``file`` is the upload that was read last and ``closed`` counts those put away."""

    text: str = ""
    file: str | None = None
    closed: int = 0
    graph: tuple[str, MixedGraph] | None = None
    """Its title, and what was read."""
    answers: dict[str, str] = field(default_factory=dict)
    remarks: tuple[tuple[str, ...], Drawing] | None = None
    """What was done to the graph that was taken over, and the drawing that came of it."""


@dataclass(frozen=True)
class OtherDrawing:
    """Another person's drawing, with the columns that are not known here, and what was done to read it."""

    title: str
    dag: Dag
    unknown: tuple[str, ...]
    remarks: tuple[str, ...]


@dataclass
class MergeDraft:
    """Two drawings side by side: which side each difference was decided for."""

    file: str | None = None
    theirs: OtherDrawing | None = None
    decided: dict[Difference, Side] = field(default_factory=dict)


@dataclass
class PlanDraft:
    """The texts of ε and δ as typed, and the fence's switch for the methods that leave it to the plan."""

    epsilon: str | None = None
    delta: str | None = None
    fair: bool | None = None


@dataclass(repr=False)
class Drafts:
    """The drafts of all pages. ``separations``, ``constraints`` and ``target`` wait for columns that are left out."""

    schema: SchemaDraft | None = None
    schema_errors: int = 0
    answering: bool = False
    """Whether the answer about the rows of one person is being changed."""
    upload: tuple[str, TextTable] | None = None
    """The uploaded file's id, and the table that was read from it."""
    board: BoardDraft = field(default_factory=BoardDraft)
    arrows: ArrowTableDraft = field(default_factory=ArrowTableDraft)
    graph_file: GraphFileDraft = field(default_factory=GraphFileDraft)
    merge: MergeDraft = field(default_factory=MergeDraft)
    plan: PlanDraft = field(default_factory=PlanDraft)
    separations: list[Separation] = field(default_factory=list)
    constraints: Constraints = field(default_factory=Constraints)
    target: str | None = None
    fields: dict[str, Field] = field(default_factory=dict)
    fields_made: int = 0


@dataclass(frozen=True)
class Kept:
    """What the browser's tab had kept: a whole project, or (where it held guesses) its drawing and the ``answer``:
    whether each person has one row, the person column, and the row limit."""

    title: str
    dag: Dag
    roles: Roles
    project: Project | None
    rows: int | None
    sample: str
    answer: tuple[bool, str | None, int] | None = None
