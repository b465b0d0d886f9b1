"""Code that several pages use: typed columns, sentences, jobs, charts."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from espalier.core.display import card, in_order
from espalier.core.errors import EspalierError, SchemaError
from espalier.core.planning.budget_lines import Line
from espalier.core.privacy.accounting import epsilon_of
from espalier.core.project.coarsening import group
from espalier.core.project.schema import Column
from espalier.core.server.queue import Job, Queue
from espalier.pages.common import charts, fields, text
from espalier.pages.data.typed_columns import column_of, join, numbers, row_of, split
from espalier.pages.release import spending
from espalier.pages.session.bundles import Spent
from espalier.pages.session.session import Session
from tests.support.app import until

REORDERING = [*map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))]


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
        Column("price", "numeric", edges=(0, 0.5, 9.99), decimals=2),
        Column("b", "categorical", ("x", "Other"), groups=(("Other", ("y", "z")),)),
        Column("c", "ordinal", ("1", "2"), guessed=("kind", "categories")),
        Column("d", "categorical", ("1",), missing=True, missing_marks=("?", "a; b"), value_labels=(("1", "a = b"),)),
        Column("e", "numeric", edges=(0, 10), number_style="1234,5", label="Weight", unit="kg", description="in kg"),
    ],
)
def test_a_column_survives_its_row(column: Column) -> None:
    assert column_of(row_of(column), column) == column


@pytest.mark.parametrize(
    ("typed", "guessed"),
    [
        ({"categories": "flu; cold; rare; other"}, True),
        ({"categories": "other; rare"}, True),
        ({"categories": "flu-like"}, False),
        ({"categories": "Other"}, True),  # the group's texts are in the project file too
        ({"kind": "numeric", "edges": "0; 7; 100"}, True),
        ({"kind": "numeric", "edges": "0; 8; 100"}, False),
    ],
)
def test_a_list_stays_guessed_while_anything_of_the_guess_is_in_it(typed: dict[str, Any], guessed: bool) -> None:
    guess = Column("c", "categorical", ("flu", "cold", "rare", "7.0"), guessed=("kind", "categories"))
    if typed.get("categories") == "Other":
        guess = group(guess, ["cold", "rare"], "Other")
    made = column_of({**row_of(guess), **typed}, guess)
    values = "edges" if made.kind == "numeric" else "categories"
    assert (values in made.guessed) == guessed
    assert ("kind" in made.guessed) == (made.kind == "categorical")


@pytest.mark.parametrize(
    ("edges", "guessed"),
    [("3; 50; 97.5", True), ("0; 50; 97.5", True), ("3; 100", True), ("0; 40; 100", True), ("0; 45; 100", False)],
)
def test_a_range_stays_guessed_while_one_of_its_edges_stands(edges: str, guessed: bool) -> None:
    guess = Column("c", "numeric", edges=(3, 20, 40, 97.5), guessed=("kind", "edges"))
    assert ("edges" in column_of({**row_of(guess), "edges": edges}, guess).guessed) == guessed


@pytest.mark.parametrize("typed", ["two", "-1", "0", "10", "9" * 5000])
def test_decimals_that_cannot_be_are_refused(typed: str) -> None:
    price = Column("price", "numeric", edges=(0, 9))
    with pytest.raises(SchemaError, match="from 1 to 9"):
        column_of({**row_of(price), "decimals": typed}, price)


@pytest.mark.parametrize("labels", ["1", "1=male"])
def test_labels_need_a_value_and_a_label(labels: str) -> None:
    sex = Column("sex", "categorical", ("1", "2"))
    with pytest.raises(SchemaError, match="like 1 = male"):
        column_of({**row_of(sex), "labels": labels}, sex)


@pytest.mark.parametrize(
    "typed", ["[x](http://evil)", "# a", "<b>x</b>", "$x$", "`x`", "a*b*", "www.evil.example", "a@b.example"]
)
def test_text_stays_text(typed: str) -> None:
    shown = text.plain(typed)
    assert shown.replace("\\", "").replace("\u2060", "") == typed
    assert "](" not in shown
    assert "://" not in shown
    assert "www." not in shown
    assert not shown.startswith("#")


def test_a_name_is_code_whatever_it_holds() -> None:
    assert text.name("age") == "`age`"
    assert text.name("a`b") == "`` a`b ``"


@pytest.mark.parametrize("mark", ["\r", "\n", "\r\n", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"])
def test_a_line_break_in_a_name_ends_no_code(mark: str) -> None:
    """Previously, a column of a Parquet file could show a picture from another server, because two carriage returns end
    inline code.
    """
    named = f"a{mark}{mark}![x](https://example.org/x.png)"
    for shown in (text.name(named), text.plain(named)):
        assert len(shown.splitlines()) == 1


@pytest.mark.parametrize("mark", REORDERING)
def test_a_name_does_not_reorder_the_text_after_it(mark: str) -> None:
    """Previously, a column's name could turn 0.1 behind it into 1.0."""
    for shown in (text.name(f"a{mark}b"), text.plain(f"a{mark}b"), in_order(f"<b>a{mark}b</b>"), card("a", [mark])):
        assert mark not in shown


def test_a_job_reports_cancels_and_ends() -> None:
    started = threading.Event()

    def work(report: object) -> None:
        while True:
            report(0.5, "half")  # type: ignore[operator]
            started.set()
            threading.Event().wait(0.01)

    made = start(work)
    assert started.wait(10)
    assert (made.fraction, made.message) == (0.5, "half")
    made.cancel()
    made.wait(10)
    assert made.finished
    assert made.state == "cancelled"


class Held:
    """Work that continues until it is released."""

    def __init__(self) -> None:
        self.began, self.let_go = threading.Event(), threading.Event()

    def __call__(self, report: Any) -> str:
        self.began.set()
        while not self.let_go.wait(0.01):
            report(0.5, "half")
        return "made"


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    """A separate queue with room for one running job and two waiting ones."""
    made = Queue(at_once=1, most=2)
    monkeypatch.setattr("espalier.core.server.queue.QUEUE", made)
    return made


def start(work: Any, kind: str = "release", **more: Any) -> Job:
    return Job(kind, work, lambda *_: None, **more)


@pytest.mark.usefixtures("queue")
def test_jobs_wait_in_order_and_see_their_place() -> None:
    first, second, third = Held(), Held(), Held()
    jobs = [start(first)]
    assert first.began.wait(10)
    jobs += [start(second), start(third)]
    until(lambda: jobs[1].message == "Waiting: 1 release before yours")
    until(lambda: jobs[2].message == "Waiting: 2 releases before yours")
    assert not second.began.is_set()
    first.let_go.set()
    assert second.began.wait(10)
    until(lambda: jobs[2].message == "Waiting: 1 release before yours")
    assert not third.began.is_set()
    second.let_go.set()
    third.let_go.set()
    for each in jobs:
        each.wait(10)
    assert [each.state for each in jobs] == ["done"] * 3


@pytest.mark.usefixtures("queue")
def test_who_waits_can_cancel_and_the_next_moves_up() -> None:
    first, second, third = Held(), Held(), Held()
    jobs = [start(first)]
    assert first.began.wait(10)
    jobs += [start(second, "diagnostics"), start(third)]
    until(lambda: jobs[2].message == "Waiting: 2 jobs before yours")
    jobs[1].cancel()
    jobs[1].wait(10)
    assert (jobs[1].state, second.began.is_set()) == ("cancelled", False)
    until(lambda: jobs[2].message == "Waiting: 1 release before yours")
    first.let_go.set()
    third.let_go.set()
    jobs[2].wait(10)
    assert jobs[2].result == "made"


@pytest.mark.usefixtures("queue")
def test_a_full_queue_refuses() -> None:
    held = [Held() for _ in range(3)]
    jobs = [start(held[0])]
    assert held[0].began.wait(10)
    jobs += [start(work) for work in held[1:]]
    with pytest.raises(EspalierError, match="2 jobs are already waiting"):
        start(Held())
    for work, each in zip(held, jobs, strict=True):
        work.let_go.set()
        each.wait(10)
    assert jobs[-1].state == "done"


@pytest.mark.usefixtures("queue")
def test_a_job_nobody_waits_for_is_dropped_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("espalier.core.server.queue.GONE", 0.0)
    first, second = Held(), Held()
    running = start(first)
    assert first.began.wait(10)
    waiting = start(second, wanted=lambda: False)
    waiting.wait(10)
    assert (waiting.state, second.began.is_set()) == ("cancelled", False)
    first.let_go.set()
    running.wait(10)
    assert running.state == "done"


@pytest.mark.usefixtures("queue")
def test_a_failed_job_gives_its_place_back() -> None:
    def broken(_: Any) -> None:
        raise ValueError("row 17: Alice")

    for _ in range(3):
        failed = start(broken)
        failed.wait(10)
        assert failed.state == "failed"
        assert "Alice" not in failed.reason


@pytest.mark.parametrize(
    ("typed", "value"),
    [("1,5", 1.5), (" 0.5 ", 0.5), ("1e-9", 1e-9), ("2,5e-8", 2.5e-8), ("3", 3.0), ("0.125", 0.125), ("0,125", 0.125)],
)
def test_a_decimal_comma_is_a_point(typed: str, value: float) -> None:
    assert fields.number(typed, "ε") == value


@pytest.mark.parametrize("typed", ["1,000", "1.000,5", "1,5,5", "1_0", "nan", "inf", "", "abc", "１", "0x1"])
def test_a_number_that_may_be_another_is_refused(typed: str) -> None:
    with pytest.raises(EspalierError, match="ε"):
        fields.number(typed, "ε")


def test_releases_for_other_people_are_not_added_up() -> None:
    state = Session()
    state.spent = [Spent(0, 0.1, 1e-9, "add-remove", 1, person) for person in ("patient", "patient")]
    assert spending.total(state) is not None
    state.spent.append(Spent(0, 0.1, 1e-9, "add-remove", 1, "visit"))
    assert spending.total(state) is None


def test_what_draws_used_of_delta_is_added_up() -> None:
    """Previously, the ε of all releases was computed as if no draw had used any δ."""
    state = Session()
    state.spent = [Spent(0, 0.1, 1e-6, "add-remove", 1, None, for_draws=used) for used in (4e-7, 0.0, 1e-7)]
    rho, epsilon, delta = spending.total(state) or pytest.fail("no total")
    assert rho == pytest.approx(0.3)
    assert delta == pytest.approx(6e-7 + 5e-7)
    assert epsilon == pytest.approx(epsilon_of(rho, 6e-7))


def test_a_map_of_two_columns_has_room_for_its_labels() -> None:
    """A hierarchy's column may have a hundred values; labels without room are left out."""
    figure = charts.heat(
        [[0.0] * 50] * 30, [[f"d{i}" for i in range(30)], [f"a{i}" for i in range(50)]], ("d", "a"), 1.0
    )
    assert figure.layout.height >= 15 * 30
    assert len(figure.layout.yaxis.ticktext) == 30
    assert figure.layout.xaxis.ticktext[:2] == ("a0", "a3")
    assert charts.heat([[0.5]], [["x"], ["y"]], ("d", "a"), 1.0).layout.height == 360


@pytest.mark.parametrize(("many", "segments"), [(30, 30), (31, 1)])
def test_a_pool_of_many_counts_is_drawn_as_one_segment(many: int, segments: int) -> None:
    """Segments narrower than their white lines merged into stripes."""
    lines = [Line("marginals", f"counts of {i}", (f"{i}",), 2, 0.01, 5.0, None) for i in range(many)]
    (bars,) = charts.budget(lines, 2 * 0.01 * many).data
    assert len(bars.x) == segments
    assert sum(bars.x) == pytest.approx(50)
    assert ("31 measurements or choices" in bars.customdata) == (segments == 1)


def test_a_cancel_states_its_price_before_and_after_the_first_draw() -> None:
    assert spending.price_of_cancel(False, 1.0) == "nothing is spent yet"
    assert spending.price_of_cancel(True, 0.5) == "up to ε = 0.5 is already spent"


def test_a_job_estimates_what_is_left_from_what_is_done() -> None:
    one = Job("diagnostics", lambda report: report(0.25, "A quarter"), lambda *_: None)
    one.wait(10)
    assert one.seconds_left() is None, "it has ended"
    one.state, one._began = "running", 100.0
    assert one.seconds_left(101.0) is None, "too early"
    assert one.seconds_left(110.0) == pytest.approx(30.0)
