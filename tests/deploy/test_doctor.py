"""`espalier doctor`: each configuration mistake produces a line marked “fix” and exit status 1."""

from __future__ import annotations

import pytest

from espalier.core.cli.main import main
from espalier.core.ledger.ledger import Ledger
from espalier.core.server import doctor

SECRETS = """[auth]
redirect_uri = "https://espalier.hospital.example/oauth2callback"
cookie_secret = "0123456789abcdef0123456789abcdef"
client_id = "espalier"
[roles]
steward = ["anna@hospital.example"]
"""


@pytest.fixture
def fine(tmp_path, monkeypatch):
    """The folder of a correctly configured server."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ESPALIER_LEDGER", str(tmp_path / "ledger" / "ledger.db"))
    monkeypatch.setenv("ESPALIER_SERVER_TABLES", str(tmp_path / "tables"))
    monkeypatch.setenv("ESPALIER_AUDIT_LOG", str(tmp_path / "audit.jsonl"))
    monkeypatch.setattr(doctor, "ROOM", 1)
    (tmp_path / "tables").mkdir()
    (tmp_path / "secrets.toml").write_text(SECRETS)
    (tmp_path / "secrets.toml").chmod(0o600)
    made = Ledger(tmp_path / "ledger" / "ledger.db", create=True)
    made.open_table("register", epsilon=3, delta=1e-9)
    made.store.secret()
    return tmp_path


def wrong(folder) -> list[str]:
    return [line.text for line in doctor.examine(secrets=folder / "secrets.toml") if line.state == "fix"]


def test_a_server_without_a_mistake_needs_no_answer(fine, capsys):
    assert wrong(fine) == []
    assert main(["doctor", "--secrets", str(fine / "secrets.toml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[1] for line in lines} >= {"versions", "settings", "disk", "ledger", "key", "memory", "clock"}


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda f, env: env.setenv("ESPALIER_TYPO", "x"), "not a setting of Espalier: ESPALIER_TYPO"),
        (lambda f, env: env.setenv("ESPALIER_JOBS", "two"), "ESPALIER_JOBS must be a whole number"),
        (lambda f, env: env.setenv("ESPALIER_AUDIT_LOG", str(f)), "the audit log cannot be written"),
        (lambda f, env: env.setattr(doctor, "ROOM", 1 << 60), "free some space"),
        (lambda f, env: (f / "ledger" / "ledger.db.key").chmod(0o644), "can be read by others"),
        (lambda f, env: (f / "ledger" / "ledger.db").write_bytes(b"x" * 4096), "it is not a ledger"),
        (lambda f, env: env.setenv("ESPALIER_SERVER_TABLES", "1"), "'1' is neither"),
        (lambda f, env: env.setenv("ESPALIER_SERVER_TABLES", "/"), "'/' is neither"),
        (lambda f, env: env.setenv("ESPALIER_SERVER_TABLES", str(f)), "contains the ledger"),
        (
            lambda f, env: env.setenv("ESPALIER_SERVER_TABLES", "env:NOWHERE"),
            "the environment variable NOWHERE is not set",
        ),
        (lambda f, env: env.setenv("ESPALIER_SERVER_TABLES", "/nowhere"), "not a folder"),
        (lambda f, env: (f / "secrets.toml").chmod(0o640), "can be read by others"),
        (lambda f, env: (f / "secrets.toml").write_text(SECRETS.replace("https", "http")), "https://"),
        (lambda f, env: (f / "secrets.toml").write_text(SECRETS.replace('abcdef"', '"')), "fewer than 32"),
        (lambda f, env: (f / "secrets.toml").write_text(SECRETS.partition("[roles]")[0]), "no steward"),
        (lambda f, env: (f / "secrets.toml").write_text("[auth"), "is not TOML"),
    ],
)
def test_each_mistake_asks_for_an_answer(fine, monkeypatch, break_it, said):
    break_it(fine, monkeypatch)
    found = wrong(fine)
    assert any(said in text for text in found), found
    assert main(["doctor", "--secrets", str(fine / "secrets.toml")]) == 1


@pytest.mark.usefixtures("fine")
def test_a_password_is_in_no_line(monkeypatch, capsys):
    monkeypatch.setenv("WAREHOUSE", "postgresql://me:hush@127.0.0.1:1/db")
    monkeypatch.setenv("ESPALIER_SERVER_TABLES", "env:WAREHOUSE")
    assert main(["doctor", "--ledger", "postgresql://me:hush@127.0.0.1:1/db"]) == 1
    said = capsys.readouterr()
    assert "hush" not in said.out + said.err
    assert "env:WAREHOUSE does not answer" in said.out
