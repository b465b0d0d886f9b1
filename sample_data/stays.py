"""Lengths of stay: a numeric column that depends smoothly on others, for methods that do not bin numbers.

Every person is invented and the seed is fixed. Stays are longest for patients around 70 with many illnesses and high
markers of inflammation. The relation is curved, so neither a straight line nor a few bins can follow it.
"""

from __future__ import annotations

import numpy as np

from .parts import SEXES, Table, categorical, coin, named, numeric, pick, project, text, within

ADMISSIONS = ("planned", "emergency")
AGE = (18, 30, 40, 50, 60, 70, 80, 96)
ILLNESSES = (0, 1, 2, 3, 4, 5, 6, 9)
MARKER = (0, 10, 25, 50, 100, 150, 220, 300)
HAEMOGLOBIN = (6, 8, 9, 10, 11, 12, 13, 14, 15, 18)
DAYS = (0, 2, 4, 6, 8, 10, 13, 16, 20, 25, 30, 40)
EFFECTS = ("age", "illnesses", "marker", "haemoglobin", "admission")

STAYS = project(
    "stays",
    schema=[
        numeric("age", AGE),
        categorical("sex", SEXES),
        numeric("illnesses", ILLNESSES),
        numeric("marker", MARKER, integer=False),
        numeric("haemoglobin", HAEMOGLOBIN, integer=False),
        categorical("admission", ADMISSIONS),
        numeric("days", DAYS, integer=False),
    ],
    edges=[
        ["age", "illnesses"],
        ["illnesses", "marker"],
        ["marker", "haemoglobin"],
        ["age", "admission"],
        *([cause, "days"] for cause in EFFECTS),
    ],
    roles={"outcome": ["days"], "protected": ["sex"], "admissible": list(EFFECTS), "inadmissible": []},
    method="copula",
    target="days",
)


def stays(rng: np.random.Generator, rows: int) -> Table:
    """Return patients of one ward, with the length of their stay in days."""
    age = within(np.round(62 + 17 * rng.standard_normal(rows)), AGE)
    sex = pick(rng, [0.5, 0.5], rows)
    old = (age - 62) / 17
    illnesses = within(rng.poisson(np.exp(0.4 + 0.35 * old)), ILLNESSES)
    marker = within(np.exp(3.1 + 0.15 * illnesses + 0.8 * rng.standard_normal(rows)), MARKER)
    haemoglobin = within(13.2 - 0.006 * marker + 0.5 * sex + 1.2 * rng.standard_normal(rows), HAEMOGLOBIN)
    emergency = coin(rng, 0.2 + 0.3 * old, rows)
    days = (
        2.2
        + 4.5 * np.exp(-(((age - 70) / 18) ** 2))
        + 1.1 * illnesses
        + 5.0 * (1 - np.exp(-marker / 60))
        + 0.35 * np.maximum(12 - haemoglobin, 0) ** 1.5
        + emergency * (1.0 + 0.5 * illnesses)
        + 1.3 * rng.standard_normal(rows)
    )
    return {
        "age": text(age),
        "sex": named(SEXES, sex),
        "illnesses": text(illnesses),
        "marker": text(marker, 1),
        "haemoglobin": text(haemoglobin, 1),
        "admission": named(ADMISSIONS, emergency),
        "days": text(within(days, DAYS), 1),
    }
