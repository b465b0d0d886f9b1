"""The checker repeats the smoothing of counts along ordered columns, and refuses a fit of other counts."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.models.graphical import GraphicalModel
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release import release
from espalier.core.release.artefact import SMOOTHED
from espalier.core.tables.table import Table
from espalier.verifier.check import verify
from espalier.verifier.folder import Folder
from espalier.verifier.model import Model, fitted
from espalier.verifier.noise import Answers
from espalier.verifier.smoothing import spans

BINS, ROWS = 9, 3000


@pytest.fixture(scope="module", params=["workload", "prism"])
def folder(request, tmp_path_factory):
    rng = np.random.default_rng(0)
    level = rng.integers(0, BINS, ROWS)
    near = {n: np.clip(level + rng.integers(-1, 2, ROWS), 0, BINS - 1) for n in "abc"}
    labels = tuple(map(str, range(BINS)))
    columns = [*(Column(n, "ordinal", labels) for n in near), Column("y", "categorical", ("no", "yes"))]
    codes = near | {"y": (rng.random(ROWS) < level / BINS).astype(np.int64)}
    plan = Plan(request.param, 0.5, 1e-6, neighbors="add-remove", target="y")
    made = release(Project("levels", Schema(tuple(columns)), plan), Table(Schema(tuple(columns)), codes, ROWS))
    assert isinstance(made.model, GraphicalModel)
    assert made.model.first.smooth
    assert SMOOTHED in made.to_json()["promises"]
    path = tmp_path_factory.mktemp("smoothed") / "release"
    made.save(path)
    return path


def test_an_honest_release_holds(folder):
    assert [f.text for f in verify(folder) if f.holds is False] == []


def test_a_fit_of_counts_smoothed_in_another_way_is_refused(folder):
    held = Folder(folder)
    answers, model = Answers(held), Model(held, *held.arrays("model.npz"))
    ordered = spans(held.columns, held.sizes, answers.sizes)
    assert fitted(model, answers, ordered, strict=True) == []
    model.head["smooth"] = []
    assert "not the fit of the counts" in fitted(model, answers, ordered, strict=True)[0]
