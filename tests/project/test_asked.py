"""Questions that were asked of a release are kept in the project file, checked on reading, and never part of a
release.
"""

from __future__ import annotations

import json

import pytest

from espalier.core.errors import ProjectError
from espalier.core.project.asked import AskedQuestion, read_asked
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema

ASKED = (
    AskedQuestion("proportion", "sick=yes", among=("smoker=no",)),
    AskedQuestion("difference", "sick=yes", group="smoker=yes:no"),
    AskedQuestion("regression", "sick=yes", on=("smoker",)),
    AskedQuestion("effect", "sick", treatment="smoker", on=()),
    AskedQuestion("quantile", "age", among=("smoker=no", "sick=yes"), at=0.9, level=0.99),
)


def project() -> Project:
    schema = Schema(tuple(Column(name, "categorical", ("no", "yes")) for name in ("smoker", "sick")))
    return Project("clinic", schema, Plan("mst", epsilon=1, delta=1e-6), asked=ASKED)


def test_a_project_keeps_them_and_is_released_alike():
    read = Project.loads(project().dumps())
    assert read.asked == ASKED
    without = Project.from_json({k: v for k, v in project().to_json().items() if k != "asked"})
    assert without.asked == ()
    assert without == read
    assert without.says_the_same(read)


@pytest.mark.parametrize(
    "data",
    [
        "proportion",
        [{"kind": "proportion"}],
        [{"kind": "median", "of": "age"}],
        [{"kind": "difference", "of": "sick=yes"}],
        [{"kind": "proportion", "of": "sick=yes", "group": "smoker"}],
        [{"kind": "effect", "of": "sick"}],
        [{"kind": "regression", "of": "sick=yes", "on": []}],
        [{"kind": "regression", "of": "sick=yes", "on": [1]}],
        [{"kind": "mean", "of": 3}],
        [{"kind": "mean", "of": "age", "among": [3]}],
        [{"kind": "quantile", "of": "age", "at": 1}],
        [{"kind": "quantile", "of": "age", "level": "0.9"}],
        [{"kind": "regression", "of": "sick=yes", "on": ["age"], "among": "sick=yes"}],
        [{"kind": "mean", "of": "age", "more": ""}],
        [{"kind": "mean", "of": "age"}] * 201,
    ],
)
def test_what_is_no_question_is_refused(data):
    with pytest.raises(ProjectError, match="asked"):
        read_asked(json.loads(json.dumps(data)))
