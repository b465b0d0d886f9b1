"""Who may touch private rows: lists of allowed callers, each with its reason.

A list that lacks a caller fails, and so does one that names a caller that no longer exists. Sources are found by their
annotations, which mypy requires: a name is a source if it is annotated as one, or assigned from a call that returns
one. Methods with a name that only sources have are found on any receiver.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from espalier.core.tables.source import Source

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted([*(ROOT / "core").rglob("*.py"), *(ROOT / "pages").rglob("*.py"), ROOT / "app.py"])
CLASSES = ("Source", "Table", "Snapshot", "Relation")
ONLY = {"count_many", "residual_sums", "batches"}
"""Members of a source that share their name with no other method of the product."""
OPENING = {
    *("open", "connect", "create_engine", "create_connection", "urlopen", "ZipFile"),
    *("read_text", "read_bytes", "write_text", "write_bytes", "ParquetFile", "ParquetWriter", "open_csv"),
}
"""Functions that open a file, an archive or a connection."""
PUBLIC = {"schema", "person_column", "names_people", "kept", "digest", "close"}
"""Members that hold no private value, or that every owner of a source may call."""

Reasons = Mapping[str, tuple[str, ...]]


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def where(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def mentions(annotation: ast.AST | None) -> bool:
    """Does an annotation contain the name of a source class?"""
    return annotation is not None and bool(re.search(rf"\b({'|'.join(CLASSES)})\b", ast.unparse(annotation)))


def last(node: ast.AST) -> str:
    """The last name of an expression: `table` for `table`, `self.table` and `table()`."""
    if isinstance(node, ast.Call | ast.Subscript):
        return last(node.func if isinstance(node, ast.Call) else node.value)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def names_of_sources(tree: ast.AST) -> set[str]:
    """Names and attributes of a file that are annotated as a source or assigned from one."""
    found = {"take"}  # the rows of a source are a source
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and mentions(node.returns):
            found.add(node.name)
        elif isinstance(node, ast.arg) and mentions(node.annotation):
            found.add(node.arg)
        elif isinstance(node, ast.AnnAssign) and mentions(node.annotation):
            found.add(last(node.target))
    size = 0
    while size < len(found):
        size = len(found)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and is_source(node.value, found):
                found |= {last(target) for target in node.targets}
    return found - {"take", ""}


def is_source(value: ast.AST, known: set[str]) -> bool:
    """Is an expression a source: a known name, a call that returns one, or a choice between such?"""
    if isinstance(value, ast.IfExp):
        return is_source(value.body, known) or is_source(value.orelse, known)
    if isinstance(value, ast.BoolOp):
        return any(is_source(part, known) for part in value.values)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and last(value.func.value) in CLASSES:
        return True  # Table.encode(…)
    return isinstance(value, ast.Name | ast.Attribute | ast.Call) and last(value) in known | set(CLASSES)


def used(tree: ast.AST) -> Iterator[tuple[str, ast.Attribute]]:
    """The members of sources that a file uses."""
    known = names_of_sources(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (node.attr in ONLY or is_source(node.value, known)):
            yield node.attr, node


def imported(tree: ast.AST) -> set[str]:
    """Every module and name that a file imports, at its top and inside functions."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def opens(tree: ast.AST) -> Iterator[int]:
    """The lines on which a file opens a file, an archive or a connection."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last(node.func) in OPENING:
            yield node.lineno


TABLES = "implements the source"
DIAGNOSTICS = "confidential diagnostics, which compare real rows with synthetic ones"
CURATOR = "draws noise before anything leaves"
RECIPE = "an exact sum with a proved sensitivity; the curator adds the noise"
UNIT = "bounds the rows of a person, fills to a total, splits at random: no figure leaves"
CALLERS: dict[str, Reasons] = {
    "count": {
        TABLES: ("core/tables/",),
        CURATOR: ("core/privacy/bought_schema.py",),
        DIAGNOSTICS: (
            "core/evaluation/dependence.py",
            "core/evaluation/quality.py",
            "pages/diagnostics/distributions.py",
        ),
    },
    "count_many": {
        TABLES: ("core/tables/",),
        CURATOR: ("core/privacy/curator.py",),
        DIAGNOSTICS: ("core/evaluation/fidelity.py", "pages/diagnostics/distributions.py"),
    },
    "residual_sums": {TABLES: ("core/tables/",), RECIPE: ("core/privacy/gradient.py",)},
    "batches": {
        TABLES: ("core/tables/",),
        RECIPE: ("core/privacy/clipped.py", "core/privacy/moments.py", "core/privacy/questions/recipes.py"),
        UNIT: ("core/privacy/parts.py",),
        DIAGNOSTICS: ("core/evaluation/__init__.py", "core/evaluation/questions.py"),
        "synthetic rows": ("core/release/output.py",),
        "a list of its own": ("core/methods/workload.py",),
    },
    "numbers": {
        TABLES: ("core/tables/",),
        CURATOR: ("core/privacy/bought_schema.py",),
        RECIPE: ("core/privacy/moments.py",),
        DIAGNOSTICS: ("core/evaluation/marketing.py",),
        "refuses a table without numbers before anything is drawn": ("core/release/spend.py",),
        "blurred rows, marked as not private": ("core/release/blurred.py",),
    },
    "take": {
        TABLES: ("core/tables/",),
        UNIT: ("core/privacy/contribution.py", "core/privacy/parts.py"),
        DIAGNOSTICS: (
            "core/evaluation/__init__.py",
            "core/evaluation/classifier.py",
            "core/evaluation/downstream.py",
            "core/evaluation/numeric_fidelity.py",
            "core/evaluation/private/held_out.py",
        ),
    },
    "rows": {
        TABLES: ("core/tables/",),
        CURATOR: ("core/privacy/curator.py",),
        RECIPE: ("core/privacy/moments.py",),
        UNIT: ("core/privacy/contribution.py", "core/privacy/parts.py"),
        DIAGNOSTICS: (
            "core/compare/membership.py",
            "core/evaluation/",
            "pages/diagnostics/distributions.py",
        ),
        "an argument of `public_rows`, which hides a private number": ("core/release/spend.py",),
        "blurred rows, marked as not private": ("core/release/blurred.py",),
        "synthetic rows": ("core/analysis/loading.py", "core/release/output.py"),
        "an argument of `public_rows`; shows the owner the size": (
            "pages/release/spending.py",
            "pages/05_release.py",
        ),
    },
}
"""Member of `Source` → reason → files (or a folder) that may use it."""

ROOMS = {
    "core/tables/": TABLES,
    "core/privacy/": "curator, recipes and units",
    "core/evaluation/": DIAGNOSTICS,
    "core/compare/": "runs plans and their diagnostics on the owner's machine",
    "core/analysis/asked_copies.py": "counts synthetic rows of a copy",
    "core/analysis/loading.py": "reads the synthetic table of a release back",
    "core/release/": "hands the source to the curator",
    "core/analysis/": "synthetic rows: its copies, and a release that is read again",
    "core/cli/": "opens the table that a command names",
    "pages/": "opens the table of a session",
}
"""Folders that may import a source class; methods, models, graphs, projects, planning and ledger may not."""

NOISE: Reasons = {
    "the draws": ("core/privacy/mechanisms.py", "core/privacy/partitions.py"),
    "converts ρ to (ε, δ)": ("core/privacy/accounting.py",),
    "debits, then draws": ("core/privacy/curator.py", "core/privacy/bought_schema.py"),
}
"""Files that may import OpenDP or `espalier.core.privacy.mechanisms`."""

OPENERS: Reasons = {
    "opens private tables": (
        "core/tables/csv_batches.py",
        "core/tables/frames.py",
        "core/tables/parquet_files.py",
        "core/tables/reading.py",
        "core/tables/relation.py",
        "core/tables/spark.py",
        "core/tables/sql.py",
    ),
    "reads and writes a project, a graph, questions or a model": (
        "core/cli/init.py",
        "core/cli/questions.py",
        "core/graph/formats/describe.py",
        "core/models/graphical/model.py",
        "core/project/file.py",
    ),
    "reads and writes a release": (
        "core/release/files.py",
        "core/release/output.py",
        "core/release/shelf.py",
    ),
    "the ledger": ("core/cli/ledger.py", "core/ledger/archive.py", "core/ledger/store.py", "core/ledger/verify.py"),
    "output of a command": ("core/cli/main.py",),
    "scripts and styles of the app": ("pages/board/board.py", "pages/board/boxes.py"),
    "`state.open` loads a table into the session": (
        "pages/data/opening_on_server.py",
        "pages/data/opening.py",
        "pages/session/restore.py",
    ),
}
"""Files that open files, archives or connections."""


def listed(reasons: Reasons) -> list[str]:
    return [place for places in reasons.values() for place in places]


def compare(found: set[str], reasons: Reasons) -> None:
    """Fail for a file without an entry, and for an entry without a file."""
    allowed = listed(reasons)
    extra = {file for file in found if not any(file == p or (p.endswith("/") and file.startswith(p)) for p in allowed)}
    assert not extra, "no list allows these files: give each a reason, or ask the curator"
    stale = {p for p in allowed if not any(file == p or (p.endswith("/") and file.startswith(p)) for file in found)}
    assert not stale, "no file here needs these entries"


@pytest.mark.parametrize("member", CALLERS)
def test_each_member_of_a_source_has_its_callers(member):
    found = {where(p) for p in FILES if any(name == member for name, _ in used(tree_of(p)))}
    compare(found | {"core/tables/source.py"}, CALLERS[member])


def test_every_member_of_a_source_is_listed():
    assert {name for name in vars(Source) if not name.startswith("_")} == {*CALLERS, *PUBLIC}


def test_only_these_rooms_import_a_source():
    modules = ("source", "table", "snapshot", "relation")
    names = {f"espalier.core.tables.{module}.{name}" for module in modules for name in CLASSES}
    found = {where(p) for p in FILES if imported(tree_of(p)) & names}
    compare(found, {reason: (room,) for room, reason in ROOMS.items()})


def test_only_these_files_draw_protective_noise():
    def draws(name: str) -> bool:
        return name.split(".")[0] == "opendp" or name.startswith("espalier.core.privacy.mechanisms")

    compare({where(p) for p in FILES if any(map(draws, imported(tree_of(p))))}, NOISE)


def test_only_these_files_open_files_and_connections():
    compare({where(p) for p in FILES if any(opens(tree_of(p)))}, OPENERS)


def test_a_release_passes_the_private_number_of_rows_to_one_function():
    """In a release, ``rows`` of a source is an argument of `public_rows` and nothing else."""
    tree = tree_of(ROOT / "core/release/spend.py")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and last(node.func) == "public_rows"]
    hidden = {id(argument) for call in calls for argument in call.args}
    assert [node.lineno for name, node in used(tree) if name == "rows" and id(node) not in hidden] == []


BROKEN = {
    "batches": "def leak(data: Source):\n    return list(data.batches())",
    "count_many": "def leak(curator):\n    return curator._source.count_many([('a',)])",
    "count": "def leak(given: Table):\n    mine = given\n    return mine.count(('a',))",
    "numbers": "class Leak:\n    held: Snapshot | None\n\n    def leak(self):\n        return self.held.numbers('a')",
    "take": "def leak():\n    return Table.encode(text, schema).take([0])",
    "rows": "def read() -> Relation: ...\n\ndef leak():\n    some = read()\n    return some.rows",
    "residual_sums": "def leak(x):\n    return x.residual_sums('y', (), {})",
}


@pytest.mark.parametrize("member", CALLERS)
def test_a_new_caller_is_found(member):
    assert member in {name for name, _ in used(ast.parse(BROKEN[member]))}
    with pytest.raises(AssertionError, match="no list allows"):
        compare({"core/methods/leak.py", *listed(CALLERS[member])}, CALLERS[member])


@pytest.mark.parametrize("code", ["'a,b'.count(',')", "def f(x: str): return x.count('a')", "np.take(x, 1)"])
def test_other_values_are_no_sources(code):
    assert not list(used(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    ["open('x')", "import sqlite3\nsqlite3.connect('x')", "from pathlib import Path\nPath('x').read_bytes()"],
)
def test_an_opened_file_is_found(code):
    assert list(opens(ast.parse(code)))
