"""No file but a method's own names it: what there is to know about a method stands in its `Method`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from espalier.core.methods import METHODS

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = "core/methods/registry.py"
FILES = sorted([*(ROOT / "core").rglob("*.py"), *(ROOT / "pages").rglob("*.py"), ROOT / "app.py"])
NAMES = {*METHODS, *(m.title for m in METHODS.values())}


def own() -> set[str]:
    """The files in which methods are made, and the registry."""
    made = {method.fit.__module__.replace(".", "/") + ".py" for method in METHODS.values()}
    return made | {REGISTRY}


def named(node: ast.AST | None) -> set[str]:
    """The methods' names among the constants of an expression: itself, or items of a list, tuple or set."""
    if isinstance(node, ast.Constant):
        return {node.value} & NAMES if isinstance(node.value, str) else set()
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return set().union(*(named(item) for item in node.elts)) if node.elts else set()
    if isinstance(node, ast.Call):  # frozenset({...}), set([...]), dict(mst=...)
        return set().union(*(named(a) for a in node.args), {k.arg for k in node.keywords if k.arg} & NAMES)
    return set()


def uses(tree: ast.AST) -> Iterator[tuple[int, set[str]]]:
    """Line and names of every comparison with a method's name, and of every mapping, lookup or ``match`` by one."""
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


KEYS_OF_OTHERS = {"independent"}
"""Words that name a method and are English too: as the key of a figure they name no method."""


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_other_file_tests_a_methods_name(path):
    where = str(path.relative_to(ROOT))
    if where in own():
        return
    found = [(line, sorted(n)) for line, n in uses(ast.parse(path.read_text("utf-8"))) if n - KEYS_OF_OTHERS]
    assert found == [], f"{where} knows what belongs to a method: ask the Method instead"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_english_word_is_never_compared_with_a_method(path):
    """`independent` may be a key of figures, but nothing that is called a method is compared with it."""
    if str(path.relative_to(ROOT)) in own():
        return
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            assert not set().union(*map(named, sides)), f"line {node.lineno}"


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
