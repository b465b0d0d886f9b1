"""The grouped review without a browser: its groups, confirmations and changes, and its dependence on the rows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.code_books import code_book
from espalier.core.errors import ProjectError
from espalier.core.project.editor import ProjectEditor
from espalier.core.project.file import Project
from espalier.core.project.schema import HierarchyToBuy
from espalier.core.project.schema_json import schema_to_json
from espalier.core.tables.guessing import guess_schema, sure_marks
from espalier.core.tables.review import left_out_digest, shown_digest
from espalier.core.tables.text_table import TextColumn, TextTable
from espalier.pages.common import sign_in
from espalier.pages.data.review_draft import DECLARED, ReviewDraft
from espalier.pages.data.typed_columns import row_of
from espalier.pages.session import restore
from espalier.pages.session.session import blank
from tests.support.app import act, answer, go, press, review, sentences, start, state, upload

TABLE = "patient,sex,age,score,ward\n" + "".join(
    f"p{i:03},{'fm'[i % 2]},{20 + i % 60},{i % 3},{('north', 'south', '?')[i % 3]}\n" for i in range(120)
)


class Reviewer:
    """A person who reviews one table and sees only what the page shows."""

    def __init__(self, cells: dict[str, list[str]]) -> None:
        rows = len(next(iter(cells.values())))
        self.text = TextTable({n: TextColumn.of(c) for n, c in cells.items()}, rows)
        self.editor = ProjectEditor(blank("t", guess_schema(self.text, sure_marks(self.text))))
        self.draft = ReviewDraft()

    def rows(self) -> dict[str, Any]:
        found = self.draft.rows(self.editor.project, list(self.text.columns), self.text)
        self.draft.show(found)
        return {row.name: row for row in found}

    def act(self, do: str, name: str, **typed: Any) -> None:
        sent: dict[str, Any] = {"do": do, "name": name}
        if do == "change":
            sent["typed"] = {**row_of(self.editor.project.schema[name]), "book": "", "invented": False, **typed}
        self.draft.act(self.editor, self.text, sent)

    def confirm(self, *names: str) -> None:
        self.draft.confirm(self.editor, names)


def cells(seed: int, rows: int = 120) -> dict[str, list[str]]:
    """Return a generated table of yes and no, small numbers, rare values, amounts, dates and case numbers."""
    rng = np.random.default_rng(seed)
    return {
        "case": [f"c{i:04}" for i in rng.permutation(9000)[:rows]],
        "ill": rng.choice(["no", "yes"], rows).tolist(),
        "stage": rng.integers(0, 4, rows).astype(str).tolist(),
        "ward": rng.choice(["north", "south", "east", "?"], rows, p=[0.5, 0.35, 0.1, 0.05]).tolist(),
        "amount": rng.gamma(2, 400, rows).astype(int).astype(str).tolist(),
        "seen": [f"2023-{m:02}-11" for m in rng.integers(1, 13, rows)],
        "born": [f"{d}.{m}.1960" for d, m in zip(rng.integers(13, 29, rows), rng.integers(1, 13, rows), strict=True)],
    }


@pytest.mark.parametrize("seed", range(12))
def test_neighbouring_tables_lead_to_one_project_unless_a_value_that_was_shown_differs(seed: int) -> None:
    """A person who relies only on the page gets the same project from both tables if the page shows the same for
    both.
    """
    given = cells(seed)
    rng = np.random.default_rng(100 + seed)
    row, donor = rng.integers(0, 120, 2)
    other = {n: list(c) for n, c in given.items()}
    for n in other:  # another person's row, and for odd seeds one with a value that no other row has
        other[n][row] = given[n][donor]
    if seed % 2:
        other["ward"][row] = "west"
    made, seen = [], []
    for table in (given, other):
        person = Reviewer(table)
        rows = person.rows()
        seen.append({name: row.digest for name, row in rows.items() if row.stage == "open"})
        person.confirm(*rows)
        assert not person.editor.project.unconfirmed
        made.append(person.editor.project)
    changed = {n for n in seen[0].keys() | seen[1].keys() if seen[0].get(n) != seen[1].get(n)}
    assert ("ward" in changed) == bool(seed % 2)
    for name in given.keys() - changed:
        one, two = ([c for c in schema_to_json(p.schema) if c["name"] == name] for p in made)
        assert one == two
    assert (made[0] == made[1]) == (not changed)


def test_each_confirmation_records_the_digest_of_what_was_shown() -> None:
    person = Reviewer(cells(1))
    rows = person.rows()
    assert rows["case"].section == "identifies someone"
    assert rows["ill"].section == "obviously public"
    assert rows["amount"].section == "look closely"
    person.confirm(*rows)
    project = Project.loads(person.editor.project.dumps())
    for column in project.schema.columns:
        assert column.confirmed
        assert column.shown == shown_digest(column) == rows[column.name].digest
    assert [c.shown for c in project.schema.left_out] == [left_out_digest("case")]


def test_what_was_not_shown_as_it_is_now_is_not_confirmed() -> None:
    person = Reviewer(cells(2))
    names = list(person.rows())
    person.act("change", "ward", categories="north; south; east; west")
    person.act("keep", "case")
    person.confirm(*names)
    assert set(person.editor.project.schema.unconfirmed) == {"ward", "case"}, "changed since it was shown"
    person.rows()
    person.confirm("ward")
    assert person.editor.project.schema.unconfirmed == ("case",)


def test_a_change_reopens_that_column_only_and_a_label_none() -> None:
    person = Reviewer(cells(3))
    person.confirm(*person.rows())
    person.act("change", "stage", label="Stage of the illness", labels="0 = none")
    assert not person.editor.project.unconfirmed
    person.act("change", "ward", categories="north; south; other", unknown=True, missing=True)
    assert person.editor.project.unconfirmed == ("ward",)
    rows = person.rows()
    assert (rows["ward"].stage, rows["ward"].section) == ("open", "look closely")
    assert not person.editor.project.schema["ward"].shown
    assert person.editor.project.schema["stage"].label_of("0") == "none"


def test_what_a_person_types_instead_of_the_guess_needs_no_confirmation() -> None:
    person = Reviewer(cells(4))
    person.rows()
    person.act("change", "ward", kind="ordinal", categories="x; y", missing=False, marks="", unknown=False)
    assert person.editor.project.schema["ward"].guessed == ()
    assert person.rows()["ward"].stage == "declared"


def test_keep_leave_out_and_person_lead_back_and_forth() -> None:
    person = Reviewer(cells(5))
    before = person.editor.project.schema
    person.rows()
    person.act("out", "ward")
    assert "ward" not in person.editor.project.schema
    person.act("keep", "ward")
    assert person.editor.project.schema == before
    person.act("person", "case")
    plan = person.editor.project.plan
    assert (plan.person, plan.rows_per_person, person.rows()["case"].stage) == ("case", 2, "person")
    person.act("keep", "case")
    assert person.editor.project.unit_open
    assert person.editor.project.schema.names == tuple(person.text.columns)
    person.act("change", "case", kind="identifier", invented=True)
    assert [(c.name, c.invented) for c in person.editor.project.schema.identifiers] == [("case", True)]
    person.act("keep", "case")
    assert "case" in person.editor.project.schema


@pytest.mark.parametrize(
    "sent", [{"do": "drop"}, {"do": "change"}, {"do": "change", "typed": 3}, {"do": "change", "typed": {"kind": "x"}}]
)
def test_what_the_browser_cannot_have_sent_changes_nothing(sent: dict[str, Any]) -> None:
    person = Reviewer(cells(6))
    person.rows()
    before = person.editor.project
    for name in ("ward", "nowhere", 3, None):
        person.draft.act(person.editor, person.text, {**sent, "name": name})
    assert person.editor.project == before
    assert person.draft.errors.keys() == {"ward"}


def test_a_code_book_is_declared_whole_with_one_press() -> None:
    table = cells(7)
    table["state"] = [("CA", "NY", "TX", "WA", "OR", "?")[i % 6] for i in range(120)]
    person = Reviewer(table)
    assert person.rows()["state"].books == ("us-states",)
    person.draft.use_book(person.editor, person.text, "us-states", ["state"])
    column: Any = Project.loads(person.editor.project.dumps()).schema["state"]
    assert column.tree.texts == tuple(code_book("us-states").codes)
    assert (column.guessed, column.missing, column.missing_marks) == (("missing",), True, ("?",))
    person.rows()
    person.draft.confirm(person.editor, ["state"])
    settled = person.editor.project.schema["state"]
    assert (settled.guessed, settled.confirmed, settled.shown) == ((), ("missing",), shown_digest(settled))
    assert person.editor.project.plan.schema_share > 0
    person.act("change", "ward", book="us-states")
    assert "lacks some values" in person.draft.errors["ward"]
    assert "north" not in person.draft.errors["ward"]


def test_one_press_makes_a_word_mean_missing_in_all_columns() -> None:
    table = cells(8)
    for name in ("ill", "stage"):
        table[name] = ["none" if i % 9 == 0 else c for i, c in enumerate(table[name])]
    table["age"] = ["-9" if i % 9 == 0 else str(20 + i % 40) for i in range(120)]
    person = Reviewer(table)
    marks = {name: row.marks for name, row in person.rows().items() if row.marks}
    assert marks == {"ill": ("none",), "stage": ("none",), "age": ("-9",)}
    person.draft.mean_missing(person.editor, person.text, "none", ["ill", "stage"])
    person.draft.mean_missing(person.editor, person.text, "-9", ["age"])
    schema = person.editor.project.schema
    assert schema["ill"].categories == ("no", "yes")
    assert schema["age"].edges[0] >= 0
    assert all(schema[name].missing_marks for name in marks)


def test_one_press_says_whether_the_day_or_the_month_comes_first() -> None:
    table = cells(9)
    table["left"] = [f"{1 + i % 12}/{1 + i % 7}/2023" for i in range(120)]
    person = Reviewer(table)
    assert person.rows()["left"].orders == ("dmy", "mdy")
    assert person.rows()["born"].orders == ()
    person.act("change", "left", label="Discharge")
    person.draft.use_date_order(person.editor, person.text, "mdy", ["left"])
    column = Project.loads(person.editor.project.dumps()).schema["left"]
    assert (column.date_order, column.dates.by, column.label) == ("mdy", "month", "Discharge")
    assert "date_order" in column.guessed, "it counts once the person has confirmed it"
    assert column.judge(["7/1/2023"])[0] == 6
    rows = person.rows()
    assert rows["left"].orders == ()
    person.confirm(*rows)
    assert "date_order" in person.editor.project.schema["left"].confirmed


def test_the_order_of_a_date_is_changed_in_place() -> None:
    person = Reviewer(cells(10))
    assert person.editor.project.schema["born"].date_order == "dmy"
    person.confirm(*person.rows())
    person.act("change", "born", date_order="")
    assert person.editor.project.schema["born"].date_order == ""
    assert person.editor.project.unconfirmed == ("born",), "changed since it was shown"
    person.act("change", "seen", kind="categorical", categories="2023-01-11; 2023-02-11")
    person.act("change", "seen", kind="date", edges="2023-01-01; 2023-12-31; quarter", date_order="ymd")
    assert person.editor.project.schema["seen"].date_order == "ymd"


def test_the_page_asks_for_the_order_of_unclear_dates(app: AppTest) -> None:
    rows = "".join(f"p{i},{1 + i % 12}/{1 + i % 7}/2023,{'fm'[i % 2]}\n" for i in range(60))
    press(upload(app, f"patient,left,sex\n{rows}", "ward.csv"), "Guess")
    assert "How are the dates in `left` written?" in sentences(app)
    press(app, "Day first, as in 31/12/2020")
    assert state(app).project.schema["left"].date_order == "dmy"
    assert "How are the dates" not in sentences(app)


def test_the_page_confirms_group_by_group_and_leads_on(app: AppTest) -> None:
    press(upload(app, TABLE, "ward.csv"), "Guess")
    assert state(app).project.schema["ward"].missing_marks == ("?",)
    assert "0 of 5 columns confirmed" in "".join(str(e.proto) for e in app.get("progress"))
    assert "4 columns are guessed: confirm them below." in app.success[0].value
    act(app, "person", "patient")
    assert "identifies the person; at most 2 rows" in sentences(app)
    press(app, "Confirm these 3 columns (obviously public)")
    assert state(app).project.unconfirmed == ("age",)
    assert "3 columns are declared. 1 column is guessed" in app.success[0].value
    assert not any(b.label == "Next: Structure" for b in app.button)
    review(app)
    assert "Reviewed: all 4 guessed columns are confirmed" in "".join(s.value for s in app.success)
    press(app, "Next: Structure")


def test_confirmed_columns_survive_a_reload_and_open_guesses_do_not(app: AppTest) -> None:
    press(upload(app, TABLE, "ward.csv"), "Guess")
    answer(app)
    press(app, "Confirm these 3 columns (obviously public)")
    act(app, "out", "age")
    act(app, "keep", "age")
    before = state(app).project
    text = restore.kept(state(app))
    assert text is not None
    assert "age" not in json.dumps(json.loads(text)["columns"])
    again = start()
    state(again).found = restore.read(text)
    again.run()
    assert "The tab kept 3 declared or confirmed columns" in sentences(again)
    press(upload(again, TABLE, "ward.csv"), "Guess")
    press(again, "Restore the answers")
    assert state(again).project.schema == before.schema
    assert state(again).project.unconfirmed == before.unconfirmed == ("age", "patient")
    forged = json.loads(text)
    forged["columns"]["described"][0]["guessed"] = ["kind"]
    with pytest.raises(Exception, match="open guess"):
        restore.read(json.dumps(forged))


@pytest.mark.parametrize("rows", [-5, 0, True, 2**53])
def test_a_draft_whose_number_of_rows_no_field_can_show_is_refused(rows: int) -> None:
    """Previously, such a draft was restored, and the Plan page showed an error from then on."""
    draft = {"title": "t", "rows": rows, "sample": "", "project": None, "dag": {"edges": []}, "roles": {}}
    draft["account"] = restore.account()
    assert restore.read(json.dumps({**draft, "rows": 1})).rows == 1
    with pytest.raises(ProjectError, match="cannot be read"):
        restore.read(json.dumps(draft))


def test_a_draft_names_code_books_and_stays_small(app: AppTest) -> None:
    from espalier.core.project.plan import Plan
    from espalier.core.project.schema import Schema

    books = tuple(HierarchyToBuy.of_book(f"diag_{i}", "icd-10-cm") for i in range(200))
    state(app).open(Project("codes", Schema(books), Plan("mst", 1.0, schema_share=0.1)))
    text = restore.kept(state(app))
    assert text is not None
    assert len(text) < 100_000
    assert restore.read(text).project == state(app).project
    long = tuple(replace(c, description="x" * 9000) for c in books)
    many = tuple(replace(long[i % 200], name=f"c{i}") for i in range(600))
    state(app).open(Project("long", Schema(many), Plan("mst", 1.0)))
    assert restore.kept(state(app)) is None, "the tab could not keep it"


def test_a_dictionary_declares_its_columns_after_one_statement(app: AppTest) -> None:
    press(upload(app, TABLE, "ward.csv"), "Guess")
    book = b"column,code,label\nward,north,North\nward,south,<b>South</b>\nscore,0,none\nscore,1,some\nward,north,No\n"
    uploader = next(u for u in app.file_uploader if u.label == "A data dictionary")
    uploader.upload("book.csv", book, "text/csv").run()
    assert not app.exception, [e.value for e in app.exception]

    def use() -> Any:
        return next(b for b in app.button if b.label == "Use this dictionary")

    assert any("'north' of 'ward' has another label" in c.value for c in app.caption), "unused parts are noted"
    app.checkbox[0].check().run()
    assert use().disabled, "score holds a value that the dictionary does not declare"
    assert "Not declared: `2`." in [c.value for c in app.caption], "the steward sees what needs a decision"
    for radio in [r for r in app.radio if "What should happen" in r.label]:
        radio.set_value("missing").run()
    press(app, "Use this dictionary")
    project = state(app).project
    assert project.schema["ward"].label_of("south") == "<b>South</b>"
    assert project.schema["score"].categories == ("0", "1")
    assert [d.columns for d in project.dictionaries] == [("ward", "score")]
    assert {"ward", "score"}.isdisjoint(project.unconfirmed)
    assert state(app).drafts.review.sections["ward"] == DECLARED
    go(app, "data")
    assert "declares `ward`, `score`" in sentences(app)


def test_a_draft_goes_to_no_other_account_that_uses_the_tab(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Previously, the next person to sign in to a tab was offered the last one's project."""
    press(upload(app, TABLE, "ward.csv"), "Guess")
    monkeypatch.setattr(sign_in, "identity", lambda: ("i", "1", "anna@hospital.example"))
    text = restore.kept(state(app))
    assert restore.read(text).title == state(app).project.name
    monkeypatch.setattr(sign_in, "identity", lambda: ("i", "2", "ben@hospital.example"))
    with pytest.raises(ProjectError, match="another account"):
        restore.read(text)
