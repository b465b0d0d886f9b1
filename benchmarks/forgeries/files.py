"""Changed folders without new digests or a new signature."""

from __future__ import annotations

import base64
import json

from benchmarks.forgeries.case import (
    Case,
    Files,
    kind,
    signer,
)
from espalier.core.ledger.archive import ADDED
from espalier.core.statement import claims as statement


@kind("files")
def a_truncated_table(case: Case) -> Files:
    return {**case.honest.files, "synthetic.csv": case.honest.files["synthetic.csv"][:-200]}


@kind("files")
def a_missing_file(case: Case) -> Files:
    return {n: d for n, d in case.honest.files.items() if n != "answers.npz"}


@kind("files")
def an_extra_file(case: Case) -> Files:
    return {**case.honest.files, "questions.csv": b"a,b\n"}


@kind("files")
def the_signature_of_another_key(case: Case) -> Files:
    made = json.loads(case.honest.files[statement.STATEMENT])
    return {**case.honest.files, statement.SIGNATURE: signer().sign(made)}


@kind("files")
def a_signature_with_the_public_key_of_the_signer(case: Case) -> Files:
    made = json.loads(signer().sign(json.loads(case.honest.files[statement.STATEMENT])))
    made["public_key"] = base64.b64encode(case.key.public).decode()
    return {**case.honest.files, statement.SIGNATURE: json.dumps(made).encode()}


@kind("files")
def no_signature(case: Case) -> Files:
    return {n: d for n, d in case.honest.files.items() if n != statement.SIGNATURE}


@kind("files")
def an_edited_statement(case: Case) -> Files:
    data = case.honest.files[statement.STATEMENT]
    return {**case.honest.files, statement.STATEMENT: data.replace(b"clinic", b"office")}


@kind("files")
def no_statement(case: Case) -> Files:
    return {n: d for n, d in case.honest.files.items() if n not in ADDED}
