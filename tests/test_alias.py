"""In a clone, ``core`` is the old name of ``espalier.core``: the same modules, the same classes."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import espalier

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    "code",
    [
        "from core import Project; from espalier.core.project.file import Project as new; assert Project is new",
        "from core.errors import SizeError as a; from espalier.core.errors import SizeError as b; assert a is b",
        "from espalier.core.errors import SizeError as b; from core.errors import SizeError as a; assert a is b",
        "import core.release.spend as a, espalier.core.release.spend as b; assert a is b",
        "import core, espalier.core; assert core is espalier.core",
        "import core.release.spend, espalier.core.release.spend as b; assert core.release.spend is b",
        "from core.release import release; from core.release.spend import release as same; assert release is same",
        "import core.errors, espalier.core.errors as b; assert b.__spec__.name == 'espalier.core.errors'",
    ],
)
def test_both_names_are_one_module(code):
    subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=ROOT, check=True)


def test_a_module_that_is_missing_is_named():
    code = "import core.nothing"
    got = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert "No module named 'espalier.core.nothing'" in got.stderr


def test_the_command_loads_no_module_twice():
    code = """
import runpy, sys
sys.argv = ["core", "demo", "--help"]
try:
    runpy.run_module("core", run_name="__main__")
except SystemExit:
    pass
modules = {id(m): m for m in sys.modules.values() if m.__name__.split(".")[0] in ("core", "espalier")}
print(*[m.__file__ for m in modules.values() if m.__file__], sep="\\n", file=sys.stderr)
"""
    got = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    files = got.stderr.splitlines()
    assert len(files) == len(set(files)) > 3


def test_the_package_works_without_symbolic_links(tmp_path):
    """Git writes a link as a short text file where the file system has none."""
    (tmp_path / "espalier").mkdir()
    source = (ROOT / "espalier" / "__init__.py").read_text("utf-8")
    (tmp_path / "espalier" / "__init__.py").write_text(source, "utf-8")
    (tmp_path / "espalier" / "core").write_text("../core", "utf-8")
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "__init__.py").write_text("")
    (tmp_path / "core" / "errors.py").write_text("HERE = True")
    code = "from espalier.core import errors; assert errors.HERE"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_the_package_is_this_clones():
    assert Path(espalier.__file__).resolve().is_relative_to(ROOT)
    assert Path(importlib.import_module("espalier.core").__file__ or "").resolve().is_relative_to(ROOT / "core")
