"""Tables of the ledger and the minimal rights on them, as SQL for PostgreSQL's administrator. With these, the app's
role can add events but never change one. It owns no table, so it cannot drop a trigger. The files
``deploy/ledger-roles.sql`` and ``deploy/ledger-tables.sql`` contain this text; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from espalier.core.ledger import store
from espalier.core.ledger.memory import head

OWNER, APP, READER = "espalier_owner", "espalier_app", "espalier_auditor"
"""Roles: the owner of the tables, which never signs in; the app and the command line; and the reader for audits."""
CHANGED = {store._meta.name: "SELECT, UPDATE", store._journal.name: "SELECT, INSERT, DELETE"}
"""Tables whose rows are changed or deleted: the head, and the draws of releases that have not ended. All other tables
only grow.
"""
HIDDEN = {store._journal.name}
"""Tables that an audit does not read: the answers of releases that are not published yet."""

ROLES = f"""-- Roles of the ledger. Run once, as PostgreSQL's administrator, in any database:
--   psql -v ON_ERROR_STOP=1 -f ledger-roles.sql
-- Then set a password for each of the two roles that sign in: \\password {APP}
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{OWNER}') THEN CREATE ROLE {OWNER} NOLOGIN; END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{APP}') THEN CREATE ROLE {APP} LOGIN; END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{READER}') THEN CREATE ROLE {READER} LOGIN; END IF;
END $$;
ALTER ROLE {READER} SET default_transaction_read_only = on;
"""


def tables_sql() -> str:
    """Return the statements that make an empty ledger, or add the objects of a new version, and grant the minimal
    rights.
    """
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "-- Tables of the ledger and the rights on them. Run as administrator in the ledger's own database, once and"
    yield "-- after each upgrade. Existing objects stay unchanged. PostgreSQL 14 or later."
    yield "--   psql -v ON_ERROR_STOP=1 -d ledger -f ledger-tables.sql"
    yield "BEGIN;"
    yield "REVOKE ALL ON SCHEMA public FROM PUBLIC;"
    yield f"GRANT USAGE ON SCHEMA public TO {OWNER}, {APP}, {READER};"
    yield f"GRANT CREATE ON SCHEMA public TO {OWNER};"
    yield f"SET ROLE {OWNER};"
    for table in store._metadata.sorted_tables:
        text = str(CreateTable(table, if_not_exists=True).compile(dialect=postgresql.dialect())).strip()  # type: ignore[no-untyped-call]
        yield "\n".join(line.rstrip() for line in text.splitlines()) + ";"
    yield from (f"{s.replace('CREATE ', 'CREATE OR REPLACE ', 1)};" for s in store._ONLY_GROWS["postgresql"])
    yield f"INSERT INTO {store._meta.name} VALUES ('version', '{store.VERSION}'), ('head', '{head(0, '')}')"
    yield "  ON CONFLICT DO NOTHING;"
    for table in store._metadata.sorted_tables:
        yield f"GRANT {CHANGED.get(table.name, 'SELECT, INSERT')} ON {table.name} TO {APP};"
        if table.name not in HIDDEN:
            yield f"GRANT SELECT ON {table.name} TO {READER};"
    yield "RESET ROLE;"
    yield f"REVOKE CREATE ON SCHEMA public FROM {OWNER};"
    yield "COMMIT;"
