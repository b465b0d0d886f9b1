"""The house rules: what may import what, and who may draw noise or see an exact count."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CORE = sorted((ROOT / "core").rglob("*.py"))
LAYERS = (
    "errors",
    "progress",
    "display",
    "graph",
    "project",
    "tables",
    "privacy",
    "ledger",
    "models",
    "methods",
    "evaluation",
    "analysis",
    "release",
    "compare",
    "notebook",
    "cli",
)
"""The rooms of `core`, lowest first, as the README lists them: a room imports only rooms before it."""
TOP = {"app.py", "pages", "core", "tests", "sample_data", "benchmarks", "requirements.txt", "README.md"}
TOOLING = {
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "pyproject.toml",
    "requirements-dev.txt",
    "requirements-mysql.txt",
    "requirements-postgres.txt",
    "requirements-spark.txt",
    "LICENSE",
    "SECURITY.md",
}


def imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    out: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            out |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            out |= {node.module} | {f"{node.module}.{a.name}" for a in node.names}
    return out


def room(path: Path) -> str:
    inside = path.relative_to(ROOT / "core").parts
    return inside[0] if len(inside) > 1 else "core"


def names(path: Path) -> set[str]:
    """Every attribute and name that a file uses."""
    tree = ast.parse(path.read_text("utf-8"))
    found = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    return found | {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}


def test_top_level_names():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    top = {line.split("/")[0] for line in listed.splitlines()}
    assert {t for t in top if not t.startswith(".")} <= TOP | TOOLING


def rooms_of(path: Path) -> set[str]:
    """The rooms that a file imports from, at its top, inside functions and for types alike."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written out in full"
            found |= {f"core.{a.name}" for a in node.names} if node.module == "core" else {node.module or ""}
    return {name.split(".")[1] for name in found if name.startswith("core.")}


def layer(path: Path) -> str:
    """The room of a file, or the file itself where it stands in no folder."""
    return path.stem if path.parent == ROOT / "core" else room(path)


def listed() -> list[str]:
    """The rooms in the README's table, in its order: whatever stands as `core/…` in the first cell of a row."""
    out: list[str] = []
    for line in (ROOT / "README.md").read_text("utf-8").splitlines():
        if line.startswith("| `core/"):
            out += re.findall(r"`core/(\w+)", line.split("|")[1])
    return out


def test_every_room_has_its_layer_and_every_layer_a_room():
    assert {layer(path) for path in CORE} - {"__init__", "__main__"} == set(LAYERS)


@pytest.mark.parametrize("path", CORE, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_room_imports_only_rooms_below_it(path):
    """Also inside functions and for types, so that no two rooms stand in a circle."""
    if layer(path) == "__main__":
        return
    above = LAYERS[LAYERS.index(layer(path)) + 1 :] if layer(path) in LAYERS else ()
    assert not rooms_of(path) & set(above)


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


def test_the_readme_lists_the_rooms_in_this_order():
    assert listed() == list(LAYERS)


@pytest.mark.parametrize("path", CORE, ids=lambda p: str(p.relative_to(ROOT)))
def test_core_imports_no_user_interface(path):
    ui = {"streamlit", "pyvis", "plotly", "pages", "app"}
    assert not {name.split(".")[0] for name in imports(path)} & ui


@pytest.mark.parametrize("path", CORE, ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_privacy_room_draws_protective_noise(path):
    if room(path) == "privacy":
        return
    found = imports(path)
    assert not any(name.split(".")[0] == "opendp" for name in found)
    assert not any(name.startswith("espalier.core.privacy.mechanisms") for name in found)


@pytest.mark.parametrize("path", CORE, ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_curator_the_bought_schema_and_the_diagnostics_see_exact_counts(path):
    where = str(path.relative_to(ROOT / "core"))
    may = where in {"privacy/curator.py", "privacy/bought_schema.py", "tables/table.py"} or room(path) == "evaluation"
    tree = ast.parse(path.read_text("utf-8"))
    calls = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    counted = [c for c in calls if c.attr == "count" and ast.unparse(c.value).endswith("table")]
    assert may or not counted


def test_methods_never_see_a_table():
    for folder in ("methods", "models"):
        for path in (ROOT / "core" / folder).rglob("*.py"):
            assert not any(n.startswith("espalier.core.tables") for n in imports(path)), path


def test_one_module_imports_ibis():
    """What an engine is told stands in one file; connections and cursors are used beside it, never another dialect."""
    found = {
        str(path.relative_to(ROOT / "core"))
        for path in CORE
        if any(name.split(".")[0] in {"ibis", "duckdb"} for name in imports(path))
    }
    assert found == {"tables/sql.py"}


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
        ("espalier.core.release.planning", {"pandas", "scipy", "networkx", "sklearn", "pyarrow"}),
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


def test_the_number_of_private_rows_leaves_a_table_through_one_function():
    """Where plans, budgets and files are made, ``table.rows`` is the argument of `public_rows` and nothing else."""
    looked_at = {"tables", "evaluation", "graph", "models"}
    eyes_only = {"fence_cost.py", "membership.py", "contribution.py", "curator.py"}
    files = [p for p in CORE if room(p) not in looked_at and p.name not in eyes_only]
    tables = {"table", "real", "rest", "held", "text", "kept"}
    found = []
    for path in [*files, ROOT / "core" / "evaluation" / "private" / "held_out.py"]:
        tree = ast.parse(path.read_text("utf-8"))
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
        allowed = {id(a) for n in calls if getattr(n.func, "id", "") == "public_rows" for a in n.args}
        found += [
            f"{path.name}:{n.lineno}"
            for n in ast.walk(tree)
            if isinstance(n, ast.Attribute)
            and n.attr == "rows"
            and id(n) not in allowed
            and tables & {getattr(n.value, "id", ""), getattr(n.value, "attr", "")}
        ]
    assert found == []
