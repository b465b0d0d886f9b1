"""Dates and identifiers are separate kinds, from the project file through a release and back from its folder."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from espalier.core.analysis.loading import load_release
from espalier.core.errors import SchemaError
from espalier.core.project.constraints import Constraints
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema_json import schema_from_json, schema_to_json
from espalier.core.release.spend import release
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

RANGE = {"from": "2023-01-01", "to": "2024-12-31", "by": "month"}
COLUMNS = [
    {"name": "patient", "kind": "identifier", "invented": True},
    {"name": "first", "kind": "date", "dates": RANGE, "missing": True},
    {"name": "case", "kind": "identifier"},
    {"name": "last", "kind": "date", "dates": RANGE},
    {"name": "ill", "kind": "categorical", "categories": ["no", "yes"]},
]


def text(n: int = 400) -> bytes:
    rng = np.random.default_rng(3)
    lines = ["patient,first,case,last,ill"]
    for i in range(n):
        first, last = (date(2023, 1, 1).toordinal() + int(rng.integers(0, 731)) for _ in range(2))
        said = "" if i % 9 == 0 else date.fromordinal(first).isoformat()
        lines.append(f"secret{i},{said},case{i},{date.fromordinal(last)},{'yes' if i % 3 else 'no'}")
    return ("\n".join(lines) + "\n").encode()


def test_a_release_of_dates_with_invented_identifiers(tmp_path):
    schema = schema_from_json(COLUMNS)
    assert schema_to_json(schema) == COLUMNS
    assert schema["first"].labels[:2] == ("2023-01", "2023-02")
    assert schema.names == ("first", "last", "ill")
    assert schema.released == ("patient", "first", "last", "ill")
    project = Project(
        "visits", schema, Plan("mst", 3.0), constraints=Constraints.from_json({"monotone": [["first", "last"]]})
    )
    assert Project.loads(project.dumps()) == project
    made = release(project, Table.encode(read_table(text(), "t.csv"), schema))
    assert made.to_json()["constraints"]["violations"] == 0
    assert list(made.table) == ["patient", "first", "last", "ill"]
    assert len(set(made.table["patient"])) == made.rows
    assert not any("secret" in cell for cell in made.table["patient"])
    for first, last in zip(made.table["first"], made.table["last"], strict=True):
        assert date(2023, 1, 1) <= date.fromisoformat(last) <= date(2024, 12, 31)
        assert not first or date.fromisoformat(first) <= date.fromisoformat(last)
    made.save(tmp_path / "out")
    again = load_release(tmp_path / "out")
    assert all(np.array_equal(again.table.codes[n], made.codes[n]) for n in schema.names)
    for days in (made.synthetic.values, again.table.values):
        known = days["first"][~np.isnan(days["first"])]
        assert known.tolist() == [date.fromisoformat(t).toordinal() for t in made.table["first"] if t]
    assert (tmp_path / "out" / "synthetic.csv").read_text("utf-8").startswith("patient,first,last,ill\n")


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"name": "d", "kind": "date"}, "range and a period"),
        ({"name": "d", "kind": "date", "dates": RANGE, "edges": [1, 2]}, "cannot have edges"),
        ({"name": "d", "kind": "numeric", "edges": [0, 1], "dates": RANGE}, 'belongs to the kind "date"'),
        ({"name": "d", "kind": "identifier", "categories": ["a"]}, "cannot have 'categories'"),
        ({"name": "ill", "kind": "identifier"}, "twice"),
    ],
)
def test_descriptions_that_cannot_be(column, said):
    with pytest.raises(SchemaError, match=said):
        schema_from_json([*COLUMNS[2:], column])
