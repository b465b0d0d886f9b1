"""Lookup of a PostgreSQL relation by name: its schema, its columns, its lock, and a check that no user-defined cast
reads its cells.
"""

from __future__ import annotations

from typing import Any

from espalier.core.errors import TableError
from espalier.core.tables.connection import parts_of

FAITHFUL = (
    *("UTF8", "SQL_ASCII", "EUC_CN", "EUC_KR", "KOI8R", "KOI8U"),
    *(f"LATIN{i}" for i in range(1, 11)),
    *("WIN866", "WIN874", *(f"WIN{i}" for i in range(1250, 1259))),
    *(f"ISO_8859_{i}" for i in range(5, 9)),
)
"""Database encodings in which different text values remain different in Unicode. In EUC_JP and EUC_TW, a letter may be
stored in two ways. In EUC_JIS_2004, a letter with an accent may be stored as one letter or as two.
"""


def keeps_texts_apart(con: Any) -> bool:
    """Return whether different text values in this database arrive as different text."""
    return bool(con.info.parameter_status("server_encoding") in FAITHFUL)


def orders_as_utf8(con: Any) -> bool:
    """Return whether this database orders text by its bytes in UTF-8. Every encoding orders ASCII text alike."""
    return bool(con.info.parameter_status("server_encoding") in ("UTF8", "SQL_ASCII", "LATIN1"))


def quoted(name: str) -> str:
    """Return a relation's name with each part in quotes, as PostgreSQL looks it up."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts_of(name))


def with_schema(con: Any, name: str) -> str:
    """Return the name of a relation with the schema in which the session's search path finds it."""
    if len(parts_of(name)) > 1:
        return name
    asked = (
        "SELECT pg_catalog.quote_ident(space.nspname) FROM pg_catalog.pg_class AS found "
        "JOIN pg_catalog.pg_namespace AS space ON space.oid = found.relnamespace "
        "WHERE found.oid = pg_catalog.to_regclass(%s)"
    )
    found = con.execute(asked, [quoted(name)]).fetchone()
    return f"{found[0]}.{name}" if found else name


def lock(con: Any, name: str) -> None:
    """Lock the relation and its partitions against TRUNCATE and other changes of their files, until the transaction
    ends.

    Call it before the transaction's first query. A snapshot from before the end of a TRUNCATE sees neither the removed
    rows nor new ones. A materialized view, a foreign table, and a table for which the role has only
    column-level privileges cannot be locked beforehand; the statement that reads them locks them.
    """
    try:
        with con.transaction():
            con.execute(f"LOCK TABLE {quoted(name)} IN ACCESS SHARE MODE")
    except Exception as error:
        if getattr(error, "sqlstate", None) not in ("42501", "42809"):  # no privilege, another kind of relation
            raise


def columns_of(con: Any, name: str) -> list[tuple[str, int, str]]:
    """Return the name of each column with the number and the kind of its type; refuse the columns that
    :func:`_check_casts` refuses.
    """
    _check_casts(con, name)
    asked = (
        "SELECT cell.attname, cell.atttypid, kind.typtype::pg_catalog.text FROM pg_catalog.pg_attribute AS cell "
        "JOIN pg_catalog.pg_type AS kind ON kind.oid = cell.atttypid "
        "WHERE cell.attrelid = pg_catalog.to_regclass(%s) AND cell.attnum > 0 ORDER BY cell.attnum"
    )
    return [tuple(row) for row in con.execute(asked, [quoted(name)]).fetchall()]


def _check_casts(con: Any, name: str) -> None:
    """Refuse a column whose type is cast to text by a user-defined function, because it may read other rows.

    PostgreSQL's own functions have numbers below 16384. A domain is cast like its underlying type.
    """
    asked = (
        "WITH RECURSIVE types(name, place, type) AS ("
        "SELECT attname, attnum, atttypid FROM pg_catalog.pg_attribute "
        "WHERE attrelid = pg_catalog.to_regclass(%s) AND attnum > 0 "
        "UNION SELECT types.name, types.place, base.typbasetype FROM types "
        "JOIN pg_catalog.pg_type AS base ON base.oid = types.type WHERE base.typbasetype <> 0) "
        "SELECT types.name FROM types JOIN pg_catalog.pg_cast AS made ON made.castsource = types.type "
        "WHERE made.castfunc >= 16384 AND made.casttarget = 'pg_catalog.text'::pg_catalog.regtype "
        "ORDER BY types.place LIMIT 1"
    )
    if found := con.execute(asked, [quoted(name)]).fetchone():
        raise TableError(
            f"column {found[0]!r} has a type whose cast to text is a function defined in this database, which may make "
            "one row depend on others. Name a view that casts the column; the view's author is then trusted",
            column=found[0],
        )
