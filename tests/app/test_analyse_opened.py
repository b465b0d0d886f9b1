"""The Analyse page opens releases of other sessions: from a zip, from the ledger, from a folder of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.ledger.archive import zipped
from core.project.file import Project
from core.release.spend import release
from core.tables.reading import read_table
from pages.parts.analyse import opening
from pages.parts.session.session import Session
from tests.support.app import at_home, go, press, sentences, state


@pytest.fixture(scope="module")
def made():
    samples = Path(__file__).resolve().parents[2] / "sample_data"
    project = Project.load(samples / "hiring.json").with_plan(epsilon=4.0)
    return release(project, read_table(samples / "hiring.csv"))


def test_a_zip_is_opened_and_answers(made):
    app = go(at_home(), "analyse")
    assert "Choose one from the ledger" in [b.label for b in app.button]
    app.file_uploader[0].upload("hiring.zip", zipped(made.files), "application/zip").run()
    press(app, "Open these files")
    assert not app.error
    assert "opened: combined from 20" in sentences(app)
    app.segmented_control[0].set_value("Proportion").run()
    assert not app.exception
    assert len(app.dataframe[0].value) == 1


def test_a_folder_is_opened_where_nobody_else_uses_the_server(made, tmp_path, monkeypatch):
    made.save(tmp_path / "out", "parquet")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    app = go(at_home(), "analyse")
    app.text_input(key="analyse-folder").input(str(tmp_path / "out")).run()
    press(app, "Open the folder")
    assert len(state(app).taken) == 1
    app.text_input(key="analyse-folder").input(str(tmp_path / "none")).run()
    press(app, "Open the folder")
    assert "was not opened" in app.error[0].value
    assert "is not there" in app.error[0].value
    monkeypatch.setattr("pages.parts.doors.guarded", lambda: True)
    monkeypatch.setattr("pages.parts.doors.enter", lambda _: None)
    app.run()
    assert not [f for f in app.text_input if f.key == "analyse-folder"]
    assert app.file_uploader


def damaged(files):
    whole = dict(files)
    yield b"no archive", "damaged, or no archive"
    for name in ("model.npz", "answers.npz", "release.json"):
        yield zipped({**whole, name: whole[name][: len(whole[name]) // 2]}), ""
    yield zipped({n: d for n, d in whole.items() if n != "release.json"}), "does not hold the files of a release"
    yield zipped({**whole, "../evil": b"x"}), "does not hold the files of a release"


def test_what_is_no_release_is_refused_in_words(made, monkeypatch):
    from core.ledger.archive import unpacked

    session = Session()
    monkeypatch.setattr("pages.parts.doors.need_steward", lambda: None)
    for data, said in damaged(made.files):
        opening.take(session, lambda data=data: unpacked(data))
        assert said in session.trouble.pop("analyse")
    monkeypatch.setattr("core.ledger.archive.MOST_BYTES", 1_000)
    opening.take(session, lambda: unpacked(zipped(made.files)))
    assert "unpacks to more than 1 GiB" in session.trouble.pop("analyse")
    assert session.taken == {}
