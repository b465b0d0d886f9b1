"""Generated tables and projects as they occur in practice, each with the exit status that the command line must return.

A table is read with the project `STANDARD` unless it has its own. Status 0: released in full; 2: refused in one to
three lines; None: one of these two.
"""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import openpyxl
import pyarrow as pa
from pyarrow import parquet

SCHEMA: list[dict[str, Any]] = [
    {"name": "a", "kind": "categorical", "categories": ["x", "y"]},
    {"name": "b c", "kind": "numeric", "edges": [0, 5, 10], "missing": True},
]
ROWS = [["x", "1"], ["y", "7"], ["x", ""]] * 20


def project(schema: Any = None, plan: Any = None, **more: Any) -> dict[str, Any]:
    """Return a valid project with these changes."""
    return {
        "format": "espalier-project/1",
        "name": "t",
        "schema": schema or SCHEMA,
        "plan": {"method": "mst", "epsilon": 1.0, "delta": 1e-6, **(plan or {})},
        **more,
    }


STANDARD = project()


@dataclass(frozen=True)
class Case:
    """A table file and its project."""

    name: str
    file: str
    make: Callable[[], bytes]
    status: int | None
    project: dict[str, Any]


def categorical(*names: str, values: Sequence[str] = ("x", "y"), **more: Any) -> list[dict[str, Any]]:
    """Return a schema of identical columns."""
    return [{"name": n, "kind": "categorical", "categories": list(values), **more} for n in names]


def text(rows: Sequence[Sequence[str]] = ROWS, header: Sequence[str] = ("a", "b c"), **dialect: Any) -> str:
    """Return CSV text."""
    out = io.StringIO()
    csv.writer(out, **{"lineterminator": "\n", **dialect}).writerows([header, *rows])
    return out.getvalue()


def bomb() -> bytes:
    """Return 400 MB of rows in 400 kB."""
    return gzip.compress(b"a,b c\n") + gzip.compress(b"x,1\n" * 1_000_000) * 100


def delimited() -> Iterator[tuple[str, bytes, int | None]]:
    """Yield text files that differ in delimiter, quoting, line breaks and encoding."""
    plain = text()
    for label, delimiter in (("comma", ","), ("semicolon", ";"), ("tab", "\t"), ("pipe", "|")):
        yield f"delimiter {label}", text(delimiter=delimiter).encode(), 0
        yield f"delimiter {label}, all quoted", text(delimiter=delimiter, quoting=csv.QUOTE_ALL).encode(), 0
    yield "delimiter colon", text(delimiter=":").encode(), 2
    yield "delimiter space", b"a b\nx 1\n", 2
    for encoding in ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp037"):
        status = {"utf-16": 2, "utf-16-le": 2, "utf-16-be": 2, "utf-32": 2, "cp037": 2}.get(encoding, 0)
        yield f"encoding {encoding}", plain.encode(encoding), status
    yield "half an utf-16", plain.encode("utf-16")[:-1], 2
    yield "line ends crlf", text(lineterminator="\r\n").encode(), 0
    yield "line ends cr", text(lineterminator="\r").encode(), 0
    yield "no last line end", plain.encode().rstrip(b"\n"), 0
    yield "blank lines at the end", plain.encode() + b"\n\n\n", 2
    yield "blank lines between", plain.encode().replace(b"y,7\n", b"y,7\n\n"), 2
    yield "blank lines before", b"\n\n" + plain.encode(), 2
    yield "spaces around cells", plain.encode().replace(b"x,1", b" x , 1 "), 2
    yield "quotes doubled inside", text([['x"', "1"]] * 9).encode(), 2
    yield "a quote in the middle", b'a,b c\nx"x,1\n', 2
    yield "a quote never closed", b'a,b c\n"x,1\n', 2
    yield "a line break in quotes", b'a,b c\n"x\n",1\n', 2
    yield "single quotes", b"'a','b c'\n'x','1'\n", 2
    yield "gzipped", gzip.compress(plain.encode()), 0
    yield "gzipped twice", gzip.compress(gzip.compress(plain.encode())), 2
    yield "half a gzip", gzip.compress(plain.encode())[:-9], 2
    yield "not gzip", b"\x1f\x8b" + b"x" * 100, 2
    yield "a gzip bomb", bomb(), 2
    yield "a comment line", b"# made by hand\n" + plain.encode(), 2
    yield "a sep line", b"sep=,\n" + plain.encode(), 2
    yield "html", b"<html><table><tr><td>a</td></tr></table></html>", 2
    yield "json", b'[{"a": "x", "b c": 1}]', 2
    yield "bytes", bytes(range(256)) * 4, 2
    yield "zeros", b"\x00" * 5000, 2
    yield "a zero inside", plain.encode().replace(b"y,7", b"y,\x007", 1), 2
    yield "empty", b"", 2
    yield "spaces only", b"   \n \n", 2
    yield "a byte-order mark only", b"\xef\xbb\xbf", 2
    yield "commas only", b",,,\n,,,\n", 2
    yield "header only", b"a,b c\n", 2
    yield "header without line end", b"a,b c", 2
    yield "one row", b"a,b c\nx,1\n", 0
    yield "two rows", b"a,b c\nx,1\ny,2\n", 0
    yield "one column", b"a\nx\ny\n", 2
    yield "columns the other way round", text([r[::-1] for r in ROWS], ("b c", "a")).encode(), 0
    yield "a column too many", text([[*r, "z"] for r in ROWS], ("a", "b c", "d")).encode(), 0
    yield "a nameless column too many", text([[*r, "z"] for r in ROWS], ("a", "b c", "")).encode(), 0
    yield "two nameless columns", text([[*r, "z", "z"] for r in ROWS], ("a", "b c", "", "")).encode(), 2
    yield "a name twice", b"a,a,b c\nx,x,1\n", 2
    yield "a delimiter in a name, without quotes", b"a;d,b c\nx,1\n", 2
    yield "names differ by case", b"A,B C\nx,1\n", 2
    yield "names with spaces", b"a ,b c\nx,1\n", 2
    yield "a short row", b"a,b c\nx,1\ny\n", 2
    yield "a long row", b"a,b c\nx,1\ny,2,3\n", 2
    yield "an unknown category", b"a,b c\nz,1\n", 2
    yield "an empty category", b"a,b c\n,1\n", 2
    yield "latin-1 in one line", text().encode() + "é,1\n".encode("latin-1"), 2
    yield "a million characters in a cell", text([*ROWS, ["x" * 1_000_000, "1"]]).encode(), 2
    yield "a million characters in a name", text(header=("a", "b" * 1_000_000)).encode(), 2
    yield "a million digits", text([*ROWS, ["x", "1" * 1_000_000]]).encode(), None
    yield "a thousand columns", text([["x"] * 1000] * 3, [f"c{i}" for i in range(1000)]).encode(), 2
    numbers = {
        "inf": 2,
        "-inf": 2,
        "Infinity": 2,
        "nan": 2,
        "NaN": 2,
        "NA": 2,
        "null": 2,
        "None": 2,
        "1e400": 0,
        "-1e400": 0,
        "1e-400": 0,
        "-0": 0,
        "+3": 0,
        "3.": 0,
        ".5": 0,
        "1,5": 2,
        "1 000": 2,
        "0x10": 2,
        "1_000": 2,
        "٣": 2,
        "３": 2,
        "1e": 2,
        "true": 2,
        "2024-02-30": 2,
        "1/2": 2,
        "=1+1": 2,
        "99999999999999999999999999": 0,
        "1e5": 0,
        " 4 ": 0,
        "−4": 2,
        "4%": 2,
        "$4": 2,
        "4\x1b[31m": 2,
    }
    for number, status in numbers.items():
        yield f"the number {number!r}", text([*ROWS, ["y", number]]).encode(), status


def excel(*rows: Sequence[Any], sheets: int = 1) -> bytes:
    """Return a workbook."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(list(row))
    for i in range(sheets - 1):
        book.create_sheet(f"more {i}")
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def repacked(data: bytes, part: str, content: bytes) -> bytes:
    """Return a zip file with one part replaced."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, content if name == part else old.read(name))
        if part not in old.namelist():
            new.writestr(part, content)
    return out.getvalue()


def sheet(body: str, dimension: str = "A1:B2", before: str = "") -> bytes:
    """Return a workbook whose first sheet is written by hand."""
    xml = (
        f'<?xml version="1.0"?>{before}<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        f'<dimension ref="{dimension}"/><sheetData>{body}</sheetData></worksheet>'
    )
    return repacked(excel(["a", "b c"]), "xl/worksheets/sheet1.xml", xml.encode())


def cell(ref: str, value: str) -> str:
    """Return a cell of text."""
    return f'<c r="{ref}" t="inlineStr"><is><t>{value}</t></is></c>'


HEAD = f'<row r="1">{cell("A1", "a")}{cell("B1", "b c")}</row>'


def workbooks() -> Iterator[tuple[str, Callable[[], bytes], int | None]]:
    """Yield Excel files: valid, broken and hostile ones."""
    good = [("a", "b c"), ("x", 1), ("y", 7.5), ("x", None)]
    yield "plain", lambda: excel(*good), 0
    yield "several sheets", lambda: excel(*good, sheets=3), 0
    yield "no rows", lambda: excel(("a", "b c")), 2
    yield "nothing", lambda: excel(), 2
    yield "an empty row between", lambda: excel(*good[:2], (), *good[2:]), 2
    yield "empty rows at the end", lambda: excel(*good, (None, ""), (None, None)), None
    yield "a formula", lambda: excel(*good, ("x", "=1+1")), 2
    yield "a formula for a category", lambda: excel(*good, ("=1+1", 1)), 2
    yield "a date", lambda: excel(*good, ("x", dt.datetime(2024, 2, 29))), 2
    yield "a time", lambda: excel(*good, (dt.time(12, 30), 1)), 2
    yield "a truth", lambda: excel(*good, (True, 1)), 2
    yield "an error value", lambda: sheet(HEAD + '<row r="2"><c r="A2" t="e"><v>#DIV/0!</v></c></row>'), 2
    yield "mixed types", lambda: excel(*good, (1, "x")), 2
    yield "a name twice", lambda: excel(("a", "a", "b c"), ("x", "x", 1)), 2
    yield "numbers for names", lambda: excel((1, 2.5), ("x", 1)), 2
    yield "a nameless column", lambda: excel(("a", None, "b c"), ("x", 3, 1)), 0
    yield "a cell beyond the header", lambda: excel(*good, ("x", 1, 2)), 2
    yield (
        "a cell at the far corner",
        lambda: sheet(
            HEAD + f'<row r="2">{cell("A2", "x")}</row><row r="1048576">{cell("XFD1048576", "x")}</row>',
            "A1:XFD1048576",
        ),
        2,
    )
    yield "a huge declared size", lambda: sheet(HEAD + f'<row r="2">{cell("A2", "x")}</row>', "A1:XFD1048576"), 0
    yield "cells without a place", lambda: sheet("<row><c><v>1</v></c></row>" * 3), 2
    yield "a wrong place", lambda: sheet(f"<row r='1'>{cell('!!', 'a')}</row>"), 2
    yield "rows that go back", lambda: sheet(HEAD + f'<row r="9">{cell("A9", "x")}</row><row r="2"></row>'), None
    yield "a wrong shared string", lambda: sheet(HEAD + '<row r="2"><c r="A2" t="s"><v>99999</v></c></row>'), 2
    yield "broken xml", lambda: sheet("<row><c>"), 2
    yield (
        "a billion laughs",
        lambda: sheet(
            HEAD + f'<row r="2">{cell("A2", "&l9;")}</row>',
            before="<!DOCTYPE x [<!ENTITY l0 'ha'>"
            + "".join(f"<!ENTITY l{i} '{f'&l{i - 1};' * 10}'>" for i in range(1, 10))
            + "]>",
        ),
        2,
    )
    yield (
        "an outside entity",
        lambda: sheet(
            HEAD + f'<row r="2">{cell("A2", "&e;")}</row>',
            before='<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>',
        ),
        2,
    )
    yield "a bomb of one cell", lambda: sheet(HEAD + f'<row r="2">{cell("A2", "x" * 60_000_000)}</row>'), 2
    yield "a bomb of rows", lambda: sheet(HEAD + f"<row>{cell('A2', 'x')}</row>" * 1_500_000), 2
    yield "a bomb next to the sheet", lambda: repacked(excel(*good), "xl/media/1.bin", b"\0" * 80_000_000), 2
    yield "no sheet", lambda: repacked(excel(*good), "xl/workbook.xml", b"<workbook/>"), 2
    yield "a zip without a workbook", lambda: repacked(_zip({}), "a.csv", text().encode()), 2
    yield "an empty zip", lambda: _zip({}), 2
    yield "half a zip", lambda: excel(*good)[:-50], 2
    yield "not a zip", lambda: b"PK\x03\x04" + b"x" * 100, 2
    yield "ten thousand parts", lambda: _zip({f"{i}.xml": b"" for i in range(10_000)}), 2


def _zip(parts: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return out.getvalue()


def arrow(**columns: Any) -> bytes:
    """Return a Parquet file."""
    out = io.BytesIO()
    parquet.write_table(pa.table(columns), out)
    return out.getvalue()


def parquets() -> Iterator[tuple[str, Callable[[], bytes], int | None]]:
    """Yield Parquet files: types that are not one plain value per cell, and files that are not what they claim."""
    x, n = ["x", "y", "x"], [1, 2, 3]
    kinds: dict[str, tuple[Any, int | None]] = {
        "integers": (n, 0),
        "doubles": ([1.0, 2.5, None], 0),
        "nan": ([1.0, float("nan"), 2.0], 0),
        "infinity": ([1.0, float("inf"), 2.0], 2),
        "decimals": ([decimal.Decimal("1.50")] * 3, 0),
        "truths": ([True, False, True], 2),
        "nulls": (pa.nulls(3), 0),
        "half floats": (pa.array([1, 2, 3], pa.float16()), 0),
        "dates": ([dt.date(2024, 1, 1)] * 3, 2),
        "moments": ([dt.datetime(2024, 1, 1, 1)] * 3, 2),
        "moments with a zone": (pa.array([0, 1, 2], pa.timestamp("ns", tz="UTC")), 2),
        "nanoseconds": (pa.array([1, 2, 3], pa.timestamp("ns")), 2),
        "durations": ([dt.timedelta(seconds=1)] * 3, 2),
        "lists": ([[1], [2], [3]], 2),
        "structs": ([{"u": 1}] * 3, 2),
        "bytes": ([b"1"] * 3, 2),
        "maps": (pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int64())), 2),
        "lists of lists": ([[[1]], [[2]], [[3]]], 2),
        "large text": (pa.array(["1", "2", "3"], pa.large_string()), 0),
        "huge integers": ([2**63 - 1, -(2**63), 0], 0),
        "dictionary": (pa.array(["1", "2", "1"]).dictionary_encode(), 0),
    }
    for label, (values, status) in kinds.items():
        yield label, lambda v=values: arrow(**{"a": x, "b c": v}), status
    yield "no rows", lambda: arrow(**{"a": pa.array([], pa.string()), "b c": pa.array([], pa.int64())}), 2
    yield "no columns", lambda: arrow(), 2
    yield "a name twice", lambda: _twice(), 2
    yield "half a file", lambda: arrow(**{"a": x, "b c": n})[:-20], 2
    yield "not parquet", lambda: b"PAR1" + b"x" * 100, 2
    yield "only the magic word", lambda: b"PAR1", 2
    yield (
        "a bomb of rows",
        lambda: arrow(a=pa.nulls(10_000_000), **{f"c{i}": pa.nulls(10_000_000) for i in range(30)}),
        2,
    )
    yield (
        "a bomb of one long text",
        lambda: arrow(a=pa.DictionaryArray.from_arrays(pa.array([0] * 50_000), pa.array(["x" * 1_000_000]))),
        2,
    )


def _twice() -> bytes:
    out = io.BytesIO()
    parquet.write_table(pa.table([pa.array(["x"]), pa.array(["x"])], names=["a", "a"]), out)
    return out.getvalue()


ODD_NAMES = (
    "=1+1",
    '=HYPERLINK("http://evil.example")',
    "+1+cmd",
    "-2+3",
    "@SUM(A1)",
    "\ttab",
    "<script>alert(1)</script>",
    "[click](http://evil.example)",
    "**bold** `code`",
    "$x^2$",
    "\u202eright to left",
    "a\nb",
    "\u0000",
    "\x1b[2J",
    "'",
    '"',
    "a,b",
    "a;b",
    "name" * 200,
    "🌿",
    "é" + "\u0301" * 30,
    "../../etc/passwd",
    "CON",
    "{{7*7}}",
    "%s%n",
    "null",
    "NaN",
    "0",
    "  ",
    "\u00a0",
    "\u200b",
)


def with_projects() -> Iterator[tuple[str, str, Callable[[], bytes], dict[str, Any], int | None]]:
    """Yield tables that need a project of their own."""
    for odd in ODD_NAMES:
        shown = ascii(odd)[:30]
        rows = [[odd, "x"], ["other", "y"]] * 10
        schema = categorical("a", values=(odd, "other")) + categorical("b")
        status = {"\u0000": None, "a\nb": 2}.get(odd, 0)
        yield f"category {shown}", "t.csv", lambda r=rows: text(r, ("a", "b")).encode(), project(schema), status
        if "\n" in odd:
            yield (
                f"parquet, category {shown}",
                "t.parquet",
                lambda r=rows: arrow(a=[x[0] for x in r], b=[x[1] for x in r]),
                project(schema),
                0,
            )
        schema = categorical(odd, "b")
        yield (
            f"column {shown}",
            "t.csv",
            lambda o=odd: text([["x", "y"]] * 10, (o, "b"), quoting=csv.QUOTE_ALL).encode(),
            project(schema, {"target": odd}, name=odd, dag={"edges": [[odd, "b"]], "notes": {odd: odd}}),
            status,
        )
    wide = [f"c{i}" for i in range(200)]
    yield "200 columns", "t.csv", lambda: text([["x", "y"] * 100] * 30, wide).encode(), project(categorical(*wide)), 0
    yield (
        "a declared million characters",
        "t.csv",
        lambda: text([["x" * 1_000_000], ["y"]], ("a",)).encode(),
        project(categorical("a", values=("x" * 1_000_000, "y"))),
        0,
    )
    many = [str(i) for i in range(20_000)]
    yield (
        "20,000 categories",
        "t.csv",
        lambda: text([[v, "x"] for v in many], ("a", "b")).encode(),
        project(categorical("a", values=many) + categorical("b")),
        0,
    )
    yield (
        "two columns of 20,000 categories",
        "t.csv",
        lambda: text([[v, v] for v in many], ("a", "b")).encode(),
        project(categorical("a", "b", values=many)),
        2,
    )
    one = categorical("a", values=("x",))
    yield "a constant column alone", "t.csv", lambda: b"a\n" + b"x\n" * 9, project(one), 0
    yield (
        "a column of empty cells",
        "t.csv",
        lambda: b"a,b\n" + b",x\n" * 9,
        project(categorical("a", missing=True) + categorical("b")),
        0,
    )
    yield "one column of empty cells", "t.csv", lambda: b'a\n""\n""\n', project(categorical("a", missing=True)), None
    loose = [{**SCHEMA[0], "missing": True, "unknown": "missing"}, {**SCHEMA[1], "unknown": "missing"}]
    yield (
        "anything at all, sent to missing",
        "t.csv",
        lambda: text([["?", "inf"], ["=1", "x"]] * 9).encode(),
        project(loose),
        0,
    )
    yield (
        "dates as categories",
        "t.parquet",
        lambda: arrow(a=[dt.date(2024, 1, i + 1) for i in range(3)]),
        project(categorical("a", values=[f"2024-01-0{i + 1}" for i in range(3)])),
        0,
    )


def tables() -> list[Case]:
    """Return all tables."""
    found = [Case(f"csv: {n}", "t.csv", lambda b=b: b, s, STANDARD) for n, b, s in delimited()]
    found += [Case(f"xlsx: {n}", "t.xlsx", make, s, STANDARD) for n, make, s in workbooks()]
    found += [Case(f"parquet: {n}", "t.parquet", make, s, STANDARD) for n, make, s in parquets()]
    found += [Case(f"own project: {n}", file, make, s, p) for n, file, make, p, s in with_projects()]
    return found


FULL: dict[str, Any] = project(
    [*SCHEMA, {"name": "g", "kind": "ordinal", "categories": ["1", "2"], "groups": {"2": ["3"]}, "guessed": []}],
    {
        "regime": "causal",
        "fair": False,
        "strict": False,
        "target": "a",
        "neighbors": "replace-one",
        "rows_per_person": 1,
        "allocation": "optimal",
        "accounting": "zcdp",
        "features": 2,
        "rows": 50,
        "max_cells": 1000,
    },
    dag={"edges": [["a", "g"]], "notes": {"a": "why"}, "positions": {"a": [0, 1]}},
    roles={"outcome": ["a"], "protected": ["g"], "admissible": [], "inadmissible": []},
)
WRONG: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    3,
    10**400,
    1e308,
    -1e-308,
    0.1,
    "",
    "text",
    "\u0000",
    [],
    [None],
    [[]],
    ["a"],
    [1, 2],
    [["a", "a"]],
    {},
    {"a": None},
    {"a": {"a": {}}},
)


def broken(value: Any = FULL, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the whole project with every key, at any depth, given every wrong value, left out, or joined by another."""
    children = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    for key, child in children:
        here = (*path, key)
        for wrong in WRONG:
            yield f"{'.'.join(map(str, here))} = {str(wrong)[:20]}", _with(FULL, here, lambda w, v=wrong: v)
        if isinstance(value, dict):
            yield (
                f"no {'.'.join(map(str, here))}",
                _with(FULL, path, lambda d, k=key: {n: v for n, v in d.items() if n != k}),
            )
        if isinstance(child, dict | list):
            yield from broken(child, here)
    if isinstance(value, dict):
        yield f"unknown key in {path}", _with(FULL, path, lambda d: {**d, "colour": 1})


def _with(value: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(value)
    inner = _with(value[path[0]], path[1:], change)
    if isinstance(value, dict):
        return {**value, path[0]: inner}
    return [inner if i == path[0] else v for i, v in enumerate(value)]


def projects() -> dict[str, bytes]:
    """Return project files that must all be refused."""
    right = json.dumps(STANDARD)
    deep = "[" * 200 + "]" * 200
    return {
        "nothing": b"",
        "half": right[:-3].encode(),
        "a brace": b"{",
        "a list": b"[]",
        "a text": b'"project"',
        "a number": b"17",
        "null": b"null",
        "binary": bytes(range(256)),
        "utf-16": right.encode("utf-16"),
        "latin-1": right.replace('"t"', '"é"').encode("latin-1"),
        "a comment": b"// mine\n" + right.encode(),
        "a comma too many": right.replace("]}", "],}").encode(),
        "single quotes": right.replace('"', "'").encode(),
        "two projects": right.encode() * 2,
        "another format": right.replace("project/1", "project/9").encode(),
        "nan": right.replace("1.0", "NaN").encode(),
        "infinity": right.replace("1.0", "-Infinity").encode(),
        "1e999": right.replace("1.0", "1e999").encode(),
        "long digits": right.replace("1.0", "1" * 5000).encode(),
        "many digits": right.replace("1.0", "1" * 4000).encode(),
        "a key twice": right.replace('"name": "t"', '"name": "t", "name": "u"').encode(),
        "deep lists": b"[" * 100_000,
        "deep objects": b'{"a":' * 100_000,
        "deep in a column": right.replace('"x", "y"', deep).encode(),
        "deep in the notes": json.dumps(project(dag={"notes": {"a": 0}})).replace('"a": 0', '"a": ' + deep).encode(),
        "half a surrogate": right.replace('"t"', '"\\ud800"').encode(),
        "half a surrogate in a category": right.replace('"x"', '"\\udfff"').encode(),
        "a million columns": json.dumps(project([{"name": ""}] * 100_000)).encode(),
        "ten megabytes of nothing": right.encode() + b" " * 10_000_000 + b"!",
    }
