"""A method known only to the registry passes through everything without the app; `tests/pages` covers the pages."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from espalier.core.analysis.loading import load_release
from espalier.core.cli.main import main
from espalier.core.compare.fence_cost import fence_cost
from espalier.core.errors import EspalierError, ProjectError
from espalier.core.evaluation import evaluate
from espalier.core.graph.roles import Roles
from espalier.core.ledger.ledger import Ledger
from espalier.core.methods import METHODS, check_options
from espalier.core.models.base import MarginalModel, Model
from espalier.core.planning.preview import preview
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.release.spend import release
from espalier.core.report.page import render
from espalier.core.tables.table import Table
from tests.support.tables import random_table, schema_of
from tests.support.toy import TOY, ConstantModel, Toy, play

SCHEMA = schema_of(y=2, a=3, s=2)
ROLES = Roles(outcome=("y",), protected=("s",), admissible=("a",))
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class KeptModel(ConstantModel):
    """A constant model that can be written."""

    def dumps(self) -> bytes | None:
        out = io.BytesIO()
        np.savez(out, tag="toy-model/1", total=self.total, **{f"value:{k}": v for k, v in self.values.items()})
        return out.getvalue()

    @staticmethod
    def loads(data: bytes) -> KeptModel:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            if "tag" not in file or str(file["tag"]) != "toy-model/1":
                raise EspalierError("this is no model of a toy")
            values = {k.removeprefix("value:"): int(file[k]) for k in file.files if k.startswith("value:")}
            return KeptModel(values, float(file["total"]))


@dataclass(frozen=True)
class KeptToy(Toy):
    """Result of a toy method whose model can be written."""

    def model(self, report: Any = None) -> ConstantModel:  # noqa: ARG002
        return KeptModel(self.values, self.total)


def play_and_keep(*args: Any, **more: Any) -> KeptToy:
    return KeptToy(**vars(play(*args, **more)))


@pytest.fixture(params=["kept", "never written"])
def toy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Register the method; the parameter decides whether its model is written."""
    kept = bool(request.param == "kept")
    monkeypatch.setitem(METHODS, "toy", replace(TOY, fit=play_and_keep, load=KeptModel.loads) if kept else TOY)
    return kept


def project(**plan: Any) -> Project:
    given = {"method": "toy", "epsilon": 2.0, "delta": 1e-6, "target": "y", **plan}
    return Project("toy", SCHEMA, Plan.from_json(given), roles=ROLES)


def table() -> Table:
    return random_table(SCHEMA, 400, 3)


@pytest.mark.usefixtures("toy")
def test_its_options_are_read_checked_and_written():
    mine = project(turns=3, mood="wild")
    check_options(mine.plan)
    assert METHODS["toy"].read(mine.plan).turns == 3
    assert mine.to_json()["plan"]["mood"] == "wild"
    assert Project.loads(mine.dumps()) == mine
    check_options(project(width=2).plan)
    for bad in ({"turns": 10}, {"mood": "cross"}, {"colour": 1}):
        with pytest.raises(ProjectError, match=next(iter(bad))):
            preview(project(**bad), 400)
    assert any("ignores width" in w for w in preview(project(width=2), 400).warnings)


def test_it_is_planned_released_saved_and_read_back(toy, tmp_path):
    seen = preview(project(), 400)
    assert [line.columns for line in seen.lines] == [("y",), ("a",), ("s",)]
    made = release(project(), table())
    assert made.spending.rho == pytest.approx(seen.spent, rel=1e-9)
    assert isinstance(made.model, Model)
    assert not isinstance(made.model, MarginalModel)
    assert made.rows == 400
    assert all(len(set(texts)) == 1 for texts in made.table.values())
    made.save(tmp_path / "o")
    assert (tmp_path / "o" / "model.npz").exists() == toy
    back = load_release(tmp_path / "o")
    assert back.model == (made.model if toy else None)
    assert {n: c.tolist() for n, c in back.table.codes.items()} == {n: c.tolist() for n, c in made.codes.items()}
    page = render(back.facts)
    assert "Toy" in page
    assert back.facts["fit"] == {"model": "constant"}


def test_a_folder_that_lost_its_model_is_damaged(toy, tmp_path):
    release(project(), table()).save(tmp_path / "o")
    (tmp_path / "o" / "model.npz").unlink(missing_ok=True)
    if toy:
        with pytest.raises(ProjectError, match="not a complete release folder"):
            load_release(tmp_path / "o")
    else:
        assert load_release(tmp_path / "o").model is None


def test_it_is_judged_in_private_and_not(toy, tmp_path):
    made = release(project(private_evaluation=0.25, fair=True), table())
    assert made.private_evaluation is not None
    facts = json.loads(made.files["release.json"])
    assert [s["how"] for s in facts["separations"]] == ["by design"]
    assert all(s["holds"] for s in facts["separations"])
    made.save(tmp_path / "o")
    back = load_release(tmp_path / "o")
    found = evaluate(back.project, table(), back.table, model=back.model).to_json()
    assert found["fairness"]["cmi_model"] is None
    words = "this kind of model" if toy else "no model"
    assert words in found["fairness"]["cmi_model_reason"]
    cost = fence_cost(project(fair=True), table(), back.table, ())
    assert cost is not None
    assert cost.method == "toy"


@pytest.mark.usefixtures("toy")
def test_the_command_line_and_the_ledger_take_it(tmp_path, capsys):
    made = release(project(), table())
    (tmp_path / "t.csv").write_text(made.csv())
    (tmp_path / "p.json").write_text(project().dumps())
    assert main(["plan", str(tmp_path / "p.json"), "--rows", "400"]) == 0
    capsys.readouterr()
    ledger = tmp_path / "l.db"
    Ledger(ledger, create=True).open_table("people", epsilon=5.0, delta=1e-6)
    paid = ["--ledger", str(ledger), "--table", "people"]
    data = ["--data", str(tmp_path / "t.csv"), "--out", str(tmp_path / "o")]
    assert main(["release", str(tmp_path / "p.json"), *data, *paid]) == 0
    (entry,) = Ledger(ledger).population_of("people").entries
    assert entry.plan["method"] == "toy"
    assert 0 < entry.counted <= made.budget.rho * (1 + 1e-9)
    assert Ledger(ledger).verify() == []
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "o"), "--data", str(tmp_path / "t.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["private"] is False


def test_where_it_is_not_registered_nothing_knows_it():
    with pytest.raises(ProjectError, match="must be one of"):
        preview(project(), 400)
    code = "from espalier.core.methods import METHODS; print(*METHODS)"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "toy" not in out.split()
