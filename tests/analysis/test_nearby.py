"""The part of a release that one question depends on has the right columns and counts, and gives the same answers as
the whole.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from espalier.core.analysis import figure_from_text
from espalier.core.analysis.nearby import nearby, summed_out
from espalier.core.analysis.noisy_counts import NoisyCounts
from espalier.core.analysis.study import Study
from espalier.core.privacy.draws import Measurement
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release import release
from espalier.core.tables.table import Table

SIZES = dict.fromkeys("abcdef", 3)


@pytest.mark.parametrize(
    ("cliques", "asked", "kept"),
    [
        (["ab", "bc", "cd"], "a", "a"),
        (["ab", "bc", "cd"], "ab", "ab"),
        (["ab", "bc", "cd", "de"], "ad", "abcd"),
        (["ab", "cd"], "ad", "ad"),
        (["ab", "bc", "ca", "cd"], "ab", "ab"),
        (["ab", "bc", "cd", "da"], "ac", "abcd"),
        (["ab", "ac", "ad", "ae", "af"], "bc", "abc"),
    ],
)
def test_columns_that_join_the_question_stay(cliques, asked, kept):
    found = nearby(SIZES, [tuple(c) for c in cliques], asked)
    if set(kept) == set("abcd") and "da" in cliques:  # a diagonal divides the ring, and one side may be enough
        assert set(asked) <= set(found) <= set(kept)
    else:
        assert "".join(found) == kept


def test_summing_out_keeps_the_sums_and_their_noise():
    rng = np.random.default_rng(1)
    pair, other = rng.normal(size=(3, 3)), rng.normal(size=(3, 3, 3))
    counts = NoisyCounts((Measurement(("a", "b"), pair, 2.0), Measurement(("a", "c", "d"), other, 1.0)), 100)
    [ab, a] = summed_out(counts, ("a", "b")).measurements
    assert ab.clique == ("a", "b")
    assert np.array_equal(ab.values, pair)
    assert a.clique == ("a",)
    assert a.values == pytest.approx(other.sum(axis=(1, 2)))
    assert a.sigma == pytest.approx(3.0)


def test_impossible_cells_stay_only_where_nothing_makes_them_possible():
    mask = np.zeros((3, 2), dtype=bool)
    mask[0] = True
    mask[1, 0] = True
    counts = NoisyCounts((Measurement(("a", "b"), np.ones((3, 2)), 1.0),), 10, impossible={("a", "b"): mask})
    assert summed_out(counts, ("a",)).impossible[("a",)].tolist() == [True, False, False]


@pytest.fixture(scope="module")
def study():
    """A chain of six columns and their counts, with little noise."""
    rng = np.random.default_rng(3)
    rows = {"c0": rng.integers(0, 3, 6000)}
    for i in range(1, 6):
        rows[f"c{i}"] = np.where(rng.random(6000) < 0.6, rows[f"c{i - 1}"], rng.integers(0, 3, 6000))
    schema = Schema(tuple(Column(name, "ordinal", ("low", "middle", "high")) for name in rows))
    table = Table(schema, {n: v.astype(np.uint8) for n, v in rows.items()}, 6000)
    project = Project("chain", schema, Plan("mst", epsilon=3, delta=1e-6), one_row_per_person=True)
    return Study.of(release(project, table))


def test_answers_of_a_part_agree_with_those_of_the_whole(study):
    whole = study.with_copies()
    schema = study.project.schema
    pairs = [pair for pair in itertools.combinations(schema.names, 2) if study.gate.counted(pair)]
    assert len(pairs) == 5
    figures = [figure_from_text.proportion(schema, f"{b}=high", f"{a}=low") for a, b in pairs]
    figures.append(figure_from_text.regression(schema, f"{pairs[0][1]}=high", [pairs[0][0]]))
    for figure in figures:
        part = study.about(figure.columns)
        assert set(part.model.sizes) == set(figure.columns)
        for mine, theirs in zip(part.with_copies().ask(figure), whole.ask(figure), strict=True):
            assert mine.badge.kind == theirs.badge.kind == "counted"
            assert mine.low is not None
            assert theirs.low is not None
            half = (theirs.high - theirs.low) / 2
            assert abs(mine.value - theirs.value) < 1.5 * half
            assert 0.4 < (mine.high - mine.low) / (2 * half) < 2.5


def test_a_question_across_the_chain_keeps_what_is_between(study):
    figure = figure_from_text.difference(study.project.schema, "c5=high", "c0=high:low")
    assert len(study.about(figure.columns).model.sizes) == 6
    [answer] = study.about(figure.columns).with_copies().ask(figure)
    assert answer.badge.kind == "assumed"
    assert "c5" in answer.badge.sentence
    assert "c0" in answer.badge.sentence


def test_the_same_question_gets_the_same_answer(study):
    figure = figure_from_text.proportion(study.project.schema, "c1=high")
    ask = study.about(figure.columns).with_copies
    assert ask().ask(figure) == ask().ask(figure)
