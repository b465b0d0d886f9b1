"""The audit's statistics, and a short audit that passes sound code and catches broken copies.

An audit refutes sound code at most once in ten million runs (ALPHA). It misses a copy with half the noise just as
rarely: with 2,400 runs on each table, the expected bound is at least seven standard deviations above the claim. The
other broken copies always give each table a different answer. `python -m tests.audits.audit` is the long version.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from espalier.core.privacy.accounting import delta_of
from tests.audits import audit
from tests.audits.distinguish import audit as judge
from tests.audits.distinguish import clopper_pearson, pure_delta, rho_at_least

ALPHA = 1e-7
NIGHTLY = partial(pytest.param, marks=pytest.mark.nightly)
"""Cases that take ten seconds or more."""


def test_clopper_pearson_is_the_exact_test_inverted():
    low, high = clopper_pearson(7, 40, 0.01)
    assert stats.binom.sf(6, 40, low) == pytest.approx(0.01)
    assert stats.binom.cdf(7, 40, high) == pytest.approx(0.01)
    assert clopper_pearson(0, 40, 0.01)[0] == 0.0
    assert clopper_pearson(40, 40, 0.01)[1] == 1.0


@pytest.mark.parametrize(("rho", "epsilon"), [(0.01, 0.0), (0.3, 0.7), (1.0, 2.0)])
def test_the_curve_is_inverted(rho, epsilon):
    assert rho_at_least(delta_of(rho, epsilon), epsilon) == pytest.approx(rho, rel=1e-3)
    assert rho_at_least(0.0, epsilon) == 0.0


@pytest.mark.parametrize("rho", [0.1, 1.0])
def test_a_gaussian_that_keeps_its_promise_passes_and_half_of_it_does_not(rho):
    """N(0, σ²) against N(1, σ²) with σ = 1/√(2ρ): the false-alarm rate is at most ALPHA by construction."""
    rng, shift, runs = np.random.default_rng(3), math.sqrt(2 * rho), 6000
    first, second = rng.normal(shift, 1, runs), rng.normal(0, 1, runs)
    honest = judge(first, second, rho, ALPHA)
    assert not honest.refuted
    assert rho / 10 < honest.rho_low < rho, "a bound that says nothing would pass everything"
    broken = judge(first + shift, second, rho, ALPHA)
    assert broken.refuted
    assert broken.rho_low > rho
    assert judge(-second, -first - shift, rho, ALPHA).refuted, "either table may be the more likely one"


def test_the_bound_at_zero_is_below_the_true_distance():
    """δ(0) is the total variation distance, known here: 2Φ(μ/2) − 1."""
    rng, mu = np.random.default_rng(4), 0.8
    found = judge(rng.normal(mu, 1, 20_000), rng.normal(0, 1, 20_000), mu**2 / 2, ALPHA).bounds[0]
    assert found.epsilon == 0.0
    assert 0.7 * (2 * stats.norm.cdf(mu / 2) - 1) < found.low < 2 * stats.norm.cdf(mu / 2) - 1


def of(cases, name, relation, way=""):
    return next(c for c in cases if (c.name, c.relation, c.broken) == (name, relation, way))


@pytest.mark.parametrize(
    ("name", "relation", "runs"),
    [
        ("measure", "replace-one", 300),
        NIGHTLY("measure", "add-remove", 300),
        NIGHTLY("choose by EdgeScore", "replace-one", 300),
        NIGHTLY("choose by EdgeScore", "add-remove", 300),
        NIGHTLY("measure a gradient", "replace-one", 450),
        NIGHTLY("measure what a fit leaves", "replace-one", 300),
        NIGHTLY("answer questions", "replace-one", 300),
        NIGHTLY("measure features of whole rows", "replace-one", 300),
        NIGHTLY("measure features of whole rows", "add-remove", 300),
        NIGHTLY("choose columns", "replace-one", 300),
        NIGHTLY("a regression", "replace-one", 300),
        NIGHTLY("answer questions", "add-remove", 300),
        NIGHTLY("a count over whole rows", "replace-one", 300),
        NIGHTLY("a noisy margin", "replace-one", 300),
        NIGHTLY("choose the worst question", "replace-one", 300),
    ],
)
def test_mechanisms_stay_below_their_claim_and_half_the_noise_does_not(name, relation, runs):
    assert not audit.judge(of(audit.mechanism_cases(False), name, relation), 50, ALPHA).refuted
    assert audit.judge(of(audit.mechanism_cases(True), name, relation, "half the noise"), runs, ALPHA).refuted


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("measure", "seeded"),
        NIGHTLY("measure a gradient", "no sensitivity"),
        NIGHTLY("measure what a fit leaves", "no sensitivity"),
        NIGHTLY("a training step", "seeded"),
        ("a training step", "no sensitivity"),
        ("a training step", "clipped after the sum"),
        NIGHTLY("a training step", "C for 2C"),
        ("a regression", "no sensitivity"),
        ("answer questions", "no sensitivity"),
        NIGHTLY("answer questions", "seeded"),
        ("a count over whole rows", "no sensitivity"),
        ("a noisy margin", "no sensitivity"),
        NIGHTLY("choose the worst question", "no sensitivity"),
        ("choose by EdgeScore", "seeded"),
        NIGHTLY("choose by FeatureScore", "seeded"),
        NIGHTLY("choose by EdgeScore", "no sensitivity"),
        ("choose by FeatureScore", "no sensitivity"),
        NIGHTLY("choose by ConditionalScore", "no sensitivity"),
        ("a person's rows", "all rows kept"),
    ],
)
def test_broken_copies_are_caught(name, way):
    assert audit.judge(of(audit.mechanism_cases(True), name, "replace-one", way), 150, ALPHA).refuted


@pytest.mark.parametrize(
    "name",
    [
        *("count steps, 1 a person", "count steps, 3 a person", "choose steps, 3 a person", "count visits, 3 a person"),
        "count returns, 3 a person",
    ],
)
@pytest.mark.parametrize("relation", audit.RELATIONS)
def test_steps_stay_below_their_claim(name, relation):
    assert not audit.judge(of(audit.step_cases(False), name, relation), 50, ALPHA).refuted


@pytest.mark.parametrize(
    ("name", "relation", "way"),
    [
        NIGHTLY("count steps, 6 a person", "add-remove", "half the noise"),
        ("count steps, 6 a person", "replace-one", "no sensitivity"),
        NIGHTLY("count steps, 6 a person", "replace-one", "each step weighs 1"),
        NIGHTLY("count steps, 6 a person", "add-remove", "seeded"),
        NIGHTLY("choose steps, 6 a person", "replace-one", "no sensitivity"),
        ("count echoes, 6 a person", "add-remove", "no sensitivity"),
        NIGHTLY("count visits, 6 a person", "add-remove", "half the noise"),
        ("count visits, 6 a person", "replace-one", "no sensitivity"),
        ("count visits, 6 a person", "replace-one", "one visit for all"),
        NIGHTLY("count returns, 6 a person", "add-remove", "half the noise"),
        ("count returns, 6 a person", "replace-one", "no sensitivity"),
        NIGHTLY("count returns, 6 a person", "replace-one", "each step weighs 1"),
    ],
)
def test_broken_copies_of_steps_are_caught(name, relation, way):
    assert audit.judge(of(audit.step_cases(True), name, relation, way), 300, ALPHA).refuted


@pytest.mark.nightly
def test_the_audit_reads_rows_through_duckdb_and_a_copy_that_keeps_all_of_them_tells_more():
    """An attacker gains more on average if more rows are added or removed. A full audit would take longer."""
    learned = []
    for broken, way in ((False, ""), (True, "all rows kept")):
        case = of(audit.mechanism_cases(broken), "a person's rows in DuckDB", "add-remove", way)
        with audit.breaking(way):
            learned.append(np.mean([case.run(0) - case.run(1) for _ in range(12)]))
    assert learned[1] > 2 * learned[0]


@pytest.mark.parametrize(
    ("name", "relation", "way", "runs"),
    [
        NIGHTLY("counts, pure", "add-remove", "half the noise", 200),
        NIGHTLY("questions, pure", "replace-one", "seeded", 300),
        NIGHTLY("questions, pure", "replace-one", "L2 for L1", 800),
        ("a count, pure", "add-remove", "seeded", 300),
        ("the worst question, pure", "replace-one", "seeded", 300),
        NIGHTLY("a margin, pure", "replace-one", "half the noise", 300),
        NIGHTLY("the worst question, pure", "replace-one", "a quarter of the noise", 400),
    ],
)
def test_pure_draws_stay_below_their_claim_and_broken_copies_do_not(name, relation, way, runs):
    assert not audit.judge(of(audit.pure_cases(False), name, relation), 50, ALPHA).refuted
    assert audit.judge(of(audit.pure_cases(True), name, relation, way), runs, ALPHA).refuted


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_pure_curve_is_that_of_randomised_response(epsilon):
    lie = 1 / (1 + math.exp(epsilon))
    for above in (0.0, 0.3, epsilon):
        assert pure_delta(epsilon, above) == pytest.approx(max(0.0, 1 - lie - math.exp(above) * lie))


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["workload", "workload explained", "workload, scored together"])
def test_two_rounds_of_noisy_errors_and_counts_hold_and_a_seeded_copy_is_caught(name):
    for relation in audit.RELATIONS:
        assert not audit.judge(of(audit.methods(False), name, relation), 30, ALPHA).refuted
    assert audit.judge(of(audit.methods(True), name, "replace-one", "seeded"), 150, ALPHA).refuted


@pytest.mark.parametrize("relation", audit.RELATIONS)
@pytest.mark.parametrize(
    "name", ["choose by FeatureScore", "choose by ConditionalScore", "a training step", "a part held out"]
)
def test_what_else_is_audited_holds(name, relation):
    assert not audit.judge(of(audit.mechanism_cases(False), name, relation), 50, ALPHA).refuted


@pytest.mark.parametrize("relation", audit.RELATIONS)
def test_tables_are_neighbours_and_scores_move_by_most_of_their_sensitivity(relation):
    """Otherwise the audit would be too weak, or would report faults that do not exist."""
    unit = audit.Unit(relation)
    n = audit.ROWS if relation == "replace-one" else None
    for strata, bound in ((False, 0.7), (True, 0.6)):
        pair = audit.associated(unit, strata)
        one, other = (list(zip(*t.codes.values(), strict=True)) for t in pair.tables)
        assert [len(one), len(other)] == ([48, 48] if n else [47, 48])
        assert one[:47] == other[:47]
        score = audit.ConditionalScore("y") if strata else audit.FeatureScore({("a", "b"): "b", ("c", "d"): "d"})
        for q, sign in ((("a", "b"), 1), (("c", "d"), -1)):
            asked = (*q, *("y",) * strata)
            moved = score.value(asked, pair.tables[1].count(asked), n)
            moved -= score.value(asked, pair.tables[0].count(asked), n)
            assert bound * score.sensitivity(unit, n) <= sign * moved <= score.sensitivity(unit, n)


def test_the_person_moves_what_is_asked_by_its_whole_sensitivity():
    """In methods that ask questions, half the noise is caught only if the pair of tables reveals the whole claimed
    loss."""
    unit = audit.Unit("replace-one")
    tables = audit.between(unit, audit.SCHEMA).tables
    asked, counts = audit.ASKED.resolve(audit.SCHEMA)
    for recipe in (
        audit.QuestionSums(asked, counts, audit.SCHEMA.sizes),
        audit.CountHistogram(counts[0], audit.SCHEMA.sizes),
    ):
        one, other = (recipe.sums(table) for table in tables)
        assert math.ceil(np.linalg.norm(one - other)) == recipe.sensitivity(unit)
    one, other = (audit.answers(table, asked, counts, audit.SCHEMA.sizes) for table in tables)
    assert set((other - one).tolist()) == {-1, 1}, "a choice reveals most if some scores rise and others fall"
