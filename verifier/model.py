"""Check 4: the model is the fit of the noisy counts, and every separation holds in it exactly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .folder import Folder, arrays
from .noise import Answers, Array, Clique, Counts, components, variance

TOLERANCE = 1e-3
SMOOTHING, MOST_SMOOTHING, NOISY, FIRM, WIDEST = 1.0, 3.0, 10.0, 5.0, 2.0
"""The documented constants of the objective (core/models/graphical/estimation.py, shrinkage.py)."""
MOST_CELLS = 20_000_000


@dataclass(frozen=True)
class Tree:
    """p(v | given) for each column, in the order in which rows are drawn. Axes: ``given``, then the column."""

    nodes: tuple[tuple[str, tuple[str, ...], Array], ...]
    log_partition: float


@dataclass(frozen=True)
class Model:
    """A log-linear model: ``potentials`` over cliques of columns of ``sizes``. ``visible`` columns are drawn."""

    sizes: Mapping[str, int]
    potentials: Mapping[Clique, Array]
    total: float
    head: Mapping[str, Any]
    visible: tuple[str, ...]
    links: tuple[tuple[str, str], ...] | None = None
    first: Mapping[Clique, Array] | None = None


def read_model(folder: Folder) -> Model | None:
    """``model.npz`` where it is a graphical model; None for another kind."""
    if not folder.has("model.npz"):
        return None
    head, found = arrays(folder.read("model.npz"), "model.npz")
    if head.get("format") != "espalier-model/1":
        return None
    sizes = {str(n): int(s) for n, s in head["sizes"]}
    tables = {tuple(c): found[f"potential_{i}"].astype(float) for i, c in enumerate(head["potentials"])}
    for clique, table in tables.items():
        if table.shape != tuple(sizes[n] for n in clique) or np.isnan(table).any() or np.isposinf(table).any():
            raise ValueError(f"the potential of {' × '.join(clique)} has another shape, or is no number")
    first = (
        {tuple(c): found[f"first_{i}"].astype(float) for i, c in enumerate(head["first"])} if "first" in head else None
    )
    visible, links = tuple(sizes), None
    if "visible" in found:
        import json

        names = json.loads(found["visible"].tobytes())
        visible, links = tuple(names["visible"]), tuple((a, b) for a, b in names["links"])
    if {n: sizes[n] for n in visible} != folder.sizes:
        raise ValueError("the model has other columns or categories than the project")
    return Model(sizes, tables, float(head["total"]), head, visible, links, first)


def neighbours(cliques: Iterable[Iterable[str]], names: Iterable[str]) -> dict[str, set[str]]:
    """The graph in which each clique is complete."""
    graph: dict[str, set[str]] = {n: set() for n in names}
    for clique in map(set, cliques):
        for name in clique:
            graph[name] |= clique - {name}
    return graph


def drawing_order(sizes: Mapping[str, int], cliques: Iterable[Clique], given: Iterable[str] = ()) -> list[str]:
    """``given``, if it is an order of the columns; else one by least fill-in."""
    known = [n for n in given if n in sizes]
    if set(known) >= {n for n, s in sizes.items() if s > 1}:
        return known + [n for n in sizes if n not in known]
    graph, out = neighbours(cliques, sizes), list[str]()
    while graph:
        name = min(graph, key=lambda n: math.prod(sizes[m] for m in (n, *graph[n])))
        around = graph.pop(name)
        for other in around:
            graph[other] |= around - {other}
            graph[other].discard(name)
        out.append(name)
    return out[::-1]


def calibrate(sizes: Mapping[str, int], potentials: Mapping[Clique, Array], order: Iterable[str] = ()) -> Tree:
    """Eliminate the columns one by one, the last of ``order`` first, and keep what each is given the others."""
    placed = drawing_order(sizes, potentials, order)
    rank = {n: i for i, n in enumerate(placed)}
    graph = neighbours(potentials, sizes)
    buckets: dict[str, list[tuple[Clique, Array]]] = {n: [] for n in placed}
    constant = 0.0
    for clique, table in potentials.items():
        if clique:
            buckets[max(clique, key=rank.__getitem__)].append((clique, np.maximum(table, -1e300)))
    nodes = []
    for name in reversed(placed):
        given = tuple(sorted(graph[name], key=rank.__getitem__))
        for other in given:
            graph[other] |= set(given) - {other}
            graph[other].discard(name)
        held = (*given, name)
        if math.prod(sizes[n] for n in held) > MOST_CELLS:
            raise ValueError(f"a table of the model has more than {MOST_CELLS:,} cells")
        table = np.zeros([sizes[n] for n in held])
        for clique, part in buckets[name]:
            table += _laid_out(part, clique, held)
        peak = table.max(axis=-1, keepdims=True)
        np.exp(table - peak, out=table)
        mass = table.sum(axis=-1, keepdims=True)
        nodes.append((name, given, table / mass))
        message = (peak + np.log(mass))[..., 0]
        if given:
            buckets[given[-1]].append((given, np.maximum(message, -1e300)))
        else:
            constant += float(message)
    return Tree(tuple(nodes[::-1]), constant)


def _laid_out(table: Array, clique: Clique, held: Clique) -> Array:
    """A table over ``clique`` in a shape that is added to one over ``held``."""
    order = sorted(range(len(clique)), key=lambda i: held.index(clique[i]))
    moved = table.transpose(order)
    return moved.reshape([moved.shape[[clique[i] for i in order].index(n)] if n in clique else 1 for n in held])


def marginals(tree: Tree, wanted: Iterable[Clique]) -> dict[Clique, Array]:
    """Probabilities of cliques, each inside one node of the tree."""
    nodes: dict[str, tuple[Clique, Array]] = {}
    for name, given, table in tree.nodes:
        if given:
            held, above = nodes[given[-1]]
            base = above.sum(axis=tuple(i for i, n in enumerate(held) if n not in given))
            base = base.transpose([[n for n in held if n in given].index(n) for n in given])
            table = table * base[..., None]
        nodes[name] = ((*given, name), table)
    rank = {name: i for i, (name, _, _) in enumerate(tree.nodes)}
    out = {}
    for clique in wanted:
        held, table = nodes[max(clique, key=rank.__getitem__)]
        kept = [n for n in held if n in clique]
        found = table.sum(axis=tuple(i for i, n in enumerate(held) if n not in clique))
        out[clique] = found.transpose([kept.index(n) for n in clique])
    return out


def pooled(counts: list[Counts], total: float) -> tuple[dict[Clique, Array], dict[Clique, float]]:
    """The best unbiased estimate of every component from all counts, and its precision."""
    sums: dict[Clique, Any] = {}
    weight: dict[Clique, float] = {}
    for c in counts:
        for subset, part in components(c.values, c.clique).items():
            if subset:
                w = 1 / variance(c, subset)
                sums[subset] = sums.get(subset, 0.0) + w * part
                weight[subset] = weight.get(subset, 0.0) + w
    return {a: s / weight[a] for a, s in sums.items()}, weight


def noise_scale(counts: list[Counts]) -> float:
    """The median σ of the cliques that no other holds, repeated counts pooled."""
    precision: dict[frozenset[str], float] = {}
    for c in counts:
        key = frozenset(n for n, s in zip(c.clique, c.values.shape, strict=True) if s > 1)
        if key:
            precision[key] = precision.get(key, 0.0) + 1 / variance(c, tuple(key))
    return float(np.median([p**-0.5 for q, p in precision.items() if not any(q < other for other in precision)]))


def optimality(
    counts: list[Counts],
    centre: list[Counts],
    total: float,
    price: float,
    potentials: Mapping[Clique, Array],
    sizes: Mapping[str, int],
    order: Iterable[str],
) -> tuple[float, float]:
    """(gap, objective) of a model: the Fenchel gap of f(μ) + λ N KL(p ‖ q) at its potentials θ.

    With f's precision w_a and estimate û_a of each component a, the gap is Σ_a w_a/2 ‖u_a − û_a + λ(τ_a − τ⁰_a)/w_a‖²,
    τ_a the components of θ and τ⁰_a those of q. It is 0 at the minimum only, and bounds the distance to it.
    """
    cliques = [c.clique for c in counts]
    fitted = marginals(calibrate(sizes, potentials, order), cliques)
    best, weight = pooled(counts, total)
    held, _ = pooled(centre, total)
    tau: dict[Clique, Any] = {}
    for clique, table in potentials.items():
        if np.isneginf(table).any():
            raise ValueError("cells without probability")
        for subset, part in components(table, clique).items():
            gone = math.prod(sizes[n] for n in clique if n not in subset)
            ordered = tuple(n for n in sizes if n in subset)
            tau[ordered] = tau.get(ordered, 0.0) + part.transpose([subset.index(n) for n in ordered]) / gone
    for name in sizes:
        if (name,) in held and sizes[name] > 1:
            q = np.log(np.maximum(total / sizes[name] + held[(name,)], 1.0))
            tau[(name,)] = tau.get((name,), 0.0) - (q - q.mean())
    gap = objective = 0.0
    seen: set[Clique] = set()
    for c in counts:
        parts = components(total * fitted[c.clique], c.clique)
        objective += float(np.sum((total * fitted[c.clique] - c.values) ** 2)) / (2 * c.sigma**2)
        for subset, u in parts.items():
            if subset and subset not in seen:
                seen.add(subset)
                away = u - best[subset] + price * tau.get(subset, 0.0) / weight[subset]
                gap += weight[subset] / 2 * float(np.sum(away**2))
    beyond = sum(float(np.sum(np.square(t))) for a, t in tau.items() if a and a not in weight)
    return gap + total * beyond, objective


def check_model(folder: Folder, model: Model | None, answers: Answers | None) -> None:
    """The model's separations, and its optimality for the noisy counts."""
    if model is None:
        kind = "no graphical model: its fit is not recomputed"
        folder.add(4, None, kind)
        return
    _separations(folder, model)
    if answers is None or answers.asked or model.links is not None:
        folder.add(4, None, "the fit is not recomputed: questions or counts were fitted together with the marginals")
        return
    rows = answers.rows
    weights = [1 / (c.values.size * c.sigma**2) for c in answers.counts]
    measured = sum(w * c.values.sum() for w, c in zip(weights, answers.counts, strict=True)) / sum(weights)
    total = max(float(rows if rows is not None else measured), 1.0)
    wrong = []
    if not math.isclose(total, model.total, rel_tol=1e-9):
        wrong.append(f"the counts give {total:.6g} rows, the model has {model.total:.6g}")
    sizes, potentials = _grouped(model, answers)
    counts = [_in_order(c, sizes) for c in answers.counts]
    wide = [c.sigma * c.values.size for c in counts if len(c.clique) > 1]
    mean = total if rows is not None else float(np.mean([c.values.sum() for c in counts]))
    smooth = float(np.clip(NOISY * np.median(wide) / max(mean, 1.0), SMOOTHING, MOST_SMOOTHING)) if wide else SMOOTHING
    price, order = smooth / noise_scale(counts), model.head.get("order", ())
    if answers.impossible or any(np.isneginf(t).any() for t in potentials.values()):
        folder.add(4, None, "the fit is not recomputed: cells are without probability")
        return
    if model.first is not None:
        gap, objective = optimality(counts, counts, total, price, model.first, sizes, order)
        wrong += _judged("first fit", gap, objective)
        wider = {tuple(q): float(by) for q, by in model.head["wider"]}
        if any(not 1 <= by <= WIDEST for by in wider.values()):
            wrong.append("a clique's σ was widened beyond the bound")
        counts = _believed(counts, wider, marginals(calibrate(sizes, model.first, order), [(n,) for n in sizes]), total)
    gap, objective = optimality(counts, counts, total, price, potentials, sizes, order)
    wrong += _judged("fit", gap, objective)
    folder.add(
        4, not wrong, "; ".join(wrong) or f"the model is the fit of the counts: gap {gap:.2g} of {objective:.4g}"
    )


def _judged(what: str, gap: float, objective: float) -> list[str]:
    """The gap must be within the documented tolerance, with a factor of 2 for rounding and other gauges."""
    most = 2 * TOLERANCE * max(1.0, objective)
    return [] if gap <= most else [f"the {what} is not that of the counts: gap {gap:.3g}, at most {most:.3g}"]


def _in_order(c: Counts, sizes: Mapping[str, int]) -> Counts:
    names = tuple(n for n in sizes if n in c.clique)
    return replace(c, clique=names, values=c.values.transpose([c.clique.index(n) for n in names]))


def _believed(
    counts: list[Counts], wider: Mapping[Clique, float], ones: Mapping[Clique, Array], total: float
) -> list[Counts]:
    """The counts as a second fit takes them: columns held where the first fit has them, pairs with a wider σ."""
    merged: dict[Clique, tuple[float, Any]] = {}
    alone: dict[str, float] = {}
    for c in counts:
        p, s = merged.get(c.clique, (0.0, 0.0))
        merged[c.clique] = (p + c.sigma**-2, s + c.values * c.sigma**-2)
    for q, (p, s) in merged.items():
        for axis, name in enumerate(q):
            alone[name] = alone.get(name, 0.0) + p * s.shape[axis] / s.size
    made = [Counts((n,), total * ones[(n,)], p**-0.5 / FIRM) for n, p in alone.items()]
    return made + [Counts(q, s / p, p**-0.5 * wider.get(q, 1.0)) for q, (p, s) in merged.items() if len(q) > 1]


def _grouped(model: Model, answers: Answers) -> tuple[dict[str, int], dict[Clique, Array]]:
    """The model over groups of categories, where rare ones were counted together; inside a group it must be even."""
    sizes, out = dict(model.sizes), dict(model.potentials)
    for name, groups in answers.merged.items():
        members = np.bincount(groups)
        first = np.array([int(np.flatnonzero(groups == g)[0]) for g in range(len(members))])
        share = np.log(members)
        for clique in [q for q in out if name in q]:
            axis = clique.index(name)
            kept = np.take(out[clique], first, axis=axis)
            if not np.array_equal(np.take(kept, groups, axis=axis), out[clique]):
                raise ValueError(f"the model is not even inside the groups of {name}")
            out[clique] = kept + share.reshape([-1 if i == axis else 1 for i in range(len(clique))])
            share = np.zeros(len(members))
        sizes[name] = len(members)
    return sizes, out


def separated(graph: Mapping[str, set[str]], left: Iterable[str], right: Iterable[str], given: Iterable[str]) -> bool:
    """Return whether every path from ``left`` to ``right`` passes through ``given``."""
    closed, queue = set(given), [n for n in left if n not in set(given)]
    reached = set(queue)
    while queue:
        for other in graph[queue.pop()] - reached - closed:
            reached.add(other)
            queue.append(other)
    return not reached & (set(right) - closed)


def cmi(model: Model, left: list[str], right: list[str], given: list[str]) -> float | None:
    """The model's conditional mutual information in nats; None where its table would be too large."""
    names = tuple(dict.fromkeys((*left, *right, *given)))
    if math.prod(model.sizes[n] for n in names) > 200_000 or len(names) > 12:
        return None
    whole = tuple(itertools.chain(model.potentials.items(), [((names), np.zeros([model.sizes[n] for n in names]))]))
    try:
        table = marginals(calibrate(model.sizes, _joined(whole)), [names])[names]
    except ValueError:
        return None
    a, b = tuple(range(len(set(left)))), tuple(range(len(set(left)), len(set(left)) + len(set(right))))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = table * table.sum(axis=a + b, keepdims=True)
        ratio = ratio / (table.sum(axis=a, keepdims=True) * table.sum(axis=b, keepdims=True))
        return float(np.nansum(np.where(table > 0, table * np.log(ratio), 0.0)))


def _joined(tables: Iterable[tuple[Clique, Array]]) -> dict[Clique, Array]:
    out: dict[Clique, Array] = {}
    for clique, table in tables:
        out[clique] = out.get(clique, 0.0) + table
    return out


def _separations(folder: Folder, model: Model) -> None:
    """Every separation that the release says to hold: in the graph of the potentials, and as CMI where it is small."""
    wrong, said = list[str](), [s for s in folder.facts["separations"] if s.get("holds")]
    graph = neighbours(model.potentials, model.sizes)
    if model.links is not None:  # hidden columns join visible ones: their graph must be that of the stated links
        graph = neighbours(model.links, model.visible)
        wrong += [f"{a} and {b} are linked" for a, b in _visible_links(model) if b not in graph[a]][:1]
    for s in said:
        left, right, given = ([n for n in s[side]] for side in ("left", "right", "given"))
        if not separated(graph, left, right, given):
            wrong.append(f"{', '.join(left)} and {', '.join(right)} are linked around {', '.join(given) or 'nothing'}")
        elif (
            found := cmi(model, [n for n in left if n not in given], [n for n in right if n not in given], given)
        ) is not None and found > 1e-9:
            wrong.append(f"the CMI of {', '.join(left)} and {', '.join(right)} is {found:.2g}")
    if said or wrong:
        folder.add(4, not wrong, "; ".join(wrong) or f"{len(said)} separations hold in the model's graph and as CMI")


def _visible_links(model: Model) -> list[tuple[str, str]]:
    """Pairs of visible columns in one clique, or joined through hidden columns alone."""
    graph, shown = neighbours(model.potentials, model.sizes), set(model.visible)
    pairs = {(a, b) for a in shown for b in graph[a] & shown}
    hidden = set(model.sizes) - shown
    while hidden:
        part, queue = set[str](), [hidden.pop()]
        while queue:
            around = graph[queue.pop()]
            part |= around & shown
            new = around & hidden
            hidden -= new
            queue += new
        pairs |= set(itertools.permutations(part, 2))
    return sorted((a, b) for a, b in pairs if a < b)
