"""The wheel, and environments that hold it with the libraries that it declares and nothing else."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.app import ROOT


def wheel(folder: Path) -> Path:
    """Build the wheel from a copy of the files that git tracks, so that nothing else from this clone can be in it."""
    if int(importlib.metadata.version("setuptools").split(".")[0]) < 77:
        if os.environ.get("CI"):
            pytest.fail("setuptools is too old to build the wheel: pip install -r requirements-dev.txt")
        pytest.skip("setuptools is too old to build the wheel: pip install -r requirements-dev.txt")
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    source = folder / "source"
    for name in filter(None, files):
        if name.startswith(("tests/", "benchmarks/")) or not os.path.lexists(ROOT / name):
            continue
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name, follow_symlinks=False)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-q"]
    subprocess.run([*command, "-w", str(folder), "."], cwd=source, check=True, capture_output=True)
    shutil.rmtree(source)
    [built] = folder.glob("*.whl")
    return built


def metadata(built: Path) -> Message:
    with zipfile.ZipFile(built) as archive:
        [name] = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        return message_from_string(archive.read(name).decode())


def declared(built: Path, *extras: str) -> set[str]:
    """Return the distributions that the wheel and its extras require, directly or indirectly."""
    found: set[tuple[str, str]] = set()
    waiting = [(text, extra) for text in metadata(built).get_all("Requires-Dist", []) for extra in ("", *extras)]
    while waiting:
        text, extra = waiting.pop()
        asked = Requirement(text)
        if asked.marker is not None and not asked.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(asked.name)
        for each in ("", *asked.extras):
            if (name, each) not in found:
                found.add((name, each))
                waiting += [(text, each) for text in importlib.metadata.requires(name) or ()]
    return {name for name, _ in found}


def environment(folder: Path, built: Path, *extras: str) -> Path:
    """Return the Python of a new environment: it has the wheel installed, and links to this environment's declared
    libraries.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", f"--python={python}", "install", "--no-deps", "--no-index", "-q"]
    subprocess.run([*command, str(built)], check=True, capture_output=True)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    for name in declared(built, *extras):
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            link = Path(paths["purelib"]) / top
            if not link.exists():
                link.symlink_to(Path(str(distribution.locate_file(top))))
    return python
