"""Sections of the report on conclusions: intervals from copies, and the test of the drawing."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from espalier.core.analysis.combine import PYTHON, R
from espalier.core.analysis.drawing import sentences


def conclusions(facts: Mapping[str, Any]) -> str:
    """Return both sections; a section without facts is empty."""
    return "\n".join(part for part in (_copies(facts), _drawing(facts)) if part)


def _copies(facts: Mapping[str, Any]) -> str:
    """Return the section on intervals from copies; empty for a release without noisy counts."""
    if not facts.get("noisy_counts") or facts.get("counts_in_part"):
        return ""
    number = facts["copies"]
    there = (
        f"This release includes {number} copies (<code>copies/</code>)"
        if number
        else "Copies can be made at any time from the noisy counts (<code>espalier copies FOLDER</code>)"
    )
    return (
        "<h2>Uncertainty of a figure</h2><p>An interval computed from this table as if its rows were real is too "
        f"narrow. {there}. A copy is an alternative version of this release, as other people and other noise "
        "might have produced it. Estimate in each copy separately, then combine. <strong>Never stack the copies "
        "into one table</strong>, because that would count every person many times. Only figures over columns "
        "that were counted together have an interval; <code>espalier analyse FOLDER</code> shows which. Where "
        "counts are noisy, the table is biased towards independent columns, and copies follow the counts more "
        "closely. Their mean may therefore differ slightly from the table's own figure; quote the mean. The "
        "intervals do not account for the private choice of columns that are counted together, or for the "
        "position of a number inside its bin.</p><p>For each question, the Analyse page offers a script in R and in "
        "Python, with the copies that it needs.</p>"
        + (f"<pre>{escape(PYTHON)}</pre><pre>{escape(R)}</pre>" if number else "")
    )


def _drawing(facts: Mapping[str, Any]) -> str:
    """Return the results of the private test of the drawing; empty if the plan has no test."""
    section = facts.get("test_drawing")
    if section is None:
        return ""
    lines = "".join(f"<li>{escape(line)}</li>" for line in sentences(section))
    return (
        "<h2>Test of the drawing</h2><p>These independences follow from the drawing and were chosen from it "
        "alone. They were tested on noisy counts that the budget paid for. Read the strength first, because with "
        "many rows even a weak association contradicts a drawing. All tests together raise a false alarm in at "
        f"most {100 * section['level']:g} of 100 releases. A drawing that passes is not confirmed, because the "
        "tests do not check the direction of arrows.</p>"
        + (f"<ul>{lines}</ul>" if lines else "<p>There are too few rows for a test, so no budget was spent.</p>")
    )
