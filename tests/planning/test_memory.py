"""Memory is planned in bytes of input, model and output, and checked before anything is drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from espalier.core import process_memory
from espalier.core.cli.main import main
from espalier.core.errors import SizeError
from espalier.core.planning import memory
from espalier.core.planning.preview import preview
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.project.plan import CELLS_IN_MEMORY, IN_MEMORY, rows_in_memory, rows_shown
from espalier.core.release.spend import release
from tests.methods.test_contract import project, table


def test_a_plan_states_input_model_and_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = project(method="mst", delta=1e-12)
    small, large = (preview(given, rows).memory for rows in (1_000, 900_000))
    assert small.process == large.process
    assert small.model == large.model == preview(given, 1_000).size.bytes
    assert 800 < large.input / small.input < 1000
    assert 800 < large.output / small.output < 1000
    assert large.total == large.process + large.input + large.model + large.output
    assert preview(given, 1_000_000_000).memory.total < 3 * large.total, "larger tables are read and written in batches"
    (tmp_path / "p.json").write_text(given.dumps())
    assert main(["plan", str(tmp_path / "p.json"), "--rows", "1000"]) == 0
    assert "memory: about " in capsys.readouterr().out
    assert main(["plan", str(tmp_path / "p.json"), "--rows", "1000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["memory"]["total"] == small.total


def test_a_confidential_number_of_rows_counts_no_rows() -> None:
    given = project(method="mst", neighbors="add-remove")
    unknown, estimated = preview(given).memory, preview(given, 1_000).memory
    assert (unknown.rows, unknown.input, unknown.output) == (None, 0, 0)
    assert estimated.input > 0


def test_too_little_memory_is_refused_before_a_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    given, rows = project(method="mst"), table(400)
    with monkeypatch.context() as patch:
        patch.setattr(memory, "available", lambda: 10 << 20)
        patch.setattr(memory, "used", lambda: 100 << 20)
        patch.setattr(PrivateCurator, "__init__", lambda *_, **__: pytest.fail("something was drawn"))
        with pytest.raises(SizeError, match="more than this process can use. Nothing was drawn"):
            release(given, rows)
    assert release(given, rows).rows == 400


def test_limits_count_cells() -> None:
    assert rows_in_memory(12) == IN_MEMORY
    assert rows_in_memory(200) == CELLS_IN_MEMORY // 200 == rows_shown(200)
    assert rows_shown(12) == 100_000
    assert rows_in_memory(10**9) == 1


def test_what_a_process_can_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine, a container of either kind, and the limits of the process itself."""
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    monkeypatch.setattr(process_memory, "_PROC", proc)
    monkeypatch.setattr(process_memory, "_GROUPS", groups)
    monkeypatch.setattr(process_memory, "_of_limits", lambda: iter(()))
    assert process_memory.available() is None
    put(proc / "meminfo", "MemTotal: 9000 kB\nMemAvailable: 8000 kB\n")
    assert process_memory.available() == 8000 << 10
    put(proc / "self" / "cgroup", "0::/a\n")
    put(groups / "a" / "memory.max", "max")
    put(groups / "a" / "memory.current", "5")
    assert process_memory.available() == 8000 << 10
    put(groups / "a" / "memory.max", "3000000")
    put(groups / "a" / "memory.current", "2000000")
    put(groups / "a" / "memory.stat", "anon 7\ninactive_file 500000\n")
    assert process_memory.available() == 1_500_000
    put(proc / "self" / "cgroup", "4:cpu,memory:/b\n0::/\n")
    put(groups / "memory" / "memory.limit_in_bytes", "1000")
    put(groups / "memory" / "memory.usage_in_bytes", "400")
    assert process_memory.available() == 600


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
