"""The answer that fixes the unit of privacy is one of four, even in a notebook."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.errors import ProjectError
from espalier.core.project.file import Project
from espalier.core.project.people import UNASKED
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.blurred import blurred

SCHEMA = Schema((Column("a", "categorical", ("x", "y")),))


@pytest.mark.parametrize("answer", [0, 1, np.False_, np.True_, "false", "null", [], "yes"])
def test_another_kind_of_answer_is_refused(answer):
    """Previously, 0, 1 and NumPy's truth values counted as no answer, so "several rows" was released as one row per
    person."""
    with pytest.raises(ProjectError, match="must be true, false or null"):
        Project("t", SCHEMA, Plan("mst", 1.0, 1e-6), one_row_per_person=answer)


@pytest.mark.parametrize("answer", [True, None, UNASKED])
def test_the_answers_of_a_project_file_pass(answer):
    assert Project("t", SCHEMA, Plan("mst", 1.0, 1e-6), one_row_per_person=answer).one_row_per_person is answer


def test_rows_that_are_not_private_are_not_made_while_the_question_is_open():
    schema = Schema((Column("x", "numeric", edges=(0.0, 1.0, 2.0)), Column("y", "numeric", edges=(0.0, 1.0, 2.0))))
    plan = Plan.from_json({"method": "two-stage", "target": "y", "anonymize": ["x"]})
    project = Project("t", schema, plan, one_row_per_person=None)
    with pytest.raises(ProjectError, match="can one person have several rows"):
        blurred(project, None)
