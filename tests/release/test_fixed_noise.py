"""Under fixed noise, a change of the code may add keys to release.json of fixed projects, but not change a number."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from espalier.core.privacy import mechanisms
from espalier.core.project.file import Project
from espalier.core.release.spend import release
from espalier.core.tables import random_rows

SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"
STORED = Path(__file__).parent / "fixed"
ROWS = 1500
PROSE = {
    "about",
    "criterion",
    "date",
    "how",
    "limits",
    "method",
    "promises",
    "reason",
    "seconds",
    "sentence",
    "warnings",
    "what",
    "why",
}
"""Keys whose values are texts or running times."""
CASES = {
    "hiring": {
        "method": "privci",
        "fair": True,
        "width": 2,
        "explain": 0.1,
        "compress": True,
        "private_evaluation": 0.2,
    },
    "stays": {},
    "visits": {},
}


class Fixed:
    """OpenDP's mechanism with noise from a seeded generator; for this test alone."""

    def __init__(self, rng: np.random.Generator, mechanism: Any, kind: str, scale: float) -> None:
        self.rng, self.kind, self.scale, self.map = rng, kind, scale, mechanism.map

    def __call__(self, values: list[int]) -> Any:
        if self.kind == "gaussian":
            return (np.array(values) + np.rint(self.rng.normal(0, self.scale, len(values))).astype(int)).tolist()
        return int(np.argmax(np.array(values) + self.rng.gumbel(0, self.scale, len(values))))


@pytest.fixture
def fixed(monkeypatch):
    """Replace every source of randomness by a seeded one."""
    seeded, real = np.random.default_rng, mechanisms._opendp()
    rng = seeded(7)
    replaced = SimpleNamespace(
        gaussian=lambda scale: Fixed(rng, real.gaussian(scale), "gaussian", scale),
        noisy_max=lambda scale: Fixed(rng, real.noisy_max(scale), "noisy_max", scale),
    )
    monkeypatch.setattr(mechanisms, "_opendp", lambda: replaced)
    monkeypatch.setattr(np.random, "default_rng", lambda seed=0: seeded(seed))
    monkeypatch.setattr(random_rows, "os", SimpleNamespace(urandom=rng.bytes))


def facts_of(sample: str, changes: dict[str, Any]) -> dict[str, Any]:
    given = json.loads((SAMPLES / f"{sample}.json").read_text("utf-8"))
    given["plan"] = {**given["plan"], "epsilon": 3.0, "delta": 1e-6, **changes}
    rows = pd.read_csv(SAMPLES / f"{sample}.csv", dtype=str, keep_default_na=False).head(ROWS)
    return json.loads(release(Project.from_json(given), rows).files["release.json"])


def differences(stored: Any, made: Any, at: str = "") -> list[str]:
    """Return the keys at which ``made`` lacks a stored value, or differs from it beyond rounding."""
    if isinstance(stored, dict) and isinstance(made, dict):
        return [
            one
            for key in stored
            if key not in PROSE
            for one in (differences(stored[key], made[key], f"{at}.{key}") if key in made else [f"{at}.{key} is gone"])
        ]
    if isinstance(stored, list) and isinstance(made, list) and len(stored) == len(made):
        return [
            one for i, pair in enumerate(zip(stored, made, strict=True)) for one in differences(*pair, f"{at}[{i}]")
        ]
    texts = isinstance(stored, str) or isinstance(made, str)
    return (
        []
        if stored == made or (not texts and made == pytest.approx(stored, rel=1e-6, abs=1e-9))
        else [f"{at}: {stored} → {made}"]
    )


@pytest.mark.parametrize("sample", CASES)
@pytest.mark.usefixtures("fixed")
def test_no_number_changes(sample):
    stored = json.loads((STORED / f"{sample}.json").read_text("utf-8"))
    assert differences(stored, facts_of(sample, CASES[sample])) == []


def test_a_difference_is_found():
    assert differences({"a": [1.0, 2]}, {"a": [1.0, 2], "b": 1}) == []
    assert differences({"a": [1.0]}, {"a": [1.1]}) == [".a[0]: 1.0 → 1.1"]
    assert differences({"a": 1}, {}) == [".a is gone"]
