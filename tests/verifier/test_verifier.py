"""The independent checker accepts honest releases, rejects changed ones, and shares no code with the program."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import math
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import forgeries
from benchmarks.forgeries.case import frame
from espalier.core.analysis import forest
from espalier.core.cli.main import main
from espalier.core.graph.dag import Dag
from espalier.core.ledger.archive import ADDED
from espalier.core.ledger.ledger import Ledger
from espalier.core.privacy.accounting import epsilon_of
from espalier.core.privacy.draws import L1_PROOFS, PROOFS
from espalier.core.privacy.partitions import threshold_for
from espalier.core.privacy.unit import Unit
from espalier.core.project.constraint_kinds import Impossible
from espalier.core.project.constraints import Constraints
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.question_list import QuestionList
from espalier.core.project.schema import Column, Schema
from espalier.core.release import release
from espalier.core.report import drawing_picture, story
from espalier.core.report.style import STYLE as REPORT
from espalier.core.report.style import fonts
from espalier.core.statement.label import STYLE as LABEL
from espalier.core.tables.table import Table
from espalier.verifier import budget, noise, questions, texts
from espalier.verifier.check import main as command
from espalier.verifier.check import verify
from espalier.verifier.folder import Folder
from espalier.verifier.ledger import totals
from espalier.verifier.model import broken, calibrate, marginals, required
from espalier.verifier.rows import breaches
from tests.methods.test_contract import project as plan_of
from tests.methods.test_contract import table as rows_of

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = {"numpy", "scipy", "cryptography"}
SURE = (
    *(
        "sigma stated too small",
        "recipe of a smaller sensitivity",
        "epsilon promised too small",
        "two draws called parallel",
    ),
    *("noise left out", "a model refitted to exact counts", "an edge across the fence", "the rows of the real table"),
    *("thirty rows are real", "the report of another project", "a smaller epsilon in the registry entry"),
    *(
        "the entry is missing",
        "the total is exceeded",
        "a truncated table",
        "the signature of another key",
        "no statement",
    ),
    *(
        "questions of a smaller sensitivity",
        "laplace noise for an l2 sensitivity",
        "one score stated and many bought",
        "exact counts in an imaginary part",
    ),
    *("a limit hidden in the label", "real rows in a copy that was not made", "another sum in the composition"),
    *("real rows and a model without a head", "real rows and a model in an old format"),
    *("exact counts called weights of the model", "private bits called impossible cells"),
    *("real rows in the comment of an archive", "real rows before an archive"),
    *("three hundred real rows where only some are shown", "real rows called not private next to the others"),
    *("an empty statement that is signed", "a limit in the style sheet", "a limit outside the page"),
    *("a limit in a closed dialog", "a smaller epsilon with another letter", "a smaller epsilon as a fraction"),
    *("a smaller epsilon behind a character of no width", "a smaller epsilon in words"),
    *("an entry that counts less than nothing", "an entry that ends twice", "a total with more rho than epsilon"),
)
"""At least one kind of forgery for each check; `python -m benchmarks.forgeries` tries them all."""


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.db", create=True)
    return forgeries.Case("privci", 0, forgeries.signer(), ledger)


@pytest.fixture(scope="module")
def folder(case, tmp_path_factory):
    return forgeries.written(case.honest.files, tmp_path_factory.mktemp("release"))


def failed(folder: Path, **given) -> list[str]:
    return [f"{f.check} {f.text}" for f in verify(folder, **given) if f.holds is False]


def test_the_checker_imports_nothing_of_the_program():
    import sys

    for path in (ROOT / "verifier").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 1 or node.module.split(".")[0] in ALLOWED | sys.stdlib_module_names
            elif isinstance(node, ast.Import):
                assert {a.name.split(".")[0] for a in node.names} <= ALLOWED | sys.stdlib_module_names


def test_every_proof_that_a_statement_names_is_in_its_file():
    for place in (*PROOFS.values(), *L1_PROOFS.values()):
        file, _, name = place.partition(": ")
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        found = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef | ast.FunctionDef)]
        named = [n for n in found if n.name == name.split(".")[-1]]
        assert any(
            word in (ast.get_docstring(n) or "") for n in named for word in ("Proof", "proved", "at most", "See")
        )
    assert set(PROOFS) == set(budget.RECIPES)
    assert set(L1_PROOFS) == set(budget.LAPLACE)


def test_an_honest_release_holds(folder, case):
    found = verify(folder, forgeries.public_pem(case.key), json.dumps(case.ledger.to_json()).encode())
    assert [f.text for f in found if f.holds is False] == []
    assert {f.check for f in found if f.holds} == {1, 2, 3, 4, 5, 6, 7}


@pytest.mark.parametrize("name", SURE)
def test_a_forged_release_fails(case, name):
    kind = next(k for k in forgeries.KINDS if k.name == name)
    made = kind.make(case)
    files, export = made if isinstance(made, tuple) else (made, None)
    assert forgeries.checked(files, case.key, export)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("more sums than draws", "more sums than draws"),
        ("exact counts called counts of merged groups", "match no draw"),
        ("figures of a private evaluation without draws", "no draw from held-out people"),
        ("a copula that claims a separation", "a copula, or a network with a latent variable, keeps no separation"),
        ("counts left out of a release called pure", "answers.npz is missing"),
    ],
)
def test_a_forged_release_fails_the_check_of_its_fault(case, tmp_path, name, fault):
    files = next(k for k in forgeries.KINDS if k.name == name).make(case)
    assert fault in " ".join(failed(forgeries.written(files, tmp_path / "r")))


def test_a_release_without_its_key_is_signed_by_an_unknown_key(folder):
    assert [f for f in verify(folder) if f.holds is None and "unknown key" in f.text]
    assert failed(folder, key=forgeries.public_pem(forgeries.signer()))


def test_exit_codes(folder, tmp_path, capsys):
    assert command([str(folder)]) == 0
    (tmp_path / "release.json").write_text('{"a": 1, "a": 2}')
    assert command([str(tmp_path)]) == 2
    assert command([str(tmp_path / "none")]) == 2
    forgeries.written({n: (folder / n).read_bytes() for n in ADDED}, tmp_path / "cut")
    (tmp_path / "cut" / "release.json").write_bytes((folder / "release.json").read_bytes())
    assert main(["verify", str(tmp_path / "cut")]) == 1
    assert "FAILS" in capsys.readouterr().out


def test_a_folder_that_breaks_a_check_fails_it(folder, tmp_path):
    files = {p.name: p.read_bytes() for p in folder.iterdir()}
    for name in ("answers.npz", "model.npz", "synthetic.csv", "report.html", "statement.sig", "project.json"):
        place = forgeries.written({**files, name: b"\x00\xff"}, tmp_path / name)
        assert failed(place)
    nested = b"[" * 100_000
    assert failed(forgeries.written({**files, "registry.yaml": nested}, tmp_path / "deep"))


def test_a_table_with_a_bare_carriage_return_fails_the_check(folder, tmp_path):
    """Previously, this ended in a traceback."""
    files = {p.name: p.read_bytes() for p in folder.iterdir()}
    lines = files["synthetic.csv"].split(b"\n")
    bare = b"\n".join([lines[0], b"a\rb" + lines[1], *lines[2:]])
    found = failed(forgeries.written({**files, "synthetic.csv": bare}, tmp_path / "o"))
    assert any(said.startswith("5 cannot be checked") for said in found)


def test_a_page_of_angle_brackets_is_read_in_linear_time(folder, tmp_path):
    """Previously, 100,000 of them took a minute."""
    files = {p.name: p.read_bytes() for p in folder.iterdir()}
    forgeries.written({**files, "label.html": files["label.html"] + b"<" * 100_000}, tmp_path / "o")
    start = time.process_time()
    assert any("label.html may hide text" in said for said in failed(tmp_path / "o"))
    assert time.process_time() - start < 10


def test_a_release_called_not_private_makes_no_promise(case, tmp_path, capsys):
    """Previously, its label and report could promise ε = 1, with exit status 0."""
    files = dict(case.honest.files)
    files["release.json"] = json.dumps({**json.loads(files["release.json"]), "private": False}, indent=1).encode()
    forgeries.written(case.resealed(files, lambda made: made.update(private=False)), tmp_path / "o")
    assert command([str(tmp_path / "o")]) == 1
    said = capsys.readouterr().out
    assert "'label.html' is not a file of this release" in said
    assert "NOT PRIVATE" in said


def test_edges_beyond_floats_are_unreadable(folder, tmp_path, capsys):
    """Previously, this ended in a traceback."""
    files = {p.name: p.read_bytes() for p in folder.iterdir()}
    facts = json.loads(files["release.json"])
    next(c for c in facts["project"]["schema"] if "edges" in c)["edges"][-1] = 10**400
    forgeries.written({**files, "release.json": json.dumps(facts).encode()}, tmp_path / "o")
    assert command([str(tmp_path / "o")]) == 2
    assert capsys.readouterr().err.startswith("unreadable: ")


def test_a_message_does_not_control_the_terminal(folder, tmp_path, capsys):
    """Previously, the name of an unknown format was printed as it was."""
    files = {p.name: p.read_bytes() for p in folder.iterdir()}
    facts = {**json.loads(files["release.json"]), "format": "\x1b[2KAll checks that apply hold."}
    forgeries.written({**files, "release.json": json.dumps(facts).encode()}, tmp_path / "o")
    assert command([str(tmp_path / "o")]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_findings_are_printed_on_a_console_without_greek(folder, monkeypatch):
    """Previously, this ended in a traceback on a Windows console."""
    page = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr("sys.stdout", page)
    assert command([str(folder)]) == 0


def test_a_file_of_another_size_is_not_read(folder, tmp_path, monkeypatch):
    """Previously, a sparse file of 200 GB was read to the end."""
    place = forgeries.written({p.name: p.read_bytes() for p in folder.iterdir()}, tmp_path / "o")
    with (place / "report.html").open("r+b") as file:
        file.truncate(200 << 30)
    digest = hashlib.file_digest

    def small(file, name):
        assert file.seek(0, 2) < 1 << 30, "it was read"
        file.seek(0)
        return digest(file, name)

    monkeypatch.setattr(hashlib, "file_digest", small)
    assert "1 report.html was changed" in failed(place)


@pytest.mark.parametrize("name", ["answers.npz", "model.npz"])
def test_a_small_archive_of_large_arrays_is_not_unpacked(folder, tmp_path, name):
    """Previously, the checker turned 0.9 MB into 2 GB."""
    packed = io.BytesIO()
    np.savez_compressed(packed, head=np.zeros(10_000_000))
    place = forgeries.written({p.name: p.read_bytes() for p in folder.iterdir()} | {name: packed.getvalue()}, tmp_path)
    assert any(f"{name} unpacks to more than 150 times its size" in said for said in failed(place))


def test_an_old_release_holds_as_far_as_it_can_be_checked():
    found = verify(ROOT / "tests" / "release" / "before")
    assert [f.text for f in found if f.holds is False] == []
    assert any("old release" in f.text for f in found)


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_the_sensitivity_of_questions_is_that_of_the_program(neighbors, tmp_path):
    asked = QuestionList(
        (
            {"name": "both", "where": {"a": ["x"], "c": ["yes"]}},
            {"name": "either", "any": [{"a": ["x", "y"]}, {"d": [0, 3], "f": ["(missing)"]}]},
            {"name": "often", "where": {"n": [1, 2]}},
        ),
        ({"name": "n", "of": {"a": ["x"], "c": ["yes"]}},),
    )
    plan = Plan("fpt-lp", 1.0, 1e-6, neighbors=neighbors)
    rows = forgeries.table(4, 300)
    release(Project("asked", rows.schema, plan, question_list=asked, one_row_per_person=True), rows).save(
        tmp_path / "r"
    )
    folder = Folder(tmp_path / "r")
    (draw,) = [d for d in folder.statement["draws"] if d["recipe"] == "questions"]
    assert questions.squared(folder, draw) == draw["given"]["squared"]
    assert failed(tmp_path / "r") == []


def test_honest_networks_beside_a_column_of_one_value_hold(tmp_path):
    """The checks of model and rows failed in a fifth of such releases: the column had joined others in the checker."""
    for seed in range(8):
        rows = forgeries.table(seed, 300)
        schema = Schema((*rows.schema.columns, Column("one", "categorical", ("only",))))
        rows = Table(schema, {**rows.codes, "one": np.zeros(300, np.uint8)}, 300, values=rows.values)
        plan = Plan("privbayes", 1.0, 1e-6)
        release(Project("one value", schema, plan, one_row_per_person=True), rows).save(tmp_path / f"{seed}")
        assert failed(tmp_path / f"{seed}") == []


def test_an_honest_release_of_people_under_replace_one_holds(tmp_path):
    """Previously, the check failed: the program writes “no one”, and the checker expected “nobody”."""
    rows = forgeries.table(6, 300)
    plan = Plan("independent", 1.0, 1e-6, person="person", rows_per_person=1, rows=150)
    release(Project("people", rows.schema, plan, one_row_per_person="unasked"), frame(rows)).save(tmp_path / "r")
    assert failed(tmp_path / "r") == []


@pytest.mark.parametrize("method", ["independent", "mst", "privbayes", "workload", "prism"])
@pytest.mark.parametrize("sizes", [(1,), (2,), (1, 2), (2, 3), (2, 3, 2)], ids=str)
def test_an_honest_release_of_few_columns_holds(method, sizes, tmp_path):
    """Previously, such releases failed: some methods leave a part of ρ unspent, and one value has no order."""
    if method == "prism" and len(sizes) < 3:
        pytest.skip("prism needs a target")
    columns = tuple(Column(f"c{i}", "categorical", tuple("xyz"[:size])) for i, size in enumerate(sizes))
    codes = {c.name: np.random.default_rng(i).integers(0, sizes[i], 90, np.uint8) for i, c in enumerate(columns)}
    plan = Plan(method, 1.0, 1e-6, target="c2" if method == "prism" else None)
    made = Project("few columns", Schema(columns), plan, one_row_per_person=True)
    release(made, Table(made.schema, codes, 90)).save(tmp_path / "r")
    assert failed(tmp_path / "r") == []


def test_an_honest_release_of_one_column_by_prism_holds(tmp_path):
    """Previously, the check failed: it held the column at the first fit's values, although it has no pairs."""
    schema = Schema((Column("a", "categorical", tuple("123456789")),))
    rows = Table(schema, {"a": np.random.default_rng(0).integers(0, 9, 30, np.uint8)}, 30)
    plan = Plan("prism", 0.3, 1e-6, target="a")
    release(Project("one column", schema, plan, one_row_per_person=True), rows).save(tmp_path / "r")
    assert failed(tmp_path / "r") == []


def test_an_honest_decoder_with_a_rounded_clipping_norm_holds(tmp_path):
    """Previously, the check failed if the program's clipping norm was rounded to just below a whole unit."""
    schema = Schema(tuple(Column(n, "categorical", ("x", "y")) for n in "ab"))
    rows = Table(schema, dict.fromkeys("ab", np.arange(50, dtype=np.uint8) % 2), 50)
    plan = Plan("decoder", 1.0, 1e-6, options={"steps": 1, "families": "additive"})
    release(Project("rounded", schema, plan, dag=Dag((("a", "b"),)), one_row_per_person=True), rows).save(
        tmp_path / "r"
    )
    assert failed(tmp_path / "r") == []
    made = json.loads((tmp_path / "r" / "statement.json").read_text("utf-8"))
    assert min(d["sensitivity"] for d in made["draws"] if d["recipe"] == "clipped-gradient") == 3 - 2**-19


def test_an_honest_release_of_rows_that_break_a_constraint_holds(tmp_path):
    """Previously, the check failed: the model cannot be close to counts of rows in impossible cells."""
    rng, rows = np.random.default_rng(0), 3000
    codes = {"sex": rng.integers(0, 2, rows, np.uint8), "pregnant": rng.integers(0, 2, rows, np.uint8)}
    schema = Schema(tuple(Column(n, "categorical", ("no", "yes")) for n in codes))
    rule = Constraints((Impossible({"sex": ("no",), "pregnant": ("yes",)}, "confirmed"),))
    project = Project("broken", schema, Plan("mst", 1.0, 1e-6), constraints=rule, one_row_per_person=True)
    release(project, Table(schema, codes, rows)).save(tmp_path / "r")
    assert failed(tmp_path / "r") == []


@pytest.mark.parametrize(
    ("rules", "broken"),
    [
        ({"impossible": [{"a": ["x"], "n": {"below": 5}}]}, 1),
        ({"impossible": [{"values": {"a": [""], "n": {"below": 5}}, "confirmed": True}]}, 1),
        ({"impossible": [{"a": ["y"], "n": {"below": 5}}]}, 0),
        ({"monotone": [["b", "n"]]}, 1),
        ({"monotone": [{"columns": ["a", "a"], "confirmed": True}]}, 0),
        ({"determines": [{"columns": ["a", "b"], "table": {"x": "x", "y": "x"}}]}, 1),
        ({"determines": [{"columns": ["a", "b"], "table": {"x": "x", "y": "y", "": "x"}}]}, 1),
        ({"determines": [{"columns": ["a", "b"], "table": {"x": "x", "y": "y"}}]}, 0),
    ],
)
def test_rows_that_break_a_constraint_of_the_project_fail(rules, broken):
    """Previously, the checker read the impossible cells from `answers.npz` alone."""
    columns = [{"name": n, "kind": "ordinal", "categories": ["x", "y"], "missing": n == "a"} for n in "ab"]
    columns.append({"name": "n", "kind": "numeric", "edges": [0, 5, 10], "integer": True})
    notes: list[str] = []
    folder = SimpleNamespace(columns=columns, facts={"project": rules}, note=lambda check, said: notes.append(said))
    codes = {"a": np.array([0, 1, 2]), "b": np.array([0, 1, 1]), "n": np.array([0, 1, 0])}
    assert len(breaches(folder, codes)) == broken
    assert notes == []


def test_the_model_must_be_close_to_counts_that_break_no_constraint():
    table = noise.Counts(("a", "b"), np.array([[50.0, 40.0], [25.0, 60.0]]), 10.0)
    counted = SimpleNamespace(counts=[table], impossible={("b", "a"): np.array([[False, True], [False, False]])})
    assert broken(counted) == 0  # 25 is below three times the noise
    table.values[1, 0] = 45
    assert broken(counted) == 45


@pytest.mark.parametrize(
    "dials", [{"pools": {"one-way": 0.2, "target": 0.8}}, {"task_weights": "bought"}], ids=["pools", "weights"]
)
def test_an_honest_release_with_the_dials_of_prism_holds(dials, tmp_path):
    """Previously, the check failed: it knew neither pools set by the plan nor several feature scores bought at once."""
    release(plan_of(method="prism", regime="causal", epsilon=2.0, **dials), rows_of()).save(tmp_path / "r")
    assert failed(tmp_path / "r") == []
    folder = Folder(tmp_path / "r")
    draws = folder.statement["draws"]
    total = math.fsum(d["rho"] for d in draws)
    assert budget.shares(folder, draws, total) == []
    first = next(i for i, d in enumerate(draws) if d["pool"] == "one-way")
    assert budget.shares(folder, draws[:first] + draws[first + 1 :], total), "a draw that is left out is found"


@pytest.mark.parametrize("rho", [1e-8, 1e-3, 0.1, 2.0, 50.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-30])
def test_the_conversion_agrees_with_the_programs(rho, delta):
    assert budget.epsilon_of(rho, delta) == pytest.approx(epsilon_of(rho, delta), rel=1e-7, abs=1e-12)


def test_a_draw_is_a_purchase_of_its_plan():
    """Previously, any sum could be called moments, which have a smaller sensitivity, so ε was understated."""
    rho = 0.01
    draw = {"kind": "sums", "recipe": "moments", "rho": rho, "sensitivity": 2**0.5, "scale": rho**-0.5, "delta": 0.0}
    draw |= {"given": {}, "what": "answers to 30 questions"}
    plan = {"accounting": "zcdp"}
    for method, wrong in (("copula", []), ("decoder", ["moments is not a purchase of this plan"])):
        facts = {"method": method, "project": {}}
        assert budget.check_draw(budget.Bought(draw, SimpleNamespace(facts=facts), 1, 2, 100, plan)) == wrong


def test_a_decoder_pays_for_all_steps(tmp_path):
    model = io.BytesIO()
    head = {"sizes": [["a", 2], ["b", 2]], "edges": [["a", "b"]]}
    np.savez(model, head=np.frombuffer(json.dumps(head).encode(), np.uint8))
    facts = {"project": {"schema": [], "plan": {"steps": 3}}, "method": "decoder"}
    files = {"release.json": json.dumps(facts).encode(), "model.npz": model.getvalue()}
    folder = Folder(forgeries.written(files, tmp_path))
    steps = [{"recipe": "clipped-gradient"}] * 3
    assert budget.numbers(folder, steps) == []
    assert budget.numbers(folder, [*steps[1:], {"recipe": "counts"}])


def test_nothing_spent_costs_no_epsilon():
    """Previously, ε was 8e-155, so the first release from a ledger with a tiny δ failed."""
    assert budget.epsilon_of(0.0, 1e-300) == epsilon_of(0.0, 1e-300) == 0


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_a_threshold_lets_through_no_more_than_its_delta(neighbors):
    recipe = threshold_for(Unit(neighbors, 2), 0.05, 1e-9)
    moved = 4 if neighbors == "replace-one" else 2
    slip = -math.expm1(moved * math.log1p(-budget.tail(recipe.sigma, recipe.threshold - 2)))
    assert recipe.delta / 20 < slip <= recipe.delta


def test_components_are_independent_parts_that_add_up():
    table = np.random.default_rng(1).normal(size=(3, 4, 2))
    parts = noise.components(table, ("a", "b", "c"))
    assert len(parts) == 8
    assert parts[("a", "c")].sum(axis=0) == pytest.approx(0, abs=1e-12)
    square = sum(np.sum(p**2) * p.size / table.size for p in parts.values())
    assert square == pytest.approx(np.sum(table**2))


@pytest.mark.parametrize("exact", [False, True])
def test_counts_added_up_in_a_group_have_the_noise_of_their_categories(exact):
    """Previously, only the total of such counts was tested."""
    rng, members = np.random.default_rng(2), np.array([*[1] * 20, 30])
    real = 100 * np.ones((21, 2))
    ones = real.sum(axis=1) + (0 if exact else np.rint(rng.normal(0, 30 * np.sqrt(members))))
    pairs = [noise.Counts(("a", n), real + np.rint(rng.normal(0, 3, real.shape)), 3.0) for n in "bc"]
    folded = noise.Counts(("a",), ones, 30 * math.sqrt(members.mean()), members)
    answers = SimpleNamespace(counts=[folded, *pairs], rows=None, sizes={"a": 21, "b": 2, "c": 2})
    assert ("a differ by less than their noise" in " ".join(noise.tested(answers)[0])) == exact


def test_marginals_are_those_of_the_programs_model(case):
    model = case.honest.model
    cliques = list(model.potentials)
    for order in (case.honest.model._calibrated.tree.columns, ()):
        found = marginals(calibrate(model.sizes, model.potentials, order), cliques)
        for q in cliques:
            assert found[q] * model.total == pytest.approx(model.marginal(q), abs=1e-6)


@pytest.mark.parametrize(
    ("plan", "listed", "wrong"),
    [
        ({}, [], 1),
        ({"fair": False}, [], 0),
        ({}, [{"left": ["g"], "right": ["c"], "given": ["b", "d"], "holds": True}], 0),
        ({}, [{"left": ["g"], "right": ["c"], "given": ["b", "d"], "holds": False}], 1),
        ({}, [{"left": ["g"], "right": ["c"], "given": ["b"], "holds": True}], 1),
        ({"strict": True}, [{"left": ["g"], "right": ["c"], "given": ["b", "d"], "holds": True}], 1),
        ({"strict": True}, [{"left": ["c"], "right": ["g", "h"], "given": ["b", "d"], "holds": True}], 0),
    ],
)
def test_the_separations_that_a_plan_requires_are_listed(plan, listed, wrong):
    """Previously, a release with a fence could leave out its separations."""
    roles = {"outcome": ["c"], "protected": ["g"], "admissible": ["b", "d"], "inadmissible": ["h"]}
    facts = {"method": "privci", "separations": listed, "project": {"plan": plan, "roles": roles}}
    found = required(SimpleNamespace(facts=facts, linked={}))
    assert len(found) == wrong


def test_noise_is_not_testable_without_overlaps(tmp_path):
    rows = forgeries.table(3, 400)
    schema = replace(rows.schema, columns=rows.schema.columns[:2])
    small = type(rows)(schema, {n: rows.codes[n] for n in schema.names}, rows.rows)
    project = Project("small", schema, Plan("independent", 1.0, 1e-6), one_row_per_person=True)
    release(project, small).save(tmp_path / "r")
    found = verify(tmp_path / "r")
    assert any(f.check == 3 and f.holds is None and "not testable" in f.text for f in found)
    assert not [f for f in found if f.holds is False]


def test_a_statement_holds_no_digest_of_the_table_and_no_private_number_of_rows():
    rows = forgeries.table(5, 1234)
    project = forgeries.Case("privci", 5, None, None).project(neighbors="add-remove", rows=500)
    made = release(project, rows)
    text = made.files["statement.json"].decode()
    assert rows.digest.hex() not in text
    assert "1234" not in text
    assert "1,234" not in text
    assert json.loads(text)["unit"]["rows"] is None


@pytest.mark.parametrize(
    "added",
    [
        "<style>tr:nth-child(5){display : none}</style>",
        '<style>td::after{content : "ε = 0.1"}</style>',
        "<style></style>",
        '<p title="ε = 0.1">x</p>',
        '<div aria-label="This release is (ε = 0.1)-DP" role="group">x</div>',
        '<meta name="description" content="ε = 0.1">',
        '<p role="img" aria-label="No limits">x</p>',
        '<svg><rect x="0" y="0" width="9" height="9"/></svg>',
        "<small>a<small>b</small></small>",
        "<ul><li><ul><li>b</li></ul></li></ul>",
        "<div><p>x</div>",
        '<div class="stack">x</div>',
        "</main>",
        "x",
    ],
)
def test_a_label_contains_only_what_labels_contain(added):
    """Previously, blanks before a colon disguised a style, and attributes could state another ε."""
    facts = {"spent": {"epsilon": 1.0}, "asked": {"epsilon": 1.0, "delta": 1e-6}, "ledger": None}
    page = f'<!doctype html>\n<html lang="en"><head><style>{LABEL}</style></head>\n<body>{added}</body></html>\n'
    known = texts.claimed(SimpleNamespace(statement={}, facts=facts))
    try:
        wrong = bool(texts.stated("\n".join(texts.read(page, "label.html")), known)[1])
    except ValueError:
        wrong = True
    assert wrong == (added != "x")


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("22 noisy answers, together ρ = 0.024.", []),
        ("22 noisy answers, together ρ = 0.001.", ["ρ = 0.001"]),
        ("From the same people: ε = 0.1 before this release, of ε = 3 at δ = 1e-06 in all", []),
        ("Earlier releases had reached ε = 0.1 (ρ = 0.001). Later, the total is ε = 1.1 (ρ = 0.025).", []),
        ("The guarantee of this release is a total of ε = 0.1, δ = 1e-06", ["ε = 0.1"]),
        ("From the same people: ε = 0.1 before this release, of ε = 2 at δ = 1e-06", ["ε = 0.1", "ε = 2"]),
    ],
)
def test_a_text_states_the_ledgers_numbers_only_as_those_of_the_ledger(said, wrong):
    """Previously, a text could state the ρ of one draw, and earlier spending as the total of this release."""
    ledger = {
        "total": {"epsilon": 3.0, "delta": 1e-6, "rho": 0.18},
        "before": {"epsilon": 0.1, "rho": 0.001},
        "after": {"epsilon": 1.1, "rho": 0.025},
    }
    spent = {"epsilon": 1.0, "rho": 0.024}
    facts = {"asked": {"epsilon": 1.0, "delta": 1e-6}, "spent": spent, "ledger": ledger}
    known = texts.claimed(SimpleNamespace(statement={"draws": [{"rho": 0.001, "delta": 0.0}]}, facts=facts))
    assert texts.stated(said, known, ledger)[1] == wrong


def test_the_registry_entry_and_the_card_have_only_known_entries(case):
    """Previously, they could state another ε under `ε`, `maxEpsilon` or `rai:epsilon`."""
    for name, place, added in (
        ("registry.yaml", ("deployment", "privacy_loss", "privacy_parameters"), {"ε": 0.1}),
        ("registry.yaml", ("deployment", "basic"), {"maxEpsilon": 0.1}),
        ("croissant.json", (), {"rai:epsilon": {"value": 0.1}}),
        ("croissant.json", (), {"variableMeasured": [{"name": "epsilon", "value": 0.1}]}),
        ("croissant.json", (), {"description": 0.1}),
    ):
        made = part = json.loads(case.honest.files[name])
        assert list(texts.unknown(name, made)) == []
        for key in place:
            part = part[key]
        part.update(added)
        assert list(texts.unknown(name, made))


def test_earlier_spending_has_the_epsilon_of_its_rho():
    """Previously, it could have a larger one, which a text could then state."""
    total = {"epsilon": 3.0, "delta": 1e-6, "rho": 0.1}
    before, after = {"epsilon": 0.1, "rho": 0.0}, {"epsilon": budget.epsilon_of(0.05, 1e-6), "rho": 0.05}
    assert totals({"total": total, "before": before, "after": after}, 0.05)
    assert not totals({"total": total, "before": {**before, "epsilon": 0.0}, "after": after}, 0.05)


def test_cells_of_a_table_are_read_apart():
    """Previously, “delta=1” and the number in the next cell were read as one number."""
    page = "<table><tr><td>delta=<strong>1</strong></td><td>0.5</td></tr></table>"
    known = {"ε": {1.0}, "δ": {1e-6}, "ρ": {0.1}}
    assert texts.stated(texts.read(page, "report.html")[1], known)[1] == ["δ = 1"]


def test_the_style_sheets_of_the_program_are_known():
    written = [fonts() + REPORT, drawing_picture.STYLE, forest.STYLE, story._STYLE]
    assert {texts.mark(sheet) for sheet in written} <= texts.SHEETS["report.html"]
    assert {texts.mark(LABEL)} == texts.SHEETS["label.html"]


def test_a_picture_stays_inside_its_frame():
    picture = '<svg class="light"{}><rect x="0" y="0" width="9" height="9"/></svg>'
    texts.read(picture.format(""), "report.html")
    for extra in (' overflow="visible"', ' style="overflow:visible"'):
        with pytest.raises(ValueError, match="may hide text"):
            texts.read(picture.format(extra), "report.html")


@pytest.mark.parametrize(
    ("tag", "odd"),
    [
        ('<p class="the previous one. hidden onto http-equiv">', False),
        ('<p class="x" hidden>', True),
        ('<p class="x" onclick="x">', True),
        ('<p title="one" style="display: none">', True),
    ],
)
def test_a_word_of_a_text_is_no_attribute_that_hides(folder, tmp_path, tag, odd):
    """Previously, the report of the sample of linked tables failed, because a text of its picture ended in "one"."""
    files = {p.name: p.read_bytes() for p in folder.iterdir()}
    page = files["report.html"].replace(b"</body>", f"{tag}x</p></body>".encode())
    found = failed(forgeries.written({**files, "report.html": page}, tmp_path / "o"))
    assert any("report.html may hide text" in said for said in found) == odd
