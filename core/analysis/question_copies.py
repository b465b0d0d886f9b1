"""Copies of a release whose model was fitted to marginals, questions and counts together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from espalier.core.analysis.copies import SMOOTHING, Recipe, Rows, disturbed, drawn_sample, widening
from espalier.core.methods.question_answers import Asked
from espalier.core.models.question_fit.model import VisibleModel
from espalier.core.privacy.draws import Measurement
from espalier.core.privacy.question_recipes.recipes import answers
from espalier.core.project.schema import Schema
from espalier.core.tables.table import Table


def fitted_as_copy(asked: Asked) -> VisibleModel:
    """Return the model fitted with the smoothing used for copies."""
    return asked.fitted(smoothing=SMOOTHING)


def asked_copies(
    asked: Asked, centre: VisibleModel, schema: Schema, recipe: Recipe, rng: np.random.Generator
) -> Iterator[tuple[VisibleModel, Rows]]:
    """Yield copies as `espalier.core.analysis.copies.copies` does, with new answers and histograms in each."""
    for _ in range(recipe.copies):
        made = fitted_as_copy(_perturbed(asked, centre, schema, recipe, rng))
        yield made, made.sample(recipe.rows, rng, even=recipe.evenly)


def _perturbed(asked: Asked, centre: VisibleModel, schema: Schema, recipe: Recipe, rng: np.random.Generator) -> Asked:
    """Return all measurements, perturbed by one sample of n rows and by independent noise."""
    drawn = drawn_sample(centre, rng)
    n = len(next(iter(drawn.values())))
    told, direct = asked.answers, asked.answers.direct
    rows = {**drawn, **{count.name: count.values(drawn) for count in told.counts}}

    def again(measurements: tuple[Measurement, ...], recipe: Recipe = recipe) -> tuple[Measurement, ...]:
        return disturbed(measurements, centre, rows, recipe, rng)

    if direct is not None:
        expected = np.array([centre.fitted[question.name] for question in told.questions]) * (n / centre.total)
        sampled = answers(Table(schema, drawn, n), told.questions, told.counts, asked.base.sizes) - expected
        noise = rng.normal(0.0, direct.sigma, len(expected))
        wide = widening(centre.total, n) * math.sqrt(recipe.rows_per_person)
        direct = replace(direct, values=direct.values + wide * sampled + noise)
    whole = replace(recipe, merged={})  # questions and counts are measured over unmerged categories
    counted = replace(
        told,
        direct=direct,
        marginals=again(told.marginals, whole),
        histograms=again(told.histograms, whole),
    )
    return replace(asked, base=replace(asked.base, measurements=again(asked.base.measurements)), answers=counted)
