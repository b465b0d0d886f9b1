"""The ledger reserves (ρ, δ₀): the δ₀ of draws adds up, and never exceeds the part of the budget that is kept for
it.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from espalier.core.cli.main import main
from espalier.core.errors import LedgerError, ProjectError
from espalier.core.ledger.account import Reservation
from espalier.core.ledger.archive import REQUIRED
from espalier.core.ledger.events import Event, read_events
from espalier.core.ledger.ledger import Ledger
from espalier.core.ledger.replay import replay
from espalier.core.ledger.verify_copies import check_export
from espalier.core.privacy.accounting import Budget, epsilon_of, rho_of
from espalier.core.privacy.curator import Curator, PrivateCurator
from espalier.core.privacy.draws import Draw, Subtotal, subtotals_of
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

DELTA, FOR_DRAWS = 1e-6, 4e-7
SCHEMA = Schema((Column("a", "categorical", ("x", "y")), Column("b", "categorical", ("u", "v"))))
PROJECT = Project("t", SCHEMA, Plan("independent", 1.0, DELTA))
FILES = {**dict.fromkeys(REQUIRED, b"x"), "release.json": b'{"model": null}'}


def opened(path: Path, for_draws: float = FOR_DRAWS) -> Ledger:
    ledger = Ledger(path, create=True)
    ledger.open_table("people", epsilon=3.0, delta=DELTA, delta_for_draws=for_draws, who="Ada")
    return ledger


def reserve(ledger: Ledger, delta: float) -> Reservation:
    return ledger.account("people", "Bob").reserve(PROJECT, Budget.of(PROJECT.plan, None), b"d", delta)


def threshold(rho: float, delta: float, held_out: bool = False) -> Draw:
    return Draw("count", "categories", ("a",), "schema", 9, 1.0, 1.0, rho, delta, held_out=held_out)


def test_acts_carry_the_delta_of_their_draws() -> None:
    acts = subtotals_of([threshold(0.001, 1e-7), threshold(0.002, 2e-7), threshold(0.001, 5e-8, held_out=True)])
    assert acts == (Subtotal("measure", "schema", 2, 0.003, 1e-7 + 2e-7), Subtotal("look", "schema", 1, 0.001, 5e-8))


def test_reserved_spent_and_returned_deltas_add_up(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    total = ledger.population_of("people")
    assert total.rho == rho_of(3.0, DELTA - FOR_DRAWS) < rho_of(3.0, DELTA)
    assert total.epsilon_after(total.rho) == epsilon_of(total.rho, DELTA - FOR_DRAWS) <= 3.0
    first, second, third = (reserve(ledger, delta) for delta in (1e-7, 2e-7, 1e-7))
    assert first.facts()["delta_for_draws"] == {"total": FOR_DRAWS, "reserved": 1e-7}
    exact = Fraction(1e-7) + Fraction(2e-7) + Fraction(1e-7)
    assert ledger.population_of("people").delta_counted == exact
    with pytest.raises(
        LedgerError, match="δ₀ = 1e-12, but 'people' has only .* left for draws; nothing was read"
    ) as refusal:
        reserve(ledger, 1e-12)
    assert refusal.value.data["key"] == "delta_for_draws"

    acts = subtotals_of([threshold(0.001, 4e-8), threshold(0.002, 4e-8, held_out=True)])
    assert first.spend(0.002, FILES, acts, 8e-8) == ""
    assert second.end(False, "cancelled") == ""
    assert third.end(True, "cancelled") == ""
    third.close("closed", subtotals_of([threshold(0.001, 4e-8)]))
    population = ledger.population_of("people")
    assert [e.delta_counted for e in population.entries] == [8e-8, 0.0, 1e-7]
    assert [p.delta for p in population.entries[0].parts] == [4e-8, 4e-8], "held out or not, δ₀ adds up"
    assert population.delta_counted == Fraction(8e-8) + Fraction(1e-7)
    assert population.delta_spent + population.delta_left == pytest.approx(FOR_DRAWS)
    assert ledger.verify() == []

    data = ledger.to_json()
    (tmp_path / "l.json").write_text(json.dumps(data))
    assert "sums and rules verified" in check_export(tmp_path / "l.json", ledger)
    data["populations"][0]["delta_spent"] = 0.0
    (tmp_path / "l.json").write_text(json.dumps(data))
    with pytest.raises(LedgerError, match="delta_spent"):
        check_export(tmp_path / "l.json")
    deltas = [(r["kind"], r["delta"]) for r in csv.DictReader(io.StringIO(ledger.csv()))][4:]
    assert deltas == [
        ("measure", "4e-08"),
        ("look", "4e-08"),
        ("spend", "8e-08"),
        ("return", ""),
        ("stop", ""),
        ("measure", "4e-08"),
        ("spend", "1e-07"),
    ]


def test_the_last_bit_of_delta_is_refused(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    reserve(ledger, FOR_DRAWS / 2)
    population = ledger.population_of("people")
    population.allows(0.001, FOR_DRAWS / 2)
    with pytest.raises(LedgerError):
        population.allows(0.001, float(np.nextafter(FOR_DRAWS / 2, 1)))
    for delta in (-1e-9, 1.0, float("nan")):
        with pytest.raises(LedgerError, match="at least 0 and below 1"):
            population.allows(0.001, delta)


def test_more_than_was_reserved_is_never_spent(tmp_path: Path) -> None:
    reservation = reserve(opened(tmp_path / "l.db"), 1e-7)
    with pytest.raises(LedgerError, match="more than was reserved"):
        reservation.spend(0.001, FILES, (), 2e-7)


@pytest.mark.parametrize("for_draws", [DELTA, 2 * DELTA, -1e-9, float("nan")])
def test_what_is_for_draws_must_leave_some_of_delta(tmp_path: Path, for_draws: float) -> None:
    with pytest.raises(ProjectError, match="delta for draws"):
        opened(tmp_path / "l.db", for_draws)


def test_a_budget_that_keeps_nothing_for_draws_refuses_them(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db", 0.0)
    assert ledger.population_of("people").rho == rho_of(3.0, DELTA)
    with pytest.raises(LedgerError, match="has no δ left for draws"):
        reserve(ledger, 1e-12)
    reserve(ledger, 0.0).spend(0.001, FILES, [Subtotal("measure", "one-way", 1, 0.001)])
    assert [row["delta"] for row in ledger.store.read()][2:] == [None, None]
    assert "delta_for_draws" not in "".join(str(row["plan"]) for row in ledger.store.read())


def test_a_chain_that_was_hashed_anew_keeps_the_rules_of_delta(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    reserve(ledger, 1e-7).spend(0.001, FILES, subtotals_of([threshold(0.001, 1e-7)]), 1e-7)
    events = ledger.events()
    replay(events)
    first, taken, drawn, spent = events

    def with_plan(event: Event, **more: object) -> Event:
        return replace(event, plan=json.dumps({**json.loads(event.plan or ""), **more}))

    for forged in (
        [with_plan(first, delta_for_draws=0.0), taken, drawn, spent],
        [with_plan(first, delta_for_draws=9e-7), taken, drawn, spent],
        [with_plan(first, delta_for_draws=DELTA), taken, drawn, spent],
        [with_plan(first, delta_for_draws="4e-7"), taken, drawn, spent],
        [first, with_plan(taken, delta_for_draws=5e-7), drawn, spent],
        [first, with_plan(taken, delta_for_draws=5e-8), drawn, spent],
        [first, with_plan(taken, delta_for_draws=-1e-7), drawn, spent],
        [first, taken, replace(drawn, delta=-1e-7), spent],
        [first, taken, replace(drawn, delta=None), spent],
        [first, taken, drawn, replace(spent, delta=None)],
        [first, taken, drawn, replace(spent, delta=2e-7)],
        [first, taken, drawn, replace(spent, kind="return", rho=0.0, rho_after=0.0)],
    ):
        with pytest.raises(LedgerError, match="tampered"):
            replay(forged)


def test_a_release_reserves_what_its_rehearsal_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a method whose draws have a δ₀, the preview adds it up, and the ledger reserves and charges it."""
    debit = Curator._debit

    def approximate(self: Curator, draws: list[Draw]) -> None:
        debit(self, [replace(draw, delta=1e-8) for draw in draws])

    monkeypatch.setattr(Curator, "_debit", approximate)
    table = Table.encode(read_table(b"a,b\n" + b"x,u\ny,v\n" * 30, "t.csv"), SCHEMA)
    ledger = opened(tmp_path / "l.db")
    made = release(PROJECT, table, ledger=ledger.account("people"))
    (entry,) = ledger.population_of("people").entries
    assert entry.delta_reserved == entry.delta_counted == made.spending.delta == pytest.approx(2e-8)
    assert made.to_json()["ledger"]["delta_for_draws"]["reserved"] == entry.delta_reserved
    assert ledger.verify() == []
    account = opened(tmp_path / "none.db", 0.0).account("people")
    monkeypatch.setattr(PrivateCurator, "_counts", lambda *_: pytest.fail("drew"))
    with pytest.raises(LedgerError, match="has no δ left for draws"):
        release(PROJECT, table, ledger=account)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--ledger", str(tmp_path / "l.db")]
    budget = ["--table", "people", "--epsilon", "3", "--delta", "1e-6"]
    assert main(["ledger", "open", *where, *budget, "--delta-for-draws", "1e-6"]) == 2
    assert "below the total's delta" in capsys.readouterr().err
    assert main(["ledger", "open", *where, *budget, "--delta-for-draws", "4e-7"]) == 0
    assert "δ₀ of draws: spent 0 of 4e-07" in capsys.readouterr().out
    reserve(Ledger(tmp_path / "l.db"), 1e-7).spend(0.001, FILES, subtotals_of([threshold(0.001, 1e-7)]), 1e-7)
    assert main(["ledger", "list", *where]) == 0
    listed = capsys.readouterr().out
    assert "spent 1e-07 of 4e-07" in listed
    assert listed.count("; δ₀ = 1e-07") == 2


def gaussian_delta(rho: float, epsilon: float) -> float:
    """Return the exact δ of a Gaussian mechanism that is ρ-zCDP (Balle & Wang 2018, Theorem 8)."""
    mu = np.sqrt(2 * rho)
    return float(norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


def test_why_delta_for_draws_is_fixed_beforehand() -> None:
    """Turning the remaining δ into δ₀ after an answer breaks a budget that holds for either choice alone.

    A first Gaussian takes 9/10 of ρ. If its answer reveals little, all of the δ that its conversion does not need
    is spent as δ₀ on a draw that publishes everything with that probability; otherwise the rest of ρ is spent. Each
    sequence keeps Σρ ≤ ρ(ε, δ − Σδ₀), and together they take almost 2δ. With a fixed share neither sum depends on the
    answer.
    """
    epsilon, delta, low, high = 1.0, 1e-6, 1e-6, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, epsilon) <= delta else (low, middle)
    first = 0.9 * low
    s, rest = np.sqrt(2 * first), np.sqrt(2 * (low - first))
    loss = np.linspace(first - 9 * s, first + 9 * s, 200_001)
    weight = norm.pdf(loss, loc=first, scale=s) * (loss[1] - loss[0])
    goes_on = norm.cdf((loss - epsilon) / rest + rest / 2)
    goes_on -= np.exp(epsilon - loss) * norm.cdf((loss - epsilon) / rest - rest / 2)
    delta_0 = delta - gaussian_delta(first, epsilon)
    publishes = delta_0 + (1 - delta_0) * np.clip(1 - np.exp(epsilon - loss), 0, None)
    assert float(goes_on @ weight) == pytest.approx(delta, rel=1e-3), "the rest of ρ alone stays within δ"
    assert float(publishes @ weight) == pytest.approx(delta, rel=1e-3), "δ₀ alone keeps to δ"
    assert float(np.maximum(goes_on, publishes) @ weight) > 1.5 * delta


@pytest.mark.parametrize(("accounting", "delta"), [("zcdp", 0.0), ("pure", DELTA)])
def test_only_a_pure_reservation_has_no_delta(tmp_path: Path, accounting: str, delta: float) -> None:
    """Previously, a forged event with δ = 0 for a plan in ρ was replayed as valid."""
    ledger = opened(tmp_path / "l.db")
    plan = Plan("fpt-mw", 0.5, accounting=accounting) if accounting == "pure" else PROJECT.plan  # type: ignore[arg-type]
    budget = Budget.of(plan, None)
    ledger.account("people", "Bob").reserve(replace(PROJECT, plan=plan), budget, b"d")
    events = read_events(ledger.store.read())
    assert replay(events)["people"].entries[0].delta == budget.delta
    forged = [replace(e, delta=delta) if e.kind == "reserve" else e for e in events]
    with pytest.raises(LedgerError, match="its unit is not the population's"):
        replay(forged)


def test_the_largest_epsilon_of_a_pure_plan_fits_and_a_larger_one_does_not(tmp_path: Path) -> None:
    """Pure plans take ρ = ε²/2, far more than others with the same ε."""
    ledger = opened(tmp_path / "l.db")
    people = ledger.population_of("people")
    largest = people.largest(None, pure=True)
    assert 0 < largest < people.largest()
    assert people.outlook(0.01, pure=True)["largest"] == largest
    people.allows(Budget.of_pure(largest).rho, pure=True)
    with pytest.raises(LedgerError, match=f"A plan with ε up to {largest:g} would fit"):
        people.allows(Budget.of_pure(1.01 * largest).rho, pure=True)
