"""The layers: allowed imports between packages. `tests/test_callers.py` lists who may touch private rows."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CORE = sorted((ROOT / "core").rglob("*.py"))
LAYERS = (
    "errors",
    "progress",
    "display",
    "xml_text",
    "csv_safety",
    "limited_file",
    "sqlite_steps",
    "process_memory",
    "code_books",
    "graph",
    "project",
    "tables",
    "dictionaries",
    "privacy",
    "ledger",
    "models",
    "blurring",
    "methods",
    "analysis",
    "evaluation",
    "planning",
    "report",
    "statement",
    "release",
    "compare",
    "server",
    "notebook",
    "cli",
)
"""The packages of `core`, lowest first: each one imports only packages before it."""
TOP = {
    "app.py",
    "deploy",
    "core",
    "pages",
    "espalier",
    "verifier",
    "tests",
    "sample_data",
    "benchmarks",
    "docs",
    "README.md",
}
TOOLING = {
    "deploy",
    "requirements.txt",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "pyproject.toml",
    "requirements-dev.txt",
    "requirements-mysql.txt",
    "requirements-postgres.txt",
    "requirements-spark.txt",
    "requirements.lock",
    "LICENSE",
    "NOTICE",
    "SECURITY.md",
}


@cache
def imports(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text("utf-8"))
    out: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            out |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            out |= {node.module} | {f"{node.module}.{a.name}" for a in node.names}
    return frozenset(out)


FILES = [p for folder in ("core", "pages", "tests", "benchmarks", "espalier") for p in (ROOT / folder).rglob("*.py")]


def test_the_product_is_imported_by_its_package_name():
    """``core`` and ``pages`` at the top level exist in a clone only."""
    files = [path for path in (ROOT / "app.py", *FILES) if path.name != "test_alias.py"]
    assert len(files) > 600
    assert not [path for path in files if {name.split(".")[0] for name in imports(path)} & {"core", "pages"}]


def room(path: Path) -> str:
    inside = path.relative_to(ROOT / "core").parts
    return inside[0] if len(inside) > 1 else "core"


def names(path: Path) -> set[str]:
    """Return every attribute and name that a file uses."""
    tree = ast.parse(path.read_text("utf-8"))
    found = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    return found | {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}


def test_no_process_of_the_product_imports_from_the_current_folder():
    """Without ``-P``, ``python -m`` and ``python -c`` import from the current folder first, which may be someone
    else's."""
    started = [
        (path.name, [part.value for part in node.elts[1:2] if isinstance(part, ast.Constant)])
        for path in FILES
        if path.is_relative_to(ROOT / "core") or path.is_relative_to(ROOT / "pages")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.List) and node.elts and ast.unparse(node.elts[0]) == "sys.executable"
    ]
    assert sorted(started) == [("duckdb_apart.py", ["-P"]), ("worker.py", ["-P"])]


def test_top_level_names():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    top = {line.split("/")[0] for line in listed.splitlines()}
    assert {t for t in top if not t.startswith(".")} <= TOP | TOOLING


def rooms_of(path: Path) -> set[str]:
    """Return the packages that a file imports from: at the top, inside functions, and for types."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written out in full"
            parents = {f"espalier.core.{a.name}" for a in node.names}
            found |= parents if node.module == "espalier.core" else {node.module or ""}
    return {name.split(".")[2] for name in found if name.startswith("espalier.core.")}


def layer(path: Path) -> str:
    """Return the package of a file, or the name of a file without a folder."""
    return path.stem if path.parent == ROOT / "core" else room(path)


def listed() -> list[str]:
    """Return the packages in the first column of the table in docs/architecture.md, in its order."""
    out: list[str] = []
    for line in (ROOT / "docs" / "architecture.md").read_text("utf-8").splitlines():
        if line.startswith("| `core/"):
            out += re.findall(r"`core/(\w+)", line.split("|")[1])
    return out


def test_every_room_has_its_layer_and_every_layer_a_room():
    assert {layer(path) for path in CORE} - {"__init__", "__main__"} == set(LAYERS)


def test_a_room_imports_only_rooms_below_it():
    """This includes imports inside functions and for types, so that no two packages import each other."""
    placed = [path for path in CORE if layer(path) in LAYERS]
    assert len(placed) > 300
    assert not [p for p in placed if rooms_of(p) & set(LAYERS[LAYERS.index(layer(p)) + 1 :])]


def test_an_import_upwards_is_found(tmp_path):
    for code in (
        "from espalier.core.release import spend",
        "import espalier.core.release.spend",
        "from espalier.core import release",
        "def f():\n    from espalier.core.release.spend import release",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from espalier.core.release.artefact import Release",
    ):
        (tmp_path / "x.py").write_text(code)
        assert rooms_of(tmp_path / "x.py") == {"release"}


def file_of(module: str) -> Path | None:
    """Return the file of a module of `core`; `None` if there is none."""
    place = ROOT.joinpath(*module.split(".")[1:])
    return next((p for p in (place.with_suffix(".py"), place / "__init__.py") if p.exists()), None)


def imported_files(path: Path) -> set[Path]:
    """Return the files of `core` that a file imports when it is loaded, packages as their `__init__`."""
    found: set[Path] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("espalier.core"):
            continue
        for alias in node.names:
            module = file_of(f"{node.module}.{alias.name}") or file_of(node.module or "")
            found |= {module} if module else set()
    return found - {path}


def circle(after: dict[Path, set[Path]]) -> set[Path]:
    """Return the files that are left once every file that imports none of the others is taken away."""
    left = {path: needs & set(after) for path, needs in after.items()}
    while free := [path for path, needs in left.items() if not needs]:
        left = {path: needs - set(free) for path, needs in left.items() if path not in free}
    return set(left)


def test_no_files_of_core_are_in_a_circle():
    """Imports inside functions are left out: they load a heavy library or a higher package only when it is needed."""
    assert circle({path: imported_files(path) for path in CORE}) == set()


def test_a_circle_is_found():
    a, b, c = Path("a"), Path("b"), Path("c")
    assert circle({a: {b}, b: {a}, c: set()}) == {a, b}
    assert circle({a: {b}, b: {c}, c: set()}) == set()


def test_the_architecture_lists_the_rooms_in_this_order():
    assert listed() == list(LAYERS)


def test_core_imports_no_user_interface():
    ui = ("streamlit", "pyvis", "plotly", "espalier.pages", "espalier.app")
    assert not [(path, name) for path in CORE for name in imports(path) if name.startswith(ui)]


def test_sessions_share_no_cache():
    """Previously, the paths of lines were cached by the names of columns, for all sessions of a server."""
    for path in sorted((ROOT / "pages").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            caches = {n.attr if isinstance(n, ast.Attribute) else n.id for d in node.decorator_list for n in _names(d)}
            assert not caches & {"lru_cache", "cache_data", "cache_resource"}, f"{path}: {node.name}"
            assert "cache" not in caches or not node.args.args, f"{path}: {node.name} caches its arguments"


def _names(node):
    return [n for n in ast.walk(node) if isinstance(n, ast.Attribute | ast.Name)]


def test_methods_never_see_a_table():
    for folder in ("methods", "models"):
        for path in (ROOT / "core" / folder).rglob("*.py"):
            assert not any(n.startswith("espalier.core.tables") for n in imports(path)), path


def test_four_files_import_ibis_or_duckdb():
    """One file connects, one reads in another process, one writes queries, one hashes.

    Other files use connections and cursors, never another dialect.
    """
    found = {
        str(path.relative_to(ROOT / "core"))
        for path in CORE
        if any(name.split(".")[0] in {"ibis", "duckdb"} for name in imports(path))
    }
    assert found == {f"tables/{name}.py" for name in ("engines", "duckdb_apart", "encoding_query", "row_limits")}


def test_protective_noise_is_not_drawn_by_numpy():
    for path in (ROOT / "core" / "privacy").rglob("*.py"):
        assert not names(path) & {"random", "default_rng", "Generator", "seed"}, path


def test_no_module_state_is_drawn_from_numpys_global_generator():
    for path in CORE:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np.random":
                assert node.attr in {"default_rng", "Generator"}, path


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("espalier.core.models.graphical", {"pandas", "scipy", "networkx", "opendp", "sklearn", "pyarrow"}),
        ("espalier.core.release", {"pandas", "scipy", "networkx", "sklearn", "fairlearn", "streamlit"}),
        ("espalier.core.planning.preview", {"pandas", "scipy", "networkx", "sklearn", "pyarrow"}),
        ("espalier.core.evaluation", {"sklearn", "fairlearn"}),
    ],
)
def test_imports_are_lazy(module, absent):
    code = f"import sys, {module}; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not set(out.split()) & absent


def test_ci_runs_the_readmes_test_command():
    readme = (ROOT / "README.md").read_text("utf-8")
    commands = [line.strip() for line in readme.splitlines() if line.startswith("    python3 -m venv")]
    assert len(commands) == 2
    assert commands[1] in (ROOT / ".ci" / "run").read_text("utf-8")


def test_a_fit_has_no_fresh_seed():
    """A resumed release fits the same model to the same answers. Previously, three methods drew a fresh seed there, so
    an interrupted evaluation could never be finished.
    """
    for file in CORE:
        if file.relative_to(ROOT / "core").parts[0] in ("methods", "models", "privacy"):
            assert "default_rng()" not in file.read_text("utf-8"), file
