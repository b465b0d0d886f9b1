"""The allowed imports of the analysis: graph, inference and plain values; no rows and no noise."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "core" / "analysis"
ALLOWED = (
    "espalier.core.analysis",
    "espalier.core.errors",
    "espalier.core.graph",
    "espalier.core.models.graphical",
    "espalier.core.privacy.draws",
)


FIGURES = (
    *(
        "answers",
        "combine",
        "copies",
        "effect",
        "estimands",
        "gate",
        "independence_test",
        "missing_shares",
        "independence_fit",
    ),
    "strength",
)
"""The modules that compute figures; all other modules read a release and ask these for figures."""


@pytest.mark.parametrize("name", FIGURES)
def test_the_figures_import_only_what_lies_below_them(name):
    path = FOLDER / f"{name}.py"
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    found = {n.module for n in nodes if isinstance(n, ast.ImportFrom) and n.module}
    found |= {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
    inside = {name for name in found if name.split(".")[0] == "espalier"}
    assert all(name.startswith(ALLOWED) for name in inside), inside


def test_its_modules_form_no_circle():
    after = {}
    for path in FOLDER.glob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        after[path.stem] = {
            n.module.split(".")[-1]
            for n in nodes
            if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("espalier.core.analysis.")
        }
    while free := [name for name, needs in after.items() if not needs & set(after)]:
        for name in free:
            del after[name]
    assert not after
