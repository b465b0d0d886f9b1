"""An interrupted release is finished by a job of the server, with a table in memory or in place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from espalier.core.errors import Unfinished
from espalier.core.ledger.ledger import Ledger
from espalier.core.privacy.journal import Journal
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.server.release_job import Unended, finish
from espalier.core.server.worker import Limits, run_apart
from espalier.core.tables.relation import open_relation

SCHEMA = Schema((Column("a", "categorical", ("x", "y")), Column("b", "categorical", ("x", "y"))))
PROJECT = Project("clinic", SCHEMA, Plan("mst", epsilon=1.0), one_row_per_person=True)


@pytest.mark.parametrize("apart", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_table_of_the_server_is_read_for_what_is_missing(
    apart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, file = tmp_path / "ledger.db", tmp_path / "tables" / "t.csv"
    file.parent.mkdir()
    file.write_text("a,b\n" + "x,y\ny,y\n" * 200)
    monkeypatch.setenv("ESPALIER_LEDGER", str(where))
    monkeypatch.setenv("ESPALIER_LEDGER_KEY", str(tmp_path / "key"))
    monkeypatch.setenv("ESPALIER_SERVER_TABLES", str(file.parent))
    Ledger(where, create=True).open_table("people", epsilon=2, delta=1e-6, who="anna")
    real: Callable[..., bytes] = Journal.answer

    def crash(own: Journal, *asked: Any) -> bytes:
        if own.place == 1:
            raise KeyboardInterrupt
        return real(own, *asked)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "answer", crash)
        with pytest.raises(KeyboardInterrupt):
            release(PROJECT, open_relation(file), ledger=Ledger(where).account("people", "anna"))
    (entry,) = Ledger(where).population_of("people").entries
    assert entry.status == "reserved"
    begun: list[bool] = []

    def run(far: tuple[str, str | None] | None) -> Any:
        order = Unended("people", entry.id, "anna", None, far)
        if apart:
            return run_apart(finish, order, lambda *_: None, lambda: begun.append(True), Limits())
        return finish(order, lambda *_: None, lambda: begun.append(True))

    with pytest.raises(Unfinished, match="the next one needs the rows"):
        run(None)
    made = run((str(file), None))
    assert begun
    assert made.trouble == ""
    (entry,) = Ledger(where).population_of("people").entries
    assert entry.status == "spent"
    assert entry.counted == pytest.approx(made.rho)
    assert entry.released is not None
