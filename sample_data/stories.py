"""Compute the picture that concludes each sample: ``python -m sample_data.stories``.

Each sample is released by its project file and judged on its real rows, which are invented too. ``stories.json`` holds
the figures, the digests of their source files, and how much noise changes them.
"""

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
FILE = FOLDER / "stories.json"
OTHER = "readmission_other_hospital.csv"
BARS = {
    "visits": ("reminder", "missed", "yes", "Share of visits missed, by reminder"),
    "services": ("work", "benefit granted", "", "Share granted a benefit, by kind of work"),
    "stays": ("illnesses", "days", None, "Mean days of a stay, by number of illnesses"),
}
"""Groups, outcome, its value (empty: the last one; None: a mean), and the title of the picture of a sample."""
SAID = {
    "visits": "A letter or a text helps, and the synthetic rows say so, with each person's visits protected together.",
    "services": "Among 40 columns, the strongest link to the outcome comes through.",
    "stays": "The curve is kept: each further illness adds days.",
    "clinic": "Patients whose insulin was changed come back more often after the next visit. The released visits show "
    "this too, because each visit follows from the previous one.",
}
FEWEST = 100
"""Minimum number of real rows of a group that is shown: smaller groups are mostly noise."""
RELEASES = 6
"""Releases of each sample. The one closest to their mean is shown; all of them show how much noise changes its
figures.
"""


def digests(name: str) -> dict[str, str]:
    """Return the digest of each file that the figures of a sample depend on."""
    files = [*sorted(FOLDER.glob(f"{name}*.csv")), FOLDER / f"{name}.json"]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def _released(name: str, **changes: Any) -> tuple[Any, Any, Any]:
    from espalier.core.project.file import Project
    from espalier.core.release.spend import release
    from espalier.core.tables.reading import read_table
    from espalier.core.tables.table import Table

    project = Project.load(FOLDER / f"{name}.json")
    project = project.with_plan(**changes) if changes else project
    table = Table.encode(read_table(FOLDER / f"{name}.csv"), project.schema, project.plan.person)
    return project, table, release(project, table)


def _judged(project: Any, table: Any, made: Any, holdout: Any = None) -> dict[str, Any]:
    from espalier.core.evaluation import evaluate

    return evaluate(project, table, made.synthetic, model=made.model, holdout=holdout).to_json()


def readmission() -> dict[str, Any]:
    """Return AUC at home and in the other hospital, of a model that uses all associations and of a model that uses only
    causes.
    """
    from espalier.core.tables.reading import read_table
    from espalier.core.tables.table import Table

    project, table, made = _released("readmission")
    away = Table.encode(read_table(FOLDER / OTHER, OTHER), project.schema)
    home, there = (_judged(project, table, made, tested)["tstr"] for tested in (None, away))
    return {
        "kind": "slope",
        "title": "How well readmission is predicted (AUC)",
        "places": ["at home", "in another hospital"],
        "lines": [
            {"name": "learned from all associations", "values": [home["auc_real"], there["auc_real"]]},
            {"name": "learned from drawn causes", "values": [home["auc_synthetic"], there["auc_synthetic"]]},
        ],
        "said": "What looked best at home fails elsewhere; the causes hold.",
    }


def hiring() -> dict[str, Any]:
    """Return the gap between men and women, and accuracy, of models trained on three tables."""
    from espalier.core.compare.fence_cost import without_fence
    from espalier.core.release.spend import release

    project, table, made = _released("hiring")
    fenced = _judged(project, table, made)
    free = without_fence(project)
    if free is None:
        raise SystemExit("the sample hiring has no fence")
    unfenced = _judged(project, table, release(free, table))
    key = "demographic_parity_difference"

    def point(name: str, facts: dict[str, Any], real: bool = False) -> dict[str, Any]:
        which = "real" if real else "synthetic"
        gap = facts["fairness"][f"{key}_real" if real else key]
        return {"name": name, "x": gap, "y": facts["tstr"][f"accuracy_{which}"]}

    return {
        "kind": "points",
        "title": "Accuracy against the gap between men and women",
        "axes": ["gap in how often the model says yes", "accuracy"],
        "points": [
            point("real rows", fenced, real=True),
            point("synthetic, no fence", unfenced),
            point("synthetic, fenced", fenced),
        ],
        "said": "The fence closes most of the gap and costs some accuracy.",
    }


def bars(name: str) -> dict[str, Any]:
    """Return a share or a mean by group, in the real and in the synthetic rows."""
    by, outcome, value, title = BARS[name]
    project, table, made = _released(name)
    schema = project.schema
    groups, column = schema[by], schema[outcome]
    shown = [g for g in range(groups.values) if (table.codes[by] == g).sum() >= FEWEST]
    series: dict[str, list[float]] = {}
    for label, rows in (("real", table), ("synthetic", made.synthetic)):
        codes = rows.codes[outcome]
        if value is None:
            edges = np.array(column.edges)
            score = np.append((edges[:-1] + edges[1:]) / 2, np.nan)[codes]
        else:
            score = (codes == (column.labels.index(value) if value else column.values - 1)).astype(float)
        score[codes >= column.values] = np.nan
        series[label] = [float(np.nanmean(score[rows.codes[by] == g])) for g in shown]
    return {
        "kind": "lines",
        "title": title,
        "groups": [f"{groups.edges[g]:g}" if groups.kind == "numeric" else groups.labels[g] for g in shown],
        "series": series,
        "said": SAID[name],
    }


def clinic() -> dict[str, Any]:
    """Return the share of patients who come back after a visit, by insulin at the previous visit, in real and synthetic
    visits.
    """
    from espalier.core.project.file import Project
    from espalier.core.project.linked import BEFORE
    from espalier.core.release.spend import release
    from espalier.core.tables.frames import panel
    from espalier.core.tables.reading import read_table
    from espalier.core.tables.released import read_linked

    project = Project.load(FOLDER / "clinic.json")
    link = project.linked
    if link is None:
        raise SystemExit("the sample clinic has no linked tables")
    real = panel(link, project.schema, [read_table(FOLDER / f"clinic_{t}.csv") for t in (link.people, link.visits)])
    made = read_linked(link, project.schema, release(project, real).files)
    before = "visits.insulin"
    series = {}
    for label, rows in (("real", real), ("synthetic", made)):
        insulin, back = rows.steps.cells(before + BEFORE), rows.steps.cells("visits.back")
        series[label] = [float((back[insulin == g] == 1).mean()) for g in range(2)]
    return {
        "kind": "lines",
        "title": "Share who come back, by insulin at the previous visit",
        "groups": list(project.schema[before].labels[:2]),
        "series": series,
        "said": SAID["clinic"],
    }


def columns(name: str) -> list[str]:
    """Return the columns by which a report recognises the sample."""
    from espalier.core.project.file import Project

    return [c["name"] for c in Project.load(FOLDER / f"{name}.json").to_json()["schema"]]


MADE: dict[str, Callable[[], dict[str, Any]]] = {
    "readmission": readmission,
    "hiring": hiring,
    "clinic": clinic,
    **{name: partial(bars, name) for name in BARS},
}
"""The function that computes the figures of each sample."""


def figures(told: dict[str, Any]) -> list[float]:
    """Return every number of a picture, in order."""
    if told["kind"] == "slope":
        return [v for one in told["lines"] for v in one["values"]]
    if told["kind"] == "points":
        return [v for p in told["points"] for v in (p["x"], p["y"])]
    return [v for values in told["series"].values() for v in values]


def story(name: str) -> dict[str, Any]:
    """Return the figures of one sample's picture, with its columns, the digests of its files and the noise.

    ``spread`` is the standard deviation, over `RELEASES` releases, of the figure that noise changes most.
    """
    made = [MADE[name]() for _ in range(RELEASES)]
    every = np.array([figures(one) for one in made])
    typical = made[int(np.abs(every - every.mean(axis=0)).sum(axis=1).argmin())]
    spread = every.std(axis=0, ddof=1).max()
    return {**typical, "spread": round(float(spread), 4), "columns": columns(name), "digests": digests(name)}


if __name__ == "__main__":
    told = {}
    for sample in MADE:
        told[sample] = story(sample)
        print(sample, told[sample]["title"], "±", told[sample]["spread"], flush=True)
    FILE.write_text(json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
