"""Espalier's headless core: synthetic tables under differential privacy, along a frame an expert drew.

The names a notebook user needs, loaded when first used (so that importing one room costs no other)::

    import pandas as pd
    from core import Project, evaluate
    from core.release import release
    frame = pd.read_csv("people.csv", dtype=str)
    result = release(Project.load("project.json"), frame)
    result.frame                      # the synthetic rows
    evaluate(result, frame)           # confidential
"""

from __future__ import annotations

import importlib
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
        raise AttributeError(f"module 'core' has no attribute {name!r}")
    return getattr(importlib.import_module(f"core.{_WHERE[name]}"), name)
