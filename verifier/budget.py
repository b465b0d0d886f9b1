"""Check 2: every scale follows from the draw's sensitivity and ρ, the values of ρ add up, and (ε, δ) follows from their
sum.
"""

import math
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from .folder import Folder, edges_of
from .questions import squared

CLOSE, LARGEST_DELTA, INTERCEPT, HEAVIEST = 1e-9, 1e-3, 45 / 64, 100
SPENDS_LESS = ("fpt-mw",)
SHARES: dict[str, tuple[Any, ...]] = dict.fromkeys(("mst", "privci", "prefair"), ("one-way", 1 / 3))
SHARES["prism"] = ("one-way", 0.05, 0.1)
SHARES["privbayes"] = ("network choice", 0.3)
"""The pool that gets a published share of ρ, by method, and the possible shares."""
METHODS = {*SHARES, "workload", "decoder", "copula", "fpt-lp", "fpt-mw", "independent", "linked"}
CHOSEN = {**dict.fromkeys(("mst", "privci", "prefair"), 1 / 3), "privbayes": 0.3, "workload": 0.04}
"""Smallest share of ρ for choices, if no edges were drawn beforehand."""
OTHER_SHARES = ["schema_share", "question_share", "regression_share", "analysis_share", "embedding_share"]
OTHER_SHARES += ["test_drawing", "explain", "width", "targets"]
Draw = dict[str, Any]


class Bought(NamedTuple):
    """A draw and the unit of privacy: k rows per person, m rows changed by one person, and n rows if public,
    else None.
    """

    draw: Draw
    folder: Folder
    k: int
    m: int
    n: int | None
    plan: dict[str, Any]


class Recipe(NamedTuple):
    """A purchase: the kinds of its draws, its Δ in rows, and the lists in ``answers.npz`` that hold its numbers."""

    kinds: str
    delta: Callable[[Bought], float]
    lists: tuple[str, ...] = ()


def cell(b: Bought) -> float:
    """Δ of counts: k rows move from cells to other cells (replace-one), or k rows are added or removed."""
    return math.sqrt(b.k * b.m)


def logistic(b: Bought) -> float:
    """Return Δ of a logistic gradient: each column adds a residual, with squared norm at most 1 for two classes,
    otherwise 2."""
    classes = b.folder.sizes[b.draw["what"].removeprefix("gradient of a logistic fit of ")]
    columns = max(int(b.draw["given"]["columns"]), len(b.folder.facts["selected"]), 1)
    return b.m * math.sqrt(columns * min(classes - 1, 2))


def clipped(b: Bought) -> float:
    """Return Δ of a clipped gradient. The plan's clipping norm is scaled by the expected gradient of the trained
    columns."""
    head, clip = b.folder.arrays("model.npz")[0], float(b.plan.get("clip", 1.5))
    moved = {str(name): 1 - 1 / size for name, size in head["sizes"]}
    causes = {name: [p for p in moved if [p, name] in head["edges"] and moved[p] > 0] for name in moved}

    targets = {b.plan.get("target"), *b.plan.get("targets", {})}
    if not all(name in targets and 0 < x <= HEAVIEST for name, x in head["importance"].items()):
        raise ValueError("the model weights a column that the plan does not")

    def norm(columns: list[str]) -> float:
        reads = {name: INTERCEPT**2 + sum(moved[p] for p in causes[name]) for name in columns}
        return math.sqrt(math.fsum(head["importance"].get(n, 1.0) ** 2 * moved[n] * reads[n] for n in reads))

    trained = [name for name in moved if name not in head.get("tables", [])]
    if len(trained) < len(moved):
        clip = max(0.01, clip * norm(trained) / max(norm(list(moved)), 1e-12))
    return b.m * math.floor(clip * 2**20 * (1 - CLOSE)) / 2**20  # the program may round just below a whole unit


def published(facts: dict[str, Any]) -> list[float]:
    """Return the noise of each score that ``release.json`` publishes."""
    explained = facts.get("explained") or {}
    listed = [e["sigma"] for key in ("associations", "errors") for e in facts.get(key, [])]
    listed += [explained["sigma"] for key in ("refused", "tree") for _ in explained.get(key, [])]
    tree = facts.get("best_tree") or {}
    return listed + [tree["score_sigma"] for _ in tree.get("scores", [])]


def scores(b: Bought) -> int:
    """Return the stated number of a draw's scores, or the number published with its noise if that is larger."""
    alike = [d for d in b.folder.statement["draws"] if (d["kind"], d["scale"]) == ("scores", b.draw["scale"])]
    return max(int(b.draw["cells"]), math.ceil(published(b.folder.facts).count(b.draw["scale"]) / len(alike)), 1)


def halvings(b: Bought) -> int:
    """Return the number of levels at which quantiles halve a column, into four times its bins but at most 64 parts."""
    column = next(c for c in b.folder.columns if c["name"] == b.draw["columns"][0])
    return (max(int(b.draw["given"]["cuts"]), min(4 * len(edges_of(column)[1:]), 64)) - 1).bit_length()


def visit_columns(folder: Folder) -> int:
    """Return the number of columns of the visits' table; each has an entry among the echoes."""
    return sum(c["name"].startswith(f"{folder.linked['visits']}.") for c in folder.columns)


def later_visits(b: Bought) -> int:
    """Largest number of visits after the first per person, from the number of kept visits in the project."""
    tables: dict[str, Any] = b.folder.facts["project"]["tables"]
    return max(int(table["keep"]) - 1 for table in tables.values() if "keep" in table)


RECIPES = {
    "counts": Recipe("count", cell, ("measurements", "asked")),
    "histogram": Recipe("sums schema", cell),
    "moments": Recipe("sums", cell),
    "count-histogram": Recipe("sums", cell, ("histograms",)),
    "threshold": Recipe("schema", cell),
    "quantiles": Recipe("schema", lambda b: b.k),
    "worst-question": Recipe("choice", lambda b: b.k),
    "questions": Recipe("sums", lambda b: b.k * math.sqrt(squared(b.folder, b.draw)), ("direct",)),
    "class-features": Recipe(
        "sums", lambda b: b.k * (math.sqrt(4 - 2 * min(b.draw["given"]["marked"], 1)) if b.m > b.k else 1)
    ),
    "regression": Recipe("sums", lambda b: b.k * math.sqrt(max(b.draw["given"]["squared"], b.m / b.k))),
    "clipped-gradient": Recipe("sums", clipped),
    "logistic-gradient": Recipe("gradient", logistic),
    "step-counts": Recipe("sums", cell),
    "echoes": Recipe("sums", lambda b: b.k * math.sqrt(visit_columns(b.folder))),
    "visit-counts": Recipe("sums", lambda b: cell(b) * math.sqrt(later_visits(b))),
    "return-counts": Recipe("sums", cell),
    "step-score": Recipe("choice", lambda b: b.m),
    "edge-score": Recipe("choice scores", lambda b: b.m),
    "conditional-score": Recipe("choice scores", lambda b: 2 * b.m),
    "feature-score": Recipe("choice scores", lambda b: 3 * b.k + 2 * b.k**2 / b.n if b.n else 2 * b.m),
}
"""The purchases by recipe. README.md explains each Δ."""
PARTS = re.compile("(moments|gradient|curvature|spread) of the regression (.*)", re.DOTALL)
"""Names of the draws of a regression."""
STEPS = 25
"""Number of training steps of a decoder, unless the plan states another."""


def has(*keys: str) -> Callable[[Bought], bool]:
    """Return a function that states whether the plan or the project has one of these keys."""
    return lambda b: any(b.plan.get(key) or b.folder.facts["project"].get(key) for key in keys)


def by(*methods: str) -> Callable[[Bought], bool]:
    """Return a function that states whether the release was made by one of these methods."""
    return lambda b: b.folder.facts["method"] in methods


def regressed(b: Bought) -> bool:
    """Return whether a draw has the name of a part of a planned regression."""
    listed = [*b.plan.get("regressions", []), *b.folder.facts["project"].get("analyses", [])]
    named = PARTS.fullmatch(b.draw["what"])
    return named is not None and named[2] in {one["name"] for one in listed}


PLANNED: dict[str, Callable[[Bought], bool]] = {
    "histogram": lambda b: has("schema_share")(b) if b.draw["kind"] == "schema" else by("copula")(b),
    "moments": by("copula"),
    "count-histogram": lambda b: has("counts")(b) and not by("decoder", "copula", "linked")(b),
    "threshold": has("schema_share"),
    "quantiles": has("schema_share"),
    "questions": has("questions", "analyses"),
    "class-features": has("embedding_share"),
    "regression": regressed,
    "clipped-gradient": by("decoder"),
    "logistic-gradient": by("prism"),
    **dict.fromkeys(("step-counts", "echoes", "visit-counts", "return-counts"), by("linked")),
}
"""Purchases that only some plans or methods make. Otherwise, a draw could claim a purchase with a smaller Δ."""
LAPLACE: dict[str, Callable[[Bought], float]] = {
    "counts": lambda b: b.m,
    "count-histogram": lambda b: b.m,
    "questions": lambda b: b.k * squared(b.folder, b.draw),
}
"""L1 sensitivity of the purchases that may have Laplace noise, which a release with δ = 0 needs."""
DELTAS = {name: recipe.delta for name, recipe in RECIPES.items()}
SCORES = {"prism": "feature-score conditional-score edge-score", "privbayes": "feature-score"}
SCORES["fpt-mw"] = "worst-question"
SCORES["linked"] = "edge-score step-score"
"""Scores that each method uses for choices. All other methods use the edge score."""


def epsilon_of(rho: float, delta: float) -> float:
    """Return the smallest ε such that ρ-zCDP implies (ε, δ)-DP (Canonne, Kamath and Steinke 2020, Proposition 12)."""

    def bound(t: float) -> float:
        over = math.exp(t)  # α − 1
        return (1 + over) * rho + math.log(over / (1 + over)) - (math.log(delta) + math.log1p(over)) / over

    if rho <= 0:  # the minimum is at an α beyond floats
        return 0.0
    middle = 0.5 * math.log(-math.log(delta) / max(rho, 1e-300))
    found = minimize_scalar(bound, bounds=(middle - 12, middle + 12), method="bounded", options={"xatol": 1e-9})
    return max(0.0, float(found.fun))


def pure_epsilon(draw: Draw) -> float:
    """Return the ε of a draw's pure guarantee: an exponential mechanism or Laplace noise, of cost ρ."""
    return math.sqrt((8 if draw["kind"] == "choice" else 2) * draw["rho"])


@cache
def tail(sigma: float, least: int) -> float:
    """Return P[Z ≥ least] of a discrete Gaussian, for a positive ``least``.

    For σ ≥ 1 the weights sum to σ√(2π) up to a relative error of 2·exp(−2π²σ²) (Poisson summation).
    """
    if not sigma < 1e5:
        raise ValueError("the noise of a threshold is too large to be checked")
    whole = sigma * math.sqrt(2 * math.pi) if sigma >= 1 else np.exp(-((np.arange(-40, 41) / sigma) ** 2) / 2).sum()
    return float(np.exp(-((np.arange(least, least + 40 * sigma + 2) / sigma) ** 2) / 2).sum() / whole)


def check_budget(folder: Folder) -> None:
    """Check the draws in the statement, one by one and together, against all claims of the statement and
    ``release.json``.
    """
    made, facts = folder.statement, folder.facts
    if not made:
        spent, draws = facts["spent"], [*facts["measurements"], *facts["choices"], *facts.get("schema_bought", [])]
        good = epsilon_of(spent["rho"], spent["delta"]) * (1 - CLOSE) <= spent["epsilon"]
        folder.say(
            2,
            [] if good and adds_up(spent["rho"], draws) else ["ρ does not add up, or gives a larger ε"],
            "ρ adds up, and gives ε",
        )
        folder.note(2, "an old release does not state the recipes of its draws: scales are not checked")
        return
    unit, promise, spent, draws = (made[key] for key in ("unit", "guarantee", "spent", "draws"))
    plan, wrong = facts["project"]["plan"], agrees(folder)
    if facts["method"] not in METHODS or (facts["method"] == "linked") is not bool(folder.linked):
        wrong.append(f"{facts['method']} is not a method for these tables")
    k, n, replace = unit["rows_per_person"], unit["rows"], unit["neighbors"] == "replace-one"
    if type(k) is not int or k < 1 or not (replace or unit["neighbors"] == "add-remove") or (n is None) is replace:
        raise ValueError("the unit is not a whole number of rows per person, with n under replace-one only")
    for i, d in enumerate(draws, 1):
        bought = Bought(d, folder, k, k * (1 + replace), n, plan)
        wrong += [f"draw {i} ({d['what']}): {said}" for said in check_draw(bought)]
    wrong += numbers(folder, draws)
    own, held = ([d for d in draws if d["part"] == part] for part in ("own", "held out"))
    parallel = plan.get("private_evaluation") and all(d["kind"] == "count" for d in held)
    if len(own) + len(held) < len(draws) or (held and not parallel):
        wrong.append("draws are wrongly called parallel: only counts of people held out by the plan are parallel")
    if set(published(facts)) - {d["scale"] for d in draws if d["kind"] == "scores"}:
        wrong.append("scores are published, but no draw has their noise")
    if facts.get("looking") and not held:
        wrong.append("figures of a private evaluation are stated, but no draw from held-out people")
    total, slips = math.fsum(d["rho"] for d in own), math.fsum(d["delta"] for d in own)
    apart = entry(made, "composition.held out")
    if (
        not adds_up(spent["rho"], own)
        or not adds_up(apart["rho"] if apart else 0, held)
        or (held and apart["rho"] > total)
    ):
        wrong.append(f"ρ adds up to {total:.12g}, not to {spent['rho']:.12g}")
    pure, epsilon = plan["accounting"] == "pure", promise["epsilon"]
    if spent["rho"] > promise["rho"]:
        wrong.append(f"ρ = {promise['rho']:g} is promised, but {spent['rho']:g} was spent")
    if pure and held:  # ρ alone would not bound their ε
        wrong.append("a pure release has no draws from held-out people")
    if pure and (slips or promise["delta"] or not math.isclose(promise["rho"], epsilon**2 / 2, rel_tol=CLOSE)):
        folder.say(2, [*wrong, "a pure release has δ = 0, no draw with a δ₀, and at most ρ = ε²/2"])
        return
    if not pure and not slips < promise["delta"] <= (1 / n if n else LARGEST_DELTA) * (1 + CLOSE):
        folder.say(2, [*wrong, f"δ = {promise['delta']:g} is above 1/n, or less than its draws take"])
        return
    least = math.fsum(map(pure_epsilon, own)) if pure else epsilon_of(total, promise["delta"] - slips)
    if not least * (1 - CLOSE) <= spent["epsilon"] <= least * (1 + 1e-6) or least > epsilon * (1 + CLOSE):
        wrong.append(
            f"ρ and δ give ε = {least:.9g}, but {epsilon:.9g} is promised and {spent['epsilon']:.9g} stated as spent"
        )
    if not slips <= spent["delta"] <= slips * (1 + CLOSE):
        wrong.append("δ₀ does not add up")
    if plan["accounting"] != "basic" and facts["method"] not in SPENDS_LESS:
        few = sum(size > 1 for size in folder.sizes.values()) < 4  # with so few pairs, part of ρ may stay unspent
        if least < epsilon * (0.97 if few else 0.99 if slips else 1 - 1e-6):
            wrong.append(f"the draws cost ε = {least:.9g} of {epsilon:g}: draws are missing")
        wrong += [] if few else shares(folder, own, total)
    folder.say(2, wrong, f"{len(draws)} draws: scales, sensitivities, the sum of ρ, and (ε, δ)")


def numbers(folder: Folder, draws: list[Draw]) -> list[str]:
    """Return the purchases that the draws do not make as often as the plan does."""
    method, plan, wanted = folder.facts["method"], folder.facts["project"]["plan"], dict[str, int]()
    found = Counter(d["recipe"] for d in draws)
    if method == "decoder":
        head = folder.arrays("model.npz")[0]
        moved = {name for name, size in head["sizes"] if size > 1} - {*head.get("tables", [])}
        if found["clipped-gradient"] or any(end in moved for _, end in head["edges"]):
            wanted["clipped-gradient"] = int(plan.get("steps", STEPS))
    if method == "linked":
        tables = folder.facts["project"].get("tables", {}).values()
        wanted["echoes"] = int(any(table.get("keep", 0) > 2 for table in tables))
        wanted["visit-counts"] = len(plan.get("count_at_visits") or ())
        wanted["return-counts"] = len(plan.get("count_returns_after") or ())
    return [f"{found[name]} draws of {name}, but the plan has {n}" for name, n in wanted.items() if found[name] != n]


def adds_up(stated: float, draws: list[Draw]) -> bool:
    """Return whether the ρ of all draws add up to the stated value, which is rounded up."""
    exact = sum((Fraction(d["rho"]) for d in draws), Fraction(0))
    return exact <= Fraction(stated) <= exact * (1 + Fraction(1, 10**12))


def check_draw(b: Bought) -> list[str]:
    """Return the errors of one draw."""
    kind, recipe, rho, scale, stated = (b.draw[key] for key in ("kind", "recipe", "rho", "scale", "sensitivity"))
    given, method, calls, slip = b.draw["given"], b.folder.facts["method"], 1.0, 0.0
    if recipe not in RECIPES or kind not in RECIPES[recipe].kinds.split():
        return [f"{recipe} is not a recipe of a {kind}"]
    if kind in ("choice", "scores") and recipe not in SCORES.get(method, "edge-score").split():
        return [f"{method} does not choose by {recipe}"]
    if recipe in PLANNED and not PLANNED[recipe](b):
        return [f"{recipe} is not a purchase of this plan"]
    if not all(math.isfinite(x) and x > 0 for x in (rho, scale, stated)):
        return ["Δ, ρ and scale must be positive"]
    laplace = b.draw.get("noise") == "laplace"
    pure = b.plan["accounting"] == "pure"
    if laplace is not (pure and kind != "choice"):
        return ["a pure release has only Laplace noise and choices, and no other release has Laplace noise"]
    if laplace and recipe not in LAPLACE:
        return [f"{recipe} has no L1 sensitivity"]
    wanted = (LAPLACE if laplace else DELTAS)[recipe](b) * math.sqrt(scores(b) if kind == "scores" else 1)
    if stated < wanted * (1 - CLOSE):
        return [f"Δ is {wanted:.9g} for this unit, not {stated:.9g}"]
    if recipe == "quantiles":  # one choice for all rows, then one level of choices per halving
        calls = 1 + max(halvings(b) - 1, 0) * b.m / b.k
    if recipe == "threshold":
        slip = -math.expm1(b.m * math.log1p(-tail(scale, max(int(given["threshold"]) - b.k, 1))))
    least, most = (delta / math.sqrt((1 if laplace else 2) * rho / calls) for delta in (wanted, stated))
    if not least * (1 - CLOSE) <= scale <= most * (1 + CLOSE):
        return [f"Δ and ρ give the scale {least:.9g}, not {scale:.9g}"]
    good = slip * (1 - 1e-6) <= b.draw["delta"] < (1 if slip else CLOSE)
    return [] if good else [f"δ₀ is at least {slip:.3g}, but only a threshold may use any"]


def shares(folder: Folder, own: list[Draw], total: float) -> list[str]:
    """Find pools and choices that lack the share of ρ published for their method, a sign of omitted draws."""
    project, pairs, method = folder.facts["project"], len(folder.columns) - 1, folder.facts["method"]
    if any(project["plan"].get(key) for key in OTHER_SHARES) or project.get("constraints"):
        return []
    if method == "independent" and any(len(d["columns"]) != 1 for d in own):
        return ["the method independent counts only single columns"]
    choices = [d["rho"] / total for d in own if d["kind"] in ("choice", "scores")]
    # some networks need no choice
    chosen = max(choices, default=0) * pairs if folder.facts["separations"] else math.fsum(choices)
    if not project["dag"]["edges"] and chosen < CHOSEN.get(method, 0) * (1 - 1e-6):
        return [f"choices have {chosen:.4g} of ρ, but the method gives them at least {CHOSEN[method]:.4g}"]
    pool, *published = SHARES.get(method, ("",))
    if method == "prism" and (given := project["plan"].get("pools")):
        published = [given.get(pool, 0) / math.fsum(given.values())]
    network = pool == "network choice"
    each = [d["rho"] / total for d in own if d["pool"] == pool]
    found = max(each, default=0.0) * pairs if network else math.fsum(each)
    drawn = network and (pairs < 2 or project["dag"]["edges"])  # such a network needs no choice
    if drawn or not published or any(math.isclose(found, share, rel_tol=1e-6) for share in published):
        return []
    return [f"the draws of the pool {pool} get {found:.4g} of ρ, but the method gives this pool a different share"]


SAME = """
unit.neighbors        spent.neighbors        project.plan.neighbors
unit.rows_per_person  spent.rows_per_person  project.plan.rows_per_person
unit.person           spent.person           project.plan.person
unit.stated           unit.stated
guarantee.epsilon     asked.epsilon          project.plan.epsilon
guarantee.delta       asked.delta            spent.delta
guarantee.rho         asked.rho
spent.rho             spent.rho
spent.epsilon         spent.epsilon
spent.at_delta        asked.delta
composition.own.rho   spent.rho
accounting.rule       project.plan.accounting
release.name          project.name
release.rows          rows
release.method        method                 project.plan.method
release.method_title  method_title
release.date          date
ledger                ledger
"""
"""Entries of the statement, each with the entries in ``release.json`` that repeat it."""
HELD = ("left", "right", "given", "holds")
KEYS = {
    "": "format private release unit guarantee spent accounting draws composition separations post_processing "
    "not_protected assumed versions ledger approved signer files",
    "release": "name method method_title date rows columns",
    "unit": "neighbors rows_per_person person rows sentence adjacent stated",
    "guarantee": "epsilon delta rho sentence guess_right",
    "spent": "rho delta epsilon at_delta",
    "accounting": "rule currency conversion",
    "composition": "own held_out",
    "composition.own": "rho rule",
    "composition.held out": "rho rule",
    "signer": "algorithm fingerprint",
    "draws": "kind what columns pool part recipe given proof cells candidates sensitivity scale rho delta noise",
}
"""Keys of the statement, by position. Each is compared with another value."""


def entry(whole: Any, path: str) -> Any:
    """Return the value at a path of keys, or None."""
    for key in path.split(".") if path else ():
        whole = (whole or {}).get(key)
    return whole


def differing(table: str, ours: Any, theirs: Any) -> list[str]:
    """Return the paths in ``table`` whose value in ``ours`` differs from a corresponding value in ``theirs``."""
    lines = map(str.split, table.strip().split("\n"))
    return [path for path, *same in lines if any(entry(ours, path) != entry(theirs, other) for other in same)]


def agrees(folder: Folder) -> list[str]:
    """Return the differences between statement, ``release.json`` and plan."""
    facts, made = folder.facts, folder.statement
    lists = map(facts.get, ("measurements", "choices", "schema_bought"))
    bought = [d for draws in (*lists, entry(facts, "looking.measurements")) for d in draws or []]
    draws = (
        [(d["rho"], d.get("sigma", d.get("scale"))) for d in bought],
        [(d["rho"], d["scale"]) for d in made["draws"]],
    )
    pairs = [
        ("draws", *draws),
        ("plan's δ", [facts["project"]["plan"]["delta"] or facts["asked"]["delta"]], [facts["asked"]["delta"]]),
        ("assumptions", facts["promises"], made["assumed"][: len(facts["promises"])]),
        ("columns", [c["name"] for c in facts["project"]["schema"]], made["release"]["columns"]),
        ("approval", [facts["project"].get("signoff", {})], [made["approved"]]),
        ("separations", [{k: s[k] for k in HELD} for s in facts["separations"]], made["separations"]),
    ]
    wrong = [what for what, ours, theirs in pairs if sorted(map(str, ours)) != sorted(map(str, theirs))]
    known = {path: {key.replace("_out", " out") for key in keys.split()} for path, keys in KEYS.items()}
    parts = [(path, part) for path in KEYS for part in (made["draws"] if path == "draws" else [entry(made, path)])]
    odd = [key for path, part in parts for key in {*(part or {})} - known[path]]
    extra = [f"the statement has the unknown key {key!r}" for key in odd]
    return extra + [f"statement and release.json differ ({what})" for what in (*differing(SAME, made, facts), *wrong)]
