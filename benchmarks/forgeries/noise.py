"""Forged counts: noise left out, divided or reused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.forgeries.case import (
    ROWS,
    Case,
    Files,
    kind,
    table,
)
from espalier.core.privacy.draws import Measurement


@kind("noise")
def noise_left_out(case: Case) -> Files:
    return case.counted(lambda m: case.exact(m.clique)).files


@kind("noise")
def a_tenth_of_the_noise(case: Case) -> Files:
    return case.counted(lambda m: np.rint(0.9 * case.exact(m.clique) + 0.1 * m.values)).files


@kind("noise")
def a_third_of_the_noise(case: Case) -> Files:
    return case.counted(lambda m: np.rint(case.exact(m.clique) + (m.values - case.exact(m.clique)) / 3)).files


@kind("noise")
def three_times_the_noise(case: Case) -> Files:
    return case.counted(lambda m: case.exact(m.clique) + 3 * (m.values - case.exact(m.clique))).files


@kind("noise")
def noise_left_out_of_the_one_way_counts(case: Case) -> Files | None:
    if not any(len(m.clique) == 1 for m in case.fitted.measurements):
        return None
    return case.counted(lambda m: case.exact(m.clique) if len(m.clique) == 1 else m.values).files


@kind("noise", detectable=False, why="its margins are compared with counts that are noisier than the margins")
def noise_left_out_of_one_pair(case: Case) -> Files:
    pair = max((m for m in case.fitted.measurements), key=lambda m: len(m.clique))
    return case.counted(lambda m: case.exact(m.clique) if m.clique == pair.clique else m.values).files


@kind("noise", detectable=False, why="directions without overlap")
def noise_left_out_where_nothing_overlaps(case: Case) -> Files:
    """Only the interaction of each table, which no other count contains, is exact."""

    def values(m: Measurement) -> Any:
        if len(m.clique) < 2:
            return m.values
        exact, noise = case.exact(m.clique), m.values - case.exact(m.clique)
        margins = sum(
            noise.mean(axis=tuple(j for j in range(noise.ndim) if j != i), keepdims=True) for i in range(noise.ndim)
        )
        return np.rint(exact + margins - (noise.ndim - 1) * noise.mean())

    return case.counted(values).files


@kind("noise")
def counts_that_are_no_whole_numbers(case: Case) -> Files:
    return case.counted(lambda m: m.values + 0.25).files


@kind("noise")
def exact_counts_called_counts_of_merged_groups(case: Case) -> Files:
    """Each group contains one category, and each table has noise in its total only."""
    sizes, rng = case.rows.schema.sizes, np.random.default_rng()

    def changed(m: Measurement) -> Measurement:
        values = case.exact(m.clique)
        sigma = m.sigma * float(np.sqrt(sizes[m.clique[0]] / values.size))
        values.flat[0] += np.rint(rng.normal(0, sigma * np.sqrt(values.size)))
        return replace(m, sigma=sigma, values=values)

    fitted = replace(case.fitted, measurements=tuple(map(changed, case.fitted.measurements)))
    model = fitted.model()
    groups = {name: np.arange(size) for name, size in sizes.items()}
    return case.refitted(
        model, fitted=replace(fitted, merged=groups), project=case.replanned(options={"compress": True})
    ).files


@kind("noise")
def one_count_edited(case: Case) -> Files:
    def values(m: Measurement) -> Any:
        out = m.values.copy()
        if m is case.fitted.measurements[0]:
            out.flat[0] += round(30 * m.sigma)
        return out

    return case.counted(values).files


@kind("noise")
def counts_without_negative_cells(case: Case) -> Files | None:
    if not any((m.values < -1.5 * m.sigma).any() for m in case.fitted.measurements):
        return None
    return case.counted(lambda m: np.maximum(m.values, 0) * ROWS / np.maximum(m.values, 0).sum()).files


@kind("noise")
def counts_of_another_release(case: Case) -> Files | None:
    fitted: Any = case.other.fitted
    theirs = {m.clique: m.values for m in fitted.measurements}
    if not theirs.keys() & {m.clique for m in case.fitted.measurements}:
        return None  # the two networks have no table in common
    return case.counted(lambda m: theirs.get(m.clique, m.values), refit=False).files


@kind("noise", detectable=False, why="no folder proves that noise was fresh")
def reused_answers(case: Case) -> Files:
    return case.made(rows=case.honest.rows).files


@kind("noise", detectable=False, why="no folder proves that the counts were this table's")
def counts_of_another_table(case: Case) -> Files:
    theirs = table(case.seed + 7)
    shift = {m.clique: theirs.count(m.clique) - case.exact(m.clique) for m in case.fitted.measurements}
    return case.counted(lambda m: m.values + shift[m.clique]).files
