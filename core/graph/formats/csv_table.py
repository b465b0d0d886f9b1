"""CSV files with a list of edges, or with an adjacency matrix that has the names in its first row."""

from __future__ import annotations

import csv
import io
import re

from espalier.core.csv_safety import defuse, restore
from espalier.core.graph.formats.mixed import MARKS, Builder, MixedGraph, broken, number, shown

_CAUSE = {"cause", "from", "source", "parent", "start", "node1", "head"}
_EFFECT = {"effect", "to", "target", "child", "end", "node2", "tail"}
_MARK = {"mark", "edge", "type", "edge_type", "edgetype"}
_TURNED = ("<-", "<-o", "--o")
Row = tuple[int, list[str]]


def is_table(text: str) -> bool:
    """Return whether this could be CSV, because its first line contains a separator."""
    return any(mark in text.split("\n", 1)[0] for mark in ",;\t")


def has_header(text: str) -> bool:
    """Return whether the text begins with the usual names of cause and effect columns."""
    cells = [cell.strip().strip('"').lower() for cell in re.split(r"[,;\t]", text.split("\n", 1)[0])]
    return len(cells) > 1 and cells[0] in _CAUSE and cells[1] in _EFFECT


def read(text: str, line: int = 1) -> MixedGraph:
    """Read an edge list or a matrix; raises :class:`GraphError`."""
    rows = _rows(text, line)
    if not rows:
        raise broken(line, "the table is empty")
    header = [cell.strip().lower() for cell in rows[0][1]]
    if len(header) > 1 and header[0] in _CAUSE and header[1] in _EFFECT:
        return _edge_list(rows[1:], header[2:])
    if _is_matrix(rows):
        return _matrix(rows)
    _refuse_other_text(rows)
    return _edge_list(rows, [])


def _refuse_other_text(rows: list[Row]) -> None:
    """Raise :class:`GraphError` if rows without a header are prose or a table of data instead of arrows."""
    known = {*MARKS, *_TURNED, ""}
    for line, cells in rows:
        if any(len(cell.split()) > 3 for cell in cells) and len({len(c) for _, c in rows}) > 1:
            raise broken(line, "this reads like prose, not like a list of arrows")
        if any(cell.strip() not in known and number(cell) is None for cell in cells[2:3]):
            raise broken(
                line,
                "this reads like a table of data; a list of arrows has two columns, or begins with the line "
                "cause,effect",
            )


def _rows(text: str, line: int) -> list[Row]:
    """Return the rows that are not empty, each with the line on which it begins."""
    first = text.split("\n", 1)[0]
    separator = max(",;\t", key=lambda mark: _outside_quotes(first).count(mark))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows: list[Row] = []
    before = 0
    try:
        for cells in reader:
            if any(cells):
                rows.append((line + before, cells))
            before = reader.line_num
    except csv.Error as error:
        raise broken(line + before, f"the table cannot be read: {error}") from None
    if len(rows) > 1 and all(cell[:1] == " " for _, cells in rows for cell in cells[1:]):
        rows = [(where, [cell.lstrip(" ") for cell in cells]) for where, cells in rows]
    return rows


def _outside_quotes(text: str) -> str:
    return re.sub(r'"[^"]*"', "", text)


def _edge_list(rows: list[Row], more: list[str]) -> MixedGraph:
    builder = Builder("csv")
    marks = more[:1] and more[0] in _MARK
    if not more and any(len(cells) > 2 for _, cells in rows):
        known = {*MARKS, *_TURNED, ""}
        marks = all(len(cells) > 2 and cells[2].strip() in known for _, cells in rows)
    for line, cells in rows:
        left, right = restore(cells[0]), restore(cells[1]) if len(cells) > 1 else ""
        if not right:
            builder.node(left, line)
            continue
        mark = cells[2].strip() if marks and len(cells) > 2 else ""
        builder.edge(left, mark or "->", right, line)
        if any(cell.strip() for cell in cells[3 if marks else 2 :]):
            builder.unused("an extra cell", line)
    return builder.done()


def _is_matrix(rows: list[Row]) -> bool:
    header, body = rows[0][1], [cells for _, cells in rows[1:]]
    if not header[0].strip() and len(header) > 1:
        return True
    if not body:
        return False
    named = [cells[0] for cells in body]
    same = set(named) == set(header[1:]) or set(named) == set(header)
    numeric = all(number(cell) is not None for cells in body for cell in cells[1 if same else 0 :])
    return numeric and (same or (len(body) == len(header) and all(len(cells) == len(header) for cells in body)))


def _matrix(rows: list[Row]) -> MixedGraph:
    """Read a matrix cell by cell: 0 and 1 (or weights), or the end marks of causal-learn (−1, 1, 2) or pcalg (1, 2,
    3).
    """
    builder = Builder("csv")
    top, header = rows[0]
    body = rows[1:]
    named = len(body[0][1]) == len(header) if body and not header[0].strip() else False
    named = named or (bool(body) and len(body[0][1]) == len(header) + 1)
    named = named or (bool(body) and {c[0] for _, c in body} == set(header[1:]))
    columns = header if body and len(body[0][1]) == len(header) + 1 else header[1:] if named else header
    names = [cells[0] for _, cells in body] if named else columns
    for name in columns:
        if name in builder.nodes:
            raise broken(top, f"two columns are called {shown(name)}")
        builder.node(name, top)
    if len(body) != len(columns):
        raise broken(rows[-1][0], f"a matrix of {len(columns)} nodes needs {len(columns)} rows below its first row")
    cells: dict[tuple[str, str], float] = {}
    line_of: dict[str, int] = {}
    for (line, row), name in zip(body, names, strict=True):
        if name not in builder.nodes or name in line_of:
            raise broken(line, f"the row name {shown(name)} must match exactly one column")
        line_of[name] = line
        values = row[1:] if named else row
        if len(values) != len(columns):
            raise broken(line, f"this row has {len(values)} cells, not {len(columns)}")
        for column, text in zip(columns, values, strict=True):
            value = number(text) if text.strip() else 0.0
            if value is None:
                raise broken(line, f"{shown(text)} is not a number")
            if value:
                cells[name, column] = value
    _edges_of(cells, line_of, builder)
    return builder.done()


def _edges_of(cells: dict[tuple[str, str], float], line_of: dict[str, int], builder: Builder) -> None:
    values = set(cells.values())
    ends: dict[float, str] = {}
    if values and values <= {-1, 1, 2} and all((b, a) in cells for a, b in cells) and values != {1}:
        ends, at_column = {-1: "-", 1: ">", 2: "o"}, False  # causal-learn: a cell is the mark at its row
    elif values and values <= {1, 2, 3} and all((b, a) in cells for a, b in cells) and values != {1}:
        ends, at_column = {1: "o", 2: ">", 3: "-"}, True  # pcalg's amat.pag: the mark at its column
    if ends:
        for (row, column), value in cells.items():
            other = cells[column, row]
            at_row, at_col = (other, value) if at_column else (value, other)
            if row < column:
                mark = _MARK_OF[ends[at_row] + ends[at_col]]
                builder.edge(row, mark, column, line_of[row])
        return
    if values - {1}:
        builder.unused("the weight of an edge", min(line_of.values()))
    for row, column in cells:
        if (column, row) not in cells or row == column:
            builder.edge(row, "->", column, line_of[row])
        elif row < column:
            builder.edge(row, "--", column, line_of[row])
    if any((column, row) not in cells for row, column in cells):
        builder.is_matrix = True


_MARK_OF = {
    "->": "->",
    ">-": "<-",
    ">>": "<->",
    "--": "--",
    "o>": "o->",
    ">o": "<-o",
    "oo": "o-o",
    "o-": "o--",
    "-o": "--o",
}


def write(graph: MixedGraph) -> str:
    """Return an edge list with a header. A node without edges has its own row. A third column is added if marks are
    needed. Names that look like formulas are escaped; :func:`read` removes the apostrophes again.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    marks = any(edge.mark != "->" for edge in graph.edges)
    writer.writerow(["cause", "effect", "mark"] if marks else ["cause", "effect"])
    joined = {name for edge in graph.edges for name in (edge.left, edge.right)}
    blank = ["", ""] if marks else [""]
    writer.writerows([defuse(node.name), *blank] for node in graph.nodes if node.name not in joined)
    edges = ((defuse(e.left), defuse(e.right), e.mark) for e in graph.edges)
    writer.writerows(edge if marks else edge[:2] for edge in edges)
    return out.getvalue()
