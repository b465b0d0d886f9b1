"""Sentences about missing cells: the rows that a figure describes, the missing shares, and warnings if these differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espalier.core.analysis.answers import Answer
from espalier.core.analysis.missing_shares import MissingShares, Share
from espalier.core.project.schema import Schema


def of_rows(observed: Sequence[str]) -> str:
    """Return a suffix that names the rows described by a figure; empty if no column can have missing cells."""
    if not observed:
        return ""
    return f", of the rows where {listed(observed)} {_are(observed)} observed"


def missing_sentences(schema: Schema, answers: Sequence[Answer]) -> tuple[list[str], list[str]]:
    """Return sentences about missing shares, and warnings if the shares differ between groups. No sentence is
    repeated.
    """
    every = list(dict.fromkeys(found for answer in answers for found in answer.missing))
    by_group = [said for found in every if (said := _by_group(schema, found))]
    return [*_left_out(answers), *by_group], [warning(found) for found in every if found.differ]


def _left_out(answers: Sequence[Answer]) -> list[str]:
    """Return sentences about the rows that each kind of number describes, and the share of rows left out."""
    kinds = {(a.observed, a.left_out): a.name.partition(" ")[0] for a in answers if a.observed}
    return [
        f"{f'{kind.capitalize()} figures' if len(kinds) > 1 else 'The figures'} describe the rows where "
        f"{listed(observed)} {_are(observed)} observed: {percent(share)} of all rows are left out."
        for (observed, share), kind in kinds.items()
    ]


def _are(columns: Sequence[str]) -> str:
    return "is" if len(columns) == 1 else "are"


def _by_group(schema: Schema, found: MissingShares) -> str:
    parts = [
        f"{percent(share.value)} (± {100 * share.error:.1f}) of {_group(schema, found, share)}"
        for share in found.shares
    ]
    said = f"{found.column} is missing in {listed(parts)}." if parts else ""
    reason = f"{found.reason}." if found.reason else ""
    return " ".join(filter(None, (said, reason[:1].upper() + reason[1:])))


def _group(schema: Schema, found: MissingShares, share: Share) -> str:
    if share.code is None or found.by is None:
        return "all rows"
    return f"the rows with {found.by} = {schema[found.by].labels[share.code]}"


def warning(found: MissingShares) -> str:
    """Return the warning that missing shares differ, with the result of the test."""
    assert found.p is not None
    return (
        f"The missing share of {found.column} differs by {found.by}, by more than noise and sampling explain "
        f"(χ² test of equal shares on the released counts: p {_p(found.p)}, level {found.level:.2g}). Rows with "
        f"{found.column} missing may differ from the others, and this figure does not describe them."
    )


def _p(p: float) -> str:
    return "below 0.001" if p < 0.001 else f"= {p:.3f}"


def percent(share: float) -> str:
    """Format a share as a rounded percentage."""
    return f"about {100 * share:.0f} %" if share >= 0.01 or share <= 0 else "less than 1 %"


def listed(parts: Sequence[str]) -> str:
    """Join words with commas, and with "and" before the last."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def missing_json(schema: Schema, found: MissingShares) -> dict[str, Any]:
    """Return missing shares and their test as plain values."""
    shares = [
        {
            "group": None if share.code is None or found.by is None else schema[found.by].labels[share.code],
            "share": share.value,
            "error": share.error,
        }
        for share in found.shares
    ]
    test = {"p": found.p, "level": found.level, "differ": found.differ}
    return {"column": found.column, "by": found.by, "shares": shares, **test, "reason": found.reason}
