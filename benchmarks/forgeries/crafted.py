"""Forgeries found in a fifth attack on the verifier (docs/attacks.md)."""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.forgeries.attacks import asked, real_rows
from benchmarks.forgeries.case import Case, Files, kind
from benchmarks.forgeries.honest import ASKED, REGRESSIONS
from benchmarks.forgeries.ledger import chained, mine, with_events
from benchmarks.forgeries.loopholes import decoder, edited, with_facts, with_rows
from benchmarks.forgeries.model import bent
from benchmarks.forgeries.texts import rearranged, swapped
from espalier.core.privacy.draws import Draw
from espalier.core.privacy.spending import Spending
from espalier.core.project.analyses import PlannedCounts
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.release import Release, release
from espalier.core.tables.table import Table
from espalier.verifier.folder import unzipped
from espalier.verifier.model import calibrate

COUNT = {"name": "n", "of": {"a": ["x"], "c": ["yes"]}}


def named(found: dict[str, Any], counts: list[str]) -> None:
    """Write the names of the visible columns and of the counts into a model."""
    names = {"visible": list("abcdefgh"), "counts": counts, "links": []}
    found["visible"] = np.frombuffer(json.dumps(names).encode(), np.uint8)


def counting(case: Case, files: Files) -> Files:
    """Return the files with a count added to the project that was never paid for."""
    files = edited(case, "release.json", lambda facts: facts["project"].update(counts=[COUNT]), files)
    return edited(case, "project.json", lambda project: project.update(counts=[COUNT]), files)


def project_of(case: Case, plan: Plan, **more: Any) -> Project:
    """Return a project of the private table with another plan."""
    return Project("clinic", case.rows.schema, plan, one_row_per_person=True, **more)


def redrawn(made: Release, draws: list[Draw]) -> Files:
    """Return the release with other draws, from which the exports are made again."""
    return replace(made, spending=Spending(made.spending.rho, draws)).files


@kind("model")
def an_edge_across_the_fence_and_its_end_called_a_count(case: Case) -> Files | None:
    """Paths were cut at each column that the model calls a count."""
    if not case.honest.plan_frame.separations:
        return None
    model: Any = case.honest.model
    made = case.refitted(bent(model, ("c", "g"), 0.3))
    made.__dict__["_facts"] = {**made.to_json(), "separations": case.honest.to_json()["separations"]}
    return rearranged(case, "model.npz", lambda _, found: named(found, ["c"]), dict(made.files))


@kind("rows")
def real_rows_that_depend_on_a_hidden_column(case: Case) -> Files:
    """Previously, columns that depend on hidden ones were not compared."""

    def change(head: dict[str, Any], found: dict[str, Any]) -> None:
        sizes = dict(head["sizes"])
        head["sizes"].append(["n", 3])
        head["order"] = ["n", *head["order"]]
        named(found, ["n"])
        for name, size in sizes.items():
            found[f"potential_{len(head['potentials'])}"] = np.zeros((3, size))
            head["potentials"].append(["n", name])

    files = with_rows(case, counting(case, dict(case.honest.files)), real_rows(case))
    return rearranged(case, "model.npz", change, files)


@kind("model")
def the_model_of_another_release_behind_questions_and_merged_categories(case: Case) -> Files:
    """Previously, no count was compared with the model if categories were merged."""
    plan = Plan("mst", 1.0, 1e-6, target="c", options={"compress": True}, question_share=0.1)
    project = project_of(case, plan, question_list=ASKED)
    turned = {c.name: c.size - 1 - case.rows.codes[c.name] for c in case.rows.schema.columns}
    tables = case.rows, Table(case.rows.schema, turned, case.rows.rows, values=case.rows.values)
    made, other = (release(project, rows, signer=case.key) for rows in tables)

    def merged(head: dict[str, Any], found: dict[str, Any]) -> None:
        if not head["merged"]:
            head["merged"], found["merged_0"] = ["f"], np.arange(3)

    mixed = replace(made, model=other.model, codes=other.codes, table=other.table)
    return rearranged(case, "answers.npz", merged, dict(mixed.files))


@kind("rows", detectable=False, why="the training of a decoder is not recomputed")
def real_rows_and_a_decoder_of_their_shares(case: Case) -> Files:
    """Each table of the decoder, and each root's intercept, has the shares of the real rows."""

    def change(head: dict[str, Any], found: dict[str, Any]) -> None:
        sizes, at = dict(head["sizes"]), 0
        for name, size in sizes.items():
            given = [n for n in sizes if [n, name] in head["edges"]]
            place = np.ravel_multi_index(
                [case.rows.codes[n] for n in (*given, name)], [sizes[n] for n in (*given, name)]
            )
            shares = np.bincount(place, minlength=math.prod(sizes[n] for n in (*given, name))) + 1e-9
            if name in head["tables"]:
                shape = found[f"table_{head['tables'].index(name)}"].shape
                shares = shares.reshape(shape)
                found[f"table_{head['tables'].index(name)}"] = shares / shares.sum(axis=-1, keepdims=True)
            elif not given:
                found["parameters"][at : at + size] = np.log(shares) * 64 / 45
            at += (1 + sum(sizes[n] - 1 for n in given)) * size

    return rearranged(case, "model.npz", change, with_rows(case, decoder(case, "auto"), real_rows(case)))


@kind("rows")
def a_private_number_of_rows_that_the_model_does_not_have(case: Case) -> Files:
    """Under add-remove, the forged number of rows could be the exact one, which is private."""
    plan, rng = Plan("mst", 1.0, 1e-6, neighbors="add-remove"), np.random.default_rng()
    made = release(project_of(case, plan), case.rows, signer=case.key)
    codes = made.model.sample(made.rows + 2, rng, even=True)
    cells = {c.name: c.decode(codes[c.name], rng) for c in case.rows.schema.columns}
    rows = replace(made, codes=codes, table=cells)
    rows.__dict__["_facts"] = {**rows.to_json(), "rows": made.rows + 2}
    return rows.files


@kind("budget")
def two_analyses_in_one_draw(case: Case) -> Files:
    """Two analyses share a draw, so each row is in one cell of both."""
    listed = PlannedCounts("one", "proportion", "c=yes"), PlannedCounts("two", "proportion", "a=x")
    plan = Plan("mst", 1.0, 1e-6, analysis_share=0.3)
    made = release(project_of(case, plan, analyses=listed), case.rows, signer=case.key)
    first, second = (d for d in made.spending.draws if d.pool == "analyses")
    both = replace(first, cells=4, rho=first.rho + second.rho, scale=first.scale / (1 + second.rho / first.rho) ** 0.5)
    return redrawn(made, [both if d is first else d for d in made.spending.draws if d is not second])


@kind("budget")
def sums_of_a_regression_almost_without_noise(case: Case) -> Files:
    plan = Plan("mst", 1.0, 1e-6, regressions=REGRESSIONS, regression_share=0.3)
    made = release(project_of(case, plan), case.rows, signer=case.key)

    def quiet(d: Draw) -> Draw:
        small: dict[str, Any] = {
            "given": (("squared", 1e-6),),
            "sensitivity": 1e-3,
            "scale": 1e-3 / math.sqrt(2 * d.rho),
        }
        return replace(d, **small) if d.recipe == "regression" else d

    return redrawn(made, [quiet(d) for d in made.spending.draws])


@kind("budget")
def a_question_with_two_descriptions(case: Case) -> Files:
    """The verifier reads the first description, which no row meets; the answer belongs to the second."""

    def change(made: dict[str, Any]) -> None:
        made.get("project", made)["questions"][0]["any"] = [{"a": []}]

    files = dict(asked(case, Plan("fpt-lp", 1.0, 1e-6)).files)
    return edited(case, "release.json", change, edited(case, "project.json", change, files))


@kind("budget")
def a_single_table_called_linked(case: Case) -> Files:
    """Linked tables keep no counts."""
    files = {n: d for n, d in case.honest.files.items() if n != "answers.npz"}

    def change(made: dict[str, Any]) -> None:
        made.get("project", made)["plan"].update(method="linked")
        if "project" in made:
            made.update(method="linked", noisy_counts=None)

    files = edited(case, "release.json", change, edited(case, "project.json", change, files))
    return case.resealed(files, lambda made: made["release"].update(method="linked"))


@kind("noise")
def exact_counts_behind_the_sums_of_an_embedding(case: Case) -> Files:
    """Previously, the sums of an embedding's features were not read."""
    made = release(
        project_of(case, Plan("mst", 1.0, 1e-6, target="c", embedding_share=0.3)), case.rows, signer=case.key
    )

    def change(_: dict[str, Any], found: dict[str, Any]) -> None:
        found["sums"] = np.append(found["sums"], case.exact(("a", "b", "c")))

    return rearranged(case, "model.npz", change, dict(made.files))


@kind("noise")
def exact_counts_in_an_array_without_an_ending(case: Case) -> Files:
    """``counts_0`` and ``counts_0.npy`` are one name to readers, which see only one of both."""
    out, hidden = io.BytesIO(), io.BytesIO()
    np.save(hidden, case.exact(case.fitted.measurements[0].clique))
    with zipfile.ZipFile(io.BytesIO(case.honest.files["answers.npz"])) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, hidden.getvalue() if name == "counts_0.npy" else old.read(name))
        new.writestr("counts_0", old.read("counts_0.npy"))
    return case.resealed({**case.honest.files, "answers.npz": out.getvalue()})


@kind("noise")
def real_rows_behind_a_compressed_array(case: Case) -> Files:
    """Readers stop at the end of the compressed stream."""
    out, listed = io.BytesIO(), b""
    with zipfile.ZipFile(io.BytesIO(case.honest.files["answers.npz"])) as old:
        members = [(name.encode(), old.read(name)) for name in old.namelist()]
    for name, data in members:
        packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        packed = packer.compress(data) + packer.flush() + real_rows(case)[:20_000] * (name == b"counts_0.npy")
        about = (zlib.crc32(data), len(packed), len(data), len(name), 0)
        listed += (
            struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 8, 0, 33, *about, 0, 0, 0, 0, out.tell()) + name
        )
        out.write(struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0, 8, 0, 33, *about) + name + packed)
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, len(members), len(members), len(listed), out.tell(), 0)
    return case.resealed({**case.honest.files, "answers.npz": out.getvalue() + listed + end})


@kind("noise")
def real_cells_in_the_last_bits_of_wide_numbers(case: Case) -> Files:
    """A 16-byte number is a whole number once it is rounded to 8 bytes."""

    def change(_: dict[str, Any], found: dict[str, Any]) -> None:
        bits = np.resize(case.rows.codes["c"], found["counts_0"].shape).astype(np.longdouble)
        found["counts_0"] = found["counts_0"] * (1 + bits * np.longdouble(2) ** -60)

    return rearranged(case, "answers.npz", change)


@kind("files")
def real_rows_in_a_file_named_like_the_folder_of_copies(case: Case) -> Files:
    return {**case.honest.files, "copies": real_rows(case)}


@kind("rows")
def real_cells_in_quotes_that_are_not_needed(case: Case) -> Files:
    head, *lines = case.honest.files["synthetic.csv"].decode().splitlines()
    cells = [line.split(",", 1) for line in lines]
    bits = case.rows.codes["c"].tolist()
    text = [f'"{one}",{rest}' if bit else f"{one},{rest}" for (one, rest), bit in zip(cells, bits, strict=True)]
    return with_rows(case, dict(case.honest.files), ("\n".join([head, *text]) + "\n").encode())


@kind("files")
def real_rows_in_the_blanks_of_the_statement(case: Case) -> Files:
    """The signature covers the content of the statement, not its form."""
    blanks = "".join(" \t"[bit] for bit in case.rows.codes["c"].tolist())
    return {**case.honest.files, "statement.json": case.honest.files["statement.json"] + blanks.encode()}


@kind("files")
def the_fingerprint_of_another_key_in_the_signature(case: Case) -> Files:
    made = json.loads(case.honest.files["statement.sig"])
    return {**case.honest.files, "statement.sig": json.dumps({**made, "fingerprint": "0" * 64}, indent=1).encode()}


@kind("texts")
def a_smaller_epsilon_after_this_release(case: Case) -> Files:
    """A text may state the ε that the ledger states."""
    files = with_facts(case, lambda facts: facts["ledger"]["after"].update(epsilon=0.1))
    page = files["report.html"].replace(b"</body>", "<p>In fact ε = 0.1 holds.</p></body>".encode())
    return case.resealed({**files, "report.html": page})


NUMBERS: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "a second epsilon in the registry entry": ("registry.yaml", lambda made: made["deployment"].update(epsilon=0.1)),
    "a second epsilon in the card": ("croissant.json", lambda made: made.update({"dp:epsilon": 0.1})),
}


def numbered(name: str, change: Callable[[dict[str, Any]], Any]) -> Callable[[Case], Files]:
    """Return a forgery with another number in a JSON file."""
    return lambda case: edited(case, name, change)


for title, entry in NUMBERS.items():
    made = numbered(*entry)
    made.__name__ = title
    kind("texts")(made)


@kind("texts")
def a_label_in_white(case: Case) -> Files:
    """An attribute of HTML 3 hides all text that has no colour of its own."""
    return swapped(case, "label.html", "<body>", '<body text="#ffffff">')


@kind("texts")
def an_epsilon_from_right_to_left(case: Case) -> Files:
    """A browser shows “ε = 0.1”."""
    turned = "<p>\N{RIGHT-TO-LEFT OVERRIDE}1.0 = ε\N{POP DIRECTIONAL FORMATTING} holds.</p></body>"
    return swapped(case, "label.html", "</body>", turned)


@kind("texts")
def an_epsilon_before_this_release_called_the_guarantee(case: Case) -> Files:
    """The ledger had spent nothing before, so a text could state ε = 0."""
    return swapped(case, "label.html", "</body>", "<p>In fact ε = 0 holds.</p></body>")


@kind("texts")
def a_smaller_epsilon_with_an_accent(case: Case) -> Files:
    return swapped(case, "label.html", "ε = 1,", "έ = 0.1, not ε = 1,")


@kind("texts")
def a_smaller_epsilon_as_an_open_e(case: Case) -> Files:
    return swapped(case, "label.html", "ε = 1,", "\N{LATIN SMALL LETTER OPEN E} = 0.1, not ε = 1,")


@kind("texts")
def a_limit_hidden_by_a_style_with_a_comment(case: Case) -> Files:
    """Browsers skip comments and read escapes such as ``displ\\61y``."""
    line = "<li>That the table has at least one row.</li>"
    page = case.honest.files["label.html"].decode().replace("</style>", ".far{display/**/:none}</style>")
    page = page.replace(line, line.replace("<li>", '<li class="far">'))
    return case.resealed({**case.honest.files, "label.html": page.encode()})


def beside(case: Case, *added: dict[str, Any], before_the_end: bool = False) -> Any:
    """Return the files with an export that has further events; each starts from the release's reservation."""

    def change(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        at = next(i for i, e in enumerate(events) if mine(case, e) and e["kind"] == "spend")
        start = next(e for e in events if mine(case, e) and e["kind"] == "reserve")
        more = [{**start, "entry": "x" * 16, "released": None, **each} for each in added]
        return chained([*events[:at], *more, *events[at:]] if before_the_end else [*events, *more])

    return with_events(case, change)


@kind("ledger")
def draws_that_the_entry_does_not_count(case: Case) -> Any:
    """All counts were drawn twice, and the better ones were kept."""
    entry_id = case.honest.to_json()["ledger"]["entry"]
    return beside(case, {"kind": "measure", "entry": entry_id, "plan": None, "rho": 0.02}, before_the_end=True)


@kind("ledger")
def an_entry_that_is_returned_after_it_drew(case: Case) -> Any:
    drew = {"plan": None, "rho": 0.001, "kind": "measure"}
    return beside(case, {"rho": 0.001}, drew, {**drew, "kind": "return", "rho": 0.0, "delta": None})


@kind("ledger")
def an_entry_of_a_smaller_unit(case: Case) -> Any:
    return beside(case, {"rho": 0.001, "neighbors": "add-remove"})


@kind("ledger")
def a_table_with_two_totals(case: Case) -> Any:
    return beside(case, {"kind": "open", "population": "others", "entry": None, "rho": 0.18, "epsilon": 3.0})


MANY = 100
"""Number of real rows among the others."""


@kind("rows", detectable=False, why="each group of rows keeps its numbers, so that no test of a table sees them")
def real_rows_chosen_to_fit(case: Case) -> Files:
    """Each real row replaces one that differs from it in few cells, if all groups stay within one row of the model."""
    model: Any = case.honest.model
    names = list(case.rows.schema.names)
    rows, real = (np.array([codes[n] for n in names]).T.astype(int) for codes in (case.honest.codes, case.rows.codes))
    tables = []
    head, _ = unzipped(case.honest.files["model.npz"], "model.npz")
    for name, given, shares in calibrate(model.sizes, model.potentials, head["order"]):
        place = [names.index(n) for n in (*given, name)]
        held = np.zeros(shares.shape)
        np.add.at(held, tuple(rows[:, place].T), 1)
        tables.append((place, held, shares))
    known, put, free = set(map(tuple, rows.tolist())), 0, np.ones(len(rows), bool)
    for row in (r for r in real if tuple(r.tolist()) not in known):
        for at in np.argsort((rows != row).sum(axis=1) + len(names) * ~free, kind="stable")[:100]:
            if free[at] and exchanged(tables, rows[at], row):
                rows[at], free[at], put = row, False, put + 1
                break
        if put == MANY:
            return case.with_codes({n: rows[:, i].astype(np.uint8) for i, n in enumerate(names)}).files
    raise ValueError(f"only {put} real rows fit")


def exchanged(tables: list[tuple[list[int], Any, Any]], old: Any, new: Any) -> bool:
    """Return whether the row was replaced in the counts of all groups. If one count would be too far off, none
    changes."""
    moved = [(held, p, tuple(old[at]), tuple(new[at])) for at, held, p in tables if (old[at] != new[at]).any()]
    for held, _, a, b in moved:
        held[a] -= 1
        held[b] += 1
    groups = [(held[g], p[g]) for held, p, a, b in moved for g in {a[:-1], b[:-1]}]
    if all(np.abs(h - h.sum() * p).max() <= 1 for h, p in groups):
        return True
    for held, _, a, b in moved:
        held[a] += 1
        held[b] -= 1
    return False
