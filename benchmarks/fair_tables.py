"""The two available public tables of PrivCI's experiments, with the paper's columns and roles, and public bins.

Categories come from the data sets' documentation, and bin edges are round numbers. Nothing is derived from the rows.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.adult import DATA as ADULT
from benchmarks.adult import adult_project
from espalier.core.graph.roles import Roles
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema

COMPAS = ADULT.with_name("compas.csv.gz")


def adult() -> Project:
    """Return Adult, the paper's seven columns (48,842 rows)."""
    whole = adult_project("privci")
    kept = ("age", "education", "marital-status", "occupation", "sex", "hours-per-week", "income")
    schema = Schema(tuple(whole.schema[name] for name in kept))
    return replace(whole, schema=schema, dag=replace(whole.dag, edges=()))


def compas() -> Project:
    """Return COMPAS, the paper's five columns (7,214 rows). The paper calls is_recid two-year recidivism."""
    races = ("African-American", "Asian", "Caucasian", "Hispanic", "Native American", "Other")
    schema = Schema(
        (
            Column("age", "numeric", edges=(18, 21, 25, 30, 35, 40, 45, 50, 60, 97), integer=True),
            Column("race", "categorical", races),
            Column("c_charge_degree", "categorical", ("F", "M")),
            Column("priors_count", "numeric", edges=(0, 1, 2, 3, 4, 6, 9, 14, 39), integer=True),
            Column("is_recid", "categorical", ("0", "1")),
        )
    )
    roles = Roles(("is_recid",), ("race",), ("age",), ("c_charge_degree", "priors_count"))
    return Project("compas", schema, Plan("privci", 1.0, target="is_recid"), roles=roles)
