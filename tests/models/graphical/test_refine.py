"""A model over groups of categories, spread over the categories."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.models.graphical import estimate, refine
from espalier.core.privacy.draws import Measurement, fold

GROUPS = {"b": np.array([0, 2, 1, 2, 2]), "c": np.array([0, 0])}


def test_each_category_gets_an_even_part_of_its_group_and_independence_stays():
    rng = np.random.default_rng(1)
    small = {"a": 3, "b": 3, "c": 1, "d": 2}
    pairs = {("a", "b"): (3, 3), ("b", "d"): (3, 2), ("c",): (1,)}
    measured = [Measurement(q, rng.uniform(10, 90, shape), 1.0) for q, shape in pairs.items()]
    model = estimate(small, measured, 500.0)
    sizes = {"a": 3, "b": 5, "c": 2, "d": 2}
    fine = refine(model, sizes, GROUPS)
    assert fine.sizes == sizes
    for clique in (("a", "b"), ("b", "d"), ("a", "d"), ("a", "b", "c", "d"), ("c",)):
        assert fold(fine.marginal(clique), clique, GROUPS) == pytest.approx(model.marginal(clique), rel=1e-9)
    b = fine.marginal(("b",))
    assert b[1] == pytest.approx(b[3])
    assert b[1] == pytest.approx(model.marginal(("b",))[2] / 3)
    assert fine.cmi(("a",), ("d",), ("b",)) < 1e-12
    rows = fine.sample(20_000, rng)
    assert np.bincount(rows["b"], minlength=5) / 20_000 == pytest.approx(b / 500, abs=0.02)
