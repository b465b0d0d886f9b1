"""MySQL and MariaDB through PyMySQL: URL options, dates, and a query that keeps different text values different."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from espalier.core.errors import TableError

TEXTS = ("ssl_ca", "ssl_cert", "ssl_key", "ssl_key_password", "unix_socket")
TRUTHS = ("ssl_verify_cert", "ssl_verify_identity")
SECONDS = ("connect_timeout", "read_timeout", "write_timeout")
"""Options of a URL, by type. Any other option of the driver could run a statement, name a different server, or let the
server read files of this machine. Moreover, the driver treats the text ``false`` as true.
"""

FAITHFUL = (
    *("utf8mb4", "utf8mb3", "utf8", "ucs2", "utf16", "utf16le", "utf32", "latin1", "latin2", "latin5", "latin7"),
    *("cp850", "cp852", "cp866", "keybcs2", "koi8r", "koi8u", "macce", "macroman"),
)
"""Character sets in which different text values remain different in Unicode. In other sets, two damaged values may both
become a question mark.
"""


def use_pymysql() -> None:
    """Let Ibis find PyMySQL, which is pure Python, under the name of the driver that needs a compiler."""
    import pymysql
    from pymysql import constants

    pymysql.install_as_MySQLdb()
    sys.modules["MySQLdb.constants"] = constants


def connection_to(url: str) -> tuple[str, dict[str, Any]]:
    """Return the URL without its options, and the options for the driver; raises :class:`TableError` for unknown ones.

    The driver streams the rows, treats impossible dates as empty, and uses all of Unicode; otherwise two ids could both
    become question marks. With ``ssl_ca``, the server's certificate and name are verified.
    """
    from pymysql.constants import FIELD_TYPE
    from pymysql.converters import conversions
    from pymysql.cursors import SSCursor

    class Rows(SSCursor):  # type: ignore[misc]
        def close(self) -> None:
            if self._result is not None and self.connection is not None and not self.connection.open:
                self._result.unbuffered_active = False  # a lost connection has no more rows to skip
            super().close()

    kinds = (FIELD_TYPE.DATE, FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP)
    days = {kind: partial(_day, conversions[kind]) for kind in kinds}
    fixed = {"charset": "utf8mb4", "cursorclass": Rows, "conv": conversions | days, "local_infile": False}
    parts = urlsplit(url)
    if "#" in url:
        raise TableError("the mysql URL contains '#'; write # as %23")
    return parts._replace(query="").geturl(), _chosen(parts.query) | fixed


def _chosen(query: str) -> dict[str, Any]:
    pairs = parse_qsl(query, keep_blank_values=True)
    given = dict(pairs)
    used = (*TEXTS, *TRUTHS, *SECONDS)
    if set(given) - set(used):  # the option is not named, because it may be the end of a password
        raise TableError(
            f"the mysql URL has an option that Espalier does not accept. It accepts {', '.join(used)}. Write a "
            "question mark in a password as %3F"
        )
    read = {name: _read(name, text) for name, text in given.items()}
    if len(given) < len(pairs):
        raise TableError("the mysql URL gives an option twice; give it once")
    if "ssl_ca" not in given and (alone := sorted(set(given) & set(TRUTHS))):
        raise TableError(f"{alone[0]} needs ssl_ca, the file with the server's CA certificate")
    return dict.fromkeys(TRUTHS, True) | read if "ssl_ca" in given else read


def _read(name: str, text: str) -> Any:
    if name in TRUTHS and text.lower() in ("true", "false", "1", "0"):
        return text.lower() in ("true", "1")
    if name in SECONDS and text.isascii() and text.isdigit() and 0 < int(text[:9]) <= 10**6:
        return int(text)
    if name in TEXTS and text:
        return text
    what = "true or false" if name in TRUTHS else "a number of seconds" if name in SECONDS else "text"
    raise TableError(f"the option {name} of the mysql URL must be {what}")


def _day(convert: Callable[[Any], Any], cell: Any) -> Any:
    """Return a date, or `None` if ``convert`` returns text, such as 0000-00-00."""
    return day if isinstance(day := convert(cell), dt.date) else None


def query_of_texts(con: Any, name: str, database: str | None, columns: Sequence[str]) -> str | None:
    """Return the query for a relation in which no conversion merges two text values; `None` if it is the relation
    itself. Text that changes when it is converted to Unicode and back is read as U+FFFD and its stored bytes. A FLOAT
    is read as a DOUBLE, because the server would send six of its digits. The query lists columns by name, including
    invisible ones.
    """
    with con.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, character_set_name, extra, data_type FROM information_schema.columns "
            "WHERE table_name = %s AND table_schema = coalesce(%s, database())",
            (name, database),
        )
        found = cursor.fetchall()
    merging = {column: kind for column, kind, *_ in found if kind and kind.lower() not in FAITHFUL}
    short = {column for column, *_, kind in found if kind.lower() == "float"}
    if not merging and not short and not any("INVISIBLE" in extra.upper() for *_, extra, _ in found):
        return None

    def read(column: str) -> str:
        own = _quoted(column)
        if column in short:
            return f"{own} + 0e0 AS {own}"
        if column not in merging:
            return own
        text = f"CONVERT({own} USING utf8mb4)"
        same = f"CAST(CONVERT({text} USING {_quoted(merging[column])}) AS BINARY) = CAST({own} AS BINARY)"
        stored = f"CONCAT(_utf8mb4 x'EFBFBD', HEX({own}))"
        return f"CASE WHEN {own} IS NULL THEN NULL WHEN {same} THEN {text} ELSE {stored} END AS {own}"

    source = ".".join(_quoted(part) for part in (database, name) if part is not None)
    return f"SELECT {', '.join(map(read, columns))} FROM {source}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
