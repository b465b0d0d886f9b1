"""Tables of a Spark warehouse, which are folders of Parquet files that another session wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from espalier.core.errors import TableError
from espalier.core.tables.connection import parts_of


def find(session: Any, warehouse: str, name: str) -> None:
    """Enter the table ``name`` into the session's catalogue if only the folder ``warehouse`` has it.

    ``saveAsTable`` writes the rows of ``people`` to the folder ``people``, and those of ``clinic.people`` to
    ``clinic.db/people``. Raises :class:`TableError` for a partitioned table, for other or damaged files, and for files
    whose columns differ, because Spark would apply the columns of one file to all files.
    """
    *database, own = parts_of(name)
    if not warehouse.strip("/") or any(part in ("", ".", "..") or "/" in part for part in (*database, own)):
        return
    folder = Path(warehouse, *(f"{part}.db" for part in database), own)
    quoted = ".".join(f"`{part.replace('`', '``')}`" for part in (*database, own))
    if not folder.is_dir() or session.catalog.tableExists(quoted):
        return
    inside = [path for path in folder.iterdir() if not path.name.startswith((".", "_"))]
    if any(path.is_dir() for path in inside):
        raise _refused(name, "is partitioned; write it without partitions")
    if not inside or any(path.suffix != ".parquet" for path in inside):
        raise _refused(name, "is not stored as Parquet files; write it as Parquet")
    try:
        schemas = [parquet.read_schema(path) for path in inside]
    except (OSError, pa.ArrowException):
        raise _refused(name, "has a file that is damaged or is not Parquet; write the table again") from None
    if any(not schema.equals(schemas[0]) for schema in schemas):
        raise _refused(name, "has files that differ in their columns; write it again")
    for part in database:
        session.sql(f"CREATE DATABASE IF NOT EXISTS `{part.replace('`', '``')}`")
    session.catalog.createTable(quoted, path=str(folder), source="parquet")


def _refused(name: str, why: str) -> TableError:
    return TableError(f"the table {name!r} of the warehouse {why}", table=name)
