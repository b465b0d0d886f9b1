"""First pages of the report: the table, its quality, uses and privacy, and who is responsible."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from espalier.core.methods import METHODS
from espalier.core.methods.pools import pool_in_words
from espalier.core.privacy.accounting import guess_right, round_up
from espalier.core.privacy.unit import Unit
from espalier.core.report import picture
from espalier.core.report.html import SHORT
from espalier.core.report.release_picture import release_picture

SIGNED = {
    "drawn_by": "Drew the causes and roles",
    "schema_confirmed_by": "Confirmed that the schema is public",
    "approved_by": "Approved the release",
}
"""Statement behind each signature, by the key of the project file."""
CHOSEN = {"chosen_because": "Why this plan", "compared_with": "Compared with"}

AUC = " AUC rates predictions: 0.5 is chance, 1 is perfect."
"""Sentence added to a forecast that states an AUC."""

HARDLY = 0.05
"""Gain in accuracy, over always predicting the most common value, below which the report calls it small."""


def headline(facts: Mapping[str, Any]) -> str:
    """Return the opening of the report: the table's rows and method, what the table is, and what it is not."""
    project, method = facts["project"], METHODS[facts["method"]]
    return (
        f'<p class="lead">{facts["rows"]:,} invented rows in {len(project["schema"])} columns. No row is a real '
        f'person.</p><p class="soft">Made on {escape(facts.get("date") or "an unknown day")} with the method '
        f"{escape(method.title)}: {escape(method.summary)}.</p>"
        '<div class="two"><div><h3>What it is</h3><p>A stand-in for a real table. Its rows follow shares and links '
        "that were measured there with noise that protects each person.</p></div>"
        "<div><h3>What it is not</h3><p>It is not a record of anyone, a source about any individual, or evidence for "
        "links that were not measured.</p></div></div>"
    )


def verdict(facts: Mapping[str, Any]) -> str:
    """Return what the release itself shows about the quality of the table."""
    said = [_worth(facts), *_links(facts), _noise(facts)]
    bullets = "".join(f"<li>{text}</li>" for text in said if text)
    return f"<h2>What it shows</h2>{_planned(facts)}<ul>{bullets}</ul>"


def _worth(facts: Mapping[str, Any]) -> str:
    section = facts.get("looking")
    figures = {f["figure"]: f for f in section["figures"]} if section else {}
    right = figures.get("accuracy")
    if section is None or right is None or right["value"] is None:
        return (
            "How well a model trained on it predicts real rows is <strong>not known from this release</strong>, "
            "because no people were held out for an evaluation."
        )
    baseline = section.get("accuracy_baseline")
    text = (
        f"A model trained on it predicts <strong>{escape(section['target'])}</strong> correctly for "
        f"{100 * right['value']:.0f} % of real people ({100 * right['low']:.0f} to {100 * right['high']:.0f} %)"
    )
    if baseline is None:
        return text + "."
    better = right["low"] > baseline
    naive = f"Always predicting the most common value would be correct for {100 * baseline:.0f} %"
    if better and right["value"] - baseline < HARDLY:
        return f"{text}. {naive}, so <strong>the model is hardly better than that</strong>."
    if better:
        return f"{text}. {naive}."
    return f"{text}. {naive}, so <strong>the release does not show that the model predicts better</strong>."


def _planned(facts: Mapping[str, Any]) -> str:
    """Return the verdict on the plan before anything was spent; older releases do not contain it."""
    found = facts.get("verdict")
    if not found:
        return ""
    return (
        f'<p class="verdict {escape(found["rating"])}"><strong>Forecast, made before the release.</strong> '
        f"{escape(found['headline'])}{AUC if 'AUC' in found['headline'] else ''} The forecast covers only noise. "
        "Links that were not measured, or were removed on purpose, are also missing from this table.</p>"
    )


def _links(facts: Mapping[str, Any]) -> list[str]:
    out = []
    for s in facts["separations"]:
        given = f" except through {_list(s['given'])}" if s["given"] else " at all"
        kept = "By construction, it shows no link" if s["holds"] else "It <strong>may show a link</strong>"
        out.append(f"{kept} between {_list(s['left'])} and {_list(s['right'])}{given}.")
    if any(s["holds"] for s in facts["separations"]):
        out[-1] += (
            " <strong>This says nothing about the real table</strong>, where the link may well exist. Nor "
            "does it promise that a model trained on this table treats groups alike."
        )
    if not out:
        out.append(escape(METHODS[facts["method"]].guidance.unseparated(bool(facts["project"]["dag"]["edges"]))))
    return out


def _noise(facts: Mapping[str, Any]) -> str:
    alone = [m for m in (facts.get("bounds") or {}).get("marginals", []) if len(m["clique"]) == 1]
    if not alone:
        return ""
    drowned = [name for name, rating in _ratings(facts).items() if rating == "noise"]
    if drowned:
        more = f" and {len(drowned) - 3} more columns" if len(drowned) > 3 else ""
        return (
            f"<strong>Noise outweighs the data</strong> in {_list(drowned[:3])}{more}. Draw no conclusions from "
            f"{'these columns' if len(drowned) > 1 else 'this column'}."
        )
    worst = max(alone, key=lambda m: m["expected_tv"])
    return (
        f"Among the columns that are counted alone, {_list(worst['clique'])} is the least accurate. Noise is "
        f"expected to move about {100 * min(1.0, worst['expected_tv']):.1f} % of its rows to another value."
    )


MEANT = {
    "admissible": "admissible columns may explain the outcome",
    "inadmissible": "inadmissible columns may not",
}
"""Explanations of roles that readers may not know."""


def figure(facts: Mapping[str, Any]) -> str:
    """Return the large picture of the drawing, the measured pairs and the pairs refused by the fence; empty without a
    link.
    """
    made = release_picture(facts)
    if not made.whole:
        return ""
    drawn = bool(facts["project"]["dag"]["edges"])
    said = ["Solid lines are measured links." + (" Those with an arrowhead were also drawn." if drawn else "")]
    if made.weighed:
        said.append("The wider a line, the stronger the link in this table.")
    if made.drowned:
        said.append("Dotted lines are measured links that noise alone would explain.")
    if drawn:
        said.append("Grey dashed lines were drawn but not measured, so the table has no direct link there.")
    if made.refused:
        said.append("Red dashed lines are links that the frame (the separations of the plan) keeps out on purpose.")
    if made.unseen > 0:
        many = f"{made.unseen} further measured pairs are" if made.unseen > 1 else "One further measured pair is"
        said.append(f"{many} not shown; release.json lists every pair.")
    if 'class="together"' in made.whole:
        said.append("A cross in a circle marks causes that act together.")
    if shared := [f"{escape(a)} ↔ {escape(b)}" for a, b in facts["project"]["dag"].get("hidden", [])[:12]]:
        said.append(f"Pairs that share an unmeasured cause: {', '.join(shared)}.")
    if made.apart:
        more = f" and {len(made.apart) - 16} more" if len(made.apart) > 16 else ""
        said.append(f"Columns without a line: {', '.join(map(escape, made.apart[:16]))}{more}.")
    used = [r for r in ("outcome", "protected", "admissible", "inadmissible") if f'class="{r}"' in made.whole]
    key = " ".join(f'<span class="chip {role}">{role}</span>' for role in used)
    meant = ", ".join(MEANT[role] for role in used if role in MEANT)
    caption = f"{' '.join(said)}{f' Colours: {key}.' if key else ''}{f' As declared, {meant}.' if meant else ''}"
    return f'<figure class="large" tabindex="0">{made.whole}<figcaption>{caption}</figcaption></figure>'


def privacy(facts: Mapping[str, Any]) -> str:
    """Return the privacy promise: a guesser's chances, the people protected, and earlier spending."""
    asked, spent = facts["asked"], facts["spent"]
    person = f"“{escape(spent['person'])}”" if spent.get("person") else None
    unit = Unit(spent["neighbors"], spent["rows_per_person"]).in_words(person, linked="tables" in facts)
    right = round_up(100 * guess_right(asked["epsilon"], asked["delta"]), 3)
    ledger = facts.get("ledger")
    before = (
        "Each further release about the same people may raise this limit. This release is not recorded in a "
        "ledger, so the costs of these releases are not added up."
        if ledger is None
        else "This release and earlier ones from the same people together may reach "
        f"ε = {round_up(ledger['after']['epsilon'])}; the ledger allows {ledger['total']['epsilon']:g}."
    )
    return (
        '<section class="privacy"><h2>Privacy</h2><div class="odds">'
        "<p><strong>50 %</strong> correct guesses without this table</p>"
        f"<p><strong>{right} %</strong> correct guesses with it, at most</p></div>"
        "<p>Imagine someone who knows the records of all other people, and two versions of one person's record. They "
        "must guess which of the two was used. Without this table, they are right half the time. With it, they are "
        f"right at most {right} % of the time. This is a limit for the worst case, not the share of people who can "
        "be recognised. A limit of 50 % would mean that the table does not depend on this record at all. "
        f"(ε = {round_up(asked['epsilon'])}, δ = {round_up(asked['delta'])}, protecting {unit}.) "
        f"{_stated(facts)}{before}</p>"
        "<p>This promise does not hide facts about whole groups. Anyone who learns that smokers fall ill more often "
        "learns this about every smoker, in the table or not.</p></section>"
    )


def _stated(facts: Mapping[str, Any]) -> str:
    """Return the project's statement about a person's rows; empty if a person column enforces the limit."""
    stated = (facts.get("unit") or {}).get("stated", "")
    return "" if facts["spent"].get("person") or not stated else f"{escape(stated)} "


RATINGS = {
    "works": ("Works", "noise hardly changes their shares"),
    "weak": ("With care", "noise changes small groups"),
    "noise": ("Noise", "draw no conclusions from these"),
}


def _ratings(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the rating of each column, as expected before the release."""
    if verdict := facts.get("verdict"):
        return {c["column"]: c["rating"] for c in verdict["columns"]}
    return {n: "works" if e < 0.02 else "weak" if e < 0.2 else "noise" for n, e in _errors(facts).items()}


def columns_by_quality(facts: Mapping[str, Any]) -> str:
    """Return the quality of columns that was expected before the release: which work, and which are noise."""
    rated = _ratings(facts)
    if not rated:
        return ""
    rows = []
    for rating, (head, meaning) in RATINGS.items():
        names = [n for n in (c["name"] for c in facts["project"]["schema"]) if rated.get(n) == rating]
        if names:
            listed = ", ".join(map(escape, names))
            rows.append(
                f'<tr class="{rating}"><th scope="row">{head}</th><td>{len(names)} column{"s" * (len(names) != 1)}: '
                f'{meaning}</td></tr><tr><td colspan="2" class="names">{listed}</td></tr>'
            )
    if not facts.get("verdict") and (
        open_ := [c["name"] for c in facts["project"]["schema"] if c["name"] not in rated]
    ):
        rows.append(
            f'<tr><th scope="row">Not predicted</th><td>{len(open_)} column{"s" * (len(open_) != 1)}: measured '
            "as numbers; their error is not known in advance</td></tr>"
            f'<tr><td colspan="2" class="names">{", ".join(map(escape, open_))}</td></tr>'
        )
    by = "by itself and in its pairs" if facts.get("verdict") else "by itself; links between columns are less accurate"
    return (
        "<h2>What works, and what is noise</h2><table><caption>The columns are rated by the error that noise is "
        f"expected to cause in each column {by}. The rating ignores links that were not measured. The annex has the "
        "figures.</caption>"
        f"{''.join(rows)}</table>"
    )


def advice(facts: Mapping[str, Any]) -> str:
    """Return recommended and discouraged uses."""
    shown = ", and wherever its private evaluation shows enough quality" if facts.get("looking") else ""
    do = [
        f"Use it to plan, to teach, and to write and test code{shown}.",
        "State that it is synthetic, and pass this report on with it.",
    ]
    dont = [
        "Do not search for people in it, because no row is a person.",
        "Do not publish a figure from it as a finding, unless you confirm it on the real table or give the interval "
        "that Espalier's <em>Analyse</em> page shows for it.",
        "Do not treat a rare combination as a finding, because it may be noise.",
        "Do not compute error bars as if its rows were real, because they would be too narrow. The annex explains "
        "the correct way.",
    ]
    if facts["separations"]:
        dont.append(
            "Do not study the links that were removed on purpose, and do not cite the table as evidence that "
            "they do not exist."
        )
    lists = [
        f"<div><h3>{head}</h3><ul>{''.join(f'<li>{x}</li>' for x in rows)}</ul></div>"
        for head, rows in (("Do", do), ("Do not", dont))
    ]
    return f'<div class="two">{"".join(lists)}</div>'


def people(facts: Mapping[str, Any]) -> str:
    """Return who drew, confirmed, approved and released the table, and the budget that paid for it."""
    signed = facts["project"].get("signoff", {})
    named = {what: signed.get(key, "no one is named") for key, what in SIGNED.items()}
    rows = [f"<tr><td>{what}</td><td>{escape(name)}</td></tr>" for what, name in named.items()]
    rows += [
        f"<tr><td>{what}</td><td>{escape(signed[key])}</td></tr>" for key, what in CHOSEN.items() if signed.get(key)
    ]
    ledger = facts.get("ledger")
    if ledger:
        before, total = ledger["before"], ledger["total"]
        who = escape(str(ledger.get("who") or "")) or "see the ledger"
        share = 100 * (ledger["after"]["rho"] - before["rho"]) / total["rho"] if total["rho"] else 0
        rows.append(f"<tr><td>Released it</td><td>{who}</td></tr>")
        rows.append(
            f"<tr><td>Budget</td><td>{escape(ledger['population'])}, entry {escape(ledger['entry'])}; it used "
            f"{share:.0f} % of the total</td></tr>"
        )
    else:
        rows.append("<tr><td>Budget</td><td>spent, but not recorded in a ledger</td></tr>")
    rows.append(
        "<tr><td>Verification</td><td>run <code>espalier verify FOLDER</code>: it checks the files of this release and "
        "recomputes its privacy claims</td></tr>"
    )
    return f'<section class="people"><h2>People responsible</h2><table>{"".join(rows)}</table></section>'


def spent(pools: Mapping[str, float]) -> str:
    """Return a bar with each pool's share of ρ."""
    said: dict[str, float] = {}
    for pool, rho in pools.items():
        words = pool_in_words(pool)
        said[words] = said.get(words, 0.0) + rho
    return (
        "<h2>Use of the budget</h2><p>The privacy budget limits how much a release may reveal about a person. This "
        f"release spent it on:</p>{picture.bar(said)}"
    )


def dictionary(facts: Mapping[str, Any]) -> str:
    """Return the schema as a data dictionary, with the expected error of every column that is counted alone."""
    errors = _errors(facts)
    full = max(0.1, *errors.values(), 0.1)
    roles = {name: role for role, columns in facts["project"]["roles"].items() for name in columns}
    rows = []
    for c in facts["project"]["schema"]:
        if c["kind"] == "numeric" and c.get("edges"):
            values = f"{c['edges'][0]:g} to {c['edges'][-1]:g}, {len(c['edges']) - 1} bins"
        elif c["kind"] == "date":
            values = f"{c['dates']['from']} to {c['dates']['to']}, by {c['dates']['by']}"
        elif c["kind"] == "identifier":
            values = "an identifier: invented values" if c.get("invented") else "an identifier: not in the table"
        else:
            listed = c.get("categories", [])
            shown = [_with_label(c, text) for text in listed[:8]]
            values = ", ".join(map(escape, shown)) + (f" … ({len(listed)})" if len(listed) > 8 else "")
        missing = "; may be empty" if c.get("missing") else ""
        if marks := c.get("missing_marks"):
            missing += f" (written {', '.join(map(escape, marks))})"
        rows.append(
            f"<tr><td>{_named(c)}</td><td>{escape(c['kind'])}</td><td>{values}{missing}</td>"
            f"<td>{escape(roles.get(c['name'], ''))}</td>{_error(errors.get(c['name']), full) if errors else ''}</tr>"
        )
    head = "<thead><tr><th>column</th><th>kind</th><th>values</th><th>role</th>"
    head += '<th class="n">error</th><td></td></tr></thead>' if errors else "</tr></thead>"
    said = (
        "<caption>Error: expected share of rows in the wrong category due to noise (a full bar is "
        f"{100 * full:.0f} %)</caption>"
        if errors
        else ""
    )
    kept = " short" * (len(rows) <= SHORT)
    return f'<h2>The columns</h2><table class="whole{kept}">{said}{head}<tbody>{"".join(rows)}</tbody></table>'


def _with_label(column: Mapping[str, Any], text: str) -> str:
    """Return a value with its label: ``1 = male``."""
    label = column.get("labels", {}).get(text, "")
    return f"{text} = {label}" if label else text


def _named(column: Mapping[str, Any]) -> str:
    """Return a column's escaped name, with its label, unit and description below."""
    unit = f"[{column['unit']}]" if column.get("unit") else ""
    said = " ".join(filter(None, (column.get("label", ""), unit, column.get("description", ""))))
    return escape(column["name"]) + (f"<br><small>{escape(said)}</small>" if said else "")


def _errors(facts: Mapping[str, Any]) -> dict[str, float]:
    """Return the expected error of every column that is counted alone, as a share of rows."""
    best: dict[str, float] = {}
    for m in (facts.get("bounds") or {}).get("marginals", []):
        if len(m["clique"]) == 1:
            name = m["clique"][0]
            best[name] = min(best.get(name, 1.0), m["expected_tv"])
    return best


def _error(share: float | None, full: float) -> str:
    """Return two cells: the figure and its bar."""
    if share is None:
        return "<td></td><td></td>"
    return (
        f'<td class="n">{100 * share:.2f} %</td>'
        f'<td style="width:18%"><div class="bar" style="width:{100 * share / full:.1f}%"></div></td>'
    )


def _list(names: list[str]) -> str:
    return ", ".join(f"<strong>{escape(n)}</strong>" for n in names)
