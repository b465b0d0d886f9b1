"""Forgeries found in a later attack on the verifier (docs/attacks.md)."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.forgeries.attacks import asked, real_rows
from benchmarks.forgeries.budget import all_choices_removed
from benchmarks.forgeries.case import ROWS, Case, Files, kind
from benchmarks.forgeries.honest import ARROWS, LINK, VISITS, visits
from benchmarks.forgeries.ledger import chained, mine, with_events
from benchmarks.forgeries.rows import retabled
from benchmarks.forgeries.texts import rearranged, reclaimed, swapped
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.release import release
from espalier.core.release.linked_tables import linked_tables

UNIT = "The project states that each person has one row. This is a promise; no person column enforces it."


def with_facts(case: Case, change: Callable[[dict[str, Any]], None]) -> Files:
    """Return the release with changed facts in ``release.json``, from which the statement and all texts are made
    again."""
    made = case.made()
    facts = json.loads(json.dumps(made.to_json()))
    change(facts)
    made.__dict__["_facts"] = facts
    return made.files


def edited(case: Case, name: str, change: Callable[[dict[str, Any]], Any], files: Files | None = None) -> Files:
    """Return the files with a changed JSON file."""
    files = dict(case.honest.files) if files is None else files
    made = json.loads(files[name])
    change(made)
    return case.resealed({**files, name: json.dumps(made).encode()})


def with_rows(case: Case, files: Files, data: bytes) -> Files:
    """Return the files with another released table and its digest."""
    return retabled(case, {**files, "synthetic.csv": data})


def rewritten(case: Case, change: Callable[[str], str]) -> Files:
    """Return the files with the numbers of column d in another format."""
    head, *lines = case.honest.files["synthetic.csv"].decode().splitlines()
    cells = [line.split(",") for line in lines]
    text = "\n".join([head, *(",".join([*row[:3], change(row[3]), *row[4:]]) for row in cells)])
    return with_rows(case, dict(case.honest.files), f"{text}\n".encode())


def decoder(case: Case, families: str = "additive") -> Files:
    """Return an honest release of the decoder."""
    plan = Plan("decoder", 10.0, 1e-6, target="c", options={"families": families})
    project = Project("clinic", case.rows.schema, plan, dag=ARROWS, one_row_per_person=True)
    return dict(release(project, case.rows, signer=case.key).files)


@kind("model")
def real_rows_and_a_decoder_without_numbers(case: Case) -> Files:
    """χ² against NaN is NaN, which is not above any bound."""
    files = with_rows(case, decoder(case), real_rows(case))
    return rearranged(case, "model.npz", lambda _, found: found["parameters"].fill(np.nan), files)


@kind("rows")
def real_rows_of_a_drawing_that_fits(case: Case) -> Files:
    """If families are full tables and ε = 10, χ² does not notice that all rows are real."""
    return with_rows(case, decoder(case, "auto"), real_rows(case))


@kind("rows")
def thirty_real_rows_in_a_decoder(case: Case) -> Files:
    files = decoder(case, "auto")
    rows, real = (data.splitlines(keepends=True) for data in (files["synthetic.csv"], real_rows(case)))
    return with_rows(case, files, b"".join([*real[:31], *rows[31:]]))


@kind("model")
def exact_counts_after_the_parameters_of_a_decoder(case: Case) -> Files:
    def change(_: dict[str, Any], found: dict[str, Any]) -> None:
        found["parameters"] = np.append(found["parameters"], case.exact(("a",)))

    return rearranged(case, "model.npz", change, decoder(case))


@kind("budget")
def a_decoder_with_a_weight_that_the_plan_does_not_give(case: Case) -> Files:
    """A large weight of a counted column lowers the norm to which gradients are said to be clipped."""
    return rearranged(case, "model.npz", lambda head, _: head["importance"].update(a=1e9), decoder(case))


@kind("model")
def real_rows_and_potentials_that_add_up_to_infinity(case: Case) -> Files:
    """Two potentials of 1.7e308 in every cell give probabilities of ∞/∞."""

    def change(head: dict[str, Any], found: dict[str, Any]) -> None:
        sizes = {c.name: c.size for c in case.rows.schema.columns}
        for name in sizes:
            for _ in range(2):
                clique = [name, "c" if name != "c" else "a"][: 1 + len(head["potentials"]) % 2]
                found[f"potential_{len(head['potentials'])}"] = np.full([sizes[n] for n in clique], 1.7e308)
                head["potentials"].append(clique)

    files = with_rows(case, dict(asked(case, Plan("fpt-lp", 1.0, 1e-6)).files), real_rows(case))
    return rearranged(case, "model.npz", change, files)


@kind("model")
def a_separation_of_a_column_that_does_not_exist(case: Case) -> Files:
    held = {"left": ["\N{CYRILLIC SMALL LETTER ES}"], "right": ["g"], "given": [], "holds": True}
    return with_facts(case, lambda facts: facts["separations"].append({**held, "how": "exact", "why": "roles"}))


@kind("texts")
def a_smaller_epsilon_among_the_keys_of_the_statement(case: Case) -> Files:
    """Previously, a text could state any number that is in the statement."""
    files = swapped(case, "report.html", "</body>", "<p>In fact ε = 0.1 holds.</p></body>")
    return case.resealed(files, lambda made: made.update(better={"epsilon": 0.1}))


@kind("texts")
def a_delta_of_zero_in_the_label(case: Case) -> Files:
    """Each draw without a δ₀ has a δ of 0."""
    return swapped(case, "label.html", "</body>", "<p>Strictly, δ = 0 holds.</p></body>")


@kind("budget")
def the_rho_of_one_draw_as_the_rho_of_all(case: Case) -> Files:
    low = min(d.rho for d in case.honest.spending.draws)
    sentence = case.honest._claims["guarantee"]["sentence"]
    rho = sentence.split("ρ = ")[1].split(",")[0]

    def change(claims: dict[str, Any]) -> None:
        claims["guarantee"].update(rho=low, sentence=sentence.replace(rho, f"{low:.4g}"))

    files = reclaimed(case, change)
    return edited(case, "release.json", lambda facts: facts["asked"].update(rho=low), files)


@kind("budget")
def choices_removed_and_the_method_renamed(case: Case) -> Files | None:
    made = all_choices_removed(case)
    return replace(made, project=made.project.with_plan(method="workload")).files if made else None


@kind("budget")
def an_unknown_method(case: Case) -> Files:
    files = edited(
        case,
        "release.json",
        lambda facts: facts.update(method="exact") or facts["project"]["plan"].update(method="exact"),
    )
    files = edited(case, "project.json", lambda project: project["plan"].update(method="exact"), files)
    return case.resealed(files, lambda made: made["release"].update(method="exact"))


@kind("budget")
def choices_removed_and_one_way_counts_of_a_third(case: Case) -> Files | None:
    """The pool that the verifier compares keeps its share; the share of the choices is added to the counts."""
    if case.method != "privci":
        return None
    draws = case.honest.spending.draws
    counts = [d for d in draws if d.pool == "two-way"]
    more = sum(d.rho for d in draws if d.kind == "choice") / sum(d.rho for d in counts) + 1

    def change(_: int, d: Any) -> Any:
        if d.kind == "choice":
            return None
        return replace(d, rho=d.rho * more, scale=d.scale / more**0.5) if d.pool == "two-way" else d

    fitted = replace(
        case.fitted,
        measurements=tuple(
            replace(m, rho=m.rho * more, sigma=m.sigma / more**0.5) if m.pool == "two-way" else m
            for m in case.fitted.measurements
        ),
    )
    made = case.refitted(fitted.model(), fitted=fitted)
    return replace(made, spending=case.drawn(change).spending).files


@kind("budget")
def scores_published_with_another_noise(case: Case) -> Files:
    score = {"columns": ["a", "b"], "score": 1.0, "sigma": 1.0}
    return with_facts(case, lambda facts: facts.update(associations=[score] * 20))


@kind("rows")
def real_rows_in_a_column_that_the_schema_names_twice(case: Case) -> Files:
    def twice(made: dict[str, Any]) -> None:
        schema = made.get("project", made)["schema"]
        schema.append(schema[0])

    files = edited(case, "project.json", twice)
    files = edited(case, "release.json", twice, files)
    files = edited(
        case,
        "croissant.json",
        lambda card: card["recordSet"][0]["field"].append(card["recordSet"][0]["field"][0]),
        files,
    )
    rows, real = (data.decode().splitlines() for data in (files["synthetic.csv"], real_rows(case)))
    lines = [
        f"{rows[0]},a",
        *(f"{row},{cells.replace(',', ' ')}" for row, cells in zip(rows[1:], real[1:], strict=True)),
    ]
    files = with_rows(case, files, ("\n".join(lines) + "\n").encode())
    return case.resealed(files, lambda made: made["release"]["columns"].append("a"))


@kind("rows")
def real_cells_in_the_zeros_before_a_number(case: Case) -> Files:
    real = iter(case.rows.codes["a"].tolist())
    return rewritten(case, lambda text: "0" * next(real) + text)


@kind("rows")
def numbers_with_blanks(case: Case) -> Files:
    return rewritten(case, lambda text: f" {text}\t")


@kind("rows")
def real_names_called_invented_identifiers(case: Case) -> Files:
    def named(made: dict[str, Any]) -> None:
        made.get("project", made)["schema"].append({"name": "id", "kind": "identifier", "invented": True})

    files = edited(case, "release.json", named, edited(case, "project.json", named))
    field = {"name": "id", "dataType": "sc:Text"}
    files = edited(case, "croissant.json", lambda card: card["recordSet"][0]["field"].append(field), files)
    rows = files["synthetic.csv"].decode().splitlines()
    lines = [f"{rows[0]},id", *(f"{row},Ada Lovelace {i}" for i, row in enumerate(rows[1:]))]
    files = with_rows(case, files, ("\n".join(lines) + "\n").encode())
    return case.resealed(files, lambda made: made["release"]["columns"].append("id"))


@kind("files")
def a_card_in_another_encoding(case: Case) -> Files:
    """Other programs read JSON in UTF-16 as a different text, or not at all."""
    return case.resealed(
        {**case.honest.files, "croissant.json": case.honest.files["croissant.json"].decode().encode("utf-16")}
    )


@kind("texts")
def pure_privacy_in_the_registry_entry(case: Case) -> Files:
    return edited(case, "registry.yaml", lambda made: made["deployment"]["dp_variant"].update(variant_name="Pure DP"))


def carded(change: Callable[[dict[str, Any]], Any]) -> Callable[[Case], Files]:
    """Return a forgery with another Croissant card."""
    return lambda case: edited(case, "croissant.json", change)


OTHER = {"name": "real.csv", "contentUrl": "https://example.org/real.csv", "sha256": "0" * 64}
CARDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a table at another address in the card": lambda card: card["distribution"][0].update(
        contentUrl=OTHER["contentUrl"]
    ),
    "a second table in the card": lambda card: card["distribution"].append(OTHER),
    "real rows in a record set of the card": lambda card: card["recordSet"].append(
        {"name": "real", "data": [{"a": "x"}]}
    ),
    "another date in the card": lambda card: card.update(datePublished="2001-01-01"),
}
for title, card in CARDS.items():
    made = carded(card)
    made.__name__ = title
    kind("texts")(made)


@kind("texts")
def promises_left_out_of_every_text(case: Case) -> Files:
    return with_facts(case, lambda facts: facts["promises"].clear())


@kind("texts")
def rows_per_person_enforced_by_no_column(case: Case) -> Files:
    """Previously, the sentence about rows per person was compared with itself."""

    def change(facts: dict[str, Any]) -> None:
        facts["unit"]["stated"] = "A person column enforces it."
        facts["promises"] = [line.replace(UNIT, facts["unit"]["stated"]) for line in facts["promises"]]

    return with_facts(case, change)


@kind("noise")
def real_rows_behind_an_array_of_an_archive(case: Case) -> Files:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(case.honest.files["answers.npz"])) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name) + real_rows(case)[:1000] * (name == "counts_0.npy"))
    return case.resealed({**case.honest.files, "answers.npz": out.getvalue()})


@kind("noise")
def real_rows_between_the_members_of_an_archive(case: Case) -> Files:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(case.honest.files["answers.npz"])) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
            out.write(real_rows(case)[:1000])
            new.start_dir = out.tell()
    return case.resealed({**case.honest.files, "answers.npz": out.getvalue()})


@kind("noise")
def more_answers_than_questions(case: Case) -> Files:
    def change(_: dict[str, Any], found: dict[str, Any]) -> None:
        found["direct"] = np.append(found["direct"], case.exact(("a",)))

    return rearranged(case, "answers.npz", change, dict(asked(case, Plan("fpt-lp", 1.0, 1e-6)).files))


@kind("ledger")
def more_rho_than_the_total_without_an_export(case: Case) -> Files:
    return with_facts(case, lambda facts: facts["ledger"]["before"].update(rho=facts["ledger"]["total"]["rho"]))


@kind("ledger")
def a_total_with_more_delta_for_draws(case: Case) -> Any:
    """Other entries count more δ₀ than the ledger keeps for the draws."""

    def change(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        start = next(e for e in events if mine(case, e) and e["kind"] == "reserve")
        plan = json.dumps({**json.loads(start["plan"]), "delta_for_draws": 0.5})
        return chained([*events, {**start, "entry": "x" * 16, "rho": 1e-9, "plan": plan}])

    return with_events(case, change)


@kind("rows")
def real_people_with_their_real_visits(case: Case) -> Files:
    """Previously, linked tables were not compared with their models."""
    plan = Plan("linked", 1.0, 1e-6, person="id", rows=ROWS)
    real, rng = visits(case.seed, ROWS), np.random.default_rng(0)
    files = dict(release(Project("clinic", VISITS, plan, linked=LINK), real, signer=case.key).files)
    cells = {c.name: c.decode(real.codes[c.name], rng) for c in real.schema.columns}
    files |= linked_tables(LINK, real.schema, cells, real.visits, real.codes[LINK.number], rng).csv()

    def described(card: dict[str, Any]) -> None:
        for listed in card["distribution"]:
            listed["sha256"] = hashlib.sha256(files[listed["name"]]).hexdigest()

    return edited(case, "croissant.json", described, files)
