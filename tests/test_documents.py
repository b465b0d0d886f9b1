"""The documents: generated pages are current, and every link leads somewhere."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from docs import plan_keys
from espalier.core.project.plan import Plan

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "benchmarks" / "README.md"])


def test_the_page_of_plan_keys_is_current():
    assert plan_keys.FILE.read_text("utf-8") == plan_keys.page(), "run python -m docs.plan_keys"


def test_every_key_of_a_plan_is_explained():
    assert set(plan_keys.SHARED) == {f.name for f in dataclasses.fields(Plan)} - {"options"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_that_is_named_exists(page):
    for name in re.findall(r"python -m ((?:benchmarks|tests|docs)\.[a-z_.]+)", page.read_text("utf-8")):
        path = ROOT / name.rstrip(".").replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), name
