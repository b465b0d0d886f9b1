"""The forms may derive nothing from a private table: two tables that differ in one row lead to the same plan, budget,
ledger and report."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.ledger.ledger import Ledger
from espalier.core.ledger.population import Population
from espalier.core.project.editor import ProjectEditor
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.reading import read_table
from espalier.pages.release.payment import NEW
from espalier.pages.session.session import Session
from tests.support.app import ROOT, answer, field, finish, go, press, review, start, state, upload

SCHEMA = Schema((Column("sex", "categorical", ("f", "m")), Column("ill", "categorical", ("no", "yes"))))


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ESPALIER_LEDGER", str(tmp_path / "ledger.db"))
    return tmp_path / "ledger.db"


def table(rows: int) -> str:
    return "patient,sex,ill\n" + "".join(f"p{i // 2},{'fm'[i % 2]},{('no', 'yes')[i % 3 == 0]}\n" for i in range(rows))


def opened(app: AppTest, n: int, **plan: Any) -> AppTest:
    state(app).open(Project("ward", SCHEMA, Plan("mst", 1.0, **plan)), read_table(table(n).encode(), "ward.csv"))
    return go(app, "release")


def paid(app: AppTest, where: Path) -> tuple[dict[str, Any], str, Population]:
    """Open a new budget and release the plan from it, with every default."""
    press(app, "Open this budget")
    finish(press(app, "Spend"))
    made = state(app).released
    assert made is not None
    facts, report = json.loads(made.files["release.json"]), made.files["report.html"].decode()
    return facts, report, Ledger(where).population_of("ward")


def settled(facts: dict[str, Any]) -> dict[str, Any]:
    """Return ``release.json`` without the parts that differ each time: fit, strengths, clocks, and the ledger's random
    marks."""
    ledger = {k: v for k, v in facts["ledger"].items() if k in ("table", "reserved", "total", "spent", "neighbors")}
    links = [{k: v for k, v in link.items() if k != "strength"} for link in facts["links"]]
    kept = {k: v for k, v in facts.items() if k not in ("fit", "seconds", "date")}
    return kept | {"ledger": ledger, "links": links}


@pytest.mark.parametrize("way", ["declared", "after n was taken off the table"])
def test_one_row_more_of_a_person_changes_no_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    made = []
    for rows in (150, 151):
        ledger = tmp_path / f"{rows}.db"
        monkeypatch.setenv("ESPALIER_LEDGER", str(ledger))
        app = start()
        if way == "declared":
            opened(app, rows, person="patient", rows_per_person=2, rows=140)
        else:
            press(go(opened(app, rows), "plan"), "Use the open table")
            assert state(app).rows == rows, "without a person column n is public"
            answer(go(app, "data"), "patient", 2)
            field(go(app, "plan"), "number_input", "Declared total").set_value(140).run()
            go(app, "release")
        made.append(paid(app, ledger))
    (facts, report, budget), (other_facts, other_report, other_budget) = made
    assert budget.delta == other_budget.delta == facts["spent"]["delta"]
    assert settled(facts) == settled(other_facts)
    assert budget.rho == other_budget.rho
    assert re.sub("entry [0-9a-f]{16}", "", report) == re.sub("entry [0-9a-f]{16}", "", other_report)


def test_the_delta_of_a_new_budget_follows_the_form_s_own_unit(app: AppTest, where: Path) -> None:
    opened(app, 150)
    assert field(app, "text_input", "δ").value == f"{1 / 150**2:.3g}", "n is public here"
    field(app, "selectbox", "Neighbouring tables").set_value("add-remove").run()
    assert field(app, "text_input", "δ").value == "1e-09"
    press(app, "Open this budget")
    budget = Ledger(where).population_of("ward")
    assert (budget.neighbors, budget.delta) == ("add-remove", 1e-9)


def test_the_delta_of_a_new_budget_follows_the_form_s_own_person_column(app: AppTest, where: Path) -> None:
    opened(app, 150)
    field(app, "text_input", "Person column of this table").set_value("patient").run()
    assert field(app, "text_input", "δ").value == "1e-09"
    press(app, "Open this budget")
    assert Ledger(where).population_of("ward").delta == 1e-9


def test_a_number_of_rows_that_became_private_is_handed_to_nobody() -> None:
    state = Session()
    for plan, public in (
        (Plan("mst", 1.0), 150),
        (Plan("mst", 1.0, person="patient", rows=140), 140),
        (Plan("mst", 1.0, person="patient"), None),
        (Plan("mst", 1.0, neighbors="add-remove", delta=1e-9), None),
    ):
        state.open_project, state.rows = ProjectEditor(Project("ward", SCHEMA, plan)), 150
        assert state.public_rows == public


def test_what_a_guess_leaves_out_stops_a_release_and_is_told(app: AppTest, where: Path) -> None:
    rows = "".join(f"case {i},{'fm'[i % 2]},{('no', 'yes')[i % 3 == 0]}\n" for i in range(120))
    press(upload(app, f"case,sex,ill\n{rows}", "ward.csv"), "Guess the columns")
    answer(app)
    press(app, "Confirm these 2 columns (obviously public)")
    left = state(app)
    assert Project.loads(left.project.dumps()).schema.unconfirmed == ("case",)
    assert "`case`" in "".join(e.value for e in go(app, "release").error)
    assert not any(b.label == "Open this budget" for b in app.button)
    review(go(app, "data"))
    go(app, "release")
    field(app, "selectbox", "Paid from").set_value(NEW).run()
    _, report, _ = paid(app, where)
    assert "“case” (left out as an identifier)" in report


PUBLIC = {
    "plan.rows",
    "release.rows",
    "evaluation.rows",
    "release.codes",
    "m.values",
    "column.values",
}
"""Properties of plans, releases, measurements and declared columns."""
OTHERWISE = {
    "pages/02_data.py": {
        "linked_tables.rows",
        "rows_for_the_curator",
        "first_rows",
        "_people",
    },  # shown to the curator on request, and not used
    "pages/06_analyse.py": {"study.rows"},  # of the synthetic table
    "pages/release/not_private.py": {"_result"},  # of a table that says NOT PRIVATE, on the curator's screen
    "pages/diagnostics/many_targets.py": {"made.codes"},  # of the synthetic table
    "pages/diagnostics/blurred.py": {"made.rows"},  # of a table that says NOT PRIVATE, on the curator's screen
    "pages/07_diagnostics.py": {"released.holdout.rows"},  # on the screen, among figures that are not private
    "pages/diagnostics/distributions.py": {
        "_one",
        "_two",
        "_shares",
        "_synthetic",
    },  # confidential charts
    "pages/analyse/asking.py": {  # of the schema and of the release, which are public
        *("project.schema[happens.column].values", "project.schema[event].values", "described.values", "study.rows"),
    },
    "pages/analyse/answers.py": {"study.rows"},  # of the release
    "pages/data/linked_tables.py": {"rows"},  # on request, as confidential
    "pages/data/constraint_editor.py": {"_guess"},  # marked as guessed until a person confirms it
    "pages/data/column_review.py": {"state.drafts.review.rows"},  # the lines of the review
    "pages/data/dictionary_upload.py": {"text.rows"},  # of a part of the table that is only read again
    "pages/data/review_draft.py": {"placed.digest", "row.digest", "read.values"},  # shown as a guess, to be confirmed
    "pages/structure/arrow_table.py": {"draft.rows"},  # rows of the editable table of arrows
    "pages/session/restore.py": {"found.rows"},  # the number that public_rows allowed before the reload
    "pages/plan/regression_editor.py": {"c.values"},  # of the schema, which is public
    "pages/plan/analysis_editor.py": {"c.values"},  # of the schema, which is public
    "pages/plan/plan_fields.py": {"_n"},  # the field for n, there only while n is public (tested above)
    "pages/session/session.py": {"self.rows", "mark_of"},  # set by open; keyed, to recognise a table after a reload
    "pages/release/payment.py": {"known_table", "diagnosed"},  # the digest, which the ledger keeps only keyed
}
"""For each page, the functions or expressions that may read a number of rows, codes, values or a digest."""


def read_off(path: str, source: str) -> list[str]:
    """Return the values that a page reads from a table's rows other than through ``public_rows``."""
    tree, allowed, excused = ast.parse(source), PUBLIC | OTHERWISE.get(path, set()), set()
    for node in ast.walk(tree):
        passed: list[ast.AST] = []
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "public_rows":
            passed = list(node.args[1:])
        elif isinstance(node, ast.FunctionDef) and node.name in allowed:
            passed = [node]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "values":
            excused.add(id(node.func))  # of a mapping
        excused |= {id(inside) for part in passed for inside in ast.walk(part)}
    return [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in ("rows", "num_rows", "shape", "codes", "values", "digest")
        and id(node) not in excused
        and ast.unparse(node) not in allowed
    ]


def test_no_page_reads_anything_off_a_table_but_through_one_function() -> None:
    pages = {str(f.relative_to(ROOT)): f.read_text("utf-8") for f in [*(ROOT / "pages").rglob("*.py"), ROOT / "app.py"]}
    assert len(pages) > 40
    found = [line for path, source in pages.items() for line in read_off(path, source)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    ["n = state.text.rows", "b = 1 / table.rows", "public_rows(table.rows, 5)", "k = len(text.columns['a'].values)"],
)
def test_the_walk_finds_what_it_looks_for(source: str) -> None:
    assert read_off("pages/05_release.py", source)
    assert not read_off("pages/05_release.py", "n = public_rows(plan, state.rows or state.text.rows)")
