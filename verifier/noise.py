"""Check 3: the noisy counts are whole numbers, match the draws, and differ from each other as much as their noise
implies."""

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc, gammaincc, log_ndtr, ndtri_exp

from .budget import RECIPES
from .folder import Array, Clique, Folder

ALARM, LEAST_DOF, SMALLEST, WIDEST, CLOSE, RARE = 1e-6, 7, 0.6, 14, 1e-9, 3.0
RULES = {"impossible", "monotone", "determines"}
ALL = "all counts together"
ARRAYS = {"measurements": "counts", "asked": "asked", "histograms": "histogram", "merged": "merged"}
"""Array names of each list in ``answers.npz``, if they differ from the list's name."""


@dataclass
class Counts:
    """Noisy counts of one clique. ``members`` has the number of categories that each cell adds up, and ``sigma`` is the
    root mean square of the cells' σ, so cells of several categories have more noise.
    """

    clique: Clique
    values: Array
    sigma: float
    members: Array | None = None

    @property
    def spread(self) -> Array:
        """Noise variance of each cell."""
        return self.sigma**2 * (1.0 if self.members is None else self.members / self.members.mean())

    def variance(self, subset: Clique) -> float:
        """Return the noise variance of each cell of a component."""
        gone = [s for n, s in zip(self.clique, self.values.shape, strict=True) if n not in subset]
        return float(self.sigma**2 * math.prod(gone))


class Answers:
    """Content of ``answers.npz``: counts, the public number of rows, groups of categories, and impossible cells."""

    def __init__(self, folder: Folder) -> None:
        head, found = folder.arrays("answers.npz")
        lists = {of for recipe in RECIPES.values() for of in recipe.lists} | {"merged", "impossible"}
        named = {key: [f"{ARRAYS.get(key, key)}_{i}" for i in range(len(head.get(key, [])))] for key in lists}
        named["direct"] = ["direct"] * ("direct" in head)
        if set(found) != set(itertools.chain(*named.values())):
            raise ValueError("answers.npz contains unlisted arrays")
        self.rows: int | None = head["rows"]
        self.merged = {n: found[a] for n, a in zip(head["merged"], named["merged"], strict=True)}
        self.impossible = {tuple(q): found[a] > 0 for q, a in zip(head["impossible"], named["impossible"], strict=True)}
        self.sizes = {n: int(self.merged[n].max()) + 1 if n in self.merged else s for n, s in folder.sizes.items()}
        self.alone = not any(named[key] for key in lists - {"measurements", "merged", "impossible"})
        if any(a.dtype != bool for a in (found[x] for x in named["impossible"])):
            raise ValueError("impossible cells must be marked with booleans")
        tables = [m for key in ("measurements", "asked") for m in head.get(key, [])]
        listed = list(zip(tables, (found[x] for x in named["measurements"] + named["asked"]), strict=True))
        sums = [("questions", head[key]) for key in ("direct",) if key in head]
        sums += [("count-histogram", m) for m in head.get("histograms", [])]
        arrays = zip(sums, named["direct"] + named["histograms"], strict=True)
        self.sums = [(recipe, m["sigma"], found[a].size) for (recipe, m), a in arrays]
        self.counts = [Counts(tuple(m["columns"]), v.astype(float), float(m["sigma"])) for m, v in listed]
        for c in self.counts:
            if c.values.shape != tuple(self.sizes[n] for n in c.clique) or len(set(c.clique)) < len(c.clique):
                raise ValueError(f"the counts of {' × '.join(c.clique)} do not fit the schema")


def components(table: Array, clique: Clique) -> dict[Clique, Array]:
    """Return the analysis of variance: a part for each subset of the columns, as a sum over the other columns.

    With equal noise in each cell, the parts are independent, and each has Π(size − 1) degrees of freedom.
    """
    if len(clique) > WIDEST:
        raise ValueError(f"a table with more than {WIDEST} columns is not decomposed")
    parts: dict[Clique, Array] = {(): table}
    for name in clique:
        split: dict[Clique, Array] = {}
        for held, part in parts.items():
            whole = part.sum(axis=len(held), keepdims=True)
            split[held] = whole.squeeze(len(held))
            split[(*held, name)] = part - whole / part.shape[len(held)]
        parts = split
    return parts


def check_noise(folder: Folder) -> Answers | None:
    """Test and return the counts; None if the method keeps none."""
    if "answers.npz" not in folder.names:
        folder.note(3, "not testable: this method keeps no counts (checks 1, 2, 5, 6 and 7 apply)")
        return None
    answers = Answers(folder)
    wrong = not_drawn(folder, answers)
    if answers.merged and not folder.facts["project"]["plan"].get("compress"):
        wrong.append("categories are counted in groups, but the plan merges none")
    for name, groups in answers.merged.items():
        rare = groups == groups.max()
        good = len(groups) == folder.sizes[name] and 1 < rare.sum() < len(rare)
        if not good or np.any(groups != np.where(rare, (~rare).sum(), np.cumsum(~rare) - 1)):
            wrong.append(f"the groups of {name} are not single categories and one group of rare ones")
    if answers.impossible and not RULES & set(folder.facts["project"]):
        wrong.append("cells are marked as impossible, but the project has no constraint")
    if folder.statement and answers.rows != folder.statement["unit"]["rows"]:
        wrong.append(f"answers.npz states {answers.rows} rows, but the statement {folder.statement['unit']['rows']}")
    for c in answers.counts:
        if np.any(c.values != np.rint(c.values)) or np.any(c.values < -8 * np.sqrt(c.spread)):
            wrong.append(f"{' × '.join(c.clique)}: not whole numbers, or one is more than 8 σ below zero")
        if c.members is not None and np.any((c.values < RARE * np.sqrt(c.spread) * (1 - CLOSE))[c.members == 1]):
            wrong.append(f"a rare category of {c.clique[0]} is in no group")
    loud, degrees, ratio = tested(answers)
    if wrong or loud or degrees >= LEAST_DOF:
        folder.say(3, wrong + loud, f"{degrees} degrees of freedom, √(χ²/df) = {ratio:.3f}")
    else:
        folder.note(3, f"not testable: {degrees} degrees of freedom in overlaps, but {LEAST_DOF} are needed")
    return answers


def not_drawn(folder: Folder, answers: Answers) -> list[str]:
    """Return the counts that match no draw. One-way counts added up in groups of categories have the root mean
    square of the groups' σ. Each column has at most one such table.
    """
    listed = [(d["columns"], d["sigma"]) for d in folder.facts["measurements"]]
    draws = [d for d in folder.statement.get("draws", []) if (d["part"], d["kind"]) == ("own", "count")]
    listed = [(d["columns"], d["scale"]) for d in draws] if folder.statement else listed
    bought, whole = Counter((tuple(q), float(s)) for q, s in listed), dict(answers.merged)
    for c in answers.counts:
        sigma = c.sigma
        if not bought[c.clique, sigma] and len(c.clique) == 1 and c.clique[0] in whole:
            members = np.bincount(whole.pop(c.clique[0]))
            folded = sigma / math.sqrt(members.mean())
            sigma = next((s for q, s in bought if q == c.clique and math.isclose(s, folded, rel_tol=CLOSE)), sigma)
            c.members = None if sigma == c.sigma else members
        if not bought[c.clique, sigma]:
            return [f"the counts of {' × '.join(c.clique)} with σ = {c.sigma:.6g} match no draw"]
        bought[c.clique, sigma] -= 1
    draws = [d for d in folder.statement.get("draws", []) if d["kind"] == "sums"]
    extra = Counter(answers.sums) - Counter((d["recipe"], d["scale"], d["cells"]) for d in draws)
    extra = extra if folder.statement else Counter()
    return ["the noise or the length of a sum does not match its draw, or there are more sums than draws"] * bool(extra)


def alone(c: Counts, usable: list[Counts]) -> Array:
    """Return standard scores of the categories that are in no group, from their counts and the margins of other counts.

    A category is in no group if its count is at least `RARE` times σ. Given the mean of the count and the margins,
    weighted by precision, the count has a normal distribution that is cut off there, whatever the real count is.
    """
    cells, (name,) = c.members == 1, c.clique
    margins = [
        (o.values.sum(axis=tuple(i for i, n in enumerate(o.clique) if n != name))[cells], o.variance(c.clique))
        for o in usable
        if o.members is None and name in o.clique
    ]
    if not margins:
        return np.zeros(0)
    values, own, other = c.values[cells], 1 / c.spread[cells], sum(1 / v for _, v in margins)
    mean = (values * own + sum(m / v for m, v in margins)) / (own + other)
    spread = np.sqrt(1 / own - 1 / (own + other))
    least = np.ceil(RARE / np.sqrt(own) * (1 - CLOSE)) - 0.5  # counts are whole numbers
    above = log_ndtr((mean - values) / spread) - log_ndtr((mean - least) / spread)
    return ndtri_exp(np.minimum(above, 0))


def tested(answers: Answers) -> tuple[list[str], int, float]:
    """Return χ² of each component's deviation from the mean of all counts that contain it, for all cliques together and
    for each clique alone.
    """
    usable = [c for c in answers.counts if c.sigma >= SMALLEST and len(c.clique) <= WIDEST]
    parts: dict[Clique, list[tuple[int, Array, float]]] = defaultdict(list)
    for i, c in enumerate(usable):
        shared = {tuple(n for n in c.clique if n in other.clique) for other in usable if other is not c}
        own = components(c.values, c.clique)
        for subset in {s for q in shared | {()} for r in range(len(q) + 1) for s in itertools.combinations(q, r)}:
            if c.members is None or not subset:
                parts[subset].append((i, own[subset], c.variance(subset)))
    square, dof, whole, degrees = np.zeros(len(usable)), np.zeros(len(usable)), 0.0, 0
    for subset, held in parts.items():
        known = answers.rows is not None and not subset
        free, precision = math.prod(answers.sizes[n] - 1 for n in subset), sum(1 / v for _, _, v in held)
        if known or len(held) > 1:
            mean = np.float64(answers.rows) if known else sum(p / v for _, p, v in held) / precision
            degrees += free * (len(held) - (not known))
            for i, part, v in held:
                off = float(np.sum((part - mean) ** 2))
                whole += off / v
                square[i] += off / (v if known else v - 1 / precision)
                dof[i] += free
    for i, c in enumerate(usable):
        apart = alone(c, usable) if c.members is not None else np.zeros(0)
        whole, degrees = whole + float(np.sum(apart**2)), degrees + len(apart)
        square[i], dof[i] = square[i] + np.sum(apart**2), dof[i] + len(apart)
    tests = [
        (ALL, whole, degrees),
        *((" × ".join(c.clique), s, d) for c, s, d in zip(usable, square, dof, strict=True)),
    ]
    if answers.rows is not None:
        for size in {len(c.clique) for c in usable}:
            sums = [(c.values.sum() - answers.rows) ** 2 / c.variance(()) for c in usable if len(c.clique) == size]
            tests.append((f"the totals of counts of {size} columns", sum(sums), len(sums)))
    tests, wrong = [t for t in tests if t[2] >= LEAST_DOF], list[str]()
    for name, s, d in tests:
        low, high = gammainc(d / 2, s / 2), gammaincc(d / 2, s / 2)  # P[χ² ≤ s] and P[χ² ≥ s]
        level = ALARM / (20 * len(tests))  # most of the rate is for too little noise in all counts together
        if low < (0.9 * ALARM if name == ALL else level) or high < level:
            side = "less" if low < high else "more"
            wrong.append(f"{name} differ by {side} than their noise (√(χ²/df) = {math.sqrt(s / d):.3g})")
    return wrong, degrees, math.sqrt(whole / max(degrees, 1))
