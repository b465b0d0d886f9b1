"""Each fact that the rows decide stays marked as a guess, whichever part of a column's description a person changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from espalier.core.project.column import Column
from espalier.core.project.editor import ProjectEditor
from espalier.core.project.file import Project
from espalier.core.project.hierarchy import read_hierarchy
from espalier.core.project.plan import Plan
from espalier.core.project.schema_json import column_from_json, column_to_json
from espalier.core.tables.guessing import guess_schema, sure_marks
from espalier.core.tables.reading import read_table
from espalier.core.tables.text_table import TextTable
from espalier.pages.data import hierarchy_editor
from espalier.pages.data.review_draft import ReviewDraft
from espalier.pages.data.typed_columns import row_of

CODES = ("250.43", "401.1", "414", "V45", "276.2", "428", "786.5")


def opened(folder: Path, cells: list[str]) -> tuple[ProjectEditor, ReviewDraft, TextTable]:
    """Open a table with a column ``a`` of these cells as the Data page does."""
    path = folder / "t.csv"
    path.write_text("a,c\n" + "".join(f"{cell},{'xy'[i % 2]}\n" for i, cell in enumerate(cells)))
    text = read_table(path)
    schema = guess_schema(text, sure_marks(text))
    editor = ProjectEditor(Project("t", schema, Plan("workload", 1.0, 1e-6), one_row_per_person=True))
    draft = ReviewDraft()
    draft.show(draft.rows(editor.project, text.columns, text))
    return editor, draft, text


def book_used(folder: Path, cells: list[str]) -> Column:
    editor, draft, text = opened(folder, cells)
    draft.use_book(editor, text, "icd-9-cm", ["a"])
    return editor.project.schema["a"]


def hierarchy_used(folder: Path, cells: list[str]) -> Column:
    editor, draft, text = opened(folder, cells)
    typed = row_of(editor.project.schema["a"])
    typed |= {"kind": "categorical", "edges": "", "categories": "; ".join(str(101 + 10 * i) for i in range(60))}
    draft.act(editor, text, {"do": "change", "name": "a", "typed": typed})
    groups = read_hierarchy("".join(f"{101 + 10 * i},G{i // 10}\n" for i in range(60)))
    return hierarchy_editor._made(editor.project.schema["a"], groups, 100)


def bins_bought(folder: Path, cells: list[str]) -> Column:
    editor, draft, text = opened(folder, cells)
    typed = row_of(editor.project.schema["a"])
    typed["edges"] = "8 bins from 0 to 100"
    draft.act(editor, text, {"do": "change", "name": "a", "typed": typed})
    return editor.project.schema["a"]


def categories_bought(folder: Path, cells: list[str]) -> Column:
    editor, draft, text = opened(folder, cells)
    typed = row_of(editor.project.schema["a"])
    typed["categories"] = "at most 20"
    draft.act(editor, text, {"do": "change", "name": "a", "typed": typed})
    return editor.project.schema["a"]


@pytest.mark.parametrize(
    ("change", "cells", "other", "field", "marked"),
    [
        (book_used, [CODES[i % 7] for i in range(70)], ("?", "414"), "missing", [True, False]),
        (hierarchy_used, [str(101 + 10 * (i % 60)) for i in range(300)], ("", "101"), "missing", [True, True]),
        (bins_bought, [str(1 + 7 * i % 97) for i in range(300)], ("50", "50.5"), "integer", [True, True]),
        (categories_bought, [str(i % 5) for i in range(70)], ("0", "x"), "kind", [True, True]),
    ],
)
def test_a_fact_that_one_row_decides_is_a_guess_until_it_is_confirmed(tmp_path, change, cells, other, field, marked):
    """Previously, such a change settled the column, so one row decided a fact in the release."""
    made = [change(tmp_path, [*cells, cell]) for cell in other]
    assert made[0] != made[1]
    assert [field in column.guessed for column in made] == marked
    for column in made:
        assert column_from_json(column_to_json(column)) == column


def test_a_codebook_keeps_the_mark_that_a_person_confirmed(tmp_path):
    editor, draft, text = opened(tmp_path, [*(CODES[i % 7] for i in range(70)), "?"])
    draft.show(draft.rows(editor.project, text.columns, text))
    draft.confirm(editor, ["a"])
    draft.use_book(editor, text, "icd-9-cm", ["a"])
    made = editor.project.schema["a"]
    assert (made.missing_marks, made.guessed, made.confirmed) == (("?",), (), ("missing",))


def test_a_guess_of_bought_bins_can_be_confirmed(tmp_path):
    editor, draft, text = opened(tmp_path, [str(1 + 7 * i % 97) for i in range(300)])
    typed = row_of(editor.project.schema["a"])
    typed["edges"] = "8 bins"
    draft.act(editor, text, {"do": "change", "name": "a", "typed": typed})
    draft.show(rows := draft.rows(editor.project, text.columns, text))
    (row,) = [row for row in rows if row.name == "a"]
    assert (row.stage, row.reason) == (
        "open",
        "The release buys its bins. Whether all its numbers are whole was guessed.",
    )
    draft.confirm(editor, ["a"])
    assert (editor.project.schema["a"].guessed, editor.project.schema["a"].confirmed) == ((), ("integer",))


def test_the_person_column_is_never_listed_as_left_out(tmp_path):
    """Whether a guess had left it out depends on the rows. Previously, it was listed as confirmed."""
    editor, draft, text = opened(tmp_path, [f"p{i}" for i in range(40)])
    assert [c.name for c in editor.project.schema.left_out] == ["a"]
    draft.answer(editor, False, "a", 2)
    assert editor.project.schema.left_out == ()
    assert [row.stage for row in draft.rows(editor.project, text.columns, text)] == ["person", "open"]
