"""Plans side by side have the same figures as on Diagnostics; the Pareto front contains the plans that none beats."""

from __future__ import annotations

import pytest

from espalier.core.compare import plans
from espalier.core.compare.plans import Outcome, best, compare
from espalier.core.errors import Cancelled
from espalier.core.evaluation import evaluate
from espalier.core.project.file import Project
from espalier.core.release.spend import release
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table


@pytest.fixture(scope="module")
def hiring():
    from tests.conftest import SAMPLES

    project = Project.load(SAMPLES / "hiring.json")
    return project, Table.encode(read_table(SAMPLES / "hiring.csv"), project.schema)


@pytest.mark.nightly
def test_every_plan_is_released_and_judged_as_on_the_diagnostics_page(hiring, monkeypatch):
    project, table = hiring
    said: list[str] = []
    made = []

    def releasing(*given):
        made.append(release(*given))
        return made[-1]

    monkeypatch.setattr(plans, "release", releasing)
    found = compare(
        {"with the fence": project, "ε = 5": project.with_plan(epsilon=5.0)},
        table,
        report=lambda _, message: said.append(message),
    )
    assert [o.name for o in found] == ["with the fence", "ε = 5"]
    assert found[1].rho > found[0].rho
    for o in found:
        assert o.figures["auc"] == o.facts["tstr"]["auc_synthetic"]
        assert o.figures["two_way_tv"] == o.facts["fidelity"]["two_way_tv"]
        assert o.figures["cmi"] == o.facts["fairness"]["cmi_synthetic"]
        for key, (low, high) in o.intervals.items():
            assert low < o.figures[key] < high
            assert high - low < 0.06
        assert set(o.intervals) == {"accuracy", "auc"}
    assert found[0].facts == evaluate(project, table, made[0].synthetic, model=made[0].model).to_json()
    assert any(m.startswith("Judging ε = 5") for m in said)


def test_it_is_cancelled_between_plans(hiring):
    project, table = hiring

    def stop(fraction: float, _: str) -> None:
        if fraction >= 0.5:
            raise Cancelled("enough")

    with pytest.raises(Cancelled):
        compare({"a": project, "b": project}, table, report=stop)


def test_the_front_holds_what_nothing_beats():
    def one(name: str, auc: float | None, gap: float | None) -> Outcome:
        return Outcome(name, "m", 1.0, 0.1, {"auc": auc, "gap": gap}, {})

    found = [one("good", 0.8, 0.1), one("fair", 0.7, 0.01), one("beaten", 0.7, 0.2), one("unknown", None, 0.0)]
    assert best(found, "gap") == {"good", "fair"}
