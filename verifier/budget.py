"""Check 2: every scale follows from its sensitivity and ρ, the ρ add up, and (ε, δ) follows from their sum."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

from scipy.optimize import minimize_scalar

from .folder import Folder

CLOSE = 1e-9
"""Relative difference that rounding may make."""
LARGEST_DELTA = 1e-3
RECIPES: dict[str, set[str]] = {
    "count": {"counts"},
    "scores": {"edge-score", "feature-score", "conditional-score"},
    "choice": {"edge-score", "feature-score", "conditional-score", "worst-question"},
    "gradient": {"logistic-gradient"},
    "sums": {"histogram", "moments", "questions", "count-histogram", "clipped-gradient"},
    "schema": {"histogram", "quantiles", "threshold"},
}
"""The recipes that each kind of draw may name."""
CHOICES: dict[str, set[str]] = {
    "mst": {"edge-score"},
    "privci": {"edge-score"},
    "prefair": {"edge-score"},
    "workload": {"edge-score"},
    "copula": {"edge-score"},
    "privbayes": {"feature-score"},
    "prism": {"feature-score", "conditional-score", "edge-score"},
    "fpt-mw": {"worst-question"},
}
"""The scores that each method chooses by."""


def sensitivity(draw: dict[str, Any], replace: bool, k: int, rows: int | None) -> float:
    """Δ in rows of a draw's recipe, by this checker's own table; the README derives each line."""
    recipe, given = draw["recipe"], draw["given"]
    cell = math.sqrt(2) * k if replace else float(k)
    moved = 2 * k if replace else k
    if recipe in ("counts", "histogram", "moments", "count-histogram", "threshold"):
        return cell
    if recipe == "quantiles":
        return float(k)
    if recipe == "worst-question":
        return float(k)
    if recipe == "questions":
        return k * math.sqrt(given["squared"])
    if recipe == "clipped-gradient":
        return float(moved * given["clip"])
    if recipe == "logistic-gradient":
        return moved * math.sqrt(given["columns"] * (1 if given["classes"] == 2 else 2))
    if recipe == "edge-score":
        one = float(moved)
    elif recipe == "conditional-score" or not replace or rows is None:
        one = 2.0 * moved
    else:
        one = 3 * k + 2 * k * k / rows
    return one * math.sqrt(draw["cells"] if draw["kind"] == "scores" else 1)


def epsilon_of(rho: float, delta: float) -> float:
    """The least ε such that ρ-zCDP implies (ε, δ)-DP (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    if rho <= 0:
        return 0.0

    def bound(t: float) -> float:
        over = math.exp(t)  # α − 1
        return (1 + over) * rho + math.log(over / (1 + over)) - (math.log(delta) + math.log1p(over)) / over

    start = 0.5 * math.log(-math.log(delta) / rho)
    found = minimize_scalar(bound, bounds=(start - 12, start + 12), method="bounded", options={"xatol": 1e-10})
    return max(0.0, float(found.fun))


def tail(sigma: float, least: int) -> float:
    """P[Z ≥ least] of a discrete Gaussian."""
    top = max(least, 0) + math.ceil(40 * sigma) + 2
    weights = [math.exp(-((z / sigma) ** 2) / 2) for z in range(top)]
    whole = 2 * math.fsum(weights) - 1
    return math.fsum(weights[least:]) / whole if least > 0 else 1.0


def check_budget(folder: Folder) -> None:
    """The draws of the statement, one by one and together, against the claims of statement and ``release.json``."""
    made = folder.statement
    if made is None:
        _check_old(folder)
        return
    unit, wrong = made["unit"], list[str]()
    replace, k, rows = unit["neighbors"] == "replace-one", unit["rows_per_person"], unit["rows"]
    plan, method = folder.facts["project"]["plan"], folder.facts["method"]
    if unit["neighbors"] not in ("replace-one", "add-remove") or type(k) is not int or k < 1:
        wrong.append("the unit cannot be")
    if (rows is None) is replace:
        wrong.append("the number of rows is public under replace-one only")
    for i, draw in enumerate(made["draws"], 1):
        if said := _draw(draw, replace, k, rows, method):
            wrong.append(f"draw {i} ({draw['what']}): {said}")
    own = [d for d in made["draws"] if d["part"] == "own"]
    held = [d for d in made["draws"] if d["part"] == "held out"]
    if len(own) + len(held) < len(made["draws"]):
        wrong.append("a draw is from no part of the rows")
    if held and not plan.get("private_evaluation"):
        wrong.append("draws are called parallel, and the plan holds no one out")
    if any(d["kind"] != "count" for d in held):
        wrong.append("a draw that is no count is called parallel")
    total, apart = (sum((Fraction(d["rho"]) for d in part), Fraction(0)) for part in (own, held))
    if not _rounded_up(made["spent"]["rho"], total):
        wrong.append(f"ρ adds up to {float(total):.12g}, not to {made['spent']['rho']:.12g}")
    if apart > Fraction(made["spent"]["rho"]):
        wrong.append("those held out cost more ρ than the release")
    slips = math.fsum(d["delta"] for d in own)
    promise, spent = made["guarantee"], made["spent"]
    left = promise["delta"] - slips
    if not left > 0 or promise["delta"] > (1 / rows if replace and rows else LARGEST_DELTA) * (1 + CLOSE):
        wrong.append(f"δ = {promise['delta']:g} is too large for this unit, or less than its draws take")
    else:
        least = epsilon_of(float(total), left)
        if not least * (1 - CLOSE) <= spent["epsilon"] <= least * (1 + 1e-6) + 1e-12:
            wrong.append(f"ρ and δ give ε = {least:.9g}, and the statement says {spent['epsilon']:.9g} was spent")
        if least > promise["epsilon"] * (1 + CLOSE):
            wrong.append(f"ρ and δ give ε = {least:.9g}, more than the ε = {promise['epsilon']:g} that is promised")
        if not 0 <= slips <= spent["delta"] <= slips * (1 + CLOSE) + 1e-300:
            wrong.append("δ₀ does not add up")
        if method not in ("fpt-mw",) and least < promise["epsilon"] * 0.98 and plan["accounting"] == "zcdp":
            wrong.append(f"the draws cost ε = {least:.6g} of {promise['epsilon']:g}: draws are missing")
    wrong += _agrees(folder, own, held)
    folder.add(2, not wrong, "; ".join(wrong[:5]) or f"{len(made['draws'])} draws: scales, sensitivities, ρ and (ε, δ)")


def _draw(draw: dict[str, Any], replace: bool, k: int, rows: int | None, method: str) -> str:
    """What is wrong with one draw; empty if nothing is."""
    kind, recipe, rho, scale, given = (draw[key] for key in ("kind", "recipe", "rho", "scale", "given"))
    if recipe not in RECIPES.get(kind, ()) or (kind in ("choice", "scores") and recipe not in CHOICES.get(method, ())):
        return f"a {kind} of {method} is not made by {recipe}"
    if not (rho > 0 and scale > 0 and all(math.isfinite(x) for x in (rho, scale, draw["sensitivity"]))):
        return "ρ and scale must be positive"
    if recipe == "feature-score" and given.get("rows") != rows:
        return "its number of rows is not that of the unit"
    wanted = sensitivity(draw, replace, k, rows)
    if not wanted * (1 - CLOSE) <= draw["sensitivity"] <= wanted * (1 + 2e-3) + 2e-3:
        return f"Δ is {wanted:.9g} for this unit, not {draw['sensitivity']:.9g}"
    each = rho
    if recipe == "quantiles":
        levels = max(int(given["cuts"]) - 1, 0).bit_length()
        each = rho / (1 + (levels - 1) * (2 if replace else 1))
    least = wanted / math.sqrt(2 * each)
    if not least * (1 - CLOSE) <= scale <= draw["sensitivity"] / math.sqrt(2 * each) * (1 + CLOSE):
        return f"Δ and ρ give the scale {least:.9g}, not {scale:.9g}"
    if (recipe == "threshold") != (draw["delta"] > 0):
        return "only a threshold takes a δ₀"
    if recipe == "threshold":
        keys = 2 * k if replace else k
        slip = -math.expm1(keys * math.log1p(-tail(scale, int(given["threshold"]) - k)))
        if not slip * (1 - 1e-6) <= draw["delta"] < 1:
            return f"the threshold lets a text through with probability {slip:.3g}, more than δ₀ = {draw['delta']:.3g}"
    return ""


def _rounded_up(said: float, exact: Fraction) -> bool:
    return exact <= Fraction(said) <= exact * (1 + Fraction(1, 10**12))


def _agrees(folder: Folder, own: list[dict[str, Any]], held: list[dict[str, Any]]) -> list[str]:
    """Statement and ``release.json`` list the same draws, unit and claims."""
    facts, made = folder.facts, folder.statement or {}
    plan, spent, out = facts["project"]["plan"], facts["spent"], list[str]()
    listed = [(tuple(m["columns"]), m["kind"], m["rho"], m["sigma"]) for m in facts["measurements"]]
    listed += [(tuple(c["chosen"]), "choice", c["rho"], c["scale"]) for c in facts["choices"]]
    listed += [((s["column"],), "schema", s["rho"], s["scale"]) for s in facts.get("schema_bought", [])]
    if Counter(listed) != Counter((tuple(d["columns"]), d["kind"], d["rho"], d["scale"]) for d in own):
        out.append("release.json lists other draws")
    looks = [(tuple(m["columns"]), m["rho"], m["sigma"]) for m in (facts.get("looking") or {}).get("measurements", [])]
    if Counter(looks) != Counter((tuple(d["columns"]), d["rho"], d["scale"]) for d in held):
        out.append("release.json lists other draws from those held out")
    unit = made["unit"]
    for key in ("neighbors", "rows_per_person", "person"):
        if not unit[key] == spent[key] == plan.get(key):
            out.append(f"statement, release.json and plan name different units ({key})")
    claims = [
        (made["guarantee"], facts["asked"], ("epsilon", "delta", "rho")),
        (made["spent"], spent, ("epsilon", "rho")),
    ]
    for said, other, keys in claims:
        out += [f"statement and release.json say another {key}" for key in keys if said[key] != other[key]]
    if made["guarantee"]["epsilon"] != plan.get("epsilon") or plan.get("delta") not in (
        None,
        made["guarantee"]["delta"],
    ):
        out.append("the plan asks for another (ε, δ)")
    if made["separations"] != [{k: s[k] for k in ("left", "right", "given", "holds")} for s in facts["separations"]]:
        out.append("statement and release.json name different separations")
    if made["release"]["rows"] != facts["rows"] or made["release"]["method"] != facts["method"]:
        out.append("statement and release.json describe different tables")
    return out


def _check_old(folder: Folder) -> None:
    """A release without a statement: the counts' scales and the sum of ρ, from ``release.json`` alone."""
    facts, spent = folder.facts, folder.facts["spent"]
    draws = [*facts["measurements"], *facts["choices"], *facts.get("schema_bought", [])]
    replace = spent["neighbors"] == "replace-one"
    cell = (math.sqrt(2) if replace else 1.0) * spent.get("rows_per_person", 1)
    wrong = [
        f"σ of {' × '.join(m['columns'])} is not Δ/√(2ρ)"
        for m in facts["measurements"]
        if m.get("kind", "count") == "count" and abs(m["sigma"] * math.sqrt(2 * m["rho"]) / cell - 1) > CLOSE
    ]
    if not _rounded_up(spent["rho"], sum((Fraction(d["rho"]) for d in draws), Fraction(0))):
        wrong.append("ρ does not add up")
    least = epsilon_of(spent["rho"], spent["delta"])
    if not facts.get("schema_bought") and not least * (1 - CLOSE) <= spent["epsilon"]:
        wrong.append(f"ρ and δ give ε = {least:.9g}")
    said = "counts, ρ and ε; sensitivities of choices are not stated in an old release"
    folder.add(2, not wrong, "; ".join(wrong[:5]) or said)
