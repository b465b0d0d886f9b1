"""Check 4: the model is the fit of the noisy counts, and every separation holds exactly in it."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy.special import gammainccinv

from .budget import INTERCEPT
from .folder import Array, Clique, Folder
from .noise import RULES, Answers, Counts, components
from .noise import WIDEST as WIDEST_CLIQUE
from .smoothing import named, smoothed, spans

TOLERANCE, MOST_GAP, MOST_CELLS, PASSES = 2e-3, 0.12, 40_000_000, 20
SMOOTHING, MOST_SMOOTHING, NOISY, FIRM, WIDEST = 1.0, 3.0, 10.0, 5.0, 2.0
FENCED = ("privci", "prefair")
"""Methods that keep the roles' separation unless the plan says otherwise."""
OLD_DECODERS = ("espalier-decoder/1", "espalier-decoder/2")
Tables = Mapping[Clique, Array]
Nodes = list[tuple[str, Clique, Array]]
"""(column, given, p(column | given)) for each column, in the order in which values are drawn."""


class Model:
    """A log-linear model, or a decoder's network. ``potentials`` are tables over cliques of columns.

    ``sizes`` has each column's number of values. Only ``visible`` columns are in the synthetic table. The others are
    ``hidden`` and are `functions` of visible columns. A network's potentials are ln p(column | parents), with the
    column as the last axis.
    """

    def __init__(self, folder: Folder, head: Any, found: dict[str, Array]) -> None:
        self.head = head
        self.network = self.head.get("format") != "espalier-model/1"
        self.sizes = {str(n): int(s) for n, s in self.head["sizes"]}
        names = {"visible": list(self.sizes)}
        if "visible" in found:
            names = json.loads(found.pop("visible").tobytes())
        self.visible, self.order = tuple(names["visible"]), self.head.get("order", ())
        if self.network:
            self.potentials, self.first = heads(self.head, self.sizes, found.pop("parameters")), {}
            for i, name in enumerate(self.head.get("tables", [])):  # these columns have a full table instead of a head
                clique = next(q for q in self.potentials if q[-1] == name)
                self.potentials[clique] = np.log(np.maximum(found.pop(f"table_{i}"), 1e-300))
            for i, (name, causes) in enumerate(self.head.get("interactions", [])):  # additional factors of these causes
                clique = next(q for q in self.potentials if q[-1] == name)
                shape = [self.sizes[n] if n in {*causes, name} else 1 for n in clique]
                logits = self.potentials[clique] + found.pop(f"interaction_{i}").reshape(shape)
                self.potentials[clique] = log_softmax(logits)
        else:
            self.potentials, self.first = (
                self._tables(found, *of) for of in (("potentials", "potential"), ("first", "first"))
            )
        self.pool, self.weights = dict[str, Array](), np.ones(0)
        sums = [d["cells"] for d in folder.statement.get("draws", []) if d["recipe"] == "class-features"]
        if "tilt" in found and found["sums"].size in sums:
            tilt, self.weights = json.loads(found.pop("tilt").tobytes()), found.pop("weights")
            self.pool = {n: found.pop(f"pool_{i}").astype(int) for i, n in enumerate(self.sizes)}
            lists = (("phase", "phases"), ("coarse", "coarse"))
            further = [f"{of}_{i}" for of, key in lists for i in range(len(tilt.get(key, [])))]
            for name in ("sums", *further):
                del found[name]
        if found or (folder.statement and not self.network and not self.order and max(self.sizes.values()) > 1):
            raise ValueError("model.npz contains unlisted arrays, or lacks the order of drawing")
        if (
            self.head.get("latent")
            or {n: self.sizes[n] for n in self.visible} != folder.sizes
            or self.network != (folder.facts["method"] == "decoder")
        ):
            raise ValueError("the model does not match the method, or the columns and categories of the project")
        self.hidden, self.total = functions(self), float(self.head.get("total", 0))

    def _tables(self, found: dict[str, Array], key: str, of: str) -> dict[Clique, Array]:
        tables = {tuple(q): found.pop(f"{of}_{i}").astype(float) for i, q in enumerate(self.head.get(key, []))}
        for q, table in tables.items():
            if table.shape != tuple(self.sizes[n] for n in q) or np.isnan(table).any() or np.isposinf(table).any():
                raise ValueError(f"the potential of {' × '.join(q)} has the wrong shape, or is not a number")
        return tables

    @property
    def nodes(self) -> Nodes:
        """Conditional tables of all columns. Raises ``ValueError`` if a table is not a probability."""
        if self.network:
            nodes = [(q[-1], q[:-1], np.exp(table)) for q, table in self.potentials.items()]
        else:
            nodes = calibrate(self.sizes, self.potentials, self.order)
        if not all(np.allclose(table.sum(axis=-1), 1.0) for _, _, table in nodes):
            raise ValueError("the model's numbers do not define probabilities")
        return nodes


def functions(model: Model) -> dict[str, tuple[Clique, Array]]:
    """Return the hidden columns, each with the columns that determine it and its value in each of their cells.

    Hidden columns are counts and the states of questions. Impossible cells of the model leave exactly one value for
    each.
    """
    found, visible = dict[str, tuple[Clique, Array]](), set(model.visible)
    for _ in range(PASSES * (len(visible) < len(model.sizes))):  # one pass is enough for rules in the order of drawing
        for clique, table in model.potentials.items():
            new = [n for n in clique if n not in visible and n not in found]
            if len(new) == 1:
                allowed = np.moveaxis(np.isfinite(table), clique.index(new[0]), -1)
                if allowed.sum(axis=-1).max() <= 1:
                    found[new[0]] = tuple(n for n in clique if n != new[0]), allowed.argmax(axis=-1)
    if len(found) + len(visible) < len(model.sizes):
        raise ValueError("a hidden column of the model does not follow from the others")
    return found


def heads(head: Any, sizes: Mapping[str, int], flat: Array) -> dict[Clique, Array]:
    """Return a decoder's tables: ln p(column | parents) is a log softmax of an intercept and a weight for each
    parent."""
    done, at, out = dict[str, tuple[Clique, Array]](), 0, dict[Clique, Array]()
    for name, size in sizes.items():
        given = tuple(n for n in sizes if [n, name] in head["edges"] and sizes[n] > 1)
        lengths = [1, *(sizes[n] - 1 for n in given)] if size > 1 else [0]
        first, *weights = np.split(flat[at : at + sum(lengths) * size].reshape(-1, size), np.cumsum(lengths)[:-1])
        at += sum(lengths) * size
        logits = np.zeros([*(sizes[n] for n in given), size]) + (INTERCEPT * first[0] if size > 1 else 0)
        for i, (parent, rows) in enumerate(zip(given, weights, strict=size > 1)):
            full = np.insert(rows, head["base"].get(parent, 0), 0.0, axis=0)
            logits += full.reshape([sizes[parent] if j == i else 1 for j in range(len(given))] + [size])
        done[name] = (*given, name), log_softmax(logits)
    if at != flat.size:
        raise ValueError("model.npz contains more parameters than its network has")
    while done:  # causes before effects
        name = next(n for n, (q, _) in done.items() if not (set(q) - {n}) & set(done))
        clique, out[clique] = done.pop(name)
    return out


def log_softmax(logits: Array) -> Array:
    """Return the logarithm of the softmax over the last axis."""
    below = logits - logits.max(axis=-1, keepdims=True)
    return below - np.log(np.exp(below).sum(axis=-1, keepdims=True))


def calibrate(sizes: Mapping[str, int], potentials: Tables, order: Iterable[str]) -> Nodes:
    """Return the columns' conditional tables in the order of drawing; the last column is eliminated first.

    A column with one value joins no other columns, so it is left out of their cliques.
    """
    rank = {n: i for i, n in enumerate(dict.fromkeys([*(n for n in order if n in sizes), *sizes]))}
    buckets: dict[str, list[tuple[Clique, Array]]] = {n: [] for n in rank}
    for clique, part in potentials.items():
        if wide := tuple(n for n in clique if sizes[n] > 1):
            buckets[max(wide, key=rank.__getitem__)].append((wide, part.reshape([sizes[n] for n in wide])))
    nodes, cells = [], 0
    for name in reversed(rank):
        held = tuple(sorted({name, *(n for q, _ in buckets[name] for n in q)}, key=rank.__getitem__))
        cells += math.prod(sizes[n] for n in held)
        if cells > MOST_CELLS:
            raise ValueError(f"the model's tables have more than {MOST_CELLS:,} cells")
        table = np.zeros([sizes[n] for n in held])
        for clique, part in buckets[name]:
            at = sorted(range(len(clique)), key=lambda i: held.index(clique[i]))
            table += np.maximum(part, -1e300).transpose(at).reshape([sizes[n] if n in clique else 1 for n in held])
        peak = table.max(axis=-1, keepdims=True)
        np.exp(table - peak, out=table)
        mass = table.sum(axis=-1, keepdims=True)
        nodes.append((name, held[:-1], table / mass))
        if held[:-1]:
            buckets[held[-2]].append((held[:-1], (peak + np.log(mass))[..., 0]))
    return nodes[::-1]


def marginals(nodes: Nodes, wanted: Iterable[Clique]) -> dict[Clique, Array]:
    """Return the probabilities of cliques, each of which is inside one node."""
    found: dict[str, tuple[Clique, Array]] = {}
    for name, given, table in nodes:
        if given:
            held, above = found[given[-1]]
            table = table * above.sum(axis=tuple(i for i, n in enumerate(held) if n not in given))[..., None]
        found[name] = ((*given, name), table)
    rank, out = {name: i for i, name in enumerate(found)}, {}
    sizes = {name: table.shape[-1] for name, (_, table) in found.items()}
    for clique in wanted:
        wide = [n for n in clique if sizes[n] > 1] or list(clique[-1:])
        held, table = found[max(wide, key=rank.__getitem__)]
        kept = [n for n in held if n in wide]
        whole = table.sum(axis=tuple(i for i, n in enumerate(held) if n not in wide))
        out[clique] = whole.transpose([kept.index(n) for n in wide]).reshape([sizes[n] for n in clique])
    return out


def required(folder: Folder) -> list[str]:
    """Return an error for each separation that the plan requires, by the roles or by the project's list, but that the
    release does not list as one that holds.
    """
    project, plan, method = folder.facts["project"], folder.facts["project"]["plan"], folder.facts["method"]
    fair = plan.get("fair")
    if not (method in FENCED if fair is None else fair):
        return []
    roles, wanted = (
        project.get("roles", {}),
        [(s["left"], s["right"], s["given"]) for s in project.get("separations", [])],
    )
    far = [*roles.get("protected", []), *(roles.get("inadmissible", []) if plan.get("strict") else [])]
    if roles.get("outcome") and far:
        wanted.append((roles["outcome"], far, roles.get("admissible", [])))

    def listed(left: Any, right: Any, given: Any) -> bool:
        """Return whether a listed separation covers this one. For linked tables, it also names columns of visits."""
        for s in folder.facts["separations"]:
            same = {*given} <= {*s["given"]} if folder.linked else {*given} == {*s["given"]}
            same = same and (s["holds"] or method == "decoder")  # the report states which ones a network does not keep
            for one, other in ((s["left"], s["right"]), (s["right"], s["left"])):
                if same and {*left} <= {*one} and {*right} <= {*other}:
                    return True
        return False

    missing = [s for s in wanted if not listed(*s)]
    said = "the plan requires that {2} separate {0} and {1}, but the release does not list this separation"
    return [said.format(*s) for s in missing]


def check_model(folder: Folder, answers: Answers | None) -> Model | None:
    """Check the model's separations and fit, and return the model."""
    head = folder.arrays("model.npz")[0] if "model.npz" in folder.names else {}
    kept, plan = [s for s in folder.facts["separations"] if s.get("holds")], folder.facts["project"]["plan"]
    if unlisted := required(folder):
        folder.say(4, unlisted)
    copula = folder.facts["method"] == "copula"
    latent = folder.facts["method"] == "decoder" and head.get("latent") and plan.get("latent")
    old = not folder.statement and not head.get("edges") and "order" not in head
    if copula or latent or old or (not folder.statement and head.get("format") in OLD_DECODERS):
        if kept and (copula or latent):
            folder.say(4, ["a copula, or a network with a latent variable, keeps no separation"])
        folder.note(4, "unknown kind of model: separations and fit are not recomputed")
        return None
    model = Model(folder, *folder.arrays("model.npz"))
    wrong = [f"{s['left']} and {s['right']} are linked around {s['given']}" for s in kept if linked(model, s)]
    wrong += [f"{s} separates no columns of the table" for s in kept if not separates(s, model.visible)]
    project, tables = folder.facts["project"], model.potentials.values()
    ruled = not model.network and any(np.isneginf(t).any() for t in tables) and not model.hidden
    asked = model.hidden or (answers is not None and not answers.alone)
    if (asked and not {"questions", "counts"} & set(project)) or (ruled and not RULES & set(project)):
        wrong.append("the model depends on questions or constraints that the project does not have")
    folder.say(4, wrong, f"{len(kept)} separation{'s hold' if len(kept) != 1 else ' holds'} in the model's graph")
    if answers is None or model.network:
        folder.note(4, "how this model was trained is not recomputed")
    elif asked or ruled or any(len(c.clique) > WIDEST_CLIQUE for c in answers.counts):
        folder.say(4, far(model, answers), "the model is as close to the counts as the noise allows")
        folder.note(4, "the fit itself is not recomputed: questions, constraints, or very wide tables")
    else:
        strict = "and at most" in str(folder.facts.get("fit"))
        ordered = spans(folder.columns, folder.sizes, answers.sizes)
        folder.say(4, fitted(model, answers, ordered, strict), "the model is the fit of the counts")
        if not strict:
            folder.note(4, "fitted by an earlier version, which stops earlier: counts of a few columns may be exact")
    return model


def linked(model: Model, s: Mapping[str, list[str]]) -> bool:
    """Return whether a path around the given columns links both sides. For a network, the graph is the ancestors' moral
    graph.

    A hidden column links the columns that determine it.
    """
    roots = {n: {n} for n in model.visible}
    for name, (given, _) in model.hidden.items():
        roots[name] = set().union(*(roots[n] for n in given))
    cliques = [set().union(*(roots[n] for n in q)) for q in model.potentials]
    if model.network:
        kept = {*s["left"], *s["right"], *s["given"]}
        for q in reversed(model.potentials):  # effects before causes
            kept |= set(q) if q[-1] in kept else set()
        cliques = [set(q) for q in model.potentials if q[-1] in kept]
    return meet(cliques, set(s["left"]), set(s["right"]), set(s["given"]))


def meet(cliques: Iterable[set[Any]], left: set[Any], right: set[Any], stop: set[Any]) -> bool:
    """Return whether a path through cliques connects both sides without passing through ``stop``."""
    reached, before = left - stop, set[Any]()
    while reached != before:
        before, reached = reached, reached.union(*(q - stop for q in cliques if q & reached))
    return bool(reached & right)


def separates(s: Mapping[str, Any], names: Iterable[str]) -> bool:
    """Return whether a separation has two sides that do not overlap, and names only columns of the table."""
    sides = [s["left"], s["right"], s["given"]]
    whole = [n for side in sides for n in side]
    return (
        all(sides[:2])
        and all(type(side) is list for side in sides)
        and len({*whole}) == len(whole)
        and {*whole} <= {*names}
    )


def far(model: Model, answers: Answers) -> list[str]:
    """Return an error if the counts' distance from the model exceeds 1.5 times what noise alone exceeds once in 10⁹
    releases."""
    whole = {c.clique: np.zeros([model.sizes[n] for n in c.clique]) for c in answers.counts}
    fits = marginals(calibrate(model.sizes, {**whole, **model.potentials}, model.order), whole)
    square, cells = 0.0, 0
    for c in answers.counts:
        fit = fits[c.clique]
        for axis, groups in ((i, answers.merged[n]) for i, n in enumerate(c.clique) if n in answers.merged):
            fit = np.moveaxis(np.moveaxis(fit, axis, -1) @ np.eye(groups.max() + 1)[groups], -1, axis)
        square += float(np.sum((model.total * fit - c.values) ** 2)) / c.sigma**2
        cells += fit.size
    most = 3 * float(gammainccinv(cells / 2, 1e-9)) if cells else 0.0  # 1.5 times a quantile of χ²
    moved = sum(2 * broken(answers) ** 2 / c.sigma**2 for c in answers.counts)  # a moved row leaves a cell for another
    most = (math.sqrt(most) + math.sqrt(moved)) ** 2
    return [] if square <= most else [f"the model is far from the counts: χ² = {square:.4g}, at most {most:.4g}"]


def broken(answers: Answers) -> float:
    """Return the number of rows in impossible cells, estimated from counts above three times their noise; for three or
    more columns that are not counted together, from their margins.

    The model cannot reproduce these rows. With each of them moved to a possible cell, it could.
    """

    def rows(c: Counts, clique: Clique, mask: Array) -> float:
        names = tuple(n for n in c.clique if n in clique)
        table = c.values.sum(axis=tuple(i for i, n in enumerate(c.clique) if n not in names))
        seen = mask.any(axis=tuple(i for i, n in enumerate(clique) if n not in names))
        order = [n for n in clique if n in names]
        cells, noise = table.transpose([names.index(n) for n in order])[seen], 3 * math.sqrt(c.variance(names))
        whole = float(cells.sum())
        return max(float(cells[cells > noise].sum()), whole if whole > noise * math.sqrt(cells.size) else 0.0)

    total = 0.0
    for clique, mask in answers.impossible.items():
        whole = [c for c in answers.counts if {*clique} <= {*c.clique}]
        parts = [c for c in answers.counts if {*clique} & {*c.clique}] if len(clique) > 2 else []
        best = [min(whole, key=lambda c: c.variance(clique))] if whole else parts
        total += min((rows(c, clique, mask) for c in best), default=0.0)
    return total


def optimality(
    counts: list[Counts], total: float, price: float, potentials: Tables, model: Model, strict: bool
) -> list[str]:
    """Return an error if the fit's Fenchel gap at its potentials θ is above the tolerance. Earlier versions of Espalier
    used only the first tolerance (not ``strict``).

    The objective is f(μ) + λ N KL(p ‖ q) with f(μ) = Σ‖μ − y‖²/(2σ²) and independent q. Component a of the counts has
    the precision w_a and the estimate û_a. τ_a and τ⁰_a are the components of ln p (the sum of θ) and of ln q. The gap
    is Σ_a w_a/2 ‖u_a − û_a + λ(τ_a − τ⁰_a)/w_a‖². It is 0 only at the minimum. Noise alone contributes half of the
    degrees of freedom to the objective. `MOST_GAP` is smaller, so even a table with many cells cannot hide a few exact
    counts.
    """
    sizes = {n: s for q, table in potentials.items() for n, s in zip(q, table.shape, strict=True)}
    sums, weight, u, tau = (defaultdict[Clique, Any](float) for _ in range(4))
    fits = marginals(calibrate(model.sizes | sizes, potentials, model.order), [c.clique for c in counts])
    objective = 0.0
    for c in counts:
        objective += float(np.sum((total * fits[c.clique] - c.values) ** 2)) / (2 * c.sigma**2)
        u |= components(total * fits[c.clique], c.clique)
        for a, part in components(c.values, c.clique).items():
            weight[a] += 1 / c.variance(a)
            sums[a] += part / c.variance(a)
    best = {a: part / weight[a] for a, part in sums.items()}
    for clique, table in potentials.items():
        for a, part in components(table, clique).items():
            names = tuple(n for n in model.sizes if n in a)
            tau[names] += part.transpose([a.index(n) for n in names]) / math.prod(
                sizes[n] for n in clique if n not in a
            )
    for (name,) in [a for a in best if len(a) == 1]:
        log_q = np.log(np.maximum(total / len(best[name,]) + best[name,], 1.0))
        tau[name,] -= log_q - log_q.mean()
    gap = sum(weight[a] / 2 * float(np.sum((u[a] - best[a] + price * tau[a] / weight[a]) ** 2)) for a in best if a)
    gap += total * sum(float(np.sum(t**2)) for a, t in tau.items() if a and a not in best)
    most = min(TOLERANCE * max(1.0, objective), MOST_GAP if strict else math.inf)
    return [] if gap <= most else [f"the model is not the fit of the counts: gap {gap:.3g}, at most {most:.3g}"]


def fitted(model: Model, answers: Answers, ordered: Mapping[str, int], strict: bool) -> list[str]:
    """Return errors in the fit, which is documented in ``core/models/graphical/estimation.py`` and ``shrinkage.py``.

    ``ordered`` are the ordered columns, with their numbers of ordered values.
    """
    counts, potentials = answers.counts, grouped(model, answers)
    precision, sums = defaultdict[Clique, float](float), [float(c.values.sum()) for c in counts]
    for c in counts:
        names = tuple(n for n, s in zip(c.clique, c.values.shape, strict=True) if s > 1)
        precision[names] += 1 / c.variance(names)
    top = [1 / p for q, p in precision.items() if q and not any(set(q) < set(other) for other in precision)]
    mean = answers.rows or float(np.average(sums, weights=[1 / c.variance(()) for c in counts]))
    total, rows = max(mean, 1.0), max(answers.rows or float(np.mean(sums)), 1.0)
    wide = [c.sigma * c.values.size for c in counts if len(c.clique) > 1]
    smooth = float(np.clip(NOISY * np.median(wide) / rows, SMOOTHING, MOST_SMOOTHING)) if wide else SMOOTHING
    price, wrong = smooth / math.sqrt(float(np.median(top))) if top else 0.0, list[str]()
    if not math.isclose(total, model.total, rel_tol=1e-9):
        wrong.append(f"the model has {model.total:.6g} rows, not {total:.6g}")
    if model.first:
        wrong += optimality(counts, total, price, model.first, model, strict)
        counts = second(counts, total, model, ordered)
    return wrong + optimality(counts, total, price, potentials, model, strict)


def second(counts: list[Counts], total: float, model: Model, ordered: Mapping[str, int]) -> list[Counts]:
    """Return the counts for a second fit: columns fixed at the first fit's values, and pairs smoothed or with a wider
    σ. Without pairs, both fits have the same counts.
    """
    wider, smooth = {tuple(q): float(by) for q, by in model.head["wider"]}, named(model.head.get("smooth", ()))
    if not all(1 <= by <= WIDEST for by in wider.values()):
        raise ValueError("a σ was widened beyond the bound")
    if not any(len(c.clique) == 2 and min(c.values.shape) > 1 for c in counts):
        return counts
    alone, pairs, weight = (defaultdict[Any, Any](float) for _ in range(3))
    for c in counts:
        weight[c.clique] += c.sigma**-2
        pairs[c.clique] += c.values * c.sigma**-2
        for name in c.clique:
            alone[name] += 1 / c.variance((name,))
    ones = marginals(calibrate(model.sizes, model.first, model.order), [(n,) for n in alone])
    made = [Counts((n,), total * ones[n,], p**-0.5 / FIRM) for n, p in alone.items()]
    for q, s in pairs.items():
        if len(q) > 1:
            c = Counts(q, s / weight[q], weight[q] ** -0.5)
            if how := smooth.get(q):
                c = smoothed(c, [ones[n,] for n in q], [ordered.get(n, 0) for n in q], how, total)
            made.append(Counts(q, c.values, c.sigma * wider.get(q, 1.0)))
    return made


def grouped(model: Model, answers: Answers) -> dict[Clique, Array]:
    """Return the potentials over groups of categories that were counted together. Inside a group, they must be
    equal."""
    out = dict(model.potentials)
    for name, groups in answers.merged.items():
        members, share = np.unique(groups, return_index=True)[1], np.log(np.bincount(groups))
        for clique in [q for q in out if name in q]:
            axis = clique.index(name)
            kept = np.take(out[clique], members, axis=axis)
            if not np.array_equal(np.take(kept, groups, axis=axis), out[clique]):
                raise ValueError(f"the model is not uniform inside the groups of {name}")
            out[clique] = kept + share.reshape([-1 if n == name else 1 for n in clique])
            share = np.zeros(len(members))
    return out
