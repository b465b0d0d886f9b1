"""``python -m core graph``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from espalier.core.cli.graph import FORMAT_NAMES
from espalier.core.cli.main import main
from espalier.core.graph.formats import read_graph

DAGITTY = """dag {
U [latent,pos="0,1"]
"a b" [exposure]
"a b" -> y
U -> y
y <-> c
c -- d
}
"""


def run(*args: object) -> int:
    try:
        return main([str(a) for a in ("graph", *args)])
    except SystemExit as stop:
        return int(stop.code or 0)


def test_it_prints_nodes_edges_and_every_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "g.txt").write_text(DAGITTY)
    assert run(tmp_path / "g.txt") == 0
    out = capsys.readouterr().out
    assert out.startswith("g.txt: dagitty, 5 nodes, 4 edges\n")
    assert "  'U'  (latent, at 0, 1)\n  'a b'  (exposure)\n  'y'\n" in out
    assert "  'a b' → 'y'\n  'U' → 'y'\n  'y' ↔ 'c'\n  'c' — 'd'\n" in out
    for line in (
        "line 2: 'U' is latent",
        "line 6: 'y' ↔ 'c'",
        "line 7: 'c' — 'd' has no direction",
        "line 3: the file",
    ):
        assert line in out


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_it_writes_every_format_and_says_what_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], format: str
) -> None:
    (tmp_path / "g.txt").write_text(DAGITTY)
    assert run(tmp_path / "g.txt", "--to", format) == 0
    out, err = capsys.readouterr()
    got = read_graph(out)
    assert {n.name for n in got.nodes} == {"U", "a b", "y", "c", "d"}
    assert len(got.edges) == (2 if format in ("bif", "bnlearn") else 4)
    assert ("arrows only; left out: 'y' ↔ 'c', 'c' — 'd'" in err) == (format in ("bif", "bnlearn"))
    assert ("note: " in err) == (format not in ("dagitty", "dot", "gml", "graphml", "json"))


BAD = {
    "broken.dot": ("digraph {\na -> b\nb ->\n}", "line 4: "),
    "cycle.csv": ("cause,effect\na,b\nb,c\nc,a\n", "line 4: the arrows form a cycle: "),
    "self.csv": ("cause,effect\na,b\nb,b\n", "line 3: 'b' cannot be its own cause"),
    "empty.gml": ("", "line 1: "),
    "text.txt": ("hello", "line 1: "),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("to", [(), ("--to", "json")])
def test_a_broken_file_ends_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, to: tuple[str, ...]
) -> None:
    text, words = BAD[name]
    (tmp_path / name).write_text(text)
    assert run(tmp_path / name, *to) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"espalier: {tmp_path / name}: {words}")
    assert len(err.strip().splitlines()) == 1
    assert not (to and out)


def test_bad_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "g.txt").write_text(DAGITTY)
    for args in ((), ("none.gml",), (tmp_path,), (tmp_path / "g.txt", "--to", "pdf")):
        assert run(*args) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_the_real_loop_is_refused_by_name(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shared_data / "dags/feedback_network6.tetrad.txt") == 2
    out, err = capsys.readouterr()
    assert "8 nodes, 8 edges" in out
    assert "line 8: the arrows form a cycle: 'X3' → 'X4' → 'X3'; remove an arrow of the cycle" in err


def test_a_real_network_becomes_json(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shared_data / "asia.bif", "--to", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (len(found["nodes"]), len(found["edges"])) == (8, 8)
