"""What ``import espalier`` offers, and that what its metadata, files and documents say of it agrees."""

from __future__ import annotations

import ast
import doctest
import subprocess
import sys
from pathlib import Path

import pytest

import espalier

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", espalier.__all__)
def test_what_is_exported_has_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    thing = getattr(espalier, name)
    examples = doctest.DocTestFinder(recurse=False).find(thing, name, module=False, globs={})
    found = [test for test in examples if test.examples]
    assert found, "an example of its own, not one inherited from a base class"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    told: list[str] = []
    for test in found:
        doctest.DocTestRunner(optionflags=flags).run(test, out=told.append)
    assert not told, "".join(told)


def test_the_names_for_type_checkers_are_the_names_at_run_time():
    tree = ast.parse((ROOT / "espalier" / "__init__.py").read_text("utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    typed = {(a.name, n.module) for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert typed == {(name, f"espalier.core.{where}") for name, where in espalier._WHERE.items()}


def test_release_is_the_function():
    code = "import espalier.core.release, espalier as es; assert callable(es.release) and 'release' in dir(es)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = espalier.nothing


def test_importing_the_package_loads_nothing_else():
    code = "import sys, espalier; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not set(out.split()) & {"numpy", "pandas", "pyarrow", "opendp", "scipy", "networkx", "streamlit"}
