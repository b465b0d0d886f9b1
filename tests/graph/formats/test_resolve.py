"""Links that a DAG cannot express: the user is asked, and the answer is applied and reported. Nothing is decided
silently.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espalier.core.errors import GraphError
from espalier.core.graph.annotations import Annotation
from espalier.core.graph.dag import Dag
from espalier.core.graph.formats import graph_of, read_graph, write_graph
from espalier.core.graph.formats.mixed import Edge, MixedGraph, Node
from espalier.core.graph.formats.resolve import DROP, MARGINALISE, resolve, taken_over
from espalier.core.graph.roles import Roles
from espalier.core.project.file import Project


def kinds(text: str, columns: tuple[str, ...] | None = None) -> list[tuple[str, int, str | None]]:
    return [(q.kind, q.line, q.default) for q in resolve(read_graph(text), columns).questions]


def test_a_plain_dag_asks_nothing() -> None:
    done = resolve(read_graph("dag {\na -> b\nb -> c\n}"), ("c", "b", "a", "d"))
    assert (done.questions, done.remarks) == ((), ())
    assert done.dag is not None
    assert done.dag.edges == (("a", "b"), ("b", "c"))


def test_an_edge_without_direction_has_to_be_given_one() -> None:
    graph = read_graph("dag {\na -- b\nb @-> c\nc @-@ d\nd @-- a\n}")
    asked = resolve(graph)
    assert asked.dag is None
    assert [(q.kind, q.line, q.default, list(q.choices)) for q in asked.open] == [
        ("undirected", 2, None, ["->", "<-", "drop"]),
        ("partly directed", 3, None, ["->", "share", "drop"]),
        ("undirected", 4, None, ["->", "<-", "share", "drop"]),
        ("undirected", 5, None, ["->", "<-", "drop"]),
    ]
    keys = [q.key for q in asked.open]
    assert resolve(graph, None, dict(zip(keys[:3], ["<-", "->", "share"], strict=True))).dag is None
    done = resolve(graph, None, dict(zip(keys, ["<-", "->", "share", "drop"], strict=True)))
    assert done.dag is not None
    assert done.dag.edges == (("b", "a"), ("b", "c"))
    assert done.dag.hidden == (("c", "d"),)
    assert len(done.remarks) == 3


def test_an_answer_that_is_no_choice_counts_for_nothing() -> None:
    graph = read_graph("dag { a -- b }")
    (question,) = resolve(graph).open
    assert resolve(graph, None, {question.key: "sideways"}).dag is None


def test_a_bidirected_edge_is_a_shared_unmeasured_cause() -> None:
    done = resolve(read_graph("dag {\na <-> b\na -> b\n}"))
    assert [(q.kind, q.line, q.default) for q in done.questions] == [("bidirected", 2, "share")]
    assert done.dag is not None
    assert done.dag.edges == (("a", "b"),)
    assert (done.dag.hidden, done.dag.confounded) == ((("a", "b"),), (("a", "b"),))


def test_one_cycle_at_a_time_is_named_with_its_arrows() -> None:
    graph = read_graph("dag {\na -> b\nb -> c\nc -> a\nc -> b\nd -> d\n}")
    answers: dict[str, str] = {}
    asked = []
    while (now := resolve(graph, None, answers)).open:
        (question,) = now.open
        assert question.kind == "cycle"
        asked.append(question.text)
        answers[question.key] = next(v for v, words in question.choices.items() if "'c' →" in words)
    assert now.dag is not None
    assert sorted(now.dag.edges) == [("a", "b"), ("b", "c")]
    assert len(asked) == 2, "an arrow from a column to itself has one solution, which is proposed"
    assert any("'d' cannot be its own cause" in q.text for q in now.questions)
    assert sum("closes a cycle" in told for told in now.remarks) == 3


def test_a_name_that_is_no_column_is_offered_the_like() -> None:
    columns = ("Age (years)", "sex", "blood_pressure", "outcome", "Größe")
    text = "dag {\nage_years -> outcome\nSex -> outcome\nBloodPresure -> outcome\nzzz -> outcome\nGro\u0308ße -> Sex\n}"
    graph = read_graph(text)
    found = resolve(graph, columns).questions
    assert {q.key: (q.line, q.default) for q in found} == {
        "node:age_years": (2, "column:Age (years)"),
        "node:Sex": (3, "column:sex"),
        "node:BloodPresure": (4, None),
        "node:zzz": (5, None),
        "node:Gro\u0308ße": (6, "column:Größe"),
    }
    assert "column:outcome" not in found[0].choices, "a column that is present under its own name is not offered"
    assert found[2].near == ("blood_pressure",)
    assert next(iter(found[2].choices)) == "column:blood_pressure", "a similar name comes first, and is asked about"
    answers = {"node:zzz": DROP, "node:Sex": DROP, "node:BloodPresure": "column:blood_pressure"}
    done = resolve(graph, columns, answers)
    assert done.dag is not None
    assert set(done.dag.edges) == {("Age (years)", "outcome"), ("blood_pressure", "outcome")}
    assert "'age_years' is the column 'Age (years)'" in done.remarks


@pytest.mark.parametrize("name", ["age_group", "patientAge", "Age at admission"])
def test_a_name_that_shares_its_words_with_a_column_is_asked_for(name: str) -> None:
    (question,) = resolve(MixedGraph((Node(name),)), ("sex", "age")).open
    assert next(iter(question.choices)) == "column:age"


def test_a_column_may_be_called_like_an_answer() -> None:
    columns = ("drop", "marginalise", "none", "column:x")
    done = resolve(read_graph('dag { drop -> marginalise; marginalise -> none; none -> "column:x" }'), columns)
    assert done.questions == ()
    assert done.dag is not None
    assert len(done.dag.edges) == 3


def test_an_answer_holds_when_another_one_changes() -> None:
    graph = read_graph("dag { u -> a; a -- b; b -- c }")
    asked = {q.text: q.key for q in resolve(graph, ("a", "b", "c")).open}
    answers = {asked["'b' — 'c' has no direction"]: "<-", asked["'a' — 'b' has no direction"]: "->"}
    for fate in (DROP, MARGINALISE):
        done = resolve(graph, ("a", "b", "c"), {**answers, "node:u": fate})
        assert done.dag is not None
        assert done.dag.edges == (("a", "b"), ("c", "b"))


def test_two_nodes_cannot_be_one_column() -> None:
    done = resolve(read_graph("dag { Sex -> y; SEX -> y }"), ("sex", "y"))
    assert done.dag is None
    assert done.clashes == ("'Sex' and 'SEX' cannot all be the column 'sex'; choose different columns",)


def test_a_label_helps_to_find_the_column() -> None:
    (question,) = resolve(read_graph('digraph { x [label="Age"]; x -> y }'), ("age", "y")).questions
    assert (question.default, question.text) == ("column:age", "'x' (labelled 'Age') is not a column of the table")


def test_a_latent_node_is_marginalised_or_left_out() -> None:
    graph = read_graph("dag {\nU [latent]\na -> U -> b\nU -> c\nc -> d\n}")
    done = resolve(graph)
    assert [(q.kind, q.line, q.default) for q in done.questions] == [("latent", 2, MARGINALISE)]
    assert done.dag is not None
    assert set(done.dag.edges) == {("a", "b"), ("a", "c"), ("c", "d")}
    assert done.dag.hidden == (("b", "c"),)
    assert done.remarks == ("'U' is marginalised: 'a' → 'b', 'c'; 'b', 'c' share an unmeasured cause",)
    dropped = resolve(graph, None, {"node:U": DROP})
    assert dropped.dag is not None
    assert dropped.dag.edges == (("c", "d"),)
    assert dropped.remarks == ("'U' is left out, with its links", "links removed together with their names: 3")
    kept = resolve(graph, None, {"node:U": "column:U"})
    assert kept.dag is not None
    assert ("a", "U") in kept.dag.edges


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(list(itertools.combinations("abcdefg", 2))), unique=True),
    st.sets(st.sampled_from("abcdefg"), max_size=5),
)
def test_marginalising_keeps_every_separation_of_what_is_left(pairs: list[tuple[str, str]], hidden: set[str]) -> None:
    """The DAG with its unmeasured causes has the separations of the whole DAG, for all triples and sets."""
    nodes = tuple(Node(name, latent=name in hidden) for name in "abcdefg")
    done = resolve(MixedGraph(nodes, tuple(Edge(a, b) for a, b in pairs)))
    assert done.dag is not None
    whole, left = nx.DiGraph(pairs), nx.DiGraph(done.dag.links)
    whole.add_nodes_from("abcdefg")
    seen = [n for n in "abcdefg" if n not in hidden]
    left.add_nodes_from(seen)
    for a, b in itertools.combinations(seen, 2):
        others = [n for n in seen if n not in (a, b)]
        for size in (0, 1, 2, len(others)):
            for given_ in itertools.combinations(others, size):
                assert nx.is_d_separator(whole, {a}, {b}, set(given_)) == nx.is_d_separator(left, {a}, {b}, set(given_))


def test_marginalising_too_much_is_refused_by_name() -> None:
    names = [f"n{i}" for i in range(800)]
    edges = [Edge(n, "U") for n in names[:400]] + [Edge("U", n) for n in names[400:]]
    graph = MixedGraph((Node("U", latent=True), *map(Node, names)), tuple(edges))
    with pytest.raises(GraphError, match="'U' would add 160,000 arrows; leave it out"):
        resolve(graph)
    assert resolve(graph, None, {"node:U": DROP}).dag is not None


def test_roles_are_proposed_and_none_is_given_in_silence() -> None:
    text = "dag {\nx [exposure]\ny [outcome]\nz [adjusted]\nw [adjusted,latent]\nx -> y\nz -> y\nw -> y\n}"
    done = resolve(read_graph(text))
    assert {q.key: (q.line, q.default) for q in done.questions if q.kind == "role"} == {
        "role:exposure": (2, "none"),
        "role:outcome": (3, "outcome"),
        "role:adjusted": (4, "none"),
    }
    assert done.roles == {"outcome": ("y",)}
    assert "'x': exposure in the file; no role is assigned here" in done.remarks
    done = resolve(read_graph(text), None, {"role:exposure": "protected", "role:adjusted": "admissible"})
    assert done.roles == {"protected": ("x",), "outcome": ("y",), "admissible": ("z",)}


def test_a_matrix_is_asked_for_its_direction() -> None:
    graph = read_graph(",a,b\na,0,1\nb,0,0\n")
    done = resolve(graph)
    assert [(q.kind, q.default) for q in done.questions] == [("matrix", "row")]
    assert done.dag is not None
    assert done.dag.edges == (("a", "b"),)
    turned = resolve(graph, None, {"matrix": "column"}).dag
    assert turned is not None
    assert turned.edges == (("b", "a"),)


def test_what_was_said_of_an_arrow_travels_as_json(samples: Path) -> None:
    project = Project.load(samples / "hiring.json")
    first = project.dag.edges[0]
    dag = project.dag.annotated(first, Annotation("a note", "contested", "Smith 2020", True))
    dag = dag.annotated((first[0],), Annotation("of a column"))
    text = write_graph(graph_of(dag, project.roles, project.schema.names), "json")
    done = resolve(read_graph(text), project.schema.names)
    assert done.dag == dag
    assert Roles(**done.roles) == project.roles


def test_what_was_said_of_a_dropped_arrow_is_told() -> None:
    text = '{"directed": true, "nodes": [{"id": "a"}, {"id": "b", "latent": true}], "edges": [{"source": "a", "target": "b", "annotation": {"note": "x"}}]}'  # noqa: E501
    assert "the notes on 'a' → 'b' are removed with it" in resolve(read_graph(text), None, {"node:b": DROP}).remarks


def test_taking_over_replaces_or_adds_and_forgets_nothing_that_was_said() -> None:
    have = Dag((("a", "b"),), {}, {"a": (1, 2)}).annotated(("a", "b"), Annotation("old", "plausible"))
    have = have.annotated(("c",), Annotation("mine", source="book"))
    new = Dag((("b", "c"),), {}, {"b": (3, 4)}).annotated(("c",), Annotation("theirs", "contested", "web"))
    there = taken_over(have, new, keep=False)
    assert (there.edges, there.positions) == ((("b", "c"),), {"b": (3, 4)})
    assert there.annotation("a", "b") == Annotation("old", "plausible")
    assert there.annotation("c") == Annotation("mine; theirs", "contested", "book")
    both = taken_over(have, new, keep=True)
    assert both.edges == (("a", "b"), ("b", "c"))
    assert taken_over(both, new, keep=True) == both, "a second time changes nothing"
    with pytest.raises(GraphError, match="cycle"):
        taken_over(have, Dag((("b", "a"),)), keep=True)


def test_the_real_graphs_settle(shared_data: Path) -> None:
    bike = resolve(read_graph((shared_data / "dags/bike_theft.dagitty.txt").read_bytes()))
    assert [q.kind for q in bike.questions] == ["latent", "latent", "role", "role", "role"]
    assert bike.dag is not None
    assert len(bike.dag.edges) == 23
    loop = resolve(read_graph((shared_data / "dags/feedback_network6.tetrad.txt").read_bytes()))
    assert loop.dag is None
    assert [(q.kind, q.line) for q in loop.open] == [("cycle", 8)]
    assert "'X3' → 'X4' → 'X3'" in loop.open[0].text


def test_other_words_for_the_same_thing_are_offered_first_and_never_taken_unasked() -> None:
    found = resolve(read_graph("dag { Gender -> Wages }"), ("sex", "salary", "region"))
    assert [(q.text.split("'")[1], next(iter(q.choices)), q.default) for q in found.open] == [
        ("Gender", "column:sex", None),
        ("Wages", "column:salary", None),
    ]
    assert found.dag is None


def test_very_many_columns_that_cause_themselves_are_left_out_at_once() -> None:
    """Previously, the search for cycles began again after each one: 2,000 took five seconds."""
    columns = tuple(f"c{i}" for i in range(4000))
    graph = read_graph("digraph{" + "".join(f"{c}->{c};" for c in columns) + "}", "a.gv")
    began = time.process_time()
    assert len(resolve(graph, columns).questions) == len(columns)
    assert time.process_time() - began < 8
