"""Numbers on the Diagnostics page: quantiles, distances in their unit, correlation and a regression, or why there are
none."""

from __future__ import annotations

from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

from espalier.core.evaluation.numeric_fidelity import numbers_of
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema_json import schema_from_json
from espalier.core.tables.table import Table

SCHEMA = [
    {"name": "days", "kind": "numeric", "edges": [0, 10, 40]},
    {"name": "admitted", "kind": "date", "dates": {"from": "2023-01-01", "to": "2023-12-31", "by": "month"}},
]


def facts(target: str | None = "days") -> dict[str, Any]:
    schema, rng = schema_from_json(SCHEMA), np.random.default_rng(0)
    day = schema["admitted"].edges[0]

    def table(move: float) -> Table:
        held = {"days": rng.uniform(0, 30, 200) + move, "admitted": day + rng.integers(0, 200, 200).astype(float)}
        codes = {n: np.searchsorted(schema[n].edges[1:-1], v, side="right") for n, v in held.items()}
        return Table(schema, codes, 200, values=held)

    return {"numbers": numbers_of(Project("n", schema, Plan("mst", 1.0, target=target)), table(0), table(5), None)}


def shown(found: dict[str, Any]) -> AppTest:
    def page(found, columns):  # type: ignore[no-untyped-def]
        from espalier.core.project.schema_json import schema_from_json
        from espalier.pages.diagnostics import numeric_columns

        numeric_columns.show(found, schema_from_json(columns))

    app = AppTest.from_function(page, kwargs={"found": found, "columns": SCHEMA}, default_timeout=60).run()
    assert not app.exception
    return app


def test_numbers_are_shown_in_their_unit_and_dates_as_dates() -> None:
    found = facts()
    app = shown(found)
    regression, distances, quantiles = (d.value for d in app.dataframe)
    assert regression["R²"].tolist() == [found["numbers"]["r2_synthetic"], found["numbers"]["r2_real"]]
    by = distances.set_index("column")
    assert abs(float(by.loc["days", "mean distance"]) - 5) < 2
    assert by.loc["admitted", "unit"] == "days"
    assert list(quantiles["quantile"]) == ["5 %", "25 %", "50 %", "75 %", "95 %"]
    assert any("differs by at most" in m.value for m in app.markdown)
    app.selectbox(key="look-quantiles").select("admitted").run()
    assert app.dataframe[2].value["real"][0].startswith("2023-01-")


def test_what_cannot_be_shown_says_why() -> None:
    assert [i.value for i in shown({"numbers": None, "numbers_reason": "no column of the schema is numeric"}).info] == [
        "There are no numbers to compare: no column of the schema is numeric."
    ]
    app = shown(facts(None))
    assert not any("Predicting the number" in s.value for s in app.subheader)
