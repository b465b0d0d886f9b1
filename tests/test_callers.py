"""Lists of the callers that may use private rows, each with its reason.

The test fails if a list lacks a caller, or names a caller that no longer exists. Sources are found by their
annotations, which mypy requires: a name is a source if it is annotated as one, or assigned from a call that returns
one. Methods whose name only sources have are found on any receiver.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from espalier.core.tables.source import Source

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted([*(ROOT / "core").rglob("*.py"), *(ROOT / "pages").rglob("*.py"), ROOT / "app.py"])
CLASSES = ("Source", "Table", "Snapshot", "Relation")
ONLY = {
    "count_many",
    "residual_sums",
    "step_counts",
    "step_echoes",
    "visit_counts",
    "return_counts",
    "batches",
    "text_counts",
    "leaf_counts",
    "grid_counts",
    "to_total",
    "recoded",
}
"""Members of a source whose name no other method of the product shares."""
OPENING = {
    *("open", "connect", "create_engine", "create_connection", "urlopen", "ZipFile"),
    *("read_text", "read_bytes", "write_text", "write_bytes", "ParquetFile", "ParquetWriter", "open_csv"),
    "open_ordinary",
}
"""Functions that open a file, an archive or a connection."""
PUBLIC = {
    "schema",
    "person_column",
    "names_people",
    "origin",
    "row_limit",
    "digest",
    "counts_only",
    "encodes",
    "close",
    "lot_key",
    "dealt_by",
}
"""Members that hold no private value, or that every owner of a source may call."""

Reasons = Mapping[str, tuple[str, ...]]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def where(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def mentions(annotation: ast.AST | None) -> bool:
    """Return whether an annotation contains the name of a source class."""
    return annotation is not None and bool(re.search(rf"\b({'|'.join(CLASSES)})\b", ast.unparse(annotation)))


def last(node: ast.AST) -> str:
    """Return the last name of an expression: `table` for `table`, `self.table` and `table()`."""
    if isinstance(node, ast.Call | ast.Subscript):
        return last(node.func if isinstance(node, ast.Call) else node.value)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def names_of_sources(tree: ast.AST) -> set[str]:
    """Return names and attributes of a file that are annotated as a source or assigned from one."""
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
    """Return whether an expression is a source: a known name, a call that returns one, or a choice between sources."""
    if isinstance(value, ast.IfExp):
        return is_source(value.body, known) or is_source(value.orelse, known)
    if isinstance(value, ast.BoolOp):
        return any(is_source(part, known) for part in value.values)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and last(value.func.value) in CLASSES:
        return True  # Table.encode(…)
    return isinstance(value, ast.Name | ast.Attribute | ast.Call) and last(value) in known | set(CLASSES)


def used(tree: ast.AST) -> Iterator[tuple[str, ast.Attribute]]:
    """Yield the members of sources that a file uses."""
    known = names_of_sources(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (node.attr in ONLY or is_source(node.value, known)):
            yield node.attr, node


@cache
def members_of(path: Path) -> frozenset[str]:
    """Return the members of sources that a file uses, by name."""
    return frozenset(name for name, _ in used(tree_of(path)))


def imported(tree: ast.AST) -> set[str]:
    """Return every module and name that a file imports, at the top and inside functions."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def opens(tree: ast.AST) -> Iterator[int]:
    """Yield the lines on which a file opens a file, an archive or a connection."""
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
    "cells": {TABLES: ("core/tables/",), DIAGNOSTICS: ("core/evaluation/fidelity.py",)},
    "sample": {
        TABLES: ("core/tables/",),
        DIAGNOSTICS: ("core/evaluation/__init__.py",),
    },
    "in_memory": {TABLES: ("core/tables/",), DIAGNOSTICS: ("core/compare/fence_cost.py", "core/cli/evaluate.py")},
    "text_counts": {TABLES: ("core/tables/",), CURATOR: ("core/privacy/bought_schema.py",)},
    "leaf_counts": {TABLES: ("core/tables/",), CURATOR: ("core/privacy/bought_schema.py",)},
    "grid_counts": {TABLES: ("core/tables/",), CURATOR: ("core/privacy/bought_schema.py",)},
    "split": {TABLES: ("core/tables/",), UNIT: ("core/privacy/contribution.py",)},
    "limited": {TABLES: ("core/tables/",), UNIT: ("core/privacy/contribution.py",)},
    "to_total": {TABLES: ("core/tables/",), UNIT: ("core/privacy/contribution.py",)},
    "recoded": {
        TABLES: ("core/tables/",),
        "the rows of a release, and those that judge it, by the bought schema": (
            "core/release/run.py",
            "pages/release/spending.py",
            "pages/session/session.py",
        ),
    },
    "widened": {TABLES: ("core/tables/",), CURATOR: ("core/evaluation/private/held_out.py",)},
    "step_counts": {
        TABLES: ("core/tables/",),
        RECIPE: ("core/privacy/steps.py",),
        CURATOR: ("core/privacy/curator.py",),
        DIAGNOSTICS: ("core/evaluation/linked_pictures.py",),
    },
    "step_echoes": {TABLES: ("core/tables/",), RECIPE: ("core/privacy/steps.py",)},
    "visit_counts": {TABLES: ("core/tables/",), RECIPE: ("core/privacy/steps.py",)},
    "return_counts": {TABLES: ("core/tables/",), RECIPE: ("core/privacy/steps.py",)},
    "residual_sums": {TABLES: ("core/tables/",), RECIPE: ("core/privacy/gradient.py",)},
    "batches": {
        TABLES: ("core/tables/",),
        RECIPE: (
            *("core/privacy/clipped.py", "core/privacy/moments.py", "core/privacy/regression_sums.py"),
            "core/privacy/question_recipes/recipes.py",
        ),
        DIAGNOSTICS: ("core/evaluation/question_errors.py",),
        "synthetic rows": ("core/release/output.py",),
        "a list of its own": ("core/methods/workload.py",),
    },
    "numbers": {
        TABLES: ("core/tables/",),
        RECIPE: ("core/privacy/moments.py",),
        DIAGNOSTICS: ("core/evaluation/marketing.py",),
        "refuses a table without numbers before anything is drawn": ("core/release/spend.py",),
        "blurred rows, marked as not private": ("core/release/blurred.py",),
    },
    "take": {
        TABLES: ("core/tables/",),
        DIAGNOSTICS: (
            "core/evaluation/__init__.py",
            "core/evaluation/classifier.py",
            "core/evaluation/downstream.py",
            "core/evaluation/numeric_fidelity.py",
            "core/evaluation/private/held_out.py",
            "core/evaluation/separations.py",
        ),
    },
    "rows": {
        TABLES: ("core/tables/",),
        CURATOR: ("core/privacy/curator.py",),
        RECIPE: ("core/privacy/moments.py",),
        UNIT: ("core/privacy/contribution.py",),
        DIAGNOSTICS: (
            "core/compare/membership.py",
            "core/evaluation/",
            "pages/diagnostics/distributions.py",
        ),
        "an argument of `public_rows`, which hides a private number": (
            "core/release/spend.py",
            "core/server/release_job.py",
        ),
        "blurred rows, marked as not private": ("core/release/blurred.py",),
        "synthetic rows": ("core/analysis/loading.py", "core/release/output.py"),
        "a table made up from a plan's assumptions": ("core/analysis/expected_regressions.py",),
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
    "core/analysis/question_copies.py": "counts synthetic rows of a copy",
    "core/analysis/loading.py": "reads the synthetic table of a release back",
    "core/release/": "hands the source to the curator",
    "core/analysis/": "synthetic rows: its copies, and a release that is read again",
    "core/cli/": "opens the table that a command names",
    "core/server/": "opens a table that the server's operator has listed, for a page and for a worker",
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
        "core/tables/parquet_pages.py",
        "core/tables/excel.py",
        "core/tables/reading.py",
        "core/tables/spark.py",
        "core/tables/engines.py",
        "core/tables/duckdb_apart.py",
        "core/tables/unpacking.py",
    ),
    "hashes in an engine in memory": ("core/tables/row_limits.py",),
    "writes the bytes of a file where PyReadStat reads them, gone when it returns": ("core/tables/stat_rows.py",),
    "reads a dictionary or a codebook": ("core/code_books/__init__.py",),
    "writes a released table's dictionary": ("core/release/artefact.py",),
    "reads and writes a model": ("core/models/graphical/model.py",),
    "reads and writes a release": (
        "core/release/files.py",
        "core/release/output.py",
        "core/release/shelf.py",
        "core/statement/check.py",
    ),
    "reads and writes keys": ("core/statement/keys.py",),
    "the program's own source files, for their digest": ("core/statement/claims.py",),
    "the ledger": (
        "core/ledger/archive.py",
        "core/ledger/database.py",
        "core/ledger/memory.py",
        "core/ledger/store.py",
        "core/ledger/verify_copies.py",
    ),
    "the keys of fingerprints": ("core/ledger/secret_file.py",),
    "noisy answers of an unfinished release": ("core/release/unfinished.py",),
    "files of unknown size, up to a limit": ("core/limited_file.py",),
    "the shipped figures of the samples": ("core/report/story.py",),
    "output of a command": ("core/cli/terminal.py",),
    "backup of the ledger": ("core/server/backup.py",),
    "a table that the server's operator has listed": ("core/server/allowed.py", "core/server/release_job.py"),
    "what the operator examines: settings, grants, certificates": ("core/server/doctor.py",),
    "the audit log": ("core/server/events.py",),
    "the system's list of connections": ("core/server/peer.py",),
    "the process's own memory": ("core/process_memory.py",),
    "fonts of the report": ("core/report/style.py",),
    "scripts and styles of the app": (
        "pages/board/board.py",
        "pages/common/picture.py",
        "pages/board/boxes.py",
        "pages/data/column_review.py",
    ),
    "`state.open` loads a table into the session": (
        "pages/data/linked_tables.py",
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
    found = {where(p) for p in FILES if member in members_of(p)}
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
    "step_counts": "def leak(x):\n    return x.step_counts([])",
    "step_echoes": "def leak(x):\n    return x.step_echoes([])",
    "visit_counts": "def leak(x):\n    return x.visit_counts('a')",
    "return_counts": "def leak(x):\n    return x.return_counts('a', 1)",
    "residual_sums": "def leak(x):\n    return x.residual_sums('y', (), {})",
    **{
        name: f"def leak(given: Source):\n    return given.{name}"
        for name in (
            *("cells", "sample", "in_memory", "text_counts", "leaf_counts", "grid_counts"),
            *("split", "limited", "to_total", "recoded", "widened"),
        )
    },
}


SHAPES = {"Source", "Table", "Snapshot", "PostgresSnapshot", "Relation", "TextTable"}
"""Classes of tables that no file outside `core/tables` may test for: their interface answers what a caller needs."""


def asked_classes(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the classes that a file tests a value for, with their lines: by `isinstance`, `type(…) is` and `match`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last(node.func) in {"isinstance", "issubclass"}:
            inside = node.args[1:]
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Call) and last(node.left.func) == "type":
            inside = node.comparators
        elif isinstance(node, ast.MatchClass):
            inside = [node.cls]
        else:
            continue
        for part in inside:
            for name in ast.walk(part):
                if isinstance(name, ast.Name | ast.Attribute):
                    yield last(name), part.lineno


def test_no_file_outside_the_room_tests_the_class_of_a_table():
    outside = [path for path in FILES if not where(path).startswith("core/tables/")]
    found = [(where(p), line) for p in outside for name, line in asked_classes(tree_of(p)) if name in SHAPES]
    assert found == [], "ask the source instead, or give the interface a method"


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(real, Table)",
        "isinstance(real, (int, tables.Snapshot))",
        "isinstance(real, Snapshot | PostgresSnapshot)",
        "type(real) is Table",
        "match real:\n    case Relation():\n        pass",
    ],
)
def test_a_test_of_a_class_is_found(code):
    assert SHAPES & {name for name, _ in asked_classes(ast.parse(code))}


FIELDS = {"held_out", "impossible", "budget", "spending", "sizes", "rows", "unit"}
"""Fields of a curator that nothing outside it may set."""


def set_on_curators(tree: ast.AST) -> Iterator[int]:
    """Yield the lines on which a file sets a field of a curator that is not its own object."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Attribute) and target.attr in FIELDS and last(target.value).endswith("curator"):
                yield node.lineno


def test_nothing_is_set_on_a_curator_from_outside():
    assert [(where(path), line) for path in FILES for line in set_on_curators(tree_of(path))] == []
    assert list(set_on_curators(ast.parse("curator.held_out = True")))
    assert list(set_on_curators(ast.parse("self.curator.budget = budget")))


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
