"""The bundled samples: reproducible, inside their declared schema, and with the effects that they are meant to show."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder

import sample_data
from sample_data.make import CODES, write

FOLDER = Path(sample_data.__file__).parent
PROJECT_OF = {
    "readmission": "readmission",
    "readmission_other_hospital": "readmission",
    "hiring": "hiring",
    "services": "services",
    "visits": "visits",
    "stays": "stays",
}


@cache
def table(name: str) -> pd.DataFrame:
    """Return a sample as text cells; an empty cell is the empty text."""
    return pd.read_csv(FOLDER / f"{name}.csv", dtype=str, keep_default_na=False, encoding="utf-8")


@cache
def project(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{PROJECT_OF[name]}.json").read_text(encoding="utf-8"))


@cache
def binned(name: str) -> pd.DataFrame:
    """Return the table with numbers replaced by the bin they fall in; an empty cell stays a separate value."""
    cells = table(name).copy()
    for column in project(name)["schema"]:
        if column["kind"] == "numeric":
            numbers = pd.to_numeric(cells[column["name"]], errors="coerce")
            cells[column["name"]] = np.digitize(numbers, column["edges"][1:-1]).astype(str)
            cells.loc[numbers.isna(), column["name"]] = ""
    return cells


def fit(frame: pd.DataFrame, columns: list[str], target: str) -> Any:
    """Return a logistic regression on one-hot columns, as a function from a frame to the chance of yes."""
    encoder = OneHotEncoder(handle_unknown="ignore").fit(frame[columns])
    model = LogisticRegression(max_iter=1_000).fit(encoder.transform(frame[columns]), frame[target] == "yes")
    return lambda other: model.predict_proba(encoder.transform(other[columns]))[:, 1]


def auc(chance: Any, frame: pd.DataFrame, target: str) -> float:
    return float(roc_auc_score(frame[target] == "yes", chance(frame)))


def cmi(frame: pd.DataFrame, left: str, right: str, given: list[str]) -> float:
    """Return plug-in conditional mutual information, in nats."""

    def entropy(columns: list[str]) -> float:
        share = frame.groupby(columns).size().to_numpy() / len(frame)
        return float(-(share * np.log(share)).sum())

    apart = entropy([left, *given]) + entropy([right, *given])
    return apart - entropy([left, right, *given]) - entropy(given)


def cmi_by_chance(frame: pd.DataFrame, left: str, right: str, given: list[str]) -> float:
    """Return the plug-in estimate without any dependence: ``right`` is shuffled within ``given``."""
    rng = np.random.default_rng(0)
    shuffled = frame.assign(**{right: frame.groupby(given)[right].transform(rng.permutation)})
    return cmi(shuffled, left, right, given)


def test_made_again_the_files_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    written = write(tmp_path)
    kept = {path.name for path in FOLDER.iterdir() if path.suffix in {".csv", ".json"}}
    assert {path.name for path in written} == kept - {"stories.json"}  # figures of releases: sample_data.stories
    for path in written:
        assert path.read_bytes() == (FOLDER / path.name).read_bytes(), path.name
        assert path.stat().st_size < 1_500_000


@pytest.mark.parametrize("name", PROJECT_OF)
def test_every_cell_is_one_the_schema_declares(name: str) -> None:
    schema, cells = project(name)["schema"], table(name)
    person = project(name)["plan"].get("person")
    cells = cells.drop(columns=[person] if person else [])
    assert list(cells.columns) == [column["name"] for column in schema]
    for column in schema:
        values = cells[column["name"]]
        assert values.eq("").any() == column.get("missing", False), column["name"]
        values = values[values != ""]
        if column["kind"] == "numeric":
            assert set(column) - {"missing"} == {"name", "kind", "edges", "integer"}
            assert column["edges"] == sorted(set(column["edges"]))
            assert pd.to_numeric(values).between(column["edges"][0], column["edges"][-1]).all()
            assert values.str.fullmatch(r"\d+").all() == column["integer"], column["name"]
        else:
            assert set(column) - {"missing"} == {"name", "kind", "categories"}
            assert len(set(column["categories"])) == len(column["categories"])
            assert set(values) <= set(column["categories"]), column["name"]


@pytest.mark.parametrize("name", ["readmission", "hiring", "services", "visits", "stays"])
def test_project_is_complete_and_agrees_with_itself(name: str) -> None:
    content = project(name)
    asked = ["questions", "counts"] if name == "services" else []
    assert list(content) == ["format", "name", "schema", "one_row_per_person", "dag", "roles", "plan", *asked]
    assert (content["format"], content["name"]) == ("espalier-project/1", name)
    columns = {column["name"] for column in content["schema"]}
    graph = nx.DiGraph(map(tuple, content["dag"]["edges"]))
    assert nx.is_directed_acyclic_graph(graph)
    assert set(graph) <= columns
    assert list(content["roles"]) == ["outcome", "protected", "admissible", "inadmissible"]
    roles = [column for role in content["roles"].values() for column in role]
    assert len(set(roles)) == len(roles)
    assert set(roles) <= columns
    plan = content["plan"]
    assert list(plan) == [
        "method",
        "regime",
        "fair",
        "target",
        "epsilon",
        "delta",
        "neighbors",
        "rows_per_person",
        "allocation",
        "accounting",
        "features",
        "rows",
        *(["person", "private_evaluation"] if name == "visits" else []),
        *(["question_share"] if asked else []),
    ]
    assert plan["target"] in content["roles"]["outcome"]
    assert (plan["epsilon"], plan["delta"], plan["neighbors"]) == (1.0, None, "replace-one")


def test_services_counts_twelve_burdens_that_pairs_of_columns_do_not_keep() -> None:
    """Unrelated columns would give 276 people with five burdens or more and 418 without any; there are 350 and 523."""
    from espalier.core.project.file import Project
    from espalier.core.tables.reading import read_table
    from espalier.core.tables.table import Table

    found = Project.load(FOLDER / "services.json")
    (_, (count,)) = found.question_list.resolve(found.schema)
    assert len(count.members) == 12
    codes = Table.encode(read_table(FOLDER / "services.csv"), found.schema).codes
    told = np.bincount(count.values(codes), minlength=count.size)
    alone = np.ones(1)
    for column, meant in count.members.items():
        share = np.isin(codes[column], meant).mean()
        alone = np.convolve(alone, [1 - share, share])
    assert told[5:].sum() > 1.2 * 6000 * alone[5:].sum(), "burdens occur together"
    assert told[5:].sum() == 350


def test_readmission_parents_carry_over_to_the_other_hospital_and_codes_do_not() -> None:
    here, there = binned("readmission"), binned("readmission_other_hospital")
    edges = project("readmission")["dag"]["edges"]
    parents = [cause for cause, effect in edges if effect == "readmitted"]
    everything = [column for column in here if column != "readmitted"]
    assert 0.25 < (here["readmitted"] == "yes").mean() < 0.30
    assert 0.25 < (there["readmitted"] == "yes").mean() < 0.30

    from_parents = fit(here, parents, "readmitted")
    at_home = auc(from_parents, here, "readmitted")
    assert 0.72 < at_home < 0.76
    assert auc(from_parents, there, "readmitted") == pytest.approx(at_home, abs=0.03)
    for parent in parents:
        others = [column for column in parents if column != parent]
        assert auc(fit(here, others, "readmitted"), here, "readmitted") < at_home - 0.01

    from_everything = fit(here, everything, "readmitted")
    assert auc(from_everything, here, "readmitted") > 0.95
    assert auc(from_everything, there, "readmitted") < 0.62


def test_readmission_codes_agree_with_the_outcome_here_only() -> None:
    for code, (_, back, _) in CODES.items():
        agrees = [
            (frame[code].isin(back) == (frame["readmitted"] == "yes")).mean()
            for frame in (table("readmission"), table("readmission_other_hospital"))
        ]
        assert 0.85 < agrees[0] < 0.90
        assert 0.47 < agrees[1] < 0.53
        assert ["readmitted", code] in project("readmission")["dag"]["edges"]


def test_readmission_separations_of_the_graph_hold_in_the_rows() -> None:
    frame = binned("readmission")
    parents = project("readmission")["roles"]["admissible"]
    for other in ("sex", "diabetes", "blood_group"):
        found = cmi(frame, "readmitted", other, parents)
        assert found < cmi_by_chance(frame, "readmitted", other, parents) + 0.004
    left_out = cmi(frame, "readmitted", "lives_alone", ["heart_failure", "kidney_disease"])
    assert left_out > 0.01


def test_hiring_depends_on_gender_beyond_what_is_admissible() -> None:
    frame, roles = binned("hiring"), project("hiring")["roles"]
    found = cmi(frame, "hired", "gender", roles["admissible"])
    assert found > 0.05
    assert found > cmi_by_chance(frame, "hired", "gender", roles["admissible"]) + 0.04


def test_hiring_proxies_give_gender_away_and_admissible_columns_matter() -> None:
    frame, roles = binned("hiring"), project("hiring")["roles"]
    frame = frame.assign(is_man=np.where(frame["gender"] == "man", "yes", "no"))
    assert auc(fit(frame, ["postcode"], "is_man"), frame, "is_man") > 0.8
    assert auc(fit(frame, ["club"], "is_man"), frame, "is_man") > 0.65
    assert auc(fit(frame, roles["inadmissible"], "is_man"), frame, "is_man") > 0.9

    fair = fit(frame, roles["admissible"], "hired")
    unfair = fit(frame, [*roles["admissible"], "gender", *roles["inadmissible"]], "hired")
    assert 0.70 < auc(fair, frame, "hired") < auc(unfair, frame, "hired") - 0.05

    def gap(chance: np.ndarray) -> float:
        return float(chance[frame["gender"] == "man"].mean() - chance[frame["gender"] == "woman"].mean())

    assert gap(frame["hired"].eq("yes").to_numpy()) > 0.3
    assert 0.05 < gap(fair(frame)) < 0.15


def test_visits_have_people_with_many_rows_whom_only_a_person_column_protects() -> None:
    cells, plan = table("visits"), project("visits")["plan"]
    rows = cells["patient"].value_counts()
    assert plan["person"] == "patient"
    assert (len(cells), len(rows)) == (8722, 3000), "as the card of the sample says"
    assert rows.max() == 40
    assert (rows == 1).mean() > 0.3
    kept = rows.clip(upper=plan["rows_per_person"]).sum()
    assert kept < plan["rows"] < 1.05 * kept, "the declared total is close to the number of remaining rows"
    of = cells["patient"].map(rows)
    missed = cells["missed"] == "yes"
    assert missed[of > 10].mean() > missed[of == 1].mean() + 0.05, "those who come often miss more"


def test_services_has_the_troubles_it_promises() -> None:
    cells, schema = table("services"), {column["name"]: column for column in project("services")["schema"]}
    assert len(cells.columns) == 40
    assert {"straße", "household size", "収入, yearly", "rent, €/m²"} <= set(cells.columns)

    occupations = cells["last occupation"].value_counts()
    assert len(schema["last occupation"]["categories"]) == 60
    assert occupations.iloc[0] > 2_000
    assert (occupations < 20).sum() > 20
    assert "cook, canteen" in occupations
    assert cells["fraud flag"].eq("yes").mean() < 0.005

    missing = (cells == "").mean()
    assert (missing > 0).sum() >= 8
    assert missing["école"] > 0.6
    assert not cells["nationality"].eq("").any()
    assert cells["nationality"].eq("NA").sum() > 10

    assert schema["office"]["categories"] == ["main"]
    assert set(cells["office"]) == {"main"}
    same = cells["district"].map(
        dict(zip(schema["district"]["categories"], schema["district code"]["categories"], strict=True))
    )
    assert 0.97 < (same == cells["district code"]).mean() < 1

    for amount in ("debt", "savings"):
        numbers = pd.to_numeric(cells.loc[cells[amount] != "", amount])
        assert (numbers == 0).mean() > 0.4
        assert schema[amount]["edges"][:2] == [0, 1]
        assert numbers.mean() > 2 * numbers.median()
    income: Any = pd.to_numeric(cells.loc[cells["収入, yearly"] != "", "収入, yearly"])
    assert (income == 0).mean() > 0.05
    assert income[income > 0].skew() > 2


def test_services_target_can_be_learnt() -> None:
    frame = binned("services")
    target = "benefit granted"
    granted = (frame[target] == "yes").mean()
    assert 0.25 < granted < 0.75
    causes = [cause for cause, effect in project("services")["dag"]["edges"] if effect == target]
    assert auc(fit(frame, causes, target), frame, target) > 0.8


def test_the_clinic_tells_its_story() -> None:
    """A change of insulin and the region bring patients back after the next visit, beyond severity and age."""
    patients, visits = table("clinic_patients"), table("clinic_visits")
    assert set(visits["patient"]) <= set(patients["patient"])
    assert patients["patient"].is_unique
    assert visits["visit_number"].is_unique
    assert visits["admitted"].between("2023-01-01", "2024-12-31").all()
    visits = visits.sort_values(["patient", "admitted"]).merge(patients, on="patient")
    before = visits.groupby("patient").shift()
    back, changed = visits["back"].eq("yes"), before["insulin"].eq("changed")
    known = before["insulin"].notna()
    for severity in ("mild", "moderate", "severe"):
        some = known & visits["severity"].eq(severity)
        assert back[some & changed].mean() - back[some & ~changed].mean() > 0.1
        assert back[some & visits["region"].eq("B")].mean() - back[some & visits["region"].eq("A")].mean() > 0.05
