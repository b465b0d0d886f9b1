"""Check 2: every scale follows from its sensitivity and ρ, the ρ add up, and (ε, δ) follows from their sum."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from .folder import Folder

CLOSE = 1e-9
LARGEST_DELTA = 1e-3
SPENDS_LESS = ("fpt-mw",)
ONE_WAY = {**dict.fromkeys(("mst", "privci", "prefair"), (1 / 3,)), "prism": (0.05, 0.1)}
NETWORK = 0.3
"""Shares of ρ that methods publish for one-way counts, and privbayes for its choices."""
OTHER_SHARES = (
    *("schema_share", "question_share", "regression_share", "analysis_share", "embedding_share"),
    *("test_drawing", "explain", "width", "targets"),
)
Draw = dict[str, Any]


def _cell(k: int, m: int, g: Draw) -> float:  # noqa: ARG001
    return math.sqrt(k * m)


RECIPES: dict[str, tuple[set[str], Callable[[int, int, Draw], float]]] = {
    "counts": ({"count"}, _cell),
    "histogram": ({"sums", "schema"}, _cell),
    "moments": ({"sums"}, _cell),
    "count-histogram": ({"sums"}, _cell),
    "threshold": ({"schema"}, _cell),
    "quantiles": ({"schema"}, lambda k, _, __: k),
    "worst-question": ({"choice"}, lambda k, _, __: k),
    "questions": ({"sums"}, lambda k, _, g: k * math.sqrt(g["squared"])),
    "class-features": ({"sums"}, lambda k, m, g: k * (math.sqrt(4 - 2 * g["marked"]) if m > k else 1)),
    "regression": ({"sums"}, lambda k, _, g: k * math.sqrt(g["squared"])),
    "clipped-gradient": ({"sums"}, lambda _, m, g: m * g["clip"]),
    "logistic-gradient": ({"gradient"}, lambda _, m, g: m * math.sqrt(g["columns"] * (1 if g["classes"] == 2 else 2))),
    "step-counts": ({"sums"}, _cell),
    "echoes": ({"sums"}, lambda k, _, g: k * math.sqrt(g["columns"])),
    "step-score": ({"choice"}, lambda _, m, __: m),
    "edge-score": ({"choice", "scores"}, lambda _, m, __: m),
    "conditional-score": ({"choice", "scores"}, lambda _, m, __: 2 * m),
    "feature-score": ({"choice"}, lambda k, m, g: 3 * k + 2 * k * k / g["rows"] if "rows" in g else 2 * m),
}
"""The kinds of draws of each recipe, and its Δ in rows: k rows per person, m = 2k (replace-one) or k (add-remove)."""
SCORES = {
    "prism": "feature-score conditional-score edge-score",
    "privbayes": "feature-score",
    "fpt-mw": "worst-question",
    "linked": "edge-score step-score",
}
"""The scores that a method chooses by; all others use the edge score."""


def epsilon_of(rho: float, delta: float) -> float:
    """The least ε such that ρ-zCDP implies (ε, δ)-DP (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    if rho <= 0:
        return 0.0

    def bound(t: float) -> float:
        over = math.exp(t)  # α − 1
        return (1 + over) * rho + math.log(over / (1 + over)) - (math.log(delta) + math.log1p(over)) / over

    low = 0.5 * math.log(-math.log(delta) / rho) - 12
    high = low + 24
    for _ in range(120):  # a bound with one minimum: keep two thirds around it
        first, second = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, second) if bound(first) < bound(second) else (first, high)
    return max(0.0, bound((low + high) / 2))


def tail(sigma: float, least: int) -> float:
    """P[Z ≥ least] of a discrete Gaussian, for a positive ``least``."""
    if not least + 40 * sigma < 1e7:
        raise ValueError("a threshold and its noise are too large to be checked")
    weights = [math.exp(-((z / sigma) ** 2) / 2) for z in range(least + math.ceil(40 * sigma) + 2)]
    return math.fsum(weights[least:]) / (2 * math.fsum(weights) - 1)


def check_budget(folder: Folder) -> None:
    """The draws of the statement, one by one and together, against all that statement and ``release.json`` claim."""
    made, plan, method = folder.statement, folder.facts["project"]["plan"], folder.facts["method"]
    if not made:
        _check_old(folder)
        return
    unit, promise, spent = made["unit"], made["guarantee"], made["spent"]
    replace, k, rows = unit["neighbors"] == "replace-one", unit["rows_per_person"], unit["rows"]
    wrong = _agrees(folder)
    if type(k) is not int or k < 1 or not (replace or unit["neighbors"] == "add-remove") or (rows is None) is replace:
        wrong.append("the unit cannot be: a whole number of rows per person, and n under replace-one only")
    for i, draw in enumerate(made["draws"], 1):
        wrong += [f"draw {i} ({draw['what']}): {said}" for said in _draw(draw, 2 * k if replace else k, unit, method)]
    own, held = ([d for d in made["draws"] if d["part"] == part] for part in ("own", "held out"))
    parallel = plan.get("private_evaluation") and all(d["kind"] == "count" for d in held)
    if len(own) + len(held) < len(made["draws"]) or (held and not parallel):
        wrong.append("draws are called parallel that are not: only counts of people held out by the plan are")
    total, apart = (sum((Fraction(d["rho"]) for d in part), Fraction(0)) for part in (own, held))
    if not _rounded_up(spent["rho"], total) or apart > spent["rho"]:
        wrong.append(f"ρ adds up to {float(total):.12g} and {float(apart):.12g}, not to {spent['rho']:.12g}")
    slips = math.fsum(d["delta"] for d in own)
    left = promise["delta"] - slips
    if left <= 0 or promise["delta"] > (1 / rows if replace and rows else LARGEST_DELTA) * (1 + CLOSE):
        folder.say(2, [*wrong, f"δ = {promise['delta']:g} is above 1/n, or less than its draws take"], "")
        return
    least, epsilon = epsilon_of(float(total), left), promise["epsilon"]
    if not (least * (1 - CLOSE) <= spent["epsilon"] <= least * (1 + 1e-6) and least <= epsilon * (1 + CLOSE)):
        wrong.append(f"ρ and δ give ε = {least:.9g}; {epsilon:.9g} is promised, and {spent['epsilon']:.9g} spent")
    if not slips <= spent["delta"] <= slips * (1 + CLOSE):
        wrong.append("δ₀ does not add up")
    if plan["accounting"] == "zcdp" and method not in SPENDS_LESS:
        if least < epsilon * (0.99 if slips else 1 - 1e-6):
            wrong.append(f"the draws cost ε = {least:.9g} of {epsilon:g}: draws are missing")
        wrong += _shares(folder.facts, own, float(total))
    folder.say(2, wrong, f"{len(made['draws'])} draws: scales, sensitivities, the sum of ρ, and (ε, δ)")


def _draw(draw: Draw, moved: int, unit: Draw, method: str) -> list[str]:
    """Errors of one draw; ``moved`` is how many rows one person can move."""
    kind, recipe, rho, scale, given = (draw[key] for key in ("kind", "recipe", "rho", "scale", "given"))
    kinds, delta = RECIPES.get(recipe, (set(), _cell))
    k, scores = unit["rows_per_person"], SCORES.get(method, "edge-score").split()
    if kind not in kinds or (kind in ("choice", "scores") and recipe not in scores):
        return [f"a {kind} of {method} is not made by {recipe}"]
    if not all(math.isfinite(x) and x > 0 for x in (rho, scale, draw["sensitivity"])):
        return ["Δ, ρ and scale must be positive"]
    if recipe == "feature-score" and given.get("rows") != unit["rows"]:
        return ["its number of rows is not that of the unit"]
    wanted = delta(k, moved, given) * math.sqrt(draw["cells"] if kind == "scores" else 1)
    if not wanted * (1 - CLOSE) <= draw["sensitivity"] <= wanted * (1 + 2e-3) + 2e-3:
        return [f"Δ is {wanted:.9g} for this unit, not {draw['sensitivity']:.9g}"]
    levels = max(int(given.get("cuts", 1)) - 1, 0).bit_length()  # quantiles: each level of halving is a choice
    each = rho / (1 + (levels - 1) * moved / k) if levels else rho
    if (
        not wanted / math.sqrt(2 * each) * (1 - CLOSE)
        <= scale
        <= draw["sensitivity"] / math.sqrt(2 * each) * (1 + CLOSE)
    ):
        return [f"Δ and ρ give the scale {wanted / math.sqrt(2 * each):.9g}, not {scale:.9g}"]
    if recipe != "threshold":
        return ["only a threshold takes a δ₀"] if draw["delta"] else []
    slip = -math.expm1(moved * math.log1p(-tail(scale, max(int(given["threshold"]) - k, 1))))
    return [] if slip * (1 - 1e-6) <= draw["delta"] < 1 else [f"a new text passes the threshold with chance {slip:.3g}"]


def _shares(facts: Draw, own: list[Draw], total: float) -> list[str]:
    """Where pools do not have the shares of ρ that their method publishes: a sign of draws that were left out."""
    plan, method = facts["project"]["plan"], facts["method"]
    if any(plan.get(key) for key in OTHER_SHARES) or facts["project"].get("constraints"):
        return []
    ones, choices = ([d["rho"] for d in own if d["pool"] == pool] for pool in ("one-way", "network choice"))
    wrong = []
    if method in ONE_WAY and not any(math.isclose(math.fsum(ones) / total, s, rel_tol=1e-6) for s in ONE_WAY[method]):
        wrong.append(f"one-way counts have {math.fsum(ones) / total:.4g} of ρ, and {method} gives them another share")
    columns = len([c for c in facts["project"]["schema"] if c["kind"] != "identifier"])
    if method == "privbayes" and columns > 2 and not facts["project"]["dag"]["edges"]:
        each = NETWORK / (columns - 1) * total
        if not choices or not all(math.isclose(rho, each, rel_tol=1e-6) for rho in choices):
            wrong.append("the network's choices do not have the share of ρ that privbayes gives them")
    return wrong


def _rounded_up(said: float, exact: Fraction) -> bool:
    return exact <= Fraction(said) <= exact * (1 + Fraction(1, 10**12))


def _agrees(folder: Folder) -> list[str]:
    """Where statement, ``release.json`` and plan differ."""
    facts, made = folder.facts, folder.statement
    plan, unit, promise, spent = facts["project"]["plan"], made["unit"], made["guarantee"], facts["spent"]
    listed = [(tuple(m["columns"]), m["kind"], m["rho"], m["sigma"]) for m in facts["measurements"]]
    listed += [(tuple(c["chosen"]), "choice", c["rho"], c["scale"]) for c in facts["choices"]]
    listed += [((s["column"],), "schema", s["rho"], s["scale"]) for s in facts.get("schema_bought", [])]
    looks = [
        (tuple(m["columns"]), "count", m["rho"], m["sigma"])
        for m in (facts.get("looking") or {"measurements": []})["measurements"]
    ]
    said = {
        p: [(tuple(d["columns"]), d["kind"], d["rho"], d["scale"]) for d in made["draws"] if d["part"] == p]
        for p in ("own", "held out")
    }
    pairs: list[tuple[Any, Any, str]] = [
        (Counter(listed), Counter(said["own"]), "draws"),
        (Counter(looks), Counter(said["held out"]), "draws held out"),
        *((unit[key], spent[key], key) for key in ("neighbors", "rows_per_person", "person")),
        *((unit[key], plan.get(key), key) for key in ("neighbors", "rows_per_person", "person")),
        *((promise[key], facts["asked"][key], key) for key in ("epsilon", "delta", "rho")),
        *((made["spent"][key], spent[key], f"{key} spent") for key in ("rho", "epsilon")),
        (promise["epsilon"], plan.get("epsilon"), "plan's ε"),
        (promise["delta"], plan["delta"] or promise["delta"], "plan's δ"),
        (
            [{k: s[k] for k in ("left", "right", "given", "holds")} for s in facts["separations"]],
            made["separations"],
            "separations",
        ),
        *((made["release"][key], facts[key], key) for key in ("rows", "method", "date")),
        (made["unit"]["stated"], facts["unit"]["stated"], "people"),
        (made["assumed"][: len(facts["promises"])], facts["promises"], "assumptions"),
        (made["ledger"], facts["ledger"], "ledger entries"),
        (made["approved"], facts["project"].get("signoff", {}), "approval"),
    ]
    return [f"statement and release.json differ ({what})" for a, b, what in pairs if a != b]


def _check_old(folder: Folder) -> None:
    """A release without a statement: the counts' σ and the sum of ρ, from ``release.json`` alone."""
    facts, spent = folder.facts, folder.facts["spent"]
    k, draws = (
        spent.get("rows_per_person", 1),
        [*facts["measurements"], *facts["choices"], *facts.get("schema_bought", [])],
    )
    cell = _cell(k, 2 * k if spent["neighbors"] == "replace-one" else k, {})
    counts = [m for m in facts["measurements"] if m["columns"] and m.get("kind", "count") == "count"]
    off = [m for m in counts if not math.isclose(m["sigma"] * math.sqrt(2 * m["rho"]), cell, rel_tol=CLOSE)]
    wrong = [f"σ of {' × '.join(m['columns'])} is not Δ/√(2ρ)" for m in off]
    if not _rounded_up(spent["rho"], sum((Fraction(d["rho"]) for d in draws), Fraction(0))):
        wrong.append("ρ does not add up")
    if epsilon_of(spent["rho"], spent["delta"]) * (1 - CLOSE) > spent["epsilon"]:
        wrong.append("ρ and δ give a larger ε")
    folder.say(2, wrong, "counts, ρ and ε; an old release does not state the sensitivities of its choices")
