"""What the pages share: rows and columns, words, jobs, pictures."""

from __future__ import annotations

import threading

import pytest

from core.errors import SchemaError
from core.schema import Column, Schema
from pages.parts import graph_picture, words
from pages.parts.job import Job
from pages.parts.schema_rows import Draft, column_of, join, numbers, row_of, split


@pytest.mark.parametrize(
    "categories",
    [("a", "b"), ("cook, canteen", "ä; ö"), ('say "so"', "x"), (" padded ", "収入, yearly"), ("1", "01", "1.0"), ()],
)
def test_categories_survive_the_cell(categories: tuple[str, ...]) -> None:
    assert split(join(categories)) == categories


def test_categories_may_stand_on_lines_of_their_own() -> None:
    assert split("a\nb; c\n\n") == ("a", "b", "c")


def test_edges_are_read_with_any_usual_mark_between() -> None:
    assert numbers("0; 18;40 65, 1e2", "age") == (0, 18, 40, 65, 100)
    with pytest.raises(SchemaError, match="'x' is not a number"):
        numbers("0; x", "age")


@pytest.mark.parametrize(
    "column",
    [
        Column("a", "numeric", edges=(0, 0.5, 1e6), integer=False, missing=True, unknown="missing"),
        Column("b", "categorical", ("x", "Other"), groups=(("Other", ("y", "z")),)),
        Column("c", "ordinal", ("1", "2"), guessed=("kind", "categories")),
    ],
)
def test_a_column_survives_its_row(column: Column) -> None:
    assert column_of(row_of(column), column) == column


def test_another_value_confirms_a_guessed_field() -> None:
    guess = Column("c", "ordinal", ("1", "2"), guessed=("kind", "categories"))
    assert column_of({**row_of(guess), "categories": "1; 2; 3"}, guess).guessed == ("kind",)


def test_only_ticked_rows_are_confirmed() -> None:
    guessed = [Column(n, "categorical", ("x",), guessed=("kind", "categories")) for n in "ab"]
    draft = Draft.of(Schema(tuple(guessed)))
    draft.rows[1]["checked"] = True
    draft.confirm()
    assert [c.guessed for c in draft.columns()] == [("kind", "categories"), ()]


@pytest.mark.parametrize(
    "text", ["[x](http://evil)", "# a", "<b>x</b>", "$x$", "`x`", "a*b*", "www.evil.example", "a@b.example"]
)
def test_text_stays_text(text: str) -> None:
    shown = words.plain(text)
    assert shown.replace("\\", "").replace("\u2060", "") == text
    assert "](" not in shown
    assert "://" not in shown
    assert "www." not in shown
    assert not shown.startswith("#")


def test_a_name_is_code_whatever_it_holds() -> None:
    assert words.name("age") == "`age`"
    assert words.name("a`b") == "`` a`b ``"


def test_a_job_reports_cancels_and_ends() -> None:
    started = threading.Event()

    def work(report: object) -> None:
        while True:
            report(0.5, "half")  # type: ignore[operator]
            started.set()
            threading.Event().wait(0.01)

    job = Job("test", work, lambda _: None, lambda _: None)
    assert started.wait(10)
    assert (job.fraction, job.message) == (0.5, "half")
    job.cancel()
    job.wait(10)
    assert job.finished
    assert job.state == "cancelled"


def test_arrows_that_skip_a_layer_bend_around_it() -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c")]
    layers, paths = graph_picture._layered(["a", "b", "c"], edges)
    assert [p[0] for p in paths] == ["a", "b", "a"]
    assert len(paths[2]) == 3
    assert len(layers[1]) == 2
