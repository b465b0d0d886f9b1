"""Espalier's headless core. It performs all computation and never imports a user interface.

Some names of the ``espalier`` package are also available here, for code written before the package had this name.
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import espalier

_OF_PACKAGE = {
    *("Column", "Schema", "Project", "Plan", "read_table", "guess_schema", "Dag", "Roles", "Separation"),
    *("Ledger", "combine", "evaluate"),
}
_OWN = {"Table": "tables.table", "PrivateCurator": "privacy.curator"}
__all__ = sorted(_OF_PACKAGE | set(_OWN))


def __getattr__(name: str) -> Any:
    if name in _OF_PACKAGE:
        return getattr(espalier, name)
    if name in _OWN:
        return getattr(importlib.import_module(f"espalier.core.{_OWN[name]}"), name)
    raise AttributeError(f"module 'espalier.core' has no attribute {name!r}")


class _SameModules(MetaPathFinder, Loader):
    """Import finder that resolves ``core.x`` to ``espalier.core.x``. Each class is then the same object under both
    names.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        aliased = name.startswith("core.") and name != "core.__main__"  # `python -m core` runs the file itself
        return ModuleSpec(name, self) if aliased else None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(f"espalier.{module.__name__}")


if __name__ == "core":  # `from core import …` and `python -m core` in a checkout: the package's earlier name
    sys.meta_path.insert(0, _SameModules())
    sys.modules["core"] = importlib.import_module("espalier.core")
