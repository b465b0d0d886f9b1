"""Numbers and truth values are one category in every reader, however a file or an engine writes them."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from espalier.core.errors import SchemaError
from espalier.core.planning.preview import preview
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.reading import read_table
from espalier.core.tables.relation import open_relation
from espalier.core.tables.table import Table

NUMBERS = {
    "csv": ["0", "1.0", "0.00", "2"],
    "whole": pa.array([0, 1, 0, 2]),
    "float": pa.array([0.0, 1.0, 0.0, 2.0]),
    "decimal": pa.array([Decimal("0.00"), Decimal("1.00"), Decimal("0.00"), Decimal("2.00")]),
    "text": pa.array(["0", "1", "0.0", "2.00"]),
}
TRUTHS = {
    "csv": ["true", "False", "1", "0.0"],
    "boolean": pa.array([True, False, True, False]),
    "whole": pa.array([1, 0, 1, 0]),
    "text": pa.array(["TRUE", "false", "True", "0"]),
}
KINDS = [
    (("0", "1", "2"), NUMBERS, [0, 1, 0, 2]),
    (("0.0", "1.0", "2.0"), NUMBERS, [0, 1, 0, 2]),
    (("false", "true"), TRUTHS, [1, 0, 1, 0]),
    (("False", "True"), TRUTHS, [1, 0, 1, 0]),
    (("0", "1"), TRUTHS, [1, 0, 1, 0]),
    (("1.00", "0"), TRUTHS, [0, 1, 0, 1]),
]


def counts(codes: list[int], size: int) -> list[int]:
    return np.bincount(codes, minlength=size).tolist()


@pytest.mark.parametrize(("categories", "tables", "codes"), KINDS)
def test_a_plan_travels_between_files_and_engines(categories, tables, codes, tmp_path, postgres):
    import psycopg

    schema, expected = Schema((Column("a", "categorical", categories),)), counts(codes, len(categories))
    found = {}
    for name, cells in tables.items():
        if name == "csv":
            path = tmp_path / "t.csv"
            path.write_text("a\n" + "".join(f"{cell}\n" for cell in cells))
            found["csv"] = open_relation(path).snapshot(schema).count(("a",)).tolist()
        else:
            path = tmp_path / f"{name}.parquet"
            parquet.write_table(pa.table({"a": cells}), path)
            found[name] = open_relation(path).snapshot(schema).count(("a",)).tolist()
            with duckdb.connect(str(tmp_path / f"{name}.duckdb")) as con:
                con.execute(f"CREATE TABLE t AS FROM '{path}'")
            relation = open_relation(f"duckdb://{tmp_path}/{name}.duckdb", "t")
            found[f"{name} in DuckDB"] = relation.snapshot(schema).count(("a",)).tolist()
            relation.close()
            kind = {"whole": "int", "float": "float8", "decimal": "numeric(9, 2)", "boolean": "boolean", "text": "text"}
            with psycopg.connect(postgres, autocommit=True) as con:
                con.execute(f"CREATE TABLE travels (a {kind[name]})")
                for cell in cells.to_pylist():
                    con.execute("INSERT INTO travels VALUES (%s)", (cell,))
                relation = open_relation(postgres, "travels")
                found[f"{name} in PostgreSQL"] = relation.snapshot(schema).count(("a",)).tolist()
                relation.close()
                con.execute("DROP TABLE travels")
        in_memory = Table.encode(read_table(path), schema).codes["a"].tolist()
        assert in_memory == codes, name
    assert found == dict.fromkeys(found, expected)


def codes_of(column: Column, *texts: str) -> list[int]:
    return column.judge(texts).tolist()


def test_other_texts_are_compared_as_written():
    mixed = Column("a", "categorical", ("250", "V45", "007"))
    assert codes_of(mixed, "250", "250.0", "250.00", "7", "007") == [0, 3, 3, 3, 2]
    assert codes_of(Column("a", "categorical", ("01", "02")), "1", "1.0", "01") == [2, 2, 0]
    assert codes_of(Column("a", "categorical", ("no", "true")), "True", "1", "true") == [2, 2, 1]
    assert codes_of(Column("a", "categorical", ("1", "2")), "true", "1e0", "1.00000", "+1", "01", " 1") == [2] * 6
    assert codes_of(Column("a", "categorical", ("7.5", "-2")), "7.50", "-2.0", "7.05") == [0, 1, 2]


def test_a_mark_of_a_missing_value_stays_a_mark():
    column = Column("a", "categorical", ("true", "false"), missing=True, missing_marks=("0.0",))
    assert codes_of(column, "0", "0.0", "1") == [1, 2, 0]


def test_groups_have_spellings_too():
    column = Column("a", "categorical", ("1", "9"), groups=(("9", ("7", "8")),))
    assert codes_of(column, "1.0", "7.0", "8.00", "9.0") == [0, 1, 1, 1]
    joined = Column("a", "categorical", ("1", "9"), groups=(("9", ("7", "7.0")),))
    assert joined.doubled is None, "both belong to one group"


@pytest.mark.parametrize("categories", [("1", "1.0"), ("true", "True"), ("0", "1", "0.00")])
def test_two_categories_that_are_one_value_are_refused_with_the_plan(categories):
    project = Project("p", Schema((Column("a", "categorical", categories),)), Plan("mst", 1.0, 1e-6))
    with pytest.raises(SchemaError, match="are the same value"):
        preview(project, 100)
    assert Project.loads(project.dumps()).schema == project.schema, "an old project stays readable"
    assert codes_of(project.schema["a"], *categories) == list(range(len(categories)))
