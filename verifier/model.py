"""Check 4: the model is the fit of the noisy counts, and every separation holds in it exactly."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy.special import gammainccinv

from .folder import Array, Clique, Folder
from .noise import WIDEST as WIDEST_CLIQUE
from .noise import Answers, Counts, components

TOLERANCE, MOST_CELLS = 2e-3, 20_000_000
SMOOTHING, MOST_SMOOTHING, NOISY, FIRM, WIDEST = 1.0, 3.0, 10.0, 5.0, 2.0
RULES = {"impossible", "monotone", "determines"}
TABLES = {"potentials": "potential", "first": "first"}
Tables = Mapping[Clique, Array]
Nodes = list[tuple[str, Clique, Array]]
INTERCEPT = 45 / 64


class Model:
    """A log-linear model: ``potentials`` over cliques of columns of ``sizes``; ``visible`` columns are drawn."""

    def __init__(self, folder: Folder, head: Any, found: dict[str, Array]) -> None:
        self.head, self.total = head, float(head["total"])
        self.sizes = {str(n): int(s) for n, s in head["sizes"]}
        self.potentials, self.first = (
            self._tables(head.get(key, []), found, of) for key, of in (("potentials", "potential"), ("first", "first"))
        )
        names = (
            json.loads(found["visible"].tobytes())
            if "visible" in found
            else {"visible": list(self.sizes), "counts": []}
        )
        self.visible, self.counts = tuple(names["visible"]), set(names["counts"])
        self.order = head.get("order", ())
        listed = [f"{of}_{i}" for key, of in TABLES.items() for i in range(len(head.get(key, [])))]
        tilt = json.loads(found["tilt"].tobytes()) if "tilt" in found else {}
        self.pool = {n: found[f"pool_{i}"].astype(int) for i, n in enumerate(self.sizes)} if tilt else {}
        self.weights = found.get("weights")
        listed += [f"pool_{i}" for i in range(len(self.pool))] + ["tilt", "weights", "sums"] * bool(tilt)
        listed += [f"phase_{i}" for i in range(len(tilt.get("phases", [])))]
        listed += [f"coarse_{i}" for i in range(len(tilt.get("coarse", [])))]
        if set(found) - {"visible"} != set(listed) or (folder.statement and not self.order):
            raise ValueError("model.npz holds arrays that it does not list, or lacks the order of drawing")
        if {n: self.sizes[n] for n in self.visible} != folder.sizes:
            raise ValueError("the model has other columns or categories than the project")

    def _tables(self, cliques: list[list[str]], found: dict[str, Array], of: str) -> dict[Clique, Array]:
        tables = {tuple(c): found[f"{of}_{i}"].astype(float) for i, c in enumerate(cliques)}
        for q, table in tables.items():
            if table.shape != tuple(self.sizes[n] for n in q) or np.isnan(table).any() or np.isposinf(table).any():
                raise ValueError(f"the potential of {' × '.join(q)} has another shape, or is no number")
        return tables

    @property
    def hidden(self) -> bool:
        """Return whether some of its columns are not drawn."""
        return len(self.visible) < len(self.sizes)


def graph_of(cliques: Iterable[Iterable[str]], names: Iterable[str]) -> dict[str, set[str]]:
    """The graph in which each clique is complete."""
    graph: dict[str, set[str]] = {n: set() for n in names}
    for clique in map(set, cliques):
        for name in clique:
            graph[name] |= clique - {name}
    return graph


def calibrate(sizes: Mapping[str, int], potentials: Tables, order: Iterable[str] = ()) -> Nodes:
    """(column, given, p(column | given)) for each column in the order of drawing; the last is eliminated first."""
    placed = [n for n in order if n in sizes]
    graph = graph_of(potentials, sizes)
    if not {n for n, s in sizes.items() if s > 1} <= set(placed):
        rest, placed = graph_of(potentials, sizes), []
        while rest:  # least cells first
            name = min(rest, key=lambda n: math.prod(sizes[m] for m in (n, *rest[n])))
            placed.insert(0, name)
            _eliminate(rest, name)
    placed += [n for n in sizes if n not in placed]
    rank = {n: i for i, n in enumerate(placed)}
    buckets: dict[str, list[tuple[Clique, Array]]] = {n: [] for n in placed}
    for clique, part in potentials.items():
        if clique:
            buckets[max(clique, key=rank.__getitem__)].append((clique, part))
    nodes = []
    for name in reversed(placed):
        given = tuple(sorted(_eliminate(graph, name), key=rank.__getitem__))
        held = (*given, name)
        if math.prod(sizes[n] for n in held) > MOST_CELLS:
            raise ValueError(f"a table of the model has more than {MOST_CELLS:,} cells")
        table = np.zeros([sizes[n] for n in held])
        for clique, part in buckets[name]:
            at = sorted(range(len(clique)), key=lambda i: held.index(clique[i]))
            table += np.maximum(part, -1e300).transpose(at).reshape([sizes[n] if n in clique else 1 for n in held])
        peak = table.max(axis=-1, keepdims=True)
        np.exp(table - peak, out=table)
        mass = table.sum(axis=-1, keepdims=True)
        nodes.append((name, given, table / mass))
        if given:
            buckets[given[-1]].append((given, (peak + np.log(mass))[..., 0]))
    return nodes[::-1]


def _eliminate(graph: dict[str, set[str]], name: str) -> set[str]:
    """Take a column out of a graph and join its neighbours, which are returned."""
    around = graph.pop(name)
    for other in around:
        graph[other] = (graph[other] | around) - {name, other}
    return around


def marginals(nodes: Nodes, wanted: Iterable[Clique]) -> dict[Clique, Array]:
    """Probabilities of cliques, each of them inside one node."""
    found: dict[str, tuple[Clique, Array]] = {}
    for name, given, table in nodes:
        if given:
            held, above = found[given[-1]]
            table = table * above.sum(axis=tuple(i for i, n in enumerate(held) if n not in given))[..., None]
        found[name] = ((*given, name), table)
    rank, out = {name: i for i, name in enumerate(found)}, {}
    for clique in wanted:
        held, table = found[max(clique, key=rank.__getitem__)]
        kept = [n for n in held if n in clique]
        whole = table.sum(axis=tuple(i for i, n in enumerate(held) if n not in clique))
        out[clique] = whole.transpose([kept.index(n) for n in clique])
    return out


def pooled(counts: list[Counts]) -> tuple[dict[Clique, Array], dict[Clique, float]]:
    """The best unbiased estimate of every component from all counts, and its precision."""
    sums: dict[Clique, Any] = {}
    weight: dict[Clique, float] = {}
    for c in counts:
        for subset, part in components(c.values, c.clique).items():
            w = 1 / c.variance(subset)
            sums[subset], weight[subset] = sums.get(subset, 0.0) + w * part, weight.get(subset, 0.0) + w
    return {a: s / weight[a] for a, s in sums.items()}, weight


def optimality(
    counts: list[Counts], total: float, price: float, fit: tuple[Tables, Mapping[str, int], Any]
) -> list[str]:
    """Errors of a fit: its Fenchel gap at its potentials θ, if that is above the tolerance.

    The objective is f(μ) + λ N KL(p ‖ q), f(μ) = Σ‖μ − y‖²/(2σ²), q independent. With the precision w_a and the
    estimate û_a of each component a, the gap is Σ_a w_a/2 ‖u_a − û_a + λ(τ_a − τ⁰_a)/w_a‖², τ of θ and τ⁰ of q.
    It is 0 at the minimum only.
    """
    potentials, sizes, order = fit
    fitted, (best, weight) = marginals(calibrate(sizes, potentials, order), [c.clique for c in counts]), pooled(counts)
    tau: dict[Clique, Any] = {}
    for clique, table in potentials.items():
        for subset, part in components(table, clique).items():
            gone = math.prod(sizes[n] for n in clique if n not in subset)
            names = tuple(n for n in sizes if n in subset)
            tau[names] = tau.get(names, 0.0) + part.transpose([subset.index(n) for n in names]) / gone
    for (name,) in [q for q in best if len(q) == 1]:
        log_q = np.log(np.maximum(total / sizes[name] + best[(name,)], 1.0))
        tau[(name,)] = tau.get((name,), 0.0) - (log_q - log_q.mean())
    gap = objective = 0.0
    parts: dict[Clique, Array] = {}
    for c in counts:
        objective += float(np.sum((total * fitted[c.clique] - c.values) ** 2)) / (2 * c.sigma**2)
        parts |= components(total * fitted[c.clique], c.clique)
    for subset, u in parts.items():
        if subset:
            away = u - best[subset] + price * tau.get(subset, 0.0) / weight[subset]
            gap += weight[subset] / 2 * float(np.sum(away**2))
    gap += total * sum(float(np.sum(np.square(t))) for a, t in tau.items() if a and a not in weight)
    most = TOLERANCE * max(1.0, objective)
    return [] if gap <= most else [f"the model is not the fit of the counts: gap {gap:.3g}, at most {most:.3g}"]


def network(head: Any, parents: Mapping[str, list[str]], flat: Array) -> Nodes:
    """The nodes of a decoder: p(column | parents) is the softmax of an intercept and a weight for each parent."""
    sizes, done, at = {n: int(s) for n, s in head["sizes"]}, dict[str, tuple[str, Clique, Array]](), 0
    for name, size in sizes.items():
        given = tuple(n for n in sizes if n in parents[name] and sizes[n] > 1)
        lengths = [1, *(sizes[n] - 1 for n in given)] if size > 1 else [0]
        block = flat[at : at + sum(lengths) * size].reshape(-1, size)
        at += block.size
        logits, row = np.zeros([*(sizes[n] for n in given), size]) + (INTERCEPT * block[0] if size > 1 else 0), 1
        for axis, parent in enumerate(given if size > 1 else ()):
            weights = np.insert(block[row : row + sizes[parent] - 1], head["base"].get(parent, 0), 0.0, axis=0)
            row += sizes[parent] - 1
            logits += weights.reshape([sizes[parent] if i == axis else 1 for i in range(len(given))] + [size])
        table = np.exp(logits - logits.max(axis=-1, keepdims=True))
        done[name] = (name, given, table / table.sum(axis=-1, keepdims=True))
    out: Nodes = []
    while len(out) < len(done):  # causes before effects
        placed = {name for name, _, _ in out}
        out.append(next(n for n in done.values() if n[0] not in placed and set(n[1]) <= placed))
    return out


def check_model(folder: Folder, answers: Answers | None) -> Model | Nodes | None:
    """The model, after the test of its separations and of its fit."""
    if "model.npz" not in folder.names:
        folder.note(4, "no model file: the fit is not recomputed")
        return None
    head, found = folder.arrays("model.npz")
    kept = [s for s in folder.facts["separations"] if s.get("holds")]
    if head.get("format") != "espalier-model/1":
        if folder.facts["method"] == "copula":
            folder.note(4, "no graphical model and no counts: the fit is not recomputed")
            return None
        if folder.facts["method"] != "decoder" or set(found) != {"parameters"}:
            raise ValueError("the model is not of the kind that the method makes")
        parents = {n: [a for a, b in head.get("edges", []) if b == n] for n, _ in head.get("sizes", [])}
        wrong = [] if parents and not head.get("latent") else [f"{len(kept)} separations are not promised"] * bool(kept)
        folder.say(4, wrong + _linked(kept, lambda s: moral(parents, s)), f"{len(kept)} separations hold by the arrows")
        folder.note(4, "no counts to fit: how this model was trained is not recomputed")
        return None if head.get("latent") else network(head, parents, found["parameters"])
    model = Model(folder, head, found)
    graph = graph_of(model.potentials, model.sizes)
    for name in model.counts:  # functions of visible columns
        for other in graph.pop(name):
            graph[other].discard(name)
    for name in set(graph) - set(model.visible):
        _eliminate(graph, name)
    wrong = _linked(kept, lambda _: graph)
    wrong += [
        f"the CMI of {s['left']} and {s['right']} is not 0"
        for s in kept
        if not model.hidden and (cmi(model, s) or 0) > 1e-9
    ]
    folder.say(4, wrong, f"{len(kept)} separations hold in the model's graph")
    asked = model.hidden or (answers is not None and not answers.alone)
    ruled = any(np.isneginf(t).any() for t in model.potentials.values())
    project = folder.facts["project"]
    if (asked and not {"questions", "counts"} & set(project)) or (ruled and not asked and not RULES & set(project)):
        folder.say(4, ["the model rests on questions or constraints that the project does not have"], "")
    wide = answers is not None and any(len(c.clique) > WIDEST_CLIQUE for c in answers.counts)
    if answers is None or asked or ruled or wide:
        wrong = [] if answers is None else _near(model, answers)
        folder.say(4, wrong, "the model is as near to the counts as noise is")
        folder.note(4, "the fit itself is not recomputed: questions, constraints, very wide tables, or no counts")
    else:
        folder.say(4, _fit(model, answers), "the model is the fit of the counts")
    return model


def _near(model: Model, answers: Answers) -> list[str]:
    """Counts that are further from the model than half as much again as noise alone is once in 10⁹ releases."""
    if answers.merged:
        return []
    visible = {q: np.zeros([model.sizes[n] for n in q]) for q in {c.clique for c in answers.counts}}
    nodes = calibrate(model.sizes, {**visible, **model.potentials}, model.order)
    fitted = marginals(nodes, visible)
    square = sum(float(np.sum((model.total * fitted[c.clique] - c.values) ** 2)) / c.sigma**2 for c in answers.counts)
    most = 3 * float(gammainccinv(sum(c.values.size for c in answers.counts) / 2, 1e-9))  # 1.5 times a quantile of χ²
    return [f"the model is far from the counts: χ² = {square:.4g}, at most {most:.4g}"] if square > most else []


def _fit(model: Model, answers: Answers) -> list[str]:
    """Errors of the fit (``core/models/graphical/estimation.py`` and ``shrinkage.py`` document it)."""
    sizes, potentials = _grouped(model, answers)
    counts = []
    for c in answers.counts:
        names = tuple(n for n in sizes if n in c.clique)
        counts.append(Counts(names, c.values.transpose([c.clique.index(n) for n in names]), c.sigma))
    precision: dict[Clique, float] = {}
    for c in counts:
        names = tuple(n for n in c.clique if sizes[n] > 1)
        precision[names] = precision.get(names, 0.0) + 1 / c.variance(names)
    top = [p**-0.5 for q, p in precision.items() if q and not any(set(q) < set(other) for other in precision)]
    sums = [float(c.values.sum()) for c in counts]
    mean = np.average(sums, weights=[1 / c.variance(()) for c in counts])
    total = max(float(mean if answers.rows is None else answers.rows), 1.0)
    rows = max(float(np.mean(sums)) if answers.rows is None else total, 1.0)
    wide = [c.sigma * c.values.size for c in counts if len(c.clique) > 1]
    smooth = float(np.clip(NOISY * np.median(wide) / rows, SMOOTHING, MOST_SMOOTHING)) if wide else SMOOTHING
    price = smooth / float(np.median(top))
    wrong = (
        []
        if math.isclose(total, model.total, rel_tol=1e-9)
        else [f"the model has {model.total:.6g} rows, not {total:.6g}"]
    )
    if model.first:
        wrong += optimality(counts, total, price, (model.first, sizes, model.order))
        wider = {tuple(q): float(by) for q, by in model.head["wider"]}
        wrong += ["a σ was widened beyond the bound"] * any(not 1 <= by <= WIDEST for by in wider.values())
        ones = marginals(calibrate(sizes, model.first, model.order), [(n,) for n in sizes])
        counts = _believed(counts, wider, ones, total)
    return wrong + optimality(counts, total, price, (potentials, sizes, model.order))


def _believed(counts: list[Counts], wider: Mapping[Clique, float], ones: Tables, total: float) -> list[Counts]:
    """The counts as a second fit takes them: columns held where the first has them, pairs with a wider σ."""
    sums: dict[Clique, tuple[float, Any]] = {}
    alone: dict[str, float] = {}
    for c in counts:
        p, s = sums.get(c.clique, (0.0, 0.0))
        sums[c.clique] = (p + c.sigma**-2, s + c.values * c.sigma**-2)
    for q, (p, s) in sums.items():
        for name in q:
            alone[name] = alone.get(name, 0.0) + p * s.shape[q.index(name)] / s.size
    made = [Counts((n,), total * ones[(n,)], p**-0.5 / FIRM) for n, p in alone.items()]
    return made + [Counts(q, s / p, p**-0.5 * wider.get(q, 1.0)) for q, (p, s) in sums.items() if len(q) > 1]


def _grouped(model: Model, answers: Answers) -> tuple[dict[str, int], dict[Clique, Array]]:
    """The model over groups of categories that were counted together; inside a group it must be even."""
    sizes, out = dict(model.sizes), dict(model.potentials)
    for name, groups in answers.merged.items():
        members, share = np.unique(groups, return_index=True)[1], np.log(np.bincount(groups))
        for clique in [q for q in out if name in q]:
            axis = clique.index(name)
            kept = np.take(out[clique], members, axis=axis)
            if not np.array_equal(np.take(kept, groups, axis=axis), out[clique]):
                raise ValueError(f"the model is not even inside the groups of {name}")
            out[clique] = kept + share.reshape([-1 if n == name else 1 for n in clique])
            share = np.zeros(len(members))
        sizes[name] = len(members)
    return sizes, out


def _linked(kept: list[Any], graph: Any) -> list[str]:
    """The separations that a path in the ``graph`` of each leads around."""
    wrong = []
    for s in kept:
        around, reached = graph(s), set(s["left"]) - set(s["given"])
        queue = list(reached)
        while queue:
            new = around[queue.pop()] - reached - set(s["given"])
            reached |= new
            queue += new
        if reached & set(s["right"]) - set(s["given"]):
            wrong.append(f"{', '.join(s['left'])} and {', '.join(s['right'])} are linked around {s['given']}")
    return wrong


def moral(parents: Mapping[str, list[str]], s: Mapping[str, list[str]]) -> dict[str, set[str]]:
    """The moral graph of the ancestors of a separation's columns: where it separates, so do the arrows."""
    queue = [*s["left"], *s["right"], *s["given"]]
    for name in queue:  # grows
        queue += [p for p in parents[name] if p not in queue]
    return graph_of([(n, *parents[n]) for n in queue], queue)


def cmi(model: Model, s: Mapping[str, list[str]]) -> float | None:
    """The model's conditional mutual information in nats; None where its table would be too large."""
    given, sides = list(s["given"]), [[n for n in s[side] if n not in s["given"]] for side in ("left", "right")]
    names = (*sides[0], *sides[1], *given)
    if math.prod(model.sizes[n] for n in names) > 100_000:
        return None
    try:
        whole = {**model.potentials, names: model.potentials.get(names, np.zeros([model.sizes[n] for n in names]))}
        p = marginals(calibrate(model.sizes, whole), [names])[names]
    except ValueError:
        return None
    a, b = tuple(range(len(sides[0]))), tuple(range(len(sides[0]), len(sides[0]) + len(sides[1])))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = p * p.sum(axis=a + b, keepdims=True) / (p.sum(axis=a, keepdims=True) * p.sum(axis=b, keepdims=True))
        return float(np.sum(np.where(p > 0, p * np.log(ratio), 0.0)))
