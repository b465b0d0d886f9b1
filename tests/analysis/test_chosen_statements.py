"""The choice of statements that test a drawing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from espalier.core.analysis.chosen_statements import alternatives, chosen, contested, covariances, picked, powers
from espalier.core.analysis.independence_fit import Null
from espalier.core.graph.annotations import Annotation
from espalier.core.graph.dag import Dag
from espalier.core.graph.statements import statements

NAMES = ("a", "b", "c", "d", "e")
SIZES = dict.fromkeys(NAMES, 2)
CHAIN = Dag((("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")))


def null(statement):
    return Null.uniform((2, 2, math.prod(SIZES[n] for n in statement.given)), 20_000, 40.0)


def test_an_alternative_closes_no_cycle_and_joins_columns_without_an_arrow():
    found = alternatives(CHAIN, NAMES)
    assert set(found) == {("a", "c"), ("a", "d"), ("a", "e"), ("b", "d"), ("b", "e"), ("c", "e")}


def test_a_statement_has_power_against_its_own_arrow_and_none_against_one_that_leaves_it_true():
    candidates, arrows = statements(CHAIN, SIZES, most=10), alternatives(CHAIN, NAMES)
    power = powers(NAMES, covariances(CHAIN, NAMES, arrows), candidates, null, 0.01)
    at = {frozenset((*s.left, *s.right)): i for i, s in enumerate(candidates)}
    for k, arrow in enumerate(arrows):
        assert power[at[frozenset(arrow)], k] > 0.5
    ac = candidates[at[frozenset("ac")]]
    assert ac.given == ("b",)
    assert power[at[frozenset("ac")], arrows.index(("c", "e"))] == 0  # a ⊥ c | b holds with c → e


def test_each_step_adds_what_the_others_leave_unnoticed():
    power = np.array([[0.9, 0.9, 0.0], [0.9, 0.8, 0.0], [0.0, 0.0, 0.5]])
    candidates = statements(CHAIN, SIZES, most=3)
    assert picked(candidates, power, np.ones(3), 2) == (candidates[0], candidates[2])
    assert picked(candidates, power, np.ones(3), 2, first=[1])[0] == candidates[1]


@pytest.mark.parametrize("pair", [("a", "e"), ("b", "d")])
def test_contested_pairs_come_first_and_drawn_arrows_do_not_count(pair):
    dag = CHAIN.annotated(pair[::-1], Annotation(belief="contested")).annotated(
        ("a", "b"), Annotation(belief="contested")
    )
    assert contested(dag) == {frozenset(pair)}
    (found,) = chosen(dag, statements(dag, SIZES, most=10), null, 0.01, 1)
    assert {*found.left, *found.right} == set(pair)
