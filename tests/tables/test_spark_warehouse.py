"""Tables of a Spark warehouse: which folders are entered, without a Spark session."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyarrow import parquet

from espalier.core.errors import TableError
from espalier.core.tables.spark_warehouse import find


@pytest.fixture
def folder(tmp_path):
    """The folder of the table `people`."""
    made = tmp_path / "people"
    made.mkdir()
    parquet.write_table(pa.table({"a": [1, 2]}), made / "part-0.parquet")
    return made


def entered(folder, name="people"):
    """The paths of the tables that are entered into the catalogue."""
    paths = []
    catalog = SimpleNamespace(tableExists=lambda _: False, createTable=lambda *_, path, source: paths.append(path))
    find(SimpleNamespace(catalog=catalog, sql=lambda _: None), str(folder.parent), name)
    return paths


def test_a_folder_of_equal_files_is_entered(folder):
    parquet.write_table(pa.table({"a": [3]}), folder / "part-1.parquet")
    (folder / "_SUCCESS").touch()
    assert entered(folder) == [str(folder)]
    assert entered(folder, "visits") == []


def test_a_name_never_leaves_the_warehouse(folder):
    assert entered(folder, '"people/../people"') == []
    assert entered(folder, '".."') == []
    with pytest.raises(TableError, match="cannot be read"):
        entered(folder, "..")


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("part-1.parquet", b"PAR1 and nothing else", "damaged"),
        ("part-1.parquet", b"", "damaged"),
        ("part-1.csv", b"a\n1\n", "not stored as Parquet"),
        ("part-1.parquet", pa.table({"a": ["x"]}), "differ in their columns"),
        ("year=2024/part-1.parquet", pa.table({"a": [1]}), "is partitioned"),
    ],
    ids=["cut", "empty", "csv", "type", "partitions"],
)
def test_other_folders_are_refused_with_the_reason(folder, file, content, said):
    (folder / file).parent.mkdir(exist_ok=True)
    if isinstance(content, bytes):
        (folder / file).write_bytes(content)
    else:
        parquet.write_table(content, folder / file)
    with pytest.raises(TableError, match=said):
        entered(folder)


def test_an_empty_folder_is_refused(tmp_path):
    (tmp_path / "people").mkdir()
    with pytest.raises(TableError, match="not stored as Parquet"):
        entered(tmp_path / "people")
