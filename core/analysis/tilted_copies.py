"""Copies of a release with a second stage that weights whole rows. Each copy fits the base and the weights again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.copies import Recipe, Refit, Rows, disturbed, drawn_sample, widening
from espalier.core.graph.separations import Clique
from espalier.core.methods.embedding import ordered_columns, sums_of
from espalier.core.models.graphical import GraphicalModel
from espalier.core.models.tilted import TiltedModel, tilted
from espalier.core.privacy.draws import Measurement
from espalier.core.project.schema import Schema


def tilted_copies(
    measurements: tuple[Measurement, ...],
    model: TiltedModel,
    refit: Refit[GraphicalModel],
    schema: Schema,
    impossible: Mapping[Clique, NDArray[np.bool_]],
    recipe: Recipe,
    rng: np.random.Generator,
) -> Iterator[tuple[TiltedModel, Rows]]:
    """Yield copies as `espalier.core.analysis.copies.copies` does, with new sums of features in each.

    The same n rows of the released model perturb the counts and the sums. Each copy takes as long as weighting the
    release did.
    """
    sums = model.sums
    ordered = ordered_columns(schema, sums.recipe.target)
    expected = sums_of(model.pool, sums.recipe, model.weights)
    for _ in range(recipe.copies):
        drawn = drawn_sample(model, rng)
        n = len(drawn[sums.recipe.target])
        wide = widening(model.total, n) * math.sqrt(recipe.rows_per_person)
        sampled = wide * (sums_of(drawn, sums.recipe) - n * expected)
        values = sums.values + sampled + rng.normal(0.0, sums.sigma, sums.values.shape)
        base = refit(disturbed(measurements, model, drawn, recipe, rng))
        made = tilted(base, replace(sums, values=values), ordered, impossible, rng)
        yield made, made.sample(recipe.rows, rng, even=recipe.evenly)
