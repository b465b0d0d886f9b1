"""In the documents, generated pages are current, links lead somewhere, and public names have docstrings."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs import plan_keys
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md"])


def test_the_page_of_plan_keys_is_current():
    assert plan_keys.FILE.read_text("utf-8") == plan_keys.page(), "run python -m docs.plan_keys"


def test_every_key_of_a_plan_is_explained():
    assert set(plan_keys.SHARED) == {f.name for f in dataclasses.fields(Plan)} - {"options"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_that_is_named_exists(page):
    for name in re.findall(r"python -m ((?:benchmarks|tests|docs)\.[a-z_.]+)", page.read_text("utf-8")):
        path = ROOT / name.rstrip(".").replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), name


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_test_that_is_named_exists(page):
    for name in re.findall(r"`(tests/[A-Za-z0-9_/]+(?:\.py|/))`", page.read_text("utf-8")):
        assert (ROOT / name).exists(), name


def indented_blocks(page: Path) -> list[str]:
    """Return the blocks of a page that are indented by four spaces."""
    return re.findall(r"(?m)(?:^    .*\n)+", page.read_text("utf-8"))


COLUMNS: dict[str, tuple[str, ...]] = {
    "sex": ("female", "male"),
    "ward": ("a", "b", "c"),
    "drug": ("no", "yes"),
    "insulin": ("no", "yes"),
    "diabetes": ("no", "yes"),
    "heart_failure": ("none", "moderate", "severe"),
    "died": ("no", "yes"),
    "arm": ("old", "new"),
    "readmitted": ("no", "yes"),
}
NUMBERS = {"age": [0, 40, 60, 100], "los": [0, 3, 7, 30], "months": [0, 6, 12, 24]}


@pytest.mark.parametrize("block", indented_blocks(ROOT / "docs" / "project-file.md"))
def test_the_examples_of_a_project_file_are_accepted(block):
    example = json.loads(block if block.lstrip().startswith("{") else "{" + block + "}")
    schema: list[dict[str, object]] = [
        {"name": name, "kind": "categorical", "categories": list(texts)} for name, texts in COLUMNS.items()
    ]
    schema += [{"name": name, "kind": "numeric", "edges": edges} for name, edges in NUMBERS.items()]
    project = {
        "format": "espalier-project/1",
        "name": "example",
        "one_row_per_person": True,
        "schema": schema,
        **example,
    }
    project["plan"] = {
        "method": "prism",
        "epsilon": 1,
        "delta": 1e-6,
        "target": "readmitted",
        **example.get("plan", {}),
    }
    read = Project.loads(json.dumps(project))
    assert set(example) <= set(json.loads(read.dumps()))


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def undocumented(tree: ast.Module | ast.ClassDef) -> Iterator[str]:
    """Yield the public functions and classes without a docstring, methods included, overloads excepted."""
    for node in tree.body:
        if not isinstance(node, Definition) or node.name.startswith("_"):
            continue
        overload = any(ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list)
        if not overload and ast.get_docstring(node) is None:
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{name}" for name in undocumented(node))


def test_every_public_function_and_class_of_core_has_a_docstring():
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "core").rglob("*.py")
        for name in undocumented(ast.parse(path.read_text("utf-8")))
    }
    commands = {one for one in found if one.startswith("core/cli/") and one.endswith(": run")}
    assert not found - commands


def test_a_missing_docstring_is_found():
    code = "def f(): ...\nclass A:\n    def g(self): ...\n@overload\ndef h(): ...\ndef _i(): ..."
    assert list(undocumented(ast.parse(code))) == ["f", "A", "A.g"]
