"""The ledger never exceeds the total and never loses or changes a line, on SQLite and PostgreSQL."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import select
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

import espalier.core.release.spend
from espalier.core.errors import Cancelled, LedgerError, LedgerUnavailable, ProjectError
from espalier.core.ledger import fingerprint
from espalier.core.ledger import store as ledger_store
from espalier.core.ledger.archive import digest_of, unpacked, zipped
from espalier.core.ledger.events import START, Event
from espalier.core.ledger.ledger import Ledger
from espalier.core.ledger.memory import head as memory_head
from espalier.core.ledger.places import database_url, memory_files
from espalier.core.ledger.places import remembered as memory_of
from espalier.core.ledger.replay import replay
from espalier.core.notebook import evaluate
from espalier.core.privacy.accounting import Budget, epsilon_of, rho_of, rounded_down, rounded_up
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.draws import Subtotal
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release import load_release, release
from espalier.core.release.resume import resume
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table
from tests.support.tables import bought

ROOT = Path(__file__).resolve().parents[2]
DELTA = 1e-6
SCHEMA = Schema((Column("a", "categorical", ("x", "y")), Column("b", "categorical", ("u", "v", "w"))))
PROJECT = Project("t", SCHEMA, Plan("independent", 1.0, DELTA))
CSV = b"a,b\n" + b"x,u\ny,v\nx,w\n" * 30


def table(text=CSV):
    return Table.encode(read_table(text, "t.csv"), SCHEMA)


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path, monkeypatch):
    """The place of a ledger: each test runs on both databases."""
    if request.param == "sqlite":
        return str(tmp_path / "deep" / "ledger.db")
    monkeypatch.setenv("ESPALIER_LEDGER_KEY", str(tmp_path / "ledger.key"))
    server = request.getfixturevalue("postgres")
    name = f"test_{os.urandom(6).hex()}"
    engine = sa.create_engine(server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")


def opened(where, table="people", epsilon=2.0, **more):
    ledger = Ledger(where, create=True)
    ledger.open_table(table, epsilon=epsilon, delta=DELTA, who="Ada", **more)
    return ledger


def reserve(ledger, epsilon=1.0, table="people", digest=b"d"):
    project = PROJECT.with_plan(epsilon=epsilon)
    return ledger.account(table, "Bob").reserve(project, Budget.of(project.plan, None), digest)


def test_a_release_is_an_entry(where):
    ledger = opened(where, note="the register of 2024")
    made = release(PROJECT, table(), ledger=ledger.account("people", "Bob", "for the board"))
    population = ledger.population_of("people")
    (entry,) = population.entries
    assert (entry.status, entry.who, entry.table, entry.note) == ("spent", "Bob", "people", "for the board")
    assert entry.plan == PROJECT.plan.to_json()
    assert entry.reserved == rho_of(1.0, DELTA)
    assert entry.counted == entry.rho_now == made.spending.rho == population.spent
    assert (population.opened_by, population.note) == ("Ada", "the register of 2024")
    assert population.left == pytest.approx(rho_of(2.0, DELTA) - made.spending.rho)
    assert entry.released == digest_of(made.files)
    assert ledger.files(entry.released) == made.files
    facts = json.loads(made.files["release.json"])["ledger"]
    assert facts["entry"] == entry.id
    assert facts["chain"] == entry.chain
    assert facts["before"]["rho"] == 0
    assert facts["after"]["epsilon"] == epsilon_of(entry.reserved, DELTA)
    assert f"entry {entry.id} of people" in made.files["report.html"].decode()
    assert ledger.verify() == []


WIDER = Schema((*SCHEMA.columns, Column("c", "categorical", ("r", "s"))))
LOOKING = Project("t", WIDER, Plan("mst", 1.0, DELTA, target="b", private_evaluation=0.2))


def wider():
    return Table.encode(read_table(b"a,b,c\n" + b"x,u,r\ny,v,s\nx,w,r\n" * 600, "t.csv"), WIDER)


def test_each_selection_measurement_and_looking_is_a_line_of_its_own(where):
    ledger = opened(where)
    reserve(ledger, 0.5)  # another user's reservation is still running
    made = release(LOOKING, wider(), ledger=ledger.account("people"))
    population = ledger.population_of("people")
    other, entry = population.entries
    assert other.parts == ()
    assert [(x.kind, x.what) for x in entry.parts][:3] == [
        ("measure", "one-way, 3 draws"),
        ("select", "tree choice, 2 draws"),
        ("measure", "two-way, 2 draws"),
    ]
    looked = [x for x in entry.parts if x.kind == "look"]
    assert {x.what.split(",")[0] for x in looked} >= {"accuracy"}
    assert sum(x.rho for x in looked) == pytest.approx(made.private_evaluation.rho)
    assert sum(x.rho for x in entry.parts if x.kind != "look") == pytest.approx(entry.counted)
    assert sum(x.rho for x in entry.parts if x.kind == "select") == pytest.approx(
        sum(c.rho for c in bought(made.spending, "choice"))
    )
    assert entry.parts[0].rho_before == other.reserved
    for before, after in itertools.pairwise(x for x in entry.parts if x.kind != "look"):
        assert before.rho_after == after.rho_before
    assert entry.parts[-1].rho_after == pytest.approx(other.reserved + entry.counted, rel=1e-12)
    assert all(x.rho_before == x.rho_after for x in looked), "other people: their release adds nothing"
    assert ledger.verify() == []
    (_, exported) = ledger.to_json()["populations"][0]["entries"]
    assert [x["rho"] for x in exported["parts"]] == [x.rho for x in entry.parts]
    assert {"status", "epsilon_before", "epsilon_after"} <= set(exported["parts"][0])
    rows = list(csv.DictReader(io.StringIO(ledger.csv())))
    kinds = [r["kind"] for r in rows]
    assert kinds == ["open", "reserve", "reserve", *(x.kind for x in entry.parts), "spend"]
    assert float(rows[-2]["epsilon_after"]) == float(rows[-1]["epsilon_after"])


def test_a_cancelled_run_counts_in_full_until_it_is_resumed_and_once_it_is_closed(where, monkeypatch):
    ledger = opened(where)
    with pytest.raises(Cancelled):
        release(LOOKING, wider(), stops(0.1), ledger.account("people"))
    (entry,) = ledger.population_of("people").entries
    assert (entry.status, entry.parts, entry.counted) == ("reserved", (), entry.reserved)
    acts = [Subtotal("measure", "one-way", 3, 0.001), Subtotal("select", "tree choice", 1, 0.002)]
    ledger.account("people").resumed(entry.id).close("closed by Ada", acts)
    (entry,) = ledger.population_of("people").entries
    assert [x.kind for x in entry.parts] == ["measure", "select"]
    assert 0 < entry.undrawn < entry.counted == entry.reserved
    assert entry.undrawn + sum(x.rho for x in entry.parts) == pytest.approx(entry.reserved)
    assert entry.stopped_short
    (last,) = entry.parts[-1:]
    whole = replace(entry, parts=(*entry.parts[:-1], replace(last, rho=last.rho + entry.undrawn * (1 - 1e-12))))
    assert not whole.stopped_short, "rounding is not a missing draw"

    measured = PrivateCurator.measure

    def broken(self, rhos, pool=""):
        made = measured(self, rhos, pool)
        if pool == "accuracy":
            raise RuntimeError("in the middle of an evaluation")
        return made

    monkeypatch.setattr(PrivateCurator, "measure", broken)
    with pytest.raises(RuntimeError):
        release(LOOKING, wider(), ledger=ledger.account("people"))
    entry = ledger.population_of("people").entries[-1]
    assert (entry.status, entry.counted) == ("reserved", entry.reserved)
    assert ledger.verify() == []


def test_parts_and_the_end_are_written_together_or_not_at_all(tmp_path, monkeypatch):
    ledger = opened(tmp_path / "l.db")
    reservation = reserve(ledger)
    parts = [Subtotal("select", "tree", 3, 0.001), Subtotal("measure", "one-way", 2, 0.002)]
    monkeypatch.setattr("espalier.core.ledger.account.time.sleep", lambda s: None)
    with monkeypatch.context() as patch:
        patch.setattr(ledger_store, "head", lambda *_: (_ for _ in ()).throw(OSError(28, "disk full")))
        assert "disk full" in reservation.spend(0.003, {"a": b"x"}, parts)
    assert ledger.head()[0] == 2
    assert reservation.spend(0.003, {"a": b"x"}, parts) == ""
    assert ledger.head()[0] == 5
    assert reservation.spend(0.003, {"a": b"x"}, parts) == "", "recorded twice, written once"
    assert ledger.head()[0] == 5


def test_a_release_without_a_ledger_says_so():
    made = release(PROJECT, table())
    assert made.to_json()["ledger"] is None
    assert "Not recorded in a ledger" in made.files["report.html"].decode()


def test_releases_until_the_total_and_not_one_more(where, monkeypatch):
    ledger = opened(where, epsilon=2.0)
    fit = int(rho_of(2.0, DELTA) / rho_of(1.0, DELTA))
    assert fit == 3
    for _ in range(fit):
        release(PROJECT, table(), ledger=ledger.account("people"))
    monkeypatch.setattr(PrivateCurator, "measure", lambda *a: pytest.fail("drew"))
    with pytest.raises(LedgerError, match="refuses") as refusal:
        release(PROJECT, table(), ledger=ledger.account("people"))
    assert refusal.value.data["requested"] == rho_of(1.0, DELTA)
    population = ledger.population_of("people")
    assert len(population.entries) == fit
    assert refusal.value.data["remaining"] == population.left
    assert population.epsilon_after(population.spent) <= 2.0
    largest = population.largest()
    monkeypatch.undo()
    release(PROJECT.with_plan(epsilon=largest), table(), ledger=ledger.account("people"))
    assert ledger.verify() == []


def test_a_plan_of_exactly_the_total_fits(where):
    ledger = opened(where, epsilon=1.0)
    assert ledger.population_of("people").largest() == 1.0
    reserve(ledger, 1.0)
    population = ledger.population_of("people")
    assert population.left == 0.0
    assert population.largest() == 0.0


@given(st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=40))
@settings(max_examples=50)
def test_sums_round_against_the_user(rhos):
    exact = sum(map(Fraction, rhos), Fraction(0))
    assert Fraction(rounded_down(exact)) <= exact <= Fraction(rounded_up(exact))
    assert rounded_up(exact) - rounded_down(exact) <= np.spacing(rounded_up(exact))


def test_the_last_bit_is_refused(tmp_path):
    """A total that a float sum would accept is refused by the exact sum."""
    ledger = opened(tmp_path / "l.db", epsilon=1.0)
    population = ledger.population_of("people")
    total = population.rho
    half = total / 2
    entry = reserve(ledger, 0.5).entry
    tight = replace(population, entries=(replace(entry, counted=half),))
    tight.allows(half)
    with pytest.raises(LedgerError):
        tight.allows(float(np.nextafter(half, 1)))
    tiny = replace(population, entries=(replace(entry, counted=total),))
    assert total + 1e-30 == total
    with pytest.raises(LedgerError):
        tiny.allows(1e-30)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"neighbors": "add-remove"}, "neighbors"),
        ({"rows_per_person": 2}, "rows_per_person"),
        ({"delta": 1e-9}, "delta"),
    ],
)
def test_another_unit_is_refused(where, changes, key):
    ledger = opened(where)
    with pytest.raises(LedgerError, match="fixed") as refusal:
        release(PROJECT.with_plan(**changes), table(), ledger=ledger.account("people"))
    assert refusal.value.data["key"] == key
    assert ledger.population_of("people").entries == ()


VISITS = b"pid,visit,a,b\n" + b"".join(b"p%d,v%d,x,u\n" % (i // 2, i) for i in range(80))


def visits(person):
    """Two rows for each patient, each a separate visit."""
    return Table.encode(read_table(VISITS, "v.csv"), SCHEMA, person)


def of(person, **more):
    return PROJECT.with_plan(neighbors="add-remove", rows_per_person=2, person=person, rows=80, epsilon=0.3, **more)


@pytest.mark.parametrize("other", ["visit", None])
def test_a_release_for_another_person_column_is_refused_or_shown(where, other):
    """ρ for a patient and ρ for a visit cannot be added: no single number is stated for both."""
    ledger = opened(where, neighbors="add-remove", rows_per_person=2, person="pid")
    first = release(of("pid"), visits("pid"), ledger=ledger.account("people"))
    assert first.to_json()["ledger"]["unit"] == {"person": "pid", "enforced": True, "another_unit": False}
    assert "enforced by the person column “pid”" in first.files["report.html"].decode()
    with pytest.raises(LedgerError, match="fixed the person column 'pid'.*--another-unit") as refusal:
        release(of(other), visits(other), ledger=ledger.account("people"))
    assert refusal.value.data["key"] == "person"
    population = ledger.population_of("people")
    assert len(population.entries) == 1
    assert population.caveats == []

    made = release(of(other), visits(other), ledger=ledger.account("people", another_unit=True))
    assert made.to_json()["ledger"]["unit"]["another_unit"] is True
    assert "fixed a different unit" in made.files["report.html"].decode()
    population = ledger.population_of("people")
    assert [e.another_unit for e in population.entries] == [False, True]
    assert population.entries[0].unit == "enforced by the person column 'pid'"
    assert "a different unit" in population.entries[1].unit
    assert "the total is valid for neither" in population.caveats[0]
    with pytest.raises(LedgerError, match="fixed"):
        release(of(other), visits(other), ledger=ledger.account("people"))
    assert ledger.verify() == []
    (exported,) = ledger.to_json()["populations"]
    assert [e["enforced"] for e in exported["entries"]] == [True, other is not None]
    assert [e["another_unit"] for e in exported["entries"]] == [False, True]
    units = [r["unit"] for r in csv.DictReader(io.StringIO(ledger.csv())) if r["kind"] in ("open", "reserve")]
    assert ["a different unit" in unit for unit in units] == [False, False, True]


def test_tables_of_one_population_have_a_person_column_each(where):
    ledger = opened(where, "patients", neighbors="add-remove", rows_per_person=2, person="pid")
    population = ledger.open_table("survey", "patients")
    assert population.persons == {"patients": "pid", "survey": None}
    assert population.unit_of("patients") == "enforced by the person column 'pid'"
    assert population.unit_of("survey") == "promised; no person column enforces it"
    assert "no one has more than 2 rows in 'survey'" in population.caveats[0]
    population.fits(of("pid"), "patients")
    population.fits(of(None), "survey")
    for person, name in (("pid", "survey"), (None, "patients")):
        with pytest.raises(LedgerError, match="fixed"):
            population.fits(of(person), name)
    with pytest.raises(ProjectError, match="1 to 200") as error:
        ledger.open_table("other", "patients", person=" ")
    assert error.value.data["key"] == "person"


def test_a_second_name_does_not_give_a_table_a_second_unit(tmp_path):
    ledger = opened(tmp_path / "l.db", neighbors="add-remove", rows_per_person=2, person="pid")
    ledger.open_table("visits", "people", person="visit")
    release(of("pid"), visits("pid"), ledger=ledger.account("people"))
    with pytest.raises(LedgerError, match="as 'people'.*different person columns.*--again"):
        release(of("visit"), visits("visit"), ledger=ledger.account("visits"))
    assert ledger.population_of("visits").entries[-1].table == "people"
    release(of("visit"), visits("visit"), ledger=ledger.account("visits", again=True))


def as_before(events):
    """The events as they were written before tables had a person column, with new hashes."""
    out = []
    for event in events:
        plan = json.loads(event.plan) if event.kind == "reserve" else None
        plan = plan and json.dumps({k: plan[k] for k in ("project", "plan")})
        out.append(replace(event, plan=plan, previous=out[-1].hash if out else START))
    return out


def stored(where, events, layout):
    """A ledger with these events, in another layout."""
    store = Ledger(where, create=True).store
    with store._engine.begin() as connection:
        connection.execute(ledger_store._events.insert(), [dict(e.row()) for e in events])
        for key, value in (("version", layout), ("head", memory_head(len(events), events[-1].hash))):
            connection.execute(ledger_store._meta.update().where(ledger_store._meta.c.key == key).values(value=value))
    return Ledger(where)


def test_in_an_old_ledger_the_first_release_fixes_the_person_column(tmp_path):
    """A ledger with mixed units separates them from then on and stays usable."""
    ledger = opened(tmp_path / "new.db", neighbors="add-remove", rows_per_person=2)
    account = ledger.account("people", another_unit=True)
    for person in ("pid", "visit", None, "pid"):
        account.reserve(of(person), Budget.of(of(person).plan, None), b"d")
    events = as_before(ledger.events())
    unused = stored(tmp_path / "unused.db", events[:1], "2").population_of("people")
    assert unused.persons == {}
    assert unused.unit_of("people") == "fixed by the first release"
    old = stored(tmp_path / "old.db", events, "2")
    assert old.verify() == []
    population = old.population_of("people")
    assert population.persons == {"people": "pid"}
    assert [e.another_unit for e in population.entries] == [False, True, True, False]
    assert "2 releases used a different unit" in population.caveats[0]
    with pytest.raises(LedgerError, match="fixed the person column 'pid'"):
        old.account("people").reserve(of("visit"), Budget.of(of("visit").plan, None), b"d")
    old.account("people").reserve(of("pid"), Budget.of(of("pid").plan, None), b"d")
    assert old.verify() == []


def test_a_plan_without_a_delta_takes_the_ledgers(tmp_path):
    ledger = opened(tmp_path / "l.db")
    project = PROJECT.with_plan(delta=None)
    made = release(project, table(), ledger=ledger.account("people"))
    assert made.project == project
    assert made.to_json()["spent"]["delta"] == DELTA
    ledger.open_table("private size", epsilon=2.0, delta=DELTA, neighbors="add-remove")
    project = project.with_plan(neighbors="add-remove")
    made = release(project, table(), ledger=ledger.account("private size", again=True))
    assert made.to_json()["asked"]["delta"] == DELTA


def test_nothing_in_the_ledger_depends_on_a_private_number_of_rows(tmp_path):
    """For two tables of very different sizes, everything except ids, hashes and fingerprints is equal, and no count is
    stored.
    """
    project = PROJECT.with_plan(neighbors="add-remove", rows=50)
    said = []
    for rows in (120, 12_345):
        ledger = opened(tmp_path / f"{rows}.db", neighbors="add-remove")
        codes = {n: np.zeros(rows, dtype=np.uint8) for n in SCHEMA.names}
        release(project, Table(SCHEMA, codes, rows), ledger=ledger.account("people", "Bob"))
        events = ledger.to_json()["events"]
        opening = json.loads(events[0]["plan"])
        assert len(opening.pop("random")) == 32
        events[0]["plan"] = json.dumps(opening)
        hidden = ("entry", "fingerprint", "released", "previous", "hash", "at")
        said.append([{k: v for k, v in e.items() if k not in hidden} for e in events])
        assert all(len(e["at"]) == len("2026-01-01T00:00Z") for e in events), "to the minute"
    assert said[0] == said[1]
    assert "12345" not in json.dumps(said)


def test_tables_of_one_population_share_its_budget(where):
    ledger = opened(where, "extract A", epsilon=1.0, population="register")
    shared = ledger.open_table("extract B", "register", who="Ada")
    assert shared.tables == ("extract A", "extract B")
    reserve(ledger, 1.0, "extract A")
    with pytest.raises(LedgerError, match="'register'"):
        reserve(ledger, 0.1, "extract B")


@pytest.mark.parametrize(
    ("args", "more", "error", "text"),
    [
        (("people",), {"epsilon": 3.0, "delta": DELTA}, LedgerError, "already open"),
        (("other", "people"), {"epsilon": 3.0}, LedgerError, "which cannot change"),
        (("other", "people"), {"neighbors": "add-remove"}, LedgerError, "which cannot change"),
        (("register",), {"epsilon": 1.0, "delta": DELTA}, LedgerError, "add it to that population"),
        (("other",), {"delta": DELTA}, ProjectError, "needs a total"),
        (("other",), {"epsilon": 0.0, "delta": DELTA}, ProjectError, "epsilon"),
        (("other",), {"epsilon": float("nan"), "delta": DELTA}, ProjectError, "epsilon"),
        (("other",), {"epsilon": 1.0, "delta": 1.0}, ProjectError, "delta"),
        (("other",), {"epsilon": 1.0, "delta": DELTA, "rows_per_person": 0}, ProjectError, "rows per person"),
        (("",), {"epsilon": 1.0, "delta": DELTA}, ProjectError, "1 to 200"),
        (("a\nb",), {"epsilon": 1.0, "delta": DELTA}, ProjectError, "one line"),
    ],
)
def test_what_cannot_be_opened(tmp_path, args, more, error, text):
    ledger = opened(tmp_path / "l.db")
    ledger.open_table("r", "register", epsilon=1.0, delta=DELTA)
    before = ledger.head()
    with pytest.raises(error, match=text):
        ledger.open_table(*args, **more)
    assert ledger.head() == before


ALIKE = {
    "combining mark": "cafe\u0301",
    "invisible letter": "caf\u200bé",
    "byte-order mark": "\ufeffcafé",
    "variation selector": "café\ufe0e",
    "wide letter": "\uff43afé",
    "filler": "café\u3164",
    "Mongolian selector": "ca\u180bfé",
    "code without a letter": "caf\U000e0080é",
    "empty note": "café\U0001d159",
    "capitals": "Café",
    "all capitals": "CAFE\u0301",
}


@pytest.mark.parametrize("name", ALIKE.values(), ids=ALIKE)
def test_a_name_that_looks_like_an_open_one_is_refused(tmp_path, name):
    """Previously, the same people got a second total under a name that looks the same on screen."""
    ledger = opened(tmp_path / "l.db", "café")
    terms = {"epsilon": 1.0, "delta": DELTA}
    for args in ((name,), ("other", name)):
        with pytest.raises(LedgerError, match="looks like 'caf\\\\xe9', which is open"):
            ledger.open_table(*args, **terms)
    with pytest.raises(LedgerError, match="'caf\\\\xe9', which looks like it"):
        ledger.account(name)
    ledger.open_table("cafés", **terms)
    ledger.open_table("other", "café")
    assert ledger.population_of("other").name == "café"


@pytest.mark.parametrize(("name", "other"), [("a-b", "a\u2011b"), ("a-b", "a\u2212b"), ("o'n", "o\u2019n")])
def test_a_name_with_another_dash_or_quote_is_refused(tmp_path, name, other):
    ledger = opened(tmp_path / "l.db", name)
    with pytest.raises(LedgerError, match="looks like"):
        ledger.open_table(other, epsilon=1.0, delta=DELTA)
    ledger.open_table(name.replace("-", "").replace("'", ""), epsilon=1.0, delta=DELTA)


def test_names_that_look_alike_in_an_older_ledger_stay_readable(tmp_path, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr("espalier.core.ledger.ledger.look_alike", lambda *_: None)
        ledger = opened(tmp_path / "l.db", "café")
        ledger.open_table("cafe\u0301", epsilon=1.0, delta=DELTA)
    assert ledger.population_of("cafe\u0301").name == "cafe\u0301"
    assert ledger.account("café").population.name == "café"


def test_a_table_that_was_never_opened_is_refused(tmp_path):
    with pytest.raises(LedgerError, match="Open its budget first"):
        opened(tmp_path / "l.db").account("nobody")


def stops(at):
    def report(fraction, message):  # noqa: ARG001
        if fraction >= at:
            raise Cancelled("cancelled")

    return report


def test_cancelled_before_the_first_draw_is_returned(where):
    ledger = opened(where)
    with pytest.raises(Cancelled):
        release(PROJECT, table(), stops(0.0), ledger.account("people"))
    population = ledger.population_of("people")
    assert [e.status for e in population.entries] == ["returned"]
    assert population.spent == population.entries[0].rho_now == 0.0
    assert ledger.verify() == []


def test_cancelled_after_a_draw_counts_in_full(where):
    ledger = opened(where)
    with pytest.raises(Cancelled):
        release(PROJECT, table(), stops(0.5), ledger.account("people"))
    (entry,) = ledger.population_of("people").entries
    assert (entry.status, entry.counted, entry.released) == ("reserved", entry.reserved, None)
    assert "cancelled" in entry.note


def test_an_unexpected_error_ends_the_entry_and_stores_no_value(tmp_path, monkeypatch):
    ledger = opened(tmp_path / "l.db")

    def broken(*_, **__):
        raise RuntimeError("row 17: Alice")

    monkeypatch.setattr(espalier.core.release.run, "Release", broken)
    with pytest.raises(RuntimeError):
        release(PROJECT, table(), ledger=ledger.account("people"))
    (entry,) = ledger.population_of("people").entries
    assert (entry.status, entry.counted) == ("reserved", entry.reserved)
    assert "Alice" not in json.dumps(ledger.to_json())


def test_the_reservation_is_there_before_the_first_draw(where, monkeypatch):
    ledger = opened(where)
    seen = []
    debit = espalier.core.privacy.spending.Spending.debit
    monkeypatch.setattr(
        espalier.core.privacy.spending.Spending,
        "debit",
        lambda self, *args: (
            seen.append([e.status for e in ledger.population_of("people").entries]),
            debit(self, *args),
        ),
    )
    release(PROJECT, table(), ledger=ledger.account("people"))
    assert ["reserved"] in seen


def test_a_crash_leaves_it_counted(where):
    ledger = opened(where, epsilon=1.0)
    reserve(ledger, 1.0)  # the process no longer exists
    with pytest.raises(LedgerError, match="No other plan fits"):
        reserve(Ledger(where), 0.01)
    assert Ledger(where).verify() == []


def test_an_entry_ends_once(where):
    ledger = opened(where)
    reservation = reserve(ledger)
    assert reservation.end(False, "") == ""
    assert reservation.end(False, "") == "", "recorded twice, written once"
    assert "already ended" in reservation.end(True, "late")
    assert [e.status for e in ledger.population_of("people").entries] == ["returned"]
    assert ledger.head()[0] == 3


RACE = """
import sys
from espalier.core.errors import LedgerError
from espalier.core.privacy.accounting import Budget
from espalier.core.ledger.ledger import Ledger
from espalier.core.project.file import Project
project = Project.loads(sys.argv[2])
account = Ledger(sys.argv[1]).account("people")
budget = Budget.of(project.plan, None)
print("ready", flush=True)
sys.stdin.readline()
got = 0
for _ in range(4):
    try:
        account.reserve(project, budget, b"d")
        got += 1
    except LedgerError:
        pass
print(got)
"""


def test_processes_together_never_exceed_the_total(where):
    ledger = opened(where, epsilon=1.2)
    room = int(Fraction(rho_of(1.2, DELTA)) / Fraction(rho_of(0.5, DELTA)))
    command = [sys.executable, "-c", RACE, where, PROJECT.with_plan(epsilon=0.5).dumps()]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    racers = [subprocess.Popen(command, **pipes) for _ in range(3)]
    assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 3
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    got = [int(racer.communicate(timeout=120)[0]) for racer in racers]
    assert sum(got) == room < 12
    population = ledger.population_of("people")
    assert len(population.entries) == room
    assert ledger.verify() == []


TAMPERING = {
    "a smaller cost": "UPDATE espalier_events SET rho = rho / 2 WHERE seq = 2",
    "another note": "UPDATE espalier_events SET note = 'x' WHERE seq = 3",
    "a larger total": "UPDATE espalier_events SET rho = 9, epsilon = 50 WHERE seq = 1",
    "the end cut off": "DELETE FROM espalier_events WHERE seq = 5",
    "the end and its mark": "DELETE FROM espalier_events WHERE seq = 5; UPDATE espalier_meta SET value = "
    "(SELECT printf('%020d ', seq) || hash FROM espalier_events WHERE seq = 4) WHERE key = 'head'",
    "an event less": "DELETE FROM espalier_events WHERE seq = 3",
    "the first gone": "DELETE FROM espalier_events WHERE seq = 1",
    "another order": "UPDATE espalier_events SET seq = 9 WHERE seq = 2",
    "a word for a number": "UPDATE espalier_events SET rho = 'none' WHERE seq = 2",
    "another hash": "UPDATE espalier_events SET hash = '00' WHERE seq = 5",
}


@pytest.mark.parametrize("how", TAMPERING)
def test_tampering_is_seen_and_nothing_is_released_on_it(tmp_path, how):
    path = tmp_path / "l.db"
    ledger = opened(path)
    for _ in range(2):
        reserve(ledger).spend(0.0, {"a": b"x"})
    db = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="only grows"):
        db.execute(TAMPERING[how].split(";")[0])
    db.executescript("DROP TRIGGER espalier_no_update; DROP TRIGGER espalier_no_delete")
    db.executescript(TAMPERING[how])
    db.close()
    assert len(ledger.verify()) == 1
    assert "tampered" in ledger.verify()[0]
    with pytest.raises(LedgerError, match="tampered"):
        reserve(ledger)


def test_an_earlier_copy_is_refused_until_somebody_accounts_for_it(tmp_path):
    path = tmp_path / "l.db"
    ledger = opened(path, epsilon=1.0)
    copy, by_identity = path.read_bytes(), remembered(ledger)
    reserve(ledger, 1.0)
    path.write_bytes(copy)
    with pytest.raises(LedgerError, match="earlier copy: it had 2 events"):
        reserve(Ledger(path), 1.0)
    ledger.store.seen_file.unlink()
    with pytest.raises(LedgerError, match="earlier copy: it had 2 events"):
        reserve(Ledger(path), 1.0)
    by_identity.unlink()
    reserve(Ledger(path), 1.0)


def remembered(ledger):
    """The memory file that is named after the ledger's identity."""
    return memory_of(ledger.events()[0].hash)


def seen(ledger):
    return [(count, hash_) for _, count, hash_ in ledger.store._seen(ledger.store.read())]


@pytest.mark.parametrize(
    "how", ["a link", "a link to its folder", "a relative path", "a copy elsewhere", "an old memory"]
)
def test_an_earlier_copy_is_refused_by_whatever_name(tmp_path, monkeypatch, how):
    """Reached by a link, another spelling or another place, it is the same ledger, and this machine has seen more of
    it."""
    folder = tmp_path / "real"
    path = folder / "l.db"
    ledger = opened(path, epsilon=1.0)
    copy, by_identity = path.read_bytes(), remembered(ledger)
    reserve(ledger, 1.0)
    path.write_bytes(copy)
    if how == "a link":
        alias = tmp_path / "alias.db"
        alias.symlink_to(path)
    elif how == "a link to its folder":
        (tmp_path / "other").symlink_to(folder)
        alias = tmp_path / "other" / "l.db"
    elif how == "a relative path":
        monkeypatch.chdir(tmp_path)
        alias = Path("real/../real/l.db")
    elif how == "a copy elsewhere":
        alias = tmp_path / "elsewhere.db"
        alias.write_bytes(copy)
    else:  # written before ledgers had an identity, next to the ledger only
        by_identity.unlink()
        alias = path
    with pytest.raises(LedgerError, match="earlier copy: it had 2 events"):
        reserve(Ledger(alias), 1.0)


def test_a_ledger_that_was_deleted_and_made_anew_is_refused(tmp_path):
    path = tmp_path / "l.db"
    reserve(opened(path, epsilon=1.0), 1.0)
    path.unlink()
    with pytest.raises(LedgerError, match="earlier copy"):
        opened(path, epsilon=1.0)


def test_a_forged_first_hash_names_no_file(tmp_path, monkeypatch):
    """The memory file is named after this hash, which nothing has checked by then."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    opened(tmp_path / "l.db")
    forged = "../../forged"
    with sqlite3.connect(tmp_path / "l.db") as connection:
        connection.execute("DROP TRIGGER espalier_no_update")
        connection.execute("UPDATE espalier_events SET hash = ?", (forged,))
        connection.execute("UPDATE espalier_meta SET value = ? WHERE key = 'head'", (f"{1:020d} {forged}",))
    connection.close()
    (tmp_path / "copy.db").write_bytes((tmp_path / "l.db").read_bytes())
    with pytest.raises(LedgerError, match="tampered"):
        Ledger(tmp_path / "copy.db").populations()
    assert not list(tmp_path.rglob("forged*"))


def test_remembering_writes_through_no_link_that_was_put_there(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    path = tmp_path / "l.db"
    (tmp_path / f".l.db.seen-{os.getpid()}-{threading.get_ident()}").symlink_to(victim)
    opened(path)
    assert victim.read_text() == "mine"


def test_tables_that_name_people_by_different_columns_say_so(tmp_path):
    ledger = opened(tmp_path / "l.db", person="patient")
    ledger.open_table("visits", "people", person="patient")
    assert ledger.population_of("visits").caveats == []
    ledger.open_table("stays", "people", person="stay")
    (caveat,) = ledger.population_of("stays").caveats
    assert "different columns ('patient', 'stay')" in caveat


@pytest.mark.parametrize("delta", [0.0011, 0.9])
def test_a_total_s_delta_is_held_to_what_plans_are(tmp_path, delta):
    ledger = Ledger(tmp_path / "l.db", create=True)
    with pytest.raises(ProjectError, match=r"delta .* must not be above 0.001"):
        ledger.open_table("people", epsilon=1.0, delta=delta)
    assert ledger.populations() == {}
    assert ledger.open_table("people", epsilon=1.0, delta=1e-3).delta == 1e-3


@contextmanager
def served(folder):
    """A port on this machine that leads to the PostgreSQL socket in ``folder``."""
    from socketserver import StreamRequestHandler, ThreadingTCPServer

    class Handler(StreamRequestHandler):
        def handle(self):
            with socket.socket(socket.AF_UNIX) as there:
                there.connect(f"{folder}/.s.PGSQL.5432")
                both = (self.connection, there)
                while True:
                    for one in select.select(both, (), ())[0]:
                        data = one.recv(1 << 16)
                        if not data:
                            return
                        both[both[0] is one].sendall(data)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        worker = threading.Thread(target=server.serve_forever)
        worker.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            worker.join()


def test_two_users_of_a_server_may_have_ledgers_in_two_schemas(postgres, tmp_path, monkeypatch):
    """Previously, the second was reported as tampered with, because both had one memory by location."""
    monkeypatch.setenv("ESPALIER_LEDGER_KEY", str(tmp_path / "ledger.key"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    engine = sa.create_engine(postgres.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    name, users = f"test_{os.urandom(6).hex()}", [f"user_{os.urandom(6).hex()}" for _ in range(2)]
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
        for user in users:
            connection.execute(sa.text(f"CREATE ROLE {user} SUPERUSER LOGIN"))
            connection.execute(sa.text(f"ALTER ROLE {user} SET search_path = {user}"))
    inside = postgres.replace("/postgres?", f"/{name}?")
    own = sa.create_engine(inside.replace("postgresql:", "postgresql+psycopg:"), poolclass=sa.NullPool)
    with own.begin() as connection:
        for user in users:
            connection.execute(sa.text(f"CREATE SCHEMA {user}"))
    places = [inside.replace("espalier@", f"{user}@") for user in users]
    one, other = (opened(place) for place in places)
    for _ in range(2):
        reserve(one, 0.1)
        assert (one.verify(), other.verify()) == ([], [])
    assert one.store.seen_file.parent == other.store.seen_file.parent == tmp_path
    # a memory of an earlier version, which the two ledgers shared, is valid until its ledger has been used
    _, earlier = memory_files(database_url(places[0]), None)
    one.store.seen_file.rename(earlier)
    other.store.seen_file.unlink()
    with pytest.raises(LedgerError, match=r"it had 3 events.* open that one first"):
        other.head()
    one.head()
    assert not earlier.exists()
    assert (one.verify(), other.verify()) == ([], [])
    with engine.connect() as connection:
        connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
        for user in users:
            connection.execute(sa.text(f"DROP ROLE {user}"))
    engine.dispose()


@pytest.mark.nightly  # uses a separate server; the tests of links cover SQLite
def test_an_earlier_copy_is_refused_under_another_spelling_of_the_host(postgres, tmp_path, monkeypatch):
    monkeypatch.setenv("ESPALIER_LEDGER_KEY", str(tmp_path / "ledger.key"))
    name = f"test_{os.urandom(6).hex()}"
    engine = sa.create_engine(postgres.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")

    def run(*statements):
        with engine.connect() as connection:
            for statement in statements:
                connection.execute(sa.text(statement))

    run(f"CREATE DATABASE {name}")
    with served(postgres.partition("?host=")[2]) as port:
        ledger = opened(f"postgresql://espalier@localhost:{port}/{name}", epsilon=1.0)
        run(f"CREATE DATABASE {name}_before TEMPLATE {name}")
        reserve(ledger, 1.0)
        run(f"DROP DATABASE {name} WITH (FORCE)", f"ALTER DATABASE {name}_before RENAME TO {name}")
        alias = Ledger(f"postgresql://espalier@127.0.0.1:{port}/{name}")
        assert alias.store.seen_file != ledger.store.seen_file
        with pytest.raises(LedgerError, match="earlier copy: it had 2 events"):
            reserve(alias, 1.0)
    engine.dispose()


def test_another_machine_learns_what_it_sees(where, tmp_path, monkeypatch):
    ledger = opened(where)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
    ledger.store.seen_file = tmp_path / "elsewhere.seen"
    ledger.head()
    assert seen(ledger) == [(1, ledger.head()[1])] * 2
    reserve(ledger)
    assert seen(ledger) == [ledger.head()] * 2
    for file in (ledger.store.seen_file, remembered(ledger)):
        kept = file.read_text()
        file.write_text("nonsense")
        assert "contains something else" in ledger.verify()[0], "an earlier copy could pass"
        large = partial(os.truncate, file, 40 << 30)
        for make, remove in ((file.mkdir, file.rmdir), (partial(os.mkfifo, file), file.unlink), (large, file.unlink)):
            if make is not large:
                file.unlink()
            make()
            assert "is unreadable" in ledger.verify()[0], (
                "an earlier copy could pass, or the program could wait for the pipe"
            )
            remove()
            file.write_text(kept)
    assert ledger.verify() == []


def test_events_that_are_added_while_somebody_reads_are_no_tampering(where, monkeypatch):
    """The memory gets such events after the reader has read the ledger and before it consults the memory."""
    ledger, other = opened(where), Ledger(where)
    read, calls = ledger_store.Store._read, itertools.count()

    def slow(self):
        rows = read(self)
        if next(calls) == 0:
            reserve(other)
        return rows

    monkeypatch.setattr(ledger_store.Store, "_read", slow)
    assert ledger.head()[0] == 2


def test_what_is_read_is_of_one_moment(where):
    """An event that is added between two queries of a reader is not tampering."""
    ledger, other = opened(where), Ledger(where)
    if ledger.store.path is not None:
        pytest.skip("SQLite allows no writer during a read")
    with ledger.store._reading() as connection:
        connection.execute(sa.select(ledger_store._events.c.seq)).all()
        reserve(other)
        assert len(ledger.store._all(connection)) == 1
    assert ledger.head()[0] == 2


def test_a_chain_that_was_hashed_anew_must_still_keep_the_rules(tmp_path):
    """A forger who recomputes every hash cannot exceed the total, end an entry twice, or set a total twice."""
    ledger = opened(tmp_path / "l.db", epsilon=1.0)
    reserve(ledger, 0.9).end(False, "")
    events = ledger.events()
    replay(events)
    first, taken, returned = events
    drawn = replace(taken, kind="measure", delta=None, rho=0.001, rho_before=0.0, rho_after=0.001)
    spent = replace(
        returned, kind="spend", rho=0.001, rho_before=taken.rho_after, rho_after=0.001, released="a release"
    )
    (kept,) = replay([first, taken, drawn, spent])["people"].entries
    assert kept.parts[0].rho == kept.counted == 0.001
    for forged in (
        [first, taken, returned, replace(returned, seq=4, rho_before=0.0)],
        [first, replace(taken, rho=first.rho * 2, rho_after=first.rho * 2)],
        [first, replace(first, seq=2)],
        [replace(first, rho=first.rho * 2)],
        [replace(first, delta=2.0)],
        [taken],
        [first, replace(taken, neighbors="add-remove")],
        [first, replace(taken, rho_before=0.5)],
        [first, replace(taken, rho=None)],
        [first, replace(taken, rho=float("inf"))],
        [first, replace(taken, plan="{")],
        [first, returned],
        [first, replace(taken, kind="gift")],
        [first, taken, replace(drawn, rho=-0.001)],
        [first, taken, replace(drawn, rho_before=0.001)],
        [first, taken, replace(drawn, rho_after=0.0)],
        [first, taken, replace(drawn, table_name="other")],
        [first, taken, drawn, returned],
        [first, taken, drawn, replace(spent, rho=0.0005, rho_after=0.0005)],
        [first, taken, drawn, replace(spent, rho=0.002, rho_after=0.002)],
        [first, taken, replace(returned, seq=3), replace(drawn, seq=4)],
        [first, replace(taken, plan=taken.plan.replace('"another_unit": false', '"another_unit": true'))],
        [replace(first, plan='{"person": "pid"}'), taken],
        [replace(first, plan='{"person": 3}')],
        [replace(first, plan="[]")],
        [replace(first, plan="[" * 100_000)],
        [first, replace(taken, plan='{"project": "t", "plan": 3}')],
        [replace(taken, kind="diagnose")],
        [first, drawn],
    ):
        with pytest.raises(LedgerError, match="tampered"):
            replay(forged)


def test_a_release_that_ends_during_a_check_is_not_taken_for_a_foreign_one(where, monkeypatch):
    """Previously, it was stored between two reads, so backups were refused while releases were made."""
    ledger, read = opened(where), Ledger.populations

    def ending(self):
        monkeypatch.setattr(Ledger, "populations", read)
        found = read(self)
        release(PROJECT, table(), ledger=Ledger(where).account("people", "Bob"))
        return found

    monkeypatch.setattr(Ledger, "populations", ending)
    assert ledger.verify() == []
    assert ledger.store.hashes()
    assert ledger.verify() == []


@pytest.mark.parametrize("where", ["postgresql"], indirect=True)
def test_a_connection_that_is_lost_as_a_transaction_begins_leads_to_a_message(where, caplog):
    """Previously, the driver's own error ended the command in a traceback."""
    ledger = opened(where)

    def ended(connection):
        with sa.create_engine(ledger.store._engine.url, poolclass=sa.NullPool).connect() as other:
            pid = connection.connection.driver_connection.info.backend_pid
            other.execute(sa.text(f"SELECT pg_terminate_backend({pid}, 5000)"))

    sa.event.listen(ledger.store._engine, "engine_connect", ended)
    with pytest.raises(LedgerUnavailable, match="terminating connection"):
        ledger.events()
    assert not caplog.records, "the connection is not used again"


def test_postgres_refuses_to_change_an_event(postgres, tmp_path, monkeypatch):
    monkeypatch.setenv("ESPALIER_LEDGER_KEY", str(tmp_path / "k"))
    ledger = opened(postgres)
    for act in ("UPDATE espalier_events SET note = 'x'", "DELETE FROM espalier_events", "TRUNCATE espalier_events"):
        with pytest.raises(sa.exc.DBAPIError, match="only grows"), ledger.store._engine.begin() as connection:
            connection.execute(sa.text(act))
    assert ledger.head()[0] == 1


def test_two_writers_cannot_follow_the_same_event(where):
    """If a lock fails, the database itself accepts only one successor."""
    ledger = opened(where)
    first = ledger.store.read()[0]
    row = {**first, "seq": 2, "hash": "h", "previous": first["hash"]}
    with ledger.store._engine.begin() as connection:
        connection.execute(ledger_store._events.insert().values(row))
        connection.execute(ledger_store._meta.update().values(value="1"))
    with pytest.raises(sa.exc.IntegrityError), ledger.store._engine.begin() as connection:
        connection.execute(ledger_store._events.insert().values({**row, "seq": 3, "hash": "other"}))


def test_the_files_are_their_owners_alone(tmp_path):
    path = tmp_path / "new" / "l.db"
    before = os.umask(0)
    try:
        ledger = opened(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(ledger.store.key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    assert "can be read by users other" in ledger.verify()[0]
    assert Ledger(path).verify() == [], "opening it takes the right away again"


def test_a_commit_is_on_the_disk(tmp_path):
    with opened(tmp_path / "l.db").store._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 3
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"


def test_another_layout_is_refused(tmp_path):
    opened(tmp_path / "l.db")
    with sqlite3.connect(tmp_path / "l.db") as db:
        db.execute("UPDATE espalier_meta SET value = '6' WHERE key = 'version'")
    db.close()
    with pytest.raises(LedgerUnavailable, match="layout 6, but this version of Espalier reads only 1, 2, 3, 4 and 5"):
        Ledger(tmp_path / "l.db")


PLAN_1 = (
    '{"project": "t", "plan": {"method": "independent", "epsilon": 1.0, "delta": 1e-06, "regime": "predictive", '
    '"fair": false, "target": null, "neighbors": "replace-one", "rows_per_person": 1, "allocation": "auto", '
    '"accounting": "zcdp", "features": null, "rows": null}}'
)
LAYOUT_1 = [
    {
        "seq": 1,
        "at": "2026-11-21T09:03Z",
        "who": "Ada",
        "kind": "open",
        "population": "people",
        "table_name": "people",
        "neighbors": "replace-one",
        "rows_per_person": 1,
        "epsilon": 2.0,
        "delta": 1e-06,
        "rho": 0.0881526883544922,
        "rho_before": 0.0,
        "rho_after": 0.0,
        "note": "",
        "previous": START,
        "hash": "b643fcc85c678e133e408b3ef5bd694a73a2dffea29b92462ad8128cacd1c6f3",
    },
    {
        "seq": 2,
        "at": "2026-11-21T09:03Z",
        "who": "Bob",
        "kind": "reserve",
        "population": "people",
        "table_name": "people",
        "entry": "372ab9535b78a374",
        "neighbors": "replace-one",
        "rows_per_person": 1,
        "epsilon": 1.0,
        "delta": 1e-06,
        "rho": 0.02435597035217285,
        "rho_before": 0.0,
        "rho_after": 0.02435597035217285,
        "plan": PLAN_1,
        "note": "",
        "fingerprint": "24551960:ce51c42c2a117432f2c6ff873c5b3355:"
        "d80a49566312888dced7db4d66fad3035b83c891d8a51d84767d4421fed9974d",
        "previous": "b643fcc85c678e133e408b3ef5bd694a73a2dffea29b92462ad8128cacd1c6f3",
        "hash": "d9d1075ce006228089daf12b1e3cb583d24a4eae1390eba7f8a2ac06ea3a57bb",
    },
    {
        "seq": 3,
        "at": "2026-11-21T09:03Z",
        "who": "Bob",
        "kind": "spend",
        "population": "people",
        "table_name": "people",
        "entry": "372ab9535b78a374",
        "rho": 0.01,
        "rho_before": 0.02435597035217285,
        "rho_after": 0.01,
        "released": "4a4b874a1e9776a52e38fd82a053825f309f46187a803a0fc0c6670c6670e768",
        "note": "",
        "previous": "d9d1075ce006228089daf12b1e3cb583d24a4eae1390eba7f8a2ac06ea3a57bb",
        "hash": "dda17195eae19ea73c752bc3b163b0ff5869a11eda5f56d0948d3e189bc90c8f",
    },
]
"""A ledger that was written before entries had parts."""


def test_a_ledger_from_before_entries_had_parts_goes_on(where, tmp_path, monkeypatch):
    # the ledgers of both databases begin with the same events, so each has its own home folder
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    ledger = stored(where, [Event(**{k: v for k, v in row.items() if k != "hash"}) for row in LAYOUT_1], "1")
    assert [e["hash"] for e in ledger.store.read()] == [row["hash"] for row in LAYOUT_1]
    assert ledger.verify() == []
    assert version(ledger) == "1", "reading changes nothing"
    release(PROJECT, table(), ledger=ledger.account("people"))
    first, second = ledger.population_of("people").entries
    assert ledger.population_of("people").persons == {"people": None}, "fixed by its first release"
    assert (first.counted, first.parts) == (0.01, ())
    assert second.parts[0].rho_before == 0.01
    assert ledger.verify() == []
    assert version(ledger) == "4", "a version of Espalier that knows neither parts nor units must no longer read it"


def version(ledger):
    meta = ledger_store._meta
    with ledger.store._engine.connect() as connection:
        return connection.scalar(sa.select(meta.c.value).where(meta.c.key == "version"))


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("none.db", "does not exist"),
        (".", "is not a file"),
        ("text.db", "it is not a ledger"),
        ("empty.db", "contains no ledger"),
        ("sqlite://", "not 'sqlite'"),
        ("mysql://h/d", "not 'mysql'"),
        ("postgresql://u:secret@127.0.0.1:1/d", "cannot open the ledger postgresql"),
        ("://", "URL"),
    ],
)
def test_where_no_ledger_is(tmp_path, monkeypatch, where, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.db").write_text("a,b\n1,2\n" * 100)
    (tmp_path / "empty.db").touch()
    with pytest.raises(LedgerUnavailable, match=text) as error:
        Ledger(where)
    assert "secret" not in str(error.value)


OUTSIDE = [
    "/tmp/x",
    "../x",
    "a/b",
    "a\\b",
    "C:\\x",
    "synthetic.csv/../../x",
    "notes.txt",
    ".",
    "",
    "copies",
    "copies/",
    "copies/1.csv.gz",
    "copies/../01.csv.gz",
    "copies/01.csv",
    "/copies/01.csv.gz",
    "copies/01.csv.gz\n",
    "copies/\u0661\u0661.csv.gz",
    "copies/copies/01.csv.gz",
    "copies\\01.csv.gz",
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_name_but_those_of_a_release_comes_out_of_an_archive(tmp_path, name):
    """A writer of a shared ledger must not choose where a steward's files go."""
    ledger = opened(tmp_path / "l.db")
    files = {**release(PROJECT, table()).files, name: b"theirs"}
    reserve(ledger).spend(0.0, files)
    (entry,) = ledger.population_of("people").entries
    assert entry.released == digest_of(files), "hashes and sums are correct"
    with pytest.raises(LedgerError, match="does not contain the files of a release"):
        ledger.files(entry.released)
    assert "does not contain the files of a release" in ledger.verify()[0]


def test_every_file_of_a_release_is_in_its_archive_once():
    files = release(PROJECT, table()).files
    assert unpacked(zipped(files)) == files
    lacking = {n: d for n, d in files.items() if n != "model.npz"}
    with pytest.raises(ProjectError, match="model.npz"):
        unpacked(zipped(lacking))
    open_method = {**lacking, "release.json": b'{"model": null}'}
    assert unpacked(zipped(open_method)) == open_method, "a model that must not be written is not reported as missing"
    with pytest.raises(ProjectError, match="release.json is not JSON"):
        unpacked(zipped({**files, "release.json": b"["}))
    more = {**files, "questions.csv": b"q", "copies/01.csv.gz": b"1", "copies/100.csv.gz": b"2"}
    assert unpacked(zipped(more)) == more
    out = io.BytesIO(zipped(files))
    with zipfile.ZipFile(out, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("report.html", "another")
    with pytest.raises(ProjectError, match="twice"):
        unpacked(out.getvalue())
    for broken in (b"", b"PK junk", zipped(files)[:-9], zipped(files)[:40] + b"x" * 40 + zipped(files)[80:]):
        with pytest.raises(ProjectError, match="damaged"):
            unpacked(broken)


def test_a_release_that_was_kept_is_checked_when_taken(where):
    ledger = opened(where)
    made = release(PROJECT, table(), ledger=ledger.account("people"))
    (entry,) = ledger.population_of("people").entries
    with ledger.store._engine.begin() as connection:
        connection.execute(ledger_store._kept.update().values(zip=b"PK junk"))
    with pytest.raises(LedgerError, match="changed since"):
        ledger.files(entry.released)
    assert "changed since" in ledger.verify()[0]
    assert made.files["synthetic.csv"]
    with pytest.raises(LedgerError, match="not kept"):
        ledger.files("0" * 64)


def test_too_large_a_release_is_not_kept_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("espalier.core.ledger.account.KEPT_BYTES", 10)
    ledger = opened(tmp_path / "l.db")
    made = release(PROJECT, table(), ledger=ledger.account("people"))
    assert "too large to keep" in made.ledger_trouble
    (entry,) = ledger.population_of("people").entries
    assert entry.released == digest_of(made.files)
    assert ledger.verify() == []
    monkeypatch.setattr("espalier.core.release.artefact.__version__", "another")  # other bytes from the same answers
    again = resume(ledger.account("people").resumed(entry.id))  # the first was never written
    assert again.ledger_trouble.startswith("The ledger recorded the hash of files that were never written")
    assert ledger.store.unfinished() == {entry.id: 1}
    again.save(tmp_path / "out")
    assert ledger.store.unfinished() == {}


def test_the_hash_is_what_sha256sum_says(tmp_path):
    import hashlib

    made = release(PROJECT, table())
    made.save(tmp_path / "o")
    lines = "".join(
        f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n"
        for p in sorted((tmp_path / "o").iterdir())
        if not p.name.startswith("statement.")
    )
    assert digest_of(made.files) == hashlib.sha256(lines.encode()).hexdigest()
    assert load_release(tmp_path / "o").facts == made.to_json()


def test_a_ledger_that_is_lost_after_the_draw_costs_nobody_the_release(where, monkeypatch):
    ledger = opened(where)
    monkeypatch.setattr("espalier.core.ledger.account.time.sleep", lambda s: None)
    append, calls = ledger_store.Store.append, itertools.count()

    def lost(self, make, kept=None, **more):
        if next(calls):
            raise LedgerUnavailable("cannot write the ledger: connection lost")
        append(self, make, kept, **more)

    monkeypatch.setattr(ledger_store.Store, "append", lost)
    made = release(PROJECT, table(), ledger=ledger.account("people"))
    assert "connection lost" in made.ledger_trouble
    assert "counts in full" in made.ledger_trouble
    assert made.rows == 90
    assert next(calls) == 4, "tried three times"
    monkeypatch.undo()
    (entry,) = Ledger(where).population_of("people").entries
    assert (entry.status, entry.counted) == ("reserved", entry.reserved)


def test_a_ledger_that_cannot_be_told_of_the_end_says_what_counts(tmp_path, monkeypatch):
    ledger = opened(tmp_path / "l.db")
    append, calls = ledger_store.Store.append, itertools.count()

    def lost(self, make, kept=None, **more):
        if next(calls):
            raise LedgerUnavailable("cannot write the ledger: disk full")
        append(self, make, kept, **more)

    monkeypatch.setattr(ledger_store.Store, "append", lost)
    with pytest.raises(Cancelled, match="disk full.*counts as spent"):
        release(PROJECT, table(), stops(0.5), ledger.account("people"))


def test_fingerprints_warn(where):
    ledger = opened(where, epsilon=5.0)
    ledger.open_table("copy", epsilon=5.0, delta=DELTA)
    ledger.open_table("sister", "people")
    account = ledger.account("people")
    assert account.warnings(table().digest) == []
    release(PROJECT, table(), ledger=account)
    assert account.warnings(table().digest) == []
    changed = table(CSV + b"x,u\n").digest
    assert "has changed since it was last released as 'people'" in account.warnings(changed)[0]
    (warning,) = ledger.account("copy").warnings(table().digest)
    assert "already released as 'people'" in warning
    assert "no total covers both" in warning
    assert "same budget" in ledger.account("sister").warnings(table().digest)[0]
    before = ledger.head()
    with pytest.raises(LedgerError, match="refuses this release: this table.*'people'.*--again"):
        release(PROJECT, table(), ledger=ledger.account("copy"))
    assert ledger.head() == before
    release(PROJECT, table(), ledger=ledger.account("sister"))
    release(PROJECT, table(), ledger=ledger.account("copy", again=True))
    made = release(PROJECT, table(CSV + b"x,u\n"), ledger=account)
    assert "has changed since it was last released" in made.reservation.warnings[0]
    assert "changed" not in json.dumps([made.to_json(), ledger.to_json()]), "for the curator's eyes only"


def test_fingerprints_of_another_key_cannot_be_told(tmp_path):
    ledger = opened(tmp_path / "l.db")
    reserve(ledger, digest=table().digest)
    ledger.store.key_file.unlink()
    ledger = Ledger(tmp_path / "l.db")
    assert "a different key" in ledger.account("people").warnings(table().digest)[0]
    reserve(ledger, 0.1)
    ledger.open_table("other", epsilon=1.0, delta=DELTA)
    with pytest.raises(LedgerError, match="cannot check whether.*--again"):
        reserve(ledger, 0.1, "other")


def test_diagnostics_are_recorded_before_what_they_may_steer(where):
    ledger = opened(where, epsilon=5.0)
    ledger.open_table("others", epsilon=5.0, delta=DELTA)
    account = ledger.account("people")
    first = release(PROJECT, table(), ledger=account)
    assert first.to_json()["ledger"]["diagnostics_before"] == 0
    assert "No confidential diagnostics were recorded before" in first.files["report.html"].decode()
    assert ledger.diagnosed([table(CSV + b"x,u\n").digest], ["never opened"], "Eve", "evaluate") == []
    assert ledger.diagnosed([table().digest], ["people"], "Eve", "evaluate") == ["people"]
    assert ledger.diagnosed([table().digest], ["people", "others"], "Eve", "evaluate") == ["people", "others"]
    second = release(PROJECT, table(), ledger=account)
    assert second.to_json()["ledger"]["diagnostics_before"] == 2
    assert "were viewed 2 times before this release" in second.files["report.html"].decode()
    population = ledger.population_of("people")
    assert [e.diagnostics_before for e in population.entries] == [0, 2]
    assert [(d.who, d.table, d.what) for d in population.diagnoses] == [("Eve", "people", "evaluate")] * 2
    assert "were viewed twice" in population.caveats[-1]
    assert "by Eve" in population.caveats[-1]
    assert ledger.verify() == []
    exported = ledger.to_json()["populations"][0]
    assert [e["diagnostics_before"] for e in exported["entries"]] == [0, 2]
    assert len(exported["diagnoses"]) == 2


def test_a_notebook_records_a_view(tmp_path, monkeypatch):
    """Previously, `es.evaluate` computed everything, and the next release stated that no one had seen diagnostics."""
    monkeypatch.setenv("ESPALIER_LEDGER", str(tmp_path / "none.db"))
    ledger = opened(tmp_path / "ledger.db", epsilon=5.0)
    made = release(PROJECT, table(), ledger=ledger.account("people", "Ada"))
    made.save(tmp_path / "folder")
    loaded = load_release(tmp_path / "folder")

    def views():
        return [(d.who, d.table, d.what) for d in ledger.population_of("people").diagnoses]

    evaluate(made, table())
    assert views() == [("Ada", "people", "es.evaluate")]
    with pytest.warns(UserWarning, match="in another ledger, so this view of diagnostics is not recorded"):
        evaluate(loaded, table())
    evaluate(loaded, table(), ledger=ledger.account("people", "Eve"))
    assert views()[1:] == [("Eve", "people", "es.evaluate")]
    monkeypatch.setenv("ESPALIER_LEDGER", str(tmp_path / "ledger.db"))
    evaluate(loaded, table())
    assert len(views()) == 3
    monkeypatch.setattr("espalier.core.notebook.evaluate_tables", lambda *_, **__: pytest.fail("computed"))
    with pytest.raises(LedgerError, match="ledger= in a notebook"):
        evaluate(release(PROJECT, table()), table())


@pytest.mark.parametrize("named", [(), ("others",)])
def test_an_export_never_shows_whether_a_table_has_changed(where, named):
    """Previously, a view of diagnostics was recorded if and only if the table was the one that had been released."""
    ledger = opened(where, epsilon=5.0)
    ledger.open_table("others", epsilon=5.0, delta=DELTA)
    release(PROJECT, table(), ledger=ledger.account("people"))
    before = ledger.to_json()
    with pytest.raises(LedgerError, match="already released as 'people'.*--table"):
        ledger.diagnosed([table().digest], named, "Eve", "evaluate")
    assert ledger.to_json() == before
    assert ledger.diagnosed([table(CSV + b"x,u\n").digest], ["people"], "Eve", "evaluate") == ["people"]
    assert ledger.diagnosed([table().digest], ["people"], "Eve", "evaluate") == ["people"]


def test_a_fingerprint_says_nothing_without_its_key():
    key, other, digest = b"k" * 32, b"o" * 32, table().digest
    first, second = fingerprint.mark(key, digest), fingerprint.mark(key, digest)
    assert first.split(":")[1:] != second.split(":")[1:], "equal tables do not show"
    assert fingerprint.matches(key, digest, first) is True
    assert fingerprint.matches(key, digest + b"x", first) is False
    assert fingerprint.matches(other, digest, first) is None
    assert fingerprint.matches(key, digest, "nonsense") is None
    assert digest.hex() not in first
    assert key.hex() not in first


@pytest.mark.parametrize("what", ["a folder", "a pipe", "very large", "a link to no file", "a table"])
def test_a_key_file_that_is_none_is_left_as_it_is(tmp_path, monkeypatch, what):
    """Previously, a folder or a shared table lost its permissions, the program waited for a pipe, and it read
    40 GB.
    """
    key = tmp_path / "key"
    if what == "a folder":
        key.mkdir()
    elif what == "a pipe":
        os.mkfifo(key)
    elif what == "very large":
        key.touch(0o600)
        os.truncate(key, 40 << 30)
    elif what == "a table":
        key.write_text("a,b\n")
        key.chmod(0o644)
    else:
        key.symlink_to("nowhere")
    mode = os.lstat(key).st_mode
    monkeypatch.setenv("ESPALIER_LEDGER_KEY", str(key))
    with pytest.raises(LedgerUnavailable, match=r"key file .* cannot be used"):
        Ledger(tmp_path / "l.db", create=True).store.secret()
    assert os.lstat(key).st_mode == mode


def test_a_damaged_key_file_is_named(tmp_path):
    ledger = opened(tmp_path / "l.db")
    ledger.store.key_file.write_text("not hex")
    with pytest.raises(LedgerUnavailable, match="key file.*damaged"):
        reserve(ledger)


def test_the_digest_knows_a_table_whatever_its_order():
    first = read_table(b"a,b\nx,1\ny,2\nx,2\n")
    for same in (b"b,a\n1,x\n2,y\n2,x\n", b"a,b\nx,2\nx,1\ny,2\n"):
        assert read_table(same).digest == first.digest
    for other in (b"a,b\nx,1\ny,2\n", b"a,b\nx,2\ny,2\nx,1\ny,2\n", b"a,b\nx,2\ny,1\nx,2\n", b"a,c\nx,1\ny,2\nx,2\n"):
        assert read_table(other).digest != first.digest
    encoded = table()
    assert encoded.take(np.arange(5)).digest == encoded.digest, "held-out rows do not make a different table"
    codes = dict(encoded.codes)
    assert Table(SCHEMA, codes, 90).digest == Table(SCHEMA, codes, 90).digest != encoded.digest


def test_exports_hold_everything_and_no_formula(where):
    ledger = opened(where, "=cmd()", note="@SUM(1)")
    reserve(ledger, table="=cmd()")
    rows = list(csv.DictReader(io.StringIO(ledger.csv())))
    assert [r["kind"] for r in rows] == ["open", "reserve"]
    assert not [c for r in rows for c in r.values() if c.startswith(("=", "@", "+", "-"))]
    assert float(rows[1]["epsilon_after"]) == epsilon_of(rho_of(1.0, DELTA), DELTA)
    facts = ledger.to_json()
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    (population,) = facts["populations"]
    (entry,) = population["entries"]
    assert {"plan", "rho_before", "rho_after", "epsilon_before", "epsilon_after", "status", "note"} <= set(entry)
    assert facts["events"][0]["previous"] == START
    assert facts["events"][1]["previous"] == facts["events"][0]["hash"]
