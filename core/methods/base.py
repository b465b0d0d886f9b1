"""Published methods as objects, and the results of their fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from espalier.core.graph.separations import Clique, Separation
from espalier.core.methods.frame import Frame
from espalier.core.models.base import Model
from espalier.core.models.graphical import Size
from espalier.core.models.tilted import loads
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.draws import Measurement
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project
from espalier.core.project.options import read_options
from espalier.core.project.plan import AccountingRule, Plan

Fence = Literal["always", "never", "optional"]
"""Whether a method keeps the roles' fence: always, never, or if the plan requests it."""


class Fitted(Protocol):
    """Result of a method. It contains all inputs of the model, already paid for. No protective noise is drawn
    afterwards.

    ``cliques`` are the sets of columns that were measured together, ``features`` the columns measured with a target
    (empty for most methods).
    """

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """Sets of columns that were measured together, without repetition."""
        ...

    @property
    def features(self) -> tuple[str, ...]:
        """Columns measured with a target."""
        ...

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of columns that the model will link."""
        ...

    def size(self, max_cells: int, further: tuple[Clique, ...] = ()) -> Size:
        """Return the cost of the model, including ``further`` tables. Raises :class:`SizeError` above ``max_cells``."""
        ...

    def model(self, report: Report = silent) -> Model:
        """Return the model."""
        ...

    def facts(self, project: Project) -> Mapping[str, Any]:
        """Return the entries of release.json in addition to the draws."""
        ...


@runtime_checkable
class DrawnFamilies(Protocol):
    """A fit that measures some columns together with their drawn causes."""

    @property
    def becomes(self) -> tuple[str, ...]:
        """One sentence for each column with drawn causes, describing its model."""
        ...

    @property
    def tables(self) -> tuple[Measurement, ...]:
        """Noisy counts of columns with their causes."""
        ...


@runtime_checkable
class TrainedPairs(Protocol):
    """A fit that learns pairs of columns from noisy gradients."""

    @property
    def trained_pairs(self) -> Mapping[Clique, float]:
        """Weight of a row in the noisy sums for each pair; in counts of the pair, it would be 1."""
        ...


class Fit(Protocol):
    """Algorithm of a method, which queries the curator and returns a `Fitted`."""

    def __call__(self, curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Fitted:
        """Spend the budget of ``curator`` on ``project`` inside ``frame``."""
        ...


@dataclass(frozen=True)
class NoOptions:
    """Options of a method without its own plan keys."""


Separations = tuple[Separation, ...]


def as_given(project: Project, separations: Separations, warnings: list[str]) -> Frame:  # noqa: ARG001
    """Return the frame of a method that adds no separations to those of the plan."""
    return Frame(separations, warnings=tuple(warnings))


def nothing(project: Project, frame: Frame) -> tuple[Clique, ...]:  # noqa: ARG001
    """Return no further tables."""
    return ()


def largest_pair(project: Project, frame: Frame, among: Sequence[str] = ()) -> tuple[Clique, ...]:
    """Return the largest pair of columns in ``among`` that a private choice in this frame may select."""
    schema, sizes = project.schema, project.schema.sizes
    names = sorted(among or schema.names, key=lambda n: -sizes[n])
    pairs = ((a, b) for i, a in enumerate(names) for b in names[i + 1 :] if not frame.forbids(a, b))
    best = max(pairs, key=lambda p: sizes[p[0]] * sizes[p[1]], default=None)
    return () if best is None else (schema.clique(best),)


def any_association(drawn: bool) -> str:  # noqa: ARG001
    """Return the description, used by most methods, of a table without separations."""
    return "No separation: the table may contain any association that the budget can measure."


def no_steps(project: Project, outcome: str, others: Sequence[str], treatment: str | None) -> str:  # noqa: ARG001
    """Return no steps, because no option of the method determines which columns are measured together."""
    return ""


@dataclass(frozen=True)
class Purpose:
    """Recommendation of a method for a purpose: the plan keys to set, and the reason in one sentence."""

    why: str
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PlannedEffect:
    """Effect requested by a plan: of ``treatment`` on ``outcome``, adjusted for ``adjust``.

    ``adjust`` is `None` if the plan leaves the choice to the drawing.
    """

    treatment: str
    outcome: str
    adjust: tuple[str, ...] | None


def no_effect(plan: Plan) -> PlannedEffect | None:  # noqa: ARG001
    """Return `None`: the method estimates no effect."""
    return None


def no_advice(project: Project) -> tuple[str, ...]:  # noqa: ARG001
    """Return an empty result: the method has no advice on the drawing."""
    return ()


def no_arrows(project: Project) -> tuple[tuple[str, str], ...]:  # noqa: ARG001
    """Return an empty result: no drawn arrow shapes the table."""
    return ()


def never(plan: Plan) -> bool:  # noqa: ARG001
    """Return False for every plan."""
    return False


def zero(project: Project) -> int:  # noqa: ARG001
    """Return 0 for every project."""
    return 0


@dataclass(frozen=True)
class Guidance:
    """Description of a method for screens and reports.

    ``when`` is one sentence about when to choose it. ``purposes`` are its recommended purposes (keys of
    :data:`espalier.core.methods.purpose.PURPOSES`). ``unseparated`` describes a table without separations; its argument
    is true if arrows are drawn. ``advice`` explains the drawing's annotations for the method. ``counts_with`` returns
    the steps on the Plan page that make the method measure given columns together with an outcome (and a treatment);
    empty if no option does this. ``pools`` maps the method's own pools to their names on screen.
    """

    when: str
    purposes: Mapping[str, Purpose] = field(default_factory=dict)
    unseparated: Callable[[bool], str] = any_association
    advice: Callable[[Project], tuple[str, ...]] = no_advice
    counts_with: Callable[[Project, str, Sequence[str], str | None], str] = no_steps
    pools: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a method. ``targets``: it spends budget on predicting the plan's target. ``constraints``: its
    model can keep cells at probability 0. ``links``: its model may link columns. ``numbers``: it reads numeric columns
    as numbers, so it refuses tables that contain only codes. ``questions``: its support for questions and counts.
    ``no``: it ignores them. ``beside``: it returns `Marginals`, so a separate share of the budget can measure the
    questions (`espalier.core.methods.question_answers`). ``alone``: it spends its own budget on them. ``embedding``: it
    returns `Marginals`, and a second stage may follow it (`espalier.core.methods.embedding`). ``linked``: it releases
    people with their visits, from two linked tables. ``accounting`` lists the accounting rules that its draws support;
    if ``pure`` is among them, every draw can have a pure guarantee (δ = 0). ``unread`` lists the common plan keys that
    the method does not read. A plan that sets one of them causes a warning or is refused, and the app does not show a
    field for it.
    """

    fence: Fence = "optional"
    targets: bool = False
    constraints: bool = True
    links: bool = True
    numbers: bool = False
    questions: Literal["no", "beside", "alone"] = "no"
    linked: bool = False
    embedding: bool = False
    accounting: tuple[AccountingRule, ...] = ("zcdp", "basic")
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """Bounds on a method's model before anything is read.

    ``largest`` are the largest tables that private choices could select. If one is too large, the plan is refused
    before a release. ``cells`` is the largest size of the whole model, if a cap bounds it. ``fits`` is the number of
    intermediate models to fit. ``width`` is the size of the largest group of columns that a plan allows, minus one.
    """

    largest: Callable[[Project, Frame], tuple[Clique, ...]] = nothing
    cells: Callable[[Project], int] = zero
    fits: Callable[[Project], int] = zero
    width: Callable[[Plan], int] = field(default=lambda plan: 1)  # noqa: ARG005


@dataclass(frozen=True)
class Method:
    """A published method. All other code reads this object, and no other file names the method.

    ``title`` is its name on screen, and ``summary`` is a clause that states what it does. ``fit`` is the algorithm,
    ``load`` reads its model's file, ``options`` is the dataclass of its plan keys.

    ``frame`` builds the plan's frame from the separations required by the fence and the project (none without a fence),
    and appends to a list of warnings. ``without_fence`` are the plan changes that remove the fence and keep the method.
    ``arrows`` returns the drawn arrows that shape the table, and ``effect_of`` the effect requested by a plan.
    ``causes_only`` returns whether the plan links the target only to its drawn direct causes.
    """

    name: str
    title: str
    summary: str
    fit: Fit
    guidance: Guidance
    load: Callable[[bytes], Model] = loads
    options: type[Any] = NoOptions
    capabilities: Capabilities = Capabilities()
    limits: Limits = Limits()
    frame: Callable[[Project, Separations, list[str]], Frame] = as_given
    without_fence: Mapping[str, Any] = field(default_factory=lambda: {"fair": False, "strict": False})
    arrows: Callable[[Project], tuple[tuple[str, str], ...]] = no_arrows
    effect_of: Callable[[Plan], PlannedEffect | None] = no_effect
    causes_only: Callable[[Plan], bool] = never

    def fenced(self, plan: Plan) -> bool:
        """Return whether the plan keeps the roles' separation."""
        return plan.fair if plan.fair is not None else self.capabilities.fence == "always"

    def unread(self, plan: Plan) -> list[str]:
        """Return the common keys that ``plan`` sets and this method does not read."""
        return [key for key in self.capabilities.unread if getattr(plan, key) != getattr(Plan, key)]

    def offers(self, plan: Plan, key: str) -> bool:
        """Return whether the app shows a field for ``key``: the method reads the key, or the plan must be corrected."""
        return key not in self.capabilities.unread or key in self.unread(plan)

    def read(self, plan: Plan) -> Any:
        """Return the plan's options for this method; raises :class:`ProjectError` for an invalid value."""
        return read_options(self.options, plan.options)
