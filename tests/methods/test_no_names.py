"""Only a method's own files name it: its `Method` holds all facts about it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from espalier.core.blurring.registry import BLURRINGS
from espalier.core.methods import METHODS
from espalier.core.project.options import declared

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = "core/methods/registry.py"
FILES = sorted([*(ROOT / "core").rglob("*.py"), *(ROOT / "pages").rglob("*.py"), ROOT / "app.py"])
KNOWN: dict[str, Any] = {**METHODS, **BLURRINGS}
NAMES = {*KNOWN, *(m.title for m in KNOWN.values())}


def own() -> set[str]:
    """Return the files in which methods are made, and the registry."""
    made = {method.fit.__module__.removeprefix("espalier.").replace(".", "/") + ".py" for method in METHODS.values()}
    return made | {REGISTRY, "core/blurring/two_stage.py", "core/blurring/registry.py"}


@cache
def others() -> tuple[tuple[str, ast.Module], ...]:
    """Return the files that belong to no method, each with its path and syntax tree."""
    where = {str(path.relative_to(ROOT)): path for path in FILES}
    kept = tuple((name, ast.parse(path.read_text("utf-8"))) for name, path in where.items() if name not in own())
    assert len(kept) > 300
    return kept


def named(node: ast.AST | None) -> set[str]:
    """Return the names of methods among the constants of an expression: itself, or items of a list, tuple or set."""
    if isinstance(node, ast.Constant):
        return {node.value} & NAMES if isinstance(node.value, str) else set()
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return set().union(*(named(item) for item in node.elts)) if node.elts else set()
    if isinstance(node, ast.Call):  # frozenset({...}), set([...]), dict(mst=...)
        return set().union(*(named(a) for a in node.args), {k.arg for k in node.keywords if k.arg} & NAMES)
    return set()


def uses(tree: ast.AST) -> Iterator[tuple[int, set[str]]]:
    """Return the line and the names of each comparison with a method's name, and of each mapping, lookup or ``match``
    by one."""
    for node in ast.walk(tree):
        found: set[str] = set()
        if isinstance(node, ast.Compare):
            found = named(node.left).union(*map(named, node.comparators))
        elif isinstance(node, ast.Dict):
            found = set().union(*map(named, node.keys)) if node.keys else set()
        elif isinstance(node, ast.DictComp):
            found = set().union(*(named(g.iter) for g in node.generators), named(node.key))
        elif isinstance(node, ast.Subscript):
            found = named(node.slice)
        elif isinstance(node, ast.MatchValue):
            found = named(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in {"get", "setdefault", "pop", "startswith", "endswith", "index", "count", "__eq__"}:
                found = set().union(*map(named, node.args)) if node.args else set()
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "dict":
            found = named(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            held = node.value  # a constant that a comparison elsewhere could use: FENCED = ("privci", "prefair")
            if isinstance(held, ast.Tuple | ast.List | ast.Set | ast.Call):
                found = named(held) if len(named(held)) > 1 else set()
            elif isinstance(held, ast.Constant):
                found = named(held)
        if found:
            yield getattr(node, "lineno", 0), found


KEYS_OF_OTHERS = {"independent", "linked"}
"""Names of methods that are also English words; as keys of figures they do not refer to a method."""


def test_no_other_file_tests_a_methods_name():
    found = {f"{where}:{line}": sorted(n) for where, tree in others() for line, n in uses(tree) if n - KEYS_OF_OTHERS}
    assert not found, "these know what belongs to a method: ask the Method instead"


def test_the_english_word_is_never_compared_with_a_method():
    """`independent` may be a key of figures, but nothing that is called a method is compared with it."""
    compared = [(where, n) for where, tree in others() for n in ast.walk(tree) if isinstance(n, ast.Compare)]
    assert not [(where, n.lineno) for where, n in compared if set().union(*map(named, [n.left, *n.comparators]))]


@pytest.mark.parametrize(
    "code",
    [
        'if plan.method == "mst": pass',
        'x = plan.method in ("privci", "prefair")',
        'x = plan.method not in {"prism"}',
        'WORDS = {"privci": "a tree"}',
        'WORDS = dict(mst="a tree")',
        'x = table["prism"]',
        'x = table.get("mst", "")',
        'FENCED = ("privci", "prefair")',
        'FENCED = frozenset({"privci", "prefair"})',
        'OURS = "privci"',
        'if (ours := "privci"): pass',
        'match plan.method:\n    case "mst":\n        pass',
        'match plan.method:\n    case "mst" | "prefair":\n        pass',
        'x = plan.method.startswith("priv") or plan.method.startswith("prism")',
        'x = title == "PrivCI"',
        'x = {m: 1 for m in ("mst", "prism")}',
    ],
)
def test_each_way_of_testing_a_name_is_found(code):
    assert list(uses(ast.parse(code)))


@pytest.mark.parametrize(
    "code", ['"""Like mst, a tree."""', "x = method.name == other.name", 'p = Plan(method="mst")', "x = METHODS[name]"]
)
def test_words_and_names_at_run_time_are_not(code):
    assert not list(uses(ast.parse(code)))


def test_each_method_has_a_file_and_the_registry_a_line():
    text = (ROOT / REGISTRY).read_text("utf-8")
    for name, method in METHODS.items():
        assert name == method.name
        assert (ROOT / (method.fit.__module__.replace(".", "/") + ".py")).exists()
        assert name.upper().replace("-", "_") in text


def option_names() -> set[str]:
    """Return every plan key that a method declares for itself."""
    kinds = [m.options for m in METHODS.values()] + [b.options for b in BLURRINGS.values()]
    return {key for kind in kinds for key in declared(kind)}


def options_used(tree: ast.AST, keys: set[str]) -> Iterator[tuple[int, str]]:
    """Line and key of every option that is read from a plan, or set in one, by its name."""
    for node in ast.walk(tree):
        found: list[Any] = []
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("options"):
            found = [node.slice.value] if isinstance(node.slice, ast.Constant) else []
        elif isinstance(node, ast.Compare) and any(ast.unparse(c).endswith("options") for c in node.comparators):
            found = [node.left.value] if isinstance(node.left, ast.Constant) else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in {"get", "pop"} and ast.unparse(node.func.value).endswith("options"):
                found = [a.value for a in node.args[:1] if isinstance(a, ast.Constant)]
            elif node.func.attr in {"changed", "change_plan", "with_plan"}:
                found = [k.arg for k in node.keywords]
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith("options"):
            found = [node.attr]
        yield from ((getattr(node, "lineno", 0), key) for key in found if key in keys)


def test_no_other_file_names_a_methods_option():
    keys, of_methods = option_names(), ("core/methods/prism_", "core/methods/workload_", "core/blurring/")
    asked = [(where, tree) for where, tree in others() if not where.startswith(of_methods)]
    found = {f"{where}:{line}": key for where, tree in asked for line, key in options_used(tree, keys)}
    assert not found, "these know a method's option: ask the Method instead"


@pytest.mark.parametrize(
    "code",
    [
        'plan.options.get("treatment")',
        'x = project.plan.options["regime"]',
        'x = "compress" in plan.options',
        'state.change_plan(regime="causal")',
        "x = method.options.width",
    ],
)
def test_each_way_of_naming_an_option_is_found(code):
    assert list(options_used(ast.parse(code), option_names()))
