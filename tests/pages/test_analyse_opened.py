"""The Analyse page opens releases of other sessions: from a zip, from the ledger, or from a folder on this machine."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from espalier.core.analysis.study import Study
from espalier.core.errors import EspalierError
from espalier.core.ledger.archive import zipped
from espalier.core.project.file import Project
from espalier.core.release.spend import release
from espalier.core.tables.reading import read_table
from espalier.pages.analyse import open_release
from espalier.pages.session.session import Session
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
    app.segmented_control[0].set_value("Proportion").run()
    assert not app.exception
    said = sentences(app)
    assert "(opened) combine 20" in said
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
    assert "does not exist" in app.error[0].value
    monkeypatch.setattr("espalier.pages.common.sign_in.guarded", lambda: True)
    monkeypatch.setattr("espalier.pages.common.sign_in.enter", lambda _: None)
    app.run()
    assert not [f for f in app.text_input if f.key == "analyse-folder"]
    assert app.file_uploader


@pytest.mark.parametrize("text", ["~nobody-of-this-name/out", "x" * 5_000])
def test_what_is_no_path_is_refused_in_words(text):
    with pytest.raises(EspalierError, match="cannot read"):
        open_release.of_folder(text)


def damaged(files):
    whole = dict(files)
    yield b"no archive", "damaged, or not an archive"
    for name in ("model.npz", "answers.npz", "release.json"):
        yield zipped({**whole, name: whole[name][: len(whole[name]) // 2]}), ""
    yield zipped({n: d for n, d in whole.items() if n != "release.json"}), "does not contain the files of a release"
    yield zipped({**whole, "../evil": b"x"}), "does not contain the files of a release"


def changed(files, name, **more):
    """The file ``name`` with a changed header."""
    with np.load(io.BytesIO(files[name])) as file:
        held = dict(file)
    head = json.loads(held["head"].tobytes()) | more
    held["head"] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    out = io.BytesIO()
    np.savez(out, **held)
    return {**files, name: out.getvalue()}


def broken(files):
    """Files of a release with single bytes or facts changed, which cause many kinds of errors in the code that reads
    them."""
    rng = np.random.default_rng(0)
    for name in ("model.npz", "answers.npz") * 60:
        data = bytearray(files[name])
        data[rng.integers(len(data))] ^= int(rng.integers(1, 256))
        yield {**files, name: bytes(data)}
    facts = json.loads(files["release.json"])
    for odd in ({"rows": float("inf")}, {"rows": []}, {"project": []}, {"model": "nosuch"}, {"method": []}):
        yield {**files, "release.json": json.dumps(facts | odd).encode()}
    yield changed(files, "model.npz", total=10**400)
    yield changed(files, "answers.npz", measurements=7)


def test_a_changed_release_is_opened_or_refused_in_words(made):
    refused = 0
    for files in broken(made.files):
        try:
            Study.of_files(files)
        except EspalierError:
            refused += 1
    assert refused > 20


def test_an_archive_in_an_archive_is_measured_before_it_is_unpacked(made, monkeypatch):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("head.npy", bytes(1 << 20))
    assert len(out.getvalue()) < 2_000
    monkeypatch.setattr("espalier.core.ledger.archive.MOST_BYTES", 1 << 19)
    with pytest.raises(EspalierError, match="unpacks to more than 1 GiB"):
        Study.of_files({**made.files, "model.npz": out.getvalue()})


def test_what_is_no_release_is_refused_in_words(made, monkeypatch):
    from espalier.core.ledger.archive import unpacked

    session = Session()
    monkeypatch.setattr("espalier.pages.common.sign_in.need_steward", lambda: None)
    for data, said in damaged(made.files):
        open_release.take(session, lambda data=data: unpacked(data))
        assert said in session.trouble.pop("analyse")
    monkeypatch.setattr("espalier.core.ledger.archive.MOST_BYTES", 1_000)
    open_release.take(session, lambda: unpacked(zipped(made.files)))
    assert "unpacks to more than 1 GiB" in session.trouble.pop("analyse")
    assert session.taken == {}


@pytest.fixture(scope="module")
def linked():
    samples = Path(__file__).resolve().parents[2] / "sample_data"
    project = Project.load(samples / "clinic.json").with_plan(epsilon=4.0, count_at_visits=("visits.back",))
    both = tuple(read_table(samples / f"clinic_{name}.csv") for name in ("patients", "visits"))
    return release(project, both)


def _answers(app):
    said = sentences(app)
    choose = {s.label: s for s in app.selectbox}
    assert choose["Column at each visit"].value == "visits.back"
    titles = {"From one visit to the next", "At each visit", "Returns after a visit"}
    assert titles <= {s.value for s in app.subheader}
    assert "return within 30 days after severe" in said
    assert "at visit 1" in said
    assert "at visit 4" in said
    assert "mild at the next visit after mild" in said
    assert any("the release passes all checks that apply" in c.value for c in app.caption), app.caption


def test_a_zip_of_linked_tables_is_opened_and_answers(linked):
    app = go(at_home(), "analyse")
    app.file_uploader[0].upload("clinic.zip", zipped(linked.files), "application/zip").run()
    press(app, "Open these files")
    assert not app.error
    _answers(app)
    next(s for s in app.selectbox if s.label == "Column in the table of visits").select("visits.back").run()
    assert not app.exception
    assert "no at the next visit after no" in sentences(app)
    assert app.file_uploader, "further releases can be opened"


def test_a_folder_of_linked_tables_is_opened_and_answers(linked, made, tmp_path):
    linked.save(tmp_path / "out", "parquet")
    app = go(at_home(), "analyse")
    app.file_uploader[0].upload("hiring.zip", zipped(made.files), "application/zip").run()
    press(app, "Open these files")
    app.text_input(key="analyse-folder").input(str(tmp_path / "out")).run()
    press(app, "Open the folder")
    assert not app.error
    _answers(app)
    which = next(s for s in app.selectbox if s.label == "Release")
    (other,) = [key for key in state(app).taken if key != which.value]
    which.set_value(other).run()
    assert not app.exception
    assert "(opened) combine 20" in sentences(app), "the single table is still there"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda facts: facts["tables"].update(transitions=[{"column": "visits.back"}]), "transitions"),
        (
            lambda facts: facts["tables"].update(at_visits=[{"column": "visits.back", "visit": 1, "counts": [1]}]),
            "at v",
        ),
        (lambda facts: facts["tables"]["transitions"][0].update(counts=[["x"]]), "transitions"),
        (lambda facts: facts["tables"]["returns"][0].update(days="30"), "counts of returns"),
        (lambda facts: facts["tables"].pop("returns"), "did not count returns"),
        (lambda facts: facts.update(tables=[]), "no counts of"),
    ],
)
def test_damaged_counts_of_linked_tables_are_named(linked, change, why):
    facts = json.loads(linked.files["release.json"])
    change(facts)
    files = {**linked.files, "release.json": json.dumps(facts).encode()}
    app = go(at_home(), "analyse")
    app.file_uploader[0].upload("clinic.zip", zipped(files), "application/zip").run()
    press(app, "Open these files")
    assert why in " ".join(i.value for i in app.info)
    assert any("check" in w.value and "fail" in w.value for w in app.warning), "the checker finds the change"


def test_linked_tables_without_a_table_are_not_opened(linked):
    app = go(at_home(), "analyse")
    files = {name: data for name, data in linked.files.items() if name != "visits.csv"}
    app.file_uploader[0].upload("clinic.zip", zipped(files), "application/zip").run()
    press(app, "Open these files")
    assert "does not contain the files of a release" in app.error[0].value
