"""Forged texts and arrays."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.forgeries.case import (
    ROWS,
    Case,
    Files,
    kind,
)


@kind("texts")
def the_report_of_another_project(case: Case) -> Files:
    return case.resealed({**case.honest.files, "report.html": case.other.files["report.html"]})


@kind("texts")
def the_label_of_another_project(case: Case) -> Files:
    return case.resealed({**case.honest.files, "label.html": case.other.files["label.html"]})


def swapped(case: Case, name: str, old: str, new: str) -> Files:
    """Return the files with a changed text in the file ``name``."""
    data = case.honest.files[name].decode()
    assert old in data, (name, old)
    return case.resealed({**case.honest.files, name: data.replace(old, new).encode()})


@kind("texts")
def a_smaller_epsilon_in_the_report(case: Case) -> Files:
    return swapped(case, "report.html", "ε = 1", "ε = 0.1")


@kind("texts")
def a_smaller_epsilon_in_the_label(case: Case) -> Files:
    return swapped(case, "label.html", "ε = 1,", "ε = 0.1,")


@kind("texts")
def a_smaller_epsilon_once_in_the_report(case: Case) -> Files:
    data = case.honest.files["report.html"].decode()
    at = data.rindex("ε = 1 ")
    return case.resealed({**case.honest.files, "report.html": (data[:at] + "ε = 0.1 " + data[at + 6 :]).encode()})


@kind("texts")
def a_limit_left_out_of_the_label(case: Case) -> Files:
    return swapped(case, "label.html", "<li>That the table has at least one row.</li>", "")


@kind("texts")
def a_smaller_epsilon_in_the_registry_entry(case: Case) -> Files:
    entry = json.loads(case.honest.files["registry.yaml"])
    entry["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] = 0.1
    return case.resealed({**case.honest.files, "registry.yaml": json.dumps(entry).encode()})


@kind("texts")
def another_unit_in_the_registry_entry(case: Case) -> Files:
    entry = json.loads(case.honest.files["registry.yaml"])
    entry["deployment"]["privacy_loss"]["privacy_unit"] = "Protected: one household."
    return case.resealed({**case.honest.files, "registry.yaml": json.dumps(entry).encode()})


@kind("texts")
def another_promise_in_the_croissant_card(case: Case) -> Files:
    return swapped(case, "croissant.json", "ε = 1, δ", "ε = 0.1, δ")


@kind("texts")
def a_smaller_chance_to_guess_right(case: Case) -> Files:
    def change(made: dict[str, Any]) -> None:
        made["guarantee"]["guess_right"] = 0.51

    return case.resealed(dict(case.honest.files), change)


@kind("texts")
def a_statement_with_another_number_of_rows(case: Case) -> Files:
    def change(made: dict[str, Any]) -> None:
        made["release"]["rows"] = 10 * ROWS

    return case.resealed(dict(case.honest.files), change)


@kind("texts")
def an_assumption_left_out_of_the_statement(case: Case) -> Files:
    def change(made: dict[str, Any]) -> None:
        made["assumed"] = made["assumed"][1:]

    return case.resealed(dict(case.honest.files), change)


@kind("texts")
def other_columns_in_the_statement(case: Case) -> Files:
    def change(made: dict[str, Any]) -> None:
        made["release"]["columns"] = made["release"]["columns"][1:]

    return case.resealed(dict(case.honest.files), change)


@kind("budget")
def another_sum_in_the_composition(case: Case) -> Files:
    def change(made: dict[str, Any]) -> None:
        made["composition"]["own"]["rho"] /= 2

    return case.resealed(dict(case.honest.files), change)


@kind("texts")
def another_conversion_in_the_statement(case: Case) -> Files:
    def change(made: dict[str, Any]) -> None:
        made["accounting"]["conversion"] = "ε is ρ."

    return case.resealed(dict(case.honest.files), change)


def reclaimed(case: Case, change: Callable[[dict[str, Any]], None]) -> Files:
    """Return the release with a statement that was changed before label, report, registry entry and card were made from
    it."""
    made = case.made()
    claims = made._claims
    change(claims)
    return made.files


@kind("texts")
def another_unit_in_every_text(case: Case) -> Files:
    def change(claims: dict[str, Any]) -> None:
        claims["unit"]["sentence"] = "Protected: one household with all its rows."

    return reclaimed(case, change)


@kind("texts")
def a_limit_left_out_of_every_text(case: Case) -> Files:
    def change(claims: dict[str, Any]) -> None:
        claims["not_protected"] = claims["not_protected"][1:]

    return reclaimed(case, change)


@kind("texts")
def other_adjacent_tables_in_every_text(case: Case) -> Files:
    def change(claims: dict[str, Any]) -> None:
        claims["unit"]["adjacent"] = "Two tables are adjacent if they differ in all rows."

    return reclaimed(case, change)


def rearranged(
    case: Case,
    name: str,
    change: Callable[[dict[str, Any], dict[str, Any]], None],
    files: Files | None = None,
) -> Files:
    """Return ``files``, or those of the honest release, with another head or other arrays in one of the ``.npz``
    files."""
    files = dict(case.honest.files) if files is None else files
    with np.load(io.BytesIO(files[name]), allow_pickle=False) as file:
        found = dict(file)
    head = json.loads(found.pop("head").tobytes())
    change(head, found)
    out = io.BytesIO()
    np.savez_compressed(out, allow_pickle=False, head=np.frombuffer(json.dumps(head).encode(), np.uint8), **found)
    return case.resealed({**files, name: out.getvalue()})


@kind("model")
def exact_counts_hidden_in_the_model(case: Case) -> Files:
    def change(_: dict[str, Any], found: dict[str, Any]) -> None:
        found["more"] = case.exact(("a",))

    return rearranged(case, "model.npz", change)


@kind("noise")
def exact_counts_hidden_in_the_answers(case: Case) -> Files:
    def change(_: dict[str, Any], found: dict[str, Any]) -> None:
        found["counts_999"] = case.exact(("a",))

    return rearranged(case, "answers.npz", change)


@kind("rows")
def rows_that_are_not_even_without_an_order(case: Case) -> Files:
    def change(head: dict[str, Any], _: dict[str, Any]) -> None:
        del head["order"]

    return rearranged(case, "model.npz", change)


@kind("model")
def a_fit_that_claims_to_rest_on_questions(case: Case) -> Files:
    def change(head: dict[str, Any], found: dict[str, Any]) -> None:
        head["direct"], found["direct"] = {"sigma": 1.0}, np.zeros(1)

    return rearranged(case, "answers.npz", change)


@kind("model")
def no_model_and_no_counts(case: Case) -> Files:
    made = case.made()
    made.__dict__["_facts"] = {**made.to_json(), "model": None, "noisy_counts": None}
    made.__dict__["_dumped"] = made.__dict__["_counted"] = None
    return made.files


@kind("rows")
def a_private_file_among_the_released_ones(case: Case) -> Files:
    return case.resealed({**case.honest.files, "private.csv": b"a,b\nx,p\n"})
