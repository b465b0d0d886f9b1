"""Patients and their visits: two linked tables with a known dependence of each visit on the previous one.

Every person is invented and the seed is fixed. A visit depends on the patient, on the previous visit and on its own
other columns:

- ``severity`` tends to stay the same, and rises with age;
- ``insulin`` is changed more often at severe visits;
- ``back`` (came back within 30 days of this visit) has log-odds −2.2, plus 0.8 and 1.6 for moderate and severe, plus
  **1.0 if insulin was changed at the previous visit**, plus 0.5 if the patient came back after the previous visit, plus
  0.7 for patients from region B, which nothing admissible explains.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np

from .parts import SEXES, YES_NO, Table, categorical, coin, named, ordinal, pick, text

AGES = ("18-39", "40-59", "60-79", "80+")
REGIONS = ("A", "B")
SEVERITY = ("mild", "moderate", "severe")
INSULIN = ("steady", "changed")
CHANGED_BEFORE = 1.0
"""Effect of a change of insulin at the previous visit on the log-odds of coming back."""
AFRESH = np.array([[5, 3, 1], [4, 3, 2], [3, 3, 3], [2, 3, 4]])
"""Weights of a newly drawn severity, by age."""
KEEP = 4
GAP = (0, 1, 8, 31, 91, 181, 366)


def _column(column: dict[str, Any], table: str) -> dict[str, Any]:
    return {**column, "name": f"{table}.{column['name']}"}


CLINIC: dict[str, Any] = {
    "format": "espalier-project/2",
    "name": "clinic",
    "tables": {
        "patients": {"key": "patient"},
        "visits": {
            "of": "patients",
            "by": "patient",
            "order": "admitted",
            "keep": KEEP,
            "key": "visit_number",
            "dates": {"admitted": {"gap": list(GAP)}},
        },
    },
    "schema": [
        *(
            _column(c, "patients")
            for c in (categorical("sex", SEXES), ordinal("age", AGES), categorical("region", REGIONS))
        ),
        {
            "name": "visits.admitted",
            "kind": "date",
            "dates": {"from": "2023-01-01", "to": "2024-12-31", "by": "quarter"},
        },
        *(
            _column(c, "visits")
            for c in (ordinal("severity", SEVERITY), categorical("insulin", INSULIN), categorical("back", YES_NO))
        ),
    ],
    "one_row_per_person": False,
    "dag": {
        "edges": [
            ["patients.age", "visits.severity"],
            ["visits.severity", "visits.insulin"],
            ["visits.severity", "visits.back"],
            ["visits.severity@before", "visits.severity"],
            ["visits.insulin@before", "visits.back"],
            ["visits.back@before", "visits.back"],
        ],
        "notes": {},
        "positions": {},
    },
    "roles": {
        "outcome": ["visits.back"],
        "protected": ["patients.region"],
        "admissible": ["patients.age", "visits.severity"],
        "inadmissible": [],
    },
    "plan": {
        "method": "linked",
        "epsilon": 1.0,
        "delta": 1e-6,
        "neighbors": "add-remove",
        "target": "visits.back",
        "fair": True,
        "count_returns_after": ["visits.severity"],
    },
}


def clinic(rng: np.random.Generator, people: int) -> dict[str, Table]:
    """Return both tables."""
    age, sex = pick(rng, [0.2, 0.3, 0.35, 0.15], people), pick(rng, [0.5, 0.5], people)
    region = coin(rng, -0.6, people)
    many = np.minimum(rng.geometric(0.42 - 0.04 * age), 9)
    day = rng.integers(0, 540, people)
    severity, insulin, back = (np.zeros(people, dtype=np.int64) for _ in range(3))
    rows: dict[str, list[np.ndarray]] = {n: [] for n in ("patient", "admitted", "severity", "insulin", "back")}
    for t in range(int(many.max())):
        stays = (rng.random(people) < 0.6) & (t > 0)
        severity = np.where(
            stays, severity, pick(rng, np.array([[5, 3, 1], [4, 3, 2], [3, 3, 3], [2, 3, 4]])[age], people)
        )
        logit = -2.2 + 0.8 * severity + 0.7 * region + (t > 0) * (CHANGED_BEFORE * insulin + 0.5 * back)
        back = coin(rng, logit, people)
        insulin = coin(rng, -1.2 + 0.7 * severity, people)
        who = np.flatnonzero(many > t)
        rows["patient"].append(who)
        rows["admitted"].append(day[who])
        for name, codes in (("severity", severity), ("insulin", insulin), ("back", back)):
            rows[name].append(codes[who])
        day = day + np.where(back == 1, rng.integers(1, 31, people), rng.integers(31, 120, people))
    flat = {name: np.concatenate(parts) for name, parts in rows.items()}
    order = np.lexsort([flat["admitted"], flat["patient"]])
    flat = {name: codes[order] for name, codes in flat.items()}
    inside = flat["admitted"] < 730  # the clinic's records end with the second year
    flat = {name: codes[inside] for name, codes in flat.items()}
    names = np.array([f"C{i:05d}" for i in rng.permutation(people)], dtype=object)
    start = date(2023, 1, 1)
    patients = {
        "patient": names,
        "sex": named(SEXES, sex),
        "age": named(AGES, age),
        "region": named(REGIONS, region),
    }
    visits = {
        "patient": names[flat["patient"]],
        "visit_number": text(np.arange(1, len(flat["patient"]) + 1)),
        "admitted": np.array([(start + timedelta(int(d))).isoformat() for d in flat["admitted"]], dtype=object),
        "severity": named(SEVERITY, flat["severity"]),
        "insulin": named(INSULIN, flat["insulin"]),
        "back": named(YES_NO, flat["back"]),
    }
    return {"patients": patients, "visits": visits}
