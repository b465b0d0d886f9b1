"""The causal decoder: every column a softmax of its drawn causes, trained with noisy gradients (causal VAE, paper 003).

With latent 0 there is no shared z: the model factors along the drawing, and a separation that the drawing implies
holds exactly. With ``groups`` joint, a panel of columns is one node of the drawing. The paper's design, an encoder and
a z that every column reads, is ``latent`` above 0.
"""

from __future__ import annotations

import graphlib
import itertools
import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from espalier.core.errors import ProjectError
from espalier.core.graph.dag import find_cycle
from espalier.core.graph.separations import Clique, Separation
from espalier.core.methods.base import Capabilities, Guidance, Method
from espalier.core.methods.frame import Frame
from espalier.core.methods.marginals import Marginals, one_ways
from espalier.core.methods.select.expected import noisy_total
from espalier.core.models.decoder import Decoder, separated
from espalier.core.models.decoder_steps import LARGEST_BLOCK
from espalier.core.models.decoder_training import (
    COUNTS_SHARE,
    Training,
    distributions,
    family_table,
    rake,
    shares,
    train,
    untrained,
    without_effect,
)
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
"""Weight of a target's residual: one for every four columns beyond the first eight, at least 1 and at most 6. Among
many columns its gradient would be lost in the clipped sum; among few, a weight only takes from the others. It depends
only on the number of columns."""

SECONDS_PER_PARAMETER, SECONDS_PER_COLUMN, SECONDS_PER_ENTRY = 14e-6, 350e-6, 25e-9
"""CPU seconds of a step for each parameter (its noise), each column (its solver) and each category of a column and row.
For eight releases of 12 to 222 columns and 2,000 to 147,000 rows they predict 0.9 to 1.1 times the measured seconds;
with a latent z, 0.7 times."""

TABLE_NOISE = 0.05
"""A family is counted as a full table, and needs no training, if σ·√cells is at most this share of the rows."""

USUAL_ROWS = 50_000
"""Number of rows assumed for the planned seconds if n is private."""


@dataclass(frozen=True)
class DecoderOptions:
    """The decoder's plan keys."""

    regime: Literal["predictive", "graphical", "causal"] = option(
        "predictive",
        "Regime",
        choices={
            "predictive": "All drawn arrows shape the table.",
            "graphical": "All drawn arrows shape the table, as in the predictive regime.",
            "causal": "Arrows out of the target are cut: it depends on its drawn causes only, and stays valid when the "
            "rest of the world changes.",
        },
    )
    latent: int = option(
        0,
        "Latent dimensions",
        low=0,
        high=8,
        whole=True,
        help="0: each column depends on its drawn causes only, and separations hold exactly. Above 0, as in the paper, "
        "a hidden variable connects all columns: no separation can be promised.",
    )
    arrows: Literal["drawn", "none"] = option(
        "drawn",
        "Arrows",
        choices={
            "drawn": "Each column depends on its drawn causes.",
            "none": "No arrows: a plain VAE under differential privacy, to compare with. It needs latent dimensions.",
        },
    )
    groups: Literal["columns", "joint"] = option(
        "columns",
        "Groups of the drawing",
        choices={
            "columns": "Each column has its own arrows.",
            "joint": "A group is one node: an arrow from or to one of its columns counts for all of them, and its "
            "columns depend on each other.",
        },
    )
    families: Literal["additive", "tables"] = option(
        "additive",
        "Causes of a column",
        choices={
            "additive": "Act separately: their effects add up.",
            "tables": "May interact: a column and its causes are counted as one table if the budget allows.",
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
    """The result of training: a decoder, and the noisy one-way counts that its intercepts are raked to.

    ``rows`` is the number of rows if it is public.
    """

    decoder: Decoder
    ones: tuple[Measurement, ...]
    rows: int | None
    families: tuple[Measurement, ...] = ()
    features: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, FloatArray]:
        """Noisy counts of each column."""
        return {m.clique[0]: m.values for m in self.ones}

    @property
    def told(self) -> Marginals:
        """The counts alone. They do not contain what the training steps learned about associations."""
        sizes = self.decoder.heads.sizes
        return Marginals(sizes, sizes, self.rows, (*self.ones, *self.families))

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """Single columns, and the families that were counted as tables."""
        return (*((name,) for name in self.counts), *(m.clique for m in self.families))

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The drawn arrows; with a latent z every pair of columns."""
        heads = self.decoder.heads
        return tuple(itertools.combinations(heads.sizes, 2)) if heads.latent else self.decoder.edges

    def size(self, max_cells: int, further: tuple[Clique, ...] = ()) -> Size:  # noqa: ARG002
        """Return parameters instead of cells: there is no junction tree, so no limit on its width."""
        count, steps = self.decoder.heads.parameters, self.decoder.steps
        heads, rows = self.decoder.heads, self.decoder.total if self.decoder.total > 1 else USUAL_ROWS
        a_step = count * SECONDS_PER_PARAMETER + len(heads.sizes) * SECONDS_PER_COLUMN
        seconds = steps * (a_step + rows * heads.width * SECONDS_PER_ENTRY)
        return Size(count, count * steps, (64 + 8 * LARGEST_BLOCK) * count, seconds, (), count, ())

    def model(self, report: Report = silent) -> Decoder:
        """The decoder, its intercepts raked to the one-way counts (post-processing)."""
        report(0.0, "Raking the intercepts to the one-way counts")
        return rake(self.decoder, distributions(self.counts), np.random.default_rng())

    def facts(self, project: Project) -> dict[str, Any]:  # noqa: ARG002
        """Return the families that were counted as tables, with the arrows that the data do not support."""
        if not self.families:
            return {}
        out = []
        for name, m in zip(self.decoder.tables, self.families, strict=True):
            values, causes = _last(m, name), self.decoder.heads.inputs(name)
            idle = [c for i, c in enumerate(causes) if without_effect(values, m.sigma, i)]
            out.append({"column": name, "causes": list(causes), "cells": m.values.size, "without_effect": idle})
        return {"families": out}


def decoder(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Trained:  # noqa: ARG001
    """Pay for all steps, spend 30 % of ρ on one-way counts, and train the drawing's heads by full-batch noisy
    gradients.

    Every step is one Gaussian of sensitivity kC (add-remove) or 2kC (replace-one), so ρ adds up exactly;
    `espalier.core.privacy.clipped` explains why no rows are sampled.
    """
    options = read_options(DecoderOptions, project.plan.options)
    heads = heads_of(project)
    training = Training(options.steps, options.clip)
    if options.families == "tables" and not options.latent:
        return _with_tables(curator, heads, options, project.plan.max_cells, report)
    each, step = shares(curator.budget.rho, len(heads.sizes), options.steps)
    start = ClippedGradient(heads, np.zeros(heads.parameters), options.clip)
    noisy = curator.prepay(start, step, options.steps, "training")
    report(0.0, "Counting every column")
    ones = curator.measure(dict.fromkeys(one_ways(curator), each), "one-way")
    counts = {m.clique[0]: m.values for m in ones}
    heads = replace(heads, base={name: int(values.argmax()) for name, values in counts.items()})

    def gradient(parameters: FloatArray, at: int) -> SumMeasurement:
        return noisy(replace(start, heads=heads, parameters=parameters, step=at))

    made = train(heads, counts, gradient, training, curator.chance(), part(report, 0.05, 1.0))
    rows = math.fsum(float(v.sum()) for v in counts.values()) / len(counts) if curator.rows is None else curator.rows
    return Trained(replace(made, total=max(float(rows), 1.0)), tuple(ones), curator.rows)


def _with_tables(curator: Curator, heads: Heads, options: DecoderOptions, max_cells: int, report: Report) -> Trained:
    """Count each family as a full table if `TABLE_NOISE` and ``max_cells`` allow it, and train the heads of the others.

    30 % of ρ goes to one-way counts. The rest is divided evenly over the columns with causes. Those without a table
    train with their share. A counted column keeps only its intercept in training, with almost no weight.
    """
    rho = curator.budget.rho
    report(0.0, "Counting every column")
    ones = curator.measure(dict.fromkeys(one_ways(curator), COUNTS_SHARE * rho / len(heads.sizes)), "one-way")
    counts = {m.clique[0]: m.values for m in ones}
    rows = float(curator.rows or noisy_total(curator, ones))
    base = {name: int(values.argmax()) for name, values in counts.items()}
    effects = [name for name in heads.sizes if heads.inputs(name)]
    each = (1 - COUNTS_SHARE) * rho * (1 - 1e-9) / max(1, len(effects))
    noise = curator.unit.count_sensitivity / math.sqrt(2 * each)
    family = {n: tuple(c for c in heads.sizes if c == n or c in heads.inputs(n)) for n in effects}
    cells = {n: math.prod(heads.sizes[c] for c in family[n]) for n in effects}
    counted = [n for n in effects if cells[n] <= max_cells and noise * math.sqrt(cells[n]) <= TABLE_NOISE * rows]
    report(0.05, "Counting causes and effects together")
    bought: dict[Clique, float] = {}
    for name in counted:  # two families may have the same columns
        bought[family[name]] = bought.get(family[name], 0.0) + each
    tables = {m.clique: m for m in curator.measure(bought, "families")} if bought else {}
    left = [n for n in effects if n not in counted]
    whole, made = replace(heads, base=base), untrained(replace(heads, base=base), counts, curator.chance())
    if left or not effects:
        trained = replace(
            heads,
            parents={n: () if n in counted else heads.parents.get(n, ()) for n in heads.sizes},
            importance={**heads.importance, **dict.fromkeys(counted, 1e-6)},
        )
        start = ClippedGradient(trained, np.zeros(trained.parameters), options.clip)
        part_left = len(left) / len(effects) if effects else 1.0
        step = (1 - COUNTS_SHARE) * rho * (1 - 1e-9) * part_left / options.steps
        noisy = curator.prepay(start, step * (1 - 1e-9), options.steps, "training")
        trained = replace(trained, base=base)

        def gradient(parameters: FloatArray, at: int) -> SumMeasurement:
            return noisy(replace(start, heads=trained, parameters=parameters, step=at))

        training = Training(options.steps, options.clip)
        found = train(trained, counts, gradient, training, curator.chance(), part(report, 0.1, 1.0))
        parameters = made.parameters.copy()
        blocks, own = whole.blocks(parameters)[0], trained.blocks(found.parameters)[0]
        for name in heads.sizes:
            if name not in counted:
                blocks[name][:] = own[name]
        made = replace(made, parameters=parameters, steps=found.steps)
    shares_of = distributions(counts)
    measured = {n: tables[family[n]] for n in counted}
    made = replace(
        made,
        total=max(rows, 1.0),
        tables={n: family_table(_last(m, n), m.sigma, shares_of[n]) for n, m in measured.items()},
    )
    return Trained(made, tuple(ones), curator.rows, tuple(measured.values()))


def _last(m: Measurement, name: str) -> FloatArray:
    """Return the counts with the axis of ``name`` last."""
    return np.moveaxis(m.values, m.clique.index(name), -1)


def heads_of(project: Project) -> Heads:
    """The network of a project: drawn causes as parents, or without a drawing all earlier columns of the schema."""
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

    If groups are joint nodes, an arrow counts for all columns of a group. Inside a group each column depends on those
    before it, in an order that follows the arrows drawn there, so the family of the whole group has no independence.
    Raises :class:`ProjectError` if the groups, as nodes, cause each other in a cycle.
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
            f"with the drawing's groups as single nodes the arrows form a cycle ({' → '.join(path)}): take a column "
            "out of its group on the Structure page, or set groups to columns",
            key="groups",
        )
    return arrows


def _frame(project: Project, separations: tuple[Separation, ...], warnings: list[str]) -> Frame:
    """Check separations against the drawing before anything is spent; refuse those it does not imply."""
    options = read_options(DecoderOptions, project.plan.options)
    causal = options.regime == "causal"
    if options.latent and (separations or causal):
        what = "the causal regime" if causal and not separations else "a separation"
        raise ProjectError(
            f"with latent above 0 a hidden variable connects all columns, so {what} cannot be kept: set latent to 0",
            key="latent",
        )
    if options.arrows == "none" and (not options.latent or causal):
        raise ProjectError(
            "without arrows only a hidden variable links columns, and no regime reads the drawing: set latent to 1 or "
            "more and regime to predictive, or arrows to drawn",
            key="arrows",
        )
    if causal and project.plan.target is None:
        raise ProjectError("the causal regime needs a target: name the column", key="target", missing="target")
    if causal and not project.dag.edges:
        raise ProjectError(
            f"the causal regime needs a graph: draw the causes of {project.plan.target!r} on the Structure page",
            key="regime",
        )
    if not project.dag.edges and options.arrows == "drawn":
        warnings.append(
            "Nothing is drawn, so each column is modelled from the columns before it in the schema. That is an order, "
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
    """Each target is independent of all other columns given its causes, because no arrow leaves it."""
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
