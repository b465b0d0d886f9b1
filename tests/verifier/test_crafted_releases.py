"""Forgeries that the checker accepted before the fifth attack, each with a part of its finding."""

from __future__ import annotations

import json
import time

import pytest

from benchmarks import forgeries
from benchmarks.forgeries.case import signer
from espalier.core.ledger.ledger import Ledger
from espalier.verifier.check import verify

FAULTS = {
    "an edge across the fence and its end called a count": "['c'] and ['g'] are linked around",
    "real rows that depend on a hidden column": "a hidden column of the model does not follow from the others",
    "the model of another release behind questions and merged categories": "the model is far from the counts",
    "a private number of rows that the model does not have": "rows, like the model",
    "two analyses in one draw": "the draws do not have the cells of the analyses",
    "sums of a regression almost without noise": "for this unit, not 0.001",
    "a question with two descriptions": "cannot be checked",
    "a single table called linked": "linked is not a method for these tables",
    "exact counts behind the sums of an embedding": "unlisted arrays",
    "exact counts in an array without an ending": "holds an array twice",
    "real rows behind a compressed array": "more than its arrays",
    "real cells in the last bits of wide numbers": "arrays that are not numbers",
    "real rows in a file named like the folder of copies": "'copies' is not a file of this release",
    "real cells in quotes that are not needed": "in quotes although they need none",
    "real rows in the blanks of the statement": "not written as Espalier writes it",
    "the fingerprint of another key in the signature": "states another key, or more than a signature",
    "a smaller epsilon after this release": "a ρ of the ledger gives a larger ε",
    "a second epsilon in the registry entry": "registry.yaml has the unknown entry",
    "a second epsilon in the card": "croissant.json has the unknown entry",
    "a label in white": "may hide text",
    "an epsilon from right to left": "changes the direction of reading",
    "an epsilon before this release called the guarantee": "label.html states ε = 0",
    "a smaller epsilon with an accent": "label.html states ε = 0.1",
    "a smaller epsilon as an open e": "label.html states ε = 0.1",
    "a limit hidden by a style with a comment": "may hide text",
    "draws that the entry does not count": "less than was drawn",
    "an entry that is returned after it drew": "less than was drawn",
    "an entry of a smaller unit": "another unit",
    "a table with two totals": "or opens one again",
}


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.db", create=True)
    return forgeries.Case("privci", 0, signer(), ledger)


def test_the_table_names_all_kinds():
    kinds = [k for k in forgeries.KINDS if k.make.__module__.endswith("crafted")]
    assert FAULTS.keys() == {k.name for k in kinds if k.detectable}


@pytest.mark.parametrize(("name", "fault"), FAULTS.items())
def test_a_crafted_release_fails(case, tmp_path, name, fault):
    made = next(k for k in forgeries.KINDS if k.name == name).make(case)
    files, export = made if isinstance(made, tuple) else (made, None)
    folder = forgeries.written(files, tmp_path / "r")
    found = [f.text for f in verify(folder, None, export and json.dumps(export).encode()) if f.holds is False]
    assert any(fault in text for text in found), json.dumps(found)


JUNK = {
    "margins": f"<style>{'margin:' * 20_000}</style>",
    "comments": f"<style>{'/*' * 60_000}</style>",
    "numbers": "ε=7 " * 150_000,
}


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_a_crafted_page_is_read_in_linear_time(case, tmp_path, junk):
    page = case.honest.files["label.html"].decode().replace("</body>", f"{junk}</body>")
    folder = forgeries.written(case.resealed({**case.honest.files, "label.html": page.encode()}), tmp_path / "r")
    start = time.process_time()
    verify(folder)
    assert time.process_time() - start < 10
