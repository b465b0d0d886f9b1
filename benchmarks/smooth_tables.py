"""Tables with a smooth target, on which the copula method's settings were chosen.

Results are also reported on other tables.

Every number is invented and the seeds are fixed. The large tables have 20,000 rows, and the small tables 1,000. They
include categories, a threshold, a skewed target and a skewed input.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from espalier.core.project.schema import Column, Schema
from espalier.core.project.schema_json import schema_from_json
from sample_data.stays import STAYS
from sample_data.stays import stays as lengths_of_stay

Array = NDArray[np.float64]
Held = tuple[Schema, str, dict[str, Array], dict[str, NDArray[np.int64]]]
"""A schema, its target, numbers and codes."""


def _number(name: str, low: float, high: float, *, whole: bool = False) -> Column:
    return Column(name, "numeric", edges=(low, high), integer=whole)


def _numbers(bounds: dict[str, tuple[float, float]], held: dict[str, Array], target: str) -> Held:
    kept = {n: held[n].clip(*ends) for n, ends in bounds.items()}
    return Schema(tuple(_number(n, *ends) for n, ends in bounds.items())), target, kept, {}


def waves(rows: int) -> Held:
    """Return a wave, a product and a logarithm of three dependent numbers."""
    rng = np.random.default_rng(11)
    a = rng.normal(size=rows)
    b = 0.6 * a + 0.8 * rng.normal(size=rows)
    c = np.exp(0.5 * (0.5 * a + 0.87 * rng.normal(size=rows)))
    y = np.sin(1.5 * a) + 0.5 * a * b + np.log1p(c) * 1.5 + 0.35 * rng.normal(size=rows)
    return _numbers({"a": (-4, 4), "b": (-4, 4), "c": (0, 8), "y": (-6, 9)}, {"a": a, "b": b, "c": c, "y": y}, "y")


def friedman(rows: int) -> Held:
    """Return Friedman's first table: five uniform inputs."""
    rng = np.random.default_rng(12)
    u = rng.random((rows, 5))
    y = 10 * np.sin(np.pi * u[:, 0] * u[:, 1]) + 20 * (u[:, 2] - 0.5) ** 2 + 10 * u[:, 3] + 5 * u[:, 4]
    held = {f"x{i}": u[:, i] for i in range(5)} | {"y": y + 1.5 * rng.normal(size=rows)}
    return _numbers({**{f"x{i}": (0, 1) for i in range(5)}, "y": (-5, 35)}, held, "y")


def skewed(rows: int) -> Held:
    """Return the exponential of a smooth function, with a long upper tail."""
    rng = np.random.default_rng(21)
    a, b, c = rng.normal(size=rows), rng.random(rows), rng.normal(size=rows)
    c, e = 0.5 * a + 0.87 * c, rng.gamma(2, 1, rows)
    y = np.exp(0.4 * a + 0.5 * np.sin(3 * b) + 0.2 * e - 0.25 * c * c + 0.2 * rng.normal(size=rows))
    held = {"a": a, "b": b, "c": c, "e": e, "y": y}
    return _numbers({"a": (-4, 4), "b": (0, 1), "c": (-4, 4), "e": (0, 12), "y": (0, 15)}, held, "y")


def tariff(rows: int) -> Held:
    """Return prices with a jump, three categories and skewed residuals."""
    rng = np.random.default_rng(13)
    held = {
        "hours": rng.gamma(3, 12, rows).clip(0, 150),
        "weight": (70 + 14 * rng.normal(size=rows)).clip(30, 130),
        "distance": rng.gamma(2, 20, rows).clip(0, 200),
    }
    express, night = (rng.random(rows) < 0.15).astype(np.int64), (rng.random(rows) < 0.4).astype(np.int64)
    zone = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    more = express * (600 + 12 * np.maximum(held["hours"] - 30, 0) + 300 * (held["weight"] > 75))
    y = 200 + 6 * held["hours"] + 2 * held["distance"] + more + 80 * (zone == 2) + 60 * rng.gamma(1.5, 1, rows)
    columns = [_number("hours", 0, 150), _number("weight", 30, 130), _number("distance", 0, 200)]
    columns += [Column("express", "categorical", ("no", "yes")), Column("zone", "categorical", ("a", "b", "c"))]
    columns += [Column("night", "categorical", ("no", "yes")), _number("cost", 0, 5000)]
    codes = {"express": express, "zone": zone.astype(np.int64), "night": night}
    return Schema(tuple(columns)), "cost", held | {"cost": y.clip(0, 5000)}, codes


def wage(rows: int) -> Held:
    """Return hourly wages, curved in age, with three categories."""
    rng = np.random.default_rng(14)
    school, age = rng.integers(8, 21, rows).astype(float), rng.integers(18, 66, rows).astype(float)
    tenure = np.minimum(rng.gamma(1.5, 5, rows), age - 17).clip(0, 48)
    sex, region = rng.integers(0, 2, rows), rng.integers(0, 4, rows)
    union = (rng.random(rows) < 0.3).astype(np.int64)
    log = 1.2 + 0.08 * school + 0.04 * (age - 18) - 0.0006 * (age - 18) ** 2 + 0.01 * tenure + 0.15 * union
    y = np.exp(log - 0.1 * sex + 0.25 * rng.normal(size=rows)).clip(1, 120)
    columns = [_number("school", 8, 20, whole=True), _number("age", 18, 65, whole=True), _number("tenure", 0, 48)]
    columns += [Column("sex", "categorical", ("f", "m")), Column("union", "categorical", ("no", "yes"))]
    columns += [Column("region", "categorical", tuple("abcd")), _number("wage", 1, 120)]
    held = {"school": school, "age": age, "tenure": tenure, "wage": y}
    return Schema(tuple(columns)), "wage", held, {"sex": sex, "union": union, "region": region}


def stays(rows: int) -> Held:
    """Return the sample of lengths of stay, with another seed."""
    table, schema = lengths_of_stay(np.random.default_rng(99), rows), schema_from_json(STAYS["schema"])
    numeric = [c.name for c in schema.columns if c.kind == "numeric"]
    codes = {
        c.name: np.array([c.categories.index(t) for t in table[c.name]]) for c in schema.columns if c.kind != "numeric"
    }
    return schema, "days", {n: np.array([float(t) for t in table[n]]) for n in numeric}, codes


LARGE = {"waves": waves, "friedman": friedman, "skewed": skewed, "stays": stays, "tariff": tariff, "wage": wage}
SMALL = {"stays": stays, "tariff": tariff, "wage": wage}
