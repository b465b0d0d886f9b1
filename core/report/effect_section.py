"""The report's section on the effect of the plan's treatment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from espalier.core.analysis import asking
from espalier.core.report.html import table


def effect_section(facts: Mapping[str, Any]) -> str:
    """Treatment, outcome, what is adjusted for and why, the figures, and what no table can settle."""
    section = facts.get("effect")
    if section is None:
        return ""
    t, y, event = (None if section[key] is None else escape(section[key]) for key in ("treatment", "outcome", "event"))
    adjust = ", ".join(f"<strong>{escape(name)}</strong>" for name in section["adjust"])
    what = f"the mean of {y}" if event is None else f"the risk that {y} is {event}"
    chosen = (
        "the plan says so, and the drawing allows it"
        if section["by"] == "plan"
        else f"the cheapest of {section['valid_sets']} sets that the drawing allows"
        if section["valid_sets"] > 1
        else "the only smallest set that the drawing allows"
    )
    adjusted = (
        f"Adjusted ones say what the difference would be if both groups were alike in {adjust}: {chosen}."
        if adjust
        else f"Nothing is adjusted for: {chosen}."
    )
    lines = "".join(f"<li>{escape(way)}</li>" for way in section["ways"])
    return (
        f"<h2>The effect of {t} on {y}</h2>"
        f"<p>Compared is {what}. Crude figures compare the groups as they are. {adjusted}</p>"
        + _figures(section["numbers"], "risk" if event is not None else "mean")
        + _missing(section)
        + f"<p>{escape(section['why'])}</p>"
        + (f"<p>Paths between {t} and {y} in the drawing:</p><ul>{lines}</ul>" if lines else "")
        + f'<p class="soft">From {section["copies"]} copies of this release, made of its noisy counts: nothing here '
        "was read off the real table without being paid for. Intervals hold the noise and that the rows are a "
        "sample.</p>"
    )


def _missing(section: Mapping[str, Any]) -> str:
    """Which rows the figures are about; absent from releases that older versions made."""
    said = "".join(f"<li>{escape(line)}</li>" for line in section.get("missing", ()))
    warned = "".join(f"<p><strong>Warning.</strong> {escape(line)}</p>" for line in section.get("warnings", ()))
    return (f"<ul>{said}</ul>" if said else "") + warned


def _figures(numbers: Sequence[Mapping[str, Any]], of: str) -> str:
    """A row for each treatment level that is compared, a column for each figure."""
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
        return "cannot be told"
    value = asking.shown(number["value"])
    if number["low"] is None:
        return f"{value}<br>no interval"
    given = "" if number["promised"] else ", given the model"
    return f"{value}<br>({asking.shown(number['low'])} to {asking.shown(number['high'])}{given})"
