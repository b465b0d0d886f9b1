"""Bundled samples: their folder and the text of their cards."""

from __future__ import annotations

from pathlib import Path

from espalier.core.project.file import Project
from espalier.core.tables.linked_text import LinkedText
from espalier.core.tables.reading import read_table
from espalier.core.tables.text_table import TextTable

FOLDER = Path(__file__).resolve().parents[2] / "sample_data"
SAMPLES = {
    "readmission": (
        "Readmission",
        "local_hospital",
        8000,
        "8,000 patients, 14 columns. Four hospital codes look like causes of readmission but are not. In another "
        "hospital they do not predict it. *Shows why the causal regime matters.*",
    ),
    "hiring": (
        "Hiring",
        "work",
        6000,
        "6,000 applicants, 10 columns. Gender influences the decision through qualification, but also through "
        "postcode and club. *Shows what the fence does.*",
    ),
    "visits": (
        "Visits",
        "event_repeat",
        8722,
        "8,722 appointments of 3,000 patients, 8 columns. Some patients came once, others forty times. *Shows how "
        "all rows of a person are protected together, and which figures may be shared.*",
    ),
    "services": (
        "Social services",
        "diversity_3",
        6000,
        "6,000 people, 40 columns: rare categories, empty cells, skewed amounts. "
        "*Shows what makes a table difficult and how coarsening helps.*",
    ),
    "stays": (
        "Stays",
        "bed",
        6000,
        "6,000 patients, 7 columns. The length of a stay is a curved function of other numbers. *Shows methods that "
        "keep numbers as numbers, and one method that is clearly not private.*",
    ),
    "clinic": (
        "Clinic",
        "groups",
        4000,
        "4,000 patients and their visits, in two linked tables. Patients whose insulin was changed come back "
        "sooner. *Shows how linked visits are released and how one visit leads to the next.*",
    ),
}
OTHER = "readmission_other_hospital.csv"


def read_sample(key: str, project: Project) -> TextTable:
    """Return the table of a sample as read from its file; a sample of linked tables has one file per table."""
    if (link := project.linked) is None:
        return read_table(FOLDER / f"{key}.csv", f"{key}.csv")
    tables = [read_table(FOLDER / f"{key}_{name}.csv", f"{name}.csv") for name in (link.people, link.visits)]
    return LinkedText.of(link, tables)
