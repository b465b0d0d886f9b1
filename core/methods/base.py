"""A published method as one object, and what its fit ends with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.separations import Clique, Separation
from espalier.core.methods.frame import Frame
from espalier.core.models.base import Model
from espalier.core.models.graphical import Size
from espalier.core.models.questions.model import loads
from espalier.core.privacy.curator import Curator
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project
from espalier.core.project.options import read_options
from espalier.core.project.plan import Plan

Fence = Literal["always", "never", "optional"]
"""Whether a method keeps the roles' fence: whatever the plan says, in no case, or where the plan asks for it."""


class Fitted(Protocol):
    """What a method ends with: all that its model may use, all of it paid for. Nothing after it draws protective noise.

    ``cliques`` are the sets of columns that were counted together, ``features`` those that were measured with a target
    (empty for most methods).
    """

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The sets of columns that were counted together, each once."""
        ...

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that were measured with a target."""
        ...

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The pairs of columns that the model will link."""
        ...

    def size(self, max_cells: int, further: tuple[Clique, ...] = ()) -> Size:
        """Return the cost of the model, with ``further`` tables in it; raise :class:`SizeError` above ``max_cells``."""
        ...

    def model(self, report: Report = silent) -> Model:
        """The model itself."""
        ...

    def facts(self, project: Project) -> Mapping[str, Any]:
        """Entries of release.json in addition to the draws."""
        ...


class Fit(Protocol):
    """A method's algorithm: it asks the curator, and ends with what it fits."""

    def __call__(self, curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Fitted:
        """Spend the budget of ``curator`` on ``project`` inside ``frame``."""
        ...


@dataclass(frozen=True)
class Rows:
    """Rows as ``codes``, with the ``numbers`` of numeric columns."""

    codes: Mapping[str, NDArray[Any]]
    numbers: Mapping[str, NDArray[np.float64]]


class Blur(Protocol):
    """The algorithm of a method that is not private: it reads the real rows and gives other ones for them.

    In addition to the rows it reports what they disclose, for release.json: shares of people, and a description.
    """

    def __call__(self, project: Project, real: Rows, report: Report = silent) -> tuple[Rows, Mapping[str, Any]]:
        """Return rows that replace ``real``, in another order, and what they disclose."""
        ...


@dataclass(frozen=True)
class NoOptions:
    """The options of a method that has none of its own."""


Separations = tuple[Separation, ...]


def as_given(project: Project, separations: Separations, warnings: list[str]) -> Frame:  # noqa: ARG001
    """The frame of a method that adds no separation to those that the plan asks for."""
    return Frame(separations, warnings=tuple(warnings))


def nothing(project: Project, frame: Frame) -> tuple[Clique, ...]:  # noqa: ARG001
    """No table beyond those that the method counts."""
    return ()


def largest_pair(project: Project, frame: Frame, among: Sequence[str] = ()) -> tuple[Clique, ...]:
    """The largest pair of columns (``among`` some) that the frame lets a private choice count together."""
    schema, sizes = project.schema, project.schema.sizes
    names = sorted(among or schema.names, key=lambda n: -sizes[n])
    pairs = ((a, b) for i, a in enumerate(names) for b in names[i + 1 :] if not frame.forbids(a, b))
    best = max(pairs, key=lambda p: sizes[p[0]] * sizes[p[1]], default=None)
    return () if best is None else (schema.clique(best),)


def any_association(drawn: bool) -> str:  # noqa: ARG001
    """Return the description of most methods' tables under a plan without separations."""
    return "No separation: the table may show any association that the budget can measure."


def no_steps(project: Project, outcome: str, others: Sequence[str], treatment: str | None) -> str:  # noqa: ARG001
    """Return no steps: no option of the method sets which columns are counted together."""
    return ""


@dataclass(frozen=True)
class Purpose:
    """How a method serves a purpose: the plan keys that it then needs, and why, in a sentence."""

    why: str
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """One published method. Pages, plan, release, report and command line render what it says; no other file names it.

    ``title`` is its name on screen, ``summary`` half a sentence on what it does, ``when`` one sentence on when to
    choose it. ``fit`` is the algorithm; a method that is not ``private`` refuses a curator there, and makes its rows
    by ``blur``. ``options`` is the dataclass of its own plan keys. ``frame`` makes the plan's frame, from the
    separations that the fence and the project ask for (none where the plan has no fence) and a list for warnings.
    ``largest`` are the largest tables that its private choices could lead to, refused when planned or never; ``cells``
    the most that they could bring the whole model to, where a cap bounds it; ``fits`` how many models on the
    way choose what to count next. ``targets``: it spends on predicting the plan's target. ``holds_constraints``:
    its model can keep cells without probability. ``links``: its
    model may link columns with one another. ``without_fence`` are the changes of the plan that make it the same method
    without its fence. ``numbers``: it reads numeric columns as numbers, so tables of codes alone are refused.
    ``unseparated`` describes the table where the plan has no separation (given whether
    arrows are drawn), ``purposes`` what it is recommended for (the keys of
    :data:`espalier.core.methods.purpose.PURPOSES`), ``arrows`` which of the drawn arrows shape the table, ``advice``
    the meaning of the drawing's annotations for it. ``counts_with`` gives the step on the Plan page so that each of the
    columns is counted with an outcome (and with a treatment), to follow "On the Plan page"; empty where no option
    makes sure of it. ``load`` reads its model's file.
    ``questions`` defines its use of the project's questions and counts: none; it ends with `Marginals`, so that
    a share of the budget can measure them as well (``beside``, `espalier.core.methods.questions`); or it spends on them
    ``alone``.
    """

    name: str
    title: str
    summary: str
    when: str
    fit: Fit
    options: type[Any] = NoOptions
    private: bool = True
    fence: Fence = "optional"
    frame: Callable[[Project, Separations, list[str]], Frame] = as_given
    largest: Callable[[Project, Frame], tuple[Clique, ...]] = nothing
    cells: Callable[[Project], int] = field(default=lambda project: 0)  # noqa: ARG005
    fits: Callable[[Project], int] = field(default=lambda project: 0)  # noqa: ARG005
    targets: bool = False
    holds_constraints: bool = True
    links: bool = True
    without_fence: Mapping[str, Any] = field(default_factory=lambda: {"fair": False, "strict": False})
    unseparated: Callable[[bool], str] = any_association
    purposes: Mapping[str, Purpose] = field(default_factory=dict)
    arrows: Callable[[Project], tuple[tuple[str, str], ...]] = field(default=lambda project: ())  # noqa: ARG005
    advice: Callable[[Project], tuple[str, ...]] = field(default=lambda project: ())  # noqa: ARG005
    counts_with: Callable[[Project, str, Sequence[str], str | None], str] = no_steps
    load: Callable[[bytes], Model] = loads
    questions: Literal["no", "beside", "alone"] = "no"
    numbers: bool = False
    blur: Blur | None = None

    def fenced(self, plan: Plan) -> bool:
        """Return whether the plan holds the roles' separation."""
        return plan.fair if plan.fair is not None else self.fence == "always"

    def read(self, plan: Plan) -> Any:
        """The plan's options for this method; raises :class:`ProjectError` for a value that cannot be."""
        return read_options(self.options, plan.options)
