"""Regressions in the project file are read, or refused with a reason."""

from __future__ import annotations

import pytest

from espalier.core.errors import ProjectError
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.regressions import BoughtRegression, named
from espalier.core.project.schema import CategoriesToBuy, Column, Schema

SCHEMA = Schema(
    (
        Column("age", "numeric", edges=(0, 10, 20)),
        Column("ward", "categorical", tuple("abc")),
        Column("sick", "categorical", ("no", "yes")),
        Column("one", "categorical", ("same",)),
        Column("below", "numeric", edges=(-5, 0, 5)),
        CategoriesToBuy("later", "categorical", 5),
    )
)
STAY = {"name": "stay", "outcome": "age", "on": ["ward", "sick"]}


def project(*regressions, **plan):
    return Project("t", SCHEMA, Plan("mst", 1.0, 1e-6, regressions=regressions, **plan))


def read(**changes):
    return BoughtRegression.from_json({**STAY, **changes})


def test_a_project_file_keeps_its_regressions():
    asked = read(robust=True, interactions=[["ward", "sick"]])
    made = project(asked, regression_share=0.4)
    again = Project.loads(made.dumps())
    assert again == made
    assert again.to_json()["plan"]["regressions"] == [
        {**STAY, "family": "linear", "robust": True, "interactions": [["ward", "sick"]]}
    ]
    assert "regressions" not in project().to_json()["plan"]
    assert made.with_plan(epsilon=2.0).plan.regressions == (asked,)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"outcome": "nothing"}, "not a column"),
        ({"outcome": "ward", "on": ["age"]}, "Name one of them, such as 'ward=c'"),
        ({"outcome": "ward=d", "on": ["age"]}, "has no value 'd'"),
        ({"outcome": "sick=yes"}, "both the outcome and a predictor"),
        ({"on": ["one"]}, "only one value"),
        ({"on": ["later"]}, "not declared yet"),
        ({"outcome": "age", "family": "logistic"}, "needs an event"),
        ({"outcome": "below", "family": "poisson"}, "without negative values"),
    ],
)
def test_a_regression_that_does_not_fit_the_schema_is_refused(changes, said):
    with pytest.raises(ProjectError, match=said):
        project(read(**changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": ""}, "needs a name"),
        ({"on": []}, "1 to 15"),
        ({"on": ["ward", "ward"]}, "twice"),
        ({"on": "ward"}, "must list names"),
        ({"family": "cox"}, "family must be one of"),
        ({"robust": 1}, "true or false"),
        ({"extra": 1}, "unknown key 'extra'"),
        ({"interactions": [["ward", "age"]]}, "two different predictors"),
        ({"interactions": [["ward", "sick"], ["sick", "ward"]]}, "one interaction only"),
    ],
)
def test_a_malformed_regression_is_refused(changes, said):
    with pytest.raises(ProjectError, match=said):
        read(**changes)


def test_two_regressions_with_one_name_and_too_many_coefficients_are_refused():
    with pytest.raises(ProjectError, match="two regressions"):
        project(read(), read())
    wide = Schema((*SCHEMA.columns, Column("wide", "categorical", tuple(map(str, range(60))))))
    with pytest.raises(ProjectError, match="more than the 40 allowed"):
        read(on=["wide"]).check(wide)


def test_a_regression_is_found_by_its_name_or_by_its_only_outcome():
    listed = [read(), read(name="other", outcome="sick=yes", on=["ward"])]
    assert named(listed, "other").name == named(listed, "sick").name == named(listed, "sick=yes").name == "other"
    with pytest.raises(ProjectError, match="several"):
        named([*listed, read(name="third")], "age")
    with pytest.raises(ProjectError, match="bought no regression"):
        named([], "age")
