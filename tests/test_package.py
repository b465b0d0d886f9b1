"""The public names of ``import espalier``, and agreement of metadata, files and documents."""

from __future__ import annotations

import ast
import doctest
import os
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

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


PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FILES = {
    "requirements.txt": ("", "app", "formats"),
    "requirements-postgres.txt": ("postgres",),
    "requirements-mysql.txt": ("mysql",),
    "requirements-spark.txt": ("spark",),
}


def pinned(name: str) -> dict[str, Requirement]:
    """Return the lines of a requirements file by distribution, without those of files that it includes."""
    lines = [line.split("#")[0].strip() for line in (ROOT / name).read_text("utf-8").splitlines()]
    found = [Requirement(line) for line in lines if line and not line.startswith(("-r", "-c"))]
    return {canonicalize_name(one.name): one for one in found}


def declared(*extras: str) -> dict[str, Requirement]:
    listed = {"": PYPROJECT["dependencies"], **PYPROJECT["optional-dependencies"]}
    return {canonicalize_name(r.name): r for extra in extras or listed for r in map(Requirement, listed[extra])}


def allowed(pin: Requirement, range_: Requirement) -> bool:
    """A pin is the declared range itself, or one version in it."""
    exact = [s.version for s in pin.specifier if s.operator == "=="]
    return pin.specifier == range_.specifier or any(v in range_.specifier for v in exact)


@pytest.mark.parametrize("name", FILES)
def test_the_requirements_files_pin_what_the_package_declares(name):
    pins, wanted = pinned(name), declared(*FILES[name])
    assert set(wanted) <= set(pins)
    for distribution, pin in pins.items():
        assert distribution in declared(), f"{name} pins {distribution}, which no extra of pyproject.toml declares"
        assert allowed(pin, declared()[distribution]), f"{name} and pyproject.toml disagree on {distribution}"
    for distribution, range_ in wanted.items():
        assert pins[distribution].extras >= range_.extras


def test_a_pin_outside_the_declared_range_is_found():
    range_ = Requirement("numpy>=2.3,<3")
    assert allowed(Requirement("numpy>=2.3,<3"), range_)
    assert allowed(Requirement("numpy==2.4.1"), range_)
    assert not allowed(Requirement("numpy==3.0"), range_)
    assert not allowed(Requirement("numpy>=2.2,<3"), range_)


def test_the_default_set_has_no_screen_and_no_server():
    screens = {"streamlit", "pyvis", "plotly"}
    assert screens <= set(declared("app"))
    assert not (screens | {"openpyxl", "psycopg", "pyspark", "pymysql"}) & set(declared(""))


def test_changelog_and_citation_are_of_this_version():
    lines = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    heads = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    version = Version(espalier.__version__)
    assert heads[0].split()[0] == version.base_version
    assert ("(unreleased)" in heads[0]) == version.is_devrelease
    assert {line for line in lines if line.startswith("### ")} == {
        "### Added",
        "### Changed",
        "### Fixed",
        "### Security",
    }
    assert f"version: {version}" in (ROOT / "CITATION.cff").read_text("utf-8").splitlines()


def test_the_examples_for_notebooks_run(tmp_path):
    text = (ROOT / "docs" / "notebooks.md").read_text("utf-8")
    code = textwrap.dedent("\n".join(line for line in text.splitlines() if line.startswith("    ") or not line))
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    path = {"PYTHONPATH": str(ROOT)}
    got = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | path, capture_output=True, text=True
    )
    assert got.returncode == 0, got.stderr
    assert "proportion" in got.stdout
