"""Espalier: synthetic tables under differential privacy that respect what a domain expert knows.

One import provides everything that a notebook needs. Each name is loaded on first use::

    import pandas as pd
    import espalier as es
    frame = pd.read_csv("people.csv", dtype=str, keep_default_na=False)
    made = es.release(es.Project.load("project.json"), frame)
    made.frame                        # the synthetic rows
    es.evaluate(made, frame)          # confidential
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from espalier.core.analysis.answer_text import sentence as sentence
    from espalier.core.analysis.combine import combine as combine
    from espalier.core.analysis.figure_from_text import difference as difference
    from espalier.core.analysis.figure_from_text import mean as mean
    from espalier.core.analysis.figure_from_text import odds_ratio as odds_ratio
    from espalier.core.analysis.figure_from_text import proportion as proportion
    from espalier.core.analysis.figure_from_text import quantile as quantile
    from espalier.core.analysis.figure_from_text import regression as regression
    from espalier.core.analysis.loading import load_release as load_release
    from espalier.core.analysis.study import Study as Study
    from espalier.core.errors import BudgetError as BudgetError
    from espalier.core.errors import Cancelled as Cancelled
    from espalier.core.errors import EspalierError as EspalierError
    from espalier.core.errors import GraphError as GraphError
    from espalier.core.errors import LedgerError as LedgerError
    from espalier.core.errors import LedgerUnavailable as LedgerUnavailable
    from espalier.core.errors import ProjectError as ProjectError
    from espalier.core.errors import SchemaError as SchemaError
    from espalier.core.errors import SizeError as SizeError
    from espalier.core.errors import TableError as TableError
    from espalier.core.errors import Unfinished as Unfinished
    from espalier.core.graph.dag import Dag as Dag
    from espalier.core.graph.roles import Roles as Roles
    from espalier.core.graph.separations import Separation as Separation
    from espalier.core.ledger.ledger import Ledger as Ledger
    from espalier.core.notebook import evaluate as evaluate
    from espalier.core.planning.preview import preview as preview
    from espalier.core.project.file import Project as Project
    from espalier.core.project.plan import Plan as Plan
    from espalier.core.project.schema import Column as Column
    from espalier.core.project.schema import Schema as Schema
    from espalier.core.release.resume import resume as resume
    from espalier.core.release.spend import release as release
    from espalier.core.tables.guessing import guess_schema as guess_schema
    from espalier.core.tables.reading import read_table as read_table

__version__ = "0.2.0.dev0"

_WHERE = {
    "Column": "project.schema",
    "Schema": "project.schema",
    "Plan": "project.plan",
    "Project": "project.file",
    "Dag": "graph.dag",
    "Roles": "graph.roles",
    "Separation": "graph.separations",
    "read_table": "tables.reading",
    "guess_schema": "tables.guessing",
    "preview": "planning.preview",
    "release": "release.spend",
    "resume": "release.resume",
    "load_release": "analysis.loading",
    "evaluate": "notebook",
    "Study": "analysis.study",
    "proportion": "analysis.figure_from_text",
    "difference": "analysis.figure_from_text",
    "odds_ratio": "analysis.figure_from_text",
    "mean": "analysis.figure_from_text",
    "quantile": "analysis.figure_from_text",
    "regression": "analysis.figure_from_text",
    "sentence": "analysis.answer_text",
    "combine": "analysis.combine",
    "Ledger": "ledger.ledger",
    "EspalierError": "errors",
    "SchemaError": "errors",
    "TableError": "errors",
    "GraphError": "errors",
    "ProjectError": "errors",
    "BudgetError": "errors",
    "LedgerError": "errors",
    "LedgerUnavailable": "errors",
    "SizeError": "errors",
    "Unfinished": "errors",
    "Cancelled": "errors",
}
"""The module of `espalier.core` that defines each exported name."""
__all__ = list(_WHERE)

_HERE = Path(__file__).resolve().parent
if not (_HERE / "core").is_dir():  # in a clone without symbolic links, `core` and `pages` are next to this folder
    __path__.append(str(_HERE.parent))


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'espalier' has no attribute {name!r}")
    return getattr(importlib.import_module(f"espalier.core.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
