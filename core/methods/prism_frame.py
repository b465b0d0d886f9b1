"""Options of a PRISM plan, and the frame that its regime implies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from espalier.core.errors import GraphError, ProjectError
from espalier.core.graph.adjustment import Effect, checked, choices, refuse_fenced, verdict
from espalier.core.graph.separations import Clique, Separation
from espalier.core.methods.base import PlannedEffect
from espalier.core.methods.frame import Frame, Task
from espalier.core.methods.prism_pools import NAMES, pools_of
from espalier.core.project.file import Project
from espalier.core.project.options import option, read_options
from espalier.core.project.plan import Plan

Regime = Literal["causal", "graphical", "predictive", "effect"]


@dataclass(frozen=True)
class PrismOptions:
    """Plan keys that only PRISM reads."""

    regime: Regime = option(
        "predictive",
        "Regime",
        choices={
            "causal": "Uses only the target's drawn direct causes. Predictions stay valid if other conditions change.",
            "graphical": "Uses the drawn Markov blanket: causes, effects, and other causes of the effects. More "
            "accurate, but only while conditions stay the same.",
            "predictive": "Chooses features privately by association. Does not read the drawing.",
            "effect": "Measures the tables needed to estimate a treatment's effect on the target: treatment, target "
            "and each adjustment column of the drawing.",
        },
    )
    treatment: str | None = option(
        None,
        "Treatment",
        columns="one",
        empty="required: choose a column",
        help="The column whose effect on the target is estimated.",
        only={"regime": "effect"},
    )
    adjust: Sequence[str] | None = option(
        None,
        "Adjust for (blank: the cheapest valid set)",
        columns="several",
        empty="the cheapest valid set of the drawing",
        help="The set must block every path from treatment to target that is not part of the effect; otherwise "
        "the plan is refused.",
        only={"regime": "effect"},
    )
    features: int | None = option(
        None,
        "Features to choose (blank: as many as the budget supports)",
        low=1,
        high=10_000,
        whole=True,
        empty="depends on the budget and the numbers of categories",
        help="Number of columns measured together with the target.",
        only={"regime": "predictive"},
    )
    selector: Literal["exponential", "logistic"] = option(
        "exponential",
        "How features are chosen",
        choices={
            "exponential": "by association, one at a time",
            "logistic": "by a noisy logistic fit",
        },
        help="By association, each round draws a column strongly associated with the target. The logistic fit keeps "
        "the columns with the largest weights in a noisy logistic model. It ranks redundant columns lower but needs "
        "more rows. Neither finds causes.",
        only={"regime": "predictive"},
    )
    three_way: int = option(
        0,
        "Maximum number of tables of two features with the target",
        low=0,
        high=20,
        whole=True,
        help="Three-way tables show how two features act together on the target, but are noisier. A noisy choice "
        "selects the pairs with the strongest dependence given the target.",
    )
    task_weights: Literal["even", "bought"] = option(
        "even",
        "Importance of the pairs with the target",
        choices={"even": "all equal", "bought": "by a noisy association with the target"},
        help="Bought weights cost a twentieth of the budget. Columns that are more informative about the target are "
        "then counted with less noise (PRISM, Appendix C.2).",
        only={"regime": ("causal", "graphical", "predictive")},
    )
    pools: Mapping[str, float] = option(
        {},
        "Pools set by hand (blank: computed from the noise)",
        low=0,
        high=1,
        weights=True,
        example="target: 0.65",
        help="Divides the budget among the pools " + ", ".join(NAMES) + ". An unlisted pool gets nothing.",
        only={"regime": ("causal", "graphical", "predictive")},
    )


def _options(project: Project) -> PrismOptions:
    return read_options(PrismOptions, project.plan.options)


def effect_of(plan: Plan) -> PlannedEffect | None:
    """Return the effect of a plan in the effect regime once treatment and target are given."""
    options = read_options(PrismOptions, plan.options)
    if options.regime != "effect" or options.treatment is None or plan.target is None:
        return None
    return PlannedEffect(options.treatment, plan.target, None if options.adjust is None else tuple(options.adjust))


def causes_only(plan: Plan) -> bool:
    """Return whether the regime is causal."""
    return plan.options.get("regime") == "causal"  # this also works for a plan with options of another method


def largest(project: Project, frame: Frame) -> tuple[Clique, ...]:
    """Return the columns of each constraint that may be chosen, together with the targets, because a star may contain
    all of them.

    If the drawing determines S, nothing is chosen, and the rehearsed fit contains S. A background stays under its own
    cap.
    """
    schema, weights = project.schema, project.plan.weights
    free = {name for task in frame.tasks for name in task.candidates}
    linked = dict.fromkeys(name for c in project.constraints for name in c.columns if name in free - set(weights))
    return tuple(schema.clique((name, *weights)) for name in linked)


def frame_of_prism(project: Project, separations: tuple[Separation, ...], warnings: list[str]) -> Frame:
    """Return the targets, with their S if the drawing determines it, and the separations implied by the regime."""
    plan, schema = project.plan, project.schema
    options = _options(project)
    regime, fence = options.regime, separations
    pools = pools_of(options.pools)
    if pools and regime == "effect":
        raise ProjectError("the effect regime has its own pools: remove pools from the plan", key="pools")
    if options.task_weights == "bought" and regime == "effect":
        raise ProjectError("the effect regime buys no weights: set task_weights to even", key="task_weights")
    others = len(schema.names) - 1
    if pools and regime == "predictive" and not pools.selection and (options.features or 0) < others:
        raise ProjectError(
            "plan: pools must give the pool 'selection' a share above 0, since features are chosen. To avoid "
            f"choosing, set features to {others}",
            key="pools",
        )
    if options.task_weights == "bought" and plan.allocation == "uniform":
        raise ProjectError(
            "a uniform allocation ignores weights, so none are bought: set allocation to auto or optimal, or "
            "task_weights to even",
            key="task_weights",
        )
    if plan.target is None:
        raise ProjectError("PRISM needs a target: name the column to predict", key="target", missing="target")
    if regime != "predictive" and not project.dag.edges:
        raise ProjectError(
            f"the {regime} regime needs a graph: draw the causes of {plan.target!r} on the Structure page, "
            "or choose the predictive regime",
            key="regime",
        )
    if regime == "effect":
        return _frame_of_effect(project, fence, warnings)
    linked: list[tuple[str, str]] = []
    tasks = tuple(_task(project, name, weight, fence, linked, warnings) for name, weight in plan.weights.items())
    apart = () if regime == "predictive" else _regime(project, tasks, warnings)
    refused = schema.clique({name for task in tasks for name in task.refused})
    first = tasks[0]
    return Frame((*fence, *apart), first.features, first.candidates, refused, tuple(warnings), tasks)


def _frame_of_effect(project: Project, fence: tuple[Separation, ...], warnings: list[str]) -> Frame:
    """Return the frame for an effect: S consists of the treatment and the adjustment columns, and the task links no
    other column to the target.
    """
    plan, options = project.plan, _options(project)
    target = plan.target or ""
    if options.treatment is None:
        raise ProjectError("the effect regime needs a treatment: name the column", key="treatment", missing="treatment")
    for name in (options.treatment, *(options.adjust or ())):
        if name not in project.schema:
            raise ProjectError(
                f"plan: {name!r} is not a column", key="treatment" if name == options.treatment else "adjust"
            )
    if plan.targets:
        raise ProjectError("the effect regime supports one outcome: remove the further targets", key="targets")
    try:
        effect = Effect(project.dag, options.treatment, target)
        if options.adjust is not None:
            chosen = checked(effect, options.adjust)
        else:
            found = choices(effect, project.schema.sizes)
            if not found:
                raise GraphError(f"no set of columns blocks every other path. {verdict(effect, ()).sentence}")
            chosen = found[0].columns
        refuse_fenced(effect, chosen, fence)
    except GraphError as error:
        raise ProjectError(str(error), key="adjust") from None
    warnings.append(f"An effect estimated from this table is valid only if the drawing is correct. {effect.caveat}")
    features = project.schema.clique((options.treatment, *chosen))
    task = Task(target, 1.0, features, (), ())
    return Frame(fence, features, (), (), tuple(warnings), (task,))


def _task(
    project: Project,
    target: str,
    weight: float,
    fence: tuple[Separation, ...],
    linked: list[tuple[str, str]],
    warnings: list[str],
) -> Task:
    """Return one target's S, or its candidates.

    If the drawing determines S, its pairs with the target are added to ``linked``. A pair is refused if, together with
    earlier pairs, it would close a path around a separation.
    """
    plan, schema, options = project.plan, project.schema, _options(project)
    if fence and target not in project.roles.outcome:
        raise ProjectError(
            f"with a fence the target must be an outcome column, and {target!r} is not: "
            "mark it as outcome on the Structure page, or choose another target",
            key="target" if target == plan.target else "targets",
        )
    refused = tuple(n for n in schema.names if n != target and any(s.forbids(n, target) for s in fence))
    if options.regime == "predictive":
        candidates = tuple(n for n in schema.names if n != target and n not in refused and schema[n].size > 1)
        if options.features and options.features > len(candidates):
            warnings.append(f"Only {len(candidates)} columns can be features, so all of them are used.")
        if not candidates:
            warnings.append(f"No column may be linked to {target}, so {target} is released by itself.")
        return Task(target, weight, None, candidates, refused)
    drawn = project.dag.parents(target) if options.regime == "causal" else project.dag.blanket(target)
    if not drawn:
        warnings.append(f"The drawing shows no {_KIND[options.regime]} of {target}, so {target} is released by itself.")
    kept = []
    for name in schema.clique(drawn):
        if all(s.holds([*linked, (name, target)]) for s in fence):
            linked.append((name, target))
            kept.append(name)
    features = schema.clique(kept)
    return Task(target, weight, features, (), schema.clique(set(drawn) - set(kept)))


_KIND = {"causal": "direct causes", "graphical": "Markov blanket"}


def _regime(project: Project, tasks: tuple[Task, ...], warnings: list[str]) -> tuple[Separation, ...]:
    """Return a separation for each target. It allows links only to the target's S and to targets with an S that
    contains it (all columns measured with it).
    """
    schema, regime = project.schema, _options(project).regime
    out = []
    for task in tasks:
        back = {other.target for other in tasks if task.target in (other.features or ())}
        given = schema.clique({*(task.features or ()), *back})
        if surprise := back - set(task.features or ()):
            warnings.append(
                f"{task.target} is itself measured with {', '.join(sorted(surprise))}, another target. A model "
                f"that predicts {task.target} from this table should leave {', '.join(sorted(surprise))} out."
            )
        if rest := schema.clique(set(schema.names) - set(given) - {task.target}):
            why = f"{regime} regime: {task.target} is linked to its {_KIND[regime]} only"
            out.append(Separation((task.target,), rest, given, why))
    return tuple(out)


def arrows(project: Project) -> tuple[tuple[str, str], ...]:
    """Return the drawn arrows that the regime uses: arrows into the targets and, for a Markov blanket, into their
    effects.

    An adjustment set depends on the whole drawing, so the effect regime uses all arrows.
    """
    regime, effects = _options(project).regime, set(project.plan.weights)
    if regime == "predictive":
        return ()
    if regime == "effect":
        return project.dag.edges
    if regime == "graphical":
        effects |= {b for a, b in project.dag.edges if a in effects}
    return tuple((a, b) for a, b in project.dag.edges if b in effects)


def advice(project: Project) -> tuple[str, ...]:
    """Return warnings about arrows on which the regime depends and that are contested or may break elsewhere.

    A direct cause is stable in another population if its arrow is (PRISM §3.2). The causal regime depends on the arrows
    into the target, the graphical regime on the arrows of its Markov blanket, and the predictive regime on none.
    """
    regime, dag, target = _options(project).regime, project.dag, project.plan.target
    if target is None or regime == "effect":
        return ()
    blanket = {target, *dag.blanket(target)}
    children = {target, *dag.children(target)}
    leans = {
        "causal": [e for e in dag.edges if e[1] == target],
        "graphical": [e for e in dag.edges if e[1] in children and blanket.issuperset(e)],
        "predictive": [e for e in dag.edges if target in e],
    }[regime]
    out: list[str] = []
    if fragile := [e for e in leans if e in dag.may_break]:
        shown = _arrows(fragile)
        if regime == "causal":
            out.append(
                f"Marked “may break elsewhere”: {shown}. The causal regime still depends on such arrows. Do not "
                "use this table where they do not hold, or remove them from the drawing."
            )
        elif regime == "graphical":
            out.append(
                f"Marked “may break elsewhere”: {shown}. The graphical regime depends on such arrows. For use "
                f"elsewhere, choose the causal regime, which uses only the direct causes of {target}."
            )
        else:
            out.append(
                f"Marked “may break elsewhere”: {shown}. The predictive regime does not read the drawing and may "
                f"choose such a column. For use elsewhere, choose the causal regime."
            )
    if regime != "predictive" and (open_ := [e for e in leans if e in dag.contested]):
        less = dag.without(dag.contested)
        drawn = dag.parents(target) if regime == "causal" else dag.blanket(target)
        left = less.parents(target) if regime == "causal" else less.blanket(target)
        gone = [n for n in drawn if n not in left]
        what = (
            f"without it, {', '.join(gone)} would not be measured with {target}"
            if gone
            else "the measured columns stay the same without it"
        )
        out.append(f"The {regime} regime depends on contested knowledge, {_arrows(open_)}: {what}.")
    return tuple(out)


def counts_with(project: Project, outcome: str, others: Sequence[str], treatment: str | None) -> str:
    """Return the options that make the plan measure each of ``others`` with ``outcome``, regardless of the noise."""
    steps = [] if outcome in project.plan.weights else [f"name {outcome} as the target"]
    if treatment is not None:
        if project.plan.targets:
            steps.append("remove the further targets")
        adjusted = f", adjusted for {', '.join(others)}" if others else ""
        return " and ".join([*steps, f"choose the effect regime with the treatment {treatment}{adjusted}"])
    if _options(project).regime != "predictive":
        steps.append("choose the predictive regime")
    every = sum(1 for column in project.schema.columns if column.size > 1 and column.name != outcome)
    noise = ", with more noise in each pair" if every > len(others) else ""
    return " and ".join([*steps, f"choose {every} features: all columns are then measured with {outcome}{noise}"])


def _arrows(edges: list[tuple[str, str]]) -> str:
    return ", ".join(f"{a} → {b}" for a, b in edges[:6]) + (" …" if len(edges) > 6 else "")
