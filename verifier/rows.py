"""Check 5: the rows are drawn from the model: their number, their domain, impossible cells, and goodness of fit."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import math
import re
from datetime import date
from typing import Any

import numpy as np
from scipy.stats import chi2

from .folder import Folder, edges_of
from .model import Model, calibrate, marginals, neighbours
from .noise import Answers

ALARM = 1e-7
LEAST_EXPECTED = 8.0
MOST_CELLS = 5_000_000
IN_MEMORY = 1_000_000
FORMULA = re.compile(r"'+([=@＝＠\t\r\n]|[+\-＋－].)", re.DOTALL)
Codes = dict[str, np.ndarray[Any, Any]]


def read_rows(folder: Folder, data: bytes) -> tuple[Codes, int]:
    """The codes of each column of ``synthetic.csv``; raises ``ValueError`` for a cell outside its column's domain."""
    schema = folder.facts["project"]["schema"]
    header, *rows = csv.reader(io.StringIO(data.decode()), strict=True)
    names = [_restored(name) for name in header]
    wanted = [c["name"] for c in schema if c["kind"] != "identifier" or c.get("invented")]
    if names != wanted or any(len(row) != len(names) for row in rows):
        raise ValueError("the table has other columns than the schema, or a line with other cells")
    cells = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(names, ())
    out = {c["name"]: _codes(c, cells[c["name"]]) for c in schema if c["kind"] != "identifier"}
    return out, len(rows)


def _restored(text: str) -> str:
    """A text without the apostrophe that keeps spreadsheets from running it."""
    return text[1:] if FORMULA.match(text) else text


def _codes(column: dict[str, Any], cells: tuple[str, ...]) -> np.ndarray[Any, Any]:
    """The code of each cell: its category or its bin; the last code for a missing cell."""
    known: dict[str, int] = {}
    values = column.get("categories")
    edges = [] if values is not None else edges_of(column)
    place = {} if values is None else {text: i for i, text in enumerate(values)}
    for text in set(cells):
        try:
            if text == "":
                code = len(values if values is not None else edges[1:])
                if not column.get("missing") and "" not in place:
                    raise KeyError
                code = place.get("", code)
            elif values is not None:
                code = place[_restored(text)]
            else:
                number = float(date.fromisoformat(text).toordinal()) if "dates" in column else float(text)
                if not edges[0] <= number <= edges[-1] or (column.get("integer") and number != int(number)):
                    raise KeyError
                code = min(int(np.searchsorted(edges, number, side="right")) - 1, len(edges) - 2)
        except (KeyError, ValueError):
            raise ValueError(f"a cell of {column['name']} is outside the column's domain") from None
        known[text] = code
    return np.fromiter((known[t] for t in cells), dtype=np.int64, count=len(cells))


def check_rows(folder: Folder, model: Model | None, answers: Answers | None) -> None:
    """The rows of ``synthetic.csv`` against ``release.json`` and the model."""
    facts = folder.facts
    try:
        codes, rows = read_rows(folder, folder.read("synthetic.csv"))
    except (ValueError, csv.Error) as error:
        folder.add(5, False, str(error))
        return
    wrong = []
    if rows != facts.get("rows_shown", facts["rows"]):
        wrong.append(f"the table has {rows:,} rows, release.json says {facts.get('rows_shown', facts['rows']):,}")
    for clique, mask in ({} if answers is None else answers.impossible).items():
        if found := int(mask[tuple(codes[n] for n in clique)].sum()):
            wrong.append(f"{found} rows lie in impossible cells of {' × '.join(clique)}")
    if model is None:
        folder.add(5, not wrong, "; ".join(wrong) or f"{rows:,} rows in their domains; no model to compare with")
        return
    even = facts["project"]["plan"].get("rows_drawn", "even") == "even" and facts["rows"] <= IN_MEMORY
    tests = 0
    if model.links is not None and rows:
        more, tests = seen(model, codes, rows)
        wrong += more
    elif rows:
        wrong += rounded(model, codes, rows) if even and "order" in model.head else []
        more, tests = spread(model, codes)
        wrong += more
    how = ", as evenly as whole numbers allow" if even and "order" in model.head and model.links is None else ""
    folder.add(5, not wrong, "; ".join(wrong[:5]) or f"{rows:,} rows follow the model in {tests} tables{how}")
    _copies(folder)


def rounded(model: Model, codes: Codes, rows: int) -> list[str]:
    """Even rows: in the rows that share ``given``, each category has n·p rows, rounded down or up."""
    for name, given, table in calibrate(model.sizes, model.potentials, model.head["order"]).nodes:
        if model.sizes[name] < 2:
            continue
        shape = table.shape
        at = np.ravel_multi_index([codes[n] for n in (*given, name)], shape)
        found = np.bincount(at, minlength=table.size).reshape(-1, shape[-1])
        wanted = found.sum(axis=1, keepdims=True) * table.reshape(-1, shape[-1])
        far = float(np.abs(found - wanted).max())
        if far > 1 + 1e-6 * max(1.0, rows**0.5):
            return [f"rows are not drawn from the model: {name} is {far:.1f} rows from it in a group"]
    return []


def spread(model: Model, codes: Codes) -> tuple[list[str], int]:
    """χ² of each column with each earlier one against what the earlier columns leave to expect.

    Given all columns before it, a column depends on ``given`` alone. So rows with w = i have Σ_g n(i, g)·p(v | g) cells
    with v = j to expect. Even rows vary less than independent ones, so the test is one-sided.
    """
    wrong, tests = list[str](), list[tuple[str, float, int]]()
    before: list[str] = []
    for name, given, table in calibrate(model.sizes, model.potentials, model.head.get("order", ())).nodes:
        size = model.sizes[name]
        p = table.reshape(-1, size)
        group = (
            np.ravel_multi_index([codes[n] for n in given], table.shape[:-1]) if given else np.zeros_like(codes[name])
        )
        for other in [*before, ""] if size > 1 else []:
            many = model.sizes[other] if other else 1
            if many * len(p) > MOST_CELLS:
                continue
            at = codes[other] if other else np.zeros_like(group)
            held = np.bincount(at * len(p) + group, minlength=many * len(p)).reshape(many, -1)
            found = np.bincount(at * size + codes[name], minlength=many * size)
            tests.append((f"{other} × {name}" if other else name, *_square(found, (held @ p).ravel())))
        before.append(name)
    return wrong + _judged(tests), len(tests)


def seen(model: Model, codes: Codes, rows: int) -> tuple[list[str], int]:
    """A model with hidden columns: χ² of each visible column, and of visible pairs that one of its tables holds."""
    tree = calibrate(model.sizes, model.potentials, model.head.get("order", ()))
    graph, shown = neighbours([(*given, name) for name, given, _ in tree.nodes], model.sizes), model.visible
    wanted = [(n,) for n in shown] + [q for q in itertools.combinations(shown, 2) if q[1] in graph[q[0]]]
    tests = []
    for q, p in marginals(tree, [q for q in wanted if all(model.sizes[n] > 1 for n in q)]).items():
        at = np.ravel_multi_index([codes[n] for n in q], p.shape)
        tests.append((" × ".join(q), *_square(np.bincount(at, minlength=p.size), rows * p.ravel())))
    return _judged(tests), len(tests)


def _square(found: Any, expected: Any) -> tuple[float, int]:
    """χ² and its degrees of freedom; cells of few expected rows count as one, and a row in an empty cell as infinite."""
    if np.any(found[expected < 1e-9] > 0):
        return math.inf, 1
    big = expected >= LEAST_EXPECTED
    wanted, got = np.append(expected[big], expected[~big].sum()), np.append(found[big], found[~big].sum())
    fine = wanted >= LEAST_EXPECTED
    return float(np.sum((got[fine] - wanted[fine]) ** 2 / wanted[fine])), int(fine.sum())


def _judged(tests: list[tuple[str, float, int]]) -> list[str]:
    """The tables whose χ² is too large. It is divided by 1.25: cells of eight rows have a heavier tail than χ²."""
    level = ALARM / max(len(tests), 1)
    return [
        f"{n} of the rows is not the model's: χ² = {s:.0f} on {d}"
        for n, s, d in tests
        if d and chi2.sf(s / 1.25, d) < level
    ]


def _copies(folder: Folder) -> None:
    """Each copy has the release's columns and domain."""
    for path in sorted((folder.path / "copies").glob("*.csv.gz")) if (folder.path / "copies").is_dir() else []:
        try:
            with gzip.open(path) as file:
                read_rows(folder, file.read(1 << 30))
        except (ValueError, OSError, EOFError, csv.Error) as error:
            folder.add(5, False, f"copies/{path.name}: {error}")
