"""The lengths of stay: reproducible, inside their schema, and a smooth function of numbers."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LinearRegression

from espalier.core.evaluation.numeric_fidelity import train_and_test
from espalier.core.project.file import Project
from espalier.core.project.schema_json import schema_from_json
from sample_data.stays import EFFECTS, STAYS, stays


def test_it_is_deterministic_and_fits_its_project():
    one, two = (stays(np.random.default_rng(16), 300) for _ in range(2))
    assert all(np.array_equal(one[n], two[n]) for n in one)
    Project.from_json(STAYS)
    schema = schema_from_json(STAYS["schema"])
    assert list(one) == list(schema.names)
    for column in schema.columns:
        column.encode(list(one[column.name]))
        if column.kind == "numeric":
            numbers = one[column.name].astype(float)
            assert column.edges[0] <= numbers.min()
            assert numbers.max() <= column.edges[-1]


def test_days_follow_a_curve_that_a_line_misses():
    table = stays(np.random.default_rng(16), 6000)
    x = np.column_stack(
        [table[n].astype(float) if n != "admission" else table[n] == "emergency" for n in EFFECTS]
    ).astype(float)
    y = table["days"].astype(float)
    curve = train_and_test((x[:4000], y[:4000]), (x[4000:], y[4000:])).r2
    line = LinearRegression().fit(x[:4000], y[:4000]).score(x[4000:], y[4000:])
    assert curve > 0.8
    assert curve - line > 0.02
