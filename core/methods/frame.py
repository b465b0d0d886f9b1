"""The frame a plan implies: its separations, the features it protects, and the conflicts, before anything is read."""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import ProjectError
from core.graph.separations import Separation
from core.project.file import Plan, Project

LARGEST_BASIC = 4.0
"""The largest ε of PRISM's experiments; the classical calibration is proved up to 1 a measurement."""


@dataclass(frozen=True)
class Task:
    """One target of prism: its weight, S (None where it is chosen privately, from ``candidates``), what was refused."""

    target: str
    weight: float
    features: tuple[str, ...] | None
    candidates: tuple[str, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True)
class Frame:
    """What a plan implies for the model's graph.

    ``features`` is prism's S where the drawing decides it (None where it is chosen privately, empty for other
    methods); ``candidates`` what a private choice may choose from; ``refused`` the columns that S would have held
    but whose pair with the target the fence forbids; ``warnings`` sentences for the person who plans. ``features`` and
    ``candidates`` are those of the first target; ``tasks`` has one for each (prism only).
    """

    separations: tuple[Separation, ...] = ()
    features: tuple[str, ...] | None = ()
    candidates: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()

    def forbids(self, a: str, b: str) -> bool:
        """May the pair (a, b) not be measured together?"""
        return any(s.forbids(a, b) for s in self.separations)


def frame_of(project: Project) -> Frame:
    """The frame of ``project``; raises :class:`ProjectError` where plan, roles and graph conflict."""
    plan = project.plan
    _check_method(plan)
    warnings: list[str] = []
    fence = (*_fence(project, warnings), *_further(project)) if plan.fenced else ()
    if plan.method == "prefair":
        return Frame(separations=(*fence, *_prefair(project)), warnings=tuple(warnings))
    if plan.method != "prism":
        return Frame(separations=fence, warnings=tuple(warnings))
    return _prism(project, fence, warnings)


def unfenced(method: str, drawn: bool) -> str:
    """What a plan without separations says of the associations in its table; ``drawn``: there are arrows."""
    if method == "independent":
        return "Every column is counted by itself: the table shows no association at all."
    if method == "privbayes" and drawn:
        return (
            "No separation is promised. The table shows what the drawn arrows link, as far as the budget reaches; "
            "columns without an arrow between them are related through others only."
        )
    return "No separation: the table may show any association, as far as the budget reaches."


def _check_method(plan: Plan) -> None:
    if plan.method == "mst" and plan.fair:
        raise ProjectError(
            "the method mst knows no fence: set fair to false, or choose privci, which is mst inside the fence",
            key="fair",
        )
    if plan.method == "privbayes" and plan.fair:
        raise ProjectError(
            "the method privbayes knows no fence: set fair to false, or choose privci, whose tree keeps inside one",
            key="fair",
        )
    if plan.method in ("privci", "prefair") and plan.fair is False:
        raise ProjectError(
            f"the method {plan.method} always carries the fence: set fair to true, or choose mst, which has none",
            key="fair",
        )
    if plan.accounting == "basic" and plan.epsilon > LARGEST_BASIC:
        raise ProjectError(
            f"basic accounting calibrates noise for a small ε, at most {LARGEST_BASIC:g} here: "
            "choose the accounting zcdp, or a smaller ε",
            key="accounting",
        )
    if plan.neighbors == "add-remove" and plan.delta is None:
        raise ProjectError(
            "under add-remove the number of rows is private, so delta cannot be 1/n²: "
            "give delta a number, such as 1e-9",
            key="delta",
        )
    if plan.neighbors == "replace-one" and plan.person is not None and plan.rows is None:
        raise ProjectError(
            "how many rows are left when each person keeps only a few is private: declare a total (rows) to which the "
            "table is filled up or cut, or choose add-remove",
            key="person",
            missing="rows",
        )


def _fence(project: Project, warnings: list[str]) -> tuple[Separation, ...]:
    """outcome ⊥ protected | admissible (PrivCI §I), or with inadmissible beside protected under ``strict``."""
    roles, schema = project.roles, project.schema
    if project.separations and not roles.outcome and not roles.protected:
        return ()
    always = project.plan.method in ("privci", "prefair")
    instead = "choose the method mst, which has no fence" if always else "plan without the fence"
    for role, names in (("protected", roles.protected), ("outcome", roles.outcome)):
        if not names:
            raise ProjectError(
                f"a fence needs at least one {role} column: mark one on the Structure page, or {instead}",
                key="roles", role=role,
            )  # fmt: skip
    if not roles.admissible:
        warnings.append(
            "No column is admissible, so nothing may link the protected columns to the outcome: "
            "the model falls into separate parts (a forest)."
        )
    far = (*roles.protected, *roles.inadmissible) if project.plan.strict else roles.protected
    why = "protected and inadmissible" if project.plan.strict and roles.inadmissible else "protected"
    return (
        Separation(
            schema.clique(roles.outcome), schema.clique(far), schema.clique(roles.admissible),
            f"fairness: the outcome may depend on {why} columns only through the admissible ones",
        ),
    )  # fmt: skip


def _further(project: Project) -> tuple[Separation, ...]:
    """The separations that the project lists; several at once, overlapping as they may."""
    clique = project.schema.clique
    return tuple(
        Separation(clique(s.left), clique(s.right), clique(s.given), s.why or "a further separation")
        for s in project.separations
    )


def _prefair(project: Project) -> tuple[Separation, ...]:
    """PreFair: each outcome column attaches to admissible columns only."""
    schema, admissible = project.schema, set(project.roles.admissible)
    return tuple(
        Separation(
            (name,), schema.clique(set(schema.names) - admissible - {name}), schema.clique(admissible),
            f"prefair: {name} attaches to admissible columns only",
        )
        for name in schema.clique(project.roles.outcome)
        if set(schema.names) - admissible - {name}
    )  # fmt: skip


def _prism(project: Project, fence: tuple[Separation, ...], warnings: list[str]) -> Frame:
    plan, schema = project.plan, project.schema
    if plan.target is None:
        raise ProjectError("prism protects what predicts one column: name the target", key="target", missing="target")
    if plan.regime != "predictive" and not project.dag.edges:
        raise ProjectError(
            f"the {plan.regime} regime needs a graph: draw what causes {plan.target!r} on the Structure page, "
            "or choose the predictive regime",
            key="regime",
        )
    linked: list[tuple[str, str]] = []
    tasks = tuple(_task(project, name, weight, fence, linked, warnings) for name, weight in plan.weights.items())
    regime = () if plan.regime == "predictive" else _regime(project, tasks, warnings)
    refused = schema.clique({name for task in tasks for name in task.refused})
    first = tasks[0]
    return Frame((*fence, *regime), first.features, first.candidates, refused, tuple(warnings), tasks)


def _task(
    project: Project,
    target: str,
    weight: float,
    fence: tuple[Separation, ...],
    linked: list[tuple[str, str]],
    warnings: list[str],
) -> Task:
    """What one target's S is, or may be chosen from.

    Where the drawing decides S, its pairs with the target join ``linked``; one that would close a path around a
    separation together with those before it is refused.
    """
    plan, schema = project.plan, project.schema
    if plan.fenced and target not in project.roles.outcome:
        raise ProjectError(
            f"with a fence the target must be an outcome column, and {target!r} is not: "
            "mark it as outcome on the Structure page, or choose another target",
            key="target" if target == plan.target else "targets",
        )
    refused = tuple(n for n in schema.names if n != target and any(s.forbids(n, target) for s in fence))
    if plan.regime == "predictive":
        candidates = tuple(n for n in schema.names if n != target and n not in refused and schema[n].size > 1)
        if plan.features and plan.features > len(candidates):
            warnings.append(f"Only {len(candidates)} columns can be features, so all of them are taken.")
        if not candidates:
            warnings.append(f"No column may be linked to {target}: it is released on its own.")
        return Task(target, weight, None, candidates, refused)
    drawn = project.dag.parents(target) if plan.regime == "causal" else project.dag.blanket(target)
    if not drawn:
        warnings.append(f"The graph draws no {_KIND[plan.regime]} of {target}: it is released on its own.")
    kept = []
    for name in schema.clique(drawn):
        if all(s.holds([*linked, (name, target)]) for s in fence):
            linked.append((name, target))
            kept.append(name)
    features = schema.clique(kept)
    return Task(target, weight, features, (), schema.clique(set(drawn) - set(kept)))


_KIND = {"causal": "direct causes", "graphical": "Markov blanket"}


def _regime(project: Project, tasks: tuple[Task, ...], warnings: list[str]) -> tuple[Separation, ...]:
    """Each target is linked to its S only, and to the targets whose S it is in (all that is measured with it)."""
    schema, regime = project.schema, project.plan.regime
    out = []
    for task in tasks:
        back = {other.target for other in tasks if task.target in (other.features or ())}
        given = schema.clique({*(task.features or ()), *back})
        if surprise := back - set(task.features or ()):
            warnings.append(
                f"{task.target} is itself counted with {', '.join(sorted(surprise))}, another target: a model that "
                f"predicts {task.target} from this table should leave {', '.join(sorted(surprise))} out."
            )
        if rest := schema.clique(set(schema.names) - set(given) - {task.target}):
            why = f"{regime} regime: {task.target} is linked to its {_KIND[regime]} only"
            out.append(Separation((task.target,), rest, given, why))
    return tuple(out)
