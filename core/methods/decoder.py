"""Causal decoder, in which every column is a softmax of its drawn causes, trained with noisy gradients (causal VAE,
paper 003). If ``latent`` is 0, there is no shared z, so the model factors along the drawing, and a separation that the
drawing implies holds exactly. If ``groups`` is joint, each group of columns is one node of the drawing. If ``latent``
is above 0, the model is the paper's, with an encoder and a z that every column reads.
"""

from __future__ import annotations

import graphlib
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from espalier.core.errors import ProjectError
from espalier.core.graph.dag import find_cycle
from espalier.core.graph.separations import Clique, Separation
from espalier.core.methods.base import Capabilities, Guidance, Method
from espalier.core.methods.decoder_families import Family, Noise, conditional, families_of, gradient_norm
from espalier.core.methods.frame import Frame
from espalier.core.methods.marginals import Marginals, one_ways
from espalier.core.methods.select.expected import noisy_total
from espalier.core.models.decoder import Decoder, separated
from espalier.core.models.decoder_steps import LARGEST_BLOCK
from espalier.core.models.decoder_training import (
    COUNTS_SHARE,
    Training,
    distributions,
    rake,
    train,
    without_effect,
)
from espalier.core.models.fit_chance import seeded_by
from espalier.core.models.graphical import Size
from espalier.core.privacy.clipped import ClippedGradient
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.draws import Measurement, SumMeasurement
from espalier.core.privacy.softmax_heads import FloatArray, Heads
from espalier.core.progress import Report, part, silent
from espalier.core.project.file import Project
from espalier.core.project.options import option, read_options

LARGEST_IMPORTANCE = 6.0
EASY_COLUMNS = 8
COLUMNS_PER_IMPORTANCE = 4.0
"""Weight of a target's residual: one for every four columns beyond the first eight, at least 1 and at most 6. With many
columns, the target's gradient would otherwise be lost in the clipped sum. With few columns, a higher weight would only
reduce the budget of the other columns. The weight depends only on the number of columns.
"""

SECONDS_PER_PARAMETER, SECONDS_PER_COLUMN, SECONDS_PER_ENTRY, SECONDS_PER_COUNT = 22e-6, 560e-6, 40e-9, 0.014
"""CPU seconds of a training step for each parameter (its noise), for each column (its solver), and for each category
and row. The last value is the CPU seconds for shrinking and fitting each noisy table. These values were chosen on the
fifteen tables with a drawing in ``TUNED`` (benchmarks/verdict.py), when the times of the eight other tables were
already known.
"""

USUAL_ROWS = 50_000
"""Number of rows assumed for the planned time if n is private."""


@dataclass(frozen=True)
class DecoderOptions:
    """Plan keys of the decoder."""

    regime: Literal["predictive", "graphical", "causal"] = option(
        "predictive",
        "Regime",
        choices={
            "predictive": "All drawn arrows shape the table.",
            "graphical": "All drawn arrows shape the table, as in the predictive regime.",
            "causal": "Arrows out of the target are removed. The target depends only on its drawn causes, and its "
            "model stays valid if other conditions change.",
        },
    )
    latent: int = option(
        0,
        "Latent dimensions",
        low=0,
        high=8,
        whole=True,
        help="At 0, each column depends only on its drawn causes, and separations hold exactly. Above 0, as in "
        "the paper, a hidden variable connects all columns, so no separation can be promised.",
    )
    arrows: Literal["drawn", "none"] = option(
        "drawn",
        "Arrows",
        choices={
            "drawn": "Each column depends on its drawn causes.",
            "none": "No arrows are used. The model is then a plain VAE under differential privacy, for "
            "comparison, and needs latent dimensions.",
        },
    )
    groups: Literal["columns", "joint"] = option(
        "columns",
        "Groups of the drawing",
        choices={
            "columns": "Each column has its own arrows.",
            "joint": "A group is one node. An arrow from or to one of its columns applies to all of them, and its "
            "columns depend on each other.",
        },
    )
    families: Literal["auto", "tables", "additive"] = option(
        "auto",
        "Causes of a column",
        choices={
            "auto": "Causes may interact if the budget allows it: a column is then counted in one table with all "
            "its causes, or with two causes at a time. Otherwise, the effects of causes add up, except "
            "for drawn interactions.",
            "tables": "Causes may interact if the budget allows one table of a column with all its causes. "
            "Otherwise, the effects of causes add up, except for drawn interactions.",
            "additive": "Causes act separately, so their effects add up.",
        },
    )
    steps: int = option(
        Training.steps,
        "Training steps",
        low=1,
        high=1000,
        whole=True,
        help="Each step reads all rows and spends an equal share of the budget.",
    )
    clip: float = option(
        Training.clip,
        "Clipping norm",
        low=0.01,
        high=64.0,
        help="The largest influence of one row on a step. A smaller bound adds less noise but distorts the gradient.",
    )


@dataclass(frozen=True)
class Trained:
    """Result of training: a decoder, and the noisy one-way counts to which its intercepts are raked.

    ``rows`` is the number of rows if it is public.
    """

    decoder: Decoder
    ones: tuple[Measurement, ...]
    rows: int | None
    tables: tuple[Measurement, ...] = ()
    families: tuple[Family, ...] = ()
    features: tuple[str, ...] = ()
    clip: float = Training.clip

    @property
    def counts(self) -> dict[str, FloatArray]:
        """Noisy counts of each column."""
        return {m.clique[0]: m.values for m in self.ones}

    @property
    def told(self) -> Marginals:
        """The counts alone, without the associations learned by the training steps."""
        sizes = self.decoder.heads.sizes
        return Marginals(sizes, sizes, self.rows, (*self.ones, *self.tables))

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """Single columns, and families that were measured as tables."""
        return (*((name,) for name in self.counts), *(m.clique for m in self.tables))

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Drawn arrows or, if there is a latent z, all pairs of columns."""
        heads = self.decoder.heads
        return tuple(itertools.combinations(heads.sizes, 2)) if heads.latent else self.decoder.edges

    def size(self, max_cells: int, further: tuple[Clique, ...] = ()) -> Size:  # noqa: ARG002
        """Return the number of parameters instead of cells. There is no junction tree, so the width has no limit."""
        count, steps = self.decoder.heads.parameters, self.decoder.steps
        cells = sum(m.values.size for m in self.tables)
        heads, rows = self.decoder.heads, self.decoder.total if self.decoder.total > 1 else USUAL_ROWS
        a_step = count * SECONDS_PER_PARAMETER + len(heads.sizes) * SECONDS_PER_COLUMN
        seconds = steps * (a_step + rows * heads.width * SECONDS_PER_ENTRY)
        seconds += SECONDS_PER_COUNT * (len(self.ones) + len(self.tables))
        bytes_needed = (64 + 8 * LARGEST_BLOCK) * count + 32 * cells
        return Size(count + cells, count * steps + cells, bytes_needed, seconds, (), count, ())

    def model(self, report: Report = silent) -> Decoder:
        """Return the decoder with its tables; its intercepts and interactions are raked to the counts
        (post-processing).
        """
        report(0.0, "Raking the intercepts to the one-way counts")
        together = {f.column: f.counts(self.tables) for f in self.families if not f.table}
        return rake(self.decoder, distributions(self.counts), seeded_by(self.counts.values()), together)

    @property
    def trained_pairs(self) -> dict[Clique, float]:
        """Weight of a row in the noisy sums for each trained (cause, column); in counts, it would be 1.

        A step sums the rows for each category of the cause with each category of the column, minus the expected rows.
        The weight of a row is the column's weight times the factor that clips the row's gradient. This factor is
        computed for a row of evenly distributed columns.
        """
        heads, tables = self.decoder.heads, {family.column for family in self.families if family.table}
        trained = [name for name in heads.sizes if name not in tables and heads.sizes[name] > 1]
        factor = min(1.0, self.clip / max(gradient_norm(heads, trained), 1e-12))
        return {(cause, name): heads.weight(name) * factor for name in trained for cause in heads.inputs(name)}

    @property
    def becomes(self) -> tuple[str, ...]:
        """One sentence about the model of each drawn family."""
        return tuple(family.sentence(self.decoder.heads.sizes) for family in self.families)

    def facts(self, project: Project) -> dict[str, Any]:  # noqa: ARG002
        """Return the model of each family, and the arrows that the tables contradict."""
        out = []
        for family in self.families:
            idle: list[str] = []
            if family.table:
                (table,) = family.counts(self.tables)
                idle = [c for i, c in enumerate(family.causes) if without_effect(table.values, table.sigma, i)]
            out.append({**family.to_json(self.decoder.heads.sizes), "without_effect": idle})
        return {"families": out} if out else {}


def decoder(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Trained:  # noqa: ARG001
    """Spend 30 % of ρ on one-way counts, and divide the rest among the drawn families.

    1. Measure every column.
    2. Choose the model of each family from public numbers (`decoder_families`).
    3. Measure the tables and interactions of families.
    4. Train the heads of the other families by full-batch noisy gradients, with the sum of their shares.

    Every step is one Gaussian of sensitivity kC (add-remove) or 2kC (replace-one), so ρ adds up exactly;
    `espalier.core.privacy.clipped` explains why no rows are sampled.
    """
    options, heads, rho = read_options(DecoderOptions, project.plan.options), heads_of(project), curator.budget.rho
    report(0.0, "Counting every column")
    ones = curator.measure(dict.fromkeys(one_ways(curator), COUNTS_SHARE * rho / len(heads.sizes)), "one-way")
    counts = {m.clique[0]: m.values for m in ones}
    rows, rest = noisy_total(curator, ones), (1 - COUNTS_SHARE) * rho * (1 - 1e-9)
    known = curator.rows or project.plan.rows or rows
    noise = Noise(curator.unit.count_sensitivity, rest, known, project.plan.max_cells)
    families = families_of(heads, project.dag.drawn_interactions, noise, options.families)
    report(0.05, "Counting causes and effects together")
    bought: dict[Clique, float] = {}
    for family in families:
        for clique in family.cliques(heads.sizes):  # two families may have the same columns
            bought[clique] = bought.get(clique, 0.0) + rest * family.share * family.counted / len(family.together)
    tables = tuple(curator.measure(bought, "families")) if bought else ()
    heads = replace(heads, base={name: int(values.argmax()) for name, values in counts.items()})
    made = Decoder(heads, np.zeros(heads.parameters), tables=conditional(families, tables, distributions(counts)))
    trained = [name for name in heads.sizes if name not in made.tables]
    clip = max(0.01, options.clip * gradient_norm(heads, trained) / max(gradient_norm(heads, heads.sizes), 1e-12))
    left = math.fsum(f.share * (1 - f.counted) for f in families) if families else 1.0
    if left > 0:
        made = _trained(curator, made, counts, rest * left, clip, options.steps, part(report, 0.1, 1.0))
    made = replace(made, total=max(rows, 1.0))
    return Trained(made, tuple(ones), curator.rows, tables, families, clip=clip)


def _trained(
    curator: Curator,
    counted: Decoder,
    counts: Mapping[str, FloatArray],
    rho: float,
    clip: float,
    steps: int,
    report: Report,
) -> Decoder:
    """Train the heads of all columns except those with a table in ``counted``.

    In training, columns with a table keep only their intercept, with almost no weight, because their heads are not
    used. Without these heads a row's gradient is shorter, so ``clip`` and the noise are lower.
    """
    heads = counted.heads
    tables = [name for name in heads.sizes if name in counted.tables]  # in the same order in each process
    parents = {n: () if n in tables else heads.inputs(n) for n in heads.sizes}
    some = replace(heads, parents=parents, importance={**heads.importance, **dict.fromkeys(tables, 1e-6)})
    start = ClippedGradient(some, np.zeros(some.parameters), clip)
    noisy = curator.prepay(start, rho * (1 - 1e-9) / steps, steps, "training")

    def gradient(parameters: FloatArray, at: int) -> SumMeasurement:
        return noisy(replace(start, parameters=parameters, step=at))

    made = train(some, counts, gradient, Training(steps, clip), curator.chance(), report, counted)
    whole = np.zeros(heads.parameters)
    (blocks, encoder), (own, trained) = heads.blocks(whole), some.blocks(made.parameters)
    for name in heads.sizes:
        if name not in tables:
            blocks[name][:] = own[name]
    encoder[:] = trained
    return replace(counted, parameters=whole, steps=made.steps)


def heads_of(project: Project) -> Heads:
    """Return the network of a project, with drawn causes as parents or, without a drawing, all earlier columns of the
    schema.
    """
    plan, names, options = project.plan, project.schema.names, read_options(DecoderOptions, project.plan.options)
    cut = set(plan.weights) if read_options(DecoderOptions, plan.options).regime == "causal" else set()
    if options.arrows == "none":
        parents: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    elif project.dag.edges:
        arrows = _drawn(project, options)
        parents = {n: tuple(sorted(c for c, e in arrows if e == n and c not in cut)) for n in names}
    else:
        parents = {n: tuple(p for p in names[:i] if p not in cut) for i, n in enumerate(names)}
    weight = min(LARGEST_IMPORTANCE, max(1.0, (len(names) - EASY_COLUMNS) / COLUMNS_PER_IMPORTANCE))
    importance = {n: min(100.0, weight * w) for n, w in plan.weights.items()}
    return Heads(project.schema.sizes, parents, importance, read_options(DecoderOptions, plan.options).latent)


def _drawn(project: Project, options: DecoderOptions) -> tuple[tuple[str, str], ...]:
    """Return the arrows that shape the table.

    If groups are joint nodes, an arrow applies to all columns of a group. Inside a group, each column depends on the
    columns before it, in an order that follows the arrows drawn there, so the group implies no independences. Raises
    :class:`ProjectError` if the groups form a cycle when they are treated as nodes.
    """
    if options.arrows == "none":
        return ()
    dag = project.dag
    if options.groups == "columns" or not dag.groups:
        return dag.edges
    inside = {name: tuple(members) for members in dag.groups.values() for name in members}
    between = {
        (cause, effect)
        for c, e in dag.edges
        for cause, effect in itertools.product(inside.get(c, (c,)), inside.get(e, (e,)))
        if e not in inside.get(c, ())
    }
    depth = dict.fromkeys(project.schema.names, 0)
    for name in graphlib.TopologicalSorter({n: dag.parents(n) for n in depth}).static_order():
        depth[name] = 1 + max((depth[cause] for cause in dag.parents(name)), default=0)
    order = {name: (depth[name], i) for i, name in enumerate(depth)}
    together = [sorted(members, key=order.__getitem__) for members in dag.groups.values()]
    arrows = (*sorted(between), *(pair for members in together for pair in itertools.combinations(members, 2)))
    if path := find_cycle(arrows):
        raise ProjectError(
            f"with the drawing's groups as single nodes, the arrows form a cycle ({' → '.join(path)}): take a column "
            "out of its group on the Structure page, or set groups to columns",
            key="groups",
        )
    return arrows


def _frame(project: Project, separations: tuple[Separation, ...], warnings: list[str]) -> Frame:
    """Check separations against the drawing before anything is spent, and refuse those that the drawing does not
    imply."""
    options = read_options(DecoderOptions, project.plan.options)
    causal = options.regime == "causal"
    if options.latent and (separations or causal):
        what = "the causal regime" if causal and not separations else "a separation"
        raise ProjectError(
            f"with latent above 0, a hidden variable connects all columns, so {what} cannot be kept; set latent to 0",
            key="latent",
        )
    if options.arrows == "none" and (not options.latent or causal):
        raise ProjectError(
            "without arrows, only a hidden variable links columns and no regime reads the drawing; set latent to "
            "1 or more and regime to predictive, or set arrows to drawn",
            key="arrows",
        )
    if causal and project.plan.target is None:
        raise ProjectError("the causal regime needs a target: name the column", key="target", missing="target")
    if causal and not project.dag.edges:
        raise ProjectError(
            f"the causal regime needs a drawing: draw the causes of {project.plan.target!r} on the Structure page",
            key="regime",
        )
    if not project.dag.edges and options.arrows == "drawn":
        warnings.append(
            "Nothing is drawn, so each column is modelled from the columns before it in the schema. This order is "
            "not a causal claim."
        )
    heads = heads_of(project)
    parents = {name: heads.inputs(name) for name in heads.sizes}
    for s in separations:
        if not separated(parents, set(s.left), set(s.right), set(s.given)):
            given = f" given {', '.join(s.given)}" if s.given else ""
            raise ProjectError(
                f"the drawing does not make {', '.join(s.left)} independent of {', '.join(s.right)}{given}: remove the "
                "arrows between them on the Structure page, or choose a method that builds in the fence",
                key="roles",
            )
    return Frame((*separations, *(_regime(project, heads) if causal else ())), warnings=tuple(warnings))


def _regime(project: Project, heads: Heads) -> list[Separation]:
    """Return the separation of each target from all other columns given its causes, which holds because no arrow leaves
    it.
    """
    clique, out = project.schema.clique, []
    for target in project.plan.weights:
        causes = heads.inputs(target)
        if rest := clique(set(heads.sizes) - {target, *causes}):
            why = f"causal regime: {target} depends on its direct causes only"
            out.append(Separation((target,), rest, clique(causes), why))
    return out


DECODER = Method(
    name="decoder",
    title="Causal decoder",
    summary="every column is predicted from its drawn causes by a model trained with noisy gradients",
    fit=decoder,
    load=Decoder.loads,
    options=DecoderOptions,
    frame=_frame,
    guidance=Guidance(
        when="Choose it if the drawing is right and the table has many columns.",
        pools={"training": "training the model", "families": "counts of causes with effects"},
    ),
    capabilities=Capabilities(targets=True, constraints=False, unread=("allocation", "accounting", "copies")),
    arrows=lambda project: _drawn(project, read_options(DecoderOptions, project.plan.options)),
    causes_only=lambda plan: plan.options.get("regime") == "causal",
)
