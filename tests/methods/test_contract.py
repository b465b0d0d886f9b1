"""One contract for all methods; a new method is added by one line in METHODS (and one in CASES if it has options)."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espalier.core.errors import EspalierError
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Separation
from espalier.core.methods import METHODS
from espalier.core.methods.marginals import Marginals
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import epsilon_of, total_up
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.question_list import QuestionList
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.table import Table
from tests.support.tables import bought

SCHEMA = Schema(
    (
        Column("s", "categorical", ("f", "m")),
        Column("a", "ordinal", ("lo", "mid", "hi")),
        Column("p", "categorical", ("n", "e", "s", "w"), missing=True),
        Column("k", "categorical", ("only",)),
        Column("x", "numeric", edges=(0, 10, 20, 40), integer=True),
        Column("y", "categorical", ("no", "yes")),
    )
)
DAG = Dag((("a", "y"), ("s", "a"), ("s", "p"), ("y", "x")))
ROLES = Roles(outcome=("y",), protected=("s",), admissible=("a",), inadmissible=("p",))
FURTHER = (Separation(("x",), ("p", "s"), ("a",)), Separation(("y",), ("p",), ("a", "x"), "overlapping"))
NOTHING = QuestionList()
ASKED = QuestionList(
    (
        {"name": "young no", "where": {"a": ["lo"], "y": ["no"]}},
        {"name": "far", "any": [{"x": [0, 20]}, {"p": ["n", "e"]}]},
        {"name": "many", "where": {"marks": [1, 2], "x": [10, 40]}},
    ),
    ({"name": "marks", "of": {"x": [20, 40], "p": ["s", "w"]}},),
)
CASES = {
    **{
        name: {"method": name}
        for name, m in METHODS.items()
        if m.capabilities.questions != "alone" and not m.capabilities.numbers and not m.capabilities.linked
    },
    "fpt-lp": {
        "method": "fpt-lp",
        "question_list": ASKED,
    },  # fpt-mw may end early; see test_question_answers.py
    "mst with questions": {"method": "mst", "question_list": ASKED, "question_share": 0.3},
    "privci with questions": {"method": "privci", "question_list": ASKED, "question_share": 0.3, "width": 2},
    "independent with questions": {"method": "independent", "question_list": ASKED, "question_share": 0.5},
    "mst with questions, merged": {
        "method": "mst",
        "question_list": ASKED,
        "question_share": 0.2,
        "compress": True,
        "epsilon": 0.2,
    },
    "mst with regressions": {
        "method": "mst",
        "regressions": [{"name": "r", "outcome": "x", "on": ["a", "s"], "robust": True}],
        "regression_share": 0.3,
    },
    "decoder additive": {"method": "decoder", "families": "additive"},
    "privbayes learned": {"method": "privbayes", "dag": Dag()},
    "prism causal": {"method": "prism", "regime": "causal"},
    "prism graphical fair": {"method": "prism", "regime": "graphical", "fair": True},
    "prism three-way": {"method": "prism", "three_way": 2},
    "prism two targets": {"method": "prism", "regime": "causal", "targets": {"x": 0.5}},
    "prism two targets predictive": {"method": "prism", "targets": {"x": 2.0, "y": 1.0}},
    "prism logistic": {"method": "prism", "selector": "logistic", "features": 2},
    "prism pools": {"method": "prism", "pools": {"one-way": 0.2, "target": 0.8}, "regime": "causal"},
    "prism pools, weights, three-way": {
        "method": "prism",
        "pools": {"one-way": 0.1, "selection": 0.1, "pair choice": 0.1, "target": 0.4, "background": 0.3},
        "task_weights": "bought",
        "three_way": 2,
        "features": 3,
    },
    "prism weights": {"method": "prism", "task_weights": "bought", "features": 3},
    "prism joint": {"method": "prism", "regime": "graphical"},
    "prism predictive fair": {"method": "prism", "fair": True, "features": 2},
    "independent fair": {"method": "independent", "fair": True},
    "privci strict": {"method": "privci", "strict": True},
    "privci thicker": {"method": "privci", "width": 2},
    "privci with further separations": {"method": "privci", "separations": FURTHER, "width": 2},
    "independent with further separations": {"method": "independent", "fair": True, "separations": FURTHER},
    "mst thicker": {"method": "mst", "width": 3},
    "privci explained": {"method": "privci", "explain": 0.1},
    "privci exact": {"method": "privci", "tree": "exact", "separations": FURTHER},
    "mst exact": {"method": "mst", "tree": "exact"},
    "workload weighted": {"method": "workload", "weights": {"p": 0, "a": 2.0, "s × y": 5.0}},
    "workload with triples": {"method": "workload", "triples": 2, "epsilon": 4.0, "weights": {"s × a × y": 3.0}},
    "workload fair": {"method": "workload", "fair": True, "separations": FURTHER},
    "workload explained": {"method": "workload", "fair": True, "explain": 0.1},
    "privci compressed": {"method": "privci", "compress": True, "width": 2, "epsilon": 0.2},
}

EDGE = ("tree edge", "further clique", "further pair")


def table(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 2, n)
    a = np.minimum(2, s + rng.integers(0, 2, n))
    p = np.where(rng.random(n) < 0.7, 2 * s, rng.integers(0, 5, n))
    y = (rng.random(n) < 0.2 + 0.2 * a + 0.2 * s).astype(int)
    x = np.where(rng.random(n) < 0.8, y, rng.integers(0, 3, n))
    codes = {"s": s, "a": a, "p": p, "k": np.zeros(n, int), "x": x, "y": y}
    return Table(SCHEMA, {k: v.astype(np.uint8) for k, v in codes.items()}, n)


def project(dag=DAG, separations=(), question_list=NOTHING, **plan):
    settings = {"epsilon": 1.0, "delta": 1e-6, "target": "y", **plan}
    return Project("t", SCHEMA, Plan.from_json(settings), dag, ROLES, separations, question_list)


@pytest.fixture(params=CASES, scope="module")
def case(request):
    return CASES[request.param]


@pytest.fixture(scope="module")
def made(case):
    return release(project(**case), table())


def test_spends_what_was_asked_and_nothing_is_left(made):
    facts = made.to_json()
    spent = total_up(x["rho"] for x in [*facts["measurements"], *facts["choices"]])
    assert spent == facts["spent"]["rho"]
    assert spent <= made.budget.rho
    assert facts["spent"]["epsilon"] <= made.budget.epsilon
    assert epsilon_of(1.03 * spent, 1e-6) > made.budget.epsilon


@pytest.fixture
def counted(made):
    """A release whose method counts marginals."""
    if not isinstance(made.fitted, Marginals):
        pytest.skip("this method measures no marginals")
    return made


def test_every_sigma_is_what_its_rho_buys(made):
    for d in made.spending.draws:
        assert d.scale == pytest.approx(d.sensitivity / math.sqrt(2 * d.rho), rel=1e-9)
    for m in made.to_json()["measurements"]:
        if m["kind"] == "sums":  # their recipe gives their sensitivity
            continue
        if m["pool"] == "explain":
            paid = made.to_json()["explained"]
            scores = len(paid["refused"]) + len(paid["tree"])
            assert m["cells"] == scores
            assert paid["sensitivity"] == pytest.approx(2 * math.sqrt(scores), rel=1e-3)
            assert m["sigma"] == pytest.approx(paid["sensitivity"] / math.sqrt(2 * m["rho"]), rel=1e-12)
            continue
        if m["pool"] == "selection" and not m["columns"]:  # the gradient of a logistic fit: 2 √d rows, d = 4 columns
            assert m["sigma"] == pytest.approx(4 / math.sqrt(2 * m["rho"]), rel=1e-5)
            continue
        if m["pool"] in ("questions", "counts") and not m["columns"]:  # see tests/privacy/test_question_recipes.py
            apart = math.sqrt(2 if m["pool"] == "counts" else 3)
            assert m["sigma"] == pytest.approx(apart / math.sqrt(2 * m["rho"]), rel=1e-5)
            continue
        if not m["columns"] and m["sigma"] in {e["sigma"] for e in made.to_json().get("errors", ())}:
            # errors of pairs bought together, each of sensitivity 2
            assert m["sigma"] == pytest.approx(2 * math.sqrt(m["cells"] / (2 * m["rho"])), rel=1e-3)
            continue
        if m["pool"] == "tree choice":  # scores of pairs, each of sensitivity 2
            assert m["sigma"] == pytest.approx(2 * math.sqrt(m["cells"] / (2 * m["rho"])), rel=1e-3)
            continue
        if m["pool"] == "weights":  # associations of pairs, each of sensitivity 3 + 2/n
            assert m["sigma"] == pytest.approx(3.001 * math.sqrt(m["cells"] / (2 * m["rho"])), rel=1e-3)
            continue
        if not m["columns"]:  # the weights of three-way tables: scores of sensitivity 4, bought together
            assert [4 * math.sqrt(m["cells"] / (2 * m["rho"]))] * m["cells"] == pytest.approx(
                [a["sigma"] for a in made.to_json()["associations"] if len(a["columns"]) == 3], rel=1e-3
            )
            continue
        assert m["sigma"] == pytest.approx(math.sqrt(2) / math.sqrt(2 * m["rho"]), rel=1e-12)
    for c in made.to_json()["choices"]:
        assert c["scale"] == pytest.approx(c["sensitivity"] / math.sqrt(2 * c["rho"]), rel=1e-12)
        expected = 2 if c["what"] in EDGE else 4 if c["what"] == "three-way table" else 3 + 2 / 2000
        assert c["sensitivity"] == pytest.approx(expected)


def test_every_separation_holds_in_graph_and_model(made):
    for s in made.to_json()["separations"]:
        assert s["holds"]
        assert made.model.cmi(s["left"], s["right"], s["given"]) < 1e-9


def test_output_domain_and_rows(made):
    assert made.rows == 2000
    assert tuple(made.table) == SCHEMA.names
    for column in SCHEMA.columns:
        texts = made.table[column.name]
        assert len(texts) == 2000
        assert column.encode(texts).tolist() == made.codes[column.name].tolist()
    assert made.model.total == pytest.approx(2000)


def test_one_way_counts_are_near_the_truth(counted):
    """Each is within six standard deviations of its noise and of the draw of 2,000 rows; merged categories count
    together.
    """
    made = counted
    fitted = getattr(made.fitted, "base", made.fitted)
    cells = {m.clique: m.values.size for m in fitted.measurements}
    sigma = {
        column.name: min(
            m.sigma * math.sqrt(cells[m.clique] / column.size) for m in fitted.measurements if column.name in m.clique
        )
        for column in SCHEMA.columns
    }
    for column in SCHEMA.columns:
        groups = fitted.merged.get(column.name, np.arange(column.size))
        inside = np.bincount(groups)
        real, drawn = (np.bincount(groups[t.codes[column.name]], minlength=len(inside)) for t in (table(), made))
        noise = sigma[column.name] * np.sqrt(inside)
        assert np.all(np.abs(drawn - real) < 6 * (noise + np.sqrt(real + 1)))


def test_the_preview_shows_the_same_budget(case, made):
    shown = preview(project(**case), 2000)
    assert shown.spent == pytest.approx(made.spending.rho, rel=1e-9)
    assert math.fsum(line.rho for line in shown.lines) == pytest.approx(shown.spent)
    real: dict[tuple[str, ...], float] = defaultdict(float)
    told: dict[tuple[str, ...], float] = defaultdict(float)
    for d in bought(made.spending, "count"):
        real[d.columns] += d.rho
    for line in shown.lines:
        told[line.columns] += line.rho
    for clique, rho in told.items():
        if clique and (len(clique) == 1 or "y" in clique):
            assert real[clique] >= 0.5 * rho, "known parts get the shown share, or more"
    count = len(made.spending.draws)
    if project(**case).plan.method == "prism":  # its further pairs may end early; their share goes to the task
        assert len(shown.lines) / 2 < count < 2 * len(shown.lines)
    else:
        if case["method"] not in ("workload", "prism"):  # noisy errors decide how many pairs these methods count
            assert len(shown.lines) == pytest.approx(count, abs=2)


def test_a_forest_is_announced_exactly_where_there_is_one(case, made):
    linked = {frozenset(e) for e in made.edges}
    parts = nx.number_connected_components(
        nx.Graph([*((n, n) for n in SCHEMA.names if n != "k"), *(e for e in map(tuple, linked) if "k" not in e)])
    )
    assert preview(project(**case), 2000).forest == (parts > 1)


def test_noise_grows_with_the_unit(case):
    def per_root_rho(**unit):
        lines = preview(project(**case, **unit), 2000).lines
        counts = [line for line in lines if line.what.startswith("counts")]
        return np.array([line.sigma * math.sqrt(line.rho) for line in counts])

    assert per_root_rho() == pytest.approx(1)
    assert per_root_rho(rows_per_person=3) == pytest.approx(3)
    assert per_root_rho(neighbors="add-remove") == pytest.approx(1 / math.sqrt(2))


def test_add_remove_hides_the_number_of_rows(case):
    made = release(project(**case, neighbors="add-remove"), table())
    facts = made.to_json()
    assert facts["rows"] == made.rows
    assert abs(made.rows - 2000) < 300, "six standard deviations and more"
    totals = (release(project(**case, neighbors="add-remove"), table()).model.total for _ in range(3))
    assert made.model.total != 2000.0 or any(t != 2000.0 for t in totals), "the total is estimated from noisy counts"


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_a_release_pays_for_the_unit_of_its_plan(case, neighbors):
    made = release(project(**case, neighbors=neighbors, rows_per_person=3), table())
    delta = 3 * (math.sqrt(2) if neighbors == "replace-one" else 1)
    for d in bought(made.spending, "count"):
        assert d.scale == pytest.approx(delta / math.sqrt(2 * d.rho), rel=1e-9)
    for c in bought(made.spending, "choice"):
        replaced = neighbors == "replace-one"
        if c.what in EDGE:
            expected: float = 6 if replaced else 3
        elif c.what == "three-way table":
            expected = 12 if replaced else 6
        else:
            expected = 9 + 18 / 2000 if replaced else 6
        assert c.sensitivity == pytest.approx(expected)
        assert c.scale == pytest.approx(c.sensitivity / math.sqrt(2 * c.rho), rel=1e-9)


def test_basic_accounting_spends_less_and_optimal_allocation_gives_larger_tables_more(case):
    made = release(project(**case, accounting="basic", allocation="optimal"), table())
    assert 0 < made.spending.rho <= made.budget.rho
    if not isinstance(made.fitted, Marginals):  # training steps are priced in ρ under either accounting
        return
    assert made.spending.rho < made.budget.rho
    counts = [d for d in bought(made.spending, "count") if d.pool != "selection"]
    first = sorted((d.cells, d.rho) for d in counts[: len(SCHEMA.columns)])
    assert first[0][0] < first[-1][0]
    for (cells, rho), (more, higher) in itertools.pairwise(first):
        assert cells == more or rho < higher


@settings(max_examples=60)
@given(
    roles=st.lists(st.sampled_from(["outcome", "protected", "admissible", "inadmissible", ""]), min_size=6, max_size=6),
    regime=st.sampled_from(["causal", "graphical", "predictive"]),
    target=st.sampled_from(["y", "a", "p"]),
    more=st.sampled_from([{}, {"x": 1.0}, {"s": 3.0}]),
    epsilon=st.sampled_from([0.3, 8.0]),
    three_way=st.sampled_from([0, 3]),
    fair=st.booleans(),
)
def test_prism_never_leaves_its_frame(roles, regime, target, more, epsilon, three_way, fair):
    """All separations hold for any roles, regime, joint table, three-way tables and targets."""
    by_role = {role: tuple(n for n, r in zip(SCHEMA.names, roles, strict=True) if r == role) for role in set(roles)}
    roles_of = Roles(**{role: by_role.get(role, ()) for role in ("outcome", "protected", "admissible", "inadmissible")})
    plan = Plan(
        "prism",
        epsilon,
        1e-6,
        target=target,
        fair=fair,
        targets={k: v for k, v in more.items() if k != target},
        options={"regime": regime, "three_way": three_way},
    )
    try:
        made = release(Project("t", SCHEMA, plan, DAG, roles_of), table(600))
    except EspalierError:
        return
    assert all(s.holds(made.edges) for s in made.plan_frame.separations)
    assert made.spending.rho <= made.budget.rho


def test_a_constant_cause_costs_nothing_and_three_way_without_features_is_no_error():
    causes = Dag((("a", "y"), ("k", "y"), ("s", "y")))
    for dag, plan in ((causes, {}), (Dag((("s", "a"),)), {"three_way": 2})):
        seen = preview(project(dag, method="prism", regime="causal", **plan), 100_000)
        assert seen.spent <= seen.budget.rho


def test_several_targets_divide_the_task_by_weight():
    plans = [project(method="prism", targets={"x": weight}, epsilon=2.0) for weight in (1.0, 4.0)]
    even, more = (bought(release(plan, table()).spending, "count") for plan in plans)

    def task(found, target):
        return sum(
            d.rho for d in found if d.pool.startswith("task") and target in d.columns and d.columns != ("x", "y")
        )

    assert task(more, "x") / task(more, "y") > 2 * task(even, "x") / task(even, "y")


def test_prism_reports_its_features_and_what_the_fence_refused():
    causal = release(project(method="prism", regime="causal"), table())
    assert causal.to_json()["selected"] == ["a"]
    assert not any("y" in e and "x" in e for e in causal.edges), "the child must not leak back in"
    fair = release(project(method="prism", fair=True, features=2), table()).to_json()
    assert fair["refused"] == ["s"]
    assert "s" not in fair["selected"]
    assert len(fair["selected"]) == 2


def test_prefair_attaches_the_outcome_to_admissible_columns_only():
    for _ in range(5):
        made = release(project(method="prefair"), table())
        assert all(set(e) == {"a", "y"} for e in made.edges if "y" in e)


def test_no_admissible_column_gives_a_forest_and_spends_all():
    bare = Project(
        "t",
        SCHEMA,
        Plan("privci", 1.0, 1e-6, target="y"),
        DAG,
        Roles(outcome=("y",), protected=("s", "a", "p", "k", "x")),
    )
    made = release(bare, table())
    assert not any("y" in e for e in made.edges)
    assert epsilon_of(1.03 * made.spending.rho, 1e-6) > 1.0
    assert preview(bare, 2000).forest


def test_one_column_alone():
    schema = Schema((Column("y", "categorical", ("no", "yes")),))
    rows = Table(schema, {"y": np.array([0, 1, 1], np.uint8)}, 3)
    for method in ("mst", "independent", "prism"):
        made = release(Project("t", schema, Plan(method, 1.0, 1e-6, target="y")), rows)
        assert epsilon_of(1.03 * made.spending.rho, 1e-6) > 1.0
        assert made.rows == 3
