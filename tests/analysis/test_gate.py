"""The gate lets through the right figures, and its messages are clear."""

from __future__ import annotations

import itertools
import time

import networkx as nx
import numpy as np
import pytest

from espalier.core.analysis.estimands import Difference, Level, Proportion
from espalier.core.analysis.gate import Gate, Needs
from espalier.core.graph.cuts import cheapest_cut
from espalier.core.models.graphical import estimate
from espalier.core.privacy.draws import Measurement

SIZES = {"age": 3, "kin": 2, "sex": 2, "pay": 2, "far": 2}
RNG = np.random.default_rng(0)


def release(sigma: float = 5.0):
    cliques = [("age", "kin"), ("kin", "pay"), ("age", "pay"), ("kin", "sex"), ("sex", "far"), ("kin", "pay")]
    counts = [
        Measurement(c, np.full(tuple(SIZES[n] for n in c), 1200 / np.prod([SIZES[n] for n in c])), sigma)
        for c in cliques
    ]
    return counts, estimate(SIZES, counts, 1200.0)


def pair(a: str, b: str) -> tuple:
    return tuple(((a, i), (b, j)) for i in range(2) for j in range(2))


def test_counted_together():
    gate = Gate(*release())
    badge = gate.judge(Needs(("kin", "sex"), pair("kin", "sex")))
    assert (badge.kind, badge.interval, badge.promised) == ("counted", True, True)
    assert badge.thinnest == pytest.approx(300 / 5, rel=0.01)


def test_noise_of_repeated_and_of_summed_counts():
    gate = Gate(*release())
    assert gate.sigma(("kin", "pay")) == pytest.approx(5 / np.sqrt(2))
    assert gate.sigma(("sex",)) == pytest.approx(1 / np.sqrt(2 / (25 * 2)))  # two cliques, each summed over two cells
    assert gate.sigma(("age", "sex")) == np.inf


def test_thin_cells_get_no_interval():
    gate = Gate(*release(sigma=150.0))
    badge = gate.judge(Needs(("kin", "sex"), pair("kin", "sex")))
    assert (badge.kind, badge.interval) == ("thin", False)
    assert "about 2.0 times as large as its noise" in badge.sentence
    assert Gate(*release(sigma=74.0)).judge(Needs(("kin", "sex"), pair("kin", "sex"))).kind == "counted"


def test_a_share_needs_the_rows_that_it_leaves_over():
    """Nearly all rows of a group have the event, so the few others are lost in noise, and one minus the share is
    too."""
    counts = [Measurement(("kin", "age"), np.array([[500.0, 3.0, 5.0], [300.0, 100.0, 100.0]]), 10.0)]
    gate = Gate(counts, estimate(SIZES, counts, 1008.0))
    here, there = (("age", 0), ("kin", 0)), (("age", 0), ("kin", 1))
    assert gate.noise(here, rest=True) == pytest.approx(10 * np.sqrt(2))
    assert gate.judge(Needs(("age", "kin"), (here,))).kind == "counted"
    assert gate.judge(Needs(("age", "kin"), (here,), rests=(here,))).kind == "thin"
    assert gate.judge(Needs(("age", "kin"), (there,), rests=(there,))).kind == "counted"
    one, other = Level("kin", 0), Level("kin", 1)
    (share,) = Difference(Level("age", 0), one, other).parts()
    (whole,) = Proportion(Level("age", 0)).parts()
    assert gate.judge(share.needs).kind == "thin"
    assert gate.judge(whole.needs).kind == "counted"
    for code in (0, 1):  # the shares of "yes" and "no" are the same figure
        (part,) = Difference(Level("kin", code), Level("age", 0), Level("age", 1)).parts()
        assert gate.judge(part.needs).kind == "thin"


def test_pairs_with_the_outcome():
    gate = Gate(*release())
    needs = Needs(("age", "kin", "pay"), pair("kin", "pay"), outcome="pay")
    badge = gate.judge(needs)
    assert (badge.kind, badge.interval, badge.promised) == ("outcome pairs counted", True, False)
    assert "age and kin were each counted with pay" in badge.sentence
    assert gate.judge(Needs(("age", "kin", "pay"))).kind == "assumed"
    assert gate.judge(Needs(("age", "kin", "pay"), outcome="pay", together=("kin",))).kind == "assumed"


def test_what_was_not_counted_names_what_is_assumed():
    badge = Gate(*release()).judge(Needs(("age", "far")))
    assert (badge.kind, badge.interval) == ("assumed", False)
    assert badge.apart == ("age", "far")
    assert badge.given in {("kin",), ("sex",)}
    assert badge.sentence == (
        f"age and far were not counted together; the table treats them as independent given {badge.given[0]}."
    )
    alone = Gate([m for m in release()[0] if "far" not in m.clique], release()[1]).judge(Needs(("age", "far")))
    assert alone.given == ()
    assert alone.sentence.endswith("the table treats them as independent.")


def test_a_category_counted_in_a_group_is_thin():
    counts, model = release()
    gate = Gate(counts, model, {"age": np.array([0, 1, 1])})
    cells = tuple(((("age", code), ("kin", 0))) for code in (1, 2))
    assert "counted together with other rare categories" in gate.judge(Needs(("age", "kin"), cells)).sentence
    assert gate.judge(Needs(("age", "kin"), ((("age", 0), ("kin", 0)),))).kind == "counted"


def test_cuts_are_minimum_ones():
    rng = np.random.default_rng(1)
    for _ in range(150):
        names = [f"n{i}" for i in range(9)]
        edges = [p for p in itertools.combinations(names, 2) if rng.random() < 0.3]
        graph = nx.Graph(edges)
        graph.add_nodes_from(names)
        found = cheapest_cut(edges, "n0", "n8")
        if graph.has_edge("n0", "n8"):
            assert found is None
            continue
        assert found is not None
        left = graph.subgraph(set(names) - set(found))
        assert not nx.has_path(left, "n0", "n8")
        best = len(nx.minimum_node_cut(graph, "n0", "n8")) if nx.has_path(graph, "n0", "n8") else 0
        assert len(found) == best


def test_two_hundred_columns_are_judged_in_fifty_milliseconds():
    rng = np.random.default_rng(2)
    names = [f"c{i}" for i in range(200)]
    edges = [(a, names[int(rng.integers(max(0, i - 8), i))]) for i, a in enumerate(names) if i for _ in range(3)]
    start = time.process_time()
    for _ in range(5):
        assert cheapest_cut(edges, "c0", "c199")
    assert (time.process_time() - start) / 5 < 0.05
