"""``statement.json``: everything that a release promises, as data, from the same records as ``release.json``.

It contains only digests of released files. An unkeyed digest of the private table would break the guarantee, because
anyone could use it to test a guess about the table. If the number of rows is private, the statement does not contain
it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from espalier import __version__
from espalier.core.ledger.archive import ADDED
from espalier.core.privacy.accounting import guess_right, round_up, total_up
from espalier.core.privacy.draws import L1_PROOFS, PROOFS, Draw
from espalier.core.privacy.unit import Unit
from espalier.core.statement.words import (
    ADJACENT,
    ASSUMED,
    CONVERSION,
    DISJOINT,
    LINKED_ADJACENT,
    NOT_PROTECTED,
    POST_PROCESSING,
    PURE_CONVERSION,
    PURE_SEQUENTIAL,
    ROWS_ARE_PUBLIC,
    SEQUENTIAL,
)

FORMAT = "espalier-statement/1"
STATEMENT, SIGNATURE = ADDED
LABEL, REGISTRY = "label.html", "registry.yaml"
LIBRARIES = ("opendp", "numpy", "scipy", "pandas", "pyarrow", "duckdb", "ibis-framework", "networkx")
"""Libraries that read private rows, draw noise or fit the model."""


def claims(
    facts: Mapping[str, Any],
    draws: Iterable[Draw],
    held: Iterable[Draw],
    rows: int | None,
    signer: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the statement without the digests of the files.

    ``facts`` is the content of ``release.json``. ``draws`` are the purchases from the rows to which the model is
    fitted, ``held`` those from the held-out rows. ``rows`` is the number of rows to which the model is fitted, if it is
    public. ``signer`` is the key that will sign.
    """
    project, asked, spent = facts["project"], facts["asked"], facts["spent"]
    plan, k = project["plan"], spent["rows_per_person"]
    unit = Unit(spent["neighbors"], k)
    own, apart = list(draws), list(held)
    person = f"“{spent['person']}”" if spent["person"] else None
    return {
        "format": FORMAT,
        "private": True,
        "release": {
            "name": project["name"],
            "method": facts["method"],
            "method_title": facts["method_title"],
            "date": facts["date"],
            "rows": facts["rows"],
            "columns": [c["name"] for c in project["schema"]],
        },
        "unit": {
            "neighbors": unit.neighbors,
            "rows_per_person": k,
            "person": spent["person"],
            "rows": rows,
            "sentence": f"Protected: {unit.in_words(person, linked='tables' in facts)}.",
            "adjacent": _adjacent(facts).format(k=k, person=person),
            "stated": facts["unit"]["stated"],
        },
        "guarantee": {
            "epsilon": asked["epsilon"],
            "delta": asked["delta"],
            "rho": asked["rho"],
            "sentence": _sentence(asked, spent),
            "guess_right": guess_right(asked["epsilon"], asked["delta"]),
        },
        "spent": {
            "rho": spent["rho"],
            "delta": total_up(d.delta for d in own),
            "epsilon": spent["epsilon"],
            "at_delta": spent["delta"],
        },
        "accounting": {"rule": plan["accounting"], **(CONVERSION if asked["delta"] else PURE_CONVERSION)},
        "draws": [*(_draw(d, "own") for d in own), *(_draw(d, "held out") for d in apart)],
        "composition": {
            "own": {"rho": spent["rho"], "rule": SEQUENTIAL if asked["delta"] else PURE_SEQUENTIAL},
            "held out": {"rho": total_up(d.rho for d in apart), "rule": DISJOINT} if apart else None,
        },
        "separations": [{key: s[key] for key in ("left", "right", "given", "holds")} for s in facts["separations"]],
        "post_processing": list(POST_PROCESSING),
        "not_protected": [*NOT_PROTECTED, *([ROWS_ARE_PUBLIC] if unit.neighbors == "replace-one" else [])],
        "assumed": [*facts["promises"], *ASSUMED],
        "versions": versions(),
        "ledger": facts["ledger"],
        "approved": dict(project.get("signoff", {})),
        "signer": None if signer is None else dict(signer),
    }


def _sentence(asked: Mapping[str, Any], spent: Mapping[str, Any]) -> str:
    """Return the guarantee in one sentence."""
    rho, epsilon = round_up(spent["rho"]), round_up(asked["epsilon"])
    if not asked["delta"]:
        return (
            f"Every draw has a pure guarantee: together they are ε-differentially private with ε = {epsilon} and "
            f"δ = 0, and ρ-zCDP with ρ = {rho}."
        )
    return (
        f"Together, all draws are ρ-zCDP with ρ = {rho}, and the release is (ε, δ)-differentially private with "
        f"ε = {epsilon} and δ = {round_up(asked['delta'])}."
    )


def _adjacent(facts: Mapping[str, Any]) -> str:
    """Return the sentence about adjacent tables."""
    spent = facts["spent"]
    if linked := facts.get("tables"):
        return LINKED_ADJACENT[spent["neighbors"]].replace("{keep}", str(linked["keep"]))
    return ADJACENT[spent["neighbors"], spent["person"] is not None]


def _draw(draw: Draw, part: str) -> dict[str, Any]:
    return {
        "kind": draw.kind,
        "what": draw.what,
        "columns": list(draw.columns or ()),
        "pool": draw.pool,
        "part": part,
        "recipe": draw.recipe,
        "given": dict(draw.given),
        "proof": (PROOFS if draw.noise == "gaussian" else L1_PROOFS)[draw.recipe],
        "cells": draw.cells,
        "candidates": draw.candidates,
        "sensitivity": draw.sensitivity,
        "scale": draw.scale,
        "rho": draw.rho,
        "delta": draw.delta,
        **({"noise": draw.noise} if draw.noise == "laplace" else {}),
    }


def not_private(facts: Mapping[str, Any], why: str) -> dict[str, Any]:
    """Return the statement for rows without a guarantee, which says that there is none."""
    return {
        "format": FORMAT,
        "private": False,
        "release": {
            "name": facts["project"]["name"],
            "method": facts["method"],
            "method_title": facts["method_title"],
            "date": facts["date"],
            "rows": facts["rows"],
            "columns": [c["name"] for c in facts["project"]["schema"]],
        },
        "guarantee": None,
        "sentence": why,
        "versions": versions(),
        "signer": None,
    }


def sealed(made: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the claims with the size and the SHA-256 of each of ``files``."""
    listed = {name: digest(data) for name, data in sorted(files.items()) if name not in ADDED}
    return {**made, "files": listed}


def digest(data: bytes) -> dict[str, Any]:
    """Return the size and the SHA-256 of a file."""
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def text(statement: Mapping[str, Any]) -> bytes:
    """Return ``statement.json``, formatted for people."""
    return (json.dumps(statement, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def canonical(statement: Mapping[str, Any]) -> bytes:
    """Return the bytes to sign: the format's name, followed by JSON with sorted keys and without spaces."""
    made = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return f"{FORMAT}\n{made}".encode()


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    root = Path(__file__).resolve().parents[1]
    whole = hashlib.sha256()
    for path in sorted(root.rglob("*.py"), key=lambda p: p.relative_to(root).as_posix()):
        name = path.relative_to(root).as_posix()
        whole.update(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  core/{name}\n".encode())
    out = [("python", platform.python_version()), ("espalier", f"{__version__} sha256:{whole.hexdigest()}")]
    for name in LIBRARIES:
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        record = hashlib.sha256((found.read_text("RECORD") or "").encode()).hexdigest()
        out.append((name, f"{found.version} sha256:{record}"))
    return tuple(out)


def versions() -> dict[str, str]:
    """Return the versions of the program and its libraries, each with a digest.

    The program's digest covers its source files under ``core/``; a library's digest covers its ``RECORD``, the list
    of its files with their hashes.
    """
    return dict(_versions())
