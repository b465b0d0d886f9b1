"""Check 5: the rows were drawn from the model. It checks their number, domain, impossible cells and goodness of fit."""

import csv
import io
import itertools
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import date
from functools import cache
from typing import Any

import numpy as np
from scipy.special import gammaincc

from .folder import Array, Folder, edges_of, values_of
from .model import Model, Nodes
from .noise import Answers

ALARM, LEAST_EXPECTED, MOST_CELLS = 1e-7, 8.0, 5_000_000
GOLDEN, BLOCK = (5**0.5 - 1) / 2, 16_384
"""The fractional part of the golden ratio, and the number of rows that a network draws together."""
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?(e[+-]\d+)?", re.ASCII)
FORMULA = re.compile(r"'+([=@＝＠\t\r\n]|[+\-＋－].)", re.DOTALL)
LATER = re.compile(r"(?<=[;\t\r\n])'(?='*([=@＝＠]|[+\-＋－][^;\t\r\n]))")
"""Beginnings of text (also after a separator) that get an apostrophe, which prevents spreadsheets from executing the
text as a formula.
"""
Codes = dict[str, Array]


def restored(text: str) -> str:
    """Return a text without these apostrophes."""
    text = LATER.sub("", text)
    return text[1:] if FORMULA.match(text) else text


def table_of(data: bytes) -> Iterator[list[str]]:
    """Yield the lines of a table. Raises ``ValueError`` unless only cells that need quotes have them.

    In a table with a single column, all cells are in quotes. Names may be in quotes.
    """
    text = data.decode()
    if '"' in text or "\r" in text:
        names, *lines = csv.reader(io.StringIO(text, newline=""), strict=True)
        body = "".join(written(line, always=len(names) == 1) for line in lines)
        if text not in (written(names, always=always) + body for always in (False, True)):
            raise ValueError("cells are in quotes although they need none, or a line ends in an unusual way")
    return csv.reader(io.StringIO(text, newline=""), strict=True)


def written(cells: list[str], *, always: bool) -> str:
    """Return a line of a table, with quotes around the cells that need them, or around all cells."""
    quoted = ('"' + c.replace('"', '""') + '"' if always or re.search('[,"\r\n]', c) else c for c in cells)
    return ",".join(quoted) + "\n"


def read_rows(folder: Folder, data: bytes) -> tuple[Codes, int]:
    """Return the code of each cell: its category or bin, or the last code if it is missing. Raises ``ValueError`` for a
    cell outside its domain.
    """
    lines = table_of(data)
    schema, names = folder.facts["project"]["schema"], [restored(name) for name in next(lines, [])]
    if names != [c["name"] for c in schema if c["kind"] != "identifier" or c.get("invented")]:
        raise ValueError("the table's columns differ from the schema's")
    columns = [(names.index(c["name"]), c["name"], coder(c), dict[str, int](), list[int]()) for c in folder.columns]
    rows, invented = 0, {i: list[str]() for i, n in enumerate(names) if n not in folder.sizes}
    for rows, line in enumerate(lines, 1):
        if len(line) != len(names):
            raise ValueError(f"line {rows} has a different number of cells from the header")
        for place, _, code_of, known, codes in columns:
            text = line[place]
            if text not in known:
                known[text] = code_of(text)
            codes.append(known[text])
        for place, texts in invented.items():
            texts.append(line[place])
    if not all(numbered(texts, "S") for texts in invented.values()):
        raise ValueError("identifiers are not all invented")
    return {name: np.array(codes, dtype=np.int64) for _, name, _, _, codes in columns}, rows


def numbered(texts: list[str], letter: str) -> bool:
    """Return whether texts are invented identifiers: the letter and a number, with each number occurring once."""
    return sorted(texts) == [f"{letter}{i:0{len(str(len(texts)))}d}" for i in range(1, len(texts) + 1)]


def coder(column: dict[str, Any]) -> Callable[[str], int]:
    """Return the code of a cell, as a function of its text."""
    values = column.get("categories")
    values, edges = (None, edges_of(column)) if values is None else (list(values), [])

    def code_of(text: str) -> int:
        if text == "" and column.get("missing"):
            return len(values or edges[1:])
        if values is not None:
            return values.index(restored(text))
        dated = "dates" in column
        number = float(date.fromisoformat(text).toordinal() if dated else text)
        plain = str(date.fromordinal(int(number)) if dated else int(number)) if column.get("integer") or dated else text
        if not edges[0] <= number <= edges[-1] or plain != text or not (dated or NUMBER.fullmatch(text)):
            raise ValueError(f"a cell of {column['name']} is outside the column's domain, or written in an unusual way")
        return min(bisect_right(edges, number) - 1, len(edges) - 2)

    return code_of


def breaches(folder: Folder, codes: dict[str, Array]) -> list[str]:
    """Return the constraints of the project that rows break."""
    project, columns = folder.facts["project"], {c["name"]: c for c in folder.columns}
    present = {name: codes[name] < len(values_of(c)) for name, c in columns.items()}

    def listed(name: str, values: Any) -> Array:
        """Return whether each row has one of these values, or a value in this range."""
        column = columns[name]
        if isinstance(values, list):
            known = [*column.get("categories", ()), *[""] * bool(column.get("missing"))]
            return np.isin(codes[name], [known.index(x) if x in known else coder(column)(x) for x in values])
        lows = np.array(edges_of(column)[:-1])
        lows = np.ceil(lows) if column.get("integer") else lows
        inside = (lows >= values.get("from", -math.inf)) & (lows < values.get("below", math.inf))
        return present[name] & np.append(inside, False)[codes[name]]

    def impossible(rule: Any) -> Array:
        marked = any(isinstance(rule.get(key), bool) for key in ("guessed", "confirmed"))
        return np.logical_and.reduce([listed(n, v) for n, v in (rule["values"] if marked else rule).items()])

    def monotone(rule: Any) -> Array:
        low, high = rule["columns"] if isinstance(rule, dict) else rule
        return present[low] & present[high] & (codes[low] > codes[high])

    def determines(rule: Any) -> Array:
        (cause, effect), out = rule["columns"], np.zeros(len(codes[rule["columns"][0]]), bool)
        for text, value in rule["table"].items():
            if text or columns[cause].get("missing"):
                out |= listed(cause, [text]) & present[effect] & ~listed(effect, [value])
        return out

    wrong = list[str]()
    for kind, broken in (("impossible", impossible), ("monotone", monotone), ("determines", determines)):
        for i, rule in enumerate(project.get(kind, []), 1):
            try:
                rows = int(broken(rule).sum())
            except (LookupError, ValueError):  # for example, a category of a bought schema that was merged
                folder.note(5, f"constraint {i} under {kind} names values that are not in the schema: not tested")
            else:
                wrong += [f"{rows:,} rows break constraint {i} under {kind}"] * bool(rows)
    return wrong


def check_rows(folder: Folder, model: Model | None, answers: Answers | None) -> None:
    """Compare the rows of ``synthetic.csv`` with ``release.json`` and the model, and the copies with the schema."""
    facts = folder.facts
    codes, rows = read_rows(folder, folder.read("synthetic.csv"))
    shown = facts.get("rows_shown", facts["rows"])
    wrong = [f"the table has {rows:,} rows, but a different number is stated"] if rows != shown else []
    if "rows_shown" in facts and not facts["rows"] > min(1_000_000, 20_000_000 // len(folder.columns)):
        wrong.append("a table of this size contains all rows, but a different number is stated")
    for clique, mask in answers.impossible.items() if answers else ():
        if mask[tuple(codes[n] for n in clique)].any():
            wrong.append(f"rows are in impossible cells of {' × '.join(clique)}")
    wrong += breaches(folder, codes)
    for name in sorted(n for n in folder.names if n.startswith("copies/") and n.endswith(".csv.gz")):
        copied, number = read_rows(folder, folder.unpacked(name))
        wrong += [f"{name} has a different number of rows"] * (number != facts["rows"])
        wrong += [f"{name}: {said}" for said in breaches(folder, copied)]
    if model is None:
        folder.say(5, wrong, f"{rows:,} rows in their domains; no model to compare them with")
        return
    wrong += unlike(folder, model.total)
    nodes = model.nodes
    for name, (given, values) in model.hidden.items():
        codes[name] = values[tuple(codes[n] for n in given)]
    even = facts["project"]["plan"].get("rows_drawn", "even") == "even" and "rows_shown" not in facts
    even = even and bool(model.order or model.network) and not model.pool
    tests = weighted(model, codes, rows) if model.pool else spread(nodes, codes)
    wrong += rounded(nodes, codes, model.network) if even else []
    wrong += unlikely(tests)
    said = ", as evenly as whole numbers allow" if even else ""
    folder.say(5, wrong, f"{rows:,} rows follow the model in {len(tests)} tables{said}")


def unlike(folder: Folder, total: float) -> list[str]:
    """Check the number of rows if n is private: it must be the model's, unless the plan states another number."""
    plan = folder.facts["project"]["plan"]
    if not folder.statement or folder.statement["unit"]["rows"] is not None or plan.get("rows"):
        return []
    rows = max(round(total / (1 - (plan.get("private_evaluation") or 0))), 1)
    return [] if folder.facts["rows"] == rows else [f"the table should have {rows:,} rows, like the model"]


def unlikely(tests: list[tuple[str, float, int]]) -> list[str]:
    """Return the tables whose χ² is above its bound. χ² is divided by 1.25, because cells with eight rows have a
    heavier tail.
    """
    return [
        f"{name} of the rows does not match the model: χ² = {square:.0f} on {df}"
        for name, square, df in tests
        if df and not gammaincc(df / 2, square / 2.5) >= ALARM / len(tests)
    ]


@cache
def stray(count: int) -> float:
    """Return how far the number of points in an interval may be from ``count`` times its length, for ``count``
    successive multiples of the golden ratio modulo 1. With sorted x, this is the range of i − count·x_i, plus one. The
    start does not matter.
    """
    numbers = np.sort(GOLDEN * np.arange(count) % 1)
    apart = np.arange(count) - count * numbers
    return float(apart.max() - apart.min()) + 1 if count else 0.0


def far(held: Array, shares: Array, golden: bool) -> float:
    """Return how far the ``held`` counts (one line per group) deviate from their shares beyond what an even draw
    allows.
    """
    rows = held.sum(axis=1)
    most = np.array([stray(n) for n in rows.tolist()]) if golden else np.ones(len(rows))
    off = np.abs(held - rows[:, None] * shares).max(axis=1)
    return float((off - most).max(initial=0)) - 1e-6 * max(1.0, math.sqrt(rows.sum()))


def rounded(nodes: Nodes, codes: Codes, golden: bool) -> list[str]:
    """Check even rows: among n rows with equal ``given``, each category has n·p rows, rounded down or up.

    A network selects values by multiples of the golden ratio (``golden``), with a new start in each block of rows.
    """
    for name, given, table in nodes:
        for start in range(0, len(codes[name]), BLOCK if golden else len(codes[name])):
            part = [codes[n][start : start + BLOCK if golden else None] for n in (*given, name)]
            held = np.bincount(np.ravel_multi_index(part, table.shape), minlength=table.size)
            held = held.reshape(-1, table.shape[-1])
            if not (off := far(held, table.reshape(held.shape), golden)) <= 0:
                return [f"{name} is {off:.1f} rows further from the model in a group than an even draw allows"]
    return []


def spread(nodes: Nodes, codes: Codes) -> list[tuple[str, float, int]]:
    """Return χ² of each column with each earlier column. Of the rows with w = i, the expected number with v is Σ_g n(i,
    g)·p(v | g).

    Given all earlier columns, v depends on its ``given`` alone. Even rows vary less, so the test is one-sided.
    """
    tests, before = [], {"": 1}
    for name, given, table in nodes:
        size = table.shape[-1]
        p, zero = table.reshape(-1, size), np.zeros_like(codes[name])
        group = np.ravel_multi_index([codes[n] for n in given], table.shape[:-1]) if given else zero
        for other, many in before.items():
            if size > 1 and many * len(p) <= MOST_CELLS:
                at = codes.get(other, zero)
                held = np.bincount(at * len(p) + group, minlength=many * len(p)).reshape(many, -1)
                found = np.bincount(at * size + codes[name], minlength=many * size)
                tests.append((f"{other} × {name}", *chi_square(found, (held @ p).ravel())))
        before[name] = size
    return tests


def weighted(model: Model, codes: Codes, rows: int) -> list[tuple[str, float, int]]:
    """Check rows drawn from a weighted list. Each row must be in the list, and χ² compares each column and each pair
    with the list.
    """
    kept = model.weights * rows > 1e-6
    listed = set(zip(*(model.pool[n][kept].tolist() for n in model.sizes), strict=True))
    other = any(row not in listed for row in zip(*(codes[n].tolist() for n in model.sizes), strict=True))
    tests = [("whole rows", math.inf if other else 0.0, 1)]
    for q in itertools.chain(*(itertools.combinations(model.sizes, size) for size in (1, 2))):
        shape = [model.sizes[n] for n in q]
        wanted, found = (np.ravel_multi_index([held[n] for n in q], shape) for held in (model.pool, codes))
        share = np.bincount(wanted, model.weights, minlength=math.prod(shape))
        tests.append((" × ".join(q), *chi_square(np.bincount(found, minlength=share.size), rows * share)))
    return tests


def chi_square(found: Array, expected: Array) -> tuple[float, int]:
    """Return χ² and its degrees of freedom. Rare cells are merged into one, and a row in an empty cell gives
    infinity."""
    if np.any(found[expected < 1e-9] > 0):
        return math.inf, 1
    big = expected >= LEAST_EXPECTED
    wanted, got = np.append(expected[big], expected[~big].sum()), np.append(found[big], found[~big].sum())
    fine = wanted >= LEAST_EXPECTED
    return float(np.sum((got[fine] - wanted[fine]) ** 2 / wanted[fine])), int(fine.sum())
