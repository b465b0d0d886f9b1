"""A small project with its rows for each method, so that tests can call every entrance with every method."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from espalier.core.blurring.registry import BLURRINGS
from espalier.core.methods import METHODS

SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"
NAMES = (*METHODS, *BLURRINGS)
ROWS = 400
QUESTIONS: dict[str, Any] = {
    "questions": [
        {"name": "hired women", "where": {"gender": ["woman"], "hired": ["yes"]}},
        {"name": "asked twice", "any": [{"interview_score": ["4", "5"]}, {"qualification": ["master"]}]},
    ]
}


def sample_of(method: str) -> str:
    """Return the sample for a method, chosen by what the method declares."""
    if method in BLURRINGS or METHODS[method].capabilities.numbers:
        return "stays"
    return "clinic" if METHODS[method].capabilities.linked else "hiring"


def needed(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``plan`` with the keys that its method requires; fewer rows cannot reach a small LID."""
    if method := METHODS.get(plan["method"]):
        delta = {} if plan.get("accounting") == "pure" else {"delta": 1e-6}
        unit = {"neighbors": "add-remove"} if method.capabilities.linked else {}
        return {"epsilon": 1.0, **delta, **unit, **plan}
    return {"landmarks": 100, **({} if "alpha" in plan else {"lid": 0.9}), **plan}


def given(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of a project file with ``plan`` on the method's sample."""
    project: dict[str, Any] = json.loads((SAMPLES / f"{sample_of(plan['method'])}.json").read_text("utf-8"))
    project["plan"] = {"target": project["plan"]["target"], **needed(plan)}
    if plan["method"] in METHODS and METHODS[plan["method"]].capabilities.questions == "alone":
        project |= QUESTIONS
    return project


def rows_of(method: str, folder: Path) -> list[str]:
    """Return paths of the sample's first rows, written to ``folder``: one table, or people and their visits."""
    sample = sample_of(method)
    names = [sample] if sample != "clinic" else ["clinic_patients", "clinic_visits"]
    kept: set[str] = set()
    for name in names:
        with (SAMPLES / f"{name}.csv").open(newline="") as source, (folder / f"{name}.csv").open("w", newline="") as to:
            rows = csv.DictReader(source)
            out = csv.DictWriter(to, list(rows.fieldnames or []))
            out.writeheader()
            for i, row in enumerate(rows):
                if row["patient"] in kept if name == "clinic_visits" else i < ROWS:
                    out.writerow(row)
                    kept.add(row.get("patient", ""))
    return [str(folder / f"{name}.csv") for name in names]
