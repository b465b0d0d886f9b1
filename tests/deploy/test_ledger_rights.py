"""The ledger with the kit's roles on a real PostgreSQL: it grows, is never rewritten, is backed up and restored."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
import sqlalchemy as sa

from espalier.core.errors import EspalierError, LedgerError
from espalier.core.ledger.grants import APP, READER, ROLES, tables_sql
from espalier.core.ledger.ledger import Ledger
from espalier.core.ledger.store import Store
from espalier.core.server import doctor
from espalier.core.server.backup import back_up, restore
from tests.support.app import ROOT

DEPLOY = ROOT / "deploy"


def run(url: str, *scripts: str, **variables: str) -> None:
    """Run SQL as a new operator would: with psql, stopping at the first error."""
    given = [f"--set={key}={value}" for key, value in variables.items()]
    for script in scripts:
        subprocess.run(
            ["psql", "-qX", "-v", "ON_ERROR_STOP=1", *given, url, "-f", script], check=True, capture_output=True
        )


def as_(url: str, role: str) -> str:
    """Return the URL for another role; the server of the tests trusts everyone."""
    return url.replace("espalier@", f"{role}@", 1)


@pytest.fixture
def empty(postgres):
    """A function that returns the URL of a new database, which is dropped afterwards."""
    made = []

    def new(name: str) -> str:
        admin = sa.create_engine(
            postgres.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
        )
        with admin.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        made.append((admin, name))
        return postgres.replace("/postgres?", f"/{name}?")

    yield new
    for admin, name in made:
        with admin.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def url(empty, tmp_path, monkeypatch):
    monkeypatch.setenv("ESPALIER_LEDGER_KEY", str(tmp_path / "home" / "ledger.key"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home" / "data"))
    if shutil.which("psql") is None:
        pytest.skip("there is no psql here")
    made = empty("kit")
    run(made, str(DEPLOY / "ledger-roles.sql"), str(DEPLOY / "ledger-tables.sql"))
    return made


def denied(url: str, statement: str) -> bool:
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=sa.NullPool)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(statement)
    except sa.exc.DBAPIError as error:
        return "permission denied" in str(error) or "must be owner" in str(error) or "read-only" in str(error)
    return False


def columns(url: str) -> list:
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=sa.NullPool)
    with engine.connect() as connection:
        asked = (
            "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns "
            "WHERE table_schema = 'public' ORDER BY 1, ordinal_position",
            "SELECT c.relname, tgname, tgtype FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid ORDER BY 1, 2",
            "SELECT contype, conrelid::regclass::text, conkey FROM pg_constraint WHERE connamespace = "
            "'public'::regnamespace ORDER BY 2, 1, 3",
        )
        return [tuple(row) for text in asked for row in connection.exec_driver_sql(text)]


def test_the_kits_tables_are_those_that_the_program_makes(url, empty):
    own = empty("own")
    Store(own, create=True)
    assert columns(url) == columns(own)
    assert (DEPLOY / "ledger-roles.sql").read_text() == ROLES
    assert (DEPLOY / "ledger-tables.sql").read_text() == tables_sql()


def test_the_tables_are_made_again_after_an_upgrade(url):
    ledger = Ledger(as_(url, APP), create=True)
    ledger.open_table("register", epsilon=3, delta=1e-9)
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE espalier_journal")  # as an earlier version left it
    run(url, str(DEPLOY / "ledger-tables.sql"))
    assert [p.name for p in Ledger(as_(url, APP)).populations().values()] == ["register"]
    assert not denied(as_(url, APP), "DELETE FROM espalier_journal")
    assert denied(as_(url, APP), "DELETE FROM espalier_events")


def test_the_apps_role_adds_events_and_rewrites_none(url):
    ledger = Ledger(as_(url, APP), create=True)
    ledger.open_table("register", epsilon=3, delta=1e-9, who="anna")
    assert ledger.verify() == []
    for role in (APP, READER):
        for statement in (
            "UPDATE espalier_events SET rho = 0",
            "DELETE FROM espalier_events",
            "TRUNCATE espalier_events",
            "ALTER TABLE espalier_events DISABLE TRIGGER ALL",
            "DROP TRIGGER espalier_only_grows ON espalier_events",
            "DROP TABLE espalier_events",
            "DELETE FROM espalier_releases",
            "DELETE FROM espalier_meta",
            "CREATE TABLE mine (a int)",
            "SET ROLE espalier_owner",
        ):
            assert denied(as_(url, role), statement), (role, statement)
    assert denied(as_(url, READER), "INSERT INTO espalier_releases VALUES ('x', 'x')")
    assert [p.name for p in Ledger(as_(url, READER)).populations().values()] == ["register"]


def states(lines, subject: str) -> list[str]:
    return [line.state for line in lines if line.subject == subject]


def test_the_doctor_knows_a_role_that_could_rewrite_the_ledger(url):
    Ledger(as_(url, APP), create=True).open_table("register", epsilon=3, delta=1e-9)
    assert states(doctor.examine(as_(url, APP)), "grants") == ["ok"]
    run_as = [line for line in doctor.examine(url) if line.subject == "grants"]
    assert [line.state for line in run_as] == ["fix"]
    assert "administers the server" in run_as[0].text
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"GRANT DELETE ON espalier_events TO {APP}")
    assert states(doctor.examine(as_(url, APP)), "grants") == ["fix"]


def test_a_warehouse_role_reads_the_listed_tables_and_nothing_else(empty, monkeypatch):
    made = empty("clinic")
    engine = sa.create_engine(made.replace("postgresql:", "postgresql+psycopg:"), poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA care")
        for table in ("visits", "secret"):
            connection.exec_driver_sql(f"CREATE TABLE care.{table} (a int)")
    run(made, str(DEPLOY / "warehouse.sql"), schema="care", tables="visits")
    reader = as_(made, "espalier_reader")
    assert not denied(reader, "SELECT * FROM care.visits")
    for statement in ("SELECT * FROM care.secret", "INSERT INTO care.visits VALUES (1)", "CREATE TABLE mine (a int)"):
        assert denied(reader, statement), statement
    monkeypatch.setenv("CLINIC", reader)
    monkeypatch.setenv("ESPALIER_SERVER_TABLES", "env:CLINIC")
    lines = [line for line in doctor.examine() if "env:CLINIC" in line.text]
    assert [(line.subject, line.state) for line in lines] == [("TLS", "ok"), ("grants", "ok")]


def test_a_ledger_in_postgres_is_backed_up_and_restored(url, empty, tmp_path):
    app = as_(url, APP)
    ledger = Ledger(app, create=True)
    ledger.open_table("register", epsilon=3, delta=1e-9)
    ledger.store.secret()
    shelf = tmp_path / "home" / "shared"
    shelf.mkdir(parents=True)
    (shelf / "a.zip").write_bytes(b"a release")
    back_up(app, tmp_path / "b1", shelf)
    ledger.open_table("second", epsilon=1, delta=1e-9)
    back_up(app, tmp_path / "b2", memories_only=True)
    assert not (tmp_path / "b2" / "ledger.dump").exists()
    key = ledger.store.secret()

    # A new machine has nothing from the old home folder.
    shutil.rmtree(tmp_path / "home")
    run(made := empty("restored"), str(DEPLOY / "ledger-roles.sql"))
    with pytest.raises(LedgerError, match="restored to an earlier copy"):
        restore(tmp_path / "b1", made, shelf, [tmp_path / "b2"])
    shutil.rmtree(tmp_path / "home")
    run(other := empty("accepted"), str(DEPLOY / "ledger-roles.sql"))
    assert "1 event restored" in restore(tmp_path / "b1", other, shelf)
    back = Ledger(as_(other, APP))
    assert back.verify() == []
    assert back.store.secret() == key
    assert (shelf / "a.zip").read_bytes() == b"a release"
    assert denied(as_(other, APP), "DELETE FROM espalier_events"), "the rights came back too"
    assert not denied(as_(other, READER), "SELECT * FROM espalier_events")


def test_a_ledger_in_a_file_is_backed_up_and_restored(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "old"))
    place = tmp_path / "old" / "ledger.db"
    ledger = Ledger(place, create=True)
    ledger.open_table("register", epsilon=3, delta=1e-9)
    key = ledger.store.secret()
    back_up(str(place), tmp_path / "b1")
    assert {f.stat().st_mode & 0o077 for f in (tmp_path / "b1").rglob("*")} == {0}
    ledger.open_table("second", epsilon=1, delta=1e-9)
    back_up(str(place), tmp_path / "b2", memories_only=True)

    with pytest.raises(EspalierError, match="already exists"):
        back_up(str(place), tmp_path / "b1")
    with pytest.raises(EspalierError, match="a ledger already exists"):
        restore(tmp_path / "b1", str(place))
    place.unlink()
    with pytest.raises(LedgerError, match="it had 2 events"):
        restore(tmp_path / "b1", str(place))
    with pytest.raises(EspalierError, match="contains only memories"):
        restore(tmp_path / "b2", str(tmp_path / "x.db"))

    new = tmp_path / "new" / "ledger.db"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "new"))
    with pytest.raises(LedgerError, match="it had 2 events"):
        restore(tmp_path / "b1", str(new), memories=[tmp_path / "b2"])
    shutil.rmtree(tmp_path / "new")
    restore(tmp_path / "b1", str(new))
    assert Ledger(new).store.secret() == key
    assert len(list((tmp_path / "new").rglob("*.seen"))) == 2
    facts = json.loads((tmp_path / "b1" / "backup.json").read_text())
    assert facts["last"] == Ledger(new).head()[1]

    with (tmp_path / "b1" / "ledger.dump").open("ab") as dump:
        dump.write(b"x")
    with pytest.raises(EspalierError, match="was changed since the backup"):
        restore(tmp_path / "b1", str(tmp_path / "third.db"))
