"""The curator pays before it reads, never overspends, and refuses sizes before the first draw."""

from __future__ import annotations

import math
import threading
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espalier.core.errors import BudgetError, SizeError
from espalier.core.methods.select.allocation import BudgetSplit
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.draws import Draw, Subtotal, subtotals_of
from espalier.core.privacy.gradient import LogisticGradient
from espalier.core.privacy.rehearsal import Rehearsal
from espalier.core.privacy.scores import EdgeScore, FeatureScore
from espalier.core.privacy.spending import Spending
from espalier.core.privacy.unit import Unit
from espalier.core.project.plan import Plan
from tests.support.tables import FakeSource

SIZES = {"a": 2, "b": 3, "c": 4}
ONE = Unit()
FLAT = EdgeScore(lambda pair: np.ones([SIZES[c] for c in pair]))


class Counted(FakeSource):
    """A table that remembers how often it was asked."""

    def __init__(self):
        super().__init__(24, **SIZES)
        self.asked = []

    def count(self, clique):
        self.asked.append(clique)
        shape = tuple(SIZES[c] for c in clique)
        return np.full(shape, self.rows // math.prod(shape), dtype=np.int64)

    def residual_sums(self, target, columns, weights):
        self.asked.append((target, *columns))
        return np.zeros(sum(weights[n].size for n in columns), dtype=np.int64)


def curator(rho=0.1, unit=ONE, cells=10**6):
    table = Counted()
    return PrivateCurator(table, unit, Budget(1.0, 1e-9, rho), cells), table


def test_overspending_raises_before_anything_is_read():
    c, table = curator(0.1)
    c.measure({("a",): 0.06})
    with pytest.raises(BudgetError, match="nothing was read") as error:
        c.measure({("b",): 0.02, ("c",): 0.03})
    assert error.value.data["remaining"] == pytest.approx(0.04)
    with pytest.raises(BudgetError):
        c.choose(FLAT, [("a", "b")], 0.05, "edge")
    assert table.asked == [("a",)]
    assert c.spending.rho == 0.06


def test_what_was_bought_is_listed_by_kind_and_pool_as_it_was_first_paid_for():
    c, _ = curator(0.1)
    c.measure({("a",): 0.01, ("b",): 0.02}, "one-way")
    c.choose(FLAT, [("a", "b"), ("a", "c")], 0.005, "edge", "tree")
    with pytest.raises(BudgetError):
        c.measure({("c",): 0.5}, "never")
    c.choose(FLAT, [("a", "b"), ("b", "c")], 0.005, "edge", "tree")
    c.measure_scores(FLAT, [("a", "b")], 0.01, "score of a pair", "explain")
    c.measure({("a", "b"): 0.03}, "two-way")
    assert subtotals_of(c.spending.draws) == (
        Subtotal("measure", "one-way", 2, math.nextafter(0.03, 1)),  # 0.01 + 0.02, rounded up
        Subtotal("select", "tree", 2, 0.01),
        Subtotal("select", "explain", 1, 0.01),
        Subtotal("measure", "two-way", 1, 0.03),
    )
    assert math.fsum(act.rho for act in subtotals_of(c.spending.draws)) == pytest.approx(c.spending.rho, rel=1e-15)


def test_booking_elsewhere_is_held_to_the_budget():
    elsewhere = Spending(0.1)
    c = PrivateCurator(Counted(), ONE, Budget(1.0, 1e-9, 0.1), 10**6, elsewhere)
    c.measure({("a",): 0.06})
    assert elsewhere.rho == 0.06
    with pytest.raises(ValueError, match="must keep the same budget"):
        PrivateCurator(Counted(), ONE, Budget(1.0, 1e-9, 0.1), 10**6, Spending(0.2))


def test_not_even_a_billionth_more_is_spent():
    c, _ = curator(0.1)
    with pytest.raises(BudgetError):
        c.measure({("a",): 0.1 * (1 + 1e-9)})
    c.measure({("a",): 0.1})


def paid(rho):
    return Draw("count", "counts", ("a",), "one-way", 2, 1.0, 1.0, rho)


def test_threads_cannot_spend_together_what_each_alone_could():
    spending = Spending(1.0)
    spending.draws = [paid(1e-12)] * 20_000
    done = []

    def spend():
        try:
            spending.debit([paid(0.9)])
            done.append(1)
        except BudgetError:
            pass

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(done) == 1
    assert spending.rho <= 1.0


def test_only_proved_scores_are_evaluated():
    c, table = curator()

    class Thief(EdgeScore):
        pass

    with pytest.raises(TypeError, match="proved"):
        c.choose(Thief(lambda pair: np.zeros((2, 3))), [("a", "b")], 0.01, "edge")
    with pytest.raises(TypeError, match="proved"):
        c.measure_scores(Thief(lambda pair: np.zeros((2, 3))), [("a", "b")], 0.01, "score")
    with pytest.raises(ValueError, match="columns"):
        c.choose(FLAT, [("a",)], 0.01, "edge")
    assert not table.asked
    assert c.spending.rho == 0


def test_a_table_that_miscounts_is_refused():
    c, table = curator()
    table.count = lambda clique: np.full(2, 50)
    with pytest.raises(ValueError, match="inconsistent counts"):
        c.measure({("a",): 0.01})


def test_expected_counts_cannot_overflow_a_score():
    for wild in (1e300, -1e300):
        score = EdgeScore(lambda pair, wild=wild: np.full((2, 3), wild))
        one = np.array([[1, 0, 0], [0, 0, 0]])
        moved = abs(score.value(("a", "b"), one, None) - score.value(("a", "b"), 0 * one, None))
        assert moved <= score.sensitivity(Unit("add-remove"), None)


@pytest.mark.parametrize("rho", [0.0, -0.1, math.nan, math.inf])
def test_a_price_must_be_a_positive_number(rho):
    c, table = curator()
    with pytest.raises(BudgetError):
        c.measure({("a",): rho})
    with pytest.raises(BudgetError):
        c.choose(FeatureScore("b"), [("a", "b")], rho, "feature")
    assert not table.asked
    assert c.spending.rho == 0


def test_too_large_a_marginal_is_refused_before_the_first_draw():
    c, table = curator(cells=11)
    with pytest.raises(SizeError, match="b × c would have 12 cells"):
        c.measure({("a",): 0.01, ("b", "c"): 0.01})
    with pytest.raises(SizeError):
        c.choose(FLAT, [("a", "b"), ("b", "c")], 0.01, "edge")
    assert not table.asked
    assert c.spending.rho == 0


def test_a_debit_stands_even_if_counting_fails():
    c, table = curator()
    table.count = lambda clique: 1 / 0
    with pytest.raises(ZeroDivisionError):
        c.measure({("a",): 0.03})
    assert c.spending.rho == 0.03


def test_rows_are_public_only_under_replace_one():
    assert curator(unit=Unit("replace-one"))[0].rows == 24
    assert curator(unit=Unit("add-remove"))[0].rows is None


@pytest.mark.parametrize("clique", [("b", "a"), ("a", "a"), ("z",), ()])
def test_a_clique_is_columns_in_schema_order(clique):
    with pytest.raises(ValueError, match="clique|order"):
        curator()[0].measure({clique: 0.01})


def test_a_choice_counts_each_candidate_once_and_keeps_no_score():
    c, table = curator()
    score = FLAT
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    for _ in range(3):
        assert c.choose(score, pairs, 0.01, "edge") in pairs
    assert sorted(table.asked) == pairs
    assert {f.name for f in fields(Draw)}.isdisjoint({"value", "values", "answer"}), (
        "the recorded fields contain no answer"
    )
    assert all(draw.kind == "choice" and draw.columns in pairs for draw in c.spending.draws)


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=30),
    share=st.floats(0.01, 1.0),
    rule=st.sampled_from(["optimal", "uniform", "auto"]),
    accounting=st.sampled_from(["zcdp", "basic"]),
)
def test_a_pool_divides_into_exactly_its_share(sizes, share, rule, accounting):
    names = {f"c{i}": s for i, s in enumerate(sizes)}
    plan = Plan("mst", 1.0, 1e-9, allocation=rule, accounting=accounting)
    budget = Budget.of(plan, 1000)
    rhos = BudgetSplit.of(plan, budget, names).split(share, [(n,) for n in names])
    total = math.fsum(rhos.values())
    if accounting == "zcdp":
        assert share * budget.rho * (1 - 1e-9) <= total <= share * budget.rho
    else:
        assert 0 < total <= budget.rho * share, "basic composition never buys more than tight accounting"


def test_optimal_allocation_is_the_minimum_of_its_objective():
    """Any small move of budget between two cliques makes Σ a σ larger, with zcdp in terms of ρ and with basic in terms
    of ε.
    """
    names = {"a": 2, "b": 30, "c": 400}
    for accounting in ("zcdp", "basic"):
        plan = Plan("mst", 1.0, 1e-9, allocation="optimal", accounting=accounting)
        budget = BudgetSplit.of(plan, Budget.of(plan, None), names)
        rhos = budget.split(1.0, [(n,) for n in names])
        currency = np.array(list(rhos.values())) ** (1.0 if accounting == "zcdp" else 0.5)
        power = -0.5 if accounting == "zcdp" else -1.0
        a = np.array(list(names.values()), dtype=float)

        def cost(x, a=a, power=power):
            return float(np.sum(a * x**power))

        best = cost(currency)
        for i in range(3):
            for j in range(3):
                if i != j:
                    moved = currency.copy()
                    step = 0.02 * currency.min()
                    moved[i] += step
                    moved[j] -= step
                    assert cost(moved) > best


def _purse(allocation, accounting="zcdp"):
    plan = Plan("mst", 1.0, 1e-9, allocation=allocation, accounting=accounting)
    return BudgetSplit.of(plan, Budget.of(plan, None), {"a": 2, "b": 30, "c": 400})


def test_a_share_given_by_hand_is_taken_and_the_others_give_way():
    cliques = [("a",), ("a", "b"), ("c",)]
    free, bound = _purse("auto").split(0.5, cliques), _purse({"a × b": 0.6, "x": 0.9}).split(0.5, cliques)
    pool = math.fsum(free.values())
    assert bound[("a", "b")] == pytest.approx(0.6 * pool)
    assert bound[("a",)] == bound[("c",)] == pytest.approx(0.2 * pool)
    assert math.fsum(bound.values()) == pytest.approx(pool)
    all_bound = _purse({"a": 0.1, "c": 0.3}).split(0.5, [("a",), ("c",)])
    assert all_bound[("c",)] == pytest.approx(0.75 * pool), "no part of a pool is left over"


def test_shares_given_by_hand_never_starve_the_others():
    rhos = _purse({"a": 0.9, "c": 0.9}).split(1.0, [("a",), ("b",), ("c",)])
    whole = math.fsum(rhos.values())
    assert rhos[("b",)] == pytest.approx(0.05 * whole)
    assert rhos[("a",)] == rhos[("c",)] == pytest.approx(0.475 * whole)


def test_by_hand_under_basic_accounting_shares_are_of_epsilon():
    rhos = _purse({"a": 0.8}, "basic").split(1.0, [("a",), ("b",)])
    assert math.sqrt(rhos[("a",)] / rhos[("b",)]) == pytest.approx(4)


def test_basic_accounting_is_prisms():
    """For 40 equal marginals at ε = 1 and δ = 1/39073², the classical calibration gives σ ≈ 400 rows."""
    names = {f"c{i}": 5 for i in range(40)}
    plan = Plan("independent", 1.0, 1 / 39073**2, accounting="basic")
    budget = Budget.of(plan, None)
    rho = next(iter(BudgetSplit.of(plan, budget, names).split(1.0, [(n,) for n in names]).values()))
    assert Unit().count_sensitivity / math.sqrt(2 * rho) == pytest.approx(400, abs=2)


def test_a_rehearsal_spends_the_same_and_reads_nothing():
    budget = Budget(1.0, 1e-9, 0.1)
    r = Rehearsal(SIZES, Unit(), budget, 24)
    c, _ = curator(0.1)
    for x in (r, c):
        x.measure({("a",): 0.02, ("b",): 0.03}, "one-way")
        x.choose(FLAT, [("a", "b"), ("a", "c")], 0.01, "edge")
    assert r.spending.rho == c.spending.rho
    assert [d.kind for d in r.spending.draws] == [d.kind for d in c.spending.draws] == ["count", "count", "choice"]
    assert [d.scale for d in r.spending.draws] == pytest.approx([d.scale for d in c.spending.draws])


GRADIENT = LogisticGradient("a", ("b",), {"b": np.zeros((3, 1)), "a": np.zeros((1, 1))})


def test_sums_paid_in_advance_are_answered_so_often_and_no_more():
    for c in (curator(0.1)[0], Rehearsal(SIZES, ONE, Budget(1.0, 1e-9, 0.1), 24)):
        with pytest.raises(BudgetError):
            c.prepay(GRADIENT, 0.03, 4, "training")
        assert not c.spending.draws
        step = c.prepay(GRADIENT, 0.03, 3, "training")
        assert [d.rho for d in c.spending.draws] == [0.03] * 3, "all of them are paid for before the first"
        moved = LogisticGradient("a", ("b",), {"b": np.ones((3, 1)), "a": np.zeros((1, 1))})
        assert [step(recipe).values.shape for recipe in (GRADIENT, moved, moved)] == [(3,)] * 3
        with pytest.raises(BudgetError, match="only 3"):
            step(GRADIENT)
        assert len(c.spending.draws) == 3


def test_other_sums_than_were_paid_for_are_refused_before_anything_is_read():
    c, table = curator(0.1)
    step = c.prepay(GRADIENT, 0.03, 1)
    with pytest.raises(ValueError, match="paid for"):
        step(LogisticGradient("a", ("c",), {"c": np.zeros((4, 1)), "a": np.zeros((1, 1))}))

    class Thief(LogisticGradient):
        pass

    with pytest.raises(TypeError, match="proved"):
        c.measure_sums(Thief("a", ("b",), GRADIENT.weights), 0.01)
    assert not table.asked
    assert c.spending.rho == 0.03


def test_sums_that_do_not_fit_their_recipe_are_not_answered():
    c, table = curator(0.1)
    table.residual_sums = lambda target, columns, weights: np.zeros(2, dtype=np.int64)
    with pytest.raises(ValueError, match="not the requested ones"):
        c.measure_sums(GRADIENT, 0.01)
    assert c.spending.rho == 0.01


def test_many_candidates_are_counted_together_and_a_few_cells_at_a_time(monkeypatch):
    class Batched(Counted):
        def __init__(self):
            super().__init__()
            self.calls = []

        def count_many(self, cliques):
            self.calls.append(list(cliques))
            return super().count_many(cliques)

    pairs, calls = [("a", "b"), ("a", "c"), ("b", "c")], []
    for most in (1 << 22, 14, 1):
        monkeypatch.setattr("espalier.core.privacy.curator.TOGETHER", most)
        table = Batched()
        c = PrivateCurator(table, ONE, Budget(1.0, 1e-9, 1.0), 100)
        c.choose(FLAT, pairs, 0.1, "edge")
        c.choose(FLAT, pairs, 0.1, "edge")  # counted once
        calls.append(table.calls)
    assert calls == [[pairs], [pairs[:2], pairs[2:]], [[q] for q in pairs]]


def test_what_was_counted_is_kept_and_not_counted_again():
    keeper, table = curator(0.1)
    for _ in range(2):
        keeper.measure({("a", "b"): 0.01, ("c",): 0.01}, "twice")
    assert sorted(table.asked) == [("a", "b"), ("c",)]
    assert keeper.spending.rho == pytest.approx(0.04)
