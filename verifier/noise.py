"""Check 3: the noisy counts are whole numbers, those of the draws, and differ from each other as their noise allows."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import chi2, norm

from .folder import Folder, arrays

ALARM = 1e-6
"""The false-alarm rate of the whole check."""
LEAST_DOF = 7
SMALLEST = 0.6
"""With a smaller σ, discrete noise is not nearly normal, and its counts are not tested."""
Array = np.ndarray[Any, np.dtype[np.float64]]
Clique = tuple[str, ...]


@dataclass
class Counts:
    """Noisy counts of one clique; ``even`` says that each cell has noise of the same σ."""

    clique: Clique
    values: Array
    sigma: float
    even: bool = True


@dataclass
class Answers:
    """The content of ``answers.npz``: counts, the public number of rows, groups of categories, impossible cells."""

    counts: list[Counts]
    rows: int | None
    merged: dict[str, Any]
    impossible: dict[Clique, Any]
    asked: bool
    sizes: dict[str, int] = field(default_factory=dict)


def read_answers(folder: Folder) -> Answers:
    """``answers.npz``, with shapes that fit the schema."""
    head, found = arrays(folder.read("answers.npz"), "answers.npz")
    merged = {name: found[f"merged_{i}"] for i, name in enumerate(head["merged"])}
    masks = {tuple(c): found[f"impossible_{i}"].astype(bool) for i, c in enumerate(head["impossible"])}
    sizes = {n: int(merged[n].max()) + 1 if n in merged else s for n, s in folder.sizes.items()}
    counts = []
    for key, of in (("measurements", "counts"), ("asked", "asked")):
        for i, m in enumerate(head.get(key, [])):
            values = found[f"{of}_{i}"]
            if values.shape != tuple(sizes[n] for n in m["columns"]) or len(set(m["columns"])) < len(m["columns"]):
                raise ValueError(f"the counts of {m['columns']} do not fit the schema")
            counts.append(Counts(tuple(m["columns"]), values.astype(np.float64), float(m["sigma"])))
    return Answers(counts, head["rows"], merged, masks, bool(head.get("histograms") or "direct" in head), sizes)


def components(table: Array, clique: Clique) -> dict[Clique, Array]:
    """The analysis of variance of a table: one part for each subset of its columns, each as a sum over the others.

    The parts of equal noise in each cell are independent; that of a subset ``a`` has variance σ² · cells(clique∖a)
    and Π(size − 1) degrees of freedom.
    """
    parts: dict[Clique, Array] = {(): table}
    for name in clique:
        split: dict[Clique, Array] = {}
        for held, part in parts.items():
            at = len(held)  # the columns before it that this part holds
            whole = part.sum(axis=at, keepdims=True)
            split[held] = whole.squeeze(at)
            split[(*held, name)] = part - whole / part.shape[at]
        parts = split
    return parts


def variance(counts: Counts, subset: Clique) -> float:
    """The noise variance of a component, in cells² of its subset."""
    gone = math.prod(s for n, s in zip(counts.clique, counts.values.shape, strict=True) if n not in subset)
    return counts.sigma**2 * gone


def check_noise(folder: Folder) -> Answers | None:
    """The counts, after their test; None where the method keeps none."""
    if not folder.has("answers.npz"):
        folder.add(3, None, "not testable: this method keeps no counts (checks 1, 2, 6 and 7 apply)")
        return None
    answers = read_answers(folder)
    wrong = _draws(folder, answers)
    if odd := [c for c in answers.counts if not np.array_equal(c.values, np.rint(c.values))]:
        wrong.append(f"the counts of {' × '.join(odd[0].clique)} are not whole numbers")
    stated = (folder.statement or {}).get("unit", {"rows": answers.rows})["rows"]
    if answers.rows != stated:
        wrong.append(f"answers.npz holds {answers.rows} rows, the statement {stated}")
    said, loud = _test(answers)
    wrong += loud
    folder.add(3, False if wrong else None if "not testable" in said else True, "; ".join([*wrong[:5], said]))
    return answers


def _draws(folder: Folder, answers: Answers) -> list[str]:
    """Every count is one of the draws, at its σ. A one-way count that was folded into groups has the groups' mean σ."""
    if folder.statement is None:
        bought = Counter((tuple(m["columns"]), float(m["sigma"])) for m in folder.facts["measurements"])
    else:
        own = [d for d in folder.statement["draws"] if d["part"] == "own" and d["kind"] == "count"]
        bought = Counter((tuple(d["columns"]), float(d["scale"])) for d in own)
    for c in answers.counts:
        if not bought[c.clique, c.sigma] and len(c.clique) == 1 and c.clique[0] in answers.merged:
            share = len(answers.merged[c.clique[0]]) / c.values.size
            folded = [
                s for q, s in bought if q == c.clique and math.isclose(s * math.sqrt(share), c.sigma, rel_tol=1e-9)
            ]
            if folded:
                bought[c.clique, folded[0]] -= 1
                c.even = False
                continue
        if bought[c.clique, c.sigma] < 1:
            return [f"the counts of {' × '.join(c.clique)} with σ = {c.sigma:.6g} are none of the draws"]
        bought[c.clique, c.sigma] -= 1
    return []


def _test(answers: Answers) -> tuple[str, list[str]]:
    """Compare each component with the mean of all counts that hold it, by χ², all together and one clique at a time."""
    usable = [c for c in answers.counts if c.sigma >= SMALLEST]
    cliques = [set(c.clique) for c in usable]
    held: dict[Clique, list[tuple[int, Array, float]]] = defaultdict(list)
    for i, c in enumerate(usable):
        shared = {tuple(n for n in c.clique if n in other) for j, other in enumerate(cliques) if j != i}
        parts = components(c.values, c.clique)
        for subset in {s for whole in shared for r in range(len(whole) + 1) for s in itertools.combinations(whole, r)}:
            if c.even or not subset:
                held[subset].append((i, parts[subset], variance(c, subset)))
    square, dof = np.zeros(len(usable)), np.zeros(len(usable))
    whole, degrees = 0.0, 0
    for subset, parts in held.items():
        free = math.prod(answers.sizes[n] - 1 for n in subset)
        precision = sum(1 / v for _, _, v in parts)
        known = answers.rows is not None and not subset
        if len(parts) < 2 and not known:
            continue
        mean = np.float64(answers.rows) if known else sum(p / v for _, p, v in parts) / precision
        degrees += free * (len(parts) - (not known))
        for i, part, v in parts:
            off = float(np.sum((part - mean) ** 2))
            whole += off / v
            square[i] += off / (v if known else v - 1 / precision)
            dof[i] += free
    if degrees < LEAST_DOF:
        return f"noise not testable: {degrees} degrees of freedom in overlaps, {LEAST_DOF} are needed", []
    tests = [("all counts together", whole, degrees)]
    tests += [(" × ".join(c.clique), s, d) for c, s, d in zip(usable, square, dof, strict=True) if d >= LEAST_DOF]
    loud, level = [], ALARM / (2 * len(tests))
    for name, s, d in tests:
        low, high = chi2.cdf(s, d), chi2.sf(s, d)
        if min(low, high) < level:
            side = "less" if low < high else "more"
            loud.append(f"{name}: the counts differ by {side} than their noise (√(χ²/df) = {math.sqrt(s / d):.3g})")
    cells = sum(c.values.size for c in usable)
    for c in usable:
        deepest = float(c.values.min()) / c.sigma * (1 if c.even else math.sqrt(c.values.size / 2) ** -1)
        if norm.cdf(deepest) * cells < ALARM / 10:
            loud.append(f"{' × '.join(c.clique)}: a count is {-deepest:.1f} σ below zero")
    return f"noise: {degrees} degrees of freedom, √(χ²/df) = {math.sqrt(whole / degrees):.3f}", loud
