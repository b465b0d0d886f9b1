"""The membership game on a plan: real releases at the plan's cost, a control that knows the answer, and a ceiling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from espalier.core.cli.main import main
from espalier.core.compare.membership import ATTACKS, Played, play, rows_of
from espalier.core.errors import Cancelled, EspalierError, TableError
from espalier.core.evaluation.membership.attack import BLIND, AttackResult, ResampledInterval
from espalier.core.privacy.accounting import rho_of
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from tests.support.tables import random_table, schema_of

SCHEMA = schema_of(a=6, b=5, c=7, d=4, e=6, f=5)
TABLE = random_table(SCHEMA, 160, 0)


def project(**plan):
    return Project("t", SCHEMA, Plan.from_json({"method": "independent", "epsilon": 1.0, "delta": 1e-6, **plan}))


def played(**plan):
    return play(project(**plan), TABLE, np.random.default_rng(0), models=40, targets=6, attacks=("density",))


def test_every_release_costs_what_the_plan_would_and_published_rows_are_told():
    found = played()
    assert found.rho == rho_of(1.0, 1e-6)
    assert (found.rows, found.models) == (80, 40)
    assert found.control[0].auc.value > 0.95
    assert not found.blind
    facts = found.to_json()
    assert (facts["private"], facts["looked_at_real_data"]) == (False, True)
    assert facts["verdict"][0].isupper()
    assert facts["verdict"].endswith("that the budget allows.")
    row = rows_of(found)[0]
    assert row["AUC, published rows"] == found.control[0].auc.value
    assert row["advantage, low (95 %)"] <= row["advantage"] <= row["advantage, high (95 %)"]
    assert row["conclusion"] in ("no better than chance", "the release reveals members")


@pytest.mark.nightly
def test_hardly_any_noise_is_told():
    """At ρ near 60, the counts of pairs are nearly exact, and a rare pair reveals its row."""
    found = played(method="mst", epsilon=100.0)
    assert found.verdicts[0].auc.value > 0.5  # 0.71 ± 0.025 in trials
    assert found.top > 0.999


def test_replacing_a_row_costs_two_units_under_add_remove():
    one = AttackResult("density", ResampledInterval(0.5, 0.4, 0.6), ResampledInterval(0, 0, 0), (0.5,), 0.5, 0.5)
    sure = AttackResult("density", ResampledInterval(1.0, 1.0, 1.0), ResampledInterval(1, 1, 1), (1.0,), 1.0, 1.0)
    assert Played("m", 1.0, 0.04, Unit("replace-one"), 9, 20, (one,), (sure,)).top == pytest.approx(norm.cdf(0.2))
    assert Played("m", 1.0, 0.04, Unit("add-remove"), 9, 20, (one,), (sure,)).top == pytest.approx(
        norm.cdf(math.sqrt(4 * 0.04))
    )
    blind = Played("m", 1.0, 0.04, Unit(), 9, 20, (one,), (one,))
    assert blind.blind
    assert blind.verdict.startswith(BLIND.capitalize())
    assert rows_of(blind)[0]["conclusion"] == BLIND
    above = Played("m", 1.0, 0.04, Unit(), 9, 20, (sure,), (sure,))
    assert "above the" in above.verdict


def test_named_rows_are_attacked():
    odd = {name: codes.copy() for name, codes in TABLE.codes.items()}
    for name, codes in odd.items():
        codes[:] = np.where(np.arange(160) % 8, 0, codes)
        codes[3] = len(SCHEMA[name].labels) - 1
    table = type(TABLE)(SCHEMA, odd, 160)
    found = play(project(), table, np.random.default_rng(0), models=20, targets=[3, 1, 3, 2], attacks=("density",))
    control = found.control[0]
    assert len(control.aucs) == 3
    assert control.outlying == control.aucs[0] == 1.0, "row 3 is unique"
    plain = play(project(), table, np.random.default_rng(0), models=20, targets=[1, 2], attacks=("density",))
    assert plain.control[0].outlying is None
    for wrong in ([1, 160], [-1, 2]):
        with pytest.raises(EspalierError, match="must be from 1 to 160"):
            play(project(), table, np.random.default_rng(0), models=20, targets=wrong)


def test_it_is_cancelled_and_what_cannot_be_judged_is_refused():
    said = []

    def stop(fraction, _):
        said.append(fraction)
        if fraction > 0.1:
            raise Cancelled("enough")

    with pytest.raises(Cancelled):
        play(project(), TABLE, np.random.default_rng(0), models=20, report=stop)
    assert said == sorted(said)
    with pytest.raises(EspalierError, match="models are too few"):
        play(project(), TABLE, np.random.default_rng(0), models=10)
    for targets, count in ((1000, "1,000"), ([3, 3], "1")):
        with pytest.raises(EspalierError, match=f"choose 2 to 160 different rows to attack, not {count}\\.$"):
            play(project(), TABLE, np.random.default_rng(0), targets=targets)
    with pytest.raises(TableError, match="at least 40 rows"):
        play(project(), TABLE.take(np.arange(30)), np.random.default_rng(0))


@pytest.mark.nightly
def test_the_command_prints_figures_and_says_that_they_are_confidential(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.json").write_text(project().dumps())
    names = SCHEMA.names
    rows = "".join(",".join(f"v{TABLE.codes[n][i]}" for n in names) + "\n" for i in range(160))
    (tmp_path / "t.csv").write_text(",".join(names) + "\n" + rows)
    asked = ["attack", "p.json", "--data", "t.csv", "--models", "20", "--targets", "2"]
    assert main([*asked, "--json"]) == 0
    printed = capsys.readouterr().out
    assert '"private": false' in printed
    assert all(f'"{attack}"' in printed for attack in ATTACKS)
    assert main([*asked[:-2], "--rows", "1", "161"]) == 2
    assert "counted from 1 to 160" in capsys.readouterr().err
    assert main([*asked[:-3], "10"]) == 2
    assert "models are too few" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p.json", "t.csv"]
