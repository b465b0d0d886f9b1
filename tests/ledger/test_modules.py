"""The modules of the ledger are short and do not import each other in a circle."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

LEDGER = Path(__file__).resolve().parents[2] / "core" / "ledger"


def imported(path: Path) -> set[str]:
    """Return the modules of this package that a file imports, including those inside functions and for types."""
    nodes = [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.ImportFrom)]
    within = {
        n.module.removeprefix("espalier.core.ledger.")
        for n in nodes
        if (n.module or "").startswith("espalier.core.ledger.")
    }
    return within | {a.name for n in nodes if n.module == "espalier.core.ledger" for a in n.names}


def test_no_circle_and_no_long_file():
    modules = {path.stem: path for path in LEDGER.glob("*.py") if path.stem != "__init__"}
    order = list(TopologicalSorter({name: imported(path) for name, path in modules.items()}).static_order())
    assert set(order) == set(modules)
    assert order.index("events") < order.index("replay") < order.index("ledger") < order.index("verify_copies")
    assert all(len(path.read_text("utf-8").splitlines()) <= 460 for path in modules.values())
