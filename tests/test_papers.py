"""The table of the five papers: everything that it lists as working can be called, and few items are absent."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from espalier.core.blurring.registry import BLURRINGS
from espalier.core.cli.main import parser
from espalier.core.methods import METHODS
from espalier.core.project.options import declared
from espalier.core.project.plan import Plan

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "papers.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| item", "| ---"))
]


def test_every_item_has_a_state_and_its_reason():
    assert len(ROWS) > 80
    for row in ROWS:
        assert len(row) == 3, row
        assert row[1] in ("works", "different", "absent"), row
        assert len(row[2].strip(" |")) > 8, row


def test_fewer_than_ten_are_absent():
    assert sum(row[1] == "absent" for row in ROWS) < 10


def test_what_works_names_a_command_a_page_or_a_key():
    for row in ROWS:
        if row[1] == "works":
            assert "`" in row[2] or "*" in row[2] or "report" in row[2] or "warning" in row[2] or "kernel" in row[2], (
                row
            )


def plans():
    """Every plan key in the table, with its value."""
    for text in re.findall(r'`("\w+": [^`]+)`', PAGE):
        yield from json.loads("{" + text + "}").items()


def test_every_plan_key_exists_and_takes_the_value():
    kinds = [*(m.options for m in METHODS.values()), *(b.options for b in BLURRINGS.values())]
    known = {key: said for kind in kinds for key, said in declared(kind).items()}
    found = dict(plans())
    assert len(found) > 20
    for key, value in plans():
        if key == "method":
            assert value in METHODS or value in BLURRINGS
        elif key in known:
            said = [declared(kind)[key] for kind in kinds if key in declared(kind)]
            choices = [choice for one in said for choice in one.choices]
            assert not choices or value in choices, (key, value)
        else:
            assert key in Plan.__dataclass_fields__, key


def test_every_benchmark_has_the_part_that_is_named():
    for module, part in re.findall(r"python -m (benchmarks\.\w+)(?: ([a-z]+))?", PAGE):
        path = ROOT / (module.replace(".", "/") + ".py")
        assert path.exists(), module
        if part:
            texts = [n.value for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Constant)]
            assert part in texts, (module, part)


def test_every_command_and_its_options_exist():
    commands: Any = next(a for a in parser()._actions if a.dest == "command").choices
    for text in re.findall(r"`espalier ([^`]+)`", PAGE):
        name, *rest = text.split()
        assert name in commands, text
        given = {option for action in commands[name]._actions for option in action.option_strings}
        assert {word for word in rest if word.startswith("--")} <= given, text


@pytest.mark.parametrize("wrong", ["| a | works |", "| a | sometimes | why |"])
def test_a_broken_row_is_found(wrong):
    row = [cell.strip() for cell in wrong.strip("|").split(" | ")]
    assert len(row) != 3 or row[1] not in ("works", "different", "absent")
