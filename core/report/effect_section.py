"""Section of the report on the effect of the plan's treatment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from espalier.core.analysis import answer_text
from espalier.core.report.html import table


def effect_section(facts: Mapping[str, Any]) -> str:
    """Return the treatment, outcome, adjustment set, figures and caveats; empty if the plan has no effect."""
    section = facts.get("effect")
    if section is None:
        return ""
    t, y, event = (None if section[key] is None else escape(section[key]) for key in ("treatment", "outcome", "event"))
    adjust = ", ".join(f"<strong>{escape(name)}</strong>" for name in section["adjust"])
    what = f"the mean of {y}" if event is None else f"the risk that {y} is {event}"
    chosen = (
        "the set that the plan chose, which the drawing allows"
        if section["by"] == "plan"
        else f"the cheapest of {section['valid_sets']} sets that the drawing allows"
        if section["valid_sets"] > 1
        else "the only minimal set that the drawing allows"
    )
    adjusted = (
        f"Adjusted figures estimate the difference between groups that are alike in {adjust}. This is {chosen}."
        if adjust
        else f"Nothing is adjusted for. The empty set is {chosen}."
    )
    lines = "".join(f"<li>{escape(way)}</li>" for way in section["ways"])
    return (
        f"<h2>The effect of {t} on {y}</h2>"
        f"<p>The figures compare {what}. Crude figures compare the groups as they are. {adjusted}</p>"
        + _figures(section["numbers"], "risk" if event is not None else "mean")
        + _missing(section)
        + f"<p>{escape(section['why'])}</p>"
        + (f"<p>Paths between {t} and {y} in the drawing:</p><ul>{lines}</ul>" if lines else "")
        + f'<p class="soft">From {section["copies"]} copies of this release, made from its noisy counts. These figures '
        "cost no further budget. Intervals cover noise and sampling.</p>"
    )


def _missing(section: Mapping[str, Any]) -> str:
    """Return sentences about missing cells; empty for releases of older versions."""
    said = "".join(f"<li>{escape(line)}</li>" for line in section.get("missing", ()))
    warned = "".join(f"<p><strong>Warning.</strong> {escape(line)}</p>" for line in section.get("warnings", ()))
    return (f"<ul>{said}</ul>" if said else "") + warned


def _figures(numbers: Sequence[Mapping[str, Any]], of: str) -> str:
    """Return a table with a row per compared treatment level and a column per figure."""
    rows: dict[str, dict[str, Mapping[str, Any]]] = {}
    for number in numbers:
        what, _, compared = number["name"].partition(", ")
        rows.setdefault(compared, {})[what] = number
    heads = list(dict.fromkeys(what for row in rows.values() for what in row))
    cells = [
        f"<tr><td>{escape(compared)}</td>" + "".join(f'<td class="n">{_cell(row[h])}</td>' for h in heads) + "</tr>"
        for compared, row in rows.items()
    ]
    said = dict.fromkeys(" ".join(filter(None, (n["why"], n.get("width", "")))) for n in numbers)
    notes = "".join(f"<li>{escape(why)}</li>" for why in said)
    names = [f"{head.replace('difference', f'{of} difference').replace('ratio', f'{of} ratio')}#" for head in heads]
    return table("Figures with their 95 % intervals", ["compared", *names], cells) + f"<ul>{notes}</ul>"


def _cell(number: Mapping[str, Any]) -> str:
    if number["value"] is None:
        return "cannot be estimated"
    value = answer_text.shown(number["value"])
    if number["low"] is None:
        return f"{value}<br>no interval"
    given = "" if number["promised"] else ", given the model"
    return f"{value}<br>({answer_text.shown(number['low'])} to {answer_text.shown(number['high'])}{given})"
