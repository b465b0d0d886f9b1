"""Checks 4 and 5 for linked tables: separations at every visit, and people and visits compared with their models."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from .folder import Array, Folder, unzipped
from .model import Model, meet, required, separates
from .rows import Codes, chi_square, coder, far, numbered, restored, rounded, spread, table_of, unlike, unlikely

PAST = {"@before": 1, "@earlier": 2}
"""Suffixes of a column's name that denote an earlier visit."""


class Panel:
    """Both tables as codes: people with their first visit (``rows``), and the columns of all ``visits``."""

    def __init__(self, folder: Folder) -> None:
        people, later, tables = folder.linked["people"], folder.linked["visits"], folder.facts["project"]["tables"]
        link, kinds = tables[later], {c["name"]: c for c in folder.columns}
        self.keep, self.wrong = link["keep"], list[str]()
        self.dated = f"{later}.{link['order']}" if "dates" in link else ""
        own = _columns(folder, people, [tables[people]["key"]])
        of_visits = _columns(folder, later, [link["by"], "visit", *([link["key"]] if "key" in link else [])])
        ids, by = own.pop(tables[people]["key"]), of_visits.pop(link["by"])
        if not numbered(ids, "P") or not ("key" not in link or numbered(of_visits.pop(link["key"]), "V")):
            self.wrong.append("identifiers are not all invented")
        place, self.many = {name: i for i, name in enumerate(ids)}, np.zeros(len(ids), dtype=np.int64)
        who, at = np.array([place[name] for name in by]), np.zeros(len(by), dtype=np.int64)
        for i, person in enumerate(who):
            at[i] = self.many[person]
            self.many[person] += 1
        if [str(t + 1) for t in at] != of_visits.pop("visit"):
            self.wrong.append("visits are not numbered in order")
        if len(ids) != folder.facts["rows"] or not 1 <= self.many.min() <= self.many.max() <= self.keep:
            self.wrong.append("the number of people differs from the stated one, or a person has no visit or too many")
        (number,) = [n for n in kinds if not n.startswith((f"{people}.", f"{later}."))]
        self.rows: Codes = {number: self.many - 1}
        self.visits: Codes = {}
        for name, texts in own.items():
            self.rows[f"{people}.{name}"] = _codes(kinds[f"{people}.{name}"], texts)
        for name in (f"{later}.{plain}" for plain in of_visits if not self.wrong):
            texts, self.visits[name] = (
                of_visits[name[len(later) + 1 :]],
                np.zeros((len(ids), self.keep), dtype=np.int64),
            )
            if name == self.dated:  # later dates follow from the gaps, and may lie beyond the last bin
                texts = [text if t == 0 else "" for text, t in zip(texts, at, strict=True)]
            seen = (at == 0) | (name != self.dated)
            self.visits[name][who[seen], at[seen]] = _codes(
                kinds[name], [t for t, s in zip(texts, seen, strict=True) if s]
            )
            self.rows[name] = self.visits[name][:, 0]

    def step(self, name: str, who: Array, at: int, none: int) -> Array:
        """Return the codes of a column of people, or of this or an earlier visit; ``none`` if there is no such
        visit."""
        plain, back = before(name)
        if plain not in self.visits:
            return np.full(len(who), at - 1) if name == "position" else self.rows[name][who]
        return self.visits[plain][who, at - back] if at >= back else np.full(len(who), none)


def before(name: str) -> tuple[str, int]:
    """Return a column's plain name, and how many visits back it is."""
    end = next((end for end in PAST if name.endswith(end)), "")
    return name.removesuffix(end), PAST.get(end, 0)


def _columns(folder: Folder, table: str, keys: list[str]) -> dict[str, list[str]]:
    """Return the columns of a table as text; ``keys`` are the columns that are not in the schema."""
    head, *lines = table_of(folder.read(f"{table}.csv"))
    names = [restored(name) for name in head]
    wanted = {n.removeprefix(f"{table}.") for n in folder.sizes if n.startswith(f"{table}.")} | {*keys}
    if len(names) != len(wanted) or {*names} != wanted:
        raise ValueError(f"the columns of {table}.csv differ from the schema's")
    return {name: list(cells) for name, cells in zip(names, zip(*lines, strict=True), strict=True)}


def _codes(column: dict[str, Any], texts: list[str]) -> Array:
    code = {text: coder(column)(text) for text in set(texts)}
    return np.array([code[text] for text in texts], dtype=np.int64)


def check_linked(folder: Folder) -> None:
    """Check separations, people with their first visit, and each later visit given the earlier visits."""
    panel, (head, found) = Panel(folder), folder.arrays("model.npz")
    model = Model(folder, *unzipped(found.pop("people").tobytes(), "the model of people"))
    kept = [s for s in folder.facts["separations"] if s.get("holds")]
    bad = [s for s in kept if not separates(s, model.visible) or crossed(panel, model, head, s)]
    wrong = [f"{s['left']} and {s['right']} are linked around {s['given']} at a visit" for s in bad]
    wrong += required(folder)
    folder.say(4, wrong, f"{len(kept)} separation{'s hold' if len(kept) != 1 else ' holds'} at every visit")
    folder.note(4, "linked tables keep no counts: the fit of the models is not recomputed")
    wrong, people, nodes = list(panel.wrong), len(panel.many), model.nodes
    if not wrong:
        even = folder.facts["project"]["plan"].get("rows_drawn", "even") == "even"
        later, tests = ([], []) if panel.dated else steps(panel, head, found)
        wrong += rounded(nodes, panel.rows, golden=False) + later if even else []
        wrong += unlike(folder, model.total) + unlikely(spread(nodes, panel.rows) + tests)
    folder.say(5, wrong, f"{people:,} people and {panel.many.sum():,} visits follow their models")
    if panel.dated:
        folder.note(5, "later visits are not compared with their model, because it draws days instead of dates")


def steps(panel: Panel, head: Any, found: Codes) -> tuple[list[str], list[tuple[str, float, int]]]:
    """Return columns of later visits that are not drawn evenly, and χ² of each column with each column drawn before it.

    A visit's value has the probability softmax(base + effects of parents + effect of repeating a value). Even draws use
    the multiples of the golden ratio among visits at one position with equal parents.
    """
    sizes, wrong, tests = head["sizes"], list[str](), list[tuple[str, float, int]]()
    places = [(np.flatnonzero(panel.many > at), at) for at in range(1, panel.keep)]
    drawn = [column["name"] for column in head["columns"]]
    if sorted(drawn) != sorted(panel.visits):
        raise ValueError("the model does not draw each column of a visit once")

    def cells(name: str) -> Array:
        return np.concatenate([panel.step(name, who, at, sizes[name] - 1) for who, at in places])

    known = [n for n in sizes if n not in panel.visits]  # people's columns, the position, and the earlier visits
    for i, column in enumerate(head["columns"]):
        name, values, size = column["name"], cells(column["name"]), len(found[f"base_{i}"])
        logits = found.pop(f"base_{i}") + np.zeros((len(values), 1))
        for j, parent in enumerate(column["effects"]):
            if parent not in known:
                raise ValueError(f"{name} depends on {parent}, which is drawn later")
            logits += found.pop(f"effect_{i}_{j}")[cells(parent)]
        for end, added in (("@before", found.pop(f"stay_{i}")), ("@earlier", np.full(size, column["echo"]))):
            logits += np.vstack([np.diag(added), np.zeros(size)])[np.minimum(cells(name + end), size)]
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        parents = ["position", *column["effects"], f"{name}@before", f"{name}@earlier"]
        _, one, group = np.unique([cells(n) for n in parents], axis=1, return_index=True, return_inverse=True)
        held = np.bincount(group.ravel() * size + values, minlength=len(one) * size).reshape(-1, size)
        if not (off := far(held, p[one], golden=True)) <= 0:
            wrong.append(f"{name} is {off:.1f} visits further from the model in a group than an even draw allows")
        for other in known:
            at, many = cells(other), sizes[other]
            wanted = np.array([np.bincount(at, p[:, v], many) for v in range(size)]).T.ravel()
            tests.append(
                (f"{other} × {name}", *chi_square(np.bincount(at * size + values, minlength=many * size), wanted))
            )
        known.append(name)
    if found:
        raise ValueError("model.npz contains unlisted arrays")
    return wrong, tests


def crossed(panel: Panel, model: Model, head: Any, s: dict[str, Any]) -> bool:
    """Return whether a separation is broken at a visit, in the moral graph of the ancestors over all visits."""
    drawn = {c["name"]: [*c["effects"], f"{c['name']}@before", f"{c['name']}@earlier"] for c in head["columns"]}

    def nodes(names: Iterable[str], times: Iterable[int]) -> set[Any]:
        """Return the columns at these visits, if they exist then. A column of people is the same at each visit."""
        visits = {*drawn, *panel.visits}
        return {
            (n, at) if n in visits else n
            for at in times
            for n in names
            if n in (drawn if at and n in visits else model.sizes)
        }

    parents = dict[Any, set[Any]]()
    for at in range(1, panel.keep):
        for name, effects in drawn.items():
            places = [(n, at - back) for n, back in map(before, effects) if at >= back]
            parents[name, at] = set().union(*(nodes([n], [time]) for n, time in places))
    for visit in range(panel.keep):
        left, right, given = (
            nodes(s["left"], [visit]),
            *(nodes(s[side], range(visit + 1)) for side in ("right", "given")),
        )
        seen, cliques = left | right | given, [nodes(q, [0]) for q in model.potentials]
        for child in reversed(parents):  # later columns first
            if child in seen:
                seen |= parents[child]
                cliques.append({child, *parents[child]})
        if meet(cliques, left, right, given):
            return True
    return False
