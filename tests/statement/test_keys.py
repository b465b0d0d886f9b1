"""Keys and signatures: keys are encrypted, stay outside projects, and are named where they sign."""

from __future__ import annotations

import json
import os

import pytest

from benchmarks import forgeries
from espalier.core.cli.main import main
from espalier.core.errors import ProjectError
from espalier.core.release import release
from espalier.core.statement.folder import sign_folder, signed_files
from espalier.core.statement.keys import KEY, PASSPHRASE, load_signer, new_key, server_signer
from espalier.verifier.check import verify

WORDS = "correct horse"


@pytest.fixture
def made():
    return release(forgeries.Case("privci", 1, None, None).project(), forgeries.table(1, 400))


def test_a_private_key_is_encrypted_and_only_its_owner_reads_it(tmp_path):
    path = tmp_path / "keys" / "k.pem"
    key = new_key(path, WORDS)
    assert b"ENCRYPTED" in path.read_bytes()
    assert path.stat().st_mode & 0o077 == 0
    assert load_signer(path, WORDS).public == key.public
    with pytest.raises(ProjectError, match="passphrase"):
        load_signer(path, "another")
    with pytest.raises(ProjectError, match="overwritten"):
        new_key(path, WORDS)
    with pytest.raises(ProjectError, match="8 characters"):
        new_key(tmp_path / "short.pem", "short")


def test_no_key_is_made_in_the_folder_of_a_project_or_release(made, tmp_path):
    made.save(tmp_path / "r")
    with pytest.raises(ProjectError, match="another folder"):
        new_key(tmp_path / "r" / "k.pem", WORDS)


def test_a_release_is_signed_later_on_the_command_line(made, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(PASSPHRASE, WORDS)
    made.save(tmp_path / "r")
    assert main(["keys", "new", str(tmp_path / "k.pem")]) == 0
    assert main(["verify", str(tmp_path / "r"), "--key", str(tmp_path / "k.pem.pub")]) == 1
    assert main(["sign", str(tmp_path / "r"), "--key", str(tmp_path / "k.pem")]) == 0
    assert main(["verify", str(tmp_path / "r"), "--key", str(tmp_path / "k.pem.pub")]) == 0
    assert "signed by the given key" in capsys.readouterr().out
    assert main(["sign", str(tmp_path / "r"), "--key", str(tmp_path / "k.pem")]) == 2


def test_signing_a_release_that_was_changed_prints_a_warning(made, tmp_path, monkeypatch, capsys):
    """Previously, nothing told the signer that the table is not the one that the statement describes."""
    monkeypatch.setenv(PASSPHRASE, WORDS)
    new_key(tmp_path / "k.pem", WORDS)
    for name, says in (("honest", ""), ("changed", "synthetic.csv was changed")):
        made.save(tmp_path / name)
        if says:
            with (tmp_path / name / "synthetic.csv").open("a") as file:
                file.write("x\n")
        assert main(["sign", str(tmp_path / name), "--key", str(tmp_path / "k.pem")]) == 0
        said = capsys.readouterr().err
        assert says in said
        assert ("warning" in said) == bool(says)


def test_a_server_signs_with_its_key_and_the_report_names_it(tmp_path, monkeypatch):
    assert server_signer() is None
    key = new_key(tmp_path / "k.pem", WORDS)
    monkeypatch.setenv(KEY, str(tmp_path / "k.pem"))
    monkeypatch.setenv(PASSPHRASE, WORDS)
    project, rows = forgeries.Case("privci", 1, None, None).project(), forgeries.table(1, 400)
    files = release(project, rows, signer=server_signer()).files
    assert key.facts["fingerprint"] in files["report.html"].decode()
    assert key.facts["fingerprint"] in files["label.html"].decode()
    found = verify(forgeries.written(files, tmp_path / "r"), forgeries.public_pem(key))
    assert not [f for f in found if f.holds is False]


def test_a_kept_release_is_signed_when_it_is_taken(made):
    key = forgeries.signer()
    files = signed_files(made.files, key)
    assert set(files) - set(made.files) == {"statement.sig"}
    assert signed_files(files, forgeries.signer()) == files
    assert signed_files(made.files, None) == made.files


def test_a_parquet_file_is_in_the_signed_statement(tmp_path):
    key = forgeries.signer()
    made = release(forgeries.Case("privci", 1, None, None).project(), forgeries.table(1, 400), signer=key)
    made.save(tmp_path / "r", "parquet")
    assert "synthetic.parquet" in json.loads((tmp_path / "r" / "statement.json").read_text("utf-8"))["files"]
    assert not [f for f in verify(tmp_path / "r", forgeries.public_pem(key)) if f.holds is False]


def test_a_pipe_in_the_folder_of_a_new_key_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    assert new_key(tmp_path / "key", "a long passphrase").public


def test_a_new_key_follows_no_link(tmp_path):
    """Previously, a link that another user had put there decided where the public key was written."""
    for name in ("k", "k.pub"):
        folder = tmp_path / f"for-{name}"
        folder.mkdir()
        (folder / name).symlink_to(tmp_path / "elsewhere")
        with pytest.raises(ProjectError, match="cannot write"):
            new_key(folder / "k", "a long passphrase")
        assert not (tmp_path / "elsewhere").exists()


def test_a_statement_that_is_not_text_is_not_signed(made, tmp_path, monkeypatch, capsys):
    """Previously, a traceback appeared, and an empty signature prevented others."""
    monkeypatch.setenv(PASSPHRASE, WORDS)
    key, folder = new_key(tmp_path / "k.pem", WORDS), tmp_path / "r"
    made.save(folder)
    honest = (folder / "statement.json").read_text()
    (folder / "statement.json").write_text(honest.replace("{", '{"note": "\\ud800",', 1))
    assert main(["sign", str(folder), "--key", str(tmp_path / "k.pem")]) == 2
    assert "not text" in capsys.readouterr().err
    (folder / "statement.json").write_text(honest)
    monkeypatch.setattr(type(key), "sign", lambda *_: "text, which a file of bytes refuses")
    with pytest.raises(TypeError):
        sign_folder(folder, key)
    monkeypatch.undo()
    sign_folder(folder, key)


@pytest.mark.parametrize("words", ["x" * 2000, "correct horse \udcff"])
def test_a_passphrase_that_no_key_can_have(tmp_path, words):
    with pytest.raises(ProjectError, match="1,000 characters"):
        new_key(tmp_path / "k.pem", words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "/"])
def test_a_key_without_a_name(name, monkeypatch, capsys):
    """Previously, a traceback appeared."""
    monkeypatch.setenv(PASSPHRASE, WORDS)
    assert main(["keys", "new", name]) == 2
    assert "not the name of a new file" in capsys.readouterr().err
