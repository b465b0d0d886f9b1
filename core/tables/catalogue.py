"""Kind of a relation in an engine's catalogue: a table, a view, or rows stored elsewhere.

Espalier proves that no row of a relation changes how another row is read. It cannot prove this for a view, because the
view's author may let one row depend on others. The plan, the report, `release.json` and the ledger therefore state the
kind of each relation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

Origin = Literal["table", "computed", "view", "external", "policy", "unknown"]
ROWS = "espalier_rows"
"""Name that a statement uses for a relation that is not in the engine's catalogue."""

TRUSTED: dict[str, str] = {
    "computed": (
        "The relation has columns that its database computes when they are read. Their author is trusted, because "
        "the privacy promise does not hold if a computed column makes one row depend on others."
    ),
    "view": (
        "The relation is a view. Its author is trusted, because the privacy promise does not hold if a view makes "
        "one row depend on others."
    ),
    "external": (
        "The rows of the relation are stored outside its database. The author of that source is trusted, because "
        "the privacy promise does not hold if the source makes one row depend on others."
    ),
    "policy": (
        "A row-level security policy chooses the rows of the relation. Its author is trusted, because the privacy "
        "promise does not hold if a policy makes one row depend on others."
    ),
    "unknown": (
        "It is not known whether the relation is a view. The author of a view is trusted, because the privacy "
        "promise does not hold if a view makes one row depend on others."
    ),
}
"""Sentence about the trusted party, for each kind of relation other than a plain table."""

STORED = ("aria", "archive", "columnstore", "innodb", "memory", "mrg_myisam", "myisam", "ndbcluster", "rocksdb")
"""Storage engines of MySQL and MariaDB that return the rows that were inserted. Other engines compute rows, or read
them from elsewhere.
"""

SPARK_STORED = ("avro", "delta", "hudi", "iceberg", "orc", "parquet")
"""Formats of Spark's tables that store each cell as a value."""


def joint(origins: Iterable[str | None]) -> str | None:
    """Return the kind to state for rows from several relations: the first kind that requires trust, if any."""
    found = [one for one in origins if one is not None]
    return next((one for one in found if one != "table"), found[0] if found else None)


def origin(backend: Any, table: Any) -> Origin:
    """Return the kind of ``table``, a table of Ibis, in the catalogue of ``backend``; "unknown" if it has no entry."""
    asked = _ASKED.get(backend.name)
    if asked is None:
        return "unknown"
    place = table.op()
    try:
        return asked(backend, place.name, place.namespace.database)
    except Exception:  # the role may not read the catalogue, or the driver raises its own errors
        return "unknown"


def _duckdb(backend: Any, name: str, database: str | None) -> Origin:
    """Return the kind in DuckDB. Its functions ``stats`` and ``vector_type`` let a computed column show other rows."""
    place = "WHERE lower(table_name) = lower(?) AND table_schema = coalesce(?, current_schema())"
    computed = f"SELECT count(*) FROM information_schema.columns {place} AND is_generated <> 'NEVER'"
    if backend.con.execute(computed, [name, database]).fetchone() != (0,):
        return "computed"
    found = backend.con.execute(f"SELECT table_type FROM information_schema.tables {place}", [name, database])
    kinds: dict[str, Origin] = {"BASE TABLE": "table", "LOCAL TEMPORARY": "table", "VIEW": "view"}
    return _kind({kind for (kind,) in found.fetchall()}, kinds)


def _postgres(backend: Any, name: str, database: str | None) -> Origin:
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in (database, name) if part)
    elsewhere = (  # a partition may itself have partitions
        "WITH RECURSIVE parts AS (SELECT inhrelid FROM pg_inherits WHERE inhparent = pg_class.oid "
        "UNION SELECT below.inhrelid FROM pg_inherits AS below JOIN parts ON below.inhparent = parts.inhrelid) "
        "SELECT FROM parts JOIN pg_class AS part ON part.oid = inhrelid WHERE part.relkind = 'f'"
    )
    (found,) = backend.con.execute(
        "SELECT CASE WHEN relkind <> 'f' AND row_security_active(oid) THEN 'policy' "
        f"WHEN EXISTS ({elsewhere}) THEN 'f' ELSE relkind::text END FROM pg_class WHERE oid = to_regclass(%s)",
        [quoted],
    ).fetchone()
    kinds: dict[str, Origin] = {"r": "table", "p": "table", "v": "view", "m": "view", "f": "external"}
    return _kind({found}, {**kinds, "policy": "policy"})


def _sqlite(backend: Any, name: str, database: str | None) -> Origin:
    """Return the kind of a relation in SQLite. Internal tables, and the tables in which virtual tables store their
    data, may contain values computed from many rows.
    """
    if name.lower().startswith("sqlite_"):
        return "unknown"
    asked = "SELECT type FROM pragma_table_list WHERE name = ? COLLATE NOCASE AND schema = ?"
    found = backend.con.execute(asked, (name, database or "main")).fetchall()
    kinds: dict[str, Origin] = {"table": "table", "shadow": "external", "view": "view", "virtual": "external"}
    return _kind({kind for (kind,) in found}, kinds)


def _mysql(backend: Any, name: str, database: str | None) -> Origin:
    """Return the kind in MySQL or MariaDB, where a virtual column may carry values from row to row in a variable."""
    with backend.con.cursor() as cursor:
        cursor.execute(
            "SELECT table_type, engine FROM information_schema.tables "
            "WHERE table_name = %s AND table_schema = coalesce(%s, database())",
            (name, database),
        )
        found = cursor.fetchall()
        cursor.execute(
            "SELECT count(*) FROM information_schema.columns WHERE table_name = %s "
            "AND table_schema = coalesce(%s, database()) AND extra LIKE '%%VIRTUAL%%'",
            (name, database),
        )
        (computed,) = cursor.fetchone()
    if any(engine is not None and engine.lower() not in STORED for _, engine in found):  # None: a view
        return "external"
    if computed:
        return "computed"
    kinds: dict[str, Origin] = {"BASE TABLE": "table", "SYSTEM VERSIONED": "table", "VIEW": "view"}
    return _kind({kind for kind, _ in found}, kinds)


def _spark(backend: Any, name: str, database: str | None) -> Origin:
    """Return the kind of a relation in Spark. A managed table may be stored as text, so a line break or quote in one
    cell could change other rows.
    """
    found = backend._session.catalog.getTable(f"{database}.{name}" if database else name).tableType
    if found == "MANAGED":
        quoted = ".".join("`" + part.replace("`", "``") + "`" for part in (database, name) if part)
        facts = backend._session.sql(f"DESCRIBE TABLE EXTENDED {quoted}").collect()
        if not any(fact[0] == "Provider" and fact[1].lower() in SPARK_STORED for fact in facts):
            return "external"
    kinds: dict[str, Origin] = {"MANAGED": "table", "EXTERNAL": "external", "VIEW": "view", "TEMPORARY": "view"}
    return _kind({found}, kinds)


def _kind(found: set[str], kinds: dict[str, Origin]) -> Origin:
    """Return the kind that the catalogue states; "unknown" for no kind, several kinds, or a kind that is not listed."""
    (only,) = found if len(found) == 1 else ("",)
    return kinds.get(only, "unknown")


_ASKED: dict[str, Callable[[Any, str, str | None], Origin]] = {
    "duckdb": _duckdb,
    "postgres": _postgres,
    "sqlite": _sqlite,
    "mysql": _mysql,
    "pyspark": _spark,
}
