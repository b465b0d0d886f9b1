"""Write ``plan-keys.md``: every key of a plan, from the methods' declarations. ``python -m docs.plan_keys``"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from espalier.core.blurring.registry import BLURRINGS
from espalier.core.methods import METHODS
from espalier.core.project.options import Option, declared
from espalier.core.project.plan import Plan

FILE = Path(__file__).with_name("plan-keys.md")
HEAD = """# Plan keys

`python -m docs.plan_keys` generates this page from the methods' declarations. A plan is flat: a method's keys are at
the same level as the keys that every plan has. The Plan page shows a field for each key.

## Every plan
"""
SHARED = {
    "method": "the method's name",
    "epsilon": "total ε of the release",
    "delta": "total δ of the release; by default 1/n² if n is public",
    "neighbors": "`replace-one` (n is public) or `add-remove` (n is private)",
    "person": "column that identifies the person; it is never released",
    "rows_per_person": "maximum number of rows per person; without a person column, this is your promise",
    "rows": "number of rows to release; with a person column under replace-one, the declared total",
    "target": "column to predict",
    "targets": "other columns to predict, with weights; the target has weight 1",
    "rarer": "declared share of rows with the target's rarest value, from a public source; only the verdict uses it",
    "fair": "`true` requires the fence; by default, the method decides",
    "strict": "`true` also separates inadmissible columns from the outcome",
    "allocation": '`auto`, `optimal`, `uniform`, or shares of named marginals: `{"age × income": 0.3}`',
    "accounting": "`zcdp`; `basic` composition, to compare with a paper; `pure`, for δ = 0 with `fpt-lp` and `fpt-mw`",
    "rows_drawn": "`even` spreads rows over cells as evenly as possible; `independent` draws rows one by one",
    "max_cells": "maximum number of cells in a table of the model",
    "schema_share": "share of the budget for undeclared bins and categories",
    "question_share": "share of the budget for the project's questions and counts",
    "analysis_share": "share of the budget for the counts of the project's planned analyses",
    "embedding_share": 'share for a second stage that adds what pairs cannot show; with `"auto"`, a probe decides',
    "regression_share": "share of the budget for the plan's regressions",
    "regressions": 'regressions to buy: `[{"name": "stay", "outcome": "los", "on": ["age"], "family": "linear"}]`',
    "private_evaluation": "share of people (or rows) held out for private evaluation",
    "copies": "number of copies of the release for intervals; copies use no budget",
    "test_drawing": "share of the budget for testing independences that the drawing implies",
    "statements": "number of independences to test, or a list of them",
}
"""Meaning of the keys that every plan has, in the order of the page."""


def page() -> str:
    """Return the text of ``plan-keys.md``."""
    defaults = {f.name: f.default for f in dataclasses.fields(Plan)}
    parts = [HEAD, *_table([(key, says, _default(key, defaults)) for key, says in SHARED.items()])]
    for kind, names in _by_options():
        parts += ["", f"## {', '.join(f'`{name}`' for name in names)}", ""]
        values = {f.name: f.default for f in dataclasses.fields(kind)}
        parts += _table([(key, _meaning(said), _value(values[key], said)) for key, said in declared(kind).items()])
    return "\n".join(parts) + "\n"


def _by_options() -> list[tuple[type[Any], list[str]]]:
    """Return each class of options that has keys, with the methods that use it."""
    found: dict[type[Any], list[str]] = {}
    for name, options in [
        *((m.name, m.options) for m in METHODS.values()),
        *((m.name, m.options) for m in BLURRINGS.values()),
    ]:
        if declared(options):
            found.setdefault(options, []).append(name)
    return list(found.items())


def _table(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    lines = [f"| `{key}` | {says} | {value} |" for key, says, value in rows]
    return ["| key | meaning | default |", "| --- | --- | --- |", *lines]


def _default(key: str, defaults: dict[str, Any]) -> str:
    value = defaults[key]
    if key == "epsilon" or (value is dataclasses.MISSING and key != "targets"):
        return "required"
    return _written(value)


def _meaning(said: Option) -> str:
    """Return the label, values or bounds, and help of an option."""
    bounds = "" if said.low is None else f" From {said.low:,g} to {said.high or 0:,g}."
    choices = "".join(f" `{name}`: {text.rstrip('.')}." for name, text in said.choices.items())
    return f"{said.label.rstrip('.')}.{bounds}{choices} {said.help}".strip().replace("|", "\\|")


def _value(value: Any, said: Option) -> str:
    return said.empty if value is None else _written(value)


def _written(value: Any) -> str:
    """Return a default as written in a project file; empty if there is none."""
    return "" if value is None or value is dataclasses.MISSING else f"`{json.dumps(value)}`"


if __name__ == "__main__":
    FILE.write_text(page(), "utf-8")
