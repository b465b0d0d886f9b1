"""Every method, with every choice that it declares, goes through plan, release, evaluation, report and verifier."""

from __future__ import annotations

import json
from typing import Any

import pytest

from espalier.core.blurring.registry import BLURRINGS
from espalier.core.cli.main import main
from espalier.core.methods import METHODS
from espalier.core.project.options import declared
from tests.support.entrances import NAMES, ROWS, given, needed, rows_of

NEEDS: dict[tuple[str, str], dict[str, Any]] = {
    ("arrows", "none"): {"latent": 2},
    ("regime", "effect"): {"treatment": "interview_score"},
}
"""Further keys without which a choice is refused."""

DIALS: list[dict[str, Any]] = [
    {"method": "prism", "pools": {"one-way": 0.2, "selection": 0.1, "target": 0.7}},
    {"method": "prism", "accounting": "basic", "pools": {"one-way": 0.2, "target": 0.8}, "regime": "causal"},
    {"method": "fpt-mw", "step": 0.1, "one_way": 0.2, "samples": 500, "rounds": 5},
    {"method": "fpt-mw", "accounting": "pure", "rounds": 5},
    {"method": "fpt-lp", "accounting": "pure"},
    {"method": "two-stage", "alpha": 0.5, "eta": 0.001},
]
"""Plan keys that are not a choice from a list."""


def choices() -> list[dict[str, Any]]:
    """Return one plan for each method, for each of its choices and switches, and for each of the dials."""
    plans: list[dict[str, Any]] = [{"method": name} for name in NAMES]
    known: dict[str, Any] = {**METHODS, **BLURRINGS}
    for name, method in known.items():
        usual = vars(method.options())
        for key, option in declared(method.options).items():
            values = [*option.choices, *([not usual[key]] if isinstance(usual[key], bool) else [])]
            plans += [
                {"method": name, key: value, **NEEDS.get((key, value), {})} for value in values if value != usual[key]
            ]
    return [*plans, *DIALS]


def called(plan: dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" if key != "method" else str(value) for key, value in plan.items())


PLANS = choices()
SLOW = ("two-stage", "linked")
"""Methods that other tests take through the command line; here they run at night."""


def asked(plan: dict[str, Any]) -> Any:
    """Each method with its defaults in every commit, and the other plans at night."""
    nightly = plan not in PLANS[: len(NAMES)] or plan["method"] in SLOW
    return pytest.param(plan, id=called(plan), marks=[pytest.mark.nightly] if nightly else [])


@pytest.mark.parametrize("plan", [asked(plan) for plan in PLANS])
def test_it_is_planned_released_judged_reported_and_verified(plan, tmp_path, capsys):
    project, files = tmp_path / "p.json", rows_of(plan["method"], tmp_path)
    project.write_text(json.dumps(given(plan)))
    out, private = tmp_path / "out", plan["method"] in METHODS
    if private:
        assert main(["plan", str(project), "--rows", str(ROWS), "--json"]) == 0, capsys.readouterr().err
        assert json.loads(capsys.readouterr().out)["spent"] > 0
    assert main(["release", str(project), "--data", *files, "--out", str(out), "--quiet"]) == 0, capsys.readouterr().err
    facts = json.loads((out / "release.json").read_text())
    assert needed(plan).items() <= facts["project"]["plan"].items()
    report = next(out.glob("report*.html")).read_text()
    assert (METHODS | BLURRINGS)[plan["method"]].title in report
    capsys.readouterr()
    assert main(["evaluate", str(out), "--data", *files, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["private"] is False
    if private:
        assert facts["spent"]["epsilon"] <= 1.0
        assert main(["verify", str(out)]) == 0, capsys.readouterr().out
