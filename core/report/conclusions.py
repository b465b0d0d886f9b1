"""What the report says of conclusions: how intervals are made, and what the test of the drawing found."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from espalier.core.analysis.combine import PYTHON, R
from espalier.core.analysis.drawing import sentences


def conclusions(facts: Mapping[str, Any]) -> str:
    """Both parts, where there is something to say."""
    return "\n".join(part for part in (_copies(facts), _drawing(facts)) if part)


def _copies(facts: Mapping[str, Any]) -> str:
    """How intervals are made from copies; absent from releases that keep no counts."""
    if not facts.get("noisy_counts"):
        return ""
    number = facts["copies"]
    there = (
        f"{number} copies lie beside this table (<code>copies/</code>)"
        if number
        else "Copies can be made at any time from the noisy counts (<code>espalier copies FOLDER</code>)"
    )
    return (
        "<h2>How sure a figure is</h2>"
        f"<p>An interval worked out from this table as if its rows were real is too narrow. {there}: each is what this "
        "release might have been, had the people and the noise come out otherwise. Estimate in each copy alone, then "
        "combine. <strong>Never stack the copies into one table</strong>: that would count every person many times. "
        "Only figures over columns that were counted together earn an interval; <code>espalier analyse FOLDER</code> "
        "says which. Copies follow the noisy counts more closely than the table does, which leans towards independent "
        "columns where counts are noisy, so their mean may differ a little from the table's own figure: quote the "
        "mean. The intervals do not cover how the columns that are counted together were chosen, nor where a number "
        "lies inside its bin.</p>"
        f"<pre>{escape(PYTHON)}</pre><pre>{escape(R)}</pre>"
    )


def _drawing(facts: Mapping[str, Any]) -> str:
    """What the private test of the drawing found; empty where none was paid for."""
    section = facts.get("test_drawing")
    if section is None:
        return ""
    lines = "".join(f"<li>{escape(line)}</li>" for line in sentences(section))
    return (
        "<h2>What the rows say of the drawing</h2>"
        "<p>Independences that the drawing implies, chosen from it alone, tested on noisy counts that the budget paid "
        "for. Read the strength first: with many rows, a weak association too contradicts a drawing. All tests "
        f"together raise a false alarm in at most {100 * section['level']:g} of 100 releases. A drawing that passes is "
        "not confirmed: nothing is said of the direction of arrows.</p>"
        + (f"<ul>{lines}</ul>" if lines else "<p>So few rows could tell nothing; nothing was paid for it.</p>")
    )
