"""Espalier's headless core: synthetic tables under differential privacy, along a frame an expert drew.

The names a notebook user needs, loaded when first used (so that importing one room costs no other)::

    import pandas as pd
    from espalier.core import Project, evaluate
    from espalier.core.release import release
    frame = pd.read_csv("people.csv", dtype=str)
    result = release(Project.load("project.json"), frame)
    result.frame                      # the synthetic rows
    evaluate(result, frame)           # confidential
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_WHERE = {
    "Column": "project.schema",
    "Schema": "project.schema",
    "Project": "project.file",
    "Plan": "project.file",
    "read_table": "tables.reading",
    "Table": "tables.table",
    "guess_schema": "tables.guessing",
    "Dag": "graph.dag",
    "Roles": "graph.roles",
    "Separation": "graph.separations",
    "PrivateCurator": "privacy.curator",
    "Ledger": "ledger.ledger",
    "combine": "analysis.combine",
    "evaluate": "notebook",
}
__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'espalier.core' has no attribute {name!r}")
    return getattr(importlib.import_module(f"espalier.core.{_WHERE[name]}"), name)


class _SameModules(MetaPathFinder, Loader):
    """Finds ``core.x`` as ``espalier.core.x``, so that a class has one identity under both names."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        aliased = name.startswith("core.") and name != "core.__main__"  # `python -m core` runs the file itself
        return ModuleSpec(name, self) if aliased else None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(f"espalier.{module.__name__}")


if __name__ == "core":  # `from core import …` and `python -m core` in a clone, the name before the package had one
    sys.meta_path.insert(0, _SameModules())
    sys.modules["core"] = importlib.import_module("espalier.core")
