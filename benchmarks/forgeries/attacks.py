"""Forgeries found in an attack on the verifier (docs/attacks.md)."""

from __future__ import annotations

import gzip
import io
import math
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.forgeries.budget import all_choices_removed
from benchmarks.forgeries.case import Case, Files, kind
from benchmarks.forgeries.honest import ASKED
from benchmarks.forgeries.ledger import chained, mine, with_events
from benchmarks.forgeries.texts import rearranged, swapped
from espalier.core.ledger.archive import digest_of
from espalier.core.privacy.accounting import epsilon_of
from espalier.core.privacy.spending import Spending
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.question_list import QuestionList
from espalier.core.release import Release, release


def real_rows(case: Case) -> bytes:
    """Return the private table in the form of a released table."""
    return case.with_codes(dict(case.rows.codes)).files["synthetic.csv"]


def cheaper(made: Release, kind_of_draw: str, **changes: Any) -> Release:
    """Return the release with draws of one kind priced at a smaller sensitivity, and with the resulting ε."""
    draws = [
        replace(d, **changes, rho=changes["sensitivity"] ** 2 / (2 * d.scale**2)) if d.kind == kind_of_draw else d
        for d in made.spending.draws
    ]
    rho = math.fsum(d.rho for d in draws)
    epsilon = epsilon_of(rho, 1e-6) * (1 + 1e-6)
    project = replace(made.project, plan=made.project.plan.changed(epsilon=epsilon))
    budget = replace(made.budget, epsilon=epsilon, rho=rho)
    return replace(made, spending=Spending(rho, draws), budget=budget, project=project)


def asked(case: Case, plan: Plan) -> Release:
    """Return an honest release that answers two questions directly; one row can change both answers."""
    project = Project(
        "clinic", case.rows.schema, plan, question_list=QuestionList(ASKED.questions), one_row_per_person=True
    )
    return release(project, case.rows, signer=case.key)


@kind("budget")
def questions_of_a_smaller_sensitivity(case: Case) -> Files:
    return cheaper(asked(case, Plan("fpt-lp", 1.0, 1e-6)), "sums", given=(("squared", 1),), sensitivity=1.0).files


@kind("budget")
def laplace_noise_for_an_l2_sensitivity(case: Case) -> Files:
    made, less = asked(case, Plan("fpt-lp", 1.0, accounting="pure")), math.sqrt(2)
    draws = [
        replace(d, sensitivity=d.sensitivity / less, scale=d.scale / less) if d.kind == "sums" else d
        for d in made.spending.draws
    ]
    return replace(made, spending=Spending.of(made.budget, draws)).files


@kind("budget")
def pure_counts_of_held_out_people_with_more_epsilon_than_promised(case: Case) -> Files:
    """Sixteen draws of a sixteenth of ρ each cost ρ in total, but four times the ε."""
    from espalier.core.evaluation.private.evaluation import PrivateEvaluation

    made = asked(case, Plan("fpt-lp", 1.0, accounting="pure"))
    count = next(d for d in case.honest.spending.draws if d.kind == "count")
    rho = made.spending.rho / 16
    scale = math.sqrt(2) * count.sensitivity**2 / math.sqrt(2 * rho)
    held = (
        replace(count, sensitivity=count.sensitivity**2, scale=scale, rho=rho, held_out=True, noise="laplace"),
    ) * 16
    judged = PrivateEvaluation(0.1, "row", None, 300, math.fsum(d.rho for d in held), (), (), held)
    return replace(made, private_evaluation=judged, project=made.project.with_plan(private_evaluation=0.1)).files


@kind("budget")
def one_score_stated_and_many_bought(case: Case) -> Files:
    plan = Plan("privci", 1.0, 1e-6, target="c", options={"explain": 0.1})
    made = release(replace(case.project(), plan=plan), case.rows, signer=case.key)
    d = next(d for d in made.spending.draws if d.kind == "scores")
    return cheaper(made, "scores", cells=1, sensitivity=d.sensitivity / math.sqrt(d.cells)).files


@kind("budget", detectable=False, why="an option that buys something may have taken any share")
def choices_removed_behind_a_share_for_something_else(case: Case) -> Files | None:
    made = all_choices_removed(case)
    return None if made is None else replace(made, project=made.project.with_plan(explain=1e-9)).files


@kind("noise")
def exact_counts_in_an_imaginary_part(case: Case) -> Files:
    def change(head: dict[str, Any], found: dict[str, Any]) -> None:
        found["counts_0"] = found["counts_0"] + 1j * case.exact(tuple(head["measurements"][0]["columns"]))

    return rearranged(case, "answers.npz", change)


@kind("noise")
def exact_counts_under_a_name_that_is_there_twice(case: Case) -> Files:
    array, out = io.BytesIO(), io.BytesIO(case.honest.files["answers.npz"])
    np.save(array, case.exact(case.fitted.measurements[0].clique))
    with zipfile.ZipFile(out) as old:
        members = [(name, old.read(name)) for name in old.namelist()]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as new, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, data in [("counts_0.npy", array.getvalue()), *members]:
            new.writestr(name, data)
    return case.resealed({**case.honest.files, "answers.npz": out.getvalue()})


@kind("noise")
def sums_with_another_scale_than_their_draw(case: Case) -> Files:
    def change(head: dict[str, Any], _: dict[str, Any]) -> None:
        head["direct"]["sigma"] /= 2

    return rearranged(case, "answers.npz", change, dict(asked(case, Plan("fpt-lp", 1.0, 1e-6)).files))


@kind("noise")
def more_sums_than_draws(case: Case) -> Files:
    def change(head: dict[str, Any], found: dict[str, Any]) -> None:
        head["histograms"], found["histogram_0"] = [{"sigma": head["direct"]["sigma"]}], case.exact(("a",))

    return rearranged(case, "answers.npz", change, dict(asked(case, Plan("fpt-lp", 1.0, 1e-6)).files))


@kind("budget")
def figures_of_a_private_evaluation_without_draws(case: Case) -> Files:
    from espalier.core.evaluation.private.evaluation import PrivateEvaluation

    judged = PrivateEvaluation(0.1, "row", None, 300, 0.0, (), (), ())
    return case.made(private_evaluation=judged, project=case.replanned(private_evaluation=0.1)).files


@kind("model")
def a_copula_that_claims_a_separation(case: Case) -> Files:
    plan = Plan("copula", 1.0, 1e-6, target="d")
    made = release(Project("clinic", case.rows.schema, plan, one_row_per_person=True), case.rows, signer=case.key)
    made.__dict__["_facts"] = {
        **made.to_json(),
        "separations": [{"left": ["c"], "right": ["g"], "given": ["b"], "holds": True, "why": "roles"}],
    }
    return made.files


@kind("files")
def counts_left_out_of_a_release_called_pure(case: Case) -> Files:
    files = {n: d for n, d in case.honest.files.items() if n != "answers.npz"}
    return case.resealed(files, lambda made: made["accounting"].update(rule="pure"))


@kind("texts")
def a_smaller_epsilon_with_another_blank(case: Case) -> Files:
    return swapped(case, "report.html", "</body>", "<p>In fact ε&nbsp;=&nbsp;0.1 holds.</p></body>")


@kind("texts")
def a_limit_hidden_in_the_label(case: Case) -> Files:
    line = "<li>That the table has at least one row.</li>"
    return swapped(case, "label.html", line, line.replace("<li>", "<li style='display: none'>"))


@kind("texts")
def a_limit_in_a_comment(case: Case) -> Files:
    line = "<li>That the table has at least one row.</li>"
    return swapped(case, "label.html", line, f"<!-- > {line} -->")


@kind("rows")
def real_rows_in_a_copy_that_was_not_made(case: Case) -> Files:
    return case.resealed({**case.honest.files, "copies/01.csv.gz": gzip.compress(real_rows(case))})


@kind("rows", detectable=False, why="copies are drawn from other fits, and only their cells are checked")
def real_rows_in_a_copy(case: Case) -> Files:
    made = case.made()
    made.__dict__["_facts"] = {**made.to_json(), "copies": 1}
    return case.resealed({**made.files, "copies/01.csv.gz": gzip.compress(real_rows(case))})


@kind("rows", detectable=False, why="files in other formats are not read; a note names them")
def real_rows_in_another_format(case: Case) -> Files:
    return case.resealed({**case.honest.files, "synthetic.sav": real_rows(case)})


def unread_model(case: Case, change: Callable[[dict[str, Any]], None]) -> Files:
    """Return the rows of the real table, next to a model whose head marks it as unreadable."""
    files = {**case.with_codes(dict(case.rows.codes)).files, "model.npz": case.honest.files["model.npz"]}
    return rearranged(case, "model.npz", lambda head, _: change(head), files)


@kind("model")
def real_rows_and_a_model_without_a_head(case: Case) -> Files:
    return unread_model(case, lambda head: head.clear())


@kind("model")
def real_rows_and_a_model_in_an_old_format(case: Case) -> Files:
    return unread_model(case, lambda head: head.update(format="espalier-decoder/1"))


@kind("model")
def real_rows_and_a_model_with_a_latent_variable(case: Case) -> Files:
    return unread_model(case, lambda head: head.update(latent=1))


@kind("model")
def exact_counts_called_weights_of_the_model(case: Case) -> Files:
    return rearranged(case, "model.npz", lambda _, found: found.update(weights=case.exact(("a",))))


@kind("noise")
def private_bits_called_impossible_cells(case: Case) -> Files:
    def change(head: dict[str, Any], found: dict[str, Any]) -> None:
        head["impossible"], found["impossible_0"] = [["a", "b"]], np.zeros((3, 4), bool)

    return rearranged(case, "answers.npz", change)


@kind("noise")
def real_rows_in_the_comment_of_an_archive(case: Case) -> Files:
    out = io.BytesIO(case.honest.files["answers.npz"])
    with zipfile.ZipFile(out, "a") as file:
        file.comment = real_rows(case)[:1000]
    return case.resealed({**case.honest.files, "answers.npz": out.getvalue()})


@kind("noise")
def real_rows_before_an_archive(case: Case) -> Files:
    data = real_rows(case)[:1000] + case.honest.files["answers.npz"]
    return case.resealed({**case.honest.files, "answers.npz": data})


@kind("rows")
def three_hundred_real_rows_where_only_some_are_shown(case: Case) -> Files:
    count = 300
    codes = {n: np.concatenate([case.rows.codes[n][:count], v[count:]]) for n, v in case.honest.codes.items()}
    made = case.with_codes(codes)
    made.__dict__["_facts"] = {**made.to_json(), "rows_shown": len(codes["a"])}
    return made.files


@kind("rows")
def real_rows_called_not_private_next_to_the_others(case: Case) -> Files:
    return case.resealed({**case.honest.files, "synthetic-NOT-PRIVATE.csv": real_rows(case)})


@kind("files")
def an_empty_statement_that_is_signed(case: Case) -> Files:
    made = case.with_codes(dict(case.rows.codes))
    made.__dict__["_facts"] = {k: v for k, v in made.to_json().items() if k != "statement"} | {"model": None}
    files = {n: d for n, d in made.files.items() if n != "model.npz"}
    return {**files, "statement.json": b"{}\n", "statement.sig": case.key.sign({})}


@kind("texts")
def a_limit_in_the_style_sheet(case: Case) -> Files:
    files = swapped(case, "label.html", "<li>That the table has at least one row.</li>", "")
    hidden = files["label.html"].replace(b"<style>", b"<style>/* That the table has at least one row. */")
    return case.resealed({**files, "label.html": hidden})


@kind("texts")
def a_limit_outside_the_page(case: Case) -> Files:
    line = "<li>That the table has at least one row.</li>"
    return swapped(case, "label.html", line, line.replace("<li>", "<li style='position:absolute;left:-9999px'>"))


@kind("texts")
def a_limit_in_a_closed_dialog(case: Case) -> Files:
    line = "<li>That the table has at least one row.</li>"
    return swapped(case, "label.html", line, f"<dialog>{line}</dialog>")


@kind("texts")
def a_smaller_epsilon_with_another_letter(case: Case) -> Files:
    return swapped(case, "label.html", "ε = 1,", "\N{GREEK LUNATE EPSILON SYMBOL} = 0.1, not ε = 1,")


@kind("texts")
def a_smaller_epsilon_behind_a_character_of_no_width(case: Case) -> Files:
    return swapped(case, "label.html", "ε = 1,", "ε\N{ZERO WIDTH SPACE} = 0.1, not ε = 1,")


@kind("texts")
def a_smaller_epsilon_as_a_fraction(case: Case) -> Files:
    return swapped(case, "label.html", "ε = 1,", "ε = 1/1000, not ε = 1,")


@kind("texts")
def a_smaller_epsilon_in_words(case: Case) -> Files:
    return swapped(case, "label.html", "ε = 1,", "Epsilon is at most 0.1, not ε = 1,")


@kind("ledger")
def an_entry_that_counts_less_than_nothing(case: Case) -> Any:
    def change(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        less = [{**e, "entry": "x" * 16, "rho": -10.0} for e in events if mine(case, e) and e["kind"] == "reserve"]
        return chained([*events, *less])

    return with_events(case, change)


@kind("ledger")
def an_entry_that_ends_twice(case: Case) -> Any:
    def change(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        start = next(e for e in events if mine(case, e) and e["kind"] == "reserve")
        more = [{**start, "entry": "x" * 16}]
        more += [{**start, "entry": "x" * 16, "kind": "return", "rho": 0.0, "released": ""}] * 2
        return chained([*events, *more])

    return with_events(case, change)


@kind("ledger")
def a_total_with_more_rho_than_epsilon(case: Case) -> Any:
    def change(events: list[dict[str, Any]], released: str | None = None) -> list[dict[str, Any]]:
        more = [{**e, "rho": 100.0} if e["kind"] == "open" else e for e in events]
        return chained(
            [
                {**e, "released": released or e["released"]} if mine(case, e) and e["kind"] == "spend" else e
                for e in more
            ]
        )

    made = case.made()
    facts = made.to_json()
    start = next(e for e in with_events(case, change)[1]["events"] if mine(case, e) and e["kind"] == "reserve")
    facts["ledger"]["total"]["rho"], facts["ledger"]["chain"] = 100.0, start["hash"]
    made.__dict__["_facts"] = facts
    return made.files, with_events(case, lambda events: change(events, digest_of(made.files)))[1]
