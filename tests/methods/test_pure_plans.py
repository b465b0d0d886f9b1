"""Plans with pure accounting, through plan, release, evaluation, report, statement, verifier and ledger."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from espalier.core.analysis.study import Study
from espalier.core.errors import LedgerError, ProjectError
from espalier.core.evaluation import evaluate
from espalier.core.ledger.ledger import Ledger
from espalier.core.methods import METHODS, frame_of
from espalier.core.methods.frame import GAUSSIAN_ALONE
from espalier.core.methods.question_answers import ask
from espalier.core.planning.expected_answers import factor_of_all
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import Budget, rho_of
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.question_recipes.recipes import answers
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.release.spend import release
from espalier.verifier.check import main as verify
from tests.methods.test_contract import ASKED, project, table

PLANS = {
    "fpt-lp": {"method": "fpt-lp"},
    "fpt-lp, add-remove": {"method": "fpt-lp", "neighbors": "add-remove", "rows_per_person": 2},
    "fpt-mw": {"method": "fpt-mw", "rounds": 6, "one_way": 0.2},
    "fpt-mw, add-remove": {"method": "fpt-mw", "neighbors": "add-remove"},
}


def pure(**plan) -> Project:
    return project(question_list=ASKED, accounting="pure", delta=None, **plan)


@pytest.fixture(scope="module", params=PLANS)
def made(request):
    return release(pure(**PLANS[request.param]), table())


def test_plan_and_release_say_the_same_and_delta_is_zero(made):
    shown, facts = preview(made.project, 2000), made.to_json()
    assert shown.budget == made.budget
    assert (shown.budget.delta, shown.budget.rho) == (0.0, pytest.approx(0.5))
    assert shown.to_json()["delta"] == facts["spent"]["delta"] == facts["asked"]["delta"] == 0.0
    assert facts["project"]["plan"]["delta"] == 0.0
    assert sum(shown.alone.values()) == pytest.approx(1.0)
    if made.project.plan.method == "fpt-lp":
        assert shown.spent == pytest.approx(made.spending.rho, rel=1e-9)
        assert facts["spent"]["epsilon"] == pytest.approx(1.0)
    assert facts["spent"]["epsilon"] <= 1.0
    assert facts["spent"]["rho"] <= 0.5


def test_every_scale_is_what_its_epsilon_buys(made):
    """Laplace noise with b = Δ/ε, an exponential mechanism with s = 2Δ/ε."""
    for draw in made.spending.draws:
        parameter = draw.scale / (2 if draw.kind == "choice" else math.sqrt(2))
        assert parameter * draw.epsilon == pytest.approx(draw.sensitivity, rel=1e-9)
        assert draw.noise == ("gaussian" if draw.kind == "choice" else "laplace")


def test_report_and_label_name_the_pure_guarantee(made):
    facts = made.to_json()
    claims = json.loads(made.files["statement.json"])
    assert claims["guarantee"]["delta"] == 0.0
    assert "δ = 0" in claims["guarantee"]["sentence"]
    assert "zero-concentrated" not in claims["accounting"]["conversion"]
    assert json.loads(made.files["registry.yaml"])["deployment"]["dp_variant"]["variant_name"] == "Pure DP"
    for name in ("report.html", "label.html", "croissant.json"):
        assert "δ = 0" in made.files[name].decode()
    assert facts["noisy_counts"] is None
    with pytest.raises(ProjectError, match="its noise is not Gaussian"):
        Study.of(made)


def test_the_verifier_recomputes_it_and_finds_less_noise(made, tmp_path, capsys):
    made.save(tmp_path / "good")
    assert verify([str(tmp_path / "good")]) == 0, capsys.readouterr().out
    assert "FAILS" not in capsys.readouterr().out
    for name, change in {
        "less noise": lambda d: {**d, "scale": d["scale"] * 0.9},
        "L2 for L1": lambda d: {
            **d,
            "scale": d["scale"] / math.sqrt(2),
            "sensitivity": d["sensitivity"] / math.sqrt(2),
        },
        "Gaussian": lambda d: {k: v for k, v in d.items() if k != "noise"},
    }.items():
        files = dict(made.files)
        claims = json.loads(files["statement.json"])
        at = next(i for i, d in enumerate(claims["draws"]) if d["kind"] != "choice")
        claims["draws"][at] = change(claims["draws"][at])
        folder = tmp_path / name
        folder.mkdir()
        for each, data in files.items():
            (folder / each).write_bytes(json.dumps(claims).encode() if each == "statement.json" else data)
        assert verify([str(folder)]) == 1
        assert "budget FAILS" in capsys.readouterr().out, name


def test_it_is_evaluated_like_any_other(made):
    assert evaluate(made.project, table(), made.synthetic)


def test_intervals_of_the_answers_hold_for_laplace_noise():
    """In 95 of 100 releases, all bounds hold at once; 13 misses or more have a probability of 10⁻³."""
    given, misses = pure(method="fpt-lp", epsilon=0.5), 0
    questions, counts = given.question_list.resolve(given.schema)
    true = answers(table(), questions, counts, given.schema.sizes)
    for _ in range(100):
        found = ask(
            PrivateCurator(table(), Unit(), Budget.of_pure(0.5), 10**6), given, Budget.of_pure(0.4), direct=True
        )
        assert found.noise == "laplace"
        told = np.array([found.told(j) for j in range(len(questions))])
        misses += bool((np.abs(told[:, 0] - true) > factor_of_all(found) * told[:, 1]).any())
    assert misses < 13


def test_a_ledger_counts_its_rho_and_records_no_delta(tmp_path):
    ledger = Ledger(str(tmp_path / "ledger.db"), create=True)
    ledger.open_table("people", epsilon=4.0, delta=1e-6, who="Ada")
    made = release(pure(method="fpt-mw", epsilon=0.5, rounds=5), table(), ledger=ledger.account("people", "Bob"))
    population = ledger.population_of("people")
    (entry,) = population.entries
    assert (entry.delta, entry.epsilon, entry.reserved) == (0.0, 0.5, pytest.approx(0.125))
    assert entry.counted == made.spending.rho < 0.125
    assert population.spent == pytest.approx(entry.counted)
    again = release(project(method="independent", epsilon=0.5), table(), ledger=ledger.account("people", "Bob"))
    assert ledger.population_of("people").spent == pytest.approx(entry.counted + again.spending.rho)
    with pytest.raises(LedgerError, match="nothing was read"):
        release(pure(method="fpt-lp", epsilon=3.0), table(), ledger=ledger.account("people", "Bob"))
    assert rho_of(4.0, 1e-6) < 3.0**2 / 2


@pytest.mark.parametrize("name", [n for n, m in METHODS.items() if "pure" not in m.capabilities.accounting])
def test_other_methods_refuse_before_they_spend(name):
    with pytest.raises(ProjectError, match="does not support pure accounting: set accounting to .*fpt-lp, fpt-mw"):
        frame_of(pure(method=name))


@pytest.mark.parametrize("key", GAUSSIAN_ALONE)
def test_what_rests_on_gaussian_noise_is_refused_by_its_key(key):
    with pytest.raises(ProjectError, match="no pure guarantee") as error:
        preview(pure(method="fpt-lp", **{key: 5 if key == "copies" else 0.1}), 2000)
    assert error.value.data["key"] == key


def test_a_delta_contradicts_it_and_the_file_reads_back():
    with pytest.raises(ProjectError, match="leave delta out"):
        Plan("fpt-lp", 1.0, 1e-6, accounting="pure")
    plan = Plan("fpt-lp", 1.0, accounting="pure")
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.changed(accounting="zcdp", delta=None).delta is None


def test_multiplicative_weights_still_refuse_basic_composition():
    with pytest.raises(ProjectError, match="zcdp or pure"):
        preview(project(method="fpt-mw", question_list=ASKED, accounting="basic"), 2000)
