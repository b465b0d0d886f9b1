"""Check 5: the rows are drawn from the model: their number, their domain, impossible cells, and goodness of fit."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np
from scipy.special import gammaincc

from .folder import LIMIT, Array, Folder, edges_of
from .model import Model, Nodes, calibrate, graph_of, marginals
from .noise import Answers

ALARM, LEAST_EXPECTED, MOST_CELLS, IN_MEMORY = 1e-7, 8.0, 5_000_000, 1_000_000
FORMULA = re.compile(r"'+([=@＝＠\t\r\n]|[+\-＋－].)", re.DOTALL)
Codes = dict[str, Array]


def restored(text: str) -> str:
    """A text without the apostrophe that keeps spreadsheets from running it."""
    return text[1:] if FORMULA.match(text) else text


def read_rows(folder: Folder, data: bytes) -> tuple[Codes, int]:
    """The code of each cell: its category or bin, the last one if missing; ``ValueError`` outside a domain."""
    lines = csv.reader(io.StringIO(data.decode()), strict=True)
    schema, names = folder.facts["project"]["schema"], [restored(name) for name in next(lines, [])]
    if names != [c["name"] for c in schema if c["kind"] != "identifier" or c.get("invented")]:
        raise ValueError("the table has other columns than the schema")
    columns = [(names.index(c["name"]), c, dict[str, int](), list[int]()) for c in schema if c["kind"] != "identifier"]
    rows = 0
    for rows, line in enumerate(lines, 1):
        if len(line) != len(names):
            raise ValueError(f"line {rows} has other cells than the header")
        for place, column, known, codes in columns:
            text = line[place]
            if text not in known:
                known[text] = _code(column, text)
            codes.append(known[text])
    return {column["name"]: np.array(codes, dtype=np.int64) for _, column, _, codes in columns}, rows


def _code(column: dict[str, Any], text: str) -> int:
    values = column.get("categories")
    edges = [] if values is not None else edges_of(column)
    if text == "" and column.get("missing"):
        return len(values if values is not None else edges[1:])
    try:
        if values is not None:
            return list(values).index(restored(text))
        number = float(date.fromisoformat(text).toordinal() if "dates" in column else text)
        if edges[0] <= number <= edges[-1] and not (column.get("integer") and number != int(number)):
            return min(int(np.searchsorted(edges, number, side="right")) - 1, len(edges) - 2)
    except ValueError:
        pass
    raise ValueError(f"a cell of {column['name']} is outside the column's domain")


def check_rows(folder: Folder, model: Model | Nodes | None, answers: Answers | None) -> None:
    """The rows of ``synthetic.csv`` against ``release.json`` and the model, and the copies against the schema."""
    facts = folder.facts
    codes, rows = read_rows(folder, folder.read("synthetic.csv"))
    wrong = (
        [] if rows == facts.get("rows_shown", facts["rows"]) else [f"the table has {rows:,} rows, others are stated"]
    )
    for clique, mask in ({} if answers is None else answers.impossible).items():
        found = int(mask[tuple(codes[n] for n in clique)].sum())
        wrong += [f"{found} rows lie in impossible cells of {' × '.join(clique)}"] * bool(found)
    for name in sorted(n for n in folder.names if n.startswith("copies/") and n.endswith(".csv.gz")):
        with gzip.open(folder.path / name) as file:
            read_rows(folder, file.read(LIMIT))
    if model is None:
        folder.say(5, wrong, f"{rows:,} rows in their domains; no model to compare them with")
        return
    even = facts["project"]["plan"].get("rows_drawn", "even") == "even" and facts["rows"] <= IN_MEMORY
    nodes: Nodes = [] if isinstance(model, Model) else model
    if isinstance(model, Model) and not model.hidden:
        nodes = calibrate(model.sizes, model.potentials, model.order)
    if isinstance(model, Model) and model.pool:  # rows are drawn by their weights, not from the potentials
        nodes, even = [], False
    even = even and isinstance(model, Model) and bool(model.order and nodes)
    if nodes or not isinstance(model, Model):
        tests = spread(nodes, folder.sizes, codes)
    else:
        tests = (weighted if model.pool else seen)(model, codes, rows)
    level = ALARM / max(len(tests), 1)  # χ² is divided by 1.25: cells of eight rows have a heavier tail
    wrong += rounded(nodes, codes, rows) if even else []
    wrong += [
        f"{n} of the rows is not the model's: χ² = {s:.0f} on {d}"
        for n, s, d in tests
        if d and gammaincc(d / 2, s / 2.5) < level
    ]
    folder.say(
        5,
        wrong,
        f"{rows:,} rows follow the model in {len(tests)} tables" + ", as evenly as whole numbers allow" * even,
    )


def rounded(nodes: Nodes, codes: Codes, rows: int) -> list[str]:
    """Even rows: of the rows that share ``given``, each category has n·p, rounded down or up."""
    for name, given, table in nodes:
        at = np.ravel_multi_index([codes[n] for n in (*given, name)], table.shape)
        found = np.bincount(at, minlength=table.size).reshape(-1, table.shape[-1])
        far = float(np.abs(found - found.sum(axis=1, keepdims=True) * table.reshape(found.shape)).max())
        if far > 1 + 1e-6 * max(1.0, math.sqrt(rows)):
            return [f"{name} is {far:.1f} rows from the model in a group, and evenly drawn rows are at most one"]
    return []


def spread(nodes: Nodes, sizes: Mapping[str, int], codes: Codes) -> list[tuple[str, float, int]]:
    """χ² of each column with each earlier one: rows with w = i have Σ_g n(i, g)·p(v | g) with v to expect.

    Given all earlier columns, v depends on its ``given`` alone. Even rows vary less, so the test is one-sided.
    """
    tests, before = [], [""]
    for name, given, table in nodes:
        size, zero = sizes[name], np.zeros_like(codes[name])
        p = table.reshape(-1, size)
        group = np.ravel_multi_index([codes[n] for n in given], table.shape[:-1]) if given else zero
        for other in before:
            many = sizes.get(other, 1)
            if size > 1 and many * len(p) <= MOST_CELLS:
                at = codes.get(other, zero)
                held = np.bincount(at * len(p) + group, minlength=many * len(p)).reshape(many, -1)
                found = np.bincount(at * size + codes[name], minlength=many * size)
                tests.append((f"{other} × {name}", *_square(found, (held @ p).ravel())))
        before.append(name)
    return tests


def weighted(model: Model, codes: Codes, rows: int) -> list[tuple[str, float, int]]:
    """Rows drawn from a weighted list of rows: each must be in it; χ² of each column and each pair against the list."""
    kept = np.asarray(model.weights) * rows > 1e-6
    listed = set(zip(*(model.pool[n][kept].tolist() for n in model.sizes), strict=True))
    other = sum(row not in listed for row in zip(*(codes[n].tolist() for n in model.sizes), strict=True))
    tests = [("whole rows", math.inf if other else 0.0, 1)]
    for q in itertools.chain(*(itertools.combinations(model.sizes, size) for size in (1, 2))):
        shape = [model.sizes[n] for n in q]
        wanted, found = (np.ravel_multi_index([held[n] for n in q], shape) for held in (model.pool, codes))
        share = np.bincount(wanted, model.weights, minlength=math.prod(shape))
        tests.append((" × ".join(q), *_square(np.bincount(found, minlength=share.size), rows * share)))
    return tests


def seen(model: Model, codes: Codes, rows: int) -> list[tuple[str, float, int]]:
    """A model with hidden columns: χ² of visible columns, and of visible pairs inside a table of the model."""
    nodes = calibrate(model.sizes, model.potentials, model.order)
    graph = graph_of([(*given, name) for name, given, _ in nodes], model.sizes)
    wanted = [(n,) for n in model.visible] + [
        q for q in itertools.combinations(model.visible, 2) if q[1] in graph[q[0]]
    ]
    tests = []
    for q, p in marginals(nodes, wanted).items():
        found = np.bincount(np.ravel_multi_index([codes[n] for n in q], p.shape), minlength=p.size)
        tests.append((" × ".join(q), *_square(found, rows * p.ravel())))
    return tests


def _square(found: Array, expected: Array) -> tuple[float, int]:
    """χ² and its degrees of freedom; rare cells count as one, and a row in an empty cell as infinite."""
    if np.any(found[expected < 1e-9] > 0):
        return math.inf, 1
    big = expected >= LEAST_EXPECTED
    wanted, got = np.append(expected[big], expected[~big].sum()), np.append(found[big], found[~big].sum())
    fine = wanted >= LEAST_EXPECTED
    return float(np.sum((got[fine] - wanted[fine]) ** 2 / wanted[fine])), int(fine.sum())
