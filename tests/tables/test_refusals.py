"""One pass finds every column that does not fit, whichever way the table is read, and one refusal names them all."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import parquet

from espalier.core.errors import TableError
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.reading import read_table
from espalier.core.tables.refusals import together
from espalier.core.tables.relation import open_relation
from espalier.core.tables.table import Table

SCHEMA = Schema(tuple(Column(name, "categorical", ("x", "y")) for name in "abcd"))
ROWS = {"a": ["x", "hush", "x"], "b": ["y", "x", None], "c": ["x", "y", "y"], "d": ["x", "x", "hush"]}


def check(refused: TableError) -> None:
    assert refused.data["columns"] == ["a", "b", "d"]
    assert refused.data["column"] == "a"
    assert "each of the columns 'a', 'd' contains a value that its schema does not declare" in str(refused)
    assert "column 'b' has empty cells" in str(refused)
    assert "hush" not in str(refused)


def test_files_are_refused_once(tmp_path):
    parquet.write_table(pa.table(ROWS), tmp_path / "t.parquet", row_group_size=1)
    for path in (tmp_path / "t.parquet", tmp_path / "t.csv"):
        if path.suffix == ".csv":
            lines = zip(*ROWS.values(), strict=True)
            path.write_text("a,b,c,d\n" + "".join(",".join(cell or "" for cell in line) + "\n" for line in lines))
        with pytest.raises(TableError) as refused:
            open_relation(path).snapshot(SCHEMA)
        check(refused.value)
        with pytest.raises(TableError) as refused:
            Table.encode(read_table(path), SCHEMA)
        assert refused.value.data["columns"] == ["a", "b", "d"]


@pytest.mark.parametrize("keeps", [True, False])
def test_postgres_refuses_once(postgres, keeps):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("CREATE TABLE misfit (a text, b text, c text, d text)")
        for line in zip(*ROWS.values(), strict=True):
            con.execute("INSERT INTO misfit VALUES (%s, %s, %s, %s)", line)
        try:
            url = postgres if keeps else f"{postgres}&options=-cdefault_transaction_read_only%3Don"
            relation = open_relation(url, "misfit")
            assert relation.remote == keeps
            with pytest.raises(TableError) as refused:
                relation.snapshot(SCHEMA)
            check(refused.value)
            relation.close()
        finally:
            con.execute("DROP TABLE misfit")


def test_every_missing_and_every_mistyped_column_is_named(tmp_path):
    parquet.write_table(pa.table({"a": ["x"], "b": [b"x"], "c": [["x"]]}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match="these columns are missing: 'd', 'e'") as refused:
        open_relation(tmp_path / "t.parquet").snapshot(
            Schema(tuple(Column(name, "categorical", ("x", "y")) for name in "ade"))
        )
    assert refused.value.data["columns"] == ["d", "e"]
    with pytest.raises(TableError) as refused:
        open_relation(tmp_path / "t.parquet").snapshot(Schema(SCHEMA.columns[:3]))
    assert refused.value.data["columns"] == ["b", "c"]


def test_one_error_stays_as_it_is():
    one = TableError("column 'a' is odd", column="a")
    assert together([one]) is one
