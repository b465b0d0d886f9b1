"""Public dictionaries: what each declares was written down before the importers were run on it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from espalier.core.dictionaries.reading import read_dictionary

HERE = Path(__file__).with_name("public")
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
EXPECTED = json.loads((HERE / "expected.json").read_text())
MOST_WRONG = 0.05
"""Share of columns that may need an edit."""


def place(name: str) -> Path:
    for folder in (HERE, SHARED):
        if (folder / name).exists():
            return folder / name
    spec = importlib.util.find_spec("statsmodels")
    found = [] if spec is None else sorted(Path(spec.origin).parent.rglob(name))
    if not found:
        pytest.skip(f"{name} is not on this machine")
    return found[0]


def said(column) -> object:
    """What a column declares, in the form of ``expected.json``."""
    if column.kind == "categorical":
        return ["categorical", *column.categories]
    if column.kind != "numeric":
        return column.kind
    more = {"integer": column.integer, "decimals": column.decimals, "number_style": column.number_style}
    return {"kind": "numeric", "range": list(column.range), **{k: v for k, v in more.items() if v}}


@pytest.mark.parametrize("name", EXPECTED)
def test_columns_need_no_edit(name):
    path = place(name)
    if path.suffix == ".dta":
        pytest.importorskip("pyreadstat")
    expected, read = EXPECTED[name], {c.name: c for c in read_dictionary(path).columns}
    found = {n: c.kind if expected.get(n) == "numeric" else said(c) for n, c in read.items()}
    wrong = {k: (v, found.get(k)) for k, v in expected.items() if found.get(k) != v}
    assert len(wrong) <= MOST_WRONG * len(expected), wrong
    assert found.keys() == expected.keys()
