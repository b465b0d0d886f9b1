"""Section of the report on columns and their drawn causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

KINDS = {
    "table": "Counted together with their causes",
    "interactions": "Trained with additive causes, and counted interactions",
    "additive": "Trained with additive causes",
}
"""Kinds of models of a family, each as the start of a sentence. Older releases have only tables and do not name the
kind.
"""


def family_section(facts: Mapping[str, Any]) -> str:
    """Return the model of each column given its drawn causes, and any contradictions between counts and drawing."""
    made = facts.get("families", [])
    if not made:
        return ""
    by_kind: dict[str, list[str]] = {}
    for family in made:
        by_kind.setdefault(family.get("becomes", "table"), []).append(escape(family["column"]))
    said = [f"{start}: {', '.join(by_kind[kind])}." for kind, start in KINDS.items() if kind in by_kind]
    if "table" in by_kind:
        said += _arrows(made)
    if tested := facts.get("drawing_in_families"):
        said += _independences(tested)
    return f"<h2>Columns and their causes</h2><p>{' '.join(said)}</p>"


def _arrows(made: Sequence[Mapping[str, Any]]) -> list[str]:
    idle = [escape(f"{cause} → {f['column']}") for f in made for cause in f["without_effect"]]
    if not idle:
        return ["Every arrow into a counted column may have an effect."]
    return [
        f"The counts are evidence against an effect of these drawn arrows: {', '.join(idle)}. Check the drawing.",
        "An arrow whose effect is as large as a correlation of 0.1 is listed in at most 5 of 100 releases.",
    ]


def _independences(tested: Mapping[str, Any]) -> list[str]:
    found = []
    for one in tested["contradicted"]:
        given = f" given {' and '.join(one['given'])}" if one["given"] else ""
        found.append(escape(f"{one['left'][0]} and {one['right'][0]}{given}"))
    many = tested["tested"]
    return [
        f"The drawing implies {many:,} {'independence' if many == 1 else 'independences'} among columns that were "
        f"counted together. The same counts test {'it' if many == 1 else 'them'}.",
        f"The counts contradict the independence of {'; '.join(found)}. An arrow between these columns may be missing."
        if found
        else "The counts do not contradict the drawing.",
        f"All these tests together raise a false alarm in at most {100 * tested['level']:g} of 100 releases.",
    ]
