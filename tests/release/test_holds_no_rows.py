"""A release contains none of its private rows, and a worker can send it to the server."""

from __future__ import annotations

import io
from typing import Any

import pytest

from espalier.core.privacy.curator import PrivateCurator
from espalier.core.release.artefact import Release
from espalier.core.release.spend import release
from espalier.core.server.worker import _Pickler
from espalier.core.tables.code_file import CodeFile
from espalier.core.tables.panel import Panel
from espalier.core.tables.postgres_snapshot import PostgresSnapshot
from espalier.core.tables.relation import Relation
from espalier.core.tables.snapshot import Snapshot
from espalier.core.tables.table import Table
from espalier.core.tables.text_table import TextTable
from tests.methods.test_contract import CASES, project, table
from tests.methods.test_linked_method import panel_of, project_of

QUICK = ("workload", "prism", "privci exact", "decoder", "privbayes", "fpt-lp", "mst with regressions")
"""Methods of different kinds; the others run at night."""
ROWS = (CodeFile, Panel, PostgresSnapshot, PrivateCurator, Relation, Snapshot, Table, TextTable)


class Types(_Pickler):
    """Pickles as the worker does, and notes the types of all parts."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), [])
        self.found: set[type] = set()

    def reducer_override(self, thing: Any) -> Any:
        self.found.add(type(thing))
        return NotImplemented


def check(made: Release) -> None:
    noted = Types()
    noted.dump(made)
    assert not {kind for kind in noted.found if issubclass(kind, ROWS)}


@pytest.mark.parametrize(
    "name", [one if one in QUICK else pytest.param(one, marks=pytest.mark.nightly) for one in CASES]
)
def test_a_release_of_every_method_is_handed_over_without_rows(name: str) -> None:
    check(release(project(**CASES[name]), table(400)))


def test_a_release_of_linked_tables_is_handed_over_without_rows() -> None:
    check(release(project_of(), panel_of(project_of(), 400)))


def test_a_table_inside_is_found() -> None:
    noted = Types()
    noted.dump({"fit": [table(20)]})
    assert Table in noted.found
