"""Keys that every plan may have but that a method does not read: the plan names them."""

from __future__ import annotations

from typing import Any

import pytest

from espalier.core.errors import ProjectError
from espalier.core.graph.dag import Dag
from espalier.core.methods import METHODS, unused_options
from espalier.core.planning.preview import preview
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from tests.support.tables import schema_of

OTHER: dict[str, Any] = {"allocation": "optimal", "accounting": "basic", "copies": 5, "question_share": 0.2}
"""For each key, a value that differs from its default."""


def project(**plan: Any) -> Project:
    given = {"epsilon": 1.0, "delta": 1e-6, "target": "y", **plan}
    return Project("t", schema_of(y=2, a=3), Plan.from_json(given), Dag((("a", "y"),)))


@pytest.mark.parametrize("name", METHODS)
def test_every_unread_key_is_reported_and_only_those(name: str) -> None:
    method = METHODS[name]
    for key, value in OTHER.items():
        plan = Plan.from_json({"method": name, "epsilon": 1.0, key: value})
        assert unused_options(plan) == ([key] if key in method.capabilities.unread else [])
        assert method.offers(plan, key)  # so that it can be corrected
        usual = Plan.from_json({"method": name, "epsilon": 1.0})
        assert method.offers(usual, key) == (key not in method.capabilities.unread)


def test_the_plan_names_what_the_decoder_does_not_read() -> None:
    seen = preview(project(method="decoder", allocation="optimal", accounting="basic"), 1000)
    assert any("ignores allocation, accounting" in w for w in seen.warnings)
    usual = preview(project(method="decoder"), 1000)
    assert not any("ignores" in w for w in usual.warnings)
    assert seen.lines == usual.lines


def test_copies_of_a_decoder_are_refused() -> None:
    with pytest.raises(ProjectError, match="set copies to 0"):
        preview(project(method="decoder", copies=5), 1000)
