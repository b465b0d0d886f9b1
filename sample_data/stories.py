"""Work out the picture that each sample ends in: ``python -m sample_data.stories``.

Each sample is released once as its project says, and judged on its real rows, which are invented too. The figures go to
``stories.json`` with the digests of the files that they came from.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
FILE = FOLDER / "stories.json"
OTHER = "readmission_other_hospital.csv"
BARS = {
    "visits": ("reminder", "missed", "yes", "Share of visits missed, by reminder"),
    "services": ("household size", "benefit granted", "", "Share granted a benefit, by household size"),
    "stays": ("illnesses", "days", None, "Mean days of a stay, by number of illnesses"),
}
"""Groups, outcome, its value (empty: the last one; None: a mean), and the title of the picture of a sample."""
SAID = {
    "visits": "A letter or a text helps, and the synthetic rows say so, with each person's visits protected together.",
    "services": "In 40 columns, the link that matters comes through.",
    "stays": "The curve is kept; for the few patients with many illnesses it is least sure.",
}


def digests(name: str) -> dict[str, str]:
    """Return the digest of each file that the figures of a sample depend on."""
    files = [f"{name}.csv", f"{name}.json", *([OTHER] if name == "readmission" else [])]
    return {file: hashlib.sha256((FOLDER / file).read_bytes()).hexdigest() for file in files}


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
    """AUC at home and in the other hospital, of what is learned from all associations and from causes alone."""
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
    """Gap between men and women against accuracy, of models trained on three tables."""
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
    """A share or a mean by group, in the real and in the synthetic rows."""
    by, outcome, value, title = BARS[name]
    project, table, made = _released(name)
    schema = project.schema
    groups, column = schema[by], schema[outcome]
    series: dict[str, list[float | None]] = {}
    for label, rows in (("real", table), ("synthetic", made.synthetic)):
        codes = rows.codes[outcome]
        known = codes < column.values
        if value is None:
            edges = np.array(column.edges)
            score = np.append((edges[:-1] + edges[1:]) / 2, np.nan)[codes]
        else:
            score = (codes == (column.labels.index(value) if value else column.values - 1)).astype(float)
        of = rows.codes[by]
        series[label] = [
            float(score[known & (of == g)].mean()) if (known & (of == g)).sum() > 20 else None
            for g in range(groups.values)
        ]
    return {
        "kind": "lines",
        "title": title,
        "groups": list(groups.labels[: groups.values]),
        "series": series,
        "said": SAID[name],
    }


def story(name: str) -> dict[str, Any]:
    """Return the figures of one sample's picture with the digests of its files."""
    made = {"readmission": readmission, "hiring": hiring}.get(name, lambda: bars(name))()
    return {**made, "digests": digests(name)}


if __name__ == "__main__":
    told = {}
    for sample in ("readmission", "hiring", "visits", "services", "stays"):
        told[sample] = story(sample)
        print(sample, told[sample]["title"], flush=True)
    FILE.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")
